"""Calls that wait to be sent to a scheduler, together, as one graph, as soon as the client waits for something.

A client sends a message at most every 10 ms, and the scheduler takes up each graph by itself. So one graph of all calls
between two waits starts 10 ms sooner than a submission for each, and costs the scheduler half as much a call.
"""

from __future__ import annotations

from threading import RLock
from typing import Any, NamedTuple
from weakref import ref

from dasktc.backends.out_of_memory import run
from dasktc.errors import ClusterError
from dasktc.executors.base import Function
from dasktc.executors.dask.faults import FaultPolicy
from dasktc.executors.dask.worker_state import meter_transfers
from dasktc.executors.measured import value_of

__all__ = ["CallQueue", "Handle", "future_of", "is_handle"]

GRAPH_BYTES, CALL_BYTES = 8_000_000, 2_000
"""Most bytes of arguments in a graph of several calls, and what each call takes besides; Dask warns about a graph of
more than 10 MB."""


class Handle:
    """Stands for the result of a call that waits to be sent, or that was sent.

    Parameters
    ----------
    key : tuple
        Of the task.
    queue : CallQueue
        Where the call waits.
    """

    __slots__ = ("__weakref__", "_future", "_queue", "key")

    def __init__(self, key: tuple[Any, ...], queue: CallQueue) -> None:
        self.key, self._queue, self._future = key, queue, None

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.future,)

    @property
    def future(self) -> Any:
        """The task's future; waiting calls are sent first."""
        if self._future is None:
            self._queue.send()
        if self._future is None:
            raise self._queue.failure
        return self._future


def is_handle(value: Any) -> bool:
    """Whether a value stands for a result on a worker: a handle, or a future of an unpickled graph or of Dask."""
    from distributed import Future

    return isinstance(value, Handle | Future)


def future_of(handle: Any) -> Any:
    """The future that a handle stands for; a future is returned as it is."""
    return handle.future if isinstance(handle, Handle) else handle


class CallQueue:
    """Sends calls to a client's scheduler.

    Parameters
    ----------
    client : distributed.Client
    faults : FaultPolicy

    Attributes
    ----------
    failure : Exception
        Why calls could not be sent.
    """

    def __init__(self, client: Any, faults: FaultPolicy) -> None:
        self._client, self._faults = client, faults
        self._waiting, self._bytes, self._lock = list[_Waiting](), 0, RLock()
        self.failure: Exception = ClusterError("a call that was not sent has no result")

    def add(
        self, key: tuple[Any, ...], function: Function, args: tuple[Any, ...], prefer: str | None, urgent: bool
    ) -> Handle:
        """Have a call sent soon, to the preferred worker if it lives; handles may be in lists and tuples."""
        from dask.sizeof import sizeof

        inputs, handle = _Inputs(), Handle(key, self)
        call = _Call(key, function, inputs.taken_from(args))
        call_bytes = CALL_BYTES + int(sizeof(call.args))
        with self._lock:
            if self._bytes + call_bytes > GRAPH_BYTES:
                self.send()
            self._waiting.append(_Waiting(handle, call, inputs.handles, prefer, urgent))
            self._bytes += call_bytes
        return handle

    def send(self) -> None:
        """Send the calls that wait."""
        with self._lock:
            waiting, self._waiting, self._bytes = self._waiting, [], 0
            try:
                self._send(waiting)
            except Exception as error:
                self.failure = error
                raise

    def _send(self, waiting: list[_Waiting]) -> None:
        """Send calls, and empty the list; results whose handles are gone by now are for other calls of it alone."""
        import dask

        calls = {item.handle.key: item.call for item in waiting}
        # An input of the same graph is named by its key, any other by its future.
        inputs = {
            item.handle.key: [handle.key if handle.key in calls else future_of(handle) for handle in item.inputs]
            for item in waiting
        }
        workers = {item.handle.key: [item.prefer] if item.prefer else [] for item in waiting}
        others = {key: bool(names) for key, names in workers.items()}
        priorities = {item.handle.key: int(item.urgent) for item in waiting}
        handles = [ref(item.handle) for item in waiting]
        waiting.clear()
        held = [handle for reference in handles if (handle := reference()) is not None]
        if not held:
            return
        keys = [handle.key for handle in held]
        # Graphs that are sent within 0.1 s have the same priority: Dask runs calls that are ready in any order.
        options = {"fifo_timeout": "100 ms"}
        with dask.annotate(workers=workers.get, allow_other_workers=others.get, priority=priorities.get):
            if any(reference in calls for references in inputs.values() for reference in references):
                graph = {key: (call, *inputs[key]) for key, call in calls.items()}
                futures = self._faults.ask(self._client.get, graph, keys, sync=False, **options)
            else:  # the scheduler takes it up sooner, because there is nothing to order
                columns = list(map(calls.get, keys)), list(map(inputs.get, keys))
                futures = self._faults.ask(self._client.map, _made, *columns, key=keys, pure=False, **options)
        for handle, future in zip(held, futures, strict=True):
            handle._future = future


class _Call:
    """A call, to be made on a worker with the values of its inputs, of which `Measured` ones are unwrapped."""

    __slots__ = ("args", "function", "key")

    def __init__(self, key: tuple[Any, ...], function: Function, args: tuple[Any, ...]) -> None:
        self.key, self.function, self.args = key, function, args

    def __call__(self, *inputs: Any) -> Any:
        meter_transfers()
        return run(self.function, *_with(tuple(map(value_of, inputs)), self.args))

    def __dask_tokenize__(self) -> tuple[Any, ...]:  # Dask would pickle the arguments for a name of the graph
        return self.key


def _made(call: _Call, inputs: list[Any]) -> Any:
    return call(*inputs)


class _Waiting(NamedTuple):
    """A call that waits; `inputs` are handles."""

    handle: Handle
    call: _Call
    inputs: list[Any]
    prefer: str | None
    urgent: bool


class _Place(NamedTuple):
    """Stands for an input of a call."""

    number: int


class _Inputs:
    """Handles among the arguments of a call, each once."""

    def __init__(self) -> None:
        self.handles, self._places = list[Any](), dict[Any, _Place]()

    def taken_from(self, args: Any) -> Any:
        """Replace handles, also in lists and tuples, by their places."""
        if type(args) in (list, tuple):
            return type(args)(map(self.taken_from, args))
        if not is_handle(args):
            return args
        if args.key not in self._places:
            self._places[args.key] = _Place(len(self.handles))
            self.handles.append(args)
        return self._places[args.key]


def _with(inputs: tuple[Any, ...], args: Any) -> Any:
    """Replace places by the inputs' values."""
    if type(args) in (list, tuple):
        return type(args)(_with(inputs, item) for item in args)
    return inputs[args.number] if type(args) is _Place else args


def _unpickled(future: Any) -> Any:
    return future
