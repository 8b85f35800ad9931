"""Facts by which arrays of a saved graph are checked before a kernel trusts them, and their array arithmetic.

Whether degrees are those of the blocks is a comparison of sums of random numbers: each edge adds the hash of its source
to one sum, and each vertex its out-degree times its hash to another. Equal degrees give equal sums. Others give equal
sums with a chance of about 2^-32, because the hash is drawn anew at each opening, when the arrays are written already.
Blocks and shards of vectors are thus compared wherever they are, by one number each.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, NamedTuple

__all__ = [
    "WORD", "ArrayFacts", "ColumnFacts", "Hash", "RowFacts", "VertexFacts",
]  # fmt: skip

Array = Any
WORD = 1 << 64


class Hash(NamedTuple):
    """A hash function of integers to words of 64 bits.

    Of the word number * scale + start it is the product of the upper half, and of both halves' exclusive or.
    """

    scale: int
    start: int
    """Random, below 2^64; the scale is odd."""

    @classmethod
    def draw(cls) -> Hash:
        """Draw a function at random."""
        return cls(secrets.randbits(64) | 1, secrets.randbits(64))

    def over(self, stride: int, first: int) -> Hash:
        """The function that maps number n to this function's hash of n * stride + first."""
        return Hash(self.scale * stride % WORD, (self.scale * first + self.start) % WORD)


class ColumnFacts(NamedTuple):
    """Facts of consecutive columns of a block."""

    descents: int
    """Number of columns that do not exceed the one before."""
    total: int
    """Sum of their hashes, modulo 2^64."""


class RowFacts(NamedTuple):
    """Facts of rows of a block."""

    wrong: int
    """Number of rows that do not lie within the columns, or end before they begin."""
    descents: int
    """Number of rows whose first column does not exceed the column before it, which is another row's."""
    outside: int
    """Number of rows whose first column is negative, or the last one no column of the block."""
    above: int
    """Number of rows whose last column is not below the row."""
    total: int
    """Sum of the rows' hashes, each times the row's number of edges, modulo 2^64."""

    @classmethod
    def add_up(cls, parts: Iterable[RowFacts]) -> RowFacts:
        """Add the facts of several ranges of rows."""
        wrong, descents, outside, above, total = map(sum, zip(cls(0, 0, 0, 0, 0), *parts, strict=True))
        return cls(wrong, descents, outside, above, total % WORD)


class VertexFacts(NamedTuple):
    """Facts of entries of a graph's vertex vectors."""

    sources: int
    targets: int
    """Sums of the vertices' hashes times their out-degrees, and times their in-degrees, modulo 2^64."""
    dense: int
    ids: int
    """Sums of the hashes of the order's entries, and of the vertices, modulo 2^64."""
    wedges: int
    """Σ in·out, exact."""

    @classmethod
    def add_up(cls, parts: Iterable[VertexFacts]) -> VertexFacts:
        """Add the facts of several parts of the vectors."""
        sources, targets, dense, ids, wedges = map(sum, zip(cls(0, 0, 0, 0, 0), *parts, strict=True))
        return cls(sources % WORD, targets % WORD, dense % WORD, ids % WORD, wedges)


def _sum(words: Array) -> int:
    return int(words.sum(dtype="uint64")) if len(words) else 0


class ArrayFacts:
    """Computes facts by array arithmetic; implements `protocol.BlockFacts`.

    Parameters
    ----------
    xp : module
        The array module, of arrays that are on a device.
    chunk : int
        Elements for which temporary arrays are made at a time.
    """

    step = 1 << 62  # one call for all

    def __init__(self, xp: ModuleType, chunk: int = 1 << 24) -> None:
        self.xp, self.chunk = xp, chunk

    def facts_of_file(self, read: Callable[[None], Array], by: Hash) -> tuple[Array, ColumnFacts]:
        """Read columns with `read`, and return them with their facts."""
        columns = read(None)
        return columns, self.column_facts(columns, by)

    def column_facts(self, columns: Array, by: Hash) -> ColumnFacts:
        """Facts of consecutive columns, or of any other ids, an array of int32."""
        descents = total = 0
        for first in range(0, len(columns), self.chunk):
            part = columns[first : first + self.chunk]
            close = columns[max(0, first - 1) : first + self.chunk]
            descents += int((close[1:] <= close[:-1]).sum())
            total += _sum(self._hashes(part.view("uint32"), by))
        return ColumnFacts(descents, total % WORD)

    def row_facts(
        self,
        offsets: Array,
        columns: Array,
        first: int,
        end: int,
        by: Hash,
        width: int,
        stride: int,
        behind: int | None,
    ) -> RowFacts:
        """Facts of the rows `first` to `end` of a block.

        Parameters
        ----------
        offsets : array of int64
        columns : array of int32
        first, end : int
        by : Hash
            Of the numbers of the rows.
        width : int
            Number of the block's columns.
        stride : int
            Distance between the ids of successive rows, and of successive columns.
        behind : int or None
            Id of the first column less that of the first row; None: columns may be above their rows.
        """
        facts = [0, 0, 0, 0, 0]
        for start in range(first, end, self.chunk):
            stop = min(end, start + self.chunk)
            begins, ends = offsets[start:stop], offsets[start + 1 : stop + 1]
            wrong = int(((begins < 0) | (begins > ends) | (ends > len(columns))).sum())
            facts[0] += wrong
            if wrong:
                continue
            # Further facts are those of rows with entries.
            rows = self.xp.flatnonzero(begins < ends)
            begins, ends, lengths = begins.take(rows), ends.take(rows), (ends - begins).take(rows)
            later = begins[begins > 0]
            facts[1] += int((columns.take(later) <= columns.take(later - 1)).sum()) if len(later) else 0
            rows = rows + start
            if not len(rows):
                continue
            last = columns.take(ends - 1).astype("int64")
            facts[2] += int(((columns.take(begins) < 0) | (last >= width)).sum())
            facts[3] += 0 if behind is None else int(((rows - last) * stride <= behind).sum())
            facts[4] += _sum(lengths.astype("uint64") * self._hashes(rows, by))
        return RowFacts(facts[0], facts[1], facts[2], facts[3], facts[4] % WORD)

    def pair_total(self, offsets: Array, columns: Array, rows: Hash, column: Hash) -> int:
        """Sum of the hashes of a block's edges, modulo 2^64: of the column's number, with its row's hash added.

        Parameters
        ----------
        offsets, columns : array
            Of a block whose rows lie within its columns.
        rows, column : Hash
            Of the numbers of rows and of columns.
        """
        total = 0
        for first in range(0, len(columns), self.chunk):
            part = columns[first : first + self.chunk]
            row = offsets.searchsorted(self.xp.arange(first, first + len(part), dtype="int64"), side="right") - 1
            words = part.view("uint32").astype("uint64") * self.xp.uint64(column.scale) + self._hashes(row, rows)
            total += _sum(self._mixed(words + self.xp.uint64(column.start)))
        return total % WORD

    def vertex_facts(self, order: Array, outward: Array, inward: Array, first: int, by: Hash) -> VertexFacts:
        """Facts of entries of vertex vectors, int32 and not negative, from vertex `first` on."""
        totals, wedges = [0, 0, 0, 0], 0
        for start in range(0, len(order), self.chunk):
            dense, out_degree, in_degree = (vector[start : start + self.chunk] for vector in (order, outward, inward))
            ids = self._hashes(self.xp.arange(first + start, first + start + len(dense), dtype="int64"), by)
            for place, words in enumerate((out_degree.astype("uint64") * ids, in_degree.astype("uint64") * ids)):
                totals[place] += _sum(words)
            totals[2] += _sum(self._hashes(dense, by))
            totals[3] += _sum(ids)
            out_degree, in_degree = out_degree.astype("int64"), in_degree.astype("int64")
            wedges += (int((in_degree * (out_degree >> 20)).sum()) << 20) + int(
                (in_degree * (out_degree & ((1 << 20) - 1))).sum()
            )
        return VertexFacts.add_up([VertexFacts(totals[0], totals[1], totals[2], totals[3], wedges)])

    def _hashes(self, numbers: Array, by: Hash) -> Array:
        """Hash an array of integers below 2^32."""
        return self._mixed(numbers.astype("uint64") * self.xp.uint64(by.scale) + self.xp.uint64(by.start))

    def _mixed(self, words: Array) -> Array:
        high = words >> self.xp.uint64(32)
        return ((words ^ high) & self.xp.uint64((1 << 32) - 1)) * high
