"""Assigns dense vertex ids 0..V-1 in ascending order of the caller's ids, without a Python object per vertex.

The distinct ids of all frames are merged in a tree, and every worker that relabels edges looks their ids up in the
resulting map (of size V, or of the ids' range). Where such a map does not fit one process, the ids stay in shards
(`sharded.vectors`), and each frame receives the dense ids of its own vertices alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import Backend
from dasktc.executors.base import CPU, Executor, Fold, tree
from dasktc.options import Ids
from dasktc.pipeline.edge_keys import ranked
from dasktc.pipeline.id_maps import (
    MAX_VERTICES,
    SortedMap,
    TextMap,
    VertexMap,
    arrays_of,
    check_size,
    map_of,
)
from dasktc.pipeline.sharded.unique import ValueOps, integers, numbered, unite
from dasktc.pipeline.sharded.vectors import Sharded, either, zipped
from dasktc.pipeline.sharded.vertex_budget import VertexBudget

__all__ = ["IdRange", "Span", "SplitIds", "observed", "vertex_map"]

Array = Any
Frame = Any
CHUNK = 1 << 13
NO_BOUND = VertexBudget(None)
TABLE_BYTES = 21
"""Bytes per id of the range that building a table takes: flags, the table, and the ids twice."""


class IdRange(NamedTuple):
    """Integer ids of a narrow range, whose offsets serve as dense ids until the degrees tell which ids occur.

    Attributes
    ----------
    low, width : int
        The smallest id, and the number of ids up to the largest one.
    """

    low: int
    width: int


class SplitIds(NamedTuple):
    """Sharded ids of a graph's vertices, with the edges over each frame's own vertices.

    Attributes
    ----------
    ids : Sharded
        The caller's ids by dense id.
    edges : list of handles of arrays of int32, shape (2, rows)
        For each frame, the positions of both ends among the frame's ascending distinct ids.
    numbers : list of lists of handles of arrays of int32
        The dense ids of each frame's distinct ids, one array per shard.
    """

    ids: Sharded
    edges: list[Any]
    numbers: list[list[Any]]


class Span(NamedTuple):
    """The smallest and largest id of some edges (low > high where there are none), and the number of their rows."""

    low: int
    high: int
    rows: int

    @classmethod
    def of_frame(cls, low: int, high: int, rows: int) -> Span:
        """The span of one frame; any low > high is an empty span."""
        return cls(low, high, rows) if low <= high else cls(0, -1, 0)

    @classmethod
    def measured(cls, frame: Frame) -> Span:
        """The span of a frame of integers, or of a list of frames."""
        if isinstance(frame, list):
            return cls.of([cls.measured(one) for one in frame])
        if not len(frame):
            return cls(0, -1, 0)
        ends = [frame[name].values for name in ("src", "dst")]
        return cls(min(int(end.min()) for end in ends), max(int(end.max()) for end in ends), len(frame))

    @classmethod
    def of(cls, frames: Sequence[Span]) -> Span:
        """The span of all frames together."""
        there = [span for span in frames if span.rows]
        low, high = min((span.low for span in there), default=0), max((span.high for span in there), default=-1)
        return cls(low, high, sum(span.rows for span in there))


def vertex_map(
    executor: Executor,
    frames: list[Any],
    ids: Ids,
    budget: VertexBudget = NO_BOUND,
    span: Span | None = None,
) -> tuple[Any, VertexBudget]:
    """Build the map of all ids that occur in the frames: a table, a sorted array or a text column, or shards of ids.

    Integer ids of a range no wider than the number of rows need no map, provided that there is no memory budget or that
    a device has room for vectors of the range: their offsets are used as ids until the degrees are known (`IdRange`,
    `observed`).

    Parameters
    ----------
    executor : Executor
    frames : list of handles of edge frames as `canonicalize.read` returns them; at least one
    ids : {"int", "text"}
    budget : VertexBudget
        Decides whether ids are sharded.
    span : Span, optional
        Span of all frames, where reading has measured it.

    Returns
    -------
    vertices : handle of VertexMap, or SplitIds; IdRange, where the ids need no map
    budget : VertexBudget
        Adapted to the measured width of text ids.
    """
    if ids == "int":
        if span is None:
            span = Span.of(executor.gather(executor.map("vertices", Span.measured, list(frames))))
        low, width, rows = span.low, span.high - span.low + 1, span.rows
        split, most = budget.shards(min(width, 2 * rows)) > 1, 4 * rows + 65_536
        spacious = executor.memory_per_call is None or (budget.on_device and budget.fits(width))
        if spacious and width <= min(rows + 65_536, MAX_VERTICES) and budget.shards(width) == 1:
            return IdRange(low, width), budget
        if executor.memory_per_call is not None:
            most = min(most, executor.memory_per_call // TABLE_BYTES)
        if split:
            places = executor.map("vertices", _places, list(frames), low, width, executor.backend)
            return _split(executor, places, ids, budget.shards), budget
        if width <= most:
            return _table(executor, frames, low, width), budget
    frame_ids = executor.map("vertices", _text_ids if ids == "text" else _integer_ids, list(frames), executor.backend)
    if ids == "text" and not (budget.on_device and budget.memory_per_call is None):
        sizes = executor.gather(executor.map("vertices", _text_size, list(frame_ids), executor.backend))
        total, nbytes = (sum(of) for of in zip(*sizes, strict=True))
        budget = budget.of(total, nbytes)
        if budget.shards(total) > 1:
            given = zipped(list(frames), frame_ids)
            return _split(
                executor, executor.map("vertices", _text_places, given, executor.backend), ids, budget.shards
            ), budget
    merge, made = (_unite_text, _text_map) if ids == "text" else (unite, _sorted_map)
    united = tree(executor, "vertices", partial(merge, backend=executor.backend), frame_ids)
    return executor.submit("vertices", made, united, executor.backend), budget


def _table(executor: Executor, frames: list[Any], low: int, width: int) -> Any:
    mark = Fold(partial(_marks, width, executor.backend), partial(_mark, low=low, backend=executor.backend), either)
    return executor.submit(
        "vertices", _table_map, executor.fold("vertices", mark, list(frames)), low, width, executor.backend
    )


def _split(executor: Executor, ids_and_places: list[Any], ids: Ids, shards: Callable[[int], int]) -> Any:
    """Number ids in shards; return a map where the distinct ids turn out to fit one shard.

    `ids_and_places` has for each frame its ascending distinct ids, and the positions of both ends among them.
    """
    own, edges = executor.transpose("vertices", ids_and_places, 2)
    distinct, numbers = numbered(
        executor, "vertices", own, shards, texts(executor.backend) if ids == "text" else integers(executor.backend)
    )
    check_size(distinct.size)
    if shards(distinct.size) > 1:
        return SplitIds(distinct, edges, numbers)
    return executor.submit("vertices", map_of, list(distinct.parts), ids, executor.backend)


def _places(frames: Frame | list[Frame], low: int, width: int, backend: Backend) -> list[Array]:
    xp, pairs = backend.array, [backend.edges.without_loops(*arrays_of(frame)) for frame in _listed(frames)]
    ends = xp.concatenate([end.astype("int64", copy=False) for of in zip(*pairs, strict=True) for end in of])
    if width < 2**63:
        ends -= low
        ids, places = ranked(ends, max(1, width), backend)
        ids += low
    else:
        ids, places = xp.unique(ends, return_inverse=True)
    return [ids, places.astype("int32", copy=False).reshape(2, -1)]


def _text_size(ids: Any, backend: Backend) -> tuple[int, int]:
    return len(ids), int(backend.text.arrow(ids).nbytes)


def _text_places(given: list[Any], backend: Backend) -> list[Any]:
    frames, ids = given
    known, xp = TextMap(backend.text.ascending(ids), backend), backend.array
    places = [
        xp.concatenate([known.dense(frame[name]).astype("int32", copy=False) for frame in _listed(frames)])
        for name in ("src", "dst")
    ]
    return [backend.text.arrow(known.ids), xp.stack(places)]


def _marks(width: int, backend: Backend) -> Any:
    return backend.edges.marks(width)


def _mark(present: Array, frame: Frame, low: int, backend: Backend) -> Array:
    """Mark the ids of a frame, or of a list of frames, in place."""
    if isinstance(frame, list):
        for one in frame:
            _mark(present, one, low, backend)
        return present
    backend.edges.mark(present, *arrays_of(frame), low)
    return present


def _table_map(marks: Any, low: int, width: int, backend: Backend) -> VertexMap:
    ranked_ids = backend.edges.ranked(marks, low, width)
    check_size(ranked_ids.size)
    return ranked_ids


def observed(vectors: list[Array], ids: IdRange, backend: Backend) -> VertexMap:
    """Build the map of the ids of a range that have a degree; `vectors` are those that `orient` made, degrees first."""
    return _table_map(backend.edges.marked(vectors[0] > 0), *ids, backend)


def _integer_ids(frames: Frame | list[Frame], backend: Backend) -> Array:
    if isinstance(frames, list):
        return unite([_integer_ids(frame, backend) for frame in frames], backend)
    ends = backend.edges.without_loops(*arrays_of(frames))
    return unite([backend.distinct(end).astype("int64", copy=False) for end in ends], backend)


def _text_ids(frames: Frame | list[Frame], backend: Backend) -> Any:
    return backend.text.unite([frame[end] for frame in _listed(frames) for end in ("src", "dst")])


def _listed(frames: Frame | list[Frame]) -> list[Frame]:
    return frames if isinstance(frames, list) else [frames]


def _unite_text(columns: list[Any], backend: Backend) -> Any:
    return backend.text.unite(columns)


def texts(backend: Backend) -> ValueOps:
    """Operations of `sharded.unique` on columns of text ids, which are on the host; numbers are the backend's."""
    return ValueOps(_cut_text, _ascending_union, partial(_find_text, backend=backend), _hash_text)


def _ascending_union(columns: list[Any]) -> Any:
    return CPU.text.ascending(CPU.text.unite(columns))


def _cut_text(ids: Any, starts: list[str]) -> list[Any]:
    """Cut ascending ids into copies: Arrow sends a slice together with the whole array that it was cut from."""
    import pyarrow as pa

    cuts = [bisect_left(range(len(ids)), start, key=lambda place: ids[place].as_py()) for start in starts]
    return [pa.concat_arrays([ids[begin:end]]) for begin, end in pairwise([0, *cuts, len(ids)])]


def _find_text(values: Any, among: Any, backend: Backend) -> Array:
    return backend.array.asarray(CPU.text.dense(among, values))


def _hash_text(ids: Any) -> Array:
    """Hashes of text ids below 2^63, computed in chunks because each id temporarily becomes a Python object."""
    import pandas as pd

    hashes = np.empty(len(ids), dtype="uint64")
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK].to_numpy(zero_copy_only=False)
        hashes[start : start + CHUNK] = pd.util.hash_array(chunk, categorize=False)
    return hashes >> np.uint64(1)


def _text_map(ids: Any, backend: Backend) -> TextMap:
    check_size(len(ids))
    return TextMap(backend.text.ascending(ids), backend)


def _sorted_map(ids: Array, backend: Backend) -> SortedMap:
    check_size(len(ids))
    return SortedMap(ids, backend)
