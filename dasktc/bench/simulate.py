"""Counting tasks on workers that are not there: who would run which, and when all would be done.

The scheduler hands tasks out one after another, `overhead` seconds each, to workers in the order in which they ask.
A worker asks at the start and whenever it has finished a task. It gets the next task of its own share; when that is
used up, the last one of the share with most left (`dealing.Shares`, with which `Tasks.each` deals them out too). It
then fetches the task's blocks that it has not got, one after another, keeps them while they fit, and counts.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Fetches", "Simulation", "shares", "simulate"]


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
    """

    needs: Sequence[tuple[int, ...]]
    block_bytes: Sequence[float]
    rate: float


@dataclass(frozen=True)
class Simulation:
    """What would have happened.

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


def shares(tasks: int, workers: int) -> list[range]:
    """The tasks of each worker's share: task t of N is for worker t·W // N.

    Parameters
    ----------
    tasks, workers : int
    """
    begins = [-(-worker * tasks // workers) for worker in range(workers + 1)]
    return [range(begins[worker], begins[worker + 1]) for worker in range(workers)]


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
        Default: every worker has all blocks. With it block k is on worker k % W at first.
    start : float
        Seconds before the first task is handed out.
    """
    left = [deque(share) for share in shares(len(costs), workers)]
    held: list[set[int]] = [set() for _ in range(workers)]
    for block in range(0 if fetches is None else len(fetches.block_bytes)):
        held[block % workers].add(block)
    busy, received, ran = [0.0] * workers, [0.0] * workers, [0] * len(costs)
    asking = [(start, worker) for worker in range(workers)]
    free = ended = start
    while asking:
        asked, worker = heapq.heappop(asking)
        task = _next(left, worker)
        if task is None:
            break
        free = max(asked, free) + overhead
        fetched = _fetch(held[worker], task, fetches)
        done = free + (fetched / fetches.rate if fetches else 0.0) + costs[task]
        busy[worker] += costs[task]
        received[worker] += fetched
        ran[task] = worker
        ended = max(ended, done)
        heapq.heappush(asking, (done, worker))
    return Simulation(ended, busy, received, ran)


def _next(left: list[deque[int]], worker: int) -> int | None:
    """Take the task that a worker gets."""
    if left[worker]:
        return left[worker].popleft()
    longest = max(left, key=len)
    return longest.pop() if longest else None


def _fetch(held: set[int], task: int, fetches: Fetches | None) -> float:
    """Add a task's blocks to those that its worker has; return the bytes that came."""
    if fetches is None:
        return 0.0
    missing = set(fetches.needs[task]) - held
    held |= missing
    return sum(fetches.block_bytes[block] for block in sorted(missing))
