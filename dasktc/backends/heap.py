"""Free memory of the C heap: reused by the calls of a count, and returned to the system afterwards.

glibc's malloc keeps memory that was freed. The calls of a count gain by it, for an array that is mapped anew is also
faulted in anew, page by page. A worker that `executors.connect` starts therefore keeps all of it (KEEPING). Dask has
its workers trim (DASK_TRIM); such a worker keeps memory from its first call on, and trims again when no call has ended
for SECONDS. Values that a user set stay as they are, and while a memory budget holds every call returns what it freed.
A process that is no worker returns the memory of frames and keys between the steps of a large graph, for glibc itself
returns only what lies at the heap's end.
Between counts free memory would only be lost to others, and grow: messages of many sizes leave gaps in the heap of the
thread that receives them. So it goes back SECONDS after a call of a client, and on a worker when no call has ended for
SECONDS.
"""

# A client that counted changing graphs on a cluster for ten minutes held 41 MB in the heap of the event loop's thread,
# 9 MB of them in use.

from __future__ import annotations

import ctypes
import multiprocessing
import os
import sys
import threading
from contextlib import suppress

from dasktc.backends.idle import Idle

__all__ = [
    "DASK_TRIM", "KEEPING", "call_begins", "call_ended", "keep_nothing", "trim", "trim_arrow", "trim_between_steps",
]  # fmt: skip

SECONDS = 10.0
KEEPING = {"MALLOC_TRIM_THRESHOLD_": 1 << 30, "MALLOC_MMAP_MAX_": 0, "MALLOC_ARENA_MAX": 1, "MALLOC_TOP_PAD_": 1 << 26}
"""Environment of a worker; glibc's names: one heap for all threads, also for large arrays, which grows by 64 MiB and
keeps 1 GiB at its end."""
DASK_TRIM = 1 << 16
"""Dask's MALLOC_TRIM_THRESHOLD_ for the workers of a nanny."""
CHANGEABLE = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_TOP_PAD_": -2, "MALLOC_MMAP_MAX_": -4}
"""What `mallopt` changes in a running process, and its numbers."""
TRIMMING = {"MALLOC_TRIM_THRESHOLD_": DASK_TRIM, "MALLOC_TOP_PAD_": 1 << 17, "MALLOC_MMAP_MAX_": 1 << 16}
"""Dask's threshold beside glibc's own values."""
KEEPING_NOTHING = {**TRIMMING, "MALLOC_TOP_PAD_": 0}


def trim_arrow() -> None:
    """Have Arrow return free memory to the system, which malloc cannot use."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()


def trim() -> None:
    """Have Arrow and glibc's malloc return free memory to the system."""
    trim_arrow()
    with suppress(OSError, AttributeError, TypeError):  # Windows takes no None
        ctypes.CDLL(None).malloc_trim(0)


class _Malloc:
    """How this process's malloc treats memory that is freed, and how many calls it serves.

    Attributes
    ----------
    started : dict or None
        Values between counts, which the process was started with; None: a user's own, which stay.
    values : dict or None
        Values now.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls, self._budget = 0, False
        self.values = self.started = _started_with()

    def begin(self) -> None:
        """Keep freed memory, unless a budget holds."""
        with self._lock:
            self._calls += 1
            if not self._budget:
                self._change(KEEPING)

    def end(self) -> None:
        with self._lock:
            self._calls -= 1

    def limit(self) -> None:
        """Keep nothing, until calls have ended: a budget holds."""
        with self._lock:
            self._budget = True
            self._change(KEEPING_NOTHING)

    def rest(self) -> None:
        """Return to the values between counts, unless a call runs."""
        with self._lock:
            if not self._calls and self.started is not None:
                self._budget = False
                self._change(self.started)

    def _change(self, values: dict[str, int]) -> None:
        if self.values is None or self.values == values:
            return
        self.values = values
        with suppress(OSError, AttributeError, TypeError):
            for name, number in CHANGEABLE.items():
                ctypes.CDLL(None).mallopt(number, values[name])


def _started_with() -> dict[str, int] | None:
    """Return malloc's values in a worker that was started with KEEPING or by Dask; None: any other process.

    A nanny also leaves Dask's value in its own process, which was not started with it and may be a user's program; its
    workers are child processes.
    """
    settings = {name: os.environ[name] for name in KEEPING if name in os.environ}
    if settings == {name: str(value) for name, value in KEEPING.items()}:
        return KEEPING
    threshold, *_ = KEEPING
    return TRIMMING if settings == {threshold: str(DASK_TRIM)} and multiprocessing.parent_process() else None


_malloc = _Malloc()


def trim_between_steps() -> None:
    """Have what one step of a count freed go back before the next takes memory, unless this process keeps it."""
    if _malloc.values != KEEPING:
        trim()


def keep_nothing() -> None:
    """Have this process return memory as it is freed, until no call has begun for a while: a budget holds."""
    _malloc.limit()


def _rest() -> None:
    _malloc.rest()
    trim()


_after_calls, _when_idle = Idle(SECONDS, trim, postponed=False), Idle(SECONDS, _rest)


def call_begins(on_worker: bool) -> None:
    """Note that an outermost call begins: on a worker, memory that it frees is kept."""
    if on_worker:
        _malloc.begin()


def call_ended(on_worker: bool) -> None:
    """Note that an outermost call has ended: free memory will go back."""
    if on_worker:
        _malloc.end()
    (_when_idle if on_worker else _after_calls).later()
