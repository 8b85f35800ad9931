"""What a CUDA kernel must report as probes, from row lengths and positions alone.

A separate computation, on the arrays of any array module: it reads no kernel and finds no
triangle. The formulas stand in the kernels' sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from dasktc.backend.launch_hub import HUB, hub_count
from dasktc.backend.splits import rows_of
from dasktc.csr import BEHIND, Array, BlockTask

__all__ = ["expected_probes"]

PROBE_EDGES = 1 << 24
"""Index edges looked at in one go."""


def expected_probes(xp: ModuleType, task: BlockTask, kernel: str, macros: dict[str, int] | None = None) -> int:
    """Add up the probes of a kernel from row lengths and positions alone, by the formula in its source.

    Parameters
    ----------
    xp : module
        numpy or cupy, whose arrays the task's blocks are.
    task : BlockTask
    kernel : {"hub", "bitmap", "trust", "merge", "search"}
    macros : dict, optional
        The `hub` kernel's, as `count` got them.
    """
    shape = HUB | (macros or {})
    lower = task.table.lower and task.stream.lower
    hubs = hub_count(task.index.edges, task.stream.rows, lower, shape["BITMAP"])
    lone = task.index is task.table
    total = 0
    for u, v in _edges(xp, task):
        table, stream = task.table.offsets, task.stream.offsets
        size, b = table[u + 1] - table[u], stream[v + 1] - stream[v]
        if kernel == "trust":
            degree = task.index.offsets[u + 1] - task.index.offsets[u]
            total += int(xp.where((size > 0) & ((degree > 1) | (not lone)), b, 0).sum())
            continue
        a = _before(xp, task, u, v) if task.shift != BEHIND else size
        if kernel == "hub":
            tested = xp.where((v < min(hubs, shape["NEAR"])) | (size <= shape["SMALL"]), a, xp.minimum(a, b))
        elif kernel == "bitmap":
            by_a = (v < hubs) | (size <= shape["SMALL"]) | (b > shape["LONG"] * a)
            tested = xp.where(by_a, a, b)
        else:
            tested = a + b if kernel == "merge" else xp.minimum(a, b)
        total += int(xp.where((a > 0) & (b > 0), tested, 0).sum())
    return total


def _edges(xp: ModuleType, task: BlockTask) -> Iterator[tuple[Array, Array]]:
    """Yield the task's index edges (u, v), some at a time."""
    offsets = task.index.offsets
    first, last = (int(offsets[row]) for row in rows_of(task, xp))
    for begin in range(first, last, PROBE_EDGES):
        end = min(begin + PROBE_EDGES, last)
        u = offsets.searchsorted(xp.arange(begin, end, dtype="int64"), side="right") - 1
        yield u, task.index.columns[begin:end].astype("int64")


def _before(xp: ModuleType, task: BlockTask, u: Array, v: Array) -> Array:
    """Count the entries of table row u whose vertex id is below v's: all edges bisect at once."""
    table, bound = task.table, v * task.index.stride + task.index.column_first
    first = table.offsets[u]
    low, high = first.copy(), table.offsets[u + 1]
    while bool((low < high).any()):
        middle = xp.minimum((low + high) >> 1, max(table.edges - 1, 0))
        below = (low < high) & (table.columns[middle].astype("int64") * table.stride + table.column_first < bound)
        low, high = xp.where(below, middle + 1, low), xp.where(below, high, xp.minimum(middle, high))
    return low - first
