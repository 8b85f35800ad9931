"""Parts that every backend has: each backend's against plain Python, and all that the protocol asks for."""

import inspect
import typing
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.backends import get_backend, protocol
from dasktc.backends.answers import ArrayAnswers
from dasktc.backends.cpu import radix
from dasktc.backends.cpu.buckets import dealt
from dasktc.backends.cpu.edges import CpuEdges
from dasktc.backends.cpu.vertices import CpuVertices
from dasktc.backends.cuda.answers import DeviceAnswers
from dasktc.backends.cuda.buckets import DeviceBuckets
from dasktc.backends.cuda.edges import DeviceEdges
from dasktc.backends.cuda.vertices import DeviceVertices
from dasktc.pipeline.stages.ids import IdRange
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import HostDevice, compiler

on_device = pytest.mark.skipif(compiler() is None, reason="no g++ on Linux, which runs the kernels on the host")
DEVICE = HostDevice(False)
EDGES = {"cpu": CpuEdges(), "cuda": DeviceEdges(DEVICE)}
VERTICES = {"cpu": CpuVertices(), "cuda": DeviceVertices(DEVICE)}
ANSWERS = {"cpu": ArrayAnswers(np), "cuda": DeviceAnswers(DEVICE)}
PAIRS = st.lists(st.tuples(st.integers(3, 60), st.integers(3, 60)), max_size=200)
SHIFT = 6
both = pytest.mark.parametrize("name", ["cpu", pytest.param("cuda", marks=on_device)])


def columns(pairs):
    return np.array(pairs, dtype="int32").reshape(-1, 2).T.copy()


def buckets_of(name, arrays, bound):
    return dealt(arrays, bound, (0, bound)) if name == "cpu" else DeviceBuckets(arrays, bound, EDGES["cuda"])


def members(part):
    return {name for name in vars(part) if name[0] != "_"}


def test_both_backends_have_every_part_of_the_protocol():
    """With the parameters of the protocol, in its order; none may be left out."""
    parts = {name: kind for name, kind in typing.get_type_hints(protocol.Backend, vars(protocol) | types()).items()}
    protocols = {name: kind for name, kind in parts.items() if getattr(kind, "_is_protocol", False)}
    assert {"edges", "vertices", "answers", "bit_matrix", "peel"} <= protocols.keys()
    with emulated_cuda.backend() as cuda:
        for backend in (get_backend("cpu"), cuda):
            assert all(getattr(backend, name) is not None for name in parts)
            for (name, kind), part in ((item, getattr(backend, item[0])) for item in protocols.items()):
                for member in members(kind):
                    asked, given = getattr(kind, member), getattr(part, member)
                    if callable(asked):
                        wanted = len(inspect.signature(asked).parameters) - 1
                        assert len(inspect.signature(given).parameters) == wanted, (backend.name, name, member)


def types():
    from dasktc.backends.edge_functions import Recipe

    return {"Recipe": Recipe}


@both
@given(pairs=PAIRS)
def test_raw_edges(name, pairs):
    edges, (src, dst) = EDGES[name], columns(pairs)
    proper = [pair for pair in pairs if pair[0] != pair[1]]
    frame, loops, low, high = edges.proper(pd.DataFrame({"src": src, "dst": dst}))
    ends = frame if isinstance(frame, tuple) else (frame["src"].values, frame["dst"].values)
    assert loops == len(pairs) - len(proper)
    assert not proper or (low, high) == (min(map(min, proper)), max(map(max, proper)))
    assert proper or low > high
    assert list(zip(*(end.tolist() for end in edges.without_loops(*ends)), strict=True)) == proper


@both
@given(pairs=PAIRS)
def test_marked_ids_become_a_map(name, pairs):
    """Marks of edges, and marks of flags, give the same map; its keys are those of lazy keys over its dense ids."""
    edges, (src, dst) = EDGES[name], columns([pair for pair in pairs if pair[0] != pair[1]])
    ids = sorted({*src.tolist(), *dst.tolist()})
    marks = edges.marks(58)
    edges.mark(marks, src, dst, 3)
    flags = np.zeros(58, bool)
    flags[np.array(ids, dtype=int) - 3] = True
    for table in (marks, edges.marked(flags)):
        vertices = edges.ranked(table, 3, 58)
        assert vertices.size == len(ids)
        assert vertices.external(np.arange(len(ids))).tolist() == ids
        keys = edges.keys(src, dst, vertices, SHIFT)
    places = {vertex: number for number, vertex in enumerate(ids)}
    dense = [sorted((places[a], places[b])) for a, b in zip(src.tolist(), dst.tolist(), strict=True)]
    assert keys.tolist() == [a << SHIFT | b for a, b in dense]
    lazy = edges.lazy_keys(*columns(dense), IdRange(0, 58), SHIFT)
    assert np.sort(edges.between(lazy, 0, 1 << 2 * SHIFT)).tolist() == sorted(keys.tolist())


@both
@given(keys=st.lists(st.integers(0, 2**12 - 1), max_size=300), draw=st.randoms(), modulus=st.integers(1, 5))
def test_oriented_keys_by_remainders(name, keys, draw, modulus):
    edges, rank = EDGES[name], np.array(draw.sample(range(64), 64), "int32")
    known = [sorted((rank[key >> SHIFT], rank[key & 63]), reverse=True) for key in keys]
    expected = [int(high) << SHIFT | int(low) for high, low in known]
    for function in (edges.oriented, edges.orient):
        assert function(np.array(keys, "int64"), rank, SHIFT).tolist() == expected
    lazy = edges.lazy_oriented(np.array(keys, "int64"), rank, SHIFT)
    assert sorted(edges.between(lazy, 0, 1 << 2 * SHIFT).tolist()) == sorted(expected)
    counts = Counter((int(high) % modulus, int(low) % modulus) for high, low in known)
    places = list(product(range(modulus), repeat=2))
    assert edges.residues(np.array(expected, "int64"), SHIFT, modulus).tolist() == [counts[place] for place in places]
    firsts, widths = np.arange(modulus**2) << 40, np.arange(modulus) + 100
    placed = edges.placed(np.array(expected, "int64"), SHIFT, modulus, firsts, widths)
    assert placed.tolist() == [
        int(firsts[u % modulus * modulus + v % modulus]) + u // modulus * int(widths[v % modulus]) + v // modulus
        for u, v in ((int(high), int(low)) for high, low in known)
    ]


@both
@pytest.mark.parametrize("size", [0, 100, 20_000])
def test_buckets_are_sorted_as_they_are_taken(name, size, monkeypatch):
    monkeypatch.setattr(radix, "BATCH", 1000)
    keys = np.random.default_rng(size).integers(0, 1 << 18, size)
    keys = np.sort(keys[keys >> 9 > (keys & 511)])
    arrays = np.array_split(np.random.default_rng(1).permutation(keys), 3)
    given, offsets = list(arrays), np.searchsorted(keys >> 9, np.arange(513))
    buckets = buckets_of(name, given, 1 << 18)
    assert buckets.size == len(keys)
    assert (name == "cpu") <= ((len(buckets) > 1) == (size > 1000))
    ranges = buckets.ranges(3)
    assert [end for _, end in ranges][:-1] == [first for first, _ in ranges][1:]
    found = [buckets.distinct(first, end, 9) for first, end in ranges]
    assert given == []
    assert np.concatenate([*found, np.empty(0, int)]).tolist() == np.unique(keys).tolist()
    columns_of_rows = keys & 511
    for made in buckets_of(name, list(arrays), 1 << 18).rows(0, 512, 512), _written(name, list(arrays), len(keys)):
        assert made[0].tolist() == offsets.tolist()
        assert made[1].tolist() == columns_of_rows.tolist()


def _written(name, arrays, size):
    buckets, offsets, numbers = buckets_of(name, arrays, 1 << 18), np.zeros(513, "int64"), np.empty(size, "int32")
    for first, end in buckets.ranges(3):
        buckets.write_rows(first, end, 9, 0, offsets, numbers)
    return offsets, numbers


@both
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@given(weights=st.lists(st.integers(0, 2**31 - 1), max_size=200))
def test_orders_of_either_type(name, dtype, weights):
    vertices = VERTICES[name]
    order = vertices.order(np.array(weights, dtype))
    assert order.tolist() == sorted(range(len(weights)), key=lambda v: (-weights[v], v))
    assert vertices.inverse(order.astype(dtype))[order].tolist() == list(range(len(weights)))
    assert vertices.inverse(order.astype(dtype)).dtype == "int32"


@both
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_coefficients_and_places(name, dtype):
    answers, draw = ANSWERS[name], np.random.default_rng(7)
    triangles, (outward, inward) = draw.integers(0, 50, 90), draw.integers(0, 9, (2, 90)).astype(dtype)
    degree = (outward + inward).astype(int)
    expected = 2 * triangles / np.maximum(degree * (degree - 1), 1)
    assert answers.clustering(triangles, outward, inward).tolist() == expected.tolist()
    order = draw.permutation(90).astype(dtype)
    for numbers in (triangles, triangles.astype("int32")):
        placed = answers.place(numbers, order)
        assert placed[order].tolist() == numbers.tolist()
        assert placed.dtype == numbers.dtype
    assert answers.facts(triangles.astype("int32")) == (triangles.sum(), triangles.max())
    assert answers.facts(triangles[:0].astype("int32")) == (0, 0)
