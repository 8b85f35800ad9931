"""Makes sources of tables, arrays, tensors, pairs of columns and lists of edges, those of Dask among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dasktc.errors import InputError, shown
from dasktc.io.columns import agree, check_lengths, ids_of_meta, places_of
from dasktc.io.evidence import COLUMNS, Choice, Reading, columns_taken, index_refused, judge_all, sample_of
from dasktc.io.id_names import choose, weight_position
from dasktc.io.memory.kinds import ON_GPU, are_two_columns, kind, meta_of, roots, unknown
from dasktc.io.memory.parts import PartitionPart, partitions, slices
from dasktc.io.source import ReadOptions, Source
from dasktc.wording import plural

__all__ = [
    "an_edge_a_row", "choose_two", "from_arrow", "from_dask", "from_edges", "from_numpy", "from_pair", "from_pandas",
    "from_polars", "from_torch",
]  # fmt: skip


class Taken(NamedTuple):
    """The positions of a table's two id columns, how they were taken, and what is to be judged by the table's rows."""

    places: tuple[int, int]
    reading: Reading
    choice: Choice | None


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
    choice = choose_two("pandas DataFrame", labels, [*obj.dtypes], options, obj.index.names)
    return _judged("pandas DataFrame", obj, choice, labels, lambda place: obj.iloc[:, place], options)


def _judged(
    name: str, table: Any, choices: Taken, labels: Sequence[str], column: Callable[[int], Any], options: ReadOptions
) -> Source:
    """Judge the rows of a table, and cut its id columns, and that of weights, into runs of rows."""
    (i, j), reading, choice = choices
    if choice is not None:
        judge_all([(choice, sample_of(table))])
    weight = weight_position(f"the {name}", labels, (i, j), options.weight)
    weights = None if weight is None else column(weight)
    return replace(slices(name, [column(i), column(j)], options, [labels[i], labels[j]], weights), reading=reading)


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
    is_symmetric = len(frame) > 3 and bool((values == values.T).all())
    return is_symmetric or bool(((values == 0) | (values == 1)).all())


def from_arrow(obj: Any, options: ReadOptions) -> Source:
    """Cut two columns of a table, or of an object that exports one, into runs of rows."""
    import pyarrow as pa

    if not hasattr(obj, "columns"):
        raise unknown(obj)
    table = pa.table(obj)
    choice = choose_two("Arrow table", table.column_names, table.schema.types, options)
    return _judged("Arrow table", table, choice, table.column_names, table.column, options)


def from_polars(obj: Any, options: ReadOptions) -> Source:
    """Cut two columns of a Polars DataFrame into runs of rows; a LazyFrame is computed, only the columns that are read.

    Answers are Polars frames by default.
    """
    import pyarrow as pa

    is_lazy = hasattr(obj, "collect")
    if not hasattr(obj, "head") or not hasattr(obj, "columns" if not is_lazy else "collect_schema"):
        raise unknown(obj)
    name, empty_frame = "Polars LazyFrame" if is_lazy else "Polars DataFrame", obj.head(0)
    schema = pa.table(empty_frame.collect() if is_lazy else empty_frame).schema
    column_choice = choose_two(name, schema.names, schema.types, options)
    weight = weight_position(f"the {name}", schema.names, column_choice.places, options.weight)
    sample_places = range(min(COLUMNS, len(schema)) if column_choice.choice is not None else 0)
    places = {*sample_places, *column_choice.places, *(() if weight is None else (weight,))}
    selection = obj.select([schema.names[place] for place in sorted(places)])
    table = pa.table(selection.collect() if is_lazy else selection)
    source = _judged(name, table, column_choice, schema.names, lambda place: table.column(schema.names[place]), options)
    return replace(source, frames="polars")


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
    ends = [(labels[place], meta.iloc[:, place]) for place in (i, j)]
    k = weight_position("the Dask DataFrame", labels, (i, j), options.weight)
    names = None
    if meta.columns.is_unique:  # then only these columns are read, and those that are to be judged
        sample_places = [place for place in range(min(COLUMNS, len(labels))) if choice is not None]
        selection = [*dict.fromkeys([*sample_places, *(place for place in (i, j, k) if place is not None)])]
        names = tuple(meta.columns[place] for place in selection)
        obj = obj[list(names)]
        i, j, k = selection.index(i), selection.index(j), None if k is None else selection.index(k)
    fields = {"columns": (i, j), "weight": k, "choice": choice, "surveyed": options.surveyed, "names": names}
    source = _partitioned("Dask DataFrame", "partition", ends, obj.to_delayed(), options, **fields)
    return replace(source, weight=options.weight, reading=reading)


def _partitioned(
    name: str, unit: str, ends: Sequence[tuple[Any, Any]], delayed: Iterable[Any], options: ReadOptions, **fields: Any
) -> Source:
    """Make a part of every partition of a Dask collection; labels and metas of its two id columns are `ends`."""
    labels, convert = [label for label, _ in ends], options.ids is not None
    places = places_of(labels, name)
    ids = options.ids or agree(
        [ids_of_meta(meta, place) for (_, meta), place in zip(ends, places, strict=True)], places
    )
    parts = []
    for number, upstream in enumerate(delayed):
        places = places_of(labels, f"{name}'s {unit} {number}")
        parts.append(PartitionPart(upstream, ids, convert, places, begins=number == 0, **fields))
    return Source(name, tuple(parts), ids, frames="dask")


def _from_dask_array(obj: Any, options: ReadOptions) -> Source:
    """Make a part of every block of rows of an (m, 2) array, or of columns of a (2, m) array; m may be unknown."""
    obj = an_edge_a_row(obj, "Dask Array")
    if options.columns is not None or options.weight is not None:
        raise InputError(f"columns or a weight are given for {kind(obj)}: it has no named columns; leave them out")
    meta = meta_of(obj).reshape(-1)
    return _partitioned("Dask Array", "block", [(0, meta), (1, meta)], partitions(obj), options)


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
    import pyarrow as pa

    if any(map(_is_dask_column, obj[:2])):
        return _from_dask_columns(obj, options)
    if not are_two_columns(obj):
        return from_edges(obj, options)
    indexes = [item.index for item in obj if "pandas" in roots(item) and hasattr(item, "iloc") and item.ndim == 1]
    if len(indexes) == 2 and len(indexes[0]) == len(indexes[1]) and not indexes[0].equals(indexes[1]):
        raise InputError(
            "the pair's two Series have different indexes: whether rows belong together by position or by index is "
            "unclear; pass to_numpy() of each, or pandas.concat(pair, axis=1, join='inner')"
        )
    columns = []
    for item in obj:
        if "torch" in roots(item):
            item = _shared(item)
        elif hasattr(item, "__arrow_c_stream__") and {"pandas", "pyarrow"}.isdisjoint(roots(item)):  # a Polars Series
            item = pa.chunked_array(item)
        is_list = isinstance(item, Sequence) and not isinstance(item, str | bytes)
        array = not {"numpy", "pandas", "pyarrow"}.isdisjoint(roots(item)) and hasattr(item, "__len__")
        if not (is_list or array) or getattr(item, "ndim", 1) != 1:
            raise InputError(f"the pair holds a {kind(item)}: it is no id column; pass two 1-D arrays or sequences")
        columns.append(item)
    return slices("pair", columns, options)


def from_edges(obj: Iterable[Any], options: ReadOptions) -> Source:
    """Cut the pairs of an iterable, which is consumed once, into runs of rows."""
    name = type(obj).__name__
    if "networkx" in roots(obj) and callable(obj):
        obj = obj()  # a MultiGraph's `edges` yields keys, too, `edges()` does not
    edges = obj if isinstance(obj, Sequence) else list(obj)
    if not edges:
        raise InputError(
            f"the {name} is empty: it names no file and holds no edge, or was consumed before; pass "
            "numpy.empty((0, 2), int) for an empty graph"
        )
    sources, targets = list[Any](), list[Any]()
    for row, edge in enumerate(edges):
        if not isinstance(edge, tuple | list | set | frozenset) or len(edge) != 2:
            remark = "weights and attributes are not read; " if isinstance(edge, tuple | list) else ""
            raise InputError(
                f"item {row:,} of the {name} is {shown(edge)} where an edge is expected: an edge is a pair of ids; "
                f"{remark}pass pairs (u, v), or two columns"
            )
        u, v = edge
        sources.append(u)
        targets.append(v)
    return slices(f"{name} of edges", [sources, targets], options)


def _is_dask_column(item: Any) -> bool:
    """Return whether an object is a Dask collection of rows."""
    delayed = any(base.__name__ == "Delayed" for base in type(item).__mro__)  # a Delayed has any attribute
    return "dask" in roots(item) and not delayed and hasattr(item, "to_delayed") and getattr(item, "ndim", 0) > 0


def _from_dask_columns(pair: Sequence[Any], options: ReadOptions) -> Source:
    """Make one part of each block of a column and the same rows of the other column; nothing is computed.

    Arrays with known block lengths are rechunked to common blocks; otherwise blocks are matched by position.
    InputError: one is no Dask column, or is in GPU memory; their types or lengths differ; or they have different
    numbers of blocks of unknown lengths.
    """
    import dask

    if len(pair) != 2 or not all(_is_dask_column(item) and item.ndim == 1 for item in pair):
        kinds = ", ".join(dict.fromkeys(map(kind, pair)))
        raise InputError(
            f"the sequence of {len(pair)} holds {kinds}: of Dask's collections two columns are read, 1-D arrays or "
            "Series; pass two, or one array of shape (m, 2)"
        )
    if any(not set(roots(meta_of(item))).isdisjoint(ON_GPU) for item in pair):
        raise InputError(
            "the pair holds Dask columns in GPU memory: they are read as one collection; pass "
            "dask.array.stack((src, dst), axis=1), or a Dask DataFrame of both"
        )
    metas = [meta.reshape(-1) if hasattr(meta, "reshape") else meta for meta in map(meta_of, pair)]
    table = dask.delayed(_table, pure=True)
    tables = (table(*ends) for ends in zip(*map(partitions, _aligned(*pair)), strict=True))
    return replace(_partitioned("pair", "block", [*enumerate(metas)], tables, options), name="pair of Dask columns")


def _aligned(src: Any, dst: Any) -> tuple[Any, Any]:
    """Return the two columns in blocks of the same rows, as far as block lengths are known."""
    # The length of an array whose blocks are of unknown lengths is NaN.
    if all(hasattr(column, "chunks") and column.shape[0] == column.shape[0] for column in (src, dst)):
        check_lengths(src.shape[0], dst.shape[0], places_of((0, 1), "pair"))
        return src, dst.rechunk(src.chunks)
    if src.npartitions != dst.npartitions:
        raise InputError(
            f"the pair's columns have {src.npartitions:,} and {plural(dst.npartitions, 'block')}, of unknown lengths: "
            "which rows belong together is not known; call compute_chunk_sizes() of arrays, or pass a Dask DataFrame "
            "of both"
        )
    return src, dst


def _table(src: Any, dst: Any) -> Any:
    """Join a block of each column; runs on a worker."""
    import pandas as pd

    check_lengths(len(src), len(dst), places_of((0, 1), "pair's block"))
    return pd.DataFrame(
        {name: pd.Series(getattr(ids, "array", ids)) for name, ids in enumerate((src, dst))}, copy=False
    )


def choose_two(
    table: str, labels: Sequence[str], types: Sequence[object], options: ReadOptions, index: Sequence[Any] = ()
) -> Taken:
    """Choose the two id columns: those requested (names precede positions), those with common names, or 0, 1.

    `table` names the object for errors and results; `types` are the columns' dtypes or Arrow types; `index` has the
    names of the table's index. InputError: there are no such columns, or their names speak against them.
    """
    index_names = tuple(str(name) for name in index if name is not None)
    if len(labels) < 2 and index_names:
        raise index_refused(f"the {table}", index_names)
    columns = choose(f"the {table}", labels, options.columns, ["int"] * len(labels))  # whatever their types are
    kinds = tuple(map(_kind_of, types))
    choice = Choice(f"the {table}", columns, tuple(labels), kinds=kinds, index=index_names, is_file=False)
    return Taken(columns, *columns_taken(table, choice, given=options.columns is not None))


def _kind_of(type_: object) -> str:
    """Return which ids a column of a type may hold."""
    name = str(getattr(type_, "value_type", type_)).lower()
    if "int" in name and "interval" not in name:
        return "int"
    return "text" if any(word in name for word in ("str", "obj", "cat", "utf")) else "other"
