"""Draws the charts of the HTML report as SVG; colours come from the page's style, so they follow its theme."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dasktc.counting.timeline import Timeline
from dasktc.errors import html_text

__all__ = ["Axis", "line_chart", "short", "timeline_chart"]

Array = Any
WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 18, 10, 44
"""Margins of a chart's frame, in units of the chart."""
MOST_BARS = 1_500
"""Largest number of tasks drawn one by one; above it the busy share of the lanes is drawn."""
MOST_LANES = 48
COLUMNS = 240
"""Number of time intervals for these shares."""
SPAN, LANE, NAMES = 940, 14, 190
"""Width of the timeline, height of a lane, and width of its workers' names."""


class Axis(NamedTuple):
    """An axis of a chart."""

    label: str
    log: bool = True


class _Scale(NamedTuple):
    """Maps values to positions on an axis, and holds the tick values."""

    place: Callable[[float], float]
    ticks: list[float]


def short(value: float) -> str:
    """Format a tick value, as 0.2, 300, 10k or 2M."""
    for power, letter in ((9, "G"), (6, "M"), (3, "k")):
        if abs(value) >= 10**power:
            return f"{value / 10**power:.4g}{letter}"
    return f"{value:.3g}"


def line_chart(x: Sequence[float], y: Sequence[float], tooltips: Sequence[str], axes: tuple[Axis, Axis]) -> str:
    """Draw points joined by a line.

    Parameters
    ----------
    x, y : sequence of float, at least one each
        Above 0 on a logarithmic axis.
    tooltips : sequence of str
        Of the points.
    axes : (Axis, Axis)
        Axes of x and of y.
    """
    x_scale = _scale(x, axes[0].log, LEFT, WIDTH - RIGHT)
    y_scale = _scale([0.0, *y] if not axes[1].log else y, axes[1].log, HEIGHT - BOTTOM, TOP)
    parts = []
    for value in x_scale.ticks:
        place = x_scale.place(value)
        parts.append(f'<line class="grid" x1="{place:.1f}" x2="{place:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{short(value)}</text>')
    for value in y_scale.ticks:
        place = y_scale.place(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place:.1f}" y2="{place:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{place + 4:.1f}" text-anchor="end">{short(value)}</text>')
    points = [(x_scale.place(a), y_scale.place(b)) for a, b in zip(x, y, strict=True)]
    parts.append(f'<polyline class="curve" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>')
    parts += [
        f'<circle class="point" cx="{a:.1f}" cy="{b:.1f}" r="3.2"><title>{html_text(text)}</title></circle>'
        for (a, b), text in zip(points, tooltips, strict=True)
    ]
    middle, half = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    label, y_label = (html_text(axis.label) for axis in axes)
    parts.append(f'<text class="label" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{label}</text>')
    rotation = f'transform="translate(13 {half}) rotate(-90)"'
    parts.append(f'<text class="label" {rotation} text-anchor="middle">{y_label}</text>')
    return _svg(WIDTH, HEIGHT, parts, f"{axes[1].label} by {axes[0].label}")


def timeline_chart(times: Timeline, shown: Sequence[int]) -> str:
    """Draw the tasks of some workers over time: each as a bar or, if there are many, as the busy share of the time.

    `shown` has the numbers of the workers. There is at least one task.
    """
    single = len(times.began) <= MOST_BARS and int(times.lanes[list(shown)].sum()) <= MOST_LANES
    scale = _scale([0.0, times.seconds or 1e-9], False, NAMES, SPAN - 12, nice=False)
    parts, top = [], 4
    for worker in shown:
        lanes = int(times.lanes[worker]) if single else 1
        height = lanes * LANE
        name = times.workers[worker]
        parts.append(f'<text x="{NAMES - 8}" y="{top + height / 2 + 4:.1f}" text-anchor="end">'
                     f"{html_text(name if len(name) <= 30 else '…' + name[-29:])}</text>")  # fmt: skip
        parts.append(f'<rect class="lane" x="{NAMES}" y="{top}" width="{SPAN - 12 - NAMES}" height="{height - 2}"/>')
        parts += (_tasks if single else _shares)(times, worker, scale, top)
        top += height + 4
    for value in scale.ticks:
        x = scale.place(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{top}"/>')
        parts.append(f'<text x="{x:.1f}" y="{top + 14}" text-anchor="middle">{short(value)}</text>')
    middle = (NAMES + SPAN) / 2
    parts.append(f'<text class="label" x="{middle}" y="{top + 32}" text-anchor="middle">'
                 "seconds since the first task began</text>")  # fmt: skip
    return _svg(SPAN, top + 38, parts, "counting tasks by worker over time")


def _tasks(times: Timeline, worker: int, scale: _Scale, top: int) -> list[str]:
    drawn = []
    for task in np.flatnonzero(times.worker == worker):
        began, ended = float(times.began[task]), float(times.ended[task])
        x, end = scale.place(began), scale.place(ended)
        y = top + int(times.lane[task]) * LANE
        span = f"{began:.4g} to {ended:.4g} s"
        drawn.append(f'<rect class="task" x="{x:.2f}" y="{y}" width="{max(0.6, end - x):.2f}" height="{LANE - 2}">'
                     f"<title>{span}</title></rect>")  # fmt: skip
    return drawn


def _shares(times: Timeline, worker: int, scale: _Scale, top: int) -> list[str]:
    """Draw the share of busy lanes as the height of an area."""
    low, high = top + LANE - 2, top
    places = [scale.place(time) for time in np.linspace(0, times.seconds, COLUMNS + 1)]
    steps = []
    for share, start, end in zip(times.shares_of(worker, COLUMNS), places[:-1], places[1:], strict=True):
        y = low - (low - high) * min(1.0, float(share))
        steps.append(f"{start:.1f},{y:.1f} {end:.1f},{y:.1f}")
    return [f'<polygon class="task" points="{places[0]:.1f},{low} {" ".join(steps)} {places[-1]:.1f},{low}"/>']


def _scale(values: Sequence[float], log: bool, first: float, last: float, nice: bool = True) -> _Scale:
    """Make a scale from `first` to `last` that contains all values; with `nice` it ends at ticks."""
    low, high = float(min(values)), float(max(values))
    if log:
        ticks = _decades(low, high)
        a, b = math.log(min(low, ticks[0])), math.log(max(high, ticks[-1]))
    else:
        ticks = _steps(high)
        a, b = 0.0, max(high, ticks[-1]) if nice else high
        ticks = [tick for tick in ticks if tick <= b]

    def place(value: float) -> float:
        return first + (last - first) * ((math.log(value) if log else value) - a) / ((b - a) or 1)

    return _Scale(place, ticks)


def _decades(low: float, high: float) -> list[float]:
    """Tick values of a logarithmic axis: powers of ten around the values; if there are few, also 2 and 5 times each."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    if last - first <= 2:
        marks = [10.0**power * digit for power in range(first, last + 1) for digit in (1, 2, 5)]
        begin = max(place for place, mark in enumerate(marks) if mark <= low * 1.001 or place == 0)
        end = min(place for place, mark in enumerate(marks) if mark >= high * 0.999 or place == len(marks) - 1)
        return marks[begin : max(end, begin + 1) + 1]
    step = -(-(last - first) // 7)
    return [10.0**power for power in range(first, last + step, step)]


def _steps(high: float) -> list[float]:
    """Tick values from 0 on, in steps of 1, 2 or 5 times a power of ten."""
    high = high or 1.0
    size = 10.0 ** math.floor(math.log10(high / 4))
    step = next(size * digit for digit in (1, 2, 5, 10) if high / (size * digit) <= 5)
    return [step * number for number in range(math.ceil(high / step - 1e-9) + 1)]


def _svg(width: float, height: float, parts: list[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{html_text(label)}" '
        f'style="max-width:{width * 1.25:.0f}px">{"".join(parts)}</svg>'
    )
