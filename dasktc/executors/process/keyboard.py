"""Answers Ctrl-C at once, whatever the main thread is doing, and ends the process at the second one.

Python calls the handlers of signals in the main thread, between two of its instructions: not while that thread runs
compiled code, which may take seconds. The byte that a signal writes to `signal.set_wakeup_fd` comes at once; a thread
waits for it here. The handlers of `signals` then end the command in order.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["INTERRUPTED", "NOTICE", "answered", "ctrl_c_answered", "expect_own"]

INTERRUPTED = 128 + signal.SIGINT
NOTICE = "dasktc: stopping …; Ctrl-C again ends it at once"
AT_ONCE = "dasktc: error: ended at once: incomplete files may be left, in hidden folders that a later run removes"
SAME_SECONDS = 0.5
"""Seconds after the notice within which a signal is the same press: programs that started this one pass it on, too."""
LAST_SECONDS = 1.0
"""Seconds that the last line may take, where nobody reads standard error, before the process ends without it."""


class _Listener:
    """Reads the numbers of signals as they arrive, in a thread, until it is closed."""

    def __init__(self) -> None:
        self._press_time: float | None = None
        self._own_signals = 0
        self._printing, self._has_notice = threading.Lock(), False
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._former_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._listen, name="dasktc-ctrl-c", daemon=True)
        self._thread.start()

    @property
    def pressed(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._has_notice

    def expect(self) -> None:
        """Take the next SIGINT for one that this process sends to itself."""
        self._own_signals += 1

    def say(self) -> None:
        """Print the notice, once."""
        with self._printing:
            if not self._has_notice:
                self._has_notice = True
                _print(NOTICE)

    def close(self) -> None:
        """Stop listening."""
        signal.set_wakeup_fd(self._former_fd)
        self._writer.close()
        self._thread.join()
        self._reader.close()

    def _listen(self) -> None:
        while numbers := self._reader.recv(64):
            for number in numbers:
                if number == signal.SIGINT:
                    self._press()

    def _press(self) -> None:
        if self._own_signals:
            self._own_signals -= 1
        elif self._press_time is None:
            self.say()
            self._press_time = time.monotonic()
        elif time.monotonic() - self._press_time > SAME_SECONDS:
            threading.Timer(LAST_SECONDS, os._exit, (INTERRUPTED,)).start()
            _print(AT_ONCE)
            os._exit(INTERRUPTED)  # workers notice that their client is gone


_listener: _Listener | None = None


@contextmanager
def ctrl_c_answered() -> Iterator[None]:
    """Answer Ctrl-C in this block, and after it where one has ended it; for the main thread."""
    global _listener
    if _listener is not None:
        _listener.close()
    _listener = listener = _Listener()
    try:
        yield
    finally:
        if not listener.pressed:
            listener.close()
            _listener = None


def answered() -> None:
    """Make sure that the notice is printed before what follows."""
    if _listener is not None:
        _listener.say()


def expect_own() -> None:
    """Announce a SIGINT that this process sends to itself."""
    if _listener is not None:
        _listener.expect()


def _print(line: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads it, or it is closed
        begin = "\n" if sys.stderr.isatty() else ""  # the terminal has written ^C
        print(begin + line, file=sys.stderr, flush=True)
