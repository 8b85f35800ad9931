"""Trusses of a graph that no worker can peel: rounds over its blocks, until one worker can peel what remains.

A round counts the supports of all edges, as counting tasks where the blocks are, and drops the edges that are in fewer
than k - 2 triangles: they are in no k-truss. Each block drops its own edges, so none travels. For the trussness of
every edge k grows from round to round: an edge dropped in a round for k is in the (k - 1)-truss and in no larger one.
If every edge has s triangles or more, all are in the (s + 2)-truss, and k continues at s + 3. What remains of most
graphs is soon small. The wedges of the remaining graph follow from its degrees, and every round's count is checked
against them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dasktc.answers.edge_support import edge_supports, zeros_of
from dasktc.backends import Backend
from dasktc.backends.csr import OrientedCSR
from dasktc.counting.context import CountingContext
from dasktc.pipeline.build_blocks import GridPartition
from dasktc.pipeline.stages.orient import total
from dasktc.planning.schemes import Block

__all__ = ["Remainder", "can_drop_edges", "remainder_of_truss", "trussness_of_blocks"]

Array = Any
ByPlace = dict[Block, Any]
"""Handles of an array for each block, with a number for each of its edges."""
Fits = Callable[[CountingContext], bool]
"""Whether one worker can peel a graph."""


def can_drop_edges(graph: CountingContext) -> bool:
    """Whether each edge is in one block, and rows and columns of the grid are dealt out alike."""
    partition = graph.prepared.partition
    return graph.plan.scheme.once and isinstance(partition, GridPartition) and partition.layout.residues > 0


class Remainder(NamedTuple):
    """What rounds left of a graph."""

    graph: CountingContext
    """The k-truss and, where one worker can peel it, other edges."""
    supports: ByPlace | None
    """Of the k-truss; None: a worker is to find it."""
    vertices: int
    triangles: int
    """Of the k-truss, where it was found."""


def remainder_of_truss(graph: CountingContext, k: int, fits: Fits) -> Remainder:
    """Drop edges that are in no k-truss, until one worker can peel the rest (`fits`) or no such edge is left."""
    vertices = graph.vertices
    while graph.edges and not fits(graph):
        supports, triangles = edge_supports(graph)
        if _least_of(graph, supports) >= k - 2:
            return Remainder(graph, supports, vertices, triangles)
        graph, vertices = _without(graph, supports, k - 2)
    return Remainder(graph, None, vertices, 0)


def trussness_of_blocks(graph: CountingContext, fits: Fits, peel: Callable[[CountingContext], ByPlace]) -> ByPlace:
    """Compute the trussness of every edge, in rounds until one worker can peel the rest.

    Parameters
    ----------
    graph : CountingContext
    fits : callable (CountingContext) -> bool
    peel : callable (CountingContext) -> dict of (i, j) to handle of array of int32
        Computes the trussness of every edge on one worker.

    Returns
    -------
    dict of (i, j) to handle of array of int32, shape (edges of the block,)
    """
    executor, backend, k = graph.executor, graph.executor.backend, 3
    levels = {place: executor.submit("truss", zeros_of, block, backend.name) for place, block in graph.blocks.items()}
    while graph.edges and not fits(graph):
        supports, _ = edge_supports(graph)
        k = max(k, _least_of(graph, supports) + 3)
        for place, block_supports in supports.items():
            levels[place] = executor.submit("truss", _levelled, levels[place], block_supports, k, backend)
        graph, _ = _without(graph, supports, k - 2)
    if graph.edges:
        for place, trussness in peel(graph).items():
            levels[place] = executor.submit("truss", _completed, levels[place], trussness, k - 1, backend)
    return levels


def _least_of(graph: CountingContext, supports: ByPlace) -> int:
    executor = graph.executor
    minima = executor.gather([executor.submit("truss", _least, array) for array in supports.values()])
    return int(min(minimum for minimum in minima if minimum is not None))


def _without(graph: CountingContext, supports: ByPlace, threshold: int) -> tuple[CountingContext, int]:
    """Drop the edges with a support below `threshold`; return the graph and the number of its vertices with an edge."""
    executor, prepared, backend = graph.executor, graph.prepared, graph.executor.backend
    partition, parts = prepared.partition, graph.plan.parts
    assert isinstance(partition, GridPartition)
    sizes, places = partition.sizes, list(graph.blocks)
    calls = [(graph.blocks[p], supports[p], threshold, int(sizes.rows[p]), int(sizes.columns[p])) for p in places]
    handles = [executor.submit("truss", _kept, *call, backend) for call in calls]
    blocks, outward, inward, numbers = executor.transpose("truss", handles, 4)
    row_degrees: list[list[Any]] = [[] for _ in range(parts)]
    column_degrees: list[list[Any]] = [[] for _ in range(parts)]
    for (row, column), out_degrees, in_degrees in zip(places, outward, inward, strict=True):
        row_degrees[row].append(out_degrees)
        column_degrees[column].append(in_degrees)
    degrees = zip(row_degrees, column_degrees, strict=True)
    facts = executor.gather([executor.submit("truss", _wedges_and_vertices, *pair) for pair in degrees])
    wedges, vertices = (sum(column) for column in zip(*facts, strict=True))
    edges = np.zeros_like(sizes.edges)
    for place, number in zip(places, executor.gather(numbers), strict=True):
        edges[place] = number
    plan = replace(graph.plan, edges=int(edges.sum()))
    new_partition = partition._replace(sizes=sizes._replace(edges=edges), wedges=wedges)
    block_map = dict(zip(places, blocks, strict=True))
    return replace(graph, blocks=block_map, prepared=replace(prepared, plan=plan, partition=new_partition)), vertices


# on the workers


def _least(supports: Array) -> int | None:
    return int(supports.min()) if len(supports) else None


def _kept(block: OrientedCSR, supports: Array, threshold: int, rows: int, columns: int, backend: Backend) -> list[Any]:
    """Return a block of the edges that stay, the out-degrees of its rows, the in-degrees of its columns, its edges."""
    xp = backend.array
    mask = supports >= threshold
    offsets = xp.zeros(block.edges + 1, dtype="int64")
    xp.cumsum(mask, out=offsets[1:])
    subgraph = replace(block, offsets=offsets.take(block.offsets), columns=block.columns[mask])
    outward = xp.diff(subgraph.offsets)[:rows]
    return [subgraph, outward, xp.bincount(subgraph.columns, minlength=columns), subgraph.edges]


def _wedges_and_vertices(outward: list[Array], inward: list[Array]) -> tuple[int, int]:
    """Return the wedges, out- times in-degrees, of the vertices of a row and column of the grid, and their number."""
    out_degrees, in_degrees = total(outward), total(inward)
    return int((out_degrees * in_degrees).sum()), int(((out_degrees + in_degrees) > 0).sum())


def _levelled(levels: Array, supports: Array, k: int, backend: Backend) -> Array:
    """Give the edges that a round for k drops their trussness; those that remain have 0."""
    places, new_levels = backend.array.flatnonzero(levels == 0), levels.copy()
    new_levels[places[supports < k - 2]] = k - 1
    return new_levels


def _completed(levels: Array, trussness: Array, minimum: int, backend: Backend) -> Array:
    """Give the remaining edges their trussness, which is at least that of the last round's edges."""
    new_levels = levels.copy()
    new_levels[backend.array.flatnonzero(levels == 0)] = trussness.clip(minimum)
    return new_levels
