"""Simulates the schedule of counting tasks on workers: which worker runs which task, and when all are done.

The scheduler hands out tasks one after another, `overhead` seconds each, to workers in the order in which they ask. A
worker asks at the start and whenever it has finished a task. It gets the next task of its own share; when that is used
up, the last one of the share with most left (`placement.Shares`, by which `Executor.map_unordered` also deals tasks).
It then fetches those of the task's blocks that it does not have, one after another, keeps them while they fit, and
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
    """The blocks that tasks need, and the network that transfers them."""

    needs: Sequence[tuple[int, ...]]
    """Numbers of the blocks of each task."""
    block_bytes: Sequence[float]
    rate: float
    """Bytes per second that a worker receives; every worker has a link of its own."""
    homes: Sequence[int]
    """The worker that built each block."""
    capacity: float = inf
    """Bytes that a worker has for copies of blocks that others built."""

    def copies(self, workers: int) -> list[ReplicaCache]:
        """The workers' replica caches before the count: each holds the blocks that its worker built."""
        blocks: list[list[int]] = [[] for _ in range(workers)]
        for block, worker in enumerate(self.homes):
            blocks[worker].append(block)
        return [ReplicaCache(self.block_bytes, numbers, self.capacity) for numbers in blocks]


@dataclass(frozen=True)
class Simulation:
    """Result of a simulation."""

    seconds: float
    """Time at which the last task has ended."""
    busy: list[float]
    """Seconds of counting alone, by worker."""
    received: list[float]
    """Bytes received, by worker."""
    ran: list[int] = field(repr=False)
    """The worker of each task."""

    @property
    def kernel(self) -> float:
        """Counting seconds of the busiest worker."""
        return max(self.busy)

    @property
    def time_imbalance(self) -> float | None:
        """Counting seconds of the busiest worker over those of the least busy one (TRUST, table 6); None for x / 0."""
        return max(self.busy) / min(self.busy) if min(self.busy) else None


def simulate(
    costs: Sequence[float],
    workers: int,
    overhead: float = 0.0,
    fetches: Fetches | None = None,
    start: float = 0.0,
) -> Simulation:
    """Simulate the schedule of tasks on workers.

    Parameters
    ----------
    costs : sequence of float
        Seconds of each task, in the order of `count.jobs`.
    workers : int
    overhead : float
        Seconds of the scheduler per task.
    fetches : Fetches, optional
        Default: every worker has all blocks.
    start : float
        Seconds before the first task is handed out.
    """
    queue = Shares(dict(enumerate(shares(len(costs), workers))))
    copies = [] if fetches is None else fetches.copies(workers)
    busy, received, ran = [0.0] * workers, [0.0] * workers, [0] * len(costs)
    asking = [(start, worker) for worker in range(workers)]
    free = finish = start
    while asking:
        request, worker = heapq.heappop(asking)
        task = queue.take(worker)
        if task is None:
            break
        free = max(request, free) + overhead
        fetched = _fetch(copies[worker], task, fetches) if fetches else 0.0
        end = free + (fetched / fetches.rate if fetches else 0.0) + costs[task]
        busy[worker] += costs[task]
        received[worker] += fetched
        ran[task] = worker
        finish = max(finish, end)
        heapq.heappush(asking, (end, worker))
    return Simulation(finish, busy, received, ran)


def _fetch(copies: ReplicaCache, task: int, fetches: Fetches) -> float:
    """Bytes that a worker receives for a task."""
    come, _ = copies.take(fetches.needs[task])
    copies.give_back(fetches.needs[task])
    return float(sum(fetches.block_bytes[block] for block in sorted(come)))
