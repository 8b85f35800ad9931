"""Radix sort of non-negative keys, leading digit first, in time linear in their number.

Two passes over memory count the values of the leading digit, and deal the keys to as many buckets. Each bucket is
then sorted by the other digits, from the lowest up, in a second level cache. Keys of several arrays are dealt into
one array without a copy in between, and so are keys that are still to be made from edges (`Ends`). Threads may share
all of it: they never write to the same place when they count and deal different arrays, and sort different buckets.
"""

# Kronecker 20, 16.8 M keys of 40 bits in 16 arrays, milliseconds on one core:
#                                  concatenate  count  deal  rest   all
# from the lowest digit up, 10 bits         33           292        325
# 10 bits first, then 3 of 10                      19    60   155   234
# 12 bits first, then 3 of 10                      22    65   133   220
# 14 bits first, then 3 of  9                      22    78   112   212
# 12 bits first, then 2 of 14                      22    67   136   225

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numba import types

from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.csr import Array

__all__ = [
    "BATCH",
    "FEW",
    "Buckets",
    "Ends",
    "Keys",
    "OrientedKeys",
    "count",
    "deal",
    "dealt",
    "in_turn",
    "leading_bits",
    "merge",
    "select",
    "sort",
    "split",
    "warm",
]

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


def _ascending(keys: Array) -> bool:
    ascends = True
    i = 1
    while ascends and i < len(keys):
        ascends = keys[U(i - 1)] <= keys[U(i)]
        i += 1
    return ascends


def _count_keys(keys: Array, shift: int, base: int, counts: Array) -> None:
    for i in range(U(len(keys))):
        counts[(U(keys[i]) >> U(shift)) - U(base)] += 1


def _deal_keys(keys: Array, shift: int, base: int, places: Array, target: Array) -> None:
    for i in range(U(len(keys))):
        bucket = (U(keys[i]) >> U(shift)) - U(base)
        target[U(places[bucket])] = keys[i]
        places[bucket] += 1


def _keys_of(src: Array, dst: Array, low: int, bits: int, keys: Array) -> None:
    """Write the canonical keys of edges, several at a time by vector instructions."""
    for i in range(len(src)):
        a, b = np.int64(src[i]) - low, np.int64(dst[i]) - low
        least = min(a, b)
        keys[i] = least << bits | a + b - least


def _orient(keys: Array, rank: Array, shift: int, oriented: Array) -> None:
    """Write the keys over the ranks of the ends, the higher rank first."""
    mask = (1 << shift) - 1
    for i in range(len(keys)):
        a, b = np.int64(rank[U(keys[i] >> shift)]), np.int64(rank[U(keys[i] & mask)])
        oriented[i] = max(a, b) << shift | min(a, b)


def _between(keys: Array, first: int, end: int, kept: Array) -> Any:
    """Write the keys with first <= key < end to `kept`, one entry longer than `keys`; return how many."""
    size = np.int64(0)
    for i in range(len(keys)):
        key = keys[i]
        kept[U(size)] = key
        size += np.int64((key >= first) & (key < end))
    return size


def _part(keys: Array, border: int, both: Array, front: Any, behind: Any) -> Any:
    """Write keys below `border` to `both` from `front` on, the others down from `behind`; return the new `front`."""
    for i in range(U(len(keys))):
        key = keys[i]
        both[U(front)] = both[U(behind - 1)] = key  # one of them is overwritten by the next key, without a branch
        below: Any = np.int64(key < border)
        front += below
        behind -= 1 - below
    return front


def _sort_buckets(keys: Array, ends: Array, spare: Array, digits: int, bits: int, low: int) -> None:
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
        source, other, moved = keys[begin:end], spare[:size], False
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
            source, other, moved = other, source, not moved
        if moved:
            for i in range(U(size)):
                other[i] = source[i]
        begin = end


_number, _array = types.int64, types.Array(types.int64, 1, "C")
_ids = {of: types.Array(of, 1, "C", readonly=True) for of in (types.int32, types.int64)}
_given = _ids[types.int64]

ascending = Kernel(_ascending, (_given,))
count_keys = Kernel(_count_keys, (_given, _number, _number, _array))
deal_keys = Kernel(_deal_keys, (_given, _number, _number, _array, _array))
keys_of = {of: Kernel(_keys_of, (ids, ids, _number, _number, _array)) for of, ids in _ids.items()}
orient = Kernel(_orient, (_given, _ids[types.int32], _number, _array))
between = Kernel(_between, (_given, _number, _number, _array))
part = Kernel(_part, (_given, _number, _array, _number, _number))
sort_buckets = Kernel(_sort_buckets, (_array, _given, _array, _number, _number, _number))


class _Computed:
    """Keys that are computed at each reading, one chunk at a time, in cache."""

    def __len__(self) -> int:
        """Number of keys."""
        raise NotImplementedError

    def __getitem__(self, rows: slice) -> Self:
        """A range of them."""
        raise NotImplementedError

    def _write(self, keys: Array) -> None:
        raise NotImplementedError

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


@dataclass(frozen=True)
class Ends(_Computed):
    """Edges that stand for their canonical keys.

    Attributes
    ----------
    src, dst : array of int32 or int64, shape (edges,)
        Both of one type.
    low : int
        The smallest id; keys hold offsets from it.
    shift : int
        Bits of an id in a key.
    """

    src: Array
    dst: Array
    low: int
    shift: int

    def __len__(self) -> int:
        """Number of edges."""
        return len(self.src)

    def __getitem__(self, rows: slice) -> Ends:
        """A range of the edges."""
        return replace(self, src=self.src[rows], dst=self.dst[rows])

    def _write(self, keys: Array) -> None:
        src, dst = map(np.ascontiguousarray, (self.src, self.dst))
        keys_of[types.int32 if src.dtype == np.int32 else types.int64](src, dst, self.low, self.shift, keys)


@dataclass(frozen=True)
class OrientedKeys(_Computed):
    """Canonical keys that stand for the keys over their ends' ranks, the higher rank first.

    Attributes
    ----------
    canonical : array of int64
    rank : array of int32
    shift : int
        Bits of an id in a key.
    """

    canonical: Array
    rank: Array
    shift: int

    def __len__(self) -> int:
        """Number of edges."""
        return len(self.canonical)

    def __getitem__(self, rows: slice) -> OrientedKeys:
        """A range of the edges."""
        return replace(self, canonical=self.canonical[rows])

    def _write(self, keys: Array) -> None:
        orient(self.canonical, self.rank, self.shift, keys)


Keys = Array | Ends | OrientedKeys
"""Keys as an array of int64, or what they are computed from."""


def leading_bits(keys: int, bound: int) -> tuple[int, int]:
    """Choose the number of bits of the leading digit, and of those below it, for `keys` keys below `bound`.

    The digit has at most half of the bits, so that of an edge's key it depends on the high end alone.
    """
    bits = max(1, (bound - 1).bit_length())
    leading = max(0, min(keys.bit_length() - BUCKET, MOST_BITS, bits // 2))
    return leading, bits - leading


def count(keys: Keys, buckets: int, shift: int, base: int = 0) -> Array:
    """Histogram of the leading digits of keys; digits are counted from `base` on."""
    counts = np.zeros(buckets, np.int64)
    for chunk in _chunks(keys):
        count_keys(chunk, shift, base, counts)
    return counts


def deal(keys: Keys, shift: int, places: Array, target: Array, base: int = 0) -> None:
    """Write each key to the next place of its leading digit; `places` is overwritten."""
    for chunk in _chunks(keys):
        deal_keys(chunk, shift, base, places, target)


def _chunks(keys: Keys) -> Iterable[Array]:
    return [keys] if isinstance(keys, np.ndarray) else keys.chunks()


@dataclass(frozen=True)
class Buckets:
    """Keys dealt to buckets by their leading digit.

    Attributes
    ----------
    keys : array of int64
    ends : array of int64, shape (buckets + 1,)
        Ends of the buckets, preceded by 0.
    shift : int
        Bits below the leading digit.
    base : int
        Leading digit of the first bucket: bucket b has the keys from (base + b) << shift on, 1 << shift of them.
    """

    keys: Array
    ends: Array
    shift: int
    base: int = 0

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
            batch_end = max(first + 1, int(np.searchsorted(self.ends, begin + BATCH, side="right")) - 1)
            batch_end = min(batch_end, end)
            keys = self.keys[begin : int(self.ends[batch_end])]
            if digits:
                ends = self.ends[first + 1 : batch_end + 1] - begin
                sort_buckets(keys, ends, spare, digits, -(-bits // digits), low)
            yield first, batch_end, keys
            first = batch_end


def sort(keys: Array, bound: int) -> Array:
    """Sort keys in ascending order, within twice their memory.

    Parameters
    ----------
    keys : array of int64
        0 <= key < bound. Overwritten.
    bound : int

    Returns
    -------
    array of int64
        `keys`, or another array of the same size.
    """
    if len(keys) < FEW:
        return np.sort(keys)
    keys = np.require(keys, np.int64, ("C", "A", "W"))
    return keys if ascending(keys) else _sorted(dealt([keys], bound), keys)


def merge(arrays: list[Keys], bound: int, low: int = 0) -> Array:
    """Sort the keys of several arrays into a new one; the arrays are not changed, and the list is emptied.

    Parameters
    ----------
    arrays : list of arrays of int64, or of Ends
    bound : int
        0 <= key < bound.
    low : int
        Keys that differ only in bits below this one may come in any order.
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
) -> Buckets:
    """Deal the keys of several arrays to buckets in a new array; parameters as for `Backend.dealt`.

    Without a span, keys are read once more to find their smallest and largest.
    """
    if sum(map(len, arrays)) <= BATCH:  # they fit the cache as they are
        together = _together(arrays)
        return Buckets(together, np.array([0, len(together)]), max(1, (bound - 1).bit_length()))
    pieces = [keys[first : first + PIECE] for keys in arrays for first in range(0, len(keys), PIECE)]
    if span is None:  # keys that are computed are not computed once more
        stored = [keys for keys in arrays if isinstance(keys, np.ndarray) and len(keys)]
        spans = [(int(keys.min()), int(keys.max())) for keys in stored]
        spans += [(0, bound)] * (len(stored) < sum(len(keys) > 0 for keys in arrays))
        span = min(first for first, _ in spans), max(end for _, end in spans)
    arrays.clear()
    first, end = span
    _, shift = leading_bits(sum(map(len, pieces)), max(1, end - first))
    base = first >> shift
    counts = np.array(calls(count, list(pieces), (end >> shift) - base + 1, shift, base))
    ends = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places = np.cumsum(counts, axis=0)  # where each piece writes the keys of each bucket: behind those of former pieces
    places += ends[:-1] - counts
    target, placed = np.empty(int(ends[-1]), np.int64), list(zip(pieces, places, strict=True))
    pieces.clear()  # so that each array is freed once its keys are dealt
    calls(_deal_piece, placed, shift, target, base)
    return Buckets(target, ends, shift, base)


def _deal_piece(piece: tuple[Keys, Array], shift: int, target: Array, base: int) -> None:
    deal(piece[0], shift, piece[1], target, base)


def _together(arrays: list[Keys]) -> Array:
    """Concatenate keys in a new array, and empty the list."""
    stored, arrays[:] = [keys if isinstance(keys, np.ndarray) else keys.keys() for keys in arrays], []
    return np.concatenate([np.empty(0, np.int64), *stored])


def select(keys: Keys, first: int, end: int) -> Array:
    """Copy the keys with first <= key < end to an array of their own."""
    selection, size = np.empty(len(keys) + 1, np.int64), 0
    for chunk in _chunks(keys):
        size += int(between(chunk, first, end, selection[size:]))
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
        front = int(part(chunk, starts[middle], halves, front, back))
        back -= len(chunk) - (front - old_front)
    return split(halves[:front], starts[:middle]) + split(halves[front:], starts[middle + 1 :])


def warm() -> None:
    """Compile this module's kernels, or load them from the cache."""
    for kernel in (ascending, between, count_keys, deal_keys, *keys_of.values(), orient, part, sort_buckets):
        kernel.load()
