"""Cuts text files into blocks of whole lines, limits the length of lines, and parses sizes in headers.

The length of a line is limited, so that a file without line ends, or a few kilobytes that decompress to a line of
gigabytes, is refused before it fills the memory. Readers hold one block of lines at a time, never the file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from io import BufferedIOBase
from typing import Any, BinaryIO

import numpy as np

from dasktc.errors import InputError
from dasktc.io.formats import streams
from dasktc.wording import advice

__all__ = [
    "INTEGERS",
    "LONGEST",
    "blocks",
    "check_lengths",
    "count_nonblank",
    "counts",
    "header_lines",
    "line_number",
    "may_be_long",
    "too_long",
]

Array = Any
LONGEST = 1 << 20
"""Largest length of a line in bytes, without its end. In METIS files, where a line has all neighbours of a vertex, it
applies only to comments and the header; longer lines are cut."""
INTEGERS = b"0123456789 \t\r\n"
"""Bytes of lines that hold integers alone."""
HEADER = 1 << 24
"""Bytes within which a header must end, including the comments above and in it."""


def blocks(
    stream: BufferedIOBase, nbytes: int, url: str, start: int, stop: int | None = None
) -> Iterator[tuple[int, bytearray]]:
    """Cut a stream into blocks of whole lines, of at most `nbytes` bytes or one line, each with its offset.

    The stream is at byte `start` of the (decompressed) file, where a line begins. Lines that begin at byte `stop` or
    later are not read; None: to the end. InputError: a line is too long.
    """
    rest = bytearray()  # of the last line of a block: begins the next one, which costs less than to complete the line
    while stop is None or start < stop:
        left = sys.maxsize if stop is None else stop - start
        block = bytearray(max(len(rest), min(nbytes, left)))
        block[: len(rest)] = rest
        with memoryview(block) as view:
            size = len(rest) + stream.readinto(view[len(rest) :])
        del block[size:]
        is_whole = size == len(rest) or size >= left  # the file's end, or the last block before `stop`
        end = size if is_whole else block.rfind(b"\n") + 1
        rest = block[end:]
        if end:
            del block[end:]
        if not block.endswith(b"\n"):
            block += stream.readline(LONGEST + 1)
            rest.clear()
        if not block:
            return
        check_lengths(url, start, block)
        yield start, block
        start += len(block)


def check_lengths(url: str, start: int, block: bytes | bytearray) -> None:
    """Refuse a block with a line longer than `LONGEST`; the block begins with a line, at byte `start` of the file."""
    begin = 0
    while len(block) - begin > LONGEST:
        end = block.rfind(b"\n", begin, begin + LONGEST + 1)
        if end < 0:
            raise too_long(url, line_number(url, start + begin))
        begin = end + 1


def may_be_long(text: Array) -> bool:
    """Return whether bytes of a file (NumPy, uint8) may hold a line that is too long, or part of one.

    In such a line at least one aligned run of LONGEST / 2 bytes has no line end.
    """
    half = LONGEST // 2
    halves = (text[start : start + half] for start in range(0, len(text) - half + 1, half))
    return any(b"\n" not in piece[:4096].tobytes() and not bool((piece == ord("\n")).any()) for piece in halves)


def too_long(url: str, number: int) -> InputError:
    """Make the error for a line that is too long."""
    return InputError(
        f"line {number} of {url} is longer than {LONGEST:,} bytes, the most that a line may have: its line ends are "
        f"missing, or it is of another format; check the file, or {advice('format')}"
    )


def line_number(url: str, offset: int) -> int:
    """Return the number, from 1, of the line that contains byte `offset`.

    This reads the file up to there, so it is only used for errors.
    """
    count = 1
    with streams.open_decompressed(url) as stream:
        while offset > 0 and (data := stream.read(min(offset, LONGEST))):
            count += data.count(b"\n")
            offset -= len(data)
    return count


def header_lines(stream: BinaryIO, url: str) -> Iterator[bytes]:
    """Yield the first lines of a file, one of which should be its header."""
    total = number = 0
    while text := stream.readline(LONGEST + 1):
        total, number = total + len(text), number + 1
        if len(text) > LONGEST and not text.endswith(b"\n"):
            raise too_long(url, number)
        if total > HEADER:
            raise InputError(
                f"{url} holds no header in its first {HEADER:,} bytes, which are comments or blank: another format, or "
                f"damaged; check the file, or {advice('format')}"
            )
        yield text


def counts(fields: list[bytes]) -> list[int] | None:
    """Parse sizes in a header, decimal digits below 2^63 - 1; return None if any field is something else."""
    if any(not re.fullmatch(rb"0*[0-9]{1,19}", field) for field in fields):
        return None
    numbers = [int(field.lstrip(b"0") or b"0") for field in fields]
    return numbers if max(numbers, default=0) < (1 << 63) - 1 else None


def count_nonblank(block: bytes | bytearray) -> int:
    """Count the lines that are not blank."""
    ends = np.frombuffer(block.translate(None, b" \t\r"), np.uint8) == ord("\n")
    return int(np.count_nonzero(ends[1:] > ends[:-1])) + bool(len(ends) and not ends[-1])
