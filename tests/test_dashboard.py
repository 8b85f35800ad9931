"""Pages of the dashboard while a count runs: Dask's own, and `/dasktc`, which a count adds to any scheduler."""

from __future__ import annotations

import logging
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from unittest import mock

import dask
import pytest
from distributed import Client, LocalCluster
from processes import patience, until

import dasktc
from dasktc.executors.dask import progress
from dasktc.generate import kronecker

pytest.importorskip("bokeh")
from dasktc.executors.dask.page import GroupGraph, RunPage
from dasktc.executors.dask.run_monitor import RunMonitor
from dasktc.executors.dask.run_state import RunState

SCHEMES = [
    {},
    *(
        pytest.param({"partition": scheme, "parts": parts}, marks=pytest.mark.slow)
        for scheme, parts in (("edges", None), ("hash2d", 2), ("vertical", 2), ("proxy", 2))
    ),
]

OTHERS = ("/hardware", "/gpu", "/individual-gpu-memory", "/individual-gpu-utilization", "/individual-rmm-memory")
"""Pages that show nothing of a run: a benchmark of the workers, which lasts longer than the count, and GPUs."""

LEFT = "'NoneType' object has no attribute 'add_next_tick_callback'"
"""What Dask's page of profiles logs if its reader left before the workers have answered; here nobody stays."""


def answer(link):
    """The HTTP status of a page."""
    try:
        with urllib.request.urlopen(link, timeout=patience(20)) as page:
            return page.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.fixture(scope="module")
def served():
    """A cluster of two workers as users start it, whose scheduler has a dashboard and nothing of ours."""
    where = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    brief = {"distributed.scheduler.dashboard.bokeh-application.unused_session_lifetime_milliseconds": 500}
    with dask.config.set(brief), LocalCluster(**where) as cluster:  # each page asked for is redrawn until its end
        yield cluster


@pytest.fixture
def pages(served):
    """Link of a page by name, and the names of all pages and plots."""
    from distributed.dashboard.scheduler import applications

    root = f"http://127.0.0.1:{served.scheduler.http_server.port}"
    return root, [*(name for name in applications if name not in OTHERS), "/dasktc", "/info/main/workers.html"]


def test_a_count_adds_the_page_and_says_where_once(served, pages, caplog):
    root, _ = pages
    assert answer(f"{root}/dasktc") == 404
    with Client(served, set_as_default=False) as client, caplog.at_level(logging.INFO, "dasktc"):
        for _ in range(2):
            dasktc.triangle_count(kronecker(6), client)
    (said,) = [record.message for record in caplog.records if record.message.startswith("dashboard: ")]
    assert said.endswith("/dasktc")
    assert answer(f"{root}/dasktc") == 200
    with Client(served, set_as_default=False) as client:  # a second one finds the page
        monitor = served.scheduler.plugins["dasktc"]
        dasktc.triangle_count(kronecker(6), client)
    assert served.scheduler.plugins["dasktc"] is monitor
    assert len(monitor.runs) == 3


@pytest.mark.parametrize(("options", "times"), [(["--json"], 1), (["--quiet"], 0)], ids=["--json", "--quiet"])
def test_the_command_prints_the_address_of_the_page(tmp_path, options, times):
    edges = tmp_path / "edges.txt"
    edges.write_text("0 1\n1 2\n2 0\n")
    where = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**where, protocol="tcp") as cluster:
        command = [sys.executable, "-m", "dasktc", "count", edges, "--scheduler", cluster.scheduler_address]
        ran = subprocess.run([*command, *options], capture_output=True, text=True, timeout=patience(60), check=True)
    assert len(re.findall(r"^dashboard: http://\S+/dasktc$", ran.stderr, re.MULTILINE)) == times, ran.stderr
    assert "dashboard" not in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize("options", SCHEMES, ids=lambda options: options.get("partition", "default"))
def test_every_page_answers_during_a_count(served, pages, caplog, options):
    root, names = pages
    failed, seen = {}, set()

    def ask(stage, done, total):
        wanted = names if stage == "count" and done else ["/groups", "/individual-groups", "/dasktc"]
        if stage not in seen or (wanted is names and "all" not in seen):
            seen.update([stage, *(["all"] if wanted is names else [])])
            failed.update({(stage, name): code for name in wanted if (code := answer(root + name)) != 200})

    with Client(served, set_as_default=False) as client, caplog.at_level(logging.ERROR):
        found = dasktc.triangle_count(kronecker(9), client, distribute="always", splits=2, progress=ask, **options)
        keys = {key[0] for key in served.scheduler.tasks}
    assert found.triangles == int(dasktc.triangle_count(kronecker(9), threads=1))
    assert {"blocks", "count", "all"} <= seen
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert (failed, [text for text in said if LEFT not in text and "ProfileTimePlot" not in text]) == ({}, [])
    assert not [key for key in keys if key.startswith("_")]


def test_groups_that_need_each_other_have_places():
    """Names in any order, a circle, and a group that has been forgotten."""
    groups = {name: mock.Mock(dependencies=set()) for name in ("a", "b", "c", "d", "gone")}
    for name, group in groups.items():
        group.name = name
    for name, need in (("a", "b"), ("b", "c"), ("c", "d"), ("d", "c"), ("b", "gone"), ("a", "a")):
        groups[name].dependencies.add(groups[need])
    gone = groups.pop("gone")
    assert gone.name not in groups
    graph = SimpleNamespace(scheduler=SimpleNamespace(task_groups=groups))
    nodes, arrows = GroupGraph.update_layout(graph)
    assert len({(place["x"], place["y"]) for place in nodes.values()}) == 4
    assert nodes["a"]["x"] > nodes["b"]["x"] > nodes["c"]["x"]
    assert {name: arrow["nstart"] for name, arrow in arrows.items()} == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"c"}}


def test_a_run_whose_client_has_gone_is_shown_as_stopped():
    monitor = RunMonitor()
    run = monitor.runs["r"] = RunState("r", 0.0, 1000.0, facts={"client": "Client-1"})
    event = {"stage": "count", "event": "progress", "done": 1, "total": 4, "share": 0.25, "left": 5.0, "seconds": 2.0}
    run.hear(event, 1000.0)
    assert run.left(1001.0) == 4.0
    monitor.remove_client(None, "Client-2")
    assert not run.is_over
    monitor.remove_client(None, "Client-1")
    assert (run.is_over, run.left(1001.0)) == (True, None)
    assert run.seconds(run.gone + 50) == run.seconds(run.gone)
    run.hear(event | {"done": 2}, 1001.0)  # of a call that a worker still runs
    assert run.is_over
    shown = RunPage._head(None, run, 1002.0)
    assert "<b>stopped</b>" in shown
    assert "its client has gone" in shown
    assert "left" not in re.sub("<[^>]*>", " ", shown).split()
    monitor.add_client(None, "Client-1")
    assert not run.is_over


COUNT = """
import sys, time
import dasktc
from distributed import Client
from dasktc.generate import kronecker

def wait(stage, done, total):
    if stage == "count":
        print("counts", flush=True)
        time.sleep(600)

dasktc.triangle_count(kronecker(8), Client(sys.argv[1]), distribute="always", progress=wait)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_a_run_stops_with_its_client(number):
    where = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**where, protocol="tcp") as cluster:
        command = [sys.executable, "-c", COUNT, cluster.scheduler_address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as client:
            assert client.stdout.readline() == "counts\n"
            monitor = cluster.scheduler.plugins["dasktc"]
            until(lambda: any("count" in run.stages for run in monitor.runs.values()))
            page = RunPage(cluster.scheduler, monitor)
            (run,) = monitor.runs.values()
            assert not run.is_over
            client.send_signal(number)
            until(lambda: run.is_over)
            page.update()
            assert "<b>stopped</b>" in page.head.text


def test_two_threads_ask_for_a_client_s_page_once(monkeypatch):
    """Both look for the client at the same time, unless one keeps the other from it."""
    meeting = threading.Barrier(2)

    class Clients(set):
        def __contains__(self, client):
            found = super().__contains__(client)
            with suppress(threading.BrokenBarrierError):
                meeting.wait(0.5)
            return found

    client = mock.Mock(dashboard_link="")
    monkeypatch.setattr(progress, "_SHOWN", Clients())
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(progress.show_page, [client, client]))
    client.register_plugin.assert_called_once()
