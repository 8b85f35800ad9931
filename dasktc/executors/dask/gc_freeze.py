"""Freezes objects that existed before the tasks, so that garbage collection does not stop client and scheduler.

A full collection looks at all that was ever imported, Numba's and pandas' objects above all: 0.1 to 0.3 s, again and
again while tasks and their results come and go. In the client's process, where a local scheduler lives too, all workers
wait that long. What is there before the tasks is not garbage, so it is left out.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["frozen_heap"]

FROZEN_AT_START = 1000
"""Frozen objects up to which nobody froze any: Python 3.12 begins with 375."""


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Within this context garbage collection skips objects that existed before it.

    Nothing is done where somebody else has frozen objects already, for only all can be given back.
    """
    ours = gc.get_freeze_count() < FROZEN_AT_START
    if ours:
        gc.freeze()
    try:
        yield
    finally:
        if ours:
            gc.unfreeze()
