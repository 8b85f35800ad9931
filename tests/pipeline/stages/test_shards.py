"""Sharded vectors: entries, updates and values of shards, and partitions as graphs of their own, against lists."""

import tracemalloc
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.errors import InputError
from dasktc.pipeline.stages import shards as sharding
from dasktc.pipeline.stages.edge_keys import pack, shift_of, unpack
from dasktc.pipeline.stages.orient import order_by
from tests.support.slow_pipeline import CPU

INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=50), st.integers(0, 9))
def test_a_partition_is_a_graph_of_its_own_vertices(pairs, seed):
    pairs = [(u, v) for u, v in pairs if u != v]
    keys = pack(*np.array(pairs, "int64").reshape(-1, 2).T, 7)
    own, degree = sorted({end for pair in pairs for end in pair}), Counter(end for pair in pairs for end in pair)
    ids, local, degrees = sharding.with_degrees(keys, 7, CPU)
    assert ids.tolist() == own
    assert degrees.tolist() == [degree[v] for v in own]
    assert [(own[u], own[v]) for u, v in zip(*unpack(local, 7), strict=True)] == pairs
    assert [array.tolist() for array in sharding.localised(keys, 7, CPU)] == [own, local.tolist()]
    rank = np.random.default_rng(seed).permutation(99)[: len(own)].astype("int32")
    rank_of = dict(zip(own, rank.tolist(), strict=True))
    directed, ranks, sources = sharding.oriented_locally(local, rank, 7, CPU)
    expected = [sorted((rank_of[u], rank_of[v]), reverse=True) for u, v in pairs]
    assert [[*edge] for edge in zip(*(end.tolist() for end in unpack(directed, 7)), strict=True)] == expected
    assert ranks.tolist() == sorted(rank.tolist())
    of_sources = Counter(u for u, _ in expected)
    assert sources.tolist() == [of_sources[u] for u in ranks.tolist()]
    both = [local, [degrees[:3], degrees[3:]], [rank]]
    assert sharding.with_entries(both, lambda *given: given[1:4], 5, CPU)[2] == 5
    assert [of.tolist() for of in sharding.with_entries(both, lambda _, *of: of[:2], CPU)] == [
        degrees.tolist(),
        rank.tolist(),
    ]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 5))
def test_weights_are_sorted_as_one_vector_is(weights, count):
    """Shards' keys ascend with descending weight, ties with the id; in-degrees come back from sorted keys."""
    vector, starts, bits = (
        np.array(weights, dtype="int64"),
        sharding.even(len(weights), count),
        shift_of(len(weights)),
    )
    shards = [(vector[first:end], first) for first, end in pairwise(starts)]
    top = max(sharding.largest(*shard) for shard in shards)
    assert top == max(weights)
    keys = np.concatenate([sharding.weight_keys(*shard, top, bits, CPU) for shard in shards])
    ascending = sharding.sorted_keys(keys, (top + 1) << bits, CPU)
    assert ascending.tolist() == sorted(keys.tolist())
    order = sharding.tie_of(ascending, bits)
    assert order.tolist() == order_by(vector, CPU).tolist()
    outward = np.arange(len(weights))
    assert sharding.in_degree_of([ascending, outward], top, bits).tolist() == (vector[order] - outward).tolist()
    placed = sharding.in_place([keys, [ascending.searchsorted(keys)[np.argsort(keys)]]], CPU)
    assert placed.tolist() == keys.argsort().argsort().tolist()


def test_weights_that_do_not_fit_64_bits_are_refused():
    with pytest.raises(InputError, match=r"4,294,967,296 weights of 2,147,483,648 vertices do not fit 64 bits"):
        sharding.refuse_beyond(2**32, 31)
    sharding.refuse_beyond(2**31, 31)


@given(st.lists(st.tuples(st.integers(0, 29), st.integers(0, 9)), max_size=40), st.integers(1, 6))
def test_entries_of_shards_are_taken_and_updated(updates, count):
    """`put` combines each list's updates, whose places are distinct, one after another."""
    starts, rng = sharding.even(30, count), np.random.default_rng(count)
    vector = rng.integers(0, 9, 30)
    lists = [sorted(dict(updates[first::3]).items()) for first in range(3)]
    arrays = [np.array(of, dtype="int64").reshape(-1, 2).T for of in lists]
    for how, start in (("add", 0), ("minimum", 7), ("bitwise_or", 0)):
        wanted = [start] * 30
        for of in lists:
            for place, value in of:
                wanted[place] = {"add": wanted[place] + value, "minimum": min(wanted[place], value)}.get(
                    how, wanted[place] | value
                )
        cuts = [sharding.cut_pairs(list(pair), starts[1:-1], CPU) for pair in arrays]
        shards = [
            sharding.put(sharding.filled(end - first, start, CPU), [pieces[number] for pieces in cuts], first, how, CPU)
            for number, (first, end) in enumerate(pairwise(starts))
        ]
        assert np.concatenate(shards).tolist() == wanted
    for places, _ in arrays:
        pieces = sharding.integers(CPU).cut(places, starts[1:-1])
        found = [
            sharding.entries_of(ids, vector[first:end], first)
            for ids, (first, end) in zip(pieces, pairwise(starts), strict=True)
        ]
        assert np.concatenate(found).tolist() == vector[places].tolist()
        turned = rng.permutation(len(places))
        by_id = sharding.by_place([vector[places][turned], places[turned]])
        assert [array.tolist() for array in by_id] == [places.tolist(), vector[places].tolist()]


@given(st.lists(INTEGERS, min_size=1, max_size=4), st.integers(1, 4))
def test_values_of_lists_are_united_and_numbered(lists, count):
    values, ops = sorted(set(sum(lists, []))), sharding.integers(CPU)  # noqa: RUF017
    arrays = [np.array(sorted(set(of)), dtype="int64") for of in lists]
    assert sharding.unite([*arrays], CPU).tolist() == ops.unite([*arrays]).tolist() == values
    starts = sharding.even(len(values), min(count, max(1, len(values))))
    shards = [np.array(values[first:end], dtype="int64") for first, end in pairwise(starts)]
    for array in arrays:
        pieces = ops.cut(array, [shard[0] for shard in shards[1:]])
        numbers = [
            sharding.number_values(piece, shard, first, ops)
            for piece, shard, first in zip(pieces, shards, starts[:-1], strict=True)
        ]
        assert [values[number] for of in numbers for number in of] == array.tolist()
    pieces = [piece for array in arrays for piece in ops.cut(array, [shard[0] for shard in shards[1:]])]
    found = sharding.number_lists(pieces, np.array(values, dtype="int64"), 0, ops)
    assert [[values[number] for number in of] for of in found] == [piece.tolist() for piece in pieces]


def test_about_a_share_of_values_is_sampled_and_the_same_of_every_list():
    values, ops = np.arange(100_000) * 2**40, sharding.integers(CPU)
    hashes = sharding.mixed(values)
    assert len(np.unique(hashes)) == len(values)
    assert hashes.max() < 2**63
    sample = sharding.sample_values(values, 0.1, ops)
    assert 9_000 < len(sample) < 11_000
    assert sharding.sample_values(values[50_000:], 0.1, ops).tolist() == sample[sample >= values[50_000]].tolist()
    assert sharding.sample_values(values, 1, ops).tolist() == values.tolist()


@given(st.lists(st.lists(st.integers(0, 255), min_size=5, max_size=5), min_size=1, max_size=4))
def test_vectors_are_joined_and_stay_as_they_are(rows):
    vectors = [np.array(row) for row in rows]
    for function, wanted in (
        (lambda given: sharding.joined(given, "minimum", CPU), [min(column) for column in zip(*rows, strict=True)]),
        (sharding.logical_or, [int(np.bitwise_or.reduce(column)) for column in zip(*rows, strict=True)]),
    ):
        left = list(vectors)
        assert function(left).tolist() == wanted
        assert left == []
        assert [vector.tolist() for vector in vectors] == rows


def test_shards_of_any_size_are_even():
    for size, count in ((0, 1), (7, 3), (100, 7), (2**31, 5)):
        starts = sharding.even(size, count)
        lengths = [end - first for first, end in pairwise(starts)]
        assert (len(lengths), sum(lengths), starts[0]) == (count, size, 0)
        assert max(lengths) - min(lengths) <= 1


def test_a_merge_holds_no_list_beside_what_it_makes_of_them():
    """Beside its lists a merge takes one copy of them, from which they are gone when the distinct values are made."""
    tracemalloc.start()
    lists = [np.arange(100_000) for _ in range(3)]
    (merged, _), peak = (sharding.unite(lists, CPU), lists), tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert merged.tolist() == list(range(100_000))
    assert lists == []
    assert peak < 2 * 3 * 800_000 + 50_000
