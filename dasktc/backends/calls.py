"""Where calls of this package begin and end, in each thread: in between, device memory comes from a pool.

A public function, and each call that a Dask worker makes, is one call (`out_of_memory`); calls within calls are part of
the outermost. This module imports no GPU library: `cuda.memory` is asked if it is loaded, and asks here when it is
loaded in the middle of a call.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

__all__ = ["nothing_sent", "one_call", "until_the_call_ends"]


class _Here(threading.local):
    """Calls under way in this thread, and what is undone when the outermost ends."""

    depth = 0
    undo: Callable[[], None] | None = None


_here = _Here()


@contextmanager
def one_call(on_worker: bool = False) -> Iterator[None]:
    """Allocate device memory from the pool, if the backend that has one is loaded, or as soon as it is.

    Parameters
    ----------
    on_worker : bool
        One of many calls of a count: what the pool does not need goes back to the device when no other has begun for a
        while. Else it does when the call ends.
    """
    _here.depth += 1
    try:
        share = getattr(sys.modules.get("dasktc.backends.cuda.memory"), "share", None)  # none while it is imported
        if _here.depth == 1 and share is not None:
            until_the_call_ends(partial(share, on_worker))
        yield
    finally:
        _here.depth -= 1
        if not _here.depth and _here.undo is not None:
            undo, _here.undo = _here.undo, None
            undo()


def nothing_sent() -> AbstractContextManager[None]:
    """A block whose results stay in this process: device memory need not be of the kind that UCX can send."""
    unsent = getattr(sys.modules.get("dasktc.backends.cuda.memory"), "unsent", None)
    block: AbstractContextManager[None] = nullcontext() if unsent is None else unsent()
    return block


def until_the_call_ends(begin: Callable[[], Callable[[], None]]) -> None:
    """Begin something that lasts until the outermost call of this thread ends; nothing where there is no call.

    Parameters
    ----------
    begin : callable () -> callable ()
        Returns what undoes it. Not called where it has begun already.
    """
    if _here.depth and _here.undo is None:
        _here.undo = begin()
