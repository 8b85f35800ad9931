"""Formats rows of (name, text) as lines for a terminal and as an HTML table for Jupyter."""

from __future__ import annotations

from collections.abc import Iterable

from dasktc.errors import html_text

__all__ = ["Rows", "Summarised", "as_html", "as_text"]

Rows = list[tuple[str, str]]


class Summarised:
    """An object that shows itself as a summary: in a REPL, in Jupyter, and with `summary()`; `_rows` has its lines."""

    _width = 11
    """Least number of characters of the column of names."""

    def _rows(self) -> Rows:
        """Return the rows of (name, text) of the summary."""
        raise NotImplementedError

    def summary(self) -> None:
        """Print the summary, which `repr` returns as text and Jupyter shows as a table."""
        print(repr(self))

    def __repr__(self) -> str:
        return as_text(self._rows(), self._width)

    def _repr_html_(self) -> str:
        return as_html(self._rows())


def as_text(rows: Rows, width: int = 0) -> str:
    """Format rows as text, one line each, with a column of names of at least `width` characters."""
    width = max([width, *(len(name) + 1 for name, _ in rows)])
    return "\n".join(f"{name:<{width}}{text}" for name, text in rows)


def as_html(rows: Iterable[tuple[str, str]]) -> str:
    """Format rows as an HTML table; names and texts are escaped."""
    lines = (
        f"<tr><th style='text-align:left;white-space:nowrap'>{html_text(name)}</th>"
        f"<td style='text-align:left'>{html_text(text)}</td></tr>"
        for name, text in rows
    )
    return f"<table>{''.join(lines)}</table>"
