"""Surveys of triangles against brute force: every scheme, order and place, and sums of what functions return."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from functools import partial
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
from dasktc.counting import checkpoint
from dasktc.counting.checkpoint import FILE
from dasktc.errors import CountError, InputError
from dasktc.questions import survey as surveys
from dasktc.questions import triangle_types
from dasktc.questions.sums import SUM
from tests.support import oracle
from tests.support.keywords import keywords
from tests.support.retuned import retuned
from tests.support.slow_pipeline import tuned
from tests.support.tiers import some

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


@given(
    oracle.multigraphs(),
    st.sampled_from(PLANS),
    st.sampled_from(REORDERS),
    st.sampled_from([1, 3, 1 << 16]),
    st.sampled_from([1, 3]),
)
def test_every_triangle_comes_once(edges, plan, reorder, size, shards):
    with tuned(least_shards=shards):
        graph = retuned(prepared(edges, reorder=reorder, **plan), survey_batch=size)
        assert surveyed(graph) == dict.fromkeys(triangles_of(edges), 1)


def test_batches_are_bounded():
    graph = retuned(prepared(oracle.complete(12)), survey_batch=3)
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
    "name",
    some(
        ["dolphins.mtx.gz", "netscience.csv.gz", "email-Eu-core.csv.gz", "celegans_metabolic.graph.gz"],
        lambda name: not name.startswith("email"),
    ),
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


class OfTwo(Exception):
    """An exception that cannot be copied."""

    def __init__(self, one, two):
        super().__init__(one)


def test_functions_that_fail_on_workers(client):
    lock = threading.Lock()

    def fails(batch):
        raise OfTwo("of the caller", 2)

    with prepared(oracle.complete(9), client, partition="hash2d", parts=2) as graph:
        with pytest.raises(
            InputError, match=r"cannot be sent to workers .TypeError: cannot pickle '_thread.lock' object"
        ):
            graph.survey(lambda batch: lock)
        with pytest.raises(OfTwo, match="of the caller"):
            graph.survey(fails)
        assert graph.survey(lambda batch: len(batch["u"])) == 84


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


# checkpoints

SIGNED = pd.DataFrame(oracle.complete(24), columns=["src", "dst"]).assign(
    sign=lambda frame: 1 - 2 * (frame.src * frame.dst % 3 % 2), time=lambda frame: frame.src * 7 % 50 + frame.dst
)
GRAPH = {"partition": "hash2d", "parts": 2, "splits": 2}
TASKS = 16
LARGEST = dasktc.Fold(int, max, max)


def resumable(frame=SIGNED, client=None, **options):
    return dasktc.prepare(
        frame, client, edge_columns=["sign", "time"], directed=True, backend="cpu", **keywords(**GRAPH | options)
    )  # fmt: skip


def degrees(batch):
    """A result with an array of floats: triangles of each vertex, weighted."""
    ends = np.concatenate([batch[role] for role in "uvw"])
    return pd.Series(1.5, index=ends).groupby(level=0).sum()


def largest(batch):
    return int(batch["time_uv"].max())


SURVEYS = {
    "survey": lambda graph, **more: graph.survey(degrees, **more),
    "fold": lambda graph, **more: graph.survey(largest, ["time"], reduce=LARGEST, **more),
    "types": lambda graph, **more: graph.triangle_types({vertex: vertex % 3 for vertex in range(24)}, **more),
    "signs": lambda graph, **more: graph.signed_triangles("sign", **more),
    "times": lambda graph, **more: graph.temporal_triangles("time", window=9, **more).histogram,
    "triads": lambda graph, **more: graph.triad_census(isolated=3, **more),
}


@pytest.fixture
def visited(monkeypatch):
    """The tasks that were visited in this process."""
    ran, visit = [], surveys._visited
    monkeypatch.setattr(surveys, "_visited", lambda job, *rest: ran.append(job) or visit(job, *rest))
    return ran


def broken_off(ask, folder, after, graph=None):
    """Run a survey that ends with an error once it has so many results."""

    def progress(stage, done, total):
        if done == after and total == TASKS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(graph or resumable(), checkpoint=folder, progress=progress)


@pytest.mark.parametrize("name", SURVEYS)
def test_a_survey_goes_on_where_it_was_cut_short(tmp_path, visited, name):
    ask = SURVEYS[name]
    known = str(ask(resumable()))
    visited.clear()
    for after in (0, 5, 11):
        broken_off(ask, tmp_path, after)
    assert len(visited) == len(set(visited)) == 11
    seen = []
    found = ask(resumable(), checkpoint=tmp_path, progress=lambda *step: seen.append(step[1:]))
    assert (str(found), len(visited), len(set(visited))) == (known, TASKS, TASKS)
    assert seen[-6:] == [(done, TASKS) for done in range(11, TASKS + 1)]
    assert str(ask(resumable(), checkpoint=tmp_path)) == known
    assert len(visited) == TASKS


def test_a_survey_goes_on_after_the_death_of_a_worker_and_here(tmp_path, client, visited):
    """The function kills its worker, once; of the tasks that ended nothing is lost, here or on the cluster."""
    flag = str(tmp_path / "died")

    def deadly(batch):
        if not os.path.exists(flag):
            open(flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return len(batch["u"])

    broken_off(partial(dasktc.Graph.survey, function=deadly), tmp_path / "kept", 9, resumable(client=client))
    assert os.path.exists(flag)
    assert resumable().survey(deadly, checkpoint=tmp_path / "kept") == 2024
    assert len(visited) == TASKS - 9
    assert resumable(client=client).survey(deadly, checkpoint=tmp_path / "kept") == 2024


def test_a_checkpoint_of_another_survey_is_refused(tmp_path):
    graph, names = resumable(), ["time"]
    graph.survey(degrees, names, checkpoint=tmp_path)
    before = (tmp_path / FILE).read_bytes()

    def refused(reason, ask=graph.survey, *args, **more):
        with pytest.raises(
            InputError, match=rf"is of another (survey|count|question): {reason}; give the options"
        ) as caught:
            ask(*args, checkpoint=tmp_path, **more)
        assert "\n" not in str(caught.value)
        assert (tmp_path / FILE).read_bytes() == before

    code = r"\(compared are its code, and what of its module that uses\)"
    refused(rf"function degrees \w+ there, function largest \w+ here {code}", graph.survey, largest, names)
    refused(rf"reduce sum there, reduce int, max, max \w+ here {code}", graph.survey, degrees, names, reduce=LARGEST)
    refused(r"columns \w+ there, columns \w+ here", graph.survey, degrees)
    refused(r"columns \w+ there, columns \w+ here", graph.survey, degrees, ["sign"])
    changed = resumable(SIGNED.assign(time=lambda frame: frame.time + (frame.index == 200)))
    refused(r"columns \w+ there, columns \w+ here", changed.survey, degrees, names)
    refused("graph .* there, .* here", resumable(SIGNED[1:]).survey, degrees, names)
    refused("splits 2 there, splits 3 here", resumable(splits=3).survey, degrees, names)
    refused("question survey there, question signed triangles here", graph.signed_triangles, "sign")
    refused("question survey there, question not given here", graph.triangle_count)
    graph.triangle_count(checkpoint=tmp_path / "count")
    with pytest.raises(InputError, match=r"another survey: question not given there, .*question survey here"):
        graph.survey(degrees, names, checkpoint=tmp_path / "count")
    graph.temporal_triangles("time", window=9, checkpoint=tmp_path / "times")
    with pytest.raises(
        InputError, match=r"function TimeCounts\(window=9\) there, function TimeCounts\(window=0\) here"
    ):
        graph.temporal_triangles("time", checkpoint=tmp_path / "times")


def test_a_census_of_other_directions_is_refused(tmp_path):
    ends = SIGNED[["src", "dst"]]
    turned = ends.assign(src=ends.dst, dst=ends.src).where(ends.index.to_series() % 2 == 0, ends)
    graph, other = (dasktc.prepare(frame, directed=True, method=dasktc.Method(splits=2)) for frame in (ends, turned))
    known = graph.triad_census()
    assert graph.triad_census(checkpoint=tmp_path) == known != other.triad_census()
    with pytest.raises(InputError, match=r"is of another question: columns \w+ there, columns \w+ here"):
        other.triad_census(checkpoint=tmp_path)
    assert graph.triad_census(checkpoint=tmp_path) == known


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda line: line | {"result": "AAAA"}, r"the result of task \[.*\] cannot be read \('Error -3"),
        (lambda line: line | {"result": "no base 64"}, r"the result of task \[.*\] cannot be read"),
        (lambda line: line | {"result": 5}, "line 4 has an impossible result, 5"),
        (lambda line: {name: line[name] for name in line if name != "result"}, "line 4 is no object of .*, result"),
        (lambda line: line | {"task": [9] * 7}, "task .* is none of this count's 16"),
    ],
)
def test_a_damaged_result_is_refused(tmp_path, visited, change, reason):
    resumable().survey(degrees, checkpoint=tmp_path)
    lines = (tmp_path / FILE).read_bytes().splitlines()
    lines[3] = checkpoint._line(change(json.loads(lines[3].rpartition(b"\t")[0]))).rstrip()
    (tmp_path / FILE).write_bytes(b"\n".join(lines) + b"\n")
    before = visited.copy()
    with pytest.raises(InputError, match=rf"checkpoint .*{FILE} cannot be trusted: {reason}.*; choose another folder"):
        resumable().survey(degrees, checkpoint=tmp_path)
    assert visited == before


def test_a_torn_result_is_made_again(tmp_path, visited):
    known = resumable().survey(degrees, checkpoint=tmp_path)
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-20])
    assert resumable().survey(degrees, checkpoint=tmp_path).equals(known)
    assert len(visited) == TASKS + 1


def test_results_that_cannot_be_kept(tmp_path):
    fold = dasktc.Fold(lambda: None, lambda known, more: lambda: more, lambda results: results[-1])
    with pytest.raises(InputError, match="a survey's result of type function cannot be kept in a checkpoint"):
        resumable().survey(len, reduce=fold, checkpoint=tmp_path)
    with pytest.raises(InputError, match="shapes"):
        resumable().survey(lambda batch: batch["u"], checkpoint=tmp_path / "shapes")
    assert resumable().survey(degrees, checkpoint=tmp_path / "free").sum() == 1.5 * 3 * 2024  # no lock is left
    assert prepared([]).survey(lambda batch: len(batch["u"]), checkpoint=tmp_path / "empty") == 0
    with pytest.raises(InputError, match="checkpoint=5 is of type int"):
        resumable().survey(degrees, checkpoint=5)


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
def test_sums(kind):
    function, expected = RESULTS[kind]
    found = retuned(prepared(oracle.complete(9)), survey_batch=3).survey(function)
    assert found == expected
    assert type(found) is type(expected)


def test_sums_of_arrays_and_frames():
    graph = retuned(prepared(oracle.complete(9)), survey_batch=3)
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


def test_sums_by_an_index_with_missing_labels():
    graph = retuned(prepared(oracle.complete(9)), survey_batch=3)
    by_label = graph.survey(lambda b: pd.Series(1.0, index=np.where(b["u"] == b["u"].max(), np.nan, 1.0)))
    assert by_label.index.isna().tolist() == [False, True]
    assert by_label.sum() == 84
    repeated = SUM.combine([pd.Series([1, 2, 4], index=[np.nan, np.nan, 3.0])])
    assert repeated.to_list() == [4, 3]
    two_levels = pd.Series([1, 2], index=pd.MultiIndex.from_tuples([(0, None), (0, None)]))
    assert SUM.combine([two_levels, two_levels]).to_list() == [6]


def test_a_missing_number_stays_missing_in_every_kind_of_sum():
    array = np.array([1.0, np.nan])
    for kind in (np.asarray, pd.Series, lambda values: pd.DataFrame({"n": values})):
        total = np.ravel(SUM.combine([kind(array), kind(array)]))
        np.testing.assert_array_equal(total, [2.0, np.nan])


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
        (lambda batch: pd.DataFrame({"1" if batch["u"][0] % 2 else 1: [1]}), "returned frames with the columns"),
        (lambda batch: pd.Series([1, 2], index=["a", 1]), "an index of the types int and str"),
    ],
)
def test_refused_results(function, reason):
    with pytest.raises(InputError, match=reason):
        retuned(prepared(oracle.complete(11)), survey_batch=3).survey(function)


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
    with pytest.raises(InputError, match=r"row 1 of labels holds .* where a value is expected"):
        graph.triangle_types({0: "x", 1: "\ud800", 2: "x", 3: "x"})
    with pytest.raises(InputError, match=r"row 0 of `labels` holds \(0, 1\) where an id is expected"):
        graph.triangle_types({(0, 1): "x"})
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
