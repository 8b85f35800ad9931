"""The executor that calls stage functions in this process, on threads, without a scheduler."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any

from dasktc.backends import Backend
from dasktc.executors.base import CPU, ArgumentLists, Executor, Fold, Function, LocalStore, MemoryStore, unchanged
from dasktc.executors.threads import Call, completed, results

__all__ = ["LocalExecutor"]

ACCUMULATORS = 8
"""Most threads of a fold, because each adds to a result of its own, mostly a vector of all vertices."""


class LocalExecutor(Executor):
    """Calls stage functions in this process; independent calls run on several threads.

    Parameters
    ----------
    store : LocalStore, optional
        Keeps results. Default: in memory, without a bound.
    threads : int
        Number of concurrent calls; 1 for a store that makes one at a time.
    backend : Backend, optional
        Backend of the calls. Default: the CPU's.
    """

    def __init__(self, store: LocalStore | None = None, threads: int = 1, backend: Backend = CPU) -> None:
        self.store: LocalStore = MemoryStore() if store is None else store
        self._threads, self.backend = threads, backend

    @property
    def worker_threads(self) -> list[str]:
        """The address of this process, once per thread."""
        return [""] * self._threads

    def run_on_workers(self, function: Function, *args: Any) -> list[Any]:
        """Call the function in this process."""
        return [function(*args)]

    def submit(
        self, stage: str, function: Function, *args: Any, prefer: str | None = None, urgent: bool = False
    ) -> Any:
        """Call the function, and keep its result."""
        return self.store.call(function, list(args))

    def _all(self, calls: Generator[Call[Any]], count: int) -> list[Any]:
        """Results of independent calls, in the order of the calls."""
        return results(self._threads, calls, count, None if self.tracker is None else self.tracker.step)

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: ArgumentLists) -> list[Any]:
        """Make the calls on the threads; each result is kept before the next one of its call is made."""
        argument_lists = [list(call) for call in calls]
        lists = self._all((partial(self.store.stream, function, call) for call in argument_lists), len(argument_lists))
        return [handle for handles in lists for handle in handles]

    def map(self, stage: str, function: Function, inputs: list[Any], *shared: Any) -> list[Any]:
        """Call the function for each input, dropping the input afterwards; shared values are read once."""
        count, values = len(inputs), self.store.evaluate(_listed_args, list(shared))
        inputs.reverse()
        return self._all((partial(self.store.call, function, self._next(inputs, values)) for _ in range(count)), count)

    def _next(self, inputs: list[Any], values: list[Any]) -> list[Any]:
        """Handles of the next call; the store is told of the input of the call after it."""
        handles = [inputs.pop(), *values]
        self.store.expect(inputs[-1:])
        return handles

    def fold(self, stage: str, fold: Fold[Any], inputs: list[Any]) -> Any:
        """Reduce the inputs, freeing each afterwards; the store keeps the result once it is complete.

        Each thread adds to a result of its own; within a budget there is one thread. Where calls may be made twice, so
        may `Fold.add`: when memory is short it has changed nothing yet.
        """
        inputs.reverse()
        if self.store.repeats:
            result = self.store.evaluate(fold.start, [])
            while inputs:
                result = self.store.evaluate(partial(fold.add, result), [inputs.pop()])
            return self.store.keep(result)
        count, sums = len(inputs), list[Any]()

        def add(handles: list[Any]) -> None:
            value = self.store.evaluate(unchanged, handles)
            try:
                result = sums.pop()
            except IndexError:
                result = fold.start()
            sums.append(fold.add(result, value))

        threads = min(self._threads, ACCUMULATORS) if self.store.memory_per_call is None else 1
        results(threads, (partial(add, [inputs.pop()]) for _ in range(count)), count)
        return self.store.keep(fold.combine(sums) if len(sums) > 1 else sums.pop() if sums else fold.start())

    def map_and_fold(
        self, stage: str, function: Function, inputs: list[Any], fold: Fold[Any], *shared: Any
    ) -> tuple[list[Any], Any]:
        """Map, and reduce the results before they are kept; one call after another."""
        values, handles = self.store.evaluate(_listed_args, list(shared)), list[Any]()
        total = self.store.evaluate(fold.start, [])
        inputs.reverse()
        while inputs:
            value = self.store.evaluate(function, self._next(inputs, values))
            total = self.store.evaluate(partial(fold.add, total, value), [])
            handles.append(self.store.keep(value))
        return handles, self.store.keep(total)

    def transpose(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Transpose lists; their entries are not moved."""
        rows, handles[:] = [self.store.entries(handle) for handle in handles], []
        return [[row[k] for row in rows] for k in range(count)]

    def wait(self, handles: Iterable[Any]) -> None:
        """Wait for the device, on which calls may still run when they have returned; their time is this stage's."""
        self.backend.wait()

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Load results into memory of their own."""
        return [self.store.load(handle) for handle in handles]

    def map_unordered(self, stage: str, function: Function, calls: ArgumentLists) -> Generator[Any]:
        """Make the calls on the threads, and yield their results as they end."""
        work = [tuple(call) for call in calls]
        threads = self.store.at_a_time(self._threads, work)
        for _, result in completed(threads, self.store.tasks(function, work, threads)):
            yield result

    def close(self) -> None:
        """Remove what the store keeps."""
        self.store.close()


def _listed_args(*args: Any) -> list[Any]:
    return list(args)
