"""Where slabs of blocks are built."""

from __future__ import annotations

import pytest

from dasktc.executors.local import LocalExecutor
from dasktc.options import Options
from dasktc.pipeline.planes import Plane, choose
from dasktc.pipeline.prepare import prepare_edges
from dasktc.planning.grid import Axis, Layout, Shape
from tests.support import oracle
from tests.support.slow_pipeline import source_of


class Placed(Exception):
    """Raised with the workers on which blocks were to be built."""


@pytest.mark.parametrize(("workers", "anywhere"), [(9, True), (4, False)])
def test_slabs_of_few_blocks_may_be_built_by_any_worker(monkeypatch, workers, anywhere):
    def placed(plane, stage, keys, copies, starts, bound, function, calls, where=()):
        raise Placed(where)

    graph = prepare_edges(LocalExecutor(), source_of(oracle.complete(40)), Options()).graph
    monkeypatch.setattr(Plane, "redistribute", placed)
    monkeypatch.setattr(Plane, "partitions", lambda *given: 12)
    layout = Layout(Axis(40, 2), (Axis(40, 2),), Shape(40, 6, True))
    with pytest.raises(Placed) as raised:
        choose(LocalExecutor(threads=workers), Options()).blocks(
            graph, layout, where=dict.fromkeys(layout.places, "w0")
        )
    (at,) = raised.value.args
    assert len(at) > len(layout.places)
    assert (set(at) == {None}) == anywhere
