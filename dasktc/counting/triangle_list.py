"""List triangles: they are counted first, so that the list is known to have all of them, or as many as asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.backends import get_backend
from dasktc.backends.csr import BlockTask, OrientedCSR, on_host
from dasktc.counting.context import CountingContext
from dasktc.counting.external_ids import column, list_frame
from dasktc.counting.tasks import Job, check, count_jobs, in_halves, jobs, task_of
from dasktc.counting.vertex_counts import refuse_unless
from dasktc.errors import InputError
from dasktc.executors.base import Fold
from dasktc.options import check_keywords
from dasktc.pipeline.id_maps import VertexMap

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["LIST_LIMIT", "triangle_list"]

Array = Any
LIST_LIMIT = 1_000_000
"""Triangles that a list without a limit has at most."""
GROUP = 16
"""Tasks whose lists become one before all do."""
TOGETHER = Fold(list, lambda rows, more: np.concatenate([rows, more]), np.concatenate)
"""Joins lists."""


def triangle_list(graph: CountingContext, limit: int | None = None) -> pd.DataFrame:
    """List the triangles; see `Graph.triangle_list`."""
    check_keywords(limit=limit)
    executor, blocks, order, split = graph.executor, graph.blocks, graph.prepared.graph.order, graph.plan.shards > 1
    work = jobs(graph.plan, graph.options.chosen_kernel, graph.options.chosen_backend)
    executor.set_task_memory(graph.plan.bytes_per_task)
    records = sorted(count_jobs(executor, blocks, work))
    check(records, graph.plan, graph.prepared.wedges)
    count = sum(record.count.triangles for record in records)
    if limit is None and count > LIST_LIMIT:
        raise InputError(
            f"the graph has {count:,} triangles, a list has {LIST_LIMIT:,} at most where no limit is given: "
            f"give limit={count} for all of them, or less for some"
        )
    wanted, shares = count if limit is None else limit, dict[Job, int]()
    for job, triangles in ((record.job, record.count.triangles) for record in records):
        if share := min(wanted, triangles):
            shares[job] = share
        wanted -= share
    dense = None if split else order.whole
    calls = [(job, share, dense, *(blocks[p] for p in job.triple.places)) for job, share in shares.items()]
    group = {job: [number // GROUP] for number, job in enumerate(shares)}
    parts = list(executor.fold_unordered("list", _listed, calls, group.__getitem__, TOGETHER)[1].values())
    names = graph.prepared.vertices
    made = list_frame(executor, parts, order, names) if split else executor.submit("list", _list_frame, parts, names)
    frame: pd.DataFrame = executor.gather([made])[0]
    return frame


def _listed(
    job: Job, count: int, order: Array | None, index: OrientedCSR, table: OrientedCSR, stream: OrientedCSR
) -> list[Any]:
    """So many triangles of a task, as dense ids, ascending, or without an order as new ids; and how many."""
    backend, rows, left = get_backend(job.backend), list[Array](), count

    def some(task: BlockTask) -> Array:
        return backend.listing(task, left)

    for listed in in_halves(some, task_of(job, index, table, stream), job):
        rows.append(listed)
        left -= len(listed)
    triangles = np.concatenate(rows)
    refuse_unless(not left, f"{job.triple} has {len(triangles):,} triangles to list, {count:,} were counted")
    u, v, w = (backend.array.asarray(np.ascontiguousarray(column)) for column in triangles.T)
    ids = backend.array.stack([index.row_ids(u), index.column_ids(v), table.column_ids(w)], axis=1)
    return [on_host(ids) if order is None else np.sort(on_host(order.take(ids)), axis=1), count]


def _list_frame(parts: list[Array], vertices: VertexMap) -> pd.DataFrame:
    import pandas as pd

    u, v, w = np.concatenate([np.empty((0, 3), np.int64), *parts]).T
    place = np.lexsort((w, v, u))
    return pd.DataFrame({name: column(vertices.external(ids[place])) for name, ids in (("u", u), ("v", v), ("w", w))})
