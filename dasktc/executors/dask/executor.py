"""The executor that submits stage functions to a Dask client.

Keys such as ("canonical-1f3a9c02", 4), or ("count-1f3a9c02", (2, 1, 1), 0, 17) for a block triple and a split, give
every stage a task group of its own on the dashboard. The key of a task of several stages names them
("orient-plan-1f3a9c02"), and each of these stages sends an event when it ends (`worker_events.stage_ended`). The token
keeps two runs on one cluster apart: without it the second would receive the first one's results.

A task costs the scheduler a millisecond, and a wait costs the client ten. So calls between two waits are one graph
(`call_queue`), results carry the numbers that a plan needs of them (`measured`), and every worker stacks a block that
all need from the others' slabs (`replicated`).
"""

from __future__ import annotations

import itertools
import operator
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import uuid4

from dasktc.backends import Backend
from dasktc.errors import ClusterError
from dasktc.executors.base import (
    CPU,
    ArgumentLists,
    ClusterStore,
    Executor,
    Fold,
    Function,
    MemoryStore,
    tree,
    unchanged,
)
from dasktc.executors.dask.call_queue import CallQueue, future_of, is_handle
from dasktc.executors.dask.faults import FaultPolicy
from dasktc.executors.dask.flow_control import WindowedSubmitter
from dasktc.executors.dask.futures import TaskSource, results
from dasktc.executors.measured import Measured, value_of
from dasktc.executors.progress.tracker import Tracker
from dasktc.options import RETRIES, WORKER_SECONDS

__all__ = ["DaskExecutor", "compute_on_workers"]


class DaskExecutor(Executor):
    """Submits the functions of stages to a Dask client.

    Every task is pure and may run again on another worker: nothing is scattered, nothing is pinned.

    Parameters
    ----------
    client : distributed.Client
    patience : float
        Seconds without any worker after which a run gives up; Dask itself would wait for ever.
    retries : int
        How often a task is resubmitted whose workers died more often than Dask forgives.
    store : ClusterStore, optional
        Keeps results on the workers. Default: in their memory, as Dask does.
    backend : Backend, optional
        Backend of the workers' calls. Default: the CPU's.
    """

    def __init__(
        self,
        client: Any,
        patience: float = WORKER_SECONDS,
        retries: int = RETRIES,
        store: ClusterStore | None = None,
        backend: Backend = CPU,
    ) -> None:
        self.client, self.backend = client, backend
        self.store: ClusterStore = MemoryStore() if store is None else store
        self._token = uuid4().hex[:8]
        self._numbers = itertools.count()
        self.faults = FaultPolicy(client, patience, retries, self._token)
        self._calls = CallQueue(client, self.faults)
        self._named = list[Any]()
        self._replicas: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()

    @property
    def tracker(self) -> Tracker | None:
        """The tracker that is told of finished tasks and of faults."""
        return self.faults.tracker

    @tracker.setter
    def tracker(self, tracker: Tracker | None) -> None:
        self.faults.tracker = tracker

    @property
    def worker_threads(self) -> list[str]:
        """The address of each thread's worker, as it was lately: asking takes as long as two tasks."""
        return [worker for worker, number in sorted(self.faults.lately().items()) for _ in range(number)] or [""]

    def run_on_workers(self, function: Function, *args: Any) -> list[Any]:
        """Call the function on every worker, beside its tasks; those that die meanwhile do not answer.

        Where a worker cannot make the call, it raises ClusterError.
        """
        ask = partial(self.faults.ask, self.client.run, function, *args, on_error="return")
        start = time.monotonic()
        while not (answers := self.faults.answered(replies := ask())):  # none, where all workers die at this moment
            self.faults.threads()
            if replies and time.monotonic() - start >= self.faults.patience:
                raise self.faults.unanswered(replies)
            time.sleep(0.1)
        return answers

    def ask_workers(self, function: Function, *args: Any) -> dict[str, Any]:
        """Call the function on every worker, beside its tasks; return the answers of those that can, by address."""
        if self.client.status == "running":
            with suppress(ClusterError):  # without a scheduler there is nobody to ask
                return dict(self.faults.ask(self.client.run, function, *args, on_error="ignore"))
        return {}

    def submit(
        self, stage: str, function: Function, *args: Any, prefer: str | None = None, urgent: bool = False
    ) -> Any:
        """Submit one call, to the preferred worker if it lives; the future's key is (stage-token, number)."""
        return self._submit(stage, self.store.wrap(function), *args, prefer=prefer, urgent=urgent)

    def _submit(
        self, stage: str, function: Function, *args: Any, prefer: str | None = None, urgent: bool = False
    ) -> Any:
        """Submit one call, whose function is wrapped already."""
        return self._calls.add(self._key(stage), function, args, prefer, urgent)

    def measured(
        self,
        stage: str,
        function: Callable[..., Measured],
        calls: ArgumentLists,
        prefer: Sequence[str | None] = (),
        urgent: bool = False,
    ) -> tuple[list[Any], list[Any]]:
        """Submit calls whose results stay in the workers' memory, and ask the workers for the facts about each.

        That takes no tasks and moves no values. Returns handles of the results, and the facts.
        """
        argument_lists = list(calls)
        workers = list(prefer) or [None] * len(argument_lists)
        handles = [
            self._submit(stage, function, *call, prefer=worker, urgent=urgent)
            for call, worker in zip(argument_lists, workers, strict=True)
        ]
        argument_lists.clear()
        self.wait(handles)
        keys, facts = [handle.key for handle in handles], dict[Any, Any]()
        for answer in self.ask_workers(_facts_of, keys).values():
            facts |= answer
        # results that were lost with their worker since they were made
        losses = [handle for handle in handles if handle.key not in facts]
        lost_facts = self._results(
            [
                self.faults.ask(self.client.submit, operator.attrgetter("facts"), handle.future, key=self._key(stage))
                for handle in losses
            ]
        )
        facts |= dict(zip([handle.key for handle in losses], lost_facts, strict=True))
        return handles, [facts[key] for key in keys]

    def replicated(self, stage: str, function: Function, *args: Any) -> Any:
        """Submit a call for each worker, whose counting tasks then take its own result and need no copy of another's.

        The handle is that of the first worker's result; it stands for all of them, and all are freed with it.
        """
        workers = sorted(set(self.worker_threads))
        if len(workers) < 2:
            return self.submit(stage, function, *args)
        replicas = {worker: self._submit(stage, function, *args, prefer=worker) for worker in workers}
        first = replicas[workers[0]]
        self._replicas[first] = {worker: future for worker, future in replicas.items() if future is not first}
        return first

    def wait(self, handles: Iterable[Any]) -> None:
        """Wait for tasks, and for the copies of `replicated`."""
        tasks = list(filter(is_handle, handles))
        copies = [copy for handle in tasks for copy in self._replicas.get(handle, {}).values()]
        source = TaskSource([future_of(handle) for handle in (*tasks, *copies)])
        for _ in results(self.client, self.faults, source, here=False):
            pass

    def _submit_all(self, stage: str, function: Function, calls: list[tuple[Any, ...]], prefer: str) -> list[Any]:
        """Submit calls whose keys have their labels; the functions are wrapped already."""
        keys = [self._key(stage, getattr(call[0], "label", ())) for call in calls]
        return [self._calls.add(key, function, call, prefer, False) for key, call in zip(keys, calls, strict=True)]

    def _key(self, stage: str, label: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        return f"{stage}-{self._token}", *label, next(self._numbers)

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: ArgumentLists) -> list[Any]:
        """Submit the calls and wait for them; a task extracts each result, unless the client knows where it is."""
        wrapper = self.store.wrap_stream(function)
        lists = [self._submit(stage, wrapper, *call) for call in calls]
        if self.store.placed:
            return [entry for handle in self._places(lists) for entry in self.store.entries(handle)]
        counts = self._results([self._submit(stage, len, handles) for handles in lists])
        return [
            self._submit(stage, operator.getitem, handles, k)
            for handles, count in zip(lists, counts, strict=True)
            for k in range(count)
        ]

    def map(self, stage: str, function: Function, inputs: list[Any], *shared: Any) -> list[Any]:
        """Submit a call for each input; the scheduler frees inputs that nobody else holds."""
        wrapper = self.store.wrap(function)
        handles = [self._submit(stage, wrapper, item, *shared) for item in inputs]
        inputs.clear()
        return handles

    def fold(self, stage: str, fold: Fold[Any], inputs: list[Any]) -> Any:
        """Submit a call for each input, and combine the results in a tree."""
        return tree(self, stage, fold.combine, self.map(stage, fold.alone, inputs))

    def transpose(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Submit a task for each entry, so that entries travel alone, unless the client knows where they are."""
        rows, handles[:] = list(handles), []
        if self.store.placed:
            entries = [self.store.entries(place) for place in self._places(rows)]
            return [[row[k] for row in entries] for k in range(count)]
        return [[self.submit(stage, operator.getitem, row, k) for row in rows] for k in range(count)]

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Bring results to the client; the first error among them is raised here."""
        return [self.store.load(place) for place in self._places(handles)]

    def watch(self, handle: Any, waiting: Callable[[], None] | None) -> Any:
        """Bring a (small) result to the client; meanwhile call `waiting` now and then, in this thread."""
        ((_, value),) = results(self.client, self.faults, TaskSource([future_of(handle)], waiting))
        return self.store.load(value_of(value))

    def _results(self, handles: list[Any]) -> list[Any]:
        """The values of handles, in their order, as they come from the workers."""
        if not handles:
            return []
        futures = list(map(future_of, handles))
        values = {future.key: value for future, value in results(self.client, self.faults, TaskSource(futures))}
        return [value_of(values[future.key]) for future in futures]

    def _places(self, handles: Iterable[Any]) -> list[Any]:
        """Replace handles of tasks by their values; other handles, such as known entries, stay as they are."""
        handle_list = list(handles)
        tasks = {handle.key: handle for handle in handle_list if is_handle(handle)}
        places = dict(zip(tasks, self._results(list(tasks.values())), strict=True))
        return [places[handle.key] if is_handle(handle) else handle for handle in handle_list]

    def map_unordered(self, stage: str, function: Function, calls: ArgumentLists) -> Generator[Any]:
        """Gather each result as its call ends, so that the later loss of a worker cannot undo it.

        A few calls per thread are in flight, distributed as `flow_control` describes; blocks that are copied for them
        stay on their worker while there is room. The worker of a call is a preference, not a demand: calls of a worker
        that dies go to others.
        """
        for _, result in self._task_results(stage, function, calls, False):
            yield result

    def _task_results(
        self, stage: str, function: Function, calls: ArgumentLists, arrays: bool
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each counting task's result after None or, with `arrays`, its first argument and a handle of its list.

        Where the client knows the places of arrays, the result has them, and None comes first then, too.
        """
        work = [tuple(call) for call in calls]
        if self.store.placed:
            places = iter(self._places(arg for call in work for arg in call))
            work = [tuple(itertools.islice(places, len(call))) for call in work]
        blocks = {arg.key: arg for call in work for arg in call if is_handle(arg)}
        copies = {key: replicas for key, block in blocks.items() if (replicas := self._replicas.get(block))}
        work = [tuple(map(future_of, call)) for call in work]
        task, work = self.store.wrap_tasks(function, work, arrays)
        lists: dict[Any, tuple[Any, Any]] = {}

        def submit(calls: list[tuple[Any, ...]], prefer: str) -> list[Any]:
            handles = self._submit_all(stage, task, calls, prefer)
            if not arrays or self.store.placed:
                return handles
            last_entries = self._submit_all(stage, operator.getitem, [(handle, -1) for handle in handles], prefer)
            for handle, last, call in zip(handles, last_entries, calls, strict=True):
                lists[last.key] = call[0], handle
                self.faults.names[handle.key] = call[0]
                self._named.append(handle.key)  # kept until the next fold: the sums may need the task again
            return last_entries

        window = WindowedSubmitter(self.client, self.faults, submit, work, self.store.replica_capacity, copies)
        for future, result in results(self.client, self.faults, window):
            yield lists.pop(future.key, None), result
        self.store.after_tasks(self.ask_workers)

    def fold_unordered(
        self, stage: str, function: Function, calls: ArgumentLists, keys: Function, fold: Fold[Any]
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Run the calls as `map_unordered` does; only their small results come to the client.

        Each array is combined with its key's sum as soon as it is made, on the worker that holds most of the two; at
        most as many arrays wait as there are calls in flight. What a dead worker held is made again, from the calls
        on. Where results are written to files, an array's file stays until the sum that contains it is a file.
        """
        while self._named:
            self.faults.names.pop(self._named.pop(), None)
        small_results, array_sums, sums = list[Any](), dict[Any, Any](), dict[Any, _SumOfFiles]()
        for pair, result in self._task_results(stage, function, calls, True):
            if pair is None:  # the result says where the arrays are
                first, places, result = result
                for key, place in zip(keys(first), places, strict=True):
                    sums.setdefault(key, _SumOfFiles(self, f"{stage}-sum", fold.combine)).add(place)
            else:
                first, arrays = pair
                for number, key in enumerate(keys(first)):
                    array = self._submit(stage, operator.getitem, arrays, number)
                    if key in array_sums:
                        array = self.submit(f"{stage}-sum", fold.combine, [array_sums[key], array])
                    array_sums[key] = array
                self._calls.send()
            small_results.append(result)
        return small_results, array_sums | {key: total.result() for key, total in sums.items()}

    def close(self) -> None:
        """Remove what the store keeps, also on the workers."""
        self.store.close(self.ask_workers)


def compute_on_workers(executor: DaskExecutor, delayed: list[Any]) -> list[Any]:
    """Compute Delayeds on the cluster; where results are written to files, each is written once it is made."""
    if executor.store.placed:
        import dask

        writer = dask.delayed(executor.store.wrap(unchanged), pure=False)
        key = partial(executor._key, "read-rows")
        delayed = [None if item is None else writer(item, dask_key_name=key()) for item in delayed]
    futures: list[Any] = executor.faults.ask(executor.client.compute, delayed)
    return futures


class _SumOfFiles:
    """Adds up arrays that are in files, with one call at a time, which sums all arrays that arrived during the last.

    The client removes the files that a call took once it knows where the result is, because until then the call may
    have to be made again.
    """

    def __init__(self, executor: DaskExecutor, stage: str, combine: Callable[[list[Any]], Any]) -> None:
        self._executor, self._stage, self._combine = executor, stage, combine
        self._waiting, self._used = list[Any](), list[Any]()
        self._call: Any = None

    def add(self, place: Any) -> None:
        """Add one more array, at once if no call is running."""
        self._waiting.append(place)
        if self._call is None or self._call.future.status != "pending":
            self._go_on()

    def result(self) -> Any:
        """The place of the complete sum, once it is made."""
        while self._call is not None or len(self._waiting) > 1:
            self._go_on()
        return self._waiting[0]

    def _go_on(self) -> None:
        if self._call is not None:
            self._waiting += self._executor._places([self._call])
            self._call = None
            for place in self._used:
                self._executor.store.discard(place)
        if len(self._waiting) > 1:
            self._used, self._waiting = self._waiting, []
            self._call = self._executor.submit(self._stage, self._combine, list(self._used))


def _facts_of(keys: list[Any], dask_worker: Any) -> dict[Any, Any]:
    """Facts of those results that this worker holds, by key."""
    return {key: dask_worker.data[key].facts for key in keys if key in dask_worker.data}
