"""Canonicalization: reads a source to edge frames, and makes them distinct undirected edges over dense ids.

Loops are removed, directions dropped, and of equal edges one is kept. From here on an edge is one int64 key
(`edge_keys`) and a partition an array of keys: 8 bytes an edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dasktc.backends import ON_DEVICE, PARTITION_EDGES, Backend, get_backend
from dasktc.backends.cuda.edges import RankedIds
from dasktc.executors.base import Executor
from dasktc.io.source import Part, Source
from dasktc.options import Ids
from dasktc.pipeline.edge_keys import distinct, pack, shift_of
from dasktc.pipeline.id_maps import VertexMap
from dasktc.pipeline.sharded.vectors import zipped
from dasktc.pipeline.shuffle import exchange, splitters
from dasktc.pipeline.vertex_ids import Span, SplitIds

__all__ = ["Canonical", "Frames", "canonical", "partition_count", "read"]

Array = Any
Frame = Any
ROW_BYTES = {"int": 160, "text": 640}
"""Bytes that a row of a chunk of a part takes: decoded, as a frame, without loops, its ids looked up, and as keys."""
EDGE_BYTES = {"cpu": 40, "cuda": 240}
"""Bytes an edge of the stage that takes most memory for a partition: `cut` sorts a copy of a partition in a file.

On a device six times as many, so that most of the budget is left for results, which then stay there.
"""
SPLIT_BYTES = 100
"""The same where vertex vectors are sharded: a partition then holds its own vertices in addition to its edges."""
SMALL, MEDIUM = 1 << 18, 1 << 21
"""Edges below which one partition is enough, and edges worth a task."""
PIECES, PIECE_EDGES, SENT_EDGES = 8, 1 << 26, 1 << 27
"""A device holds its edges in PIECES arrays of at least PIECE_EDGES edges (SENT_EDGES on a cluster, where every pair of
arrays is a task), so that the results and the sorting scratch of one array are small compared to all edges."""
SPLIT_EDGES, LEAST_PIECES = 1 << 22, 3
"""Edges from which on a device holds them in three arrays at the least: what one takes besides is a third of all."""


class Canonical(NamedTuple):
    """The canonical edges of a graph.

    Attributes
    ----------
    partitions : list of handles of int64 arrays
        Distinct keys, ascending within and across partitions.
    edges : int
        How many there are.
    """

    partitions: list[Any]
    edges: int


class Frames(NamedTuple):
    """The edge frames of a source, and what reading has counted.

    Attributes
    ----------
    frames : list of handles of edge frames; at least one
        Without loops; but pairs of arrays, src and dst, with loops, where ids are integers and the backend has fused
        edge functions (`Backend.edges`).
    rows, loops : int
        Rows read, and how many of them were loops.
    span : Span or None
        Smallest and largest id, where the pass that removes loops has measured them.
    """

    frames: list[Any]
    rows: int
    loops: int
    span: Span | None


class _Counts(NamedTuple):
    rows: int
    loops: int
    span: Span | None = None


def read(executor: Executor, source: Source, backend: str) -> Frames:
    """Read the parts of a source, each on whichever worker is free.

    Returns
    -------
    Frames
    """
    parts = _joined(source.parts, executor, backend) or (_NoPart(source.ids),)
    upstream = executor.upstream([part.upstream for part in parts])
    calls = zip(parts, upstream, strict=True)
    if executor.memory_per_call is None:
        results = [executor.submit("read", _read, part, up, backend) for part, up in calls]
        frames, counts = executor.transpose("read", results, 2)
    else:
        most = max(1, executor.memory_per_call // ROW_BYTES[source.ids])
        streamed = executor.stream("read", _read_chunks, [(*call, most, backend) for call in calls])
        frames, counts = streamed[::2], streamed[1::2]
    totals = executor.gather(counts)
    spans = [of.span for of in totals if of.span is not None]
    span = Span.of(spans) if len(spans) == len(totals) else None
    if source.ids == "int" and backend in ON_DEVICE:
        frames = _split_frames(executor, frames, [of.rows for of in totals])
    return Frames(frames, sum(of.rows for of in totals), sum(of.loops for of in totals), span)


def _joined(parts: tuple[Part, ...], executor: Executor, backend: str) -> tuple[Part, ...]:
    """Join parts on a device to few large ones where they can be: a large one costs little more than a small one."""
    if (
        backend not in ON_DEVICE
        or executor.memory_per_call is not None
        or not all(hasattr(part, "joined") for part in parts)
    ):
        return parts
    rows = sum(part.rows for part in parts)  # type: ignore[attr-defined]
    most, merged = min(_piece_edges(rows, executor), -(-rows // executor.workers)), list[Any]()
    for part in parts:
        fits = merged and merged[-1].rows + part.rows <= most  # type: ignore[attr-defined]
        both = merged[-1].joined(part) if fits else None
        merged[-1:] = [both] if both else [*merged[-1:], part]
    return tuple(merged)


@dataclass(frozen=True)
class _NoPart:
    """Stands in for the parts of a source that has none: an empty frame."""

    ids: Ids
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Frame:
        none = backend.frame.Series([], dtype="int32" if self.ids == "int" else "str")
        return backend.frame.DataFrame({"src": none, "dst": none})


def _read(part: Part, upstream: Any, backend: str) -> tuple[Frame, _Counts]:
    return _without_loops(get_backend(backend).read(part, upstream), backend)


def _split_frames(executor: Executor, frames: list[Any], rows: list[int]) -> list[Any]:
    """Slice frames above the size limit of a device's edge arrays; the slices are views."""
    result, most = list[Any](), _piece_edges(sum(rows), executor)
    while frames:
        frame, size = frames.pop(), rows.pop()
        result += [frame] if size <= most else executor.stream("read", _frame_slices, [(frame, most)])
    return result


def _piece_edges(edges: int, executor: Executor) -> int:
    """Most edges of one of a device's edge arrays."""
    least = SENT_EDGES if executor.distributed else min(PIECE_EDGES, max(SPLIT_EDGES, -(-edges // LEAST_PIECES)))
    return max(least, -(-edges // (PIECES * executor.workers)))


def _frame_slices(ends: tuple[Array, Array], most: int) -> Iterator[tuple[Array, Array]]:
    for first in range(0, len(ends[0]), most):
        yield _ends(ends, first, first + most)


def _read_chunks(part: Part, upstream: Any, most: int, backend: str) -> Iterator[Any]:
    """Read a part in frames of `most` rows or fewer, each followed by its counts.

    A part that cannot be read in chunks is read at once, and its frame is sliced.
    """
    chosen = get_backend(backend)
    chunks = getattr(part, "chunks" if backend == "cpu" else "chunks_on_device", None)
    for frame in chunks(chosen, most) if chunks else [chosen.read(part, upstream)]:
        rows = len(frame[0] if isinstance(frame, tuple) else frame)
        for first in range(0, max(1, rows), most):
            some = _ends(frame, first, first + most) if isinstance(frame, tuple) else frame.iloc[first : first + most]
            yield from _without_loops(some, backend)


def _without_loops(frame: Frame, backend: str) -> tuple[Frame, _Counts]:
    own = get_backend(backend).edges
    if own is not None and (isinstance(frame, tuple) or frame["src"].dtype.kind in "iu"):
        ends = frame if isinstance(frame, tuple) else (frame["src"].values, frame["dst"].values)
        facts = own.facts(*ends)
        return ends, _Counts(len(ends[0]), facts.loops, Span.of_frame(facts.low, facts.high, len(ends[0])))
    rows = len(frame)
    if frame["src"].dtype.kind in "iu" and not bool((frame["src"].values == frame["dst"].values).any()):
        return frame, _Counts(rows, 0)  # compared as arrays, which is cheaper
    proper = (frame["src"] != frame["dst"]).astype(bool)  # comparing text, pandas 3.0 returns an Arrow array
    kept = int(proper.sum())
    return (frame if kept == rows else frame[proper].reset_index(drop=True)), _Counts(rows, rows - kept)


def canonical(executor: Executor, frames: list[Any], rows: int, vertices: Any, size: int, backend: str) -> Canonical:
    """Relabel frames by dense ids, drop directions, and keep each edge once, by one distributed sort.

    Parameters
    ----------
    executor : Executor
    frames : list of handles of edge frames, as `read` gives them
        Emptied, so that each is freed once it is relabelled.
    rows : int
        Rows of all frames that are no loops.
    vertices : handle of VertexMap, or SplitIds
        The lists of SplitIds are emptied too.
    size : int
        Number of vertices.
    backend : str
    """
    shift = shift_of(size)
    if isinstance(vertices, SplitIds):
        frames.clear()
        keys = executor.map("canonical", _own_keys, zipped(vertices.edges, vertices.numbers), shift, backend)
        count = partition_count(rows, executor, backend, SPLIT_BYTES)
    else:
        keys = executor.map("canonical", _keys, frames, vertices, shift, backend)
        count = partition_count(rows, executor, backend)
    starts = splitters(executor, "canonical", keys, rows, count)
    ranges = exchange(executor, "canonical", keys, starts, 1 << 2 * shift, backend)
    partitions = executor.map("canonical", distinct, ranges, 1 << 2 * shift, backend)
    return Canonical(partitions, sum(executor.gather(executor.map("canonical", len, list(partitions)))))


def _keys(frame: Frame, vertices: VertexMap, shift: int, backend: str) -> Array:
    own = get_backend(backend).edges
    if own is None:
        return _packed((frame["src"], frame["dst"]), vertices, shift, backend)
    if isinstance(vertices, RankedIds):
        return own.keys(frame[0], frame[1], vertices, shift)
    rows, chunk = len(frame[0] if isinstance(frame, tuple) else frame), get_backend(backend).chunk
    keys = get_backend(backend).array.empty(rows, dtype="int64")
    for start in range(0, rows, chunk):
        ends = _ends(frame, start, start + chunk)
        part = keys[start : start + chunk]
        part[:] = _packed(ends, vertices, shift, backend)
        if isinstance(frame, tuple):
            part[ends[0] == ends[1]] = 0  # marks a loop, whose ends need not be among the ids
    return keys


def _own_keys(given: list[Any], shift: int, backend: str) -> Array:
    """Keys of a frame's edges, from the dense ids of that frame's vertices alone."""
    (src, dst), by_shard = given
    xp = get_backend(backend).array
    numbers = xp.concatenate(by_shard)
    a, b = numbers.take(src), numbers.take(dst)
    return pack(xp.minimum(a, b), xp.maximum(a, b), shift)


def _ends(frame: Frame, start: int, stop: int) -> tuple[Any, Any]:
    """Both columns of a range of rows, of a frame or of a pair of arrays."""
    if isinstance(frame, tuple):
        return frame[0][start:stop], frame[1][start:stop]
    rows = frame.iloc[start:stop]
    return rows["src"], rows["dst"]


def _packed(ends: tuple[Any, Any], vertices: VertexMap, shift: int, backend: str) -> Array:
    xp, (a, b) = get_backend(backend).array, (vertices.dense(end) for end in ends)
    return pack(xp.minimum(a, b), xp.maximum(a, b), shift)


def partition_count(edges: int, executor: Executor, backend: str, edge_bytes: int | None = None) -> int:
    """Number of partitions for so many edges: at most four a worker, unless memory or the backend needs more."""
    workers, largest = executor.workers, PARTITION_EDGES[backend]
    if executor.memory_per_call is not None:
        largest = min(largest, max(1, executor.memory_per_call // (edge_bytes or EDGE_BYTES[backend])))
    if backend in ON_DEVICE:
        largest = min(largest, _piece_edges(edges, executor))
    if edges < min(SMALL, largest):
        return 1
    shared = 1 if workers == 1 or edges < SMALL else min(4 * workers, max(workers, edges // MEDIUM))
    return max(shared, -(-edges // largest))
