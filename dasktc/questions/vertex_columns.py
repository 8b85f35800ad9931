"""Columns of vertices: values of a caller's frame by the ids of the blocks, kept where the tasks can read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dasktc.answers.frames import dense_ids, external_ids, given_ids
from dasktc.backends import Backend
from dasktc.backends.csr import on_host
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError, shown
from dasktc.io.columns import readable, series_of, values_of
from dasktc.io.id_names import plain
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.stages.columns import Column, categories_of, codes_of, placed
from dasktc.wording import advice, plural

__all__ = ["vertex_column", "vertex_columns", "whole_vector"]

Array = Any
ID_NAMES = frozenset({"id", "node", "nodeid", "vertex", "vertexid"})
"""Names, in the form of `plain`, of a column that perhaps has the ids, where the index only numbers the rows."""


def whole_vector(graph: CountingContext, question: str, vector: Sharded) -> Any:
    """Return the handle of a vector of all vertices; InputError if vertices are in shards."""
    if graph.plan.shards > 1:
        raise InputError(
            f"{graph.plan.numbering}: {question} needs vectors of all vertices in every task; prepare with a larger "
            f"{advice('memory')}"
        )
    return vector.whole


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
    elif not has_index or (_numbers_rows(frame.index) and not ID_NAMES.isdisjoint(map(plain, names))):
        raise InputError(
            f"vertices has the columns {names}, and no index of ids: whose values its rows have is unclear; name its "
            "column of ids, or its index, 'vertex'"
        )
    rows, dense = _rows(graph, frame.index, "vertices")
    return {name: _column(graph, frame[name], rows, dense, f"column {shown(name)} of vertices") for name in frame}


def _numbers_rows(index: Any) -> bool:
    """Whether an index is the one that pandas gives a frame without one of its own."""
    return index.name is None and hasattr(index, "step") and (index.start, index.step) == (0, 1)


def vertex_column(graph: CountingContext, values: Any, name: str) -> Column:
    """Keep one value for each vertex, from a Series by id or a dict; errors are those of `vertex_columns`."""
    import pandas as pd

    if isinstance(values, Mapping):
        keys = series_of(list(values)) if values else pd.Series([], dtype="int64")
        values = series_of(list(values.values()), index=pd.Index(keys, tupleize_cols=False))
    if not isinstance(values, pd.Series):
        raise InputError(
            f"{name} {shown(values)} is neither a column's name, a Series by id nor a dict: give one of these"
        )
    return _column(graph, values, *_rows(graph, values.index, name), name)


def _rows(graph: CountingContext, index: Any, name: str) -> tuple[Array, Array]:
    """Return the positions of the rows of the graph's vertices, and the dense id of each."""
    dense = dense_ids(graph, given_ids(graph, index, name))
    rows = np.flatnonzero(dense >= 0)
    dense = dense[rows]
    counts = np.bincount(dense, minlength=graph.vertices)
    if (counts > 1).any():
        vertex = external_ids(graph, np.flatnonzero(counts > 1)[:1]).tolist()[0]
        raise InputError(
            f"vertex {shown(vertex)} has several rows in {name}: which is meant is unclear; drop all but one"
        )
    if (gaps := np.flatnonzero(counts < 1)).size:
        vertex = external_ids(graph, gaps[:1]).tolist()[0]
        number = plural(len(gaps), "vertex has", "vertices have")
        raise InputError(f"vertex {shown(vertex)} has no row in {name}, as {number}: every vertex needs one; add them")
    return rows, dense


def _column(graph: CountingContext, values: Any, rows: Array, dense: Array, name: str) -> Column:
    array, categories = values_of(values, name), None
    if not isinstance(array, np.ndarray):
        categories = categories_of(array)
        array = codes_of(array, categories)
    order = whole_vector(graph, name, graph.prepared.graph.order)
    handle = graph.answers.submit_replicated("columns", _placed, array[rows], dense, order, graph.executor.backend)
    return Column(array.dtype.name, categories, handle)


def _placed(values: Array, dense: Array, order: Array, backend: Backend) -> Array:
    return backend.array.asarray(placed(values, dense, on_host(order)))
