"""The executor that calls stage functions in this process: without a scheduler a small graph is answered at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from dasktc.executors.base import (
    ArgumentLists,
    DelayedValue,
    Executor,
    Fold,
    Function,
    LocalStore,
    MemoryStore,
    available,
    unchanged,
)

__all__ = ["LocalExecutor"]


class LocalExecutor(Executor):
    """Calls the functions of stages here, one call after another.

    Parameters
    ----------
    store : LocalStore, optional
        Where results stand. Default: in memory, without a bound.
    """

    distributed = False
    workers = 1
    transpose_submits = False

    def __init__(self, store: LocalStore | None = None) -> None:
        self.store: LocalStore = MemoryStore() if store is None else store

    @property
    def worker_threads(self) -> list[str]:
        """One, here."""
        return [""]

    def memory(self, budget: int | None = None, backend: str = "cpu") -> int:
        """What the store leaves of the budget; without one, what this machine, or its GPU, has available now."""
        bound = self.store.memory(budget)
        return bound if bound is not None else budget or available(backend)

    def run_on_workers(self, function: Function, *args: Any) -> list[Any]:
        """Call the function here."""
        return [function(*args)]

    def upstream(self, delayed: list[Any]) -> list[Any]:
        """Compute them here, together; within a budget each when it is read."""
        if self.memory_per_call is not None:
            return [None if item is None else DelayedValue(item) for item in delayed]
        if all(item is None for item in delayed):
            return delayed
        import dask

        return list(dask.compute(*delayed, scheduler="sync"))

    def submit(self, stage: str, function: Function, *args: Any, prefer: str | None = None) -> Any:
        """Call the function."""
        return self.store.keep(self.store.evaluate(function, list(args)))

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: ArgumentLists) -> list[Any]:
        """Call the function, one call after another; each result is kept before the next is made, once."""
        handles: list[Any] = []
        for call in calls:

            def go_on(*args: Any, before: int = len(handles)) -> None:
                for value in islice(function(*args), len(handles) - before, None):
                    handles.append(self.store.keep(value))

            self.store.evaluate(go_on, list(call))
        return handles

    def map(self, stage: str, function: Function, inputs: list[Any], *shared: Any) -> list[Any]:
        """Call the function for each input, dropping the input afterwards; shared values are read once."""
        inputs.reverse()
        results, values = [], self.store.evaluate(_listed_args, list(shared))
        while inputs:
            results.append(self.store.keep(self.store.evaluate(function, [inputs.pop(), *values])))
        return results

    def fold(self, stage: str, fold: Fold, inputs: list[Any]) -> Any:
        """Add one input after another, dropping it afterwards; the result is not kept before it is whole.

        Where a call may be made twice `Fold.add` may, too: it has changed nothing when memory is short.
        """
        inputs.reverse()
        if self.store.repeats:
            result = self.store.evaluate(fold.start, [])
            while inputs:
                result = self.store.evaluate(partial(fold.add, result), [inputs.pop()])
            return self.store.keep(result)
        result = fold.start()
        while inputs:
            result = fold.add(result, self.store.evaluate(unchanged, [inputs.pop()]))
        return self.store.keep(result)

    def transpose(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Transpose lists whose entries stay where they are."""
        rows, handles[:] = [self.store.entries(handle) for handle in handles], []
        return [[row[k] for row in rows] for k in range(count)]

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Load results."""
        return [self.store.load(handle) for handle in handles]

    def values(self, handles: list[Any]) -> list[Any]:
        """Results."""
        return self.gather(handles)

    def map_unordered(self, stage: str, function: Function, calls: ArgumentLists) -> Iterator[Any]:
        """Call the function as the results are asked for."""
        return self.store.tasks(function, [tuple(call) for call in calls])

    def fold_unordered(
        self, stage: str, function: Function, calls: ArgumentLists, keys: Callable[[Any], Sequence[Any]], fold: Fold
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Combine each call's arrays with those of the calls before it, and let go of them."""
        results, combined = list[Any](), dict[Any, Any]()
        with self.store.folding():
            for call in calls:
                made = self.store.evaluate(function, list(call))
                results.append(made.pop())
                for key in reversed(keys(call[0])):
                    before = [combined.pop(key)] if key in combined else []
                    combined[key] = self.submit("sum", _add_arrays, [*before, made.pop()], fold.add)
        return results, combined

    def close(self) -> None:
        """Remove what the store keeps."""
        self.store.close()


def _add_arrays(arrays: list[Any], add: Callable[[Any, Any], Any]) -> Any:
    """Add to the last, which is the caller's own, what was there before; empties the list."""
    result = arrays.pop()
    while arrays:
        result = add(result, arrays.pop())
    return result


def _listed_args(*args: Any) -> list[Any]:
    return list(args)
