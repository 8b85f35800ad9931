"""Triangles by edge and by vertex of a counting task, by walking lists in step as `merge` does.

Pairs of lists with common entries, which are few in roads and meshes, are walked again to find these entries: without
triangles the work is that of counting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dasktc.backends.cpu.hub_tables import forget
from dasktc.backends.cpu.intersect import Triple, before, merged, triple, wedges_of
from dasktc.backends.cpu.jit import Int32s, Int64s, Kernel
from dasktc.backends.csr import Array, BlockTask

__all__ = ["edges", "vertices"]

U = np.uint64


def _visit(
    t: Triple, in_index: Any, in_table: Any, in_stream: Any, at_row: Any, at_column: Any, third: Any
) -> tuple[int, int]:
    """Add 1 for each triangle to its three edges, or to its three vertices; the arrays of the others are None.

    Numba drops the branches on what is None.
    """
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
            if first == cut or row == row_end:
                continue
            matches = merged(table_columns, first, cut, stream_columns, row, row_end)
            if matches == 0:
                continue
            triangles += matches
            if in_index is not None:
                in_index[p] += matches
            if at_row is not None:
                at_row[u] += matches
                at_column[U(v)] += matches
            # Walk both lists again, to the entries that they have in common.
            i, j = first, row
            while i < cut and j < row_end:
                x, y = table_columns[U(i)], stream_columns[U(j)]
                if x == y:
                    if in_table is not None:
                        in_table[U(i)] += 1
                        in_stream[U(j)] += 1
                    if third is not None:
                        third[U(x)] += 1
                i += x <= y
                j += y <= x
    return triangles, wedges


_by_edge = Kernel(_visit, (Triple, *(Int32s,) * 3, *(None,) * 3))
_by_vertex = Kernel(_visit, (Triple, *(None,) * 3, *(Int64s,) * 3))


def edges(task: BlockTask) -> tuple[list[Array], int, int]:
    """Count the triangles of each edge of a task; as `supports.edges`."""
    forget()
    t = triple(task)  # first, so that the sample that cuts rows is freed before supports are allocated
    supports = task.zero_supports(np)
    triangles, wedges = _by_edge(t, *supports, None, None, None)
    return supports, int(triangles), int(wedges)


def vertices(
    task: BlockTask, sides: tuple[int, int, int], sizes: Mapping[int, int]
) -> tuple[dict[int, Array], int, int]:
    """Count the triangles of each vertex of a task; as `supports.vertices`."""
    forget()
    sums = {side: np.zeros(size, np.int64) for side, size in sizes.items()}
    triangles, wedges = _by_vertex(triple(task), None, None, None, *(sums[side] for side in sides))
    return sums, int(triangles), int(wedges)
