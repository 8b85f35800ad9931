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
    add_neighbours,
    arcs_of_block,
    directions_of,
    distinct_codes,
    largest_loop,
    loops_of,
    neighbours_of_block,
    no_neighbours,
    roots_of,
)
from dasktc.pipeline.stages.columns import Deal, candidates
from dasktc.pipeline.stages.edge_keys import shift_of
from dasktc.planning.grid import Axis, Layout, Shape

ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(-3, 5)), max_size=40)
VERTICES, SHIFT = 10, shift_of(10)


def block_of(edges):
    """The single block of edges (u, v)."""
    lengths = np.bincount([u for u, _ in edges], minlength=VERTICES)
    columns = np.array([v for _, v in sorted(edges)], "int32")
    return OrientedCSR(np.concatenate([[0], np.cumsum(lengths)]), columns, ordered=all(u > v for u, v in edges))


def ends_of(frame, place=None):
    """The ids of the blocks of both ends of rows."""
    ends = frame[["src", "dst"]].to_numpy(np.int64).T
    return list(ends if place is None else place.take(ends))


@given(
    ROWS,
    st.booleans(),
    st.sampled_from(["sum", "last", None, "no weights"]),
    st.integers(0, 9),
    st.integers(1, 9),
    st.booleans(),
)
def test_rows_of_an_edge_are_combined(rows, directed, duplicates, seed, cut, ordered):
    """Weights are combined by direction, where there is one; the roots of both directions are added."""
    weighted = duplicates != "no weights"
    if not weighted:
        directed = True
    options = AttributeOptions("w" if weighted else None, directed, duplicates if weighted else None)
    place = np.random.default_rng(seed).permutation(VERTICES)
    frame = pd.DataFrame(rows, columns=["src", "dst", "weight"]).astype({"weight": float})
    proper = frame[frame.src != frame.dst]
    arcs = [(int(place[u]), int(place[v]), w) for u, v, w in proper.itertuples(index=False)]
    edges = {(max(u, v), min(u, v)) if ordered else ((u, v) if (u + v) % 2 else (v, u)) for u, v, _ in arcs}
    edges = sorted(edges - {(v, u) for u, v in edges if u < v and (v, u) in edges})
    block = block_of(edges)
    layout = Layout(Axis(VERTICES, 1), (Axis(VERTICES, 1),), Shape(VERTICES, SHIFT, ordered))
    deal, values = Deal(SHIFT, layout, 1, (0, cut)), np.asarray if weighted else None
    dealt = [candidates(some, ends_of(some, place), deal, values) for some in (proper[:7], proper[7:])]
    spans = (0, cut), (cut, VERTICES)
    found = [
        arcs_of_block(block, [shares[k] for shares in dealt], SHIFT, span, options) for k, span in enumerate(spans)
    ]

    wanted, several = {}, False
    for u, v, weight in arcs:
        ends = (u, v) if directed else (max(u, v), min(u, v))
        several |= wanted.get(ends, weight) != weight
        wanted[ends] = weight + (wanted.get(ends, 0) if duplicates == "sum" else 0)
    clashes = [facts.clash for _, facts in found if facts.clash is not None]
    assert bool(clashes) == (duplicates is None and several)
    if clashes:
        u, v, one, other = clashes[0]
        assert one != other
        assert {one, other} <= {w for a, b, w in arcs if {a, b} == {u, v}}
        return
    assert sum(facts.rows for _, facts in found) == len(arcs)
    combined = np.concatenate([arrays for arrays, _ in found], axis=-1)
    if directed:
        directions = directions_of(combined)
        assert directions.tolist() == [ALONG * ((u, v) in wanted) | AGAINST * ((v, u) in wanted) for u, v in edges]
        shards = neighbours_of_block(block, directions, VERTICES, (0, 1), np.arange(VERTICES), (0, cut, VERTICES))
        parts = [
            add_neighbours(no_neighbours(end - first), shares)
            for shares, (first, end) in zip(shards, spans, strict=True)
        ]
        out, into, both = np.concatenate(parts, axis=1)
        known = set(wanted)
        assert both.tolist() == [sum(u == w and (v, u) in known for u, v in known) for w in range(VERTICES)]
        assert out.tolist() == [sum(u == w and (v, u) not in known for u, v in known) for w in range(VERTICES)]
        assert into.tolist() == [sum(v == w and (v, u) not in known for u, v in known) for w in range(VERTICES)]
    if weighted:
        assert max((facts.largest for _, facts in found)) == max(wanted.values(), default=-np.inf)
        both = [{(u, v), (v, u)} & set(wanted) for u, v in edges]
        roots = [sum(cbrt(wanted[ends] / 4) for ends in of) for of in both]
        assert roots_of(combined, 4.0).tolist() == pytest.approx(roots, abs=1e-15)
        assert roots_of(combined, 0.0).tolist() == pytest.approx([root * cbrt(4) for root in roots], abs=1e-15)


def test_directions_follow_a_blocks_own_edges():
    """Rows 0 and 2 of stride 2: the block's edges are (0, 3), (2, 1) and (2, 3)."""
    block = OrientedCSR(np.array([0, 1, 3]), np.array([1, 0, 1], "int32"), 2, 0, 1)
    frame = pd.DataFrame({"src": [1, 3, 0, 3, 2], "dst": [2, 0, 1, 2, 3]})
    axis = Axis(4, 2)
    deal = Deal(2, Layout(axis, (axis,), Shape(4, 2, False)), 4)
    shares = candidates(frame, ends_of(frame), deal, None)
    options = AttributeOptions(None, True)
    directions, facts = arcs_of_block(block, [shares[1]], 2, (0, 4), options)
    assert directions.tolist() == [AGAINST, AGAINST, ALONG | AGAINST]
    assert facts.rows == 4
    with pytest.raises(CountError, match=r"2 edges of block \(0, 0\) have no row in a second pass over the source"):
        arcs_of_block(block, [candidates(frame[3:], ends_of(frame[3:]), deal, None)[1]], 2, (0, 4), options)


def test_the_largest_ids_have_codes_below_64_bits():
    """The edge between the last two of 2^31 - 1 vertices, from the smaller id to the larger, in two rows."""
    vertices = 2**31 - 1
    u, v, shift = vertices - 1, vertices - 2, shift_of(vertices)
    frame = pd.DataFrame({"src": [v, v], "dst": [u, u], "weight": [2.0, 6.0]})
    axis = Axis(vertices, 1)
    deal = Deal(shift, Layout(axis, (axis,), Shape(vertices, shift, True)), 1, (0, v))
    shares = candidates(frame, ends_of(frame), deal, np.asarray)
    assert [len(codes) for codes, _ in shares] == [0, 2]
    block = OrientedCSR(np.array([0, 1]), np.array([v], "int32"), 1, u, 0, ordered=True)
    arcs, facts = arcs_of_block(block, [shares[1]], shift, (v, vertices), AttributeOptions("w", True, "sum"))
    assert directions_of(arcs).tolist() == [AGAINST]
    assert roots_of(arcs, 1.0).tolist() == [2]
    assert facts == (2, 8.0, None)


def test_members_have_their_neighbours_added():
    """Rows and columns of a part are vertices 1, 4 and 5, with the edges 4 - 1 and 5 → 4."""
    block = OrientedCSR(np.array([0, 0, 1, 2]), np.array([0, 1], "int32"), members=np.array([1, 4, 5]))
    directions, members = np.array([3, ALONG], "uint8"), block.members
    first, second = neighbours_of_block(block, directions, 3, members, members, (0, 4, 6))
    found = np.concatenate([add_neighbours(no_neighbours(4), first), add_neighbours(no_neighbours(2), second)], axis=1)
    assert found.tolist() == [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 1, 0]]


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
    frames = [loops_of(rows) for rows in frames]
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
    frames = [pd.DataFrame({"src": [0, 0], "weight": weights})]
    with pytest.raises(InputError, match="sum of an edge's weights passes what float64 holds"):
        distinct_codes(codes.copy(), weights, 8, "sum")
    with pytest.raises(InputError, match="sum of an edge's weights passes what float64 holds"):
        largest_loop(frames, AttributeOptions("w", False, "sum"))
    assert largest_loop(frames, AttributeOptions("w", False, "last")) == weights[1]
    assert distinct_codes(codes, weights, 8, "last")[1].tolist() == [weights[1]]


def test_codes_of_many_bits_are_sorted_too():
    codes = np.array([5, 1 << 60, 5, 0, 1 << 60], np.int64)
    for bound in (1 << 62, (1 << 62) + 1):
        found, weights, rows, _ = distinct_codes(codes.copy(), np.arange(5.0), bound, "last")
        assert found.tolist() == [0, 5, 1 << 60]
        assert weights.tolist() == [3, 2, 4]
        assert rows.tolist() == [0, 1, 3]
