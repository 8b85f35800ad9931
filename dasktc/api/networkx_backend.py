"""NetworkX backend: `nx.triangles(G, backend="dasktc")` and its relatives, with NetworkX's own results.

They run on the workers of the active Dask client; without one, in this process. A graph is handed
over as numbers, its nodes' positions, and prepared once: NetworkX keeps the converted graph until
the original changes. What is not done here raises NotImplementedError, because NetworkX asks
`can_run` not always, and tries its own implementation only then.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np

from dasktc.api.count import prepare
from dasktc.api.graph import Graph
from dasktc.api.networkx_info import FUNCTIONS
from dasktc.counting import measures
from dasktc.executors.connect import active_client

__all__ = [
    "ConvertedGraph",
    "average_clustering",
    "backend",
    "can_run",
    "clustering",
    "convert_from_nx",
    "convert_to_nx",
    "generalized_degree",
    "should_run",
    "transitivity",
    "triangles",
]

Nodes = Any
"""None for all, a node, or an iterable of nodes."""
SMALL = 10_000
"""Edges below which NetworkX has the answer before a graph is prepared."""


class ConvertedGraph:
    """A NetworkX graph as pairs of node positions, prepared when it is first asked something.

    Parameters
    ----------
    graph : networkx.Graph
        The edges of a directed graph are not read: nothing here is for them.
    """

    __networkx_backend__ = "dasktc"
    nbunch_iter = nx.Graph.nbunch_iter

    def __init__(self, graph: Any) -> None:
        self._adj: dict[Hashable, int] = {node: position for position, node in enumerate(graph)}
        self._directed, self._multigraph = graph.is_directed(), graph.is_multigraph()
        self._ends = _ends(graph, self._adj) if not self._directed else ()
        self._client: Any = None
        self._graph: Graph | None = None

    def is_directed(self) -> bool:
        """Whether the original's edges have directions."""
        return bool(self._directed)

    def is_multigraph(self) -> bool:
        """Whether the original may have parallel edges."""
        return bool(self._multigraph)

    def __contains__(self, node: object) -> bool:
        try:
            return node in self._adj
        except TypeError:  # not hashable
            return False

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._adj)

    def __len__(self) -> int:
        return len(self._adj)

    def prepared(self) -> Graph:
        """Prepare the graph, on the client that is active now."""
        client = active_client()
        if self._graph is None or client is not self._client:
            self._graph, self._client = prepare(self._ends, client), client
        return self._graph

    def spread(self, values: Any) -> list[Any]:
        """Values of all nodes in node order; 0 for those without an edge."""
        spread = np.zeros(len(self), values.dtype)
        spread[values.index.to_numpy()] = values.to_numpy()
        return [value or 0 for value in spread.tolist()]

    def select(self, nodes: Nodes, values: list[Any]) -> Any:
        """Answer for the nodes that were asked for, as NetworkX does."""
        if nodes is None:
            return dict(zip(self._adj, values, strict=True))
        if nodes in self:
            return values[self._adj[nodes]]
        return {node: values[self._adj[node]] for node in self.nbunch_iter(nodes)}


def _ends(graph: Any, positions: dict[Hashable, int]) -> tuple[Any, Any]:
    """Positions of both ends of every edge; parallel edges once."""
    rows = [row for _, row in graph.adjacency()]
    src = np.repeat(np.arange(len(rows)), np.fromiter(map(len, rows), np.int64, len(rows)))
    dst = np.fromiter(map(positions.__getitem__, chain.from_iterable(rows)), np.int64, len(src))
    once = src < dst
    return src[once], dst[once]


def convert_from_nx(graph: Any, **unused: Any) -> ConvertedGraph:
    """Convert a NetworkX graph; NetworkX passes which attributes to keep: none are.

    Parameters
    ----------
    graph : networkx.Graph
    **unused

    Returns
    -------
    ConvertedGraph
    """
    return ConvertedGraph(graph)


def convert_to_nx(obj: Any, **unused: Any) -> Any:
    """Pass results through; they are NetworkX's own kind.

    Raises
    ------
    NotImplementedError
        It is a converted graph: its original is there already.
    """
    if isinstance(obj, ConvertedGraph):
        raise NotImplementedError("dasktc keeps no attributes of a graph: use the original")
    return obj


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether a call can be done here.

    Returns
    -------
    bool or str
        True, or why not.
    """
    if name not in FUNCTIONS:
        return f"dasktc has no {name}"
    call = dict(zip(("G", "nodes", "weight"), args, strict=False)) | kwargs
    return _why_not(name, call["G"], call.get("nodes"), call.get("weight")) or True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether a call is likely to be faster here, when NetworkX chooses by itself.

    Returns
    -------
    bool or str
        True, or why not.
    """
    call = dict(zip(("G", "nodes"), args, strict=False)) | kwargs
    if call.get("nodes") is not None:
        return "NetworkX looks at the neighbours of these nodes alone, dasktc at the whole graph"
    graph = call["G"]
    if not isinstance(graph, ConvertedGraph) and graph.number_of_edges() < SMALL:
        return f"the graph has fewer than {SMALL:,} edges"
    return True


def _why_not(name: str, graph: Any, nodes: Nodes, weight: Any) -> str:
    if weight is not None:
        return "dasktc computes no weighted clustering"
    if graph.is_directed():
        return "dasktc ignores directions: pass an undirected graph"
    if graph.is_multigraph() and (name != "triangles" or nodes is not None):
        return f"NetworkX has no {name} of a multigraph{' for chosen nodes' if name == 'triangles' else ''}"
    return ""


def _ready(name: str, graph: ConvertedGraph, nodes: Nodes = None, weight: Any = None) -> Graph:
    if why := _why_not(name, graph, nodes, weight):
        raise NotImplementedError(why)
    return graph.prepared()


def triangles(G: ConvertedGraph, nodes: Nodes = None) -> Any:
    """Count the triangles of nodes.

    Parameters
    ----------
    G : ConvertedGraph
    nodes : node or iterable of nodes, optional

    Returns
    -------
    dict or int
        As `networkx.triangles`.
    """
    return G.select(nodes, G.spread(measures.triangles(_ready("triangles", G, nodes))))


def clustering(G: ConvertedGraph, nodes: Nodes = None, weight: None = None) -> Any:
    """Compute the local clustering coefficients of nodes.

    Parameters
    ----------
    G : ConvertedGraph
    nodes : node or iterable of nodes, optional
    weight : None

    Returns
    -------
    dict or float
        As `networkx.clustering`.
    """
    return G.select(nodes, G.spread(measures.clustering(_ready("clustering", G, nodes, weight))))


def average_clustering(G: ConvertedGraph, nodes: Nodes = None, weight: None = None, count_zeros: bool = True) -> float:
    """Average the local clustering coefficients of nodes, those without an edge included.

    Parameters
    ----------
    G : ConvertedGraph
    nodes : iterable of nodes, optional
    weight : None
    count_zeros : bool

    Returns
    -------
    float
        As `networkx.average_clustering`, rounding included.
    """
    coefficients = [value for value in clustering(G, nodes, weight).values() if count_zeros or value]
    return float(sum(coefficients) / len(coefficients))


def transitivity(G: ConvertedGraph) -> float:
    """Compute the share of pairs of neighbours that are joined.

    Parameters
    ----------
    G : ConvertedGraph

    Returns
    -------
    float
        As `networkx.transitivity`.
    """
    return measures.transitivity(_ready("transitivity", G)) or 0


def generalized_degree(G: ConvertedGraph, nodes: Nodes = None) -> Any:
    """Count the edges of nodes by how many triangles they are in.

    Parameters
    ----------
    G : ConvertedGraph
    nodes : node or iterable of nodes, optional

    Returns
    -------
    dict of Counter, or Counter
        As `networkx.generalized_degree`.
    """
    counters: list[Counter[int]] = [Counter() for _ in G]
    for position, support, edges in _support_counts(measures.edge_support(_ready("generalized_degree", G, nodes))):
        counters[position][support] = edges
    return G.select(nodes, counters)


def _support_counts(edges: Any) -> Iterable[tuple[int, int, int]]:
    """Each (node, support) that occurs, and how often."""
    if hasattr(edges, "dask"):
        counted = edges.map_partitions(_count_supports, meta=_count_supports(edges._meta))
        edges = active_client().compute(counted).result()
    else:
        edges = _count_supports(edges)
    summed = edges.groupby(["node", "support"], as_index=False)["edges"].sum()
    return zip(*(summed[name].tolist() for name in ("node", "support", "edges")), strict=True)


def _count_supports(edges: Any) -> Any:
    import pandas as pd

    ends = [edges[[end, "support"]].set_axis(["node", "support"], axis=1) for end in ("src", "dst")]
    return pd.concat(ends).groupby(["node", "support"], as_index=False).size().rename(columns={"size": "edges"})


backend = sys.modules[__name__]
"""What NetworkX loads: an object that has the functions as attributes."""
