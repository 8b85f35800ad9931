"""Protocol of a backend: the array module, frame module, sort and "evaluate a triple" that stages and plans need.

Tasks carry a backend's name, never its modules (`lazy_backend`): each worker imports it for itself, so a client needs
no GPU library. This module imports neither Numba nor CuPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isqrt
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dasktc.backends.bit_matrix import SmallKeys
from dasktc.backends.block_facts import ColumnFacts, Hash, RowFacts, VertexFacts
from dasktc.backends.csr import BlockTask, OrientedCSR, Places, TaskCount
from dasktc.backends.edge_sample import Colours
from dasktc.backends.vertex_maps import VertexMap
from dasktc.backends.wedge_sample import Strata

if TYPE_CHECKING:
    from dasktc.backends.edge_functions import Recipe

__all__ = [
    "BACKENDS", "ON_DEVICE", "PARTITION_EDGES", "Backend", "BlockFacts", "Buckets", "Edges", "GraphBounds", "PartEdges",
    "Peel", "Peeled", "TaskSize", "TextIds", "Totals",
]  # fmt: skip

BACKENDS = ("cpu", "cuda")
ON_DEVICE = ("cuda",)
"""Backends whose arrays are in device memory."""
PARTITION_EDGES = {"cpu": 1 << 25, "cuda": 1 << 30}
"""Most edges in one partition; a device sorts many at once, but cuDF has fewer than 2^31 rows."""


class TextIds(NamedTuple):
    """Functions of a backend on columns of text ids.

    unite (columns) returns the distinct ids of several columns, or of results of itself; ascending (ids) sorts ids by
    their UTF-8 bytes; dense (ids, column) returns the place of each of a column's ids among sorted ids, as an integer
    array of the backend; arrow (ids) returns ids as one Arrow array on the host; column (ids) makes a column of such
    an array.
    """

    unite: Callable[[list[Any]], Any]
    ascending: Callable[[Any], Any]
    dense: Callable[[Any, Any], Any]
    arrow: Callable[[Any], Any]
    column: Callable[[Any], Any]


class TaskSize(NamedTuple):
    """Sizes of a counting task, on which a kernel's scratch depends."""

    index_edges: int
    """Index edges of the task's split."""
    table_edges: int
    stream_edges: int
    columns: int
    """Largest number of columns or rows of a block."""
    splits: int = 1
    """Number of row splits of the index block."""
    parts: int = 1
    """n where vertices are dealt out in turn, id % n; 1 where blocks have ranges of them."""
    lower: bool = True
    """In `degree` order neither the table nor the stream block has a column above its row."""

    @property
    def block_edges(self) -> int:
        """Edges of the largest block."""
        return max(self.splits * self.index_edges, self.table_edges, self.stream_edges)


class GraphBounds(NamedTuple):
    """Known bounds of the graph from which a task's blocks are cut."""

    edges: int
    """At least half of the sum of what vertices are ranked by: edges, or rows that are no loops, if these are more."""
    ordered: bool
    """Ids are in `degree` order."""

    @property
    def longest(self) -> int:
        """Most entries of an oriented row: d entries all have a degree, or rows, of at least d, so d² <= 2 |E|."""
        return isqrt(2 * self.edges)

    def rows_above(self, entries: int, of: TaskSize) -> int:
        """Most rows of a block up to its last one with more than `entries` entries.

        In `degree` order no vertex before that row has a lower degree, or fewer rows.
        """
        rows = 2 * self.edges // (entries + 1) if self.ordered else of.columns * of.parts
        return min(of.columns, -(-rows // of.parts))


class Edges(Protocol):
    """Functions of a backend on edges, each in one pass.

    Raw edges are two arrays of int32 or int64, `src` and `dst`; keys are arrays of int64, `high << shift | low`;
    degrees and ranks are arrays of int32. Results are new arrays, and inputs stay unchanged, except the first arguments
    of `mark`, `count_ends`, `add_degrees` and `add_sources`, and the keys of `orient`.

    Where the CPU drops the loops of a frame, a device keeps them until their keys are sorted, and leaves them out of
    what it computes before. The CPU computes lazy keys at each reading, one chunk at a time in cache; a device makes an
    array of them. `between`, `split`, `Backend.merge` and `Backend.dealt` take lazy keys in place of an array.

    Attributes
    ----------
    ranges : int
        `split` takes fewer borders than this.
    """

    @property
    def ranges(self) -> int: ...  # noqa: D102

    def proper(self, src: Any, dst: Any) -> tuple[tuple[Any, Any], int, int, int]:
        """Look for loops among raw edges.

        Returns
        -------
        ends : (src, dst)
            The edges without loops; the arrays that are given where there is none, and on a device.
        loops : int
        low, high : int
            The smallest and the largest id of the other edges; low > high where there are none.
        """

    def without_loops(self, src: Any, dst: Any) -> tuple[Any, Any]:
        """Drop the loops that `proper` has left."""

    def sampled(self, src: Any, dst: Any, colours: Colours) -> tuple[Any, Any]:
        """Select the edges whose ends have one colour, as `edge_sample.colours_of` colours ids."""

    def marks(self, width: int) -> Any:
        """Make a table for the given number of ids, none of which is marked, in the backend's own form."""

    def mark(self, marks: Any, src: Any, dst: Any, low: int) -> None:
        """Mark the ids, counted from `low`, of all edges except loops, which a backend may mark, too."""

    def marked(self, present: Any) -> Any:
        """Make a table of marks of flags, one per id."""

    def ranked(self, marks: Any, low: int, width: int) -> VertexMap:
        """Make the map of the marked ids."""

    def count_ends(self, counts: Any, src: Any, dst: Any, of: Any) -> None:
        """Add 1 to the counts of both ends, by dense id, of all edges except loops; counts are modulo 2^32.

        `of` is as for `keys`.
        """

    def keys(self, src: Any, dst: Any, of: Any, shift: int, rank: Any = None) -> Any:
        """Canonical keys in the order of the edges, with ranks oriented ones; on a device those of loops are 0.

        `of` is a `RangeMap`, or has the smallest id, `low`, of a range of ids that are used as they are.
        """

    def lazy_keys(self, src: Any, dst: Any, of: Any, shift: int) -> Any:
        """Canonical keys over a range of ids, which are perhaps computed only as they are read."""

    def between(self, keys: Any, first: int, end: int) -> Any:
        """Select the keys with first <= key < end, in no order."""

    def split(self, keys: Any, starts: list[int]) -> list[Any]:
        """Deal keys to ranges that begin at 0 and at each of `starts`: an array or a slice each, in no order."""

    def split_rows(
        self, edges: Iterator[tuple[Any, Any]], of: Any, rank: Any, rows: list[int], shift: int
    ) -> Iterator[list[Any]]:
        """Make oriented keys of edges, a pair of arrays after another, and deal them to ranges that end before `rows`.

        Both ends of a range's edges are below its end: its keys become high << bits | low, with the bits of end - 1.
        `of` is as for `keys`.
        """

    def add_degrees(self, counts: Any, keys: Any, shift: int) -> None:
        """Add 1 to the count of both ends of each key; the high ends ascend."""

    def add_sources(self, counts: Any, keys: Any, shift: int) -> None:
        """Add 1 to the count of the high end of each key."""

    def oriented(self, keys: Any, rank: Any, shift: int) -> Any:
        """Keys over the ranks of the ends, the higher rank first."""

    def orient(self, keys: Any, rank: Any, shift: int) -> Any:
        """Keys as those of `oriented`, perhaps in the memory of the given ones."""

    def residues(self, keys: Any, shift: int, modulus: int) -> Any:
        """Number of keys with each pair of their ends' remainders, row-major; modulus² <= `ranges`."""

    def placed(self, keys: Any, shift: int, modulus: int, firsts: Any, widths: Any) -> Any:
        """Recode keys by block, with ends dealt out by remainder: firsts[i, j] + row * widths[j] + column."""

    def rows(self, keys: Any, start: int, rows: int, columns: int) -> tuple[Any, Any]:
        """Offsets (int64) and columns (int32) of the rows of ascending keys, each start + row * columns + column."""


class PartEdges(Protocol):
    """Functions of a backend on the edges of parts with proxies, given as keys in any order.

    Bit masks of parts are arrays of int64 over the vertices; `into` is updated. Other results are new arrays.
    """

    def neighbours(self, keys: Any, shift: int, bits: Any, into: Any, parts: int) -> None:
        """OR each end's bits into the other end's."""

    def targets(self, keys: Any, shift: int, bits: Any, into: Any, parts: int) -> None:
        """OR each source's bits into its targets'."""

    def reached(self, keys: Any, shift: int, within: Any, into: Any, parts: int) -> None:
        """OR each source's bits into its targets', those bits that the targets have in `within`.

        A call may move bits on that it has moved itself, even until none moves: fewer calls of all partitions are left.
        """

    def inside(self, keys: Any, shift: int, bits: Any, parts: int) -> list[int]:
        """For each part, the number of edges both of whose ends have its bit."""

    def degrees(self, keys: Any, shift: int, roles: Any) -> tuple[Any, Any]:
        """In-degrees from a part's local vertices, and out-degrees within the part, int64.

        `roles` are the vertices' flags TAIL, HEAD and LOCAL of `part_edges`, uint8.
        """

    def numbered(self, keys: Any, shift: int, number: Any) -> Any:
        """Keys of a part's edges, in their order, over the numbers of their ends.

        `number`, int32, is n for the part's vertex n, -2 - n where no edge to it is in the part, and OUTSIDE of
        `part_edges` for vertices that are not in the part.
        """

    def columns(self, keys: Any, shift: int, first: int, wanted: Any, size: int) -> Any:
        """Columns, int32, of the `size` keys whose row, counted from `first`, is wanted (bool)."""


class Peeled(NamedTuple):
    """Result of peeling edges."""

    levels: Any
    """Array of int32, shape (edges,). Level at which each edge was removed, its trussness less 2; -1 for edges that
    stay."""
    left: Any
    """Array of int32, shape (edges,). For edges that stay, their number of triangles among themselves."""
    triangles: int
    """Number of removed triangles."""
    following: int | None = None
    """Set where peeling ended early because fewer than half of the edges stay: the level to continue from."""


class Peel(Protocol):
    """Peeling of a graph in one block of all edges, ordered so that columns are below their rows.

    Levels run from `first` to `last`; what would be removed earlier is removed at `first`.
    """

    def rows(self, graph: OrientedCSR) -> Any:
        """The row of every edge, int32."""

    def cores(self, graph: OrientedCSR, first: int, last: int) -> Any:
        """The core number of every vertex, int32; -1 where it exceeds `last`."""

    def trusses(self, graph: OrientedCSR, supports: Any, first: int, last: int) -> Peeled:
        """Remove edges by their triangles (int32); edges of trussness above last + 2 stay."""


class Totals(NamedTuple):
    """Vertices with an edge, edges and wedges (Σ in·out of all vertices) of an oriented graph, and its longest row."""

    vertices: int
    edges: int
    wedges: int
    longest: int


class Vertices(Protocol):
    """Functions of a backend on vertex vectors, arrays of int32 if nothing else is said; results are new arrays."""

    def order(self, weights: Any) -> Any:
        """Vertices by descending weight, ties by ascending number, int32; weights are integers of any type.

        int64 where a weight and a number do not fit 63 bits together.
        """

    def inverse(self, order: Any) -> Any:
        """The place of each vertex in an order, int32; the order may be of int64."""

    def totals(self, degree: Any, order: Any, outward: Any) -> Totals:
        """Totals of an oriented graph, exact for fewer than 2^41 edges.

        Vertex `order[r]` has `outward[r]` outgoing edges; the rest of its `degree[order[r]]` edges are incoming.
        """

    def lengths(self, values: Any, bins: int) -> Any:
        """Number of elements with each value, shape (bins,); all values are below `bins`."""


class Answers(Protocol):
    """Converts numbers by edge and by vertex into result columns."""

    def facts(self, numbers: Any) -> tuple[int, int]:
        """The sum and the maximum of numbers by edge."""

    def edges(
        self, block: OrientedCSR, numbers: Any, ids: tuple[Any, Any], vertices: int, most: int, external: Any
    ) -> tuple[Any, Any, Any] | None:
        """Columns of a block's edges under the caller's ids, ascending; None where slices must be sorted instead."""

    def clustering(self, triangles: Any, outward: Any, inward: Any) -> Any:
        """Local clustering coefficients from triangles, and degrees given as two summands."""

    def place(self, numbers: Any, order: Any) -> Any:
        """Permute numbers by vertex to dense ids."""


class Buckets(Protocol):
    """Keys that are dealt to buckets by their leading digit, and sorted when they are taken.

    On the CPU threads may take ranges of buckets at the same time, each range once; a device has a single bucket.
    """

    @property
    def size(self) -> int:
        """Number of keys."""

    def __len__(self) -> int:
        """Number of buckets."""

    def ranges(self, most: int) -> list[tuple[int, int]]:
        """At most `most` half-open ranges of buckets with about equally many keys."""

    def distinct(self, first: int, end: int, shift: int) -> Any:
        """Distinct keys of a range of buckets, ascending, in memory of the buckets or a copy; on a device no loops."""

    def distinct_rows(
        self, first: int, end: int, shift: int, lengths: Any, vertices: Any, degrees: Any
    ) -> Callable[[], Any]:
        """Columns (int32) of the rows of a range of buckets of keys over ranks, as `distinct` keeps each key once.

        A device may still compute them: the function waits until their number is known, and returns them.

        In place, the numbers of edges of these rows are written to `lengths`, by rank, which are 0 at first, and each
        repeat is subtracted from the `degrees` of both ends, by vertex; `vertices` has the vertex of each rank. All
        three are of int32. Each bucket has whole rows, as `write_rows` says.
        """

    def rows(self, start: int, rows: int, columns: int, low: int = 0) -> tuple[Any, Any]:
        """As `Edges.rows`, of all keys; those that differ only in bits below `low` may come in any order."""

    def write_rows(self, first: int, end: int, shift: int, low: int, offsets: Any, columns: Any) -> None:
        """Write the rows of a range of buckets into the arrays of a block that has all keys, source << shift | target.

        They were dealt with a bound, and by a span from 0, of 1 << 2 * shift keys, so that a bucket has whole rows.
        """


class BlockFacts(Protocol):
    """Facts of arrays from a file, by which they are checked before a kernel trusts them (`backends.block_facts`)."""

    step: int
    """Rows of a block, or entries of vectors, that a thread looks at in one call."""

    def facts_of_file(self, read: Callable[[Callable[[Any], None] | None], Any], by: Hash) -> tuple[Any, ColumnFacts]:
        """Read columns with `read`, and return them with their facts.

        `read` may be given a function that it calls with each slab of the columns, in the thread that read the slab.
        """

    def column_facts(self, columns: Any, by: Hash) -> ColumnFacts:
        """Facts of consecutive columns of a block, or of any other ids, an array of int32."""

    def row_facts(
        self, offsets: Any, columns: Any, first: int, end: int, by: Hash, width: int, stride: int, behind: int | None
    ) -> RowFacts:
        """Facts of the rows `first` to `end` of a block, as `ArrayFacts.row_facts`."""

    def pair_total(self, offsets: Any, columns: Any, rows: Hash, column: Hash) -> int:
        """Sum of the hashes of a block's edges, as `ArrayFacts.pair_total`."""

    def vertex_facts(self, order: Any, outward: Any, inward: Any, first: int, by: Hash) -> VertexFacts:
        """Facts of entries of vertex vectors, int32 and not negative, from vertex `first` on."""


class BitMatrix(Protocol):
    """Counting of small graphs, by a bit matrix."""

    @property
    def most_edges(self) -> int:
        """Most raw edges of a graph that is counted so; -1 where none is."""

    def keys(self, src: Any, dst: Any) -> SmallKeys | None:
        """Make keys of raw edges, which count themselves; None where the graph is too large."""


@dataclass(frozen=True)
class Backend:
    """A backend: the modules and functions of one kind of device that stages and counting tasks need."""

    name: str
    """The name that tasks carry."""
    frame: ModuleType
    """The data frame module of edge frames: pandas or cudf."""
    array: ModuleType
    """The array module of everything after reading: numpy or cupy."""
    read: Callable[[Any, Any], Any]
    """Callable (part, upstream) -> edges. Reads a part of a source (`io.source.Part`) to a frame of `frame`, or on a
    device to `EdgeArrays` where ids are integers. Columns of integers are the arrays that the part has made, without a
    copy."""
    wrap: Callable[[Any, Any], Any]
    """Callable (src, dst) -> edges. Makes the edges of two arrays of one type, which share their memory with them, as
    `read` does."""
    edge_frame: Callable[[Any], Any]
    """Callable (edges) -> frame. Makes the frame of `frame` that a worker holds of edges that were read, or of a list
    of these, without a copy."""
    text: TextIds
    distinct: Callable[[Any], Any]
    """Callable (values) -> array. The distinct values of an integer array, ascending."""
    lookup: Callable[[Any, Any], Any]
    """Callable (ids, values) -> array. The place, int32 or int64, of each value among `ids`, which are ascending and
    distinct, and contain it."""
    sort: Callable[[Any, int], Any]
    """Callable (keys, bound) -> array. Sorts `keys` (int64, 0 <= key < bound) in ascending order. May overwrite and
    return `keys`."""
    merge: Callable[[list[Any], int, int], Any]
    """Callable (arrays, bound, low) -> array. Sorts the keys of several arrays into a new one; the arrays are not
    changed, the list is emptied. Keys that differ only in bits below `low` may come in any order."""
    dealt: Callable[..., Buckets]
    """Callable (arrays, bound, span, calls) -> Buckets. Deals the keys of several arrays to buckets, and empties the
    list. All keys are in the half-open `span`, if it is given. `calls` (function, inputs, *shared), if given, calls
    `function(input, *shared)` for each input and returns the results, perhaps on several threads."""
    count: Callable[[BlockTask, str], TaskCount]
    """Callable (task, kernel) -> TaskCount. Evaluates one block triple with the named kernel."""
    expected_probes: Callable[[BlockTask, str], int]
    """Callable (task, kernel) -> int. The probes of `count`, from row lengths and positions alone."""
    support: Callable[[BlockTask, str], tuple[list[Any], int, int]]
    """Callable (task, kernel) -> (supports, triangles, wedges). Each edge's triangles in a task, as
    `backends.cpu.visit.support` returns them: by the named kernel if that computes them itself
    (`backends.support_kernels`), else by visiting the triangles one by one."""
    vertex_support: Callable[[BlockTask, str, tuple[int, int, int], Mapping[int, int]], Any]
    """Callable (task, kernel, sides, sizes) -> (sums, triangles, wedges). Each vertex's triangles in a task, as
    `backends.cpu.supports.vertices` returns them, by a kernel that computes them itself."""
    listing: Callable[[BlockTask, int], Any]
    """Callable (task, limit) -> array. The first triangles of a task, as `backends.cpu.visit.listing` returns them."""
    batches: Callable[[BlockTask, int], Iterator[Places]]
    """Callable (task, size) -> iterator of Places. Every triangle of a task once, some `size` at a time, as
    `backends.cpu.batches.batches` yields them."""
    add_ends: Callable[[OrientedCSR, Any, Any, Any], None]
    """Callable (block, values, at_row, at_column). Adds each edge's value to both of its ends, as `visit.add_ends`
    does."""
    cliques: Callable[[BlockTask, int], tuple[int, int, int]]
    """Callable (task, size) -> (cliques, work, wedges). Counts cliques in a block that is the whole graph, as
    `backends.cpu.cliques.count` does."""
    closed_wedges: Callable[[BlockTask, Strata], tuple[int, int]]
    """Callable (task, Strata) -> (sampled, closed). Tests a triple's sampled wedges, as `backends.cpu.wedges.closed`
    does."""
    memory: Callable[[], int]
    """Callable () -> int. Bytes that this process could allocate now where the blocks are."""
    edges: Edges
    """Functions on edges."""
    vertices: Vertices
    """Functions on vertex vectors."""
    part_edges: PartEdges
    """Functions on the edges of parts with proxies."""
    block_facts: BlockFacts
    """Functions that check blocks and vertex vectors."""
    peel: Peel
    """Peels a graph by degrees and by supports."""
    bit_matrix: BitMatrix
    """Counting of small graphs, from raw edges to the number."""
    answers: Answers
    """Conversion to result columns."""
    make: Callable[[Recipe, int, int], Any]
    """Callable (recipe, first, last) -> frame, or (source, target). Makes a generated graph's edges: a frame of
    `frame`, or on a device two arrays."""
    upload: Callable[[int, Callable[[Any, int], None]], Any]
    """Callable (size, fill) -> array of uint8. Returns bytes in the backend's memory, which `fill` (buffer, start)
    reads in several threads."""
    rows: Callable[[Any, str | None, tuple[int, int]], tuple[Any, Any] | None]
    """Callable (text, separator, columns) -> (source, target). Parses whole lines of two integers, on a device or the
    host; None for a text that `io.formats.rows` must parse."""
    references: tuple[str, str]
    """A short and plain kernel with which others are verified, and the one with which that is verified."""
    chunk: int
    """Number of elements with which elementwise arithmetic runs fastest."""
    processors: Callable[[], int]
    """Callable () -> int. Multiprocessors of the device; 1 on the CPU."""
    wait: Callable[[], None]
    """Callable (). Waits until the device has done what was submitted to it; the CPU has when a call returns."""
    warm: Callable[[], int]
    """Callable () -> int. Compiles all kernels, or loads them from the cache of compiled ones, and returns their
    number."""

    @property
    def on_device(self) -> bool:
        """Whether the backend's arrays are in device memory."""
        return self.name in ON_DEVICE
