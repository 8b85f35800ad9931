"""Any multigraph, counted in every way, gives the number of the oracle."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dasktc
from dasktc.options import Method
from tests.support.keywords import keywords
from tests.support.oracle import GRAPHS, clean, messy, multigraphs, support, text_multigraphs, triangles
from tests.support.slow_pipeline import (
    EVERY_KERNEL,
    EVERY_PARTITION,
    EVERY_REORDER,
    is_by_rows,
    orientation,
    pairwise_cover,
    random_edges,
    skewed_edges,
    source_of,
)
from tests.support.tiers import once, some

EXTREME = [(-(2**63), 2**63 - 1), (2**63 - 1, 0), (0, -(2**63))]


def facts(result):
    dropped = result.loops_dropped, result.duplicates_dropped
    return result.triangles, result.vertices, result.edges, *dropped, result.stats.wedges


def expected_facts(edges):
    """The expected result of `facts`, from the edges as they were written, with the wedges by degrees and by rows."""
    simple, loops = clean(edges), sum(u == v for u, v in edges)
    vertices = len(frozenset().union(*simple))
    dropped = loops, len(edges) - loops - len(simple)
    return (
        triangles(edges),
        vertices,
        len(simple),
        *dropped,
        [orientation(edges, by_rows).wedges for by_rows in (False, True)],
    )


def assert_facts(result, expected):
    *found, wedges = facts(result)
    assert tuple(found) == expected[:-1]
    known = expected[-1][is_by_rows(result.plan.partition, result.reorder)]
    if result.plan.partition == "proxy":
        assert wedges <= known  # a proxy's row has lost the edges that lead out of the part
    else:
        assert wedges == known


def every_kernel(source, reorder, partition, **how):
    """Count with every kernel on a graph that is prepared once."""
    graph = dasktc.prepare(source, backend="cpu", **keywords(reorder=reorder, **partition))
    for kernel in EVERY_KERNEL:
        result = graph.triangle_count(kernel=kernel, **how)
        assert {record.job.kernel for record in result._records} == {result.kernel} == {kernel}
        yield result


@pytest.mark.parametrize("reorder", EVERY_REORDER)
@given(multigraphs(), st.sampled_from(EVERY_PARTITION))
@example(messy(EXTREME), EVERY_PARTITION[-1])
@example([], EVERY_PARTITION[0])
def test_every_partition_counts_what_the_oracle_counts(reorder, edges, partition):
    source, expected = source_of(edges, parts=2), expected_facts(edges)
    for result in every_kernel(source, reorder, partition, verify=1.0):
        assert_facts(result, expected)
        assert result.stats.verified == len(result._records) == result.plan.tasks


@pytest.mark.parametrize("reorder", some(EVERY_REORDER, lambda reorder: reorder == "collective"))
@given(text_multigraphs(), st.sampled_from(EVERY_PARTITION))
@example([("", "0"), ("0", "00"), ("00", ""), ("\U0010ffff", "\uffff")], EVERY_PARTITION[-1])
def test_text_ids(reorder, edges, partition):
    source, expected = source_of(edges, "text", parts=2), expected_facts(edges)
    for result in every_kernel(source, reorder, partition):
        assert_facts(result, expected)


PAIRWISE = pairwise_cover(EVERY_KERNEL, EVERY_PARTITION, EVERY_REORDER)
NAMED = {name: (edges, count) for name, edges, count in GRAPHS}


def ways(every, names, name):
    """A sixth of all pairs, or by default of those with each value once; all graphs together cover all of them."""
    place = list(names).index(name)
    return PAIRWISE[place % 6 :: 6] if every else once(PAIRWISE)[place % 3 :: 3]


both_tiers = pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "all"])


@both_tiers
@pytest.mark.parametrize("name", NAMED)
def test_named_graphs(name, every):
    edges, count = NAMED[name]
    assert triangles(edges) == count
    source, expected = source_of(edges, parts=3), expected_facts(edges)
    assert expected[0] == count
    for kernel, partition, reorder in ways(every, NAMED, name):
        assert_facts(dasktc.triangle_count(source, **keywords(kernel=kernel, reorder=reorder, **partition)), expected)


LARGER = {
    "uniform": random_edges(600, 12_000, 1),
    "skewed": skewed_edges(5_000, 20_000, 2),
    "dense": random_edges(180, 40_000, 3),
}


@both_tiers
@pytest.mark.parametrize("name", LARGER)
def test_larger_graphs(name, every):
    source, expected = source_of(LARGER[name], parts=4), expected_facts(LARGER[name])
    for kernel, partition, reorder in ways(every, LARGER, name):
        result = dasktc.triangle_count(source, verify=0.2, **keywords(kernel=kernel, reorder=reorder, **partition))
        assert_facts(result, expected)


@given(multigraphs(), st.randoms(use_true_random=False), st.integers(1, 9))
def test_order_direction_repetition_and_parts_change_nothing(edges, rng, parts):
    repeated = [(v, u) if rng.random() < 0.5 else (u, v) for u, v in edges + rng.choices(edges or [(0, 0)], k=7)]
    rng.shuffle(repeated)
    plain, other = (facts(dasktc.triangle_count(s)) for s in (source_of(edges), source_of(repeated, parts=parts)))
    assert plain[:3] == other[:3]
    assert sum(other[2:5]) == len(repeated)


@given(multigraphs(), st.data())
def test_relabelling_changes_nothing(edges, data):
    ids = sorted({end for edge in edges for end in edge})
    any_int64 = st.integers(-(2**63), 2**63 - 1)
    drawn = data.draw(st.lists(any_int64, min_size=len(ids), max_size=len(ids), unique=True))
    label = dict(zip(ids, drawn, strict=True))
    named = {old: f"n{new}" for old, new in label.items()}
    plain = facts(dasktc.triangle_count(source_of(edges)))
    for names, kind in ((label, "int"), (named, "text")):
        other = facts(dasktc.triangle_count(source_of([(names[u], names[v]) for u, v in edges], kind)))
        assert other[:5] == plain[:5]


@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 50), st.integers(0, 2**32))
def test_n_and_m_change_nothing(vertices, parts, splits, seed):
    """More parts than vertices are taken as V, more splits than rows of an index block as these."""
    edges = random_edges(vertices, 4 * vertices, seed)
    result = dasktc.triangle_count(source_of(edges), method=Method(partition="hash2d", parts=parts, splits=splits))
    assert_facts(result, expected_facts(edges))
    plan, n = result.plan, min(parts, max(1, result.vertices))
    assert (plan.parts, plan.splits) == (n, min(splits, max(1, -(-result.vertices // n))))
    assert plan.tasks == max(1, n**3 - plan.empty_triples) * plan.splits


PROBED = {"skewed": skewed_edges(300, 2_000, 4), "random": random_edges(60, 500, 5)}


@pytest.mark.parametrize(
    ("name", "reorder"), some(product(PROBED, EVERY_REORDER), lambda *case: case == ("skewed", "degree"))
)
def test_probes_are_what_lengths_and_positions_say(name, reorder):
    """The graphs take turns at the partitions."""
    from dasktc.backends import get_backend
    from dasktc.counting.tasks import task_of

    turn = [*PROBED].index(name)
    for partition in (*EVERY_PARTITION[turn::4], *EVERY_PARTITION[3 - turn :: 4]):
        graph = dasktc.prepare(source_of(PROBED[name]), backend="cpu", **keywords(reorder=reorder, **partition))
        for kernel in EVERY_KERNEL:
            result = graph.triangle_count(kernel=kernel)
            for record in result._records:
                task = task_of(record.job, *(graph._context.blocks[place] for place in record.job.triple.places))
                assert record.count.probes == get_backend("cpu").expected_probes(task, kernel)
            assert result.stats.probes == sum(record.count.probes for record in result._records) > 0


def test_the_answer_does_not_depend_on_the_width_of_ids():
    edges = random_edges(200, 3_000, 6)
    wide = np.array(edges, dtype="int64")
    results = [
        dasktc.triangle_count(array) for array in (wide, wide.astype("int32"), wide.astype("uint8"), wide + 2**62)
    ]
    assert len({facts(result) for result in results}) == 1


def test_counts_are_python_integers():
    result = dasktc.triangle_count(source_of(GRAPHS[-3][1]))
    numbers = [*facts(result), result.stats.probes, result.plan.bytes_total, result.plan.block_edges_max, int(result)]
    assert {type(number) for number in numbers} == {int}
    assert range(10_000)[result] == result.triangles


def test_the_oracles_agree():
    """The slow orientation keeps the wedges that the degrees imply, and every edge once."""
    edges = random_edges(30, 200, 7)
    slow = orientation(edges)
    names = {frozenset((slow.ids[u], slow.ids[v])) for u, v in slow.edges}
    assert names == clean(edges) == set(support(edges))
    assert slow.wedges == sum(slow.in_degree[v] * len(slow.out[v]) for v in slow.out)
    assert sum(Counter(map(len, slow.out.values())).values()) == len(slow.ids)
