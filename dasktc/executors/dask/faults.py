"""Faults of a cluster: what a dead worker loses, what is submitted again, and when a run gives up.

**What is lost.** A worker that dies loses the calls that it runs, those that wait there, and the results in its memory
(on its device, and in files of its own). Results in files of a shared disk stay, as does everything that the client
has: the small results of counting tasks come to it as they end, and are never counted again.

**What is submitted again, and by whom.** Calls are pure, and nothing is scattered or pinned, so Dask itself runs again
what is needed and gone: calls of the dead worker go to another one, and lost results are made anew, from the source on
if need be. A preferred worker is not a demand. A block that every worker has stacked for itself
(`DaskExecutor.replicated`) is made of slabs that Dask can make again: the copies of dead workers are given up, and
workers that join later take the first worker's copy. Facts of results that were lost before the client asked for them
come with the results that are made in their place. Four things Dask does not do, and this module does:

* Dask gives up a task whose workers died more than three times (`distributed.scheduler.allowed-failures`) as
  KilledWorker, whether it killed them or was merely there. `FaultPolicy.resubmit` has it run again, at most `retries`
  times for each task, because workers may be killed from outside at any rate.
* A task whose preferred worker left while there was no other is not placed when another one joins. `look` lets it run
  on any worker; `futures` calls that once a second.
* Dask waits for ever where a cluster has no worker. `threads` waits for `patience` seconds.
* A worker that takes longer than 15 s to come back is given up by the cluster that started it. It may take longer
  while there is a run, or a graph, on the cluster (`late_workers`).

A worker that is started anew after a death has another address and none of the run's state: the first task that needs
`worker_state` makes it again. `flow_control` learns once a second which workers there are, and gives the others those
counting tasks of a dead worker's share that have not begun.

**When a run gives up**, always with one ClusterError: workers have died with a task `retries` times more often than
Dask forgives; there was no worker for `patience` seconds; tasks were cancelled, because someone restarted the cluster
or shut it down; the scheduler does not answer; or the client cannot unpickle a result. Dask counts a death for every
task that the worker was given, also for those that waited there, so the error names one that may have been beside the
cause (a counting task by its block triple: `FaultPolicy.names`). An error that a function raises is not a fault: it is
raised at once and unchanged, and nothing is run again.

**What a checkpoint keeps.** Records of counting tasks are written as they come to the client, so a run that gave up
goes on after the last of them; blocks are prepared again.
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pkgutil import resolve_name
from socket import gethostname
from typing import Any
from weakref import WeakKeyDictionary

from dasktc.errors import ClusterError, DasktcError, InputError
from dasktc.executors.dask.internals import look, retry_erred
from dasktc.executors.dask.late_workers import await_late_workers
from dasktc.executors.dask.worker_events import STEPS
from dasktc.executors.progress.tracker import Tracker
from dasktc.wording import advice, option, plural

__all__ = ["LOST", "FaultPolicy", "was_killed"]

VERSION = "dasktc:__version__"
"""As `pkgutil.resolve_name` takes it: a call that every version of dasktc answers."""
CHECKED = WeakKeyDictionary[Any, set[str]]()
"""Workers of each client that have this client's version of dasktc."""
LATELY = 2.0
"""Seconds for which the scheduler's answer to who its workers are is used again; during waits it is renewed sooner."""
ERRED_SECONDS = 5
"""Longest wait for the scheduler's message that a task runs again."""
NEVER = (
    "no worker joined {} in {:g} s: none was started, they died, or they cannot reach it; start one with "
    "`dask worker ADDRESS`, or wait longer with " + advice("worker_timeout")
)
LOST = (
    "all workers of {} were lost, and none came back in {:g} s: they died or were stopped; start some with "
    "`dask worker ADDRESS` and run again, or wait longer with " + advice("worker_timeout")
)
UNREADABLE = "deserialization of the task graph"
"""Dask's message where the scheduler lacks a module that the client has."""


class FaultPolicy:
    """Decides for one run what is submitted again, and when the run gives up.

    Parameters
    ----------
    client, patience, retries
        As for `DaskExecutor`.
    token : str
        Suffix of the names of the run's task groups.

    Attributes
    ----------
    names : dict of task key to object
        What errors call a task.
    tracker : Tracker or None
        Is told of finished tasks and of faults.
    """

    def __init__(self, client: Any, patience: float, retries: int, token: str) -> None:
        self._client, self.patience, self.retries, self._token = client, patience, retries, token
        self._deaths: Counter[Any] = Counter()
        self.names: dict[Any, Any] = {}
        self.tracker: Tracker | None = None
        self._workers: set[str] = set()
        self._latest: tuple[float, dict[str, int]] = (0.0, {})
        self._limits: dict[str, int] = {}
        await_late_workers(self, client)

    def ask(self, question: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function that asks the scheduler: a lost scheduler is a ClusterError, a closed client InputError."""
        if self._closed:
            raise _client_closed()
        try:
            return question(*args, **options)
        except Exception as error:
            if self._closed and not isinstance(error, DasktcError):
                raise _client_closed() from error
            if isinstance(error, OSError):
                raise _scheduler_lost(error) from error
            raise

    @property
    def _closed(self) -> bool:
        return getattr(self._client, "status", "running") in ("closing", "closed")

    def threads(self, why: str = NEVER) -> dict[str, int]:
        """Wait for a worker, and return the threads of each; if none joins in time, raise a ClusterError with `why`."""
        start = time.monotonic()
        while not (threads := dict(self.ask(self._client.ncores))):
            if time.monotonic() - start >= self.patience:
                raise ClusterError(why.format(self._client.scheduler.address, self.patience))
            time.sleep(0.1)
        self._latest = time.monotonic(), threads
        self._check_versions(threads)
        losses, self._workers = self._workers - threads.keys(), set(threads)
        if self.tracker is not None:
            for worker in sorted(losses):
                self.tracker.fault(f"worker {worker} went: what it ran and held is made again", worker=worker)
        return threads

    def lately(self, seconds: float = LATELY) -> dict[str, int]:
        """Threads of each worker, as they were within these seconds; may be empty."""
        moment, threads = self._latest
        if not threads or time.monotonic() - moment > seconds:
            self._latest = time.monotonic(), dict(self.ask(self._client.ncores))
            self._check_versions(self._latest[1])
        return self._latest[1]

    def memory_limits(self) -> list[tuple[int, int]]:
        """Memory limit and threads of each worker; the scheduler is asked only where a worker is new."""
        while not (threads := self.lately()) or not threads.keys() <= self._limits.keys():
            workers = self.ask(self._client.scheduler_info, n_workers=-1).get("workers", {})
            self._limits = {address: worker["memory_limit"] for address, worker in workers.items()}
            if not threads or not threads.keys() <= self._limits.keys():
                self.threads()  # a worker left, or the client's own poll has replaced the answer
        return [(self._limits[address], number) for address, number in threads.items()]

    def _check_versions(self, workers: Iterable[str]) -> None:
        """Refuse workers with another version of dasktc; each is asked once per client, also one that joins later.

        A worker without dasktc, or that does not answer, is left to the first call, which says so.
        """
        checked_workers = CHECKED.setdefault(self._client, set())
        checked_workers.intersection_update(workers)
        if not (newcomers := set(workers) - checked_workers):
            return
        answers = self.ask(self._client.run, resolve_name, VERSION, workers=sorted(newcomers), on_error="return")
        version = resolve_name(VERSION)
        for worker, answer in answers.items():
            if isinstance(answer, str) and answer != version:
                raise ClusterError(
                    f"worker {worker} has dasktc {answer}, this client on {gethostname()} has {version}: two versions "
                    "may count differently or not understand each other; install the same on client and workers, and "
                    "start the workers again"
                )
        checked_workers.update(newcomers)

    def look(self) -> None:
        """Let tasks whose preferred worker is gone run on any other, and tell the tracker which tasks have run."""
        groups, steps = self.ask(look, self._client, self._token, STEPS)
        if self.tracker is not None:
            self.tracker.tasks(groups, steps)

    def resubmit(self, futures: list[Any]) -> None:
        """Resubmit tasks that Dask gave up because workers died running them or their inputs."""
        killed_futures = [future for future in futures if was_killed(future)]
        for error in {future.exception().task: future.exception() for future in killed_futures}.values():
            self._deaths[error.task] += 1
            if self.tracker is not None:
                self.tracker.fault(f"task {error.task} runs again: {error.allowed_failures + 1} workers died with it")
            if self._deaths[error.task] > self.retries:
                raise self._deadly(error) from error
        self.ask(retry_erred, self._client, killed_futures)
        deadline = time.monotonic() + ERRED_SECONDS
        while any(future.status == "error" for future in killed_futures) and time.monotonic() < deadline:
            time.sleep(0.001)  # the scheduler's message is on its way

    def _deadly(self, error: Any) -> ClusterError:
        stage = f" ({self.names[error.task]})" if error.task in self.names else ""
        deaths = error.allowed_failures + self._deaths[error.task]
        return ClusterError(
            f"{plural(deaths, 'worker', 'workers')} died with task {error.task}{stage}: it, or another task there, "
            "needs more memory than a worker has or crashes it; give workers more memory, cut the input smaller, or, "
            f"where workers are killed from outside, raise {advice('retries')}"
        )

    @contextmanager
    def one_line(self) -> Iterator[None]:
        """Turn Dask's own failures (cancelled tasks, a lost scheduler, a closed client) into an error of one line."""
        try:
            yield
        except DasktcError:
            raise
        except Exception as error:
            if self._closed:  # a call that is interrupted by closing raises whatever it met first
                raise _client_closed() from error
            reason = " ".join(str(error).split())
            if isinstance(error, CancelledError):
                if "scheduler-connection-lost" in reason:
                    raise _scheduler_lost(error) from error
                raise ClusterError(
                    f"a task was cancelled ({reason}): the cluster was restarted or shut down; run again"
                ) from error
            if isinstance(error, RuntimeError) and UNREADABLE in reason:
                raise ClusterError(
                    f"the scheduler at {self._client.scheduler.address} cannot read dasktc's tasks: dasktc is not "
                    "installed there, or in another version; install the same as here, and on all workers"
                ) from error
            raise

    def raise_from(self, future: Any) -> None:
        """Raise the error of a future; ask for it in turns, because a client closed meanwhile may never answer."""
        while not self._closed:  # a closed client's futures are cancelled, and asking it may leave a coroutine behind
            try:
                if (error := future.exception(timeout=1)) is not None:
                    raise _copied(error, future.traceback(timeout=1))
                future.result(timeout=1)  # a cancelled future has no exception, but raises here
            except TimeoutError:
                if future.status == "error" and not self._closed:
                    raise
            else:
                return
        raise _client_closed()

    def cancelled(self, tasks: int) -> ClusterError:
        """Make the error of tasks that ended without a result."""
        return ClusterError(
            f"{plural(tasks, 'task was', 'tasks were')} cancelled: the cluster was restarted or shut down; run again"
        )

    def unreadable(self, error: Exception) -> Exception:
        """Make the error of a result that came to the client and cannot be unpickled there."""
        if isinstance(error, MemoryError):
            return error
        if self._closed:  # meanwhile
            return _client_closed()
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        cluster_error = ClusterError(
            f"the client cannot read a task's result ({reason}): most likely a package is missing here that the "
            "workers have, or is there in another version; install the same versions on client and workers"
        )
        cluster_error.__cause__ = error
        return cluster_error

    def unanswered(self, answers: dict[str, Any]) -> ClusterError:
        """Make the error of workers that exist but cannot be asked: all their answers are errors of the system."""
        worker, error = next(iter(answers.items()))
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return ClusterError(
            f"no worker of {self._client.scheduler.address} answers, {worker} says ({reason}): the scheduler cannot "
            "reach its workers, or a file that dasktc needs cannot be read there; look into a worker's log"
        )

    def answered(self, answers: dict[str, Any]) -> list[Any]:
        """Drop the answers of workers that died, and raise an error among the others in one line."""
        survivors = {worker: answer for worker, answer in answers.items() if not isinstance(answer, OSError)}
        for worker, answer in survivors.items():
            if isinstance(answer, DasktcError):  # the call itself refused
                raise answer
            if isinstance(answer, Exception):
                reason = " ".join(f"{type(answer).__name__}: {answer}".split())
                raise ClusterError(
                    f"worker {worker} cannot run dasktc ({reason}): it is not installed there, or in another version; "
                    "install the same on all workers"
                ) from answer
        return list(survivors.values())


def _copied(error: Any, traceback: Any) -> Any:
    """Copy a future's exception, with the worker's traceback.

    The original would keep all frames that it passes here, which hold this future and others of the run: the client
    would never free them, nor what the run has on workers and disks. An exception of a caller's function that cannot be
    copied, because its class is made with other arguments, is raised itself.
    """
    try:
        duplicate = copy.copy(error)
    except Exception:
        duplicate = error
    duplicate.__cause__, duplicate.__suppress_context__ = error.__cause__, error.__suppress_context__
    return duplicate.with_traceback(traceback)


def was_killed(future: Any) -> bool:
    """Whether Dask gave up a task because workers died while they ran it."""
    from distributed import KilledWorker

    return future.status == "error" and isinstance(future.exception(), KilledWorker)


def _client_closed() -> InputError:
    return InputError(
        "the client is closed, or the workers that were started for this graph are: nobody answers any more; prepare "
        "it again, or take a published one with another client: dasktc.get_graph(name, client)"
    )


def _scheduler_lost(error: Exception) -> ClusterError:
    return ClusterError(
        f"the scheduler does not answer any more ({type(error).__name__}): it died, or the network to it did; start a "
        f"cluster and run again (a count with {option('checkpoint')} goes on where it was)"
    )
