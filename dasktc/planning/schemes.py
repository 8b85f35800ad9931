"""Planners: which block triples a count is made of.

A planner names the blocks of its grid, one of row part i and column part j:

whole     the one block of the whole graph in all three roles: replicate it, split its rows
          (TRUST, section 5.1).
edges     the same, its edges split into equal ranges (H-INDEX: Pandey et al., HPEC 2019, section III).
hash2d    P[i][j] are the edges (u, v) with u % n = i, v % n = j. (P[i][k], P[i][j], P[k][j]) for all
          i, j, k: n² blocks, n³ tasks (TRUST, sections 5.2, 5.3).
vertical  n ranges of ids R of equal out-degree, n ranges C of equal in-degree. P[i][j] are the edges from R_i
          to R_j for j < n and from R_i to C_k for j = n + k: every edge stands in two blocks.
          (P[i][j], P[i][n + k], P[j][n + k]) for all i, j, k: n³ tasks (TC-Stream: Huang et al., TPDS 2022,
          section 4.1, with P1 = P2 = n).
proxy     n parts of vertices. P[p][1] is G_p, part p with its proxies, P[p][0] the edges of its local vertices.
          (P[p][0], P[p][1], P[p][1]): n tasks (LSTC: Tamboli and Jatala, ICPE 2026, section 4.1).

Each task is cut in m splits, by rows but for `edges`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PLANNERS", "Block", "Numbers", "Planner", "Triple"]

Block = tuple[int, int]
Numbers = np.ndarray[Any, np.dtype[np.int64]]
Places = Numbers
"""Block triples, shape (triples, 3): index, table, stream, with P[i][j] as i · (columns of the grid) + j."""


@dataclass(frozen=True, order=True)
class Triple:
    """The three blocks of a counting task, by their places (i, j) in the 2D partition."""

    index: Block
    table: Block
    stream: Block

    @property
    def places(self) -> tuple[Block, Block, Block]:
        """The three places, index first."""
        return self.index, self.table, self.stream


@dataclass(frozen=True)
class Planner:
    """A partitioning scheme.

    Attributes
    ----------
    columns : callable (n) -> int
        Of its grid of blocks.
    triples : callable (n) -> Places
    sides : callable (n, (i, j)) -> (int, int)
        Which numbering of vertices the rows and the columns of a block have: equal numbers are one numbering.
    least : callable (n) -> (float, float)
        Shares of E and of V that the largest task's columns and rows are, at least.
    cut : {"rows", "edges"}
        What the splits cut the index block by.
    replicated : bool
        Every task has the whole graph.
    once : bool
        Every edge stands in one block of the grid.
    """

    columns: Callable[[int], int]
    triples: Callable[[int], Places]
    sides: Callable[[int, Block], tuple[int, int]]
    least: Callable[[int], tuple[float, float]]
    cut: str = "rows"
    replicated: bool = False
    once: bool = True


def whole(parts: int) -> Places:
    """Emit the whole graph in all three roles."""
    return np.zeros((1, 3), dtype="int64")


TURNS = ((0, 1, 2), (0, 2, 1), (1, 2, 0), (1, 0, 2), (2, 0, 1), (2, 1, 0))
"""Orders of three parts, each next to those with which it shares two blocks of three."""


def _neighbours(parts: Numbers) -> Numbers:
    """Sort triples of parts (i, j, k), shape (3, triples): most share two of their three blocks with the one before.

    (P[i][k], P[i][j], P[k][j]) over the six orders of three parts uses six blocks: one after the other as in TURNS,
    each needs one more. Sets of three parts come as a Hilbert curve meets them: any range of triples, be it a worker's
    share or what is in a cache, lies close together and has few blocks.
    """
    ascending, turn = np.sort(parts, axis=0), np.zeros(parts.shape[1], dtype="int64")
    for number in reversed(range(len(TURNS))):
        turn[(ascending[list(TURNS[number])] == parts).all(axis=0)] = number
    found: Numbers = parts[:, np.lexsort((turn, _on_hilbert_curve(ascending)))]
    return found


def _on_hilbert_curve(points: Numbers) -> Numbers:
    """Positions of points, shape (3, points), on a Hilbert curve through a cube around them.

    The octants of the cube, and of each octant, follow each other in a Gray code, and each is turned so that the
    curve enters it next to where it left the one before (Skilling, Programming the Hilbert curve, AIP Conference
    Proceedings 707, 2004, doi:10.1063/1.1751381).
    """
    axes = points - points.min(axis=1, keepdims=True)
    bits = int(axes.max()).bit_length()
    for bit in reversed(range(1, bits)):
        inner = (1 << bit) - 1
        for axis in range(3):
            upper = (axes[axis] >> bit & 1) == 1
            exchanged = np.where(upper, 0, (axes[0] ^ axes[axis]) & inner)
            axes[axis] ^= exchanged
            axes[0] ^= np.where(upper, inner, exchanged)
    axes = np.bitwise_xor.accumulate(axes)
    for bit in range(1, bits):  # ascending: what is looked at has not changed yet
        axes ^= np.where(axes[2] >> bit & 1, (1 << bit) - 1, 0)
    position = np.zeros(points.shape[1], dtype="int64")
    for bit in range(bits):
        for axis in range(3):
            position |= (axes[axis] >> bit & 1) << 3 * bit + 2 - axis
    return position


def hash2d(parts: int) -> Places:
    """Emit TRUST's n³ triples, neighbours together."""
    i, j, k = _neighbours(np.indices((parts,) * 3).reshape(3, -1))
    return np.stack([i * parts + k, i * parts + j, k * parts + j], axis=1)


def vertical(parts: int) -> Places:
    """Emit TC-Stream's P1·P1·P2 triples, those of the same lists next to each other."""
    i, k, j = _neighbours(np.indices((parts,) * 3).reshape(3, -1) + np.array([[0], [parts], [0]]))
    k = k - parts
    width = 2 * parts
    return np.stack([i * width + j, i * width + parts + k, j * width + parts + k], axis=1)


def proxy(parts: int) -> Places:
    """Emit a triple for each of LSTC's parts."""
    part = np.arange(parts)
    return np.stack([2 * part, 2 * part + 1, 2 * part + 1], axis=1)


def _mean(parts: int, repeated: int) -> tuple[float, float]:
    """Shares that the mean task's columns and rows are, of 3n³ roles less those that repeat a block."""
    roles = 3 * parts**3 - repeated
    return roles / parts**5, roles / parts**4


def _own(_: int, place: Block) -> tuple[int, int]:
    return place


PLANNERS = {
    "whole": Planner(lambda n: 1, whole, _own, lambda n: (1, 1), replicated=True),
    "edges": Planner(lambda n: 1, whole, _own, lambda n: (1, 1), cut="edges", replicated=True),
    "hash2d": Planner(lambda n: n, hash2d, _own, lambda n: _mean(n, 2 * n**2)),
    "vertical": Planner(lambda n: 2 * n, vertical, _own, lambda n: _mean(n, n**2), once=False),
    "proxy": Planner(lambda n: 2, proxy, lambda n, place: (place[0],) * 2, lambda n: (2 / n, 2 / n), once=False),
}
