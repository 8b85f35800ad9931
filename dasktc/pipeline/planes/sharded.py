"""The plane for vertex vectors that exceed one process: these are in shards, from which partitions fetch entries.

The plane of each mode reads, exchanges keys and builds blocks as before. Each partition of edges is treated as a small
graph: its own vertices, ascending, and its edges over their positions. The functions of the stages run on it
unchanged, with vectors as long as its list of vertices. Entries of vertex vectors are fetched from the shards
(`vectors.gather_entries`), and counts are added to the shards (`vectors.scatter_entries`). Ranks come from one sort by
degree and id across the shards (`distinct.places`). Ids equal those of whole vectors that are ranked by degree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from dasktc.executors.base import Executor
from dasktc.pipeline.planes.base import Plane
from dasktc.pipeline.planes.distinct import places
from dasktc.pipeline.planes.exchange import Inputs, splitters
from dasktc.pipeline.planes.graph import Canonical, Frames, Handles, Numbering, Oriented
from dasktc.pipeline.planes.vectors import Sharded, gather_entries, permuted, scatter_entries, zipped
from dasktc.pipeline.stages.canonical import keys_of_places
from dasktc.pipeline.stages.edge_keys import shift_of
from dasktc.pipeline.stages.orient import ranks_of, wedges_of
from dasktc.pipeline.stages.reorder import collective_degree, first_visit, relabel, visit_keys
from dasktc.pipeline.stages.shards import (
    even,
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
from dasktc.planning.orders import Order, Ranking

__all__ = ["ShardedPlane", "ranks"]


@dataclass(frozen=True)
class ShardedPlane(Plane):
    """The verbs that differ where vertex vectors are sharded; the others are those of a mode's plane.

    Parameters
    ----------
    executor, options, tuning
        As of `Plane`.
    shards : int
    """

    shards: int

    def canonical(self, frames: Frames, numbering: Numbering) -> Canonical:
        """Make keys from the dense ids of each frame's own vertices, and exchange them."""
        split, executor, shift = numbering.vertices, self.executor, numbering.shift
        frames.frames.take()
        ends = zipped(split.edges.take(), split.numbers.take())
        keys = executor.map("canonical", with_entries, ends, keys_of_places, shift, self.backend)
        count = self.partitions(frames.edge_rows, self.tuning.split_bytes)
        starts = splitters(executor, "canonical", keys, frames.edge_rows, count)
        return self.keep_distinct(Inputs(keys), frames.edge_rows, starts, shift)

    def orient(self, edges: Canonical, numbering: Numbering) -> tuple[Oriented, Any]:
        """Orient each partition over its own vertices; degrees are added up, and ranks fetched, shard by shard."""
        executor, backend, size, shift, stage = self.executor, self.backend, numbering.size, numbering.shift, "orient"
        starts = even(size, self.shards)
        number = sum(executor.gather(executor.map("canonical", len, list(edges.partitions))))
        results = executor.map(stage, with_degrees, edges.partitions.take(), shift, backend)
        ids, local_keys, degrees = executor.transpose(stage, results, 3)
        degree = scatter_entries(executor, stage, ids, degrees, starts)
        degrees.clear()
        # One sort of all vertices by degree gives their ranks, of which each partition fetches those of its vertices.
        sorted_keys, rank, top = _by_weight(executor, stage, degree)
        del degree
        ranks = gather_entries(executor, stage, rank, ids)
        del rank
        results = executor.map(stage, with_entries, zipped(local_keys, ranks), oriented_locally, shift, backend)
        partitions, ids, sources = executor.transpose(stage, results, 3)
        outward = scatter_entries(executor, stage, ids, sources, sorted_keys.starts)
        # The sorted keys hold degrees and ids by rank.
        bits = shift_of(size)
        pairs = zipped(list(sorted_keys.parts), list(outward.parts))
        inward = Sharded(sorted_keys.starts, executor.map(stage, in_degree_of, pairs, top, bits))
        order = Sharded(sorted_keys.starts, executor.map(stage, tie_of, sorted_keys.parts, bits))
        pairs = zipped(list(inward.parts), list(outward.parts))
        wedges = sum(executor.gather([executor.submit(stage, wedges_of, *pair) for pair in pairs]))
        return Oriented(Handles(partitions), order, outward, inward, wedges, number), numbering.names

    def reorder(self, graph: Oriented, order: Order, shift: int) -> Oriented:
        """Relabel each partition by the new ids of its own vertices."""
        if order.ordered:
            return graph
        executor, stage = self.executor, "reorder"
        new_ids = _NEW_IDS[order.ranking](executor, graph, shift)
        pairs = executor.map(stage, localised, graph.partitions.take(), shift, executor.backend)
        ids, local_keys = executor.transpose(stage, pairs, 2)
        local_ids = gather_entries(executor, stage, new_ids, ids)
        partitions = executor.map(stage, with_entries, zipped(local_keys, local_ids), relabel, shift, executor.backend)
        dense, outward, inward = (
            permuted(executor, stage, vector, new_ids) for vector in (graph.order, graph.out_degree, graph.in_degree)
        )
        return Oriented(Handles(partitions), dense, outward, inward, graph.wedges, graph.edges)


def _by_weight(executor: Executor, stage: str, weight: Sharded) -> tuple[Sharded, Sharded, int]:
    """Sort vertices by descending weight, ties by ascending id.

    Returns
    -------
    ascending : Sharded
        `(top - weight) << bits | id`, in the sorted order of the vertices.
    rank : Sharded
        Position of each vertex in that order.
    top : int
        The largest weight.
    """
    top, bits = max(executor.gather(weight.map(executor, stage, largest)), default=0), shift_of(weight.size)
    refuse_beyond(top + 1, bits)
    keys = Sharded(weight.starts, weight.map(executor, stage, weight_keys, top, bits, executor.backend))
    return *places(executor, stage, keys, (top + 1) << bits), top


def ranks(executor: Executor, stage: str, weight: Sharded) -> Sharded:
    """Rank vertices by descending weight, ties by ascending id."""
    if len(weight.parts) == 1:
        return Sharded(weight.starts, [executor.submit(stage, ranks_of, [weight.whole], executor.backend)])
    return _by_weight(executor, stage, weight)[1]


# new ids of the ranks in other orders than by degree


def _by_collective_degree(has_bands: bool, executor: Executor, graph: Oriented, shift: int) -> Sharded:
    size, starts, stage, backend = graph.order.size, graph.order.starts, "reorder", executor.backend
    bits, bands = shift_of(size), (3 if has_bands else 1) * (size + 1)
    refuse_beyond(bands, bits)
    pairs = executor.map(stage, localised, list(graph.partitions), shift, backend)
    ids, local_keys = executor.transpose(stage, pairs, 2)
    # Vertices are visited by descending collective degree; each is numbered by the first visit that points to it.
    inputs = zipped(list(local_keys), gather_entries(executor, stage, graph.out_degree, ids))
    sums = executor.map(stage, with_entries, inputs, collective_degree, shift, backend)
    _, visit, _ = _by_weight(executor, stage, scatter_entries(executor, stage, ids, sums, starts))
    inputs = zipped(local_keys, gather_entries(executor, stage, visit, ids))
    firsts = executor.map(stage, with_entries, inputs, first_visit, size, shift, backend)
    first = scatter_entries(executor, stage, ids, firsts, starts, ("minimum", size))
    triples = zipped(list(graph.out_degree.parts), first.parts, list(graph.order.parts))
    keys = Sharded(starts, executor.map(stage, visit_keys, triples, size, bits, has_bands))
    return places(executor, stage, keys, bands << bits)[1]


_NEW_IDS: dict[Ranking, Callable[[Executor, Oriented, int], Sharded]] = {
    Ranking.COLLECTIVE: partial(_by_collective_degree, False),
    Ranking.BANDED: partial(_by_collective_degree, True),
    Ranking.IN_DEGREE: lambda executor, graph, shift: _by_weight(executor, "reorder", graph.in_degree)[1],
    Ranking.CALLERS_ID: lambda executor, graph, shift: graph.order,
}
"""New id of each rank, by what the new order ranks by."""
