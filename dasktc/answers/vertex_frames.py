"""Frames with numbers of all vertices, in ascending order of their ids, or of requested vertices."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from dasktc.answers.edge_frames import given_as
from dasktc.answers.external_ids import values_in_shards
from dasktc.answers.frames import (
    PANDAS,
    FrameKind,
    array_module,
    backend_of,
    column,
    dense_ids,
    empty,
    external_ids_on_device,
    frame_kind,
    frame_of,
    gathered,
    given_ids,
    id_shards,
    ids_of,
    labelled,
    rows_of_partition,
    spread,
    unknown,
)
from dasktc.backends import get_backend
from dasktc.backends.csr import on_host
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.stages.shards import even
from dasktc.wording import advice

__all__ = ["Columns", "reals", "reals_of_bits", "total_of", "vertex_answer", "vertex_frame_kind", "vertex_partitions"]

Array = Any
Columns = dict[str, Callable[..., Array]]
"""Functions of vertex vectors by the name of the column that they make; their arrays are of one module."""


def reals(values: Array) -> Array:
    """Return the numbers as float64."""
    return values.astype("float64", copy=False)


def reals_of_bits(bits: Array, *_: Array) -> Array:
    """Return the float64 that have these bits, int64."""
    return bits.view("float64")


def vertex_frame_kind(graph: CountingContext, frame: str | None, vertices: Any) -> FrameKind:
    """Choose the frame type of numbers of every vertex, or of requested vertices, as `frame_kind` does.

    InputError, too: the frame is whole, and vectors are sharded because they do not fit the one process, the caller's.
    """
    kind = frame_kind(graph, frame)
    if kind.whole and vertices is None and graph.plan.shards > 1 and graph.answers.caller_bytes is not None:
        raise InputError(
            f"{graph.plan.numbering}: the caller would get a number of every vertex; write them with "
            f"{advice('per_vertex')}, take frame='dask', or prepare with a larger {advice('memory')}"
        )
    return kind


def vertex_answer(
    graph: CountingContext, vectors: list[Sharded], columns: Columns, kind: FrameKind, vertices: Any
) -> Any:
    """Make a series or frame of numbers of every vertex, or of requested vertices.

    Parameters
    ----------
    graph : CountingContext
    vectors : list of Sharded
        Vectors by the ids of the blocks.
    columns : dict of str to callable (*vectors) -> array
        Functions of these vectors.
    kind : FrameKind
        From `vertex_frame_kind`.
    vertices : sequence or column, or None
        The caller's ids; None: all.

    Returns
    -------
    Series, or with several columns DataFrame
        By the caller's ids, an index named "vertex", ascending or in the order of `vertices`.

    Raises
    ------
    InputError
        A vertex is not in the graph.
    """
    executor = graph.executor
    if vertices is not None:
        return _asked(graph, vectors, columns, kind, vertices)
    rows = None if kind.whole else rows_of_partition(graph, 1, len(columns))
    frames, ends = vertex_partitions(graph, vectors, columns, kind, rows, indexed=True)
    if kind.whole:
        return labelled(graph, gathered(graph.answers, frames, kind))
    empty_vectors = [np.empty(0, np.int64) for _ in vectors]
    types = {name: str(function(*empty_vectors).dtype) for name, function in columns.items()}
    ids = "int64" if graph.prepared.source.ids == "int" else "str"
    meta = _indexed(empty({"vertex": ids, **types}, kind.library), list(columns))
    firsts = executor.gather(ends)
    divisions = (*(pair[0] for pair in firsts), firsts[-1][-1]) if all(firsts) else None
    return spread(graph, frames, meta, divisions)


def vertex_partitions(
    graph: CountingContext,
    vectors: list[Sharded],
    columns: Columns,
    kind: FrameKind = PANDAS,
    rows: int | None = None,
    indexed: bool = False,
) -> tuple[list[Any], list[Any]]:
    """Make frames with numbers of every vertex and leave them where they are made; parameters as for `vertex_answer`.

    A frame has at most `rows` rows; None: a frame a shard. With `indexed` ids are its index rather than its column
    "vertex". Returns handles of the frames, at least one, and, for a Dask DataFrame, of lists of the first and the last
    id of each frame; such a list is empty for a frame without rows.
    """
    executor, shards, ids = graph.executor, _values(graph, vectors, columns), id_shards(graph)
    frames, ends = [], []
    for values, shard_ids, (first, end) in zip(shards.parts, ids.parts, pairwise(shards.starts), strict=True):
        count = max(1, -(-(end - first) // rows)) if rows else 1
        for start, stop in pairwise(even(end - first, count)):
            arguments = (values, shard_ids, start, stop, list(columns), kind.library, indexed)
            frames.append(executor.submit("vertex-frames", _vertex_frame, *arguments))
            if not kind.whole:
                ends.append(executor.submit("vertex-frames", _ends, shard_ids, start, stop))
    return frames, ends


def total_of(graph: CountingContext, vectors: list[Sharded], columns: Columns) -> float:
    """Add up the single column over all vertices."""
    shards = _values(graph, vectors, columns)
    return float(sum(graph.executor.gather(shards.map(graph.executor, "vertex-frames", _sum))))


def _sum(values: list[Array], _: int) -> float:
    return float(values[0].sum())


def _values(graph: CountingContext, vectors: list[Sharded], columns: Columns) -> Sharded:
    """Return handles of lists of the columns' values by dense id."""
    executor, order = graph.executor, graph.prepared.graph.order
    if graph.plan.shards > 1:
        return values_in_shards(executor, vectors, order, graph.prepared.vertices, columns)
    whole_vectors = [vector.whole for vector in vectors]
    return Sharded(
        (0, graph.vertices), [executor.submit("vertex-frames", _by_dense_id, columns, order.whole, *whole_vectors)]
    )


def _by_dense_id(columns: Columns, order: Array, *vectors: Array) -> list[Array]:
    return [backend_of(order).answers.place(function(*vectors), order) for function in columns.values()]


def _vertex_frame(
    values: list[Array], ids: Any, start: int, stop: int, names: list[str], library: Any, has_index: bool
) -> Any:
    if library == "cudf" and has_index and start == 0 and stop == len(values[0]) and hasattr(ids, "external"):
        return _on_device(dict(zip(names, values, strict=True)), ids)
    columns = {name: vector[start:stop] for name, vector in zip(names, values, strict=True)}
    if library == "pandas":
        columns = {name: on_host(vector) for name, vector in columns.items()}
    if hasattr(ids, "external"):
        vertex_ids = ids_of(ids, array_module(next(iter(columns.values()))).arange(start, stop), library)
    else:  # a shard of the map
        vertex_ids = on_host(ids[start:stop])
        vertex_ids = column(vertex_ids) if library == "pandas" else vertex_ids
    frame = frame_of({"vertex": vertex_ids, **columns}, library, 0 if has_index else start)
    return _indexed(frame, names) if has_index else frame


def _on_device(values: dict[str, Array], vertices: Any) -> Any:
    """Make a cuDF frame of all vertices' numbers; consecutive ids take no memory."""
    cudf, size, first = get_backend("cuda").frame, vertices.size, external_ids_on_device(vertices)
    if isinstance(first, int):
        index = cudf.RangeIndex(first, first + size, name="vertex")
    else:
        ids = vertices.ids if first is None else first
        index = cudf.Index(ids, name="vertex")
    if len(values) > 1:
        return cudf.DataFrame(values, index=index)
    ((name, numbers),) = values.items()
    return cudf.Series(numbers, index=index, name=name)


def _indexed(frame: Any, names: list[str]) -> Any:
    vertex_frame = frame.set_index("vertex")
    return vertex_frame[names[0]] if len(names) == 1 else vertex_frame


def _ends(ids: Any, start: int, stop: int) -> list[Any]:
    """Return the first and the last id as Python objects."""
    if start == stop:
        return []
    places = np.array([start, stop - 1])
    return list(
        (ids.external(places) if hasattr(ids, "external") else on_host(ids[start:stop]).take(places - start)).tolist()
    )


def _asked(graph: CountingContext, vectors: list[Sharded], columns: Columns, kind: FrameKind, vertices: Any) -> Any:
    """Return the numbers of requested vertices, in their order."""
    requested_ids = given_ids(graph, vertices, "vertices")
    dense = dense_ids(graph, requested_ids)
    if len(dense) and dense.min() < 0:
        number = int((dense < 0).argmax())
        example = requested_ids[number] if graph.prepared.source.labels is None else list(vertices)[number]
        raise unknown("vertices", example, int((dense < 0).sum()), "id")
    shards = _values(graph, vectors, columns)
    parts = graph.executor.gather(shards.map(graph.executor, "vertex-frames", _taken, dense))
    frame_columns = {"vertex": column(requested_ids)}
    for number, name in enumerate(columns):
        frame_columns[name] = np.empty(len(dense), parts[0][1][number].dtype if parts else np.int64)
        for places, values in parts:
            frame_columns[name][places] = values[number]
    frame = _indexed(frame_of(frame_columns, "pandas"), list(columns))
    return given_as(labelled(graph, frame), kind)


def _taken(values: list[Array], first: int, dense: Array) -> tuple[Array, list[Array]]:
    """Select the dense ids that are in a shard, and their values; on the host."""
    places = np.flatnonzero((dense >= first) & (dense < first + len(values[0])))
    xp = array_module(values[0])
    offsets = xp.asarray(dense[places] - first)
    return places, [on_host(vector.take(offsets)) for vector in values]
