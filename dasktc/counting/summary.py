"""Formats rows of (name, text) as lines for a terminal and as an HTML table for Jupyter."""

from __future__ import annotations

from dasktc.errors import html_text

__all__ = ["Rows", "as_html", "as_text"]

Rows = list[tuple[str, str]]


def as_text(rows: Rows) -> str:
    """Format rows as text, one line each."""
    return "\n".join(f"{name:<11}{text}" for name, text in rows)


def as_html(rows: Rows) -> str:
    """Format rows as an HTML table; names and texts are escaped."""
    lines = (
        f"<tr><th style='text-align:left;white-space:nowrap'>{html_text(name)}</th>"
        f"<td style='text-align:left'>{html_text(text)}</td></tr>"
        for name, text in rows
    )
    return f"<table>{''.join(lines)}</table>"
