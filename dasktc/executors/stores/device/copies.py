"""Copies values between device memory, pinned host memory and files, on the current stream or ahead on a copy stream.

Off the device a value is its pickle without the device arrays; the arrays are in slabs of pinned memory, or in a file
that is written slab by slab. Results leave for pinned memory on a stream of their own, while the next call computes;
their device memory is held until they have left (`settle`). A stage's inputs are copied on the current stream, in order
with its other work, or ahead of it on the copy stream, into memory of the current one (`fetch`). Blocks of counting
tasks are prefetched on the copy stream; the current stream waits for an event after each copy. RMM may reuse memory on
its stream as soon as it is freed there, so `fence` makes the copy stream wait for all work that the current stream was
given before.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from dasktc.backends.csr import Array
from dasktc.executors.stores.device.handles import Hosted
from dasktc.executors.stores.device.packing import Packed, unpack
from dasktc.executors.stores.device.pinned import Pinned, Slab, Slabs
from dasktc.executors.stores.device.tuning import TUNING, Tuning
from dasktc.executors.stores.value_files import Stored, contents

__all__ = ["Arrival", "Copied", "DeviceCopier"]

READERS = 4
"""Threads that fill a slab of pinned memory from a mapped file."""


@dataclass(frozen=True, eq=False)
class Copied:
    """A value in pinned memory: its pickle, and the offset of each of its arrays in the slabs."""

    head: bytes
    starts: list[int]
    slabs: Slabs
    nbytes: int

    def buffers(self) -> list[Any]:
        """Copy the bytes of each array out of the slabs."""
        ends = [*self.starts[1:], self.starts[0] + self.nbytes] if self.starts else []
        return [self.slabs.copied(start, end - start) for start, end in zip(self.starts, ends, strict=True)]


class _Streamed:
    """A device array that is written to a file in chunks, each through a slab of pinned memory."""

    def __init__(self, copies: DeviceCopier, array: Array) -> None:
        self._copies, self._array, self.nbytes = copies, array, int(array.nbytes)

    def __iter__(self) -> Iterator[memoryview]:
        return self._copies.to_staging(self._array)


class _Departure(NamedTuple):
    """Arrays that are being copied off the device, and the event that follows their copies."""

    arrays: list[Array]
    event: Any
    nbytes: int


class Arrival(NamedTuple):
    """A value whose copies to the device are queued; events precede and follow them on the copy stream."""

    value: Any
    start: Any
    end: Any
    nbytes: int


class DeviceCopier:
    """Copies values off the device, to at most `host` bytes of pinned memory or to files, and back.

    Attributes
    ----------
    sent, received : int
        Bytes copied to the host, and back to the device.
    """

    def __init__(self, host: int, tuning: Tuning = TUNING) -> None:
        self.pinned, self._shared_fill = Pinned(host, tuning.slab), tuning.shared_fill
        self.stream, self._outward_stream = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
        self._departures = deque[_Departure]()
        self.sent = self.received = 0
        self._device = cp.cuda.Device()
        self._readers = ThreadPoolExecutor(READERS, "dasktc-fill")

    # off the device

    def to_host(self, values: list[Packed]) -> list[Copied] | None:
        """Begin to copy values to slabs of pinned memory; return None where they do not fit there.

        Readers of the slabs wait for the copies; a caller that needs the device memory calls `settle`.
        """
        sizes = [[int(array.nbytes) for array in value.arrays] for value in values]
        heads = sum(len(value.head) for value in values)
        slabs = self.pinned.take(sum(map(sum, sizes)) + (heads if heads > self.pinned.slab_bytes >> 8 else 0))
        if slabs is None:
            return None
        slabs.wait()
        result, start = [], 0
        arrays = [_bytes(array) for value in values for array in value.arrays]
        self._outward_stream.wait_event(cp.cuda.get_current_stream().record(_event()))
        iterator = iter(arrays)
        for value, size in zip(values, sizes, strict=True):
            starts = list(itertools.accumulate(size, initial=start))
            for place in starts[:-1]:
                self._to_slabs(next(iterator), slabs, place)
            result.append(Copied(value.head, starts[:-1], slabs, sum(size)))
            start = starts[-1]
        if start:  # else nothing leaves, which `settle` would report for ever
            self._departures.append(_Departure(arrays, self._outward_stream.record(_event()), start))
        self.sent += start
        return result

    def _to_slabs(self, data: Array, slabs: Slabs, start: int) -> None:
        place = 0
        for slab, first, last in slabs.spans(start, len(data)):
            self._download(data[place : place + last - first], slab, slab.memory[first:last], self._outward_stream)
            place += last - first

    def __del__(self) -> None:
        with suppress(Exception):  # the device is gone
            self.settle()

    def settle(self, limit: int = 0) -> bool:
        """Wait until at most `limit` bytes on the device are still being copied off it; return whether any were."""
        was_busy = bool(self._departures)
        copies = self._departures
        while copies and (sum(copy.nbytes for copy in copies) > limit or copies[0].event.done):
            copies[0].event.synchronize()
            copies.popleft()
        return was_busy

    def streamed(self, packed: Packed) -> list[Any]:
        """Return the arrays as chunked buffers, for the writer of a file."""
        return [_Streamed(self, array) for array in packed.arrays]

    def to_staging(self, array: Array) -> Iterator[memoryview]:
        """Copy an array to the host in chunks, double-buffered: the next chunk is copied while one is used."""
        data, queue, step = _bytes(array), list[tuple[Slab, int]](), self.pinned.slab_bytes
        for place in range(0, len(data), step):
            part, slab = data[place : place + step], next(self.pinned.staging)
            self._download(part, slab, slab.wait()[: len(part)], cp.cuda.get_current_stream())
            self.sent += len(part)
            queue.append((slab, len(part)))
            if len(queue) > 1:
                yield _wait_for(*queue.pop(0))
        for slab, size in queue:
            yield _wait_for(slab, size)

    def _download(self, part: Array, slab: Slab, memory: Any, stream: Any) -> None:
        part.get(stream=stream, out=memory, blocking=False)
        slab.event.record(stream)

    # to the device

    def load(self, place: Copied | Stored | Hosted) -> Any:
        """Copy a value to the device, on the current stream."""
        return self._load(place, cp.cuda.get_current_stream())

    def bring(self, place: Copied | Stored | Hosted) -> Arrival:
        """Queue the copies of a value to the device on the copy stream, and return at once."""
        with self._device, self.stream:
            start, end = cp.cuda.Event(), cp.cuda.Event()
            start.record(self.stream)
            value = self._load(place, self.stream)
            end.record(self.stream)
        return Arrival(value, start, end, place.nbytes)

    def fetch(self, place: Copied) -> Arrival:
        """As `bring`, into memory of the current stream, which can be freed when that stream no longer uses it."""
        current = cp.cuda.get_current_stream()
        self.stream.wait_event(current.record(_event()))
        try:
            value = self._load(place, self.stream)
        except MemoryError:
            current.wait_event(self.stream.record(_event()))  # memory already allocated is freed only after the copies
            raise
        return Arrival(value, None, self.stream.record(_event()), place.nbytes)

    def wait(self, arrivals: Iterable[Arrival]) -> None:
        """Make later work on the current stream wait for these copies."""
        for arrival in arrivals:
            cp.cuda.get_current_stream().wait_event(arrival.end)

    def moment(self) -> Any:
        """Record an event on the current stream."""
        return cp.cuda.get_current_stream().record(cp.cuda.Event())

    def seconds(self, start: Any, end: Any) -> float:
        """Seconds between two recorded events; waits for the second."""
        end.synchronize()
        return float(cp.cuda.get_elapsed_time(start, end)) / 1e3

    def fence(self) -> None:
        """Make later work on the copy stream wait for all work that the current stream was given before."""
        self.stream.wait_event(cp.cuda.get_current_stream().record(_event()))

    def _load(self, place: Copied | Stored | Hosted, stream: Any) -> Any:
        self.received += place.nbytes
        if isinstance(place, Stored):
            values = [self._from_file(head, arrays, stream) for head, arrays in contents(place)]
            return values if place.many else values[0]

        if isinstance(place, Hosted):
            return self._from_file(place.head, place.buffers, stream)

        def array(number: int, dtype: Any, shape: tuple[int, ...]) -> Array:
            target, position = _empty(dtype, shape), 0
            for slab, first, last in place.slabs.spans(place.starts[number], len(target)):
                stream.wait_event(slab.event)
                target[position : position + last - first].set(slab.memory[first:last], stream=stream)
                slab.event.record(stream)
                position += last - first
            return target.view(dtype).reshape(shape)

        return unpack(place.head, array)

    def _fill(self, memory: Any, part: Any) -> None:
        """Copy host memory with several threads, because one is slower than the link to the device."""
        if len(part) < self._shared_fill:
            np.copyto(memory, part)
            return
        chunks = zip(np.array_split(memory, READERS), np.array_split(part, READERS), strict=True)
        list(self._readers.map(lambda pair: np.copyto(*pair), chunks))

    def _from_file(self, head: Any, arrays: list[Any], stream: Any) -> Any:
        staging = self.pinned.staging_ahead if stream is self.stream else self.pinned.staging
        step = self.pinned.slab_bytes

        def array(number: int, dtype: Any, shape: tuple[int, ...]) -> Array:
            target, data = _empty(dtype, shape), np.frombuffer(arrays[number], np.uint8)
            for position in range(0, len(target), step):
                part, slab = data[position : position + step], next(staging)
                memory = slab.wait()[: len(part)]
                self._fill(memory, part)
                target[position : position + len(part)].set(memory, stream=stream)
                slab.event.record(stream)
            return target.view(dtype).reshape(shape)

        return unpack(bytes(head), array)


def _wait_for(slab: Slab, size: int) -> memoryview:
    return memoryview(slab.wait()[:size])


def _event() -> Any:
    return cp.cuda.Event(disable_timing=True)


def _bytes(array: Array) -> Array:
    return cp.ascontiguousarray(array).ravel().view("uint8")


def _empty(dtype: Any, shape: tuple[int, ...]) -> Array:
    return cp.empty(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize, dtype="uint8")
