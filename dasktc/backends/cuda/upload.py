"""Copies bytes of files to the device through pinned memory; several threads read while chunks are copied.

From pageable memory the driver copies at a third of the rate, and one thread reads a file from the page cache at a
tenth of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

import cupy as cp
import numpy as np

from dasktc.backends.csr import Array

__all__ = ["Uploader"]

COPIES = 2
"""Copies under way before the next waits for one."""
READERS = 8
"""Most reading threads."""


class Uploader:
    """Copies bytes to the device through pinned memory, which is allocated on first use and kept.

    Parameters
    ----------
    slab_bytes : int
        Bytes of a chunk, which is read and copied as one.
    slabs : int
        Most chunks in pinned memory: some are read while others are copied.
    """

    def __init__(self, slab_bytes: int = 1 << 23, slabs: int = 12) -> None:
        self._slab_bytes, self._most_slabs = slab_bytes, slabs
        self._slabs, self._lock = list[tuple[Any, Any]](), Lock()

    def __call__(self, size: int, fill: Callable[[Any, int], None]) -> Array:
        """Copy `size` bytes that `fill` reads.

        Parameters
        ----------
        size : int
        fill : callable (buffer, start)
            Writes bytes, from offset `start` on, into a NumPy array of uint8. Called in several threads.

        Returns
        -------
        cupy.ndarray of uint8, shape (size,)
            Complete for later work on the current stream.
        """
        if size <= self._slab_bytes:
            host = np.empty(size, np.uint8)
            fill(host, 0)
            return cp.asarray(host)
        target = cp.empty(size, dtype="uint8")
        with self._lock, ThreadPoolExecutor(min(READERS, len(os.sched_getaffinity(0)))) as readers:
            while len(self._slabs) < min(self._most_slabs, -(-size // self._slab_bytes)):
                memory = np.frombuffer(cp.cuda.alloc_pinned_memory(self._slab_bytes), np.uint8, self._slab_bytes)
                self._slabs.append((memory, cp.cuda.Event(disable_timing=True)))
            self._copy(target, fill, readers)
        return target

    def _copy(self, target: Array, fill: Callable[[Any, int], None], readers: ThreadPoolExecutor) -> None:
        def read(number: int) -> Any:
            memory = self._slabs[number % slabs][0][: len(target) - number * slab_bytes]
            fill(memory, number * slab_bytes)
            return memory

        def submit(number: int) -> None:
            if number < count:
                self._slabs[number % slabs][1].synchronize()  # in this thread: others would use the first device
                reads.append(readers.submit(read, number))

        slab_bytes, slabs, stream = self._slab_bytes, len(self._slabs), cp.cuda.get_current_stream()
        count, lag, reads = -(-len(target) // slab_bytes), min(COPIES, slabs - 1), list[Future[Any]]()
        # A slab is read into again `lag` copies after its own was queued, which has most likely ended by then.
        for number in range(slabs):
            submit(number)
        for number in range(count):
            memory = reads[number].result()
            target[number * slab_bytes : number * slab_bytes + len(memory)].set(memory, stream=stream)
            self._slabs[number % slabs][1].record(stream)
            if number >= lag:
                submit(number - lag + slabs)
