"""Lines of text formats: how long they may be, how a file is cut at their ends, how a header of counts is read.

A line has a limit, so that a file without line ends, or a few kilobytes that decompress to gigabytes of one
line, is refused before it fills the memory. Readers hold a block of lines at a time, never the file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np

from dasktc.errors import InputError
from dasktc.io.formats import files

if TYPE_CHECKING:
    from dasktc.backends import Backend

__all__ = [
    "LONGEST",
    "SCRATCH",
    "ByBlock",
    "blocks",
    "check_lengths",
    "check_total",
    "counts",
    "filled",
    "first_line",
    "header_lines",
    "id_pairs",
    "line_number",
    "too_long",
]

Array = Any
LONGEST = 1 << 20
"""Bytes that a line may have, its end not counted. Of METIS, where a line is all of a vertex's neighbours, only
comments and the header are held to it: there a line is cut where it is longer."""
SCRATCH = 1 << 22
"""Bytes of text that are taken apart at a time: each takes a few more in arrays."""
LEAST = 1 << 16
"""Bytes of text below which a block is not worth a call of a library."""
HEADER = 1 << 24
"""Bytes in which a header must end, the comments above and in it included."""
SEPARATORS = {None: r"\s+", ",": ","}
"""How pandas spells a separator of `str.split`."""


class ByBlock:
    """A part that is read block by block: whole, or in frames of a block each where memory is short."""

    row_bytes = 4
    """Bytes of the shortest row: a block of so many rows times this has no more of them."""

    def arrays(self, nbytes: int) -> Iterator[Array]:
        """Yield edges as arrays of shape (2, rows), at least one, read from `nbytes` of text at a time."""
        raise NotImplementedError

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Read the part: a frame of its edges."""
        src, dst = np.concatenate(list(self.arrays(SCRATCH)), axis=1)
        return backend.frame.DataFrame({"src": src, "dst": dst})

    def pieces(self, backend: Backend, most: int) -> Iterator[Any]:
        """Yield frames of about `most` rows or fewer, at least one."""
        for src, dst in self.arrays(min(SCRATCH, max(LEAST, most * self.row_bytes))):
            yield backend.frame.DataFrame({"src": src, "dst": dst})


def blocks(stream: BinaryIO, nbytes: int, url: str, start: int) -> Iterator[bytes]:
    """Cut a stream into blocks of whole lines, of about `nbytes` bytes or one line.

    Parameters
    ----------
    stream : binary file
    nbytes : int
    url : str
    start : int
        Where in the (decompressed) file the stream stands: at the start of a line.

    Raises
    ------
    InputError
        A line is too long.
    """
    rest = b""
    while data := stream.read(nbytes):
        data = rest + data
        check_lengths(url, start, data)
        cut = data.rfind(b"\n") + 1
        if cut:
            yield data[:cut]
        start, rest = start + cut, data[cut:]
    if rest:
        yield rest


def check_lengths(url: str, start: int, block: bytes) -> None:
    """Refuse a line that is too long in a block that begins with a line, at byte `start` of the file."""
    begin = 0
    while len(block) - begin > LONGEST:
        end = block.rfind(b"\n", begin, begin + LONGEST + 1)
        if end < 0:
            raise too_long(url, line_number(url, start + begin))
        begin = end + 1


def too_long(url: str, number: int) -> InputError:
    """Make the error of a line that is too long."""
    return InputError(
        f"line {number} of {url} is longer than {LONGEST:,} bytes, the most that a line may have: its line ends are "
        "missing, or it is of another format; check the file, or --format"
    )


def line_number(url: str, offset: int) -> int:
    """Number of the line that holds byte `offset`; reads the file up to there, to name a line in an error."""
    count = 1
    with files.open_decompressed(url) as stream:
        while offset > 0 and (data := stream.read(min(offset, LONGEST))):
            count += data.count(b"\n")
            offset -= len(data)
    return count


def header_lines(stream: BinaryIO, url: str) -> Iterator[bytes]:
    """Yield the first lines of a file, of which one is to be its header."""
    total = number = 0
    while text := stream.readline(LONGEST + 1):
        total, number = total + len(text), number + 1
        if len(text) > LONGEST and not text.endswith(b"\n"):
            raise too_long(url, number)
        if total > HEADER:
            raise InputError(
                f"{url} holds no header in its first {HEADER:,} bytes, which are comments or blank: another format, or "
                "damaged; check the file, or --format"
            )
        yield text


def first_line(url: str) -> bytes:
    """First line of a file, without its end."""
    with files.open_decompressed(url) as stream:
        return next(header_lines(stream, url), b"").rstrip(b"\r\n")


def counts(fields: list[bytes]) -> list[int] | None:
    """Counts that a header holds: decimal digits, below 2^63 - 1; None if any field is something else."""
    if any(not re.fullmatch(rb"0*[0-9]{1,19}", field) for field in fields):
        return None
    found = [int(field.lstrip(b"0") or b"0") for field in fields]
    return found if max(found, default=0) < (1 << 63) - 1 else None


def filled(block: bytes) -> int:
    """Count the lines that hold more than blanks."""
    text = block.translate(None, b" \t\r")
    while b"\n\n" in text:
        text = text.replace(b"\n\n", b"\n")
    text = text.strip(b"\n")
    return text.count(b"\n") + 1 if text else 0


def id_pairs(url: str, separator: str | None, width: int, bounds: range, rows: int, nbytes: int) -> Iterator[Array]:
    """Read the integer pairs that begin the lines after line 1.

    Parameters
    ----------
    url : str
    separator : {None, ","}
        None: any white space.
    width : {2, 3}
        Fields of a line; a third one is a number, and is not kept.
    bounds : range
        What an id may be.
    rows : int
        How many rows the header says.
    nbytes : int
        Bytes of text that are read at a time.

    Yields
    ------
    array of shape (2, rows)
        int32 where `bounds` allows it, else int64; at least one array.

    Raises
    ------
    InputError
        A line is not of that form, or there are not `rows` of them.
    """
    dtype = np.dtype(np.int32 if bounds.stop <= 1 << 31 else np.int64)
    yield np.empty((2, 0), dtype)
    total = 0
    with files.open_decompressed(url) as stream:
        start = len(stream.readline(LONGEST + 1))
        for block in blocks(stream, nbytes, url, start):
            pairs = _pairs(block, separator, width, bounds, dtype)
            if pairs is None:
                _blame(url, line_number(url, start), block, separator, width, bounds)
            start, total = start + len(block), total + pairs.shape[1]
            if total <= rows:  # more are counted, and not kept
                yield pairs
    check_total(url, total, "edges", "line 1", rows)


def check_total(url: str, total: int, what: str, where: str, expected: int) -> None:
    """Hold the number of a file's entries against its header."""
    if total != expected:
        raise InputError(
            f"{url} holds {total:,} {what} where {where} says {expected:,}: the file was cut short or joined with "
            "another, or its header is wrong; fetch or export it again"
        )


def _pairs(block: bytes, separator: str | None, width: int, bounds: range, dtype: Any) -> Array | None:
    """Read a block's pairs; None if a line is not of the form."""
    import pandas as pd

    if b"\0" in block:  # pandas reads a number up to it
        return None
    try:
        with np.errstate(invalid="ignore"):  # a "nan" among integers is refused without a warning
            frame = pd.read_csv(
                io.BytesIO(block),
                sep=SEPARATORS[separator],
                header=None,
                dtype=dict(enumerate(["int64", "int64", "float64"][:width])),
                na_filter=False,
                quoting=csv.QUOTE_NONE,
                low_memory=False,
            )
    except pd.errors.EmptyDataError:
        return np.empty((2, 0), dtype)
    except (ValueError, OverflowError):
        return None
    if len(frame.columns) != width:
        return None
    columns = frame[0].to_numpy(), frame[1].to_numpy()
    if len(frame) and not all(bounds.start <= ids.min() <= ids.max() < bounds.stop for ids in columns):
        return None
    pairs = np.empty((2, len(frame)), dtype)
    pairs[0], pairs[1] = columns
    return pairs


def _blame(url: str, first: int, block: bytes, separator: str | None, width: int, bounds: range) -> NoReturn:
    """Name the first line of a block that is wrong; slow, and only run when one is."""
    for number, raw in enumerate(block.split(b"\n"), first):
        fields = raw.decode("utf-8", "replace").strip().split(separator)
        if fields not in ([], [""]) and not _is_row(fields, width, bounds):
            raise InputError(
                f"line {number} of {url} holds {' '.join(fields)[:40]!r} where two integers from "
                f"{bounds.start} to {bounds.stop - 1}{' and a value' * (width == 3)} are expected: "
                "damaged, or another format; check the line, or --format"
            )
    raise InputError(f"{url} cannot be read as lines of two integers: damaged, or another format; check --format")


def _is_row(fields: list[str], width: int, bounds: range) -> bool:
    try:
        numbers = [int(fields[0]), int(fields[1]), *map(float, fields[2:])]
    except (ValueError, IndexError):
        return False
    return len(numbers) == width and all(number in bounds for number in numbers[:2])
