"""Sorted edge columns on the CPU: compiled passes relabel a block's edges and sort them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.cpu.low_sort import low_digits, low_sort, sort_low
from dasktc.backends.csr import Array, aligned

__all__ = ["ascending", "keys_of_block", "warm"]

U = np.uint64
SHIFT = 32
"""Bits of an id in a key."""
WORD = 63
"""Most bits of a key and its value that are packed into one word, the value on top; sorting such words takes a third of
the time of sorting keys and places."""


def _keys(
    offsets: Array,
    columns: Array,
    row_ids: Array,
    column_ids: Array,
    values: Array,
    start: int,
    stop: int,
    first: int,
    oriented: bool,
    edges: Array,
) -> None:
    row, p = first, start
    while p < stop:
        u, end = np.int64(row_ids[U(row)]), min(stop, offsets[U(row + 1)])
        while p < end:
            v, i = np.int64(column_ids[U(columns[U(p)])]), U(p - start)
            edges[0, i] = u << SHIFT | v if oriented or u < v else v << SHIFT | u
            edges[1, i] = values[U(p)]
            p += 1
        row += 1


def _largest(edges: Array) -> Any:
    high = low = value = np.int64(0)
    for i in range(U(edges.shape[1])):
        high, low = max(high, edges[0, i] >> SHIFT), max(low, edges[0, i] & np.int64((1 << SHIFT) - 1))
        value = max(value, edges[1, i])
    return high, low, value


def _pack(edges: Array, bits: int, below: int, words: Array) -> None:
    for i in range(U(edges.shape[1])):
        key = edges[0, i]
        ends = (key >> SHIFT) << bits | (key & np.int64((1 << SHIFT) - 1))
        words[i] = edges[1, i] << below | ends


def _unpack(words: Array, bits: int, below: int, high: Array, low: Array, values: Array) -> None:
    for i in range(U(len(words))):
        word = words[i]
        values[i] = word >> below
        low[i] = word & ((np.int64(1) << bits) - 1)
        high[i] = (word & ((np.int64(1) << below) - 1)) >> bits


_number, _numbers = types.int64, types.Array(types.int64, 1, "C")
_given64, _given32 = (types.Array(dtype, 1, "C", readonly=True) for dtype in (types.int64, types.int32))
_pairs, _given_pairs = types.Array(types.int64, 2, "C"), types.Array(types.int64, 2, "C", readonly=True)

keys = Kernel(
    _keys, (_given64, _given32, _given32, _given32, _given32, _number, _number, _number, types.boolean, _pairs)
)
largest = Kernel(_largest, (_given_pairs,))
pack = Kernel(_pack, (_given_pairs, _number, _number, _numbers))
unpack = Kernel(_unpack, (_numbers, _number, _number, _numbers, _numbers, _numbers))


def keys_of_block(
    offsets: Array,
    columns: Array,
    row_ids: Array,
    column_ids: Array,
    values: Array,
    start: int,
    stop: int,
    oriented: bool = False,
) -> Array:
    """Make the keys of a range of a block's edges, over other ids.

    Parameters
    ----------
    offsets : array of int64
    columns : array of int32
        Columns of the block.
    row_ids, column_ids : array of int32
        The new ids of its rows and columns.
    values : array of int32
        Value of each of the block's edges.
    start, stop : int
        The range of edges, columns[start:stop].
    oriented : bool
        Put the row's id into the upper 32 bits of a key; else the smaller id.

    Returns
    -------
    array of int64, shape (2, stop - start)
        The keys, and below them the values.
    """
    edges = np.empty((2, max(0, stop - start)), np.int64)
    first = max(0, int(np.searchsorted(offsets, start, side="right")) - 1)
    columns_of_edges = (np.ascontiguousarray(ids, np.int32) for ids in (row_ids, column_ids, aligned(values)))
    keys(offsets, columns, *columns_of_edges, start, stop, first, oriented, edges)
    return edges


def ascending(edges: Array) -> tuple[Array, Array, Array]:
    """Sort keys; return their upper ids, lower ids and values in ascending order of the keys.

    Parameters
    ----------
    edges : array of int64, shape (2, edges)
        Keys as `keys_of_block` returns them, and below them non-negative values.

    Returns
    -------
    high, low, values : array of int64
    """
    edges = np.ascontiguousarray(aligned(edges))
    size = edges.shape[1]
    top, bits, number_bits = (int(number).bit_length() for number in largest(edges)) if size else (0, 0, 0)
    digits, width = low_digits(top + bits)
    below = digits * width
    if below + number_bits > WORD:
        place = edges[0].argsort()
        ends = edges[0].take(place)
        return ends >> SHIFT, ends & ((1 << SHIFT) - 1), edges[1].take(place)
    words = np.empty(size, np.int64)
    pack(edges, bits, below, words)
    words = sort_low(words, top + bits)
    high, low, values = (np.empty(size, np.int64) for _ in range(3))
    unpack(words, bits, below, high, low, values)
    return high, low, values


def warm() -> None:
    """Compile this module's kernels, or load them from the cache."""
    for kernel in (keys, largest, pack, low_sort, unpack):
        kernel.load()
