"""Builds CSR blocks on the workers for the schemes that assign rows and columns to blocks by vertex id.

Each block has a contiguous range of keys: an edge from row r to column c of a block of C columns gets the block's
first key + r·C + c. One distributed sort thus brings the edges of each block together, ordered by row and, within a
row, by column. With fewer blocks than workers a block is built in slabs of rows, so that every worker has a share.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from dasktc.backends.csr import OrientedCSR
from dasktc.executors.base import Executor, Fold
from dasktc.options import Options
from dasktc.pipeline.canonicalize import Canonical, partition_count, sorts_here
from dasktc.pipeline.orient import Oriented, SlabsAhead
from dasktc.pipeline.sharded.vectors import Sharded
from dasktc.pipeline.shuffle import Inputs, cuts_partitions, deal_here, redistribute, redistribute_cut, reduced
from dasktc.pipeline.stages.blocks import (
    Filling,
    block_keys,
    block_of_slab,
    check_edges,
    checked_block,
    edges_per_block,
    every,
    fill_rows,
    places_before,
    slab,
    slab_of_ranks,
    stack,
    sums_of_parts,
)
from dasktc.pipeline.stages.orient import CUTS, RESIDUES
from dasktc.pipeline.stages.shuffle import sample_step
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.placement import NOWHERE, Where
from dasktc.planning.plan import Proxies
from dasktc.planning.schemes import Block, Sizes

__all__ = [
    "Blocks",
    "GridPartition",
    "Partition",
    "build_blocks",
    "by_ranges",
    "by_remainder",
    "measure",
    "slabs_ahead",
]

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
    sums = np.array(executor.gather(vector.map(executor, stage, sums_of_parts, axis)), dtype="int64")
    before = (np.cumsum(sums, axis=0) - sums).tolist()
    wanted = [[number * of_part // count for number in range(1, count)] for of_part in sums.sum(axis=0).tolist()]
    places = executor.gather(
        executor.submit(stage, places_before, part, first, axis, sums_before, wanted, executor.backend)
        for part, first, sums_before in zip(vector.parts, vector.starts, before, strict=False)
    )
    return [[0, *map(sum, zip(*of_part, strict=True))] for of_part in zip(*places, strict=True)]


def measure(executor: Executor, graph: Oriented, layout: Layout) -> Sizes:
    """Measure a layout: edges, rows and columns of every block, from one pass over the keys."""
    if layout.shape == (1, 1):
        return Sizes(np.array([[graph.edges]], dtype="int64"), *layout.sizes)
    parts = layout.residues
    if graph.residues is not None and parts and RESIDUES % parts == 0:
        apart = np.asarray(graph.residues, dtype="int64").reshape(RESIDUES // parts, parts, RESIDUES // parts, parts)
        return Sizes(apart.sum(axis=(0, 2)), *layout.sizes)
    given = graph._replace(partitions=list(graph.partitions)).ranges()
    counted = executor.map("plan", edges_per_block, given, layout, executor.backend)
    edges = np.array(executor.gather(counted), dtype="int64").sum(axis=0).reshape(layout.shape)
    return Sizes(edges, *layout.sizes)


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
        slab_handles, _ = reduced(executor, "blocks", graph.ranges(), slab, spans)
        return _stacked_blocks(executor, slab_handles, slabs, layout, planned, where)
    at = [where.get(place) if len(places) >= executor.workers else None for place in places for _ in range(slabs)]
    share = (executor, "blocks", _keys_by_block(executor, graph, layout), copies, starts[1:], max(1, firsts[-1]))
    if slabs == 1 and len(places) > 1:
        calls = [(*span, place, layout, of) for span, place, of in zip(spans, places, planned, strict=True)]
        return dict(zip(places, redistribute(*share, block_of_slab, calls, at)[0], strict=True))
    slab_handles, _ = redistribute(*share, slab, spans, at)
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
        return self.executor.map("blocks", every, list(canonical), self.step), self.count

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
        return redistribute_cut(self.executor, "blocks", cut_up, self.count, slab_of_ranks, given)


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
        return Inputs(graph.ranges(), block_keys, (layout, 0, executor.backend))
    made = list[Any]()
    for family in range(len(layout.families)):  # one at a time: two families' keys at once would enlarge the partitions
        partitions = graph.partitions if family == len(layout.families) - 1 else list(graph.partitions)
        made += executor.map("blocks", block_keys, partitions, layout, family, executor.backend)
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
            place: _filled(executor, stacks.pop(), Filling(place, layout, size, backend))
            for place, size in zip(places, sizes, strict=True)
        }
    if len(places) == 1:
        (place,) = places
        return {place: executor.replicated("blocks", checked_block, stacks.pop(), place, layout, backend, *planned)}
    given = [(stack, place, layout, backend, of) for place, stack, of in zip(places, stacks, planned, strict=True)]
    stacks.clear()
    at = [where.get(place) for place in places]
    if executor.memory_per_call is None:
        return dict(zip(places, executor.submit_all("blocks", checked_block, given, at), strict=True))
    given.reverse()  # one at a time: a whole block may take more than a thread's share of the budget
    return {
        place: executor.submit("blocks", checked_block, *given.pop(), prefer=to)
        for place, to in zip(places, at, strict=True)
    }


def _block_here(executor: Executor, graph: Oriented, layout: Layout) -> OrientedCSR:
    """Build the single block in this process: its threads fill ranges of rows of shared arrays."""
    ((rows,),) = layout.sizes[0].tolist()
    offsets = np.zeros(rows + 1, np.int64)
    dealt = deal_here(executor, "blocks", graph.partitions, 1 << 2 * layout.shift)
    columns = np.empty(len(dealt.buckets.keys), np.int32)
    given = dealt.buckets, offsets, columns, layout.shift, layout.loose_bits, executor.backend
    executor.map("blocks", fill_rows, list(dealt.spans), *given)
    return stack([(offsets, columns)], (0, 0), layout, executor.backend)


def _row_ranges(executor: Executor, graph: Oriented, layout: Layout, slabs: int) -> list[list[int]]:
    """For each row of the grid, the first rows of `slabs` ranges with about equally many edges."""
    axis = layout.rows
    if slabs == 1 or graph.facts is None or not graph.facts.cuts or axis.starts is not None or slabs > CUTS:
        return _cuts(executor, "blocks", graph.out_degree, axis, slabs)
    cuts = [graph.facts.cuts[CUTS * slab // slabs] // axis.parts for slab in range(slabs)]
    return [[0, *cuts[1:]]] * axis.parts  # vertices dealt out in turn: every part has the same share of each range


def _filled(executor: Executor, slabs: list[Any], filling: Filling) -> Any:
    """Assemble a block from its slabs, each freed once it is copied; return the block's handle."""
    largest = 2 * filling.nbytes // len(slabs)
    executor.make_room(filling.nbytes + largest)
    block = executor.fold("blocks", Fold(filling.start, filling.add, list.pop), slabs)
    filling.check()
    return block
