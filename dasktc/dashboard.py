"""The page `/dasktc` from a scheduler's start on: `dask scheduler --preload dasktc.dashboard`.

It shows each run's progress and predicted end: its stages, the triangles so far, each worker's tasks, blocks in
memory, bytes sent, and faults. Without the preload the first count adds the page.
"""

from __future__ import annotations

from typing import Any

from dasktc.executors.dask.run_monitor import RunMonitor

__all__ = ["dask_setup"]


async def dask_setup(scheduler: Any) -> None:
    """Add the page to a scheduler that is starting; Dask calls this.

    Parameters
    ----------
    scheduler : distributed.Scheduler
    """
    monitor = RunMonitor()
    await scheduler.register_scheduler_plugin(monitor, name=monitor.name, idempotent=True)
