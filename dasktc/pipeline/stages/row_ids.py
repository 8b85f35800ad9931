"""Ids of the blocks for the ends of rows that have the caller's ids: arithmetic of a frame, and of a shard of ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dasktc.backends import Backend, lazy_backend
from dasktc.backends.vertex_maps import VertexMap
from dasktc.options import Ids
from dasktc.pipeline.stages.columns import lost_rows
from dasktc.pipeline.stages.id_maps import arrays_of
from dasktc.pipeline.stages.ids import places_of_integers, places_of_texts
from dasktc.wording import plural

__all__ = [
    "ascending_ids", "block_ids_of_shard", "first_id", "own_ids", "places_among", "positions", "with_ends_of_map",
    "with_own_ends",
]  # fmt: skip

Array = Any
CPU = lazy_backend("cpu")
Frame = Any


def with_ends_of_map(
    frame: Frame, vertices: VertexMap, place: Array, function: Callable[..., Any], *shared: Any
) -> Any:
    """Call `function(frame, ends, *shared)`; `ends` are the ids of the blocks, from the place of each dense id."""
    return function(frame, [place.take(vertices.dense(frame[end])) for end in ("src", "dst")], *shared)


def own_ids(frame: Frame, ids: Ids) -> list[Any]:
    """Distinct ids of a frame without loops, ascending, and the positions of both ends of its rows among them."""
    if ids == "text":
        return places_of_texts(frame, CPU)
    ends = arrays_of(frame)
    low = min((int(end.min()) for end in ends if len(end)), default=0)
    width = 1 + max((int(end.max()) for end in ends if len(end)), default=0) - low
    return places_of_integers(frame, low, width, CPU)


def first_id(ids: Any) -> Any:
    """The first id of a shard, as a Python object."""
    return ids[:1].tolist()[0]


def ascending_ids(ids: Any) -> tuple[Any, Array]:
    """Ids in ascending order, text as an Arrow array, and the position that each had."""
    if isinstance(ids, np.ndarray) and ids.dtype.kind == "i":
        order = ids.argsort(kind="stable")
        return ids.take(order), order
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pa.array(ids, pa.large_string())
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    order = pc.sort_indices(column)
    return column.take(order), order.to_numpy()


def positions(part: Array, first: int, backend: Backend) -> Array:
    """Positions of a shard's entries in the vector, whose entry `first` is the shard's first."""
    return backend.array.arange(first, first + len(part), dtype="int64")


def block_ids_of_shard(ids: Any, shard_ids: Any, block_ids: Array) -> Array:
    """The ids of the blocks of some of the caller's ids, from those of a shard.

    Raises
    ------
    CountError
        The shard lacks an id: the source has changed.
    """
    places = places_among(shard_ids, ids)
    if count := int((places < 0).sum()):
        raise lost_rows(f"{plural(count, 'vertex is', 'vertices are')} new")
    return block_ids.take(places)


def with_own_ends(given: list[Any], function: Callable[..., Any], *shared: Any) -> Any:
    """Call `function(frame, ends, *shared)` of a frame, positions of its ends, and the ids of the blocks there."""
    frame, places, entries = given
    ids = np.concatenate(entries)
    return function(frame, [ids.take(end) for end in places], *shared)


def places_among(sorted_ids: Any, ids: Any) -> Array:
    """Return the positions of ids among ascending ones; -1 for ids that are missing."""
    if isinstance(sorted_ids, np.ndarray):
        if np.array_equal(sorted_ids, ids):  # those of an answer, with which callers mostly come back
            return np.arange(len(ids))
        if not len(sorted_ids):
            return np.full(len(ids), -1, np.int64)
        places = sorted_ids.searchsorted(ids).clip(max=len(sorted_ids) - 1)
        return np.where(sorted_ids[places] == ids, places, -1).astype(np.int64)
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pc.cast(pa.array(ids), sorted_ids.type)
    return pc.fill_null(pc.index_in(values, value_set=sorted_ids), -1).to_numpy(zero_copy_only=False).astype(np.int64)
