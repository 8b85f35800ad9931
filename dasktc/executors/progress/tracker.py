"""`Tracker`: what a run has done of its planned work, and when counting ends; the source of every view of progress.

Stages report their steps to a tracker, which knows each one's planned work: the bytes of a source to read, and counting
tasks weighted by the probes expected of their blocks. Listeners get *events*, dicts of strings, numbers and dicts of
these, so that they can be sent (`executors.dask.progress`) and printed; `dasktc/README.md` has their schema. There are
at most two a second, and one whenever a stage begins or ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

__all__ = [
    "EVENT_SECONDS", "WORDS", "Event", "Listener", "Pace", "Progress", "Stage", "Tracker", "Words", "clock_time",
    "tracker_of", "words_of",
]  # fmt: skip

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, the number of its finished steps, and the number of all its steps."""
Event = dict[str, Any]
Listener = Callable[[Event], None]
EVENT_SECONDS, EVALUATED_SECONDS = 0.5, 0.1
"""Least seconds between two events of progress, and between two predictions of the end of counting."""
STAGES = ("read", "canonical", "orient", "reorder", "plan", "blocks", "count", "sum", "verify")
"""In their order."""
PREPARING = STAGES[:6]
SUBMITTED_AHEAD = PREPARING[1:5]
"""Stages whose tasks a cluster still runs while the client submits those of the next stages."""
MAY_HAVE_NO_TASK = ("reorder", "plan")
"""Those of SUBMITTED_AHEAD that a plan may not need."""
PARTS_OF = {
    "read-rows": "read", "vertices": "canonical", "lookup": "canonical", "degrees": "orient", "orient-plan": "orient"
}  # fmt: skip
"""The stage to which tasks of other names belong."""


class Words(NamedTuple):
    """What people read of a stage."""

    name: str
    """Its name in plain words."""
    help: str
    """One sentence about what it does."""


WORDS = {
    "read": Words("read", "Reads the source: two ids for each edge."),
    "canonical": Words(
        "deduplicate", "Numbers the vertices, and keeps each edge once: without repetitions and without loops."
    ),
    "orient": Words(
        "direct edges", "Gives each edge a direction, by the degrees of its ends, so that each triangle is found once."
    ),
    "reorder": Words("order vertices", "Numbers the vertices again, in the order in which the kernel counts fastest."),
    "plan": Words("plan", "Decides into how many blocks and tasks the graph is cut, so that each task fits in memory."),
    "blocks": Words("build blocks", "Builds the blocks: the sorted neighbours of every vertex that counting compares."),
    "count": Words("count", "Counts the triangles of the blocks; each task counts a share of the work."),
    "sum": Words("add up", "Adds up what the tasks counted, and checks that nothing was missed or counted twice."),
    "verify": Words("verify", "Counts some of the tasks again with another kernel, and compares."),
    "write": Words("write files", "Writes the triangles of every vertex or edge to the files that were asked for."),
    "report": Words("write report", "Writes the HTML report."),
}
"""Words for each stage, on the dashboard's page and the terminal's bar; events and task keys have the stages' names."""
RUN = "run"
"""Stands in the place of a stage in events of the whole run."""


class Watched(Protocol):
    """Reports the steps of a stage while it makes their calls: an executor."""

    tracker: Tracker | None


@dataclass
class _Slot:
    """A counting thread: the end of its last task, and its work and seconds, in which late tasks weigh most."""

    ended: float
    work: float = 0.0
    seconds: float = 0.0

    def add(self, work: float, now: float, began: float) -> None:
        """Add a task; work of the later half of the run so far weighs twice as much as work of the earlier half."""
        seconds = now - self.ended
        decay = 0.5 ** (2 * seconds / max(1e-9, now - began))
        self.work, self.seconds = decay * self.work + work, decay * self.seconds + seconds
        self.ended = now

    @property
    def rate(self) -> float:
        return self.work / max(1e-9, self.seconds)


class Pace:
    """Predicts when tasks that several threads work off will have ended, from those that have.

    A thread's rate is its work over the time until its last task ended, so tasks in flight do not bias it.

    Parameters
    ----------
    began : float
        When the first tasks began.
    threads : int
        Number of working threads.
    """

    def __init__(self, began: float, threads: int) -> None:
        self._began, self.threads = began, max(1, threads)
        self._slots: dict[str, list[_Slot]] = {}
        self._tasks, self._work = 0, 0.0

    def ended(self, worker: str, work: float, seconds: float, now: float) -> None:
        """Record a finished task: its worker, its planned work, and how long it took."""
        self._tasks, self._work = self._tasks + 1, self._work + work
        slots = self._slots.setdefault(worker, [])
        free = [slot for slot in slots if slot.ended <= now - 0.9 * seconds]
        slot_count = sum(map(len, self._slots.values()))
        if free:
            slot = max(free, key=lambda slot: slot.ended)
        elif slot_count < self.threads or not slots:
            is_late = slot_count >= self.threads  # a worker that joined after the others
            slot = _Slot(max(self._began, now - seconds) if is_late else self._began)
            slots.append(slot)
        else:
            slot = min(slots, key=lambda slot: slot.ended)
        slot.add(work, now, self._began)

    def left(self, work: float, now: float) -> float | None:
        """Seconds until `work` more, some of it in flight, will be done; None before any task has ended."""
        if not self._tasks:
            return None
        slots = sorted((slot for slots in self._slots.values() for slot in slots), key=lambda slot: -slot.ended)
        rate = sum(slot.rate for slot in slots) / len(slots)
        threads = self.threads if self._tasks < 2 * self.threads else min(self.threads, len(slots))
        last_slots = slots[:threads]
        mean_work = self._work / self._tasks
        partial_work = sum(min(rate * (now - slot.ended), mean_work) for slot in last_slots)
        partial_work += (threads - len(last_slots)) * min(rate * (now - self._began), mean_work)
        return max(0.0, work - partial_work) / (rate * threads) if rate else None


@dataclass
class Stage:
    """A stage of a run, and how much of it is done."""

    name: str
    began: float
    done: int = 0
    total: int = 1
    """Finished steps and all steps: calls or tasks."""
    share: float = 0.0
    """Share of the planned work that is done, 0 to 1."""
    ended: float | None = None
    bytes: int = 0
    """Bytes of the source, for the stage that reads it."""
    more: Event = field(default_factory=dict)
    """Further fields of the stage's events."""


class Tracker:
    """Tracks what a run has done of its planned work, and predicts when counting ends.

    Parameters
    ----------
    callback : callable (stage, done, total), optional
        Called for every step, in the thread that reports it.
    clock : callable () -> float
        Returns seconds.

    Attributes
    ----------
    name : str
        Name of the run in its events.
    facts : dict
        Further fields of the run's first event.
    source_bytes : int
        Bytes of the source's files; 0 where it has none.
    follows : bool
        Whether its events go to the scheduler of the cluster that runs its stages.
    ahead : bool
        Whether stages are submitted to a cluster before the stages that they follow have ended.
    """

    def __init__(self, callback: Progress | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = uuid4().hex[:8]
        self.facts: Event = {}
        self.source_bytes = 0
        self._callback, self._clock = callback, clock
        self._listeners: dict[Any, Listener] = {}
        self._stages: dict[str, Stage] = {}
        self._current: Stage | None = None
        self._began, self._event_time = clock(), -inf
        self._has_begun = self._is_over = False
        self._pace: Pace | None = None
        self._remote_event: Event | None = None
        self._reported_stages: set[str] = set()
        self._end_time: float | None = None
        self._evaluation_time = -inf
        self._remote_time = self._earlier_probes = self._planned_work = self._remaining_work = 0.0
        self.ahead = self.follows = False

    # reports

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report finished steps of a stage; if it is another stage than before, that one has ended."""
        if self._callback is not None:
            self._callback(stage, done, total)
        if not self._listeners:
            return
        state = self._stage(stage, total)
        state.done, state.total = done, total
        if stage != "count" or self._pace is None:
            state.share = done / max(1, total)
        self._changed()

    def step(self, done: int, total: int) -> None:
        """Report finished calls while a source is read; other stages make several passes of calls."""
        if (stage := self._current) is not None and stage.name == "read":
            stage.done, stage.total, stage.share = done, total, done / max(1, total)
            self._changed()

    def tasks(
        self,
        groups: Mapping[str, tuple[int, int]],
        steps_within: Mapping[str, Collection[tuple[int, int]]] = MappingProxyType({}),
    ) -> None:
        """Report how many tasks of each stage a cluster has run, out of how many.

        `steps_within` has, for tasks under way that report their own steps, the finished steps and all steps of each.
        """
        counts: dict[str, tuple[int, int]] = {}
        for name, (finished_steps, total) in groups.items():
            stage_name = PARTS_OF.get(name, name)
            sums = counts.get(stage_name, (0, 0))
            counts[stage_name] = sums[0] + finished_steps, sums[1] + total
        steps = {PARTS_OF.get(name, name): pairs for name, pairs in steps_within.items()}
        if self._current is None or self._current.name not in PREPARING:
            return
        last_stage = list(self._stages)[-1]
        for stage in self._open_stages():
            if stage.name in counts:
                self._reported_stages.add(stage.name)
                (stage.done, stage.total), task_steps = counts[stage.name], steps.get(stage.name, ())
                parts = sum(finished_steps / total for finished_steps, total in task_steps)
                stage.share = min(1.0, (stage.done + parts) / max(1, stage.total))
        for stage in self._open_stages():
            names = self._reported_stages.union(MAY_HAVE_NO_TASK)
            is_forgotten = stage.name in names - counts.keys()  # Dask forgets tasks that nobody needs
            if stage.name == last_stage or not (is_forgotten or stage.share == 1):
                break  # no stage ends before one that it follows
            self._end(stage)
        self._current = self._open_stages()[0]
        self._changed()

    def planned(self, threads: int, tasks: tuple[int, int], work: float, done: float, fields: Event) -> None:
        """Begin the counting tasks.

        Parameters
        ----------
        threads : int
            Number of threads that work on them.
        tasks : (int, int)
            Number of tasks that a checkpoint has, and of all tasks.
        work, done : float
            All planned work, and the part of it that a checkpoint has.
        fields : dict
            Further fields of the stage's events, `probes` among them.
        """
        if self._listeners:
            self._planned_work, self._remaining_work = work, work - done
            self._end_time, self._earlier_probes, self._evaluation_time = None, fields.get("probes", 0), -inf
            self._pace = Pace(self._clock(), threads)
            self._begin("count", Stage("count", self._clock(), *tasks, done / work if work else 0.0, more=fields))

    def counted(self, worker: str, work: float, seconds: float, fields: Event, threads: int) -> None:
        """Record a finished counting task, the fields of the stage's next events, and the current number of threads."""
        if self._pace is not None and (stage := self._current) is not None:
            now, self._pace.threads = self._clock(), max(1, threads)
            self._pace.ended(worker, work, seconds, now)
            self._remaining_work -= work
            stage.share = min(1.0, 1 - self._remaining_work / self._planned_work) if self._planned_work else 1.0
            stage.more = fields | {"rate": (fields["probes"] - self._earlier_probes) / max(1e-9, now - stage.began)}
            if now - self._evaluation_time >= EVALUATED_SECONDS or self._remaining_work <= 0:
                seconds_left, self._evaluation_time = self._pace.left(self._remaining_work, now), now
                self._end_time = None if seconds_left is None else now + seconds_left

    def fault(self, what: str, **more: Any) -> None:
        """Report that something was lost, and is made again."""
        self._emit({"event": "fault", "what": what, **more})

    def relay(self, event: Event) -> None:
        """Take over an event of this run from the process in which it continues."""
        stage, done, total, kind = event["stage"], event["done"], event["total"], event["event"]
        if stage == RUN:
            self._relay_run(event)
            return
        predecessor = self._remote_event
        self._remote_event, self._remote_time = event, self._clock()
        is_repeat = predecessor is not None and (predecessor["stage"], predecessor["done"]) == (stage, done)
        if self._callback is not None and not is_repeat and not (kind == "ended" and total == 1):
            self._callback(stage, done, total)
        for listener in self._listeners.values():
            listener(event)

    def _relay_run(self, event: Event) -> None:
        """Pass on, once, that the run has begun, and that it ended with a result; `close` reports errors in full."""
        is_begin = event["event"] == "begun"
        if (is_begin and self._has_begun) or "error" in event:
            return
        self._has_begun, self._is_over = True, self._is_over or not is_begin
        for listener in self._listeners.values():
            listener(event)

    def end_stages(self) -> None:
        """End all stages, because the run continues in another process."""
        for stage in self._open_stages():
            self._end(stage)

    def resume(self) -> None:
        """Continue the run here, after the process that had begun it."""
        self._has_begun, self._remote_event = True, None

    def close(self, error: str | None = None, **result: Any) -> None:
        """End the run, with its result or its error."""
        if self._has_begun and not self._is_over:
            self._is_over = True
            if error is None:
                self.end_stages()
            fields = {"event": "ended"} | (result if error is None else {"error": error})
            self._current = None
            self._emit({"stage": RUN, "done": int(error is None), **fields})
            for listener in self._listeners.values():
                if flush := getattr(listener, "flush", None):
                    flush()

    # listeners

    def listen(self, key: Any, listener: Listener) -> None:
        """Call a listener with every event from now on, unless there is one under the same key."""
        self._listeners.setdefault(key, listener)

    @property
    def has_callback(self) -> bool:
        """Whether a callable is told of every step."""
        return self._callback is not None

    @property
    def has_listeners(self) -> bool:
        """Whether there are any listeners."""
        return bool(self._listeners)

    def now(self) -> Event:
        """Describe the current state as an event of progress; {} before the run has begun."""
        if self._remote_event is not None:
            elapsed = self._clock() - self._remote_time
            seconds_left = self._remote_event["left"]
            return self._remote_event | {
                "seconds": self._remote_event["seconds"] + elapsed,
                "left": None if seconds_left is None else max(0.0, seconds_left - elapsed),
            }
        if (stage := self._current) is None:
            return {}
        event: Event = {
            "stage": stage.name,
            "event": "progress",
            "done": stage.done,
            "total": stage.total,
            "share": stage.share,
            "left": self.left(),
        }
        if stage.bytes:
            event |= {"bytes": round(stage.share * stage.bytes), "bytes_total": stage.bytes}
        return self._base() | event | stage.more

    def left(self) -> float | None:
        """Seconds until counting ends; None before its first task has ended, and in other stages."""
        stage = next(iter(self._open_stages()), self._current)
        counts = stage is not None and stage.name == "count"
        return max(0.0, self._end_time - self._clock()) if counts and self._end_time is not None else None

    # implementation

    def _base(self) -> Event:
        return {"run": self.name, "seconds": round(self._clock() - self._began, 3)}

    def _open_stages(self) -> list[Stage]:
        return [stage for stage in list(self._stages.values()) if stage.ended is None]  # a bar's thread asks, too

    def _stage(self, name: str, total: int) -> Stage:
        """The stage of this name; it begins now if it is not under way."""
        state = self._stages.get(name)
        if state is not None and state.ended is None:
            return state
        stage = Stage(name, self._clock(), total=total)
        stage.bytes = self.source_bytes if name == "read" else 0
        return self._begin(name, stage)

    def _begin(self, name: str, stage: Stage) -> Stage:
        """Begin a stage; the others end, except those whose tasks a cluster may still run."""
        for open_stage in self._open_stages():
            if not (self.ahead and open_stage.name in SUBMITTED_AHEAD and name in PREPARING):
                self._end(open_stage)
        if not self._has_begun:
            self._has_begun = True
            self._emit({"stage": RUN, "event": "begun", **self.facts})
        self._stages.pop(name, None)  # a stage that begins again is the latest
        self._current = self._stages[name] = stage
        event = self.now() | {"event": "begun"}
        self._current = self._open_stages()[0]  # among those submitted ahead, the one that the others wait for
        self._event_time = self._clock()
        self._emit(event)
        return stage

    def _end(self, stage: Stage) -> None:
        stage.ended, stage.done, stage.share = self._clock(), stage.total, 1.0
        self._current = stage
        # A stage whose tasks are submitted ahead begins when those before it have ended.
        predecessors = STAGES[: STAGES.index(stage.name)] if stage.name in STAGES else ()
        ends = [self._stages[name].ended or 0.0 for name in predecessors if name in self._stages]
        start = min(max([stage.began, *ends]), stage.ended)
        self._emit(self.now() | {"event": "ended", "took": round(stage.ended - start, 3)})

    def _changed(self) -> None:
        if self._clock() - self._event_time >= EVENT_SECONDS:
            self._event_time = self._clock()
            self._emit(self.now())

    def _emit(self, event: Event) -> None:
        stage = self._current
        place = {"stage": stage.name, "done": stage.done, "total": stage.total} if stage else {"stage": RUN}
        event = self._base() | {"done": 0, "total": 1, "left": None} | place | event
        for listener in self._listeners.values():
            listener(event)

    @contextmanager
    def watching(self, executor: Watched) -> Iterator[None]:
        """Have an executor report its calls to this tracker; without listeners nothing is done."""
        if not self._listeners:
            yield
            return
        former_tracker, executor.tracker = executor.tracker, self
        try:
            yield
        finally:
            executor.tracker = former_tracker


def tracker_of(progress: Progress | None) -> Tracker:
    """Return a tracker as it is; wrap a callable in one that calls it for every step."""
    return progress if isinstance(progress, Tracker) else Tracker(progress)


def words_of(stage: str) -> Words:
    """Words for a stage; a stage without any has its name and no sentence."""
    return WORDS.get(stage, Words(stage, ""))


def clock_time(seconds: float) -> str:
    """Minutes and seconds, or hours too, as a clock shows them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
