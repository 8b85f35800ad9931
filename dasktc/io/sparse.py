"""Reads the stored entries of SciPy and CuPy sparse matrices, after a check of their index arrays.

The compiled code of these libraries does not check them: with a pointer beyond the indices SciPy
reads and writes outside of its arrays.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from dasktc.errors import InputError

__all__ = ["entries"]

Array = Any


def entries(matrix: Any) -> tuple[Array, Array, Array]:
    """Return rows, columns and values of the stored entries of a square matrix, on the host or device that holds it.

    The matrix is an array or matrix of SciPy, or a matrix of CuPy; all three arrays have shape (entries,), the first
    two of integers. InputError: it is not square, or its arrays contradict each other or its shape.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"the sparse matrix has shape {matrix.shape}: an adjacency matrix is square; pass a square one"
        )
    rows, columns, values = _stored(matrix)
    for axis, ids in ("rows", rows), ("columns", columns):
        if ids.ndim != 1 or ids.dtype.kind not in "iu" or len(ids) != len(rows):
            raise _damaged(matrix, f"stores {axis} as {ids.dtype} of shape {ids.shape}")
        low, high = (int(ids.min()), int(ids.max())) if len(ids) else (0, -1)
        if low < 0 or high >= matrix.shape[0]:
            raise _damaged(matrix, f"indexes {axis} {low:,} to {high:,}")
    return rows, columns, values


def _stored(matrix: Any) -> tuple[Array, Array, Array]:
    if matrix.format in ("csr", "csc", "bsr"):
        entry_count = _checked_pointers(matrix)
        if matrix.format != "bsr" and isinstance(matrix.indptr, np.ndarray):  # SciPy includes entries after the last
            lines = len(matrix.indptr) - 1
            major = np.repeat(np.arange(lines, dtype="i4" if lines <= 1 << 31 else "i8"), np.diff(matrix.indptr))
            minor = matrix.indices[:entry_count]
            return *((major, minor) if matrix.format == "csr" else (minor, major)), matrix.data[:entry_count]
    elif matrix.format == "lil":
        lists = matrix.rows.tolist()
        if len(lists) != matrix.shape[0]:
            raise _damaged(matrix, f"has {len(lists):,} lists of columns")
        rows = np.repeat(np.arange(len(lists)), list(map(len, lists)))
        return rows, _integers(list(chain.from_iterable(lists))), list(chain.from_iterable(matrix.data.tolist()))
    elif matrix.format == "dok":
        rows, columns = _integers(list(matrix.keys())).reshape(-1, 2).T
        return rows, columns, list(matrix.values())
    elif matrix.format == "coo":
        return matrix.row, matrix.col, matrix.data
    elif matrix.format == "dia" and (
        matrix.data.ndim != 2 or matrix.offsets.shape != matrix.data.shape[:1] or matrix.offsets.dtype.kind != "i"
    ):
        offsets, diagonals = matrix.offsets, matrix.data
        raise _damaged(
            matrix, f"has offsets of {offsets.dtype} and shape {offsets.shape} for diagonals of shape {diagonals.shape}"
        )
    coo = matrix.tocoo()
    selection = coo.data != 0 if matrix.format == "bsr" else slice(None)  # tocoo drops DIA's padding itself
    return coo.row[selection], coo.col[selection], coo.data[selection]


def _integers(values: list[Any]) -> Any:
    return np.array(values) if values else np.empty(0, np.int64)


def _checked_pointers(matrix: Any) -> int:
    """Check the offsets of rows (in CSC: columns) among the indices; return the number of indices in use."""
    lines = matrix.shape[matrix.format == "csc"]
    if matrix.format == "bsr":
        lines //= matrix.blocksize[0]
    pointers, indices = matrix.indptr, matrix.indices
    if pointers.dtype.kind not in "iu" or pointers.shape != (lines + 1,) or indices.ndim != 1:
        raise _damaged(
            matrix, f"has indptr of {pointers.dtype} and shape {pointers.shape}, where {lines + 1:,} integers belong"
        )
    first, last, has_descents = int(pointers[0]), int(pointers[-1]), bool((pointers[1:] < pointers[:-1]).any())
    if first or has_descents or last > len(indices):
        order = "falls in between" if has_descents else "never falls"
        raise _damaged(
            matrix, f"has indptr from {first:,} to {last:,} that {order}, for indices of length {len(indices):,}"
        )
    return last


def _damaged(matrix: Any, part: str) -> InputError:
    shape = " x ".join(f"{side:,}" for side in matrix.shape)
    return InputError(
        f"the {matrix.format} matrix of {shape} {part}: its arrays were changed, or are those of another; build it anew"
    )
