"""Out-of-core counting on several GPUs: each worker keeps its results within `--memory` of its device.

The scheduler tracks handles; each handle locates a value in device memory, pinned memory or a file of the worker that
made it. A value that another worker needs travels as bytes in host memory; only a call, within the budget, brings it
onto a device. Calls of one process run one at a time, however many threads it has. Each counting task is sent with the
blocks of the next task of its share, which are copied while it counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any
from uuid import uuid4

from dasktc.executors.base import AskWorkers, ClusterStore, Function, Tasks, ask_nobody
from dasktc.executors.dask.worker_state import worker_state
from dasktc.executors.process.usage import resources_of
from dasktc.executors.stores.device.handles import CALL_LOCK, DeviceHandle
from dasktc.executors.stores.device.prefetch import TransferStats
from dasktc.executors.stores.device.store import DeviceStore
from dasktc.executors.stores.device.tuning import TUNING, Tuning
from dasktc.executors.stores.file_store import LEAST
from dasktc.executors.stores.work_dir import WorkDir

__all__ = ["DeviceClusterStore", "WorkerDeviceStore"]

HOST = 0.5
"""Default share of the worker's memory limit, or of its free memory, for results in pinned memory."""
LOCK_SECONDS = 5.0
"""Seconds that a question to a worker waits for a call that runs there; the worker's connections wait as long."""


class DeviceClusterStore(ClusterStore):
    """Has workers keep results within a budget: on their devices, in pinned memory, and in files.

    Parameters
    ----------
    work : WorkDir or None
        A directory that all workers see; None: each worker has a folder of its own.
    memory : int
        Bytes on each device.
    host : int, optional
        Bytes of each worker's pinned memory. Default: half of its memory limit, or of its free memory.
    tuning : Tuning
        As for `DeviceStore`.
    replica_bytes : float
        Bytes of host memory that a thread has for copies of other workers' blocks.

    Attributes
    ----------
    transfers : dict of str to TransferStats
        Statistics of the last counting tasks, by worker.
    """

    def __init__(
        self,
        work: WorkDir | None,
        memory: int,
        host: int | None = None,
        tuning: Tuning = TUNING,
        replica_bytes: float = float("inf"),
    ) -> None:
        self._work, self._memory, self.replica_bytes = work, memory, replica_bytes
        self._worker = WorkerDeviceStore(uuid4().hex, None if work is None else work.folder, memory, host, tuning)
        self.memory_per_call = self._task_memory = memory - memory // 4
        self.load_there = self._worker.load
        self.transfers: dict[str, TransferStats] = {}

    def memory(self, budget: int | None) -> int:
        """Bytes of a device's budget for a counting task; a worker counts one at a time."""
        return self._memory if budget is None or budget >= LEAST else budget

    def set_task_memory(self, needed: int, memory: float = float("inf")) -> None:
        """Set the bytes of a counting task, which is passed to workers with each task; results make room for it."""
        self._task_memory = needed

    def load(self, handle: Any) -> Any:
        """Unpickle a result on the client, which may have no GPU: only results in host memory are gathered."""
        if isinstance(handle, list):
            return [self.load(item) for item in handle]
        return pickle.loads(handle.hosted()[0].head) if isinstance(handle, DeviceHandle) else handle

    def wrap(self, function: Function) -> Function:
        """Return a call within a worker's budget."""
        return partial(self._worker.call, function)

    def wrap_stream(self, function: Callable[..., Iterator[Any]]) -> Function:
        """Return a call within a worker's budget that keeps each result before the next is made."""
        return partial(self._worker.stream, function)

    def wrap_tasks(self, function: Function, calls: list[tuple[Any, ...]], arrays: bool) -> Tasks:
        """Return tasks that each take the blocks of the next task as well, except those that they need themselves."""
        task = partial(self._worker.task, function, self._task_memory, len(calls[0]) if calls else 0, arrays)
        return task, [
            (*call, *_other_blocks(next_call or (), call)) for call, next_call in zip_longest(calls, calls[1:])
        ]

    def after_tasks(self, ask: AskWorkers) -> None:
        """Have the workers drop prefetched blocks, and collect their transfer statistics."""
        self.transfers = ask(_end_tasks, self._worker.run)

    def peaks(self, ask: AskWorkers) -> dict[str, int]:
        """Peak of the bytes allocated on each worker's device."""
        return ask(_peak, self._worker.run)

    def close(self, ask: AskWorkers = ask_nobody) -> None:
        """Have the workers free everything that this store keeps."""
        try:
            ask(_close, self._worker.run)
        finally:
            if self._work is not None:
                self._work.close()


def _other_blocks(next_call: tuple[Any, ...], call: tuple[Any, ...]) -> list[Any]:
    from distributed import Future

    keys = {arg.key for arg in call if isinstance(arg, Future)}
    return list({arg.key: arg for arg in next_call if isinstance(arg, Future) and arg.key not in keys}.values())


# on a worker


@dataclass(frozen=True)
class WorkerDeviceStore:
    """The part of a DeviceClusterStore on a worker: makes a run's calls within its budget, and keeps their results.

    Attributes
    ----------
    run : str
        Id of all calls that share the budget.
    folder : str or None
        Folder for files; None: the worker's own.
    budget, host : int
        As `memory` and `host` of the DeviceClusterStore.
    tuning : Tuning
    """

    run: str
    folder: str | None
    budget: int
    host: int | None
    tuning: Tuning = TUNING

    def call(self, function: Function, *args: Any) -> Any:
        """Call a function with the values of handles; return a handle of its result, or for a list of each entry."""
        with self.device() as device:
            return device.call(function, list(args))

    def stream(self, function: Callable[..., Iterator[Any]], *args: Any) -> list[Any]:
        """Call a function that yields results, and keep each before the next is made."""
        with self.device() as device:
            return device.stream(function, list(args))

    def task(self, function: Function, nbytes: int, arity: int, arrays: bool, *args: Any) -> Any:
        """Run a counting task that takes `nbytes`; after its `arity` arguments come blocks of the next task.

        With `arrays` the function returns arrays, which are kept here, followed by a small result.
        """
        with self.device() as device:
            result = device.task(function, args[:arity], list(args[arity:]), nbytes, not arrays)
            if not arrays:
                return result
            small = result.pop()
            return [*device.keep(result), small]

    def load(self, handle: Any) -> Any:
        """Copy the value of a handle to the host."""
        with self.device() as device:
            return device.load(handle)

    @contextmanager
    def device(self) -> Iterator[DeviceStore]:
        """Context with the run's store on this worker, for one call; late calls of ended runs free it on exit."""
        state = worker_state()
        with CALL_LOCK:
            try:
                yield self._device(state)
            finally:
                if self.run in state.ended:
                    _drop(state, self.run)

    def _device(self, state: Any) -> DeviceStore:
        """The run's store on this worker, created on demand; stores of other runs that hold nothing are dropped."""
        if self.run not in state.devices:
            from distributed import get_worker

            for idle_run in [run for run, device in state.devices.items() if device.idle]:
                _drop(state, idle_run)
            worker = get_worker()
            host = _pinned_bytes(worker) if self.host is None else self.host
            work = WorkDir(self.folder or worker.local_directory)
            state.devices[self.run] = DeviceStore(work, self.budget, host, self.tuning, entrywise=True)
        return state.devices[self.run]  # type: ignore[no-any-return]


def _pinned_bytes(worker: Any) -> int:
    import psutil  # not the CPU backend, whose kernels take seconds to load

    free = int(psutil.virtual_memory().available)
    return int(HOST * min(free, resources_of(worker).limit or free))


@contextmanager
def _between_calls() -> Iterator[bool]:
    """Context whose value tells whether no call runs, or ended in time: a worker's connections must not wait long."""
    is_free = CALL_LOCK.acquire(timeout=LOCK_SECONDS)
    try:
        yield is_free
    finally:
        if is_free:
            CALL_LOCK.release()


def _end_tasks(run: str, dask_worker: Any) -> TransferStats:
    """Drop a worker's prefetched blocks, and return its transfer statistics."""
    with _between_calls() as is_free:
        device = worker_state(dask_worker).devices.get(run) if is_free else None
        return TransferStats() if device is None else device.end_tasks()


def _peak(run: str, dask_worker: Any) -> int:
    """Peak of the bytes that a run had allocated on a worker's device."""
    device = worker_state(dask_worker).devices.get(run)
    return 0 if device is None else device.peak


def _close(run: str, dask_worker: Any) -> None:
    """Free everything that a run has on a worker, now or when its last call there ends."""
    state = worker_state(dask_worker)
    state.ended.append(run)
    with _between_calls() as is_free:
        if is_free:
            _drop(state, run)


def _drop(state: Any, run: str) -> None:
    device = state.devices.pop(run, None)
    if device is not None:
        with suppress(Exception):  # the device is gone
            device.end_tasks()
        device.close()
