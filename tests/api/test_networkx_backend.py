"""The NetworkX backend against NetworkX, called as its users call it."""

import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from importlib.metadata import entry_points
from itertools import product

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.api import networkx_backend
from dasktc.api.networkx_info import FUNCTIONS, get_info
from tests.support import oracle
from tests.support.tiers import some

ALL = sorted(FUNCTIONS)
OF_DIRECTED = ["average_clustering", "clustering", "triadic_census"]
OF_PAIRS = ["adamic_adar_index", "jaccard_coefficient", "resource_allocation_index"]
OF_UNDIRECTED = sorted(set(ALL) - {"k_truss", "triadic_census", *OF_PAIRS})
OWN_TESTS = [f"networkx.algorithms.tests.test_{name}" for name in ("cluster", "core", "link_prediction", "triads")]
OWN_DECLINED = {"core_number": 2}
"""Calls in NetworkX's own tests that the backend declines although it has the function."""
BY_NODE = ["clustering", "generalized_degree", "square_clustering", "triangles"]
CASES = {name: edges for name, edges, _ in oracle.GRAPHS}


def both(name, *args, **kwargs):
    """Call NetworkX and the backend; exceptions count as results."""
    function = getattr(nx, name)
    results = [outcome(function, *args, **kwargs), outcome(function, *args, backend="dasktc", **kwargs)]
    return [of[:2] for of in results] if name == "square_clustering" else results  # of 0 and 0.0 it has both


def outcome(function, *args, **kwargs):
    try:
        found = function(*args, **kwargs)
    except (nx.NetworkXException, ZeroDivisionError, AttributeError, ValueError) as error:
        return type(error), str(error).partition(",")[0].partition(" which")[0]
    if isinstance(found, Iterator):
        listed = list(found)
        assert all(type(triangle) is tuple for triangle in listed)
        return {frozenset(triangle) for triangle in listed}, len(listed)
    if isinstance(found, nx.Graph):
        return found.graph, list(found.nodes.items()), found.adj
    by_node = type(found) is dict
    return found, list(found) if by_node else None, set(map(type, found.values() if by_node else [found]))


@pytest.fixture(autouse=True)
def reuse_is_no_warning(monkeypatch):
    monkeypatch.setattr(nx.config, "warnings_to_ignore", {"cache"})


@pytest.fixture
def graph():
    """Loops, isolated nodes, and nodes of several types."""
    found = nx.relabel_nodes(nx.gnm_random_graph(30, 150, seed=4), {3: "three", 5: (5, 5), 7: 7.5})
    found.add_nodes_from(["alone", 1000])
    found.add_edges_from([(2, 2), ("loop", "loop"), (1, "leaf")])
    return found


def test_every_function_has_its_speed():
    assert all(0 < seconds < 1e-3 for seconds, _ in FUNCTIONS.values())


def test_entry_points():
    assert entry_points(group="networkx.backends")["dasktc"].load() is networkx_backend.backend
    assert entry_points(group="networkx.backend_info")["dasktc"].load() is get_info


def test_info_lists_what_there_is():
    info = get_info()
    assert set(info["functions"]) == set(ALL)
    for name in ALL:
        assert callable(getattr(networkx_backend.backend, name))
        assert "dasktc" in getattr(nx, name).__doc__


def test_info_imports_nothing_heavy():
    code = "import sys; import networkx; print(*{'dask', 'distributed', 'numba', 'pandas', 'scipy'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


@pytest.mark.parametrize(
    ("name", "graph"),
    some(
        product(OF_UNDIRECTED, CASES),
        lambda name, graph: name == OF_UNDIRECTED[list(CASES).index(graph) % len(OF_UNDIRECTED)],
    ),
)
def test_named_graphs(name, graph):
    expected, found = both(name, nx.Graph(CASES[graph]))
    assert found == expected


@given(st.one_of(oracle.multigraphs(), oracle.text_multigraphs()), st.sampled_from(OF_UNDIRECTED))
def test_any_graph(edges, name):
    expected, found = both(name, nx.Graph(edges))
    assert found == expected


@given(st.one_of(oracle.multigraphs(), oracle.text_multigraphs()), st.sampled_from(OF_DIRECTED))
def test_any_directed_graph(edges, name):
    expected, found = both(name, nx.DiGraph(edges))
    assert found == expected


WEIGHTS = st.one_of(st.integers(-2, 9), st.floats(0.001, 100).map(lambda weight: round(weight, 6)), st.none())


@given(oracle.multigraphs(), st.data(), st.sampled_from([nx.Graph, nx.DiGraph]))
def test_any_weighted_graph(edges, data, kind):
    graph = kind(edges)
    for u, v in graph.edges:
        if (weight := data.draw(WEIGHTS)) is not None:  # else NetworkX takes 1
            graph[u][v]["w"] = weight
    largest = max((weight for *_, weight in graph.edges(data="w", default=1)), default=1)
    if largest == 0 and any(u != v for u, v in graph.edges):
        with pytest.raises(NotImplementedError, match="dasktc"):
            nx.clustering(graph, weight="w", backend="dasktc")
        return
    expected, found = nx.clustering(graph, weight="w"), nx.clustering(graph, weight="w", backend="dasktc")
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12 * max([1, *map(abs, expected.values())]))


@given(oracle.multigraphs(), st.data())
def test_triads_of_some_nodes(edges, data):
    graph = nx.DiGraph(edges)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))  # of chosen nodes NetworkX 3.6 takes loops for mutual edges
    nodes = data.draw(st.lists(st.sampled_from(list(graph)), unique=True)) if len(graph) else []
    expected, found = both("triadic_census", graph, nodes)
    assert found == expected


@given(oracle.multigraphs(), st.data())
def test_triangles_of_some_nodes(edges, data):
    graph = nx.Graph(edges)
    nodes = data.draw(st.lists(st.sampled_from(list(graph)))) if len(graph) else []
    expected, found = both("all_triangles", graph, nodes)
    assert found == expected


@given(oracle.multigraphs(), st.sampled_from([-1, 0, 2, 2.5, 3, 3.5, 4, 5, 6, 100, math.inf]))
def test_trusses_of_any_graph(edges, k):
    edges = [(u, v, {"w": u + v}) for u, v in edges if u != v]
    graph = nx.Graph(edges, name="whole")
    graph.add_node("alone", colour="red")
    nx.set_node_attributes(graph, {node: {"id": node} for node in graph})
    (expected, found), before = both("k_truss", graph, k), graph.copy()
    assert found == expected
    assert [dict(row) for row in found[2].values()] == [dict(row) for row in expected[2].values()]
    for _, of in found[1]:
        of["id"] = "changed"
    assert nx.utils.graphs_equal(graph, before)


def test_trusses_and_weights_of_one_conversion():
    graph = nx.complete_graph(4)
    graph[0][1]["weight"] = 8
    assert nx.k_truss(graph, 4, backend="dasktc").number_of_edges() == 6
    found = nx.clustering(graph, weight="weight", backend="dasktc")  # NetworkX hands over what it has converted
    assert found == pytest.approx(nx.clustering(graph, weight="weight"), rel=1e-12)
    converted = networkx_backend.convert_from_nx(graph)
    with pytest.raises(NotImplementedError, match="pass the original"):
        networkx_backend.k_truss(converted, 3)


@pytest.mark.parametrize("name", ["core_number", "k_truss"])
def test_loops_are_refused_as_in_networkx(name):
    graph = nx.Graph([(0, 1), (1, 1)])
    expected, found = both(name, graph, *[3] * (name == "k_truss"))
    assert found == expected
    assert found[0] is nx.NetworkXNotImplemented


def test_triads_of_doubtful_nodes_are_refused():
    graph = nx.DiGraph([(0, 1), (1, 2)])
    for nodes in ([0, 0], [0, 7]):
        (of_networkx, reason), (of_dasktc, _) = both("triadic_census", graph, nodes)
        assert of_networkx is of_dasktc is ValueError
        assert "duplicate nodes" in reason


@pytest.mark.parametrize("name", OF_UNDIRECTED)
def test_all_nodes(name, graph):
    expected, found = both(name, graph)
    assert found == expected


@pytest.mark.parametrize("name", BY_NODE)
@pytest.mark.parametrize("node", [1, "three", (5, 5), "alone", "loop"])
def test_one_node(name, node, graph):
    expected, found = both(name, graph, node)
    assert found == expected


@pytest.mark.parametrize("name", [*BY_NODE, "average_clustering"])
@pytest.mark.parametrize(
    "nodes", [[], [1, 2, 1], ["three", "alone", "loop"], {7.5}, ["nobody", 1], "nobody", 12345, [[1]]], ids=str
)
def test_some_nodes(name, nodes, graph):
    expected, found = both(name, graph, nodes)
    assert found == expected


@pytest.mark.parametrize("count_zeros", [True, False])
def test_average_with_and_without_zeros(count_zeros, graph):
    expected, found = both("average_clustering", graph, count_zeros=count_zeros)
    assert found == expected
    assert found[0] > 0


@pytest.mark.parametrize("name", ALL)
def test_no_nodes(name):
    given = [3] * (name == "k_truss")
    for kind in [nx.Graph] * (name != "triadic_census") + [nx.DiGraph] * (name in OF_DIRECTED):
        expected, found = both(name, kind(), *given)
        assert found == expected


def predictions(name, graph, ebunch, backend=None):
    """Pairs, as given or with the smaller position first, and their values, or the exception."""
    try:
        rows = list(getattr(nx, name)(graph, ebunch, **({"backend": backend} if backend else {})))
    except (nx.NodeNotFound, ZeroDivisionError) as error:
        return type(error), str(error)
    places = {node: place for place, node in enumerate(graph)}
    if ebunch is None:  # in any order
        rows = sorted(
            ((*sorted(ends, key=places.get), value) for *ends, value in rows),
            key=lambda row: (places[row[0]], places[row[1]]),
        )
    return [tuple(ends) for *ends, _ in rows], [value for *_, value in rows]


@pytest.mark.parametrize("name", OF_PAIRS)
@pytest.mark.parametrize(
    "pairs",
    [
        None,
        [],
        [(1, 2), (2, 1), ("alone", 1), (1000, "alone"), ((5, 5), "three"), (1, 1)],
        [(1, 2), (1, "nobody")],
        [("leaf", 7.5)] * 3,
    ],
    ids=["none", "no", "some", "unknown", "repeated"],
)
def test_similarity_of_pairs(name, pairs, graph):
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    expected, found = (predictions(name, graph, pairs, backend) for backend in (None, "dasktc"))
    assert found[0] == expected[0]
    assert found[1] == (pytest.approx(expected[1], rel=1e-12) if type(expected[1]) is list else expected[1])
    if pairs and type(expected[1]) is list:
        assert predictions(name, graph, iter(pairs), "dasktc") == found


def test_pairs_without_an_edge_come_some_at_a_time(graph):
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    nodes, chunks = list(graph), list(networkx_backend._not_adjacent(networkx_backend.convert_from_nx(graph), 100))
    pairs = [(nodes[u], nodes[v]) for chunk in chunks for u, v in chunk.tolist()]
    assert Counter(map(frozenset, pairs)) == Counter(map(frozenset, nx.non_edges(graph)))
    assert max(map(len, chunks)) <= 100 < len(pairs)


@pytest.mark.parametrize("name", OF_PAIRS)
def test_other_graphs_of_pairs_are_left_to_networkx(name, graph):
    for refused, reason in (
        (graph, "dasktc drops loops, 2 here, .*: pass a graph without loops"),
        (nx.DiGraph([(0, 1)]), "dasktc ignores directions"),
        (nx.MultiGraph([(0, 1)]), "of a multigraph"),
    ):
        with pytest.raises(NotImplementedError, match=reason):
            getattr(networkx_backend, name)(networkx_backend.convert_from_nx(refused), [(0, 1)])


@given(st.one_of(oracle.multigraphs(), oracle.text_multigraphs()), st.sampled_from(OF_PAIRS))
def test_similarity_of_all_pairs_without_an_edge(edges, name):
    graph = nx.Graph(edge for edge in edges if edge[0] != edge[1])
    expected, found = (predictions(name, graph, None, backend) for backend in (None, "dasktc"))
    assert found == (expected[0], pytest.approx(expected[1], rel=1e-12))


@pytest.mark.parametrize("name", ["all_triangles", "square_clustering", "triadic_census", "triangles"])
def test_multigraph(name):
    edges = oracle.messy(oracle.complete(5)[2:])
    expected, found = both(name, (nx.MultiDiGraph if name == "triadic_census" else nx.MultiGraph)(edges))
    assert found == expected
    assert found[:2] == outcome(getattr(nx, name), (nx.DiGraph if name == "triadic_census" else nx.Graph)(edges))[:2]


@pytest.mark.parametrize(
    ("name", "kind", "arguments", "reason"),
    [
        ("clustering", nx.Graph, {"weight": 7}, "not int"),
        ("average_clustering", nx.MultiGraph, {"weight": "weight"}, "multigraph"),
        ("clustering", nx.MultiDiGraph, {}, "multigraph"),
        ("square_clustering", nx.DiGraph, {}, "directions"),
        ("core_number", nx.DiGraph, {}, "directions"),
        ("transitivity", nx.DiGraph, {}, "directions"),
        ("transitivity", nx.MultiGraph, {}, "multigraph"),
        ("clustering", nx.MultiGraph, {}, "multigraph"),
        ("generalized_degree", nx.MultiGraph, {}, "multigraph"),
        ("triangles", nx.MultiGraph, {"nodes": [0]}, "chosen nodes"),
    ],
)
def test_what_is_not_done_is_refused(name, kind, arguments, reason):
    graph = kind(oracle.complete(4))
    with pytest.raises(NotImplementedError, match="dasktc"):
        getattr(nx, name)(graph, backend="dasktc", **arguments)
    backend = networkx_backend.backend
    converted = backend.convert_from_nx(graph)
    assert reason in backend.can_run(name, (graph,), arguments)
    with pytest.raises(NotImplementedError, match=reason):  # also where NetworkX did not ask
        getattr(backend, name)(converted, **arguments)


LARGE = [pytest.param(number, id=f"large {type(number).__name__}") for number in (10**400, -Fraction(10**400, 3))]


@pytest.mark.parametrize("weight", ["heavy", None, 1j, float("nan"), float("inf"), *LARGE])
def test_other_weights_than_numbers_are_refused(weight):
    graph = nx.complete_graph(3)
    graph[0][1]["w"] = weight
    with pytest.raises(NotImplementedError, match="dasktc"):
        nx.clustering(graph, weight="w", backend="dasktc")
    with pytest.raises(NotImplementedError, match="numbers as weights"):
        networkx_backend.convert_from_nx(graph, edge_attrs={"w": 1})


def test_users_are_told_why(caplog):
    networkx_backend._say.cache_clear()
    graph = nx.DiGraph([(0, 1), (1, 2), (2, 0)])
    for _ in range(2):
        with pytest.raises(NotImplementedError, match="dasktc"):
            nx.transitivity(graph, backend="dasktc")
    expected = (
        "networkx.transitivity does not run in dasktc: dasktc ignores directions, NetworkX's transitivity does not"
    )
    assert [record.message.partition(": pass")[0] for record in caplog.records if record.name == "dasktc"] == [expected]
    weightless = nx.Graph([(0, 1, {"w": 0}), (1, 2, {"w": 0}), (2, 0, {"w": 0})])
    with pytest.raises(NotImplementedError, match="dasktc"):
        nx.clustering(weightless, weight="w", backend="dasktc")
    assert "networkx.clustering does not run in dasktc: the largest weight of 'w' is 0" in caplog.text


def test_should_run():
    small, large = nx.complete_graph(5), nx.complete_graph(200)
    nx.triangles(small, backend="dasktc")  # this process has compiled code now
    expected = "NetworkX takes about 3e-05 s for 10 edges, dasktc 0.03 s at least"
    assert networkx_backend.should_run("triangles", (small,), {}) == expected
    assert networkx_backend.should_run("triangles", (large,), {}) is True
    assert "neighbours" in networkx_backend.should_run("triangles", (large, 0), {})
    assert "neighbours" in networkx_backend.should_run("triangles", (), {"G": large, "nodes": [0, 1]})
    assert "neighbours" in networkx_backend.should_run("all_triangles", (large, [0]), {})
    assert "neighbours" in networkx_backend.should_run("triadic_census", (large.to_directed(),), {"nodelist": [0]})
    assert networkx_backend.can_run("betweenness_centrality", (large,), {}) == "dasktc has no betweenness_centrality"


@pytest.mark.slow
def test_should_run_in_a_process_that_has_compiled_nothing():
    code = """
import networkx as nx
from dasktc.api import networkx_backend
graph = nx.gnm_random_graph(2000, 100_000, seed=1)
print(networkx_backend.should_run("triangles", (graph,), {}))
nx.triangles(nx.complete_graph(3), backend="dasktc")
print(networkx_backend.should_run("triangles", (graph,), {}))
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == [
        "NetworkX takes about 0.3 s for 100,000 edges, dasktc 2 s to load its compiled code into this process",
        "True",
    ]


def test_a_changed_graph_is_read_again():
    graph = nx.complete_graph(4)
    assert nx.triangles(graph, 0, backend="dasktc") == 3
    assert nx.triangles(graph, 1, backend="dasktc") == 3
    graph.add_edges_from([(0, 4), (1, 4)])
    assert nx.triangles(graph, 0, backend="dasktc") == 4


def test_a_graph_is_prepared_once(monkeypatch):
    graph, calls, prepare = nx.complete_graph(4), [], networkx_backend.prepare
    monkeypatch.setattr(networkx_backend, "prepare", lambda *args, **of: calls.append(of) or prepare(*args, **of))
    assert nx.triangles(graph, 0, backend="dasktc") == 3
    assert nx.transitivity(graph, backend="dasktc") == 1
    assert nx.square_clustering(graph, 0, backend="dasktc") == 1
    assert len(calls) == 1
    for _ in range(2):
        assert nx.clustering(graph, 0, "weight", backend="dasktc") == 1
    assert len(calls) == 2


@pytest.mark.slow
def test_on_the_active_client(client, graph):
    with client.as_current():
        for name in ("triangles", "generalized_degree", "square_clustering"):  # the last in this process
            expected, found = both(name, graph)
            assert found == expected
        expected, found = both("clustering", graph.to_directed())
        assert found == expected
    expected, found = both("transitivity", graph)  # its blocks are on the cluster, the client is not active
    assert found == expected


DECLINED = """
import collections, json, logging, os, re
declined = collections.Counter()
class Heard(logging.Handler):
    def emit(self, record):
        text = record.getMessage()
        if "Falling back" in text or "falling back" in text:
            declined[re.search("call(?: to|ing) '(.*?)'", text)[1]] += 1
log = logging.getLogger("networkx.utils.backends")
log.setLevel(logging.DEBUG)
log.addHandler(Heard())
def pytest_sessionfinish():
    json.dump(declined, open(os.environ["DECLINED"], "w"))
"""


@pytest.mark.slow
def test_networkx_own_tests(tmp_path):
    """Functions that the backend lacks run in NetworkX; calls of others are declined only for a stated reason."""
    (tmp_path / "declined_calls.py").write_text(DECLINED)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = dict(os.environ, NETWORKX_TEST_BACKEND="dasktc", NETWORKX_FALLBACK_TO_NX="True", PYTHONPATH=path)
    environment["DECLINED"] = str(tmp_path / "declined.json")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "declined_calls", "--pyargs"]
    ended = subprocess.run([*command, *OWN_TESTS], capture_output=True, text=True, env=environment, cwd="/")
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-1000:]
    declined = json.loads((tmp_path / "declined.json").read_text())
    assert {name: calls for name, calls in declined.items() if name in FUNCTIONS} == OWN_DECLINED


# a dasktc.Graph is a graph of this backend

HELD = {
    "triangles": nx.triangles,
    "triangles of a node": lambda graph: nx.triangles(graph, next(iter(nodes_of(graph)))),
    "triangles of nodes": lambda graph: nx.triangles(graph, nodes_of(graph)[:3]),
    "clustering": nx.clustering,
    "clustering of nodes": lambda graph: nx.clustering(graph, nodes=nodes_of(graph)[1:4]),
    "average_clustering": nx.average_clustering,
    "square_clustering": nx.square_clustering,
    "transitivity": nx.transitivity,
    "core_number": nx.core_number,
    "generalized_degree": nx.generalized_degree,
    "all_triangles": lambda graph: {frozenset(corners) for corners in nx.all_triangles(graph)},
    "some triangles": lambda graph: {frozenset(corners) for corners in nx.all_triangles(graph, nodes_of(graph)[:2])},
    "k_truss": lambda graph: {frozenset(edge) for edge in nx.k_truss(graph, 4).edges},
    "similar pairs": lambda graph: sorted(nx.jaccard_coefficient(graph, [nodes_of(graph)[:2]])),
    "all pairs": lambda graph: {(*sorted(ends), value) for *ends, value in nx.jaccard_coefficient(graph)},
    "is_directed": nx.is_directed,
    "is_multigraph": lambda graph: graph.is_multigraph(),
}


def nodes_of(graph):
    return sorted(graph) if isinstance(graph, nx.Graph) else graph.triangles(frame="pandas").index.tolist()


@pytest.mark.parametrize("ids", ["int", "text"])
@pytest.mark.parametrize("name", HELD)
def test_functions_take_a_prepared_graph(name, ids):
    graph = nx.gnm_random_graph(30, 140, seed=3)
    if ids == "text":
        graph = nx.relabel_nodes(graph, lambda node: f"v{node:02}")
    held = dasktc.prepare(graph, backend="cpu")
    ask = HELD[name]
    found, expected = ask(held), ask(graph)
    assert found == (pytest.approx(expected) if "clustering" in name else expected)


def test_functions_take_a_prepared_graph_with_weights_and_directions():
    arcs = nx.gnp_random_graph(20, 0.3, seed=2, directed=True)
    held = dasktc.prepare(arcs, directed=True)
    assert nx.is_directed(held)
    assert nx.triadic_census(held) == nx.triadic_census(arcs)
    assert nx.clustering(held) == pytest.approx(nx.clustering(arcs))
    with pytest.raises(nx.NetworkXNotImplemented, match="directed"):
        nx.triangles(held)
    with pytest.raises(NotImplementedError, match="nodelist"):
        networkx_backend.triadic_census(held, [0, 1])
    edges = nx.gnm_random_graph(20, 60, seed=1)
    for number, (_, _, attributes) in enumerate(edges.edges(data=True), 1):
        attributes["w"] = number
    held = dasktc.prepare(edges, weight="w")
    assert nx.clustering(held, weight="w") == pytest.approx(nx.clustering(edges, weight="w"))


def test_a_prepared_graph_on_a_cluster_is_asked_there(client):
    graph = nx.gnm_random_graph(40, 200, seed=5)
    held = dasktc.prepare(graph, client)
    assert nx.triangles(held) == nx.triangles(graph)
    assert nx.generalized_degree(held) == nx.generalized_degree(graph)


def test_functions_that_dasktc_lacks_say_so():
    held = dasktc.prepare(nx.complete_graph(4))
    with pytest.raises(NotImplementedError, match="pagerank"):
        nx.pagerank(held)
    with pytest.raises(NotImplementedError, match="what it was prepared from"):
        networkx_backend.convert_to_nx(held)
