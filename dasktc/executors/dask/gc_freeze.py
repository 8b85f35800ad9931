"""Freezes objects that exist before the tasks, so that garbage collection does not stop the client and the scheduler.

A full collection visits all that was ever imported, Numba's and pandas' objects above all. It takes 0.1 to 0.3 s, again
and again while tasks and their results come and go. All workers wait that long for the client's process, where a local
scheduler lives too. Objects that exist before the tasks are not garbage, so the collector leaves them out.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["frozen_heap"]

FROZEN_AT_START = 1000
"""Most frozen objects of a process in which nobody froze any: Python 3.12 begins with 375."""


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Context within which garbage collection skips objects that existed before it.

    It does nothing where somebody else has already frozen objects, because only all objects can be unfrozen together.
    """
    is_unfrozen = gc.get_freeze_count() < FROZEN_AT_START
    if is_unfrozen:
        gc.freeze()
    try:
        yield
    finally:
        if is_unfrozen:
            gc.unfreeze()
