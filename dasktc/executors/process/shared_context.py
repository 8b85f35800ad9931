"""A context of the whole process, such as a setting of Dask or log handlers, that several users share.

With a context each, every user would restore what it found; where they do not end in reverse order, the last one would
restore another's setting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["SharedContext"]


class SharedContext:
    """A context, made by `make`, that is entered with its first user and left with its last, in whichever threads."""

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make, self._lock, self._users = make, threading.RLock(), 0
        self._entered: AbstractContextManager[Any] | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._entered is None:
                context = self._make()
                context.__enter__()
                self._entered = context
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users and self._entered is not None:
                context, self._entered = self._entered, None
                context.__exit__(None, None, None)
