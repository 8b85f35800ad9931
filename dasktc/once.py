"""What a process makes or finds out at its first call, once, whichever of its threads comes first.

Threads may meet at a first call: in a web service, under Dask's threaded scheduler, on a worker with several threads.
The rule has three parts:

* What is kept for later calls (a table, a registry, a registration, whether there is a GPU) is made by a function under
  `once`. `functools.cache` would let two threads make it, and ruff refuses it.
* Python's import locks suffice for a module whose import succeeds: other threads wait until it is complete. This
  package's modules import each other in no circle, in which Python would hand out half a module instead.
* They do not suffice for an import that may fail, because a thread that waits for it gets half a module, or none. The
  modules that need a GPU's libraries, and Numba, are therefore imported by functions under `once`.

One lock serves all of these functions, so that they can call each other in any order. A module that calls one of them
while it is imported (`api` and `cli` do, for docstrings and help) must not be imported by one of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, TypeVar, TypeVarTuple

from dasktc.errors import InputError, neutral_text

__all__ = ["LOCK", "once"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

LOCK = RLock()
"""Held while something is made for the whole process."""
if hasattr(os, "register_at_fork"):  # a forked process has no other threads, so nobody would release the lock in it
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


def once(function: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
    """Decorator of a function that is called once per process for each list of arguments.

    Other threads wait for the first call. Its result is remembered, and so is its InputError, since what a process
    lacks does not come later; after any other error the next call tries again. Arguments are hashable, and passed by
    position.
    """
    outcomes = dict[tuple[object, ...], tuple[Any, str | None]]()

    @wraps(function)
    def remembered(*args: *Ts) -> T:
        if args not in outcomes:
            with LOCK:
                if args not in outcomes:
                    try:
                        outcomes[args] = function(*args), None
                    except InputError as error:
                        outcomes[args] = None, neutral_text(error)  # without the frames of this call
                        raise
        result, refusal = outcomes[args]
        if refusal is not None:
            raise InputError(refusal)
        return result  # type: ignore[no-any-return]

    remembered.cache_clear = outcomes.clear  # type: ignore[attr-defined]
    return remembered
