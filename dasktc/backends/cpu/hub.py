"""The default CPU kernel: bitmaps of hubs, and the shorter list streamed.

Of the two lists of an edge (u, v), A = the entries of table.row(u) before v (all of them if the blocks are unordered)
and B = stream.row(v), one is streamed against a table of the other. With an empty A nothing is tested. A row v of at
most SHORT entries never gets a table:

    probes(u, v) = 0 if |A| = 0;  |B| if |B| <= SHORT;  min(|A|, |B|) otherwise

Three tables serve these tests, each where it is cheap:

* The bitmap of u, set once for row u: B is streamed against it.
* The bitmap of a hub v, one of the first rows of ordered blocks, v < hubs. In `degree` order these are the columns of
  most edges, and their entries crowd into few words: where that takes fewer steps, the bitmaps of u and v are ANDed,
  512 ids at a time, and bits are counted. That tests all elements of either list at once; the elements of the streamed
  list are counted as probes, one each. Otherwise A is streamed.
* A byte marker of any other v: such edges are deferred and grouped by v, and then A is streamed for every u of the
  group. The marker is set once for v, not once for each edge.

Rows that will be streamed are prefetched, since for most graphs they are in no cache.
"""

# CPU seconds on one core of an EPYC with a crowded third level cache; Kronecker graph of scale 20:
#                                         predicted  measured  learnt
# u's marker alone, 4.32 G probes               2.0       3.4  0.4 ns a probe in cache, but 15 ns a line of a
#                                                              row in none; LLVM's gathers cost 0.4 more
# 16384 hubs, ANDed; other rows streamed        0.3      0.93  62 M steps of an AND: 0.25; other rows: 0.6
# other rows prefetched                        0.35      0.40  (of those 0.6)
# other edges grouped by v instead             0.16      0.15  a third of the probes, lists known far ahead
# 8192 hubs                                    same      0.46  a quarter of the memory, cheap to build again
# splits as ranges, bitmaps kept for the next  0.44      0.42
# 10240 hubs                                   same      0.40  kept, they cost little; 12288 gains no more
# random graph, 1 M vertices, 10 M edges        0.2      0.26  0.46 without prefetching
# The plain marker kernel took 7.6 and 1.05 in the same runs.

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.instructions import ones, prefetch, scalar
from dasktc.backends.cpu.intersect import Triple, before, length
from dasktc.backends.cpu.jit import Bytes, Int32s, Kernel, UInt32Rows, Words, inlined
from dasktc.backends.cpu.sizes import AHEAD, BLOCK, SHORT, SPARSE, WORDS
from dasktc.backends.csr import Array

__all__ = [
    "BY_EDGE", "BY_ROW", "NOTHING", "REACH", "ROWS_AHEAD", "bitmap_start", "by_columns", "by_rows", "clear", "group",
    "hub_bitmaps", "look_ahead", "mark", "prefetch_list", "prefetch_row", "set_bits",
]  # fmt: skip

LINE = 16
"""Columns in a cache line."""
ROWS_AHEAD = 16
"""Index rows that are prefetched ahead of the current one."""
REACH = (1 << 32) - 1
"""Greatest distance of a deferred list from the first one, because distances are stored in 32 bits."""

NOTHING, BY_EDGE, BY_ROW = 0, 1, 2
"""What `group` writes with each list: nothing, the edge's place, or its row."""

U = np.uint64


# sets of columns as bits


@inlined
def bitmap_start(v: Any) -> Any:
    """First word of hub v's bitmap, which ends with the block that contains v, because v exceeds all its entries."""
    group = v >> BLOCK
    return U(WORDS * (group + 1) * ((group << BLOCK - 1) + (v & (1 << BLOCK) - 1)))


@inlined
def set_bits(bits: Array, base: Any, columns: Array, first: Any, last: Any) -> None:
    """Set the bits of ascending columns; a word is never read again, because that would wait for its last store."""
    place, word = U(0), U(0)
    for p in range(U(first), U(last)):
        w = U(columns[p])
        word = (word if w >> U(6) == place else U(0)) | U(1) << (w & U(63))
        place = w >> U(6)
        bits[base + place] = word


@inlined
def clear(bits: Array, columns: Array, first: Any, last: Any) -> None:
    """Clear the words in which bits of these columns are set."""
    for p in range(U(first), U(last)):
        bits[U(columns[p]) >> U(6)] = U(0)


@inlined
def _streamed(bits: Array, base: Any, columns: Array, first: Any, last: Any) -> Any:
    """Count the entries from first to last whose bit is set."""
    common = U(0)
    for p in range(U(first), U(last)):
        w = scalar(U(columns[p]))
        common += (bits[base + (w >> U(6))] >> (w & U(63))) & U(1)
    return np.int64(common)


@inlined
def _anded(bits: Array, bitmaps: Array, base: Any, words: Any) -> Any:
    """Count the bits that are set in both bitmaps."""
    common = U(0)
    for k in range(U(words)):
        common += ones(bits[k] & bitmaps[base + k])
    return np.int64(common)


@Kernel
def hub_bitmaps(t: Triple, hubs: int, bitmaps: Words) -> int:
    """Set the bitmaps of hubs with rows long enough to use them; return the number of rows up to the last long one."""
    stream, stream_columns = t.stream, t.stream_columns
    for v in range(hubs):
        if length(stream, v) > min(SHORT, SPARSE * ((v >> BLOCK) + 1)):
            set_bits(bitmaps, bitmap_start(v), stream_columns, stream[v], stream[v + 1])
    rows = len(stream) - 1
    while rows > 0 and length(stream, rows - 1) <= SHORT:
        rows -= 1
    return rows


# edges in their order, row by row


@inlined
def look_ahead(
    index: Array, index_columns: Array, row: Any, end: Any, stream: Array, stream_columns: Array, hubs: Any
) -> Any:
    """Sum the lengths of the rows that an index row's entries refer to; prefetch those that will be streamed."""
    wedges = 0
    # At `end` the range is empty. A branch on that here costs `by_rows` 9 ns a row.
    for p in range(U(index[U(row)]), U(index[U(min(row + 1, end))])):
        v = U(index_columns[p])
        size = length(stream, v)
        wedges += size
        if v >= U(hubs) and size <= SHORT:
            prefetch(stream_columns, U(stream[v]))
            prefetch(stream_columns, U(stream[v] + size))
    return wedges


@inlined
def prefetch_row(offsets: Array, columns: Array, row: Any, end: Any) -> None:
    """Prefetch both ends of a row's entries."""
    if row < end:
        prefetch(columns, U(offsets[row]))
        prefetch(columns, U(offsets[row + 1]))


@Kernel
def by_rows(
    t: Triple, hubs: int, bitmaps: Words, bits: Words, groups: Int32s, limit: int
) -> tuple[int, int, int, int, int]:
    """Count row by row, with row u's table entries set in `bits`; count deferred edges by v in `groups`.

    Stops before a row, other than the first, with which more than `limit` edges could be deferred, or which is beyond
    REACH; the last number returned is the next row.
    """
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, one_block, shift = t
    triangles = wedges = probes = deferrals = 0
    in_place = one_block and shift == 0  # then row u is cut at the edge's own position
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
        cut = first
        for p in range(U(index[u]), U(index[u + 1])):
            v = np.int64(index_columns[p])
            cut = np.int64(p) if in_place else before(table_columns, cut, last, v + shift)
            a, b, row = cut - first, length(stream, v), stream[U(v)]
            if a == 0:
                continue
            blocks = (v >> BLOCK) + 1
            if v < hubs and min(a, b) > SPARSE * blocks:
                triangles += _anded(bits, bitmaps, bitmap_start(v), WORDS * blocks)
                probes += b if b <= SHORT else min(a, b)
            elif b <= SHORT or b <= a:
                triangles += _streamed(bits, U(0), stream_columns, row, row + b)
                probes += b
            elif v < hubs:
                triangles += _streamed(bitmaps, bitmap_start(v), table_columns, first, cut)
                probes += a
            else:
                groups[U(v)] += 1
                deferrals += 1
        clear(bits, table_columns, first, last)
    return triangles, wedges, probes, deferrals, next_row


# the deferred edges, grouped by column v


@Kernel
def group(t: Triple, hubs: int, groups: Int32s, lists: UInt32Rows, detail: int) -> None:
    """Write (start, length) of each deferred list A into its group; groups[v] becomes the group's end.

    With BY_EDGE or BY_ROW the place of the index edge, or its row, is also written, relative to that of the first row.
    """
    index, index_columns, table, table_columns, stream, _, begin, end, one_block, shift = t
    in_place = one_block and shift == 0
    # Numbers of deferred edges by v become the places where their groups begin.
    place = 0
    for column in range(len(groups)):
        size = groups[column]
        groups[column] = place
        place += size
    for u in range(begin, end):
        prefetch_row(index, index_columns, u + ROWS_AHEAD, end)
        first, last = table[u], table[u + 1]
        cut = first
        for p in range(U(index[u]), U(index[u + 1])):
            v = np.int64(index_columns[p])
            if v < hubs:
                continue
            if v >= len(groups):
                break
            cut = np.int64(p) if in_place else before(table_columns, cut, last, v + shift)
            a, b = cut - first, length(stream, v)
            if b > SHORT and 0 < a < b:
                slot = U(groups[U(v)])
                lists[slot, 0] = first - table[begin]
                lists[slot, 1] = a
                if detail != NOTHING:
                    lists[slot, 2] = np.int64(p) - index[begin] if detail == BY_EDGE else u - begin
                groups[U(v)] += 1


@inlined
def mark(marker: Array, value: Any, columns: Array, first: Any, last: Any) -> None:
    """Set the markers of a range of entries to `value`."""
    for p in range(U(first), U(last)):
        marker[U(columns[p])] = value


@inlined
def _marked(marker: Array, columns: Array, first: Any, last: Any) -> Any:
    """Count the entries from first to last that are marked."""
    common = U(0)
    for p in range(U(first), U(last)):
        common += U(marker[scalar(U(columns[p]))])
    return np.int64(common)


@inlined
def prefetch_list(columns: Array, first: Any, last: Any) -> None:
    """Prefetch every cache line of a range of entries."""
    for p in range(U(first), U(last), U(LINE)):
        prefetch(columns, p)


@Kernel
def by_columns(t: Triple, hubs: int, groups: Int32s, lists: UInt32Rows, marker: Bytes) -> tuple[Any, Any]:
    """Count the grouped edges; `lists` ends with AHEAD empty lists."""
    table, table_columns, stream, stream_columns = t.table, t.table_columns, t.stream, t.stream_columns
    triangles = probes = np.int64(0)
    place, base = 0, table[t.begin]
    for v in range(hubs, len(groups)):
        if groups[v] == place:
            continue
        mark(marker, 1, stream_columns, stream[v], stream[v + 1])
        while place < groups[v]:
            first, size = base + lists[U(place + AHEAD), 0], np.int64(lists[U(place + AHEAD), 1])
            prefetch_list(table_columns, first, first + size)
            first, size = base + lists[U(place), 0], np.int64(lists[U(place), 1])
            triangles += _marked(marker, table_columns, first, first + size)
            probes += size
            place += 1
        mark(marker, 0, stream_columns, stream[v], stream[v + 1])
    return triangles, probes
