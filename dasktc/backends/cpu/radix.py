"""Sorting of non-negative keys by radix, the leading digit first: time linear in their number.

Two passes over memory count the values of the leading digit and deal the keys out to as many buckets. Each bucket is
then sorted by the other digits, from the lowest up, in a second level cache. Keys of several arrays are dealt out to
one with no copy in between, and so are keys that are yet to be made of edges (`Ends`). Threads may share all of it: no
two write to the same place when they count and deal out different arrays, and sort different buckets.
"""

# Kronecker 20, 16.8 M keys of 40 bits in 16 arrays, milliseconds on one core:
#                                  concatenate  count  deal  rest   all
# from the lowest digit up, 10 bits         33           292        325
# 10 bits first, then 3 of 10                      19    60   155   234
# 12 bits first, then 3 of 10                      22    65   133   220
# 14 bits first, then 3 of  9                      22    78   112   212
# 12 bits first, then 2 of 14                      22    67   136   225

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numba import types

from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.csr import Array

__all__ = ["BATCH", "FEW", "Buckets", "Ends", "Keys", "count", "deal", "leading_bits", "merge", "sort", "warm"]

BUCKET, MOST_BITS = 13, 12
"""Binary logarithms: keys of a bucket, were they spread evenly, times two; and the most buckets."""
DIGIT = 10
"""Most bits of the digits that buckets are sorted by: 1024 places written to in turn suit a first level cache."""
FEW = 2048
"""Fewer keys than this NumPy sorts sooner."""
FEWER = 48
"""Keys of a bucket that are sorted by insertion: the other digits' counters alone would take longer."""
BATCH = 1 << 16
"""Keys of neighbouring buckets that are handed on together, while they are in cache; of one large bucket more."""

U = np.uint64


def _ascending(keys: Array) -> bool:
    ascends = True
    i = 1
    while ascends and i < len(keys):
        ascends = keys[U(i - 1)] <= keys[U(i)]
        i += 1
    return ascends


def _count_keys(keys: Array, shift: int, counts: Array) -> None:
    for i in range(U(len(keys))):
        counts[U(keys[i]) >> U(shift)] += 1


def _deal_keys(keys: Array, shift: int, places: Array, target: Array) -> None:
    for i in range(U(len(keys))):
        bucket = U(keys[i]) >> U(shift)
        target[U(places[bucket])] = keys[i]
        places[bucket] += 1


def _count_ends(src: Array, dst: Array, low: int, bits: int, shift: int, counts: Array) -> None:
    for i in range(U(len(src))):
        a, b = np.int64(src[i]) - low, np.int64(dst[i]) - low
        counts[U(min(a, b) << bits | max(a, b)) >> U(shift)] += 1


def _deal_ends(src: Array, dst: Array, low: int, bits: int, shift: int, places: Array, target: Array) -> None:
    for i in range(U(len(src))):
        a, b = np.int64(src[i]) - low, np.int64(dst[i]) - low
        key = min(a, b) << bits | max(a, b)
        bucket = U(key) >> U(shift)
        target[U(places[bucket])] = key
        places[bucket] += 1


def _sort_buckets(keys: Array, ends: Array, spare: Array, digits: int, bits: int) -> None:
    """Sort each of the buckets that end at `ends`, the first from 0 on, by their lowest `digits` of so many bits."""
    mask, begin = U((1 << bits) - 1), 0
    counts = np.empty((digits, 1 << bits), np.int64)
    for end in ends:
        size = end - begin
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
        given, other, moved = keys[begin:end], spare[:size], False
        for i in range(U(size)):
            key = U(given[i])
            for d in range(U(digits)):
                counts[d, key & mask] += 1
                key >>= U(bits)
        for d in range(digits):
            places, first, most = counts[d], 0, 0
            for value in range(1 << bits):
                number = places[value]
                places[value] = first
                first, most = first + number, max(most, number)
            if most == size:
                continue
            shift = U(d * bits)
            for i in range(U(size)):
                digit = (U(given[i]) >> shift) & mask
                other[U(places[digit])] = given[i]
                places[digit] += 1
            given, other, moved = other, given, not moved
        if moved:
            for i in range(U(size)):
                other[i] = given[i]
        begin = end


_number, _made = types.int64, types.Array(types.int64, 1, "C")
_ends = {ids: types.Array(ids, 1, "C", readonly=True) for ids in (types.int32, types.int64)}
_given = _ends[types.int64]

ascending = Kernel(_ascending, (_given,))
count_keys = Kernel(_count_keys, (_given, _number, _made))
deal_keys = Kernel(_deal_keys, (_given, _number, _made, _made))
count_ends = {ids: Kernel(_count_ends, (of, of, *[_number] * 3, _made)) for ids, of in _ends.items()}
deal_ends = {ids: Kernel(_deal_ends, (of, of, *[_number] * 3, _made, _made)) for ids, of in _ends.items()}
sort_buckets = Kernel(_sort_buckets, (_made, _given, _made, _number, _number))


@dataclass(frozen=True)
class Ends:
    """Edges whose canonical keys are made while they are dealt out.

    Attributes
    ----------
    src, dst : array of int32 or int64, shape (edges,)
        Of one type.
    low : int
        The smallest id: keys have distances from it.
    shift : int
        Bits an id takes in a key.
    """

    src: Array
    dst: Array
    low: int
    shift: int

    def __len__(self) -> int:
        """Number of edges."""
        return len(self.src)

    def __getitem__(self, rows: slice) -> Ends:
        """Some of the edges."""
        return Ends(self.src[rows], self.dst[rows], self.low, self.shift)

    def count(self, shift: int, counts: Array) -> None:
        """Count the leading digits of the keys: what is left of them when shifted."""
        count_ends[self._type](*self._ends, self.low, self.shift, shift, counts)

    def deal(self, shift: int, places: Array, target: Array) -> None:
        """Write each key to the place of its leading digit, and move that place on."""
        deal_ends[self._type](*self._ends, self.low, self.shift, shift, places, target)

    @property
    def _ends(self) -> list[Array]:
        return [np.ascontiguousarray(end) for end in (self.src, self.dst)]

    @property
    def _type(self) -> Any:
        return types.int32 if self.src.dtype == np.int32 else types.int64


Keys = Array | Ends
"""Keys as an array of int64, or as what they are made of."""


def leading_bits(keys: int, bound: int) -> tuple[int, int]:
    """The bits of the leading digit, and those below it, of so many keys below a bound.

    The digit has at most half of the bits: of an edge's key it says no more than about the high end.
    """
    bits = max(1, (bound - 1).bit_length())
    leading = max(0, min(keys.bit_length() - BUCKET, MOST_BITS, bits // 2))
    return leading, bits - leading


def count(keys: Keys, leading: int, shift: int) -> Array:
    """How many keys have each leading digit."""
    counts = np.zeros(1 << leading, np.int64)
    keys.count(shift, counts) if isinstance(keys, Ends) else count_keys(keys, shift, counts)
    return counts


def deal(keys: Keys, shift: int, places: Array, target: Array) -> None:
    """Write each key to the place of its leading digit; `places` is overwritten."""
    keys.deal(shift, places, target) if isinstance(keys, Ends) else deal_keys(keys, shift, places, target)


@dataclass(frozen=True)
class Buckets:
    """Keys dealt out by their leading digit.

    Attributes
    ----------
    keys : array of int64
    ends : array of int64, shape (buckets + 1,)
        Where buckets end, after a 0.
    shift : int
        Bits below the leading digit: bucket b has the keys from b << shift on, up to those of the next one.
    """

    keys: Array
    ends: Array
    shift: int

    def ranges(self, most: int) -> list[tuple[int, int]]:
        """At most so many ranges of buckets, of about as many keys each: first bucket, and the one after the last."""
        wanted = np.arange(1, most) * len(self.keys) // most
        cuts = np.searchsorted(self.ends, wanted, side="right").tolist()
        return [pair for pair in pairwise([0, *cuts, len(self.ends) - 1]) if pair[0] < pair[1]]

    def sorted(self, first: int, end: int, spare: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Sort the buckets of a range, some at a time.

        Parameters
        ----------
        first, end : int
        spare : array of int64, optional
            Overwritten; as long as the largest bucket. Default: a new one.

        Yields
        ------
        first, end : int
            Buckets that are sorted.
        keys : array of int64
            Theirs, ascending: a slice of `keys`.
        """
        if spare is None:
            spare = np.empty(int(np.diff(self.ends[first : end + 1]).max(initial=0)), np.int64)
        digits = max(1, -(-self.shift // DIGIT))
        while first < end:
            begin = int(self.ends[first])
            behind = max(first + 1, int(np.searchsorted(self.ends, begin + BATCH, side="right")) - 1)
            behind = min(behind, end)
            keys = self.keys[begin : int(self.ends[behind])]
            sort_buckets(keys, self.ends[first + 1 : behind + 1] - begin, spare, digits, -(-self.shift // digits))
            yield first, behind, keys
            first = behind


def sort(keys: Array, bound: int) -> Array:
    """Sort keys in ascending order, in twice their memory.

    Parameters
    ----------
    keys : array of int64
        0 <= key < bound. Overwritten.
    bound : int

    Returns
    -------
    array of int64
        `keys`, or another array of its size.
    """
    if len(keys) < FEW:
        return np.sort(keys)
    keys = np.require(keys, np.int64, ("C", "A", "W"))
    return keys if ascending(keys) else _sorted([keys], bound, keys)


def merge(arrays: list[Keys], bound: int) -> Array:
    """The keys of several arrays in a new one, ascending; the arrays stay as they are, and the list is emptied.

    Parameters
    ----------
    arrays : list of arrays of int64, or of Ends
    bound : int
        0 <= key < bound.
    """
    given, arrays[:] = list(arrays), []
    if sum(map(len, given)) < FEW and not any(isinstance(keys, Ends) for keys in given):
        return np.sort(np.concatenate([np.empty(0, np.int64), *given]))
    return _sorted(given, bound)


def _sorted(arrays: Sequence[Keys], bound: int, spare: Array | None = None) -> Array:
    """As `merge`; the spare array is overwritten once all keys are dealt out, so it may be one of them."""
    total = sum(map(len, arrays))
    leading, shift = leading_bits(total, bound)
    counts = [count(keys, leading, shift) for keys in arrays]
    ends = np.concatenate([[0], np.cumsum(np.sum(counts, axis=0, dtype=np.int64, initial=0))])
    target, places = np.empty(total, np.int64), ends[:-1].copy()
    for keys in arrays:
        deal(keys, shift, places, target)
    buckets = Buckets(target, ends, shift)
    for _ in buckets.sorted(0, len(ends) - 1, spare):
        pass
    return target


def warm() -> None:
    """Compile, or load from the cache, all of it."""
    for kernel in (ascending, count_keys, deal_keys, sort_buckets, *count_ends.values(), *deal_ends.values()):
        kernel.load()
