"""What Dask takes: a count of more than ten seconds on real workers, and what of their time was not in tasks.

Overhead is the wall time of the count phase times workers, less the wall time within the tasks as the workers noted
it: sending, fetching blocks, waiting for the next task, and the end, when one worker has nothing left to do. The
scheduler's time is CPU time of its thread, which is the client's connections' as well.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from dasktc.bench.report import Section
from dasktc.bench.scaled import Recipe
from dasktc.errors import CountError
from dasktc.options import Options

__all__ = ["Overhead", "measure", "section"]

SCALE, QUICK, PARTS = 19, 13, (6, 9)
"""Of the Kronecker graph for one worker, one more for twice as many; n: 216 tasks, and 729: Dask notes 1,000."""
KERNEL = "merge"
"""Slow enough for more than ten seconds."""


class Overhead(NamedTuple):
    """A count on real workers of one thread each.

    Attributes
    ----------
    workers, parts, tasks : int
    seconds : float
        Wall time of the count.
    within : float
        Wall seconds within tasks, of all workers together.
    scheduler : float
        CPU seconds of the scheduler's thread.
    """

    workers: int
    parts: int
    tasks: int
    seconds: float
    within: float
    scheduler: float

    @property
    def outside(self) -> float:
        """Seconds of all workers that were not in tasks."""
        return self.workers * self.seconds - self.within

    @property
    def share(self) -> float:
        """Of the workers' time, that which was not in tasks."""
        return self.outside / (self.workers * self.seconds)


def measure(workers: int, quick: bool) -> list[Overhead]:
    """Count with fewer tasks and with more.

    Parameters
    ----------
    workers : int
    quick : bool
        A small graph: whether it works.
    """
    from dasktc.cluster import connect
    from dasktc.triangles import build

    recipe = Recipe("kronecker", (_scale(workers, quick),))
    with connect(workers=workers) as tasks:
        options = Options(backend="cpu", kernel=KERNEL, partition="hash2d", splits=1)
        build(tasks, Recipe("kronecker", (8,)).source(), options).triangle_count()  # compiles
        return [_measured(tasks, recipe, Options(**{**vars(options), "parts": parts})) for parts in PARTS]


def _scale(workers: int, quick: bool) -> int:
    return (QUICK if quick else SCALE) + (workers - 1).bit_length()


def _measured(tasks: Any, recipe: Recipe, options: Options) -> Overhead:
    from distributed import get_task_stream

    from dasktc.triangles import build

    graph = build(tasks, recipe.source(), options)
    with get_task_stream(tasks.client) as stream:
        began = tasks.client.run_on_scheduler(_thread_seconds)
        result = graph.triangle_count()
        ended = tasks.client.run_on_scheduler(_thread_seconds)
    noted = [task["startstops"] for task in stream.data if str(task["key"]).startswith("('count-")]
    if len(noted) != result.plan.tasks:
        raise CountError(
            f"{len(noted):,} of {result.plan.tasks:,} tasks were noted by Dask: its "
            "distributed.scheduler.dashboard.status.task-stream-length is too small; set it higher"
        )
    within = sum(at["stop"] - at["start"] for times in noted for at in times if at["action"] == "compute")
    return Overhead(
        tasks.workers, result.plan.parts, len(noted), result.seconds["count"], float(within), float(ended - began)
    )


def _thread_seconds() -> float:
    return time.thread_time()


def section(found: list[Overhead], quick: bool) -> Section:
    """The table."""
    columns = {"workers": "d", "n": "d", "tasks": ",d", "count s": ".2f", "in tasks s": ".2f"}
    columns |= {"outside, ms a task": ".2f", "outside": ".1%", "scheduler, ms a task": ".2f"}
    scale = _scale(found[0].workers, quick)
    table = Section(f"Dask's overhead: Kronecker {scale}, kernel {KERNEL}, counted once", columns)
    for of in found:
        each = (1e3 * of.outside / of.tasks, of.share, 1e3 * of.scheduler / of.tasks)
        table.rows.append([of.workers, of.parts, of.tasks, of.seconds, of.within, *each])
    table.notes += [
        "outside: count s times workers less the seconds within tasks, as workers noted them: messages, blocks that "
        "come, waiting, and the end, when a worker has nothing left; wall time on this machine and under its load",
        "scheduler: CPU time of its thread, which serves the client's and the workers' connections too: where workers "
        "leave no core for it, that is taken from them",
    ]
    return table
