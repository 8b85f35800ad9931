"""Waits for the results of Dask tasks; errors are raised at once, but the death of a worker is not an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dasktc.executors.dask.faults import LOST, FaultPolicy, was_killed
from dasktc.executors.dask.gc_freeze import frozen_heap
from dasktc.once import once

__all__ = ["LOOK_SECONDS", "TaskSource", "results"]

Futures = dict[Any, Any]
"""Futures by key."""
PAUSE = 0.1
"""Longest wait, in seconds, until the waiting thread looks around; a result that comes wakes it at once."""
DONE = ("finished", "lost")
"""Status of a future whose result is here; its worker may have died since."""
FAILED = ("error", "cancelled")
LOOK_SECONDS = 1.0
"""Seconds between questions to the scheduler for its workers."""


class TaskSource:
    """Source of the futures that are waited for: this one has a fixed list; others submit more as futures end.

    Parameters
    ----------
    futures : list of Future
    waiting : callable (), optional
        Called now and then during the wait, in the thread that waits.
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

    Parameters
    ----------
    client : distributed.Client
    faults : FaultPolicy
    source : TaskSource
    here : bool
        Bring the results to the client; else each result is given as None, and stays on its worker.

    Raises
    ------
    ClusterError
        Tasks were cancelled, a task ends every worker, no worker is left, or the client cannot unpickle a result.
    """
    left: Futures = {}
    with faults.one_line(), frozen_heap():
        while True:
            _submit(source, left)
            yield from _until_killed(client, faults, source, left, here)
            if any(was_killed(future) for future in left.values()):
                faults.resubmit(list(left.values()))
            elif left:
                break
            elif len(source):  # submit the rest to the workers that are there now
                source.set_workers(faults.lately() or faults.threads(LOST))
            else:
                return
    raise faults.cancelled(len(left))


def _until_killed(
    client: Any, faults: FaultPolicy, source: TaskSource, left: Futures, here: bool
) -> Iterator[tuple[Any, Any]]:
    """Yield futures and results as they end, until Dask gives a task up because of dead workers."""
    looked = time.monotonic()
    ended = _as_completed()(left.values(), loop=client.loop, with_results=here, raise_errors=False)
    while not ended.is_empty():
        batch = ended.next_batch(block=False)
        batch = batch if here else [(future, None) for future in batch]
        done = [(future, result) for future, result in batch if future.status in DONE]
        failed = [future for future, _ in batch if future.status not in DONE]  # before any is released
        source.ended([left.pop(future.key) for future, _ in done])
        if look := time.monotonic() - looked > LOOK_SECONDS:
            source.set_workers(faults.threads(LOST))
            faults.look()
            # Dask never reports a task that failed after its first result was lost on the way here
            failed += [future for future in left.values() if future.status in FAILED]
            looked = time.monotonic()
        if done or look:  # before the caller processes the results, so that no worker waits for that
            ended.update(_submit(source, left))
        yield from done
        if failed:
            for future in failed:
                if not was_killed(future):
                    faults.raise_from(future)
            return
        if ended.unread is not None:
            raise faults.unreadable(ended.unread)
        if not batch:
            if source.waiting is not None:
                source.waiting()
            _wait(ended, PAUSE)


@once
def _as_completed() -> Any:
    """Make Dask's `as_completed` keep the error of a result that cannot be unpickled.

    Dask only logs such an error, and then treats the future as if its result were still to come.
    """
    from distributed import as_completed

    class AsCompleted(as_completed):  # type: ignore[misc]
        unread: Exception | None = None

        async def _track_future(self, future: Any) -> None:
            try:
                await super()._track_future(future)
            except OSError:  # of the connection; others ask whether the scheduler is still there
                raise
            except Exception as error:
                if future.status in FAILED:  # the task's own error
                    raise
                self.unread = error.with_traceback(None)  # its frames hold the future
                with self.thread_condition:
                    self.thread_condition.notify()

    return AsCompleted


def _wait(ended: Any, seconds: float) -> None:
    """Wait until another future has ended, at most the given seconds."""
    with ended.thread_condition:
        if ended.queue.empty():
            ended.thread_condition.wait(seconds)


def _submit(source: TaskSource, left: Futures) -> list[Any]:
    """Submit what a source has ready, and add its futures to those that are waited for."""
    more = source.submit()
    left.update((future.key, future) for future in more)
    return more
