"""Times whole counts on running clusters: the time that a user waits, and its parts.

wall       from the call of `triangle_count` to its answer, on a cluster and workers that have counted before
tasks      number of tasks that the workers ran for it
waits      number of times that the client waited for results before it could go on
received   bytes that workers fetched from each other
computing  share of all workers' seconds during the call that was spent in tasks
kernel     share of the wall time that the worker with most of it spent in counting kernels
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from statistics import median
from typing import Any, NamedTuple
from unittest import mock

from dasktc.api.count import triangle_count
from dasktc.bench.gpu_cases import Case
from dasktc.bench.report import EXACT, SIZE, Say, Section, limit
from dasktc.counting.result import TriangleCount
from dasktc.errors import CountError
from dasktc.executors.connect import connect
from dasktc.executors.dask import executor as dask_executor
from dasktc.executors.dask import futures
from dasktc.executors.place import Place
from dasktc.options import Backend
from dasktc.wording import plural

__all__ = ["Run", "end_to_end", "in_process", "on_cluster"]


class Run(NamedTuple):
    """One count: seconds, and on a cluster the tasks, waits, bytes received, and seconds in tasks of all workers."""

    result: TriangleCount
    wall: float
    tasks: int = 0
    waits: int = 0
    received: int = 0
    computing: float = 0.0

    @property
    def kernel(self) -> float:
        """Kernel seconds of the busiest worker."""
        seconds: dict[str, float] = {}
        for record in self.result._records:
            seconds[record.worker] = seconds.get(record.worker, 0.0) + record.count.seconds
        return max(seconds.values(), default=0.0)


def end_to_end(
    cases: list[Case], runs: int, workers: list[int], backend: Backend, say: Say, profile: str | None = None
) -> Section:
    """Count each graph without a client, and on clusters with each number of workers.

    Parameters
    ----------
    cases : list of Case
    runs : int
        Number of measurements after a warm-up, of which medians are taken.
    workers : list of int
    backend : {"cpu", "cuda"}
    say : callable (str)
    profile : str, optional
        File (.html) for Dask's performance report of the last cluster's counts.

    Raises
    ------
    CountError
        A count is wrong.
    """
    columns = {"graph": "", "workers": "", "wall": ",.1f", "tasks": ",", "waits": ",", "received": SIZE}
    columns |= {"computing": ".2f", "kernel, busiest": ",.1f", "kernel/wall": ".2f", "counted": ""}
    limits = dict.fromkeys(("wall", "received", "kernel, busiest"), limit(backend))
    limits |= dict.fromkeys(("tasks", "waits", "counted"), EXACT)
    title = f"from the source to the number, ms, medians of {runs} after a warm-up"
    section = Section(title, columns, limits=limits, keys=2)
    rows: dict[str, list[list[Any]]] = {case.name: [] for case in cases}
    for number in workers:
        with connect(Place(workers=number), backend) as executor:
            client: Any = executor.client  # type: ignore[attr-defined]
            report = _report(client, profile) if number == workers[-1] and profile else nullcontext()
            with report:
                for case in cases:
                    say(f"{case.name} on {plural(number, 'worker')}")
                    counts = [on_cluster(client, case, backend) for _ in range(runs + 1)][1:]
                    rows[case.name].append(_row(case, str(number), counts, number))
    for case in cases:  # after the clusters, because a process that uses a GPU itself leaves a worker little memory
        say(f"{case.name} without a client")
        counts = [in_process(case, backend) for _ in range(runs + 1)][1:]
        rows[case.name].insert(0, _row(case, "no client", counts, 1))
    section.rows += [row for of_case in rows.values() for row in of_case]
    section.notes += [
        "wall: from the call to the answer, the source generated or read; clusters are up and have counted before",
        "waits: times that the client waited for results; received: bytes that workers fetched from each other; "
        "computing: seconds in tasks, of all workers' seconds meanwhile; kernel, busiest: seconds in counting kernels "
        "of the worker that had most",
    ]
    return section


def _row(case: Case, place: str, runs: list[Run], workers: int) -> list[Any]:
    middle = sorted(runs, key=lambda run: run.wall)[len(runs) // 2]
    for run in runs:
        triangles = runs[0].result.triangles if case.triangles is None else case.triangles
        if int(run.result) != triangles:
            raise CountError(f"{case.name} has {triangles:,} triangles, {int(run.result):,} were counted on {place}")
    wall, kernel = (median(figures) for figures in zip(*((run.wall, run.kernel) for run in runs), strict=True))
    computing = middle.computing / middle.wall / workers if middle.tasks else 1.0
    way = middle.result.plan.distribution.partition(":")[0] or "in this process"
    cells = [middle.tasks, middle.waits, middle.received, computing]
    return [case.name, place, 1e3 * wall, *cells, 1e3 * kernel, kernel / wall, way]


def in_process(case: Case, backend: Backend) -> Run:
    """Count a graph without a client."""
    source = case.source()
    start = time.perf_counter()
    result = triangle_count(source, backend=backend)
    return Run(result, time.perf_counter() - start)


def on_cluster(client: Any, case: Case, backend: Backend) -> Run:
    """Count a graph with a client, and collect the cluster's tasks, waits, bytes and seconds.

    Parameters
    ----------
    client : distributed.Client
    case : Case
    backend : {"cpu", "cuda"}
    """
    from distributed import get_task_stream

    source, received = case.source(), _received(client)
    with get_task_stream(client) as stream, _counted_waits() as waits:
        start = time.perf_counter()
        result = triangle_count(source, client, backend=backend)
        wall = time.perf_counter() - start
    intervals = [interval for task in stream.data for interval in task["startstops"]]
    computing = sum(span["stop"] - span["start"] for span in intervals if span["action"] == "compute")
    return Run(result, wall, len(stream.data), len(waits), _received(client) - received, computing)


@contextmanager
def _counted_waits() -> Iterator[list[None]]:
    """Context that counts how often an executor waits for a cluster's results."""
    waits, results = list[None](), futures.results

    def counted(*args: Any, **options: Any) -> Iterator[tuple[Any, Any]]:
        waits.append(None)
        return results(*args, **options)

    with mock.patch.object(dask_executor, "results", counted):
        yield waits


def _received(client: Any) -> int:
    """Bytes that all workers have fetched from each other so far, over the last 100,000 fetches of each."""
    return sum(client.run(_bytes_fetched).values())


def _bytes_fetched(dask_worker: Any) -> int:
    return sum(int(fetch["total"]) for fetch in dask_worker.transfer_incoming_log)


@contextmanager
def _report(client: Any, out: str) -> Iterator[None]:
    """Write Dask's performance report of this context: task stream, and profiles of workers and scheduler."""
    from distributed import performance_report

    with client.as_current(), performance_report(filename=out):
        yield
