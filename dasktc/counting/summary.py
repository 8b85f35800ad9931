"""Rows of (name, text) for people: as lines of a terminal, and as the HTML table that Jupyter shows."""

from __future__ import annotations

import html

__all__ = ["Rows", "as_html", "as_text"]

Rows = list[tuple[str, str]]


def as_text(rows: Rows) -> str:
    """Format rows as text, one line each."""
    return "\n".join(f"{name:<11}{text}" for name, text in rows)


def as_html(rows: Rows) -> str:
    """Write a table; names and texts are escaped."""
    lines = (
        f"<tr><th style='text-align:left;white-space:nowrap'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in rows
    )
    return f"<table>{''.join(lines)}</table>"
