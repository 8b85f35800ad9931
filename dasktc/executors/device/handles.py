"""Results of stages on a GPU, and where they are: on the device, in pinned memory, or in a file."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.executors.device.prefetch import Place
from dasktc.executors.spill.value_files import Stored, contents

if TYPE_CHECKING:
    pass

__all__ = ["SENDING", "Hosted", "Part", "Result", "Used", "place_of", "places_of"]


SENDING = threading.Lock()
"""Held while what is on the device is copied for another worker: it cannot go meanwhile."""
_moving = threading.RLock()
"""Held while a result changes its place, or the bytes of all: a worker's connections let go of results as well."""


class Used:
    """Bytes of all results that are on the device."""

    nbytes = 0

    def add(self, more: int) -> None:
        """Count so many more."""
        with _moving:
            self.nbytes += more


@dataclass(frozen=True, eq=False)
class Hosted:
    """A value in the host's memory, as it came from another worker.

    Attributes
    ----------
    head : bytes
        Its pickle, as `cuda_pack.Packed` has it.
    buffers : list of buffers
        The bytes of its arrays.
    """

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


def _arrived(places: list[Hosted], sizes: list[int], many: bool, length: int | None) -> Result:
    found = Result(None, places, sizes, Used())
    found.many, found.length = many, length
    return found


class Result:
    """A result: on the device, or elsewhere. Pickled it is elsewhere, in the host's memory.

    Attributes
    ----------
    value : object
        While it is on the device.
    places : list of Copied, or Stored, or None
        Where its entries are (a single one of a result that is no list) if they are not on the device.
    nbytes : int
        On the device.
    many : bool
        It is a list.
    length : int or None
        Of an array.
    """

    def __init__(self, value: Any, places: list[Any] | Stored | None, sizes: list[int], used: Used) -> None:
        self.many, shape = isinstance(value, list), getattr(value, "shape", ())
        self.length = int(shape[0]) if shape else None
        self.value: Any = value if places is None else None
        self.places: list[Any] | Stored | None = places
        self.nbytes, self._sizes, self._used = sum(sizes), sizes, used
        used.add(self.nbytes * (places is None))

    def leave(self, places: list[Any] | Stored) -> None:
        """It is there from now on, not on the device."""
        with _moving:
            self.value, self.places = None, places
        self._used.add(-self.nbytes)

    def come(self, value: Any) -> None:
        """It is on the device from now on."""
        with _moving:
            self.value, self.places = value, None
        self._used.add(self.nbytes)

    def join(self, used: Used) -> bool:
        """It counts there from now on, if it is on no device; whether it did not before."""
        if self._used is used or self.places is None:
            return False
        self._used = used
        return True

    def hosted(self) -> list[Hosted]:
        """Its entries in the host's memory, copied from wherever they are."""
        with SENDING:  # before the value is taken: who waits for this must hold nothing of the device
            with _moving:  # a connection's thread sends it, and calls move it
                value, places = self.value, self.places
            if places is None:
                return self._sent(value)
        if isinstance(places, Stored):
            return [Hosted(bytes(head), list(buffers)) for head, buffers in contents(places)]
        return [place if isinstance(place, Hosted) else Hosted(place.head, place.buffers()) for place in places]

    def _sent(self, value: Any) -> list[Hosted]:
        """Copies of what is on the device."""
        from dasktc.executors.device.packing import pack

        packed = [pack(entry) for entry in (value if self.many else [value])]
        return [Hosted(entry.head, [_bytes(array.get()) for array in entry.arrays]) for entry in packed]

    def __reduce__(self) -> Any:
        return _arrived, (self.hosted(), self._sizes, self.many, self.length)

    def __sizeof__(self) -> int:
        """What it takes wherever it is, as Dask asks for it."""
        heads = self.places if isinstance(self.places, list) else []
        return object.__sizeof__(self) + self.nbytes + sum(len(place.head) for place in heads if place is not None)

    def drop(self, number: int) -> None:
        """An entry is needed no more."""
        self.nbytes -= self._sizes[number]
        if self.places is None:
            self.value[number] = None
            self._used.add(-self._sizes[number])
        elif isinstance(self.places, list):
            self.places[number] = None

    def __del__(self) -> None:
        self._used.add(-self.nbytes * (self.places is None))

    def place(self, number: int = 0) -> Place | None:
        """Where an entry is, if not on the device."""
        if isinstance(self.places, Stored):
            return self.places.section(number) if self.many else self.places
        return None if self.places is None else self.places[number]


class Part:
    """An entry of a result that is a list; one that it owns goes with it."""

    def __init__(self, of: Result, number: int, owns: bool = False) -> None:
        self.of, self.number, self._owns = of, number, owns

    def __del__(self) -> None:
        if self._owns:
            self.of.drop(self.number)


def place_of(arg: Any) -> Place | None:
    """Where an argument is that is a single value elsewhere; None of any other."""
    return arg.place() if isinstance(arg, Result) and arg.places is not None and not arg.many else None


def places_of(call: Iterable[Any]) -> list[Place]:
    """Where the arguments of a call are that are elsewhere."""
    return [place for arg in call if (place := place_of(arg)) is not None]
