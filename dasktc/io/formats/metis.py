"""METIS and Chaco graph files (.graph, .metis): a header, then one line of neighbours a vertex.

The header is `V E [fmt [ncon]]`. The digits of fmt say whether a line opens with the vertex's size
and with `ncon` vertex weights, and whether a weight follows each neighbour (METIS 5 manual, section
4.1.1). Line i after the header is vertex i even when it is empty, so blank lines count; lines that
start with % do not. Ids are the file's own, 1 to V. Every edge stands in two lines, and the header
is held against that.

A large uncompressed file is cut at line ends; its lines and numbers are counted before, which
gives each part its first vertex.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from dasktc.errors import InputError
from dasktc.io.formats import files, lines

if TYPE_CHECKING:
    from dasktc.backends import Backend
    from dasktc.io.source import Ids, Part, ReadOptions

__all__ = ["OPTIONS", "parts"]

OPTIONS: dict[str, frozenset[str]] = {"metis": frozenset()}
Array = Any
COMMENT = re.compile(rb"^[ \t]*%[^\n]*\n?", re.MULTILINE)
INTEGERS = b"0123456789 \t\r\n"
REALS = INTEGERS + b".eE+-"
SCRATCH = 1 << 24
"""Bytes of text that are taken apart at a time: each takes a few more in arrays."""


class Header(NamedTuple):
    """What the header says, and where the first vertex's line is: byte `start`, line `line`."""

    vertices: int
    edges: int
    lead: int  # numbers before the first neighbour: size and vertex weights
    stride: int  # numbers a neighbour takes: 2 with an edge weight
    start: int
    line: int


class Place(NamedTuple):
    """A block of whole lines: the bytes it fills, its first vertex and its first line."""

    start: int
    stop: int
    vertex: int
    line: int


@dataclass(frozen=True)
class _File:
    url: str
    header: Header
    blocksize: int
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        pieces = [np.empty((2, 0), _dtype(self.header))]
        vertices = 0
        for place, text in _blocks(self.url, self.header, self.blocksize):
            pieces.append(_neighbours(self.url, self.header, place, text))
            vertices = place.vertex - 1 + _vertex_lines(text)
        pairs = np.concatenate(pieces, axis=1)
        _check(self.url, self.header, vertices, pairs.shape[1], int((pairs[0] == pairs[1]).sum()))
        return backend.frame.DataFrame({"src": pairs[0], "dst": pairs[1]})


@dataclass(frozen=True)
class _Lines:
    url: str
    header: Header
    place: Place
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        text = files.read_range(self.url, self.place.start, self.place.stop)
        src, dst = _neighbours(self.url, self.header, self.place, text)
        return backend.frame.DataFrame({"src": src, "dst": dst})


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Cut a METIS file into parts.

    Parameters
    ----------
    url : str
    options : ReadOptions

    Raises
    ------
    InputError
        The header is broken, or (of a large file) its counts are not those of the file.
    """
    with files.open_decompressed(url) as stream:
        header = _header(url, stream)
    if files.is_compressed(url) or files.size(url) <= options.blocksize:
        return [_File(url, header, min(options.blocksize, SCRATCH))], "int"
    cut: list[Part] = []
    vertices = numbers = 0
    for place, text in _blocks(url, header, options.blocksize):
        cut.append(_Lines(url, header, place))
        vertices = place.vertex - 1 + _vertex_lines(text)
        numbers += len(_starts(_uncommented(text)))
    entries = (numbers - header.lead * header.vertices) // header.stride
    loops = 0 if entries == 2 * header.edges else _loops(url, header, options.blocksize)
    _check(url, header, vertices, entries, loops)
    return cut, "int"


def _header(url: str, stream: BinaryIO) -> Header:
    start = line = 0
    fields: list[bytes] = []
    for text in stream:
        start, line = start + len(text), line + 1
        fields = text.split()
        if fields and not fields[0].startswith(b"%"):
            break
    shape = b"".join(fields[2:3]) or b"0"
    numeric = 2 <= len(fields) <= 4 and all(field.isdigit() for field in fields)
    if not numeric or len(shape) > 3 or shape.strip(b"01"):
        raise InputError(
            f"line {line} of {url} holds {b' '.join(fields)[:40].decode('utf-8', 'replace')!r} where a METIS "
            "header 'vertices edges [fmt [ncon]]' is expected: another format, or damaged; check --format"
        )
    size, vertex_weights, edge_weights = (digit == "1" for digit in shape.decode().rjust(3, "0"))
    weights = (int(fields[3]) if len(fields) == 4 else 1) if vertex_weights else 0
    return Header(int(fields[0]), int(fields[1]), size + weights, 1 + edge_weights, start, line + 1)


def _blocks(url: str, header: Header, nbytes: int) -> Iterator[tuple[Place, bytes]]:
    start, vertex, line = header.start, 1, header.line
    with files.open_decompressed(url) as stream:
        skipped = 0
        while skipped < header.start:
            skipped += len(stream.read(header.start - skipped))
        for text in lines.blocks(stream, nbytes):
            yield Place(start, start + len(text), vertex, line), text
            start, vertex, line = start + len(text), vertex + _vertex_lines(text), line + text.count(b"\n")


def _neighbours(url: str, header: Header, place: Place, text: bytes) -> Array:
    """Read a block's (vertex, neighbour) pairs, shape (2, entries)."""
    text = _uncommented(text)
    starts = _starts(text)
    numbers = _numbers(text, len(starts), header)
    if numbers is None:
        _blame(url, header, place)
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    ends = np.append(ends, len(text)) if text and not text.endswith(b"\n") else ends
    bounds = np.append(0, np.searchsorted(starts, ends))
    counts = np.diff(bounds)
    real = max(0, header.vertices - place.vertex + 1)  # lines that are vertices; any more must be blank
    if counts[real:].any() or (counts[:real] < header.lead).any():
        _blame(url, header, place)
    listed = (counts[:real] - header.lead) // header.stride
    if (listed * header.stride + header.lead != counts[:real]).any():
        _blame(url, header, place)
    if header.lead or header.stride > 1:
        within = np.arange(len(numbers)) - np.repeat(bounds[:-1], counts) - header.lead
        numbers = numbers[(within >= 0) & (within % header.stride == 0)]
    whole = numbers.dtype.kind == "i" or not (numbers % 1).any()
    if not whole or (len(numbers) and not 1 <= numbers.min() <= numbers.max() <= header.vertices):
        _blame(url, header, place)
    dtype = _dtype(header)
    vertices = np.arange(place.vertex, place.vertex + len(listed), dtype=dtype)
    return np.stack([np.repeat(vertices, listed), numbers.astype(dtype)])


def _numbers(text: bytes, count: int, header: Header) -> Array | None:
    """Read the numbers of a text; None if it holds anything else."""
    if not count:
        return np.empty(0, np.int64)
    weighted = header.lead > 0 or header.stride > 1  # weights may be written as reals
    plain = not text.translate(None, INTEGERS)
    if not plain and (not weighted or text.translate(None, REALS)):
        return None
    try:
        numbers = np.fromstring(text, np.int64 if plain else np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    return numbers if len(numbers) == count else None


def _starts(text: bytes) -> Array:
    """Find where the numbers of a text start."""
    blank = np.frombuffer(text, np.uint8) <= ord(" ")
    return np.flatnonzero(~blank & np.append(True, blank[:-1])[: len(blank)])


def _uncommented(text: bytes) -> bytes:
    return COMMENT.sub(b"", text) if b"%" in text else text


def _vertex_lines(text: bytes) -> int:
    text = _uncommented(text)
    return text.count(b"\n") + bool(text and not text.endswith(b"\n"))


def _dtype(header: Header) -> Any:
    return np.dtype(np.int32 if header.vertices < 1 << 31 else np.int64)


def _loops(url: str, header: Header, nbytes: int) -> int:
    pairs = (_neighbours(url, header, place, text) for place, text in _blocks(url, header, nbytes))
    return sum(int((src == dst).sum()) for src, dst in pairs)


def _check(url: str, header: Header, vertices: int, entries: int, loops: int) -> None:
    """Hold the header against the file; a loop may stand in its vertex's line once or twice."""
    # A last vertex without neighbours or weights may leave no trace: an empty line without a line end.
    if vertices < header.vertices - (header.lead == 0):
        raise InputError(
            f"{url} holds {vertices:,} vertex lines where its header says {header.vertices:,}: the file "
            "was cut short, or lost its blank lines, which are vertices without neighbours; fetch or export it again"
        )
    if 2 * header.edges not in (entries, entries + loops):
        raise InputError(
            f"{url} lists {entries:,} neighbours where its header says {header.edges:,} edges, each "
            "listed twice: the file was cut short, lists edges once, or its header is wrong; fetch or export it again"
        )


def _blame(url: str, header: Header, place: Place) -> NoReturn:
    """Name the first line of a block that is wrong; slow, and only run when one is."""
    vertex = place.vertex
    with files.open_decompressed(url) as stream:
        for number, text in enumerate(stream, 1):
            if number < place.line or text.lstrip(b" \t").startswith(b"%"):
                continue
            trouble = _trouble(header, vertex, text.decode("utf-8", "replace").split())
            if trouble:
                raise InputError(
                    f"line {number} of {url}, vertex {vertex}, {trouble}: damaged, another format or a wrong "
                    "header; check the line, or --format"
                )
            vertex += 1
    raise InputError(f"{url} cannot be read as METIS after line {place.line}: damaged; fetch it again")


def _trouble(header: Header, vertex: int, fields: list[str]) -> str | None:
    if vertex > header.vertices:
        return f"is beyond the header's {header.vertices:,} vertices" if fields else None
    if len(fields) < header.lead or (len(fields) - header.lead) % header.stride:
        return f"holds {len(fields)} numbers, which does not fit the header's weights"
    for place, field in enumerate(fields, -header.lead):
        neighbour = place >= 0 and place % header.stride == 0
        if neighbour and not (field.isdecimal() and 1 <= int(field) <= header.vertices):
            return f"holds {field[:40]!r} where a neighbour from 1 to {header.vertices} is expected"
        try:
            float(field)
        except ValueError:
            return f"holds {field[:40]!r} where a weight is expected"
    return None
