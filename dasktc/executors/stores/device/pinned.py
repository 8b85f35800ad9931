"""Pinned host memory in slabs, between which and the device copies run asynchronously."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import cupy as cp
import numpy as np

__all__ = ["STAGING", "Pinned", "Slab", "Slabs"]

STAGING = 3
"""Slabs that bytes pass through between files and the device, for stages; prefetching has as many of its own."""


@dataclass(eq=False)
class Slab:
    """A buffer, and the event of the last copy from or to it."""

    memory: Any
    event: Any = field(default_factory=lambda: cp.cuda.Event(disable_timing=True))

    def wait(self) -> Any:
        """Wait until no copy uses the buffer, and return its bytes."""
        self.event.synchronize()
        return self.memory


class Pinned:
    """A pool of slabs in pinned memory: made on demand, reused, and finally returned to CuPy's pinned memory pool.

    That pool keeps the memory pinned for the next run of this process.

    Parameters
    ----------
    budget : int
        Bound of the bytes of all slabs; slabs for staging are made whatever it is.
    slab_bytes : int
        Size of each slab.

    Attributes
    ----------
    total : int
        Number of slabs, those in use included.
    """

    def __init__(self, budget: int, slab_bytes: int) -> None:
        self.slab_bytes, self._budget, self._free = slab_bytes, budget, list[Slab]()
        self.total = 0
        self.staging, self.staging_ahead = (itertools.cycle([self._new() for _ in range(STAGING)]) for _ in range(2))

    def _new(self) -> Slab:
        slab = Slab(np.frombuffer(cp.cuda.alloc_pinned_memory(self.slab_bytes), np.uint8, self.slab_bytes))
        self.total += 1
        return slab

    def take(self, size: int) -> Slabs | None:
        """Take slabs for `size` bytes; None beyond the budget, or where the host cannot pin more memory."""
        slabs = -(-size // self.slab_bytes)
        if (self.total - len(self._free) + slabs) * self.slab_bytes > self._budget:
            return None
        try:
            while len(self._free) < slabs:
                self._free.append(self._new())
        except (MemoryError, cp.cuda.runtime.CUDARuntimeError):
            return None
        return Slabs(self, [self._free.pop() for _ in range(slabs)])

    def give_back(self, slabs: list[Slab]) -> None:
        """Return slabs for reuse."""
        self._free += slabs


class Slabs:
    """Consecutive slabs that hold results; they return to the pool of slabs when the last reference goes."""

    def __init__(self, pinned: Pinned, slabs: list[Slab]) -> None:
        self._pinned, self._slabs = pinned, slabs

    def __del__(self) -> None:
        self._pinned.give_back(self._slabs)

    def wait(self) -> None:
        """Wait until no copy uses these slabs."""
        for slab in self._slabs:
            slab.wait()

    def copied(self, start: int, size: int) -> Any:
        """Copy `size` bytes from offset `start` into one contiguous array."""
        spans = [slab.wait()[first:last] for slab, first, last in self.spans(start, size)]
        return np.concatenate(spans) if spans else np.empty(0, np.uint8)

    def spans(self, start: int, size: int) -> Iterator[tuple[Slab, int, int]]:
        """Yield the slabs that hold `size` bytes from offset `start`, and the range of these bytes in each."""
        end, slab_bytes = start + size, self._pinned.slab_bytes
        while start < end:
            number, first = divmod(start, slab_bytes)
            last = min(slab_bytes, first + end - start)
            yield self._slabs[number], first, last
            start += last - first
