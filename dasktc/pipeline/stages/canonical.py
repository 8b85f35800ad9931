"""Canonicalization: turns edge frames into distinct undirected edges over dense ids, a key each (`edge_keys`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import aligned, on_host
from dasktc.backends.protocol import Buckets
from dasktc.backends.vertex_maps import RangeMap, VertexMap
from dasktc.errors import CountError
from dasktc.pipeline.stages.blocks import keys_of_rows
from dasktc.pipeline.stages.edge_keys import cut, distinct, pack
from dasktc.pipeline.stages.id_maps import TextMap, arrays_of
from dasktc.pipeline.stages.ids import IdRange
from dasktc.pipeline.stages.orient import Ranks, ranks_and_starts
from dasktc.pipeline.stages.read import slices_of_rows

__all__ = [
    "DENSE", "count_ends", "dense_ends", "distinct_in_buckets", "distinct_of_range", "frame_of_places",
    "keys_in_chunks", "keys_in_range", "keys_of", "keys_of_places", "keys_of_samples", "keys_of_slab", "lazy_keys_of",
    "oriented_in_ranges", "oriented_in_rows", "oriented_keys", "ranked_in_ranges", "slab_of_range",
]  # fmt: skip

Array = Any
Frame = Any
DENSE = IdRange(0, 0)
"""Ids that are dense ids already."""
MOST_CUTS = 16
"""Most cuts of a frame: of a longer one, more rows are cut at a time."""


def distinct_in_buckets(span: tuple[int, int], buckets: Buckets, shift: int) -> Array:
    """Distinct keys of a span of buckets, ascending."""
    return buckets.distinct(*span, shift)


def keys_of(frames: Frame | list[Frame], vertices: VertexMap | IdRange, shift: int, backend: Backend) -> Array:
    """Keys of the edges of a frame, or of a list of frames."""
    if isinstance(frames, list):
        return backend.array.concatenate([keys_of(frame, vertices, shift, backend) for frame in frames])
    if isinstance(vertices, IdRange | RangeMap):
        return backend.edges.keys(*arrays_of(frames), vertices, shift)
    xp, (a, b) = backend.array, (vertices.dense(frames[name]) for name in ("src", "dst"))
    return pack(xp.minimum(a, b), xp.maximum(a, b), shift)


def keys_in_chunks(
    frames: Frame | list[Frame], vertices: VertexMap | IdRange, shift: int, backend: Backend, rank: Array | None = None
) -> Array:
    """As `keys_of`, with the scratch of one chunk.

    With ranks the keys are oriented ones over these, as `Edges.oriented` makes them.
    """
    if isinstance(frames, list):
        return backend.array.concatenate([keys_in_chunks(frame, vertices, shift, backend, rank) for frame in frames])
    return _keys_of_ends(_columns(frames, vertices), vertices, shift, backend, rank)


def dense_ends(frames: Frame | list[Frame], vertices: VertexMap, backend: Backend) -> Frame | list[Frame]:
    """Frames of dense ids, int32, of a frame, or of a list of frames."""
    if isinstance(frames, list):
        return [dense_ends(frame, vertices, backend) for frame in frames]
    return backend.wrap(*(vertices.dense(end).astype("int32", copy=False) for end in _columns(frames, vertices)))


def count_ends(counts: Array, frames: Frame | list[Frame], vertices: VertexMap | IdRange, backend: Backend) -> Array:
    """Add the rows of a frame, or of a list of frames, that name each vertex and are no loops to `counts`, in place."""
    if isinstance(frames, list):
        for frame in frames:
            count_ends(counts, frame, vertices, backend)
    elif isinstance(vertices, IdRange | RangeMap):
        backend.edges.count_ends(counts, *arrays_of(frames), vertices)
    else:
        for _, ends in _dense_chunks(_columns(frames, vertices), vertices, backend):
            backend.edges.count_ends(counts, *ends, DENSE)
    return counts


def lazy_keys_of(frames: Frame | list[Frame], ids: IdRange, shift: int, backend: Backend) -> list[Any]:
    """The edges of a frame, or of a list of frames, from which their keys are made as they are read."""
    frame_list = frames if isinstance(frames, list) else [frames]
    return [backend.edges.lazy_keys(*arrays_of(frame), ids, shift) for frame in frame_list]


def keys_in_range(ends: Any, ids: IdRange, shift: int) -> Array:
    """Keys of sampled edges in NumPy, from the offsets of their ids from the smallest id."""
    high, low = np.minimum(*ends), np.maximum(*ends)
    if ids.low:
        high, low = high.astype("int64") - ids.low, low.astype("int64") - ids.low
    return pack(high, low, shift)


def oriented_in_ranges(
    frames: Frame | list[Frame], ids: IdRange, ranks: Ranks, shift: int, backend: Backend, cut_rows: int
) -> list[list[Array]]:
    """Keys over ranks of a frame, or of a list of frames, cut into the ranges that came with the ranks.

    Keys of `cut_rows` rows at a time are cut, so that no other copy of all keys is needed.
    """
    rank, starts, slices = aligned(ranks[0]), ranks[1], list[list[Array]]()
    for frame in frames if isinstance(frames, list) else [frames]:
        for part in slices_of_rows(frame, max(cut_rows, -(-len(frame) // MOST_CUTS))):
            keys = keys_in_chunks(part, ids, shift, backend, rank)
            slices.append(cut(keys, starts, 1 << 2 * shift, backend))
    return [list(of_range) for of_range in zip(*slices, strict=True)]


def oriented_in_rows(
    frames: list[Frame], ids: VertexMap | IdRange, rank: Array, rows: list[int], shift: int, backend: Backend
) -> Iterator[list[Array]]:
    """Keys over ranks of one frame after another, cut into ranges of rows by `Edges.split_rows`; takes frames over."""
    frames.reverse()
    edges = (arrays_of(frames.pop()) for _ in range(len(frames)))
    return backend.edges.split_rows(edges, ids, rank, rows, shift)


def ranked_in_ranges(
    frames: Frame | list[Frame],
    ids: IdRange,
    cut_rows: int,
    counts: list[Array],
    samples: list[Array],
    weights: list[int],
    ranges: int,
    shift: int,
    backend: Backend,
) -> list[Any]:
    """What `oriented_in_ranges` returns, with the ranks of `ranks_and_starts`, which come last."""
    ranks = ranks_and_starts(counts, samples, weights, ranges, shift, backend)
    return [*oriented_in_ranges(frames, ids, ranks, shift, backend, cut_rows), ranks]


def oriented_keys(frame: Frame, ids: IdRange, rank: Array, shift: int, backend: Backend, step: int = 1) -> Array:
    """Keys over ranks of every `step`-th edge of a frame."""
    src, dst = (end[::step] for end in arrays_of(frame))
    return backend.edges.keys(src, dst, ids, shift, aligned(rank))


def distinct_of_range(slices: list[Array], ranks: Ranks, number: int, shift: int, backend: Backend) -> Array:
    """Distinct keys of one of these ranges, ascending; takes the slices over.

    CountError: a key is of another range, since the source gave other edges when it was read again.
    """
    bound = 1 << 2 * shift
    start, end = [0, *ranks[1], bound][number : number + 2]
    if any(len(keys) and (int(keys.min()) < start or int(keys.max()) >= end) for keys in slices):
        raise _other_edges(start >> shift, end >> shift)
    return distinct(slices, bound, backend, (start, end))


def slab_of_range(keys: Array, ranks: Ranks, number: int, shift: int, backend: Backend) -> tuple[Array, Array]:
    """Offsets and columns of the rows of such a range, without those of vertices that no row names.

    CountError: an edge is of such a vertex, since the source gave other edges when it was read again.
    """
    _, starts, vertices = ranks
    bound = vertices << shift
    start, end = (min(key, bound) for key in [0, *starts, bound][number : number + 2])
    if len(keys) and int(keys[-1]) >= bound:
        raise _other_edges(start >> shift, end >> shift)
    return backend.edges.rows(keys, start, (end - start) >> shift, 1 << shift)


def keys_of_slab(slab: tuple[Array, Array], first: int, shift: int, backend: Backend) -> Array:
    """The keys of a slab whose first row is `first`."""
    offsets, columns = slab
    keys = keys_of_rows(columns, 0, offsets[1:] - offsets[:-1], shift, backend)
    keys += first << shift
    return keys


def _other_edges(first: int, end: int) -> CountError:
    return CountError(
        f"edges of other rows than {first:,} to {end:,} were sent to these: the source has given other edges when a "
        "worker that ended had it read again; count a source that does not change"
    )


def keys_of_samples(
    vertices: VertexMap | IdRange, samples: list[Any], shift: int, backend: Backend, rank: Array | None = None
) -> list[Any]:
    """Keys of sampled edges by any id map, computed on the backend's device; with ranks oriented ones."""
    ends = backend.array.asarray(np.concatenate(samples, axis=1))  # together: each copy is a wait
    keys = on_host(_keys_of_ends((ends[0], ends[1]), vertices, shift, backend, rank))
    return np.split(keys, np.cumsum([ends.shape[1] for ends in samples])[:-1])


def frame_of_places(ends: Array, numbers: Array, backend: Backend) -> Frame:
    """A frame of dense ids, int32, from those of the frame's own vertices."""
    return backend.wrap(*(numbers.take(end) for end in ends))


def keys_of_places(ends: Array, numbers: Array, shift: int, backend: Backend) -> Array:
    """Keys of a frame's edges, from the dense ids of the frame's own vertices."""
    xp = backend.array
    a, b = numbers.take(ends[0]), numbers.take(ends[1])
    return pack(xp.minimum(a, b), xp.maximum(a, b), shift)


def _columns(frame: Frame, vertices: VertexMap | IdRange) -> tuple[Any, Any]:
    """The ends of a frame's edges: columns of text, or arrays of integers."""
    return (frame["src"], frame["dst"]) if isinstance(vertices, TextMap) else arrays_of(frame)


def _keys_of_ends(
    ends: tuple[Any, Any], vertices: VertexMap | IdRange, shift: int, backend: Backend, rank: Array | None
) -> Array:
    """Keys of edges, with the scratch of one chunk; with ranks oriented ones."""
    if isinstance(vertices, IdRange | RangeMap):
        return backend.edges.keys(*ends, vertices, shift, rank)
    keys = backend.array.empty(len(ends[0]), dtype="int64")
    for start, (src, dst) in _dense_chunks(ends, vertices, backend):
        keys[start : start + len(src)] = backend.edges.keys(src, dst, DENSE, shift, rank)
    return keys


def _dense_chunks(
    ends: tuple[Any, Any], vertices: VertexMap, backend: Backend
) -> Iterator[tuple[int, tuple[Array, Array]]]:
    """Yield the first edge and the dense ids of each chunk; the ends of a loop are equal, or not ids."""
    for start in range(0, len(ends[0]), backend.chunk):
        columns = (getattr(end, "iloc", end)[start : start + backend.chunk] for end in ends)
        src, dst = (vertices.dense(column).astype("int32", copy=False) for column in columns)
        yield start, (src, dst)
