"""Result columns on a device: each step against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.backends.csr import OrientedCSR
from dasktc.backends.cuda.answers import DeviceAnswers
from tests.support.emulation.host import HostDevice, needs_compiler

BOTH = pytest.mark.parametrize(
    "answers", [DeviceAnswers(HostDevice(reverse)) for reverse in (False, True)], ids=["forward", "reverse"]
)
MOST = 2**31 - 1


def block_of(edges, rows):
    """Edges as a block, with rows in ascending order, some of them empty."""
    edges = sorted(edges)
    lengths = np.bincount([u for u, _ in edges], minlength=rows) if edges else np.zeros(rows, "int64")
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("int64")
    return OrientedCSR(offsets, np.array([v for _, v in edges], dtype="int32")), edges


def rows_of(edges, numbers, row_ids, column_ids, external):
    """The rows that a frame must have."""
    known = (lambda v: v + external) if isinstance(external, int) else lambda v: int(external[v])
    made = []
    for (u, v), number in zip(edges, numbers, strict=True):
        a, b = sorted((int(row_ids[u]), int(column_ids[v])))
        made.append((a, b, int(number)))
    return [(known(a), known(b), number) for a, b, number in sorted(made)]


@needs_compiler
@BOTH
@given(numbers=st.lists(st.one_of(st.integers(0, 5), st.integers(0, MOST)), max_size=700))
def test_the_sum_and_the_largest(answers, numbers):
    assert answers.facts(np.array(numbers, dtype="int32")) == (sum(numbers), max(numbers, default=0))


@needs_compiler
@BOTH
@given(data=st.data(), rows=st.integers(1, 60), most=st.sampled_from([0, 1, 1000, MOST]))
def test_columns_ascend_under_the_caller_s_ids(answers, data, rows, most):
    pairs = st.tuples(st.integers(0, rows - 1), st.integers(0, rows - 1)).filter(lambda pair: pair[0] > pair[1])
    block, edges = block_of(data.draw(st.sets(pairs, max_size=200)) if rows > 1 else set(), rows)
    numbers = data.draw(st.lists(st.integers(0, most), min_size=len(edges), max_size=len(edges)))
    order = np.array(data.draw(st.permutations(range(rows))), dtype="int32")
    external = data.draw(st.sampled_from([-7, np.cumsum(np.arange(1, rows + 1)) - 10**12]))
    columns = answers.edges(block, np.array(numbers, "int32"), (order, order), rows, max(numbers, default=0), external)
    expected = rows_of(edges, numbers, order, order, external)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected
    assert {column.dtype.name for column in columns} == {"int64"}


@needs_compiler
def test_rows_are_found_in_tiles_of_long_and_of_empty_rows():
    rng = np.random.default_rng(3)
    lengths = np.zeros(9000, "int64")
    lengths[[5, 6, 4000, 8998]] = 4100, 1, 2047, 300
    lengths[100:2000] = rng.integers(0, 4, 1900)
    edges = {(u, v) for u, n in enumerate(lengths.tolist()) for v in rng.choice(9000, n, replace=False).tolist()}
    block, edges = block_of(edges, 9000)
    numbers, rows = rng.integers(0, 9, len(edges)), rng.permutation(9000).astype("int32")
    others = (rng.permutation(9000) + 9000).astype("int32")  # so that no two edges are one
    columns = DeviceAnswers(HostDevice()).edges(block, numbers.astype("int32"), (rows, others), 18000, 8, 0)
    expected = rows_of(edges, numbers, rows, others, 0)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


@needs_compiler
@pytest.mark.parametrize(
    ("vertices", "most", "fits"), [(1 << 16, MOST, True), (1 << 17, MOST, False), (1 << 30, 7, True)]
)
def test_no_columns_where_a_word_has_too_few_bits(vertices, most, fits):
    block, ids = OrientedCSR(np.zeros(2, "int64"), np.empty(0, "int32")), np.zeros(1, "int32")
    numbers = np.empty(0, "int32")
    made = DeviceAnswers(HostDevice()).edges(block, numbers, (ids, ids), vertices, most, 0)
    assert (made is not None) == fits


@needs_compiler
@BOTH
@pytest.mark.parametrize(("dtype", "ids"), [("int32", "int32"), ("int64", "int64"), ("float64", "int32")])
def test_numbers_by_dense_id(answers, dtype, ids):
    order, numbers = np.random.default_rng(1).permutation(999).astype(ids), np.arange(999).astype(dtype) / 2
    placed = answers.place(numbers.astype(dtype), order)
    assert placed.dtype == dtype
    assert placed[order].tolist() == numbers.astype(dtype).tolist()


@needs_compiler
@BOTH
@given(
    of=st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 70_000), st.integers(0, MOST - 70_000)), max_size=99)
)
def test_clustering_coefficients(answers, of):
    triangles, outward, inward = (np.array([row[k] for row in of], "int64") for k in range(3))
    degree = outward + inward
    expected = (2 * triangles / np.maximum(degree * (degree - 1), 1)).tolist()
    for ids in ("int32", "int64"):
        assert answers.clustering(triangles, outward.astype(ids), inward.astype(ids)).tolist() == expected


@pytest.mark.gpu
@pytest.mark.parametrize("edges", [1, 5_000, 3_000_000])
def test_every_step_on_the_device(edges):
    cp = pytest.importorskip("cupy")
    from dasktc.backends.cuda import backend as cuda

    answers, rng, rows = DeviceAnswers(cuda.device()), np.random.default_rng(edges), 100_000
    high, low = rng.integers(0, rows, edges), rng.integers(0, rows, edges)
    keys = np.unique(np.maximum(high, low) << 20 | np.minimum(high, low))
    high, low = keys >> 20, keys & ((1 << 20) - 1)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(high, minlength=rows))]).astype("int64")
    numbers, order = rng.integers(0, 500, len(keys)).astype("int32"), rng.permutation(rows).astype("int32")
    assert answers.facts(cp.asarray(numbers)) == (int(numbers.sum()), int(numbers.max()))
    block, ids = OrientedCSR(cp.asarray(offsets), cp.asarray(low.astype("int32"))), cp.asarray(order)
    columns = answers.edges(block, cp.asarray(numbers), (ids, ids), rows, 499, 5)
    ends = np.sort(np.stack([order[high], order[low]]), axis=0).astype("int64")
    place = np.lexsort((ends[1], ends[0]))
    for column, expected in zip(columns, [ends[0] + 5, ends[1] + 5, numbers.astype("int64")], strict=True):
        assert (column.get() == expected[place]).all()
