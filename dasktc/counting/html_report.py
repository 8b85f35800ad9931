"""An HTML page about a count, its plan, stages and tasks, in one file that needs no other."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dasktc.executors.environment import collect

if TYPE_CHECKING:
    from dasktc.counting.result import TriangleCount

__all__ = ["page"]

MOST_TASKS = 200
"""Rows of the table of tasks."""

STYLE = """
:root { color-scheme: light dark; --bar: #3a78c2; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { white-space: nowrap; }
th, td { padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; } td.bar { width: 22rem; }
td.bar div { background: var(--bar); height: .8rem; margin-top: .35rem; min-width: 1px; }
.wide { overflow-x: auto; }
"""


def page(result: TriangleCount, source: str) -> str:
    """Describe a count: its numbers, its plan, where the time went, and its tasks.

    Parameters
    ----------
    result : TriangleCount
    source : str
        What was counted.

    Returns
    -------
    str
        HTML that needs no other file.
    """
    title = f"{result.triangles:,} triangles in {source}"
    versions = {name: number for name, number in collect()["versions"].items() if number}
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        _facts(result.summary()),
        "<h2>Wall time by stage, seconds</h2>",
        _bars(("stage", "seconds"), [(name, value) for name, value in result.seconds.items() if name != "total"]),
        "<h2>Counting by worker, CPU seconds</h2>",
        _bars(("worker", "seconds"), _by_worker(result)),
        "<h2>Plan</h2>",
        _facts(result.plan.rows()),
        f"<h2>{_tasks_title(result)}</h2>",
        _tasks(result),
        "<h2>Versions</h2>",
        _facts(versions.items()),
    ]
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{''.join(cells)}</table>"


def _bars(names: tuple[str, str], rows: list[tuple[str, float]]) -> str:
    """A table with a bar for each value, the longest for the largest."""
    largest = max((value for _, value in rows), default=0.0) or 1.0
    cells = (
        f"<tr><td>{html.escape(name)}</td><td class='n'>{value:.3f}</td>"
        f"<td class='bar'><div style='width:{100 * value / largest:.1f}%'></div></td></tr>"
        for name, value in rows
    )
    return f"<table><tr><th>{names[0]}</th><th class='n'>{names[1]}</th><th></th></tr>{''.join(cells)}</table>"


def _by_worker(result: TriangleCount) -> list[tuple[str, float]]:
    busy = result.tasks.groupby("worker")["seconds"].sum().sort_index()
    return [(str(worker), float(seconds)) for worker, seconds in busy.items()]


def _tasks_title(result: TriangleCount) -> str:
    count = len(result.records)
    return f"{count:,} tasks" if count <= MOST_TASKS else f"The {MOST_TASKS} longest of {count:,} tasks"


def _tasks(result: TriangleCount) -> str:
    longest: Any = result.tasks.sort_values("seconds", ascending=False, kind="stable").head(MOST_TASKS)
    formats: Any = {name: "{:,}".format for name in ("triangles", "wedges", "probes")} | {"seconds": "{:.4f}".format}
    return f"<div class='wide'>{longest.to_html(index=False, border=0, formatters=formats)}</div>"
