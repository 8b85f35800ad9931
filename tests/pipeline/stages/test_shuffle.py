"""Shuffle: every way to cut an input gives the keys of its ranges, and samples make ranges of about equal size."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.pipeline.stages import shuffle
from tests.support.slow_pipeline import CPU, key_arrays
from tests.support.tiers import some

ITEMS = st.one_of(key_arrays(), st.lists(key_arrays(), min_size=1, max_size=3))


def joined(arrays):
    return sorted(np.concatenate([np.empty(0, "int64"), *arrays]).tolist())


@given(ITEMS, st.lists(st.integers(0, 210), max_size=5).map(sorted), st.sampled_from([None, 2]))
def test_every_way_to_cut_an_input_gives_the_keys_of_its_ranges(item, starts, factor):
    """From keys, or what keys are made of; from one array, or several."""
    arrays = item if isinstance(item, list) else [item]
    keys = [key * (factor or 1) for key in joined(arrays)]
    borders = [0, *starts, 210]
    wanted = [[key for key in keys if low <= key < high] for low, high in pairwise(borders)]
    make = factor and (lambda given: [array * factor for array in given] if isinstance(given, list) else given * factor)
    assert [joined(of) for of in shuffle.all_ranges(item, make, starts, 210, CPU)] == wanted
    for (low, high), of_range in zip(pairwise(borders), wanted, strict=True):
        for everything, together in ((False, True), (False, False), (True, False)):
            pick = shuffle.Pick(make, (low, high), CPU, everything, together)
            assert joined(pick(item)) == (keys if everything else of_range)
            assert len(pick(item)) == 1 or not together
        came, own = [[np.array([7])], [np.array([5]), np.array([3])]], [item]
        found = shuffle.reduce_range(
            own, came, shuffle.Pick(make, (low, high), CPU, False, True), lambda of, more: joined(of) + more, ([1],)
        )
        assert found == [*sorted([3, 5, 7, *of_range]), 1]
        assert own == came == []
    if not isinstance(item, list):
        times = factor and (lambda array, by: array * by)
        found = shuffle.cut_input(item, times, starts, 210, CPU, *([factor] if factor else []))
        assert [joined([piece]) for piece in found] == wanted
        assert times is None or joined([shuffle.keys_of_input(times, (factor,), item)]) == keys
    pair = [list(arrays), (factor or 1,)]
    slices = shuffle.reduce_slices(pair, lambda of, by: [array * by for array in of])
    assert pair == []
    assert [joined([piece]) for piece in shuffle.cut_together(slices, starts, 210, CPU)] == wanted
    assert slices == []


def borders_of(sizes, ranges):
    """Lengths of the ranges that samples give of arrays with keys of their own, and the number of sampled keys."""
    rng = np.random.default_rng(1)
    arrays = [rng.integers(number << 40, (number + 1) << 40, size) for number, size in enumerate(sizes)]
    samples = [shuffle.sample(keys, shuffle.sample_step(len(keys), ranges, len(sizes))) for keys in arrays]
    starts = shuffle.quantiles(samples, list(sizes), ranges)
    held = np.histogram(np.concatenate(arrays), [0, *starts, len(sizes) << 40])[0]
    return held, sum(map(len, samples))


@pytest.mark.parametrize("sizes", [[1 << 17] * 8, [1 << 20, (1 << 18) - 1], [1 << 19, 1_000, 0, 7]], ids=str)
@pytest.mark.parametrize("ranges", some([2, 3, 8], lambda ranges: ranges == 3))
def test_ranges_are_about_equal_whatever_the_sizes_of_the_parts(sizes, ranges):
    held, _ = borders_of(sizes, ranges)
    assert len(held) == ranges
    assert max(held) < 1.5 * sum(held) / ranges


@pytest.mark.parametrize("size", [1 << 15, 1 << 17])
def test_samples_do_not_grow_with_the_edges(size):
    """Some 2^14 keys reach the client, whatever the size of a part; ranges then differ by a few percent."""
    held, sampled = borders_of([size] * 10, 4)
    assert 0 < sampled <= shuffle.WANTED_SAMPLES + 10
    assert max(held) < 1.05 * sum(held) / 4


def test_weighted_quantiles():
    """A sample of one part may stand for more keys than that of another."""
    samples = [np.arange(0, 100, 10), np.arange(100, 200)]
    assert shuffle.quantiles(samples, [1_000, 1_000], 2) == [100]
    assert shuffle.quantiles(samples, [1_000, 0], 4) == [20, 50, 70]
    assert shuffle.quantiles([np.arange(0)], [0], 4) == shuffle.quantiles(samples, [1_000, 1_000], 1) == []
