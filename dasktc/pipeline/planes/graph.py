"""A graph on its way through the stages: handles of its partitions, and the facts that the client knows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dasktc.io.evidence import Reading
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.planes.vertex_budget import VertexBudget
from dasktc.pipeline.stages.edge_keys import shift_of
from dasktc.pipeline.stages.ids import IdRange
from dasktc.pipeline.stages.orient import DegreeFacts
from dasktc.pipeline.stages.read import Span

__all__ = ["Canonical", "Frames", "Handles", "Numbering", "Oriented", "RankedGraph", "RowHandles", "SplitIds"]


class Handles:
    """Handles of results, and their owner: whoever takes them decides when each result can be freed.

    Parameters
    ----------
    handles : iterable of handles
    """

    def __init__(self, handles: Iterable[Any] = ()) -> None:
        self._handles = list(handles)

    def __len__(self) -> int:
        return len(self._handles)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._handles)

    def take(self) -> list[Any]:
        """Hand over all handles, in order; none are left here."""
        handles, self._handles = self._handles, []
        return handles

    def drain(self) -> Iterator[Any]:
        """Hand over one handle after another, in order; each is no longer held here when it is yielded."""
        handles = self.take()
        handles.reverse()
        while handles:
            yield handles.pop()


class RowHandles(Handles):
    """Handles of whole rows over ranks by rows, which become keys when they are taken as partitions.

    Parameters
    ----------
    handles : iterable of handles
        Of columns, arrays of int32; or of slabs, pairs of offsets and columns.
    keys : callable (list of handles) -> list of handles of arrays of int64
    """

    def __init__(self, handles: Iterable[Any], keys: Callable[[list[Any]], list[Any]]) -> None:
        super().__init__(handles)
        self._keys: Callable[[list[Any]], list[Any]] | None = keys

    def __iter__(self) -> Iterator[Any]:
        self._become_keys()
        return super().__iter__()

    def take(self) -> list[Any]:
        """Hand over all handles, of keys."""
        self._become_keys()
        return super().take()

    def take_rows(self) -> list[Any] | None:
        """Hand over the handles of rows; None where they have become keys."""
        if self._keys is None:
            return None
        self._keys = None
        return super().take()

    def _become_keys(self) -> None:
        if self._keys is not None:
            self._handles, self._keys = self._keys(self._handles), None


@dataclass(frozen=True, eq=False)
class Frames:
    """The edge frames of a source, and the statistics gathered while reading."""

    frames: Handles
    """Of edge frames, or of lists of edge frames; at least one. Each has the columns src and dst, and is a DataFrame of
    the backend (pandas, or cuDF on a GPU); integer ids on this process's GPU, or within its budget, are `EdgeArrays`.
    Without loops, except where ids are integers on a GPU."""
    rows: int
    loops: int
    """Rows read, and how many of them were loops."""
    span: Span | None = None
    """Smallest and largest id, where ids are integers."""
    samples: tuple[tuple[Any, int], ...] = ()
    """List of (array of shape (2, any), int). Of each result of reading, in NumPy, a sample of its edges and their
    number, where ids are integers."""
    reading: Reading = field(default_factory=Reading)
    """What was read."""
    holders: Sequence[str | None] = ()
    """The worker that has each frame, where Dask chose it; empty: their homes."""

    @property
    def edge_rows(self) -> int:
        """Rows that are no loops: an upper bound on the number of canonical edges."""
        return self.rows - self.loops


class SplitIds(NamedTuple):
    """Sharded ids of a graph's vertices, with the edges over each frame's own vertices."""

    ids: Sharded
    """The caller's ids by dense id."""
    edges: Handles
    """Handles of arrays of int32, shape (2, rows). For each frame, the positions of both ends among the frame's
    ascending distinct ids."""
    numbers: Handles
    """Handles of lists of handles of arrays of int32. The dense ids of each frame's distinct ids, one array per
    shard."""


class Numbering(NamedTuple):
    """How the vertices of a graph are numbered."""

    vertices: Any
    """Handle of VertexMap, or IdRange, or SplitIds. The map of the caller's ids; a range of ids that needs none; or ids
    in shards."""
    size: int
    """Number of vertices; of a range, the number of its ids."""
    budget: VertexBudget
    """What vectors of all vertices may take."""
    split: SplitIds | None = None
    """The ids in shards of which the map was made, where these were found to fit one process."""

    @property
    def shift(self) -> int:
        """Bits of an id in an edge key."""
        return shift_of(self.size)

    @property
    def names(self) -> Any:
        """The map of the caller's ids, or the ids in shards; the range, where it needs no map."""
        return self.vertices.ids if isinstance(self.vertices, SplitIds) else self.vertices

    @property
    def span(self) -> IdRange | None:
        """The range of ids, where it needs no map."""
        return self.vertices if isinstance(self.vertices, IdRange) else None


@dataclass(frozen=True, eq=False)
class Canonical:
    """The canonical edges of a graph."""

    partitions: Handles
    """Handles of int64 arrays. Distinct keys, ascending within and across partitions. `RowHandles` are of whole
    rows, which become keys when they are taken."""
    rows: int
    """Rows that they were made of, without loops: an upper bound on their number."""
    degrees: Any = None
    """Handle of array of int32, or None. Degrees by id, where they were added up in the pass that made the keys."""


@dataclass(frozen=True, eq=False)
class Oriented:
    """An oriented graph over ranks, or over the ids of another order."""

    partitions: Handles
    """Handles of int64 arrays. Keys source << shift | target with target < source over ranks, in no order."""
    order: Sharded
    """Sharded, of int32. The dense id of each rank, or of each id of another order."""
    out_degree: Sharded
    in_degree: Sharded
    """Sharded, of int32. Degrees; in-degrees of int64 where vertices are in shards."""
    wedges: int
    """Σ in(v)·out(v)."""
    edges: int
    facts: DegreeFacts | None = None
    """Statistics of the vertices, where their vectors are whole and ids are ranks."""

    def inputs(self) -> list[Any]:
        """Handles of the partitions as inputs of calls over all edges; they stay here."""
        return list(self.partitions)


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedGraph(Oriented):
    """An oriented graph over ranks by rows; each partition has a range of rows, and its keys ascend."""

    starts: list[int]
    """The first key of each range but the first."""
    residues: Any = None
    """Array of uint64, shape (RESIDUES²,). Number of edges for each pair of remainders of source and target; None where
    they are not counted."""
