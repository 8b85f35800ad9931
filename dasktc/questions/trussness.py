"""Trusses and cores of a prepared graph, under the caller's ids; `peeling` computes them on one worker."""

from __future__ import annotations

from dataclasses import replace
from operator import methodcaller
from typing import Any

import numpy as np

from dasktc.answers.edge_frames import edge_answer, partitions, refuse_frame
from dasktc.answers.frames import frame_kind, text_of_labels
from dasktc.answers.vertex_frames import Columns, refuse_series, vertex_answer
from dasktc.counting.context import CountingContext
from dasktc.options import whole_number
from dasktc.pipeline.build_blocks import GridPartition
from dasktc.pipeline.stages.edge_keys import shift_of
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.schemes import Sizes
from dasktc.questions.peeling import Facts, core_vector, truss

__all__ = ["core_number", "k_truss", "order_of_truss", "truss_frames", "trussness"]

Array = Any
PLACE = 0, 0


def core_number(graph: CountingContext, frame: str | None = None, vertices: Any = None) -> Any:
    """Compute the core number of every vertex; see `Graph.core_number`."""
    kind = frame_kind(graph, frame)
    if kind.whole and vertices is None:
        refuse_series(graph)
    return vertex_answer(graph, [core_vector(graph)], CORES, kind, vertices)


CORES: Columns = {"core_number": methodcaller("astype", "int64")}


def trussness(graph: CountingContext, frame: str | None = None, edges: Any = None) -> Any:
    """Compute the trussness of every edge; see `Graph.truss`."""
    kind = frame_kind(graph, frame, "edges")
    if edges is None:
        refuse_frame(graph, kind)
    inner_graph, by_place, facts = _as_one_block(graph, None)
    return edge_answer(inner_graph, by_place, "trussness", kind, edges, facts.total)


def k_truss(graph: CountingContext, k: int, frame: str | None = None) -> Any:
    """Find the k-truss; see `Graph.truss`."""
    kind = frame_kind(graph, frame, "edges")
    inner_graph, by_place, facts = _as_one_block(graph, order_of_truss(k))
    return edge_answer(inner_graph, by_place, "support", kind, total=facts.total)


def order_of_truss(k: Any) -> int:
    """Check the k of a k-truss and clip it to 2^31, which no edge reaches.

    Raises
    ------
    InputError
        It is not a whole number, or below 0.
    """
    return min(whole_number("k", k, 0), 1 << 31)  # no edge is in so many triangles


def truss_frames(graph: CountingContext, k: int | None = None) -> tuple[list[Any], Facts]:
    """Compute the k-truss, or every edge's trussness, for files, and leave the frames where they are made.

    Returns
    -------
    frames : list of handles of pandas.DataFrame, at least one
        The partitions of `Graph.truss`. Labels are text.
    facts : Facts

    Raises
    ------
    InputError, CountError
        As `Graph.truss`.
    """
    inner_graph, by_place, facts = _as_one_block(graph, k)
    frames, _ = partitions(inner_graph, by_place, "trussness" if k is None else "support", total=facts.total)
    return text_of_labels(graph, frames), facts


def _as_one_block(graph: CountingContext, k: int | None) -> tuple[CountingContext, dict[tuple[int, int], Any], Facts]:
    """Return the graph, or its k-truss, as one block, and a number for each of its edges."""
    block, values, facts = truss(graph, k)
    axis = Axis(facts.vertices, 1)
    sizes = Sizes(*(np.array([[size]], dtype="int64") for size in (facts.edges, facts.vertices, facts.vertices)))
    layout = Layout(axis, (axis,), Shape(facts.vertices, shift_of(facts.vertices), ordered=True))
    plan = replace(graph.plan, partition="whole", parts=1, edges=facts.edges)
    prepared = replace(graph.prepared, plan=plan, partition=GridPartition(layout, sizes, 0))
    return replace(graph, blocks={PLACE: block}, prepared=prepared), {PLACE: values}, facts
