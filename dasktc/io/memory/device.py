"""Makes sources of objects in GPU memory: CuPy arrays and matrices, cuDF and dask-cudf frames, cuGraph graphs.

The data stays on the device. No GPU library is imported here: objects are recognized by their attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dasktc.backends import Backend
from dasktc.errors import InputError
from dasktc.io.columns import agree, check_lengths, places_of
from dasktc.io.evidence import Choice, Notes, NotingPart, Reading, judge, note_frame, sample_of
from dasktc.io.memory.kinds import ON_GPU, kind, meta_of, roots
from dasktc.io.memory.parts import partitions
from dasktc.io.memory.tables import an_edge_a_row, choose_two
from dasktc.io.source import ReadOptions, Source
from dasktc.io.sparse import entries
from dasktc.options import Ids
from dasktc.planning.distribution import SourceSize
from dasktc.wording import plural

__all__ = ["from_device"]


class _OnDevice:
    """A part in GPU memory that is the caller's: `of` names it, `how` what copies it to the host."""

    of: str
    how: str
    borrowed: ClassVar[bool] = True

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Raise InputError, because a copy to the host must be requested."""
        raise _elsewhere(self.of, self.how)


@dataclass(frozen=True, eq=False)
class DevicePart(_OnDevice):
    """Two columns in GPU memory, arrays or cuDF columns."""

    src: Any
    dst: Any
    of: str
    how: str
    upstream: ClassVar[None] = None

    @property
    def rows(self) -> int:
        """Number of edges."""
        return len(self.src)

    def ends(self, backend: Backend) -> tuple[Any, Any] | None:
        """Return both columns as contiguous arrays of integers; None for text."""
        if self.src.dtype.kind not in "iu" or self.dst.dtype.kind not in "iu":
            return None
        src, dst = (getattr(column, "values", column) for column in (self.src, self.dst))
        return src if src.flags.c_contiguous else src.copy(), dst if dst.flags.c_contiguous else dst.copy()

    def read_on_device(self, backend: Backend, upstream: Any = None) -> Any:
        """Return the frame of `Part.read`, or two arrays. They may be the caller's memory and must not be modified."""
        if hasattr(self.src, "isna") or hasattr(self.dst, "isna"):
            return backend.frame.DataFrame({"src": self.src, "dst": self.dst})
        return self.src, self.dst


@dataclass(frozen=True, eq=False)
class DevicePartition(_OnDevice, NotingPart):
    """A partition of a dask-cudf DataFrame, or of a Dask Array of CuPy arrays.

    Its Delayed is not pickled with the part. Without `names` it is an array of two columns.
    """

    upstream: Any
    names: tuple[Any, Any] | None
    of: str
    how: str
    choice: Choice | None = None
    notes: Notes | None = None
    begins: bool = False

    def read_on_device(self, backend: Backend, upstream: Any = None) -> Any:
        """Return the frame of `Part.read` from the computed partition `upstream`."""
        if self.notes is not None and self.choice is not None:
            note_frame(self.notes, upstream)
        labels = self.names or (0, 1)
        src, dst = (upstream[:, label] if self.names is None else upstream[label] for label in labels)
        for label, column in zip(labels, (src, dst), strict=True):
            _ids(column, f"column {label!r} of {self.of}")
        return (src, dst) if self.names is None else backend.frame.DataFrame({"src": src, "dst": dst})

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "upstream": None}


def _elsewhere(name: str, library: str) -> InputError:
    return InputError(
        f"{name} is in GPU memory: backend cpu does not read it; pass what its {library} returns, or count with "
        "backend='cuda'"
    )


def from_device(obj: Any, options: ReadOptions) -> Source:
    """Take two columns in GPU memory as one part.

    `obj` is an array of shape (m, 2), a frame (a dask-cudf frame is not computed), a sparse matrix, a graph, or a pair
    of columns; `columns` of the options names a frame's id columns. InputError: it does not have two columns of
    integers, or (in cuDF) of text.
    """
    first = obj[0] if isinstance(obj, tuple | list) else obj
    root = next(root for root in (*roots(first), *roots(meta_of(first))) if root in ON_GPU)
    if hasattr(obj, "to_delayed"):
        return _partitions(obj, options, ON_GPU[root])
    ids_columns = _columns(obj, first, options, ON_GPU[root])
    columns, labels = ids_columns.pair, ids_columns.labels
    if ids_columns.choice is not None:
        judge(ids_columns.choice, [sample_of(obj if hasattr(obj, "iloc") else obj.view_edge_list())])
    places = places_of(labels, kind(first))
    ids = agree([_ids(column, place.of) for column, place in zip(columns, places, strict=True)], places)
    if options.ids not in (None, ids):
        raise InputError(f"ids='{options.ids}' is given for {kind(first)}, which holds {ids} ids; convert its columns")
    check_lengths(len(columns[0]), len(columns[1]), places)
    part = DevicePart(columns[0], columns[1], kind(first), ON_GPU[root])
    size = SourceSize(len(columns[0]))
    parts = (part,) if size.rows else ()
    return Source(kind(first), parts, ids, size=size, in_memory=True, frames="cudf", reading=ids_columns.reading)


def _partitions(obj: Any, options: ReadOptions, library: str) -> Source:
    """Make a part of every partition; the meta gives columns and id type, so nothing is computed."""
    meta = meta_of(obj)
    has_names = hasattr(meta, "columns")
    if not has_names:
        obj = an_edge_a_row(obj, kind(obj))
    result = _columns(meta, meta, options, library) if has_names else _Columns([meta.reshape(-1)] * 2, [0, 1])
    columns, labels = result.pair, result.labels
    places = places_of(labels, kind(obj))
    ids = agree([_ids(column, place.of) for column, place in zip(columns, places, strict=True)], places)
    names = None
    if has_names:
        names = tuple(meta.columns[[str(name) for name in meta.columns].index(label)] for label in labels)
    parts = tuple(
        DevicePartition(delayed, names, kind(obj), library, result.choice, begins=number == 0)
        for number, delayed in enumerate(partitions(obj))
    )
    return Source(kind(obj), parts, ids, frames="dask-cudf", reading=result.reading)


class _Columns(NamedTuple):
    """Two columns and their names, and for a frame's how they were taken."""

    pair: list[Any]
    labels: list[Any]
    reading: Reading | None = None
    choice: Choice | None = None


def _columns(obj: Any, first: Any, options: ReadOptions, library: str) -> _Columns:
    """Return the two columns of an object."""
    if isinstance(obj, tuple | list):
        if len(obj) == 2 and all(getattr(column, "ndim", 0) == 1 for column in obj):
            return _Columns(list(obj), [0, 1])
    elif hasattr(obj, "view_edge_list"):
        edges = obj.view_edge_list()
        return _columns(edges, edges, options, library)
    elif hasattr(obj, "tocoo"):
        return _Columns(list(entries(obj)[:2]), [0, 1])
    elif getattr(obj, "ndim", 0) == 2 and hasattr(obj, "columns") and not hasattr(obj, "to_delayed"):
        labels = [str(label) for label in obj.columns]
        types = [obj[column].dtype for column in obj.columns]
        index = getattr(getattr(obj, "index", None), "names", ())
        places, reading, choice = choose_two(kind(obj), labels, types, options, index)
        pair = [obj[obj.columns[place]] for place in places]
        return _Columns(pair, [labels[place] for place in places], reading, choice)
    elif getattr(obj, "ndim", 0) == 2:
        edges = an_edge_a_row(obj, kind(obj))
        return _Columns([edges[:, 0], edges[:, 1]], [0, 1])
    raise _elsewhere(kind(first), library)


def _ids(column: Any, name: str) -> Ids:
    gaps = int(column.isna().sum()) if hasattr(column, "isna") else 0
    if gaps:
        raise InputError(f"{name} lacks {plural(gaps, 'id')}: an edge needs both ends; drop these rows")
    if column.dtype.kind in "iu" and column.dtype != "uint64":
        return "int"
    if column.dtype.kind in "OUT" and hasattr(column, "to_arrow"):
        return "text"
    raise InputError(f"{name} has type {column.dtype}: ids are integers or strings; convert it, for example to int64")
