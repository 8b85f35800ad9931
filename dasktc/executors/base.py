"""Executors and stores: who calls a stage's functions, and where their results stand.

A stage of the pipeline is given an `Executor` and calls nothing else here: it submits functions of handles, and gets
handles of their results. An executor is a submitter and a store, put together by `memory_budget.limited`:

    submitter                   store                    a handle is
    LocalExecutor, which calls  MemoryStore              the value itself
    here, on threads            FileStore                in memory while there is room, else in a file that is mapped
                                DeviceStore              a DeviceHandle: on the GPU, in pinned memory, or in a file
    DaskExecutor, which         MemoryStore              a future of the value, which Dask keeps
    submits to a client         SharedFileStore          a future of the place in a file that all workers see
                                DeviceClusterStore       a future of a DeviceHandle of the worker that made it

The submitter decides the order of calls, and waits; it knows no kind of handle. The store knows nothing of stages. In
this process the submitter has a `LocalStore` make a call (`evaluate`: handles in, a value out) and keep its result
(`keep`: a handle). For a call on a worker it asks a `ClusterStore` what to submit in the function's place (`wrap`): a
small picklable object which, on the worker, reads the values of handles, calls the function and keeps its result; on a
worker with a GPU a DeviceStore of its own does so. Counting tasks go the same way, but a
store may have their blocks read ahead of use: LocalStores run the tasks in their order (`tasks`), ClusterStores name
to each task the blocks of the next one (`wrap_tasks`), and are told when the last one has ended (`after_tasks`).

An out-of-core count on several GPUs is these files: `memory_budget` puts it together; `dask.executor` submits;
`device.cluster_store` is what a worker does within its budget, with `device.store`, whose results are
`device.handles`, whose blocks come by `device.prefetch` and are moved by `device.copies`. `dask.flow_control` says
which task is in flight where, `dask.futures` waits for results, and `dask.faults` is what happens when workers die.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol, Self

from dasktc.backends import Backend, lazy_backend, unusable
from dasktc.executors.measured import Measured
from dasktc.executors.progress import Tracker

__all__ = [
    "CPU", "ArgumentLists", "AskWorkers", "ClusterStore", "DelayedValue", "Executor", "Fold", "Function", "LocalStore",
    "MemoryStore", "Tasks", "ask_nobody", "available", "tree", "unchanged",
]  # fmt: skip

CPU = lazy_backend("cpu")
Function = Callable[..., Any]
ArgumentLists = Iterable[tuple[Any, ...]]
"""Arguments of calls, one after another."""
Tasks = tuple[Function, list[tuple[Any, ...]]]
"""What is called, and with which arguments."""
AskWorkers = Callable[..., dict[str, Any]]
"""Calls a function on every worker, outside of its tasks: the answers by address, of those that answer."""


def ask_nobody(function: Function, *args: Any) -> dict[str, Any]:
    """Answer for no workers: the `AskWorkers` of an executor of this process."""
    return {}


class Fold(NamedTuple):
    """A reduction of many inputs to one result, as Dask's `fold`: one result is held at a time.

    Attributes
    ----------
    start : callable () -> result
        Of no input.
    add : callable (result, input) -> result
        May overwrite `result`, which nobody else has, once it has allocated all that it takes: after a MemoryError it
        may be called again.
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
    """Runs the functions of stages. A handle stands for a result, wherever the executor's store has it.

    Attributes
    ----------
    distributed : bool
        Functions run in other processes than the caller's, and handles are futures.
    store : Store
    backend : Backend
        What the functions of stages compute with.
    tracker : Tracker or None
        Hears of the calls that have been made.
    """

    distributed: bool
    store: Any
    backend: Backend = CPU
    tracker: Tracker | None = None
    task_bytes: int = 0
    """Bytes that travel between two workers while a scheduler handles one task."""

    @property
    def workers(self) -> int:
        """How many calls run at a time."""

    @property
    def worker_threads(self) -> list[str]:
        """The address of the worker of each thread that runs calls."""

    def for_edges(self, edges: int) -> Executor:
        """Return the executor for a graph of so many edges: the same store, perhaps fewer threads."""
        return self

    def for_backend(self, name: str) -> Self:
        """The same executor, whose stages compute with the named backend."""
        if name == self.backend.name:
            return self
        other = copy(self)
        other.backend = lazy_backend(name)
        return other

    def memory(self, budget: int | None = None) -> int:
        """Bytes that one counting task may take: of a worker's budget, or without one of its free memory."""

    def run_on_workers(self, function: Function, *args: Any) -> list[Any]:
        """Call `function(*args)` once in every process that runs calls."""

    def unusable(self, backend: str) -> list[str]:
        """Why processes that run calls cannot use a backend, those that cannot."""
        return [why for why in self.run_on_workers(unusable, backend) if why]

    @property
    def memory_per_call(self) -> int | None:
        """Bytes that one call may take beside the results that are kept; None: no budget was given."""
        return self.store.memory_per_call  # type: ignore[no-any-return]

    @property
    def memory_in_parallel(self) -> int | None:
        """Bytes that each of several calls may take that are made at a time."""
        share: int | None = self.store.memory_in_parallel
        return self.memory_per_call if share is None else share

    def set_task_memory(self, needed: int) -> None:
        """Reserve this many bytes for a counting task; results that are kept get the rest."""
        self.store.set_task_memory(needed)

    def make_room(self, needed: int) -> None:
        """Have so many bytes free of results for the call that follows, where the store keeps a budget on a device."""
        self.store.make_room(needed)

    def upstream(self, delayed: list[Any]) -> list[Any]:
        """Handles of the values of Dask Delayeds, computed together; of None for None."""

    def submit(self, stage: str, function: Function, *args: Any, prefer: str | None = None) -> Any:
        """Call `function(*args)`, on the preferred worker if it lives.

        Handles among args (or lists of them) are replaced by their results.
        """

    def measured(
        self, stage: str, function: Callable[..., Measured], calls: ArgumentLists, prefer: Sequence[str | None] = ()
    ) -> tuple[list[Any], list[Any]]:
        """Make calls; return handles of the results' values, and the (small) facts of each result."""
        made = self.map(stage, partial(_apart, function), [list(call) for call in calls])
        values, facts = self.transpose(stage, made, 2)
        return values, self.gather(facts)

    def replicated(self, stage: str, function: Function, *args: Any) -> Any:
        """As `submit`, for a result that all workers' counting tasks need: each worker makes its own copy."""
        return self.submit(stage, function, *args)

    def wait(self, handles: Iterable[Any]) -> None:
        """Wait until results are made; they stay where they are."""
        return

    def homes(self, count: int) -> list[str | None]:
        """The workers that should hold so many partitions, as many of them on each; None: any."""
        return [None] * count

    def holders(self, handles: list[Any]) -> list[str | None]:
        """The worker that holds each result, of those that are made; None: no matter."""
        return [None] * len(handles)

    @property
    def exchanges(self) -> bool:
        """Whether partitions stand in the memory of several processes, and travel between them as inputs of tasks."""
        return False

    @property
    def shares_memory(self) -> bool:
        """Whether handles are values in this process, of no budget: calls may write to arrays that they share."""
        return False

    def submit_all(
        self, stage: str, function: Function, calls: list[tuple[Any, ...]], prefer: Sequence[str | None] = ()
    ) -> list[Any]:
        """Submit calls that need nothing from each other, and empty the list; `prefer` has a worker for each, or none.

        The list is taken over as that of `map`.
        """
        where, handles = list(prefer) or [None] * len(calls), list[Any]()
        calls.reverse()
        while calls:
            handles.append(self.submit(stage, function, *calls.pop(), prefer=where[len(handles)]))
        return handles

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: ArgumentLists) -> list[Any]:
        """Call `function(*call)`, which yields results, for each call; a handle of every result, in order."""

    def map(self, stage: str, function: Function, inputs: list[Any], *shared: Any) -> list[Any]:
        """Call `function(input, *shared)` for each input, and empty `inputs`.

        The list is taken over so that each input can be freed as soon as it is used; pass
        `list(inputs)` to keep it.
        """

    def fold(self, stage: str, fold: Fold, inputs: list[Any]) -> Any:
        """Reduce inputs to one result, and empty `inputs` as `map` does."""

    def map_and_fold(
        self, stage: str, function: Function, inputs: list[Any], fold: Fold, *shared: Any
    ) -> tuple[list[Any], Any]:
        """As `map`, and reduce the results, which stay, to one more: in a single pass where they go out of core."""
        made = self.map(stage, function, inputs, *shared)
        return made, self.fold(stage, fold, list(made))

    @property
    def transpose_submits(self) -> bool:
        """Whether each entry that `transpose` hands on is a task of its own for a scheduler."""

    def transpose(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Transpose lists of `count` entries each: entry k of the result has entry k of every list's handle."""

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Load (small) results into this process, into memory that is freed with them."""

    def values(self, handles: list[Any]) -> list[Any]:
        """Turn handles into what a caller of dasktc may hold: results, or futures of results if `distributed`."""

    def map_unordered(self, stage: str, function: Function, calls: ArgumentLists) -> Generator[Any]:
        """Call `function(*call)` for each call and yield the (small) results as they come, in any order."""

    def fold_unordered(
        self, stage: str, function: Function, calls: ArgumentLists, keys: Callable[[Any], Sequence[Any]], fold: Fold
    ) -> tuple[list[Any], dict[Any, Any]]:
        """As `map_unordered`, for a function that also makes large arrays, which are combined where they are.

        The function returns a list of arrays, and at its end a small result; `keys` makes of a call's first argument
        the keys of these arrays, and `fold` combines the arrays of a key, beginning with the first one. Returns the
        small results, in any order, and for each key the handle of its combined array.
        """

    def close(self) -> None:
        """Remove everything that the store has kept."""


class Store(Protocol):
    """Where results are kept; the defaults here are those of results in memory without a bound.

    Attributes
    ----------
    memory_per_call : int or None
        As `Executor.memory_per_call`.
    memory_in_parallel : int or None
        As `Executor.memory_in_parallel`; None: as much as one alone.
    """

    memory_per_call: int | None = None
    memory_in_parallel: int | None = None

    def memory(self, budget: int | None) -> int | None:
        """Bytes that a counting task may take, of a budget or of the store's own; None: the store sets no bound."""
        return None

    def set_task_memory(self, needed: int) -> None:
        """As `Executor.set_task_memory`."""
        return

    def make_room(self, needed: int) -> None:
        """As `Executor.make_room`."""
        return

    def entries(self, handle: Any) -> list[Any]:
        """Handles of the entries of a list, none of which is moved; each is freed without the others."""
        return list(handle)

    def close(self, ask: AskWorkers = ask_nobody) -> None:
        """Remove everything that was kept, also on the workers that are asked to."""
        return


class LocalStore(Store, Protocol):
    """The store of a LocalExecutor: it makes calls within its budget, and keeps their results.

    Attributes
    ----------
    repeats : bool
        A call may be made twice, so its function must overwrite no argument; of `Fold.add` see there.
    """

    repeats: bool = False

    def evaluate(self, function: Function, handles: list[Any]) -> Any:
        """Call a function of the values of handles, and empty the list. Of a list's entry it may return the handle."""

    def keep(self, value: Any) -> Any:
        """The handle of a value that nobody else will change; of a handle itself."""

    def call(self, function: Function, handles: list[Any]) -> Any:
        """Call a function of the values of handles, and keep its result."""
        return self.keep(self.evaluate(function, handles))

    def stream(self, function: Callable[..., Iterator[Any]], handles: list[Any]) -> list[Any]:
        """Call a function that yields results, each of which is kept, once, before the next is made."""
        kept: list[Any] = []

        def go_on(*args: Any) -> None:  # a call that is made twice passes over what is kept
            for value in islice(function(*args), len(kept), None):
                kept.append(self.keep(value))

        self.evaluate(go_on, handles)
        return kept

    def expect(self, handles: list[Any]) -> None:
        """Announce the inputs of the call after the next one, which may be copied meanwhile."""
        return

    def load(self, handle: Any) -> Any:
        """Load the value of a handle into memory that is freed with it."""
        return self.evaluate(unchanged, [handle])

    def at_a_time(self, threads: int, calls: list[tuple[Any, ...]]) -> int:
        """How many counting tasks, of these calls and at most one a thread, may run at a time."""
        return min(threads, len(calls))

    def tasks(self, function: Function, calls: list[tuple[Any, ...]], at_a_time: int) -> Generator[Callable[[], Any]]:
        """Yield for each call, in order, a function that makes it and returns its (small) result; may prefetch blocks.

        No more than `at_a_time` of them run when the next one is asked for.
        """
        for call in calls:
            yield partial(self.evaluate, function, list(call))

    def folding(self) -> AbstractContextManager[None]:
        """A context in which counting tasks make large results that the store keeps."""
        return nullcontext()


class ClusterStore(Store, Protocol):
    """The store of a DaskExecutor: it says what workers do in the place of a function, and what futures stand for.

    Attributes
    ----------
    placed : bool
        The values of futures say where results stand: they are small, so the client takes them and finds the entries
        of lists by itself (`entries`). Else tasks take lists apart.
    replica_bytes : float or None
        Bytes that a worker has for copies of other workers' blocks; None: what counting tasks leave of its share.
    load_there : callable (handle) -> value, or None
        Makes a value of a handle on a worker; None: futures are of values.
    """

    placed: bool = False
    replica_bytes: float | None = None
    load_there: Callable[[Any], Any] | None = None

    def load(self, handle: Any) -> Any:
        """The value of a handle that came to the client, in memory of its own."""
        return handle

    def wrap(self, function: Function) -> Function:
        """The function to submit in place of this one: it takes values of futures, calls it and keeps the result."""
        return function

    def wrap_stream(self, function: Callable[..., Iterator[Any]]) -> Function:
        """As `wrap`, of a function that yields results; each is kept before the next is made."""
        return partial(_listed, function)

    def wrap_tasks(self, function: Function, calls: list[tuple[Any, ...]], arrays: bool) -> Tasks:
        """What is called as counting tasks, and with which arguments; `arrays`: they are those of `fold_unordered`."""
        return function, calls

    def after_tasks(self, ask: AskWorkers) -> None:
        """Called once when all counting tasks have ended."""
        return

    def discard(self, handle: Any) -> None:
        """Remove a result before its handle goes: only the client knows that it is no longer needed."""
        return


class MemoryStore(LocalStore, ClusterStore):
    """Results in memory, of no bound: values stand for themselves here, and on workers Dask keeps them."""

    def evaluate(self, function: Function, handles: list[Any]) -> Any:
        """Call the function; arguments that the caller does not hold either go when the function lets go of them."""
        args, handles[:] = tuple(handles), []
        return function(*args)

    def keep(self, value: Any) -> Any:
        """The value itself."""
        return value

    def load(self, handle: Any) -> Any:
        """The value itself."""
        return handle


class DelayedValue:
    """The value of a Dask Delayed, computed when it is needed, so that one is in memory at a time."""

    def __init__(self, delayed: Any) -> None:
        self._delayed = delayed

    def load(self, copy: bool = False) -> Any:
        """Compute it."""
        return self._delayed.compute(scheduler="sync")


def unchanged(value: Any) -> Any:
    """The value itself, as a function to call."""
    return value


def _apart(function: Callable[..., Measured], call: list[Any]) -> list[Any]:
    result = function(*call)
    return [result.value, result.facts]


def _listed(function: Callable[..., Iterator[Any]], *args: Any) -> list[Any]:
    return list(function(*args))


def available(backend: Backend) -> int:
    """Bytes that this process could allocate now where a backend's blocks are."""
    return backend.memory()


def tree(
    executor: Executor, stage: str, function: Callable[[list[Any]], Any], handles: list[Any], arity: int | None = None
) -> Any:
    """Reduce handles, at least one, to one with `function(list)`, `arity` at a time, and empty the list.

    The function is associative and commutative, e.g. the sum of arrays. The default arity is 8, or out of core 2, for
    all that is reduced is in memory meanwhile.
    """
    level, handles[:], arity = list(handles), [], arity or (8 if executor.memory_per_call is None else 2)
    while len(level) > 1:
        groups = [level[i : i + arity] for i in range(0, len(level), arity)]
        level = [group[0] if len(group) == 1 else executor.submit(stage, function, group) for group in groups]
    return level[0]
