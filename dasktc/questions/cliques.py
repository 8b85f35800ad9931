"""Counts the cliques of 3, 4 or 5 vertices of a prepared graph in one block.

The work for a size, the number of 64-bit words that are ANDed, is known exactly once the cliques with one vertex fewer
are counted. So sizes are counted in ascending order, and work above a bound is refused before it begins.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from dasktc.answers.vertex_counts import known_triangles
from dasktc.backends import ON_DEVICE, get_backend
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.counting.context import CountingContext
from dasktc.errors import CountError, InputError
from dasktc.io.evidence import Reading
from dasktc.options import format_size, refuse_beyond, whole_number
from dasktc.pipeline.prepare import Progress, silent
from dasktc.pipeline.stages.shards import largest
from dasktc.registry import SCHEMES
from dasktc.summary import Rows, Summarised
from dasktc.wording import advice, option, plural

__all__ = ["BOUND", "WORDS_A_SECOND", "CliqueCount", "clique_count"]

log = logging.getLogger("dasktc")
BOUND = 10**13
"""Default bound of ANDed words: nine hours of one thread."""
WORDS_A_SECOND = 3 * 10**8
"""Words per second that one CPU thread ANDs and counts: measured 1.5 to 4.6 · 10^8 on five graphs, k = 5."""
SIZES = (3, 5)
"""The smallest and the largest size."""
SPLITS = 16
"""Tasks per thread: the cost of rows varies more than for triangles."""


@dataclass(frozen=True, repr=False)
class CliqueCount(Summarised):
    """The exact number of cliques of one size, with the work and time of counting them."""

    k: int
    """Vertices of a clique."""
    cliques: int
    work: int
    """64-bit words ANDed for this size, known in advance; 0 for k = 3, which the triangle count answers."""
    vertices: int
    edges: int
    read: Reading
    """What was read, as of a count."""
    seconds: dict[str, float]
    """Wall time of read, prepare, count and total."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "read": self.read.to_dict()}

    def __str__(self) -> str:
        return str(self.cliques)

    def _rows(self) -> Rows:
        seconds = ", ".join(f"{name} {value:.2f}" for name, value in self.seconds.items())
        return [
            ("cliques", f"{self.cliques:,} of {self.k} vertices"),
            ("vertices", f"{self.vertices:,}"),
            ("edges", f"{self.edges:,}"),
            *self.read._rows(),
            ("work", plural(self.work, "word")),
            ("seconds", seconds),
        ]


def clique_count(graph: CountingContext, k: int, bound: int = BOUND, progress: Progress | None = None) -> CliqueCount:
    """Count cliques; see `Graph.cliques`."""
    lower_reason, upper_reason = "a clique of two is an edge", "larger cliques are not built"
    k = whole_number("k", k, *SIZES, lower_reason, upper_reason)
    bound = whole_number("bound", bound, 1, few="nothing could be counted")
    start, report, work = time.perf_counter(), progress or silent, 0
    _refuse(graph)
    _within(bound, SIZES[0], graph.prepared.wedges, "at most ")
    if k == SIZES[0]:
        cliques = known_triangles(graph, progress)
    else:
        memory = _memory(graph)
        graph.executor.store.set_task_memory(memory, graph.plan.memory)
        _, work = _level(graph, 3, report)
        for size in range(4, k + 1):
            _within(bound, size, work)
            words = work
            cliques, work = _level(graph, size, report)
        work = words
    elapsed = time.perf_counter() - start
    stage_seconds = graph.prepared.seconds
    seconds = {**stage_seconds, "count": elapsed, "total": sum(stage_seconds.values()) + elapsed}
    return CliqueCount(k, cliques, work, graph.vertices, graph.edges, graph.prepared.source.read, seconds)


def _within(bound: int, size: int, work: int, prefix: str = "") -> None:
    """Log the work for cliques of a size; refuse work above the bound."""
    seconds = work / WORDS_A_SECOND
    log.info("cliques of %d vertices: %s%.3g ANDs of 64-bit words, %.3g s of one thread", size, prefix, work, seconds)
    if work > bound:
        raise InputError(
            f"cliques of {size} vertices take {prefix}{work:.3g} ANDs of 64-bit words, more than the bound of "
            f"{bound:.3g}: about {seconds / 3600:.3g} hours of one thread; give a larger bound"
        )


def _refuse(graph: CountingContext) -> None:
    """Refuse other schemes, with the memory that `whole` needs."""
    plan, scheme = graph.plan, SCHEMES["whole"]
    if plan.scheme.replicated and plan.cut == "rows":
        return
    nbytes = int(scheme.block_bytes(scheme.even(1, plan.vertices, plan.edges)).sum()) + 4 * plan.vertices
    raise InputError(
        f"{option('partition', plan.partition)} divides the neighbourhood of a vertex between tasks: cliques are "
        f"counted in the one block of `whole`, which needs at least {format_size(nbytes)} of each worker; prepare with "
        f"{advice(partition='whole')}"
    )


def _memory(graph: CountingContext) -> int:
    """Return the bytes that a task needs: the block, on the host, and the bits of the longest row.

    InputError: a worker has less memory.
    """
    from dasktc.backends.cpu import cliques as on_cpu
    from dasktc.backends.cuda import cliques as on_cuda

    plan, executor, outward = graph.plan, graph.executor, graph.prepared.graph.out_degree
    length = max(executor.gather(outward.map(executor, "cliques", largest)))
    on_device = graph.options.chosen_backend in ON_DEVICE
    scratch = on_cuda.scratch_bytes(length) if on_device else on_cpu.scratch_bytes(plan.vertices, length)
    nbytes = int(plan.scheme.block_bytes(graph.prepared.sizes).sum()) + scratch
    cause = f"{format_size(length * length / 8)} of it are the bits of a row of {plural(length, 'entry')}"
    fact = f"cliques need {format_size(nbytes)} for a task"
    refuse_beyond(plan.memory, nbytes, fact, f"{cause}; raise {advice('memory')}")
    return nbytes


def _level(graph: CountingContext, size: int, report: Progress) -> tuple[int, int]:
    """Count the cliques of a size and the work for the next one."""
    ((place, block),) = graph.blocks.items()
    device = graph.options.chosen_backend in ON_DEVICE
    splits = 1 if device else max(1, min(graph.plan.vertices, SPLITS * len(graph.executor.worker_threads)))
    calls = ((block, size, split, splits, graph.options.chosen_backend) for split in range(splits))
    total: list[tuple[int, int, int, int]] = []
    report(f"cliques {size}", 0, splits)
    with closing(graph.executor.map_unordered("cliques", _counted, calls)) as results:
        for numbers in results:
            total.append(numbers)
            report(f"cliques {size}", len(total), splits)
    tasks, cliques, work, wedges = zip(*total, strict=True)
    if sorted(tasks) != list(range(splits)) or sum(wedges) != graph.prepared.wedges:
        raise CountError(
            f"block {place}: {plural(len(tasks), 'task')} of {splits:,} handled {plural(sum(wedges), 'wedge')}, but "
            f"the degrees give {graph.prepared.wedges:,}: rows were lost or repeated; run again, and report this with "
            "`dasktc info`"
        )
    return sum(cliques), sum(work)


def _counted(block: OrientedCSR, size: int, split: int, splits: int, backend: str) -> tuple[int, int, int, int]:
    return split, *get_backend(backend).cliques(BlockTask(block, block, block, split, splits), size)
