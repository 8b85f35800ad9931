"""Progress of a run: predicted ends, events on a scheduler, the terminal's bar, and the dashboard's page."""

import asyncio
import html
import io
import itertools
import json
import logging
import re
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from distributed import Client, LocalCluster

import dasktc
from dasktc.api.cluster import Cluster
from dasktc.api.graph import OwnedCluster
from dasktc.api.progress import Bar, View
from dasktc.executors.dask.internals import look
from dasktc.executors.dask.progress import page_of, show_page
from dasktc.executors.dask.run_monitor import RUNS, RunMonitor
from dasktc.executors.dask.run_state import RunState
from dasktc.executors.dask.worker_events import STEPS, with_steps
from dasktc.executors.dask.worker_state import PROCESS, SENT, meter_transfers
from dasktc.executors.progress.tracker import EVENT_SECONDS, STAGES, WORDS, Pace, Stage, Tracker
from dasktc.generate import kronecker
from dasktc.options import Method, RunOptions
from dasktc.planning.cost_model import work_of_triples
from tests.support.keywords import keywords
from tests.support.processes import until
from tests.support.tiers import some


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Heard(View):
    def __init__(self):
        self.events = []

    def __call__(self, *event):
        self.events.append(event[0])


def simulated(work, speeds, died=None):
    """Simulate threads of given speeds; return the end predicted after each task, as (now, end), and the real end.

    `died`: (thread, when) of a thread that stops.
    """
    pace, said, left, waiting = Pace(0.0, len(speeds)), [], sum(work), list(reversed(work))
    running = {thread: [0.0, waiting.pop()] for thread in range(len(speeds))}
    while running:
        ends = {thread: began + size / speeds[thread] for thread, (began, size) in running.items()}
        thread = min(ends, key=ends.__getitem__)
        began, size = running.pop(thread)
        now = ends[thread]
        if died and thread == died[0] and now > died[1]:  # what it ran is run again
            waiting.append(size)
            pace.threads -= 1
            continue
        left -= size
        pace.ended(f"worker {thread}", size, now - began, now)
        said.append((now, now + pace.left(left, now)))
        if waiting:
            running[thread] = [now, waiting.pop()]
    return said, now


@pytest.mark.parametrize(
    ("work", "speeds", "died"),
    [
        ([1.0] * 28, [1.0], None),
        ([1.0] * 64, [1.0] * 4, None),
        ([1.0] * 64, [1.0, 0.5, 0.25, 1.0], None),
        ([1 + (k * 7 % 5) / 3 for k in range(100)], [1.0, 0.9, 1.1], None),
        ([1.0] * 200, [1.0] * 4, (2, 15.0)),
    ],
    ids=["one thread", "equal threads", "unequal threads", "unequal tasks", "a worker dies"],
)
def test_the_end_is_predicted_within_a_fifth(work, speeds, died):
    said, end = simulated(work, speeds, died)
    for now, predicted in said:
        told_of_death = died is None or now > 2 * died[1]
        if 0.1 * end <= now <= 0.9 * end and told_of_death:
            assert abs(predicted - end) <= 0.2 * end, (now, predicted, end)
            if 0.2 * end <= now <= 0.7 * end:
                assert abs(predicted - end) <= 0.2 * (end - now), (now, predicted, end)


def test_nothing_is_predicted_before_a_task_has_ended():
    assert Pace(0.0, 2).left(10.0, 3.0) is None


def test_a_tracker_says_little_and_the_truth():
    clock, heard = Clock(), Heard()
    tracker = Tracker(clock=clock)
    tracker.listen("view", heard)
    tracker("read", 0, 1)
    for step in range(1_000):
        clock.now += 0.01
        tracker.step(step, 1_000)
    assert len(heard.events) <= 2 + 10 / EVENT_SECONDS
    tracker("count", 0, 4)
    tracker("count", 1, 4)
    tracker.close(error="it broke")
    said = [(event["stage"], event["event"]) for event in heard.events if event["event"] != "progress"]
    assert said == [("run", "begun"), ("read", "begun"), ("read", "ended"), ("count", "begun"), ("run", "ended")]
    assert heard.events[-1]["error"] == "it broke"
    assert {event["run"] for event in heard.events} == {tracker.name}


def test_stages_of_a_cluster_end_when_their_tasks_have():
    clock, heard = Clock(), Heard()
    tracker = Tracker(clock=clock)
    tracker.ahead = True
    tracker.listen("view", heard)
    for stage in ("read", "canonical", "orient", "reorder"):
        tracker(stage, 0, 1)

    def ended():
        return [event["stage"] for event in heard.events if event["event"] == "ended"]

    assert ended() == ["read"]
    clock.now = 1.0
    tracker.tasks({"read-rows": (2, 2), "canonical": (1, 4), "orient": (0, 3), "degrees": (0, 1)})
    assert (heard.events[-1]["stage"], heard.events[-1]["share"]) == ("canonical", 0.25)
    tracker.tasks({"canonical": (4, 4), "orient": (2, 3), "degrees": (1, 1)})
    assert ended() == ["read", "canonical"]
    tracker("count", 0, 1)
    assert ended() == ["read", "canonical", "orient", "reorder"]


@pytest.mark.parametrize("tasks", [{}, {"reorder": (0, 5), "plan": (0, 1)}], ids=["no task", "tasks"])
def test_no_stage_of_a_cluster_ends_before_one_that_it_follows(tasks):
    """While workers make edges canonical, the client has submitted reorder and plan, and begins to submit blocks."""
    clock, heard = Clock(), Heard()
    tracker = Tracker(clock=clock)
    tracker.ahead = True
    tracker.listen("view", heard)
    for stage in ("read", "canonical", "orient", "reorder", "plan", "blocks"):
        tracker(stage, 0, 1)

    def ended():
        return [(event["stage"], event["took"]) for event in heard.events if event["event"] == "ended"]

    begun = [event["stage"] for event in heard.events if event["event"] == "begun"]
    assert begun == ["run", "read", "canonical", "orient", "reorder", "plan", "blocks"]
    assert tracker.now()["stage"] == "canonical"
    clock.now = 2.0
    tracker.tasks({"canonical": (1, 4), "orient": (3, 3)} | tasks)
    assert ended() == [("read", 0.0)]
    assert (tracker.now()["stage"], tracker.now()["share"]) == ("canonical", 0.25)
    clock.now = 5.0
    tracker.tasks({"canonical": (4, 4), "orient": (2, 3)} | tasks)
    assert ended()[1:] == [("canonical", 5.0)]
    clock.now = 6.0
    tracker.tasks({"orient": (3, 3), "blocks": (0, 4)} | tasks)
    assert ended()[2:] == ([("orient", 1.0)] if tasks else [("orient", 1.0), ("reorder", 0.0), ("plan", 0.0)])
    clock.now = 8.0
    tracker.tasks({"blocks": (1, 4)} | {name: (total, total) for name, (_, total) in tasks.items()})
    assert ended()[3:] == [("reorder", 2.0 if tasks else 0.0), ("plan", 0.0)]
    assert (tracker.now()["stage"], tracker.now()["share"]) == ("blocks", 0.25)


def test_steps_within_tasks_are_progress():
    tracker = Tracker()
    tracker.listen("view", Heard())
    tracker("read", 0, 2)
    tracker.tasks({"read-rows": (0, 2)}, {"read-rows": [(8, 32), (24, 32)]})
    now = tracker.now()
    assert (now["done"], now["total"], now["share"]) == (0, 2, 0.5)
    tracker.tasks({"read-rows": (1, 2)}, {"read-rows": [(16, 32)]})
    assert tracker.now()["share"] == 0.75


@pytest.mark.parametrize("distribute", ["always", "never"])
def test_the_end_is_unknown_until_a_counting_task_has_ended(client, distribute):
    """Also where the stages run in one call, in another process."""
    heard = Heard()
    how = {"partition": "hash2d", "parts": 2, "distribute": distribute, "kernel": "search"}
    dasktc.triangle_count(kronecker(11), client, progress=heard, **keywords(**how))
    for event in heard.events:
        counting = event["stage"] == "count" and event["done"]
        assert (event["left"] is not None) == bool(counting), event


def test_tasks_report_their_steps_while_they_run(client):
    """Heartbeats carry the steps, and a run reports only its own tasks."""

    def task(steps):
        for _ in with_steps(range(steps)):
            time.sleep(0.1)
        return steps

    own, other = "1f3a9c02", "2b7d5e10"

    def within(token):
        return look(client, token, STEPS)[1]

    others = client.submit(task, 40, key=(f"read-rows-{other}", 0))
    future = client.submit(task, 50, key=(f"read-rows-{own}", 0))
    until(lambda: any(0 < done < total == 50 for done, total in within(own).get("read-rows", [])))
    assert all(total == 50 for of in within(own).values() for _, total in of)
    future.cancel(), others.cancel()
    until(lambda: not within(own) and not within(other))


def test_work_is_planned_by_triple():
    with dasktc.prepare(kronecker(8), method=Method(partition="vertical", parts=2)) as graph:
        work = work_of_triples(graph.plan, graph._context.prepared.sizes)
        assert len(work) == len(list(graph.plan.triples()))
        assert min(work) >= 0 < max(work)


def test_a_stage_that_begins_once_more_is_the_latest():
    """As where a count is made again out of core: the earlier tasks do not end the stage."""
    tracker = Tracker()
    tracker.listen("test", lambda _: None)
    for stage in ("read", "canonical", "read"):
        tracker(stage, 0, 2)
    tracker.tasks({"read": (2, 2)})
    assert tracker.now()["stage"] == "read"


def test_a_bar_asks_while_stages_begin():
    """The bar runs in a thread of its own."""
    tracker, over = Tracker(), threading.Event()
    tracker.listen("test", lambda _: None)

    def begin():
        while not over.is_set():
            for number in range(200):
                tracker._stages[str(number)] = Stage(str(number), 0.0)
            tracker._stages.clear()

    before, thread = sys.getswitchinterval(), threading.Thread(target=begin)
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        for _ in range(2000):
            tracker._open_stages()
    finally:
        sys.setswitchinterval(before)
        over.set()
        thread.join()


@pytest.mark.parametrize("distribute", some(["always", "never"], lambda distribute: distribute == "always"))
def test_a_scheduler_has_the_events_of_a_count(client, distribute):
    before = max((when for when, _ in client.get_events("dasktc")), default=0)  # Dask keeps the last 1,000
    heard = Heard()
    how = {"partition": "hash2d", "parts": 2, "distribute": distribute, "progress": heard}
    result = dasktc.triangle_count(kronecker(8), client, **keywords(**how))
    of_all = [event for event in heard.events if event["stage"] == "run"]
    assert [(event["event"], event.get("triangles")) for event in of_all] == [("begun", None), ("ended", int(result))]
    events = [event for when, event in client.get_events("dasktc") if when > before and "event" in event]
    assert len({event["run"] for event in events}) == 1
    for stage in ("read", "canonical", "orient", "blocks", "count", "run"):
        assert [event["event"] for event in events if event["stage"] == stage and event["event"] != "progress"] == [
            "begun",
            "ended",
        ], stage
    counted = next(event for event in events if (event["stage"], event["event"]) == ("count", "ended"))
    assert (counted["triangles"], counted["probes"], counted["wedges"]) == (
        int(result),
        result.stats.probes,
        result.stats.wedges,
    )
    assert counted["done"] == counted["total"] == result.plan.tasks
    assert sum(of[0] for of in counted["workers"].values()) == result.plan.tasks
    assert events[-1]["triangles"] == int(result)
    json.dumps(events)


def test_a_graph_prepared_in_one_call_goes_on_as_the_same_run(client):
    heard = Heard()
    with dasktc.prepare(kronecker(8), client, run=RunOptions(distribute="never"), progress=heard):
        pass
    assert len({event["run"] for event in heard.events}) == 1
    assert [event["stage"] for event in heard.events if event["event"] == "ended"][-2:] == ["blocks", "run"]


def test_a_resumed_count_begins_where_it_was(tmp_path):
    options = {"partition": "hash2d", "parts": 2, "checkpoint": tmp_path}

    def stop(stage, done, total):
        if (stage, done) == ("count", 4):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dasktc.triangle_count(kronecker(8), progress=stop, **keywords(**options))
    heard = Heard()
    result = dasktc.triangle_count(kronecker(8), progress=heard, **keywords(**options))
    begun = next(event for event in heard.events if (event["stage"], event["event"]) == ("count", "begun"))
    assert (begun["plan"]["resumed"], result.stats.resumed) == (4, 4)
    assert 0.2 < begun["share"] < 0.8
    assert 0 < begun["triangles"] < int(result)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_stages_with_totals_and_rates(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    clock = Clock()
    tracker, view = Tracker(clock=clock), Bar()
    view.begin(tracker)
    tracker.listen("view", view)
    tracker.source_bytes = 8_000_000
    tracker("read", 0, 1)
    clock.now = 2.0
    view._draw(tracker.now())
    clock.now = 4.0
    tracker.step(20, 40)
    view._draw(tracker.now())
    clock.now = 5.0
    tracker.planned(1, (0, 4), 4.0, 0.0, {"probes": 0, "triangles": 0})
    clock.now = 15.0
    tracker.counted("here", 1.0, 10.0, {"probes": 5_000_000_000, "triangles": 1_234_567}, 1)
    tracker("count", 1, 4)
    view._draw(tracker.now())
    view.close()
    shown = terminal.getvalue()
    assert "it/s" not in shown  # tqdm's own bar
    assert "8 MB, 0 B/s" not in shown
    assert "read" in shown
    assert "50 %" in shown
    assert "4 MB of 8 MB" in shown
    assert "count           25 %" in shown
    assert "0:15, 0:30 left, 1/4 tasks, 500 M probes/s, 1,234,567 triangles" in shown


def test_a_bar_stands_still_between_the_end_of_a_run_and_that_of_its_cluster(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    tracker, view = Tracker(), Bar()
    view.begin(tracker)
    tracker.listen("view", view)
    tracker("count", 1, 1)
    tracker.close(triangles=1)
    view._draw(tracker.now())
    view.close()


def test_the_last_of_several_bars_puts_the_handlers_of_logs_back(monkeypatch):
    """Two counts in two threads, of which the one that began first also ends first."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(logging.root, "handlers", users := [logging.StreamHandler(sys.stderr)])
    views = []
    for _ in range(2):
        views.append(Bar())
        tracker = Tracker()
        views[-1].begin(tracker)
        tracker.listen("view", views[-1])
        tracker("count", 1, 2)
    first, last = views
    redirected = logging.root.handlers
    assert redirected != users
    first.close()
    assert logging.root.handlers == redirected
    last.close()
    assert logging.root.handlers == users


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of ipywidgets without a kernel
@pytest.mark.parametrize("share", [0, 1])
def test_a_widget_is_gone_when_the_run_is_over(monkeypatch, capsys, share):
    """Also if the last stage reports no share: tqdm leaves widgets that fall short of their total."""
    pytest.importorskip("ipywidgets")
    import tqdm.auto
    import tqdm.notebook

    monkeypatch.setattr(tqdm.auto, "tqdm", tqdm.notebook.tqdm)
    tracker, view = Tracker(), Bar()
    view.begin(tracker)
    tracker.listen("view", view)
    tracker("verify", share, 1)
    widget = view._bar.container
    tracker.close()
    view.close()
    assert widget.layout.visibility == "hidden"


def test_a_worker_gets_metrics_while_it_sends_a_heartbeat(monkeypatch):
    worker = SimpleNamespace(metrics={"other": None})
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    for _ in worker.metrics.items():  # as a heartbeat does: an error there ends the worker
        meter_transfers()
    assert set(worker.metrics) == {"other", SENT, PROCESS}


def test_the_page_shows_a_run_and_keeps_it():
    """Its document is made and drawn in the scheduler's process, as a browser's session would do."""
    pytest.importorskip("bokeh")
    from dasktc.executors.dask.page import RunPage

    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        scheduler = cluster.scheduler

        assert page_of(client).endswith("/status")
        show_page(client)
        assert page_of(client) == Cluster(client, OwnedCluster(ExitStack())).dashboard_link
        assert page_of(client).endswith("/dasktc")
        monitor = scheduler.plugins["dasktc"]
        page = RunPage(scheduler, monitor)
        page.update()
        assert "No run yet" in page.head.text
        result = dasktc.triangle_count(
            kronecker(8), client, method=Method(partition="hash2d", parts=2), run=RunOptions(distribute="always")
        )
        monitor.runs[next(iter(monitor.runs))].faults.append((0.0, "worker <1> went"))
        page.update()
        assert f"<b>{int(result):,}</b>" in page.head.text
        assert "8 / 8" in page.head.text
        assert "of the planned work counted" in page.head.text
        for stage in ("read", "canonical", "orient", "blocks", "count"):
            assert f">{WORDS[stage].name}</span></td>" in page.stages.text
        assert "under way" not in page.stages.text
        assert "worker &lt;1&gt; went" in page.faults.text
        assert page.workers.data["tasks"] == [8]
        until(lambda: all(PROCESS in worker.metrics for worker in scheduler.workers.values()))
        page.update()
        assert sum(page.memory.data["blocks"]) > 0
        worker = next(iter(scheduler.workers.values()))
        for limit, words in ((0, "Dask sets no limit"), (10**9, "limit (dashed)")):
            with mock.patch.object(worker, "memory_limit", limit):
                page.update()
            assert (words in page.in_memory.title.text, page.limit.data["x"]) == (True, [limit] if limit else [])
        assert set(page.workers.data["worker"]) <= set(page.memory.data["worker"]), "a worker has one name"
        assert page.shares.plot.x_range is page.rates.plot.x_range
        beside = page.root.children[3:5]
        assert [row.styles["flex-wrap"] for row in beside] == ["wrap", "wrap"]  # in a narrow window
        assert all(panel.root.min_width <= 320 for panel in page.panels)  # as wide as a telephone
        (axis,) = page.in_memory.plot.xaxis
        assert "1000" in axis.formatter.code  # sizes as elsewhere: of 1,024 they fit no tick

        def broken(stage, done, total):
            if stage == "count":
                raise ValueError("it <broke>")

        with pytest.raises(ValueError, match="broke"):
            dasktc.triangle_count(kronecker(8), client, run=RunOptions(distribute="always"), progress=broken)
        page.update()
        assert "<b>failed</b>" in page.head.text
        assert "it &lt;broke&gt;" in page.head.text


SEEN = {
    "by all": np.eye(3),
    "without red": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "without green": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "without blue": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}
"""Linear RGB as seen by people without cones of one kind (Machado, Oliveira and Fernandes 2009)."""
LMS = [[0.41222, 0.53633, 0.05145], [0.21190, 0.68070, 0.10740], [0.08830, 0.28172, 0.62998]]
OKLAB = [[0.21045, 0.79362, -0.00407], [1.97800, -2.42859, 0.45059], [0.02590, 0.78277, -0.80868]]


def linear(colours):
    values = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in colours]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("reader", SEEN)
def test_colours_of_stages_can_be_told_apart(reader):
    pytest.importorskip("bokeh")
    from dasktc.executors.dask.page import COLOURS

    assert set(COLOURS) == set(STAGES)
    seen = np.clip(linear(COLOURS.values()) @ np.array(SEEN[reader]).T, 0, 1)
    places = np.cbrt(seen @ np.array(LMS).T) @ np.array(OKLAB).T
    apart = [np.linalg.norm(a - b) for a, b in itertools.combinations(places, 2)]
    assert min(apart) > 0.14
    light, dark = linear(["#ffffff", "#14181e"]) @ [0.2126, 0.7152, 0.0722] + 0.05
    own = linear(COLOURS.values()) @ [0.2126, 0.7152, 0.0722] + 0.05
    assert min(light / own) > 1.6
    assert min(own / dark) > 1.6


def test_the_page_shows_no_stage_as_done_before_one_that_it_follows():
    pytest.importorskip("bokeh")
    from dasktc.executors.dask.page import _stages

    run, clock = RunState("a", 0.0, 0.0), Clock()
    tracker = Tracker(clock=clock)
    tracker.ahead = True
    tracker.listen("monitor", lambda event: run.hear(event, clock.now))
    for stage in ("read", "canonical", "orient", "reorder", "plan", "blocks"):
        tracker(stage, 0, 1)
    clock.now = 2.0
    tracker.tasks({"canonical": (1, 4), "orient": (0, 3)})
    rows = [re.sub(r"(<[^>]*>)+", "|", row).strip("|").split("|") for row in _stages(run).split("<tr>")[2:]]
    assert [(row[0], row[1], html.unescape(row[-1])) for row in rows] == [
        ("read", "100 %", "< 0.1 s"),
        ("deduplicate", "25 %", "under way"),
        *((name, "0 %", "waits") for name in ("direct edges", "order vertices", "plan", "build blocks")),
    ]


def test_a_scheduler_without_bokeh_has_no_page_and_says_so(caplog):
    monitor = RunMonitor()
    with mock.patch.dict(sys.modules, {"dasktc.executors.dask.page": None}), caplog.at_level(logging.WARNING, "dasktc"):
        asyncio.run(monitor.start(SimpleNamespace(plugins={}, workers={})))
    assert "no page /dasktc" in caplog.text
    assert "dasktc[dashboard]" in caplog.text
    assert (monitor.runs, monitor.page) == ({}, False)


def test_events_of_a_worker_are_sent_together_and_none_is_lost(client):
    """A task sends many, from several threads; the event loop is woken a few times, not for each."""

    def send():
        from concurrent.futures import ThreadPoolExecutor

        from distributed import get_worker

        from dasktc.executors.dask.worker_events import outbox_of

        worker, wakes = get_worker(), []
        outbox = outbox_of(worker)
        add_callback = outbox._loop.add_callback
        outbox._loop.add_callback = lambda *call: (wakes.append(call), add_callback(*call))
        try:
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda number: outbox.add(["numbers"], {"number": number}), range(500)))
            outbox.flush()
        finally:
            del outbox._loop.add_callback
        return len(wakes)

    wakes = client.submit(send, pure=False).result()
    until(lambda: len(client.get_events("numbers")) == 500)
    assert sorted(event["number"] for _, event in client.get_events("numbers")) == list(range(500))
    assert wakes < 50


def test_a_scheduler_gets_no_topic_for_a_run(client):
    """It keeps each topic for as long as it lives; those named for clients it clears after these have gone."""

    def topics(dask_scheduler):
        return set(dask_scheduler.get_events())

    heard = [Heard() for _ in range(2)]
    for view in heard:
        dasktc.triangle_count(kronecker(6), client, run=RunOptions(distribute="never"), progress=view)
    (one,), (other,) = ({event["run"] for event in view.events} for view in heard)
    assert one != other
    ours = [name for name in client.run_on_scheduler(topics) if one in name or other in name or "dasktc" in name]
    assert ours == ["dasktc"]


def test_a_monitor_keeps_the_latest_runs():
    monitor, workers = RunMonitor(), {}
    monitor.scheduler = SimpleNamespace(identity=lambda n_workers: {"workers": workers}, workers={})
    for number in range(3 * RUNS):
        workers[f"w{number}"] = {"metrics": {SENT: 2}}
        event = {"run": str(number), "event": "begun", "stage": "run", "seconds": 0.0}
        monitor.log_event("dasktc", event)
        del workers[f"w{number}"]
        monitor.remove_worker(monitor.scheduler, f"w{number}")
    latest = [str(number) for number in range(2 * RUNS, 3 * RUNS)]
    assert (list(monitor.runs), list(monitor._sent_before)) == (latest, latest)
    assert (monitor._all_sent(), monitor._sent) == (2 * 3 * RUNS, {})


def test_a_count_whose_progress_nobody_can_take_ends_with_its_answer(tmp_path):
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 0\n")
    command = [sys.executable, "-m", "dasktc", "count", "edges.txt", "--threads", "1", "--progress", "json", "--quiet"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=full, timeout=60)
    assert (ended.returncode, ended.stdout.split()) == (0, [b"1"])
