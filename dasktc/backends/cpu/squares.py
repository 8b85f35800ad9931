"""Cycles of four vertices, counted at each vertex from full, ascending adjacency lists.

A cycle u, v, w, x is found at its smallest id u: for every neighbour v above u, and every neighbour w of v above u, a
counter of w counts these v. c of them make c·(c - 1)/2 cycles through u and w, and v is in c - 1 of them. Where id 0
has the highest degree this takes at most Σ min(d(u), d(v)) over edges (u, v) (Chiba and Nishizeki, SIAM Journal on
Computing 14, 210-223, 1985).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.jit import ConstInt32s, ConstInt64s, Int32s, Int64s, Kernel
from dasktc.backends.csr import Array

__all__ = ["adjacency", "squares"]

U = np.uint64


@Kernel
def _fill_lists(keys: ConstInt64s, shift: int, places: Int64s, columns: Int32s) -> None:
    """Fill symmetric adjacency lists from ascending keys: first a vertex's smaller neighbours, then its larger ones."""
    mask = (1 << shift) - 1
    for i in range(len(keys)):
        high, low = keys[i] >> shift, keys[i] & mask
        columns[U(places[U(high)])] = low
        places[U(high)] += 1
    for i in range(len(keys)):
        high, low = keys[i] >> shift, keys[i] & mask
        columns[U(places[U(low)])] = high
        places[U(low)] += 1


@Kernel
def _add_squares(offsets: ConstInt64s, columns: ConstInt32s, counters: Int32s, sums: Int64s) -> None:
    for u in range(len(offsets) - 1):
        begin, end = offsets[u], offsets[u + 1]
        while begin < end and columns[U(begin)] < u:
            begin += 1
        # Count the paths u, v, w by their end w; two of the same end make a square.
        for p in range(U(begin), U(end)):
            v = U(columns[p])
            q = offsets[v + U(1)] - 1
            while q >= offsets[v] and columns[U(q)] > u:
                counters[U(columns[U(q)])] += 1
                q -= 1
        of_u: Any = 0
        for p in range(U(begin), U(end)):
            v = U(columns[p])
            q, of_v = offsets[v + U(1)] - 1, 0
            while q >= offsets[v] and columns[U(q)] > u:
                of_v += counters[U(columns[U(q)])] - 1
                q -= 1
            sums[v] += of_v
        for p in range(U(begin), U(end)):
            v = U(columns[p])
            q = offsets[v + U(1)] - 1
            while q >= offsets[v] and columns[U(q)] > u:
                w = U(columns[U(q)])
                count = np.int64(counters[w])
                counters[w] = 0
                pairs = count * (count - 1) // 2
                sums[w] += pairs if count else 0
                of_u += pairs if count else 0
                q -= 1
        sums[u] += of_u


def adjacency(keys: Array, shift: int, degrees: Array) -> tuple[Array, Array]:
    """Make the full adjacency lists of a graph.

    Parameters
    ----------
    keys : array of int64, shape (edges,)
        High end << shift | low end, ascending, each edge once.
    shift : int
    degrees : array of int64, shape (vertices,)

    Returns
    -------
    offsets : array of int64, shape (vertices + 1,)
    columns : array of int32, shape (2 · edges,)
        Ascending in each list.
    """
    offsets = np.zeros(len(degrees) + 1, np.int64)
    np.cumsum(degrees, out=offsets[1:])
    columns = np.empty(2 * len(keys), np.int32)
    _fill_lists(keys, shift, offsets[:-1].copy(), columns)
    return offsets, columns


def squares(offsets: Array, columns: Array) -> Array:
    """Count the cycles of four vertices through each vertex, int64, from lists as `adjacency` returns them.

    The caller ensures that the numbers do not overflow.
    """
    counts = np.zeros(len(offsets) - 1, np.int64)
    _add_squares(offsets, columns, np.zeros(len(counts), np.int32), counts)
    return counts
