"""Numbers vertices: arithmetic of dense ids 0..V-1, which ascend as the caller's ids do."""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import Backend, lazy_backend
from dasktc.pipeline.stages.edge_keys import ranked
from dasktc.pipeline.stages.id_maps import (
    SortedMap,
    TableMap,
    TextMap,
    VertexMap,
    arrays_of,
    check_size,
)
from dasktc.pipeline.stages.shards import ValueOps, unite

__all__ = [
    "HASHED_AT_A_TIME",
    "IdRange",
    "clear_marks",
    "distinct_integers",
    "distinct_texts",
    "listed",
    "map_of_degrees",
    "map_of_integers",
    "map_of_marks",
    "map_of_texts",
    "mark_ids",
    "places_of_integers",
    "places_of_texts",
    "text_size",
    "texts",
    "unite_texts",
    "without_loops",
]

Array = Any
CPU = lazy_backend("cpu")
Frame = Any
HASHED_AT_A_TIME = 1 << 13


class IdRange(NamedTuple):
    """Integer ids of a narrow range, whose offsets serve as dense ids until the degrees tell which ids occur.

    Attributes
    ----------
    low, width : int
        The smallest id, and the number of ids up to the largest one.
    """

    low: int
    width: int


def places_of_integers(frames: Frame | list[Frame], low: int, width: int, backend: Backend) -> list[Array]:
    """Distinct ids of a frame, ascending, and the positions of both ends of its edges among them."""
    xp, pairs = backend.array, list[Any](map(arrays_of, listed(frames)))
    if backend.raw_edges is not None:  # its frames still contain loops
        pairs = [without_loops(*pair) for pair in pairs]
    ends = xp.concatenate([end.astype("int64", copy=False) for of in zip(*pairs, strict=True) for end in of])
    if width < 2**63:
        ends -= low
        ids, places = ranked(ends, max(1, width), backend)
        ids += low
    else:
        ids, places = xp.unique(ends, return_inverse=True)
    return [ids, places.astype("int32", copy=False).reshape(2, -1)]


def text_size(ids: Any, backend: Backend) -> tuple[int, int]:
    """Number of text ids, and their bytes."""
    return len(ids), int(backend.text.arrow(ids).nbytes)


def places_of_texts(given: list[Any], backend: Backend) -> list[Any]:
    """As `places_of_integers`, from frames and their distinct text ids."""
    frames, ids = given
    known, xp = TextMap(backend.text.ascending(ids), backend), backend.array
    places = [
        xp.concatenate([known.dense(frame[name]).astype("int32", copy=False) for frame in listed(frames)])
        for name in ("src", "dst")
    ]
    return [backend.text.arrow(known.ids), xp.stack(places)]


def clear_marks(width: int, backend: Backend) -> Array:
    """Allocate cleared flags, one per id of a range, in the backend's own form where it has one."""
    own = backend.raw_edges
    return backend.array.zeros(width, dtype=bool) if own is None else own.marks(width)


def mark_ids(present: Array, frame: Frame, low: int, backend: Backend) -> Array:
    """Mark the ids of a frame, or of a list of frames, in place."""
    if isinstance(frame, list):
        for one in frame:
            mark_ids(present, one, low, backend)
        return present
    backend.edges.mark(present, *arrays_of(frame), low)
    return present


def map_of_marks(present: Array, low: int, width: int, backend: Backend) -> VertexMap:
    """Build the map of the ids of a range that are marked."""
    xp, own = backend.array, backend.raw_edges
    if own is not None:
        ranked_ids: VertexMap = own.ranked(present, low, width)
        check_size(ranked_ids.size)
        return ranked_ids
    ids = xp.flatnonzero(present)
    check_size(len(ids))
    table = xp.zeros(len(present), dtype="int32")
    table[ids] = xp.arange(len(ids), dtype="int32")
    return TableMap(low, table, ids + low if low else ids)


def map_of_degrees(vectors: list[Array], ids: IdRange, backend: Backend) -> VertexMap:
    """Build the map of the ids of a range that have a degree; `vectors` are those that `orient` made, degrees first."""
    xp, own = backend.array, backend.raw_edges
    present = vectors[0] > 0
    if own is None:
        return map_of_marks(present, *ids, backend)
    there, marks = xp.flatnonzero(present) + ids.low, own.marks(ids.width)
    own.mark(marks, there[:-1], there[1:], ids.low)  # edges from each id to the next: no vertex is alone
    return map_of_marks(marks, *ids, backend)


def distinct_integers(frames: Frame | list[Frame], backend: Backend) -> Array:
    """Distinct ids of a frame, or of a list of frames, ascending."""
    if isinstance(frames, list):
        return unite([distinct_integers(frame, backend) for frame in frames], backend)
    frame = frames
    distinct = backend.distinct
    ends = without_loops(*frame) if isinstance(frame, tuple) else [frame[name].values for name in ("src", "dst")]
    return unite([distinct(end).astype("int64", copy=False) for end in ends], backend)


def without_loops(src: Array, dst: Array) -> list[Array]:
    """Both ends of all edges that are not loops."""
    proper = src != dst
    return [src, dst] if bool(proper.all()) else [src[proper], dst[proper]]


def distinct_texts(frames: Frame | list[Frame], backend: Backend) -> Any:
    """Distinct text ids of a frame, or of a list of frames."""
    return backend.text.unite([frame[end] for frame in listed(frames) for end in ("src", "dst")])


def listed(frames: Frame | list[Frame]) -> list[Frame]:
    """A list of frames, from such a list or from a single frame."""
    return frames if isinstance(frames, list) else [frames]


def unite_texts(columns: list[Any], backend: Backend) -> Any:
    """Merge columns of text ids to distinct ones."""
    return backend.text.unite(columns)


def texts(backend: Backend) -> ValueOps:
    """Operations of `planes.distinct` on columns of text ids, which are on the host; numbers are the backend's."""
    return ValueOps(_cut_text, _ascending_union, partial(_find_text, backend=backend), _hash_text)


def _ascending_union(columns: list[Any]) -> Any:
    return CPU.text.ascending(CPU.text.unite(columns))


def _cut_text(ids: Any, starts: list[str]) -> list[Any]:
    """Cut ascending ids into copies: Arrow sends a slice together with the whole array that it was cut from."""
    import pyarrow as pa

    cuts = [bisect_left(range(len(ids)), start, key=lambda place: ids[place].as_py()) for start in starts]
    return [pa.concat_arrays([ids[begin:end]]) for begin, end in pairwise([0, *cuts, len(ids)])]


def _find_text(values: Any, among: Any, backend: Backend) -> Array:
    return backend.array.asarray(CPU.text.dense(among, values))


def _hash_text(ids: Any) -> Array:
    """Hashes of text ids below 2^63, computed in chunks because each id temporarily becomes a Python object."""
    import pandas as pd

    hashes = np.empty(len(ids), dtype="uint64")
    for start in range(0, len(ids), HASHED_AT_A_TIME):
        chunk = ids[start : start + HASHED_AT_A_TIME].to_numpy(zero_copy_only=False)
        hashes[start : start + HASHED_AT_A_TIME] = pd.util.hash_array(chunk, categorize=False)
    return hashes >> np.uint64(1)


def map_of_texts(ids: Any, backend: Backend) -> TextMap:
    """Build the map of distinct text ids."""
    check_size(len(ids))
    return TextMap(backend.text.ascending(ids), backend)


def map_of_integers(ids: Array, backend: Backend) -> SortedMap:
    """Build the map of ascending integer ids."""
    check_size(len(ids))
    return SortedMap(ids, backend)
