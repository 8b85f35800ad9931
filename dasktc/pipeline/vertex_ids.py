"""Assigns dense vertex ids 0..V-1 in ascending order of the caller's ids, without a Python object per vertex.

The distinct ids of all frames are merged in a tree, and every worker that relabels edges looks their ids up in the
resulting map (of size V, or of the ids' range). Where such a map does not fit one process, the ids stay in shards
(`sharded.vectors`), and each frame receives the dense ids of its own vertices alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from dasktc.executors.base import Executor, Fold, tree
from dasktc.options import Ids
from dasktc.pipeline.sharded.unique import numbered
from dasktc.pipeline.sharded.vectors import Sharded, zipped
from dasktc.pipeline.sharded.vertex_budget import VertexBudget
from dasktc.pipeline.stages.id_maps import (
    MAX_VERTICES,
    check_size,
    map_of,
)
from dasktc.pipeline.stages.ids import (
    IdRange,
    clear_marks,
    distinct_integers,
    distinct_texts,
    map_of_integers,
    map_of_marks,
    map_of_texts,
    mark_ids,
    places_of_integers,
    places_of_texts,
    text_size,
    texts,
    unite_texts,
)
from dasktc.pipeline.stages.read import Span
from dasktc.pipeline.stages.shards import either, integers, unite

__all__ = ["SplitIds", "vertex_map"]

Array = Any
Frame = Any
NO_BOUND = VertexBudget(None)
TABLE_BYTES = 21
"""Bytes per id of the range that building a table takes: flags, the table, and the ids twice."""


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
    `map_of_degrees`).

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
            places = executor.map("vertices", places_of_integers, list(frames), low, width, executor.backend)
            return _split(executor, places, ids, budget.shards), budget
        if width <= most:
            return _table(executor, frames, low, width), budget
    frame_ids = executor.map(
        "vertices", distinct_texts if ids == "text" else distinct_integers, list(frames), executor.backend
    )
    if ids == "text" and not (budget.on_device and budget.memory_per_call is None):
        sizes = executor.gather(executor.map("vertices", text_size, list(frame_ids), executor.backend))
        total, nbytes = (sum(of) for of in zip(*sizes, strict=True))
        budget = budget.of(total, nbytes)
        if budget.shards(total) > 1:
            given = zipped(list(frames), frame_ids)
            return _split(
                executor, executor.map("vertices", places_of_texts, given, executor.backend), ids, budget.shards
            ), budget
    merge, made = (unite_texts, map_of_texts) if ids == "text" else (unite, map_of_integers)
    united = tree(executor, "vertices", partial(merge, backend=executor.backend), frame_ids)
    return executor.submit("vertices", made, united, executor.backend), budget


def _table(executor: Executor, frames: list[Any], low: int, width: int) -> Any:
    mark = Fold(
        partial(clear_marks, width, executor.backend), partial(mark_ids, low=low, backend=executor.backend), either
    )
    return executor.submit(
        "vertices", map_of_marks, executor.fold("vertices", mark, list(frames)), low, width, executor.backend
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
