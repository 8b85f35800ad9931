"""Where a call runs: what `client=` takes, and what `dasktc.cluster` starts or joins."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import futures_of, get_client, wait

import dasktc
from dasktc.api.cluster import Cluster
from dasktc.errors import ClusterError, InputError
from dasktc.executors.place import Place

TRIANGLE = ([0, 1, 2], [1, 2, 0])


@pytest.fixture
def file(cluster, tmp_path):
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"address": cluster.scheduler_address}))
    return path


def places(cluster, client, file):
    host_and_port = cluster.scheduler_address.removeprefix("tcp://")
    return [client, cluster.scheduler_address, host_and_port, file, str(file), Place(scheduler_file=file)]


def test_a_count_takes_a_client_an_address_or_a_file(cluster, client, file):
    for place in places(cluster, client, file):
        result = dasktc.triangle_count(TRIANGLE, place, run=dasktc.RunOptions(distribute="always"))
        assert (int(result), result.workers) == (1, 2)


def test_a_graph_owns_the_connection_that_was_opened_for_it(cluster, client, file):
    for place in (cluster.scheduler_address, file):
        with dasktc.prepare(TRIANGLE, place) as graph:
            opened = graph.client
            assert int(graph.triangle_count()) == 1
        assert opened.status == "closed"
    with dasktc.prepare(TRIANGLE, client) as graph:
        assert graph.client is client
    assert client.status == "running"


@pytest.mark.parametrize("given", ["scheduler", "scheduler_file"])
def test_a_cluster_is_joined(cluster, file, given):
    where = {"scheduler": cluster.scheduler_address, "scheduler_file": file}[given]
    with dasktc.cluster(**{given: where}) as joined:
        assert get_client() is joined
        assert dasktc.triangle_count(TRIANGLE, run=dasktc.RunOptions(distribute="always")).workers == 2
    assert joined.status == "closed"
    made = dasktc.cluster(**{given: where})
    assert isinstance(made, Cluster)
    assert int(dasktc.triangle_count(TRIANGLE, made)) == 1
    assert dasktc.estimate(TRIANGLE, made).value == 1
    assert dasktc.plan(TRIANGLE, made).plan.workers == 2
    made.close()
    with pytest.raises(InputError, match="the client is closed"):
        dasktc.triangle_count(TRIANGLE, made)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"workers": 1}, "workers and scheduler were both given"),
        ({"scheduler_file": "s.json"}, "scheduler and scheduler_file were both given"),
        ({"backend": "cpu"}, "backend='cpu' and scheduler were both given: the workers"),
        ({"protocol": "tcp"}, "protocol='tcp' and scheduler were both given"),
    ],
    ids=str,
)
def test_two_places_of_a_cluster_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        dasktc.cluster(scheduler="tcp://127.0.0.1:1", **given)


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ("", "client='' is no path"),
        (3, "client is a int, a distributed.Client is needed"),
        (b"x", "client is a bytes"),
        (["a", "b"], "client is a list, .*, or columns=... where these are meant"),
    ],
    ids=repr,
)
def test_other_clients_are_refused(client, said):
    with pytest.raises(InputError, match=said):
        dasktc.triangle_count(TRIANGLE, client)
    with pytest.raises(InputError, match="client and threads were both given"):
        dasktc.triangle_count(TRIANGLE, client, threads=2)


@pytest.mark.parametrize("client", ["tcp://127.0.0.1:1", "127.0.0.1:1", "missing.json", Path("missing.json")], ids=str)
def test_options_and_sources_are_refused_before_a_connection(client):
    client = replace(Place.of(client), connect_seconds=0.1)
    with pytest.raises(InputError, match="no-such-file"):
        dasktc.triangle_count("no-such-file.txt", client)
    with pytest.raises(InputError, match="verify=2"):
        dasktc.triangle_count(TRIANGLE, client, verify=2)
    with pytest.raises(ClusterError, match=r"no scheduler answered|names no address"):
        dasktc.triangle_count(TRIANGLE, client)


def test_a_published_graph_is_found_at_any_place(cluster, client, file):
    with dasktc.prepare(TRIANGLE, client) as graph:
        with client.as_current():
            assert not wait(futures_of(graph)).not_done
        client.publish_dataset(triangle=graph)
        try:
            for place in places(cluster, client, file):
                found = dasktc.get_graph("triangle", place)
                assert int(found.triangle_count()) == 1
                if place is not client:
                    opened = found.client
                    found.close()
                    assert opened.status == "closed"
            with pytest.raises(InputError, match="'square' is not published at"):
                dasktc.get_graph("square", cluster.scheduler_address)
        finally:
            client.unpublish_dataset("triangle")
