"""Tests sampled wedges for a closing edge on the CPU: one pass over the row offsets, and one bisection per wedge."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from dasktc.backends.cpu.intersect import Triple, last_not_above, length, triple
from dasktc.backends.cpu.jit import Kernel, Word, inlined
from dasktc.backends.csr import BEHIND, Array, BlockTask
from dasktc.backends.wedge_sample import MULTIPLIERS, STEP, Strata

__all__ = ["closed"]

U = np.uint64
_STEP, _FIRST, _SECOND = U(STEP), U(MULTIPLIERS[0]), U(MULTIPLIERS[1])


@inlined
def _drawn(k: Any, key: Any, width: Any) -> Any:
    """The sampled wedge of stratum k."""
    x = U(key) + U(k + 1) * _STEP
    x = (x ^ (x >> U(30))) * _FIRST
    x = (x ^ (x >> U(27))) * _SECOND
    x = x ^ (x >> U(31))
    return k * width + np.int64(x % U(width))


@inlined
def _has(columns: Array, first: Any, last: Any, x: Any) -> Any:
    """Whether ascending columns contain x."""
    return first < last and columns[U(last_not_above(columns, first, last, x))] == x


@Kernel
def _closed(t: Triple, first: int, end: int, first_wedge: int, width: int, key: Word, one_block: bool) -> Any:
    index, index_columns, table, table_columns, stream, stream_columns, _, rows, _, shift = t
    sample_size = closed_count = start = 0
    k, wedge = first, np.int64(-1)
    while k < end and wedge < 0:  # a stratum may begin before the triple
        wedge = _drawn(k, key, width) - first_wedge
        k += 1
    if wedge < 0:
        return sample_size, closed_count
    for u in range(rows):
        degree = length(index, u)
        row_end = start + (degree * (degree - 1) // 2 if one_block else degree * length(table, u))
        while wedge < row_end:
            place = wedge - start
            if one_block:
                high = np.int64((1 + sqrt(1 + 8.0 * place)) / 2)
                high -= high * (high - 1) // 2 > place
                high += (high + 1) * high // 2 <= place
                low = place - high * (high - 1) // 2
            else:
                high, low = place // length(table, u), place % length(table, u)
            v, w = np.int64(index_columns[index[u] + high]), np.int64(table_columns[table[u] + low])
            is_closed = _has(stream_columns, stream[v], stream[v + 1], w)
            if one_block and shift == BEHIND and not is_closed:
                is_closed = _has(stream_columns, stream[w], stream[w + 1], v)
            closed_count += is_closed
            sample_size += 1
            if k == end:
                return sample_size, closed_count
            wedge = _drawn(k, key, width) - first_wedge
            k += 1
        start = row_end
    return sample_size, closed_count


def closed(task: BlockTask, strata: Strata) -> tuple[int, int]:
    """Test the sampled wedges of a triple for closing edges; return how many they are, and how many are closed.

    The task's splits are ignored.
    """
    t = triple(task)._replace(begin=0, end=task.index.rows)
    sample_size, closed_count = _closed(
        t, strata.first, strata.end, strata.before, strata.width, U(strata.key), strata.one
    )
    return int(sample_size), int(closed_count)
