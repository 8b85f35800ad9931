"""Numbers vertices: dense ids 0..V-1 in ascending order of the caller's ids, without a Python object per vertex.

Integers of a narrow range are used as they are, those of a wider one get a table of the range. Of other ids the
distinct ones of all frames are merged in a tree, and every worker that relabels edges looks its ids up in the result.
Where such a map does not fit one process, the ids stay in shards (`planes.vectors`), and each frame receives the dense
ids of its own vertices alone.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

from dasktc.backends.vertex_maps import MAX_VERTICES, check_size
from dasktc.executors.base import Executor, Fold, tree
from dasktc.options import Ids
from dasktc.pipeline.planes.distinct import numbered
from dasktc.pipeline.planes.graph import Frames, Handles, Numbering, SplitIds
from dasktc.pipeline.planes.vertex_budget import VertexBudget
from dasktc.pipeline.stages.id_maps import map_of
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
from dasktc.pipeline.stages.shards import integers, logical_or, unite

__all__ = ["STAGE", "TABLE_BYTES", "number_integers", "number_texts"]

STAGE = "vertices"
TABLE_BYTES = 21
"""Bytes per id of the range that building a table takes: flags, the table, and the ids twice."""


def number_integers(executor: Executor, frames: Frames, budget: VertexBudget, memory: int | None) -> Numbering:
    """Number integer ids: their range as it is, or a table, a sorted array, or shards of ids.

    Ids of a range no wider than the number of rows need no map, provided that there is room for vectors of the range:
    their offsets are used as ids until the degrees are known.

    Parameters
    ----------
    executor : Executor
    frames : Frames
    budget : VertexBudget
        Decides whether ids are sharded.
    memory : int or None
        Bytes that a call may take; None: unbounded.
    """
    span, backend = frames.span, executor.backend
    if span is None:
        span = Span.of(executor.gather(executor.map(STAGE, Span.measured, list(frames.frames))))
    low, width, rows = span.low, span.high - span.low + 1, span.rows
    has_room = memory is None or budget.fits(width)
    if has_room and width <= min(rows + 65_536, MAX_VERTICES) and budget.shards(width) == 1:
        return Numbering(IdRange(low, width), width, budget)
    if budget.shards(min(width, 2 * rows)) > 1:
        places = executor.map(STAGE, places_of_integers, list(frames.frames), low, width, backend)
        return _split(executor, places, "int", budget)
    width_limit = max(4 * rows, min(16 * rows, budget.tuning.small_table)) + 65_536
    if width <= (width_limit if memory is None else min(width_limit, memory // TABLE_BYTES)):
        mark = Fold(partial(clear_marks, width, backend), partial(mark_ids, low=low, backend=backend), logical_or)
        marks = executor.fold(STAGE, mark, list(frames.frames))
        return _counted(executor, executor.submit(STAGE, map_of_marks, marks, low, width, backend), budget)
    ids = executor.map(STAGE, distinct_integers, list(frames.frames), backend)
    distinct_ids = tree(executor, STAGE, partial(unite, backend=backend), ids)
    return _counted(executor, executor.submit(STAGE, map_of_integers, distinct_ids, backend), budget)


def number_texts(executor: Executor, frames: Frames, budget: VertexBudget) -> Numbering:
    """Number text ids: by a sorted column, or in shards, where the columns turn out to be too large together.

    The numbering's budget knows how long the ids are. Parameters are those of `number_integers`.
    """
    backend = executor.backend
    if executor.store.memory_per_call is not None and not budget.on_device:  # rows are hashed once, frames read once
        return _split(executor, executor.map(STAGE, places_of_texts, list(frames.frames), backend), "text", budget)
    ids = executor.map(STAGE, distinct_texts, list(frames.frames), backend)
    if not (budget.on_device and budget.call_memory is None):
        total, budget = _measured(executor, ids, budget)
        if budget.shards(total) > 1:
            return _split(executor, executor.map(STAGE, places_of_texts, list(frames.frames), backend), "text", budget)
    distinct_ids = tree(executor, STAGE, partial(unite_texts, backend=backend), ids)
    return _counted(executor, executor.submit(STAGE, map_of_texts, distinct_ids, backend), budget)


def _measured(executor: Executor, ids: list[Any], budget: VertexBudget) -> tuple[int, VertexBudget]:
    """Number of text ids of all columns, and the budget for ids of their length."""
    sizes = executor.gather(executor.map(STAGE, text_size, list(ids), executor.backend))
    total, nbytes = (sum(values) for values in zip(*sizes, strict=True))
    return total, budget.for_texts(total, nbytes)


def _counted(executor: Executor, vertices: Any, budget: VertexBudget) -> Numbering:
    (size,) = executor.gather([executor.submit(STAGE, attrgetter("size"), vertices)])
    return Numbering(vertices, int(size), budget)


def _split(executor: Executor, ids_and_places: list[Any], ids: Ids, budget: VertexBudget) -> Numbering:
    """Number ids in shards; by a map where the distinct ids turn out to fit one shard.

    `ids_and_places` has for each frame its ascending distinct ids, and the positions of both ends among them.
    """
    distinct_ids, edges = executor.transpose(STAGE, ids_and_places, 2)
    if ids == "text" and not budget.on_device:
        _, budget = _measured(executor, distinct_ids, budget)
    operations = texts(executor.backend) if ids == "text" else integers(executor.backend)
    shards, numbers = numbered(executor, STAGE, distinct_ids, budget.shards, operations)
    check_size(shards.size)
    split = SplitIds(shards, Handles(edges), Handles(numbers))
    if budget.shards(shards.size) > 1:
        return Numbering(split, shards.size, budget)
    vertices = executor.submit(STAGE, map_of, list(shards.parts), ids, executor.backend)
    return Numbering(vertices, shards.size, budget, None if executor.backend.on_device else split)
