"""Events of runs on a Dask scheduler: how clients and workers send them, and what the scheduler keeps of each run.

Events (`executors.progress`) are published under the topic "dasktc": `client.get_events("dasktc")` has the latest. A
scheduler on which `install` was called keeps the state of the latest runs (`run_monitor`), from which the page
`/dasktc` is drawn (`page`), also when they are over.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from typing import Any

from dasktc.executors.dask.worker_events import TOPIC, outbox_of
from dasktc.executors.progress import Event, Tracker

__all__ = ["PAGE", "ClientEvents", "WorkerEvents", "install", "page_of", "tell_scheduler"]

log = logging.getLogger("dasktc")
PAGE = "dasktc"
"""Path of the page, and name of the monitor among a scheduler's plugins."""
FLUSH_SECONDS = 1.0
"""How long the end of a run waits for its last events to be sent."""
MOST_WAITING = 100
"""Events that wait to be sent; those of progress are dropped beyond it."""


class ClientEvents:
    """A listener that publishes events on the scheduler of a client, one after another, and waits for none.

    Parameters
    ----------
    client : distributed.Client
    """

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
                await self._client.scheduler.log_event(topic=TOPIC, msg=self._waiting.popleft())
        except (OSError, RuntimeError, asyncio.CancelledError):  # the run itself finds out that the scheduler is gone
            self._waiting.clear()
        finally:
            self._sending = False

    def flush(self) -> None:
        """Wait until everything is sent, but not long."""
        ends = time.monotonic() + FLUSH_SECONDS
        while (self._waiting or self._sending) and time.monotonic() < ends:
            time.sleep(0.0005)


class WorkerEvents:
    """A listener that publishes events from a task that a Dask worker runs.

    Parameters
    ----------
    run : str
        Its name.
    asked : bool
        That run's client subscribes to a topic of its own, which the scheduler would keep for every run.
    """

    def __init__(self, run: str, asked: bool = True) -> None:
        from distributed import get_worker

        self._outbox, self._topics = outbox_of(get_worker()), [TOPIC, *([f"{TOPIC}-{run}"] if asked else ())]

    def __call__(self, event: Event) -> None:
        """Send an event."""
        self._outbox.add(self._topics, event)

    def flush(self) -> None:
        """Have everything sent before what the task returns."""
        self._outbox.flush()


def tell_scheduler(tracker: Tracker, executor: Any) -> None:
    """Have a tracker's events published on the scheduler of an executor, where it has one."""
    if executor.distributed and tracker.follows:
        tracker.ahead = True
        tracker.listen("scheduler", ClientEvents(executor.client))


def install(scheduler: Any) -> bool:
    """Keep the state of runs on a scheduler, and add the page `/dasktc` to its dashboard; in the scheduler's thread.

    Parameters
    ----------
    scheduler : distributed.Scheduler

    Returns
    -------
    bool
        Whether the page is there; without Bokeh it is not, nor where the scheduler has no dashboard.
    """
    if PAGE in scheduler.plugins:
        return bool(scheduler.plugins[PAGE].page)
    from dasktc.executors.dask.run_monitor import RunMonitor

    monitor = RunMonitor(scheduler)
    scheduler.add_plugin(monitor, name=PAGE)
    try:
        from dasktc.executors.dask.page import add_page
    except ImportError as missing:
        log.warning("dasktc: warning: no page /dasktc (%s): install dasktc[dashboard]", missing)
        return False
    monitor.page = add_page(scheduler, monitor)
    return monitor.page


def page_of(client: Any) -> str:
    """Address of the page `/dasktc` of a client's scheduler, of Dask's own page where it has none; "" without any."""

    def there(dask_scheduler: Any) -> bool:
        return bool(getattr(dask_scheduler.plugins.get("dasktc"), "page", False))

    link = ""
    with suppress(KeyError, OSError):  # a scheduler without a dashboard
        link = str(client.dashboard_link or "")
    has_page = link.endswith("/status") and client.run_on_scheduler(there)
    return link.removesuffix("status") + PAGE if has_page else link
