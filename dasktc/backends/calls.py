"""Outermost calls of this package in each thread, during which device memory comes from a pool.

When one has ended, free memory goes back to the device, and to the system (`heap`).

A public function, and each call that a Dask worker makes, is one call (`out_of_memory`); nested calls belong to the
outermost one. This module imports no GPU library: it uses `cuda.memory` if that is loaded, and `cuda.memory` uses this
module if it is loaded in the middle of a call.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from dasktc.backends import heap

__all__ = ["dask_worker", "nothing_sent", "one_call", "until_the_call_ends"]


class _Here(threading.local):
    """Number of nested calls in this thread, and what to undo when the outermost ends."""

    depth = 0
    undo: Callable[[], None] | None = None


_here = _Here()


@contextmanager
def one_call(on_worker: bool = False) -> Iterator[None]:
    """Allocate device memory from the pool, if the backend that has one is loaded, or as soon as it is loaded.

    With `on_worker` the call is one of many of a count: memory that the pool does not need returns to the device when
    no other call has begun for a while, instead of at the end of the call.
    """
    _here.depth += 1
    if _here.depth == 1:
        heap.call_begins(on_worker)
    try:
        share = getattr(sys.modules.get("dasktc.backends.cuda.memory"), "share", None)  # none while it is imported
        if _here.depth == 1 and share is not None:
            until_the_call_ends(partial(share, on_worker))
        yield
    finally:
        _here.depth -= 1
        if not _here.depth:
            heap.call_ended(on_worker)
            if _here.undo is not None:
                undo, _here.undo = _here.undo, None
                undo()


def nothing_sent() -> AbstractContextManager[None]:
    """Context whose results stay in this process, so that device memory need not be of a kind that UCX can send."""
    unsent = getattr(sys.modules.get("dasktc.backends.cuda.memory"), "unsent", None)
    block: AbstractContextManager[None] = nullcontext() if unsent is None else unsent()
    return block


def dask_worker() -> Any:
    """The Dask worker whose task, or question of a client, this thread runs; else None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def until_the_call_ends(begin: Callable[[], Callable[[], None]]) -> None:
    """Begin something that lasts until the outermost call of this thread ends; do nothing outside of calls.

    `begin` returns the function that undoes it. It is not called where something has already begun.
    """
    if _here.depth and _here.undo is None:
        _here.undo = begin()
