"""Variants of our kernels' loops, with steps left out or counted, on one thread.

They use the kernels' own hash table (`backends.cpu.intersect`), so that what is timed here is what `trust` and
`hindex` do on the CPU.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numba import types

from dasktc.backends.cpu.intersect import TRIPLE, Triple, contains, insert, length, triple
from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.cpu.sizes import DEPTH, LARGE, SMALL
from dasktc.backends.csr import Array, BlockTask
from dasktc.backends.kernel import SMALL_ROW

__all__ = [
    "BUILD",
    "LOOK_UP",
    "ONE_SIZE",
    "WALK",
    "Hashed",
    "binning_seconds",
    "collisions",
    "hashed",
    "level_reads",
    "range_partition",
]

U = np.uint64
WALK, BUILD, LOOK_UP = range(3)
"""How far `hashed` goes: over the rows' edges alone; also the hash tables; also the lookups."""
ONE_SIZE = 1 << 40
"""Longest row that gets 32 buckets: every row."""
BINS = 32


class Hashed(NamedTuple):
    """The triangles that `hashed` counted, and the CPU seconds that it took."""

    triangles: int
    wedges: int
    collision: int
    seconds: float


def hashed(
    task: BlockTask, steps: int, per_edge: bool = False, small_row: int = SMALL_ROW, unbounded: bool = False
) -> Hashed:
    """Run TRUST's hashing (algorithms 1 and 2) up to a step.

    Parameters
    ----------
    task : BlockTask
        On the host.
    steps : {WALK, BUILD, LOOK_UP}
    per_edge : bool
        Whether the table is built again for each edge (algorithm 2, edge-centric).
    small_row : int
        Longest row that gets 32 buckets rather than 1024.
    unbounded : bool
        Whether a bucket has room for a whole row, so that none is ever full.
    """
    run, t = _hashing.load(), triple(task)
    longest = int(np.diff(t.table).max(initial=0))
    half_empty = max(DEPTH, -(-2 * min(longest, small_row) // SMALL), -(-2 * longest // LARGE))
    depth = max(1, longest) if unbounded else half_empty
    began = time.thread_time()
    triangles, wedges, collision = run(t, depth, small_row, per_edge, steps)
    return Hashed(int(triangles), int(wedges), int(collision), time.thread_time() - began)


def _walk_and_hash(t: Triple, depth: int, small_row: int, per_edge: bool, steps: int) -> tuple[int, int, int]:
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, same, _ = t
    triangles = wedges = collision = 0
    slots = np.empty(depth * LARGE, np.int32)
    fill = np.zeros(LARGE, np.int32)
    for u in range(begin, end):
        degree, size = length(index, u), length(table, u)
        if degree == 0 or size == 0 or (same and degree < 2):
            continue
        buckets = U(SMALL) if size <= small_row else U(LARGE)
        for p in range(index[u], index[u + 1]):
            if steps > 0 and (per_edge or p == index[u]):
                fill[:buckets] = 0
                for k in range(table[u], table[u + 1]):
                    collision = max(collision, insert(slots, fill, buckets, depth, table_columns[k]))
            v = index_columns[p]
            wedges += length(stream, v)
            if steps > 1:
                for q in range(U(stream[v]), U(stream[v + 1])):
                    triangles += contains(slots, fill, buckets, depth, stream_columns[q])
    return triangles, wedges, collision


def level_reads(task: BlockTask, most: int) -> Any:
    """Count what `trust` reads of its buckets, by level.

    Parameters
    ----------
    task : BlockTask
        On the host.
    most : int
        Levels told apart; the last stands for all further ones too.

    Returns
    -------
    array of int64, shape (most,)
    """
    t, reads = triple(task), np.zeros(most, np.int64)
    _reading(t, max(1, int(np.diff(t.table).max(initial=0))), reads)
    return reads


def _read_levels(t: Triple, depth: int, reads: Array) -> None:
    stream, stream_columns = t.stream, t.stream_columns
    slots = np.empty(depth * LARGE, np.int32)
    fill = np.zeros(LARGE, np.int32)
    last = len(reads) - 1
    for u in range(t.begin, t.end):
        size = length(t.table, u)
        if length(t.index, u) == 0 or size == 0 or (t.same and size < 2):
            continue
        buckets = U(SMALL) if size <= SMALL_ROW else U(LARGE)
        fill[:buckets] = 0
        for k in range(t.table[u], t.table[u + 1]):
            insert(slots, fill, buckets, depth, t.table_columns[k])
        for p in range(t.index[u], t.index[u + 1]):
            v = t.index_columns[p]
            for q in range(U(stream[v]), U(stream[v + 1])):
                x = stream_columns[q]
                bucket = U(x) & (buckets - U(1))
                for level in range(fill[bucket]):
                    reads[min(level, last)] += 1
                    if slots[U(level) * buckets + bucket] == x:
                        break


def collisions(task: BlockTask, longer: bool) -> tuple[int, int]:
    """Hash a list for each edge into a warp's 32 buckets (H-INDEX), and count the entries that meet others there.

    On the star product 16-25-81 B1k in the caller's order of ids that is half of what the paper's figure 3 prints
    for the shorter lists, 2,304,450: it has every edge in both directions.

    Parameters
    ----------
    task : BlockTask
        On the host.
    longer : bool
        Whether the longer list is hashed.

    Returns
    -------
    collisions, hashed : int
        Entries that find their bucket occupied, and all entries hashed.
    """
    counts = _colliding(triple(task), longer)
    return int(counts[0]), int(counts[1])


def _collide(t: Triple, longer: bool) -> tuple[int, int]:
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, _, _ = t
    met = entries = 0
    fill = np.zeros(SMALL, np.uint8)
    for u in range(begin, end):
        for p in range(index[u], index[u + 1]):
            v = index_columns[p]
            a, b = length(table, u), length(stream, v)
            if a == 0 or b == 0:
                continue
            row = (a <= b) != longer
            columns, first = (table_columns, table[u]) if row else (stream_columns, stream[v])
            size = a if row else b
            fill[:] = 0
            for k in range(U(first), U(first + size)):
                bucket = U(columns[k]) & U(SMALL - 1)
                met += fill[bucket]
                fill[bucket] = 1
            entries += size
    return met, entries


def binning_seconds(task: BlockTask, merged: bool) -> float:
    """Bin a task's edges by the logarithm of their work (LRB), and return the CPU seconds.

    Parameters
    ----------
    task : BlockTask
        The whole graph in degree order, on the host.
    merged : bool
        Work is d_u + d_v (`merge`), else the shorter length (`search`).
    """
    run, t = _binning.load(), triple(task)
    places, starts = np.empty((len(t.index_columns), 2), np.int64), np.zeros(BINS + 1, np.int64)
    began = time.thread_time()
    run(t, merged, places, starts)
    return time.thread_time() - began


def _bin(t: Triple, merged: bool, places: Array, starts: Array) -> None:
    """Bin edges in two passes: count each bin, then write edges as (u, place) to their bins."""
    offsets, columns = t.index, t.index_columns
    following = np.zeros(BINS, np.int64)
    for scatter in range(2):
        for u in range(t.begin, t.end):
            for p in range(offsets[u], offsets[u + 1]):
                a, b = p - offsets[u], length(t.stream, columns[p])
                if a == 0 or b == 0:
                    continue
                work = a + b if merged else min(a, b)
                k = 0
                while work > 1 << k:
                    k += 1
                if scatter:
                    places[following[k], 0], places[following[k], 1] = u, p
                    following[k] += 1
                else:
                    starts[k + 1] += 1
        if not scatter:
            for k in range(BINS):
                starts[k + 1] += starts[k]
                following[k] = starts[k]


def range_partition(offsets: Array, columns: Array, n: int) -> tuple[Any, Any]:
    """Cut a graph's vertices into n ranges of ids, and count the work of each task and the edges of each block.

    Parameters
    ----------
    offsets, columns : array
        Of a whole graph, on the host.
    n : int

    Returns
    -------
    work : array of int64, shape (n, n, n)
        Of u in part i, v in part k and entries in part j: the entries of v's lists, over all edges (u, v).
    edges : array of int64, shape (n, n)
    """
    work, edges = np.zeros((n, n, n), np.int64), np.zeros((n, n), np.int64)
    _cutting(offsets, columns, max(1, -(-(len(offsets) - 1) // n)), work, edges)
    return work, edges


def _cut(offsets: Array, columns: Array, size: int, work: Array, edges: Array) -> None:
    n = len(edges)
    entries = np.zeros((len(offsets) - 1, n), np.int32)
    for v in range(len(offsets) - 1):
        for p in range(offsets[v], offsets[v + 1]):
            entries[v, columns[p] // size] += 1
    for u in range(len(offsets) - 1):
        for p in range(offsets[u], offsets[u + 1]):
            v = columns[p]
            edges[u // size, v // size] += 1
            for j in range(n):
                work[u // size, v // size, j] += entries[v, j]


_counts = types.Array(types.int64, 1, "C")
_pairs = types.Array(types.int64, 2, "C")
_hashing = Kernel(_walk_and_hash, (TRIPLE, types.int64, types.int64, types.boolean, types.int64))
_reading = Kernel(_read_levels, (TRIPLE, types.int64, _counts))
_colliding = Kernel(_collide, (TRIPLE, types.boolean))
_binning = Kernel(_bin, (TRIPLE, types.boolean, _pairs, _counts))
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_columns = types.Array(types.int32, 1, "C", readonly=True)
_cubes = types.Array(types.int64, 3, "C")
_cutting = Kernel(_cut, (_offsets, _columns, types.int64, _cubes, _pairs))
