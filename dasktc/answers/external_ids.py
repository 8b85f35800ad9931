"""Replaces ids by the caller's ids if vertices are in shards: each partition fetches the ids that it needs.

This is done on the host: device vectors are copied there, shard by shard, because the answers end there anyway.

Triangles by vertex are sent to the shards of the caller's ids, and each shard becomes a frame. A partition of edges or
triangles collects its distinct vertices in ascending order and fetches their dense ids, and then the caller's ids.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from operator import getitem
from typing import Any

import numpy as np

from dasktc.backends.csr import on_host
from dasktc.executors.base import CPU, Executor
from dasktc.pipeline.planes.vectors import Sharded, gather_entries, permuted, vectors_on_host, zipped
from dasktc.pipeline.stages.edge_keys import pack, unpack
from dasktc.pipeline.stages.shards import localised

__all__ = [
    "SHIFT", "at_ends", "distinct_places", "edges_by_dense_id", "in_own_ids", "in_shards", "localised_edges",
    "shares_of", "values_in_shards",
]  # fmt: skip

Array = Any
SHIFT = 32
"""Bits of an id in the edge keys of this module."""


# by vertex


def shares_of(
    executor: Executor, sides: list[Any], numberings: list[Any], starts: tuple[int, ...]
) -> list[tuple[list[Any], list[Any]]]:
    """Cut vectors over every s-th vertex, or over listed vertices, into their shares of the shards.

    A numbering is the first id and the stride of a vector, or the handle of its ids, ascending; `starts` are the first
    ids of the shards. Returns for each shard the parts of the vectors, and the first position and stride of each there,
    or the handle of its positions.
    """
    shares = []
    for first, end in pairwise(starts):
        parts, places = list[Any](), list[Any]()
        for side, numbering in zip(sides, numberings, strict=True):
            if isinstance(numbering, tuple):
                id, stride = numbering
                start, stop = max(0, -((id - first) // stride)), max(0, -((id - end) // stride))
                parts.append(executor.submit("triangles", share, side, start, stop))
                places.append((id + start * stride - first, stride))
            else:
                pair = executor.submit("triangles", _share_of_named, side, numbering, first, end)
                parts.append(executor.submit("triangles", getitem, pair, 0))
                places.append(executor.submit("triangles", getitem, pair, 1))
        shares.append((parts, places))
    return shares


def share(vector: Array, start: int, stop: int) -> Array:
    """Copy a slice of a vector to the host."""
    return on_host(vector[start:stop])


def in_shards(executor: Executor, stage: str, vector: Any, starts: tuple[int, ...]) -> Sharded:
    """Cut the handle of a whole vector into shards; a single one stays where it is."""
    if len(starts) == 2:
        return Sharded(starts, [vector])
    return Sharded(starts, [executor.submit(stage, share, vector, *span) for span in pairwise(starts)])


def _share_of_named(vector: Array, ids: Array, first: int, end: int) -> list[Array]:
    """Select the ids in [first, end): their entries, and their offsets from `first`."""
    host_ids = on_host(ids)
    start, stop = (int(host_ids.searchsorted(bound)) for bound in (first, end))
    return [on_host(vector[start:stop]), host_ids[start:stop] - first]


def values_in_shards(
    executor: Executor,
    vectors: list[Sharded],
    order: Sharded,
    ids: Sharded,
    columns: dict[str, Callable[..., Array]],
) -> Sharded:
    """Compute values from vectors and send them to the shards of the caller's ids.

    Parameters
    ----------
    executor : Executor
    vectors : list of Sharded
        Integer vectors in the shards of `order`.
    order : Sharded
        The dense id of each entry.
    ids : Sharded
        The caller's ids.
    columns : dict of str to callable (*arrays) -> array

    Returns
    -------
    Sharded
        Each shard is the list of its columns' arrays.
    """
    executor, [order, *vectors] = vectors_on_host(executor, "vertex-frames", order, *vectors)
    shards = [permuted(executor, "vertex-frames", vector, order, ids.starts) for vector in vectors]
    parts = zip(*(vector.parts for vector in shards), strict=True)
    return Sharded(ids.starts, [executor.submit("vertex-frames", _computed, columns, *shard) for shard in parts])


def _computed(columns: dict[str, Callable[..., Array]], *vectors: Array) -> list[Array]:
    return [function(*vectors) for function in columns.values()]


# parts with ids of their own


def in_own_ids(
    executor: Executor, stage: str, parts: list[Any], localise: Callable[[Any], list[Any]], *vectors: Sharded
) -> tuple[list[Any], list[list[Any]]]:
    """Relabel the ids in parts to positions among those that occur in each, and gather the entries of vectors there.

    Parameters
    ----------
    executor : Executor
    stage : str
    parts : list of handles
        Emptied.
    localise : callable (part) -> list of two
        Returns the ids that occur, ascending, and the part over positions among these.
    *vectors : Sharded

    Returns
    -------
    parts : list of handles
    entries : list of lists of lists of handles of arrays
        For each vector and part the entries of the ids that occur there, from `gather_entries`, on the host.
    """
    executor, host_vectors = vectors_on_host(executor, stage, *vectors)
    ids, local_parts = executor.transpose(stage, executor.map(stage, localise, parts), 2)
    return local_parts, [gather_entries(executor, stage, vector, ids) for vector in host_vectors]


def localised_edges(part: Array) -> list[Array]:
    """Relabel edges, keys above numbers, for `in_own_ids`."""
    ids, local_keys = localised(part[0], SHIFT, CPU)
    return [ids, np.stack([local_keys, part[1]])]


def distinct_places(ids: Array) -> list[Array]:
    """Return the distinct ids, ascending, and the position of each id among them."""
    distinct_ids, place = np.unique(ids, return_inverse=True)
    return [distinct_ids, place.reshape(ids.shape)]


def edges_by_dense_id(executor: Executor, slices: list[Any], order: Sharded, oriented: bool) -> list[Any]:
    """Relabel slices of edges (keys above numbers) from the ids of the order to dense ids; empties the list.

    With `oriented` the ends of an edge keep their order; otherwise the smaller id is put first again.
    """
    local_edges, (dense,) = in_own_ids(executor, "edges", slices, localised_edges, order)
    return executor.map("edges", _renamed, zipped(local_edges, dense), oriented)


def _renamed(parts: list[Any], is_oriented: bool) -> Array:
    (local_keys, support), ids = parts
    u, v = (np.concatenate(ids).take(end) for end in unpack(local_keys, SHIFT))
    if not is_oriented:
        u, v = np.minimum(u, v), np.maximum(u, v)
    return np.stack([pack(u, v, SHIFT), support])


def at_ends(
    executor: Executor, parts: list[Any], vector: Sharded, function: Callable[[Array, Array, Array], Any]
) -> list[Any]:
    """Call `function(numbers, of_u, of_v)` for parts of edges, keys over dense ids above numbers; empties the list.

    It is given the entries of `vector`, by dense id, at both ends of the edges.
    """
    if len(vector.parts) == 1:
        return executor.map("edges", _at_ends_of_whole, parts, vector.whole, function)
    local_edges, (entries,) = in_own_ids(executor, "edges", parts, localised_edges, vector)
    return executor.map("edges", _at_ends, zipped(local_edges, entries), function)


def _at_ends_of_whole(part: Array, vector: Array, function: Callable[[Array, Array, Array], Any]) -> Any:
    keys, numbers = part[0], part[1]
    entries = on_host(vector) if isinstance(keys, np.ndarray) else vector
    return function(numbers, *(entries.take(ends) for ends in unpack(keys, SHIFT)))


def _at_ends(parts: list[Any], function: Callable[[Array, Array, Array], Any]) -> Any:
    local_edges, entries = parts
    return _at_ends_of_whole(local_edges, np.concatenate(entries), function)
