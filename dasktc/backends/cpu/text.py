"""Columns of text ids on the CPU: Arrow arrays, looked up through Arrow's hash table."""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.csr import Array

__all__ = ["arrow", "ascending", "dense", "unite"]


def arrow(ids: Any) -> Any:
    """Convert a column of ids to an Arrow array of large strings."""
    import pyarrow as pa

    return pa.array(ids, type=pa.large_string())


def unite(columns: list[Any]) -> Any:
    """The distinct ids of all columns, in no order."""
    import pyarrow as pa

    return pa.chunked_array([part for column in columns for part in _chunks(column)], pa.large_string()).unique()


def _chunks(column: Any) -> list[Any]:
    ids = arrow(column)
    return list(getattr(ids, "chunks", [ids]))


def ascending(ids: Any) -> Any:
    """Sort ids by their bytes."""
    return ids.sort()


def dense(ids: Any, column: Any) -> Array:
    """The place of each of a column's ids among `ids`, int32.

    If a column has fewer rows than there are ids, it makes the hash table, so that not all ids are hashed per column.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = arrow(column)
    if len(text) >= len(ids):
        return pc.index_in(text, value_set=ids).to_numpy()
    coded = (text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text).dictionary_encode()
    place = pc.index_in(ids, value_set=coded.dictionary)
    dense = np.empty(len(coded.dictionary), dtype="int32")
    dense[place.drop_null().to_numpy()] = np.flatnonzero(place.is_valid())
    return dense.take(coded.indices)
