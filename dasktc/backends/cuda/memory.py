"""Device memory: one pool that cuDF and CuPy share during our calls, and how much of the device is left.

Two pools of their own would each hold back what the other needs. Where the caller (or dask-cuda) has set up a resource
of RMM other than plain `cudaMalloc`, our calls allocate from that. In the place of plain `cudaMalloc`, which takes 0.1
to 0.3 ms each time, they allocate from a pool of ours; when the outermost call ends the caller's resource and CuPy's
allocator are what they were before. What results still hold stays valid: the pool outlives them.

A pool grows as it is used, and what it does not need goes back to the device when a call ends, or on a Dask worker,
whose many calls make one count, when no call has begun for IDLE seconds. There are two kinds:

* `cudaMallocAsync`, wherever it can be: it grows, and shrinks, by what is needed, also beside results that stay.
* RMM's pool over `cudaMalloc` on workers that talk UCX, which maps memory of the one device to the other and cannot map
  the first kind: 512 MB between two processes took 15 ms from this pool and 1,300 from that. It doubles whenever it is
  full, and goes back as a whole when nothing is left in it.

A pool that doubles consists of blocks that it cannot join, so it refuses a large array where more than its size is
free. A count that runs as one call on one worker sends nothing: there `unsent` takes the first kind on these workers,
too.
"""

# One H200, CUDA 13.0: growing by 8 GB in pieces of 1 GiB took 8.1 ms with cudaMallocAsync and 0.2 to 1.0 by doubling,
# giving 8 GB back 7.5 (with cudaMalloc alone 3.6 each time). An array from a full pool took CuPy 8 and 13 us, from
# cudaMalloc 88 for 1 MiB and 260 for 256. Kronecker 24 prepared in 66.6 ms with either (66.1 where half of the device
# was taken at once), and in 74.2 the first time, when it grew. `enable_ipc` and `enable_fabric` of
# CudaAsyncMemoryResource made no difference to UCX.

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, ClassVar, Protocol

import cudf  # noqa: F401  (sets CuPy's allocator when it is loaded, which it could not within our calls)
import cupy as cp
import rmm
from rmm.allocators.cupy import rmm_cupy_allocator

from dasktc.backends import get_backend
from dasktc.backends.calls import one_call

__all__ = ["Budget", "available", "free_and_total", "give_back", "held", "peak", "share", "unsent"]

KEPT = 1 / 128
"""Share of the device that a pool keeps between calls, so that small counts do not grow it anew each time."""
FIRST = 1 << 28
"""Bytes that RMM's pool begins with, at most a share KEPT of the device."""
IDLE = 1.0
"""Seconds without a call after which a worker gives back what its pool does not need."""
USABLE = 0.9
"""Share of the free memory that is treated as available; the rest allows for fragmentation of the pool."""
EVERYTHING = 2**64 - 1


class Pool(Protocol):
    """Memory of one device that stands in for plain `cudaMalloc`."""

    @property
    def resource(self) -> Any:
        """RMM's resource, the counting of allocations included."""

    def unused(self) -> int:
        """Bytes that it holds of the device and nobody uses."""

    def keep(self, most: int) -> None:
        """Give back what is not used, down to so many bytes, now and whenever something is freed later."""

    def grow(self) -> None:
        """Keep all that is freed from now on."""


class AsyncPool:
    """A memory pool of CUDA's stream-ordered allocator."""

    def __init__(self) -> None:
        from cuda.bindings import runtime as bindings

        runtime = cp.cuda.runtime
        pinned, no_handle, on_device = 1, 0, 1  # of the kind that stays where it is, cudaMemAllocationTypePinned
        properties = runtime.MemPoolProps(pinned, no_handle, on_device, cp.cuda.Device().id)
        self._handle = runtime.memPoolCreate(properties)
        view = rmm.mr.CudaAsyncViewMemoryResource(bindings.cudaMemPool_t(self._handle))
        self.resource = rmm.mr.StatisticsResourceAdaptor(view)

    def unused(self) -> int:
        """Reserved and not used."""
        runtime = cp.cuda.runtime
        reserved, used = runtime.cudaMemPoolAttrReservedMemCurrent, runtime.cudaMemPoolAttrUsedMemCurrent
        return max(0, self._attribute(reserved) - self._attribute(used))

    def keep(self, most: int) -> None:
        """Set the threshold above which CUDA gives memory back, and have it do so."""
        self._set_threshold(most)
        if self.unused() > most:
            cp.cuda.Device().synchronize()  # until then what was freed last is not free
            used = self._attribute(cp.cuda.runtime.cudaMemPoolAttrUsedMemCurrent)
            cp.cuda.runtime.memPoolTrimTo(self._handle, used + most)

    def grow(self) -> None:
        """No threshold."""
        self._set_threshold(EVERYTHING)

    def _attribute(self, name: int) -> int:
        return int(cp.cuda.runtime.memPoolGetAttribute(self._handle, name))

    def _set_threshold(self, most: int) -> None:
        cp.cuda.runtime.memPoolSetAttribute(self._handle, cp.cuda.runtime.cudaMemPoolAttrReleaseThreshold, most)


class DoublingPool:
    """RMM's pool over `cudaMalloc`, whose memory UCX can map. Buffers keep the pool that they are from."""

    resource: Any

    def __init__(self, first: int) -> None:
        self._first, self.resource = max(256, first // 256 * 256), None
        self.grow()

    def unused(self) -> int:
        """What was taken and not handed out."""
        if self.resource is None:
            return 0
        used = int(self.resource.allocation_counts.current_bytes)
        return max(0, int(self.resource.upstream_mr.pool_size()) - used)

    def keep(self, most: int) -> None:
        """Let go of a pool that is larger and empty; there is another one when something is allocated again."""
        if self.unused() > most and not self.resource.allocation_counts.current_bytes:
            self.resource = None

    def grow(self) -> None:
        """Have a pool."""
        if self.resource is None:
            pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=self._first)
            self.resource = rmm.mr.StatisticsResourceAdaptor(pool)


@cp.memoize(for_each_device=True)  # type: ignore[untyped-decorator, unused-ignore]
def _own_pool() -> Pool:
    """The pool of the current device, made when it is first needed; it stays for as long as the process."""
    pool = None if _sends_by_ucx() else _async_pool()
    return DoublingPool(min(FIRST, _kept())) if pool is None else pool


@cp.memoize(for_each_device=True)  # type: ignore[untyped-decorator, unused-ignore]
def _async_pool() -> AsyncPool | None:
    """The asynchronous pool of the current device; None on an old or virtual GPU, which has no such pools."""
    with suppress(ImportError, cp.cuda.runtime.CUDARuntimeError):
        return AsyncPool()
    return None


def _sends_by_ucx() -> bool:
    """Whether this process is a Dask worker that others reach by UCX."""
    return any(str(getattr(worker, "_address", None) or "").startswith("ucx") for worker in _dask_workers())


def _bounded() -> bool:
    """Whether who started this Dask worker has set a maximum size of its pool (dask-cuda's `rmm_maximum_pool_size`)."""
    plugins = [plugin for worker in _dask_workers() for plugin in worker.plugins.values()]
    return any(getattr(plugin, "maximum_pool_size", None) is not None for plugin in plugins)


def _dask_workers() -> list[Any]:
    module = sys.modules.get("distributed.worker")
    return [] if module is None else list(module.Worker._instances)


@cp.memoize(for_each_device=True)  # type: ignore[untyped-decorator, unused-ignore]
def _kept() -> int:
    return int(KEPT * cp.cuda.runtime.memGetInfo()[1])


class _Shared:
    """What is put back when the last call of all threads ends.

    Attributes
    ----------
    calls : int
        Under way, of all threads.
    own : Pool or None
        In the place of plain `cudaMalloc`; inside `unsent`, the asynchronous pool.
    before, installed : resources of RMM
        The caller's, and the one that calls allocate from.
    budgets : list
        Resources of budgets that are entered.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.calls = 0
        self.own: Pool | None = None
        self.before: Any = None
        self.installed: Any = None
        self.budgets = list[Any]()
        self._callers: tuple[Any, Any] = (None, None)

    def begin(self) -> None:
        with self.lock:
            self.calls += 1
            try:
                if self.calls == 1:
                    self._install()
            except BaseException:  # a signal: what was there is put back
                self.end(False)
                raise

    def _install(self) -> None:
        """Have this device's allocations come from our pool, or counted from the caller's resource."""
        self.before = rmm.mr.get_current_device_resource()
        if isinstance(self.before, rmm.mr.CudaMemoryResource):
            self.own = _own_pool()
            self.own.grow()
            self.installed = self.own.resource
        else:
            self.own, self.installed = None, self._counted(self.before)
        rmm.mr.set_current_device_resource(self.installed)

    def _counted(self, resource: Any) -> Any:
        if self._callers[0] is not resource:
            self._callers = resource, rmm.mr.StatisticsResourceAdaptor(resource)
        return self._callers[1]

    def end(self, on_worker: bool) -> None:
        with self.lock:
            self.calls -= 1
            if self.calls:
                return
            now = rmm.mr.get_current_device_resource()
            if any(now is ours for ours in (self.installed, *self.budgets)):  # else the caller has set another one
                rmm.mr.set_current_device_resource(self.before)
            self.before = self.installed = None
            self.budgets.clear()
            if self._callers[0] is not None and not self._callers[1].allocation_counts.current_bytes:
                self._callers = (None, None)  # it is the caller's, who may be done with it
        if self.own is not None:
            _idle.later() if on_worker else self.give_back(_kept())

    def give_back(self, keep: int) -> None:
        """Have the pool give back what it does not need, if no call is under way."""
        with self.lock:
            if not self.calls and self.own is not None:
                self.own.keep(keep)
                for budget in list(Budget.every):
                    budget.let_go()

    @contextmanager
    def unsent(self) -> Iterator[None]:
        with self.lock:
            pool = _async_pool() if self._may_stand_aside() else None
            if pool is not None:
                before, self.own = self.own, pool
                pool.grow()
                installed, self.installed = self.installed, pool.resource
                self.budgets.append(pool.resource)  # ours, if another call of this process goes on with it
                rmm.mr.set_current_device_resource(pool.resource)
        try:
            yield
        finally:
            if pool is not None:
                with self.lock:
                    self.own, self.installed = before, installed
                    if rmm.mr.get_current_device_resource() is pool.resource:
                        rmm.mr.set_current_device_resource(installed)
                    pool.keep(_kept())

    def _may_stand_aside(self) -> bool:
        """Whether the pool of a worker that sends by UCX, alone in use here, holds little that nobody uses."""
        if not _sends_by_ucx() or self.calls > 1 or _bounded():
            return False
        if self.own is not None:
            self.own.keep(0)
            self.own.grow()
            self.installed = self.own.resource
            rmm.mr.set_current_device_resource(self.installed)
            unused = self.own.unused()
        elif isinstance(self.before, rmm.mr.PoolMemoryResource) and isinstance(
            self.before.upstream_mr, rmm.mr.CudaMemoryResource
        ):
            unused = _unused(self.before)
        else:
            return False
        return bool(unused <= (1 - USABLE) * (cp.cuda.runtime.memGetInfo()[0] + unused))


class _Idle:
    """Gives memory back, in a thread of its own, when no call has ended for a while."""

    def __init__(self) -> None:
        self._wanted, self._at = threading.Event(), 0.0
        self._thread: threading.Thread | None = None

    def later(self) -> None:
        self._at = time.monotonic() + IDLE
        if not self._wanted.is_set():
            self._wanted.set()
            if self._thread is None:
                device = cp.cuda.Device()
                self._thread = threading.Thread(target=self._run, args=(device,), name="dasktc-idle", daemon=True)
                self._thread.start()

    def _run(self, device: Any) -> None:
        while self._wanted.wait():
            self._wanted.clear()  # first: what ends from now on has this thread look once more
            while (left := self._at - time.monotonic()) > 0:
                time.sleep(left)
            with suppress(Exception), device:  # of a device that is gone
                _shared.give_back(_kept())


_shared, _idle = _Shared(), _Idle()


def share(on_worker: bool = False) -> Callable[[], None]:
    """Have cuDF, and CuPy in this thread, allocate from one pool, which is counted.

    Parameters
    ----------
    on_worker : bool
        As for `calls.one_call`.

    Returns
    -------
    callable ()
        Puts back what was there before.
    """
    undone = ExitStack()
    _shared.begin()
    undone.callback(_shared.end, on_worker)
    undone.enter_context(cp.cuda.using_allocator(rmm_cupy_allocator))
    return undone.close


@contextmanager
def unsent() -> Iterator[None]:
    """Within this block results stay in this process: allocate from the asynchronous pool, also on workers with UCX.

    It changes nothing where the pool of such a worker cannot be given back and holds more than a share of 1 - USABLE of
    what is free, where its maximum was set, where another call is under way, or where the caller's resource is no pool
    over `cudaMalloc`. What was allocated inside stays valid, but UCX sends it slowly.
    """
    with one_call(), _shared.unsent():
        yield


class Budget:
    """Inside `with`, cuDF and CuPy get so much device memory and no more: MemoryError says that it is used up.

    What was allocated inside counts until it is freed. Elementwise arithmetic is done on so few elements at a time
    that a handful of intermediates takes a small part of the budget.

    Parameters
    ----------
    most : int
        Bytes.
    """

    every: ClassVar[weakref.WeakSet[Budget]] = weakref.WeakSet()
    """All that there are, which hold the pool that they allocate from."""
    lock: ClassVar[Any] = threading.RLock()
    """Held inside: the resource and the size of chunks are the process's own, and two budgets would lift each other."""

    def __init__(self, most: int) -> None:
        self._backend, self._chunk, self._most = get_backend("cuda"), max(1 << 13, most // 512), most
        self._resource: Any = None
        self._before = 0
        self._entered = list[ExitStack]()
        self.every.add(self)

    def _begin(self) -> None:
        """Limit and count what is allocated from the pool as it is now, in a call."""
        if _shared.own is not None:  # what counts before this one have left there is not the budget's
            _shared.own.keep(0)
            _shared.own.grow()
            if not _shared.budgets:
                _shared.installed = _shared.own.resource
                rmm.mr.set_current_device_resource(_shared.installed)
        limited = rmm.mr.LimitingResourceAdaptor(_shared.installed, self._most)
        self._resource = rmm.mr.StatisticsResourceAdaptor(limited)

    def let_go(self) -> None:
        """Hold no pool that was given back, which nothing was left in."""
        if self._resource is not None and _shared.own is not None and _shared.own.resource is None:
            self._before, self._resource = self.peak, None

    def __enter__(self) -> None:
        with ExitStack() as entered:
            entered.enter_context(self.lock)
            entered.enter_context(one_call())
            if self._resource is None:
                self._begin()
            entered.callback(rmm.mr.set_current_device_resource, rmm.mr.get_current_device_resource())
            rmm.mr.set_current_device_resource(self._resource)
            _shared.budgets.append(self._resource)
            entered.callback(object.__setattr__, self._backend, "chunk", self._backend.chunk)
            object.__setattr__(self._backend, "chunk", min(self._chunk, self._backend.chunk))
            self._entered.append(entered.pop_all())

    def __exit__(self, *error: object) -> None:
        self._entered.pop().close()

    @property
    def peak(self) -> int:
        """The most bytes that were in use at a time until now."""
        now = 0 if self._resource is None else int(self._resource.allocation_counts.peak_bytes)
        return max(self._before, now)


def available() -> int:
    """Bytes that could be allocated on the current device now: free memory, and the pool's unused part."""
    return int(USABLE * free_and_total()[0])


def free_and_total() -> tuple[int, int]:
    """Bytes of the current device that nobody holds, the pool's unused part among them, and all its bytes."""
    free, total = cp.cuda.runtime.memGetInfo()
    with _shared.lock:
        calls, own = _shared.calls, _shared.own
        caller_s = _shared.before if calls else rmm.mr.get_current_device_resource()
    from_own = own is not None and (calls or isinstance(caller_s, rmm.mr.CudaMemoryResource))
    return int(free) + (own.unused() if own is not None and from_own else _unused(caller_s)), int(total)


def held() -> int:
    """Bytes of the current device that our own pool holds and nobody uses."""
    return 0 if _shared.own is None else _shared.own.unused()


def give_back(keep: int) -> None:
    """Have our own pool give back what nobody uses, but for so many bytes, where no call is under way."""
    _shared.give_back(keep)


@contextmanager
def peak() -> Iterator[list[int]]:
    """Note in the list how many bytes were in use at the most, in this block, above those before it."""
    with one_call():
        counted, noted = _shared.installed, list[int]()
        counted.push_counters()
        try:
            yield noted
        finally:
            noted.append(int(counted.pop_counters().peak_bytes))


def _unused(resource: Any) -> int:
    """What the caller's pool has taken from the device and our calls have not been handed out."""
    used = 0
    if _shared._callers[0] is resource and resource is not None:
        used = int(_shared._callers[1].allocation_counts.current_bytes)
    while resource is not None:
        if isinstance(resource, rmm.mr.PoolMemoryResource):
            return max(0, int(resource.pool_size()) - used)
        resource = getattr(resource, "upstream_mr", None)
    return 0
