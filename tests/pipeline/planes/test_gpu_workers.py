"""Stages on workers with a GPU each, emulated in this process: few tasks, and the same graph as on one GPU."""

from __future__ import annotations

import pytest
from distributed import Client, LocalCluster

from dasktc import generate
from dasktc.api.count import build
from dasktc.executors.base import for_backend
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.options import Options
from dasktc.pipeline.planes.choice import choose
from tests.pipeline.planes.test_workers import Finished
from tests.support import oracle
from tests.support.slow_pipeline import by_degree, random_edges, skewed_edges, source_of, tuned
from tests.support.tiers import some

EDGES = [*skewed_edges(300, 4_000, 5), *random_edges(300, 500, 6), (7, 7)] + [(3, 8)] * 60
PARTS = 5
KRONECKER_9 = 28_567
"""Triangles of `generate.kronecker(9)`."""


@pytest.fixture(params=some([2, 4], lambda number: number == 2), ids="{} workers".format)
def workers(request, emulated):
    """So many workers with one thread each; small graphs have as many partitions, and pieces of frames travel."""
    with (
        LocalCluster(
            n_workers=request.param, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        tuned(one_partition=1, task_bytes={"tcp": 0}, cut_rows={"cuda": 100}),
    ):
        yield cluster, client


def named(edges, kind):
    """The edges with ids of another kind, and the kind that a source says."""
    name = {"range": lambda v: 3 * v, "sparse": lambda v: v * 10**15 - 2**62, "text": lambda v: f"v{v:03}"}[kind]
    return [(name(u), name(v)) for u, v in edges], "text" if kind == "text" else "int"


@pytest.mark.parametrize("kind", some(["range", "sparse", "text"], lambda kind: kind == "sparse"))
def test_edges_of_a_single_block_are_sent_once(workers, kind):
    """Edges of integers; those of text, of which no sample is taken, are sent by dense id first."""
    cluster, client = workers
    number, tasks, (edges, ids) = len(cluster.workers), DaskExecutor(client), named(EDGES, kind)
    plain = build(LocalExecutor(), source_of(edges, ids), Options(backend="cuda"))
    finished = Finished(cluster.scheduler)
    with build(tasks, source_of(edges, ids, parts=PARTS), Options(backend="cuda")) as graph:
        assert graph.plan.partition == "whole"
        once = {"canonical": PARTS * (number - 1), "orient-plan": 1}
        assert (+finished.urgent == once) == (kind != "text"), "pieces, for which other workers wait, and the plan"
        assert (finished.tasks["blocks"] == 2 * number) == (kind != "text"), "a slab and a copy of the block a worker"
        (block,), ((there,),) = plain._context.blocks.values(), [tasks.gather(graph._context.blocks.values())]
        assert there.offsets.tolist() == block.offsets.tolist()
        assert there.columns.tolist() == block.columns.tolist()
        result = graph.triangle_count(verify=1.0)
        assert int(result) == oracle.triangles(edges)
        assert result.duplicates_dropped == sum(u != v for u, v in edges) - len(oracle.clean(edges))
        assert graph.triangles(frame="pandas").to_dict() == oracle.triangles_per_vertex(edges)


def test_a_worker_has_several_frames_where_one_would_be_too_long(workers):
    """cuDF counts rows in 32 bits; a Kronecker graph of scale 28 has 2**32 edges."""
    _, client = workers
    with tuned(one_partition=1, task_bytes={"tcp": 0}, frame_rows=999):
        plane = choose(for_backend(DaskExecutor(client), "cuda"), Options(backend="cuda"))
        for source in (generate.kronecker(9), generate.kronecker(9, parts=12)):
            frames = [frame for group in plane.executor.gather(plane.read(source).frames) for frame in group]
            assert sum(map(len, frames)) == 16 << 9
            assert max(map(len, frames)) <= 999
            assert int(build(DaskExecutor(client), source, Options(backend="cuda")).triangle_count()) == KRONECKER_9


@pytest.mark.parametrize(
    "options",
    some([{"partition": "hash2d", "parts": 2}, {"reorder": "collective"}, {}], lambda options: "parts" in options),
    ids=str,
)
def test_other_plans_and_orders(workers, options):
    _, client = workers
    plain = build(LocalExecutor(), source_of(EDGES), Options(backend="cuda", **options))
    with (
        by_degree() if not options else tuned(one_partition=1, task_bytes={"tcp": 0}),
        build(DaskExecutor(client), source_of(EDGES, parts=PARTS), Options(backend="cuda", **options)) as graph,
    ):
        assert int(graph.triangle_count(verify=1.0)) == oracle.triangles(EDGES)
        assert graph.triangles(frame="pandas").to_dict() == plain.triangles(frame="pandas").to_dict()
