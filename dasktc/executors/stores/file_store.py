"""Out of core in one process: results that do not fit `--memory` are written to files.

`--memory` is what data may take beside the interpreter and the imported libraries: peak resident memory less that
before anything is read. A quarter of it keeps results; others go to files of a work directory, and are mapped when a
stage needs them. Three quarters are for running calls: a call that runs alone has all of them, one of several its
thread's share, and partitions are made small enough for that. A graph that fits is never written.

While tasks are counted, running tasks, blocks read ahead and kept results are within the budget. The plan is made for
one thread: as many tasks run at the same time as there is room for, and tasks with a common block share one copy of it.

A `zict.Buffer` instead would keep the results used last; but stages read results in the order in which these were made,
so it would write those that are read next. Replayed for Kronecker 16: 172 MB written and 157 MB read back within 20 MB,
38 MB within 40 MB, where this store writes 38 and 12 MB, and reads entries of lists one by one.
"""

from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Callable, Generator, Iterable
from functools import partial
from itertools import chain, zip_longest
from math import inf
from threading import RLock
from typing import Any

from dasktc.backends.heap import trim
from dasktc.executors.base import AskWorkers, Function, LocalStore, ask_nobody
from dasktc.executors.stores.prefetch import Prefetcher
from dasktc.executors.stores.value_files import (
    Flat,
    Handle,
    ResultWriter,
    Stored,
    flatten,
    resolve,
    resolve_once,
    store,
)
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.options import bytes_of

__all__ = [
    "LEAST", "OVERHEAD", "SMALL", "FileStore", "blocksize_within", "small_for", "stage_memory_within", "usable",
]  # fmt: skip

SMALL = 1 << 16
"""Largest size, in bytes, below which a result is kept as it is."""
LEAST = 1 << 24
"""Smaller budgets bound counting tasks alone: preparing takes this much, as noise between two runs does."""
OVERHEAD = 1 << 22
"""Bytes of the budget for Python's own objects, and for memory that malloc has not yet returned."""

THREADED = 0.75
"""Share of the budget that several threads are given, because malloc keeps freed memory for each of them."""


class SpillableResult(Handle):
    """Handle of a result that is in memory until the store writes it to a file."""

    def __init__(self, value: Any, nbytes: int) -> None:
        self.value, self.nbytes, self.many = value, nbytes, type(value) in (list, tuple)
        self.stored: Stored | None = None

    def load(self, copy: bool = False) -> Any:
        """Return the result, or read it back from its file."""
        value = self.value  # read before `stored`: another thread may be writing it to a file
        return value if self.stored is None else self.stored.load(copy)


class ListEntry(Handle):
    """An entry of a result that is a list; keeps the whole result alive, but reads only its own section of a file."""

    def __init__(self, whole: SpillableResult | Stored, number: int) -> None:
        self.whole, self.number = whole, number

    def load(self, copy: bool = False) -> Any:
        """Return the entry, or read it back from its file."""
        value: Any = self.whole.value if isinstance(self.whole, SpillableResult) else None  # read before `stored`
        file = _file_of(self.whole)
        return value[self.number] if file is None else file.section(self.number).load(copy)


class FileStore(ResultWriter, LocalStore):
    """Keeps results of calls in this process within a budget: in memory while they fit, then in files.

    Parameters
    ----------
    work : WorkDir
    budget : int
        Bytes.
    small : int, optional
        Results of fewer bytes stay as they are. Default: small enough for the blocks of any grid (`small_for`).
    threads : int
        Number of concurrent calls.

    Attributes
    ----------
    prefetcher : callable (int) -> Prefetcher
        Makes the prefetcher of counting tasks' blocks, with a capacity in bytes.
    """

    def __init__(self, work: WorkDir, budget: int, small: int | None = None, threads: int = 1) -> None:
        self._work, self._plan_memory = work, max(budget, 1)
        self._budget = self._plan_memory if threads == 1 else max(1, int(THREADED * self._plan_memory))
        self.small = small_for(self._budget) if small is None else small
        self._limit = self._budget // 4
        self.memory_in_parallel = (self._budget - self._limit) // threads
        self.memory_per_call = self._task_memory = self._plan_memory - self._plan_memory // 4
        self._results: weakref.WeakSet[SpillableResult] = weakref.WeakSet()
        self._accounting = RLock()
        self.prefetcher: Callable[[int], Prefetcher] = Prefetcher

    def memory(self, budget: int | None) -> int:
        """Bytes of the budget for a counting task, blocks read ahead included."""
        return self._plan_memory if budget is None else usable(budget)

    def set_task_memory(self, needed: int, memory: float = inf) -> None:
        """Write results to files until counting tasks have this many bytes of the budget."""
        self._limit = max(0, min(self._limit, self._budget - needed))
        self._task_memory = needed
        trim()
        with self._accounting:
            for result in sorted(self._results, key=lambda result: -result.nbytes):
                if self._resident() <= self._limit:
                    break
                values = result.value if result.many else [result.value]
                result.stored = self.write([flatten(value) for value in values], result.many)
                result.value = None

    def evaluate(self, function: Function, handles: list[Any]) -> Any:
        """Call the function, with large arrays in files mapped; for an entry of a list only make a handle."""
        if function is operator.getitem and _is_list(handles[0]):
            return ListEntry(*handles)
        with _MALLOC:
            return function(*resolve_once(handles))

    def keep(self, value: Any) -> Any:
        """Return a handle of a value, or a small value itself."""
        with _MALLOC:  # a frame's column names are Arrow's
            return super().keep(value)

    def load(self, handle: Any) -> Any:
        """Load a value into memory of its own: the work directory may be removed before it is freed."""
        with _MALLOC:
            return resolve(handle, copy=True)

    def entries(self, handle: Any) -> list[Any]:
        """Handles of a list's entries, which are not moved."""
        if not _is_list(handle):
            return [self.keep(value) for value in resolve(handle)]
        file = _file_of(handle)
        length = len(handle.value) if file is None else len(file.starts) - 1
        return [ListEntry(handle, number) for number in range(length)]

    def hold(self, value: Any, nbytes: int) -> SpillableResult | None:
        """Keep a result in memory while there is room."""
        with self._accounting:
            if self._resident() + nbytes > self._limit:
                return None
            result = SpillableResult(value, nbytes)
            self._results.add(result)
            return result

    def write(self, values: Iterable[Flat], many: bool) -> Stored:
        """Write a value to a file of the work directory, which is removed with its handle."""
        with self._accounting:  # the first path makes the folder
            path = self._work.new_path()
        return store(path, values, many).owned()

    def at_a_time(self, threads: int, calls: list[tuple[Any, ...]]) -> int:
        """Number of tasks that fit beside kept results: each with its own blocks, or all sharing all blocks."""
        block_maps = [{id(arg): arg for arg in call if isinstance(arg, SpillableResult | Stored)} for call in calls]
        blocks = {number: block for block_map in block_maps for number, block in block_map.items()}
        largest = max((sum(block.nbytes for block in block_map.values()) for block_map in block_maps), default=0)
        scratch, room = max(1, self._task_memory - largest), self._budget - self._resident()
        shared_room = room - sum(block.nbytes for block in blocks.values() if _file_of(block) is not None)
        return max(1, min(threads, len(calls), max(room // max(1, self._task_memory), shared_room // scratch)))

    def tasks(
        self, function: Function, calls: list[tuple[Any, ...]], at_a_time: int = 1
    ) -> Generator[Callable[[], Any]]:
        """Yield a function that makes each call; the blocks of the next call are read while it runs."""
        trim()
        places_of_tasks: dict[int, list[Stored]] = {}
        with self.prefetcher(self._prefetch_capacity(calls, at_a_time)) as blocks:
            for number, (call, successor) in enumerate(zip_longest(calls, calls[1:])):
                places = _files_of(call)
                values = blocks.use(places, chain.from_iterable(list(places_of_tasks.values())))
                blocks.prepare(_files_of(successor or ()))
                args = [values[file] if (file := _file_of(arg)) else resolve(arg) for arg in call]
                values.clear()
                places_of_tasks[number] = places
                yield partial(_task, function, args, partial(places_of_tasks.pop, number), at_a_time > 1)

    def close(self, ask: AskWorkers = ask_nobody) -> None:
        """Remove the work directory."""
        self._work.close()

    def _prefetch_capacity(self, calls: list[tuple[Any, ...]], concurrency: int) -> int:
        """Bytes for blocks that are read ahead: the plan includes the largest one per task, and more may be left."""
        largest = max((file.nbytes for call in calls for file in _files_of(call)), default=0)
        return max(largest, self._budget - concurrency * (self._task_memory - largest) - self._resident())

    def _resident(self) -> int:
        """Bytes of all results in memory."""
        with self._accounting:
            return sum(result.nbytes for result in self._results if result.stored is None)


class _ArrowInMalloc:
    """Context in which Arrow allocates by malloc: Arrow's own pool does not return what lies between other values.

    Its first byte also costs 2 MB of memory, which no plan counts.

    The pool is one for the process, so the last of several concurrent calls restores it.
    """

    def __init__(self) -> None:
        self._lock, self._calls = RLock(), 0
        self._pool: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._calls += 1
            if self._pool is None and (arrow := sys.modules.get("pyarrow")):
                self._pool = arrow.default_memory_pool()
                arrow.set_memory_pool(arrow.system_memory_pool())

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._calls -= 1
            if not self._calls and self._pool is not None:
                sys.modules["pyarrow"].set_memory_pool(self._pool)
                self._pool = None


_MALLOC = _ArrowInMalloc()


def _task(function: Function, args: list[Any], release: Callable[[], Any], trims_heap: bool) -> Any:
    """Call a function of blocks, then free them; `trims_heap`: also return malloc's free memory to the system."""
    try:
        return function(*args)
    finally:
        args.clear()
        release()
        if trims_heap:
            trim()


def _file_of(handle: Any) -> Stored | None:
    value = handle.stored if isinstance(handle, SpillableResult) else handle
    return value if isinstance(value, Stored) else None


def _files_of(call: Iterable[Any]) -> list[Stored]:
    return [file for arg in call if (file := _file_of(arg))]


def _is_list(handle: Any) -> bool:
    return isinstance(handle, SpillableResult | Stored) and handle.many


def small_for(budget: int) -> int:
    """Bytes below which a result is kept as it is; the blocks of any grid then take a fraction of the budget."""
    return min(SMALL, budget >> 14)


def usable(memory: int) -> int:
    """Bytes of `--memory` that a counting task may take."""
    return memory if memory < LEAST else memory - OVERHEAD


def stage_memory_within(memory: int) -> int:
    """Bytes of `--memory` that one call of a stage may take."""
    budget = usable(max(LEAST, memory))
    return budget - budget // 4


def blocksize_within(memory: int | str, largest: int) -> int:
    """Bytes of a file in one part, small enough to decode within the budget: `ReadOptions.blocksize`."""
    return min(largest, max(LEAST, bytes_of(memory) or 0) // 16)
