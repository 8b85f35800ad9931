"""Edge keys and the shuffle: edges as sorted integers, cut into ranges of about equal size."""

from __future__ import annotations

import weakref
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.api.count import build
from dasktc.backends import get_backend
from dasktc.backends.cpu import edges as cpu_edges
from dasktc.backends.cpu import radix
from dasktc.backends.cpu.edges import CpuEdges
from dasktc.backends.csr import OrientedCSR
from dasktc.backends.vertex_maps import MAX_VERTICES
from dasktc.executors.base import CPU, Fold, MemoryStore, tree
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.executors.stores.file_store import FileStore
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.options import Options
from dasktc.pipeline.planes import Frames, Handles, Tuning, choose
from dasktc.pipeline.planes.exchange import Inputs, exchange
from dasktc.pipeline.planes.process import ProcessPlane
from dasktc.pipeline.planes.tuning import TUNING
from dasktc.pipeline.planes.workers import WorkersPlane
from dasktc.pipeline.prepare import silent
from dasktc.pipeline.stages.edge_keys import cut, distinct, merge, pack, shift_of, transform, unpack
from dasktc.pipeline.stages.orient import total
from dasktc.pipeline.stages.read import Span
from dasktc.pipeline.stages.shuffle import WANTED_SAMPLES
from tests.support import oracle
from tests.support.oracle import multigraphs
from tests.support.slow_pipeline import EVERY_REORDER, orientation, skewed_edges, source_of, tuned
from tests.support.tiers import some

EDGES = skewed_edges(60, 700, 3)
ARRAYS = st.lists(st.integers(0, 99), max_size=40).map(lambda values: np.array(values, dtype="int64"))


# Keys


@pytest.mark.parametrize(("vertices", "bits"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (MAX_VERTICES, 31)])
def test_bits_of_an_id(vertices, bits):
    assert shift_of(vertices) == bits


@given(st.integers(1, MAX_VERTICES), st.data())
def test_keys_hold_both_ends(vertices, data):
    ids = st.lists(st.tuples(*[st.integers(0, vertices - 1)] * 2), min_size=1, max_size=9)
    high, low = np.array(data.draw(ids)).T
    shift = shift_of(vertices)
    for dtype in ("int32", "int64"):
        keys = pack(high.astype(dtype), low.astype(dtype), shift)
        assert keys.dtype == "int64"
        assert keys.min() >= 0
        assert [end.tolist() for end in unpack(keys, shift)] == [high.tolist(), low.tolist()]


@given(st.lists(ARRAYS, min_size=1, max_size=5))
def test_merge_and_distinct_leave_their_arrays_alone_and_empty_their_list(pieces):
    copies = [piece.copy() for piece in pieces]
    everything = np.concatenate(copies).tolist()
    for function, expected in ((merge, sorted(everything)), (distinct, sorted(set(everything)))):
        given_up = list(pieces)
        assert function(given_up, 100, CPU).tolist() == expected
        assert given_up == []
    assert all((piece == copy).all() for piece, copy in zip(pieces, copies, strict=True))


@given(ARRAYS, st.lists(st.integers(0, 120), max_size=6).map(sorted), st.sampled_from([1, 1 << 10]), st.integers(1, 12))
def test_cut_makes_a_piece_of_every_range(keys, starts, ranges, guess):
    """In one pass, however much a key's leading bits tell about its range; or by sorting, for many ranges."""
    with mock.patch.object(CpuEdges, "ranges", ranges), mock.patch.object(cpu_edges, "GUESS", guess):
        pieces, borders = cut(keys, starts, 100, CPU), [0, *starts, 10**9]
    assert len(pieces) == len(starts) + 1
    for piece, low, high in zip(pieces, borders, borders[1:], strict=False):
        assert sorted(piece.tolist()) == sorted(key for key in keys.tolist() if low <= key < high)


@pytest.mark.parametrize("size", [0, 1, 5])
def test_transform_goes_in_chunks_over_every_key(size):
    keys = np.arange(size * get_backend("cpu").chunk + 3)
    longest = []
    found = transform(keys, lambda chunk: longest.append(len(chunk)) or chunk * 2, CPU)
    assert (found == keys * 2).all()
    assert max(longest) <= get_backend("cpu").chunk


@given(st.lists(st.integers(), min_size=1, max_size=100), st.integers(2, 9))
def test_tree_takes_every_handle_once(handles, arity):
    left, groups = list(handles), []
    assert tree(LocalExecutor(), "sum", lambda group: groups.append(len(group)) or sum(group), left, arity) == sum(
        handles
    )
    assert not left
    assert sum(groups) == (len(handles) + len(groups) - 1 if groups else 0)
    assert max(groups, default=0) <= arity


def test_fold_takes_every_input_once_and_holds_one_result():
    """The same holds for a tree: neither overwrites a result that came from elsewhere."""
    adding = Fold(lambda: np.zeros(3, int), lambda found, item: np.add(found, item, out=found), total)
    inputs = [np.full(3, 10**k) for k in range(5)]
    assert LocalExecutor().fold("sum", adding, list(inputs)).tolist() == [11111] * 3
    assert (
        tree(LocalExecutor(), "sum", adding.combine, [adding.alone(item) for item in inputs], 2).tolist() == [11111] * 3
    )
    assert [item.tolist() for item in inputs] == [[10**k] * 3 for k in range(5)]
    left = list(inputs)
    LocalExecutor().fold("sum", adding, left)
    assert not left


# Exchange


@given(st.lists(ARRAYS, min_size=1, max_size=30), st.lists(st.integers(0, 120), max_size=30).map(sorted), st.booleans())
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
    with tuned(direct=1):
        graph = build(DaskExecutor(client), source_of(EDGES, parts=4), Options(partition="hash2d", parts=3))
    result = graph.triangle_count()
    assert int(result) == oracle.triangles(EDGES)


# Ranges


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


def ranges(sizes, workers):
    """Lengths of the partitions after a shuffle of frames of these sizes, each frame with rows of its own."""
    rng, frames = np.random.default_rng(1), []
    for number, size in enumerate(sizes):
        src = rng.integers(number * 10**6, (number + 1) * 10**6, size)
        frames.append(pd.DataFrame({"src": src, "dst": 10**8 + rng.integers(0, 10**8, size)}))
    tasks = Watched(workers)
    plane, given = Exchanging(tasks, Options(), TUNING), Frames(Handles(frames), sum(sizes), 0)
    found = plane.canonical(given, plane.number(given, "int"))
    return [len(partition) for partition in found.partitions], sum(map(len, tasks.arrays))


@pytest.mark.parametrize("sizes", [[1 << 17] * 8, [1 << 20, (1 << 18) - 1], [1 << 19, 1_000, 0, 7]], ids=str)
@pytest.mark.parametrize("workers", some([2, 3, 8], lambda workers: workers == 3))
def test_ranges_are_about_equal_whatever_the_sizes_of_the_parts(sizes, workers):
    held, _ = ranges(sizes, workers)
    assert len(held) == workers
    assert max(held) < 1.5 * sum(held) / workers


@pytest.mark.parametrize("size", [1 << 15, 1 << 17])
def test_samples_do_not_grow_with_the_edges(size):
    """Some 2^14 keys reach the client, whatever the size of a part; ranges then differ by a few percent."""
    held, sampled = ranges([size] * 10, 4)
    assert sum(held) > 9 * size
    assert 0 < sampled <= WANTED_SAMPLES + 10
    assert max(held) < 1.05 * sum(held) / 4


def test_few_edges_stay_in_one_partition():
    assert ranges([100, 200], 4) == ([300], 0)


# Reading


@pytest.mark.parametrize(
    "edges", [[(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 1), (1, 2), (2, 3)]], ids=["no loop", "a loop"]
)
def test_frames_hold_their_two_columns_and_nothing_else(edges):
    """An index of the kept rows would be as large as the ids, and travel with them."""
    found = choose(LocalExecutor(), Options()).read(source_of(edges))
    frame = next(iter(found.frames))
    assert (found.rows, found.loops, len(frame)) == (len(edges), len(edges) - 3, 3)
    assert list(frame.columns) == ["src", "dst"]
    assert isinstance(frame.index, pd.RangeIndex)


# Any number of partitions


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


def test_an_array_is_freed_once_its_keys_are_dealt():
    """Else all keys and the array to which they are dealt would be in memory together."""
    arrays = [np.arange(number, radix.BATCH * 8, 8) for number in range(8)]
    alive, counts = [weakref.ref(array) for array in arrays], []

    def calls(function, inputs, *shared):
        results = []
        inputs.reverse()
        while inputs:
            results.append(function(inputs.pop(), *shared))
            counts.append(sum(ref() is not None for ref in alive))
        return results

    buckets = radix.dealt(arrays, radix.BATCH * 8, (0, radix.BATCH * 8), calls)
    assert len(buckets.keys) == radix.BATCH * 8
    assert counts[-8:] == [7, 6, 5, 4, 3, 2, 1, 0]


def test_an_exchange_of_one_range_takes_its_inputs_over(tmp_path):
    tasks = LocalExecutor(FileStore(WorkDir(tmp_path), 1 << 30))
    inputs = Inputs(tasks.map("keys", np.arange, [1 << 16, 1 << 17]))
    (taken,) = exchange(tasks, "keys", inputs, [], 1 << 40)
    assert len(taken) == 2
    assert inputs.handles == []


def test_handles_are_given_up_once_they_are_used():
    """A kept handle would keep its memory on the workers."""
    handles = [[1, 2], [3, 4]]
    assert LocalExecutor().transpose("stage", handles, 2) == [[1, 3], [2, 4]]
    inputs = [1, 2, 3]
    assert LocalExecutor().map("stage", lambda item, by: item * by, inputs, 2) == [2, 4, 6]
    assert handles == inputs == []


def test_partitions_hold_each_edge_once_in_ascending_order():
    edges = skewed_edges(200, 4_000, 1)
    plane = Exchanging(Watched(3), Options(), Tuning(one_partition=1, partition_edges={"cpu": 100}))
    frames = [part.read(get_backend("cpu")) for part in source_of(edges, parts=5).parts]
    proper = [frame[frame["src"] != frame["dst"]] for frame in frames]
    given = Frames(Handles(proper), sum(map(len, proper)), 0, Span(0, 2**40, 1))
    found = plane.canonical(given, plane.number(given, "int"))
    assert len(found.partitions) > 10
    keys = np.concatenate(list(found.partitions))
    assert (np.diff(keys) > 0).all()
    assert len(keys) == len(orientation(edges).edges)
    assert not given.frames
