"""Running stages out of core in one process: results that do not fit `--memory` are files.

`--memory` is what data may take beside the interpreter and the imported libraries: peak resident memory
less that before anything is read. A quarter of it keeps results; what does not fit there goes to a work
directory and is mapped when a stage needs it. Three quarters are for the one call that runs, so partitions are
made small enough for that. A graph that fits is never written.

While tasks are counted, the plan's largest task, blocks read ahead and results kept are within the budget.
"""

from __future__ import annotations

import ctypes
import operator
import pickle
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from dasktc.executors.dask.executor import Fold, LocalExecutor
from dasktc.executors.spill.prefetch import Ahead, with_next
from dasktc.executors.spill.value_files import Flat, Stored, flatten, load, store
from dasktc.executors.spill.work_dir import WorkDir
from dasktc.options import bytes_of

__all__ = [
    "LEAST",
    "OVERHEAD",
    "OnDisk",
    "blocksize_within",
    "give_back",
    "keep_small",
    "once_each",
    "room_within",
    "small_for",
    "usable",
]

SMALL = 1 << 16
"""Bytes of a result below which it stays as it is, at most."""
LEAST = 1 << 24
"""A smaller budget holds for counting tasks alone: preparing takes this much, as noise between two runs does."""
OVERHEAD = 1 << 22
"""Bytes of the budget for Python's own objects and for what malloc has not given back yet."""


class Kept:
    """A result that is in memory while there is room, and in a file afterwards."""

    def __init__(self, value: Any, nbytes: int) -> None:
        self.value, self.nbytes, self.many = value, nbytes, type(value) in (list, tuple)
        self.stored: Stored | None = None

    def load(self, copy: bool = False) -> Any:
        """The result."""
        return self.value if self.stored is None else load(self.stored, copy)


class Item:
    """An entry of a result that is a list."""

    def __init__(self, of: Kept | Stored, number: int) -> None:
        self.of, self.number = of, number

    def load(self, copy: bool = False) -> Any:
        """The entry."""
        stored = self.of.stored if isinstance(self.of, Kept) else self.of
        if stored is not None:
            return load(stored.section(self.number), copy)
        return self.of.value[self.number]  # type: ignore[union-attr]


class Later:
    """The value of a Dask Delayed, computed when it is needed, so that one is in memory at a time."""

    def __init__(self, delayed: Any) -> None:
        self._delayed = delayed

    def load(self, copy: bool = False) -> Any:
        """Compute it."""
        return self._delayed.compute(scheduler="sync")


class OnDisk(LocalExecutor):
    """Calls the stage functions in this process, one after another, and keeps their results within a budget.

    Parameters
    ----------
    work : WorkDir
    budget : int
        Bytes.
    small : int, optional
        Bytes of a result below which it stays as it is. Default: so few that a grid's blocks do no harm.
    """

    def __init__(self, work: WorkDir, budget: int, small: int | None = None) -> None:
        self._work, self._budget = work, max(budget, 1)
        self._small = small_for(self._budget) if small is None else small
        self._limit = self._budget // 4
        self.memory_per_call = self._needed = self._budget - self._limit
        self._kept: weakref.WeakSet[Kept] = weakref.WeakSet()

    def memory(self, budget: int | None = None, backend: str = "cpu") -> int:
        """What is left of the budget for a counting task, blocks read ahead included."""
        return self._budget if budget is None else usable(budget)

    def set_task_memory(self, needed: int) -> None:
        """Keep so much of the budget free for counting tasks."""
        self._limit = max(0, min(self._limit, self._budget - needed))
        self._needed = needed
        give_back()
        for kept in sorted(self._kept, key=lambda kept: -kept.nbytes):
            if self._resident() <= self._limit:
                break
            self._move_out(kept)

    def close(self) -> None:
        """Remove the work directory."""
        self._work.close()

    def upstream(self, delayed: list[Any]) -> list[Any]:
        """Handles that compute each when it is read."""
        return [None if item is None else Later(item) for item in delayed]

    def submit(self, stage: str, function: Callable[..., Any], *args: Any, prefer: str | None = None) -> Any:
        """Call the function."""
        if function is operator.getitem and isinstance(args[0], Kept | Stored) and args[0].many:
            return Item(args[0], args[1])
        return self._keep(function(*once_each(self._resolve, args)))

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Call the function; each result is kept before the next is made."""
        return [self._keep(result) for call in calls for result in function(*once_each(self._resolve, call))]

    def map(self, stage: str, function: Callable[..., Any], inputs: list[Any], *shared: Any) -> list[Any]:
        """Call the function for each input, dropping the input afterwards."""
        inputs.reverse()
        results, loaded = [], once_each(self._resolve, shared)
        while inputs:
            results.append(self._keep(function(self._resolve(inputs.pop()), *loaded)))
        return results

    def fold(self, stage: str, fold: Fold, inputs: list[Any]) -> Any:
        """Add one input after another, dropping it afterwards; the result stays in memory meanwhile."""
        inputs.reverse()
        result = fold.start()
        while inputs:
            result = fold.add(result, self._resolve(inputs.pop()))
        return self._keep(result)

    def transpose(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Transpose lists of pieces; they stay where they are."""
        rows, handles[:] = list(handles), []
        return [[self.submit(stage, operator.getitem, row, k) for row in rows] for k in range(count)]

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Bring results into memory of their own: the work directory may go before they do."""
        return [self._resolve(handle, copy=True) for handle in handles]

    def map_unordered(
        self, stage: str, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Call the function as the results are asked for, and read the next call's blocks meanwhile."""
        work = list(calls)
        give_back()
        with Ahead(self._beside(work)) as blocks:
            for call, following in with_next(work):
                result = function(*self._blocks(blocks, call, following or ()))
                yield result

    def _made(self, function: Callable[..., list[Any]], call: tuple[Any, ...]) -> list[Any]:
        return function(*once_each(self._resolve, call))

    def _blocks(self, blocks: Ahead, call: tuple[Any, ...], following: tuple[Any, ...]) -> list[Any]:
        """A call's arguments; those of the one that follows are on their way."""
        found = blocks.use([stored for arg in call if (stored := _file(arg))])
        blocks.prepare([stored for arg in following if (stored := _file(arg))])
        return [found[stored] if (stored := _file(arg)) else self._resolve(arg) for arg in call]

    def _beside(self, work: list[tuple[Any, ...]]) -> int:
        """Bytes for blocks that are read ahead: the plan has room for the largest one, and more may be left."""
        largest = max((stored.nbytes for call in work for arg in call if (stored := _file(arg))), default=0)
        return max(largest, self._budget - self._needed + largest - self._resident())

    def _keep(self, result: Any) -> Any:
        """The handle of a result: itself if it is small, else in memory while there is room, else in a file."""
        many = type(result) in (list, tuple)
        values = [flatten(value) for value in (result if many else [result])]
        nbytes = sum(value.nbytes for value in values)
        if nbytes < self._small:
            return keep_small(values, many)
        give_back()
        if self._resident() + nbytes > self._limit:
            return self._store(values, many)
        kept = Kept(result, nbytes)
        self._kept.add(kept)
        return kept

    def _store(self, values: list[Flat], many: bool) -> Stored:
        return store(self._work.new_path(), values, many).owned()

    def _move_out(self, kept: Kept) -> None:
        values = kept.value if kept.many else [kept.value]
        kept.stored = self._store([flatten(value) for value in values], kept.many)
        kept.value = None

    def _resident(self) -> int:
        return sum(kept.nbytes for kept in self._kept if kept.stored is None)

    def _resolve(self, arg: Any, copy: bool = False) -> Any:
        if isinstance(arg, list):
            return [self._resolve(item, copy) for item in arg]
        if isinstance(arg, Stored):
            return load(arg, copy)
        return arg.load(copy) if isinstance(arg, Kept | Item | Later) else arg


def small_for(budget: int) -> int:
    """Bytes of a result below which it stays as it is: the blocks of any grid then take a part of the budget."""
    return min(SMALL, budget >> 14)


def once_each(load: Callable[[Any], Any], handles: tuple[Any, ...]) -> list[Any]:
    """Results of handles; one that is there twice, as a block in two roles, is loaded once."""
    found = {id(handle): load(handle) for handle in handles}
    return [found[id(handle)] for handle in handles]


def usable(memory: int) -> int:
    """Bytes of `--memory` that a counting task may take."""
    return memory if memory < LEAST else memory - OVERHEAD


def room_within(memory: int) -> int:
    """Bytes of `--memory` that one call of a stage may take."""
    budget = usable(max(LEAST, memory))
    return budget - budget // 4


def blocksize_within(memory: int | str, most: int) -> int:
    """Bytes of a file that one part takes, so that decoding it fits: `ReadOptions.blocksize`."""
    return min(most, max(LEAST, bytes_of(memory) or 0) // 16)


def give_back() -> None:
    """Have Arrow and malloc give back what they hold free; malloc where it can be asked to: glibc."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def keep_small(values: list[Flat], many: bool) -> Any:
    """A small value that shares no memory with what it may have been cut from."""
    apart = [pickle.loads(value.head, buffers=[bytearray(buffer) for buffer in value.buffers]) for value in values]
    return apart if many else apart[0]


def _file(arg: Any) -> Stored | None:
    found = arg.stored if isinstance(arg, Kept) else arg
    return found if isinstance(found, Stored) else None
