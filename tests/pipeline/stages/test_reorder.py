"""The orders of ids by visits, and relabelled edges, against the rule of TRUST written out vertex by vertex."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dasktc.pipeline.stages.edge_keys import pack, unpack
from dasktc.pipeline.stages.orient import inverse, order_by, total
from dasktc.pipeline.stages.reorder import (
    LARGE_DEGREE,
    by_band_and_visit,
    by_visit,
    collective_degree,
    first_visit,
    relabel,
    take,
    visit_keys,
)
from dasktc.pipeline.stages.shards import joined
from tests.support.oracle import complete, multigraphs, star
from tests.support.slow_pipeline import CPU, expected_order, orientation, oriented_keys, random_edges, skewed_edges


def reordered(edges, parts, large):
    """The dense id of each new id, of both orders, from partitions of the oriented edges."""
    keys, outward, shift = oriented_keys(edges)
    pieces, order = np.array_split(keys, parts), np.array(orientation(edges).order, dtype="int32")
    sums = total([collective_degree(piece, outward, shift, CPU) for piece in pieces])
    visit = inverse(order_by(sums, CPU), CPU)
    first = joined([first_visit(piece, visit, len(order), shift, CPU) for piece in pieces], "minimum", CPU)
    ranks = by_visit(outward, first, order, CPU), by_band_and_visit(outward, first, order, CPU, large)
    for banded, of_vertices in enumerate(ranks):
        sorted_keys = np.argsort(visit_keys([outward, first, order], len(order), shift, bool(banded), large))
        assert sorted_keys.tolist() == of_vertices.tolist(), "as shards sort them"
    return [order[of_vertices].tolist() for of_vertices in ranks]


@given(
    edges=multigraphs(max_vertices=20, max_edges=120), parts=st.integers(1, 4), large=st.sampled_from([2, 3, 5, 100])
)
@example(edges=skewed_edges(400, 3_000, 1), parts=3, large=100)
@example(edges=complete(125) + star(300), parts=3, large=100)
@example(edges=random_edges(230, 30_000, 2), parts=2, large=100)
def test_collective_orders_of_any_multigraph(edges, parts, large):
    """With a lower limit, small graphs also fill all bands."""
    slow, (unbanded, banded) = orientation(edges), reordered(edges, parts, large)
    assert unbanded == expected_order(slow, "collective")
    assert banded == expected_order(slow, "collective-banded", large)


def test_bands_are_above_100_then_2_to_100_then_below_2():
    """In K_125 the vertex of rank r has out-degree r, so both limits are met exactly."""
    out = orientation(complete(125)).out
    bands = [
        0 if len(out[v]) > 100 else 1 if len(out[v]) >= 2 else 2 for v in reordered(complete(125), 1, LARGE_DEGREE)[1]
    ]
    assert bands == sorted(bands)
    assert [bands.count(b) for b in (0, 1, 2)] == [24, 99, 2]


def test_collective_numbers_whole_lists_whatever_their_out_degrees():
    """1 points to 0, 2 and 3, of which 0 has no out-neighbours: in bands it comes after all others."""
    edges = [(1, 0), (1, 2), (1, 3), (0, 4), (0, 5), (0, 6), (2, 3), (2, 7), (3, 8), (3, 9), (2, 9), (2, 8)]
    (unbanded, banded), out = reordered(edges, 1, LARGE_DEGREE), orientation(edges).out
    first = max(out, key=lambda u: sum(len(out[v]) for v in out[u]))
    assert unbanded[: len(out[first])] == out[first]
    assert banded != unbanded


@pytest.mark.parametrize("size", [0, 1, 100])
def test_edges_keep_their_positions_when_their_ends_are_relabelled(size):
    rng = np.random.default_rng(size)
    place, ends = rng.permutation(100).astype("int32"), rng.integers(0, 100, (2, size))
    found = relabel(pack(*ends, 7), place, 7, CPU)
    assert [end.tolist() for end in unpack(found, 7)] == take(place, ends).tolist()
