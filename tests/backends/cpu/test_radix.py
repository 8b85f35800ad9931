"""Keys dealt to buckets: rows, batches and memory."""

import os
import signal
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.backends.cpu import radix
from dasktc.executors.base import CPU


def test_keys_between_borders():
    keys = np.random.default_rng(1).integers(0, 100, 20_000)
    assert CPU.edges.between(keys, 20, 30).tolist() == [key for key in keys.tolist() if 20 <= key < 30]


@pytest.mark.parametrize("columns", [1, 7, 64, 1000])
@pytest.mark.parametrize("batch", [1, 300, 1 << 16])
def test_rows_are_written_batch_by_batch(columns, batch):
    """Batches end anywhere, also within a row; some rows are empty, also the first and the last ones."""
    draw = np.random.default_rng(columns)
    start, rows = 5 * columns, 300
    keys = np.sort(draw.integers(9 * columns, (rows - 2) * columns, 20_000))
    buckets = radix.dealt([draw.permutation(keys)], (rows + 5) * columns, batch=batch)
    assert batch > len(keys) or len(buckets) > 1
    offsets, found = buckets.rows(start, rows - 5, columns)
    assert np.array_equal(found, keys % columns)
    assert np.array_equal(offsets, np.searchsorted(keys, start + columns * np.arange(rows - 4)))
    once = CPU.edges.rows(keys, start, rows - 5, columns)
    assert np.array_equal(once[0], offsets)
    assert np.array_equal(once[1], found)


@given(st.integers(1, 2**50), st.lists(st.integers(0, 3), max_size=4), st.integers(0, 52), st.integers(0, 99))
def test_merged_keys_ascend_but_for_their_lowest_bits(bound, sizes, low, seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(0, bound, (0, 7, 1_500, 90_000)[size]) for size in sizes]
    every = np.concatenate([np.empty(0, np.int64), *arrays])
    merged = radix.merge(list(arrays), bound, low)
    assert (np.diff(merged >> low) >= 0).all()
    assert (np.sort(merged) == np.sort(every)).all()


def test_an_array_is_freed_once_its_keys_are_dealt():
    """Else all keys and the array to which they are dealt would be in memory together."""
    arrays = [np.arange(number, radix.BATCH * 8, 8) for number in range(8)]
    alive, counts = [weakref.ref(array) for array in arrays], []

    def calls(function, inputs, *shared):
        results = []
        inputs.reverse()
        while inputs:
            results.append(function(inputs.pop(), *shared))
            counts.append(sum(ref() is not None for ref in alive))
        return results

    buckets = radix.dealt(arrays, radix.BATCH * 8, (0, radix.BATCH * 8), calls)
    assert len(buckets.keys) == radix.BATCH * 8
    assert counts[-8:] == [7, 6, 5, 4, 3, 2, 1, 0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_that_is_forked_while_repeats_are_subtracted_counts(monkeypatch):
    begun, end, subtract, here = threading.Event(), threading.Event(), radix.subtract_ends, os.getpid()

    def wait_and_subtract(*args):
        if os.getpid() == here:
            begun.set()
            end.wait(20)
        subtract(*args)

    def count():
        return int(dasktc.triangle_count([(0, 1), (1, 0), (1, 2), (2, 0)], backend="cpu", threads=1))

    monkeypatch.setattr(radix, "subtract_ends", wait_and_subtract)
    with ThreadPoolExecutor(1) as pool:
        triangles = pool.submit(count)
        assert begun.wait(20)
        child = os.fork()
        if not child:
            signal.alarm(20)
            os._exit(0 if count() == 1 else 1)
        status = os.waitpid(child, 0)[1]
        end.set()
        assert (status, triangles.result()) == (0, 1)
