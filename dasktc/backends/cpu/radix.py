"""Sorting of non-negative keys by radix, from the lowest digit up: time linear in their number.

One pass counts every digit's values; then each digit moves the keys, in order, to where its value
starts. A digit that all keys share is passed over.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dasktc.backends.cpu.jit import Kernel, inlined
from dasktc.backends.csr import Array

__all__ = ["low_digits", "sort", "sort_low"]

DIGIT = 10
"""Most bits of a digit: 1024 places written to in turn suit a second level cache."""
FEW = 2048
"""Fewer keys than this NumPy sorts sooner."""

U = np.uint64


@inlined
def _ascending(keys: Array) -> bool:
    ascending = True
    i = 1
    while ascending and i < len(keys):
        ascending = keys[U(i - 1)] <= keys[U(i)]
        i += 1
    return ascending


@inlined
def _count_digits(keys: Array, counts: Array, bits: int) -> None:
    for i in range(U(len(keys))):
        key = U(keys[i])
        for d in range(U(len(counts))):
            counts[d, key & U((1 << bits) - 1)] += 1
            key >>= U(bits)


@inlined
def _move(keys: Array, target: Array, places: Array, shift: int, bits: int) -> None:
    for i in range(U(len(keys))):
        digit = (U(keys[i]) >> U(shift)) & U((1 << bits) - 1)
        target[U(places[digit])] = keys[i]
        places[digit] += 1


def _radix_sort(keys: Array, spare: Array, digits: int, bits: int) -> Array:
    """Sort within the two arrays; return the one that holds the result."""
    if _ascending(keys):
        return keys
    counts = np.zeros((digits, 1 << bits), np.int64)
    _count_digits(keys, counts, bits)
    for d in range(digits):
        places = counts[d]
        if places.max() == len(keys):
            continue
        first = 0
        for value in range(1 << bits):
            size = places[value]
            places[value] = first
            first += size
        _move(keys, spare, places, d * bits, bits)
        keys, spare = spare, keys
    return keys


def _sort_low(keys: Array, spare: Array, digits: int, bits: int) -> Array:
    """Sort by the lowest digits alone, within the two arrays; return the one that holds the result."""
    counts = np.zeros((digits, 1 << bits), np.int64)
    _count_digits(keys, counts, bits)
    for d in range(digits):
        places = counts[d]
        first = 0
        for value in range(1 << bits):
            size = places[value]
            places[value] = first
            first += size
        _move(keys, spare, places, d * bits, bits)
        keys, spare = spare, keys
    return keys


_keys = types.Array(types.int64, 1, "C")

radix_sort = Kernel(_radix_sort, (_keys, _keys, types.int64, types.int64))
low_sort = Kernel(_sort_low, (_keys, _keys, types.int64, types.int64))


def low_digits(bits: int) -> tuple[int, int]:
    """Digits, and bits of each, that `sort_low` sorts so many bits by."""
    digits = max(1, -(-bits // DIGIT))
    return digits, max(1, -(-bits // digits))


def sort_low(keys: Array, bits: int) -> Array:
    """Sort keys by so many of their lowest bits, and those that fill the last digit; what is above travels along.

    Parameters
    ----------
    keys : array of int64
        Not negative. Overwritten.
    bits : int

    Returns
    -------
    array of int64
        `keys`, or another array of its size.
    """
    return low_sort(keys, np.empty_like(keys), *low_digits(bits))


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
    bits = max(1, (bound - 1).bit_length())
    digits = -(-bits // DIGIT)
    return radix_sort(keys, np.empty_like(keys), digits, -(-bits // digits))
