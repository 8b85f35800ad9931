"""Matrix Market coordinate files (.mtx, Graph Challenge .mmio), read by fast_matrix_market.

SciPy, which carries a copy of that library, reads them where it is not installed. Every stored
entry is an edge, an explicit zero too: what a writer stored, it meant. Of a symmetric matrix the
stored half is read, since direction is ignored anyway. Ids are the file's own, 1-based.

The library is given whole lines, some megabytes at a time behind a header of their own, and never
the file: on a NUL byte or on a last line without an end it can crash, and it reads "2.5" as the
column 2 and a value. A large uncompressed file is cut into parts the same way, its lines counted
before, so that parts cannot lose or gain an entry.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dasktc.errors import InputError
from dasktc.io.formats import files, lines

if TYPE_CHECKING:
    from dasktc.backends import Backend
    from dasktc.io.source import Ids, Part, ReadOptions

__all__ = ["OPTIONS", "looks_like", "parts"]

OPTIONS: dict[str, frozenset[str]] = {"mtx": frozenset()}
Array = Any

BANNER = re.compile(rb"\s*+%++\s*+(matrix\s*market|[^\n]*\b(matrix|vector)\s+(coordinate|array)\b)", re.IGNORECASE)


PLAIN = b"0123456789 \t\r\n"
TROUBLE = re.compile(rb"\0|^[ \t]*[0-9]+[ \t]+[0-9]+[^0-9 \t\r\n]", re.MULTILINE)


class Header(NamedTuple):
    """What stands before the entries: byte `start` is the first of line `line`, where they begin.

    `kind` is "coordinate", "array" or "vector".
    """

    rows: int
    columns: int
    entries: int
    kind: str
    field: str
    symmetry: str
    start: int
    line: int


@dataclass(frozen=True)
class _File(lines.ByBlock):
    url: str
    header: Header
    upstream: None = None

    def arrays(self, nbytes: int) -> Iterator[Array]:
        start, line, entries = self.header.start, self.header.line, 0
        yield np.empty((2, 0), np.int32)
        with files.open_decompressed(self.url) as stream:
            files.skip(stream, start)
            for block in lines.blocks(stream, nbytes, self.url, start):
                count = lines.filled(block)
                entries += count
                if entries <= self.header.entries:  # more are counted, and not read
                    yield _entries(self.url, self.header, line, count, block)
                line += block.count(b"\n")
        _check(self.url, self.header, entries)


@dataclass(frozen=True)
class _Lines:
    """The `entries` entries in bytes `start` to `stop`, the first of which is that of line `line`."""

    url: str
    header: Header
    start: int
    stop: int
    line: int
    entries: int
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        block = files.read_range(self.url, self.start, self.stop)
        src, dst = _entries(self.url, self.header, self.line, self.entries, block)
        return backend.frame.DataFrame({"src": src, "dst": dst})


def looks_like(head: bytes) -> bool:
    """Whether decompressed first bytes are a Matrix Market banner, or a broken one.

    A line such as "%%Matrix Market matrix ..." is no comment of an edge list: it has to be refused
    as a broken banner.
    """
    return BANNER.match(head) is not None


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Cut a Matrix Market file into parts.

    Parameters
    ----------
    url : str
    options : ReadOptions

    Raises
    ------
    InputError
        The header is broken, the matrix is not a square sparse one, or (of a large file) the
        number of entries is not the header's.
    """
    header = _header(url)
    if header.kind != "coordinate":
        raise InputError(
            f"{url} is a Matrix Market {header.kind} of {header.rows:,} x {header.columns:,}, which lists "
            "values, not edges: write the adjacency matrix in coordinate format"
        )
    if header.rows != header.columns:
        raise InputError(
            f"{url} is a matrix of {header.rows:,} x {header.columns:,}: only a square one is the adjacency "
            "of a graph; for a bipartite graph give its vertices distinct ids in one edge list"
        )
    if files.is_compressed(url) or files.size(url) <= options.blocksize:
        return [_File(url, header)], "int"
    cut: list[Part] = list(_cut(url, header, options.blocksize))
    return cut, "int"


def _cut(url: str, header: Header, blocksize: int) -> Iterator[_Lines]:
    start, line, entries = header.start, header.line, 0
    with files.open_decompressed(url) as stream:
        stream.seek(start)
        for block in lines.blocks(stream, blocksize, url, start):
            count, stop = lines.filled(block), start + len(block)
            yield _Lines(url, header, start, stop, line, count)
            start, line, entries = stop, line + block.count(b"\n"), entries + count
    _check(url, header, entries)


def _check(url: str, header: Header, entries: int) -> None:
    lines.check_total(url, entries, "entries", "its header", header.entries)


@contextmanager
def _one_line(url: str, shift: int = 0) -> Iterator[None]:
    """Say the library's complaints in one line; `shift` is added to its line numbers."""
    try:
        yield
    except (ValueError, OverflowError) as error:
        found = re.match(r"Line (\d+): ", str(error))
        where = f"line {int(found[1]) + shift} of {url}" if found else url
        reason = " ".join(str(error)[found.end() if found else 0 :].split())[:200].rstrip(".")
        raise InputError(
            f"{where} cannot be read as Matrix Market ({reason}): damaged, cut short, or another format; "
            "export it again, or check --format"
        ) from error


def _header(url: str) -> Header:
    head, line = io.BytesIO(), 1
    with files.open_decompressed(url) as stream:
        for text in lines.header_lines(stream, url):
            head.write(text)
            line += 1
            if text.strip() and not text.lstrip().startswith(b"%"):
                break
    with _one_line(url):
        found = Header(*_read_header(io.BytesIO(head.getvalue().replace(b"\0", b"?"))), head.tell(), line)
        if max(found.rows, found.columns) >= (1 << 63) - 1:
            raise ValueError(f"Line {line - 1}: an integer out of range")
    return found


def _entries(url: str, header: Header, line: int, count: int, block: bytes) -> Array:
    """Read the ids of `count` entries in whole lines, the first of which is line `line`; shape (2, count)."""
    if block.translate(None, PLAIN) and (trouble := TROUBLE.search(block)):
        number, text = line + block.count(b"\n", 0, trouble.end() - 1), trouble[0].strip()[:40]
        raise InputError(
            f"line {number} of {url} holds {text.decode('latin-1')!r} where two integers are expected: "
            "damaged, or another format; export it again, or check --format"
        )
    banner = f"%%MatrixMarket matrix coordinate {header.field} general\n"  # each entry once, as it stands
    size = f"{header.rows} {header.columns} {count}\n"
    with _one_line(url, line - 3):
        pairs = np.stack(_read_entries(io.BytesIO(f"{banner}{size}".encode() + block + b"\n")))
    pairs += 1
    return pairs


def _read_header(stream: io.BytesIO) -> tuple[int, int, int, str, str, str]:
    try:
        from fast_matrix_market import read_header
    except ImportError:
        from scipy.io import mminfo

        rows, columns, entries, kind, field, symmetry = mminfo(stream)
        return rows, columns, entries, kind, field, symmetry
    found = read_header(stream)
    kind = found.format if found.object == "matrix" else found.object
    return found.nrows, found.ncols, found.nnz, kind, found.field, found.symmetry


def _read_entries(stream: io.BytesIO) -> tuple[Array, Array]:
    """Rows and columns of the entries, 0-based, int32 where the matrix's size allows it, else int64."""
    try:
        from fast_matrix_market import read_coo
    except ImportError:
        from scipy.io import mmread

        sparse = {"spmatrix": False} if "spmatrix" in signature(mmread).parameters else {}  # asked for from 1.18 on
        matrix = mmread(stream, **sparse)
        return matrix.row, matrix.col
    _, (rows, columns) = read_coo(stream, parallelism=1)[0]
    return rows, columns
