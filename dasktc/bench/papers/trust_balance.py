"""TRUST's figures about balance: 14 (who takes which list), and table 6 (imbalance at n, m).

Pandey et al., TPDS 2021, doi:10.1109/TPDS.2021.3064892. Figure 14 is time on a GPU; without one the steps are
counted on the graphs' real rows, and said to be counts.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from dasktc.bench.papers.bench import Bench, host_arrays, lengths
from dasktc.bench.papers.figure import Figure, Plot, Statement, spread
from dasktc.bench.papers.graphs import Case
from dasktc.csr import OrientedCSR
from dasktc.graph import Graph

__all__ = ["combinations", "imbalance", "warp_steps"]

WARP = 32
LANES = (32, 8, 16)
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
    for case in bench.cases:
        block = bench.block(case, "collective")
        of = _seconds(bench, case) if bench.cuda else warp_steps(block)
        mean = float(lengths(block)[2].mean()) if block.edges else 0.0
        figure.rows.append([case.name, mean, *(of["WC"] / of[method] if of[method] else None for method in METHODS)])
    speeds: dict[str, list[Any]] = {m: [row[2 + k] for row in figure.rows] for k, m in enumerate(METHODS)}
    figure.plot = Plot("bars", bench.names, dict(speeds), "", "over a warp a list", one=True)
    averages = {m: geometric_mean([s for s in speeds[m] if s]) for m in METHODS if any(speeds[m])}
    figure.statements = [replace(said, counted=not bench.cuda) for said in _layouts_said(averages, speeds)]
    return figure


def _seconds(bench: Bench, case: Case) -> dict[str, float]:
    return {name: bench.count(case, "collective", "trust", macros).seconds for name, macros in TIMED.items()}


def _layouts_said(averages: dict[str, float], speeds: dict[str, list[Any]]) -> list[Statement]:
    best = [max(("SW (8)", "SW (16)"), key=lambda m: speeds[m][k] or 0.0) for k in range(len(speeds["WC"]))]
    sub = f"{averages['SW (8)']:.2f} and {averages['SW (16)']:.2f} on average"
    return [
        Statement("virtual combination: 1.55 times on average", f"{averages['VC']:.2f}", averages["VC"] > 1),
        Statement("physical combination: 0.55 times", f"{averages['PC']:.2f}", averages["PC"] < 1),
        Statement("subwarps of 8 and 16: 1.40 and 1.45 times", sub, min(averages["SW (8)"], averages["SW (16)"]) > 1),
        Statement("which subwarp is best differs from graph to graph", f"best: {', '.join(best)}", len(set(best)) == 2),
    ]


def warp_steps(block: OrientedCSR) -> dict[str, int]:
    """Steps of all warps, a warp a row, by layout of its lists.

    Parameters
    ----------
    block : OrientedCSR
        A whole graph.

    Returns
    -------
    dict of str to int
    """
    u, _, size = lengths(block)
    offsets = host_arrays(block)[0]
    steps = {lanes: _rounds(u, np.arange(len(u)) - offsets[u], size, lanes) for lanes in LANES}
    rows = np.bincount(u, size, minlength=block.rows).astype("int64") if len(u) else np.zeros(1, "int64")
    together = int(-(-rows // WARP).sum())
    return {
        "WC": steps[32],
        "SW (8)": steps[8],
        "SW (16)": steps[16],
        "PC": steps[32] + together,
        "VC": together,
    }


def _rounds(u: Any, place: Any, size: Any, lanes: int) -> int:
    """Steps where subwarps take a row's lists in turn, each its own, and wait for each other at the end of the row."""
    teams = WARP // lanes
    if not len(u):
        return 0
    busy = np.bincount(u * teams + place % teams, -(-size // lanes), minlength=(int(u.max()) + 1) * teams)
    return int(busy.reshape(-1, teams).max(axis=1).sum())


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
    for case in bench.cases[:2]:
        for n, m in shapes:
            graph = bench.prepared(case, partition="hash2d", parts=n, splits=m, kernel="trust", reorder="collective")
            time, work = _task_ratios(graph, max(3, bench.runs))
            figure.rows.append([case.name, n, m, n**3 * m, time, work, graph.plan.space_imbalance])
    names = [case.name for case in bench.cases[:2]]
    spaces = {name: [row[6] for row in figure.rows if row[0] == name] for name in names}
    works = {f"{name}, work": [row[5] for row in figure.rows if row[0] == name] for name in names}
    places = [f"n={n} m={m}" for n, m in shapes]
    series: dict[str, Any] = works | {f"{name}, space": values for name, values in spaces.items()}
    figure.plot = Plot("bars", places, series, "", "largest / smallest", one=True)
    figure.statements = _imbalance_said(figure.rows)
    return figure


def _task_ratios(graph: Graph, runs: int) -> tuple[float | None, float | None]:
    """Seconds and probes of the largest over those of the smallest task."""
    counts = [graph.triangle_count().records for _ in range(runs)]
    seconds = [median(record.count.seconds for record in of) for of in zip(*counts, strict=True)]
    probes = [record.count.probes for record in counts[0]]
    return _over_least(seconds), _over_least(probes)


def _over_least(values: list[Any]) -> float | None:
    return max(values) / min(values) if min(values) else None


def _imbalance_said(rows: list[list[Any]]) -> list[Statement]:
    limit = "1.7 of a partition by ranges"
    space, work, time = ([row[k] for row in rows if row[k] is not None] for k in (6, 5, 4))
    return [
        Statement(f"space IR 1.01 to 1.06 at n = 8, against the {limit}", spread(space), max(space, default=9) < 1.7),
        Statement(
            f"time IR 1.11 to 1.12 at n = 8, m = 1 and 2, against the {limit}",
            f"time {spread(time)}, work {spread(work)}",
            max(time, default=9) < 1.7 and len(time) == len(rows),
        ),
    ]
