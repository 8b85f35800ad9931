"""Trusses and cores of a prepared graph, under the caller's ids; `peeling` finds them, on one worker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.counting import measures
from dasktc.counting.context import CountingContext
from dasktc.counting.external_ids import edges_by_dense_id, frames_of_edges
from dasktc.counting.peeling import Facts, core_vector, truss
from dasktc.counting.vertex_counts import refuse_series, refuse_unless, same, series_by_id
from dasktc.options import whole_number
from dasktc.pipeline.build_blocks import GridPartition
from dasktc.pipeline.edge_keys import shift_of
from dasktc.pipeline.sharded.vectors import Sharded
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.schemes import Sizes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["core_number", "k_truss", "truss_frames", "trussness"]

PLACE = 0, 0


def core_number(graph: CountingContext) -> pd.Series[int]:
    """Compute the core number of every vertex; see `Graph.core_number`."""
    refuse_series(graph)
    cores = Sharded(graph.prepared.graph.order.starts, core_vector(graph))
    return series_by_id(graph, "core_number", cores, [], same).astype("int64")


def trussness(graph: CountingContext) -> Any:
    """Compute the trussness of every edge; see `Graph.trussness`."""
    return _answer(graph, None)


def k_truss(graph: CountingContext, k: int) -> Any:
    """Find the k-truss; see `Graph.k_truss`."""
    return _answer(graph, order_of_truss(k))


def order_of_truss(k: Any) -> int:
    """Check a k.

    Raises
    ------
    InputError
        It is no whole number, or below 0.
    """
    return whole_number("k", k, 0)


def _answer(graph: CountingContext, k: int | None) -> Any:
    alone = not graph.executor.distributed
    if alone and k is None and graph.executor.memory_per_call is not None:
        measures._refuse_frame_beyond(graph.executor.memory_per_call, graph.edges)
    frames, _ = truss_frames(graph, k, together=alone)
    parts = graph.executor.values(frames)
    if alone:
        return parts[0]
    spread = measures._distributed(parts, "int64" if graph.prepared.source.ids == "int" else "str")
    return spread if k is not None else spread.rename(columns={"support": "trussness"})


def truss_frames(graph: CountingContext, k: int | None = None, together: bool = False) -> tuple[list[Any], Facts]:
    """Find the k-truss, or every edge's trussness, and leave the frames where they are.

    Parameters
    ----------
    graph : CountingContext
    k : int, optional
    together : bool
        Make one partition without a client, also out of core.

    Returns
    -------
    frames : list of handles of DataFrame
        The partitions of `Graph.k_truss`, or of `Graph.trussness`.
    facts : Facts
    """
    block, values, facts = truss(graph, k)
    return _frames(_as_one_block(graph, block, facts), values, facts, k, together), facts


def _as_one_block(graph: CountingContext, block: Any, facts: Facts) -> CountingContext:
    """The graph, or a part of it, as one block of so many edges."""
    axis = Axis(facts.vertices, 1)
    sizes = Sizes(*(np.array([[size]], dtype="int64") for size in (facts.edges, facts.vertices, facts.vertices)))
    layout = Layout(axis, (axis,), Shape(facts.vertices, shift_of(facts.vertices), ordered=True))
    partition = GridPartition(layout, sizes, 0)
    plan = replace(graph.plan, partition="whole", parts=1, edges=facts.edges)
    return replace(graph, blocks={PLACE: block}, prepared=replace(graph.prepared, plan=plan, partition=partition))


def _frames(graph: CountingContext, values: Any, facts: Facts, k: int | None, together: bool) -> list[Any]:
    executor, split = graph.executor, graph.plan.shards > 1
    share, row_bytes = executor.memory_in_parallel, measures.SPLIT_BYTES if split else measures.FRAME_BYTES
    most = measures.PARTITION_EDGES
    slices = measures._slices(graph, {PLACE: values}, most if share is None else min(most, max(1, share // row_bytes)))
    if split:
        slices = edges_by_dense_id(executor, slices, graph.prepared.graph.order)
    added = executor.gather(executor.map("edges", measures._added, list(slices)))
    refuse_unless(tuple(map(sum, zip((0, 0), *added, strict=True))) == (facts.edges, facts.total), "edges differ")
    apart = executor.distributed or (executor.memory_per_call is not None and not together)
    groups = [[part] for part in slices] if slices and apart else [slices]
    vertices = graph.prepared.vertices
    if split:
        frames = frames_of_edges(executor, executor.map("edges", measures._joined, groups), vertices)
    else:
        frames = executor.submit_all("edges", measures._edge_frame, [(group, vertices) for group in groups])
    return frames if k is not None else executor.map("edges", _renamed, frames)


def _renamed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.rename(columns={"support": "trussness"})
