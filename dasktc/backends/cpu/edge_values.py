"""Triangles whose edges carry values: products are summed at vertices, or combinations of codes are counted.

Of the two lists of an index edge (u, v), A = the entries of table.row(u) before v and B = stream.row(v), the shorter
one is streamed against the bits of the other; where both have an entry, its value is looked up in a dense vector. The
bits of row u serve the lists B of all its edges; edges whose A is shorter are deferred and grouped by v, whose bits and
values are then set only once. Common entries are first noted, without a branch on the data.

Sums: with a value s of each edge, a triangle adds s(u, v)·s(u, w)·s(v, w) to its three vertices. Codes: with 2 bits of
each edge, a triangle counts 1 at s(u, v) << 4 | s(u, w) << 2 | s(v, w).
"""

# CPU seconds on one core of an EPYC, beside other work: a Kronecker graph of scale 18 (83 M triangles in 205 M probes,
# counted in 0.08), and a random one of 1 M vertices and 10 M edges (counted in 0.24)
#                                                   predicted   measured  learnt
# the streamed list times the dense vector, no bits   0.3 0.5  0.80 1.05  5 ns a probe, where the vector is in no cache
# bits first, values of what is common alone          0.4 0.3  0.98 0.50  8 ns a triangle, which wait for each other

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.hub import clear
from dasktc.backends.cpu.intersect import Triple, before, columns_end, length, longest_row, triple, wedges_of
from dasktc.backends.cpu.jit import Bytes, Int32s, Int64s, Kernel, Reals, Words, inlined
from dasktc.backends.csr import Array, BlockTask

__all__ = ["codes", "common_entries", "set_entries", "sums"]

SHORT = 16
"""Longest row that is always streamed, because setting its bits would take longer."""
COPIES = 4
"""Histograms of codes used in turn, because increments of the same entry wait for each other."""

U = np.uint64
Arrays = tuple[Array, Array, Array]


@inlined
def set_entries(bits: Array, vector: Array, columns: Array, values: Array, first: Any, last: Any) -> None:
    """Set the bits and values of a list's entries."""
    for q in range(U(first), U(last)):
        w = U(columns[q])
        bits[w >> U(6)] |= U(1) << (w & U(63))
        vector[w] = values[q]


@inlined
def common_entries(bits: Array, columns: Array, first: Any, last: Any, places: Array) -> Any:
    """Note the places of the entries whose bit is set, without a branch on the data; return their number."""
    count = U(0)
    for q in range(U(first), U(last)):
        w = U(columns[q])
        places[count] = q
        count += (bits[w >> U(6)] >> (w & U(63))) & U(1)
    return count


@inlined
def _products(
    vector: Array, columns: Array, values: Array, places: Array, count: Any, of_edge: Any, third: Array
) -> Any:
    """Add each triangle's product to its third vertex; return the sum of the products."""
    total = 0.0
    for k in range(U(count)):
        q = U(places[k])
        w = U(columns[q])
        product = of_edge * vector[w] * values[q]
        third[w] += product
        total += product
    return total


@inlined
def _cut(columns: Array, first: Any, last: Any, bound: Any) -> Any:
    """The first position whose column is at least `bound`, by bisection."""
    while first < last:
        middle = (first + last) >> 1
        if columns[U(middle)] < bound:
            first = middle + 1
        else:
            last = middle
    return first


# These two kernels are compiled with sums, and None for `counts`, and with `counts`, and None for the sums. Numba drops
# the branches on what is None.


def _by_rows(
    t: Triple, values: Arrays, lists: Arrays, group_sizes: Array, counts: Any, at_row: Any, at_column: Any, third: Any
) -> int:
    """Process edges row by row, and count deferred edges by v in `group_sizes`; return the wedges of all edges."""
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, one_block, shift = t
    (of_index, of_table, of_stream), (bits, vector, places) = values, lists
    wedges, in_place = 0, one_block and shift == 0  # then row u is cut at the edge's own position
    for u in range(begin, end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        first, last = table[u], table[u + 1]
        if first == last or index[u] == index[u + 1]:
            continue
        set_entries(bits, vector, table_columns, of_table, first, last)
        cut, at_u = first, 0.0
        for p in range(U(index[u]), U(index[u + 1])):
            v = np.int64(index_columns[p])
            cut = np.int64(p) if in_place else before(table_columns, cut, last, v + shift)
            a, b, row = cut - first, length(stream, v), stream[U(v)]
            if a == 0 or b == 0:
                continue
            if b > a and b > SHORT:
                group_sizes[v] += 1
                continue
            count = common_entries(bits, stream_columns, row, row + b, places)
            if third is not None:
                total = _products(vector, stream_columns, of_stream, places, count, of_index[p], third)
                at_u += total
                at_column[v] += total
            if counts is not None:
                high = U(of_index[p]) << U(4)
                for k in range(count):
                    q = U(places[k])
                    code = high | U(vector[U(stream_columns[q])]) << U(2) | U(of_stream[q])
                    counts[(k & U(COPIES - 1)) << U(6) | code] += 1
        if at_row is not None:
            at_row[u] += at_u
        clear(bits, table_columns, first, last)
    return wedges


@Kernel
def group(t: Triple, ends: Int64s, rows: Int32s, edges: Int64s) -> None:
    """Write row and place of each deferred edge into its group; ends[v], first the group's start, becomes its end."""
    index, index_columns, table, table_columns, stream, _, begin, end, one_block, shift = t
    in_place = one_block and shift == 0
    for u in range(begin, end):
        first, last = table[u], table[u + 1]
        cut = first
        for p in range(U(index[u]), U(index[u + 1])):
            v = np.int64(index_columns[p])
            cut = np.int64(p) if in_place else before(table_columns, cut, last, v + shift)
            a, b = cut - first, length(stream, v)
            if b > SHORT and 0 < a < b:
                rows[U(ends[v])] = u
                edges[U(ends[v])] = p
                ends[v] += 1


def _by_columns(
    t: Triple, groups: Arrays, values: Arrays, lists: Arrays, counts: Any, at_row: Any, at_column: Any, third: Any
) -> None:
    """Process the deferred edges, group by group."""
    table, table_columns, stream, stream_columns, shift = t.table, t.table_columns, t.stream, t.stream_columns, t.shift
    (ends, rows, edges), (bits, vector, places), (of_index, of_table, of_stream) = groups, lists, values
    place = 0
    for v in range(len(ends)):
        if ends[v] == place:
            continue
        set_entries(bits, vector, stream_columns, of_stream, stream[v], stream[v + 1])
        # The bits and values of v's row serve all edges of its group.
        at_v = 0.0
        while place < ends[v]:
            u, of_edge = np.int64(rows[U(place)]), of_index[U(edges[U(place)])]
            first = table[u]
            last = _cut(table_columns, first, table[u + 1], v + shift)
            count = common_entries(bits, table_columns, first, last, places)
            if third is not None:
                total = _products(vector, table_columns, of_table, places, count, of_edge, third)
                at_row[u] += total
                at_v += total
            if counts is not None:
                high = U(of_edge) << U(4)
                for k in range(count):
                    q = U(places[k])
                    code = high | U(of_table[q]) << U(2) | U(vector[U(table_columns[q])])
                    counts[(k & U(COPIES - 1)) << U(6) | code] += 1
            place += 1
        if at_column is not None:
            at_column[v] += at_v
        clear(bits, stream_columns, stream[v], stream[v + 1])


def _kernels(values: Any, counts: Any, sums: Any) -> tuple[Kernel[int], Kernel[None]]:
    """Kernels of rows and of columns for these types of edge values, of counts, and of sums."""
    arrays = (values,) * 3, (Words, values, Int64s)
    by_columns = Kernel(_by_columns, (Triple, (Int64s, Int32s, Int64s), *arrays, counts, sums, sums, sums))
    return Kernel(_by_rows, (Triple, *arrays, Int64s, counts, sums, sums, sums)), by_columns


_of_sums, _of_codes = _kernels(Reals, None, Reals), _kernels(Bytes, Int64s, None)


def sums(task: BlockTask, values: Arrays) -> tuple[list[Array], int]:
    """Add up the products of a task's triangles at their vertices.

    Parameters
    ----------
    task : BlockTask
    values : tuple of three arrays of float64
        The value of each edge, aligned with the columns of index, table and stream.

    Returns
    -------
    sums : list of three arrays of float64
        By row of the index, column of the index, and column of the table: Σ s(u, v)·s(u, w)·s(v, w) over the triangles
        in which a vertex has that role.
    wedges : int
        As in `TaskCount`.
    """
    vectors = [np.zeros(size) for size in (task.index.rows, task.stream.rows, columns_end(task))]
    return vectors, _visited(task, values, _of_sums, (None, *vectors))


def codes(task: BlockTask, values: Arrays) -> tuple[Array, int]:
    """Count the triangles of a task by the values of their edges.

    Parameters
    ----------
    task : BlockTask
    values : tuple of three arrays of uint8
        The value of each edge, 1, 2 or 3, aligned with the columns of index, table and stream.

    Returns
    -------
    counts : array of int64, shape (64,)
        At s(u, v) << 4 | s(u, w) << 2 | s(v, w); entries where one of these is 0 are meaningless.
    wedges : int
        As in `TaskCount`.
    """
    counts = np.zeros(64 * COPIES, np.int64)
    wedges = _visited(task, values, _of_codes, (counts, None, None, None))
    return counts.reshape(COPIES, 64).sum(axis=0), wedges


def _visited(
    task: BlockTask, values: Arrays, kernels: tuple[Kernel[int], Kernel[None]], results: tuple[Array | None, ...]
) -> int:
    """Visit the triangles of a task, with the kernels' results in new arrays; return the wedges."""
    t, width, (by_rows, by_columns) = triple(task), columns_end(task), kernels
    # Bits and values of a list's columns, and places for the entries that two lists have in common.
    bits, vector = np.zeros((width >> 6) + 1, np.uint64), np.zeros(width, values[0].dtype)
    lists = bits, vector, np.empty(max(map(longest_row, (t.table, t.stream))) + 1, np.int64)
    group_sizes = np.zeros(task.stream.rows, np.int64)
    wedges = by_rows(t, values, lists, group_sizes, *results)
    if deferrals := int(group_sizes.sum()):
        groups = np.cumsum(group_sizes) - group_sizes, np.empty(deferrals, np.int32), np.empty(deferrals, np.int64)
        group(t, *groups)
        by_columns(t, groups, values, lists, *results)
    return int(wedges)
