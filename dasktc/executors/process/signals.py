"""Handles the signals that end a command, so that no process prints a traceback and workers and files are removed.

These are Ctrl-C, which is answered at once and ends the process when it is pressed again (`keyboard`); SIGTERM, with
which a batch system ends a job; and SIGHUP, which a closed terminal sends, and which stays ignored under `nohup`. A
terminal sends SIGINT and SIGHUP to every process of the command, so also to local workers. Only the client takes them:
it closes what it opened, and that ends the workers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any

from dasktc.executors.process.keyboard import INTERRUPTED, ctrl_c_answered, expect_own

__all__ = ["INTERRUPTED", "dask_hushed", "ended_by", "held", "loop_without_interrupts", "one_at_a_time"]

GRACE_SECONDS = 5.0
"""Seconds within which a second signal raises nothing, because the first one is still being handled."""
SILENT = 2 * logging.CRITICAL
"""Log level above CRITICAL, at which Dask reports a closed connection."""
WORKER_LEVEL = "DASK_LOGGING__DISTRIBUTED"

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
OF_TERMINALS = {number for number in ENDING if number != signal.SIGTERM}
"""Signals that a terminal sends to all processes of a command."""

_ended = float("-inf"), 0
"""Time of the last signal to end this process, and its number."""


def ended_by() -> int | None:
    """The signal that is ending this process, whatever error it led to; None where there is none."""
    moment, number = _ended
    return number if time.monotonic() - moment < 60 else None


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Raise one KeyboardInterrupt or SystemExit for several signals, and answer Ctrl-C at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    global _ended
    _ended = float("-inf"), 0
    ignored_signals = {
        number for number in OF_TERMINALS - {signal.SIGINT} if signal.getsignal(number) is signal.SIG_IGN
    }
    handlers = {number: signal.signal(number, _end) for number in ENDING if number not in ignored_signals}
    try:
        with ctrl_c_answered():
            yield
    finally:
        if ended_by() is None:  # else a further signal would break into the end of the process
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _end(number: int, frame: Any) -> None:
    global _ended
    if time.monotonic() - _ended[0] > GRACE_SECONDS:
        _ended = time.monotonic(), number
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


@contextmanager
def held(grace_seconds: float = GRACE_SECONDS) -> Iterator[None]:
    """Delay signals while processes are started or ended, a second or two; a later second signal breaks in.

    Whatever handlers the process has, Python's own included, hear of the signal afterwards, also where an error ends
    this. Python calls handlers in the main thread alone, so other threads have nothing to delay.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    delayed_signal: tuple[float, int] | None = None

    def record(number: int, frame: Any) -> None:
        nonlocal delayed_signal
        now = time.monotonic()
        if delayed_signal is None:
            delayed_signal = now, number
        elif now - delayed_signal[0] > grace_seconds:
            delayed_signal = None
            handlers[number](number, frame)

    handlers: dict[int, Callable[[int, Any], Any]] = {}
    for number in reversed(ENDING):  # SIGINT last, so that its handler raises when the others are restored
        if callable(handler := signal.getsignal(number)):
            handlers[number] = handler
    try:
        for number in handlers:
            signal.signal(number, record)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if delayed_signal is not None:
            if delayed_signal[1] == signal.SIGINT:
                expect_own()
            signal.raise_signal(delayed_signal[1])


@contextmanager
def loop_without_interrupts() -> Iterator[Any]:
    """Yield a running event loop whose threads, and the processes that they start, ignore a terminal's signals.

    The signal mask is inherited, also by workers that a nanny starts later. The helper process of multiprocessing is
    started first, because starting it takes SIGINT off its thread's mask. It removes the semaphores of a client that
    is ended at once without a word about them.
    """
    from multiprocessing import resource_tracker

    from tornado.ioloop import IOLoop

    loops: SimpleQueue[tuple[Any, Callable[[], None]]] = SimpleQueue()

    async def serve() -> None:
        end = asyncio.Event()
        loops.put((IOLoop.current(), end.set))
        await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="dasktc-loop", daemon=True)
    if hasattr(signal, "pthread_sigmask"):
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, OF_TERMINALS)
        try:
            with _variable("PYTHONWARNINGS", "ignore:resource_tracker"):
                resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, OF_TERMINALS)
            thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    else:
        thread.start()
    loop, stop = loops.get()
    try:
        yield loop
    finally:
        with suppress(RuntimeError):  # it is closed
            loop.add_callback(stop)
        thread.join()


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment that processes inherit, where it is not set."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


@contextmanager
def dask_hushed(arguments: Sequence[str]) -> Iterator[None]:
    """Silence Dask's logs of connections and workers, which our errors report; `--debug` keeps them.

    Dask reads the levels when it is imported: here from its configuration, in local workers from the environment.
    """
    uses_workers = any(argument.startswith(("--workers", "--scheduler")) for argument in arguments)
    if not uses_workers or "--debug" in arguments or "distributed" in sys.modules or WORKER_LEVEL in os.environ:
        yield
        return
    import dask

    names = ("distributed", "distributed.client", "asyncio", "tornado", "tornado.application")
    with _variable(WORKER_LEVEL, str(SILENT)), dask.config.set({"logging": dict.fromkeys(names, SILENT)}):
        yield
