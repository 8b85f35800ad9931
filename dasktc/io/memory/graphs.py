"""Makes sources of graph objects: SciPy sparse matrices, NetworkX and python-igraph graphs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from dasktc.errors import InputError, shown
from dasktc.io.columns import Place, common_ids, settle_objects, text_of, weights_of
from dasktc.io.labels import Labels
from dasktc.io.memory.kinds import unknown
from dasktc.io.memory.parts import slices
from dasktc.io.source import ReadOptions, Source
from dasktc.io.sparse import entries

__all__ = ["from_igraph", "from_networkx", "from_scipy"]

log = logging.getLogger("dasktc")


def from_scipy(obj: Any, options: ReadOptions) -> Source:
    """Read the stored entries of a square matrix."""
    if not hasattr(obj, "tocoo"):
        raise unknown(obj)
    rows, columns, values = entries(obj)
    return slices("sparse matrix", [rows, columns], options, weights=values if options.weight is not None else None)


def from_networkx(graph: Any, options: ReadOptions) -> Source:
    """Read the adjacency, as `graph.edges` would, without a Python step for every edge."""
    if not hasattr(graph, "adjacency"):
        raise unknown(graph)
    _check_directed(graph.is_directed(), options, "networkx.Graph.to_directed gives each edge both directions")
    nodes, rows = list(graph), [row for _, row in graph.adjacency()]
    numbers = np.arange(len(nodes))
    ends: Iterable[Any] = chain.from_iterable(rows)
    integers = common_ids(nodes) == "int" and options.ids != "text"
    if integers:
        numbers = settle_objects(np.array(nodes, dtype=object), None, Place("the NetworkX graph's nodes"))
    else:
        ends = map({node: i for i, node in enumerate(nodes)}.__getitem__, ends)
    degrees = np.fromiter(map(len, rows), np.int64, len(rows))
    src, dst = np.repeat(numbers, degrees), np.fromiter(ends, np.int64, degrees.sum())
    if graph.is_multigraph():
        times = np.fromiter(map(len, chain.from_iterable(row.values() for row in rows)), np.int64, len(dst))
        src, dst = np.repeat(src, times), np.repeat(dst, times)
    weights = None
    if options.weight is not None:  # of all adjacency entries, in order; 1 for an edge without one, as in NetworkX
        data = chain.from_iterable(row.values() for row in rows)
        if graph.is_multigraph():
            data = chain.from_iterable(edges.values() for edges in data)
        attributes = list(data)
        if attributes and not any(options.weight in edge for edge in attributes):
            log.warning(
                "dasktc: warning: no edge of the NetworkX graph has an attribute %s: all weights are 1, as in NetworkX",
                shown(options.weight),
            )
        values = [edge.get(options.weight, 1) for edge in attributes]
        weights = weights_of(values, f"attribute {shown(options.weight)} of the NetworkX graph's edges")
    if not graph.is_directed():  # the adjacency lists each edge at both ends
        mask = src <= dst
        src, dst = src[mask], dst[mask]
        weights = None if weights is None else weights[mask]
    if integers:
        return slices("NetworkX graph", [src, dst], options, weights=weights)
    return _named("NetworkX graph", "nodes", [src, dst], nodes, options, weights)


def _named(
    name: str, noun: str, ends: Sequence[Any], vertices: list[Any], options: ReadOptions, weights: Any
) -> Source:
    """Make a source of pairs of positions: integers and text among the vertices become the ids, others labels."""
    import pyarrow as pa

    ids, place = common_ids(vertices), Place(f"the {name}'s {noun}")
    if ids is None and options.ids == "int":
        raise InputError(
            f"the {name}'s {noun} are of type {Labels(vertices).kinds}: ids='int' takes integers; leave it out, and "
            "answers have the objects themselves, or pass ids='text', which takes str of each"
        )
    if ids == "int" and options.ids != "text":
        names = settle_objects(np.array(vertices, dtype=object), None, place)
        return slices(name, [names.take(end) for end in ends], options, weights=weights)
    if ids is None and options.ids is None:
        return replace(slices(name, ends, options, weights=weights), labels=Labels(vertices))
    words = text_of(vertices if ids == "text" else Labels(vertices).text(), place)
    code_arrays = [pa.DictionaryArray.from_arrays(end, words) for end in ends]
    return slices(name, code_arrays, options, weights=weights)


def _check_directed(is_directed: bool, options: ReadOptions, hint: str) -> None:
    if options.directed and not is_directed:
        raise InputError(
            f"directed is given for an undirected graph: its edges have no direction; leave it out, or {hint}"
        )


def from_igraph(graph: Any, options: ReadOptions) -> Source:
    """Read the edges; the ids are the names of the vertices, if all have one of their own, else their indices."""
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
    names = _names(graph, options)
    if names is None:
        return slices("igraph graph", [ends[::2], ends[1::2]], options, weights=weights)
    return _named("igraph graph", "vertices", [ends[::2], ends[1::2]], names, options, weights)


def _names(graph: Any, options: ReadOptions) -> list[Any] | None:
    """Return the vertices' names; None if their indices are the ids, which is logged if only some have names."""
    import pandas as pd

    if "name" not in graph.vs.attributes():
        return None
    names: list[Any] = graph.vs["name"]
    if options.ids == "int" and common_ids(names) != "int":
        return None
    gaps = sum(name is None or (isinstance(name, float) and bool(pd.isna(name))) for name in names)
    try:
        repeats = len(names) - len(set(names))
    except TypeError:  # not hashable
        repeats = len(names)
    if not (gaps or repeats):
        return names
    reason = f"{gaps:,} are missing" if gaps else f"{repeats:,} repeat another or are no ids"
    log.warning(
        "dasktc: warning: the names of the igraph graph's vertices do not tell them apart, %s of %s: answers have "
        "vertex indices",
        *(reason, f"{len(names):,}"),
    )
    return None
