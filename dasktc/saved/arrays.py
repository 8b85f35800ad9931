"""Files of raw arrays with checksums, which workers write and read in parallel, whole or in ranges.

    file        MAGIC, zeros up to byte 64, then the bytes of each array, each aligned to 64 bytes
    checksums   CRC-32 (`zlib.crc32`) of every CHUNK bytes of an array; the manifest has them

A range is read in whole chunks, so all bytes used have been compared with their checksums. The reading threads compare
while the bytes are in their cache, at 0.3 s per gigabyte and thread.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import zip_longest
from threading import Lock
from typing import Annotated, Any, BinaryIO, Generic, TypeVar
from uuid import uuid4

import numpy as np
from msgspec import Meta, Struct

from dasktc.backends import Backend, host_threads
from dasktc.backends.csr import on_host
from dasktc.backends.host_threads import in_threads, read_bytes
from dasktc.io.formats import streams
from dasktc.saved.folder import FILE, damaged, joined, writing

__all__ = ["CHUNK", "MAGIC", "MOST", "Count", "StoredArray", "read_array", "write_arrays"]

Array = Any
Kind = TypeVar("Kind", bound=str)
MOST = (1 << 63) - 1
"""Largest number of a manifest."""
Count = Annotated[int, Meta(ge=0, le=MOST)]
MAGIC = b"\x93DASKTC\n"
ALIGNMENT = 64
CHUNK = 1 << 20
"""Bytes of an array per checksum; divides the slabs of threads (`host_threads.SLAB`)."""
DIGITS = 8
"""Hexadecimal digits of a checksum."""


class StoredArray(Struct, Generic[Kind], frozen=True, forbid_unknown_fields=True):
    """A stored array: its place, its type, one of `Kind`, and its checksums; a record of the manifest."""

    file: Annotated[str, Meta(pattern=FILE)]
    """Name of its file in the graph's folder."""
    dtype: Kind
    length: Count
    """Number of elements."""
    start: Count
    """Offset of its first byte in the file."""
    crc32: Annotated[str, Meta(pattern=r"\A([0-9a-f]{8})*\Z")]
    """Eight hexadecimal digits per chunk."""

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes."""
        return self.length * np.dtype(self.dtype).itemsize

    @property
    def end(self) -> int:
        """Offset after the array and its padding, where the next array of the file begins."""
        return self.start + self.nbytes + -self.nbytes % ALIGNMENT


def write_arrays(folder: str, name: str, arrays: dict[str, Array | None]) -> dict[str, StoredArray[Any]]:
    """Write arrays of one dimension, of NumPy or CuPy, to a new file (`new_file`); those that are None are left out.

    `folder` is a path, or an fsspec URL. DasktcError: the file cannot be written.
    """
    host_arrays = {key: np.ascontiguousarray(on_host(array)) for key, array in arrays.items() if array is not None}
    records, start = dict[str, StoredArray[Any]](), ALIGNMENT
    lock = None if streams.is_remote(folder) else Lock()
    with new_file(joined(folder, name)) as file:
        file.write(MAGIC.ljust(ALIGNMENT, b"\0"))
        for key, array in host_arrays.items():
            data = array.astype(array.dtype.newbyteorder("<"), copy=False).view("u1")
            write = partial(_write_slab, file, lock, start, data)
            crc32 = in_threads(write, len(data)) if lock else map(write, range(0, len(data), host_threads.SLAB))
            records[key] = StoredArray(name, array.dtype.str[1:], len(array), start, "".join(crc32))
            _write_slab(file, lock, start + len(data), bytes(-len(data) % ALIGNMENT), 0)
            start = records[key].end
    return records


def _write_slab(file: BinaryIO, lock: Lock | None, start: int, data: Any, first: int) -> str:
    """Write bytes from `first` on, and return their checksums; a file without a lock is written in order."""
    slab = data[first : first + host_threads.SLAB]
    crc32 = _crc32(slab)
    with lock or nullcontext():
        if lock:
            file.seek(start + first)
        file.write(slab)
    return crc32


def _crc32(data: Any) -> str:
    """Return the checksums of bytes that begin a chunk, as hexadecimal digits."""
    return "".join(f"{zlib.crc32(data[start : start + CHUNK]):08x}" for start in range(0, len(data), CHUNK))


@contextmanager
def new_file(url: str) -> Iterator[BinaryIO]:
    """Yield a new file, which gets its name when it is complete and replaces a file of that name.

    DasktcError: it cannot be written.
    """
    with writing(url):
        if streams.is_remote(url):
            fs, path = streams.filesystem(url)
            with fs.open(path, "wb") as file:
                yield file
            return
        temporary = f"{url}.{uuid4().hex[:8]}"  # unique, because a task may run twice
        try:
            with open(temporary, "xb") as file:
                yield file
            os.replace(temporary, url)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


def read_array(
    folder: str,
    stored: StoredArray[Any],
    backend: Backend | None = None,
    first: int = 0,
    end: int | None = None,
    look: Callable[[Array], None] | None = None,
) -> Array:
    """Read elements `first` to `end` (default: all) of an array, and verify their checksums.

    They are read into the backend's memory, without a backend into the host's. `look` is called with the elements of
    each slab in host memory that lie in the range, in the threads that read the slabs.

    InputError: the file is missing, too short, or damaged.
    """
    dtype, url = np.dtype(stored.dtype), joined(folder, stored.file)
    begin, stop = first * dtype.itemsize, (stored.length if end is None else end) * dtype.itemsize
    base, last = begin // CHUNK * CHUNK, min(stored.nbytes, -(-stop // CHUNK) * CHUNK)
    if begin >= stop:
        return (backend.array if backend else np).empty(0, dtype=dtype)
    with streams.filling(url) as fill:

        def checked(buffer: Any, start: int) -> None:
            fill(buffer, stored.start + base + start)
            _compare(stored, url, buffer, base + start)
            if look is not None:
                entries = buffer[max(0, begin - base - start) : max(0, stop - base - start)]
                look(np.frombuffer(entries, dtype))

        data = (read_bytes if backend is None else backend.upload)(last - base, checked)
    part = data[begin - base : stop - base]
    return (part if len(part) == len(data) else part.copy()).view(dtype)


def _compare(record: StoredArray[Any], url: str, data: Any, start: int) -> None:
    """Verify the checksums of bytes read from offset `start`, the start of a chunk."""
    crc32 = _crc32(data)
    expected = record.crc32[start // CHUNK * DIGITS :][: len(crc32)]
    if crc32 != expected:
        digit = next(n for n, pair in enumerate(zip_longest(crc32, expected)) if pair[0] != pair[1])
        first = record.start + start + digit // DIGITS * CHUNK
        raise damaged(url, f"the bytes from {first:,} on have another checksum than those saved")
