"""Sorts, orients and builds blocks with threads of one process, which write to arrays that they share."""

from __future__ import annotations

from dasktc.backends.cpu import edges, radix
from dasktc.backends.csr import Array

__all__ = ["CpuSharedArrays"]


class CpuSharedArrays:
    """The parts of a sort, of orientation and of a block's building that threads make at the same time.

    Attributes
    ----------
    Buckets, leading_bits, count, deal
        Those of `radix`.
    proper
        That of `edges`.
    """

    Buckets = radix.Buckets
    leading_bits = staticmethod(radix.leading_bits)
    count = staticmethod(radix.count)
    deal = staticmethod(radix.deal)

    proper = staticmethod(edges.proper)

    def ends(self, src: Array, dst: Array, low: int, shift: int) -> radix.Ends:
        """Edges of ids from `low` on, which stand for their canonical keys."""
        src, dst = edges.of_one_type(src, dst)
        return radix.Ends(src, dst, low, shift)

    def array(self, keys: radix.Keys) -> Array:
        """The keys in an array, in the same order."""
        return keys.keys() if isinstance(keys, radix.Ends) else keys

    def orient(self, keys: Array, rank: Array, shift: int) -> Array:
        """Write the keys of the ends' ranks, the higher one first, over the keys."""
        edges.orient(keys, rank, shift, keys)
        return keys

    def write_rows(self, keys: Array, start: int, columns: int, first: int, offsets: Array, numbers: Array) -> None:
        """Write offsets and columns of rows of ascending keys to parts of a block's arrays.

        Parameters
        ----------
        keys : array of int64
            start + row * columns + column each.
        start, columns : int
        first : int
            Edges of the block before these.
        offsets : array of int64, shape (rows + 1,)
        numbers : array of int32, shape (edges,)
        """
        edges.rows(keys, start, columns, first, offsets, numbers)
