"""Writes all figures to one self-contained HTML page."""

from __future__ import annotations

import html
from base64 import b64encode

from dasktc.bench.papers.figure import Figure, Verdict
from dasktc.bench.report import Section
from dasktc.reports.html_report import STYLE

__all__ = ["page"]

MORE = """
img { max-width: 100%; background: white; } dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0 0 0 1.2rem; }
.yes { color: #2e8b57; } .no { color: #c0392b; } small { display: block; color: #888; }
"""
TITLE = "What the papers show, measured again"


def page(figures: list[Figure], images: dict[str, bytes], facts: dict[str, str], directions: Section) -> str:
    """Write the HTML page of the figures.

    Parameters
    ----------
    figures : list of Figure
    images : dict of str to bytes
        PNG by figure.
    facts : dict of str to str
        Command, machine, versions.
    directions : Section
        What agrees.

    Returns
    -------
    str
        HTML.
    """
    rows = "".join(f"<tr><th>{html.escape(n)}</th><td>{html.escape(text)}</td></tr>" for n, text in facts.items())
    parts = [f"<h1>{TITLE}</h1><table>{rows}</table>", f"<h2>{html.escape(directions.title)}</h2>", _table(directions)]
    parts += [_figure(figure, images[figure.name]) for figure in figures]
    head = f'<meta charset="utf-8"><title>{TITLE}</title><style>{STYLE}{MORE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _figure(figure: Figure, image: bytes) -> str:
    name, title = html.escape(figure.name), html.escape(figure.title)
    picture = f'<img alt="{title}" src="data:image/png;base64,{b64encode(image).decode()}">'
    verdicts = "".join(map(_verdict, figure.verdicts))
    marked = f"<p>By proxy: {html.escape(figure.proxy)}.</p>" if figure.proxy else ""
    return f'<h2 id="{name}">{name}: {title}</h2>{marked}{picture}<dl>{verdicts}</dl>{_table(figure)}'


def _verdict(verdict: Verdict) -> str:
    kind = {True: "yes", False: "no", None: ""}[verdict.agrees]
    paper, finding, no = html.escape(verdict.paper), html.escape(verdict.here), html.escape(verdict.no)
    answer = f'Agrees: <span class="{kind}">{html.escape(verdict.answer)}</span>'
    return f"<dt>Paper: {paper}</dt><dd>Here: {finding}. {answer}<small>{f'A no if: {no}' if no else ''}</small></dd>"


def _table(section: Section) -> str:
    sides = [' class="n"' if form else "" for form in section.columns.values()]
    head = "".join(f"<th{side}>{html.escape(name)}</th>" for side, name in zip(sides, section.columns, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td{side}>{html.escape(text)}</td>" for side, text in zip(sides, row, strict=True)) + "</tr>"
        for row in section.texts()
    )
    notes = "".join(f"<small>{html.escape(note)}</small>" for note in section.notes)
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>{notes}'
