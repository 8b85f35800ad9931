"""The state of a run, as far as a Dask scheduler knows it from the run's events."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Protocol

from dasktc.executors.progress.tracker import RUN, Event

__all__ = ["RunState", "Runs"]

POINTS = 600
"""Points of a run's curves; above that number every second point is dropped."""


@dataclass
class RunState:
    """The state of a run."""

    name: str
    began: float
    heard: float
    """Times of its first and latest event, in seconds since the epoch."""
    facts: Event = field(default_factory=dict)
    """The run's first event."""
    stages: dict[str, Event] = field(default_factory=dict)
    """Dict of str to dict. The latest event of each stage."""
    latest: Event = field(default_factory=dict)
    """The latest event of any stage."""
    counting: Event = field(default_factory=dict)
    """The latest event of the stage `count`, with the plan from its first event."""
    points: list[tuple[float, float, int, int]] = field(default_factory=list)
    """While the run counts: its seconds, share of the planned work, probes and triangles so far."""
    faults: list[tuple[float, str]] = field(default_factory=list)
    """Time, in seconds since the epoch, and description of each fault."""
    ended: Event | None = None
    """The run's last event."""
    gone: float | None = None
    """When the run's client left, in seconds since the epoch, where no end of the run had been reported; None again if
    it comes back."""
    blocks: dict[str, int] = field(default_factory=dict)
    """Bytes of blocks in each worker's memory, when there last were any."""
    sent: int = 0
    """Bytes that workers have sent to each other and to clients since the run began."""

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
                self.points.append(
                    (event["seconds"], event["share"], event.get("probes", 0), event.get("triangles", 0))
                )
                if len(self.points) > POINTS:
                    self.points = self.points[::2] if len(self.points) % 2 else [*self.points[::2], self.points[-1]]

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, with a result or an error, or by the end of its client."""
        return self.ended is not None or self.gone is not None

    def seconds(self, now: float) -> float:
        """Seconds that the run has taken."""
        if self.ended is not None:
            return float(self.ended["seconds"])
        end = now if self.gone is None else self.gone
        return float(self.latest.get("seconds", 0.0)) + max(0.0, end - self.heard)

    def left(self, now: float) -> float | None:
        """Seconds until the run ends; None where that is unknown."""
        if self.is_over or self.latest.get("left") is None:
            return None
        return max(0.0, float(self.latest["left"]) - (now - self.heard))


class Runs(Protocol):
    """Keeps the states of the latest runs, in the order of their first events."""

    runs: OrderedDict[str, RunState]

    def look(self, run: RunState) -> None:
        """Record what the workers hold and have sent."""
