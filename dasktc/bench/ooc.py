"""`dasktc bench ooc`: counting within `--memory` on one GPU, compared with the same count with the whole device.

Both go from a graph that is generated on the device part by part to its number. Copying is measured between events on
the copy stream, waiting for it between events on the counting stream; the hidden share is that of the copying for which
nothing waited. Bytes to and from the host are those of all stages. Files are read right after they were written on the
same machine: from the page cache.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from statistics import median
from typing import Any, NamedTuple

from dasktc.api.count import build
from dasktc.backends import get_backend, lazy_backend
from dasktc.bench.gpu import facts
from dasktc.bench.report import DEVICE, EXACT, SIZE, Report, Say, Section, check_runs, command, quiet
from dasktc.counting.result import TriangleCount
from dasktc.errors import CountError
from dasktc.executors.local import LocalExecutor
from dasktc.executors.memory_budget import within_memory
from dasktc.executors.stores.device.prefetch import TransferStats
from dasktc.executors.stores.device.store import DeviceStore
from dasktc.io.generators.synthetic import kronecker
from dasktc.options import Options, format_size

__all__ = ["KNOWN", "Run", "run"]

KNOWN = {
    12: 486_234,
    14: 2_843_668,
    18: 82_704_862,
    20: 424_270_360,
    22: 2_111_176_581,
    24: 10_284_939_290,
    25: 22_532_312_176,
}
"""Triangles of Kronecker graphs, by scale."""


SCALES = (26, 27)
"""Default scales, of 1.05 and 2.1 G edges."""


class Run(NamedTuple):
    """Measurements of one count, from the generator to the number."""

    result: TriangleCount
    seconds: float
    """Wall time until the device has finished."""
    peak: int
    """Peak of the bytes allocated on the device."""
    moves: TransferStats
    """Statistics of its counting tasks."""
    sent: int = 0
    received: int = 0
    """Bytes sent to the host, and received back, in all stages."""


def run(
    scale: int | tuple[int, ...] = SCALES,
    memory: tuple[str | int, ...] = ("16GB",),
    host_memory: int | str | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    partition: str = "auto",
    parts: int | None = None,
    kernel: str = "auto",
    runs: int = 3,
    known: Mapping[int, int] = KNOWN,
    say: Say = quiet,
) -> Report:
    """Run the benchmark.

    Parameters
    ----------
    scale : int or tuple of int
        Scale of the Kronecker graphs.
    memory : tuple of int or str
        Budgets on the device, measured one after another.
    host_memory, work_dir
        As for `triangle_count`; with 1 everything that leaves the device goes to files.
    partition : str
        Scheme of the limited runs; the run with the whole device chooses for itself.
    parts : int, optional
        n of the limited runs.
    kernel : str
    runs : int
        Number of measurements after a warm-up; medians are shown.
    known : mapping of int to int
        Triangles by scale, with which limited runs are compared; else with the run on the whole device.
    say : callable (str), optional
        Told what is being measured.

    Raises
    ------
    InputError
        An option is invalid, or there is no usable GPU.
    CountError
        A count is wrong.
    """
    check_runs(runs)
    get_backend("cuda")  # allocations are counted from then on
    sections, scales = list[Section](), (scale,) if isinstance(scale, int) else scale
    for size in scales:
        say(f"scale {size}, all of the device")
        whole = _measured(size, Options(backend="cuda", kernel=kernel), runs, host_memory, work_dir)
        section = Section(
            f"Kronecker {size}, kernel {kernel}, seconds, medians of {runs} after a warm-up", COLUMNS, limits=LIMITS
        )
        section.rows.append(_row("all", whole, whole))
        for budget in memory:
            say(f"scale {size}, --memory {budget}")
            options = Options(backend="cuda", kernel=kernel, memory=budget, partition=partition, parts=parts)
            limited = _measured(size, options, runs, host_memory, work_dir)
            _compare(size, int(limited[0].result), known.get(size, int(whole[0].result)))
            section.rows.append(_row(str(budget), limited, whole))
        if size == scales[-1]:
            section.notes += NOTES
        sections.append(section)
        say(section)
    sizes = {"scale": scales, "memory": memory, "runs": runs, "host_memory": host_memory}
    line = command("ooc", **sizes, kernel=kernel, partition=partition, parts=parts)
    return Report(line, facts(), sections)


COLUMNS = {
    "memory": "", "plan": "", "read": ".2f", "prepare": ".2f", "count": ".2f", "kernels": ".2f", "in all": ".2f",
    "times all": ".2f", "peak": SIZE, "to the host": SIZE, "from the host": SIZE, "copied": "",
    "copying": ".3f", "waited": ".3f", "before the first": ".3f", "hidden": ".1%", "triangles": ",",
}  # fmt: skip
SECONDS = ("read", "prepare", "count", "kernels", "in all", "copying", "waited")
LIMITS = {
    "plan": EXACT, **dict.fromkeys((*SECONDS, "peak", "to the host", "from the host"), DEVICE), "copied": EXACT,
    "triangles": EXACT,
}  # fmt: skip
NOTES = [
    "in all: from the generator to the number; peak: bytes that were allocated on the device, at most",
    "to the host, from the host: bytes that left the device in all stages, and that came back, those blocks included",
    "copied, copying: blocks of counting tasks, bytes and seconds between events on the copy stream; files are read",
    "in that time, from the page cache, for they were written just before",
    "waited: seconds between events on the counting stream for which it waited for blocks; hidden: 1 - waited/copying",
]


def _measured(scale: int, options: Options, runs: int, host: Any, place: Any) -> list[Run]:
    return [_once(scale, options, host, place) for _ in range(runs + 1)][1:]


def _once(scale: int, options: Options, host: Any, place: Any) -> Run:
    from dasktc.backends.cuda import backend as cuda
    from dasktc.backends.cuda import memory as cuda_memory

    cuda.synchronize()
    with (
        within_memory(LocalExecutor(backend=lazy_backend("cuda")), options.memory, place, host) as executor,
        cuda_memory.peak() as peak,
    ):
        start = time.perf_counter()
        result = build(executor, kronecker(scale), options).triangle_count()
        cuda.synchronize()
        seconds = time.perf_counter() - start
        store = getattr(executor, "store", None)
        if isinstance(store, DeviceStore):
            return Run(result, seconds, store.peak, store.transfers, *store.moved)
    return Run(result, seconds, peak[0], TransferStats())


def _compare(scale: int, triangles: int, known: int) -> None:
    if triangles != known:
        raise CountError(
            f"Kronecker {scale} has {known:,} triangles, {triangles:,} were counted within --memory: report this"
        )


def _row(memory: str, runs: list[Run], whole: list[Run]) -> list[Any]:
    last, plan = runs[-1], runs[-1].result.plan
    stages = [median(run.result.seconds[name] for run in runs) for name in ("read", "prepare", "count")]
    kernels = median(sum(record.count.seconds for record in run.result._records) for run in runs)
    seconds = [median(run.seconds for run in series) for series in (runs, whole)]
    moved = [median(run.moves[field] for run in runs) for field in (2, 3, 4)]
    hidden = max(0.0, 1 - moved[1] / moved[0]) if moved[0] else None
    peak, copied = (
        max(run.peak for run in runs),
        f"{last.moves.blocks:,} blocks, {format_size(last.moves.nbytes)}",
    )
    shape = f"{plan.partition}, n = {plan.parts}" + f", m = {plan.splits}" * (plan.splits > 1)
    row = [memory, f"{shape}, {last.result.kernel}", *stages, kernels, seconds[0], seconds[0] / seconds[1], peak]
    return [*row, last.sent, last.received, copied, *moved, hidden, int(last.result)]
