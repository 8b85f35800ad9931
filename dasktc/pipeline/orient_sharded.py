"""Distributed orientation and reordering for vertex arrays that exceed one process; ids equal the in-memory path's.

Each partition of edges is treated as a small graph: its own vertices, ascending, and its edges over their positions.
The stage functions of `pipeline.orient` and `pipeline.reorder` run on it unchanged, with vectors as long as its list of
vertices. Entries of vertex vectors are fetched from the shards (`vectors.taken`), and counts are added to the
shards (`vectors.added`). Ranks come from one sort by degree and id across the shards (`unique.places`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dasktc.executors.base import Executor
from dasktc.pipeline.canonicalize import Canonical, edges_of
from dasktc.pipeline.orient import Oriented
from dasktc.pipeline.sharded.unique import places
from dasktc.pipeline.sharded.vectors import Sharded, added, moved, taken, zipped
from dasktc.pipeline.stages.orient import wedges_of
from dasktc.pipeline.stages.reorder import collective_degree, first_visit, relabel, visit_keys
from dasktc.pipeline.stages.shards import (
    even,
    id_bits,
    in_degree_of,
    largest,
    localised,
    oriented_locally,
    refuse_beyond,
    tie_of,
    weight_keys,
    with_degrees,
    with_entries,
)

__all__ = [
    "by_banded_collective_degree",
    "by_collective_degree",
    "by_dense_id",
    "by_indegree",
    "orient_by_shard",
    "reorder_by_shard",
]

Array = Any
Places = Callable[[Executor, Oriented, int], Sharded]


def orient_by_shard(executor: Executor, edges: Canonical, size: int, shift: int, shards: int) -> Oriented:
    """Orient as `pipeline.orient.orient` does, with sharded vertex vectors; the result is the same.

    Parameters
    ----------
    executor : Executor
    edges : Canonical
        Its partitions are emptied.
    size : int
        Number of vertices.
    shift : int
        Bits of an id in an edge key.
    shards : int
    """
    starts, number = even(size, shards), edges_of(executor, edges)
    results = executor.map("orient", with_degrees, edges.partitions, shift, executor.backend)
    ids, local, degrees = executor.transpose("orient", results, 3)
    degree = added(executor, "orient", ids, degrees, starts)
    degrees.clear()
    ascending, rank, top = _by_weight(executor, "orient", degree)
    del degree
    ranks = taken(executor, "orient", rank, ids)
    del rank
    results = executor.map("orient", with_entries, zipped(local, ranks), oriented_locally, shift, executor.backend)
    partitions, ids, sources = executor.transpose("orient", results, 3)
    outward = added(executor, "orient", ids, sources, ascending.starts)
    bits = id_bits(size)
    pairs = zipped(list(ascending.parts), list(outward.parts))
    inward = Sharded(ascending.starts, executor.map("orient", in_degree_of, pairs, top, bits))
    order = Sharded(ascending.starts, executor.map("orient", tie_of, ascending.parts, bits))
    pairs = zipped(list(inward.parts), list(outward.parts))
    wedges = sum(executor.gather([executor.submit("orient", wedges_of, *pair) for pair in pairs]))
    return Oriented(partitions, order, outward, inward, wedges, number)


def reorder_by_shard(executor: Executor, graph: Oriented, places: Places | None, shift: int) -> Oriented:
    """Reorder as `pipeline.reorder.reorder` does, with sharded vertex vectors; the result is the same.

    `places` (executor, graph, shift) returns the new id of each rank (`orders.Order.places`); the other
    parameters are those of `reorder`.
    """
    if places is None:
        return graph
    place = places(executor, graph, shift)
    ids, local = executor.transpose(
        "reorder", executor.map("reorder", localised, graph.partitions, shift, executor.backend), 2
    )
    new_ids = taken(executor, "reorder", place, ids)
    partitions = executor.map("reorder", with_entries, zipped(local, new_ids), relabel, shift, executor.backend)
    order, outward, inward = (
        moved(executor, "reorder", vector, place) for vector in (graph.order, graph.out_degree, graph.in_degree)
    )
    return Oriented(partitions, order, outward, inward, graph.wedges, graph.edges)


# one partition as a small graph


# orders


def _by_weight(executor: Executor, stage: str, weight: Sharded) -> tuple[Sharded, Sharded, int]:
    """Sort vertices by descending weight, ties by ascending id.

    Returns
    -------
    ascending : Sharded
        `(top - weight) << bits | id`, in the sorted order of the vertices.
    place : Sharded
        Position of each vertex in that order.
    top : int
        The largest weight.
    """
    top, bits = max(executor.gather(weight.map(executor, stage, largest)), default=0), id_bits(weight.size)
    refuse_beyond(top + 1, bits)
    keys = Sharded(weight.starts, weight.map(executor, stage, weight_keys, top, bits, executor.backend))
    return *places(executor, stage, keys, (top + 1) << bits), top


def by_dense_id(executor: Executor, graph: Oriented, shift: int) -> Sharded:
    """The new id of each rank: its vertex's position in ascending order of the caller's ids."""
    return graph.order


def by_indegree(executor: Executor, graph: Oriented, shift: int) -> Sharded:
    """The new id of each rank: its position in descending order of in-degree."""
    return _by_weight(executor, "reorder", graph.in_degree)[1]


def by_collective_degree(executor: Executor, graph: Oriented, shift: int) -> Sharded:
    """The new id of each rank: its position in TRUST's collective degree order."""
    return _collective(executor, graph, shift, banded=False)


def by_banded_collective_degree(executor: Executor, graph: Oriented, shift: int) -> Sharded:
    """The new id of each rank: its position in TRUST's collective degree order, in bands of out-degree."""
    return _collective(executor, graph, shift, banded=True)


def _collective(executor: Executor, graph: Oriented, shift: int, banded: bool) -> Sharded:
    size, starts = graph.order.size, graph.order.starts
    bits, bands = id_bits(size), (3 if banded else 1) * (size + 1)
    refuse_beyond(bands, bits)
    ids, local = executor.transpose(
        "reorder", executor.map("reorder", localised, list(graph.partitions), shift, executor.backend), 2
    )
    inputs = zipped(list(local), taken(executor, "reorder", graph.out_degree, ids))
    sums = executor.map("reorder", with_entries, inputs, collective_degree, shift, executor.backend)
    _, visit, _ = _by_weight(executor, "reorder", added(executor, "reorder", ids, sums, starts))
    inputs = zipped(local, taken(executor, "reorder", visit, ids))
    firsts = executor.map("reorder", with_entries, inputs, first_visit, size, shift, executor.backend)
    first = added(executor, "reorder", ids, firsts, starts, ("minimum", size))
    given = zipped(list(graph.out_degree.parts), first.parts, list(graph.order.parts))
    keys = Sharded(starts, executor.map("reorder", visit_keys, given, size, bits, banded))
    return places(executor, "reorder", keys, bands << bits)[1]
