"""Orientation: degrees, ranks, directed keys and facts of partitions, against the rule vertex by vertex."""

from collections import Counter
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dasktc.backends.kernel import SMALL_ROW
from dasktc.pipeline.stages import orient
from dasktc.pipeline.stages.edge_keys import pack, unpack
from tests.support.oracle import complete, multigraphs
from tests.support.slow_pipeline import CPU, canonical_keys, orientation, random_edges, skewed_edges


@pytest.mark.parametrize("gap", [1, 3], ids=["all ids have edges", "most have none"])
@given(edges=multigraphs(), parts=st.integers(1, 4), cuts=st.sampled_from([0, 1, 5]))
@example(edges=[*complete(30), *skewed_edges(90, 700, 2)], parts=3, cuts=7)
def test_edges_point_to_the_end_of_higher_degree_and_ties_to_the_smaller_id(gap, edges, parts, cuts):
    slow, (keys, shift) = orientation(edges), canonical_keys(edges, gap)
    vertices, pieces = len(slow.ids), np.array_split(keys, parts)
    none = orient.zero_degrees(gap * vertices, CPU)
    degrees = [orient.add_degrees(none.copy(), piece, shift, CPU) for piece in pieces]
    rank = orient.ranks_of(list(degrees), CPU)
    directed = [orient.oriented(piece, rank, shift, CPU) for piece in pieces]
    vectors = [
        orient.sum_of(list(degrees)),
        orient.inverse(rank, CPU),
        orient.add_sources(none.copy(), np.concatenate(directed), shift, CPU),
    ]

    order, rows = orient.dense_ids(vectors, vertices, CPU).tolist(), [len(slow.out[v]) for v in slow.order]
    assert order == slow.order
    assert orient.out_degrees(vectors, vertices, CPU).tolist() == rows
    assert orient.in_degrees(vectors, vertices, CPU).tolist() == [slow.in_degree[v] for v in order]
    source, target = unpack(np.concatenate(directed), shift)
    assert {(order[u], order[v]) for u, v in zip(source, target, strict=True)} == slow.edges
    assert (source > target).all()

    totals = CPU.vertices.totals(*vectors)
    assert totals == (vertices, len(keys), slow.wedges, max(rows, default=0))
    facts, lengths = orient.facts_of(vectors[2], totals, cuts, CPU), Counter(rows)
    assert facts[:3] == totals[:3]
    assert len(facts.lengths) > SMALL_ROW
    assert facts.lengths.tolist() == [lengths[length] for length in range(len(facts.lengths))]
    wanted, sums = [len(keys) * cut // cuts for cut in range(cuts + 1)] if cuts else [], list(accumulate(rows))
    assert facts.cuts == [sum(of_rows < sum_of_cut for of_rows in sums) for sum_of_cut in wanted]


@given(edges=multigraphs(), ranges=st.integers(1, 5), count=st.integers(1, 3))
def test_every_way_to_direct_keys_gives_the_same(edges, ranges, count):
    """In place, and in slices of ranges of rows; the borders come from samples, here of all keys."""
    keys, shift = canonical_keys(edges)
    degree = orient.add_degrees(orient.zero_degrees(len(orientation(edges).ids), CPU), keys, shift, CPU)
    rank, starts, _ = orient.ranks_and_starts([degree], [keys], [1], ranges, shift, CPU)
    directed = orient.oriented(keys, rank, shift, CPU)
    assert starts == orient.row_starts([keys], [1], rank, ranges, shift, CPU)
    assert orient.oriented_in_place(keys.copy(), rank, shift, CPU).tolist() == directed.tolist()
    slices = orient.oriented_slices(keys, rank, starts, shift, CPU)
    assert [sorted(of_range.tolist()) for of_range in slices] == [
        sorted(key for key in directed.tolist() if low <= key < high)
        for low, high in pairwise([0, *starts, 1 << 2 * shift])
    ]
    outward, residues = orient.no_sums(len(degree), CPU)
    for some in np.array_split(directed, count):
        orient.add_sums([outward, residues], np.array_split(some, 2), shift, CPU)
    ends = list(zip(*(end.tolist() for end in unpack(directed, shift)), strict=True))
    modulus, of_sources = orient.RESIDUES, Counter(u for u, _ in ends)
    counts = Counter((u % modulus, v % modulus) for u, v in ends)
    assert residues.tolist() == [counts[u, v] for u in range(modulus) for v in range(modulus)]
    assert outward.tolist() == [of_sources[u] for u in range(len(degree))]


def test_ranges_of_rows_have_about_equally_many_edges():
    edges, shift = np.array(sorted(random_edges(1_000, 60_000, 3))), 10
    low, high = edges.min(axis=1), edges.max(axis=1)
    rank = np.random.default_rng(1).permutation(1 << shift).astype("int32")
    keys = pack(low, high, shift)[low != high]
    rows = np.maximum(rank[keys >> shift], rank[keys & ((1 << shift) - 1)])
    for count in (1, 2, 7):
        middle = len(keys) // 3  # of which every second key is sampled
        samples, weights = [keys[:middle:20], keys[middle::40]], [middle, len(keys) - middle]
        starts = orient.row_starts(samples, weights, rank, count, shift, CPU)
        assert [start % (1 << shift) for start in starts] == [0] * (count - 1), "a slab begins with a row"
        firsts = orient.first_rows(keys[::10].copy(), rank, count, shift, CPU)
        for borders in ([0, *(start >> shift for start in starts)], firsts):
            held = np.histogram(rows, [*borders, 1 << shift])[0]
            assert held.max() <= 1.1 * len(rows) / count
    assert orient.row_starts([keys[:0]], [0], rank, 3, shift, CPU) == [0, 0]
    assert orient.first_rows(keys[:0], rank, 3, shift, CPU) == [0]


@given(st.lists(st.integers(0, 5), max_size=80) | st.lists(st.integers(0, 5) | st.integers(0, 2**63 - 1), max_size=50))
@example([2**62, 0, 2**62 - 1, 2**62, 1])
@example([2**63 - 1, 0, 2**63 - 2, 2**63 - 1, 1])
def test_order_by_is_a_stable_descending_sort(weights):
    """Small weights are counted; large ones leave no bits for the id in one key, and are sorted more slowly."""
    expected = sorted(range(len(weights)), key=lambda i: (-weights[i], i))
    assert orient.order_by(np.array(weights, dtype="int64"), CPU).tolist() == expected
