"""Surveys of triangles against brute force: every scheme, order and place, and sums of what functions return."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.backends.cpu import batches as cpu_batches
from dasktc.backends.cpu.batches import batches
from dasktc.backends.csr import BlockTask
from dasktc.errors import CountError, InputError
from dasktc.questions import survey as surveys
from dasktc.questions import triangle_types
from dasktc.questions.sums import SUM
from tests.support import oracle
from tests.support.keywords import keywords
from tests.support.slow_pipeline import tuned

PLANS = [
    dict(),
    dict(partition="whole", splits=3),
    dict(partition="edges", splits=3),
    dict(partition="hash2d", parts=3),
    dict(partition="vertical", parts=2),
    dict(partition="proxy", parts=3),
]
REORDERS = ["degree", "collective", "indegree", "none"]
DATA = Path(__file__).parents[1] / "data"


def prepared(edges, client=None, **options):
    frame = pd.DataFrame(list(edges), columns=["src", "dst"])
    return dasktc.prepare(frame, client, **keywords(**dict(backend="cpu", threads=None if client else 1) | options))


def triangles_of(edges):
    """Every triangle, as ascending ids."""
    simple = oracle.clean(edges)
    neighbours = {vertex: set() for edge in simple for vertex in edge}
    for u, v in simple:
        neighbours[u].add(v)
        neighbours[v].add(u)
    return {tuple(sorted((u, v, w))) for u, v in simple for w in neighbours[u] & neighbours[v]}


def listed(batch):
    """The triangles of a batch, each with how often it came."""
    ends = np.sort(np.stack([batch["u"], batch["v"], batch["w"]], axis=1), axis=1)
    return Counter(map(tuple, ends.tolist()))


def surveyed(graph):
    """The triangles of a survey by the caller's ids, each with how often it came."""
    ids = graph.triangles().index
    return {tuple(ids[list(numbers)]): count for numbers, count in graph.survey(listed).items()}


@pytest.fixture
def batches_of_3(monkeypatch):
    monkeypatch.setattr(surveys, "BATCH", 3)


@given(
    oracle.multigraphs(),
    st.sampled_from(PLANS),
    st.sampled_from(REORDERS),
    st.sampled_from([1, 3, 1 << 16]),
    st.sampled_from([1, 3]),
)
def test_every_triangle_comes_once(edges, plan, reorder, size, shards):
    with pytest.MonkeyPatch.context() as patch, tuned(least_shards=shards):
        patch.setattr(surveys, "BATCH", size)
        graph = prepared(edges, reorder=reorder, **plan)
        assert surveyed(graph) == dict.fromkeys(triangles_of(edges), 1)


def test_batches_are_bounded(batches_of_3):
    graph = prepared(oracle.complete(12))
    sizes = graph.survey(lambda batch: {len(batch["u"]): 1})
    longest = 11  # of a row
    assert sum(size * times for size, times in sizes.items()) == 220
    assert max(sizes) <= longest
    assert len(sizes) > 1


def test_a_batch_goes_on_within_a_row():
    context = prepared(oracle.complete(30))._context
    (block,) = context.executor.gather(context.blocks.values())
    visited = [(batch.row.copy(), batch.uv.copy(), batch.uw.copy(), batch.vw.copy(), batch.wedges)
               for batch in batches(BlockTask(block, block, block), 1)]  # fmt: skip
    row, uv, uw, vw = map(np.concatenate, zip(*[batch[:4] for batch in visited], strict=True))
    assert len(visited) > 100
    assert sum(batch[4] for batch in visited) == context.prepared.wedges
    rows = np.repeat(np.arange(block.rows), np.diff(block.offsets))
    assert (rows[uv] == row).all()
    assert (rows[uw] == row).all()
    assert (rows[vw] == block.columns[uv]).all()
    assert (block.columns[uw] == block.columns[vw]).all()
    assert len(set(zip(uv.tolist(), vw.tolist(), strict=True))) == len(row) == 30 * 29 * 28 // 6


@given(oracle.multigraphs(), st.sampled_from(PLANS), st.sampled_from(REORDERS), st.data(), st.sampled_from([1, 3]))
def test_triangle_types(edges, plan, reorder, data, shards):
    with tuned(least_shards=shards):
        graph = prepared(edges, reorder=reorder, **plan)
    vertices = sorted({vertex for edge in oracle.clean(edges) for vertex in edge})
    drawn = data.draw(st.lists(st.sampled_from("xyz"), min_size=len(vertices), max_size=len(vertices)))
    labels = dict(zip(vertices, drawn, strict=True))
    types = graph.triangle_types(labels)
    found = {tuple(row[:3]): row[3] for row in types.itertuples(index=False)}
    expected = Counter(tuple(sorted(labels[vertex] for vertex in triangle)) for triangle in triangles_of(edges))
    assert {labels: count for labels, count in found.items() if count} == expected
    assert types["triangles"].dtype == np.int64
    by_chance = chance(edges, labels)
    triangles, total = sum(expected.values()), sum(by_chance.values())
    for row in types.itertuples():
        share = by_chance[row.a, row.b, row.c] / total if total else 0
        assert row.expected == pytest.approx(triangles * share, rel=1e-12)


def chance(edges, labels):
    """Weight of each multiset of labels in the configuration model: a product over each set of three vertices."""
    degree = Counter(vertex for edge in oracle.clean(edges) for vertex in edge)
    weights = Counter()
    for three in combinations(degree, 3):
        product = 1
        for vertex in three:
            product *= degree[vertex] * (degree[vertex] - 1)
        weights[tuple(sorted(labels[vertex] for vertex in three))] += product
    return weights


def test_labels_of_a_series(data):
    graph = dasktc.prepare(str(data / "karate.csv.gz"), threads=2)
    degree = graph.measures()["degree"]
    types = graph.triangle_types((degree % 2).rename("parity"))
    assert types["triangles"].sum() == 45
    assert types[["a", "b", "c"]].drop_duplicates().shape == (4, 3)
    assert types["expected"].sum() == pytest.approx(45)
    again = graph.triangle_types(
        pd.Series(np.where(degree % 2, "odd", "even"), degree.index).sample(frac=1, random_state=1)
    )
    assert again["triangles"].tolist() == types["triangles"].tolist()
    assert again["a"].tolist() == ["even", "even", "even", "odd"]


@pytest.mark.parametrize(
    "name", ["dolphins.mtx.gz", "netscience.csv.gz", "email-Eu-core.csv.gz", "celegans_metabolic.graph.gz"]
)
def test_small_real_graphs(data, name):
    graph = dasktc.prepare(str(data / name), threads=1, method=dasktc.Method(partition="hash2d", parts=2))
    edges = graph.oriented_edges(frame="pandas")
    triangles = triangles_of(edges.itertuples(index=False))
    assert surveyed(graph) == dict.fromkeys(triangles, 1)
    group = graph.triangles() % 3
    found = graph.triangle_types(group).set_index(["a", "b", "c"])["triangles"]
    label = group.to_dict()
    expected = Counter(tuple(sorted(label[vertex] for vertex in triangle)) for triangle in triangles)
    assert {labels: count for labels, count in found.items() if count} == expected


def test_on_workers(client):
    edges = oracle.complete(40)
    with prepared(edges, client, partition="hash2d", parts=2) as graph:
        assert surveyed(graph) == dict.fromkeys(triangles_of(edges), 1)
        types = graph.triangle_types({vertex: vertex % 2 for vertex in range(40)})
        assert types["triangles"].tolist() == [1140, 3800, 3800, 1140]


def test_within_memory():
    edges = [*oracle.complete(60), *((vertex, vertex + 1) for vertex in range(60, 9000))]
    with prepared(edges, memory="1MB") as graph:
        assert graph.plan.parts * graph.plan.splits > 1
        assert graph.survey(lambda batch: len(batch["u"])) == 34220
        assert graph.triangle_types(dict.fromkeys(range(9001), 1))["triangles"].tolist() == [34220]


def test_threads_and_texts():
    edges = [(str(u), str(v)) for u, v in oracle.wheel(9)]
    graph = prepared(edges, ids="text", threads=2, partition="hash2d", parts=3)
    assert surveyed(graph) == dict.fromkeys(triangles_of(edges), 1)


def test_progress_and_agreement():
    seen = []
    graph = prepared(oracle.complete(9), partition="hash2d", parts=2)
    assert graph.survey(lambda batch: len(batch["u"]), progress=lambda *step: seen.append(step)) == 84
    assert seen[0] == ("survey", 0, 8)
    assert seen[-1] == ("survey", 8, 8)
    assert int(graph.triangle_count()) == 84


def test_lost_wedges_are_refused(monkeypatch):
    kernel = cpu_batches.batch
    monkeypatch.setattr(cpu_batches, "batch", lambda *args: (kernel(*args)[0], 0))
    with pytest.raises(CountError, match="handled 0 wedges, but the degrees give"):
        prepared(oracle.complete(5)).survey(lambda batch: len(batch["u"]))


def test_memory_that_runs_out_halves_a_task():
    calls = []

    def function(batch):
        calls.append(len(batch["u"]))
        if len(calls) == 1:
            raise MemoryError("no room")
        return len(batch["u"])

    assert prepared(oracle.complete(9)).survey(function) == 84
    assert len(calls) > 2


# what functions return

RESULTS = {
    "a number": (lambda batch: len(batch["u"]), 84),
    "numpy's number": (lambda batch: np.int32(len(batch["u"])), 84),
    "a float": (lambda batch: len(batch["u"]) / 2, 42.0),
    "a dict": (
        lambda batch: {"n": len(batch["u"]), "least": {"u": batch["u"] * 0 + 1}["u"].sum()},
        {"n": 84, "least": 84},
    ),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_sums(kind, batches_of_3):
    function, expected = RESULTS[kind]
    found = prepared(oracle.complete(9)).survey(function)
    assert found == expected
    assert type(found) is type(expected)


def test_sums_of_arrays_and_frames(batches_of_3):
    graph = prepared(oracle.complete(9))
    by_vertex = graph.survey(lambda b: sum(np.bincount(b[role], minlength=9) for role in "uvw").astype(np.int8))
    assert by_vertex.dtype == np.int64
    assert by_vertex.tolist() == graph.triangles().tolist()
    series = graph.survey(lambda b: pd.Series(b["u"]).value_counts())
    assert series.dtype == np.int64
    assert series.to_dict() == graph.survey(lambda b: Counter(b["u"].tolist()))
    frame = graph.survey(lambda b: pd.DataFrame(b).assign(n=1).groupby(["u", "v"])[["n"]].sum())
    assert frame["n"].sum() == 84
    assert frame.index.is_unique
    assert frame.index.is_monotonic_increasing


def test_a_fold():
    fold = dasktc.Fold(set, lambda known, more: known | more, lambda sets: set().union(*sets))
    graph = prepared(oracle.wheel(9), partition="hash2d", parts=2)
    hubs = graph.survey(lambda b: set(b["u"].tolist()) | set(b["v"].tolist()) | set(b["w"].tolist()), reduce=fold)
    assert hubs == set(range(10))
    assert prepared(oracle.star(5)).survey(lambda b: {1}, reduce=fold) == set()


def test_no_triangle():
    graph = prepared(oracle.star(5))
    assert graph.survey(lambda batch: np.bincount(batch["u"], minlength=6)).tolist() == [0] * 6
    assert prepared([]).survey(lambda batch: len(batch["w"])) == 0
    assert prepared([]).triangle_types({}).empty


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda batch: "text", "returned 'text': a sum is of numbers"),
        (lambda batch: batch["u"].astype(str), "returned an array of <U21: a sum is of numbers"),
        (lambda batch: batch["u"], "arrays of shapes"),
        (lambda batch: {"n": 1} if batch["u"].sum() % 2 else 1, "a int and a dict|a dict and a int"),
        (lambda batch: np.array([1 << 62]), "a survey's sum reaches 4.61e[+]18"),
        (lambda batch: pd.DataFrame({str(batch["u"].sum()): [1]}), "returned frames with the columns"),
    ],
)
def test_refused_results(function, reason, batches_of_3):
    with pytest.raises(InputError, match=reason):
        prepared(oracle.complete(11)).survey(function)


def test_sums_that_exceed_64_bits():
    near = np.array([(1 << 62) - 1])
    assert SUM.combine([near, -near]).tolist() == [0]
    with pytest.raises(InputError, match="64 bits"):
        SUM.combine([near, near])
    assert SUM.combine([{"n": 1 << 62}, {"n": 1 << 62}]) == {"n": 1 << 63}
    with pytest.raises(InputError, match="repeats its index"):
        SUM.combine([pd.Series([1 << 61] * 2, index=[0, 0])])


def test_refused_calls():
    graph = prepared(oracle.complete(4))
    with pytest.raises(InputError, match="reduce='max' is neither"):
        graph.survey(len, reduce="max")
    with pytest.raises(InputError, match="cannot be called"):
        graph.survey(7)
    with pytest.raises(InputError, match="prepared without columns: 'time' is none"):
        graph.survey(len, ["time"])
    with pytest.raises(InputError, match="is no list of names"):
        graph.survey(len, "time")
    with pytest.raises(InputError, match="has no row in labels, as 2 vertices have: every vertex needs one"):
        graph.triangle_types({0: "x", 3: "y"})
    with pytest.raises(InputError, match="vertex 3 has several rows"):
        graph.triangle_types(pd.Series(["x"] * 5, index=[0, 1, 2, 3, 3]))
    with pytest.raises(InputError, match="row 2 of labels has no value, as 1 row has"):
        graph.triangle_types(pd.Series(["x", "y", None, "x"]))
    with pytest.raises(InputError, match="of the types int and str"):
        graph.triangle_types({0: "x", 1: 1, 2: "x", 3: "x"})
    with pytest.raises(InputError, match="neither a column's name, a Series by id nor a dict"):
        graph.triangle_types("group")
    graph.close()
    with pytest.raises(InputError, match="closed"):
        graph.survey(len)


def test_many_labels():
    graph = prepared(oracle.complete(66))
    types = graph.triangle_types({vertex: min(vertex, 63) for vertex in range(66)})
    assert types["triangles"].sum() == 66 * 65 * 64 // 6
    assert types.query("a == 63 and b == 63 and c == 63")["triangles"].tolist() == [1]
    with pytest.raises(InputError, match="65 different ones, and triangles are counted by 64"):
        graph.triangle_types({vertex: min(vertex, 64) for vertex in range(66)})
    assert triangle_types.SUM is SUM
