"""Counts that exceed a GPU's `--memory`: emulated, with late copies, strict streams and a limit; and on a GPU."""

from __future__ import annotations

import gc
import itertools
import os
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dasktc
from dasktc.api.count import build
from dasktc.backends import lazy_backend
from dasktc.backends.cuda import block_cache as kept_tables
from dasktc.cli.main import main
from dasktc.errors import CountError, InputError
from dasktc.executors import memory_budget as budgets
from dasktc.executors.base import Fold, MemoryStore
from dasktc.executors.local import LocalExecutor
from dasktc.executors.offers import memory_of
from dasktc.executors.stores.device.prefetch import HORIZON, DevicePrefetcher, TransferStats
from dasktc.executors.stores.device.store import DeviceStore
from dasktc.executors.stores.device.tuning import Tuning
from dasktc.executors.stores.file_store import LEAST
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.io.generators.synthetic import kronecker, random_graph
from dasktc.options import Options, RunOptions, bytes_of
from dasktc.pipeline.planes import Plane
from dasktc.pipeline.planes.budget import BudgetProcessPlane
from dasktc.pipeline.planes.tuning import TUNING
from dasktc.pipeline.stages import orient
from dasktc.planning.grid import Axis, Layout, Shape
from tests.executors.test_memory_budget import facts
from tests.support import oracle
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation import cupy_strict, streams
from tests.support.emulation.streams import RaceError
from tests.support.keywords import keywords
from tests.support.slow_pipeline import (
    EVERY_PARTITION,
    EVERY_REORDER,
    pairwise_cover,
    random_edges,
    skewed_edges,
    source_of,
    tuned,
)
from tests.support.tiers import each_once, some

EDGES = skewed_edges(60, 700, 7)
TO_FILES, TO_BOTH, TO_HOST = 1, 20_000, 10**7
"""Bytes of pinned memory with which all results go to files, some do, and none does."""
DENSE = kronecker(8, 64, parts=6)
FEW_FIT = {"int": 42, "text": (12 << 20) // 60}
"""Bytes of an id of which some sixty fit 12 MB."""
TINY = Tuning(small=1, slab=64)
"""Slabs of 64 bytes: every array is copied in several pieces."""
OOC = [{"partition": "hash2d", "parts": 4}, {"partition": "vertical", "parts": 3}, {"partition": "proxy", "parts": 5}]


@pytest.fixture(scope="module")
def emulated(emulated):
    gc.collect()
    gc.freeze()  # each test collects what it left
    return emulated


@pytest.fixture
def collected(emulated):
    """What a test leaves is freed before the next one, and no stream has met memory of another."""
    yield
    gc.collect()
    assert not streams.VIOLATIONS


@contextmanager
def on_gpu(folder, kept, host=TO_BOTH, budget=1 << 20, tuning=TINY):
    """An executor that keeps `kept` bytes of results on the device."""
    tasks = LocalExecutor(DeviceStore(WorkDir(folder), budget, host, tuning))
    tasks.store._limit = kept
    yield tasks
    tasks.close()


def counted(folder, edges, kept=0, host=TO_BOTH, ids="int", budget=1 << 20, **options):
    with on_gpu(folder, kept, host, budget) as tasks:
        graph = build(tasks, source_of(edges, ids, parts=3), Options(backend="cuda", memory="1GB", **options))
        return graph.triangle_count(verify=0.5), tasks


# the same numbers


PLACED = pairwise_cover(EVERY_PARTITION, [TO_FILES, TO_BOTH, TO_HOST], [0, 3_000, 10**6])
WAYS = [(reorder, *placed) for reorder, placed in zip(itertools.cycle(EVERY_REORDER), PLACED, strict=False)]
"""Each order in each scheme is in memory, in `backends/cuda/test_backend.py`."""


@pytest.mark.parametrize(
    ("reorder", "partition", "host", "kept"), some(WAYS, lambda *case: case in WAYS[: len(EVERY_REORDER)])
)
def test_every_way_gives_what_it_gives_in_memory(collected, tmp_path, reorder, partition, host, kept):
    options = {"reorder": reorder, **partition}
    graph = build(LocalExecutor(), source_of(EDGES, parts=3), Options(backend="cuda", **options))
    expected = graph.triangle_count()
    found, _ = counted(tmp_path, EDGES, kept, host, **options)
    assert facts(found) == facts(expected)
    assert os.listdir(tmp_path) == []


@given(
    edges=st.one_of(oracle.multigraphs(max_edges=60), oracle.text_multigraphs(max_edges=60)),
    partition=st.sampled_from(EVERY_PARTITION),
    kept=st.sampled_from([0, 500, 10**6]),
    host=st.sampled_from([TO_FILES, TO_HOST]),
)
@settings(max_examples=settings.default.max_examples // 2)
def test_any_multigraph(tmp_path_factory, edges, partition, kept, host):
    ids = "text" if edges and isinstance(edges[0][0], str) else "int"
    with emulated_cuda.backend(), on_gpu(tmp_path_factory.mktemp("work"), kept, host) as tasks:
        graph = build(tasks, source_of(edges, ids, parts=3), Options(backend="cuda", memory="1GB", **partition))
        assert int(graph.triangle_count(verify=1.0)) == oracle.triangles(edges)
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(edges)
        found = graph.edge_support()
        assert {frozenset(row[:2]): row[2] for row in found.itertuples(index=False)} == oracle.support(edges)
        graph._context.counted.by_vertex = None  # they are added up from the edges' now
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(edges)
        assert len(graph.triangle_list()) == oracle.triangles(edges)


@pytest.mark.parametrize(
    ("reorder", "partition"), each_once(zip(EVERY_REORDER, [OOC[2], *OOC[:2], *EVERY_PARTITION], strict=False))
)
def test_vertices_in_shards(collected, tmp_path, reorder, partition):
    """Every answer equals that with whole vectors, although shards leave the device."""
    options = Options(backend="cuda", memory="1GB", reorder=reorder, **partition)
    given = [*EDGES, (3, 3), (10**12, 2)]
    expected = build(LocalExecutor(), source_of(given, parts=3), replace(options, memory=None))
    with tuned(least_shards=3), on_gpu(tmp_path, 3_000, budget=1 << 24) as tasks:
        graph = build(tasks, source_of(given, parts=3), options)
        assert graph.plan.shards == 3
        assert facts(graph.triangle_count(verify=0.5)) == facts(expected.triangle_count(verify=0.5))
        assert graph.triangles(frame="dask").compute().to_dict() == oracle.triangles_per_vertex(given)
        found = graph.edge_support(frame="pandas")
        assert {frozenset(row[:2]): row[2] for row in found.itertuples(index=False)} == oracle.support(given)
        assert len(graph.triangle_list()) == oracle.triangles(given)
        assert graph.transitivity() == expected.transitivity()
        assert graph.triangles(vertices=[7, 3]).to_list() == [oracle.triangles_per_vertex(given)[v] for v in (7, 3)]
        graph.save(tmp_path / "saved")
    with tuned(least_shards=2):
        opened = dasktc.open_graph(tmp_path / "saved", backend="cuda", memory="1GB", run=RunOptions(work_dir=tmp_path))
        assert opened.plan.shards == 2
        assert opened.triangles(frame="dask").compute().to_dict() == oracle.triangles_per_vertex(given)


@pytest.mark.parametrize("partition", each_once([(OOC[2],), (OOC[0],)]))
def test_ids_of_text_in_shards(collected, tmp_path, partition):
    """Numbered on the host, shard by shard; edges stay on the device."""
    given = [(f"v{u}" * (1 + u % 3), f"v{v}" * (1 + v % 3)) for u, v in EDGES]
    options = Options(backend="cuda", memory="1GB", **partition)
    with tuned(least_shards=3), on_gpu(tmp_path, 3_000, budget=1 << 24) as tasks:
        graph = build(tasks, source_of(given, "text", parts=3), options)
        assert graph.plan.shards == 3
        assert int(graph.triangle_count(verify=0.5)) == oracle.triangles(given)
        counts = oracle.triangles_per_vertex(given)
        assert graph.triangles(frame="dask").compute().to_dict() == counts
        assert graph.triangles(vertices=["v7v7", "v3"]).to_list() == [counts["v7v7"], counts["v3"]]
        found = graph.edge_support(frame="pandas")
        assert {frozenset(row[:2]): row[2] for row in found.itertuples(index=False)} == oracle.support(given)
        assert len(graph.triangle_list()) == oracle.triangles(given)
        graph.save(tmp_path / "saved")
    for shards in (1, 2):
        with tuned(least_shards=shards):
            opened = dasktc.open_graph(
                tmp_path / "saved", backend="cuda", memory="1GB", run=RunOptions(work_dir=tmp_path)
            )
            assert opened.plan.shards == shards
            assert opened.triangles(frame="dask").compute().to_dict() == counts


@pytest.mark.parametrize("ids", ["int", "text"])
def test_parts_of_a_file_are_given_on_the_host_where_vertices_are_in_shards(collected, tmp_path, ids):
    given = EDGES if ids == "int" else [(f"v{u}", f"v{v}") for u, v in EDGES]
    named = sorted({end for edge in given for end in edge})
    file = tmp_path / "parts.txt"
    file.write_text("".join(f"{name} {place % 3}\n" for place, name in enumerate(named)))
    options = Options(backend="cuda", kernel="lstc", partition="proxy", assign=str(file))
    expected = build(LocalExecutor(), source_of(given, ids, parts=3), options).triangle_count()
    with tuned(least_shards=3), on_gpu(tmp_path, 3_000, budget=1 << 24) as tasks:
        graph = build(tasks, source_of(given, ids, parts=3), replace(options, memory="1GB"))
        assert (graph.plan.shards, graph.plan.parts) == (3, 3)
        assert facts(graph.triangle_count(verify=0.5)) == facts(expected)
        file.write_text("".join(f"{name} 0\n" for name in named[1:]))
        with pytest.raises(InputError, match="has no part for 1 of"):
            build(tasks, source_of(given, ids, parts=3), replace(options, memory="1GB"))


def test_ids_of_text_that_turn_out_to_fit_make_one_map(emulated, tmp_path):
    """Six parts with the same few ids: in shards until the distinct ones are known."""
    given = [(f"v{u}", f"v{v}") for u, v in random_edges(40, 300, 1)]
    with on_gpu(tmp_path, 3_000, budget=1 << 24) as tasks, tuned(id_bytes=FEW_FIT):
        graph = build(tasks, source_of(given, "text", parts=6), Options(backend="cuda", memory="1GB"))
        assert graph.plan.shards == 1
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(given)


@pytest.mark.parametrize("partition", some(["proxy", "hash2d"], lambda partition: partition == "proxy"))
def test_vertices_that_exceed_the_device_keep_the_budget(emulated, tmp_path, partition):
    """Whole vectors of 30,000 vertices take 1.3 MB while they are numbered and ranked, more than one call may take."""
    source, budget, used = random_graph(30_000, 30_000), 1_200_000, cupy_strict.MEMORY_USED
    known = int(dasktc.triangle_count(source, backend="cpu"))
    used.peak = before = used.now
    with on_gpu(tmp_path, budget // 2, TO_HOST, budget, Tuning(small=1)) as tasks:
        options = Options(backend="cuda", memory=budget, partition=partition, parts=4)
        result = build(tasks, source, options).triangle_count()
        assert int(result) == known
        assert result.plan.shards > 1
        assert used.peak - before <= budget


def test_sources_of_every_kind(collected, tmp_path):
    frame = pd.DataFrame(EDGES, columns=["a", "b"])
    frame.to_parquet(tmp_path / "e.parquet", row_group_size=50)
    frame.to_csv(tmp_path / "e.txt", sep=" ", header=False, index=False)
    np.save(tmp_path / "e.npy", frame.to_numpy())
    sources = [str(tmp_path / name) for name in ("e.parquet", "e.txt", "e.npy")]
    for source in (*sources, frame, dd.from_pandas(frame, npartitions=3)):
        found = dasktc.triangle_count(
            source, backend="cuda", memory="17MB", run=RunOptions(work_dir=tmp_path, host_memory="1MB")
        )
        assert int(found) == oracle.triangles(EDGES)
    assert sorted(os.listdir(tmp_path)) == ["e.npy", "e.parquet", "e.txt"]


# the budget


def needed(**options):
    """Bytes that a count with the whole device takes."""
    used = cupy_strict.MEMORY_USED
    gc.collect()
    used.peak = before = used.now
    build(LocalExecutor(), DENSE, Options(backend="cuda", **options)).triangle_count()
    return used.peak - before


@pytest.mark.slow
@pytest.mark.parametrize(("options", "host"), [*zip(OOC, [TO_HOST, TO_FILES, TO_HOST], strict=True)], ids=str)
def test_a_graph_several_times_larger_keeps_the_budget(emulated, tmp_path, options, host):
    """The allocator enforces the budget; the bytes in use are also measured."""
    whole, used = needed(kernel="plain"), cupy_strict.MEMORY_USED
    budget = whole // (8 if options["partition"] == "hash2d" else 4)
    chosen = Options(backend="cuda", kernel="plain", memory=budget, **options)
    used.peak = before = used.now
    with on_gpu(tmp_path, budget // 2, host, budget, Tuning(small=1, slab=1 << 12)) as tasks:
        result = build(tasks, DENSE, chosen).triangle_count()
        assert int(result) == int(dasktc.triangle_count(DENSE, backend="cpu"))
        assert used.peak - before <= budget
        assert 0 < tasks.store.peak <= budget
        assert tasks.store.transfers.blocks > 0
        assert result.plan.bytes_per_task <= budget
        if host == TO_FILES:
            assert tasks.store._copies.pinned.total == 6, "staging alone"
    assert os.listdir(tmp_path) == []


def test_what_is_added_up_stays_on_the_device(emulated, tmp_path):
    """A sum of many inputs is copied once, at the end; an input that does not fit is added once, after others left."""
    failed = []

    def add(result, value):
        if not failed:
            failed.append(result)
            raise MemoryError("no room")
        result += value
        return result

    fold = Fold(lambda: cupy_strict.zeros(1 << 10, dtype="int64"), add, None)
    with on_gpu(tmp_path, 24 << 10, TO_HOST) as tasks:
        inputs = [tasks.submit("sum", cupy_strict.full, 1 << 10, k, "int64") for k in range(12)]
        moved = cupy_strict.MEMORY_USED.moved
        result = tasks.fold("sum", fold, list(inputs))
        assert tasks.gather([result])[0].tolist() == [66] * (1 << 10)
        assert len(failed) == 1
        left = 3 * (8 << 10)  # those that stood on the device when one found no room; and the sum itself, twice
        assert cupy_strict.MEMORY_USED.moved - moved <= left + 2 * (8 << 10)


@pytest.mark.parametrize("partition", ["whole", "edges"])
def test_what_must_be_whole_is_refused_with_figures(collected, tmp_path, partition):
    options = Options(backend="cuda", memory=30_000, partition=partition, kernel="lstc")
    with on_gpu(tmp_path, 5_000, TO_HOST, 1_000_000) as tasks, pytest.raises(InputError) as error:
        build(tasks, kronecker(9), options)
    assert f"{partition} at n = 1 needs" in str(error.value)
    assert "more than the 30 kB of one worker" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_stage_that_does_not_fit_is_refused_with_figures(collected, tmp_path):
    with (
        on_gpu(tmp_path, 0, TO_HOST, 2_000) as tasks,
        mock.patch.object(kept_tables, "forget") as forget,
        pytest.raises(InputError) as error,
    ):
        tasks.submit("read", lambda: cupy_strict.zeros(4_000, dtype="uint8"))
    assert forget.called
    assert "a stage takes more than the 2 kB that memory leaves it on the device" in str(error.value)
    assert "out_of_memory" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_result_of_the_host_alone_does_not_have_a_call_made_again_for_ever(collected, tmp_path):
    """It takes no device memory, so moving it gains nothing, however often."""
    calls = []

    def too_large(numbers):
        calls.append(len(numbers))
        assert len(calls) < 100, "made again for ever"
        raise MemoryError("too large")

    with on_gpu(tmp_path, 0, TO_HOST, 2_000) as tasks, pytest.raises(InputError, match="a stage takes more than"):
        tasks.submit("read", too_large, tasks.submit("read", np.arange, 10_000))


@contextmanager
def device_store(folder, budget, limit):
    store = DeviceStore(WorkDir(folder), budget, TO_HOST, TINY)
    store._limit = limit
    yield store
    store.end_tasks()
    store.close()


@pytest.mark.parametrize("why", ["the device is full", "larger than the budget"])
def test_a_task_whose_block_finds_no_room_is_refused_not_made_again_for_ever(collected, tmp_path, monkeypatch, why):
    """A failed copy is not a block that could be dropped to make room."""
    turns, honest = [], DeviceStore._move_all_out

    def counted(store):
        turns.append(store)
        assert len(turns) < 100, "made again for ever"
        return honest(store)

    def full(size):
        raise MemoryError(f"std::bad_alloc: out_of_memory: failed to allocate {size} bytes")

    monkeypatch.setattr(DeviceStore, "_move_all_out", counted)
    with device_store(tmp_path, 1 << 14, 0) as store:
        handle = store.keep(cupy_strict.zeros(1 << 15 if why.startswith("larger") else 1000, dtype="uint8"))
        store._settle()
        if why == "the device is full":
            cupy_strict.INSTEAD[0] = full
        try:
            with pytest.raises(InputError, match=r"a stage takes more than the 16\.4 kB"):
                store.task(len, (handle,), [], 1 << 13, False)
        finally:
            cupy_strict.INSTEAD[0] = None


def test_a_block_in_two_roles_is_one_array_also_when_it_had_to_leave(collected, tmp_path):
    with device_store(tmp_path, 1 << 14, 0) as store:
        stream = store.keep(cupy_strict.zeros(1000, dtype="uint8"))
        store._settle()
        store._limit = 12_288
        index = store.keep(cupy_strict.zeros(8000, dtype="uint8"))
        fails = [MemoryError("out_of_memory"), MemoryError("out_of_memory")]

        def twice_full(size):
            if fails:
                raise fails.pop()
            return cupy_strict._usual(size)

        cupy_strict.INSTEAD[0] = twice_full
        try:
            assert store.task(lambda index, table, _: index is table, (index, index, stream), [], 1 << 14, False)
        finally:
            cupy_strict.INSTEAD[0] = None
        assert not fails


def test_what_the_host_cannot_pin_any_more_goes_to_files(collected, tmp_path, monkeypatch):
    from dasktc.executors.stores.device import pinned

    with device_store(tmp_path, 1 << 20, 0) as store:
        slabs = store._copies.pinned
        first = store.keep(cupy_strict.zeros(3 * 64, dtype="uint8"))
        store._settle()
        del first
        free, total = len(slabs._free), slabs.total

        def refused(_):
            raise pinned.cp.cuda.runtime.CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")

        monkeypatch.setattr(pinned.cp.cuda, "alloc_pinned_memory", refused)
        found = store.keep(cupy_strict.zeros(1000 * 64, dtype="uint8"))
        assert type(found.places).__name__ == "Stored"
        assert (len(slabs._free), slabs.total) == (free, total)


def test_budgets_of_two_threads_do_not_lift_each_other(emulated, tmp_path):
    """One begins while another is active, and continues when that one ends: it stays in force, and all is restored."""
    first, second = DeviceStore(WorkDir(tmp_path), 1 << 23, 0), DeviceStore(WorkDir(tmp_path), 1 << 24, 0)
    chunk, inside, entered, left, found = emulated.chunk, Event(), Event(), Event(), []

    def before():
        first.evaluate(lambda: (inside.set(), entered.wait(0.5)), [])
        left.set()

    def allocate():
        entered.set()
        left.wait(10)
        try:
            cupy_strict.zeros(1 << 25, dtype="uint8")
        except MemoryError as error:
            found.append(str(error))
            raise

    def after():
        inside.wait(10)
        with pytest.raises(InputError):
            second.evaluate(allocate, [])

    threads = [Thread(target=run) for run in (before, after)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found
    assert all("16777216" in why for why in found)
    assert emulated.chunk == chunk
    first.close()
    second.close()


def test_a_call_that_finds_the_budget_used_up_is_made_again(collected, tmp_path):
    made = []

    def grow(array):
        made.append(len(array))
        return cupy_strict.concatenate([array, array])

    with on_gpu(tmp_path, 10_000, TO_HOST, 2_000) as tasks:
        first = tasks.submit("a", cupy_strict.zeros, 1_200, "uint8")
        second = tasks.submit("a", cupy_strict.zeros, 400, "uint8")
        assert (first.places, second.places) == (None, None)
        third = tasks.submit("b", grow, second)
        assert made == [400, 400]
        assert [array.nbytes for array in tasks.gather([third])] == [800]
        assert first.places is not None


def test_results_yielded_before_the_budget_was_used_up_are_not_made_again(collected, tmp_path):
    def three(array):
        for size in (100, 900, 1_000):
            yield cupy_strict.full(size, size // 100, "uint8")

    with on_gpu(tmp_path, 10_000, TO_HOST, 2_000) as tasks:
        kept = tasks.submit("a", cupy_strict.zeros, 500, "uint8")
        found = tasks.stream("b", three, [(kept,)])
        assert [int(array.sum()) for array in tasks.gather(found)] == [100, 8_100, 10_000]


def test_what_fits_never_leaves_the_device(emulated, tmp_path):
    from dasktc.executors.stores.device.copies import DeviceCopier

    with mock.patch.object(DeviceCopier, "to_host", side_effect=AssertionError("it fits")):
        result = dasktc.triangle_count(kronecker(9), backend="cuda", memory="1GB", run=RunOptions(work_dir=tmp_path))
    assert int(result) == int(dasktc.triangle_count(kronecker(9)))
    assert os.listdir(tmp_path) == []


def test_pieces_go_one_by_one(collected, tmp_path):
    """On the device and in pinned memory, a list's entries are freed one by one, not with its last entry."""
    row = cupy_strict.arange(300)
    for kept in (10**6, 0):
        with on_gpu(tmp_path, kept, TO_HOST) as tasks:
            made = tasks.map("a", lambda _: [row[:100], row[100:]], [1, 2])
            ((a, b), (c, d)) = tasks.transpose("a", made, 2)
            assert tasks.store._resident() == (4_800 if kept else 0)
            del a, b
            assert tasks.store._resident() == (3_200 if kept else 0)
            assert int(tasks.gather([tasks.submit("b", lambda piece: piece.sum(), d)])[0]) == sum(range(100, 300))
            del c, d
            assert tasks.store._resident() == 0


@pytest.mark.parametrize(
    ("host", "options"),
    some(
        itertools.product(
            [TO_HOST, TO_FILES], [{"partition": "auto"}, {"partition": "hash2d", "parts": 4}, OOC[0] | {"parts": 5}]
        ),
        lambda host, options: host == TO_HOST and options.get("parts") == 5,
    ),
)
def test_edges_are_dealt_to_ranges_as_they_are_oriented(collected, tmp_path, monkeypatch, options, host):
    """With several partitions: block by block, measured by remainders (4 divides 12, 5 does not)."""
    monkeypatch.setattr(Plane, "piece_edges", lambda plane, edges: 150)
    dealt, rows_of = [], orient.first_rows
    monkeypatch.setattr(orient, "first_rows", lambda *given: dealt.append(rows_of(*given)) or dealt[-1])
    source = kronecker(7, 8, parts=3)
    with tuned(ranked_rows=0):
        expected = dasktc.triangle_count(source, backend="cuda", **keywords(**options))
    small_calls = tuned(edge_bytes={"cpu": 40, "cuda": 500}, row_bytes={"int": 500, "text": 500}, ranked_rows=0)
    with small_calls, on_gpu(tmp_path, 6_000, host, 100_000) as tasks:
        graph = build(tasks, source, Options(backend="cuda", memory="1GB", **options))
        result = graph.triangle_count(verify=0.5)
        assert facts(result)[:4] == facts(expected)[:4]
        assert len(dealt) == 1
        assert len(dealt[0]) > 1
        assert dealt[0] == sorted(set(dealt[0]))
        assert min(tasks.store.moved) > 0
        assert graph.triangles().to_dict() == dasktc.prepare(source).triangles().to_dict()


@pytest.mark.parametrize("limit", [None, 6_000])
@pytest.mark.parametrize("host", [TO_HOST, TO_FILES])
def test_edges_are_directed_by_rows_before_they_are_sorted(collected, tmp_path, monkeypatch, host, limit):
    """As in memory, for a plan of one block, and with little memory for one of several, measured by remainders."""
    monkeypatch.setattr(Plane, "piece_edges", lambda plane, edges: 150)
    source, options = kronecker(7, 8, parts=3), Options(backend="cuda", memory=limit and f"{limit}B")
    expected = build(LocalExecutor(), source, replace(options, memory=None)).triangle_count()
    shapes, measure = [], Plane.measure
    monkeypatch.setattr(Plane, "measure", lambda *given: shapes.append(given[2].shape) or measure(*given))
    small_calls = tuned(edge_bytes={"cpu": 40, "cuda": 500}, row_bytes={"int": 500, "text": 500})
    with small_calls, on_gpu(tmp_path, 6_000, host, 100_000) as tasks:
        graph = build(tasks, source, options)
        result = graph.triangle_count(verify=0.5)
        assert result.stats.wedges == expected.stats.wedges
        assert int(result) == int(expected)
        assert result.plan.parts == (1 if limit is None else 4)
        assert {*shapes} <= {(1, 1)}
        assert min(tasks.store.moved) > 0
        if limit is None:
            assert graph.triangles().to_dict() == dasktc.prepare(source).triangles().to_dict()


def test_edges_that_a_block_lost_are_an_error(collected, emulated, tmp_path):
    place, layout = (0, 0), Layout(Axis(4, 1), (Axis(4, 1),), Shape(4, 2, True))
    slab = cupy_strict.asarray(np.array([0, 1, 1])), cupy_strict.asarray(np.array([0], "int32"))
    more = cupy_strict.asarray(np.array([0, 2, 3])), cupy_strict.asarray(np.array([0, 1, 2], "int32"))
    with on_gpu(tmp_path, 0, TO_HOST) as tasks:
        slabs = [tasks.submit("a", lambda of=of: of) for of in (slab, more)]
        with pytest.raises(CountError, match="holds 4 edges, the plan 5"):
            BudgetProcessPlane(tasks, Options(), TUNING)._filled(slabs, place, layout, emulated, 5)


def test_inputs_come_while_the_call_before_computes(collected, tmp_path):
    """Results leave in the same way: none is copied twice, and memory is not reused before its copy is done."""
    made = []

    def add(array):
        made.append(len(store._arrivals))
        return array + 1

    with on_gpu(tmp_path, 0, TO_HOST, 100_000) as tasks:
        store = tasks.store
        inputs = [tasks.submit("a", cupy_strict.full, 100, number, "int64") for number in range(5)]
        result = tasks.map("b", add, inputs)
        assert [int(array[0]) for array in tasks.gather(result)] == [1, 2, 3, 4, 5]
        assert made == [1, 1, 1, 1, 0]
        assert store.moved == (10 * 800, 10 * 800)
        assert not store._arrivals


def test_what_is_under_way_goes_before_a_call_is_made_again(collected, tmp_path):
    """Results on their way out, and inputs copied ahead, take memory that a call may need."""
    with on_gpu(tmp_path, 0, TO_HOST, 4_000) as tasks:
        inputs = [tasks.submit("a", cupy_strict.full, 100, number, "int64") for number in range(3)]
        result = tasks.map("b", lambda array: cupy_strict.concatenate([array, array]), inputs)
        assert [int(tasks.gather([one])[0].sum()) for one in result] == [0, 200, 400]
    assert not streams.VIOLATIONS


def test_who_keeps_the_budget(emulated, tmp_path):
    device = LocalExecutor(backend=lazy_backend("cuda"))
    assert isinstance(budgets.limited(device, "1GB", None).store, DeviceStore)
    assert isinstance(budgets.limited(device, None, tmp_path).store, MemoryStore)
    with pytest.raises(InputError, match=r"host_memory='x' is not a size"):
        budgets.limited(device, "1GB", None, host="x")
    found = budgets.limited(device, 1, None, host="32MB")
    assert memory_of(found, 1) == 1
    assert found.store._budget == LEAST - (1 << 22)


@pytest.mark.parametrize("memory", ["17MB", "1GB"])
def test_the_plan_is_that_of_the_count(emulated, memory):
    options = {"backend": "cuda", "memory": memory, "kernel": "lstc"}
    plan = dasktc.plan(kronecker(9), **keywords(**options)).plan
    assert plan == dasktc.triangle_count(kronecker(9), **keywords(**options)).plan
    sized = dasktc.plan(
        vertices=plan.vertices, edges=plan.edges, **keywords(parts=plan.parts, partition=plan.partition, **options)
    ).plan
    assert sized.memory == plan.memory
    assert sized.bytes_per_task <= plan.bytes_per_task


def test_the_command_line(emulated, tmp_path, capsys):
    pd.DataFrame(EDGES, columns=["a", "b"]).to_parquet(tmp_path / "e.parquet")
    places = ["--work-dir", str(tmp_path), "--host-memory", "1", "--memory", "17MB"]
    assert main(["count", str(tmp_path / "e.parquet"), "--backend", "cuda", *places, "--quiet"]) == 0
    assert capsys.readouterr().out == f"{oracle.triangles(EDGES)}\n"
    assert main(["count", str(tmp_path / "e.parquet"), "--host-memory", "much"]) == 2
    assert "--host-memory much is not a size" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["e.parquet"]


def test_auto_keeps_device_memory_where_there_is_a_gpu(emulated):
    with mock.patch.object(DeviceStore, "set_task_memory", side_effect=RuntimeError("on the GPU")):
        with pytest.raises(RuntimeError, match="on the GPU"):
            dasktc.triangle_count(kronecker(6), memory="100MB")
        with pytest.raises(RuntimeError, match="on the GPU"):
            dasktc.prepare(kronecker(6), memory="100MB")


# copies


def values(rng):
    cp = cupy_strict
    table = cp.asarray(rng.integers(0, 9, (3, 50)))
    twice = cp.asarray(rng.integers(0, 9, 70, dtype="int32"))
    return [
        cp.asarray(rng.integers(0, 9, 1000)), table, table[:, ::2], cp.zeros(0), twice[5:40], (twice, twice, 5),
        {"flags": twice > 3}, cp.asarray(np.array(3.5)),
    ]  # fmt: skip


def same(a, b):
    if isinstance(a, cupy_strict.ndarray):
        return (a.dtype, a.shape, a.tolist()) == (b.dtype, b.shape, b.tolist())
    if isinstance(a, dict):
        return all(same(a[key], b[key]) for key in a)
    return all(map(same, a, b)) if isinstance(a, tuple) else a == b


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("host", [TO_FILES, TO_HOST])
def test_values_come_back_as_they_were(collected, tmp_path, ahead, host):
    from dasktc.executors.stores.device.copies import DeviceCopier
    from dasktc.executors.stores.device.packing import pack
    from dasktc.executors.stores.value_files import Flat, store

    copies = DeviceCopier(host, replace(TINY, shared_fill=10))
    for number, value in enumerate(values(np.random.default_rng(1))):
        packed = pack(value)
        place = (copies.to_host([packed]) or [None])[0]
        assert (place is None) == (host == TO_FILES)
        if place is None:
            place = store(str(tmp_path / str(number)), [Flat(packed.head, copies.streamed(packed))], False)
        if ahead:
            arrival = copies.bring(place)
            copies.wait([arrival])
            found = arrival.value
        else:
            found = copies.load(place)
        assert same(value, found)
        copies.fence()
    twice = copies.load(place) if number == 5 else copies.load(_stored(copies, tmp_path, (found, found)))
    assert twice[0] is twice[1], "one array came back as two"


def _stored(copies, folder, value):
    from dasktc.executors.stores.device.packing import pack
    from dasktc.executors.stores.value_files import Flat, store

    packed = pack(value)
    assert len(packed.arrays) == 1
    return store(str(folder / "twice"), [Flat(packed.head, copies.streamed(packed))], False)


def test_a_block_that_is_used_before_its_copy_was_waited_for(collected):
    from dasktc.executors.stores.device.copies import DeviceCopier
    from dasktc.executors.stores.device.packing import pack

    copies = DeviceCopier(TO_HOST, TINY)
    place = copies.to_host([pack(cupy_strict.arange(100))])[0]
    arrival = copies.bring(place)
    with pytest.raises(RaceError, match="written by another stream"):
        int(arrival.value.sum())
    copies.wait([arrival])
    assert int(arrival.value.sum()) == 4950
    copies.fence()


def test_a_block_that_goes_while_it_may_be_used_is_noted(collected):
    from dasktc.executors.stores.device.copies import DeviceCopier
    from dasktc.executors.stores.device.packing import pack

    for fenced in (True, False):
        copies = DeviceCopier(TO_HOST, TINY)
        arrival = copies.bring(copies.to_host([pack(cupy_strict.arange(100))])[0])
        copies.wait([arrival])
        total = arrival.value + 1
        if fenced:
            copies.fence()
        del arrival
        gc.collect()
        noted, streams.VIOLATIONS[:] = list(streams.VIOLATIONS), []
        assert bool(noted) != fenced
        assert len(total) == 100


def test_a_copy_that_the_executor_does_not_wait_for_is_met(collected, tmp_path):
    from dasktc.executors.stores.device.copies import DeviceCopier

    options = {"partition": "hash2d", "parts": 4, "kept": 0, "host": TO_HOST, "budget": 100_000}
    with mock.patch.object(DeviceCopier, "wait"), pytest.raises(RaceError):
        counted(tmp_path, EDGES, **options)
    gc.collect()
    streams.VIOLATIONS.clear()  # inputs that came ahead went while they were copied


@pytest.mark.parametrize("fenced", [True, False])
def test_blocks_go_after_the_work_that_they_are_for(collected, tmp_path, fenced):
    """The host does not wait anywhere in between."""
    from dasktc.executors.stores.device.copies import DeviceCopier

    with (
        on_gpu(tmp_path, 0, TO_HOST, 3_000) as tasks,
        mock.patch.object(DeviceCopier, "fence", DeviceCopier.fence if fenced else lambda self: None),
    ):
        blocks = [tasks.submit("a", cupy_strict.full, 100, number, "int64") for number in range(9)]
        tasks.store.set_task_memory(1_600)
        found = list(tasks.map_unordered("b", lambda block: block[:1] + 1, [(block,) for block in blocks]))
        assert [int(array[0]) for array in found] == list(range(1, 10))
    gc.collect()
    noted, streams.VIOLATIONS[:] = list(streams.VIOLATIONS), []
    assert bool(noted) != fenced


def test_a_block_that_two_tasks_share_is_copied_once(collected, tmp_path):
    options = {"partition": "hash2d", "parts": 3, "kept": 0, "host": TO_HOST}
    with mock.patch.object(DeviceStore, "_make_room_for", lambda self, calls: self._move_out_until(0)):
        found, tasks = counted(tmp_path, EDGES, **options)
    assert found.plan.tasks == 27
    assert tasks.store.transfers.blocks <= 9, "all of them fit"
    assert tasks.store.transfers.nbytes > 0
    assert 0 < tasks.store.transfers.first <= tasks.store.transfers.exposed


class Instant:
    """Copies that take no time."""

    def __init__(self):
        self.brought = []

    def bring(self, place):
        self.brought.append(place)
        return SimpleNamespace(value=("value", place.number), start=0, end=0, nbytes=place.nbytes)

    def moment(self):
        return 0

    def wait(self, arrivals):
        pass


class Block(NamedTuple):
    number: int
    nbytes: int


@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=8),
    calls=st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=3), max_size=30),
    room=st.integers(0, 200),
)
def test_blocks_ahead_are_right_and_no_more_are_held_than_there_is_room(sizes, calls, room):
    blocks = [Block(number, size) for number, size in enumerate(sizes)]
    tasks = [[blocks[k % len(blocks)] for k in call] for call in calls]
    with DevicePrefetcher(room, Instant()) as ahead:
        for number, task in enumerate(tasks):
            assert ahead.use(task) == {block: ("value", block.number) for block in task}
            ahead.follow(tasks[number + 1 : number + 1 + HORIZON])
            assert sum(block.nbytes for block in ahead._values if block not in task) <= room


def test_what_is_needed_last_makes_room():
    """An LRU cache would evict it first, and copy it again."""
    a, b, c, d = (Block(number, 10) for number in range(4))
    tasks, copies = [[a], [b], [c], [a], [d], [a], [b]], Instant()
    with DevicePrefetcher(10, copies) as ahead:
        for number, task in enumerate(tasks):
            ahead.use(task)
            ahead.follow(tasks[number + 1 : number + 1 + HORIZON])
    assert copies.brought.count(a) <= 2
    assert len(copies.brought) <= 6


def test_hidden_is_what_nothing_waited_for():
    assert TransferStats().hidden is None
    assert TransferStats(2, 100, 1.0, 0.25, 0.2).hidden == 0.75
    assert TransferStats(2, 100, 1.0, 2.0, 0.2).hidden == 0.0


def test_prefetching_that_finds_the_budget_used_up_is_made_again(collected, tmp_path):
    brought, number = DevicePrefetcher._bring, itertools.count()

    def fails(self, place):
        if next(number) in (2, 12):
            raise MemoryError("std::bad_alloc: out_of_memory")
        return brought(self, place)

    with mock.patch.object(DevicePrefetcher, "_bring", fails):
        found, _ = counted(tmp_path, EDGES, 0, TO_HOST, partition="hash2d", parts=3)
    assert int(found) == oracle.triangles(EDGES)
    assert next(number) > 12


# on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("host", ["1", "4GB"])
@pytest.mark.parametrize(
    ("scale", "memory", "options"),
    [
        (22, "256MB", {}),
        (22, "256MB", {"partition": "hash2d", "parts": 9}),
        (22, "384MB", {"partition": "vertical", "parts": 8}),
        (20, "128MB", {"partition": "proxy", "kernel": "lstc"}),
    ],
    ids=str,
)
def test_a_graph_several_times_larger_on_the_device(tmp_path, scale, memory, options, host):
    """The whole graph takes 1.6 GB at scale 22, and 0.4 GB at scale 20."""
    chosen = Options(backend="cuda", memory=memory, **options)
    with budgets.within_memory(LocalExecutor(backend=lazy_backend("cuda")), memory, tmp_path, host=host) as tasks:
        result = build(tasks, kronecker(scale), chosen).triangle_count()
        assert int(result) == {20: 424_270_360, 22: 2_111_176_581}[scale]
        assert 0 < tasks.store.peak <= bytes_of(memory)
        assert tasks.store.transfers.blocks > 0
    assert os.listdir(tmp_path) == []


@pytest.mark.gpu
def test_measures_within_a_budget_on_the_device(tmp_path):
    edges = random_edges(3000, 200_000, 5)
    known = dasktc.prepare(source_of(edges), backend="cpu")
    for host in (TO_FILES, 1 << 30):
        with on_gpu(tmp_path, 1 << 18, host, 64 << 20, Tuning(small=1)) as tasks:
            graph = build(
                tasks, source_of(edges, parts=4), Options(backend="cuda", memory="64MB", parts=3, partition="hash2d")
            )
            assert int(graph.triangle_count()) == int(known.triangle_count())
            assert graph.triangles().equals(known.triangles())
            assert graph.edge_support().equals(known.edge_support())
