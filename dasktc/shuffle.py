"""The shuffle of edge keys: sort, cut at given keys, hand the pieces over as task inputs.

A partition is sorted once, so that its pieces are slices; they travel from worker to worker (the
p2p shuffle of dask.dataframe would take every edge through the host's memory and disk).
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from dasktc.csr import on_host
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


def splitters(tasks: Tasks, stage: str, keys: list[Any], total: int, count: int) -> list[Any]:
    """Keys that cut partitions of `total` keys into at most `count` ranges of about equal size (sample sort)."""
    if count == 1:
        return []
    step = max(1, total // (SAMPLES * count))
    samples = tasks.gather(tasks.map(stage, _sample, list(keys), step))
    found = sorted(chain.from_iterable(sample.tolist() for sample in samples))
    return sorted({found[len(found) * r // count] for r in range(1, count)}) if found else []


def _sample(keys: Array, step: int) -> Array:
    """Every so-many-th key, or text, in host memory of its own."""
    chosen = on_host(keys[::step])
    return chosen.copy() if hasattr(chosen, "copy") else chosen
