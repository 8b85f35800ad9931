"""Preparation of a graph: runs the stages read, canonical, orient, reorder, plan and blocks, in this order."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dasktc.backends import kernel_times, tasks_a_worker
from dasktc.backends.vertex_maps import check_size
from dasktc.errors import InputError
from dasktc.executors.base import Executor
from dasktc.executors.dask.progress import tell_scheduler
from dasktc.executors.offers import Offer, memory_of, offers_of
from dasktc.executors.progress.tracker import Progress, tracker_of
from dasktc.io.source import Source
from dasktc.options import Options, bytes_of
from dasktc.pipeline.autotune import choose, look
from dasktc.pipeline.build_blocks import Blocks, Partition, lay_out
from dasktc.pipeline.planes import Oriented, Sharded, sharded, with_vertices
from dasktc.pipeline.planes import choose as choose_plane
from dasktc.pipeline.stages.columns import Columns
from dasktc.pipeline.stages.orient import half_weight
from dasktc.pipeline.vertex_assignment import own_parts
from dasktc.planning.grid import Shape
from dasktc.planning.placement import builders
from dasktc.planning.plan import Limits, Plan, make_plan
from dasktc.planning.rates import RATES
from dasktc.planning.schemes import Sizes
from dasktc.planning.scratch import is_cut, plan_count, scratch_of
from dasktc.registry import ORDERS, check_has_kernel, check_stages
from dasktc.wording import advice

__all__ = [
    "Prepared", "Progress", "choose_backend", "half_weight_of", "limits_of", "plan_again", "prepare_blocks",
    "prepare_edges", "silent",
]  # fmt: skip


def silent(stage: str, done: int, total: int) -> None:
    """Ignore a progress report."""


@dataclass(frozen=True)
class Prepared:
    """An oriented, reordered graph and the plan of its count; the blocks are not built yet."""

    graph: Oriented
    partition: Partition
    """Assigns the vertices to the plan's blocks."""
    plan: Plan
    numbered: Any
    """Handle of VertexMap, or Sharded. Map of the caller's ids, or these ids in shards."""
    rows: int
    loops: int
    """Rows read, and how many of them were loops."""
    source: Source
    """Without its parts, so that the caller's data is not kept alive; its `read` says what was read."""
    options: Options
    """With kernel and order chosen."""
    seconds: dict[str, float]
    """Wall time of read and prepare."""
    attributes: Any = None
    """EdgeAttributes or None. Weights and directions (`pipeline.attributes`)."""
    columns: Columns = field(default_factory=Columns)
    """Columns of vertices and of edges, for surveys."""
    half_weight: int = 0
    """That of the rows (`stages.orient.half_weight`), where edges have changed since vertices were ranked."""

    @property
    def vertices(self) -> Any:
        """Handle of the map of the caller's ids, or these ids in shards; a deferred map is built on first access."""
        is_whole = isinstance(self.numbered, Sharded) and self.plan.shards == 1
        return self.numbered.whole if is_whole else self.numbered

    @property
    def sizes(self) -> Sizes:
        """Sizes of the plan's blocks."""
        return self.partition.sizes

    @property
    def wedges(self) -> int:
        """Wedges that all counting tasks together must stream."""
        return self.partition.wedges

    @property
    def weights(self) -> int:
        """At least half of the sum of what vertices are ranked by (`GraphBounds.edges`)."""
        return max(self.plan.edges, self.rows - self.loops, self.half_weight)


def half_weight_of(executor: Executor, graph: Oriented) -> int:
    """Return `stages.orient.half_weight` of a whole graph."""
    shares = graph.out_degree.map(executor, "plan", half_weight, executor.backend)
    return max(executor.gather(shares), default=0)


def choose_backend(executor: Executor, options: Options) -> tuple[Options, list[Offer]]:
    """Replace backend "auto" by one that every worker can use; the client itself need not be able to use it.

    Returns
    -------
    options : Options
        With a backend that is not "auto".
    offers : list of Offer
        What the processes that run calls offer to the backend, if they were asked.

    Raises
    ------
    InputError
        A worker cannot use the wanted backend, or the backend does not have the wanted kernel.
    """
    check_stages(options.kernel)
    backend = "cuda" if options.backend == "auto" else options.backend
    offers = offers_of(executor, backend) if backend != "cpu" else []
    reasons = [offer.why for offer in offers if offer.why]
    if reasons and options.backend != "auto":
        raise InputError(reasons[0])
    result = replace(options, backend="cpu" if reasons else backend)
    check_has_kernel(result.backend, result.kernel)
    return result, [] if reasons else offers


def prepare_edges(
    executor: Executor,
    source: Source,
    options: Options,
    progress: Progress = silent,
    limits: Limits | None = None,
    planned_for: str | None = None,
    value_bytes: int = 0,
) -> Prepared:
    """Run the stages up to the plan: read, canonical, orient, reorder, plan.

    Parameters
    ----------
    executor : Executor
        With the options' backend.
    source : Source
    options : Options
    progress : callable, optional
    limits : Limits, optional
        Limits of the workers that the plan is for, where these are not the executor's.
    planned_for : str, optional
        The backend of those workers; default: the options' backend.
    value_bytes : int
        Bytes of values that will be kept for each edge beside the blocks.
    """
    tracker = tracker_of(progress)
    tell_scheduler(tracker, executor)
    if source.size is not None:
        tracker.source_bytes = source.size.stored
    with tracker.watching(executor):
        backend, start = options.chosen_backend, time.perf_counter()
        assert executor.backend.name == backend
        plane = choose_plane(executor, options)
        # 1. Read the parts of the source to edge frames.
        tracker("read", 0, 1)
        frames = plane.read(source)
        read_end = time.perf_counter()
        # 2. Make edges distinct: undirected over dense ids, or directed over ranks by rows.
        tracker("canonical", 0, 1)
        numbering = plane.number(frames, source.ids)
        plane = with_vertices(plane, numbering)
        edges = plane.canonical(frames, numbering)
        plane = plane.for_edges(edges.rows)
        executor = plane.executor
        # 3. Direct undirected edges from lower to higher degree, or to the end that more rows name.
        tracker("orient", 0, 1)
        graph, names = plane.orient(edges, numbering)
        size, shift, budget = graph.order.size, numbering.shift, numbering.budget
        check_size(size)
        # 4. Choose kernel and order, and relabel by the order.
        tracker("reorder", 0, 1)
        is_automatic = options.kernel == "auto"
        call_memory = None if planned_for else plane.stage_memory

        def cut(options: Options) -> bool:
            numbers = limits or replace(limits_of(executor, options), value_bytes=value_bytes)
            has_file = options.assign_file is not None and options.parts != 1
            return has_file or is_cut(options, size, graph.edges, numbers, call_memory, planned_for, frames.edge_rows)

        options, reason = choose(options, look(executor, graph), cut)
        order = ORDERS[options.chosen_reorder]
        graph = plane.reorder(graph, order, shift)
        # 5. Choose scheme, n and m, and project bytes.
        tracker("plan", 0, 1)
        limits = limits or replace(limits_of(executor, options), value_bytes=value_bytes)
        shape = Shape(size, shift, order.ordered, sort_rows=options.sort_rows)
        if options.assign_file is not None:  # `Options` refuses it for schemes that assign no vertices
            external_ids = names.whole if isinstance(names, Sharded) and plane.shards == 1 else names
            assignment, parts = own_parts(plane, options.assign_file, source.ids, external_ids, graph, limits.parts)
            limits, shape = replace(limits, parts=parts), shape._replace(own=assignment)
        plan, partition, options = plan_count(
            options,
            size,
            graph.edges,
            lambda scheme, parts: lay_out(plane, graph, scheme, parts, options, shape),
            limits,
            reason,
            automatic=is_automatic,
            memory_per_call=call_memory,
            planned_for=planned_for,
            rows=frames.edge_rows,
        )
        plan = replace(plan, shards=plane.shards, numbering=budget.why(size), proxies=partition.proxies)
        seconds = {"read": read_end - start, "prepare": time.perf_counter() - read_end}
        source = replace(source, parts=(), reading=frames.reading)
        return Prepared(graph, partition, plan, names, frames.rows, frames.loops, source, options, seconds)


def limits_of(executor: Executor, options: Options, offers: Sequence[Offer] = ()) -> Limits:
    """Collect what the workers offer and the options ask for, as the limits of a plan.

    `offers` is what they have just answered; default: they are asked.
    """
    return Limits(
        workers=len(executor.worker_threads),
        memory=memory_of(executor, bytes_of(options.memory), offers),
        partition=options.partition,
        parts=options.parts,
        splits=options.splits,
        tasks_a_worker=tasks_a_worker(executor.backend.name),
        column_parts=options.column_parts,
        rates=RATES[executor.backend.name],
        times=kernel_times(executor.backend.name, options),
    )


def plan_again(executor: Executor, prepared: Prepared, options: Options) -> Plan:
    """Plan the same blocks and splits for another kernel, whose scratch may be larger.

    Raises
    ------
    InputError
        The plan does not fit the memory for which the blocks were planned.
    """
    plan = prepared.plan
    limits = Limits(plan.workers, plan.memory, plan.partition, plan.parts, plan.splits, column_parts=plan.column_parts)
    memory = choose_plane(executor, options).stage_memory
    scratch = scratch_of(options, plan.edges, memory, rows=prepared.weights)
    new_plan, _ = make_plan(plan.vertices, plan.edges, lambda *_: prepared.partition, scratch, limits)
    new_plan = replace(new_plan, shards=plan.shards, numbering=plan.numbering)
    if not new_plan.fits:
        cause = f"kernel {options.chosen_kernel} needs more scratch"
        raise InputError(f"{new_plan.why}: {cause}; prepare with a larger {advice('memory')}")
    return replace(new_plan, proxies=plan.proxies, choice=choose(options, None)[1])


def prepare_blocks(
    executor: Executor, prepared: Prepared, options: Options, progress: Progress = silent
) -> tuple[Prepared, Blocks]:
    """Build the plan's blocks, the last stage before counting, and check that they hold every edge.

    Parameters
    ----------
    executor : Executor
    prepared : Prepared
        Its partitions of edges are taken over.
    options : Options
    progress : callable, optional

    Returns
    -------
    prepared : Prepared
        With the seconds of this stage added.
    blocks : dict of (i, j) to handle of OrientedCSR

    Raises
    ------
    InputError
        The largest task does not fit a worker's memory.
    CountError
        A block does not have the edges that it should have.
    """
    plan, start = prepared.plan, time.perf_counter()
    if not plan.fits:
        is_automatic = (options.partition, options.parts) == ("auto", None)
        alternative = "" if is_automatic else f", or let {advice(partition='auto')} choose n"
        raise InputError(f"{plan.why}: the graph is too large for it; raise {advice('memory')}{alternative}")
    # 6. Build CSR blocks on the workers.
    plane = sharded(choose_plane(executor, options), plan.shards)
    executor.store.set_task_memory(plan.bytes_per_task, plan.memory)
    tracker = tracker_of(progress)
    tracker("blocks", 0, 1)
    homes = builders(plan, prepared.sizes, executor.worker_threads)
    with tracker.watching(executor):
        blocks = prepared.partition.build(plane, prepared.graph, homes)
        executor.wait(blocks.values())
    seconds = dict(prepared.seconds, prepare=prepared.seconds["prepare"] + time.perf_counter() - start)
    return replace(prepared, seconds=seconds), blocks
