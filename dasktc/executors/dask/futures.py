"""Waiting for the results of Dask tasks: errors are told at once, and workers that die are no errors.

Dask cannot tell a task that kills its worker from one that was there when it died: after four deaths it gives either
up (KilledWorker). Here each has `retries` lives more.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from dasktc.errors import ClusterError
from dasktc.executors.dask.gc_freeze import left_out
from dasktc.executors.dask.scheduler_ops import free_stranded, retry_erred

__all__ = ["FixedFutures", "TaskSource", "Waiting"]

Futures = dict[Any, Any]
"""Futures by key."""
LEAST_PAUSE, SHORT_PAUSE, MOST_PAUSE = 0.0005, 0.002, 0.02
"""Seconds between looks for results: up to the second one, then a hundredth of what was waited, up to the last."""
THERE = ("finished", "lost")
"""Of a future whose result is here; its worker may have died since."""
LOOK_SECONDS = 1.0
"""How often it asks who is there."""


class TaskSource(Protocol):
    """Where futures to wait for come from."""

    def __len__(self) -> int:
        """How many will still be submitted."""
        ...

    def submit(self) -> list[Any]:
        """Submit what should be in flight now."""
        ...

    def ended(self, futures: list[Any]) -> None:
        """Hear which are done."""
        ...

    def seat(self, threads: Mapping[str, int]) -> None:
        """Hear which workers there are, and their threads."""
        ...


class FixedFutures:
    """Futures that were submitted before.

    Parameters
    ----------
    futures : iterable of Future
    """

    def __init__(self, futures: Iterable[Any]) -> None:
        self._futures = list(futures)

    def __len__(self) -> int:
        return len(self._futures)

    def submit(self) -> list[Any]:
        """All of them, the first time."""
        found, self._futures = self._futures, []
        return found

    def ended(self, futures: list[Any]) -> None:
        """Nothing follows."""

    def seat(self, threads: Mapping[str, int]) -> None:
        """They are where they are."""


class Waiting:
    """Waits for what a client submitted.

    Parameters
    ----------
    client : distributed.Client
    patience : float
        Seconds without any worker after which it gives up; Dask itself would wait for ever.
    retries : int
        Times that a task is submitted again whose worker died more often than Dask forgives.
    token : str
        What the names of the tasks' groups end with.
    """

    def __init__(self, client: Any, patience: float, retries: int, token: str) -> None:
        self._client, self._patience, self._retries, self._token = client, patience, retries, token
        self._deaths: Counter[Any] = Counter()
        self.names: dict[Any, Any] = {}

    def for_workers(self) -> dict[str, int]:
        """Threads of each worker, once there is one; none in time: {}."""
        began = time.monotonic()
        while not (found := dict(self.ask(self._client.ncores))) and time.monotonic() - began < self._patience:
            time.sleep(0.1)
        return found

    def ask(self, question: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Ask the scheduler something; not to reach it is an error of the cluster."""
        try:
            return question(*args, **options)
        except OSError as error:
            raise _lost(error) from error

    def results(self, feed: TaskSource) -> Iterator[tuple[Any, Any]]:
        """Yield futures and results as they end.

        Raises
        ------
        ClusterError
            Tasks were cancelled, one of them ends every worker, or no worker is left.
        """
        left: Futures = {}
        with _one_line(), left_out():
            while True:
                _submit(feed, left)
                yield from self._until_killed(feed, left)
                if any(_was_killed(future) for future in left.values()):
                    self._again(list(left.values()))
                elif left:
                    break
                elif len(feed):  # for whoever is there
                    self._seat(feed)
                else:
                    return
        raise ClusterError(f"{len(left):,} tasks were cancelled: the cluster was restarted or shut down; run again")

    def _until_killed(self, feed: TaskSource, left: Futures) -> Iterator[tuple[Any, Any]]:
        """Yield futures and results as they end, until one has lost too many workers."""
        from distributed import as_completed

        pause, heard = LEAST_PAUSE, time.monotonic()
        looked = heard
        ended = as_completed(left.values(), loop=self._client.loop, with_results=True, raise_errors=False)
        while not ended.is_empty():
            batch = ended.next_batch(block=False)
            done = [(future, result) for future, result in batch if future.status in THERE]
            failed = [future for future, _ in batch if future.status not in THERE]  # before any is released
            feed.ended([left.pop(future.key) for future, _ in done])
            if look := time.monotonic() - looked > LOOK_SECONDS:
                self._seat(feed)
                self.ask(free_stranded, self._client, self._token)  # of a worker that is lost
                looked = time.monotonic()
            if done or look:  # before the results are seen to, so that no worker waits for that
                ended.update(_submit(feed, left))
            yield from done
            if failed:
                for future in failed:
                    if not _was_killed(future):
                        future.result()  # raises what went wrong, at once
                return
            if batch:
                pause, heard = LEAST_PAUSE, time.monotonic()
            else:
                time.sleep(pause)
                pause = min(2 * pause, MOST_PAUSE, max(SHORT_PAUSE, (time.monotonic() - heard) / 100))

    def _seat(self, feed: TaskSource) -> None:
        """Tell who is there; give up when all workers are lost for good."""
        threads = self.for_workers()
        if not threads:
            raise ClusterError(
                f"all workers of {self.address} were lost, and none came back in {self._patience:g} s: they died or "
                "were stopped; start some with `dask worker ADDRESS` and run again, or wait longer with "
                "--worker-timeout"
            )
        feed.seat(threads)

    def _again(self, futures: list[Any]) -> None:
        """Have those tasks run again that Dask gave up because workers died under them, or under what they need."""
        killed = [future for future in futures if _was_killed(future)]
        for error in {future.exception().task: future.exception() for future in killed}.values():
            self._deaths[error.task] += 1
            if self._deaths[error.task] > self._retries:
                raise self._deadly(error) from error

        self.ask(retry_erred, self._client, [future.key for future in killed])
        told = time.monotonic() + 5
        while any(future.status == "error" for future in killed) and time.monotonic() < told:
            time.sleep(0.001)  # the scheduler's message is on its way

    def _deadly(self, error: Any) -> ClusterError:
        what = f" ({self.names[error.task]})" if error.task in self.names else ""
        deaths = error.allowed_failures + self._deaths[error.task]
        return ClusterError(
            f"task {error.task}{what} ended its worker {deaths} times: it needs more memory than a worker has, or "
            "crashes it; give workers more memory, cut the input smaller, or, where workers are killed from outside, "
            "raise --retries"
        )

    @property
    def address(self) -> str:
        """The scheduler's."""
        return str(self._client.scheduler.address)


def _submit(feed: TaskSource, left: Futures) -> list[Any]:
    """Submit what a feed says, and wait for it as well."""
    more = feed.submit()
    left.update((future.key, future) for future in more)
    return more


def _was_killed(future: Any) -> bool:
    from distributed import KilledWorker

    return future.status == "error" and isinstance(future.exception(), KilledWorker)


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
