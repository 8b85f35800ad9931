"""Sharded vertex vectors, for graphs whose vertex arrays exceed one process.

Shard s holds entries `starts[s]` to `starts[s + 1]`. A partition of edges contains few of the vertices. It gathers
their entries (`gather_entries`) by an ascending list of vertices, cut at the shards' borders, and scatters updates
(`scatter_entries`) likewise. Lists and entries are inputs of tasks and go directly from worker to worker. Where vertex
arrays fit one process, a vector has one shard (`Sharded.whole`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import Array, on_host
from dasktc.backends.vertex_maps import VertexMap
from dasktc.executors.base import CPU, Executor, Fold, for_backend
from dasktc.options import Ids
from dasktc.pipeline.stages.id_maps import map_of
from dasktc.pipeline.stages.shards import (
    Span,
    ascending,
    by_place,
    cut,
    cut_pairs,
    entries_in_order,
    entries_of,
    entries_of_spans,
    filled,
    joined,
    put,
)

__all__ = [
    "GROUP", "Sharded", "gather_entries", "gather_spans", "map_on_host", "permuted", "reordered", "scatter_entries",
    "vectors_on_backend", "vectors_on_host", "zipped",
]  # fmt: skip

GROUP = 8
"""Updates that one task adds to a shard, without a memory budget."""


class Sharded:
    """A vector with entries 0 .. V-1 in shards of consecutive entries.

    Parameters
    ----------
    starts : tuple of int, length shards + 1
        The first entry of each shard, and V.
    parts : list of handles of arrays, or callable () -> list
        Handles of the shards, or a function that makes them on first access.
    """

    def __init__(self, starts: tuple[int, ...], parts: list[Any] | Callable[[], list[Any]]) -> None:
        self.starts, self._parts = starts, parts

    @property
    def parts(self) -> list[Any]:
        """Handles of the shards."""
        parts = self._parts  # read once: another thread may make them meanwhile
        if callable(parts):
            self._parts = parts = parts()
        return parts

    def __reduce__(self) -> tuple[Any, ...]:  # a function that makes the parts belongs to this process
        return Sharded, (self.starts, self.parts)

    @property
    def size(self) -> int:
        """Number of entries, V."""
        return self.starts[-1]

    @property
    def whole(self) -> Any:
        """Handle of the whole vector; there must be one shard."""
        (part,) = self.parts
        return part

    def map(self, executor: Executor, stage: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Call `function(part, first, *shared)` for each shard."""
        return [
            executor.submit(stage, function, part, first, *shared)
            for part, first in zip(self.parts, self.starts[:-1], strict=True)
        ]


def zipped(*lists: list[Any]) -> list[list[Any]]:
    """Zip lists of handles into the inputs of one call each; the lists are emptied, so that inputs can be freed."""
    calls = [list(entries) for entries in zip(*lists, strict=True)]
    for handles in lists:
        handles.clear()
    return calls


def vectors_on_host(executor: Executor, stage: str, *vectors: Sharded) -> tuple[Executor, list[Sharded]]:
    """The executor for work on the host, and the vectors there."""
    if not executor.backend.on_device:
        return executor, list(vectors)
    copies = [Sharded(vector.starts, executor.map(stage, on_host, list(vector.parts))) for vector in vectors]
    return for_backend(executor, "cpu"), copies


def vectors_on_backend(executor: Executor, stage: str, *vectors: Sharded) -> list[Sharded]:
    """Vectors that are on the host, in the memory of the executor's backend."""
    if not executor.backend.on_device:
        return list(vectors)
    return [
        Sharded(vector.starts, executor.map(stage, _uploaded, list(vector.parts), executor.backend))
        for vector in vectors
    ]


def _uploaded(values: Array, backend: Backend) -> Array:
    return backend.array.asarray(values)


def map_on_host(executor: Executor, stage: str, vertices: Any, order: Any, ids: Ids) -> tuple[Any, Any]:
    """Handles of a map of the caller's ids and of a whole vector, for work on the host."""
    if not executor.backend.on_device:
        return vertices, order
    return executor.submit(stage, _external_ids, vertices, ids), executor.submit(stage, on_host, order)


def _external_ids(vertices: VertexMap, ids: Ids) -> VertexMap:
    return map_of([vertices.external(np.arange(vertices.size))], ids, CPU)


def gather_entries(executor: Executor, stage: str, vector: Sharded, ids: list[Any]) -> list[list[Any]]:
    """Gather entries of a sharded vector by many lists of indices.

    Parameters
    ----------
    executor : Executor
    stage : str
    vector : Sharded
    ids : list of handles of arrays
        Ascending lists of indices.

    Returns
    -------
    list of lists of handles of arrays
        The entries of each list, one array per shard.
    """
    count = len(vector.parts)
    requests = executor.transpose(
        stage, executor.map(stage, cut, list(ids), vector.starts[1:-1], executor.backend), count
    )
    answers = [
        executor.map(stage, entries_of, shard_requests, part, first)
        for shard_requests, part, first in zip(requests, vector.parts, vector.starts, strict=False)
    ]
    return zipped(*answers)


def gather_spans(executor: Executor, stage: str, vector: Sharded, spans: list[Span]) -> list[list[Any]]:
    """Gather entries of a sharded vector by arithmetic progressions of indices; returns as `gather_entries` does."""
    answers = vector.map(executor, stage, entries_of_spans, spans)
    return executor.transpose(stage, answers, len(spans))


def reordered(executor: Executor, stage: str, vector: Sharded, order: Sharded) -> Sharded:
    """Reorder a sharded vector: entry order[i] of the vector becomes entry i of the result, in the order's shards."""
    if len(vector.parts) == len(order.parts) == 1:
        return Sharded(order.starts, [executor.submit(stage, entries_of, order.whole, vector.whole, 0)])
    ids, places = executor.transpose(stage, executor.map(stage, ascending, list(order.parts)), 2)
    calls = zipped(places, gather_entries(executor, stage, vector, ids))
    return Sharded(order.starts, executor.map(stage, entries_in_order, calls, executor.backend))


def scatter_entries(
    executor: Executor,
    stage: str,
    ids: list[Any],
    values: list[Any],
    starts: tuple[int, ...],
    how: tuple[str, int] = ("add", 0),
) -> Sharded:
    """Scatter many lists of values into a new sharded vector, and combine values with the same index.

    Parameters
    ----------
    executor : Executor
    stage : str
    ids : list of handles of arrays
        Ascending lists of distinct indices.
    values : list of handles of arrays
        One value for each index.
    starts : tuple of int
        Starts of the result's shards.
    how : (str, int)
        The array module's function that combines two values, and the initial value of an entry.

    Returns
    -------
    Sharded
        Of int64.
    """
    inputs = [list(pair) for pair in zip(ids, values, strict=True)]
    updates = executor.transpose(
        stage, executor.map(stage, cut_pairs, inputs, starts[1:-1], executor.backend), len(starts) - 1
    )
    group, parts = GROUP if executor.store.memory_per_call is None else 1, []
    for shard_updates, (first, end) in zip(updates, pairwise(starts), strict=True):
        fold = Fold(
            partial(filled, end - first, how[1], executor.backend),
            partial(put, first=first, how=how[0], backend=executor.backend),
            partial(joined, how=how[0], backend=executor.backend),
        )
        groups = [shard_updates[start : start + group] for start in range(0, len(shard_updates), group)]
        shard_updates.clear()
        parts.append(executor.fold(stage, fold, groups))
    return Sharded(starts, parts)


def permuted(
    executor: Executor, stage: str, vector: Sharded, place: Sharded, starts: tuple[int, ...] | None = None
) -> Sharded:
    """Permute a sharded vector: entry i of the vector becomes entry place[i] of the result.

    Parameters
    ----------
    executor : Executor
    stage : str
    vector, place : Sharded
        Sharded alike; `place` is a permutation of 0 .. V-1.
    starts : tuple of int, optional
        Starts of the result's shards; default: those of `vector`.
    """
    pairs = executor.map(stage, by_place, zipped(list(vector.parts), list(place.parts)))
    ids, values = executor.transpose(stage, pairs, 2)
    return scatter_entries(executor, stage, ids, values, starts or vector.starts)
