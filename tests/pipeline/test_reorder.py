"""Orientation and the five orders of ids, against the rules written out vertex by vertex."""

from __future__ import annotations

from itertools import product
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dasktc.executors.base import CPU
from dasktc.pipeline.stages import reorder
from dasktc.pipeline.stages.orient import order_by, wedges_of
from tests.support.oracle import complete, multigraphs, star
from tests.support.slow_pipeline import EVERY_REORDER, by_dense_id, orientation, prepared, random_edges, skewed_edges
from tests.support.tiers import some


def sequential_ids(out, rank, bands):
    """TRUST, sections 4.1 and 5.1: visit u by descending collective degree and number its neighbours.

    Bands follow one another, each given by its lowest and highest out-degree; vertices without in-neighbours are last.
    """
    collective = {u: sum(len(out[v]) for v in out[u]) for u in out}
    visits = sorted(out, key=lambda u: (-collective[u], rank[u]))
    numbered = []
    for low, high in bands:
        for v in [v for u in visits for v in out[u]] + sorted(out):
            if low <= len(out[v]) <= high and v not in numbered:
                numbered.append(v)
    return numbered


def expected_order(slow, how, large=100):
    """The dense id of each new id."""
    if how == "degree":
        return slow.order
    if how == "none":
        return sorted(slow.out)
    rank = {dense: place for place, dense in enumerate(slow.order)}
    if how == "indegree":
        return sorted(slow.out, key=lambda v: (-slow.in_degree[v], rank[v]))
    banded = ((large + 1, len(slow.out)), (2, large), (0, 1))
    return sequential_ids(slow.out, rank, banded if how == "collective-banded" else ((0, len(slow.out)),))


def check(edges, how, parts=1, large=100):
    slow = orientation(edges)
    found = prepared(edges, parts, reorder=how)
    order, pairs = by_dense_id(found)
    assert order == expected_order(slow, how, large)
    assert pairs == slow.edges
    assert found.graph.out_degree.whole.tolist() == [len(slow.out[v]) for v in order]
    assert found.graph.in_degree.whole.tolist() == [slow.in_degree[v] for v in order]
    assert found.graph.wedges == slow.wedges


@pytest.mark.parametrize("how", EVERY_REORDER)
@given(edges=multigraphs(), parts=st.integers(1, 4))
def test_order_of_any_multigraph(how, edges, parts):
    check(edges, how, parts)


@pytest.mark.parametrize("large", [2, 3, 5])
@given(edges=multigraphs(max_vertices=20, max_edges=120), parts=st.integers(1, 3))
def test_collective_order_in_three_bands(large, edges, parts):
    """With a lower limit, small graphs also fill all bands."""
    with mock.patch.object(reorder, "LARGE_DEGREE", large):
        check(edges, "collective-banded", parts, large)


LARGER = {
    "skewed": skewed_edges(400, 3_000, 1),
    "out-degrees 0 to 124, each once": complete(125) + star(300),
    "dense": random_edges(230, 30_000, 2),
}


@pytest.mark.parametrize(("name", "how"), some(product(LARGER, EVERY_REORDER), lambda name, how: name != "dense"))
def test_order_of_larger_graphs(name, how):
    check(LARGER[name], how, parts=3)


def test_bands_are_above_100_then_2_to_100_then_below_2():
    """In K_125 the vertex of rank r has out-degree r, so both limits are met exactly."""
    found = prepared(complete(125), reorder="collective-banded")
    out = found.graph.out_degree.whole.tolist()
    bands = [0 if d > 100 else 1 if d >= 2 else 2 for d in out]
    assert bands == sorted(bands)
    assert [bands.count(b) for b in (0, 1, 2)] == [24, 99, 2]


def test_collective_numbers_whole_lists_whatever_their_out_degrees():
    """1 points to 0, 2 and 3, of which 0 has no out-neighbours: in bands it comes after all others."""
    edges = [(1, 0), (1, 2), (1, 3), (0, 4), (0, 5), (0, 6), (2, 3), (2, 7), (3, 8), (3, 9), (2, 9), (2, 8)]
    unbanded, banded = (by_dense_id(prepared(edges, reorder=how))[0] for how in ("collective", "collective-banded"))
    out = orientation(edges).out
    first = max(out, key=lambda u: sum(len(out[v]) for v in out[u]))
    assert unbanded[: len(out[first])] == out[first]
    assert banded != unbanded


@given(multigraphs())
def test_edges_point_from_low_to_high_degree_and_ties_to_the_smaller_id(edges):
    slow = orientation(edges)
    _, pairs = by_dense_id(prepared(edges))
    degree = {v: len(slow.out[v]) + slow.in_degree[v] for v in slow.out}
    assert all((degree[u], -u) < (degree[v], -v) for u, v in pairs)


@pytest.mark.parametrize("how", EVERY_REORDER)
def test_only_degree_order_says_that_columns_lie_below_rows(how):
    found = prepared(random_edges(40, 200, 3), reorder=how)
    assert found.partition.layout.graph.ordered == (how == "degree")
    if found.partition.layout.graph.ordered:
        keys, mask = np.concatenate(list(found.graph.partitions)), (1 << found.partition.shift) - 1
        assert (keys & mask < keys >> found.partition.shift).all()


@given(st.lists(st.integers(0, 5) | st.integers(0, 2**62), max_size=50))
def test_order_by_is_a_stable_descending_sort(weights):
    """Large weights leave no bits for the id in one key: the slower sort must give the same order."""
    expected = sorted(range(len(weights)), key=lambda i: (-weights[i], i))
    assert order_by(np.array(weights, dtype="int64"), CPU).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)), max_size=8))
@example([(2**31 - 1, 2**31 - 1)] * 8)
def test_wedges_do_not_overflow(degrees):
    """Eight vertices may imply 2^65 wedges, although no such graph has 2^43 edges."""
    inward, outward = np.array(degrees, dtype="int64").reshape(-1, 2).T
    assert wedges_of(inward, outward) == sum(i * o for i, o in degrees)


def test_auto_is_collective_for_trust_and_degree_for_the_rest():
    from dasktc.options import Options
    from dasktc.registry import kernel_names

    chosen = {kernel: Options(kernel=kernel).chosen_reorder for kernel in ("auto", *kernel_names())}
    assert chosen.pop("trust") == "collective"
    assert set(chosen.values()) == {"degree"}
    assert Options(kernel="trust", reorder="none").chosen_reorder == "none"
