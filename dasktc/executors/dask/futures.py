"""Waits for the results of Dask tasks; errors are raised at once, the death of a worker is not an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from dasktc.executors.dask.faults import LOST, FaultPolicy, was_killed
from dasktc.executors.dask.gc_freeze import frozen_heap

__all__ = ["LOOK_SECONDS", "TaskSource", "results"]

Futures = dict[Any, Any]
"""Futures by key."""
LEAST_PAUSE, SHORT_PAUSE, MOST_PAUSE = 0.0005, 0.002, 0.02
"""Seconds after which results are looked for if nobody says that there are some: up to the second one, then a hundredth
of what was waited, up to the last."""
DONE = ("finished", "lost")
"""Status of a future whose result is here; its worker may have died since."""
FAILED = ("error", "cancelled")
LOOK_SECONDS = 1.0
"""How often the scheduler is asked which workers there are."""


class TaskSource:
    """Source of the futures that are waited for: it submits more as others end; this one has a fixed list.

    Parameters
    ----------
    futures : list of Future
    waiting : callable (), optional
        Called now and then while results are waited for, in the thread that waits.
    """

    waiting: Callable[[], None] | None = None

    def __init__(self, futures: list[Any], waiting: Callable[[], None] | None = None) -> None:
        self._futures, self.waiting = futures, waiting

    def __len__(self) -> int:
        """How many will still be submitted."""
        return len(self._futures)

    def submit(self) -> list[Any]:
        """Submit what should be in flight now."""
        futures, self._futures = self._futures, []
        return futures

    def ended(self, futures: list[Any]) -> None:
        """Record finished futures."""

    def set_workers(self, threads: Mapping[str, int]) -> None:
        """Take note of the workers there are, and their threads."""


def results(client: Any, faults: FaultPolicy, source: TaskSource, here: bool = True) -> Iterator[tuple[Any, Any]]:
    """Yield the futures of a source and their results as they end.

    Parameters
    ----------
    client : distributed.Client
    faults : FaultPolicy
    source : TaskSource
    here : bool
        Bring the results to the client; else each is None here, and stays on its worker.

    Raises
    ------
    ClusterError
        Tasks were cancelled, one of them ends every worker, no worker is left, or the client cannot unpickle a result.
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
            elif len(source):  # for whoever is there
                source.set_workers(faults.threads(LOST))
            else:
                return
    raise faults.cancelled(len(left))


def _until_killed(
    client: Any, faults: FaultPolicy, source: TaskSource, left: Futures, here: bool
) -> Iterator[tuple[Any, Any]]:
    """Yield futures and results as they end, until a task has lost too many workers."""
    pause, heard = LEAST_PAUSE, time.monotonic()
    looked = heard
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
            # Dask never hands over what failed after its first result was lost on its way here
            failed += [future for future in left.values() if future.status in FAILED]
            looked = time.monotonic()
        if done or look:  # before the results are seen to, so that no worker waits for that
            ended.update(_submit(source, left))
        yield from done
        if failed:
            for future in failed:
                if not was_killed(future):
                    faults.raise_from(future)
            return
        if ended.unread is not None:
            raise faults.unreadable(ended.unread)
        if batch:
            pause, heard = LEAST_PAUSE, time.monotonic()
        else:
            if source.waiting is not None:
                source.waiting()
            _wait(ended, pause)
            pause = min(2 * pause, MOST_PAUSE, max(SHORT_PAUSE, (time.monotonic() - heard) / 100))


@cache
def _as_completed() -> Any:
    """Make Dask's `as_completed` keep the error of a result that cannot be unpickled.

    Dask only logs such an error, and holds the result for one that is still to come.
    """
    from distributed import as_completed

    class AsCompleted(as_completed):  # type: ignore[misc]
        unread: Exception | None = None

        async def _track_future(self, future: Any) -> None:
            try:
                await super()._track_future(future)
            except OSError:  # the connection's: whether the scheduler is there, others ask
                raise
            except Exception as error:
                if future.status in FAILED:  # its own
                    raise
                self.unread = error.with_traceback(None)  # whose frames hold the future

    return AsCompleted


def _wait(ended: Any, seconds: float) -> None:
    """Wait until another future has ended, but no longer than so many seconds."""
    with ended.thread_condition:
        if ended.queue.empty():
            ended.thread_condition.wait(seconds)


def _submit(source: TaskSource, left: Futures) -> list[Any]:
    """Submit what a source has ready, and add it to what is waited for."""
    more = source.submit()
    left.update((future.key, future) for future in more)
    return more
