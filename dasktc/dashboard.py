"""The page `/dasktc` on any scheduler's dashboard: `dask scheduler --preload dasktc.dashboard`.

It shows each run's progress and predicted end: its stages, the triangles so far, each worker's tasks, blocks in
memory, bytes sent, and faults. Clusters that dasktc starts have the page already.
"""

from __future__ import annotations

from typing import Any

from dasktc.executors.dask.progress import install

__all__ = ["dask_setup"]


async def dask_setup(scheduler: Any) -> None:
    """Add the page to a scheduler that is starting; Dask calls this.

    Parameters
    ----------
    scheduler : distributed.Scheduler
    """
    install(scheduler)
