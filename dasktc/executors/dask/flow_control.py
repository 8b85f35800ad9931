"""Flow control: keeps a few calls in flight per thread, so that no thread idles and no block is copied too early.

At first a worker has, per thread, one call that runs and one that waits, whose blocks are copied meanwhile. A worker
whose calls turn out short gets as many as it runs in SECONDS_AHEAD seconds, up to DEPTH and up to half of its share of
the remaining calls; one that has run dry when the client looks gets twice as many as before. A worker's calls are
refilled when half of them are gone: calls that travel together take less of everybody's time, the scheduler's above
all. A worker gets the calls of its own share, in order, and then those that are left of the longest share, so that a
slow worker does not keep the others waiting. A call whose blocks would exceed the worker's capacity for copies waits,
unless a thread would idle without it.
"""

# Kronecker 18 on 16 cores, kernel `merge`: milliseconds of the scheduler's thread per task, and on average between the
# end of a worker's task and its next one, before calls travelled together and since:
#   workers  tasks  each    scheduler  between    now
#         1    729     5          5.0      5.4    2.9  1.2
#         2    729    11          4.5      3.4    2.6  1.1
#         4    729    26          4.3      1.9    3.2  1.5   with a full garbage collection in the client's process
#         4    216    86          5.8      1.2    4.8  1.2

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any

from dasktc.executors.dask.call_queue import future_of
from dasktc.executors.dask.faults import FaultPolicy
from dasktc.executors.dask.futures import LOOK_SECONDS, TaskSource
from dasktc.executors.dask.scheduler_ops import drop_copies, keep_copies
from dasktc.planning.placement import ReplicaCache, Shares, shares

__all__ = ["DEPTH", "BlockReplicas", "Window", "WindowedSubmitter"]

FIRST_DEPTH, DEPTH = 2, 32
"""Calls in flight for each thread of a worker, at first and at most."""
SECONDS_AHEAD = 0.2
"""Seconds of work that wait at a worker whose calls are short."""
KEEP_SECONDS = 10 * LOOK_SECONDS
"""How long copies of blocks are kept after the last request to keep them."""


@dataclass(frozen=True)
class BlockReplicas:
    """Which workers hold copies of which blocks, and how many bytes of copies each may hold."""

    block_bytes: Mapping[Any, int]
    """Mapping of block to int."""
    holders: Mapping[Any, Sequence[str]]
    """Mapping of block to sequence of str. The workers that have it; the first one keeps it, whatever else needs the
    memory."""
    capacity: float = inf
    """Bytes that the blocks on a worker may take per thread."""

    def copies(self, worker: str, threads: int) -> ReplicaCache:
        """The copies that a worker holds, as a cache of this capacity."""
        is_first = {block: names[0] == worker for block, names in self.holders.items() if worker in names}
        blocks = [block for block, first in is_first.items() if first]
        capacity = threads * self.capacity - sum(self.block_bytes[block] for block in blocks)
        return ReplicaCache(
            self.block_bytes, blocks, capacity, [block for block, first in is_first.items() if not first]
        )


@dataclass(eq=False)
class _Worker:
    name: str
    threads: int
    copies: ReplicaCache
    looked: float
    depth: int = FIRST_DEPTH
    flying: int = 0
    seconds: float = 0.0
    ended: float = 0.0

    def update_rate(self, calls: int, now: float) -> None:
        """Update the rate at which calls end: a moving average, where each update halves the weight of earlier ones."""
        self.seconds = self.seconds / 2 + self.threads * (now - self.looked)
        self.ended = self.ended / 2 + calls
        self.looked = now

    @property
    def ahead(self) -> int:
        """Calls that a thread runs in SECONDS_AHEAD seconds, plus one; 0 before any has ended."""
        rate = self.ended / max(self.seconds, SECONDS_AHEAD / DEPTH)
        return int(min(DEPTH, 1 + SECONDS_AHEAD * rate)) if self.ended else 0


class Window:
    """Decides which counting task is submitted next, and to which worker.

    Parameters
    ----------
    needs : sequence of sequences of blocks
        The blocks that each call needs.
    threads : mapping of str to int
        Threads of each worker; the calls are dealt out to these.
    replicas : BlockReplicas
    clock : callable () -> float
        Returns seconds.
    """

    def __init__(
        self,
        needs: Sequence[Sequence[Any]],
        threads: Mapping[str, int],
        replicas: BlockReplicas,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._needs, self._replicas, self._clock = needs, replicas, clock
        worker_threads = [worker for worker in sorted(threads) for _ in range(threads[worker])]
        queues: dict[str, list[int]] = defaultdict(list)
        for worker, share in zip(worker_threads, shares(len(needs), len(worker_threads)), strict=True):
            queues[worker] += share
        self._left = Shares(queues)
        self._workers: dict[str, _Worker] = {}
        self._where: dict[int, _Worker] = {}
        self.set_workers(threads)

    def __len__(self) -> int:
        """Number of calls that have not begun."""
        return len(self._left)

    def set_workers(self, threads: Mapping[str, int]) -> None:
        """Set the current workers: those that are still there keep their state, new ones start without any."""
        now, former_workers, copies = self._clock(), self._workers, self._replicas.copies
        self._workers = {
            name: former_workers.get(name) or _Worker(name, number, copies(name, number), now)
            for name, number in sorted(threads.items())
        }

    def begin(self) -> tuple[list[tuple[int, str]], dict[str, list[Any]]]:
        """Choose the calls to submit now, and the copies of blocks to drop for them.

        Returns
        -------
        begun : list of (int, str)
            Number of each call, and the worker for it.
        gone : dict of str to list of blocks
            Copies that no longer fit a worker's capacity.
        """
        assignments: list[tuple[int, str]] = []
        evictions: dict[str, list[Any]] = defaultdict(list)
        part = len(self) // max(1, 2 * sum(worker.threads for worker in self._workers.values()))
        targets = [
            (worker, worker.threads * max(worker.depth, min(worker.ahead, part))) for worker in self._workers.values()
        ]
        receivers = [(worker, target) for worker, target in targets if 2 * worker.flying <= target]
        while receivers:
            receivers = [
                (worker, target)
                for worker, target in receivers
                if self._begin_one(worker, target, assignments, evictions)
            ]
        return assignments, {worker: blocks for worker, blocks in evictions.items() if blocks}

    def _begin_one(
        self, worker: _Worker, target: int, assignments: list[tuple[int, str]], evictions: dict[str, list[Any]]
    ) -> bool:
        """Give a worker one more call if it may have more in flight; return whether it got one."""
        if worker.flying >= target:
            return False
        is_idle = worker.flying < worker.threads
        call = self._left.take(worker.name, lambda call: is_idle or worker.copies.fits(self._needs[call]))
        if call is None:
            return False
        worker.flying += 1
        self._where[call] = worker
        assignments.append((call, worker.name))
        evictions[worker.name] += worker.copies.take(self._needs[call])[1]
        return True

    def ended(self, calls: Iterable[int]) -> None:
        """Record finished calls: their blocks may be evicted, and a worker that idled gets more calls from now on."""
        ended_counts: Counter[_Worker] = Counter()
        for call in calls:
            worker = self._where.pop(call)
            worker.flying -= 1
            worker.copies.give_back(self._needs[call])
            ended_counts[worker] += 1
        now = self._clock()
        for worker, number in ended_counts.items():
            worker.update_rate(number, now)
            if worker.flying < worker.threads:
                worker.depth = min(DEPTH, 2 * worker.depth)


class WindowedSubmitter(TaskSource):
    """The TaskSource of counting tasks: keeps a few calls in flight on each worker of a cluster.

    Parameters
    ----------
    client : distributed.Client
    faults : FaultPolicy
    submit : callable (calls, worker) -> list of handles
        Submits some calls, to the worker if it lives.
    calls : list of tuples
        The futures among their arguments are blocks.
    capacity : callable (int) -> float
        From the bytes of the largest call's blocks, returns the bytes that blocks may take per thread of a worker.
    copies : mapping of block to dict of str to Future
        Blocks that several workers have built for themselves: each worker's own copy, which its calls take. Copies of
        workers that are gone are removed.
    """

    def __init__(
        self,
        client: Any,
        faults: FaultPolicy,
        submit: Callable[[list[tuple[Any, ...]], str], list[Any]],
        calls: list[tuple[Any, ...]],
        capacity: Callable[[int], float],
        copies: Mapping[Any, dict[str, Any]] = MappingProxyType({}),
    ) -> None:
        from distributed import Future

        self._client, self._faults, self._submit = client, faults, submit
        self._calls, self._capacity, self._copies = calls, capacity, copies
        self._needs = [tuple({arg.key: None for arg in call if isinstance(arg, Future)}) for call in calls]
        self._blocks = list({key: None for keys in self._needs for key in keys})
        self._groups = sorted({key[0] for key in self._blocks})
        self._numbers: dict[Any, int] = {}
        self._window: Window | None = None

    def __len__(self) -> int:
        """Number of calls that have not begun."""
        return len(self._calls) if self._window is None else len(self._window)

    def set_workers(self, threads: Mapping[str, int]) -> None:
        """Update the workers; the first time, deal the calls out to them."""
        for copies in self._copies.values():  # else Dask would make those of a dead worker again, elsewhere
            for worker in copies.keys() - threads.keys():
                del copies[worker]
        keys = self._blocks if self._window is None else []
        holders = {} if self._is_everywhere(threads) else self._keep_copies(keys)
        if self._window is None:
            self._window = Window(self._needs, threads, self._replicas(holders))
        else:
            self._window.set_workers(threads)

    def _is_everywhere(self, threads: Mapping[str, int]) -> bool:
        """Whether every worker has built every block for itself: `copies` has those of all workers but one."""
        return all(key in self._copies and len(threads.keys() - self._copies[key].keys()) < 2 for key in self._blocks)

    def _keep_copies(self, keys: list[Any]) -> dict[Any, tuple[int, list[str]]]:
        """Have the scheduler keep copies of blocks for some time; return bytes and holders of the blocks in `keys`."""
        if not self._blocks:
            return {}
        holders: dict[Any, tuple[int, list[str]]] = self._faults.ask(
            keep_copies, self._client, self._groups, KEEP_SECONDS, keys
        )
        for key in holders.keys() & self._copies.keys():
            nbytes, workers = holders[key]
            holders[key] = nbytes, [*workers, *self._copies[key]]
        return holders

    def _replicas(self, holders: dict[Any, tuple[int, list[str]]]) -> BlockReplicas:
        sizes = dict.fromkeys(self._blocks, 0) | {key: nbytes for key, (nbytes, _) in holders.items()}
        largest = max(sum(sizes[key] for key in keys) for keys in self._needs)
        loads: Counter[str] = Counter()
        places = {}
        for key in sorted(holders, key=lambda key: -sizes[key]):  # the holder that keeps least so far keeps the block
            places[key] = sorted(holders[key][1], key=lambda worker: (loads[worker], worker))
            loads[places[key][0]] += sizes[key]
        return BlockReplicas(sizes, places, self._capacity(largest))

    def submit(self) -> list[Any]:
        """Submit the calls that should be in flight now."""
        if self._window is None:
            return []
        assignments, evictions = self._window.begin()
        if evictions:
            self._faults.ask(drop_copies, self._client, evictions)
        worker_calls: dict[str, list[int]] = defaultdict(list)
        for number, worker in assignments:
            worker_calls[worker].append(number)
        handles: list[Any] = []
        for worker, numbers in worker_calls.items():
            submitted = self._submit([self._of_worker(self._calls[number], worker) for number in numbers], worker)
            for handle, number in zip(submitted, numbers, strict=True):
                self._numbers[handle.key] = number
                self._faults.names[handle.key] = self._calls[number][0]
            handles += submitted
        return list(map(future_of, handles))

    def _of_worker(self, call: tuple[Any, ...], worker: str) -> tuple[Any, ...]:
        """Replace blocks in a call by the worker's own copies, where it has built some."""
        if not self._copies:
            return call
        return tuple(self._copies.get(getattr(arg, "key", None), {}).get(worker, arg) for arg in call)

    def ended(self, futures: list[Any]) -> None:
        """Record calls whose results have come to the client."""
        for future in futures:
            future.release()
            del self._faults.names[future.key]
        if self._window is not None:
            self._window.ended(self._numbers.pop(future.key) for future in futures)
