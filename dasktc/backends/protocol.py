"""What the stages and the plan need of a backend: an array module, a frame module, a sort, and "evaluate a triple".

Tasks carry a backend's name, never its modules (`lazy_backend`): each worker imports it for itself, so a client needs
no GPU library. This module imports neither Numba nor CuPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isqrt
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dasktc.backends.csr import BlockTask, OrientedCSR, TaskCount
from dasktc.backends.wedge_sample import Strata

if TYPE_CHECKING:
    from dasktc.backends.edge_functions import Recipe

__all__ = [
    "BACKENDS",
    "ON_DEVICE",
    "PARTITION_EDGES",
    "Backend",
    "Edges",
    "GraphBounds",
    "Peel",
    "Peeled",
    "TaskSize",
    "TextIds",
]

BACKENDS = ("cpu", "cuda")
ON_DEVICE = ("cuda",)
"""Backends with `Backend.raw_edges`."""
PARTITION_EDGES = {"cpu": 1 << 25, "cuda": 1 << 30}
"""Edges that one partition holds at the most: a device sorts many at once, below cuDF's 2^31 rows."""


class TextIds(NamedTuple):
    """What a backend does with columns of text ids.

    unite (columns) gives the distinct ids of several columns or of results of itself; ascending
    (ids) sorts them by their UTF-8 bytes; dense (ids, column) finds the place of each of a column's
    ids among sorted ones, as an integer array of the backend; arrow (ids) gives them as one Arrow
    array on the host, and column (ids) makes a column of such an array.
    """

    unite: Callable[[list[Any]], Any]
    ascending: Callable[[Any], Any]
    dense: Callable[[Any, Any], Any]
    arrow: Callable[[Any], Any]
    column: Callable[[Any], Any]


class TaskSize(NamedTuple):
    """What a kernel's scratch depends on.

    Attributes
    ----------
    index_edges : int
        Of the task's split.
    table_edges, stream_edges : int
    columns : int
        The most columns or rows of a block.
    splits : int
        Of the index block, by rows.
    parts : int
        n where vertices are dealt out in turn, id % n; 1 where blocks have ranges of them.
    lower : bool
        In `degree` order neither the table nor the stream block has a column above its row.
    """

    index_edges: int
    table_edges: int
    stream_edges: int
    columns: int
    splits: int = 1
    parts: int = 1
    lower: bool = True

    @property
    def block_edges(self) -> int:
        """Edges of the largest block."""
        return max(self.splits * self.index_edges, self.table_edges, self.stream_edges)


class GraphBounds(NamedTuple):
    """What is known of the graph that a task's blocks are cut from.

    Attributes
    ----------
    edges : int
    ordered : bool
        Ids are in `degree` order.
    """

    edges: int
    ordered: bool

    @property
    def longest(self) -> int:
        """The most entries of an oriented row: each has at least the row's degree d, so d² <= 2 |E|."""
        return isqrt(2 * self.edges)

    def rows_above(self, entries: int, of: TaskSize) -> int:
        """The most rows of a block up to its last one with more than `entries` entries.

        In `degree` order no vertex before that one has a lower degree.
        """
        before = 2 * self.edges // (entries + 1) if self.ordered else of.columns * of.parts
        return min(of.columns, -(-before // of.parts))


class Edges(Protocol):
    """What a backend does with edges, in one pass each.

    Raw edges are two arrays of int32 or int64, `src` and `dst`; keys are arrays of int64, `high << shift | low`;
    degrees arrays of `Backend.numbers`, ranks of int32. Results are new arrays, inputs stay as they are, but for what
    `mark`, `add_degrees` and `add_sources` fill in, which they are given first, and for the keys of `distinct`.

    Attributes
    ----------
    ranges : int
        `split` takes fewer borders than so many.
    """

    @property
    def ranges(self) -> int: ...  # noqa: D102

    def mark(self, present: Any, src: Any, dst: Any, low: int) -> None:
        """Mark the ids, counted from `low`, of all edges but loops."""

    def keys(self, src: Any, dst: Any, of: Any, shift: int) -> Any:
        """Canonical keys in the order of the edges; on a device those of loops are 0. `of` maps a range of ids."""

    def between(self, keys: Any, first: int, end: int) -> Any:
        """Select the keys with first <= key < end, in no order."""

    def split(self, keys: Any, starts: list[int]) -> list[Any]:
        """Deal keys to ranges that begin at 0 and at each of `starts`: an array each, in no order."""

    def distinct(self, keys: Any, shift: int) -> Any:
        """The distinct ones of ascending keys, which may be overwritten; without loops."""

    def add_degrees(self, counts: Any, keys: Any, shift: int) -> None:
        """Count both ends of keys whose high ends ascend."""

    def add_sources(self, counts: Any, keys: Any, shift: int) -> None:
        """Count the high ends."""

    def oriented(self, keys: Any, rank: Any, shift: int) -> Any:
        """Keys of the ends' ranks, the higher one first."""

    def rows(self, keys: Any, start: int, rows: int, columns: int) -> tuple[Any, Any]:
        """Offsets (int64) and columns (int32) of rows of ascending keys, start + row * columns + column each."""


class Peeled(NamedTuple):
    """What peeling edges leaves.

    Attributes
    ----------
    levels : array of int32, shape (edges,)
        The level at which each edge went: its trussness less 2; -1 of those that stay.
    left : array of int32, shape (edges,)
        Of those that stay, the triangles that they have among themselves.
    triangles : int
        Triangles that went.
    following : int or None
        It ended early, since fewer than half of the edges stay: these are to be peeled from this level on.
    """

    levels: Any
    left: Any
    triangles: int
    following: int | None = None


class Peel(Protocol):
    """What a backend does to peel a graph: one block of all edges, in an order in which columns are below their rows.

    Levels run from `first` to `last`; what goes at an earlier one goes at `first`.
    """

    def rows(self, graph: OrientedCSR) -> Any:
        """The row of every edge, int32."""

    def cores(self, graph: OrientedCSR, first: int, last: int) -> Any:
        """The core number of every vertex, int32, -1 of those above `last`."""

    def trusses(self, graph: OrientedCSR, supports: Any, first: int, last: int) -> Peeled:
        """Peel edges, whose triangles (int32) are given: those whose trussness is above last + 2 stay."""


class RawEdges(Protocol):
    """What a device does with raw edges, loops among them."""

    def facts(self, src: Any, dst: Any) -> Any:
        """Count loops, and find the smallest and the largest id of the other edges: `loops`, `low` and `high`."""

    def marks(self, width: int) -> Any:
        """A table of so many ids, none of which is marked."""

    def mark(self, table: Any, src: Any, dst: Any, low: int) -> None:
        """As `Edges.mark`."""

    def ranked(self, table: Any, low: int, width: int) -> Any:
        """The map (`pipeline.id_maps.VertexMap`) of the ids that are marked."""

    def residues(self, keys: Any, shift: int, modulus: int) -> Any:
        """How many keys have each pair of their ends' remainders, modulus² <= `Edges.ranges`: row after row."""

    def placed(self, keys: Any, shift: int, modulus: int, firsts: Any, widths: Any) -> Any:
        """Keys by block, of ends dealt out by remainder: firsts[i, j] + row * widths[j] + column."""


class Vertices(Protocol):
    """What a backend does with vectors of vertices, arrays of `Backend.numbers`; results are new arrays."""

    def order(self, weights: Any) -> Any:
        """Vertices by descending weight, ties by ascending number; None where a sort of keys is sooner."""

    def inverse(self, order: Any) -> Any:
        """The place of each vertex in an order."""

    def wedges(self, degree: Any, rank: Any, outward: Any) -> int:
        """Σ in·out over all vertices, exact for fewer than 2^41 edges.

        Vertex v has `outward[rank[v]]` outgoing edges; the rest of its `degree[v]` edges are incoming.
        """

    def lengths(self, values: Any, bins: int) -> Any:
        """How many elements have each value, shape (bins,); all are below `bins`."""


class Answers(Protocol):
    """How a device makes columns of frames of numbers of edges and of vertices (`cuda.answers.DeviceAnswers`)."""

    def facts(self, numbers: Any) -> tuple[int, int]:
        """The sum, and the largest, of numbers of edges."""

    def edges(
        self, block: OrientedCSR, numbers: Any, ids: tuple[Any, Any], vertices: int, most: int, external: Any
    ) -> tuple[Any, Any, Any] | None:
        """Columns of a block's edges under the caller's ids, ascending; None where bits do not suffice."""

    def clustering(self, triangles: Any, outward: Any, inward: Any) -> Any:
        """Local clustering coefficients of triangles, and degrees in two parts."""

    def place(self, numbers: Any, order: Any) -> Any:
        """Numbers of vertices by dense id, those of 64 bits."""


class SharedArrays(Protocol):
    """Sorts, orients and builds blocks with threads of one process, which write to arrays that they share.

    Attributes
    ----------
    Buckets : callable (keys, ends, shift) -> `cpu.radix.Buckets`
    """

    @property
    def Buckets(self) -> Any: ...

    def leading_bits(self, keys: int, bound: int) -> tuple[int, int]:
        """The bits of the leading digit, and those below it, of so many keys below a bound."""

    def proper(self, src: Any, dst: Any) -> tuple[Any, Any, int, int, int]:
        """Drop loops.

        Returns
        -------
        src, dst : array
            The given ones where there is no loop.
        loops : int
        low, high : int
            The smallest and the largest id that is left; low > high where no edge is.
        """

    def ends(self, src: Any, dst: Any, low: int, shift: int) -> Any:
        """Edges of ids from `low` on, which stand for their canonical keys.

        `count`, `deal`, `array`, `Backend.merge` and `Backend.edges.between` take them for an array of keys, which
        they make a chunk at a time.
        """

    def array(self, keys: Any) -> Any:
        """The keys in an array, in the same order."""

    def count(self, keys: Any, buckets: int, shift: int, base: int = 0) -> Any:
        """How many keys have each leading digit, from `base` on."""

    def deal(self, keys: Any, shift: int, places: Any, target: Any, base: int = 0) -> None:
        """Write each key to the place of its leading digit; `places` is overwritten."""

    def orient(self, keys: Any, rank: Any, shift: int) -> Any:
        """Write the keys of the ends' ranks, the higher one first, over the keys."""

    def write_rows(self, keys: Any, start: int, columns: int, first: int, offsets: Any, numbers: Any) -> None:
        """Write offsets and columns of rows of ascending keys to parts of a block's arrays."""


class BitMatrix(Protocol):
    """How a device counts small graphs, by bits."""

    def keys(self, src: Any, dst: Any) -> Any:
        """Keys of raw edges (`cuda.bit_matrix.SmallKeys`); None where the graph is too large."""

    def count(self, of: Any) -> Any:
        """Count the triangles of a graph by its keys: a `cuda.bit_matrix.BitCount`."""


@dataclass(frozen=True)
class Backend:
    """What the stages need of a device.

    Attributes
    ----------
    name : str
        The name that tasks carry.
    frame : module
        The data frame module of edge frames: pandas or cudf.
    array : module
        The array module of everything after reading: numpy or cupy.
    read : callable (part, upstream) -> frame
        Reads a part of a source (`io.source.Part`) to a frame of `frame`; with `edges` perhaps to two arrays of
        integers.
    text : TextIds
    distinct : callable (values) -> array
        The distinct values of an integer array, ascending.
    lookup : callable (ids, values) -> array
        The place of each value among `ids`, which are ascending, distinct and hold it.
    sort : callable (keys, bound) -> array
        `keys` (int64, 0 <= key < bound) in ascending order. May overwrite and return `keys`.
    merge : callable (arrays, bound, low) -> array, or None
        A backend's own sort of the keys of several arrays, which it leaves as they are; it empties the list. Keys that
        differ in bits below `low` alone come in any order. None: they are concatenated and sorted.
    count : callable (task, kernel) -> TaskCount
        Evaluates one block triple with the named kernel.
    expected_probes : callable (task, kernel) -> int
        The probes of `count`, from row lengths and positions alone.
    support : callable (task, kernel) -> (supports, triangles, wedges)
        Each edge's triangles in a task, as `backends.cpu.visit.support` returns them, by the named kernel if that
        gives them itself (`backends.support_kernels`), else by visiting the triangles one by one.
    vertex_support : callable (task, kernel, sides, sizes) -> (sums, triangles, wedges)
        Each vertex's triangles in a task, as `backends.cpu.supports.vertices` returns them, by a kernel that gives
        them itself.
    listing : callable (task, limit) -> array
        The first triangles of a task, as `backends.cpu.visit.listing` returns them.
    peel : Peel
        Takes a graph apart by degrees and by supports.
    add_ends : callable (block, values, at_row, at_column)
        Adds each edge's value to both of its ends, as `visit.add_ends` does.
    memory : callable () -> int
        Bytes that this process could allocate now where the blocks are.
    chunk : int
        Elements at a time that elementwise arithmetic runs fastest on. On the CPU 64 KiB of keys: larger
        intermediates would be mapped and faulted in anew each time, for Dask's workers run with a fixed
        trim threshold, which stops malloc from learning.
    edges : Edges
        What it does with edges.
    raw_edges : RawEdges or None
        A device's own way with raw edges, from which loops are not removed; None: frames and array arithmetic.
    vertices : Vertices or None
        A backend's own way with vectors of vertices; None: array arithmetic.
    shared : SharedArrays or None
        What threads of this process do to arrays that they share; None on a device.
    bit_matrix : BitMatrix or None
        A backend's own way with small graphs, from raw edges to the number.
    answers : Answers or None
        A device's own way to columns of frames; None: array arithmetic.
    make : callable (recipe, first, last) -> (source, target) or None, or None
        A backend's own way to make a generated graph's edges; None of a recipe that it has none for.
    upload : callable (size, fill) -> array of uint8, or None
        Bytes in the backend's memory that `fill` (buffer, start) reads, in several threads.
    rows : callable (text, separator, columns) -> (source, target) or None, or None
        A backend's own parser of whole lines of integers; None of a text that is for the host's.
    numbers : str
        Type of vectors of vertices and of degrees. On a device they count beside the edges.
    references : (str, str)
        The kernel that others are verified with, short and plain, and the one that it is verified with.
    cliques : callable (task, size) -> (cliques, work, wedges)
        Counts cliques in a block that is the whole graph, as `backends.cpu.cliques.count` does.
    closed_wedges : callable (task, Strata) -> (sampled, closed)
        Tests a triple's sampled wedges, as `backends.cpu.wedges.closed` does.
    processors : callable () -> int
        Multiprocessors of the device; 1 on the CPU.
    """

    name: str
    frame: ModuleType
    array: ModuleType
    read: Callable[[Any, Any], Any]
    text: TextIds
    distinct: Callable[[Any], Any]
    lookup: Callable[[Any, Any], Any]
    sort: Callable[[Any, int], Any]
    count: Callable[[BlockTask, str], TaskCount]
    expected_probes: Callable[[BlockTask, str], int]
    support: Callable[[BlockTask, str], tuple[list[Any], int, int]]
    vertex_support: Callable[[BlockTask, str, tuple[int, int, int], Mapping[int, int]], Any]
    listing: Callable[[BlockTask, int], Any]
    add_ends: Callable[[OrientedCSR, Any, Any, Any], None]
    cliques: Callable[[BlockTask, int], tuple[int, int, int]]
    closed_wedges: Callable[[BlockTask, Strata], tuple[int, int]]
    memory: Callable[[], int]
    edges: Edges
    peel: Peel
    chunk: int = 1 << 13
    raw_edges: RawEdges | None = None
    vertices: Vertices | None = None
    shared: SharedArrays | None = None
    bit_matrix: BitMatrix | None = None
    answers: Answers | None = None
    make: Callable[[Recipe, int, int], tuple[Any, Any] | None] | None = None
    merge: Callable[[list[Any], int, int], Any] | None = None
    upload: Callable[[int, Callable[[Any, int], None]], Any] | None = None
    rows: Callable[[Any, str | None, tuple[int, int]], tuple[Any, Any] | None] | None = None
    numbers: str = "int64"
    references: tuple[str, str] = ("merge", "search")
    processors: Callable[[], int] = lambda: 1

    @property
    def on_device(self) -> bool:
        """Whether its arrays lie in device memory."""
        return self.name in ON_DEVICE
