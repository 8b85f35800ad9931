"""Lists triangles: a limited number, or all, which are counted first so that none is missing."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from dasktc.answers.external_ids import distinct_places, in_own_ids
from dasktc.answers.frames import (
    FrameKind,
    array_module,
    frame_kind,
    frame_of,
    id_columns,
    numbered,
    rows_of_partition,
    with_rows,
)
from dasktc.backends import get_backend
from dasktc.backends.csr import BlockTask, OrientedCSR, on_host
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import Job, Record, check, count_jobs, in_halves, jobs, refuse_unless, task_of
from dasktc.errors import InputError
from dasktc.executors.base import Fold, starmap
from dasktc.options import check_keywords, format_size, refuse_beyond
from dasktc.pipeline.planes.exchange import splitters
from dasktc.pipeline.planes.vectors import zipped
from dasktc.wording import plural

__all__ = ["triangle_list"]

Array = Any
PROBE_EDGES = 1 << 13
"""Least number of edges of the first block to search; otherwise twice the limit."""
LIST_BYTES = 100
"""Bytes per triangle while it is listed: rows, columns and ids of its corners, and their order."""
GROUP = 16
"""Number of tasks whose lists are joined first."""
SHIFT = 32


def triangle_list(graph: CountingContext, limit: int | None = None, frame: str | None = None) -> Any:
    """List the triangles; see `Graph.triangle_list`."""
    check_keywords(limit=limit)
    kind = frame_kind(graph, frame, "list")
    lists = None if limit is None or limit > graph.tuning.probe_limit else _probe(graph, limit)
    if lists is None:
        lists = _counted(graph, limit, kind)
    return _frames(graph, *lists, kind)


# lists of dense ids, or of the blocks' ids if vertices are in shards


def _probe(graph: CountingContext, limit: int) -> tuple[list[Any], int] | None:
    """List `limit` triangles of the first rows of the first block triple; None if these have fewer."""
    if not limit:
        return [], 0
    work = jobs(graph.plan, graph.options.chosen_kernel, graph.options.chosen_backend)
    if not work or not graph.edges:
        return [], 0
    job, executor = min(work), graph.executor
    executor.store.set_task_memory(graph.plan.bytes_per_task, graph.plan.memory)
    call = (job, limit, *_how(graph), *(graph.blocks[place] for place in job.triple.places))
    triangles = executor.submit("list", _first, *call)
    return ([triangles], limit) if executor.gather([executor.submit("list", len, triangles)])[0] == limit else None


def _counted(graph: CountingContext, limit: int | None, kind: FrameKind) -> tuple[list[Any], int]:
    """List all triangles, or up to `limit`; they are counted first, so that the list is known to be complete."""
    executor, blocks = graph.executor, graph.blocks
    work = jobs(graph.plan, graph.options.chosen_kernel, graph.options.chosen_backend)
    executor.store.set_task_memory(graph.plan.bytes_per_task, graph.plan.memory)
    records = sorted(count_jobs(executor, blocks, work))
    check(records, graph.plan, graph.prepared.wedges)
    count = graph.counted.agree(sum(record.count.triangles for record in records))
    if limit is None and count > graph.tuning.list_limit and (kind.whole or graph.plan.shards > 1):
        raise InputError(
            f"the graph has {plural(count, 'triangle')}, but a list without a limit has at most "
            f"{graph.tuning.list_limit:,}: give limit={count} for all of them, or less for some, or take frame='dask'"
        )
    shares = _shares(records, count if limit is None else limit)
    if not kind.whole:
        longest = max(shares.values(), default=0)
        fact = f"a task that lists {plural(longest, 'triangle')} needs {format_size(LIST_BYTES * longest)}"
        remedy = "prepare with more parts or splits, or give a limit"
        refuse_beyond(graph.plan.memory, LIST_BYTES * longest, fact, remedy)
    group = {job: [number // (GROUP if kind.whole else 1)] for number, job in enumerate(shares)}
    arguments = _how(graph)
    calls = [(job, share, *arguments, *(blocks[p] for p in job.triple.places)) for job, share in shares.items()]
    parts = graph.answers.fold_unordered("list", _listed, calls, group.__getitem__, TOGETHER)[1]
    return list(parts.values()), sum(shares.values())


def _shares(records: list[Record], limit: int) -> dict[Job, int]:
    """Return how many triangles each task lists."""
    shares = dict[Job, int]()
    for record in records:
        if share := min(limit, record.count.triangles):
            shares[record.job] = share
        limit -= share
    return shares


def _how(graph: CountingContext) -> tuple[Any, bool]:
    """Return the order that gives dense ids (None if sharded), and whether lists are copied to the host."""
    split = graph.plan.shards > 1
    return None if split else graph.prepared.graph.order.whole, split or not graph.answers.frames_on_device


def _first(
    job: Job, limit: int, order: Array | None, host: bool, index: OrientedCSR, table: OrientedCSR, stream: OrientedCSR
) -> Array:
    """List at most `limit` triangles of the first rows of a block triple."""
    edges = get_backend(job.backend).array.asarray([max(PROBE_EDGES, 2 * limit)], dtype="int64")
    rows = min(index.rows, max(1, int(index.offsets.searchsorted(edges, side="right")[0]) - 1))
    triangles = _some(BlockTask(index, table, stream, rows=(0, rows)), job, limit)
    return _by_dense_id(triangles, order, host, index, table)


def _some(task: BlockTask, job: Job, limit: int) -> Array:
    """List the first triangles of a task, at most `limit`, as rows and columns."""
    backend, lists, remainder = get_backend(job.backend), list[Array](), limit

    def some(task: BlockTask) -> Array:
        return backend.listing(task, remainder)

    for triangles in in_halves(some, task, job):
        lists.append(triangles)
        remainder -= len(triangles)
    return _together(lists)


def _listed(
    job: Job, count: int, order: Array | None, host: bool, index: OrientedCSR, table: OrientedCSR, stream: OrientedCSR
) -> list[Any]:
    """List the given number of triangles of a task; return also the number listed."""
    triangles = _some(task_of(job, index, table, stream), job, count)
    fact = f"{job.triple} has {plural(len(triangles), 'triangle')} to list, but {count:,} were counted"
    refuse_unless(len(triangles) == count, fact)
    return [_by_dense_id(triangles, order, host, index, table), count]


def _by_dense_id(triangles: Array, order: Array | None, host: bool, index: OrientedCSR, table: OrientedCSR) -> Array:
    """Convert triangles from rows and columns to ascending dense ids; without an order, to the blocks' ids."""
    xp = array_module(index.offsets)
    u, v, w = (xp.ascontiguousarray(xp.asarray(triangles)[:, end]) for end in range(3))
    ids = xp.stack([index.row_ids(u), index.column_ids(v), table.column_ids(w)], axis=1)
    if order is not None:
        ids = order.take(ids).astype("int64", copy=False)
        ids.sort(axis=1)
    return on_host(ids) if host else ids


def _together(lists: list[Array]) -> Array:
    return lists[0] if len(lists) == 1 else array_module(lists[0]).concatenate(lists)


TOGETHER = Fold(list, lambda rows, addend: _together([rows, addend]), _together)
"""Fold that joins lists."""


# frames


def _frames(graph: CountingContext, parts: list[Any], count: int, kind: FrameKind) -> Any:
    """Make the frame of lists: whole, or in ascending partitions."""
    executor, vertices, order = graph.executor, graph.prepared.vertices, graph.prepared.graph.order
    if graph.plan.shards > 1:  # over positions among the vertices that occur
        corners, (dense,) = in_own_ids(executor, "list-frame", [parts], _corners, order)
        triangles, (ids,) = in_own_ids(executor, "list-frame", zipped(corners, dense), _dense_corners, vertices)
        calls, sizes = [(triangles, ids[0], kind.library, 0)], [count]
        return numbered(graph, starmap(executor, "list-frame", _list_frame, calls), sizes, kind, "uvw")
    pieces = 1 if kind.whole else max(1, -(-count // rows_of_partition(graph, 3, 0)))
    groups = [parts]
    if pieces > 1:
        keys = [executor.submit("list-frame", _keys, part) for part in parts]
        starts = splitters(executor, "list-frame", keys, count, pieces)
        groups = executor.transpose("list-frame", executor.map("list", _cut, parts, starts), len(starts) + 1)
    sizes = [count] if pieces == 1 else executor.gather(executor.map("list-frame", _size, list(groups)))
    refuse_unless(
        sum(sizes) == count,
        f"{plural(sum(sizes), 'triangle is', 'triangles are')} listed, but {count:,} were found",
    )
    groups, sizes = with_rows(groups, sizes)
    firsts = [0, *accumulate(sizes)]
    calls = [(group, vertices, kind.library, first) for group, first in zip(groups, firsts, strict=False)]
    return numbered(graph, starmap(executor, "list-frame", _list_frame, calls), sizes, kind, "uvw")


def _corners(lists: list[Array]) -> list[Array]:
    """Return the distinct vertices of triangles, ascending, and the positions of the corners among them."""
    return distinct_places(np.concatenate([np.empty((0, 3), np.int64), *lists]))


def _dense_corners(parts: list[Any]) -> list[Array]:
    """As `_corners` over dense ids, of positions of corners and the dense id at each position; corners ascend."""
    corners, dense = parts
    return distinct_places(np.sort(np.concatenate(dense).take(corners), axis=1))


def _keys(triangles: Array) -> Array:
    return triangles[:, 0] << SHIFT | triangles[:, 1]


def _cut(triangles: Array, starts: list[int]) -> list[Array]:
    """Cut triangles before each of `starts`, keys of their two smaller corners."""
    xp, sorted_triangles = array_module(triangles), _ascending(triangles)
    places = _keys(sorted_triangles).searchsorted(xp.asarray(starts, dtype="int64")).tolist()
    return [sorted_triangles[a:b].copy() for a, b in zip([0, *places], [*places, len(sorted_triangles)], strict=True)]


def _size(lists: list[Array]) -> int:
    return sum(map(len, lists))


def _ascending(triangles: Array) -> Array:
    place = triangles[:, 2].argsort(kind="stable")
    place = place.take(_keys(triangles).take(place).argsort(kind="stable"))
    return triangles[place]


def _list_frame(lists: list[Array], vertices: Any, library: Any, first: int) -> Any:
    triangles = _ascending(_together(lists) if lists else np.empty((0, 3), np.int64))
    xp = array_module(triangles)
    corners = {name: xp.ascontiguousarray(triangles[:, end]) for end, name in enumerate("uvw")}
    return frame_of(id_columns(vertices, corners, library), library, first)
