"""Results of stages on a GPU, and where they are: on the device, in pinned memory, or in a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dasktc.ahead_on_gpu import Place
from dasktc.spill import Stored

if TYPE_CHECKING:
    from dasktc.backend.cuda_copies import Copied

__all__ = ["Part", "Result", "Used", "place_of", "places_of"]


class Used:
    """Bytes of all results that are on the device."""

    nbytes = 0


class Result:
    """A result: on the device, or elsewhere.

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

    def __init__(self, value: Any, places: list[Copied] | Stored | None, sizes: list[int], used: Used) -> None:
        self.many, shape = isinstance(value, list), getattr(value, "shape", ())
        self.length = int(shape[0]) if shape else None
        self.value: Any = value if places is None else None
        self.places: list[Any] | Stored | None = places
        self.nbytes, self._sizes, self._used = sum(sizes), sizes, used
        used.nbytes += self.nbytes * (places is None)

    def leave(self, places: list[Any] | Stored) -> None:
        """It is there from now on, not on the device."""
        self.value, self.places = None, places
        self._used.nbytes -= self.nbytes

    def come(self, value: Any) -> None:
        """It is on the device from now on."""
        self.value, self.places = value, None
        self._used.nbytes += self.nbytes

    def drop(self, number: int) -> None:
        """An entry is needed no more."""
        self.nbytes -= self._sizes[number]
        if self.places is None:
            self.value[number] = None
            self._used.nbytes -= self._sizes[number]
        elif isinstance(self.places, list):
            self.places[number] = None

    def __del__(self) -> None:
        self._used.nbytes -= self.nbytes * (self.places is None)

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
