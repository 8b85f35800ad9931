"""The page `/dasktc` on any scheduler's dashboard: `dask scheduler --preload dasktc.dashboard`.

It shows how far each run is and when it will end: its stages, the triangles so far, what each worker does, blocks in
memory, bytes sent, and faults. Clusters that dasktc starts have it anyway.
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
