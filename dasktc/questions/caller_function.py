"""Functions of the caller, which run wherever the blocks are, and must not end the process that calls them.

`sys.exit` and Ctrl-C are exceptions that are not `Exception`: a worker of Dask ends with them, as if it had died, and
its task would be submitted again, to end the next one. Here they are errors of the function. Those that a signal
raises, between two instructions of the function in a main thread, are the process's, and pass: there Ctrl-C is never
an error, and an exit is not where a signal's handler raised it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from traceback import walk_tb
from types import TracebackType
from typing import Any

from dasktc.errors import InputError

__all__ = ["CallerFunction", "name_of"]

LONGEST = 200
"""Characters of an exception that an error repeats."""
FRAMES = 100
"""Most frames of an error's traceback: a client of Dask cannot unpickle those of a recursion without end, and waits."""


@dataclass(frozen=True)
class CallerFunction:
    """A function of the caller, which raises errors alone."""

    function: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:
        """Call it; InputError where it would end the process."""
        try:
            return self.function(*args)
        except Exception as error:
            error.__traceback__ = _innermost(error.__traceback__)
            raise
        except BaseException as error:
            if _comes_from_signal(error):
                raise
            reason = " ".join(repr(error).split())[:LONGEST]
            raise InputError(
                f"function {name_of(self.function)} raised {reason}, with which the process that calls it would end: "
                "raise an exception such as ValueError, or return"
            ) from error


def name_of(function: Any) -> str:
    """Return the name of a function, of what a partial one calls, or of an object's type."""
    function = _called(function)
    return ascii(getattr(function, "__qualname__", type(function).__qualname__))[1:-1]


def _called(function: Any) -> Any:
    """Return what a partial function calls in the end."""
    while isinstance(function, partial):
        function = function.func
    return function


def _innermost(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the outer ones of more than FRAMES frames."""
    frames = len(list(walk_tb(traceback)))
    while traceback is not None and frames > FRAMES:
        traceback, frames = traceback.tb_next, frames - 1
    return traceback


def _comes_from_signal(error: BaseException) -> bool:
    """Return whether a signal's handler may have raised an exception: Python calls it in the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        return False
    if isinstance(error, KeyboardInterrupt):
        return True
    handlers = [_called(signal.getsignal(number)) for number in signal.valid_signals()]
    ways = [way for handler in handlers if callable(handler) for way in (handler, type(handler).__call__)]
    codes = [getattr(way, "__code__", None) for way in ways]
    return any(frame.f_code in codes for frame, _ in walk_tb(error.__traceback__))
