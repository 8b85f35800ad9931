"""Shuffle: cuts partitions of keys at the borders of ranges, and chooses borders by samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import on_host
from dasktc.pipeline.stages.edge_keys import cut

__all__ = [
    "SAMPLES", "SHARE", "WANTED_SAMPLES", "Pick", "all_ranges", "cut_input", "cut_together",
    "equal_ranges", "keys_of_input", "quantiles", "reduce_range", "reduce_slices", "sample", "sample_step",
]  # fmt: skip

Array = Any
SAMPLES, WANTED_SAMPLES, SHARE = 64, 1 << 14, 64
"""Least sampled keys per range, sampled keys in all where those are fewer, and the keys of which one is sampled then.
Sizes of ranges differ by about a tenth with 64 samples each; with 2^14 samples, 128 KiB, two ranges differ by 1 % and
sixteen by 3 %. Every worker waits for the largest range."""


@dataclass(frozen=True)
class Pick:
    """Selects one range's keys from an uncut input of a shuffle, or all of them; `joined`: as one array."""

    make: Callable[[Any], Any] | None
    span: tuple[int, int]
    backend: Backend
    everything: bool
    joined: bool

    def __call__(self, item: Any) -> list[Any]:
        """Return the keys as arrays that `Backend.merge` takes."""
        result = item if self.make is None else self.make(item)
        keys = result if isinstance(result, list) else [result]
        if self.everything:
            return keys
        slices = [self.backend.edges.between(array, *self.span) for array in keys]
        return [self.backend.array.concatenate(slices)] if self.joined and len(slices) > 1 else slices


def reduce_slices(pair: list[Any], reduce: Callable[..., Any]) -> Any:
    """Reduce the arrays of a pair (arrays, further arguments), and empty it."""
    arrays, arguments = pair
    pair.clear()
    return reduce(arrays, *arguments)


def keys_of_input(keys: Callable[..., Array], shared: tuple[Any, ...], item: Any) -> Array:
    """Make the keys of an input."""
    return keys(item, *shared)


def all_ranges(
    item: Any, make: Callable[[Any], Any] | None, starts: list[int], bound: int, backend: Backend
) -> list[list[Array]]:
    """Cut an input before each of `starts`: the arrays of each range."""
    result = item if make is None else make(item)
    slices = [cut(keys, starts, bound, backend) for keys in (result if isinstance(result, list) else [result])]
    return [list(range_slices) for range_slices in zip(*slices, strict=True)]


def reduce_range(
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


def cut_input(
    item: Any, keys: Callable[..., Array] | None, starts: list[int], bound: int, backend: Backend, *shared: Any
) -> list[Array]:
    """Cut an input, or the keys made of it, before each of `starts`."""
    array = item if keys is None else keys(item, *shared)
    del item
    return cut(array, starts, bound, backend)


def cut_together(arrays: list[Array], starts: list[int], bound: int, backend: Backend) -> list[Array]:
    """Join slices of keys, and cut them before each of `starts`."""
    keys = backend.array.concatenate(arrays)
    arrays.clear()
    return cut(keys, starts, bound, backend)


def sample_step(keys: int, ranges: int, parts: int = 1, wanted: int = WANTED_SAMPLES) -> int:
    """Distance between sampled keys in one of so many equal parts of all keys, which has `keys` of them."""
    return max(1, min(keys // (SAMPLES * ranges), max(SHARE, parts * keys // wanted)))


def equal_ranges(samples: list[Array], weights: list[int], count: int) -> list[int]:
    """Cut sampled keys into `count` ranges of about equal weight; return the first key of all but the first.

    Each sample stands for as many keys as its weight says. First keys may repeat; without samples all are 0.
    """
    sizes = [len(keys) for keys in samples]
    if count == 1 or not sum(sizes):
        return [0] * (count - 1)
    weight = np.repeat([weight / max(1, size) for weight, size in zip(weights, sizes, strict=True)], sizes)
    keys = np.concatenate(samples)
    positions = np.argsort(keys)  # equal ones in any order: a cut is a key
    sums = weight.take(positions).cumsum()
    places = sums.searchsorted([sums[-1] * number / count for number in range(1, count)], side="right")
    return [int(keys[positions[min(place, len(keys) - 1)]]) for place in places]


def quantiles(samples: list[Array], weights: list[int], count: int) -> list[int]:
    """Cut sampled keys as `equal_ranges` does, into at most `count` ranges, none of which is empty by these samples."""
    return sorted({*equal_ranges(samples, weights, count)} - {0})


def sample(keys: Array, step: int) -> Array:
    """Every `step`-th key, in host memory."""
    return on_host(keys[::step].copy())
