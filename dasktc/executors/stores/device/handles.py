"""Handles of results of GPU stages: each locates a value in device memory, pinned memory, host memory or a file."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dasktc.executors.stores.value_files import Stored, contents

__all__ = [
    "CALL_LOCK",
    "SEND_LOCK",
    "DeviceEntry",
    "DeviceHandle",
    "DeviceUsage",
    "Hosted",
    "Place",
    "place_of",
    "places_of",
]


Place = Any
"""The place of a value off the device: Copied, Hosted or Stored."""
CALL_LOCK, SEND_LOCK, MOVE_LOCK = threading.RLock(), threading.Lock(), threading.RLock()
"""Locks of the device's memory, of which a process has one pool, however many workers and runs share it; a thread that
needs several takes them in this order. CALL_LOCK is held while a call runs within a budget, which is the pool's during
that call; SEND_LOCK while a value on the device is copied for another worker, because it cannot be freed meanwhile;
MOVE_LOCK while a value changes its place, or the sum of bytes changes, because a worker's connections drop handles,
too."""


class DeviceUsage:
    """Bytes of a store's results on the device."""

    nbytes = 0

    def add(self, nbytes: int) -> None:
        """Add bytes to the sum."""
        with MOVE_LOCK:
            self.nbytes += nbytes


@dataclass(frozen=True, eq=False)
class Hosted:
    """A value in host memory, as another worker sent it: its pickle as in `Packed`, and the bytes of its arrays."""

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


def _receive(places: list[Hosted], sizes: list[int], many: bool, length: int | None) -> DeviceHandle:
    handle = DeviceHandle(None, places, sizes, DeviceUsage())
    handle.many, handle.length = many, length
    return handle


class DeviceHandle:
    """Locates a result, on the device or elsewhere; pickled it takes the value along, in host memory.

    Attributes
    ----------
    value : object
        The result while it is on the device.
    places : list of Copied or Hosted, or Stored, or None
        Places of its entries off the device (a single one where the result is not a list); None on the device.
    nbytes : int
        Bytes that it takes on the device.
    many : bool
        Whether the result is a list.
    length : int or None
        Length of an array.
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
        with MOVE_LOCK:
            value, self.value, self.places = self.value, None, places
        self._usage.add(-self.nbytes)
        del value  # outside the lock: freeing it may take other locks

    def moved_in(self, value: Any) -> None:
        """Account the value as moved to the device."""
        with MOVE_LOCK:
            self.value, self.places = value, None
        self._usage.add(self.nbytes)

    def account_to(self, usage: DeviceUsage) -> bool:
        """Account a value that is on no device to `usage` from now on; return True if the accounting changed."""
        if self._usage is usage or self.places is None:
            return False
        self._usage = usage
        return True

    def hosted(self) -> list[Hosted]:
        """Copy the value's entries to host memory, from the device, pinned memory or files."""
        with SEND_LOCK:  # before the value is taken: whoever waits for this lock must hold nothing on the device
            with MOVE_LOCK:  # a connection's thread sends the value while calls may move it
                value, places = self.value, self.places
            if places is None:
                return self._download(value)
        if isinstance(places, Stored):
            return [Hosted(bytes(head), list(buffers)) for head, buffers in contents(places)]
        return [place if isinstance(place, Hosted) else Hosted(place.head, place.buffers()) for place in places]

    def _download(self, value: Any) -> list[Hosted]:
        """Copy entries on the device to host memory."""
        from dasktc.executors.stores.device.packing import pack

        packed = [pack(entry) for entry in (value if self.many else [value])]
        return [Hosted(entry.head, [_bytes(array.get()) for array in entry.arrays]) for entry in packed]

    def __reduce__(self) -> Any:
        return _receive, (self.hosted(), self._sizes, self.many, self.length)

    def __sizeof__(self) -> int:
        """Bytes of the result wherever it is, for Dask's accounting."""
        heads = self.places if isinstance(self.places, list) else []
        return object.__sizeof__(self) + self.nbytes + sum(len(place.head) for place in heads if place is not None)

    def entries(self) -> list[DeviceEntry]:
        """Handles of a list's entries; each handle frees its entry when it goes."""
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
        """The place of an entry; None on the device."""
        if isinstance(self.places, Stored):
            return self.places.section(number) if self.many else self.places
        return None if self.places is None else self.places[number]


class DeviceEntry:
    """Handle of an entry of a result that is a list; an entry that it owns is freed with it."""

    def __init__(self, parent: DeviceHandle, number: int, is_owner: bool = False) -> None:
        self.parent, self.number, self._is_owner = parent, number, is_owner

    def __del__(self) -> None:
        if self._is_owner:
            self.parent.drop(self.number)


def place_of(arg: Any) -> Place | None:
    """The place of an argument that is a single value off the device; None for any other."""
    return arg.place() if isinstance(arg, DeviceHandle) and arg.places is not None and not arg.many else None


def places_of(call: Iterable[Any]) -> list[Place]:
    """Places of those arguments of a call that are off the device."""
    return [place for arg in call if (place := place_of(arg)) is not None]
