"""Files of raw arrays with checksums, which workers write and read in parallel, whole or in ranges.

    file        MAGIC, zeros up to byte 64, then the bytes of each array, each aligned to 64 bytes
    checksums   CRC-32 (`zlib.crc32`) of every CHUNK bytes of an array; the caller stores them beside the files

A range is read in whole chunks, so all bytes used have been compared with their checksums. The reading threads compare
while the bytes are in their cache, at 0.3 s per gigabyte and thread.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from dasktc.backends import Backend, host_threads
from dasktc.backends.csr import on_host
from dasktc.backends.host_threads import in_threads, read_bytes
from dasktc.errors import DasktcError, InputError
from dasktc.io.formats import streams
from dasktc.wording import plural

__all__ = ["CHUNK", "MAGIC", "StoredArray", "read_array", "write_arrays"]

Array = Any
MAGIC = b"\x93DASKTC\n"
ALIGNMENT = 64
CHUNK = 1 << 20
"""Bytes of an array per checksum; divides the slabs of threads (`host_threads.SLAB`)."""
DIGITS = 8
"""Hexadecimal digits of a checksum."""


class StoredArray(NamedTuple):
    """Location of a stored array: its file, offset, type and checksums.

    Attributes
    ----------
    url : str
        Path or fsspec URL of its file.
    dtype : str
    length : int
        Number of elements.
    start : int
        Offset of its first byte in the file.
    checksums : str
        Eight hexadecimal digits per chunk.
    """

    url: str
    dtype: str
    length: int
    start: int
    checksums: str

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes."""
        return self.length * np.dtype(self.dtype).itemsize

    @property
    def end(self) -> int:
        """Offset after the array and its padding, where the next array of the file begins."""
        return self.start + self.nbytes + -self.nbytes % ALIGNMENT


def write_arrays(url: str, arrays: dict[str, Array]) -> dict[str, StoredArray]:
    """Write arrays to a new file, which gets its name when it is complete and replaces a file of that name.

    Parameters
    ----------
    url : str
        A path, or an fsspec URL.
    arrays : dict of str to array
        One-dimensional NumPy or CuPy arrays.

    Raises
    ------
    DasktcError
        The file cannot be written.
    """
    hosted = {name: _little_endian(np.ascontiguousarray(on_host(array))) for name, array in arrays.items()}
    places, start = dict[str, StoredArray](), ALIGNMENT
    for name, array in hosted.items():
        places[name] = StoredArray(url, array.dtype.str[1:], len(array), start, "")
        start = places[name].end
    try:
        with _writing(url, start) as write:
            write(MAGIC.ljust(ALIGNMENT, b"\0"), 0)
            for name, array in hosted.items():
                checksums = _written(write, array.view("u1"), places[name].start, in_order=streams.is_remote(url))
                places[name] = places[name]._replace(checksums=checksums)
    except InputError:
        raise
    except Exception as error:  # remote file systems raise the types of their libraries
        reason = getattr(error, "strerror", None) or error
        raise DasktcError(
            f"{url} cannot be written: {reason}; choose a place with free space that all workers see"
        ) from error
    return places


def _little_endian(array: Array) -> Array:
    return array if sys.byteorder == "little" else array.astype(array.dtype.newbyteorder("<"))


def _written(write: Callable[[Any, int], None], data: Array, start: int, in_order: bool) -> str:
    """Write bytes and return their checksums."""

    def one(first: int) -> str:
        part = data[first : first + host_threads.SLAB]
        write(part, start + first)
        return "".join(f"{value:08x}" for value in _checksums(part))

    return "".join(map(one, range(0, len(data), host_threads.SLAB)) if in_order else in_threads(one, len(data)))


@contextmanager
def _writing(url: str, nbytes: int) -> Iterator[Callable[[Any, int], None]]:
    """Yield a function that writes bytes at an offset of a new file: in any order if it is local, else in sequence."""
    if streams.is_remote(url):
        fs, path = streams.filesystem(url)
        with fs.open(path, "wb") as file:

            def append(data: Any, start: int) -> None:
                file.write(bytes(start - file.tell()))
                file.write(data)

            yield append
            file.write(bytes(nbytes - file.tell()))
        return
    temporary = f"{url}.{uuid4().hex[:8]}"  # unique, because a task may run twice

    def write(data: Any, start: int) -> None:
        with open(temporary, "r+b", buffering=0) as file:
            file.seek(start)
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]

    try:
        with open(temporary, "xb") as file:
            file.truncate(nbytes)
        yield write
        os.replace(temporary, url)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def read_array(
    place: StoredArray,
    backend: Backend | None = None,
    first: int = 0,
    end: int | None = None,
    look: Callable[[Array], None] | None = None,
) -> Array:
    """Read elements `first` to `end` of an array into the backend's memory and verify their checksums.

    Without a backend they are read into host memory.

    Parameters
    ----------
    place : StoredArray
    backend : Backend, optional
    first, end : int
        Default: all.
    look : callable (array), optional
        Called with the elements of each slab in host memory that lie in the range, in the threads that read the slabs.

    Returns
    -------
    array of the backend

    Raises
    ------
    InputError
        The file is missing, too short, or damaged.
    """
    dtype = np.dtype(place.dtype)
    begin, stop = first * dtype.itemsize, (place.length if end is None else end) * dtype.itemsize
    base, last = begin // CHUNK * CHUNK, min(place.nbytes, -(-stop // CHUNK) * CHUNK)
    if begin >= stop:
        return (backend.array if backend else np).empty(0, dtype=dtype)
    fill = _reader(place.url)

    def checked(buffer: Any, start: int) -> None:
        fill(buffer, place.start + base + start)
        _compare(place, buffer, base + start)
        if look is not None:
            inside = buffer[max(0, begin - base - start) : max(0, stop - base - start)]
            look(np.frombuffer(inside, dtype))

    data = (read_bytes if backend is None else backend.upload)(last - base, checked)
    part = data[begin - base : stop - base]
    return (part if len(part) == len(data) else part.copy()).view(dtype)


def _reader(url: str) -> Callable[[Any, int], None]:
    """Return a thread-safe function that reads bytes of a file at an offset into a buffer."""
    if streams.is_remote(url):
        fs, path = streams.filesystem(url)

    def fill(buffer: Any, start: int) -> None:
        view = memoryview(buffer)
        with streams.naming(url):
            if streams.is_remote(url):
                data = fs.cat_file(path, start=start, end=start + len(view))
                if len(data) > len(view):  # a plain web server may send all of a file, whatever was asked for
                    data = data[start : start + len(view)]
                view[: len(data)], view = data, view[len(data) :]
            else:
                with open(url, "rb", buffering=0) as file:
                    file.seek(start)
                    while view and (read := file.readinto(view)):
                        view = view[read:]
        if view:
            raise InputError(
                f"{url} is damaged: it ends at least {plural(len(view), 'byte')} too early; fetch it again"
            )

    return fill


def _checksums(data: Any) -> Iterator[int]:
    return (zlib.crc32(data[start : start + CHUNK]) for start in range(0, len(data), CHUNK))


def _compare(place: StoredArray, data: Any, start: int) -> None:
    """Verify the checksums of bytes read from offset `start`, the start of a chunk."""
    for number, checksum in enumerate(_checksums(data), start // CHUNK):
        if f"{checksum:08x}" != place.checksums[number * DIGITS : (number + 1) * DIGITS]:
            at = place.start + number * CHUNK
            raise InputError(
                f"{place.url} is damaged: the bytes from {at:,} on have another checksum than those saved; "
                "fetch it again, or save the graph again"
            )
