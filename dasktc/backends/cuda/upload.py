"""Bytes of files copied to the device through pinned memory: several threads read while what they have read is copied.

From pageable memory the driver copies at a third of the rate, and one thread reads a file that the system has in memory
at a tenth of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import cupy as cp
import numpy as np

from dasktc.backends.csr import Array

__all__ = ["Uploader"]

SLAB = 1 << 23
"""Bytes that are read and copied together."""
SLABS = 12
"""Most of them in pinned memory: some are read while others are copied."""
READERS = 8
"""Most threads that read."""


class Uploader:
    """Copies bytes to the device; its pinned memory is made when it is first needed, and kept."""

    def __init__(self) -> None:
        self._slabs, self._lock = list[tuple[Any, Any]](), Lock()

    def __call__(self, size: int, fill: Callable[[Any, int], None]) -> Array:
        """Copy bytes that somebody reads.

        Parameters
        ----------
        size : int
        fill : callable (buffer, start)
            Writes the bytes from `start` on into a NumPy array of uint8. Called in several threads.

        Returns
        -------
        cupy.ndarray of uint8, shape (size,)
            Complete for what comes next on the current stream.
        """
        if size <= SLAB:
            host = np.empty(size, np.uint8)
            fill(host, 0)
            return cp.asarray(host)
        target = cp.empty(size, dtype="uint8")
        with self._lock, ThreadPoolExecutor(min(READERS, len(os.sched_getaffinity(0)))) as readers:
            while len(self._slabs) < min(SLABS, -(-size // SLAB)):
                memory = np.frombuffer(cp.cuda.alloc_pinned_memory(SLAB), np.uint8, SLAB)
                self._slabs.append((memory, cp.cuda.Event(disable_timing=True)))
            self._copy(target, fill, readers)
        return target

    def _copy(self, target: Array, fill: Callable[[Any, int], None], readers: ThreadPoolExecutor) -> None:
        def read(number: int) -> Any:
            memory, copied = self._slabs[number % len(self._slabs)]
            copied.synchronize()
            memory = memory[: len(target) - number * SLAB]
            fill(memory, number * SLAB)
            return memory

        count, stream = -(-len(target) // SLAB), cp.cuda.get_current_stream()
        ahead = [readers.submit(read, number) for number in range(min(len(self._slabs), count))]
        for number in range(count):
            memory = ahead[number].result()
            target[number * SLAB : number * SLAB + len(memory)].set(memory, stream=stream)
            self._slabs[number % len(self._slabs)][1].record(stream)
            if number + len(self._slabs) < count:
                ahead.append(readers.submit(read, number + len(self._slabs)))
