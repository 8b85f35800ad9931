"""TRUST on load balance: figure 14 (layout of lists over lanes) and table 6 (imbalance at n, m).

Pandey et al., TPDS 2021, doi:10.1109/TPDS.2021.3064892. Figure 14 is time on a GPU; without one the steps are
counted on the graphs' real rows, and said to be counts.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import geometric_mean
from typing import Any

import numpy as np

from dasktc.api.graph import Graph
from dasktc.backends.csr import OrientedCSR
from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.figure import Figure, Plot, Statement, spread
from dasktc.bench.papers.graphs import Case
from dasktc.bench.papers.lanes import at_most, held, lists_of, warp_steps

__all__ = ["combinations", "imbalance"]

METHODS = ("WC", "SW (8)", "SW (16)", "PC", "VC")
TIMED = {
    "WC": {"VC": 0},
    "SW (8)": {"VC": 0, "LANES": 8},
    "SW (16)": {"VC": 0, "LANES": 16},
    "PC": {"VC": 2},
    "VC": {"VC": 1},
}
"""Macros of the CUDA kernel."""


# figure 14


def combinations(bench: Bench) -> Figure:
    """Figure 14: a warp, a subwarp of 8 or 16 a list, lists combined physically, virtually."""
    what = f"Speed over a warp a list (TRUST, figure 14; {bench.clock})"
    if not bench.cuda:
        what = "Warp steps of a warp a list over those of other layouts, a count (TRUST, figure 14)"
    figure = Figure(
        what,
        {"graph": "", "entries a list": ".1f"} | {method: ".3f" for method in METHODS},
        notes=["order collective; WC warp-centric, SW subwarps, PC and VC physical and virtual combination"],
    )
    if not bench.cuda:
        figure.notes.append("a step: 32 lanes look up an entry each, or copy one; PC copies every list by warps first")
    reasons, single = [], []
    for case in bench.cases:
        block = bench.block(case, "collective")
        of, mean = _seconds(bench, case) if bench.cuda else _steps(block)
        figure.rows.append([case.name, mean, *(of["WC"] / of[method] if of[method] else None for method in METHODS)])
        if bench.cuda:
            reasons.append(at_most(bench, case, "collective", of["WC"]))
            single.append(_in_single_rows(bench, case))
    speeds: dict[str, list[Any]] = {m: [row[2 + k] for row in figure.rows] for k, m in enumerate(METHODS)}
    figure.plot = Plot("bars", bench.names, dict(speeds), "", "over a warp a list", one=True)
    averages = {m: geometric_mean([s for s in speeds[m] if s]) for m in METHODS if any(speeds[m])}
    figure.statements = [replace(said, counted=not bench.cuda) for said in _layouts_said(averages, speeds)]
    if bench.cuda:
        virtual, _, subwarps, _ = figure.statements
        alone = geometric_mean(single)
        why = f"; {alone:.2f} where rows are taken one at a time; fewer idle lanes could bring {', '.join(reasons)}"
        figure.statements[0] = replace(virtual, here=virtual.here + why)
        figure.statements[2] = replace(subwarps, here=f"{subwarps.here}; {held()}")
    return figure


def _seconds(bench: Bench, case: Case) -> tuple[dict[str, float], float]:
    """Seconds by layout, and the mean entries of a list."""
    counts = {name: bench.count(case, "collective", "trust", macros) for name, macros in TIMED.items()}
    mean = counts["WC"].wedges / max(1, bench.block(case, "collective").edges)
    return {name: count.seconds for name, count in counts.items()}, mean


def _in_single_rows(bench: Bench, case: Case) -> float:
    """Speed of virtual combination over one list a warp, where a team takes one row at a time."""
    before, after = (bench.count(case, "collective", "trust", {"VC": way, "chunk": 1}).seconds for way in (0, 1))
    return before / after


def _steps(block: OrientedCSR) -> tuple[dict[str, int], float]:
    lists = lists_of(block)
    return warp_steps(lists), float(lists.size.mean()) if len(lists.size) else 0.0


def _layouts_said(averages: dict[str, float], speeds: dict[str, list[Any]]) -> list[Statement]:
    best = [max(("SW (8)", "SW (16)"), key=lambda m: speeds[m][k] or 0.0) for k in range(len(speeds["WC"]))]
    sub = f"{averages['SW (8)']:.2f} and {averages['SW (16)']:.2f} on average"
    return [
        Statement("virtual combination: 1.55 times on average", f"{averages['VC']:.2f}", averages["VC"] > 1),
        Statement("physical combination: 0.55 times", f"{averages['PC']:.2f}", averages["PC"] < 1),
        Statement("subwarps of 8 and 16: 1.40 and 1.45 times", sub, min(averages["SW (8)"], averages["SW (16)"]) > 1),
        Statement("which subwarp is best differs from graph to graph", f"best: {', '.join(best)}", len(set(best)) == 2),
    ]


# table 6


def imbalance(bench: Bench) -> Figure:
    """Table 6: the largest over the smallest task and block of the hashed 2D partition at n, m."""
    shapes = bench.sizes.tasks
    figure = Figure(
        f"Imbalance of n³ m tasks, largest over smallest (TRUST, table 6; {bench.clock})",
        {"graph": "", "n": "d", "m": "d", "tasks": ",d", "time IR": ".3f", "work IR": ".3f", "space IR": ".3f"},
        notes=[
            "time: of each task, the median of the runs; work: probes; space: edges of a block",
            "kernel trust, order collective, partition hash2d",
        ],
    )
    reasons = []
    for case in bench.cases[:2]:
        for n, m in shapes:
            graph = bench.prepared(case, partition="hash2d", parts=n, splits=m, kernel="trust", reorder="collective")
            seconds, probes = _task_times(graph, max(3, bench.runs))
            time, work = _over_least(np.median(seconds, axis=0).tolist()), _over_least(probes.tolist())
            figure.rows.append([case.name, n, m, n**3 * m, time, work, graph.plan.space_imbalance])
        reasons.append(f"{case.name} at n = {n}, m = {m}: {_why_unlike(seconds, probes, m)}")
    names = [case.name for case in bench.cases[:2]]
    spaces = {name: [row[6] for row in figure.rows if row[0] == name] for name in names}
    works = {f"{name}, work": [row[5] for row in figure.rows if row[0] == name] for name in names}
    places = [f"n={n} m={m}" for n, m in shapes]
    series: dict[str, Any] = works | {f"{name}, space": values for name, values in spaces.items()}
    figure.plot = Plot("bars", places, series, "", "largest / smallest", one=True)
    figure.statements = _imbalance_said(figure.rows, "; ".join(reasons))
    return figure


def _task_times(graph: Graph, runs: int) -> tuple[Any, Any]:
    """Seconds, shape (runs, tasks), and probes of each task."""
    counts = [sorted(graph.triangle_count().records) for _ in range(runs)]
    seconds = np.array([[record.count.seconds for record in of] for of in counts])
    return seconds, np.array([record.count.probes for record in counts[0]])


def _why_unlike(seconds: Any, probes: Any, splits: int) -> str:
    """What a task's time is besides its work: what it takes with none of it, and how it differs from run to run.

    Parameters
    ----------
    seconds : array, shape (runs, tasks)
    probes : array, shape (tasks,)
    splits : int
        The tasks of a triple follow each other.
    """
    typical = np.median(seconds, axis=0)
    slope, fixed = np.polyfit(probes, typical, 1) if np.ptp(probes) else (0.0, float(typical.mean()))
    spread_of = typical.var()
    told = 1 - float((typical - fixed - slope * probes).var()) / spread_of if spread_of else 1.0
    again = seconds.max(axis=0) / np.maximum(seconds.min(axis=0), 1e-9)
    sampled = ""
    if splits == 2:
        time, work = (float(of[::2].sum() / max(1e-9, of[1::2].sum())) for of in (typical, probes))
        sampled = (
            f", the first splits take {time:.2f} times as long as the second ones and make {work:.2f} times the probes"
        )
    return (
        f"a task takes {1e3 * typical.mean():.3f} ms, {1e3 * max(0.0, fixed):.3f} ms of it without any probe, probes "
        f"tell {100 * told:.0f} % of the differences, the same task differs {np.median(again):.2f} to "
        f"{again.max():.2f} times from run to run{sampled}"
    )


def _over_least(values: list[Any]) -> float | None:
    return max(values) / min(values) if min(values) else None


def _imbalance_said(rows: list[list[Any]], why: str) -> list[Statement]:
    limit = "1.7 of a partition by ranges"
    space, work, time = ([row[k] for row in rows if row[k] is not None] for k in (6, 5, 4))
    return [
        Statement(f"space IR 1.01 to 1.06 at n = 8, against the {limit}", spread(space), max(space, default=9) < 1.7),
        Statement(
            f"time IR 1.11 to 1.12 at n = 8, m = 1 and 2, against the {limit}",
            f"time {spread(time)}, work {spread(work)}; {why}",
            max(time, default=9) < 1.7 and len(time) == len(rows),
        ),
    ]
