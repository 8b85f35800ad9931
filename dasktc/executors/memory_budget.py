"""`--memory`: which executor keeps a budget, and for how long its work directory stands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dasktc.backends import get_backend
from dasktc.errors import InputError
from dasktc.executors.dask.executor import DaskExecutor, Executor, LocalExecutor
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
    executor: Executor,
    memory: int | str | None,
    place: Place,
    backend: str = "cpu",
    host: int | str | None = None,
) -> Iterator[Executor]:
    """Yield an executor that keeps a budget, if one is given, and remove its work directory afterwards.

    Parameters
    ----------
    executor : Executor
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
    found = limited(executor, memory, place, backend, host)
    try:
        yield found
    finally:
        if isinstance(found, OnDisk | OnSharedDisk | OnGpus):
            found.close()


def limited(
    executor: Executor,
    memory: int | str | None,
    place: Place,
    backend: str = "cpu",
    host: int | str | None = None,
) -> Executor:
    """Return that executor. Its work directory goes when nobody holds it any more."""
    check_place(place)
    room = bytes_of(host, "host-memory")
    if memory is None and (place is None or backend != "cpu"):
        return executor
    if backend != "cpu":
        return _on_gpu(executor, bytes_of(memory), place, room)
    budget = usable(max(LEAST, executor.memory(bytes_of(memory))))
    if isinstance(executor, LocalExecutor):
        return OnDisk(WorkDir(place), budget)
    if isinstance(executor, DaskExecutor):
        return OnSharedDisk(executor, _shared(executor, place), budget - OVERHEAD)  # a Dask worker grows by itself
    return executor


def _on_gpu(executor: Executor, memory: int | None, place: Place, host: int | None) -> Executor:
    if memory is None or isinstance(executor, OnDisk | OnGpus):
        return executor
    budget = usable(max(LEAST, memory))
    if isinstance(executor, DaskExecutor):
        return OnGpus(executor, _shared_or_own(executor, place), budget, host)
    if not isinstance(executor, LocalExecutor):
        return executor
    return OnGpu(WorkDir(place), budget, int(HOST * get_backend("cpu").memory()) if host is None else host)


def _shared(executor: DaskExecutor, place: Place) -> WorkDir:
    """A work directory that all workers see: they were asked."""
    work = WorkDir(place)
    try:
        found = executor.run_on_workers(hidden_here, work.folder)
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


def _shared_or_own(executor: DaskExecutor, place: Place) -> WorkDir | None:
    """The same; None, a folder for each worker, where nobody asked for a place and some do not see the default."""
    try:
        return _shared(executor, place)
    except InputError:
        if place is not None:
            raise
        return None


def _names(hosts: list[str]) -> str:
    different = sorted(set(hosts))
    more = len(different) - NAMED
    return ", ".join(different[:NAMED]) + (f" and {more} more" if more > 0 else "")
