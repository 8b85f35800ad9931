"""Published graphs, which other clients of a cluster ask for by name, and copies of graphs."""

import asyncio
import copy
import pickle
from unittest import mock

import pytest
from distributed import Client, futures_of, wait

import dasktc
from dasktc.errors import InputError
from dasktc.options import RunOptions
from tests.support.keywords import keywords
from tests.support.oracle import complete
from tests.support.processes import local_cluster, until
from tests.support.slow_pipeline import skewed_edges, source_of

EDGES = skewed_edges(120, 900, 1)


@pytest.fixture(scope="module")
def wanted():
    return dasktc.prepare(source_of(EDGES)).triangles()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"partition": "hash2d", "parts": 2}, {"reorder": "collective"}])
def test_another_client_asks_a_published_graph(client, wanted, options):
    graph = dasktc.prepare(source_of(EDGES), client, **keywords(**options))
    count = int(graph.triangle_count())
    with client.as_current():
        assert wait(futures_of(graph)).not_done == set()
    client.publish_dataset(roads=graph)
    try:
        del graph
        with Client(client.scheduler.address, set_as_default=False) as other:
            assert len(futures_of(other.get_dataset("roads"))) > 2
            graph = dasktc.get_graph("roads", other)
            assert graph.client is other
            assert graph.triangle_count() == count
            assert graph.triangles().equals(wanted)
            assert len(graph.edge_support().compute(scheduler=other)) == graph.edges
            assert repr(graph).startswith(f"vertices   {graph.vertices}\n")
    finally:
        client.unpublish_dataset("roads")


def test_a_graph_may_be_published_at_once(client):
    """Dask keeps only those of its results of which the scheduler knows before."""
    for made in (
        lambda: dasktc.prepare(source_of(complete(9)), client),
        lambda: dasktc.prepare(source_of(complete(8)), client).update(add=complete(9)).graph,
    ):
        client.publish_dataset(roads=made())
        try:
            assert dasktc.get_graph("roads", client).triangles().to_list() == [28] * 9
        finally:
            client.unpublish_dataset("roads")


def test_closing_a_found_graph_leaves_the_published_one():
    """Workers in this process: Dask does not pickle what is published, and hands out the object itself."""
    with local_cluster(n_workers=1, processes=False) as inside, Client(inside, set_as_default=False) as client:
        graph = dasktc.prepare(source_of(complete(9)), client)
        client.publish_dataset(roads=graph)
        for place in (client, client, inside.scheduler_address):
            with dasktc.get_graph("roads", place) as found:
                assert found.triangle_count() == 84
        found = dasktc.get_graph("roads", client)
        graph.close()
        assert found.triangle_count() == 84


def test_a_pickled_graph_refers_to_its_cluster(client, wanted):
    graph = dasktc.prepare(source_of(EDGES), client)
    alone = pickle.loads(pickle.dumps(graph))
    with pytest.raises(InputError, match="no client is connected to the cluster that holds this graph"):
        alone.triangles()
    with client.as_current():
        same = pickle.loads(pickle.dumps(graph))
        assert {f.key for f in futures_of(same)} == {f.key for f in futures_of(graph)}
        del graph
        assert same.triangles().equals(wanted)


def test_a_graph_unpickled_in_a_notebook_holds_its_blocks(client, wanted):
    """Code of a notebook runs in an event loop of the main thread."""

    async def cell():
        graph = dasktc.prepare(source_of(EDGES), client)
        with client.as_current():
            same = pickle.loads(pickle.dumps(graph))
        keys = {future.key for future in futures_of(graph)}
        del graph
        until(lambda: not any(client.refcount[key] > 1 for key in keys))
        return same.triangles()

    assert asyncio.run(cell()).equals(wanted)


def test_a_graph_of_one_process_is_copied(wanted):
    graph = dasktc.prepare(source_of(EDGES))
    for same in (copy.copy(graph), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert same.triangles().equals(wanted)
    assert futures_of(graph) == []


def test_what_cannot_be_copied_is_refused(tmp_path):
    graph = dasktc.prepare(source_of(complete(9)), memory="64MB", run=RunOptions(work_dir=tmp_path))
    with pytest.raises(InputError, match=r"keeps blocks in files .* it cannot be pickled; prepare it"):
        pickle.dumps(graph)
    assert copy.deepcopy(graph).triangle_count() == 84
    assert graph.triangle_count() == 84
    graph.close()
    with pytest.raises(InputError, match="closed"):
        pickle.dumps(graph)


def test_names_that_are_no_graphs(client):
    client.publish_dataset(number=7)
    try:
        with pytest.raises(InputError, match=r"'number' is of type int, no graph, at tcp.* which has number"):
            dasktc.get_graph("number", client)
        with pytest.raises(InputError, match="'roads' is not published"):
            dasktc.get_graph("roads", client)
    finally:
        client.unpublish_dataset("number")


def test_an_asynchronous_client_is_refused_in_one_line():
    asynchronous = mock.Mock(spec=["submit", "scheduler_info", "asynchronous", "status"], asynchronous=True)
    with pytest.raises(InputError, match=r"the client is asynchronous: .* pass Client\(address\)"):
        dasktc.get_graph("roads", asynchronous)
