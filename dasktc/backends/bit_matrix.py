"""Counting small graphs as a bit matrix: which graphs are small, and what the matrix takes and tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from dasktc.backends.csr import Array

__all__ = [
    "KEYS_BYTES", "MOST_EDGES", "MOST_VERTICES", "MOST_WORDS", "SUMS", "BitCount", "NoBitMatrix", "SmallKeys",
    "words_of", "worthwhile",
]  # fmt: skip

MOST_VERTICES = 1 << 15
"""The matrix then takes 128 MiB, and an edge fits 32 bits."""
MOST_WORDS = 1 << 27
"""64-bit words of one row for each edge: 2 GB read in all, half a millisecond on an H200."""
MOST_EDGES = 1 << 22
"""Raw edges beyond which the rest of a count takes no noticeable share."""
KEYS_BYTES = 56
"""Most bytes per raw edge that making keys takes: the key, and a table of ids or the distinct ids."""
SUMS = 8
"""64-bit sums of the kernels, one of which is unused."""


@dataclass(frozen=True)
class SmallKeys:
    """Keys of a small graph, ready to be counted."""

    keys: Array
    """Array of int64. `smaller << shift | larger` for each raw edge, in dense ids or ids less the smallest; a loop's
    ends are equal."""
    vertices: int
    shift: int
    """All ids are below `vertices`, which is at most 1 << shift."""
    loops: int
    matrix: Any
    """DeviceBitMatrix."""

    @property
    def nbytes(self) -> int:
        """Bytes that counting allocates, the keys included."""
        return 4 * (self.vertices * (words_of(self.vertices) + 2) + 2 * SUMS + 3 * len(self.keys))

    def count(self) -> BitCount:
        """Count the graph's triangles."""
        bits: BitCount = self.matrix.count(self)
        return bits


class BitCount(NamedTuple):
    """Result of a count by bit matrix."""

    vertices: int
    edges: int
    """Vertices with an edge, and distinct edges."""
    triangles: int
    wedges: int
    """Σ in·out of the edges directed by degree, as in the orientation."""
    probes: int
    """Set bits read in the two rows of every edge, Σ d² in all."""


def worthwhile(vertices: int, edges: int) -> bool:
    """Whether a bit matrix is faster for a graph with these numbers of ids and raw edges.

    The ids include those without an edge; there are at least as many raw edges as distinct ones.
    """
    return vertices <= MOST_VERTICES and edges * (words_of(vertices) // 2) <= MOST_WORDS


def words_of(vertices: int) -> int:
    """Number of 32-bit words in a row, which is even."""
    return 2 * -(-vertices // 64)


class NoBitMatrix:
    """The CPU's bit matrix: no graph is small enough, because its kernel `hub` intersects rows as bits already."""

    most_edges = -1

    def keys(self, src: Array, dst: Array) -> None:
        """None."""
