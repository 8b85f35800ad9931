"""Similarity of two vertices, from their common neighbours: of every edge, of given pairs, and the most similar ones.

With d(u) neighbours of vertex u, and c common neighbours w of u and v:

    jaccard              c / (d(u) + d(v) - c)     overlap   c / min(d(u), d(v))
    sorensen             2·c / (d(u) + d(v))       cosine    c / sqrt(d(u)·d(v))
    common_neighbors     c
    adamic_adar          Σ 1 / ln d(w)             Adamic and Adar, Social Networks 25, 211-230, 2003
    resource_allocation  Σ 1 / d(w)                Zhou, Lü and Zhang, European Physical Journal B 71, 623-630, 2009

the others as Lü and Zhou define them (Physica A 390, 1150-1170, 2011). A common neighbour of two vertices has two
neighbours, so no logarithm is 0; a pair of a vertex with itself has all its neighbours in common.

The common neighbours of an edge are its triangles, so the answers for all edges follow from supports and degrees, or
from supports in which a triangle counts as its third vertex weighs. Given pairs are the index of a block triple whose
table and stream are the complete adjacency lists of their vertices: its triangles are the pairs' common neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import Any, cast

import numpy as np

from dasktc.answers.edge_frames import EdgeMeasure, edge_answer, given_as, given_pairs, partitions, refuse_frame
from dasktc.answers.edge_support import SUM, VISITED, kernel_and_bytes, of_all_blocks, sums_by_place
from dasktc.answers.external_ids import distinct_places, in_own_ids
from dasktc.answers.frames import (
    PANDAS,
    FrameKind,
    array_module,
    column,
    dense_ids,
    frame_kind,
    frame_of,
    id_columns,
    id_shards,
    labelled,
    numbered,
    unknown,
)
from dasktc.answers.vertex_counts import known_edges, of_degrees
from dasktc.answers.vertex_frames import reals_of_bits
from dasktc.backends import ON_DEVICE, get_backend
from dasktc.backends.csr import BlockTask, OrientedCSR, on_host
from dasktc.backends.most_similar import VERTEX_BYTES, WEDGE_BYTES, Measure, most_similar
from dasktc.backends.weighted_support import DEVICE_BYTES, weighted_support
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import Job, Record, check, jobs
from dasktc.errors import InputError, shown
from dasktc.executors.base import starmap
from dasktc.options import SIMILARITIES, MeasureName, format_size, refuse_beyond, whole_number
from dasktc.pipeline.planes.vectors import Sharded, gather_entries, vectors_on_host, zipped
from dasktc.pipeline.stages.edge_keys import ranked
from dasktc.planning.schemes import Block
from dasktc.questions.adjacency import adjacency, degrees_by_dense_id
from dasktc.questions.distributions import degree_facts
from dasktc.questions.survey import sides_of_ends
from dasktc.questions.vertex_columns import by_side
from dasktc.registry import check_choice
from dasktc.wording import advice, option, plural

__all__ = ["BOUND", "MEASURES", "MOST", "checked", "similarity", "similarity_frames"]

Array = Any
SHIFT = 32
STAGE = "similarity"
BOUND = 10**11
"""Default bound of the wedges that are walked for the most similar vertices: a quarter of an hour of one thread."""
WEDGES_A_SECOND = {"cpu": 10**8, "cuda": 10**9}
"""Wedges that a thread, or a GPU, walks per second: 1.2 to 2.4 · 10^8 on Kronecker 14 and 16; a tenth on a random graph
of 200,000 vertices and 2 M edges, most of whose wedges end at different vertices; an H200 1.1 to 2.4 · 10^9."""
MOST = 1000
"""Largest number of most similar vertices, which are kept in order while others are compared."""
PIECES = 4
"""Calls per worker for pairs, or for ranges of vertices."""


def _jaccard(common: Array, degrees: Array, other_degrees: Array) -> Array:
    return common / (degrees + other_degrees - common)


def _overlap(common: Array, degrees: Array, other_degrees: Array) -> Array:
    return common / array_module(degrees).minimum(degrees, other_degrees)


def _cosine(common: Array, degrees: Array, other_degrees: Array) -> Array:
    return array_module(degrees).sqrt(common * common / (degrees * other_degrees))  # equal quotients have equal roots


def _sorensen(common: Array, degrees: Array, other_degrees: Array) -> Array:
    return 2 * common / (degrees + other_degrees)


def _sum(common: Array, *_: Array) -> Array:
    return common


def _adamic_adar(degrees: Array) -> Array:
    xp = array_module(degrees)
    return xp.where(degrees > 1, 1 / xp.log(xp.maximum(degrees, 2)), np.inf)


def _resource_allocation(degrees: Array) -> Array:
    return 1 / array_module(degrees).maximum(degrees, 1)


_FUNCTIONS: dict[MeasureName, Any] = {
    "jaccard": (_jaccard,),
    "overlap": (_overlap,),
    "cosine": (_cosine,),
    "sorensen": (_sorensen,),
    "common_neighbors": (_sum,),
    "adamic_adar": (_sum, _adamic_adar),
    "resource_allocation": (_sum, _resource_allocation),
}
MEASURES = {name: Measure(SIMILARITIES.index(name), *functions) for name, functions in _FUNCTIONS.items()}


def checked(measure: Any) -> MeasureName:
    """Return the name of a measure; refuse (InputError) one that does not exist."""
    if not isinstance(measure, str):
        raise InputError(f"measure {shown(measure)} is not one of {', '.join(SIMILARITIES)}; choose one of these")
    check_choice("measure", measure, SIMILARITIES)
    return cast(MeasureName, measure)


def similarity(
    graph: CountingContext,
    pairs: Any = None,
    measure: str = "jaccard",
    top: int | None = None,
    bound: int = BOUND,
    frame: str | None = None,
) -> Any:
    """Compute the similarity of pairs of vertices; see `Graph.similarity`."""
    name, kind = checked(measure), frame_kind(graph, frame, "edges")
    if pairs is not None and top is not None:
        raise InputError(
            f"pairs are given with top={shown(top)}: the most similar vertices are searched among all that have a "
            "common neighbour; leave out top for the pairs, or pairs for the most similar ones"
        )
    if pairs is not None:
        return _of_given(graph, name, pairs, kind)
    if top is not None:
        frames, rows = _most_similar(graph, name, top, bound, kind)
        return numbered(graph, frames, rows, kind, ("src", "dst"), {name: _dtype(name)})
    refuse_frame(graph, kind)
    edge_values, total, edge_measure = _of_edges(graph, name)
    return edge_answer(graph, edge_values, name, kind, total=total, measure=edge_measure)


def similarity_frames(graph: CountingContext, measure: str, top: int | None, bound: int) -> tuple[list[Any], int]:
    """Compute the similarity of every edge, or the most similar vertices, for files: handles of frames, and their rows.

    The frames, at least one, are the partitions of `Graph.similarity`, whose errors it raises.
    """
    name = checked(measure)
    if top is not None:
        frames, rows = _most_similar(graph, name, top, bound, PANDAS)
    else:
        edge_values, total, edge_measure = _of_edges(graph, name)
        frames, rows = partitions(graph, edge_values, name, total=total, measure=edge_measure)
    return frames, sum(rows)


def _dtype(name: str) -> str:
    return "int64" if name == "common_neighbors" else "float64"


# every edge


def _of_edges(graph: CountingContext, name: MeasureName) -> tuple[dict[Block, Any], int | None, EdgeMeasure | None]:
    """Return a number for every edge by place, their sum if it is known, and how they become the measure."""
    measure = MEASURES[name]
    if measure.weight is not None:
        return _weighted_supports(graph, measure.weight), None, EdgeMeasure(reals_of_bits, "float64", real=True)
    supports, count = known_edges(graph)
    edge_measure = None if measure.value is _sum else EdgeMeasure(measure.value, "float64", degrees_by_dense_id(graph))
    return supports, 3 * count, edge_measure


def _weighted_supports(graph: CountingContext, weight: Callable[[Array], Array]) -> dict[Block, Any]:
    """Add up the weights of every edge's common neighbours: handles of arrays of float64 by position of the block.

    They are aligned with its columns. If the scheme puts an edge into several blocks, its sums there add up.
    """
    executor, plan = graph.executor, graph.plan
    kernel, nbytes = _kernel_and_bytes(graph)
    executor.store.set_task_memory(nbytes, plan.memory)
    parts = of_degrees(graph, STAGE, weight)
    weights = by_side(graph, STAGE, Sharded(graph.prepared.graph.order.starts, parts))
    backend, blocks = graph.options.chosen_backend, graph.blocks
    calls = [
        (job, *(weights[side] for side in sides_of_ends(plan, job)), *(blocks[place] for place in job.triple.places))
        for job in jobs(plan, kernel, backend)
    ]
    results = graph.answers.fold_unordered(STAGE, _task, calls, lambda job: sorted(set(job.triple.places)), SUM)
    records: list[Record] = results[0]
    check(records, plan, graph.prepared.wedges)
    graph.counted.agree(sum(record.count.triangles for record in records))
    return of_all_blocks(graph, results[1], "float64")


def _kernel_and_bytes(graph: CountingContext) -> tuple[str, int]:
    """Return the kernel that counts before a device lists, and the bytes of a task, or refuse them."""
    plan, sizes = graph.plan, graph.prepared.sizes
    kernel, nbytes = kernel_and_bytes(graph)
    edges = min(3, sizes.edges.size) * int(sizes.edges.max())
    edge_bytes = DEVICE_BYTES if graph.options.chosen_backend in ON_DEVICE else 8
    nbytes += edge_bytes * edges + 48 * int(max(sizes.rows.max(), sizes.columns.max()))
    fact = f"a task that adds up weights needs {format_size(nbytes)} at n = {plan.parts}"
    remedy = f"prepare with {advice(parts=2 * plan.parts)}, or raise {advice('memory')}"
    refuse_beyond(plan.memory, nbytes, fact, f"it keeps a float64 for every edge; {remedy}")
    return kernel, min(plan.memory, nbytes + graph.answers.bytes_of_sums(8 * int(sizes.edges.sum()), plan.workers))


def _task(job: Job, of_u: Array, of_v: Array, of_w: Array, *blocks: OrientedCSR) -> list[Any]:
    """Sum weights in a task; return one array for each distinct place of its triple, ascending, and a record."""
    weights = of_u, of_v, of_w
    sums, record = sums_by_place(lambda part: weighted_support(part, weights, job.backend, job.kernel), job, blocks)
    return [*(sums[place] for place in sorted(sums)), record]


# given pairs


def _of_given(graph: CountingContext, name: MeasureName, pairs: Any, kind: FrameKind) -> Any:
    names, *columns = given_pairs(graph, pairs, "pairs")
    ends = np.stack([dense_ids(graph, ids) for ids in columns])
    if (ends < 0).any():
        end, number = (int(place) for place in np.argwhere(ends < 0)[0])
        raise unknown("pairs", names[end][number], int((ends < 0).sum()), "id")
    values = _pair_values(graph, name, ends)
    src, dst = (column(ids) for ids in columns)
    return given_as(labelled(graph, frame_of({"src": src, "dst": dst, name: values}, "pandas"), ("src", "dst")), kind)


def _pair_values(graph: CountingContext, name: MeasureName, ends: Array) -> Array:
    """Compute a measure of pairs of dense ids, an array of shape (2, pairs)."""
    executor, measure, backend = graph.executor, MEASURES[name], graph.options.chosen_backend
    vertices, places = np.unique(ends, return_inverse=True)
    first, second = places.reshape(ends.shape)
    degree_vector = degrees_by_dense_id(graph)
    degrees = np.concatenate(executor.gather(degree_vector.map(executor, STAGE, _entries_of_shard, vertices)))
    # The shorter list is streamed, and one pair is searched once, whichever end is first.
    swap_mask = (degrees[first] < degrees[second]) | ((degrees[first] == degrees[second]) & (first < second))
    rows, columns = np.where(swap_mask, second, first), np.where(swap_mask, first, second)
    keys, inverse = np.unique(rows << SHIFT | columns, return_inverse=True)
    lists = adjacency(graph, vertices, int(degrees.sum()))
    weights = None
    if measure.weight is not None:
        lists, weights = _over_own_columns(graph, lists, degree_vector, measure.weight)
    pieces = np.array_split(keys, max(1, min(len(keys), PIECES * len(executor.worker_threads))))
    calls = [(lists, piece, weights, backend) for piece in pieces]
    sums = np.concatenate(executor.gather(starmap(executor, STAGE, _sums_of_pairs, calls)))
    common = sums.astype("int64" if weights is None else "float64")[inverse]
    return measure.value(common, degrees[first], degrees[second])


def _over_own_columns(
    graph: CountingContext, lists: Any, degrees: Sharded, weight: Callable[[Array], Array]
) -> tuple[Any, Any]:
    """Renumber the columns of lists by those that occur; return handles of the lists, and of the columns' weights."""
    backend = graph.options.chosen_backend
    result = graph.executor.submit(STAGE, _columns_and_renumbered, lists, graph.vertices, backend)
    (columns,), (lists,) = graph.executor.transpose(STAGE, [result], 2)
    executor, (degrees,) = vectors_on_host(graph.executor, STAGE, degrees)
    (entries,) = gather_entries(executor, STAGE, degrees, [columns])
    return lists, graph.answers.submit_replicated(STAGE, _weights_of_entries, entries, weight, backend)


def _columns_and_renumbered(lists: OrientedCSR, vertices: int, name: str) -> list[Any]:
    """Return the distinct columns of lists, ascending, on the host, and the lists over positions among these."""
    columns, places = ranked(lists.columns.astype("int64"), max(1, vertices), get_backend(name))
    return [on_host(columns), replace(lists, columns=places)]


def _weights_of_entries(entries: list[Array], weight: Callable[[Array], Array], backend: str) -> Array:
    return get_backend(backend).array.asarray(weight(np.concatenate(entries)))


def _entries_of_shard(part: Array, first: int, ids: Array) -> Array:
    """Select the entries of those of ascending ids that are in a shard."""
    places = ids[ids.searchsorted(first) : ids.searchsorted(first + len(part))] - first
    return on_host(part.take(array_module(part).asarray(places)))


def _sums_of_pairs(lists: OrientedCSR, keys: Array, weights: Array | None, name: str) -> Array:
    """Count, or add up the weights of, the common neighbours of pairs row << 32 | row, ascending; on the host."""
    backend = get_backend(name)
    pairs = OrientedCSR(*backend.edges.rows(backend.array.asarray(keys), 0, lists.rows, 1 << SHIFT))
    task = BlockTask(pairs, lists, lists)
    if weights is None:
        sums, _, _ = backend.support(task, VISITED)
    else:
        unused = backend.array.zeros(lists.rows)
        sums, _, _ = weighted_support(task, (unused, unused, weights), name, VISITED)
    return on_host(sums[0])


# the most similar vertices


def _most_similar(
    graph: CountingContext, name: MeasureName, top: int, bound: int, kind: FrameKind
) -> tuple[list[Any], list[int]]:
    """Make frames of every vertex's most similar vertices; return their handles and numbers of rows."""
    executor, plan, measure, backend = graph.executor, graph.plan, MEASURES[name], graph.options.chosen_backend
    unit = "GPU" if backend in ON_DEVICE else "thread"
    top = whole_number("top", top, 1, MOST, "nothing would be found", "each is compared with those found before")
    bound = whole_number("bound", bound, 1, few="nothing could be compared")
    highest, wedges = degree_facts(graph)
    wedges *= 2
    if wedges > bound:
        raise InputError(
            f"the most similar vertices are found by walking {wedges:.3g} wedges, more than the bound of {bound:.3g}: "
            f"about {wedges / WEDGES_A_SECOND[backend] / 3600:.3g} hours of one {unit}, for a vertex has up to "
            f"{plural(highest, 'neighbour')}; give a larger bound, or pairs to compare"
        )
    # Results take memory, on a GPU also the wedges that are listed at a time.
    listed = 0
    largest = 28 * min(top * graph.vertices, wedges) + 20 * graph.vertices
    if backend in ON_DEVICE:
        largest += 8 * graph.edges + VERTEX_BYTES * graph.vertices
        listed = max(1, min(graph.tuning.listed_wedges, (plan.memory - largest) // (2 * WEDGE_BYTES)))
        largest += WEDGE_BYTES * listed
    fact = f"{option('top', top)} of {plural(graph.vertices, 'vertex')} takes {format_size(largest)}"
    refuse_beyond(plan.memory, largest, fact, f"take fewer, or raise {advice('memory')}")
    # Each part of the vertices walks its wedges over the lists of all.
    lists, ids = adjacency(graph, None, 2 * graph.edges), id_shards(graph)
    splits = max(1, min(graph.vertices, PIECES * len(executor.worker_threads)))
    calls = [(lists, measure, split, splits, top, backend, listed) for split in range(splits)]
    parts = starmap(executor, STAGE, most_similar, calls)
    rows = executor.gather(executor.map(STAGE, _rows_of_part, list(parts)))
    firsts = [0, *accumulate(rows)]
    vertices = [graph.prepared.vertices] * len(parts)
    if len(ids.parts) > 1:
        parts, (vertices,) = in_own_ids(executor, STAGE, parts, _localised_pairs, ids)
    frames = executor.map(STAGE, _similar_frame, zipped(parts, vertices, firsts[:-1]), name, kind.library)
    return frames, rows


def _rows_of_part(part: list[Array]) -> int:
    return len(part[0])


def _localised_pairs(part: list[Array]) -> list[Any]:
    """Relabel pairs, lists of their first and second ids and their values, for `in_own_ids`."""
    src, dst, values = map(on_host, part)
    ids, places = distinct_places(np.stack([src, dst]))
    return [ids, [*places, values]]


def _similar_frame(parts: list[Any], name: str, library: Any) -> Any:
    (src, dst, values), vertices, first = parts
    values = values.astype(_dtype(name), copy=False)
    return frame_of({**id_columns(vertices, {"src": src, "dst": dst}, library), name: values}, library, first)
