"""Complete adjacency lists of some vertices, or of all, as one block on every worker that uses them."""

from __future__ import annotations

from typing import Any

from dasktc.answers.frames import array_module, backend_of
from dasktc.backends import get_backend
from dasktc.backends.answers import degrees_of
from dasktc.backends.csr import OrientedCSR
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import refuse_unless
from dasktc.executors.base import starmap
from dasktc.options import format_size, refuse_beyond
from dasktc.pipeline.planes.vectors import Sharded, permuted, vectors_on_host
from dasktc.questions.vertex_columns import by_side
from dasktc.wording import advice, plural

__all__ = ["adjacency", "degrees_by_dense_id"]

Array = Any
STAGE = "neighbours"
SHIFT = 32
LIST_BYTES = 28
"""Bytes for each entry of adjacency lists, and each copy of it, while they are made: its key, joined and sorted."""


def degrees_by_dense_id(graph: CountingContext) -> Sharded:
    """Degrees by dense id, int64."""
    oriented_graph, executor, vertices = graph.prepared.graph, graph.executor, graph.prepared.vertices
    vectors = oriented_graph.order, oriented_graph.out_degree, oriented_graph.in_degree
    if graph.plan.shards == 1:
        degree_vector = graph.answers.submit_replicated(STAGE, _by_dense_id, *(vector.whole for vector in vectors))
        return Sharded((0, graph.vertices), [degree_vector])
    executor, (order, *halves) = vectors_on_host(executor, STAGE, *vectors)
    calls = list(zip(*(half.parts for half in halves), strict=True))
    return permuted(
        executor, STAGE, Sharded(order.starts, starmap(executor, STAGE, degrees_of, calls)), order, vertices.starts
    )


def _by_dense_id(order: Array, out_degree: Array, in_degree: Array) -> Array:
    return backend_of(order).answers.place(degrees_of(out_degree, in_degree), order)


def adjacency(graph: CountingContext, vertices: Array | None, entries: int, order: Sharded | None = None) -> Any:
    """Make the complete adjacency lists of some vertices as one block.

    Parameters
    ----------
    graph : CountingContext
    vertices : array of int64, or None
        Numbers of vertices, ascending and distinct; None: of all.
    entries : int
        Sum of their degrees.
    order : Sharded, optional
        The number of each id of the blocks; default: its dense id.

    Returns
    -------
    handle of OrientedCSR
        A row for each of the vertices; columns are numbers of vertices, ascending.

    Raises
    ------
    InputError
        The lists do not fit one worker.
    CountError
        Lists and degrees differ, when the handle is used.
    """
    plan, executor, backend = graph.plan, graph.executor, graph.options.chosen_backend
    sizes, count = graph.prepared.sizes, graph.vertices if vertices is None else len(vertices)
    largest, copies = int(plan.scheme.block_bytes(sizes).max()), -(-int(sizes.edges.sum()) // max(1, graph.edges))
    sides = int(sizes.rows.max()) + int(sizes.columns.max())
    nbytes = LIST_BYTES * copies * entries + 12 * count + 28 * sides + 2 * largest
    neighbours = f"the neighbours of {plural(count, 'vertex')}, {entries:,} in all"
    fact, cause = f"{neighbours}, take {format_size(nbytes)} while they are collected", "it receives these lists whole"
    remedy = f"ask for fewer vertices at a time, or raise {advice('memory')}"
    refuse_beyond(plan.memory, nbytes, fact, f"{cause}; {remedy}")
    executor.store.set_task_memory(nbytes, plan.memory)
    numbers = by_side(graph, STAGE, graph.prepared.graph.order if order is None else order)
    rows = numbers
    if vertices is not None:
        rows = {side: executor.submit(STAGE, _rows_of_side, entries, vertices) for side, entries in numbers.items()}
    calls = []
    for place, block in graph.blocks.items():
        first, second = plan.scheme.sides(plan.parts, place)
        vectors = numbers[first], numbers[second], rows[first], rows[second]
        calls.append((block, *vectors, graph.tuning.update_chunk, backend))
    keys = [executor.submit(STAGE, _keys, *call) for call in calls]
    fact = "the neighbours of vertices and their degrees differ"
    arguments = (count, entries, backend, fact, graph.folder_of_copies)
    return graph.answers.submit_replicated(STAGE, _lists, keys, *arguments)


def _rows_of_side(numbers: Array, vertices: Array) -> Array:
    """Return the position of each number of a side among those of the vertices, -1 for others, int32."""
    xp = array_module(numbers)
    ascending = xp.asarray(vertices, dtype="int64")
    if not len(ascending):
        return xp.full(len(numbers), -1, dtype="int32")
    places = ascending.searchsorted(numbers)
    is_equal = ascending.take(xp.minimum(places, len(ascending) - 1)) == numbers
    return xp.where(is_equal, places, -1).astype("int32")


def _keys(
    block: OrientedCSR,
    row_numbers: Array,
    column_numbers: Array,
    rows_of_rows: Array,
    rows_of_columns: Array,
    chunk: int,
    backend: str,
) -> Array:
    """Keys row << 32 | neighbour of a block's edges that touch the chosen vertices, once from each end."""
    lists, sources = [], get_backend(backend).peel.rows(block)
    xp = get_backend(backend).array
    for start in range(0, block.edges, chunk):
        source, target = sources[start : start + chunk], block.columns[start : start + chunk]
        for rows, numbers, vertices, neighbours in (
            (rows_of_rows, column_numbers, source, target),
            (rows_of_columns, row_numbers, target, source),
        ):
            vertex_rows = rows.take(vertices)
            mask = vertex_rows >= 0
            lists.append(vertex_rows[mask].astype("int64") << SHIFT | numbers.take(neighbours)[mask])
    return xp.concatenate(lists) if lists else xp.empty(0, dtype="int64")


def _lists(parts: list[Array], rows: int, entries: int, name: str, fact: str, copies: str) -> OrientedCSR:
    backend = get_backend(name)
    xp = backend.array
    keys = backend.sort(xp.concatenate(parts) if parts else xp.empty(0, dtype="int64"), max(1, rows) << SHIFT)
    if len(keys) > entries:  # the scheme puts edges into several blocks
        keys = keys[xp.concatenate([xp.ones(1, dtype=bool), keys[1:] != keys[:-1]])]
    refuse_unless(len(keys) == entries, fact, copies)
    return OrientedCSR(*backend.edges.rows(keys, 0, rows, 1 << SHIFT))
