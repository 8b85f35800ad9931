"""Distributed orientation and reordering for vertex arrays that exceed one process; ids equal the in-memory path's.

Each partition of edges is treated as a small graph: its own vertices, ascending, and its edges over their positions.
The stage functions of `pipeline.orient` and `pipeline.reorder` run on it unchanged, with vectors as long as its list of
vertices. Entries of vertex vectors are fetched from the shards (`vectors.taken`), and counts are added to the
shards (`vectors.added`). Ranks come from one sort by degree and id across the shards (`unique.places`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dasktc.backends import Backend
from dasktc.errors import InputError
from dasktc.executors.base import Executor
from dasktc.pipeline.canonicalize import Canonical, edges_of
from dasktc.pipeline.edge_keys import pack, ranked, unpack
from dasktc.pipeline.orient import Oriented, add_degrees, add_sources, inverse, oriented, wedges_of
from dasktc.pipeline.reorder import band_of, collective_degree, first_visit, relabel
from dasktc.pipeline.sharded.unique import places
from dasktc.pipeline.sharded.vectors import Sharded, added, even, moved, taken, with_entries, zipped
from dasktc.wording import advice, plural

__all__ = [
    "by_banded_collective_degree",
    "by_collective_degree",
    "by_dense_id",
    "by_indegree",
    "localised",
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
    results = executor.map("orient", _with_degrees, edges.partitions, shift, executor.backend)
    ids, local, degrees = executor.transpose("orient", results, 3)
    degree = added(executor, "orient", ids, degrees, starts)
    degrees.clear()
    ascending, rank, top = _by_weight(executor, "orient", degree)
    del degree
    ranks = taken(executor, "orient", rank, ids)
    del rank
    results = executor.map("orient", with_entries, zipped(local, ranks), _oriented, shift, executor.backend)
    partitions, ids, sources = executor.transpose("orient", results, 3)
    outward = added(executor, "orient", ids, sources, ascending.starts)
    bits = _bits(size)
    pairs = zipped(list(ascending.parts), list(outward.parts))
    inward = Sharded(ascending.starts, executor.map("orient", _in_degree, pairs, top, bits))
    order = Sharded(ascending.starts, executor.map("orient", _tie, ascending.parts, bits))
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


def localised(keys: Array, shift: int, backend: Backend) -> list[Array]:
    """Relabel edges to their own vertices: the distinct ids, ascending, and keys over positions among these."""
    ends = backend.array.concatenate(unpack(keys, shift))
    ids, places = ranked(ends, 1 << shift, backend)
    return [ids.astype("int32"), pack(places[: len(keys)], places[len(keys) :], shift)]


def _with_degrees(keys: Array, shift: int, backend: Backend) -> list[Array]:
    ids, local = localised(keys, shift, backend)
    return [ids, local, add_degrees(_none(ids, backend), local, shift, backend)]


def _none(ids: Array, backend: Backend) -> Array:
    return backend.array.zeros(len(ids), dtype="int32")


def _oriented(local: Array, rank: Array, shift: int, backend: Backend) -> list[Array]:
    """Oriented keys of a partition, the ranks that occur in it, ascending, and the out-degree of each in it."""
    order = rank.argsort()
    by_rank = oriented(local, inverse(order, backend), shift, backend)
    sources = add_sources(_none(rank, backend), by_rank, shift, backend)
    ranks = rank.take(order)
    return [relabel(by_rank, ranks, shift, backend), ranks, sources]


# orders


def _bits(size: int) -> int:
    return max(1, (size - 1).bit_length())


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
    top, bits = max(executor.gather(weight.map(executor, stage, _largest)), default=0), _bits(weight.size)
    _refuse_beyond(top + 1, bits)
    keys = Sharded(weight.starts, weight.map(executor, stage, _weight_keys, top, bits, executor.backend))
    return *places(executor, stage, keys, (top + 1) << bits), top


def _refuse_beyond(weights: int, bits: int) -> None:
    if weights << bits > 2**63 - 1:
        raise InputError(
            f"{plural(weights, 'weight')} of {1 << bits:,} vertices do not fit 64 bits together: vertices in shards "
            f"are sorted as such numbers; give a larger {advice('memory')}, so that they need no shards, or "
            f"{advice(reorder='degree')}"
        )


def _largest(weight: Array, first: int) -> int:
    return int(weight.max()) if len(weight) else 0


def _weight_keys(weight: Array, first: int, top: int, bits: int, backend: Backend) -> Array:
    keys = (top - weight) << bits
    keys |= backend.array.arange(first, first + len(weight), dtype="int64")
    return keys


def _tie(keys: Array, bits: int) -> Array:
    return keys & ((1 << bits) - 1)


def _in_degree(pair: list[Array], top: int, bits: int) -> Array:
    """In-degrees: the degrees, recovered from the sorted keys, less the out-degrees."""
    keys, outward = pair
    # Adding them up from the edges' ends, as out-degrees are, would take one more exchange between all workers.
    return top - (keys >> bits) - outward


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
    bits, bands = _bits(size), (3 if banded else 1) * (size + 1)
    _refuse_beyond(bands, bits)
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
    keys = Sharded(starts, executor.map("reorder", _visit_keys, given, size, bits, banded))
    return places(executor, "reorder", keys, bands << bits)[1]


def _visit_keys(given: list[Array], size: int, bits: int, banded: bool) -> Array:
    out_degree, first, dense = given
    band = band_of(out_degree) if banded else 0
    return (band * (size + 1) + first.astype("int64")) << bits | dense
