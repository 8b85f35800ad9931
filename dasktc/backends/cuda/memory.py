"""Device memory: one pool that cuDF and CuPy share during our calls, and how much of the device is left.

With a pool each, one library would hold back memory that the other needs. Where the caller (or dask-cuda) has set an
RMM resource other than plain `cudaMalloc`, our calls allocate from it. Instead of plain `cudaMalloc`, which takes 0.1
to 0.3 ms each time, they allocate from a pool of ours; when the outermost call ends, the caller's resource and CuPy's
allocator are restored. Memory that results still hold stays valid: the pool outlives them.

A pool grows as it is used. Memory that it does not need returns to the device when no call has begun for IDLE seconds.
Where the caller may want it for something else, which is not on a Dask worker, whose many calls make up one count, what
exceeds KEPT_FOR_NOW returns when the call ends. There are two kinds:

* `cudaMallocAsync`, wherever possible: it grows and shrinks by what is needed, also beside results that stay.
* RMM's pool over `cudaMalloc`, on workers that use UCX. UCX maps memory of one device to another, and cannot map that
  of the first kind: 512 MB between two processes took 15 ms from this pool, and 1,300 ms from the other. It doubles
  whenever it is full, and returns to the device as a whole when nothing is left in it.

A pool that doubles consists of blocks that it cannot join, so it may refuse a large array although more than its size
is free. A count that runs as one call on one worker sends nothing; there `unsent` uses the first kind on these workers,
too.
"""

# One H200, CUDA 13.0: growing by 8 GB in pieces of 1 GiB took 8.1 ms with cudaMallocAsync and 0.2 to 1.0 by doubling,
# giving 8 GB back 7.5 (with cudaMalloc alone 3.6 each time). An array from a full pool took CuPy 8 and 13 us, from
# cudaMalloc 88 for 1 MiB and 260 for 256. Kronecker 24 prepared in 66.6 ms with either (66.1 where half of the device
# was taken at once), and in 74.2 the first time, when it grew. `enable_ipc` and `enable_fabric` of
# CudaAsyncMemoryResource made no difference to UCX.
# A call that counts Kronecker 24, from the generator to the number, took 88.6 and 87.4 ms with a cudaMallocAsync pool
# that need not grow, and 86.4 and 85.7 with RMM's of 100 GB (87.0 with RMM's arena): of 120 arrays some 15 take the
# first 0.2 to 1.0 ms each, most of them while the device waits, which it does some 7 ms of such a call.

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, ClassVar, Protocol

import cudf  # noqa: F401  (sets CuPy's allocator when it is loaded, which it could not within our calls)
import cupy as cp
import rmm
from rmm.allocators.cupy import rmm_cupy_allocator

from dasktc.backends.calls import dask_worker, one_call
from dasktc.backends.idle import Idle
from dasktc.backends.protocol import Backend

__all__ = ["Budget", "available", "free_and_total", "give_back", "peak", "share", "unsent", "unused_bytes"]

KEPT, KEPT_FOR_NOW = 1 / 128, 1 / 8
"""Shares of the device that a pool keeps between calls, so that a count does not grow it anew each time: at any time,
and in the caller's process until it has been idle."""
FIRST = 1 << 28
"""Initial bytes of RMM's pool, at most a share KEPT of the device."""
IDLE = 1.0
"""Seconds without a call after which a pool returns memory that it does not need."""
USABLE = 0.9
"""Share of the free memory that is treated as available; the rest allows for fragmentation of the pool."""
EVERYTHING = 2**64 - 1


class Pool(Protocol):
    """A memory pool of one device that replaces plain `cudaMalloc`."""

    @property
    def resource(self) -> Any:
        """RMM's resource of the pool, which counts allocations."""

    def unused(self) -> int:
        """Bytes that the pool holds on the device and nobody uses."""

    def keep(self, limit: int) -> None:
        """Return unused memory down to `limit` bytes, now and whenever something is freed later."""

    def grow(self) -> None:
        """Keep all memory that is freed from now on."""


class AsyncPool:
    """A memory pool of CUDA's stream-ordered allocator."""

    def __init__(self) -> None:
        from cuda.bindings import runtime as bindings

        runtime = cp.cuda.runtime
        pinned, handle_type, device_kind = 1, 0, 1  # memory that stays where it is: cudaMemAllocationTypePinned
        properties = runtime.MemPoolProps(pinned, handle_type, device_kind, cp.cuda.Device().id)
        self._handle = runtime.memPoolCreate(properties)
        view = rmm.mr.CudaAsyncViewMemoryResource(bindings.cudaMemPool_t(self._handle))
        self.resource = rmm.mr.StatisticsResourceAdaptor(view)

    def unused(self) -> int:
        """Bytes reserved and not used."""
        runtime = cp.cuda.runtime
        reserved, used = runtime.cudaMemPoolAttrReservedMemCurrent, runtime.cudaMemPoolAttrUsedMemCurrent
        return max(0, self._attribute(reserved) - self._attribute(used))

    def keep(self, limit: int) -> None:
        """Set the threshold above which CUDA returns memory to the device, and have it do so now."""
        self._set_threshold(limit)
        if self.unused() > limit:
            cp.cuda.Device().synchronize()  # until then the memory freed last is not free
            used = self._attribute(cp.cuda.runtime.cudaMemPoolAttrUsedMemCurrent)
            cp.cuda.runtime.memPoolTrimTo(self._handle, used + limit)

    def grow(self) -> None:
        """Remove the threshold."""
        self._set_threshold(EVERYTHING)

    def _attribute(self, name: int) -> int:
        return int(cp.cuda.runtime.memPoolGetAttribute(self._handle, name))

    def _set_threshold(self, threshold: int) -> None:
        cp.cuda.runtime.memPoolSetAttribute(self._handle, cp.cuda.runtime.cudaMemPoolAttrReleaseThreshold, threshold)


class DoublingPool:
    """RMM's pool over `cudaMalloc`, whose memory UCX can map; buffers keep their pool alive."""

    resource: Any

    def __init__(self, first: int) -> None:
        self._first, self.resource = max(256, first // 256 * 256), None
        self.grow()

    def unused(self) -> int:
        """Bytes that the pool took from the device and has not handed out."""
        if self.resource is None:
            return 0
        used = int(self.resource.allocation_counts.current_bytes)
        return max(0, int(self.resource.upstream_mr.pool_size()) - used)

    def keep(self, limit: int) -> None:
        """Drop a pool that exceeds `limit` and is empty; the next allocation makes a new one."""
        if self.unused() > limit and not self.resource.allocation_counts.current_bytes:
            self.resource = None

    def grow(self) -> None:
        """Make the pool if there is none."""
        if self.resource is None:
            pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=self._first)
            self.resource = rmm.mr.StatisticsResourceAdaptor(pool)


@cp.memoize(for_each_device=True)  # type: ignore[untyped-decorator, unused-ignore]
def _own_pool() -> Pool:
    """The pool of the current device, created on first use and kept for the process's lifetime."""
    pool = None if _sends_by_ucx() else _async_pool()
    return DoublingPool(min(FIRST, _kept_bytes())) if pool is None else pool


@cp.memoize(for_each_device=True)  # type: ignore[untyped-decorator, unused-ignore]
def _async_pool() -> AsyncPool | None:
    """The asynchronous pool of the current device; None on an old or virtual GPU, which has no such pools."""
    with suppress(ImportError, cp.cuda.runtime.CUDARuntimeError):
        return AsyncPool()
    return None


def _sends_by_ucx() -> bool:
    """Whether this thread works for a Dask worker that others reach by UCX."""
    worker = dask_worker()
    return worker is not None and str(worker.address).startswith("ucx")


def _has_maximum() -> bool:
    """Whether this Dask worker was started with a maximum pool size (dask-cuda's `rmm_maximum_pool_size`)."""
    plugins = getattr(dask_worker(), "plugins", {})
    return any(getattr(plugin, "maximum_pool_size", None) is not None for plugin in plugins.values())


@cp.memoize(for_each_device=True)  # type: ignore[untyped-decorator, unused-ignore]
def _kept_bytes(fraction: float = KEPT) -> int:
    return int(fraction * cp.cuda.runtime.memGetInfo()[1])


class _Shared:
    """Process-wide allocators during calls, and the previous ones, restored when the last call of all threads ends.

    Attributes
    ----------
    calls : int
        Number of calls under way in all threads.
    pool : Pool or None
        The pool that replaces plain `cudaMalloc`; inside `unsent`, the asynchronous pool.
    caller_resource, resource : resources of RMM
        The caller's resource, and the one from which calls allocate.
    budgets : list
        Resources of active budgets.
    device : cupy.cuda.Device or None
        The device whose pool returns memory when no call has begun for a while.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.calls = 0
        self.pool: Pool | None = None
        self.caller_resource: Any = None
        self.resource: Any = None
        self.budgets = list[Any]()
        self.device: Any = None
        self._counter: tuple[Any, Any] = (None, None)

    def begin(self) -> None:
        with self.lock:
            self.calls += 1
            try:
                if self.calls == 1:
                    self._install()
            except BaseException:  # a signal: restore what was there
                self.end(False)
                raise

    def _install(self) -> None:
        """Allocate on this device from our pool, or count allocations from the caller's resource."""
        self.caller_resource = rmm.mr.get_current_device_resource()
        if isinstance(self.caller_resource, rmm.mr.CudaMemoryResource):
            self.pool = _own_pool()
            self.pool.grow()
            self.resource = self.pool.resource
        else:
            self.pool, self.resource = None, self._counting_resource(self.caller_resource)
        rmm.mr.set_current_device_resource(self.resource)

    def _counting_resource(self, resource: Any) -> Any:
        if self._counter[0] is not resource:
            self._counter = resource, rmm.mr.StatisticsResourceAdaptor(resource)
        return self._counter[1]

    def end(self, on_worker: bool) -> None:
        with self.lock:
            self.calls -= 1
            if self.calls:
                return
            resource = rmm.mr.get_current_device_resource()
            # Unless the caller has set another one meanwhile.
            if any(resource is candidate for candidate in (self.resource, *self.budgets)):
                rmm.mr.set_current_device_resource(self.caller_resource)
            self.caller_resource = self.resource = None
            self.budgets.clear()
            if self._counter[0] is not None and not self._counter[1].allocation_counts.current_bytes:
                self._counter = (None, None)  # the new resource is the caller's, who may be done with this one
        if self.pool is not None:
            self.device = cp.cuda.Device()
            _idle.later()
            if not on_worker:
                self.give_back(_kept_bytes(KEPT_FOR_NOW))

    def give_back(self, keep: int) -> None:
        """Have the pool return memory that it does not need, if no call is under way."""
        with self.lock:
            if not self.calls and self.pool is not None:
                self.pool.keep(keep)
                for budget in list(Budget.instances):
                    budget.drop_pool()

    @contextmanager
    def unsent(self) -> Iterator[None]:
        with self.lock:
            pool = _async_pool() if self._is_replaceable() else None
            if pool is not None:
                usual_pool, self.pool = self.pool, pool
                pool.grow()
                usual_resource, self.resource = self.resource, pool.resource
                self.budgets.append(pool.resource)  # ours, if another call of this process continues with it
                rmm.mr.set_current_device_resource(pool.resource)
        try:
            yield
        finally:
            if pool is not None:
                with self.lock:
                    self.pool, self.resource = usual_pool, usual_resource
                    if rmm.mr.get_current_device_resource() is pool.resource:
                        rmm.mr.set_current_device_resource(usual_resource)
                    pool.keep(_kept_bytes())

    def _is_replaceable(self) -> bool:
        """Whether a UCX worker's pool may be replaced: only this call uses it, and it holds little unused memory."""
        if not _sends_by_ucx() or self.calls > 1 or _has_maximum():
            return False
        if self.pool is not None:
            self.pool.keep(0)
            self.pool.grow()
            self.resource = self.pool.resource
            rmm.mr.set_current_device_resource(self.resource)
            unused = self.pool.unused()
        elif isinstance(self.caller_resource, rmm.mr.PoolMemoryResource) and isinstance(
            self.caller_resource.upstream_mr, rmm.mr.CudaMemoryResource
        ):
            unused = _unused(self.caller_resource)
        else:
            return False
        return bool(unused <= (1 - USABLE) * (cp.cuda.runtime.memGetInfo()[0] + unused))


def _give_back_when_idle() -> None:
    with _shared.device:
        _shared.give_back(_kept_bytes())


_shared, _idle = _Shared(), Idle(IDLE, _give_back_when_idle)


def share(on_worker: bool = False) -> Callable[[], None]:
    """Have cuDF, and CuPy in this thread, allocate from one pool that counts allocations.

    Parameters
    ----------
    on_worker : bool
        As for `calls.one_call`.

    Returns
    -------
    callable ()
        Restores the previous allocators.
    """
    restoration = ExitStack()
    _shared.begin()
    restoration.callback(_shared.end, on_worker)
    restoration.enter_context(cp.cuda.using_allocator(rmm_cupy_allocator))
    return restoration.close


@contextmanager
def unsent() -> Iterator[None]:
    """Context whose results stay in this process: allocate from the asynchronous pool, also on workers with UCX.

    Nothing changes where the worker's pool cannot be returned and holds more than a share of 1 - USABLE of the free
    memory, where its maximum was set, where another call is under way, or where the caller's resource is not a pool
    over `cudaMalloc`. Memory allocated inside stays valid, but UCX sends it slowly.
    """
    with one_call(), _shared.unsent():
        yield


class Budget:
    """Context in which cuDF and CuPy get a limited amount of device memory; beyond it they raise MemoryError.

    Memory allocated inside counts until it is freed. Elementwise arithmetic uses chunks so small that a handful of
    intermediates takes a small part of the budget.

    Parameters
    ----------
    limit : int
        Bytes.
    backend : Backend
        The CUDA backend, whose chunks are smaller inside.
    """

    instances: ClassVar[weakref.WeakSet[Budget]] = weakref.WeakSet()
    """All budgets of the process, which hold the pool from which they allocate."""
    lock: ClassVar[Any] = threading.RLock()
    """Held inside: resource and chunk size belong to the whole process, and two budgets would lift each other."""

    def __init__(self, limit: int, backend: Backend) -> None:
        self._backend, self._chunk, self._limit = backend, max(1 << 13, limit // 512), limit
        self._resource: Any = None
        self._former_peak = 0
        self._contexts = list[ExitStack]()
        self.instances.add(self)

    def _begin(self) -> None:
        """Limit and count allocations from the current pool, within a call."""
        if _shared.pool is not None:  # memory that earlier calls left in the pool is not the budget's
            _shared.pool.keep(0)
            _shared.pool.grow()
            if not _shared.budgets:
                _shared.resource = _shared.pool.resource
                rmm.mr.set_current_device_resource(_shared.resource)
        adaptor = rmm.mr.LimitingResourceAdaptor(_shared.resource, self._limit)
        self._resource = rmm.mr.StatisticsResourceAdaptor(adaptor)

    def drop_pool(self) -> None:
        """Drop the reference to a pool that was returned because nothing was left in it."""
        if self._resource is not None and _shared.pool is not None and _shared.pool.resource is None:
            self._former_peak, self._resource = self.peak, None

    def __enter__(self) -> None:
        with ExitStack() as contexts:
            contexts.enter_context(self.lock)
            contexts.enter_context(one_call())
            if self._resource is None:
                self._begin()
            contexts.callback(rmm.mr.set_current_device_resource, rmm.mr.get_current_device_resource())
            rmm.mr.set_current_device_resource(self._resource)
            _shared.budgets.append(self._resource)
            contexts.callback(object.__setattr__, self._backend, "chunk", self._backend.chunk)
            object.__setattr__(self._backend, "chunk", min(self._chunk, self._backend.chunk))
            self._contexts.append(contexts.pop_all())

    def __exit__(self, *error: object) -> None:
        self._contexts.pop().close()

    @property
    def peak(self) -> int:
        """Peak of the bytes in use so far."""
        current_peak = 0 if self._resource is None else int(self._resource.allocation_counts.peak_bytes)
        return max(self._former_peak, current_peak)


def available() -> int:
    """Bytes that could be allocated on the current device now: free memory, and the pool's unused part."""
    return int(USABLE * free_and_total()[0])


def free_and_total() -> tuple[int, int]:
    """Free bytes of the current device, the pool's unused part included, and all its bytes."""
    free, total = cp.cuda.runtime.memGetInfo()
    with _shared.lock:
        calls, pool = _shared.calls, _shared.pool
        resource = _shared.caller_resource if calls else rmm.mr.get_current_device_resource()
    is_from_pool = pool is not None and (calls or isinstance(resource, rmm.mr.CudaMemoryResource))
    return int(free) + (pool.unused() if pool is not None and is_from_pool else _unused(resource)), int(total)


def unused_bytes() -> int:
    """Bytes on the current device that our own pool holds and nobody uses."""
    return 0 if _shared.pool is None else _shared.pool.unused()


def give_back(keep: int) -> None:
    """Have our own pool return unused memory except `keep` bytes, where no call is under way."""
    _shared.give_back(keep)


@contextmanager
def peak() -> Iterator[list[int]]:
    """Context that appends to the yielded list the peak of the bytes in use within it, above those before it."""
    with one_call():
        resource, peaks = _shared.resource, list[int]()
        resource.push_counters()
        try:
            yield peaks
        finally:
            peaks.append(int(resource.pop_counters().peak_bytes))


def _unused(resource: Any) -> int:
    """Bytes that the caller's pool has taken from the device and that our calls do not use."""
    used = 0
    if _shared._counter[0] is resource and resource is not None:
        used = int(_shared._counter[1].allocation_counts.current_bytes)
    while resource is not None:
        if isinstance(resource, rmm.mr.PoolMemoryResource):
            return max(0, int(resource.pool_size()) - used)
        resource = getattr(resource, "upstream_mr", None)
    return 0
