"""TC-Stream's overlap: blocks read from disk, and copied to the GPU, while the ones before are counted.

Huang et al., "TC-Stream", TPDS 2022, doi:10.1109/TPDS.2021.3135329, sections 4.1 and 4.3 and table 4.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dasktc.backends import get_backend
from dasktc.backends.csr import BlockTask, OrientedCSR, on_host
from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.figure import Figure, Plot, Statement
from dasktc.bench.papers.graphs import Case, kronecker_case, rmat_case
from dasktc.planning.schemes import Block, Triple

__all__ = ["overlap"]

T = TypeVar("T")
PARTS = 3
"""P1 and P2: 27 sub-tasks."""


class Stored(NamedTuple):
    """A block whose arrays stand in files."""

    shell: OrientedCSR
    folder: Path

    def load(self) -> OrientedCSR:
        """Read the arrays."""
        return replace(
            self.shell, offsets=_read(self.folder / "offsets.npy"), columns=_read(self.folder / "columns.npy")
        )


class Steps(NamedTuple):
    """Wall seconds of each step, by task, and from the first to the last."""

    load: list[float]
    copy: list[float]
    kernel: list[float]
    elapsed: float
    triangles: int

    @property
    def totals(self) -> tuple[float, float, float]:
        """Seconds of each step over all tasks."""
        return sum(self.load), sum(self.copy), sum(self.kernel)

    @property
    def longest(self) -> float:
        """The longest step, below which nothing can overlap."""
        return max(self.totals)

    @property
    def pipeline(self) -> float:
        """The length of a pipeline of these steps, none of which is any slower for the others."""
        ends = [0.0, 0.0, 0.0]
        for task in zip(self.load, self.copy, self.kernel, strict=True):
            for step, seconds in enumerate(task):
                ends[step] = max(ends[step], ends[step - 1] if step else 0.0) + seconds
        return ends[-1]

    def slowed(self, alone: Steps) -> list[float]:
        """Time of each step, overlapped, over its time alone."""
        return [mine / theirs if theirs else 1.0 for mine, theirs in zip(self.totals, alone.totals, strict=True)]


def overlap(bench: Bench) -> Figure:
    """Table 4's first line: load, copy, compute and elapsed time, of a graph that is streamed from disk."""
    figure = Figure(
        f"Load, copy and count of {PARTS**3} sub-tasks from disk, wall seconds (TC-Stream, table 4 and section 4.3)",
        {
            "graph": "", "MB read": ".1f", "load": ".4f", "copy": ".4f", "count": ".4f", "in turn": ".4f",
            "overlapped": ".4f", "over the longest": ".3f", "hidden": ".2f",
        },
        notes=[
            "vertical partition; kernel tcstream; files out of the page cache before each pass"
            + ("" if hasattr(os, "posix_fadvise") else ", where the system can do that, which this one cannot"),
            "overlapped: another thread reads the next sub-task's blocks meanwhile"
            + (", and a third one copies" if bench.cuda else ""),
            "hidden: of what could be (noise reaches beyond 0 and 1)",
        ],
    )  # fmt: skip
    if not bench.cuda:
        figure.notes.append("copy from host to device: there is none on the CPU")
    scale, wide = bench.sizes.streamed
    reasons = []
    for case in (kronecker_case(scale), rmat_case(wide)):
        megabytes, turn, overlapped = _measured(bench, case)
        total = sum(turn.totals)
        hidden = (total - overlapped.elapsed) / (total - turn.longest) if total > turn.longest else None
        load, copy, count = turn.totals
        times = [load, copy if bench.cuda else None, count, total, overlapped.elapsed]
        figure.rows.append([case.name, megabytes, *times, overlapped.elapsed / turn.longest, hidden])
        reasons.append(_reason(turn, overlapped, bench.cuda))
    rows: list[list[Any]] = figure.rows
    series: dict[str, Any] = {name: [row[2 + k] for row in rows] for k, name in enumerate(list(figure.columns)[2:7])}
    figure.graphs = [row[0] for row in rows]
    figure.plot = Plot("bars", [row[0] for row in rows], series, "", "wall seconds", log=True)
    ratios = [
        f"{row[0]}: {row[7]:.2f} times the longest, {row[6] / row[5]:.2f} of the sum ({why})"
        for row, why in zip(rows, reasons, strict=True)
    ]
    figure.statements = [
        Statement(
            "load 1113, copy 1706 and computation 1918 s overlap to 2075 s: 1.08 times the longest, 0.44 of the sum",
            "; ".join(ratios),
            all(row[6] < row[5] and row[8] is not None and row[8] > 0.5 for row in rows),
        )
    ]
    return figure


def _reason(turn: Steps, overlapped: Steps, cuda: bool) -> str:
    """Say what a pipeline of these sub-tasks could reach, and how much the steps slow each other down."""
    slowed = overlapped.slowed(turn)
    names = ("load", "copy", "count") if cuda else ("load", "", "count")
    told = ", ".join(f"{name} {times:.2f}" for name, times in zip(names, slowed, strict=True) if name)
    return (
        f"a pipeline of steps that do not hinder each other: {turn.pipeline / turn.longest:.2f} times the longest; "
        f"times as long as alone: {told}"
    )


def _measured(bench: Bench, case: Case) -> tuple[float, Steps, Steps]:
    """Measure megabytes read, and median seconds with the steps in turn and overlapped."""
    graph = bench.prepared(case, kernel="tcstream", partition="vertical", parts=PARTS, splits=1)
    with TemporaryDirectory(prefix="dasktc-papers-") as folder:
        stored = {place: _store(block, Path(folder, f"{place[0]}-{place[1]}")) for place, block in graph.blocks.items()}
        triples = list(graph.plan.triples())
        size = sum(_bytes(stored[place]) for triple in triples for place in set(triple.places))
        passes: dict[bool, list[Steps]] = {False: [], True: []}
        for _ in range(max(3, bench.runs)):
            for ahead, done in passes.items():
                _forget(Path(folder))
                done.append(_pass(bench, stored, triples, ahead))
                bench.check(case, "tcstream from disk", done[-1].triangles)
    in_turn, overlapped = (sorted(done, key=lambda s: s.elapsed)[len(done) // 2] for done in passes.values())
    return size / 1e6, in_turn, overlapped


def _pass(bench: Bench, stored: dict[Block, Stored], triples: list[Triple], ahead: bool) -> Steps:
    """Count all sub-tasks, each block triple read and copied when it is needed, or one sub-task ahead each."""
    fetch, triangles, began = _Fetch(bench, stored), 0, time.perf_counter()
    seconds: list[float] = []
    loaded = map(fetch.load, triples)
    tasks = map(fetch.copy, _ahead(loaded) if ahead else loaded)
    for task in _ahead(tasks) if ahead and bench.cuda else tasks:
        start = time.perf_counter()
        triangles += get_backend(bench.backend).count(task, "tcstream").triangles
        seconds.append(time.perf_counter() - start)
    return Steps(fetch.loads, fetch.copies, seconds, time.perf_counter() - began, triangles)


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield each item while another thread makes the next: two buffers."""
    with ThreadPoolExecutor(1, "dasktc-ahead") as other:
        following: Future[T | None] = other.submit(next, items, None)
        while (item := following.result()) is not None:
            following = other.submit(next, items, None)
            yield item


Loaded = tuple[Triple, dict[Block, OrientedCSR]]


class _Fetch:
    """Reads a sub-task's blocks, and copies them to the GPU on a stream of its own; notes the seconds of each."""

    def __init__(self, bench: Bench, stored: dict[Block, Stored]) -> None:
        self._stored, self._xp = stored, get_backend(bench.backend).array
        self._stream: Any = self._xp.cuda.Stream(non_blocking=True) if bench.cuda else None
        self.loads: list[float] = []
        self.copies: list[float] = []

    def load(self, triple: Triple) -> Loaded:
        """Read the blocks, each once."""
        began = time.perf_counter()
        blocks = {place: self._stored[place].load() for place in dict.fromkeys(triple.places)}
        self.loads.append(time.perf_counter() - began)
        return triple, blocks

    def copy(self, loaded: Loaded) -> BlockTask:
        """Copy them, and make the task."""
        began, (triple, blocks) = time.perf_counter(), loaded
        if self._stream is not None:
            with self._stream:
                blocks = {place: self._copied(block) for place, block in blocks.items()}
            self._stream.synchronize()
        self.copies.append(time.perf_counter() - began if self._stream is not None else 0.0)
        return BlockTask(blocks[triple.index], blocks[triple.table], blocks[triple.stream])

    def _copied(self, block: OrientedCSR) -> OrientedCSR:
        return replace(block, offsets=self._xp.asarray(block.offsets), columns=self._xp.asarray(block.columns))


# files


def _store(block: OrientedCSR, folder: Path) -> Stored:
    folder.mkdir()
    for name in ("offsets", "columns"):
        array = getattr(block, name)
        with open(folder / f"{name}.npy", "wb") as file:
            np.save(file, on_host(array))
            file.flush()
            os.fsync(file.fileno())
    return Stored(replace(block, offsets=np.zeros(1, "int64"), columns=np.zeros(0, "int32")), folder)


def _read(path: Path) -> Any:
    return np.load(path)


def _bytes(of: Stored) -> int:
    return sum(path.stat().st_size for path in of.folder.iterdir())


def _forget(folder: Path) -> None:
    """Drop the files from the page cache, where the system can."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in folder.glob("*/*.npy"):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
