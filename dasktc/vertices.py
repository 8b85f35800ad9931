"""Dense vertex ids: 0..V-1 in ascending order of the caller's ids, without a Python object a vertex.

Partitions say which ids they hold, the parts of that answer are combined in a tree, and the map
that comes out (of size V, or of the ids' range) is looked up by every worker that relabels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from dasktc.backend import get_backend
from dasktc.csr import on_host
from dasktc.errors import InputError
from dasktc.sources import Ids
from dasktc.tasks import Fold, Tasks, tree

__all__ = ["MAX_VERTICES", "VertexMap", "check_size", "vertex_map"]

Array = Any
Frame = Any
MAX_VERTICES = 2**31 - 1
"""Columns are int32 and an edge is one int64 key of two dense ids."""
TABLE_BYTES = 21
"""Bytes that making a table takes for an id of its range: flags, the table, and the ids twice."""


class VertexMap(Protocol):
    """A map between the caller's ids and dense ids."""

    @property
    def size(self) -> int:
        """Number of vertices."""
        ...

    def dense(self, ids: Any) -> Array:
        """Dense ids of a frame's column, each of which was observed when the map was made."""
        ...

    def external(self, dense: Any) -> Any:
        """The caller's ids of dense ids in NumPy: int64 in NumPy, or text in Arrow, on the host."""
        ...


@dataclass(frozen=True)
class TableMap:
    """Integer ids in a narrow range: a table looked up at id - low.

    Attributes
    ----------
    low : int
        The smallest id.
    table : array of int32
        Dense id at id - low; entries of ids that do not occur are never read.
    ids : array of int64, shape (V,)
        The caller's ids, ascending.
    """

    low: int
    table: Array
    ids: Array

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.ids)

    def dense(self, ids: Any) -> Array:
        """Dense ids, int32, by lookup."""
        return self.table.take(_offsets(ids, self.low))

    def external(self, dense: Any) -> Any:
        """The caller's ids, int64."""
        return on_host(self.ids).take(dense)


@dataclass(frozen=True)
class SortedMap:
    """Integer ids anywhere in int64: looked up as the backend can.

    Attributes
    ----------
    ids : array of int64, shape (V,)
        The caller's ids, ascending.
    backend : str
    """

    ids: Array
    backend: str

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.ids)

    def dense(self, ids: Any) -> Array:
        """Dense ids, int64."""
        return get_backend(self.backend).lookup(self.ids, getattr(ids, "values", ids))

    def external(self, dense: Any) -> Any:
        """The caller's ids, int64."""
        return on_host(self.ids).take(dense)


@dataclass(frozen=True)
class TextMap:
    """String ids, looked up as the backend can.

    Attributes
    ----------
    ids : column of the backend's text ids, shape (V,)
        The caller's ids, ascending.
    backend : str
    """

    ids: Any
    backend: str

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.ids)

    def dense(self, ids: Any) -> Array:
        """Dense ids, int32 or int64."""
        return get_backend(self.backend).text.dense(self.ids, ids)

    def external(self, dense: Any) -> Any:
        """The caller's ids, as an Arrow array."""
        return get_backend(self.backend).text.arrow(self.ids).take(dense)


class _Range(NamedTuple):
    low: int
    high: int
    rows: int


def vertex_map(tasks: Tasks, frames: list[Any], ids: Ids, backend: str) -> Any:
    """Build the map of all ids that occur in the frames.

    Parameters
    ----------
    tasks : Tasks
    frames : list of handles of edge frames as `edges.read` gives them; at least one
    ids : {"int", "text"}
    backend : str

    Returns
    -------
    handle of VertexMap
    """
    if ids == "text":
        texts = tasks.map("vertices", _text_ids, list(frames), backend)
        found = tree(tasks, "vertices", partial(_unite_text, backend=backend), texts)
        return tasks.submit("vertices", _text_map, found, backend)
    ranges = [r for r in tasks.gather(tasks.map("vertices", _range, list(frames), backend)) if r.rows]
    low, high = min((r.low for r in ranges), default=0), max((r.high for r in ranges), default=-1)
    width, most = high - low + 1, 4 * sum(r.rows for r in ranges) + 65_536
    if tasks.room is not None:
        most = min(most, tasks.room // TABLE_BYTES)
    if width <= most:
        mark = Fold(partial(_marks, width, backend), partial(_mark, low=low, backend=backend), _either)
        return tasks.submit("vertices", _table_map, tasks.fold("vertices", mark, list(frames)), low, width, backend)
    found = tasks.map("vertices", _integer_ids, list(frames), backend)
    merge = partial(_unite, backend=backend)
    return tasks.submit("vertices", _sorted_map, tree(tasks, "vertices", merge, found), backend)


def _range(frame: Frame, backend: str) -> _Range:
    if (own := get_backend(backend).edges) is not None:
        found, rows = own.facts(*frame), len(frame[0])
        return _Range(found.low, found.high, rows) if found.low <= found.high else _Range(0, -1, 0)
    if not len(frame):
        return _Range(0, -1, 0)
    ends = [frame[name].values for name in ("src", "dst")]
    return _Range(min(int(end.min()) for end in ends), max(int(end.max()) for end in ends), len(frame))


def _offsets(ids: Any, low: int) -> Array:
    return ids.values if low == 0 else ids.values.astype("int64") - low


def _marks(width: int, backend: str) -> Array:
    """Nothing marked: a flag an id, or what the backend has for it."""
    own = get_backend(backend).edges
    return get_backend(backend).array.zeros(width, dtype=bool) if own is None else own.marks(width)


def _mark(present: Array, frame: Frame, low: int, backend: str) -> Array:
    """Mark the ids of a frame, in place."""
    own = get_backend(backend).edges
    if own is not None:
        own.mark(present, frame[0], frame[1], low)
        return present
    present[_offsets(frame["src"], low)] = True
    present[_offsets(frame["dst"], low)] = True
    return present


def _either(flags: list[Array]) -> Array:
    """As `orient.total` adds: an input at a time."""
    merged = flags.pop().copy()
    while flags:
        merged |= flags.pop()
    return merged


def _table_map(present: Array, low: int, width: int, backend: str) -> VertexMap:
    xp, own = get_backend(backend).array, get_backend(backend).edges
    if own is not None:
        found = own.ranked(present.copy(), low, width)
        check_size(found.size)
        return found
    ids = xp.flatnonzero(present)
    check_size(len(ids))
    table = xp.zeros(len(present), dtype="int32")
    table[ids] = xp.arange(len(ids), dtype="int32")
    return TableMap(low, table, ids + low if low else ids)


def _integer_ids(frame: Frame, backend: str) -> Array:
    distinct = get_backend(backend).distinct
    ends = _proper(*frame) if isinstance(frame, tuple) else [frame[name].values for name in ("src", "dst")]
    return _unite([distinct(end).astype("int64", copy=False) for end in ends], backend)


def _proper(src: Array, dst: Array) -> list[Array]:
    """Ends of edges but loops."""
    proper = src != dst
    return [src, dst] if bool(proper.all()) else [src[proper], dst[proper]]


def _unite(found: list[Array], backend: str) -> Array:
    """Merge ascending distinct ids; on the host in place, where a hash table of all would take twice as much."""
    xp = get_backend(backend).array
    values = xp.concatenate(found)
    if backend != "cpu":
        return get_backend(backend).distinct(values)
    values.sort(kind="stable")
    new = xp.ones(len(values), dtype=bool)
    xp.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def _text_ids(frame: Frame, backend: str) -> Any:
    return _unite_text([frame["src"], frame["dst"]], backend)


def _unite_text(found: list[Any], backend: str) -> Any:
    return get_backend(backend).text.unite(found)


def _text_map(ids: Any, backend: str) -> TextMap:
    check_size(len(ids))
    return TextMap(get_backend(backend).text.ascending(ids), backend)


def _sorted_map(ids: Array, backend: str) -> SortedMap:
    check_size(len(ids))
    return SortedMap(ids, backend)


def check_size(vertices: int) -> None:
    """Refuse more vertices than 32-bit columns can name."""
    if vertices > MAX_VERTICES:
        raise InputError(
            f"the graph has {vertices:,} vertices, {MAX_VERTICES:,} at most can be counted: "
            "vertex ids inside blocks are 32-bit; count its connected components one at a time"
        )
