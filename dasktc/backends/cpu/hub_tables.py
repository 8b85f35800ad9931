"""The hub kernel's tables: the number of hubs, chunks of rows, and reuse by a thread's next task.

The tables are large and mostly empty, and every split of a triple would allocate, fault in and fill the same ones. A
thread keeps them for its next task on the same stream block, until that block is freed or the thread counts in another
way: a thread never holds more than what one task was announced to need.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from dasktc.backends.cpu import hub
from dasktc.backends.cpu.intersect import Triple, columns_end, triple
from dasktc.backends.cpu.jit import compiles
from dasktc.backends.cpu.sizes import AHEAD, WORDS, bitmap_words, hub_count, most_deferred
from dasktc.backends.csr import Array, BlockTask

__all__ = ["Tables", "count", "forget", "kept", "lent"]


@dataclass
class Tables:
    """Working memory of the kernel beside a task's blocks."""

    stream: Any
    """Weak reference to OrientedCSR. The block whose hubs are in `bitmaps`."""
    lower: bool
    """Whether the tables serve tasks of lower triangles; tasks of other blocks have no hubs."""
    width: int
    """One more than the largest column that has a place in `bits`, and in `marker` for other blocks."""
    hubs: int
    """Number of rows with a bitmap."""
    bitmaps: Array
    bits: Array
    """Array of uint64. As in `hub`; between tasks no bit is set in `bits`."""
    waiting: Array
    """Array of int32. One entry for each row v of which edges may be deferred. Undefined between tasks."""
    marker: Array
    """Array of uint8. All zero between tasks."""
    lists: Array
    """Array of uint32, shape (most deferred edges so far, 2). Undefined between tasks."""


class _Kept(threading.local):
    """The tables that a thread keeps between tasks."""

    def __init__(self) -> None:
        self.place = _Place()


class _Place:
    """Holder of a thread's tables, by which a freed block drops them without having been kept alive by them."""

    tables: Tables | None = None


_thread = _Kept()


def kept() -> Tables | None:
    """The tables that this thread keeps for its next task."""
    return _thread.place.tables


def forget() -> None:
    """Free the tables that this thread keeps, before it needs memory for other work."""
    _thread.place.tables = None


@compiles(hub.hub_bitmaps, hub.by_rows, hub.group, hub.by_columns)
def count(task: BlockTask) -> tuple[int, int, int, int]:
    """Count a task's triangles, wedges and probes; the last number, for hash buckets, is 0."""
    t = triple(task)
    row_limit = most_deferred(-(-task.index.edges // task.splits), task.index.edges)
    triangles = wedges = probes = 0
    with lent(task, t) as tables:
        while t.begin < t.end:
            row_triangles, row_wedges, row_probes, next_row = _chunk(t, tables, row_limit)
            triangles, wedges, probes = triangles + row_triangles, wedges + row_wedges, probes + row_probes
            t = t._replace(begin=next_row)
    return triangles, wedges, probes, 0


@contextmanager
def lent(task: BlockTask, t: Triple) -> Iterator[Tables]:
    """Context with the tables that this thread keeps between tasks, rebuilt where the task needs others."""
    place = _thread.place
    tables = _tables(task, t, place)
    yield tables
    place.tables = tables  # only now: tables that an error left in disorder must not reach another task


def _tables(task: BlockTask, t: Triple, place: _Place) -> Tables:
    """Take over the thread's tables if they serve this task, else free them and make new ones."""
    lower, width = task.table.lower and task.stream.lower, _width(task, t)
    tables, place.tables = place.tables, None
    if tables and tables.stream() is task.stream and tables.lower == lower and tables.width >= width:
        return tables
    tables = None
    hubs = hub_count(len(t.stream_columns), len(t.stream) - 1) if lower else 0
    bitmaps = _aligned_words(bitmap_words(hubs))
    rows, place_ref = hub.hub_bitmaps(t, hubs, bitmaps), weakref.ref(place)
    return Tables(
        stream=weakref.ref(task.stream, lambda _: _empty(place_ref())),
        lower=lower,
        width=width,
        hubs=hubs,
        bitmaps=bitmaps,
        bits=_aligned_words((width >> 6) + WORDS),
        waiting=np.empty(rows, np.int32),
        marker=np.zeros(rows + 1 if lower else width, np.uint8),
        lists=np.empty((AHEAD, 2), np.uint32),
    )


def _empty(place: _Place | None) -> None:
    if place is not None:
        place.tables = None


def _chunk(t: Triple, tables: Tables, limit: int) -> tuple[int, int, int, int]:
    """Count as many rows as `by_rows` takes in one call; the last number returned is the next row."""
    hubs, groups = tables.hubs, tables.waiting
    groups[:] = 0
    triangles, wedges, probes, deferrals, end = hub.by_rows(t, hubs, tables.bitmaps, tables.bits, groups, limit)
    if deferrals == 0:
        return triangles, wedges, probes, end
    if not deferrals <= len(tables.lists) - AHEAD <= max(deferrals, limit):
        room = max(deferrals, min(deferrals + deferrals // 16, limit))  # the next chunk may need slightly more
        del tables.lists  # freed before the longer ones are allocated
        tables.lists = np.empty((room + AHEAD, 2), np.uint32)
    t, lists = t._replace(end=end), tables.lists[: deferrals + AHEAD]
    lists[deferrals:] = 0
    hub.group(t, hubs, groups, lists, hub.NOTHING)
    group_triangles, group_probes = hub.by_columns(t, hubs, groups, lists, tables.marker)
    return triangles + group_triangles, wedges, probes + group_probes, end


def _width(task: BlockTask, t: Triple) -> int:
    """A bound of at least `columns_end`; for lower triangular blocks found without a pass over their columns."""
    if task.table.lower and task.stream.lower:
        return max(len(t.table), len(t.stream))
    return columns_end(task)


def _aligned_words(words: int) -> Array:
    """Allocate zeroed 64-bit words that begin on a cache line."""
    spare = np.zeros(words + WORDS, np.uint64)
    skip = -(spare.ctypes.data // 8) % WORDS
    return spare[skip : skip + words]
