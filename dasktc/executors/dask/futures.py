"""Waits for the results of Dask tasks; errors are raised at once, but the death of a worker is not an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from dasktc.executors.dask.faults import LOST, FaultPolicy, was_killed
from dasktc.executors.dask.gc_freeze import frozen_heap

__all__ = ["LOOK_SECONDS", "TaskSource", "results"]

Futures = dict[Any, Any]
"""Futures by key."""
Arrival = tuple[Any, Any, Exception | None]
"""A future that has ended, its result, and the error of a result that the client cannot unpickle."""
PAUSE = 0.1
"""Longest wait, in seconds, until the waiting thread looks around; a result that comes wakes it at once."""
DONE = ("finished", "lost")
"""Status of a future whose result is here; its worker may have died since."""
FAILED = ("error", "cancelled")
LOOK_SECONDS = 1.0
"""Seconds between questions to the scheduler for its workers."""


class TaskSource:
    """Source of the futures that are waited for: this one has a fixed list; others submit more as futures end.

    `waiting` is called now and then during the wait, in the thread that waits.
    """

    waiting: Callable[[], None] | None = None

    def __init__(self, futures: list[Any], waiting: Callable[[], None] | None = None) -> None:
        self._futures, self.waiting = futures, waiting

    def __len__(self) -> int:
        """Number of calls that will still be submitted."""
        return len(self._futures)

    def submit(self) -> list[Any]:
        """Submit what should be in flight now, and return its futures."""
        futures, self._futures = self._futures, []
        return futures

    def ended(self, futures: list[Any]) -> None:
        """Record finished futures."""

    def set_workers(self, threads: Mapping[str, int]) -> None:
        """Record the current workers and their threads."""


def results(client: Any, faults: FaultPolicy, source: TaskSource, here: bool = True) -> Iterator[tuple[Any, Any]]:
    """Yield the futures of a source and their results as they end.

    With `here` the results come to the client; else each is given as None, and stays on its worker. It raises
    ClusterError if tasks were cancelled, a task ends every worker, no worker is left, or the client cannot unpickle a
    result.
    """
    tasks: Futures = {}
    with faults.one_line(), frozen_heap():
        while True:
            _submit(source, tasks)
            yield from _until_killed(client, faults, source, tasks, here)
            if any(was_killed(future) for future in tasks.values()):
                faults.resubmit(list(tasks.values()))
            elif tasks:
                break
            elif len(source):  # submit the rest to the workers that are there now
                source.set_workers(faults.lately() or faults.threads(LOST))
            else:
                return
    raise faults.cancelled(len(tasks))


def _until_killed(
    client: Any, faults: FaultPolicy, source: TaskSource, tasks: Futures, brings_results: bool
) -> Iterator[tuple[Any, Any]]:
    """Yield futures and results as they end, until Dask gives a task up because of dead workers."""
    look_time = time.monotonic()
    arrivals = _Arrivals(client, brings_results)
    arrivals.expect(tasks.values())
    while tasks:
        batch = arrivals.take(PAUSE)
        errors = [error for *_, error in batch if error is not None]
        successes = [(future, result) for future, result, error in batch if error is None and future.status in DONE]
        failures = [future for future, *_ in batch if future.status not in DONE]  # before any is released
        source.ended([tasks.pop(future.key) for future, _ in successes])
        if is_due := time.monotonic() - look_time > LOOK_SECONDS:
            source.set_workers(faults.threads(LOST))
            faults.look()
            look_time = time.monotonic()
        if successes or is_due:  # before the caller processes the results, so that no worker waits for that
            arrivals.expect(_submit(source, tasks))
        yield from successes
        if failures:
            for future in failures:
                if not was_killed(future):
                    faults.raise_from(future)
            return
        if errors:
            raise faults.unreadable(errors[0])
        if not batch and source.waiting is not None:
            source.waiting()


class _Arrivals:
    """Futures of a client that have ended, and with `here` their results, in the order of their arrival."""

    def __init__(self, client: Any, here: bool) -> None:
        self._client, self._here = client, here
        self._ended: SimpleQueue[Arrival] = SimpleQueue()

    def expect(self, futures: Iterable[Any]) -> None:
        """Have futures arrive as soon as they end."""
        for future in futures:
            self._client.loop.add_callback(self._arrive, future)

    async def _arrive(self, future: Any) -> None:
        """Wait for a future, within the client's event loop, where its methods return awaitables."""
        await future.exception()
        result = read_error = None
        if self._here and future.status not in FAILED:
            try:
                result = await future
            except OSError:  # of the connection; others ask whether the scheduler is still there
                if future.status not in FAILED:
                    return
            except Exception as error:  # its own, where it was lost on the way here and failed when it was made again
                read_error = None if future.status in FAILED else error.with_traceback(None)  # frames hold the future
        self._ended.put((future, result, read_error))

    def take(self, seconds: float) -> list[Arrival]:
        """Take what has arrived; wait at most the given seconds for the first."""
        with suppress(Empty):
            arrivals = [self._ended.get(timeout=seconds)]
            while not self._ended.empty():
                arrivals.append(self._ended.get())
            return arrivals
        return []


def _submit(source: TaskSource, tasks: Futures) -> list[Any]:
    """Submit what a source has ready, and add its futures to those that are waited for."""
    futures = source.submit()
    tasks.update((future.key, future) for future in futures)
    return futures
