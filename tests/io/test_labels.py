"""Vertices that are neither integers nor text: answers, selections and updates have the caller's own objects."""

from collections import Counter

import networkx as nx
import pandas as pd
import pytest

import dasktc
from dasktc.errors import InputError
from dasktc.options import Method, RunOptions
from tests.support.keywords import keywords

TRIANGLE = [((0, 0), (0, 1)), ((0, 1), (1, 1)), ((1, 1), (0, 0))]
MIXED = nx.Graph([*TRIANGLE, ((1, 1), frozenset({3})), (frozenset({3}), 2.5), (2.5, "a"), ("a", (1, 1)), (7.5, 7.5)])
NODES = [node for node in MIXED if node != 7.5]
"""The nodes with an edge after clean-up, in the graph's order."""
GRID = nx.grid_2d_graph(3, 3)


@pytest.fixture(scope="module")
def graph():
    return dasktc.prepare(MIXED)


def edges_of(frame):
    return {frozenset(pair) for pair in zip(frame["src"], frame["dst"], strict=True)}


def test_answers_by_vertex_have_the_nodes(graph):
    assert graph.triangles().to_dict() == {node: nx.triangles(MIXED)[node] for node in NODES}
    assert graph.measures().index.tolist() == NODES
    assert graph.core_number().to_dict() == {node: 2 for node in NODES}
    assert graph.square_clustering().index.tolist() == NODES
    assert graph.clustering().index.name == "vertex"
    plain = nx.Graph(MIXED)
    plain.remove_node(7.5)
    assert graph.clustering().to_dict() == pytest.approx(nx.clustering(plain))


def test_a_grid_is_not_a_multi_index():
    index = dasktc.prepare(GRID).measures().index
    assert not isinstance(index, pd.MultiIndex)
    assert index.tolist() == list(GRID)


def test_answers_by_edge_and_lists_have_the_nodes(graph):
    assert edges_of(graph.edge_support()) == {frozenset((u, v)) for u, v in MIXED.edges() if u != v}
    assert edges_of(graph.truss(3)) == set(map(frozenset, TRIANGLE))
    assert edges_of(graph.oriented_edges(frame="pandas")) == edges_of(graph.truss())
    assert graph.triangle_list().to_numpy().tolist() == [[(0, 0), (0, 1), (1, 1)]]


def test_selections_are_translated(graph):
    chosen = [2.5, (1, 1), frozenset({3})]
    assert graph.triangles(vertices=chosen).to_dict() == {2.5: 0, (1, 1): 1, frozenset({3}): 0}
    wanted = [((1, 1), (0, 0)), ("a", 2.5)]
    frame = graph.edge_support(edges=wanted)
    assert list(zip(frame["src"], frame["dst"], frame["support"], strict=True)) == [
        ((1, 1), (0, 0), 1),
        ("a", 2.5, 0),
    ]
    assert graph.edge_support(edges=tuple(wanted)).equals(frame)
    assert graph.edge_support(edges=[[(1, 1), "a"], [(0, 0), 2.5]]).equals(frame)
    every = graph.edge_support()
    assert graph.edge_support(edges=every).equals(every)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (lambda graph: graph.triangles(vertices=[(0, 0), (9, 9), (8, 8)]), r"2 ids .* for example \(9, 9\)"),
        (lambda graph: graph.triangles(vertices=[7.5]), "1 id .* for example 7.5"),
        (lambda graph: graph.triangles(vertices=[[1]]), "its type list cannot be hashed"),
        (lambda graph: graph.edge_support(edges=[((0, 0), 2.5)]), r"1 edge .* for example \(\(0, 0\), 2.5\)"),
        (lambda graph: graph.edge_support(edges=[1, 2]), "edges holds 1 where a pair of vertices is expected"),
        (lambda graph: graph.edge_support(edges=5), "edges holds 5 where a pair"),
        (lambda graph: graph.edge_support(edges=[[1, 2, 3], [4, 5]]), "column 0 of the pair for edges has 3 rows"),
        (lambda graph: graph.edge_support(frame="dask"), "frame='dask' .* float, frozenset, str, tuple"),
        (lambda graph: graph.update(add=[["x", "y"], ["z"]]), "column 0 of the pair for add has 2 rows"),
        (lambda graph: graph.update(add=["ab"]), "add holds 'ab' where a pair"),
        (lambda graph: graph.update(add=[((0, 0), None)]), "add holds None where a vertex is expected"),
        (
            lambda graph: graph.save("anywhere"),
            "a saved graph holds integers or text; prepare the graph with ids='text'",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(graph, question, says):
    with pytest.raises(InputError, match=says) as error:
        question(graph)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    assert "; " in str(error.value).partition(": ")[2]


def named_ends(pairs):
    """A table whose ends stand behind another column."""
    return pd.DataFrame(pairs, columns=["src", "dst"], dtype=object).assign(w=1)[["w", "src", "dst"]]


@pytest.mark.parametrize("form", [list, tuple, nx.Graph, lambda pairs: pd.DataFrame(pairs, dtype=object), named_ends])
def test_an_update_takes_and_gives_nodes(form):
    graph = dasktc.prepare(MIXED)
    add = [((0, 0), 2.5), ((5, 5), (0, 0)), ((5, 5), 2.5)]
    remove = [((0, 0), (0, 1)), ((6, 6), (0, 0))]
    change = graph.update(add=form(add), remove=form(remove))
    changed = nx.Graph(MIXED)
    changed.add_edges_from(add)
    changed.remove_edge(*remove[0])
    changed.remove_node(7.5)
    expected = nx.triangles(changed)
    assert change.graph.triangles().to_dict() == expected
    before = Counter(nx.triangles(MIXED))
    assert change.vertices.to_dict() == {v: n - before[v] for v, n in expected.items() if n != before[v]}
    assert (change.triangles, change.added, change.removed) == (0, 3, 1)
    again = change.graph.update(remove=[((5, 5), (0, 0))])
    assert again.vertices.to_dict() == {(0, 0): -1, 2.5: -1, (5, 5): -1}
    assert graph.triangles().index.tolist() == NODES


def test_files_have_the_text_of_the_nodes(tmp_path):
    outputs = {"per_vertex": tmp_path / "v.parquet", "per_edge": tmp_path / "e.csv", "report": tmp_path / "r.html"}
    dasktc.triangle_count(MIXED, **keywords(**outputs))
    written = pd.read_parquet(outputs["per_vertex"])
    assert dict(zip(written["vertex"], written["triangles"], strict=True)) == {
        str(node): nx.triangles(MIXED)[node] for node in NODES
    }
    assert edges_of(pd.read_csv(outputs["per_edge"], dtype=str)) == {
        frozenset((str(u), str(v))) for u, v in MIXED.edges() if u != v
    }
    assert "<td>(0, 0)</td>" in outputs["report"].read_text()
    assert dasktc.prepare(MIXED, ids="text").triangles().to_dict() == {
        str(node): nx.triangles(MIXED)[node] for node in NODES
    }


def test_nodes_with_the_same_text_are_not_written(tmp_path):
    graph = nx.Graph([(1, "1"), ("1", 2), (2, 1)])
    assert dasktc.prepare(graph).triangles().to_dict() == {1: 1, "1": 1, 2: 1}
    with pytest.raises(InputError, match="the vertices 1 and '1', of types int and str, have the same text"):
        dasktc.triangle_count(graph, per_vertex=tmp_path / "v.csv")
    with pytest.raises(InputError, match="have the same text"):
        dasktc.prepare(graph, ids="text")


def test_differing_weights_name_the_nodes():
    graph = nx.MultiGraph([((0, 0), (0, 1), {"w": 1}), ((0, 0), (0, 1), {"w": 2})])
    with pytest.raises(InputError, match=r"\(0, 0\) and \(0, 1\)"):
        dasktc.prepare(graph, weight="w")


@pytest.mark.parametrize("distribute", ["never", "always"])
def test_workers_see_positions_alone(client, distribute):
    """The labels cannot be pickled, so no worker has them."""

    class Node:
        def __reduce__(self):
            raise AssertionError("a label was pickled")

    a, b, c = Node(), Node(), Node()
    source = nx.Graph([(a, b), (b, c), (c, a)])
    assert int(dasktc.triangle_count(source, client, run=RunOptions(distribute=distribute))) == 1
    graph = dasktc.prepare(source, client, run=RunOptions(distribute=distribute))
    assert graph.triangles().to_dict() == {a: 1, b: 1, c: 1}
    assert edges_of(graph.edge_support()) == {frozenset((a, b)), frozenset((b, c)), frozenset((c, a))}
    assert graph.triangles(vertices=[b]).index.tolist() == [b]


def test_vertices_in_shards(tmp_path):
    graph = dasktc.prepare(
        GRID, memory="16MiB", threads=1, method=Method(partition="hash2d", parts=2), run=RunOptions(work_dir=tmp_path)
    )
    assert graph.measures()["degree"].to_dict() == dict(GRID.degree())


def test_the_backend_of_networkx_returns_the_nodes():
    assert nx.triangles(MIXED, backend="dasktc") == nx.triangles(MIXED)
