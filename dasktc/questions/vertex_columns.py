"""Columns of vertices: values of a caller's frame by the ids of the blocks, and the entries that each task reads.

A task reads entries for the vertices of its blocks' rows and columns, their sides (`Scheme.sides`), and not the vector
of all vertices (`by_side`), so that a column may be in shards.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from dasktc.answers.frames import dense_ids, external_ids, given_ids, id_shards
from dasktc.backends import Backend
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError, shown
from dasktc.executors.base import unchanged
from dasktc.io.columns import readable, series_of, values_of
from dasktc.io.id_names import plain
from dasktc.pipeline.planes.vectors import (
    Sharded,
    gather_entries,
    gather_spans,
    reordered,
    vectors_on_backend,
    vectors_on_host,
)
from dasktc.pipeline.stages.columns import Column, categories_of, codes_of
from dasktc.wording import plural

__all__ = ["by_side", "vertex_column", "vertex_columns"]

Array = Any
ID_NAMES = frozenset({"id", "node", "nodeid", "vertex", "vertexid"})
"""Names, in the form of `plain`, of a column that perhaps has the ids, where the index only numbers the rows."""


def by_side(graph: CountingContext, stage: str, vector: Sharded) -> dict[int, Any]:
    """Gather the entries of a vector, by the ids of the blocks, for the vertices of each side of the blocks.

    Returns
    -------
    dict of int to handle of array
        By side (`Scheme.sides`): the entries of its vertices, in the order of their numbers in the blocks, which may
        have one more row, without edges.
    """
    plan, sizes, partition = graph.plan, graph.prepared.sizes, graph.prepared.partition
    lengths = dict[int, int]()
    for place in graph.blocks:
        for side, sides in zip(plan.scheme.sides(plan.parts, place), (sizes.rows, sizes.columns), strict=True):
            lengths[side] = max(lengths.get(side, 0), int(sides[place]))
    numberings = {side: partition.numbering(side) for side in sorted(lengths)}
    spans = {
        side: (numbering[0], numbering[1], min(plan.vertices, numbering[0] + numbering[1] * lengths[side]))
        for side, numbering in numberings.items()
        if isinstance(numbering, tuple)
    }
    listed = [side for side in numberings if side not in spans]
    entries = dict(zip(spans, gather_spans(graph.executor, stage, vector, list(spans.values())), strict=True))
    entries |= zip(
        listed, gather_entries(graph.executor, stage, vector, [numberings[side] for side in listed]), strict=True
    )
    submit = graph.answers.submit_replicated if plan.scheme.replicated else graph.executor.submit
    return {side: submit(stage, _joined, entries[side], graph.executor.backend) for side in numberings}


def _joined(entries: list[Array], backend: Backend) -> Array:
    """Join the entries of a side to an array, which is that of the vector where the side has all of it."""
    return backend.array.ascontiguousarray(entries[0]) if len(entries) == 1 else backend.array.concatenate(entries)


def vertex_columns(graph: CountingContext, frame: Any) -> dict[str, Column]:
    """Keep the columns of a frame of vertices.

    Parameters
    ----------
    graph : CountingContext
    frame : DataFrame
        Ids are its column "vertex", else its index. Rows of vertices that are not in the graph are left out.

    Raises
    ------
    InputError
        A vertex of the graph has no row, or several; a value is absent; a column has a type that is not kept; or it is
        unclear where the ids are.
    """
    has_index = hasattr(frame, "index")
    if hasattr(frame, "to_pandas"):
        with readable("vertices"):
            frame = frame.to_pandas()
    if not hasattr(frame, "set_index") or not hasattr(frame, "columns"):
        raise InputError(f"vertices={shown(frame)} is no DataFrame: give one with a column of ids named 'vertex'")
    names = list(frame.columns)
    if not frame.columns.is_unique or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"vertices has the columns {names}: columns are named by different texts, none of them empty")
    if "vertex" in names:
        frame = frame.set_index("vertex")
    elif _numbers_rows(frame.index) and not (has_index and ID_NAMES.isdisjoint(map(plain, names))):
        raise InputError(
            f"vertices has the columns {names}, and no index of ids: whose values its rows have is unclear; name its "
            "column of ids, or its index, 'vertex'"
        )
    rows = _rows(graph, frame.index, "vertices")
    return {name: _column(graph, frame[name], rows, f"column {shown(name)} of vertices") for name in frame}


def _numbers_rows(index: Any) -> bool:
    """Whether an index is the one that pandas gives a frame without one of its own."""
    return index.name is None and hasattr(index, "step") and (index.start, index.step) == (0, 1)


def vertex_column(graph: CountingContext, values: Any, name: str) -> Column:
    """Keep one value for each vertex, from a Series by id or a dict; errors are those of `vertex_columns`."""
    import pandas as pd

    if hasattr(values, "to_pandas") and hasattr(values, "index"):  # a Series of cuDF; Polars' has no ids
        with readable(name):
            values = values.to_pandas()
    if isinstance(values, Mapping):
        keys = series_of(list(values)) if values else pd.Series([], dtype="int64")
        values = series_of(list(values.values()), index=pd.Index(keys, tupleize_cols=False))
    if not isinstance(values, pd.Series):
        raise InputError(
            f"{name} {shown(values)} is neither a column's name, a Series by id nor a dict: give one of these"
        )
    return _column(graph, values, _rows(graph, values.index, name), name)


def _rows(graph: CountingContext, index: Any, name: str) -> Array:
    """Return the position of each vertex's row, by dense id."""
    dense = dense_ids(graph, given_ids(graph, index, name))
    numbers = np.arange(len(dense))
    rows = np.full(graph.vertices + 1, -1)  # the last entry is that of ids of no vertex
    rows[dense] = numbers
    if (repeated := np.flatnonzero((rows[dense] != numbers) & (dense >= 0))).size:
        vertex = external_ids(graph, dense[repeated[:1]]).tolist()[0]
        raise InputError(
            f"vertex {shown(vertex)} has several rows in {name}: which is meant is unclear; drop all but one"
        )
    rows = rows[:-1]
    if (gaps := np.flatnonzero(rows < 0)).size:
        vertex = external_ids(graph, gaps[:1]).tolist()[0]
        number = plural(len(gaps), "vertex has", "vertices have")
        raise InputError(f"vertex {shown(vertex)} has no row in {name}, as {number}: every vertex needs one; add them")
    return rows


def _column(graph: CountingContext, values: Any, rows: Array, name: str) -> Column:
    array, categories = values_of(values, name), None
    if not isinstance(array, np.ndarray):
        categories = categories_of(array)
        array = codes_of(array, categories)
    return Column(array.dtype.name, categories, _by_block_id(graph, array.take(rows)))


def _by_block_id(graph: CountingContext, dense_values: Array) -> Sharded:
    """Put values by dense id, which the caller's process has, in the order of the ids of the blocks."""
    executor, starts = graph.executor, id_shards(graph).starts
    host_executor, (order,) = vectors_on_host(executor, "columns", graph.prepared.graph.order)
    parts = [host_executor.submit("columns", unchanged, dense_values[first:end]) for first, end in pairwise(starts)]
    values = reordered(host_executor, "columns", Sharded(starts, parts), order)
    return vectors_on_backend(executor, "columns", values)[0]
