"""Objects that Python's garbage collector is made to skip."""

import gc
from unittest import mock

import pytest

import dasktc
from dasktc.executors.dask.gc_freeze import frozen_heap
from dasktc.io.generators.synthetic import kronecker


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
