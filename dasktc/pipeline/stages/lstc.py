"""LSTC's parts with proxies: bit masks of parts over the vertices, and the keys and rows of a part."""

from __future__ import annotations

from typing import Any

from dasktc.backends import Backend
from dasktc.backends.csr import OrientedCSR
from dasktc.backends.part_edges import HEAD, LOCAL, OUTSIDE, TAIL
from dasktc.pipeline.stages.blocks import check_edges, stacked
from dasktc.pipeline.stages.orient import wedges_of
from dasktc.planning.schemes import Block

__all__ = [
    "block_of_part", "counts_of", "held_from", "inside", "keys_in_part", "members_of", "neighbours", "no_bits",
    "numbers_of", "own_bits", "part_degrees", "reached_bits", "roles_of", "slabs_of_part", "targets", "together",
]  # fmt: skip

Array = Any


def _bit(part: int) -> int:
    """The bit of a part, as a signed 64-bit integer."""
    return (1 << part) - (1 << 64) * (part == 63)


def own_bits(own: Array, first: int, backend: Backend) -> Array:
    """The bit of each vertex's part."""
    xp = backend.array
    return xp.left_shift(xp.int64(1), own)


def no_bits(bits: Array, first: int) -> Array:
    """No bits, for as many vertices."""
    return bits & 0


def neighbours(keys: Array, local: Array, parts: int, shift: int, backend: Backend) -> Array:
    """Bit mask for each vertex: the parts that it is local to or has a neighbour in."""
    induced_bits = local.copy()
    backend.part_edges.neighbours(keys, shift, local, induced_bits, parts)
    return induced_bits


def targets(keys: Array, local: Array, nothing: Array, parts: int, shift: int, backend: Backend) -> Array:
    """Bit mask for each vertex: the parts in which a local vertex has an edge to it."""
    heads = nothing.copy()
    backend.part_edges.targets(keys, shift, local, heads, parts)
    return heads


def reached_bits(keys: Array, induced: Array, kept: Array, parts: int, shift: int, backend: Backend) -> Array:
    """Propagate bits along the edges, at least one step: a target in G_p gets bit p of its source."""
    bits = kept.copy()
    backend.part_edges.reached(keys, shift, induced, bits, parts)
    return bits


def held_from(bits: Array, first: int, parts: int) -> list[int]:
    """For each part, the number of bit masks of a shard that have its bit set."""
    return [int(((bits >> part) & 1).sum()) for part in range(parts)]


def members_of(bits: Array, own: Array, first: int, part: int, backend: Backend) -> list[Array]:
    """Ids of a shard's vertices that are in a part, and whether each is local to it."""
    places = backend.array.flatnonzero(bits & _bit(part))
    return [(places + first).astype("int32"), own.take(places) == part]


def together(arrays: list[Array], backend: Backend) -> Array:
    """Concatenate arrays."""
    return backend.array.concatenate(arrays)


def inside(keys: Array, bits: Array, parts: int, shift: int, backend: Backend) -> list[int]:
    """Number of edges inside each part."""
    return backend.part_edges.inside(keys, shift, bits, parts)


def roles_of(tails: Array, heads: Array, own: Array, part: int) -> Array:
    """What each vertex is in a part: flags, in one byte."""
    roles = (tails >> part & 1).astype("uint8") * TAIL
    roles |= (heads >> part & 1).astype("uint8") * HEAD
    roles |= (own == part).astype("uint8") * LOCAL
    return roles


def part_degrees(keys: Array, roles: Array, parts: int, shift: int, backend: Backend) -> list[Array]:
    """In-degrees from a part's local vertices, and out-degrees within the part."""
    return [*backend.part_edges.degrees(keys, shift, roles)]  # a list: `transpose` takes its entries apart


def counts_of(inward: Array, outward: Array) -> tuple[int, int, int]:
    """Number of edges from local vertices, of all edges, and of wedges, from a part's degrees."""
    return int(inward.sum()), int(outward.sum()), wedges_of(inward, outward)


def numbers_of(tails: Array, heads: Array, first: int, part: int, backend: Backend) -> Array:
    """Numbers of a shard's vertices in the part, as `PartEdges.numbered` takes them; its first vertex is `first`."""
    xp, bit = backend.array, _bit(part)
    mask = (tails & bit) != 0
    number = (first - 1 + xp.cumsum(mask, dtype="int64")).astype("int32")
    return xp.where((heads & bit) != 0, number, xp.where(mask, -2 - number, OUTSIDE)).astype("int32", copy=False)


def keys_in_part(keys: Array, number: Array, parts: int, shift: int, backend: Backend) -> Array:
    """Keys of a part's edges over the numbers of their ends."""
    return backend.part_edges.numbered(keys, shift, number)


def slabs_of_part(
    slices: list[Array], rows: tuple[int, int], local: Array, shift: int, backend: Backend
) -> list[tuple[Array, Array]]:
    """Offsets and columns of a range of a part's rows, twice: the edges of local vertices, and all edges."""
    xp, (start, end) = backend.array, rows
    keys = backend.merge(slices, 1 << 2 * shift, 0)
    offsets, columns = backend.edges.rows(keys, start << shift, end - start, 1 << shift)
    local = local[start:end]
    local_offsets = xp.concatenate([xp.zeros(1, dtype="int64"), xp.cumsum(xp.where(local, xp.diff(offsets), 0))])
    index = backend.part_edges.columns(keys, shift, start, local, int(local_offsets[-1]))
    return [(local_offsets, index), (offsets, columns)]


def block_of_part(
    slabs: list[Any], place: Block, members: Array, ordered: bool, backend: Backend, edges: int
) -> OrientedCSR:
    """Assemble a part's block from its slabs, and check its number of edges."""
    offsets, columns = stacked(slabs, backend)
    block = OrientedCSR(offsets, columns, ordered=ordered, place=place, members=members)
    check_edges(block, edges)
    return block
