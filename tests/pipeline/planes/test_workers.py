"""Stages on a cluster: few and coarse tasks, few waits, and the same graph as in this process."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from functools import partial, partialmethod
from itertools import product
from types import SimpleNamespace
from unittest import mock

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client, Future, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

import dasktc
from dasktc import generate
from dasktc.api.count import build
from dasktc.executors.dask import executor as submission
from dasktc.executors.dask import futures
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.dask.faults import FaultPolicy
from dasktc.executors.dask.worker_events import TOPIC
from dasktc.executors.local import LocalExecutor
from dasktc.io.generators.synthetic import kronecker
from dasktc.options import Method, Options, RunOptions
from dasktc.pipeline import prepare
from dasktc.planning import cost_model
from tests.executors.dask.test_executor import KRONECKER_14
from tests.support import oracle
from tests.support.keywords import keywords
from tests.support.processes import patience, until
from tests.support.slow_pipeline import random_edges, skewed_edges, source_of, tuned
from tests.support.tiers import some

EDGES = skewed_edges(300, 4_000, 5)
TRIANGLES = oracle.triangles(EDGES)
TASKS_A_WORKER, WAITS = 12, 4


@pytest.fixture(params=some([2, 4], lambda number: number == 4), ids="{} workers".format)
def workers(request):
    """So many workers in this process, with one thread each; small graphs have as many partitions."""
    with (
        LocalCluster(
            n_workers=request.param, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        tuned(one_partition=1),
        mock.patch.object(cost_model, "ONE_PARTITION", 1),
    ):
        yield cluster, client


class Finished(SchedulerPlugin):
    """Counts the finished tasks of each group, and those of a higher priority than others."""

    def __init__(self, scheduler):
        self.tasks, self.urgent, self._scheduler = Counter(), Counter(), scheduler
        scheduler.add_plugin(self)

    def transition(self, key, start, finish, *args, **kwargs):
        if (start, finish) == ("processing", "memory"):
            group = key[0].rpartition("-")[0]
            self.tasks[group] += 1
            self.urgent[group] += self._scheduler.tasks[key].priority[0] < 0


@pytest.mark.parametrize(
    ("source", "triangles", "partition"),
    some(
        [
            (of, count, partition)
            for of, count in ((kronecker(12), 486_234), (None, TRIANGLES))
            for partition in ("whole", "edges")
        ],
        lambda source, triangles, partition: (source is None) == (partition == "edges"),
    ),
)
def test_a_count_has_few_tasks_and_few_waits(workers, tmp_path, source, triangles, partition):
    cluster, client = workers
    for number in range(9):
        np.savetxt(tmp_path / f"part-{number}.txt", EDGES[number::9], "%d")
    number, waits, results = len(cluster.workers), [], submission.results

    def counted(*args, **options):
        waits.append(args)
        return results(*args, **options)

    finished = Finished(cluster.scheduler)
    with mock.patch.object(submission, "results", counted):
        result = dasktc.triangle_count(source or tmp_path, client, method=Method(partition=partition))
    assert int(result) == triangles
    assert len(waits) <= WAITS
    assert finished.tasks["read-rows"] == number
    assert finished.tasks["canonical"] == 2 * number, "counts of rows, and distinct edges"
    assert finished.tasks["blocks"] == 2 * number, "a slab and a copy of the block a worker"
    assert sum(finished.tasks.values()) <= TASKS_A_WORKER * number


@pytest.mark.parametrize(
    ("vertices", "rankings", "one_frame_each"),
    [(60, 4, False), (3_000, 1, False), (60, 4, True)],
    ids=["several frames", "many vertices", "a frame each"],
)
def test_workers_rank_for_themselves_where_degrees_take_less_memory_than_edges(
    workers, vertices, rankings, one_frame_each
):
    cluster, client = workers
    tasks, number, finished = DaskExecutor(client), len(cluster.workers), Finished(cluster.scheduler)
    frames, edges = number if one_frame_each else 5, skewed_edges(vertices, 4_000, 5)
    with tuned(task_bytes={"tcp": 0}), build(tasks, source_of(edges, parts=frames), Options()) as graph:
        assert int(graph.triangle_count()) == oracle.triangles(edges)
    counts, cuts, pieces, ranks = number, frames, frames * (number - 1), min(rankings, number)
    assert finished.tasks["canonical"] == counts + ranks + cuts + pieces + number
    assert finished.tasks["orient"] == number, "degrees and out-degrees"
    assert finished.urgent["canonical"] == pieces + one_frame_each * ranks, "for which other calls wait"


@pytest.mark.parametrize("memory", some([1 << 30, 40_000], lambda memory: memory < 1 << 20), ids="{} bytes".format)
def test_edges_of_a_single_block_are_sent_once(workers, monkeypatch, memory):
    cluster, client = workers
    tasks, number, edges = DaskExecutor(client), len(cluster.workers), [(3 * u, 3 * v) for u, v in EDGES]
    monkeypatch.setattr(prepare, "memory_of", lambda *asked: memory)
    plain = build(LocalExecutor(), source_of(edges), Options())
    finished = Finished(cluster.scheduler)
    with tuned(task_bytes={"tcp": 0}):
        graph = build(tasks, source_of(edges, parts=5), Options())
    single = memory > 1 << 20
    assert (finished.urgent["orient"], finished.urgent["orient-plan"]) == (0, 1), "the client waits for the plan"
    assert finished.urgent["canonical"] == 5 * (number - 1), "pieces of frames, for which other workers wait"
    assert (graph.plan.partition == "whole") == single
    if single:
        assert finished.tasks["blocks"] == 2 * number, "a slab and a copy of the block a worker"
        (block,), ((there,),) = plain._context.blocks.values(), [tasks.gather(graph._context.blocks.values())]
        assert there.offsets.tolist() == block.offsets.tolist()
        assert there.columns.tolist() == block.columns.tolist()
    assert int(graph.triangle_count()) == TRIANGLES
    assert not len(graph._context.prepared.graph.partitions)
    needed = number if single else len(graph._context.blocks)

    def held() -> int:
        return sum(bool(at) and key[0].startswith("blocks-") for key, at in client.who_has().items())

    until(lambda: held() == needed)
    graph.close()


@pytest.mark.parametrize(
    ("options", "pieces"),
    some(
        product([{}, {"partition": "hash2d", "parts": 2, "reorder": "collective"}], [False, True]),
        lambda options, pieces: bool(options) and pieces,
    ),
    ids=str,
)
def test_workers_build_the_same_graph(workers, options, pieces):
    _, client = workers
    plain = build(LocalExecutor(), source_of(EDGES), Options(**options))
    tasks = DaskExecutor(client)
    with tuned(**({"passes": {"cpu": 2}, "task_bytes": {"tcp": 0}} if pieces else {})):
        graph = build(tasks, source_of(EDGES, parts=5), Options(**options))
    for place, block in plain._context.blocks.items():
        (there,) = tasks.gather([graph._context.blocks[place]])
        assert there.offsets.tolist() == block.offsets.tolist()
        assert there.columns.tolist() == block.columns.tolist()
    assert graph.triangles().to_dict() == plain.triangles().to_dict()
    assert (graph.vertices, graph.edges, graph._context.prepared.wedges) == (
        plain.vertices,
        plain.edges,
        plain._context.prepared.wedges,
    )


@pytest.mark.parametrize("kind", some(["text", "wide"], lambda kind: kind == "text"))
def test_ids_that_need_a_map(workers, kind):
    _, client = workers
    named = [(f"v{u}", f"v{v}") if kind == "text" else (u << 40, v << 40) for u, v in EDGES]
    source = source_of(named, "text" if kind == "text" else "int", parts=5)
    assert int(dasktc.triangle_count(source, client)) == TRIANGLES


def test_every_worker_stacks_its_own_copy(workers):
    """Slabs come from the workers that built them: a block never travels as a whole."""
    cluster, client = workers
    before = client.run(came, "blocks")
    tasks = DaskExecutor(client)
    graph = build(tasks, source_of(EDGES, parts=4), Options(partition="whole"))
    predicted = cost_model.gathered(graph.plan.bytes_total, np.arange(len(cluster.workers)), len(cluster.workers))
    received = {worker: nbytes - before[worker] for worker, nbytes in client.run(came, "blocks").items()}
    assert sum(received.values()) == pytest.approx(predicted.total, abs=500 * len(received) ** 2)
    assert max(received.values()) < graph.plan.bytes_total
    built = client.run(came, "blocks")
    assert int(graph.triangle_count()) == TRIANGLES
    assert client.run(came, "blocks") == built, "counting finds its block there"


def test_partitions_of_a_dask_dataframe_are_read_where_they_are(workers):
    import dask.dataframe as dd
    import pandas as pd

    _, client = workers
    frame = dd.from_pandas(pd.DataFrame(EDGES, columns=["src", "dst"]), npartitions=5).persist(scheduler=client.get)
    before = client.run(came, "read")
    assert int(dasktc.triangle_count(frame, client)) == TRIANGLES
    assert client.run(came, "pandas") == dict.fromkeys(before, 0)


def came(stage, dask_worker):
    logs = [got["keys"].items() for got in dask_worker.transfer_incoming_log]
    return sum(size for keys in logs for key, size in keys if stage in str(key))


def test_copies_of_a_worker_that_went_are_given_up(workers):
    cluster, client = workers
    graph = dasktc.prepare(source_of(EDGES, parts=4), client, method=Method(partition="whole", splits=40))
    # What Dask began to fetch from the worker that goes, it tries to fetch for as long as a connection may take.
    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):
        cluster.scale(len(cluster.workers) - 1)
        until(lambda: len(client.ncores()) == len(cluster.workers))
        assert int(graph.triangle_count()) == int(graph.triangle_count()) == TRIANGLES


def test_facts_that_went_with_their_worker_are_asked_for_again(workers):
    """A worker may end between its task and the question about it."""
    _, client = workers
    with mock.patch.object(DaskExecutor, "ask_workers", return_value={}):
        result = dasktc.triangle_count(source_of(EDGES, parts=4), client)
    assert int(result) == TRIANGLES


def test_tasks_of_several_stages_say_when_each_ends(workers):
    _, client = workers
    dasktc.triangle_count(source_of(EDGES, parts=4), client)
    ended = Counter(event["stage"] for _, event in client.get_events(TOPIC) if "event" not in event)
    assert ended["orient"] == 1
    assert ended["read"] >= 2


def test_a_count_asks_seldom_who_the_workers_are(workers):
    """Each question takes as long as two tasks, and all workers wait meanwhile."""
    _, client = workers
    asked = Counter()
    questions = {name: getattr(client, name) for name in ("ncores", "scheduler_info")}

    def counted(name, *args, **options):
        asked[name] += 1
        return questions[name](*args, **options)

    asking = mock.patch.multiple(client, **{name: partial(counted, name) for name in questions})
    as_if_quick = mock.patch.object(FaultPolicy, "lately", partialmethod(FaultPolicy.lately, seconds=3_600))
    with asking, as_if_quick, mock.patch.object(futures, "LOOK_SECONDS", 3_600):
        result = dasktc.triangle_count(source_of(EDGES, parts=3), client, run=RunOptions(distribute="always"))
    assert int(result) == TRIANGLES
    assert asked == {"ncores": 1, "scheduler_info": 1}


def test_generated_parts_are_cut_anew():
    (part,) = kronecker(6, parts=1).parts
    shares = part.shares(5)
    assert [(share.first, share.last) for share in shares] == [
        (0, 204),
        (204, 409),
        (409, 614),
        (614, 819),
        (819, 1024),
    ]
    assert part.shares(1) == [part]


@pytest.mark.parametrize("scale", [1, 40], ids=["as wide as rows", "wide"])
def test_ids_without_an_edge_are_no_vertices(scale):
    edges = [(scale * u, scale * v) for u, v in random_edges(2_000, 1_500, 3)]
    found, ids = dasktc.prepare(source_of(edges)), {end for edge in edges for end in edge if edge[0] != edge[1]}
    assert found.vertices == len(ids) < 2_000
    assert found.triangles().index.tolist() == sorted(ids)


SPAWNED = """
from dasktc.executors.measured import Measured, value_of  # as a worker does that imports the user's script first
import pickle, sys
assert "distributed" not in sys.modules
import numpy as np
from distributed.protocol import deserialize, serialize
given = Measured((np.arange(1000), np.ones(3)), ("rows", 7))
header, frames = serialize(given, serializers=("dask", "error"))
assert header["serializer"] == "dask", header
with open(sys.argv[1], "wb") as file:
    pickle.dump((header, [bytes(frame) for frame in frames]), file)
"""
RECEIVED = """
import dasktc.executors.measured as measured, pickle, sys
assert "distributed" not in sys.modules
from distributed.protocol import deserialize
with open(sys.argv[1], "rb") as file:
    header, frames = pickle.load(file)
got = deserialize(header, frames)
assert isinstance(got, measured.Measured)
assert (got.value[0].sum(), got.value[1].sum(), got.facts) == (499500, 3, ("rows", 7))
"""


def test_measured_results_travel_as_arrays_whatever_was_imported_first(tmp_path):
    for program in (SPAWNED, RECEIVED):
        subprocess.run([sys.executable, "-c", program, str(tmp_path / "sent")], check=True, timeout=patience(60))


@pytest.mark.slow
def test_the_page_of_task_groups_takes_the_keys():
    """While a graph is counted and afterwards; Dask's own class takes no groups with plain names."""
    from dasktc.executors.dask.internals import group_graph

    errors, labels = [], set()
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        page = group_graph()(cluster.scheduler)

        async def look():
            labels.update(key[1:-1] for key in cluster.scheduler.tasks if "count-" in key[0])
            try:
                page.update()
            except Exception as error:
                errors.append(error)

        def stage(name, done, total):
            cluster.sync(look)

        graph = dasktc.prepare(
            kronecker(8), client, method=Method(partition="hash2d", parts=2, splits=2), progress=stage
        )
        graph.triangle_count(progress=stage)
        for ask in (graph.triangles, graph.edge_support, graph.clustering, graph.triangle_list, graph.truss):
            ask()
            stage("asked", 1, 1)
        assert errors == []
        assert {"read-rows", "canonical", "orient", "blocks", "count", "support"} <= set(
            cluster.scheduler.task_prefixes
        )
    assert labels <= {((i, k, j), split) for i in range(2) for k in range(2) for j in range(2) for split in range(2)}
    assert labels


def prefixes(found):
    return {name for name in found.scheduler.task_prefixes if not name.startswith("from-")}


STAGES = {"read-rows", "canonical", "orient", "orient-plan", "blocks", "count"}
"""Integers of a narrow range need no map of their own in memory."""


@pytest.mark.parametrize("options", some([{}, {"memory": "1GB"}], lambda options: not options), ids=str)
def test_every_stage_is_a_task_group(threads, inner, options):
    """There are no other groups, and in particular no shuffle of dask.dataframe."""
    dasktc.triangle_count(generate.kronecker(14, parts=5), inner, **keywords(partition="hash2d", parts=2, **options))
    stages = STAGES | {"plan"}
    assert prefixes(threads) == stages
    dasktc.triangle_count(generate.kronecker(8), inner, verify=1.0, **keywords(reorder="collective", **options))
    assert prefixes(threads) == stages | {"degrees", "reorder", "verify"}


@pytest.mark.parametrize("options", [{}, {"memory": "1GB"}], ids=["in memory", "in files"])
def test_a_dask_dataframe_brings_no_shuffle(threads, inner, options):
    import dask.dataframe as dd

    frame = dd.from_pandas(pd.DataFrame(random_edges(100, 2_000, 4), columns=["a", "b"]), npartitions=3)
    dasktc.triangle_count(frame, inner, **keywords(**options))
    assert not [name for name in threads.scheduler.task_prefixes if "shuffle" in name or "p2p" in name]
    assert prefixes(threads) - {"frompandas"} == STAGES


def test_a_prepared_graph_holds_its_blocks_and_no_edges(threads, inner):
    """Nothing of the size of the edge list stays in memory from the stages before."""
    graph = dasktc.prepare(generate.kronecker(14, parts=5), inner, method=Method(partition="whole"))

    def held():
        return sum(task.nbytes for task in threads.scheduler.tasks.values() if task.who_has)

    vectors = 80 * graph.vertices
    until(lambda: held() < len(threads.workers) * graph.plan.bytes_total + vectors)
    assert int(graph.triangle_count()) == KRONECKER_14


class Sizer(pickle.Pickler):
    """Pickles without futures, to measure a call's arguments by themselves."""

    def persistent_id(self, obj):
        return "future" if isinstance(obj, Future) else None


def weight(obj):
    import io

    out = io.BytesIO()
    Sizer(out, protocol=5).dump(obj)
    return len(out.getvalue())


@pytest.fixture
def meter(monkeypatch):
    """Bytes of every submitted call's arguments, and of every result that came to a client."""
    sent, brought = [], []
    submit, map_, get, gather = Client.submit, Client.map, Client.get, Client._gather

    def metered_submit(self, function, *args, **kwargs):
        sent.append(weight(args))
        return submit(self, function, *args, **kwargs)

    def metered_map(self, function, calls, inputs, **kwargs):
        sent.extend(map(weight, calls))
        return map_(self, function, calls, inputs, **kwargs)

    def metered_get(self, graph, *args, **kwargs):
        sent.extend(map(weight, graph.values()))
        return get(self, graph, *args, **kwargs)

    async def metered_gather(self, *args, **kwargs):
        found = await gather(self, *args, **kwargs)
        brought.append(weight(found))
        return found

    monkeypatch.setattr(Client, "submit", metered_submit)
    monkeypatch.setattr(Client, "map", metered_map)
    monkeypatch.setattr(Client, "get", metered_get)
    monkeypatch.setattr(Client, "_gather", metered_gather)
    return SimpleNamespace(sent=sent, brought=brought)


def test_the_meter_sees_what_travels(inner, meter):
    assert len(inner.gather(inner.submit(np.arange, 1_000))) == 1_000
    assert 8_000 < meter.brought[-1] < 9_000
    inner.submit(len, np.arange(2_000)).result()
    assert meter.sent[-1] > 16_000


@pytest.mark.parametrize(
    "options",
    some(
        [{}, {"partition": "hash2d", "parts": 4, "splits": 2, "verify": 1.0}, {"reorder": "collective"}],
        lambda options: "parts" in options,
    ),
    ids=str,
)
def test_no_edge_list_reaches_the_client(client, meter, options):
    """213,100 edges take 1.7 MB as keys: the client receives only samples of them and numbers."""
    result = dasktc.triangle_count(generate.kronecker(14, parts=5), client, **keywords(**options))
    assert (int(result), result.edges) == (KRONECKER_14, 213_100)
    assert max(meter.brought) < 40_000
    assert max(meter.sent) < 4_000
    assert sum(meter.brought) < 150_000
