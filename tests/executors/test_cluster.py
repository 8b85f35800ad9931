"""Counts on a Dask cluster equal those of one process; tests of clients, tasks, and data that travels."""

from __future__ import annotations

import gc
import json
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client, Future, LocalCluster, get_client

import dasktc
from dasktc import generate
from dasktc.api.count import build
from dasktc.api.opener import as_source
from dasktc.errors import ClusterError, DasktcError, InputError
from dasktc.executors import connect as places
from dasktc.executors.connect import active_client, connect
from dasktc.executors.dask import late_workers
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.dask.faults import FaultPolicy
from dasktc.executors.local import LocalExecutor
from dasktc.executors.place import Place
from dasktc.executors.process.shared_context import SharedContext
from dasktc.executors.process.tls import security_of
from dasktc.io.memory import from_object
from dasktc.io.source import ReadOptions, Source
from dasktc.options import Method, Options, RunOptions
from tests.support.keywords import keywords
from tests.support.processes import patience, until
from tests.support.slow_pipeline import random_edges, skewed_edges, source_of
from tests.support.tiers import some

KRONECKER_14 = 2_843_668
"""Triangles of `generate.kronecker(14)`: 262,144 rows, enough for several partitions."""

local_cluster = partial(
    LocalCluster, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
)


@pytest.fixture
def threads():
    """Two workers in this process, which start quickly and are easy to inspect."""
    with local_cluster(n_workers=2, processes=False) as found:
        yield found


@pytest.fixture
def inner(threads):
    with Client(threads, set_as_default=False) as found:
        yield found


def facts(result):
    """Everything that must be the same wherever the graph was counted."""
    shown = result.to_dict()
    rates = ("edges_per_second", "kernel_seconds", "kernel_edges_per_second")
    for name in ("seconds", "workers", "time_imbalance", *rates):
        del shown[name]
    del shown["read"]["what"]  # the type of the source
    return shown, [(record.job, record.count._replace(seconds=0.0)) for record in result._records]


# The same result


def in_files(source, client, verify=0.0, **options):
    return dasktc.triangle_count(source, client, verify=verify, **keywords(**options))


def on_workers(source, client, verify=0.0, **options):
    """Count with results in the workers' memory: planned for `memory`, which nothing enforces."""
    return build(DaskExecutor(client), as_source(source), Options(**options)).triangle_count(verify=verify)


both_ways = pytest.mark.parametrize("count", [in_files, on_workers])


OPTIONS = [
    {"partition": "whole", "splits": 3},
    {"partition": "hash2d", "parts": 3, "splits": 2},
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
    assert (int(result), result.stats.wedges) == (int(here := dasktc.triangle_count(edges)), here.stats.wedges)


@both_ways
def test_a_dask_dataframe_is_computed_on_the_cluster(client, count):
    import dask.dataframe as dd

    edges = pd.DataFrame(random_edges(100, 2_000, 4), columns=["a", "b"])
    frame = dd.from_pandas(edges, npartitions=5)
    expected = facts(dasktc.triangle_count(edges, method=Method(splits=2), memory="1GB"))[0]
    assert facts(dasktc.triangle_count(frame, method=Method(splits=2), memory="1GB"))[0] == expected
    assert facts(count(frame, client, splits=2, memory="1GB"))[0] == expected


# Whose client


def ran_here(result):
    return all(record.worker.endswith(f":{os.getpid()}") for record in result._records)


TRIANGLE = ([0, 1, 2], [1, 2, 0])


def test_without_a_client_everything_runs_here():
    assert active_client() is None
    result = dasktc.triangle_count(TRIANGLE)
    assert (result.workers, ran_here(result)) == (1, True)


def test_a_client_that_is_passed_is_used_and_left_open(client):
    result = dasktc.triangle_count(TRIANGLE, client)
    assert (int(result), result.workers, ran_here(result)) == (1, 2, False)
    assert client.status == "running"
    assert active_client() is None


def test_an_active_client_is_used(cluster):
    with Client(cluster) as active:
        assert active_client() is active
        result = dasktc.triangle_count(TRIANGLE)
        assert (int(result), result.workers, ran_here(result)) == (1, 2, False)
        assert active.status == "running"
    assert ran_here(dasktc.triangle_count(TRIANGLE))


def test_a_client_that_is_passed_goes_before_the_active_one(cluster, inner):
    with Client(cluster):
        assert ran_here(dasktc.triangle_count(TRIANGLE, inner))


def test_the_address_of_a_scheduler(cluster, tmp_path):
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": cluster.scheduler_address}))
    for place in ({"scheduler": cluster.scheduler_address}, {"scheduler_file": str(file)}):
        result = dasktc.triangle_count(TRIANGLE, **keywords(**place))
        assert (int(result), result.workers, ran_here(result)) == (1, 2, False)
        assert active_client() is None


def test_local_workers_are_started_and_ended():
    """There is no warning about the dashboard's port, and no default client is left behind."""
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        except OSError:
            pass  # somebody else has it: as good
        result = dasktc.triangle_count(generate.kronecker(8), client=Place(workers=2))
    assert (result.workers, ran_here(result)) == (2, False)
    assert int(result) == int(dasktc.triangle_count(generate.kronecker(8)))
    with pytest.raises(ValueError, match="client"):
        get_client()
    pids = {int(record.worker.rpartition(":")[2]) for record in result._records}
    until(lambda: not any(alive(pid) for pid in pids))


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def count_in_a_task():
    """Count directly, and with a graph that was prepared before: both wait for tasks."""
    return int(dasktc.triangle_count(TRIANGLE)) + int(dasktc.prepare(TRIANGLE).triangle_count())


@pytest.mark.slow
def test_a_task_may_count():
    """The worker's only thread would wait for tasks of its own, so the task must secede."""
    with local_cluster(n_workers=1) as one, Client(one, set_as_default=False) as client:
        future = client.submit(count_in_a_task)
        assert future.result(timeout=patience()) == 2


@pytest.mark.parametrize(
    "given",
    [
        {"client": object(), "threads": 2},
        {"workers": 2, "scheduler": "tcp://127.0.0.1:1"},
        {"scheduler": "tcp://127.0.0.1:1", "scheduler_file": "x.json"},
    ],
    ids=" and ".join,
)
def test_two_places_at_a_time_are_refused(given):
    with pytest.raises(InputError) as error:
        dasktc.triangle_count(TRIANGLE, **keywords(**given))
    for name in given:
        assert name in str(error.value)


@pytest.mark.parametrize("workers", [0, -3])
def test_fewer_than_one_worker_is_refused(workers):
    with pytest.raises(InputError, match=f"workers={workers} is below 1"):
        dasktc.triangle_count(TRIANGLE, client=Place(workers=workers))


def test_what_is_no_client_is_refused():
    with pytest.raises(InputError, match=r"client is a float.*Client"):
        dasktc.triangle_count(TRIANGLE, 0.5)


# Whose cluster


ASKED = {
    "triangle_count": lambda graph: graph.triangle_count(),
    "with a kernel": lambda graph: graph.triangle_count(kernel="merge"),
    "triangles": lambda graph: graph.triangles(),
    "edge_support": lambda graph: graph.edge_support(),
    "clustering": lambda graph: graph.clustering(),
    "transitivity": lambda graph: graph.transitivity(),
    "average_clustering": lambda graph: graph.average_clustering(),
    "triangle_list": lambda graph: graph.triangle_list(),
}


@pytest.mark.parametrize("place", ["here", "in files", "a client", "a scheduler"])
def test_a_closed_graph_refuses_and_ends_what_was_opened_for_it(threads, inner, tmp_path, place):
    """A client that the caller passed stays open."""
    where = {
        "here": {},
        "in files": {"memory": "1GB", "work_dir": tmp_path},
        "a client": {"client": inner},
        "a scheduler": {"scheduler": threads.scheduler_address},
    }
    with dasktc.prepare(TRIANGLE, **keywords(**where[place])) as graph:
        client = graph.client
        assert (int(graph.triangle_count()), client is inner) == (1, place == "a client")
        assert (client is None) == (place in ("here", "in files"))
    if client is not None:
        assert client.status == ("running" if place == "a client" else "closed")
    assert list(tmp_path.iterdir()) == []
    until(lambda: not threads.scheduler.tasks)
    graph.close()
    for ask in ASKED.values():
        with pytest.raises(InputError, match=r"^this graph was closed: .*; prepare it again$"):
            ask(graph)


def test_a_graph_that_nobody_holds_ends_what_was_opened_for_it(threads):
    graph = dasktc.prepare(TRIANGLE, client=threads.scheduler_address)
    client, other = graph.client, dasktc.prepare(TRIANGLE, client=threads.scheduler_address)
    assert int(graph.triangle_count(kernel="merge")) == 1
    assert client.status == "running"
    del graph
    until(lambda: client.status == "closed")
    assert int(other.triangle_count()) == 1
    other.close()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")  # Dask's, of the loop that was stopped
@pytest.mark.filterwarnings("ignore:Exception ignored in. <coroutine")
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"partition": "hash2d", "parts": 3}], ids=str)
def test_a_client_that_closes_during_a_count_is_said_in_one_line(threads, options):
    """It closes at every fifth progress report, from another thread."""
    source, ended = source_of(skewed_edges(60, 400, 5), parts=3), []
    for moment in range(0, 100, 5):
        client = Client(threads.scheduler_address, set_as_default=False)
        told = iter(range(1000))
        closing = threading.Timer(0.002 * moment, client.close)
        closing.start()
        try:
            dasktc.triangle_count(
                source,
                client,
                progress=lambda *_, c=client, t=told, m=moment: next(t) == m and c.close(),
                **keywords(**options),
            )
            ended.append("counted")
        except InputError as error:
            ended.append(str(error)[:20])
        closing.join()
        client.close()
    assert {*ended} - {"counted"} == {"the client is closed"}


def test_a_client_whose_cluster_did_not_start_is_none():
    left = SimpleNamespace(asynchronous=False, scheduler=None)
    with mock.patch("distributed.get_client", return_value=left):
        assert active_client() is None
        assert int(dasktc.triangle_count(TRIANGLE)) == 1


def test_what_was_opened_for_a_graph_that_could_not_be_prepared_is_closed(threads):
    with pytest.raises(InputError, match="fraction"):
        dasktc.prepare(pd.DataFrame({"a": [0.5], "b": [1.0]}), client=threads.scheduler_address)
    until(lambda: set(threads.scheduler.clients) == {"fire-and-forget"})


OWNED = """
import os
import dasktc
from dasktc.executors.place import Place

if __name__ == "__main__":
    with dasktc.prepare(([0, 1, 2], [1, 2, 0]), Place(workers=1)) as graph:
        print(int(graph.triangle_count()), *graph.client.run(os.getpid).values())
    left = dasktc.prepare(([0, 1, 2], [1, 2, 0]), Place(workers=1))
    print(int(left.triangle_count()), *left.client.run(os.getpid).values())
"""


@pytest.mark.slow
def test_workers_of_a_prepared_graph_end_with_it_or_with_the_process(tmp_path):
    """This includes a graph that nobody closed: nothing is printed, and no process is left."""
    script = tmp_path / "script.py"
    script.write_text(OWNED)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-W", "error", script]
    running = subprocess.Popen(command, text=True, start_new_session=True, **pipes)
    out, err = running.communicate(timeout=patience(200))
    assert (running.returncode, err, [line.split()[0] for line in out.splitlines()]) == (0, "", ["1", "1"])
    until(lambda: not any(alive(int(line.split()[1])) for line in out.splitlines()))
    until(lambda: not subprocess.run(["pgrep", "-s", str(running.pid)], capture_output=True).stdout)


def test_the_settings_of_dask_go_with_the_last_who_needs_them():
    """Whichever of the users ends first."""
    setting = late_workers.TIMEOUT
    before = dask.config.get(setting)
    settings = SharedContext(late_workers._patient)
    with settings:
        settings.__enter__()
        assert dask.config.get(setting) == "1h"
    assert dask.config.get(setting) == "1h"
    settings.__exit__()
    assert dask.config.get(setting) == before


def test_dask_keeps_less_of_the_past_unless_the_user_chose():
    chosen = next(iter(places.KEPT_BY_DASK))
    with places._brief():
        assert {name: dask.config.get(name) for name in places.KEPT_BY_DASK} == {
            name: ours for name, (_, ours) in places.KEPT_BY_DASK.items()
        }
    with dask.config.set({chosen: 1234}), places._brief():
        assert dask.config.get(chosen) == 1234


@pytest.mark.slow
def test_workers_of_a_users_cluster_come_back_after_its_timeout(tmp_path):
    """After that time it ends the nanny of a missing worker; with GPUs Dask's 15 s may be too short."""
    slow = tmp_path / "slow.py"
    slow.write_text("import time\n\ntime.sleep(2)\n")
    with (
        local_cluster(n_workers=1, preload=[str(slow)]) as users,
        Client(users, set_as_default=False) as client,
        dask.config.set({late_workers.TIMEOUT: "1s"}),
    ):
        graph = dasktc.prepare(generate.kronecker(8), client)
        expected = int(graph.triangle_count())
        (nanny,) = users.workers.values()
        died = time.monotonic()
        os.kill(nanny.pid, signal.SIGKILL)
        until(lambda: not client.ncores())
        assert int(graph.cliques(3)) == expected == int(dasktc.triangle_count(generate.kronecker(8), client))
        assert time.monotonic() - died > 2
        del graph
        until(lambda: (gc.collect(), dask.config.get(late_workers.TIMEOUT))[1] == "1s")


# Clusters that do not answer


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(places, "CONNECT_SECONDS", 1)


@pytest.fixture
def silent_port():
    """A port that accepts connections and never sends anything."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    "address",
    some(
        ["tcp://127.0.0.1:1", "127.0.0.1:1", "nonsense", "ftp://x:1", "tcp://a.invalid:1"],
        lambda address: "127" not in address,
    ),
)
def test_an_address_without_a_scheduler_is_refused(short, address):
    with pytest.raises(ClusterError, match="scheduler") as error:
        dasktc.triangle_count(TRIANGLE, client=address)
    assert address in str(error.value)
    assert "\n" not in str(error.value)
    assert active_client() is None


@pytest.mark.slow
def test_a_scheduler_that_says_nothing_is_refused(short, silent_port, tmp_path):
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": f"tcp://127.0.0.1:{silent_port}"}))
    for place in ({"scheduler": f"tcp://127.0.0.1:{silent_port}"}, {"scheduler_file": str(file)}):
        with pytest.raises(ClusterError, match=r"no scheduler answered at .* in 1 s"):
            dasktc.triangle_count(TRIANGLE, **keywords(**place))


FROM_FILES = """
import sys, dasktc, dasktc.executors.connect
dasktc.executors.connect.CONNECT_SECONDS = 0.2
for file in sys.argv[1:]:
    try:
        dasktc.triangle_count(([0], [1]), file)
    except dasktc.ClusterError as error:
        print(error)
"""


@pytest.mark.slow
def test_scheduler_files_that_name_no_scheduler_are_refused(tmp_path):
    """Run in a process of its own, because waiting for a missing file could not be ended here."""
    files = [tmp_path / "missing.json"]
    for number, content in enumerate(["", "not json", '{"id": "x"}', "[]", '{"address": 5}', "[" * 20_000]):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(content)
    command = [sys.executable, "-W", "error", "-c", FROM_FILES, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience(), check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == len(files)
    assert all(str(file) in line for file, line in zip(files, lines, strict=True))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"scheduler_file": 5}, "scheduler_file=5 is of type int"),
        ({"scheduler_file": ""}, "scheduler_file='' is no path"),
        ({"scheduler_file": "{}"}, "scheduler_file=.* is no regular file"),
        ({"scheduler_file": "{}/fifo"}, "scheduler_file=.* is no regular file"),
        ({"scheduler": 5}, "scheduler=5 is no address"),
        ({"scheduler": b"tcp://127.0.0.1:1"}, "is no address"),
    ],
)
def test_what_is_no_file_or_no_address_is_refused(tmp_path, given, why):
    os.mkfifo(tmp_path / "fifo")
    (name, value), *_ = given.items()
    with pytest.raises(InputError, match=why):
        dasktc.triangle_count(
            TRIANGLE, **keywords(**{name: value.format(tmp_path) if isinstance(value, str) else value})
        )


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", ["ca_file", "cert", "key"])
def test_certificates_are_regular_files(tmp_path, name):
    os.mkfifo(tmp_path / "fifo")
    for value, why in ((tmp_path / "fifo", "is no regular file"), (5, "5 is of type int"), ("", "is no path")):
        with pytest.raises(InputError, match=rf"tls_(client_)?{name}=.*{why}"):
            security_of(**({"ca_file": None, "cert": None, "key": None} | {name: value}))


UNGUARDED = """
import dasktc
print(dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), dasktc.cluster(workers=2)).triangles)
"""


@pytest.mark.slow
def test_a_script_that_starts_workers_whenever_it_is_imported(tmp_path):
    """Each worker imports it: the workers end at once, the script ends with one error, and no process is left."""
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = subprocess.Popen([sys.executable, script], text=True, start_new_session=True, **pipes)
    out, err = running.communicate(timeout=patience())
    *raised, last = err.splitlines()
    assert (running.returncode, out) == (1, "")
    assert last.startswith(f"dasktc.errors.InputError: {script} starts workers whenever it is imported, and every")
    assert 'has to stand below `if __name__ == "__main__":`; move it there' in last
    assert sum(line.startswith("Traceback") for line in raised) == 1
    until(lambda: not subprocess.run(["pgrep", "-s", str(running.pid)], capture_output=True).stdout)


def test_workers_that_cannot_be_started_are_one_line(monkeypatch):
    refused = RuntimeError("Nanny failed to start.")
    refused.__cause__ = BlockingIOError(11, "Resource temporarily unavailable")
    monkeypatch.setattr("distributed.LocalCluster", mock.Mock(side_effect=refused))
    with pytest.raises(ClusterError, match=r"^2 workers could not be started \(Nanny .*; .*unavailable\): the system"):
        dasktc.triangle_count(TRIANGLE, client=Place(workers=2))


@pytest.mark.parametrize("door", [dasktc.triangle_count, dasktc.prepare, dasktc.plan])
def test_a_cluster_without_workers_is_refused(door):
    with (
        local_cluster(n_workers=0, processes=False) as empty,
        Client(empty, set_as_default=False) as client,
        pytest.raises(
            ClusterError,
            match=r"no worker joined inproc://\S+ in 0\.5 s: .*\(worker_timeout=\.\.\.\)$",
        ),
    ):
        door(TRIANGLE, client, run=RunOptions(worker_timeout=0.5))


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "60"])
def test_a_time_out_that_is_no_time_is_refused(seconds):
    with pytest.raises(InputError, match=r"worker_timeout=.* is no number of seconds above 0"):
        dasktc.triangle_count(TRIANGLE, run=RunOptions(worker_timeout=seconds))


def test_workers_may_come_late():
    with local_cluster(n_workers=0, processes=False) as late, Client(late, set_as_default=False) as client:
        later = threading.Timer(0.5, late.scale, [1])
        later.start()
        assert int(dasktc.triangle_count(TRIANGLE, client)) == 1
        later.join()


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


@pytest.mark.slow
def test_workers_start_where_dasks_folder_for_files_is_not_there_yet(tmp_path):
    with dask.config.set({"temporary-directory": str(tmp_path / "missing")}):
        assert int(dasktc.triangle_count([(0, 1), (1, 2), (2, 0)], client=Place(workers=1))) == 1


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


# What the scheduler sees


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


def prefixes(found):
    return {name for name in found.scheduler.task_prefixes if not name.startswith("from-")}


STAGES = {"read-rows", "canonical", "orient", "orient-plan", "blocks", "count"}
"""Integers of a narrow range need no map of their own in memory."""


@pytest.mark.parametrize("options", some([{}, {"memory": "1GB"}], lambda options: not options), ids=str)
def test_every_stage_is_a_task_group(threads, inner, options):
    """There are no other groups, and in particular no shuffle of dask.dataframe."""
    dasktc.triangle_count(generate.kronecker(14, parts=5), inner, **keywords(partition="hash2d", parts=2, **options))
    stages = STAGES | {"plan"} | ({"vertices"} if options else set())
    assert prefixes(threads) == stages
    dasktc.triangle_count(generate.kronecker(8), inner, verify=1.0, **keywords(reorder="collective", **options))
    assert prefixes(threads) == stages | {"degrees", "reorder", "verify"}


@pytest.mark.parametrize("options", [{}, {"memory": "1GB"}], ids=["in memory", "in files"])
def test_a_dask_dataframe_brings_no_shuffle(threads, inner, options):
    import dask.dataframe as dd

    frame = dd.from_pandas(pd.DataFrame(random_edges(100, 2_000, 4), columns=["a", "b"]), npartitions=3)
    dasktc.triangle_count(frame, inner, **keywords(**options))
    assert not [name for name in threads.scheduler.task_prefixes if "shuffle" in name or "p2p" in name]
    assert prefixes(threads) - {"frompandas"} == STAGES | ({"vertices"} if options else set())


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
    rows, counts = np.array(random_edges(2_000, 20_000, 3)), 20
    settings = {"distributed.admin.low-level-log-length": 8, "distributed.worker.profile.enabled": False}
    with (
        dask.config.set(settings),
        local_cluster(n_workers=1, processes=False) as found,
        Client(found, set_as_default=False) as inner,
    ):
        sizes = []
        tracemalloc.start()
        try:
            for number in (10, counts):
                for _ in range(number):
                    dasktc.triangle_count(rows, inner, run=RunOptions(distribute="never"))
                until(lambda: not found.scheduler.tasks)
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    assert sizes[1] - sizes[0] < counts * rows.nbytes / 10


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


def test_a_prepared_graph_holds_its_blocks_and_no_edges(threads, inner):
    """Nothing of the size of the edge list stays in memory from the stages before."""
    graph = dasktc.prepare(generate.kronecker(14, parts=5), inner, method=Method(partition="whole"))

    def held():
        return sum(task.nbytes for task in threads.scheduler.tasks.values() if task.who_has)

    vectors = 80 * graph.vertices
    until(lambda: held() < len(threads.workers) * graph.plan.bytes_total + vectors)
    assert int(graph.triangle_count()) == KRONECKER_14


# What travels through the client


class Sizer(pickle.Pickler):
    """Pickles without futures, to measure a call's arguments by themselves."""

    def persistent_id(self, obj):
        return "future" if isinstance(obj, Future) else None


def weight(obj):
    import io

    out = io.BytesIO()
    Sizer(out, protocol=5).dump(obj)
    return len(out.getvalue())


@pytest.fixture
def meter(monkeypatch):
    """Bytes of every submitted call's arguments, and of every result that came to a client."""
    sent, brought = [], []
    submit, gather = Client.submit, Client._gather

    def metered_submit(self, function, *args, **kwargs):
        sent.append(weight(args))
        return submit(self, function, *args, **kwargs)

    async def metered_gather(self, *args, **kwargs):
        found = await gather(self, *args, **kwargs)
        brought.append(weight(found))
        return found

    monkeypatch.setattr(Client, "submit", metered_submit)
    monkeypatch.setattr(Client, "_gather", metered_gather)
    return SimpleNamespace(sent=sent, brought=brought)


def test_the_meter_sees_what_travels(inner, meter):
    assert len(inner.gather(inner.submit(np.arange, 1_000))) == 1_000
    assert 8_000 < meter.brought[-1] < 9_000
    inner.submit(len, np.arange(2_000)).result()
    assert meter.sent[-1] > 16_000


@pytest.mark.parametrize(
    "options",
    some(
        [{}, {"partition": "hash2d", "parts": 4, "splits": 2, "verify": 1.0}, {"reorder": "collective"}],
        lambda options: "parts" in options,
    ),
    ids=str,
)
def test_no_edge_list_reaches_the_client(client, meter, options):
    """213,100 edges take 1.7 MB as keys: the client receives only samples of them and numbers."""
    result = dasktc.triangle_count(generate.kronecker(14, parts=5), client, **keywords(**options))
    assert (int(result), result.edges) == (KRONECKER_14, 213_100)
    assert max(meter.brought) < 40_000
    assert max(meter.sent) < 4_000
    assert sum(meter.brought) < 150_000


# Memory of the workers


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
    assert (tasks.workers, tasks.memory()) == (at_a_time, memory)


def test_a_budget_of_a_worker_is_shared_by_its_threads():
    assert DaskExecutor(FakeClient((8 << 30, 4), (4 << 30, 1))).memory(2 << 30) == 1 << 29
    assert LocalExecutor().memory(2 << 30) == 2 << 30


def test_without_any_worker_left_memory_is_an_error_of_the_cluster():
    """All workers may just have died."""
    with pytest.raises(ClusterError):
        DaskExecutor(FakeClient(), patience=0.2).memory()


def test_an_answer_that_was_overwritten_is_asked_for_again():
    """Dask's client stores the answers of its own polls, which ask for no workers, in the same place."""
    client, asked = FakeClient((10**10, 1)), []
    answer = client.scheduler_info

    def overwritten(n_workers):
        asked.append(n_workers)
        return answer(n_workers) if len(asked) > 2 else {"workers": {}}

    client.scheduler_info = overwritten
    assert DaskExecutor(client).memory() == 6 * 10**9


def test_keys_are_unique_in_several_threads():
    """Two tasks with one key would be one task, and share its result."""
    keys, interval = [], sys.getswitchinterval()
    client = FakeClient((1, 1))
    client.submit = lambda function, *args, key, **kwargs: keys.append(key)
    tasks = DaskExecutor(client)

    def submit():
        for _ in range(2_000):
            tasks.submit("count", len, ())

    running = [threading.Thread(target=submit) for _ in range(8)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(set(keys)) == 16_000


def test_the_plan_is_for_the_cluster(client):
    plan = dasktc.prepare(source_of(random_edges(40, 200, 1)), client).plan
    assert (plan.workers, plan.splits) == (2, 8)
    assert dasktc.prepare(TRIANGLE, client).plan.splits == 3  # it has no more rows
    limits = [worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
    assert plan.memory <= min(limits)
    assert dasktc.prepare(TRIANGLE, client, memory="3MB").plan.memory == 3_000_000


def test_connect_closes_what_it_opened_and_nothing_else(cluster, client):
    with connect(Place(client)) as tasks:
        assert tasks.client is client
    assert client.status == "running"
    with connect(Place(scheduler=cluster.scheduler_address)) as tasks:
        opened = tasks.client
    assert opened.status == "closed"
    with connect() as tasks:
        assert isinstance(tasks, LocalExecutor)


# Imports, and sources that compute nothing


def test_import_brings_no_heavy_library():
    heavy = {
        "cupy",
        "cudf",
        "dask_cuda",
        "distributed",
        "pandas",
        "numba",
        "scipy",
        "pyarrow",
        "psutil",
        "dask",
    }
    code = "import sys, dasktc; print(*(name for name in sys.modules if '.' not in name))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.split())


def test_a_count_without_a_client_does_not_import_distributed():
    code = "import sys, dasktc; print(int(dasktc.triangle_count(([0, 1, 2], [1, 2, 0]))), 'distributed' in sys.modules)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]


def test_building_a_source_computes_nothing(inner, threads):
    import dask.dataframe as dd

    def refuse(*args, **kwargs):
        raise AssertionError("computed")

    frame = dd.from_pandas(pd.DataFrame(random_edges(100, 500, 6), columns=["a", "b"]), npartitions=4)
    with dask.config.set(scheduler=refuse), inner.as_current():
        assert len(from_object(frame, ReadOptions()).parts) == 4
        generate.kronecker(30)
    assert not threads.scheduler.task_prefixes
