"""The plane of a cluster with room: partitions are values in the workers' memory, and travel between them as inputs.

What happens to an edge: the parts of a source are grouped to one partition for each worker thread, and the partition
has a home. Keys are sent by range: one task for each piece that leaves its worker, and none for those that stay. On the
CPU, and where ranges are many, a task more cuts each partition into all of them; else each task picks its keys itself.
Where pieces are smaller than what travels in the time of these tasks, each range takes whole partitions instead, and
picks its own keys out of them. Every worker ranks the vertices for itself where that is sooner than to wait for ranks.

A task costs the scheduler a millisecond, and a wait costs the client ten. So results carry the numbers that a plan
needs of them (`Executor.measured`), and most graphs, which become a single block, have its slabs built while the plan
is made: these depend on nothing that is planned. Every worker then stacks the block for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any

from dasktc.executors.base import Fold, starmap
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.measured import Measured
from dasktc.executors.offers import memory_of
from dasktc.executors.upstream import upstream_of
from dasktc.io.evidence import runs_of
from dasktc.io.source import Part, Source
from dasktc.options import Ids, bytes_of
from dasktc.pipeline.planes.base import Blocks, Plane, add_up_degrees, add_up_sources, facts_for_plan, read_group
from dasktc.pipeline.planes.exchange import Inputs, Ranges, exchange, exchange_in_two_steps, splitters
from dasktc.pipeline.planes.graph import Canonical, Frames, Handles, Numbering, Oriented
from dasktc.pipeline.planes.vertex_budget import IN_MEMORY, LEAST_MEMORY, VertexBudget
from dasktc.pipeline.stages.blocks import checked_block, every, slab_of_ranks
from dasktc.pipeline.stages.canonical import keys_in_range, lazy_keys_of
from dasktc.pipeline.stages.orient import CUTS, Ranks, oriented, oriented_in_ranges, ranks_and_starts, ranks_of, sum_of
from dasktc.pipeline.stages.read import NoPart, join_parts, part_size
from dasktc.pipeline.stages.shuffle import Pick, all_ranges, keys_of_input, quantiles, reduce_range, sample_step
from dasktc.planning.grid import Layout
from dasktc.planning.placement import NOWHERE, Where
from dasktc.registry import ORDERS, SCHEMES

__all__ = ["KEY_BYTES", "RANK_BYTES", "PlacedFrames", "PlacedInputs", "SlabbedGraph", "WorkersPlane"]

Array = Any
KEY_BYTES, RANK_BYTES = 8, 4


@dataclass(frozen=True, eq=False)
class PlacedFrames(Frames):
    """Frames, with the worker that holds each where Dask chose it; else they are at their homes."""

    holders: Sequence[str | None] = ()


@dataclass(frozen=True)
class PlacedInputs(Inputs):
    """Inputs of an exchange between workers.

    Attributes
    ----------
    holders : sequence of str or None
        The worker that has each input; empty: its home.
    ends : callable (input, *shared) -> list of `radix.LazyKeys`, or None
        Returns edges that stand for the same keys, which are made whenever they are read.
    """

    holders: Sequence[str | None] = ()
    ends: Callable[..., Any] | None = None


@dataclass(frozen=True, eq=False)
class SlabbedGraph(Oriented):
    """An oriented graph whose partitions are cut: each has, for every range of rows, a list of arrays.

    Attributes
    ----------
    slabs : Handles
        Slabs of the single block of all edges, one for each range of rows; they are built while the plan is made.
    """

    slabs: Handles = field(default_factory=Handles)


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
        runs = runs_of(len(parts))
        calls = [(group, [next(upstream) for _ in group], step, self.backend, runs, source.sample) for group in groups]
        has_holders = any(part.upstream is not None for part in parts)  # by Dask, which holds them
        homes = () if has_holders else self.homes(len(groups))
        handles, facts = executor.measured("read-rows", _read, calls, homes)
        locations = executor.faults.ask(executor.client.who_has, handles) if has_holders else {}
        holders = [next(iter(locations.get(handle.key, ())), None) for handle in handles] if has_holders else []
        frames = self.frames(source, [part for group in groups for part in group], handles, facts)
        return PlacedFrames(
            **{attribute.name: getattr(frames, attribute.name) for attribute in fields(frames)}, holders=holders
        )

    def _groups(self, parts: Sequence[Part]) -> list[tuple[Part, ...]]:
        """Group neighbouring parts into as many groups of about equal size as there are worker threads.

        Parts that carry their rows, or that need a value first, stay alone. Generated parts are joined and cut anew.
        """
        on_device, workers = self.backend.on_device, self.threads
        if any(part.upstream is not None or hasattr(part, "places") for part in parts):
            rows = sum(getattr(part, "rows", 0) for part in parts)
            largest = min(self.piece_edges(rows), -(-rows // workers))
            return [(part,) for part in (join_parts(parts, largest) if on_device else parts)]
        joined_parts = join_parts(parts, sum(map(part_size, parts)))
        if len(joined_parts) == 1 and hasattr(joined_parts[0], "shares"):
            return [(share,) for share in joined_parts[0].shares(workers)]
        positive_sizes = [size for size in map(part_size, parts) if size]
        sizes = [part_size(part) or max(1, sum(positive_sizes) // max(1, len(positive_sizes))) for part in parts]
        total, groups, offset = sum(sizes), [list[Part]() for _ in range(workers)], 0
        for part, size in zip(parts, sizes, strict=True):
            groups[min(len(groups) - 1, (2 * offset + size) * len(groups) // (2 * total))].append(part)
            offset += size
        if on_device:
            return [join_parts(group, sum(map(part_size, group))) for group in groups if group]
        return [tuple(group) for group in groups if group]

    def vertex_budget(self, ids: Ids) -> VertexBudget:
        """On the CPU what one task may take of a worker's memory, although nobody enforces it; on GPUs no bound."""
        order, budget_bytes = self.options.chosen_reorder, bytes_of(self.options.memory)
        if self.backend.on_device:
            return VertexBudget(None, ids, order, on_device=True, tuning=self.tuning)
        share = memory_of(self.executor, budget_bytes)
        budget = VertexBudget(max(LEAST_MEMORY, share), ids, order, IN_MEMORY, tuning=self.tuning)
        return budget._replace(memory=budget_bytes / share) if budget_bytes and share else budget

    def canonical(self, frames: Frames, numbering: Numbering) -> Canonical:
        """Send keys by range; they are made as they are cut where ids need no map."""
        executor, backend, rows, shift = self.executor, self.backend, frames.edge_rows, numbering.shift
        span, count, handles = numbering.span, self.partitions(rows), frames.frames.take()
        holders = frames.holders if isinstance(frames, PlacedFrames) else ()
        if span is not None:
            ends = None if backend.on_device else lazy_keys_of
            inputs = PlacedInputs(handles, self.make_keys, (span, shift, backend), holders, ends)
            samples = [keys_in_range(sample, span, shift) for sample, _ in frames.samples]
            starts = quantiles(samples, [edges for _, edges in frames.samples], count)
        else:
            keys = executor.map("canonical", self.make_keys, handles, numbering.vertices, shift, backend)
            inputs = PlacedInputs(keys, holders=holders)
            starts = splitters(executor, "canonical", keys, rows, count)
        return self.keep_distinct(inputs, rows, starts, shift)

    def orient(self, edges: Canonical, numbering: Numbering) -> tuple[Oriented, Any]:
        """Orient each partition on its worker; where a single block is likely, cut it for the block's slabs as well."""
        executor, backend, size, shift = self.executor, self.backend, numbering.size, numbering.shift
        degrees = self._partial_sums(add_up_degrees(size, shift, backend), list(edges.partitions))
        # Ranges of rows for slabs come from samples of the canonical keys, once these are ranked.
        count, samples = self._slabs_ahead(edges), None
        if count:
            step = sample_step(edges.rows // len(edges.partitions), count, len(edges.partitions))
            samples = executor.map("blocks", every, list(edges.partitions), step)
        ranks = self._ranks(degrees, edges, numbering, samples, count)
        calls = [(*pair, shift, backend) for pair in zip(edges.partitions, ranks, strict=True)]
        edges.partitions.take()
        partitions = starmap(executor, "orient", oriented_in_ranges if count else oriented, calls)
        outward = self._partial_sums(add_up_sources(size, shift, backend), list(partitions))
        # Slabs are submitted before the statistics, for which the client waits.
        planner = self.homes(1)[0] if count else None
        slabs = self._build_slabs(list(partitions), ranks, outward, planner, numbering, count) if count else []
        call = degrees, ranks[0], outward, CUTS, backend
        (vectors,), (facts,) = executor.measured("orient-plan", _vectors_and_facts, [call], [planner], urgent=True)
        return self.oriented(partitions, vectors, facts, numbering, SlabbedGraph, slabs=Handles(slabs))

    def _partial_sums(self, fold: Fold[Any], partitions: list[Any]) -> list[Any]:
        """Fold partitions to one vector, or to a few partial sums: consumers add these sooner than a task would."""
        if len(partitions) <= self.tuning.partial_sums:
            return self.executor.map("orient", fold.alone, partitions)
        return [self.executor.fold("orient", fold, partitions)]

    def _ranks(
        self, degrees: list[Any], edges: Canonical, numbering: Numbering, samples: list[Any] | None, count: int
    ) -> list[Any]:
        """Handles of the ranks, one for each partition; with samples those of Ranks with `count` ranges.

        Each partition's worker computes them for itself where sending them takes longer than the tasks, and the partial
        sums of degrees no more memory than its edges. Nobody then waits for them to be computed elsewhere and sent.
        """
        executor, size = self.executor, numbering.size
        homes = self.homes(len(edges.partitions))
        if len(degrees) < 2 or RANK_BYTES * size <= self.task_bytes or len(degrees) ** 2 * size > edges.rows:
            homes = [None] * len(homes)
        function, arguments = (
            (ranks_of, ()) if samples is None else (ranks_and_starts, (samples, count, numbering.shift))
        )
        ranks = {
            home: executor.submit("orient", function, list(degrees), *arguments, self.backend, prefer=home)
            for home in dict.fromkeys(homes)
        }
        return [ranks[home] for home in homes]

    # slabs of a single block, built while the plan is made

    def _slabs_ahead(self, edges: Canonical) -> int:
        """Number of ranges of rows for which slabs are built ahead; 0: none.

        Slabs are for a plan that probably has a single block, whose rows are the vertices by degree: kernels that
        `auto` takes on the CPU have that order. Pieces of partitions must be exchanged. Slabs of a plan that has other
        blocks are dropped.
        """
        partition, parts, sources = self.options.partition, self.options.parts, len(edges.partitions)
        is_single = parts in (None, 1) if partition == "auto" else SCHEMES[partition].replicated
        count = self.partitions(edges.rows)
        if not is_single or not ORDERS[self.options.chosen_reorder].ordered or self.backend.on_device:
            return 0
        homes = self.homes(sources), self.homes(count)
        cuts = sources * count <= self.tuning.direct and not self._whole(sources, _leaving(*homes), edges.rows)
        return count if cuts else 0

    def _build_slabs(
        self,
        partitions: list[Any],
        ranks: list[Any],
        outward: list[Any],
        planner: str | None,
        numbering: Numbering,
        count: int,
    ) -> list[Any]:
        """Submit the slab of each range of rows; on the planner it waits for `outward`.

        Had that worker begun with its slab, the statistics, and with them the client's plan, would wait for it.
        """
        size, shift = numbering.size, numbering.shift
        holders, homes = self.homes(len(partitions)), self.homes(count)
        worker_ranks = dict(zip(holders, ranks, strict=True))
        loose_bits, calls = 0 if self.options.sort_rows else shift, []
        for number, home in enumerate(homes):
            dependencies = outward if home == planner else []
            calls.append(
                (worker_ranks.get(home, ranks[0]), number, size, shift, loose_bits, self.backend, dependencies)
            )
        picks = list(map(itemgetter, range(count)))
        return self._reduce("blocks", partitions, picks, _leaving(holders, homes), holders, homes, slab_of_ranks, calls)

    def blocks(self, graph: Oriented, layout: Layout, edges: Any = None, where: Where = NOWHERE) -> Blocks:
        """Assemble the single block from the slabs that were built ahead; build other blocks as every plane does."""
        slabs = graph.slabs.take() if isinstance(graph, SlabbedGraph) else []
        if slabs and layout.shape == (1, 1):
            graph.partitions.take()
            return self.stack(slabs, layout, [None if edges is None else int(edges[0, 0])], where)
        slabs.clear()
        return super().blocks(graph, layout, edges, where)

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
        has_many_slices = len(inputs.handles) * (len(starts) + 1) > self.tuning.direct
        function = exchange_in_two_steps if has_many_slices and starts else exchange
        return function(self.executor, stage, inputs, starts, bound)

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


def _leaving(holders: Sequence[str | None], homes: Sequence[str | None]) -> list[list[int]]:
    """For each range, the inputs from which keys have to travel to its home."""
    return [[number for number, holder in enumerate(holders) if holder != home] for home in homes]


def _read(
    parts: tuple[Part, ...], upstream: list[Any], stride: Callable[[int], int], backend: Any, runs: int, colours: Any
) -> Measured:
    edges, facts = read_group(list(zip(parts, upstream, strict=True)), stride, backend, runs, colours)
    return Measured(backend.edge_frame(edges), facts)


def _vectors_and_facts(
    degrees: list[Array], ranks: Array | Ranks, outward: list[Array], cuts: int, backend: Any
) -> Measured:
    vectors = [sum_of(degrees), ranks.rank if isinstance(ranks, Ranks) else ranks, sum_of(outward)]
    return Measured(vectors, facts_for_plan(vectors, cuts, backend))
