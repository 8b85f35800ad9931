"""A plugin with which a Dask scheduler keeps the state of the latest runs, built from their events."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from contextlib import suppress
from typing import Any

from dask.utils import key_split
from distributed import SchedulerPlugin

from dasktc.executors.dask.run_state import RunState
from dasktc.executors.dask.worker_events import TOPIC
from dasktc.executors.dask.worker_state import RECEIVED

__all__ = ["RunMonitor"]

RUNS = 20
"""Runs that a monitor keeps."""
LOOK_SECONDS = 1.0
"""Seconds between looks at what workers hold."""
DEFAULT = ("default",)
"""Name of Dask's spans for tasks that no caller has put into a span."""
CLEAN_SECONDS = 60.0
"""Seconds between clean-ups of spans and key prefixes that nobody needs."""
QUIET_SECONDS = 3600
"""Silence after which a run is taken to be over."""
log = logging.getLogger("dasktc")


def forget_spans(scheduler: Any, before: float) -> None:
    """Delete Dask's default spans that ended before a time and of whose tasks none is left.

    Dask makes a span for every burst of tasks and keeps it, with its task groups, for as long as the scheduler lives:
    five a count, 46 KB together. The time must lie so far back that no worker still reports about these spans, because
    a heartbeat that names a missing span ends its worker; a worker silent for `Scheduler.worker_ttl` is given up.
    """
    extension, groups = scheduler.extensions["spans"], scheduler.task_groups
    gone = {
        span.id
        for span in extension.root_spans
        if span.name == DEFAULT
        and not span.children
        and 0 < span.stop < before
        and not any(groups.get(group.name) is group for group in span.groups)
    }
    if gone:
        by_name, by_tag = extension.spans_search_by_name[DEFAULT], extension.spans_search_by_tag[DEFAULT[0]]
        for kept in (extension.root_spans, by_name, by_tag):
            kept[:] = [span for span in kept if span.id not in gone]
        for span in gone:
            del extension.spans[span]


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
        self._received: dict[str, int] = {}
        self._received_by_gone = 0
        self._before: dict[str, int] = {}
        self._looked = self._cleaned = 0.0

    async def start(self, scheduler: Any) -> None:
        """Add the page to a scheduler; Dask calls this, in the scheduler's thread."""
        self.scheduler = scheduler
        try:
            from dasktc.executors.dask.page import add_page
        except ImportError as missing:
            log.warning("dasktc: warning: no page /dasktc (%s): install dasktc[dashboard]", missing)
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
            self._before[msg["run"]] = self._all_received()
            while len(self.runs) > RUNS:
                self._forget(self.runs.popitem(last=False)[0])
            if now - self._cleaned >= CLEAN_SECONDS:
                self._cleaned = now
                key_split.cache_clear()  # Dask keeps 100,000 keys with their prefixes, 0.5 KB each, of tasks long over
                with suppress(AttributeError, KeyError):  # a Dask version whose spans are built differently
                    if silence := self.scheduler.worker_ttl:
                        forget_spans(self.scheduler, now - 2 * silence)
        run = self.runs[msg["run"]]
        run.hear(msg, now)
        if now - self._looked >= LOOK_SECONDS or msg["event"] != "progress":
            self._looked = now
            self.look(run)

    def _forget(self, run: str) -> None:
        """Delete what is kept of a run, and the events under the topic of its own."""
        self._before.pop(run, None)
        with suppress(AttributeError):  # a Dask version that keeps them elsewhere
            self.scheduler._broker._topics.pop(f"{TOPIC}-{run}", None)

    def look(self, run: RunState) -> None:
        """Record what the workers hold and have received, for a run that is under way or the latest one."""
        if not run.is_over and (blocks := self.block_bytes()) and any(blocks.values()):
            run.blocks = blocks
        run.received = self._all_received() - self._before.get(run.name, 0)

    def _all_received(self) -> int:
        for address, worker in self.scheduler.workers.items():
            self._received[address] = worker.metrics.get(RECEIVED, 0)
        return self._received_by_gone + sum(self._received.values())

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        """Record in the runs under way that a worker left; its tasks run again elsewhere."""
        self._received_by_gone += self._received.pop(worker, 0)
        for run in self.runs.values():
            if not run.is_over and time.time() - run.heard < QUIET_SECONDS:
                run.faults.append((time.time(), f"worker {worker} went: what it ran and held is made again"))

    def block_bytes(self) -> dict[str, int]:
        """Bytes of blocks in each worker's memory, by address."""
        return {
            address: sum(task.nbytes for task in worker.has_what if "blocks" in task.prefix.name)
            for address, worker in self.scheduler.workers.items()
        }
