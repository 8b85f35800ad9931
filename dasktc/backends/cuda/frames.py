"""Edge frames on the device: how parts of a source become cuDF frames, and columns of text ids.

A part that can be read on the device is (`read_on_device`); any other is read on the host and copied once. Integer ids
are narrowed to 32 bits where they fit, one chunk at a time. A caller's own 64-bit arrays are used as they are, because
they would stay in memory beside their narrow copy.
"""

from __future__ import annotations

from typing import Any

import cudf
import cupy as cp
import numpy as np
import pylibcudf

from dasktc.backends.cpu.text import arrow
from dasktc.backends.csr import Array
from dasktc.backends.cuda.edge_arrays import EdgeArrays
from dasktc.backends.protocol import Backend

__all__ = ["arrow_of", "ascending", "column_of", "dense", "edge_frame", "frame_of_arrays", "narrowed", "read", "unite"]

CHUNK = 1 << 22
"""Ids that are narrowed in one step."""


def read(backend: Backend, host: Backend, part: Any, upstream: Any) -> Any:
    """Read a part of a source to the device.

    Parameters
    ----------
    backend : Backend
        The CUDA backend.
    host : Backend
        That of the host, which reads what the device cannot.
    part : Part
    upstream : object

    Returns
    -------
    EdgeArrays or cudf.DataFrame
        Columns "src" and "dst": both int32 or both int64, which are the arrays that the part has made, or that the
        caller holds; or both text.
    """
    device_reader = getattr(part, "read_on_device", None)
    result = None if device_reader is None else device_reader(backend, upstream)
    if isinstance(result, tuple):
        return EdgeArrays(*_narrow_unless_borrowed(part, *result))
    frame = part.read(host, upstream) if result is None else result
    columns = [frame[name] for name in ("src", "dst")]
    if not all(column.dtype.kind in "iu" for column in columns):
        if result is not None:
            return frame
        return cudf.DataFrame(dict(zip(("src", "dst"), map(column_of, columns), strict=True)))
    return EdgeArrays(*_narrow_unless_borrowed(part, *(column.values for column in columns)))


def edge_frame(edges: Any) -> Any:
    """Make the cuDF frame of edges; one of integers shares the arrays' memory, and one of text is such a frame."""
    if isinstance(edges, list):
        return list(map(edge_frame, edges))
    return frame_of_arrays({"src": edges.src, "dst": edges.dst}) if isinstance(edges, EdgeArrays) else edges


def frame_of_arrays(columns: dict[str, Array]) -> Any:
    """Make a frame of contiguous arrays, which share their memory with it.

    The constructor of cuDF takes longer, because it has pandas find the type of the columns' names.
    """
    table = pylibcudf.Table([pylibcudf.Column.from_cuda_array_interface(column) for column in columns.values()])
    return cudf.DataFrame.from_pylibcudf(table, {"columns": [*columns]})


def _narrow_unless_borrowed(part: Any, *columns: Array) -> list[Array]:
    """Narrow columns, except 64-bit ones that the caller holds, which are returned as they are."""
    wide = all(column.dtype == "int64" and column.flags.c_contiguous for column in columns)
    return list(columns) if wide and getattr(part, "borrowed", False) else narrowed(*columns)


def narrowed(*columns: Array) -> list[Array]:
    """Convert columns of integers, NumPy or CuPy, to CuPy arrays of one type: int32 where all of them fit."""
    dtype = "int32" if all(map(_fits, columns)) else "int64"
    return [_as_type(column, dtype) for column in columns]


def _fits(column: Array) -> bool:
    bounds = np.iinfo(np.int32)
    if np.can_cast(column.dtype, np.int32) or not len(column):
        return True
    return bounds.min <= int(column.min()) and int(column.max()) <= bounds.max


def _as_type(column: Array, dtype: str) -> Array:
    if isinstance(column, cp.ndarray) and column.flags.c_contiguous:
        if column.dtype == dtype:
            return column
        if (column.dtype, dtype) == ("uint32", "int32"):
            return column.view(dtype)
    copy = cp.empty(len(column), dtype=dtype)
    for start in range(0, len(column), CHUNK):
        copy[start : start + CHUNK] = cp.asarray(column[start : start + CHUNK])
    return copy


def unite(columns: list[Any]) -> Any:
    """The distinct ids of all columns, in no order."""
    return cudf.concat(columns, ignore_index=True).unique()


def ascending(ids: Any) -> Any:
    """Sort ids by their UTF-8 bytes."""
    return ids.sort_values(ignore_index=True)


def dense(ids: Any, column: Any) -> Array:
    """The place of each of a column's ids among `ids`, int64."""
    return ids.searchsorted(column)


def arrow_of(ids: Any) -> Any:
    """Copy ids to the host, as an Arrow array."""
    return ids.to_arrow()


def column_of(ids: Any) -> Any:
    """A column on the device, of text ids on the host."""
    return cudf.Series(arrow(ids))
