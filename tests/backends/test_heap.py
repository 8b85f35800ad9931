"""Free memory of the heap goes back after calls, and workers keep theirs during a count."""

import json
import os
import subprocess
import sys
import threading
import time

import dask
import pytest
from distributed import Client, LocalCluster

import dasktc
from dasktc.backends import heap
from dasktc.backends.calls import one_call
from dasktc.backends.idle import Idle
from dasktc.options import RunOptions
from tests.support.processes import patience, until

EDGES = ([0, 1, 2], [1, 2, 0])
SPAWNED = {"distributed.worker.multiprocessing-method": "spawn"}  # malloc reads its variables once
SPAWN = "distributed.nanny.pre-spawn-environ"
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc")


@pytest.mark.parametrize("postponed", [True, False])
def test_something_is_given_back_once_after_many_calls(postponed):
    made, seconds = [], patience(0.3)
    idle = Idle(seconds, lambda: made.append(time.monotonic()), postponed)
    first = time.monotonic()
    for _ in range(10):
        idle.later()
        time.sleep(0.05)
    last = time.monotonic()
    until(lambda: made)
    if postponed:
        assert made[0] >= last + seconds - 0.1
        assert len(made) == 1
    else:
        assert made[0] >= first + seconds
    before = len(made)
    idle.later()
    until(lambda: len(made) > before)


def test_an_error_while_giving_back_is_not_the_last():
    made = []

    def failing() -> None:
        made.append(threading.current_thread().name)
        raise OSError

    idle = Idle(0.0, failing)
    for number in range(1, 4):
        idle.later()
        until(lambda number=number: len(made) >= number)
    assert set(made) == {"dasktc-idle"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_gives_back_too():
    made = threading.Event()
    idle = Idle(0.0, made.set)
    idle.later()
    assert made.wait(10)
    made.clear()
    child = os.fork()
    if not child:
        idle.later()
        os._exit(0 if made.wait(10) else 1)
    assert os.waitpid(child, 0)[1] == 0


FRAGMENTED = """
import threading, time, psutil
import dasktc
from dasktc.backends import heap

heap._after_calls._seconds = 0.2
resident = lambda: psutil.Process().memory_info().rss
kept = []

def receive():
    freed = []
    for _ in range(500):
        freed.append(b"x" * 100_000)
        kept.append(b"x" * 1000)  # between all that is freed, so that the heap cannot shrink
    freed.clear()

thread = threading.Thread(target=receive)
thread.start()
thread.join()
assert dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), backend="cpu") == 1
before, ends = resident(), time.monotonic() + 20
while resident() > before - 30_000_000 and time.monotonic() < ends:
    time.sleep(0.05)
print(before - resident())
"""


@linux
@pytest.mark.slow
def test_free_memory_goes_back_after_a_call():
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run([sys.executable, "-c", FRAGMENTED], capture_output=True, text=True, check=True, env=environ)
    assert int(done.stdout) > 30_000_000


BYTES_AN_EDGE = """
import json, sys
from dasktc.bench.pipeline import in_cluster, in_process, write_kronecker

if __name__ == "__main__":
    path = sys.argv[1]
    write_kronecker(18, path)
    process, worker = in_process(path), in_cluster(path, 1)
    stages = {stage: (peak - process.baseline) / process.edges for stage, peak in process.peaks.items()}
    print(json.dumps({**stages, "worker": (worker.peaks[0] - worker.baselines[0]) / worker.edges}))
"""


@linux
@pytest.mark.slow
def test_what_a_step_freed_takes_no_memory_in_the_next(tmp_path):
    """Frames and keys are gone when the next step begins; malloc would keep what lies between other values."""
    program, edges = tmp_path / "program.py", tmp_path / "edges.parquet"
    program.write_text(BYTES_AN_EDGE)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    call = [sys.executable, str(program), str(edges)]
    peaks = json.loads(subprocess.run(call, capture_output=True, text=True, check=True, env=environ).stdout)
    assert peaks["canonical"] < 24  # 9 of frames and 9 of keys; 28 with what reading left
    assert peaks["count"] < 13  # 4 of columns; 19
    assert peaks["worker"] < 28  # 33


def _keeps(dask_worker) -> bool:
    return heap._malloc.values == heap.KEEPING


def _idle_after(seconds: float) -> None:
    heap._when_idle._seconds = seconds


def _held_back(megabytes: int) -> int:
    """Bytes by which this process grows for arrays that it makes and frees."""
    import numpy as np
    import psutil

    before = psutil.Process().memory_info().rss
    for _ in range(3):
        arrays = [np.ones(1 << 20, "uint8") for _ in range(megabytes)]
        del arrays
    return psutil.Process().memory_info().rss - before


@linux
@pytest.mark.slow
def test_workers_keep_memory_during_counts_and_not_within_a_budget(monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", str(1 << 16))  # as Dask leaves it
    with dask.config.set(SPAWNED), dasktc.cluster(workers=1, backend="cpu") as client:
        assert not heap.KEEPING.keys() & os.environ.keys(), "programs that the user starts would inherit it"
        assert dask.config.get("distributed.nanny.pre-spawn-environ").get("MALLOC_TRIM_THRESHOLD_") != 1 << 30
        client.run(_idle_after, 6.0)
        assert dasktc.triangle_count(EDGES, run=RunOptions(distribute="always")) == 1
        assert set(client.run(_keeps).values()) == {True}
        (kept,) = client.run(_held_back, 200).values()
        assert kept > 150_000_000
        assert dasktc.triangle_count(EDGES, run=RunOptions(distribute="always"), memory="100MB") == 1
        assert set(client.run(_keeps).values()) == {False}
        (kept,) = client.run(_held_back, 200).values()
        assert kept < 50_000_000
        until(lambda: set(client.run(_keeps).values()) == {True})


@linux
@pytest.mark.slow
def test_what_the_user_set_for_workers_stays(monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "100000")
    with dask.config.set(SPAWNED), dasktc.cluster(workers=1, backend="cpu") as client:
        assert os.environ["MALLOC_TRIM_THRESHOLD_"] == "100000"
        assert set(client.run(os.environ.get, "MALLOC_TRIM_THRESHOLD_").values()) == {"100000"}
        assert set(client.run(_keeps).values()) == {False}


@linux
@pytest.mark.slow
def test_workers_that_dask_started_keep_memory_during_counts():
    with (
        dask.config.set(SPAWNED),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        client.run(_idle_after, 6.0)
        (kept,) = client.run(_held_back, 200).values()
        assert kept < 50_000_000
        assert dasktc.triangle_count(EDGES, run=RunOptions(distribute="always"), backend="cpu") == 1
        (kept,) = client.run(_held_back, 200).values()
        assert kept > 150_000_000
        until(lambda: set(client.run(_keeps).values()) == {False})
        (kept,) = client.run(_held_back, 200).values()
        assert kept < 50_000_000


@linux
@pytest.mark.slow
def test_what_the_user_set_for_dask_stays(monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "")  # a nanny sets it here for its workers: it is undone afterwards
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_")
    environ = {**dask.config.get(SPAWN), "MALLOC_TRIM_THRESHOLD_": 100_000}
    with (
        dask.config.set({**SPAWNED, SPAWN: environ}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        assert dasktc.triangle_count(EDGES, run=RunOptions(distribute="always"), backend="cpu") == 1
        assert set(client.run(_keeps).values()) == {False}


def _changes(monkeypatch, environ: dict[str, str], child: bool = True) -> list[tuple[int, int]]:
    """Start heap anew in a process with these variables; return the list of what it changes."""
    for name in heap.KEEPING:
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    changed: list[tuple[int, int]] = []
    monkeypatch.setattr(heap.multiprocessing, "parent_process", lambda: child or None)
    monkeypatch.setattr(heap, "_malloc", heap._Malloc())
    monkeypatch.setattr(heap.ctypes, "CDLL", lambda _: _Libc(changed))
    return changed


OURS = {name: str(value) for name, value in heap.KEEPING.items()}
DASKS = {"MALLOC_TRIM_THRESHOLD_": "65536"}
KEEPS, TRIMS, KEEPS_NOTHING = (
    [(-1, 1 << 30), (-2, 1 << 26), (-4, 0)],
    [(-1, 1 << 16), (-2, 1 << 17), (-4, 1 << 16)],
    [(-1, 1 << 16), (-2, 0), (-4, 1 << 16)],
)


@linux
def test_dasks_workers_keep_memory_from_the_first_call_until_calls_have_ended(monkeypatch):
    changed = _changes(monkeypatch, DASKS)
    with one_call(on_worker=True), one_call(on_worker=True):
        assert changed == KEEPS
    with one_call(on_worker=True):
        heap._rest()  # the time after an earlier call is over
        assert changed == KEEPS
    heap._rest()
    assert changed == KEEPS + TRIMS
    with one_call():
        assert changed == KEEPS + TRIMS


@linux
@pytest.mark.parametrize(("environ", "usual"), [(OURS, KEEPS), (DASKS, TRIMS)])
def test_a_budget_holds_until_calls_have_ended(monkeypatch, environ, usual):
    changed = _changes(monkeypatch, environ)
    for _ in range(2):
        with one_call(on_worker=True):
            heap.keep_nothing()
    assert changed == ([] if usual is KEEPS else KEEPS) + KEEPS_NOTHING
    changed.clear()
    heap._rest()
    assert changed == usual
    with one_call(on_worker=True):
        assert changed == (KEEPS if usual is KEEPS else usual + KEEPS)


class _Libc:
    def __init__(self, changed: list) -> None:
        self._changed = changed

    def mallopt(self, name: int, value: int) -> int:
        self._changed.append((name, value))
        return 1

    def malloc_trim(self, _: int) -> int:
        return 1


@pytest.mark.parametrize(
    ("environ", "child"),
    [
        ({}, True),
        (DASKS, False),  # a nanny leaves this in the environment of its own process
        ({"MALLOC_TRIM_THRESHOLD_": "100000"}, True),
        ({**DASKS, "MALLOC_TOP_PAD_": "0"}, True),
        ({**DASKS, "MALLOC_ARENA_MAX": "2"}, True),
    ],
)
def test_other_processes_are_left_as_they_are(monkeypatch, environ, child):
    changed = _changes(monkeypatch, environ, child)
    with one_call(on_worker=True):
        heap.keep_nothing()
    heap._rest()
    assert not changed
