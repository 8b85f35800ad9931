"""Adds edges to and removes edges from a prepared graph: the exact differences, and the blocks of a new graph.

Vertices keep their ids in the blocks, which were their ranks by degree when the graph was prepared, because any vertex
order gives an orientation in which each triangle is found once. New vertices get the next ids after the last. Vertices
that lose their last edge leave the graph: the vertices with the largest ids take over their ids.

A lost or gained triangle is attributed to the first of its changed edges, in ascending order. The neighbours of a
changed edge's end that has fewer, its pivot, are looked up among those of the other end: Σ min(d(u), d(v)) lookups over
the changed edges (u, v). One pass over the columns of each block collects the neighbours of pivots. Each block then
looks up the edges opposite to pivots that belong in it (`backends.cpu.changes`), and a second pass writes the new
block. Ids, order and degrees of vertices are changed shard by shard (`questions.update_vertices`). Edges and
Σ in(v)·out(v) of the new graph follow from the changed degrees; its blocks, and every count of it, are checked against
them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from dasktc.answers.frames import column
from dasktc.backends import get_backend
from dasktc.backends.csr import OrientedCSR, aligned, on_host
from dasktc.backends.vertex_maps import check_size
from dasktc.counting.context import CountingContext
from dasktc.errors import CountError, InputError
from dasktc.executors.base import for_backend
from dasktc.io.columns import check_lengths, places_of
from dasktc.io.memory.kinds import columns_of_pairs
from dasktc.io.source import ReadOptions, Source
from dasktc.options import Ids, format_size, refuse_beyond
from dasktc.pipeline.build_blocks import GridPartition
from dasktc.pipeline.planes import Handles, Oriented, choose
from dasktc.pipeline.prepare import Prepared, half_weight_of, plan_again
from dasktc.pipeline.stages.blocks import check_edges
from dasktc.pipeline.stages.edge_keys import pack, ranked, shift_of, unpack
from dasktc.pipeline.stages.row_ids import places_among
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.schemes import BY_REMAINDER, Sizes
from dasktc.questions.update_vertices import (
    Entries,
    Revision,
    VertexEdit,
    Vertices,
    ascending,
    concatenated,
    renumbered,
)
from dasktc.registry import ORDERS
from dasktc.wording import advice, option, plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Change", "update"]

Array = Any
"""Of int64, unless said otherwise."""
GraphLike = TypeVar("GraphLike")
SHIFT = 31
"""Bits of the smaller id in the keys of this module: ids, including new ones, stay below 2^31."""


VERTEX_BYTES = 60
"""Bytes for each vertex of a shard while its ids, order and degrees are changed."""


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


class _Rows(NamedTuple):
    """The rows of a batch."""

    ids: Any
    """The caller's ids that occur, ascending: int64, or an Arrow array of text."""
    remove: Array
    add: Array
    """Positions of both ends among these, shape (2, any)."""


class _Batch(NamedTuple):
    """Edges of a batch: ascending distinct keys over the ids of the old blocks, with new vertices after the last."""

    add: Array
    remove: Array
    ids: Array
    dense: Array
    """Vertices of the old graph that occur: their ids in the blocks, ascending, and the dense id of each."""
    new: Any
    """Ids of new vertices, ascending."""
    places: Array
    """The dense id before which each of these is inserted."""
    repeated: int
    """Number of added rows that repeat another one."""


class _Changed(NamedTuple):
    """The changed edges."""

    edges: Array
    """Ascending keys."""
    signs: Array
    """1 for an edge that is added, -1 for one that is removed; and a 0 after the last."""
    pivots: Array
    targets: Array
    """The end of each with fewer neighbours, and the other one."""
    neighbours: Array
    """Ascending keys `pivot, neighbour` in the old graph with the added edges."""


class _Holes(NamedTuple):
    """The vertices that lose their last edge."""

    head: int
    """Number of old vertices that keep an edge."""
    ids: Array
    dense: Array
    """Ids in the old blocks, ascending, and the dense id of each."""


class _Edit(NamedTuple):
    """The changes of the blocks, and of the vertices."""

    delete: Array
    insert: Array
    """Ascending keys over the ids of the old blocks, and of the new blocks."""
    vertices: VertexEdit


def update(graph: CountingContext, add: Any, remove: Any) -> Change[CountingContext]:
    """Remove edges, then add edges; see `Graph.update`."""
    _refuse(graph)
    executor, prepared, ids = graph.executor, graph.prepared, graph.prepared.source.ids
    parts, backend, chunk = graph.plan.parts, graph.options.chosen_backend, graph.tuning.update_chunk
    submit, labels = partial(executor.submit, "update"), prepared.source.labels
    if labels is None:
        sources = [_open_rows(rows, ids) for rows in (remove, add)]
    else:
        removed_pairs, added_pairs = _pairs_of_labels(remove, "remove"), _pairs_of_labels(add, "add")
        labels = labels.extended(chain.from_iterable(added_pairs))
        ends = [labels.ids(chain.from_iterable(pairs)).reshape(-1, 2) for pairs in (removed_pairs, added_pairs)]
        # An edge with an unknown end is in no graph.
        sources = [_open_rows(pairs[(pairs >= 0).all(axis=1)], ids) for pairs in ends]
    host = choose(for_backend(executor, "cpu"), graph.options)
    removals, additions = map(host.read, sources)
    # Reduce the batch to the edges that change.
    vertices = Vertices.of(graph)
    rows_of_batch = submit(_rows_of_batch, removals.frames.take(), additions.frames.take(), ids)
    dense = vertices.dense_ids(submit(attrgetter("ids"), rows_of_batch))
    block_ids = vertices.block_ids(submit(_known_ids, list(dense)))
    batch = submit(_numbered, rows_of_batch, dense, block_ids, vertices.size, ids)
    present_keys = [submit(_present_keys, block, batch, place, parts, backend) for place, block in graph.blocks.items()]
    batch = submit(_effective, batch, present_keys)
    batch_ids = submit(attrgetter("ids"), batch)
    halves = [vertices.entries(vector, batch_ids) for vector in (vertices.out_degree, vertices.in_degree)]
    degrees = submit(_degrees, batch, *halves, vertices.size)
    # Search the triangles with a changed edge, each in the block that has the edge opposite to its pivot.
    changed = submit(_changed_edges, batch, degrees)
    neighbours = [submit(_neighbours, block, changed, backend, chunk) for block in graph.blocks.values()]
    changed = submit(_with_neighbours, changed, neighbours)
    changes = [submit(_changes, block, changed, backend) for block in graph.blocks.values()]
    difference = submit(_difference, batch, changes)
    # Collect the rows whose ids change.
    holes = submit(_holes, batch, degrees, vertices.size)
    tails = [submit(_rows_from, block, holes, backend) for block in graph.blocks.values()]
    mover_dense_ids = vertices.entries(vertices.order, submit(_movers, holes, vertices.size))
    edit = submit(_make_edit, batch, holes, tails, mover_dense_ids, vertices.size)
    triangles, series, counts = _change_of_vertices(vertices, batch, difference)
    ((head, size, growth),) = executor.gather([submit(_sizes, edit, parts)])
    new_vertices = vertices.revised(submit(attrgetter("vertices"), edit), head, size)
    revision = _prepared(graph, new_vertices, growth, counts)
    revision = replace(revision, source=replace(revision.source, labels=labels))
    if labels is not None:
        labels.name_index(series)
    # Write the new blocks.
    layout, edges = _layout(revision), revision.partition.sizes.edges
    make = graph.answers.submit_replicated if graph.plan.scheme.replicated else executor.submit
    blocks = {
        place: make("blocks", _rebuild, block, edit, place, layout, backend, int(edges[place]))
        for place, block in graph.blocks.items()
    }
    executor.wait(blocks.values())
    loops = additions.loops
    revision = replace(revision, rows=new_vertices.edges + loops + counts.repeated, loops=loops)
    new_graph = replace(graph, prepared=revision, blocks=blocks)
    return Change(triangles, series, counts.added, counts.removed, new_graph)


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
    vertices = max(end - first for first, end in pairwise(graph.prepared.graph.order.starts))
    nbytes = 3 * largest + VERTEX_BYTES * vertices
    fact = f"an update needs {format_size(nbytes)} at n = {plan.parts}"
    remedy = f"prepare with {advice(parts=2 * plan.parts)}, or raise {advice('memory')}"
    refuse_beyond(memory, nbytes, fact, f"it holds a block twice; {remedy}", "of one call")


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


def _pairs_of_labels(rows: Any, name: str) -> list[tuple[Any, Any]]:
    first, second = columns_of_pairs(() if rows is None else rows, name, are_labels=True)
    check_lengths(len(first), len(second), places_of((0, 1), f"pair for {name}"))
    return list(zip(first, second, strict=True))


def _rows_of_batch(removals: list[Any], additions: list[Any], ids: Ids) -> _Rows:
    ends = [*_ends(removals, ids), *_ends(additions, ids)]
    distinct_ids = _distinct_ids(ends, ids)
    places = [places_among(distinct_ids, end) for end in ends]
    return _Rows(distinct_ids, np.stack(places[:2]), np.stack(places[2:]))


def _known_ids(parts: list[Array]) -> Array:
    """The dense ids of the ids that the graph has, ascending."""
    dense = np.concatenate(parts)
    return dense[dense >= 0]


def _numbered(rows: _Rows, dense_parts: list[Array], block_ids: list[list[Array]], old_count: int, ids: Ids) -> _Batch:
    """Make the keys of a batch, without edges to remove at vertices that the graph does not have."""
    dense = np.concatenate(dense_parts)
    is_known = dense >= 0
    known_ids = np.empty(int(is_known.sum()), "int64")
    for places, shard_ids in block_ids:
        known_ids[places] = shard_ids
    number = np.full(len(dense), -1, "int64")
    number[is_known] = known_ids
    u, v = number.take(rows.remove)
    mask = (u >= 0) & (v >= 0)
    remove = get_backend("cpu").distinct(_key(u[mask], v[mask]))
    # Vertices that the graph does not have get the next ids after its last.
    is_new = np.zeros(len(dense), bool)
    is_new[rows.add] = True
    is_new &= ~is_known
    new_count = int(is_new.sum())
    check_size(old_count + new_count)
    number[is_new] = np.arange(old_count, old_count + new_count)
    keys = _key(*number.take(rows.add))
    add = get_backend("cpu").distinct(keys)
    positions = known_ids.argsort()
    old_ids, old_dense = known_ids.take(positions), dense[is_known].take(positions)
    new_ids = rows.ids[is_new] if ids == "int" else rows.ids.filter(is_new)
    return _Batch(add, remove, old_ids, old_dense, new_ids, ~dense[is_new], len(keys) - len(add))


def _key(a: Array, b: Array) -> Array:
    return pack(np.maximum(a, b), np.minimum(a, b), SHIFT)


def _without(keys: Array, others: Array) -> Array:
    """The keys that are not among ascending others."""
    if not len(others):
        return keys
    places = np.minimum(others.searchsorted(keys), len(others) - 1)
    return keys[others.take(places) != keys]


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


def _distinct_ids(columns: list[Any], ids: Ids) -> Any:
    if ids == "int":
        return get_backend("cpu").distinct(np.concatenate(columns))
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
    present_keys, removals = (np.sort(np.concatenate(keys)) for keys in zip(*key_pairs, strict=True))
    return batch._replace(add=_without(batch.add, present_keys), remove=_without(removals, batch.add))


# the differences


def _degrees(batch: _Batch, outward: list[Array], inward: list[Array], old_count: int) -> Entries:
    """Degrees of the vertices that occur in a batch, in the old graph with the added edges."""
    ids = np.concatenate([batch.ids, np.arange(old_count, old_count + len(batch.new))])
    degrees = np.zeros(len(ids), "int64")
    degrees[: len(batch.ids)] = np.concatenate(outward).astype("int64") + np.concatenate(inward)
    for ends in unpack(batch.add, SHIFT):
        np.add.at(degrees, ids.searchsorted(ends), 1)
    return Entries(ids, degrees)


def _changed_edges(batch: _Batch, degrees: Entries) -> _Changed:
    """Choose the pivots of the changed edges."""
    keys = np.concatenate([batch.remove, batch.add])
    order = keys.argsort(kind="stable")
    signs = np.append(np.where(order < len(batch.remove), -1, 1), 0)
    edges = keys.take(order)
    high, low = unpack(edges, SHIFT)
    degree, other_degree = (degrees.values.take(degrees.ids.searchsorted(ends)) for ends in (high, low))
    swap = degree > other_degree
    return _Changed(edges, signs, np.where(swap, low, high), np.where(swap, high, low), np.empty(0, "int64"))


def _neighbours(block: OrientedCSR, changed: _Changed, backend: str, chunk: int) -> Array:
    """Return the keys `pivot, neighbour` of a block's edges; an edge of two pivots has two."""
    xp, pivots = get_backend(backend).array, get_backend("cpu").distinct(changed.pivots)
    row, column = (pivots[(pivots - first) % block.stride == 0] for first in (block.row_first, block.column_first))
    rows = (row - block.row_first) // block.stride
    rows = rows[rows < block.rows]
    first, end = (on_host(block.offsets.take(xp.asarray(rows + k))) for k in (0, 1))
    keys = _keys_at(block, xp.asarray(_expand(first, end - first)))
    numbers = (column - block.column_first) // block.stride
    is_pivot = xp.zeros(int(numbers.max(initial=0)) + 2, dtype=bool)
    is_pivot[xp.asarray(numbers)] = True
    places = [xp.empty(0, dtype="int64")]
    for start in range(0, block.edges, chunk):
        columns = block.columns[start : start + chunk]
        places.append(xp.flatnonzero(is_pivot.take(xp.minimum(columns, len(is_pivot) - 1))) + start)
    return np.concatenate([keys, _turned(_keys_at(block, xp.concatenate(places)))])


def _turned(keys: Array) -> Array:
    """Exchange the ends of keys."""
    high, low = unpack(keys, SHIFT)
    return pack(low, high, SHIFT)


def _keys_at(block: OrientedCSR, places: Array) -> Array:
    """Return the keys of the edges at some positions; on the host."""
    row = block.offsets.searchsorted(places, side="right") - 1
    return on_host(pack(block.row_ids(row), block.column_ids(block.columns.take(places)), SHIFT))


class _Counts(NamedTuple):
    """Numbers of added and removed edges, and of rows to add whose edge already existed."""

    added: int
    removed: int
    repeated: int


class _Difference(NamedTuple):
    """The change of the triangles: of the graph, and of each vertex where it is not zero, by ascending id."""

    triangles: int
    vertices: Entries
    counts: _Counts


def _with_neighbours(changed: _Changed, parts: list[Array]) -> _Changed:
    new_edges = changed.edges[changed.signs[:-1] > 0]
    return changed._replace(neighbours=np.sort(np.concatenate([*parts, new_edges, _turned(new_edges)])))


def _changes(block: OrientedCSR, changed: _Changed, backend: str) -> tuple[int, Entries]:
    """Count the change of the triangles whose edge opposite to the pivot belongs in a block; add it up by vertex."""
    from dasktc.backends.cpu.changes import add_changes  # loads Numba: only when needed

    *edges, neighbours = map(aligned, changed)
    vertices = unpack(neighbours, SHIFT)[1]
    ranges = [neighbours.searchsorted(changed.pivots + k << SHIFT) for k in (0, 1)]
    rows = _rows_on_host(block, np.concatenate([changed.targets, vertices]), backend)
    numbering = block.stride, block.row_first, block.column_first
    edge_changes, neighbour_changes = (np.zeros(len(keys), "int64") for keys in (changed.edges, neighbours))
    add_changes(*edges, *ranges, neighbours, SHIFT, *rows, *numbering, edge_changes, neighbour_changes)
    ids = np.concatenate([changed.pivots, changed.targets, vertices])
    values = np.concatenate([edge_changes, edge_changes, neighbour_changes])
    places = np.flatnonzero(values)
    return int(edge_changes.sum()), _sums(ids.take(places), values.take(places))


def _rows_on_host(block: OrientedCSR, ids: Array, backend: str) -> tuple[Array, Array]:
    """Return offsets and columns: those of the block, or, if it is on a device, those of the rows of some ids alone."""
    xp = get_backend(backend).array
    if xp is np:
        return block.offsets, block.columns
    rows = get_backend("cpu").distinct(ids[ids % block.stride == block.row_first] // block.stride)
    rows = rows[rows < block.rows]
    first, end = (on_host(block.offsets.take(xp.asarray(rows + k))) for k in (0, 1))
    offsets = np.zeros(block.rows + 1, "int64")
    offsets[rows + 1] = end - first
    return np.cumsum(offsets), on_host(block.columns.take(xp.asarray(_expand(first, end - first))))


def _sums(ids: Array, values: Array) -> Entries:
    """Add up the values of equal ids, which are overwritten."""
    distinct_ids, places = ranked(ids, 1 << SHIFT, get_backend("cpu"))
    sums = np.zeros(len(distinct_ids), "int64")
    np.add.at(sums, places, values)
    return Entries(distinct_ids, sums)


def _difference(batch: _Batch, changes: list[tuple[int, Entries]]) -> _Difference:
    """Add up the changes in all blocks."""
    triangles, parts = zip(*changes, strict=True)
    ids, sums = _sums(*map(np.concatenate, zip(*parts, strict=True)))
    places = np.flatnonzero(sums)
    counts = _Counts(len(batch.add), len(batch.remove), batch.repeated)
    return _Difference(sum(triangles), Entries(ids.take(places), sums.take(places)), counts)


def _change_of_vertices(vertices: Vertices, batch: Any, difference: Any) -> tuple[int, pd.Series[int], _Counts]:
    """The change of the triangles, with that of each vertex by the caller's id."""
    submit = partial(vertices.executor.submit, "update")
    dense = vertices.entries(vertices.order, submit(_vertices_before, difference, vertices.size))
    (sorted_dense,), (places,) = vertices.executor.transpose("update", [submit(ascending, dense)], 2)
    names = vertices.entries(vertices.names, sorted_dense)
    (result,) = vertices.executor.gather(
        [submit(_series, difference, batch, places, names, vertices.size, vertices.ids)]
    )
    triangles, series, counts = result
    return triangles, series, counts


def _vertices_before(difference: _Difference, old_count: int) -> Array:
    vertices = difference.vertices.ids
    return vertices[vertices < old_count]


def _series(
    difference: _Difference, batch: _Batch, places: Array, names: list[Any], old_count: int, ids: Ids
) -> tuple[int, pd.Series[int], _Counts]:
    import pandas as pd

    changed_vertices, changes = difference.vertices
    old_changes, new_changes = np.split(changes, [len(places)])
    new_names = batch.new.take(changed_vertices[len(places) :] - old_count)
    all_ids, permutation = _sorted_ids(concatenated([*names, new_names]), ids)
    values = np.concatenate([old_changes.take(places), new_changes]).take(permutation)
    series = pd.DataFrame({"vertex": column(all_ids), "triangles": values}).set_index("vertex")["triangles"]
    return difference.triangles, series, difference.counts


def _sorted_ids(names: Any, ids: Ids) -> tuple[Any, Array]:
    """Return ids in ascending order, and the permutation that sorts them."""
    if ids == "int":
        permutation = names.argsort()
    else:
        import pyarrow.compute as pc

        permutation = pc.array_sort_indices(names).to_numpy()
    return names.take(permutation), permutation


def _expand(first: Array, sizes: Array) -> Array:
    """Return the positions of several ranges, concatenated."""
    offsets = np.cumsum(sizes) - sizes
    positions: Array = np.repeat(first - offsets, sizes) + np.arange(int(sizes.sum()))
    return positions


# the new graph


def _layout(prepared: Prepared) -> Layout:
    return cast(GridPartition, prepared.partition).layout  # vertices are assigned by remainder


def _holes(batch: _Batch, degrees: Entries, old_count: int) -> _Holes:
    """Find the vertices that lose their last edge, from the degrees with the added edges."""
    degree = degrees.values[: len(batch.ids)].copy()
    for ends in unpack(batch.remove, SHIFT):
        np.subtract.at(degree, batch.ids.searchsorted(ends), 1)
    mask = degree == 0
    return _Holes(old_count - int(mask.sum()), batch.ids[mask], batch.dense[mask])


def _movers(holes: _Holes, old_count: int) -> Array:
    """The vertices with the largest ids, which take over the ids of those that leave."""
    return np.setdiff1d(np.arange(holes.head, old_count), holes.ids)


def _rows_from(block: OrientedCSR, holes: _Holes, backend: str) -> Array:
    """Return the keys of a block's edges from the first id that may move."""
    row = max(0, -(-(holes.head - block.row_first) // block.stride))
    xp = get_backend(backend).array
    start = int(block.offsets[min(row, block.rows)])
    return _keys_at(block, xp.arange(start, block.edges, dtype="int64"))


def _make_edit(batch: _Batch, holes: _Holes, tails: list[Array], mover_dense_ids: list[Array], old_count: int) -> _Edit:
    """Compute the changes of the blocks and of the vertices."""
    head, new_count, movers = holes.head, len(batch.new), _movers(holes, old_count)
    free_ids = holes.ids[holes.ids < head]

    def new_ids(ends: Array) -> Array:
        ids = np.where(ends < old_count, ends, ends - old_count + head)
        mask = (ends >= head) & (ends < old_count)
        ids[mask] = free_ids.take(movers.searchsorted(ends[mask]))
        return ids

    tail = np.concatenate(tails)
    new_tail = np.concatenate([_without(tail, batch.remove), batch.add])
    insert = np.sort(_key(*map(new_ids, unpack(new_tail, SHIFT))))
    delete = get_backend("cpu").distinct(np.concatenate([tail, batch.remove]))
    removed, places = np.sort(holes.dense), batch.places
    new_dense = places - removed.searchsorted(places) + np.arange(new_count)
    order = Entries(
        np.concatenate([free_ids, np.arange(head, head + new_count)]),
        np.concatenate([renumbered(np.concatenate(mover_dense_ids), removed, places), new_dense]),
    )
    out_degree, in_degree = (_degree_changes(delete, insert, head, end) for end in (0, 1))
    return _Edit(delete, insert, VertexEdit(head, out_degree, in_degree, order, removed, batch.new, places))


def _degree_changes(delete: Array, insert: Array, head: int, end: int) -> Entries:
    """Differences of the degrees of one end of the edges; vertices from `head` on begin anew."""
    old, new = (unpack(keys, SHIFT)[end] for keys in (delete, insert))
    old = old[old < head]
    return _sums(np.concatenate([old, new]), np.repeat([-1, 1], [len(old), len(new)]))


def _sizes(edit: _Edit, parts: int) -> tuple[int, int, Array]:
    """Return the number of old vertices that keep an edge, that of the new graph's, and the growth of each block."""
    growth = np.zeros((parts, parts), "int64")
    for keys, sign in ((edit.delete, -1), (edit.insert, 1)):
        high, low = unpack(keys, SHIFT)
        np.add.at(growth, (high % parts, low % parts), sign)
    head = edit.vertices.head
    return head, head + len(edit.vertices.new), growth


def _prepared(graph: CountingContext, new_vertices: Revision, growth: Array, counts: _Counts) -> Prepared:
    """Make the facts that the pipeline would have of the new graph."""
    prepared, plan, vertices = graph.prepared, graph.plan, new_vertices.order.size
    block_edges = int((prepared.sizes.edges + growth).sum())
    if not new_vertices.edges == block_edges == plan.edges + counts.added - counts.removed:
        raise CountError(
            f"the new degrees are those of {plural(new_vertices.edges, 'edge')}, the new blocks have {block_edges:,}, "
            f"but {plan.edges:,} + {counts.added:,} - {counts.removed:,} are expected: edges were lost or repeated; "
            "report this with `dasktc info`"
        )
    layout, shift = _layout(prepared), shift_of(vertices)
    axis = Axis(vertices, layout.rows.parts)
    layout = Layout(axis, (axis,), Shape(vertices, shift, layout.graph.ordered))
    base_plan = replace(  # keeps the grid
        plan,
        vertices=max(vertices, plan.parts),
        edges=new_vertices.edges,
        shards=len(new_vertices.order.parts),
        numbering=new_vertices.numbering,
    )
    revision = replace(
        prepared,
        graph=Oriented(
            Handles(),
            new_vertices.order,
            new_vertices.out_degree,
            new_vertices.in_degree,
            new_vertices.wedges,
            new_vertices.edges,
        ),
        partition=GridPartition(layout, Sizes(prepared.sizes.edges + growth, *layout.sizes), new_vertices.wedges),
        plan=base_plan,
        numbered=new_vertices.names,
        source=replace(prepared.source, name=f"{prepared.source.name}, updated", triangles=None, size=None),
    )
    revision = replace(revision, half_weight=half_weight_of(graph.executor, revision.graph))
    new_plan = plan_again(graph.executor, revision, graph.options)
    return replace(revision, plan=replace(new_plan, vertices=vertices, choice=plan.choice))


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
    lengths, offsets = np.zeros(rows, "int64"), np.zeros(rows + 1, "int64")
    shared_rows = min(rows, len(block.offsets) - 1)
    lengths[:shared_rows] = np.diff(on_host(block.offsets[: shared_rows + 1]))
    np.subtract.at(lengths, row[row < rows], 1)
    np.cumsum(lengths, out=offsets[1:])
    _, row, column = _in_block(edit.insert, place, parts)
    position, _ = _positions(xp.asarray(offsets), columns, row, column, backend)
    is_new = xp.zeros(len(columns) + len(row), dtype=bool)
    is_new[position + xp.arange(len(row), dtype="int64")] = True
    new_columns = xp.empty(len(is_new), dtype="int32")
    new_columns[is_new] = xp.asarray(column.astype("int32"))
    new_columns[~is_new] = columns
    np.add.at(lengths, row, 1)
    np.cumsum(lengths, out=offsets[1:])
    firsts = layout.rows.firsts[place[0]], layout.numbering(place[1])[0]
    new_block = OrientedCSR(xp.asarray(offsets), new_columns, layout.rows.stride, *firsts, layout.graph.ordered, place)
    check_edges(new_block, edges)
    return new_block
