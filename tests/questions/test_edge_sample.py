"""Estimates from a sample of edges: what is in it, by an oracle in Python, and that their intervals hold."""

import json
import math
import os
from collections import Counter
from dataclasses import replace
from statistics import NormalDist

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc import datasets, generate
from dasktc.bench.measure import columns_of
from dasktc.cli.main import cli
from dasktc.errors import InputError
from dasktc.questions import edge_sample
from dasktc.questions.edge_sample import Seen, score_upper
from dasktc.questions.estimate import hash_key
from tests.support import oracle
from tests.support.keywords import keywords
from tests.support.slow_pipeline import PLANS, skewed_edges, source_of
from tests.support.tiers import some

Z = NormalDist().inv_cdf(0.975)
EDGES = skewed_edges(90, 1500, 7)


def frame(edges):
    return pd.DataFrame(edges, columns=["src", "dst"])


def colour(vertex, colours, seed):
    """splitmix64 of an id, or of the hash of a text, in Python's integers."""
    if isinstance(vertex, str):
        vertex = int(pd.util.hash_array(np.array([vertex], object), categorize=False)[0]) >> 1
    x = (vertex + hash_key(seed, 0)) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return (x >> 32) * colours >> 32


def sample_of(edges, colours, seed):
    return [(u, v) for u, v in edges if colour(u, colours, seed) == colour(v, colours, seed)]


def book(triangles, first=0):
    """Triangles on one edge."""
    ends = [(first + end, first + page) for page in range(2, triangles + 2) for end in (0, 1)]
    return [(first, first + 1), *ends]


def estimate(source, **options):
    return dasktc.estimate(source, backend="cpu", **keywords(**options))


def numbers(result):
    return result.value, result.low, result.high, result.closed, result.edges, result.why


@given(edges=oracle.multigraphs() | oracle.text_multigraphs(), colours=st.integers(2, 5), seed=st.integers(-3, 3))
def test_the_sample_has_the_edges_whose_ends_have_one_colour(edges, colours, seed):
    found, sample = estimate(frame(edges), share=1 / colours, seed=seed), sample_of(edges, colours, seed)
    triangles = oracle.triangles(sample)
    assert (found.value, found.closed, found.share) == (colours**2 * triangles, triangles, 1 / colours)
    distinct = {frozenset(edge) for edge in sample if edge[0] != edge[1]}
    assert (found.edges, found.vertices) == (len(distinct), len(frozenset().union(*distinct)))
    assert (found.read.rows, found.loops_dropped) == (len(edges), sum(u == v for u, v in edges))
    assert found.duplicates_dropped == len(sample) - found.loops_dropped - len(distinct)
    assert found.low <= found.value <= found.high
    assert not found.exact


@pytest.mark.parametrize("ids", [int, str])
def test_repeated_rows_loops_and_directions_change_nothing(ids):
    edges = [(ids(u), ids(v)) for u, v in EDGES if u != v]
    assert numbers(estimate(frame(edges), share=0.25)) == numbers(estimate(frame(oracle.messy(edges)), share=0.25))


@pytest.mark.parametrize("options", [*PLANS, {"threads": 3}], ids=str)
def test_no_plan_changes_the_estimate(options):
    assert numbers(estimate(frame(EDGES), share=0.5, **options)) == numbers(estimate(frame(EDGES), share=0.5))


def test_parts_of_files_are_sampled_alike(tmp_path):
    """Rows of an edge in different files, as text, in Parquet or in an array, in one process and within memory."""
    whole = frame(EDGES)
    whole.to_csv(tmp_path / "a.csv", index=False)
    whole[::-1].to_csv(tmp_path / "b.csv", index=False)
    whole.to_parquet(tmp_path / "c.parquet")
    known = numbers(estimate(whole, share=0.3))
    assert numbers(estimate(np.array(EDGES), share=0.3)) == known
    assert numbers(estimate([tmp_path / "a.csv", tmp_path / "b.csv"], share=0.3)) == known
    assert numbers(estimate(tmp_path / "c.parquet", share=0.3, memory="20MB", work_dir=tmp_path)) == known


@pytest.mark.parametrize(("distribute", "ids"), [("always", str), ("never", int)])
def test_partitions_on_workers(client, distribute, ids):
    """Tasks on all workers, and one call on one."""
    edges = frame([(ids(u), ids(v)) for u, v in EDGES])
    found = estimate(dd.from_pandas(edges, npartitions=3), client=client, share=0.5, distribute=distribute)
    assert numbers(found) == numbers(estimate(edges, share=0.5))


@pytest.mark.parametrize("ids", [int, str])
def test_text_and_wide_ids_on_a_device(emulated, tmp_path, ids):
    for shift in (0, 2**40):
        edges = frame([(ids(u + shift), ids(v + shift)) for u, v in EDGES])
        files = [tmp_path / f"{shift}-{backend}.parquet" for backend in ("cuda", "cpu")]
        found = dasktc.estimate(edges, share=0.5, backend="cuda", per_vertex=files[0])
        assert numbers(found) == numbers(estimate(edges, share=0.5, per_vertex=files[1]))
        pd.testing.assert_frame_equal(*map(pd.read_parquet, files))


def test_a_share_of_one_counts(tmp_path):
    out = tmp_path / "vertices.csv"
    found = estimate(frame(EDGES), share=1, per_vertex=out)
    triangles = oracle.triangles(EDGES)
    assert (found.value, found.low, found.high, found.exact, found.half_width) == (*[triangles] * 3, True, 0)
    table = pd.read_csv(out, index_col="vertex")
    assert table.triangles.to_dict() == oracle.triangles_per_vertex(EDGES)
    assert not table.standard_error.any()
    assert "counted exactly" in repr(found)


@pytest.mark.parametrize(("share", "colours"), [(0.7, 1), (0.6, 2), (0.4, 2), (0.3, 3), (0.05, 20), (1e-4, 10_000)])
def test_a_share_is_one_of_a_whole_number(share, colours):
    assert estimate(frame(EDGES), share=share).share == 1 / colours


def variance(edges, colours):
    pairs = sum(math.comb(number, 2) for number in oracle.support(edges).values())
    return oracle.triangles(edges) * (colours**2 - 1) + 2 * pairs * (colours - 1)


@pytest.mark.parametrize("colours", some([2, 4], lambda colours: colours == 4))
def test_estimates_have_the_stated_mean_and_variance(colours):
    found = np.array([estimate(frame(EDGES), share=1 / colours, seed=seed).value for seed in range(1000, 1200)])
    known, spread = oracle.triangles(EDGES), variance(EDGES, colours) ** 0.5
    assert abs(found.mean() - known) < 3 * spread / 200**0.5
    assert 0.8 < found.std() / spread < 1.25


@given(
    value=st.integers(0, 10**9), pairs=st.integers(0, 10**12), support=st.floats(0, 1e5), colours=st.integers(2, 500),
    z=st.floats(0.1, 4),
)  # fmt: skip
def test_ends_of_an_interval_are_z_standard_deviations_away(value, pairs, support, colours, z):
    upper = score_upper(pairs, colours * (colours + support) ** 2, z)
    assert (upper - pairs) ** 2 == pytest.approx(z * z * colours * (colours + support) ** 2 * upper, rel=1e-6)
    low, high = Seen(value, pairs, support).interval(colours, z)
    for end in (low, high):
        spread = z * (end * (colours**2 - 1) + 2 * (colours - 1) * upper) ** 0.5
        assert abs(end - value) == pytest.approx(spread, rel=1e-4) or end == 0
    assert low <= value <= high


def test_what_the_interval_is_made_of(monkeypatch):
    """Triangles, pairs of them on an edge and the second largest degree are those of the sample."""
    seen, interval = [], Seen.interval
    monkeypatch.setattr(Seen, "interval", lambda self, *rest: seen.append(self) or interval(self, *rest))
    found, sample = estimate(frame(EDGES), share=0.5, seed=3), {*map(frozenset, sample_of(EDGES, 2, 3))}
    edges = [tuple(edge) for edge in sample if len(edge) == 2]
    degrees = sorted(Counter(end for edge in edges for end in edge).values())
    pairs = sum(math.comb(number, 2) for number in oracle.support(edges).values())
    assert seen[0] == (4 * oracle.triangles(edges), 8 * pairs, 2 * score_upper(degrees[-2], 1, Z))
    low, high = interval(seen[0], 2, Z)
    assert (found.low, found.high) == (max(found.closed, math.floor(low)), math.ceil(high))


GRAPHS = {
    "five books": [edge for number in range(5) for edge in book(80, 100 * number)],
    "a book": book(300),
    "triangles": [(3 * number + a, 3 * number + b) for number in range(700) for a, b in ((0, 1), (0, 2), (1, 2))],
    "clique": oracle.complete(40),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("share", some([0.5, 0.1], lambda share: share == 0.1))
def test_intervals_hold_where_few_edges_have_all_triangles(name, share):
    edges = GRAPHS[name]
    triangles = oracle.triangles(edges)
    found = [estimate(frame(edges), share=share, seed=seed) for seed in range(60)]
    assert sum(result.low <= triangles <= result.high for result in found) >= 54


@pytest.mark.slow
@pytest.mark.parametrize(
    ("graph", "share", "confidence"),
    [
        (graph, share, (0.8, 0.95)[(row + column) % 2])
        for row, graph in enumerate(["email", "kronecker", "random"])
        for column, share in enumerate([0.5, 0.2, 0.05])
    ],
)
def test_intervals_have_their_coverage(graph, share, confidence):
    source = {  # in memory, as it is read 200 times
        "email": datasets.email,
        "kronecker": lambda: columns_of(generate.kronecker(12), "cpu"),
        "random": lambda: columns_of(generate.random_graph(2_000, 40_000), "cpu"),
    }[graph]()
    triangles = int(dasktc.triangle_count(source, backend="cpu"))
    found = [estimate(source, share=share, seed=seed, confidence=confidence) for seed in range(200)]
    noise = 2.5 * (confidence * (1 - confidence) / 200) ** 0.5
    assert sum(result.low <= triangles <= result.high for result in found) >= 200 * (confidence - noise)


def test_the_share_that_is_told_has_the_error():
    source = generate.kronecker(13)
    first = estimate(source, share=0.1, error=0.05, seed=1)
    assert first.half_width > 0.05
    share = float(first.why.rpartition(" ")[2])
    assert 0.1 < share < 1
    second = estimate(source, share=share, error=0.05, seed=1)
    assert 0.025 < second.half_width < 0.052  # it shows smaller degrees, if anything
    assert "the error is at most" in estimate(source, share=0.5, error=0.5).why
    assert "no share below 1" in estimate(source, share=0.5, error=1e-4).why
    assert "it cannot be told" in estimate(generate.grid3d(6), share=0.5).why


def test_vertices(tmp_path):
    out, seed, colours = tmp_path / "vertices.parquet", 4, 2
    estimate(frame(EDGES), share=0.5, seed=seed, per_vertex=out)
    table, sample = pd.read_parquet(out).set_index("vertex"), sample_of(EDGES, colours, seed)
    known = oracle.triangles_per_vertex([edge for edge in sample if edge[0] != edge[1]])
    assert table.triangles.to_dict() == {vertex: 4 * number for vertex, number in known.items()}
    degrees = Counter(end for edge in {*map(frozenset, sample)} if len(edge) == 2 for end in edge)
    for vertex, row in table.iterrows():
        bound = (known[vertex] + 1) * 4 * (3 + 4 * degrees[vertex])
        assert row.standard_error == pytest.approx(bound**0.5)


@pytest.mark.parametrize("edges", [EDGES, book(60)], ids=["skewed", "book"])
def test_standard_errors_are_bounds(tmp_path, edges):
    """Of the vertex in most triangles, over seeds: the mean square of its errors is less than that of the bounds."""
    known = oracle.triangles_per_vertex([edge for edge in edges if edge[0] != edge[1]])
    vertex, triangles = max(known.items(), key=lambda item: item[1])
    squares, bounds = [], []
    for seed in range(60):
        out = tmp_path / f"{seed}.csv"
        estimate(frame(edges), share=0.25, seed=seed, per_vertex=out)
        row = pd.read_csv(out, index_col="vertex").reindex([vertex]).fillna(0).iloc[0]
        squares.append((row.triangles - triangles) ** 2)
        bounds.append(row.standard_error**2)
    assert np.mean(squares) < np.mean(bounds)


@pytest.mark.parametrize("share", [0, 2, -0.5, "a", math.nan, True, 1e-5])
def test_refused_shares(share):
    with pytest.raises(InputError, match=r"is no share from 0.0001 to 1: give one"):
        estimate(frame(EDGES), share=share)


def test_refused(tmp_path):
    out = tmp_path / "vertices.csv"
    with pytest.raises(InputError, match="is given without a share: wedges do not tell"):
        estimate(frame(EDGES), per_vertex=out)
    estimate(frame(EDGES), share=0.5, per_vertex=out)
    with pytest.raises(InputError, match="exists"):
        estimate(frame(EDGES), share=0.5, per_vertex=out)
    estimate(frame(EDGES), share=0.5, per_vertex=out, force=True)
    with dasktc.prepare(frame(EDGES)) as graph:
        graph.save(tmp_path / "saved")
    with pytest.raises(InputError, match="a saved graph, whose edges are prepared already"):
        estimate(tmp_path / "saved", share=0.5)


def test_estimates_of_vertices_beyond_64_bits_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_sample, "known_triangles", lambda graph: 1 << 61)
    with pytest.raises(InputError, match="could exceed 64 bits: raise share"):
        estimate(frame(EDGES), share=0.5, per_vertex=tmp_path / "out.csv")
    monkeypatch.setattr(edge_sample, "known_triangles", lambda graph: (1 << 61) - 1)
    estimate(frame(EDGES), share=0.5, per_vertex=tmp_path / "out.csv")


def test_command(tmp_path):
    path, out = tmp_path / "graph.csv", tmp_path / "vertices.csv"
    frame(EDGES).to_csv(path, index=False)
    asked = ["estimate", os.fspath(path), "--backend", "cpu", "--share", "0.5", "--seed", "2"]
    answer = json.loads(CliRunner().invoke(cli, [*asked, "--json", "--per-vertex", os.fspath(out)]).stdout)
    known = estimate(frame(EDGES), share=0.5, seed=2)
    assert [answer[name] for name in ("estimate", "low", "high", "share")] == [known.value, known.low, known.high, 0.5]
    assert list(pd.read_csv(out).columns) == ["vertex", "triangles", "standard_error"]
    assert "0.5 of the edges" in CliRunner().invoke(cli, asked).stdout


def test_what_is_known_of_all_edges_is_not_known_of_a_sample(tmp_path):
    """A sample without an edge has no triangle, although the collection tells those of the graph."""
    source = replace(source_of(EDGES), triangles=oracle.triangles(EDGES))
    found = estimate(source, share=1e-4, per_vertex=tmp_path / "vertices.csv")
    assert (found.value, found.low) == (0, 0)
