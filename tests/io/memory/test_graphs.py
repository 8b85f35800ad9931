"""Graph objects of NetworkX and python-igraph as sources."""

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import dasktc
from dasktc.errors import InputError
from tests.support.objects import BIG, PAIRS, one_line, open_object, pairs
from tests.support.oracle import messy, multigraphs, text_multigraphs

GRAPH_TYPES = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


@pytest.mark.parametrize("graph_type", GRAPH_TYPES)
@given(edges=multigraphs())
def test_networkx_has_the_edges_of_the_graph(graph_type, edges):
    graph = graph_type(edges)
    graph.add_node(5)
    source = open_object(graph)
    listed = sorted(map(sorted, graph.edges()))
    assert sorted(map(sorted, pairs(source))) == listed
    assert source.ids == "int"


@pytest.mark.parametrize("graph_type", GRAPH_TYPES)
@given(edges=text_multigraphs())
def test_networkx_with_names(graph_type, edges):
    graph = graph_type(edges)
    source = open_object(graph)
    assert sorted(map(sorted, pairs(source))) == sorted(map(sorted, graph.edges()))
    assert source.ids == ("text" if edges else "int")


@pytest.mark.parametrize("nodes", [[(0, 0), (0, 1), (1, 1)], [1, "1", 2.5], [float("inf"), float("nan"), True]])
def test_networkx_numbers_other_nodes(nodes):
    graph = nx.DiGraph([(nodes[2], nodes[0]), (nodes[0], nodes[1])])
    labels = list(graph)
    source = open_object(graph)
    assert [(labels[u], labels[v]) for u, v in pairs(source)] == list(graph.edges())
    assert [source.labels.of([i])[0] is node for i, node in enumerate(labels)] == [True] * 3
    with pytest.raises(InputError, match="ids='int' takes integers; leave it out") as error:
        open_object(graph, ids="int")
    one_line(error)


def test_networkx_integers_of_other_types_and_sizes():
    assert pairs(open_object(nx.Graph([(np.int32(3), 4)]))) == [(3, 4)]
    assert pairs(open_object(nx.DiGraph([(3, 4)]), ids="text")) == [("3", "4")]
    with pytest.raises(InputError, match=f"row 1 of the NetworkX graph's nodes holds {BIG}"):
        open_object(nx.Graph([(0, BIG)]))


def test_integers_beyond_64_bits_become_text_on_request():
    graph = nx.Graph([(2**70, 1), (1, 2), (2, 2**70)])
    assert int(dasktc.triangle_count(graph, ids="text", threads=1, backend="cpu")) == 1
    named = igraph.Graph(edges=[(0, 1), (1, 2), (2, 0)])
    named.vs["name"] = [2**70, 1, 2]
    assert int(dasktc.triangle_count(named, ids="text", threads=1, backend="cpu")) == 1


def test_networkx_views_and_subclasses():
    class Roads(nx.Graph):
        pass

    graph = Roads(messy([(0, 1), (1, 2), (2, 3)]))
    assert sorted(pairs(open_object(graph.subgraph([1, 2, 3])))) == [(1, 1), (1, 2), (2, 2), (2, 3)]


@pytest.mark.parametrize("directed", [False, True])
def test_igraph(directed):
    graph = igraph.Graph(n=9, edges=PAIRS, directed=directed)
    source = open_object(graph)
    assert source.ids == "int"
    assert sorted(map(sorted, pairs(source))) == sorted(map(sorted, PAIRS))
    graph.vs["name"] = list("abcdefghi")
    named = open_object(graph)
    assert named.ids == "text"
    assert sorted(pairs(named)) == sorted(("abcdefghi"[u], "abcdefghi"[v]) for u, v in pairs(source))
    assert pairs(open_object(graph, ids="int")) == pairs(source)


@pytest.mark.parametrize(
    ("names", "ids"),
    [([30, 10, 20], [10, 20, 30]), ([(0, 1), 2.5, "a"], [(0, 1), 2.5, "a"]), (["b", "a", "c"], ["a", "b", "c"])],
)
def test_names_of_igraph_vertices_are_their_ids(names, ids):
    graph = igraph.Graph(edges=[(0, 1), (1, 2), (2, 0)])
    graph.vs["name"] = names
    assert dasktc.prepare(graph).triangles().index.tolist() == ids


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["a", "a", "b"], "1 repeat another or are no ids of 3"),
        (["a", None, "b"], "1 are missing of 3"),
        ([1.0, float("nan"), 2.0], "1 are missing of 3"),
        ([["a"], ["b"], ["c"]], "3 repeat another or are no ids of 3"),
    ],
)
def test_igraph_names_that_do_not_tell_vertices_apart(names, says, caplog):
    graph = igraph.Graph(edges=[(0, 1), (1, 2), (2, 0)])
    graph.vs["name"] = names
    source = open_object(graph)
    assert sorted(map(sorted, pairs(source))) == [[0, 1], [0, 2], [1, 2]]
    assert source.labels is None
    assert says in caplog.text
    assert "answers have vertex indices" in caplog.text


def test_a_weight_that_no_edge_has_is_said(caplog):
    graph = nx.Graph([(1, 2, {"w": 2.0}), (2, 3), (3, 1)])
    open_object(graph, weight="w")
    assert not caplog.records
    assert open_object(graph, weight="weigth").parts[0].weight.tolist() == [1, 1, 1]
    assert "no edge of the NetworkX graph has an attribute 'weigth': all weights are 1" in caplog.text
