"""Translates rows from the caller's ids to ids of the blocks, and vertices to the caller's ids.

Rows that are read once more, for values of their edges, have the caller's ids. A map of all vertices has the dense ids
of these, and a vector the ids in the blocks. If both are in shards, the distinct ids of a frame are cut at the first
ids of the shards, and each shard returns the ids in the blocks of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from dasktc.executors.base import CPU, Executor
from dasktc.options import Ids
from dasktc.pipeline.planes.vectors import Sharded, gather_entries, map_on_host, permuted, vectors_on_host, zipped
from dasktc.pipeline.stages.ids import texts
from dasktc.pipeline.stages.orient import inverse
from dasktc.pipeline.stages.row_ids import (
    block_ids_of_shard,
    first_id,
    own_ids,
    positions,
    with_ends_of_map,
    with_own_ends,
)
from dasktc.pipeline.stages.shards import integers

__all__ = ["BlockIds", "block_ids", "cuts_at_shards"]


def block_ids(executor: Executor, stage: str, vertices: Any, order: Sharded, ids: Ids) -> BlockIds:
    """The ids of the blocks, from the map of the caller's ids, or these ids in shards, and the dense id of each."""
    if isinstance(vertices, Sharded):
        executor, (vertices, order) = vectors_on_host(executor, stage, vertices, order)
        return ShardedIds(executor, stage, vertices, order, ids)
    return WholeIds(executor, stage, *map_on_host(executor, stage, vertices, order.whole, ids))


def cuts_at_shards(
    executor: Executor, stage: str, vertices: Sharded, ids: Ids
) -> tuple[list[int], list[Any], Callable[[Any, list[Any]], list[Any]]]:
    """Numbers of the shards that have ids of the caller, where to cut ascending ids for them, and what cuts them."""
    numbers = [number for number, (first, end) in enumerate(pairwise(vertices.starts)) if first < end] or [0]
    firsts = executor.gather([executor.submit(stage, first_id, vertices.parts[number]) for number in numbers[1:]])
    return numbers, firsts, (texts(CPU) if ids == "text" else integers(CPU)).cut


@dataclass(frozen=True)
class WholeIds:
    """A map of the caller's ids, and the dense id of each id of the blocks, on the host."""

    executor: Executor
    stage: str
    vertices: Any
    order: Any

    def map(self, frames: list[Any], function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Call `function(frame, ends, *shared)` for each frame, and empty the list; `ends` has the ids of both ends.

        Frames and ends are on the host.
        """
        numbers = self.executor.submit(self.stage, inverse, self.order, CPU)
        return self.executor.map(self.stage, with_ends_of_map, frames, self.vertices, numbers, function, *shared)

    def names(self, ids: list[int]) -> list[Any]:
        """Return the caller's ids of some vertices, ascending."""
        call = self.executor.submit(self.stage, _external_ids, self.vertices, self.order, ids)
        (names,) = self.executor.gather([call])
        return list(names)


def _external_ids(vertices: Any, order: Any, ids: list[int]) -> list[Any]:
    return list(vertices.external(np.sort(order[ids])).tolist())


@dataclass(frozen=True)
class ShardedIds:
    """The caller's ids, and the dense id of each id of the blocks, in shards on the host."""

    executor: Executor
    stage: str
    vertices: Sharded
    order: Sharded
    ids: Ids

    def map(self, frames: list[Any], function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Call a function, as `WholeIds` does."""
        executor, stage, order = self.executor, self.stage, self.order
        numbers = Sharded(order.starts, order.map(executor, stage, positions, executor.backend))
        places = permuted(executor, stage, numbers, order, self.vertices.starts)
        found = executor.map(stage, own_ids, list(frames), self.ids)
        ids, ends = executor.transpose(stage, found, 2)
        shards, starts, cut = cuts_at_shards(executor, stage, self.vertices, self.ids)
        requests = executor.transpose(stage, executor.map(stage, cut, ids, starts), len(shards))
        answers = [
            executor.map(stage, block_ids_of_shard, list(values), self.vertices.parts[shard], places.parts[shard])
            for values, shard in zip(requests, shards, strict=True)
        ]
        return executor.map(stage, with_own_ends, zipped(frames, ends, zipped(*answers)), function, *shared)

    def names(self, ids: list[int]) -> list[Any]:
        """Return the caller's ids, as `WholeIds` does."""
        executor, dense = self.executor, np.array(ids)
        for vector in (self.order, self.vertices):
            (pieces,) = gather_entries(executor, self.stage, vector, [np.sort(dense)])
            dense = np.concatenate([np.asarray(piece) for piece in executor.gather(pieces)])
        return list(dense.tolist())


BlockIds: TypeAlias = WholeIds | ShardedIds
