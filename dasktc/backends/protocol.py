"""What the stages and the plan need of a backend: an array module, a frame module, a sort, and "evaluate a triple".

Tasks carry a backend's name, never its modules: each worker calls `get_backend` for itself, so a client needs no GPU
library. This module imports neither Numba nor CuPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from dasktc.backends.csr import BlockTask, OrientedCSR, TaskCount

if TYPE_CHECKING:
    from dasktc.backends.cuda.edges import DeviceEdges
    from dasktc.backends.cuda.vertices import DeviceVertices
    from dasktc.backends.edge_functions import Recipe

__all__ = ["BACKENDS", "ON_DEVICE", "PARTITION_EDGES", "Backend", "GraphBounds", "TaskSize", "TextIds"]

BACKENDS = ("cpu", "cuda")
ON_DEVICE = ("cuda",)
"""Backends with `Backend.edges`."""
PARTITION_EDGES = {"cpu": 1 << 25, "cuda": 1 << 30}
"""Edges that one partition holds at the most: a device sorts many at once, below cuDF's 2^31 rows."""


class TextIds(NamedTuple):
    """What a backend does with columns of text ids.

    unite (columns) gives the distinct ids of several columns or of results of itself; ascending
    (ids) sorts them by their UTF-8 bytes; dense (ids, column) finds the place of each of a column's
    ids among sorted ones, as an integer array of the backend; arrow (ids) gives them as one Arrow
    array on the host.
    """

    unite: Callable[[list[Any]], Any]
    ascending: Callable[[Any], Any]
    dense: Callable[[Any, Any], Any]
    arrow: Callable[[Any], Any]


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
    merge : callable (arrays, bound) -> array, or None
        A backend's own sort of the keys of several arrays, which it leaves as they are; it empties the list. None:
        they are concatenated and sorted.
    count : callable (task, kernel) -> TaskCount
        Evaluates one block triple with the named kernel.
    scratch_bytes : callable (kernel, TaskSize, GraphBounds or None) -> int
        Bytes that the kernel allocates for a task beside its blocks, at most; less where the graph is known.
    expected_probes : callable (task, kernel) -> int
        The probes of `count`, from row lengths and positions alone.
    support : callable (task) -> (supports, triangles, wedges)
        Each edge's triangles in a task, as `backends.cpu.visit.support` returns them.
    listing : callable (task, limit) -> array
        The first triangles of a task, as `backends.cpu.visit.listing` returns them, in NumPy.
    add_ends : callable (block, values, at_row, at_column)
        Adds each edge's value to both of its ends, as `visit.add_ends` does.
    memory : callable () -> int
        Bytes that this process could allocate now where the blocks are.
    chunk : int
        Elements at a time that elementwise arithmetic runs fastest on. On the CPU 64 KiB of keys: larger
        intermediates would be mapped and faulted in anew each time, for Dask's workers run with a fixed
        trim threshold, which stops malloc from learning.
    edges : DeviceEdges or None
        A backend's own way with edges, without intermediates; None: array arithmetic, `chunk` elements at a time.
    vertices : DeviceVertices or None
        A backend's own way with vectors of vertices; None: array arithmetic.
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
    scratch_bytes: Callable[[str, TaskSize, GraphBounds | None], int]
    expected_probes: Callable[[BlockTask, str], int]
    support: Callable[[BlockTask], tuple[list[Any], int, int]]
    listing: Callable[[BlockTask, int], Any]
    add_ends: Callable[[OrientedCSR, Any, Any, Any], None]
    memory: Callable[[], int]
    chunk: int = 1 << 13
    edges: DeviceEdges | None = None
    vertices: DeviceVertices | None = None
    make: Callable[[Recipe, int, int], tuple[Any, Any] | None] | None = None
    merge: Callable[[list[Any], int], Any] | None = None
    upload: Callable[[int, Callable[[Any, int], None]], Any] | None = None
    rows: Callable[[Any, str | None, tuple[int, int]], tuple[Any, Any] | None] | None = None
    numbers: str = "int64"
    references: tuple[str, str] = ("merge", "search")
    processors: Callable[[], int] = lambda: 1
