"""`dasktc bench soak`: its checks can fail, and a minute of it passes."""

from __future__ import annotations

import os
import random
import signal
import time
from types import SimpleNamespace

import pytest

from dasktc.api.cluster import cluster
from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.select import get_backend
from dasktc.bench import soak
from dasktc.errors import CountError, InputError


def series(size, number=100):
    return [(float(when), {"client": size(when)}) for when in range(number)]


def test_growth_compares_quarters():
    flat = series(lambda when: 100)
    assert soak._growth(flat, [], "client") == 0
    assert soak._growth(series(lambda when: 100 if when < 50 else 103), [], "client") == pytest.approx(0.03)
    assert soak._growth(series(lambda when: 1 if when < 25 else 100), [], "client") == 0, "caches fill at first"
    assert soak._growth(flat[:1], [], "client") is None
    assert soak._growth(flat, [], "worker") is None


def test_growth_of_the_control_is_subtracted():
    """It is a number of bytes, also where its processes are smaller; one that shrinks proves nothing."""
    grows = series(lambda when: 1000 if when < 50 else 1030)
    control = series(lambda when: 200 if when < 50 else 220)
    assert soak._growth(grows, control, "client") == pytest.approx(0.01)
    assert soak._growth(grows, series(lambda when: 200 - when), "client") == pytest.approx(0.03)


@pytest.mark.slow
def test_the_control_runs_tasks_of_the_same_names():
    with cluster(workers=1, backend="cpu") as client, soak._control(1) as no_ops:
        batches = soak._submitted(client)
        assert client.gather(client.map(int, range(3), key=[("count-0123abcd", k) for k in range(3)])) == [0, 1, 2]
        assert client.submit(int, "7", key="alone", pure=False).result() == 7
        assert batches == [["count-0123abcd"] * 3, ["alone"]]
        sizes = no_ops(batches).result(timeout=60)
        assert batches == []
        assert all(1 << 25 < sizes[who] < 1 << 31 for who in soak.CONTROLLED)


def test_files_and_memory_are_judged():
    soak._judge([], {"client": 0.019, "worker": None}, soak.SETTLED)
    soak._judge([], {"client": 0.5}, soak.SETTLED - 1)
    with pytest.raises(CountError, match="1 file was left by counts, first /tmp/a"):
        soak._judge(["/tmp/a"], {}, 1)
    with pytest.raises(CountError, match=r"memory of a client grew by \+2\.1%"):
        soak._judge([], {"client": 0.021}, soak.SETTLED)


def test_memory_is_that_of_this_process_of_the_spared_worker_and_of_its_gpu(monkeypatch):
    shown = [(9, 4), (9, 1), (None, None)]
    given = [{"memory_bytes": total, "free_bytes": free} for total, free in shown]
    monkeypatch.setattr(soak, "visible", lambda: given)
    own = os.getpid()
    for place, used in enumerate((5, 8, None)):
        workers = {number: SimpleNamespace(pid=own if number == place else 2**30) for number in range(3)}
        client = SimpleNamespace(cluster=SimpleNamespace(workers=workers))
        assert soak._held(client, "cuda", None).keys() == {"client"}
        held = soak._held(client, "cpu", own)
        assert held["worker"] == pytest.approx(held["client"], rel=0.1)
        assert soak._held(client, "cuda", own).get("device") == used
    with pytest.raises(CountError, match="worker process 12 has ended, which nobody killed"):
        soak._held(client, "cpu", 12)


def test_any_worker_is_killed_until_one_is_spared(monkeypatch, tmp_path):
    killed, run, workers = [], [], {number: SimpleNamespace(pid=number) for number in (3, 4)}
    cluster = SimpleNamespace(workers=workers, scheduler=SimpleNamespace(workers=workers))
    client = SimpleNamespace(cluster=cluster, run=run.append)
    monkeypatch.setattr(soak.os, "kill", lambda pid, _: killed.append(pid))

    def make(spared_from: float) -> int | None:
        killed.clear()
        trouble = soak._Trouble(client, tmp_path, random.Random(5), spared_from)
        trouble._kinds = [trouble._kill]
        rounds = iter([False] * 50)
        trouble._over = SimpleNamespace(wait=lambda _: next(rounds, True))
        trouble._make()
        return trouble.spared

    assert make(time.monotonic() + 1000) is None
    assert (set(killed), run) == ({3, 4}, [])
    assert make(time.monotonic() - 1) == 3
    assert (set(killed), run) == ({4}, [get_backend("cpu").warm])


def test_all_kernels_are_loaded_before_memory_is_judged(monkeypatch):
    loaded = set()
    monkeypatch.setattr(Kernel, "load", lambda kernel: loaded.add(kernel._function.__name__))
    assert get_backend("cpu").warm() > 40
    assert {"_order", "_keys_of"} <= loaded
    assert len(loaded) > 40


@pytest.mark.parametrize("scene", dict.fromkeys(soak.SCENES), ids=lambda scene: scene.__name__)
@pytest.mark.slow
def test_a_wrong_count_is_found(scene, client, tmp_path):
    """Every scene finds it, on a graph whose known number is one triangle too large."""
    client.cluster = None  # scenes start nothing
    known = soak._known(random.Random(3))
    scene(known, client, "cpu", tmp_path, random.Random(4))
    with pytest.raises(CountError, match="triangles"):
        scene(known._replace(triangles=known.triangles + 1), client, "cpu", tmp_path, random.Random(4))
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_count_of_a_client_that_closes_is_found(client, tmp_path, monkeypatch):
    known = soak._known(random.Random(3))
    wrong = iter([known.triangles + 1])
    monkeypatch.setattr(soak, "triangle_count", lambda *_, **__: next(wrong, known.triangles))
    with pytest.raises(CountError, match="a client that closed gave"):
        soak.left_alone(known, client, "cpu", tmp_path, random.Random(4))


def test_no_time_is_refused():
    for minutes in (0, -1, float("nan")):
        with pytest.raises(InputError, match="--minutes"):
            soak.run(minutes=minutes)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="workers are stopped by signals")
def test_a_minute():
    report = soak.run(minutes=1)
    facts = dict(report.sections[0].rows)
    assert facts["wrong"] == facts["files left"] == 0
    assert facts["exact"] > 0
    assert facts["seconds"] >= 60
