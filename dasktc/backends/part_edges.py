"""Edges of parts with proxies, by array arithmetic; a chunk of keys at a time, so that intermediates stay in cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

__all__ = ["HEAD", "LOCAL", "OUTSIDE", "TAIL", "ArrayPartEdges"]

Array = Any

TAIL, HEAD, LOCAL = 1, 2, 4
"""Flags of a vertex in a part: its edges start in it, edges to it may end in it, it is local to it."""
OUTSIDE = -1
"""Number of a vertex that is not in a part; one that is its vertex n, but no head, has the number -2 - n."""


@dataclass(frozen=True)
class ArrayPartEdges:
    """Functions of an array module on edges of parts, `Backend.chunk` at a time; implements `protocol.PartEdges`."""

    array: ModuleType
    chunk: int

    def neighbours(self, keys: Array, shift: int, bits: Array, into: Array, parts: int) -> None:
        """OR each end's bits into the other end's."""
        for u, v in self._ends(keys, shift):
            self._or(into, v, bits.take(u), parts)
            self._or(into, u, bits.take(v), parts)

    def targets(self, keys: Array, shift: int, bits: Array, into: Array, parts: int) -> None:
        """OR each source's bits into its targets'."""
        for u, v in self._ends(keys, shift):
            self._or(into, v, bits.take(u), parts)

    def reached(self, keys: Array, shift: int, within: Array, into: Array, parts: int) -> None:
        """OR each source's bits into its targets', those bits that the targets have in `within`."""
        for u, v in self._ends(keys, shift):
            self._or(into, v, into.take(u) & within.take(v) & ~into.take(v), parts)

    def inside(self, keys: Array, shift: int, bits: Array, parts: int) -> list[int]:
        """For each part, the number of edges both of whose ends have its bit."""
        counts = [0] * parts
        for u, v in self._ends(keys, shift):
            common = bits.take(u) & bits.take(v)
            counts = [count + int(((common >> part) & 1).sum()) for part, count in enumerate(counts)]
        return counts

    def degrees(self, keys: Array, shift: int, roles: Array) -> tuple[Array, Array]:
        """In-degrees from a part's local vertices, and out-degrees within the part."""
        xp = self.array
        degrees = [xp.zeros(len(roles), dtype="uint64") for _ in range(2)]  # CuPy's add.at has no int64
        for u, v in self._ends(keys, shift):
            tails = roles.take(u)
            is_inside = (tails & TAIL != 0) & (roles.take(v) & HEAD != 0)
            xp.add.at(degrees[0], v[is_inside & (tails & LOCAL != 0)], xp.uint64(1))  # NumPy is slow with a plain 1
            xp.add.at(degrees[1], u[is_inside], xp.uint64(1))
        inward, outward = (degree.view("int64") for degree in degrees)
        return inward, outward

    def numbered(self, keys: Array, shift: int, number: Array) -> Array:
        """Keys of a part's edges over the numbers of their ends."""
        renumbered_keys = [keys[:0]]
        for u, v in self._ends(keys, shift):
            tails, heads = number.take(u).astype("int64"), number.take(v)
            is_inside = (tails != OUTSIDE) & (heads >= 0)
            tails = tails[is_inside]
            renumbered_keys.append(self.array.maximum(tails, -2 - tails) << shift | heads[is_inside])
        return self.array.concatenate(renumbered_keys)

    def columns(self, keys: Array, shift: int, first: int, wanted: Array, size: int) -> Array:
        """Columns of the keys whose row, counted from `first`, is wanted."""
        columns = [self.array.empty(0, dtype="int32")]
        for u, v in self._ends(keys, shift):
            columns.append(v[wanted.take(u - first)].astype("int32"))
        return self.array.concatenate(columns)

    def _ends(self, keys: Array, shift: int) -> Iterator[tuple[Array, Array]]:
        for start in range(0, len(keys), self.chunk):
            chunk = keys[start : start + self.chunk]
            yield chunk >> shift, chunk & ((1 << shift) - 1)

    def _or(self, into: Array, vertices: Array, bits: Array, parts: int) -> None:
        """OR bits into entries of `into`; vertices may repeat, so each bit is written apart, with equal writes."""
        for part in range(parts):
            bit = bits.dtype.type((1 << part) - (1 << 64) * (part == 63))
            members = vertices[(bits & bit) != 0]
            into[members] = into.take(members) | bit
