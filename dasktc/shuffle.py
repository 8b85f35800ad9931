"""The shuffle of edge keys: sort, cut at given keys, hand the pieces over as task inputs.

A partition is sorted once, so that its pieces are slices; they travel from worker to worker (the
p2p shuffle of dask.dataframe would take every edge through the host's memory and disk).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.keys import cut
from dasktc.tasks import Tasks

__all__ = ["exchange", "splitters"]

Array = Any
SAMPLES = 64
"""Sampled keys a range: ranges then differ by a tenth or so."""


def exchange(tasks: Tasks, stage: str, keys: list[Any], starts: list[int], bound: int, backend: str) -> list[list[Any]]:
    """Bring the keys of each range together.

    Parameters
    ----------
    tasks : Tasks
    stage : str
    keys : list of handles of int64 arrays
        Emptied.
    starts : list of int
        Where the second and later ranges begin, ascending.
    bound : int
        Every key is below it.
    backend : str

    Returns
    -------
    list of lists of handles
        Entry r holds the pieces of range r, one of each partition.
    """
    if not starts:
        whole, keys[:] = list(keys), []
        return [whole]
    slices = tasks.map(stage, cut, keys, starts, bound, backend)
    return tasks.pieces(stage, slices, len(starts) + 1)


def splitters(tasks: Tasks, stage: str, keys: list[Any], total: int, count: int) -> list[int]:
    """Keys that cut partitions of `total` keys into at most `count` ranges of about equal size (sample sort)."""
    if count == 1:
        return []
    step = max(1, total // (SAMPLES * count))
    found = np.sort(np.concatenate(tasks.gather(tasks.map(stage, _sample, list(keys), step))))
    return sorted({int(found[len(found) * r // count]) for r in range(1, count)}) if len(found) else []


def _sample(keys: Array, step: int) -> Array:
    """Every so-many-th key, in host memory."""
    chosen = keys[::step]
    return chosen.get() if hasattr(chosen, "get") else chosen.copy()
