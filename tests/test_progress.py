"""What a run says of its progress: predicted ends, events on a scheduler, the terminal, and the dashboard's page."""

import io
import json
import logging
import sys
import time
from types import SimpleNamespace
from unittest import mock

import pytest
from distributed import Client, LocalCluster
from processes import until

import dasktc
from dasktc.api.progress import View, bar
from dasktc.executors.dask.progress import install, page_of
from dasktc.executors.dask.run_monitor import RUNS, RunMonitor, forget_spans
from dasktc.executors.dask.worker_state import RECEIVED, meter_transfers
from dasktc.executors.progress import EVENT_SECONDS, Pace, Tracker
from dasktc.generate import kronecker
from dasktc.planning.cost_model import in_words, work_of_triples


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
    """Predicted ends of tasks that threads of such speeds work off, after each task, as (now, end) pairs; and the end.

    `died`: (thread, when).
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


def test_work_is_planned_by_triple():
    with dasktc.prepare(kronecker(8), partition="vertical", parts=2) as graph:
        work = work_of_triples(graph.plan, graph.prepared.sizes)
        assert len(work) == len(list(graph.plan.triples()))
        assert min(work) >= 0 < max(work)


@pytest.mark.parametrize("distribute", ["always", "never"])
def test_a_scheduler_has_the_events_of_a_count(client, distribute):
    before, heard = len(client.get_events("dasktc")), Heard()
    how = {"partition": "hash2d", "parts": 2, "distribute": distribute, "progress": heard}
    result = dasktc.triangle_count(kronecker(8), client, **how)
    of_all = [event for event in heard.events if event["stage"] == "run"]
    assert [(event["event"], event.get("triangles")) for event in of_all] == [("begun", None), ("ended", int(result))]
    events = [event for _, event in client.get_events("dasktc")][before:]
    events = [event for event in events if "event" in event]
    assert len({event["run"] for event in events}) == 1
    for stage in ("read", "canonical", "orient", "blocks", "count", "run"):
        assert [event["event"] for event in events if event["stage"] == stage and event["event"] != "progress"] == [
            "begun",
            "ended",
        ], stage
    counted = next(event for event in events if (event["stage"], event["event"]) == ("count", "ended"))
    assert (counted["triangles"], counted["probes"], counted["wedges"]) == (int(result), result.probes, result.wedges)
    assert counted["done"] == counted["total"] == result.plan.tasks
    assert sum(of[0] for of in counted["workers"].values()) == result.plan.tasks
    assert events[-1]["triangles"] == int(result)
    json.dumps(events)


def test_a_graph_prepared_in_one_call_goes_on_as_the_same_run(client):
    heard = Heard()
    with dasktc.prepare(kronecker(8), client, distribute="never", progress=heard):
        pass
    assert len({event["run"] for event in heard.events}) == 1
    assert [event["stage"] for event in heard.events if event["event"] == "ended"][-2:] == ["blocks", "run"]


def test_a_resumed_count_begins_where_it_was(tmp_path):
    options = {"partition": "hash2d", "parts": 2, "checkpoint": tmp_path}

    def stop(stage, done, total):
        if (stage, done) == ("count", 4):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dasktc.triangle_count(kronecker(8), progress=stop, **options)
    heard = Heard()
    result = dasktc.triangle_count(kronecker(8), progress=heard, **options)
    begun = next(event for event in heard.events if (event["stage"], event["event"]) == ("count", "begun"))
    assert (begun["plan"]["resumed"], result.resumed) == (4, 4)
    assert 0.2 < begun["share"] < 0.8
    assert 0 < begun["triangles"] < int(result)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_stages_with_totals_and_rates(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    clock = Clock()
    tracker, view = Tracker(clock=clock), bar()
    view.begin(tracker)
    tracker.listen("view", view)
    tracker.source_bytes = 8_000_000
    tracker("read", 0, 1)
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
    assert "read" in shown
    assert "50 %" in shown
    assert "4 MB of 8 MB" in shown
    assert "count      25 %" in shown
    assert "0:15, 0:30 left, 1/4 tasks, 500 M probes/s, 1,234,567 triangles" in shown


def test_a_bar_stands_still_between_the_end_of_a_run_and_that_of_its_cluster(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    tracker, view = Tracker(), bar()
    view.begin(tracker)
    tracker.listen("view", view)
    tracker("count", 1, 1)
    tracker.close(triangles=1)
    view._draw(tracker.now())
    view.close()


def test_a_worker_counts_what_it_receives_while_it_sends_a_heartbeat(monkeypatch):
    worker = SimpleNamespace(metrics={"other": None})
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    for _ in worker.metrics.items():  # as a heartbeat does: an error there ends the worker
        meter_transfers()
    assert set(worker.metrics) == {"other", RECEIVED}


def test_the_page_shows_a_run_and_keeps_it():
    """Its document is made and drawn in the scheduler's process as a browser's session would have it."""
    pytest.importorskip("bokeh")
    from dasktc.executors.dask.page import RunPage

    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        scheduler = cluster.scheduler

        async def add():
            return install(scheduler)

        assert page_of(client).endswith("/status")
        assert cluster.sync(add)
        assert page_of(client).endswith("/dasktc")
        monitor = scheduler.plugins["dasktc"]
        page = RunPage(scheduler, monitor)
        page.update()
        assert "No run yet" in page.head.text
        result = dasktc.triangle_count(kronecker(8), client, partition="hash2d", parts=2, distribute="always")
        monitor.runs[next(iter(monitor.runs))].faults.append((0.0, "worker <1> went"))
        page.update()
        assert f"<b>{int(result):,}</b>" in page.head.text
        assert "8 / 8" in page.head.text
        assert "of the planned work counted" in page.head.text
        for stage in ("read", "canonical", "orient", "blocks", "count"):
            assert f"<td>{stage}</td>" in page.stages.text
        assert "under way" not in page.stages.text
        assert "worker &lt;1&gt; went" in page.faults.text
        assert page.workers.data["tasks"] == [8]
        assert sum(page.memory.data["blocks"]) > 0

        def broken(stage, done, total):
            if stage == "count":
                raise ValueError("it <broke>")

        with pytest.raises(ValueError, match="broke"):
            dasktc.triangle_count(kronecker(8), client, distribute="always", progress=broken)
        page.update()
        assert "<b>failed</b>" in page.head.text
        assert "it &lt;broke&gt;" in page.head.text


def test_a_scheduler_without_bokeh_has_no_page_and_says_so(caplog):
    scheduler = SimpleNamespace(plugins={}, workers={})
    scheduler.add_plugin = lambda plugin, name: scheduler.plugins.update({name: plugin})
    with mock.patch.dict(sys.modules, {"dasktc.executors.dask.page": None}), caplog.at_level(logging.WARNING, "dasktc"):
        assert install(scheduler) is False
    assert "no page /dasktc" in caplog.text
    assert "dasktc[dashboard]" in caplog.text
    assert scheduler.plugins["dasktc"].runs == {}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "less than a second"),
        (1.2, "about 1 second"),
        (100, "about 100 seconds"),
        (170, "about 3 minutes"),
        (7200, "about 2 hours"),
        (200_000, "about 2 days"),
    ],
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words


def test_events_of_a_worker_are_sent_together_and_none_is_lost(client):
    """Of a task that sends many, from several threads; the loop is asked to send a few times, not for each."""

    def send():
        from concurrent.futures import ThreadPoolExecutor

        from distributed import get_worker

        from dasktc.executors.worker_events import outbox_of

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


@pytest.mark.slow
def test_a_scheduler_keeps_nothing_of_runs_long_over(client):
    """Neither spans of Dask's, nor topics that nobody has asked for; what still has tasks stays."""

    def spans(dask_scheduler, forget=None):
        if forget:
            forget(dask_scheduler, time.time() - 2)
        return len(dask_scheduler.extensions["spans"].spans)

    def topics(dask_scheduler):
        return [name for name in dask_scheduler._broker._topics if name.startswith("dasktc-")]

    before = client.run_on_scheduler(topics)
    held = client.submit(lambda: 7, pure=False)
    with dasktc.prepare(kronecker(8), client, distribute="always", partition="hash2d", parts=2) as graph:
        for _ in range(5):
            assert int(dasktc.triangle_count(kronecker(8), client)) == int(graph.triangle_count())
        there = client.run_on_scheduler(spans)
        time.sleep(5)  # workers have said what they know of them
        assert client.run_on_scheduler(spans, forget=forget_spans) < there
        assert int(graph.triangle_count()) == int(dasktc.triangle_count(kronecker(8), client, distribute="always"))
    assert held.result() == 7
    assert client.run_on_scheduler(topics) == before


def test_a_monitor_keeps_the_latest_runs():
    monitor = RunMonitor(SimpleNamespace(workers={}, _broker=SimpleNamespace(_topics={}), worker_ttl=None))
    for number in range(3 * RUNS):
        monitor.scheduler._broker._topics[f"dasktc-{number}"] = "events"
        monitor.scheduler.workers = {f"w{number}": SimpleNamespace(metrics={RECEIVED: 2}, has_what={})}
        event = {"run": str(number), "event": "begun", "stage": "run", "seconds": 0.0}
        monitor.log_event("dasktc", event)
        monitor.remove_worker(monitor.scheduler, f"w{number}")
    latest = [str(number) for number in range(2 * RUNS, 3 * RUNS)]
    assert (list(monitor.runs), list(monitor._before)) == (latest, latest)
    assert list(monitor.scheduler._broker._topics) == [f"dasktc-{number}" for number in latest]
    monitor.scheduler.workers = {}
    assert (monitor._all_received(), monitor._received) == (2 * 3 * RUNS, {})
