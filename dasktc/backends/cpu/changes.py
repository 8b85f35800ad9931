"""Finds the triangles with changed edges: the neighbours of one end are looked up among those of the other, in a block.

A neighbour closes a triangle if the block has its edge to the other end, or if that edge is added. The former takes a
bisection of a row. The latter takes one of the changed edges, unless a bitmap of their hashes has no such edge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.intersect import last_not_above
from dasktc.backends.cpu.jit import ConstInt32s, ConstInt64s, Int64s, Kernel, inlined
from dasktc.backends.csr import Array
from dasktc.backends.wedge_sample import MULTIPLIERS

__all__ = ["add_changes"]

U = np.uint64
_FACTOR = U(MULTIPLIERS[0])
_BYTES_OF_EDGE = 8
"""Least bytes of the bitmap, of one byte for each hash, for a changed edge."""


@inlined
def _hash(key: Any, bits: Any) -> Any:
    return (U(key) * _FACTOR) >> U(64 - bits)


@inlined
def _place(values: Array, first: Any, end: Any, x: Any) -> Any:
    """The place of x among the ascending values from first to end, or the end."""
    if first >= end:
        return end
    place = last_not_above(values, first, end, x)
    return place if values[U(place)] == x else end


@Kernel
def add_changes(
    edges: ConstInt64s,
    signs: ConstInt64s,
    pivots: ConstInt64s,
    targets: ConstInt64s,
    starts: ConstInt64s,
    ends: ConstInt64s,
    neighbours: ConstInt64s,
    shift: int,
    offsets: ConstInt64s,
    columns: ConstInt32s,
    parts: int,
    row_first: int,
    column_first: int,
    edge_changes: Int64s,
    neighbour_changes: Int64s,
) -> None:
    """Add the change of the triangles whose edge opposite to the pivot belongs in a block.

    Parameters
    ----------
    edges : array of int64
        Keys `high << shift | low` of the changed edges, ascending.
    signs : array of int64
        1 for an edge that is added, -1 for one that is removed; and a 0 after the last.
    pivots, targets : array of int64
        One end of each changed edge, and the other.
    starts, ends : array of int64
        The range of the neighbours of each pivot.
    neighbours : array of int64
        Keys `pivot << shift | neighbour` in the old graph with the added edges.
    shift : int
    offsets, columns
        Of the old block, with which both ids are `number * parts + first`.
    parts, row_first, column_first : int
    edge_changes, neighbour_changes : array of int64
        Added to: the change at each changed edge, and at each neighbour.
    """
    count, rows, bits = len(edges), len(offsets) - 1, 1
    while 1 << bits < _BYTES_OF_EDGE * count:
        bits += 1
    is_changed = np.zeros(1 << bits, np.bool_)
    for number in range(count):
        is_changed[_hash(edges[U(number)], bits)] = True
    for number in range(count):
        pivot, target, sign = pivots[U(number)], targets[U(number)], signs[U(number)]
        for p in range(starts[U(number)], ends[U(number)]):
            third = neighbours[U(p)] & ((1 << shift) - 1)
            high, low = max(target, third), min(target, third)
            row, column = high, low
            if parts > 1:
                row, column = high // parts, low // parts
                if high != row * parts + row_first or low != column * parts + column_first:
                    continue
            key, opposite = high << shift | low, count
            if is_changed[_hash(key, bits)]:
                opposite = _place(edges, 0, count, key)
            if signs[U(opposite)] <= 0:
                if row >= rows:
                    continue
                end = offsets[U(row + 1)]
                if _place(columns, offsets[U(row)], end, column) == end:
                    continue
            key, beside = max(pivot, third) << shift | min(pivot, third), count
            if is_changed[_hash(key, bits)]:
                beside = _place(edges, 0, count, key)
            if min(opposite, beside) < number:  # the triangle belongs to the first of its changed edges
                continue
            # One with an added and a removed edge was never in a graph.
            most = max(sign, signs[U(opposite)], signs[U(beside)])
            least = min(sign, signs[U(opposite)], signs[U(beside)])
            change = (1 if most > 0 else 0) - (1 if least < 0 else 0)
            edge_changes[U(number)] += change
            neighbour_changes[U(p)] += change
