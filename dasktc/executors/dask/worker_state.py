"""State that runs keep on a worker between their tasks, as an attribute of the Dask worker.

State is created when a task first asks for it, so a worker that joins late, or comes anew after a death, has what it
needs. Each run has its own state, so two runs may share a worker. A `WorkerPlugin` would do the same but stays
registered, for all workers to come, until its client unregisters it; a client that died cannot, nor can a graph that
was garbage collected.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from dasktc.backends.calls import dask_worker
from dasktc.executors.dask.internals import add_metrics, has_metric
from dasktc.executors.process.usage import resources_of, this_process

__all__ = ["PROCESS", "SENT", "WorkerState", "meter_transfers", "worker_state"]

SENT = "dasktc-sent"
"""Name of a metric in the heartbeats of workers: bytes sent to other workers and to clients so far."""
PROCESS = "dasktc-process"
"""Name of a metric in the heartbeats of workers: host and process, the worker's name in records of counting tasks."""
MOST_ENDED = 100
"""Finished runs that a worker remembers: late calls are of the latest ones."""


@dataclass(eq=False)
class WorkerState:
    """State of all runs on one worker."""

    prefetchers: dict[int, tuple[str, Any]] = field(default_factory=dict)
    """Dict of int to (str, Prefetcher). For each thread: the run of its last counting task, and the prefetcher with its
    blocks in memory."""
    devices: dict[str, Any] = field(default_factory=dict)
    """Dict of str to DeviceStore. For each run: its results on this worker's GPU."""
    steps: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For tasks under way that report them, by key: finished steps and all steps."""
    ended: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_ENDED))
    """Ids of the latest finished runs; late calls of these runs free their store on exit."""


def worker_state(worker: Any = None) -> WorkerState:
    """The state of a worker; by default the one whose task calls this."""
    if worker is None:
        from distributed import get_worker

        worker = get_worker()
    state: WorkerState = vars(worker).setdefault("dasktc_state", WorkerState())
    return state


def meter_transfers() -> None:
    """Have the worker whose task calls this report its name and the bytes that it has sent in its heartbeats."""
    worker = dask_worker()
    if worker is not None and not has_metric(worker, SENT):
        add_metrics(worker, {SENT: lambda worker: resources_of(worker).sent or 0, PROCESS: lambda _: this_process()})
