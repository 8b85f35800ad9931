"""One process with several threads: the same results as with one, within one budget, and ended at once."""

from __future__ import annotations

import json
import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count as numbers

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dasktc
from dasktc.api.count import build
from dasktc.backends.host_threads import allowed_threads
from dasktc.cli.main import main
from dasktc.counting.checkpoint import FILE
from dasktc.errors import CountError, InputError
from dasktc.executors import connect as connecting
from dasktc.executors.local import LocalExecutor
from dasktc.executors.memory_budget import SHARE, limited
from dasktc.executors.offers import memory_of
from dasktc.executors.place import Place
from dasktc.executors.stores.file_store import LEAST, OVERHEAD, FileStore
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.executors.threads import completed
from dasktc.options import Method, Options
from dasktc.pipeline.planes import choose
from tests.support.oracle import (
    complete,
    messy,
    multigraphs,
    support,
    text_multigraphs,
    triangles,
    triangles_per_vertex,
)
from tests.support.processes import patience, until
from tests.support.slow_pipeline import (
    EVERY_KERNEL,
    EVERY_PARTITION,
    EVERY_REORDER,
    pairwise_cover,
    skewed_edges,
    source_of,
    tuned,
)

EDGES = skewed_edges(90, 900, 5)


@contextmanager
def as_if_large():
    """Partitions, frames and threads as for large graphs."""
    with tuned(one_partition=1, few_edges=0):
        yield


@pytest.fixture
def large():
    with as_if_large():
        yield


def everything(graph):
    """Everything that a graph can be asked; rows of edges sorted."""
    result = graph.triangle_count()
    facts = result.triangles, result.vertices, result.edges, result.loops_dropped, result.duplicates_dropped
    supports = sorted(graph.edge_support().itertuples(index=False, name=None))
    listed = sorted(graph.triangle_list().itertuples(index=False, name=None))
    order = np.concatenate(graph._context.executor.gather(graph._context.prepared.graph.order.parts)).tolist()
    return facts, result.stats.wedges, result.stats.probes, graph.triangles().to_dict(), supports, listed, order


# The same results

WAYS = pairwise_cover(EVERY_KERNEL, EVERY_PARTITION, EVERY_REORDER)


@given(
    edges=st.one_of(multigraphs(max_edges=90), text_multigraphs(max_edges=90)),
    way=st.sampled_from(WAYS),
    parts=st.sampled_from([1, 3]),
)
@example(edges=messy(complete(9)), way=WAYS[0], parts=3)
@example(edges=[], way=WAYS[-1], parts=1)
@settings(max_examples=settings.default.max_examples // 2)
def test_any_multigraph_gives_what_one_thread_gives(edges, way, parts):
    kernel, partition, reorder = way
    ids = "text" if edges and isinstance(edges[0][0], str) else "int"
    options = Options(kernel=kernel, reorder=reorder, **({"splits": 3} | partition))
    with as_if_large():
        one, *more = (
            everything(build(LocalExecutor(threads=number), source_of(edges, ids, parts), options))
            for number in (1, 2, 3)
        )
    assert more == [one, one]
    assert (one[0][0], one[3]) == (triangles(edges), triangles_per_vertex(edges))
    assert {frozenset(row[:2]): row[2] for row in one[4]} == support(edges)


@given(
    edges=st.one_of(multigraphs(max_edges=90), text_multigraphs(max_edges=90)),
    partition=st.sampled_from(EVERY_PARTITION),
    kept=st.sampled_from([0, 10**6]),
)
@settings(max_examples=settings.default.max_examples // 5)
def test_out_of_core_too(tmp_path_factory, edges, partition, kept):
    """With every result in a file, or none."""
    ids = "text" if edges and isinstance(edges[0][0], str) else "int"
    options, source = Options(memory="1GB", **partition), source_of(edges, ids, parts=3)
    expected = everything(build(LocalExecutor(), source, options))
    tasks = LocalExecutor(FileStore(WorkDir(tmp_path_factory.mktemp("work")), 4_000, 1, 3), threads=3)
    tasks.store._limit = kept
    with as_if_large():
        assert everything(build(tasks, source, options)) == expected
    tasks.close()


def test_frames_of_a_file_that_is_read_as_a_whole_are_shared_out(large):
    frames = list(choose(LocalExecutor(threads=4), Options()).read(source_of(EDGES)).frames)
    assert [len(frame) for frame in frames] == [225, 225, 225, len(frames[-1])]
    assert sum(map(len, frames)) == sum(u != v for u, v in EDGES)


@pytest.mark.usefixtures("large")
def test_result_and_plan_say_how_many_calls_ran_at_a_time(tmp_path, capsys):
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    assert main(["count", str(path), "--threads", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["triangles"], found["workers"]) == (triangles(EDGES), 3)
    assert main(["plan", str(path), "--threads", "3", "--verbose"]) == 0
    assert "3 at a time" in capsys.readouterr().out
    assert "3 at a time" in repr(dasktc.triangle_count(path, threads=3))


@pytest.mark.parametrize("memory", [None, "1GB"])
def test_a_small_graph_needs_one_thread(memory):
    graph = dasktc.prepare(source_of(EDGES), threads=3, memory=memory)
    assert (len(graph._context.executor.worker_threads), graph.plan.workers) == (1, 1)


@pytest.mark.usefixtures("large")
def test_a_graph_is_asked_from_several_threads_and_pickled():
    graph = dasktc.prepare(source_of(EDGES), threads=2)
    expected = everything(graph)
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(everything, [graph] * 6)) == [expected] * 6
    assert everything(pickle.loads(pickle.dumps(graph))) == expected


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(("before", "after"), [(1, 2), (3, 1)])
def test_a_checkpoint_resumes_on_another_number_of_threads(tmp_path, before, after):
    def progress(stage, done, total):
        if stage == "count" and done == 3:
            raise KeyboardInterrupt

    source = source_of(EDGES, parts=2)
    with pytest.raises(KeyboardInterrupt):
        dasktc.triangle_count(source, threads=before, checkpoint=tmp_path, progress=progress)
    kept = len((tmp_path / FILE).read_text().splitlines()) - 1
    result = dasktc.triangle_count(source, threads=after, checkpoint=tmp_path)
    assert (int(result), result.stats.resumed, result.plan.splits) == (triangles(EDGES), kept, 4 * before)
    assert kept == 3


# How many threads


def test_the_cores_that_the_process_may_use(monkeypatch, tmp_path):
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3, 5}, raising=False)
    for text, expected in ((None, 3), ("max 100000\n", 3), ("150000 100000\n", 2), ("900000 100000\n", 3)):
        if text is not None:
            quota.write_text(text)
        assert allowed_threads(str(quota)) == expected
    with connecting.connect() as executor:
        assert len(executor.worker_threads) == allowed_threads() <= 3


def test_one_in_a_task_of_a_worker_and_where_a_gpu_counts(client):
    assert client.submit(allowed_threads, pure=False).result(timeout=patience()) == 1
    assert connecting.threads_here(Place(), "cuda") == 1


@pytest.mark.usefixtures("large")
def test_all_where_a_gpu_is_passed_over(monkeypatch, caplog):
    """Where there may be a GPU, its libraries load only once a backend is chosen; the CPU then uses all threads."""
    monkeypatch.setattr(connecting, "_may_use_a_gpu", lambda: True)
    assert connecting.threads_here(Place(threads=3), "auto") == 1
    assert connecting.with_all_threads(LocalExecutor(), Place(threads=3), "cuda").worker_threads == [""]
    assert "threads=3 makes nothing faster on a GPU" in caplog.text
    caplog.clear()
    for place in (Place(), Place(threads=1)):
        connecting.with_all_threads(LocalExecutor(), place, "cuda")
    assert not caplog.text
    result = dasktc.triangle_count(source_of(EDGES), threads=2)
    assert (result.backend, result.workers, result.plan.workers) == ("cpu", 2, 2)


@tuned(few_edges=1_000)
def test_a_plan_and_its_count_have_the_same_threads():
    """Also where most rows of a source repeat others."""
    for times in (1, 2):
        result = dasktc.triangle_count(source_of(EDGES * times), threads=2)
        assert result.edges < 1_000
        assert result.workers == result.plan.workers == times


def test_threads_are_of_this_process(client):
    for threads in (0, -1, 1.5, "many", True, 1 << 20):
        with pytest.raises(InputError, match="threads="):
            Place(threads=threads)
    with pytest.raises(InputError, match="client and threads were both given"):
        dasktc.triangle_count(source_of(EDGES), client, threads=2)
    with client.as_current(), connecting.connect(Place(threads=2)) as executor:
        assert isinstance(executor, LocalExecutor)
        assert len(executor.worker_threads) == 2


# The budget


def test_threads_share_the_budget(tmp_path):
    for memory, expected in ((LEAST, 1), (2 * SHARE, 1), (3 * SHARE, 2), (99 * SHARE, 4)):
        executor = limited(LocalExecutor(threads=4), memory, tmp_path)
        assert len(executor.worker_threads) == expected
        assert executor.store.memory_in_parallel * expected <= executor.store.memory_per_call
        assert executor.store.memory_in_parallel * expected >= 0.7 * executor.store.memory_per_call
        assert memory_of(executor, memory) == memory - OVERHEAD


@pytest.mark.parametrize(
    ("same", "needed", "expected"),
    [(False, 100_000, 1), (False, 45_000, 2), (True, 65_000, 3), (True, 45_000, 4), (True, 125_000, 1)],
)
def test_as_many_tasks_run_at_a_time_as_the_budget_has_room_for(tmp_path, same, needed, expected):
    """Tasks on one block share one copy of it, and need only scratch each; others need their own blocks."""
    store = FileStore(WorkDir(tmp_path), 160_000, small=1, threads=4)
    store._limit = 0
    blocks = [store.keep(np.arange(5_000, dtype="int64")) for _ in range(1 if same else 6)]
    store.set_task_memory(needed)
    calls, running, most = [(blocks[k % len(blocks)],) for k in range(6)], numbers(), []
    at_once, lock = [], threading.Lock()

    def task(block):
        with lock:
            at_once.append(next(running))
            most.append(len(at_once))
        until(lambda: max(most) >= expected)
        time.sleep(0.01)  # in which others would begin
        with lock:
            at_once.pop()
        return int(block.sum())

    assert list(LocalExecutor(store, threads=4).map_unordered("count", task, calls)) == [12_497_500] * 6
    assert max(most) == expected
    store.close()


# The end


def test_the_first_error_in_order_is_raised_and_no_call_goes_on():
    made, second = [], threading.Event()

    def call(number):
        made.append(number)
        if number == 1:
            assert second.wait(patience())
            raise CountError("of the second")
        if number == 2:
            second.set()
            raise CountError("of the third")

    with pytest.raises(CountError, match="of the second"):
        for _ in completed(3, ((lambda number=number: call(number)) for number in range(50))):
            pass
    assert len(made) < 50
    assert not running()


def test_an_error_of_what_makes_calls_is_raised():
    def calls():
        yield lambda: 1
        raise CountError("no more")

    with pytest.raises(CountError, match="no more"):
        list(completed(2, calls()))
    assert not running()


def test_a_caller_that_takes_no_more_results_ends_the_calls():
    made = []
    calls = completed(2, ((lambda number=number: made.append(number)) for number in numbers()))
    next(calls)
    calls.close()
    assert not running()
    ended = len(made)
    time.sleep(0.02)
    assert len(made) == ended


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own signal handler: dask-jobqueue's runner, once imported, leaves another one in the process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("large", "interruptible")
def test_an_interrupt_ends_a_count_at_once():
    """The calling thread only waits while calls run, so that it can handle a signal."""
    graph, begun = dasktc.prepare(source_of(EDGES), threads=2, method=Method(splits=400)), threading.Event()

    def task(number):
        if number == 1:
            begun.set()
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        assert number < 100, "it goes on"
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        list(graph._context.executor.map_unordered("count", task, ((number,) for number in range(400))))
    assert begun.is_set()
    assert not running()
    assert int(graph.triangle_count()) == triangles(EDGES)


def running():
    return [thread for thread in threading.enumerate() if thread.name == "dasktc-call"]
