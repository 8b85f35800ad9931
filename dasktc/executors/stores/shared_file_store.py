"""Out of core on a cluster: workers write results to files on a shared disk.

Workers write each result to the work directory at once; consumers memory-map it, and only its place in a file travels
between processes. So a worker takes the memory of its running call, and vectors of all vertices are in memory once for
all workers of a machine. A counting task reads its three blocks, keeps those used last while they fit, and has
another thread read those of the task that its own thread will most likely run next.

Dask's own spilling does not keep `--memory`: its limit is set when a worker starts, and a value that is used or sent
comes back to the worker's memory as a whole.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from math import inf
from typing import Any
from uuid import uuid4

from dasktc.backends.heap import keep_nothing, trim
from dasktc.executors.base import AskWorkers, ClusterStore, Function, Tasks, ask_nobody
from dasktc.executors.dask.worker_state import worker_state
from dasktc.executors.stores.file_store import LEAST, small_for
from dasktc.executors.stores.prefetch import Prefetcher
from dasktc.executors.stores.value_files import Flat, ResultWriter, Stored, resolve, resolve_once, store
from dasktc.executors.stores.work_dir import WorkDir

__all__ = ["SharedFileStore"]


class SharedFileStore(ClusterStore):
    """Has workers keep results in the work directory, which they and this process can access.

    Parameters
    ----------
    work : WorkDir
    memory : int
        Bytes that one task may use.
    small : int, optional
        Results of fewer bytes travel themselves. Default: small enough for the blocks of any grid (`small_for`).
    """

    placed = True

    def __init__(self, work: WorkDir, memory: int, small: int | None = None) -> None:
        self._work, self._memory, self._run = work, memory, uuid4().hex
        self._writer = FileWriter(work.folder, small_for(memory) if small is None else small)
        self.memory_per_call = self._task_memory = memory - memory // 4
        self.load_there = resolve

    def memory(self, budget: int | None) -> int | None:
        """Bytes of a worker's budget that a task may take, prefetched blocks included."""
        return self._memory if budget is None or budget >= LEAST else None

    def set_task_memory(self, needed: int, memory: float = inf) -> None:
        """Reserve this many bytes for a counting task; prefetched blocks get the rest."""
        self._task_memory = needed

    def entries(self, handle: Any) -> list[Any]:
        """Places of a list's entries; a small list is its entries."""
        if isinstance(handle, Stored):
            return [handle.section(k) for k in range(len(handle.starts) - 1)]
        return list(handle)

    def load(self, handle: Any) -> Any:
        """Read a result into memory of its own."""
        return resolve(handle, copy=True)

    def wrap(self, function: Function) -> Function:
        """Return a call whose result is written at once."""
        return partial(self._writer, function)

    def wrap_stream(self, function: Callable[..., Iterator[Any]]) -> Function:
        """Return a call that writes each result before the next is made."""
        return self.wrap(function)

    def wrap_tasks(self, function: Function, calls: list[tuple[Any, ...]], arrays: bool) -> Tasks:
        """Wrap counting tasks so that blocks are prefetched: each call is given the files of the next one."""
        largest = max((arg.nbytes for call in calls for arg in _files_of(call)), default=0)
        capacity = max(largest, self._memory - self._task_memory + largest)
        task = partial(self._writer.task, function, self._run, capacity, arrays)
        return task, [(*call, _files_of(successor or ())) for call, successor in zip_longest(calls, calls[1:])]

    def after_tasks(self, ask: AskWorkers) -> None:
        """Have the workers drop prefetched blocks."""
        ask(_drop_prefetchers, self._run)

    def discard(self, handle: Any) -> None:
        """Remove the file of a result."""
        if isinstance(handle, Stored):
            handle.remove()

    def close(self, ask: AskWorkers = ask_nobody) -> None:
        """Have the workers drop prefetched blocks, which a failed count may leave, and remove the work directory."""
        try:
            self.after_tasks(ask)
        finally:
            self._work.close()


@dataclass(frozen=True)
class FileWriter(ResultWriter):
    """Makes calls on a worker, and writes their results to a folder, except results of fewer than `small` bytes."""

    folder: str
    small: int

    def __call__(self, function: Function, *args: Any) -> Any:
        """Load values, call the function, and return the place of its result."""
        keep_nothing()
        if function is operator.getitem and isinstance(args[0], Stored) and args[0].many:
            return args[0].section(args[1])
        return self.keep(function(*resolve_once(list(args))))

    def task(self, function: Function, run: str, capacity: int, arrays: bool, *args: Any) -> Any:
        """Run a counting task: read its blocks, begin to read those of the next one, call the function.

        With `arrays` the function returns arrays, which are written, followed by a small result.
        """
        keep_nothing()
        *call, next_files = args
        blocks = _prefetcher(run, capacity)
        values = blocks.use(_files_of(call))
        blocks.prepare(next_files)
        result = function(*(values[arg] if isinstance(arg, Stored) else arg for arg in call))
        if not arrays:
            return result
        return call[0], [self.keep(array) for array in result[:-1]], result[-1]

    def write(self, values: Iterable[Flat], many: bool) -> Stored:
        """Write a value to a file of the folder; the client removes it."""
        place = store(os.path.join(self.folder, uuid4().hex), values, many)
        trim()
        return place


def _prefetcher(run: str, capacity: int) -> Prefetcher:
    """Return the prefetcher of this worker thread for a task; a new one for another run or another count.

    The former one goes, also one that a dead client's run left, which nobody else would drop. If another question about
    the same graph ends meanwhile and drops the run's prefetchers, this one lives until the task ends.
    """
    prefetchers, thread = worker_state().prefetchers, threading.get_ident()
    blocks: Prefetcher | None
    owner, blocks = prefetchers.get(thread, ("", None))
    if blocks is None or owner != run or blocks.capacity != capacity:
        blocks = Prefetcher(capacity)
        prefetchers[thread] = run, blocks  # frees the former one's blocks, after the read under way
        trim()
    return blocks


def _drop_prefetchers(run: str, dask_worker: Any) -> None:
    prefetchers = worker_state(dask_worker).prefetchers
    for thread in [thread for thread, (owner, _) in list(prefetchers.items()) if owner == run]:
        prefetchers.pop(thread, None)


def _files_of(call: Iterable[Any]) -> list[Stored]:
    return [arg for arg in call if isinstance(arg, Stored)]
