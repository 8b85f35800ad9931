"""Distinct ids, and places of ids among all ids of a graph: by a hash table where they are many, else by a search."""

from __future__ import annotations

import numpy as np
import pytest

from dasktc.backends.cpu.lookup import LEAST_BITS, MANY, distinct, lookup

FAR = 2**62
IDS = {
    "one": [7],
    "negative": [-FAR, -3, -1, 0, 2, FAR],
    "extremes": [-(2**63), -1, 0, 2**63 - 1],
    "equal below 32 bits": [k << 32 for k in range(-40, 300)],
    "equal above 12 bits": range(0, 3000, 3),
    "in steps": range(-5_000_000_000, 5_000_000_000, 12_345_678),
}


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_each_value_is_found(ids, many):
    ids, rng = np.array(ids, "int64"), np.random.default_rng(1)
    expected = np.concatenate([np.arange(len(ids)), rng.integers(0, len(ids), len(ids) * (MANY if many else 2))])
    assert (len(expected) > MANY * len(ids)) == many
    places = lookup(ids, ids[expected])
    assert places.dtype == "int32"
    assert (places == expected).all()
    table = np.stack([ids[expected], ids[expected]], axis=1)  # whose columns are strided
    assert (lookup(ids, table[:, 1]) == expected).all()


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_distinct_values_ascend(ids):
    ids, rng = np.array(ids, "int64"), np.random.default_rng(2)
    values = np.concatenate([ids, ids[rng.integers(0, len(ids), 3 * len(ids))]])
    rng.shuffle(values)
    assert distinct(values).tolist() == sorted({*values.tolist()})
    assert (distinct(np.stack([values, values], axis=1)[:, 1]) == distinct(values)).all()


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_table_of_distinct_values_grows(dtype, more):
    size = 2 ** (LEAST_BITS + 1) + more  # more than fit once it has grown once, or just as many
    steps = np.random.default_rng(3).integers(1, 60_000, size)
    ids = np.cumsum(steps).astype(dtype)
    found = distinct(np.tile(ids[::-1], 2))
    assert (found == ids).all()
    assert found.dtype == "int64"
    assert distinct(ids[:0]).tolist() == []


@pytest.mark.parametrize("dtype", ["int32", "int16", "uint8"])
def test_values_of_other_types(dtype):
    ids = np.arange(0, 120, 7)
    values = np.tile(ids, 2 * MANY).astype(dtype)
    assert (lookup(ids, values) == np.tile(np.arange(len(ids)), 2 * MANY)).all()


def test_no_values_and_no_ids():
    assert lookup(np.empty(0, "int64"), np.empty(0, "int64")).tolist() == []
    assert lookup(np.array([1, 2]), np.empty(0, "int32")).tolist() == []
