"""Makes sources of tables, arrays, tensors, pairs of columns and lists of edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dasktc.errors import InputError, shown
from dasktc.io.evidence import (
    COLUMNS,
    Choice,
    Reading,
    index_refused,
    judge,
    refuse_two_pairs,
    sample_of,
)
from dasktc.io.formats.columns import proposed
from dasktc.io.id_names import known_pairs
from dasktc.io.memory.columns import agree, ids_of_meta, places_of
from dasktc.io.memory.kinds import are_two_columns, kind, meta_of, roots, unknown
from dasktc.io.memory.parts import PartitionPart, partitions, slices
from dasktc.io.source import ReadOptions, Source

__all__ = [
    "an_edge_a_row",
    "choose_two",
    "from_arrow",
    "from_dask",
    "from_edges",
    "from_numpy",
    "from_pair",
    "from_pandas",
    "from_polars",
    "from_torch",
]


def from_pandas(obj: Any, options: ReadOptions) -> Source:
    """Cut two columns of a data frame into runs of rows."""
    if getattr(obj, "ndim", 0) != 2 or not hasattr(obj, "iloc"):
        raise unknown(obj)
    if options.columns is None and obj.index.equals(obj.columns) and _may_be_a_matrix(obj):
        raise InputError(
            f"the table's rows and columns have the same {len(obj):,} names: perhaps an adjacency matrix; pass "
            "scipy.sparse.csr_array(frame), or name the two columns of ids with columns"
        )
    labels = [str(label) for label in obj.columns]
    (i, j), reading, choice = choose_two("pandas DataFrame", labels, [*obj.dtypes], options, obj.index.names)
    if choice is not None:
        judge(choice, [sample_of(obj)])
    weights = None if options.weight is None else obj.iloc[:, _weight(labels, (i, j), options.weight)]
    pair = [obj.iloc[:, i], obj.iloc[:, j]]
    return replace(slices("pandas DataFrame", pair, options, [labels[i], labels[j]], weights), reading=reading)


def _may_be_a_matrix(frame: Any) -> bool:
    """Whether a frame whose rows and columns have the same names has names of its own, or a matrix's values.

    A frame without names of its own may have as many rows as columns by chance. A matrix has only 0 and 1, or is
    symmetric, which three rows also may be by chance.
    """
    if not hasattr(frame.index, "step"):
        return True
    values = frame.to_numpy()
    if len(frame) < 3 or values.dtype.kind not in "biuf":
        return False
    symmetric = len(frame) > 3 and bool((values == values.T).all())
    return symmetric or bool(((values == 0) | (values == 1)).all())


def from_arrow(obj: Any, options: ReadOptions) -> Source:
    """Cut two columns of a table, or of an object that exports one, into runs of rows."""
    import pyarrow as pa

    if not hasattr(obj, "columns"):
        raise unknown(obj)
    table = pa.table(obj)
    labels = table.column_names
    (i, j), reading, choice = choose_two("Arrow table", labels, table.schema.types, options)
    if choice is not None:
        judge(choice, [sample_of(table)])
    weights = None if options.weight is None else table.column(_weight(labels, (i, j), options.weight))
    pair = [table.column(i), table.column(j)]
    return replace(slices("Arrow table", pair, options, [labels[i], labels[j]], weights), reading=reading)


def from_polars(obj: Any, options: ReadOptions) -> Source:
    """Cut two columns of a Polars DataFrame into runs of rows; a LazyFrame is computed, only the columns that are read.

    Answers are Polars frames by default.
    """
    import pyarrow as pa

    lazy = hasattr(obj, "collect")
    if not hasattr(obj, "head") or not hasattr(obj, "columns" if not lazy else "collect_schema"):
        raise unknown(obj)
    name, none = "Polars LazyFrame" if lazy else "Polars DataFrame", obj.head(0)
    schema = pa.table(none.collect() if lazy else none).schema
    (i, j), reading, choice = choose_two(name, schema.names, schema.types, options)
    k = None if options.weight is None else _weight(schema.names, (i, j), options.weight)
    judged = range(min(COLUMNS, len(schema)) if choice is not None else 0)
    selection = obj.select([schema.names[place] for place in sorted({*judged, i, j, *(() if k is None else (k,))})])
    table = pa.table(selection.collect() if lazy else selection)
    if choice is not None:
        judge(choice, [sample_of(table)])
    pair, labels = [table.column(schema.names[place]) for place in (i, j)], [schema.names[i], schema.names[j]]
    weights = None if k is None else table.column(schema.names[k])
    return replace(slices(name, pair, options, labels, weights), reading=reading, frames="polars")


def from_dask(obj: Any, options: ReadOptions) -> Source:
    """Make a part of every partition, or block of rows.

    The meta gives columns and id type, so nothing is computed.
    """
    if any(base.__name__ == "Delayed" for base in type(obj).__mro__):
        raise InputError(
            f"{kind(obj)} shows its contents only when computed: sources are not computed to find out; pass what "
            "dask.dataframe.from_delayed makes of it, or compute it"
        )
    if getattr(obj, "ndim", 0) != 2 or not hasattr(obj, "to_delayed"):
        raise unknown(obj)
    if not hasattr(obj, "columns"):
        return _from_dask_array(obj, options)
    meta = meta_of(obj)
    labels = [str(label) for label in meta.columns]
    (i, j), reading, choice = choose_two("Dask DataFrame", labels, [*meta.dtypes], options, meta.index.names)
    pair = [labels[i], labels[j]]
    places = places_of(pair, "Dask DataFrame")
    promised = [ids_of_meta(meta.iloc[:, k], spot) for k, spot in zip((i, j), places, strict=True)]
    ids = options.ids or agree(promised, places)
    k = None if options.weight is None else _weight(labels, (i, j), options.weight)
    if meta.columns.is_unique:  # then only these columns are read, and those that are to be judged
        judged = [place for place in range(min(COLUMNS, len(labels))) if choice is not None]
        selection = [*dict.fromkeys([*judged, *(place for place in (i, j, k) if place is not None)])]
        obj = obj[[meta.columns[place] for place in selection]]
        i, j, k = selection.index(i), selection.index(j), None if k is None else selection.index(k)
    parts = []
    for number, delayed in enumerate(obj.to_delayed()):
        places = places_of(pair, f"Dask DataFrame's partition {number}")
        part = PartitionPart(
            delayed,
            (i, j),
            ids,
            options.ids is not None,
            places,
            k,
            choice,
            begins=number == 0,
            surveyed=options.surveyed,
        )
        parts.append(part)
    return Source("Dask DataFrame", tuple(parts), ids, frames="dask", weight=options.weight, reading=reading)


def _from_dask_array(obj: Any, options: ReadOptions) -> Source:
    """Make a part of every block of rows of an (m, 2) array, or of columns of a (2, m) array; m may be unknown."""
    obj = an_edge_a_row(obj, "Dask Array")
    if options.columns is not None or options.weight is not None:
        raise InputError(f"columns or a weight are given for {kind(obj)}: it has no named columns; leave them out")
    of_all = places_of((0, 1), "Dask Array")
    ids = options.ids or agree([ids_of_meta(meta_of(obj).reshape(-1), place) for place in of_all], of_all)
    parts = []
    for number, delayed in enumerate(partitions(obj)):
        places = places_of((0, 1), f"Dask Array's block {number}")
        parts.append(PartitionPart(delayed, (0, 1), ids, options.ids is not None, places))
    return Source("Dask Array", tuple(parts), ids, frames="dask")


def from_numpy(obj: Any, options: ReadOptions) -> Source:
    """Cut an array of shape (m, 2) into runs of rows, or one of shape (2, m) into runs of columns."""
    if not isinstance(obj, np.ndarray):
        raise unknown(obj)
    edges = an_edge_a_row(obj if isinstance(obj, np.ma.MaskedArray) else np.asarray(obj), "NumPy array")
    return slices("NumPy array", [edges[:, 0], edges[:, 1]], options)


def from_torch(obj: Any, options: ReadOptions) -> Source:
    """Read a tensor in the host's memory as the NumPy array that shares it."""
    return from_numpy(_shared(obj), options)


def _shared(tensor: Any) -> Any:
    if getattr(tensor, "is_cuda", False):
        raise InputError(
            "the tensor is in GPU memory: it is read as a CuPy array; pass cupy.from_dlpack(tensor), or tensor.cpu()"
        )
    return tensor.numpy()


def an_edge_a_row(array: Any, name: str) -> Any:
    """Return a 2-D array with one edge per row: shape (2, m), as in PyTorch Geometric, is transposed, as a view.

    An array of shape (2, 2) is assumed to have one edge per row.
    """
    shape = array.shape
    if len(shape) == 2 and shape[1] == 2:
        return array
    if len(shape) == 2 and shape[0] == 2:
        return array.T
    matrix = len(shape) == 2 and shape[0] == shape[1]
    raise InputError(
        f"the {name} has shape {shape}: an edge list has one edge a row, or a column; pass shape (m, 2) or (2, m)"
        + (", or scipy.sparse.csr_array(array) if it is an adjacency matrix" if matrix else "")
    )


def from_pair(obj: Any, options: ReadOptions) -> Source:
    """Cut two one-dimensional arrays or sequences, or a list of edges, into runs of rows.

    `are_two_columns` decides which of the two a pair of items is.
    """
    if not are_two_columns(obj):
        return from_edges(obj, options)
    obj = [_column(item) for item in obj]
    for item in obj:
        listed = isinstance(item, Sequence) and not isinstance(item, str | bytes)
        array = not {"numpy", "pandas", "pyarrow"}.isdisjoint(roots(item)) and hasattr(item, "__len__")
        if not (listed or array) or getattr(item, "ndim", 1) != 1:
            raise InputError(f"the pair holds a {kind(item)}: it is no id column; pass two 1-D arrays or sequences")
    return slices("pair", obj, options)


def _column(item: Any) -> Any:
    """Convert an item of a pair to a known column type: an object that exports Arrow, as a Polars Series, to Arrow."""
    if "torch" in roots(item):
        return _shared(item)
    if hasattr(item, "__arrow_c_stream__") and {"pandas", "pyarrow"}.isdisjoint(roots(item)):
        import pyarrow as pa

        return pa.chunked_array(item)
    return item


def from_edges(obj: Iterable[Any], options: ReadOptions) -> Source:
    """Cut the pairs of an iterable, which is consumed once, into runs of rows."""
    name = type(obj).__name__
    if "networkx" in roots(obj) and callable(obj):
        obj = obj()  # a MultiGraph's `edges` yields keys, too, `edges()` does not
    return slices(f"{name} of edges", _ends(obj if isinstance(obj, Sequence) else list(obj), name), options)


def _is_edge(item: Any) -> bool:
    return isinstance(item, tuple | list | set | frozenset) and len(item) == 2


def _ends(edges: Sequence[Any], name: str) -> list[Any]:
    """Return both columns of a sequence of pairs."""
    if not edges:
        raise InputError(
            f"the {name} is empty: it names no file and holds no edge, or was consumed before; pass "
            "numpy.empty((0, 2), int) for an empty graph"
        )
    if not all(map(_is_edge, edges)):
        row = next(row for row, item in enumerate(edges) if not _is_edge(item))
        remark = "weights and attributes are not read; " if isinstance(edges[row], tuple | list) else ""
        raise InputError(
            f"item {row:,} of the {name} is {shown(edges[row])} where an edge is expected: an edge is a pair of ids; "
            f"{remark}pass pairs (u, v), or two columns"
        )
    columns: tuple[list[Any], list[Any]] = ([], [])
    for u, v in edges:
        columns[0].append(u)
        columns[1].append(v)
    return list(columns)


class Taken(NamedTuple):
    """The two id columns of a table: their positions, for results, and to be judged unless names or the caller chose.

    Attributes
    ----------
    places : tuple of two int
    reading : Reading
    choice : Choice or None
    """

    places: tuple[int, int]
    reading: Reading
    choice: Choice | None


def choose_two(
    table: str, labels: Sequence[str], types: Sequence[object], options: ReadOptions, index: Sequence[Any] = ()
) -> Taken:
    """Choose the two id columns: those requested (names precede positions), those with common names, or 0, 1.

    Parameters
    ----------
    table : str
        The object, for errors and results.
    labels : sequence of str
    types : sequence of dtype or Arrow type
    options : ReadOptions
    index : sequence of object
        Names of the table's index.

    Raises
    ------
    InputError
        There are no such columns, or their names speak against them.
    """
    of_index = tuple(str(name) for name in index if name is not None)
    if len(labels) < 2:
        if of_index:
            raise index_refused(f"the {table}", of_index)
        raise InputError(
            f"the table's columns are {list(labels)}: an edge has two ends; pass a table with two id columns"
        )
    places = []
    for name in options.columns or ():
        if name not in labels and not (name.isdecimal() and int(name) < len(labels)):
            raise InputError(
                f"the table has no column {name!r}: its columns are {', '.join(labels)}; "
                f"{proposed(options.columns or (), labels)}name two of these"
            )
        places.append(labels.index(name) if name in labels else int(name))
    by_name = next(known_pairs(labels), None)
    src, dst = places if places else by_name or (0, 1)
    if src == dst:
        raise InputError(
            f"column {labels[src]!r} is named for both ends of an edge: every edge would be a loop; name two"
        )
    selection = "given" if places else "by name" if by_name else "by position"
    reading = Reading(table, (src + 1, dst + 1), (labels[src], labels[dst]), len(labels), selection)
    if places:
        return Taken((src, dst), reading, None)
    kinds = tuple(map(_kind_of, types))
    choice = Choice(f"the {table}", (src, dst), tuple(labels), kinds=kinds, index=of_index, is_file=False)
    refuse_two_pairs(choice)
    if by_name:
        return Taken((src, dst), reading, None)
    judge(choice)
    return Taken((src, dst), reading, choice if len(labels) > 2 else None)


def _kind_of(type_: object) -> str:
    """Return which ids a column of a type may hold."""
    name = str(getattr(type_, "value_type", type_)).lower()
    if "int" in name and "interval" not in name:
        return "int"
    return "text" if any(word in name for word in ("str", "obj", "cat", "utf")) else "other"


def _weight(labels: Sequence[str], ends: tuple[int, int], name: str) -> int:
    """Return the position of the column of weights, given by name or by position in digits."""
    position = int(name) if name.isdecimal() and len(name) < 19 else len(labels)
    if name not in labels and position >= len(labels):
        raise InputError(
            f"the table has no column {shown(name)}: its columns are {', '.join(labels)}; name one of these"
        )
    place = labels.index(name) if name in labels else position
    if place in ends:
        raise InputError(f"column {labels[place]!r} is named for ids and for values: it cannot be both; name another")
    return place
