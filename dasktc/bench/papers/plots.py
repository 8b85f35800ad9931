"""Draws a figure as PNG, with matplotlib: an optional extra, imported here alone."""

from __future__ import annotations

from io import BytesIO
from textwrap import fill
from typing import Any

from dasktc.bench.papers.figure import Figure, Plot

__all__ = ["draw"]

COLORS = ("#2f6fb3", "#d97b29", "#3b9270", "#8a5aa8", "#b8443f", "#7a7a7a", "#c2a02c", "#4fb3c9")
MARKERS = "osD^vPX*"
SIZE, DPI = (9.0, 5.4), 120
GREY = "#555555"
WIDE = 20
"""Largest over smallest number from which on a logarithmic axis is one."""
LETTERS = 85
"""Names below the axis that take more are turned."""


def draw(figure: Figure, device: str, command: str) -> bytes:
    """Draw a figure; title, graphs, device and command stand on it.

    Parameters
    ----------
    figure : Figure
    device, command : str

    Returns
    -------
    bytes
        PNG.
    """
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=SIZE, dpi=DPI, layout="constrained")
    axes = canvas.add_subplot()
    if figure.plot is not None:
        _DRAWN[figure.plot.kind](axes, figure.plot)
        _dress(axes, figure.plot)
    axes.set_title(fill(f"{figure.name}: {figure.title}", 96), fontsize=11, loc="left", pad=10)
    canvas.supxlabel(_caption(figure, device, command), fontsize=8, color=GREY, x=0.01, ha="left")
    image = BytesIO()
    canvas.savefig(image, format="png")
    return image.getvalue()


def _caption(figure: Figure, device: str, command: str) -> str:
    lines = [f"by proxy: {figure.proxy}"] * bool(figure.proxy)
    lines += [f"graphs: {'; '.join(figure.graphs)}", f"device: {device}", f"command: {command}"]
    return "\n".join(fill(line, 150) for line in lines)


def _dress(axes: Any, plot: Plot) -> None:
    from matplotlib.ticker import StrMethodFormatter

    axes.set_ylabel(plot.up)
    axes.set_xlabel(plot.across)
    values = [value for series in plot.series.values() for value in series if value]
    if plot.log and values and max(values) > WIDE * min(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.4g}"))
    if plot.one:
        axes.axhline(1, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    turned = len(plot.x) * max(map(len, plot.x), default=0) > LETTERS
    axes.set_xticks(range(len(plot.x)), plot.x, rotation=35 if turned else 0, ha="right" if turned else "center")
    axes.tick_params(labelsize=9)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    filled = any(value is not None for series in plot.series.values() for value in series)
    if len(plot.series) > 1 and filled:
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _lines(axes: Any, plot: Plot) -> None:
    for k, (name, values) in enumerate(plot.series.items()):
        heights = [float("nan") if value is None else value for value in values]
        axes.plot(heights, marker=MARKERS[k % len(MARKERS)], markersize=5, color=COLORS[k % len(COLORS)], label=name)


def _bars(axes: Any, plot: Plot) -> None:
    series = {name: values for name, values in plot.series.items() if any(value is not None for value in values)}
    width = 0.8 / max(1, len(series))
    for k, (name, values) in enumerate(series.items()):
        places = [i + (k - (len(series) - 1) / 2) * width for i, value in enumerate(values) if value is not None]
        heights = [value for value in values if value is not None]
        axes.bar(places, heights, 0.92 * width, color=COLORS[k % len(COLORS)], label=name)


def _stacked(axes: Any, plot: Plot) -> None:
    below = [0.0] * len(plot.x)
    for k, (name, values) in enumerate(plot.series.items()):
        heights = [value or 0.0 for value in values]
        axes.bar(range(len(plot.x)), heights, 0.7, bottom=below, color=COLORS[k % len(COLORS)], label=name)
        below = [b + h for b, h in zip(below, heights, strict=True)]


_DRAWN = {"lines": _lines, "bars": _bars, "stacked": _stacked}
