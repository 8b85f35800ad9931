"""Measurements of `dasktc bench scaling` in fresh processes: tasks one by one, and counts on real workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.bench.simulate import Fetches
from dasktc.errors import CountError
from dasktc.planning.placement import homes, needed, shares

if TYPE_CHECKING:
    from dasktc.api.graph import Graph
    from dasktc.counting.result import TriangleCount
    from dasktc.counting.tasks import Job, Record
    from dasktc.io.source import Source
    from dasktc.options import Options
    from dasktc.planning.plan import Plan

__all__ = ["Priced", "Real", "price", "real_run"]

PARTS, SPLITS = 4, 4
"""n and m for the nearly empty graph that measures the scheduler's time: 256 counting tasks."""


@dataclass(frozen=True)
class Priced:
    """The tasks of a plan, with the counting seconds of each."""

    workers: int
    parts: int
    splits: int
    edges: int
    triangles: int
    space_imbalance: float | None
    costs: list[float]
    """Seconds of each task, in the order of `count.jobs`."""
    triples: list[tuple[int, ...]]
    """Numbers of the blocks of each triple."""
    block_bytes: list[int]

    def fetches(self, rate: float) -> Fetches:
        """The blocks that its tasks need, received at `rate`."""
        needs = [triple for triple in self.triples for _ in range(self.splits)]
        sizes = np.array(self.block_bytes)
        places = homes(*needed(np.array(self.triples), self.splits, np.arange(self.workers)), sizes)
        return Fetches(needs, self.block_bytes, rate, places.tolist())


@dataclass(frozen=True)
class Real:
    """Measurements of a count on real workers with one thread each."""

    workers: int
    triangles: int
    kernel: float
    """Counting seconds of the busiest worker."""
    time_imbalance: float | None
    seconds: float
    """Wall time of the count."""
    overhead: float
    latency: float
    """For a nearly empty graph: wall seconds per task, and the wall seconds that do not grow with the tasks."""
    parts: int = 1
    splits: int = 1
    space_imbalance: float | None = None


def price(source: Source, options: Options, workers: list[int], runs: int) -> list[Priced]:
    """Count the tasks of plans for several numbers of workers, one after another in this process.

    Parameters
    ----------
    source : Source
    options : Options
    workers : list of int
    runs : int
        Number of times that each task is counted; its least time is taken.
    """
    from dasktc.api.count import build
    from dasktc.executors.local import LocalExecutor

    graph = build(LocalExecutor(), source, options)
    backend = graph._context.options.chosen_backend
    _count(graph, plan_for(graph.plan, 1, options.splits, backend), 1)  # compiles, or loads compiled code
    return [_price(graph, plan_for(graph.plan, number, options.splits, backend), runs) for number in workers]


def plan_for(plan: Plan, workers: int, splits: int | None = None, backend: str = "cpu") -> Plan:
    """Plan the same blocks for another number of workers.

    Parameters
    ----------
    plan : Plan
    workers : int
    splits : int, optional
        m where the caller set it.
    backend : str
    """
    from dasktc.backends import tasks_a_worker
    from dasktc.planning.plan import splits_for

    triples = plan.tasks // plan.splits
    m = splits or splits_for(workers, triples, tasks_a_worker(backend))
    return replace(plan, workers=workers, splits=m, tasks=m * triples)


def _price(graph: Graph, plan: Plan, runs: int) -> Priced:
    counts = [_count(graph, plan, plan.workers) for _ in range(runs)]
    if len({triangles for _, triangles in counts}) != 1:
        raise CountError("two counts of one plan differ: report this with the output of `dasktc info`")
    costs = [min(seconds) for seconds in zip(*(costs for costs, _ in counts), strict=True)]
    number = {place: k for k, place in enumerate(graph._context.blocks)}
    triples = [
        tuple(number[place] for place in triple.places)
        for triple, splits in plan.tasks_of_triples()
        for _ in range(splits // plan.splits)
    ]
    return Priced(
        workers=plan.workers,
        parts=plan.parts,
        splits=plan.splits,
        edges=plan.edges,
        triangles=counts[0][1],
        space_imbalance=plan.space_imbalance,
        costs=costs,
        triples=triples,
        block_bytes=[int(block.nbytes) for block in graph._context.blocks.values()],
    )


def _count(graph: Graph, plan: Plan, workers: int) -> tuple[list[float], int]:
    """Seconds of each task, and all triangles; each worker's share is counted in a new thread, which has no tables."""
    from dasktc.counting.tasks import check, jobs

    work = jobs(plan, graph._context.options.chosen_kernel, graph._context.options.chosen_backend)
    records = []
    for share in shares(len(work), workers):
        part = work[share.start : share.stop]
        with ThreadPool(1) as fresh:
            records += fresh.apply(_one_by_one, (graph, part))
    check(records, plan, graph._context.prepared.wedges)
    return [record.count.seconds for record in records], sum(record.count.triangles for record in records)


def _one_by_one(graph: Graph, part: list[Job]) -> list[Record]:
    from dasktc.counting.tasks import count_jobs

    return list(count_jobs(graph._context.executor, graph._context.blocks, part))


def real_run(source: Source, plans: list[Options], workers: int, runs: int) -> list[Real]:
    """Count on new worker processes by each plan, and measure the scheduler's time per task there.

    Parameters
    ----------
    source : Source
    plans : list of Options
    workers, runs : int
        Number of worker processes, and number of counts, of which the least times are taken.
    """
    from dasktc.api.count import build
    from dasktc.executors.connect import connect
    from dasktc.executors.place import Place

    counts = []
    with connect(Place(workers=workers), plans[0].chosen_backend) as tasks:
        for options in plans:
            graph = build(tasks, source, options)
            graph.triangle_count()  # a warm-up: compiles, and copies the blocks to the workers
            counts.append([graph.triangle_count() for _ in range(runs)])
            del graph
        dask = _dask_seconds(tasks, plans[0])
    return [_real(workers, results, *dask) for results in counts]


def _real(workers: int, results: list[TriangleCount], overhead: float, latency: float) -> Real:
    busy = [float(result.tasks.groupby("worker")["seconds"].sum().max()) for result in results]
    best = results[busy.index(min(busy))]
    wall, plan = min(result.seconds["count"] for result in results), best.plan
    shape = plan.parts, plan.splits, plan.space_imbalance
    return Real(workers, best.triangles, min(busy), best.stats.time_imbalance, wall, overhead, latency, *shape)


def _dask_seconds(tasks: Any, options: Options) -> tuple[float, float]:
    """Dask's overhead for a nearly empty graph: wall seconds per task, and before and after all tasks."""
    from dasktc.api.count import build
    from dasktc.io.generators.synthetic import kronecker

    small = kronecker(4)
    empty = build(tasks, small, replace(options, partition="hash2d", parts=PARTS, splits=SPLITS))
    single = build(tasks, small, replace(options, partition="whole", splits=1))
    whole, first = (min(graph.triangle_count().seconds["count"] for _ in range(4)) for graph in (empty, single))
    overhead = (whole - first) / (empty.plan.tasks - 1)
    return overhead, max(0.0, first - overhead)
