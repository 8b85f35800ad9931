"""Finds the distinct integer ids of a graph, and looks ids up among them, for ids that are no narrow range."""

# CPU seconds of one thread for 2 × 2.4 M ids of ego-Twitter among 81,306: pandas' hash table, which is made for each
# column and returns places of 64 bits, 0.16 to 0.19; this one 0.04 to 0.05. Distinct values took pandas and a sort 2.1
# (ego-Twitter), 1.5 (a million ids in 4 M values) and 5 (2 M values without repeats) times as long.

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.jit import ConstIds, ConstInt32s, ConstInt64s, Int32s, Int64s, Kernel, KernelOfIds, inlined
from dasktc.backends.csr import Array
from dasktc.backends.wedge_sample import MULTIPLIERS

__all__ = ["distinct", "lookup"]

MANY = 16
"""Values for each id from which a hash table of all ids is made; fewer are searched for."""
LEAST_BITS, GROWTH = 14, 2
"""Of a table of distinct values: bits of the number of slots at first, and those added where half of them are taken."""
NOWHERE = -1
"""Place of no id."""

U = np.uint64
_FACTOR = U(MULTIPLIERS[0])


@inlined
def _slot(value: Any, bits: Any) -> Any:
    """Where to begin to look for a value in a table of 2^bits slots."""
    x = U(value)
    return ((x ^ (x >> U(32))) * _FACTOR) >> U(64 - bits)


@Kernel
def _enter(ids: ConstInt64s, bits: int, slots: Int32s) -> None:
    """Enter the place of each id in the first free slot from its own on."""
    mask = U((1 << bits) - 1)
    for place in range(len(ids)):
        slot = _slot(ids[place], bits)
        while slots[slot] != NOWHERE:
            slot = (slot + U(1)) & mask
        slots[slot] = place


@KernelOfIds
def _find(values: ConstIds, ids: ConstInt64s, bits: int, slots: ConstInt32s, places: Int32s) -> None:
    mask = U((1 << bits) - 1)
    for i in range(len(values)):
        value = np.int64(values[i])
        slot = _slot(value, bits)
        while slots[slot] != NOWHERE and ids[U(slots[slot])] != value:
            slot = (slot + U(1)) & mask
        places[i] = slots[slot]


@KernelOfIds
def _collect(values: ConstIds, start: int, bits: int, slots: Int32s, members: Int64s, size: int) -> tuple[int, int]:
    """Append the values that are no members yet to the `size` members; return how far they fit, and the new size."""
    mask = U((1 << bits) - 1)
    for i in range(start, len(values)):
        value = np.int64(values[i])
        slot = _slot(value, bits)
        while slots[slot] != NOWHERE and members[U(slots[slot])] != value:
            slot = (slot + U(1)) & mask
        if slots[slot] == NOWHERE:
            if size == len(members):
                return i, size
            slots[slot], members[size] = size, value
            size += 1
    return len(values), size


def distinct(values: Array) -> Array:
    """Find the distinct values, ascending; see `protocol.Backend.distinct`.

    A hash table drops repeats first, so that V and not 2E values are sorted.

    Parameters
    ----------
    values : array of integers

    Returns
    -------
    array of int64
    """
    values, members, bits, size, place = _plain(values), np.empty(0, np.int64), LEAST_BITS, 0, 0
    while True:
        members = np.concatenate([members, np.empty((1 << bits - 1) - size, np.int64)])
        slots = np.full(1 << bits, NOWHERE, np.int32)
        _enter(members[:size], bits, slots)
        place, size = _collect(values, place, bits, slots, members, size)
        if place == len(values):
            return np.sort(members[:size])
        bits += GROWTH


def _plain(values: Array) -> Array:
    """Contiguous values of one of the types for which kernels are compiled."""
    return np.ascontiguousarray(values, np.int32 if values.dtype == np.int32 else np.int64)


def lookup(ids: Array, values: Array) -> Array:
    """Find the place of each value among ascending ids; see `protocol.Backend.lookup`.

    Parameters
    ----------
    ids : array of int64, shape (V,)
        Ascending and distinct.
    values : array of integers

    Returns
    -------
    array of int32
    """
    ids, places = np.ascontiguousarray(ids, np.int64), np.empty(len(values), np.int32)
    if len(values) <= MANY * len(ids):
        order = np.argsort(values)
        places[order] = ids.searchsorted(values[order])
        return places
    bits = len(ids).bit_length() + 1  # so that at most half of the slots are taken
    slots = np.full(1 << bits, NOWHERE, np.int32)
    _enter(ids, bits, slots)
    _find(_plain(values), ids, bits, slots, places)
    return places
