"""Triangles by edge and by vertex of a counting task, found with the tables of the `hub` kernel.

Supports fit 32 bits: the triangles of an edge differ in their third vertex, and there are fewer than 2^31 vertices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dasktc.backends.cpu import hub, hub_support
from dasktc.backends.cpu.hub_tables import Tables, lent
from dasktc.backends.cpu.instructions import LEVELS, LOWER
from dasktc.backends.cpu.intersect import Triple, triple
from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.cpu.sizes import AHEAD, BATCH, BLOCK, PAIRS, WORDS, most_deferred
from dasktc.backends.csr import Array, BlockTask

__all__ = ["edges", "vertices"]

Sides = tuple[int, int, int]


def edges(task: BlockTask) -> tuple[list[Array], int, int]:
    """Count the triangles of each edge of a task; as `visit.support`."""
    t = triple(task)
    with lent(task, t) as tables:
        supports = task.zero_supports(np)
        word_ranks, hits = np.zeros(len(tables.bitmaps), np.uint16), np.zeros(tables.width, np.int32)
        # A batch: bits of its rows, pairs of hub and row, rows ordered by hub, and each hub's first place.
        words, pairs = WORDS * (1 + (tables.hubs >> BLOCK)), PAIRS + tables.hubs
        batch = np.zeros(BATCH * words, np.uint64), np.empty((pairs, 2), np.uint32), np.empty(pairs, np.int32)
        heads = np.zeros(tables.hubs, np.int32)
        hub_support.ranks(tables.hubs, tables.bitmaps, word_ranks)
        rows = tables.bitmaps, word_ranks, tables.bits, *_counters(tables), hits, *supports, *batch, heads
        columns = *supports, None, None, hits
        kernels = hub_support.edges_by_rows, hub_support.edges_by_columns
        return supports, *_visited(task, t, tables, kernels, rows, columns, hub.BY_EDGE)


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
    results = [sums[side] for side in sides]
    t = triple(task)
    with lent(task, t) as tables:
        rows = tables.bitmaps, tables.bits, *_counters(tables), *results
        columns = None, None, None, *results
        kernels = hub_support.vertices_by_rows, hub_support.vertices_by_columns
        return sums, *_visited(task, t, tables, kernels, rows, columns, hub.BY_ROW)


def _counters(tables: Tables) -> tuple[Array, Array]:
    """Allocate the counters of the hubs' ids, in bit planes (`instructions.add_common`)."""
    words = WORDS * (1 + (tables.hubs >> BLOCK))
    return np.zeros(LOWER * words, np.uint64), np.zeros(LEVELS * words, np.uint64)


def _visited(
    task: BlockTask,
    t: Triple,
    tables: Tables,
    kernels: tuple[Kernel[Any], Kernel[Any]],
    rows: tuple[Array, ...],
    columns: tuple[Array | None, ...],
    detail: int,
) -> tuple[int, int]:
    """Alternately process as many rows as defer few edges, and then these edges; return triangles and wedges.

    The kernels of rows and of columns take the arrays of `rows` and of `columns`.
    """
    row_limit = most_deferred(-(-task.index.edges // task.splits), task.index.edges)
    hubs, groups, (by_rows, by_columns) = tables.hubs, tables.waiting, kernels
    triangles = wedges = 0
    while t.begin < t.end:
        groups[:] = 0
        row_triangles, row_wedges, deferrals, next_row = by_rows(t, hubs, *rows, groups, row_limit)
        triangles, wedges = triangles + row_triangles, wedges + row_wedges
        if deferrals:
            chunk, lists = t._replace(end=next_row), np.zeros((deferrals + AHEAD, 3), np.uint32)
            hub.group(chunk, hubs, groups, lists, detail)
            triangles += int(by_columns(chunk, hubs, groups, lists, tables.marker, *columns))
        t = t._replace(begin=next_row)
    return triangles, wedges
