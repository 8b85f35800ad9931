"""Core numbers and trussness, against NetworkX and the definition, for every scheme, order and executor."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from itertools import product

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dasktc
from dasktc import generate
from dasktc.api.count import build
from dasktc.backends import peel_bytes
from dasktc.backends.cpu import hub_tables, peel, supports
from dasktc.backends.csr import BlockTask
from dasktc.backends.cuda.peel import DevicePeel
from dasktc.errors import CountError, InputError
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.executors.stores.file_store import FileStore
from dasktc.executors.stores.shared_file_store import SharedFileStore
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.io.write import write_frames
from dasktc.options import Options
from dasktc.questions import peeling
from dasktc.questions.trussness import truss_frames
from tests.support import oracle
from tests.support.emulation.host import HostDevice, compiler
from tests.support.keywords import keywords
from tests.support.retuned import retuned
from tests.support.slow_pipeline import (
    PLANS,
    REORDERS,
    prepare,
    simple,
    skewed_edges,
    source_of,
    tuned,
    within,
    without_an_edge,
)
from tests.support.tiers import some

MOST = 2**31 - 1
CASES = [pytest.param(edges, id=name) for name, edges, _ in oracle.GRAPHS]


def trussness(graph):
    """Trussness by the definition: edges in NetworkX's k-truss that are not in the next one."""
    found, k = {}, 2
    while graph.number_of_edges():
        graph = nx.k_truss(graph, k)
        found |= {frozenset(edge): k for edge in graph.edges}
        k += 1
    return found


def numbers(frame, name):
    assert list(frame.columns) == ["src", "dst", name]
    assert frame[name].dtype == np.int64
    assert (frame.src < frame.dst).all()
    assert frame[["src", "dst"]].apply(tuple, axis=1).is_monotonic_increasing or frame.empty
    found = {frozenset(ends): number for *ends, number in frame.itertuples(index=False)}
    assert len(found) == len(frame)
    return found


def check(edges, **options):
    graph, expected = prepare(edges, **options), simple(edges)
    cores = graph.core_number()
    assert cores.name == "core_number"
    assert cores.dtype == np.int64
    assert cores.index.is_monotonic_increasing
    assert cores.to_dict() == nx.core_number(expected)
    known = trussness(expected)
    assert numbers(graph.truss(), "trussness") == known
    largest = max(known.values(), default=2)
    for k in {0, 2, 3, 4, largest, largest + 1}:
        truss = nx.Graph([tuple(edge) for edge, of in known.items() if of >= k])
        assert numbers(graph.truss(k), "support") == oracle.support(truss.edges)


@pytest.mark.parametrize("edges", CASES)
def test_named_graphs(edges):
    check(edges)


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("reorder", REORDERS)
def test_plans_and_reorders(plan, reorder):
    edges = [*nx.gnm_random_graph(60, 420, seed=5).edges(), (3, 3), (60, 61), (61, 60), (1, 60)]
    check(edges, reorder=reorder, **plan)


options = st.sampled_from(PLANS), st.sampled_from(REORDERS)


@given(oracle.multigraphs() | oracle.text_multigraphs(), *options)
@example([(0, 0)], PLANS[0], "degree")
def test_any_multigraph(edges, plan, reorder):
    check(edges, reorder=reorder, **plan)


def test_ids_are_the_callers():
    text = prepare([("b", "a"), ("a", "10"), ("10", "b"), ("9", "a")])
    assert text.truss().values.tolist() == [["10", "a", 3], ["10", "b", 3], ["9", "a", 2], ["a", "b", 3]]
    assert text.truss(3).values.tolist() == [["10", "a", 1], ["10", "b", 1], ["a", "b", 1]]
    far = prepare([(-(2**63), 2**63 - 1), (2**63 - 1, 0), (0, -(2**63))])
    assert far.core_number().to_dict() == {-(2**63): 2, 0: 2, 2**63 - 1: 2}


def test_answers_for_some():
    graph = prepare([("b", "a"), ("a", "10"), ("10", "b"), ("9", "a")])
    assert graph.truss(edges=[("9", "a"), ("b", "10")]).values.tolist() == [["9", "a", 2], ["b", "10", 3]]
    assert graph.core_number(vertices=["b", "9"]).to_dict() == {"b": 2, "9": 1}
    assert graph.truss(3, frame="dask").compute().equals(graph.truss(3))
    with pytest.raises(InputError, match="cudf"):
        graph.truss(frame="cudf")


@pytest.mark.parametrize("k", [-1, 2.5, "3", True])
def test_what_is_no_order_of_a_truss(k):
    with pytest.raises(InputError, match="k="):
        prepare([(0, 1)]).truss(k)


def test_edges_of_one_truss_are_not_chosen():
    with pytest.raises(InputError, match=r"edges are given with k=3: .*; leave out k") as error:
        prepare([(0, 1)]).truss(3, edges=[(0, 1)])
    assert "\n" not in str(error.value)


def levels(graph, supports):
    """Peel edge by edge, with sets; return each edge's level, in the order of their keys."""
    neighbours = {v: set(of) for v, of in graph.adjacency()}
    left, found, level = dict(supports), {}, 0
    while left:
        goes = [edge for edge, triangles in left.items() if triangles <= level]
        level += not goes
        for u, v in goes:
            found[u, v] = level
            del left[u, v]
            neighbours[u].remove(v)
            neighbours[v].remove(u)
            for w in neighbours[u] & neighbours[v]:
                for end in (u, v):
                    left[max(end, w), min(end, w)] -= 1
    return found


GRAPHS = {
    "kronecker": lambda: generate.kronecker(9),  # hubs, whose rows are marked, and rows that are searched
    "random": lambda: generate.random_graph(400, 8_000),
    "torus": lambda: generate.grid3d(5),
    "cliques": lambda: nx.ring_of_cliques(6, 40),  # levels beyond the first window
    "windmill": lambda: nx.windmill_graph(80, 4),
}


def block_of(source):
    (block,) = dasktc.prepare(source, backend="cpu")._context.blocks.values()
    return block


def oriented(block):
    rows = np.repeat(np.arange(block.rows), np.diff(block.offsets)).tolist()
    return list(zip(rows, block.columns.tolist(), strict=True))


PEELERS = {
    "cpu": peel.PEEL,
    "cuda": DevicePeel(HostDevice()),
    "cuda, threads in descending order": DevicePeel(HostDevice(reverse=True)),
}


QUICK = [("cpu", "random"), ("cuda", "cliques"), ("cuda", "torus"), ("cuda, threads in descending order", "random")]


def wholly(peeler, block, given, first, last):
    """Peel to the end, also where a call ends early."""
    keep = np.arange(block.edges)
    levels, left, triangles = np.full(block.edges, -1), given.copy(), 0
    while True:
        part = peeler.trusses(block, left[keep].astype(np.int32), first, last)
        levels[keep], left[keep], triangles = part.levels, part.left, triangles + part.triangles
        if part.following is None:
            return levels, left, triangles
        assert 0 < 2 * (part.levels < 0).sum() < block.edges
        keep, first = keep[part.levels < 0], part.following
        block = cut(block, part.levels < 0)


def cut(block, stays):
    offsets = np.concatenate([[0], np.cumsum(stays)])[block.offsets]
    return replace(block, offsets=offsets, columns=block.columns[stays])


@pytest.mark.parametrize(
    ("name", "of"),
    some(product(GRAPHS, PEELERS), lambda name, of: (of, name) in QUICK),
)
def test_levels_of_larger_graphs(name, of):
    if of != "cpu" and compiler() is None:
        pytest.skip("no g++ on Linux, which runs the kernels on the host")
    block, peeler = block_of(GRAPHS[name]()), PEELERS[of]
    edges = oriented(block)
    graph = nx.Graph(edges)
    (given, *_), triangles, _ = supports.edges(BlockTask(block, block, block))
    known = levels(graph, dict(zip(edges, given.tolist(), strict=True)))
    expected = np.array([known[edge] for edge in edges])
    before = given.copy()
    found, _, went = wholly(peeler, block, given, 0, MOST)
    assert (given == before).all()
    assert found.tolist() == expected.tolist()
    assert went == triangles
    assert peeler.rows(block).tolist() == [u for u, _ in edges]
    cores = nx.core_number(graph)
    assert peeler.cores(block, 0, MOST).tolist() == [cores[v] for v in range(block.rows)]
    for most in sorted({0, 1, int(np.median(expected)), int(expected.max()) - 1}):
        for first in {0, most}:
            found, left, went = wholly(peeler, block, given, first, most)
            stays = expected > most
            assert found.tolist() == np.where(stays, -1, expected.clip(min=first)).tolist()
            within = oracle.support(edge for edge, there in zip(edges, stays, strict=True) if there)
            assert left[stays].tolist() == [within[frozenset(edge)] for edge in np.array(edges)[stays].tolist()]
            assert 3 * (triangles - went) == left[stays].sum()
            cores_there = [max(first, cores[v]) if cores[v] <= most else -1 for v in range(block.rows)]
            assert peeler.cores(block, first, most).tolist() == cores_there


@pytest.mark.parametrize("threads", [1, 3])
@tuned(few_edges=100)
def test_threads_share_the_count(threads):
    graph = retuned(dasktc.prepare(generate.kronecker(9), backend="cpu", threads=threads), shared_count=100)
    assert len(graph._context.executor.worker_threads) == threads
    assert graph.truss().trussness.max() == 22
    assert len(graph.truss(22)) == (graph.truss().trussness == 22).sum()


@pytest.mark.parametrize("again", [1, 10**9], ids=["counted again", "peeled"])
def test_a_truss_is_the_same_however_it_is_reached(again):
    graph = dasktc.prepare(generate.kronecker(9), backend="cpu")
    whole = graph.truss()
    retuned(graph, recount=again)
    for k in (3, 6, 12, 22, 23):
        found, expected = graph.truss(k), whole[whole.trussness >= k]
        assert found[["src", "dst"]].to_numpy().tolist() == expected[["src", "dst"]].to_numpy().tolist()
        assert (found.support >= k - 2).all()


def test_bytes_that_are_planned_for():
    block = block_of(generate.kronecker(12))
    (given, *_), _, _ = supports.edges(BlockTask(block, block, block))
    hub_tables.forget()
    tracemalloc.start()
    try:
        peel.PEEL.trusses(block, given, 0, MOST)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.8 * taken <= peel_bytes("cpu", block.rows, block.edges) >= taken


PLANNED = [dict(partition="whole"), dict(parts=3), dict(partition="proxy", parts=2), dict(reorder="none")]


@pytest.mark.parametrize("k", [None, 5])
@pytest.mark.parametrize("options", PLANNED, ids=str)
def test_all_bytes_of_the_call_are_planned_for(options, k):
    graph = dasktc.prepare(generate.kronecker(12), backend="cpu", threads=1, **keywords(**options))
    blocks, how = list(graph._context.blocks.values()), peeling._how(graph._context)
    held = sum(block.nbytes for block in blocks)
    hub_tables.forget()
    peeling._truss(how, k, blocks)  # what is compiled and loaded is no data
    hub_tables.forget()
    tracemalloc.start()
    try:
        peeling._truss(how, k, blocks)
        taken = held + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        hub_tables.forget()
    assert taken <= peeling._kernel_and_bytes(graph._context, "cpu", 1)[1]


@pytest.mark.parametrize("options", PLANNED, ids=str)
def test_all_bytes_of_cores_are_planned_for(options):
    graph = dasktc.prepare(generate.kronecker(12), backend="cpu", threads=1, **keywords(**options))
    blocks, how = list(graph._context.blocks.values()), peeling._how(graph._context, trusses=False)
    peeling._cores(how, blocks)
    tracemalloc.start()
    try:
        peeling._cores(how, blocks)
        taken = sum(block.nbytes for block in blocks) + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (
        taken
        <= peeling._bytes_of_cores(graph._context, "cpu")
        < 0.9 * peeling._kernel_and_bytes(graph._context, "cpu", 1)[1]
    )


def test_memory_is_kept_or_refused():
    wanted = dasktc.prepare(generate.kronecker(9), backend="cpu")
    _, needed = peeling._kernel_and_bytes(wanted._context, "cpu", 1)
    known = wanted.truss()
    visited = within(wanted, needed - 1)
    assert peeling._kernel_and_bytes(visited._context, "cpu", 1)[0] == "trust"
    pd.testing.assert_frame_equal(visited.truss(), known)
    for question in (dasktc.Graph.truss, lambda graph: graph.truss(4)):
        with pytest.raises(InputError, match=r"a task that visits triangles needs \d+ kB at n = 1, more than the 50"):
            question(within(wanted, 50_000))
    least = peeling._bytes_of_cores(wanted._context, "cpu")
    pd.testing.assert_series_equal(within(wanted, least).core_number(), wanted.core_number())
    with pytest.raises(InputError, match="peeling 4,741 edges needs"):
        within(wanted, least - 1).core_number()


def test_lost_edges_are_an_error():
    cut = without_an_edge(prepare(list(nx.gnm_random_graph(30, 200, seed=3).edges()), parts=2))
    for question in (dasktc.Graph.truss, dasktc.Graph.core_number, lambda graph: graph.truss(4)):
        with pytest.raises(CountError, match="199 different edges, but the plan 200"):
            question(cut)


@pytest.mark.parametrize("k", [None, 4, 3])
def test_a_wrong_peel_is_an_error(k, monkeypatch):
    graph = retuned(prepare(list(nx.gnm_random_graph(30, 160, seed=3).edges())), recount=10**-9)
    right = peel.PEEL.trusses
    monkeypatch.setattr(peel.CpuPeel, "trusses", lambda self, *given: right(*given)._replace(triangles=1))
    with pytest.raises(CountError, match=r"peeled"):
        graph.truss() if k is None else graph.truss(k)


ON_A_CLUSTER = [
    dict(partition="whole", splits=3),
    dict(parts=2),
    dict(partition="vertical", parts=2, reorder="collective"),
    dict(partition="proxy", parts=3),
]


@pytest.mark.slow
@pytest.mark.parametrize("plan", some(ON_A_CLUSTER, lambda plan: "vertical" in plan.values()), ids=str)
def test_on_a_cluster(client, plan):
    edges = [(f"v{u}", f"v{v}") for u, v in nx.gnm_random_graph(50, 300, seed=7).edges()]
    graph, alone = retuned(prepare(edges, client, **plan), partition_bytes=2_400), prepare(edges)
    pd.testing.assert_series_equal(graph.core_number(), alone.core_number())
    for answer in (dasktc.Graph.truss, lambda graph: graph.truss(4), lambda graph: graph.truss(50)):
        spread, expected = answer(graph), answer(alone)
        assert (spread.npartitions > 1) == (len(expected) > 100)
        assert spread.dtypes.to_dict() == expected.dtypes.to_dict()
        found = client.compute(spread).result()
        pd.testing.assert_frame_equal(found, expected)


# out of core, and in shards


@pytest.mark.parametrize(("partition", "shards"), [("whole", 1), ("hash2d", 3), ("whole", 3), ("proxy", 1)])
def test_in_files_and_in_shards(tmp_path, partition, shards):
    edges = skewed_edges(60, 500, 4)
    options = Options(memory="1GB", partition=partition, parts=2, reorder="degree" if shards == 3 else "collective")
    tasks = LocalExecutor(FileStore(WorkDir(tmp_path), 8_000, small=1))
    tasks.store._limit = 0
    with tuned(least_shards=shards):
        graph = retuned(build(tasks, source_of(edges, parts=3), options), frame_bytes=1)
    alone = prepare(edges)
    assert graph.plan.shards == shards
    pd.testing.assert_frame_equal(graph.truss(), alone.truss())
    pd.testing.assert_frame_equal(graph.truss(4), alone.truss(4))
    parts, _ = truss_frames(graph._context)
    write_frames(parts, tmp_path / "t.parquet", graph._context.executor)
    written = pd.read_parquet(tmp_path / "t.parquet").sort_values(["src", "dst"], ignore_index=True)
    pd.testing.assert_frame_equal(written, alone.truss())
    if shards == 1:
        pd.testing.assert_series_equal(graph.core_number(), alone.core_number())
    else:
        with pytest.raises(InputError, match="a number of every vertex"):
            graph.core_number()
    tasks.close()


@pytest.mark.slow
@tuned(least_shards=2)
def test_in_shards_on_workers(client, tmp_path):
    edges = skewed_edges(50, 300, 7)
    tasks = DaskExecutor(client, store=SharedFileStore(WorkDir(tmp_path), 1 << 20, small=1))
    graph, alone = build(tasks, source_of(edges, parts=2), Options(memory="1GB", partition="whole")), prepare(edges)
    assert graph.plan.shards == 2
    pd.testing.assert_series_equal(graph.core_number(), alone.core_number())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dask.base.get_scheduler", lambda *args, **kwargs: client.get)
        found = graph.truss().compute().sort_values(["src", "dst"], ignore_index=True)
    pd.testing.assert_frame_equal(found, alone.truss())
    tasks.close()


# the command line


def test_the_command_writes_trussness(run, source, tmp_path):
    out = tmp_path / "t.csv"
    code, said, err = run("truss", source, "-o", out)
    assert (code, err) == (0, "")
    assert said.splitlines()[:2] == [f"written    {out}", "truss      4 edges of trussness up to 3"]
    assert pd.read_csv(out).to_numpy().tolist() == [[0, 1, 3], [0, 2, 3], [1, 2, 3], [2, 3, 2]]
    assert list(pd.read_csv(out)) == ["src", "dst", "trussness"]
    code, _, err = run("truss", source, "-o", out)
    assert code == 2
    assert "t.csv exists already" in err or "exists" in err


def test_the_command_writes_one_truss(run, source, tmp_path):
    out = tmp_path / "t.parquet"
    code, said, _ = run("truss", source, "--k", 3, "--output", out, "--json", "--partition", "hash2d", "--parts", 2)
    assert code == 0
    found = json.loads(said)
    assert found | {"read": None, "seconds": None} == {
        "output": str(out),
        "k": 3,
        "largest": 1,
        "vertices": 3,
        "edges": 3,
        "graph_vertices": 4,
        "graph_edges": 4,
        "read": None,
        "backend": "cpu",
        "seconds": None,
    }
    assert found["seconds"].keys() == {"read", "prepare", "truss", "write", "total"}
    assert pd.read_parquet(out).to_numpy().tolist() == [[0, 1, 1], [0, 2, 1], [1, 2, 1]]
    code, said, _ = run("truss", source, "--k", 3, "-o", tmp_path / "u.txt")
    assert code == 0
    assert "3-truss: 3 of 4 vertices, 3 of 4 edges, in up to 1 triangle each" in said
    assert run("truss", source, "--k", 4, "-o", tmp_path / "v.txt", "--quiet") == (0, "0\n", "")
    assert run("truss", source, "-o", tmp_path / "w.txt", "--quiet") == (0, "3\n", "")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("-o", "t.json"), "t.json"),
        ((), "--output"),
        (("-o", "t.csv", "--k", "-1"), "k -1"),
        (("-o", "nowhere/t.csv"), "no folder"),
        (("-o", "t.csv", "--k", "x"), "x"),
    ],
    ids=str,
)
def test_bad_use_of_the_command(run, source, tmp_path, monkeypatch, options, named):
    monkeypatch.chdir(tmp_path)
    code, said, err = run("truss", source, *options)
    assert (code, said) == (2, "")
    assert err.startswith("dasktc: error:")
    assert named in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["graph.txt"]


# on a device


@pytest.mark.parametrize(
    "plan", [{"partition": "whole"}, {"parts": 2}, {"partition": "proxy", "parts": 2, "reorder": "none"}], ids=str
)
def test_the_pipeline_on_a_device(emulated, plan):
    edges = [*skewed_edges(60, 400, 1), (99, 99)]
    graph, alone = prepare(edges, backend="cuda", **plan), prepare(edges, backend="cpu")
    pd.testing.assert_series_equal(graph.core_number(), alone.core_number())
    pd.testing.assert_frame_equal(graph.truss(), alone.truss())
    for k in (2, 3, 6):
        pd.testing.assert_frame_equal(graph.truss(k), alone.truss(k))


def test_no_edges_on_a_device(emulated):
    graph = prepare([(1, 1)], backend="cuda")
    assert graph.truss().empty
    assert graph.truss(3).empty
    assert graph.core_number().empty
