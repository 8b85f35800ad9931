"""The dashboard page `/dasktc`, drawn with Bokeh from the runs that a `RunMonitor` keeps; imported by schedulers only.

There is one document per browser. Its figures have a fixed height and the window's width; text is HTML, so that it
wraps. Stages have the plain words of `executors.progress.WORDS`; a word with a dotted line explains itself when it is
pointed at. A figure without data is hidden, and a sentence says what will be there. Colours follow the browser's light
or dark theme: those of text are variables of the page's style sheet, those of figures are set by `THEME`.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import (
    ColumnDataSource,
    CustomJS,
    CustomJSTickFormatter,
    Div,
    FixedTicker,
    HoverTool,
    NumeralTickFormatter,
    Select,
)
from bokeh.plotting import figure

from dasktc.errors import html_text
from dasktc.executors.dask.internals import add_pages, group_pages, template
from dasktc.executors.dask.run_state import Runs, RunState
from dasktc.executors.dask.worker_state import PROCESS
from dasktc.executors.progress.tracker import clock_time, words_of
from dasktc.options import format_size

__all__ = ["RunPage", "add_page"]

PATH = "dasktc"
REFRESH = 1000
"""Milliseconds between redraws."""
SHOWN = 40
"""Most workers in a figure; if there are more, the slowest are shown."""
NARROW = 300
"""Least width of a figure, in pixels."""
BESIDE = 440
"""Width that a figure wants: in a window less than twice as wide, figures stand below each other."""
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
USED = "#a8a8a8"
"""Colour of memory in use."""
LIMIT = "#d0402b"
"""Colour of a memory limit."""
SIZE = """
const power = Math.min(5, Math.floor(Math.log10(Math.max(1, tick)) / 3));
return Number((tick / 1000 ** power).toPrecision(3)) + " " + ["B", "kB", "MB", "GB", "TB", "PB"][power];
"""
"""Formats a size as `format_size` does; Bokeh's own formatter uses powers of 1,024, at decimal ticks."""
SMOOTHED = 5.0
"""Least number of seconds over which rates are averaged."""
LEAST_CURVE = 1.0
"""Seconds that counting has to take before its curves are drawn."""
FORGOTTEN = (
    "Dask's own pages show no finished counting tasks: their results are with the client, so that the death of a "
    "worker undoes none, and the scheduler forgets them."
)
ABOUT = (
    "This page follows one run of dasktc, second by second: its stage, how much of the work is done, when it will end, "
    "and what each worker does and holds. Point at a dotted word to read what it means."
)
EMPTY = (
    "A count, or another question to a graph, shows here from its first second on: its stages, how much of the work is "
    "done, when it will end, the pace of the workers and their memory. To start one on this cluster:"
)
MILLION = 1e6
LATEST = "the latest run"
STYLE = """
<style>
.tc { font: 14px/1.45 system-ui, sans-serif; color: var(--tc-ink); }
.tc h1 { font-size: 18px; margin: 0 0 2px; font-weight: 600; overflow-wrap: anywhere; }
.tc h2 { font-size: 14px; margin: 0; font-weight: 600; }
.tc p { margin: 0 0 10px; overflow-wrap: anywhere; }
.tc .sub { color: var(--tc-muted); max-width: 900px; }
.tc pre { margin: 0 0 10px; padding: 8px 12px; background: var(--tc-track); border-radius: 6px; overflow-x: auto; }
.tc .cards { display: flex; flex-wrap: wrap; gap: 8px; }
.tc .card { border: 1px solid var(--tc-line); border-radius: 6px; padding: 6px 12px; flex: 1 1 auto; min-width: 90px;
  max-width: 240px; }
.tc .card b { display: block; font-size: 20px; font-weight: 600; white-space: nowrap; }
.tc .card > span { color: var(--tc-muted); font-size: 12px; }
.tc table { border-collapse: collapse; width: 100%; }
.tc td, .tc th { padding: 3px 10px 3px 0; text-align: left; font-weight: normal; white-space: nowrap; }
.tc th { color: var(--tc-muted); font-size: 12px; border-bottom: 1px solid var(--tc-line); }
.tc td.text { white-space: normal; width: 100%; overflow-wrap: anywhere; }
.tc td.bar { width: 45%; }
.tc .track { background: var(--tc-track); border-radius: 3px; height: 14px; overflow: hidden; }
.tc .fill { height: 14px; }
.tc .key { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin: 0 4px 0 2px; }
.tc .bad { color: var(--tc-bad); }
.tc [data-help] { position: relative; cursor: help; text-decoration: underline dotted; text-underline-offset: 3px; }
.tc [data-help]:hover::after { content: attr(data-help); position: absolute; left: 0; top: 1.6em; z-index: 10;
  width: max-content; max-width: min(300px, 60vw); padding: 6px 10px; border-radius: 6px; white-space: normal;
  font: 13px/1.4 system-ui, sans-serif; color: var(--tc-page); background: var(--tc-ink); }
.tc .card:last-child [data-help]:hover::after { left: auto; right: 0; }
.tc .keyed { white-space: nowrap; }
@media (max-width: 600px) {
  .tc { position: relative; }
  .tc td.bar { width: 20%; } .tc .percent { display: none; }
  .tc [data-help] { position: static; }
  .tc .card [data-help]:hover::after, .tc [data-help]:hover::after { left: 0; right: 0; top: auto; width: auto;
    max-width: none; margin-top: 1.6em; }
}
</style>
"""
PAGE = """
{% extends "simple.html" %}
{% block extra_resources %}
<style>
:root { color-scheme: light dark; --tc-ink: #222222; --tc-muted: #5f5f5f; --tc-page: #fafafa; --tc-line: #d5d5d5;
  --tc-track: #ebebeb; --tc-bad: #a40000; }
@media (prefers-color-scheme: dark) {
  :root { --tc-ink: #e4e9f0; --tc-muted: #9aa8b8; --tc-page: #14181e; --tc-line: #3a434f; --tc-track: #2a323d;
    --tc-bad: #ff8a7a; }
  .navbar ul, .dropdown-content { background-color: #232a33; }
  .navbar li a { color: #e4e9f0; }
  .navbar li.active, .navbar li:hover { background-color: #6b4a26; }
  #navbar-toggle-icon img { filter: invert(1); }
}
html { background: var(--tc-page); }
body { padding-top: 0; }
.navbar { position: static; margin: 0 -10px; }  /* where it takes two lines, it would cover the title */
</style>
{% endblock %}
"""
"""Dask's page around the document, with its colours."""
SELECT = ".bk-input { color: var(--tc-ink); background-color: var(--tc-page); border-color: var(--tc-line); }"
THEME = """
const query = window.matchMedia("(prefers-color-scheme: dark)");
const draw = () => {
  const [text, line] = query.matches ? ["#b6c2d0", "#3a434f"] : ["#4a4a4a", "#d9d9d9"];
  for (const axis of axes) {
    axis.major_label_text_color = axis.axis_label_text_color = axis.major_tick_line_color = text;
    axis.axis_line_color = axis.minor_tick_line_color = text;
  }
  for (const grid of grids) grid.grid_line_color = line;
};
query.addEventListener("change", draw);
draw();
"""
"""Colours axes and grids in the browser, whose theme the server does not know."""


class _Panel:
    """A figure under a title of HTML, both hidden while there is nothing to draw."""

    def __init__(self, **more: Any) -> None:
        self.title = Div(sizing_mode="stretch_width", stylesheets=WHOLE, margin=(8, 5, 2, 5))
        self.plot = figure(
            height=200,
            min_width=NARROW,
            sizing_mode="stretch_width",
            tools="",
            toolbar_location=None,
            background_fill_color=None,
            border_fill_color=None,
            outline_line_color=None,
            **more,
        )
        styles = {"flex": f"1 1 {BESIDE}px"}
        self.root = column(self.title, self.plot, sizing_mode="stretch_width", min_width=NARROW, styles=styles)

    def show(self, title: str, is_drawn: bool) -> None:
        """Set the title, and whether there is anything to see."""
        self.title.text = f"{STYLE}<div class=tc><h2>{title}</h2></div>"
        if self.root.visible != is_drawn:
            self.root.visible = is_drawn


WHOLE = [":host { width: 100%; } .bk-clearfix { width: 100%; display: block; }"]
"""Style of HTML as wide as the window."""


class RunPage:
    """The page's document, of a Dask scheduler: the state of one run, the latest or a chosen one."""

    def __init__(self, scheduler: Any, monitor: Runs) -> None:
        self._scheduler, self._monitor = scheduler, monitor
        self.chosen = Select(
            title="", value=LATEST, options=[LATEST], max_width=420, sizing_mode="stretch_width", stylesheets=[SELECT]
        )
        self.head, self.stages, self.waits, self.faults = (
            Div(sizing_mode="stretch_width", stylesheets=WHOLE) for _ in range(4)
        )
        self.rate = ColumnDataSource({"x": [], "rate": []})
        self.share = ColumnDataSource({"x": [], "share": []})
        self.workers = ColumnDataSource({name: [] for name in ("y", "worker", "rate", "tasks", "busy")})
        self.memory = ColumnDataSource({name: [] for name in ("y", "worker", "blocks", "used", "text")})
        self.rates = _Panel(x_axis_label="seconds since the run began")
        self.rates.plot.line("x", "rate", source=self.rate, line_width=2, color=COLOURS["count"])
        self.rates.plot.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
        self.rates.plot.y_range.start = 0
        self.shares = _Panel(x_axis_label="seconds since the run began", x_range=self.rates.plot.x_range)
        self.shares.plot.line("x", "share", source=self.share, line_width=2, color=COLOURS["count"])
        self.shares.plot.yaxis.formatter = NumeralTickFormatter(format="0 %")
        self.shares.plot.y_range.start, self.shares.plot.y_range.end = 0, 1
        self.by_worker = _Panel(y_range=(-0.5, 0.5))
        self.by_worker.plot.hbar("y", right="rate", height=0.7, source=self.workers, color=COLOURS["count"])
        self.by_worker.plot.xaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
        tooltip = "@worker: @rate{0,0.[0]} million probes/s, @tasks tasks, @busy{0.0} s busy"
        self.by_worker.plot.add_tools(HoverTool(tooltips=tooltip))
        self.in_memory = _Panel(y_range=(-0.5, 0.5))
        bars = {"height": 0.7, "source": self.memory}
        self.in_memory.plot.hbar("y", right="used", color=USED, **bars)
        self.in_memory.plot.hbar("y", right="blocks", color=COLOURS["blocks"], **bars)
        self.in_memory.plot.xaxis.formatter = CustomJSTickFormatter(code=SIZE)
        self.in_memory.plot.add_tools(HoverTool(tooltips="@text"))
        self.limit = ColumnDataSource({"x": [], "end": []})  # a browser draws no line that it got while it was hidden
        line = {"line_color": LIMIT, "line_dash": "dashed", "source": self.limit}
        self.in_memory.plot.segment(x0="x", x1="x", y0=-0.5, y1="end", **line)
        for panel in (self.by_worker, self.in_memory):
            panel.plot.ygrid.visible = False
            panel.plot.yaxis.ticker = FixedTicker(ticks=[])
            panel.plot.x_range.start = 0
        self.panels = self.rates, self.shares, self.by_worker, self.in_memory
        layout: dict[str, Any] = {"sizing_mode": "stretch_width", "styles": {"flex-wrap": "wrap"}}
        self.root = column(
            self.chosen,
            self.head,
            self.stages,
            row(self.rates.root, self.shares.root, **layout),
            row(self.by_worker.root, self.in_memory.root, **layout),
            self.waits,
            self.faults,
            sizing_mode="stretch_width",
            styles={"padding": "12px 0", "max-width": "1500px", "margin": "0 auto"},
        )

    def theme(self) -> CustomJS:
        """Return what colours the figures in the browser."""
        plots = [panel.plot for panel in self.panels]
        axes, grids = ([part for plot in plots for part in getattr(plot, name)] for name in ("axis", "grid"))
        return CustomJS(args={"axes": axes, "grids": grids}, code=THEME)

    def update(self) -> None:
        """Draw the run in its current state."""
        runs = self._monitor.runs
        options = [LATEST, *((name, _title(run)) for name, run in reversed(runs.items()))]
        if self.chosen.options != options:
            self.chosen.options = options
        self.chosen.visible = len(runs) > 1
        run = runs.get(self.chosen.value) or next(reversed(runs.values()), None)
        if run is None:
            address = html_text(self._scheduler.address)
            code = f'import dasktc\ndasktc.triangle_count("edges.csv", client="{address}")'
            self.head.text = f"{STYLE}<div class=tc><h1>No run yet</h1><p class=sub>{EMPTY}</p><pre>{code}</pre></div>"
            for panel in self.panels:
                panel.show("", False)
            return
        now = time.time()
        self.head.text = f"{STYLE}<div class=tc>{_head(run, now)}</div>"
        self.stages.text = f"{STYLE}<div class=tc>{_stages(run)}</div>"
        self.faults.text = f"{STYLE}<div class=tc>{_faults(run)}<p class=sub>{FORGOTTEN}</p></div>"
        self._curves(run)
        self._by_worker(run)
        self._in_memory(run)
        note = _missing(run, self.rates.root.visible, self.by_worker.root.visible)
        self.waits.text = f"{STYLE}<div class=tc><p class=sub>{note}</p></div>" if note else ""

    def _curves(self, run: RunState) -> None:
        points = run.points
        times, rates = _rates(points)
        self.rate.data = {"x": times, "rate": rates}
        self.share.data = {"x": [point[0] for point in points], "share": [point[1] for point in points]}
        is_drawn = len(times) > 1 and points[-1][0] - points[0][0] >= LEAST_CURVE
        self.rates.show(f"Pace of all workers: {_help('million probes a second', PROBES)}", is_drawn)
        self.shares.show(f"{_help('Share of the planned work', SHARE)} that is done", is_drawn)

    def _by_worker(self, run: RunState) -> None:
        workers: dict[str, Any] = run.counting.get("workers", {})
        rates = {name: counts[1] / counts[3] / MILLION if counts[3] else 0.0 for name, counts in workers.items()}
        names = sorted(rates, key=rates.__getitem__)[:SHOWN]
        self.workers.data = {
            "y": list(range(len(names))),
            "worker": names,
            "rate": [rates[name] for name in names],
            "tasks": [workers[name][0] for name in names],
            "busy": [workers[name][3] for name in names],
        }
        remark = f", the slowest {SHOWN} of {len(rates):,}" if len(rates) > SHOWN else ""
        unit = _help("million probes a second", f"{PROBES} Per second of CPU or GPU time, without waiting.")
        self.by_worker.show(f"Speed of each worker: {unit}{remark}", any(rates.values()))
        _label(self.by_worker.plot, names)

    def _in_memory(self, run: RunState) -> None:
        if run is next(reversed(self._monitor.runs.values())):
            self._monitor.look(run)
        blocks = run.blocks
        workers = self._scheduler.identity(n_workers=-1)["workers"]
        # Workers with the most blocks come first.
        addresses = sorted(workers, key=lambda address: -blocks.get(address, 0))[:SHOWN]
        metrics = [workers[address]["metrics"] for address in addresses]
        names = [
            metric.get(PROCESS) or address.partition("://")[2]
            for address, metric in zip(addresses, metrics, strict=True)
        ]
        limit = [workers[address]["memory_limit"] or 0 for address in addresses]
        usage = [metric.get("memory", 0) for metric in metrics]
        block_sizes = [blocks.get(address, 0) for address in addresses]
        self.memory.data = {
            "y": list(range(len(addresses))),
            "worker": names,
            "blocks": block_sizes,
            "used": usage,
            "text": [
                f"{name}: blocks {format_size(block)}, used {format_size(use)} of {format_size(maximum)}"
                for name, block, use, maximum in zip(names, block_sizes, usage, limit, strict=True)
            ],
        }
        minimum, total = min((size for size in limit if size), default=0), format_size(sum(block_sizes))
        self.limit.data = {"x": [minimum], "end": [max(1, len(addresses)) - 0.5]} if minimum else {"x": [], "end": []}
        parts = [
            _keyed(COLOURS["blocks"], f"{_help('blocks', words_of('blocks').help)} ({total} in all)"),
            _keyed(USED, "used"),
            _keyed(LIMIT, "limit (dashed)") if minimum else "Dask sets no limit",
        ]
        title = f"Memory of each worker: {', '.join(parts)}"
        self.in_memory.show(title, bool(addresses))
        self.in_memory.plot.x_range.end = 1.05 * max([minimum, *usage, 1])
        _label(self.in_memory.plot, names)


PROBES = (
    "A probe tests whether one neighbour of a vertex is also a neighbour of another: the step that finds triangles."
)
SHARE = "The work is planned from the lengths of the lists that will be compared, so that large tasks count for more."
BALANCE = "Counting seconds of the busiest worker over those of the least busy one; 1 is a perfect balance."
SENT = "Bytes that workers sent each other, and results to clients, since the run began."
TASKS = "The work is cut into tasks, which the workers take one after another; a lost task is counted again."
CUT = "n: parts on each side of the grid of blocks. m: tasks into which the work on the same blocks is split."


def _help(text: str, explanation: str) -> str:
    """Format a word that explains itself when it is pointed at."""
    return f'<span data-help="{html_text(explanation)}">{html_text(text)}</span>' if explanation else html_text(text)


def _keyed(colour: str, text: str) -> str:
    """Format words after the colour of what they name, on one line."""
    return f'<span class=keyed><span class=key style="background:{colour}"></span>{text}</span>'


def _head(run: RunState, now: float) -> str:
    """Title, plan and numbers of a run; numbers that are not known, or not yet, are left out."""
    count, plan, seconds_left = run.counting, run.counting.get("plan", {}), run.left(now)
    stage = ""
    if run.ended is not None:
        is_interrupted = str(run.ended.get("error", "")).startswith("KeyboardInterrupt")
        state = "stopped" if is_interrupted else "failed" if "error" in run.ended else "done"
    elif run.gone is not None:
        state = "stopped"
    elif now - run.heard > 60 and run.latest.get("event") != "begun":
        state = f"silent for {clock_time(now - run.heard)}"
    else:
        stage = next((name for name, event in run.stages.items() if event["event"] != "ended"), "starts")
        state = words_of(stage).name
    # Cards: one for each number that is known.
    triangles = (run.ended or {}).get("triangles", count.get("triangles"))
    share = count.get("share")
    busy_seconds = [float(counts[3]) for counts in count.get("workers", {}).values()]
    cards = [(state, _help("stage" if stage else "run", words_of(stage).help))]
    if share is not None:
        cards.append((f"{100 * share:.0f} %", _help("of the planned work counted", SHARE)))
        cards.append((f"{count['done']:,} / {count['total']:,}", _help("counting tasks", TASKS)))
    if triangles is not None:
        cards.append((f"{triangles:,}", "triangles" if run.ended else "triangles so far"))
    cards.append((clock_time(run.seconds(now)), "elapsed"))
    if seconds_left is not None:
        ends = time.strftime("%H:%M:%S", time.localtime(now + seconds_left))
        cards.append((clock_time(seconds_left), f"left, ends at {ends}"))
    if len(busy_seconds) > 1 and min(busy_seconds):
        cards.append((f"{max(busy_seconds) / min(busy_seconds):.2f}", _help("busiest / least busy worker", BALANCE)))
    if run.sent:
        cards.append((format_size(run.sent), _help("sent by workers", SENT)))
    # Above the cards stand the error and the plan.
    reason = (run.ended or {}).get("error", "its client has gone" if run.gone is not None else "")
    error = f"<p class=bad>{html_text(str(reason))}</p>" if reason else ""
    summary = ""
    if plan:
        cut = _help(f"n = {plan['parts']}, m = {plan['splits']}", CUT)
        summary = (
            f"{plan['vertices']:,} vertices, {plan['edges']:,} edges; kernel {html_text(plan['kernel'])} on "
            f"{html_text(plan['backend'])}; partition {html_text(plan['partition'])} "
            f"({cut}), blocks {format_size(plan['bytes_total'])} "
            f"in all; the largest task needs {format_size(plan['bytes_per_task'])} of {format_size(plan['memory'])}"
            + (f"; {plan['resumed']:,} tasks were in the checkpoint" if plan["resumed"] else "")
        )
    elif not run.is_over:
        summary = "How it counts is not planned yet: first the graph is read."
    figures = "".join(f"<div class=card><b>{html_text(text)}</b><span>{name}</span></div>" for text, name in cards)
    head = f"<h1>{html_text(_title(run))}</h1><p class=sub>{ABOUT}</p>{f'<p>{summary}</p>' if summary else ''}"
    return f"{head}{error}<div class=cards>{figures}</div>"


def _missing(run: RunState, has_curves: bool, has_speeds: bool) -> str:
    """Say which figures are hidden, and why or until when."""
    if has_curves and has_speeds:
        return ""
    if not run.counting:
        if run.is_over:
            return "Nothing was counted in this run, so there is no pace to draw."
        return "When counting begins, its pace, the share of the work that is done, and each worker's speed show here."
    curves = "the pace and the share of the work that is done"
    if run.is_over:
        cause = f"Counting took less than {LEAST_CURVE:.0f} s" if not has_curves else "No worker reported its time"
        return f"{cause}: too little to draw {curves if not has_curves else 'its speed'}."
    return f"After {LEAST_CURVE:.0f} s of counting, {curves} show here."


def _rates(points: list[tuple[float, float, int, int]]) -> tuple[list[float], list[float]]:
    """Million probes a second, averaged over some seconds before each point: between single events they would jump."""
    times, rates, first = list[float](), list[float](), 0
    duration = points[-1][0] - points[0][0] if points else 0.0
    window = max(SMOOTHED, duration / 30)
    for last in range(1, len(points)):
        while points[last][0] - points[first + 1][0] >= window:
            first += 1
        seconds = points[last][0] - points[first][0]
        if seconds >= min(window, duration) / 2 > 0:
            times.append(points[last][0])
            rates.append((points[last][2] - points[first][2]) / seconds / MILLION)
    return times, rates


def _label(plot: Any, names: list[str]) -> None:
    plot.y_range.start, plot.y_range.end = -0.5, max(1, len(names)) - 0.5
    has_labels = len(names) <= 16
    axis = plot.yaxis[0]
    axis.major_label_overrides = dict(enumerate(names)) if has_labels else {}
    axis.ticker.ticks = list(range(len(names))) if has_labels else []


def _title(run: RunState) -> str:
    question, source = run.facts.get("asked", "run"), run.facts.get("source", "")
    return f"{question} of {source}, {time.strftime('%H:%M:%S', time.localtime(run.began))}"


def _stages(run: RunState) -> str:
    rows, is_waiting = [], False
    for name, event in run.stages.items():
        is_over, share = event["event"] == "ended", 1.0 if event["event"] == "ended" else event["share"]
        status = "stopped" if run.is_over else "waits" if is_waiting and not share else "under way"
        steps = f"{event['done']:,} / {event['total']:,} tasks" if event["total"] > 1 else ""
        if event.get("bytes_total"):
            steps = f"{format_size(event['bytes'])} of {format_size(event['bytes_total'])}"
        text = status if not is_over else f"{event['took']:.1f} s" if event["took"] >= 0.05 else "< 0.1 s"
        is_waiting = is_waiting or not is_over
        style = f"width:{100 * share:.1f}%;background:{COLOURS.get(name, OTHER)}"
        fill = f'<div class=track><div class=fill style="{style}"></div></div>'
        words = words_of(name)
        cells = f"<td>{_help(words.name, words.help)}</td><td class=bar>{fill}</td>"
        rows.append(
            f"<tr>{cells}<td class=percent>{100 * share:.0f} %</td><td>{steps}</td><td>{html_text(text)}</td></tr>"
        )
    if not rows:
        return ""
    head = "<tr><th>stage</th><th></th><th class=percent></th><th>done of all</th><th>took</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _faults(run: RunState) -> str:
    if not run.faults:
        return "<p class=sub>No faults.</p>"
    rows = "".join(
        f"<tr><td>{time.strftime('%H:%M:%S', time.localtime(moment))}</td><td class=text>{html_text(text)}</td></tr>"
        for moment, text in reversed(run.faults[-FAULTS:])
    )
    return f"<h1 class=bad>{len(run.faults):,} faults</h1><table>{rows}</table>"


def _draw(monitor: Runs, scheduler: Any, variables: dict[str, Any], document: Any) -> None:
    page = RunPage(scheduler, monitor)
    page.update()
    document.title = "dasktc"
    document.template = template(PAGE)
    document.template_variables.update(variables)
    document.add_root(page.root)
    document.js_on_event("document_ready", page.theme())
    document.add_periodic_callback(page.update, REFRESH)


def add_page(scheduler: Any, monitor: Runs) -> bool:
    """Add the page to a scheduler's dashboard, and to the links on all its pages; call it in the scheduler's thread.

    It returns False where there is no dashboard.
    """
    return add_pages(scheduler, PATH, {f"/{PATH}": partial(_draw, monitor), **group_pages()})
