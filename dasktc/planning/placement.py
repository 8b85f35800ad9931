"""Which worker counts which tasks and builds which blocks.

Of N tasks, in the order of `counting.tasks.jobs`, task t is for thread t·S // N of the workers' S threads: neighbours,
which share blocks, come together. A worker needs the blocks of its threads' tasks. One worker of those that need a
block builds it, the others receive it, so that what travels is known before anything runs:

    Σ over blocks (workers that need it - 1) · bytes

A block that all need, the whole graph, is built in slabs, one a thread, and every worker stacks its own copy of them:
as many bytes in all, from all workers to all at once.
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
    "NOWHERE",
    "ONE_PARTITION",
    "ReplicaCache",
    "Shares",
    "Where",
    "builders",
    "homes",
    "needed",
    "numbered",
    "shares",
]

Array = np.ndarray[Any, np.dtype[np.int64]]
Where = Mapping[tuple[int, int], str]
"""The name of the worker for each block."""
NOWHERE: Where = {}
ONE_PARTITION = 1 << 18
"""Edges below which they are one partition, and slab, whatever the workers."""


def shares(tasks: int, worker_threads: int) -> list[range]:
    """Assign to each worker thread its contiguous range of a plan's tasks."""
    begins = [-(-thread * tasks // worker_threads) for thread in range(worker_threads + 1)]
    return [range(begins[thread], begins[thread + 1]) for thread in range(worker_threads)]


def needed(triples: Array, splits: int, worker_threads: Array) -> tuple[Array, Array]:
    """Every worker that has tasks and every block that these need, once each, worker by worker.

    Parameters
    ----------
    triples : array of int64, shape (triples, 3)
        Numbers of the three blocks of each.
    splits : int
        Tasks of each triple.
    worker_threads : array of int64
        Number of the worker that each thread belongs to.

    Returns
    -------
    worker, block : arrays of int64
    """
    tasks, number = len(triples) * splits, len(worker_threads)
    active = np.arange(number, dtype="int64")
    begin, end = (-(-bound * tasks // number) for bound in (active, active + 1))
    active = active[begin < end]
    first, last = begin[active] // splits, (end[active] - 1) // splits
    several = last - first + 1
    before = np.cumsum(several) - several
    worker = worker_threads[np.repeat(active, several)]
    triple = np.arange(len(worker)) - np.repeat(before - first, several)
    blocks = 1 + int(triples.max(initial=0))
    pairs = np.unique((worker[:, None] * blocks + triples[triple]).ravel())
    return pairs // blocks, pairs % blocks


def homes(worker: Array, block: Array, block_bytes: Array) -> Array:
    """The worker that builds each block: of those that need it the one that has least to build, largest blocks first.

    Parameters
    ----------
    worker, block : arrays of int64
        As `needed` returns them.
    block_bytes : array, shape (blocks,)

    Returns
    -------
    array of int64, shape (blocks,)
        -1 where nobody needs it.
    """
    home = np.full(len(block_bytes), -1, dtype="int64")
    place = np.argsort(block, kind="stable")
    those, starts = worker[place], np.searchsorted(block[place], np.arange(len(block_bytes) + 1))
    has = np.zeros(1 + int(worker.max(initial=0)))
    for number in np.argsort(-np.asarray(block_bytes), kind="stable"):
        candidates = those[starts[number] : starts[number + 1]]
        if len(candidates):
            home[number] = candidates[has[candidates].argmin()]
            has[home[number]] += block_bytes[number]
    return home


def numbered(plan: Plan) -> tuple[list[Block], Array]:
    """Number the blocks that a plan's tasks need; return them, and its triples as these numbers, shape (.., 3)."""
    columns = plan.scheme.columns(plan.parts)
    places, number = np.unique(plan.scheduled, return_inverse=True)
    return [divmod(place, columns) for place in places.tolist()], number.reshape(-1, 3)


def builders(plan: Plan, sizes: Sizes, worker_threads: Sequence[str]) -> Where:
    """The worker that should build each block; nothing where there are not two to choose from.

    Parameters
    ----------
    plan : Plan
    sizes : Sizes
        Of its blocks.
    worker_threads : sequence of str
        Name of the worker that each thread belongs to.
    """
    if len(set(worker_threads)) < 2:
        return NOWHERE
    workers, of_thread = np.unique(np.array(worker_threads), return_inverse=True)
    blocks, triples = numbered(plan)
    held = plan.scheme.block_bytes(sizes)
    home = homes(*needed(triples, plan.splits, of_thread), np.array([held[place] for place in blocks]))
    return {place: str(workers[worker]) for place, worker in zip(blocks, home.tolist(), strict=True)}


class Shares:
    """The tasks that are left of each worker's share.

    A worker takes its own in order. When they are used up it takes the last one of the share with most left.

    Parameters
    ----------
    given : mapping of worker to iterable of int
    """

    def __init__(self, given: Mapping[Any, Iterable[int]]) -> None:
        self._left = {worker: deque(tasks) for worker, tasks in given.items()}
        self._number = sum(map(len, self._left.values()))

    def __len__(self) -> int:
        return self._number

    def take(self, worker: Any, fits: Callable[[int], bool] = lambda task: True) -> int | None:
        """The task that a worker gets next; None if there is none, or the next one does not fit."""
        if not self._number:
            return None
        own = self._left.get(worker)
        longest = own or max(self._left.values(), key=len)
        if not fits(longest[0 if own else -1]):
            return None
        self._number -= 1
        return longest.popleft() if own else longest.pop()


class ReplicaCache:
    """An LRU cache of copies of blocks that a worker holds beside those that it built.

    Parameters
    ----------
    block_bytes : mapping or sequence
        Bytes of each block.
    built : iterable of blocks
        What the worker has for good.
    capacity : float
        Bytes that copies may take. Those that tasks use stay even so.
    there : iterable of blocks
        Copies that it has at first.
    """

    def __init__(
        self, block_bytes: Any, built: Iterable[Any] = (), capacity: float = inf, there: Iterable[Any] = ()
    ) -> None:
        self._bytes, self._built, self._capacity = block_bytes, set(built), capacity
        self._held: dict[Any, None] = dict.fromkeys(there)  # used longest ago first
        self._used: Counter[Any] = Counter()
        self.held = sum(block_bytes[block] for block in self._held)

    def fits(self, blocks: Iterable[Any]) -> bool:
        """Whether there is room for the copies among these blocks, beside those in use."""
        wanted = {block for block in blocks if block not in self._built} | self._used.keys()
        return bool(sum(self._bytes[block] for block in wanted) <= self._capacity)

    def take(self, blocks: Iterable[Any]) -> tuple[list[Any], list[Any]]:
        """Take blocks into use; returns which have to be fetched, and which other copies are evicted."""
        wanted = [block for block in dict.fromkeys(blocks) if block not in self._built]
        come = [block for block in wanted if block not in self._held]
        for block in wanted:
            self._held.pop(block, None)
            self._held[block] = None
        self._used.update(wanted)
        self.held += sum(self._bytes[block] for block in come)
        return come, self._evict()

    def give_back(self, blocks: Iterable[Any]) -> None:
        """Release blocks: their copies stay until others need the space."""
        for block in set(blocks) - self._built:
            self._used[block] -= 1
            if not self._used[block]:
                del self._used[block]

    def _evict(self) -> list[Any]:
        gone = []
        for block in self._held:
            if self.held <= self._capacity:
                break
            if block not in self._used:
                self.held -= self._bytes[block]
                gone.append(block)
        for block in gone:
            del self._held[block]
        return gone
