"""TRUST on load balance: figure 14 (layout of lists over lanes) and table 6 (imbalance at n, m).

Pandey et al., TPDS 2021, doi:10.1109/TPDS.2021.3064892. Figure 14 is time on a GPU; without one the steps are
counted on the graphs' real rows, and said to be counts.
"""

from __future__ import annotations

from math import inf
from statistics import geometric_mean
from typing import Any

import numpy as np

from dasktc.api.graph import Graph
from dasktc.backends.csr import OrientedCSR
from dasktc.bench.papers.bench import ONE_THREAD, Bench, host_arrays
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import Case
from dasktc.bench.papers.lanes import at_most, held, lists_of, ruled_lanes, warp_steps
from dasktc.bench.papers.loops import range_partition

__all__ = ["COMBINATIONS", "IMBALANCE", "combinations", "imbalance", "range_imbalance"]

METHODS = ("WC", "SW (8)", "SW (16)", "SW (rule)", "PC", "VC")
SUBWARPS = ("SW (8)", "SW (16)")
TIMED = {
    "WC": {"VC": 0, "lanes": 32},
    "SW (8)": {"VC": 0, "lanes": 8},
    "SW (16)": {"VC": 0, "lanes": 16},
    "SW (rule)": {"VC": 0},
    "PC": {"VC": 2},
    "VC": {"VC": 1},
}
"""Macros of the CUDA kernel."""
PARTED = "collective-banded"
"""The order of graphs that are cut into parts (section 5.1)."""
UNLIKE = 3
"""Graphs of table 6: one with hubs, RM, and RA, whose ranges of ids are nearly even."""


# figure 14


def combinations(bench: Bench) -> Figure:
    """Figure 14: a warp, a subwarp of 8 or 16 a list, lists combined physically, virtually."""
    figure = Figure(
        f"Speed over a warp a list (TRUST, figure 14; {bench.clock})"
        if bench.cuda
        else "Warp steps of a warp a list over those of other layouts (TRUST, figure 14)",
        {"graph": "", "entries a list": ".1f"} | {method: ".3f" for method in METHODS},
        notes=[
            "order collective; WC warp-centric, SW subwarps, PC and VC physical and virtual combination",
            "SW (rule): subwarps of 8, 16 or 32, as the launch chooses",
        ],
        proxy="" if bench.cuda else "a model: warp steps, in place of time",
    )
    if not bench.cuda:
        figure.notes.append("a step: 32 lanes look up an entry each, or copy one; PC copies every list by warps first")
    reasons, single, ruled = [], [], []
    for case in bench.cases:
        block = bench.block(case, "collective")
        times, mean = _seconds(bench, case) if bench.cuda else _steps(block)
        figure.rows.append(
            [case.name, mean, *(times["WC"] / times[method] if times[method] else None for method in METHODS)]
        )
        best = min(times[name] for name in ("WC", *SUBWARPS))
        ruled.append(f"{case.name} {best / times['SW (rule)'] if times['SW (rule)'] else 1.0:.2f}")
        if bench.cuda:
            reasons.append(at_most(bench, case, "collective", times["WC"]))
            single.append(_in_single_rows(bench, case))
    figure.notes.append(f"the launch's own choice, of the best size's speed: {', '.join(ruled)}")
    speeds: dict[str, list[Any]] = {m: [row[2 + k] for row in figure.rows] for k, m in enumerate(METHODS)}
    figure.plot = Plot("bars", bench.names, dict(speeds), "", "over a warp a list", one=True)
    if bench.cuda:
        text = f"{geometric_mean(single):.2f} where rows are taken one at a time"
        figure.why["virtual"] = f"{text}; fewer idle lanes could bring {', '.join(reasons)}"
        figure.why["subwarps"] = held()
    return figure


def _average(figure: Figure, method: str) -> float:
    return geometric_mean([speed for speed in figure.column(method) if speed])


def _virtual(figure: Figure) -> Finding:
    average = _average(figure, "VC")
    return Finding(f"{average:.2f}", average > 1, [average])


def _physical(figure: Figure) -> Finding:
    average = _average(figure, "PC")
    return Finding(f"{average:.2f}", average < 1, [average])


def _subwarps(figure: Figure) -> Finding:
    averages = [_average(figure, method) for method in SUBWARPS]
    return Finding(f"{averages[0]:.2f} and {averages[1]:.2f} on average", min(averages) > 1, averages)


def _best_subwarp(figure: Figure) -> Finding:
    best = [max(SUBWARPS, key=lambda method: row[method] or 0.0) for row in figure.records()]
    return Finding(f"best: {', '.join(best)}", len(set(best)) == 2)


VIRTUAL = ("virtual", "virtual combination: 1.55 times on average", _virtual)
PHYSICAL = ("physical", "physical combination: 0.55 times", _physical)
COMBINATIONS = (
    Claim(*VIRTUAL, "it is no faster than a warp a list, on average", Published(1.55, 1.55, 1.25), "cuda"),
    Claim(*VIRTUAL, published=Published(1.55, 1.55, 1.25), on="cpu", definition=True),
    Claim(*PHYSICAL, "it is no slower than a warp a list, on average", Published(0.55, 0.55, 1.25), "cuda"),
    Claim(*PHYSICAL, published=Published(0.55, 0.55, 1.25), on="cpu", definition=True),
    Claim(
        "subwarps", "subwarps of 8 and 16: 1.40 and 1.45 times", _subwarps,
        "one of them is no faster than a warp a list, on average", Published(1.40, 1.45, 1.25),
    ),
    Claim(
        "best subwarp", "which subwarp is best differs from graph to graph", _best_subwarp,
        "one of them is best on all graphs",
    ),
)  # fmt: skip
"""Steps cannot grow by virtual combination, nor fall by copying every list first: both are so by definition."""


def _seconds(bench: Bench, case: Case) -> tuple[dict[str, float], float]:
    """Seconds by layout, and the mean entries of a list."""
    counts = {name: bench.count(case, "collective", "trust", macros) for name, macros in TIMED.items()}
    mean = counts["WC"].wedges / max(1, bench.block(case, "collective").edges)
    return {name: count.seconds for name, count in counts.items()}, mean


def _in_single_rows(bench: Bench, case: Case) -> float:
    """Speed of virtual combination over one list a warp, where a team takes one row at a time."""
    base, virtual = (
        bench.count(case, "collective", "trust", {"VC": way, "chunk": 1, "lanes": 32}).seconds for way in (0, 1)
    )
    return base / virtual


def _steps(block: OrientedCSR) -> tuple[dict[str, int], float]:
    lists = lists_of(block)
    steps = warp_steps(lists)
    ruled = {8: "SW (8)", 16: "SW (16)", 32: "WC"}[ruled_lanes(block)]
    return steps | {"SW (rule)": steps[ruled]}, float(lists.size.mean()) if len(lists.size) else 0.0


# table 6


def imbalance(bench: Bench) -> Figure:
    """Table 6: the largest over the smallest task and block of the hashed 2D partition at n, m, and by ranges."""
    shapes, cases = bench.sizes.tasks, bench.cases[:UNLIKE]
    figure = Figure(
        f"Imbalance of n³ m tasks, largest over smallest (TRUST, table 6; {bench.clock})",
        {"graph": "", "n": "d", "m": "d", "tasks": ",d", "slowest, ms": ".3f"}
        | {"time IR": ".3f", "work IR": ".3f", "space IR": ".3f", "range work IR": ".3f", "range space IR": ".3f"},
        notes=[
            "time: of each task, the median of the runs; work: probes; space: edges of a block",
            "kernel trust, order collective-banded (section 5.1), partition hash2d",
            "range: n³ tasks and n² blocks with vertices cut into n ranges of ids, m = 1, the caller's or those of the "
            "same order, whichever are the more even; work: entries looked up",
        ],
        proxy="tasks one after another on one device"
        + ("" if bench.cuda else f", by {ONE_THREAD}")
        + "; of ranges the work, in place of time",
    )
    for case in cases:
        ranges = {n: _by_ranges(bench, case, n) for n in sorted({n for n, _ in shapes})}
        for n, m in shapes:
            graph = bench.prepared(case, partition="hash2d", parts=n, splits=m, kernel="trust", reorder=PARTED)
            seconds, probes = _task_times(graph, max(3, bench.runs))
            typical = np.median(seconds, axis=0).tolist()
            ratios = [_over_least(typical), _over_least(probes.tolist()), graph.plan.space_imbalance]
            figure.rows.append([case.name, n, m, n**3 * m, 1e3 * max(typical), *ratios, *ranges[n]])
        figure.notes.append(f"{case.name} at n = {n}, m = {m}: {_why_unlike(seconds, probes, m)}")
    names = [case.name for case in cases]
    series: dict[str, Any] = {
        f"{name}, {column}": [row[column] for row in figure.records() if row["graph"] == name]
        for name in names
        for column in ("work IR", "space IR", "range space IR")
    }
    figure.plot = Plot("bars", [f"n={n} m={m}" for n, m in shapes], series, "", "largest / smallest", True, True)
    return figure


def _by_ranges(bench: Bench, case: Case, n: int) -> list[float | None]:
    """Imbalance of work and of space by ranges: of the caller's ids or of the blocks' order, the lesser of each."""
    ratios = [range_imbalance(bench.block(case, order), n) for order in ("none", PARTED)]
    return [min((ratio for ratio in pair if ratio is not None), default=None) for pair in zip(*ratios, strict=True)]


def range_imbalance(block: OrientedCSR, n: int) -> tuple[float | None, float | None]:
    """Imbalance of work and of space where vertices are cut into n ranges of ids, as LiteTe's 2D partition does.

    Parameters
    ----------
    block : OrientedCSR
        A whole graph.
    n : int

    Returns
    -------
    work, space : float or None
        Largest over smallest of n³ tasks, by entries that each looks up, and of n² blocks, by edges; None where the
        smallest is 0.
    """
    work, edges = range_partition(*host_arrays(block), n)
    return _over_least(work.ravel().tolist()), _over_least(edges.ravel().tolist())


def _task_times(graph: Graph, runs: int) -> tuple[Any, Any]:
    """Seconds, shape (runs, tasks), and probes of each task."""
    counts = [sorted(graph.triangle_count()._records) for _ in range(runs)]
    seconds = np.array([[record.count.seconds for record in records] for records in counts])
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
    share = 1 - float((typical - fixed - slope * probes).var()) / spread_of if spread_of else 1.0
    again = seconds.max(axis=0) / np.maximum(seconds.min(axis=0), 1e-9)
    sampled = ""
    if splits == 2:
        time, work = (float(values[::2].sum() / max(1e-9, values[1::2].sum())) for values in (typical, probes))
        sampled = (
            f", the first splits take {time:.2f} times as long as the second ones and make {work:.2f} times the probes"
        )
    return (
        f"a task takes {1e3 * typical.mean():.3f} ms, {1e3 * max(0.0, fixed):.3f} ms of it without any probe, probes "
        f"tell {100 * share:.0f} % of the differences, the same task differs {np.median(again):.2f} to "
        f"{again.max():.2f} times from run to run{sampled}"
    )


def _over_least(values: list[Any]) -> float | None:
    return max(values) / min(values) if min(values) else None


def _space(figure: Figure) -> Finding:
    rows = [row for row in figure.records() if row["space IR"] is not None]
    space, ranges = [row["space IR"] for row in rows], [row["range space IR"] or inf for row in rows]
    less = all(mine < theirs for mine, theirs in zip(space, ranges, strict=True))
    return Finding(f"{spread(space)}, by ranges {_ends(ranges)}", less if rows else None, space)


def _time(figure: Figure) -> Finding:
    rows = figure.records()
    time, work = [row["time IR"] or inf for row in rows], [row["work IR"] or inf for row in rows]
    ranges = [row["range work IR"] or inf for row in rows]
    less = all(mine < theirs for mine, theirs in zip(work, ranges, strict=True))
    return Finding(f"time {_ends(time)}, work {_ends(work)}, by ranges {_ends(ranges)}", less, time)


def _twice_the_gpus(figure: Figure) -> Finding:
    slowest = {(row["graph"], row["n"], row["m"]): row["slowest, ms"] for row in figure.records()}
    gains = [
        slowest[graph, n, 1] / ms for (graph, n, m), ms in slowest.items() if m == 2 and (graph, n, 1) in slowest and ms
    ]
    if not gains:
        return Finding("m was 1 alone")
    gain = geometric_mean(gains)
    return Finding(f"{gain:.2f} times on average, {spread(gains)}", min(gains) > 1, [gain])


def _ends(ratios: list[float]) -> str:
    """The range of some ratios; an infinite one has an empty task or block below the line."""
    return spread(ratios).replace("inf", "empty ones")


IMBALANCE = (
    Claim(
        "space", "space IR 1.01 to 1.06 at n = 8: hashing spreads edges evenly, ranges of vertices do not", _space,
        "a partition by ranges has as even blocks, on any graph and at any n", Published(1.01, 1.06, 1.05),
        exact=True,
    ),
    Claim(
        "time", "time IR 1.11 to 1.12 at n = 8, m = 1 and 2, against 1.7 of a partition by ranges (LiteTe)", _time,
        "tasks of a partition by ranges have as even work, on any graph and at any n", Published(1.11, 1.12, 1.1),
    ),
    Claim(
        "doubled", "twice the GPUs (m = 1 and 2) are 1.9 times as fast: the slowest task says so", _twice_the_gpus,
        "the slowest task is no faster at m = 2 than at m = 1, on any graph and at any n", Published(1.9, 1.92, 1.1),
    ),
)  # fmt: skip
