"""Pages of the dashboard while a count runs: Dask's own, and `/dasktc`, which a count adds to any scheduler."""

import logging
import re
import runpy
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import dask
import pytest
from distributed import Client, LocalCluster

import dasktc
from dasktc.errors import html_text
from dasktc.executors.dask import progress
from dasktc.generate import kronecker
from tests.support.processes import patience, until

pytest.importorskip("bokeh")
from dasktc.executors.dask.page import PAGE, STYLE, RunPage, _head, _stages
from dasktc.executors.dask.run_monitor import RunMonitor
from dasktc.executors.dask.run_state import RunState
from dasktc.executors.progress.tracker import STAGES, WORDS
from tests.support.keywords import keywords

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
    """A scheme has task groups of its own, which few pages show: those are asked for when there are most groups."""
    root, names = pages
    failed, seen, of_groups = {}, set(), ["/groups", "/individual-groups", "/dasktc"]

    def ask(stage, done, total):
        once_more = stage == "count" and done and "all" not in seen
        if (stage not in seen and (not options or stage == "blocks")) or once_more:
            wanted = names if once_more and not options else of_groups
            seen.update([stage, *(["all"] if once_more else [])])
            failed.update({(stage, name): code for name in wanted if (code := answer(root + name)) != 200})

    with Client(served, set_as_default=False) as client, caplog.at_level(logging.ERROR):
        found = dasktc.triangle_count(
            kronecker(9), client, progress=ask, **keywords(distribute="always", splits=2, **options)
        )
        keys = {key[0] for key in served.scheduler.tasks}
    assert found.triangles == int(dasktc.triangle_count(kronecker(9), threads=1))
    assert {"blocks", "count", "all"} <= seen
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert (failed, [text for text in said if LEFT not in text and "ProfileTimePlot" not in text]) == ({}, [])
    assert not [key for key in keys if key.startswith("_")]


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
    shown = _head(run, 1002.0)
    assert "<b>stopped</b>" in shown
    assert "its client has gone" in shown
    assert "left" not in re.sub("<[^>]*>", " ", shown).split()
    monitor.add_client(None, "Client-1")
    assert not run.is_over


def events_of(run, *events):
    """Let a run hear of stages and of counting tasks."""
    for number, event in enumerate(events):
        usual = {"event": "progress", "done": 0, "total": 1, "share": 0.0, "left": None, "seconds": float(number)}
        run.hear(usual | event, 1000.0 + number)


def test_no_figure_is_empty_and_the_page_says_what_will_be_there(served):
    monitor = SimpleNamespace(runs={}, look=lambda run: None)
    page = RunPage(served.scheduler, monitor)
    page.update()
    assert not any(panel.root.visible for panel in page.panels)
    assert "No run yet" in page.head.text
    assert served.scheduler.address in page.head.text
    assert not page.chosen.visible  # there is nothing to choose from
    run = monitor.runs["r"] = RunState("r", 1000.0, 1000.0, facts={"asked": "count", "source": "a.csv"})
    events_of(run, {"stage": "read"})
    page.update()
    drawn = [panel.root.visible for panel in page.panels]
    assert drawn == [False, False, False, True]  # the memory of workers is known
    assert "When counting begins" in page.waits.text
    assert "–" not in re.sub("<style>.*?</style>", "", page.head.text, flags=re.DOTALL)  # no number that is not known
    counts = [
        {"stage": "count", "share": n / 4, "probes": 10**6 * n, "triangles": n, "done": n, "total": 4} for n in range(4)
    ]
    events_of(run, counts[0])
    page.update()
    assert "After 1 s of counting" in page.waits.text
    workers = {name: [1, 10**6, 1, 0.5] for name in ("a:1", "a:2")}
    events_of(run, *counts[1:3], counts[3] | {"workers": workers})
    page.update()
    assert all(panel.root.visible for panel in page.panels)
    assert page.waits.text == ""
    run.ended = {"seconds": 4.0, "triangles": 3}
    run.points = run.points[:1]
    page.update()
    assert "Counting took less than 1 s" in page.waits.text


def test_every_stage_has_plain_words_and_explains_itself():
    assert set(STAGES) <= set(WORDS)
    names = [words.name for words in WORDS.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Z][^.]*\.", words.help) for words in WORDS.values())  # one sentence
    run = RunState("r", 1000.0, 1000.0)
    events_of(run, *({"stage": stage} for stage in WORDS))
    rows = _stages(run)
    for stage, words in WORDS.items():
        assert f'data-help="{html_text(words.help)}">{words.name}</span>' in rows
        assert stage in names or f">{stage}<" not in rows


def test_words_explain_themselves_and_the_page_says_what_it_shows():
    run = RunState("r", 1000.0, 1000.0, facts={"asked": "count", "source": "<b>.csv"})
    plan = {"vertices": 3, "edges": 3, "partition": "whole", "parts": 1, "splits": 2, "kernel": "hub", "backend": "cpu",
            "bytes_total": 10, "bytes_per_task": 5, "memory": 100, "resumed": 0}  # fmt: skip
    events_of(run, {"stage": "count", "plan": plan, "share": 0.5, "triangles": 7})
    shown = _head(run, 1001.0)
    assert "<h1>count of &lt;b&gt;.csv" in shown
    assert "This page follows one run of dasktc" in shown.partition("</h1>")[2]
    assert all(re.search(f'data-help="[^"]+">{word}<', shown) for word in ("stage", "counting tasks", "n = 1, m = 2"))


def test_the_page_has_colours_for_both_themes():
    page = RunPage(SimpleNamespace(workers={}, address="tcp://here:1"), SimpleNamespace(runs={}))
    theme = page.theme()
    assert len(theme.args["axes"]) == len(theme.args["grids"]) == 2 * len(page.panels)
    assert "prefers-color-scheme: dark" in theme.code
    declared = re.findall(r"(--tc-\w+):", PAGE)
    assert set(re.findall(r"var\((--tc-\w+)\)", STYLE + PAGE)) <= {
        name for name in declared if declared.count(name) == 2
    }


def test_the_picture_of_a_run_is_small():
    picture = (Path(__file__).parents[3] / ".github" / "run.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) <= 150_000


@pytest.mark.slow
def test_the_command_that_takes_the_picture(tmp_path, monkeypatch):
    """With a stand-in for the browser, which asks for the page and takes no picture."""
    asked, out = [], tmp_path / "run.png"
    page = SimpleNamespace(
        goto=lambda link: asked.append(answer(link)),
        wait_for_timeout=lambda milliseconds: None,
        screenshot=lambda path, full_page: path.write_bytes(b"picture"),
    )
    browser = SimpleNamespace(new_page=lambda **_: page, close=lambda: None)
    player = SimpleNamespace(chromium=SimpleNamespace(launch=lambda **_: browser))
    library = SimpleNamespace(sync_playwright=lambda: nullcontext(player))
    monkeypatch.setitem(sys.modules, "playwright.sync_api", library)
    monkeypatch.setattr(sys, "argv", ["picture.py", "--scale", "8", "-o", str(out)])
    runpy.run_path(str(Path(__file__).parents[3] / ".github" / "picture.py"), run_name="__main__")
    assert (asked, out.read_bytes()) == ([200], b"picture")


COUNT = """
import sys, time
import dasktc
from distributed import Client
from dasktc.generate import kronecker

def wait(stage, done, total):
    if stage == "count":
        print("counts", flush=True)
        time.sleep(600)

dasktc.triangle_count(kronecker(8), Client(sys.argv[1]), run=dasktc.RunOptions(distribute="always"), progress=wait)
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
