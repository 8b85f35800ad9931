"""Device memory: one RMM pool that cuDF and CuPy share, and how much of it is left.

Two pools of their own would each hold back what the other needs. A pool that is there already (of a
dask-cuda worker, or the caller's) is kept; a process that has none gets one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import cupy as cp
import rmm

from dasktc.backends import get_backend

__all__ = ["Budget", "available", "free_and_total", "peak", "share_pool"]

INITIAL = 0.5
"""Share of the free memory that a new pool takes at once; it grows when that is used up."""
LEAST = 1 << 24
"""Bytes that a new pool takes at the least."""
USABLE = 0.9
"""Share of the free memory that is treated as available; the rest allows for fragmentation of the pool."""


@cache
def share_pool() -> None:
    """Have cuDF and CuPy allocate from one pool, which is counted; once a process."""
    from rmm.allocators.cupy import rmm_cupy_allocator

    resource = rmm.mr.get_current_device_resource()
    if isinstance(resource, rmm.mr.CudaMemoryResource):
        free, _ = cp.cuda.runtime.memGetInfo()
        resource = _first_pool(resource, int(INITIAL * free))
    rmm.mr.set_current_device_resource(rmm.mr.StatisticsResourceAdaptor(resource))
    cp.cuda.set_allocator(rmm_cupy_allocator)


def _first_pool(resource: Any, initial: int) -> Any:
    """A pool that begins with less where another process has taken what was free a moment ago."""
    while initial > LEAST:
        with suppress(MemoryError):
            return _pool(resource, initial)
        initial //= 2
    return _pool(resource, initial)


def _pool(resource: Any, initial: int) -> Any:
    return rmm.mr.PoolMemoryResource(resource, initial_pool_size=max(256, initial // 256 * 256))


class Budget:
    """Inside `with`, cuDF and CuPy get so much device memory and no more: MemoryError says that it is used up.

    What was allocated inside counts until it is freed. Elementwise arithmetic is done on so few elements at a time
    that a handful of intermediates takes a small part of the budget.

    Parameters
    ----------
    most : int
        Bytes.
    """

    def __init__(self, most: int) -> None:
        self._backend, self._chunk = get_backend("cuda"), max(1 << 13, most // 512)
        _shrink(most)
        limited = rmm.mr.LimitingResourceAdaptor(rmm.mr.get_current_device_resource(), most)
        self._resource = rmm.mr.StatisticsResourceAdaptor(limited)
        self._before = list[tuple[Any, int]]()

    def __enter__(self) -> None:
        self._before.append((rmm.mr.get_current_device_resource(), self._backend.chunk))
        rmm.mr.set_current_device_resource(self._resource)
        object.__setattr__(self._backend, "chunk", min(self._chunk, self._backend.chunk))

    def __exit__(self, *error: object) -> None:
        resource, chunk = self._before.pop()
        rmm.mr.set_current_device_resource(resource)
        object.__setattr__(self._backend, "chunk", chunk)

    @property
    def peak(self) -> int:
        """The most bytes that were in use at a time until now."""
        return int(self._resource.allocation_counts.peak_bytes)


def _shrink(most: int) -> None:
    """Put a smaller pool in the place of an empty one that holds more than a budget; it grows when it must."""
    counted = rmm.mr.get_current_device_resource()
    pool = getattr(counted, "upstream_mr", None)
    if not isinstance(pool, rmm.mr.PoolMemoryResource) or not isinstance(pool.upstream_mr, rmm.mr.CudaMemoryResource):
        return
    if counted.allocation_counts.current_bytes == 0 and pool.pool_size() > most:
        bottom = pool.upstream_mr
        rmm.mr.set_current_device_resource(bottom)
        del counted, pool  # the device has its memory back before the other one takes some
        rmm.mr.set_current_device_resource(rmm.mr.StatisticsResourceAdaptor(_pool(bottom, most)))


def available() -> int:
    """Bytes that could be allocated on the current device now: free memory, and the pool's unused part."""
    free, _ = cp.cuda.runtime.memGetInfo()
    return int(USABLE * (free + _unused(rmm.mr.get_current_device_resource())))


def free_and_total() -> tuple[int, int]:
    """Bytes of the current device that nobody holds, the pool's unused part among them, and all its bytes."""
    free, total = cp.cuda.runtime.memGetInfo()
    return int(free) + _unused(rmm.mr.get_current_device_resource()), int(total)


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
