"""Base of text formats whose header states sizes: parses the header, reads blocks, checks the totals.

METIS, SMAT, LightGraphs and Matrix Market files begin with sizes, which are parsed strictly and compared with
the file, so that a truncated file is refused instead of counted. A part needs the memory of its edges and of
one block of text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from dasktc.backends import Backend
from dasktc.errors import InputError
from dasktc.io.formats import lines, streams
from dasktc.io.formats.rows import even_columns
from dasktc.wording import advice, plural

__all__ = ["BlockPart", "EntryPart", "HeaderLine", "IntegerRows", "bad_header", "check_square", "header_line"]

Array = Any
SCRATCH = 1 << 22
"""Bytes of text that are parsed at a time; each takes a few more bytes in arrays."""
LEAST = 1 << 16
"""Least size of a block in bytes; smaller ones are not worth a library call."""


class HeaderLine(NamedTuple):
    """The line of a file that states its sizes."""

    head: bytes
    """All bytes up to the end of the line; the data begins at byte `len(head)`."""
    text: bytes
    """The line."""
    number: int
    """Number of the line, from 1; 0 for an empty file."""


def header_line(url: str, comment: bytes | None = None) -> HeaderLine:
    """Read the first line of a file, or its first that is neither blank nor a comment, which begins with `comment`.

    If there is no such line, the last line of the file. InputError: a line is too long, or the comments are.
    """
    texts: list[bytes] = []
    with streams.open_decompressed(url) as stream:
        for text in lines.header_lines(stream, url):
            texts.append(text)
            if comment is None or (text.strip() and not text.lstrip().startswith(comment)):
                break
    return HeaderLine(b"".join(texts), texts[-1] if texts else b"", len(texts))


def bad_header(url: str, header: HeaderLine, expected: str) -> InputError:
    """Make the error for a header that does not fit the format."""
    text = b" ".join(header.text.split())[:40].decode("utf-8", "replace")
    return InputError(
        f"line {header.number or 1} of {url} holds {text!r} where {expected} is expected: another format, or damaged; "
        f"check {advice('format')}"
    )


def check_square(url: str, shape: Sequence[int]) -> None:
    """Refuse a matrix that is not square, because it is not the adjacency matrix of a graph."""
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            f"{url} is a matrix of {' x '.join(f'{n:,}' for n in shape)}: only a square one is the adjacency of a "
            "graph; for a bipartite graph give its vertices distinct ids in one edge list"
        )


class BlockPart:
    """A part that is read block by block into one frame or, if memory is short, into a frame per block."""

    row_bytes: ClassVar[int] = 4
    """Bytes of the shortest row, which bounds the number of rows of a block."""
    upstream: ClassVar[None] = None

    def arrays(self, nbytes: int) -> Iterator[Array]:
        """Yield edges as arrays of shape (2, rows), at least one, read from `nbytes` of text at a time."""
        raise NotImplementedError

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Read the part into a frame of its edges."""
        arrays = list(self.arrays(SCRATCH))
        src, dst = np.concatenate(arrays, axis=1) if len(arrays) > 1 else arrays[0]
        return backend.frame.DataFrame({"src": src, "dst": dst})

    def chunks(self, backend: Backend, most: int) -> Iterator[Any]:
        """Yield frames of about `most` rows or fewer, at least one."""
        for src, dst in self.arrays(min(SCRATCH, max(LEAST, most * self.row_bytes))):
            yield backend.frame.DataFrame({"src": src, "dst": dst})


@dataclass(frozen=True)
class EntryPart(BlockPart):
    """The entries in bytes `start` to `stop` of a file, one per line; blank lines are skipped."""

    url: str
    ids: range
    """The ids that the header allows."""
    entries: int
    """Number of entries in these bytes; for a whole file the header's count."""
    start: int
    stop: int | None = None
    """Offsets in the decompressed file, both at the start of a line. `stop` None: the end of the file."""

    def pairs(self, block: bytes | bytearray, start: int) -> Array:
        """Parse whole lines that begin at byte `start`; return the ids of their entries, of shape (2, entries).

        InputError: a line, whose number it tells, does not fit the format.
        """
        raise NotImplementedError

    @property
    def dtype(self) -> Any:
        """Type of the ids: int32 if the header allows it, else int64."""
        return np.dtype(np.int32 if self.ids.stop <= 1 << 31 else np.int64)

    def arrays(self, nbytes: int) -> Iterator[Array]:
        """Yield the edges of the part; raise InputError if their number is wrong."""
        yield np.empty((2, 0), self.dtype)
        total = 0
        for start, block in self.blocks(nbytes):
            pairs = self.pairs(block, start)
            total += pairs.shape[1]
            if total <= self.entries:  # excess entries are counted but not kept
                yield pairs
        check_total(self.url, total, self.entries)

    def blocks(self, nbytes: int) -> Iterator[tuple[int, bytearray]]:
        """Cut the bytes into blocks of whole lines, each with its offset."""
        with streams.open_decompressed(self.url) as stream:
            streams.skip(stream, self.start)
            yield from lines.blocks(stream, nbytes, self.url, self.start, self.stop)


def check_total(url: str, total: int, expected: int) -> None:
    """Refuse a file that holds more or fewer entries than its header says."""
    if total != expected:
        raise InputError(
            f"{url} holds {plural(total, 'edge')} where its header says {expected:,}: the file was cut short or joined "
            "with another, or its header is wrong; fetch or export it again"
        )


class IntegerRows(EntryPart):
    """Lines of `width` fields that begin with two integer ids; a third field is a number that is not kept."""

    separator: ClassVar[str | None]
    """A comma, or None for any white space."""
    width: ClassVar[int]

    def pairs(self, block: bytes | bytearray, start: int) -> Array:
        """Parse whole lines that begin at byte `start`."""
        columns = self._columns(block)
        is_plain = columns is not None and all(
            len(ids) == 0 or self.ids.start <= ids.min() <= ids.max() < self.ids.stop for ids in columns[:2]
        )
        if columns is None or not is_plain:
            self._refuse(block, start)
        pairs = np.empty((2, len(columns[0])), self.dtype)
        pairs[0], pairs[1] = columns[:2]
        return pairs

    def _columns(self, block: bytes | bytearray) -> list[Array] | None:
        """Parse a block; None if a line is not of the form.

        With single blanks between fields Arrow takes little more than half of pandas' time (47 MB: 0.26 against 0.45
        CPU seconds). pandas also reads runs of blanks, and reads commas as fast.
        """
        import pandas as pd

        if b"\0" in block:  # at which pandas would end a number
            return None
        types = dict(enumerate(["int64", "int64", "float64"][: self.width]))
        if self.separator is None and (columns := even_columns(block, None, types, self.width)):
            return columns
        try:
            with np.errstate(invalid="ignore"):  # no warning for a "nan" among integers, which is refused
                frame = pd.read_csv(
                    io.BytesIO(block),
                    sep=self.separator or r"\s+",
                    header=None,
                    dtype=types,
                    na_filter=False,
                    quoting=csv.QUOTE_NONE,
                    low_memory=False,
                )
        except pd.errors.EmptyDataError:
            return [np.empty(0, np.int64)] * self.width
        except (ValueError, OverflowError):
            return None
        return [frame[place].to_numpy() for place in frame] if len(frame.columns) == self.width else None

    def _refuse(self, block: bytes | bytearray, start: int) -> NoReturn:
        """Raise an error that names the first wrong line of a block; slow, and only run if there is one."""
        for number, line in enumerate(bytes(block).split(b"\n"), lines.line_number(self.url, start)):
            fields = line.decode("utf-8", "replace").strip().split(self.separator)
            if fields in ([], [""]):
                continue
            try:
                numbers = [int(fields[0]), int(fields[1]), *map(float, fields[2:])]
            except (ValueError, IndexError):
                numbers = []
            if len(numbers) != self.width or not all(number in self.ids for number in numbers[:2]):
                raise InputError(
                    f"line {number} of {self.url} holds {' '.join(fields)[:40]!r} where two integers from "
                    f"{self.ids.start} to {self.ids.stop - 1}{' and a value' * (self.width == 3)} are expected: "
                    f"damaged, or another format; check the line, or {advice('format')}"
                )
        raise InputError(
            f"{self.url} cannot be read as lines of two integers: damaged, or another format; check {advice('format')}"
        )
