"""Columns of edges and vertices that `prepare` keeps for surveys: options, and how they come beside the blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dasktc.api.opener import Call
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError, shown
from dasktc.pipeline.columns import edge_column
from dasktc.pipeline.stages.columns import REPEATS, Columns, Repeats
from dasktc.questions.vertex_columns import vertex_columns

__all__ = ["repeats_of", "with_columns"]


def repeats_of(columns: Sequence[str] | Mapping[str, Repeats | None]) -> dict[str, Repeats | None]:
    """Return what to do with repeated edges by column; InputError for another way, or no names."""
    if isinstance(columns, str) or not isinstance(columns, Mapping | Sequence):
        raise InputError(f"edge_columns={shown(columns)} is no list of names: give one, such as edge_columns=['time']")
    for name in columns:
        if not isinstance(name, str) or not name:
            raise InputError(f"edge_columns has {shown(name)} for a name: columns, and positions, are given as text")
    choices: dict[str, Repeats | None] = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns)
    for name, repeats in choices.items():
        if repeats is not None and repeats not in REPEATS:
            note = ": an edge keeps one value" if str(repeats) == "all" else ""
            raise InputError(
                f"edge_columns={{{name!r}: {shown(repeats)}}} is none of {', '.join(REPEATS)}{note}; choose one of "
                "these"
            )
    return choices


def with_columns(
    graph: CountingContext, call: Call, repeats: Mapping[str, Repeats | None], vertices: Any
) -> CountingContext:
    """Keep columns of edges and of vertices beside the blocks."""
    if vertices is None and not repeats:
        return graph
    vertex_values = {} if vertices is None else vertex_columns(graph, vertices)
    if clashes := sorted(vertex_values.keys() & repeats.keys()):
        raise InputError(
            f"column {shown(clashes[0])} is one of edges and one of vertices: rename one, so that it is clear"
        )
    call.tracker("columns", 0, 1)
    edge_values = {
        name: edge_column(graph.executor, graph.prepared, graph.blocks, source, name, repeats[name])
        for name, source in call.columns.items()
    }
    return replace(graph, prepared=replace(graph.prepared, columns=Columns(vertex_values, edge_values)))
