"""Prefetches blocks to the device, and measures how much of the copying was hidden behind counting."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, NamedTuple

from dasktc.backends.calls import one_call
from dasktc.executors.stores.device.handles import Place
from dasktc.executors.stores.prefetch import Prefetcher

if TYPE_CHECKING:
    from dasktc.executors.stores.device.copies import DeviceCopier

__all__ = ["HORIZON", "DevicePrefetcher", "TransferStats"]

HORIZON, DEPTH = 16, 8
"""Following tasks that are considered for eviction, and for copying."""


class TransferStats(NamedTuple):
    """Statistics of the copies to the device during counting tasks.

    Attributes
    ----------
    blocks, nbytes : int
        Number of copies, and their bytes.
    copy : float
        Seconds of the copies, from event to event; copies from files include reading.
    exposed : float
        Seconds that tasks waited for their blocks.
    first : float
        The part of `exposed` before the first task, when nothing counts.
    """

    blocks: int = 0
    nbytes: int = 0
    copy: float = 0.0
    exposed: float = 0.0
    first: float = 0.0

    @property
    def hidden(self) -> float | None:
        """Share of the copying that was hidden behind counting; None where nothing was copied."""
        return max(0.0, 1 - self.exposed / self.copy) if self.copy else None


class DevicePrefetcher(Prefetcher):
    """Copies blocks to the device ahead of their use, in a thread and on a stream of its own.

    The order of the tasks is known, so the blocks evicted first are those needed last, or not for a while (Belady, IBM
    Systems Journal 5, 1966).
    """

    def __init__(self, capacity: int, copies: DeviceCopier) -> None:
        super().__init__(capacity)
        self._turn: dict[Place, int] = {}
        self._copies = copies
        self._waits: list[tuple[Any, Any]] = []
        self._arrivals: list[tuple[Any, Any, int]] = []

    def _begin(self, place: Place) -> Future[Any]:
        return self._reader.submit(self._bring, place)

    def _bring(self, place: Place) -> Any:
        with one_call(on_worker=True):
            arrival = self._copies.bring(place)
        self._arrivals.append((arrival.start, arrival.end, arrival.nbytes))  # without the block, which may be evicted
        return arrival

    def use(self, places: list[Place], beside: Iterable[Place] = ()) -> dict[Place, Any]:
        """Return the blocks of the next task; the current stream waits for their copies.

        Where memory is short, blocks of other tasks are evicted first.
        """
        try:
            return self._wait_for(places)
        except MemoryError:
            pass
        self._values.clear()
        try:
            return self._wait_for(places)
        except MemoryError:
            self._values.clear()  # a failed copy is not a block that `drop` could free
            raise

    def _wait_for(self, places: list[Place]) -> dict[Place, Any]:
        start = self._copies.moment()
        arrivals = super().use(places)
        self._copies.wait(arrivals.values())
        self._waits.append((start, self._copies.moment()))
        return {place: arrival.value for place, arrival in arrivals.items()}

    def settle(self) -> None:
        """Wait until every requested copy has begun."""
        wait(list(self._values.values()))

    def drop(self) -> bool:
        """Drop all blocks, while no task runs; return whether there were any."""
        self.settle()
        had_values = bool(self._values)
        self._values.clear()
        return had_values

    def follow(self, tasks: list[list[Place]]) -> None:
        """Begin to copy the blocks of the next tasks, in their order, as far as the capacity allows.

        Parameters
        ----------
        tasks : list of list of Place
            The next HORIZON tasks; blocks that none of them needs may be evicted first.
        """
        self._turn = {}
        for number, places in enumerate(tasks):
            for place in places:
                self._turn.setdefault(place, number)
        for place, number in self._turn.items():
            if number >= DEPTH:
                break
            exceptions = {key for key in self._values if self._turn.get(key, HORIZON) <= number}
            if place not in self._values and not self._evict_until(place.nbytes, exceptions | self._current):
                break
            self._read(place)

    def _evict_until(self, size: int, exceptions: set[Place]) -> bool:
        """Evict blocks, those needed last first, until `size` bytes fit; evict none if even all would not suffice."""
        candidates = sorted(self._values.keys() - exceptions, key=lambda place: self._turn.get(place, HORIZON))
        if self._beyond_current() + size - sum(place.nbytes for place in candidates) > self.capacity:
            return False
        while self._beyond_current() + size > self.capacity:
            self._values.pop(candidates.pop()).cancel()
        return True

    def stats(self) -> TransferStats:
        """Statistics of the copies, and of the waits for them."""
        waits = [self._copies.seconds(*moments) for moments in self._waits]
        seconds = sum(self._copies.seconds(start, end) for start, end, _ in self._arrivals)
        nbytes = sum(nbytes for _, _, nbytes in self._arrivals)
        return TransferStats(len(self._arrivals), nbytes, seconds, sum(waits), waits[0] if waits else 0.0)
