"""Exchange of keys by range: every partition is cut at the same keys, and the slices of a range are brought together.

Pieces go from every worker to every worker at once, as inputs of tasks (the p2p shuffle of dask.dataframe would take
every edge through the host's memory and disk). Where every slice is a task, P partitions and R ranges make P·R tasks in
one step. In two steps the keys first go to about √R wide ranges, and from these, in partitions as large as before, to
the R ranges: 2·P·√R tasks, for one more pass over the keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from dasktc.executors.base import Executor
from dasktc.pipeline.stages.shuffle import cut_input, cut_together, quantiles, sample, sample_step

__all__ = ["Inputs", "Ranges", "exchange", "exchange_tasks", "splitters"]

Ranges = list[list[Any]]
"""Handles of the slices of each range."""


@dataclass(frozen=True)
class Inputs:
    """Inputs of an exchange, and the function that makes keys of them."""

    handles: list[Any]
    """The exchange takes them over."""
    keys: Callable[..., Any] | None = None
    """Callable (input, *shared) -> array of int64. Makes the keys of an input, cheaply enough to be called once per
    range; None: the inputs are keys."""
    shared: tuple[Any, ...] = ()
    """Further arguments of `keys`."""


def exchange(executor: Executor, stage: str, inputs: Inputs, starts: list[int], bound: int) -> Ranges:
    """Collect the slices of every partition that belong to each range.

    Parameters
    ----------
    executor : Executor
    stage : str
    inputs : Inputs
        Keys are made and cut in the same call.
    starts : list of int
        The first key of the second and of each later range, ascending.
    bound : int
        Every key is below `bound`.

    Returns
    -------
    list of lists of handles
        Entry r holds the slices of range r: one from each partition, or in two steps from each group of slices.
    """
    handles, keys, arguments = inputs.handles, inputs.keys, inputs.shared
    if not starts:
        if keys is not None:
            return [executor.map(stage, keys, handles, *arguments)]
        partitions, handles[:] = list(handles), []
        return [partitions]
    slices = executor.map(stage, cut_input, handles, keys, starts, bound, executor.backend, *arguments)
    return executor.transpose(stage, slices, len(starts) + 1)


def exchange_tasks(
    executor: Executor, stage: str, inputs: Inputs, starts: list[int], bound: int, direct: int
) -> Ranges:
    """Exchange as `exchange` does, where every slice is a task; by way of wide ranges if these are above `direct`."""
    if not starts or len(inputs.handles) * (len(starts) + 1) <= direct:
        return exchange(executor, stage, inputs, starts, bound)
    ranges, width = [], isqrt(len(starts)) + 1
    wide_starts = starts[width - 1 :: width]
    for number, slices_of_range in enumerate(exchange(executor, stage, inputs, wide_starts, bound)):
        # A group has as many slices as make about one partition.
        groups = [
            slices_of_range[first : first + len(wide_starts) + 1]
            for first in range(0, len(slices_of_range), len(wide_starts) + 1)
        ]
        slices_of_range.clear()
        inner_starts = starts[number * width : (number + 1) * width - 1]
        slices = executor.map(stage, cut_together, groups, inner_starts, bound, executor.backend)
        ranges += executor.transpose(stage, slices, len(inner_starts) + 1)
    return ranges


def splitters(executor: Executor, stage: str, keys: list[Any], total: int, count: int) -> list[int]:
    """Sample keys that cut `total` keys into at most `count` ranges of about equal size (sample sort)."""
    if count == 1:
        return []
    step = sample_step(total, count)
    samples = np.concatenate(executor.gather(executor.map(stage, sample, list(keys), step)))
    return quantiles([samples], [len(samples)], count)
