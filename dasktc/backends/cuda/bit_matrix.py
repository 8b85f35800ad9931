"""Counts a small graph as a bit matrix, from raw edges: the launches of kernels/bitmatrix.cu.

Where ids are close together this takes five launches and two waits, without a sort, an orientation or blocks. Written
against a `Device`, as all launches are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import Device, spread
from dasktc.backends.cuda.edges import DeviceEdges, RankedIds
from dasktc.errors import CountError
from dasktc.wording import advice, plural

__all__ = [
    "KEYS_BYTES", "MOST_EDGES", "MOST_VERTICES", "MOST_WORDS", "BitCount", "DeviceBitMatrix", "SmallKeys", "worthwhile",
]  # fmt: skip

MOST_VERTICES = 1 << 15
"""The matrix then takes 128 MiB, and an edge fits 32 bits."""
MOST_WORDS = 1 << 27
"""64-bit words of one row for each edge: 2 GB read in all, half a millisecond on an H200."""
MOST_EDGES = 1 << 22
"""Raw edges beyond which the rest of a count takes no noticeable share."""
TABLE = 64
"""Largest number of ids in the range per raw edge for which a table, a quarter of a byte per id, makes ids dense."""
KEYS_BYTES = 56
"""Most bytes per raw edge that making keys takes: the key, and a table of ids or the distinct ids."""
SUMS = 8
"""64-bit sums of the kernels, one of which is unused."""


class SmallKeys(NamedTuple):
    """Keys of a small graph, ready to be counted.

    Attributes
    ----------
    keys : array of int64
        `smaller << shift | larger` for each raw edge, in dense ids or ids less the smallest; a loop's ends are equal.
    vertices, shift : int
        All ids are below `vertices`, which is at most 1 << shift.
    loops : int
    nbytes : int
        Bytes that counting allocates, the keys included.
    """

    keys: Array
    vertices: int
    shift: int
    loops: int

    @property
    def nbytes(self) -> int:
        """Bytes that counting allocates, the keys included."""
        return 4 * (self.vertices * (_words(self.vertices) + 2) + 2 * SUMS + 3 * len(self.keys))


class BitCount(NamedTuple):
    """Result of a count by bit matrix.

    Attributes
    ----------
    vertices, edges : int
        Vertices with an edge, and distinct edges.
    triangles : int
    wedges : int
        Σ in·out of the edges directed by degree, as in the orientation.
    probes : int
        Set bits read in the two rows of every edge, Σ d² in all.
    """

    vertices: int
    edges: int
    triangles: int
    wedges: int
    probes: int


def worthwhile(vertices: int, edges: int) -> bool:
    """Whether a bit matrix is faster for a graph with these numbers of ids and raw edges.

    Parameters
    ----------
    vertices : int
        Rows of the matrix, including ids without an edge.
    edges : int
        Raw edges, at least as many as there are distinct ones.
    """
    return vertices <= MOST_VERTICES and edges * (_words(vertices) // 2) <= MOST_WORDS


def _words(vertices: int) -> int:
    """Number of 32-bit words in a row, which is even."""
    return 2 * -(-vertices // 64)


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

    def keys(self, src: Array, dst: Array) -> SmallKeys | None:
        """Make keys of raw edges, two arrays of integers; return None where the graph has too many vertices.

        Ids are only reduced by the smallest where their range is small enough; else they are made dense.
        """
        size, (loops, low, high) = len(src), self.edges.facts(src, dst)
        width = max(0, high - low + 1)
        if worthwhile(width, size):
            return self._keyed(src, dst, RankedIds(low if width else 0, width, None, self.edges), loops)
        if width <= TABLE * size:
            table = self.edges.marks(width)
            self.edges.mark(table, src, dst, low)
            ids = self.edges.ranked(table, low, width)
            return self._keyed(src, dst, ids, loops) if worthwhile(ids.size, size) else None
        xp = self.device.array
        distinct = self.distinct(xp.concatenate([src.astype("int64", copy=False), dst.astype("int64", copy=False)]))
        if not worthwhile(len(distinct), size):
            return None
        x, y = (distinct.searchsorted(ends).astype("int32") for ends in (src, dst))
        return self._keyed(x, y, RankedIds(0, len(distinct), None, self.edges), loops)

    def _keyed(self, src: Array, dst: Array, ids: RankedIds, loops: int) -> SmallKeys:
        shift = max(1, (ids.size - 1).bit_length())
        return SmallKeys(self.edges.keys(src, dst, ids, shift), ids.size, shift, loops)

    def count(self, of: SmallKeys) -> BitCount:
        """Count the triangles of a graph by its keys.

        Raises
        ------
        CountError
            The number of bits read differs from the number of bits set.
        """
        keys, vertices = of.keys, of.vertices
        xp, words, size = self.device.array, _words(vertices), len(keys)
        cleared = xp.zeros(2 * SUMS + vertices * (words + 2), dtype="uint32")
        sums, rest = cleared[: 2 * SUMS].view("uint64"), cleared[2 * SUMS :]
        bits, degrees = rest[: vertices * words], rest[vertices * words :][:vertices]
        outward, edges = rest[vertices * (words + 1) :], xp.empty(size, dtype="uint32")
        self._run("set", size, keys, np.int64(size), np.uint32(of.shift), np.uint32(words), bits, degrees, edges, sums)
        lanes = min(32, 1 << (words // 2 - 1).bit_length())
        of_rows = (np.uint32(words // 2), np.uint32(lanes), bits, degrees, outward, sums)
        self._run("count", size * lanes, edges, *of_rows)
        self._run("sums", vertices, np.int64(vertices), degrees, outward, sums)
        return _checked(*(int(total) for total in sums.tolist()))

    def _run(self, entry: str, threads: int, *values: object) -> None:
        if threads:
            spread(self.device, "bitmatrix", f"bitmatrix_{entry}", (), threads, *values)


def _checked(
    edges: int, corners: int, met: int, vertices: int, ends: int, squares: int, wedges: int, _: int
) -> BitCount:
    if corners % 3 or ends != 2 * edges or met != squares:
        raise CountError(
            f"the bit matrix has {plural(met, 'bit')} in the rows of {plural(edges, 'edge')} and {corners:,} corners "
            f"of triangles, the degrees, {ends:,} together, say {squares:,} and a multiple of 3: bits were lost; count "
            f"with {advice(kernel='hub')}, and report this with the output of `dasktc info`"
        )
    return BitCount(vertices, edges, corners // 3, wedges, met)
