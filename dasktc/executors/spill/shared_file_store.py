"""Running stages out of core on workers that share a disk: what travels is where a result stands.

A worker writes a result to the work directory as it comes, and holds nothing; who needs it maps it. So a worker
takes what the call that runs takes, and vectors of all vertices are in memory once for all workers of a machine.
A counting task reads its three blocks, keeps those used last while they fit, and has another thread read
those of the task that it will most likely run next.
"""

from __future__ import annotations

import itertools
import operator
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from dasktc.executors.dask.executor import DaskExecutor, Fold
from dasktc.executors.spill.file_store import LEAST, give_back, keep_small, once_each, small_for
from dasktc.executors.spill.prefetch import Ahead, with_next
from dasktc.executors.spill.value_files import Flat, Stored, flatten, load, store
from dasktc.executors.spill.work_dir import WorkDir

__all__ = ["OnSharedDisk"]


class OnSharedDisk(DaskExecutor):
    """Submits the stage functions to a Dask client whose workers, and this process, see the work directory.

    Parameters
    ----------
    executor : DaskExecutor
    work : WorkDir
    memory : int
        Bytes that one task may use.
    small : int, optional
        Bytes of a result below which it travels itself. Default: so few that a grid's blocks do no harm.
    """

    transpose_submits = False

    def __init__(self, executor: DaskExecutor, work: WorkDir, memory: int, small: int | None = None) -> None:
        vars(self).update(vars(executor))
        self._work, self._memory = work, memory
        self._written = _Written(work.folder, small_for(memory) if small is None else small)
        self.memory_per_call = self._needed = memory - memory // 4

    def memory(self, budget: int | None = None, backend: str = "cpu") -> int:
        """What is left of a worker's budget for a task, blocks read ahead included."""
        return self._memory if budget is None or budget >= LEAST else super().memory(budget)

    def set_task_memory(self, needed: int) -> None:
        """Hear what a counting task takes."""
        self._needed = needed

    def close(self) -> None:
        """Remove the work directory."""
        self._work.close()

    def upstream(self, delayed: list[Any]) -> list[Any]:
        """Compute them on the cluster; each is written as it is made."""
        return super().upstream([None if item is None else self._later(item) for item in delayed])

    def _later(self, item: Any) -> Any:
        """A Delayed of where the value of one will stand."""
        import dask

        key = (f"read-{self._token}", next(self._numbers))
        return dask.delayed(self._written.keep, pure=False)(item, dask_key_name=key)

    def _wrap_call(self, function: Callable[..., Any]) -> tuple[Any, ...]:
        """A task's result is where the call's result stands."""
        return (function,) if isinstance(function, _Counted) else (self._written, function)

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Submit the calls; each of their results is written before the next is made."""
        made = self._entries([self.submit(stage, function, *call) for call in calls])
        return [entry for entries in made for entry in entries]

    def transpose(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Transpose lists of pieces; they stay where they are."""
        rows, handles[:] = self._entries(handles), []
        return [[row[k] for row in rows] for k in range(count)]

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Bring results here, into memory of their own."""
        return [load(found, copy=True) if isinstance(found, Stored) else found for found in self.places(handles)]

    def values(self, handles: list[Any]) -> list[Any]:
        """Futures of results, not of where they stand. The work directory stays for as long as any of them."""
        futures = [self._plain("values", _loaded, handle) for handle in handles]
        for future in futures:
            weakref.finalize(future, _let_go, self._work).atexit = False
        return futures

    def map_unordered(
        self, stage: str, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Have each call's blocks read from files, and with them those of the next call."""
        yield from self._each(stage, function, [tuple(call) for call in calls])

    def fold_unordered(
        self,
        stage: str,
        function: Callable[..., list[Any]],
        calls: Iterable[tuple[Any, ...]],
        keys: Callable[[Any], Sequence[Any]],
        fold: Fold,
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Run the calls as `map_unordered` does; each array is a file until the sum that has it is written."""
        results, sums, kept = list[Any](), dict[Any, _Combined](), _Kept(function, self._written)
        for first, places, small in self._each(stage, kept, [tuple(call) for call in calls]):
            results.append(small)
            for key, place in zip(keys(first), places, strict=True):
                sums.setdefault(key, _Combined(self, fold.combine)).add(place)
        return results, {key: found.result() for key, found in sums.items()}

    def _each(self, stage: str, function: Callable[..., Any], work: list[tuple[Any, ...]]) -> Iterator[Any]:
        found = iter(self.places(arg for call in work for arg in call))
        placed = [tuple(itertools.islice(found, len(call))) for call in work]
        largest = max((arg.nbytes for call in placed for arg in call if isinstance(arg, Stored)), default=0)
        counted = _Counted(function, max(largest, self._memory - self._needed + largest))
        ahead = ((*call, _files(following or ())) for call, following in with_next(placed))
        yield from super().map_unordered(stage, counted, ahead)
        self._waiting.ask(self.client.run, _forget, on_error="ignore")

    def _entries(self, handles: list[Any]) -> list[list[Any]]:
        """Lists of entries, of where they stand if they were written."""
        return [
            [made.section(k) for k in range(len(made.starts) - 1)] if isinstance(made, Stored) else made
            for made in self.places(handles)
        ]

    def places(self, handles: Iterable[Any]) -> list[Any]:
        """What futures stand for: where results stand, or small results. What is no future stays as it is."""
        from distributed import Future

        given = list(handles)
        futures = {handle.key: handle for handle in given if isinstance(handle, Future)}
        results = dict(zip(futures, super().gather(futures.values()), strict=True))
        return [results[handle.key] if isinstance(handle, Future) else handle for handle in given]


@dataclass(frozen=True)
class _Written:
    """A call on a worker that writes what it makes."""

    folder: str
    small: int

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        if function is operator.getitem and isinstance(args[0], Stored) and args[0].many:
            return args[0].section(args[1])
        return self.keep(function(*once_each(_loaded, args)))

    def keep(self, result: Any) -> Any:
        """Where a result stands from now on; a small one itself."""
        many = isinstance(result, Iterator) or type(result) in (list, tuple)
        values: Iterable[Flat] = map(flatten, result if many else [result])
        if not isinstance(result, Iterator):
            values = list(values)
            if sum(value.nbytes for value in values) < self.small:
                return keep_small(values, many)
        found = store(os.path.join(self.folder, uuid4().hex), values, many)
        give_back()
        return found


@dataclass(frozen=True)
class _Kept:
    """A call on a worker that writes all it makes but the small result at the end."""

    function: Callable[..., list[Any]]
    written: _Written

    def __call__(self, *call: Any) -> tuple[Any, list[Any], Any]:
        *arrays, small = self.function(*call)
        return call[0], [self.written.keep(array) for array in arrays], small


class _Combined:
    """What has been combined of the arrays of a key: one call at a time, of all that came meanwhile.

    Files of what it took are removed by the client, when it knows where the result stands: until then the call
    may have to be made again.
    """

    def __init__(self, executor: OnSharedDisk, combine: Callable[[list[Any]], Any]) -> None:
        self._tasks, self._combine = executor, combine
        self._waiting, self._used = list[Any](), list[Any]()
        self._call: Any = None

    def add(self, place: Any) -> None:
        """Take one more."""
        self._waiting.append(place)
        if self._call is None or self._call.status != "pending":
            self._go_on()

    def result(self) -> Any:
        """Where the result of all stands."""
        while self._call is not None or len(self._waiting) > 1:
            self._go_on()
        return self._waiting[0]

    def _go_on(self) -> None:
        if self._call is not None:
            self._waiting += self._tasks.places([self._call])
            self._call = None
            for place in _files(self._used):
                place.remove()
        if len(self._waiting) > 1:
            self._used, self._waiting = self._waiting, []
            self._call = self._tasks.submit("sum", self._combine, list(self._used))


@dataclass(frozen=True)
class _Counted:
    """A call on a worker whose blocks are read ahead."""

    function: Callable[..., Any]
    memory_per_call: int

    def __call__(self, *args: Any) -> Any:
        *call, following = args
        blocks = _held(self.memory_per_call)
        found = blocks.use(_files(call))
        blocks.prepare(following)
        return self.function(*(found[arg] if isinstance(arg, Stored) else arg for arg in call))


_blocks: dict[int, Ahead] = {}
"""What each thread of a worker holds."""


def _held(memory_per_call: int) -> Ahead:
    """Blocks of this thread: none at first, and none that another count left."""
    thread = threading.get_ident()
    if thread not in _blocks or _blocks[thread].capacity != memory_per_call:
        _blocks[thread] = Ahead(memory_per_call)
        give_back()
    return _blocks[thread]


def _forget() -> None:
    while _blocks:
        _blocks.popitem()[1].__exit__()


def _let_go(work: WorkDir) -> None:
    """It was held until now."""


def _files(call: Iterable[Any]) -> list[Stored]:
    return [arg for arg in call if isinstance(arg, Stored)]


def _loaded(arg: Any) -> Any:
    if isinstance(arg, list):
        return [_loaded(item) for item in arg]
    return load(arg) if isinstance(arg, Stored) else arg
