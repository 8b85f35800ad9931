"""Columns of vertices and of edges that surveys read: numbers as they are, anything else as codes of categories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dasktc.errors import InputError

__all__ = ["Column", "Columns", "coded", "placed"]

Array = Any


@dataclass(frozen=True, eq=False)
class Column:
    """A column kept beside the blocks of a graph.

    Attributes
    ----------
    dtype : str
        Of the arrays: int64, float64, or int32 for codes.
    categories : tuple of object or None
        What the codes 0, 1, ... stand for, ascending; None: the values are numbers.
    values : handle of array, or dict of (i, j) to handle of array
        Of vertices: one array by the ids of the blocks. Of edges: one for each block, in the order of its columns.
    """

    dtype: str
    categories: tuple[Any, ...] | None
    values: Any = field(repr=False)


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns kept of a graph, by name; a name is of vertices or of edges."""

    vertices: dict[str, Column] = field(default_factory=dict)
    edges: dict[str, Column] = field(default_factory=dict)


def coded(values: Any, name: str) -> tuple[Array, tuple[Any, ...] | None]:
    """Convert the values of a column.

    Parameters
    ----------
    values : pandas Series
    name : str
        Description of the column, for errors.

    Returns
    -------
    array : array of int64, float64, or int32
    categories : tuple of object or None
        What the codes of int32 stand for.

    Raises
    ------
    InputError
        A value is absent, or the type is neither numbers, text nor categories.
    """
    import pandas as pd

    if values.isna().any():
        row = int(values.isna().to_numpy().argmax())
        raise InputError(
            f"{name} has {int(values.isna().sum()):,} absent values, the first in row {row:,}: every row needs one; "
            "fill them in, or drop these rows"
        )
    if pd.api.types.is_numeric_dtype(values.dtype) and values.dtype.kind in "biuf":
        if values.dtype.kind == "u" and len(values) and int(values.max()) >= 1 << 63:
            raise InputError(f"{name} holds {int(values.max())}: integers are below 2^63; shift them, or pass floats")
        return values.to_numpy(dtype=np.float64 if values.dtype.kind == "f" else np.int64), None
    if not isinstance(values.dtype, pd.CategoricalDtype) and not pd.api.types.is_string_dtype(values.dtype):
        if values.dtype != object:
            raise InputError(
                f"{name} has type {values.dtype}: columns are numbers, text or categories; convert it, times for "
                "example with astype('int64')"
            )
    codes, found = pd.factorize(values.astype(object), sort=False)
    try:
        order = sorted(range(len(found)), key=found.__getitem__)
    except TypeError:
        kinds = " and ".join(sorted({type(value).__name__ for value in found}))
        raise InputError(
            f"{name} holds values of the types {kinds}: categories are of one type; convert them"
        ) from None
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank.take(codes), tuple(found[place] for place in order)


def placed(values: Array, dense: Array, order: Array) -> Array:
    """Reorder values to the ids of the blocks.

    Parameters
    ----------
    values : array, shape (V,)
    dense : array of int64, shape (V,)
        The dense id of each value.
    order : array of integers, shape (V,)
        The dense id of each id of the blocks.
    """
    by_dense = np.empty_like(values)
    by_dense[dense] = values
    return by_dense.take(order)
