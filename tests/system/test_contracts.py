"""Budgets, orders, sizes and errors that no count reveals: each was once broken without any test failing."""

from __future__ import annotations

import itertools
import os
import tracemalloc
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dasktc
from dasktc.answers import edge_frames, edge_support, vertex_counts
from dasktc.backends.cpu import sizes, visit
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.backends.protocol import TaskSize
from dasktc.counting import checkpoint
from dasktc.errors import ClusterError, CountError, InputError
from dasktc.executors.dask import faults as fault_policy
from dasktc.executors.dask.flow_control import BlockReplicas, WindowedSubmitter
from dasktc.executors.local import LocalExecutor
from dasktc.executors.stores import shared_file_store
from dasktc.executors.stores.file_store import FileStore, SpillableResult
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.options import Method, Options, bytes_of
from dasktc.pipeline.planes import Plane, choose
from dasktc.pipeline.planes.choice import sharded
from dasktc.pipeline.planes.process import ProcessPlane
from dasktc.pipeline.planes.tuning import TUNING
from dasktc.pipeline.prepare import prepare_edges
from dasktc.planning import plan as planning
from dasktc.planning.cost_model import PROBES_PER_WEDGE, counting_seconds, in_words, work_of_triples
from dasktc.planning.distribution import SourceSize, choose_distribution, stage_seconds
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.memory_model import triple_bytes
from dasktc.planning.placement import ReplicaCache, Shares
from dasktc.planning.plan import BlockSizes, Limits, even_blocks, make_plan
from dasktc.planning.rates import RATES, probes_of
from dasktc.planning.schemes import Sizes, considered, scheme_of
from dasktc.planning.scratch import plan_count, scratch_of
from dasktc.registry import ORDERS, SCHEMES
from tests.support import oracle
from tests.support.keywords import keywords
from tests.support.slow_pipeline import source_of

CSR = OrientedCSR(np.array([0, 2, 3]), np.array([0, 1, 0], np.int32))


def prepared(edges, **options):
    frame = pd.DataFrame(edges, columns=["src", "dst"])
    return dasktc.prepare(frame, **keywords(**{"backend": "cpu", "partition": "whole"} | options))


# from edges to blocks


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 0), (2, 2), (9, 9), (1, 2), (0, 2), (0, 2)]])
@pytest.mark.parametrize("text", [False, True])
def test_rows_read_are_edges_and_what_was_dropped(edges, text):
    """A vertex of a loop alone is none."""
    frame = pd.DataFrame(edges, columns=["src", "dst"])
    found = dasktc.triangle_count(
        frame.astype("str") if text else frame, backend="cpu", method=Method(partition="whole")
    )
    loops = sum(u == v for u, v in edges)
    assert (found.vertices, found.loops_dropped) == (3, loops)
    assert found.edges + found.loops_dropped + found.duplicates_dropped == len(edges)


def test_partitions_are_about_equally_large(monkeypatch):
    monkeypatch.setattr(ProcessPlane, "_sorts_in_place", lambda plane, keys: False)
    monkeypatch.setattr(ProcessPlane, "partitions", lambda *given: 4)
    edges = np.random.default_rng(1).integers(0, 2**40, (4000, 2)).tolist()
    found = prepare_edges(LocalExecutor().for_backend("cpu"), source_of(edges, parts=3), Options())
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


@pytest.mark.parametrize("first", [0, 1, 5, 7])
def test_the_share_of_a_part_wherever_the_vector_begins(first):
    axis = Axis(20, 3)
    for part in range(3):
        assert axis.share(np.arange(first, 20), part, first).tolist() == [v for v in range(first, 20) if v % 3 == part]


class Placed(Exception):
    """Raised with the workers on which blocks were to be built."""


@pytest.mark.parametrize(("workers", "anywhere"), [(9, True), (4, False)])
def test_slabs_of_few_blocks_may_be_built_by_any_worker(monkeypatch, workers, anywhere):
    def placed(plane, stage, keys, copies, starts, bound, function, calls, where=()):
        raise Placed(where)

    executor = LocalExecutor().for_backend("cpu")
    graph = prepare_edges(executor, source_of(oracle.complete(40)), Options()).graph
    monkeypatch.setattr(Plane, "redistribute", placed)
    monkeypatch.setattr(Plane, "partitions", lambda *given: 12)
    executor.workers, axis = workers, Axis(40, 2)
    layout = Layout(axis, (axis,), Shape(40, 6, True))
    with pytest.raises(Placed) as raised:
        choose(executor, Options()).blocks(graph, layout, where=dict.fromkeys(layout.places, "w0"))
    (at,) = raised.value.args
    assert len(at) > len(layout.places)
    assert (set(at) == {None}) == anywhere


def test_bands_of_more_vertices_than_64_bits_hold_are_refused():
    graph = SimpleNamespace(order=SimpleNamespace(size=2**31, starts=(0, 2**31)))
    plane = sharded(choose(LocalExecutor(), Options()), 2)
    with pytest.raises(InputError, match="do not fit 64 bits"):
        plane.reorder(graph, ORDERS["collective-banded"], 32)


# planning


@pytest.mark.slow
def test_as_many_parts_as_vertices_if_no_fewer_fit():
    """For a graph of 40 vertices, n = 40 is tried last, where only its tasks fit."""
    size = {"vertices": 40, "edges": 780, "partition": "hash2d", "splits": 1}
    most, fewer = (dasktc.plan(memory="1 GB", **keywords(**size, parts=n)).plan.bytes_per_task for n in (40, 39))
    assert most < fewer
    assert dasktc.plan(memory=fewer, **keywords(**size)).plan.parts < 40
    assert dasktc.plan(memory=most, **keywords(**size)).plan.parts == 40


def test_the_partition_that_is_built_is_that_of_the_plan():
    """Also where the plan falls back to an earlier one."""
    size, measured = (10**9, planning.LARGE), []

    def measure(scheme, parts):
        measured.append(BlockSizes(scheme_of(scheme).even(parts, *size)))
        return measured[-1]

    block = int(scheme_of("whole").block_bytes(scheme_of("whole").even(1, *size)).sum())
    plan, partition = make_plan(*size, measure, lambda task: 10**13, Limits(1, block), lean=lambda task: 0)
    assert (plan.partition, plan.parts, plan.lean, plan.fits) == ("whole", 1, True, True)
    assert len(measured) > 1
    assert partition is measured[0]


def test_a_plan_for_gpus_elsewhere_leaves_this_process_its_kernel():
    size, options = (10**8, 10**9), Options(backend="cpu", kernel="hub", reorder="degree")
    for memory, lean in (("60GB", False), ("7GB", True)):
        limits = Limits(1, bytes_of(memory), "whole", splits=64)
        plan, _, kept = plan_count(options, *size, even_blocks(*size), limits, "", automatic=True, planned_for="cuda")
        assert (plan.lean, plan.fits, kept.kernel) == (lean, True, "hub")


@pytest.mark.parametrize(
    ("partition", "edges", "ahead"), [("whole", 10**6, False), ("hash2d", 10**7, True), ("vertical", 10**6, True)]
)
def test_scratch_out_of_core_has_a_block_ahead_or_a_slab_of_the_block_that_is_built(partition, edges, ahead):
    """No block comes ahead of tasks that all have the same one."""
    options, task = (
        Options(backend="cpu", kernel="merge", partition=partition, reorder="degree"),
        TaskSize(10**6, 10**6, 10**6, 1000),
    )
    alone = scratch_of(options, edges, None)(task)
    block = 4 * 10**6 + 8 * 1001
    for memory in (1 << 20, 1 << 40):
        needed = scratch_of(options, edges, memory)(task)
        if ahead:
            assert needed - alone >= block
        else:
            assert needed == max(alone, min(block, memory // 4))


@pytest.mark.parametrize("edges", [10**7, 10**8, 3 * 10**9, 10**11])
@pytest.mark.parametrize(("scheme", "parts"), [("whole", 1), ("hash2d", 4)])
def test_no_task_is_planned_to_take_longer_than_the_longest_and_no_more_are_made(edges, scheme, parts):
    rates = RATES["cpu"]
    limits = Limits(1, 1 << 60, scheme, parts, tasks_a_worker=1, rates=rates, times=1.5)
    plan, _ = make_plan(10**7, edges, even_blocks(10**7, edges), lambda task: 0, limits)
    work = 1.5 * (edges / rates.edges + probes_of(edges) / rates.probes)
    assert work / plan.tasks <= planning.TASK_SECONDS
    if plan.splits > 1:
        assert work / (plan.tasks - parts**3) > planning.TASK_SECONDS


def test_a_plan_says_which_wishes_it_did_not_fulfil():
    asked = dasktc.plan(vertices=1000, edges=9000, method=Method(partition="hash2d", parts=3, splits=7)).plan
    beyond = dasktc.plan(vertices=1000, edges=9000, method=Method(partition="hash2d", parts=3, splits=7000)).plan
    assert "is taken as" not in asked.why
    assert f"7000 splits are taken as {beyond.splits}: the largest index block has no more rows" in beyond.why


def test_the_splits_of_a_heavy_triple_are_no_more_than_its_rows():
    vertical, rows = scheme_of("vertical"), np.array([[2] * 4, [500] * 4])
    edges = np.array([[10**6, 10, 10**6, 10], [10, 10, 10, 10]])
    triples = vertical.triples(2)
    shares = vertical.shares(triples, Sizes(edges, rows, rows))
    assert shares.max() == 2
    assert (shares <= rows.ravel()[triples[:, 0]]).all()


def test_auto_takes_no_scheme_that_keeps_whole_vectors_or_whose_sizes_are_not_known(monkeypatch):
    usual = [scheme.name for scheme in considered("auto")]
    for name, unlike in (("plain", {}), ("vectors", {"whole_vectors": "x"}), ("sizes", {"unknown": "x"})):
        scheme = scheme_of("hash2d")
        scheme = replace(scheme, name=name, auto=99, dealing=replace(scheme.dealing, **unlike))
        monkeypatch.setitem(SCHEMES, name, scheme)
    assert [scheme.name for scheme in considered("auto")] == [*usual, "plain"]


@pytest.mark.parametrize("scheme", ["whole", "edges", "hash2d", "vertical"])
def test_the_largest_task_of_a_size_is_no_smaller_than_its_lower_bound(scheme):
    """A graph without vertices has a row."""
    scheme = scheme_of(scheme)
    for parts in [1] if scheme.replicated else [1, 2, 3, 7, 16]:
        for vertices, edges in ((0, 0), (5, 3), (10**5, 10**6)):
            sizes = scheme.even(parts, vertices, edges)
            assert min(sizes.rows.min(), sizes.columns.min()) >= 1
            largest = triple_bytes(scheme.triples(parts), scheme.block_bytes(sizes).ravel()).max()
            assert scheme.least_bytes(vertices, edges, parts) <= largest


def test_a_block_that_a_task_has_twice_is_counted_once():
    held = np.array([1, 10, 100])
    triples = [(0, 1, 2), (0, 0, 1), (0, 1, 0), (0, 1, 1), (2, 2, 2)]
    assert triple_bytes(np.array(triples), held).tolist() == [sum(held[k] for k in set(of)) for of in triples]


def test_what_was_used_longest_ago_is_evicted():
    cache = ReplicaCache(dict.fromkeys("abc", 1), capacity=2)
    for block in "aba":
        cache.take([block])
        cache.give_back([block])
    assert cache.take(["c"]) == (["c"], ["b"])


def test_copies_in_use_take_room_until_they_are_given_back():
    cache = ReplicaCache(dict.fromkeys("abc", 1), capacity=2)
    cache.take("ab")
    assert (cache.fits("a"), cache.fits("ab"), cache.fits("c")) == (True, True, False)
    cache.give_back("a")
    assert cache.fits("c")


@pytest.mark.parametrize(
    ("stored", "backend", "ids", "row"),
    [(0, "cpu", "int", 48), (0, "cuda", "int", 24), (9, "cuda", "int", 40), (0, "cuda", "text", 300)],
)
def test_one_call_is_for_graphs_whose_rows_fit_one_worker(stored, backend, ids, row):
    size, rates = SourceSize(1000, stored), RATES[backend]
    fits, short = (choose_distribution(size, 2, memory, rates, backend, ids) for memory in (1000 * row, 1000 * row - 1))
    assert (fits.kind, short.kind) == ("call", "tasks")
    assert "one worker would need about" in short.why


def test_copies_that_are_there_at_the_start_take_room():
    cache = ReplicaCache(dict.fromkeys("abc", 1), capacity=2, there="ab")
    assert cache.take("c") == (["c"], ["a"])


def test_work_is_shared_by_several_workers_or_the_threads_of_one():
    """Workers that share it send and receive, too; one call has all threads of its worker."""
    size, rates = SourceSize(10**6), RATES["cpu"]
    one, two = (stage_seconds(size, workers, rates) for workers in (1, 2))
    assert one["canonical"] + one["orient"] + one["blocks"] == pytest.approx(10**6 / rates.rows)
    assert two["blocks"] == pytest.approx(rates.sharing * one["blocks"] / 2)
    assert two["count"] == pytest.approx(one["count"] / 2)
    alone, threaded = (choose_distribution(size, 8, 10**12, rates, "cpu", threads=threads).call for threads in (1, 4))
    assert threaded - rates.round_trip == pytest.approx(rates.threading * (alone - rates.round_trip) / 4)


@pytest.mark.parametrize(("workers", "turns"), [(1, 8), (2, 4), (3, 3), (8, 1), (100, 1)])
def test_tasks_are_counted_in_turns_of_all_workers(workers, turns):
    """Fewer tasks than workers take one task's time."""
    plan = dasktc.plan(
        vertices=1000, edges=9000, method=Method(partition="hash2d", parts=2, splits=1), workers=workers
    ).plan
    work = 2 * 9000 / RATES["cpu"].edges + PROBES_PER_WEDGE * 10**6 / RATES["cpu"].probes
    assert counting_seconds(plan, 10**6, 3.0, "cpu") == pytest.approx(3 * work * turns / 8)


def test_triples_with_empty_blocks_have_finite_work():
    plan = dasktc.plan(vertices=1000, edges=9000, method=Method(partition="hash2d", parts=2, splits=1)).plan
    rows = np.array([[0, 0], [5, 5]])
    work = work_of_triples(plan, Sizes(np.array([[0, 0], [0, 90]]), rows, rows))
    assert np.isfinite(work).all()
    assert max(work) > 0


def test_overhead_may_be_none_and_rates_may_not():
    assert RATES["cpu"].changed(overhead=0.0).overhead == 0
    for bad in ({"overhead": -1.0}, {"edges": 0.0}, {"probes": 0.0}):
        with pytest.raises(InputError):
            RATES["cpu"].changed(**bad)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.99, "less than a second"),
        (1.2, "about 1 second"),
        (116, "about 116 seconds"),
        (118, "about 2 minutes"),
        (115 * 60, "about 115 minutes"),
        (2 * 3600, "about 2 hours"),
        (46 * 3600, "about 46 hours"),
        (48 * 3600, "about 2 days"),
    ],
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words


def test_an_idle_worker_takes_the_last_task_of_the_one_with_most_left():
    for given in ({"a": [0], "b": [1, 2, 3], "c": [4]}, {"a": [1, 2, 3], "b": [0], "c": [4]}):
        assert Shares(given | {"idle": []}).take("idle") == 3


# executors


def test_workers_keep_blocks_of_about_as_many_bytes():
    """Of the blocks that two workers hold, one keeps the largest and the other the two small ones."""
    sizes_of, both = {"a": 1, "b": 1, "c": 2}, ["w0", "w1"]
    held = {key: (nbytes, both) for key, nbytes in sizes_of.items()}
    stands_in = SimpleNamespace(_blocks=sizes_of, _needs=[["a"]], _capacity=lambda largest: 9)
    replicas = WindowedSubmitter._replicas(stands_in, held)
    keeps = Counter()
    for key, names in replicas.holders.items():
        keeps[names[0]] += sizes_of[key]
    assert keeps == {"w0": 2, "w1": 2}


def test_copies_may_take_the_memory_of_all_threads():
    copies = BlockReplicas({"own": 5, "a": 4, "b": 4}, {"own": ["w"]}, 8).copies
    assert copies("w", 2).fits(["a", "b"])
    assert not copies("w", 1).fits(["a"])


class Future:
    """Dask's future of a task that has ended so many workers."""

    status = "lost"

    def __init__(self, key, error):
        self.key, self._error = key, error

    def exception(self):
        return self._error


def test_a_death_counts_once_for_all_that_waited_for_it(monkeypatch):
    error = SimpleNamespace(task="read", allowed_failures=0)
    monkeypatch.setattr(fault_policy, "was_killed", lambda future: True)
    monkeypatch.setattr(fault_policy, "_retry_erred", lambda *given: None)
    policy = fault_policy.FaultPolicy(SimpleNamespace(), 1, 2, "token")
    waited = [Future(f"count-{k}", Dead(error)) for k in range(9)]
    policy.resubmit(waited)
    policy.resubmit(waited)
    with pytest.raises(ClusterError, match="3 times"):
        policy.resubmit(waited)


class Dead(Exception):
    def __init__(self, of):
        super().__init__(of.task)
        self.task, self.allowed_failures = of.task, of.allowed_failures


def spilling(folder, budget):
    return FileStore(WorkDir(folder), budget, small=1)


def test_what_does_not_fit_beside_the_others_goes_to_a_file(tmp_path):
    store = spilling(tmp_path, 40_000)  # a quarter for results
    kept = [store.keep(np.zeros(4_000, np.uint8)) for _ in range(3)]
    assert [isinstance(handle, SpillableResult) for handle in kept] == [True, True, False]


def test_the_largest_results_go_first(tmp_path):
    store = spilling(tmp_path, 40_000)
    small, large = (store.keep(np.zeros(size, np.uint8)) for size in (2_000, 7_000))
    store.set_task_memory(36_000)
    assert (small.stored is None, large.stored is None) == (True, False)


@pytest.fixture
def worker(monkeypatch):
    from threading import RLock

    state = SimpleNamespace(lock=RLock(), prefetchers={}, counting=set())
    monkeypatch.setattr(shared_file_store, "worker_state", lambda *given: state)
    yield state
    for _, blocks in state.prefetchers.values():
        blocks.__exit__()


def test_blocks_are_read_ahead_within_the_memory_of_each_count(worker):
    with shared_file_store._prefetcher("run", 100) as first:
        pass
    with shared_file_store._prefetcher("run", 100) as again:
        assert again is first
    with shared_file_store._prefetcher("run", 50) as smaller:
        assert smaller.capacity == 50
    with shared_file_store._prefetcher("another run", 50) as other:
        assert other is not smaller
        assert worker.prefetchers[next(iter(worker.prefetchers))] == ("another run", other)


def test_workers_keep_no_block_of_a_count_that_is_over(worker, tmp_path):
    store = shared_file_store.SharedFileStore(WorkDir(tmp_path), 1 << 20, small=1)
    with shared_file_store._prefetcher(store._run, 100):
        pass
    store.after_tasks(lambda function, *given: function(*given, dask_worker=None))
    assert not worker.prefetchers


def test_blocks_are_read_while_a_second_question_about_the_graph_ends(worker, tmp_path):
    """That question drops the run's prefetchers; one that a task uses is closed only when that task ends."""
    store = shared_file_store.SharedFileStore(WorkDir(tmp_path), 1 << 20, small=1)
    first, second = (store.wrap(np.full)(100, value) for value in (1, 2))
    with shared_file_store._prefetcher(store._run, 1 << 20) as blocks:
        store.after_tasks(lambda function, *given: function(*given, dask_worker=None))
        assert blocks.use([first])[first].sum() == 100
    assert not worker.prefetchers
    with pytest.raises(RuntimeError, match="after shutdown"):
        blocks.use([second])


# counting


def test_a_checkpoint_of_another_block_has_another_fingerprint():
    others = replace(CSR, offsets=np.array([0, 1, 3])), replace(CSR, columns=np.array([0, 1, 1], np.int32))
    assert len({checkpoint._digest(block) for block in (CSR, replace(CSR), *others)}) == 3


def test_records_are_on_the_disk_while_a_count_runs(tmp_path, monkeypatch):
    """That is, before the file is closed: a system crash meanwhile loses one second. It is asked no more often."""
    synced, fsync = [], os.fsync

    def noted(file):
        synced.append((tmp_path / checkpoint.FILE).read_bytes().count(b"\n"))
        fsync(file)

    monkeypatch.setattr(checkpoint, "SYNC_SECONDS", -1.0)
    monkeypatch.setattr(checkpoint.os, "fsync", noted)
    edges = pd.DataFrame(oracle.complete(20), columns=["src", "dst"])
    found = dasktc.triangle_count(edges, backend="cpu", method=Method(partition="hash2d", parts=2), checkpoint=tmp_path)
    assert found.triangles == 1140
    assert synced == [*range(2, len(found.tasks) + 2), len(found.tasks) + 1]
    assert len(found.tasks) > 4
    synced.clear()
    clock = itertools.count(step=0.4)
    monkeypatch.setattr(checkpoint, "SYNC_SECONDS", 1.0)
    monkeypatch.setattr(checkpoint, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    dasktc.triangle_count(
        edges, backend="cpu", method=Method(partition="hash2d", parts=2), checkpoint=tmp_path / "seldom"
    )
    assert 2 <= len(synced) <= len(found.tasks) / 2


def test_visits_beyond_memory_are_refused(monkeypatch):
    """No kernel with outputs fits: a visit fits with exactly the bytes that it takes, and is refused with one less."""
    monkeypatch.setattr(edge_support, "support_kernels", lambda *given: [])
    graph = prepared(oracle.complete(60))
    kernel, need = edge_support.kernel_and_bytes(graph._context)
    assert kernel == edge_support.VISITED
    for memory in (need, need - 1, need * 3 // 4):
        plan = replace(graph.plan, memory=memory)
        tight = replace(graph._context, prepared=replace(graph._context.prepared, plan=plan))
        if memory == need:
            assert edge_support.kernel_and_bytes(tight) == (kernel, need)
        else:
            with pytest.raises(InputError, match="of one worker"):
                edge_support.kernel_and_bytes(tight)


def test_sums_are_reserved_beside_what_a_task_takes(monkeypatch):
    graph, asked = prepared(oracle.complete(60)), []
    _, need = edge_support.kernel_and_bytes(graph._context)
    monkeypatch.setattr(type(graph._context.executor), "set_task_memory", lambda executor, needed: asked.append(needed))
    graph.triangles()
    assert asked[0] >= need + 2 * 8 * 60


def lying(monkeypatch, name, change):
    """A backend of which one function's results are changed."""
    honest = edge_support.get_backend

    def get_backend(asked):
        backend = honest(asked)
        return SimpleNamespace(**{**_members(backend), name: lambda *given: change(getattr(backend, name)(*given))})

    monkeypatch.setattr(edge_support, "get_backend", get_backend)


def _members(backend):
    return {name: getattr(backend, name) for name in dir(backend) if not name.startswith("__")}


def one_more(found):
    sums, *counts = found
    next(iter(sums.values()))[0] += 1
    return (sums, *counts)


def test_sums_of_a_task_that_do_not_add_up_are_refused(monkeypatch):
    lying(monkeypatch, "vertex_support", one_more)
    with pytest.raises(CountError, match="not three each"):
        prepared(oracle.complete(20), kernel="hub").triangles()


def test_vertices_in_shards_that_do_not_add_up_are_refused():
    graph = SimpleNamespace(
        executor=LocalExecutor(),
        plan=SimpleNamespace(shards=2),
        prepared=SimpleNamespace(
            graph=SimpleNamespace(order=SimpleNamespace(starts=(0, 3, 5))),
            partition=SimpleNamespace(numbering=lambda side: (0, 1)),
        ),
    )
    made = vertex_counts._merged(graph, {0: np.array([1, 1, 1, 0, 0])}, 1)
    assert [part.tolist() for part in made.parts] == [[1, 1, 1], [0, 0]]
    with pytest.raises(CountError, match="add up"):
        vertex_counts._merged(graph, {0: np.array([1, 1, 1, 0, 0])}, 2)


def test_the_number_of_edges_is_that_of_their_supports(monkeypatch):
    graph, joined = prepared(oracle.complete(20)), edge_frames._joined

    monkeypatch.setattr(edge_frames, "_joined", lambda slices: joined(slices)[:, 1:])
    with pytest.raises(CountError, match="differ in number"):
        graph.edge_support()


@pytest.mark.parametrize("parts", [1, 2])
def test_the_supports_of_all_edges_are_three_for_each_triangle(monkeypatch, parts):
    graph, joined = prepared(oracle.complete(20), partition="hash2d", parts=parts), edge_frames._joined

    def one_less(slices):
        found = joined(slices)
        found[1, found[1].argmax()] -= 1
        return found

    monkeypatch.setattr(edge_frames, "_joined", one_less)
    with pytest.raises(CountError, match="support of edges do not add up"):
        graph.edge_support()


# files


@pytest.mark.parametrize("byte", [b"\x01", b"\x08", b"\x0e", b"\x1a", b"\x1f"])
def test_control_bytes_are_no_text(tmp_path, byte):
    file = tmp_path / "graph.txt"
    file.write_bytes(b"1 2\n2 3\n" + byte + b"1 3\n")
    with pytest.raises(InputError, match="binary data"):
        dasktc.triangle_count(str(file), backend="cpu")


@pytest.mark.parametrize("lines", ["2 3\n1 3\n1 2 3\n", "2 3\n1 3\n1\n", "2 3\n1\n1 2\n"])
def test_metis_lists_each_edge_twice(tmp_path, lines):
    file = tmp_path / "graph.metis"
    file.write_text(f"3 3\n{lines}")
    with pytest.raises(InputError, match="each listed twice"):
        dasktc.triangle_count(str(file), backend="cpu")


# kernels of the CPU


@pytest.mark.parametrize("longest", [1, 10**5, 10**6, 10**8])
def test_the_table_of_the_longest_row_stays_half_empty(longest):
    assert sizes.bucket_depth(longest) * sizes.LARGE >= 2 * longest


def test_visits_take_what_is_planned_for():
    """For a table with more columns than edges, the columns dominate: a byte and 4 for each."""
    columns = 1 << 20
    wide = OrientedCSR(np.array([0, 2]), np.array([0, columns - 1], np.int32))
    task = BlockTask(OrientedCSR(np.array([0, 1]), np.zeros(1, np.int32)), wide, wide)
    visit.support(task)
    tracemalloc.start()
    visit.support(task)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    planned = sizes.visit_bytes(3, columns)
    assert peak <= planned + (1 << 16)
    assert planned <= peak + (1 << 16)
