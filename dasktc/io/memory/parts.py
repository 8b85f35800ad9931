"""Parts of objects in memory: runs of rows of two columns, and partitions of Dask collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dasktc.backends import Backend
from dasktc.errors import InputError, shown
from dasktc.io.columns import (
    Column,
    Place,
    agree,
    check_lengths,
    decode,
    edge_frame,
    ids_of,
    kept_values,
    places_of,
    readable,
    settle,
    to_ids,
)
from dasktc.io.evidence import Choice, Notes, NotingPart, note_frame
from dasktc.io.source import ReadOptions, Source
from dasktc.io.watched import mapped
from dasktc.options import Ids
from dasktc.planning.distribution import SourceSize
from dasktc.wording import plural

__all__ = ["PartitionPart", "SlicePart", "partitions", "slices"]

PART_BYTES = 7_500_000
"""Bytes of ids in one part: Dask warns about a graph of more than 10 MB (`executors.dask.call_queue`)."""


@dataclass(frozen=True, eq=False)
class SlicePart:
    """A run of rows of two columns in memory: views in this process; pickled, only these rows."""

    src: Column
    dst: Column
    ids: Ids
    places: tuple[Place, Place]
    weight: Any = None
    upstream: ClassVar[None] = None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Return the frame of `Part.read`. It may be the caller's memory and must not be modified."""
        src, dst = (to_ids(end, self.ids, place) for end, place in zip((self.src, self.dst), self.places, strict=True))
        return edge_frame(backend, src, dst, self.weight)

    @property
    def rows(self) -> int:
        """Number of edges."""
        return len(self.src)

    def ends(self, backend: Backend) -> tuple[Any, Any] | None:
        """Return both columns as arrays of the backend if they need no check, copied in one step; else None."""
        if self.ids == "text" or not (_plain(self.src) and _plain(self.dst)):
            return None
        asarray, width = backend.array.asarray, self.src.itemsize
        is_interleaved = self.src.dtype == self.dst.dtype and self.src.strides == self.dst.strides == (2 * width,)
        if is_interleaved and self.dst.ctypes.data - self.src.ctypes.data == width:
            pairs = asarray(np.lib.stride_tricks.as_strided(self.src, (len(self.src), 2), (2 * width, width)))
            return pairs[:, 0].copy(), pairs[:, 1].copy()
        return asarray(np.ascontiguousarray(self.src)), asarray(np.ascontiguousarray(self.dst))

    def __sizeof__(self) -> int:
        from dask.sizeof import sizeof

        return sum(int(sizeof(column)) for column in (self.src, self.dst, self.weight))

    def __getstate__(self) -> dict[str, Any]:
        values, weight = self.weight, {}
        if values is not None and not isinstance(values, np.ndarray):  # text: a slice keeps the buffers of all rows
            import pandas as pd

            weight = {"weight": pd.array(np.asarray(values, dtype=object), dtype="str")}
        return {**self.__dict__, "src": _compact(self.src), "dst": _compact(self.dst), **weight}


@dataclass(frozen=True, eq=False)
class PartitionPart(NotingPart):
    """A partition of a Dask DataFrame, or a block of rows of a Dask Array. Its Delayed is not pickled with it.

    `convert` means that the caller chose `ids`; otherwise the partition must already have that type. `weight` is the
    position of the column of weights, or with `surveyed` of any values, if there is one. With a `choice` the part notes
    rows for its judgement; `begins` marks the first partition. `names` are the columns in the order of the collection,
    which Dask does not ensure in its partitions; None for those without names, or with repeated ones.
    """

    upstream: Any
    ids: Ids
    convert: bool
    places: tuple[Place, Place]
    columns: tuple[int, int] = (0, 1)
    weight: int | None = None
    choice: Choice | None = None
    notes: Notes | None = None
    begins: bool = False
    surveyed: bool = False
    names: tuple[Any, ...] | None = None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Return the frame of `Part.read` from the computed partition `upstream`."""
        with readable(f"what {self.places[0].of} was computed to"):
            if self.names is not None and tuple(upstream.columns) != self.names:
                upstream = upstream[list(self.names)]
            if self.notes is not None and self.choice is not None:
                note_frame(self.notes, upstream)
            return self._read(backend, getattr(upstream, "iloc", upstream))

    def _read(self, backend: Backend, rows: Any) -> Any:
        kind, ends, weights = self.ids if self.convert else None, [], None
        for i, place in zip(self.columns, self.places, strict=True):
            column = settle(rows[:, i], kind, place)
            if len(column) and not self.convert and ids_of(column) != self.ids:
                raise InputError(
                    f"{place.of} holds ids of type {ids_of(column)} where {self.ids} is expected: "
                    "its meta does not tell; pass ids='int' or ids='text'"
                )
            ends.append(to_ids(column, self.ids, place))
        if self.weight is not None:
            name = f"column {shown(self.names[self.weight])}" if self.names is not None else "the column of values"
            name = f"{name} beside {self.places[0].of}"
            weights = kept_values(rows[:, self.weight], name, 0, self.surveyed)
        return edge_frame(backend, ends[0], ends[1], weights)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "upstream": None}


def partitions(obj: Any) -> list[Any]:
    """Return the Delayeds of a Dask frame's or column's partitions, or of the blocks of rows of a Dask Array."""
    if not hasattr(obj, "numblocks"):
        return list(obj.to_delayed())
    rows = obj if obj.numblocks[1:] in ((), (1,)) else obj.rechunk({1: -1})
    return rows.to_delayed().ravel().tolist()  # type: ignore[no-any-return]


def slices(
    name: str, columns: Sequence[Any], options: ReadOptions, labels: Sequence[Any] = (0, 1), weights: Any = None
) -> Source:
    """Convert two columns, and a third of weights, and cut them into parts of at most `PART_BYTES` pickled bytes.

    InputError: the columns differ in length or in the type of their ids, or one holds no ids.
    """
    places = places_of(labels, name)
    src, dst = (settle(column, options.ids, place) for column, place in zip(columns, places, strict=True))
    check_lengths(len(src), len(dst), places)
    ids = options.ids or agree([ids_of(src), ids_of(dst)], places)
    if weights is not None:
        weights = kept_values(weights, f"column {shown(options.weight)} of the {name}", 0, options.surveyed)
        if len(weights) != len(src):
            raise InputError(
                f"the {name} has {plural(len(weights), 'weight')} for {plural(len(src), 'edge')}: pass one for each "
                "edge"
            )
    src_bytes, dst_bytes = _sizer(src), _sizer(dst)
    parts = []
    for start, stop in _cuts(0, len(src), lambda a, b: src_bytes(a, b) + dst_bytes(a, b)):
        row_weights = None if weights is None else weights[start:stop]
        parts.append(SlicePart(src[start:stop], dst[start:stop], ids, places_of(labels, name, start), row_weights))
    weight = None if weights is None else options.weight
    watched_parts = mapped(parts, src, dst)
    return Source(name, tuple(watched_parts), ids, size=SourceSize(len(src)), in_memory=True, weight=weight)


def _cuts(start: int, stop: int, nbytes: Callable[[int, int], int]) -> Iterator[tuple[int, int]]:
    """Halve a run of rows until every run has at most `PART_BYTES`."""
    if stop - start > 1 and nbytes(start, stop) > PART_BYTES:
        middle = (start + stop) // 2
        yield from _cuts(start, middle, nbytes)
        yield from _cuts(middle, stop, nbytes)
    elif stop > start:
        yield start, stop


def _sizer(column: Column) -> Callable[[int, int], int]:
    """Return a function of start and stop that gives the pickled bytes of rows, or a bound for dictionary text."""
    if isinstance(column, np.ndarray):
        return lambda start, stop: (stop - start) * column.itemsize
    if not hasattr(column.type, "value_type"):
        return lambda start, stop: int(column[start:stop].nbytes)
    import pyarrow.compute as pc

    words = [chunk.dictionary for chunk in getattr(column, "chunks", [column])]
    width = 8 + max((pc.max(pc.binary_length(word)).as_py() or 0 for word in words), default=0)
    return lambda start, stop: (stop - start) * width


def _plain(column: Column) -> bool:
    """Return whether the type of a column ensures that every value is a 64-bit id."""
    return isinstance(column, np.ndarray) and column.dtype.isnative and np.can_cast(column.dtype, np.int64)


def _compact(column: Column) -> Column:
    """Copy text out of the buffers of which it is a view, because they are pickled whole. NumPy pickles only a view."""
    if isinstance(column, np.ndarray):
        return column
    import pyarrow as pa

    text = decode(column)
    return pa.concat_arrays(text.chunks if isinstance(text, pa.ChunkedArray) else [text])
