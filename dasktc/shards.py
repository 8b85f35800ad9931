"""Vectors over the vertices in shards, so that no process holds one as large as the vertices.

Shard s holds the places from `starts[s]` to `starts[s + 1]`. A partition of edges knows few of the vertices: what it
wants of a vector it asks of the shards, by an ascending list of its vertices that is cut where shards begin, and what
it adds to a vector goes to the shards likewise. Lists and answers are inputs of tasks and travel from worker to worker.
A vector of one shard is a whole one: that is the way where the vertices fit.

Numbering is the same exchange: ascending lists of values are cut at sampled ones, each range is united, and what the
ranges before it hold is the number of its first value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.backend import get_backend
from dasktc.tasks import Fold, Tasks, tree

__all__ = [
    "Kind",
    "Sharded",
    "added",
    "even",
    "integers",
    "mixed",
    "moved",
    "numbered",
    "places",
    "taken",
    "unite",
    "zipped",
]

Array = Any
GROUP, GROUP_WITHIN = 8, 3
"""Lists that are united at a time; within a budget."""
SAMPLES, MARGIN = 64, 1.1
"""Values a shard that are sampled, and how much more there may be than the samples say."""


class Sharded(NamedTuple):
    """A vector over 0 .. V-1.

    Attributes
    ----------
    starts : tuple of int, length shards + 1
        The first place of each shard, and V.
    parts : list of handles of arrays
    """

    starts: tuple[int, ...]
    parts: list[Any]

    @property
    def size(self) -> int:
        """V."""
        return self.starts[-1]

    @property
    def whole(self) -> Any:
        """The handle of all of it, where that is one array."""
        (part,) = self.parts
        return part

    def map(self, tasks: Tasks, stage: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Call `function(part, first, *shared)` for each shard."""
        return [
            tasks.submit(stage, function, part, first, *shared)
            for part, first in zip(self.parts, self.starts[:-1], strict=True)
        ]


class Kind(NamedTuple):
    """What values are: how a list of them, ascending and distinct, is handled.

    Attributes
    ----------
    cut : callable (values, starts) -> list of lists
        Before each of `starts`.
    unite : callable (list of lists) -> list
    find : callable (values, among) -> array
        The place of each value among others that hold it.
    hash : callable (values) -> array of uint64
        Below 2^63.
    """

    cut: Callable[[Any, list[Any]], list[Any]]
    unite: Callable[[list[Any]], Any]
    find: Callable[[Any, Any], Array]
    hash: Callable[[Any], Array]


def even(size: int, count: int) -> tuple[int, ...]:
    """Where `count` shards of about equally many places begin, and the size."""
    return tuple(size * shard // count for shard in range(count + 1))


def zipped(*lists: list[Any]) -> list[list[Any]]:
    """Entries that belong together, as inputs of one call each; the lists are emptied, so that inputs can be freed."""
    found = [list(entries) for entries in zip(*lists, strict=True)]
    for given in lists:
        given.clear()
    return found


def numbered(
    tasks: Tasks, stage: str, values: list[Any], shards: Callable[[int], int], kind: Kind
) -> tuple[Sharded, list[list[Any]]]:
    """Number the distinct values of all lists in ascending order.

    Parameters
    ----------
    tasks : Tasks
    stage : str
    values : list of handles of ascending distinct values
    shards : callable (values) -> int
        How many shards so many distinct values are kept in.
    kind : Kind

    Returns
    -------
    distinct : Sharded
        The values by number.
    numbers : list of lists of handles of arrays of int32
        Of each list's values: a shard's after another's.
    """
    starts = _starts(tasks, stage, values, shards, kind)
    pieces = tasks.pieces(stage, tasks.map(stage, kind.cut, list(values), starts), len(starts) + 1)
    arity = GROUP if tasks.room is None else GROUP_WITHIN
    parts = [tree(tasks, stage, kind.unite, list(of_shard), arity) for of_shard in pieces]
    sizes = tasks.gather([tasks.submit(stage, len, part) for part in parts])
    found = Sharded(tuple(accumulate(sizes, initial=0)), parts)
    numbers = [
        tasks.map(stage, _number, of_shard, part, first, kind)
        for of_shard, part, first in zip(pieces, parts, found.starts, strict=False)
    ]
    return found, [list(answers) for answers in zip(*numbers, strict=True)]


def _starts(tasks: Tasks, stage: str, values: list[Any], shards: Callable[[int], int], kind: Kind) -> list[Any]:
    """Values that cut all distinct ones into shards of about equal size.

    Every list samples the values of the same few hashes: the more lists hold a value, the no more it weighs, and
    how many distinct values there are is known to some hundredths.
    """
    total = sum(tasks.gather(tasks.map(stage, len, list(values))))
    most = shards(total)
    share = min(1.0, SAMPLES * most / max(1, total))
    samples = tasks.gather(tasks.map(stage, _sample, list(values), share, kind))
    found = sorted(set(chain.from_iterable(sample.tolist() for sample in samples)))
    count = min(most, shards(int(MARGIN * len(found) / share)))
    return sorted({found[len(found) * r // count] for r in range(1, count)}) if found else []


def _sample(values: Any, share: float, kind: Kind) -> Any:
    """Those values whose hash is in a share of all hashes."""
    return values if share == 1 else values.take(np.flatnonzero(kind.hash(values) < np.uint64(share * 2**63)))


def _number(values: Any, among: Any, first: int, kind: Kind) -> Array:
    found = kind.find(values, among).astype("int32")
    found += first
    return found


def taken(tasks: Tasks, stage: str, vector: Sharded, ids: list[Any]) -> list[list[Any]]:
    """Ask for entries of a vector.

    Parameters
    ----------
    tasks : Tasks
    stage : str
    vector : Sharded
    ids : list of handles of arrays
        Ascending lists of places.

    Returns
    -------
    list of lists of handles of arrays
        The entries for each list: a shard's after another's.
    """
    count = len(vector.parts)
    pieces = tasks.pieces(stage, tasks.map(stage, _cut, list(ids), vector.starts[1:-1]), count)
    answers = [
        tasks.map(stage, _entries, of_shard, part, first)
        for of_shard, part, first in zip(pieces, vector.parts, vector.starts, strict=False)
    ]
    return [list(found) for found in zip(*answers, strict=True)]


def _cut(values: Array, starts: Any) -> list[Array]:
    return [values[begin:end] for begin, end in pairwise(_cuts(values, starts))]


def _cuts(values: Array, starts: Any) -> list[int]:
    return [0, *values.searchsorted(np.asarray(starts, dtype=values.dtype)).tolist(), len(values)]


def _entries(ids: Array, part: Array, first: int) -> Array:
    return part.take(ids - first)


def added(
    tasks: Tasks,
    stage: str,
    ids: list[Any],
    values: list[Any],
    starts: tuple[int, ...],
    backend: str,
    how: tuple[str, int] = ("add", 0),
) -> Sharded:
    """Put values of many lists into a vector.

    Parameters
    ----------
    tasks : Tasks
    stage : str
    ids : list of handles of arrays
        Ascending lists of distinct places.
    values : list of handles of arrays
        One for each place.
    starts : tuple of int
        Of the vector.
    backend : str
    how : (str, int)
        The array module's function that joins two values, and what an entry is before any.

    Returns
    -------
    Sharded
        Of int64.
    """
    inputs = [list(pair) for pair in zip(ids, values, strict=True)]
    pieces = tasks.pieces(stage, tasks.map(stage, _cut_pairs, inputs, starts[1:-1]), len(starts) - 1)
    group, parts = GROUP if tasks.room is None else 1, []
    for of_shard, (first, end) in zip(pieces, pairwise(starts), strict=True):
        fold = Fold(
            partial(_filled, end - first, how[1], backend),
            partial(_put, first=first, joined=how[0], backend=backend),
            partial(_joined, joined=how[0], backend=backend),
        )
        groups = [of_shard[start : start + group] for start in range(0, len(of_shard), group)]
        of_shard.clear()
        parts.append(tasks.fold(stage, fold, groups))
    return Sharded(starts, parts)


def _cut_pairs(pair: list[Array], starts: Any) -> list[tuple[Array, Array]]:
    ids, values = pair
    return [(ids[begin:end], values[begin:end]) for begin, end in pairwise(_cuts(ids, starts))]


def _filled(size: int, value: int, backend: str) -> Array:
    return get_backend(backend).array.full(size, value, dtype="int64")


def _put(found: Array, pieces: list[Any], first: int, joined: str, backend: str) -> Array:
    function = getattr(get_backend(backend).array, joined)
    for ids, values in pieces:
        places = ids - first
        found[places] = function(found.take(places), values)
    return found


def _joined(vectors: list[Array], joined: str, backend: str) -> Array:
    """As `orient.total` adds: an input at a time."""
    function, result = getattr(get_backend(backend).array, joined), vectors.pop().copy()
    while vectors:
        function(result, vectors.pop(), out=result)
    return result


def moved(
    tasks: Tasks,
    stage: str,
    vector: Sharded,
    place: Sharded,
    backend: str,
    starts: tuple[int, ...] | None = None,
) -> Sharded:
    """The vector with every entry at its new place.

    Parameters
    ----------
    tasks : Tasks
    stage : str
    vector, place : Sharded
        In the same shards; `place` holds each number 0 .. V-1 once.
    backend : str
    starts : tuple of int, optional
        Of the result; default: as before.
    """
    pairs = tasks.map(stage, _by_place, zipped(list(vector.parts), list(place.parts)))
    ids, values = tasks.pieces(stage, pairs, 2)
    return added(tasks, stage, ids, values, starts or vector.starts, backend)


def _by_place(given: list[Array]) -> list[Array]:
    values, places = given
    order = places.argsort()
    return [places.take(order), values.take(order)]


def places(tasks: Tasks, stage: str, keys: Sharded, backend: str) -> tuple[Sharded, Sharded]:
    """Sort keys across the shards.

    Parameters
    ----------
    tasks : Tasks
    stage : str
    keys : Sharded
        Of int64, all distinct.
    backend : str

    Returns
    -------
    ascending : Sharded
        The keys in ascending order.
    place : Sharded
        The place of each key there, in the shards of `keys`.
    """
    ascending = tasks.map(stage, _ascending, list(keys.parts), backend)
    found, numbers = numbered(tasks, stage, ascending, lambda _: len(keys.parts), integers(backend))
    parts = tasks.map(stage, _in_place, zipped(list(keys.parts), numbers), backend)
    return found, Sharded(keys.starts, parts)


def _ascending(keys: Array, backend: str) -> Array:
    return get_backend(backend).array.sort(keys)


def _in_place(given: list[Any], backend: str) -> Array:
    xp, (keys, numbers) = get_backend(backend).array, given
    found = xp.empty(len(keys), dtype="int32")
    found[keys.argsort()] = xp.concatenate(numbers)
    return found


def unite(found: list[Array], backend: str) -> Array:
    """Merge ascending distinct values; on the host in place, where a hash table of all would take twice as much."""
    xp = get_backend(backend).array
    values = xp.concatenate(found)
    if backend != "cpu":
        return get_backend(backend).distinct(values)
    values.sort(kind="stable")
    new = xp.ones(len(values), dtype=bool)
    xp.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def _find(values: Array, among: Array) -> Array:
    return among.searchsorted(values)


def integers(backend: str) -> Kind:
    """Arrays of int64."""
    return Kind(_cut, partial(unite, backend=backend), _find, mixed)


def mixed(values: Array) -> Array:
    """Hashes of integers, below 2^63."""
    found = values.astype("uint64")
    for shift, factor in ((32, 0x9E3779B97F4A7C15), (29, 0xD6E8FEB86659FD93)):
        found ^= found >> np.uint64(shift)
        found *= np.uint64(factor)
    return found >> np.uint64(1)
