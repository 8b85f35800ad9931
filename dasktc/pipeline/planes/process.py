"""The plane of this process without a memory budget: threads over shared arrays, or one GPU.

What happens to an edge: its part is read to a frame by one thread. Ids of a narrow range are used as they are, others
become dense ids by a look-up, and the two of an edge become one key. If the graph may become one block in `degree`
order, vertices are ranked by the rows that name them, so that edges get their directions and final ids before their
only sort; what it leaves are the block's columns, and the lengths of its rows. Otherwise repeats are dropped and
degrees are added up first, keys are oriented, on the CPU in place, and sorted a second time for the blocks.

On the CPU the threads deal keys into one array by their leading digit, and each sorts ranges of it and drops repeats
while these are in cache. A GPU holds its edges in a few large arrays, so that the scratch of sorting one of them is
small beside all edges. They are sorted by an exchange: each is cut at sampled keys, and the slices of a range are
merged; of ranked edges the next array is made, and the next range sorted, before the host waits for numbers of the
last one. So are small graphs that are sorted twice, and the blocks of a plan with several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Self

import numpy as np

from dasktc.backends.csr import OrientedCSR
from dasktc.backends.heap import trim_between_steps
from dasktc.backends.protocol import Buckets
from dasktc.backends.vertex_maps import RangeMap
from dasktc.executors.base import Fold, starmap
from dasktc.executors.local import LocalExecutor
from dasktc.executors.upstream import upstream_of
from dasktc.io.evidence import runs_of
from dasktc.io.source import Source
from dasktc.options import Ids
from dasktc.pipeline.planes.base import Blocks, Plane, add_up_degrees, add_up_sources, read_group
from dasktc.pipeline.planes.graph import Canonical, Frames, Handles, Numbering, Oriented, RowHandles
from dasktc.pipeline.planes.vertex_budget import VertexBudget
from dasktc.pipeline.stages.blocks import (
    block_of_rows,
    check_edges,
    columns_of_ranges,
    columns_of_rows,
    fill_rows,
    keys_of_rows,
    stack,
)
from dasktc.pipeline.stages.canonical import (
    DENSE,
    count_ends,
    dense_ends,
    distinct_in_buckets,
    keys_in_chunks,
    keys_of_samples,
    lazy_keys_of,
    oriented_in_rows,
)
from dasktc.pipeline.stages.orient import (
    inverse,
    order_by,
    order_by_rows,
    oriented,
    oriented_in_place,
    total,
    zero_degrees,
)
from dasktc.pipeline.stages.read import NoPart, join_parts, sample_ends, slices_of_rows
from dasktc.pipeline.stages.shuffle import quantiles, sample_step
from dasktc.planning.grid import Layout
from dasktc.planning.placement import NOWHERE, Where

__all__ = ["ProcessPlane"]


@dataclass(frozen=True, eq=False)
class RankedColumns(Canonical):
    """Distinct edges, oriented over ranks by rows.

    Attributes
    ----------
    partitions : RowHandles
    order : handle of array of int32
        The id of each rank.
    lengths : handle of array of int32
        Out-degrees by rank.
    """

    partitions: RowHandles
    order: Any = None
    lengths: Any = None


class ProcessPlane(Plane):
    """Partitions are values of this process, in host memory or on its GPU."""

    executor: LocalExecutor

    @property
    def stage_memory(self) -> int | None:
        """No bound."""
        return None

    def read(self, source: Source) -> Frames:
        """Read each part in a call of its own; generated parts are joined for a GPU, and long frames sliced."""
        executor, backend, parts = self.executor, self.backend, source.parts or (NoPart(source.ids),)
        if backend.on_device:
            parts = join_parts(parts, -(-sum(getattr(part, "rows", 0) for part in parts) // self.threads))
        groups = [[pair] for pair in zip(parts, upstream_of(executor, parts), strict=True)]
        wanted = self.tuning.samples[backend.name]
        step = partial(sample_step, ranges=self.threads, parts=len(parts), wanted=wanted)
        results = executor.map("read-rows", read_group, groups, step, backend, runs_of(len(parts)), source.sample)
        handles, fact_handles = executor.transpose("read-rows", results, 2)
        facts = executor.gather(fact_handles)
        frames = self.frames(source, parts, handles, facts)
        if not backend.on_device:
            return self._shared_out(frames)
        return self.split_frames(frames, facts) if source.ids == "int" else frames

    def _shared_out(self, frames: Frames) -> Frames:
        """Slice the frames of a file that is read as a whole, so that every thread has some; the slices are views."""
        workers, limit = self.threads, self.tuning.one_partition
        if len(frames.frames) >= workers or frames.rows <= limit:
            return frames
        calls = [(frame, max(limit, -(-frames.rows // workers))) for frame in frames.frames.take()]
        return replace(frames, frames=Handles(self.executor.stream("read-rows", slices_of_rows, calls)))

    def vertex_budget(self, ids: Ids) -> VertexBudget:
        """No bound: vectors of all vertices are whole."""
        on_device, threads = self.backend.on_device, self.threads
        order, tuning = self.options.chosen_reorder, self.tuning
        return VertexBudget(None, ids, order, on_device=on_device, at_a_time=threads, tuning=tuning)

    def canonical(self, frames: Frames, numbering: Numbering) -> Canonical:
        """Sort keys, oriented ones where vertices are ranked by rows; in shared memory, or by an exchange."""
        rows = frames.edge_rows
        self._trim(rows)  # of reading
        if self.is_ranked_by_rows(rows):
            return self._ranked(frames, numbering)
        if self._sorts_together(rows):
            return Canonical(Handles(self._sorted(frames.frames.take(), rows, numbering)), rows)
        degrees = add_up_degrees(numbering.size, numbering.shift, self.backend)
        inputs, starts, _ = self.keys_and_starts(frames, numbering)
        partitions, degree_sums = self.keep_distinct_and_fold(inputs, starts, numbering.shift, degrees)
        return Canonical(Handles(partitions), rows, degree_sums)

    def for_edges(self, rows: int) -> Self:
        """One thread for a small graph: starting others takes longer than they save."""
        executor = self.executor
        if self.threads == 1 or rows >= self.tuning.few_edges:
            return self
        alone = LocalExecutor(executor.store, backend=executor.backend)
        alone.tracker = executor.tracker
        return replace(self, executor=alone)

    def _ranked(self, frames: Frames, numbering: Numbering) -> RankedColumns:
        """Sort keys that are oriented already, by the rows that name each vertex; takes the frames over.

        A GPU, whose memory is short, makes keys as they are cut into ranges, and looks ids up again for that.
        """
        executor, backend, size, shift = self.executor, self.backend, numbering.size, numbering.shift
        rows, bound, on_device = frames.edge_rows, 1 << 2 * shift, backend.on_device
        (vertices,) = executor.gather([numbering.vertices])
        zeros, edges = partial(zero_degrees, size, backend), frames.frames
        if numbering.span is None and not (on_device and isinstance(vertices, RangeMap)):
            edges, vertices = Handles(executor.map("canonical", dense_ends, edges.take(), vertices, backend)), DENSE
        ends = Fold(zeros, partial(count_ends, vertices=vertices, backend=backend), total)
        # The rows of each vertex become its degree when repeats are subtracted.
        degrees = executor.fold("canonical", ends, list(edges))
        order = executor.submit("canonical", order_by_rows, degrees, backend)
        rank = executor.submit("canonical", inverse, order, backend)
        if on_device:
            starts = self._starts_of_ranked(frames, edges, numbering, vertices, rank)
            borders = sorted({start >> shift for start in (*starts, bound)} - {0})  # each range has whole rows
            calls = iter([(edges.take(), vertices, rank, borders, shift, backend)])
            slices = executor.stream("canonical", oriented_in_rows, calls)
            ranges = executor.transpose("canonical", slices, len(borders))
        else:
            keys = executor.map("canonical", keys_in_chunks, edges.take(), vertices, shift, backend, rank)
            buckets, spans = self._deal("canonical", keys, bound)
        del rank
        lengths = executor.submit("canonical", zeros)
        vectors = lengths, order, degrees
        if on_device:
            columns = executor.stream("canonical", columns_of_ranges, [(ranges, borders, backend, *vectors)])
        else:
            columns = executor.map("canonical", columns_of_rows, spans, buckets, shift, *vectors)

        def keys_of(columns: list[Any]) -> list[Any]:
            firsts = accumulate(map(len, columns), initial=0)
            calls = [(*pair, lengths, shift, backend) for pair in zip(columns, firsts, strict=False)]
            columns.clear()
            return starmap(executor, "canonical", keys_of_rows, calls)

        return RankedColumns(RowHandles(columns, keys_of), rows, degrees, order, lengths)

    def _starts_of_ranked(
        self, frames: Frames, edges: Handles, numbering: Numbering, vertices: Any, rank: Any
    ) -> list[int]:
        """Starts of ranges of a device's keys over ranks, by samples of frames, or of edges over `vertices`."""
        executor, backend, rows = self.executor, self.backend, frames.edge_rows
        if (count := self.partitions(rows)) == 1:
            return []
        if frames.samples:
            ends, weights = map(list, zip(*frames.samples, strict=True))
            vertices = numbering.vertices
        else:
            step = sample_step(rows, count)
            ends = executor.gather(executor.map("canonical", sample_ends, list(edges), step, backend))
            weights = [pair.shape[1] for pair in ends]
        call = keys_of_samples, vertices, ends, numbering.shift, backend, rank
        (samples,) = executor.gather([executor.submit("canonical", *call)])
        return quantiles(samples, weights, count)

    def _sorts_together(self, keys: int) -> bool:
        """Whether the threads sort this number of keys together, in shared memory."""
        return keys >= self.tuning.one_partition and not self.backend.on_device

    def _sorted(self, frames: list[Any], rows: int, numbering: Numbering) -> list[Any]:
        """Canonical keys as ascending slices of one array; takes the frames over."""
        executor, backend, shift, span = self.executor, self.backend, numbering.shift, numbering.span
        if span is not None and rows >= self.tuning.made_twice:
            keys = [ends for frame in frames for ends in lazy_keys_of(frame, span, shift, backend)]
            frames.clear()
        else:
            keys = executor.map("canonical", self.make_keys, frames, numbering.vertices, shift, backend)
        buckets, spans = self._deal("canonical", keys, 1 << 2 * shift)
        return executor.map("canonical", distinct_in_buckets, spans, buckets, shift)

    def _deal(self, stage: str, keys: list[Any], bound: int) -> tuple[Buckets, list[tuple[int, int]]]:
        """Deal keys into one array by their leading digit; takes over the arrays, which are only read.

        Returns the unsorted buckets, and half-open ranges of them, one per call.
        The call that sorts a range of buckets also processes its keys while they are in cache. Neither ranges nor
        arrays are copied.
        """
        size = sum(map(len, keys))
        self._trim(size)  # of frames
        buckets = self.backend.dealt(keys, bound, (0, bound), partial(self.executor.map, stage))
        self._trim(size)  # of keys
        shares = self.threads > 1 and self._sorts_together(size)  # one thread has a single range, and joins no columns
        most = self.tuning.ranges_a_thread * self.threads if shares else 1
        return buckets, buckets.ranges(most)

    def _trim(self, keys: int) -> None:
        """Return memory that a step of this number of keys freed; steps of a small graph are sooner over than that."""
        if self._sorts_together(keys):
            trim_between_steps()

    def orient(self, edges: Canonical, numbering: Numbering) -> tuple[Oriented, Any]:
        """Orient keys in place on the CPU, and into new arrays on a GPU, unless they are oriented already."""
        executor, backend, size, shift = self.executor, self.backend, numbering.size, numbering.shift
        if isinstance(edges, RankedColumns):
            vectors = [edges.degrees, edges.order, edges.lengths]
            return self.oriented(edges.partitions, vectors, self.facts(vectors, cuts=0), numbering)
        degrees = edges.degrees
        if degrees is None:
            degrees = executor.fold("orient", add_up_degrees(size, shift, backend), list(edges.partitions))
        order = executor.submit("orient", order_by, degrees, backend)
        rank = executor.submit("orient", inverse, order, backend)
        function = oriented if backend.on_device else oriented_in_place
        partitions = executor.map("orient", function, edges.partitions.take(), rank, shift, backend)
        del rank
        vectors = [degrees, order, executor.fold("orient", add_up_sources(size, shift, backend), list(partitions))]
        return self.oriented(partitions, vectors, self.facts(vectors), numbering)

    def largest_partition(self, edges: int, edge_bytes: int | None) -> int:
        """What the backend sorts at once, and on a GPU a piece of all edges."""
        largest = super().largest_partition(edges, edge_bytes)
        return min(largest, self.piece_edges(edges)) if self.backend.on_device else largest

    def blocks(self, graph: Oriented, layout: Layout, edges: Any = None, where: Where = NOWHERE) -> Blocks:
        """Build the single block of a large graph in shared memory, or of rows; other blocks by an exchange."""
        if layout.shape != (1, 1):
            return super().blocks(graph, layout, edges, where)
        expected = None if edges is None else int(edges[0, 0])
        if isinstance(graph.partitions, RowHandles) and (columns := graph.partitions.take_rows()) is not None:
            call = columns, graph.out_degree.whole, (0, 0), layout, self.backend, expected
            block = self.executor.submit("blocks", block_of_rows, *call)
            del columns, call
            self._trim(graph.edges)  # of the columns of ranges
            return {(0, 0): block}
        if not self._sorts_together(graph.edges):
            return super().blocks(graph, layout, edges, where)
        block = self._single_block(graph, layout)
        check_edges(block, expected)
        return {(0, 0): block}

    def _single_block(self, graph: Oriented, layout: Layout) -> OrientedCSR:
        """Build the single block: threads fill ranges of rows of shared arrays."""
        ((rows,),) = layout.sizes[0].tolist()
        offsets = np.zeros(rows + 1, np.int64)
        buckets, spans = self._deal("blocks", graph.partitions.take(), 1 << 2 * layout.shift)
        columns = np.empty(buckets.size, np.int32)
        self.executor.map("blocks", fill_rows, spans, buckets, layout.shift, layout.loose_bits, offsets, columns)
        return stack([(offsets, columns)], (0, 0), layout, self.backend)
