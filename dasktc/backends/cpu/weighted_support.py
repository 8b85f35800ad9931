"""Sums over the triangles of each edge of a weight of the opposite vertex, and each vertex's most similar vertices.

Table row u is marked, and row v of the stream is searched for marked entries for every index edge (u, v), as in
`backends.cpu.visit`. Common entries are first noted, without a branch on the data; then each adds three numbers, of
which those of the table's edges are collected in a dense vector until row u ends.

The most similar vertices of u are among the neighbours v of its neighbours w (Gustavson's row-wise product, ACM
Transactions on Mathematical Software 4, 250-269, 1978): a dense vector adds up the weights of w by v, and another what
these additions round off, so that equal sums are equal in whatever order (Knuth, The Art of Computer Programming 2,
section 4.2.2, theorem B).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.hub import mark
from dasktc.backends.cpu.hub_support import collect
from dasktc.backends.cpu.hub_tables import forget
from dasktc.backends.cpu.intersect import Triple, columns_end, longest_row, triple, wedges_of
from dasktc.backends.cpu.jit import Bytes, ConstInt32s, ConstInt64s, ConstReals, Int32s, Int64s, Kernel, Reals, inlined
from dasktc.backends.csr import Array, BlockTask

__all__ = ["most_similar", "support"]

U = np.uint64
Corners = tuple[Array, Array, Array]


@Kernel
def _supports(
    t: Triple,
    of_row: Reals,
    of_column: Reals,
    of_third: Reals,
    in_index: Reals,
    in_table: Reals,
    in_stream: Reals,
    marks: Bytes,
    hits: Reals,
    places: Int64s,
) -> tuple[int, int]:
    """Add the weight of a triangle's vertices to their opposite edges; return triangles and wedges."""
    index, index_columns, table, table_columns = t.index, t.index_columns, t.table, t.table_columns
    stream, stream_columns = t.stream, t.stream_columns
    triangles: Any = 0
    wedges: Any = 0
    for u in range(t.begin, t.end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        first, last = table[u], table[u + 1]
        if first == last or index[u] == index[u + 1]:
            continue
        mark(marks, 1, table_columns, first, last)
        for p in range(U(index[u]), U(index[u + 1])):
            v = index_columns[p]
            # Note the common entries without a branch, then add the weights of the vertices opposite to each edge.
            common = U(0)
            for q in range(U(stream[U(v)]), U(stream[U(v) + U(1)])):
                places[common] = q
                common += U(marks[U(stream_columns[q])])
            total = 0.0
            for k in range(common):
                place = U(places[k])
                w = U(stream_columns[place])
                total += of_third[w]
                in_stream[place] += of_row[u]
                hits[w] += of_column[U(v)]
            in_index[p] += total
            triangles += np.int64(common)
        mark(marks, 0, table_columns, first, last)
        collect(hits, table_columns, first, last, in_table)
    return triangles, wedges


@inlined
def _similarity(common: Any, degree: Any, other: Any, measure: Any) -> Any:
    """The value of a measure, by its number in `options.SIMILARITIES`."""
    if measure == 0:
        return common / (degree + other - common)
    if measure == 1:
        return common / min(degree, other)
    if measure == 2:
        return np.sqrt(common * common / (degree * other))  # equal quotients have equal roots
    if measure == 3:
        return 2 * common / (degree + other)
    return common


@inlined
def _precedes(value: Any, vertex: Any, other_value: Any, other: Any) -> Any:
    """Whether a vertex stands before another: by descending value, then by ascending id."""
    return value > other_value or (value == other_value and vertex < other)


@Kernel
def _most_similar(
    offsets: ConstInt64s,
    columns: ConstInt32s,
    weights: ConstReals,
    begin: int,
    end: int,
    measure: int,
    starts: Int64s,
    sums: Reals,
    rests: Reals,
    reached: Int32s,
    vertices: Int32s,
    values: Reals,
    sizes: Int64s,
) -> None:
    weighted = len(rests) > 0
    for u in range(begin, end):
        reach = U(0)
        # Sum the weights of w over all wedges u, w, v by their end v; `rests` has what each addition rounded off.
        for p in range(U(offsets[u]), U(offsets[u + 1])):
            w = U(columns[p])
            for q in range(U(offsets[w]), U(offsets[w + U(1)])):
                v = columns[q]
                reached[reach] = v
                reach += U(sums[U(v)] == 0.0 and v != u)
                total = sums[U(v)] + weights[w]
                if weighted:
                    added = total - sums[U(v)]
                    rests[U(v)] += (sums[U(v)] - (total - added)) + (weights[w] - added)
                sums[U(v)] = total
        sums[u] = 0.0
        if weighted:
            rests[u] = 0.0
        # Insert the ends that were reached into the list of the most similar ones, in order.
        base, limit, size = starts[u - begin], starts[u - begin + 1] - starts[u - begin], 0
        degree = np.float64(offsets[u + 1] - offsets[u])
        for k in range(reach):
            v = reached[k]
            value = _similarity(sums[U(v)], degree, np.float64(offsets[U(v) + U(1)] - offsets[U(v)]), measure)
            sums[U(v)] = 0.0
            if weighted:
                value += rests[U(v)]
                rests[U(v)] = 0.0
            place = base + size
            if size == limit:
                place -= 1
                if not _precedes(value, v, values[U(place)], vertices[U(place)]):
                    continue
            else:
                size += 1
            while place > base and _precedes(value, v, values[U(place - 1)], vertices[U(place - 1)]):
                values[U(place)], vertices[U(place)] = values[U(place - 1)], vertices[U(place - 1)]
                place -= 1
            values[U(place)], vertices[U(place)] = value, v
        sizes[u - begin] = size


def support(task: BlockTask, weights: Corners) -> tuple[list[Array], int, int]:
    """Add up, for each edge, the weights of the vertices opposite to it in a task's triangles.

    The weights, float64, are those of the rows of the index, of its columns, and of the columns of the table. The
    results are those of `backends.weighted_support.weighted_support`.
    """
    forget()
    cut, width = triple(task), columns_end(task)
    blocks = task.index, task.table, task.stream
    zeros = {id(block): np.zeros(block.edges) for block in blocks}
    sums = [zeros[id(block)] for block in blocks]
    places = np.empty(longest_row(cut.stream) + 1, np.int64)
    triangles, wedges = _supports(cut, *weights, *sums, np.zeros(width, np.uint8), np.zeros(width), places)
    return sums, int(triangles), int(wedges)


def most_similar(
    offsets: Array, columns: Array, weights: Array | None, rows: tuple[int, int], measure: int, top: int
) -> tuple[Array, Array, Array]:
    """Find the most similar vertices of a range of vertices among the neighbours of their neighbours.

    Parameters
    ----------
    offsets, columns : array
        Full adjacency lists of all vertices, as `squares.adjacency` returns them.
    weights : array of float64, shape (vertices,), or None
        Positive where a vertex has two neighbours; None: each counts 1.
    rows : (int, int)
        First vertex, and the end of the range.
    measure : int
        Number of the measure in `options.SIMILARITIES`.
    top : int
        Most vertices for each.

    Returns
    -------
    sizes : array of int64, shape (rows,)
        Number of vertices for each of the range.
    vertices : array of int32, shape (Σ sizes,)
        By descending value, and by ascending id where values are equal.
    values : array of float64, shape (Σ sizes,)
    """
    begin, end = rows
    degrees = np.diff(offsets)
    reach = np.add.reduceat(degrees[columns[offsets[begin] : offsets[end]]], offsets[begin:end] - offsets[begin])
    starts = np.zeros(end - begin + 1, np.int64)
    np.cumsum(np.minimum(reach, min(top, len(degrees))), out=starts[1:])
    vertices, values, sizes = np.empty(starts[-1], np.int32), np.empty(starts[-1]), np.zeros(end - begin, np.int64)
    sums, reached = np.zeros(len(degrees)), np.empty(len(degrees) + 1, np.int32)
    rests = np.zeros(0 if weights is None else len(degrees))
    weights = np.ones(len(degrees)) if weights is None else weights
    _most_similar(offsets, columns, weights, begin, end, measure, starts, sums, rests, reached, vertices, values, sizes)
    filled = np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts)) < np.repeat(sizes, np.diff(starts))
    return sizes, vertices[filled], values[filled]
