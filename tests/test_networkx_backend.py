"""The NetworkX backend against NetworkX, called as its users call it."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import networkx as nx
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.api import networkx_backend
from dasktc.api.networkx_info import FUNCTIONS, get_info

ALL = sorted(FUNCTIONS)
BY_NODE = ["clustering", "generalized_degree", "triangles"]
CASES = [pytest.param(edges, id=name) for name, edges, _ in oracle.GRAPHS]


def both(name, *args, **kwargs):
    """Call NetworkX and the backend; exceptions are results too."""
    function = getattr(nx, name)
    return [outcome(function, *args, **kwargs), outcome(function, *args, backend="dasktc", **kwargs)]


def outcome(function, *args, **kwargs):
    try:
        found = function(*args, **kwargs)
    except (nx.NetworkXError, ZeroDivisionError, AttributeError) as error:
        return type(error), str(error)
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


@pytest.mark.parametrize("edges", CASES)
@pytest.mark.parametrize("name", ALL)
def test_named_graphs(name, edges):
    expected, found = both(name, nx.Graph(edges))
    assert found == expected


@given(st.one_of(oracle.multigraphs(), oracle.text_multigraphs()), st.sampled_from(ALL))
def test_any_graph(edges, name):
    expected, found = both(name, nx.Graph(edges))
    assert found == expected


@pytest.mark.parametrize("name", ALL)
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
    expected, found = both(name, nx.Graph())
    assert found == expected


def test_multigraph():
    multi = nx.MultiGraph(oracle.messy(oracle.complete(5)))
    assert nx.triangles(multi, backend="dasktc") == nx.triangles(multi) == dict.fromkeys(range(5), 6)


@pytest.mark.parametrize(
    ("name", "kind", "arguments", "reason"),
    [
        ("clustering", nx.Graph, {"weight": "weight"}, "weighted"),
        ("average_clustering", nx.Graph, {"weight": "weight"}, "weighted"),
        ("clustering", nx.DiGraph, {}, "directions"),
        ("average_clustering", nx.DiGraph, {}, "directions"),
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


def test_should_run():
    small, large = nx.complete_graph(5), nx.complete_graph(200)
    assert "fewer than 10,000 edges" in networkx_backend.should_run("triangles", (small,), {})
    assert networkx_backend.should_run("triangles", (large,), {}) is True
    assert "neighbours" in networkx_backend.should_run("triangles", (large, 0), {})
    assert "neighbours" in networkx_backend.should_run("triangles", (), {"G": large, "nodes": [0, 1]})
    assert networkx_backend.can_run("square_clustering", (large,), {}) == "dasktc has no square_clustering"


def test_a_changed_graph_is_read_again():
    graph = nx.complete_graph(4)
    assert nx.triangles(graph, 0, backend="dasktc") == 3
    assert nx.triangles(graph, 1, backend="dasktc") == 3
    graph.add_edges_from([(0, 4), (1, 4)])
    assert nx.triangles(graph, 0, backend="dasktc") == 4


def test_a_graph_is_prepared_once(monkeypatch):
    graph, calls, prepare = nx.complete_graph(4), [], networkx_backend.prepare
    monkeypatch.setattr(networkx_backend, "prepare", lambda *args: calls.append(args) or prepare(*args))
    assert nx.triangles(graph, 0, backend="dasktc") == 3
    assert nx.transitivity(graph, backend="dasktc") == 1
    assert len(calls) == 1


def test_on_the_active_client(client, graph):
    with client.as_current():
        for name in ("triangles", "generalized_degree"):
            expected, found = both(name, graph)
            assert found == expected
    expected, found = both("transitivity", graph)  # its blocks are on the cluster, the client is not active
    assert found == expected


@pytest.mark.slow
def test_networkx_own_tests():
    """What the backend refuses, NetworkX does itself."""
    environment = dict(os.environ, NETWORKX_TEST_BACKEND="dasktc", NETWORKX_FALLBACK_TO_NX="True")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs"]
    found = subprocess.run(
        [*command, "networkx.algorithms.tests.test_cluster"], capture_output=True, text=True, env=environment, cwd="/"
    )
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-1000:]
