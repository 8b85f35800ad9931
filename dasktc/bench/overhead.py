"""Measures Dask's overhead: the share of workers' time outside tasks, in a count of more than ten seconds.

The overhead is the wall time of the count phase times workers, less the wall time within tasks as recorded by the
workers: sending, fetching blocks, waiting for the next task, and the end, when one worker has nothing left to do. Time
between a worker's task and its next one is Dask's alone. The scheduler's time is CPU time of its thread, which also
serves the client's connections.
"""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import pairwise
from typing import Any, NamedTuple

from dasktc.bench.report import CPU, EXACT, Section
from dasktc.errors import CountError
from dasktc.executors.place import Place
from dasktc.io.generators.synthetic import kronecker
from dasktc.io.source import Source
from dasktc.options import Options

__all__ = ["Overhead", "measure", "section"]

SCALE, QUICK, PARTS = 19, 13, (6, 9)
"""Scale of the Kronecker graph for one worker (one more for twice as many), the same with `quick`; and n: 216 and 729
tasks, because Dask records 1,000."""
KERNEL = "merge"
"""A kernel slow enough for more than ten seconds."""

TIMES = ("count s", "in tasks s", "between tasks, ms", "outside, ms a task", "scheduler, ms a task")
LIMITS = {"tasks": EXACT, **dict.fromkeys(TIMES, CPU)}


class Overhead(NamedTuple):
    """Measurements of a count on real workers of one thread each."""

    workers: int
    parts: int
    tasks: int
    seconds: float
    """Wall time of the count."""
    within: float
    """Wall seconds within tasks, over all workers."""
    between: float
    """Wall seconds between each task of a worker and its next."""
    scheduler: float
    """CPU seconds of the scheduler's thread."""

    @property
    def outside(self) -> float:
        """Seconds of all workers outside tasks."""
        return self.workers * self.seconds - self.within

    @property
    def share(self) -> float:
        """Share of the workers' time outside tasks."""
        return self.outside / (self.workers * self.seconds)


def measure(workers: int, quick: bool) -> list[Overhead]:
    """Measure counts with fewer and with more tasks.

    Parameters
    ----------
    workers : int
    quick : bool
        Use a small graph, to see whether everything works.
    """
    from dasktc.api.count import build
    from dasktc.executors.connect import connect

    source = kronecker(_scale(workers, quick))
    with connect(Place(workers=workers)) as tasks:
        options = Options(backend="cpu", kernel=KERNEL, partition="hash2d", splits=1)
        build(tasks, kronecker(8), options).triangle_count()  # compiles
        return [_measured(tasks, source, Options(**{**vars(options), "parts": parts})) for parts in PARTS]


def _scale(workers: int, quick: bool) -> int:
    return (QUICK if quick else SCALE) + (workers - 1).bit_length()


def _measured(tasks: Any, source: Source, options: Options) -> Overhead:
    from distributed import get_task_stream

    from dasktc.api.count import build

    graph = build(tasks, source, options)
    with get_task_stream(tasks.client) as stream:
        start = tasks.client.run_on_scheduler(_thread_seconds)
        result = graph.triangle_count()
        end = tasks.client.run_on_scheduler(_thread_seconds)
    records = [task for task in stream.data if str(task["key"]).lstrip("('").startswith("count-")]
    if len(records) != result.plan.tasks:
        raise CountError(
            f"{len(records):,} of {result.plan.tasks:,} tasks were noted by Dask: its "
            "distributed.scheduler.dashboard.status.task-stream-length is too small; set it higher"
        )
    within, between = _spent(records)
    seconds = result.seconds["count"]
    return Overhead(
        len(tasks.worker_threads), result.plan.parts, len(records), seconds, within, between, float(end - start)
    )


def _spent(records: list[dict[str, Any]]) -> tuple[float, float]:
    """Seconds within tasks, and seconds between each task and the next one in the same thread."""
    threads: dict[tuple[Any, Any], list[tuple[float, float]]] = defaultdict(list)
    for task in records:
        for interval in task["startstops"]:
            if interval["action"] == "compute":
                threads[task["worker"], task["thread"]].append((interval["start"], interval["stop"]))
    within = sum(stop - start for times in threads.values() for start, stop in times)
    between = sum(
        max(0.0, start - stop) for times in threads.values() for (_, stop), (start, _) in pairwise(sorted(times))
    )
    return float(within), float(between)


def _thread_seconds() -> float:
    return time.thread_time()


def section(overheads: list[Overhead], quick: bool) -> Section:
    """Format the table."""
    columns = {"workers": "d", "n": "d", "tasks": ",d", "count s": ".2f", "in tasks s": ".2f"}
    columns |= {
        "between tasks, ms": ".2f",
        "outside, ms a task": ".2f",
        "outside": ".1%",
        "scheduler, ms a task": ".2f",
    }
    scale = _scale(overheads[0].workers, quick)
    table = Section(
        f"Dask's overhead: Kronecker {scale}, kernel {KERNEL}, counted once", columns, limits=LIMITS, keys=2
    )
    for run in overheads:
        between = 1e3 * run.between / max(1, run.tasks - run.workers)
        shares = (between, 1e3 * run.outside / run.tasks, run.share, 1e3 * run.scheduler / run.tasks)
        table.rows.append([run.workers, run.parts, run.tasks, run.seconds, run.within, *shares])
    table.notes += [
        "between tasks: mean of the time after a worker's task until its next",
        "outside: count s times workers less the seconds within tasks, as workers noted them: messages, blocks that "
        "come, waiting, and the end, when a worker has nothing left; wall time on this machine and under its load",
        "scheduler: CPU time of its thread, which serves the client's and the workers' connections too: where workers "
        "leave no core for it, that is taken from them",
    ]
    return table
