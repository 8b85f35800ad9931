"""Device memory: one RMM pool that cuDF and CuPy share, and how much of it is left.

Two pools of their own would each hold back what the other needs. A pool that is there already (of a
dask-cuda worker, or the caller's) is kept; a process that has none gets one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import cupy as cp
import rmm

__all__ = ["available", "peak", "share_pool"]

INITIAL = 0.5
"""Share of the free memory that a new pool takes at once; it grows when that is used up."""
USABLE = 0.9
"""Share of the free memory that is spoken for: a pool cannot join what lies apart."""


@cache
def share_pool() -> None:
    """Have cuDF and CuPy allocate from one pool, which is counted; once a process."""
    from rmm.allocators.cupy import rmm_cupy_allocator

    resource = rmm.mr.get_current_device_resource()
    if isinstance(resource, rmm.mr.CudaMemoryResource):
        free, _ = cp.cuda.runtime.memGetInfo()
        resource = rmm.mr.PoolMemoryResource(resource, initial_pool_size=int(INITIAL * free) // 256 * 256)
    rmm.mr.set_current_device_resource(rmm.mr.StatisticsResourceAdaptor(resource))
    cp.cuda.set_allocator(rmm_cupy_allocator)


def available() -> int:
    """Bytes that could be allocated on the current device now: free memory, and the pool's unused part."""
    free, _ = cp.cuda.runtime.memGetInfo()
    return int(USABLE * (free + _unused(rmm.mr.get_current_device_resource())))


@contextmanager
def peak() -> Iterator[list[int]]:
    """Note in the list how many bytes were in use at the most, in this block, above those before it."""
    counted, noted = _counted(rmm.mr.get_current_device_resource()), list[int]()
    counted.push_counters()
    try:
        yield noted
    finally:
        noted.append(int(counted.pop_counters().peak_bytes))


def _counted(resource: Any) -> Any:
    """What counts allocations; `share_pool` put it there."""
    while not isinstance(resource, rmm.mr.StatisticsResourceAdaptor):
        resource = resource.upstream_mr
    return resource


def _unused(resource: Any) -> int:
    """What a pool has taken from the device and not handed out since it was shared."""
    used = 0
    while resource is not None:
        if isinstance(resource, rmm.mr.StatisticsResourceAdaptor):
            used = int(resource.allocation_counts.current_bytes)
        if isinstance(resource, rmm.mr.PoolMemoryResource):
            return max(0, int(resource.pool_size()) - used)
        resource = getattr(resource, "upstream_mr", None)
    return 0
