"""Measures every fixed choice of kernel, order and scheme on a graph, for `dasktc bench choose`.

A fixed choice is a kernel with an order of ids, its own or another, and a scheme. A graph is prepared for each order
and scheme, and then counted with each kernel, in interleaved turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from dasktc.api.count import build
from dasktc.api.graph import Graph
from dasktc.backends.cpu import hub_tables
from dasktc.backends.cuda import block_cache as kept
from dasktc.errors import CountError
from dasktc.executors.local import LocalExecutor
from dasktc.io.source import Source
from dasktc.options import Options
from dasktc.pipeline.autotune import Facts, look
from dasktc.registry import KERNELS, ORDERS

__all__ = ["CLOSE", "HOPELESS", "MOMENT", "Choice", "Make", "Measured", "choices", "measured"]

Make = Callable[[], Source]
IN_EVERY_ORDER = ("hub", "trust", "hindex", "short")
"""Kernels that are tried in every order of ids; the others in their own."""
OTHER_SCHEMES = ("edges", "hash2d", "vertical", "proxy")
"""Schemes tried with kernel `hub` and n = 2, on graphs of at most MOST edges; these graphs fit one block everywhere."""
MOST = 1 << 24
HOPELESS = 5.0
"""A choice that took more than this multiple of the fastest time so far is not run again."""
CLOSE, MOMENT = 1.1, 1e-4
"""Multiple of the best choice's time, or seconds above it, within which `auto` counts as close."""


class Choice(NamedTuple):
    """A fixed choice: a kernel with an order of ids and a scheme."""

    kernel: str
    order: str
    partition: str = "whole"

    @property
    def own(self) -> bool:
        """Whether this is a kernel with its own order on the whole graph."""
        return (self.order, self.partition) == (Options(kernel=self.kernel).chosen_reorder, "whole")

    def __str__(self) -> str:
        if self.partition != "whole":
            return f"{self.kernel}, {self.partition}"
        return self.kernel if self.own else f"{self.kernel}, {self.order}"


@dataclass
class Measured:
    """Measurements of a graph: the choice of `auto`, its facts, and median seconds."""

    auto: Choice
    edges: int
    facts: Facts
    count: dict[Choice, float] = field(default_factory=dict)
    whole: dict[Choice, float] = field(default_factory=dict)
    """Seconds of counting, and from source to number."""
    prepare: dict[str, float] = field(default_factory=dict)
    """Seconds of preparing the graph as one block, by order."""

    @property
    def best(self) -> Choice:
        """The kernel, in its own order, that counts fastest; other orders must be made first and are left out."""
        return min((choice for choice in self.count if choice.own), key=lambda choice: self.count[choice])

    @property
    def close(self) -> bool:
        """Whether `auto` counts about as fast as the best choice."""
        mine, least = self.count[self.auto], self.count[self.best]
        return mine <= CLOSE * least or mine - least <= MOMENT

    def ratios(self, choice: Choice) -> tuple[float, float]:
        """Seconds of a choice relative to those of the best: of counting, and in all."""
        return self.count[choice] / self.count[self.best], self.whole[choice] / min(self.whole.values())


def choices(backend: str) -> list[Choice]:
    """The fixed choices: every kernel with its own order, some with all orders, and one with other schemes.

    Parameters
    ----------
    backend : {"cpu", "cuda"}
    """
    kernels = [Choice(kernel, Options(kernel=kernel, backend=backend).chosen_reorder) for kernel in KERNELS[backend]]
    orders = [Choice(kernel, order) for kernel in IN_EVERY_ORDER if kernel in KERNELS[backend] for order in ORDERS]
    cut = [Choice("hub", "degree", partition) for partition in OTHER_SCHEMES]
    return list(dict.fromkeys([*kernels, *orders, *cut]))


def measured(name: str, source: Make, runs: int, backend: str) -> Measured:
    """Measure every choice on one graph.

    Parameters
    ----------
    name : str
    source : callable () -> Source
    runs : int
        Number of measurements, of which medians are taken.
    backend : {"cpu", "cuda"}

    Raises
    ------
    CountError
        Two kernels count different numbers of triangles.
    """
    auto = build(LocalExecutor(), source(), Options(backend=backend))
    facts = look(auto._context.executor, auto._context.prepared.graph)
    taken = Choice(auto._context.options.kernel, auto._context.options.reorder, auto.plan.partition)
    result = Measured(taken, auto.edges, facts)
    counter = _Counter(name, auto._context.options.kernel, int(auto.triangle_count()))
    del auto
    every = [choice for choice in choices(backend) if choice.partition == "whole" or result.edges <= MOST]
    for layout in dict.fromkeys(choice[1:] for choice in every):
        graph, prepared = _prepared(source, *layout, runs, backend)
        if layout[1] == "whole":
            result.prepare[layout[0]] = prepared
        for kernel, samples in counter.rounds(graph, [c.kernel for c in every if c[1:] == layout], runs):
            count, rest = (median(sample) for sample in zip(*samples, strict=True))
            result.count[Choice(kernel, *layout)], result.whole[Choice(kernel, *layout)] = count, prepared + rest
    return result


Sample = tuple[float, float]
"""Seconds of the counting tasks, and of everything after preparation."""


@dataclass
class _Counter:
    """Counts one graph repeatedly, and requires that all counts are equal."""

    name: str
    """Name of the graph."""
    first: str
    """The kernel that counted it first."""
    triangles: int
    """The number that this kernel counted."""
    least: float = float("inf")
    """Seconds of the fastest count so far."""

    def rounds(self, graph: Graph, kernels: list[str], runs: int) -> list[tuple[str, list[Sample]]]:
        """Samples by kernel, interleaved, so that other load of the machine affects all kernels alike."""
        samples: dict[str, list[Sample]] = {kernel: [] for kernel in kernels}
        for kernel in kernels if graph._context.options.chosen_backend == "cuda" else ():
            self._sample(graph, kernel)  # a warm-up: loads the functions, and fills the memory pool
        for _ in range(runs):
            for kernel, series in samples.items():
                if not series or series[0][0] <= HOPELESS * self.least:
                    series.append(self._sample(graph, kernel))
                    self.least = min(self.least, series[-1][0])
        return list(samples.items())

    def _sample(self, graph: Graph, kernel: str) -> Sample:
        backend = graph._context.options.chosen_backend
        for tables in (hub_tables, kept):
            tables.forget()  # as in a single count, which finds no tables
        start = _now(backend)
        result = graph.triangle_count(kernel=kernel)
        seconds = _now(backend) - start
        if int(result) != self.triangles:
            raise CountError(
                f"kernel {kernel} counts {int(result):,} triangles of {self.name}, {self.first} {self.triangles:,}: "
                "one of them is wrong; report this with the output of `dasktc info`"
            )
        return sum(record.count.seconds for record in result._records), seconds


def _now(backend: str) -> float:
    if backend == "cpu":
        return time.process_time()
    from dasktc.backends.cuda import backend as cuda

    cuda.synchronize()
    return time.perf_counter()


def _prepared(source: Make, order: str, partition: str, runs: int, backend: str) -> tuple[Graph, float]:
    """Prepare a scheme's blocks in an order of ids; return the graph and the median of the seconds."""
    samples: list[float] = []
    for _ in range(runs):
        start = _now(backend)
        graph = build(LocalExecutor(), source(), Options("merge", partition, 2, reorder=order, backend=backend))
        samples.append(_now(backend) - start)
    return graph, median(samples)
