"""Writes the HTML report about a graph and its count, a single self-contained file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.counting.timeline import Timeline, timeline
from dasktc.errors import html_text
from dasktc.executors.process.environment import collect
from dasktc.executors.process.usage import Usage
from dasktc.options import format_size
from dasktc.questions.distributions import density, middle
from dasktc.reports.charts import Axis, line_chart, timeline_chart
from dasktc.reports.findings import Findings, RunFacts
from dasktc.summary import as_html
from dasktc.wording import plural

if TYPE_CHECKING:
    import pandas as pd

    from dasktc.counting.result import TriangleCount

__all__ = ["STYLE", "page"]

MOST_TASKS = 200
MOST_WORKERS = 40
"""Largest number of rows about workers; of more, the busiest, the least busy, and some in between."""
SEED = 1
"""Seed of the sample of tasks."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --muted: #5d6b7c; --page: #ffffff; --panel: #f5f7fa; --line: #8884;
  --bar: #2f6fb5; --mark: #b3541e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9f0; --muted: #9aa8b8; --page: #14181e; --panel: #1c222b;
  --line: #8886; --bar: #6ba7e8; --mark: #f0a35e; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 1.5rem auto; padding: 0 1rem; color: var(--ink);
  background: var(--page); }
header { display: flex; flex-wrap: wrap; gap: .6rem 1.8rem; align-items: end; border-bottom: 1px solid var(--line);
  padding-bottom: .8rem; margin-bottom: 1.2rem; }
h1 { font-size: 1.35rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere; flex: 1 1 12rem; max-width: 28rem; }
header div b { display: block; font-size: 1.35rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
header div span { color: var(--muted); font-size: .8rem; white-space: nowrap; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 .6rem; } h3 { font-size: 1rem; margin: 0 0 .5rem; }
@media (max-width: 40rem) { h1 { flex-basis: 100%; } }
details { border-top: 1px solid var(--line); margin-top: 1.2rem; padding-top: .6rem; }
details + details { margin-top: .6rem; } details details { border: 0; margin-top: 1.6rem; padding: 0; }
summary { cursor: pointer; font-size: 1.1rem; font-weight: 600; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { white-space: nowrap; }
th, td { padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; }
td.n, th.n { text-align: right; white-space: nowrap; } td.bar { width: 22rem; min-width: 6rem; }
td.bar div { background: var(--bar); height: .8rem; margin-top: .35rem; min-width: 1px; }
td.bar div.plan { background: var(--mark); } .bars td:first-child { white-space: nowrap; }
.wide { overflow-x: auto; margin-top: .8rem; } .wide svg { min-width: 44rem; }
.wide td, .wide th { white-space: nowrap; }
.side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22.5rem, 100%), 1fr)); gap: 1rem; }
.side > div { background: var(--panel); border-radius: .4rem; padding: .8rem; min-width: 0; overflow-x: auto; }
.side + .side { margin-top: 1rem; }
pre { background: var(--panel); border-radius: .4rem; padding: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
p.note { color: var(--muted); max-width: 48rem; margin: .6rem 0; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--muted); font: 11px system-ui, sans-serif; }
svg text.label { fill: var(--ink); font-size: 12px; } svg .grid { stroke: var(--line); stroke-width: .7; }
svg .curve { fill: none; stroke: var(--bar); stroke-width: 1.5; } svg .point, svg .task { fill: var(--bar); }
svg rect.task { stroke: var(--page); stroke-width: .4; }
svg .lane { fill: var(--panel); }
"""


def page(
    result: TriangleCount,
    source: str,
    findings: Findings | None = None,
    run: RunFacts | None = None,
    most_tasks: int = MOST_TASKS,
) -> str:
    """Describe a graph and a count of it: numbers, then distributions, then, folded, the run and the method.

    `source` is the source's name. The table of tasks has at most `most_tasks` rows; of more, half are the longest and
    half a sample of the others. Returns self-contained HTML that follows the reader's light or dark theme.
    """
    title = f"{plural(result.triangles, 'triangle')} in {source}"
    name = source if " " in source else re.split(r"[/\\](?=[^/\\])", source)[-1]  # last part of a path or URL
    parts = [f"<header><h1>{html_text(name)}</h1>{_numbers(result, findings)}</header>"]
    if findings is not None:
        parts += _graph(findings)
    parts += [_run(result, source, run), _method(result, most_tasks)]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{html_text(title)}</title><style>{STYLE}</style>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _numbers(result: TriangleCount, findings: Findings | None) -> str:
    """Format the numbers beside the name; "–" for those that were not computed."""
    numbers = [
        ("triangles", f"{result.triangles:,}", "Three vertices, each two of them adjacent"),
        ("vertices", f"{result.vertices:,}", "Vertices with an edge, without loops"),
        ("edges", f"{result.edges:,}", "Different edges, without loops and directions"),
    ]
    if findings is not None:
        average, missing = findings.average_clustering, "Not computed: see below"
        numbers += [
            ("transitivity", f"{findings.transitivity:.4f}", "Share of all pairs of neighbours that are adjacent"),
            (
                "average clustering",
                "–" if average is None else f"{average:.4f}",
                missing if average is None else "Mean share of adjacent pairs among the neighbours of a vertex",
            ),
            ("maximum degree", f"{findings.largest_degree:,}", "Most neighbours of a vertex"),
        ]
    return "".join(
        f'<div title="{html_text(meaning)}"><b>{text}</b><span>{name}</span></div>' for name, text, meaning in numbers
    )


# the graph


def _graph(findings: Findings) -> list[str]:
    charts = [_density("Degrees", findings.degrees, "degree", "vertices", "degree of a vertex")]
    if findings.edges is not None:
        bins = findings.edges.bins
        without_triangle = int(bins.loc[bins["support"] == 0, "edges"].sum())
        title = f"Triangles by edge; {plural(without_triangle, 'edge is', 'edges are')} in none"
        charts.append(_density(title, bins[bins["support"] > 0], "support", "edges", "triangles of an edge (support)"))
    if findings.vertices is not None:
        charts.append(_clustering(findings.vertices.bins))
    parts = [f'<div class="side">{"".join(f"<div>{chart}</div>" for chart in charts)}</div>']
    if findings.why:
        parts.append(f'<p class="note">{html_text(findings.why)}</p>')
    note = (
        "Bins are exact below 8 and four per octave above; a point is at the middle of its bin, and its height is the "
    )
    parts.append(f'<p class="note">{note}mean number at each degree, or support, of the bin.</p>')
    tables = []
    if findings.vertices is not None:
        tables.append(("Vertices with most triangles", findings.vertices.most))
    if findings.edges is not None:
        tables.append(("Edges with most triangles", findings.edges.most))
    if tables:
        figures = "".join(f"<div><h3>{title}</h3>{_table(frame)}</div>" for title, frame in tables)
        parts.append(f'<div class="side">{figures}</div>')
    return parts


def _density(title: str, bins: pd.DataFrame, name: str, count: str, label: str) -> str:
    if not len(bins):
        return f"<h3>{title}</h3><p class='note'>None.</p>"
    x, y = density(bins, name, count)
    tooltips = [
        f"{_range(first, last)}: {number:,} {count}"
        for first, last, number in zip(bins[name], bins["last"], bins[count], strict=True)
    ]
    axes = Axis(label), Axis(f"{count} at each {name}")
    return f"<h3>{title}</h3>{line_chart(x.tolist(), y.tolist(), [f'{name} {tooltip}' for tooltip in tooltips], axes)}"


def _clustering(bins: pd.DataFrame) -> str:
    title, bins = "<h3>Clustering by degree</h3>", bins[bins["degree"] > 1]
    if not len(bins):
        return f"{title}<p class='note'>No vertex has two neighbours.</p>"
    x = middle(bins, "degree")
    tooltips = [
        f"degree {_range(first, last)}: mean {mean:.4f} of {plural(number, 'vertex')}"
        for first, last, mean, number in zip(
            bins["degree"], bins["last"], bins["clustering"], bins["vertices"], strict=True
        )
    ]
    axes = Axis("degree of a vertex"), Axis("mean clustering coefficient", log=False)
    return title + line_chart(x.tolist(), bins["clustering"].tolist(), tooltips, axes)


def _range(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _table(frame: pd.DataFrame) -> str:
    """Format a table; integers other than ids have commas, and texts are escaped."""
    if not len(frame):
        return "<p class='note'>None.</p>"
    right = [name not in ("vertex", "src", "dst") and frame[name].dtype.kind in "if" for name in frame.columns]
    head = "".join(f"<th{' class=n' if side else ''}>{html_text(str(name))}</th>"
                   for name, side in zip(frame.columns, right, strict=True))  # fmt: skip
    rows = []
    for row in frame.itertuples(index=False, name=None):
        cells = (
            f"<td{' class=n' if side else ''}>{html_text(_shown(value) if side else str(value))}</td>"
            for value, side in zip(row, right, strict=True)
        )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<div class='wide'><table><tr>{head}</tr>{''.join(rows)}</table></div>"


def _shown(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if value != value else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)


# the run


def _run(result: TriangleCount, source: str, run: RunFacts | None) -> str:
    """How the run went, folded: the command that repeats it, stages, workers, memory, versions."""
    versions = {name: number for name, number in collect()["versions"].items() if number}
    times, tasks = timeline(result._records), result.tasks
    stages = [(name, value) for name, value in result.seconds.items() if name != "total"]
    parts = [as_html([("source", source)])]
    if run is not None:
        parts += ["<h2>To repeat it</h2>", f"<pre><code>{html_text(run.command)}</code></pre>"]
    parts += [
        "<h2>Wall time by stage, seconds</h2>",
        _bars([(name, seconds, f"{seconds:.3f}", False) for name, seconds in stages], ("stage", "seconds")),
        "<h2>Workers</h2>",
        *_workers(result, tasks, times, run),
        "<h2>Memory against the plan</h2>",
        *_memory(result, run),
        "<h2>Versions</h2>",
        as_html(versions.items()),
    ]
    return _folded(f"The run: {result.seconds['total']:,.2f} s, {plural(result.workers, 'task')} at a time", parts)


def _method(result: TriangleCount, most: int) -> str:
    """How it was counted, folded: what was read, the plan, and the tasks."""
    tasks, title = result.tasks, plural(len(result.tasks), "task")
    if len(tasks) > most:
        title = f"The {most - most // 2} longest of {len(tasks):,} tasks, and {most // 2} at random"
    parts = [
        as_html(result._rows()),
        "<h2>Plan</h2>",
        as_html(result.plan.rows()),
        _folded(title, [_tasks(tasks, most)]),
    ]
    how = f"kernel {result.kernel} on {result.backend}, partition {result.plan.partition}"
    return _folded(f"The method: {how}, {plural(len(tasks), 'task')}", parts)


def _folded(title: str, parts: list[str]) -> str:
    return f"<details><summary>{html_text(title)}</summary>{''.join(parts)}</details>"


def _chosen(values: list[float]) -> list[int]:
    """Positions of at most MOST_WORKERS values: the largest, the smallest, and evenly spaced ones in between."""
    order = sorted(range(len(values)), key=lambda place: -values[place])
    if len(order) <= MOST_WORKERS:
        return sorted(order)
    return sorted(order[place] for place in {round(step) for step in np.linspace(0, len(order) - 1, MOST_WORKERS)})


def _of_all(shown: int, count: int) -> str:
    if shown == count:
        return ""
    return f"<p class='note'>{shown} of {count:,} workers, from the busiest to the least busy.</p>"


def _workers(result: TriangleCount, tasks: pd.DataFrame, times: Timeline, run: RunFacts | None) -> list[str]:
    parts = []
    if resumed := result.stats.resumed:
        text = (
            f"{plural(resumed, 'task was', 'tasks were')} in the checkpoint, which keeps no times: the timeline "
            "shows the others."
        )
        parts.append(f"<p class='note'>{text}</p>")
    if len(times.began):
        shown = _chosen(times.busy.tolist())
        parts += [f"<div class='wide'>{timeline_chart(times, shown)}</div>", _of_all(len(shown), len(times.workers))]
    import pandas as pd

    # The table has a row for each worker that ran a task or still runs.
    after, before = (run.after, run.before) if run else ({}, {})
    totals = tasks.groupby("worker").agg(
        tasks=("seconds", "size"), seconds=("seconds", "sum"), triangles=("triangles", "sum"), probes=("probes", "sum")
    )
    names = sorted({*totals.index, *after})
    totals = totals.reindex(names, fill_value=0)
    busy = totals["seconds"].to_numpy()
    table = pd.DataFrame(
        {
            "worker": names,
            "tasks": totals["tasks"].to_numpy(),
            "CPU seconds": busy.round(4),
            "triangles": totals["triangles"].to_numpy(),
            "probes a second": np.where(busy > 0, totals["probes"] / np.maximum(busy, 1e-9), 0).astype(np.int64),
        }
    )
    if after:
        table["largest memory"] = [format_size(after[name].peak) if name in after else "ended" for name in names]
        sent = [_sent(name, before, after) for name in names]
        if any(number is not None for number in sent):
            table["sent"] = ["" if number is None else format_size(number) for number in sent]
        if any(usage.spilled for usage in after.values()):
            table["spilled by Dask"] = [format_size(after[name].spilled) if name in after else "" for name in names]
    rows = _chosen(busy.tolist())
    return [*parts, _table(table.iloc[rows]), _of_all(len(rows), len(names)), _network(result, run)]


def _sent(name: str, before: dict[str, Usage], after: dict[str, Usage]) -> int | None:
    """Bytes that a worker sent during the count; None for a process that is no Dask worker or has ended."""
    sent = after[name].sent if name in after else None
    if sent is None:
        return None
    return sent - ((before[name].sent or 0) if name in before else 0)


def _network(result: TriangleCount, run: RunFacts | None) -> str:
    if run is None:
        return ""
    sent = [number for number in (_sent(name, run.before, run.after) for name in run.after) if number is not None]
    if not sent:
        return "<p class='note'>Network: one process counted; nothing was sent.</p>"
    rate = sum(sent) / max(result.seconds["total"], 1e-9)
    text = f"Network: workers sent {format_size(sum(sent))} to each other and to the client, {format_size(int(rate))} "
    return f"<p class='note'>{text}per second on average over the whole count.</p>"


def _memory(result: TriangleCount, run: RunFacts | None) -> list[str]:
    plan, rows = result.plan, []
    for usage in run.after.values() if run else ():
        began = run.before[usage.worker].resident if run and usage.worker in run.before else 0
        rows.append((f"{usage.worker}, beyond {format_size(began)}", max(0, usage.peak - began), False))
    rows = [rows[place] for place in _chosen([float(size) for _, size, _ in rows])]
    rows = [("plan: largest task", plan.bytes_per_task, True), ("plan: all blocks", plan.bytes_total, True), *rows]
    bars = _bars([(name, size, format_size(size), planned) for name, size, planned in rows])
    text = (
        f"The plan allows {format_size(plan.memory)} of data per worker. For each process the peak resident memory so "
        "far is shown, less its memory when the count began: with code loaded meanwhile, without GPU memory."
    )
    return [f"<div class='wide'>{bars}</div>", f"<p class='note'>{text}</p>"]


def _bars(rows: Sequence[tuple[str, float, str, bool]], names: tuple[str, str] | None = None) -> str:
    """Format a table of names, values, their texts, and whether each is planned: a bar for each, of the largest."""
    largest = max((value for _, value, _, _ in rows), default=0.0) or 1.0
    cells = (
        f"<tr><td>{html_text(name)}</td><td class='n'>{text}</td><td class='bar'>"
        f"<div{' class=plan' if planned else ''} style='width:{100 * value / largest:.1f}%'></div></td></tr>"
        for name, value, text, planned in rows
    )
    head = f"<tr><th>{names[0]}</th><th class='n'>{names[1]}</th><th></th></tr>" if names else ""
    return f"<table class='bars'>{head}{''.join(cells)}</table>"


# tasks


def _tasks(tasks: pd.DataFrame, most: int) -> str:
    ordered = tasks.sort_values("seconds", ascending=False, kind="stable")
    longest = len(ordered) if len(ordered) <= most else most - most // 2
    sample = ordered.iloc[longest:]
    sample = sample.sample(min(len(sample), most // 2), random_state=SEED).sort_index()
    return _table(ordered.iloc[:longest]) + (_table(sample) if len(sample) else "")
