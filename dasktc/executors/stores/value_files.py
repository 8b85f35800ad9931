"""Files of pickled values: written once, read back or memory-mapped, removed with their last reference.

A file holds one section per value:

    number of buffers m | bytes of the pickle | bytes of each of the m buffers      int64 each
    pickle, without its buffers (protocol 5)
    the buffers, raw, each at a multiple of 64 bytes

so a block's offsets and columns, or a frame's columns, have the same layout as in memory. Large sections are mapped:
pages that are not touched are not read, and processes of one machine share the others.
"""

from __future__ import annotations

import mmap
import os
import pickle
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from dasktc.backends.heap import trim
from dasktc.executors.base import DelayedValue
from dasktc.executors.stores.work_dir import one_line
from dasktc.wording import plural

__all__ = [
    "Flat", "Handle", "ResultWriter", "Stored", "contents", "flatten", "load", "resolve", "resolve_once", "store",
]  # fmt: skip

ALIGNMENT = 64
MAPPED = 1 << 20
"""Bytes from which a section is mapped; each map holds a file descriptor, of which there are about a thousand."""
OWN_PAGES = 1 << 16
"""Bytes from which a copy has pages of its own: in the C heap, blocks that come and go leave resident gaps."""


@dataclass(frozen=True)
class Flat:
    """A value pickled without its arrays, and these arrays as buffers."""

    head: bytes
    buffers: list[Any]
    """List of memoryview, or of objects with `nbytes` that yield a buffer chunk by chunk as memoryviews."""

    @property
    def nbytes(self) -> int:
        """Bytes that the value takes."""
        return len(self.head) + sum(int(buffer.nbytes) for buffer in self.buffers)


def flatten(value: Any) -> Flat:
    """Pickle a value without copying its contiguous arrays."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, 5, buffer_callback=buffers.append)
    return Flat(head, [buffer.raw() for buffer in buffers])


class Handle(ABC):
    """Stands for a value that is in a file, or may be moved to one."""

    @abstractmethod
    def load(self, copy: bool = False) -> Any:
        """Return the value; `copy`: in memory of its own (`load`)."""


@dataclass(frozen=True, eq=False)
class Stored(Handle):
    """The place of a value: a file, and the sections of it that hold the value."""

    path: str
    starts: Any
    """Array of int64, shape (sections + 1,). Where each section begins, and where the last one ends."""
    many: bool
    """Whether the value is the list of the sections; else there is a single one."""

    def __hash__(self) -> int:
        return hash((self.path, int(self.starts[0])))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stored) and self.path == other.path and np.array_equal(self.starts, other.starts)

    @property
    def nbytes(self) -> int:
        """Bytes of the sections."""
        return int(self.starts[-1] - self.starts[0])

    def section(self, number: int) -> Stored:
        """The place of one entry of the list; it does not own the file."""
        return Stored(self.path, self.starts[number : number + 2], False)

    def load(self, copy: bool = False) -> Any:
        """Read the value back (`load`)."""
        return load(self, copy)

    def remove(self) -> None:
        """Remove the value's file."""
        _unlink(self.path)

    def owned(self) -> Stored:
        """Return this place as the owner of its file, which is removed once nobody holds this object."""
        weakref.finalize(self, _unlink, self.path).atexit = False
        return self


def _unlink(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def store(path: str, values: Iterable[Flat], many: bool) -> Stored:
    """Write values to a new file, one section each; remove it, and raise DasktcError, where the system refuses."""
    starts, folder = [0], os.path.dirname(path)
    with one_line(folder):
        file = open(path, "xb")
    try:
        for value in values:
            with one_line(folder):
                _write(file, value)
            starts.append(file.tell())
        with one_line(folder):
            file.close()
    except BaseException:
        with suppress(OSError):  # closing writes again what there was no room for
            file.close()
        _unlink(path)
        raise
    return Stored(path, np.array(starts, "int64"), many)


def _write(file: BinaryIO, value: Flat) -> None:
    sizes = [buffer.nbytes for buffer in value.buffers]
    file.write(np.array([len(sizes), len(value.head), *sizes], "int64").tobytes())
    file.write(value.head)
    for buffer in value.buffers:
        _pad(file)
        file.writelines([buffer] if isinstance(buffer, memoryview) else buffer)
    _pad(file)
    file.flush()


def _pad(file: BinaryIO) -> None:
    file.write(bytes(-file.tell() % ALIGNMENT))


def load(place: Stored, copy: bool = False) -> Any:
    """Read a value back from its file.

    With `copy` it is read into memory of its own, which returns to the system as soon as it is freed. Else large arrays
    are mapped, copy on write, and the file must exist for as long as they are used.
    """
    values = [pickle.loads(head, buffers=buffers) for head, buffers in contents(place, copy)]
    return values if place.many else values[0]


def contents(place: Stored, copy: bool = False) -> list[tuple[memoryview, list[memoryview]]]:
    """Read the raw sections, each as its pickle and its buffers; parameters are those of `load`."""
    with one_line(os.path.dirname(place.path)), open(place.path, "rb", buffering=0) as file:
        return [_sections(_view(file, start, stop, copy)) for start, stop in pairwise(place.starts.tolist())]


def resolve(handle: Any, copy: bool = False) -> Any:
    """The value of a handle, or of each handle in a list; anything else is its own value."""
    if isinstance(handle, list):
        return [resolve(item, copy) for item in handle]
    return handle.load(copy) if isinstance(handle, Handle | DelayedValue) else handle


def resolve_once(handles: list[Any], load: Callable[[Any], Any] = resolve) -> list[Any]:
    """The values of handles, whose list is emptied; a handle that occurs twice (a block in two roles) loads once."""
    values = {id(handle): load(handle) for handle in handles}
    numbers = [id(handle) for handle in handles]
    handles.clear()
    return [values[number] for number in numbers]


class ResultWriter(ABC):
    """Keeps results: small ones as they are, others wherever `hold` finds room for them, or in files."""

    small: int
    """Results of fewer bytes are kept as they are."""

    @abstractmethod
    def write(self, values: Iterable[Flat], many: bool) -> Stored:
        """Write a value, or with `many` the entries of a list, to a new file."""

    def hold(self, value: Any, nbytes: int) -> Handle | None:
        """Keep a value in memory and return its handle; None where there is no room."""
        return None

    def keep(self, value: Any) -> Any:
        """Return a result's handle, or a small result itself; an iterator's results go to one file as they are made."""
        if isinstance(value, Handle):
            return value
        if isinstance(value, Iterator):
            return self.write(map(flatten, value), True)
        is_sequence = type(value) in (list, tuple)
        values = [flatten(entry) for entry in (value if is_sequence else [value])]
        nbytes = sum(entry.nbytes for entry in values)
        if nbytes < self.small:  # a copy shares no memory with an array of which the value may be a slice
            copies = [
                pickle.loads(entry.head, buffers=[bytearray(buffer) for buffer in entry.buffers]) for entry in values
            ]
            return copies if is_sequence else copies[0]
        trim()
        return self.hold(value, nbytes) or self.write(values, is_sequence)


def _view(file: FileIO, start: int, stop: int, copy: bool) -> memoryview:
    size = stop - start
    if size >= MAPPED and not copy:
        first = start - start % mmap.ALLOCATIONGRANULARITY
        mapped_file = mmap.mmap(file.fileno(), stop - first, access=mmap.ACCESS_COPY, offset=first)
        return memoryview(mapped_file)[start - first :]
    view = memoryview(mmap.mmap(-1, size) if size >= OWN_PAGES else bytearray(size))
    file.seek(start)
    position = 0
    while position < size:
        count = file.readinto(view[position:])
        if not count:
            raise EOFError(f"{file.name} ends {plural(size - position, 'byte')} too early")
        position += count
    return view


def _sections(view: memoryview) -> tuple[memoryview, list[memoryview]]:
    count, head = np.frombuffer(view, "int64", 2).tolist()
    sizes = np.frombuffer(view, "int64", count, offset=16).tolist()
    place = 16 + 8 * count
    head_bytes, place = view[place : place + head], place + head
    buffers = []
    for size in sizes:
        place += -place % ALIGNMENT
        buffers.append(view[place : place + size])
        place += size
    return head_bytes, buffers
