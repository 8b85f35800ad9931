"""Counts of `dasktc bench gpu` on clusters of one GPU and more."""

from __future__ import annotations

import time
from statistics import median
from typing import Any, NamedTuple

from dasktc.api.count import build
from dasktc.api.graph import Graph
from dasktc.backends import get_backend
from dasktc.backends.cuda import block_cache as kept
from dasktc.bench.gpu_cases import Case
from dasktc.bench.report import DEVICE, EXACT, Say, Section
from dasktc.counting.result import TriangleCount
from dasktc.errors import CountError, InputError
from dasktc.executors.base import Executor
from dasktc.executors.connect import connect
from dasktc.executors.place import Place
from dasktc.executors.process import gpu_discovery as gpus
from dasktc.options import Options
from dasktc.wording import plural

__all__ = ["Counted", "measure", "numbers", "several"]


class Counted(NamedTuple):
    """Measurements of a graph on a cluster: GPUs, the kernel that counted, and milliseconds."""

    gpus: int
    kernel: str
    prepare: float
    first: float
    warm: float
    busiest: float
    balance: float


def several(cases: list[tuple[Case, str]], runs: int, workers: list[int], say: Say) -> Section:
    """Count each graph, with its blocks ready, on clusters with each number of GPUs.

    Parameters
    ----------
    cases : list of (Case, str)
        Each graph, with the kernel that counts it.
    runs : int
    workers : list of int
    say : callable (str)

    Raises
    ------
    CountError
        A count is wrong.
    """
    columns = {"graph": "", "GPUs": ",", "by": "", "prepare": ",.0f", "first count": ",.0f", "count": ",.1f"}
    columns |= {"kernel, busiest": ",.2f", "most/least": ".3f", "times one GPU": ".2f"}
    limits = {"by": EXACT, **dict.fromkeys(("prepare", "first count", "count", "kernel, busiest"), DEVICE)}
    section = Section(f"on a cluster, ms, medians of {runs} after a warm-up", columns, limits=limits, keys=2)
    counts: dict[str, list[Counted]] = {case.name: [] for case, _ in cases}
    for number in workers:
        with connect(Place(workers=number), "cuda") as executor:
            executor.run_on_workers(_warm)
            for case, kernel in cases:
                say(f"{case.name} on {plural(len(executor.worker_threads), 'GPU')}")
                counts[case.name].append(measure(executor, case, kernel, runs))
    for name, results in counts.items():
        section.rows += [[name, *cluster, results[0].busiest / cluster.busiest] for cluster in results]
    section.notes += [
        "prepare: wall time from the generator to ready blocks, once; first count: of the warm-up, when blocks "
        "travel; count: wall time of the count phase",
        "kernel, busiest: the counting kernels of the worker that had most of them, and of one GPU, how many times as "
        "long; most/least: over workers",
    ]
    return section


def numbers(workers: str) -> list[int]:
    """Parse numbers of GPUs, as in "1,2,4"; "all" is 1, 2, 4, ... up to as many as there are.

    Raises
    ------
    InputError
        It is not such a list.
    """
    if workers == "all":
        devices = len(gpus.devices())
        return list(dict.fromkeys((*(1 << power for power in range(devices.bit_length())), devices)))
    try:
        sizes = [int(number) for number in workers.split(",")]
    except ValueError:
        sizes = [0]
    if min(sizes) < 1:
        raise InputError(f"--workers {workers!r} is no list of numbers from 1 on: give one such as 1,2,4, or all")
    return sizes


def measure(executor: Executor, case: Case, kernel: str, runs: int) -> Counted:
    """Prepare and count a graph on a cluster.

    Parameters
    ----------
    executor : Executor
    case : Case
    kernel : str
    runs : int

    Raises
    ------
    CountError
        A count is wrong.
    """
    start = time.perf_counter()
    graph = build(executor, case.source(), Options(backend="cuda", kernel=kernel))
    prepare = 1e3 * (time.perf_counter() - start)
    first, *results = [_afresh(executor, graph) for _ in range(runs + 1)]
    triangles = first.triangles if case.triangles is None else case.triangles
    for result in (first, *results):
        if int(result) != triangles:
            raise CountError(f"{case.name} has {triangles:,} triangles, the cluster counted {int(result):,}")
    loads = [_loads(result._records, len(executor.worker_threads)) for result in results]
    return Counted(
        len(executor.worker_threads),
        first.kernel,
        prepare,
        1e3 * first.seconds["count"],
        median(1e3 * result.seconds["count"] for result in results),
        median(1e3 * load[-1] for load in loads),
        median(load[-1] / load[0] if load[0] else float("inf") for load in loads),
    )


def _warm() -> None:
    from dasktc.backends.cuda import backend as cuda

    get_backend("cuda")
    cuda.warm()


def _afresh(executor: Executor, graph: Graph) -> TriangleCount:
    """Count with kernel tables built anew: a worker's first tasks build the tables that its later tasks share."""
    executor.run_on_workers(kept.forget)
    return graph.triangle_count()


def _loads(records: list[Any], workers: int) -> list[float]:
    """Kernel seconds of each worker, ascending; 0 for a worker without tasks."""
    seconds: dict[str, float] = {}
    for record in records:
        seconds[record.worker] = seconds.get(record.worker, 0.0) + record.count.seconds
    return [0.0] * (workers - len(seconds)) + sorted(seconds.values())
