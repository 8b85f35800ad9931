"""What all figures share: the backend, the graphs with their prepared blocks, and how a count is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from dasktc.api.count import build
from dasktc.api.graph import Graph
from dasktc.backends import get_backend
from dasktc.backends.csr import BlockTask, OrientedCSR, TaskCount, on_host
from dasktc.bench.papers.graphs import Case, Sizes
from dasktc.errors import CountError
from dasktc.executors.local import LocalExecutor
from dasktc.options import Options
from dasktc.planning.plan import Proxies

__all__ = ["NEEDS_GPU", "ONE_THREAD", "Bench", "host_arrays", "lengths"]

NEEDS_GPU = "needs a GPU"
ONE_THREAD = "time of one CPU thread, which has no warps"
"""What stands on the CPU for time on a GPU."""
KEPT = 8
"""Prepared blocks that are held at a time."""


@dataclass
class Bench:
    """A run of the papers' figures: backend, graphs, prepared blocks, and how counts are timed."""

    backend: str
    """"cpu" or "cuda"."""
    cases: list[Case]
    """The graphs of all figures that name none of their own."""
    sizes: Sizes
    """Of the graphs that figures make for themselves."""
    quick: bool = False
    runs: int = 1
    """Times that a count is timed; the median is shown."""
    _blocks: dict[tuple[str, str], OrientedCSR] = field(default_factory=dict)
    _proxies: dict[tuple[str, int], tuple[Proxies, ...]] = field(default_factory=dict)
    _triangles: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def cuda(self) -> bool:
        """Whether a GPU counts."""
        return self.backend == "cuda"

    @property
    def clock(self) -> str:
        """What the clock measures: device time, or CPU time of this process."""
        return "GPU seconds between two events" if self.cuda else "CPU seconds of one thread"

    @property
    def names(self) -> list[str]:
        """Names of the graphs."""
        return [case.name for case in self.cases]

    def prepared(self, case: Case, **options: Any) -> Graph:
        """Prepare a graph with options of a count; nothing is cached."""
        return build(LocalExecutor(), case.source(), Options(backend=self.backend, **options))

    def block(self, case: Case, order: str = "degree") -> OrientedCSR:
        """The whole graph as one block, ids in an order of `--reorder`; the last few are kept."""
        key = case.name, order
        if key not in self._blocks:
            while len(self._blocks) >= KEPT:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[key] = self.prepared(case, kernel="merge", partition="whole", reorder=order)._context.blocks[
                0, 0
            ]
        return self._blocks[key]

    def task(self, case: Case, order: str = "degree") -> BlockTask:
        """The whole graph as one counting task."""
        block = self.block(case, order)
        return BlockTask(block, block, block)

    def host_task(self, case: Case, order: str) -> BlockTask:
        """The whole graph as one counting task in host memory."""
        block = self.block(case, order)
        if self.cuda:
            block = OrientedCSR(*host_arrays(block), ordered=block.ordered)
        return BlockTask(block, block, block)

    def count(self, case: Case, order: str, kernel: str, macros: dict[str, int] | None = None) -> TaskCount:
        """Count a graph, its number checked; `seconds` is the median of the runs.

        Parameters
        ----------
        case : Case
        order : str
        kernel : str
        macros : dict of str to int, optional
            Of the CUDA kernel.
        """
        task = self.task(case, order)
        if self.cuda:
            self._counted(task, kernel, macros)  # compiles, and fills the memory pool
        counts = [self._counted(task, kernel, macros) for _ in range(self.runs)]
        for result in counts:
            self.check(case, f"{kernel} {macros or ''}".strip(), result.triangles)
        return counts[0]._replace(seconds=median(result.seconds for result in counts))

    def slowest_split(self, case: Case, count: int, **options: Any) -> float:
        """Seconds of the slowest of so many splits, each the median of the runs; the number is checked.

        Parameters
        ----------
        case : Case
        count : int
            Splits, each of them what one of as many GPUs would count.
        **options
            Of the count.
        """
        graph, runs = self.prepared(case, splits=count, **options), []
        if self.cuda:
            graph.triangle_count()  # compiles, and fills the memory pool
        for _ in range(self.runs):
            result = graph.triangle_count()
            self.check(case, f"{options} in {count} splits", result.triangles)
            runs.append([record.count.seconds for record in sorted(result._records)])
        return max(map(median, zip(*runs, strict=True)), default=0.0)

    def proxies(self, case: Case, parts: int) -> tuple[Proxies, ...]:
        """Proxies of random parts of a graph before and after LSTC's transformation; cached."""
        key = case.name, parts
        if key not in self._proxies:
            self._proxies[key] = self.prepared(case, kernel="lstc", partition="proxy", parts=parts).plan.proxies
        return self._proxies[key]

    def part(self, case: Case, order: str, kernel: str, macros: dict[str, int]) -> float:
        """Seconds of a CUDA kernel that macros cut short: parts of its work are compiled out."""
        task = self.task(case, order)
        self._counted(task, kernel, macros)
        return self.timed(lambda: self._counted(task, kernel, macros).seconds)

    def binning(self, case: Case, kernel: str) -> float:
        """Seconds that binning the edges takes for a CUDA kernel, in degree order."""
        from dasktc.bench.papers.device import binning_seconds

        task = self.task(case)
        binning_seconds(task, kernel)
        return self.timed(lambda: binning_seconds(task, kernel))

    def forget(self) -> None:
        """Drop the prepared blocks, so that their memory is free again."""
        self._blocks.clear()

    def _counted(self, task: BlockTask, kernel: str, macros: dict[str, int] | None) -> TaskCount:
        if macros is None:
            return get_backend(self.backend).count(task, kernel)
        from dasktc.backends.cuda import backend as cuda

        return cuda.count(task, kernel, macros)

    def check(self, case: Case, who: str, triangles: int) -> None:
        """Refuse a number of triangles that differs from the graph's first one."""
        first = (case.triangles, "arithmetic") if case.triangles is not None else (triangles, who)
        number, counter = self._triangles.setdefault(case.name, first)
        if triangles != number:
            raise CountError(
                f"{who} counts {triangles:,} triangles of {case.name}, {counter} {number:,}: one of them is wrong; "
                "there is nothing to compare"
            )

    def timed(self, measure: Callable[[], float]) -> float:
        """Median of several calls of a function that measures."""
        return median(measure() for _ in range(self.runs))


def host_arrays(block: OrientedCSR) -> tuple[Any, Any]:
    """Offsets and columns of a block as NumPy arrays."""
    return on_host(block.offsets), on_host(block.columns)


def lengths(block: OrientedCSR) -> tuple[Any, Any, Any]:
    """For each edge (u, v) of a whole graph: u, |row(u)| and |row(v)|, int64 on the host."""
    offsets, columns = host_arrays(block)
    degree = np.diff(offsets)
    u = np.repeat(np.arange(len(degree)), degree)
    return u, degree[u], degree[columns]
