"""Distributed unique and sort: numbers the distinct values of many lists without collecting them in one process.

Ascending lists are cut at sampled values, and the slices of each range are merged to a shard of distinct values. A
value's number is its position in its shard plus the sizes of the shards before it. Each list receives the numbers of
its own values alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, chain
from typing import Any

from dasktc.backends.vertex_maps import check_size
from dasktc.executors.base import Executor, tree
from dasktc.pipeline.planes.vectors import Sharded, zipped
from dasktc.pipeline.stages.shards import (
    ValueOps,
    in_place,
    integers,
    number_lists,
    number_values,
    sample_values,
    sorted_keys,
)

__all__ = ["ARITY", "ARITY_WITHIN", "MARGIN", "SAMPLES", "numbered", "places"]

ARITY, ARITY_WITHIN = 8, 3
"""Number of lists merged at a time, without and with a memory budget."""
SAMPLES, MARGIN = 256, 1.1
"""Sampled values per shard; and the margin by which the number of distinct values may exceed its estimate."""


def numbered(
    executor: Executor, stage: str, values: list[Any], shards: Callable[[int], int], ops: ValueOps
) -> tuple[Sharded, list[list[Any]]]:
    """Number the distinct values of all lists in ascending order.

    Parameters
    ----------
    executor : Executor
    stage : str
    values : list of handles of ascending distinct values
    shards : callable (values) -> int
        Returns the number of shards for the given number of distinct values.
    ops : ValueOps

    Returns
    -------
    distinct_values : Sharded
        The distinct values in ascending order; a value's position is its number.
    numbers : list of lists of handles of arrays of int32
        For each list the numbers of its values, one array a shard.
    """
    starts = _starts(executor, stage, values, shards, ops)
    ranges = executor.transpose(stage, executor.map(stage, ops.cut, list(values), starts), len(starts) + 1)
    has_budget = executor.store.memory_per_call is not None
    arity = ARITY_WITHIN if has_budget else ARITY
    parts = [tree(executor, stage, ops.unite, list(shard_lists), arity) for shard_lists in ranges]
    sizes = executor.gather([executor.submit(stage, len, part) for part in parts])
    check_size(sum(sizes))
    distinct_values = Sharded(tuple(accumulate(sizes, initial=0)), parts)
    if not has_budget:  # on workers an entry of a list would be a task
        numbers = [
            executor.map(stage, number_values, shard_lists, part, first, ops)
            for shard_lists, part, first in zip(ranges, parts, distinct_values.starts, strict=False)
        ]
        return distinct_values, zipped(*numbers)
    # Slices of as many lists as there are shards take about the memory of one list.
    numbers = []
    for shard_lists, part, first in zip(ranges, parts, distinct_values.starts, strict=False):
        groups = [shard_lists[start : start + len(parts)] for start in range(0, len(shard_lists), len(parts))]
        shard_lists.clear()
        lengths = list(map(len, groups))
        results = executor.map(stage, number_lists, groups, part, first, ops)
        results.reverse()
        entries = [executor.transpose(stage, [results.pop()], length) for length in lengths]
        numbers.append([handle for columns in entries for (handle,) in columns])
    return distinct_values, zipped(*numbers)


def _starts(
    executor: Executor, stage: str, values: list[Any], shards: Callable[[int], int], ops: ValueOps
) -> list[Any]:
    """Choose values that cut all distinct values into shards of about equal size.

    Every list samples the values with the same smallest hashes. A value that many lists hold thus weighs no more than
    another, and the number of distinct values is estimated to within a few hundredths.
    """
    total = sum(executor.gather(executor.map(stage, len, list(values))))
    shard_count = shards(total)
    share = min(1.0, SAMPLES * shard_count / max(1, total))
    samples = executor.gather(executor.map(stage, sample_values, list(values), share, ops))
    keys = sorted(set(chain.from_iterable(sample.tolist() for sample in samples)))
    count = min(shard_count, shards(int(MARGIN * len(keys) / share)))
    return sorted({keys[len(keys) * r // count] for r in range(1, count)}) if keys else []


def places(executor: Executor, stage: str, keys: Sharded, bound: int) -> tuple[Sharded, Sharded]:
    """Sort distinct keys across the shards, and return each key's position in the sorted order.

    Parameters
    ----------
    executor : Executor
    stage : str
    keys : Sharded
        Of int64, all distinct.
    bound : int
        Every key is at least 0 and below `bound`.

    Returns
    -------
    distinct_keys : Sharded
        The keys in ascending order.
    place : Sharded
        The position of each key there, sharded as `keys`.
    """
    sorted_shards = executor.map(stage, sorted_keys, list(keys.parts), bound, executor.backend)
    distinct_keys, numbers = numbered(
        executor, stage, sorted_shards, lambda _: len(keys.parts), integers(executor.backend)
    )
    parts = executor.map(stage, in_place, zipped(list(keys.parts), numbers), executor.backend)
    return distinct_keys, Sharded(keys.starts, parts)
