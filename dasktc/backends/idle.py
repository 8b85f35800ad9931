"""A thread that gives something back once calls have ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

__all__ = ["Idle"]


class Idle:
    """Calls a function, in a thread of its own, some seconds after calls have ended; its errors are ignored.

    With `postponed` each call that ends begins the waiting anew; else the function is called once in this time.
    """

    def __init__(self, seconds: float, function: Callable[[], None], postponed: bool = True) -> None:
        self._seconds, self._function, self._postponed = seconds, function, postponed
        self._wanted, self._at = threading.Event(), 0.0
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def later(self) -> None:
        """Note that a call has ended."""
        with self._lock:
            if self._postponed or not self._wanted.is_set():
                self._at = time.monotonic() + self._seconds
            self._wanted.set()
            if self._thread is None or not self._thread.is_alive():  # in a forked process it is not
                self._thread = threading.Thread(target=self._run, name="dasktc-idle", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._wanted.wait():
            while (rest := self._at - time.monotonic()) > 0:
                time.sleep(rest)
            self._wanted.clear()  # first, so that calls that end from now on have this thread wait once more
            with suppress(Exception):
                self._function()
