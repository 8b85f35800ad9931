"""Sorted edge columns on the CPU: compiled passes relabel a block's edges and sort them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu import radix
from dasktc.backends.cpu.jit import ConstInt32s, ConstInt64Rows, ConstInt64s, Int64Rows, Int64s, Kernel
from dasktc.backends.csr import Array, aligned

__all__ = ["ascending", "keys_of_block"]

U = np.uint64
SHIFT = 32
"""Bits of an id in a key."""
WORD = 63
"""Most bits of a key and its value that are packed into one word, the key on top."""


@Kernel
def _keys(
    offsets: ConstInt64s,
    columns: ConstInt32s,
    row_ids: ConstInt32s,
    column_ids: ConstInt32s,
    values: ConstInt32s,
    start: int,
    stop: int,
    first: int,
    oriented: bool,
    edges: Int64Rows,
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


@Kernel
def _largest(edges: ConstInt64Rows) -> Any:
    high = low = value = np.int64(0)
    for i in range(U(edges.shape[1])):
        high, low = max(high, edges[0, i] >> SHIFT), max(low, edges[0, i] & np.int64((1 << SHIFT) - 1))
        value = max(value, edges[1, i])
    return high, low, value


@Kernel
def _pack(edges: ConstInt64Rows, low_bits: int, value_bits: int, words: Int64s) -> None:
    for i in range(U(edges.shape[1])):
        key = edges[0, i]
        ends = (key >> SHIFT) << low_bits | (key & np.int64((1 << SHIFT) - 1))
        words[i] = ends << value_bits | edges[1, i]


@Kernel
def _unpack(words: ConstInt64s, low_bits: int, value_bits: int, high: Int64s, low: Int64s, values: Int64s) -> None:
    for i in range(U(len(words))):
        word = words[i]
        values[i] = word & ((np.int64(1) << value_bits) - 1)
        low[i] = word >> value_bits & ((np.int64(1) << low_bits) - 1)
        high[i] = word >> value_bits + low_bits


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
    _keys(offsets, columns, *columns_of_edges, start, stop, first, oriented, edges)
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
    high_bits, low_bits, value_bits = (int(number).bit_length() for number in _largest(edges)) if size else (0, 0, 0)
    bits = high_bits + low_bits + value_bits
    if bits > WORD:
        place = edges[0].argsort()
        ends = edges[0].take(place)
        return ends >> SHIFT, ends & ((1 << SHIFT) - 1), edges[1].take(place)
    words = np.empty(size, np.int64)
    _pack(edges, low_bits, value_bits, words)
    words = radix.merge([words], 1 << bits, value_bits)
    high, low, values = (np.empty(size, np.int64) for _ in range(3))
    _unpack(words, low_bits, value_bits, high, low, values)
    return high, low, values
