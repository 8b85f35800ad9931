"""Expected probes of CUDA kernels, from row lengths and positions alone.

A separate computation on the arrays of any array module, which uses no kernel and finds no triangle. The formulas are
those in the kernels' sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import NamedTuple

from dasktc.backends.cpu import probes
from dasktc.backends.cpu.splits import GROUP, share_of
from dasktc.backends.csr import BEHIND, Array, BlockTask
from dasktc.backends.cuda.launch_hub import longest_row
from dasktc.backends.kernel import hub_count

__all__ = ["Edges", "Rule", "bitmap", "expected_probes", "hindex", "hub", "lstc", "same"]

PROBE_ROWS, PROBE_EDGES = 1 << 22, 1 << 24
"""Index rows, and edges of them, processed in one step."""


class Edges(NamedTuple):
    """Some index edges (u, v) of a task, with |A|, |B| and |T| as in `probes`."""

    task: BlockTask
    v: Array
    lengths: probes.Lengths


Macros = Mapping[str, int]
Rule = Callable[[Edges, Macros], Array]
"""Returns the probes of index edges, given the macros with which the kernel was compiled."""


def same(rule: probes.Rule) -> Rule:
    """Use the rule of a CPU kernel, where lists and method are the same.

    Parameters
    ----------
    rule : callable
        A rule of `probes`.
    """
    return lambda edges, _: rule(edges.lengths)


def hindex(edges: Edges, macros: Macros) -> Array:
    """Probes of `hindex`: as on the CPU, unless a macro has it hash the longer list."""
    xp, _, b, size, _ = edges.lengths
    list_length = xp.minimum(size, b) if macros["LONGER"] else xp.maximum(size, b)
    return xp.where((size > 0) & (b > 0), list_length, 0)


def lstc(edges: Edges, macros: Macros) -> Array:
    """Probes of `lstc`: as on the CPU at its default tile width, which is a macro here (0: one tile per row)."""
    row, width = edges.lengths.t, macros["TILE"]
    return edges.lengths.b * (-(-row // width) if width else row > 0)


def hub(edges: Edges, macros: Macros) -> Array:
    """Probes of `hub`, whose tables on the GPU differ from those on the CPU: other edges stream their first list."""
    xp, a, b, size, _ = edges.lengths
    is_near = edges.v < min(_hubs(edges, macros), macros["NEAR"])
    is_short = longest_row(xp, edges.task) <= macros["SHORT"]
    tests = xp.where(is_near | (size <= macros["SMALL"]) | is_short, a, xp.minimum(a, b))
    return xp.where((a > 0) & (b > 0), tests, 0)


def bitmap(edges: Edges, macros: Macros) -> Array:
    """Probes of `bitmap`, which the CPU does not have."""
    xp, a, b, size, _ = edges.lengths
    streams_a = (edges.v < _hubs(edges, macros)) | (size <= macros["SMALL"]) | (b > macros["LONG"] * a)
    return xp.where((a > 0) & (b > 0), xp.where(streams_a, a, b), 0)


def _hubs(edges: Edges, macros: Macros) -> int:
    task = edges.task
    lower = task.table.lower and task.stream.lower
    return hub_count(task.index.edges, task.stream.rows, lower, macros["BITMAP"])


def expected_probes(xp: ModuleType, task: BlockTask, rule: Rule, macros: Macros) -> int:
    """Sum of the probes of a kernel by the formula in its source, from all of its macros, and lengths and positions."""
    return sum(int(rule(Edges(task, v, _lengths(xp, task, u, v)), macros).sum()) for u, v in _edges(xp, task))


def _lengths(xp: ModuleType, task: BlockTask, u: Array, v: Array) -> probes.Lengths:
    index, table, stream = task.index.offsets, task.table.offsets, task.stream.offsets
    size, b = table[u + 1] - table[u], stream[v + 1] - stream[v]
    has_table = (size > 0) & ((index[u + 1] - index[u] > 1) | (task.index is not task.table))
    return probes.Lengths(xp, _count_before(xp, task, u, v) if task.shift != BEHIND else size, b, size, has_table)


def _edges(xp: ModuleType, task: BlockTask) -> Iterator[tuple[Array, Array]]:
    """Yield the task's index edges (u, v), some at a time."""
    begin, step, rows = share_of(task, xp)
    offsets = task.index.offsets
    for first in range(0, rows, PROBE_ROWS):
        k = xp.arange(first, min(first + PROBE_ROWS, rows), dtype="int64")
        row = begin + k // GROUP * step + k % GROUP
        ends = xp.cumsum(offsets[row + 1] - offsets[row])
        for begin_edge in range(0, int(ends[-1]), PROBE_EDGES):
            edge = xp.arange(begin_edge, min(begin_edge + PROBE_EDGES, int(ends[-1])), dtype="int64")
            place = ends.searchsorted(edge, side="right")
            u = row[place]
            yield u, task.index.columns[offsets[u + 1] - ends[place] + edge].astype("int64")


def _count_before(xp: ModuleType, task: BlockTask, u: Array, v: Array) -> Array:
    """Number of entries of table row u whose vertex id is below v's; all edges bisect in step."""
    table, bound = task.table, v * task.index.stride + task.index.column_first
    first = table.offsets[u]
    low, high = first.copy(), table.offsets[u + 1]
    while bool((low < high).any()):
        middle = xp.minimum((low + high) >> 1, max(table.edges - 1, 0))
        is_below = (low < high) & (table.columns[middle].astype("int64") * table.stride + table.column_first < bound)
        low, high = xp.where(is_below, middle + 1, low), xp.where(is_below, high, xp.minimum(middle, high))
    return low - first
