"""Triangles by edge and by vertex of a counting task, found with the tables of the `hub` kernel.

Supports fit 32 bits: the triangles of an edge differ in their third vertex, and there are fewer than 2^31 vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dasktc.backends.cpu import hub, hub_support
from dasktc.backends.cpu.hub_tables import Tables, lent
from dasktc.backends.cpu.instructions import LEVELS, LOWER
from dasktc.backends.cpu.intersect import Triple, triple
from dasktc.backends.cpu.jit import compiles
from dasktc.backends.cpu.sizes import AHEAD, BATCH, BLOCK, PAIRS, WORDS, most_deferred
from dasktc.backends.csr import Array, BlockTask

__all__ = ["edges", "vertices"]

Sides = tuple[int, int, int]
Rows = Callable[[Triple, Tables, int], tuple[int, int, int, int]]
"""Processes rows; returns triangles, wedges, deferred edges, and the next row."""
Groups = Callable[[Triple, Tables, Array], int]
"""Processes the deferred edges in the lists; returns triangles."""


@compiles(hub_support.ranks, hub_support.edges_by_rows, hub.group, hub_support.edges_by_columns)
def edges(task: BlockTask) -> tuple[list[Array], int, int]:
    """Count the triangles of each edge of a task; as `visit.support`."""
    t = triple(task)
    with lent(task, t) as tables:
        supports = task.zero_supports(np)
        below, hits = np.zeros(len(tables.bitmaps), np.uint16), np.zeros(tables.width, np.int32)
        planes, upper = _counters(tables)
        batch = _batch(tables)
        hub_support.ranks(tables.hubs, tables.bitmaps, below)

        def rows(t: Triple, by: Tables, most: int) -> tuple[int, int, int, int]:
            arrays = by.bitmaps, below, by.bits, planes, upper, hits, *supports, *batch, by.waiting, most
            counts: tuple[int, int, int, int] = hub_support.edges_by_rows(t, by.hubs, *arrays)
            return counts

        def groups(t: Triple, by: Tables, lists: Array) -> int:
            return int(hub_support.edges_by_columns(t, by.hubs, by.waiting, lists, by.marker, hits, *supports))

        return supports, *_visited(task, t, tables, rows, groups, hub.BY_EDGE)


@compiles(hub_support.vertices_by_rows, hub.group, hub_support.vertices_by_columns)
def vertices(task: BlockTask, sides: Sides, sizes: Mapping[int, int]) -> tuple[dict[int, Array], int, int]:
    """Count the triangles of each vertex of a task.

    Parameters
    ----------
    task : BlockTask
    sides : tuple of three int
        The sides of the index's rows u, its columns v, and the table's columns w (`Scheme.sides`).
    sizes : mapping of int to int
        Number of vertices of each of these sides, and perhaps of others.

    Returns
    -------
    sums : dict of int to array of int64
        Triangles of the vertices of each side in `sizes`.
    triangles, wedges : int
        As in `TaskCount`.
    """
    sums = {side: np.zeros(size, np.int64) for side, size in sizes.items()}
    rows, columns, third = (sums[side] for side in sides)
    t = triple(task)
    with lent(task, t) as tables:
        planes, upper = _counters(tables)

        def by_rows(t: Triple, by: Tables, most: int) -> tuple[int, int, int, int]:
            arrays = by.bitmaps, by.bits, planes, upper, rows, columns, third, by.waiting, most
            counts: tuple[int, int, int, int] = hub_support.vertices_by_rows(t, by.hubs, *arrays)
            return counts

        def groups(t: Triple, by: Tables, lists: Array) -> int:
            arrays = (t, by.hubs, by.waiting, lists, by.marker, rows, columns, third)
            return int(hub_support.vertices_by_columns(*arrays))

        return sums, *_visited(task, t, tables, by_rows, groups, hub.BY_ROW)


def _batch(tables: Tables) -> tuple[Array, Array, Array, Array]:
    """Allocate a batch: bits of its rows, pairs of hub and row, rows ordered by hub, and each hub's first place."""
    words, pairs = WORDS * (1 + (tables.hubs >> BLOCK)), PAIRS + tables.hubs
    batch = np.zeros(BATCH * words, np.uint64)
    return batch, np.empty((pairs, 2), np.uint32), np.empty(pairs, np.int32), np.zeros(tables.hubs, np.int32)


def _counters(tables: Tables) -> tuple[Array, Array]:
    """Allocate the counters of the hubs' ids, in bit planes (`instructions.add_common`)."""
    words = WORDS * (1 + (tables.hubs >> BLOCK))
    return np.zeros(LOWER * words, np.uint64), np.zeros(LEVELS * words, np.uint64)


def _visited(task: BlockTask, t: Triple, tables: Tables, rows: Rows, groups: Groups, beside: int) -> tuple[int, int]:
    """Alternately process as many rows as defer few edges, and then these edges; return triangles and wedges."""
    row_limit = most_deferred(-(-task.index.edges // task.splits), task.index.edges)
    triangles = wedges = 0
    while t.begin < t.end:
        tables.waiting[:] = 0
        closed, walked, deferred, following = rows(t, tables, row_limit)
        triangles, wedges = triangles + closed, wedges + walked
        if deferred:
            chunk, lists = t._replace(end=following), np.zeros((deferred + AHEAD, 3), np.uint32)
            hub.group(chunk, tables.hubs, tables.waiting, lists, beside)
            triangles += groups(chunk, tables, lists)
        t = t._replace(begin=following)
    return triangles, wedges
