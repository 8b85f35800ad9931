"""Views of a run's progress: a bar in a terminal, a widget in a notebook, one JSON line per event, or a callable."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TextIO

from dasktc.executors.process.shared_context import SharedContext
from dasktc.executors.progress.tracker import RUN, Event, Progress, Tracker, clock_time, words_of
from dasktc.options import check_keywords, format_size
from dasktc.wording import plural

__all__ = ["Bar", "JsonLines", "View", "showing"]

DRAW_SECONDS = 0.25
"""Seconds between two redraws of a bar."""
KEPT_SECONDS = 2.0
"""Seconds from which a finished stage leaves a line in the terminal."""
STEPS = 1000


class View:
    """Base class of listeners to a tracker, passed as `progress`; `begin` and `close` are called around the run."""

    def begin(self, tracker: Tracker) -> None:
        """Start showing a tracker."""

    def __call__(self, *event: Any) -> None:
        """Show an event."""

    def close(self) -> None:
        """Remove the display."""


@contextmanager
def showing(progress: Progress | bool | None, **facts: Any) -> Iterator[Tracker]:
    """Yield the tracker of a call's progress; end its run with the block, or with the error that leaves the block.

    Parameters
    ----------
    progress : callable (stage, done, total), View, bool or None
        True: a bar, in Jupyter a widget, from the first event to the end of the block. False and None: no display;
        on a cluster the dashboard and the scheduler's events still have the progress.
    **facts
        Fields of the run's first event: the question and the source.
    """
    if isinstance(progress, Tracker):  # of an enclosing call, to whose run this one belongs
        yield progress
        return
    if not isinstance(progress, View):
        check_keywords(progress=progress)
    view = Bar() if progress is True else progress if isinstance(progress, View) else None
    tracker = Tracker(None if view is not None or progress in (True, False) else progress)  # type: ignore[arg-type]
    tracker.facts, tracker.follows = facts, True
    with ExitStack() as stack:
        if view is not None:
            view.begin(tracker)
            stack.callback(view.close)
            tracker.listen("view", view)
        try:
            yield tracker
        except BaseException as error:
            tracker.close(error=" ".join(f"{type(error).__name__}: {error}".split()))
            raise
        tracker.close()


def _redirected() -> AbstractContextManager[Any]:
    from tqdm.contrib.logging import logging_redirect_tqdm

    context: AbstractContextManager[Any] = logging_redirect_tqdm()
    return context


_redirected_logs = SharedContext(_redirected)
"""Active while a bar is shown, so that log lines are printed above it."""


class Bar(View):
    """A tqdm bar: a line in a terminal, a widget in Jupyter.

    It is made at the first event, so that it does not mix with earlier lines. A thread of its own draws it, so that it
    moves while the caller waits for a stage without events.
    """

    def __init__(self) -> None:
        self._drawing = threading.Lock()

    def begin(self, tracker: Tracker) -> None:
        """Wait for the first event of a tracker."""
        self._tracker, self._over, self._logs = tracker, threading.Event(), ExitStack()
        self._bar: Any = None
        self._thread: threading.Thread | None = None

    def __call__(self, *event: Any) -> None:
        """Draw the bar at a stage's beginning; write a line about a long stage that ended, or a fault."""
        (fields,) = event
        if fields["stage"] == RUN and fields["event"] != "fault":
            return
        if self._bar is None:
            self._open()
        if fields["event"] == "ended" and fields["took"] >= KEPT_SECONDS:
            self._write(f"{words_of(fields['stage']).name:<15}{clock_time(fields['took'])}{_facts(fields)}")
        elif fields["event"] == "fault":
            self._write(fields["what"])
        if fields["event"] == "begun":
            self._draw(self._tracker.now())

    def _open(self) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(total=STEPS, leave=False, dynamic_ncols=True, bar_format="{desc}")  # draws nothing yet
        self._widget = hasattr(self._bar, "container")
        self._logs.enter_context(_redirected_logs)
        self._thread = threading.Thread(target=self._redraw, name="dasktc-progress", daemon=True)
        self._thread.start()

    def _redraw(self) -> None:
        while not self._over.wait(DRAW_SECONDS):
            self._draw(self._tracker.now())

    def _draw(self, event: Event) -> None:
        if not event:  # the run has ended, its cluster is still closing
            return
        with self._drawing:
            seconds_left = "" if event.get("left") is None else f", {clock_time(event['left'])} left"
            share = f"{100 * event['share']:3.0f} %" if event["share"] else "     "
            self._bar.n = round(STEPS * event["share"])
            bar = "{bar}" if self._widget else "{bar:10}"
            text = f"{clock_time(event['seconds'])}{seconds_left}{_facts(event)}"
            self._bar.bar_format = f"{words_of(event['stage']).name:<15}{share} {bar} {text}"
            self._bar.refresh()

    def _write(self, line: str) -> None:
        from tqdm.auto import tqdm

        if not self._widget:  # a notebook cell would show the line in red
            with self._drawing:
                tqdm.write(line, file=sys.stderr)

    def close(self) -> None:
        """End the thread that draws, and remove the bar."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._bar is not None:
            with self._drawing:
                self._bar.n = self._bar.total  # an unfinished widget would stay
                self._bar.close()
        self._logs.close()


def _facts(event: Event) -> str:
    """Format what a stage has done, and its rate."""
    facts, seconds = [], event.get("took") or event["seconds"]
    if "bytes_total" in event:
        facts.append(f"{format_size(event['bytes'])} of {format_size(event['bytes_total'])}")
    elif event["total"] > 1:
        facts.append(f"{event['done']:,}/{plural(event['total'], 'task')}")
    if event.get("rate"):
        facts.append(f"{_short(event['rate'])} probes/s, {plural(event['triangles'], 'triangle')}")
    elif event.get("bytes") and seconds:
        facts.append(f"{format_size(round(event['bytes'] / seconds))}/s")
    return "".join(f", {fact}" for fact in facts)


def _short(number: float) -> str:
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {letter}"
    return f"{number:.0f}"


class JsonLines(View):
    """Writes each event as one JSON object per line.

    Without a stream, to what is standard error at the time of the event.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream, self._gone = stream, False

    def __call__(self, *event: Any) -> None:
        """Write an event, unless an earlier one could not be written."""
        if not self._gone:
            try:
                print(json.dumps(event[0]), file=self._stream or sys.stderr, flush=True)
            except OSError:  # the reader is gone or the disk is full: the answer does not depend on it
                self._gone = True
