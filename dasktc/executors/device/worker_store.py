"""What a Dask worker with a GPU does to keep `--memory`: `on_gpu.OnGpu` in the worker, beside its tasks.

The scheduler holds results of results: a `placed.Result` says where the value is, on the device, in pinned memory or
in a file of this worker. One that another worker needs travels as bytes of the host; nothing arrives on a device but
by a call, within the budget. Calls of one process run one at a time, whatever threads it has.

A counting task names the blocks of the task after it: they are copied while it counts.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from dasktc.executors.device.handles import SENDING, Result, places_of
from dasktc.executors.device.prefetch import AheadOnDevice, TransferStats
from dasktc.executors.device.store import OnGpu
from dasktc.executors.spill.work_dir import WorkDir

__all__ = ["Counted", "Within", "WorkerDeviceStore", "end", "forget", "peak"]

HOST = 0.5
"""Share of the worker's memory limit, or of what is free, that results may take pinned where nobody says."""
SOON = 5.0
"""Seconds."""
_lock = threading.RLock()
_here: dict[tuple[str, str], WorkerDeviceStore] = {}
"""By worker and run: threads that stand for workers share a process."""
_over: set[tuple[str, str]] = set()
"""Runs that are over; a call of one that was under way, or waited, leaves nothing behind."""


class WorkerDeviceStore(OnGpu):
    """Makes calls within a budget, and says where their results are."""

    _ahead: AheadOnDevice | None = None

    def count(
        self, function: Callable[..., Any], call: tuple[Any, ...], following: list[Any], needed: int, spare: bool
    ) -> Any:
        """Call a function of blocks; those of the next call come meanwhile.

        Parameters
        ----------
        function : callable (*call)
        call : tuple
        following : list
            What the next call needs besides.
        needed : int
            Bytes that the call takes.
        spare : bool
            Of these, a block's are for what comes meanwhile.
        """
        if self._ahead is None:
            self._ahead = AheadOnDevice(0, self._copies)
        blocks, self._needed = self._ahead, needed
        with self._there:
            blocks.capacity = self._make_room(call, following, spare)
            args = self._found(blocks, call, [tuple(following)])
            try:
                return self._call(function, *args)
            finally:
                self._copies.fence()  # before blocks are let go of
                del args
                blocks.settle()  # what it began to copy it copies within the budget

    def _make_room(self, call: tuple[Any, ...], following: list[Any], spare: bool) -> int:
        """Let results leave that the call has no room beside; what is left for blocks ahead."""
        own = {id(arg) for arg in call}
        memory_per_call = max(0, self._budget - self._needed)
        others = sorted((r for r in self._on_device() if id(r) not in own), key=lambda result: -result.nbytes)
        left = sum(result.nbytes for result in others)
        for result in others:
            if left <= memory_per_call:
                break
            left -= result.nbytes
            self._leave(result)
        largest = max((place.nbytes for place in places_of((*call, *following))), default=0)
        return max(0, memory_per_call + largest * spare - left)

    def end_ahead(self) -> TransferStats:
        """Let go of blocks that were copied ahead; what was copied."""
        if self._ahead is None:
            return TransferStats()
        blocks, self._ahead = self._ahead, None
        self.moves = blocks.moves()
        blocks.__exit__()
        return self.moves

    def keep(self, arrays: list[Any]) -> list[Any]:
        """Their handles; the list is emptied."""
        found: list[Any] = self._keep(arrays)
        return found

    def idle(self) -> bool:
        """Nobody holds a result of it."""
        return not self._results

    def _all_out(self) -> bool:
        ahead = self._ahead is not None and self._ahead.drop()
        there = super()._all_out()
        with SENDING:  # what is being sent is gone now, too
            return there or ahead

    def _put(self, result: Any) -> Any:
        if not isinstance(result, list):
            return super()._put(result)
        result.reverse()
        found = []
        while result:
            found.append(self._put_entry(result.pop()))
        return found

    def _put_entry(self, value: Any) -> Any:
        """The handle of an entry of a list, in memory of its own: entries go one by one."""
        from dasktc.executors.device.packing import detached, pack

        packed = pack(value)
        with suppress(MemoryError):
            if packed.on_device and self._resident() + packed.on_device <= self._limit:
                return self._put(detached(value))
        if packed.on_device < self._small:
            return self._put(value)
        found = Result(value, self._out([packed], False), [packed.on_device], self._used)
        self._results.add(found)
        return found

    def _back(self, result: Result, places: Any) -> Any:
        """One that another worker made is this one's as soon as it is on the device."""
        if result.join(self._used):
            self._results.add(result)
        return super()._back(result, places)


@dataclass(frozen=True)
class Within:
    """A call on a worker within its budget.

    Attributes
    ----------
    run : str
        A name for all calls that share the budget.
    folder : str or None
        For files; None: the worker's own.
    budget : int
        Bytes on the device.
    host : int or None
        Bytes of pinned memory for results.
    small : int or None
        As for `OnDisk`.
    """

    run: str
    folder: str | None
    budget: int
    host: int | None
    small: int | None = None

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        """The handle of what a function of results makes."""
        if function is operator.getitem and not isinstance(args[0], Result):
            return args[0][args[1]]
        if function is len and isinstance(args[0], Result) and args[0].length is not None:
            return args[0].length
        with self.turn() as store:
            return store.submit("", function, *args)

    def stream(self, function: Callable[..., Iterator[Any]], *args: Any) -> list[Any]:
        """Call a function that yields results, each of which is kept before the next is made."""
        with self.turn() as store:
            return store.stream("", function, [args])

    def value(self, handle: Any) -> Any:
        """What a handle stands for, on the host."""
        with self.turn() as store:
            return store.gather([handle])[0]

    @contextmanager
    def turn(self) -> Iterator[WorkerDeviceStore]:
        """What keeps this budget in this worker, for one call."""
        from distributed import get_worker

        key = get_worker().address, self.run
        with _lock:
            try:
                yield self.store()
            finally:
                if key in _over and key in _here:
                    _drop(key)

    def store(self) -> WorkerDeviceStore:
        """What keeps this budget in this worker."""
        from distributed import get_worker

        worker = get_worker()
        key = worker.address, self.run
        if key not in _here:
            for other in [other for other in _here if other[0] == worker.address and _here[other].idle()]:
                _drop(other)
            host = _host(worker) if self.host is None else self.host
            _here[key] = WorkerDeviceStore(
                WorkDir(self.folder or worker.local_directory), self.budget, host, self.small
            )
        return _here[key]


@dataclass(frozen=True)
class Counted:
    """A counting task on a worker within its budget.

    Attributes
    ----------
    within : Within
    function : callable
    needed : int
        Bytes that it takes.
    arity : int
        Arguments that are its own; those that follow are the next one's.
    folded : bool
        It makes arrays, which are kept here, and at last a small result.
    """

    within: Within
    function: Callable[..., Any]
    needed: int
    arity: int
    folded: bool

    def __call__(self, *args: Any) -> Any:
        """What the function makes, or handles of that."""
        with self.within.turn() as store:
            found = store.count(
                self.function, args[: self.arity], list(args[self.arity :]), self.needed, not self.folded
            )
            if not self.folded:
                return found
            small = found.pop()
            return [*store.keep(found), small]


def _host(worker: Any) -> int:
    import psutil  # not the CPU's backend, whose kernels take seconds to load

    free = int(psutil.virtual_memory().available)
    return int(HOST * min(free, worker.memory_manager.memory_limit or free))


def _of(worker: Any, run: str) -> WorkerDeviceStore | None:
    return _here.get((worker.address, run))


def end(run: str, dask_worker: Any) -> TransferStats:
    """Let go of blocks that were copied ahead on a worker; what was copied."""
    with _soon() as mine:
        found = _of(dask_worker, run) if mine else None
        return TransferStats() if found is None else found.end_ahead()


@contextmanager
def _soon() -> Iterator[bool]:
    """Whether no call runs, or ends in time: a worker's connections, which ask, must not wait for long."""
    mine = _lock.acquire(timeout=SOON)
    try:
        yield mine
    finally:
        if mine:
            _lock.release()


def peak(run: str, dask_worker: Any) -> int:
    """The most bytes that a run had on a worker's device."""
    found = _of(dask_worker, run)
    return 0 if found is None else found.peak


def forget(run: str, dask_worker: Any) -> None:
    """Nothing of a run will be called on a worker any more."""
    _over.add((dask_worker.address, run))
    with _soon() as mine:
        if mine and _of(dask_worker, run) is not None:
            _drop((dask_worker.address, run))


def _drop(key: tuple[str, str]) -> None:
    store = _here.pop(key)
    with suppress(Exception):  # of a device that is gone
        store.end_ahead()
    store.close()
