"""Runs the calls of a stage on threads of this process; kernels, NumPy and Arrow release the GIL.

The threads live for one stage, because starting them takes only 0.1 ms. A longer-lived pool would keep the scratch that
counting kernels leave in its threads, would have to be shut down with the graph, and could not be pickled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from operator import itemgetter
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

__all__ = ["completed", "results"]

T = TypeVar("T")
Call = Callable[[], T]


class _Ended(NamedTuple):
    """Outcome of a call: its number, and its result or the error that it raised."""

    number: int
    result: Any
    error: BaseException | None = None


class _Running:
    """Threads that take and make calls, one after another, until none are left or one fails."""

    def __init__(self, threads: int, calls: Generator[Call[Any]]) -> None:
        self._calls: Generator[Call[Any]] | None = calls
        self._numbers, self._taking = 0, threading.Lock()
        self.ended = SimpleQueue[_Ended | None]()
        self._threads = [threading.Thread(target=self._run, name="dasktc-call") for _ in range(threads)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while (outcome := self._next()) is not None:
            self.ended.put(outcome)
        self.ended.put(None)

    def _next(self) -> _Ended | None:
        """Make one call; a function of its own, so that a waiting thread holds no reference to arguments or results."""
        with self._taking:
            if self._calls is None:
                return None
            number, self._numbers = self._numbers, self._numbers + 1
            try:
                call = next(self._calls)
            except StopIteration:
                self._calls = None
                return None
            except BaseException as error:
                self._calls = None
                return _Ended(number, None, error)
        try:
            return _Ended(number, call())
        except BaseException as error:
            self.stop()
            return _Ended(number, None, error)

    def stop(self) -> None:
        """Prevent further calls from beginning."""
        with self._taking:
            self._calls = None

    def wait(self) -> None:
        """Wait for the calls that have begun, because the data that they use must outlive them."""
        for thread in self._threads:
            with suppress(RuntimeError):  # a signal interrupted the thread's start; no call is lost
                thread.join()


def completed(threads: int, calls: Generator[Call[T]]) -> Iterator[tuple[int, T]]:
    """Make calls on several threads, and yield each call's number and result as it ends.

    Threads take calls from the generator in order, one thread at a time, each when it is free. The caller's thread only
    waits, so that a signal is handled at once; with one thread the caller's thread makes the calls itself.

    The error of the first failed call, in the order of calls, is raised. After a failure, and when the caller takes no
    more results or is interrupted, no call begins, and calls that have begun are waited for.
    """
    if threads <= 1:
        with closing(calls):
            for number, call in enumerate(calls):
                yield number, call()
        return
    pool, thread_count = _Running(threads, calls), threads
    try:
        pool.start()
        while thread_count:
            outcome = pool.ended.get()
            if outcome is None:
                thread_count -= 1
            elif outcome.error is not None:
                pool.wait()
                outcomes = [outcome, *(pool.ended.get() for _ in range(pool.ended.qsize()))]
                failures = [other for other in outcomes if other is not None and other.error is not None]
                raise min(failures, key=itemgetter(0)).error  # type: ignore[misc]
            else:
                yield outcome[:2]
    finally:
        pool.stop()
        pool.wait()
        calls.close()


def results(
    threads: int, calls: Generator[Call[T]], count: int, report: Callable[[int, int], None] | None = None
) -> list[T]:
    """Results of `count` calls, in order, as `completed` makes them; `report` gets how many of all ended."""
    values: list[Any] = [None] * count
    for end_count, (number, result) in enumerate(completed(min(threads, count), calls), 1):
        values[number] = result
        if report is not None:
            report(end_count, count)
    return values
