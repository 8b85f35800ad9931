"""LSTC's partition of the vertices into parts with proxies (Tamboli and Jatala, ICPE 2026, section 4.1).

Any disjoint parts of the vertices give exact counts. G_p is induced by the local vertices of part p and their
neighbours, the proxies. `Options.proxies` says how much of G_p a part keeps:

none    all of G_p: no transformation.
lstc    A proxy without incoming edges closes no triangle of a local vertex; it is removed with its edges, repeatedly
        (algorithm 2). In an acyclic graph exactly the vertices reachable from a local vertex remain, so they are
        computed by reachability: bits, one a part, propagate along the edges, for all parts at once.
tight   The other corners of a triangle u → v → w of a local u are among u's targets. So of a proxy's edges only those
        count that lead to a target of some local vertex, and only of proxies that are such targets themselves. One pass
        over the edges finds them, and every edge that a part keeps is read by the count.

A part thus has the vertices `tails`, and the edges from these to its `heads`: bit masks over all vertices. Triangles
are counted from local vertices alone: a count must stream the wedges u → v → w in G_p of every local u. Their number
follows from degrees, before any block is built.

Bits of all parts move in one pass over the edges. What depends on one part takes a pass for each, so that no more than
one part's degrees and numbers are in memory: its degrees, whose sums are its numbers of edges, and its keys.
`PartEdges` of the backend makes these passes.

Vectors of all vertices that exceed one process are sharded: each partition of edges, as a small graph over its own
vertices, fetches their entries (see `planes.sharded`). The functions and results are the same.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.executors.base import Executor, tree
from dasktc.options import Options
from dasktc.pipeline.planes.base import Plane
from dasktc.pipeline.planes.exchange import Inputs, splitters
from dasktc.pipeline.planes.graph import Oriented
from dasktc.pipeline.planes.vectors import Sharded, gather_entries, scatter_entries, zipped
from dasktc.pipeline.stages import lstc
from dasktc.pipeline.stages.orient import total
from dasktc.pipeline.stages.shards import localised, logical_or, with_entries
from dasktc.pipeline.vertex_assignment import assigned
from dasktc.planning.grid import Shape
from dasktc.planning.placement import Where
from dasktc.planning.plan import Proxies
from dasktc.planning.schemes import Block, Sizes

__all__ = ["ProxyPartition", "part_vertices"]


class ProxyPartition(NamedTuple):
    """A partition with proxies: its parts, and the sizes of its blocks before they are built."""

    own: Sharded
    """Sharded of int64, shape (V,). The part that each vertex is local to."""
    tails: Sharded
    heads: Sharded
    """Sharded of int64, shape (V,). Bit masks of the parts that contain the vertex, and of the parts with edges to it:
    an edge is in the parts of both its source's tails and its target's heads."""
    sizes: Sizes
    proxies: tuple[Proxies, ...]
    wedges: int
    """Wedges that all counting tasks together must stream."""
    shape: Shape
    members: list[Any]
    """List of handles of arrays of int32. The vertices of each part, ascending."""
    local: list[Any]
    """List of handles of arrays of bool. Which of these vertices are local."""

    def numbering(self, side: int) -> Any:
        """Handle of the ids of a part's vertices."""
        return self.members[side]

    def build(self, plane: Plane, graph: Oriented, where: Where) -> dict[Block, Any]:
        """Build each part's two blocks: (part, 0), rows of local vertices, and (part, 1), all rows."""
        blocks, shift, columns, parts = {}, self.shape.shift, self.sizes.edges, len(self.members)
        executor = plane.executor
        edges = _Edges.of(executor, graph, parts, shift, "blocks")
        graph.partitions.take()
        shard_counts = _held_in_shards(edges, self.tails)
        for part, members in enumerate(self.members):
            firsts = [0, *accumulate(counts[part] for counts in shard_counts)]
            number = Sharded(
                self.tails.starts,
                [
                    executor.submit("blocks", lstc.numbers_of, *arguments, first, part, executor.backend)
                    for *arguments, first in zip(self.tails.parts, self.heads.parts, firsts, strict=False)
                ],
            )
            part_keys = edges.map(lstc.keys_in_part, [number])
            edge_count, bound = int(columns[part, 1]), 1 << 2 * shift
            cuts = splitters(executor, "blocks", part_keys, edge_count, plane.partitions(edge_count))
            borders = [0, *sorted({cut >> shift for cut in cuts} - {0}), int(self.sizes.rows[part, 1])]
            ranges = plane.exchange("blocks", Inputs(part_keys), [row << shift for row in borders[1:-1]], bound)
            home = where.get((part, 1)) if len(self.members) >= plane.threads else None  # else slabs on all workers
            slabs = [
                executor.submit(
                    "blocks", lstc.slabs_of_part, keys, span, self.local[part], shift, executor.backend, prefer=home
                )
                for keys, span in zip(ranges, pairwise(borders), strict=True)
            ]
            for place, half in zip([(part, 0), (part, 1)], executor.transpose("blocks", slabs, 2), strict=True):
                arguments = (half, place, members, self.shape.ordered, executor.backend, int(columns[place]))
                blocks[place] = executor.submit("blocks", lstc.block_of_part, *arguments, prefer=where.get(place))
        return blocks


class _Edges(NamedTuple):
    """Partitions of the oriented edges, with stage calls over all of them that take vertex vectors."""

    executor: Executor
    partitions: list[Any]
    """List of handles of arrays of int64. Keys; where vectors are sharded, over the positions of their ends in
    `ids`."""
    ids: list[Any]
    """List of handles of arrays of int32. The distinct vertices of each partition, ascending; empty where vectors are
    whole."""
    parts: int
    shift: int
    stage: str = "plan"

    @classmethod
    def of(cls, executor: Executor, graph: Oriented, parts: int, shift: int, stage: str = "plan") -> _Edges:
        """Take the edges of a graph; where vectors are sharded, relabel each partition to its own vertices."""
        partitions, ids = list(graph.partitions), []
        if len(graph.order.starts) > 2:
            ids, partitions = executor.transpose(
                stage, executor.map(stage, localised, partitions, shift, executor.backend), 2
            )
        return cls(executor, partitions, ids, parts, shift, stage)

    def map(self, function: Any, vectors: list[Sharded], *given: Any) -> list[Any]:
        """Call `function(keys, *entries of vectors, *given, parts, shift, backend)` for each partition."""
        executor, constants = self.executor, (*given, self.parts, self.shift, self.executor.backend)
        if not self.ids:
            return executor.map(
                self.stage, function, list(self.partitions), *(vector.whole for vector in vectors), *constants
            )
        entries = [gather_entries(executor, self.stage, vector, self.ids) for vector in vectors]
        return executor.map(self.stage, with_entries, zipped(list(self.partitions), *entries), function, *constants)

    def masks(self, function: Any, *vectors: Sharded) -> Sharded:
        """OR the masks that `function` returns for each partition's vertices into the last of `vectors`."""
        executor, masks = self.executor, vectors[-1]
        part_masks = self.map(function, [*vectors])
        if not self.ids:
            return Sharded(masks.starts, [tree(executor, self.stage, logical_or, [*part_masks, *masks.parts])])
        updates = scatter_entries(executor, self.stage, list(self.ids), part_masks, masks.starts, ("bitwise_or", 0))
        return Sharded(masks.starts, executor.map(self.stage, logical_or, zipped(list(masks.parts), updates.parts)))

    def inside(self, bits: Sharded) -> list[int]:
        """Number of edges in each part that has the vertices with its bit, and all edges among them."""
        return [sum(column) for column in zip(*self.executor.gather(self.map(lstc.inside, [bits])), strict=True)]

    def part(self, own: Sharded, tails: Sharded, heads: Sharded, part: int) -> tuple[int, int, int]:
        """Number of a part's edges from local vertices, of all its edges, and of its wedges from local vertices."""
        executor = self.executor
        vectors = zip(tails.parts, heads.parts, own.parts, strict=True)
        roles = [executor.submit(self.stage, lstc.roles_of, *arrays, part) for arrays in vectors]
        degrees = executor.transpose(self.stage, self.map(lstc.part_degrees, [Sharded(own.starts, roles)]), 2)
        if not self.ids:
            degree_sums = [[tree(executor, self.stage, total, arrays) for arrays in degrees]]
        else:
            sums = [scatter_entries(executor, self.stage, list(self.ids), arrays, own.starts) for arrays in degrees]
            degree_sums = zipped(*(vector.parts for vector in sums))
        counts = executor.gather([executor.submit(self.stage, lstc.counts_of, *pair) for pair in degree_sums])
        local_edges, edges, wedges = map(sum, zip(*counts, strict=True))
        return local_edges, edges, wedges


def part_vertices(plane: Plane, graph: Oriented, parts: int, options: Options, shape: Shape) -> ProxyPartition:
    """Assign the vertices to parts, and determine which proxies and edges each part keeps.

    Parameters
    ----------
    plane : Plane
    graph : Oriented
    parts : int
        n, at most 64.
    options : Options
        `assign` and `seed` choose the part that a vertex is local to, `proxies` what the parts keep.
    shape : Shape

    Raises
    ------
    InputError
        METIS is asked for and not installed, or the graph is too large for it; a file of parts is refused.
    """
    executor = plane.executor
    edges = _Edges.of(executor, graph, parts, shape.shift)
    assignment = assigned(plane, graph, options, parts, shape)
    local_bits = Sharded(assignment.starts, assignment.map(executor, "plan", lstc.own_bits, executor.backend))
    induced_bits = edges.masks(lstc.neighbours, local_bits)
    tails, heads = _kept(edges, options.proxies, local_bits, induced_bits)
    vertex_counts = [list(map(sum, zip(*_held_in_shards(edges, bits), strict=True))) for bits in (induced_bits, tails)]
    induced_edges = edges.inside(induced_bits)
    sums = [edges.part(assignment, tails, heads, part) for part in range(parts)]
    local_edges, kept_edges, wedges = zip(*sums, strict=True)
    rows = np.repeat(np.array(vertex_counts[1], dtype="int64"), 2).reshape(parts, 2)
    sizes = Sizes(np.array([local_edges, kept_edges], dtype="int64").T.copy(), rows, rows)
    proxies = tuple(Proxies(*counts) for counts in zip(*vertex_counts, induced_edges, kept_edges, strict=True))
    members, flags = zip(*(_members(executor, assignment, tails, part) for part in range(parts)), strict=True)
    return ProxyPartition(assignment, tails, heads, sizes, proxies, sum(wedges), shape, [*members], [*flags])


def _kept(edges: _Edges, kind: str, local_bits: Sharded, induced_bits: Sharded) -> tuple[Sharded, Sharded]:
    """Tails and heads of what the parts keep, from the bits of local vertices and of G_p."""
    if kind == "none":
        return induced_bits, induced_bits
    if kind == "tight":
        zero_bits = Sharded(local_bits.starts, local_bits.map(edges.executor, edges.stage, lstc.no_bits))
        heads = edges.masks(lstc.targets, local_bits, zero_bits)
        tails = edges.executor.map(edges.stage, logical_or, zipped(list(local_bits.parts), list(heads.parts)))
        return Sharded(local_bits.starts, tails), heads
    bits, count = local_bits, -1
    while (bit_count := sum(map(sum, _held_in_shards(edges, bits)))) > count:
        count, bits = bit_count, edges.masks(lstc.reached_bits, induced_bits, bits)
    return bits, bits


# bit masks of the parts that contain a vertex


def _held_in_shards(edges: _Edges, bits: Sharded) -> list[list[int]]:
    """Number of set bits of each part in each shard."""
    counts: list[list[int]] = edges.executor.gather(bits.map(edges.executor, edges.stage, lstc.held_from, edges.parts))
    return counts


def _members(executor: Executor, assignment: Sharded, tails: Sharded, part: int) -> tuple[Any, Any]:
    """Handles of a part's vertices, and of the flags of those that are local."""
    pairs = [
        executor.submit("plan", lstc.members_of, bits, shard_parts, first, part, executor.backend)
        for bits, shard_parts, first in zip(tails.parts, assignment.parts, tails.starts, strict=False)
    ]
    members, flags = executor.transpose("plan", pairs, 2)
    if len(members) == 1:
        return members[0], flags[0]
    return tuple(executor.submit("plan", lstc.together, arrays, executor.backend) for arrays in (members, flags))
