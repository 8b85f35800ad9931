"""The shuffle of edge keys: sort, cut at given keys, hand the pieces over as task inputs.

A partition is sorted once, so that its pieces are slices; they travel from worker to worker (the
p2p shuffle of dask.dataframe would take every edge through the host's memory and disk). Where every piece is a task,
P partitions that go to R ranges in one step are P·R tasks. Beyond DIRECT keys go to about √R wide ranges first, and
from there on, in partitions as large as before, to the ranges themselves: 2·P·√R tasks for one more pass over the keys.
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
"""Pieces that are tasks of their own in one step, at most."""
SAMPLES = 64
"""Sampled keys a range: ranges then differ by a tenth or so."""


def exchange(
    executor: Executor, stage: str, keys: list[Any], starts: list[int], bound: int, backend: str
) -> list[list[Any]]:
    """Bring the keys of each range together.

    Parameters
    ----------
    executor : Executor
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
        # As many pieces together as are about a partition.
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
    """Keys that cut partitions of `total` keys into at most `count` ranges of about equal size (sample sort)."""
    if count == 1:
        return []
    step = max(1, total // (SAMPLES * count))
    samples = np.sort(np.concatenate(executor.gather(executor.map(stage, _sample, list(keys), step))))
    return sorted({int(samples[len(samples) * r // count]) for r in range(1, count)}) if len(samples) else []


def _sample(keys: Array, step: int) -> Array:
    """Every so-many-th key, in host memory."""
    chosen = keys[::step]
    return chosen.get() if hasattr(chosen, "get") else chosen.copy()
