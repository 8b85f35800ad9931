"""Answers: where a prepared graph's results are in each execution mode, and so how its questions are answered."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import count
from threading import Lock, RLock
from typing import Any, ClassVar
from uuid import uuid4

from dasktc.errors import InputError, shown
from dasktc.executors.base import ArgumentLists, Executor, Fold, Function, MemoryStore, unchanged
from dasktc.executors.dask.call_queue import future_of
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.measured import Measured
from dasktc.executors.offers import memory_of
from dasktc.executors.threads import results

__all__ = ["CACHED", "Answers", "BudgetAnswers", "BudgetWorkersAnswers", "WorkersAnswers"]

Measuring = Callable[..., Measured]
CACHED = 8
"""Results that no store accounts for may take one in CACHED bytes of the free memory."""


class Answers:
    """A graph in this process's memory, without a budget: results are values.

    Attributes
    ----------
    in_one_memory : bool
        Whether one call may take every block and vector as values of this process.
    frames_on_device : bool
        Whether frames are made on the device that counted; else on the host.
    edge_frame : str or None
        Frame type of answers by edge unless the caller chooses; None: as for vertices.
    call_bytes : int or None
        Bytes that one call may take beside kept results; None: no bound.
    frame_bytes : int or None
        Bytes that each of the calls that make frames at the same time may take; None: no bound.
    caller_bytes : int or None
        Bytes that a whole frame may take where the caller receives it; None: no bound.
    """

    in_one_memory: ClassVar[bool] = True
    frames_on_device: ClassVar[bool] = True
    edge_frame: ClassVar[str | None] = None

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        store = executor.store
        self.call_bytes = self.caller_bytes = store.memory_per_call
        self.frame_bytes = self.call_bytes if store.memory_in_parallel is None else store.memory_in_parallel

    @property
    def threads_of_a_call(self) -> int:
        """Number of threads that a call may start for itself: one where other calls run, or share a budget."""
        return len(self.executor.worker_threads) if self.in_one_memory else 1

    def may_cache(self, nbytes: int) -> bool:
        """Whether results of this size may be cached: if a store or Dask accounts for them, or if they are small."""
        return not self.in_one_memory or CACHED * nbytes <= memory_of(self.executor)

    def bytes_of_sums(self, nbytes: int, tasks: int) -> int:
        """Bytes to reserve in each concurrent task for sums of arrays, `nbytes` altogether, and for what is added."""
        return 2 * nbytes

    def fold_unordered(
        self, stage: str, function: Function, calls: ArgumentLists, keys: Function, fold: Fold[Any]
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Make calls as `Executor.map_unordered` does, and combine the large arrays that they return, where they are.

        Each call's arrays are added to the sums of the calls before it, and freed. Within a budget one call is made at
        a time: two calls with their arrays exceeded it by up to a tenth.

        Parameters
        ----------
        stage : str
        function : callable (*call) -> list
            Returns arrays followed by one small result.
        calls : iterable of tuples
        keys : callable (first argument of a call) -> sequence
            Returns the keys of the call's arrays.
        fold : Fold
            Combines the arrays of each key, beginning with the first.

        Returns
        -------
        small : list
            The small results, in any order.
        sums : dict of key to handle of array
        """
        executor, work = self.executor, [tuple(call) for call in calls]
        sums, lock = dict[Any, Any](), Lock()

        def make(call: tuple[Any, ...]) -> Any:
            arrays = executor.store.evaluate(function, list(call))
            result = arrays.pop()
            with lock:
                for key in reversed(keys(call[0])):
                    addends = [sums.pop(key)] if key in sums else []
                    sums[key] = executor.submit("sum", _add_arrays, [*addends, arrays.pop()], fold.add)
            return result

        with executor.store.folding():
            threads = len(executor.worker_threads) if self.call_bytes is None else 1
            return results(threads, (partial(make, call) for call in work), len(work)), sums

    def measured(
        self, stage: str, function: Measuring, calls: ArgumentLists, prefer: Sequence[str | None]
    ) -> tuple[list[Any], list[Any]]:
        """Make calls, on the preferred workers; return handles of their results' values, and the facts about each."""
        results = self.executor.map(stage, partial(_value_and_facts, function), [list(call) for call in calls])
        return self._apart(stage, results)

    def _apart(self, stage: str, results: list[Any]) -> tuple[list[Any], list[Any]]:
        """Handles of values, and the facts, of results of `_value_and_facts`."""
        values, facts = self.executor.transpose(stage, results, 2)
        return values, self.executor.gather(facts)

    def submit_replicated(self, stage: str, function: Any, *args: Any) -> Any:
        """Submit a call whose result every process that counts needs."""
        return self.executor.submit(stage, function, *args)

    def check_functions(self, *functions: Any) -> None:
        """Refuse (InputError) functions of the caller that cannot be called where the blocks are."""

    def values(self, handles: list[Any]) -> list[Any]:
        """Turn handles into what the caller may hold: on workers, futures of values."""
        return handles

    def delayed(self, frames: list[Any]) -> list[Any]:
        """Turn handles of frames into partitions of a Dask DataFrame, which stay where they are."""
        import dask

        return [dask.delayed(frame, name=name, traverse=False) for frame, name in zip(frames, _names(), strict=False)]


class BudgetAnswers(Answers):
    """A graph in this process within a memory budget: results may be in files, and calls load what they take."""

    in_one_memory = False
    frames_on_device = False

    def measured(
        self, stage: str, function: Measuring, calls: ArgumentLists, prefer: Sequence[str | None]
    ) -> tuple[list[Any], list[Any]]:
        """Make one call after another: a result may take more than a thread's share of the budget."""
        submit = partial(self.executor.submit, stage, _value_and_facts, function)
        return self._apart(stage, [submit(list(call), prefer=home) for call, home in zip(calls, prefer, strict=True)])

    def bytes_of_sums(self, nbytes: int, tasks: int) -> int:
        """0: the store accounts for sums."""
        return 0

    def delayed(self, frames: list[Any]) -> list[Any]:
        """Partitions that this process loads when they are computed."""
        import dask

        loaders = [_Stored(self.executor, handle).load for handle in frames]
        return [dask.delayed(load, name=name, pure=False)() for load, name in zip(loaders, _names(), strict=False)]


class WorkersAnswers(Answers):
    """A graph on workers of a cluster: results are futures."""

    in_one_memory = False
    edge_frame = "dask"
    executor: DaskExecutor

    def __init__(self, executor: Executor) -> None:
        super().__init__(executor)
        self.caller_bytes = None  # the caller is another process

    def bytes_of_sums(self, nbytes: int, tasks: int) -> int:
        """A task's share: every worker adds up some of the arrays."""
        return 2 * nbytes // tasks

    def measured(
        self, stage: str, function: Measuring, calls: ArgumentLists, prefer: Sequence[str | None]
    ) -> tuple[list[Any], list[Any]]:
        """Make calls; the results stay where they are, and workers are asked for the facts."""
        return self.executor.measured(stage, function, calls, prefer)

    def check_functions(self, *functions: Any) -> None:
        """Refuse (InputError) functions that cannot be sent to workers, before Dask logs tracebacks about them."""
        import cloudpickle

        for function in functions:
            try:
                cloudpickle.dumps(function)
            except Exception as error:  # whatever an object's own pickling raises
                reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
                raise InputError(
                    f"{shown(function)} cannot be sent to workers ({reason}): it refers to an object of this process; "
                    "open files, locks and connections within the function"
                ) from error

    def submit_replicated(self, stage: str, function: Any, *args: Any) -> Any:
        """Submit a call on every worker."""
        return self.executor.replicated(stage, function, *args)

    def fold_unordered(
        self, stage: str, function: Function, calls: ArgumentLists, keys: Function, fold: Fold[Any]
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Combine arrays on workers, as soon as they are made."""
        return self.executor.fold_unordered(stage, function, calls, keys, fold)

    def values(self, handles: list[Any]) -> list[Any]:
        """Futures of values; what the store keeps lives as long as any of them."""
        executor, store = self.executor, self.executor.store
        if store.load_there is None:
            return list(map(future_of, handles))
        memory_executor = copy(executor)
        memory_executor.store = MemoryStore()
        futures = list(map(future_of, memory_executor.map("values", store.load_there, list(handles))))
        for future in futures:
            weakref.finalize(future, unchanged, store).atexit = False
        return futures

    def delayed(self, frames: list[Any]) -> list[Any]:
        """Futures."""
        return self.values(frames)


class BudgetWorkersAnswers(WorkersAnswers):
    """A graph on workers that keep results in files beyond a budget."""

    frames_on_device = False
    measured = BudgetAnswers.measured
    submit_replicated = Answers.submit_replicated  # every worker reads the one copy in files

    def bytes_of_sums(self, nbytes: int, tasks: int) -> int:
        """0: the store accounts for sums."""
        return 0


class _Stored:
    """A partition that this process keeps within a budget, possibly in a file; only its own schedulers can load it."""

    _loading = RLock()

    def __init__(self, executor: Executor, handle: Any) -> None:
        self._executor, self._handle = executor, handle

    def __reduce__(self) -> Any:
        raise InputError(
            "partitions of a graph that was prepared in this process, within memory, are in its files: no worker "
            "has them; compute with scheduler='threads', or prepare the graph with the client"
        )

    def load(self) -> Any:
        """Load the partition, one at a time: loaded values are beside the budget."""
        with self._loading:
            return self._executor.gather([self._handle])[0]


def _value_and_facts(function: Measuring, call: list[Any]) -> list[Any]:
    result = function(*call)
    return [result.value, result.facts]


def _add_arrays(arrays: list[Any], add: Callable[[Any, Any], Any]) -> Any:
    """Add all arrays to the last one, which the caller owns; empties the list."""
    result = arrays.pop()
    while arrays:
        result = add(result, arrays.pop())
    return result


def _names() -> Iterator[str]:
    """Yield unique names of partitions."""
    run = uuid4().hex[:8]
    return (f"dasktc-{run}-{number}" for number in count())
