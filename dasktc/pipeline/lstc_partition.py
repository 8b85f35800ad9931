"""LSTC's partition of the vertices into parts with proxies (Tamboli and Jatala, ICPE 2026, section 4.1).

Any disjoint parts of the vertices give exact counts. G_p is induced by the local vertices of part p and their
neighbours, the proxies. A proxy without incoming edges closes no triangle of a local vertex; it is removed with its
edges, repeatedly (algorithm 2). In an acyclic graph exactly the vertices remain that are reachable from a local
vertex, so they are computed by reachability: bits, one a part, propagate along the edges, for all parts at once.

Triangles are counted from local vertices alone: a count must stream the wedges u → v → w in G_p of the local u, whose
number follows from degrees before any block is built.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import OrientedCSR
from dasktc.executors.base import Executor, tree
from dasktc.options import Options
from dasktc.pipeline.build_blocks import check_edges, stacked
from dasktc.pipeline.canonicalize import partition_count
from dasktc.pipeline.edge_keys import ends_of, merge, unpack
from dasktc.pipeline.orient import Oriented, total, wedges_of
from dasktc.pipeline.sharded.vectors import either
from dasktc.pipeline.shuffle import Inputs, exchange, splitters
from dasktc.pipeline.vertex_assignment import assigned
from dasktc.planning.grid import Shape
from dasktc.planning.placement import Where
from dasktc.planning.plan import Proxies
from dasktc.planning.schemes import Block, Sizes

__all__ = ["ProxyPartition", "part_vertices"]

Array = Any


class ProxyPartition(NamedTuple):
    """A partition with proxies: its parts, and the sizes of its blocks before they are built.

    Attributes
    ----------
    own, kept : handles of arrays of int64 and uint64, shape (V,)
        The part that each vertex is local to, and a bit mask of the parts that it is in, locally or as a proxy.
    sizes : Sizes
    proxies : tuple of Proxies
    wedges : int
        Wedges that the counting tasks must stream, in all.
    shape : Shape
    members : list of handles of arrays of int32
        The vertices of each part, ascending.
    """

    own: Any
    kept: Any
    sizes: Sizes
    proxies: tuple[Proxies, ...]
    wedges: int
    shape: Shape
    members: list[Any]

    @property
    def shift(self) -> int:
        """Bits an id takes in an edge key."""
        return self.shape.shift

    def numbering(self, side: int) -> Any:
        """Handle of the ids of a part's vertices."""
        return self.members[side]

    def build(self, executor: Executor, graph: Oriented, where: Where) -> dict[Block, Any]:
        """Build each part's two blocks: (part, 0), rows of local vertices, and (part, 1), all rows."""
        return _build(executor, graph, self, where)


class _Edges(NamedTuple):
    """The oriented edges in partitions, and stage calls over all of them."""

    executor: Executor
    partitions: list[Any]
    parts: int
    shift: int

    def map(self, function: Any, *given: Any) -> list[Any]:
        """Call `function(keys, *given, parts, shift, backend)` for each partition."""
        return self.executor.map(
            "plan", function, list(self.partitions), *given, self.parts, self.shift, self.executor.backend
        )

    def counts(self, function: Any, *given: Any) -> list[int]:
        """Call `function` for each partition, and add up the counts that it returns by part."""
        return [sum(column) for column in zip(*self.executor.gather(self.map(function, *given)), strict=True)]


def part_vertices(executor: Executor, graph: Oriented, parts: int, options: Options, shape: Shape) -> ProxyPartition:
    """Assign the vertices to parts, determine each part's proxies, and remove those that close no triangle.

    Parameters
    ----------
    executor : Executor
    graph : Oriented
    parts : int
        n, at most 64.
    options : Options
        Its `assign` and `seed` say which part a vertex is local to.
    shape : Shape

    Raises
    ------
    InputError
        METIS is asked for and not installed, or the graph is too large for it.
    """
    edges = _Edges(executor, graph.partitions, parts, shape.shift)
    own = assigned(executor, graph.partitions, options.assign, parts, options.seed, shape)
    induced = tree(executor, "plan", either, edges.map(_neighbours, own))
    kept = _transformed(edges, own, induced)
    vertices_of = [executor.gather([executor.submit("plan", _held, bits, parts)])[0] for bits in (induced, kept)]
    edges_of = [edges.counts(_inside, bits) for bits in (induced, kept)]
    local, wedges = edges.counts(_local, own, kept), 0
    for part in range(parts):
        degrees = tree(executor, "plan", total, edges.map(_degrees, own, kept, part))
        wedges += executor.gather([executor.submit("plan", _wedges, degrees)])[0]
    rows = np.repeat(np.array(vertices_of[1], dtype="int64"), 2).reshape(parts, 2)
    sizes = Sizes(np.array([local, edges_of[1]], dtype="int64").T.copy(), rows, rows)
    proxies = tuple(Proxies(*counts) for counts in zip(*vertices_of, *edges_of, strict=True))
    members = [executor.submit("plan", _members, kept, part, executor.backend) for part in range(parts)]
    return ProxyPartition(own, kept, sizes, proxies, wedges, shape, members)


# bit masks: the parts that a vertex is in


def _bits(own: Array, backend: Backend) -> Array:
    xp = backend.array
    return xp.left_shift(xp.uint64(1), own.astype("uint64"))


def _neighbours(keys: Array, own: Array, parts: int, shift: int, backend: Backend) -> Array:
    """Bit mask, for each vertex, of the parts that it is local to or has a neighbour in."""
    induced = _bits(own, backend)
    bits = induced.copy()
    for u, v in ends_of(keys, shift, backend):
        _or_into(induced, v, bits.take(u), parts)
        _or_into(induced, u, bits.take(v), parts)
    return induced


def _or_into(membership: Array, vertices: Array, bits: Array, parts: int) -> None:
    """OR bits into the entries of vertices, which may repeat: bit by bit, so that repeated writes are equal."""
    for part in range(parts):
        bit = bits.dtype.type(1 << part)
        given = vertices[(bits & bit) != 0]
        membership[given] = membership.take(given) | bit


def _transformed(edges: _Edges, own: Any, induced: Any) -> Any:
    """Compute the masks that algorithm 2 leaves: bits of local vertices, propagated along G_p to a fixed point."""
    executor, kept, before = edges.executor, edges.executor.submit("plan", _bits, own, edges.executor.backend), -1
    while (reached := sum(executor.gather([executor.submit("plan", _held, kept, edges.parts)])[0])) > before:
        before = reached
        kept = tree(executor, "plan", either, edges.map(_reached, induced, kept))
    return kept


def _reached(keys: Array, induced: Array, kept: Array, parts: int, shift: int, backend: Backend) -> Array:
    """Propagate bits along edges by one step: a target in G_p gets bit p of its source."""
    reached = kept.copy()
    for u, v in ends_of(keys, shift, backend):
        _or_into(reached, v, kept.take(u) & induced.take(v) & ~kept.take(v), parts)
    return reached


def _held(bits: Array, parts: int) -> list[int]:
    """Count the set bits of each part."""
    return [int(((bits >> bits.dtype.type(part)) & bits.dtype.type(1)).sum()) for part in range(parts)]


def _members(bits: Array, part: int, backend: Backend) -> Array:
    return backend.array.flatnonzero(bits & bits.dtype.type(1 << part)).astype("int32")


# edges of the parts


def _inside(keys: Array, bits: Array, parts: int, shift: int, backend: Backend) -> list[int]:
    """Count the edges of each part."""
    return _counted(keys, lambda u, v: bits.take(u) & bits.take(v), parts, shift, backend)


def _local(keys: Array, own: Array, bits: Array, parts: int, shift: int, backend: Backend) -> list[int]:
    """Count the edges of each part whose source is local."""
    return _counted(keys, lambda u, v: _bits(own.take(u), backend) & bits.take(v), parts, shift, backend)


def _counted(keys: Array, bits_of: Any, parts: int, shift: int, backend: Backend) -> list[int]:
    counts = [0] * parts
    for u, v in ends_of(keys, shift, backend):
        counts = [a + b for a, b in zip(counts, _held(bits_of(u, v), parts), strict=True)]
    return counts


def _degrees(keys: Array, own: Array, bits: Array, part: int, parts: int, shift: int, backend: Backend) -> Array:
    """Edges of a part to each vertex from local ones, and from each vertex: int64, shape (2, V)."""
    xp, bit = backend.array, bits.dtype.type(1 << part)
    degrees = xp.zeros((2, len(own)), dtype="uint64")  # CuPy's add.at takes no int64
    for u, v in ends_of(keys, shift, backend):
        inside = (bits.take(u) & bits.take(v) & bit) != 0
        u, v = u[inside], v[inside]
        xp.add.at(degrees[0], v[own.take(u) == part], xp.uint64(1))  # NumPy is slow with a plain 1
        xp.add.at(degrees[1], u, xp.uint64(1))
    return degrees.view("int64")


def _wedges(degrees: Array) -> int:
    return wedges_of(degrees[0], degrees[1])


# blocks


def _build(executor: Executor, graph: Oriented, parted: ProxyPartition, where: Where) -> dict[Block, Any]:
    """Build each part's two blocks: the edges of its local vertices, and all of its edges; empties the partitions."""
    built, shift, columns = {}, parted.shape.shift, parted.sizes.edges
    for part, members in enumerate(parted.members):
        numbered = executor.map("blocks", _numbered, list(graph.partitions), parted.kept, part, shift, executor.backend)
        held, bound = int(columns[part, 1]), 1 << 2 * shift
        cuts = splitters(executor, "blocks", numbered, held, partition_count(held, executor))
        rows = [0, *sorted({cut >> shift for cut in cuts} - {0}), int(parted.sizes.rows[part, 1])]
        ranges = exchange(executor, "blocks", Inputs(numbered), [row << shift for row in rows[1:-1]], bound)
        at = where.get((part, 1)) if len(parted.members) >= executor.workers else None  # else slabs on all workers
        slabs = [
            executor.submit("blocks", _slab, keys, span, parted.own, members, part, shift, executor.backend, prefer=at)
            for keys, span in zip(ranges, pairwise(rows), strict=True)
        ]
        for place, half in zip([(part, 0), (part, 1)], executor.transpose("blocks", slabs, 2), strict=True):
            given = (half, place, members, parted.shape.ordered, executor.backend, int(columns[place]))
            built[place] = executor.submit("blocks", _block, *given, prefer=where.get(place))
    graph.partitions.clear()
    return built


def _numbered(keys: Array, bits: Array, part: int, shift: int, backend: Backend) -> Array:
    """Keys of a part's edges, over the positions of their ends among the part's vertices."""
    xp, bit = backend.array, bits.dtype.type(1 << part)
    number = xp.cumsum((bits & bit) != 0, dtype="int64") - 1
    numbered = []
    for u, v in ends_of(keys, shift, backend):
        inside = (bits.take(u) & bits.take(v) & bit) != 0
        numbered.append(number.take(u[inside]) << shift | number.take(v[inside]))
    return xp.concatenate(numbered) if numbered else keys.copy()


def _slab(
    slices: list[Array], rows: tuple[int, int], own: Array, members: Array, part: int, shift: int, backend: Backend
) -> list[tuple[Array, Array]]:
    """Offsets and columns of a range of a part's rows: the edges of local vertices, and all edges."""
    xp, chunk, (start, end) = backend.array, backend.chunk, rows
    keys = merge(slices, 1 << 2 * shift, backend)
    offsets = keys.searchsorted(xp.arange(start, end + 1, dtype="int64") << shift)
    columns = xp.empty(len(keys), dtype="int32")
    local, index = own.take(members[start:end]) == part, []
    for at in range(0, len(keys), chunk):
        source, target = unpack(keys[at : at + chunk], shift)
        columns[at : at + chunk] = target
        index.append(columns[at : at + chunk][local.take(source - start)])
    kept = xp.concatenate([xp.zeros(1, dtype="int64"), xp.cumsum(xp.where(local, xp.diff(offsets), 0))])
    return [(kept, xp.concatenate([columns[:0], *index])), (offsets, columns)]


def _block(slabs: list[Any], place: Block, members: Array, ordered: bool, backend: Backend, edges: int) -> OrientedCSR:
    offsets, columns = stacked(slabs, backend)
    block = OrientedCSR(offsets, columns, ordered=ordered, place=place, members=members)
    check_edges(block, edges)
    return block
