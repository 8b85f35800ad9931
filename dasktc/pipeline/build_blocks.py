"""Builds CSR blocks on the workers for the schemes that assign rows and columns to blocks by vertex id.

Each block has a contiguous range of keys: an edge from row r to column c of a block of C columns gets the block's
first key + r·C + c. One distributed sort thus brings the edges of each block together, ordered by row and, within a
row, by column. With fewer blocks than workers a block is built in slabs of rows, so that every worker has a share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import OrientedCSR
from dasktc.backends.protocol import Buckets
from dasktc.errors import CountError
from dasktc.executors.base import Executor, Fold
from dasktc.options import Options
from dasktc.pipeline.canonicalize import Canonical, partition_count, sorts_here
from dasktc.pipeline.edge_keys import transform, unpack
from dasktc.pipeline.orient import CUTS, RESIDUES, Oriented, Ranks, SlabsAhead
from dasktc.pipeline.sharded.vectors import Sharded
from dasktc.pipeline.shuffle import (
    Inputs,
    cuts_partitions,
    deal_here,
    redistribute,
    redistribute_cut,
    reduced,
    sample_step,
)
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.placement import NOWHERE, Where
from dasktc.planning.plan import Proxies
from dasktc.planning.schemes import Block, Sizes
from dasktc.wording import plural

__all__ = [
    "Blocks", "GridPartition", "Partition", "build_blocks", "by_ranges", "by_remainder", "check_edges",
    "measure", "slabs_ahead", "stacked",
]  # fmt: skip

Blocks = dict[Block, Any]
"""Handles of OrientedCSR by place (i, j) in the partition's grid."""

Array = Any


class Partition(Protocol):
    """An assignment of the vertices to the blocks of a scheme, with the blocks' sizes; the blocks are not built yet.

    Attributes
    ----------
    sizes : Sizes
        Of the blocks.
    proxies : tuple of Proxies
        One for each part, where the scheme has proxies.
    wedges : int
        Wedges that all counting tasks together must stream.
    shift : int
        Bits of an id in an edge key.
    """

    @property
    def sizes(self) -> Sizes: ...  # noqa: D102

    @property
    def proxies(self) -> tuple[Proxies, ...]: ...  # noqa: D102

    @property
    def wedges(self) -> int: ...  # noqa: D102

    @property
    def shift(self) -> int: ...  # noqa: D102

    def numbering(self, side: int) -> Any:
        """First id and stride of the vertices of a side (`Scheme.sides`), or a handle of their ids."""

    def build(self, executor: Executor, graph: Oriented, where: Where) -> Blocks:
        """Build the blocks, each on the worker that `where` names; the graph's partitions are emptied."""


class GridPartition(NamedTuple):
    """A grid of blocks, each with a contiguous range of keys."""

    layout: Layout
    sizes: Sizes
    wedges: int
    proxies: tuple[Proxies, ...] = ()

    @classmethod
    def measured(cls, executor: Executor, graph: Oriented, layout: Layout) -> GridPartition:
        """Measure the blocks of a layout, without building them."""
        return cls(layout, measure(executor, graph, layout), graph.wedges)

    @property
    def shift(self) -> int:
        """Bits of an id in an edge key."""
        return self.layout.shift

    def numbering(self, side: int) -> tuple[int, int]:
        """First id and stride of the vertices in a row or column of the grid."""
        return self.layout.numbering(side)

    def build(self, executor: Executor, graph: Oriented, where: Where) -> Blocks:
        """Shuffle the oriented edges into the blocks."""
        return build_blocks(executor, graph, self.layout, self.sizes.edges, where)


def by_remainder(executor: Executor, graph: Oriented, parts: int, options: Options, shape: Shape) -> GridPartition:
    """Assign rows and columns to parts by id % n (`planning.schemes.BY_REMAINDER`), and measure the blocks.

    Parameters
    ----------
    executor : Executor
    graph : Oriented
    parts : int
        n.
    options : Options
    shape : Shape
    """
    axis = Axis(shape.vertices, parts)
    return GridPartition.measured(executor, graph, Layout(axis, (axis,), shape))


def by_ranges(executor: Executor, graph: Oriented, parts: int, options: Options, shape: Shape) -> GridPartition:
    """Assign rows and columns to ranges of ids with equal degree sums (`planning.schemes.BY_RANGES`).

    Rows are cut into n ranges by out-degree. Columns are cut into the same n ranges, and into `column_parts` (default:
    n) ranges by in-degree. Parameters as for `by_remainder`.
    """
    rows, columns = (
        Axis(shape.vertices, count, _ranges(executor, degree, count))
        for count, degree in ((parts, graph.out_degree), (options.column_parts or parts, graph.in_degree))
    )
    return GridPartition.measured(executor, graph, Layout(rows, (rows, columns), shape))


def _ranges(executor: Executor, degree: Sharded, parts: int) -> tuple[int, ...]:
    """First ids of `parts` ranges with about equally many edges, followed by the number of vertices."""
    return (*_cuts(executor, "plan", degree, Axis(degree.size, 1), parts)[0], degree.size)


def _cuts(executor: Executor, stage: str, vector: Sharded, axis: Axis, count: int) -> list[list[int]]:
    """Cut each part's share of a vector into `count` ranges of equal sums; return the ranges' first positions.

    Sums run over all shards; each shard counts its positions before every cut, and these counts are added.
    """
    if count == 1:
        return [[0]] * axis.parts
    sums = np.array(executor.gather(vector.map(executor, stage, _sums, axis)), dtype="int64")
    before = (np.cumsum(sums, axis=0) - sums).tolist()
    wanted = [[number * of_part // count for number in range(1, count)] for of_part in sums.sum(axis=0).tolist()]
    places = executor.gather(
        executor.submit(stage, _places_before, part, first, axis, sums_before, wanted, executor.backend)
        for part, first, sums_before in zip(vector.parts, vector.starts, before, strict=False)
    )
    return [[0, *map(sum, zip(*of_part, strict=True))] for of_part in zip(*places, strict=True)]


def _sums(vector: Array, first: int, axis: Axis) -> list[int]:
    return [int(axis.share(vector, part, first).sum()) for part in range(axis.parts)]


def _places_before(
    vector: Array, first: int, axis: Axis, before: list[int], wanted: list[list[int]], backend: Backend
) -> list[list[int]]:
    """For each part and cut, the number of entries whose running sum is below the cut's target sum."""
    xp, places = backend.array, []
    for part in range(axis.parts):
        sums = xp.cumsum(axis.share(vector, part, first), dtype="int64")
        cuts = xp.asarray(np.array(wanted[part], dtype="int64") - before[part])
        places.append(sums.searchsorted(cuts).tolist())
    return places


def measure(executor: Executor, graph: Oriented, layout: Layout) -> Sizes:
    """Measure a layout: edges, rows and columns of every block, from one pass over the keys."""
    if layout.shape == (1, 1):
        return Sizes(np.array([[graph.edges]], dtype="int64"), *layout.sizes)
    parts = layout.residues
    if graph.residues is not None and parts and RESIDUES % parts == 0:
        apart = np.asarray(graph.residues, dtype="int64").reshape(RESIDUES // parts, parts, RESIDUES // parts, parts)
        return Sizes(apart.sum(axis=(0, 2)), *layout.sizes)
    given = graph._replace(partitions=list(graph.partitions)).ranges()
    counted = executor.map("plan", _histogram, given, layout, executor.backend)
    edges = np.array(executor.gather(counted), dtype="int64").sum(axis=0).reshape(layout.shape)
    return Sizes(edges, *layout.sizes)


def _histogram(keys: Array | list[Array], layout: Layout, backend: Backend) -> list[int]:
    """Edges of one partition, or of several, in each block of the grid, in row-major order."""
    if isinstance(keys, list):
        counts = [_histogram(some, layout, backend) for some in keys]
        return [sum(of_block) for of_block in zip(*counts, strict=True)]
    if (modulus := layout.residues) and modulus**2 <= backend.edges.ranges:
        in_each: list[int] = backend.edges.residues(keys, layout.shift, modulus).tolist()
        return in_each
    xp, chunk, (rows, columns) = backend.array, backend.chunk, layout.shape
    edges = xp.zeros(rows * columns, dtype="int64")
    for start in range(0, len(keys), chunk):
        source, target = unpack(keys[start : start + chunk], layout.shift)
        row, before = layout.rows.dealt(source, xp)[0] * columns, 0
        for axis in layout.families:
            edges += xp.bincount(row + before + axis.dealt(target, xp)[0], minlength=rows * columns)
            before += axis.parts
    counted: list[int] = edges.tolist()
    return counted


def build_blocks(
    executor: Executor,
    graph: Oriented,
    layout: Layout,
    edges: Any = None,
    where: Where = NOWHERE,
) -> dict[Block, Any]:
    """Shuffle the oriented edges into CSR blocks.

    A single block is built in slabs of rows, one per partition, and every worker stacks them for itself.

    Parameters
    ----------
    executor : Executor
    graph : Oriented
        Its partitions are emptied.
    layout : Layout
    edges : array of int64, shape of the grid, optional
        Edges that each block must have. Default: not checked.
    where : mapping of (i, j) to str, optional
        The worker that should build each block.

    Returns
    -------
    dict of (i, j) to handle of OrientedCSR
        By place in the grid.
    """
    planned = [None if edges is None else int(edges[place]) for place in layout.places]
    built = graph.take_slabs()
    if built and layout.shape == (1, 1):
        graph.partitions.clear()
        return _stacked_blocks(executor, built, len(built), layout, planned, where)
    built.clear()
    if layout.shape == (1, 1) and sorts_here(executor, graph.edges):
        block = _block_here(executor, graph, layout)
        check_edges(block, *planned)
        return {(0, 0): block}
    places, firsts, widths = layout.places, layout.first_keys, layout.widths
    copies = graph.edges * len(layout.families)
    largest = copies if edges is None else int(edges.max()) * len(places)
    rows = _slab_rows(executor, graph, layout, -(-partition_count(largest, executor) // len(places)))
    slabs = len(rows[0])
    starts = [firsts[b] + row * widths[b] for b, (i, _) in enumerate(places) for row in rows[i]]
    alike = firsts[-1], layout.loose_bits, executor.backend
    spans = [(start, end, widths[k // slabs], *alike) for k, (start, end) in enumerate(pairwise([*starts, firsts[-1]]))]
    if _is_dealt(graph, layout):
        slab_handles, _ = reduced(executor, "blocks", graph.ranges(), _slab, spans)
        return _stacked_blocks(executor, slab_handles, slabs, layout, planned, where)
    at = [where.get(place) if len(places) >= executor.workers else None for place in places for _ in range(slabs)]
    share = (executor, "blocks", _keys_by_block(executor, graph, layout), copies, starts[1:], max(1, firsts[-1]))
    if slabs == 1 and len(places) > 1:
        calls = [(*span, place, layout, of) for span, place, of in zip(spans, places, planned, strict=True)]
        return dict(zip(places, redistribute(*share, _block, calls, at)[0], strict=True))
    slab_handles, _ = redistribute(*share, _slab, spans, at)
    return _stacked_blocks(executor, slab_handles, slabs, layout, planned, where)


@dataclass(frozen=True)
class _Ahead:
    """Builds the slabs of a single block, one per worker thread; implements `orient.SlabsAhead`.

    Most graphs become a single block, and its slabs depend on nothing that is planned. Built while one worker computes
    the statistics and the client plans, they take no time of their own. If the plan has other blocks, they are dropped.
    """

    executor: Executor
    count: int
    step: int
    size: int
    shift: int
    loose: int

    def samples(self, canonical: list[Any]) -> tuple[list[Any], int]:
        """Samples of the canonical partitions, and the number of ranges of rows."""
        return self.executor.map("blocks", _every, list(canonical), self.step), self.count

    def slabs(self, cut_up: list[Any], ranks: list[Any], outward: list[Any], planner: str | None) -> list[Any]:
        """Submit the slab of each range; on the planner it waits for `outward`.

        Had that worker begun with its slab, the statistics, and with them the client's plan, would wait for it.
        """
        there = dict(zip(self.executor.homes(len(ranks)), ranks, strict=True))
        given = []
        for number, home in enumerate(self.executor.homes(self.count)):
            after = outward if home == planner else []
            shape = number, self.size, self.shift, self.loose, self.executor.backend
            given.append((there.get(home, ranks[0]), *shape, after))
        return redistribute_cut(self.executor, "blocks", cut_up, self.count, _slab_ahead, given)


def slabs_ahead(executor: Executor, edges: Canonical, size: int, shift: int, sorted_rows: bool) -> SlabsAhead | None:
    """Have the slabs of a single block built ahead; None where partitions are not exchanged in pieces.

    Parameters
    ----------
    executor : Executor
    edges : Canonical
    size : int
        Number of vertices, those without an edge included.
    shift : int
        Bits of an id in an edge key.
    sorted_rows : bool
    """
    count, sources = partition_count(edges.rows, executor), len(edges.partitions)
    if not cuts_partitions(executor, sources, count, edges.rows):
        return None
    step = sample_step(edges.rows // sources, count, sources)
    return _Ahead(executor, count, step, size, shift, 0 if sorted_rows else shift)


def _every(keys: Array, step: int) -> Array:
    """Every `step`-th key."""
    return keys[::step].copy()


def _slab_ahead(
    slices: list[Array],
    ranks: Ranks,
    number: int,
    size: int,
    shift: int,
    loose: int,
    backend: Backend,
    after: list[Any],
) -> tuple[Array, Array]:
    start, end = [0, *ranks.starts, size << shift][number : number + 2]
    return _slab(slices, start, end, 1 << shift, size << shift, loose, backend)


def _is_dealt(graph: Oriented, layout: Layout) -> bool:
    """Whether orientation already dealt the edges to the ranges of rows that become the slabs of a single block."""
    return graph.rows is not None and layout.shape == (1, 1)


def _slab_rows(executor: Executor, graph: Oriented, layout: Layout, slabs: int) -> list[list[int]]:
    """For each row of the grid, the first row of every slab: those that orientation dealt to, else `slabs` new ones."""
    if _is_dealt(graph, layout) and graph.rows:
        return [graph.rows]
    return _row_ranges(executor, graph, layout, slabs)


def _keys_by_block(executor: Executor, graph: Oriented, layout: Layout) -> Inputs:
    """Inputs of a shuffle, as keys in their blocks' ranges; the graph's partitions are emptied."""
    if layout.shape == (1, 1):
        return Inputs(graph.partitions)
    if len(layout.families) == 1 and not executor.exchanges:
        return Inputs(graph.ranges(), _block_keys, (layout, 0, executor.backend))
    made = list[Any]()
    for family in range(len(layout.families)):  # one at a time: two families' keys at once would enlarge the partitions
        partitions = graph.partitions if family == len(layout.families) - 1 else list(graph.partitions)
        made += executor.map("blocks", _block_keys, partitions, layout, family, executor.backend)
    return Inputs(made)


def _stacked_blocks(
    executor: Executor, built: list[Any], slabs: int, layout: Layout, planned: list[int | None], where: Where
) -> Blocks:
    """Stack every block from its `slabs` slabs, and empty the list of their handles."""
    places, backend = layout.places, executor.backend
    stacks = [built[start : start + slabs] for start in range(0, len(built), slabs)]
    built.clear()  # so that stacking, which empties its list, frees each slab that it has copied
    sizes = [of for of in planned if of is not None]
    if executor.memory_per_call is not None and not executor.distributed and slabs > 1 and sizes:
        stacks.reverse()
        return {
            place: _filled(executor, stacks.pop(), _Filling(place, layout, size, backend))
            for place, size in zip(places, sizes, strict=True)
        }
    if len(places) == 1:
        (place,) = places
        return {place: executor.replicated("blocks", _checked, stacks.pop(), place, layout, backend, *planned)}
    given = [(stack, place, layout, backend, of) for place, stack, of in zip(places, stacks, planned, strict=True)]
    stacks.clear()
    at = [where.get(place) for place in places]
    if executor.memory_per_call is None:
        return dict(zip(places, executor.submit_all("blocks", _checked, given, at), strict=True))
    given.reverse()  # one at a time: a whole block may take more than a thread's share of the budget
    return {
        place: executor.submit("blocks", _checked, *given.pop(), prefer=to)
        for place, to in zip(places, at, strict=True)
    }


def _block_here(executor: Executor, graph: Oriented, layout: Layout) -> OrientedCSR:
    """Build the single block in this process: its threads fill ranges of rows of shared arrays."""
    ((rows,),) = layout.sizes[0].tolist()
    offsets = np.zeros(rows + 1, np.int64)
    dealt = deal_here(executor, "blocks", graph.partitions, 1 << 2 * layout.shift)
    columns = np.empty(dealt.buckets.size, np.int32)
    given = dealt.buckets, layout.shift, layout.loose_bits, offsets, columns
    executor.map("blocks", _fill_rows, list(dealt.spans), *given)
    return _stack([(offsets, columns)], (0, 0), layout, executor.backend)


def _fill_rows(span: tuple[int, int], buckets: Buckets, shift: int, loose: int, offsets: Array, columns: Array) -> None:
    buckets.write_rows(*span, shift, loose, offsets, columns)


def _row_ranges(executor: Executor, graph: Oriented, layout: Layout, slabs: int) -> list[list[int]]:
    """For each row of the grid, the first rows of `slabs` ranges with about equally many edges."""
    axis = layout.rows
    if slabs == 1 or graph.facts is None or not graph.facts.cuts or axis.starts is not None or slabs > CUTS:
        return _cuts(executor, "blocks", graph.out_degree, axis, slabs)
    cuts = [graph.facts.cuts[CUTS * slab // slabs] // axis.parts for slab in range(slabs)]
    return [[0, *cuts[1:]]] * axis.parts  # vertices dealt out in turn: every part has the same share of each range


def _block_keys(keys: Array | list[Array], layout: Layout, family: int, backend: Backend) -> Array:
    """Recode the keys of one or several arrays by their blocks, within one family of columns."""
    if isinstance(keys, list):
        return backend.array.concatenate([_block_keys(some, layout, family, backend) for some in keys])
    xp, axis = backend.array, layout.families[family]
    before = sum(other.parts for other in layout.families[:family])
    firsts = np.array(layout.first_keys[:-1], dtype="int64").reshape(layout.shape)[:, before : before + axis.parts]
    own = xp.asarray(np.ascontiguousarray(firsts).ravel())
    of_family = layout.widths[before : before + axis.parts]
    widths = xp.asarray(np.array(of_family, dtype="int64"))
    if layout.residues:
        return backend.edges.placed(keys, layout.shift, layout.residues, own, widths)
    return transform(keys, partial(_placed, layout=layout, axis=axis, firsts=own, widths=widths, xp=xp), backend)


def _placed(keys: Array, layout: Layout, axis: Axis, firsts: Array, widths: Array, xp: ModuleType) -> Array:
    """Keys of edges in the blocks of a family, from the blocks' first keys and keys per row."""
    source, target = unpack(keys, layout.shift)
    (i, row), (j, column) = layout.rows.dealt(source, xp), axis.dealt(target, xp)
    return firsts.take(i * axis.parts + j) + row * widths.take(j) + column


def _slab(
    slices: list[Array], start: int, end: int, columns: int, bound: int, loose: int, backend: Backend
) -> tuple[Array, Array]:
    """Sort the keys of a slab, [start, end), and return the offsets and columns of its rows.

    A row has `columns` keys; every key of the block is below `bound`; the lowest `loose` bits need not be sorted.
    """
    return backend.dealt(slices, bound, (start, end)).rows(start, -(-(end - start) // columns), columns, loose)


def _block(
    slices: list[Array],
    start: int,
    end: int,
    columns: int,
    bound: int,
    loose: int,
    backend: Backend,
    place: Block,
    layout: Layout,
    edges: int | None,
) -> OrientedCSR:
    """Build a block that has a single slab."""
    return _checked([_slab(slices, start, end, columns, bound, loose, backend)], place, layout, backend, edges)


def _checked(slabs: list[Any], place: Block, layout: Layout, backend: Backend, edges: int | None) -> OrientedCSR:
    """Stack the slabs of a block, and check that it has as many edges as were measured."""
    block = _stack(slabs, place, layout, backend)
    check_edges(block, edges)
    return block


class _Filling:
    """Copies slabs into a block allocated at full size, because two copies of its bytes need not fit a budget.

    Parameters
    ----------
    place : (int, int)
    layout : Layout
    edges : int
        Of the block.
    backend : Backend
    """

    def __init__(self, place: Block, layout: Layout, edges: int, backend: Backend) -> None:
        self._place, self._layout, self._backend = place, layout, backend
        self._rows, self._edges = layout.rows.sizes[place[0]], edges
        self._row = self._edge = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the block."""
        return 8 * (self._rows + 1) + 4 * self._edges

    def start(self) -> OrientedCSR:
        """Allocate the block, empty."""
        xp = self._backend.array
        slab = xp.zeros(self._rows + 1, dtype="int64"), xp.empty(self._edges, dtype="int32")
        return _stack([slab], self._place, self._layout, self._backend)

    def add(self, block: OrientedCSR, slab: tuple[Array, Array]) -> OrientedCSR:
        """Copy the next slab into the block."""
        offsets, columns = slab
        row, edge = self._row + len(offsets) - 1, self._edge + len(columns)
        if edge <= self._edges:
            block.offsets[self._row + 1 : row + 1] = offsets[1:]
            block.offsets[self._row + 1 : row + 1] += self._edge
            block.columns[self._edge : edge] = columns
        self._row, self._edge = row, edge
        return block

    def check(self) -> None:
        """Refuse slabs that do not have as many edges as the plan says (CountError)."""
        _check_edges(self._place, self._edge, self._edges)


def _filled(executor: Executor, slabs: list[Any], filling: _Filling) -> Any:
    """Assemble a block from its slabs, each freed once it is copied; return the block's handle."""
    largest = 2 * filling.nbytes // len(slabs)
    executor.make_room(filling.nbytes + largest)
    block = executor.fold("blocks", Fold(filling.start, filling.add, list.pop), slabs)
    filling.check()
    return block


def _stack(slabs: list[Any], place: Block, layout: Layout, backend: Backend) -> OrientedCSR:
    offsets, columns = stacked(slabs, backend)
    offsets = offsets[: layout.rows.sizes[place[0]] + 1]  # slabs built ahead also have rows of vertices without edges
    firsts = layout.rows.firsts[place[0]], layout.numbering(place[1])[0]
    where = layout.rows.stride, *firsts, layout.graph.ordered, place
    return OrientedCSR(offsets, columns, *where, sorted_rows=layout.loose_bits == 0)


def check_edges(block: OrientedCSR, edges: int | None) -> None:
    """Refuse a block that does not have as many edges as the plan says (CountError)."""
    _check_edges(block.place, block.edges, edges)


def _check_edges(place: Block, edges: int, planned: int | None) -> None:
    if planned not in (None, edges):
        raise CountError(
            f"block P[{place[0]}][{place[1]}] holds {plural(edges, 'edge')}, the plan {planned:,}: edges were "
            "lost; run again, and report this with the output of `dasktc info`"
        )


def stacked(slabs: list[Any], backend: Backend) -> tuple[Array, Array]:
    """Concatenate slabs of rows to the offsets and columns of one block.

    The list belongs to the task and is emptied slab by slab, so that copied slabs can be freed.
    """
    xp = backend.array
    if len(slabs) == 1:
        offsets, columns = slabs[0]
        return offsets, columns
    offsets = xp.zeros(1 + sum(len(o) - 1 for o, _ in slabs), dtype="int64")
    row = edge = 0
    for number, (o, c) in enumerate(slabs):
        slabs[number] = c
        offsets[row + 1 : row + len(o)] = o[1:]
        offsets[row + 1 : row + len(o)] += edge
        row, edge = row + len(o) - 1, edge + len(c)
    del o, c
    columns, edge = xp.empty(edge, dtype="int32"), 0
    for number in range(len(slabs)):
        c, slabs[number] = slabs[number], None
        columns[edge : edge + len(c)] = c
        edge += len(c)
    return offsets, columns
