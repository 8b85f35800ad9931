"""Canonicalization: reads a source to edge frames, and turns them into distinct undirected edges over dense ids.

Loops are removed, directions dropped, and of equal edges one is kept. From here on an edge is one int64 key
(`edge_keys`) and a partition is an array of keys: 8 bytes an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import PARTITION_EDGES, Backend
from dasktc.executors.base import Executor, Fold
from dasktc.executors.dask.worker_events import stage_ended, with_steps
from dasktc.executors.measured import Measured
from dasktc.io.evidence import Reading, runs_of
from dasktc.io.source import Part, Source
from dasktc.pipeline.sharded.vectors import zipped
from dasktc.pipeline.shuffle import Inputs, deal_here, redistribute, splitters
from dasktc.pipeline.stages.canonical import (
    distinct_in_buckets,
    ends_of,
    keys_in_range,
    keys_of,
    keys_of_places,
    keys_of_samples,
)
from dasktc.pipeline.stages.edge_keys import distinct, shift_of
from dasktc.pipeline.stages.ids import IdRange
from dasktc.pipeline.stages.read import (
    NoPart,
    Span,
    join_parts,
    judged,
    part_size,
    read_chunks,
    read_parts,
    slices_of_ends,
    slices_of_rows,
)
from dasktc.pipeline.stages.shards import with_entries
from dasktc.pipeline.stages.shuffle import quantiles, sample_step
from dasktc.pipeline.vertex_ids import SplitIds
from dasktc.planning.placement import ONE_PARTITION

__all__ = [
    "Canonical",
    "Frames",
    "canonical",
    "edges_of",
    "partition_count",
    "read",
]

Array = Any
Frame = Any
ROW_BYTES = {"int": 160, "text": 640}
"""Bytes for each row of a chunk of a part: decoded, as a frame, without loops, with its ids looked up, and as keys."""
EDGE_BYTES = {"cpu": 40, "cuda": 240}
"""Bytes an edge of a partition at the stage that takes most memory: `cut` sorts a copy of a partition from a file.

Six times as many on a device, so that most of the budget is left for results, which then stay there.
"""
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
        Without loops. Pairs of arrays (src, dst), loops included, where ids are integers and the backend has fused
        edge functions (`Backend.raw_edges`).
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


def read(executor: Executor, source: Source) -> Frames:
    """Read the parts of a source; on a cluster neighbouring parts are grouped to one partition per worker thread."""
    parts = source.parts or (NoPart(source.ids),)
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
            parts = join_parts(parts, most)
        upstream_of = executor.upstream([part.upstream for part in parts])
        groups, runs = [(part,) for part in parts], runs_of(len(parts))
        given = [(part, up, most, executor.backend, runs) for part, up in zip(parts, upstream_of, strict=True)]
        streamed = executor.stream("read-rows", read_chunks, given)
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


def _grouped(parts: Sequence[Part], executor: Executor) -> list[tuple[Part, ...]]:
    """Group neighbouring parts: on a cluster into as many groups of about equal size as there are worker threads.

    Parts that carry their rows, or that need a value first, stay alone. Generated parts are joined and cut anew.
    """
    if not executor.exchanges or any(part.upstream is not None or hasattr(part, "places") for part in parts):
        return [
            (part,)
            for part in (join_parts(parts, _most_joined(parts, executor)) if executor.backend.on_device else parts)
        ]
    joined = join_parts(parts, sum(map(part_size, parts)))
    if len(joined) == 1 and hasattr(joined[0], "shares"):
        return [(share,) for share in joined[0].shares(executor.workers)]
    known = [size for size in map(part_size, parts) if size]
    sizes = [part_size(part) or max(1, sum(known) // max(1, len(known))) for part in parts]
    total, groups, before = sum(sizes), [list[Part]() for _ in range(executor.workers)], 0
    for part, size in zip(parts, sizes, strict=True):
        groups[min(len(groups) - 1, (2 * before + size) * len(groups) // (2 * total))].append(part)
        before += size
    together = (
        join_parts(group, sum(map(part_size, group))) if executor.backend.on_device else tuple(group)
        for group in groups
    )
    return [group for group in together if group]


def _most_joined(parts: Sequence[Any], executor: Executor) -> int:
    rows = sum(getattr(part, "rows", 0) for part in parts)
    return min(_piece_edges(rows, executor), -(-rows // executor.workers))


def _read(
    parts: tuple[Part, ...], upstream: list[Any], step_of: Callable[[int], int], backend: Backend, runs: int
) -> Measured:
    """Read parts as `read_parts` does; a worker's heartbeats say how far it is."""
    steps = with_steps(list(zip(parts, upstream, strict=True)))
    made = Measured(*read_parts(steps, step_of, backend, runs))
    stage_ended("read")
    return made


def _split_frames(executor: Executor, frames: list[Any], rows: list[int]) -> list[Any]:
    """Slice frames above the size limit of a device's edge arrays; the slices are views."""
    result, most = list[Any](), _piece_edges(sum(rows), executor)
    while frames:
        frame, size = frames.pop(), rows.pop()
        result += [frame] if size <= most else executor.stream("read-rows", slices_of_ends, [(frame, most)])
    return result


def _shared_out(executor: Executor, frames: list[Any], rows: int) -> list[Any]:
    """Slice the frames of a file that is read as a whole, so that every thread has some; the slices are views."""
    if rows <= ONE_PARTITION:
        return frames
    most = max(ONE_PARTITION, -(-rows // executor.workers))
    return executor.stream("read-rows", slices_of_rows, [(frame, most) for frame in frames])


def _piece_edges(edges: int, executor: Executor) -> int:
    """Largest number of edges in one edge array of a device."""
    least = min(PIECE_EDGES, max(SPLIT_EDGES, -(-edges // LEAST_PIECES)))
    return max(least, -(-edges // (PIECES * executor.workers)))


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
        chosen = None if executor.backend.on_device else ends_of
        given = Inputs(frames.frames, keys_of, (vertices, shift, executor.backend), frames.at, chosen)
        keys = [keys_in_range(sample, vertices, shift) for sample, _ in frames.samples]
        starts = quantiles(keys, [edges for _, edges in frames.samples], count)
    else:
        if isinstance(vertices, SplitIds):
            frames.frames.clear()
            ends = zipped(vertices.edges, vertices.numbers)
            given = Inputs(executor.map("canonical", with_entries, ends, keys_of_places, shift, executor.backend))
        elif executor.backend.on_device and frames.samples and not executor.exchanges:
            given = Inputs(frames.frames, keys_of, (vertices, shift, executor.backend))
            samples = [sample for sample, _ in frames.samples]
            made = executor.submit("canonical", keys_of_samples, vertices, samples, shift, executor.backend)
            (keys,) = executor.gather([made])
            starts = quantiles(keys, [edges for _, edges in frames.samples], count)
        else:
            given = Inputs(
                executor.map("canonical", keys_of, frames.frames, vertices, shift, executor.backend), at=frames.at
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
        keys = [ends for frame in frames for ends in ends_of(frame, vertices, shift, executor.backend)]
        frames.clear()
    else:
        keys = executor.map("canonical", keys_of, frames, vertices, shift, executor.backend)
    dealt = deal_here(executor, "canonical", keys, 1 << 2 * shift)
    return executor.map("canonical", distinct_in_buckets, list(dealt.spans), dealt.buckets, shift, executor.backend)


def edges_of(executor: Executor, edges: Canonical) -> int:
    """Count the canonical edges."""
    return sum(executor.gather(executor.map("canonical", len, list(edges.partitions))))


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
