"""What runs keep on a worker between their tasks: an attribute of the Dask worker.

State is made when a task first asks for it, so a worker that joins late, or comes anew after a death, has what it
needs; and each run has its own, so two runs may share a worker. A `WorkerPlugin` would do the same but stays
registered, for all workers to come, until its client unregisters it; a client that dies, or a graph that is garbage
collected, cannot.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

__all__ = ["RECEIVED", "WorkerState", "meter_transfers", "worker_state"]

RECEIVED = "dasktc-received"
"""Name of a metric in the heartbeats of workers: bytes of results that came from other workers, in all."""


@dataclass(eq=False)
class WorkerState:
    """State of all runs on one worker.

    Attributes
    ----------
    lock : threading.Lock
        Held while prefetchers or the outbox are looked up or changed: a worker may have several threads.
    prefetchers : dict of int to (str, Prefetcher)
        Of each thread: the run that it last had a counting task of, and blocks in memory.
    counting : set of int
        Threads whose prefetcher a counting task uses just now.
    devices : dict of str to DeviceStore
        Of each run: its results on this worker's GPU.
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
    """The state of a worker, by default of the one whose task calls this."""
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
        count, log = worker.state.transfer_incoming_count_total, worker.transfer_incoming_log
        new = min(count - self._transfers, len(log))
        self._bytes += sum(log[-k]["total"] for k in range(1, new + 1))
        self._transfers = count
        return self._bytes


def meter_transfers() -> None:
    """Have the worker whose task calls this say in its heartbeats how many bytes it has received."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # called outside of a task
        return
    if RECEIVED not in worker.metrics:  # a new dict: a heartbeat that goes through the old one would end the worker
        worker.metrics = {**worker.metrics, RECEIVED: _Received()}
