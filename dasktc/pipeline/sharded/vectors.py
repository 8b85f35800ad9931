"""Vectors over the vertices in shards, so that no process holds one as large as the vertices.

Shard s holds the places from `starts[s]` to `starts[s + 1]`. A partition of edges knows few of the vertices: what it
wants of a vector it asks of the shards, by an ascending list of its vertices that is cut where shards begin, and what
it adds to a vector goes to the shards likewise. Lists and answers are inputs of tasks and travel from worker to worker.
A vector of one shard is a whole one: that is the way where the vertices fit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import get_backend
from dasktc.executors.base import Executor, Fold

__all__ = ["Sharded", "added", "cut", "even", "moved", "taken", "zipped"]

Array = Any
GROUP = 8
"""Pieces that are added to a shard's vector at a time where no budget was given."""


class Sharded(NamedTuple):
    """A vector over 0 .. V-1.

    Attributes
    ----------
    starts : tuple of int, length shards + 1
        The first place of each shard, and V.
    parts : list of handles of arrays
    """

    starts: tuple[int, ...]
    parts: list[Any]

    @property
    def size(self) -> int:
        """V."""
        return self.starts[-1]

    @property
    def whole(self) -> Any:
        """The handle of all of it, where that is one array."""
        (part,) = self.parts
        return part

    def map(self, executor: Executor, stage: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Call `function(part, first, *shared)` for each shard."""
        return [
            executor.submit(stage, function, part, first, *shared)
            for part, first in zip(self.parts, self.starts[:-1], strict=True)
        ]


def even(size: int, count: int) -> tuple[int, ...]:
    """Where `count` shards of about equally many places begin, and the size."""
    return tuple(size * shard // count for shard in range(count + 1))


def zipped(*lists: list[Any]) -> list[list[Any]]:
    """Entries that belong together, as inputs of one call each; the lists are emptied, so that inputs can be freed."""
    rows = [list(entries) for entries in zip(*lists, strict=True)]
    for given in lists:
        given.clear()
    return rows


def taken(executor: Executor, stage: str, vector: Sharded, ids: list[Any]) -> list[list[Any]]:
    """Ask for entries of a vector.

    Parameters
    ----------
    executor : Executor
    stage : str
    vector : Sharded
    ids : list of handles of arrays
        Ascending lists of places.

    Returns
    -------
    list of lists of handles of arrays
        The entries for each list: a shard's after another's.
    """
    count = len(vector.parts)
    requests = executor.transpose(stage, executor.map(stage, cut, list(ids), vector.starts[1:-1]), count)
    answers = [
        executor.map(stage, _entries, of_shard, part, first)
        for of_shard, part, first in zip(requests, vector.parts, vector.starts, strict=False)
    ]
    return [list(entries) for entries in zip(*answers, strict=True)]


def cut(values: Array, starts: Any) -> list[Array]:
    """Cut an ascending list before each of `starts`."""
    return [values[begin:end] for begin, end in pairwise(_cuts(values, starts))]


def _cuts(values: Array, starts: Any) -> list[int]:
    return [0, *values.searchsorted(np.asarray(starts, dtype=values.dtype)).tolist(), len(values)]


def _entries(ids: Array, part: Array, first: int) -> Array:
    return part.take(ids - first)


def added(
    executor: Executor,
    stage: str,
    ids: list[Any],
    values: list[Any],
    starts: tuple[int, ...],
    backend: str,
    how: tuple[str, int] = ("add", 0),
) -> Sharded:
    """Put values of many lists into a vector.

    Parameters
    ----------
    executor : Executor
    stage : str
    ids : list of handles of arrays
        Ascending lists of distinct places.
    values : list of handles of arrays
        One for each place.
    starts : tuple of int
        Of the vector.
    backend : str
    how : (str, int)
        The array module's function that joins two values, and what an entry is before any.

    Returns
    -------
    Sharded
        Of int64.
    """
    inputs = [list(pair) for pair in zip(ids, values, strict=True)]
    updates = executor.transpose(stage, executor.map(stage, _cut_pairs, inputs, starts[1:-1]), len(starts) - 1)
    group, parts = GROUP if executor.memory_per_call is None else 1, []
    for of_shard, (first, end) in zip(updates, pairwise(starts), strict=True):
        fold = Fold(
            partial(_filled, end - first, how[1], backend),
            partial(_put, first=first, joined=how[0], backend=backend),
            partial(_joined, joined=how[0], backend=backend),
        )
        groups = [of_shard[start : start + group] for start in range(0, len(of_shard), group)]
        of_shard.clear()
        parts.append(executor.fold(stage, fold, groups))
    return Sharded(starts, parts)


def _cut_pairs(pair: list[Array], starts: Any) -> list[tuple[Array, Array]]:
    ids, values = pair
    return [(ids[begin:end], values[begin:end]) for begin, end in pairwise(_cuts(ids, starts))]


def _filled(size: int, value: int, backend: str) -> Array:
    return get_backend(backend).array.full(size, value, dtype="int64")


def _put(vector: Array, updates: list[Any], first: int, joined: str, backend: str) -> Array:
    function = getattr(get_backend(backend).array, joined)
    for ids, values in updates:
        places = ids - first
        vector[places] = function(vector.take(places), values)
    return vector


def _joined(vectors: list[Array], joined: str, backend: str) -> Array:
    """As `orient.total` adds: an input at a time."""
    function, result = getattr(get_backend(backend).array, joined), vectors.pop().copy()
    while vectors:
        function(result, vectors.pop(), out=result)
    return result


def moved(
    executor: Executor,
    stage: str,
    vector: Sharded,
    place: Sharded,
    backend: str,
    starts: tuple[int, ...] | None = None,
) -> Sharded:
    """The vector with every entry at its new place.

    Parameters
    ----------
    executor : Executor
    stage : str
    vector, place : Sharded
        In the same shards; `place` holds each number 0 .. V-1 once.
    backend : str
    starts : tuple of int, optional
        Of the result; default: as before.
    """
    pairs = executor.map(stage, _by_place, zipped(list(vector.parts), list(place.parts)))
    ids, values = executor.transpose(stage, pairs, 2)
    return added(executor, stage, ids, values, starts or vector.starts, backend)


def _by_place(given: list[Array]) -> list[Array]:
    values, places = given
    order = places.argsort()
    return [places.take(order), values.take(order)]
