"""Frames with a number for every edge, in ascending order of the ends' ids, or for requested edges.

Frames of the edges alone are made in the same way; those of oriented edges with keys that have the source first.

The number of an edge is stored beside its column of a block; if several blocks contain the edge, their numbers add up.
Slices of blocks become arrays of keys (dense ids) above numbers. If there are several partitions, slices are cut at
common keys and the cuts of each partition are joined, where the numbers of an edge are added up. Each partition is
sorted and gets the caller's ids.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dasktc.answers.edge_support import zeros_of
from dasktc.answers.external_ids import SHIFT, edges_by_dense_id, in_own_ids, localised_edges
from dasktc.answers.frames import (
    PANDAS,
    FrameKind,
    array_module,
    backend_of,
    column,
    dense_ids,
    external_ids_on_device,
    frame_kind,
    frame_of,
    given_ids,
    id_columns,
    ids_of,
    in_library,
    labelled,
    numbered,
    on_device_where_counted,
    rows_of_partition,
    unknown,
    with_rows,
)
from dasktc.backends import ON_DEVICE, get_backend
from dasktc.backends.csr import OrientedCSR, on_host
from dasktc.backends.vertex_maps import VertexMap
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import refuse_unless
from dasktc.executors.base import Executor, starmap
from dasktc.io.columns import check_lengths, places_of
from dasktc.io.memory.kinds import columns_of_pairs
from dasktc.options import format_size, refuse_beyond
from dasktc.pipeline.planes.exchange import splitters
from dasktc.pipeline.planes.vectors import Sharded, zipped
from dasktc.pipeline.stages.edge_keys import pack, unpack
from dasktc.planning.schemes import Block
from dasktc.wording import advice, plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "EdgeMeasure",
    "edge_answer",
    "edges_in_parts",
    "frame_of_edges",
    "given_as",
    "given_pairs",
    "partitions",
    "refuse_frame",
]

Array = Any
ByPlace = dict[Block, Any]
"""Handles by block position of an int32 or float64 array: a non-negative number for each column of the block."""
WIDE = 4
"""Approximate number of partitions cut from one slice if there are many."""


class EdgeMeasure(NamedTuple):
    """A measure of edges that is computed from their numbers when partitions become frames."""

    function: Callable[[Array, Array, Array], Array]
    """Of (numbers, of_src, of_dst): the numbers of some edges, int64, and the entries of the vector at both ends, None
    without a vector. Numbers of float64 are given as their bits."""
    dtype: str
    """Of the results of the function."""
    vector: Sharded | None = None
    """Entries by dense id."""
    real: bool = False
    """Whether the numbers are float64."""


def edge_answer(
    graph: CountingContext,
    by_place: ByPlace,
    name: str,
    kind: FrameKind,
    edges: Any = None,
    total: int | None = None,
    measure: EdgeMeasure | None = None,
) -> Any:
    """Make a frame with the number of every edge, or of requested edges.

    Parameters
    ----------
    graph : CountingContext
    by_place : dict of (i, j) to handle of array of int32
        If the scheme puts an edge into several blocks, its numbers there are added up.
    name : str
        Name of the numbers' column.
    kind : FrameKind
    edges : table, array of shape (m, 2), or sequence of pairs, optional
        Requested edges by the caller's ids, in either direction.
    total : int, optional
        Expected sum of the numbers of all edges.
    measure : EdgeMeasure, optional
        What all edges get in place of their numbers.

    Returns
    -------
    DataFrame
        Columns "src", "dst" and `name`, int64 without a measure. For all edges: src < dst, rows ascend and are numbered
        from 0 across all partitions. With `edges`: one row for each, as given.

    Raises
    ------
    InputError
        The frame needs more memory than is available, or an edge is not in the graph.
    CountError
        Edges or numbers were lost.
    """
    if edges is not None:
        return _asked(graph, by_place, name, kind, edges)
    refuse_frame(graph, kind)
    executor = graph.executor
    is_single = len(by_place) == 1 and graph.plan.shards == 1 and graph.plan.scheme.once and _alone(graph, kind)
    is_real = measure is not None and measure.real
    # The device sorts them if keys and numbers fit.
    if is_single and not is_real and graph.options.chosen_backend in ON_DEVICE:
        ((place, values),), vertices = by_place.items(), graph.prepared.vertices
        function, vector = (None, None) if measure is None else (measure.function, measure.vector)
        handles = graph.prepared.graph.order.whole, vertices, None if vector is None else vector.whole
        call = graph.blocks[place], values, *handles, function, name, kind, graph.edges, total
        frame = executor.gather([executor.submit("edges", _whole_frame, *call)])[0]
        if frame is not None:
            return in_library(labelled(graph, frame, ("src", "dst")), kind)
    types = {name: "int64" if measure is None else measure.dtype}
    return numbered(
        graph, *partitions(graph, by_place, name, kind, total, measure=measure), kind, ("src", "dst"), types
    )


def frame_of_edges(graph: CountingContext, frame: str, oriented: bool) -> Any:
    """Return every edge, from source to target or the smaller end first; see `Graph.oriented_edges`, `edge_list`."""
    kind = on_device_where_counted(graph, frame_kind(graph, frame, "edges"))
    refuse_frame(graph, kind)
    executor, backend = graph.executor, graph.options.chosen_backend
    zeros = {place: executor.submit("edges", zeros_of, block, backend) for place, block in graph.blocks.items()}
    return numbered(graph, *partitions(graph, zeros, None, kind, oriented=oriented), kind, ("src", "dst"))


def partitions(
    graph: CountingContext,
    by_place: ByPlace,
    name: str | None,
    kind: FrameKind = PANDAS,
    total: int | None = None,
    oriented: bool = False,
    measure: EdgeMeasure | None = None,
) -> tuple[list[Any], list[int]]:
    """Make frames with the number of every edge and leave them where they are made; parameters as for `edge_answer`.

    Without a name the frames have no numbers; with `oriented` the source of an edge is first, not the smaller end.

    Returns
    -------
    frames : list of handles of DataFrame, at least one
        The edges of each precede those of the next.
    rows : list of int
        Number of rows of each.
    """
    executor = graph.executor
    most, step = (max(1, graph.edges),) * 2 if _alone(graph, kind) else _lengths(graph)
    groups = _by_range(graph, _slices(graph, by_place, step, oriented), max(1, -(-graph.edges // most)))
    reducer = partial(_summed, is_real=True) if measure is not None and measure.real else _summed
    parts = executor.map("edges", _joined if graph.plan.scheme.once else reducer, groups)
    # Edges and numbers are complete before frames are made of them.
    facts = executor.gather(executor.map("edges", _added, list(parts)))
    sizes = [edges for edges, _ in facts]
    fact = f"{name or 'rows'} and edges differ in number"
    refuse_unless(sum(sizes) == graph.edges, fact, graph.folder_of_copies)
    refuse_unless(total is None or sum(number for _, number in facts) == total, f"{name} of edges do not add up")
    parts, sizes = with_rows(parts, sizes)
    firsts = [0, *accumulate(sizes)][:-1]
    # Each partition gets the caller's ids and the measure's entries of its vertices.
    function, vector = (None, None) if measure is None else (measure.function, measure.vector)
    vectors = [] if vector is None else [vector]
    if graph.plan.shards > 1:
        parts, entries = in_own_ids(executor, "edges", parts, localised_edges, graph.prepared.vertices, *vectors)
    else:
        entries = [[handle] * len(parts) for handle in (graph.prepared.vertices, *(shards.whole for shards in vectors))]
    return executor.map("edges", _edge_frame, zipped(parts, firsts, *entries), name, kind.library, function), sizes


def edges_in_parts(graph: CountingContext, by_place: ByPlace, function: Callable[[Array], Any]) -> list[Any]:
    """Call a function on parts of the edges that contain each edge once; return the handles of what it returns.

    It is given keys over dense ids above numbers, int64 of shape (2, edges), in any order. `by_place` is as for
    `edge_answer`.
    """
    executor, (most, step) = graph.executor, _lengths(graph)
    if not graph.plan.scheme.once:
        groups = _by_range(graph, _slices(graph, by_place, step), max(1, -(-graph.edges // most)))
        return executor.map("edges", function, executor.map("edges", _summed, groups))
    if graph.plan.shards > 1:
        return executor.map("edges", function, _slices(graph, by_place, step))
    return _slices(graph, by_place, most, function=function)


def _lengths(graph: CountingContext) -> tuple[int, int]:
    """Return the most edges of a partition, and of a slice, which is cut into several."""
    share, tuning = graph.answers.frame_bytes, graph.tuning
    row_bytes = tuning.split_bytes if graph.plan.shards > 1 else tuning.frame_bytes
    limit = max(1, graph.edges if share is None else share // row_bytes)
    most = max(1, min(limit, rows_of_partition(graph, 2, 1)))
    return most, max(1, min(limit, WIDE * most))


def refuse_frame(graph: CountingContext, kind: FrameKind) -> None:
    """Refuse a frame of all edges that exceeds the memory budget of the caller, if that is the one process."""
    nbytes = graph.tuning.frame_bytes * graph.edges
    fact = f"a frame of {plural(graph.edges, 'edge')} takes {format_size(nbytes)} while it is made"
    remedy = f"take frame='dask', write it with {advice('per_edge')}, or raise {advice('memory')}"
    memory = graph.answers.caller_bytes if kind.whole else None
    refuse_beyond(memory, nbytes, fact, f"the caller receives the whole frame; {remedy}", "of memory for it")


def _alone(graph: CountingContext, kind: FrameKind) -> bool:
    """Whether the caller's process makes the whole frame in its own memory."""
    return kind.whole and graph.answers.in_one_memory


def _whole_frame(
    block: OrientedCSR,
    values: Array,
    order: Array,
    vertices: VertexMap,
    vector: Array | None,
    function: Callable[[Array, Array, Array], Array] | None,
    name: str,
    kind: FrameKind,
    edges: int,
    total: int | None,
) -> Any:
    """Sort all edges into one frame; None if an edge's key and number together exceed a 64-bit word.

    `function` and `vector`, by dense id, are those of an `EdgeMeasure`.
    """
    answers = backend_of(values).answers
    value_sum, bound = answers.facts(values)
    refuse_unless(block.edges == len(values) == edges, f"{name} and edges differ in number")
    refuse_unless(total is None or value_sum == total, f"{name} of edges do not add up")
    if block.members is not None:
        ids = (order.take(block.members),) * 2
    else:
        ids = order[block.row_first :: block.stride], order[block.column_first :: block.stride]
    vertex_ids = external_ids_on_device(vertices)
    is_direct = function is None and vertex_ids is not None  # else the function takes dense ids first, or the host maps
    columns = answers.edges(block, values, ids, len(order), bound, vertex_ids if is_direct else 0)
    if columns is None:
        return None
    src, dst, numbers = columns
    if function is not None:
        numbers = function(numbers, *(None if vector is None else vector.take(ends) for ends in (src, dst)))
    if vertex_ids is None:
        src, dst = (ids_of(vertices, ends, kind.library) for ends in (src, dst))
    elif not is_direct:
        is_range = isinstance(vertex_ids, int)
        src, dst = (ends + vertex_ids if is_range else vertex_ids.take(ends) for ends in (src, dst))
    return frame_of({"src": src, "dst": dst, name: numbers}, kind.library)


# slices of blocks


def _slices(
    graph: CountingContext,
    block_values: ByPlace,
    step: int,
    is_oriented: bool = False,
    function: Callable[[Array], Any] | None = None,
) -> list[Any]:
    """Cut blocks into slices: keys over dense ids above numbers; out of core they are on the host.

    If vertices are in one shard, `function` is applied to each slice.
    """
    executor, sharded = graph.executor, graph.plan.shards > 1
    order = None if sharded else graph.prepared.graph.order.whole
    backend, host = graph.options.chosen_backend, sharded or not graph.answers.frames_on_device
    calls = [
        (graph.blocks[place], values, order, start, start + step, backend, host, is_oriented, function)
        for place, values in block_values.items()
        for start in range(0, int(graph.prepared.sizes.edges[place]), step)
    ]
    slices = starmap(executor, "edges", _slice, calls)
    return edges_by_dense_id(executor, slices, graph.prepared.graph.order, is_oriented) if sharded else slices


def _slice(*arguments: Any) -> Any:
    *part, function = arguments
    edges = _edges_of_block(*part)
    return edges if function is None else function(edges)


def _edges_of_block(
    block: OrientedCSR,
    values: Array,
    order: Array | None,
    start: int,
    stop: int,
    backend: str,
    host: bool,
    is_oriented: bool,
) -> Array:
    """Return keys above numbers for some edges of a block; the smaller id is first, or with `is_oriented` the row's.

    Without an order the keys are over the ids of the blocks.
    """
    xp, stop = get_backend(backend).array, min(stop, block.edges)
    if xp is np and order is not None:
        from dasktc.backends.cpu.edge_columns import keys_of_block

        ends = block.row_ids(np.arange(block.rows)), _columns_of(block, len(order))
        rows, columns = (order.take(ids, mode="clip") for ids in ends)  # rows after the last vertex are empty
        is_real = values.dtype == np.float64
        numbers = block.columns if is_real else values
        edges: Array = keys_of_block(block.offsets, block.columns, rows, columns, numbers, start, stop, is_oriented)
        if is_real:
            edges[1] = values[start:stop].view(np.int64)
        return edges
    u, v = block.row_ids(_rows(block, start, stop, xp)), block.column_ids(block.columns[start:stop])
    if order is not None:
        u, v = order.take(u), order.take(v)
    edges = xp.empty((2, stop - start), dtype="int64")
    edges[0] = pack(u, v, SHIFT) if is_oriented else pack(xp.minimum(u, v), xp.maximum(u, v), SHIFT)
    part = values[start:stop]
    edges[1] = part.view("int64") if part.dtype == "float64" else part
    return on_host(edges) if host else edges


def _columns_of(block: OrientedCSR, vertices: int) -> Array:
    """Return the vertex ids of all columns of a block, by column number."""
    count = -(-(vertices - block.column_first) // block.stride) if block.members is None else len(block.members)
    return block.column_ids(np.arange(max(0, count)))


def _rows(block: OrientedCSR, start: int, stop: int, xp: Any) -> Array:
    """Return the row of each edge from `start` to `stop`."""
    if xp is np:  # searching for each edge would take three times as long
        return np.repeat(np.arange(block.rows), np.diff(block.offsets.clip(start, stop)))
    first = int(block.offsets.searchsorted(xp.asarray([start], dtype="int64"), side="right")[0]) - 1
    end = int(block.offsets.searchsorted(xp.asarray([stop], dtype="int64"))[0])
    row_starts = xp.zeros(stop - start, dtype="int32")
    if end > first + 1:
        xp.add.at(row_starts, block.offsets[first + 1 : end] - start, xp.ones(end - first - 1, dtype="int32"))
    rows = xp.cumsum(row_starts, dtype="int32")
    rows += first
    return rows


# partitions


def _by_range(graph: CountingContext, slices: list[Any], count: int) -> list[list[Any]]:
    """Cut slices of edges at ranges of keys of about equal size, and group the cuts by range."""
    executor: Executor = graph.executor
    if count == 1:
        return [slices]
    keys = [executor.submit("edges", operator.getitem, part, 0) for part in slices]
    entries = graph.edges if graph.plan.scheme.once else int(graph.prepared.sizes.edges.sum())
    starts = splitters(executor, "edges", keys, entries, count)
    return executor.transpose("edges", executor.map("edges", _cut, slices, starts), len(starts) + 1)


def _cut(part: Array, starts: list[int]) -> list[Array]:
    """Sort the edges and cut them before each of `starts`."""
    xp, (high, low, values) = array_module(part), _ascending(part)
    sorted_edges = xp.stack([pack(high, low, SHIFT), values])
    places = sorted_edges[0].searchsorted(xp.asarray(starts, dtype="int64")).tolist()
    return [sorted_edges[:, a:b].copy() for a, b in zip([0, *places], [*places, sorted_edges.shape[1]], strict=True)]


def _joined(slices: list[Array]) -> Array:
    if not slices:
        return np.empty((2, 0), np.int64)
    return slices[0] if len(slices) == 1 else array_module(slices[0]).concatenate(slices, axis=1)


def _summed(slices: list[Array], is_real: bool = False) -> Array:
    """Return each edge once, with the sum of its numbers, which may be the bits of float64."""
    high, low, values = _ascending(_joined(slices))
    xp, keys = array_module(values), pack(high, low, SHIFT)
    if not len(keys):
        return xp.stack([keys, values])
    last = xp.ones(len(keys), dtype=bool)
    last[:-1] = keys[1:] != keys[:-1]
    if is_real:
        places = xp.cumsum(last, dtype="int64") - last
        return xp.stack([keys[last], xp.bincount(places, weights=values.view("float64")).view("int64")])
    sums = xp.cumsum(values, dtype="int64")[last]
    sums[1:] -= sums[:-1].copy()
    return xp.stack([keys[last], sums])


def _added(part: Array) -> tuple[int, int]:
    return part.shape[1], int(part[1].sum())


def _edge_frame(
    parts: list[Any], name: str | None, library: Any, function: Callable[[Array, Array, Array], Array] | None
) -> Any:
    """Make a frame of some edges, the number of its first row, and the ids and entries of their ends.

    Edges are over dense ids, or over positions among the ids that occur, whose caller's ids and entries are in parts.
    """
    edges, first, vertices, *vectors = parts
    high, low, values = _ascending(edges)
    if function is not None and not vectors:
        values = function(values, None, None)
    elif function is not None:
        vector = np.concatenate(vectors[0]) if isinstance(vectors[0], list) else vectors[0]
        vector = on_host(vector) if isinstance(edges, np.ndarray) else vector
        values = function(values, vector.take(high), vector.take(low))
    columns = {} if name is None else {name: values}
    return frame_of(id_columns(vertices, {"src": high, "dst": low}, library) | columns, library, first)


def _ascending(part: Array) -> tuple[Array, Array, Array]:
    """Sort edges by their ends; return the ends and the edges' numbers in that order."""
    if isinstance(part, np.ndarray):
        from dasktc.backends.cpu.edge_columns import ascending

        return ascending(part)
    keys, values = part[0], part[1]
    high, low = unpack(keys, SHIFT)
    low_bits, value_bits = (int(numbers.max()).bit_length() if len(keys) else 0 for numbers in (low, values))
    top = (int(high.max()) if len(keys) else 0) + 1
    if (top << (low_bits + value_bits)) >= 1 << 63:
        place = keys.argsort()
        return high.take(place), low.take(place), values.take(place)
    words = high
    for width, numbers in ((low_bits, low), (value_bits, values)):
        words <<= width
        words |= numbers
    words = get_backend("cuda").sort(words, top << (low_bits + value_bits))
    values = words & ((1 << value_bits) - 1)
    words >>= value_bits
    low = words & ((1 << low_bits) - 1)
    words >>= low_bits
    return words, low, values


# requested edges


def _asked(graph: CountingContext, block_values: ByPlace, name: str, kind: FrameKind, edges: Any) -> Any:
    names, src, dst = given_pairs(graph, edges, "edges")
    ends = [dense_ids(graph, end) for end in (src, dst)]
    keys = pack(np.minimum(*ends), np.maximum(*ends), SHIFT)
    mask = np.minimum(*ends) >= 0
    distinct_keys = get_backend("cpu").distinct(keys[mask])
    step = max(1, WIDE * rows_of_partition(graph, 2, 1))
    share = graph.answers.frame_bytes
    slices = _slices(
        graph, block_values, step if share is None else max(1, min(step, share // graph.tuning.split_bytes))
    )
    matches = graph.executor.gather(graph.executor.map("edges", _matched, slices, distinct_keys))
    counts, sums = np.sum([np.zeros((2, len(distinct_keys)), np.int64), *matches], axis=0)
    place = distinct_keys.searchsorted(keys).clip(max=max(0, len(distinct_keys) - 1))
    mask &= (distinct_keys[place] == keys) & (counts[place] > 0) if len(distinct_keys) else False
    if not mask.all():
        number = int(mask.argmin())
        ends_of_example = (column[number] for column in names)
        example = tuple(end.item() if isinstance(end, np.generic) else end for end in ends_of_example)
        raise unknown("edges", example, int((~mask).sum()), "edge")
    frame = frame_of({"src": column(src), "dst": column(dst), name: sums[place] if len(place) else sums}, "pandas")
    return given_as(labelled(graph, frame, ("src", "dst")), kind)


def given_as(frame: pd.DataFrame, kind: FrameKind) -> Any:
    """Convert a few rows of this process to the requested frame type."""
    if kind.whole:
        return in_library(frame, replace(kind, library="pandas"))
    import dask.dataframe as dd

    if kind.library == "cudf":
        frame = get_backend("cuda").frame.from_pandas(frame)
    return dd.from_pandas(frame, npartitions=1, sort=False)


def given_pairs(graph: CountingContext, edges: Any, name: str) -> tuple[Any, Any, Any]:
    """Return the pairs that a caller requests: both columns as errors name them, and both columns of ids.

    They are as of `columns_of_pairs`. InputError, too: their ids have another type than the graph's.
    """
    are_labels = graph.prepared.source.labels is not None
    columns = columns_of_pairs(edges, name, are_labels)
    src, dst = (given_ids(graph, column, name) for column in columns)
    check_lengths(len(src), len(dst), places_of((0, 1), f"pair for {name}"))
    names = [list(column) for column in columns] if are_labels else [src, dst]
    return names, src, dst


def _matched(part: Array, distinct_keys: Array) -> Array:
    """For each of some ascending keys, its number of occurrences above the sum of its numbers; on the host."""
    counts = np.zeros((2, len(distinct_keys)), np.int64)
    if part.shape[1] and len(distinct_keys):
        xp = array_module(part)
        device_keys = xp.asarray(distinct_keys)
        places = xp.minimum(device_keys.searchsorted(part[0]), len(distinct_keys) - 1)
        hits = device_keys.take(places) == part[0]
        hit_places = on_host(places[hits])
        np.add.at(counts[0], hit_places, 1)
        np.add.at(counts[1], hit_places, on_host(part[1][hits]))
    return counts
