"""Calls between two waits go to the scheduler as one graph."""

import gc
import pickle
from operator import add
from unittest import mock

import numpy as np
import pytest
from distributed import Client

from dasktc.errors import InputError
from dasktc.executors.dask.call_queue import GRAPH_BYTES
from dasktc.executors.dask.executor import DaskExecutor
from tests.support.processes import local_cluster, until


@pytest.fixture(scope="module")
def cluster():
    with local_cluster(n_workers=2, processes=False) as found:
        yield found


@pytest.fixture
def client(cluster):
    with Client(cluster, set_as_default=False) as found:
        yield found


@pytest.fixture
def graphs(client):
    """Keys of each graph that the client sends."""
    sent, send = [], client._send_to_scheduler

    def watched(message):
        if message["op"] == "update-graph":
            sent.append(message["keys"])
        send(message)

    with mock.patch.object(client, "_send_to_scheduler", watched):
        yield sent


def both(pair, more):
    return [*pair, *more]


def test_calls_until_a_wait_are_one_graph(client, graphs):
    tasks = DaskExecutor(client)
    one, two = tasks.submit("numbers", int, "1"), tasks.submit("numbers", int, "2", prefer=min(client.ncores()))
    three = tasks.submit("sum", add, one, two, urgent=True)
    nested = tasks.submit("list", both, (one, three), [two, [three, one]])
    assert not graphs
    assert tasks.gather([nested, three]) == [[1, 3, 2, [3, 1]], 3]
    assert graphs == [{one.key, two.key, three.key, nested.key}]
    assert tasks.gather([tasks.submit("sum", add, three, three)]) == [6]
    assert len(graphs) == 2


def test_results_that_only_the_graph_takes_are_freed_by_the_scheduler(client, graphs, cluster):
    tasks = DaskExecutor(client)
    numbers = [tasks.submit("numbers", int, str(number)) for number in range(4)]
    keys, total = {handle.key for handle in numbers}, tasks.submit("sum", sum, numbers)
    del numbers
    gc.collect()
    tasks.wait([total])
    assert graphs == [{total.key}]
    until(lambda: not any(cluster.scheduler.tasks[key].who_has for key in keys))
    assert tasks.gather([total]) == [6]


def test_nobody_waits_for_what_nobody_holds(client, graphs):
    tasks = DaskExecutor(client)
    tasks.submit("numbers", int, "not a number")
    assert tasks.gather([tasks.submit("numbers", int, "1")]) == [1]
    assert len(graphs) == 1


def test_large_arguments_are_several_graphs(client, graphs):
    """Dask warns, and warnings are errors here, if a graph has more than 10 MB."""
    tasks, rows = DaskExecutor(client), np.zeros(GRAPH_BYTES // 20, dtype="int64")
    first = tasks.submit("numbers", len, rows)
    sizes = [first, *(tasks.submit("numbers", len, rows + number) for number in range(4))]
    assert tasks.gather([tasks.submit("sum", sum, sizes)]) == [5 * len(rows)]
    assert 2 < len(graphs) < 6


def test_a_handle_is_pickled_as_its_future(client):
    tasks = DaskExecutor(client)
    handle = tasks.submit("numbers", int, "5")
    future = pickle.loads(pickle.dumps(handle))
    future.bind_client(client)
    assert future.key == handle.key
    assert future.result() == 5 == tasks.gather([future])[0]
    assert tasks.gather([tasks.submit("sum", add, future, handle)]) == [10]


def test_what_could_not_be_sent_says_so_every_time(cluster):
    with Client(cluster, set_as_default=False) as client:
        tasks = DaskExecutor(client)
        handle = tasks.submit("numbers", int, "5")
    for _ in range(2):
        with pytest.raises(InputError, match="closed"):
            tasks.gather([handle])
    after = tasks.submit("sum", add, handle, handle)
    for _ in range(2):
        with pytest.raises(InputError, match="closed"):
            tasks.gather([after])


def test_an_input_of_another_queue_that_could_not_be_sent_says_why(client, cluster):
    with Client(cluster, set_as_default=False) as closed:
        handle = DaskExecutor(closed).submit("numbers", int, "5")
    tasks = DaskExecutor(client)
    after = tasks.submit("sum", add, handle, handle)
    for _ in range(2):
        with pytest.raises(InputError, match="closed"):
            tasks.gather([after])
