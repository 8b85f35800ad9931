"""The vertices of an updated graph: their ids, order and degrees, changed shard by shard.

A task has one shard of a vector, and arrays as long as a batch of edges with the neighbourhoods of their ends; a whole
vector is a single shard. Shards whose lengths have become too different are cut evenly again.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.answers.frames import id_shards
from dasktc.counting.context import CountingContext
from dasktc.executors.base import CPU, Executor, starmap
from dasktc.options import Ids
from dasktc.pipeline.planes import choose
from dasktc.pipeline.planes.block_ids import cuts_at_shards
from dasktc.pipeline.planes.vectors import Sharded, gather_entries, vectors_on_backend, vectors_on_host
from dasktc.pipeline.stages.id_maps import map_of
from dasktc.pipeline.stages.orient import wedges_of
from dasktc.pipeline.stages.row_ids import places_among
from dasktc.pipeline.stages.shards import even

__all__ = ["Entries", "Revision", "VertexEdit", "Vertices", "ascending", "concatenated", "renumbered"]

Array = Any
STAGE = "update"
UNEVEN = 2
"""Length of a shard, relative to the mean, from which a vector is cut anew."""


class Entries(NamedTuple):
    """Some entries of a vector: ascending distinct indices, and a value for each."""

    ids: Array
    values: Array


class VertexEdit(NamedTuple):
    """The changes of the vertices; ids are those of the new blocks unless said otherwise."""

    head: int
    """Vertices with smaller ids in the old blocks keep these, unless they leave."""
    out_degree: Entries
    in_degree: Entries
    """Differences of degrees."""
    order: Entries
    """New dense ids of the vertices whose ids in the blocks are new."""
    removed: Array
    """Old dense ids of the vertices that leave, ascending."""
    new: Any
    """The caller's ids of new vertices, ascending: int64, or an Arrow array of text."""
    places: Array
    """The old dense id before which each of them is inserted."""


class Revision(NamedTuple):
    """The vertices of the new graph."""

    order: Sharded
    out_degree: Sharded
    in_degree: Sharded
    names: Any
    """Handle of a VertexMap, or Sharded."""
    wedges: int
    edges: int
    """Σ in(v)·out(v), and Σ out(v)."""
    numbering: str
    """How the vertices are kept, for the plan."""


@dataclass(frozen=True, eq=False)
class Vertices:
    """The vertices of a graph, in shards on the host."""

    graph: CountingContext
    executor: Executor
    """For work on the host."""
    ids: Ids
    names: Sharded
    """The caller's ids by dense id."""
    order: Sharded
    out_degree: Sharded
    in_degree: Sharded
    """By the ids of the blocks."""

    @classmethod
    def of(cls, graph: CountingContext) -> Vertices:
        """The vertices of a graph."""
        oriented, names = graph.prepared.graph, id_shards(graph)
        vectors = oriented.order, oriented.out_degree, oriented.in_degree
        if graph.plan.shards == 1:
            executor, copies = vectors_on_host(graph.executor, STAGE, *vectors)
            names = Sharded(names.starts, [executor.submit(STAGE, _all_ids, names.whole)])
        else:
            executor, [names, *copies] = vectors_on_host(graph.executor, STAGE, names, *vectors)
        return cls(graph, executor, graph.prepared.source.ids, names, *copies)

    @property
    def size(self) -> int:
        """Number of vertices."""
        return self.order.size

    def dense_ids(self, ids: Any) -> list[Any]:
        """Look up a list of ascending ids of the caller, given by its handle.

        Returns
        -------
        list of handles of arrays
            In parts: the dense id of each, or the complement of that before which it would be inserted.
        """
        executor, names = self.executor, self.names
        shards, starts, cut = cuts_at_shards(executor, STAGE, names, self.ids)
        lists = executor.transpose(STAGE, executor.map(STAGE, cut, [ids], starts), len(shards))
        pairs = zip(shards, lists, strict=True)
        calls = [(names.parts[shard], names.starts[shard], values) for shard, (values,) in pairs]
        return starmap(executor, STAGE, _dense_ids, calls)

    def block_ids(self, dense: Any) -> list[Any]:
        """Find the ids of the blocks of ascending dense ids, given by their handle.

        Returns
        -------
        list of handles of lists
            For each shard positions among the dense ids, and the ids of the blocks of these.
        """
        return self.order.map(self.executor, STAGE, _block_ids, dense)

    def entries(self, vector: Sharded, ids: Any) -> list[Any]:
        """Handles of the entries of a vector, in parts, by the handle of ascending indices."""
        (parts,) = gather_entries(self.executor, STAGE, vector, [ids])
        return parts

    def revised(self, edit: Any, head: int, size: int) -> Revision:
        """Change the vertices by the handle of a `VertexEdit`; the new graph has `size` of them."""
        executor, plan = self.executor, self.graph.plan
        starts = (*(min(start, head) for start in self.order.starts[:-1]), size)
        spans = list(pairwise(starts))
        order = self._edited(self.order, spans, _new_order, edit)
        outward = self._edited(self.out_degree, spans, _new_degrees, edit, "out_degree")
        inward = self._edited(self.in_degree, spans, _new_degrees, edit, "in_degree")
        sums = executor.gather(
            [executor.submit(STAGE, _sums, *pair) for pair in zip(outward.parts, inward.parts, strict=True)]
        )
        wedges, edges = (sum(values) for values in zip(*sums, strict=True))
        last = len(self.names.parts) - 1
        parts = [
            executor.submit(STAGE, _new_names, part, first, number == last, edit)
            for number, (part, first) in enumerate(zip(self.names.parts, self.names.starts[:-1], strict=True))
        ]
        # Whole vectors stay whole; shards are balanced anew.
        names: Any
        if plan.shards == 1:
            names, numbering = executor.submit(STAGE, map_of, parts, self.ids, CPU), plan.numbering
        else:
            names, count, numbering = self._in_shards(parts, size)
            names, order, outward, inward = (
                self._balanced(vector, count) for vector in (names, order, outward, inward)
            )
            if self.ids == "int":
                (names,) = vectors_on_backend(self.graph.executor, STAGE, names)
        order, outward, inward = vectors_on_backend(self.graph.executor, STAGE, order, outward, inward)
        return Revision(order, outward, inward, names, wedges, edges, numbering)

    def _edited(self, vector: Sharded, spans: list[tuple[int, int]], function: Any, *shared: Any) -> Sharded:
        shards = zip(vector.parts, vector.starts[:-1], spans, strict=True)
        parts = starmap(self.executor, STAGE, function, [(*shard, *shared) for shard in shards])
        return Sharded((*(first for first, _ in spans), spans[-1][1]), parts)

    def _in_shards(self, parts: list[Any], size: int) -> tuple[Sharded, int, str]:
        """The caller's ids of the new graph; the number of shards that its vectors need; and what the plan says.

        InputError: so many vertices do not fit in shards.
        """
        executor, plan = self.executor, self.graph.plan
        sizes, nbytes = zip(*executor.gather(executor.map(STAGE, _size, list(parts))), strict=True)
        budget = choose(self.graph.executor, self.graph.options).vertex_budget(self.ids)
        if self.ids == "text":
            budget = budget.for_texts(size, sum(nbytes))
        budget.check(size, plan.partition)
        names, count = Sharded(tuple(accumulate(sizes, initial=0)), parts), budget.shards(size)
        return names, max(plan.shards, count), plan.numbering if count <= plan.shards else budget.why(size)

    def _balanced(self, vector: Sharded, count: int) -> Sharded:
        """Cut a vector evenly into shards if it has another number of them, or one that is far too long."""
        largest = max(end - first for first, end in pairwise(vector.starts))
        if len(vector.parts) == count and largest * count <= UNEVEN * max(count, vector.size):
            return vector
        executor, starts = self.executor, even(vector.size, count)
        indices = starmap(executor, STAGE, np.arange, list(pairwise(starts)))
        entries = gather_entries(executor, STAGE, vector, indices)
        return Sharded(starts, executor.map(STAGE, concatenated, entries))


def _all_ids(vertices: Any) -> Any:
    return vertices.external(np.arange(vertices.size))


def _size(ids: Any) -> tuple[int, int]:
    return len(ids), int(ids.nbytes)


def ascending(parts: list[Array]) -> list[Array]:
    """The entries of an array that comes in parts, ascending, and the position that each had."""
    values = np.concatenate(parts)
    places = values.argsort()
    return [values.take(places), places]


def concatenated(parts: list[Any]) -> Any:
    """Concatenate arrays, or Arrow arrays of text."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pyarrow as pa

    return pa.concat_arrays([pa.array(part, pa.large_string()) for part in parts])


# one shard


def _dense_ids(shard_ids: Any, first: int, ids: Any) -> Array:
    places = places_among(shard_ids, ids)
    missing = np.flatnonzero(places < 0)
    if isinstance(shard_ids, np.ndarray):
        insertions = shard_ids.searchsorted(ids[missing])
    else:
        numbers = range(len(shard_ids))
        bisections = (
            bisect_left(numbers, name.as_py(), key=lambda number: shard_ids[number].as_py())
            for name in ids.take(missing)
        )
        insertions = np.fromiter(bisections, "int64", len(missing))
    places += first
    places[missing] = ~(insertions + first)
    return places


def _block_ids(order: Array, first: int, dense: Array) -> list[Array]:
    values = dense.astype(order.dtype)
    places = values.searchsorted(order).clip(max=max(0, len(values) - 1))
    positions = np.flatnonzero(values.take(places) == order) if len(values) else np.zeros(0, "int64")
    return [places.take(positions), positions + first]


def renumbered(dense: Array, removed: Array, places: Array) -> Array:
    """The new dense ids of vertices that stay, from their old ones: names are removed from and inserted into a list.

    Parameters
    ----------
    dense : array of integers
    removed : array
        Old dense ids of names that are removed.
    places : array
        The old dense id before which each new name is inserted.
    """
    borders = np.concatenate([removed + 1, places]).astype(dense.dtype)
    if not len(borders):
        return dense
    positions = borders.argsort(kind="stable")
    steps = np.repeat([-1, 1], [len(removed), len(places)]).take(positions)
    shifts = np.concatenate([[0], np.cumsum(steps)]).astype(dense.dtype)
    return dense + shifts.take(borders.take(positions).searchsorted(dense, side="right"))


def _new_order(part: Array, first: int, span: tuple[int, int], edit: VertexEdit) -> Array:
    order = np.zeros(span[1] - span[0], part.dtype)
    head = renumbered(part[: max(0, edit.head - first)], edit.removed, edit.places)
    order[: len(head)] = head
    start, end = edit.order.ids.searchsorted(span)
    order[edit.order.ids[start:end] - span[0]] = edit.order.values[start:end]
    return order


def _new_degrees(part: Array, first: int, span: tuple[int, int], edit: VertexEdit, name: str) -> Array:
    degrees, changes = np.zeros(span[1] - span[0], part.dtype), getattr(edit, name)
    head = part[: max(0, edit.head - first)]
    degrees[: len(head)] = head
    start, end = changes.ids.searchsorted(span)
    degrees[changes.ids[start:end] - span[0]] += changes.values[start:end].astype(part.dtype)
    return degrees


def _sums(outward: Array, inward: Array) -> tuple[int, int]:
    return wedges_of(inward, outward), int(outward.sum(dtype="int64"))


def _new_names(part: Any, first: int, is_last: bool, edit: VertexEdit) -> Any:
    """Remove names from a shard, and insert new ones; those after all names are the last shard's."""
    size = len(part)
    mask = np.ones(size, bool)
    start, end = edit.removed.searchsorted([first, first + size])
    mask[edit.removed[start:end] - first] = False
    start, end = edit.places.searchsorted([first, first + size])
    end = len(edit.places) if is_last else end
    old_places, new_names = np.flatnonzero(mask), edit.new[start:end]
    insertions = old_places.searchsorted(edit.places[start:end] - first)
    sources = np.insert(old_places, insertions, size + np.arange(end - start))
    return concatenated([part, new_names]).take(sources)
