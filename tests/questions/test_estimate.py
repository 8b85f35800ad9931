"""Estimates from sampled wedges: a sample of all wedges is exact, and intervals have their stated coverage."""

import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc import generate
from dasktc.backends.cpu import wedges as cpu_wedges
from dasktc.backends.csr import BlockTask
from dasktc.backends.cuda import wedges as device_wedges
from dasktc.backends.wedge_sample import Strata
from dasktc.cli.main import cli
from dasktc.errors import CountError, InputError
from dasktc.executors.local import LocalExecutor
from dasktc.io.write import write_edges
from dasktc.options import Method, RunOptions
from dasktc.questions import estimate as estimates
from tests.support import oracle
from tests.support.emulation.host import HostDevice, needs_compiler
from tests.support.keywords import keywords
from tests.support.slow_pipeline import PLANS, changed
from tests.support.tiers import some

REORDERS = ["degree", "collective", "indegree", "none"]


def frame(edges):
    return pd.DataFrame(edges, columns=["src", "dst"])


def every_wedge(graph):
    """The wedges of a graph, and how many of them are closed, from a sample of all wedges."""
    counted = estimates._wedges(graph._context)
    wedges = sum(counted.values())
    return (wedges, *estimates._sample(graph._context, counted, wedges, 1)) if wedges else (0, 0, 0)


@pytest.mark.parametrize(
    ("options", "reorder"),
    some(
        [(options, reorder) for options in PLANS for reorder in REORDERS],
        lambda options, reorder: (PLANS.index(options) - REORDERS.index(reorder)) % 4 == 0,
    ),
)
def test_every_triangle_closes_one_wedge(options, reorder):
    for _, edges, triangles in oracle.GRAPHS:
        wedges, sampled, closed = every_wedge(
            dasktc.prepare(frame(edges), backend="cpu", **keywords(reorder=reorder, **options))
        )
        assert (sampled, closed) == (wedges, triangles)


@given(edges=oracle.multigraphs(), parts=st.integers(1, 3))
def test_every_wedge_of_any_graph(edges, parts):
    graph = dasktc.prepare(frame(edges), backend="cpu", method=Method(partition="hash2d", parts=parts))
    wedges, sampled, closed = every_wedge(graph)
    assert (sampled, closed) == (wedges, oracle.triangles(edges))


@given(wedges=st.integers(1, 4000), width=st.integers(1, 60), cuts=st.lists(st.integers(0, 4000), max_size=6))
def test_triples_share_the_strata(wedges, width, cuts):
    """However wedges are dealt to triples, each sampled one is in exactly one; all have the same probability."""
    borders = sorted({0, wedges, *(cut for cut in cuts if cut < wedges)})
    drawn = [int(cpu_wedges._drawn(k, 7, width)) for k in range(3)]
    assert all(k * width <= wedge < (k + 1) * width for k, wedge in enumerate(drawn))
    counted = {number: end - first for number, (first, end) in enumerate(pairwise(borders))}

    class Name(int):
        index = table = 0

    parts = list(estimates._strata({Name(number): size for number, size in counted.items()}, width, 7, 5))
    for first, end in pairwise(borders):
        for stratum in range(first // width, -(-end // width)):
            assert sum(of.first <= stratum < of.end and of.before == first for _, of in parts) == 1


@needs_compiler
@pytest.mark.parametrize("options", [PLANS[0], PLANS[2]], ids=["whole", "hash2d"])
@pytest.mark.parametrize("reorder", ["degree", "none"])
def test_a_device_tests_the_same_wedges(options, reorder):
    graph = dasktc.prepare(generate.kronecker(8), backend="cpu", **keywords(reorder=reorder, **options))
    before = 0
    for triple in graph.plan.triples():
        task, one = BlockTask(*(graph._context.blocks[place] for place in triple.places)), triple.index == triple.table
        wedges = estimates._wedges_of(triple, "cpu", task.index, task.table)[1]
        for width in (1, 7, 10**6):
            of = Strata(before // width, -(-(before + wedges) // width), before, width, 2**63 + 5, one)
            known = cpu_wedges.closed(task, of)
            assert known[0] == wedges or width > 1
            for reverse in (False, True):
                assert device_wedges.closed(HostDevice(reverse), task, of) == known
        before += wedges


def test_wilson_interval():
    low, high = estimates.wilson(40, 100, 1.96)
    for end in (low, high):  # at its ends a share is 1.96 of its own standard deviations from what was seen
        assert abs(0.4 - end) == pytest.approx(1.96 * (end * (1 - end) / 100) ** 0.5)
    assert estimates.wilson(0, 50, 2)[0] == 0
    assert estimates.wilson(50, 50, 2)[1] == 1


@pytest.mark.parametrize("share", [1e-6, 0.001, 0.01, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("error", [0.001, 0.01, 0.1, 0.6])
@pytest.mark.parametrize("z", [0.7, 1.96, 4])
def test_as_many_wedges_as_the_asked_half_width_needs_and_no_more(share, error, z):
    """The oracle is Wilson's interval, of a share of draws that need not be whole."""

    def half_width(size):
        low, high = estimates.wilson(share * size, size, z)
        return (high - low) / 2

    size, rounding = estimates._needed(share, error, z), 1e-9
    assert half_width(size) <= error * share * (1 + rounding)
    assert size == 1 or half_width(size - 1) >= error * share * (1 - rounding)


@pytest.fixture(scope="module")
def kronecker():
    with dasktc.prepare(generate.kronecker(13), backend="cpu", threads=2) as graph:
        yield graph, int(graph.triangle_count())


def test_an_estimate(kronecker):
    graph, triangles = kronecker
    estimate = graph.estimate(error=0.1, seed=5)
    assert not estimate.exact
    assert estimate.low <= triangles <= estimate.high
    assert 0 < estimate.half_width <= 0.1
    assert estimate.low < estimate.value < estimate.high
    assert estimate.sampled < estimate.wedges
    again, other = graph.estimate(error=0.1, seed=5), graph.estimate(error=0.1, seed=4)
    assert (again.value, again.low) == (estimate.value, estimate.low)
    assert other.value != estimate.value
    assert "interval" in repr(estimate)
    assert str(estimate) == str(estimate.value)


def test_an_estimate_is_no_count(kronecker):
    graph, _ = kronecker
    estimate, count = graph.estimate(error=0.1), graph.triangle_count()
    with pytest.raises(TypeError):
        int(estimate)
    assert not isinstance(estimate, dasktc.TriangleCount)
    shared = set(estimate.to_dict()) & set(count.to_dict())
    assert shared <= {
        "vertices", "edges", "loops_dropped", "duplicates_dropped", "backend", "partition", "workers", "seconds",
        "wedges", "read",
    }  # fmt: skip
    assert "triangles" not in json.loads(json.dumps(estimate.to_dict()))


def test_the_facts_of_the_graph_are_those_of_its_count(kronecker):
    graph, _ = kronecker
    facts = ("vertices", "edges", "loops_dropped", "duplicates_dropped", "backend", "partition", "workers")
    estimate, count = (
        {name: fields[name] for name in facts}
        for fields in (graph.estimate(error=0.1).to_dict(), graph.triangle_count().to_dict())
    )
    assert estimate["loops_dropped"] > 0
    assert estimate == count


@pytest.mark.parametrize(("confidence", "z"), [(0.5, 0.6744897501960817), (0.95, 1.959963984540054)])
def test_value_and_interval_are_those_of_the_sample(kronecker, confidence, z):
    """Wilson's two-sided interval with its ends rounded outwards, and the nearest whole number of triangles."""
    graph, _ = kronecker
    for seed in range(8):
        found = graph.estimate(error=0.1, confidence=confidence, seed=seed)
        assert not found.exact
        share = Fraction(found.closed, found.sampled)
        assert abs(found.value - found.wedges * share) <= Fraction(1, 2)
        low, high = (found.wedges * end for end in estimates.wilson(found.closed, found.sampled, z))
        assert -1e-6 < low - found.low < 1
        assert -1e-6 < found.high - high < 1


def test_the_half_width_is_kept_where_the_second_sample_has_a_smaller_share(kronecker):
    """Large errors need small samples, whose shares differ most from that of the first sample."""
    graph, _ = kronecker
    made = [graph.estimate(error=0.3, seed=seed) for seed in range(150)]
    assert not any(estimate.exact for estimate in made)
    assert sum(estimate.half_width > 0.3 for estimate in made) <= 1


def test_no_sample_has_the_key_of_another(kronecker, monkeypatch):
    """The first sample determines the size of the second, which is drawn apart from it; so are those of other seeds."""
    graph, _ = kronecker
    test, keys = estimates._tested, []

    def noted(triple, of, *blocks):
        keys.append(of.key)
        return test(triple, of, *blocks)

    monkeypatch.setattr(estimates, "_tested", noted)
    for seed in range(-2, 4):
        assert not graph.estimate(error=0.1, seed=seed).exact
    assert len(set(keys)) == 2 * 6


def test_no_more_than_half_of_all_wedges_are_sampled():
    """Squares have an open wedge each, and pairs none: there are many edges, and hardly more wedges than a sample."""
    squares, triangles, pairs = 3600, 630, 100_000
    shapes = [(squares, [(0, 1), (1, 2), (2, 3), (3, 0)]), (triangles, oracle.complete(3)), (pairs, [(0, 1)])]
    first, ends = 0, []
    for number, shape in shapes:
        ends += [np.add.outer(first + 4 * np.arange(number), shape).reshape(-1, 2)]
        first += 4 * number
    estimate = dasktc.estimate(np.concatenate(ends), backend="cpu", error=0.1)
    assert estimate.wedges == squares + triangles
    assert (estimate.value, estimate.exact) == (triangles, True)


@pytest.mark.parametrize("error", [0.1, 1e-3])
def test_where_sampling_does_not_pay_it_counts(kronecker, error):
    graph, triangles = kronecker
    for source, count in ((frame(oracle.complete(20)), 1140), (generate.kronecker(12), 486_234)):
        small = dasktc.estimate(source, backend="cpu", error=error)
        assert (small.value, small.low, small.high, small.exact, small.sampled) == (*[count] * 3, True, 0)
        assert "below 65,536 a first sample alone" in small.why
    estimate = graph.estimate(error=error)
    assert estimate.exact == (error == 1e-3)
    if estimate.exact:
        assert (estimate.value, estimate.low, estimate.high, estimate.half_width) == (triangles,) * 3 + (0,)
        assert "takes as long as the count" in estimate.why
        assert "counted exactly" in repr(estimate)


def test_a_graph_without_triangles():
    torus = dasktc.estimate(generate.grid3d(30), backend="cpu", error=0.1)
    assert (torus.value, torus.exact) == (0, True)
    assert "as many wedges as there are" in torus.why


@pytest.mark.parametrize(
    "bad", [dict(error=0), dict(error=1), dict(error="a"), dict(confidence=1.0), dict(confidence=None), dict(seed=0.5)]
)
def test_refused(bad):
    with pytest.raises(InputError):
        dasktc.estimate(frame([(0, 1)]), **keywords(**bad))


@pytest.mark.parametrize(
    ("sampled", "closed"), [(lambda n: 0, lambda n: 0), (lambda n: n + 2, lambda n: 0), (lambda n: n, lambda n: n + 1)]
)
def test_lost_and_repeated_wedges_and_more_than_all_are_refused(kronecker, monkeypatch, sampled, closed):
    (graph, _), test = kronecker, estimates._tested

    def tested(*given):
        number, _ = test(*given)
        return sampled(number), closed(number)

    monkeypatch.setattr(estimates, "_tested", tested)
    with pytest.raises(CountError, match="wedges were tested, of strata of"):
        graph.estimate(error=0.1)


def test_blocks_that_were_mixed_up_are_refused():
    with dasktc.prepare(generate.kronecker(13), backend="cpu", method=Method(partition="hash2d", parts=2)) as graph:
        blocks = graph._context.blocks
        mixed = changed(graph, blocks=blocks | {(0, 1): blocks[1, 0], (1, 0): blocks[0, 1]})
        with pytest.raises(CountError, match="they were mixed up"):
            mixed.estimate(error=0.1)


@pytest.mark.parametrize("size", [1, 2047, 2048, 1_000_000, 1_500_000])
def test_at_least_as_many_wedges_as_asked_are_tested(kronecker, size):
    graph, _ = kronecker
    counted = estimates._wedges(graph._context)
    sampled, _ = estimates._sample(graph._context, counted, size, 1)
    assert size <= sampled <= 2 * size


def test_the_total_has_every_stage(kronecker):
    for error in (0.1, 1e-3):
        seconds = kronecker[0].estimate(error=error).seconds
        assert seconds["read"] + seconds["prepare"] > 0
        assert seconds["total"] >= sum(seconds[name] for name in seconds if name != "total")


@pytest.mark.parametrize("options", some([PLANS[0], PLANS[2]], lambda of: of is PLANS[2]), ids=["whole", "hash2d"])
def test_on_workers(client, kronecker, options):
    here = dasktc.prepare(generate.kronecker(13), backend="cpu", **keywords(**options)).estimate(error=0.1)
    there = dasktc.estimate(generate.kronecker(13), client, backend="cpu", error=0.1, **keywords(**options))
    assert (there.value, there.low, there.high, there.exact) == (here.value, here.low, here.high, False)


def test_within_memory(tmp_path, kronecker):
    estimate = dasktc.estimate(
        generate.kronecker(13), backend="cpu", memory="16MiB", error=0.1, run=RunOptions(work_dir=tmp_path)
    )
    assert estimate.low <= kronecker[1] <= estimate.high
    assert not list(tmp_path.iterdir())


def test_command(tmp_path):
    path = tmp_path / "graph.txt"
    write_edges(generate.kronecker(13), path, LocalExecutor())
    asked = ["estimate", str(path), "--backend", "cpu", "--error", "0.1"]
    answer = json.loads(CliRunner().invoke(cli, [*asked, "--json"]).stdout)
    assert answer["low"] < answer["estimate"] < answer["high"]
    assert not answer["exact"]
    value, low, high = CliRunner().invoke(cli, [*asked, "--quiet"]).stdout.split()
    assert [int(value), int(low), int(high)] == [answer[name] for name in ("estimate", "low", "high")]
    assert "interval" in CliRunner().invoke(cli, asked).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "error"),
    [(generate.kronecker(16), 0.02), (generate.kronecker(18), 0.01), (generate.random_graph(2_000, 400_000), 0.05)],
    ids=["kronecker 16", "kronecker 18", "random"],
)
def test_intervals_hold_the_count(source, error):
    graph = dasktc.prepare(source, backend="cpu")
    triangles = int(graph.triangle_count())
    made = [graph.estimate(error=error, seed=seed) for seed in range(200)]
    assert not any(estimate.exact for estimate in made)
    assert sum(estimate.low <= triangles <= estimate.high for estimate in made) >= 181
    assert sum(estimate.half_width <= error for estimate in made) >= 190
    mean = sum(estimate.value for estimate in made) / 200
    assert abs(mean / triangles - 1) < error / 200**0.5 * 2.5
