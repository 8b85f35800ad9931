"""Counts a small graph as a bit matrix, from raw edges: the launches of kernels/bitmatrix.cu.

Where ids are close together this takes five launches and two waits, without a sort, an orientation or blocks. Written
against a `Device`, as all launches are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dasktc.backends.bit_matrix import MOST_EDGES, SUMS, BitCount, SmallKeys, words_of, worthwhile
from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import Device, spread
from dasktc.backends.cuda.edges import DeviceEdges, RankedIds
from dasktc.errors import CountError
from dasktc.wording import advice, plural

__all__ = ["DeviceBitMatrix"]

TABLE = 64
"""Largest number of ids in the range per raw edge for which a table, a quarter of a byte per id, makes ids dense."""


@dataclass(frozen=True)
class DeviceBitMatrix:
    """Counts the triangles of small graphs on a device.

    Attributes
    ----------
    device : Device
    edges : DeviceEdges
    distinct : callable (values) -> array
        As `Backend.distinct`.
    """

    device: Device
    edges: DeviceEdges
    distinct: Callable[[Array], Array]

    @property
    def most_edges(self) -> int:
        """Most raw edges of a graph that is counted so."""
        return MOST_EDGES

    def keys(self, src: Array, dst: Array) -> SmallKeys | None:
        """Make keys of raw edges, two arrays of integers; return None where the graph has too many vertices.

        Ids are only reduced by the smallest where their range is small enough; else they are made dense.
        """
        size, (loops, low, high) = len(src), self.edges.facts(src, dst)
        width = max(0, high - low + 1)
        if worthwhile(width, size):
            return self._make_keys(src, dst, RankedIds(low if width else 0, width, None, self.edges), loops)
        if width <= TABLE * size:
            table = self.edges.marks(width)
            self.edges.mark(table, src, dst, low)
            ids = self.edges.ranked(table, low, width)
            return self._make_keys(src, dst, ids, loops) if worthwhile(ids.size, size) else None
        xp = self.device.array
        distinct = self.distinct(xp.concatenate([src.astype("int64", copy=False), dst.astype("int64", copy=False)]))
        if not worthwhile(len(distinct), size):
            return None
        x, y = (distinct.searchsorted(ends).astype("int32") for ends in (src, dst))
        return self._make_keys(x, y, RankedIds(0, len(distinct), None, self.edges), loops)

    def _make_keys(self, src: Array, dst: Array, ids: RankedIds, loops: int) -> SmallKeys:
        shift = max(1, (ids.size - 1).bit_length())
        return SmallKeys(self.edges.keys(src, dst, ids, shift), ids.size, shift, loops, self)

    def count(self, of: SmallKeys) -> BitCount:
        """Count the triangles of a graph by its keys.

        Raises
        ------
        CountError
            The number of bits read differs from the number of bits set.
        """
        keys, vertices = of.keys, of.vertices
        xp, words, size = self.device.array, words_of(vertices), len(keys)
        zeros = xp.zeros(2 * SUMS + vertices * (words + 2), dtype="uint32")
        sums, rest = zeros[: 2 * SUMS].view("uint64"), zeros[2 * SUMS :]
        bits, degrees = rest[: vertices * words], rest[vertices * words :][:vertices]
        outward, edges = rest[vertices * (words + 1) :], xp.empty(size, dtype="uint32")
        self._run("set", size, keys, np.int64(size), np.uint32(of.shift), np.uint32(words), bits, degrees, edges, sums)
        lanes = min(32, 1 << (words // 2 - 1).bit_length())
        row_values = (np.uint32(words // 2), np.uint32(lanes), bits, degrees, outward, sums)
        self._run("count", size * lanes, edges, *row_values)
        self._run("sums", vertices, np.int64(vertices), degrees, outward, sums)
        return _check(*(int(total) for total in sums.tolist()))

    def _run(self, entry: str, threads: int, *values: object) -> None:
        if threads:
            spread(self.device, "bitmatrix", f"bitmatrix_{entry}", (), threads, *values)


def _check(
    edges: int, corners: int, bits: int, vertices: int, ends: int, squares: int, wedges: int, _: int
) -> BitCount:
    if corners % 3 or ends != 2 * edges or bits != squares:
        raise CountError(
            f"the bit matrix has {plural(bits, 'bit')} in the rows of {plural(edges, 'edge')} and {corners:,} corners "
            f"of triangles, the degrees, {ends:,} together, say {squares:,} and a multiple of 3: bits were lost; count "
            f"with {advice(kernel='hub')}, and report this with the output of `dasktc info`"
        )
    return BitCount(vertices, edges, corners // 3, wedges, bits)
