"""Executors and stores: who calls a stage's functions, and where their results are kept.

A plane of the pipeline is given an `Executor`: it submits functions of stages with handles as arguments, and gets
handles of their results. An executor is a submitter and a store; `memory_budget.limited` puts them together:

    submitter                   store                    a handle is
    LocalExecutor, which calls  MemoryStore              the value itself
    here, on threads            FileStore                in memory while there is room, else in a mapped file
                                DeviceStore              a DeviceHandle: on the GPU, in pinned memory, or in a file
    DaskExecutor, which         MemoryStore              a future of the value, which Dask keeps
    submits to a client         SharedFileStore          a future of a place in a file that all workers see
                                DeviceClusterStore       a future of a DeviceHandle of the worker that made it

The submitter orders calls and waits for them; it knows no kind of handle. The store knows nothing of stages. In this
process the submitter has a `LocalStore` make a call (`evaluate`: handles in, a value out) and keep its result
(`keep`: a handle). For a call on a worker it asks a `ClusterStore` what to submit in the function's place (`wrap`): a
small picklable object which, on the worker, reads the values of handles, calls the function and keeps its result. On a
worker with a GPU this object leaves all that to a DeviceStore of its own. Counting tasks go the same way, but a store
may read their blocks ahead of use: LocalStores run the tasks in order (`tasks`); ClusterStores pass each task the
blocks of the next one (`wrap_tasks`), and are told when the last task has ended (`after_tasks`).

A DaskExecutor's future comes into being when its call is sent, so planes hold a `Handle` of it: `dask.call_queue` sends
the calls between two waits as one graph.

An out-of-core count on several GPUs uses these files: `memory_budget` puts executor and store together; `dask.executor`
submits; in `stores.device`, `cluster_store` keeps the budget on a worker, by means of `store`, whose results are
`handles`, and whose blocks are prefetched by `prefetch` and moved by `copies`. `dask.flow_control` decides which task
is in flight where, `dask.futures` waits for results, and `dask.faults` handles deaths of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from itertools import islice
from math import inf
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from dasktc.backends import Backend, lazy_backend
from dasktc.executors.progress.tracker import Tracker

__all__ = [
    "CPU", "ArgumentLists", "AskWorkers", "ClusterStore", "DelayedValue", "Executor", "Fold", "Function", "LocalStore",
    "MemoryStore", "Result", "Tasks", "ask_nobody", "for_backend", "starmap", "tree", "unchanged",
]  # fmt: skip

CPU = lazy_backend("cpu")
Result = TypeVar("Result")
"""What a function of the caller returns."""
Function = Callable[..., Any]
ArgumentLists = Iterable[tuple[Any, ...]]
"""Argument lists of consecutive calls."""
Tasks = tuple[Function, list[tuple[Any, ...]]]
"""A function, and the argument lists that it is called with."""
AskWorkers = Callable[..., dict[str, Any]]
"""Calls a function on every worker, outside of its tasks; returns the answers, by address, of those that answer."""


def ask_nobody(function: Function, *args: Any) -> dict[str, Any]:
    """Return no answers: the `AskWorkers` of an executor in this process."""
    return {}


class Fold(NamedTuple, Generic[Result]):
    """A reduction of many inputs to one result, as Dask's `fold`; only one result is held at a time.

    Attributes
    ----------
    start : callable () -> result
        The result of no input.
    add : callable (result, input) -> result
        May overwrite `result`, which nobody else holds, once it has allocated all the memory that it needs: after a
        MemoryError it may be called again.
    combine : callable (list of results) -> result
        Associative and commutative. May empty the list, but not overwrite the results.
    """

    start: Callable[[], Result]
    add: Callable[[Result, Any], Result]
    combine: Callable[[list[Result]], Result]

    def alone(self, item: Any) -> Result:
        """The result of one input."""
        return self.add(self.start(), item)


class Executor(Protocol):
    """Runs the functions of stages; a handle stands for a result, wherever the store keeps it."""

    store: Any
    """Store."""
    backend: Backend = CPU
    """The backend with which stage functions compute."""
    tracker: Tracker | None = None
    """Is told of the calls that have been made."""

    @property
    def worker_threads(self) -> list[str]:
        """For each thread that runs calls, at least one, the address of its worker; "" for this process."""

    def run_on_workers(self, function: Function, *args: Any) -> list[Any]:
        """Call `function(*args)` once in every process that runs calls."""

    def submit(
        self, stage: str, function: Function, *args: Any, prefer: str | None = None, urgent: bool = False
    ) -> Any:
        """Call `function(*args)`, on the preferred worker if it lives.

        Handles among args (or lists of them) are replaced by their results. Urgent calls run before others that are
        ready: short ones whose results other workers, or the caller, wait for.
        """

    def wait(self, handles: Iterable[Any]) -> None:
        """Wait until results are made; they are not moved."""

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: ArgumentLists) -> list[Any]:
        """Call `function(*call)`, which yields results, for each call; return handles of all results, in order."""

    def map(self, stage: str, function: Function, inputs: list[Any], *shared: Any) -> list[Any]:
        """Call `function(input, *shared)` for each input, and empty `inputs`.

        The list is emptied so that each input can be freed as soon as it is used; pass `list(inputs)` to keep it.
        """

    def fold(self, stage: str, fold: Fold[Any], inputs: list[Any]) -> Any:
        """Reduce inputs to one result, and empty `inputs` as `map` does."""

    def transpose(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Transpose handles of lists of `count` entries: entry k of the result holds entry k of every list."""

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Load (small) results into this process, into memory that is freed with them."""

    def map_unordered(self, stage: str, function: Function, calls: ArgumentLists) -> Generator[Any]:
        """Call `function(*call)` for each call, and yield the (small) results as they arrive, in any order."""

    def close(self) -> None:
        """Remove everything that the store keeps."""


class Store(Protocol):
    """Keeps results; the defaults are those of results in memory, without a bound."""

    memory_per_call: int | None = None
    """Bytes that one call may take beside kept results; None: no budget was given."""
    memory_in_parallel: int | None = None
    """Bytes that each of several concurrent calls may take; None: as much as a single call may take."""

    def memory(self, budget: int | None) -> int | None:
        """Bytes that a counting task may take, from `budget` or the store's own; None: the store sets no bound."""
        return None

    def set_task_memory(self, needed: int, memory: float = inf) -> None:
        """Reserve bytes for a counting task, of the memory that a plan counts on; results and copies get the rest."""
        return

    def make_room(self, needed: int) -> None:
        """Move results out until `needed` bytes are free for the next call, where a device budget is kept."""
        return

    def entries(self, handle: Any) -> list[Any]:
        """Handles of the entries of a list, none of which is moved; each can be freed without the others."""
        return list(handle)

    def close(self, ask: AskWorkers = ask_nobody) -> None:
        """Remove everything that was kept, also on the workers, which `ask` reaches."""
        return


class LocalStore(Store, Protocol):
    """The store of a LocalExecutor: it makes calls within its budget, and keeps their results."""

    repeats: bool = False
    """A call may be made twice, so its function must not overwrite an argument; for folds see `Fold.add`."""

    def evaluate(self, function: Function, handles: list[Any]) -> Any:
        """Call a function with the values of handles, and empty the list; an entry of a list may come as a handle."""

    def keep(self, value: Any) -> Any:
        """Return a handle of a value that nobody else will change; a handle is returned as it is."""

    def call(self, function: Function, handles: list[Any]) -> Any:
        """Call a function with the values of handles, and keep its result."""
        return self.keep(self.evaluate(function, handles))

    def stream(self, function: Callable[..., Iterator[Any]], handles: list[Any]) -> list[Any]:
        """Call a function that yields results; each is kept once, before the next one is made."""
        results: list[Any] = []

        def go_on(*args: Any) -> None:  # a call that is made twice skips results already kept
            for value in islice(function(*args), len(results), None):
                results.append(self.keep(value))

        self.evaluate(go_on, handles)
        return results

    def expect(self, handles: list[Any]) -> None:
        """Announce the inputs of the call after the next one, which may be copied while the next one runs."""
        return

    def load(self, handle: Any) -> Any:
        """Load the value of a handle into memory that is freed with it."""
        return self.evaluate(unchanged, [handle])

    def at_a_time(self, threads: int, calls: list[tuple[Any, ...]]) -> int:
        """Number of counting tasks, among these calls and at most one per thread, that may run at the same time."""
        return min(threads, len(calls))

    def tasks(self, function: Function, calls: list[tuple[Any, ...]], at_a_time: int) -> Generator[Callable[[], Any]]:
        """Yield, in order, a function that makes each call and returns its (small) result; blocks may be prefetched.

        At most `at_a_time` of these functions run when the next one is asked for.
        """
        for call in calls:
            yield partial(self.evaluate, function, list(call))

    def folding(self) -> AbstractContextManager[None]:
        """Context in which counting tasks make large results that the store keeps."""
        return nullcontext()


class ClusterStore(Store, Protocol):
    """The store of a DaskExecutor: it decides what workers do in a function's place, and what futures stand for."""

    placed: bool = False
    """The values of futures are small: they locate results. The client takes them, and finds the entries of lists by
    itself (`entries`); otherwise tasks take lists apart."""
    replica_bytes: float = inf
    """Bytes that a thread has for copies of other workers' blocks."""
    load_there: Callable[[Any], Any] | None = None
    """Callable (handle) -> value. Loads the value of a handle on a worker; None: futures are of values."""

    def load(self, handle: Any) -> Any:
        """Load the value of a handle that came to the client, into memory of its own."""
        return handle

    def wrap(self, function: Function) -> Function:
        """Return the function to submit instead: it takes futures' values, calls the function, and keeps the result."""
        return function

    def wrap_stream(self, function: Callable[..., Iterator[Any]]) -> Function:
        """As `wrap`, for a function that yields results; each is kept before the next is made."""
        return partial(_listed, function)

    def wrap_tasks(self, function: Function, calls: list[tuple[Any, ...]], arrays: bool) -> Tasks:
        """Return the function and arguments to submit as counting tasks; `arrays`: for `fold_unordered`."""
        return function, calls

    def replica_capacity(self, blocks: int) -> float:
        """Bytes that blocks may take for each thread, of which the largest counting task takes `blocks`."""
        return self.replica_bytes

    def after_tasks(self, ask: AskWorkers) -> None:
        """Clean up once all counting tasks have ended."""
        return

    def discard(self, handle: Any) -> None:
        """Remove a result before its handle goes: only the client knows that it is no longer needed."""
        return


class MemoryStore(LocalStore, ClusterStore):
    """Keeps results in memory, without a bound: here values are their own handles; on workers Dask keeps them."""

    def set_task_memory(self, needed: int, memory: float = inf) -> None:
        """Leave what a counting task does not need to copies of blocks."""
        self.replica_bytes = memory - needed

    def replica_capacity(self, blocks: int) -> float:
        """What a task leaves, and the task's own blocks."""
        return self.replica_bytes + blocks

    def evaluate(self, function: Function, handles: list[Any]) -> Any:
        """Call the function; arguments that the caller does not hold either are freed when the function drops them."""
        args, handles[:] = tuple(handles), []
        return function(*args)

    def keep(self, value: Any) -> Any:
        """Return the value itself."""
        return value

    def load(self, handle: Any) -> Any:
        """Return the value itself."""
        return handle


class DelayedValue:
    """The value of a Dask Delayed, computed on demand so that only one is in memory at a time."""

    def __init__(self, delayed: Any) -> None:
        self._delayed = delayed

    def load(self, copy: bool = False) -> Any:
        """Compute the value."""
        return self._delayed.compute(scheduler="sync")


def unchanged(value: Any) -> Any:
    """Return the value; the identity function."""
    return value


def _listed(function: Callable[..., Iterator[Any]], *args: Any) -> list[Any]:
    return list(function(*args))


E = TypeVar("E", bound=Executor)


def for_backend(executor: E, name: str) -> E:
    """Return an executor with the named backend for its stages; else it is the given one."""
    if name == executor.backend.name:
        return executor
    duplicate = copy(executor)
    duplicate.backend = lazy_backend(name)
    return duplicate


def starmap(executor: Executor, stage: str, function: Function, calls: list[tuple[Any, ...]]) -> list[Any]:
    """Call `function(*call)` for each of independent calls, and empty the list, as `Executor.map` does for inputs."""
    inputs = [list(call) for call in calls]
    calls.clear()
    return executor.map(stage, _starred, inputs, function)


def _starred(call: list[Any], function: Function) -> Any:
    return function(*call)


def tree(
    executor: Executor, stage: str, function: Callable[[list[Any]], Any], handles: list[Any], arity: int | None = None
) -> Any:
    """Reduce handles, at least one, to one with `function(list)`, `arity` at a time; the list is emptied.

    The function is associative and commutative, e.g. the sum of arrays. The default arity is 8, but 2 out of core,
    because all inputs of one call are in memory at once.
    """
    level, handles[:], arity = list(handles), [], arity or (8 if executor.store.memory_per_call is None else 2)
    while len(level) > 1:
        groups = [level[i : i + arity] for i in range(0, len(level), arity)]
        level = [group[0] if len(group) == 1 else executor.submit(stage, function, group) for group in groups]
    return level[0]
