"""Reading: turns parts of a source into edge frames without loops, with the facts that later stages need of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import on_host
from dasktc.backends.edge_sample import Colours, colours_of
from dasktc.io.evidence import Notes, Reading, judge_all, say_zeros
from dasktc.io.source import Part, Source
from dasktc.options import Ids
from dasktc.pipeline.stages.id_maps import arrays_of
from dasktc.pipeline.stages.ids import hashes_of_column

__all__ = [
    "SAMPLED", "Counts", "NoPart", "Span", "edges_of", "facts_of", "join_parts", "judged", "noted", "part_size",
    "read_chunks", "read_parts", "sample_ends", "sampled", "slices_of_rows", "without_loops",
]  # fmt: skip

Array = Any
Frame = Any
SAMPLED = 1 << 8
"""Edges sampled from each array that a device reads within a budget."""


class Counts(NamedTuple):
    """Statistics of frames.

    Attributes
    ----------
    rows, loops : int
    span : Span or None
        Of the ids, where they are integers; else None.
    sample : array of int64, shape (2, n), or None
        Some of the edges, where ids are integers.
    notes : tuple of Notes
        Of the parts.
    skipped : int
        Rows that were read beside `rows` and are not in the source's sample.
    """

    rows: int
    loops: int
    span: Span | None = None
    sample: Any = None
    notes: tuple[Notes, ...] = ()
    skipped: int = 0


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
    noting_parts = [part for part in parts if hasattr(part, "noting")]
    choices = [(getattr(part, "choice", None), getattr(part, "begins", True)) for part in noting_parts]
    samples = [(choice, note.sample(is_first)) for (choice, is_first), note in zip(choices, notes, strict=True)]
    judge_all(samples)
    if not any(doubt.zeros for part in parts if (doubt := getattr(part, "doubt", None))):  # else it was said
        say_zeros(samples)
    reading = source.read
    comments, singles = (sum(getattr(note, name) for note in notes) for name in ("comments", "singles"))
    return replace(reading, comments_below=reading.comments_below + comments, singles=reading.singles + singles)


def part_size(part: Any) -> int:
    """Rows or bytes of a part, to compare it with other parts of its source; 0 where the part states neither."""
    start, stop, rows = (getattr(part, name, None) for name in ("start", "stop", "rows"))
    if isinstance(rows, int):
        return rows
    return stop - start if isinstance(start, int) and isinstance(stop, int) else 0


def join_parts(parts: Sequence[Part], most: int) -> tuple[Part, ...]:
    """Join generated parts into larger ones of at most `most` rows: a large part takes as many calls as a small one."""
    if not all(hasattr(part, "joined") for part in parts):
        return tuple(parts)
    joined_parts = list[Any]()
    for part in parts:
        is_small = joined_parts and joined_parts[-1].rows + part.rows <= most  # type: ignore[attr-defined]
        union = joined_parts[-1].joined(part) if is_small else None
        joined_parts[-1:] = [union] if union else [*joined_parts[-1:], part]
    return tuple(joined_parts)


@dataclass(frozen=True)
class NoPart:
    """The part of a source that has none: reads as an empty frame."""

    ids: Ids
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Frame:
        """Return an empty frame."""
        column = backend.frame.Series([], dtype="int32" if self.ids == "int" else "str")
        return backend.frame.DataFrame({"src": column, "dst": column})


def read_parts(
    parts: Iterable[tuple[Part, Any]],
    step_of: Callable[[int], int],
    backend: Backend,
    runs: int = 1,
    colours: Colours | None = None,
) -> tuple[Frame | list[Frame], Counts]:
    """Read parts, drop loops and sample every `step_of(rows)`-th edge: a frame, or one frame a part, and its facts.

    Each part comes with the value that it is made of, or None. With `colours` only the edges of that sample are kept.
    """
    frames, counts, notes = list[Any](), list[Counts](), list[Notes]()
    for part, upstream in parts:
        noting_part, note = noted(part, runs)
        frame, count = edges_of(backend.read(noting_part, upstream), colours, backend)
        frames.append(frame)
        counts.append(count)
        notes += [note] if note is not None else []
    facts = facts_of(frames, counts, step_of, backend)._replace(notes=tuple(notes))
    return frames[0] if len(frames) == 1 else frames, facts


def facts_of(frames: list[Frame], counts: list[Counts], step_of: Callable[[int], int], backend: Backend) -> Counts:
    """Add up the statistics of frames, and sample every `step_of(rows)`-th edge."""
    spans, total = [count.span for count in counts if count.span is not None], sum(count.rows for count in counts)
    span = sample = None
    step = step_of(total)
    if len(spans) == len(counts):
        span, sample = Span.of(spans), np.concatenate([sample_ends(frame, step, backend) for frame in frames], axis=1)
    loops, skipped = sum(count.loops for count in counts), sum(count.skipped for count in counts)
    return Counts(total, loops, span, sample, skipped=skipped)


def sample_ends(frame: Frame, step: int, backend: Backend) -> Array:
    """Both ends of every `step`-th edge of a frame of integers, on the host."""
    return on_host(backend.array.stack([end[::step] for end in arrays_of(frame)])).astype("int64")


def slices_of_rows(frame: Frame, most: int) -> Iterator[Frame]:
    """Slice a frame into views of at most `most` rows."""
    for first in range(0, max(1, len(frame)), most):
        yield frame if len(frame) <= most else frame.iloc[first : first + most]


def noted(part: Any, runs: int) -> tuple[Any, Notes | None]:
    """Return a part that notes at most `runs` runs of its rows as it is read, and these notes, where it can."""
    if not hasattr(part, "noting"):
        return part, None
    notes = Notes(runs)
    return part.noting(notes), notes


def read_chunks(
    part: Part,
    upstream: Any,
    most: int,
    backend: Backend,
    runs: int = 1,
    colours: Colours | None = None,
    samples: int = 0,
) -> Iterator[Any]:
    """Read a part as frames of at most `most` rows, each followed by its statistics; the last ones have the notes.

    A part without a chunked reader is read at once, and its frame is sliced. With `samples` so many edges of each frame
    of integers come with its statistics.
    """
    part, notes = noted(part, runs)
    counts: Counts | None = None
    chunks = getattr(part, "chunks" if backend.name == "cpu" else "chunks_on_device", None)
    for frame in chunks(backend, most) if chunks else [backend.read(part, upstream)]:
        for chunk in slices_of_rows(frame, most):
            if counts is not None:
                yield counts
            edges, counts = edges_of(chunk, colours, backend)
            if samples and counts.span is not None:
                counts = counts._replace(sample=sample_ends(edges, max(1, counts.rows // samples), backend))
            yield edges
    assert counts is not None
    yield counts if notes is None else counts._replace(notes=(notes,))


def edges_of(frame: Frame, colours: Colours | None, backend: Backend) -> tuple[Frame, Counts]:
    """Drop a frame's edges that are not in the sample, if there are colours, and then its loops."""
    if colours is None:
        return without_loops(frame, backend)
    edges, counts = without_loops(sampled(frame, colours, backend), backend)
    return edges, counts._replace(skipped=len(frame) - counts.rows)


def sampled(frame: Frame, colours: Colours, backend: Backend) -> Frame:
    """Select the edges of a frame whose ends have one colour; text is hashed on the host."""
    if frame["src"].dtype.kind in "iu":
        return backend.wrap(*backend.edges.sampled(*arrays_of(frame), colours))
    hashes = (hashes_of_column(backend.text.arrow(frame[name])) for name in ("src", "dst"))
    source_colours, target_colours = (colours_of(ids, colours, np) for ids in hashes)
    mask = backend.array.asarray(source_colours == target_colours)
    return frame[backend.frame.Series(mask, index=frame.index)].reset_index(drop=True)


def without_loops(frame: Frame, backend: Backend) -> tuple[Frame, Counts]:
    """Drop a frame's loops where its backend does not keep them, and weights; count rows and loops."""
    if len(frame.columns) > 2:  # weights come in a pass of their own
        frame = frame[["src", "dst"]]
    rows, src, dst = len(frame), frame["src"], frame["dst"]
    if src.dtype.kind in "iu":
        ends, loops, low, high = backend.edges.proper(*arrays_of(frame))
        frame = frame if len(ends[0]) == rows else backend.wrap(*ends)
        return frame, Counts(rows, loops, Span(low, high, len(frame)) if low <= high else Span(0, -1, 0))
    mask = (src != dst).astype(bool)  # pandas 3.0 returns an Arrow array when it compares text
    edge_count = int(mask.sum())
    counts = Counts(rows, rows - edge_count)
    return frame if edge_count == rows else frame[mask].reset_index(drop=True), counts


class Span(NamedTuple):
    """The smallest and largest id of some edges (low > high where there are none), and the number of their rows."""

    low: int
    high: int
    rows: int

    @classmethod
    def measured(cls, frame: Frame) -> Span:
        """The span of a frame of integers, or of a list of frames."""
        if isinstance(frame, list):
            return cls.of([cls.measured(part_frame) for part_frame in frame])
        if not len(frame):
            return cls(0, -1, 0)
        ends = arrays_of(frame)
        return cls(min(int(end.min()) for end in ends), max(int(end.max()) for end in ends), len(frame))

    @classmethod
    def of(cls, frames: Sequence[Span]) -> Span:
        """The span of all frames together."""
        spans = [span for span in frames if span.rows]
        low, high = min((span.low for span in spans), default=0), max((span.high for span in spans), default=-1)
        return cls(low, high, sum(span.rows for span in spans))
