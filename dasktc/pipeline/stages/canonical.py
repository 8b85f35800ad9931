"""Canonicalization: turns edge frames into distinct undirected edges over dense ids, a key each (`edge_keys`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import on_host
from dasktc.backends.protocol import Buckets
from dasktc.backends.vertex_maps import RangeMap, VertexMap
from dasktc.pipeline.stages.edge_keys import pack
from dasktc.pipeline.stages.id_maps import TextMap, arrays_of
from dasktc.pipeline.stages.ids import IdRange

__all__ = [
    "distinct_in_buckets", "ends_of", "keys_in_chunks", "keys_in_range", "keys_of", "keys_of_places", "keys_of_samples",
]  # fmt: skip

Array = Any
Frame = Any


def distinct_in_buckets(span: tuple[int, int], buckets: Buckets, shift: int) -> Array:
    """Distinct keys of a span of buckets, ascending."""
    return buckets.distinct(*span, shift)


def keys_of(frames: Frame | list[Frame], vertices: VertexMap | IdRange, shift: int, backend: Backend) -> Array:
    """Keys of the edges of a frame, or of a list of frames."""
    if isinstance(frames, list):
        return backend.array.concatenate([keys_of(frame, vertices, shift, backend) for frame in frames])
    if isinstance(vertices, IdRange | RangeMap):
        return backend.edges.keys(*arrays_of(frames), vertices, shift)
    return _packed((frames["src"], frames["dst"]), vertices, shift, backend)


def keys_in_chunks(frames: Frame | list[Frame], vertices: VertexMap | IdRange, shift: int, backend: Backend) -> Array:
    """As `keys_of`, with the scratch of one chunk; the keys of loops between integers are 0."""
    if isinstance(frames, list):
        return backend.array.concatenate([keys_in_chunks(frame, vertices, shift, backend) for frame in frames])
    if not isinstance(vertices, TextMap):
        return _keys_of_ends(*arrays_of(frames), vertices, shift, backend)
    keys = backend.array.empty(len(frames), dtype="int64")
    for start in range(0, len(frames), backend.chunk):
        rows = frames.iloc[start : start + backend.chunk]
        keys[start : start + backend.chunk] = _packed((rows["src"], rows["dst"]), vertices, shift, backend)
    return keys


def ends_of(frames: Frame | list[Frame], ids: IdRange, shift: int, backend: Backend) -> list[Any]:
    """The edges of a frame, or of a list of frames, from which their keys are made as they are read."""
    frame_list = frames if isinstance(frames, list) else [frames]
    return [backend.edges.lazy_keys(*arrays_of(frame), ids, shift) for frame in frame_list]


def keys_in_range(ends: Any, ids: IdRange, shift: int) -> Array:
    """Keys of sampled edges in NumPy, from the offsets of their ids from the smallest id."""
    high, low = np.minimum(*ends), np.maximum(*ends)
    if ids.low:
        high, low = high.astype("int64") - ids.low, low.astype("int64") - ids.low
    return pack(high, low, shift)


def keys_of_samples(vertices: VertexMap, samples: list[Any], shift: int, backend: Backend) -> list[Any]:
    """Keys of sampled edges by any id map, computed on the backend's device."""
    xp = backend.array
    ends = ((xp.asarray(src), xp.asarray(dst)) for src, dst in samples)
    return [on_host(_keys_of_ends(src, dst, vertices, shift, backend)) for src, dst in ends]


def keys_of_places(ends: Array, numbers: Array, shift: int, backend: Backend) -> Array:
    """Keys of a frame's edges, from the dense ids of the frame's own vertices."""
    xp = backend.array
    a, b = numbers.take(ends[0]), numbers.take(ends[1])
    return pack(xp.minimum(a, b), xp.maximum(a, b), shift)


def _keys_of_ends(src: Array, dst: Array, vertices: VertexMap | IdRange, shift: int, backend: Backend) -> Array:
    """Keys of edges between integers, with the scratch of one chunk; those of loops are 0."""
    if isinstance(vertices, IdRange | RangeMap):
        return backend.edges.keys(src, dst, vertices, shift)
    keys = backend.array.empty(len(src), dtype="int64")
    for start in range(0, len(src), backend.chunk):
        ends = src[start : start + backend.chunk], dst[start : start + backend.chunk]
        part = keys[start : start + backend.chunk]
        part[:] = _packed(ends, vertices, shift, backend)
        part[ends[0] == ends[1]] = 0  # the ends of a loop need not be among the ids
    return keys


def _packed(ends: tuple[Any, Any], vertices: VertexMap, shift: int, backend: Backend) -> Array:
    xp, (a, b) = backend.array, (vertices.dense(end) for end in ends)
    return pack(xp.minimum(a, b), xp.maximum(a, b), shift)
