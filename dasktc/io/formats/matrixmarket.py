"""Reads Matrix Market coordinate files (.mtx, Graph Challenge .mmio) with fast_matrix_market.

If it is not installed, SciPy reads them with its own copy of that library. Every stored entry is an
edge, including explicit zeros, which their writer stored on purpose. Of a symmetric matrix only the
stored half is read, because directions are ignored. Ids are those of the file, 1-based.

The library never reads the file itself but whole lines, some megabytes at a time, below a header made
for them: on a NUL byte or a last line without an end it can crash, and it reads "2.5" as column 2 and
a value. A large uncompressed file is cut into parts at line ends; their entries are counted first, so
that parts cannot lose or gain one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np

from dasktc.backends import Backend
from dasktc.errors import InputError
from dasktc.io.columns import edge_frame, weights_of
from dasktc.io.formats import entries, lines, streams
from dasktc.io.source import Part, ReadOptions
from dasktc.options import Ids
from dasktc.wording import advice

__all__ = ["looks_like", "parts"]

Array = Any

BANNER = re.compile(rb"\s*+%++\s*+(matrix\s*market|[^\n]*\b(matrix|vector)\s+(coordinate|array)\b)", re.IGNORECASE)
ZERO = re.compile(rb"^[ \t]*(?:0+[ \t]+[0-9]+|[0-9]+[ \t]+0+)(?=[ \t\r\n]|\Z)", re.MULTILINE)
TROUBLE = re.compile(rb"\0|^[ \t]*[0-9]+[ \t]+[0-9]+[^0-9 \t\r\n]", re.MULTILINE)


@dataclass(frozen=True)
class _Entries(entries.EntryPart):
    field: str = "pattern"
    weighted: bool = False

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        if not self.weighted:
            return super().read(backend)
        rows, columns, values = [np.empty(0, self.dtype)], [np.empty(0, self.dtype)], [np.empty(0)]
        for start, block in self.blocks(entries.SCRATCH):
            for column, part in zip((rows, columns, values), self._parsed(block, start), strict=True):
                column.append(part)
        src, dst, weights = (np.concatenate(column) for column in (rows, columns, values))
        entries.check_total(self.url, len(src), self.entries)
        return edge_frame(backend, src + 1, dst + 1, weights_of(weights, f"the values of {self.url}"))

    def pairs(self, block: bytes | bytearray, start: int) -> Array:
        pairs = np.stack(self._parsed(block, start)[:2])
        pairs += 1
        return pairs

    def _parsed(self, block: bytes | bytearray, start: int) -> tuple[Array, Array, Array]:
        if block.translate(None, lines.INTEGERS) and (trouble := TROUBLE.search(block)):
            number = lines.line_number(self.url, start) + block.count(b"\n", 0, trouble.end() - 1)
            raise InputError(
                f"line {number} of {self.url} holds {trouble[0].strip()[:40].decode('latin-1')!r} where two integers "
                f"are expected: damaged, or another format; export it again, or check {advice('format')}"
            )
        banner = f"%%MatrixMarket matrix coordinate {self.field} general\n"  # each entry once, as stored
        size = f"{self.ids.stop - 1} {self.ids.stop - 1} {lines.count_nonblank(block)}\n"
        try:
            with _one_line(self.url, start, 2):
                return _read_entries(io.BytesIO(f"{banner}{size}".encode() + block + b"\n"))
        except InputError:
            if (zero := ZERO.search(block)) is None:
                raise
            number = lines.line_number(self.url, start) + block.count(b"\n", 0, zero.start())
            header = entries.header_line(self.url, b"%").number
        raise InputError(
            f"line {number} of {self.url} holds {zero[0].strip()[:40].decode()!r}, but Matrix Market numbers from 1: "
            f"perhaps they were written from 0 on; read its lines with {advice(format='text', skip=header)}"
        )


def looks_like(head: bytes) -> bool:
    """Return whether decompressed first bytes are a Matrix Market banner, or a broken one.

    A line such as "%%Matrix Market matrix ..." must be refused as a broken banner, not skipped as a
    comment of an edge list.
    """
    return BANNER.match(head) is not None


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Cut a Matrix Market file into parts.

    InputError: the header is broken, the matrix is not square and sparse, or (in a large file) the number of entries
    differs from the header.
    """
    header = entries.header_line(url, b"%")
    if re.fullmatch(rb"[0-9]+\s+[0-9]+\s*", header.text) and re.search(
        rb"matrix\s+coordinate", header.head[:256].lower()
    ):
        raise InputError(
            f"line {header.number} of {url} holds {header.text.strip()[:40].decode()!r} where 'rows columns entries' "
            "is expected: the line of sizes is missing; add it, or read the lines with "
            f"{advice(format='text', skip=header.number - 1)}"
        )
    with _one_line(url):
        rows, columns, count, kind, field, symmetry = _read_header(io.BytesIO(header.head.replace(b"\0", b"?")))
        if max(rows, columns) >= (1 << 63) - 1:
            raise ValueError(f"Line {header.number}: an integer out of range")
    if kind != "coordinate":
        raise InputError(
            f"{url} is a Matrix Market {kind} of {rows:,} x {columns:,}, which lists values, not edges: write the "
            "adjacency matrix in coordinate format"
        )
    entries.check_square(url, (rows, columns))
    if options.weight is not None and field not in ("real", "integer", "double", "unsigned-integer"):
        raise InputError(f"{url} holds entries of field {field}: weights are real numbers; leave weight out")
    if options.directed and symmetry != "general":
        raise InputError(f"{url} is a {symmetry} matrix: its edges have no direction; leave directed out")
    # The header is sound; entries are checked as they are read, or as a large file is cut.
    part = _Entries(url, range(1, rows + 1), count, len(header.head), field=field, weighted=options.weight is not None)
    if streams.is_archive(url) or streams.size(url) <= options.blocksize:
        return [part], "int"
    return list(_cut(part, options.blocksize)), "int"


def _cut(file: _Entries, nbytes: int) -> Iterator[Part]:
    """Cut a file into parts of about `nbytes` bytes; count their entries and compare them with the header."""
    total = 0
    for start, block in file.blocks(nbytes):
        count = lines.count_nonblank(block)
        yield replace(file, entries=count, start=start, stop=start + len(block))
        total += count
    entries.check_total(file.url, total, file.entries)


@contextmanager
def _one_line(url: str, start: int = 0, offset: int = 0) -> Iterator[None]:
    """Convert the library's errors to one line.

    The library numbers the lines of its input: `offset` lines of header, then the file's lines from byte `start` on.
    """
    try:
        yield
    except InputError:
        raise
    except (ValueError, OverflowError) as error:
        match = re.match(r"Line (\d+): ", str(error))
        place = url
        if match:
            place = f"line {int(match[1]) - offset + lines.line_number(url, start) - 1} of {url}"
        reason = " ".join(str(error)[match.end() if match else 0 :].split())[:200].rstrip(".")
        raise InputError(
            f"{place} cannot be read as Matrix Market ({reason}): damaged, cut short, or another format; "
            f"export it again, or check {advice('format')}"
        ) from error


def _read_header(stream: io.BytesIO) -> tuple[int, int, int, str, str, str]:
    """Return rows, columns, entries, kind ("coordinate", "array" or "vector"), field and symmetry."""
    try:
        from fast_matrix_market import read_header
    except ImportError:
        from scipy.io import mminfo

        rows, columns, entries, kind, field, symmetry = mminfo(stream)
        return rows, columns, entries, kind, field, symmetry
    header = read_header(stream)
    kind = header.format if header.object == "matrix" else header.object
    return header.nrows, header.ncols, header.nnz, kind, header.field, header.symmetry


def _read_entries(stream: io.BytesIO) -> tuple[Array, Array, Array]:
    """Return 0-based rows, columns and values of the entries; int32 if the matrix's size allows it, else int64."""
    try:
        from fast_matrix_market import read_coo
    except ImportError:
        from scipy.io import mmread

        sparse = {"spmatrix": False} if "spmatrix" in signature(mmread).parameters else {}  # needed from SciPy 1.18 on
        matrix = mmread(stream, **sparse)
        return matrix.row, matrix.col, matrix.data
    values, (rows, columns) = read_coo(stream, parallelism=1)[0]
    return rows, columns, values
