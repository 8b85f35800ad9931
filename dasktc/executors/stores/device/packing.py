"""Pickles values without their device arrays, which are not copied."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import cudf
import cupy as cp
import numpy as np

from dasktc.backends.csr import Array
from dasktc.backends.cuda.frames import frame_of_arrays

__all__ = ["Packed", "detached", "pack", "unpack"]


class Packed(NamedTuple):
    """A value pickled without its arrays, which are not copied; the pickle has each one's number, type and shape."""

    head: bytes
    arrays: list[Array]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays)


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, 5)
        self.arrays: dict[int, Array] = {}

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, cp.ndarray):
            return None
        number = list(self.arrays).index(id(value)) if id(value) in self.arrays else len(self.arrays)
        self.arrays[id(value)] = value
        return number, value.dtype.str, value.shape

    def reducer_override(self, value: Any) -> Any:
        """Pickle a frame of integers as its columns, which are arrays; cuDF itself pickles one of text, on the host."""
        if isinstance(value, cudf.DataFrame):
            columns = [(name, value[name]) for name in value]  # made anew at each access
            if all(column.dtype.kind in "iu" for _, column in columns):
                return _frame, ([(name, column.values) for name, column in columns],)
        return NotImplemented


def _frame(columns: list[tuple[str, Array]]) -> Any:
    return frame_of_arrays(dict(columns))


Maker = Callable[[int, Any, tuple[int, ...]], Array]
"""Makes an array from its number, type and shape."""


class _Unpickler(pickle.Unpickler):
    def __init__(self, head: bytes, arrays: Maker) -> None:
        super().__init__(io.BytesIO(head))
        self._arrays, self._by_number = arrays, dict[int, Array]()

    def persistent_load(self, description: Any) -> Array:
        number, dtype, shape = description
        if number not in self._by_number:
            self._by_number[number] = self._arrays(number, np.dtype(dtype), shape)
        return self._by_number[number]


def pack(value: Any) -> Packed:
    """Pickle a value without its device arrays."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    return Packed(file.getvalue(), list(pickler.arrays.values()))


def unpack(head: bytes, arrays: Maker) -> Any:
    """Unpickle a value; `arrays` makes each of its arrays, once."""
    return _Unpickler(head, arrays).load()


def detached(value: Any) -> Any:
    """Copy a value's arrays, which may be parts of larger ones; an array that is no view is returned itself."""
    if isinstance(value, cp.ndarray):
        return value if value.base is None else value.copy()
    packed = pack(value)
    return unpack(packed.head, lambda number, *_: packed.arrays[number].copy())
