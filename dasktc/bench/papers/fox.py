"""Fox et al.'s figures 4 (threads that grow with the bin) and 5 (what binning takes), and III-B's two estimates.

Fox et al., "Fast and Adaptive List Intersections on the GPU", HPEC 2018, doi:10.1109/HPEC.2018.8547759.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.csr import OrientedCSR
from dasktc.bench.papers.bench import NEEDS_GPU, ONE_THREAD, Bench, host_arrays, lengths
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.fox_memory import sectors_a_search
from dasktc.bench.papers.graphs import Case
from dasktc.bench.papers.loops import binning_seconds

__all__ = ["BINNING", "ESTIMATES", "LOG_TPI", "binning_overhead", "estimates", "log_tpi", "schedule", "split"]

STATIC = (1, 32, 256)
"""Threads an intersection of the paper's figure 4: a thread, a warp, a block."""
SUB = 8
"""Searches a thread where threads grow with the bin, C of equation 3."""
SLOWER = 0.95
"""Times as fast as another that count as slower."""
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
        else "Log-TPI: length of its schedule under that of static threads (Fox, figure 4)",
        {"graph": "", "Log-TPI": ".4g", "unit": ""} | {f"over {threads}": ".2f" for threads in STATIC},
        proxy="" if bench.cuda else "a model: steps of resident warps, in place of time",
    )
    if not bench.cuda:
        figure.notes += [
            f"steps: the longer of all warps' steps over {RESIDENT:,} resident warps, and of the longest warp's",
            f"a step: 32 lanes make a search each; all in the order of LRB bins; time {NEEDS_GPU}",
        ]
        figure.why["best differs"] = _sectors(bench)
    for case in bench.cases:
        grown, static = _timed(bench, case) if bench.cuda else schedule(bench.block(case))
        unit, shown = ("ms", 1e3 * grown) if bench.cuda else ("steps", grown)
        figure.rows.append([case.name, shown, unit, *(time / grown if grown else None for time in static)])
    ratios: dict[str, list[Any]] = {f"{t}": [row[3 + k] for row in figure.rows] for k, t in enumerate(STATIC)}
    series: dict[str, Any] = {f"static {threads}": values for threads, values in ratios.items()}
    figure.plot = Plot("bars", bench.names, series, "", "Log-TPI over static", log=True, one=True)
    return figure


def _sectors(bench: Bench) -> str:
    """Say which memory sectors each number of threads reads: a search waits for memory too, its bisection in step."""
    sectors = {case.name: [sectors_a_search(bench.block(case), threads) for threads in STATIC] for case in bench.cases}
    texts = [
        f"{name} {' / '.join(f'{n:.1f}' for n in counts)}, least with {STATIC[counts.index(min(counts))]}"
        for name, counts in sectors.items()
    ]
    return f"by steps; 32-byte sectors a search with {' / '.join(map(str, STATIC))}: {'; '.join(texts)}"


def _over_static(figure: Figure) -> dict[str, list[float]]:
    """Speed over each static number of threads, of the graphs that have all."""
    rows = {row["graph"]: [row[f"over {threads}"] for threads in STATIC] for row in figure.records()}
    return {name: ratios for name, ratios in rows.items() if None not in ratios}


def _as_fast(figure: Figure) -> Finding:
    least = [min(ratios) for ratios in _over_static(figure).values()]
    slower = sum(ratio < SLOWER for ratio in least)
    return Finding(f"{spread(least)} times; below {SLOWER:g} on {slower}", slower <= 1)


def _up_to(figure: Figure) -> Finding:
    largest = max(max(ratios) for ratios in _over_static(figure).values())
    return Finding(f"up to {largest:.1f} times", largest > 2, [largest])


def _best_static(figure: Figure) -> Finding:
    best = {name: STATIC[ratios.index(min(ratios))] for name, ratios in _over_static(figure).items()}
    return Finding(", ".join(f"{name} {threads}" for name, threads in best.items()), len(set(best.values())) > 1)


LOG_TPI = (
    Claim(
        "as fast", "at least as fast as the best static number of threads, on all graphs but one", _as_fast,
        f"it is below {SLOWER:g} times as fast on two graphs",
    ),
    Claim("up to", "up to 20 times as fast as another", _up_to, "it is at most twice as fast", Published(20, 20)),
    Claim(
        "best differs", "the best static number differs from graph to graph", _best_static,
        "one number of threads is best on all graphs",
    ),
)  # fmt: skip


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
    in_order = work[np.argsort(_bins(work), kind="stable")]
    grown = _length(_in_bins(work, np.ones_like(work), work))
    return grown, [_length(_warps(in_order, threads)) for threads in STATIC]


def _bins(work: Any) -> Any:
    """Return the bin of each edge, LRB's logarithm of its work."""
    return np.ceil(np.log2(np.maximum(work, 1))).astype("int64")


def _warps(work: Any, threads: int, reads: Any = 1) -> Any:
    """Count the steps of each warp: each edge's work is shared by its threads, and each unit takes some reads."""
    steps = -(-work // threads) * reads
    if threads >= WARP:
        return np.repeat(steps, threads // WARP)
    together = WARP // threads
    padded = np.concatenate([steps, np.zeros(-len(steps) % together, steps.dtype)])
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
        proxy="" if bench.cuda else ONE_THREAD,
    )  # fmt: skip
    for case in bench.cases:
        work = lengths(bench.block(case))
        mean = float((work[1] + work[2]).mean()) if len(work[0]) else 0.0
        row: list[Any] = [case.name, mean]
        for kernel in ("search", "merge"):
            binning, counting = split(bench, case, kernel)
            row += [1e3 * counting, binning / counting]
        figure.rows.append(row)
    series: dict[str, Any] = {
        k: [row[3 + 2 * i] for row in figure.rows] for i, k in enumerate(("Par-Search", "Intersect-Path"))
    }
    figure.plot = Plot("bars", bench.names, series, "", "binning / counting", log=True, one=True)
    return figure


def _low_degree(figure: Figure) -> Finding:
    dense, sparse = _by_degree(figure)
    search = "binning / search"
    text = f"search: {sparse[search]:.2f} on {sparse['graph']}, {dense[search]:.2f} on {dense['graph']}"
    return Finding(text, sparse[search] > dense[search], [sparse[search]])


def _high_degree(figure: Figure) -> Finding:
    dense, _ = _by_degree(figure)
    search, merge = dense["binning / search"], dense["binning / merge"]
    return Finding(
        f"{dense['graph']}: {search:.2f} of search, {merge:.2f} of merge", max(search, merge) < 0.1, [search]
    )


def _by_degree(figure: Figure) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows with most and with fewest entries an edge."""
    rows = sorted(figure.records(), key=lambda row: float(row["entries an edge"]))
    return rows[-1], rows[0]


BINNING = (
    Claim(
        "low degree", "relatively high on small graphs and on graphs of low degree (table II: 1.26 of search on "
        "cit-Patents, 9.75 to 12.8 on roads)",
        _low_degree, "it is no higher on the graph of lowest degree than on that of highest", Published(1.26, 12.8),
    ),
    Claim(
        "high degree", "negligible on large graphs of high degree (table II: 0.05 to 0.13 of search)", _high_degree,
        "it takes a tenth of counting on the graph of highest degree, or more", Published(0.047, 0.13),
    ),
)  # fmt: skip


def split(bench: Bench, case: Case, kernel: str) -> tuple[float, float]:
    """Seconds of binning, and of counting without it.

    Parameters
    ----------
    bench : Bench
    case : Case
    kernel : {"search", "merge"}
    """
    whole = bench.count(case, "degree", kernel).seconds
    if bench.cuda:
        bins = bench.binning(case, kernel)
        return bins, _without(whole, bins)
    task = bench.task(case)
    return bench.timed(lambda: binning_seconds(task, kernel == "merge")), whole


# section III-B


def estimates(bench: Bench) -> Figure:
    """Section III-B: edges binned by d_u, the shorter length alone, and by equation 2's d_u log d_v."""
    figure = Figure(
        f"Par-Search with edges binned by d_u and by d_u log d_v (Fox, section III-B; {bench.clock})"
        if bench.cuda
        else "Par-Search with edges binned by d_u and by d_u log d_v: length of the schedule (Fox, section III-B)",
        {"graph": "", "d_u": ".4g", "d_u log d_v": ".4g", "unit": "", "times as long": ".3f"},
        notes=["kernels search and search-log, binning included; order degree"]
        if bench.cuda
        else [f"steps: reads of searches, as in fox-fig4 over {RESIDENT:,} resident warps; the kernels are a GPU's"],
        proxy="" if bench.cuda else "a model: reads of resident warps, in place of time",
    )
    for case in bench.cases:
        if bench.cuda:
            by_degree, by_product = (
                1e3 * bench.count(case, "degree", name).seconds for name in ("search", "search-log")
            )
        else:
            by_degree, by_product = estimated(bench.block(case))
        unit = "ms" if bench.cuda else "steps"
        figure.rows.append([case.name, by_degree, by_product, unit, by_product / by_degree if by_degree else None])
    series: dict[str, Any] = {"d_u log d_v": [row["times as long"] for row in figure.records()]}
    figure.plot = Plot("bars", bench.names, series, "", "times as long as by d_u", one=True)
    return figure


def estimated(block: OrientedCSR) -> tuple[float, float]:
    """Steps of a schedule whose bins and threads follow from d_u, and from d_u log d_v; a step is a search's read.

    Parameters
    ----------
    block : OrientedCSR
        A whole graph in degree order.
    """
    u, _, b = lengths(block)
    a = np.arange(len(u)) - host_arrays(block)[0][u]
    shorter, longer = np.minimum(a, b), np.maximum(a, b)
    shorter, longer = shorter[shorter > 0], longer[shorter > 0]
    logs = np.ceil(np.log2(np.maximum(longer, 2))).astype("int64")
    by_degree, by_product = (_length(_in_bins(shorter, 1 + logs, work)) for work in (shorter, shorter * logs))
    return by_degree, by_product


def _in_bins(shorter: Any, reads: Any, work: Any) -> Any:
    """Steps of each warp, edges in the order of their bins, threads an edge by the bin (equation 3).

    A lane's searches, each of some reads, come one after another.
    """
    bins, steps = _bins(work), [np.zeros(0, "int64")]
    for k in np.unique(bins).tolist():
        steps.append(_warps(shorter[bins == k], max(1, (1 << k) // SUB), reads[bins == k]))
    return np.concatenate(steps)


def _alone_is_better(figure: Figure) -> Finding:
    ratios = figure.by("graph", "times as long")
    slower = sum(ratio > 1 for ratio in ratios.values())
    text = f"so on {slower} of {len(ratios)}: {', '.join(f'{name} {ratio:.2f}' for name, ratio in ratios.items())}"
    return Finding(f"{text} times as long by d_u log d_v", 2 * slower > len(ratios) if ratios else None)


ESTIMATES = (
    Claim(
        "estimate", "it is more effective to use only the d_u term of d_u log d_v", _alone_is_better,
        "d_u log d_v is as fast on half of the graphs or more",
    ),
)  # fmt: skip
