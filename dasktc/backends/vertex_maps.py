"""Maps between the caller's vertex ids and dense ids 0..V-1: what each has, and those of ids in a narrow range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from dasktc.backends.csr import Array, on_host
from dasktc.errors import InputError
from dasktc.wording import plural

__all__ = ["MAX_VERTICES", "IntegerIds", "RangeMap", "TableMap", "VertexMap", "check_size"]

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


class IntegerIds:
    """Base of maps of integer ids, which list them in `ids`, ascending."""

    ids: Array

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.ids)

    def external(self, dense: Any) -> Any:
        """The caller's ids, int64."""
        return on_host(self.ids).take(dense)


class RangeMap:
    """Base of the maps of integer ids in a narrow range, which `Edges.keys` takes."""


@dataclass(frozen=True)
class TableMap(RangeMap, IntegerIds):
    """A table indexed by id - low."""

    low: int
    """The smallest id."""
    table: Array
    """Array of int32. Dense id of each external id, at id - low; entries of ids that do not occur are undefined and
    never read."""
    ids: Array
    """Array of int64, shape (V,). The caller's ids, ascending."""

    def dense(self, ids: Any) -> Array:
        """Dense ids, int32, by lookup."""
        values = getattr(ids, "values", ids)
        return self.table.take(values if self.low == 0 else values.astype("int64") - self.low)


def check_size(vertices: int) -> None:
    """Refuse graphs with more vertices than 32-bit columns can number (InputError)."""
    if vertices > MAX_VERTICES:
        raise InputError(
            f"the graph has {plural(vertices, 'vertex')}, {MAX_VERTICES:,} at most can be counted: "
            "vertex ids inside blocks are 32-bit; count its connected components one at a time"
        )
