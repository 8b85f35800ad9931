"""Distributed shuffle of edge keys by range: sorts partitions, cuts them at given keys, and groups the slices by range.

A partition is sorted once, so that cutting it yields slices; as task inputs these go directly from worker to worker
(the p2p shuffle of dask.dataframe would take every edge through the host's memory and disk). Where every slice is a
task, P partitions and R ranges make P·R tasks in one step. Beyond DIRECT tasks the keys go to about √R wide ranges
first, and from these, in partitions as large as before, to the R ranges: 2·P·√R tasks for one more pass over the keys.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np

from dasktc.backends import get_backend
from dasktc.executors.base import Executor
from dasktc.pipeline.edge_keys import cut

__all__ = ["exchange", "splitters"]

Array = Any
DIRECT = 1 << 12
"""Most tasks of slices in a shuffle of one step."""
SAMPLES = 64
"""Sampled keys a range, with which the sizes of ranges differ by about a tenth."""


def exchange(
    executor: Executor, stage: str, keys: list[Any], starts: list[int], bound: int, backend: str
) -> list[list[Any]]:
    """Redistribute keys by range: collect the slices of every partition that belong to each range.

    Parameters
    ----------
    executor : Executor
    stage : str
    keys : list of handles of int64 arrays
        Emptied.
    starts : list of int
        The first key of the second and of each later range, ascending.
    bound : int
        Every key is below it.
    backend : str

    Returns
    -------
    list of lists of handles
        Entry r holds the slices of range r, one of each partition.
    """
    if not starts:
        whole, keys[:] = list(keys), []
        return [whole]
    if executor.transpose_submits and len(keys) * (len(starts) + 1) > DIRECT:
        return _in_two_steps(executor, stage, keys, starts, bound, backend)
    return _in_one_step(executor, stage, keys, starts, bound, backend)


def _in_one_step(
    executor: Executor, stage: str, keys: list[Any], starts: list[int], bound: int, backend: str
) -> list[list[Any]]:
    slices = executor.map(stage, cut, keys, starts, bound, backend)
    return executor.transpose(stage, slices, len(starts) + 1)


def _in_two_steps(
    executor: Executor, stage: str, keys: list[Any], starts: list[int], bound: int, backend: str
) -> list[list[Any]]:
    ranges, width = [], isqrt(len(starts)) + 1
    wide = starts[width - 1 :: width]
    for number, slices_of_range in enumerate(_in_one_step(executor, stage, keys, wide, bound, backend)):
        # As many slices together as make about one partition.
        groups = [
            slices_of_range[first : first + len(wide) + 1] for first in range(0, len(slices_of_range), len(wide) + 1)
        ]
        slices_of_range.clear()
        within = starts[number * width : (number + 1) * width - 1]
        slices = executor.map(stage, _cut_together, groups, within, bound, backend)
        ranges += executor.transpose(stage, slices, len(within) + 1)
    return ranges


def _cut_together(arrays: list[Array], starts: list[int], bound: int, backend: str) -> list[Array]:
    keys = get_backend(backend).array.concatenate(arrays)
    arrays.clear()
    return cut(keys, starts, bound, backend)


def splitters(executor: Executor, stage: str, keys: list[Any], total: int, count: int) -> list[int]:
    """Sample keys that cut `total` keys into at most `count` ranges of about equal size (sample sort)."""
    if count == 1:
        return []
    step = max(1, total // (SAMPLES * count))
    samples = np.sort(np.concatenate(executor.gather(executor.map(stage, _sample, list(keys), step))))
    return sorted({int(samples[len(samples) * r // count]) for r in range(1, count)}) if len(samples) else []


def _sample(keys: Array, step: int) -> Array:
    """Every `step`-th key, in host memory."""
    chosen = keys[::step]
    return chosen.get() if hasattr(chosen, "get") else chosen.copy()
