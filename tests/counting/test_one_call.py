"""A count, or a preparation, as one call on one worker: when it is chosen, and that nothing else changes."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import dasktc
from dasktc import generate
from dasktc.counting import one_call
from dasktc.errors import InputError
from dasktc.executors.base import for_backend
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.dask.faults import VERSION, FaultPolicy
from dasktc.executors.offers import Offer, memory_of
from dasktc.io.files import open_source
from dasktc.io.source import ReadOptions
from dasktc.options import Options, RunOptions
from dasktc.pipeline.prepare import choose_backend
from dasktc.planning.distribution import SourceSize, choose_distribution, pipeline_seconds
from dasktc.planning.rates import RATES
from tests.support.keywords import keywords
from tests.support.slow_pipeline import skewed_edges, tuned

CPU, CUDA = RATES["cpu"], RATES["cuda"]
NVLINK = CUDA.changed(network=45e9)
GB = 10**9


def facts(result):
    """Everything that must be the same wherever the graph was counted."""
    shown = result.to_dict()
    for name in ("seconds", "plan", "edges_per_second", "kernel_seconds", "kernel_edges_per_second"):
        shown.pop(name, None)
    return shown, result.plan.tasks, result.plan.partition, result.plan.parts


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"partition": "hash2d", "parts": 3, "splits": 2, "kernel": "merge"},
        {"partition": "proxy", "parts": 2, "verify": 1.0},
        {"reorder": "collective", "kernel": "trust", "memory": "64MB"},
    ],
)
def test_the_same_as_in_this_process(client, options):
    edges = np.array(skewed_edges(300, 2_000, seed=3))
    here = dasktc.triangle_count(edges, **keywords(**options))
    there = dasktc.triangle_count(edges, client, **keywords(distribute="never", **options))
    assert facts(there) == facts(here)
    assert there.workers == 1
    assert here.plan.distribution == ""
    assert there.plan.distribution == "in one call on one worker: asked for"
    assert "cluster    in one call on one worker: asked for" in repr(there)
    assert "cluster" not in repr(here)


def test_a_worker_of_several_threads_counts_on_all_of_them():
    from distributed import Client

    edges = np.array(skewed_edges(300, 2_000, seed=3))
    here = dasktc.triangle_count(edges, threads=2)
    with (
        tuned(few_edges=0),
        Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0") as client,
    ):
        there = dasktc.triangle_count(edges, client, run=RunOptions(distribute="auto"))
        with dasktc.prepare(edges, client, run=RunOptions(distribute="auto")) as graph:
            assert int(graph.triangle_count()) == int(here)
    assert there.workers == 2
    assert there.plan.distribution == "in one call on one worker: there is one worker"
    assert (there.triangles, there.stats.wedges, there.edges) == (here.triangles, here.stats.wedges, here.edges)


def test_its_device_memory_need_not_be_sent():
    from distributed import Client

    edges, inside = np.array(skewed_edges(30, 90, seed=2)), []

    @contextmanager
    def block():
        inside.append("begun")
        yield
        inside.append("ended")

    def counted(*args):
        inside.append("counted")
        return of_module(*args)

    of_module = one_call.count
    with (
        mock.patch.object(one_call, "nothing_sent", block),
        mock.patch.object(one_call, "count", counted),
        Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client,
    ):
        dasktc.triangle_count(edges, client, run=RunOptions(distribute="never"))
        assert inside == ["begun", "counted", "ended"]
        with dasktc.prepare(edges, client, run=RunOptions(distribute="never")):  # its blocks go to counting tasks
            assert inside == ["begun", "counted", "ended"]


def test_stages_are_reported_in_the_callers_thread(client):
    said: list[tuple[Any, ...]] = []
    progress = lambda *now: said.append((threading.get_ident(), *now))  # noqa: E731
    dasktc.triangle_count(generate.kronecker(10), client, run=RunOptions(distribute="never"), progress=progress)
    stages = list(dict.fromkeys(stage for _, stage, _, _ in said))
    assert stages == ["read", "canonical", "orient", "reorder", "plan", "blocks", "count", "sum"]
    assert {thread for thread, *_ in said} == {threading.get_ident()}
    assert (said[-2][1:], said[-1][1]) == (("count", 4, 4), "sum")
    events = [event for _, event in client.get_events("dasktc")]
    of_run = {event["stage"] for event in events if event.get("run") == events[-1]["run"]}
    assert of_run == {"run", *stages}


def test_rows_in_memory_travel_in_parts(client):
    """Dask warns, and warnings are errors here, if a call carries more than 10 MB."""
    edges = np.random.default_rng(0).integers(0, 100, (1_000_000, 2))
    assert int(dasktc.triangle_count(edges, client, run=RunOptions(distribute="never"))) == 100 * 99 * 98 // 6


def test_calls_of_a_client_go_to_one_worker(client):
    """Later calls need not load what the first call has loaded there."""
    results = [
        dasktc.triangle_count(generate.kronecker(6), client, run=RunOptions(distribute="never")) for _ in range(5)
    ]
    assert len({record.worker for result in results for record in result._records}) == 1


def test_questions_before_the_call(client):
    """There are two, for the threads and for their memory, of a millisecond each; submitting asks nothing."""
    dasktc.triangle_count(generate.kronecker(6), client, backend="cpu", run=RunOptions(distribute="never"))
    with mock.patch.object(FaultPolicy, "ask", autospec=True, side_effect=FaultPolicy.ask) as ask:
        dasktc.triangle_count(generate.kronecker(6), client, backend="cpu", run=RunOptions(distribute="never"))
    assert [call.args[1].__name__ for call in ask.call_args_list] == ["nthreads", "scheduler_info", "map"]


class OnDevices:
    """A client of workers with devices, which records the questions to it."""

    def __init__(self):
        self.asked, self.available = [], {"one": 10, "two": 8}
        self.status, self.scheduler = "running", SimpleNamespace(address="tcp://nobody")

    def ncores(self):
        self.asked.append("ncores")
        return {"one": 1, "two": 2}

    def run(self, function, *args, **options):
        if args == (VERSION,):
            return dict.fromkeys(options["workers"], dasktc.__version__)
        self.asked.append("run")
        return {address: Offer(address, None, there) for address, there in self.available.items()}


def test_memory_of_devices_is_asked_for_with_the_backend():
    client = OnDevices()
    _, offers = choose_backend(DaskExecutor(client), Options(backend="cuda"))
    executor = for_backend(DaskExecutor(client), "cuda")
    assert memory_of(executor, offers=offers) == 4
    assert client.asked == ["run", "ncores"]
    client.available = {"one": 3, "two": 8}
    assert memory_of(executor) == 3  # later it is asked for anew
    assert client.asked == ["run", "ncores", "run"]


def test_clients_that_cannot_be_used_are_refused():
    for client, why in ((SimpleNamespace(status="closed"), "closed"), (SimpleNamespace(asynchronous=True), "asynchr")):
        client.submit = client.scheduler_info = None
        with pytest.raises(InputError, match=why):
            dasktc.triangle_count(([0], [1]), client)


def test_partitions_of_a_dask_collection(client):
    frame = pd.DataFrame(np.array(skewed_edges(100, 700, seed=1)), columns=["src", "dst"])
    wanted = int(dasktc.triangle_count(frame))
    given = dd.from_pandas(frame, npartitions=3)
    for options in ({}, {"memory": "64MB"}):
        assert int(dasktc.triangle_count(given, client, **keywords(distribute="never", **options))) == wanted
    assert (
        "when they are read"
        in dasktc.triangle_count(given, client, run=RunOptions(distribute="auto")).plan.distribution
    )


def test_a_prepared_graph(client):
    edges = np.array(skewed_edges(200, 1_500, seed=5))
    here = dasktc.prepare(edges)
    with dasktc.prepare(edges, client, run=RunOptions(distribute="never")) as there:
        assert there.plan.workers == 2
        assert there.plan.distribution == "prepared in one call on one worker: asked for; counted as tasks"
        assert int(there.triangle_count(verify=1.0)) == int(here.triangle_count())
        pd.testing.assert_series_equal(there.triangles(), here.triangles())
        pd.testing.assert_series_equal(there.clustering(), here.clustering())
        support = client.compute(there.edge_support()).result().sort_values(["src", "dst"], ignore_index=True)
        pd.testing.assert_frame_equal(support, here.edge_support())


@pytest.mark.slow
def test_outputs_and_checkpoints_have_tasks(client, tmp_path):
    edges = np.array(skewed_edges(100, 700, seed=2))
    wanted = int(dasktc.triangle_count(edges))
    options = {"distribute": "never", "per_vertex": tmp_path / "v.csv", "checkpoint": tmp_path / "kept"}
    first = dasktc.triangle_count(edges, client, **keywords(**options))
    options["per_vertex"] = tmp_path / "again.csv"
    again = dasktc.triangle_count(edges, client, **keywords(**options))
    assert (int(first), int(again), again.stats.resumed) == (wanted, wanted, first.plan.tasks)
    assert pd.read_csv(tmp_path / "v.csv").iloc[:, 1].sum() == 3 * wanted
    assert (tmp_path / "v.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    for name, value in (("memory", "64MB"), ("partition", "proxy")):  # stands in files, is more than arithmetic
        page = tmp_path / f"{name}.html"
        told = dasktc.triangle_count(edges, client, report=page, **keywords(distribute="never", **{name: value}))
        assert told.plan.distribution.startswith("as tasks on all workers: asked for; but")


@dataclass(frozen=True)
class Deadly:
    """A part that kills the first worker that reads it."""

    part: Any
    once: Path
    upstream: None = None

    def read(self, backend: Any, upstream: Any = None) -> Any:
        try:
            self.once.touch(exist_ok=False)
        except FileExistsError:
            return self.part.read(backend)
        os.kill(os.getpid(), signal.SIGKILL)


def test_it_starts_again_where_its_worker_dies(client, tmp_path):
    source = generate.kronecker(8)
    deadly = replace(source, parts=tuple(Deadly(part, tmp_path / "dead") for part in source.parts))
    counted = dasktc.triangle_count(deadly, client, run=RunOptions(distribute="never"))
    assert int(counted) == int(dasktc.triangle_count(source))
    assert (tmp_path / "dead").exists()


# what is chosen


def test_the_faster_way_is_chosen():
    small, large = SourceSize(10**5), SourceSize(10**8)
    for rates in (CPU, CUDA):
        assert choose_distribution(small, 4, 100 * GB, rates, "cpu").kind == "call"
    assert choose_distribution(large, 4, 100 * GB, CPU, "cpu").kind == "tasks"
    assert choose_distribution(large, 4, 100 * GB, CPU, "cpu", threads=4).why == "there is one worker"
    assert choose_distribution(large, 5, 100 * GB, CPU, "cpu", threads=4).kind == "call"
    assert choose_distribution(large, 4, 100 * GB, CUDA, "cuda").kind == "call"
    assert choose_distribution(SourceSize(10**10), 4, 1000 * GB, NVLINK, "cuda").kind == "tasks"


def test_what_rules_one_call_out():
    assert choose_distribution(None, 1, GB, CPU, "cpu").kind == "tasks"
    needs = choose_distribution(SourceSize(10**6), 1, 10**6, CPU, "cpu")
    assert needs.kind == "tasks"
    assert "would need about 48 MB" in needs.why
    assert choose_distribution(SourceSize(10**6), 1, GB, CPU, "cpu").kind == "call"
    assert choose_distribution(SourceSize(10**6), 1, 10**8, CPU, "cpu", "text").kind == "tasks"
    made, read = SourceSize(2**32), SourceSize(2**32, 5 * 2**32)  # Kronecker 28 on an H200: made there, or read
    assert choose_distribution(made, 1, 130 * GB, CUDA, "cuda").kind == "call"
    assert choose_distribution(read, 1, 130 * GB, CUDA, "cuda").kind == "tasks"


@pytest.mark.parametrize("rates", [CPU, NVLINK])
def test_seconds_grow_with_the_source_and_fall_with_workers(rates):
    sizes = [SourceSize(rows, 12 * rows) for rows in (0, 10**4, 10**6, 10**9)]
    for workers in (1, 2, 8):
        seconds = [pipeline_seconds(size, workers, rates) for size in sizes]
        assert seconds == sorted(seconds)
    assert pipeline_seconds(sizes[-1], 2, rates) < pipeline_seconds(sizes[-1], 1, rates)


def test_the_size_of_a_source_is_known_before_it_is_read(data, tmp_path):
    file = data / "karate.csv.gz"
    rows, stored = open_source(str(file), ReadOptions()).size
    assert 0.3 < rows / 78 < 3
    assert stored > file.stat().st_size
    frame = pd.DataFrame({"src": np.arange(50_000), "dst": np.arange(50_000)[::-1]})
    frame.to_parquet(tmp_path / "e.parquet")
    frame.to_csv(tmp_path / "e.csv", index=False)
    for name in ("e.parquet", "e.csv"):
        size = open_source(str(tmp_path / name), ReadOptions()).size
        assert 0.3 < size.rows / 50_000 < 3, name
        assert size.stored == (tmp_path / name).stat().st_size
    assert generate.kronecker(10).size == SourceSize(16 << 10)


def test_how_it_is_asked_for(client):
    with pytest.raises(InputError, match="distribute"):
        RunOptions(distribute="sometimes")
    edges = np.array(skewed_edges(30, 90, seed=2))
    with dask.config.set({"dasktc.distribute": "auto"}):
        chosen = dasktc.triangle_count(edges, client).plan.distribution
        assert chosen.startswith("in one call on one worker: ")
        assert "predicted in one call on one worker" in chosen
        asked = dasktc.triangle_count(edges, client, run=RunOptions(distribute="always")).plan.distribution
        assert asked == "as tasks on all workers: asked for"
    with dask.config.set({"dasktc.distribute": "sometimes"}), pytest.raises(InputError, match="sometimes"):
        dasktc.triangle_count(edges, client)
