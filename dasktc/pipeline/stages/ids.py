"""Numbers vertices: arithmetic of dense ids 0..V-1, which ascend as the caller's ids do."""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import Backend, lazy_backend
from dasktc.backends.vertex_maps import VertexMap, check_size
from dasktc.pipeline.stages.edge_keys import ranked
from dasktc.pipeline.stages.id_maps import SortedMap, TextMap, arrays_of
from dasktc.pipeline.stages.shards import ValueOps, unite

__all__ = [
    "HASHED_AT_A_TIME", "IdRange", "clear_marks", "distinct_integers", "distinct_texts", "hashes_of_column", "listed",
    "map_of_degrees", "map_of_integers", "map_of_marks", "map_of_texts", "mark_ids", "places_of_integers",
    "places_of_texts", "text_size", "texts", "unite_texts",
]  # fmt: skip

Array = Any
CPU = lazy_backend("cpu")
Frame = Any
HASHED_AT_A_TIME = 1 << 13


class IdRange(NamedTuple):
    """Integer ids of a narrow range, whose offsets serve as dense ids until the degrees tell which ids occur."""

    low: int
    width: int
    """The smallest id, and the number of ids up to the largest one."""


def places_of_integers(frames: Frame | list[Frame], low: int, width: int, backend: Backend) -> list[Array]:
    """Distinct ids of a frame, ascending, and the positions of both ends of its edges among them."""
    xp, pairs = backend.array, [backend.edges.without_loops(*arrays_of(frame)) for frame in listed(frames)]
    ends = xp.concatenate([end.astype("int64", copy=False) for ends in zip(*pairs, strict=True) for end in ends])
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


def places_of_texts(frames: Frame | list[Frame], backend: Backend) -> list[Any]:
    """As `places_of_integers`, of text ids, which one hash table on the host tells apart."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = [backend.text.arrow(frame[name]) for name in ("src", "dst") for frame in listed(frames)]
    chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
    coded = pa.chunked_array(chunks, pa.large_string()).dictionary_encode().combine_chunks()
    order = pc.array_sort_indices(coded.dictionary)
    place = np.empty(len(order), dtype="int32")
    place[order.to_numpy()] = np.arange(len(order), dtype="int32")
    places = place.take(coded.indices.to_numpy()).reshape(2, -1)
    return [coded.dictionary.take(order), backend.array.asarray(places)]


def clear_marks(width: int, backend: Backend) -> Any:
    """Marks of the ids of a range, none of which is set."""
    return backend.edges.marks(width)


def mark_ids(present: Array, frame: Frame, low: int, backend: Backend) -> Array:
    """Mark the ids of a frame, or of a list of frames, in place."""
    if isinstance(frame, list):
        for part_frame in frame:
            mark_ids(present, part_frame, low, backend)
        return present
    backend.edges.mark(present, *arrays_of(frame), low)
    return present


def map_of_marks(marks: Any, low: int, width: int, backend: Backend) -> VertexMap:
    """Build the map of the ids of a range that are marked."""
    ranked_ids = backend.edges.ranked(marks, low, width)
    check_size(ranked_ids.size)
    return ranked_ids


def map_of_degrees(vectors: list[Array], ids: IdRange, backend: Backend) -> VertexMap:
    """Build the map of the ids of a range that have a degree; `vectors` are those of the orientation, degrees first."""
    return map_of_marks(backend.edges.marked(vectors[0] > 0), *ids, backend)


def distinct_integers(frames: Frame | list[Frame], backend: Backend) -> Array:
    """Distinct ids of a frame, or of a list of frames, ascending."""
    if isinstance(frames, list):
        return unite([distinct_integers(frame, backend) for frame in frames], backend)
    ends = backend.edges.without_loops(*arrays_of(frames))
    return unite([backend.distinct(end).astype("int64", copy=False) for end in ends], backend)


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
    return ValueOps(_cut_text, _ascending_union, _join_texts, partial(_find_text, backend=backend), _hash_text)


def _ascending_union(columns: list[Any]) -> Any:
    return CPU.text.ascending(CPU.text.unite(columns))


def _join_texts(columns: list[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_arrays(columns)


def _cut_text(ids: Any, starts: list[str]) -> list[Any]:
    """Cut ascending ids into copies: Arrow sends a slice together with the whole array that it was cut from."""
    import pyarrow as pa

    cuts = [bisect_left(range(len(ids)), start, key=lambda place: ids[place].as_py()) for start in starts]
    return [pa.concat_arrays([ids[begin:end]]) for begin, end in pairwise([0, *cuts, len(ids)])]


def _find_text(values: Any, sorted_texts: Any, backend: Backend) -> Array:
    return backend.array.asarray(CPU.text.dense(sorted_texts, values))


def _hash_text(ids: Any) -> Array:
    """Hashes of text ids below 2^63, computed in chunks because each id temporarily becomes a Python object."""
    import pandas as pd

    hashes = np.empty(len(ids), dtype="uint64")
    for start in range(0, len(ids), HASHED_AT_A_TIME):
        chunk = ids[start : start + HASHED_AT_A_TIME].to_numpy(zero_copy_only=False)
        hashes[start : start + HASHED_AT_A_TIME] = pd.util.hash_array(chunk, categorize=False)
    return hashes >> np.uint64(1)


def hashes_of_column(column: Any) -> Array:
    """Hashes of the text ids of an Arrow column, below 2^63; those that occur often are hashed once."""
    import pyarrow as pa

    text = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    coded = text.dictionary_encode()
    return _hash_text(coded.dictionary).take(coded.indices.to_numpy())


def map_of_texts(ids: Any, backend: Backend) -> TextMap:
    """Build the map of distinct text ids."""
    check_size(len(ids))
    return TextMap(backend.text.ascending(ids), backend)


def map_of_integers(ids: Array, backend: Backend) -> SortedMap:
    """Build the map of ascending integer ids."""
    check_size(len(ids))
    return SortedMap(ids, backend)
