"""Ctrl-C: one line, no traceback of any process, and everything that was begun is cleared away.

A terminal sends SIGINT to every process of the command, so to local workers too. Only the client takes
it: it closes what it opened, and that ends the workers.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["INTERRUPTED", "dask_hushed", "held", "loop_without_interrupts", "one_at_a_time", "was_pressed"]

INTERRUPTED = 128 + signal.SIGINT
GRACE_SECONDS = 5.0
"""A second Ctrl-C within this time changes nothing: what the first one began is on its way."""

SILENT = 2 * logging.CRITICAL
"""A closed connection is critical to Dask."""
WORKER_LEVEL = "DASK_LOGGING__DISTRIBUTED"

_pressed = float("-inf")
_held: bool = False
_late: float | None = None


def was_pressed() -> bool:
    """Whether Ctrl-C is what this process ends of, whatever error came of it on the way."""
    return time.monotonic() - _pressed < 60


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Raise KeyboardInterrupt once for several Ctrl-C, and again if it was lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    global _pressed
    _pressed = float("-inf")
    before, hook = signal.signal(signal.SIGINT, _interrupt), sys.unraisablehook
    sys.unraisablehook = _again_if_lost
    try:
        yield
    finally:
        if not was_pressed():  # else a further one would break into the end of the process
            signal.signal(signal.SIGINT, before)
            sys.unraisablehook = hook


@contextmanager
def held() -> Iterator[None]:
    """Let what starts or ends processes do so in a second or two; Ctrl-C comes afterwards, or by insisting."""
    global _held, _late
    _held, _late = True, None
    try:
        yield
    finally:
        _held = False
    if _late is not None:
        signal.raise_signal(signal.SIGINT)


def _interrupt(number: int, frame: Any) -> None:
    global _late, _pressed
    now = time.monotonic()
    if _held and (_late is None or now - _late < GRACE_SECONDS):
        _late = _late or now
    elif now - _pressed > GRACE_SECONDS:
        _pressed = now
        raise KeyboardInterrupt


def _again_if_lost(unraisable: Any) -> None:
    """An interrupt inside a finalizer or a callback of C code is dropped by Python: have it come again."""
    global _pressed
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        _pressed = float("-inf")
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    elif not was_pressed():
        sys.__unraisablehook__(unraisable)


@contextmanager
def loop_without_interrupts() -> Iterator[Any]:
    """Yield a running event loop whose threads, and processes that they start, do not get SIGINT.

    The mask of signals is inherited, by workers that a nanny starts later as well. The helper process of
    multiprocessing is started first: starting it takes the mask off its thread.
    """
    from multiprocessing import resource_tracker

    from distributed.utils import LoopRunner

    runner = LoopRunner()
    if not hasattr(signal, "pthread_sigmask"):
        runner.start()
    else:
        resource_tracker.ensure_running()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            runner.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        yield runner.loop
    finally:
        runner.stop()


@contextmanager
def dask_hushed(arguments: Sequence[str]) -> Iterator[None]:
    """Leave it to errors to say what Dask logs about connections and workers; `--debug` keeps its logs.

    Dask reads the levels when it is imported: here from its configuration, in local workers from the environment.
    """
    needed = any(given.startswith(("--workers", "--scheduler")) for given in arguments)
    if not needed or "--debug" in arguments or "distributed" in sys.modules or WORKER_LEVEL in os.environ:
        yield
        return
    import dask

    names = ("distributed", "distributed.client", "asyncio", "tornado", "tornado.application")
    os.environ[WORKER_LEVEL] = str(SILENT)
    try:
        with dask.config.set({"logging": dict.fromkeys(names, SILENT)}):
            yield
    finally:
        del os.environ[WORKER_LEVEL]
