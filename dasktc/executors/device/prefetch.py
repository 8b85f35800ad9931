"""Blocks on the device ahead of their use, and how much of their copying was hidden behind counting."""

from __future__ import annotations

from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, NamedTuple

from dasktc.executors.spill.prefetch import Ahead

if TYPE_CHECKING:
    from dasktc.executors.device.copies import Copies

__all__ = ["HORIZON", "AheadOnDevice", "Place", "TransferStats"]

HORIZON, AHEAD = 16, 8
"""Tasks that are looked at for what may go, and for what is copied."""
Place = Any
"""Where a value is outside of the device: Copied or Stored."""


class TransferStats(NamedTuple):
    """What counting tasks copied to the device.

    Attributes
    ----------
    blocks, nbytes : int
        Copies, and their bytes.
    copy : float
        Seconds of the copies, from event to event; those of files include reading.
    exposed : float
        Seconds for which tasks waited for their blocks.
    first : float
        Of these, before the first task, when nothing counts.
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


class AheadOnDevice(Ahead):
    """Blocks on the device, copied ahead of their use.

    The order of the tasks is known, so what makes room is what is needed last, or not for a while (Belady, IBM
    Systems Journal 5, 1966).
    """

    def __init__(self, capacity: int, copies: Copies) -> None:
        super().__init__(capacity)
        self._turn: dict[Place, int] = {}
        self._copies = copies
        self._waits: list[tuple[Any, Any]] = []
        self._copied: list[tuple[Any, Any, int]] = []

    def _begin(self, place: Place) -> Future[Any]:
        return self._reader.submit(self._bring, place)

    def _bring(self, place: Place) -> Any:
        arrival = self._copies.bring(place)
        self._copied.append((arrival.began, arrival.ended, arrival.nbytes))  # not the block, which may go
        return arrival

    def use(self, places: list[Place]) -> dict[Place, Any]:
        """The blocks of the task that runs next: the current stream waits for their copies.

        Where there is no memory for one, those of other tasks go first.
        """
        try:
            return self._waited_for(places)
        except MemoryError:
            pass
        self._held.clear()
        return self._waited_for(places)

    def _waited_for(self, places: list[Place]) -> dict[Place, Any]:
        before = self._copies.moment()
        found = super().use(places)
        self._copies.wait(found.values())
        self._waits.append((before, self._copies.moment()))
        return {place: arrival.value for place, arrival in found.items()}

    def settle(self) -> None:
        """Return when all copies have begun that are wanted."""
        wait(list(self._held.values()))

    def drop(self) -> bool:
        """Let go of all blocks, when no task runs; whether there were any."""
        self.settle()
        there = bool(self._held)
        self._held.clear()
        return there

    def follow(self, tasks: list[list[Place]]) -> None:
        """Begin to copy what the next tasks need, in their order, as far as there is room.

        Parameters
        ----------
        tasks : list of list of Place
            HORIZON tasks that follow: what these do not need may go first.
        """
        self._turn = {}
        for number, places in enumerate(tasks):
            for place in places:
                self._turn.setdefault(place, number)
        for place, number in self._turn.items():
            sooner = {other for other in self._held if self._turn.get(other, HORIZON) <= number}
            if number >= AHEAD or not (place in self._held or self._make_room(place.nbytes, sooner | self._current)):
                break
            self._read(place)

    def _make_room(self, size: int, wanted: set[Place]) -> bool:
        others = sorted(self._held.keys() - wanted, key=lambda place: self._turn.get(place, HORIZON))
        if self._idle() + size - sum(place.nbytes for place in others) > self.capacity:
            return False
        while self._idle() + size > self.capacity:
            self._held.pop(others.pop()).cancel()
        return True

    def moves(self) -> TransferStats:
        """What was copied, and what was waited for."""
        waited = [self._copies.seconds(*moments) for moments in self._waits]
        copied = sum(self._copies.seconds(began, ended) for began, ended, _ in self._copied)
        nbytes = sum(nbytes for _, _, nbytes in self._copied)
        return TransferStats(len(self._copied), nbytes, copied, sum(waited), waited[0] if waited else 0.0)
