"""Fox et al.'s figures: 4 (threads that grow with the bin against static ones) and 5 (what binning takes).

Fox et al., "Fast and Adaptive List Intersections on the GPU", HPEC 2018, doi:10.1109/HPEC.2018.8547759.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dasktc.backends.csr import OrientedCSR
from dasktc.bench.papers.bench import NEEDS_GPU, Bench, host_arrays, lengths
from dasktc.bench.papers.figure import Figure, Plot, Statement, spread
from dasktc.bench.papers.fox_memory import sectors_a_search
from dasktc.bench.papers.graphs import Case
from dasktc.bench.papers.loops import binning_seconds

__all__ = ["binning_overhead", "log_tpi", "schedule"]

STATIC = (1, 32, 256)
"""Threads an intersection of the paper's figure 4: a thread, a warp, a block."""
SUB = 8
"""Searches a thread where threads grow with the bin, C of equation 3."""
LEAST = 0.05
"""Share of a kernel's time that counting has, at least."""
WARP, RESIDENT = 32, 5120
"""Lanes of a warp; warps that a V100 runs at a time."""


# figure 4


def log_tpi(bench: Bench) -> Figure:
    """Figure 4: Log-TPI against 1, 32 and 256 threads an intersection, Par-Search."""
    figure = Figure(
        f"Log-TPI: speed over static threads an intersection, binning left out (Fox, figure 4; {bench.clock})"
        if bench.cuda
        else "Log-TPI: length of its schedule under that of static threads, a count (Fox, figure 4)",
        {"graph": "", "Log-TPI": ".4g", "unit": ""} | {f"over {threads}": ".2f" for threads in STATIC},
    )
    if not bench.cuda:
        figure.notes += [
            f"steps: the longer of all warps' steps over {RESIDENT:,} resident warps, and of the longest warp's",
            f"a step: 32 lanes make a search each; all in the order of LRB bins; time {NEEDS_GPU}",
            "a search waits for memory too: the statements name the 32-byte sectors that it reads, bisection in step",
        ]
    for case in bench.cases:
        grown, static = _timed(bench, case) if bench.cuda else schedule(bench.block(case))
        unit, shown = ("ms", 1e3 * grown) if bench.cuda else ("steps", grown)
        figure.rows.append([case.name, shown, unit, *(one / grown if grown else None for one in static)])
    ratios: dict[str, list[Any]] = {f"{t}": [row[3 + k] for row in figure.rows] for k, t in enumerate(STATIC)}
    series: dict[str, Any] = {f"static {threads}": values for threads, values in ratios.items()}
    figure.plot = Plot("bars", bench.names, series, "", "Log-TPI over static", log=True, one=True)
    figure.statements = [replace(said, counted=not bench.cuda) for said in _threads_said(figure.rows)]
    if not bench.cuda:
        figure.statements[-1] = _with_sectors(bench, figure.statements[-1])
    return figure


def _with_sectors(bench: Bench, said: Statement) -> Statement:
    """Add to a statement the memory sectors that each number of threads reads."""
    read = {case.name: [sectors_a_search(bench.block(case), threads) for threads in STATIC] for case in bench.cases}
    texts = [
        f"{name} {' / '.join(f'{n:.1f}' for n in of)}, least with {STATIC[of.index(min(of))]}"
        for name, of in read.items()
    ]
    counts = " / ".join(map(str, STATIC))
    return replace(said, here=f"by steps: {said.here}; sectors a search with {counts}: {'; '.join(texts)}")


def _threads_said(rows: list[list[Any]]) -> list[Statement]:
    """Compare with the best and with the worst static number of threads of each graph."""
    ratios = {row[0]: row[3:] for row in rows if None not in row}
    least = {name: min(of) for name, of in ratios.items()}
    best = {name: STATIC[of.index(least[name])] for name, of in ratios.items()}
    slower = sum(ratio < 0.95 for ratio in least.values())
    most = max(max(of) for of in ratios.values())
    return [
        Statement(
            "at least as fast as the best static number of threads, on all graphs but one",
            f"{spread(list(least.values()))} times; below 0.95 on {slower}",
            slower <= 1,
        ),
        Statement("up to 20 times as fast as another", f"up to {most:.1f} times", most > 2),
        Statement(
            "the best static number differs from graph to graph",
            ", ".join(f"{name} {threads}" for name, threads in best.items()),
            len(set(best.values())) > 1,
        ),
    ]


def _timed(bench: Bench, case: Case) -> tuple[float, list[float]]:
    """Seconds without binning, of Log-TPI and of each static number."""
    bins = bench.binning(case, "search")
    times = [bench.count(case, "degree", "search", {"TPI": threads}).seconds for threads in (0, *STATIC)]
    grown, *static = (_without(seconds, bins) for seconds in times)
    return grown, static


def _without(whole: float, bins: float) -> float:
    """Seconds of counting alone: a difference of two measurements, kept above zero."""
    return max(whole - bins, LEAST * whole)


def search_work(block: OrientedCSR) -> Any:
    """The estimated work of each edge with any: the length of its shorter list, in degree order."""
    u, _, b = lengths(block)
    a = np.arange(len(u)) - host_arrays(block)[0][u]
    work = np.minimum(a, b)
    return work[work > 0]


def schedule(block: OrientedCSR) -> tuple[float, list[float]]:
    """Steps that Log-TPI and each static number of threads take.

    Parameters
    ----------
    block : OrientedCSR
        A whole graph in degree order.
    """
    work = search_work(block)
    bins = np.ceil(np.log2(np.maximum(work, 1))).astype("int64")
    order = np.argsort(bins, kind="stable")
    work, bins = work[order], bins[order]
    steps = [_warps(work[bins == k], max(1, (1 << k) // SUB)) for k in np.unique(bins).tolist()]
    grown = _length(np.concatenate(steps)) if steps else 0.0
    return grown, [_length(_warps(work, threads)) for threads in STATIC]


def _warps(work: Any, threads: int) -> Any:
    """Count the steps of each warp."""
    each = -(-work // threads)
    if threads >= WARP:
        return np.repeat(each, threads // WARP)
    together = WARP // threads
    padded = np.concatenate([each, np.zeros(-len(each) % together, each.dtype)])
    return padded.reshape(-1, together).max(axis=1)


def _length(steps: Any) -> float:
    return max(float(steps.sum()) / RESIDENT, float(steps.max())) if len(steps) else 0.0


# figure 5


def binning_overhead(bench: Bench) -> Figure:
    """Figure 5: the time of binning beside that of counting, for both kernels."""
    figure = Figure(
        f"Binning over counting (Fox, figure 5; {bench.clock})",
        {
            "graph": "", "entries an edge": ".1f", "search, ms": ".2f", "binning / search": ".3f",
            "merge, ms": ".2f", "binning / merge": ".3f",
        },
        notes=["entries an edge: of both lists; order degree"],
    )  # fmt: skip
    for case in bench.cases:
        work = lengths(bench.block(case))
        mean = float((work[1] + work[2]).mean()) if len(work[0]) else 0.0
        row: list[Any] = [case.name, mean]
        for kernel in ("search", "merge"):
            binning, counting = _split(bench, case, kernel)
            row += [1e3 * counting, binning / counting]
        figure.rows.append(row)
    series: dict[str, Any] = {
        k: [row[3 + 2 * i] for row in figure.rows] for i, k in enumerate(("Par-Search", "Intersect-Path"))
    }
    figure.plot = Plot("bars", bench.names, series, "", "binning / counting", log=True, one=True)
    rows: list[list[Any]] = figure.rows
    dense, sparse = max(rows, key=lambda row: row[1]), min(rows, key=lambda row: row[1])
    here = f"search: {sparse[3]:.2f} on {sparse[0]}, {dense[3]:.2f} on {dense[0]}"
    figure.statements = [
        Statement("relatively high on small graphs and on graphs of low degree", here, sparse[3] > dense[3]),
        Statement(
            "negligible on large graphs of high degree",
            f"{dense[0]}: {dense[3]:.2f} of search, {dense[5]:.2f} of merge",
            max(dense[3], dense[5]) < 0.1,
        ),
    ]
    return figure


def _split(bench: Bench, case: Case, kernel: str) -> tuple[float, float]:
    """Seconds of binning, and of counting without it."""
    whole = bench.count(case, "degree", kernel).seconds
    if bench.cuda:
        bins = bench.binning(case, kernel)
        return bins, _without(whole, bins)
    task = bench.task(case)
    return bench.timed(lambda: binning_seconds(task, kernel == "merge")), whole
