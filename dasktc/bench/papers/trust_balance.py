"""TRUST's figures about balance: 8 (chunk size), 14 (who takes which list), table 6 (imbalance at n, m).

Pandey et al., TPDS 2021, doi:10.1109/TPDS.2021.3064892. Figures 8 and 14 are time on a GPU; without one the
schedules themselves are counted on the graphs' real rows, and said to be counts.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heapreplace
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from dasktc.backend.launch_trust import chunk_rows, chunks
from dasktc.bench.papers.bench import NEEDS_GPU, Bench, host_arrays, lengths
from dasktc.bench.papers.device import launch_of
from dasktc.bench.papers.figure import Figure, Plot, Statement, spread
from dasktc.bench.papers.graphs import Case
from dasktc.csr import OrientedCSR
from dasktc.graph import Graph

__all__ = ["chunk_size", "combinations", "imbalance", "makespan", "warp_steps"]

CHUNKS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32)
AUTO = 0
"""The `chunk` that stands for the launch's own choice."""
CLOSE = 1.1
"""Times the best fixed chunk that this choice may take."""
TEAMS, ROWS_A_TEAM = 5120, 32
"""Warps that a V100 runs at a time; fewer for small graphs, so that each has rows enough to take turns."""
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


# figure 8


def chunk_size(bench: Bench) -> Figure:
    """Figure 8: how many vertices a warp or block takes at a time."""
    return _chunks_timed(bench) if bench.cuda else _chunks_scheduled(bench)


def _chunks_timed(bench: Bench) -> Figure:
    figure = Figure(
        "Speed over a chunk of one vertex (TRUST, figure 8)",
        {"graph": "", "ms at 1": ".3f"} | {f"{chunk}": ".3f" for chunk in CHUNKS} | {"auto": ".3f", "chosen": "d"},
        notes=["order collective; auto, chosen: what the launch chooses by itself, for warps"],
    )
    for case in bench.cases:
        seconds = [bench.count(case, "collective", "trust", {"chunk": chunk}).seconds for chunk in (*CHUNKS, AUTO)]
        speed = [seconds[0] / s for s in seconds]
        figure.rows.append([case.name, 1e3 * seconds[0], *speed, chosen_chunk(bench, case)])
    speeds: dict[str, list[Any]] = {str(row[0]): row[2:-2] for row in figure.rows}
    auto: dict[str, tuple[float, int]] = {str(row[0]): (max(row[2:-2]) / row[-2], row[-1]) for row in figure.rows}
    figure.plot = Plot("lines", [str(c) for c in CHUNKS], dict(speeds), "vertices a chunk", "speed over 1", one=True)
    best = {name: CHUNKS[s.index(max(s))] for name, s in speeds.items()}
    sparse, skewed = _sparsest(bench), bench.cases[0].name
    figure.statements = [
        Statement(
            "on the sparsest graphs larger chunks are 5 to 27 % faster (3D: 7 vertices)",
            f"{sparse}: {max(speeds[sparse]):.2f} times at {best[sparse]}",
            best[sparse] > 1,
        ),
        Statement(
            "on the others a chunk of 1 is best",
            f"{skewed}: larger chunks {spread(speeds[skewed][1:])} times as fast",
            max(speeds[skewed][1:]) < 1.02,
        ),
        _auto_said(auto),
    ]
    return figure


def _auto_said(auto: dict[str, tuple[float, int]], counted: bool = False) -> Statement:
    """What the paper leaves as future work; by graph how far from the best fixed chunk it is, and the chunk."""
    found = ", ".join(f"{name} {ratio:.2f} at {chunk}" for name, (ratio, chunk) in auto.items())
    return Statement(
        "automatic chunk size is future work: here within 10 % of the best fixed one on every graph",
        f"times the best fixed chunk: {found}",
        all(ratio <= CLOSE for ratio, _ in auto.values()),
        counted=counted,
    )


def chosen_chunk(bench: Bench, case: Case) -> int:
    """The chunk of warps that a GPU's launch of `trust` takes for a graph in collective order."""
    return chunks(launch_of(bench.task(case, "collective"), "trust"))[0]


def _sparsest(bench: Bench) -> str:
    """The graph with fewest edges a vertex."""
    blocks = {case.name: bench.block(case, "collective") for case in bench.cases}
    return min(blocks, key=lambda name: blocks[name].edges / max(1, blocks[name].rows))


def _chunks_scheduled(bench: Bench) -> Figure:
    figure = Figure(
        "Longest over mean team when rows are taken in chunks, a count (TRUST, figure 8)",
        {"graph": "", "rows": ",d", "teams": ",d"}
        | {f"{chunk}": ".3f" for chunk in CHUNKS}
        | {"auto": ".3f", "chosen": "d"},
        notes=[
            "the order in which free teams take rows, of what each row hashes and looks up; order collective",
            f"larger chunks also need fewer atomic additions, 1 / chunk of them: what that gains {NEEDS_GPU}",
            "auto, chosen: the chunk that a launch on so many teams would choose",
        ],
    )
    for case in bench.cases:
        costs = row_costs(bench.block(case, "collective"))
        teams = max(2, min(TEAMS, len(costs) // ROWS_A_TEAM))
        ideal = max(1.0, int(costs.sum()) / teams)
        chosen = chunk_rows(len(costs), float(costs.mean()) if len(costs) else None, teams)
        longest = [makespan(costs, teams, chunk) / ideal for chunk in (*CHUNKS, chosen)]
        figure.rows.append([case.name, len(costs), teams, *longest, chosen])
    ratios: dict[str, list[Any]] = {str(row[0]): row[3:-2] for row in figure.rows}
    auto: dict[str, tuple[float, int]] = {str(row[0]): (row[-2] / min(row[3:-2]), row[-1]) for row in figure.rows}
    figure.plot = Plot(
        "lines", [str(c) for c in CHUNKS], dict(ratios), "vertices a chunk", "longest / mean team", one=True
    )
    best = {name: CHUNKS[r.index(min(r))] for name, r in ratios.items()}
    sparse = _sparsest(bench)
    others = [chunk for name, chunk in best.items() if name != sparse]
    figure.statements = [
        Statement("larger chunks are 5 to 27 % faster on the sparsest graphs (3D, CP, MA)", f"gains: {NEEDS_GPU}"),
        Statement(
            "on the other graphs a chunk of 1 is best",
            f"best balanced at {', '.join(f'{chunk} ({name})' for name, chunk in best.items())}",
            set(others) == {1},
            counted=True,
        ),
        _auto_said(auto, counted=True),
    ]
    return figure


def row_costs(block: OrientedCSR) -> Any:
    """What each row that is not skipped hashes and looks up, in the rows' order."""
    offsets, columns = host_arrays(block)
    degree = np.diff(offsets)
    streamed = np.concatenate([[0], np.cumsum(degree[columns])])
    costs = degree + streamed[offsets[1:]] - streamed[offsets[:-1]]
    return costs[degree > 1]


def makespan(costs: Any, teams: int, chunk: int) -> int:
    """When the last of some teams is done, each of which takes the next chunk of rows once it is free.

    Parameters
    ----------
    costs : array of int64
    teams, chunk : int
    """
    if len(costs) == 0:
        return 0
    free = [0] * teams
    for cost in np.add.reduceat(costs, np.arange(0, len(costs), chunk)).tolist():
        heapreplace(free, free[0] + cost)
    return max(free)


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
