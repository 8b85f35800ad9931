"""Parts that every backend has: all that the protocol asks for, and buckets of either backend."""

import inspect
import typing

import numpy as np
import pytest

from dasktc.backends import get_backend, protocol
from dasktc.backends.cpu import radix
from dasktc.backends.cuda.buckets import DeviceBuckets
from dasktc.backends.cuda.edges import DeviceEdges
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import HostDevice, needs_compiler

both = pytest.mark.parametrize("name", ["cpu", pytest.param("cuda", marks=needs_compiler)])


def buckets_of(name, arrays, bound):
    if name == "cpu":
        return radix.dealt(arrays, bound, (0, bound), batch=1000)
    return DeviceBuckets(arrays, bound, DeviceEdges(HostDevice(False)))


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
@pytest.mark.parametrize("size", [0, 100, 20_000])
def test_buckets_are_sorted_as_they_are_taken(name, size):
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
