"""Counts on a Dask cluster equal those of one process; its tasks, handles and errors."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import tracemalloc
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client, Future

import dasktc
from dasktc import generate
from dasktc.api.count import build
from dasktc.api.opener import as_source
from dasktc.errors import ClusterError, DasktcError, InputError
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.dask.faults import FaultPolicy
from dasktc.executors.local import LocalExecutor
from dasktc.executors.offers import memory_of
from dasktc.io.source import Source
from dasktc.options import Method, Options, RunOptions
from tests.support.keywords import keywords
from tests.support.processes import local_cluster, patience, until
from tests.support.slow_pipeline import random_edges, skewed_edges, source_of
from tests.support.tiers import some

KRONECKER_14 = 2_843_668
"""Triangles of `generate.kronecker(14)`: 262,144 rows, enough for several partitions."""


def facts(result):
    """Everything that must be the same wherever the graph was counted."""
    shown = result.to_dict()
    rates = ("edges_per_second", "kernel_seconds", "kernel_edges_per_second")
    for name in ("seconds", "workers", "time_imbalance", *rates):
        del shown[name]
    del shown["read"]["what"]  # the type of the source
    return shown, [(record.job, record.count._replace(seconds=0.0)) for record in result._records]


def in_files(source, client, verify=0.0, **options):
    return dasktc.triangle_count(source, client, verify=verify, **keywords(**options))


def on_workers(source, client, verify=0.0, **options):
    """Count with results in the workers' memory: planned for `memory`, which nothing enforces."""
    return build(DaskExecutor(client), as_source(source), Options(**options)).triangle_count(verify=verify)


both_ways = pytest.mark.parametrize("count", [in_files, on_workers])

OPTIONS = [
    {"partition": "whole", "splits": 3},
    {"partition": "hash2d", "parts": 2, "splits": 2},
    {"kernel": "trust", "partition": "hash2d", "parts": 2, "splits": 1},
    {"reorder": "indegree", "splits": 4},
    {"reorder": "none", "kernel": "merge", "splits": 1, "partition": "hash2d", "parts": 5},
]


@pytest.mark.parametrize(
    ("count", "options"),
    some(
        zip([on_workers, in_files, on_workers, in_files, on_workers], OPTIONS, strict=True),
        lambda count, options: options is OPTIONS[1],
    ),
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_direct_and_cluster_agree(client, count, options):
    edges = skewed_edges(300, 3_000, 1)
    named = [(f"v{u}", f"v{v}") for u, v in edges]
    for source in (source_of(edges, parts=7), source_of(named, "text", parts=4), source_of([])):
        chosen = {"memory": "1GB", "verify": 0.5, **options}
        assert facts(count(source, client, **chosen)) == facts(dasktc.triangle_count(source, **keywords(**chosen)))


@pytest.mark.parametrize(
    ("count", "options"),
    some(
        product([in_files, on_workers], [{"partition": "whole"}, {"partition": "hash2d", "parts": 3}]),
        lambda count, options: count is in_files and "parts" in options,
    ),
    ids=lambda value: getattr(value, "__name__", str(value)),
)
@pytest.mark.slow
def test_direct_and_cluster_agree_after_a_shuffle(client, count, options):
    chosen = {"memory": "1GB", "splits": 2, "reorder": "collective", **options}
    here = dasktc.triangle_count(generate.kronecker(14), **keywords(**chosen))
    there = count(generate.kronecker(14, parts=5), client, **chosen)
    assert int(there) == KRONECKER_14
    assert facts(here) == facts(there)


def test_two_counts_on_one_cluster_do_not_mix(client):
    """Their tasks have the same names; without a token the second would get the first one's results."""
    graphs = [dasktc.prepare(source_of(random_edges(50, 500, seed), parts=3), client) for seed in (1, 2)]
    found = [int(graph.triangle_count()) for graph in (*graphs, *graphs)]
    expected = [int(dasktc.triangle_count(source_of(random_edges(50, 500, seed)))) for seed in (1, 2)]
    assert found == expected * 2
    assert expected[0] != expected[1]


@pytest.mark.slow
def test_counts_from_several_threads(client):
    expected, found = int(dasktc.triangle_count(source_of(random_edges(60, 600, 3)))), []

    def count():
        found.append(int(dasktc.triangle_count(source_of(random_edges(60, 600, 3), parts=3), client)))

    running = [threading.Thread(target=count) for _ in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert found == [expected] * 3


def test_an_error_in_a_task_is_the_user_s_own(client):
    edges = pd.DataFrame({"a": [0.5, 1.0], "b": [1.0, 2.0]})
    with pytest.raises(InputError, match="fraction") as here:
        dasktc.triangle_count(edges)
    with pytest.raises(InputError) as there:
        dasktc.triangle_count(edges, client)
    assert str(here.value) == str(there.value)


@dataclass(frozen=True)
class BrokenPart:
    upstream: None = None

    def read(self, backend: Any, upstream: Any = None) -> Any:
        raise InputError("line 3 of x.txt holds nothing")


@dataclass(frozen=True)
class SlowPart:
    """A part whose reading lasts until the file `stop` exists, and which reports if that took too long."""

    stop: Path
    upstream: None = None

    def read(self, backend: Any, upstream: Any = None) -> Any:
        end = time.monotonic() + patience(10)
        while not self.stop.exists() and time.monotonic() < end:
            time.sleep(0.05)
        self.stop.with_suffix(".done").touch()
        return pd.DataFrame({"src": [0], "dst": [1]})


def test_an_error_does_not_wait_for_the_other_tasks(client, tmp_path):
    """A line that cannot be read is reported at once, not after the last of a thousand files."""
    slow = SlowPart(tmp_path / "stop")
    with pytest.raises(InputError, match="line 3"):
        dasktc.triangle_count(Source("slow", (slow, BrokenPart())), client)
    assert not slow.stop.with_suffix(".done").exists()
    slow.stop.touch()
    until(slow.stop.with_suffix(".done").exists)


@pytest.mark.slow
def test_a_large_array_goes_in_pieces_that_dask_takes_without_a_warning(client):
    edges = np.random.default_rng(1).integers(0, 40_000, (1_500_000, 2))
    result = dasktc.triangle_count(edges, client)
    assert result.edges + result.loops_dropped + result.duplicates_dropped == 1_500_000
    here = dasktc.triangle_count(edges)
    assert (int(result), result.stats.wedges) == (int(here), here.stats.wedges)


@both_ways
def test_a_dask_dataframe_is_computed_on_the_cluster(client, count):
    import dask.dataframe as dd

    edges = pd.DataFrame(random_edges(100, 2_000, 4), columns=["a", "b"])
    frame = dd.from_pandas(edges, npartitions=5)
    expected = facts(dasktc.triangle_count(edges, method=Method(splits=2), memory="1GB"))[0]
    assert facts(dasktc.triangle_count(frame, method=Method(splits=2), memory="1GB"))[0] == expected
    assert facts(count(frame, client, splits=2, memory="1GB"))[0] == expected


def test_tasks_whose_preferred_worker_went_run_on_the_one_that_comes():
    """Dask leaves a task that became ready without any worker until the preferred worker is back."""
    with local_cluster(n_workers=0, processes=False) as late, Client(late, set_as_default=False) as client:
        preferred = {"workers": ["inproc://gone"], "allow_other_workers": True}
        future = client.submit(int, "7", key=("count-0123abcd", 0), **preferred)
        other = client.submit(int, "7", key="of another application", **preferred)
        until(lambda: len(late.scheduler.unrunnable) == 2)
        late.scale(1)
        client.wait_for_workers(1, timeout=patience())
        FaultPolicy(client, 60, 1, "0123abcd").look()
        assert future.result(timeout=patience(15)) == 7
        assert other.status == "pending"


@pytest.mark.parametrize(
    ("stage", "options"),
    some(
        product(["orient", "count"], [{}, {"memory": "1GB"}]), lambda stage, options: stage == "count" and not options
    ),
    ids=str,
)
def test_a_cluster_whose_workers_go_for_good_is_refused(threads, inner, stage, options):
    """Dask itself would wait for ever."""

    def leave(now, done, total):
        if now == stage and not done:
            threads.scale(0)
            until(lambda: not threads.scheduler.workers)

    source = source_of(random_edges(50, 400, 5), parts=3)
    with pytest.raises(ClusterError, match=r"all workers of inproc://\S+ were lost, and none came back in 0\.5 s: "):
        dasktc.triangle_count(source, inner, progress=leave, **keywords(worker_timeout=0.5, **options))


def test_a_cancelled_task_is_an_error_not_a_result(inner):
    """As when somebody restarts the cluster or cancels the futures during the count."""
    tasks = DaskExecutor(inner)
    results = tasks.map_unordered("count", slowly, [(0.01,), (60,)])
    assert next(results) == 0.01
    inner.cancel([Future(key, inner) for key in list(inner.futures)], force=True)
    with pytest.raises(ClusterError):
        next(results)


class NotThere:
    """The error of a worker without dasktc."""

    def __reduce__(self):
        return exec, ("raise ModuleNotFoundError('No module named dasktc')",)

    def __call__(self):
        raise AssertionError("it was found")


def test_a_worker_that_cannot_be_asked_is_an_error(inner):
    """Otherwise it would be asked for ever."""
    expected = r"^worker \S+ cannot run dasktc \(.*ModuleNotFoundError.*dasktc.*\): .* install the same on all workers$"
    with pytest.raises(ClusterError, match=expected):
        DaskExecutor(inner).run_on_workers(NotThere())


def not_allowed():
    raise PermissionError(13, "Permission denied", "/somewhere")


def test_workers_that_are_there_and_cannot_answer_are_not_asked_for_ever(inner):
    """Each of them raises an error of the operating system, as dead workers do."""
    expected = r"^no worker of \S+ answers, \S+ says \(PermissionError: .*denied.*\): .* look into a worker's log$"
    with pytest.raises(ClusterError, match=expected):
        DaskExecutor(inner, patience=0.2).run_on_workers(not_allowed)


def test_a_scheduler_that_cannot_read_tasks_is_an_error(inner):
    """As where dasktc is not installed on the scheduler's host."""
    tasks = DaskExecutor(inner)
    with pytest.raises(ClusterError, match=r"^the scheduler at \S+ cannot read dasktc's tasks: .* install the same"):
        list(tasks.map_unordered("count", slowly, [(NotThere(),)]))
    with pytest.raises(ClusterError, match=r"^the scheduler at \S+ cannot read dasktc's tasks: .* install the same"):
        tasks.gather([tasks.submit("read", slowly, NotThere())])


def slowly(seconds):
    time.sleep(seconds if seconds < 1 else 0.5)
    return seconds


def _no_module():
    raise ModuleNotFoundError("No module named 'only_workers_have_it'")


class WorkersAlone:
    """A value that workers can pickle, and the client cannot unpickle."""

    def __reduce__(self):
        return _no_module, ()


def _of_workers_alone(number):
    return WorkersAlone() if number == 3 else number


@pytest.mark.timeout(60)
def test_a_result_that_the_client_cannot_read_is_an_error():
    """Dask only logs this, and treats the result as if it were still on its way."""
    with (
        local_cluster(n_workers=2, processes=False, protocol="tcp://") as tcp,
        Client(tcp, set_as_default=False) as client,
    ):
        tasks, calls = DaskExecutor(client), [(number,) for number in range(5)]
        why = r"^the client cannot read a task's result \(ModuleNotFoundError: No module .*\): .* install the same"
        with pytest.raises(ClusterError, match=why):
            list(tasks.map_unordered("count", _of_workers_alone, calls))
        with pytest.raises(ClusterError, match=why):
            tasks.gather([tasks.submit("read", _of_workers_alone, 3)])
        assert tasks.gather([tasks.submit("read", _of_workers_alone, 1)]) == [1]
        del tasks
        until(lambda: (gc.collect(), client.futures)[1] == {})


def test_handles_are_given_up_once_they_are_used(threads, inner):
    """A future that is kept keeps its result on a worker."""
    tasks = DaskExecutor(inner)
    made = tasks.map("make", range, [4, 5])
    columns = tasks.transpose("cut", made, 2)
    assert made == []
    assert [tasks.gather(column) for column in columns] == [[0, 0], [1, 1]]
    inputs = columns.pop()
    results = tasks.map("double", slowly, inputs)
    assert inputs == []
    del columns
    assert tasks.gather(results) == [1, 1]
    until(lambda: in_memory(threads) == {"double"})


def in_memory(found):
    """Stages with results in some worker's memory."""
    return {key[0].partition("-")[0] for key, task in found.scheduler.tasks.items() if task.who_has}


@pytest.mark.parametrize(
    "options",
    some(
        [{}, {"partition": "hash2d", "parts": 3, "reorder": "collective"}, {"memory": "1GB"}],
        lambda options: "memory" in options,
    ),
    ids=str,
)
def test_nothing_stays_on_the_cluster(threads, inner, options):
    result = dasktc.triangle_count(generate.kronecker(10, parts=4), inner, **keywords(**options))
    until(lambda: not threads.scheduler.tasks)
    graph = dasktc.prepare(generate.kronecker(10, parts=4), inner, **keywords(**options))
    assert int(graph.triangle_count(verify=0.5)) == int(result)
    assert threads.scheduler.tasks
    del graph
    until(lambda: not threads.scheduler.tasks)
    assert not inner.futures


def test_the_process_of_the_client_keeps_no_rows_of_a_count_that_has_ended():
    """Nor does a scheduler in it, apart from the logs of messages and profiles that Dask keeps of any tasks."""
    rows, counts = np.array(random_edges(2_000, 20_000, 3)), 10
    settings = {"distributed.admin.low-level-log-length": 8, "distributed.worker.profile.enabled": False}
    with (
        dask.config.set(settings),
        local_cluster(n_workers=1, processes=False) as found,
        Client(found, set_as_default=False) as inner,
    ):
        sizes = []
        tracemalloc.start()
        try:
            for number in (5, counts):
                for _ in range(number):
                    dasktc.triangle_count(rows, inner, run=RunOptions(distribute="never"))
                until(lambda: not found.scheduler.tasks)
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    assert sizes[1] - sizes[0] < counts * rows.nbytes / 5  # of which half are Dask's records of tasks


def test_a_count_that_failed_leaves_nothing_either(threads, inner):
    source = source_of([(0, 1), (1, 2), (2, 0)], triangles=7)
    with pytest.raises(DasktcError):
        dasktc.triangle_count(source, inner)
    until(lambda: not threads.scheduler.tasks)


@pytest.mark.parametrize("memory", [None, "1GB"])
def test_a_task_that_failed_leaves_nothing_either(threads, inner, tmp_path, memory):
    """The raised error is a copy: the original, which the client's future has, would keep the run's frames alive."""
    graph = tmp_path / "graph.txt"
    graph.write_text("0 1\n1 2\n2 none\n")
    for count in (dasktc.prepare, dasktc.triangle_count):
        with pytest.raises(InputError, match="none"):
            count(graph, inner, ids="int", memory=memory, run=RunOptions(distribute="always", work_dir=tmp_path))
    until(lambda: (gc.collect(), not inner.futures and not threads.scheduler.tasks)[1])
    assert os.listdir(tmp_path) == ["graph.txt"]


def test_a_task_that_runs_into_a_timeout_of_its_own_is_not_waited_for(inner):
    faults, future = FaultPolicy(inner, 60, 0, "12345678"), inner.submit(_timed_out, pure=False)
    until(lambda: future.status == "error")
    with pytest.raises(TimeoutError, match="of the task's own"):
        faults.raise_from(future)


def _timed_out():
    raise TimeoutError("of the task's own")


class FakeClient:
    """The parts of a client that `DaskExecutor` uses."""

    def __init__(self, *workers):
        self.workers = {str(i): {"memory_limit": m, "nthreads": n} for i, (m, n) in enumerate(workers)}

    def scheduler_info(self, n_workers):
        return {"workers": self.workers}

    def ncores(self):
        return {name: worker["nthreads"] for name, worker in self.workers.items()}

    def run(self, function, *args, workers, on_error):
        return dict.fromkeys(workers, function(*args))

    def wait_for_workers(self, n_workers, timeout):
        if len(self.workers) < n_workers:
            raise TimeoutError

    @property
    def scheduler(self):
        return SimpleNamespace(address="tcp://nobody")


@pytest.mark.parametrize(
    ("workers", "at_a_time", "memory"),
    [
        ([(10**10, 1)], 1, 6 * 10**9),
        ([(8 * 10**9, 4), (4 * 10**9, 1)], 5, 12 * 10**8),
        ([(10**6, 1), (0, 1)], 2, 6 * 10**5),
    ],
)
def test_the_smallest_share_of_a_thread(workers, at_a_time, memory):
    """From the six tenths of a worker's limit that Dask lets it fill; without a limit, of the host's memory."""
    tasks = DaskExecutor(FakeClient(*workers))
    assert (len(tasks.worker_threads), memory_of(tasks)) == (at_a_time, memory)


def test_a_budget_of_a_worker_is_shared_by_its_threads():
    assert memory_of(DaskExecutor(FakeClient((8 << 30, 4), (4 << 30, 1))), 2 << 30) == 1 << 29
    assert memory_of(LocalExecutor(), 2 << 30) == 2 << 30


def test_without_any_worker_left_memory_is_an_error_of_the_cluster():
    """All workers may just have died."""
    with pytest.raises(ClusterError):
        memory_of(DaskExecutor(FakeClient(), patience=0.2))


def test_an_answer_that_was_overwritten_is_asked_for_again():
    """Dask's client stores the answers of its own polls, which ask for no workers, in the same place."""
    client, asked = FakeClient((10**10, 1)), []
    answer = client.scheduler_info

    def overwritten(n_workers):
        asked.append(n_workers)
        return answer(n_workers) if len(asked) > 2 else {"workers": {}}

    client.scheduler_info = overwritten
    assert memory_of(DaskExecutor(client)) == 6 * 10**9


def test_keys_are_unique_in_several_threads():
    """Two tasks with one key would be one task, and share its result."""
    keys, futures, interval = [], [], sys.getswitchinterval()
    client = FakeClient((1, 1))
    client.map = lambda *columns, key, **options: keys.extend(key) or key
    tasks = DaskExecutor(client)

    def submit():
        for _ in range(2_000):
            futures.append(tasks.submit("count", len, ()).future)

    running = [threading.Thread(target=submit) for _ in range(8)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(set(keys)) == 16_000 == len(futures)
