"""`--memory`: which executor keeps a budget, and for how long its work directory stands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dasktc.backend import get_backend
from dasktc.disk import LEAST, OVERHEAD, OnDisk, usable
from dasktc.on_gpu import OnGpu
from dasktc.on_gpus import OnGpus
from dasktc.options import bytes_of
from dasktc.shared_disk import OnSharedDisk
from dasktc.tasks import Direct, OnCluster, Tasks
from dasktc.workdir import WorkDir, check_place

__all__ = ["limited", "within_memory"]

Place = str | os.PathLike[str] | None
HOST = 0.5
"""Share of the host's free memory that results of a GPU may take where nobody says."""


@contextmanager
def within_memory(
    tasks: Tasks,
    memory: int | str | None,
    place: Place,
    local: bool = False,
    backend: str = "cpu",
    host: int | str | None = None,
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
        With "cuda" `memory` is device memory, of each worker.
    host : int, str or None
        `--host-memory`: bytes of pinned memory for what leaves a GPU, of each worker.
    """
    found = limited(tasks, memory, place, local, backend, host)
    try:
        yield found
    finally:
        if isinstance(found, OnDisk | OnSharedDisk | OnGpus):
            found.close()


def limited(
    tasks: Tasks,
    memory: int | str | None,
    place: Place,
    local: bool = False,
    backend: str = "cpu",
    host: int | str | None = None,
) -> Tasks:
    """Return that executor. Its work directory goes when nobody holds it any more."""
    check_place(place)
    room = bytes_of(host, "host-memory")
    if memory is None and (place is None or backend != "cpu"):
        return tasks
    if backend != "cpu":
        return _on_gpu(tasks, bytes_of(memory), place, room, local)
    budget = usable(max(LEAST, tasks.memory(bytes_of(memory))))
    if isinstance(tasks, Direct):
        return OnDisk(WorkDir(place), budget)
    if isinstance(tasks, OnCluster) and (local or place is not None):
        return OnSharedDisk(tasks, WorkDir(place), budget - OVERHEAD)  # a Dask worker grows by itself
    return tasks


def _on_gpu(tasks: Tasks, memory: int | None, place: Place, host: int | None, local: bool) -> Tasks:
    if memory is None or isinstance(tasks, OnDisk | OnGpus):
        return tasks
    budget = usable(max(LEAST, memory))
    if isinstance(tasks, OnCluster):
        return OnGpus(tasks, WorkDir(place) if local or place is not None else None, budget, host)
    if not isinstance(tasks, Direct):
        return tasks
    return OnGpu(WorkDir(place), budget, int(HOST * get_backend("cpu").memory()) if host is None else host)
