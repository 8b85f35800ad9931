"""Answers of a prepared graph, against NetworkX and the oracles, for every scheme, split and order."""

from itertools import combinations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dasktc import Graph
from dasktc.answers import vertex_counts as by_vertex
from dasktc.backends.cpu import visit
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.errors import CountError, InputError
from tests.support import oracle
from tests.support.retuned import retuned
from tests.support.slow_pipeline import REORDERS, prepare, simple, within, without_an_edge

PLANS = [
    dict(partition="whole", splits=1),
    dict(partition="whole", splits=3),
    dict(partition="edges", splits=3),
    dict(partition="hash2d", parts=1),
    dict(partition="hash2d", parts=2, splits=2),
    dict(partition="hash2d", parts=3),
    dict(partition="hash2d", parts=7, splits=1),
]
CASES = [pytest.param(edges, id=name) for name, edges, _ in oracle.GRAPHS]


def supports(frame):
    assert list(frame.columns) == ["src", "dst", "support"]
    assert (frame.src < frame.dst).all()
    found = {frozenset(ends): support for *ends, support in frame.itertuples(index=False)}
    assert len(found) == len(frame)
    return found


def listed(frame):
    assert list(frame.columns) == ["u", "v", "w"]
    assert ((frame.u < frame.v) & (frame.v < frame.w)).all()
    found = {frozenset(row) for row in frame.itertuples(index=False)}
    assert len(found) == len(frame)
    return found


def all_triangles(edges):
    graph = simple(edges)
    return {frozenset((u, v, w)) for u in graph for v, w in combinations(graph[u], 2) if graph.has_edge(v, w)}


def assert_all_measures(edges, **options):
    graph = prepare(edges, **options)
    expected = simple(edges)
    vertices = Graph.triangles(graph)
    assert vertices.name == "triangles"
    assert vertices.dtype == np.int64
    assert vertices.index.is_monotonic_increasing
    assert vertices.to_dict() == oracle.triangles_per_vertex(edges)
    assert supports(Graph.edge_support(graph)) == oracle.support(edges)
    assert listed(graph.triangle_list()) == all_triangles(edges)
    assert Graph.clustering(graph).to_dict() == nx.clustering(expected)
    assert Graph.transitivity(graph) == nx.transitivity(expected)
    if len(expected):
        assert Graph.average_clustering(graph) == pytest.approx(nx.average_clustering(expected), rel=1e-14)


@pytest.mark.parametrize("edges", CASES)
def test_named_graphs(edges):
    assert_all_measures(edges, partition="hash2d", parts=2)


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("reorder", REORDERS)
def test_plans_and_reorders(plan, reorder):
    edges = [*nx.gnm_random_graph(60, 420, seed=5).edges(), (3, 3), (60, 61), (61, 60)]
    assert_all_measures(edges, reorder=reorder, **plan)


options = st.sampled_from(PLANS), st.sampled_from(REORDERS)


@given(oracle.multigraphs() | oracle.text_multigraphs(), *options)
@example([(0, 0)], PLANS[0], "degree")
def test_any_multigraph(edges, plan, reorder):
    assert_all_measures(edges, reorder=reorder, **plan)


def test_results_do_not_depend_on_the_plan():
    edges = list(nx.gnm_random_graph(40, 250, seed=2).edges())
    first, second = prepare(edges, parts=3, reorder="none"), prepare(edges, partition="whole")
    for measure in (Graph.triangles, Graph.clustering):
        pd.testing.assert_series_equal(measure(first), measure(second))
    for measure in (Graph.edge_support, Graph.triangle_list):
        pd.testing.assert_frame_equal(measure(first), measure(second))
    assert Graph.average_clustering(first) == Graph.average_clustering(second)


def test_ids_are_the_callers():
    text = Graph.edge_support(prepare([("b", "a"), ("a", "10"), ("10", "b"), ("9", "a")]))
    assert text.src.dtype == text.dst.dtype == "str"
    assert text.values.tolist() == [["10", "a", 1], ["10", "b", 1], ["9", "a", 0], ["a", "b", 1]]
    far = Graph.triangles(prepare([(-(2**63), 2**63 - 1), (2**63 - 1, 0), (0, -(2**63))]))
    assert far.to_dict() == {-(2**63): 1, 0: 1, 2**63 - 1: 1}


def test_edges_come_in_partitions():
    edges = oracle.complete(9)
    graph = retuned(prepare(edges, parts=2), partition_bytes=7 * 24)
    assert supports(Graph.edge_support(graph)) == oracle.support(edges)


@pytest.mark.parametrize("limit", [0, 1, 5, 1139, 1140, 5000])
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_given_limit_is_kept(limit, plan):
    found = listed(Graph.triangle_list(prepare(oracle.complete(20), **plan), limit))
    assert len(found) == min(limit, 1140)
    assert all(len(triangle) == 3 for triangle in found)


def test_a_list_without_limit_is_complete_or_refused():
    graph = retuned(prepare(oracle.complete(20)), list_limit=1140)
    assert len(graph.triangle_list()) == 1140
    retuned(graph, list_limit=1139)
    with pytest.raises(InputError, match=r"1,140 triangles.*limit=1140"):
        graph.triangle_list()
    with pytest.raises(InputError, match="limit=-1 is below 0"):
        graph.triangle_list(-1)


def test_memory_is_kept_or_refused():
    edges = list(nx.gnm_random_graph(300, 9000, seed=1).edges())
    tight = within(prepare(edges), 50_000)
    for measure in (Graph.triangles, Graph.edge_support):
        with pytest.raises(InputError, match=r"50 kB of one worker.*parts=2"):
            measure(tight)


def test_lost_edges_are_an_error():
    cut = without_an_edge(prepare(list(nx.gnm_random_graph(30, 200, seed=3).edges()), parts=2))
    for measure in (Graph.triangles, Graph.edge_support, Graph.triangle_list):
        with pytest.raises(CountError, match="wedges"):
            measure(cut)


def test_a_list_is_counted_within_the_plans_memory(monkeypatch):
    graph, kept = prepare(oracle.complete(20)), []
    store = type(graph._context.executor.store)
    monkeypatch.setattr(store, "set_task_memory", lambda store, needed, memory: kept.append(needed))
    graph.triangles()
    kept.clear()
    graph.triangle_list()
    assert kept[0] == graph.plan.bytes_per_task


def test_sums_that_cannot_be_are_errors():
    sums = np.array([1, 1, 1])
    assert by_vertex.added_up([sums], [(0, 1)], 3, 1).tolist() == [1, 1, 1]
    with pytest.raises(CountError, match="add up"):
        by_vertex.added_up([sums], [(0, 1)], 3, 2)


def test_pairs_pass_64_bits():
    degree = np.array([2**31 - 1, 2**31 - 2, 2, 1, 0] * 4)
    expected = sum(int(d) * (int(d) - 1) // 2 for d in degree)
    assert by_vertex.pairs_of(degree) == expected
    many = np.full(100, 2**31 - 1)
    assert by_vertex.pairs_of(many) == 100 * (2**31 - 1) * (2**31 - 2) // 2 > 2**63


def test_roles_of_one_block_share_their_support():
    offsets, columns = np.array([0, 0, 1, 3]), np.array([0, 0, 1], dtype="int32")
    offsets.flags.writeable = columns.flags.writeable = False  # as blocks from another worker are
    block, twin = OrientedCSR(offsets, columns), OrientedCSR(offsets.copy(), columns.copy())
    shared, triangles, wedges = visit.support(BlockTask(block, block, block))
    assert shared[0] is shared[1] is shared[2]
    assert (shared[0].tolist(), triangles, wedges) == ([1, 1, 1], 1, 1)
    apart, *_ = visit.support(BlockTask(block, twin, block))
    assert [array.tolist() for array in apart] == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    assert visit.listing(BlockTask(block, twin, twin), 10).tolist() == [[2, 1, 0]]


def test_sums_of_vertices_pass_32_bits():
    block = OrientedCSR(np.array([0, 0, 2]), np.array([0, 1], dtype="int32"))
    sums = np.zeros(2, np.int64)
    visit.add_ends(block, np.full(2, 2**31 - 1, np.int32), sums, sums)
    assert sums.tolist() == [2**31 - 1, 3 * (2**31 - 1)]


ON_A_CLUSTER = [
    dict(partition="whole", splits=3),
    dict(parts=2),
    dict(partition="vertical", parts=2),
    dict(partition="proxy", parts=3),
]


@pytest.mark.slow
@pytest.mark.parametrize("plan", ON_A_CLUSTER[1::2], ids=str)
def test_on_a_cluster(client, plan):
    edges = list(nx.gnm_random_graph(50, 300, seed=7).edges())
    graph = retuned(prepare([(f"v{u}", f"v{v}") for u, v in edges], client, **plan), partition_bytes=100 * 45)
    alone = prepare([(f"v{u}", f"v{v}") for u, v in edges])
    pd.testing.assert_series_equal(Graph.triangles(graph), Graph.triangles(alone))
    pd.testing.assert_series_equal(Graph.clustering(graph), Graph.clustering(alone))
    pd.testing.assert_frame_equal(graph.triangle_list(), Graph.triangle_list(alone))
    assert Graph.transitivity(graph) == Graph.transitivity(alone)
    spread = Graph.edge_support(graph)
    assert spread.npartitions >= 3
    expected = Graph.edge_support(alone)
    assert spread.dtypes.to_dict() == expected.dtypes.to_dict()
    assert client.compute(spread.support.sum()).result() == expected.support.sum()
    found = client.compute(spread).result().sort_values(["src", "dst"], ignore_index=True)
    pd.testing.assert_frame_equal(found, expected)


def test_no_edges_on_a_cluster(client):
    spread = Graph.edge_support(prepare([(1, 1)], client))
    assert client.compute(spread).result().empty
