"""The oriented CSR block and the counting task, the one form that all schemes and kernels share.

A counting task is a block triple,

    count(index, table, stream) = sum over edges (u, v) in index of |table.row(u) ∩ stream.row(v)|

where index rows = table rows, index columns = stream rows, and table and stream columns share
one id range. TRUST's 2D partition (Pandey et al., TPDS 2021, section 5.2) names the three
"1-hop neighbours used as sources", "hash table" and "2-hop neighbours".

                u ────────► v          index  (u, v)
                 ╲         ╱
           table  ╲       ╱  stream
                   ▼     ▼
                      w

In `degree` order every edge points to a smaller id: u > v > w, and each triangle is met once.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

__all__ = [
    "BEHIND", "BlockTask", "OrientedCSR", "Places", "TaskCount", "aligned", "on_host", "send_from_device_to_device",
]  # fmt: skip

BEHIND = 1 << 40
"""`BlockTask.shift` of unordered blocks: every column counts as before v."""

Array = Any
"""A one-dimensional array of the backend's array module: numpy.ndarray or cupy.ndarray."""


def aligned(array: Array) -> Array:
    """Return the array, or a copy if its elements are not aligned to their size.

    Arrays that arrive over the network may start at any byte, and NumPy and Numba copy such an array anew at every use.
    """
    return array if getattr(array.flags, "aligned", True) else array.copy()


def on_host(array: Array) -> Any:
    """Return the array as a NumPy array: itself, or a copy if it is on a device."""
    return array.get() if hasattr(array, "get") else array


@dataclass(frozen=True)
class OrientedCSR:
    """One block of an oriented graph: its edges from one set of vertices to another.

    Rows and columns are numbered inside the block, in the order of their vertex ids: their ids are
    `row * stride + row_first` and `column * stride + column_first`, or with `members` the entries there. A
    whole graph is a single block with stride 1 and firsts 0.
    """

    offsets: Array
    """Array of int64, shape (rows + 1,). Row r is `columns[offsets[r]:offsets[r + 1]]`."""
    columns: Array
    """Array of int32, shape (edges,). Distinct within each row."""
    stride: int = 1
    row_first: int = 0
    column_first: int = 0
    """n, i and j of a block of the hashed 2D partition; 1 and the first ids of a block of ranges."""
    ordered: bool = False
    """Every column's vertex id is below its row's (`degree` order): whatever closes a triangle over edge (u, v) comes
    before v in row u. In any other order nothing may be cut at v."""
    place: tuple[int, int] = (0, 0)
    """The block's place in its scheme's grid."""
    members: Array | None = None
    """Array of int32. The vertex ids of a block whose rows and columns are the same vertices and form no arithmetic
    progression."""
    sorted_rows: bool = True
    """Whether the columns of each row are in ascending order."""

    def __reduce__(self) -> tuple[Any, ...]:
        firsts = self.stride, self.row_first, self.column_first
        state = (self.sorted_rows, *firsts, self.ordered, self.place, self.members)
        return _received, (self.offsets, self.columns, *state)

    def row_ids(self, rows: Array) -> Array:
        """Vertex ids of rows, int64."""
        return self._ids(rows, self.row_first)

    def column_ids(self, columns: Array) -> Array:
        """Vertex ids of columns, int64."""
        return self._ids(columns, self.column_first)

    def _ids(self, numbers: Array, first: int) -> Array:
        places = numbers.astype("int64")
        return places * self.stride + first if self.members is None else self.members.take(places).astype("int64")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    @property
    def edges(self) -> int:
        """Number of oriented edges in the block."""
        return len(self.columns)

    def edge_range(self, begin: int, end: int) -> OrientedCSR:
        """The block with edges begin to end - 1 alone, 0 <= begin <= end <= edges, and all rows, most of them empty."""
        offsets = self.offsets.clip(begin, end)
        offsets -= begin
        return replace(self, offsets=offsets, columns=self.columns[begin:end])

    def on_host(self) -> OrientedCSR:
        """The block with its arrays in NumPy."""
        offsets, columns, members = map(on_host, (self.offsets, self.columns, self.members))
        return replace(self, offsets=offsets, columns=columns, members=members)

    @property
    def lower(self) -> bool:
        """Whether no column exceeds its row in the block's numbering: a lower triangle, as in `degree` order."""
        return self.ordered and self.row_first - self.column_first <= self.stride

    @property
    def nbytes(self) -> int:
        """Bytes of the block's arrays."""
        members = 0 if self.members is None else self.members.nbytes
        return int(self.offsets.nbytes + self.columns.nbytes + members)

    def __sizeof__(self) -> int:
        """Size by which Dask decides when it moves, keeps or spills a block."""
        return object.__sizeof__(self) + self.nbytes


def _received(offsets: Array, columns: Array, sorted_rows: bool, *state: Any) -> OrientedCSR:
    """Rebuild a pickled block on the worker that receives it."""
    block = replace(OrientedCSR(aligned(offsets), aligned(columns), *state), sorted_rows=sorted_rows)
    return block if block.members is None else replace(block, members=aligned(block.members))


@dataclass(frozen=True)
class BlockTask:
    """A counting task: a block triple, and the rows of its index block to count."""

    index: OrientedCSR
    table: OrientedCSR
    stream: OrientedCSR
    """The triple; they may be the same object."""
    split: int = 0
    splits: int = 1
    """Which share of the index rows is counted. The cuts depend on the blocks alone: every row is in one split, and in
    the same one wherever and however often a task runs."""
    cut_for: str = "hub"
    """The kernel whose work the splits share evenly, whichever kernel counts."""
    rows: tuple[int, int] | None = None
    """First index row and the end of the range, where rows are given explicitly."""
    dealt: bool = False
    """Rows are dealt out to the splits instead of cut into ranges."""

    @property
    def sorted_rows(self) -> bool:
        """Whether the columns of all rows of the blocks are in ascending order."""
        return self.index.sorted_rows and self.table.sorted_rows and self.stream.sorted_rows

    @property
    def shift(self) -> int:
        """Table entries before v in row u are those below column v + shift; BEHIND where nothing is cut."""
        if not (self.sorted_rows and self.index.ordered and self.table.ordered and self.stream.ordered):
            return BEHIND
        return -((self.table.column_first - self.index.column_first) // self.index.stride)

    def zero_supports(self, xp: Any) -> list[Array]:
        """Zeros for the edges of index, table and stream, int32; roles of the same block share an array."""
        blocks = self.index, self.table, self.stream
        sizes = {id(block): block.edges for block in blocks}
        zeros = {name: xp.zeros(edges, dtype="int32") for name, edges in sizes.items()}
        return [zeros[id(block)] for block in blocks]


class TaskCount(NamedTuple):
    """Result of a counting task.

    triangles, wedges and probes are exact 64-bit counts. wedges is the sum of |stream.row(v)| over every index edge
    (u, v) of the task, including rows that the kernel skipped; probes is the number of streamed elements that were
    really tested, one each however many comparisons they took (merge: |a| + |b| of the two lists that it walked).
    max_collision is the length of the longest hash bucket (0 where no hash table is used); seconds is CPU time of the
    counting itself.
    """

    triangles: int
    wedges: int
    probes: int
    max_collision: int = 0
    seconds: float = 0.0


class Places(NamedTuple):
    """A batch of triangles, as positions in a task's blocks."""

    row: Array
    """Array of int32. Row u of the index and of the table."""
    uv: Array
    uw: Array
    vw: Array
    """Array of int64. Positions of the three edges in the columns of index, table and stream."""
    wedges: int
    """Wedges that were not those of earlier batches, as in `TaskCount`."""


def send_from_device_to_device() -> None:
    """Have Dask send blocks from device to device where the network can.

    Pickled, as Dask sends unknown classes, arrays go through the memory of both hosts: about 1 GB/s between two H200,
    where UCX reaches 45.
    """
    from distributed.protocol.cuda import cuda_deserialize, cuda_serialize

    cuda_serialize.register(OrientedCSR, _dumps)
    cuda_deserialize.register(OrientedCSR, _loads)


def _dumps(block: OrientedCSR) -> tuple[dict[str, Any], list[Any]]:
    from distributed.protocol.serialize import serialize

    build, (offsets, columns, *facts, members) = block.__reduce__()
    parts = [serialize(array, serializers=("cuda", "pickle")) for array in (offsets, columns, members)]
    header = {"built": pickle.dumps((build, facts)), "arrays": [(head, len(frames)) for head, frames in parts]}
    return header, [frame for _, frames in parts for frame in frames]


def _loads(header: dict[str, Any], frames: list[Any]) -> OrientedCSR:
    from distributed.protocol.serialize import deserialize

    build, facts = pickle.loads(header["built"])
    rest = iter(frames)
    offsets, columns, members = (deserialize(head, [*islice(rest, count)]) for head, count in header["arrays"])
    block: OrientedCSR = build(offsets, columns, *facts, members)
    return block


if "distributed.protocol" in sys.modules:  # always so in a worker before our modules, so it knows what others send
    send_from_device_to_device()
