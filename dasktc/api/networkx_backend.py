"""NetworkX backend: `nx.triangles(G, backend="dasktc")` and related functions return NetworkX's own results.

Calls run on the workers of the active Dask client. Without a client they run in this process, and so do those about
weights, directions, squares, cores and trusses. A graph is converted to pairs of node positions and
prepared once for each kind of question; NetworkX caches the converted graph until the original changes. Unsupported
calls raise NotImplementedError, because NetworkX does not always ask `can_run`, and falls back to its own
implementation only on this error. The log "dasktc" gives the reason once, because NetworkX discards the answer of
`can_run`. A `dasktc.Graph` is a graph of this backend itself: `nx.triangles(graph)` asks it, where it is.
"""

from __future__ import annotations

import inspect
import logging
import math
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from numbers import Real
from typing import Any

import networkx as nx
import numpy as np

from dasktc.api.count import prepare
from dasktc.api.graph import Graph
from dasktc.api.networkx_info import FUNCTIONS
from dasktc.backends import get_backend
from dasktc.backends.host_threads import allowed_threads
from dasktc.errors import InputError
from dasktc.executors.connect import active_client
from dasktc.once import once
from dasktc.options import MeasureName
from dasktc.wording import plural

__all__ = [
    *("ConvertedGraph", "PreparedGraph", "backend", "can_run", "convert_from_nx", "convert_to_nx", "should_run"),
    *FUNCTIONS,
]

Nodes = Any
"""All nodes (None), one node, or an iterable of nodes."""
Array = Any
LISTED = 1 << 14
"""Number of triangles whose nodes are looked up at a time."""
PAIRED = 1 << 20
"""Number of pairs of nodes that are compared at a time."""
TO_LOAD, TO_PREPARE = 2.0, 0.03
"""Seconds in which a new process imports and loads compiled code, and seconds for a small graph after that."""
log = logging.getLogger("dasktc")


class _Nodes(ABC):
    """Nodes of a graph and their positions, with which answers are put into NetworkX's forms."""

    nbunch_iter = nx.Graph.nbunch_iter

    @property
    @abstractmethod
    def _adj(self) -> dict[Hashable, int]:
        """The position of each node; named as `nbunch_iter` reads it."""

    def __contains__(self, node: object) -> bool:
        try:
            return node in self._adj
        except TypeError:  # not hashable
            return False

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._adj)

    def __len__(self) -> int:
        return len(self._adj)

    def select(self, nodes: Nodes, values: list[Any]) -> Any:
        """Select the values of the requested nodes in NetworkX's form: one value, or a dict."""
        if nodes is None:
            return dict(zip(self._adj, values, strict=True))
        if nodes in self:
            return values[self._adj[nodes]]
        return {node: values[self._adj[node]] for node in self.nbunch_iter(nodes)}

    def positions(self, nodes: Iterable[Hashable]) -> Array:
        """Return the positions of nodes."""
        return np.array([self._adj[node] for node in nodes], dtype=np.int64)


class PreparedGraph(_Nodes):
    """A `dasktc.Graph` as NetworkX's functions take it: its nodes are its vertices, in ascending order."""

    loops = 0  # they were dropped when it was prepared

    def __init__(self, graph: Graph) -> None:
        self._graph, self.is_directed, self.is_multigraph = graph, graph.is_directed, graph.is_multigraph
        self._order: dict[Hashable, int] = {}

    @property
    def _adj(self) -> dict[Hashable, int]:
        if not self._order:
            self.spread(self._graph.triangles(frame="pandas"))  # counted once: the graph caches it
        return self._order

    def prepared(self) -> Graph:
        """Return the graph."""
        return self._graph

    def here(self, weight: str | None = None, directed: bool = False) -> Graph:
        """Return the graph, which refuses what it cannot answer."""
        return self._graph

    def coefficients(self, weight: str | None) -> Any:
        """Compute the weighted or directed clustering coefficients."""
        return self._graph.clustering(weight, frame="pandas")

    def spread(self, values: Any) -> list[Any]:
        """Return a series of values by vertex as a list in node order."""
        self._order = {node: position for position, node in enumerate(values.index.tolist())}
        return list(values.tolist())

    def places(self, frame: Any, columns: Sequence[str]) -> Array:
        """Return columns of vertices as positions of nodes."""
        return np.stack([self.positions(frame[name].tolist()) for name in columns], axis=1)

    def ends(self) -> Array:
        """Return all edges as pairs of positions."""
        return self.places(self._graph.oriented_edges(frame="pandas"), ("src", "dst"))

    def similarities(self, pairs: Array, measure: MeasureName) -> Array:
        """Compute the similarity of pairs of positions."""
        nodes = list(self)
        node_pairs = [(nodes[u], nodes[v]) for u, v in pairs.tolist()]
        return self._graph.similarity(node_pairs, measure, frame="pandas")[measure].to_numpy()

    def without(self, positions: Array) -> Graph:
        """Refuse to leave out vertices of a prepared graph."""
        raise NotImplementedError("dasktc has the triads of all vertices of a prepared graph: leave out nodelist")

    def subgraph(self, edges: Iterable[tuple[int, int]]) -> Any:
        """Make the NetworkX graph of some edges between positions; a prepared graph has no attributes."""
        nodes = list(self)
        return nx.Graph((nodes[u], nodes[v]) for u, v in edges)


class ConvertedGraph(_Nodes):
    """A NetworkX graph as pairs of node positions; it is prepared with the first question.

    Parameters
    ----------
    graph : networkx.Graph
    weights : mapping of str to object, optional
        Edge attributes to keep, and the value of edges without the attribute.
    keep : bool
        Keep a reference to the graph, for results that copy its attributes.

    Raises
    ------
    NotImplementedError
        A weight is not a finite real number, or does not fit float64.
    """

    __networkx_backend__ = "dasktc"

    def __init__(self, graph: Any, weights: dict[str, Any] | None = None, keep: bool = False) -> None:
        self._positions: dict[Hashable, int] = {node: position for position, node in enumerate(graph)}
        self._directed, self._multigraph = graph.is_directed(), graph.is_multigraph()
        rows = [row for _, row in graph.adjacency()]
        src = np.repeat(np.arange(len(rows)), np.fromiter(map(len, rows), np.int64, len(rows)))
        dst = np.fromiter(map(self._adj.__getitem__, chain.from_iterable(rows)), np.int64, len(src))
        self._once = slice(None) if self._directed else src <= dst  # undirected: each edge is listed at both ends
        self._src, self._dst = src[self._once], dst[self._once]
        self._original = graph if keep else None
        self._weights = {name: self._values(graph, name, default) for name, default in (weights or {}).items()}
        self._client: Any = None
        self._graphs: dict[Hashable, Graph] = {}

    @property
    def _adj(self) -> dict[Hashable, int]:
        return self._positions

    def _values(self, graph: Any, name: str, default: Any = 1) -> Array:
        data = (attributes for _, row in graph.adjacency() for attributes in row.values())
        values = [attributes.get(name, default) for attributes in data] if not self._multigraph else []
        if not all(issubclass(kind, Real) for kind in set(map(type, values))):
            raise NotImplementedError(f"dasktc takes real numbers as weights: attribute {name!r} has other values")
        try:
            weights = np.array(values, dtype=np.float64)
        except OverflowError as error:  # integers and fractions have no bound
            raise NotImplementedError(
                f"dasktc takes numbers as weights that fit float64: attribute {name!r} has others"
            ) from error
        if not np.isfinite(weights).all():
            raise NotImplementedError(f"dasktc takes finite numbers as weights: attribute {name!r} has other values")
        return weights[self._once] if not self._multigraph else weights

    @property
    def loops(self) -> int:
        """Number of loops, parallel loops counted once."""
        return int((self._src == self._dst).sum())

    @property
    def original(self) -> Any:
        """The original graph, if the conversion kept it."""
        if self._original is None:
            raise NotImplementedError("dasktc keeps no attributes of this converted graph: pass the original")
        return self._original

    def is_directed(self) -> bool:
        """Whether the original graph is directed."""
        return bool(self._directed)

    def is_multigraph(self) -> bool:
        """Whether the original may have parallel edges."""
        return bool(self._multigraph)

    def number_of_edges(self) -> int:
        """Number of edges, parallel edges counted once."""
        return len(self._src)

    def prepared(self) -> Graph:
        """Prepare the graph on the active client."""
        client = active_client()
        if client is not self._client:
            self._graphs.pop("anywhere", None)
            self._client = client
        return self._kept("anywhere", lambda: prepare((self._src, self._dst), client))

    def here(self, weight: str | None = None, directed: bool = False) -> Graph:
        """Prepare the graph in this process, optionally with weights and directions."""
        if weight is None and not directed:
            return self._kept("here", self._in_process) if active_client() is not None else self.prepared()
        return self._kept((weight, directed), lambda: self._in_process(weight, directed))

    def ends(self) -> Array:
        """Return all edges as pairs of positions."""
        return np.stack([self._src, self._dst], axis=1)

    def similarities(self, pairs: Array, measure: MeasureName) -> Array:
        """Compute the similarity of pairs of positions; nodes without an edge are similar to none."""
        values, has_edge = np.zeros(len(pairs)), np.zeros(len(self), bool)
        has_edge[self.ends()] = True
        mask = has_edge[pairs].all(axis=1)
        if mask.any():
            values[mask] = self.prepared().similarity(pairs[mask], measure, frame="pandas")[measure]
        return values

    def without(self, positions: Array) -> Graph:
        """Prepare the directed graph without the nodes at these positions."""
        mask = ~(np.isin(self._src, positions) | np.isin(self._dst, positions))
        return prepare((self._src[mask], self._dst[mask]), threads=allowed_threads(), directed=True)

    def _in_process(self, weight: str | None = None, is_directed: bool = False) -> Graph:
        import pandas as pd

        edges, threads = pd.DataFrame({"src": self._src, "dst": self._dst}), allowed_threads()
        if weight is None:
            return prepare(edges, threads=threads, directed=is_directed)
        if weight not in self._weights:
            self._weights[weight] = self._values(self.original, weight)
        edges["weight"] = self._weights[weight]
        return prepare(edges, threads=threads, directed=is_directed, weight="weight")

    def _kept(self, key: Hashable, make: Callable[[], Graph]) -> Graph:
        if key not in self._graphs:
            self._graphs[key] = make()
        return self._graphs[key]

    def spread(self, values: Any) -> list[Any]:
        """Expand values to all nodes in node order, with 0 for nodes without an edge."""
        spread = np.zeros(len(self), values.dtype)
        spread[values.index.to_numpy()] = values.to_numpy()
        return [value or 0 for value in spread.tolist()]

    def coefficients(self, weight: str | None) -> Any:
        """Compute the weighted or directed clustering coefficients."""
        return self.here(weight, self._directed).clustering(weight=None if weight is None else "weight")

    def places(self, frame: Any, columns: Sequence[str]) -> Array:
        """Return columns of vertices, which are positions."""
        return frame[list(columns)].to_numpy()

    def subgraph(self, edges: Iterable[tuple[int, int]]) -> Any:
        """Make the graph of some edges between positions, of the original's type and with its attributes."""
        graph, nodes = self.original, list(self)
        links: dict[Any, set[Any]] = {}
        for tail, head in edges:
            u, v = nodes[tail], nodes[head]
            links.setdefault(u, set()).add(v)
            links.setdefault(v, set()).add(u)
        copy = graph.__class__()
        copy.graph.update(graph.graph)
        copy.add_nodes_from((node, d.copy()) for node, d in graph.nodes.items() if node in links)
        copy.add_edges_from(
            (u, v, d.copy()) for u, row in graph.adjacency() if u in links for v, d in row.items() if v in links[u]
        )
        return copy


def convert_from_nx(
    graph: Any, *, edge_attrs: dict[str, Any] | None = None, preserve_edge_attrs: bool = False, **unused: Any
) -> ConvertedGraph:
    """Convert a NetworkX graph.

    `edge_attrs` are the edge attributes to keep, all of them weights, and the value of edges without the attribute;
    `preserve_edge_attrs`: keep all attributes.
    """
    return ConvertedGraph(graph, edge_attrs, preserve_edge_attrs)


def convert_to_nx(obj: Any, **unused: Any) -> Any:
    """Return a result unchanged: results are NetworkX's own types.

    NotImplementedError: it is a converted graph, whose original the caller already has, or a prepared one.
    """
    if isinstance(obj, ConvertedGraph | Graph):
        raise NotImplementedError(
            "dasktc keeps no attributes of a graph: use the original, or what it was prepared from"
        )
    return obj


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether dasktc can run a call: True, or the reason why not, which is also logged once."""
    if name not in FUNCTIONS:
        return f"dasktc has no {name}"
    call = _call(name, args, kwargs)
    reason = _why_not(name, _opened(call["G"]), _chosen(call), call.get("weight"))
    if reason:
        _say(name, reason)
    return reason or True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether a call is predicted to be faster in dasktc than in NetworkX: True, or the reason why not.

    NetworkX asks this when it chooses the backend.
    """
    call = _call(name, args, kwargs)
    if _chosen(call) is not None:
        return "NetworkX visits only the neighbours of these nodes, dasktc the whole graph"
    graph, jit = call["G"], sys.modules.get("dasktc.backends.cpu.jit")
    if isinstance(graph, ConvertedGraph | Graph):
        return True
    seconds, is_loaded = FUNCTIONS[name][0] * graph.number_of_edges(), jit is not None and jit.Kernel.loaded > 0
    if seconds >= (TO_PREPARE if is_loaded else TO_LOAD):
        return True
    cost = f"{TO_PREPARE:g} s at least" if is_loaded else f"{TO_LOAD:g} s to load its compiled code into this process"
    return f"NetworkX takes about {seconds:.2g} s for {plural(graph.number_of_edges(), 'edge')}, dasktc {cost}"


def _call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Bind the arguments of a call to the function's parameter names."""
    return dict(inspect.signature(globals()[name]).bind(*args, **kwargs).arguments)


def _chosen(call: dict[str, Any]) -> Nodes:
    return next((call[name] for name in ("nodes", "nbunch", "nodelist", "ebunch") if name in call), None)


@once
def _say(name: str, reason: str) -> None:
    """Log, once per function and reason, that a call does not run in dasktc."""
    log.warning("networkx.%s does not run in dasktc: %s", name, reason)


_OF_DIRECTED = ("average_clustering", "clustering", "triadic_census")
_OF_MULTIGRAPHS = ("all_triangles", "square_clustering", "triadic_census")


def _why_not(name: str, graph: Any, nodes: Nodes, weight: Any) -> str:
    if weight is not None and not isinstance(weight, str):
        return f"dasktc takes the name of an attribute as weight, not {type(weight).__name__}"
    if graph.is_directed() and name not in _OF_DIRECTED:
        return f"dasktc ignores directions, NetworkX's {name} does not: pass an undirected graph"
    if graph.is_multigraph() and name not in _OF_MULTIGRAPHS and (name != "triangles" or nodes is not None):
        return f"NetworkX has no {name} of a multigraph{' for chosen nodes' if name == 'triangles' else ''}"
    return ""


def _opened(graph: Any) -> Any:
    return PreparedGraph(graph) if isinstance(graph, Graph) else graph


def _check(name: str, graph: Any, nodes: Nodes = None, weight: Any = None) -> PreparedGraph | ConvertedGraph:
    """Return the graph with its nodes; refuse calls that NetworkX does not have, or answers in another way."""
    checked_graph: PreparedGraph | ConvertedGraph = _opened(graph)
    if reason := _why_not(name, checked_graph, nodes, weight):
        raise NotImplementedError(reason)
    return checked_graph


# Each function has the parameters and results of NetworkX's function of the same name; G is a converted graph, or a
# `dasktc.Graph`.


def triangles(G: Any, nodes: Nodes = None) -> Any:
    """Count the triangles of nodes."""
    G = _check("triangles", G, nodes)
    return G.select(nodes, G.spread(G.prepared().triangles(frame="pandas")))


def all_triangles(G: Any, nbunch: Nodes = None) -> Iterator[tuple[Any, Any, Any]]:
    """List the triangles, or those with a node of `nbunch`, in another order than NetworkX."""
    G = _check("all_triangles", G)
    rows = G.places(G.prepared().triangle_list(limit=sys.maxsize, frame="pandas"), "uvw")
    if nbunch is not None:
        positions = G.positions(dict.fromkeys(G.nbunch_iter(nbunch)))
        order = np.arange(len(positions), len(positions) + len(G))
        order[positions] = np.arange(len(positions))
        rows = rows[(order[rows] < len(positions)).any(axis=1)]
        rows = np.take_along_axis(rows, order[rows].argsort(axis=1), axis=1)
    return _named(rows, list(G))


def _named(rows: Array, nodes: list[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Convert rows of positions to tuples of nodes, some thousand rows at a time."""
    for start in range(0, len(rows), LISTED):
        for u, v, w in rows[start : start + LISTED].tolist():
            yield nodes[u], nodes[v], nodes[w]


def clustering(G: Any, nodes: Nodes = None, weight: str | None = None) -> Any:
    """Compute the local clustering coefficients of nodes."""
    G = _check("clustering", G, nodes, weight)
    if weight is None and not G.is_directed():
        values = G.prepared().clustering(frame="pandas")
    else:
        try:
            values = G.coefficients(weight)
        except InputError as error:  # the largest weight is 0, or an overflow: left to NetworkX
            reason = str(error).replace("'weight'", repr(weight))
            _say("clustering", reason)
            raise NotImplementedError(reason) from error
    return G.select(nodes, G.spread(values))


def average_clustering(G: Any, nodes: Nodes = None, weight: str | None = None, count_zeros: bool = True) -> float:
    """Average the local clustering coefficients of nodes, including nodes without an edge, rounded as in NetworkX."""
    coefficients = [value for value in clustering(G, nodes, weight).values() if count_zeros or value]
    return float(sum(coefficients) / len(coefficients))


def square_clustering(G: Any, nodes: Nodes = None) -> Any:
    """Compute the square clustering coefficients of nodes."""
    G = _check("square_clustering", G, nodes)
    return G.select(nodes, G.spread(G.here().square_clustering(frame="pandas")))


def triadic_census(G: Any, nodelist: Any = None) -> dict[str, int]:
    """Count the triples of nodes by type; with `nodelist`, all triples minus those among the other nodes."""
    G = _check("triadic_census", G)
    nodes = set(G.nbunch_iter(nodelist))
    if nodelist is not None and len(nodelist) != len(nodes):
        raise ValueError("nodelist includes duplicate nodes or nodes not in G")
    graph = G.here(directed=True)
    census: dict[str, int] = graph.triad_census(isolated=len(G) - graph.vertices)
    if complement := len(G) - len(nodes):
        rest = G.without(G.positions(nodes))
        rest_census = rest.triad_census(isolated=complement - rest.vertices)
        census = {name: count - rest_census[name] for name, count in census.items()}
    return census


def core_number(G: Any) -> dict[Any, int]:
    """Compute the core numbers of nodes."""
    G = _without_loops("core_number", G)
    values: dict[Any, int] = G.select(None, G.spread(G.here().core_number(frame="pandas")))
    return values


def k_truss(G: Any, k: float) -> Any:
    """Find the largest subgraph each of whose edges is in k - 2 of its triangles; copy the original's attributes."""
    G = _without_loops("k_truss", G)
    order = 2 if not k > 2 else math.ceil(min(k, len(G) + 1))
    edges = G.places(G.here().truss(order, frame="pandas"), ("src", "dst"))
    return G.subgraph(map(tuple, edges.tolist()))


def _without_loops(name: str, graph: Any) -> PreparedGraph | ConvertedGraph:
    """Return the graph with its nodes, as `_check`; raise NetworkX's own error for a graph with loops."""
    checked_graph = _check(name, graph)
    if checked_graph.loops:
        raise nx.NetworkXNotImplemented(
            f"Input graph has self loops, {checked_graph.loops:,} of them, which is not permitted; "
            "consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return checked_graph


def jaccard_coefficient(G: Any, ebunch: Any = None) -> Iterator[tuple[Any, Any, float]]:
    """Compute the Jaccard coefficient of pairs of nodes; by default of all that are not adjacent."""
    return _predictions("jaccard_coefficient", G, ebunch, "jaccard")


def adamic_adar_index(G: Any, ebunch: Any = None) -> Iterator[tuple[Any, Any, float]]:
    """Compute the Adamic-Adar index of pairs of nodes; by default of all that are not adjacent."""
    return _predictions("adamic_adar_index", G, ebunch, "adamic_adar")


def resource_allocation_index(G: Any, ebunch: Any = None) -> Iterator[tuple[Any, Any, float]]:
    """Compute the resource allocation index of pairs of nodes; by default of all that are not adjacent."""
    return _predictions("resource_allocation_index", G, ebunch, "resource_allocation")


def _predictions(name: str, graph: Any, pairs: Any, measure: MeasureName) -> Iterator[tuple[Any, Any, float]]:
    """Check a call, and yield pairs with their similarity, which is computed for many of them at a time."""
    checked_graph = _check(name, graph)
    if checked_graph.loops:
        raise NotImplementedError(
            f"dasktc drops loops, {checked_graph.loops:,} here, by which NetworkX's {name} takes nodes for their own "
            "neighbours: pass a graph without loops"
        )
    if pairs is None:
        return _similar(checked_graph, _not_adjacent(checked_graph), measure)
    pair_list = list(pairs)
    for node in chain.from_iterable(pair_list):
        if node not in checked_graph:
            raise nx.NodeNotFound(f"Node {node} not in G.")
    positions = checked_graph.positions(chain.from_iterable(pair_list)).reshape(-1, 2)
    return _similar(checked_graph, iter([positions]), measure)


def _not_adjacent(graph: PreparedGraph | ConvertedGraph, paired: int = PAIRED) -> Iterator[Array]:
    """Yield all pairs of positions without an edge, the smaller first, about `paired` at a time."""
    size, ends = len(graph), graph.ends()
    edges = get_backend("cpu").distinct(ends.min(axis=1) * size + ends.max(axis=1))
    step = max(1, paired // max(1, size))
    for start in range(0, size, step):
        rows = np.arange(start, min(start + step, size))
        keys = (rows[:, None] * size + np.arange(size))[rows[:, None] < np.arange(size)]
        yield np.stack(np.divmod(np.setdiff1d(keys, edges, assume_unique=True), size), axis=1)


def _similar(
    graph: PreparedGraph | ConvertedGraph, parts: Iterator[Array], measure: MeasureName
) -> Iterator[tuple[Any, Any, float]]:
    nodes = list(graph)
    for pairs in parts:
        values = graph.similarities(pairs, measure)
        if not np.isfinite(values).all():  # a node and itself, and a neighbour of degree 1
            raise ZeroDivisionError("float division by zero")
        for (u, v), value in zip(pairs.tolist(), values.tolist(), strict=True):
            yield nodes[u], nodes[v], value


def transitivity(G: Any) -> float:
    """Compute the share of pairs of neighbours that are adjacent."""
    G = _check("transitivity", G)
    return G.prepared().transitivity() or 0


def generalized_degree(G: Any, nodes: Nodes = None) -> Any:
    """Count the edges of each node by their number of triangles."""
    G = _check("generalized_degree", G, nodes)
    counters: list[Counter[int]] = [Counter() for _ in G]
    support_counts = _support_counts(G.prepared())
    rows = np.column_stack([G.places(support_counts, ["node"]), support_counts["support"], support_counts["edges"]])
    for position, support, edges in rows.tolist():
        counters[position][support] = edges
    return G.select(nodes, counters)


def _support_counts(graph: Graph) -> Any:
    """Return each node and support that occur, and their number of occurrences, as columns of a pandas frame."""
    if graph.client is None:
        support_counts = _count_supports(graph.edge_support(frame="pandas"))
    else:
        from dask.dataframe.utils import make_meta

        edges: Any = graph.edge_support(frame="dask")
        parts = edges.map_partitions(_count_supports, meta=_count_supports(make_meta(edges)))
        support_counts = graph.client.compute(parts).result()
    return support_counts.groupby(["node", "support"], as_index=False)["edges"].sum()


def _count_supports(edges: Any) -> Any:
    import pandas as pd

    ends = [edges[[end, "support"]].set_axis(["node", "support"], axis=1) for end in ("src", "dst")]
    return pd.concat(ends).groupby(["node", "support"], as_index=False).size().rename(columns={"size": "edges"})


backend = sys.modules[__name__]
"""The object that NetworkX loads; its attributes are the functions."""
