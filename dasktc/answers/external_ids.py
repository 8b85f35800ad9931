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

from dasktc.answers.frames import column, frame_of
from dasktc.backends.csr import on_host
from dasktc.executors.base import CPU, Executor
from dasktc.pipeline.planes.vectors import Sharded, gather_entries, permuted, vectors_on_host, zipped
from dasktc.pipeline.stages.edge_keys import pack, unpack
from dasktc.pipeline.stages.shards import localised

__all__ = [
    "SHIFT", "at_ends", "edges_by_dense_id", "frames_of_edges", "frames_of_pairs", "in_shards", "list_frame",
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


# by edge


def edges_by_dense_id(executor: Executor, slices: list[Any], order: Sharded, oriented: bool) -> list[Any]:
    """Relabel slices of edges (keys above numbers) from the ids of the order to dense ids; empties the list.

    With `oriented` the ends of an edge keep their order; otherwise the smaller id is put first again.
    """
    executor, [order] = vectors_on_host(executor, "edges", order)
    ids, local_edges = executor.transpose("edges", executor.map("edges", _with_own, slices), 2)
    return executor.map("edges", _renamed, zipped(local_edges, gather_entries(executor, "edges", order, ids)), oriented)


def frames_of_edges(
    executor: Executor,
    parts: list[Any],
    ids: Sharded,
    name: str | None,
    firsts: list[int],
    library: Any,
    function: Callable[[Array, Array, Array], Array] | None = None,
    vector: Sharded | None = None,
) -> list[Any]:
    """Make ascending frames of edges by the caller's ids from keys over dense ids above numbers; empties the list.

    Without a name the frames have only the edges. `firsts` has the number of the first row of each frame. With a
    function, frames have its results: of the numbers, and of the entries of `vector` at both ends.
    """
    executor, vectors = vectors_on_host(executor, "edges", *(ids, vector) if vector is not None else (ids,))
    ends, local_edges = executor.transpose("edges", executor.map("edges", _with_own, parts), 2)
    names, *entries = (gather_entries(executor, "edges", shards, ends) for shards in vectors)
    calls = zipped(local_edges, names, list(firsts), *entries)
    return executor.map("edges", _edges, calls, name, library, function)


def at_ends(
    executor: Executor, parts: list[Any], vector: Sharded, function: Callable[[Array, Array, Array], Any]
) -> list[Any]:
    """Call `function(numbers, of_u, of_v)` for parts of edges, keys over dense ids above numbers; empties the list.

    It is given the entries of `vector`, by dense id, at both ends of the edges.
    """
    if len(vector.parts) == 1:
        return executor.map("edges", _at_ends_of_whole, parts, vector.whole, function)
    executor, [vector] = vectors_on_host(executor, "edges", vector)
    ids, local_edges = executor.transpose("edges", executor.map("edges", _with_own, parts), 2)
    calls = zipped(local_edges, gather_entries(executor, "edges", vector, ids))
    return executor.map("edges", _at_ends, calls, function)


def _at_ends_of_whole(part: Array, vector: Array, function: Callable[[Array, Array, Array], Any]) -> Any:
    keys, numbers = part[0], part[1]
    entries = on_host(vector) if isinstance(keys, np.ndarray) else vector
    return function(numbers, *(entries.take(ends) for ends in unpack(keys, SHIFT)))


def _at_ends(parts: list[Any], function: Callable[[Array, Array, Array], Any]) -> Any:
    (local_keys, numbers), entries = parts
    return _at_ends_of_whole([local_keys, numbers], np.concatenate(entries), function)


def _with_own(part: Array) -> list[Array]:
    keys, support = part
    positions = keys.argsort()
    ids, local_keys = localised(keys[positions], SHIFT, CPU)
    return [ids, np.stack([local_keys, support[positions]])]


def _renamed(parts: list[Any], is_oriented: bool) -> Array:
    (local_keys, support), ids = parts
    u, v = (np.concatenate(ids).take(end) for end in unpack(local_keys, SHIFT))
    if not is_oriented:
        u, v = np.minimum(u, v), np.maximum(u, v)
    return np.stack([pack(u, v, SHIFT), support])


def _edges(parts: list[Any], name: str | None, library: Any, function: Any) -> Any:
    (local_keys, numbers), ids, first, *entries = parts
    if function is not None:
        vector = np.concatenate(entries[0]) if entries else None
        ends = unpack(local_keys, SHIFT)
        numbers = function(numbers, *(None if vector is None else vector.take(end) for end in ends))
    columns = {} if name is None else {name: numbers}
    return _named_frame(unpack(local_keys, SHIFT), ids, columns, library, first)


def frames_of_pairs(
    executor: Executor, parts: list[Any], ids: Sharded, name: str, firsts: list[int], library: Any
) -> list[Any]:
    """Make frames of pairs by the caller's ids, from lists of their first and second dense ids and their values.

    Rows keep their order; `firsts` has the number of the first row of each frame. The list of parts is emptied.
    """
    executor, [ids] = vectors_on_host(executor, "pairs", ids)
    dense, pairs = executor.transpose("pairs", executor.map("pairs", _with_places, parts), 2)
    calls = zipped(pairs, gather_entries(executor, "pairs", ids, dense), list(firsts))
    return executor.map("pairs", _frame_of_pairs, calls, name, library)


def _with_places(part: list[Array]) -> list[Any]:
    src, dst, values = part
    dense, places = _places_of(np.stack([src, dst]))
    return [dense, [places, values]]


def _frame_of_pairs(parts: list[Any], name: str, library: Any) -> Any:
    (places, values), ids, first = parts
    return _named_frame(places, ids, {name: values}, library, first)


def _named_frame(ends: Any, ids: list[Any], columns: dict[str, Array], library: Any, first: int) -> Any:
    """Make a frame of edges from positions of both ends among ids, which come in parts, and of other columns."""
    names = _together(ids)
    src, dst = (names.take(end) for end in ends)
    if library == "pandas":
        src, dst = column(src), column(dst)
    return frame_of({"src": src, "dst": dst} | columns, library, first)


def _together(parts: list[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pyarrow as pa

    return pa.concat_arrays(parts)


# lists


def list_frame(executor: Executor, parts: list[Any], order: Sharded, ids: Sharded, library: Any) -> Any:
    """Return a handle of the frame of triangles, given as arrays of the blocks' ids of shape (triangles, 3)."""
    executor, [order, ids] = vectors_on_host(executor, "list-frame", order, ids)
    triangles = executor.submit("list-frame", _corners, parts)
    vertices, corners = (executor.submit("list-frame", getitem, triangles, number) for number in (0, 1))
    (dense,) = gather_entries(executor, "list-frame", order, [vertices])
    triangles = executor.submit("list-frame", _by_dense_id, corners, dense)
    vertices, corners = (executor.submit("list-frame", getitem, triangles, number) for number in (0, 1))
    (names,) = gather_entries(executor, "list-frame", ids, [vertices])
    return executor.submit("list-frame", _triangles, corners, names, library)


def _corners(parts: list[Array]) -> list[Array]:
    """Return the distinct vertices of triangles, ascending, and the positions of the corners among them."""
    return _places_of(np.concatenate([np.empty((0, 3), np.int64), *parts]))


def _places_of(ids: Array) -> list[Array]:
    distinct_ids, place = np.unique(ids, return_inverse=True)
    return [distinct_ids, place.reshape(ids.shape)]


def _by_dense_id(corners: Array, dense: list[Array]) -> list[Array]:
    ids = np.sort(np.concatenate(dense).take(corners), axis=1)
    return _places_of(ids[np.lexsort((ids[:, 2], ids[:, 1], ids[:, 0]))])


def _triangles(corners: Array, ids: list[Any], library: Any) -> Any:
    names = _together(ids)
    columns = {name: names.take(corners[:, end]) for end, name in enumerate("uvw")}
    if library == "pandas":
        columns = {name: column(corner_ids) for name, corner_ids in columns.items()}
    return frame_of(columns, library)
