"""Simulates the schedule of counting tasks on workers: who runs which, and when all are done.

The scheduler hands tasks out one after another, `overhead` seconds each, to workers in the order in which they ask.
A worker asks at the start and whenever it has finished a task. It gets the next task of its own share; when that is
used up, the last one of the share with most left (`placement.Shares`, by which `Executor.map_unordered` deals them
out too). It then fetches the task's blocks that it has not got, one after another, keeps them while they fit, and
counts.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from dasktc.planning.placement import ReplicaCache, Shares, shares

__all__ = ["Fetches", "Simulation", "simulate"]


@dataclass(frozen=True)
class Fetches:
    """The blocks that tasks need, and how they travel.

    Attributes
    ----------
    needs : sequence of tuple of int
        Numbers of the blocks of each task.
    block_bytes : sequence of float
    rate : float
        Bytes that a worker receives in a second; every worker has a link of its own.
    homes : sequence of int
        The worker that built each block.
    capacity : float
        Bytes that a worker has for copies of blocks that others built.
    """

    needs: Sequence[tuple[int, ...]]
    block_bytes: Sequence[float]
    rate: float
    homes: Sequence[int]
    capacity: float = inf

    def copies(self, workers: int) -> list[ReplicaCache]:
        """The workers' replica caches before counting: each holds the blocks that its worker built."""
        built: list[list[int]] = [[] for _ in range(workers)]
        for block, worker in enumerate(self.homes):
            built[worker].append(block)
        return [ReplicaCache(self.block_bytes, own, self.capacity) for own in built]


@dataclass(frozen=True)
class Simulation:
    """The outcome of a simulation.

    Attributes
    ----------
    seconds : float
        Until the last task has ended.
    busy : list of float
        Seconds of counting alone, a worker each.
    received : list of float
        Bytes, a worker each.
    ran : list of int
        The worker of each task.
    """

    seconds: float
    busy: list[float]
    received: list[float]
    ran: list[int] = field(repr=False)

    @property
    def kernel(self) -> float:
        """Counting seconds of the busiest worker."""
        return max(self.busy)

    @property
    def time_imbalance(self) -> float | None:
        """Counting seconds of the busiest over those of the least busy worker (TRUST, table 6); None for x / 0."""
        return max(self.busy) / min(self.busy) if min(self.busy) else None


def simulate(
    costs: Sequence[float],
    workers: int,
    overhead: float = 0.0,
    fetches: Fetches | None = None,
    start: float = 0.0,
) -> Simulation:
    """Schedule tasks on workers.

    Parameters
    ----------
    costs : sequence of float
        Seconds of each task, in the order of `count.jobs`.
    workers : int
    overhead : float
        Seconds that the scheduler takes for a task.
    fetches : Fetches, optional
        Default: every worker has all blocks.
    start : float
        Seconds before the first task is handed out.
    """
    left = Shares(dict(enumerate(shares(len(costs), workers))))
    copies = [] if fetches is None else fetches.copies(workers)
    busy, received, ran = [0.0] * workers, [0.0] * workers, [0] * len(costs)
    asking = [(start, worker) for worker in range(workers)]
    free = ended = start
    while asking:
        asked, worker = heapq.heappop(asking)
        task = left.take(worker)
        if task is None:
            break
        free = max(asked, free) + overhead
        fetched = _fetch(copies[worker], task, fetches) if fetches else 0.0
        done = free + (fetched / fetches.rate if fetches else 0.0) + costs[task]
        busy[worker] += costs[task]
        received[worker] += fetched
        ran[task] = worker
        ended = max(ended, done)
        heapq.heappush(asking, (done, worker))
    return Simulation(ended, busy, received, ran)


def _fetch(copies: ReplicaCache, task: int, fetches: Fetches) -> float:
    """Bytes that come for a task."""
    come, _ = copies.take(fetches.needs[task])
    copies.give_back(fetches.needs[task])
    return float(sum(fetches.block_bytes[block] for block in sorted(come)))
