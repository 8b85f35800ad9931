"""Progress of counting tasks: the planned work of each, and totals of those that have ended."""

from __future__ import annotations

from collections import defaultdict

from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import Job, Record
from dasktc.executors.progress.tracker import Event, Tracker
from dasktc.planning.cost_model import work_of_triples

__all__ = ["Meter"]


class Meter:
    """Reports counting tasks to a tracker: the planned work, and the work done by each finished task.

    It is made with all tasks, and the records of those that had ended before.
    """

    def __init__(self, graph: CountingContext, work: list[Job], records: list[Record], tracker: Tracker) -> None:
        self._tracker, self._graph = tracker, graph
        self._workers: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0, 0.0])
        self._triangles = self._probes = self._wedges = self._tasks = 0
        if not tracker.has_listeners:
            return
        plan = graph.plan
        amounts = work_of_triples(plan, graph.prepared.sizes)
        self._triples = dict(zip(plan.triples(), amounts, strict=True))
        for record in records:
            self._add(record)
        resumed_work = sum(self._work(record.job) for record in records)
        plan_fields = ("partition", "parts", "splits", "tasks", "bytes_per_task", "bytes_total", "memory", "workers")
        facts: Event = {
            "plan": {
                **{name: getattr(plan, name) for name in (*plan_fields, "vertices", "edges")},
                "wedges": graph.prepared.wedges,
                "kernel": graph.options.chosen_kernel,
                "backend": graph.options.chosen_backend,
                "resumed": len(records),
            }
        }
        total_work = sum(map(self._work, work))
        threads, tasks = len(graph.executor.worker_threads), (len(records), len(work))
        tracker.planned(threads, tasks, total_work, resumed_work, facts | self._event_fields)

    def counted(self, record: Record) -> None:
        """Report a task that has ended."""
        if self._tracker.has_listeners:
            self._add(record)
            job, count = record.job, record.count
            threads = len(self._graph.executor.worker_threads)
            self._tracker.counted(record.worker, self._work(job), count.seconds, self._event_fields, threads)

    def _work(self, job: Job) -> float:
        """Return the planned work of a task, an equal share of its triple's work."""
        return self._triples[job.triple] / job.splits

    def _add(self, record: Record) -> None:
        count, totals = record.count, self._workers[record.worker]
        self._tasks += 1
        self._triangles += count.triangles
        self._probes += count.probes
        self._wedges += count.wedges
        totals[:] = totals[0] + 1, totals[1] + count.probes, totals[2] + count.triangles, totals[3] + count.seconds

    @property
    def _event_fields(self) -> Event:
        """Return the fields of events about the finished tasks."""
        return {
            "triangles": self._triangles,
            "probes": self._probes,
            "wedges": self._wedges,
            "workers": {worker: list(totals) for worker, totals in self._workers.items()},
        }
