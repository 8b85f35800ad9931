"""Edge attributes: rows of an edge are combined as a dictionary of edges does it."""

from math import cbrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.backends.csr import OrientedCSR
from dasktc.errors import CountError, InputError
from dasktc.options import AttributeOptions
from dasktc.pipeline.stages.attributes import (
    AGAINST,
    ALONG,
    by_edge,
    coded,
    directed_neighbours,
    distinct_codes,
    joined_rows,
    largest_loop,
    places_in,
    turned,
)
from dasktc.pipeline.stages.edge_keys import shift_of, unpack
from dasktc.pipeline.stages.ids import map_of_integers
from tests.support.slow_pipeline import CPU

ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(-3, 5)), max_size=40)


@given(ROWS, st.booleans(), st.sampled_from(["sum", "last", None, "no weights"]), st.integers(0, 9))
def test_rows_of_an_edge_are_combined(rows, directed, duplicates, seed):
    """Weights are combined by direction, where there is one; the roots of both directions are added."""
    weighted = duplicates != "no weights"
    options = AttributeOptions("w" if weighted else None, directed, duplicates if weighted else None)
    place = np.random.default_rng(seed).permutation(10)
    frame = pd.DataFrame(rows, columns=["src", "dst", "weight"]).astype({"weight": float})
    vertices, shift = map_of_integers(np.arange(10), CPU), shift_of(10)
    made = [coded(some, vertices, place, shift, options) for some in (frame[:7], frame[7:])]
    codes, weights, clash = distinct_codes(*joined_rows(made, weighted), 1 << 2 * shift + 1, options.duplicates)

    wanted, several = {}, False
    for u, v, weight in ((int(place[u]), int(place[v]), float(weight)) for u, v, weight in rows if u != v):
        ends = (u, v) if directed else (max(u, v), min(u, v))
        several |= wanted.get(ends, weight) != weight
        wanted[ends] = weight + (wanted.get(ends, 0) if duplicates == "sum" else 0)
    assert (clash is not None) == (duplicates is None and several)
    if clash is not None:
        position, one, other = clash
        assert codes[position] == codes[position + 1]
        assert one != other
        return
    keys, directions, roots = by_edge(codes, weights, 4.0, directed)
    high, low = unpack(keys, shift)
    edges = list(zip(high.tolist(), low.tolist(), strict=True))
    assert edges == sorted({(max(ends), min(ends)) for ends in wanted})
    if directed:
        bits = [ALONG * ((u, v) in wanted) | AGAINST * ((v, u) in wanted) for u, v in edges]
        assert directions.tolist() == bits
        found = directed_neighbours(keys, directions, shift, 10)
        arcs = set(wanted)
        assert found.both.tolist() == [sum(u == w and (v, u) in arcs for u, v in arcs) for w in range(10)]
        assert found.out.tolist() == [sum(u == w and (v, u) not in arcs for u, v in arcs) for w in range(10)]
        assert found.into.tolist() == [sum(v == w and (v, u) not in arcs for u, v in arcs) for w in range(10)]
    if weighted:
        both = [{(u, v), (v, u)} & set(wanted) for u, v in edges]
        assert roots.tolist() == pytest.approx([sum(cbrt(wanted[ends] / 4) for ends in of) for of in both])


def test_edges_are_found_in_a_block_and_directions_follow_its_own():
    """Rows 0 and 2 of stride 2: the block's edges are (0, 3), (2, 1) and (2, 3)."""
    edges = [(1, 0), (2, 1), (3, 0), (3, 2)]
    keys = np.array([u << 2 | v for u, v in edges])
    block = OrientedCSR(np.array([0, 1, 3]), np.array([1, 0, 1], "int32"), 2, 0, 1)
    places, swapped = places_in(block, keys, 2)
    assert places.tolist() == [2, 1, 3]
    assert swapped.tolist() == [True, False, True]
    assert turned(np.array([ALONG, AGAINST, 3], "uint8"), swapped).tolist() == [AGAINST, AGAINST, 3]
    with pytest.raises(CountError, match="the rows hold 3 edges, the blocks 3: some were lost"):
        places_in(block, keys[:3], 2)
    whole = OrientedCSR(np.array([0, 0, 1, 2, 4]), np.array([0, 1, 0, 2], "int32"), 1, 0, 0)
    assert places_in(whole, keys, 2)[0] == slice(None)


@pytest.mark.parametrize(
    ("duplicates", "weights", "largest"),
    [
        ("sum", [2, 3, 4], 5),
        ("last", [2, 3, 4], 4),
        (None, [3, 3, 4], 4),
        ("sum", [], -np.inf),
        (None, [3, 2, 4], None),
    ],
)
def test_loops_may_have_the_largest_weight(duplicates, weights, largest):
    frame = pd.DataFrame({"src": [1, 1, 2][: len(weights)], "weight": np.array(weights, dtype=float)})
    frames = [frame.assign(dst=frame["src"]), pd.DataFrame({"src": [1], "dst": [2], "weight": [99.0]})]
    options = AttributeOptions("w", False, duplicates)
    if largest is None:
        with pytest.raises(InputError, match="between 1 and itself the weights 2 and 3: which is meant is unclear"):
            largest_loop(frames, options)
    else:
        assert largest_loop(frames, options) == largest


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_beyond_float64_are_refused(sign):
    """Of an edge's rows, and of a loop's."""
    codes, weights = np.array([7, 7]), sign * np.array([1e308, 1e308])
    frames = [pd.DataFrame({"src": [0, 0], "dst": [0, 0], "weight": weights})]
    with pytest.raises(InputError, match="sum of an edge's weights passes what float64 holds"):
        distinct_codes(codes.copy(), weights, 8, "sum")
    with pytest.raises(InputError, match="sum of an edge's weights passes what float64 holds"):
        largest_loop(frames, AttributeOptions("w", False, "sum"))
    assert largest_loop(frames, AttributeOptions("w", False, "last")) == weights[1]
    assert distinct_codes(codes, weights, 8, "last")[1].tolist() == [weights[1]]


def test_codes_of_many_bits_are_sorted_too():
    codes = np.array([5, 1 << 60, 5, 0, 1 << 60], np.int64)
    for bound in (1 << 62, (1 << 62) + 1):
        found, weights, _ = distinct_codes(codes.copy(), np.arange(5.0), bound, "last")
        assert found.tolist() == [0, 5, 1 << 60]
        assert weights.tolist() == [3, 2, 4]
