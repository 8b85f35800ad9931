"""The dashboard page `/dasktc`, drawn with Bokeh from the runs that a `RunMonitor` keeps; imported by schedulers only.

There is one document per browser. Its figures have a fixed height and the window's width; text is HTML, so that it
wraps.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import (
    ColumnDataSource,
    CustomJSTickFormatter,
    Div,
    FixedTicker,
    HoverTool,
    NumeralTickFormatter,
    Select,
)
from bokeh.plotting import figure
from distributed.dashboard.components import add_periodic_callback
from distributed.dashboard.components.scheduler import BOKEH_THEME, TaskGroupGraph, env
from distributed.dashboard.core import BokehApplication
from distributed.dashboard.scheduler import template_variables

from dasktc.errors import html_text
from dasktc.executors.dask.run_state import Runs, RunState
from dasktc.executors.dask.worker_state import PROCESS
from dasktc.executors.progress import clock_time
from dasktc.options import format_size

__all__ = ["RunPage", "add_page"]

PATH = "dasktc"
GROUPS = "/groups", "/individual-groups"
"""Dask's pages of task groups."""
REFRESH = 1000
"""Milliseconds between redraws."""
SHOWN = 40
"""Most workers in a figure; if there are more, the slowest are shown."""
NARROW = 440
"""Pixels that a figure's title needs; in a window less than twice as wide, figures stand below each other."""
FAULTS = 8
COLOURS = {
    "read": "#e17800",
    "canonical": "#781e3c",
    "orient": "#ffb478",
    "reorder": "#875a87",
    "plan": "#b4c3ff",
    "blocks": "#5a00b4",
    "count": "#695aff",
    "sum": "#a596a5",
    "verify": "#b43c0f",
}
"""Colours of stages: any two differ by at least 0.14 in OKLab, also for colour-blind readers. Dask's own pages colour
keys by a hash, which gives two stages the same colour and others neighbouring ones of a scale."""
OTHER = "#6b6b6b"
"""Colour of any other stage."""
SIZE = """
const power = Math.min(5, Math.floor(Math.log10(Math.max(1, tick)) / 3));
return Number((tick / 1000 ** power).toPrecision(3)) + " " + ["B", "kB", "MB", "GB", "TB", "PB"][power];
"""
"""Formats a size as `format_size` does; Bokeh's own formatter uses powers of 1,024, at decimal ticks."""
SMOOTHED = 5.0
"""Least number of seconds over which rates are averaged."""
FORGOTTEN = (
    "Dask's own pages show no finished counting tasks: their results are with the client, so that the death of a "
    "worker undoes none, and the scheduler forgets them."
)
MILLION = 1e6
LATEST = "the latest run"
STYLE = """
<style>
.tc { font: 14px/1.45 system-ui, sans-serif; color: #222; }
.tc h1 { font-size: 18px; margin: 0 0 2px; font-weight: 600; }
.tc .sub { color: #666; margin: 0 0 10px; overflow-wrap: anywhere; }
.tc .cards { display: flex; flex-wrap: wrap; gap: 8px; }
.tc .card { border: 1px solid #ddd; border-radius: 6px; padding: 6px 12px; min-width: 104px; flex: 1 1 auto; }
.tc .card b { display: block; font-size: 20px; font-weight: 600; white-space: nowrap; }
.tc .card span { color: #666; font-size: 12px; }
.tc table { border-collapse: collapse; width: 100%; }
.tc td, .tc th { padding: 3px 10px 3px 0; text-align: left; font-weight: normal; white-space: nowrap; }
.tc th { color: #666; font-size: 12px; border-bottom: 1px solid #ddd; }
.tc td.bar { width: 45%; }
.tc .track { background: #eee; border-radius: 3px; height: 14px; overflow: hidden; }
.tc .fill { height: 14px; }
.tc .bad { color: #a40000; }
</style>
"""


class RunPage:
    """The page's document: the state of one run, the latest or a chosen one.

    Parameters
    ----------
    scheduler : distributed.Scheduler
    monitor : Runs
    """

    def __init__(self, scheduler: Any, monitor: Runs) -> None:
        self._scheduler, self._monitor = scheduler, monitor
        self.chosen = Select(title="", value=LATEST, options=[LATEST], width=420)
        whole = [":host { width: 100%; } .bk-clearfix { width: 100%; display: block; }"]
        self.head, self.stages, self.faults = (Div(sizing_mode="stretch_width", stylesheets=whole) for _ in range(3))
        self.rate = ColumnDataSource({"x": [], "rate": []})
        self.share = ColumnDataSource({"x": [], "share": []})
        self.workers = ColumnDataSource({name: [] for name in ("y", "worker", "rate", "tasks", "busy")})
        self.memory = ColumnDataSource({name: [] for name in ("y", "worker", "blocks", "used", "text")})
        wide: dict[str, Any] = {"height": 220, "min_width": NARROW, "sizing_mode": "stretch_width"}
        wide |= {"tools": "", "toolbar_location": None}
        self.rates = figure(title="Million probes a second, all workers", x_axis_label="seconds", **wide)
        self.rates.line("x", "rate", source=self.rate, line_width=2, color=COLOURS["count"])
        self.rates.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
        self.rates.y_range.start = 0
        title = "Share of the planned work that is done"
        self.shares = figure(title=title, x_axis_label="seconds", x_range=self.rates.x_range, **wide)
        self.shares.line("x", "share", source=self.share, line_width=2, color=COLOURS["count"])
        self.shares.yaxis.formatter = NumeralTickFormatter(format="0 %")
        self.shares.y_range.start, self.shares.y_range.end = 0, 1
        self.by_worker = figure(title="", y_range=(-0.5, 0.5), **wide)
        self.by_worker.hbar("y", right="rate", height=0.7, source=self.workers, color=COLOURS["count"])
        self.by_worker.xaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
        said = "@worker: @rate{0,0.[0]} million probes/s, @tasks tasks, @busy{0.0} s busy"
        self.by_worker.add_tools(HoverTool(tooltips=said))
        self.in_memory = figure(title="Memory by worker", y_range=(-0.5, 0.5), **wide)
        bars = {"height": 0.7, "source": self.memory}
        self.in_memory.hbar("y", right="used", color="#cccccc", legend_label="used", **bars)
        self.in_memory.hbar("y", right="blocks", color=COLOURS["blocks"], legend_label="blocks", **bars)
        self.in_memory.xaxis.formatter = CustomJSTickFormatter(code=SIZE)
        self.in_memory.legend.orientation, self.in_memory.legend.padding = "horizontal", 2
        self.in_memory.add_layout(self.in_memory.legend[0], "below")
        self.in_memory.add_tools(HoverTool(tooltips="@text"))
        self.limit = ColumnDataSource({"x": [], "end": []})  # a browser draws no line that it got while it was hidden
        line = {"line_color": "#a40000", "line_dash": "dashed", "source": self.limit}
        self.in_memory.segment(x0="x", x1="x", y0=-0.5, y1="end", **line)
        for plot in (self.by_worker, self.in_memory):
            plot.ygrid.visible = False
            plot.yaxis.ticker = FixedTicker(ticks=[])
            plot.x_range.start = 0
        beside: dict[str, Any] = {"sizing_mode": "stretch_width", "styles": {"flex-wrap": "wrap"}}
        self.root = column(
            self.chosen,
            self.head,
            self.stages,
            row(self.rates, self.by_worker, **beside),
            row(self.shares, self.in_memory, **beside),
            self.faults,
            sizing_mode="stretch_width",
            styles={"padding": "12px 20px", "max-width": "1500px", "margin": "0 auto"},
        )

    def update(self) -> None:
        """Draw the run in its current state."""
        runs = self._monitor.runs
        options = [LATEST, *((name, _title(run)) for name, run in reversed(runs.items()))]
        if self.chosen.options != options:
            self.chosen.options = options
        run = runs.get(self.chosen.value) or next(reversed(runs.values()), None)
        if run is None:
            self.head.text = (
                f"{STYLE}<div class=tc><h1>No run yet</h1><p class=sub>A count on this cluster shows here.</p></div>"
            )
            return
        now = time.time()
        self.head.text = f"{STYLE}<div class=tc>{self._head(run, now)}</div>"
        self.stages.text = f"{STYLE}<div class=tc>{_stages(run)}<p class=sub>{FORGOTTEN}</p></div>"
        self.faults.text = f"{STYLE}<div class=tc>{_faults(run)}</div>"
        self._curves(run)
        self._by_worker(run)
        self._in_memory(run)

    def _head(self, run: RunState, now: float) -> str:
        count, plan, left = run.counting, run.counting.get("plan", {}), run.left(now)
        if run.ended is not None:
            stopped = str(run.ended.get("error", "")).startswith("KeyboardInterrupt")
            state = "stopped" if stopped else "failed" if "error" in run.ended else "done"
        elif run.gone is not None:
            state = "stopped"
        elif now - run.heard > 60 and run.latest.get("event") != "begun":
            state = f"silent for {clock_time(now - run.heard)}"
        else:
            state = next((name for name, said in run.stages.items() if said["event"] != "ended"), "starts")
        triangles = (run.ended or {}).get("triangles", count.get("triangles"))
        ends = "" if left is None else time.strftime("%H:%M:%S", time.localtime(now + left))
        share = count.get("share")
        busy = [float(of[3]) for of in count.get("workers", {}).values()]
        imbalance = f"{max(busy) / min(busy):.2f}" if len(busy) > 1 and min(busy) else "–"
        cards = [
            (state, "run" if run.is_over else "stage"),
            ("–" if share is None else f"{100 * share:.0f} %", "of the planned work counted"),
            (f"{count['done']:,} / {count['total']:,}" if count else "–", "counting tasks"),
            ("–" if triangles is None else f"{triangles:,}", "triangles" if run.ended else "triangles so far"),
            (clock_time(run.seconds(now)), "elapsed"),
        ]
        if not run.is_over:
            cards.append(("–" if left is None else clock_time(left), f"left, ends at {ends}" if ends else "left"))
        cards += [
            (imbalance, "busiest / least busy worker"),
            (format_size(run.received), "sent between workers"),
        ]
        reason = (run.ended or {}).get("error", "its client has gone" if run.gone is not None else "")
        error = f"<p class=bad>{html_text(str(reason))}</p>" if reason else ""
        planned = (
            f"{plan['vertices']:,} vertices, {plan['edges']:,} edges; {plan['partition']}, n = {plan['parts']}, "
            f"m = {plan['splits']}; {plan['kernel']} on {plan['backend']}; blocks {format_size(plan['bytes_total'])}, "
            f"a task {format_size(plan['bytes_per_task'])} of {format_size(plan['memory'])}"
            + (f"; {plan['resumed']:,} tasks were in the checkpoint" if plan["resumed"] else "")
            if plan
            else "not planned yet"
        )
        shown = "".join(f"<div class=card><b>{html_text(text)}</b><span>{name}</span></div>" for text, name in cards)
        head = f"<h1>{html_text(_title(run))}</h1><p class=sub>{html_text(planned)}</p>"
        return f"{head}{error}<div class=cards>{shown}</div>"

    def _curves(self, run: RunState) -> None:
        points = run.points
        times, rates = _rates(points)
        self.rate.data = {"x": times, "rate": rates}
        self.share.data = {"x": [point[0] for point in points], "share": [point[1] for point in points]}

    def _by_worker(self, run: RunState) -> None:
        workers: dict[str, Any] = run.counting.get("workers", {})
        rates = {name: of[1] / of[3] / MILLION if of[3] else 0.0 for name, of in workers.items()}
        shown = sorted(rates, key=rates.__getitem__)[:SHOWN]
        self.workers.data = {
            "y": list(range(len(shown))),
            "worker": shown,
            "rate": [rates[name] for name in shown],
            "tasks": [workers[name][0] for name in shown],
            "busy": [workers[name][3] for name in shown],
        }
        more = f", the slowest {SHOWN} of {len(rates):,}" if len(rates) > SHOWN else ""
        self.by_worker.title.text = f"Million probes a second of CPU or GPU time, by worker{more}"
        _label(self.by_worker, shown)

    def _in_memory(self, run: RunState) -> None:
        if run is next(reversed(self._monitor.runs.values())):
            self._monitor.look(run)
        blocks = run.blocks
        shown = sorted(self._scheduler.workers.values(), key=lambda worker: -blocks.get(worker.address, 0))[:SHOWN]
        names = [worker.metrics.get(PROCESS) or worker.address.partition("://")[2] for worker in shown]
        limit = [worker.memory_limit or 0 for worker in shown]
        used = [worker.metrics.get("memory", 0) for worker in shown]
        held = [blocks.get(worker.address, 0) for worker in shown]
        self.memory.data = {
            "y": list(range(len(shown))),
            "worker": names,
            "blocks": held,
            "used": used,
            "text": [
                f"{name}: blocks {format_size(block)}, used {format_size(use)} of {format_size(most)}"
                for name, block, use, most in zip(names, held, used, limit, strict=True)
            ],
        }
        least = min((of for of in limit if of), default=0)
        self.limit.data = {"x": [least], "end": [max(1, len(shown)) - 0.5]} if least else {"x": [], "end": []}
        said = f", {format_size(sum(held))} of blocks in all" if shown else ""
        bound = " and its limit (dashed)" if least else ", which Dask does not limit" if shown else ""
        self.in_memory.title.text = f"Memory by worker{bound}{said}"
        self.in_memory.x_range.end = 1.05 * max([least, *used, 1])
        _label(self.in_memory, names)


def _rates(points: list[tuple[float, float, int, int]]) -> tuple[list[float], list[float]]:
    """Million probes a second, averaged over some seconds before each point: between single events they would jump."""
    times, rates, first = list[float](), list[float](), 0
    whole = points[-1][0] - points[0][0] if points else 0.0
    window = max(SMOOTHED, whole / 30)
    for last in range(1, len(points)):
        while points[last][0] - points[first + 1][0] >= window:
            first += 1
        seconds = points[last][0] - points[first][0]
        if seconds >= min(window, whole) / 2 > 0:
            times.append(points[last][0])
            rates.append((points[last][2] - points[first][2]) / seconds / MILLION)
    return times, rates


def _label(plot: Any, names: list[str]) -> None:
    plot.y_range.start, plot.y_range.end = -0.5, max(1, len(names)) - 0.5
    few = len(names) <= 16
    axis = plot.yaxis[0]
    axis.major_label_overrides = dict(enumerate(names)) if few else {}
    axis.ticker.ticks = list(range(len(names))) if few else []


def _title(run: RunState) -> str:
    asked, source = run.facts.get("asked", "run"), run.facts.get("source", "")
    return f"{asked} of {source}, {time.strftime('%H:%M:%S', time.localtime(run.began))}"


def _stages(run: RunState) -> str:
    rows, waits = [], False
    for name, said in run.stages.items():
        over, share = said["event"] == "ended", 1.0 if said["event"] == "ended" else said["share"]
        goes_on = "stopped" if run.is_over else "waits" if waits and not share else "under way"
        of = f"{said['done']:,} / {said['total']:,} tasks" if said["total"] > 1 else ""
        if said.get("bytes_total"):
            of = f"{format_size(said['bytes'])} of {format_size(said['bytes_total'])}"
        took = f"{said['took']:.1f} s" if over else goes_on
        waits = waits or not over
        style = f"width:{100 * share:.1f}%;background:{COLOURS.get(name, OTHER)}"
        fill = f'<div class=track><div class=fill style="{style}"></div></div>'
        rows.append(
            f"<tr><td>{name}</td><td class=bar>{fill}</td><td>{100 * share:.0f} %</td><td>{of}</td><td>{took}</td></tr>"
        )
    head = "<tr><th>stage</th><th></th><th></th><th>done of all</th><th>took</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _faults(run: RunState) -> str:
    if not run.faults:
        return "<p class=sub>No faults.</p>"
    shown = "".join(
        f"<tr><td>{time.strftime('%H:%M:%S', time.localtime(when))}</td><td>{html_text(what)}</td></tr>"
        for when, what in reversed(run.faults[-FAULTS:])
    )
    return f"<h1 class=bad>{len(run.faults):,} faults</h1><table>{shown}</table>"


class GroupGraph(TaskGroupGraph):  # type: ignore[misc, unused-ignore]
    """Dask's plot of task groups, laid out by their dependencies.

    Dask 2026.8 takes the groups in descending order of their names, because `dask.order.order` no longer regards the
    dependencies that it is passed; its page answers 500 (KeyError) if a group's name precedes that of one it needs,
    and if two groups need each other, as those of a stage whose tasks are submitted ahead may.
    """

    def update_layout(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Place each group to the right of those that it needs, and those without a place of their own above."""
        groups = self.scheduler.task_groups
        needs = {
            name: {group.name for group in groups[name].dependencies if group.name in groups} - {name}
            for name in groups
        }
        places = dict[str, tuple[int, int]]()
        waiting = list(groups)
        while waiting:
            ready = [name for name in waiting if needs[name] <= places.keys()] or [_of_a_circle(needs, places)]
            for name in ready:
                before = [places[need] for need in needs[name] if need in places]
                x = 1 + max((x for x, _ in before), default=-1)
                y = max((y for _, y in before), default=0)
                while (x, y) in places.values():
                    y += 1
                places[name] = x, y
            waiting = [name for name in waiting if name not in places]
        nodes = {name: {"x": x, "y": y} for name, (x, y) in places.items()}
        return nodes, {name: {"nstart": needs[name], "nend": [name] * len(needs[name])} for name in groups}


def _of_a_circle(needs: dict[str, set[str]], places: dict[str, tuple[int, int]]) -> str:
    """A group of a circle of groups that need each other, where every group without a place needs such a one."""
    name = next(name for name in needs if name not in places)
    passed = set[str]()
    while name not in passed:
        passed.add(name)
        name = min(needs[name] - places.keys())
    return name


def _document(scheduler: Any, monitor: Runs, extra: dict[str, Any], document: Any) -> None:
    page = RunPage(scheduler, monitor)
    page.update()
    document.title = "dasktc"
    document.template = env.get_template("simple.html")
    document.template_variables.update(extra)
    document.add_root(page.root)
    add_periodic_callback(document, page, REFRESH)


def add_page(scheduler: Any, monitor: Runs) -> bool:
    """Add the page to a scheduler's dashboard, and to the links on all its pages; call it in the scheduler's thread.

    Parameters
    ----------
    scheduler : distributed.Scheduler
    monitor : Runs

    Returns
    -------
    bool
        False where there is no dashboard.
    """
    from tornado.ioloop import IOLoop

    served = [app for app in scheduler.http_application.applications if hasattr(app, "prefix")]
    if not served:
        return False
    variables = template_variables(scheduler)
    if PATH not in variables["pages"]:
        variables["pages"].append(PATH)
    pages = {f"/{PATH}": partial(_document_of, monitor), **dict(zip(GROUPS, (_groups, _plot_of_groups), strict=True))}
    application = BokehApplication(pages, scheduler, served[0].prefix, variables)
    scheduler.http_application.applications.insert(0, application)  # before Dask's, whose pages of groups it replaces
    application.initialize(IOLoop.current())
    application.start()
    return True


def _document_of(monitor: Runs, scheduler: Any, extra: dict[str, Any], document: Any) -> None:
    _document(scheduler, monitor, extra, document)


def _groups(scheduler: Any, extra: dict[str, Any], document: Any) -> None:
    _plot_of_groups(scheduler, extra, document)
    document.template = env.get_template("simple.html")
    document.template_variables.update(extra)


def _plot_of_groups(scheduler: Any, extra: dict[str, Any], document: Any) -> None:
    graph = GroupGraph(scheduler, sizing_mode="stretch_both")
    graph.update()
    add_periodic_callback(document, graph, 200)
    document.title = "Dask: Task Groups Graph"
    document.theme = BOKEH_THEME
    document.add_root(graph.root)
