"""State that runs keep on a worker between their tasks, as an attribute of the Dask worker.

State is created when a task first asks for it, so a worker that joins late, or comes anew after a death, has what it
needs. Each run has its own state, so two runs may share a worker. A `WorkerPlugin` would do the same but stays
registered, for all workers to come, until its client unregisters it; a client that died cannot, nor can a graph that
was garbage collected.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dask.utils import key_split

from dasktc.executors.process.usage import this_process

__all__ = ["PROCESS", "RECEIVED", "WorkerState", "forget_past", "meter_transfers", "worker_state"]

RECEIVED = "dasktc-received"
"""Name of a metric in the heartbeats of workers: bytes of results received from other workers so far."""
PROCESS = "dasktc-process"
"""Name of a metric in the heartbeats of workers: host and process, the worker's name in records of counting tasks."""
MOST_NAMES = 10_000
"""Task names whose prefixes are remembered."""


@dataclass(eq=False)
class WorkerState:
    """State of all runs on one worker.

    Attributes
    ----------
    lock : threading.Lock
        Held while prefetchers or the outbox are looked up or changed: a worker may have several threads.
    prefetchers : dict of int to (str, Prefetcher)
        For each thread: the run of its last counting task, and the prefetcher with its blocks in memory.
    counting : set of int
        Threads whose prefetcher a running counting task uses.
    devices : dict of str to DeviceStore
        For each run: its results on this worker's GPU.
    outbox : Outbox or None
        Events that wait to be sent (`worker_events`).
    ended : set of str
        Ids of finished runs; late calls of these runs free their store on exit.
    """

    lock: Any = field(default_factory=threading.Lock)
    prefetchers: dict[int, tuple[str, Any]] = field(default_factory=dict)
    counting: set[int] = field(default_factory=set)
    devices: dict[str, Any] = field(default_factory=dict)
    outbox: Any = None
    ended: set[str] = field(default_factory=set)


def worker_state(worker: Any = None) -> WorkerState:
    """The state of a worker; by default the one whose task calls this."""
    if worker is None:
        from distributed import get_worker

        worker = get_worker()
    state: WorkerState = vars(worker).setdefault("dasktc_state", WorkerState())
    return state


class _Received:
    """Metric of a worker: bytes received from other workers so far, summed incrementally from its transfer log."""

    def __init__(self) -> None:
        self._transfers = self._bytes = 0

    def __call__(self, worker: Any) -> int:
        with suppress(AttributeError):  # a Dask version that keeps it elsewhere; an error here would end the worker
            forget_past(worker)
        count, log = worker.state.transfer_incoming_count_total, worker.transfer_incoming_log
        new = min(count - self._transfers, len(log))
        self._bytes += sum(log[-k]["total"] for k in range(1, new + 1))
        self._transfers = count
        return self._bytes


def forget_past(worker: Any) -> None:
    """Delete what Dask keeps on a worker of tasks long gone, and reads no more.

    For each of its spans, of which a count makes several, Dask keeps sums of seconds and bytes by kind of task, 30 KB a
    count; and it remembers 100,000 names of tasks with their prefixes. A worker grew by 0.7 MB a minute so.
    """
    spans = {task.span_id for task in worker.state.tasks.values()}
    for sums in (worker.digests_total, worker.digests_max):
        of_tasks = [name for name in sums if isinstance(name, tuple) and name[0] == "execute"]
        for name in of_tasks:
            if name[1] not in spans:
                del sums[name]
    if key_split.cache_info().currsize > MOST_NAMES:
        key_split.cache_clear()


def meter_transfers() -> None:
    """Have the worker whose task calls this report received bytes in its heartbeats, and forget what is past then."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # called outside of a task
        return
    if RECEIVED not in worker.metrics:  # a new dict: changing the old one during a heartbeat would end the worker
        worker.metrics = {**worker.metrics, RECEIVED: _Received(), PROCESS: _process}


def _process(worker: Any) -> str:
    """Name the worker as the records of counting tasks do."""
    return this_process()
