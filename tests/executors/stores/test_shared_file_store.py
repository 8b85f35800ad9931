"""`--memory` on the caller's cluster: files where all workers see them, or a refusal that leaves none."""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import threading
import time

import dask
import numpy as np
import pytest
from distributed import Client

import dasktc as library
from dasktc.cli import main as cli
from dasktc.errors import InputError
from dasktc.executors import memory_budget as budget
from dasktc.executors.base import MemoryStore
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.dask.worker_state import WorkerState, worker_state
from dasktc.executors.stores import prefetch, shared_file_store
from dasktc.executors.stores.shared_file_store import SharedFileStore
from dasktc.executors.stores.work_dir import WorkDir, hidden_here
from dasktc.options import RunOptions
from dasktc.pipeline.planes import answers_of
from tests.support.oracle import support, triangles
from tests.support.processes import apart_from_page, cluster_of, dasktc
from tests.support.slow_pipeline import skewed_edges, source_of

EDGES = skewed_edges(60, 700, 7)
TRIANGLES = triangles(EDGES)


@pytest.fixture
def place(tmp_path):
    """The default folder of work directories."""
    folder = tmp_path / "work"
    folder.mkdir()
    with dask.config.set(temporary_directory=str(folder)):
        yield folder


def test_a_client_that_is_passed_keeps_memory_in_files(client, place):
    graph = library.prepare(source_of(EDGES, parts=3), client, memory="1GB")
    assert isinstance(graph._context.executor.store, SharedFileStore)
    assert [os.path.dirname(graph._context.executor.store._work.folder)] == [str(place)]
    assert int(graph.triangle_count()) == TRIANGLES
    assert len(os.listdir(place)) == 1
    del graph
    gc.collect()
    assert os.listdir(place) == []


@pytest.mark.slow
def test_an_active_client_and_an_address_keep_it_too(cluster, place, monkeypatch):
    made, start = [], SharedFileStore.__init__
    monkeypatch.setattr(SharedFileStore, "__init__", lambda *args: made.append(args) or start(*args))
    with Client(cluster):
        assert int(library.triangle_count(source_of(EDGES), memory="1GB")) == TRIANGLES
    scheduler = cluster.scheduler_address
    assert int(library.triangle_count(source_of(EDGES), scheduler, memory="1GB")) == TRIANGLES
    assert library.plan(source_of(EDGES), scheduler, memory="1GB").plan.tasks
    assert len(made) == 3
    assert os.listdir(place) == []


def test_a_count_that_failed_leaves_no_block_in_a_workers_memory(client, place):
    def held(dask_worker):
        return [blocks for _, blocks in worker_state(dask_worker).prefetchers.values()]

    def task(_, fails):
        if fails:
            raise ValueError("a task fails")
        return 1

    def failing():
        with budget.within_memory(DaskExecutor(client), "100MB", str(place)) as executor:
            (block,) = executor.map("blocks", np.zeros, [1 << 18])
            executor.store.set_task_memory(1 << 22)
            list(executor.map_unordered("count", task, [(block, True)]))

    with pytest.raises(ValueError, match="a task fails"):
        failing()
    assert not any(client.run(held).values())


def test_without_memory_and_work_dir_dask_keeps_its_own_limits(client, place):
    graph = library.prepare(source_of(EDGES), client)
    assert isinstance(graph._context.executor.store, MemoryStore)
    assert int(graph.triangle_count()) == TRIANGLES
    assert os.listdir(place) == []


# Where some do not see it


def hidden_from_one(folder, dask_worker):
    assert os.path.isdir(folder)
    return "far" if dask_worker.name == 1 else None


REFUSED = (
    r"^1 of 2 workers \(on far\) cannot write to this host's {}, where files beyond memory would stand: .*; give one "
    r"on such a disk with run=RunOptions\(work_dir=\.\.\.\), or leave memory and work_dir out, so that "
    r"Dask's own limits hold$"
)


@pytest.mark.parametrize("count", [library.triangle_count, library.prepare, library.plan])
@pytest.mark.parametrize("given", [False, True], ids=["default", "--work-dir"])
def test_a_place_that_a_worker_does_not_see_is_refused(client, place, tmp_path, monkeypatch, count, given):
    monkeypatch.setattr(budget, "hidden_here", hidden_from_one)
    where = tmp_path / "given" if given else place
    where.mkdir(exist_ok=True)
    options = {"run": RunOptions(work_dir=where)} if given else {}
    with pytest.raises(InputError, match=REFUSED.format(where)):
        count(source_of(EDGES), client, memory="1GB", **options)
    assert os.listdir(where) == []


def test_a_work_dir_without_memory_is_refused_the_same_way(client, tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "hidden_here", hidden_from_one)
    with pytest.raises(InputError, match=REFUSED.format(tmp_path)):
        library.triangle_count(source_of(EDGES), client, run=RunOptions(work_dir=tmp_path))
    assert os.listdir(tmp_path) == []


def test_the_command_line_refuses_it_in_one_line(cluster, place, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(budget, "hidden_here", hidden_from_one)
    file = tmp_path / "edges.txt"
    file.write_text("0 1\n1 2\n2 0\n")
    address = cluster.scheduler_address
    assert cli.main(["count", str(file), "--backend", "cpu", "--memory", "1GB", "--scheduler", address]) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert f"1 of 2 workers (on far) cannot write to this host's {place}" in error
    assert os.listdir(place) == []


def test_what_a_worker_answers(tmp_path):
    assert hidden_here(str(tmp_path)) is None
    assert hidden_here(str(tmp_path / "none")) == socket.gethostname()


def test_workers_are_asked_for_an_absolute_path(tmp_path, monkeypatch):
    """Their working directories differ from the client's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    work = WorkDir("work")
    assert os.path.dirname(work.folder) == str(tmp_path / "work")
    work.close()
    assert os.listdir("work") == []


def test_hosts_are_named_once_and_not_all():
    assert budget._names(["b", "a", "b"]) == "a, b"
    assert budget._names([f"n{i}" for i in range(9)]) == "n0, n1, n2 and 6 more"


@pytest.mark.slow
def test_a_worker_on_a_host_of_its_own(tmp_path):
    """Its disk is another one: it has the same parent folder, but not what this process makes there."""
    place, graph = tmp_path / "work", tmp_path / "edges.txt"
    place.mkdir()
    graph.write_text("0 1\n1 2\n2 0\n")
    apart = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(place))
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    with cluster_of(tmp_path, ("127.0.0.1", "127.0.0.1"), within=((), apart)) as found:
        options = ["--scheduler-file", str(found.file), "--memory", "1GB", "--json"]
        done = dasktc("count", str(graph), *options, DASK_TEMPORARY_DIRECTORY=str(place))
        assert (done.returncode, done.stdout, apart_from_page(done.stderr).count("\n")) == (2, "", 1)
        assert f"1 of 2 workers (on {socket.gethostname()}) cannot write to this host's {place}, where" in done.stderr
        done = dasktc("count", str(graph), *options, "--work-dir", str(tmp_path))
        assert json.loads(done.stdout)["triangles"] == 1
    assert os.listdir(place) == []
    assert not [name for name in os.listdir(tmp_path) if name.startswith("dasktc-")]


# What stands in files


def test_what_a_caller_was_given_holds_the_files(client, place):
    """Workers that are busy until the graph has gone make it afterwards."""
    tasks = DaskExecutor(client, store=SharedFileStore(WorkDir(), 1 << 24, small=1))
    handle = tasks.submit("numbers", np.arange, 100_000)
    tasks._places([handle])
    busy = [client.submit(time.sleep, 1, workers=[worker], pure=False) for worker in client.ncores()]
    futures = answers_of(tasks).values([handle])
    del tasks
    gc.collect()
    assert len(os.listdir(place)) == 1
    assert client.gather(futures)[0].sum() == 4_999_950_000
    del futures, busy
    gc.collect()
    assert os.listdir(place) == []


@pytest.mark.slow
def test_a_frame_of_edges_outlives_its_graph(client, place):
    frame = library.prepare(source_of(EDGES, parts=2), client, memory="1GB").edge_support()
    gc.collect()
    assert len(os.listdir(place)) == 1
    found = frame.compute(scheduler=client.get)
    assert {frozenset(row[:2]): row[2] for row in found.itertuples(index=False)} == support(EDGES)
    del frame
    gc.collect()
    assert os.listdir(place) == []


@pytest.fixture
def worker(monkeypatch):
    state = WorkerState()
    monkeypatch.setattr(shared_file_store, "worker_state", lambda *given: state)
    return state


def test_blocks_are_read_ahead_within_the_memory_of_each_count(worker):
    first = shared_file_store._prefetcher("run", 100)
    assert shared_file_store._prefetcher("run", 100) is first
    smaller = shared_file_store._prefetcher("run", 50)
    assert smaller.capacity == 50
    other = shared_file_store._prefetcher("another run", 50)
    assert other is not smaller
    assert [*worker.prefetchers.values()] == [("another run", other)]


@pytest.mark.parametrize("end", ["replaced", "dropped"])
def test_the_read_under_way_is_waited_for(worker, tmp_path, monkeypatch, end):
    """Its block would be held beside those of the next count, whose capacity is all the memory that is left."""
    store, events = shared_file_store.SharedFileStore(WorkDir(tmp_path), 1 << 20, small=1), []
    block, began = store.wrap(np.full)(100, 1), threading.Event()

    def load(*args, **options):
        began.set()
        time.sleep(0.2)
        events.append("read")

    monkeypatch.setattr(prefetch, "load", load)
    shared_file_store._prefetcher(store._run, 1 << 20).prepare([block])
    assert began.wait(10)
    if end == "replaced":
        shared_file_store._prefetcher(store._run, 100)
    else:
        store.after_tasks(lambda function, *given: function(*given, dask_worker=None))
    assert events == ["read"]


def test_workers_keep_no_block_of_a_count_that_is_over(worker, tmp_path):
    store = shared_file_store.SharedFileStore(WorkDir(tmp_path), 1 << 20, small=1)
    shared_file_store._prefetcher(store._run, 100)
    store.after_tasks(lambda function, *given: function(*given, dask_worker=None))
    assert not worker.prefetchers


def test_blocks_are_read_while_a_second_question_about_the_graph_ends(worker, tmp_path):
    """That question drops the run's prefetchers; one that a task uses is closed only when that task ends."""
    store = shared_file_store.SharedFileStore(WorkDir(tmp_path), 1 << 20, small=1)
    block = store.wrap(np.full)(100, 1)
    blocks = shared_file_store._prefetcher(store._run, 1 << 20)
    store.after_tasks(lambda function, *given: function(*given, dask_worker=None))
    assert not worker.prefetchers
    assert blocks.use([block])[block].sum() == 100
    reader = blocks._reader
    del blocks
    with pytest.raises(RuntimeError, match="after shutdown"):
        reader.submit(len, "")
