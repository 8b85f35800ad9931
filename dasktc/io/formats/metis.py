"""Reads METIS and Chaco graph files (.graph, .metis): a header, then one line of neighbours per vertex.

The header is `V E [fmt [ncon]]`. The digits of fmt tell whether a line begins with the vertex's size
and with `ncon` vertex weights, and whether a weight follows each neighbour (METIS 5 manual, section
4.1.1). Line i after the header is vertex i even when it is empty, so blank lines count; lines that
start with % do not. Ids are those of the file, 1 to V. Every edge must be in two lines, which is
checked against the header.

A large uncompressed file is cut at line ends; its lines and numbers are counted first, to find the
first vertex of each part. A vertex may have more neighbours than are read at a time: its line is
then cut between two numbers and continues in the next block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from dasktc.errors import InputError
from dasktc.io.formats import entries, lines, streams
from dasktc.io.source import Part, ReadOptions
from dasktc.options import Ids
from dasktc.wording import advice, plural

__all__ = ["parts"]

Array = Any
COMMENT = re.compile(rb"^[ \t]*%[^\n]*\n?", re.MULTILINE)
REALS = lines.INTEGERS + b".eE+-"


class Header(NamedTuple):
    """Sizes and weights that the header states; the first vertex's line is line `line`, at byte `start`."""

    vertices: int
    edges: int
    lead: int  # numbers before the first neighbour: size and vertex weights
    stride: int  # numbers per neighbour: 2 with edge weights
    start: int
    line: int


class Position(NamedTuple):
    """Position of a block of lines: its bytes, its first vertex and its first line.

    Lines are complete, except that `before` numbers of the first one are in earlier blocks, and that the last
    one continues in the next block if the block is `open`.
    """

    start: int
    stop: int
    vertex: int
    line: int
    before: int
    open: bool


@dataclass(frozen=True)
class _File(entries.BlockPart):
    """A file, or some of its lines, whose sizes have been checked."""

    url: str
    header: Header
    blocksize: int
    lines: Position | None = None
    row_bytes = 2

    def arrays(self, nbytes: int) -> Iterator[Array]:
        if self.lines is not None:
            text = streams.read_range(self.url, self.lines.start, self.lines.stop)
            yield _neighbours(self.url, self.header, self.lines, text)
            return
        yield np.empty((2, 0), _dtype(self.header))
        vertices = neighbours = loops = 0
        for position, text in _blocks(self.url, self.header, min(nbytes, self.blocksize)):
            pairs = _neighbours(self.url, self.header, position, text)
            vertices, neighbours = _last_vertex(position, text), neighbours + pairs.shape[1]
            loops += int((pairs[0] == pairs[1]).sum())
            if neighbours <= 2 * self.header.edges:  # excess neighbours are counted but not kept
                yield pairs
        _check(self.url, self.header, vertices, neighbours, loops, self.blocksize)


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Cut a METIS file into parts.

    InputError: the header is broken, or (in a large file) its sizes differ from the file.
    """
    header = _header(url)
    if streams.is_archive(url) or streams.size(url) <= options.blocksize:
        return [_File(url, header, options.blocksize)], "int"
    ranges: list[Part] = []
    vertices = numbers = 0
    for position, text in _blocks(url, header, options.blocksize):
        ranges.append(_File(url, header, options.blocksize, position))
        vertices = _last_vertex(position, text)
        numbers += len(_starts(_uncommented(position, text)))
    neighbours = (numbers - header.lead * header.vertices) // header.stride
    loops = 0
    if neighbours != 2 * header.edges:  # a loop may be listed once
        pairs = (_neighbours(url, header, position, text) for position, text in _blocks(url, header, options.blocksize))
        loops = sum(int((src == dst).sum()) for src, dst in pairs)
    _check(url, header, vertices, neighbours, loops, options.blocksize)
    return ranges, "int"


def _header(url: str) -> Header:
    header = entries.header_line(url, b"%")
    fields = header.text.split()
    shape = b"".join(fields[2:3]) or b"0"
    sizes = lines.counts(fields)
    if sizes is None or not 2 <= len(sizes) <= 4 or len(shape) > 3 or shape.strip(b"01"):
        raise entries.bad_header(url, header, "a METIS header 'vertices edges [fmt [ncon]]'")
    size, vertex_weights, edge_weights = (digit == "1" for digit in shape.decode().rjust(3, "0"))
    weights = (sizes[3] if len(sizes) == 4 else 1) if vertex_weights else 0
    return Header(sizes[0], sizes[1], size + weights, 1 + edge_weights, len(header.head), header.number + 1)


def _blocks(url: str, header: Header, nbytes: int) -> Iterator[tuple[Position, bytes]]:
    start, vertex, line, fields_read = header.start, 1, header.line, 0
    with streams.open_decompressed(url) as stream:
        streams.skip(stream, start)
        for text, is_open in _cut(url, stream, nbytes, start):
            position = Position(start, start + len(text), vertex, line, fields_read, is_open)
            yield position, text
            start, line = position.stop, line + text.count(b"\n")
            last = text[text.rfind(b"\n") + 1 :] if is_open else b""
            fields_read = len(_starts(last)) + (fields_read if is_open and len(last) == len(text) else 0)
            vertex = _last_vertex(position, text) + 1


def _cut(url: str, stream: BinaryIO, nbytes: int, start: int) -> Iterator[tuple[bytes, bool]]:
    """Cut a stream at line ends, or before a blank in a line too long to hold; yield whether a line was cut."""
    rest, is_continued = b"", False
    while data := stream.read(nbytes):
        rest += data
        end = rest.rfind(b"\n") + 1
        if end:
            yield rest[:end], False
            start, rest, is_continued = start + end, rest[end:], False
        if len(rest) > lines.LONGEST:
            end = max(rest.rfind(b" "), rest.rfind(b"\t"))
            remainder = rest[: max(end, 0)].lstrip(b" \t\r")
            if not remainder or (remainder.startswith(b"%") and not is_continued):
                raise lines.too_long(url, lines.line_number(url, start))
            yield rest[:end], True
            start, rest, is_continued = start + end, rest[end:], True
    if rest:
        yield rest, False


def _neighbours(url: str, header: Header, position: Position, block: bytes) -> Array:
    """Read a block's (vertex, neighbour) pairs, shape (2, entries)."""
    text = _uncommented(position, block)
    starts = _starts(text)
    numbers = _numbers(text, len(starts), header)
    if numbers is None:
        _refuse(url, header, position, block)
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    ends = np.append(ends, len(text)) if text and not text.endswith(b"\n") else ends
    bounds = np.append(0, np.searchsorted(starts, ends))
    counts = np.diff(bounds)
    vertex_lines = max(0, header.vertices - position.vertex + 1)  # further lines must be blank
    line_counts = counts[:vertex_lines].copy()  # numbers per line, including those in earlier blocks
    line_counts[:1] += position.before
    whole_counts = line_counts[: len(line_counts) - 1] if position.open and len(counts) <= vertex_lines else line_counts
    lead = min(header.lead, np.iinfo(np.int64).max >> 1)
    if counts[vertex_lines:].any() or (whole_counts < lead).any() or ((whole_counts - lead) % header.stride).any():
        _refuse(url, header, position, block)
    if lead or header.stride > 1:
        index = np.arange(len(numbers)) - np.repeat(bounds[:-1], counts) - lead
        index[: counts[0] if len(counts) else 0] += position.before
        numbers = numbers[(index >= 0) & (index % header.stride == 0)]
    integral = numbers.dtype.kind == "i" or bool((np.trunc(numbers) == numbers).all())
    if not integral or (len(numbers) and not 1 <= numbers.min() <= numbers.max() <= header.vertices):
        _refuse(url, header, position, block)
    dtype = _dtype(header)
    neighbour_counts = _listed(line_counts, lead, header.stride)
    neighbour_counts[:1] -= _listed(np.array([position.before]), lead, header.stride)
    vertices = np.arange(position.vertex, position.vertex + len(neighbour_counts), dtype=dtype)
    return np.stack([np.repeat(vertices, neighbour_counts), numbers.astype(dtype)])


def _listed(numbers: Array, lead: int, stride: int) -> Array:
    """Count the neighbours among the first numbers of a line."""
    return numbers if lead == 0 and stride == 1 else -(-np.maximum(numbers - lead, 0) // stride)


def _numbers(text: bytes, count: int, header: Header) -> Array | None:
    """Read the numbers of a text; return None if it holds anything else."""
    if not count:
        return np.empty(0, np.int64)
    has_weights = header.lead > 0 or header.stride > 1  # weights may be written as reals
    is_integral = not text.translate(None, lines.INTEGERS)
    if not is_integral and (not has_weights or text.translate(None, REALS)):
        return None
    try:
        numbers = np.fromstring(text, np.int64 if is_integral else np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    return numbers if len(numbers) == count else None


def _starts(text: bytes) -> Array:
    """Return the offset of the first character of each number in a text."""
    blank = np.frombuffer(text, np.uint8) <= ord(" ")
    return np.flatnonzero(~blank & np.append(True, blank[:-1])[: len(blank)])


def _uncommented(position: Position, text: bytes) -> bytes:
    if b"%" not in text:
        return text
    start = text.find(b"\n") + 1 or len(text) if position.before else 0  # a continued line is no comment
    return text[:start] + COMMENT.sub(b"", text[start:])


def _last_vertex(position: Position, text: bytes) -> int:
    """Number of the last vertex whose line has ended by the end of a block."""
    text = _uncommented(position, text)
    return position.vertex - 1 + text.count(b"\n") + bool(text and not text.endswith(b"\n") and not position.open)


def _dtype(header: Header) -> Any:
    return np.dtype(np.int32 if header.vertices < 1 << 31 else np.int64)


_FACTORS = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
"""Odd factors that spread ids over 64 bits."""


def _is_symmetric(url: str, header: Header, nbytes: int) -> bool:
    """Return whether each neighbour lists its vertex as often, by a sum over hashes of pairs that is zero then."""
    total = 0
    for position, text in _blocks(url, header, nbytes):
        src, dst = _neighbours(url, header, position, text).astype(np.uint64)
        forward_hash, backward_hash = _hash(src, dst), _hash(dst, src)
        total += int((forward_hash - backward_hash).sum(dtype=np.uint64))
    return total % (1 << 64) == 0


def _hash(src: Array, dst: Array) -> Array:
    first, second = (ids * np.uint64(factor) for ids, factor in zip((src, dst), _FACTORS, strict=True))
    return (first ^ first >> np.uint64(31)) * (second ^ second >> np.uint64(31))


def _check(url: str, header: Header, vertices: int, neighbours: int, loops: int, nbytes: int) -> None:
    """Check the file against the header; a loop may be in its vertex's line once or twice."""
    # A last vertex without neighbours or weights may be invisible: an empty line without a line end. A blank line that
    # was lost above it looks the same, but moves all vertices below, so that neighbours do not list each other.
    last = header.lead == 0 and vertices == header.vertices - 1 and _is_symmetric(url, header, nbytes)
    if vertices < header.vertices - last:
        raise InputError(
            f"{url} holds {plural(vertices, 'vertex line')} where its header says {header.vertices:,}: the file "
            "was cut short, or lost its blank lines, which are vertices without neighbours; fetch or export it again"
        )
    if 2 * header.edges not in (neighbours, neighbours + loops):
        raise InputError(
            f"{url} lists {plural(neighbours, 'neighbour')} where its header says {plural(header.edges, 'edge')}, each "
            "listed twice: the file was cut short, lists edges once, or its header is wrong; fetch or export it again"
        )


def _refuse(url: str, header: Header, position: Position, text: bytes) -> NoReturn:
    """Raise an error that names the first wrong line of a block; slow, and only run if there is one."""
    vertex, fields_read = position.vertex, position.before
    rows = text.removesuffix(b"\n").split(b"\n")
    for number, row in enumerate(rows, position.line):
        if fields_read == 0 and row.lstrip(b" \t").startswith(b"%"):
            continue
        is_open = position.open and number == position.line + len(rows) - 1
        fault = _fault(header, vertex, row.decode("utf-8", "replace").split(), fields_read, is_open)
        if fault:
            raise InputError(
                f"line {number} of {url}, vertex {vertex}, {fault}: damaged, another format or a wrong "
                f"header; check the line, or {advice('format')}"
            )
        vertex, fields_read = vertex + 1, 0
    raise InputError(f"{url} cannot be read as METIS after line {position.line}: damaged; fetch it again")


def _fault(header: Header, vertex: int, fields: list[str], fields_read: int, is_open: bool) -> str | None:
    if vertex > header.vertices:
        return f"is beyond the header's {plural(header.vertices, 'vertex')}" if fields else None
    total = fields_read + len(fields)
    if not is_open and (total < header.lead or (total - header.lead) % header.stride):
        return f"holds {total} numbers, which does not fit the header's weights"
    for place, field in enumerate(fields, fields_read - header.lead):
        number = lines.counts([field.encode()]) or [0]
        if place >= 0 and place % header.stride == 0 and not 1 <= number[0] <= header.vertices:
            return f"holds {field[:40]!r} where a neighbour from 1 to {header.vertices} is expected"
        try:
            float(field)
        except ValueError:
            return f"holds {field[:40]!r} where a weight is expected"
    return None
