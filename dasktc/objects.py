"""In-memory sources: data frames, arrays, sparse matrices and graph objects, cut into parts.

A column of ids is settled once, in the client: into a NumPy array of numbers or an Arrow array of
text, without a copy where the object allows it. What depends on single values (fractions, ids
beyond 64 bits, all of a Dask partition) is checked when a part is read.

What an object means:

* a table: its two id columns, other columns ignored; an array: its two columns; a pair of columns;
* a SciPy sparse matrix: every stored entry is an edge, a stored zero too, as in a Matrix Market
  file. In the formats that pad with zeros (BSR its blocks, DIA its diagonals) a zero is no edge;
* a NetworkX graph: its nodes are the ids. Where they are not all integers or all strings, the ids
  are positions in node order, 0 to V - 1 (`node_labels` has the nodes);
* a python-igraph graph: its vertex indices are the ids, whatever a "name" attribute holds.

Integral floats are ids while their type tells neighbouring integers apart (float64: below 2^53).
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.errors import InputError
from dasktc.sources import Ids, ReadOptions, Source

if TYPE_CHECKING:
    from dasktc.backend import Backend

__all__ = ["PartitionPart", "SlicePart", "from_object", "node_labels"]

Column = Any
"""A settled column: a numpy.ndarray of numbers, or an Arrow array of text, perhaps dictionary-encoded."""

PART_BYTES = 7_500_000
"""Bytes of ids in one part: Dask warns about a graph of more than 10 MB."""

INTEGER = (int, np.integer)
INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class Place:
    """Where the first row of a run stands in what the caller handed over."""

    of: str
    first: int = 0

    def refuse(self, row: int, value: Any, reason: str) -> InputError:
        """Build the error about one row and the value that it holds."""
        shown = reprlib.repr(value.item() if isinstance(value, np.generic) else value)
        where = f"row {self.first + row} of {self.of}"
        return InputError(f"{where} holds {' '.join(shown.split())} where an id is expected: {reason}")

    def missing(self, row: int, value: Any) -> InputError:
        """Build the error about a missing value."""
        return self.refuse(row, value, "a missing value is no id; drop such rows first")

    def beyond(self, row: int, value: Any) -> InputError:
        """Build the error about an integer that int64 does not hold."""
        return self.refuse(
            row, value, f"ids lie from {INT64.min} to {INT64.max}; renumber, or pass ids='text'"
        )


@dataclass(frozen=True, eq=False)
class SlicePart:
    """A run of rows of two columns in memory: views in this process, these rows alone once pickled."""

    src: Column
    dst: Column
    ids: Ids
    places: tuple[Place, Place]

    @property
    def upstream(self) -> None:
        """Nothing has to be computed first."""

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Return the frame of `Part.read`. It may be the caller's own memory: not to be written to."""
        return _frame(backend, (self.src, self.dst), self.ids, self.places)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "src": _compact(self.src), "dst": _compact(self.dst)}


@dataclass(frozen=True, eq=False)
class PartitionPart:
    """A partition of a Dask DataFrame. Its Delayed stays behind when the part is pickled.

    `convert` says that the caller chose `ids`; else the partition must have that type by itself.
    """

    upstream: Any
    columns: tuple[int, int]
    ids: Ids
    convert: bool
    places: tuple[Place, Place]

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Return the frame of `Part.read` from the computed partition `upstream`."""
        wanted = self.ids if self.convert else None
        pair = [
            _settle(upstream.iloc[:, i], wanted, at) for i, at in zip(self.columns, self.places, strict=True)
        ]
        for column, at in zip(pair, self.places, strict=True):
            if len(column) and not self.convert and _ids_of(column) != self.ids:
                raise InputError(
                    f"{at.of} holds ids of type {_ids_of(column)} where {self.ids} is expected: "
                    "the DataFrame's meta does not tell; pass ids='int' or ids='text'"
                )
        return _frame(backend, pair, self.ids, self.places)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "upstream": None}


def from_object(obj: Any, options: ReadOptions) -> Source:
    """Make a source of an object in memory. Of a Dask DataFrame nothing is computed.

    Parameters
    ----------
    obj : object
        A pandas or Dask DataFrame, Arrow table, NumPy array of shape (m, 2), pair (tuple or list)
        of one-dimensional arrays or sequences, SciPy sparse matrix, NetworkX or python-igraph graph.
    options : ReadOptions
        `columns` names a table's id columns (None: its first two). `ids`: "text" makes decimal
        strings of integers, "int" refuses strings.

    Raises
    ------
    InputError
        It is none of these, or holds something else than ids: with the row where there is one.
    """
    opener = _opener(obj)
    if options.format is not None or options.skip is not None:
        raise InputError(f"format or skip is given for {_kind(obj)}: both are about files; leave them out")
    if options.columns is not None and opener not in (_from_pandas, _from_arrow, _from_dask):
        raise InputError(f"columns are given for {_kind(obj)}: it has no named columns; leave them out")
    return opener(obj, options)


def node_labels(graph: Any) -> list[Any] | None:
    """Return the nodes of a NetworkX graph whose ids are their positions 0 to V - 1.

    None where the nodes are the ids themselves, all integers or all strings.
    """
    nodes = list(graph)
    return None if _common_ids(nodes) else nodes


ON_GPU = {
    "cudf": ".to_pandas()",
    "cugraph": ".view_edge_list().to_pandas()",
    "cupy": ".get()",
    "cupyx": ".get()",
    "dask_cudf": '.to_backend("pandas")',
}


def _opener(obj: Any) -> Callable[[Any, ReadOptions], Source]:
    """Choose by where the type is defined: no library is imported to ask whether `obj` is its own."""
    pair = isinstance(obj, tuple | list)
    for item in obj[:2] if pair else [obj]:
        for root in set(_roots(item)) & set(ON_GPU):
            how = f"pass what its {ON_GPU[root]} returns"
            raise InputError(f"{_kind(item)} lies in GPU memory: backend cpu does not read it; {how}")
    if pair:
        return _from_pair
    for root in _roots(obj):
        if root in OPENERS:
            return OPENERS[root]
    if hasattr(obj, "__arrow_c_stream__"):
        return _from_arrow
    raise _unknown(obj)


def _roots(obj: Any) -> list[str]:
    return [kind.__module__.partition(".")[0] for kind in type(obj).__mro__]


def _kind(obj: Any) -> str:
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def _unknown(obj: Any) -> InputError:
    return InputError(
        f"{_kind(obj)} holds no edges: dasktc reads paths, pandas and Dask DataFrames, Arrow tables, "
        "NumPy arrays (m, 2), pairs of columns, SciPy sparse matrices, NetworkX and igraph graphs; pass one"
    )


def _from_pandas(obj: Any, options: ReadOptions) -> Source:
    if getattr(obj, "ndim", 0) != 2:
        raise _unknown(obj)
    labels = [str(label) for label in obj.columns]
    i, j = _choose(labels, options)
    return _slices("pandas DataFrame", [obj.iloc[:, i], obj.iloc[:, j]], options, [labels[i], labels[j]])


def _from_arrow(obj: Any, options: ReadOptions) -> Source:
    import pyarrow as pa

    if not hasattr(obj, "columns"):
        raise _unknown(obj)
    table = pa.table(obj)
    labels = table.column_names
    i, j = _choose(labels, options)
    return _slices("Arrow table", [table.column(i), table.column(j)], options, [labels[i], labels[j]])


def _from_dask(obj: Any, options: ReadOptions) -> Source:
    if getattr(obj, "ndim", 0) != 2 or not hasattr(obj, "to_delayed"):
        raise _unknown(obj)
    meta = obj._meta
    labels = [str(label) for label in meta.columns]
    i, j = _choose(labels, options)
    chosen = [labels[i], labels[j]]
    places = _places(chosen, "Dask DataFrame")
    promised = [_ids_of_meta(meta.iloc[:, k], at) for k, at in zip((i, j), places, strict=True)]
    ids = options.ids or _agree(promised, places)
    if meta.columns.is_unique:  # what reads the data then reads these two columns alone
        obj, i, j = obj[[meta.columns[i], meta.columns[j]]], 0, 1
    parts = []
    for number, delayed in enumerate(obj.to_delayed()):
        places = _places(chosen, f"Dask DataFrame's partition {number}")
        parts.append(PartitionPart(delayed, (i, j), ids, options.ids is not None, places))
    return Source("Dask DataFrame", tuple(parts), ids)


def _from_numpy(obj: Any, options: ReadOptions) -> Source:
    if not isinstance(obj, np.ndarray):
        raise _unknown(obj)
    edges = obj if isinstance(obj, np.ma.MaskedArray) else np.asarray(obj)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise InputError(
            f"the NumPy array has shape {edges.shape}: an edge list has one edge a row; pass shape (m, 2)"
        )
    return _slices("NumPy array", [edges[:, 0], edges[:, 1]], options)


def _from_pair(obj: Any, options: ReadOptions) -> Source:
    if len(obj) != 2:
        raise InputError(
            f"the {type(obj).__name__} has {len(obj)} items where two id columns are expected: "
            "it is perhaps a list of edges; pass numpy.array(edges)"
        )
    for item in obj:
        listed = isinstance(item, Sequence) and not isinstance(item, str | bytes)
        array = not {"numpy", "pandas", "pyarrow"}.isdisjoint(_roots(item)) and hasattr(item, "__len__")
        if not (listed or array) or getattr(item, "ndim", 1) != 1:
            raise InputError(
                f"the pair holds a {_kind(item)}: it is no id column; pass two 1-D arrays or sequences"
            )
    return _slices("pair", obj, options)


def _from_scipy(obj: Any, options: ReadOptions) -> Source:
    if not hasattr(obj, "tocoo"):
        raise _unknown(obj)
    if obj.ndim != 2 or obj.shape[0] != obj.shape[1]:
        raise InputError(
            f"the sparse matrix has shape {obj.shape}: an adjacency matrix is square; pass a square one"
        )
    coo = obj.tocoo()
    stored = coo.data != 0 if obj.format == "bsr" else slice(None)  # tocoo drops DIA's padding itself
    return _slices("sparse matrix", [coo.row[stored], coo.col[stored]], options)


def _from_networkx(graph: Any, options: ReadOptions) -> Source:
    """Read the adjacency, as `graph.edges` would, without a Python step for every edge."""
    import pyarrow as pa

    if not hasattr(graph, "adjacency"):
        raise _unknown(graph)
    nodes, rows = list(graph), [row for _, row in graph.adjacency()]
    ids = _common_ids(nodes)
    if ids is None and options.ids:
        types = ", ".join(sorted({type(node).__name__ for node in nodes}))
        raise InputError(
            f"the graph's nodes are of type {types}: they are numbered; leave ids={options.ids!r} out"
        )
    ends: Iterable[Any] = chain.from_iterable(rows)
    starts = np.arange(len(nodes))
    if ids == "int":
        starts = _settle_objects(np.array(nodes, dtype=object), None, Place("the NetworkX graph's nodes"))
    else:
        ends = map({node: i for i, node in enumerate(nodes)}.__getitem__, ends)
    degrees = np.fromiter(map(len, rows), np.int64, len(rows))
    src, dst = np.repeat(starts, degrees), np.fromiter(ends, np.int64, degrees.sum())
    if graph.is_multigraph():
        times = np.fromiter(map(len, chain.from_iterable(row.values() for row in rows)), np.int64, len(dst))
        src, dst = np.repeat(src, times), np.repeat(dst, times)
    if not graph.is_directed():  # both ends of an edge have it
        once = src <= dst
        src, dst = src[once], dst[once]
    if ids == "text":
        names = pa.array(nodes, pa.large_string())
        src, dst = (pa.DictionaryArray.from_arrays(side, names) for side in (src, dst))
    return _slices("NetworkX graph", [src, dst], options)


def _from_igraph(graph: Any, options: ReadOptions) -> Source:
    if not hasattr(graph, "get_edgelist"):
        raise _unknown(graph)
    ends = np.fromiter(chain.from_iterable(graph.get_edgelist()), np.int64, 2 * graph.ecount())
    return _slices("igraph graph", [ends[::2], ends[1::2]], options)


OPENERS: dict[str, Callable[[Any, ReadOptions], Source]] = {
    "dask": _from_dask,
    "igraph": _from_igraph,
    "networkx": _from_networkx,
    "numpy": _from_numpy,
    "pandas": _from_pandas,
    "pyarrow": _from_arrow,
    "scipy": _from_scipy,
}


def _choose(labels: Sequence[str], options: ReadOptions) -> tuple[int, int]:
    """Positions of the two id columns: a name goes before a position written in digits."""
    if len(labels) < 2:
        raise InputError(
            f"the table's columns are {list(labels)}: an edge has two ends; pass a table with two id columns"
        )
    found = []
    for name in options.columns or ():
        if name not in labels and not (name.isdecimal() and int(name) < len(labels)):
            raise InputError(
                f"the table has no column {name!r}: its columns are {', '.join(labels)}; name two of these"
            )
        found.append(labels.index(name) if name in labels else int(name))
    src, dst = found or (0, 1)
    if src == dst:
        raise InputError(
            f"column {labels[src]!r} is named for both ends of an edge: every edge would be a loop; name two"
        )
    return src, dst


def _agree(found: Sequence[Ids], places: Sequence[Place]) -> Ids:
    """Return the type of ids that both columns have."""
    if found[0] != found[1]:
        raise InputError(
            f"{places[0].of} holds ids of type {found[0]}, {places[1].of} of type {found[1]}: "
            "one of them is perhaps no id column; name two others, or pass ids='text'"
        )
    return found[0]


def _slices(
    name: str, columns: Sequence[Any], options: ReadOptions, labels: Sequence[Any] = (0, 1)
) -> Source:
    """Settle two columns and cut them into parts of at most `PART_BYTES`."""
    places = _places(labels, name)
    src, dst = (_settle(column, options.ids, at) for column, at in zip(columns, places, strict=True))
    if len(src) != len(dst):
        raise InputError(
            f"{places[0].of} has {len(src)} rows, {places[1].of} {len(dst)}: "
            "an edge has two ends; pass columns of one length"
        )
    ids = options.ids or _agree([_ids_of(src), _ids_of(dst)], places)
    src_bytes, dst_bytes = _sizer(src), _sizer(dst)
    parts = []
    for start, stop in _cuts(0, len(src), lambda a, b: src_bytes(a, b) + dst_bytes(a, b)):
        parts.append(SlicePart(src[start:stop], dst[start:stop], ids, _places(labels, name, start)))
    return Source(name, tuple(parts), ids)


def _places(labels: Sequence[Any], of: str, first: int = 0) -> tuple[Place, Place]:
    src, dst = (Place(f"column {label!r} of the {of}", first) for label in labels)
    return src, dst


def _cuts(start: int, stop: int, nbytes: Callable[[int, int], int]) -> Iterator[tuple[int, int]]:
    """Halve a run of rows until each piece is small enough."""
    if stop - start > 1 and nbytes(start, stop) > PART_BYTES:
        middle = (start + stop) // 2
        yield from _cuts(start, middle, nbytes)
        yield from _cuts(middle, stop, nbytes)
    elif stop > start:
        yield start, stop


def _sizer(column: Column) -> Callable[[int, int], int]:
    """Return what tells the pickled bytes of rows start..stop, at most (dictionary-encoded text)."""
    if isinstance(column, np.ndarray):
        return lambda start, stop: (stop - start) * column.itemsize
    if not hasattr(column.type, "value_type"):
        return lambda start, stop: int(column[start:stop].nbytes)
    import pyarrow.compute as pc

    words = [chunk.dictionary for chunk in getattr(column, "chunks", [column])]
    width = 8 + max((pc.max(pc.binary_length(word)).as_py() or 0 for word in words), default=0)
    return lambda start, stop: (stop - start) * width


def _compact(column: Column) -> Column:
    """Copy text out of the buffers that it is a view of: these are pickled whole. NumPy pickles its view."""
    if isinstance(column, np.ndarray):
        return column
    import pyarrow as pa

    text = _decode(column)
    return pa.concat_arrays(text.chunks if isinstance(text, pa.ChunkedArray) else [text])


def _decode(column: Column) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.cast(column, pa.large_string())


def _ids_of(column: Column) -> Ids:
    return "int" if isinstance(column, np.ndarray) else "text"


def _ids_of_meta(column: Any, at: Place) -> Ids:
    """Tell ids by an empty column. Object dtype passes for text until a partition is read."""
    return "text" if column.dtype == object else _ids_of(_settle(column, None, at))


def _settle(values: Any, ids: Ids | None, at: Place) -> Column:
    """Make one column a NumPy array of numbers or an Arrow array of text; refuse what can be no ids."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(values, Sequence):
        values = pd.Series(values if isinstance(values, range) else list(values))
    values = getattr(values, "array", values)  # what a pandas Series or Index holds
    coded = isinstance(values, pd.Categorical) and values.categories.dtype != object
    if coded or hasattr(values, "__arrow_array__") or isinstance(values, np.ma.MaskedArray):
        values = pa.array(values)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _settle_arrow(values, at)
    values = np.asarray(values)
    if values.dtype.kind in "OT":
        return _settle_objects(values.astype(object, copy=False), ids, at)
    if values.dtype.kind == "U":
        return pa.array(values, pa.large_string())
    if values.dtype.kind not in "iuf":
        raise _no_ids(at, values.dtype)
    return values


def _no_ids(at: Place, dtype: Any) -> InputError:
    return InputError(
        f"{at.of} has type {dtype}: ids are integers or strings; name the two id columns, or convert it"
    )


def _settle_arrow(values: Any, at: Place) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    kind = values.type.value_type if types.is_dictionary(values.type) else values.type
    if types.is_string_view(kind):  # a slice of views keeps, and counts, all of its buffers
        kind, values = pa.large_string(), _decode(values)
    text = types.is_string(kind) or types.is_large_string(kind)
    if not (text or types.is_integer(kind) or types.is_floating(kind)):
        raise _no_ids(at, values.type)
    _refuse_null(values, at)
    return values if text else pc.cast(values, kind).to_numpy(zero_copy_only=False)


def _refuse_null(values: Any, at: Place) -> None:
    import pyarrow.compute as pc

    if values.null_count:
        raise at.missing(pc.index(values.is_null(), True).as_py(), None)


def _settle_objects(values: Any, ids: Ids | None, at: Place) -> Column:
    """Python objects: all integers, or all strings, or (as text) both."""
    import pandas as pd
    import pyarrow as pa

    absent = pd.isna(values)
    if absent.any():
        raise at.missing(int(absent.argmax()), values[absent.argmax()])
    if _only(values, (str, *INTEGER) if ids == "text" else str) and len(values):
        return pa.array(list(map(str, values)), pa.large_string())
    if not _only(values, INTEGER):
        lead = INTEGER if _only(values[:1], INTEGER) else (str,)
        row = next(i for i, value in enumerate(values) if not _only([value], lead))
        raise at.refuse(
            row,
            values[row],
            f"ids are all integers or all strings, not {type(values[row]).__name__}; convert the column",
        )
    try:
        return values.astype(np.int64)
    except OverflowError:
        row = next(row for row, value in enumerate(values) if not INT64.min <= value <= INT64.max)
        raise at.beyond(row, values[row]) from None


def _only(values: Collection[Any], kinds: Any) -> bool:
    """Whether every value is of one of the kinds; True and False are no integers."""
    return all(issubclass(kind, kinds) and kind is not bool for kind in set(map(type, values)))


def _common_ids(values: Collection[Any]) -> Ids | None:
    return "int" if _only(values, INTEGER) else "text" if _only(values, str) else None


def _frame(backend: Backend, pair: Sequence[Column], ids: Ids, places: Sequence[Place]) -> Any:
    """Turn two settled columns into an edge frame."""
    src, dst = (_to_ids(column, ids, at) for column, at in zip(pair, places, strict=True))
    if ids == "int" and src.dtype != dst.dtype:
        src, dst = src.astype(np.int64, copy=False), dst.astype(np.int64, copy=False)
    return backend.frame.DataFrame({"src": src, "dst": dst}, copy=False)


def _to_ids(column: Column, ids: Ids, at: Place) -> Any:
    import pandas as pd
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        numbers = _integers(np.ascontiguousarray(column, column.dtype.newbyteorder("=")), at)
        return _narrow(numbers, at) if ids == "int" else pd.array(_decode(pa.array(numbers)), dtype="str")
    text = _decode(column)
    _refuse_null(text, at)  # a dictionary may hold one
    if ids == "int" and len(text):
        raise at.refuse(
            0, text[0].as_py(), "ids='int' takes integers; convert the column, or pass ids='text'"
        )
    return pd.array(text, dtype="str") if ids == "text" else np.empty(0, np.int64)


def _integers(numbers: Any, at: Place) -> Any:
    """Pass integers through; floats must be integral, and small enough to be no rounded integer."""
    if numbers.dtype.kind != "f":
        return numbers
    exact = 2.0 ** min(np.finfo(numbers.dtype).nmant + 1, 53)
    wrong = ~((np.trunc(numbers) == numbers) & (np.abs(numbers) < exact))
    if wrong.any():
        row = int(wrong.argmax())
        value = numbers[row]
        if np.isnan(value):
            raise at.missing(row, value)
        if np.trunc(value) != value:
            raise at.refuse(
                row, value, "a fraction is no id, this is perhaps a column of weights; name the id columns"
            )
        raise at.refuse(row, value, f"{numbers.dtype} rounds integers from {exact:.0f} on; pass integers")
    return numbers.astype(np.int64)


def _narrow(integers: Any, at: Place) -> Any:
    """Integers of any type as int32 or int64."""
    if np.can_cast(integers.dtype, np.int32):
        return integers.astype(np.int32, copy=False)
    if integers.dtype == np.uint64 and len(integers) and integers.max() > INT64.max:
        row = int((integers > INT64.max).argmax())
        raise at.beyond(row, integers[row])
    return integers.astype(np.int64, copy=False)
