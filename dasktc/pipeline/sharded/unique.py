"""Distributed unique and sort: numbers the distinct values of many lists without collecting them in one process.

Ascending lists are cut at sampled values, and the slices of each range are merged to a shard of distinct values. A
value's number is its position in its shard plus the sizes of the shards before it. Each list receives the numbers of
its own values alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import on_host
from dasktc.executors.base import Executor, tree
from dasktc.pipeline.id_maps import check_size
from dasktc.pipeline.sharded.vectors import Sharded, cut, zipped

__all__ = ["ValueOps", "integers", "mixed", "numbered", "places", "unite"]

Array = Any
ARITY, ARITY_WITHIN = 8, 3
"""Number of lists merged at a time, without and with a memory budget."""
SAMPLES, MARGIN = 256, 1.1
"""Sampled values per shard; and the margin by which the number of distinct values may exceed its estimate."""


class ValueOps(NamedTuple):
    """Operations on ascending lists of distinct values, by the type of the values.

    Attributes
    ----------
    cut : callable (values, starts) -> list of lists
        Cuts a list before each of `starts`.
    unite : callable (list of lists) -> list
    find : callable (values, among) -> array
        Position of each value in a list that contains it.
    hash : callable (values) -> array of uint64
        Hashes below 2^63.
    """

    cut: Callable[[Any, list[Any]], list[Any]]
    unite: Callable[[list[Any]], Any]
    find: Callable[[Any, Any], Array]
    hash: Callable[[Any], Array]


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
    distinct : Sharded
        The distinct values in ascending order; a value's position is its number.
    numbers : list of lists of handles of arrays of int32
        For each list the numbers of its values, one array a shard.
    """
    starts = _starts(executor, stage, values, shards, ops)
    ranges = executor.transpose(stage, executor.map(stage, ops.cut, list(values), starts), len(starts) + 1)
    arity = ARITY if executor.memory_per_call is None else ARITY_WITHIN
    parts = [tree(executor, stage, ops.unite, list(of_shard), arity) for of_shard in ranges]
    sizes = executor.gather([executor.submit(stage, len, part) for part in parts])
    check_size(sum(sizes))
    distinct = Sharded(tuple(accumulate(sizes, initial=0)), parts)
    numbers = [
        executor.map(stage, _number, of_shard, part, first, ops)
        for of_shard, part, first in zip(ranges, parts, distinct.starts, strict=False)
    ]
    return distinct, [list(answers) for answers in zip(*numbers, strict=True)]


def _starts(
    executor: Executor, stage: str, values: list[Any], shards: Callable[[int], int], ops: ValueOps
) -> list[Any]:
    """Choose values that cut all distinct values into shards of about equal size.

    Every list samples the values with the same smallest hashes. A value that many lists hold thus weighs no more than
    another, and the number of distinct values is estimated to within a few hundredths.
    """
    total = sum(executor.gather(executor.map(stage, len, list(values))))
    most = shards(total)
    share = min(1.0, SAMPLES * most / max(1, total))
    samples = executor.gather(executor.map(stage, _sample, list(values), share, ops))
    sampled = sorted(set(chain.from_iterable(sample.tolist() for sample in samples)))
    count = min(most, shards(int(MARGIN * len(sampled) / share)))
    return sorted({sampled[len(sampled) * r // count] for r in range(1, count)}) if sampled else []


def _sample(values: Any, share: float, ops: ValueOps) -> Any:
    """The values whose hashes are below the given share of the hash range, on the host."""
    if share < 1:
        chosen = ops.hash(values) < np.uint64(share * 2**63)
        values = values[chosen] if hasattr(values, "dtype") else values.take(np.flatnonzero(chosen))
    return on_host(values)


def _number(values: Any, among: Any, first: int, ops: ValueOps) -> Array:
    numbers = ops.find(values, among).astype("int32")
    numbers += first
    return numbers


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
    ascending : Sharded
        The keys in ascending order.
    place : Sharded
        The position of each key there, sharded as `keys`.
    """
    sorted_shards = executor.map(stage, _ascending, list(keys.parts), bound, executor.backend)
    ascending, numbers = numbered(executor, stage, sorted_shards, lambda _: len(keys.parts), integers(executor.backend))
    parts = executor.map(stage, _in_place, zipped(list(keys.parts), numbers), executor.backend)
    return ascending, Sharded(keys.starts, parts)


def _ascending(keys: Array, bound: int, backend: Backend) -> Array:
    return backend.sort(keys.copy(), bound)


def _in_place(given: list[Any], backend: Backend) -> Array:
    xp, (keys, numbers) = backend.array, given
    place = xp.empty(len(keys), dtype="int32")
    place[keys.argsort()] = xp.concatenate(numbers)
    return place


def unite(lists: list[Array], backend: Backend) -> Array:
    """Merge lists to ascending distinct values; the CPU sorts in place, since a hash table takes twice the memory."""
    xp = backend.array
    values = xp.concatenate(lists)
    if backend.name != "cpu":
        return backend.distinct(values)
    values.sort(kind="stable")
    new = xp.ones(len(values), dtype=bool)
    xp.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def _find(values: Array, among: Array) -> Array:
    return among.searchsorted(values)


def integers(backend: Backend) -> ValueOps:
    """Operations on ascending arrays of int64."""
    return ValueOps(partial(cut, backend=backend), partial(unite, backend=backend), _find, mixed)


def mixed(values: Array) -> Array:
    """Hash integers to uint64 below 2^63."""
    hashes = values.astype("uint64")
    for shift, factor in ((32, 0x9E3779B97F4A7C15), (29, 0xD6E8FEB86659FD93)):
        hashes ^= hashes >> np.uint64(shift)
        hashes *= np.uint64(factor)
    return hashes >> np.uint64(1)
