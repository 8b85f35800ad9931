"""Counts from files to the number by one thread, all threads, one worker process and two, in turns.

All clusters are up all the time, so that other load of the machine affects all counts of a turn alike.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dasktc.executors.base import Executor

__all__ = ["Way", "in_ways"]


class Way(NamedTuple):
    """Measurements of a count from files to the number, in one way of running it.

    Attributes
    ----------
    triangles : int
    wall, cpu : float
        Wall seconds, and CPU seconds of this process and all workers.
    """

    triangles: int
    wall: float
    cpu: float


def in_ways(path: str, turns: int) -> dict[str, list[Way]]:
    """Count files in each way, in turns, after a warm-up of each.

    Parameters
    ----------
    path : str
    turns : int

    Returns
    -------
    dict of str to list of Way
        One entry per turn.
    """
    from dasktc.executors.connect import connect
    from dasktc.executors.threads import allowed_threads
    from dasktc.options import RunOptions

    threads = allowed_threads()
    runs = {
        "one thread": RunOptions(threads=1),
        **({f"{threads} threads": RunOptions(threads=threads)} if threads > 1 else {}),
        "one worker": RunOptions(workers=1),
        "two workers": RunOptions(workers=2),
    }
    with ExitStack() as stack:
        executors = {name: stack.enter_context(connect(run)) for name, run in runs.items()}
        measured = [{name: _count(executors[name], path) for name in runs} for _ in range(1 + turns)]
    return {name: [turn[name] for turn in measured[1:]] for name in runs}  # the first turn imports and compiles


def _count(executor: Executor, path: str) -> Way:
    """Count as users do: by tasks on workers, or in one call on one of them, whichever is predicted to be faster."""
    from dasktc.api.count import triangle_count

    began, spent = time.perf_counter(), _cpu(executor)
    where: dict[str, Any] = {"threads": executor.workers}
    if executor.distributed:
        where = {"client": executor.client}  # type: ignore[attr-defined]
    triangles = triangle_count(path, backend="cpu", **where).triangles
    return Way(triangles, time.perf_counter() - began, _cpu(executor) - spent)


def _cpu(executor: Executor) -> float:
    """CPU seconds of this process and of the workers so far."""
    workers: list[float] = executor.run_on_workers(time.process_time) if executor.distributed else []
    return time.process_time() + sum(workers)
