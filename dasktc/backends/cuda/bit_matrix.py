"""A small graph counted as a matrix of bits, from raw edges: the launches of kernels/bitmatrix.cu.

Where ids lie close together that takes five launches and two waits: no sort, no orientation, no blocks. Written against
a `Device`, as all launches are.
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

__all__ = [
    "KEYS_BYTES", "MOST_EDGES", "MOST_VERTICES", "MOST_WORDS", "BitCount", "DeviceBitMatrix", "SmallKeys", "worthwhile",
]  # fmt: skip

MOST_VERTICES = 1 << 15
"""A matrix of 128 MiB; an edge is 32 bits."""
MOST_WORDS = 1 << 27
"""Words of 64 bits in one row of each edge: 2 GB read for all, half a millisecond of an H200."""
MOST_EDGES = 1 << 22
"""Raw edges: beyond, the rest of a count takes no noticeable share."""
TABLE = 64
"""Ids of the range, for each raw edge, up to which a table, a quarter of a byte each, makes them dense."""
KEYS_BYTES = 56
"""Bytes a raw edge that making keys takes, at most: its key, and a table of its ids or their distinct ones."""
SUMS = 8
"""64-bit sums that the kernels add up, one of them unused."""


class SmallKeys(NamedTuple):
    """Keys of a graph that is small enough.

    Attributes
    ----------
    keys : array of int64
        `smaller << shift | larger` of each raw edge, by dense ids or ids less the smallest; a loop's ends are equal.
    vertices, shift : int
        All ids are below `vertices`, which is at most 1 << shift.
    loops : int
    nbytes : int
        What counting allocates, the keys included.
    """

    keys: Array
    vertices: int
    shift: int
    loops: int

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return 4 * (self.vertices * (_words(self.vertices) + 2) + 2 * SUMS + 3 * len(self.keys))


class BitCount(NamedTuple):
    """What counting has found.

    Attributes
    ----------
    vertices, edges : int
        Vertices with an edge, and distinct edges.
    triangles : int
    wedges : int
        Σ in·out of the edges directed by degree, as the orientation has it.
    probes : int
        Bits met in both rows of every edge: Σ d².
    """

    vertices: int
    edges: int
    triangles: int
    wedges: int
    probes: int


def worthwhile(vertices: int, edges: int) -> bool:
    """Whether a graph of so many ids and raw edges is counted sooner in this way.

    Parameters
    ----------
    vertices : int
        Rows of the matrix, those of ids without an edge included.
    edges : int
        Raw edges: more than there are distinct ones.
    """
    return vertices <= MOST_VERTICES and edges * (_words(vertices) // 2) <= MOST_WORDS


def _words(vertices: int) -> int:
    """32-bit words of a row, an even number of them."""
    return 2 * -(-vertices // 64)


@dataclass(frozen=True)
class DeviceBitMatrix:
    """Counts the triangles of small graphs.

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
        """Make keys of raw edges, two arrays of integers; None where the graph has too many vertices.

        Ids stay as they are, less the smallest, where their range is small enough; else they become dense.
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
        """Count the triangles.

        Raises
        ------
        CountError
            The bits that were met are not those that were set.
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
            f"the bit matrix has {met:,} bits in the rows of {edges:,} edges and {corners:,} corners of triangles, "
            f"the degrees, {ends:,} together, say {squares:,} and a multiple of 3: bits were lost; count with --kernel "
            "hub, and report this with the output of `dasktc info`"
        )
    return BitCount(vertices, edges, corners // 3, wedges, met)
