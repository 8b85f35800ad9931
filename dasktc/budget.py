"""`--memory`: which executor keeps a budget, and for how long its work directory stands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dasktc.disk import LEAST, OVERHEAD, OnDisk, usable
from dasktc.options import bytes_of
from dasktc.shared_disk import OnSharedDisk
from dasktc.tasks import Direct, OnCluster, Tasks
from dasktc.workdir import WorkDir, check_place

__all__ = ["limited", "within_memory"]

Place = str | os.PathLike[str] | None


@contextmanager
def within_memory(
    tasks: Tasks, memory: int | str | None, place: Place, local: bool = False, backend: str = "cpu"
) -> Iterator[Tasks]:
    """Yield an executor that keeps a budget, if one is given, and remove its work directory afterwards.

    Parameters
    ----------
    tasks : Tasks
    memory : int, str or None
        `--memory`.
    place : path or None
        `--work-dir`: the folder in which the work directory stands.
    local : bool
        All workers are processes of this machine. Those of a cluster must see `place`, if it is given; without
        it blocks stay in their memory, and Dask moves to disk what does not fit.
    backend : str
        With another than the CPU's `memory` is the budget of counting tasks.
    """
    found = limited(tasks, memory, place, local, backend)
    try:
        yield found
    finally:
        if isinstance(found, OnDisk | OnSharedDisk):
            found.close()


def limited(tasks: Tasks, memory: int | str | None, place: Place, local: bool = False, backend: str = "cpu") -> Tasks:
    """Return that executor. Its work directory goes when nobody holds it any more."""
    check_place(place)
    if (memory is None and place is None) or backend != "cpu":
        return tasks
    budget = usable(max(LEAST, tasks.memory(bytes_of(memory))))
    if isinstance(tasks, Direct):
        return OnDisk(WorkDir(place), budget)
    if isinstance(tasks, OnCluster) and (local or place is not None):
        return OnSharedDisk(tasks, WorkDir(place), budget - OVERHEAD)  # a Dask worker grows by itself
    return tasks
