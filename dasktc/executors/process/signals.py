"""Handles the signals that end a command, so that no process prints a traceback and workers and files are removed.

These are Ctrl-C, which is answered at once (`keyboard`) and reported in one line at the end; SIGTERM, with which a
batch system ends a job; and SIGHUP, which a closed terminal sends, and which stays ignored under `nohup`. A terminal
sends SIGINT and SIGHUP to every process of the command, so also to local workers. Only the client takes them: it closes
what it opened, and that ends the workers.
"""

from __future__ import annotations

import _thread
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from dasktc.executors.process.keyboard import INTERRUPTED, ctrl_c_answered, expect_own

__all__ = [
    "INTERRUPTED",
    "dask_hushed",
    "ended_by",
    "held",
    "interruptible",
    "loop_without_interrupts",
    "one_at_a_time",
]

P = ParamSpec("P")
T = TypeVar("T")

GRACE_SECONDS = 5.0
"""Seconds within which a second signal raises nothing, because the first one is still being handled."""
CHECK_SECONDS = 1.0
"""Seconds after which a signal's exception is checked: it may have been dropped."""

SILENT = 2 * logging.CRITICAL
"""Log level above CRITICAL, at which Dask reports a closed connection."""
WORKER_LEVEL = "DASK_LOGGING__DISTRIBUTED"

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
OF_TERMINALS = {number for number in ENDING if number != signal.SIGTERM}
"""Signals that a terminal sends to all processes of a command."""

_ended = float("-inf"), 0
"""Time of the last signal to end this process, and its number."""
_raised: BaseException | None = None
_check: threading.Timer | None = None
_checks: bool = False


def ended_by() -> int | None:
    """The signal that is ending this process, whatever error it led to; None where there is none."""
    when, number = _ended
    return number if time.monotonic() - when < 60 else None


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Raise one KeyboardInterrupt or SystemExit for several signals, and raise it again where it was dropped.

    Python drops such exceptions inside finalizers, and reports that (`sys.unraisablehook`). C code that tries something
    and then clears any error drops them silently: NumPy does when it compares a dtype with another object, because the
    handler is called while NumPy makes the text of its own error. So one second after the exception was raised, the
    handler checks whether it is being handled.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    global _ended
    _ended = float("-inf"), 0
    ignored = {number for number in OF_TERMINALS - {signal.SIGINT} if signal.getsignal(number) is signal.SIG_IGN}
    before, hook = (
        {number: signal.signal(number, _end) for number in ENDING if number not in ignored},
        sys.unraisablehook,
    )
    sys.unraisablehook = _again_if_lost
    try:
        with ctrl_c_answered():
            yield
    finally:
        _stop_checking()
        if ended_by() is None:  # else a further signal would break into the end of the process
            for number, handler in before.items():
                signal.signal(number, handler)
            sys.unraisablehook = hook


@contextmanager
def held() -> Iterator[None]:
    """Delay signals while processes are started or ended, a second or two; a later second signal breaks in.

    Whatever handlers the process has, Python's own included, hear of the signal afterwards, also where an error ends
    this. Python calls handlers in the main thread alone, so other threads have nothing to delay.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    late: tuple[float, int] | None = None

    def record(number: int, frame: Any) -> None:
        nonlocal late
        now = time.monotonic()
        if late is None:
            late = now, number
        elif now - late[0] > GRACE_SECONDS:
            late = None
            before[number](number, frame)

    before: dict[int, Any] = {}
    for number in reversed(ENDING):  # SIGINT last, so that its handler raises when the others are restored
        if callable(handler := signal.getsignal(number)):
            before[number] = handler
    try:
        for number in before:
            signal.signal(number, record)
        yield
    finally:
        try:
            _handle(before)
        finally:
            _handle(before)  # all of them, also where one that was restored has raised
        if late is not None:
            _announce(late[1])
            signal.raise_signal(late[1])


def _handle(handlers: dict[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def interruptible(function: Callable[P, Iterator[T]]) -> Callable[P, AbstractContextManager[T]]:
    """Decorator like `contextmanager`, for a context that starts processes: an interrupt on its way in closes it.

    Between the generator's `yield` and the caller's `with`, Python may raise KeyboardInterrupt, and a context of
    `contextmanager` then stays open until its generator is collected. To enter one in an ExitStack, give it to
    `ExitStack.push` before.
    """
    make = contextmanager(function)

    @wraps(function)
    def context(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[T]:
        return _Interruptible(make(*args, **kwargs))

    return context


class _Interruptible(AbstractContextManager[T]):
    def __init__(self, context: AbstractContextManager[T]) -> None:
        self._context = context

    def __enter__(self) -> T:
        try:
            return self._context.__enter__()
        except BaseException as error:
            self._context.__exit__(type(error), error, error.__traceback__)  # nothing is left of one that failed
            raise

    def __exit__(self, *error: Any) -> bool | None:
        return self._context.__exit__(*error)


def _end(number: int, frame: Any) -> None:
    global _ended, _raised, _check, _checks
    now, checks, _checks = time.monotonic(), _checks, False
    if checks:
        if _raised is None or _under_way(_raised):
            return
        _ended = float("-inf"), 0  # the exception was dropped
    if now - _ended[0] > GRACE_SECONDS:
        _stop_checking()
        _ended = now, number
        _raised = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
        _check = threading.Timer(CHECK_SECONDS, _look_again, (number,))
        _check.daemon = True
        _check.start()
        raise _raised


def _under_way(raised: BaseException) -> bool:
    """Whether this thread is handling an exception, or one that was raised while it was handled."""
    error = sys.exc_info()[1]
    while error is not None and error is not raised:
        error = error.__context__
    return error is raised


def _look_again(number: int) -> None:
    """Have the handler called again, in the main thread, to check whether its exception was dropped."""
    global _checks
    _checks = True
    _tell_main_thread(number)


def _stop_checking() -> None:
    global _raised, _check
    if _check is not None:
        _check.cancel()
    _raised = _check = None


def _again_if_lost(unraisable: Any) -> None:
    """Send the signal again where Python dropped its exception, inside a finalizer or a callback of C code."""
    global _ended
    number = _ended[1]
    if number and isinstance(unraisable.exc_value, KeyboardInterrupt | SystemExit):
        _stop_checking()
        _ended = float("-inf"), 0
        threading.Timer(0.05, _tell_main_thread, (number,)).start()
    elif ended_by() is None:
        sys.__unraisablehook__(unraisable)


def _announce(number: int) -> None:
    if number == signal.SIGINT:
        expect_own()


def _tell_main_thread(number: int) -> None:
    """Send this process a signal, from any thread; `os.kill` would end it on Windows."""
    _announce(number)
    if os.name == "posix":
        os.kill(os.getpid(), number)
    else:
        _thread.interrupt_main(signal.Signals(number))


@contextmanager
def loop_without_interrupts() -> Iterator[Any]:
    """Yield a running event loop whose threads, and the processes that they start, ignore a terminal's signals.

    The signal mask is inherited, also by workers that a nanny starts later. The helper process of multiprocessing is
    started first, because starting it takes SIGINT off its thread's mask. It removes the semaphores of a client that
    is ended at once without a word about them.
    """
    from multiprocessing import resource_tracker

    from distributed.utils import LoopRunner

    runner = LoopRunner()
    if not hasattr(signal, "pthread_sigmask"):
        runner.start()
    else:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, OF_TERMINALS)
        try:
            with _variable("PYTHONWARNINGS", "ignore:resource_tracker"):
                resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, OF_TERMINALS)
            runner.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        yield runner.loop
    finally:
        runner.stop()


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
    needed = any(given.startswith(("--workers", "--scheduler")) for given in arguments)
    if not needed or "--debug" in arguments or "distributed" in sys.modules or WORKER_LEVEL in os.environ:
        yield
        return
    import dask

    names = ("distributed", "distributed.client", "asyncio", "tornado", "tornado.application")
    with _variable(WORKER_LEVEL, str(SILENT)), dask.config.set({"logging": dict.fromkeys(names, SILENT)}):
        yield
