"""Fox et al.'s figure 3 (edges a second by the size of the graph) and table II (seconds of both kernels).

Fox et al., "Fast and Adaptive List Intersections on the GPU", HPEC 2018, doi:10.1109/HPEC.2018.8547759.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from dasktc.bench.papers.bench import ONE_THREAD, Bench
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.fox import split
from dasktc.bench.papers.graphs import Case, kronecker_case, theory_case

__all__ = ["RATES", "TIMES", "rates", "times"]

PATH, SEARCH = "Intersect-Path", "Par-Search"
KERNELS = {PATH: "merge", SEARCH: "search"}
PRODUCTS = ((5, 9, 16, 25), (25, 81, 256), (9, 16, 25, 81), (3, 4, 5, 9, 16, 25), (5, 9, 16, 25, 81))
"""Star products of table II, by edges; the fourth as B2k."""
SMALLER = 11
"""Star products of H-INDEX's table V that are smaller."""
MILLION = 1_000_000
BILLIONS = 1000
"""Million edges a second."""


def _cases(bench: Bench) -> list[Case]:
    """The run's graphs, Kronecker graphs of growing scale, and star products."""
    first, last = bench.sizes.rates
    grown = [kronecker_case(scale) for scale in range(first, last + 1)]
    some = PRODUCTS[: max(0, bench.sizes.stars - SMALLER)]
    products = [theory_case(stars, "B2k" if stars[0] == 3 else "B1k") for stars in some]
    cases = [case for case in bench.cases if case.name not in {other.name for other in grown}]
    return [*cases, *grown, *products]


def _measured(bench: Bench, case: Case) -> dict[str, tuple[float, float]]:
    """Seconds of counting alone, and with binning, of each kernel."""
    halves = {name: split(bench, case, kernel) for name, kernel in KERNELS.items()}
    return {name: (counting, binning + counting) for name, (binning, counting) in halves.items()}


# figure 3


def rates(bench: Bench) -> Figure:
    """Figure 3: edges a second of both kernels, binning included, by the size of the graph."""
    cases = _cases(bench)
    figure = Figure(
        f"Edges a second, binning included (Fox, figure 3; {bench.clock})",
        {"graph": "", "edges": ",d"} | {f"{name}, M edges / s": ",.2f" for name in KERNELS},
        notes=["kernels merge and search, order degree; edges after clean-up"],
        graphs=[case.name for case in cases],
        proxy="" if bench.cuda else ONE_THREAD,
    )
    for case in sorted(cases, key=lambda case: bench.block(case).edges):
        edges, seconds = bench.block(case).edges, _measured(bench, case)
        figure.rows.append([case.name, edges, *(_rate(edges, seconds[name][1]) for name in KERNELS)])
    series: dict[str, Any] = {name: figure.column(f"{name}, M edges / s") for name in KERNELS}
    figure.plot = Plot("lines", [str(row[0]) for row in figure.rows], series, "", "million edges a second", log=True)
    return figure


def _rate(edges: int, seconds: float) -> float | None:
    return edges / seconds / 1e6 if seconds else None


def _fast(figure: Figure) -> Finding:
    rows = [row for row in figure.records() if row["edges"] >= MILLION]
    rate = [row[f"{SEARCH}, M edges / s"] for row in rows]
    above = sum(value > 100 for value in rate)
    text = f"{SEARCH}: {spread(rate)} M edges a second from a million edges on, above 100 M on {above} of {len(rate)}"
    return Finding(text, 2 * above > len(rate) and max(rate) >= BILLIONS if rate else None)


def _slow(figure: Figure) -> Finding:
    edges = figure.by("graph", "edges")
    if not min(edges.values()) < MILLION <= max(edges.values()):
        return Finding("all graphs are below a million edges, or none is")
    rate = figure.by("graph", f"{SEARCH}, M edges / s")
    least = min(rate, key=lambda name: rate[name])
    return Finding(f"the lowest is {rate[least]:.2f} M, of {least}, {edges[least]:,} edges", edges[least] < MILLION)


RATES = (
    Claim(
        "fast",
        "over 100 M edges a second on most graphs, on some as many as billions",
        _fast,
        "half of the graphs from a million edges on are at 100 M or below, or none reaches a billion",
        on="cuda",
    ),
    Claim(
        "slow",
        "the lowest rates come from graphs below a million edges",
        _slow,
        "the lowest is of a larger graph",
        on="cuda",
    ),
)


# table II


def times(bench: Bench) -> Figure:
    """Table II: seconds of both kernels, without binning and with it, and triangles."""
    cases = _cases(bench)
    figure = Figure(
        f"Milliseconds of counting, and with binning (Fox, table II; {bench.clock})",
        {"graph": "", "edges": ",d", "triangles": ",d"}
        | {f"{name}, {part_name}": ".3f" for name in KERNELS for part_name in ("processing", "total")},
        notes=["kernels merge (Intersect-Path) and search (Par-Search), order degree"],
        graphs=[case.name for case in cases],
        proxy="" if bench.cuda else ONE_THREAD,
    )
    for case in cases:
        seconds = _measured(bench, case)
        triangles = bench.count(case, "degree", "search").triangles
        cells = [1e3 * part for name in KERNELS for part in seconds[name]]
        figure.rows.append([case.name, bench.block(case).edges, triangles, *cells])
    series: dict[str, Any] = {name: figure.column(f"{name}, total") for name in KERNELS}
    figure.plot = Plot("bars", [case.name for case in cases], series, "", "ms with binning", log=True)
    return figure


def _search_first(figure: Figure) -> Finding:
    ratios = {row["graph"]: row[f"{PATH}, total"] / row[f"{SEARCH}, total"] for row in figure.records()}
    faster = sum(ratio > 1 for ratio in ratios.values())
    products = [ratio for name, ratio in ratios.items() if name.startswith("Theory")]
    text = f"so on {faster} of {len(ratios)}; star products: {spread(products)} times"
    return Finding(text, 2 * faster > len(ratios), products)


def _path_last(figure: Figure) -> Finding:
    rows = [row for row in figure.records() if row["graph"].startswith("Kronecker")]
    ratios = [row[f"{SEARCH}, processing"] / row[f"{PATH}, processing"] for row in rows]
    text = ", ".join(f"{row['graph']} {ratio:.2f}" for row, ratio in zip(rows, ratios, strict=True))
    return Finding(f"times as long by search: {text}", ratios[-1] > ratios[0] if len(ratios) > 1 else None, ratios[-1:])


def _binning(figure: Figure) -> Finding:
    rows = [row for row in figure.records() if row["graph"].startswith("Kronecker")]
    more = [100 * (row[f"{SEARCH}, total"] / row[f"{SEARCH}, processing"] - 1) for row in rows]
    falls = sum(b < a for a, b in pairwise(more))
    text = f"{', '.join(f'{share:.1f}' for share in more)} % of counting; falls at {falls} of {len(more) - 1}"
    return Finding(text, more[-1] < more[0] if len(more) > 1 else None, more[-1:])


TIMES = (
    Claim(
        "search",
        "Par-Search is faster than Intersect-Path in most cases, on star products 1.08 to 1.48 times with binning",
        _search_first,
        "Intersect-Path is as fast on half of the graphs",
        Published(1.08, 1.48, 1.1),
    ),
    Claim(
        "path",
        "Intersect-Path gains with the scale of Kronecker graphs: Par-Search takes 0.94 of its time at 21, 1.22 at 25",
        _path_last,
        "on the largest scale Par-Search takes no more of Intersect-Path's time than on the smallest",
        Published(0.94, 1.22, 1.25),
    ),
    Claim(
        "binning",
        "binning is negligible on large graphs: for Par-Search 13 % of counting at scale 21, 4.7 % at 25",
        _binning,
        "its share is not smaller at the largest scale than at the smallest",
        Published(4.7, 13, 2, " % of counting"),
    ),
)
