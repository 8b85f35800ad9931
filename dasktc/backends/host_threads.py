"""Threads of this process that read, check or write long arrays in slabs."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

from dasktc.backends.calls import dask_worker
from dasktc.backends.csr import Array

__all__ = ["SLAB", "allowed_threads", "in_threads", "read_bytes"]

SLAB = 1 << 23
"""Bytes that a thread reads or writes at a time."""
THREADS = 8
"""Largest number of threads."""
QUOTA = "/sys/fs/cgroup/cpu.max"


def allowed_threads(quota_file: str = QUOTA) -> int:
    """Number of cores that this process may use, by affinity and container quota; 1 within a task of a Dask worker."""
    if dask_worker() is not None:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    with suppress(OSError, ValueError), open(quota_file) as file:  # "max 100000" means no quota
        quota, period = map(int, file.read().split())
        cores = min(cores, -(-quota // period))
    return max(1, cores)


def in_threads(function: Callable[[int], Any], size: int, step: int | None = None) -> list[Any]:
    """Call a function with the start of each slab of `step` bytes or entries, on several threads; return the results.

    They are in order; the default step is SLAB.
    """
    starts = range(0, size, step or SLAB)
    threads = min(THREADS, len(starts), allowed_threads()) if len(starts) > 1 else 1
    if threads == 1:
        return [function(start) for start in starts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, starts))


def read_bytes(size: int, fill: Callable[[Any, int], None]) -> Array:
    """Make an array of `size` bytes that `fill` (buffer, start) reads on several threads."""
    data = np.empty(size, np.uint8)
    in_threads(lambda start: fill(data[start : start + SLAB], start), size)
    return data
