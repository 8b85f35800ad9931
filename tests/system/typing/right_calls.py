"""Right calls of the top-level functions: type checkers find nothing wrong."""

from pathlib import Path
from typing import assert_type

import pandas as pd
from distributed import Client, Security

import dasktc

EDGES = ([0, 1, 2], [1, 2, 0])


def say(stage: str, done: int, total: int) -> None:
    print(stage, done, total)


def counts(client: Client, cluster: dasktc.Cluster) -> None:
    assert_type(dasktc.triangle_count(EDGES), dasktc.TriangleCount)
    run = dasktc.RunOptions(work_dir=Path("/tmp"), host_memory="1GB", retries=3, worker_timeout=5, distribute="never")
    dasktc.triangle_count(EDGES, client, backend="cuda", method="trust", memory="4GB", run=run, verify=0.5)
    dasktc.triangle_count("edges.csv", cluster, columns=("from", "to"), ids="text", format="csv", skip=1)
    dasktc.triangle_count(Path("edges.csv"), "tcp://127.0.0.1:8786", memory=1 << 30, checkpoint=Path("kept"))
    dasktc.triangle_count(["a.txt", "b.txt"], Path("scheduler.json"), per_vertex="v.csv", per_edge=Path("e.parquet"))
    dasktc.triangle_count(EDGES, threads=2, report="page.html", force=True, progress=say)


def methods() -> None:
    method = dasktc.Method(kernel="merge", partition="hash2d", parts=2, splits=3, reorder="degree", proxies="tight")
    assert_type(method.parts, int | None)
    assert_type(dasktc.Method.of("trust", parts=2), dasktc.Method)
    dasktc.triangle_count(EDGES, method=dasktc.Method.of("lstc"))
    dasktc.triangle_count(EDGES, method=method, progress=True)


def graphs(client: Client) -> None:
    assert_type(dasktc.prepare(EDGES, client, weight="w", directed=True, duplicates="sum"), dasktc.Graph)
    assert_type(dasktc.open_graph(Path("saved"), method="auto", threads=1), dasktc.Graph)
    assert_type(dasktc.get_graph("roads", client), dasktc.Graph)
    with dasktc.prepare(EDGES) as graph:
        assert_type(graph.client, Client | None)


def others() -> None:
    estimate = dasktc.estimate(EDGES, error=0.1, confidence=0.9)
    assert_type(estimate, dasktc.TriangleEstimate)
    prediction = dasktc.plan(vertices=1000, edges=5000, workers=4, rates=dasktc.Rates(probes=1e9))
    assert_type(prediction, dasktc.Prediction)
    assert_type(prediction.plan.fits, bool)
    assert_type(dasktc.datasets.karate(), pd.DataFrame)
    try:
        dasktc.plan(EDGES, memory="1GB")
    except dasktc.InputError as error:
        refused: ValueError = error
        print(refused)


def clusters(security: Security) -> None:
    with dasktc.cluster(2, "cpu", security=security, protocol="tcp") as client:
        assert_type(client, Client)
    cluster = dasktc.cluster(scheduler_file=Path("scheduler.json"))
    assert_type(cluster.client, Client)
    assert_type(cluster.dashboard_link, str)
    cluster.close()
