"""Handles of results of GPU stages: each locates a value in device memory, pinned memory, host memory or a file."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dasktc.executors.spill.value_files import Stored, contents

__all__ = ["CALLS", "SENDING", "DeviceEntry", "DeviceHandle", "DeviceUsage", "Hosted", "Place", "place_of", "places_of"]


Place = Any
"""Where a value is outside of the device: Copied or Stored."""
CALLS, SENDING, MOVING = threading.RLock(), threading.Lock(), threading.RLock()
"""Locks of the device's memory, of which a process has one pool, however many workers and runs share it. Held while a
call runs within a budget, which is the pool's while it lasts; while what is on the device is copied for another worker,
for it cannot be freed meanwhile; and while a value changes its place, or the bytes of all, for a worker's connections
drop handles as well."""


class DeviceUsage:
    """Bytes of all results of a store that are on the device."""

    nbytes = 0

    def add(self, more: int) -> None:
        """Add bytes to the account."""
        with MOVING:
            self.nbytes += more


@dataclass(frozen=True, eq=False)
class Hosted:
    """A value in the host's memory, as it came from another worker: its pickle as in `Packed`, its arrays' bytes."""

    head: bytes
    buffers: list[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(memoryview(buffer).nbytes for buffer in self.buffers)

    def __reduce_ex__(self, protocol: Any) -> Any:
        wrap = pickle.PickleBuffer if protocol >= 5 else bytes
        return Hosted, (self.head, [wrap(buffer) for buffer in self.buffers])


def _bytes(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view("uint8")


def _received(places: list[Hosted], sizes: list[int], many: bool, length: int | None) -> DeviceHandle:
    handle = DeviceHandle(None, places, sizes, DeviceUsage())
    handle.many, handle.length = many, length
    return handle


class DeviceHandle:
    """Locates a result: on the device, or elsewhere. Pickled it takes the value along, in the host's memory.

    Attributes
    ----------
    value : object
        While it is on the device.
    places : list of Copied or Hosted, or Stored, or None
        Where its entries are (a single one of a result that is no list) if they are not on the device.
    nbytes : int
        On the device.
    many : bool
        It is a list.
    length : int or None
        Of an array.
    """

    def __init__(self, value: Any, places: list[Any] | Stored | None, sizes: list[int], usage: DeviceUsage) -> None:
        self.many, shape = isinstance(value, list), getattr(value, "shape", ())
        self.length = int(shape[0]) if shape else None
        self.value: Any = value if places is None else None
        self.places: list[Any] | Stored | None = places
        self.nbytes, self._sizes, self._usage = sum(sizes), sizes, usage
        usage.add(self.nbytes * (places is None))

    def moved_out(self, places: list[Any] | Stored) -> None:
        """Account the value as moved off the device."""
        with MOVING:
            gone, self.value, self.places = self.value, None, places
        self._usage.add(-self.nbytes)
        del gone  # not within the lock: what goes with it may take others

    def moved_in(self, value: Any) -> None:
        """Account the value as moved to the device."""
        with MOVING:
            self.value, self.places = value, None
        self._usage.add(self.nbytes)

    def account_to(self, usage: DeviceUsage) -> bool:
        """Have a value that is on no device counted there from now on; True if the accounting changed."""
        if self._usage is usage or self.places is None:
            return False
        self._usage = usage
        return True

    def hosted(self) -> list[Hosted]:
        """Copy the value's entries to host memory, from the device, pinned memory or files."""
        with SENDING:  # before the value is taken: who waits for this must hold nothing of the device
            with MOVING:  # a connection's thread sends it, and calls move it
                value, places = self.value, self.places
            if places is None:
                return self._downloaded(value)
        if isinstance(places, Stored):
            return [Hosted(bytes(head), list(buffers)) for head, buffers in contents(places)]
        return [place if isinstance(place, Hosted) else Hosted(place.head, place.buffers()) for place in places]

    def _downloaded(self, value: Any) -> list[Hosted]:
        """Copies of what is on the device."""
        from dasktc.executors.device.packing import pack

        packed = [pack(entry) for entry in (value if self.many else [value])]
        return [Hosted(entry.head, [_bytes(array.get()) for array in entry.arrays]) for entry in packed]

    def __reduce__(self) -> Any:
        return _received, (self.hosted(), self._sizes, self.many, self.length)

    def __sizeof__(self) -> int:
        """What it takes wherever it is, as Dask asks for it."""
        heads = self.places if isinstance(self.places, list) else []
        return object.__sizeof__(self) + self.nbytes + sum(len(place.head) for place in heads if place is not None)

    def entries(self) -> list[DeviceEntry]:
        """Handles of the entries of a list, each of which frees its entry when it goes."""
        return [DeviceEntry(self, number, True) for number in range(len(self._sizes))]

    def drop(self, number: int) -> None:
        """Free an entry."""
        self.nbytes -= self._sizes[number]
        if self.places is None:
            self.value[number] = None
            self._usage.add(-self._sizes[number])
        elif isinstance(self.places, list):
            self.places[number] = None

    def __del__(self) -> None:
        self._usage.add(-self.nbytes * (self.places is None))

    def place(self, number: int = 0) -> Place | None:
        """Where an entry is, if not on the device."""
        if isinstance(self.places, Stored):
            return self.places.section(number) if self.many else self.places
        return None if self.places is None else self.places[number]


class DeviceEntry:
    """An entry of a result that is a list; one that it owns goes with it."""

    def __init__(self, of: DeviceHandle, number: int, owns: bool = False) -> None:
        self.of, self.number, self._owns = of, number, owns

    def __del__(self) -> None:
        if self._owns:
            self.of.drop(self.number)


def place_of(arg: Any) -> Place | None:
    """Where an argument is that is a single value off the device; None of any other."""
    return arg.place() if isinstance(arg, DeviceHandle) and arg.places is not None and not arg.many else None


def places_of(call: Iterable[Any]) -> list[Place]:
    """Where the arguments of a call are that are off the device."""
    return [place for arg in call if (place := place_of(arg)) is not None]
