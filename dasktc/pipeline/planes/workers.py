"""The plane of a cluster with room: partitions are values in the workers' memory, and travel between them as inputs.

What happens to an edge: the parts of a source are grouped to one partition for each worker thread, and the partition
has a home. Keys are sent by range: one task for each piece that leaves its worker, and none for those that stay. On the
CPU, and where ranges are many, one more task cuts each partition into all ranges; else each of these tasks picks the
keys of its range itself. If sending whole partitions takes less time than such tasks, each range gets these, and picks
its own keys. Each worker ranks the vertices for itself if that takes less time than to receive the ranks.

A graph that may become one block in `degree` order is sent once where pieces travel: vertices are ranked by the rows
that name them, and keys over these ranks go to ranges of whole rows, where repeats are dropped. The sorted keys of a
range become a slab of the block while the client plans. Otherwise keys are sent by dense id first, and after
orientation once more, by row.

A task costs the scheduler a millisecond, a task that waits for another one six, since the scheduler sends to a worker
every five, and a wait costs the client ten. So results carry the numbers that a plan needs of them
(`Executor.measured`), and a worker ranks vertices and cuts its frame in one call. Every worker stacks the single block
for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any

from dasktc.backends.heap import trim_arrow
from dasktc.executors.base import Fold, starmap
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.measured import Measured
from dasktc.executors.offers import memory_of
from dasktc.executors.upstream import upstream_of
from dasktc.io.evidence import runs_of
from dasktc.io.source import Part, Source
from dasktc.options import Ids
from dasktc.pipeline.planes.base import (
    Blocks,
    Plane,
    add_up_both_degrees,
    add_up_degrees,
    add_up_sources,
    facts_for_plan,
    read_group,
)
from dasktc.pipeline.planes.exchange import Inputs, Ranges, exchange_tasks, splitters
from dasktc.pipeline.planes.graph import Canonical, Frames, Handles, Numbering, Oriented, RankedGraph, RowHandles
from dasktc.pipeline.planes.vertex_budget import LEAST_MEMORY, MERGE_FACTOR, VertexBudget
from dasktc.pipeline.stages.blocks import checked_block
from dasktc.pipeline.stages.canonical import (
    DENSE,
    count_ends,
    dense_ends,
    distinct_of_range,
    keys_in_range,
    keys_of_samples,
    keys_of_slab,
    lazy_keys_of,
    oriented_in_ranges,
    ranked_in_ranges,
    slab_of_range,
)
from dasktc.pipeline.stages.orient import (
    CUTS,
    Ranks,
    add_degrees,
    add_each,
    degrees_by_id,
    inverse,
    oriented,
    ranks_and_starts,
    ranks_by_rows,
    ranks_of,
    sum_of,
    total,
    zero_degrees,
)
from dasktc.pipeline.stages.read import NoPart, join_parts, part_size
from dasktc.pipeline.stages.shuffle import Pick, all_ranges, keys_of_input, quantiles, reduce_range, sample_step
from dasktc.planning.grid import Layout
from dasktc.planning.placement import NOWHERE, Where

__all__ = [
    "KEY_BYTES",
    "RANK_BYTES",
    "PlacedInputs",
    "RankedKeys",
    "RowCounts",
    "WorkersPlane",
]

Array = Any
KEY_BYTES, RANK_BYTES = 8, 4


@dataclass(frozen=True)
class PlacedInputs(Inputs):
    """Inputs of an exchange between workers."""

    holders: Sequence[str | None] = ()
    """The worker that has each input; empty: its home."""
    ends: Callable[..., Any] | None = None
    """Callable (input, *shared) -> list of `radix.LazyKeys`. Returns edges that stand for the same keys, which are made
    whenever they are read."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RowCounts(Canonical):
    """Distinct edges, with the rows that name each vertex."""

    counts: Handles
    """Handles of arrays of int32. Partial sums by id; none where vertices are ranked by degree."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedKeys(Canonical):
    """Distinct edges, oriented over ranks by rows; each partition has a range of rows."""

    ranks: Handles
    """One handle, of Ranks."""
    slabs: Handles
    """Handles of pairs of arrays. The offsets and columns of each partition's rows."""


class WorkersPlane(Plane):
    """Partitions are values in the memory of workers; Dask alone bounds it."""

    executor: DaskExecutor

    @property
    def stage_memory(self) -> int | None:
        """No bound but Dask's."""
        return None

    @property
    def task_bytes(self) -> int:
        """Bytes that travel between two workers while the scheduler handles one task."""
        network = str(self.executor.client.scheduler.address)
        return self.tuning.task_bytes["ucx" if network.startswith("ucx") else "tcp"]

    def homes(self, count: int) -> list[str | None]:
        """Assign partitions to threads, evenly and those of a worker side by side; None where there is one worker."""
        threads = self.executor.worker_threads
        if len(set(threads)) < 2:
            return [None] * count
        return [threads[number * len(threads) // count] for number in range(count)]

    def read(self, source: Source) -> Frames:
        """Read neighbouring parts in one call for each worker thread; data on workers where it is."""
        executor, parts = self.executor, source.parts or (NoPart(source.ids),)
        groups = self._groups(parts)
        upstream = iter(upstream_of(executor, chain.from_iterable(groups)))
        step = partial(sample_step, ranges=self.threads, parts=len(groups))
        further = step, self.backend, runs_of(len(parts)), source.sample, self.tuning.one_partition
        calls = [(group, [next(upstream) for _ in group], *further) for group in groups]
        has_holders = any(part.upstream is not None for part in parts)  # by Dask, which holds them
        homes = () if has_holders else self.homes(len(groups))
        handles, facts = executor.measured("read-rows", _read, calls, homes)
        ask = partial(executor.faults.ask, executor.client.who_has)
        locations = ask([handle.future for handle in handles]) if has_holders else {}
        holders = [next(iter(locations.get(handle.key, ())), None) for handle in handles] if has_holders else []
        frames = self.frames(source, [part for group in groups for part in group], handles, facts)
        return replace(frames, holders=holders)

    def _groups(self, parts: Sequence[Part]) -> list[tuple[Part, ...]]:
        """Group neighbouring parts into as many groups of about equal size as there are worker threads.

        Parts that carry their rows, or that need a value first, stay alone. Generated parts are joined and cut anew.
        """
        on_device, workers = self.backend.on_device, self.threads
        if any(part.upstream is not None or hasattr(part, "places") for part in parts):
            rows = sum(getattr(part, "rows", 0) for part in parts)
            largest = min(self.piece_edges(rows), -(-rows // workers))
            return [(part,) for part in (join_parts(parts, largest) if on_device else parts)]
        joined_parts, most = join_parts(parts, sum(map(part_size, parts))), self.tuning.frame_rows
        if len(joined_parts) == 1 and hasattr(joined_parts[0], "shares"):
            return [tuple(share.shares(-(-share.rows // most))) for share in joined_parts[0].shares(workers)]
        positive_sizes = [size for size in map(part_size, parts) if size]
        sizes = [part_size(part) or max(1, sum(positive_sizes) // max(1, len(positive_sizes))) for part in parts]
        total, groups, offset = sum(sizes), [list[Part]() for _ in range(workers)], 0
        for part, size in zip(parts, sizes, strict=True):
            groups[min(len(groups) - 1, (2 * offset + size) * len(groups) // (2 * total))].append(part)
            offset += size
        if on_device:
            return [join_parts(group, most) for group in groups if group]
        return [tuple(group) for group in groups if group]

    def vertex_budget(self, ids: Ids) -> VertexBudget:
        """On the CPU what one task may take of a worker's memory, although nobody enforces it; on GPUs no bound."""
        order = self.options.chosen_reorder
        if self.backend.on_device:
            return VertexBudget(None, ids, order, on_device=True, tuning=self.tuning)
        share = max(LEAST_MEMORY, memory_of(self.executor, None))
        return VertexBudget(share, ids, order, MERGE_FACTOR, tuning=self.tuning)

    def canonical(self, frames: Frames, numbering: Numbering) -> Canonical:
        """Send keys by range, oriented ones where they can be cut to ranges of rows before they are sent."""
        if self._sends_rows(frames):
            return self._ranked(frames, numbering)
        executor, backend, rows, shift = self.executor, self.backend, frames.edge_rows, numbering.shift
        span, size, holders, handles = numbering.span, numbering.size, self._holders(frames), frames.frames.take()
        count, counts = self.partitions(rows), list[Any]()
        # Vertices rank by rows however edges travel: a checkpoint fits the same count with other workers.
        counts_rows = self.is_ranked_by_rows(rows)
        if span is not None:
            if counts_rows:
                ends_of = partial(count_ends, vertices=span, backend=backend)
                counts = self._row_counts(handles, holders, ends_of, size)
            ends = None if backend.on_device else lazy_keys_of
            inputs = PlacedInputs(handles, self.make_keys, (span, shift, backend), holders, ends)
            samples = [keys_in_range(sample, span, shift) for sample, _ in frames.samples]
            starts = quantiles(samples, [edges for _, edges in frames.samples], count)
        else:
            keys = executor.map("canonical", self.make_keys, handles, numbering.vertices, shift, backend)
            if counts_rows:  # as degrees of edges that may be repeated
                counts = self._row_counts(keys, holders, partial(add_degrees, shift=shift, backend=backend), size)
            inputs = PlacedInputs(keys, holders=holders)
            starts = splitters(executor, "canonical", keys, rows, count)
        return RowCounts(self.keep_distinct(inputs, rows, starts, shift).partitions, rows, counts=Handles(counts))

    def _holders(self, frames: Frames) -> Sequence[str | None]:
        """The worker that has each frame; None where there is one worker."""
        homes = self.homes(len(frames.frames))
        return frames.holders if frames.holders and homes[0] is not None else homes

    def _row_counts(
        self, handles: list[Any], holders: Sequence[str | None], add: Callable[..., Array], size: int
    ) -> list[Any]:
        """Handles of partial sums of the rows that name each vertex, which `add` adds to an array.

        What a worker has, or each of as many calls as it has threads, is counted in one call: a vector of all vertices
        for each of many frames would take more memory than these.
        """
        places = holders if holders[0] is not None else [number % self.threads for number in range(len(handles))]
        groups = dict[Any, list[Any]]()
        for handle, place in zip(handles, places, strict=True):
            groups.setdefault(place, []).append(handle)
        counts = Fold(partial(zero_degrees, size, self.backend), partial(add_each, add=add), total)
        return self._partial_sums("canonical", counts, list(groups.values()))

    def _sends_rows(self, frames: Frames) -> bool:
        """Whether edges are sent once, by ranges of ranked rows: ids are integers, and pieces travel in one step."""
        sources, count, rows = len(frames.frames), self.partitions(frames.edge_rows), frames.edge_rows
        if not self.is_ranked_by_rows(rows) or not frames.samples or sources * count > self.tuning.direct:
            return False
        return not self._whole(sources, _leaving(self._holders(frames), self.homes(count)), rows)

    def _ranked(self, frames: Frames, numbering: Numbering) -> RankedKeys:
        """Send keys that are oriented already, by the rows that name each vertex, to ranges of rows.

        Borders of ranges come from the samples of reading, once vertices are ranked: a frame that is read again after
        a worker's death may have its rows in another order, and leads to the same ranks and borders.
        """
        executor, backend, shift = self.executor, self.backend, numbering.shift
        rows, ids, edges, holders = frames.edge_rows, numbering.span, frames.frames, self._holders(frames)
        count, size, cut_rows = self.partitions(rows), numbering.size, self.tuning.cut_rows[backend.name]
        homes, ends, weights = self.homes(count), *map(list, zip(*frames.samples, strict=True))
        samples: Any
        if ids is None:
            samples = executor.submit("canonical", keys_of_samples, numbering.vertices, ends, shift, backend)
            dense = executor.map("canonical", dense_ends, edges.take(), numbering.vertices, backend)
            edges, ids = Handles(dense), DENSE
        else:
            samples = [keys_in_range(pair, ids, shift) for pair in ends]
        ends_of = partial(count_ends, vertices=ids, backend=backend)
        counts = self._row_counts(list(edges), holders, ends_of, size)
        call = list(counts), samples, weights, count, shift, backend
        if len({*holders}) == len(holders) and not _is_short(len(counts), size, rows):
            # A task less on the way of the edges: each worker ranks, and cuts its only frame, in one call.
            items = [
                executor.submit("canonical", ranked_in_ranges, frame, ids, cut_rows, *call, prefer=holder)
                for frame, holder in zip(edges.drain(), holders, strict=True)
            ]
            ranks = {
                holder: executor.submit("canonical", itemgetter(-1), item, prefer=holder, urgent=True)
                for item, holder in zip(items, holders, strict=True)
            }
        else:
            ranks = self._ranks("canonical", (ranks_and_starts, *call), len(counts), rows, size, holders)
            further = shift, backend, cut_rows
            items = [
                executor.submit("canonical", oriented_in_ranges, frame, ids, ranks[holder], *further, prefer=holder)
                for frame, holder in zip(edges.drain(), holders, strict=True)
            ]
        ranks_at_homes = [ranks.get(home, ranks[holders[0]]) for home in homes]
        calls = [(rank, number, shift, backend) for number, rank in enumerate(ranks_at_homes)]
        picks, departures = list(map(itemgetter, range(count))), _leaving(holders, homes)
        partitions = self._reduce("canonical", items, picks, departures, holders, homes, distinct_of_range, calls)
        # Workers make slabs while the client waits for the facts, by which it plans.
        slabs = [
            executor.submit("blocks", slab_of_range, keys, *call, prefer=home)
            for keys, call, home in zip(partitions, calls, homes, strict=True)
        ]
        return RankedKeys(Handles(partitions), rows, ranks=Handles(ranks_at_homes[:1]), slabs=Handles(slabs))

    def orient(self, edges: Canonical, numbering: Numbering) -> tuple[Oriented, Any]:
        """Orient each partition on its worker, unless edges are oriented already."""
        executor, backend, size, shift = self.executor, self.backend, numbering.size, numbering.shift
        if isinstance(edges, RankedKeys):
            degrees, partitions, (ranks,) = None, edges.partitions.take(), edges.ranks.take()
        else:
            degrees, partitions, ranks = self._oriented(edges, numbering)
        fold = (add_up_both_degrees if degrees is None else add_up_sources)(size, shift, backend)
        sums, cuts = self._partial_sums("orient", fold, list(partitions)), CUTS
        if isinstance(edges, RankedKeys):  # slabs are kept in their place, whose rows are cut already
            cuts = 0
            partitions.clear()
        calls = iter([(degrees, ranks, sums, cuts, backend)])
        del sums
        del degrees, ranks  # what nobody holds when calls are sent is never the client's to release
        # The client waits for it, so it runs first.
        (vectors,), ((facts, starts),) = executor.measured("orient-plan", _vectors_and_facts, calls, urgent=True)
        if isinstance(edges, RankedKeys):
            slabs = RowHandles(edges.slabs.take(), partial(self._keys_of_slabs, starts, shift))
            return self.oriented(slabs, vectors, facts, numbering, RankedGraph, starts=starts)
        return self.oriented(partitions, vectors, facts, numbering)

    def _oriented(self, edges: Canonical, numbering: Numbering) -> tuple[list[Any] | None, list[Any], Any]:
        """Orient partitions, and take them over; by degree, the partial sums of degrees are returned, too."""
        size, shift, backend, homes = numbering.size, numbering.shift, self.backend, self.homes(len(edges.partitions))
        rank_function: Callable[..., Array] = ranks_by_rows
        sums, degrees = edges.counts.take() if isinstance(edges, RowCounts) else [], None
        if not sums:
            degrees = self._partial_sums("orient", add_up_degrees(size, shift, backend), list(edges.partitions))
            sums, rank_function = degrees, ranks_of
        ranks = self._ranks("orient", (rank_function, list(sums), backend), len(sums), edges.rows, size, homes)
        calls = [(keys, ranks[home], shift, backend) for keys, home in zip(edges.partitions, homes, strict=True)]
        edges.partitions.take()
        return degrees, starmap(self.executor, "orient", oriented, calls), ranks[homes[0]]

    def _partial_sums(self, stage: str, fold: Fold[Any], partitions: list[Any]) -> list[Any]:
        """Fold partitions to one vector, or to a few partial sums: consumers add these sooner than a task would."""
        if len(partitions) <= self.tuning.partial_sums:
            return self.executor.map(stage, fold.alone, partitions)
        return [self.executor.fold(stage, fold, partitions)]

    def _ranks(
        self,
        stage: str,
        call: tuple[Any, ...],
        sums: int,
        rows: int,
        size: int,
        workers: Sequence[str | None],
    ) -> dict[str | None, Any]:
        """Handles of the ranks that `call` returns of partial sums of degrees, for each worker.

        Each worker computes them for itself where sending them takes longer than the tasks, and the partial sums no
        more memory than its edges. Nobody then waits for them to be computed elsewhere and sent.
        """
        if RANK_BYTES * size <= self.task_bytes or _is_short(sums, size, rows):
            return dict.fromkeys(workers, self.executor.submit(stage, *call))
        return {worker: self.executor.submit(stage, *call, prefer=worker) for worker in dict.fromkeys(workers)}

    def blocks(self, graph: Oriented, layout: Layout, edges: Any = None, where: Where = NOWHERE) -> Blocks:
        """Stack the single block of slabs that are made already; build other blocks as every plane does."""
        partitions = graph.partitions
        if layout.shape != (1, 1) or not isinstance(partitions, RowHandles):
            return super().blocks(graph, layout, edges, where)
        if (slabs := partitions.take_rows()) is None:
            return super().blocks(graph, layout, edges, where)
        return self.stack(slabs, layout, [None if edges is None else int(edges[0, 0])], where)

    def _keys_of_slabs(self, starts: list[int], shift: int, slabs: list[Any]) -> list[Any]:
        """Handles of the keys of slabs, each where its slab is; takes the slabs over."""
        homes, rows = self.homes(len(slabs)), [start >> shift for start in (0, *starts)]
        return [
            self.executor.submit("blocks", keys_of_slab, slab, row, shift, self.backend, prefer=home)
            for slab, row, home in zip(Handles(slabs).drain(), rows, homes, strict=True)
        ]

    def keys_by_block(self, graph: Oriented, layout: Layout) -> Inputs:
        """Keys are made once, where the edges are; every range then reads them."""
        if layout.shape == (1, 1):
            return Inputs(graph.partitions.take())
        return Inputs(self.keys_of_families(graph, layout))

    def stack(self, slabs: list[Any], layout: Layout, planned: list[int | None], where: Where) -> Blocks:
        """Stack each block on the worker that the plan names, and a single block on every worker."""
        calls = self.stacks(slabs, layout, planned)
        if len(calls) == 1:
            return {layout.places[0]: self.executor.replicated("blocks", checked_block, *calls.pop())}
        return self.stack_at_homes(calls, layout, where)

    # exchange between workers

    def exchange(self, stage: str, inputs: Inputs, starts: list[int], bound: int) -> Ranges:
        """Cut every input into slices that are tasks of their own; in two steps where these are many."""
        return exchange_tasks(self.executor, stage, inputs, starts, bound, self.tuning.direct)

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
        """Send only what leaves a worker, in pieces or whole, whichever takes less time."""
        executor, backend, count, sources = self.executor, self.backend, len(starts) + 1, len(inputs.handles)
        if sources * count > self.tuning.direct:
            return super().redistribute(stage, inputs, keys, starts, bound, reduce, calls, where)
        origin = (
            inputs if isinstance(inputs, PlacedInputs) else PlacedInputs(inputs.handles, inputs.keys, inputs.shared)
        )
        holders, homes = origin.holders or self.homes(sources), self.homes(count)
        homes = [where[number] or home if number < len(where) else home for number, home in enumerate(homes)]
        make = None if origin.keys is None else partial(keys_of_input, origin.ends or origin.keys, origin.shared)
        departures = _leaving(holders, homes)
        is_whole = self._whole(sources, departures, keys)
        # Many ranges, or pieces of host arrays: each partition is cut once. Else every range picks its own keys.
        handles = Handles(origin.handles)
        origin.handles.clear()
        if count > self.tuning.passes[backend.name] or not (is_whole or backend.on_device):
            cut = make, starts, bound, backend
            items = [
                executor.submit(stage, all_ranges, handle, *cut, prefer=holder)
                for handle, holder in zip(handles.drain(), holders, strict=True)
            ]
            picks: list[Callable[[Any], list[Any]]] = list(map(itemgetter, range(count)))
        else:
            items = handles.take()
            is_joined = backend.on_device  # where each piece travels as one array
            picks = [Pick(make, span, backend, count == 1, is_joined) for span in pairwise([0, *starts, bound])]
        picked_inputs = [[]] * count if is_whole else departures
        return self._reduce(stage, items, picks, picked_inputs, holders, homes, reduce, calls)

    def _reduce(
        self,
        stage: str,
        items: list[Any],
        picks: Sequence[Callable[[Any], list[Any]]],
        picked_inputs: Sequence[list[int]],
        holders: Sequence[str | None],
        homes: Sequence[str | None],
        reduce: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
    ) -> list[Any]:
        """Reduce each range: pieces of `picked_inputs` are picked where these are; other inputs travel whole."""
        executor, results = self.executor, []
        for number, pick in enumerate(picks):
            pieces = [
                executor.submit(stage, pick, items[k], prefer=holders[k], urgent=True) for k in picked_inputs[number]
            ]
            whole_inputs = [handle for k, handle in enumerate(items) if k not in picked_inputs[number]]
            call = whole_inputs, pieces, pick, reduce, calls[number]
            results.append(executor.submit(stage, reduce_range, *call, prefer=homes[number]))
        return results

    def _whole(self, sources: int, departures: list[list[int]], keys: int) -> bool:
        """Whether inputs travel whole: sending only pieces saves less time than the tasks take that cut these out."""
        count = len(departures)
        saving = KEY_BYTES * keys * (sources - 1) * (count - 1) // (sources * count)  # bytes, for each worker
        return 1 in (sources, count) or saving <= sum(map(len, departures)) * self.task_bytes


def _is_short(sums: int, size: int, rows: int) -> bool:
    """Whether partial sums of degrees in every worker would take more memory than its edges; or there is only one."""
    return sums < 2 or sums**2 * size > rows


def _leaving(holders: Sequence[str | None], homes: Sequence[str | None]) -> list[list[int]]:
    """For each range, the inputs from which keys have to travel to its home."""
    return [[number for number, holder in enumerate(holders) if holder != home] for home in homes]


def _read(
    parts: tuple[Part, ...],
    upstream: list[Any],
    stride: Callable[[int], int],
    backend: Any,
    runs: int,
    colours: Any,
    one_partition: int,
) -> Measured:
    edges, facts = read_group(list(zip(parts, upstream, strict=True)), stride, backend, runs, colours)
    if facts.rows >= one_partition and not backend.on_device:
        trim_arrow()  # of decoding
    return Measured(backend.edge_frame(edges), facts)


def _vectors_and_facts(
    degrees: list[Array] | None, ranks: Array | Ranks, sums: list[Array], cuts: int, backend: Any
) -> Measured:
    rank, starts = ranks[:2] if isinstance(ranks, tuple) else (ranks, list[int]())
    order, outward = inverse(rank, backend), sum_of(sums)
    if degrees is None:  # sums of degrees and out-degrees by rank
        degree, outward = degrees_by_id(outward, rank)
        vectors = [degree, order, outward]
    else:
        vectors = [sum_of(degrees), order, outward]
    return Measured(vectors, (facts_for_plan(vectors, cuts, backend), starts))
