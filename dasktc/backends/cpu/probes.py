"""Expected probes: what a counting task's kernel must report, from row lengths and positions alone.

This is a slow, separate computation, which uses no kernel and finds no triangle; tests and `--verify` compare the
kernels with it. For an index edge (u, v) let T = table.row(u), A its entries before v (all of them if the blocks are
unordered), and B = stream.row(v):

    hub       0 if |A| = 0;  |B| if |B| <= SHORT;  min(|A|, |B|) otherwise
    trust     |B|; 0 if T is empty, or if index and table are one block whose row u has one entry
    hindex    max(|T|, |B|); 0 if either is empty
    merge     |A| + |B|; 0 if either is empty
    search    min(|A|, |B|)
    lstc      |B| for each tile of T
    tcstream  min(|T|, |B|)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NamedTuple

import numpy as np

from dasktc.backends.cpu.sizes import SHORT, TILE
from dasktc.backends.cpu.splits import rows_of
from dasktc.backends.csr import BEHIND, Array, BlockTask

__all__ = [
    "Lengths", "Rule", "expected_probes", "hindex", "hub", "lstc", "merge", "search", "tcstream", "trust",
]  # fmt: skip

CHUNK = 1 << 22
"""Index edges processed in one step."""


class Lengths(NamedTuple):
    """Lengths |A|, |B|, |T| for some index edges, and whether TRUST hashes row u; `xp` is their array module."""

    xp: ModuleType
    a: Array
    b: Array
    t: Array
    hashed: Array


Rule = Callable[[Lengths], Array]
"""Returns the probes of index edges."""


def hub(lengths: Lengths) -> Array:
    """Probes of `hub`."""
    xp, a, b, *_ = lengths
    return xp.where(a == 0, 0, xp.where(b <= SHORT, b, xp.minimum(a, b)))


def trust(lengths: Lengths) -> Array:
    """Probes of `trust`."""
    return lengths.xp.where(lengths.hashed, lengths.b, 0)


def hindex(lengths: Lengths) -> Array:
    """Probes of `hindex`."""
    return lengths.xp.where((lengths.t > 0) & (lengths.b > 0), lengths.xp.maximum(lengths.t, lengths.b), 0)


def merge(lengths: Lengths) -> Array:
    """Probes of `merge`."""
    return lengths.xp.where((lengths.a > 0) & (lengths.b > 0), lengths.a + lengths.b, 0)


def search(lengths: Lengths) -> Array:
    """Probes of `search`."""
    return lengths.xp.minimum(lengths.a, lengths.b)


def lstc(lengths: Lengths) -> Array:
    """Probes of `lstc`."""
    return lengths.b * -(-lengths.t // TILE)


def tcstream(lengths: Lengths) -> Array:
    """Probes of `tcstream`."""
    return lengths.xp.minimum(lengths.t, lengths.b)


def expected_probes(task: BlockTask, rule: Rule) -> int:
    """Sum of the probes that a kernel must report for a task, by the kernel's rule, one of the above."""
    return sum(int(rule(lengths).sum()) for lengths in _lengths(task, *rows_of(task)))


def _lengths(task: BlockTask, begin: int, end: int) -> Iterator[Lengths]:
    """Yield the lengths for the index edges of rows begin to end, some edges at a time."""
    degree, size = np.diff(task.index.offsets), np.diff(task.table.offsets)
    hashed = (size[: len(degree)] > 0) & ((degree > 1) | (task.index is not task.table))
    offsets, last = task.index.offsets, begin
    while last < end:
        first, reach = last, np.searchsorted(offsets, offsets[last] + CHUNK, side="right") - 1
        last = int(min(max(reach, first + 1), end))
        rows = np.arange(first, last)
        u = np.repeat(rows, degree[first:last])
        v = task.index.columns[offsets[first] : offsets[last]].astype(np.int64)
        b = task.stream.offsets[v + 1] - task.stream.offsets[v]
        yield Lengths(np, _entries_before(task, first, last, u, v), b, size[u], hashed[u])


def _entries_before(task: BlockTask, first: int, last: int, u: Array, v: Array) -> Array:
    """Number of table entries of row u whose vertex id is below v's, for the edges of rows first to last."""
    table, index = task.table, task.index
    begin, end = table.offsets[first], table.offsets[last]
    sizes = np.diff(table.offsets[first : last + 1])
    if task.shift == BEHIND:
        return sizes[u - first]
    ids = table.columns[begin:end].astype(np.int64) * table.stride + table.column_first
    bounds = v * index.stride + index.column_first
    width = 1 + max(ids.max(initial=0), bounds.max(initial=0))
    keys = np.repeat(np.arange(last - first), sizes) * width + ids
    return np.searchsorted(keys, (u - first) * width + bounds) - (table.offsets[u] - begin)
