"""Converts a column of weights to float64, or one of any values to numbers or text; every row needs a value."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from dasktc.errors import InputError, shown
from dasktc.wording import plural

__all__ = ["kept_values", "values_of", "weights_of"]

Array = Any


def weights_of(values: Any, source: str, first: int = 0) -> Array:
    """Convert a column of weights.

    Parameters
    ----------
    values : sequence, array, pandas or Arrow column
        One-dimensional.
    source : str
        Description of the column, for errors.
    first : int
        The number of its first row, for errors.

    Returns
    -------
    numpy.ndarray of float64
        Of the column's length.

    Raises
    ------
    InputError
        A row, named by its number, holds no finite number.
    """
    import pandas as pd

    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    column = pd.Series(values, dtype=None if len(values) else "float64")
    if column.dtype == object:
        wrong = {kind for kind in set(map(type, column)) if not issubclass(kind, Real | Decimal)}
        row = next((row for row, value in enumerate(column) if type(value) in wrong), None)
        if row is not None:
            raise _refused(source, first + row, column.iloc[row])
    elif not (pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind in "biuf"):
        raise InputError(f"{source} has type {column.dtype}: weights are numbers; name another column, or convert it")
    weights = column.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong_rows = np.flatnonzero(~np.isfinite(weights))
    if len(wrong_rows):
        raise _refused(source, first + int(wrong_rows[0]), column.iloc[int(wrong_rows[0])])
    return weights


def kept_values(values: Any, source: str, first: int, surveyed: bool) -> Array:
    """Convert a column of weights, or one for surveys; parameters and errors are those of these."""
    return values_of(values, source, first) if surveyed else weights_of(values, source, first)


def values_of(values: Any, source: str, first: int = 0) -> Array:
    """Convert a column of numbers, text or categories.

    Parameters
    ----------
    values, source, first
        As for `weights_of`.

    Returns
    -------
    numpy.ndarray of int64 or of finite float64, or pandas array of str
        Of the column's length.

    Raises
    ------
    InputError
        A row, named by its number, has no value; or the column has values of several types, or of another one.
    """
    import pandas as pd

    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    column = pd.Series(values)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    absent = np.flatnonzero(column.isna().to_numpy())
    if len(absent):
        raise InputError(
            f"row {first + int(absent[0])} of {source} has no value, as {plural(len(absent), 'row has', 'rows have')}: "
            "every row needs one; fill them in, or drop such rows"
        )
    if column.dtype == object:
        kinds = set(map(type, column))
        if not all(issubclass(kind, str) for kind in kinds):
            if len(kinds) > 1:
                names = " and ".join(sorted(kind.__name__ for kind in kinds))
                raise InputError(f"{source} has values of the types {names}: a column is of one type; convert it")
            column = column.infer_objects()
    if column.dtype.kind == "f":
        return weights_of(column, source, first)
    if column.dtype.kind in "biu":
        if len(column) and int(column.max()) >= 1 << 63:
            raise InputError(f"{source} has the value {column.max()}: integers are below 2^63; shift them")
        return column.to_numpy(dtype=np.int64)
    if not pd.api.types.is_string_dtype(column):
        raise InputError(
            f"{source} has type {column.dtype}: columns are numbers, text or categories; convert it, times for example "
            "with astype('int64')"
        )
    texts = pd.array(column.to_numpy(dtype=object), dtype="str")
    return texts


def _refused(source: str, row: int, value: Any) -> InputError:
    value = value.item() if isinstance(value, np.generic) else value
    return InputError(
        f"row {row} of {source} holds {shown(value)} where a weight is expected: weights are finite numbers; drop such "
        "rows, or fill them in"
    )
