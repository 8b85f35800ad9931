"""Trusses and cores of a prepared graph, under the caller's ids.

`peeling` computes them on one worker. A graph that this worker cannot peel first shrinks in rounds (`truss_rounds`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from dasktc.answers.edge_frames import edge_answer, partitions, refuse_frame
from dasktc.answers.frames import frame_kind
from dasktc.answers.vertex_frames import Columns, vertex_answer, vertex_frame_kind
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import refuse_unless
from dasktc.options import whole_number
from dasktc.pipeline.build_blocks import GridPartition
from dasktc.pipeline.stages.edge_keys import shift_of
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.schemes import Block, Sizes
from dasktc.questions.peeling import PLACED, TrussFacts, core_vector, fits_one_worker, truss, trussness_in_blocks
from dasktc.questions.truss_rounds import can_drop_edges, remainder_of_truss, trussness_of_blocks

__all__ = ["core_number", "k_truss", "order_of_truss", "truss_frames", "trussness"]

Array = Any
PLACE = 0, 0


def core_number(graph: CountingContext, frame: str | None = None, vertices: Any = None) -> Any:
    """Compute the core number of every vertex; see `Graph.core_number`."""
    kind = vertex_frame_kind(graph, frame, vertices)
    return vertex_answer(graph, [core_vector(graph)], CORES, kind, vertices)


CORES: Columns = {"core_number": methodcaller("astype", "int64")}


def trussness(graph: CountingContext, frame: str | None = None, edges: Any = None) -> Any:
    """Compute the trussness of every edge; see `Graph.truss`."""
    kind = frame_kind(graph, frame, "edges")
    if edges is None:
        refuse_frame(graph, kind)
    inner_graph, levels, facts = _decomposed(graph, None)
    return edge_answer(inner_graph, levels, "trussness", kind, edges, facts.total)


def k_truss(graph: CountingContext, k: int, frame: str | None = None) -> Any:
    """Find the k-truss; see `Graph.truss`."""
    kind = frame_kind(graph, frame, "edges")
    inner_graph, supports, facts = _decomposed(graph, order_of_truss(k))
    return edge_answer(inner_graph, supports, "support", kind, total=facts.total)


def order_of_truss(k: Any) -> int:
    """Check the k of a k-truss, a whole number from 0 on (else InputError), and clip it to 2^31, which none reaches."""
    return min(whole_number("k", k, 0), 1 << 31)  # no edge is in so many triangles


def truss_frames(graph: CountingContext, k: int | None = None) -> tuple[list[Any], TrussFacts]:
    """Compute the k-truss, or every edge's trussness, for files: handles of pandas frames, and their facts.

    The frames, at least one, are the partitions of `Graph.truss`, whose errors it raises.
    """
    inner_graph, edge_values, facts = _decomposed(graph, k)
    frames, _ = partitions(inner_graph, edge_values, "trussness" if k is None else "support", total=facts.total)
    return frames, facts


def _decomposed(graph: CountingContext, k: int | None) -> tuple[CountingContext, dict[Block, Any], TrussFacts]:
    """Return the graph, or its k-truss, and a number for each of its edges: by one worker, or first in rounds."""
    if fits_one_worker(graph) or not can_drop_edges(graph):
        return _as_one_block(graph, k)
    if k is None:
        predicate = partial(fits_one_worker, extra_bytes=PLACED)
        levels = trussness_of_blocks(graph, predicate, trussness_in_blocks)
        largest, total = _largest_and_total(graph, levels)
        return graph, levels, TrussFacts(graph.vertices, graph.edges, largest, total)
    rest, supports, vertices, triangles = remainder_of_truss(graph, k, fits_one_worker)
    if supports is None:
        return _as_one_block(rest, k)
    largest, total = _largest_and_total(rest, supports)
    refuse_unless(total == 3 * triangles, "supports do not add up to 3 per triangle")
    return rest, supports, TrussFacts(vertices, rest.edges, largest, total)


def _largest_and_total(graph: CountingContext, edge_values: dict[Block, Any]) -> tuple[int, int]:
    calls = [graph.executor.submit("truss", _extent, values) for values in edge_values.values()]
    largest, totals = zip(*graph.executor.gather(calls), strict=True)
    return max(largest), sum(totals)


def _extent(values: Array) -> tuple[int, int]:
    return (int(values.max()), int(values.sum(dtype="int64"))) if len(values) else (0, 0)


def _as_one_block(graph: CountingContext, k: int | None) -> tuple[CountingContext, dict[Block, Any], TrussFacts]:
    """Return the graph, or its k-truss, as one block, and a number for each of its edges."""
    block, values, facts = truss(graph, k)
    axis = Axis(facts.vertices, 1)
    sizes = Sizes(*(np.array([[size]], dtype="int64") for size in (facts.edges, facts.vertices, facts.vertices)))
    layout = Layout(axis, (axis,), Shape(facts.vertices, shift_of(facts.vertices), ordered=True))
    plan = replace(graph.plan, partition="whole", parts=1, edges=facts.edges)
    prepared = replace(graph.prepared, plan=plan, partition=GridPartition(layout, sizes, 0))
    return replace(graph, blocks={PLACE: block}, prepared=prepared), {PLACE: values}, facts
