"""Converts columns of numbers to integer ids: integers, and floats and decimals that are whole, in memory or in files.

A float is an id as long as its type represents neighbouring integers exactly (float64: below 2^53).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dasktc.errors import InputError, shown

__all__ = ["Place", "int64_of", "integers_of_decimals", "integers_of_floats", "narrow", "whole_numbers"]

INT64 = np.iinfo(np.int64)
FRACTION = "a fraction is no id, this is perhaps a column of weights; name the id columns"


@dataclass(frozen=True)
class Place:
    """Position of a run of rows in the caller's object or file, for errors: the column `of`, and its row `first`."""

    of: str
    first: int = 0

    def refuse(self, row: int, value: Any, reason: str) -> InputError:
        """Make the error about one row and its value."""
        place = f"row {self.first + row} of {self.of}"
        text = shown(value.item() if isinstance(value, np.generic) else value)
        return InputError(f"{place} holds {text} where an id is expected: {reason}")

    def missing(self, row: int, value: Any) -> InputError:
        """Make the error about a missing value."""
        return self.refuse(row, value, "a missing value is no id; drop such rows first")

    def beyond(self, row: int, value: Any) -> InputError:
        """Make the error about an integer outside int64."""
        return self.refuse(row, value, f"ids lie from {INT64.min} to {INT64.max}; renumber, or pass ids='text'")


def integers_of_floats(numbers: Any, place: Place) -> Any:
    """Return integers unchanged; floats must be integral, and small enough to represent every integer exactly."""
    if numbers.dtype.kind != "f":
        return numbers
    exact = 2.0 ** min(np.finfo(numbers.dtype).nmant + 1, 53)
    wrong = ~((np.trunc(numbers) == numbers) & (np.abs(numbers) < exact))
    if wrong.any():
        row = int(wrong.argmax())
        value = numbers[row]
        if np.isnan(value):
            raise place.missing(row, value)
        if np.trunc(value) != value:
            raise place.refuse(row, value, FRACTION)
        raise place.refuse(row, value, f"{numbers.dtype} rounds integers from {exact:.0f} on; pass integers")
    return numbers.astype(np.int64)


def integers_of_decimals(values: Any, place: Place) -> Any:
    """Convert an Arrow array of decimals, none missing, to int64; InputError names a row with a fraction, or beyond."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(values, pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return int64_of(whole_numbers(values.to_pylist(), place), place)


def whole_numbers(values: Sequence[Any], place: Place) -> list[int]:
    """Convert decimals, none missing, to Python integers; InputError names a row with a fraction."""
    for row, value in enumerate(values):
        if not value.is_finite() or value != value.to_integral_value():
            raise place.refuse(row, str(value), FRACTION)
    return list(map(int, values))


def int64_of(values: Any, place: Place) -> Any:
    """Convert Python integers to int64; InputError names a row beyond it."""
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        row = next(row for row, value in enumerate(values) if not INT64.min <= value <= INT64.max)
        raise place.beyond(row, values[row]) from None


def narrow(integers: Any, place: Place) -> Any:
    """Convert integers of any type to int32 or int64."""
    if np.can_cast(integers.dtype, np.int32):
        return integers.astype(np.int32, copy=False)
    if integers.dtype == np.uint64 and len(integers) and integers.max() > INT64.max:
        row = int((integers > INT64.max).argmax())
        raise place.beyond(row, integers[row])
    return integers.astype(np.int64, copy=False)
