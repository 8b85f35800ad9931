"""Maps between the caller's vertex ids and dense ids 0..V-1: a table, a sorted array, or a text column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from dasktc.backends import Backend
from dasktc.backends.csr import on_host
from dasktc.errors import InputError
from dasktc.options import Ids
from dasktc.wording import plural

__all__ = [
    "MAX_VERTICES",
    "SortedMap",
    "TableMap",
    "TextMap",
    "VertexMap",
    "arrays_of",
    "check_size",
    "map_of",
    "offsets",
]

Array = Any
MAX_VERTICES = 2**31 - 1
"""Limit of int32 columns, and of an int64 key of two dense ids."""


class VertexMap(Protocol):
    """A map between the caller's ids and dense ids."""

    @property
    def size(self) -> int:
        """Number of vertices."""
        ...

    def dense(self, ids: Any) -> Array:
        """Dense ids of a frame's column; every id must have occurred when the map was made."""
        ...

    def external(self, dense: Any) -> Any:
        """The caller's ids of dense ids (NumPy), on the host: int64 in NumPy, or text in Arrow."""
        ...


@dataclass(frozen=True)
class TableMap:
    """Map of integer ids in a narrow range: a table indexed by id - low.

    Attributes
    ----------
    low : int
        The smallest id.
    table : array of int32
        Dense id of each external id, at id - low; entries of ids that do not occur are undefined and never read.
    ids : array of int64, shape (V,)
        The caller's ids, ascending.
    """

    low: int
    table: Array
    ids: Array

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.ids)

    def dense(self, ids: Any) -> Array:
        """Dense ids, int32, by lookup."""
        return self.table.take(offsets(ids, self.low))

    def external(self, dense: Any) -> Any:
        """The caller's ids, int64."""
        return on_host(self.ids).take(dense)


@dataclass(frozen=True)
class SortedMap:
    """Map of integer ids anywhere in int64: the ascending ids, searched by `Backend.lookup`.

    Attributes
    ----------
    ids : array of int64, shape (V,)
        The caller's ids, ascending.
    backend : Backend
    """

    ids: Array
    backend: Backend

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.ids)

    def dense(self, ids: Any) -> Array:
        """Dense ids, int64."""
        return self.backend.lookup(self.ids, getattr(ids, "values", ids))

    def external(self, dense: Any) -> Any:
        """The caller's ids, int64."""
        return on_host(self.ids).take(dense)


@dataclass(frozen=True)
class TextMap:
    """Map of string ids: the ascending ids, searched by the backend's text functions.

    Attributes
    ----------
    ids : column of the backend's text ids, shape (V,)
        The caller's ids, ascending.
    backend : Backend
    """

    ids: Any
    backend: Backend

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.ids)

    def dense(self, ids: Any) -> Array:
        """Dense ids, int32 or int64."""
        return self.backend.text.dense(self.ids, ids)

    def external(self, dense: Any) -> Any:
        """The caller's ids, as an Arrow array."""
        return self.backend.text.arrow(self.ids).take(dense)


def map_of(parts: list[Any], ids: Ids, backend: Backend) -> SortedMap | TextMap:
    """Build the map of ascending ids from their consecutive columns."""
    if ids == "text":
        import pyarrow as pa

        return TextMap(backend.text.column(pa.concat_arrays(parts)), backend)
    return SortedMap(backend.array.concatenate(parts), backend)


def arrays_of(frame: Any) -> tuple[Array, Array]:
    """The src and dst arrays of an edge frame of integers, or of a pair of arrays."""
    return frame if isinstance(frame, tuple) else (frame["src"].values, frame["dst"].values)


def offsets(ids: Any, low: int) -> Array:
    """Offsets of a column's ids from the smallest id."""
    return ids.values if low == 0 else ids.values.astype("int64") - low


def check_size(vertices: int) -> None:
    """Refuse graphs with more vertices than 32-bit columns can number (InputError)."""
    if vertices > MAX_VERTICES:
        raise InputError(
            f"the graph has {plural(vertices, 'vertex')}, {MAX_VERTICES:,} at most can be counted: "
            "vertex ids inside blocks are 32-bit; count its connected components one at a time"
        )
