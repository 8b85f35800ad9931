"""How stage functions are run: called here and now, or as Dask tasks. The stages know neither.

`LocalExecutor` calls each function at once, in this process. `DaskExecutor` submits the same calls to a client; a key
such as ("canonical-1f3a9c02", 4) puts every stage into a task group of its own on the dashboard. The token
keeps two runs on one cluster apart: without it the second would be handed the first one's results.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import inf
from typing import Any
from uuid import uuid4

from dasktc.backends.out_of_memory import run
from dasktc.errors import ClusterError, DasktcError
from dasktc.executors.base import Executor, Fold, LocalExecutor, available
from dasktc.executors.dask.flow_control import WindowedSubmitter
from dasktc.executors.dask.futures import FixedFutures, Waiting

__all__ = ["RETRIES", "WORKER_SECONDS", "DaskExecutor", "Executor", "Fold", "LocalExecutor", "available", "tree"]

RETRIES = 10
WORKER_SECONDS = 60

FILLABLE = 0.6
"""Share of a worker's memory limit beyond which Dask moves results to disk."""


class DaskExecutor:
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

    memory_per_call: int | None = None
    transpose_submits = True

    def __init__(self, client: Any, patience: float = WORKER_SECONDS, retries: int = RETRIES) -> None:
        self.client = client
        self._patience = patience
        self._token = uuid4().hex[:8]
        self._numbers = itertools.count()
        self._waiting = Waiting(client, patience, retries, self._token)
        self._share, self._needed = 0, 0
        self._named = list[Any]()

    @property
    def workers(self) -> int:
        """Threads over all workers now, at least 1."""
        return max(1, len(self.worker_threads))

    @property
    def worker_threads(self) -> list[str]:
        """The address of each thread's worker."""
        return [worker for worker, threads in sorted(self._threads().items()) for _ in range(threads)]

    def _threads(self) -> dict[str, int]:
        return dict(self._waiting.ask(self.client.ncores))

    def set_task_memory(self, needed: int) -> None:
        """Hear what a counting task takes: workers keep copies of blocks beside it."""
        self._needed = needed

    def memory(self, budget: int | None = None, backend: str = "cpu") -> int:
        """The smallest share of a thread in its worker's budget.

        Without one, in what Dask lets it fill, or in what its GPU has available now.
        """
        found: dict[str, Any] = {}
        while not found:  # the client's own poll, which asks for no worker, may take the answer's place
            self.wait_for_workers()
            found = self._waiting.ask(self.client.scheduler_info, n_workers=-1)["workers"]
        there: dict[str, int] = (
            self._waiting.ask(self.client.run, available, backend) if backend != "cpu" and not budget else {}
        )
        shares: list[int] = [
            (budget or there.get(address) or _fillable(worker["memory_limit"])) // worker["nthreads"]
            for address, worker in found.items()
        ]
        self._share = min(shares)
        return self._share

    def run_on_workers(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call the function on every worker, beside its tasks; those that die meanwhile do not answer.

        Raises
        ------
        ClusterError
            A worker cannot make the call.
        DasktcError
            What the call itself refuses.
        """
        found: dict[str, Any] = {}
        while not found:  # nobody answers where all die at the moment
            self.wait_for_workers()
            answers = self._waiting.ask(self.client.run, function, *args, on_error="return")
            found = {worker: answer for worker, answer in answers.items() if not isinstance(answer, OSError)}
        for worker, answer in found.items():
            if isinstance(answer, DasktcError):
                raise answer
            if isinstance(answer, Exception):
                why = " ".join(f"{type(answer).__name__}: {answer}".split())
                raise ClusterError(
                    f"worker {worker} cannot run dasktc ({why}): it is not installed there, or in another version; "
                    "install the same on all workers"
                ) from answer
        return list(found.values())

    def wait_for_workers(self) -> None:
        """Return once there is a worker.

        Raises
        ------
        ClusterError
            None came in time.
        """
        if not self._waiting.for_workers():
            raise ClusterError(
                f"no worker joined {self._waiting.address} in {self._patience:g} s: none was started, they died, or "
                "they cannot reach it; start one with `dask worker ADDRESS`, or wait longer with --worker-timeout"
            )

    def upstream(self, delayed: list[Any]) -> list[Any]:
        """Compute them on the cluster; their values stay there."""
        if all(item is None for item in delayed):
            return delayed
        futures: list[Any] = self.client.compute(delayed)
        return futures

    def submit(self, stage: str, function: Callable[..., Any], *args: Any, prefer: str | None = None) -> Any:
        """Submit one call, to the preferred worker if it lives; the future's key is (stage-token, number)."""
        return self._plain(stage, *self._wrap_call(function), *args, prefer=prefer)

    def _wrap_call(self, function: Callable[..., Any]) -> tuple[Any, ...]:
        """What is called in place of a function, and the arguments that stand before the function's own."""
        return (function,)

    def _plain(self, stage: str, function: Callable[..., Any], *args: Any, prefer: str | None = None) -> Any:
        """Submit one call as it is."""
        return self.client.submit(run, function, *args, key=self._key(stage), pure=False, **_preferred(prefer))

    def _submit_all(
        self, stage: str, function: Callable[..., Any], calls: list[tuple[Any, ...]], prefer: str
    ) -> list[Any]:
        """Submit calls together: on its way through the scheduler, one graph of many costs little more than of one."""
        first, futures = self._wrap_call(function), list[Any]()
        for _, together in itertools.groupby(calls, key=len):  # the client maps over columns
            rows = [(*first, *call) for call in together]
            keys = [self._key(stage) for _ in rows]
            futures += self.client.map(run, *zip(*rows, strict=True), key=keys, pure=False, **_preferred(prefer))
        return futures

    def _key(self, stage: str) -> tuple[str, int]:
        return f"{stage}-{self._token}", next(self._numbers)

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

    def transpose(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Submit one task a piece, so that a piece travels alone, from worker to worker."""
        rows, handles[:] = list(handles), []
        return [[self.submit(stage, operator.getitem, row, k) for row in rows] for k in range(count)]

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Bring results to the client; the first error among them is raised here."""
        futures = list(handles)
        results = {future.key: result for future, result in self._waiting.results(FixedFutures(futures))}
        return [results[future.key] for future in futures]

    def values(self, handles: list[Any]) -> list[Any]:
        """They are futures."""
        return handles

    def map_unordered(
        self, stage: str, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Take each result to the client as it ends, so that no later loss of a worker can undo it.

        A few calls a thread are in flight, dealt out as module `window` says, and the blocks that come for them
        stay on their worker while there is room. Where a call runs is a preference, not a demand: those of a worker
        that dies go to others.
        """
        for _, result in self._results(partial(self._submit_all, stage, function), calls):
            yield result

    def _results(
        self, submit: Callable[[list[tuple[Any, ...]], str], list[Any]], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[tuple[Any, Any]]:
        """Futures of calls as a window submits them, and their results."""
        return self._waiting.results(WindowedSubmitter(self.client, self._waiting, submit, list(calls), self._beside))

    def fold_unordered(
        self,
        stage: str,
        function: Callable[..., list[Any]],
        calls: Iterable[tuple[Any, ...]],
        keys: Callable[[Any], Sequence[Any]],
        fold: Fold,
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Run the calls as `map_unordered` does; only their small results come to the client.

        Each array is combined with what its key has as soon as it is made, where most of the two is: as many wait
        as there are calls in flight. What a worker held that died is made again, from the calls on.
        """
        results, combined, made = list[Any](), dict[Any, Any](), dict[Any, tuple[Any, Any]]()
        while self._named:
            self._waiting.names.pop(self._named.pop(), None)

        def submit(calls: list[tuple[Any, ...]], prefer: str) -> list[Any]:
            lists = self._submit_all(stage, function, calls, prefer)
            small = self._submit_all(stage, operator.getitem, [(arrays, -1) for arrays in lists], prefer)
            for arrays, last, call in zip(lists, small, calls, strict=True):
                made[last.key] = arrays, call[0]
                self._waiting.names[arrays.key] = call[0]
                self._named.append(arrays.key)  # until the next time: the sums may need it again
            return small

        for future, result in self._results(submit, calls):
            arrays, first = made.pop(future.key)
            results.append(result)
            for number, key in enumerate(keys(first)):
                array = self.submit(stage, operator.getitem, arrays, number)
                there = key in combined
                combined[key] = self.submit("sum", fold.combine, [combined[key], array]) if there else array
        return results, combined

    def _beside(self, blocks: int) -> float:
        """Bytes that a thread has for blocks, beside the scratch of a task that takes so many for its own."""
        return self._share - (self._needed - blocks) if self._share and self._needed else inf


def _preferred(worker: str | None) -> dict[str, Any]:
    """Of a submission."""
    return {} if worker is None else {"workers": [worker], "allow_other_workers": True}


def _listed(function: Callable[..., Iterator[Any]], *args: Any) -> list[Any]:
    return list(function(*args))


def _fillable(limit: int) -> int:
    import psutil

    return int(FILLABLE * (limit or psutil.virtual_memory().total))


def tree(
    executor: Executor, stage: str, function: Callable[[list[Any]], Any], handles: list[Any], arity: int | None = None
) -> Any:
    """Reduce handles to one with `function(list)`, `arity` at a time, and empty the list.

    Parameters
    ----------
    executor : Executor
    stage : str
    function : callable (list) -> object
        Associative and commutative, e.g. the sum of arrays.
    handles : list of handles, at least one
    arity : int, optional
        Default: 8, or out of core 2, for all that is reduced is in memory meanwhile.

    Returns
    -------
    handle
    """
    level, handles[:], arity = list(handles), [], arity or (8 if executor.memory_per_call is None else 2)
    while len(level) > 1:
        groups = [level[i : i + arity] for i in range(0, len(level), arity)]
        level = [group[0] if len(group) == 1 else executor.submit(stage, function, group) for group in groups]
    return level[0]
