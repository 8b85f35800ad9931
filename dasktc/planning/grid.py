"""Grids of blocks: the distribution of vertices over rows and columns, and the range of keys of each block."""

from __future__ import annotations

from itertools import accumulate, chain
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from dasktc.planning.schemes import Block

__all__ = ["Axis", "Layout", "Shape"]

Array = Any


class Axis(NamedTuple):
    """Distribution of vertices over parts, by remainder or in ranges of ids, and their numbers in the parts.

    Attributes
    ----------
    vertices, parts : int
    starts : tuple of int, length parts + 1, or None
        First id of each range, and `vertices`; without it part id % parts holds a vertex as id // parts.
    """

    vertices: int
    parts: int
    starts: tuple[int, ...] | None = None

    @property
    def stride(self) -> int:
        """Distance between the ids of a part's neighbouring vertices."""
        return self.parts if self.starts is None else 1

    @property
    def firsts(self) -> list[int]:
        """The id of each part's first vertex."""
        return list(range(self.parts)) if self.starts is None else list(self.starts[:-1])

    @property
    def sizes(self) -> list[int]:
        """Number of vertices of each part, at most."""
        if self.starts is None:
            return [max(1, -(-self.vertices // self.parts))] * self.parts
        return [end - start for start, end in zip(self.starts[:-1], self.starts[1:], strict=True)]

    def dealt(self, ids: Array, xp: ModuleType) -> tuple[Array, Array]:
        """The part that each id is in, and its number in that part."""
        if self.starts is None:
            return ids % self.parts, ids // self.parts
        starts = xp.asarray(self.starts[:-1], dtype="int64")
        part = xp.searchsorted(starts, ids, side="right") - 1
        return part, ids - starts.take(part)

    def share(self, vector: Array, part: int, first: int = 0) -> Array:
        """Entries of a vector over ids that are a part's, in the order of their numbers; it begins with id `first`."""
        if self.starts is None:
            return vector[(part - first) % self.parts :: self.parts]
        start, end = (max(0, start - first) for start in self.starts[part : part + 2])
        return vector[start:end]


class Shape(NamedTuple):
    """What every scheme's blocks take from the oriented graph.

    Attributes
    ----------
    vertices : int
        V.
    shift : int
        Bits an id takes in an edge key.
    ordered : bool
        Every edge points to a smaller id (`degree` order).
    own : Sharded of int64, shape (V,), or None
        The part of each vertex, where the caller names them.
    sort_rows : bool
        Rows of blocks are in ascending order.
    """

    vertices: int
    shift: int
    ordered: bool
    own: Any = None
    sort_rows: bool = True


class Layout(NamedTuple):
    """A grid of blocks.

    Attributes
    ----------
    rows : Axis
    families : tuple of Axis
        Of the columns, side by side: an edge stands in one block of each.
    graph : Shape
    """

    rows: Axis
    families: tuple[Axis, ...]
    graph: Shape

    @property
    def shift(self) -> int:
        """Bits an id takes in an edge key."""
        return self.graph.shift

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        return self.rows.parts, sum(axis.parts for axis in self.families)

    @property
    def residues(self) -> int:
        """The modulus by which rows and columns are dealt out; 0 where they are not, or not by one."""
        first, *others = self.families
        alike = not others and self.rows == first and first.starts is None
        return self.rows.parts if alike else 0

    @property
    def places(self) -> list[Block]:
        """Places (i, j) of all blocks, row after row."""
        return [(i, j) for i in range(self.shape[0]) for j in range(self.shape[1])]

    @property
    def sizes(self) -> tuple[Any, Any]:
        """Rows and columns of every block, int64 arrays of the grid's shape."""
        rows = np.array(self.rows.sizes, dtype="int64")
        columns = np.array(list(chain.from_iterable(axis.sizes for axis in self.families)), dtype="int64")
        return np.repeat(rows, self.shape[1]).reshape(self.shape), np.tile(columns, (self.shape[0], 1))

    @property
    def widths(self) -> list[int]:
        """Keys of a row of every block: room for its columns. One block has the keys that its edges have anyway."""
        if self.shape == (1, 1):
            return [1 << self.shift]
        if self.loose_bits:
            return [1 << self.loose_bits] * (self.shape[0] * self.shape[1])
        return [max(1, columns) for columns in self.sizes[1].ravel().tolist()]

    @property
    def loose_bits(self) -> int:
        """Low bits of a key that are its column's and need not be sorted; 0 where rows are to be in order.

        Then every row has as many keys, a power of two. Where 63 bits have no room for such keys, rows are sorted.
        """
        if self.graph.sort_rows or self.shape == (1, 1):
            return 0 if self.graph.sort_rows else self.shift
        rows, columns = self.sizes
        bits = max(0, int(columns.max()) - 1).bit_length()
        return bits if int(rows.sum()) << bits < 1 << 63 else 0

    @property
    def first_keys(self) -> list[int]:
        """The first key of every block, and the end of the last."""
        rows = self.sizes[0].ravel().tolist()
        return [0, *accumulate(r * width for r, width in zip(rows, self.widths, strict=True))]

    def numbering(self, side: int) -> tuple[int, int]:
        """First id and stride of the vertices of a column of the grid, or of the row of that number."""
        firsts = [first for axis in self.families for first in axis.firsts]
        return firsts[side], self.rows.stride
