"""A small graph counted as a matrix of bits: the launches of kernels/bitmatrix.cu.

From canonical keys to the number in three launches and one wait: no sort, no orientation, no blocks. Written against a
`Device`, as all launches are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import Device, spread
from dasktc.errors import CountError

__all__ = ["MOST_VERTICES", "MOST_WORDS", "BitCount", "DeviceBitMatrix", "matrix_bytes", "worthwhile"]

MOST_VERTICES = 1 << 15
"""A matrix of 128 MiB; an edge is 32 bits."""
MOST_WORDS = 1 << 27
"""Words of 64 bits in one row of each edge: 2 GB read for all, half a millisecond of an H200."""
SUMS = 8
"""64-bit sums that the kernels add up, one of them unused."""


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


def matrix_bytes(vertices: int, edges: int) -> int:
    """Bytes that `DeviceBitMatrix.count` allocates."""
    return 4 * (vertices * (_words(vertices) + 2) + 2 * SUMS + edges)


def _words(vertices: int) -> int:
    """32-bit words of a row, an even number of them."""
    return 2 * -(-vertices // 64)


@dataclass(frozen=True)
class DeviceBitMatrix:
    """Counts the triangles of small graphs.

    Attributes
    ----------
    device : Device
    """

    device: Device

    def count(self, keys: Array, vertices: int, shift: int) -> BitCount:
        """Count the triangles of a graph of at most MOST_VERTICES vertices.

        Parameters
        ----------
        keys : array of int64
            `smaller << shift | larger` of each edge, in any order, loops and repeated edges included.
        vertices : int
            All ids are below.
        shift : int

        Raises
        ------
        CountError
            The bits that were met are not those that were set.
        """
        xp, words, size = self.device.array, _words(vertices), len(keys)
        cleared = xp.zeros(2 * SUMS + vertices * (words + 2), dtype="uint32")
        sums, rest = cleared[: 2 * SUMS].view("uint64"), cleared[2 * SUMS :]
        bits, degrees = rest[: vertices * words], rest[vertices * words :][:vertices]
        outward, edges = rest[vertices * (words + 1) :], xp.empty(size, dtype="uint32")
        self._run("set", size, keys, np.int64(size), np.uint32(shift), np.uint32(words), bits, degrees, edges, sums)
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
            f"the bit matrix has {met:,} bits in the rows of {edges:,} edges and {corners:,} corners of triangles, the "
            f"degrees, {ends:,} together, say {squares:,} and a multiple of 3: bits were lost; count with --kernel hub, "
            "and report this with the output of `dasktc info`"
        )
    return BitCount(vertices, edges, corners // 3, wedges, met)
