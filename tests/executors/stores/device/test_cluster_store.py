"""Workers with one GPU each that keep `--memory`: emulated, as two workers in this process that send real bytes."""

from __future__ import annotations

import gc
import logging
import os
import pickle
from contextlib import contextmanager
from dataclasses import replace

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import dasktc
from dasktc.api.count import build
from dasktc.backends import lazy_backend
from dasktc.errors import InputError
from dasktc.executors import memory_budget as budgets
from dasktc.executors.base import MemoryStore, for_backend
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.dask.worker_state import WorkerState, worker_state
from dasktc.executors.local import LocalExecutor
from dasktc.executors.offers import memory_of
from dasktc.executors.place import Place
from dasktc.executors.stores.device import cluster_store
from dasktc.executors.stores.device.cluster_store import DeviceClusterStore
from dasktc.executors.stores.device.handles import DeviceHandle
from dasktc.executors.stores.device.store import DeviceStore
from dasktc.executors.stores.device.tuning import Tuning
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.io.generators.synthetic import kronecker
from dasktc.options import Options
from tests.executors.stores.device.test_store import OOC, TO_FILES, TO_HOST, same, values
from tests.executors.test_memory_budget import facts
from tests.support import oracle
from tests.support.emulation import cupy_strict, streams
from tests.support.keywords import keywords
from tests.support.slow_pipeline import skewed_edges, source_of, tuned
from tests.support.tiers import some

EDGES, GRAPH = skewed_edges(30, 150, 7), kronecker(8, 20, parts=2)
SMALL = Tuning(small=1, slab=1 << 12)
"""Slabs of 4 KiB, so that arrays are copied in several pieces."""


@pytest.fixture(scope="module")
def workers(emulated):
    """Two workers whose messages are pickled."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as found:  # fmt: skip
        yield found
    gc.collect()


@pytest.fixture
def client(workers):
    with Client(workers, set_as_default=False) as found:
        yield found
    gc.collect()
    assert not streams.VIOLATIONS


@contextmanager
def on_gpus(client, folder, budget, host):
    tasks = DaskExecutor(client, store=DeviceClusterStore(WorkDir(folder), budget, host, SMALL))
    yield tasks
    tasks.close()
    assert not any(client.run(has_state, tasks.store._worker.run).values())


def has_state(run, dask_worker):
    return run in worker_state(dask_worker).devices


@pytest.mark.slow
@pytest.mark.parametrize(("options", "ids"), [({"partition": "proxy", "parts": 2}, "text"), ({}, "int")], ids=str)
def test_vertices_in_shards(client, tmp_path, options, ids):
    given = EDGES if ids == "int" else [(f"v{u}", f"v{v}") for u, v in EDGES]
    with tuned(least_shards=2), on_gpus(client, tmp_path, 1 << 22, TO_HOST) as tasks:
        graph = build(tasks, source_of(given, ids, parts=3), Options(backend="cuda", memory="1GB", **options))
        assert graph.plan.shards == 2
        assert int(graph.triangle_count(verify=0.5)) == oracle.triangles(given)
        assert graph.triangles(frame="pandas").to_dict() == oracle.triangles_per_vertex(given)
        found = graph.edge_support(frame="pandas")
        assert {frozenset(row[:2]): row[2] for row in found.itertuples(index=False)} == oracle.support(given)


@pytest.mark.parametrize(
    ("host", "options"),
    some([(TO_HOST, {}), (TO_FILES, {"parts": 2, "splits": 1})], lambda host, options: not options),
    ids=str,
)
def test_all_measures_are_the_same(client, tmp_path, host, options):
    expected = build(LocalExecutor(), source_of(EDGES, parts=3), Options(backend="cuda", **options)).triangle_count()
    with on_gpus(client, tmp_path, 1 << 20, host) as tasks:
        graph = build(tasks, source_of(EDGES, parts=3), Options(backend="cuda", memory="1GB", **options))
        found = graph.triangle_count(verify=0.5)
        assert facts(found)[:5] == facts(expected)[:5]
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(EDGES)
        frame = client.compute(graph.edge_support()).result()
        assert {frozenset(row[:2]): row[2] for row in frame.itertuples(index=False)} == oracle.support(EDGES)
        graph._context.counted.by_vertex = None  # they are added up from the edges' now
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(EDGES)
        assert len(graph.triangle_list()) == oracle.triangles(EDGES)
    assert os.listdir(tmp_path) == []


def test_text_ids_and_files(client, tmp_path):
    edges = [(f"v{u}", f"v{v}") for u, v in EDGES]
    with on_gpus(client, tmp_path, 1 << 20, TO_HOST) as tasks:
        graph = build(tasks, source_of(edges, "text", parts=3), Options(backend="cuda", memory="1GB"))
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(edges)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "host"), [(OOC[0], TO_FILES), (OOC[2], TO_HOST)], ids=str)
@tuned(edge_bytes={"cpu": 40, "cuda": 80})  # fewer tasks
def test_a_graph_that_is_larger_keeps_every_workers_budget(client, tmp_path, options, host):
    """Two devices have two budgets, which one stand-in holds together here; the bytes in use are also measured."""
    used, all_at_once = cupy_strict.MEMORY_USED, Options(backend="cuda", kernel="plain")
    gc.collect()  # what other tests left would go meanwhile, and make the peak seem lower
    used.peak = before = used.now
    expected = build(LocalExecutor(), GRAPH, all_at_once).triangle_count()
    budget = (used.peak - before) // 2
    gc.collect()
    used.peak = before = used.now
    with on_gpus(client, tmp_path, budget, host) as tasks:
        result = build(tasks, GRAPH, replace(all_at_once, memory=budget, **options)).triangle_count()
        assert int(result) == int(expected)
        peaks = tasks.store.peaks(tasks.ask_workers)
        assert len(peaks) == 2
        assert all(0 < peak <= budget for peak in peaks.values())
        assert used.peak - before <= 2 * budget
        assert sum(copied.blocks for copied in tasks.store.transfers.values()) > 0
        assert result.plan.bytes_per_task <= budget
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("partition", ["whole", "edges"])
def test_what_must_be_whole_is_refused_with_figures(client, tmp_path, partition):
    options = Options(backend="cuda", memory=30_000, partition=partition, kernel="lstc")
    with on_gpus(client, tmp_path, 1_000_000, TO_HOST) as tasks, pytest.raises(InputError) as error:
        build(tasks, kronecker(9), options)
    assert f"{partition} at n = 1 needs" in str(error.value)
    assert "more than the 30 kB of one worker" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_stage_that_does_not_fit_is_refused_with_figures(client, tmp_path):
    with on_gpus(client, tmp_path, 2_000, TO_HOST) as tasks, pytest.raises(InputError) as error:
        tasks.gather([tasks.submit("read", zeros, 4_000)])
    assert "a stage takes more than the 2 kB that memory leaves it on the device" in str(error.value)
    assert "\n" not in str(error.value)


def zeros(size):
    return cupy_strict.zeros(size, dtype="uint8")


def test_results_are_the_same_bytes_wherever_they_were(emulated, tmp_path):
    from dasktc.executors.stores.device.packing import pack

    for host in (TO_FILES, TO_HOST):
        store = DeviceStore(WorkDir(tmp_path), 1 << 20, host, SMALL)
        for value in values(np.random.default_rng(1)):
            for stays in (True, False):
                store._limit = 1 << 19 if stays else 0
                result = store.keep(value)
                if not isinstance(result, DeviceHandle):
                    assert not pack(value).nbytes
                    continue
                assert result.places is not None or stays
                found = pickle.loads(pickle.dumps(result, 5))
                assert found.nbytes == result.nbytes
                with store._budget_context:
                    assert same(value, store._resolve(found))
        store.close()


def test_a_late_call_of_a_run_that_is_over_leaves_nothing(emulated, tmp_path, monkeypatch):
    """Two runs share a worker: the results of the other one stay."""
    state = WorkerState()
    monkeypatch.setattr(cluster_store, "worker_state", lambda worker=None: state)
    monkeypatch.setattr("distributed.get_worker", lambda: None)
    one, other = (cluster_store.WorkerDeviceStore(run, str(tmp_path), 1 << 20, TO_FILES, SMALL) for run in "ab")
    held = [one.call(zeros, 4_000), other.call(zeros, 4_000)]
    assert state.devices.keys() == {"a", "b"}
    cluster_store._close("a", None)
    assert state.devices.keys() == {"b"}
    assert isinstance(one.call(zeros, 4_000), DeviceHandle)
    assert state.devices.keys() == {"b"}
    assert other.load(held[1]).nbytes == 4_000
    cluster_store._close("b", None)
    assert not state.devices
    assert os.listdir(tmp_path) == []


def test_who_keeps_the_budget(client, tmp_path):
    found = budgets.limited(DaskExecutor(client, backend=lazy_backend("cuda")), "1GB", tmp_path, "32MB")
    assert isinstance(found.store, DeviceClusterStore)
    assert os.listdir(tmp_path) == [os.path.basename(found.store._worker.folder)]
    assert found.store._worker.host == 32_000_000
    assert memory_of(found, 10**9) == 10**9 - (1 << 22) == found.store._worker.budget
    assert memory_of(found, 1000) == 1000
    found.close()
    assert os.listdir(tmp_path) == []
    assert isinstance(
        budgets.limited(DaskExecutor(client, backend=lazy_backend("cuda")), None, tmp_path).store, MemoryStore
    )
    outputs = {"per_vertex": tmp_path / "v.csv", "per_edge": tmp_path / "e.csv"}
    options = {"backend": "cuda", "memory": "17MB", "work_dir": tmp_path, **outputs}
    assert int(dasktc.triangle_count(source_of(EDGES), client, **keywords(**options))) == oracle.triangles(EDGES)
    assert sorted(os.listdir(tmp_path)) == ["e.csv", "v.csv"]
    found = pd.read_csv(outputs["per_vertex"]).set_index("vertex")["triangles"]
    assert found.to_dict() == oracle.triangles_per_vertex(EDGES)


@pytest.mark.slow
def test_workers_have_folders_of_their_own_where_they_see_none_together(client, tmp_path, monkeypatch):
    """Files belong to one worker, so each may have its own default folder; a folder that was asked for is refused."""
    source, options = source_of(EDGES), {"backend": "cuda", "memory": "17MB", "host_memory": 1}
    (tmp_path / "default").mkdir()
    (tmp_path / "given").mkdir()
    with dask.config.set(temporary_directory=str(tmp_path / "default")):
        for hidden, folders in ((lambda folder: None, 1), (lambda folder: "far", 0)):
            monkeypatch.setattr(budgets, "hidden_here", hidden)
            graph = dasktc.prepare(source, client, **keywords(**options))
            assert (
                len(os.listdir(tmp_path / "default"))
                == folders
                == (graph._context.executor.store._worker.folder is not None)
            )
            assert int(graph.triangle_count()) == oracle.triangles(EDGES)
            graph._context.executor.close()
            assert os.listdir(tmp_path / "default") == []
    with pytest.raises(InputError, match=r"2 of 2 workers \(on far\) cannot write to this host's .*given"):
        dasktc.prepare(source, client, **keywords(work_dir=tmp_path / "given", **options))
    assert os.listdir(tmp_path / "given") == []


def test_a_worker_that_leaves_hands_over_what_it_had(workers, client, tmp_path):
    """Blocks and ids go to the remaining worker. This test is the last one, because one worker remains."""
    with on_gpus(client, tmp_path, 1 << 20, TO_HOST) as tasks:
        options = Options(backend="cuda", memory="1GB", parts=2, partition="hash2d")
        graph = build(tasks, source_of(EDGES, parts=3), options)
        client.retire_workers([sorted(workers.scheduler.workers)[0]], close_workers=True)
        assert int(graph.triangle_count()) == oracle.triangles(EDGES)
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(EDGES)


@pytest.mark.gpu
def test_workers_with_gpus_keep_their_budget():
    """The whole graph takes 0.4 GB."""
    pytest.importorskip("dask_cuda")
    from dasktc.executors.connect import connect

    chosen = Options(backend="cuda", memory="128MB", parts=4)
    with (
        connect(Place(workers="all"), "cuda") as started,
        budgets.within_memory(for_backend(started, "cuda"), "128MB", None) as tasks,
    ):
        result = build(tasks, kronecker(20, parts=4), chosen).triangle_count()
        assert int(result) == 424_270_360
        peaks = tasks.store.peaks(tasks.ask_workers)
        assert len(peaks) == len(tasks.worker_threads)
        assert all(0 < peak <= 128_000_000 for peak in peaks.values())
