"""Whose client and whose cluster a call runs on, and clusters that do not answer."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from unittest import mock

import dask
import pytest
from distributed import Client, get_client

import dasktc
from dasktc import generate
from dasktc.errors import ClusterError, InputError
from dasktc.executors import connect as places
from dasktc.executors.connect import active_client, connect
from dasktc.executors.local import LocalExecutor
from dasktc.executors.place import Place
from dasktc.options import RunOptions
from tests.support.keywords import keywords
from tests.support.processes import alive, local_cluster, patience, until
from tests.support.tiers import some


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


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped")
def test_a_worker_that_dask_kills_leaves_no_file(tmp_path):
    """A stopped worker does not end when it is told to."""
    with dask.config.set({"temporary-directory": str(tmp_path)}), connect(Place(workers=1)) as tasks:
        (process,) = tasks.client.run(os.getpid).values()
        os.kill(process, signal.SIGSTOP)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} <= {".lock"}
    assert os.listdir(tmp_path) == ["dask-scratch-space"], "Dask's own, of the scheduler"


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


def test_a_client_whose_cluster_did_not_start_is_none():
    left = SimpleNamespace(asynchronous=False, scheduler=None)
    with mock.patch("distributed.get_client", return_value=left):
        assert active_client() is None
        assert int(dasktc.triangle_count(TRIANGLE)) == 1


def test_dask_keeps_less_of_the_past_unless_the_user_chose():
    chosen = next(iter(places.KEPT_BY_DASK))
    with places._brief():
        assert {name: dask.config.get(name) for name in places.KEPT_BY_DASK} == {
            name: ours for name, (_, ours) in places.KEPT_BY_DASK.items()
        }
    with dask.config.set({chosen: 1234}), places._brief():
        assert dask.config.get(chosen) == 1234


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
def test_an_address_without_a_scheduler_is_refused(address):
    place = replace(Place.of(address), connect_seconds=1)
    with pytest.raises(ClusterError, match="scheduler") as error:
        dasktc.triangle_count(TRIANGLE, client=place)
    assert address in str(error.value)
    assert "\n" not in str(error.value)
    assert active_client() is None


@pytest.mark.slow
def test_a_scheduler_that_says_nothing_is_refused(silent_port, tmp_path):
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": f"tcp://127.0.0.1:{silent_port}"}))
    for place in ({"scheduler": f"tcp://127.0.0.1:{silent_port}"}, {"scheduler_file": str(file)}):
        with pytest.raises(ClusterError, match=r"no scheduler answered at .* in 1 s"):
            dasktc.triangle_count(TRIANGLE, Place(**place, connect_seconds=1))


FROM_FILES = """
import sys, dasktc
from dasktc.executors.place import Place
for file in sys.argv[1:]:
    try:
        dasktc.triangle_count(([0], [1]), Place(scheduler_file=file, connect_seconds=0.2))
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
        pytest.raises(ClusterError, match=r"no worker joined inproc://\S+ in 0\.5 s: .*\(worker_timeout=\.\.\.\)$"),
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


@pytest.mark.slow
def test_workers_start_where_dasks_folder_for_files_is_not_there_yet(tmp_path):
    with dask.config.set({"temporary-directory": str(tmp_path / "missing")}):
        assert int(dasktc.triangle_count([(0, 1), (1, 2), (2, 0)], client=Place(workers=1))) == 1


def test_connect_closes_what_it_opened_and_nothing_else(cluster, client):
    with connect(Place(client)) as tasks:
        assert tasks.client is client
    assert client.status == "running"
    with connect(Place(scheduler=cluster.scheduler_address)) as tasks:
        opened = tasks.client
    assert opened.status == "closed"
    with connect() as tasks:
        assert isinstance(tasks, LocalExecutor)


def test_a_main_module_that_was_replaced_is_not_taken_for_one_that_is_imported_again(monkeypatch):
    """As `runpy` and IPython replace it; multiprocessing keeps the first one under another name."""
    monkeypatch.setitem(sys.modules, "__mp_main__", ModuleType("__main__"))
    places._end_if_imported_again()
    monkeypatch.setitem(sys.modules, "__mp_main__", ModuleType("__mp_main__"))
    monkeypatch.delenv(places.IMPORTED_AGAIN, raising=False)
    with pytest.raises(SystemExit):
        places._end_if_imported_again()
