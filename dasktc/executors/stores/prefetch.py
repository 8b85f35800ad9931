"""Prefetches blocks from files: a thread reads those of the next task while others count."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from dasktc.executors.stores.value_files import Stored, load

__all__ = ["Prefetcher"]

READER = "dasktc-read"
"""How the names of reading threads begin."""


class Prefetcher:
    """Reads values from files ahead of their use, in a thread of its own; those used last are kept while they fit.

    Beside the values of running tasks it holds at most `capacity` bytes. Reading releases the GIL, as kernels do. The
    thread ends with the context, or with the last reference to this object; whoever drops that waits for the read under
    way.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._values: dict[Stored, Future[Any]] = {}
        self._current: set[Stored] = set()
        self._reader = ThreadPoolExecutor(1, READER)
        weakref.finalize(self, _end, self._reader)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: TracebackType | type | BaseException | None) -> None:
        self._reader.shutdown(cancel_futures=True)
        self._values.clear()

    def use(self, places: list[Stored], beside: Iterable[Stored] = ()) -> dict[Stored, Any]:
        """Return the values of the next task; those of earlier tasks may be evicted from now on.

        Values of the tasks that still run, `beside`, are kept.
        """
        self._current = {*places, *beside}
        self._evict_until(0, self._current)
        return {place: self._read(place).result() for place in places}

    def prepare(self, places: list[Stored]) -> None:
        """Begin to read the values of a later task, as far as the capacity allows."""
        targets = set(places)
        for place in targets & self._values.keys():
            self._values[place] = self._values.pop(place)  # last in the order of use, so evicted last
        for place in places:
            if place not in self._values and self._evict_until(place.nbytes, targets | self._current):
                self._read(place)

    def _read(self, place: Stored) -> Future[Any]:
        self._values[place] = self._values.pop(place) if place in self._values else self._begin(place)
        return self._values[place]

    def _begin(self, place: Stored) -> Future[Any]:
        """Begin to read a value in the prefetching thread."""
        return self._reader.submit(load, place, copy=True)

    def _evict_until(self, size: int, exceptions: set[Stored]) -> bool:
        """Evict the values that were used longest ago until `size` bytes more fit; return whether they do."""
        for place in [place for place in self._values if place not in exceptions]:
            if self._beyond_current() + size <= self.capacity:
                break
            del self._values[place]
        return self._beyond_current() + size <= self.capacity

    def _beyond_current(self) -> int:
        return sum(place.nbytes for place in self._values if place not in self._current)


def _end(reader: ThreadPoolExecutor) -> None:
    """End a reader after the read under way; its own thread, which may drop the last reference, never waits."""
    reader.shutdown(wait=not threading.current_thread().name.startswith(READER), cancel_futures=True)
