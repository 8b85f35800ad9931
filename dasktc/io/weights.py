"""Converts a column of weights of any library to float64 and checks that every value is a finite number."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from dasktc.errors import InputError, shown

__all__ = ["weights_of"]

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


def _refused(source: str, row: int, value: Any) -> InputError:
    value = value.item() if isinstance(value, np.generic) else value
    return InputError(
        f"row {row} of {source} holds {shown(value)} where a weight is expected: weights are finite numbers; drop such "
        "rows, or fill them in"
    )
