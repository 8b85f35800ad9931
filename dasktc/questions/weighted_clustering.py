"""Clustering coefficients of weighted and directed graphs, from the block triples of the count.

Each is a sum over the triangles of a vertex u of products of edge values s, divided by a number of pairs:

    c(u) = Σ s_uv·s_uw·s_vw / (d·(d - 1) / 2)        undirected: Onnela et al., Physical Review E 71, 065103, 2005
    c(u) = Σ s_uv·s_uw·s_vw / (d·(d - 1) - 2·b)      directed: Fagiolo, Physical Review E 76, 026107, 2007

where in a directed graph d counts the arcs from and to u, and b the neighbours with arcs in both directions. With
weights, s is the sum over an edge's directions of the cube roots of its weights relative to the largest; without, the
number of its directions. These are NetworkX's definitions, and its numbers within rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal

import numpy as np

from dasktc.answers.frames import frame_kind
from dasktc.answers.vertex_frames import reals, vertex_answer
from dasktc.backends.csr import OrientedCSR
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import Job, jobs, task_of
from dasktc.errors import CountError, InputError, shown
from dasktc.executors.base import starmap
from dasktc.options import weight_name
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.stages.attributes import EdgeAttributes
from dasktc.wording import advice, option, plural

__all__ = ["attributes_of", "clustering", "over_triples"]

Array = Any


def clustering(graph: CountingContext, weight: str | int | None, frame: str | None = None, vertices: Any = None) -> Any:
    """Compute weighted, directed, or weighted and directed clustering coefficients; see `Graph.clustering`."""
    weight = weight_name(weight)
    data, kind = attributes_of(graph, weight), frame_kind(graph, frame)
    sums = np.zeros(graph.vertices)
    for (index, table, stream), role_arrays in over_triples(graph, "clustering", "sums", _values(graph, data, weight)):
        for id_function, array in zip((index.row_ids, stream.row_ids, table.column_ids), role_arrays, strict=True):
            ids = id_function(np.arange(len(array)))
            mask = ids < len(sums)  # a block may have one more row, without edges
            sums[ids[mask]] += array[mask]
    with np.errstate(invalid="ignore", divide="ignore"):
        coefficients = np.where(sums == 0, 0.0, sums / _pairs(graph, data))
    order, executor = graph.prepared.graph.order, graph.executor
    values = Sharded(order.starts, [executor.submit("clustering", executor.backend.array.asarray, coefficients)])
    return vertex_answer(graph, [values], {"clustering": reals}, kind, vertices)


def attributes_of(graph: CountingContext, weight: str | None = None) -> EdgeAttributes:
    """Return the attributes kept of edges; InputError unless they include weights of this name."""
    data: EdgeAttributes | None = graph.prepared.attributes
    if weight is not None and (data is None or data.weight != weight):
        description = (
            "without weights" if data is None or data.weight is None else f"with {option('weight', data.weight)}"
        )
        name = option("weight", weight)
        raise InputError(f"{name} is asked for, but the graph was prepared {description}: prepare it with {name}")
    if data is None:
        raise InputError(f"the graph was prepared without directions: prepare it with {advice(directed=True)}")
    return data


def _values(graph: CountingContext, data: EdgeAttributes, weight: str | None) -> dict[Any, Array]:
    """Return the edge values whose products are added up, by block."""
    if weight is None:
        return {place: (1.0 + (directions == 3)) for place, directions in data.directions.items()}
    if data.largest == 0 and graph.edges:
        raise InputError(
            f"the largest weight of {shown(data.weight)} is 0: weights are divided by it; shift them so that it is not"
        )
    if any(not np.isfinite(roots).all() for roots in data.roots.values()):
        raise InputError(
            f"weights of {shown(data.weight)} divided by the largest, {data.largest:g}, exceed float64: shift them"
        )
    return data.roots


def _pairs(graph: CountingContext, data: EdgeAttributes) -> Array:
    """Return the number of pairs of neighbours, or of arcs, by which each vertex's sum is divided."""
    if data.neighbours is None:
        oriented_graph = graph.prepared.graph
        degrees = graph.executor.gather([oriented_graph.out_degree.whole, oriented_graph.in_degree.whole])
        degree = degrees[0].astype(np.float64) + degrees[1]
        return degree * (degree - 1) / 2
    out_degrees, in_degrees, mutual_degrees = (vector.astype(np.float64) for vector in data.neighbours)
    arcs = out_degrees + in_degrees + 2 * mutual_degrees
    return arcs * (arcs - 1) - 2 * mutual_degrees


def over_triples(
    graph: CountingContext, stage: str, function: Literal["sums", "codes"], values: dict[Any, Array]
) -> Iterator[tuple[tuple[OrientedCSR, OrientedCSR, OrientedCSR], Any]]:
    """Evaluate the counting tasks of a graph's plan with edge values.

    Parameters
    ----------
    graph : CountingContext
        A graph in this process.
    stage : str
    function : {"sums", "codes"}
        The function of `backends.cpu.edge_values`, which is called with a task and three arrays of values.
    values : dict of block's place to array
        A value for each of the block's columns.

    Yields
    ------
    blocks : tuple of three OrientedCSR
    result : object
        In an order that depends only on the plan, so that sums of floats are reproducible.

    Raises
    ------
    CountError
        The tasks did not handle every wedge exactly once.
    """
    executor, wedges = graph.executor, 0
    todo = iter(jobs(graph.plan, graph.options.chosen_kernel, "cpu"))
    while batch := list(islice(todo, len(executor.worker_threads))):
        calls = []
        for job in batch:
            blocks = [graph.blocks[place] for place in job.triple.places]
            calls.append((function, job, *blocks, [values[place] for place in job.triple.places]))
        for blocks, result, task_wedges in executor.gather(starmap(executor, stage, _evaluated, calls)):
            wedges += task_wedges
            yield blocks, result
    if wedges != graph.prepared.wedges:
        raise CountError(
            f"the tasks handled {plural(wedges, 'wedge')}, but the degrees give {graph.prepared.wedges:,}: edges were "
            "lost or repeated; run again, and report this with the output of `dasktc info`"
        )


def _evaluated(
    function: Literal["sums", "codes"],
    job: Job,
    index: OrientedCSR,
    table: OrientedCSR,
    stream: OrientedCSR,
    values: list[Array],
) -> tuple[tuple[OrientedCSR, OrientedCSR, OrientedCSR], Any, int]:
    from dasktc.backends.cpu import edge_values  # loads Numba: only when needed

    task = task_of(job, index, table, stream)
    if job.cut == "edges":
        begin, end = (index.edges * k // job.splits for k in (job.split, job.split + 1))
        values = [values[0][begin:end], *values[1:]]
    result, wedges = getattr(edge_values, function)(task, tuple(values))
    return (index, table, stream), result, wedges
