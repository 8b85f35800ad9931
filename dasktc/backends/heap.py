"""Free memory of the C heap: reused by the calls of a count, and returned to the system afterwards.

glibc's malloc keeps memory that was freed. The calls of a count gain by it, for an array that is mapped anew is also
faulted in anew, page by page. A worker that `executors.connect` starts therefore keeps all of it (KEEPING), except
while a memory budget holds, when every call returns what it freed. Between counts it would only be lost to others, and
grow: messages of many sizes leave gaps in the heap of the thread that receives them. So it goes back SECONDS after a
call of a client, and on a worker when no call has ended for SECONDS.
"""

# A client that counted changing graphs on a cluster for ten minutes held 41 MB in the heap of the event loop's thread,
# 9 MB of them in use.

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

from dasktc.backends.idle import Idle

__all__ = ["KEEPING", "call_ended", "keep_nothing", "trim"]

SECONDS = 10.0
KEEPING = {"MALLOC_TRIM_THRESHOLD_": 1 << 30, "MALLOC_MMAP_MAX_": 0, "MALLOC_ARENA_MAX": 1, "MALLOC_TOP_PAD_": 1 << 26}
"""Environment of a worker; glibc's names: one heap for all threads, also for large arrays, which grows by 64 MiB and
keeps 1 GiB at its end."""
CHANGEABLE = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_TOP_PAD_": -2, "MALLOC_MMAP_MAX_": -4}
"""What `mallopt` changes in a running process, and its numbers."""
KEEPING_NOTHING = {"MALLOC_TRIM_THRESHOLD_": 1 << 16, "MALLOC_TOP_PAD_": 0, "MALLOC_MMAP_MAX_": 1 << 16}


def trim() -> None:
    """Have Arrow and glibc's malloc return free memory to the system."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with suppress(OSError, AttributeError, TypeError):  # Windows takes no None
        ctypes.CDLL(None).malloc_trim(0)


class _Kept:
    """Whether this process keeps memory that is freed; it never does unless it was started so.

    Attributes
    ----------
    started_so : bool
    now : bool
    """

    def __init__(self) -> None:
        self.now = self.started_so = all(os.environ.get(name) == str(value) for name, value in KEEPING.items())

    def change(self, to: bool) -> None:
        if not self.started_so or self.now == to:
            return
        self.now = to
        with suppress(OSError, AttributeError, TypeError):
            for name, value in (KEEPING if to else KEEPING_NOTHING).items():
                if name in CHANGEABLE:
                    ctypes.CDLL(None).mallopt(CHANGEABLE[name], value)


_kept = _Kept()


def keep_nothing() -> None:
    """Have this process return memory as it is freed, until no call has begun for a while: a budget holds."""
    _kept.change(False)


def _rest() -> None:
    trim()
    _kept.change(True)


_after_calls, _when_idle = Idle(SECONDS, trim, postponed=False), Idle(SECONDS, _rest)


def call_ended(on_worker: bool) -> None:
    """Note that an outermost call has ended: free memory will go back."""
    (_when_idle if on_worker else _after_calls).later()
