"""Canonicalization: reads a source to edge frames, and turns them into distinct undirected edges over dense ids.

Loops are removed, directions dropped, and of equal edges one is kept. From here on an edge is one int64 key
(`edge_keys`) and a partition is an array of keys: 8 bytes an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import PARTITION_EDGES, Backend
from dasktc.backends.csr import on_host
from dasktc.backends.protocol import Buckets
from dasktc.backends.vertex_maps import RangeMap
from dasktc.executors.base import Executor, Fold
from dasktc.executors.dask.worker_events import stage_ended, with_steps
from dasktc.executors.measured import Measured
from dasktc.io.evidence import Notes, Reading, judge_all, runs_of, say_zeros
from dasktc.io.source import Part, Source
from dasktc.options import Ids
from dasktc.pipeline.edge_keys import distinct, pack, shift_of
from dasktc.pipeline.id_maps import VertexMap, arrays_of
from dasktc.pipeline.sharded.vectors import with_entries, zipped
from dasktc.pipeline.shuffle import Inputs, deal_here, quantiles, redistribute, sample_step, splitters
from dasktc.pipeline.vertex_ids import IdRange, Span, SplitIds
from dasktc.planning.placement import ONE_PARTITION

__all__ = ["Canonical", "Frames", "canonical", "edges_of", "judged", "noted", "partition_count", "read"]

Array = Any
Frame = Any
ROW_BYTES = {"int": 160, "text": 640}
"""Bytes for each row of a chunk of a part: decoded, as a frame, without loops, with its ids looked up, and as keys."""
EDGE_BYTES = {"cpu": 40, "cuda": 240}
"""Bytes an edge of a partition at the stage that takes most memory: `cut` sorts a copy of a partition from a file.

Six times as many on a device, so that most of the budget is left for results, which then stay there.
"""
SAMPLED = 1 << 8
"""Edges sampled from each array that a device reads within a budget."""
SPLIT_BYTES = 100
"""As EDGE_BYTES, where vertex vectors are sharded: a partition then holds its own vertices in addition to its edges."""
PIECES, PIECE_EDGES = 8, 1 << 26
"""In one process a device holds its edges in PIECES arrays of at least PIECE_EDGES edges, so that the results and the
sorting scratch of one array are small compared to all edges. On a cluster every pair of arrays would be a task."""
MADE_TWICE = 1 << 21
"""Rows from which keys are not stored before the sort: both passes over them make them anew from the edges' ends.

That takes as long as writing them, and no memory.
"""
SPLIT_EDGES, LEAST_PIECES = 1 << 22, 3
"""Edges from which a device holds them in at least LEAST_PIECES arrays: one array's scratch is a third of all edges."""


class Canonical(NamedTuple):
    """The canonical edges of a graph.

    Attributes
    ----------
    partitions : list of handles of int64 arrays
        Distinct keys, ascending within and across partitions.
    rows : int
        Rows that they were made of, without loops: an upper bound on their number.
    folded : handle, or None
        Result of `canonical`'s fold over the partitions.
    sample : array of int64, or None
        Keys of sampled edges, loops and duplicates among them, on the host; None where edges were not sampled.
    """

    partitions: list[Any]
    rows: int
    folded: Any = None
    sample: Any = None


class Frames(NamedTuple):
    """The edge frames of a source, and the statistics gathered while reading.

    Attributes
    ----------
    frames : list of handles of edge frames, or of lists of edge frames; at least one
        Without loops. On a device pairs of arrays (src, dst), loops included, where ids are integers (`Edges.proper`).
    rows, loops : int
        Rows read, and how many of them were loops.
    span : Span or None
        Smallest and largest id, where ids are integers.
    samples : list of (array of shape (2, any), int)
        For each handle a sample of its edges and their number, where ids are integers.
    at : sequence of str or None
        The worker that holds each frame, where Dask chose it.
    reading : Reading
        What was read.
    """

    frames: list[Any]
    rows: int
    loops: int
    span: Span | None
    samples: Sequence[tuple[Any, int]] = ()
    at: Sequence[str | None] = ()
    reading: Reading = Reading()


class _Counts(NamedTuple):
    """Statistics of frames: rows, loops, where ids are integers their span and a sample of the edges; parts' notes."""

    rows: int
    loops: int
    span: Span | None = None
    sample: Any = None
    notes: tuple[Notes, ...] = ()


def read(executor: Executor, source: Source) -> Frames:
    """Read the parts of a source; on a cluster neighbouring parts are grouped to one partition per worker thread."""
    parts = source.parts or (_NoPart(source.ids),)
    if executor.memory_per_call is None:
        groups = _grouped(parts, executor)
        upstream = iter(executor.upstream([part.upstream for group in groups for part in group]))
        step = partial(sample_step, ranges=executor.workers, parts=len(groups))
        runs = runs_of(len(parts))
        calls = [(group, [next(upstream) for _ in group], step, executor.backend, runs) for group in groups]
        placed = any(part.upstream is not None for part in parts)  # data on workers: each part is read where it is
        frames, totals = executor.measured("read-rows", _read, calls, () if placed else executor.homes(len(groups)))
        at = executor.holders(frames) if placed else ()
    else:
        most = max(1, (executor.memory_in_parallel or executor.memory_per_call) // ROW_BYTES[source.ids])
        if executor.backend.on_device:
            parts = _joined(parts, most)
        upstream_of = executor.upstream([part.upstream for part in parts])
        groups, runs = [(part,) for part in parts], runs_of(len(parts))
        given = [(part, up, most, executor.backend, runs) for part, up in zip(parts, upstream_of, strict=True)]
        streamed = executor.stream("read-rows", _read_chunks, given)
        frames, totals, at = streamed[::2], executor.gather(streamed[1::2]), ()
    rows = sum(of.rows for of in totals)
    notes = [of for counts in totals for of in counts.notes]
    reading = replace(judged(source, [part for group in groups for part in group], notes), rows=rows)
    spans = [of.span for of in totals if of.span is not None]
    span = Span.of(spans) if len(spans) == len(totals) else None
    samples = [(of.sample, of.rows - of.loops) for of in totals if of.sample is not None]
    if source.ids == "int" and executor.backend.on_device and not executor.exchanges:
        frames = _split_frames(executor, frames, [of.rows for of in totals])
    elif not executor.distributed and executor.memory_per_call is None and len(frames) < executor.workers:
        frames = _shared_out(executor, frames, rows)
    return Frames(frames, rows, sum(of.loops for of in totals), span, samples, at, reading)


def judged(source: Source, parts: Sequence[Part], notes: Sequence[Notes]) -> Reading:
    """Judge the choice of a source's id columns by the rows that its parts noted, and return what was read.

    Parameters
    ----------
    source : Source
    parts : sequence of Part
        Those that were read, in order.
    notes : sequence of Notes
        Of those of them that note their rows.

    Raises
    ------
    InputError
        As `evidence.judge`.
    """
    noting = [part for part in parts if hasattr(part, "noting")]
    choices = [(getattr(part, "choice", None), getattr(part, "begins", True)) for part in noting]
    samples = [(choice, of.sample(begins)) for (choice, begins), of in zip(choices, notes, strict=True)]
    judge_all(samples)
    if not any(doubt.zeros for part in parts if (doubt := getattr(part, "doubt", None))):  # else it was said
        say_zeros(samples)
    reading = source.read
    return replace(reading, comments_below=reading.comments_below + sum(of.comments for of in notes))


def _grouped(parts: Sequence[Part], executor: Executor) -> list[tuple[Part, ...]]:
    """Group neighbouring parts: on a cluster into as many groups of about equal size as there are worker threads.

    Parts that carry their rows, or that need a value first, stay alone. Generated parts are joined and cut anew.
    """
    if not executor.exchanges or any(part.upstream is not None or hasattr(part, "places") for part in parts):
        return [
            (part,) for part in (_joined(parts, _most_joined(parts, executor)) if executor.backend.on_device else parts)
        ]
    joined = _joined(parts, sum(map(_size, parts)))
    if len(joined) == 1 and hasattr(joined[0], "shares"):
        return [(share,) for share in joined[0].shares(executor.workers)]
    known = [size for size in map(_size, parts) if size]
    sizes = [_size(part) or max(1, sum(known) // max(1, len(known))) for part in parts]
    total, groups, before = sum(sizes), [list[Part]() for _ in range(executor.workers)], 0
    for part, size in zip(parts, sizes, strict=True):
        groups[min(len(groups) - 1, (2 * before + size) * len(groups) // (2 * total))].append(part)
        before += size
    together = (
        _joined(group, sum(map(_size, group))) if executor.backend.on_device else tuple(group) for group in groups
    )
    return [group for group in together if group]


def _size(part: Any) -> int:
    """Rows or bytes of a part, to compare it with other parts of its source; 0 where the part states neither."""
    start, stop, rows = (getattr(part, name, None) for name in ("start", "stop", "rows"))
    if isinstance(rows, int):
        return rows
    return stop - start if isinstance(start, int) and isinstance(stop, int) else 0


def _joined(parts: Sequence[Part], most: int) -> tuple[Part, ...]:
    """Join generated parts into larger ones of at most `most` rows: a large part takes as many calls as a small one."""
    if not all(hasattr(part, "joined") for part in parts):
        return tuple(parts)
    merged = list[Any]()
    for part in parts:
        fits = merged and merged[-1].rows + part.rows <= most  # type: ignore[attr-defined]
        both = merged[-1].joined(part) if fits else None
        merged[-1:] = [both] if both else [*merged[-1:], part]
    return tuple(merged)


@dataclass(frozen=True)
class _NoPart:
    """The part of a source that has none: reads as an empty frame."""

    ids: Ids
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Frame:
        none = backend.frame.Series([], dtype="int32" if self.ids == "int" else "str")
        return backend.frame.DataFrame({"src": none, "dst": none})


def _read(
    parts: tuple[Part, ...], upstream: list[Any], step_of: Callable[[int], int], backend: Backend, runs: int = 1
) -> Measured:
    """Read parts, drop loops and sample every `step_of(rows)`-th edge: a frame, or one frame a part."""
    noting, notes = zip(*(noted(part, runs) for part in parts), strict=True)
    pairs = list(zip(noting, upstream, strict=True))
    made = [_without_loops(backend.read(*pair), backend) for pair in with_steps(pairs)]
    stage_ended("read")
    frames, counts = [frame for frame, _ in made], [of for _, of in made]
    spans, total = [of.span for of in counts if of.span is not None], sum(of.rows for of in counts)
    known = len(spans) == len(counts)
    step = step_of(total)
    sample = np.concatenate([_sample(frame, step) for frame in frames], axis=1) if known else None
    of_parts = tuple(of for of in notes if of is not None)
    facts = _Counts(total, sum(of.loops for of in counts), Span.of(spans) if known else None, sample, of_parts)
    return Measured(frames[0] if len(frames) == 1 else frames, facts)


def _sample(frame: Frame, step: int) -> Array:
    """Both ends of every `step`-th edge of a frame of integers, on the host."""
    ends = frame if isinstance(frame, tuple) else (frame["src"].values, frame["dst"].values)
    return np.stack([on_host(end[::step]).astype("int64") for end in ends])


def _most_joined(parts: Sequence[Any], executor: Executor) -> int:
    rows = sum(getattr(part, "rows", 0) for part in parts)
    return min(_piece_edges(rows, executor), -(-rows // executor.workers))


def _split_frames(executor: Executor, frames: list[Any], rows: list[int]) -> list[Any]:
    """Slice frames above the size limit of a device's edge arrays; the slices are views."""
    result, most = list[Any](), _piece_edges(sum(rows), executor)
    while frames:
        frame, size = frames.pop(), rows.pop()
        result += [frame] if size <= most else executor.stream("read-rows", _frame_slices, [(frame, most)])
    return result


def _shared_out(executor: Executor, frames: list[Any], rows: int) -> list[Any]:
    """Slice the frames of a file that is read as a whole, so that every thread has some; the slices are views."""
    if rows <= ONE_PARTITION:
        return frames
    most = max(ONE_PARTITION, -(-rows // executor.workers))
    return executor.stream("read-rows", _slices_of_rows, [(frame, most) for frame in frames])


def _slices_of_rows(frame: Frame, most: int) -> Iterator[Frame]:
    for first in range(0, max(1, len(frame)), most):
        yield frame.iloc[first : first + most]


def _piece_edges(edges: int, executor: Executor) -> int:
    """Largest number of edges in one edge array of a device."""
    least = min(PIECE_EDGES, max(SPLIT_EDGES, -(-edges // LEAST_PIECES)))
    return max(least, -(-edges // (PIECES * executor.workers)))


def _frame_slices(ends: tuple[Array, Array], most: int) -> Iterator[tuple[Array, Array]]:
    for first in range(0, len(ends[0]), most):
        yield _ends(ends, first, first + most)


def noted(part: Any, runs: int) -> tuple[Any, Notes | None]:
    """Return a part that notes at most `runs` runs of its rows as it is read, and these notes, where it can."""
    if not hasattr(part, "noting"):
        return part, None
    notes = Notes(runs)
    return part.noting(notes), notes


def _read_chunks(part: Part, upstream: Any, most: int, backend: Backend, runs: int = 1) -> Iterator[Any]:
    """Read a part as frames of at most `most` rows, each followed by its statistics; the last ones have the notes.

    A part without a chunked reader is read at once, and its frame is sliced.
    """
    part, notes = noted(part, runs)
    counts: _Counts | None = None
    chunks = getattr(part, "chunks" if backend.name == "cpu" else "chunks_on_device", None)
    for frame in chunks(backend, most) if chunks else [backend.read(part, upstream)]:
        rows = _rows_of(frame)
        for first in range(0, max(1, rows), most):
            some = _ends(frame, first, first + most) if isinstance(frame, tuple) else frame.iloc[first : first + most]
            if counts is not None:
                yield counts
            proper, counts = _without_loops(some, backend)
            if isinstance(proper, tuple):
                counts = counts._replace(sample=_sample(proper, max(1, counts.rows // SAMPLED)))
            yield proper
    assert counts is not None
    yield counts if notes is None else counts._replace(notes=(notes,))


def _without_loops(frame: Frame, backend: Backend) -> tuple[Frame, _Counts]:
    rows = _rows_of(frame)
    if isinstance(frame, tuple) or frame["src"].dtype.kind in "iu":
        frame, loops, low, high = backend.edges.proper(frame)
        return frame, _Counts(rows, loops, Span.of_frame(low, high, _rows_of(frame)))
    proper = (frame["src"] != frame["dst"]).astype(bool)  # pandas 3.0 returns an Arrow array when it compares text
    kept = int(proper.sum())
    return frame if kept == rows else frame[proper].reset_index(drop=True), _Counts(rows, rows - kept)


def canonical(executor: Executor, frames: Frames, vertices: Any, size: int, fold: Fold | None = None) -> Canonical:
    """Relabel frames by dense ids, drop directions, and keep each edge once, by one distributed sort.

    Parameters
    ----------
    executor : Executor
    frames : Frames
        Its list is emptied, so that each is freed once it is relabelled.
    vertices : handle of VertexMap, or IdRange, or SplitIds
        The lists of SplitIds are emptied too.
    size : int
        Number of vertices, or of ids in the range.
    fold : Fold, optional
        Over the partitions, computed in the same pass as these where this process makes them.
    """
    shift, rows = shift_of(size), frames.rows - frames.loops
    if not isinstance(vertices, SplitIds) and sorts_here(executor, rows):
        return Canonical(_canonical_here(executor, frames.frames, rows, vertices, shift), rows)
    count = partition_count(rows, executor, SPLIT_BYTES if isinstance(vertices, SplitIds) else None)
    starts: list[int] | None = None
    keys: list[Array] = []
    if isinstance(vertices, IdRange):
        chosen = None if executor.backend.on_device else _ends_of
        given = Inputs(frames.frames, _keys, (vertices, shift, executor.backend), frames.at, chosen)
        keys = [_range_keys(sample, vertices, shift) for sample, _ in frames.samples]
        starts = quantiles(keys, [edges for _, edges in frames.samples], count)
    else:
        if isinstance(vertices, SplitIds):
            frames.frames.clear()
            ends = zipped(vertices.edges, vertices.numbers)
            given = Inputs(executor.map("canonical", with_entries, ends, _own_keys, shift, executor.backend))
        elif executor.backend.on_device and frames.samples and not executor.exchanges:
            given = Inputs(frames.frames, _keys, (vertices, shift, executor.backend))
            samples = [sample for sample, _ in frames.samples]
            made = executor.submit("canonical", _sample_keys, vertices, samples, shift, executor.backend)
            (keys,) = executor.gather([made])
            starts = quantiles(keys, [edges for _, edges in frames.samples], count)
        else:
            given = Inputs(
                executor.map("canonical", _keys, frames.frames, vertices, shift, executor.backend), at=frames.at
            )
        if starts is None:
            starts = splitters(executor, "canonical", given.handles, rows, count)
    bound = 1 << 2 * shift
    calls = [(bound, executor.backend, span) for span in pairwise([0, *starts, bound])]
    fold = None if executor.distributed else fold
    partitions, folded = redistribute(executor, "canonical", given, rows, starts, bound, distinct, calls, fold=fold)
    return Canonical(partitions, rows, folded, np.concatenate(keys) if keys else None)


def sorts_here(executor: Executor, keys: int) -> bool:
    """Whether the threads of this process sort this number of keys together, in shared memory."""
    return keys >= ONE_PARTITION and executor.shares_memory


def _canonical_here(executor: Executor, frames: list[Any], rows: int, vertices: Any, shift: int) -> list[Any]:
    """Canonical keys as ascending slices of one array; the list of frames is emptied."""
    if isinstance(vertices, IdRange) and rows >= MADE_TWICE:
        keys = [ends for frame in frames for ends in _ends_of(frame, vertices, shift, executor.backend)]
        frames.clear()
    else:
        keys = executor.map("canonical", _keys, frames, vertices, shift, executor.backend)
    dealt = deal_here(executor, "canonical", keys, 1 << 2 * shift)
    return executor.map("canonical", _distinct_here, list(dealt.spans), dealt.buckets, shift)


def _distinct_here(span: tuple[int, int], buckets: Buckets, shift: int) -> Array:
    return buckets.distinct(*span, shift)


def edges_of(executor: Executor, edges: Canonical) -> int:
    """Count the canonical edges."""
    return sum(executor.gather(executor.map("canonical", len, list(edges.partitions))))


def _keys(frames: Frame | list[Frame], vertices: VertexMap | IdRange, shift: int, backend: Backend) -> Array:
    """Keys of the edges of a frame, or of a list of frames."""
    if isinstance(frames, list):
        return backend.array.concatenate([_keys(frame, vertices, shift, backend) for frame in frames])
    frame = frames
    if isinstance(vertices, IdRange | RangeMap):
        return backend.edges.keys(*arrays_of(frame), vertices, shift)
    if not backend.on_device:
        return _packed((frame["src"], frame["dst"]), vertices, shift, backend)
    rows, chunk = _rows_of(frame), backend.chunk
    keys = backend.array.empty(rows, dtype="int64")
    for start in range(0, rows, chunk):
        ends = _ends(frame, start, start + chunk)
        part = keys[start : start + chunk]
        part[:] = _packed(ends, vertices, shift, backend)
        if isinstance(frame, tuple):
            part[ends[0] == ends[1]] = 0  # marks a loop, whose ends need not be among the ids
    return keys


def _ends_of(frames: Frame | list[Frame], ids: IdRange, shift: int, backend: Backend) -> list[Any]:
    """The edges of a frame, or of a list of frames, from which their keys are made as they are read."""
    listed = frames if isinstance(frames, list) else [frames]
    return [backend.edges.lazy_keys(*arrays_of(frame), ids, shift) for frame in listed]


def _range_keys(ends: Any, ids: IdRange, shift: int) -> Array:
    """Keys of sampled edges in NumPy, from the offsets of their ids from the smallest id."""
    high, low = np.minimum(*ends), np.maximum(*ends)
    if ids.low:
        high, low = high.astype("int64") - ids.low, low.astype("int64") - ids.low
    return pack(high, low, shift)


def _sample_keys(vertices: VertexMap, samples: list[Any], shift: int, backend: Backend) -> list[Any]:
    """Keys of sampled edges by any id map, computed on the backend's device."""
    xp = backend.array
    return [on_host(_keys((xp.asarray(src), xp.asarray(dst)), vertices, shift, backend)) for src, dst in samples]


def _own_keys(ends: Array, numbers: Array, shift: int, backend: Backend) -> Array:
    """Keys of a frame's edges, from the dense ids of the frame's own vertices."""
    xp = backend.array
    a, b = numbers.take(ends[0]), numbers.take(ends[1])
    return pack(xp.minimum(a, b), xp.maximum(a, b), shift)


def _rows_of(frame: Frame) -> int:
    return len(frame[0] if isinstance(frame, tuple) else frame)


def _ends(frame: Frame, start: int, stop: int) -> tuple[Any, Any]:
    """Both columns of a range of rows, from a frame or from a pair of arrays."""
    if isinstance(frame, tuple):
        return frame[0][start:stop], frame[1][start:stop]
    rows = frame.iloc[start:stop]
    return rows["src"], rows["dst"]


def _packed(ends: tuple[Any, Any], vertices: VertexMap, shift: int, backend: Backend) -> Array:
    xp, (a, b) = backend.array, (vertices.dense(end) for end in ends)
    return pack(xp.minimum(a, b), xp.maximum(a, b), shift)


def partition_count(edges: int, executor: Executor, edge_bytes: int | None = None) -> int:
    """Number of partitions for the given edges: one per worker thread, unless memory or the backend needs more."""
    largest = PARTITION_EDGES[executor.backend.name]
    if executor.memory_in_parallel is not None:
        largest = min(largest, max(1, executor.memory_in_parallel // (edge_bytes or EDGE_BYTES[executor.backend.name])))
    if executor.backend.on_device and not executor.exchanges:
        largest = min(largest, _piece_edges(edges, executor))
    if edges < min(ONE_PARTITION, largest):
        return 1
    return max(1 if edges < ONE_PARTITION else executor.workers, -(-edges // largest))
