"""Grids of blocks: how vertices are distributed over rows and columns, and which range of keys each block has."""

from __future__ import annotations

from itertools import accumulate, chain
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from dasktc.planning.schemes import Block

__all__ = ["Axis", "Layout", "Shape"]

Array = Any


class Axis(NamedTuple):
    """Distribution of vertices over parts, by remainder or in ranges of ids, with their numbers within the parts."""

    vertices: int
    parts: int
    starts: tuple[int, ...] | None = None
    """Tuple of int, length parts + 1. First id of each range, followed by `vertices`; None: part id % parts holds a
    vertex, as number id // parts."""

    @property
    def stride(self) -> int:
        """Distance between the ids of successive vertices of a part."""
        return self.parts if self.starts is None else 1

    @property
    def firsts(self) -> list[int]:
        """The id of each part's first vertex."""
        return list(range(self.parts)) if self.starts is None else list(self.starts[:-1])

    @property
    def sizes(self) -> list[int]:
        """Number of vertices of each part, or an upper bound on it."""
        if self.starts is None:
            return [max(1, -(-self.vertices // self.parts))] * self.parts
        return [end - start for start, end in zip(self.starts[:-1], self.starts[1:], strict=True)]

    def dealt(self, ids: Array, xp: ModuleType) -> tuple[Array, Array]:
        """The part of each id, and its number within that part."""
        if self.starts is None:
            return ids % self.parts, ids // self.parts
        starts = xp.asarray(self.starts[:-1], dtype="int64")
        part = xp.searchsorted(starts, ids, side="right") - 1
        return part, ids - starts.take(part)

    def share(self, vector: Array, part: int, first: int = 0) -> Array:
        """A part's entries of a vector over ids, in the order of their numbers; the vector begins with id `first`."""
        if self.starts is None:
            return vector[(part - first) % self.parts :: self.parts]
        start, end = (max(0, start - first) for start in self.starts[part : part + 2])
        return vector[start:end]


class Shape(NamedTuple):
    """Properties of the oriented graph that the blocks of every scheme depend on."""

    vertices: int
    """V."""
    shift: int
    """Bits of an id in an edge key."""
    ordered: bool
    """Whether every edge points to a smaller id (`degree` order)."""
    own: Any = None
    """Sharded of int64, shape (V,), or None. The part of each vertex, where the caller assigns them."""
    sort_rows: bool = True
    """Whether rows of blocks are in ascending order."""


class Layout(NamedTuple):
    """A grid of blocks, and the ranges of keys in which edges are sorted into them."""

    rows: Axis
    families: tuple[Axis, ...]
    """Axes of the columns, side by side: an edge is in one block of each family."""
    graph: Shape

    @property
    def shift(self) -> int:
        """Bits of an id in an edge key."""
        return self.graph.shift

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns of the grid."""
        return self.rows.parts, sum(axis.parts for axis in self.families)

    @property
    def residues(self) -> int:
        """The common modulus by which rows and columns are dealt out; 0 where there is none."""
        first, *families = self.families
        is_square = not families and self.rows == first and first.starts is None
        return self.rows.parts if is_square else 0

    @property
    def places(self) -> list[Block]:
        """Places (i, j) of all blocks, in row-major order."""
        return [(i, j) for i in range(self.shape[0]) for j in range(self.shape[1])]

    @property
    def sizes(self) -> tuple[Any, Any]:
        """Numbers of rows and of columns of every block, int64 arrays of the grid's shape."""
        rows = np.array(self.rows.sizes, dtype="int64")
        columns = np.array(list(chain.from_iterable(axis.sizes for axis in self.families)), dtype="int64")
        return np.repeat(rows, self.shape[1]).reshape(self.shape), np.tile(columns, (self.shape[0], 1))

    @property
    def widths(self) -> list[int]:
        """Keys per row of every block, at least its columns; a single block keeps the keys that its edges have."""
        if self.shape == (1, 1):
            return [1 << self.shift]
        if self.loose_bits:
            return [1 << self.loose_bits] * (self.shape[0] * self.shape[1])
        return [max(1, columns) for columns in self.sizes[1].ravel().tolist()]

    @property
    def loose_bits(self) -> int:
        """Number of low bits of a key that hold its column and need not be sorted; 0 where rows are to be in order.

        Every row then has the same number of keys, a power of two. Where such keys exceed 63 bits, rows are sorted.
        """
        if self.graph.sort_rows or self.shape == (1, 1):
            return 0 if self.graph.sort_rows else self.shift
        rows, columns = self.sizes
        bits = max(0, int(columns.max()) - 1).bit_length()
        return bits if int(rows.sum()) << bits < 1 << 63 else 0

    @property
    def first_keys(self) -> list[int]:
        """The first key of every block, followed by the end of the last."""
        rows = self.sizes[0].ravel().tolist()
        return [0, *accumulate(r * width for r, width in zip(rows, self.widths, strict=True))]

    def numbering(self, side: int) -> tuple[int, int]:
        """First id and stride of the vertices of column `side` of the grid, or of row `side`."""
        firsts = [first for axis in self.families for first in axis.firsts]
        return firsts[side], self.rows.stride
