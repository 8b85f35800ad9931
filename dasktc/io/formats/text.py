"""Reads text and CSV files of edges: SNAP, KONECT, Graph Challenge, NetworkX, spreadsheets.

Module `sniff` detects the dialect of the lines, module `rows` parses them. An uncompressed file is cut
into byte ranges that workers read independently; a compressed file is a single part, parsed block by
block while it is decompressed. In both cases a worker needs the memory of its frame and of one block.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from dasktc.backends import Backend
from dasktc.errors import InputError
from dasktc.io.columns import edge_frame
from dasktc.io.evidence import RUN, Choice, Notes, NotingPart, Reading
from dasktc.io.formats import lines, streams
from dasktc.io.formats.rows import BLANKS, BadLine, Dialect, Rows, count_rows, parse, parse_weighted
from dasktc.io.formats.sniff import LONG, Doubt, fields_of, sniff
from dasktc.io.source import Part, ReadOptions
from dasktc.options import Ids
from dasktc.wording import advice, plural

__all__ = ["parts"]

Array = Any
_FEW = 1 << 16
"""Bytes of a block whose rows may all be noted."""
ROW_BYTES = 8
"""Bytes of a short line; with this size per row a block has at most its share of a chunk's rows."""
CACHED = 1 << 19
"""Most bytes of rows of integers that are parsed together: they and their ids stay in a second level cache. Arrow,
which parses names and weights, gains by longer blocks."""
BLOCKS = 4
"""Least blocks of a chunk, which then lacks few of the rows that it may have."""


@dataclass(frozen=True)
class _Lines(NotingPart):
    """The lines of a file that begin at byte `start` or later and before byte `stop` (None: the end).

    With `aligned`, a line begins at `start`. `counts` is set in a part that is the whole file: the number
    of the line that may be a header of counts, and the number of rows that follow it if it is one. `doubt`,
    in the first part of a file, describes a first row that may be a header or an edge, and `reading` the columns taken.
    `choice` is set if rows are to be noted so that it can be judged.
    """

    url: str
    start: int
    stop: int | None
    dialect: Dialect
    block: int
    aligned: bool = True
    counts: tuple[int, int] | None = None
    doubt: Doubt | None = None
    reading: Reading | None = None
    choice: Choice | None = None
    notes: Notes | None = None
    upstream: None = None

    @property
    def begins(self) -> bool:
        """Whether the part begins with the first row of its file."""
        return self.reading is not None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        return next(self.chunks(backend, sys.maxsize))

    def chunks(self, backend: Backend, most: int) -> Iterator[Any]:
        """Yield frames of at most `most` rows, unless a block of short lines has more; at least one frame."""
        column = _Names if self.dialect.ids == "text" else _Integers
        empty = np.empty(0, object if self.dialect.surveyed else float)
        source, target, weights = column(), column(), [empty]
        rows = chunk_rows = 0
        largest = CACHED if self.dialect.ids == "int" and self.dialect.weight is None else self.block
        for offset, block in self.blocks(min(self.block, largest, max(1, most // BLOCKS) * ROW_BYTES)):
            row_block, block_weights = self._parsed(offset, block)
            self._note(block)
            if chunk_rows + row_block.rows > most and chunk_rows:
                yield self._frame(backend, source, target, weights)
                source, target, weights, chunk_rows = column(), column(), [empty], 0
            blocks = 1 if self.stop is None else (self.stop - offset) / len(block)  # this one and those of its size
            expected = min(most, (chunk_rows + int(blocks * row_block.rows)) * 9 // 8)
            source.append(row_block.source, expected)
            target.append(row_block.target, expected)
            weights += [] if block_weights is None else [block_weights]
            rows, chunk_rows = rows + row_block.rows, chunk_rows + row_block.rows
        self._refuse_counts(rows)
        yield self._frame(backend, source, target, weights)

    def _frame(self, backend: Backend, source: _Column, target: _Column, weights: list[Array]) -> Any:
        weight = None if self.dialect.weight is None else np.concatenate(weights)
        return edge_frame(backend, source.array(), target.array(), weight)

    def read_on_device(self, backend: Backend, upstream: Any = None) -> Any:
        """Read two arrays on the device, which parses plain rows; return None if ids are text."""
        if self.dialect.ids == "text":
            return None
        pair = None if self.stop is None or streams.is_remote(self.url) else self._at_once(backend, self.stop)
        if pair is not None:
            self._refuse_counts(len(pair[0]))
            self._count(len(pair[0]))
            return pair
        xp, rows = backend.array, 0
        empty = xp.empty(0, dtype="int32")
        pairs: list[tuple[Array, Array]] = [(empty, empty)]
        for offset, block in self.blocks():
            pair = self._device_rows(backend, xp.asarray(np.frombuffer(block, np.uint8)))
            self._note(block)
            sources, targets, count, _ = Rows(*pair, len(pair[0]), 0) if pair else self._parsed(offset, block)[0]
            if pair:
                self._count(count)
            pairs.append((xp.asarray(sources), xp.asarray(targets)))
            rows += count
        self._refuse_counts(rows)
        source, target = (xp.concatenate(column) for column in zip(*pairs, strict=True))
        return source, target

    def _device_rows(self, backend: Backend, text: Array) -> tuple[Array, Array] | None:
        return backend.rows(text, self.dialect.separator, self.dialect.columns)

    def _at_once(self, backend: Backend, stop: int) -> tuple[Array, Array] | None:
        """Read the part of a local file in one step; None if a line is long, or if a row needs the host's parser."""
        with streams.open_decompressed(self.url) as stream:
            first = self._seek(stream, self.start, self.aligned)
            last = max(first, stop if stop >= streams.size(self.url) else self._seek(stream, stop, False))
        long_lines = list[bool]()
        with streams.filling(self.url) as fill:

            def checked(buffer: Array, start: int) -> None:
                fill(buffer, first + start)
                long_lines.append(lines.may_be_long(buffer))

            text = backend.upload(last - first, checked)
            pair = None if any(long_lines) else self._device_rows(backend, text)
            if pair is not None:
                self._note_places(fill, first, last)
        return pair

    def _note(self, block: bytes | bytearray) -> None:
        """Note runs of the rows of a block, evenly spaced in the part, or, if that may end anywhere, in the block.

        Of a block of few rows all are noted.
        """
        if self.notes is None or self.choice is None or not self.notes.wanted():
            return
        if len(block) <= _FEW and block.count(b"\n") <= RUN * self.notes.most:
            self._note_rows(block.split(b"\n"))
            return
        length = len(block) if self.stop is None else max(len(block), self.stop - self.start)
        for start in range(0, len(block), max(1, length // self.notes.most)):
            begin = block.find(b"\n", start - 1) + 1 if start else 0
            rows = block[begin : begin + LONG].split(b"\n")[: RUN + 1]
            self._note_rows(rows[: max(1, len(rows) - 1)])  # the last one may be cut

    def _note_places(self, fill: Any, first: int, last: int) -> None:
        """Note runs of rows of a local file from bytes spaced evenly; the host reads no others."""
        if self.notes is None or self.choice is None:
            return
        for start in range(first, last, max(LONG, (last - first) // self.notes.most)):
            buffer = bytearray(min(LONG, last - start))
            fill(buffer, start)
            self._note_rows(
                bytes(buffer).split(b"\n")[start > first :][: RUN + 1][: -1 if start + LONG < last else None]
            )

    def _note_rows(self, rows: Sequence[bytes | bytearray]) -> None:
        assert self.notes is not None
        marks = ("",) if self.dialect.widths is None else ("", "#", "%")
        texts = [row.decode("utf-8", "replace").rstrip("\r\n") for row in rows]
        separator = self.dialect.separator
        self.notes.add([fields_of(text, separator) for text in texts if text.strip(BLANKS)[:1] not in marks])

    def _count(self, rows: int, comments: int = 0, singles: int = 0) -> None:
        if self.notes is not None:
            self.notes.count += rows
            self.notes.comments += comments
            self.notes.singles += singles

    def _parsed(self, offset: int, block: bytes | bytearray) -> tuple[Rows, Array | None]:
        """Parse a block at byte `offset`; return its weights, too, if they are read."""
        try:
            if self.dialect.weight is None:
                rows, weights = parse(block, self.dialect), None
            else:
                rows, weights = parse_weighted(block, self.dialect)
        except BadLine as error:
            number = lines.line_number(self.url, offset) + error.place
            raise InputError(f"line {number} of {self.url} {error.reason}") from None
        self._count(rows.rows, rows.comments, rows.rows - len(rows.source))
        return rows, weights

    def _refuse_counts(self, rows: int) -> None:
        if self.counts is not None and rows == self.counts[1] + 1:
            raise _header_of_counts(self.url, *self.counts)

    def blocks(self, size: int | None = None) -> Iterator[tuple[int, bytearray]]:
        """Cut the part into blocks of whole lines, each with its offset in the decompressed file."""
        with streams.open_decompressed(self.url) as stream:
            start = self._seek(stream, self.start, self.aligned)
            yield from lines.blocks(stream, size or self.block, self.url, start, self.stop)

    def _seek(self, stream: BinaryIO, start: int, is_aligned: bool) -> int:
        """Seek to the first line that begins at or after `start` (with `is_aligned`, at `start`); return its offset."""
        if is_aligned:
            streams.skip(stream, start)
            return start
        stream.seek(start - 1)
        rest = stream.readline(lines.LONGEST + 1)
        lines.check_lengths(self.url, start - 1, rest)
        return start - 1 + len(rest)


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Cut a text file into parts.

    InputError: it holds no edge, or its first rows are ambiguous and an option must settle how to read them.
    """
    layout = sniff(url, options)
    dialect = layout.dialect
    stop = None if streams.is_archive(url) else streams.size(url)
    section = _Lines(url, layout.start, stop, dialect, options.block)
    section = replace(section, doubt=layout.doubt, reading=layout.reading, choice=layout.choice)
    if stop is None or stop - layout.start <= options.blocksize:
        return [replace(section, counts=layout.counts)], dialect.ids
    rows = (stop - layout.start) / layout.bytes_per_row
    if layout.counts and rows / 8 < layout.counts[1] < rows * 8:  # else the first row is no header of counts
        if sum(count_rows(block, dialect) for _, block in section.blocks()) == layout.counts[1] + 1:
            raise _header_of_counts(url, *layout.counts)
    starts = range(layout.start, stop, options.blocksize)
    rest = replace(section, doubt=None, reading=None, aligned=False)
    cuts = [
        replace(section if start == layout.start else rest, start=start, stop=min(start + options.blocksize, stop))
        for start in starts
    ]
    return [*cuts], dialect.ids


def _header_of_counts(url: str, line: int, edges: int) -> InputError:
    return InputError(
        f"line {line} of {url} ends in {edges}, and {plural(edges, 'row follows', 'rows follow')}: it looks like a "
        f"header of vertex and edge counts; use {advice(skip=line)} if it is one, {advice(skip=0)} if it is an edge"
    )


class _Integers:
    """A growing column of integer ids, int32 until an id needs int64. It grows in place to avoid a second copy."""

    def __init__(self) -> None:
        self._ids = np.empty(0, np.int32)
        self._length = 0

    def append(self, ids: Array, expected: int) -> None:
        """Append ids to a column that probably gets the expected number in all: space that it never uses takes none."""
        if len(ids) == 0:
            return
        bounds = np.iinfo(self._ids.dtype)
        stop = self._length + len(ids)
        is_wide = ids.dtype != self._ids.dtype and (ids.min() < bounds.min or ids.max() > bounds.max)
        if is_wide or not self._length:  # NumPy asks for huge pages for a new array, not for one that grows
            column = np.empty(max(stop, expected), np.int64 if is_wide else self._ids.dtype)
            column[: self._length] = self._ids[: self._length]
            self._ids = column
        elif stop > len(self._ids):
            self._ids.resize(max(stop, expected, len(self._ids) * 9 // 8), refcheck=False)
        self._ids[self._length : stop] = ids
        self._length = stop

    def array(self) -> Array:
        self._ids.resize(self._length, refcheck=False)
        return self._ids


class _Names:
    """A column of text ids."""

    def __init__(self) -> None:
        self._chunks: list[Array] = []

    def append(self, ids: Array, expected: int) -> None:
        self._chunks.append(ids)

    def array(self) -> Array:
        import pandas as pd
        import pyarrow as pa

        return pd.array(pa.chunked_array(self._chunks, pa.large_string()), dtype="str")


_Column = _Integers | _Names
