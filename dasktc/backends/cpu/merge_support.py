"""Triangles by edge and by vertex of a counting task, by walking lists in step as `merge` does.

Pairs of lists with common entries, which are few in roads and meshes, are walked again to find these entries: without
triangles the work is that of counting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import types

from dasktc.backends.cpu.hub_tables import forget
from dasktc.backends.cpu.intersect import TRIPLE, Triple, before, merged, triple, wedges_of
from dasktc.backends.cpu.jit import Kernel, compiles, inlined
from dasktc.backends.csr import Array, BlockTask

__all__ = ["edges", "vertices"]

U = np.uint64


@inlined
def _add_entries(
    left: Array, i: Any, i_end: Any, right: Array, j: Any, j_end: Any, in_left: Array, in_right: Array
) -> None:
    """Add 1 at the places of each common entry in both lists."""
    while i < i_end and j < j_end:
        x, y = left[U(i)], right[U(j)]
        if x == y:
            in_left[U(i)] += 1
            in_right[U(j)] += 1
        i += x <= y
        j += y <= x


@inlined
def _add_ids(left: Array, i: Any, i_end: Any, right: Array, j: Any, j_end: Any, sums: Array) -> None:
    """Add 1 to the sum of each common entry."""
    while i < i_end and j < j_end:
        x, y = left[U(i)], right[U(j)]
        if x == y:
            sums[U(x)] += 1
        i += x <= y
        j += y <= x


def _edges(t: Triple, in_index: Array, in_table: Array, in_stream: Array) -> tuple[int, int]:
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, _, shift = t
    triangles = wedges = 0
    for u in range(begin, end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        first, last = table[u], table[u + 1]
        cut = first
        for p in range(index[u], index[u + 1]):
            v = index_columns[p]
            cut = before(table_columns, cut, last, v + shift)
            row, row_end = stream[v], stream[v + 1]
            if first < cut and row < row_end:
                closed = merged(table_columns, first, cut, stream_columns, row, row_end)
                if closed:
                    _add_entries(table_columns, first, cut, stream_columns, row, row_end, in_table, in_stream)
                    in_index[p] += closed
                    triangles += closed
    return triangles, wedges


def _vertices(t: Triple, rows: Array, columns: Array, third: Array) -> tuple[int, int]:
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, _, shift = t
    triangles = wedges = 0
    for u in range(begin, end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        first, last = table[u], table[u + 1]
        cut = first
        for p in range(index[u], index[u + 1]):
            v = index_columns[p]
            cut = before(table_columns, cut, last, v + shift)
            row, row_end = stream[v], stream[v + 1]
            if first < cut and row < row_end:
                closed = merged(table_columns, first, cut, stream_columns, row, row_end)
                if closed:
                    _add_ids(table_columns, first, cut, stream_columns, row, row_end, third)
                    rows[u] += closed
                    columns[U(v)] += closed
                    triangles += closed
    return triangles, wedges


_counts = types.Array(types.int32, 1, "C")
_sums = types.Array(types.int64, 1, "C")
_by_edge = Kernel(_edges, (TRIPLE, _counts, _counts, _counts))
_by_vertex = Kernel(_vertices, (TRIPLE, _sums, _sums, _sums))


@compiles(_by_edge)
def edges(task: BlockTask) -> tuple[list[Array], int, int]:
    """Count the triangles of each edge of a task; as `supports.edges`."""
    forget()
    t = triple(task)  # first, so that the sample that cuts rows is freed before supports are allocated
    supports = task.zero_supports(np)
    triangles, wedges = _by_edge(t, *supports)
    return supports, int(triangles), int(wedges)


@compiles(_by_vertex)
def vertices(
    task: BlockTask, sides: tuple[int, int, int], sizes: Mapping[int, int]
) -> tuple[dict[int, Array], int, int]:
    """Count the triangles of each vertex of a task; as `supports.vertices`."""
    forget()
    sums = {side: np.zeros(size, np.int64) for side, size in sizes.items()}
    triangles, wedges = _by_vertex(triple(task), *(sums[side] for side in sides))
    return sums, int(triangles), int(wedges)
