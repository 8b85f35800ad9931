"""`dasktc bench kills`: it kills workers, compares answers, and reports the outcome."""

import random

import pytest

from dasktc.bench import kills
from dasktc.errors import ClusterError, CountError, InputError


@pytest.mark.slow
def test_counts_are_exact_while_workers_are_killed():
    said = []
    report = kills.run(kills=3, scale=10, backend="cpu", seed=2, say=said.append)
    facts = dict(report.sections[0].rows)
    assert facts["workers killed"] >= 3
    assert (facts["counts wrong"], facts["counts refused"], facts["times not all came back in 120 s"]) == (0, 0, 0)
    assert len(said) == facts["counts exact"] <= facts["workers killed"]
    assert "--backend cpu --protocol auto --seed 2" in str(report)


@pytest.fixture
def quiet(monkeypatch):
    """A cluster without workers, on which a stand-in counts and returns `answers`, the first three without kills."""
    from contextlib import nullcontext
    from types import SimpleNamespace

    answers = []

    def count(*_, **__):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    class Killed(kills.Killer):
        def begin(self):
            self.left = 1

        @property
        def kills_more(self):
            self.left -= 1
            self.kills += 1
            return self.left >= 0

    client = SimpleNamespace(scheduler=SimpleNamespace(address="tcp://here"))
    client.cluster = SimpleNamespace(scheduler=SimpleNamespace(workers=[1, 2]), workers={})
    monkeypatch.setattr(kills, "cluster", lambda *_, **__: nullcontext(client))
    monkeypatch.setattr(kills, "triangle_count", count)
    monkeypatch.setattr(kills, "Killer", Killed)
    return answers


def test_a_wrong_answer_is_an_error(quiet):
    quiet.extend([7, 7, 7, 8])
    with pytest.raises(CountError, match="gave 8 triangles, 7 are right"):
        kills.run(kills=1, scale=4, backend="cpu")


def test_refusals_are_told(quiet):
    quiet.extend([7, 7, 7, ClusterError("all workers\nwere lost"), 7])
    report = kills.run(kills=3, scale=4, backend="cpu")
    assert dict(report.sections[0].rows)["counts refused"] == 1
    assert "refused: all workers were lost" in str(report)


def test_no_kill_is_refused():
    with pytest.raises(InputError, match="--kills 0: no worker would be killed"):
        kills.run(kills=0)


def test_a_worker_that_has_just_ended_is_no_error(monkeypatch):
    def gone(pid, signal):
        raise ProcessLookupError

    monkeypatch.setattr(kills.os, "kill", gone)
    monkeypatch.setattr(kills, "worker_pids", lambda client: [1])
    killer = kills.Killer(None, random.Random(1), 0.0)
    killer.begin()
    killer._thread.join(20)
    assert (killer.kills_more, killer.kills) == (False, 0)
