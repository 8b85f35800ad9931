"""The plane within `--memory`, in this process or on workers: what is kept may stand in files, or of a GPU on the host.

What happens to an edge: its part is read in chunks, each a frame of its own. Keys are made as they are cut into ranges,
so many that the slices of each are merged in a call. A graph that may become one block in `degree` order is sorted
once, except by GPUs on workers: vertices are ranked by the rows that name them, keys over these ranks are cut into
ranges of whole rows, and what is left of a range is a slab of the block. On a GPU every pass may move the partitions to
the host and back, so passes are saved: in this process degrees are added up as repeats are dropped, and with them the
remainders that measure grids; in other orders edges are dealt to ranges of rows as they are oriented, of which a single
block is built range by range. A block may be larger than what a call may take: it is allocated once, and filled by one
slab after another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from dasktc.backends.csr import on_host
from dasktc.executors.base import Fold
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.executors.upstream import upstream_of
from dasktc.io.evidence import runs_of
from dasktc.io.source import Source
from dasktc.options import Ids, bytes_of
from dasktc.pipeline.planes.base import Blocks, Plane, add_up_both_degrees, add_up_degrees, add_up_sources
from dasktc.pipeline.planes.exchange import Inputs, Ranges, exchange_tasks
from dasktc.pipeline.planes.graph import Canonical, Frames, Handles, Numbering, Oriented, RankedGraph
from dasktc.pipeline.planes.process import ProcessPlane
from dasktc.pipeline.planes.vectors import zipped
from dasktc.pipeline.planes.vertex_budget import VertexBudget
from dasktc.pipeline.stages import orient
from dasktc.pipeline.stages.blocks import Filling, slab, slab_spans
from dasktc.pipeline.stages.canonical import DENSE, count_ends, dense_ends, frame_of_places, oriented_keys
from dasktc.pipeline.stages.read import SAMPLED, NoPart, join_parts, read_chunks
from dasktc.pipeline.stages.shards import with_entries
from dasktc.pipeline.stages.shuffle import quantiles, sample_step
from dasktc.planning.grid import Layout
from dasktc.planning.placement import NOWHERE, Where
from dasktc.planning.schemes import Sizes
from dasktc.registry import ORDERS, SCHEMES

__all__ = ["BudgetPlane", "BudgetProcessPlane", "BudgetWorkersPlane", "DealtGraph", "SampledEdges"]


@dataclass(frozen=True, eq=False)
class SampledEdges(Canonical):
    """Canonical edges, with keys of sampled ones, loops and duplicates among them, on the host; None: none."""

    sample: Any = None


@dataclass(frozen=True, eq=False)
class DealtGraph(Oriented):
    """An oriented graph whose edges were dealt to ranges of rows as they were oriented."""

    first_rows: list[int] = field(default_factory=list)
    """First row of each range; every range has equally many consecutive partitions."""
    residues: Any = None
    """Array of uint64, shape (RESIDUES²,). Number of edges for each pair of remainders of source and target."""

    def inputs(self) -> list[Any]:
        """Handles of the partitions, a list for each range of rows."""
        partitions, count = list(self.partitions), len(self.partitions) // len(self.first_rows)
        return [partitions[first : first + count] for first in range(0, len(partitions), count)]


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedRanges(Canonical):
    """Distinct edges, oriented over ranks by rows; each partition has a range of rows."""

    rank: Any
    """Handle of an array of int32, by dense id."""
    starts: list[int]
    """The first key of each range but the first."""
    sums: Any
    """Handle of what was added up as the partitions were made, as `_sums_of_ranked` says."""


class BudgetPlane(Plane):
    """Calls take no more than their share of `--memory`, and the store may move what they return."""

    @property
    def stage_memory(self) -> int | None:
        """What the budget leaves to one call."""
        memory: int | None = self.executor.store.memory_per_call
        return memory

    @property
    def at_a_time(self) -> int:
        """Number of calls that share the memory of one."""
        return 1

    @property
    def _call_memory(self) -> int:
        """What the budget leaves to each of several calls at a time."""
        store = self.executor.store
        memory: int | None = store.memory_per_call if store.memory_in_parallel is None else store.memory_in_parallel
        assert memory is not None
        return memory

    def read(self, source: Source) -> Frames:
        """Read every part in chunks that fit a call; each is kept before the next one is read."""
        executor, backend, parts = self.executor, self.backend, source.parts or (NoPart(source.ids),)
        rows = max(1, self._call_memory // self.tuning.row_bytes[source.ids])
        if backend.on_device:
            parts = join_parts(parts, rows)
        upstream, runs = upstream_of(executor, parts), runs_of(len(parts))
        further = rows, backend, runs, source.sample, SAMPLED
        calls = [(part, value, *further) for part, value in zip(parts, upstream, strict=True)]
        results = executor.stream("read-rows", read_chunks, calls)
        handles, facts = results[::2], executor.gather(results[1::2])
        results.clear()
        frames = self.frames(source, parts, handles, facts)
        return self.split_frames(frames, facts) if source.ids == "int" and backend.on_device else frames

    def vertex_budget(self, ids: Ids) -> VertexBudget:
        """The memory of a call on whole vectors; calls on shards, which run at the same time, share it."""
        memory, budget_bytes = self.stage_memory, bytes_of(self.options.memory)
        order, on_device = self.options.chosen_reorder, self.backend.on_device
        budget = VertexBudget(memory, ids, order, on_device=on_device, at_a_time=self.at_a_time, tuning=self.tuning)
        return budget._replace(memory_ratio=budget_bytes / memory) if budget_bytes and memory else budget

    def canonical(self, frames: Frames, numbering: Numbering) -> Canonical:
        """Exchange keys by range, each range small enough to be sorted in a call, as far as the sample tells."""
        if self.is_ranked_by_rows(frames.edge_rows):
            return self._ranked(frames, numbering)
        if numbering.split is not None:
            numbering.split.edges.take()
            numbering.split.numbers.take()
        degrees = add_up_degrees(numbering.size, numbering.shift, self.backend)
        inputs, starts, samples = self.keys_and_starts(frames, numbering)
        partitions, degree_sums = self.keep_distinct_and_fold(inputs, starts, numbering.shift, degrees)
        sample = np.concatenate(samples) if samples else None
        return SampledEdges(Handles(partitions), frames.edge_rows, degree_sums, sample)

    def _ranked(self, frames: Frames, numbering: Numbering) -> RankedRanges:
        """Exchange keys that are oriented already, by the rows that name each vertex; takes the frames over.

        Frames of dense ids replace the caller's, so that ids are looked up once at most: not where frames have their
        numbers. A sample of their edges gives ranges. A GPU, which has no room for them, looks ids up again.
        """
        executor, backend, size, shift = self.executor, self.backend, numbering.size, numbering.shift
        rows, count, edges, split = frames.edge_rows, self.partitions(frames.edge_rows), frames.frames, numbering.split
        ids: Any = numbering.span
        if backend.on_device:
            (ids,) = executor.gather([numbering.vertices])
        elif split is not None:
            edges.take()
            ends = zipped(split.edges.take(), split.numbers.take())
            edges, ids = Handles(executor.map("canonical", with_entries, ends, frame_of_places, backend)), DENSE
        elif ids is None:
            dense = executor.map("canonical", dense_ends, edges.take(), numbering.vertices, backend)
            edges, ids = Handles(dense), DENSE
        add = partial(count_ends, vertices=ids, backend=backend)
        counts = executor.fold(
            "canonical", Fold(partial(orient.zero_degrees, size, backend), add, orient.total), list(edges)
        )
        rank = executor.submit("canonical", orient.ranks_by_rows, [counts], backend)
        if backend.on_device:
            inputs, borders, _ = self.keys_and_starts(frames, numbering, rank)
        else:
            inputs = Inputs(edges.take(), oriented_keys, (ids, rank, shift, backend))
            shared = *inputs.shared, sample_step(rows, count)
            samples = executor.map("canonical", oriented_keys, list(inputs.handles), *shared)
            borders = quantiles([np.concatenate(executor.gather(samples))], [rows], count)
        starts = sorted({border >> shift << shift for border in borders} - {0})  # each range has whole rows
        partitions, sums = self.keep_distinct_and_fold(inputs, starts, shift, self._sums_of_ranked(size, shift))
        return RankedRanges(Handles(partitions), rows, rank=rank, starts=starts, sums=sums)

    def _sums_of_ranked(self, size: int, shift: int) -> Fold[Any]:
        """What the pass that makes oriented partitions adds up; on a GPU remainders, too, which measure grids."""
        if not self.backend.on_device:
            return add_up_both_degrees(size, shift, self.backend)
        zeros = partial(orient.zero_degrees_and_residues, size, self.backend)
        return Fold(zeros, partial(orient.add_degrees_and_residues, shift=shift, backend=self.backend), list.pop)

    def largest_partition(self, edges: int, edge_bytes: int | None) -> int:
        """What a call may sort; on a GPU at most a piece of all edges."""
        nbytes = edge_bytes or self.tuning.edge_bytes[self.backend.name]
        largest = min(super().largest_partition(edges, edge_bytes), max(1, self._call_memory // nbytes))
        return min(largest, self.piece_edges(edges)) if self.backend.on_device else largest

    def orient(self, edges: Canonical, numbering: Numbering) -> tuple[Oriented, Any]:
        """Orient the partitions and add up out-degrees in one pass, which may deal edges to ranges of rows as well."""
        executor, backend, size, shift = self.executor, self.backend, numbering.size, numbering.shift
        if isinstance(edges, RankedRanges):
            sums, residues = edges.sums, None
            if backend.on_device:
                (sums,), residues = executor.transpose("orient", [sums], 2)
                residues = on_host(executor.gather(residues)[0])
            pair = executor.submit("orient", orient.degrees_by_id, sums, edges.rank)
            (degrees,), (outward,) = executor.transpose("orient", [pair], 2)
            vectors = [degrees, executor.submit("orient", orient.inverse, edges.rank, backend), outward]
            more = {"starts": edges.starts, "residues": residues}
            return self.oriented(edges.partitions, vectors, self.facts(vectors), numbering, RankedGraph, **more)
        degrees, rank = edges.degrees, executor.submit("orient", orient.ranks_of, [edges.degrees], backend)
        first_rows, residues = self.rows_to_deal_to(edges, rank, shift), None
        handles = edges.partitions.take()
        if first_rows is None:
            sources = add_up_sources(size, shift, backend)
            partitions, outward = self.map_and_fold("orient", orient.oriented, handles, sources, rank, shift, backend)
        else:
            sums = Fold(
                partial(orient.no_sums, size, backend), partial(orient.add_sums, shift=shift, backend=backend), list.pop
            )
            starts = [row << shift for row in first_rows[1:]]
            slices, outward_and_residues = self.map_and_fold(
                "orient", orient.oriented_slices, handles, sums, rank, starts, shift, backend
            )
            (outward,), residues = executor.transpose("orient", [outward_and_residues], 2)
            partitions = [piece for pieces in executor.transpose("orient", slices, len(first_rows)) for piece in pieces]
            residues = on_host(executor.gather(residues)[0])
        vectors = [degrees, executor.submit("orient", orient.inverse, rank, backend), outward]
        facts = self.facts(vectors)
        if first_rows is None:
            return self.oriented(partitions, vectors, facts, numbering)
        return self.oriented(
            partitions, vectors, facts, numbering, DealtGraph, first_rows=first_rows, residues=residues
        )

    def rows_to_deal_to(self, edges: Canonical, rank: Any, shift: int) -> list[int] | None:
        """First rows of the ranges that edges are dealt to as they are oriented; None: they are not."""
        return None

    def measure(self, graph: Oriented, layout: Layout) -> Sizes:
        """Measure a layout by the remainders that were counted, where the grid's parts divide their modulus."""
        parts = layout.residues
        residues = graph.residues if isinstance(graph, DealtGraph | RankedGraph) else None
        if residues is None or layout.shape == (1, 1) or not parts or orient.RESIDUES % parts:
            return super().measure(graph, layout)
        counts = np.asarray(residues, dtype="int64").reshape(
            orient.RESIDUES // parts, parts, orient.RESIDUES // parts, parts
        )
        return Sizes(counts.sum(axis=(0, 2)), *layout.sizes)

    def blocks(self, graph: Oriented, layout: Layout, edges: Any = None, where: Where = NOWHERE) -> Blocks:
        """Build the single block from the ranges that edges were dealt to; build other blocks as every plane does."""
        if not isinstance(graph, DealtGraph) or layout.shape != (1, 1):
            return super().blocks(graph, layout, edges, where)
        ranges, spans = graph.inputs(), [(*span, self.backend) for span in slab_spans(layout, [graph.first_rows])]
        graph.partitions.take()
        slabs, _ = self.reduce_ranges("blocks", ranges, slab, spans)
        return self.stack(slabs, layout, [None if edges is None else int(edges[0, 0])], where)

    def stack(self, slabs: list[Any], layout: Layout, planned: list[int | None], where: Where) -> Blocks:
        """Stack one block after another: a whole one may take more than a thread's share of the budget."""
        calls = self.stacks(slabs, layout, planned)
        return self.stack_at_homes(calls, layout, where if len(calls) > 1 else NOWHERE)


class BudgetProcessPlane(BudgetPlane):
    """In this process, where the plane knows which results the store moves, and when."""

    executor: LocalExecutor
    for_edges = ProcessPlane.for_edges

    @property
    def at_a_time(self) -> int:
        """Those of all threads."""
        return self.threads

    def map_and_fold(
        self, stage: str, function: Callable[..., Any], inputs: list[Any], fold: Fold[Any], *shared: Any
    ) -> tuple[list[Any], Any]:
        """Map and reduce in one pass where a store moves results away at once."""
        if self.executor.store.repeats:
            return self.executor.map_and_fold(stage, function, inputs, fold, *shared)
        return super().map_and_fold(stage, function, inputs, fold, *shared)

    def rows_to_deal_to(self, edges: Canonical, rank: Any, shift: int) -> list[int] | None:
        """Ranges where every pass moves the edges to the host and back.

        A single block is built from these ranges; a grid by remainder is measured by the remainders counted with them.
        Rows are cut by a sample of the canonical keys, which must fit a call with both ends and the result.
        """
        executor, backend, partition = self.executor, self.backend, self.options.partition
        is_replicated = partition == "auto" or SCHEMES[partition].replicated or SCHEMES[partition].dealing.in_turn
        is_ordered = ORDERS[self.options.chosen_reorder].ordered
        count = self.partitions(edges.rows)
        if not backend.on_device or not is_replicated or not is_ordered or count == 1:
            return None
        sample, memory = edges.sample if isinstance(edges, SampledEdges) else None, self.stage_memory
        if sample is None or (memory is not None and 4 * int(sample.nbytes) > memory):
            return None
        call = orient.first_rows, sample, rank, count, shift, backend
        (first_rows,) = executor.gather([executor.submit("orient", *call)])
        return list(first_rows)

    def stack(self, slabs: list[Any], layout: Layout, planned: list[int | None], where: Where) -> Blocks:
        """Fill one block after another, where its slabs together take more than a call may."""
        if len(slabs) == len(layout.places) or None in planned:
            return super().stack(slabs, layout, planned, where)
        calls = self.stacks(slabs, layout, planned)
        calls.reverse()
        return {place: self._filled(*calls.pop()) for place in layout.places}

    def _filled(self, slabs: list[Any], *block: Any) -> Any:
        """Assemble a block from its slabs, each freed once it is copied; return the block's handle."""
        place, layout, backend, edges = block
        filling = Filling(place, layout, edges, backend)
        self.executor.store.make_room(filling.nbytes + 2 * filling.nbytes // len(slabs))
        handle = self.executor.fold("blocks", Fold(filling.start, filling.add, list.pop), slabs)
        filling.check()
        return handle


class BudgetWorkersPlane(BudgetPlane):
    """On workers, each of which keeps results within a budget of its own."""

    executor: DaskExecutor

    def is_ranked_by_rows(self, rows: int) -> bool:
        """Not by GPUs: the client, which may have none, cuts ranges by a sample."""
        return not self.backend.on_device and super().is_ranked_by_rows(rows)

    def exchange(self, stage: str, inputs: Inputs, starts: list[int], bound: int) -> Ranges:
        """In two steps where slices are tasks, and many: not where the client knows the places of a list's entries."""
        if self.executor.store.placed:
            return super().exchange(stage, inputs, starts, bound)
        return exchange_tasks(self.executor, stage, inputs, starts, bound, self.tuning.direct)
