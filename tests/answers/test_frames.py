"""Answers as pandas, cuDF and Dask frames, for selected vertices and edges; each graph is counted only once."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import contextmanager
from itertools import product
from types import ModuleType
from unittest import mock

import dask
import dask.dataframe as dd
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dasktc
from dasktc.answers import frames, vertex_counts
from dasktc.answers import triangle_list as lists
from dasktc.backends.cpu.edge_columns import ascending
from dasktc.bench import questions
from dasktc.cli.main import main
from dasktc.counting import counted as kept
from dasktc.errors import CountError, InputError
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.executors.memory_budget import within_memory
from dasktc.executors.offers import memory_of
from dasktc.options import Method
from dasktc.pipeline.planes import answers as planes_answers
from tests.support import oracle
from tests.support.emulation import cudf_strict, cupy_strict
from tests.support.keywords import keywords
from tests.support.processes import until
from tests.support.retuned import retuned
from tests.support.slow_pipeline import EVERY_REORDER, by_degree, random_edges, skewed_edges, source_of, tuned
from tests.support.tiers import some

EDGES = skewed_edges(60, 400, 3)
NAMED = [(f"v{u}", f"v{v}") for u, v in EDGES]
SCHEMES = [
    {},
    {"partition": "edges", "splits": 3},
    {"partition": "hash2d", "parts": 3},
    {"partition": "proxy", "parts": 3},
    {"partition": "vertical", "parts": 2},
]
PER_VERTEX = ["triangles", "clustering", "measures"]
ids_and_schemes = pytest.mark.parametrize(
    ("edges", "options"),
    some(product([EDGES, NAMED], SCHEMES), lambda edges, options: (edges is NAMED) == SCHEMES.index(options) % 2),
    ids=lambda value: str(value) if isinstance(value, dict) else "int" if value is EDGES else "text",
)
"""In the default tier every other scheme has integer ids, and those between have text."""


def prepare(edges=EDGES, **options):
    ids = "text" if edges and isinstance(edges[0][0], str) else "int"
    return dasktc.prepare(source_of(edges, ids, parts=2), **keywords(**{"backend": "cpu", **options}))


@contextmanager
def small_partitions(graph, rows):
    context = graph._context
    retuned(graph, partition_bytes=24 * rows)
    yield
    graph._context = context


def assert_same(found, expected):
    assert type(found) is type(expected)
    equal = pd.testing.assert_series_equal if isinstance(expected, pd.Series) else pd.testing.assert_frame_equal
    equal(found, expected)


# what is given


def test_measures_are_those_of_networkx():
    simple = nx.Graph([tuple(edge) for edge in oracle.clean(EDGES)])
    found = prepare().measures()
    assert list(found.columns) == ["degree", "triangles", "clustering"]
    assert (found.index.name, found.index.is_monotonic_increasing) == ("vertex", True)
    assert found.degree.to_dict() == dict(simple.degree())
    assert found.triangles.to_dict() == nx.triangles(simple)
    assert found.clustering.to_dict() == nx.clustering(simple)


@ids_and_schemes
def test_dask_frames_are_the_pandas_frames_in_known_order(edges, options):
    graph, whole = prepare(edges, **options), prepare(edges)
    with small_partitions(graph, 30):
        for name in [*PER_VERTEX, "edge_support", "triangle_list"]:
            found, expected = getattr(graph, name)(frame="dask"), getattr(whole, name)()
            assert found.npartitions > 1
            assert found.known_divisions
            assert_same(found.compute(scheduler="sync"), expected)
            rows = [len(part) for part in dask.compute(*found.to_delayed(), scheduler="sync")]
            assert max(rows) <= 2 * max(1, len(expected) // found.npartitions) + 60
            assert found._meta.dtypes.equals(expected.dtypes) if expected.ndim == 2 else found.dtype == expected.dtype


def test_a_partition_is_found_by_its_divisions():
    found = retuned(prepare(), partition_bytes=10 * 16).triangles(frame="dask")
    expected = prepare().triangles()
    wanted = expected.index[37]
    assert found.loc[wanted].compute(scheduler="sync").item() == expected[wanted]


@pytest.mark.parametrize("frame", ["pandas", "dask"])
def test_a_graph_without_edges(frame):
    graph = prepare([(1, 1)])
    for name in [*PER_VERTEX, "edge_support", "triangle_list"]:
        found = getattr(graph, name)(frame=frame)
        assert len(found.compute(scheduler="sync") if frame == "dask" else found) == 0
    assert (graph.average_clustering(), graph.transitivity()) == (0.0, 0.0)
    assert len(graph.triangles(vertices=[])) == len(graph.edge_support(edges=[])) == 0
    with pytest.raises(InputError, match="1 id that is not in the graph, for example 1"):
        graph.triangles(vertices=[1])


def test_a_dask_source_is_answered_in_dask():
    source = dd.from_pandas(pd.DataFrame(EDGES, columns=["a", "b"]), npartitions=3)
    graph, expected = dasktc.prepare(source, backend="cpu"), prepare()
    for name in [*PER_VERTEX, "edge_support", "triangle_list"]:
        found = getattr(graph, name)()
        assert isinstance(found, dd.DataFrame | dd.Series)
        assert_same(found.compute(scheduler="sync"), getattr(expected, name)())
    assert graph.average_clustering() == expected.average_clustering()
    table = pa.table({"a": [0, 1, 2], "b": [1, 2, 0]})
    assert isinstance(dasktc.prepare(table, backend="cpu").edge_support(), pd.DataFrame)


def test_frames_that_cannot_be_are_refused():
    graph = prepare()
    for frame in ("spark", 3, "", ["dask"]):
        with pytest.raises(InputError, match=r"pandas, polars, cudf, dask"):
            graph.triangles(frame=frame)
    with pytest.raises(InputError, match="backend cpu: its results are on the host"):
        graph.edge_support(frame="cudf")


@pytest.mark.parametrize("options", [{"partition": "whole"}, {"partition": "hash2d", "parts": 2}], ids=str)
def test_within_a_budget_a_dask_frame_is_not_refused(tmp_path, options):
    """Its partitions are in files and need not fit memory together; a whole frame is refused."""
    expected = prepare()
    graph = prepare(memory="17MB", work_dir=tmp_path, **options)
    graph._context.executor.store.memory_per_call = 100 * graph.edges - 1
    with pytest.raises(InputError, match="frame='dask', write it with per_edge"):
        graph.edge_support(frame="pandas")
    assert graph._context.counted.by_edge is None, "refused before anything is counted"
    found = graph.edge_support(frame="dask")
    assert_same(found.compute(scheduler="sync"), expected.edge_support())
    assert_same(graph.triangles(frame="dask").compute(scheduler="sync"), expected.triangles())
    assert_same(graph.triangle_list(frame="dask").compute(scheduler="sync"), expected.triangle_list())
    graph.close()


@pytest.mark.slow
def test_on_a_cluster(client):
    graph, alone = prepare(NAMED, client=client, partition="hash2d", parts=2), prepare(NAMED)
    with small_partitions(graph, 40):
        spread = graph.edge_support()
        listed = graph.triangle_list(frame="dask")
    assert spread.npartitions > 10
    assert spread.known_divisions
    expected = alone.edge_support()
    assert_same(client.compute(spread).result(), expected)
    assert_same(client.compute(listed).result(), alone.triangle_list())
    assert_same(graph.edge_support(frame="pandas"), expected)
    assert_same(graph.measures(), alone.measures())
    series = graph.triangles(frame="dask")
    assert series.known_divisions
    assert_same(client.compute(series).result(), alone.triangles())
    some = expected.iloc[[7, 2]].reset_index(drop=True)
    assert_same(graph.edge_support(frame="pandas", edges=some), some)
    assert graph.triangles(vertices=["v3"]).to_dict() == {"v3": alone.triangles()["v3"]}


def test_a_graph_of_this_process_beside_a_client(client, tmp_path):
    """Workers compute partitions in memory; within a budget partitions are in files of this process."""
    graph = prepare(threads=1)
    assert_same(client.compute(graph.edge_support(frame="dask")).result(), graph.edge_support())
    graph = prepare(threads=1, memory="17MB", work_dir=tmp_path)
    with pytest.raises(Exception, match="serialize") as error:
        client.compute(graph.edge_support(frame="dask")).result()
    found = error.value
    while found is not None and not isinstance(found, InputError):
        found = found.__cause__ or found.__context__
    assert "compute with scheduler='threads'" in str(found)
    graph.close()


# of some vertices and edges


@given(
    edges=st.one_of(oracle.multigraphs(), oracle.text_multigraphs()), options=st.sampled_from(SCHEMES), data=st.data()
)
@example(edges=EDGES, options=SCHEMES[3], data=None)
def test_any_vertices_and_edges(edges, options, data):
    graph, triangles, support = prepare(edges, **options), oracle.triangles_per_vertex(edges), oracle.support(edges)
    all_edges = [tuple(edge) for edge in support]
    vertices, asked = list(triangles)[::-1], [edge[::-1] for edge in all_edges]
    if data is not None and vertices:
        vertices = data.draw(st.lists(st.sampled_from(vertices)))
        asked = data.draw(st.lists(st.sampled_from(all_edges)))
    found = graph.triangles(vertices=vertices)
    assert list(found.items()) == [(v, triangles[v]) for v in vertices]
    rows = list(graph.edge_support(edges=asked).itertuples(index=False, name=None))
    assert rows == [(*edge, support[frozenset(edge)]) for edge in asked]


@pytest.mark.parametrize(
    "asked",
    [
        lambda rows: rows,
        lambda rows: rows[["src", "dst"]].to_numpy(),
        lambda rows: list(rows[["dst", "src"]].itertuples(index=False)),
        lambda rows: pa.table(rows),
        lambda rows: tuple(map(tuple, rows[["src", "dst"]].to_numpy()[:2].tolist())),  # two edges, no two columns
        lambda rows: tuple(rows[["src", "dst"]].to_numpy().T),
        lambda rows: tuple(rows[["src", "dst"]].to_numpy().T.tolist()),
        lambda rows: rows[["src", "dst"]].to_numpy().T.tolist(),
        lambda rows: set(map(tuple, rows[["src", "dst"]].to_numpy().tolist())),
        lambda rows: map(frozenset, rows[["src", "dst"]].to_numpy().tolist()),
        lambda rows: nx.from_pandas_edgelist(rows, "src", "dst"),
    ],
)
def test_edges_are_asked_for_in_any_form(asked):
    graph = prepare()
    rows = graph.edge_support().iloc[[5, 90, 3]]
    found = graph.edge_support(edges=asked(rows))
    rows = rows.iloc[: len(found)]
    assert len(found) in (2, 3)
    assert {frozenset(row[:2]): row[2] for row in found.itertuples(index=False)} == {
        frozenset(row[:2]): row[2] for row in rows.itertuples(index=False)
    }


@pytest.mark.parametrize("vertices", [np.array([5, 3]), pd.Series([5, 3]), pa.array([5, 3]), (5, 3), pd.Index([5, 3])])
def test_vertices_are_asked_for_in_any_form(vertices):
    graph = prepare()
    expected = graph.measures().loc[[5, 3]]
    assert_same(graph.measures(vertices=vertices), expected)
    assert_same(graph.measures(vertices=vertices, frame="dask").compute(scheduler="sync"), expected)
    assert_same(graph.clustering(vertices=vertices), expected.clustering)


@pytest.mark.parametrize(
    ("question", "asked", "why"),
    [
        ("triangles", [3, 10**9, 7, -1], "vertices has 2 ids that are not in the graph, for example 1000000000"),
        ("triangles", ["3"], "ids='int' takes integers; .* or read the edges with ids='text'"),
        ("triangles", "3", "is no list of ids"),
        ("triangles", 3, "is no list of ids"),
        ("triangles", [0.5], "fraction"),
        ("edge_support", [(10**9, 3)], r"edges has 1 edge that is not in the graph, for example \(1000000000, 3\)"),
        ("edge_support", [(3, 3), (3, 3)], r"edges has 2 edges that are not in the graph, for example \(3, 3\)"),
        ("edge_support", [3, 4], "edges holds 3 where a pair of vertices is expected"),
        ("edge_support", "ab", "edges holds 'ab' where a pair"),
        ("edge_support", 7, "edges holds 7 where a pair"),
        ("edge_support", np.zeros((2, 3)), r"edges holds array\(\[0., 0., 0.\]\) where a pair"),
        ("edge_support", ([3, 4], [5]), "column 0 of the pair for edges has 2 rows, column 1 .* 1: .* equal length"),
    ],
)
def test_what_is_not_there_is_refused(question, asked, why):
    with pytest.raises(InputError, match=why) as error:
        getattr(prepare(), question)(**{"edges" if question == "edge_support" else "vertices": asked})
    assert "\n" not in str(error.value)


# counted once


@pytest.fixture
def counts(monkeypatch):
    """Number of calls of each way of counting."""
    taken = []
    for name in ("vertex_supports", "edge_supports", "count_triangles"):
        function = getattr(vertex_counts, name)
        monkeypatch.setattr(
            vertex_counts, name, lambda *given, name=name, of=function: taken.append(name) or of(*given)
        )
    return taken


@pytest.mark.parametrize("options", [*SCHEMES, *({"memory": "64MB", **scheme} for scheme in SCHEMES)], ids=str)
def test_what_was_counted_is_not_counted_again(counts, options):
    graph = prepare(**options)
    graph.triangles()
    for name in (*PER_VERTEX, "transitivity", "average_clustering"):
        getattr(graph, name)()
    assert counts == ["vertex_supports"]
    graph.edge_support()
    graph.edge_support(edges=[])
    assert counts == ["vertex_supports", "edge_supports"]
    other = prepare(**options)
    other.edge_support()
    assert_same(other.triangles(), graph.triangles())
    assert other.transitivity() == graph.transitivity()
    assert counts == ["vertex_supports", "edge_supports", "edge_supports"]


def test_a_count_always_counts_and_is_remembered(counts, monkeypatch):
    from dasktc.api import graph as api

    counted = []
    count = api.count
    monkeypatch.setattr(api, "count", lambda *given: counted.append(1) or count(*given))
    graph = prepare()
    assert int(graph.triangle_count()) == int(graph.triangle_count(verify=1.0)) == oracle.triangles(EDGES)
    assert len(counted) == 2
    graph.transitivity()
    assert counts == []
    graph.triangles()
    graph.triangle_count()
    assert len(counted) == 3
    other = prepare(partition="whole")
    assert int(other.triangle_count(kernel="merge")) == oracle.triangles(EDGES)
    assert other.cliques(3) == other.estimate(error=1e-6).value == oracle.triangles(EDGES)
    assert (len(counted), counts) == (4, ["vertex_supports"])


def test_threads_that_ask_at_once_count_once(counts):
    graph, found, barrier = prepare(), [], threading.Barrier(6)

    def ask(name):
        barrier.wait()
        found.append(getattr(graph, name)())

    asking = [threading.Thread(target=ask, args=(name,)) for name in 2 * PER_VERTEX]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert counts == ["vertex_supports"]
    assert len(found) == 6


def test_an_interrupted_question_leaves_nothing_behind(counts, monkeypatch):
    graph = prepare()
    with monkeypatch.context() as patch:
        patch.setattr(vertex_counts, "vertex_supports", mock.Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            graph.triangles()
    assert graph._context.counted.by_vertex is None
    assert graph.triangles().sum() == 3 * oracle.triangles(EDGES)


def test_counts_that_differ_are_an_error():
    counted = kept.Counted()
    assert counted.agree(7) == counted.agree(7) == 7
    with pytest.raises(CountError, match=r"8 triangles were counted, but 7 earlier"):
        counted.agree(8)


def test_what_is_kept_is_within_the_budget(tmp_path):
    """Kept results belong to the store, which moves them to files when a task needs the memory."""
    with within_memory(LocalExecutor(), "16MB", tmp_path) as executor:
        from dasktc.api.count import build
        from dasktc.options import Options

        executor.store._limit = 2_000
        graph = build(executor, source_of(EDGES, parts=2), Options(memory="16MB", backend="cpu"))
        expected = graph.edge_support()
        by_vertex = prepare().triangles()
        with mock.patch.object(vertex_counts, "vertex_supports") as again:
            assert_same(graph.triangles(), by_vertex)
        assert not again.called
        assert executor.store._resident() <= 2_000
        executor.store.set_task_memory(memory_of(executor))
        assert executor.store._resident() == 0
        with mock.patch.object(vertex_counts, "edge_supports") as again:
            assert_same(graph.edge_support(), expected)
        assert not again.called


def test_a_large_result_is_kept_only_where_there_is_room(counts, monkeypatch):
    graph = prepare()
    monkeypatch.setattr(planes_answers, "memory_of", lambda *given: 8 * 4 * graph.edges - 1)
    graph.edge_support()
    graph.edge_support()
    graph.triangles()
    assert counts == ["edge_supports", "edge_supports", "vertex_supports"]


@pytest.mark.slow
def test_what_a_dead_worker_had_is_made_again(client):
    graph = prepare(client=client, partition="hash2d", parts=2)
    expected, supports = graph.triangles(), graph.edge_support(frame="pandas")
    for _ in range(2):
        held = client.who_has([graph._context.counted.by_vertex.whole.future])
        (holder, *_) = next(iter(held.values()))
        pid = client.run(os.getpid)[holder]
        os.kill(pid, signal.SIGKILL)
        assert_same(graph.triangles(), expected)
        assert_same(graph.clustering(), prepare().clustering())
        assert_same(graph.edge_support(frame="pandas"), supports)


# lists


@pytest.mark.parametrize("options", SCHEMES, ids=str)
def test_a_short_list_counts_nothing(options, monkeypatch):
    graph, every = prepare(**options), prepare().triangle_list()
    with monkeypatch.context() as patch:
        patch.setattr(lists, "count_jobs", mock.Mock(side_effect=AssertionError))
        found = graph.triangle_list(3)
        assert len(graph.triangle_list(0)) == 0
    assert len(found.merge(every)) == len(found) == 3
    assert_same(found, graph.triangle_list(3))
    assert_same(retuned(graph, probe_limit=1).triangle_list(len(every)), every)


@pytest.mark.parametrize("options", SCHEMES, ids=str)
def test_a_short_list_of_hardly_any_edges(options):
    """Blocks may have no rows at all."""
    for edges in ([(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]):
        assert len(prepare(edges, **options).triangle_list(2)) == oracle.triangles(edges)


def test_a_long_list_is_given_in_dask():
    graph = retuned(prepare(), list_limit=10)
    with pytest.raises(InputError, match="or take frame='dask'"):
        graph.triangle_list()
    assert len(graph.triangle_list(frame="dask").compute(scheduler="sync")) == oracle.triangles(EDGES)


# the oriented edges


def assert_oriented(frame, graph, edges):
    """Check that every edge occurs once, in ascending order, and directed as in the graph's wedges and triangles."""
    rows = list(frame.itertuples(index=False, name=None))
    assert list(frame.columns) == ["src", "dst"]
    assert list(frame.index) == list(range(len(rows)))
    assert rows == sorted(rows)
    assert sorted(tuple(sorted(row)) for row in rows) == sorted(tuple(sorted(edge)) for edge in oracle.clean(edges))
    targets = {u: {v for source, v in rows if source == u} for u, _ in rows}
    assert sum(len(targets.get(v, ())) for _, v in rows) == graph._context.prepared.wedges
    assert sum(len(targets[u] & targets.get(v, set())) for u, v in rows) == oracle.triangles(edges)


@ids_and_schemes
def test_oriented_edges_are_a_dask_frame(edges, options):
    graph = prepare(edges, **options)
    with small_partitions(graph, 30):
        found = graph.oriented_edges()
    assert isinstance(found, dd.DataFrame)
    assert found.npartitions > 1
    assert found.known_divisions
    whole = found.compute(scheduler="sync")
    assert_oriented(whole, graph, edges)
    assert found._meta.dtypes.equals(whole.dtypes)
    assert_same(graph.oriented_edges(frame="pandas"), whole)


@ids_and_schemes
def test_the_edge_list_has_every_edge_once(edges, options):
    """Ascending, the smaller end first, without loops."""
    graph = prepare([*edges, edges[0][::-1], (edges[0][0],) * 2], **options)
    with small_partitions(graph, 30):
        found = graph.edge_list()
    assert isinstance(found, dd.DataFrame)
    assert found.npartitions > 1
    whole = found.compute(scheduler="sync")
    assert list(whole.itertuples(index=False, name=None)) == sorted(tuple(sorted(edge)) for edge in oracle.clean(edges))
    assert list(whole.index) == list(range(len(whole)))
    assert_same(graph.edge_list(frame="pandas"), whole)


@pytest.mark.parametrize("reorder", EVERY_REORDER)
def test_oriented_edges_of_every_order(reorder):
    graph = prepare(reorder=reorder)
    assert_oriented(graph.oriented_edges().compute(scheduler="sync"), graph, EDGES)


def test_in_degree_order_edges_point_to_ends_of_higher_degree():
    graph = prepare(partition="hash2d", parts=2)
    degree = graph.measures().degree
    found = graph.oriented_edges(frame="pandas")
    assert (degree[found.src].to_numpy() <= degree[found.dst].to_numpy()).all()


@pytest.mark.parametrize("edges", [[], [(1, 1)]])
def test_a_graph_without_edges_has_no_oriented_edge(edges):
    found = prepare(edges).oriented_edges().compute(scheduler="sync")
    assert found.to_dict("list") == {"src": [], "dst": []}


@pytest.mark.parametrize("edges", [EDGES, NAMED], ids=["int", "text"])
def test_oriented_edges_of_vertices_in_shards(edges):
    with by_degree():
        expected = prepare(edges).oriented_edges(frame="pandas")
    with tuned(least_shards=3):
        graph = retuned(prepare(edges), partition_bytes=30 * 24)
        assert graph.plan.shards == 3
        assert_same(graph.oriented_edges().compute(scheduler="sync"), expected)
        assert graph.edge_support(frame="dask").compute(scheduler="sync").equals(prepare(edges).edge_support())


def test_oriented_edges_out_of_core(tmp_path):
    with prepare(memory="17MB", work_dir=tmp_path, partition="hash2d", parts=2) as graph:
        with small_partitions(graph, 30):
            found = graph.oriented_edges()
        assert_oriented(found.compute(scheduler="sync"), graph, EDGES)
        graph._context.executor.store.memory_per_call = 100 * graph.edges - 1
        with pytest.raises(InputError, match="frame='dask'"):
            graph.oriented_edges(frame="pandas")


def test_oriented_edges_stay_on_the_workers(client, monkeypatch):
    graph = prepare(client=client, distribute="always")
    expected = prepare().oriented_edges(frame="pandas")
    workers = planes_answers.WorkersAnswers
    values, held = workers.values, []

    def watched(answers, handles):
        held.extend(futures := values(answers, handles))
        return futures

    monkeypatch.setattr(workers, "values", watched)
    with small_partitions(graph, 40):
        found = graph.oriented_edges()
    assert len(held) == found.npartitions > 5
    until(lambda: all(client.who_has(held).values()))  # before anybody computes
    assert_same(client.compute(found).result(), expected)
    assert_same(graph.oriented_edges(frame="pandas"), expected)


def test_no_oriented_edge_goes_through_the_client(client, monkeypatch):
    edges = random_edges(3000, 20_000, 5)
    graph, gather, gathered = prepare(edges, client=client, distribute="always"), DaskExecutor.gather, []

    def watched(executor, handles):
        gathered.extend(values := gather(executor, handles))
        return values

    monkeypatch.setattr(DaskExecutor, "gather", watched)
    with small_partitions(graph, 5000):
        assert graph.oriented_edges().npartitions > 2
    assert gathered, "sizes of partitions, and a sample of keys"
    assert not any(hasattr(value, "columns") for value in gathered)
    assert sum(getattr(value, "size", 1) for value in gathered) < graph.edges // 20


# the order of edges


@given(
    st.lists(st.tuples(st.integers(0, 2**31 - 2), st.integers(0, 2**31 - 2), st.integers(0, 2**31 - 1)), max_size=60)
)
@example([(5, 6, 3)] * 3000)
def test_edges_of_any_ids_ascend(rows):
    keys = [(min(u, v), max(u, v), value) for u, v, value in rows]
    edges = np.array([[u << 32 | v for u, v, _ in keys], [value for *_, value in keys]], np.int64).reshape(2, -1)
    edges.flags.writeable = False
    high, low, values = (of.tolist() for of in ascending(edges))
    assert list(zip(high, low, strict=True)) == sorted((u, v) for u, v, _ in keys)
    assert sorted(zip(high, low, values, strict=True)) == sorted(keys)


# on a device


@ids_and_schemes
def test_cudf_frames_are_the_pandas_frames(emulated, edges, options):
    graph, expected = prepare(edges, backend="cuda", **options), prepare(edges)
    for name in [*PER_VERTEX, "edge_support", "triangle_list"]:
        found = getattr(graph, name)(frame="cudf")
        assert isinstance(found, cudf_strict.DataFrame | cudf_strict.Series)
        assert_same(found.to_pandas(), getattr(expected, name)())
        assert_same(getattr(graph, name)(), getattr(expected, name)())
        with small_partitions(graph, 30):
            assert_same(getattr(graph, name)(frame="dask").compute(scheduler="sync"), getattr(expected, name)())
    rows = expected.edge_support().iloc[[4, 1]].reset_index(drop=True)
    assert_same(graph.edge_support(frame="cudf", edges=rows).to_pandas(), rows)
    assert graph.average_clustering() == pytest.approx(expected.average_clustering(), rel=1e-14)


@pytest.mark.parametrize("edges", [EDGES, NAMED], ids=["int", "text"])
def test_cudf_frames_within_a_budget(emulated, edges, tmp_path):
    graph, expected = prepare(edges, backend="cuda", memory="20MB", work_dir=tmp_path), prepare(edges)
    for name in [*PER_VERTEX, "edge_support", "triangle_list"]:
        assert_same(getattr(graph, name)(frame="cudf").to_pandas(), getattr(expected, name)())
        assert_same(getattr(graph, name)(frame="dask").compute(scheduler="sync"), getattr(expected, name)())
    graph.close()


@ids_and_schemes
def test_oriented_edges_of_a_device(emulated, monkeypatch, edges, options):
    graph = prepare(edges, backend="cuda", **options)
    expected = graph.oriented_edges(frame="pandas")
    assert_oriented(expected, graph, edges)  # a device may direct edges by rows, which repeat here
    found = graph.oriented_edges(frame="cudf")
    assert isinstance(found, cudf_strict.DataFrame)
    assert_same(found.to_pandas(), expected)
    monkeypatch.setitem(sys.modules, "dask_cudf", ModuleType("dask_cudf"))  # Dask itself knows no emulated frames
    monkeypatch.setattr(frames, "spread", lambda graph, parts, meta, divisions: (graph.executor.gather(parts), meta))
    with small_partitions(graph, 30):
        (parts, meta), (cleaned, _) = graph.oriented_edges(), graph.edge_list()
    assert len(parts) > 1
    assert all(isinstance(part, cudf_strict.DataFrame) for part in [*parts, *cleaned, meta])
    assert_same(pd.concat([part.to_pandas() for part in parts]), expected)
    assert_same(pd.concat([part.to_pandas() for part in cleaned]), prepare(edges).edge_list(frame="pandas"))


@pytest.mark.parametrize(
    ("build", "command"),
    [
        ("cudf-cu13", "pip install dask-cudf-cu13"),
        ("cudf-cu12", "pip install dask-cudf-cu12"),
        ("cudf", "conda install -c rapidsai dask-cudf"),
        (None, "pip install dask-cudf-cu13"),
    ],
)
def test_dask_frames_of_a_device_without_dask_cudf_are_refused(emulated, monkeypatch, build, command):
    """They would be pandas, silently, or fail in Dask's code."""
    monkeypatch.setitem(sys.modules, "dask_cudf", None)
    monkeypatch.setattr(frames, "installed", lambda name: "26.10" if name == build else None)
    graph = prepare(backend="cuda")
    with pytest.raises(InputError, match=f"dask_cudf cannot be imported .*; {command}, or take frame='pandas'"):
        graph.oriented_edges()
    with (
        dask.config.set({"dataframe.backend": "cudf"}),
        pytest.raises(InputError, match=f"dask_cudf cannot be imported .*; {command}"),
    ):
        graph.triangles(frame="dask")
    assert_oriented(graph.oriented_edges(frame="pandas"), graph, EDGES)


def test_oriented_edges_of_a_device_within_a_budget(emulated, tmp_path):
    with prepare(backend="cuda", memory="20MB", work_dir=tmp_path) as graph:
        assert_oriented(graph.oriented_edges().compute(scheduler="sync"), graph, EDGES)


@pytest.mark.parametrize("far", [1, 10**12], ids=["near", "far apart"])
def test_no_row_of_a_cudf_frame_goes_through_the_host(emulated, far):
    graph = prepare([(far * u, far * v) for u, v in EDGES], backend="cuda")
    used, answers = cupy_strict.MEMORY_USED, type(emulated.answers)
    for name in [*PER_VERTEX, "edge_support"]:
        graph._context.counted.forget()
        before = used.moved
        with mock.patch.object(answers, "edges", autospec=True, side_effect=answers.edges) as edges:
            getattr(graph, name)(frame="cudf")
        assert used.moved - before < 4 * graph.vertices
        assert edges.called == (name == "edge_support")


def test_a_source_in_gpu_memory_is_answered_there(emulated):
    columns = {name: cudf_strict.Series(np.array(of)) for name, of in zip("ab", zip(*EDGES, strict=True), strict=True)}
    with (
        mock.patch.object(cudf_strict.DataFrame, "__module__", "cudf.core"),
        mock.patch.object(cudf_strict.Series, "__module__", "cudf.core"),
    ):
        graph = dasktc.prepare(cudf_strict.DataFrame(columns), backend="cuda")
    assert isinstance(graph.triangles(), cudf_strict.Series)
    assert isinstance(graph.edge_support(), cudf_strict.DataFrame)
    assert_same(graph.edge_support(frame="pandas"), prepare().edge_support())


def test_keys_beyond_a_word_are_sorted_on_a_device(emulated, monkeypatch):
    from dasktc.answers import edge_frames

    rng = np.random.default_rng(1)
    u, v, values = (rng.integers(0, 2**31 - 1, 500) for _ in range(3))
    part = np.stack([np.minimum(u, v) << 32 | np.maximum(u, v), values])
    on_host, on_device = edge_frames._ascending(part), edge_frames._ascending(cupy_strict.asarray(part))
    for one, other in zip(on_host, on_device, strict=True):
        np.testing.assert_array_equal(one, other.get())


# the command line, and the benchmark


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".txt"])
def test_the_command_writes_clustering(tmp_path, capfd, suffix):
    source, out = tmp_path / "graph.txt", tmp_path / f"c{suffix}"
    source.write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    assert main(["measures", str(source), "-o", str(out), "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    names = ["vertex", "degree", "triangles", "clustering"]
    if suffix == ".parquet":
        found = pd.read_parquet(out)
    else:
        found = pd.read_csv(out) if suffix == ".csv" else pd.read_csv(out, sep="\t", names=names)
    expected = prepare().measures()
    pd.testing.assert_frame_equal(found.set_index("vertex"), expected, check_exact=True)
    assert list(found.columns) == names
    assert (said["triangles"], said["vertices"], said["edges"]) == (
        oracle.triangles(EDGES), len(expected), prepare().edges,
    )  # fmt: skip
    assert (said["average_clustering"], said["transitivity"]) == (
        prepare().average_clustering(),
        prepare().transitivity(),
    )
    assert main(["measures", str(source), "-o", str(out)]) == 2
    assert "exists: it would be lost" in capfd.readouterr().err


def test_the_benchmark_asks_every_question(capfd):
    assert main(["bench", "questions", "--quick", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    first, second = report["sections"]
    rows = {row[""]: row for row in first["rows"]}
    assert all(rows["dasktc"][question] >= 0 for question in questions.QUESTIONS)
    without = ("motifs()", "estimate()")
    assert all(rows["NetworkX"][question] >= 0 for question in questions.QUESTIONS if question not in without)
    assert rows["igraph"]["edge_support()"] is None
    assert "0 triangles" in second["title"]


def test_the_benchmark_refuses_counts_that_differ():
    wrong = {"count": questions.Question(lambda: 4, int)}
    right = {"count": questions.Question(lambda: 5, int), "list": questions.Question(list, questions._unknown)}
    with pytest.raises(CountError, match="other says by count that the graph has 4 triangles, 5 were counted"):
        questions._in_turns({"dasktc": right, "other": wrong}, "cpu", 1, print)
    seconds, triangles = questions._in_turns({"dasktc": right}, "cpu", 2, print)
    assert triangles == 5
    assert {name: len(of) for name, of in seconds.items()} == {("dasktc", "count"): 2, ("dasktc", "list"): 2}
    for options in ({"runs": 0}, {"scale": 99}):
        with pytest.raises(InputError):
            questions.run(**options)


def test_cugraph_is_asked_for_the_similarity_of_edges_and_of_the_drawn_pairs(monkeypatch):
    class Graph(nx.Graph):
        def from_cudf_edgelist(self, frame, source, destination, renumber):
            self.add_edges_from(frame[[source, destination]].to_numpy().tolist())

    cugraph = ModuleType("cugraph")
    cugraph.Graph = Graph
    cugraph.triangle_count = lambda graph: pd.DataFrame({"counts": nx.triangles(graph)})
    cugraph.jaccard = lambda graph, pairs: list(nx.jaccard_coefficient(graph, pairs.to_numpy().tolist()))
    monkeypatch.setitem(sys.modules, "cugraph", cugraph)
    monkeypatch.setattr(questions, "get_backend", lambda name: mock.Mock(frame=pd))
    edges = np.array([sorted(edge) for edge in oracle.clean(EDGES)])
    asked = questions._cugraph(edges)
    assert asked["count"].triangles(asked["count"].ask()) == oracle.triangles(EDGES)
    similar = {frozenset(row[:2]): row[2] for row in asked["similarity()"].ask()}
    ours = dasktc.prepare(edges).similarity()
    assert similar == {frozenset(row[:2]): pytest.approx(row[2]) for row in ours.itertuples(index=False)}
    assert len(asked["similarity(pairs)"].ask()) == questions.PAIRS


@pytest.mark.parametrize("parts", [None, 1, 2])
@pytest.mark.parametrize("edges", [[], [(0, 0)], [(0, 1)], [(0, 1), (1, 2), (2, 0), (3, 4)]], ids=len)
def test_one_part_of_proxies_gives_every_vertex(edges, parts):
    """The numbering of proxies is an array, where that of other schemes is a first id and a stride."""
    source = np.array(edges, dtype=np.int64) if edges else ([], [])
    for backwards in (False, True):
        with dasktc.prepare(source, backend="cpu", threads=1, method=Method(partition="proxy", parts=parts)) as graph:
            asked = [graph.triangles, graph.edge_support][:: -1 if backwards else 1]
            sums = {ask.__name__: int(pd.DataFrame(ask(frame="pandas")).iloc[:, -1].sum()) for ask in asked}
        assert sums == dict.fromkeys(("triangles", "edge_support"), 3 * oracle.triangles(edges))
