"""Blocks from files: those of the next task are read by another thread while this one counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from dasktc.executors.spill.value_files import Stored, load

__all__ = ["Ahead", "with_next"]


class Ahead:
    """Values of files, read ahead of their use; those used last are kept while they fit.

    Beside the values of the task that runs it holds no more than `memory_per_call` bytes. Reading lets go of the GIL,
    as kernels do.

    Parameters
    ----------
    capacity : int
        Bytes.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._held: dict[Stored, Future[Any]] = {}
        self._current: set[Stored] = set()
        self._reader = ThreadPoolExecutor(1, "dasktc-read")
        self.reads = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: TracebackType | type | BaseException | None) -> None:
        self._reader.shutdown(cancel_futures=True)
        self._held.clear()

    def use(self, places: list[Stored]) -> dict[Stored, Any]:
        """The values of the task that runs next; the ones before it may go from now on."""
        self._current = set(places)
        self._make_room(0, self._current)
        return {place: self._read(place).result() for place in places}

    def prepare(self, places: list[Stored]) -> None:
        """Begin to read what the task after it needs, as far as there is room."""
        wanted = set(places)
        for place in wanted & self._held.keys():
            self._held[place] = self._held.pop(place)  # used last, so the last to go
        for place in places:
            if place not in self._held and self._make_room(place.nbytes, wanted | self._current):
                self._read(place)

    def _read(self, place: Stored) -> Future[Any]:
        if place in self._held:
            self._held[place] = self._held.pop(place)
        else:
            self._held[place] = self._begin(place)
            self.reads += 1
        return self._held[place]

    def _begin(self, place: Stored) -> Future[Any]:
        """Have the other thread read it."""
        return self._reader.submit(load, place, copy=True)

    def _make_room(self, size: int, wanted: set[Stored]) -> bool:
        """Let those go that were used longest ago, until so many bytes more fit."""
        for place in [place for place in self._held if place not in wanted]:
            if self._idle() + size <= self.capacity:
                break
            del self._held[place]
        return self._idle() + size <= self.capacity

    def _idle(self) -> int:
        return sum(place.nbytes for place in self._held if place not in self._current)


def with_next(calls: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield each call and the one after it, at last None."""
    waiting = iter(calls)
    call = next(waiting, None)
    while call is not None:
        following = next(waiting, None)
        yield call, following
        call = following
