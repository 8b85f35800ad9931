"""The oriented CSR block and the counting task: the one shape that every planner and kernel shares.

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

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

__all__ = ["BlockTask", "OrientedCSR", "TaskCount", "aligned"]

Array = Any
"""A one-dimensional array of the backend's array module: numpy.ndarray or cupy.ndarray."""


def aligned(array: Array) -> Array:
    """The array, or a copy where its elements do not lie on their own boundaries.

    What comes over the network may start at any byte, and NumPy and Numba copy such an array anew
    at every use.
    """
    return array if getattr(array.flags, "aligned", True) else array.copy()


@dataclass(frozen=True)
class OrientedCSR:
    """One block of an oriented graph: the edges (u, v) with u % parts = row_part, v % parts = column_part.

    Rows and columns are numbered inside the block, id // parts; `row * parts + row_part` is the
    vertex id again. A whole graph is the one block of parts = 1.

    Attributes
    ----------
    offsets : array of int64, shape (rows + 1,)
        Row r is `columns[offsets[r]:offsets[r + 1]]`.
    columns : array of int32, shape (edges,)
        Ascending and without repeats inside each row.
    parts, row_part, column_part : int
        The block's place in the 2D partition.
    ordered : bool
        Every column's vertex id is below its row's (`degree` order): whatever closes a triangle
        over edge (u, v) stands before v in row u. In any other order nothing may be cut at v.
    """

    offsets: Array
    columns: Array
    parts: int = 1
    row_part: int = 0
    column_part: int = 0
    ordered: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self.offsets, self.columns, self.parts, self.row_part, self.column_part, self.ordered)
        return _received, state

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    @property
    def edges(self) -> int:
        """Number of oriented edges in the block."""
        return len(self.columns)

    def edge_range(self, begin: int, end: int) -> OrientedCSR:
        """The block of the edges begin to end - 1 alone, with rows of its own: all rows, most of them empty.

        Parameters
        ----------
        begin, end : int
            Positions in `columns`, 0 <= begin <= end <= edges.
        """
        return replace(self, offsets=self.offsets.clip(begin, end) - begin, columns=self.columns[begin:end])

    @property
    def nbytes(self) -> int:
        """Bytes that its two arrays hold."""
        return int(self.offsets.nbytes + self.columns.nbytes)


def _received(offsets: Array, columns: Array, *place: Any) -> OrientedCSR:
    """Rebuild a pickled block, on a worker that it was sent to."""
    return OrientedCSR(aligned(offsets), aligned(columns), *place)


@dataclass(frozen=True)
class BlockTask:
    """A counting task: a block triple, and which of the index block's rows it takes.

    Attributes
    ----------
    index, table, stream : OrientedCSR
        The triple. They may be one and the same object.
    split, splits : int
        Which share of the index rows is counted. The backend cuts them, by the blocks alone: every row
        is in one split, and in the same one wherever and however often a task runs.
    cut_for : str
        The kernel whose work the splits share evenly, whichever counts.
    """

    index: OrientedCSR
    table: OrientedCSR
    stream: OrientedCSR
    split: int = 0
    splits: int = 1
    cut_for: str = "hub"


class TaskCount(NamedTuple):
    """What a counting task returns.

    triangles, wedges and probes are exact 64-bit counts. wedges is the sum of |stream.row(v)| over
    every index edge (u, v) of the task, rows that the kernel skipped included; probes is the
    number of streamed elements that were really tested, one each whatever the comparisons
    (merge: |a| + |b| of the two lists that it walked). max_collision is the longest hash bucket
    met (0 where no hash table is used); seconds is CPU time of the counting itself.
    """

    triangles: int
    wedges: int
    probes: int
    max_collision: int = 0
    seconds: float = 0.0
