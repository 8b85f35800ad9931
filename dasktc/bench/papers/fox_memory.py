"""Counts the memory sectors that searches read, as a GPU fetches them: behind Fox et al.'s figure 4.

The lanes of a warp bisect in step, and each step fetches the distinct 32-byte sectors that its lanes read: one a
lane where each lane searches a list of its own, few where they search one list and begin at its middle together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dasktc.backends.csr import OrientedCSR
from dasktc.bench.papers.bench import host_arrays, lengths

__all__ = ["sectors_a_search"]

WARP, SECTOR = 32, 8
"""Lanes of a warp, and 32-bit columns of a sector."""
WARPS = 192
"""Looked at, evenly spaced over all."""


class _Lanes(NamedTuple):
    """For each lane, shape (warps, 32): where its part of the shorter list, and the longer list, lie in `columns`."""

    begin: Any
    stop: Any
    low: Any
    high: Any


def sectors_a_search(block: OrientedCSR, threads: int) -> float:
    """Sectors that a search reads with so many threads an edge, of kernel `search`, its edges in LRB's order.

    Parameters
    ----------
    block : OrientedCSR
        A whole graph in degree order.
    threads : int
        An edge, a power of two.
    """
    columns, edges = host_arrays(block)[1], _edges(block)
    if not len(edges[0]):
        return 0.0
    lanes = _lanes(*edges, threads)
    sectors, searches, at = 0, 0, lanes.low.copy()
    for step in range(int((lanes.stop - lanes.begin).max(initial=0))):
        place, active = lanes.begin + step, lanes.begin + step < lanes.stop
        searches += int(active.sum())
        sectors += _distinct(place, active)
        x = columns[np.where(active, place, 0)]
        at, reads = _bisect(columns, x, at, lanes.high, active)
        sectors += reads + _distinct(at, active & (at < lanes.high))
    return sectors / searches


def _bisect(columns: Any, x: Any, low: Any, high: Any, active: Any) -> tuple[Any, int]:
    """Places of the first entries not below x, and the sectors that the warps read for it."""
    low, high, sectors = low.copy(), high.copy(), 0
    going = active & (low < high)
    while going.any():
        middle = (low + high) >> 1
        sectors += _distinct(middle, going)
        below = going & (columns[np.where(going, middle, 0)] < x)
        low, high = np.where(below, middle + 1, low), np.where(going & ~below, middle, high)
        going = going & (low < high)
    return low, sectors


def _distinct(place: Any, active: Any) -> int:
    """Distinct sectors of the active lanes' places, added up over the warps."""
    sector = np.sort(np.where(active, place // SECTOR, -1), axis=1)
    new = np.ones(sector.shape, bool)
    new[:, 1:] = sector[:, 1:] != sector[:, :-1]
    return int((new & (sector >= 0)).sum())


def _edges(block: OrientedCSR) -> tuple[Any, Any, Any, Any]:
    """For each edge with work, in LRB's order: start and length of the shorter list and of the longer one."""
    u, _, b = lengths(block)
    offsets, columns = host_arrays(block)
    first = offsets[u]
    a = np.arange(len(u)) - first
    work = np.minimum(a, b)
    bins = np.ceil(np.log2(np.maximum(work, 1))).astype("int64")
    order = np.argsort(bins, kind="stable")
    edge = order[work[order] > 0]
    a_first, v_first, of_b = first[edge], offsets[columns[edge]], b[edge] < a[edge]
    shorter, longer = np.where(of_b, v_first, a_first), np.where(of_b, a_first, v_first)
    return shorter, work[edge], longer, np.maximum(a[edge], b[edge])


def _lanes(shorter: Any, shorter_size: Any, longer: Any, longer_size: Any, threads: int) -> _Lanes:
    """The lanes of some warps, each with its part of an edge."""
    count = len(shorter) * threads
    warps = -(-count // WARP)
    lane = np.unique(np.linspace(0, warps - 1, WARPS).astype("int64"))[:, None] * WARP + np.arange(WARP)
    idle, edge = lane >= count, np.minimum(lane // threads, len(shorter) - 1)
    share = -(-shorter_size[edge] // threads)
    begin = shorter[edge] + np.minimum(lane % threads * share, shorter_size[edge])
    stop = np.where(idle, begin, np.minimum(begin + share, shorter[edge] + shorter_size[edge]))
    return _Lanes(begin, stop, longer[edge], longer[edge] + longer_size[edge])
