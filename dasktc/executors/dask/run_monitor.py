"""A plugin with which a Dask scheduler keeps the state of the latest runs, built from their events."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from typing import Any

from distributed import SchedulerPlugin

from dasktc.executors.dask.internals import block_bytes
from dasktc.executors.dask.run_state import RunState
from dasktc.executors.dask.worker_events import TOPIC
from dasktc.executors.dask.worker_state import SENT

__all__ = ["RunMonitor"]

RUNS = 20
"""Runs that a monitor keeps."""
LOOK_SECONDS = 1.0
"""Seconds between looks at what workers hold."""
QUIET_SECONDS = 3600
"""Silence after which a run is taken to be over."""
log = logging.getLogger("dasktc")


class RunMonitor(SchedulerPlugin):  # type: ignore[misc, unused-ignore]
    """A scheduler plugin that keeps the state of the latest runs, and adds the page `/dasktc` to the dashboard.

    Attributes
    ----------
    runs : dict of str to RunState
        The latest runs, in the order of their first events.
    page : bool
        Whether the page exists; it does not without Bokeh, nor where the scheduler has no dashboard.
    """

    name = TOPIC
    idempotent = True
    """The first client registers it; for later ones nothing changes."""
    scheduler: Any

    def __init__(self) -> None:
        self.runs: OrderedDict[str, RunState] = OrderedDict()
        self.page = False
        self._sent: dict[str, int] = {}
        self._sent_by_gone = 0
        self._sent_before: dict[str, int] = {}
        self._look_time = 0.0

    async def start(self, scheduler: Any) -> None:
        """Add the page to a scheduler; Dask calls this, in the scheduler's thread."""
        self.scheduler = scheduler
        try:
            from dasktc.executors.dask.page import add_page
        except ImportError as error:
            log.warning("dasktc: warning: no page /dasktc (%s): install dasktc[dashboard]", error)
            return
        self.page = add_page(scheduler, self)

    def add_client(self, scheduler: Any, client: str) -> None:
        """Go on with the runs of a client that has lost its connection for a while."""
        for run in self.runs.values():
            if run.facts.get("client") == client:
                run.gone = None

    def remove_client(self, scheduler: Any, client: str) -> None:
        """Record that the client of runs under way left, by whatever signal: nobody waits for them any more."""
        for run in self.runs.values():
            if run.facts.get("client") == client and not run.is_over:
                run.gone = time.time()

    def log_event(self, topic: str, msg: Any) -> None:
        """Update a run's state by a published event."""
        if topic != TOPIC or not isinstance(msg, dict) or "event" not in msg:
            return
        now = time.time()
        if msg["run"] not in self.runs:
            self.runs[msg["run"]] = RunState(msg["run"], now - msg["seconds"], now)
            self._sent_before[msg["run"]] = self._all_sent()
            while len(self.runs) > RUNS:
                self._sent_before.pop(self.runs.popitem(last=False)[0], None)
        run = self.runs[msg["run"]]
        run.hear(msg, now)
        if now - self._look_time >= LOOK_SECONDS or msg["event"] != "progress":
            self._look_time = now
            self.look(run)

    def look(self, run: RunState) -> None:
        """Record what the workers hold and have sent, for a run that is under way or the latest one."""
        if not run.is_over and (blocks := block_bytes(self.scheduler)) and any(blocks.values()):
            run.blocks = blocks
        run.sent = self._all_sent() - self._sent_before.get(run.name, 0)

    def _all_sent(self) -> int:
        workers = self.scheduler.identity(n_workers=-1)["workers"]
        self._sent |= {address: worker["metrics"].get(SENT, 0) for address, worker in workers.items()}
        return self._sent_by_gone + sum(self._sent.values())

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        """Record in the runs under way that a worker left; its tasks run again elsewhere."""
        self._sent_by_gone += self._sent.pop(worker, 0)
        for run in self.runs.values():
            if not run.is_over and time.time() - run.heard < QUIET_SECONDS:
                run.faults.append((time.time(), f"worker {worker} went: what it ran and held is made again"))
