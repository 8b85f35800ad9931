"""Pinned memory of the host, in slabs: copies to and from it run beside everything else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import cupy as cp
import numpy as np

__all__ = ["SLAB", "STAGING", "Pinned", "Slab", "Slabs"]

SLAB = 1 << 24
"""Bytes of a slab: copying one takes 0.3 ms, and a result wastes half a one."""
STAGING = 3
"""Slabs that bytes pass through on their way between files and the device: of stages, and as many of tasks ahead."""


@dataclass(eq=False)
class Slab:
    """A buffer of SLAB bytes, and the event of the last copy from it, or to it."""

    memory: Any
    used: Any = field(default_factory=lambda: cp.cuda.Event(disable_timing=True))

    def wait(self) -> Any:
        """Its bytes, which no copy uses any more."""
        self.used.synchronize()
        return self.memory


class Pinned:
    """Slabs of pinned memory: made when they are needed, used again and again, given back to CuPy's pool at the end.

    That pool keeps them pinned for the next run of this process.

    `budget` is bytes of all slabs; those of staging are made whatever it is.
    """

    def __init__(self, budget: int) -> None:
        self._budget, self._free = budget, list[Slab]()
        self.made = 0
        self.staging, self.staging_ahead = (itertools.cycle([self._new() for _ in range(STAGING)]) for _ in range(2))

    def _new(self) -> Slab:
        slab = Slab(np.frombuffer(cp.cuda.alloc_pinned_memory(SLAB), np.uint8, SLAB))
        self.made += 1
        return slab

    def take(self, size: int) -> Slabs | None:
        """Slabs for so many bytes; None beyond the budget, or where the host has no more memory to pin."""
        wanted = -(-size // SLAB)
        if (self.made - len(self._free) + wanted) * SLAB > self._budget:
            return None
        try:
            while len(self._free) < wanted:
                self._free.append(self._new())
        except (MemoryError, cp.cuda.runtime.CUDARuntimeError):
            return None
        return Slabs(self, [self._free.pop() for _ in range(wanted)])

    def give_back(self, slabs: list[Slab]) -> None:
        """Return slabs to be used again."""
        self._free += slabs


class Slabs:
    """Consecutive slabs that hold results; they return to the pool of slabs when the last reference goes."""

    def __init__(self, pinned: Pinned, slabs: list[Slab]) -> None:
        self._pinned, self._slabs = pinned, slabs

    def __del__(self) -> None:
        self._pinned.give_back(self._slabs)

    def wait(self) -> None:
        """Return when no copy uses them any more."""
        for slab in self._slabs:
            slab.wait()

    def copied(self, start: int, size: int) -> Any:
        """A contiguous copy of so many bytes from there."""
        spans = [slab.wait()[first:last] for slab, first, last in self.spans(start, size)]
        return np.concatenate(spans) if spans else np.empty(0, np.uint8)

    def spans(self, start: int, size: int) -> Iterator[tuple[Slab, int, int]]:
        """Yield the slabs that hold so many bytes from there, and which of their bytes these are."""
        end = start + size
        while start < end:
            number, first = divmod(start, SLAB)
            last = min(SLAB, first + end - start)
            yield self._slabs[number], first, last
            start += last - first
