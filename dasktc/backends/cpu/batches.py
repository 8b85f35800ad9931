"""Visits the triangles of a counting task in batches of bounded size: the places of their three edges.

A triangle of a block triple is an edge (u, v) of `index` with a w in both table.row(u) and stream.row(v), as in
`visit`. Row u's table entries are marked with their places, and every stream row is streamed against the marks. Common
entries are noted without a branch on the data. The walk stops before an edge whose stream row may not fit the batch,
and the next batch goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dasktc.backends.cpu.hub_tables import forget
from dasktc.backends.cpu.intersect import Triple, columns_end, length, longest_row, triple, wedges_of
from dasktc.backends.cpu.jit import Int32s, Int64s, Kernel
from dasktc.backends.csr import BlockTask, Places

__all__ = ["batches"]

U = np.uint64
START = -1
"""Position of the edge in a row that has not begun."""


def batches(task: BlockTask, size: int) -> Iterator[Places]:
    """Yield every triangle of a task once, in batches; the last may be empty, and the arrays are used again for each.

    A batch has at most `size` triangles, or as many as the longest row of the stream block has entries, if these are
    more.
    """
    forget()
    t = triple(task)
    room = max(size, longest_row(t.stream)) + 1  # where a batch is full, the last miss is noted behind it
    row, places = np.empty(room, np.int32), np.empty((3, room), np.int64)
    marks, cursor = np.zeros(columns_end(task), np.int32), np.array([t.begin, START], np.int64)
    while cursor[0] < t.end:
        count, wedges = batch(t, cursor, marks, row, *places)
        uv, uw, vw = places[:, :count]
        yield Places(row[:count], uv, uw, vw, int(wedges))


@Kernel
def batch(
    t: Triple, cursor: Int64s, marks: Int32s, rows: Int32s, uv: Int64s, uw: Int64s, vw: Int64s
) -> tuple[int, int]:
    """Write triangles from a cursor (row, edge) on; return their number, and the wedges of the rows that begin."""
    index, index_columns, table, table_columns = t.index, t.index_columns, t.table, t.table_columns
    stream, stream_columns, end, room = t.stream, t.stream_columns, t.end, len(rows) - 1
    count, wedges, u, p = 0, 0, cursor[0], cursor[1]
    while u < end:
        first, last = table[u], table[u + 1]
        if p == START:
            wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
            if first == last or length(index, u) == 0:
                u += 1
                continue
            for r in range(U(first), U(last)):
                marks[U(table_columns[r])] = np.int64(r) - first + 1
            p = index[u]
        while p < index[u + 1]:
            v = index_columns[U(p)]
            row, row_end = stream[U(v)], stream[U(v) + U(1)]
            # A batch ends before an edge whose triangles may not fit; the cursor says where the next one begins.
            if count + row_end - row > room:
                cursor[0], cursor[1] = u, p
                return count, wedges
            begin = count
            for q in range(U(row), U(row_end)):
                mark = marks[U(stream_columns[q])]
                uw[U(count)], vw[U(count)] = first + mark - 1, q
                count += mark != 0
            for k in range(U(begin), U(count)):
                rows[k], uv[k] = u, p
            p += 1
        for r in range(U(first), U(last)):
            marks[U(table_columns[r])] = 0
        u, p = u + 1, START
    cursor[0], cursor[1] = u, START
    return count, wedges
