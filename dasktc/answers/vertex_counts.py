"""Triangles by vertex and by edge, counted once: the sums of blocks' rows and columns are added up by vertex."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from operator import getitem
from typing import Any

import numpy as np

from dasktc.answers.edge_support import edge_supports, kernel_and_bytes, vertex_supports
from dasktc.answers.external_ids import shares_of
from dasktc.answers.frames import array_module, backend_of
from dasktc.backends import get_backend
from dasktc.backends.answers import degrees_of
from dasktc.backends.csr import OrientedCSR
from dasktc.counting.context import CountingContext
from dasktc.counting.count import count as count_triangles
from dasktc.counting.tasks import refuse_unless
from dasktc.executors.base import starmap
from dasktc.options import CountOptions
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.prepare import Progress
from dasktc.pipeline.stages.orient import total, wedges_of
from dasktc.planning.schemes import Block

__all__ = [
    "add_side",
    "added_up",
    "coefficients",
    "degrees",
    "known_edges",
    "known_triangles",
    "of_degrees",
    "pairs_of",
    "same",
    "triangles_by_id",
]

Array = Any
UNEQUAL = "the vertices' triangles do not add up to 3 per triangle"


def known_edges(graph: CountingContext) -> tuple[dict[Block, Any], int]:
    """Return every edge's triangles, in the form of `edge_supports`, and the graph's; count them unless known."""
    counts = graph.counted
    with counts.lock:
        if counts.by_edge is not None and counts.triangles is not None:
            return counts.by_edge, counts.triangles
        supports, count = edge_supports(graph)
        counts.agree(count)
        if graph.answers.may_cache(4 * graph.edges):
            counts.by_edge = supports
        return supports, count


def triangles_by_id(graph: CountingContext) -> tuple[Sharded, int]:
    """Return every vertex's triangles, by the ids of the blocks, and the graph's; count them unless known.

    If the triangles of the edges are known, they are added up instead.
    """
    counts = graph.counted
    with counts.lock:
        if counts.by_vertex is None or counts.triangles is None:
            edge_counts = counts.by_edge
            if edge_counts is not None and counts.triangles is not None and _ends_fit(graph):
                vertex_sums = _merged(graph, _ends_of_edges(graph, edge_counts), counts.triangles, is_double=True)
            else:
                sums, count = vertex_supports(graph)
                vertex_sums = _merged(graph, sums, counts.agree(count))
            counts.by_vertex = vertex_sums
        assert counts.triangles is not None
        return counts.by_vertex, counts.triangles


def known_triangles(graph: CountingContext, progress: Progress | None = None) -> int:
    """Return the graph's triangles; count them unless known."""
    counts = graph.counted
    with counts.lock:
        if counts.triangles is None:
            counts.agree(int(count_triangles(graph, CountOptions(progress=progress))))
        assert counts.triangles is not None
        return counts.triangles


def _merged(graph: CountingContext, sums: dict[int, Any], count: int, is_double: bool = False) -> Sharded:
    """Add up every vertex's triangles over all sides of the blocks; with `is_double` the sums are twice as large."""
    executor, starts = graph.executor, graph.prepared.graph.order.starts
    sides, numberings = list(sums.values()), [graph.prepared.partition.numbering(side) for side in sums]
    if graph.plan.shards == 1:
        arguments = (sides, numberings, graph.vertices, count, is_double)
        return Sharded(starts, [executor.submit("triangles", added_up, *arguments)])
    shares = shares_of(executor, sides, numberings, starts)
    sizes = (end - first for first, end in pairwise(starts))
    parts = [
        executor.submit("triangles", added_up, *args, size, None, is_double)
        for args, size in zip(shares, sizes, strict=True)
    ]
    incidences = sum(executor.gather([executor.submit("triangles", _sum, part) for part in parts]))
    refuse_unless(incidences == 3 * count, UNEQUAL)
    return Sharded(starts, parts)


def _ends_fit(graph: CountingContext) -> bool:
    """Whether a task may hold all vectors of a side at once within `--memory`; if so, reserve that memory.

    Where supports were counted, the sums of a block fit beside it and its supports.
    """
    executor, plan, sizes = graph.executor, graph.plan, graph.prepared.sizes
    if graph.answers.call_bytes is None:
        return True
    nbytes = 8 * (2 * plan.parts + 1) * int(max(sizes.rows.max(), sizes.columns.max()))
    if nbytes > plan.memory:
        return False
    executor.store.set_task_memory(max(nbytes, kernel_and_bytes(graph)[1]), plan.memory)
    return True


def _ends_of_edges(graph: CountingContext, supports: dict[Block, Any]) -> dict[int, Any]:
    """Sums of supports by vertex and side of the blocks; over all sides they are twice the triangles."""
    executor, plan, sizes = graph.executor, graph.plan, graph.prepared.sizes
    side_parts: dict[int, list[Any]] = {}
    for place, support in supports.items():
        sides = plan.scheme.sides(plan.parts, place)
        lengths = int(sizes.rows[place]), int(sizes.columns[place])
        arguments = (graph.blocks[place], support, *lengths, sides[0] == sides[1], graph.options.chosen_backend)
        ends = executor.submit("triangles", _at_ends, *arguments)
        for number, side in enumerate(dict.fromkeys(sides)):
            side_parts.setdefault(side, []).append(executor.submit("triangles", getitem, ends, number))
    return {
        side: parts[0] if len(parts) == 1 else executor.submit("triangles", total, parts)
        for side, parts in side_parts.items()
    }


def _at_ends(
    block: OrientedCSR, supports: Array, rows: int, columns: int, is_symmetric: bool, backend: str
) -> list[Array]:
    """Add up supports at rows and at columns; if rows and columns are one side, add both together."""
    xp = get_backend(backend).array
    row_sums = xp.zeros(max(rows, columns) if is_symmetric else rows, dtype="int64")
    column_sums = row_sums if is_symmetric else xp.zeros(columns, dtype="int64")
    get_backend(backend).add_ends(block, supports, row_sums, column_sums)
    return [row_sums] if is_symmetric else [row_sums, column_sums]


def _sum(vector: Array) -> int:
    return int(vector.sum())


def added_up(sums: list[Array], numberings: list[Any], vertices: int, count: int | None, twice: bool = False) -> Any:
    """Add up every vertex's triangles over all sides; `count` is the graph's, for a check if all vertices are here."""
    xp = array_module(sums[0]) if sums else np
    is_identity = len(sums) == 1 and isinstance(numberings[0], tuple) and numberings[0] == (0, 1)
    if is_identity and len(sums[0]) >= vertices and not twice:
        return _checked(sums[0][:vertices], count)
    counts = xp.zeros(vertices, dtype="int64")
    for side_sums, numbering in zip(sums, numberings, strict=True):
        add_side(counts, numbering, side_sums)
    if twice:
        refuse_unless(not bool((counts & 1).any()), "a vertex's edges have an odd number of triangles together")
        counts >>= 1
    return _checked(counts, count)


def add_side(vector: Array, numbering: Any, sums: Array) -> None:
    """Add the sums of a side's vertices, given by the first one and their stride, or as an array, in place."""
    if isinstance(numbering, tuple):
        first, stride = numbering
        target = vector[first::stride][: len(sums)]
        target += sums[: len(target)]
    else:
        vector[array_module(vector).asarray(numbering)] += sums


def _checked(counts: Array, count: int | None) -> Array:
    refuse_unless(count is None or int(counts.sum()) == 3 * count, UNEQUAL)
    return counts


def coefficients(counts: Array, out_degree: Array, in_degree: Array) -> Array:
    """Compute the local clustering coefficients."""
    return backend_of(counts).answers.clustering(counts, out_degree, in_degree)


def of_degrees(graph: CountingContext, stage: str, function: Callable[..., Any], *vectors: Sharded) -> list[Any]:
    """Call `function(degrees, *entries)` for each shard of the vertices; return handles of what it returns.

    It is given the degrees, int64, and the entries of vectors, by the ids of the blocks.
    """
    oriented_graph = graph.prepared.graph
    parts = (vector.parts for vector in (oriented_graph.out_degree, oriented_graph.in_degree, *vectors))
    calls = [(function, *shard) for shard in zip(*parts, strict=True)]
    return starmap(graph.executor, stage, _with_degrees, calls)


def _with_degrees(function: Callable[..., Any], out_degree: Array, in_degree: Array, *entries: Array) -> Any:
    return function(degrees_of(out_degree, in_degree), *entries)


def pairs_of(degree: Array) -> int:
    """Σ d·(d - 1)/2 as an exact Python int."""
    return wedges_of(degree - 1, degree) // 2


def same(counts: Array, *_: Array) -> Array:
    """Return the counts unchanged."""
    return counts


def degrees(_: Array, out_degree: Array, in_degree: Array) -> Array:
    """Return the degrees, int64."""
    return degrees_of(out_degree, in_degree)
