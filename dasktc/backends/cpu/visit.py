"""Visits the triangles of a counting task on the CPU one by one, to list them or to count them by edge.

A triangle of a block triple is an edge (u, v) of `index` with a w in both table.row(u) and stream.row(v). Each of its
three edges is in the columns of one of the blocks: `support` adds one there, and `listing` writes the three ids. Row
u's table entries are marked, and every stream row is streamed against the marks (as much work as `trust` does); the sum
at a column w is added to its table entry when row u is done.

Supports fit 32 bits: the triangles of an edge differ in their third vertex, and there are fewer than 2^31 vertices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.hub import mark
from dasktc.backends.cpu.hub_support import collect
from dasktc.backends.cpu.hub_tables import forget
from dasktc.backends.cpu.intersect import Triple, columns_end, length, triple, wedges_of
from dasktc.backends.cpu.jit import Bytes, Int32Rows, Int32s, Int64s, Kernel, inlined
from dasktc.backends.csr import Array, BlockTask, OrientedCSR

__all__ = ["add_ends", "listing", "support"]

U = np.uint64


def support(task: BlockTask) -> tuple[list[Array], int, int]:
    """Count the triangles of each edge of a task.

    Returns
    -------
    supports : list of three arrays of int32
        Aligned with the columns of index, table and stream: the number of the task's triangles with the edge in that
        role. Roles of one and the same block object share one array.
    triangles, wedges : int
        As in `TaskCount`.
    """
    forget()
    cut = triple(task)  # first, so that the sample that cuts rows is freed before supports are allocated
    supports, width = task.zero_supports(np), columns_end(task)
    marks, hits = np.zeros(width, np.uint8), np.zeros(width, np.int32)
    triangles, wedges = _support(cut, *supports, marks, hits)
    return supports, int(triangles), int(wedges)


def listing(task: BlockTask, limit: int) -> Array:
    """List the first triangles of a task, `limit` at most.

    Returns
    -------
    array of int32, shape (triangles, 3)
        Row u of the index, column v of the index, column w of the table, numbered as in the blocks.
    """
    forget()
    triangles = np.empty((limit, 3), np.int32)
    return triangles[: _listing(triple(task), triangles, np.zeros(columns_end(task), np.uint8))]


def add_ends(block: OrientedCSR, values: Array, at_row: Array, at_column: Array) -> None:
    """Add the value of each edge, int32, to the sums by row and by column, int64, which may be the same array."""
    _add_ends(triple(BlockTask(block, block, block)), values, at_row, at_column)


@inlined
def _stream(marks: Array, hits: Array, columns: Array, first: Any, last: Any, values: Array) -> Any:
    """Count the marked entries, without a branch on the data."""
    matches = 0
    for q in range(U(first), U(last)):
        w = U(columns[q])
        hit = marks[w]
        hits[w] += hit
        values[q] += hit
        matches += hit
    return matches


@Kernel
def _support(
    t: Triple, in_index: Int32s, in_table: Int32s, in_stream: Int32s, marks: Bytes, hits: Int32s
) -> tuple[int, int]:
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, _, _ = t
    triangles = wedges = 0
    for u in range(begin, end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        if length(index, u) == 0 or length(table, u) == 0:
            continue
        mark(marks, 1, table_columns, table[u], table[u + 1])
        for p in range(U(index[u]), U(index[u + 1])):
            v = index_columns[p]
            matches = _stream(marks, hits, stream_columns, stream[v], stream[v + 1], in_stream)
            in_index[p] += matches
            triangles += matches
        mark(marks, 0, table_columns, table[u], table[u + 1])
        collect(hits, table_columns, table[u], table[u + 1], in_table)
    return triangles, wedges


@Kernel
def _listing(t: Triple, triangles: Int32Rows, marks: Bytes) -> int:
    """Write as many triangles as the array has rows; return how many were written."""
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, _, _ = t
    count = 0
    for u in range(begin, end):
        if length(index, u) == 0 or length(table, u) == 0:
            continue
        mark(marks, 1, table_columns, table[u], table[u + 1])
        for p in range(U(index[u]), U(index[u + 1])):
            v = index_columns[p]
            for q in range(U(stream[v]), U(stream[v + 1])):
                w = stream_columns[q]
                if marks[U(w)]:
                    if count == len(triangles):
                        return count
                    triangles[count, 0], triangles[count, 1], triangles[count, 2] = u, v, w
                    count += 1
        mark(marks, 0, table_columns, table[u], table[u + 1])
    return count


@Kernel
def _add_ends(t: Triple, values: Int32s, at_row: Int64s, at_column: Int64s) -> None:
    offsets, columns = t.index, t.index_columns
    for u in range(t.begin, t.end):
        for p in range(U(offsets[u]), U(offsets[u + 1])):
            at_row[u] += values[p]
            at_column[U(columns[p])] += values[p]
