"""The partition schemes: the block triples of a count, and how vertices are distributed over the blocks.

A scheme is one `Scheme` object, of `OWN` here or of a plug-in (`dasktc.registry`); other modules ask the object. It
names the blocks of a grid, P[i][j] for row part i and column part j:

whole     The one block of the whole graph in all three roles: replicate it, split its rows (TRUST: Pandey et al.,
          TPDS 2021, section 5.1, which deals out single rows, u % m; `backends/cpu/splits.py` says how and why here).
edges     The same, with its edges split into equal ranges (H-INDEX: Pandey et al., HPEC 2019, section III).
hash2d    P[i][j] are the edges (u, v) with u % n = i, v % n = j. (P[i][k], P[i][j], P[k][j]) for all
          i, j, k: n² blocks, n³ tasks (TRUST, sections 5.2, 5.3).
vertical  n ranges of ids R of equal out-degree, p ranges C of equal in-degree. P[i][j] are the edges from R_i
          to R_j for j < n and from R_i to C_k for j = n + k: every edge is in two blocks.
          (P[i][j], P[i][n + k], P[j][n + k]) for all i, j, k: n²·p tasks (TC-Stream: Huang et al., TPDS 2022,
          section 4.1, with P1 = n, P2 = p; p = n by default).
proxy     n parts of vertices. P[p][1] is G_p, part p with its proxies, P[p][0] the edges of its local vertices.
          (P[p][0], P[p][1], P[p][1]): n tasks (LSTC: Tamboli and Jatala, ICPE 2026, section 4.1).

Each task is cut into m splits, by rows, or for `edges` by edges. A triple whose index or stream has no edges closes no
wedge and becomes no task; a triple of `vertical` with far more work than the mean becomes several tasks of about the
mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dasktc.registry import SCHEMES

__all__ = [
    "BYTES_PER_EDGE", "BYTES_PER_MEMBER", "BYTES_PER_ROW", "BY_RANGES", "BY_REMAINDER", "OWN", "WITH_PROXIES", "Block",
    "Cut", "Dealing", "Numbers", "Scheme", "Sizes", "Triple", "considered", "scheme_of",
]  # fmt: skip

Block = tuple[int, int]
Numbers = np.ndarray[Any, np.dtype[np.int64]]
Places = Numbers
"""Block triples, shape (triples, 3): index, table, stream, with P[i][j] as i · (columns of the grid) + j."""
BYTES_PER_EDGE, BYTES_PER_ROW, BYTES_PER_MEMBER = 4, 8, 4
HEAVY = 1.25
"""Multiple of the mean work from which a triple is cut. On Kronecker 14 and RM 2^17 in 8 parts the largest task then
has 2.8 and 2.7 times the mean probes, and uncut 19 and 42 times."""


class Sizes(NamedTuple):
    """Sizes of the blocks of a grid, each as an int64 array of the grid's shape.

    Attributes
    ----------
    edges, rows, columns : array of int64
    """

    edges: Numbers
    rows: Numbers
    columns: Numbers


@dataclass(frozen=True, order=True)
class Triple:
    """The three blocks of a counting task, by their places (i, j) in the grid."""

    index: Block
    table: Block
    stream: Block

    @property
    def places(self) -> tuple[Block, Block, Block]:
        """The three places, index first."""
        return self.index, self.table, self.stream


def lower_of_ranges(parts: int, sizes: Sizes) -> Any:
    """Mask of the blocks that are lower triangular in `degree` order: rows and two families of columns in ranges."""
    rows, columns = sizes.rows[:, 0], sizes.columns[0]
    firsts = [np.cumsum(widths) - widths for widths in (rows, columns[:parts], columns[parts:])]
    return firsts[0][:, None] - np.concatenate(firsts[1:]) <= 1


class Cut(Enum):
    """How vertices are cut into the rows and columns of a grid of blocks; the pipeline has a function for each."""

    BY_REMAINDER = auto()
    BY_RANGES = auto()
    WITH_PROXIES = auto()


@dataclass(frozen=True)
class Dealing:
    """How a scheme distributes vertices over the rows and the columns of its grid of blocks.

    Attributes
    ----------
    lay_out : Cut, or callable (plane, graph, parts, options, shape) -> Partition
        How vertices are cut into parts; of a plug-in a function that deals them out and measures the blocks, which its
        `pipeline.build_blocks.Partition` also builds.
    in_turn : bool
        Vertex id is in part id % n, so that each part has every n-th row of any range.
    families : int
        Number of families of columns, all but the last of n parts: an edge is in one block of each family.
    members : bool
        Whether a block carries the ids of its vertices.
    lower : callable (n, Sizes) -> array of bool
        Returns which blocks are lower triangles where ids are in `degree` order.
    whole_vectors : str
        What it keeps for all vertices in one process; empty: nothing. The scheme is refused where that does not fit.
    unknown : str
        What the sizes of its blocks depend on beside V and E; empty: nothing.
    """

    lay_out: Cut | Callable[..., Any]
    in_turn: bool = False
    families: int = 1
    members: bool = False
    lower: Callable[[int, Sizes], Any] = lambda _, sizes: np.ones(sizes.rows.shape, dtype=bool)
    whole_vectors: str = ""
    unknown: str = ""


BY_REMAINDER = Dealing(Cut.BY_REMAINDER, in_turn=True)
"""Rows and columns by id % n; n = 1 gives the whole graph."""
BY_RANGES = Dealing(Cut.BY_RANGES, families=2, lower=lower_of_ranges)
"""Rows in ranges of equal out-degree; columns in these, and beside them in ranges of equal in-degree."""
WITH_PROXIES = Dealing(Cut.WITH_PROXIES, members=True, unknown="how many proxies a part has")
"""Disjoint parts of the vertices, each with the proxies that LSTC's transformation leaves."""


@dataclass(frozen=True)
class Scheme:
    """A partition scheme: its block triples, the distribution of its vertices, and its bounds.

    Attributes
    ----------
    name, help : str
        Value of `--partition`, and a line of help with its paper and section.
    words : str
        The partition in plain words, for the summary of a plan, with {n} and {columns}.
    triples : callable (n) -> Places
    dealing : Dealing
    tasks : callable (n) -> int
        Number of triples.
    columns : callable (n) -> int
        Number of columns of its grid of blocks.
    sides : callable (n, (i, j)) -> (int, int)
        The numberings of vertices that a block's rows and columns use; equal numbers mean the same numbering.
    least : callable (n) -> (float, float)
        Lower bounds on the largest task's columns and rows, as shares of E and of V; tighter bounds save trying some n.
    candidates : tuple of int
        Values of n to try where none is given; empty: all.
    bound : (int, str) or None
        The largest n, and why.
    cut : {"rows", "edges"}
        What of the index block the splits are ranges of.
    replicated : bool
        Every task has the whole graph; n is 1.
    once : bool
        Every edge is in exactly one block of the grid.
    uneven : bool
        Triples differ widely in work: heavy ones are cut into more splits.
    with_columns : callable (p) -> Scheme, or None
        The scheme with p parts in its last family of columns, where that may differ from n.
    auto : int or None
        `auto` takes the first scheme, in ascending order of these numbers, whose largest task fits. Schemes whose block
        sizes V and E do not determine, or that keep whole vectors, are left out.
    """

    name: str
    help: str
    triples: Callable[[int], Places]
    dealing: Dealing = BY_REMAINDER
    tasks: Callable[[int], int] = lambda n: n**3
    columns: Callable[[int], int] = lambda n: n
    sides: Callable[[int, Block], tuple[int, int]] = lambda n, place: place
    least: Callable[[int], tuple[float, float]] = lambda n: (0, 0)
    candidates: tuple[int, ...] = ()
    bound: tuple[int, str] | None = None
    cut: str = "rows"
    replicated: bool = False
    once: bool = True
    uneven: bool = False
    with_columns: Callable[[int], Scheme] | None = None
    auto: int | None = None
    words: str = ""

    def block_bytes(self, sizes: Sizes) -> Numbers:
        """Bytes of each block of a grid, in the grid's shape."""
        row_bytes = BYTES_PER_ROW + BYTES_PER_MEMBER * self.dealing.members
        return BYTES_PER_EDGE * sizes.edges + row_bytes * sizes.rows + BYTES_PER_ROW

    def least_bytes(self, vertices: int, edges: int, parts: int) -> float:
        """Mean bytes of a task's blocks, which are a lower bound on the largest task's.

        For `hash2d`: TRUST's 3|E|/n² edges (section 6.5), less the blocks that occur twice in one of the n³ triples.
        """
        columns, rows = self.least(parts)
        return BYTES_PER_EDGE * edges * columns + BYTES_PER_ROW * vertices * rows

    def even(self, parts: int, vertices: int, edges: int) -> Sizes:
        """Sizes of blocks that, in each family, all have an equal share of the edges and of the vertices."""
        first = self.dealing.families - 1
        rows, width = 1 if self.replicated else parts, self.columns(parts)
        families = [parts] * first + [width - first * parts]
        family_sizes = [
            (-(-edges // (rows * count)), -(-vertices // rows), -(-vertices // count)) for count in families
        ]
        block_sizes = np.repeat(np.array(family_sizes, dtype="int64"), families, axis=0)
        block_sizes[:, 1:] = np.maximum(block_sizes[:, 1:], 1)
        return Sizes(*(np.tile(numbers, (rows, 1)) for numbers in block_sizes.T))

    def shares(self, triples: Places, sizes: Sizes) -> Numbers:
        """Number of times that the splits of each triple are scheduled: 0 without wedges, more than once if heavy.

        A triple's work is estimated as its index edges times the shorter of the mean rows of table and stream. From
        HEAVY times the mean on it is cut into tasks of about the mean.

        Returns
        -------
        array of int64, shape (triples,)
            In a graph without edges the first triple is scheduled all the same.
        """
        edges, rows = sizes.edges.ravel(), np.maximum(sizes.rows.ravel(), 1)
        index, table, stream = triples.T
        share: Numbers = ((edges[index] > 0) & (edges[stream] > 0)).astype("int64")
        if self.replicated or not share.any():
            share[:1] = 1
            return share
        if not self.uneven:
            return share
        row = edges / rows
        work = edges[index] * np.minimum(row[table], row[stream])
        mean = work[share > 0].mean()
        mask = (share > 0) & (work > HEAVY * mean)
        share[mask] = np.minimum(np.ceil(work[mask] / max(mean, 1)), rows[index[mask]])
        return share


def scheme_of(partition: str, column_parts: int | None = None) -> Scheme:
    """The scheme of a name, with its own number of column parts where one is asked for."""
    scheme: Scheme = SCHEMES[partition]
    bound = scheme.with_columns
    return scheme if column_parts is None or bound is None else bound(column_parts)


def considered(partition: str, column_parts: int | None = None) -> list[Scheme]:
    """Schemes that a name stands for: the scheme itself, or for "auto" all that it tries, in order."""
    if partition != "auto":
        return [scheme_of(partition, column_parts)]
    pairs = [(scheme.auto, scheme) for scheme in SCHEMES.values() if scheme.auto is not None]
    candidates = [pair for pair in pairs if not (pair[1].dealing.unknown or pair[1].dealing.whole_vectors)]
    return [scheme for _, scheme in sorted(candidates, key=lambda pair: pair[0])]


def whole(parts: int) -> Places:
    """Emit one triple: the whole graph as index, table and stream."""
    return np.zeros((1, 3), dtype="int64")


TURNS = ((0, 1, 2), (0, 2, 1), (1, 2, 0), (1, 0, 2), (2, 0, 1), (2, 1, 0))
"""Orders of three parts; each is next to orders with which it shares two blocks of three."""


def _neighbours(parts: Numbers) -> Numbers:
    """Sort triples of parts (i, j, k), shape (3, triples): most share two of their three blocks with the one before.

    (P[i][k], P[i][j], P[k][j]) over the six orders of three parts uses six blocks; in the order of TURNS each triple
    needs one more. Sets of three parts are sorted along a Hilbert curve: any range of triples, whether a worker's share
    or the contents of a cache, is compact and has few blocks.
    """
    sorted_parts, turn = np.sort(parts, axis=0), np.zeros(parts.shape[1], dtype="int64")
    for number in reversed(range(len(TURNS))):
        turn[(sorted_parts[list(TURNS[number])] == parts).all(axis=0)] = number
    neighbours: Numbers = parts[:, np.lexsort((turn, _on_hilbert_curve(sorted_parts)))]
    return neighbours


def _on_hilbert_curve(points: Numbers) -> Numbers:
    """Positions of points, shape (3, points), on a Hilbert curve through a cube around them.

    The octants of the cube, and of each octant, follow each other in a Gray code, and each is turned so that the
    curve enters it next to where it left the one before (Skilling, Programming the Hilbert curve, AIP Conference
    Proceedings 707, 2004, doi:10.1063/1.1751381).
    """
    axes = points - points.min(axis=1, keepdims=True)
    bits = int(axes.max()).bit_length()
    for bit in reversed(range(1, bits)):
        low_mask = (1 << bit) - 1
        for axis in range(3):
            high_mask = (axes[axis] >> bit & 1) == 1
            swap_bits = np.where(high_mask, 0, (axes[0] ^ axes[axis]) & low_mask)
            axes[axis] ^= swap_bits
            axes[0] ^= np.where(high_mask, low_mask, swap_bits)
    axes = np.bitwise_xor.accumulate(axes)
    for bit in range(1, bits):  # ascending: the bits that are tested have not changed yet
        axes ^= np.where(axes[2] >> bit & 1, (1 << bit) - 1, 0)
    position = np.zeros(points.shape[1], dtype="int64")
    for bit in range(bits):
        for axis in range(3):
            position |= (axes[axis] >> bit & 1) << 3 * bit + 2 - axis
    return position


def hash2d(parts: int) -> Places:
    """Emit TRUST's n³ triples in an order in which neighbours share two of three blocks."""
    i, j, k = _neighbours(np.indices((parts,) * 3).reshape(3, -1))
    return np.stack([i * parts + k, i * parts + j, k * parts + j], axis=1)


def vertical(parts: int, column_parts: int | None = None) -> Places:
    """Emit TC-Stream's P1·P1·P2 triples; those with the same lists are next to each other."""
    column_parts = column_parts or parts
    grid = np.indices((parts, column_parts, parts)).reshape(3, -1)
    i, k, j = _neighbours(grid + np.array([[0], [parts], [0]]))
    k = k - parts
    width = parts + column_parts
    return np.stack([i * width + j, i * width + parts + k, j * width + parts + k], axis=1)


def proxy(parts: int) -> Places:
    """Emit one triple for each of LSTC's parts."""
    part = np.arange(parts)
    return np.stack([2 * part, 2 * part + 1, 2 * part + 1], axis=1)


def _by_ranges(column_parts: int | None = None) -> Scheme:
    """TC-Stream's scheme with P2 column ranges; None: n of them."""

    def ranges(n: int) -> int:
        return column_parts or n

    def least(n: int) -> tuple[float, float]:  # where i = j, table and stream are one block
        lists = 2 - 1 / n
        return 1 / n**2 + lists / (n * ranges(n)), (1 + lists) / n

    return Scheme(
        "vertical",
        "n ranges of rows and of columns, n³·m tasks less those without wedges, and more for heavy ones (TC-Stream, "
        "section 4.1)",
        partial(vertical, column_parts=column_parts),
        BY_RANGES,
        tasks=lambda n: n * n * ranges(n),
        columns=lambda n: n + ranges(n),
        least=least,
        once=False,
        uneven=True,
        with_columns=_by_ranges,
        words=f"{{n}} × {column_parts or '{n}'} ranges",
    )


OWN = (
    Scheme(
        "whole",
        "one block, m row splits (after TRUST, section 5.1)",
        whole,
        tasks=lambda n: 1,
        columns=lambda n: 1,
        least=lambda n: (1, 1),
        replicated=True,
        auto=0,
        words="one block",
    ),
    Scheme(
        "edges",
        "one block, m equal edge ranges (H-INDEX, section III)",
        whole,
        tasks=lambda n: 1,
        columns=lambda n: 1,
        least=lambda n: (1, 1),
        cut="edges",
        replicated=True,
        words="one block",
    ),
    Scheme(
        "hash2d",
        "n² blocks by id % n, n³·m tasks (TRUST, sections 5.2 and 5.3)",
        hash2d,
        # the mean task: 3n³ roles less the 2n² that repeat a block
        least=lambda n: ((3 * n**3 - 2 * n**2) / n**5, (3 * n**3 - 2 * n**2) / n**4),
        auto=10,
        words="{n} × {columns} blocks",
    ),
    Scheme(
        "proxy",
        "n parts of the vertices with proxies, n·m tasks (LSTC, section 4.1)",
        proxy,
        WITH_PROXIES,
        tasks=lambda n: n,
        columns=lambda n: 2,
        sides=lambda n, place: (place[0],) * 2,
        least=lambda n: (2 / n, 2 / n),
        candidates=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),  # each costs passes over all edges
        bound=(64, "a vertex's parts are bits of one number"),
        once=False,
        words="{n} parts with neighbours",
    ),
    _by_ranges(),
)
"""The package's own schemes, in the order of the help text."""
SCHEMES.declare(OWN, Scheme)
