"""The protocol of a plane: how partitions of a graph move in one execution mode; and the verbs that all modes share.

A stage is arithmetic (`pipeline.stages`): arrays in, arrays out. A plane calls its functions through an executor, and
knows where their results are: in this process, on workers, or within a budget. `prepare` calls the verbs in the order
in which they stand here. What one verb returns is given to the next one. A plane may return subclasses of `Canonical`
and `Oriented` with more than the protocol says, which its own later verbs read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.edge_sample import Colours
from dasktc.executors.base import Executor, Fold, starmap, tree
from dasktc.executors.dask.worker_events import stage_ended, with_steps
from dasktc.io.source import Part, Source
from dasktc.options import Ids, Options
from dasktc.pipeline.planes.exchange import Inputs, Ranges, exchange, splitters
from dasktc.pipeline.planes.graph import Canonical, Frames, Handles, Numbering, Oriented, RankedGraph
from dasktc.pipeline.planes.tuning import Tuning
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.planes.vertex_budget import VertexBudget
from dasktc.pipeline.planes.vertices import number_integers, number_texts
from dasktc.pipeline.stages import blocks, orient
from dasktc.pipeline.stages.canonical import keys_in_chunks, keys_in_range, keys_of, keys_of_samples
from dasktc.pipeline.stages.edge_keys import distinct
from dasktc.pipeline.stages.ids import map_of_degrees
from dasktc.pipeline.stages.orient import DegreeFacts
from dasktc.pipeline.stages.read import Counts, judged, read_parts, slices_of_rows
from dasktc.pipeline.stages.reorder import by_band_and_visit, by_visit, collective_degree, first_visit, relabel, take
from dasktc.pipeline.stages.shards import joined
from dasktc.pipeline.stages.shuffle import quantiles, reduce_slices
from dasktc.planning.grid import Axis, Layout
from dasktc.planning.orders import Order, Ranking
from dasktc.planning.placement import NOWHERE, Where
from dasktc.planning.schemes import Block, Sizes
from dasktc.registry import ORDERS, SCHEMES

__all__ = [
    "Blocks", "Plane", "add_up_both_degrees", "add_up_degrees", "add_up_sources", "facts_for_plan", "read_group",
]  # fmt: skip

Array = Any
Blocks = dict[Block, Any]
"""Handles of OrientedCSR by place (i, j) in the partition's grid."""


@dataclass(frozen=True)
class Plane(ABC):
    """Moves the partitions of a graph from stage to stage.

    Parameters
    ----------
    executor : Executor
        Calls the stages' functions, and keeps their results.
    options : Options
        Of the run; the backend is chosen.
    tuning : Tuning

    Attributes
    ----------
    shards : int
        Shards of vertex vectors; 1 where they are whole.
    stage_memory : int or None
        Bytes that one call of a stage may take beside what is kept; None: no bound.
    """

    executor: Executor
    options: Options
    tuning: Tuning
    shards = 1

    @property
    @abstractmethod
    def stage_memory(self) -> int | None: ...  # noqa: D102

    @property
    def backend(self) -> Backend:
        """The backend of the stages."""
        return self.executor.backend

    @property
    def threads(self) -> int:
        """Number of calls that run at the same time."""
        return len(self.executor.worker_threads)

    # from a source to edge frames

    @abstractmethod
    def read(self, source: Source) -> Frames:
        """Read the parts of a source; of each frame the rows, loops, span and a sample come to the client."""

    # from the caller's ids to dense ids

    def number(self, frames: Frames, ids: Ids) -> Numbering:
        """Number the vertices 0..V-1, ascending by the caller's ids, and count them; the frames stay as they are."""
        budget = self.vertex_budget(ids)
        if ids == "text":
            return number_texts(self.executor, frames, budget)
        return number_integers(self.executor, frames, budget, self.stage_memory)

    @abstractmethod
    def vertex_budget(self, ids: Ids) -> VertexBudget:
        """What vectors of all vertices may take; it decides whether they are whole."""

    # from frames to distinct undirected edges

    @abstractmethod
    def canonical(self, frames: Frames, numbering: Numbering) -> Canonical:
        """Relabel frames by dense ids, drop directions, and keep each edge once; takes the frames over.

        Partitions are ranges of ascending keys with about equally many edges. A plane may rank vertices by rows here,
        and direct the edges at once (`is_ranked_by_rows`).
        """

    def is_ranked_by_rows(self, rows: int) -> bool:
        """Whether vertices are ranked by rows: for a plan that probably has one block in `degree` order."""
        partition, parts = self.options.partition, self.options.parts
        is_single = parts in (None, 1) if partition == "auto" else SCHEMES[partition].replicated
        return is_single and ORDERS[self.options.chosen_reorder].ordered and rows < self.tuning.ranked_rows

    def for_edges(self, rows: int) -> Self:
        """The plane for a graph of about this number of edges: the same, or one thread of this process."""
        return self

    # from degrees to directions

    @abstractmethod
    def orient(self, edges: Canonical, numbering: Numbering) -> tuple[Oriented, Any]:
        """Rank the vertices by degree, and direct every edge to its end of higher degree; takes the edges over.

        Vertices without an edge come last in the ranks, and are left out of the graph. A plane may rank by rows in
        place of degrees (`is_ranked_by_rows`).

        Returns
        -------
        graph : Oriented
        names : handle of VertexMap, or Sharded
            The caller's ids by dense id; made on first access where ids were numbered by their range.
        """

    # from ranks to another order

    def reorder(self, graph: Oriented, order: Order, shift: int) -> Oriented:
        """Relabel the graph by a vertex order, and take it over; it is returned as it is where the ranks stay the ids.

        Parameters
        ----------
        graph : Oriented
            Over ranks.
        order : Order
        shift : int
            Bits of an id in an edge key.
        """
        if order.ordered:
            return graph
        executor = self.executor
        new_order = _NEW_ORDERS[order.ranking](executor, graph, shift)
        new_ids = executor.submit("reorder", orient.inverse, new_order, executor.backend)
        partitions = executor.map("reorder", relabel, graph.partitions.take(), new_ids, shift, executor.backend)
        dense, outward, inward = (
            Sharded(vector.starts, [executor.submit("reorder", take, vector.whole, new_order)])
            for vector in (graph.order, graph.out_degree, graph.in_degree)
        )
        return Oriented(Handles(partitions), dense, outward, inward, graph.wedges, graph.edges)

    # from a layout to the sizes of its blocks

    def measure(self, graph: Oriented, layout: Layout) -> Sizes:
        """Measure a layout: edges, rows and columns of every block, from one pass over the keys."""
        if layout.shape == (1, 1):
            return Sizes(np.array([[graph.edges]], dtype="int64"), *layout.sizes)
        executor = self.executor
        counts = executor.gather(executor.map("plan", blocks.edges_per_block, graph.inputs(), layout, executor.backend))
        return Sizes(np.array(counts, dtype="int64").sum(axis=0).reshape(layout.shape), *layout.sizes)

    def cut_evenly(self, stage: str, vector: Sharded, axis: Axis, count: int) -> list[list[int]]:
        """Cut each part's share of a vector into `count` ranges of equal sums; return the ranges' first positions.

        Sums run over all shards; each shard counts its positions before every cut, and these counts are added.
        """
        if count == 1:
            return [[0]] * axis.parts
        executor = self.executor
        sums = np.array(executor.gather(vector.map(executor, stage, blocks.sums_of_parts, axis)), dtype="int64")
        prefix_sums = (np.cumsum(sums, axis=0) - sums).tolist()
        targets = [[number * total // count for number in range(1, count)] for total in sums.sum(axis=0).tolist()]
        places = executor.gather(
            executor.submit(stage, blocks.places_before, part, first, axis, sums_before, targets, executor.backend)
            for part, first, sums_before in zip(vector.parts, vector.starts, prefix_sums, strict=False)
        )
        return [[0, *map(sum, zip(*positions, strict=True))] for positions in zip(*places, strict=True)]

    # from edges to blocks

    def blocks(self, graph: Oriented, layout: Layout, edges: Any = None, where: Where = NOWHERE) -> Blocks:
        """Build the CSR blocks of a layout, and take the graph's partitions over.

        Each block has a contiguous range of keys: an edge from row r to column c of a block of C columns gets the
        block's first key + r·C + c. One exchange thus brings the edges of each block together, ordered by row and,
        within a row, by column.

        Parameters
        ----------
        graph : Oriented
        layout : Layout
        edges : array of int64, shape of the grid, optional
            Edges that each block must have (else a CountError). Default: not checked.
        where : mapping of (i, j) to str, optional
            The worker that should build each block.
        """
        places, backend = layout.places, self.backend
        edge_counts = [None if edges is None else int(edges[place]) for place in places]
        if isinstance(graph, RankedGraph) and layout.shape == (1, 1):
            first_rows = [[0, *(start >> layout.shift for start in graph.starts)]]
            spans = [(*span, backend) for span in blocks.slab_spans(layout, first_rows)]
            return self.stack(self.slabs(graph.partitions, spans), layout, edge_counts, where)
        # With fewer blocks than workers a block is built in slabs of rows, so that every worker has a share.
        copies = graph.edges * len(layout.families)
        largest = copies if edges is None else int(edges.max()) * len(places)
        first_rows = self.first_rows(graph, layout, -(-self.partitions(largest) // len(places)))
        spans = [(*span, backend) for span in blocks.slab_spans(layout, first_rows)]
        starts, bound = [span[0] for span in spans[1:]], max(1, layout.first_keys[-1])
        # Blocks that are as many as the workers are built where the plan has them; slabs of few blocks anywhere.
        homes = [where.get(place) if len(places) >= self.threads else None for place in places for _ in first_rows[0]]
        share = "blocks", self.keys_by_block(graph, layout), copies, starts, bound
        if len(first_rows[0]) == 1 and len(places) > 1:
            calls = [
                (*span, place, layout, count) for span, place, count in zip(spans, places, edge_counts, strict=True)
            ]
            return dict(zip(places, self.redistribute(*share, blocks.block_of_slab, calls, homes), strict=True))
        return self.stack(self.redistribute(*share, blocks.slab, spans, homes), layout, edge_counts, where)

    def slabs(self, partitions: Handles, spans: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Handles of slabs, each of a partition that has its rows, ascending; takes the partitions over."""
        calls = [(keys, *span) for keys, span in zip(partitions.take(), spans, strict=True)]
        return starmap(self.executor, "blocks", blocks.slab_of_keys, calls)

    def first_rows(self, graph: Oriented, layout: Layout, slabs: int) -> list[list[int]]:
        """For each row of the grid, the first rows of `slabs` ranges with about equally many edges."""
        axis = layout.rows
        if slabs == 1 or graph.facts is None or not graph.facts.cuts or axis.starts is not None or slabs > orient.CUTS:
            return self.cut_evenly("blocks", graph.out_degree, axis, slabs)
        cuts = [graph.facts.cuts[orient.CUTS * number // slabs] // axis.parts for number in range(slabs)]
        return [[0, *cuts[1:]]] * axis.parts  # vertices dealt out in turn: every part has the same share of each range

    def keys_by_block(self, graph: Oriented, layout: Layout) -> Inputs:
        """Inputs of the exchange, as keys in their blocks' ranges; takes the graph's partitions over."""
        backend, families = self.backend, len(layout.families)
        if layout.shape == (1, 1):
            return Inputs(graph.partitions.take())
        if families == 1:
            inputs = graph.inputs()
            graph.partitions.take()
            return Inputs(inputs, blocks.block_keys, (layout, 0, backend))
        return Inputs(self.keys_of_families(graph, layout))

    def keys_of_families(self, graph: Oriented, layout: Layout) -> list[Any]:
        """Handles of the keys in the ranges of the blocks of every family, made one family after another.

        Two families' keys at once would enlarge the partitions.
        """
        keys, families = list[Any](), len(layout.families)
        for family in range(families):
            partitions = graph.partitions.take() if family == families - 1 else list(graph.partitions)
            keys += self.executor.map("blocks", blocks.block_keys, partitions, layout, family, self.backend)
        return keys

    def stack(self, slabs: list[Any], layout: Layout, planned: list[int | None], where: Where) -> Blocks:
        """Stack every block from its slabs, and take their handles over."""
        calls, executor = self.stacks(slabs, layout, planned), self.executor
        if len(calls) == 1:
            return {layout.places[0]: executor.submit("blocks", blocks.checked_block, *calls.pop())}
        return dict(zip(layout.places, starmap(executor, "blocks", blocks.checked_block, calls), strict=True))

    def stack_at_homes(self, calls: list[tuple[Any, ...]], layout: Layout, where: Where) -> Blocks:
        """Stack one block after another, each on the worker that the plan names."""
        calls.reverse()
        return {
            place: self.executor.submit("blocks", blocks.checked_block, *calls.pop(), prefer=where.get(place))
            for place in layout.places
        }

    def stacks(self, slabs: list[Any], layout: Layout, planned: list[int | None]) -> list[tuple[Any, ...]]:
        """Arguments of `checked_block` for each block; nothing else then holds the slabs."""
        count = len(slabs) // len(layout.places)
        stacks = [slabs[start : start + count] for start in range(0, len(slabs), count)]
        slabs.clear()  # so that stacking, which empties its list, frees each slab that it has copied
        places = zip(layout.places, stacks, planned, strict=True)
        return [(stack, place, layout, self.backend, edges) for place, stack, edges in places]

    # what the verbs are made of

    def partitions(self, edges: int, edge_bytes: int | None = None) -> int:
        """Number of partitions for the given edges: one per worker thread, unless memory or the backend needs more."""
        largest, limit = self.largest_partition(edges, edge_bytes), self.tuning.one_partition
        if edges < min(limit, largest):
            return 1
        return max(1 if edges < limit else self.threads, -(-edges // largest))

    def largest_partition(self, edges: int, edge_bytes: int | None) -> int:
        """Most edges in a partition of a graph with the given edges; `edge_bytes` of memory each, if they are known."""
        return self.tuning.partition_edges[self.backend.name]

    def exchange(self, stage: str, inputs: Inputs, starts: list[int], bound: int) -> Ranges:
        """Bring the keys of each range together: cut every input before each of `starts`, and collect the slices."""
        return exchange(self.executor, stage, inputs, starts, bound)

    def redistribute(
        self,
        stage: str,
        inputs: Inputs,
        keys: int,
        starts: list[int],
        bound: int,
        reduce: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        where: Sequence[str | None] = (),
    ) -> list[Any]:
        """Exchange keys by range, and reduce the keys of each range to one result.

        Parameters
        ----------
        stage : str
        inputs : Inputs
        keys : int
            About the number of keys of all inputs.
        starts : list of int
            The first key of the second and of each later range, ascending.
        bound : int
            Every key is below `bound`.
        reduce : callable (list of arrays, *call) -> result
            It may empty the list.
        calls : sequence of tuples
            Further arguments for each range; no handles.
        where : sequence of str or None
            The worker for each range. Default: the plane's choice.
        """
        return self.reduce_ranges(stage, self.exchange(stage, inputs, starts, bound), reduce, calls)[0]

    def reduce_ranges(
        self,
        stage: str,
        ranges: Ranges,
        reduce: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        fold: Fold[Any] | None = None,
    ) -> tuple[list[Any], Any]:
        """Reduce the slices of each range to one result, and take the slices over.

        Parameters
        ----------
        stage : str
        ranges : list of lists of handles
            Emptied.
        reduce : callable (list of arrays, *call) -> result
            It may empty the list.
        calls : sequence of tuples
            Further arguments for each range; no handles.
        fold : Fold, optional
            Reduction over all results, by `map_and_fold`.

        Returns
        -------
        results : list of handles
        folded : handle, or None
        """
        pairs = [list(pair) for pair in zip(ranges, calls, strict=True)]
        ranges.clear()
        if fold is None:
            return self.executor.map(stage, reduce_slices, pairs, reduce), None
        return self.map_and_fold(stage, reduce_slices, pairs, fold, reduce)

    def map_and_fold(
        self, stage: str, function: Callable[..., Any], inputs: list[Any], fold: Fold[Any], *shared: Any
    ) -> tuple[list[Any], Any]:
        """Map as `Executor.map` does, and also reduce the results."""
        results = self.executor.map(stage, function, inputs, *shared)
        return results, self.executor.fold(stage, fold, list(results))

    @property
    def make_keys(self) -> Callable[..., Array]:
        """The function that makes keys of frames: in chunks on a device, whose memory is short."""
        return keys_in_chunks if self.backend.on_device else keys_of

    def keep_distinct(self, inputs: Inputs, rows: int, starts: list[int], shift: int) -> Canonical:
        """Exchange keys of edges, and keep each once."""
        bound, calls = 1 << 2 * shift, self._distinct_calls(starts, shift)
        partitions = self.redistribute("canonical", inputs, rows, starts, bound, distinct, calls)
        return Canonical(Handles(partitions), rows)

    def keep_distinct_and_fold(
        self, inputs: Inputs, starts: list[int], shift: int, fold: Fold[Any]
    ) -> tuple[list[Any], Any]:
        """Exchange keys of edges, and keep each once; return partitions, and their fold."""
        ranges = self.exchange("canonical", inputs, starts, 1 << 2 * shift)
        return self.reduce_ranges("canonical", ranges, distinct, self._distinct_calls(starts, shift), fold)

    def keys_and_starts(
        self, frames: Frames, numbering: Numbering, rank: Any = None
    ) -> tuple[Inputs, list[int], list[Array]]:
        """Inputs of an exchange that makes keys of frames, the starts of its ranges, and sampled keys.

        Samples of frames cut the keys where these suffice, and keys are then made as they are cut; else the keys are
        made and sampled, and there is no sample to return. With ranks, of a device, keys are oriented ones over these.
        """
        executor, backend, rows, vertices = self.executor, self.backend, frames.edge_rows, numbering.vertices
        shift, count, handles, samples = numbering.shift, self.partitions(rows), frames.frames.take(), list[Array]()
        further = (shift, backend) if rank is None else (shift, backend, rank)
        if numbering.span is not None and rank is None:
            samples = [keys_in_range(ends, numbering.span, shift) for ends, _ in frames.samples]
        elif backend.on_device and frames.samples:
            ends = [pair for pair, _ in frames.samples]
            call = keys_of_samples, vertices, ends, *further
            (samples,) = executor.gather([executor.submit("canonical", *call)])
        if numbering.span is not None or samples:
            inputs = Inputs(handles, self.make_keys, (vertices, *further))
            starts = quantiles(samples, [edges for _, edges in frames.samples], count)
        else:
            inputs = Inputs(executor.map("canonical", self.make_keys, handles, vertices, *further))
            starts = splitters(executor, "canonical", inputs.handles, rows, count)
        return inputs, starts, samples

    def _distinct_calls(self, starts: list[int], shift: int) -> list[tuple[Any, ...]]:
        """Arguments of `edge_keys.distinct` for each range of canonical keys."""
        bound = 1 << 2 * shift
        return [(bound, self.backend, span) for span in pairwise([0, *starts, bound])]

    def frames(self, source: Source, parts: Sequence[Part], handles: list[Any], facts: list[Counts]) -> Frames:
        """Frames with what reading has found out."""
        notes = [note for counts in facts for note in counts.notes]
        rows, loops = sum(counts.rows for counts in facts), sum(counts.loops for counts in facts)
        skipped = sum(counts.skipped for counts in facts)
        spans = [counts.span for counts in facts if counts.span is not None]
        samples = tuple((counts.sample, counts.rows - counts.loops) for counts in facts if counts.sample is not None)
        reading = replace(judged(source, parts, notes), rows=rows + skipped)
        span = type(spans[0]).of(spans) if spans and len(spans) == len(facts) else None
        return Frames(Handles(handles), rows, loops, span, samples, reading)

    def piece_edges(self, edges: int) -> int:
        """Largest number of edges in one edge array of a device that has all edges of a graph."""
        tuning = self.tuning
        minimum = min(tuning.piece_edges, max(tuning.split_edges, -(-edges // tuning.least_pieces)))
        return max(minimum, -(-edges // (tuning.device_pieces * self.threads)))

    def split_frames(self, frames: Frames, facts: list[Counts]) -> Frames:
        """Slice frames above the size limit of a device's edge arrays; the slices are views."""
        row_counts, handles = [counts.rows for counts in facts], frames.frames.take()
        slices, largest = list[Any](), self.piece_edges(sum(row_counts))
        while handles:
            frame, size = handles.pop(), row_counts.pop()
            is_whole = size <= largest
            slices += [frame] if is_whole else self.executor.stream("read-rows", slices_of_rows, [(frame, largest)])
        return replace(frames, frames=Handles(slices))

    def facts(self, vectors: list[Any], cuts: int | None = None) -> DegreeFacts:
        """Statistics for the plan, from degrees by id, the id of each rank, and out-degrees by rank.

        A device cuts rows into CUTS ranges, unless `cuts` says otherwise.
        """
        executor, cuts = self.executor, orient.CUTS * self.backend.on_device if cuts is None else cuts
        facts: DegreeFacts
        (facts,) = executor.gather([executor.submit("orient-plan", facts_for_plan, list(vectors), cuts, self.backend)])
        return facts

    def oriented(
        self,
        partitions: list[Any] | Handles,
        vectors: Any,
        facts: DegreeFacts,
        numbering: Numbering,
        kind: Callable[..., Oriented] = Oriented,
        **more: Any,
    ) -> tuple[Oriented, Any]:
        """The result of `orient` from whole vectors, which `facts_for_plan` describes; its own are made when read."""
        executor, vertices = self.executor, facts.vertices
        order, outward, inward = (
            Sharded((0, vertices), partial(_vector, executor, function, vectors, vertices, executor.backend))
            for function in (orient.dense_ids, orient.out_degrees, orient.in_degrees)
        )
        handles = partitions if isinstance(partitions, Handles) else Handles(partitions)
        graph = kind(handles, order, outward, inward, facts.wedges, facts.edges, facts, **more)
        ids = numbering.span
        if ids is None:
            return graph, numbering.names
        call = "ids", map_of_degrees, vectors, ids, executor.backend
        return graph, Sharded((0, vertices), lambda: [executor.submit(*call)])


def read_group(
    parts: list[tuple[Part, Any]], step_of: Callable[[int], int], backend: Backend, runs: int, colours: Colours | None
) -> list[Any]:
    """Read parts in one call, as `read_parts` does; a worker's heartbeats say how far it is."""
    frame, counts = read_parts(with_steps(parts), step_of, backend, runs, colours)
    stage_ended("read")
    return [frame, counts]


def facts_for_plan(vectors: list[Array], cuts: int, backend: Backend) -> DegreeFacts:
    """Statistics for the plan, from the vectors of `Plane.facts`; tells when orientation ends."""
    totals = backend.vertices.totals(*vectors)
    stage_ended("orient")
    return orient.facts_of(vectors[2], totals, cuts, backend)


def _add_up(
    zeros: Callable[..., Array], add: Callable[..., Array], size: int, shift: int, backend: Backend
) -> Fold[Any]:
    """Make the fold that reduces partitions of edges to sums of all ids, or ranks, below `size`."""
    return Fold(partial(zeros, size, backend), partial(add, shift=shift, backend=backend), orient.total)


add_up_degrees = partial(_add_up, orient.zero_degrees, orient.add_degrees)
"""Sums degrees, by id, of canonical edges."""
add_up_sources = partial(_add_up, orient.zero_degrees, orient.add_sources)
"""Sums out-degrees, by rank, of oriented edges."""
add_up_both_degrees = partial(_add_up, orient.zero_both_degrees, orient.add_both_degrees)
"""Sums degrees and out-degrees, by rank, of oriented edges."""


def _vector(executor: Executor, function: Callable[..., Array], vectors: Any, *arguments: Any) -> list[Any]:
    return [executor.submit("degrees", function, vectors, *arguments)]


# the ranks, listed in other orders than by degree; by whole vectors


def _by_collective_degree(order_function: Callable[..., Array], executor: Executor, graph: Oriented, shift: int) -> Any:
    out_degree, backend, stage = graph.out_degree.whole, executor.backend, "reorder"
    sums = executor.map(stage, collective_degree, list(graph.partitions), out_degree, shift, backend)
    visit_order = executor.submit(stage, orient.order_by, tree(executor, stage, orient.total, sums), backend)
    visit = executor.submit(stage, orient.inverse, visit_order, backend)
    firsts = executor.map(stage, first_visit, list(graph.partitions), visit, graph.order.size, shift, backend)
    first = tree(executor, stage, partial(joined, how="minimum", backend=backend), firsts)
    return executor.submit(stage, order_function, out_degree, first, graph.order.whole, backend)


_NEW_ORDERS: dict[Ranking, Callable[[Executor, Oriented, int], Any]] = {
    Ranking.COLLECTIVE: partial(_by_collective_degree, by_visit),
    Ranking.BANDED: partial(_by_collective_degree, by_band_and_visit),
    Ranking.IN_DEGREE: lambda executor, graph, shift: executor.submit(
        "reorder", orient.order_by, graph.in_degree.whole, executor.backend
    ),
    Ranking.CALLERS_ID: lambda executor, graph, shift: executor.submit(
        "reorder", orient.inverse, graph.order.whole, executor.backend
    ),
}
"""Handle of the ranks, listed in the new order, by what it ranks by."""
