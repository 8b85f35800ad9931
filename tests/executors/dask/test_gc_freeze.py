"""Objects that Python's garbage collector is made to skip."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from unittest import mock

import pytest
from dask.utils import key_split

import dasktc
from dasktc.executors.dask import worker_state
from dasktc.executors.dask.gc_freeze import frozen_heap
from dasktc.io.generators.synthetic import kronecker
from dasktc.options import RunOptions
from tests.support.processes import until


@pytest.fixture
def nothing_frozen():
    """As in a fresh interpreter: the freeze that saves the tests time is undone meanwhile."""
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.freeze()


class Cycle:
    """Cyclic garbage, which only the collector finds."""

    gone = 0

    def __init__(self):
        self.me = self

    def __del__(self):
        Cycle.gone += 1


@pytest.mark.usefixtures("nothing_frozen")
def test_what_is_there_is_left_out_and_given_back():
    Cycle.gone = 0
    Cycle()  # garbage from before
    with frozen_heap():
        frozen = gc.get_freeze_count()  # some of them go meanwhile, by their counts
        with frozen_heap():
            assert gc.get_freeze_count() > frozen // 2 > 10_000
        assert gc.get_freeze_count() > frozen // 2, "the inner one is not the one that gives back"
        gc.collect()
        assert Cycle.gone == 0
        Cycle()  # garbage from now on
        gc.collect()
        assert Cycle.gone == 1
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert Cycle.gone == 2


@pytest.mark.usefixtures("nothing_frozen")
def test_what_others_froze_stays_frozen():
    gc.freeze()
    frozen = gc.get_freeze_count()
    with frozen_heap():
        pass
    assert gc.get_freeze_count() > frozen // 2 > 10_000


@pytest.mark.usefixtures("nothing_frozen")
def test_a_few_objects_are_what_an_interpreter_begins_with(monkeypatch):
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 375)
    with mock.patch.object(gc, "freeze") as freeze, mock.patch.object(gc, "unfreeze") as unfreeze:
        with frozen_heap():
            freeze.assert_called_once()
        unfreeze.assert_called_once()


@pytest.mark.usefixtures("nothing_frozen")
def test_an_error_gives_back_too():
    with pytest.raises(ValueError, match="meant"), frozen_heap():
        raise ValueError("meant")
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("nothing_frozen")
def test_a_count_on_a_cluster_gives_back(client):
    assert int(dasktc.triangle_count(kronecker(8), client=client)) > 0
    assert gc.get_freeze_count() == 0


def kept_by_dask(dask_worker):
    """Sums of tasks that have run, which Dask keeps on a worker."""
    sums = [*dask_worker.digests_total, *dask_worker.digests_max]
    return sum(isinstance(name, tuple) and name[0] == "execute" for name in sums)


def test_workers_keep_no_sums_of_tasks_long_gone(client):
    for _ in range(2):
        dasktc.triangle_count(kronecker(8), client, run=RunOptions(distribute="always"))
    until(lambda: not any(client.run(kept_by_dask).values()))


def test_names_of_tasks_are_forgotten(monkeypatch):
    worker = SimpleNamespace(state=SimpleNamespace(tasks={}), digests_total={}, digests_max={})
    names = [f"read-{number}" for number in range(5)]
    for most, left in ((10**6, True), (3, False)):
        monkeypatch.setattr(worker_state, "MOST_NAMES", most)
        assert [key_split(name) for name in names] == ["read"] * 5
        worker_state.forget_past(worker)
        assert (key_split.cache_info().currsize >= 5) == left
