"""Triangles by vertex: the sums of all blocks' rows and columns, added up and put under the caller's ids."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.backends.csr import on_host
from dasktc.counting.context import CountingContext
from dasktc.counting.edge_support import vertex_supports
from dasktc.counting.external_ids import column, frames_of_vertices, shares_of
from dasktc.errors import CountError, InputError
from dasktc.pipeline.id_maps import VertexMap
from dasktc.pipeline.sharded.vectors import Sharded

if TYPE_CHECKING:
    import pandas as pd


__all__ = [
    "added_up",
    "coefficients",
    "frames_by_id",
    "pairs_of",
    "refuse_series",
    "refuse_unless",
    "same",
    "series_by_id",
    "triangles_by_id",
]

Array = Any
UNEQUAL = "the vertices' triangles do not add up to 3 a triangle"


def refuse_unless(true: bool, fact: str) -> None:
    """Refuse results that contradict each other."""
    if not true:
        raise CountError(f"{fact}: some were lost or repeated; run again, and report this with `dasktc info`")


def triangles_by_id(graph: CountingContext) -> tuple[Sharded, int]:
    """Every vertex's triangles, by the ids that blocks are built with, and the graph's triangles."""
    sums, count = vertex_supports(graph)
    executor, starts = graph.executor, graph.prepared.graph.order.starts
    sides, numberings = list(sums.values()), [graph.prepared.partition.numbering(side) for side in sums]
    if graph.plan.shards == 1:
        return Sharded(
            starts, [executor.submit("triangles", added_up, sides, numberings, graph.vertices, count)]
        ), count
    shares = shares_of(executor, sides, numberings, starts)
    sizes = (end - first for first, end in pairwise(starts))
    parts = [executor.submit("triangles", added_up, *of, size, None) for of, size in zip(shares, sizes, strict=True)]
    counted = sum(executor.gather([executor.submit("triangles", _sum, part) for part in parts]))
    refuse_unless(counted == 3 * count, UNEQUAL)
    return Sharded(starts, parts), count


def _sum(vector: Array) -> int:
    return int(vector.sum())


def added_up(sums: list[Array], numberings: list[Any], vertices: int, count: int | None) -> Any:
    """Every vertex's triangles from those on all sides; `count` is the graph's, if all are here."""
    counts = np.zeros(vertices, np.int64)
    for of_side, numbering in zip(map(on_host, sums), numberings, strict=True):
        if isinstance(numbering, tuple):
            first, stride = numbering
            there = counts[first::stride][: len(of_side)]
            there += of_side[: len(there)]
        else:
            counts[on_host(numbering)] += of_side
    refuse_unless(count is None or int(counts.sum()) == 3 * count, UNEQUAL)
    return counts


def coefficients(counts: Array, out_degree: Array, in_degree: Array) -> Array:
    """Local clustering coefficients."""
    degree = on_host(out_degree + in_degree).astype("int64", copy=False)
    return 2 * on_host(counts) / np.maximum(degree * (degree - 1), 1)


def pairs_of(out_degree: Array, in_degree: Array) -> int:
    """Σ d·(d - 1)/2 as a Python int: the factors are cut so that no partial sum can pass 64 bits."""
    degree = (out_degree + in_degree).astype("int64", copy=False)
    high, low, others = degree >> 20, degree & ((1 << 20) - 1), degree - 1
    return ((int((others * high).sum()) << 20) + int((others * low).sum())) // 2


def same(counts: Array) -> Array:
    """The counts themselves, on the host."""
    return on_host(counts)


def frames_by_id(
    graph: CountingContext, name: str, counts: Sharded, degrees: list[Sharded], value: Callable[..., Any]
) -> list[Any]:
    """Frames of values of all vertices, under the caller's ids in ascending order; one, or one a shard."""
    executor, order, vertices = graph.executor, graph.prepared.graph.order, graph.prepared.vertices
    if graph.plan.shards > 1:
        return frames_of_vertices(executor, [counts, *degrees], order, vertices, name, value)
    values = executor.submit(name, value, counts.whole, *(degree.whole for degree in degrees))
    return [executor.submit(name, _named, values, order.whole, vertices, name)]


def series_by_id(
    graph: CountingContext, name: str, counts: Sharded, degrees: list[Sharded], value: Callable[..., Any]
) -> pd.Series[Any]:
    """Bring values of all vertices to the caller, under the caller's ids."""
    import pandas as pd

    frames = graph.executor.gather(frames_by_id(graph, name, counts, degrees, value))
    frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    series: pd.Series[Any] = frame.set_index("vertex")[name]
    return series


def _named(values: Array, order: Array, vertices: VertexMap, name: str) -> pd.DataFrame:
    import pandas as pd

    values = on_host(values)
    dense = np.empty_like(values)
    dense[on_host(order)] = values
    return pd.DataFrame({"vertex": column(vertices.external(np.arange(len(values)))), name: dense})


def refuse_series(graph: CountingContext) -> None:
    """Where whole vectors do not fit, the caller, who is the one process, has no room for a series either."""
    if graph.plan.shards > 1 and graph.executor.memory_per_call is not None and not graph.executor.distributed:
        raise InputError(
            f"{graph.plan.numbering}: the caller gets a number of every vertex; write them with per_vertex, or prepare "
            "with more --memory"
        )
