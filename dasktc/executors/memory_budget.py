"""`--memory`: which executor keeps a budget, and for how long its work directory stands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dasktc.backends import get_backend
from dasktc.errors import InputError
from dasktc.executors.dask.executor import Direct, OnCluster, Tasks
from dasktc.executors.device.cluster_store import OnGpus
from dasktc.executors.device.store import OnGpu
from dasktc.executors.spill.file_store import LEAST, OVERHEAD, OnDisk, usable
from dasktc.executors.spill.shared_file_store import OnSharedDisk
from dasktc.executors.spill.work_dir import WorkDir, check_place, hidden_here
from dasktc.options import bytes_of

__all__ = ["limited", "within_memory"]

Place = str | os.PathLike[str] | None
HOST = 0.5
"""Share of the host's free memory that results of a GPU may take where nobody says."""
NAMED = 3
"""Hosts that an error names."""


@contextmanager
def within_memory(
    tasks: Tasks,
    memory: int | str | None,
    place: Place,
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
        `--work-dir`: the folder in which the work directory stands. All workers must see it; with "cuda" each has a
        folder of its own where none was given and some do not see the default.
    backend : str
        With "cuda" `memory` is device memory, of each worker.
    host : int, str or None
        `--host-memory`: bytes of pinned memory for what leaves a GPU, of each worker.

    Raises
    ------
    InputError
        Some workers do not see the work directory.
    """
    found = limited(tasks, memory, place, backend, host)
    try:
        yield found
    finally:
        if isinstance(found, OnDisk | OnSharedDisk | OnGpus):
            found.close()


def limited(
    tasks: Tasks,
    memory: int | str | None,
    place: Place,
    backend: str = "cpu",
    host: int | str | None = None,
) -> Tasks:
    """Return that executor. Its work directory goes when nobody holds it any more."""
    check_place(place)
    room = bytes_of(host, "host-memory")
    if memory is None and (place is None or backend != "cpu"):
        return tasks
    if backend != "cpu":
        return _on_gpu(tasks, bytes_of(memory), place, room)
    budget = usable(max(LEAST, tasks.memory(bytes_of(memory))))
    if isinstance(tasks, Direct):
        return OnDisk(WorkDir(place), budget)
    if isinstance(tasks, OnCluster):
        return OnSharedDisk(tasks, _shared(tasks, place), budget - OVERHEAD)  # a Dask worker grows by itself
    return tasks


def _on_gpu(tasks: Tasks, memory: int | None, place: Place, host: int | None) -> Tasks:
    if memory is None or isinstance(tasks, OnDisk | OnGpus):
        return tasks
    budget = usable(max(LEAST, memory))
    if isinstance(tasks, OnCluster):
        return OnGpus(tasks, _shared_or_own(tasks, place), budget, host)
    if not isinstance(tasks, Direct):
        return tasks
    return OnGpu(WorkDir(place), budget, int(HOST * get_backend("cpu").memory()) if host is None else host)


def _shared(tasks: OnCluster, place: Place) -> WorkDir:
    """A work directory that all workers see: they were asked."""
    work = WorkDir(place)
    try:
        found = tasks.everywhere(hidden_here, work.folder)
        if hosts := [host for host in found if host is not None]:
            raise InputError(
                f"{len(hosts)} of {len(found)} workers (on {_names(hosts)}) cannot write to this host's "
                f"{os.path.dirname(work.folder)}, where files beyond --memory would stand: it is on no disk that all "
                "mount; give a --work-dir on one, or leave --memory and --work-dir out, so that Dask's own limits hold"
            )
    except BaseException:
        work.close()
        raise
    return work


def _shared_or_own(tasks: OnCluster, place: Place) -> WorkDir | None:
    """The same; None, a folder for each worker, where nobody asked for a place and some do not see the default."""
    try:
        return _shared(tasks, place)
    except InputError:
        if place is not None:
            raise
        return None


def _names(hosts: list[str]) -> str:
    different = sorted(set(hosts))
    more = len(different) - NAMED
    return ", ".join(different[:NAMED]) + (f" and {more} more" if more > 0 else "")
