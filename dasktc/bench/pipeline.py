"""Measures whole counts in fresh processes: CPU seconds and memory, by stage or by worker."""

from __future__ import annotations

import gzip
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dasktc.bench.measure import StageMeter, forget_peak, peak_bytes, resident_bytes

__all__ = ["ClusterRun", "ProcessRun", "in_cluster", "in_process", "write_kronecker"]

SMALL_SCALE, SMALL_LINES = 13, 200_000
"""Size of the warm-up's graph, large enough to use everything that is compiled once."""
PARTS, SPLITS = 4, 4
"""n and m for the nearly empty graph: 256 counting tasks."""


@dataclass(frozen=True)
class ProcessRun:
    """Measurements of a count in one process."""

    triangles: int
    edges: int
    seconds: dict[str, float]
    """CPU seconds by stage."""
    peaks: dict[str, int]
    """Peak resident bytes by stage."""
    baseline: int
    """Resident bytes with all modules imported and nothing read."""


@dataclass(frozen=True)
class ClusterRun:
    """Measurements of a count on workers with one thread each; lists have one entry per worker."""

    triangles: int
    edges: int
    whole: list[float]
    """CPU seconds of the whole run."""
    peaks: list[int]
    baselines: list[int]
    """Peak resident bytes, and resident bytes with all modules imported and nothing read."""
    tasks: int
    task_seconds: float
    """Counting tasks of another, nearly empty graph, and the wall seconds of each."""


def in_process(source: int | str) -> ProcessRun:
    """Count, in this process with one thread, a Kronecker graph of the given scale, or a file."""
    from dasktc.api.count import triangle_count

    edges = _open(source)
    with TemporaryDirectory() as folder:
        triangle_count(_small(source, folder), threads=1)  # imports, and compiles or loads compiled code
    baseline, meter = resident_bytes(), StageMeter()
    forget_peak()
    result = triangle_count(edges, threads=1, progress=meter)
    meter.stop()
    return ProcessRun(result.triangles, result.edges, meter.seconds, meter.peaks, baseline)


def in_cluster(source: int | str, workers: int) -> ClusterRun:
    """Count, on new worker processes, a Kronecker graph of the given scale, or a file."""
    from dasktc.api.count import build
    from dasktc.executors.connect import connect
    from dasktc.executors.place import Place
    from dasktc.options import Options

    with connect(Place(workers=workers)) as tasks, TemporaryDirectory() as folder:
        run = tasks.client.run  # type: ignore[attr-defined]
        run(_warm, _small(source, folder))
        baselines, starts = run(resident_bytes), run(time.process_time)
        result = build(tasks, _open(source), Options()).triangle_count()
        ends, peaks = run(time.process_time), run(peak_bytes)
        empty = build(tasks, _open(4), Options(parts=PARTS, splits=SPLITS))
        empty.triangle_count()
        no_work = empty.triangle_count()
    return ClusterRun(
        result.triangles,
        result.edges,
        whole=[ends[worker] - starts[worker] for worker in starts],
        peaks=list(peaks.values()),
        baselines=list(baselines.values()),
        tasks=no_work.plan.tasks,
        task_seconds=no_work.seconds["count"] / no_work.plan.tasks,
    )


def write_kronecker(scale: int, out: str) -> None:
    """Write a Kronecker graph's edges as Parquet."""
    from dasktc.executors.local import LocalExecutor
    from dasktc.io.write import write_edges

    write_edges(_open(scale), out, LocalExecutor())


def _open(source: int | str) -> Any:
    from dasktc.api.opener import as_source
    from dasktc.io.generators.synthetic import kronecker

    return kronecker(source) if isinstance(source, int) else as_source(source)


def _small(source: int | str, folder: str) -> Any:
    """A small source of the same kind, for a warm-up."""
    if isinstance(source, int):
        return _open(SMALL_SCALE)
    small = Path(folder, "small" + "".join(Path(source).suffixes[-2:]))
    if small.suffix == ".parquet":
        write_kronecker(SMALL_SCALE, str(small))
    else:
        opener: Any = gzip.open if small.suffix == ".gz" else open
        with opener(source, "rb") as whole, opener(small, "wb") as head:
            head.writelines(islice(whole, SMALL_LINES))
    return _open(str(small))


def _warm(source: Any) -> None:
    """Import and compile on a worker, by counting a small graph there without the cluster."""
    from dasktc.api.count import build
    from dasktc.executors.local import LocalExecutor
    from dasktc.options import Options

    build(LocalExecutor(), source, Options()).triangle_count()
