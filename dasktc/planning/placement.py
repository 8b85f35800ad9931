"""Placement: which worker counts which tasks, and which worker builds which blocks.

Of N tasks, in the order of `counting.tasks.jobs`, task t goes to thread t·S // N of the workers' S threads, so that
neighbouring tasks, which share blocks, stay together. A worker needs the blocks of its threads' tasks. One of the
workers that need a block builds it, and the others receive it, so the traffic is known before anything runs:

    Σ over blocks (workers that need it - 1) · bytes

A block that all workers need, the whole graph, is built in slabs, one per thread, and every worker stacks its own copy
from these: the same number of bytes in total, but from all workers to all at once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dasktc.planning.plan import Plan
    from dasktc.planning.schemes import Block, Sizes

__all__ = [
    "NOWHERE", "ONE_PARTITION", "ReplicaCache", "Shares", "Where", "builders", "homes", "needed", "numbered", "shares",
]  # fmt: skip

Array = np.ndarray[Any, np.dtype[np.int64]]
Where = Mapping[tuple[int, int], str]
"""Name of the worker that builds each block."""
NOWHERE: Where = {}
ONE_PARTITION = 1 << 18
"""Fewer edges than this make one partition, and one slab, whatever the workers."""


def shares(tasks: int, worker_threads: int) -> list[range]:
    """Assign a contiguous range of a plan's tasks to each worker thread."""
    starts = [-(-thread * tasks // worker_threads) for thread in range(worker_threads + 1)]
    return [range(starts[thread], starts[thread + 1]) for thread in range(worker_threads)]


def needed(triples: Array, splits: int, worker_threads: Array) -> tuple[Array, Array]:
    """Pairs of a worker with tasks and a block that these need, each pair once, worker by worker.

    Parameters
    ----------
    triples : array of int64, shape (triples, 3)
        Numbers of each triple's three blocks.
    splits : int
        Tasks per triple.
    worker_threads : array of int64
        Number of the worker that each thread belongs to.

    Returns
    -------
    worker, block : arrays of int64
    """
    tasks, number = len(triples) * splits, len(worker_threads)
    threads = np.arange(number, dtype="int64")
    begin, end = (-(-bound * tasks // number) for bound in (threads, threads + 1))
    threads = threads[begin < end]
    first, last = begin[threads] // splits, (end[threads] - 1) // splits
    counts = last - first + 1
    offsets = np.cumsum(counts) - counts
    worker = worker_threads[np.repeat(threads, counts)]
    triple = np.arange(len(worker)) - np.repeat(offsets - first, counts)
    blocks = 1 + int(triples.max(initial=0))
    pairs = np.unique((worker[:, None] * blocks + triples[triple]).ravel())
    return pairs // blocks, pairs % blocks


def homes(worker: Array, block: Array, block_bytes: Array) -> Array:
    """Choose the worker that builds each block: largest blocks first, the worker that needs it and has least to build.

    Parameters
    ----------
    worker, block : arrays of int64
        As `needed` returns them.
    block_bytes : array, shape (blocks,)

    Returns
    -------
    array of int64, shape (blocks,)
        -1 where no worker needs the block.
    """
    home = np.full(len(block_bytes), -1, dtype="int64")
    place = np.argsort(block, kind="stable")
    holders, starts = worker[place], np.searchsorted(block[place], np.arange(len(block_bytes) + 1))
    loads = np.zeros(1 + int(worker.max(initial=0)))
    for number in np.argsort(-np.asarray(block_bytes), kind="stable"):
        candidates = holders[starts[number] : starts[number + 1]]
        if len(candidates):
            home[number] = candidates[loads[candidates].argmin()]
            loads[home[number]] += block_bytes[number]
    return home


def numbered(plan: Plan) -> tuple[list[Block], Array]:
    """Number the blocks that a plan's tasks need; return the blocks, and the triples as numbers, shape (.., 3)."""
    columns = plan.scheme.columns(plan.parts)
    places, number = np.unique(plan.scheduled, return_inverse=True)
    return [divmod(place, columns) for place in places.tolist()], number.reshape(-1, 3)


def builders(plan: Plan, sizes: Sizes, worker_threads: Sequence[str]) -> Where:
    """Choose the worker that should build each block; empty where there are fewer than two workers.

    The sizes are those of the plan's blocks; `worker_threads` has the name of the worker of each thread.
    """
    if len(set(worker_threads)) < 2:
        return NOWHERE
    workers, thread_numbers = np.unique(np.array(worker_threads), return_inverse=True)
    blocks, triples = numbered(plan)
    block_bytes = plan.scheme.block_bytes(sizes)
    home = homes(*needed(triples, plan.splits, thread_numbers), np.array([block_bytes[place] for place in blocks]))
    return {place: str(workers[worker]) for place, worker in zip(blocks, home.tolist(), strict=True)}


class Shares:
    """The remaining tasks of each worker's share.

    A worker takes its own tasks in order; then it takes the last task of the share with most left.
    """

    def __init__(self, tasks_of: Mapping[Any, Iterable[int]]) -> None:
        self._left = {worker: deque(tasks) for worker, tasks in tasks_of.items()}
        self._number = sum(map(len, self._left.values()))

    def __len__(self) -> int:
        return self._number

    def take(self, worker: Any, fits: Callable[[int], bool] = lambda task: True) -> int | None:
        """Remove and return a worker's next task; None if there is none, or if it does not fit."""
        if not self._number:
            return None
        queue = self._left.get(worker)
        source = queue or max(self._left.values(), key=len)
        if not fits(source[0 if queue else -1]):
            return None
        self._number -= 1
        return source.popleft() if queue else source.pop()


class ReplicaCache:
    """An LRU cache of the copies of blocks that a worker holds beside those that it built.

    Parameters
    ----------
    block_bytes : mapping or sequence
        Bytes of each block.
    built : iterable of blocks
        Blocks that the worker keeps for good.
    capacity : float
        Bytes that copies may take; copies that tasks use stay even beyond it.
    there : iterable of blocks
        Copies that the worker has at the start.
    """

    def __init__(
        self, block_bytes: Any, built: Iterable[Any] = (), capacity: float = inf, there: Iterable[Any] = ()
    ) -> None:
        self._bytes, self._built, self._capacity = block_bytes, set(built), capacity
        self._held: dict[Any, None] = dict.fromkeys(there)  # least recently used first
        self._used: Counter[Any] = Counter()
        self.held = sum(block_bytes[block] for block in self._held)

    def fits(self, blocks: Iterable[Any]) -> bool:
        """Whether the copies among these blocks fit beside those in use."""
        replicas = {block for block in blocks if block not in self._built} | self._used.keys()
        return bool(sum(self._bytes[block] for block in replicas) <= self._capacity)

    def take(self, blocks: Iterable[Any]) -> tuple[list[Any], list[Any]]:
        """Take blocks into use; return the blocks to be fetched, and the other copies that are evicted."""
        replicas = [block for block in dict.fromkeys(blocks) if block not in self._built]
        fetches = [block for block in replicas if block not in self._held]
        for block in replicas:
            self._held.pop(block, None)
            self._held[block] = None
        self._used.update(replicas)
        self.held += sum(self._bytes[block] for block in fetches)
        evictions = []
        for block in self._held:
            if self.held <= self._capacity:
                break
            if block not in self._used:
                self.held -= self._bytes[block]
                evictions.append(block)
        for block in evictions:
            del self._held[block]
        return fetches, evictions

    def give_back(self, blocks: Iterable[Any]) -> None:
        """Release blocks; their copies stay until others need the space."""
        for block in set(blocks) - self._built:
            self._used[block] -= 1
            if not self._used[block]:
                del self._used[block]
