"""The CPU backend: pandas, NumPy, and kernels compiled by Numba.

A kernel is serial and runs without the GIL: parallelism comes from Dask, one task a thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

import numpy as np
import pandas as pd

from dasktc.backend import Backend, hub, intersect, radix
from dasktc.backend.intersect import BEHIND, Triple, triple
from dasktc.backend.probes import expected_probes
from dasktc.backend.radix import sort
from dasktc.csr import Array, BlockTask, TaskCount
from dasktc.errors import InputError

__all__ = ["BACKEND", "KERNELS", "count", "expected_probes", "scratch_bytes", "sort", "warm"]

CHUNK = (1 << 31) - 1
"""Most edges of the index, and of the table, that `hub` takes at once: its places are 32-bit numbers."""

Counts = tuple[int, int, int, int]


def _hub(t: Triple) -> Counts:
    hubs = _hubs(len(t.index_columns) // t.step, len(t.stream) - 1) if t.shift != BEHIND else 0
    bitmaps = _aligned_words(hub.bitmap_words(hubs))
    hub.hub_bitmaps(t, hubs, bitmaps)
    width = _width(t)
    bits = _aligned_words((width >> 6) + hub.WORDS)
    triangles = wedges = probes = 0
    for part in _chunks(t, CHUNK):
        found, walked, tested = _hub_chunk(part, hubs, bitmaps, bits, width)
        triangles, wedges, probes = triangles + found, wedges + walked, probes + tested
    return triangles, wedges, probes, 0


def _hub_chunk(t: Triple, hubs: int, bitmaps: Array, bits: Array, width: int) -> tuple[int, int, int]:
    waiting = np.zeros(len(t.stream) - 1, np.int32)
    triangles, wedges, probes, deferred = hub.by_rows(t, hubs, bitmaps, bits, waiting)
    if deferred == 0:
        return triangles, wedges, probes
    lists = np.empty((deferred + hub.AHEAD, 2), np.uint32)
    lists[deferred:] = 0
    hub.group(t, hubs, waiting, lists)
    found, tested = hub.by_columns(t, hubs, waiting, lists, np.zeros(width, np.uint8))
    return triangles + found, wedges, probes + tested


def _hubs(edges: int, rows: int) -> int:
    """Choose the number of hubs: their bitmaps, hubs²/16 bytes, take at most 4 bytes an index edge."""
    return min(hub.HUBS, isqrt(64 * edges), rows)


def _width(t: Triple) -> int:
    """One more than any column of the table and stream blocks."""
    if t.shift != BEHIND:  # then no column is above its row
        return max(len(t.table), len(t.stream))
    return 1 + max(int(t.table_columns.max(initial=-1)), int(t.stream_columns.max(initial=-1)))


def _aligned_words(words: int) -> Array:
    """Allocate zeroed 64-bit words that begin on a cache line."""
    spare = np.zeros(words + hub.WORDS, np.uint64)
    skip = -(spare.ctypes.data // 8) % hub.WORDS
    return spare[skip : skip + words]


def _chunks(t: Triple, most: int) -> Iterator[Triple]:
    """Cut the rows into ranges of at most so many edges of either block."""
    begin = t.begin
    while begin < t.end:
        reach = [int(np.searchsorted(rows, rows[begin] + most, side="right")) - 1 for rows in (t.index, t.table)]
        end = max(begin + 1, min(*reach, t.end))
        yield t._replace(begin=begin, end=end)
        begin += -(-(end - begin) // t.step) * t.step


def _trust(t: Triple) -> Counts:
    longest = int(np.diff(t.table).max(initial=0))
    found: Counts = intersect.trust(t, intersect.bucket_depth(longest))
    return found


_HUB = (hub.hub_bitmaps, hub.by_rows, hub.group, hub.by_columns)
_COUNTERS: dict[str, tuple[Callable[[Triple], Counts], tuple[Any, ...]]] = {
    "hub": (_hub, _HUB),
    "trust": (_trust, (intersect.trust,)),
    "merge": (intersect.merge, (intersect.merge,)),
    "search": (intersect.search, (intersect.search,)),
}

KERNELS = tuple(_COUNTERS)
"""Names of the kernels, the default first."""


def count(task: BlockTask, kernel: str) -> TaskCount:
    """Evaluate one block triple.

    Parameters
    ----------
    task : BlockTask
        Three blocks that fit together as `BlockTask` says, in memory.
    kernel : {"hub", "trust", "merge", "search"}

    Returns
    -------
    TaskCount
        Exact; `seconds` is CPU time of this thread, compiling excluded.

    Raises
    ------
    InputError
        No kernel has that name.
    """
    if kernel not in _COUNTERS:
        raise InputError(f"kernel {kernel!r} is not one of {', '.join(KERNELS)}; choose one of these")
    counter, compiled = _COUNTERS[kernel]
    for part in compiled:
        part.load()
    start = time.thread_time()
    triangles, wedges, probes, collision = counter(triple(task))
    return TaskCount(triangles, wedges, probes, collision, time.thread_time() - start)


def scratch_bytes(kernel: str, index_edges: int, table_columns: int) -> int:
    """Bytes that a kernel allocates next to a task's blocks, at most.

    Parameters
    ----------
    kernel : {"hub", "trust", "merge", "search"}
    index_edges : int
        Of the task.
    table_columns : int
        Columns of the table block, no fewer than rows of the stream block.
    """
    if kernel == "hub":
        bitmaps = 8 * hub.bitmap_words(_hubs(index_edges, table_columns))
        per_column = 4 * table_columns + table_columns + table_columns // 8  # waiting, marker, bits
        return bitmaps + per_column + 8 * (index_edges + hub.AHEAD) + (1 << 10)
    if kernel == "trust":
        return 4 * intersect.LARGE * (1 + intersect.bucket_depth(table_columns)) + 8 * table_columns
    return 0


def warm() -> None:
    """Compile, or load from the cache, everything that this backend compiles."""
    for _, compiled in _COUNTERS.values():
        for part in compiled:
            part.load()
    radix.radix_sort.load()


BACKEND = Backend(
    name="cpu",
    frame=pd,
    array=np,
    sort=sort,
    count=count,
    scratch_bytes=scratch_bytes,
    expected_probes=expected_probes,
)
