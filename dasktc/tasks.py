"""How stage functions are run: called here and now, or as Dask tasks. The stages know neither.

`Direct` calls each function at once, in this process: no scheduler, so that a small graph is
answered at once. `OnCluster` submits the same calls to a client; a key such as
("canonical-1f3a9c02", 4) puts every stage into a task group of its own on the dashboard. The token
keeps two runs on one cluster apart: without it the second would be handed the first one's results.
"""

from __future__ import annotations

import itertools
import operator
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from dasktc.errors import ClusterError
from dasktc.scheduler import free_stranded, retry_erred

__all__ = ["RETRIES", "WORKER_SECONDS", "Direct", "Fold", "OnCluster", "Tasks", "available", "tree"]

RETRIES = 10
WORKER_SECONDS = 60

FILLABLE = 0.6
"""Share of a worker's memory limit beyond which Dask moves results to disk."""


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


class Tasks(Protocol):
    """An executor of stage functions. A handle is what stands for a result: itself, or a future."""

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        ...

    def memory(self, budget: int | None = None, backend: str = "cpu") -> int:
        """Bytes that one task may use, of a worker's budget; without one, of what a worker has."""
        ...

    def everywhere(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call `function(*args)` once in every process that runs tasks."""
        ...

    @property
    def room(self) -> int | None:
        """Bytes that one call may take beside results that are kept; None: no budget was given."""
        ...

    def reserve(self, needed: int) -> None:
        """Hear what a counting task takes: results are kept beside it."""
        ...

    def upstream(self, delayed: list[Any]) -> list[Any]:
        """Handles of the values of Dask Delayeds, computed together; of None for None."""
        ...

    def submit(self, stage: str, function: Callable[..., Any], *args: Any) -> Any:
        """Call `function(*args)`, handles among args (or lists of them) replaced by their results."""
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

    def pieces(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Transpose lists of `count` pieces each: the result's entry k holds piece k of every handle."""
        ...

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Bring (small) results here."""
        ...

    def values(self, handles: list[Any]) -> list[Any]:
        """Handles that stand for results outside of dasktc too: futures, with a client."""
        ...

    def each(self, stage: str, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Call `function(*call)` for each call and yield the (small) results as they come, in any order."""
        ...


class Direct:
    """Calls the stage functions in this process, one after another."""

    workers = 1
    room: int | None = None

    def reserve(self, needed: int) -> None:
        """Nothing: what is kept has no bound."""

    def memory(self, budget: int | None = None, backend: str = "cpu") -> int:
        """All of it; without a budget, what this machine, or its GPU, has available now."""
        return budget or available(backend)

    def everywhere(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call the function here."""
        return [function(*args)]

    def upstream(self, delayed: list[Any]) -> list[Any]:
        """Compute them here."""
        if all(item is None for item in delayed):
            return delayed
        import dask

        return list(dask.compute(*delayed, scheduler="sync"))

    def submit(self, stage: str, function: Callable[..., Any], *args: Any) -> Any:
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

    def pieces(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Transpose lists of pieces."""
        rows, handles[:] = list(handles), []
        return [[row[k] for row in rows] for k in range(count)]

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Nothing to bring: handles are results."""
        return list(handles)

    def values(self, handles: list[Any]) -> list[Any]:
        """Results."""
        return self.gather(handles)

    def each(self, stage: str, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Call the function as the results are asked for."""
        for call in calls:
            yield function(*call)


class OnCluster:
    """Submits the stage functions to a Dask client.

    Every task is pure and may run again on another worker: nothing is scattered, nothing is pinned.

    Parameters
    ----------
    client : distributed.Client
    patience : float
        Seconds without any worker after which it gives up; Dask itself would wait for ever.
    retries : int
        Times that a task is submitted again whose worker died more often than Dask forgives.
    """

    room: int | None = None

    def reserve(self, needed: int) -> None:
        """Nothing: workers move to disk what does not fit."""

    def __init__(self, client: Any, patience: float = WORKER_SECONDS, retries: int = RETRIES) -> None:
        self.client = client
        self._patience, self._retries = patience, retries
        self._deaths: Counter[Any] = Counter()
        self._calls: dict[Any, Any] = {}
        self._token = uuid4().hex[:8]
        self._numbers = itertools.count()

    @property
    def workers(self) -> int:
        """Threads over all workers now, at least 1."""
        cores: list[int] = list(self._ask(self.client.ncores).values())
        return max(1, sum(cores))

    def memory(self, budget: int | None = None, backend: str = "cpu") -> int:
        """The smallest share of a thread in its worker's budget.

        Without one, in what Dask lets it fill, or in what its GPU has available now.
        """
        found: dict[str, Any] = {}
        while not found:  # the client's own poll, which asks for no worker, may take the answer's place
            self.wait_for_workers()
            found = self._ask(self.client.scheduler_info, n_workers=-1)["workers"]
        there: dict[str, int] = (
            self._ask(self.client.run, available, backend) if backend != "cpu" and not budget else {}
        )
        shares: list[int] = [
            (budget or there.get(address) or _fillable(worker["memory_limit"])) // worker["nthreads"]
            for address, worker in found.items()
        ]
        return min(shares)

    def everywhere(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call the function on every worker, beside its tasks."""
        found: dict[str, Any] = {}
        while not found:  # nobody answers where all die at the moment
            self.wait_for_workers()
            found = self._ask(self.client.run, function, *args, on_error="ignore")
        return list(found.values())

    def wait_for_workers(self) -> None:
        """Return once there is a worker.

        Raises
        ------
        ClusterError
            None came in time.
        """
        if not self._have_workers():
            raise ClusterError(
                f"no worker joined {self._address} in {self._patience:g} s: none was started, they died, or they "
                "cannot reach it; start one with `dask worker ADDRESS`, or wait longer with --worker-timeout"
            )

    def _have_workers(self) -> bool:
        """Whether there is a worker, or one comes in time."""
        began = time.monotonic()
        while not (found := bool(self._ask(self.client.ncores))) and time.monotonic() - began < self._patience:
            time.sleep(0.1)
        return found

    def _ask(self, question: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Ask the scheduler something; not to reach it is an error of the cluster."""
        try:
            return question(*args, **options)
        except OSError as error:
            raise _lost(error) from error

    @property
    def _address(self) -> str:
        return str(self.client.scheduler.address)

    def upstream(self, delayed: list[Any]) -> list[Any]:
        """Compute them on the cluster; their values stay there."""
        if all(item is None for item in delayed):
            return delayed
        futures: list[Any] = self.client.compute(delayed)
        return futures

    def submit(self, stage: str, function: Callable[..., Any], *args: Any, prefer: str | None = None) -> Any:
        """Submit one call, to the preferred worker if it lives; the future's key is (stage-token, number)."""
        key = (f"{stage}-{self._token}", next(self._numbers))
        where: dict[str, Any] = {} if prefer is None else {"workers": [prefer], "allow_other_workers": True}
        return self.client.submit(function, *args, key=key, pure=False, **where)

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Submit the calls and wait for them; then one task a result hands it over."""
        made = [self.submit(stage, _listed, function, *call) for call in calls]
        counts = self.gather([self.submit(stage, len, results) for results in made])
        return [
            self.submit(stage, operator.getitem, results, k)
            for results, count in zip(made, counts, strict=True)
            for k in range(count)
        ]

    def map(self, stage: str, function: Callable[..., Any], inputs: list[Any], *shared: Any) -> list[Any]:
        """Submit a call for each input; inputs that nobody else holds are freed by the scheduler."""
        futures = [self.submit(stage, function, item, *shared) for item in inputs]
        inputs.clear()
        return futures

    def fold(self, stage: str, fold: Fold, inputs: list[Any]) -> Any:
        """Submit a call for each input, and combine their results in a tree."""
        return tree(self, stage, fold.combine, self.map(stage, fold.alone, inputs))

    def pieces(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Submit one task a piece, so that a piece travels alone, from worker to worker."""
        rows, handles[:] = list(handles), []
        return [[self.submit(stage, operator.getitem, row, k) for row in rows] for k in range(count)]

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Bring results to the client; the first error among them is raised here."""
        futures = list(handles)
        results = {future.key: result for future, result in self._ended(futures)}
        return [results[future.key] for future in futures]

    def values(self, handles: list[Any]) -> list[Any]:
        """They are futures."""
        return handles

    def each(self, stage: str, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Take each result to the client as it ends, so that no later loss of a worker can undo it.

        The calls are dealt out evenly, neighbours together: left alone, Dask runs most of them where
        their input is. A preference is not a demand: the calls of a worker that dies go to others.
        """
        work = list(calls)
        slots = sorted(address for address, threads in self._ask(self.client.ncores).items() for _ in range(threads))
        futures = [
            self.submit(stage, function, *call, prefer=slots[i * len(slots) // len(work)] if slots else None)
            for i, call in enumerate(work)
        ]
        self._calls = {future.key: call[0] for future, call in zip(futures, work, strict=True)}
        for future, result in self._ended(futures):
            future.release()
            yield result

    def _ended(self, futures: list[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield futures and results as they end; give up when tasks are cancelled or no worker is left."""
        left = {future.key: future for future in futures}
        with _one_line():
            while left:
                for future, result in self._until_killed(list(left.values())):
                    del left[future.key]
                    yield future, result
                if not any(_was_killed(future) for future in left.values()):
                    break
                self._again(list(left.values()))
        if left:
            raise ClusterError(f"{len(left):,} tasks were cancelled: the cluster was restarted or shut down; run again")

    def _until_killed(self, futures: list[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield futures and results as they end, until one has lost too many workers."""
        from distributed import as_completed

        pause, checked = 0.0005, time.monotonic()
        ended = as_completed(futures, loop=self.client.loop, with_results=True, raise_errors=False)
        while not ended.is_empty():
            batch = ended.next_batch(block=False)
            pause = 0.0005 if batch else min(2 * pause, 0.02)
            for future, result in batch:
                if future.status == "finished":
                    yield future, result
                elif not _was_killed(future):
                    future.result()  # raises what went wrong, at once
            if any(_was_killed(future) for future, _ in batch):
                return
            if not batch and time.monotonic() - checked > 1:
                self._see_to_workers()
                checked = time.monotonic()
            if not batch:
                time.sleep(pause)

    def _see_to_workers(self) -> None:
        """Give up when all workers are lost for good; let tasks go on whose preferred worker is."""
        if not self._have_workers():
            raise ClusterError(
                f"all workers of {self._address} were lost, and none came back in {self._patience:g} s: they died or "
                "were stopped; start some with `dask worker ADDRESS` and run again, or wait longer with "
                "--worker-timeout"
            )
        self._ask(free_stranded, self.client, self._token)

    def _again(self, futures: list[Any]) -> None:
        """Have those tasks run again that Dask gave up because workers died under them, or under what they need.

        Dask cannot tell a task that kills its worker from one that was there when it died: each has
        `retries` lives beyond the three that Dask itself gives it.
        """
        killed = [future for future in futures if _was_killed(future)]
        for error in {future.exception().task: future.exception() for future in killed}.values():
            self._deaths[error.task] += 1
            if self._deaths[error.task] > self._retries:
                raise self._deadly(error) from error

        self._ask(retry_erred, self.client, [future.key for future in killed])
        told = time.monotonic() + 5
        while any(future.status == "error" for future in killed) and time.monotonic() < told:
            time.sleep(0.001)  # the scheduler's message is on its way

    def _deadly(self, error: Any) -> ClusterError:
        what = f" ({self._calls[error.task]})" if error.task in self._calls else ""
        deaths = error.allowed_failures + self._deaths[error.task]
        return ClusterError(
            f"task {error.task}{what} ended its worker {deaths} times: it needs more memory than a worker has, or "
            "crashes it; give workers more memory, cut the input smaller, or, where workers are killed from outside, "
            "raise --retries"
        )


def _listed(function: Callable[..., Iterator[Any]], *args: Any) -> list[Any]:
    return list(function(*args))


def _was_killed(future: Any) -> bool:
    from distributed import KilledWorker

    return future.status == "error" and isinstance(future.exception(), KilledWorker)


def available(backend: str) -> int:
    """Bytes that this process could allocate now where a backend's blocks are."""
    from dasktc.backend import get_backend

    return get_backend(backend).memory()


def _fillable(limit: int) -> int:
    import psutil

    return int(FILLABLE * (limit or psutil.virtual_memory().total))


@contextmanager
def _one_line() -> Iterator[None]:
    """Say Dask's own failures in one line."""
    from distributed import CancelledError

    try:
        yield
    except CancelledError as error:
        if "scheduler-connection-lost" in str(error):
            raise _lost(error) from error
        why = " ".join(str(error).split())
        raise ClusterError(
            f"a task was cancelled ({why}): the cluster was restarted or shut down; run again"
        ) from error


def _lost(error: Exception) -> ClusterError:
    return ClusterError(
        f"the scheduler does not answer any more ({type(error).__name__}): it died, or the network to it did; start a "
        "cluster and run again (a count with --checkpoint goes on where it was)"
    )


def tree(tasks: Tasks, stage: str, function: Callable[[list[Any]], Any], handles: list[Any], arity: int = 8) -> Any:
    """Reduce handles to one with `function(list)`, `arity` at a time, and empty the list.

    Parameters
    ----------
    tasks : Tasks
    stage : str
    function : callable (list) -> object
        Associative and commutative, e.g. the sum of arrays.
    handles : list of handles, at least one
    arity : int

    Returns
    -------
    handle
    """
    level, handles[:] = list(handles), []
    while len(level) > 1:
        groups = [level[i : i + arity] for i in range(0, len(level), arity)]
        level = [group[0] if len(group) == 1 else tasks.submit(stage, function, group) for group in groups]
    return level[0]
