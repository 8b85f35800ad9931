"""Values of Dask Delayeds that parts of a source need, computed where the executor's calls run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dasktc.executors.base import DelayedValue, Executor
from dasktc.executors.dask.executor import DaskExecutor, compute_on_workers

__all__ = ["upstream_of"]


def upstream_of(executor: Executor, parts: Iterable[Any]) -> list[Any]:
    """Compute the Delayeds of parts (`Part.upstream`) together, and return handles of their values; None stays None.

    In this process within a budget each is computed when it is read.
    """
    delayed = [part.upstream for part in parts]
    if all(item is None for item in delayed):
        return delayed
    if isinstance(executor, DaskExecutor):
        return compute_on_workers(executor, delayed)
    if executor.store.memory_per_call is not None:
        return [None if item is None else DelayedValue(item) for item in delayed]
    import dask

    threads = len(executor.worker_threads)
    settings = {"scheduler": "sync"} if threads == 1 else {"scheduler": "threads", "num_workers": threads}
    return list(dask.compute(*delayed, **settings))
