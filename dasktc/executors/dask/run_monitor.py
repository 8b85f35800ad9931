"""State that a Dask scheduler keeps of the latest runs, built from their events; imported by schedulers only."""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dask.utils import key_split
from distributed import SchedulerPlugin

from dasktc.executors.dask.worker_events import TOPIC
from dasktc.executors.dask.worker_state import RECEIVED
from dasktc.executors.progress import RUN, Event

__all__ = ["RunMonitor", "RunState"]

RUNS, POINTS = 20, 600
"""Runs that a monitor keeps, and points of each run's curves; above that number every second point is dropped."""
LOOK_SECONDS = 1.0
"""Seconds between looks at what workers hold."""
DEFAULT = ("default",)
"""Name of Dask's spans for tasks that no caller has put into a span."""
CLEAN_SECONDS = 60.0
"""Seconds between clean-ups of spans and key prefixes that nobody needs."""
QUIET_SECONDS = 3600
"""Silence after which a run is taken to be over."""


@dataclass
class RunState:
    """The state of a run, as far as the scheduler knows it.

    Attributes
    ----------
    name : str
    facts : dict
        The run's first event.
    began, heard : float
        Times of its first and latest event, in seconds since the epoch.
    stages : dict of str to dict
        The latest event of each stage.
    latest : dict
        The latest event of any stage.
    counting : dict
        The latest event of the stage `count`, with the plan from its first event.
    points : list of (float, float, int, int)
        While the run counts: its seconds, share of the planned work, probes and triangles so far.
    faults : list of (float, str)
        Time, in seconds since the epoch, and description of each fault.
    ended : dict or None
        The run's last event.
    blocks : dict of str to int
        Bytes of blocks in each worker's memory, when there last were any.
    received : int
        Bytes that workers have received from others since the run began.
    """

    name: str
    began: float
    heard: float
    facts: Event = field(default_factory=dict)
    stages: dict[str, Event] = field(default_factory=dict)
    latest: Event = field(default_factory=dict)
    counting: Event = field(default_factory=dict)
    points: list[tuple[float, float, int, int]] = field(default_factory=list)
    faults: list[tuple[float, str]] = field(default_factory=list)
    ended: Event | None = None
    blocks: dict[str, int] = field(default_factory=dict)
    received: int = 0

    def hear(self, event: Event, now: float) -> None:
        """Update the state by an event."""
        self.heard, kind, stage = now, event["event"], event["stage"]
        if kind == "fault":
            if "worker" not in event:  # the scheduler itself notices earlier that workers leave
                self.faults.append((now, event["what"]))
        elif stage == RUN:
            if kind == "begun":
                self.facts = event
            else:
                self.ended = event
        else:
            self.stages[stage] = self.stages.get(stage, {}) | event
            self.latest = event
            if stage == "count":
                self.counting = self.counting | event
                self._point(event)

    def _point(self, event: Event) -> None:
        self.points.append((event["seconds"], event["share"], event.get("probes", 0), event.get("triangles", 0)))
        if len(self.points) > POINTS:
            self.points = self.points[::2] if len(self.points) % 2 else [*self.points[::2], self.points[-1]]

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, with a result or an error."""
        return self.ended is not None

    def seconds(self, now: float) -> float:
        """Seconds that the run has taken."""
        if self.ended is not None:
            return float(self.ended["seconds"])
        return float(self.latest.get("seconds", 0.0)) + now - self.heard

    def left(self, now: float) -> float | None:
        """Seconds until the run ends; None where that is unknown."""
        if self.is_over or self.latest.get("left") is None:
            return None
        return max(0.0, float(self.latest["left"]) - (now - self.heard))


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
    """A scheduler plugin that keeps the state of the latest runs.

    Parameters
    ----------
    scheduler : distributed.Scheduler

    Attributes
    ----------
    runs : dict of str to RunState
        The latest runs, in the order of their first events.
    """

    name = TOPIC

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.runs: OrderedDict[str, RunState] = OrderedDict()
        self.page = False
        self._received: dict[str, int] = {}
        self._received_by_gone = 0
        self._before: dict[str, int] = {}
        self._looked = self._cleaned = 0.0

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
