"""The exchange: what each range receives, in one step or two."""

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dasktc.api.count import build
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.executors.stores.file_store import FileStore
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.options import Options
from dasktc.pipeline.planes import Tuning
from dasktc.pipeline.planes.exchange import Inputs, exchange
from dasktc.pipeline.planes.workers import WorkersPlane
from tests.support import oracle
from tests.support.slow_pipeline import key_arrays, skewed_edges, source_of, tuned


@given(
    st.lists(key_arrays(), min_size=1, max_size=30),
    st.lists(st.integers(0, 120), max_size=30).map(sorted),
    st.booleans(),
)
def test_two_steps_bring_together_what_one_does(keys, starts, many):
    """With no more tasks: one array of every range from every partition, or from every group."""
    made, tasks, transpose = [], LocalExecutor(), LocalExecutor.transpose

    def counted(*args):
        made.append(len(args[2]) * args[3])
        return transpose(*args)

    plane = WorkersPlane(tasks, Options(), Tuning(direct=0 if many else 10**6))
    with mock.patch.object(LocalExecutor, "transpose", counted):
        ranges = plane.exchange("test", Inputs(list(keys)), starts, 100)
    borders = [0, *starts, 10**9]
    assert len(ranges) == len(starts) + 1
    for found, low, high in zip(ranges, borders, borders[1:], strict=False):
        assert np.unique(np.concatenate(found)).tolist() == sorted(
            {key for array in keys for key in array.tolist() if low <= key < high}
        )
    root = int(np.sqrt(len(starts))) + 1
    assert sum(made) <= (2 * (len(keys) + root) * root if many and starts else len(keys) * (len(starts) + 1))


def test_a_cluster_goes_in_two_steps(client, monkeypatch):
    monkeypatch.setattr(WorkersPlane, "partitions", lambda *_: 5)
    edges = skewed_edges(60, 700, 3)
    with tuned(direct=1):
        graph = build(DaskExecutor(client), source_of(edges, parts=4), Options(partition="hash2d", parts=3))
    result = graph.triangle_count()
    assert int(result) == oracle.triangles(edges)


def test_an_exchange_of_one_range_takes_its_inputs_over(tmp_path):
    tasks = LocalExecutor(FileStore(WorkDir(tmp_path), 1 << 30))
    inputs = Inputs(tasks.map("keys", np.arange, [1 << 16, 1 << 17]))
    (taken,) = exchange(tasks, "keys", inputs, [], 1 << 40)
    assert len(taken) == 2
    assert inputs.handles == []
