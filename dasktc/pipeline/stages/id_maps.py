"""Maps between the caller's vertex ids and dense ids 0..V-1: a table, a sorted array, or a text column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dasktc.backends import Backend
from dasktc.backends.vertex_maps import IntegerIds
from dasktc.options import Ids

__all__ = ["SortedMap", "TextMap", "arrays_of", "map_of"]

Array = Any


@dataclass(frozen=True)
class SortedMap(IntegerIds):
    """Map of integer ids anywhere in int64: the ascending ids, searched by `Backend.lookup`."""

    ids: Array
    """Array of int64, shape (V,). The caller's ids, ascending."""
    backend: Backend

    def dense(self, ids: Any) -> Array:
        """Dense ids, int32 or int64."""
        return self.backend.lookup(self.ids, getattr(ids, "values", ids))


@dataclass(frozen=True)
class TextMap:
    """Map of string ids: the ascending ids, searched by the backend's text functions."""

    ids: Any
    """Column of the backend's text ids, shape (V,). The caller's ids, ascending."""
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
    """The src and dst arrays of an edge frame of integers, which are its columns' memory."""
    src, dst = (getattr(frame[name], "values", frame[name]) for name in ("src", "dst"))
    return src, dst
