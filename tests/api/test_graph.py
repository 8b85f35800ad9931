"""Graphs that are closed or dropped, and the workers that were started for them."""

import gc
import subprocess
import sys
import threading

import pandas as pd
import pytest
from distributed import Client

import dasktc
from dasktc.errors import InputError
from dasktc.options import Method
from tests.executors.test_connect import TRIANGLE
from tests.support.keywords import keywords
from tests.support.processes import alive, patience, until
from tests.support.slow_pipeline import skewed_edges, source_of

ASKED = {
    "triangle_count": lambda graph: graph.triangle_count(),
    "with a kernel": lambda graph: graph.triangle_count(kernel="merge"),
    "triangles": lambda graph: graph.triangles(),
    "edge_support": lambda graph: graph.edge_support(),
    "clustering": lambda graph: graph.clustering(),
    "transitivity": lambda graph: graph.transitivity(),
    "average_clustering": lambda graph: graph.average_clustering(),
    "triangle_list": lambda graph: graph.triangle_list(),
}


@pytest.mark.parametrize("place", ["here", "in files", "a client", "a scheduler"])
def test_a_closed_graph_refuses_and_ends_what_was_opened_for_it(threads, inner, tmp_path, place):
    """A client that the caller passed stays open."""
    where = {
        "here": {},
        "in files": {"memory": "1GB", "work_dir": tmp_path},
        "a client": {"client": inner},
        "a scheduler": {"scheduler": threads.scheduler_address},
    }
    with dasktc.prepare(TRIANGLE, **keywords(**where[place])) as graph:
        client = graph.client
        assert (int(graph.triangle_count()), client is inner) == (1, place == "a client")
        assert (client is None) == (place in ("here", "in files"))
    if client is not None:
        assert client.status == ("running" if place == "a client" else "closed")
    assert list(tmp_path.iterdir()) == []
    until(lambda: not threads.scheduler.tasks)
    graph.close()
    for ask in ASKED.values():
        with pytest.raises(InputError, match=r"^this graph was closed: .*; prepare it again$"):
            ask(graph)


@pytest.mark.parametrize("options", [{}, {"partition": "proxy", "parts": 2}], ids=str)
def test_a_closed_graph_leaves_no_results_to_the_garbage_collector(threads, inner, options):
    """Its results would stay on the workers until Python collects cycles, which an idle client may never do."""
    gc.collect()  # what other tests left
    gc.disable()
    try:
        with dasktc.prepare(TRIANGLE, inner, method=Method(**options)) as graph:
            assert int(graph.triangle_count()) == 1
        until(lambda: not threads.scheduler.tasks, 5)
    finally:
        gc.enable()


def test_a_graph_that_nobody_holds_ends_what_was_opened_for_it(threads):
    graph = dasktc.prepare(TRIANGLE, client=threads.scheduler_address)
    client, other = graph.client, dasktc.prepare(TRIANGLE, client=threads.scheduler_address)
    assert int(graph.triangle_count(kernel="merge")) == 1
    assert client.status == "running"
    del graph
    until(lambda: client.status == "closed")
    assert int(other.triangle_count()) == 1
    other.close()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")  # Dask's, of the loop that was stopped
@pytest.mark.filterwarnings("ignore:Exception ignored in. <coroutine")
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"partition": "hash2d", "parts": 3}], ids=str)
def test_a_client_that_closes_during_a_count_is_said_in_one_line(threads, options):
    """It closes at every fifth progress report, from another thread."""
    source, ended = source_of(skewed_edges(60, 400, 5), parts=3), []
    for moment in range(0, 100, 5):
        client = Client(threads.scheduler_address, set_as_default=False)
        told = iter(range(1000))
        closing = threading.Timer(0.002 * moment, client.close)
        closing.start()
        try:
            dasktc.triangle_count(
                source,
                client,
                progress=lambda *_, c=client, t=told, m=moment: next(t) == m and c.close(),
                **keywords(**options),
            )
            ended.append("counted")
        except InputError as error:
            ended.append(str(error)[:20])
        closing.join()
        client.close()
    assert {*ended} - {"counted"} == {"the client is closed"}


def test_what_was_opened_for_a_graph_that_could_not_be_prepared_is_closed(threads):
    with pytest.raises(InputError, match="fraction"):
        dasktc.prepare(pd.DataFrame({"a": [0.5], "b": [1.0]}), client=threads.scheduler_address)
    until(lambda: set(threads.scheduler.clients) == {"fire-and-forget"})


OWNED = """
import os
import dasktc
from dasktc.executors.place import Place

if __name__ == "__main__":
    with dasktc.prepare(([0, 1, 2], [1, 2, 0]), Place(workers=1)) as graph:
        print(int(graph.triangle_count()), *graph.client.run(os.getpid).values())
    left = dasktc.prepare(([0, 1, 2], [1, 2, 0]), Place(workers=1))
    print(int(left.triangle_count()), *left.client.run(os.getpid).values())
"""


@pytest.mark.slow
def test_workers_of_a_prepared_graph_end_with_it_or_with_the_process(tmp_path):
    """This includes a graph that nobody closed: nothing is printed, and no process is left."""
    script = tmp_path / "script.py"
    script.write_text(OWNED)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-W", "error", script]
    running = subprocess.Popen(command, text=True, start_new_session=True, **pipes)
    out, err = running.communicate(timeout=patience(200))
    assert (running.returncode, err, [line.split()[0] for line in out.splitlines()]) == (0, "", ["1", "1"])
    until(lambda: not any(alive(int(line.split()[1])) for line in out.splitlines()))
    until(lambda: not subprocess.run(["pgrep", "-s", str(running.pid)], capture_output=True).stdout)
