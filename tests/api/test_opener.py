"""The opener of calls: what it opens is closed, whenever an interrupt comes."""

from __future__ import annotations

import pytest

import dasktc
from dasktc.api import cluster, open_graph, opener
from dasktc.executors.place import Place

EDGES = [0, 1, 2], [1, 2, 0]
DOORS = {
    "count": (opener, "connect", lambda: dasktc.triangle_count(EDGES, threads=1)),
    "prepare": (opener, "connect", lambda: dasktc.prepare(EDGES, threads=1)),
    "plan": (opener, "connect", lambda: dasktc.plan(EDGES, threads=1)),
    "cluster": (cluster, "started", lambda: dasktc.cluster(1, "cpu")),
    "get_graph": (open_graph, "joined", lambda: dasktc.get_graph("roads", Place(scheduler="tcp://127.0.0.1:1"))),
}


class Interrupted:
    """A place for whose user an interrupt comes as soon as it is open."""

    def __init__(self, opened: list[str]) -> None:
        self.opened = opened

    def __enter__(self) -> None:
        self.opened.append("workers")
        raise KeyboardInterrupt

    def __exit__(self, *error: object) -> None:
        self.opened.clear()


@pytest.mark.parametrize("door", DOORS)
def test_an_interrupt_as_soon_as_the_place_is_open_closes_it(monkeypatch, door):
    (module, name, ask), opened = DOORS[door], ["nothing yet"]
    monkeypatch.setattr(module, name, lambda *_, **__: Interrupted(opened))
    with pytest.raises(KeyboardInterrupt) as kept:  # its traceback keeps what was opened from being collected
        ask()
    assert kept.value is not None
    assert opened == []


def test_an_error_while_a_place_opens_is_the_error_of_the_call():
    with pytest.raises(dasktc.InputError, match="below 1"):
        dasktc.triangle_count(EDGES, Place(workers=0))
