"""`--memory`: puts an executor together with the store that keeps the budget; its files are removed afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dasktc.errors import InputError
from dasktc.executors.base import CPU, ClusterStore, Executor, for_backend
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.executors.offers import memory_of
from dasktc.executors.stores.device.cluster_store import DeviceClusterStore
from dasktc.executors.stores.device.store import DeviceStore
from dasktc.executors.stores.file_store import LEAST, OVERHEAD, FileStore, usable
from dasktc.executors.stores.shared_file_store import SharedFileStore
from dasktc.executors.stores.work_dir import WorkDir, check_place, hidden_here
from dasktc.options import bytes_of
from dasktc.wording import advice, option, plural

__all__ = ["limited", "within_memory"]

Place = str | os.PathLike[str] | None
HOST = 0.5
"""Default share of the host's free memory for results of a GPU in pinned memory."""
SHARE = 2 * LEAST
"""Least bytes of the budget for each thread of this process."""
NAMED = 3
"""Most hosts that an error names."""


@contextmanager
def within_memory(executor: Executor, *limits: Any, **options: Any) -> Iterator[Executor]:
    """Yield what `limited` returns for the same arguments, and remove everything that it keeps afterwards."""
    limited_executor = limited(executor, *limits, **options)
    try:
        yield limited_executor
    finally:
        if limited_executor is not executor:
            limited_executor.close()


def limited(executor: Executor, memory: int | str | None, place: Place, host: int | str | None = None) -> Executor:
    """Return an executor that keeps a memory budget, if one is given; its work directory is removed with it.

    Parameters
    ----------
    executor : Executor
    memory : int, str or None
        `--memory`: bytes of each worker, of device memory on GPUs. Threads of this process share them; there are fewer
        threads where each would have less than SHARE bytes.
    place : path or None
        `--work-dir`: the folder in which the work directory is made. All workers must see it; workers on GPUs use
        folders of their own where none is given and some do not see the default.
    host : int, str or None
        `--host-memory`: bytes of each worker's pinned memory for results that leave a GPU.

    Raises
    ------
    InputError
        Some workers do not see the work directory.
    """
    check_place(place)
    pinned = bytes_of(host, "host_memory")
    if memory is None and (place is None or executor.backend.on_device):
        return executor
    if executor.backend.on_device:
        return _on_gpu(executor, bytes_of(memory), place, pinned)
    budget = usable(max(LEAST, memory_of(executor, bytes_of(memory))))
    if isinstance(executor, LocalExecutor):
        threads = max(1, min(len(executor.worker_threads), budget // SHARE))
        return LocalExecutor(FileStore(WorkDir(place), budget, threads=threads), threads)
    if isinstance(executor, DaskExecutor):  # OVERHEAD once more: a Dask worker's own memory grows
        return _keeping(executor, SharedFileStore(_shared(executor, place), budget - OVERHEAD))
    return executor


def _keeping(executor: DaskExecutor, store: ClusterStore) -> DaskExecutor:
    """Return an executor for the same client whose workers keep results in `store`."""
    faults = executor.faults
    return DaskExecutor(executor.client, faults.patience, faults.retries, store, executor.backend)


def _on_gpu(executor: Executor, memory: int | None, place: Place, pinned: int | None) -> Executor:
    if memory is None or executor.store.memory_per_call is not None:
        return executor
    budget = usable(max(LEAST, memory))
    if isinstance(executor, DaskExecutor):
        try:
            work: WorkDir | None = _shared(executor, place)
        except InputError:
            if place is not None:
                raise
            work = None  # some workers do not see the default: each makes its own
        host_bytes = float(memory_of(for_backend(executor, "cpu")))
        return _keeping(executor, DeviceClusterStore(work, budget, pinned, replica_bytes=host_bytes))
    if not isinstance(executor, LocalExecutor):
        return executor
    pinned = int(HOST * CPU.memory()) if pinned is None else pinned
    return LocalExecutor(DeviceStore(WorkDir(place), budget, pinned), backend=executor.backend)


def _shared(executor: DaskExecutor, place: Place) -> WorkDir:
    """Make a work directory, and refuse it unless every worker can write to it."""
    work = WorkDir(place)
    try:
        answers = executor.run_on_workers(hidden_here, work.folder)
        if hosts := [host for host in answers if host is not None]:
            raise InputError(
                f"{len(hosts)} of {plural(len(answers), 'worker')} (on {_names(hosts)}) cannot write to this host's "
                f"{os.path.dirname(work.folder)}, where files beyond {option('memory')} would stand: it is on no disk "
                f"that all mount; give one on such a disk with {advice('work_dir')}, or leave {option('memory')} and "
                f"{option('work_dir')} out, so that Dask's own limits hold"
            )
    except BaseException:
        work.close()
        raise
    return work


def _names(hosts: list[str]) -> str:
    names = sorted(set(hosts))
    remainder = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {remainder} more" if remainder > 0 else "")
