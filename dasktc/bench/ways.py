"""Counts from files to the number by one thread, all threads, one worker process and two, in turns.

All clusters are up all the time, so that other load of the machine affects all counts of a turn alike. Two processes
that each count the whole graph at the same time, with one thread, show what the machine gives two processes that send
each other nothing.
"""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from dasktc.errors import CountError
from dasktc.executors.dask.executor import DaskExecutor

if TYPE_CHECKING:
    from dasktc.executors.base import Executor

__all__ = ["HALVES", "Way", "in_ways"]

HALVES = "two processes, half"


class Way(NamedTuple):
    """Measurements of a count from files to the number, in one way of running it."""

    triangles: int
    wall: float
    cpu: float
    """Wall seconds, and CPU seconds of this process and all workers; of two processes that count the whole graph each,
    half of them."""


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
    from dasktc.backends.host_threads import allowed_threads
    from dasktc.executors.connect import connect
    from dasktc.executors.place import Place

    threads = allowed_threads()
    places = {
        "one thread": Place(threads=1),
        **({f"{threads} threads": Place(threads=threads)} if threads > 1 else {}),
        "one worker": Place(workers=1),
        "two workers": Place(workers=2),
    }
    with ExitStack() as stack:
        executors = {name: stack.enter_context(connect(place)) for name, place in places.items()}
        pair = stack.enter_context(ProcessPoolExecutor(2, multiprocessing.get_context("spawn")))
        rounds = [
            {name: _count(executors[name], path) for name in places} | {HALVES: _halves(pair, path)}
            for _ in range(1 + turns)
        ]
    return {name: [turn[name] for turn in rounds[1:]] for name in rounds[0]}  # the first turn imports and compiles


def _count(executor: Executor, path: str) -> Way:
    """Count as users do: by tasks on workers, or in one call on one of them, whichever is predicted to be faster."""
    from dasktc.api.count import triangle_count

    start, spent = time.perf_counter(), _cpu(executor)
    place: dict[str, Any] = {"threads": len(executor.worker_threads)}
    if isinstance(executor, DaskExecutor):
        place = {"client": executor.client}
    triangles = triangle_count(path, backend="cpu", **place).triangles
    return Way(triangles, time.perf_counter() - start, _cpu(executor) - spent)


def _halves(pair: ProcessPoolExecutor, path: str) -> Way:
    """Count in two processes at the same time; return half of the seconds until both have ended, and of their CPU."""
    start = time.perf_counter()
    counts = [pair.submit(_count_alone, path) for _ in range(2)]
    (triangles, cpu), (again, more) = (count.result() for count in counts)
    wall = time.perf_counter() - start
    if triangles != again:
        raise CountError(f"of two processes one counts {triangles:,} triangles, the other {again:,}: report this")
    return Way(triangles, wall / 2, (cpu + more) / 2)


def _count_alone(path: str) -> tuple[int, float]:
    """Count with one thread of this process; return the triangles and the CPU seconds."""
    from dasktc.api.count import triangle_count

    spent = time.process_time()
    return triangle_count(path, backend="cpu", threads=1).triangles, time.process_time() - spent


def _cpu(executor: Executor) -> float:
    """CPU seconds of this process and of the workers so far."""
    workers: list[float] = executor.run_on_workers(time.process_time) if isinstance(executor, DaskExecutor) else []
    return time.process_time() + sum(workers)
