"""Makes sources of graph objects: SciPy sparse matrices, NetworkX and python-igraph graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from dasktc.errors import InputError, shown
from dasktc.io.memory.columns import Place, common_ids, settle_objects, text_of
from dasktc.io.memory.kinds import unknown
from dasktc.io.memory.parts import slices
from dasktc.io.memory.sparse import entries
from dasktc.io.source import ReadOptions, Source
from dasktc.io.weights import weights_of

__all__ = ["from_igraph", "from_networkx", "from_scipy"]


def from_scipy(obj: Any, options: ReadOptions) -> Source:
    """Read the stored entries of a square matrix."""
    if not hasattr(obj, "tocoo"):
        raise unknown(obj)
    rows, columns, values = entries(obj)
    return slices("sparse matrix", [rows, columns], options, weights=values if options.weight is not None else None)


def from_networkx(graph: Any, options: ReadOptions) -> Source:
    """Read the adjacency, as `graph.edges` would, without a Python step for every edge."""
    import pyarrow as pa

    if not hasattr(graph, "adjacency"):
        raise unknown(graph)
    _check_directed(graph.is_directed(), options, "networkx.Graph.to_directed gives each edge both directions")
    nodes, rows = list(graph), [row for _, row in graph.adjacency()]
    ids = common_ids(nodes)
    if ids is None and options.ids:
        types = ", ".join(sorted({type(node).__name__ for node in nodes}))
        raise InputError(f"the graph's nodes are of type {types}: they are numbered; leave ids={options.ids!r} out")
    ends: Iterable[Any] = chain.from_iterable(rows)
    starts = np.arange(len(nodes))
    if ids == "int":
        starts = settle_objects(np.array(nodes, dtype=object), None, Place("the NetworkX graph's nodes"))
    else:
        ends = map({node: i for i, node in enumerate(nodes)}.__getitem__, ends)
    degrees = np.fromiter(map(len, rows), np.int64, len(rows))
    src, dst = np.repeat(starts, degrees), np.fromiter(ends, np.int64, degrees.sum())
    if graph.is_multigraph():
        times = np.fromiter(map(len, chain.from_iterable(row.values() for row in rows)), np.int64, len(dst))
        src, dst = np.repeat(src, times), np.repeat(dst, times)
    weights = None if options.weight is None else _weights(graph, rows, options.weight)
    if not graph.is_directed():  # the adjacency lists each edge at both ends
        once = src <= dst
        src, dst = src[once], dst[once]
        weights = None if weights is None else weights[once]
    if ids == "text":
        names = text_of(nodes, Place("the NetworkX graph's nodes"))
        src, dst = (pa.DictionaryArray.from_arrays(side, names) for side in (src, dst))
    return slices("NetworkX graph", [src, dst], options, weights=weights)


def _weights(graph: Any, rows: Sequence[Any], name: str) -> Any:
    """Return the weights of all adjacency entries, in order; 1 for an edge without one, as in NetworkX."""
    data = chain.from_iterable(row.values() for row in rows)
    if graph.is_multigraph():
        data = chain.from_iterable(edges.values() for edges in data)
    return weights_of(
        [attributes.get(name, 1) for attributes in data], f"attribute {shown(name)} of the NetworkX graph's edges"
    )


def _check_directed(directed: bool, options: ReadOptions, hint: str) -> None:
    if options.directed and not directed:
        raise InputError(
            f"directed is given for an undirected graph: its edges have no direction; leave it out, or {hint}"
        )


def from_igraph(graph: Any, options: ReadOptions) -> Source:
    """Read the edges as pairs of vertex indices."""
    if not hasattr(graph, "get_edgelist"):
        raise unknown(graph)
    _check_directed(graph.is_directed(), options, "igraph.Graph.as_directed gives each edge both directions")
    weights = None
    if options.weight is not None:
        if options.weight not in graph.es.attributes():
            raise InputError(
                f"the graph's edges have no attribute {shown(options.weight)}: they have "
                f"{', '.join(graph.es.attributes()) or 'none'}; name one of these"
            )
        weights = graph.es[options.weight]
    ends = np.fromiter(chain.from_iterable(graph.get_edgelist()), np.int64, 2 * graph.ecount())
    return slices("igraph graph", [ends[::2], ends[1::2]], options, weights=weights)
