"""Plans for a cluster."""

import dasktc
from tests.executors.test_connect import TRIANGLE
from tests.support.slow_pipeline import random_edges, source_of


def test_the_plan_is_for_the_cluster(client):
    plan = dasktc.prepare(source_of(random_edges(40, 200, 1)), client).plan
    assert (plan.workers, plan.splits) == (2, 8)
    assert dasktc.prepare(TRIANGLE, client).plan.splits == 3  # it has no more rows
    limits = [worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
    assert plan.memory <= min(limits)
    assert dasktc.prepare(TRIANGLE, client, memory="3MB").plan.memory == 3_000_000
