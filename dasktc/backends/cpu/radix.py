"""Radix sort of non-negative keys, leading digit first, in time linear in their number.

Two passes over memory count the values of the leading digit, and deal the keys to as many buckets. Each bucket is
then sorted by the other digits, from the lowest up, in a second level cache. Keys of several arrays are dealt into
one array without a copy in between, and so are keys that are still to be made from edges (`LazyKeys`). A bucket is
sorted, and its edges are taken, while its keys are in cache. Threads may share all of it: they never write to the same
place when they count and deal different arrays, and sort different buckets.
"""

# Kronecker 20, 16.8 M keys of 40 bits in 16 arrays, milliseconds on one core:
#                                  concatenate  count  deal  rest   all
# from the lowest digit up, 10 bits         33           292        325
# 10 bits first, then 3 of 10                      19    60   155   234
# 12 bits first, then 3 of 10                      22    65   133   220
# 14 bits first, then 3 of  9                      22    78   112   212
# 12 bits first, then 2 of 14                      22    67   136   225
#
# Buckets of amazon0601, cnr-2000 and ego-Twitter sorted by 3 digits of 9 or 10 bits, ms: 21, 19 and 15; counted without
# a loop over digits 18, 16 and 13; then also as 32-bit words 16, 16 and 11, which is not worth a second kernel.
# Not kept either: oriented keys that are dealt as they are made, in one pass, to lists of blocks, which saves an array
# of keys: from rows and ranks to sorted rows amazon0601 takes 76 ms instead of 78, but Kronecker 18 92 instead of 80.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from dasktc.backends.cpu.jit import ConstIds, ConstInt32s, ConstInt64s, Int32s, Int64s, Kernel, KernelOfIds
from dasktc.backends.csr import Array

__all__ = [
    "BATCH", "FEW", "Buckets", "Keys", "LazyKeys", "compact_distinct", "continue_rows", "dealt", "merge", "orient",
    "select", "sort", "split",
]  # fmt: skip

BUCKET, MOST_BITS = 13, 12
"""Binary logarithms of twice the keys of a bucket, if keys were evenly spread; and of the largest number of buckets."""
DIGIT = 10
"""Most bits of the digits by which buckets are sorted: writing to 1024 places in turn suits a first level cache."""
FEW = 2048
"""Fewer keys than this are sorted faster by NumPy."""
FEWER = 48
"""Most keys of a bucket that is sorted by insertion, because counting digits alone would take longer."""
BATCH = 1 << 16
"""Keys of neighbouring buckets that are returned together, while they are in cache; more for a single large bucket."""

CHUNK = 1 << 15
"""Keys that are made in one step: 256 KiB."""
PIECE = 1 << 20
"""Most keys that are counted or dealt out in one call."""

U = np.uint64


@Kernel
def _ascending(keys: ConstInt64s) -> bool:
    ascends = True
    i = 1
    while ascends and i < len(keys):
        ascends = keys[U(i - 1)] <= keys[U(i)]
        i += 1
    return ascends


@Kernel
def _count_keys(keys: ConstInt64s, shift: int, base: int, counts: Int64s) -> None:
    for i in range(U(len(keys))):
        counts[(U(keys[i]) >> U(shift)) - U(base)] += 1


@Kernel
def _deal_keys(keys: ConstInt64s, shift: int, base: int, places: Int64s, target: Int64s) -> None:
    for i in range(U(len(keys))):
        bucket = (U(keys[i]) >> U(shift)) - U(base)
        target[U(places[bucket])] = keys[i]
        places[bucket] += 1


@KernelOfIds
def _keys_of(src: ConstIds, dst: ConstIds, low: int, bits: int, keys: Int64s) -> None:
    """Write the canonical keys of edges, several at a time by vector instructions."""
    for i in range(len(src)):
        a, b = np.int64(src[i]) - low, np.int64(dst[i]) - low
        least = min(a, b)
        keys[i] = least << bits | a + b - least


@Kernel
def orient(keys: ConstInt64s, rank: ConstInt32s, shift: int, oriented: Int64s) -> None:
    """Write the keys over the ranks of the ends, the higher rank first."""
    mask = (1 << shift) - 1
    for i in range(len(keys)):
        a, b = np.int64(rank[U(keys[i] >> shift)]), np.int64(rank[U(keys[i] & mask)])
        oriented[i] = max(a, b) << shift | min(a, b)


@Kernel
def _between(keys: ConstInt64s, first: int, end: int, selection: Int64s) -> Any:
    """Write the keys with first <= key < end to `selection`, one entry longer than `keys`; return how many."""
    size = np.int64(0)
    for i in range(len(keys)):
        key = keys[i]
        selection[U(size)] = key
        size += np.int64((key >= first) & (key < end))
    return size


@Kernel
def _part(keys: ConstInt64s, border: int, halves: Int64s, front: int, back: int) -> int:
    """Write keys below `border` to `halves` from `front` on, the others down from `back`; return the new `front`."""
    for i in range(U(len(keys))):
        key = keys[i]
        halves[U(front)] = halves[U(back - 1)] = key  # one of them is overwritten by the next key, without a branch
        is_below: Any = np.int64(key < border)
        front += is_below
        back -= 1 - is_below
    return front


@Kernel
def _sort_buckets(keys: Int64s, ends: ConstInt64s, spare: Int64s, digits: int, bits: int, low: int) -> None:
    """Sort each of the buckets that end at `ends`, the first from 0 on, by `digits` digits of `bits` from `low` on."""
    mask, begin = U((1 << bits) - 1), 0
    counts = np.empty((digits, 1 << bits), np.int64)
    for end in ends:
        size = end - begin
        # Few keys are sorted by insertion, others by digits, whose counts are made in one pass.
        if size <= FEWER:
            for i in range(begin + 1, end):
                key, j = keys[U(i)], i
                while j > begin and keys[U(j - 1)] > key:
                    keys[U(j)] = keys[U(j - 1)]
                    j -= 1
                keys[U(j)] = key
            begin = end
            continue
        counts[:] = 0
        source, other, is_moved = keys[begin:end], spare[:size], False
        if digits == 3:  # as of most graphs' keys: without a loop over digits
            lowest, middle, highest = counts[0], counts[1], counts[2]
            for i in range(U(size)):
                key = U(source[i]) >> U(low)
                lowest[key & mask] += 1
                middle[(key >> U(bits)) & mask] += 1
                highest[(key >> U(2 * bits)) & mask] += 1
        else:
            for i in range(U(size)):
                key = U(source[i]) >> U(low)
                for d in range(U(digits)):
                    counts[d, key & mask] += 1
                    key >>= U(bits)
        for d in range(digits):
            places, first, largest = counts[d], 0, 0
            for value in range(1 << bits):
                number = places[value]
                places[value] = first
                first, largest = first + number, max(largest, number)
            # A digit that all keys share needs no pass.
            if largest == size:
                continue
            shift = U(low + d * bits)
            for i in range(U(size)):
                digit = (U(source[i]) >> shift) & mask
                other[U(places[digit])] = source[i]
                places[digit] += 1
            source, other, is_moved = other, source, not is_moved
        if is_moved:
            for i in range(U(size)):
                other[i] = source[i]
        begin = end


@Kernel
def compact_distinct(keys: Int64s) -> int:
    """Move each of the ascending keys to the front once; return how many these are."""
    size, last = 0, np.int64(-1)
    for i in range(len(keys)):
        key = keys[i]
        keys[U(size)] = key
        size += key != last
        last = key
    return size


@Kernel
def distinct_rows(keys: Int64s, shift: int, columns: Int32s, lengths: Int32s) -> int:
    """Write the column of each of the ascending keys once, and the lengths of their rows, which begin and end here.

    Repeats are moved to the front of the keys; return how many these are.
    """
    size = start = repeats = 0
    last, last_row, mask = np.int64(-1), np.int64(-1), (1 << shift) - 1
    for i in range(len(keys)):
        key = keys[i]
        row = key >> shift
        keys[U(repeats)], columns[U(size)] = key, key & mask
        start = start if row == last_row else size
        repeats += key == last
        size = i + 1 - repeats
        lengths[U(row)] = size - start
        last, last_row = key, row
    return repeats


@Kernel
def subtract_ends(degrees: Int32s, keys: ConstInt64s, shift: int, vertices: ConstInt32s) -> None:
    """Subtract 1 from the degrees of both ends, by vertex, of each of the ascending keys over ranks."""
    mask, number = (1 << shift) - 1, 0
    for i in range(len(keys)):
        number += 1
        if i + 1 == len(keys) or keys[U(i + 1)] != keys[U(i)]:
            degrees[U(vertices[U(keys[i] >> shift)])] -= number
            degrees[U(vertices[U(keys[i] & mask)])] -= number
            number = 0


@Kernel
def continue_rows(
    keys: ConstInt64s, start: int, columns: int, first: int, row: int, offsets: Int64s, numbers: Int32s
) -> int:
    """Continue rows from `row` on with further keys, of which `first` came before; return the last key's row."""
    end = start + (row + 1) * columns
    for i in range(len(keys)):
        while keys[i] >= end and row < len(offsets) - 2:
            row += 1
            offsets[U(row)] = first + i
            end += columns
        numbers[i] = keys[i] - (end - columns)
    return row


@dataclass(frozen=True)
class LazyKeys:
    """Canonical keys of edges, which are computed at each reading, one chunk at a time, in cache."""

    src: Array
    dst: Array
    """The edges' ends, of one type."""
    low: int
    shift: int
    """Keys are over offsets from the smallest id, `low`."""

    def __len__(self) -> int:
        """Number of edges."""
        return len(self.src)

    def __getitem__(self, rows: slice) -> LazyKeys:
        """A range of the edges."""
        return replace(self, src=self.src[rows], dst=self.dst[rows])

    def chunks(self) -> Iterator[Array]:
        """Yield the keys in chunks; each chunk overwrites the last one."""
        buffer = np.empty(CHUNK, np.int64)
        for begin in range(0, len(self), CHUNK):
            part = self[begin : begin + CHUNK]
            keys = buffer[: len(part)]
            part._write(keys)
            yield keys

    def keys(self) -> Array:
        """Copy the keys to an array of their own."""
        keys = np.empty(len(self), np.int64)
        self._write(keys)
        return keys

    def _write(self, keys: Array) -> None:
        _keys_of(*map(np.ascontiguousarray, (self.src, self.dst)), self.low, self.shift, keys)


Keys = Array | LazyKeys
"""Keys as an array of int64, or what they are computed from."""


def _bits_below(keys: int, bound: int) -> int:
    """Choose the number of bits below the leading digit, for `keys` keys below `bound`.

    The digit has at most half of the bits, so that of an edge's key it depends on the high end alone.
    """
    bits = max(1, (bound - 1).bit_length())
    return bits - max(0, min(keys.bit_length() - BUCKET, MOST_BITS, bits // 2))


def _count(keys: Keys, buckets: int, shift: int, base: int) -> Array:
    """Histogram of the leading digits of keys; digits are counted from `base` on."""
    counts = np.zeros(buckets, np.int64)
    for chunk in _chunks(keys):
        _count_keys(chunk, shift, base, counts)
    return counts


def _deal(piece: tuple[Keys, Array], shift: int, target: Array, base: int) -> None:
    """Write each key of a pair (keys, places) to the next place of its leading digit; the places are overwritten."""
    keys, places = piece
    for chunk in _chunks(keys):
        _deal_keys(chunk, shift, base, places, target)


def _chunks(keys: Keys) -> Iterable[Array]:
    return [keys] if isinstance(keys, np.ndarray) else keys.chunks()


@dataclass(frozen=True)
class Buckets:
    """Keys dealt to buckets by their leading digit; implements `protocol.Buckets` for keys of edges."""

    keys: Array
    """Array of int64."""
    ends: Array
    """Array of int64, shape (buckets + 1,). Ends of the buckets, preceded by 0."""
    shift: int
    """Bits below the leading digit."""
    base: int = 0
    """Leading digit of the first bucket: bucket b has the keys from (base + b) << shift on, 1 << shift of them."""
    batch: int = BATCH
    """Keys of neighbouring buckets that are sorted and returned together."""
    subtraction: Lock = field(default_factory=Lock, compare=False, repr=False)
    """Held while repeats, mostly few, are subtracted from degrees: threads may do so for the same vertex."""

    @property
    def size(self) -> int:
        """Number of keys."""
        return len(self.keys)

    def __len__(self) -> int:
        """Number of buckets."""
        return len(self.ends) - 1

    def ranges(self, most: int) -> list[tuple[int, int]]:
        """At most `most` ranges of buckets with about equally many keys: each range's first bucket and its end."""
        borders = np.arange(1, most) * len(self.keys) // most
        cuts = np.searchsorted(self.ends, borders, side="right").clip(max=len(self)).tolist()
        return [pair for pair in pairwise([0, *cuts, len(self)]) if pair[0] < pair[1]]

    def sorted(
        self, first: int, end: int, spare: Array | None = None, low: int = 0
    ) -> Iterator[tuple[int, int, Array]]:
        """Sort a range of buckets, and yield them some at a time.

        Parameters
        ----------
        first, end : int
        spare : array of int64, optional
            Overwritten; at least as long as the largest bucket. Default: a new array.
        low : int
            Keys that differ only in bits below this one may come in any order.

        Yields
        ------
        first, end : int
            Range of the buckets that have been sorted.
        keys : array of int64
            Their keys, ascending except as `low` allows: a slice of `keys`.
        """
        if spare is None:
            spare = np.empty(int(np.diff(self.ends[first : end + 1]).max(initial=0)), np.int64)
        bits = max(0, self.shift - low)
        digits = -(-bits // DIGIT)
        while first < end:
            begin = int(self.ends[first])
            batch_end = max(first + 1, int(np.searchsorted(self.ends, begin + self.batch, side="right")) - 1)
            batch_end = min(batch_end, end)
            keys = self.keys[begin : int(self.ends[batch_end])]
            if digits:
                ends = self.ends[first + 1 : batch_end + 1] - begin
                _sort_buckets(keys, ends, spare, digits, -(-bits // digits), low)
            yield first, batch_end, keys
            first = batch_end

    def distinct(self, first: int, end: int, shift: int) -> Array:
        """Sort a range of buckets and keep each key once: in place, or in a copy where over a quarter go."""
        keys, size = self.keys[self.ends[first] : self.ends[end]], 0
        for _, _, batch in self.sorted(first, end):
            count = compact_distinct(batch)
            keys[size : size + count] = batch[:count]
            size += count
        return keys[:size] if 4 * size > 3 * len(keys) else keys[:size].copy()

    def distinct_rows(
        self, first: int, end: int, shift: int, lengths: Array, vertices: Array, degrees: Array
    ) -> Callable[[], Array]:
        """Sort a range of buckets; see `protocol.Buckets`."""
        columns, edge = np.empty(int(self.ends[end] - self.ends[first]), np.int32), 0
        for _, _, keys in self.sorted(first, end):
            repeats = distinct_rows(keys, shift, columns[edge : edge + len(keys)], lengths)
            edge += len(keys) - repeats
            with self.subtraction:
                subtract_ends(degrees, keys[:repeats], shift, vertices)
        columns.resize(edge, refcheck=False)  # in place: what repeats would have taken is free again
        return lambda: columns

    def rows(self, start: int, rows: int, columns: int, low: int = 0) -> tuple[Array, Array]:
        """Sort all buckets; offsets and columns of the rows, as `CpuEdges.rows` returns them."""
        offsets, numbers, row, edge = np.zeros(rows + 1, np.int64), np.empty(len(self.keys), np.int32), 0, 0
        for _, _, keys in self.sorted(0, len(self.ends) - 1, low=low):
            row = continue_rows(keys, start, columns, edge, row, offsets, numbers[edge : edge + len(keys)])
            edge += len(keys)
        offsets[row + 1 :] = edge
        return offsets, numbers

    def write_rows(self, first: int, end: int, shift: int, low: int, offsets: Array, columns: Array) -> None:
        """Sort a range of buckets, each of whole rows, and write their rows into the arrays of the only block."""
        row_bits, last = self.shift - shift, len(offsets) - 1
        for bucket, bucket_end, keys in self.sorted(first, end, low=low):
            begin, edge = min(bucket << row_bits, last), int(self.ends[bucket])
            row_offsets = offsets[begin : min(bucket_end << row_bits, last) + 1]
            row_offsets[0] = edge
            row = continue_rows(
                keys, begin << shift, 1 << shift, edge, 0, row_offsets, columns[edge : edge + len(keys)]
            )
            row_offsets[row + 1 :] = edge + len(keys)


def sort(keys: Array, bound: int) -> Array:
    """Sort keys, 0 <= key < bound, in ascending order, within twice their memory.

    They are overwritten; the result is their array, or another one of the same size.
    """
    if len(keys) < FEW:
        return np.sort(keys)
    keys = np.require(keys, np.int64, ("C", "A", "W"))
    return keys if _ascending(keys) else _sorted(dealt([keys], bound), keys)


def merge(arrays: list[Keys], bound: int, low: int = 0) -> Array:
    """Sort the keys of several arrays into a new one; the arrays are not changed, and the list is emptied.

    For all keys 0 <= key < bound. Those that differ only in bits below `low` may come in any order.
    """
    if sum(map(len, arrays)) < FEW:
        return np.sort(_together(arrays))
    return _sorted(dealt(arrays, bound), low=low)


def _sorted(buckets: Buckets, spare: Array | None = None, low: int = 0) -> Array:
    """Sort all buckets; parameters as for `Buckets.sorted`."""
    for _ in buckets.sorted(0, len(buckets.ends) - 1, spare, low):
        pass
    return buckets.keys


def in_turn(function: Callable[..., Any], inputs: list[Any], *shared: Any) -> list[Any]:
    """Call `function(input, *shared)` for one input after another."""
    return [function(each, *shared) for each in inputs]


def dealt(
    arrays: list[Keys],
    bound: int,
    span: tuple[int, int] | None = None,
    calls: Callable[..., list[Any]] = in_turn,
    batch: int = BATCH,
) -> Buckets:
    """Deal the keys of several arrays to buckets in a new array; parameters as for `Backend.dealt` and `Buckets`.

    Without a span, keys are read once more to find their smallest and largest.
    """
    if sum(map(len, arrays)) <= batch:  # they fit the cache as they are
        together = _together(arrays)
        return Buckets(together, np.array([0, len(together)]), max(1, (bound - 1).bit_length()))
    pieces = [keys[first : first + PIECE] for keys in arrays for first in range(0, len(keys), PIECE)]
    if span is None:  # keys that are computed are not computed once more
        arrays_of_keys = [keys for keys in arrays if isinstance(keys, np.ndarray) and len(keys)]
        spans = [(int(keys.min()), int(keys.max())) for keys in arrays_of_keys]
        spans += [(0, bound)] * (len(arrays_of_keys) < sum(len(keys) > 0 for keys in arrays))
        span = min(first for first, _ in spans), max(end for _, end in spans)
    arrays.clear()
    first, end = span
    shift = _bits_below(sum(map(len, pieces)), max(1, end - first))
    base = first >> shift
    counts = np.array(calls(_count, list(pieces), (end >> shift) - base + 1, shift, base))
    ends = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places = np.cumsum(counts, axis=0)  # where each piece writes the keys of each bucket: behind those of former pieces
    places += ends[:-1] - counts
    target, piece_places = np.empty(int(ends[-1]), np.int64), list(zip(pieces, places, strict=True))
    pieces.clear()  # so that each array is freed once its keys are dealt
    calls(_deal, piece_places, shift, target, base)
    return Buckets(target, ends, shift, base, batch)


def _together(arrays: list[Keys]) -> Array:
    """Concatenate keys in a new array, and empty the list."""
    parts, arrays[:] = [keys if isinstance(keys, np.ndarray) else keys.keys() for keys in arrays], []
    return np.concatenate([np.empty(0, np.int64), *parts])


def select(keys: Keys, first: int, end: int) -> Array:
    """Copy the keys with first <= key < end to an array of their own."""
    selection, size = np.empty(len(keys) + 1, np.int64), 0
    for chunk in _chunks(keys):
        size += int(_between(chunk, first, end, selection[size:]))
    return selection[:size] if 4 * size > 3 * len(keys) else selection[:size].copy()


def split(keys: Keys, starts: Sequence[int]) -> list[Array]:
    """Deal keys to ranges that begin at 0 and at each of `starts`, by passes that each halve the ranges.

    Each range gets an array of its own, or a slice of one, in no order.
    """
    if not starts:
        return [keys if isinstance(keys, np.ndarray) else keys.keys()]
    middle = len(starts) // 2
    halves, front = np.empty(len(keys), np.int64), 0
    back = len(halves)
    for chunk in _chunks(keys):
        old_front = front
        front = int(_part(chunk, starts[middle], halves, front, back))
        back -= len(chunk) - (front - old_front)
    return split(halves[:front], starts[:middle]) + split(halves[front:], starts[middle + 1 :])
