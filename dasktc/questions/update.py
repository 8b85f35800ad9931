"""Adds edges to and removes edges from a prepared graph: the exact differences, and the blocks of a new graph.

Vertices keep their ids in the blocks, which were their ranks by degree when the graph was prepared, because any vertex
order gives an orientation in which each triangle is found once. New vertices get the next ids after the last. Vertices
that lose their last edge leave the graph: the vertices with the largest ids take over their ids.

Only the neighbourhoods of changed edges are needed for the differences. A lost or gained triangle is attributed to the
first of its changed edges, in ascending order; for each changed edge the shorter neighbourhood of its two ends is
looked up in the other. One pass over the columns of each block collects these neighbourhoods, and another writes the
new block; only the batch and the neighbourhoods are sorted. Edges and Σ in(v)·out(v) of the new graph follow from the
changed degrees; its blocks, and every count of it, are checked against them.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from dasktc.answers.frames import column
from dasktc.backends import get_backend, lazy_backend
from dasktc.backends.csr import OrientedCSR, on_host
from dasktc.backends.vertex_maps import VertexMap, check_size
from dasktc.counting.context import CountingContext
from dasktc.errors import CountError, InputError
from dasktc.executors.base import for_backend
from dasktc.io.labels import pairs_of_labels
from dasktc.io.source import ReadOptions, Source
from dasktc.options import Ids, format_size
from dasktc.pipeline.build_blocks import GridPartition
from dasktc.pipeline.planes import Handles, Oriented, choose
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.prepare import Prepared, half_weight_of, plan_again
from dasktc.pipeline.stages.blocks import check_edges
from dasktc.pipeline.stages.edge_keys import pack, shift_of, unpack
from dasktc.pipeline.stages.id_maps import SortedMap, TextMap
from dasktc.pipeline.stages.orient import inverse, wedges_of
from dasktc.pipeline.stages.row_ids import places_among
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.schemes import BY_REMAINDER, Sizes
from dasktc.registry import ORDERS
from dasktc.wording import advice, option, plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Change", "update"]

Array = Any
GraphLike = TypeVar("GraphLike")
SHIFT = 31
"""Bits of the smaller id in the keys of this module: ids, including new ones, stay below 2^31."""


VERTEX_BYTES = 60
"""Bytes for each vertex of the graph while its ids, order and degrees are changed."""


@dataclass(frozen=True, eq=False)
class Change(Generic[GraphLike]):
    """The change that a batch of edges makes.

    Attributes
    ----------
    triangles : int
        Triangles of the new graph minus those of the old one.
    vertices : pandas.Series of int64
        The nonzero differences of vertices, by the caller's ids in ascending order, named "triangles".
    added, removed : int
        Edges only in the new graph, and only in the old one.
    graph : Graph
        The new graph.
    """

    triangles: int
    vertices: pd.Series[int]
    added: int
    removed: int
    graph: GraphLike

    def __repr__(self) -> str:
        return f"Change(triangles={self.triangles:+}, added={self.added}, removed={self.removed})"


class _Batch(NamedTuple):
    """Edges of a batch: ascending distinct keys over the ids of the old blocks, with new vertices after the last.

    Attributes
    ----------
    add, remove : array of int64
    new : ids of new vertices, ascending
    repeated : int
        Number of added rows that repeat another one.
    """

    add: Array
    remove: Array
    new: Any
    repeated: int


class _Edit(NamedTuple):
    """The changes of the blocks.

    Attributes
    ----------
    delete, insert : array of int64
        Ascending keys over the ids of the old blocks, and of the new blocks.
    order : array
        The dense id of each id of the new blocks.
    out_degree, in_degree : array
        Degrees by the ids of the new blocks.
    names : VertexMap
    """

    delete: Array
    insert: Array
    order: Array
    out_degree: Array
    in_degree: Array
    names: VertexMap


def update(graph: CountingContext, add: Any, remove: Any) -> Change[CountingContext]:
    """Remove edges, then add edges; see `Graph.update`."""
    _refuse(graph)
    executor, prepared, ids = graph.executor, graph.prepared, graph.prepared.source.ids
    parts, backend, chunk = graph.plan.parts, graph.options.chosen_backend, graph.tuning.update_chunk
    submit, vertex_map, labels = partial(executor.submit, "update"), prepared.vertices, prepared.source.labels
    vectors = [vector.whole for vector in (prepared.graph.order, prepared.graph.out_degree, prepared.graph.in_degree)]
    if labels is None:
        sources = [_open_rows(rows, ids) for rows in (remove, add)]
    else:
        removed_pairs, added_pairs = (
            pairs_of_labels(() if rows is None else rows, keyword)
            for rows, keyword in ((remove, "remove"), (add, "add"))
        )
        labels = labels.extended(chain.from_iterable(added_pairs))
        ends = [labels.ids(chain.from_iterable(pairs)).reshape(-1, 2) for pairs in (removed_pairs, added_pairs)]
        # An edge with an unknown end is in no graph.
        sources = [_open_rows(pairs[(pairs >= 0).all(axis=1)], ids) for pairs in ends]
    host = choose(for_backend(executor, "cpu"), graph.options)
    removals, additions = map(host.read, sources)
    # Reduce the batch to the edges that change.
    batch = submit(_numbered, removals.frames.take(), additions.frames.take(), vertex_map, vectors[0], ids)
    present_keys = [submit(_present_keys, block, batch, place, parts, backend) for place, block in graph.blocks.items()]
    batch = submit(_effective, batch, present_keys)
    # Collect the neighbourhoods for the differences, and the rows whose ids change.
    incident = [submit(_incident_keys, block, batch, backend, chunk) for block in graph.blocks.values()]
    first = submit(_first_moved, batch, *vectors[1:])
    tails = [submit(_rows_from, block, first, backend) for block in graph.blocks.values()]
    edit = submit(_make_edit, batch, first, tails, *vectors, vertex_map, ids)
    (difference,) = executor.gather([submit(_differences, batch, incident, vectors[0], vertex_map, ids, chunk)])
    (size,) = executor.gather([submit(_sizes, edit, parts)])
    triangles, vertices, counts = difference
    revision = _prepared(graph, edit, size, counts)
    revision = replace(revision, source=replace(revision.source, labels=labels))
    if labels is not None:
        labels.name_index(vertices)
    # Write the new blocks.
    layout, edges = _layout(revision), revision.partition.sizes.edges
    make = graph.answers.submit_replicated if graph.plan.scheme.replicated else executor.submit
    blocks = {
        place: make("blocks", _rebuild, block, edit, place, layout, backend, int(edges[place]))
        for place, block in graph.blocks.items()
    }
    executor.wait(blocks.values())
    loops, rows = additions.loops, size.edges + additions.loops + counts.repeated
    new_graph = replace(graph, prepared=replace(revision, rows=rows, loops=loops), blocks=blocks)
    return Change(triangles, vertices, counts.added, counts.removed, new_graph)


def _refuse(graph: CountingContext) -> None:
    plan, reorder = graph.plan, graph.options.chosen_reorder
    if not (plan.scheme.once and plan.scheme.dealing is BY_REMAINDER):
        raise InputError(
            f"{option('partition', plan.partition)} puts an edge into several blocks, or assigns vertices by their "
            f"degrees: updates of it are not built; prepare with {advice(partition='whole')} or 'hash2d'"
        )
    if not ORDERS[reorder].ordered:
        raise InputError(
            f"{option('reorder', reorder)} does not keep the order of degrees, in which edges are directed: updates of "
            f"it are not built; prepare with {advice(reorder='degree')}"
        )
    if plan.shards > 1:
        raise InputError(
            f"{plan.numbering}: an update makes vectors of all vertices in one call, "
            f"{format_size(VERTEX_BYTES * plan.vertices)}; prepare with a larger {advice('memory')}"
        )
    if graph.prepared.attributes is not None:
        raise InputError(
            "the graph was prepared with weights or directions, which an update lacks for new edges: prepare the "
            "updated source"
        )
    if graph.prepared.columns.edges or graph.prepared.columns.vertices:
        raise InputError(
            "the graph was prepared with columns of vertices or edges, which an update lacks for new ones: prepare the "
            "updated source"
        )
    memory, largest = graph.answers.call_bytes, int(plan.scheme.block_bytes(graph.prepared.sizes).max())
    if memory is not None and (nbytes := 3 * largest + VERTEX_BYTES * plan.vertices) > memory:
        raise InputError(
            f"an update needs {format_size(nbytes)} at n = {plan.parts}, more than the {format_size(memory)} of one "
            f"call: it holds a block twice; prepare with {advice(parts=2 * plan.parts)}, or raise {advice('memory')}"
        )


# the batch


def _open_rows(rows: Any, ids: Ids) -> Source:
    """Open the rows that a caller passes; None, and empty frames and lists, have no rows."""
    options, size = ReadOptions(ids=ids), next(iter(getattr(rows, "shape", ())), None)
    if isinstance(rows, list | tuple | set | frozenset):
        size = len(rows)
    if rows is None or (isinstance(size, int) and size == 0):  # the length of a Dask collection is not known yet
        return Source("no edges", (), ids)
    if all(isinstance(row, str | os.PathLike) for row in (rows if isinstance(rows, list) else [rows])):
        from dasktc.io.files import open_source

        return open_source(rows, options)
    from dasktc.io.memory import from_object

    source: Source = from_object(rows, options)
    return source


def _numbered(removals: list[Any], additions: list[Any], vertex_map: VertexMap, order: Array, ids: Ids) -> _Batch:
    """Make the keys of a batch, without edges to remove at vertices that the graph does not have."""
    order = on_host(order)
    names, rank = vertex_map.external(np.arange(len(order))), inverse(order, get_backend("cpu")).astype("int64")
    if not len(order):
        rank = np.zeros(1, "int64")  # for ids that are not found
    u, v = (places_among(names, end) for end in _ends(removals, ids))
    mask = (u >= 0) & (v >= 0)
    remove = np.unique(_key(rank.take(u[mask]), rank.take(v[mask])))
    # Vertices that the graph does not have get the next ids after its last.
    ends = [(end, places_among(names, end)) for end in _ends(additions, ids)]
    new_ids = _distinct_ids([_select(end, place < 0, ids) for end, place in ends], ids)
    keys = _key(
        *(
            np.where(place >= 0, rank.take(np.maximum(place, 0)), len(order) + places_among(new_ids, end))
            for end, place in ends
        )
    )
    add = np.unique(keys)
    return _Batch(add, remove, new_ids, len(keys) - len(add))


def _key(a: Array, b: Array) -> Array:
    return pack(np.maximum(a, b), np.minimum(a, b), SHIFT)


def _ends(frames: list[Any], ids: Ids) -> list[Any]:
    """Concatenate the two columns of a batch's frames, which have no loops."""
    if ids == "int":
        return [
            np.concatenate([np.empty(0, "int64"), *(frame[end].to_numpy() for frame in frames)]).astype("int64")
            for end in ("src", "dst")
        ]
    import pyarrow as pa

    text = get_backend("cpu").text
    columns = ([text.arrow(frame[end]) for frame in frames] for end in ("src", "dst"))
    end_columns = (
        pa.chunked_array([chunk for array in part for chunk in getattr(array, "chunks", [array])], pa.large_string())
        for part in columns
    )
    return [array.combine_chunks() for array in end_columns]


def _select(values: Any, mask: Array, ids: Ids) -> Any:
    return values[mask] if ids == "int" else values.filter(mask)


def _distinct_ids(columns: list[Any], ids: Ids) -> Any:
    if ids == "int":
        return np.unique(np.concatenate(columns))
    text = get_backend("cpu").text
    distinct_ids = text.ascending(text.unite(columns))
    return distinct_ids.combine_chunks() if hasattr(distinct_ids, "combine_chunks") else distinct_ids


def _present_keys(
    block: OrientedCSR, batch: _Batch, place: tuple[int, int], parts: int, backend: str
) -> tuple[Any, Any]:
    """Select the keys to add, and those to remove, whose edges the block has."""
    selections = (_in_block(keys, place, parts) for keys in (batch.add, batch.remove))
    return tuple(
        keys[_positions(block.offsets, block.columns, row, column, backend)[1]] for keys, row, column in selections
    )


def _in_block(keys: Array, place: tuple[int, int], parts: int) -> tuple[Array, Array, Array]:
    """Select the keys whose edges belong in a block; return also the row and column of each in it."""
    high, low = unpack(keys, SHIFT)
    mask = (high % parts == place[0]) & (low % parts == place[1])
    return keys[mask], high[mask] // parts, low[mask] // parts


def _positions(offsets: Array, columns: Array, row: Array, column: Array, backend: str) -> tuple[Any, Array]:
    """Bisect for the positions of edges, or where they would be, and whether they exist (on the host)."""
    xp = get_backend(backend).array
    rows = len(offsets) - 1
    row, target = xp.asarray(np.minimum(row, rows)), xp.asarray(column)  # a row after the last has no entries
    start, end = offsets.take(row), offsets.take(xp.minimum(row + 1, rows))
    row_end = end.copy()
    if len(columns) and len(row):
        for _ in range(int((end - start).max()).bit_length()):
            middle = (start + end) >> 1
            is_less = (columns.take(xp.minimum(middle, len(columns) - 1)) < target) & (start < end)
            start, end = xp.where(is_less, middle + 1, start), xp.where(is_less, end, middle)
        is_hit = (start < row_end) & (columns.take(xp.minimum(start, len(columns) - 1)) == target)
        return start, on_host(is_hit)
    return start, np.zeros(len(row), bool)


def _effective(batch: _Batch, key_pairs: list[tuple[Any, Any]]) -> _Batch:
    """Return the edges that are really added or removed; an edge to remove and to add stays or is added."""
    present_keys, removals = (np.concatenate(keys) for keys in zip(*key_pairs, strict=True))
    return batch._replace(add=np.setdiff1d(batch.add, present_keys), remove=np.setdiff1d(removals, batch.add))


# the differences


def _incident_keys(block: OrientedCSR, batch: _Batch, backend: str, chunk: int) -> Array:
    """Return the keys of a block's edges that share an end with a changed edge."""
    xp = get_backend(backend).array
    ends = np.unique(np.concatenate(unpack(np.concatenate([batch.add, batch.remove]), SHIFT)))
    row, column = (ends[(ends - first) % block.stride == 0] for first in (block.row_first, block.column_first))
    rows = (row - block.row_first) // block.stride
    places = [_entries(block, rows[rows < block.rows], backend)]
    numbers = (column - block.column_first) // block.stride
    is_end = xp.zeros(int(numbers.max(initial=0)) + 2, dtype=bool)
    is_end[xp.asarray(numbers)] = True
    for start in range(0, block.edges, chunk):
        columns = block.columns[start : start + chunk]
        places.append(xp.flatnonzero(is_end.take(xp.minimum(columns, len(is_end) - 1))) + start)
    return np.unique(_keys_at(block, xp.concatenate(places)))


def _entries(block: OrientedCSR, rows: Array, backend: str) -> Array:
    """Return the positions, in the columns, of all entries of these rows."""
    xp = get_backend(backend).array
    first, end = (on_host(block.offsets.take(xp.asarray(rows + k))) for k in (0, 1))
    return xp.asarray(_expand(first, end - first))


def _keys_at(block: OrientedCSR, places: Array) -> Array:
    """Return the keys of the edges at some positions; on the host."""
    row = block.offsets.searchsorted(places, side="right") - 1
    return on_host(pack(block.row_ids(row), block.column_ids(block.columns.take(places)), SHIFT))


class _Counts(NamedTuple):
    """Numbers of added and removed edges, and of rows to add whose edge already existed."""

    added: int
    removed: int
    repeated: int


def _differences(
    batch: _Batch, incident: list[Array], order: Array, vertex_map: VertexMap, ids: Ids, chunk: int
) -> tuple[int, pd.Series[int], _Counts]:
    """Count the change of the triangles of the graph and of each vertex."""
    import pandas as pd

    old_edges = np.unique(np.concatenate(incident))
    new_edges = np.union1d(np.setdiff1d(old_edges, batch.remove), batch.add)
    changes = np.zeros(len(order) + len(batch.new), "int64")
    gain = _count_closed(new_edges, batch.add, changes, chunk)
    np.negative(changes, out=changes)
    loss = _count_closed(old_edges, batch.remove, changes, chunk)
    np.negative(changes, out=changes)
    changed_vertices = np.flatnonzero(changes)
    old_vertices = changed_vertices[changed_vertices < len(order)]
    names = (
        vertex_map.external(on_host(order).take(old_vertices)),
        batch.new.take(changed_vertices[len(old_vertices) :] - len(order)),
    )
    all_ids, permutation = _sorted_ids(names, ids)
    series = pd.DataFrame({"vertex": column(all_ids), "triangles": changes[changed_vertices][permutation]})
    counts = _Counts(len(batch.add), len(batch.remove), batch.repeated)
    return gain - loss, series.set_index("vertex")["triangles"], counts


def _sorted_ids(names: tuple[Any, Any], ids: Ids) -> tuple[Any, Array]:
    """Return ids in ascending order, and the permutation that sorts them."""
    if ids == "int":
        all_ids = np.concatenate(names)
        permutation = all_ids.argsort()
    else:
        import pyarrow as pa
        import pyarrow.compute as pc

        all_ids = pa.concat_arrays([pa.array(part, pa.large_string()) for part in names])
        permutation = pc.array_sort_indices(all_ids).to_numpy()
    return all_ids.take(permutation), permutation


def _count_closed(edges: Array, changed_edges: Array, sums: Array, chunk: int) -> int:
    """Count the triangles with a changed edge, and add them up by vertex.

    Parameters
    ----------
    edges : array of int64
        Ascending keys, which include all edges of both ends of each changed edge.
    changed_edges : array of int64
        Ascending keys, some of the edges.
    sums : array of int64
        Added to.
    chunk : int
        Pairs of neighbours that are processed at a time.
    """
    high, low = unpack(edges, SHIFT)
    neighbours = np.sort(np.concatenate([edges, pack(low, high, SHIFT)]))
    # Take the neighbours of the end that has fewer.
    u, v = unpack(changed_edges, SHIFT)
    range_u, range_v = ([neighbours.searchsorted(end + k << SHIFT) for k in (0, 1)] for end in (u, v))
    swap = range_u[1] - range_u[0] > range_v[1] - range_v[0]
    pivots: Array = np.where(swap, v, u)
    targets: Array = np.where(swap, u, v)
    first, end = (np.where(swap, b, a) for a, b in zip(range_u, range_v, strict=True))
    triangles = 0
    for start, stop in _runs(end - first, chunk):
        sizes = (end - first)[start:stop]
        number = np.repeat(np.arange(start, stop), sizes)
        third = neighbours.take(_expand(first[start:stop], sizes)) & ((1 << SHIFT) - 1)
        # Keep those that are neighbours of the other end, too, in triangles whose other edges do not change earlier.
        mask = _contains(neighbours, pack(targets.take(number), third, SHIFT))
        number, third = number[mask], third[mask]
        a, b = pivots.take(number), targets.take(number)
        is_first = (_position(changed_edges, _key(a, third)) > number) & (
            _position(changed_edges, _key(b, third)) > number
        )
        for ends in (a, b, third):
            np.add.at(sums, ends[is_first], 1)
        triangles += int(is_first.sum())
    return triangles


def _expand(first: Array, sizes: Array) -> Array:
    """Return the positions of several ranges, concatenated."""
    offsets = np.cumsum(sizes) - sizes
    positions: Array = np.repeat(first - offsets, sizes) + np.arange(int(sizes.sum()))
    return positions


def _runs(sizes: Array, chunk: int) -> Iterator[tuple[int, int]]:
    """Yield runs of entries whose sizes add up to little more than `chunk`, or single entries."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        offset = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(ends.searchsorted(offset + chunk, side="right")))
        yield start, stop
        start = stop


def _contains(sorted_values: Array, values: Array) -> Array:
    places = np.minimum(sorted_values.searchsorted(values), max(0, len(sorted_values) - 1))
    return sorted_values.take(places) == values if len(sorted_values) else np.zeros(len(values), bool)


def _position(sorted_values: Array, values: Array) -> Array:
    """Return the position of each value, or the length if it is missing."""
    return np.where(_contains(sorted_values, values), sorted_values.searchsorted(values), len(sorted_values))


# the new graph


def _layout(prepared: Prepared) -> Layout:
    return cast(GridPartition, prepared.partition).layout  # vertices are assigned by remainder


def _first_moved(batch: _Batch, out_degree: Array, in_degree: Array) -> tuple[int, Array]:
    """Return the number of old vertices that keep an edge, and the ids of the others."""
    degree = on_host(out_degree).astype("int64") + on_host(in_degree)
    for keys, sign in ((batch.add, 1), (batch.remove, -1)):
        for ends in unpack(keys, SHIFT):
            np.add.at(degree, ends[ends < len(degree)], sign)
    holes = np.flatnonzero(degree == 0)
    return len(degree) - len(holes), holes


def _rows_from(block: OrientedCSR, first: tuple[int, Array], backend: str) -> Array:
    """Return the keys of a block's edges from the first id that may move."""
    row = max(0, -(-(first[0] - block.row_first) // block.stride))
    xp = get_backend(backend).array
    start = int(block.offsets[min(row, block.rows)])
    return _keys_at(block, xp.arange(start, block.edges, dtype="int64"))


def _make_edit(
    batch: _Batch,
    first: tuple[int, Array],
    tails: list[Array],
    order: Array,
    out_degree: Array,
    in_degree: Array,
    vertex_map: VertexMap,
    ids: Ids,
) -> _Edit:
    """Compute the ids and degrees of the new graph, and the changes of its blocks."""
    (head, holes), old_count, new_count = first, len(order), len(batch.new)
    source = np.concatenate([np.arange(head), old_count + np.arange(new_count)])  # the old id of each new id
    movers = np.setdiff1d(np.arange(head, old_count), holes)
    source[holes[holes < head]] = movers
    place = np.full(old_count + new_count, -1, "int64")
    place[source] = np.arange(head + new_count)
    tail = np.concatenate(tails)
    new_tail = np.union1d(np.setdiff1d(tail, batch.remove), batch.add)
    insert = np.unique(_key(*(place.take(end) for end in unpack(new_tail, SHIFT))))
    delete = np.union1d(tail, batch.remove)
    degrees = []
    for end, degree in enumerate((out_degree, in_degree)):
        counts = np.zeros(head + new_count, "int64")
        counts[:head] = on_host(degree)[:head]
        ends = unpack(delete, SHIFT)[end]
        np.subtract.at(counts, ends[ends < head], 1)
        np.add.at(counts, unpack(insert, SHIFT)[end], 1)
        degrees.append(counts)
    dense, names = _rename(on_host(order).astype("int64"), holes, batch.new, vertex_map, ids)
    return _Edit(delete, insert, dense.take(source), degrees[0], degrees[1], names)


def _rename(order: Array, holes: Array, new_ids: Any, vertex_map: VertexMap, ids: Ids) -> tuple[Array, VertexMap]:
    """Return the new dense id of each old id and each new vertex, and the map of the caller's ids."""
    names = vertex_map.external(np.arange(len(order)))
    mask = np.ones(len(order), bool)
    mask[order.take(holes)] = False
    names = _select(names, mask, ids)
    if ids == "int":
        insertions = names.searchsorted(new_ids)
    else:
        places = range(len(names))
        bisections = (bisect_left(places, name.as_py(), key=lambda place: names[place].as_py()) for name in new_ids)
        insertions = np.fromiter(bisections, "int64", len(new_ids))
    new_places = insertions + np.arange(len(new_ids))  # positions of new ids among all
    old_places = np.arange(len(names)) + insertions.searchsorted(np.arange(len(names)), side="right")
    dense = np.full(len(order), -1, "int64")
    dense[mask] = old_places
    sources = np.empty(len(names) + len(new_ids), "int64")
    sources[old_places], sources[new_places] = np.arange(len(names)), len(names) + np.arange(len(new_ids))
    if ids == "int":
        new_map: VertexMap = SortedMap(np.concatenate([names, new_ids]).take(sources), lazy_backend("cpu"))
    else:
        import pyarrow as pa

        new_map = TextMap(
            pa.concat_arrays([pa.array(name, pa.large_string()) for name in (names, new_ids)]).take(sources),
            lazy_backend("cpu"),
        )
    return np.concatenate([dense.take(order), new_places]), new_map


class _Size(NamedTuple):
    """Sizes for the plan of the new graph: vertices, Σ in(v)·out(v), edges, and the growth of each block."""

    vertices: int
    wedges: int
    edges: int
    more: Array


def _sizes(edit: _Edit, parts: int) -> _Size:
    growth = np.zeros((parts, parts), "int64")
    for keys, sign in ((edit.delete, -1), (edit.insert, 1)):
        high, low = unpack(keys, SHIFT)
        np.add.at(growth, (high % parts, low % parts), sign)
    edges = int(edit.out_degree.sum())
    return _Size(len(edit.order), wedges_of(edit.in_degree, edit.out_degree), edges, growth)


def _vector(edit: _Edit, name: str, backend: str) -> Array:
    return get_backend(backend).array.asarray(getattr(edit, name).astype("int32"))


def _prepared(graph: CountingContext, edit: Any, size: _Size, counts: _Counts) -> Prepared:
    """Make the facts that the pipeline would have of the new graph."""
    executor, prepared, plan, backend = graph.executor, graph.prepared, graph.plan, graph.options.chosen_backend
    check_size(size.vertices)
    block_edges = int((prepared.sizes.edges + size.more).sum())
    if not size.edges == block_edges == plan.edges + counts.added - counts.removed:
        raise CountError(
            f"the new degrees are those of {plural(size.edges, 'edge')}, the new blocks have {block_edges:,}, but "
            f"{plan.edges:,} + {counts.added:,} - {counts.removed:,} are expected: edges were lost or repeated; report "
            "this with `dasktc info`"
        )
    layout, shift = _layout(prepared), shift_of(size.vertices)
    axis = Axis(size.vertices, layout.rows.parts)
    layout = Layout(axis, (axis,), Shape(size.vertices, shift, layout.graph.ordered))
    partition = GridPartition(layout, Sizes(prepared.sizes.edges + size.more, *layout.sizes), size.wedges)
    starts = (0, size.vertices)
    order, out_degree, in_degree = (
        Sharded(starts, [executor.submit("update", _vector, edit, name, backend)])
        for name in ("order", "out_degree", "in_degree")
    )
    base_plan = replace(plan, vertices=max(size.vertices, plan.parts), edges=size.edges)  # keeps the grid
    revision = replace(
        prepared,
        graph=Oriented(Handles(), order, out_degree, in_degree, size.wedges, size.edges),
        partition=partition,
        plan=base_plan,
        numbered=executor.submit("update", attrgetter("names"), edit),
        source=replace(prepared.source, name=f"{prepared.source.name}, updated", triangles=None, size=None),
    )
    revision = replace(revision, half_weight=half_weight_of(executor, revision.graph))
    new_plan = plan_again(executor, revision, graph.options)
    return replace(revision, plan=replace(new_plan, vertices=size.vertices, choice=plan.choice))


def _rebuild(
    block: OrientedCSR, edit: _Edit, place: tuple[int, int], layout: Layout, backend: str, edges: int
) -> OrientedCSR:
    """Write a new block without some edges and with others; the old block is read once."""
    xp, parts, rows = get_backend(backend).array, layout.rows.parts, layout.rows.sizes[place[0]]
    _, row, column = _in_block(edit.delete, place, parts)
    position, is_hit = _positions(block.offsets, block.columns, row, column, backend)
    drop = xp.zeros(block.edges, dtype=bool)
    drop[position] = True
    columns = block.columns[~drop] if is_hit.all() else block.columns  # refused below
    lengths = np.zeros(rows, "int64")
    old_lengths = np.diff(on_host(block.offsets))[:rows]
    lengths[: len(old_lengths)] = old_lengths
    np.subtract.at(lengths, row[row < rows], 1)
    offsets = xp.asarray(np.concatenate([[0], np.cumsum(lengths)]))
    _, row, column = _in_block(edit.insert, place, parts)
    position, _ = _positions(offsets, columns, row, column, backend)
    is_new = xp.zeros(len(columns) + len(row), dtype=bool)
    is_new[position + xp.arange(len(row), dtype="int64")] = True
    new_columns = xp.empty(len(is_new), dtype="int32")
    new_columns[is_new] = xp.asarray(column.astype("int32"))
    new_columns[~is_new] = columns
    np.add.at(lengths, row, 1)
    offsets = xp.asarray(np.concatenate([[0], np.cumsum(lengths)]))
    firsts = layout.rows.firsts[place[0]], layout.numbering(place[1])[0]
    new_block = OrientedCSR(offsets, new_columns, layout.rows.stride, *firsts, layout.graph.ordered, place)
    check_edges(new_block, edges)
    return new_block
