"""Events of runs on a Dask scheduler: how clients and workers publish them, and how the scheduler keeps their state.

Events (`executors.progress`) are published under the topic "dasktc": `client.get_events("dasktc")` returns the latest.
A scheduler with the plugin `run_monitor.RunMonitor`, which every count registers (`show_page`), keeps the state of the
latest runs, also after their end; the page `/dasktc` is drawn from it (`page`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from queue import SimpleQueue
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from dasktc.executors.dask.worker_events import TOPIC
from dasktc.executors.progress.tracker import Event, Tracker
from dasktc.once import LOCK

__all__ = [
    "PAGE", "ClientEvents", "name_client", "page_of", "show_page", "subscribed", "tell_scheduler",
    "unsubscribe",
]  # fmt: skip

log = logging.getLogger("dasktc")
PAGE = "dasktc"
"""Path of the page, and name of the monitor among a scheduler's plugins."""
FLUSH_SECONDS = 1.0
"""Longest wait, at the end of a run, for its last events to be sent."""
MOST_WAITING = 100
"""Largest number of events that wait to be sent; further events of progress are dropped."""


class ClientEvents:
    """A listener that publishes events on a Dask client's scheduler, one after another, without waiting for any."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._waiting: deque[Event] = deque()
        self._sending = False

    def __call__(self, event: Event) -> None:
        """Send an event."""
        if getattr(self._client, "status", "") != "running":
            return
        if len(self._waiting) < MOST_WAITING or event["event"] != "progress":
            self._waiting.append(event)
            self._client.loop.add_callback(self._send)

    async def _send(self) -> None:
        if self._sending:
            return
        self._sending = True
        try:
            while self._waiting:
                await self._client.log_event(TOPIC, self._waiting.popleft())  # awaitable within the client's loop
        except (OSError, RuntimeError, asyncio.CancelledError):  # the run itself will notice that the scheduler is gone
            self._waiting.clear()
        finally:
            self._sending = False

    def flush(self) -> None:
        """Wait, for FLUSH_SECONDS at most, until everything is sent."""
        ends = time.monotonic() + FLUSH_SECONDS
        while (self._waiting or self._sending) and time.monotonic() < ends:
            time.sleep(0.0005)


def subscribed(client: Any, run: str) -> SimpleQueue[Event]:
    """Have the events of a run put into a queue as they come from the worker that makes its one call."""
    events = SimpleQueue[Event]()
    with LOCK:
        runs = _HEARD.setdefault(client, {})
        runs[run] = events

    def hear(event: tuple[float, Any]) -> None:
        if isinstance(event[1], dict) and (run := runs.get(event[1].get("run", ""))):
            run.put(event[1])

    client.subscribe_topic(client.id, hear)  # each time: the scheduler may have been told anew who its clients are
    return events


def unsubscribe(client: Any, run: str) -> None:
    """Hear no more of a run; the client stays subscribed, because another thread may run something else."""
    with LOCK:
        _HEARD[client].pop(run, None)


_HEARD: WeakKeyDictionary[Any, dict[str, SimpleQueue[Event]]] = WeakKeyDictionary()
"""For each client, its runs that are one call each, and their events."""


def tell_scheduler(tracker: Tracker, executor: Any) -> None:
    """Publish a tracker's events on the executor's scheduler, where it has one."""
    client = getattr(executor, "client", None)
    if client is not None and tracker.follows:
        tracker.ahead = True
        name_client(tracker, client)
        tracker.listen("scheduler", ClientEvents(client))


def name_client(tracker: Tracker, client: Any) -> None:
    """Name a run's client in its first event, so that the scheduler knows when nobody waits for the run any more."""
    tracker.facts = {**tracker.facts, "client": client.id}


def show_page(client: Any, logger: logging.Logger = log) -> None:
    """Have a client's scheduler keep the state of runs and show them on its page `/dasktc`; log the page's address.

    This is done once for each client. A scheduler that cannot have the page counts without it.
    """
    with LOCK:
        if client in _SHOWN:
            return
        _SHOWN.add(client)
    from dasktc.executors.dask.run_monitor import RunMonitor

    try:
        client.register_plugin(RunMonitor())
    except Exception as error:  # the scheduler has no dasktc, or another version, or takes no plugins
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        log.info("no page /dasktc (%.200s)", reason)
    if page := page_of(client):
        logger.info("dashboard: %s", page)


_SHOWN: WeakSet[Any] = WeakSet()
"""Clients whose scheduler was asked for the page."""


def page_of(client: Any) -> str:
    """Address of a scheduler's page `/dasktc`, else of Dask's own page; "" where there is no dashboard."""

    def has_page(dask_scheduler: Any) -> bool:
        return bool(getattr(dask_scheduler.plugins.get("dasktc"), "page", False))

    link = ""
    with suppress(Exception):  # no dashboard; or the client closes, which the count will say
        link = str(client.dashboard_link or "")
        if link.endswith("/status") and client.run_on_scheduler(has_page):
            link = link.removesuffix("status") + PAGE
    return link
