"""Identifies the library and type of an object by the modules that define its types, without importing any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

from dasktc.errors import InputError, shown
from dasktc.io.id_names import ends_of

__all__ = [
    "ON_GPU", "are_two_columns", "columns_of_pairs", "holds_edges", "is_view_of_edges", "kind", "meta_of", "roots",
    "unknown",
]  # fmt: skip

ON_GPU = {
    "cudf": ".to_pandas()",
    "cugraph": ".view_edge_list().to_pandas()",
    "cupy": ".get()",
    "cupyx": ".get()",
    "dask_cudf": '.to_backend("pandas")',
}
"""Method that copies an object in GPU memory to the host, by top-level module."""
ELSEWHERE = {
    "dgl": "graph.edges()",
    "graph_tool": "graph.get_edges()",
    "networkit": "numpy.array(list(graph.iterEdges()))",
    "rustworkx": "list(graph.edge_list())",
    "tensorflow": "tensor.numpy()",
    "torch_geometric": "data.edge_index",
}
"""By top-level module: what to pass instead of objects that hold more than edges."""


def roots(obj: Any) -> list[str]:
    """Return the top-level modules that the object's type and its bases are defined in."""
    return [base.__module__.partition(".")[0] for base in type(obj).__mro__]


def meta_of(obj: Any) -> Any:
    """Return the empty frame or array that the partitions of a Dask collection are like; None for other objects."""
    if not callable(getattr(obj, "__dask_graph__", None)) or not isinstance(getattr(obj, "ndim", None), int):
        return None
    if hasattr(obj, "chunks"):
        from dask.array.utils import meta_from_array

        return meta_from_array(obj)
    from dask.dataframe.utils import make_meta

    return make_meta(obj)


def kind(obj: Any) -> str:
    """Return the full name of the object's type, for errors."""
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def are_two_columns(items: Sequence[Any]) -> bool:
    """Return whether a sequence is two columns of ids rather than a list of edges.

    Two items are two columns, unless both are tuples of two single ids (numbers or strings), which are two edges.
    """
    return len(items) == 2 and not all(
        isinstance(item, tuple) and len(item) == 2 and all(isinstance(value, Number | str) for value in item)
        for item in items
    )


def columns_of_pairs(pairs: Any, name: str, are_labels: bool) -> list[Any]:
    """Return the two columns of a caller's pairs of vertices; `name` is that of the parameter, for errors.

    Pairs are a table, an array of shape (m, 2), two columns, a NetworkX graph, or an iterable of pairs; InputError
    refuses others. Labels may be tuples, so a tuple of labels is no column.
    """
    pairs = pairs.to_pandas() if hasattr(pairs, "to_pandas") else pairs
    pairs = pairs.edges() if hasattr(pairs, "adjacency") else pairs
    if getattr(pairs, "ndim", 0) == 2 and hasattr(pairs, "iloc") and pairs.shape[1] >= 2:
        return [pairs.iloc[:, place] for place in ends_of(name, pairs.columns)]
    if getattr(pairs, "ndim", 0) == 2 and pairs.shape[1] == 2:
        return [pairs[:, 0], pairs[:, 1]]
    column_types = list if are_labels else (list, tuple, range)
    if isinstance(pairs, Sequence) and are_two_columns(pairs):
        if all(isinstance(end, column_types) or getattr(end, "ndim", 0) == 1 for end in pairs):
            return list(pairs)
    items = list(pairs) if isinstance(pairs, Iterable) and not isinstance(pairs, str | bytes) else [pairs]
    for item in items:
        if isinstance(item, str | bytes) or not hasattr(item, "__len__") or len(item) != 2:
            raise InputError(
                f"{name} holds {shown(item)} where a pair of vertices is expected: a pair has two ends; give a list of "
                "pairs, an array of shape (m, 2), a table of two columns, a pair of columns, or a NetworkX graph"
            )
    return [list(column) for column in zip(*items, strict=True)] or [[], []]


def holds_edges(obj: Any) -> bool:
    """Return whether an object is an iterable that may yield edges: a set, an iterator, a view, but no mapping."""
    is_listed = not set(roots(obj)).isdisjoint(ELSEWHERE)
    return isinstance(obj, Iterable) and not isinstance(obj, str | bytes | bytearray | Mapping) and not is_listed


def is_view_of_edges(obj: Any) -> bool:
    """Return whether an object of NetworkX is a view such as `graph.edges`, not a graph."""
    return isinstance(obj, Iterable) and not hasattr(obj, "adjacency")


def unknown(obj: Any) -> InputError:
    """Make the error about an object that is no source."""
    for root in roots(obj):
        if root in ELSEWHERE:
            return InputError(
                f"{kind(obj)} is not read itself: its library keeps more than edges; pass {ELSEWHERE[root]}"
            )
    return InputError(
        f"{kind(obj)} holds no edges: dasktc reads paths, data frames of pandas, polars and Dask, Arrow tables, NumPy "
        "and Dask arrays (m, 2), tensors, pairs of columns, iterables of edges, SciPy sparse matrices, NetworkX and "
        "igraph graphs; pass one"
    )
