"""Clustering coefficients of weighted and directed graphs, from the block triples of the count.

Each is a sum over the triangles of a vertex u of products of edge values s, divided by a number of pairs:

    c(u) = Σ s_uv·s_uw·s_vw / (d·(d - 1) / 2)        undirected: Onnela et al., Physical Review E 71, 065103, 2005
    c(u) = Σ s_uv·s_uw·s_vw / (d·(d - 1) - 2·b)      directed: Fagiolo, Physical Review E 76, 026107, 2007

where in a directed graph d counts the arcs from and to u, and b the neighbours with arcs in both directions. With
weights, s is the sum over an edge's directions of the cube roots of its weights relative to the largest; without, the
number of its directions. These are NetworkX's definitions, and its numbers within rounding.

Tasks add the products of their triangles at the vertices of their blocks' sides; sums of tasks are added up where they
are, in an order that depends on the plan alone (`sums.IN_ORDER`), so that coefficients are reproducible. On a GPU the
products of a task are added in any order: with weights, the last digits may differ from one call to the next.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from dasktc.answers.external_ids import shares_of
from dasktc.answers.frames import array_module, backend_of
from dasktc.answers.vertex_counts import add_side, of_degrees
from dasktc.answers.vertex_frames import reals_of_bits, total_of, vertex_answer, vertex_frame_kind
from dasktc.backends import Backend
from dasktc.backends.cpu.sizes import edge_values_bytes
from dasktc.backends.csr import BlockTask, OrientedCSR, TaskCount, aligned, on_host
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import Job, Record, check, in_halves, jobs, task_of
from dasktc.errors import InputError, shown
from dasktc.options import weight_name
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.stages.attributes import AGAINST, ALONG, EdgeAttributes
from dasktc.pipeline.stages.columns import Column
from dasktc.questions.sums import IN_ORDER, added_in_order
from dasktc.questions.survey import batch_size, memory_beside, on_device, sides_of_ends
from dasktc.wording import advice, option

__all__ = ["attributes_of", "average_clustering", "clustering"]

Array = Any
STAGE = "clustering"
Side = tuple[int, int, int]
"""Side of a block, its number of vertices, and how many tasks before have this side."""
COLUMNS = {"clustering": reals_of_bits}
CHUNK = 1 << 20
"""Vertices whose coefficients are computed at a time."""


def clustering(graph: CountingContext, weight: str | int | None, frame: str | None = None, vertices: Any = None) -> Any:
    """Compute weighted, directed, or weighted and directed clustering coefficients; see `Graph.clustering`."""
    weight = weight_name(weight)
    data, kind = attributes_of(graph, weight), vertex_frame_kind(graph, frame, vertices)
    return vertex_answer(graph, [_coefficients(graph, data, weight)], COLUMNS, kind, vertices)


def average_clustering(graph: CountingContext, weight: str | int | None) -> float:
    """Average such coefficients; see `Graph.average_clustering`."""
    weight = weight_name(weight)
    coefficients = _coefficients(graph, attributes_of(graph, weight), weight)
    return total_of(graph, [coefficients], COLUMNS) / graph.vertices if graph.vertices else 0.0


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


def _values(graph: CountingContext, data: EdgeAttributes, weight: str | None) -> Column:
    """Return the edge values whose products are added up."""
    if weight is None:
        places, executor = list(data.directions), graph.executor
        arrays = executor.map(STAGE, _numbers_of_directions, [data.directions[place] for place in places])
        return Column("float64", None, dict(zip(places, arrays, strict=True)))
    if data.largest == 0 and graph.edges:
        raise InputError(
            f"the largest weight of {shown(data.weight)} is 0: weights are divided by it; shift them so that it is not"
        )
    facts = graph.executor.gather(graph.executor.map(STAGE, _is_finite, list(data.roots.values())))
    if not all(facts):
        raise InputError(
            f"weights of {shown(data.weight)} divided by the largest, {data.largest:g}, exceed float64: shift them"
        )
    return Column("float64", None, data.roots)


def _numbers_of_directions(directions: Array) -> Array:
    return (directions == ALONG | AGAINST) + 1.0


def _is_finite(roots: Array) -> bool:
    """Whether a product of three roots is finite."""
    with np.errstate(over="ignore"):
        return not len(roots) or bool(np.isfinite(np.float64(abs(roots).max()) ** 3))


# sums of triangles


def _sums(graph: CountingContext, values: Column) -> dict[int, Any]:
    """Add up the products of values of edges, float64, over triangles at their vertices.

    Returns handles by side of the blocks (`Scheme.sides`): sums of float64 for its vertices, in the order of their
    numbers, as `IN_ORDER` makes them. If a vertex is on several sides, its sums there add up. InputError: a task needs
    more memory than a worker has. CountError: the tasks did not handle every wedge exactly once.
    """
    if not graph.edges:
        return {}
    plan, (edges, rows, columns) = graph.plan, graph.prepared.sizes
    if on_device(graph):  # sums of three sides, and of a batch
        size, nbytes = batch_size(graph, STAGE, [], [values], 2 * 8 * 3 * int(max(rows.max(), columns.max())))
    else:
        size, nbytes = 0, edge_values_bytes(int(edges.max()), int(max(rows.max(), columns.max())))
    block_bytes, _ = memory_beside(graph, STAGE, [], [values], nbytes)
    nbytes += graph.answers.bytes_of_sums(8 * int(rows.sum() + columns.sum()), plan.workers)
    graph.executor.store.set_task_memory(min(plan.memory, block_bytes + nbytes), plan.memory)
    numbers, calls = Counter[int](), list[tuple[Any, ...]]()
    for job in jobs(plan, graph.options.chosen_kernel, graph.options.chosen_backend):
        places = job.triple.places
        ends = sides_of_ends(plan, job)
        lengths = int(rows[places[0]]), int(columns[places[0]]), int(columns[places[1]])
        sides = [(side, length, numbers[side]) for side, length in zip(ends, lengths, strict=True)]
        numbers.update(set(ends))
        calls.append(
            (job, sides, size, *(graph.blocks[place] for place in places), *(values.values[p] for p in places))
        )

    def sides_of(job: Job) -> list[int]:
        return sorted({side for place in job.triple.places for side in plan.scheme.sides(plan.parts, place)})

    records, sums = graph.answers.fold_unordered(STAGE, _visited, calls, sides_of, IN_ORDER)
    check(records, plan, graph.prepared.wedges)
    return sums


def _visited(
    job: Job,
    sides: list[Side],
    batch: int,
    index: OrientedCSR,
    table: OrientedCSR,
    stream: OrientedCSR,
    *values: Array,
) -> list[Any]:
    """Add up the products of a job, split by rows; return the sums of each distinct side, ascending, and a record."""
    xp = array_module(index.columns)
    sums, wedges = {side: xp.zeros(length) for side, length, _ in sides}, 0
    of_index, of_table, of_stream = map(aligned, values)

    def visit(task: BlockTask) -> tuple[list[Array], int]:
        if xp is not np:
            return _sums_of_batches(task, (of_index, of_table, of_stream), batch)
        from dasktc.backends.cpu import edge_values  # loads Numba: only when needed

        return edge_values.sums(task, (of_index, of_table, of_stream))

    for role_sums, part_wedges in in_halves(visit, task_of(replace(job, cut="rows"), index, table, stream), job):
        wedges += part_wedges
        for (side, *_), addend in zip(sides, role_sums, strict=True):
            sums[side][: len(addend)] += addend
    numbers = {side: number for side, _, number in sides}
    record = Record(job, TaskCount(0, wedges, probes=0), worker="")
    return [*({(0, numbers[side]): on_host(sums[side])} for side in sorted(sums)), record]


def _sums_of_batches(task: BlockTask, values: tuple[Array, Array, Array], size: int) -> tuple[list[Array], int]:
    """Add up a task's products as `cpu.edge_values.sums` does, on a GPU, which adds those of a batch in any order."""
    columns, thirds, xp = task.index.columns, task.table.columns, array_module(task.index.columns)
    lengths = task.index.rows, task.stream.rows, 1 + int(thirds.max()) if task.table.edges else 0
    sums, wedges = [xp.zeros(length) for length in lengths], 0
    for row, *places, begun in backend_of(columns).batches(task, size):
        wedges += begun
        if not len(row):
            continue
        products = values[0].take(places[0])
        for of_edges, edges in zip(values[1:], places[1:], strict=True):
            products *= of_edges.take(edges)
        for total, ends in zip(sums, (row, columns.take(places[0]), thirds.take(places[1])), strict=True):
            total += xp.bincount(ends, weights=products, minlength=len(total))
    return sums, wedges


# coefficients


def _coefficients(graph: CountingContext, data: EdgeAttributes, weight: str | None) -> Sharded:
    """Return the coefficients by the ids of the blocks, as the bits of float64, which are moved as integers."""
    executor, partition = graph.executor, graph.prepared.partition
    starts, sums = graph.prepared.graph.order.starts, _sums(graph, _values(graph, data, weight))
    numberings = [partition.numbering(side) for side in sums]
    shares = shares_of(executor, executor.map(STAGE, added_in_order, list(sums.values())), numberings, starts)
    if data.neighbours is None:
        neighbours = of_degrees(graph, STAGE, _as_neighbours)
    else:
        neighbours = data.neighbours.parts
    parts = [
        executor.submit(STAGE, _coefficients_of_shard, *share, counts, executor.backend)
        for share, counts in zip(shares, neighbours, strict=True)
    ]
    return Sharded(starts, parts)


def _as_neighbours(degree: Array) -> Any:
    """Degrees as neighbours in both directions, of which an undirected graph has no others."""
    return on_host(degree)[None]


def _coefficients_of_shard(sums: list[Array], places: list[Any], neighbours: Array, backend: Backend) -> Array:
    """Divide the sums of vertices by the number of pairs of neighbours, or of arcs, on the host."""
    coefficients = np.zeros(neighbours.shape[1])
    while sums:
        add_side(coefficients, places.pop(0), sums.pop(0))
    for first in range(0, len(coefficients), CHUNK):
        part = coefficients[first : first + CHUNK]
        with np.errstate(invalid="ignore", divide="ignore"):
            part[:] = np.where(part == 0, 0.0, part / _pairs(neighbours[:, first : first + CHUNK]))
    return backend.array.asarray(coefficients.view(np.int64))


def _pairs(neighbours: Array) -> Array:
    """Return the number of pairs by which each vertex's sum is divided."""
    if len(neighbours) == 1:
        degree = neighbours[0].astype(np.float64)
        return degree * (degree - 1) / 2
    out_degrees, in_degrees, mutual_degrees = neighbours.astype(np.float64)
    arcs = out_degrees + in_degrees + 2 * mutual_degrees
    return arcs * (arcs - 1) - 2 * mutual_degrees
