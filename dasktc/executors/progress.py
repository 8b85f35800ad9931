"""`Tracker`: what a run has done of what it planned, and when it will end; every view of progress is fed by one.

Stages report their steps to a tracker, which keeps the planned work of each: bytes of a source that is read, counting
tasks weighed by the probes that are expected of their blocks. Listeners get *events*, dicts of strings, numbers and
dicts of these, so that they can be sent (`executors.dask.progress`) and printed; `dasktc/README.md` has their schema.
There are two a second at most, and one when a stage begins or ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import Any, Protocol
from uuid import uuid4

__all__ = ["EVENT_SECONDS", "Event", "Listener", "Pace", "Progress", "Stage", "Tracker", "clock_time", "tracker_of"]

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, how many of its steps are done, and how many there are."""
Event = dict[str, Any]
Listener = Callable[[Event], None]
EVENT_SECONDS, EVALUATED_SECONDS = 0.5, 0.1
"""Between two events of progress, and between two predictions of the end of counting, at least."""
MANY = 16
"""Steps of a stage before counting, from which its end is predicted from those that are done."""
PRIOR_SECONDS, PRIOR_SHARE = 3.0, 0.1
"""For which a machine is taken to be as fast as predicted, at least, and what share of all that is predicted: of stages
that took so long, half is believed."""
STAGES = ("read", "canonical", "orient", "reorder", "plan", "blocks", "count", "sum", "verify")
"""In their order."""
PREPARING = STAGES[:6]
AHEAD = PREPARING[1:5]
"""Whose tasks a cluster still runs while the client submits the next stages'."""
FEW = ("reorder", "plan")
"""Those of them that may have no task."""
PARTS_OF = {
    "read-rows": "read",
    "vertices": "canonical",
    "lookup": "canonical",
    "degrees": "orient",
    "orient-plan": "orient",
}
"""The stage that tasks of other names belong to."""
RUN = "run"
"""In the place of a stage: events of the run as a whole."""


class Watched(Protocol):
    """What reports the steps of a stage while it calls them: an executor."""

    tracker: Tracker | None


@dataclass
class _Slot:
    """A thread that counts: the end of its last task, and its work and seconds, the latest of which weigh most."""

    ended: float
    work: float = 0.0
    seconds: float = 0.0

    def add(self, work: float, now: float, began: float) -> None:
        """Add a task; what it did in the half of the run until now weighs twice what it did in the half before."""
        spent = now - self.ended
        forgets = 0.5 ** (2 * spent / max(1e-9, now - began))
        self.work, self.seconds = forgets * self.work + work, forgets * self.seconds + spent
        self.ended = now

    @property
    def rate(self) -> float:
        return self.work / max(1e-9, self.seconds)


class Pace:
    """Predicts the end of tasks that several threads work off, from those that have ended.

    Each thread's rate is its work over the time until its last task ended, so what is in flight biases nothing.

    Parameters
    ----------
    began : float
        When the first tasks began.
    threads : int
        That work.
    """

    def __init__(self, began: float, threads: int) -> None:
        self._began, self.threads = began, max(1, threads)
        self._slots: dict[str, list[_Slot]] = {}
        self._tasks, self._work = 0, 0.0

    def ended(self, worker: str, work: float, seconds: float, now: float) -> None:
        """Record a task: its worker, its planned work, and how long it took."""
        self._tasks, self._work = self._tasks + 1, self._work + work
        slots = self._slots.setdefault(worker, [])
        free = [slot for slot in slots if slot.ended <= now - 0.9 * seconds]
        known = sum(map(len, self._slots.values()))
        if free:
            slot = max(free, key=lambda slot: slot.ended)
        elif known < self.threads or not slots:
            late = known >= self.threads  # a worker that joined after the others
            slot = _Slot(max(self._began, now - seconds) if late else self._began)
            slots.append(slot)
        else:
            slot = min(slots, key=lambda slot: slot.ended)
        slot.add(work, now, self._began)

    def left(self, work: float, now: float) -> float | None:
        """Seconds until so much more work, some of it in flight, will have ended; None before any task has."""
        if not self._tasks:
            return None
        slots = sorted((slot for slots in self._slots.values() for slot in slots), key=lambda slot: -slot.ended)
        rate = sum(slot.rate for slot in slots) / len(slots)
        threads = self.threads if self._tasks < 2 * self.threads else min(self.threads, len(slots))
        latest = slots[:threads]
        usual = self._work / self._tasks
        flying = sum(min(rate * (now - slot.ended), usual) for slot in latest)
        flying += (threads - len(latest)) * min(rate * (now - self._began), usual)
        return max(0.0, work - flying) / (rate * threads) if rate else None


@dataclass
class Stage:
    """A stage of a run.

    Attributes
    ----------
    name : str
    began : float
    done, total : int
        Steps: calls, or tasks.
    share : float
        Of the planned work, what is done: 0 to 1.
    steps : int
        Of how many steps the share tells: more than `total` where tasks report their own.
    ended : float or None
    bytes : int
        Of the source, of the stage that reads it.
    more : dict
        What events of it say besides.
    """

    name: str
    began: float
    done: int = 0
    total: int = 1
    share: float = 0.0
    steps: int = 1
    ended: float | None = None
    bytes: int = 0
    more: Event = field(default_factory=dict)


class Tracker:
    """What a run has done of what it planned.

    Parameters
    ----------
    told : callable (stage, done, total), optional
        Hears of every step, in the thread that reports it.
    clock : callable () -> float
        Seconds.

    Attributes
    ----------
    name : str
        Of the run, in its events.
    facts : dict
        Of the run, in its first event.
    forecast : dict of str to float
        Seconds that stages are predicted to take.
    source_bytes : int
        Of the source's files; 0 where it has none.
    reads_compute : bool
        Reading keeps processors busy, as later stages do, so that it tells how fast these will be.
    counts : bool
        The run ends with the number, not with a prepared graph.
    follows : bool
        Its events go to the scheduler of a cluster that its stages run on.
    ahead : bool
        Stages are submitted to a cluster, before those that they follow have ended.
    """

    def __init__(self, told: Progress | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = uuid4().hex[:8]
        self.facts: Event = {}
        self.forecast: dict[str, float] = {}
        self.source_bytes = 0
        self.reads_compute = self.counts = True
        self._told, self._clock = told, clock
        self._listeners: dict[Any, Listener] = {}
        self._stages: dict[str, Stage] = {}
        self._current: Stage | None = None
        self._began, self._said = clock(), -inf
        self._begun = self._over = False
        self._pace: Pace | None = None
        self._heard: Event | None = None
        self._grouped: set[str] = set()
        self._ends: float | None = None
        self._evaluated = -inf
        self._looked = self._before = self._all = self._left = 0.0
        self.ahead = self.follows = False

    # what is told

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report that so many steps of a stage are done; another stage than before has begun, and that one ended."""
        if self._told is not None:
            self._told(stage, done, total)
        if not self._listeners:
            return
        now = self._stage(stage, total)
        now.done, now.total = done, total
        if stage != "count" or self._pace is None:
            now.share, now.steps = done / max(1, total), total
        self._changed()

    def step(self, done: int, total: int) -> None:
        """Report calls that have been made, of a source that is read; other stages make several passes of calls."""
        if (stage := self._current) is not None and stage.name == "read":
            stage.done, stage.total, stage.share, stage.steps = done, total, done / max(1, total), total
            self._changed()

    def tasks(
        self,
        groups: Mapping[str, tuple[int, int]],
        within: Mapping[str, Collection[tuple[int, int]]] = MappingProxyType({}),
    ) -> None:
        """Report how many tasks of each stage a cluster has run, of how many.

        Parameters
        ----------
        groups : mapping of str to (int, int)
        within : mapping of str to collection of (int, int), optional
            For tasks under way that report their own steps, how many are done, of how many.
        """
        counts: dict[str, tuple[int, int]] = {}
        for name, (done, total) in groups.items():
            stage = PARTS_OF.get(name, name)
            before = counts.get(stage, (0, 0))
            counts[stage] = before[0] + done, before[1] + total
        steps = {PARTS_OF.get(name, name): of for name, of in within.items()}
        if self._current is None or self._current.name not in PREPARING:
            return
        latest = list(self._stages)[-1]
        for known in self._open():
            if known.name in counts:
                self._grouped.add(known.name)
                (known.done, known.total), own = counts[known.name], steps.get(known.name, ())
                parts = sum(done / total for done, total in own)
                known.share = min(1.0, (known.done + parts) / max(1, known.total))
                known.steps = max(known.total, sum(total for _, total in own))
        for known in self._open():
            gone = known.name in self._grouped.union(FEW) - counts.keys()  # Dask forgets what nobody needs
            if known.name == latest or not (gone or known.share == 1):
                break  # no stage ends before one that it follows
            self._end(known)
        self._current = self._open()[0]
        self._changed()

    def planned(self, threads: int, tasks: tuple[int, int], work: float, done: float, more: Event) -> None:
        """Begin the counting tasks.

        Parameters
        ----------
        threads : int
            That work on them.
        tasks : (int, int)
            How many a checkpoint has, and all.
        work, done : float
            All planned work, and what a checkpoint has of it.
        more : dict
            What events say besides, with `probes`.
        """
        if self._listeners:
            self._all, self._left = work, work - done
            self._ends, self._before, self._evaluated = None, more.get("probes", 0), -inf
            self._pace = Pace(self._clock(), threads)
            self._begin("count", Stage("count", self._clock(), *tasks, done / work if work else 0.0, more=more))

    def counted(self, worker: str, work: float, seconds: float, said: Event, threads: int) -> None:
        """Record a counting task that has ended, what the stage's events say now, and the threads there are."""
        if self._pace is not None and (stage := self._current) is not None:
            self._pace.threads = max(1, threads)
            self._pace.ended(worker, work, seconds, self._clock())
            self._left -= work
            stage.share = min(1.0, 1 - self._left / self._all) if self._all else 1.0
            stage.more = said | {"rate": (said["probes"] - self._before) / max(1e-9, self._clock() - stage.began)}
            now = self._clock()
            if now - self._evaluated >= EVALUATED_SECONDS or self._left <= 0:
                left, self._evaluated = self._pace.left(self._left, now), now
                self._ends = None if left is None else now + left

    def fault(self, what: str, **more: Any) -> None:
        """Report that something was lost, and is done again."""
        self._emit({"event": "fault", "what": what, **more})

    def heard(self, event: Event) -> None:
        """Take over an event of this run from the process in which it goes on."""
        stage, done, total, kind = event["stage"], event["done"], event["total"], event["event"]
        if stage == RUN:
            self._heard_of_all(event)
            return
        before = self._heard
        self._heard, self._looked = event, self._clock()
        repeated = before is not None and (before["stage"], before["done"]) == (stage, done)
        if self._told is not None and not repeated and not (kind == "ended" and total == 1):
            self._told(stage, done, total)
        for listener in self._listeners.values():
            listener(event)

    def _heard_of_all(self, event: Event) -> None:
        """Hand on that the run has begun, once, and that it ended with a result: of errors `close` says more."""
        begins = event["event"] == "begun"
        if (begins and self._begun) or "error" in event:
            return
        self._begun, self._over = True, self._over or not begins
        for listener in self._listeners.values():
            listener(event)

    def end_stages(self) -> None:
        """End all stages: the run goes on in another process."""
        for stage in self._open():
            self._end(stage)

    def goes_on(self) -> None:
        """Take the run back from the process that had begun it."""
        self._begun, self._heard = True, None

    def close(self, error: str | None = None, **result: Any) -> None:
        """End the run, with its result or its error."""
        if self._begun and not self._over:
            self._over = True
            if error is None:
                self.end_stages()
            said = {"event": "ended"} | (result if error is None else {"error": error})
            self._current = None
            self._emit({"stage": RUN, "done": int(error is None), **said})
            for listener in self._listeners.values():
                getattr(listener, "flush", _nothing)()

    # what is heard

    def listen(self, key: Any, listener: Listener) -> None:
        """Have a listener called with every event from now on; one that is there under the same key stays alone."""
        self._listeners.setdefault(key, listener)

    @property
    def tells(self) -> bool:
        """Whether a callable hears of every step."""
        return self._told is not None

    @property
    def heeded(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    def now(self) -> Event:
        """Describe where the run is, as an event of progress; {} before it has begun."""
        if self._heard is not None:
            since = self._clock() - self._looked
            left = self._heard["left"]
            return self._heard | {
                "seconds": self._heard["seconds"] + since,
                "left": None if left is None else max(0.0, left - since),
            }
        if (stage := self._current) is None:
            return {}
        said: Event = {
            "stage": stage.name,
            "event": "progress",
            "done": stage.done,
            "total": stage.total,
            "share": stage.share,
            "left": self.left(),
        }
        if stage.bytes:
            said |= {"bytes": round(stage.share * stage.bytes), "bytes_total": stage.bytes}
        return self._base() | said | stage.more

    def left(self) -> float | None:
        """Seconds until the run ends; None: nobody knows."""
        stage = next(iter(self._open()), self._current)
        if stage is None or stage.name not in STAGES:
            return None
        now = self._clock()
        if stage.name == "count" and self._ends is not None:
            return max(0.0, self._ends - now)
        if "count" not in self.forecast or (stage.name in PREPARING and "read" not in self.forecast):
            return None
        slower, left = self._slower(stage, now), 0.0
        for name in STAGES[STAGES.index(stage.name) :]:
            known = self._stages.get(name)
            if (known is not None and known.ended is not None) or (name == "count" and not self.counts):
                continue
            expected = slower * self.forecast.get(name, 0.0)
            left += expected if known is not stage else self._left_of(stage, expected, now)
        return left or None

    def _left_of(self, stage: Stage, expected: float, now: float) -> float:
        """Seconds until a stage ends that is expected to take so long: by its share, where that tells anything."""
        spent, left = now - self._start(stage), 1 - stage.share
        if _evenly(stage):
            return left * spent / stage.share
        if _tells(stage):  # its pace weighs as much as is done
            return left * (spent + left * expected)
        return max(0.0, left * expected - spent)

    def _slower(self, current: Stage, now: float) -> float:
        """How many times as long as predicted stages take here: those that ended, and the current one so far."""
        took = predicted = max(PRIOR_SECONDS, PRIOR_SHARE * sum(self.forecast.values()))
        for stage in list(self._stages.values()):  # a bar's thread asks while others begin
            expected = self.forecast.get(stage.name, 0.0)
            if not expected or stage.name not in PREPARING[0 if self.reads_compute else 1 :]:
                continue
            spent, done = (stage.ended or now) - self._start(stage), float(stage.ended is not None)
            if stage is current:
                late = spent > expected * took / predicted and not _tells(stage)
                done = stage.share if _evenly(stage) else float(late)
            if done:
                took, predicted = took + spent, predicted + done * expected
        return took / predicted

    def _start(self, stage: Stage) -> float:
        """When a stage's work began: one whose tasks are submitted ahead waits for the stages before it."""
        before = STAGES[: STAGES.index(stage.name)] if stage.name in STAGES else ()
        ends = [self._stages[name].ended or 0.0 for name in before if name in self._stages]
        return min(max([stage.began, *ends]), stage.ended or inf)

    # how

    def _base(self) -> Event:
        return {"run": self.name, "seconds": round(self._clock() - self._began, 3)}

    def _open(self) -> list[Stage]:
        return [stage for stage in list(self._stages.values()) if stage.ended is None]  # a bar's thread asks, too

    def _stage(self, name: str, total: int) -> Stage:
        """The stage of this name, which begins now if it is not under way."""
        known = self._stages.get(name)
        if known is not None and known.ended is None:
            return known
        stage = Stage(name, self._clock(), total=total)
        stage.bytes = self.source_bytes if name == "read" else 0
        return self._begin(name, stage)

    def _begin(self, name: str, stage: Stage) -> Stage:
        """Begin a stage; others end, but those whose tasks a cluster may still run."""
        for other in self._open():
            if not (self.ahead and other.name in AHEAD and name in PREPARING):
                self._end(other)
        if not self._begun:
            self._begun = True
            self._emit({"stage": RUN, "event": "begun", **self.facts})
        self._stages.pop(name, None)  # a stage that begins once more is the latest
        self._current = self._stages[name] = stage
        begins = self.now() | {"event": "begun"}
        self._current = self._open()[0]  # of those submitted ahead the one that the others wait for
        self._said = self._clock()
        self._emit(begins)
        return stage

    def _end(self, stage: Stage) -> None:
        stage.ended, stage.done, stage.share = self._clock(), stage.total, 1.0
        self._current = stage
        self._emit(self.now() | {"event": "ended", "took": round(stage.ended - self._start(stage), 3)})

    def _changed(self) -> None:
        if self._clock() - self._said >= EVENT_SECONDS:
            self._said = self._clock()
            self._emit(self.now())

    def _emit(self, event: Event) -> None:
        stage = self._current
        place = {"stage": stage.name, "done": stage.done, "total": stage.total} if stage else {"stage": RUN}
        event = self._base() | {"done": 0, "total": 1, "left": None} | place | event
        for listener in self._listeners.values():
            listener(event)

    @contextmanager
    def watching(self, executor: Watched) -> Iterator[None]:
        """Have an executor report its calls here; where nobody listens nothing is done."""
        if not self._listeners:
            yield
            return
        before, executor.tracker = executor.tracker, self
        try:
            yield
        finally:
            executor.tracker = before


def _tells(stage: Stage) -> bool:
    """Whether the share of a stage's steps that are done tells when it will end; of `count` a checkpoint has some."""
    return stage.name != "count" and stage.share > 0.05 and stage.steps >= MANY


def _evenly(stage: Stage) -> bool:
    """Whether it does, and steps take about as long as each other; other stages have tasks of several kinds."""
    return stage.name == "read" and _tells(stage)


def _nothing() -> None:
    """Nothing waits to be sent."""


def tracker_of(progress: Progress | None) -> Tracker:
    """The tracker itself, or one that tells a callable of every step."""
    return progress if isinstance(progress, Tracker) else Tracker(progress)


def clock_time(seconds: float) -> str:
    """Minutes and seconds, or hours too, as a clock shows them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
