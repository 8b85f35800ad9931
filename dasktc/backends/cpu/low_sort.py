"""Sorts words by their lowest bits alone; the bits above travel along."""

from __future__ import annotations

import numpy as np
from numba import types

from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.csr import Array

__all__ = ["low_digits", "low_sort", "sort_low"]

DIGIT = 10
"""Most bits of a digit: writing to 1024 places in turn suits a second level cache."""

U = np.uint64


def _sort_low(words: Array, spare: Array, digits: int, bits: int) -> Array:
    """Sort by the lowest digits, using both arrays; return the one that holds the result."""
    mask = U((1 << bits) - 1)
    counts = np.zeros((digits, 1 << bits), np.int64)
    for i in range(U(len(words))):
        word = U(words[i])
        for d in range(U(digits)):
            counts[d, word & mask] += 1
            word >>= U(bits)
    for d in range(digits):
        places, first, shift = counts[d], 0, U(d * bits)
        for value in range(1 << bits):
            size = places[value]
            places[value] = first
            first += size
        for i in range(U(len(words))):
            digit = (U(words[i]) >> shift) & mask
            spare[U(places[digit])] = words[i]
            places[digit] += 1
        words, spare = spare, words
    return words


_words = types.Array(types.int64, 1, "C")

low_sort = Kernel(_sort_low, (_words, _words, types.int64, types.int64))


def low_digits(bits: int) -> tuple[int, int]:
    """Number of digits, and bits of each, with which `sort_low` sorts the given number of bits."""
    digits = max(1, -(-bits // DIGIT))
    return digits, max(1, -(-bits // digits))


def sort_low(words: Array, bits: int) -> Array:
    """Sort words by their `bits` lowest bits, and by further bits that fill the last digit.

    Parameters
    ----------
    words : array of int64
        Not negative. Overwritten.
    bits : int

    Returns
    -------
    array of int64
        `words`, or another array of the same size.
    """
    return low_sort(words, np.empty_like(words), *low_digits(bits))
