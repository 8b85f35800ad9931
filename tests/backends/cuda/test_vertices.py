"""Vertex vectors on a device: each step against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.backends.cuda.vertices import DeviceVertices
from tests.support.emulation.host import HostDevice, needs_compiler

BOTH = [DeviceVertices(HostDevice(reverse), many) for reverse, many in ((False, 1 << 20), (True, 0))]
"""Threads in ascending and in descending order, without and with a wait for the largest weight."""
MOST = 2**31 - 1
DEGREES = st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2000), st.integers(MOST - 3, MOST)), max_size=700)


@needs_compiler
@pytest.mark.parametrize("vertices", BOTH, ids=["forward", "reverse"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@given(weights=DEGREES)
def test_vertices_are_ordered_by_descending_weight(vertices, dtype, weights):
    order = vertices.order(np.array(weights, dtype))
    assert vertices.inverse(order.astype(dtype)).tolist() == np.argsort(order).tolist()
    assert order.tolist() == sorted(range(len(weights)), key=lambda v: (-weights[v], v))
    assert vertices.inverse(order)[order].tolist() == list(range(len(weights)))
    assert (order.dtype, vertices.inverse(order).dtype) == ("int32", "int32")


@needs_compiler
@pytest.mark.parametrize("vertices", BOTH, ids=["forward", "reverse"])
@given(degrees=DEGREES, draw=st.randoms())
def test_totals_pass_64_bits(vertices, degrees, draw):
    order = draw.sample(range(len(degrees)), len(degrees))
    outward = [draw.randint(0, degrees[v]) for v in order]
    wedges = sum((degrees[v] - out) * out for v, out in zip(order, outward, strict=True))
    totals = vertices.totals(*(np.array(vector, dtype="int32") for vector in (degrees, order, outward)))
    assert totals == (sum(map(bool, degrees)), sum(outward), wedges, max(outward, default=0))


@needs_compiler
@pytest.mark.parametrize("vertices", BOTH, ids=["forward", "reverse"])
@given(values=st.lists(st.one_of(st.integers(0, 3), st.integers(1000, 1050), st.integers(0, 3000)), max_size=900))
def test_elements_of_each_value(vertices, values):
    bins = max(values, default=0) + 1
    counts = vertices.lengths(np.array(values, dtype="int32"), bins)
    assert counts.tolist() == np.bincount(np.array(values, dtype="int64"), minlength=bins).tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("size", [1, 1000, 3_000_001])
def test_every_step_on_the_device(size):
    cp = pytest.importorskip("cupy")
    from dasktc.backends.cuda import backend as cuda

    vertices, rng = DeviceVertices(cuda.device()), np.random.default_rng(size)
    values = (rng.random(size) ** 8 * 5000).astype("int32")
    order = vertices.order(cp.asarray(values))
    assert (order.get() == np.argsort(-values, kind="stable")).all()
    assert (vertices.inverse(order).get()[order.get()] == np.arange(size)).all()
    assert (vertices.lengths(cp.asarray(values), 5000).get() == np.bincount(values, minlength=5000)).all()
    order, outward = rng.permutation(size).astype("int32"), values * 500  # fewer than 2^41 edges
    inward, degree = rng.integers(0, 2**19, size).astype("int32"), np.empty(size, "int32")
    degree[order] = inward + outward
    known = sum(a * b for a, b in zip(inward.tolist(), outward.tolist(), strict=True))
    totals = vertices.totals(*map(cp.asarray, (degree, order, outward)))
    assert totals == (np.count_nonzero(degree), outward.sum(dtype="int64"), known, outward.max())
