"""Partitions, orders and blocks by the verbs of planes: their number and their place change no graph."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.api.count import build
from dasktc.backends import get_backend
from dasktc.backends.csr import OrientedCSR
from dasktc.executors.base import MemoryStore
from dasktc.executors.local import LocalExecutor
from dasktc.executors.stores.file_store import FileStore
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.options import Options
from dasktc.pipeline.planes import Frames, Handles, Plane, Tuning, choose
from dasktc.pipeline.planes.process import ProcessPlane
from dasktc.pipeline.planes.tuning import TUNING
from dasktc.pipeline.prepare import prepare_edges, silent
from dasktc.pipeline.stages.read import Span
from dasktc.planning.grid import Axis, Layout, Shape
from tests.support import oracle
from tests.support.oracle import complete, multigraphs, star
from tests.support.slow_pipeline import (
    EVERY_REORDER,
    by_dense_id,
    expected_order,
    orientation,
    prepared,
    random_edges,
    skewed_edges,
    source_of,
    tuned,
)


class Watched(LocalExecutor):
    """An executor with the partitions of several workers, which records the arrays that reach the client."""

    def __init__(self, workers):
        super().__init__(threads=workers)
        self.arrays = []

    def gather(self, handles):
        found = list(handles)
        self.arrays += [value for value in found if isinstance(value, np.ndarray)]
        return found


class Exchanging(ProcessPlane):
    """A plane of this process that exchanges the keys of large graphs, too."""

    def _sorts_together(self, keys):
        return False


def many_partitions(large=8):
    """Sizes at which a handful of edges are treated as many."""
    return tuned(one_partition=1, partition_edges={"cpu": large}, few_edges=0)


def test_partitions_are_about_equally_large(monkeypatch):
    monkeypatch.setattr(ProcessPlane, "_sorts_together", lambda plane, keys: False)
    monkeypatch.setattr(ProcessPlane, "partitions", lambda *given: 4)
    edges = np.random.default_rng(1).integers(0, 2**40, (4000, 2)).tolist()
    found = prepare_edges(LocalExecutor(), source_of(edges, parts=3), Options(partition="hash2d"))
    held = [len(keys) for keys in found.graph.partitions]
    assert len(held) == 4
    assert max(held) < 1.5 * sum(held) / 4


def test_few_edges_are_cut_where_memory_is_short(tmp_path):
    roomy, tight = (
        choose(LocalExecutor(FileStore(WorkDir(tmp_path), budget)), Options()) for budget in (1 << 30, 4000)
    )
    assert roomy.partitions(1000) == 1
    most = tight.executor.store.memory_in_parallel // TUNING.edge_bytes["cpu"]
    assert tight.partitions(1000) == -(-1000 // most) > 1


def test_partitions_hold_each_edge_once_in_ascending_order():
    edges = skewed_edges(200, 4_000, 1)
    plane = Exchanging(Watched(3), Options(partition="hash2d"), Tuning(one_partition=1, partition_edges={"cpu": 100}))
    frames = [part.read(get_backend("cpu")) for part in source_of(edges, parts=5).parts]
    proper = [frame[frame["src"] != frame["dst"]] for frame in frames]
    given = Frames(Handles(proper), sum(map(len, proper)), 0, Span(0, 2**40, 1))
    found = plane.canonical(given, plane.number(given, "int"))
    assert len(found.partitions) > 10
    keys = np.concatenate(list(found.partitions))
    assert (np.diff(keys) > 0).all()
    assert len(keys) == len(orientation(edges).edges)
    assert not given.frames


@given(multigraphs(), st.integers(1, 5), st.integers(1, 9), st.sampled_from(EVERY_REORDER), st.sampled_from([1, 2, 3]))
def test_the_number_of_partitions_changes_nothing(edges, parts, workers, reorder, n):
    slow = orientation(edges)
    with many_partitions():
        options = Options(partition="hash2d", parts=n, splits=1, reorder=reorder)
        graph = build(Watched(workers), source_of(edges, parts=parts), options, silent)
        result = graph.triangle_count()
    plain = build(LocalExecutor(), source_of(edges), Options(partition="hash2d", parts=n, splits=1, reorder=reorder))
    assert int(result) == int(plain.triangle_count())
    assert (result.edges, result.stats.wedges) == (len(slow.edges), slow.wedges)
    for place, block in graph._context.blocks.items():
        assert block.offsets.tolist() == plain._context.blocks[place].offsets.tolist()
        assert block.columns.tolist() == plain._context.blocks[place].columns.tolist()


LARGER = {"skewed": skewed_edges(400, 3_000, 1), "out-degrees 0 to 124, each once": complete(125) + star(300)}


@pytest.mark.parametrize(("name", "how"), [*product(LARGER, EVERY_REORDER)])
def test_vertices_are_in_the_order_of_its_rule(name, how):
    edges = LARGER[name]
    slow, found = orientation(edges, by_rows=how == "degree"), prepared(edges, parts=3, reorder=how)
    order, pairs = by_dense_id(found)
    assert order == expected_order(slow, how)
    assert pairs == slow.edges
    assert found.graph.out_degree.whole.tolist() == [len(slow.out[v]) for v in order]
    assert found.graph.in_degree.whole.tolist() == [slow.in_degree[v] for v in order]
    assert found.graph.wedges == slow.wedges


@pytest.mark.parametrize("how", EVERY_REORDER)
def test_only_degree_order_says_that_columns_lie_below_rows(how):
    found = prepared(random_edges(40, 200, 3), reorder=how)
    assert found.partition.layout.graph.ordered == (how == "degree")
    if found.partition.layout.graph.ordered:
        keys, mask = np.concatenate(list(found.graph.partitions)), (1 << found.partition.layout.shift) - 1
        assert (keys & mask < keys >> found.partition.layout.shift).all()


class Roomy(MemoryStore):
    """A store with a budget that nothing exceeds: the graph is prepared by calls that share no arrays."""

    memory_per_call = 1 << 40


class Frozen(Watched):
    """Makes results read-only, because on a cluster a task's input may be another task's input, too."""

    def __init__(self, workers):
        super().__init__(workers)
        self.store = Roomy()

    def submit(self, stage, function, *args, **options):
        return frozen(function(*args))

    def map(self, stage, function, inputs, *shared):
        return [frozen(result) for result in super().map(stage, function, inputs, *shared)]


def frozen(result):
    if isinstance(result, np.ndarray):
        result.flags.writeable = False
    elif isinstance(result, pd.DataFrame):
        return result.apply(lambda column: pd.Series(frozen(column.to_numpy(copy=True)), copy=False))
    elif isinstance(result, OrientedCSR):
        frozen(result.columns)
        frozen(result.offsets)
    elif type(result) in (tuple, list):
        return type(result)(frozen(item) for item in result)
    return result


def test_frozen_results_cannot_be_written_to():
    results = [*frozen([np.arange(3), (np.arange(3), 1)]), frozen(pd.DataFrame({"src": [1, 2]}))["src"].values]
    for array in (results[0], results[1][0], results[2]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


@pytest.mark.slow
@pytest.mark.parametrize("reorder", EVERY_REORDER)
@pytest.mark.parametrize("scale", [1, 2**40], ids=["table", "sorted"])
def test_tasks_never_change_their_inputs(reorder, scale):
    edges = [(scale * u, scale * v) for u, v in skewed_edges(200, 4_000, 2)]
    with many_partitions(large=300):
        options = Options(partition="hash2d", parts=2, reorder=reorder)
        graph = build(Frozen(9), source_of(edges, parts=4), options, silent)
        result = graph.triangle_count(verify=1.0)
    assert int(result) == int(build(LocalExecutor(), source_of(edges), Options()).triangle_count())


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
