"""Sorting, orientation and block building in which threads of one process write to shared arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dasktc.backends.cpu import edges, radix
from dasktc.backends.csr import Array

__all__ = ["CpuSharedArrays"]


class CpuSharedArrays:
    """The steps of a sort, of orientation and of building a block that several threads make at the same time.

    Attributes
    ----------
    Buckets, leading_bits, count, deal, dealt
        Those of module `radix`.
    proper
        That of module `edges`.
    """

    Buckets = radix.Buckets
    leading_bits = staticmethod(radix.leading_bits)
    count = staticmethod(radix.count)
    deal = staticmethod(radix.deal)
    dealt = staticmethod(radix.dealt)

    proper = staticmethod(edges.proper)

    def ends(self, src: Array, dst: Array, low: int, shift: int) -> radix.Ends:
        """Edges with ids from `low` on, which stand for their canonical keys."""
        src, dst = edges.of_one_type(src, dst)
        return radix.Ends(src, dst, low, shift)

    def oriented(self, keys: Array, rank: Array, shift: int) -> radix.OrientedKeys:
        """Canonical keys that stand for the keys over their ends' ranks."""
        return radix.OrientedKeys(keys, rank, shift)

    def orient(self, keys: Array, rank: Array, shift: int) -> Array:
        """Replace keys by the keys over their ends' ranks, the higher rank first."""
        radix.orient(keys, rank, shift, keys)
        return keys

    def rows(self, batches: Iterable[Array], size: int, start: int, count: int, columns: int) -> tuple[Array, Array]:
        """Offsets and columns of `count` rows, as `CpuEdges.rows`, from `size` ascending keys in batches."""
        offsets, numbers, row, edge = np.zeros(count + 1, np.int64), np.empty(size, np.int32), 0, 0
        for keys in batches:
            row = edges.rows(keys, start, columns, edge, row, offsets, numbers[edge : edge + len(keys)])
            edge += len(keys)
        offsets[row + 1 :] = edge
        return offsets, numbers

    def write_rows(self, keys: Array, start: int, columns: int, first: int, offsets: Array, numbers: Array) -> None:
        """Write the offsets and columns of the rows of ascending keys into parts of a block's arrays.

        Parameters
        ----------
        keys : array of int64
            Each start + row * columns + column.
        start, columns : int
        first : int
            Number of the block's edges before these.
        offsets : array of int64, shape (rows + 1,)
        numbers : array of int32, shape (edges,)
        """
        offsets[0] = first
        offsets[edges.rows(keys, start, columns, first, 0, offsets, numbers) + 1 :] = first + len(keys)
