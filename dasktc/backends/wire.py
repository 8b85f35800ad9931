"""Serialization of CSR blocks between workers: from device to device, where the network can.

Pickled, as Dask sends what it does not know, arrays go through the memory of both hosts: about 1 GB/s between two
H200, where UCX moves 45. Imported by `csr` in processes that Dask runs in, so that a worker that has just joined can
receive what others send.
"""

from __future__ import annotations

import pickle
from typing import Any

from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
from distributed.protocol.serialize import deserialize, serialize

from dasktc.backends import csr

__all__: list[str] = []


@cuda_serialize.register(csr.OrientedCSR)  # type: ignore[untyped-decorator, unused-ignore]
def _dumps(block: csr.OrientedCSR) -> tuple[dict[str, Any], list[Any]]:
    build, (offsets, columns, *facts, members) = block.__reduce__()
    parts = [serialize(array, serializers=("cuda", "pickle")) for array in (offsets, columns, members)]
    header = {"built": pickle.dumps((build, facts)), "arrays": [(head, len(frames)) for head, frames in parts]}
    return header, [frame for _, frames in parts for frame in frames]


@cuda_deserialize.register(csr.OrientedCSR)  # type: ignore[untyped-decorator, unused-ignore]
def _loads(header: dict[str, Any], frames: list[Any]) -> csr.OrientedCSR:
    build, facts = pickle.loads(header["built"])
    arrays, frames = [], list(frames)
    for head, count in header["arrays"]:
        mine, frames = frames[:count], frames[count:]
        arrays.append(deserialize(head, mine))
    offsets, columns, members = arrays
    block: csr.OrientedCSR = build(offsets, columns, *facts, members)
    return block
