"""Sharded vectors: arithmetic of vertex vectors in shards, and of partitions of edges as small graphs of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import on_host
from dasktc.errors import InputError
from dasktc.pipeline.stages.edge_keys import pack, ranked, unpack
from dasktc.pipeline.stages.orient import add_degrees, add_sources, inverse, oriented, zero_degrees
from dasktc.pipeline.stages.reorder import relabel
from dasktc.wording import advice, plural

__all__ = [
    "Span", "ValueOps", "ascending", "by_place", "cut", "cut_pairs", "entries_in_order", "entries_of",
    "entries_of_spans", "even", "filled", "in_degree_of", "in_place", "integers", "joined", "largest",
    "localised", "logical_or", "mixed", "number_lists", "number_values", "oriented_locally", "put", "refuse_beyond",
    "sample_values", "sorted_keys", "tie_of", "unite", "weight_keys", "with_degrees", "with_entries",
]  # fmt: skip

Array = Any
Span = tuple[int, int, int]
"""First index, stride and end of an arithmetic progression."""


def localised(keys: Array, shift: int, backend: Backend) -> list[Array]:
    """Relabel edges to their own vertices: the distinct ids, ascending, and keys over positions among these."""
    ends = backend.array.concatenate(unpack(keys, shift))
    ids, places = ranked(ends, 1 << shift, backend)
    return [ids.astype("int32"), pack(places[: len(keys)], places[len(keys) :], shift)]


def with_degrees(keys: Array, shift: int, backend: Backend) -> list[Array]:
    """Localise edges, and count the degrees of their vertices among them."""
    ids, local_keys = localised(keys, shift, backend)
    return [ids, local_keys, add_degrees(zero_degrees(len(ids), backend), local_keys, shift, backend)]


def oriented_locally(local: Array, rank: Array, shift: int, backend: Backend) -> list[Array]:
    """Oriented keys of a partition, the ranks that occur in it, ascending, and the out-degree of each in it."""
    order = rank.argsort()
    rank_keys = oriented(local, inverse(order, backend), shift, backend)
    sources = add_sources(zero_degrees(len(rank), backend), rank_keys, shift, backend)
    ranks = rank.take(order)
    return [relabel(rank_keys, ranks, shift, backend), ranks, sources]


def refuse_beyond(weights: int, bits: int) -> None:
    """Refuse weights that do not fit 64 bits together with an id (InputError)."""
    if weights << bits > 2**63 - 1:
        raise InputError(
            f"{plural(weights, 'weight')} of {1 << bits:,} vertices do not fit 64 bits together: vertices in shards "
            f"are sorted as such numbers; give a larger {advice('memory')}, so that they need no shards, or "
            f"{advice(reorder='degree')}"
        )


def largest(weight: Array, first: int) -> int:
    """The largest weight of a shard."""
    return int(weight.max()) if len(weight) else 0


def weight_keys(weight: Array, first: int, top: int, bits: int, backend: Backend) -> Array:
    """Keys of a shard's vertices that ascend with descending weight, then with the id."""
    keys = (top - weight) << bits
    keys |= backend.array.arange(first, first + len(weight), dtype="int64")
    return keys


def tie_of(keys: Array, bits: int) -> Array:
    """The ids in such keys."""
    return keys & ((1 << bits) - 1)


def in_degree_of(pair: list[Array], top: int, bits: int) -> Array:
    """In-degrees: the degrees, recovered from the sorted keys, less the out-degrees."""
    keys, outward = pair
    # Adding them up from the edges' ends, as out-degrees are, would take one more exchange between all workers.
    return top - (keys >> bits) - outward


def even(size: int, count: int) -> tuple[int, ...]:
    """Starts of `count` shards of about equal length, followed by the size."""
    return tuple(size * shard // count for shard in range(count + 1))


def with_entries(given: list[Any], function: Any, *shared: Any) -> Any:
    """Call `function(keys, *entries, *shared)` of keys and, for each vector, the entries that they need.

    The last of `shared` is the backend.
    """
    keys, *vectors = given
    xp = shared[-1].array
    return function(keys, *(xp.concatenate(entries) for entries in vectors), *shared)


def cut(values: Array, starts: Any, backend: Backend) -> list[Array]:
    """Cut an ascending list before each of `starts`."""
    return [values[begin:end] for begin, end in pairwise(_cuts(values, starts, backend))]


def _cuts(values: Array, starts: Any, backend: Backend) -> list[int]:
    boundaries = backend.array.asarray(np.asarray(starts, dtype=values.dtype))
    return [0, *values.searchsorted(boundaries).tolist(), len(values)]


def entries_of(ids: Array, part: Array, first: int) -> Array:
    """Select entries of a shard that begins with entry `first`."""
    return part.take(ids - first)


def entries_of_spans(part: Array, first: int, spans: list[Span]) -> list[Array]:
    """Select, for each span, the entries in a shard that begins with entry `first`."""
    entries = []
    for begin, stride, end in spans:
        start = begin + stride * max(0, -((begin - first) // stride))
        entries.append(part[start - first : max(start, end) - first : stride])
    return entries


def ascending(order: Array) -> list[Array]:
    """Indices in ascending order, and the position that each had."""
    places = order.argsort()
    return [order.take(places), places]


def entries_in_order(given: list[Any], backend: Backend) -> Array:
    """Put entries that were gathered by ascending indices where these indices were."""
    places, entries = given
    gathered = backend.array.concatenate(entries)
    result = backend.array.empty_like(gathered)
    result[places] = gathered
    return result


def cut_pairs(pair: list[Array], starts: Any, backend: Backend) -> list[tuple[Array, Array]]:
    """Cut ascending indices and their values before each of `starts`."""
    ids, values = pair
    return [(ids[begin:end], values[begin:end]) for begin, end in pairwise(_cuts(ids, starts, backend))]


def filled(size: int, value: int, backend: Backend) -> Array:
    """A vector of one value."""
    return backend.array.full(size, value, dtype="int64")


def put(vector: Array, updates: list[Any], first: int, how: str, backend: Backend) -> Array:
    """Combine updates with the entries of a shard, in place; TypeError for numbers that its type would truncate."""
    function = getattr(backend.array, how)
    for ids, values in updates:
        if not np.can_cast(values.dtype, vector.dtype, "same_kind"):
            raise TypeError(f"entries of {values.dtype} are combined with a vector of {vector.dtype}")
        places = ids - first
        vector[places] = function(vector.take(places), values)
    return vector


def joined(vectors: list[Array], how: str, backend: Backend) -> Array:
    """Combine vectors into a new one by a binary function of the array module, one input at a time.

    The list belongs to the task and is emptied vector by vector: one that is mapped from a file is in memory only while
    it is combined.
    """
    function, result = getattr(backend.array, how), vectors.pop().copy()
    while vectors:
        function(result, vectors.pop(), out=result)
    return result


def logical_or(vectors: list[Array]) -> Array:
    """Combine vectors by bitwise OR into a new one; parameters as of `joined`."""
    result = vectors.pop().copy()
    while vectors:
        result |= vectors.pop()
    return result


def by_place(given: list[Array]) -> list[Array]:
    """Values and places, ascending by place."""
    values, places = given
    positions = places.argsort()
    return [places.take(positions), values.take(positions)]


class ValueOps(NamedTuple):
    """Operations on ascending lists of distinct values, by the type of the values."""

    cut: Callable[[Any, list[Any]], list[Any]]
    """Callable (values, starts) -> list of lists. Cuts a list before each of `starts`."""
    unite: Callable[[list[Any]], Any]
    """Callable (list of lists) -> list."""
    join: Callable[[list[Any]], Any]
    """Callable (list of lists) -> list. Their values, one list after another."""
    find: Callable[[Any, Any], Array]
    """Callable (values, among) -> array. Position of each value in a list that contains it."""
    hash: Callable[[Any], Array]
    """Callable (values) -> array of uint64. Hashes below 2^63."""


def sample_values(values: Any, share: float, ops: ValueOps) -> Any:
    """The values whose hashes are below the given share of the hash range, on the host."""
    if share < 1:
        mask = ops.hash(values) < np.uint64(share * 2**63)
        values = values[mask] if hasattr(values, "dtype") else values.take(np.flatnonzero(mask))
    return on_host(values)


def number_values(values: Any, among: Any, first: int, ops: ValueOps) -> Array:
    """Numbers of a list's values in a shard that begins with number `first`."""
    numbers = ops.find(values, among).astype("int32")
    numbers += first
    return numbers


def number_lists(lists: list[Any], among: Any, first: int, ops: ValueOps) -> list[Array]:
    """Numbers of the values of several lists, as of `number_values`, which looks all of them up at once."""
    ends = [0, *accumulate(map(len, lists))]
    numbers = number_values(ops.join(lists), among, first, ops)
    return [numbers[begin:end] for begin, end in pairwise(ends)]


def sorted_keys(keys: Array, bound: int, backend: Backend) -> Array:
    """Sort keys into a new array."""
    return backend.sort(keys.copy(), bound)


def in_place(given: list[Any], backend: Backend) -> Array:
    """Position of each key among all sorted keys, from those of its shard's sorted keys."""
    xp, (keys, numbers) = backend.array, given
    place = xp.empty(len(keys), dtype="int32")
    place[keys.argsort()] = xp.concatenate(numbers)
    return place


def unite(lists: list[Array], backend: Backend) -> Array:
    """Merge lists to ascending distinct values; the CPU sorts in place, since a hash table takes twice the memory.

    There the list is emptied as it is copied, so that its values are gone before those that are distinct are made.
    """
    xp = backend.array
    if backend.name != "cpu":
        return backend.distinct(xp.concatenate(lists))
    values, end = xp.empty(sum(map(len, lists)), "int64"), 0
    while lists:
        values[end : end + len(lists[-1])] = lists[-1]
        end += len(lists.pop())
    values.sort(kind="stable")
    is_first = xp.ones(len(values), dtype=bool)
    xp.not_equal(values[1:], values[:-1], out=is_first[1:])
    return values[is_first]


def _find(values: Array, sorted_values: Array) -> Array:
    return sorted_values.searchsorted(values)


def integers(backend: Backend) -> ValueOps:
    """Operations on ascending arrays of int64."""
    return ValueOps(
        partial(cut, backend=backend), partial(unite, backend=backend), backend.array.concatenate, _find, mixed
    )


def mixed(values: Array) -> Array:
    """Hash integers to uint64 below 2^63."""
    hashes = values.astype("uint64")
    for shift, factor in ((32, 0x9E3779B97F4A7C15), (29, 0xD6E8FEB86659FD93)):
        hashes ^= hashes >> np.uint64(shift)
        hashes *= np.uint64(factor)
    return hashes >> np.uint64(1)
