"""Converts columns of files and objects to ids, weights, and values for surveys, and checks them.

`settle` converts a column to a NumPy array of numbers or an Arrow array of text, without a copy if possible. Single
values (fractions, ids beyond 64 bits, and everything in a Dask partition) are checked in `to_ids`, when a part is read.
A float is an id as long as its type represents neighbouring integers exactly (float64: below 2^53).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from dasktc.backends import Backend
from dasktc.errors import DasktcError, InputError, shown
from dasktc.options import Ids
from dasktc.wording import advice, plural

__all__ = [
    "FILE", "Column", "Place", "agree", "check_lengths", "common_ids", "decode", "edge_frame", "ids_of", "ids_of_meta",
    "integers_of_text", "kept_values", "places_of", "readable", "series_of",
    "settle", "settle_objects", "text_of", "to_ids", "values_of", "weights_of",
]  # fmt: skip

Column = Any
"""A settled column: a numpy.ndarray of numbers, or an Arrow array of text, perhaps dictionary-encoded."""

INTEGER = (int, np.integer)
INT64 = np.iinfo(np.int64)
NO_INTEGER = f"ids='int' takes integers; convert the column, or read the edges with {advice(ids='text')}"
FRACTION = "a fraction is no id, this is perhaps a column of weights; name the id columns"
WEIGHT = "weights are finite numbers; drop such rows, or fill them in", "a weight"
NUMBER = "numbers are finite; drop such rows, or fill them in", "a number"
FILE = "damaged, cut short, or ids that do not fit; fetch or save it again"
OBJECT = "it is damaged, or its library does not offer this; convert it, for example to a NumPy array of shape (m, 2)"
"""Causes of an error of the library that reads a file, or an object in memory, and what to do."""


@contextmanager
def readable(what: str, remark: str = OBJECT) -> Iterator[None]:
    """Convert any exception of a library to an InputError of one line, which names what cannot be read."""
    try:
        yield
    except (DasktcError, MemoryError):
        raise
    except Exception as error:  # of a dozen types, among them zipfile's, tokenize's and Arrow's own
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise InputError(f"{what} cannot be read ({reason}): {remark}") from error


@dataclass(frozen=True)
class Place:
    """Position of a run of rows in the caller's object or file, for errors: the column `of`, and its row `first`.

    `remark` is that of `readable`.
    """

    of: str
    first: int = 0
    remark: str = OBJECT

    def refuse(self, row: int, value: Any, reason: str, expected: str = "an id") -> InputError:
        """Make the error about one row and its value."""
        text = shown(value.item() if isinstance(value, np.generic) else value)
        return InputError(f"row {self.first + row} of {self.of} holds {text} where {expected} is expected: {reason}")

    def missing(self, row: int, value: Any) -> InputError:
        """Make the error about a missing value."""
        return self.refuse(row, value, "a missing value is no id; drop such rows first")

    def beyond(self, row: int, value: Any) -> InputError:
        """Make the error about an integer outside int64."""
        return self.refuse(
            row, value, f"ids lie from {INT64.min} to {INT64.max}; renumber, or pass {advice(ids='text')}"
        )


def places_of(labels: Sequence[Any], table: str, first: int = 0) -> tuple[Place, Place]:
    """Return the positions of two columns' rows from `first`, for errors."""
    src, dst = (Place(f"column {label!r} of the {table}", first) for label in labels)
    return src, dst


def agree(types: Sequence[Ids], places: Sequence[Place]) -> Ids:
    """Return the common type of ids of both columns; InputError if they differ."""
    if types[0] != types[1]:
        raise InputError(
            f"{places[0].of} holds ids of type {types[0]}, {places[1].of} of type {types[1]}: "
            "one of them is perhaps no id column; name two others, or pass ids='text'"
        )
    return types[0]


def check_lengths(source: int, target: int, places: Sequence[Place]) -> None:
    """Refuse two columns of different lengths."""
    if source != target:
        raise InputError(
            f"{places[0].of} has {plural(source, 'row')}, {places[1].of} {target:,}: an edge has two ends; pass "
            "columns of equal length"
        )


def ids_of(column: Column) -> Ids:
    """Return the type of the ids in a settled column."""
    return "int" if isinstance(column, np.ndarray) else "text"


def ids_of_meta(column: Any, place: Place) -> Ids:
    """Return the id type of a Dask collection's empty column; object dtype counts as text until a part is read."""
    return "text" if column.dtype == object else ids_of(settle(column, None, place))


def common_ids(values: Collection[Any]) -> Ids | None:
    """Return "int" or "text" if every value is of that type, else None."""
    return "int" if _only(values, INTEGER) else "text" if _only(values, str) else None


def settle(values: Any, ids: Ids | None, place: Place) -> Column:
    """Convert a column to a NumPy array of numbers or an Arrow array of text, without a copy where possible.

    Parameters
    ----------
    values : sequence, array, pandas or Arrow column
        One-dimensional.
    ids : {"int", "text"} or None
        Type requested by the caller; None: the type of the column.
    place : Place
        For errors.

    Returns
    -------
    numpy.ndarray or Arrow array
        Of the column's length.

    Raises
    ------
    InputError
        The type is neither numbers nor text, or a row, named by its number, holds another type.
    """
    import pandas as pd
    import pyarrow as pa

    if isinstance(values, Sequence):
        values = series_of(values if isinstance(values, range) else list(values))
    values = getattr(values, "array", values)  # the array of a pandas Series or Index
    is_coded = isinstance(values, pd.Categorical) and values.categories.dtype != object
    if is_coded or hasattr(values, "__arrow_array__") or isinstance(values, np.ma.MaskedArray):
        values = pa.array(values)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _settle_arrow(values, ids, place)
    values = np.asarray(values)
    if values.dtype.kind in "OT":
        return settle_objects(values.astype(object, copy=False), ids, place)
    if values.dtype.kind == "U":
        return text_of(values, place)
    if values.dtype.kind not in "iuf":
        raise _no_ids(place, values.dtype)
    return values


def series_of(values: Any, index: Any = None) -> Any:
    """Make a pandas Series; of objects where a text is no UTF-8, which the check of objects refuses by its row."""
    import pandas as pd

    try:
        return pd.Series(values, index=index)
    except UnicodeError:
        return pd.Series(values, index=index, dtype=object)


def text_of(values: Any, place: Place, expected: str = "an id") -> Any:
    """Convert values to an Arrow array of strings, with `str` if necessary; InputError names a row that fails."""
    import pyarrow as pa

    try:
        has_fixed_width = isinstance(values, np.ndarray) and values.dtype.kind == "U"
        return pa.array(values if has_fixed_width else list(map(str, values)), pa.large_string())
    except ValueError:
        row = next(row for row, value in enumerate(values) if not _is_text(value))
        reason = "it cannot be written as UTF-8 text, or is too long; rename it"
        raise place.refuse(row, values[row], reason, expected) from None


def _is_text(value: Any) -> bool:
    try:
        str(value).encode()
    except ValueError:  # a lone surrogate, or an integer with more digits than Python converts
        return False
    return True


def _no_ids(spot: Place, dtype: Any) -> InputError:
    return InputError(
        f"{spot.of} has type {dtype}: ids are integers or strings; name the two id columns, or convert it"
    )


def _settle_arrow(values: Any, ids: Ids | None, spot: Place) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    is_coded = types.is_dictionary(values.type)
    kind = values.type.value_type if is_coded else values.type
    with readable(spot.of, spot.remark):
        values.validate(full=is_coded)
    if types.is_string_view(kind):  # a slice of views keeps, and accounts for, all of its buffers
        kind = pa.large_string()
        if is_coded:  # Arrow cannot cast views in a dictionary
            chunks = getattr(values, "chunks", [values])
            arrays = (pa.DictionaryArray.from_arrays(chunk.indices, decode(chunk.dictionary)) for chunk in chunks)
            values = pa.chunked_array(arrays, pa.dictionary(values.type.index_type, kind))
        else:
            values = decode(values)
    text = types.is_string(kind) or types.is_large_string(kind)
    if not (text or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        raise _no_ids(spot, values.type)
    _refuse_null(values, spot)
    if types.is_decimal(kind):
        decimals = pc.cast(values, kind)
        if ids == "text":
            return text_of(_whole_numbers(decimals.to_pylist(), spot), spot)
        return _integers_of_decimals(decimals, spot)
    return values if text else pc.cast(values, kind).to_numpy(zero_copy_only=False)


def _refuse_null(values: Any, place: Place) -> None:
    import pyarrow.compute as pc

    if values.null_count:
        raise place.missing(pc.index(values.is_null(), True).as_py(), None)


def settle_objects(values: Any, ids: Ids | None, place: Place) -> Column:
    """Convert an array of Python objects: all integers, all whole decimals, all strings, or (as text) both."""
    import pandas as pd

    nulls = pd.isna(values)
    if nulls.any():
        raise place.missing(int(nulls.argmax()), values[nulls.argmax()])
    if _only(values, (str, *INTEGER) if ids == "text" else str) and len(values):
        return text_of(values, place)
    if len(values) and _only(values, Decimal):
        numbers = _whole_numbers(values, place)
        return text_of(numbers, place) if ids == "text" else _int64_of(numbers, place)
    if not _only(values, INTEGER):
        lead = INTEGER if _only(values[:1], INTEGER) else (str,)
        row = next(i for i, value in enumerate(values) if not _only([value], lead))
        raise place.refuse(
            row,
            values[row],
            f"ids are all integers or all strings, not {type(values[row]).__name__}; convert the column",
        )
    return _int64_of(values, place)


def _only(values: Collection[Any], kinds: Any) -> bool:
    """Return whether every value is of one of these types; bool does not count as int."""
    return all(issubclass(kind, kinds) and kind is not bool for kind in set(map(type, values)))


def decode(column: Column) -> Column:
    """Convert text to large_string, without a dictionary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.cast(column, pa.large_string())


def to_ids(column: Column, ids: Ids, place: Place) -> Any:
    """Convert a column that is settled to checked ids of its length: int32 or int64, or a pandas array of str.

    `place` is for errors. InputError: a row, named by its number, holds a fraction, a missing value, or an integer
    beyond 64 bits.
    """
    import pandas as pd
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        numbers = _integers_of_floats(np.ascontiguousarray(column, column.dtype.newbyteorder("=")), place)
        return _narrow(numbers, place) if ids == "int" else pd.array(decode(pa.array(numbers)), dtype="str")
    with readable(place.of, place.remark):
        column.validate(full=True)  # Arrow's functions do not check offsets and codes
    text = decode(column)
    _refuse_null(text, place)  # a dictionary may contain nulls
    if ids == "int" and len(text):
        raise place.refuse(0, text[0].as_py(), NO_INTEGER)
    return pd.array(text, dtype="str") if ids == "text" else np.empty(0, np.int64)


def integers_of_text(column: Column, place: Place) -> Column:
    """Convert a column of decimal digits to int64; InputError names a row that holds others, or an integer beyond."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with readable(place.of, place.remark):
        try:
            return pc.cast(column, pa.int64())
        except pa.ArrowInvalid:
            for row, text in enumerate(decode(column).to_pylist()):
                if text is None:
                    continue
                if not re.fullmatch("-?[0-9]+", text):
                    raise place.refuse(row, text, NO_INTEGER) from None
                if not INT64.min <= int(text) <= INT64.max:
                    raise place.beyond(row, int(text)) from None
            raise


def _integers_of_floats(numbers: Any, place: Place) -> Any:
    """Return integers unchanged; floats must be integral, and small enough to represent every integer exactly."""
    if numbers.dtype.kind != "f":
        return numbers
    limit = 2.0 ** min(np.finfo(numbers.dtype).nmant + 1, 53)
    faults = ~((np.trunc(numbers) == numbers) & (np.abs(numbers) < limit))
    if faults.any():
        row = int(faults.argmax())
        value = numbers[row]
        if np.isnan(value):
            raise place.missing(row, value)
        if np.trunc(value) != value:
            raise place.refuse(row, value, FRACTION)
        raise place.refuse(row, value, f"{numbers.dtype} rounds integers from {limit:.0f} on; pass integers")
    return numbers.astype(np.int64)


def _integers_of_decimals(values: Any, place: Place) -> Any:
    """Convert an Arrow array of decimals, none missing, to int64; InputError names a row with a fraction, or beyond."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(values, pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return _int64_of(_whole_numbers(values.to_pylist(), place), place)


def _whole_numbers(values: Sequence[Any], place: Place) -> list[int]:
    """Convert decimals, none missing, to Python integers; InputError names a row with a fraction."""
    for row, value in enumerate(values):
        if not value.is_finite() or value != value.to_integral_value():
            raise place.refuse(row, str(value), FRACTION)
    return list(map(int, values))


def _int64_of(values: Any, place: Place) -> Any:
    """Convert Python integers to int64; InputError names a row beyond it."""
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        row = next(row for row, value in enumerate(values) if not INT64.min <= value <= INT64.max)
        raise place.beyond(row, values[row]) from None


def _narrow(integers: Any, place: Place) -> Any:
    """Convert integers of any type to int32 or int64."""
    if np.can_cast(integers.dtype, np.int32):
        return integers.astype(np.int32, copy=False)
    if integers.dtype == np.uint64 and len(integers) and integers.max() > INT64.max:
        row = int((integers > INT64.max).argmax())
        raise place.beyond(row, integers[row])
    return integers.astype(np.int64, copy=False)


def weights_of(values: Any, source: str, first: int = 0, words: tuple[str, str] = WEIGHT) -> Any:
    """Convert a column of weights.

    Parameters
    ----------
    values : sequence, array, pandas or Arrow column
        One-dimensional.
    source : str
        Description of the column, for errors.
    first : int
        The number of its first row, for errors.
    words : (str, str)
        What to do with other values, and what is expected, for errors.

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

    place = Place(source, first)
    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    column = pd.Series(values, dtype=None if len(values) else "float64")
    if column.dtype == object:
        foreign_types = {kind for kind in set(map(type, column)) if not issubclass(kind, Real | Decimal)}
        row = next((row for row, value in enumerate(column) if type(value) in foreign_types), None)
        if row is not None:
            raise place.refuse(row, column.iloc[row], *words)
    elif not (pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind in "biuf"):
        raise InputError(f"{source} has type {column.dtype}: weights are numbers; name another column, or convert it")
    weights = column.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong_rows = np.flatnonzero(~np.isfinite(weights))
    if len(wrong_rows):
        raise place.refuse(int(wrong_rows[0]), column.iloc[int(wrong_rows[0])], *words)
    return weights


def kept_values(values: Any, source: str, first: int, surveyed: bool) -> Any:
    """Convert a column of weights, or one for surveys; parameters and errors are those of these."""
    return values_of(values, source, first) if surveyed else weights_of(values, source, first)


def values_of(values: Any, source: str, first: int = 0) -> Any:
    """Convert a column of numbers, text or categories to int64, finite float64, or a pandas array of str of its length.

    Parameters are those of `weights_of`. InputError: a row, named by its number, has no value; or the column has values
    of several types, or of another one.
    """
    import pandas as pd

    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    column = pd.Series(values)
    gaps = np.flatnonzero(column.isna().to_numpy())
    if len(gaps):
        raise InputError(
            f"row {first + int(gaps[0])} of {source} has no value, as {plural(len(gaps), 'row has', 'rows have')}: "
            "every row needs one; fill them in, or drop such rows"
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    type_name = str(column.dtype)
    if column.dtype == object:
        kinds = set(map(type, column))
        if not all(issubclass(kind, str) for kind in kinds):
            names = type_name = " and ".join(sorted(kind.__name__ for kind in kinds))
            if len(kinds) > 1:
                raise InputError(f"{source} has values of the types {names}: a column is of one type; convert it")
            column = column.infer_objects()
    # Values are now floats, integers and booleans, or text.
    if column.dtype.kind == "f":
        return weights_of(column, source, first, NUMBER)
    if column.dtype.kind in "biu":
        if len(column) and int(column.max()) >= 1 << 63:
            raise InputError(f"{source} has the value {column.max()}: integers are below 2^63; shift them")
        return column.to_numpy(dtype=np.int64)
    if not pd.api.types.is_string_dtype(column):
        raise InputError(
            f"{source} has type {type_name}: columns are numbers of 64 bits, text or categories; convert it, numbers "
            "with astype('float64'), times with pandas.to_datetime and astype('int64')"
        )
    texts = text_of(column.to_numpy(dtype=object), Place(source, first), "a value")
    return pd.array(texts, dtype="str")


def edge_frame(backend: Backend, src: Any, dst: Any, weights: Any = None) -> Any:
    """Make an edge frame of two columns of ids, integers of one type or text, and of weights, without a copy."""
    if isinstance(src, np.ndarray):
        dtype = np.promote_types(src.dtype, dst.dtype)
        src, dst = src.astype(dtype, copy=False), dst.astype(dtype, copy=False)
    columns = {"src": src, "dst": dst} | ({} if weights is None else {"weight": weights})
    return backend.frame.DataFrame(columns, copy=False)
