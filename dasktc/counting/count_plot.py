"""Plots the time of a count by stage and worker with matplotlib, which is imported on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.counting.tasks import Record
from dasktc.counting.timeline import timeline
from dasktc.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_count", "pyplot"]

MOST_BARS = 5_000
"""Largest number of tasks drawn one by one; above it the busy share of the workers is drawn."""
COLUMNS = 400
"""Number of time intervals for these shares."""
MOST_NAMES = 40
"""Largest number of workers named on an axis."""


def pyplot() -> Any:
    """Import matplotlib.pyplot, or raise a one-line InputError if it is missing."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise InputError(f"matplotlib cannot be imported ({error}): plots need it; pip install matplotlib") from error
    return pyplot


def plot_count(records: list[Record], seconds: dict[str, float], resumed: int, axes: Sequence[Axes] | None) -> Figure:
    """Plot the stages and the timeline of a count; see `TriangleCount.plot`."""
    drawing, times = pyplot(), timeline(records)
    if axes is None:
        height = 1.8 + 0.28 * min(MOST_NAMES, max(4, len(times.workers)))
        _, axes = drawing.subplots(1, 2, figsize=(11, height), layout="constrained", width_ratios=(1, 2))
    stages: Axes
    tasks: Axes
    stages, tasks = axes
    # Left: the seconds of each stage.
    wall = {name: value for name, value in seconds.items() if name != "total"}
    bars = stages.barh(list(wall), list(wall.values()))
    stages.bar_label(bars, fmt="%.3g", padding=3)
    stages.invert_yaxis()
    stages.margins(x=0.2)
    stages.set(title=f"Stages: {seconds['total']:.3g} s in all", xlabel="wall seconds")
    # Right: tasks in the lanes of their worker or, where they are many, how busy the worker was at each time.
    rows = np.concatenate([[0], times.lanes.cumsum()])
    if not len(times.began):
        tasks.text(0.5, 0.5, "all tasks were in the checkpoint", ha="center", va="center", transform=tasks.transAxes)
    elif len(times.began) <= MOST_BARS:
        y = rows[times.worker] + times.lane
        tasks.barh(y + 0.5, times.ended - times.began, left=times.began, height=0.8, edgecolor="white", linewidth=0.3)
    else:
        worker_shares = [times.shares_of(worker, COLUMNS) for worker in range(len(times.workers))]
        shares = np.repeat(np.stack(worker_shares), times.lanes, axis=0)
        corners = np.linspace(0, times.seconds, COLUMNS + 1), np.arange(rows[-1] + 1)
        mesh = tasks.pcolormesh(*corners, shares, vmin=0, vmax=1, cmap="Blues", rasterized=True)
        tasks.figure.colorbar(mesh, ax=tasks, label="share of the time in counting tasks")
    step = -(-len(times.workers) // MOST_NAMES) or 1
    middle = (rows[:-1] + rows[1:]) / 2
    tasks.set_yticks(middle[::step], times.workers[::step])
    tasks.set_ylim(max(1, rows[-1]), 0)
    remark = f", {resumed:,} from the checkpoint not shown" if resumed else ""
    tasks.set(title=f"{len(records):,} counting tasks by worker{remark}", xlabel="seconds since the first began")
    figure: Any = stages.figure
    result: Figure = figure
    return result
