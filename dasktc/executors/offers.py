"""What the processes that run calls offer: whether they can use a backend, and the memory that a task may take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import psutil

from dasktc.backends import ON_DEVICE, get_backend, unusable
from dasktc.executors.base import Executor
from dasktc.executors.dask.executor import DaskExecutor

__all__ = ["Offer", "memory_of", "offers_of"]

FILLABLE = 0.6
"""Share of a worker's memory limit beyond which Dask moves results to disk."""


class Offer(NamedTuple):
    """What one process offers to calls with a backend."""

    address: str
    """Of the worker; empty for this process."""
    why: str | None
    """The reason why it cannot use the backend."""
    free: int
    """Bytes that are available now on a worker's device, where the backend has one."""


def offers_of(executor: Executor, backend: str) -> list[Offer]:
    """Ask each process that runs an executor's calls what it offers to the named backend."""
    return executor.run_on_workers(_offer, backend)


def _offer(backend: str, dask_worker: Any = None) -> Offer:
    reason, address = unusable(backend), "" if dask_worker is None else dask_worker.address
    on_device = dask_worker is not None and not reason and backend in ON_DEVICE
    return Offer(address, reason, get_backend(backend).memory() if on_device else 0)


def memory_of(executor: Executor, budget: int | None = None, offers: Iterable[Offer] = ()) -> int:
    """Bytes that one counting task may take: what the store leaves, or else the smallest share of a worker's thread.

    Parameters
    ----------
    executor : Executor
    budget : int, optional
        Bytes of each worker. Default: what Dask lets it fill, or what its GPU or this machine has available now.
    offers : iterable of Offer
        What the workers have just answered, if they were asked for the executor's backend.
    """
    bound: int | None = executor.store.memory(budget)
    if bound is not None:
        return bound
    if not isinstance(executor, DaskExecutor):
        return budget or executor.backend.memory()
    if executor.backend.on_device and not budget:
        offers, threads = list(offers) or offers_of(executor, executor.backend.name), Counter(executor.worker_threads)
        shares = [offer.free // threads[offer.address] for offer in offers if offer.free and offer.address in threads]
        if len(shares) == len(threads):
            return min(shares)
    total = psutil.virtual_memory().total  # for a worker without a limit
    limits = executor.faults.memory_limits()
    return min((budget or int(FILLABLE * (limit or total))) // threads for limit, threads in limits)
