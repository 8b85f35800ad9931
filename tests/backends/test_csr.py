"""Blocks between workers: arrays on a device are sent without pickling."""

import subprocess
import sys

import numpy as np
import pytest
from distributed.protocol import deserialize, serialize
from distributed.protocol.cuda import cuda_deserialize, cuda_serialize

from dasktc.backends.csr import OrientedCSR, send_from_device_to_device

AS_UCX = ("cuda", "dask", "pickle", "error")
AS_TCP = ("dask", "pickle", "error")


class OnDevice(np.ndarray):
    """An array that must not be pickled."""

    def __reduce_ex__(self, protocol):
        raise AssertionError("pickled, through the host's memory")


@cuda_serialize.register(OnDevice)
def _dumps(array):
    return {"dtype": array.dtype.str}, [memoryview(array.tobytes())]


@cuda_deserialize.register(OnDevice)
def _loads(header, frames):
    return np.frombuffer(frames[0], header["dtype"]).view(OnDevice)


def block(kind, members):
    arrays = [np.array([0, 0, 1, 3]), np.array([0, 0, 1], np.int32)]
    offsets, columns = (array.view(kind) for array in arrays)
    return OrientedCSR(offsets, columns, 3, 1, 2, True, (1, 2), members)


@pytest.mark.parametrize("members", [None, np.array([4, 5, 6], np.int32)])
@pytest.mark.parametrize(("kind", "serializers"), [(OnDevice, AS_UCX), (np.ndarray, AS_UCX), (np.ndarray, AS_TCP)])
def test_a_block_comes_as_it_was(kind, serializers, members):
    send_from_device_to_device()  # as every worker does
    sent = block(kind, members if members is None else members.view(kind))
    found = deserialize(*serialize(sent, serializers=serializers))
    assert type(found) is OrientedCSR
    assert (found.stride, found.row_first, found.column_first) == (3, 1, 2)
    assert (found.ordered, found.place) == (True, (1, 2))
    for array, wanted in ((found.offsets, sent.offsets), (found.columns, sent.columns)):
        assert (type(array), array.dtype) == (kind, wanted.dtype)
        assert array.tolist() == wanted.tolist()
    assert (found.members is None) == (members is None)
    assert members is None or found.members.tolist() == members.tolist()


@pytest.mark.parametrize("first", ["distributed", "json"])
def test_workers_know_how_and_nobody_else_loads_it(first):
    code = f"import sys, {first}; import dasktc.backends.csr; "
    code += "csr, there = sys.modules['dasktc.backends.csr'], 'distributed' in sys.modules; "
    code += "registry = sys.modules.get('distributed.protocol.cuda'); "
    code += "print(there and csr.OrientedCSR in registry.cuda_serialize._lookup, there)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(first == "distributed")] * 2
