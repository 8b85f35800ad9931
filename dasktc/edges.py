"""Edge frames to canonical edges: unique, undirected, without loops, over dense ids.

From here on an edge is one int64 key (module `keys`) and a partition an array of them: 8 bytes an edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dasktc.backend import PARTITION_EDGES, Backend, get_backend
from dasktc.keys import distinct, pack, shift_of
from dasktc.shuffle import exchange, splitters
from dasktc.sources import Ids, Part, Source
from dasktc.tasks import Tasks
from dasktc.vertices import VertexMap

__all__ = ["Canonical", "canonical", "partition_count", "read"]

Array = Any
Frame = Any
ROW_BYTES = {"int": 160, "text": 640}
"""Bytes for a row of a piece of a part: decoded, as a frame, without loops, its ids looked up, and as keys."""
EDGE_BYTES = 40
"""Bytes that the dearest stage takes for an edge of its partition: cut sorts a copy of what lies in a file."""
SMALL, MEDIUM = 1 << 18, 1 << 21
"""Edges below which one partition is enough, and edges worth a task."""
ROWS = 1 << 26
"""Rows relabelled at a time: their intermediates are a tenth of the largest frame of a device."""


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


def read(tasks: Tasks, source: Source, backend: str) -> tuple[list[Any], int, int]:
    """Read the parts of a source, each on whichever worker is free.

    Returns
    -------
    frames : list of handles of edge frames, loops removed; at least one
    rows, loops : int
        Rows read, and how many of them were loops.
    """
    parts = source.parts or (_NoPart(source.ids),)
    upstream = tasks.upstream([part.upstream for part in parts])
    calls = zip(parts, upstream, strict=True)
    if tasks.room is None:
        results = [tasks.submit("read", _read, part, up, backend) for part, up in calls]
        frames, counts = tasks.pieces("read", results, 2)
    else:
        most = max(1, tasks.room // ROW_BYTES[source.ids])
        found = tasks.stream("read", _read_pieces, [(*call, most, backend) for call in calls])
        frames, counts = found[::2], found[1::2]
    totals = tasks.gather(counts)
    return frames, sum(rows for rows, _ in totals), sum(loops for _, loops in totals)


@dataclass(frozen=True)
class _NoPart:
    """What a source without parts is read from."""

    ids: Ids
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Frame:
        none = backend.frame.Series([], dtype="int32" if self.ids == "int" else "str")
        return backend.frame.DataFrame({"src": none, "dst": none})


def _read(part: Part, upstream: Any, backend: str) -> tuple[Frame, tuple[int, int]]:
    return _without_loops(get_backend(backend).read(part, upstream))


def _read_pieces(part: Part, upstream: Any, most: int, backend: str) -> Iterator[Any]:
    """Read a part in frames of `most` rows or fewer, each followed by its counts.

    It is read piece by piece where it can be, else cut afterwards.
    """
    chosen, by_piece = get_backend(backend), getattr(part, "pieces", None)
    for frame in by_piece(chosen, most) if by_piece else [chosen.read(part, upstream)]:
        for first in range(0, max(1, len(frame)), most):
            yield from _without_loops(frame.iloc[first : first + most])


def _without_loops(frame: Frame) -> tuple[Frame, tuple[int, int]]:
    rows = len(frame)
    if frame["src"].dtype.kind in "iu" and not bool((frame["src"].values == frame["dst"].values).any()):
        return frame, (rows, 0)  # as arrays, which cost little
    proper = (frame["src"] != frame["dst"]).astype(bool)  # of text, pandas 3.0 gives an Arrow array
    kept = int(proper.sum())
    return (frame if kept == rows else frame[proper].reset_index(drop=True)), (rows, rows - kept)


def canonical(tasks: Tasks, frames: list[Any], rows: int, vertices: Any, size: int, backend: str) -> Canonical:
    """Relabel, forget directions, and keep each edge once.

    Parameters
    ----------
    tasks : Tasks
    frames : list of handles of edge frames, loops removed
        Emptied, so that each is freed once it is relabelled.
    rows : int
        Rows of all frames.
    vertices : handle of VertexMap
    size : int
        Number of vertices.
    backend : str
    """
    shift = shift_of(size)
    keys = tasks.map("canonical", _keys, frames, vertices, shift, backend)
    starts = splitters(tasks, "canonical", keys, rows, partition_count(rows, tasks, backend))
    ranges = exchange(tasks, "canonical", keys, starts, 1 << 2 * shift, backend)
    partitions = tasks.map("canonical", distinct, ranges, 1 << 2 * shift, backend)
    return Canonical(partitions, sum(tasks.gather(tasks.map("canonical", len, list(partitions)))))


def _keys(frame: Frame, vertices: VertexMap, shift: int, backend: str) -> Array:
    xp = get_backend(backend).array

    def packed(rows: Frame) -> Array:
        a, b = vertices.dense(rows["src"]), vertices.dense(rows["dst"])
        return pack(xp.minimum(a, b), xp.maximum(a, b), shift)

    if len(frame) <= ROWS:
        return packed(frame)
    keys = xp.empty(len(frame), dtype="int64")
    for start in range(0, len(frame), ROWS):
        keys[start : start + ROWS] = packed(frame.iloc[start : start + ROWS])
    return keys


def partition_count(edges: int, tasks: Tasks, backend: str) -> int:
    """Partitions that edges are cut into: up to four a worker, so that a worker holds few at a time, and each fits."""
    workers, largest = tasks.workers, PARTITION_EDGES[backend]
    if tasks.room is not None:
        largest = min(largest, max(1, tasks.room // EDGE_BYTES))
    if edges < min(SMALL, largest):
        return 1
    shared = 1 if workers == 1 or edges < SMALL else min(4 * workers, max(workers, edges // MEDIUM))
    return max(shared, -(-edges // largest))
