"""NumPy files: .npy arrays read by row ranges, .npz archives and SciPy sparse matrices in one piece.

Of a sparse matrix ids are the 0-based indices, and what it stores is an edge, an explicit zero too,
except in the formats that pad with zeros (BSR, DIA). Nothing is ever unpickled.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from dasktc.errors import InputError
from dasktc.io.formats import columns, files

if TYPE_CHECKING:
    from dasktc.backends import Backend
    from dasktc.io.source import Part, ReadOptions

__all__ = ["archive_parts", "array_parts"]

Array = Any


@dataclass(frozen=True)
class _Rows:
    """Rows `start` to `stop` of an .npy array of shape (rows, 2) that begins at byte `offset`."""

    url: str
    start: int
    stop: int
    rows: int
    dtype: str
    by_column: bool
    offset: int
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        if self.by_column:
            src, dst = (
                self._items(self.start, self.stop),
                self._items(self.rows + self.start, self.rows + self.stop),
            )
        else:
            src, dst = self._items(2 * self.start, 2 * self.stop).reshape(-1, 2).T
        return columns.frame(
            backend,
            columns.integers(self.url, "its array", src),
            columns.integers(self.url, "its array", dst),
        )

    def _items(self, start: int, stop: int) -> Array:
        dtype = np.dtype(self.dtype)
        first, last = self.offset + start * dtype.itemsize, self.offset + stop * dtype.itemsize
        if files.is_compressed(self.url):
            with files.open_decompressed(self.url) as stream:
                data = stream.read()[first:last]
        else:
            data = files.read_range(self.url, first, last)
        if len(data) < last - first:
            raise InputError(
                f"{self.url} ends {last - first - len(data):,} bytes before its {self.rows:,} rows do: the "
                "file was cut short; fetch it again"
            )
        return np.frombuffer(data, dtype)


@dataclass(frozen=True)
class _Archive:
    url: str
    names: tuple[str, str] | None
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        with files.open_decompressed(self.url) as stream, columns.one_line(self.url):
            file = io.BytesIO(stream.read()) if files.is_compressed(self.url) else stream
            with np.load(file, allow_pickle=False) as archive:
                sparse = {"format", "shape"} <= set(archive.files)
                if sparse and self.names is not None:
                    raise InputError(
                        f"--columns {','.join(self.names)} is given for {self.url}, a SciPy sparse matrix: it has no "
                        "columns to choose from; leave it out"
                    )
                pair = () if sparse else _arrays(self.url, archive, self.names)
            if sparse:
                file.seek(0)
                pair = _sparse(self.url, file)
        return columns.frame(backend, *pair)


def archive_parts(url: str, options: ReadOptions) -> list[Part]:
    """Read an .npz file, NumPy's or SciPy's, as one part."""
    return [_Archive(url, options.columns)]


def array_parts(url: str, start: bytes, options: ReadOptions) -> list[Part]:
    """Cut an .npy file, which begins with the bytes `start`, into row ranges."""
    from numpy.lib import format as npy

    header = io.BytesIO(start)
    with columns.one_line(url):
        version = npy.read_magic(header)
        reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_column, dtype = reader(header)
    if len(shape) != 2 or shape[1] != 2 or dtype.kind not in "iu":
        raise InputError(_no_pairs(url, "its array", shape, dtype))
    rows = shape[0]
    step = rows if files.is_compressed(url) else max(1, options.blocksize // (2 * dtype.itemsize))
    ranges = [(first, min(rows, first + step)) for first in range(0, rows, max(1, step))]
    return [_Rows(url, *span, rows, dtype.str, by_column, header.tell()) for span in ranges]


def _no_pairs(url: str, name: str, shape: tuple[int, ...], dtype: Any) -> str:
    advice = "save its transpose" if shape[:1] == (2,) else "save two columns of int64"
    return f"{name} in {url} is {dtype} of shape {shape}: edges are integers of shape (m, 2); {advice}"


def _arrays(url: str, archive: Any, wanted: tuple[str, str] | None) -> tuple[Array, Array]:
    """Take two arrays of a NumPy archive, or its only one of shape (m, 2)."""
    names = list(archive.files)
    if len(names) == 1 and wanted is None:
        array = archive[names[0]]
        if array.ndim != 2 or array.shape[1] != 2:
            raise InputError(_no_pairs(url, repr(names[0]), array.shape, array.dtype))
        pair = [(names[0], array[:, 0]), (names[0], array[:, 1])]
    else:
        pair = [(name, archive[name]) for name in columns.choose(url, names, wanted, dict.fromkeys(names))]
    (first, src), (second, dst) = pair
    if src.ndim != 1 or src.shape != dst.shape:
        raise InputError(
            f"arrays {first!r} and {second!r} of {url} have shapes {src.shape} and {dst.shape}: the ends of "
            "m edges are two arrays of shape (m,); name others with --columns"
        )
    return columns.integers(url, repr(first), src), columns.integers(url, repr(second), dst)


def _sparse(url: str, file: BinaryIO) -> tuple[Array, Array]:
    from scipy.sparse import load_npz

    matrix = load_npz(file)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"{url} is a matrix of {' x '.join(f'{n:,}' for n in matrix.shape)}: only a square one is the "
            "adjacency of a graph; for a bipartite graph give its vertices distinct ids in one edge list"
        )
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)  # what is read from a file may index outside the matrix
    entries = matrix.tocoo()
    rows, cols = entries.row, entries.col
    if matrix.format == "bsr":
        stored = entries.data != 0
        rows, cols = rows[stored], cols[stored]
    if len(rows) and not 0 <= min(rows.min(), cols.min()) <= max(rows.max(), cols.max()) < matrix.shape[0]:
        raise InputError(f"{url} indexes outside its {matrix.shape[0]:,} rows: damaged; save it again")
    return rows, cols
