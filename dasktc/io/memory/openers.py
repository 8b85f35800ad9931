"""Makes sources of objects in memory: data frames, arrays, sparse matrices and graph objects.

How objects are read:

* a table: its two id columns; other columns are ignored. An array or a tensor: its two columns, or with shape (2, m)
  its two rows. A pair of columns. A list of edges, which are pairs of ids. Two items are two columns, unless both are
  tuples of two ids, which are two edges (`kinds.are_two_columns`). A set, an iterator or a view of edges, as
  `graph.edges()` of NetworkX, is read as a list of edges, also if it has two; an iterator is consumed;
* weights: a column of a table, by name; an attribute of a graph's edges (1 for a NetworkX edge without it); or the
  values of a sparse matrix;
* a SciPy sparse matrix: every stored entry is an edge, including stored zeros, as in a Matrix Market file. In the
  formats that pad with zeros (BSR its blocks, DIA its diagonals) a zero is no edge;
* a NetworkX graph: its nodes are the ids. If they are not all integers or all strings, the graph is counted by
  positions in node order, and answers have the nodes themselves (`io.labels`);
* a python-igraph graph: the names of its vertices are the ids, as the nodes of a NetworkX graph. Without names, or if
  some are missing or repeated (then it is logged), or with ids="int", the ids are vertex indices.

Integral floats are ids as long as their type represents neighbouring integers exactly (float64: below 2^53), and whole
decimals within 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dasktc.errors import InputError, shown
from dasktc.io.columns import readable
from dasktc.io.memory import graphs, tables
from dasktc.io.memory.device import from_device
from dasktc.io.memory.kinds import ON_GPU, holds_edges, is_view_of_edges, kind, meta_of, roots, unknown
from dasktc.io.source import ReadOptions, Source

__all__ = ["from_object"]

OPENERS: dict[str, Callable[[Any, ReadOptions], Source]] = {
    "dask": tables.from_dask,
    "igraph": graphs.from_igraph,
    "networkx": graphs.from_networkx,
    "numpy": tables.from_numpy,
    "pandas": tables.from_pandas,
    "polars": tables.from_polars,
    "pyarrow": tables.from_arrow,
    "scipy": graphs.from_scipy,
    "torch": tables.from_torch,
}

TABLES = (tables.from_arrow, tables.from_dask, tables.from_pandas, tables.from_polars)
"""The readers of named columns in the host's memory."""
WEIGHTED = (*TABLES, graphs.from_igraph, graphs.from_networkx, graphs.from_scipy)
"""The readers that support weights."""


def from_object(obj: Any, options: ReadOptions) -> Source:
    """Make a source of an object in memory; Dask collections are not computed.

    Parameters
    ----------
    obj : object
        A pandas, Polars or Dask DataFrame, Polars LazyFrame, Arrow table, NumPy or Dask array or PyTorch tensor of
        shape (m, 2) or (2, m), pair (tuple or list) of one-dimensional arrays, sequences, Dask arrays or Dask Series,
        list of edges (pairs of ids; two lists or arrays are two columns, two tuples of two ids two edges), set or
        iterator of edges, SciPy sparse matrix, NetworkX or python-igraph graph; for the CUDA backend also a CuPy array
        or sparse matrix, cuDF DataFrame, pair of these' columns, cuGraph graph.
    options : ReadOptions
        `columns` names a table's id columns (None: those with common names, or its first two). `ids`: "text"
        converts integers to decimal strings, "int" refuses strings.

    Raises
    ------
    InputError
        It is none of these, or holds values that are not ids; the error names the row if there is one.
    """
    with readable(kind(obj)):
        opener = _opener(obj)
        if opener is from_device and (options.surveyed or options.directed or options.weight is not None):
            raise InputError(
                f"{kind(obj)} is in GPU memory: weights, directions and columns of edges are read on the host; pass a "
                "pandas DataFrame of it"
            )
        if options.surveyed and opener not in TABLES:
            raise InputError(
                f"edge_columns is given for {kind(obj)}: columns of edges are read from text, CSV and Parquet files "
                "and from data frames; pass a DataFrame with a row for each edge"
            )
        if options.weight is not None and opener not in WEIGHTED:
            raise InputError(
                f"weight={shown(options.weight)} is given for {kind(obj)}: it has no named columns or attributes; pass "
                "a DataFrame with a column of weights"
            )
        if options.format is not None or options.skip is not None:
            raise InputError(f"format or skip is given for {kind(obj)}: both are about files; leave them out")
        if options.columns is not None and opener not in (*TABLES, from_device):
            raise InputError(f"columns are given for {kind(obj)}: it has no named columns; leave them out")
        return opener(obj, options)


def _opener(obj: Any) -> Callable[[Any, ReadOptions], Source]:
    """Choose the reader by the module that defines the object's type, without importing a library."""
    pair = isinstance(obj, tuple | list)
    for item in obj[:2] if pair else [obj]:
        if not set(roots(item)).isdisjoint(ON_GPU):
            return from_device
    if pair:
        return tables.from_pair
    for root in roots(obj):
        if root == "dask" and not set(roots(meta_of(obj))).isdisjoint(ON_GPU):
            return from_device
        if root in OPENERS:
            return tables.from_edges if root == "networkx" and is_view_of_edges(obj) else OPENERS[root]
    if hasattr(obj, "__arrow_c_stream__"):
        return tables.from_arrow
    if holds_edges(obj):
        return tables.from_edges
    raise unknown(obj)
