"""Triangles by edge or by vertex of a counting task, found by the same intersections as in the `hub` kernel.

The lists of an edge are tested with the tables, and in the cases, of `hub`; each triangle adds one to its three edges
(u, v), (u, w) and (v, w), or to its three vertices. What a test knows decides how:

* (u, v) is the current index edge: it gets the number of triangles at once.
* (u, w): where A is streamed its place is known. Where bitmaps are ANDed, the common bits are added to counters of all
  hubs' ids, in bit planes, 512 at a time (`instructions.add_common`); row u reads them off at its end.
* (v, w): where B is streamed its place is known; where A is, `ranks` has the number of v's entries below each word of
  its bitmap, so that the place is a bit count away. Of ANDed rows the bits are kept, BATCH rows at a time, and then
  ANDed again hub by hub into the same counters, which v reads off.

For vertices the counters are added to sums, once in 4,000 additions. Without triangles nothing further is visited, and
the work is that of counting.
"""

# CPU seconds on one core of an EPYC, Kronecker graph of scale 18 (3.8 M edges, 83 M triangles, counted in 0.12), beside
# other work, with which `visit` takes 1.1 to 1.4:
#                                                    predicted  measured  learnt
# vertices, each common bit on its own                    0.25      0.43  one bit a word: mispredicted loops
# vertices, counters in planes of bits                    0.20      0.22  2 times the steps of counting
# edges, each common bit on its own                       0.35       1.0  8 ns a triangle
# edges, batches of 256, 1,024 and 4,096 rows             0.35  1.1 to 0.67  groups of a hub are small; then reading off

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.hub import (
    REACH,
    ROWS_AHEAD,
    bitmap_start,
    clear,
    look_ahead,
    mark,
    prefetch_list,
    prefetch_row,
    set_bits,
)
from dasktc.backends.cpu.instructions import LEVELS, LOWER, add_common, carry_up, ones, trailing_zeros
from dasktc.backends.cpu.intersect import Triple, before, length
from dasktc.backends.cpu.jit import Bytes, Int32s, Int64s, Kernel, UInt16s, UInt32Rows, Words, inlined
from dasktc.backends.cpu.sizes import AHEAD, BATCH, BLOCK, SHORT, SPARSE, WORDS
from dasktc.backends.csr import Array

__all__ = ["collect", "edges_by_columns", "edges_by_rows", "ranks", "vertices_by_columns", "vertices_by_rows"]

U = np.uint64
MOST_ADDED = (1 << LOWER) - 1
MOST_CARRIED = ((1 << LEVELS) - 1) // MOST_ADDED - 1
"""Most additions to the lower counters before they are carried over, and most carries before these are read off."""


@Kernel
def ranks(hubs: int, bitmaps: Words, word_ranks: UInt16s) -> None:
    """For each word of the hubs' bitmaps, the number of bits set in the hub's earlier words."""
    for v in range(hubs):
        base, set_before = bitmap_start(v), U(0)
        for k in range(U(WORDS * ((v >> BLOCK) + 1))):
            word_ranks[base + k] = set_before
            set_before += ones(bitmaps[base + k])


@inlined
def _add(bits: Array, place: Any, bitmaps: Array, base: Any, blocks: Any, planes: Array) -> Any:
    """Count the common ids of two sets, and add 1 to the counter of each."""
    matches = U(0)
    for block in range(U(blocks)):
        word = U(WORDS) * block
        matches += add_common(bits, U(place) + word, bitmaps, base + word, planes, U(LOWER) * word)
    return np.int64(matches)


@inlined
def _carry(planes: Array, upper: Array, blocks: Any) -> None:
    """Add the counters of `planes` to those of `upper`, which have more bits, and reset them."""
    for block in range(U(blocks)):
        carry_up(planes, U(WORDS * LOWER) * block, upper, U(WORDS * LEVELS) * block)


# edges


@inlined
def _streamed_b(bits: Array, columns: Array, first: Any, last: Any, hits: Array, in_stream: Array) -> Any:
    """Stream B against u's bitmap: a triangle adds 1 to the hits of its column w and to its edge (v, w)."""
    matches = 0
    for q in range(U(first), U(last)):
        w = U(columns[q])
        if bits[w >> U(6)] >> (w & U(63)) & U(1):
            hits[w] += 1
            in_stream[q] += 1
            matches += 1
    return matches


@inlined
def _streamed_a(
    bitmaps: Array,
    base: Any,
    columns: Array,
    first: Any,
    last: Any,
    word_ranks: Array,
    row: Any,
    in_table: Array,
    in_stream: Array,
) -> Any:
    """Stream A against hub v's bitmap, which begins at `base`: a triangle adds 1 to (u, w) and to (v, w)."""
    matches = 0
    for q in range(U(first), U(last)):
        w = U(columns[q])
        word = bitmaps[base + (w >> U(6))]
        bit = U(1) << (w & U(63))
        if word & bit:
            in_table[q] += 1
            in_stream[U(row) + U(word_ranks[base + (w >> U(6))]) + ones(word & (bit - U(1)))] += 1
            matches += 1
    return matches


@inlined
def collect(hits: Array, columns: Array, first: Any, last: Any, values: Array) -> None:
    """Add the hits of a row's columns to the values of its entries, and reset the hits."""
    for q in range(U(first), U(last)):
        w = U(columns[q])
        values[q] += hits[w]
        hits[w] = 0


@inlined
def _read_off(counters: Array, levels: Any, blocks: Any, columns: Array, first: Any, last: Any, values: Array) -> None:
    """Add the counters of a row's entries to their values, and reset all counters."""
    for q in range(U(first), U(last)):
        w = U(columns[q])
        block = w >> U(BLOCK)
        if block >= U(blocks):
            break
        place = U(WORDS) * U(levels) * block + ((w >> U(6)) & U(WORDS - 1))
        count: Any = U(0)
        for level in range(U(levels)):
            count += (counters[place + U(WORDS) * level] >> (w & U(63)) & U(1)) << level
        values[q] += np.int32(count)
    for word in range(U(WORDS) * U(levels) * U(blocks)):
        counters[word] = U(0)


@inlined
def _read_row(
    planes: Array,
    additions: Any,
    width: Any,
    upper: Array,
    carries: Any,
    widest: Any,
    columns: Array,
    first: Any,
    last: Any,
    values: Array,
) -> None:
    """Add the counts of `width` blocks of `planes` and `widest` of `upper` to a row's entries, and reset both."""
    if carries:
        _carry(planes, upper, width)
        _read_off(upper, LEVELS, max(widest, width), columns, first, last, values)
    elif additions:
        _read_off(planes, LOWER, width, columns, first, last, values)


@inlined
def _by_hub(
    pair_count: Any, hubs: Any, scratch: tuple[Any, ...], stream: Array, stream_columns: Array, in_stream: Array
) -> None:
    """Add the triangles of a batch of rows with each hub v to the edges (v, w), one hub after another."""
    bitmaps, batch, stride, pairs, order, heads, planes, upper = scratch
    # Sort the pairs (hub, row) by hub, by counting.
    start: Any = 0
    for v in range(U(hubs)):
        size = heads[v]
        heads[v] = start
        start += size
    for pair in range(U(pair_count)):
        hub = U(pairs[pair, 0])
        order[U(heads[hub])] = pairs[pair, 1]
        heads[hub] += 1
    # Then add up the rows of one hub after another, bit by bit in planes of counters.
    place = 0
    for v in range(hubs):
        end = heads[U(v)]
        heads[U(v)] = 0
        if end == place:
            continue
        base, blocks, additions, carries = bitmap_start(v), (v >> BLOCK) + 1, 0, 0
        while place < end:
            _add(batch, U(order[U(place)]) * stride, bitmaps, base, blocks, planes)
            place, additions = place + 1, additions + 1
            if additions == MOST_ADDED:
                _carry(planes, upper, blocks)
                additions, carries = 0, carries + 1
        _read_row(
            planes, additions, blocks, upper, carries, blocks, stream_columns, stream[v], stream[v + 1], in_stream
        )


@Kernel
def edges_by_rows(
    t: Triple,
    hubs: int,
    bitmaps: Words,
    word_ranks: UInt16s,
    bits: Words,
    planes: Words,
    upper: Words,
    hits: Int32s,
    in_index: Int32s,
    in_table: Int32s,
    in_stream: Int32s,
    batch: Words,
    pairs: UInt32Rows,
    order: Int32s,
    heads: Int32s,
    groups: Int32s,
    limit: int,
) -> tuple[int, int, int, int]:
    """Count the triangles of each edge, row by row; edges are deferred, and it stops, as in `hub.by_rows`."""
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, one_block, shift = t
    triangles = wedges = deferrals = 0
    slot, pair_count, stride = 0, 0, U(len(batch) // BATCH)
    scratch = bitmaps, batch, stride, pairs, order, heads, planes, upper
    in_place = one_block and shift == 0
    next_row, next_wedges = end, look_ahead(index, index_columns, begin, end, stream, stream_columns, hubs)
    for u in range(begin, end):
        if u > begin and (
            deferrals + length(index, u) > limit
            or table[u + 1] - table[begin] > REACH
            or index[u + 1] - index[begin] > REACH
        ):
            next_row = u
            break
        wedges += next_wedges
        prefetch_row(index, index_columns, u + ROWS_AHEAD, end)
        next_wedges = look_ahead(index, index_columns, u + 1, end, stream, stream_columns, hubs)
        first, last = table[u], table[u + 1]
        if first == last or length(index, u) < 1 + in_place:
            continue
        if slot == BATCH or pair_count + length(index, u) > len(pairs) - 1:
            _by_hub(pair_count, hubs, scratch, stream, stream_columns, in_stream)
            slot = pair_count = 0
        set_bits(bits, U(0), table_columns, first, last)
        cut, hit_count, additions, width, carries, widest, reach = first, 0, 0, 0, 0, 0, 0
        for p in range(U(index[u]), U(index[u + 1])):
            v = np.int64(index_columns[p])
            cut = np.int64(p) if in_place else before(table_columns, cut, last, v + shift)
            a, b, row = cut - first, length(stream, v), stream[U(v)]
            if a == 0:
                continue
            blocks: Any = (v >> BLOCK) + 1
            matches = 0
            # Two bitmaps are intersected; else the shorter list is streamed against the other, or the edge deferred.
            if v < hubs and min(a, b) > SPARSE * blocks:
                base = bitmap_start(v)
                matches = _add(bits, U(0), bitmaps, base, blocks, planes)
                if matches:  # note the pair for `_by_hub`
                    pairs[U(pair_count), 0], pairs[U(pair_count), 1] = v, slot
                    heads[U(v)] += 1
                    pair_count, additions = pair_count + 1, additions + 1
                    width, reach = max(width, blocks), max(reach, blocks)
                if additions == MOST_ADDED:
                    _carry(planes, upper, width)
                    additions, width, carries, widest = 0, 0, carries + 1, max(widest, width)
                    if carries == MOST_CARRIED:
                        _read_off(upper, LEVELS, widest, table_columns, first, last, in_table)
                        carries = widest = 0
            elif b <= SHORT or b <= a:
                matches = _streamed_b(bits, stream_columns, row, row + b, hits, in_stream)
                hit_count += matches
            elif v < hubs:
                base = bitmap_start(v)
                matches = _streamed_a(bitmaps, base, table_columns, first, cut, word_ranks, row, in_table, in_stream)
            else:
                groups[U(v)] += 1
                deferrals += 1
            in_index[p] += matches
            triangles += matches
        # Keep the bits of a row that closed triangles with hubs for the batch; read its own counts off.
        if reach:
            for word in range(U(WORDS) * U(reach)):
                batch[U(slot) * stride + word] = bits[word]
            slot += 1
        clear(bits, table_columns, first, last)
        _read_row(planes, additions, width, upper, carries, widest, table_columns, first, last, in_table)
        if hit_count:
            collect(hits, table_columns, first, last, in_table)
    _by_hub(pair_count, hubs, scratch, stream, stream_columns, in_stream)
    return triangles, wedges, deferrals, next_row


def _by_columns(
    t: Triple,
    hubs: int,
    groups: Array,
    lists: Array,
    marker: Array,
    in_index: Any,
    in_table: Any,
    in_stream: Any,
    at_row: Any,
    at_column: Any,
    third: Array,
) -> Any:
    """Count the triangles of the deferred edges, grouped by v; `lists` ends with AHEAD empty lists.

    They are added to edges, with `third` for the hits of columns w, or to vertices, with the sums of columns w. The
    arrays of the others are None, and Numba drops the branches on them.
    """
    index, table, table_columns, stream, stream_columns = t.index, t.table, t.table_columns, t.stream, t.stream_columns
    triangles = np.int64(0)
    place, base, start = 0, table[t.begin], index[t.begin]
    for v in range(hubs, len(groups)):
        if groups[v] == place:
            continue
        # The marks of v's row serve all lists of its group.
        mark(marker, 1, stream_columns, stream[v], stream[v + 1])
        while place < groups[v]:
            first, size = base + lists[U(place + AHEAD), 0], np.int64(lists[U(place + AHEAD), 1])
            prefetch_list(table_columns, first, first + size)
            first, size = base + lists[U(place), 0], np.int64(lists[U(place), 1])
            matches = 0
            for q in range(U(first), U(first + size)):
                w = U(table_columns[q])
                if marker[w]:
                    if in_table is not None:
                        in_table[q] += 1
                    third[w] += 1
                    matches += 1
            if in_index is not None:
                in_index[U(start + lists[U(place), 2])] += matches
            if at_row is not None:
                at_row[U(t.begin + lists[U(place), 2])] += matches
                at_column[U(v)] += matches
            triangles += matches
            place += 1
        mark(marker, 0, stream_columns, stream[v], stream[v + 1])
        if in_stream is not None:
            collect(third, stream_columns, stream[v], stream[v + 1], in_stream)
    return triangles


_lists_of = (Triple, int, Int32s, UInt32Rows, Bytes)
edges_by_columns = Kernel(_by_columns, (*_lists_of, *(Int32s,) * 3, None, None, Int32s))
vertices_by_columns = Kernel(_by_columns, (*_lists_of, *(None,) * 3, *(Int64s,) * 3))


# vertices


@inlined
def _streamed_vertices(bits: Array, base: Any, columns: Array, first: Any, last: Any, third: Array) -> Any:
    """Stream entries against the bitmap that begins at `base`: a triangle adds 1 to its third vertex w."""
    matches = 0
    for q in range(U(first), U(last)):
        w = U(columns[q])
        if bits[base + (w >> U(6))] >> (w & U(63)) & U(1):
            third[w] += 1
            matches += 1
    return matches


@inlined
def _flush(upper: Array, blocks: Any, third: Array) -> None:
    """Add the counters to the sums of the vertices, and reset them."""
    for block in range(U(blocks)):
        for level in range(U(LEVELS)):
            for k in range(U(WORDS)):
                place = U(WORDS) * (U(LEVELS) * block + level) + k
                word = upper[place]
                while word:
                    third[(U(WORDS) * block + k << U(6)) + trailing_zeros(word)] += np.int64(U(1) << level)
                    word &= word - U(1)  # without its lowest bit
                upper[place] = U(0)


@Kernel
def vertices_by_rows(
    t: Triple,
    hubs: int,
    bitmaps: Words,
    bits: Words,
    planes: Words,
    upper: Words,
    at_row: Int64s,
    at_column: Int64s,
    third: Int64s,
    groups: Int32s,
    limit: int,
) -> tuple[int, int, int, int]:
    """As `edges_by_rows`, with sums by index row u, by index column v, and by table column w."""
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, one_block, shift = t
    triangles = wedges = deferrals = 0
    additions = width = carries = 0
    widest: Any = 0
    in_place = one_block and shift == 0
    next_row, next_wedges = end, look_ahead(index, index_columns, begin, end, stream, stream_columns, hubs)
    for u in range(begin, end):
        if u > begin and (deferrals + length(index, u) > limit or table[u + 1] - table[begin] > REACH):
            next_row = u
            break
        wedges += next_wedges
        prefetch_row(index, index_columns, u + ROWS_AHEAD, end)
        next_wedges = look_ahead(index, index_columns, u + 1, end, stream, stream_columns, hubs)
        first, last = table[u], table[u + 1]
        if first == last or length(index, u) < 1 + in_place:
            continue
        set_bits(bits, U(0), table_columns, first, last)
        cut, of_row = first, 0
        for p in range(U(index[u]), U(index[u + 1])):
            v = np.int64(index_columns[p])
            cut = np.int64(p) if in_place else before(table_columns, cut, last, v + shift)
            a, b, row = cut - first, length(stream, v), stream[U(v)]
            if a == 0:
                continue
            blocks: Any = (v >> BLOCK) + 1
            matches = 0
            # Two bitmaps are intersected; else the shorter list is streamed against the other, or the edge deferred.
            if v < hubs and min(a, b) > SPARSE * blocks:
                matches = _add(bits, U(0), bitmaps, bitmap_start(v), blocks, planes)
                additions, width = additions + 1, max(width, blocks)
                if additions == MOST_ADDED:
                    _carry(planes, upper, width)
                    additions, width, carries, widest = 0, 0, carries + 1, max(widest, width)
                    if carries == MOST_CARRIED:
                        _flush(upper, widest, third)
                        carries = widest = 0
            elif b <= SHORT or b <= a:
                matches = _streamed_vertices(bits, U(0), stream_columns, row, row + b, third)
            elif v < hubs:
                matches = _streamed_vertices(bitmaps, bitmap_start(v), table_columns, first, cut, third)
            else:
                groups[U(v)] += 1
                deferrals += 1
            at_column[U(v)] += matches
            of_row += matches
        at_row[U(u)] += of_row
        triangles += of_row
        clear(bits, table_columns, first, last)
    _carry(planes, upper, width)
    _flush(upper, max(widest, width), third)
    return triangles, wedges, deferrals, next_row
