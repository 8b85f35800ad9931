"""Draws the plot of `dasktc bench scaling`: speed-up over workers, simulated and real (TRUST, fig. 15)."""

from __future__ import annotations

import base64
import html
import io
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dasktc.bench.report import Report
from dasktc.errors import InputError

if TYPE_CHECKING:
    from dasktc.bench.curves import Curve

__all__ = ["check", "draw"]

SUFFIXES = (".png", ".svg", ".pdf", ".html")
MISSING = "no plot: matplotlib is not installed; pip install 'dasktc[bench]'"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><h1>{title}</h1><img alt="speed-up over workers" src="data:image/png;base64,{picture}" style="max-width:100%">
<pre>{text}</pre></body></html>
"""


def check(plots: tuple[str, ...]) -> None:
    """Refuse files that cannot be drawn, before anything is measured.

    Raises
    ------
    InputError
        A file has another format, or its folder does not exist.
    """
    for plot in map(Path, plots):
        if plot.suffix not in SUFFIXES:
            raise InputError(f"--plot {plot} is none of {', '.join(SUFFIXES)}: the name says what is drawn; change it")
        if not plot.absolute().parent.is_dir():
            raise InputError(f"--plot {plot}: its folder is not there; make it, or choose another")


def draw(curves: list[Curve], report: Report, out: Path) -> None:
    """Draw the curves; without matplotlib, note in the report that there is no plot.

    Parameters
    ----------
    curves : list of Curve
    report : Report
        The picture shows its machine and command; an .html page contains all of it.
    out : Path
    """
    if find_spec("matplotlib") is None:
        notes = report.sections[-1].notes
        notes += [MISSING] if MISSING not in notes else []
        return
    if out.suffix != ".html":
        _figure(curves, report).savefig(out, dpi=150)
        return
    picture = io.BytesIO()
    _figure(curves, report).savefig(picture, format="png", dpi=110)
    title = html.escape(report.command)
    text, encoded = html.escape(str(report)), base64.b64encode(picture.getvalue()).decode()
    out.write_text(PAGE.format(title=title, picture=encoded, text=text), encoding="utf-8")


def _figure(curves: list[Curve], report: Report) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7.5), layout="constrained")
    kernel, count = figure.subplots(1, 2, sharex=True)
    _ideal(kernel, curves)
    _ideal(count, curves)
    for number, curve in enumerate(curves):
        _curve(kernel, curve, f"C{number}", "kernel")
        _curve(count, curve, f"C{number}", "seconds")
    kernel.set_title("kernel: counting time of the busiest worker, blocks in place")
    count.set_title("count: with the scheduler's time a task, and blocks that are fetched")
    for axes in (kernel, count):
        axes.set(xlabel="workers (lines: simulated; circles: real)")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.grid(alpha=0.3)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if x >= 1 else f"1/{1 / x:,.0f}")
    kernel.set_ylabel("speed-up over one worker")
    kernel.legend(loc="upper left", fontsize=9)
    about = f"{report.command}\n{report.facts['machine']}"
    figure.suptitle("\n".join(textwrap.fill(line, 150) for line in about.splitlines()), fontsize=9)
    return figure


def _ideal(axes: Any, curves: list[Curve]) -> None:
    workers = [point.priced.workers for point in curves[0].points]
    axes.plot(workers, workers, color="0.7", linestyle=":", label="ideal")


def _curve(axes: Any, curve: Curve, color: str, quantity: str) -> None:
    simulated = {
        point.priced.workers: (point.ideal.kernel if quantity == "kernel" else point.whole.seconds)
        for point in curve.points
    }
    real = {run.workers: getattr(run, quantity) for run in curve.real}
    axes.plot(list(simulated), _over_one(simulated), color=color, marker=".", label=curve.source.name)
    axes.plot(list(real), _over_one(real), color=color, marker="o", markersize=11, linestyle="", fillstyle="none")


def _over_one(seconds: dict[int, float]) -> list[float]:
    return [seconds[1] / value for value in seconds.values()]
