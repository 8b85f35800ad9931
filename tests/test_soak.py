"""`dasktc bench soak`: its checks can fail, and two minutes of it pass."""

from __future__ import annotations

import os
import random
import signal
from types import SimpleNamespace

import pytest

from dasktc.bench import soak
from dasktc.errors import CountError, InputError


def test_growth_compares_quarters():
    flat = [(float(when), 100) for when in range(100)]
    assert soak._growth(flat) == 0
    assert soak._growth([(when, 100 if when < 50 else 103) for when, _ in flat]) == pytest.approx(0.03)
    assert soak._growth([(when, 1 if when < 25 else 100) for when, _ in flat]) == 0, "caches fill at first"
    assert soak._growth(flat[:1]) is None


def test_files_and_memory_are_judged():
    soak._judge([], {"client": 0.019, "worker": None}, soak.SETTLED)
    soak._judge([], {"client": 0.5}, soak.SETTLED - 1)
    with pytest.raises(CountError, match="1 files were left by counts, first /tmp/a"):
        soak._judge(["/tmp/a"], {}, 1)
    with pytest.raises(CountError, match=r"memory of a client grew by \+2\.1%"):
        soak._judge([], {"client": 0.021}, soak.SETTLED)


def test_memory_is_that_of_this_process_of_workers_and_of_devices(monkeypatch):
    shown = [(9, 4), (9, 1), (None, None)]
    given = [{"memory_bytes": total, "free_bytes": free} for total, free in shown]
    monkeypatch.setattr(soak, "visible", lambda: given)
    nobody = SimpleNamespace(cluster=SimpleNamespace(workers={}))
    workers = {0: SimpleNamespace(pid=os.getpid()), 1: SimpleNamespace(pid=None), 2: SimpleNamespace(pid=2**30)}
    assert soak._resident(nobody, "cpu").keys() == {"client"}
    assert soak._resident(nobody, "cuda")["device"] == 8
    held = soak._resident(SimpleNamespace(cluster=SimpleNamespace(workers=workers)), "cpu")
    assert held["worker"] == pytest.approx(held["client"], rel=0.1)


@pytest.mark.parametrize("scene", dict.fromkeys(soak.SCENES), ids=lambda scene: scene.__name__)
@pytest.mark.slow
def test_a_wrong_count_is_found(scene, client, tmp_path):
    """By every scene, of a graph of which one triangle too many is said to be known."""
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
def test_two_minutes():
    report = soak.run(minutes=2)
    facts = dict(report.sections[0].rows)
    assert facts["wrong"] == facts["files left"] == 0
    assert facts["exact"] > 0
    assert facts["seconds"] >= 120
