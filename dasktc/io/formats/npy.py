"""Reads NumPy files: .npy arrays by row ranges; .npz archives and SciPy sparse matrices as one part.

The ids of a sparse matrix are its 0-based indices, and every stored entry is an edge, including
explicit zeros, except in the formats that pad with zeros (BSR, DIA). Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from dasktc.backends import Backend
from dasktc.errors import InputError
from dasktc.io.columns import FILE, edge_frame, readable
from dasktc.io.formats import streams
from dasktc.io.formats.entries import check_square
from dasktc.io.id_names import choose
from dasktc.io.source import Part, ReadOptions
from dasktc.io.sparse import entries
from dasktc.wording import advice, option, plural

__all__ = ["Archive", "array_parts"]

Array = Any
DEFLATED = 1100
"""Largest number of bytes to which one byte of a deflated zip member expands, rounded up."""
INDICES = {"shape", "indices", "indptr", "row", "col", "offsets"}
"""Arrays of a SciPy sparse matrix that SciPy would round to integers."""


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
        (frame,) = self.chunks(backend, max(1, self.stop - self.start))
        return frame

    def chunks(self, backend: Backend, most: int) -> Iterator[Any]:
        """Yield frames of at most `most` rows, at least one frame."""
        dtype = np.dtype(self.dtype)
        starts = [self.start, self.rows + self.start] if self.by_column else [2 * self.start]
        with ExitStack() as stack:
            inputs = [stack.enter_context(streams.open_decompressed(self.url)) for _ in starts]
            for stream, start in zip(inputs, starts, strict=True):
                streams.skip(stream, self.offset + start * dtype.itemsize)
            for first in range(self.start, max(self.stop, self.start + 1), most):
                count = min(most, self.stop - first)
                nbytes, items = 2 * count // len(inputs) * dtype.itemsize, []
                for stream in inputs:
                    data = streams.read_exactly(stream, nbytes)
                    _check_length(self.url, self.rows, nbytes - len(data))
                    items.append(np.frombuffer(data, dtype))
                src, dst = items if self.by_column else items[0].reshape(-1, 2).T
                yield edge_frame(backend, *(_integers(self.url, "its array", ends) for ends in (src, dst)))
            if self.stop == self.rows:
                _check_length(self.url, self.rows, -len(inputs[-1].read(1)))


def _check_length(url: str, rows: int, shortage: int) -> None:
    """Refuse a file in which bytes of its rows are missing, or, if that number is negative, follow them."""
    if shortage > 0:
        raise InputError(
            f"{url} ends {plural(shortage, 'byte')} before its {plural(rows, 'row does', 'rows do')}: the file was cut "
            "short, or its header is wrong; fetch it again"
        )
    if shortage < 0:
        raise InputError(
            f"{url} continues after its {plural(rows, 'row')}: several arrays in one file, of which only the first "
            "would be read, or a wrong header; save each array in a file of its own"
        )


def _integers(url: str, name: str, array: Array) -> Array:
    """Convert integers of any shape to int32 or int64 of this machine's byte order; `url` and `name` are for errors.

    InputError: the array holds no integers, or one of 2^63 or more.
    """
    if array.dtype.kind not in "iu":
        raise InputError(
            f"{name} in {url} holds {array.dtype}: ids in NumPy files are integers; save it as int64, or "
            "text ids in a Parquet or text file"
        )
    if array.dtype.kind == "u" and len(array) and array.max() >= 1 << 63:
        raise InputError(f"{name} in {url} holds {array.max()}: ids must be below 2^63; renumber the vertices")
    return np.ascontiguousarray(array, np.int32 if np.can_cast(array.dtype, np.int32) else np.int64)


@dataclass(frozen=True)
class Archive:
    """An .npz file, of NumPy or SciPy, from which arrays of these names are read."""

    url: str
    names: tuple[str, str] | None
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Read two arrays, or a sparse matrix, as one frame."""
        from scipy.sparse import load_npz

        with streams.open_decompressed(self.url) as stream, readable(self.url, FILE):
            file = io.BytesIO(stream.read()) if streams.is_archive(self.url) else stream
            with np.load(file, allow_pickle=False) as archive:
                if not {"format", "shape"} <= set(archive.files):
                    return edge_frame(backend, *_arrays(self.url, archive, self.names))
                if self.names is not None:
                    raise InputError(
                        f"{option('columns', self.names)} is given for {self.url}, a SciPy sparse matrix: it has no "
                        "columns to choose from; leave it out"
                    )
                for name in archive.files:
                    _check_member(self.url, archive, name)
                    if name in INDICES and (dtype := archive[name].dtype).kind not in "iu":
                        raise InputError(f"{name!r} in {self.url} holds {dtype}: indices are integers; save it again")
            file.seek(0)
            matrix = load_npz(file)
            check_square(self.url, matrix.shape)
            try:
                rows, cols, _ = entries(matrix)
            except InputError as error:
                raise InputError(f"{self.url}: {error}") from None
        return edge_frame(backend, rows, cols)


def array_parts(url: str, start: bytes, options: ReadOptions) -> list[Part]:
    """Cut an .npy file, whose first bytes are `start`, into row ranges."""
    header = io.BytesIO(start)
    shape, is_fortran, dtype = _array_header(url, header)
    if len(shape) != 2 or shape[1] != 2 or dtype.kind not in "iu":
        raise InputError(_no_pairs(url, "its array", shape, dtype))
    rows, is_archive = shape[0], streams.is_archive(url)
    row_bytes = 2 * dtype.itemsize
    if not is_archive:
        _check_length(url, rows, header.tell() + rows * row_bytes - streams.size(url))
    step = max(1, rows if is_archive else options.blocksize // row_bytes)
    ranges = [(first, min(rows, first + step)) for first in range(0, rows, step)]
    return [_Rows(url, *span, rows, dtype.str, is_fortran, header.tell()) for span in ranges]


def _array_header(url: str, stream: BinaryIO) -> tuple[tuple[int, ...], bool, Any]:
    """Parse the header of an array: shape, whether it is in Fortran order, and dtype."""
    from numpy.lib import format as npy

    with readable(url, FILE):
        try:
            version = npy.read_magic(stream)
            reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, is_fortran, dtype = reader(stream)
        except MemoryError as error:  # from Python's parser, for some headers of a few kilobytes
            raise ValueError("its header is no dictionary") from error
        if min(shape, default=0) < 0:
            raise ValueError(f"its header says the shape {shape}")
    return shape, is_fortran, dtype


def _no_pairs(url: str, name: str, shape: tuple[int, ...], dtype: Any) -> str:
    matrix = len(shape) == 2 and dtype.kind in "iufb"
    advice = "save two columns of int64"
    if dtype.kind in "US":
        advice = "save text ids in a Parquet or text file"
    elif matrix and shape[0] == 2 and dtype.kind in "iu":
        advice = "save its transpose"
    elif matrix and shape[1] > 1:
        advice += ", as array[:, :2].astype('int64') if the first two hold ids"
        if shape[0] == shape[1]:
            advice += ", or scipy.sparse.coo_array(array) with scipy.sparse.save_npz if it is an adjacency matrix"
    return f"{name} in {url} is {dtype} of shape {shape}: edges are integers of shape (m, 2); {advice}"


def _check_member(url: str, archive: Any, name: str) -> None:
    """Refuse an array of an archive whose header claims another size than the member has."""
    members = archive.zip
    member = members.getinfo(name if name in members.namelist() else f"{name}.npy")
    if member.file_size > DEFLATED * streams.size(url):
        raise InputError(
            f"{name!r} in {url} claims {plural(member.file_size, 'byte')}, in a file of {streams.size(url):,}: "
            "damaged; save it again"
        )
    with members.open(member) as stream:
        shape, _, dtype = _array_header(url, stream)
        shortage = stream.tell() + math.prod(shape) * dtype.itemsize - member.file_size
    if not dtype.hasobject and shortage:
        raise InputError(
            f"{name!r} in {url} holds {plural(member.file_size, 'byte')} where its header says "
            f"{member.file_size + shortage:,}: damaged; save it again"
        )


def _arrays(url: str, archive: Any, pair_names: tuple[str, str] | None) -> tuple[Array, Array]:
    """Read two arrays of a NumPy archive, or its only array of shape (m, 2)."""
    names = list(dict.fromkeys(archive.files))
    if len(names) == 1 and pair_names is None:
        _check_member(url, archive, names[0])
        array = archive[names[0]]
        if array.ndim != 2 or array.shape[1] != 2:
            raise InputError(_no_pairs(url, repr(names[0]), array.shape, array.dtype))
        pair = [(names[0], array[:, 0]), (names[0], array[:, 1])]
    else:
        array_names = [names[place] for place in choose(url, names, pair_names, [None] * len(names))]
        for name in array_names:
            _check_member(url, archive, name)
        pair = [(name, archive[name]) for name in array_names]
    (first, src), (second, dst) = pair
    if src.ndim != 1 or src.shape != dst.shape:
        raise InputError(
            f"arrays {first!r} and {second!r} of {url} have shapes {src.shape} and {dst.shape}: the ends of "
            f"m edges are two arrays of shape (m,); name others with {advice('columns')}"
        )
    return _integers(url, repr(first), src), _integers(url, repr(second), dst)
