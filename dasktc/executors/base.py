"""What runs stage functions: the protocol, and the executor that calls them here and now.

Without a scheduler, so that a small graph is answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

__all__ = ["Executor", "Fold", "LocalExecutor", "available"]


class Fold(NamedTuple):
    """A reduction of many inputs to one result, as Dask's `fold`: one result is held at a time.

    Attributes
    ----------
    start : callable () -> result
        Of no input.
    add : callable (result, input) -> result
        May overwrite `result`, which nobody else has.
    combine : callable (list of results) -> result
        Associative and commutative. May empty the list, not overwrite the results.
    """

    start: Callable[[], Any]
    add: Callable[[Any, Any], Any]
    combine: Callable[[list[Any]], Any]

    def alone(self, item: Any) -> Any:
        """The result of one input."""
        return self.add(self.start(), item)


class Executor(Protocol):
    """An executor of stage functions. A handle is what stands for a result: itself, or a future."""

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        ...

    @property
    def worker_threads(self) -> list[str]:
        """For each task that runs at a time the worker that runs it."""
        ...

    def memory(self, budget: int | None = None, backend: str = "cpu") -> int:
        """Bytes that one task may use, of a worker's budget; without one, of what a worker has."""
        ...

    def run_on_workers(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call `function(*args)` once in every process that runs tasks."""
        ...

    @property
    def memory_per_call(self) -> int | None:
        """Bytes that one call may take beside results that are kept; None: no budget was given."""
        ...

    def set_task_memory(self, needed: int) -> None:
        """Hear what a counting task takes: results are kept beside it."""
        ...

    def upstream(self, delayed: list[Any]) -> list[Any]:
        """Handles of the values of Dask Delayeds, computed together; of None for None."""
        ...

    def submit(self, stage: str, function: Callable[..., Any], *args: Any, prefer: str | None = None) -> Any:
        """Call `function(*args)`, on the preferred worker if it lives.

        Handles among args (or lists of them) are replaced by their results.
        """
        ...

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Call `function(*call)`, which yields results, for each call; a handle of every result, in order."""
        ...

    def map(self, stage: str, function: Callable[..., Any], inputs: list[Any], *shared: Any) -> list[Any]:
        """Call `function(input, *shared)` for each input, and empty `inputs`.

        The list is taken over so that each input can be freed as soon as it is used; pass
        `list(inputs)` to keep it.
        """
        ...

    def fold(self, stage: str, fold: Fold, inputs: list[Any]) -> Any:
        """Reduce inputs to one result, and empty `inputs` as `map` does."""
        ...

    @property
    def transpose_submits(self) -> bool:
        """Each of `transpose` is a task for a scheduler."""
        ...

    def transpose(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Transpose lists of `count` pieces each: the result's entry k holds piece k of every handle."""
        ...

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Bring (small) results here."""
        ...

    def values(self, handles: list[Any]) -> list[Any]:
        """Handles that stand for results outside of dasktc too: futures, with a client."""
        ...

    def map_unordered(
        self, stage: str, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Call `function(*call)` for each call and yield the (small) results as they come, in any order."""
        ...

    def fold_unordered(
        self,
        stage: str,
        function: Callable[..., list[Any]],
        calls: Iterable[tuple[Any, ...]],
        keys: Callable[[Any], Sequence[Any]],
        fold: Fold,
    ) -> tuple[list[Any], dict[Any, Any]]:
        """As `map_unordered`, for a function that also makes large arrays, which are combined where they are.

        Parameters
        ----------
        stage : str
        function : callable (*call) -> list of arrays, and at its end a small result
        calls : iterable of tuples
        keys : callable (object) -> sequence of keys
            Of a call's first argument: the keys of the arrays that it makes.
        fold : Fold
            Of the arrays of a key; it begins with the first one.

        Returns
        -------
        results : list of the small results, in any order
        combined : dict of key to handle
        """
        ...


class LocalExecutor:
    """Calls the stage functions in this process, one after another."""

    workers = 1
    memory_per_call: int | None = None
    transpose_submits = False

    @property
    def worker_threads(self) -> list[str]:
        """One, here."""
        return [""]

    def set_task_memory(self, needed: int) -> None:
        """Nothing: what is kept has no bound."""

    def memory(self, budget: int | None = None, backend: str = "cpu") -> int:
        """All of it; without a budget, what this machine, or its GPU, has available now."""
        return budget or available(backend)

    def run_on_workers(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call the function here."""
        return [function(*args)]

    def upstream(self, delayed: list[Any]) -> list[Any]:
        """Compute them here."""
        if all(item is None for item in delayed):
            return delayed
        import dask

        return list(dask.compute(*delayed, scheduler="sync"))

    def submit(self, stage: str, function: Callable[..., Any], *args: Any, prefer: str | None = None) -> Any:
        """Call the function."""
        return function(*args)

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Call the function, one call after another."""
        return [result for call in calls for result in function(*call)]

    def map(self, stage: str, function: Callable[..., Any], inputs: list[Any], *shared: Any) -> list[Any]:
        """Call the function for each input, dropping the input afterwards."""
        inputs.reverse()
        results = []
        while inputs:
            results.append(function(inputs.pop(), *shared))
        return results

    def fold(self, stage: str, fold: Fold, inputs: list[Any]) -> Any:
        """Add one input after another, dropping it afterwards."""
        inputs.reverse()
        result = fold.start()
        while inputs:
            result = fold.add(result, inputs.pop())
        return result

    def transpose(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Transpose lists of pieces."""
        rows, handles[:] = list(handles), []
        return [[row[k] for row in rows] for k in range(count)]

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Nothing to bring: handles are results."""
        return list(handles)

    def values(self, handles: list[Any]) -> list[Any]:
        """Results."""
        return self.gather(handles)

    def map_unordered(
        self, stage: str, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Call the function as the results are asked for."""
        for call in calls:
            yield function(*call)

    def fold_unordered(
        self,
        stage: str,
        function: Callable[..., list[Any]],
        calls: Iterable[tuple[Any, ...]],
        keys: Callable[[Any], Sequence[Any]],
        fold: Fold,
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Combine each call's arrays with those of the calls before it, and let go of them."""
        results, combined = list[Any](), dict[Any, Any]()
        for call in calls:
            found = self._made(function, call)
            results.append(found.pop())
            for key in reversed(keys(call[0])):
                have = [combined.pop(key)] if key in combined else []
                combined[key] = self.map("sum", _added, [[*have, found.pop()]], fold.add)[0]
        return results, combined

    def _made(self, function: Callable[..., list[Any]], call: tuple[Any, ...]) -> list[Any]:
        """What a call makes, all of it here and nobody else's."""
        return function(*call)


def _added(arrays: list[Any], add: Callable[[Any, Any], Any]) -> Any:
    """The last, which is the caller's own, and what was there before; empties the list."""
    result = arrays.pop()
    while arrays:
        result = add(result, arrays.pop())
    return result


def available(backend: str) -> int:
    """Bytes that this process could allocate now where a backend's blocks are."""
    from dasktc.backends import get_backend

    return get_backend(backend).memory()
