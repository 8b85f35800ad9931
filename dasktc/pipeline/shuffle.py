"""Distributed shuffle of edge keys by range: cuts partitions at given keys, and groups the slices by range.

Pieces go from every worker to every worker at once, as inputs of tasks (the p2p shuffle of dask.dataframe would take
every edge through the host's memory and disk). In memory, `redistribute` submits one task for each piece that leaves
its worker, and none for those that stay. On the CPU a task more cuts each partition into all ranges at once; on a
device each task picks its keys by a pass of its own. Where pieces are smaller than what travels in the time of these
tasks, each range takes whole partitions instead, and picks its own keys out of them.

Within a budget each partition is cut once, and every slice is a result of its own (`exchange`). Where every slice is a
task, P partitions and R ranges make P·R tasks in one step. Beyond DIRECT tasks the keys first go to about √R wide
ranges, and from these, in partitions as large as before, to the R ranges: 2·P·√R tasks, for one more pass over the
keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import isqrt
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import on_host
from dasktc.backends.protocol import Buckets
from dasktc.executors.base import Executor, Fold
from dasktc.pipeline.edge_keys import cut

__all__ = [
    "Inputs",
    "Ranges",
    "cuts_partitions",
    "deal_here",
    "exchange",
    "quantiles",
    "redistribute",
    "redistribute_cut",
    "reduced",
    "sample_step",
    "splitters",
]

Array = Any
DIRECT = 1 << 12
"""Largest number of slice tasks in a shuffle of one step."""
SAMPLES, WANTED_SAMPLES, SHARE = 64, 1 << 14, 64
"""Least sampled keys per range, sampled keys in all where those are fewer, and the keys of which one is sampled then.
Sizes of ranges differ by about a tenth with 64 samples each; with 2^14 samples, 128 KiB, two ranges differ by 1 % and
sixteen by 3 %. Every worker waits for the largest range."""
FEW = {"cpu": 4, "cuda": 64}
"""Most ranges for which a pass per range over a partition is cheap, so that the partition need not be cut."""
KEY_BYTES = 8
RANGES_A_THREAD = 4
"""Ranges of buckets per thread; several, because they take unlike times, and a free thread takes the next."""


class Inputs(NamedTuple):
    """Inputs of a shuffle, and the functions that make keys of them.

    Attributes
    ----------
    handles : list of handles
        Emptied by the function that takes them over.
    keys : callable (input, *shared) -> array of int64, or None
        Makes the keys of an input, cheaply enough to be called once per range; None: the inputs are keys.
    shared : tuple
        Further arguments of `keys`; handles only where tasks exchange nothing.
    at : sequence of str or None
        The worker that has each input; empty: those of `Executor.homes`.
    chosen : callable (input, *shared) -> list of `radix.Ends`, or None
        Returns edges that stand for the same keys, which are made whenever they are read.
    """

    handles: list[Any]
    keys: Callable[..., Any] | None = None
    shared: tuple[Any, ...] = ()
    at: Sequence[str | None] = ()
    chosen: Callable[..., Any] | None = None


def redistribute(
    executor: Executor,
    stage: str,
    inputs: Inputs,
    total: int,
    starts: list[int],
    bound: int,
    reduce: Callable[..., Any],
    given: Sequence[tuple[Any, ...]],
    where: Sequence[str | None] = (),
    fold: Fold | None = None,
) -> tuple[list[Any], Any]:
    """Redistribute keys by range, and reduce the keys of each range to one result.

    Parameters
    ----------
    executor : Executor
    stage : str
    inputs : Inputs
    total : int
        About the number of keys of all inputs.
    starts : list of int
        The first key of the second and of each later range, ascending.
    bound : int
        Every key is below `bound`.
    reduce : callable (list of arrays, *given) -> result
        It may empty the list.
    given : sequence of tuples
        Further arguments of `reduce` for each range; no handles.
    where : sequence of str or None
        The worker for each range; default: those of `Executor.homes`.
    fold : Fold, optional
        Reduction over the results of all ranges, where tasks exchange nothing.

    Returns
    -------
    results : list of handles
        The result of each range.
    folded : handle, or None
        The result of `fold`.
    """
    handles, keys, shared, at, chosen = inputs
    count, sources = len(starts) + 1, len(handles)
    if not executor.exchanges or sources * count > DIRECT:
        ranges = exchange(executor, stage, inputs, starts, bound)
        return reduced(executor, stage, ranges, reduce, given, fold)
    at = at or executor.homes(sources)
    to = [where[k] or home if k < len(where) else home for k, home in enumerate(executor.homes(count))]
    held, make = _taken_over(handles), None if keys is None else partial(_keys_of, chosen or keys, shared)
    leaving = _leaving(at, to)
    whole = _whole(executor, sources, leaving, total)
    cuts = count > FEW[executor.backend.name] or not (whole or executor.backend.on_device)
    if cuts:
        given_up, held = held, []
        for k in range(sources):
            one = given_up[k], make, starts, bound, executor.backend
            held.append(executor.submit(stage, _all_ranges, *one, prefer=at[k]))
            given_up[k] = None
    spans = list(pairwise([0, *starts, bound]))
    picks = [itemgetter(r) if cuts else _Pick(make, spans[r], executor.backend, count == 1) for r in range(count)]
    apart = [[]] * count if whole else leaving
    return _picked(executor, stage, held, picks, apart, at, to, reduce, given), None


def redistribute_cut(
    executor: Executor,
    stage: str,
    cut_up: list[Any],
    count: int,
    reduce: Callable[..., Any],
    given: Sequence[tuple[Any, ...]],
) -> list[Any]:
    """Redistribute partitions that are cut, where `cuts_partitions`, and reduce the keys of each range to one result.

    Parameters
    ----------
    executor : Executor
    stage : str
    cut_up : list of handles
        Each of a list that has, for every range, a list of arrays. Emptied.
    count : int
    reduce, given
        As for `redistribute`; `given` may contain handles.
    """
    at, to, held = executor.homes(len(cut_up)), executor.homes(count), _taken_over(cut_up)
    picks = list(map(itemgetter, range(count)))
    return _picked(executor, stage, held, picks, _leaving(at, to), at, to, reduce, given)


def cuts_partitions(executor: Executor, sources: int, count: int, total: int) -> bool:
    """Whether partitions, each at its home, are cut before they are redistributed, so that pieces of them travel."""
    if not executor.exchanges or executor.backend.on_device or sources * count > DIRECT:
        return False
    return not _whole(executor, sources, _leaving(executor.homes(sources), executor.homes(count)), total)


def _leaving(at: Sequence[str | None], to: Sequence[str | None]) -> list[list[int]]:
    """For each range, the inputs from which keys have to travel to it."""
    return [[k for k in range(len(at)) if at[k] != home] for home in to]


def _picked(
    executor: Executor,
    stage: str,
    held: list[Any],
    picks: Sequence[Callable[[Any], list[Any]]],
    apart: list[list[int]],
    at: Sequence[str | None],
    to: Sequence[str | None],
    reduce: Callable[..., Any],
    given: Sequence[tuple[Any, ...]],
) -> list[Any]:
    """Reduce each range; pieces of the inputs in `apart` are picked there and travel, and other inputs travel whole."""
    results = []
    for r, pick in enumerate(picks):
        pieces = [executor.submit(stage, pick, held[k], prefer=at[k], urgent=True) for k in apart[r]]
        own = [held[k] for k in range(len(held)) if k not in apart[r]]
        results.append(executor.submit(stage, _range, own, pieces, pick, reduce, given[r], prefer=to[r]))
    return results


def _whole(executor: Executor, sources: int, leaving: list[list[int]], total: int) -> bool:
    """Whether inputs travel whole: sending only pieces saves less time than the tasks take that cut these out."""
    count = len(leaving)
    spared = KEY_BYTES * total * (sources - 1) * (count - 1) // (sources * count)  # bytes, for each worker
    return 1 in (sources, count) or spared <= sum(map(len, leaving)) * executor.task_bytes


@dataclass(frozen=True)
class _Pick:
    """Selects one range's keys from an uncut input of a shuffle, or all of them."""

    make: Callable[[Any], Any] | None
    span: tuple[int, int]
    backend: Backend
    everything: bool

    def __call__(self, item: Any) -> list[Any]:
        """Return the keys as arrays that `merge` takes."""
        made = item if self.make is None else self.make(item)
        keys = made if isinstance(made, list) else [made]
        if self.everything:
            return keys
        picked = [self.backend.edges.between(some, *self.span) for some in keys]
        # on a device each piece travels as one array
        return [self.backend.array.concatenate(picked)] if self.backend.on_device and len(picked) > 1 else picked


def _taken_over(handles: list[Any]) -> list[Any]:
    held, handles[:] = list(handles), []
    return held


def reduced(
    executor: Executor,
    stage: str,
    ranges: list[list[Any]],
    reduce: Callable[..., Any],
    given: Sequence[tuple[Any, ...]],
    fold: Fold | None = None,
) -> tuple[list[Any], Any]:
    """Reduce the slices of each range, and empty the list; parameters and results are those of `redistribute`."""
    pairs = [list(pair) for pair in zip(_taken_over(ranges), given, strict=True)]
    if fold is None:
        return executor.map(stage, _reduced, pairs, reduce), None
    return executor.map_and_fold(stage, _reduced, pairs, fold, reduce)


def _reduced(pair: list[Any], reduce: Callable[..., Any]) -> Any:
    arrays, given = pair
    pair.clear()
    return reduce(arrays, *given)


def _keys_of(keys: Callable[..., Array], shared: tuple[Any, ...], item: Any) -> Array:
    return keys(item, *shared)


def _all_ranges(
    item: Any, make: Callable[[Any], Any] | None, starts: list[int], bound: int, backend: Backend
) -> list[list[Array]]:
    """Cut an input before each of `starts`: the arrays of each range."""
    made = item if make is None else make(item)
    slices = [cut(keys, starts, bound, backend) for keys in (made if isinstance(made, list) else [made])]
    return [list(of_range) for of_range in zip(*slices, strict=True)]


def _range(
    own: list[Any],
    came: list[list[Array]],
    pick: Callable[[Any], list[Any]],
    reduce: Callable[..., Any],
    given: tuple[Any, ...],
) -> Any:
    """Pick a range's keys out of local inputs, add the pieces that arrived, and reduce them."""
    keys = [array for arrays in came for array in arrays]
    came.clear()
    while own:
        keys += pick(own.pop())
    return reduce(keys, *given)


class Ranges(NamedTuple):
    """Keys in this process's memory, dealt to buckets by their leading digit and not yet sorted.

    Attributes
    ----------
    buckets : Buckets
    spans : list of (int, int)
        Half-open ranges of buckets, one per call.
    """

    buckets: Buckets
    spans: list[tuple[int, int]]


def deal_here(executor: Executor, stage: str, keys: list[Any], bound: int) -> Ranges:
    """Deal keys into one array by their leading digit, on the threads of this process.

    The call that sorts a range of buckets also processes its keys while they are in cache. Neither ranges nor arrays
    are copied.

    Parameters
    ----------
    executor : Executor
        One that `shares_memory`.
    stage : str
    keys : list of arrays of int64, or of what `Edges.lazy_keys` returns
        Emptied; the arrays are only read.
    bound : int
        Every key is below `bound`.
    """
    buckets = executor.backend.dealt(keys, bound, (0, bound), partial(executor.map, stage))
    return Ranges(buckets, buckets.ranges(RANGES_A_THREAD * executor.workers))


def exchange(executor: Executor, stage: str, inputs: Inputs, starts: list[int], bound: int) -> list[list[Any]]:
    """Redistribute keys by range: collect the slices of every partition that belong to each range.

    Parameters
    ----------
    executor : Executor
    stage : str
    inputs : Inputs
        Its handles are emptied; `shared` may contain handles. Keys are made and cut in the same call.
    starts : list of int
        The first key of the second and of each later range, ascending.
    bound : int
        Every key is below `bound`.

    Returns
    -------
    list of lists of handles
        Entry r holds the slices of range r: one from each partition, or in two steps from each group of slices.
    """
    if not starts:
        handles, keys, shared, *_ = inputs
        return [_taken_over(handles) if keys is None else executor.map(stage, keys, handles, *shared)]
    if executor.transpose_submits and len(inputs.handles) * (len(starts) + 1) > DIRECT:
        return _in_two_steps(executor, stage, inputs, starts, bound)
    return _in_one_step(executor, stage, inputs, starts, bound)


def _in_one_step(executor: Executor, stage: str, inputs: Inputs, starts: list[int], bound: int) -> list[list[Any]]:
    given = (inputs.keys, starts, bound, executor.backend, *inputs.shared)
    slices = executor.map(stage, _cut, inputs.handles, *given)
    return executor.transpose(stage, slices, len(starts) + 1)


def _cut(
    item: Any, keys: Callable[..., Array] | None, starts: list[int], bound: int, backend: Backend, *shared: Any
) -> list[Array]:
    """Cut an input, or the keys made of it, before each of `starts`."""
    made = item if keys is None else keys(item, *shared)
    del item
    return cut(made, starts, bound, backend)


def _in_two_steps(executor: Executor, stage: str, inputs: Inputs, starts: list[int], bound: int) -> list[list[Any]]:
    ranges, width = [], isqrt(len(starts)) + 1
    wide = starts[width - 1 :: width]
    for number, slices_of_range in enumerate(_in_one_step(executor, stage, inputs, wide, bound)):
        # A group has as many slices as make about one partition.
        groups = [
            slices_of_range[first : first + len(wide) + 1] for first in range(0, len(slices_of_range), len(wide) + 1)
        ]
        slices_of_range.clear()
        within = starts[number * width : (number + 1) * width - 1]
        slices = executor.map(stage, _cut_together, groups, within, bound, executor.backend)
        ranges += executor.transpose(stage, slices, len(within) + 1)
    return ranges


def _cut_together(arrays: list[Array], starts: list[int], bound: int, backend: Backend) -> list[Array]:
    keys = backend.array.concatenate(arrays)
    arrays.clear()
    return cut(keys, starts, bound, backend)


def splitters(executor: Executor, stage: str, keys: list[Any], total: int, count: int) -> list[int]:
    """Sample keys that cut `total` keys into at most `count` ranges of about equal size (sample sort)."""
    if count == 1:
        return []
    step = sample_step(total, count)
    samples = np.sort(np.concatenate(executor.gather(executor.map(stage, _sample, list(keys), step))))
    return sorted({int(samples[len(samples) * r // count]) for r in range(1, count)}) if len(samples) else []


def sample_step(keys: int, ranges: int, parts: int = 1) -> int:
    """Distance between sampled keys in one of so many equal parts of all keys, which has `keys` of them."""
    return max(1, min(keys // (SAMPLES * ranges), max(SHARE, parts * keys // WANTED_SAMPLES)))


def quantiles(samples: list[Array], weights: list[int], count: int) -> list[int]:
    """Cut sampled keys into at most `count` ranges of about equal weight; return the first key of all but the first.

    Parameters
    ----------
    samples : list of arrays of int64
    weights : list of int
        Number of keys that each array was sampled from.
    count : int
    """
    if count == 1 or not sum(map(len, samples)):
        return []
    each = [np.full(len(of), weight / max(1, len(of))) for of, weight in zip(samples, weights, strict=True)]
    keys, weight = np.concatenate(samples), np.concatenate(each)
    order = np.argsort(keys, kind="stable")
    sums = weight.take(order).cumsum()
    places = sums.searchsorted([sums[-1] * r / count for r in range(1, count)], side="right")
    return sorted({int(keys[order[min(place, len(order) - 1)]]) for place in places} - {0})


def _sample(keys: Array, step: int) -> Array:
    """Every `step`-th key, in host memory."""
    return on_host(keys[::step].copy())
