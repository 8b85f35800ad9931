"""Edges on the CPU, from raw ids to rows of a block; each function is one compiled pass over memory without the GIL.

Array arithmetic would take several passes, or chunks between which threads wait for the GIL.
"""

# CPU seconds for Kronecker 20, 16.8 M rows and 15.7 M edges, on a busy machine; here: on two threads together:
#                      array arithmetic  here
# mark                             0.30  0.04
# loops dropped, span measured     0.55  0.07  in pandas before; one thread, an idle machine
# keys                             0.55  0.15
# cut to 8 ranges                  0.41  0.09  by sorting first, and then by dealing out
# degrees                          0.33  0.08
# sources                          0.18  0.05
# oriented                         0.34  0.07
#
# Entries of a vertex table that is larger than a second level cache are prefetched, ns a row of Kronecker 20, 18 and 16
# (tables of 4.2, 1.0 and 0.3 MB) on a machine whose other programs crowd its caches: ends added up 12, 4.7, 2.4
# without, 6, 3.7, 2.4 with; rows relabelled 19, 7.3, 3.5 and 7, 5.1, 3.7. 8 or 16 rows ahead gain nothing, 32 half. The
# same in pieces of 64 rows, a loop that prefetches and one that computes, takes 1.5 times as long.
# Milliseconds for amazon0601, 3.4 M rows, by kernels for columns of any stride, and by these: loops and span 3.9, 0.9;
# ends counted 6.3, 5.4; rows relabelled 9.3, 6.8.
# Keys of ascending order gain nothing: those that are oriented in place, and repeats that are subtracted from degrees.
# Keys over ranks that are not stored but made twice, to count and to deal, took 0.94 to 2 times as long before that.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dasktc.backends.cpu import radix
from dasktc.backends.cpu.instructions import prefetch
from dasktc.backends.cpu.jit import (
    Bytes,
    ConstIds,
    ConstInt32s,
    ConstInt64s,
    Ids,
    Int32s,
    Int64s,
    Kernel,
    KernelOfIds,
    Word,
    inlined,
)
from dasktc.backends.csr import Array
from dasktc.backends.edge_sample import Colours
from dasktc.backends.vertex_maps import TableMap, check_size
from dasktc.backends.wedge_sample import MULTIPLIERS

__all__ = ["CHUNK", "RANGES", "CpuEdges"]

CHUNK = 1 << 13
"""Keys of one step of array arithmetic, 64 KiB: larger intermediates would be mapped and faulted in anew each time,
because Dask's workers run with a fixed trim threshold, which stops malloc from learning."""

RANGES = 1 << 10
"""Most ranges into which keys are split in one pass."""
HALVED = 8
"""Ranges from which keys are dealt to all ranges in one pass: sooner than by four passes that halve the ranges."""
GUESS = 12
"""Leading bits of a key that tell approximately which range it is in."""

FAR = 1 << 17
"""Entries of 4 bytes that a second level cache holds; those of larger tables of vertices are prefetched."""
AHEAD = 64
"""Edges by which they are prefetched ahead of the current one."""

PIECE = 1 << 16
"""Edges whose ends are copied in one step where they are not contiguous."""
SAMPLED = 1 << 17
"""Edges that are sampled in one step."""
LARGEST = 2**63 - 1
ID_BITS = 31
"""Bits of any dense id."""

U = np.uint64
_FIRST, _SECOND = U(MULTIPLIERS[0]), U(MULTIPLIERS[1])


@KernelOfIds
def _mark(src: ConstIds, dst: ConstIds, low: int, present: Bytes) -> None:
    for i in range(len(src)):
        present[U(src[i] - low)] = 1
        present[U(dst[i] - low)] = 1


@KernelOfIds
def _facts(src: ConstIds, dst: ConstIds) -> tuple[Any, Any, Any]:
    """How many edges are loops, and the smallest and the largest id of the others."""
    loops, low, high = 0, np.int64(LARGEST), np.int64(-LARGEST)
    for i in range(len(src)):
        a, b = np.int64(src[i]), np.int64(dst[i])
        if a == b:
            loops += 1
        else:
            low, high = min(low, a, b), max(high, a, b)
    return loops, low, high


@KernelOfIds
def _without_loops(src: ConstIds, dst: ConstIds, kept_src: Ids, kept_dst: Ids) -> int:
    """Copy all edges but loops to arrays that are one entry longer than they need; return how many these are."""
    size = 0
    for i in range(len(src)):
        kept_src[U(size)], kept_dst[U(size)] = src[i], dst[i]
        size += src[i] != dst[i]
    return size


@inlined
def _colour(vertex: Any, colours: Any, key: Any) -> Any:
    """The colour of an id, as `edge_sample.colours_of` computes it."""
    x = U(np.int64(vertex)) + key
    x = (x ^ (x >> U(30))) * _FIRST
    x = (x ^ (x >> U(27))) * _SECOND
    return (x >> U(32)) * colours >> U(32)


@KernelOfIds
def _sampled(
    src: ConstIds, dst: ConstIds, colours: Word, key: Word, is_sampled: Bytes, kept_src: Ids, kept_dst: Ids
) -> int:
    """Copy the edges whose ends have one colour to arrays that are one entry longer than all edges need."""
    for i in range(len(src)):  # a loop of its own, for several ids at a time
        is_sampled[i] = _colour(src[i], colours, key) == _colour(dst[i], colours, key)
    size = 0
    for i in range(len(src)):
        kept_src[U(size)], kept_dst[U(size)] = src[i], dst[i]
        size += is_sampled[i]
    return size


@inlined
def _fetch_ends(table: Any, src: Any, dst: Any, low: Any, i: Any) -> None:
    """Prefetch the entries of both ends of the edge AHEAD of edge i."""
    place = min(i + AHEAD, len(src) - 1)
    prefetch(table, U(src[place] - low))
    prefetch(table, U(dst[place] - low))


@KernelOfIds
def _count_ends(src: ConstIds, dst: ConstIds, low: int, counts: Int32s) -> None:
    is_far = len(counts) > FAR
    for i in range(len(src)):
        if is_far:
            _fetch_ends(counts, src, dst, low, i)
        counts[U(src[i] - low)] += 1
        counts[U(dst[i] - low)] += 1


@KernelOfIds
def _relabel(
    src: ConstIds, dst: ConstIds, low: int, table: ConstInt32s, shift: int, directed: bool, keys: Int64s
) -> None:
    """Write keys over a table's numbers, the higher one of directed edges first, of others the lower one."""
    is_far = len(table) > FAR
    for i in range(len(src)):
        if is_far:
            _fetch_ends(table, src, dst, low, i)
        a, b = np.int64(table[U(src[i] - low)]), np.int64(table[U(dst[i] - low)])
        least, most = min(a, b), max(a, b)
        keys[i] = most << shift | least if directed else least << shift | most


@Kernel
def _count_ranges(keys: ConstInt64s, starts: ConstInt64s, guesses: ConstInt64s, shift: int, counts: Int64s) -> None:
    for i in range(len(keys)):
        k = U(guesses[U(keys[i] >> shift)])
        while keys[i] >= starts[k]:
            k += U(1)
        counts[k] += 1


@Kernel
def _split(
    keys: ConstInt64s, starts: ConstInt64s, guesses: ConstInt64s, shift: int, places: Int64s, ranges: Int64s
) -> None:
    for i in range(len(keys)):
        k = U(guesses[U(keys[i] >> shift)])
        while keys[i] >= starts[k]:
            k += U(1)
        ranges[U(places[k])] = keys[i]
        places[k] += 1


@Kernel
def _add_degrees(degrees: Int32s, keys: ConstInt64s, shift: int) -> None:
    """Add 1 to the count of both ends of each key."""
    mask = (1 << shift) - 1
    for i in range(len(keys)):
        degrees[U(keys[i] >> shift)] += 1
        degrees[U(keys[i] & mask)] += 1


@Kernel
def _add_sources(degrees: Int32s, keys: ConstInt64s, shift: int) -> None:
    """Add 1 to the count of the high end of each key."""
    for i in range(len(keys)):
        degrees[U(keys[i] >> shift)] += 1


class CpuEdges:
    """Edge functions of the CPU; implements `protocol.Edges`."""

    ranges = RANGES
    add_degrees, add_sources = _add_degrees, _add_sources

    def proper(self, src: Array, dst: Array) -> tuple[tuple[Array, Array], int, int, int]:
        """Drop loops; return how many they are, and the smallest and the largest id of the other edges.

        The smallest id exceeds the largest where all edges are loops.
        """
        src, dst = _of_one_type(src, dst)
        loops, low, high = 0, LARGEST, -LARGEST
        for _, *ends in _contiguous(src, dst):
            number, least, most = map(int, _facts(*ends))
            loops, low, high = loops + number, min(low, least), max(high, most)
        if not loops:
            return (src, dst), loops, low, high
        kept_src, kept_dst = (np.empty(len(src) - loops + 1, src.dtype) for _ in range(2))
        size = 0
        for _, *ends in _contiguous(src, dst):
            size += _without_loops(*ends, kept_src[size:], kept_dst[size:])
        return (kept_src[:-1], kept_dst[:-1]), loops, low, high

    def without_loops(self, src: Array, dst: Array) -> tuple[Array, Array]:
        """Both ends as they are: `proper` has dropped the loops."""
        return src, dst

    def sampled(self, src: Array, dst: Array, colours: Colours) -> tuple[Array, Array]:
        """Select the edges whose ends have one colour; a chunk at a time, so that the copies are made in cache."""
        ids, others = _of_one_type(src, dst)
        kept_src, kept_dst = (np.empty(SAMPLED + 1, ids.dtype) for _ in range(2))
        is_sampled = np.empty(SAMPLED, np.uint8)
        parts = [(kept_src[:0], kept_dst[:0])]
        for start in range(0, len(ids), SAMPLED):
            ends = (np.ascontiguousarray(column[start : start + SAMPLED]) for column in (ids, others))
            size = _sampled(*ends, colours.number, colours.key, is_sampled, kept_src, kept_dst)
            parts.append((kept_src[:size].copy(), kept_dst[:size].copy()))
        return tuple(map(np.concatenate, zip(*parts, strict=True)))  # type: ignore[return-value]

    def marks(self, width: int) -> Array:
        """Cleared flags, one per id."""
        return np.zeros(width, bool)

    def mark(self, present: Array, src: Array, dst: Array, low: int) -> None:
        """Set the flags of the ids, counted from `low`, of all edges."""
        for _, *ends in _contiguous(src, dst):
            _mark(*ends, low, present.view(np.uint8))

    def marked(self, present: Array) -> Array:
        """The flags of the ids, which are a table of marks already."""
        return present

    def ranked(self, marks: Array, low: int, width: int) -> TableMap:
        """Make the map of the marked ids."""
        ids = np.flatnonzero(marks)
        check_size(len(ids))
        table = np.zeros(width, np.int32)
        table[ids] = np.arange(len(ids), dtype=np.int32)
        return TableMap(low, table, ids + low if low else ids)

    def count_ends(self, counts: Array, src: Array, dst: Array, of: Any) -> None:
        """Add 1 to the counts of both ends, by dense id, of all edges."""
        if isinstance(of, TableMap):
            _add_degrees(counts, self.keys(src, dst, of, ID_BITS), ID_BITS)
        else:
            for _, *ends in _contiguous(src, dst):
                _count_ends(*ends, of.low, counts)

    def keys(self, src: Array, dst: Array, of: Any, shift: int, rank: Array | None = None) -> Array:
        """Canonical keys in the order of the edges; with ranks oriented ones."""
        table = getattr(of, "table", None)
        if rank is not None:
            table = rank if table is None else rank.take(table)
        if table is None:
            return self.lazy_keys(src, dst, of, shift).keys()
        keys = np.empty(len(src), np.int64)
        for first, *ends in _contiguous(src, dst):
            _relabel(*ends, of.low, table, shift, rank is not None, keys[first : first + len(ends[0])])
        return keys

    def lazy_keys(self, src: Array, dst: Array, of: Any, shift: int) -> radix.LazyKeys:
        """Edges of a range of ids that stand for their canonical keys, which are computed at each reading."""
        src, dst = _of_one_type(src, dst)
        return radix.LazyKeys(src, dst, of.low, shift)

    def between(self, keys: radix.Keys, first: int, end: int) -> Array:
        """Select the keys with first <= key < end."""
        return radix.select(keys, first, end)

    def split(self, keys: radix.Keys, starts: list[int]) -> list[Array]:
        """Partition keys into ranges that begin at 0 and at each of `starts`: unordered slices of arrays."""
        if len(starts) < HALVED or not len(keys):
            return radix.split(keys, starts)
        if not isinstance(keys, np.ndarray):
            keys = keys.keys()
        borders = np.array([*starts, np.iinfo(np.int64).max], np.int64)
        largest = max(int(keys.max()), starts[-1])
        shift = max(0, largest.bit_length() - GUESS)
        guesses = np.searchsorted(borders, np.arange((largest >> shift) + 1) << shift, side="right")
        counts = np.zeros(len(borders), np.int64)
        _count_ranges(keys, borders, guesses, shift, counts)
        ends = np.cumsum(counts)
        ranges = np.empty(len(keys), np.int64)
        _split(keys, borders, guesses, shift, ends - counts, ranges)
        return np.split(ranges, ends[:-1])

    def split_rows(
        self, edges: Iterator[tuple[Array, Array]], of: Any, rank: Array, rows: list[int], shift: int
    ) -> Iterator[list[Array]]:
        """Make oriented keys, and deal them to ranges of rows; see `protocol.Edges`."""
        starts, low = [end << shift for end in rows[:-1]], (1 << shift) - 1
        for src, dst in edges:
            pairs = zip(self.split(self.keys(src, dst, of, shift, rank), starts), rows, strict=True)
            yield [part >> shift << (end - 1).bit_length() | part & low for part, end in pairs]

    def oriented(self, keys: Array, rank: Array, shift: int) -> Array:
        """Keys over the ranks of the ends, the higher rank first."""
        result = np.empty(len(keys), np.int64)
        radix.orient(keys, rank, shift, result)
        return result

    def orient(self, keys: Array, rank: Array, shift: int) -> Array:
        """Replace keys by those of `oriented`."""
        radix.orient(keys, rank, shift, keys)
        return keys

    def residues(self, keys: Array, shift: int, modulus: int) -> Array:
        """Number of keys with each pair of their ends' remainders, uint64, row-major."""
        counts = np.zeros(modulus**2, np.int64)
        for chunk in _chunks(keys):
            pairs = (chunk >> shift) % modulus * modulus + (chunk & ((1 << shift) - 1)) % modulus
            counts += np.bincount(pairs, minlength=modulus**2)
        return counts.view(np.uint64)

    def placed(self, keys: Array, shift: int, modulus: int, firsts: Array, widths: Array) -> Array:
        """Recode keys by block, with ends dealt out by remainder: firsts[i, j] + row * widths[j] + column."""
        codes = np.empty(len(keys), np.int64)
        for chunk, target_chunk in zip(_chunks(keys), _chunks(codes), strict=True):
            source, target = chunk >> shift, chunk & ((1 << shift) - 1)
            j = target % modulus
            target_chunk[:] = firsts.take(source % modulus * modulus + j)
            target_chunk += source // modulus * widths.take(j)
            target_chunk += target // modulus
        return codes

    def rows(self, keys: Array, start: int, count: int, columns: int) -> tuple[Array, Array]:
        """Offsets (int64) and columns (int32) of the rows of ascending keys, each start + row * columns + column."""
        offsets, numbers = np.zeros(count + 1, np.int64), np.empty(len(keys), np.int32)
        offsets[radix.continue_rows(keys, start, columns, 0, 0, offsets, numbers) + 1 :] = len(keys)
        return offsets, numbers


def _of_one_type(*columns: Array) -> list[Array]:
    """Convert columns to one type, int32 or int64."""
    is_narrow = all(column.dtype == np.int32 for column in columns)
    return [column.astype(np.int32 if is_narrow else np.int64, copy=False) for column in columns]


def _contiguous(src: Array, dst: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield the ends of all edges, of one type and contiguous, with the number of the first edge.

    Columns that are not are copied a piece at a time, in cache: a kernel for any stride uses no vector instructions.
    """
    dtype = np.int32 if src.dtype == dst.dtype == np.int32 else np.int64
    is_ready = all(column.dtype == dtype and column.flags.c_contiguous for column in (src, dst))
    step = max(1, len(src)) if is_ready else PIECE
    for first in range(0, len(src), step):
        ids, others = (np.ascontiguousarray(column[first : first + step], dtype) for column in (src, dst))
        yield first, ids, others


def _chunks(keys: Array) -> Iterator[Array]:
    return (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))
