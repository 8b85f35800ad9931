"""H-INDEX's tables IV and V and figures 4 and 5 on many GPUs, and what unsorted rows save (section I).

Pandey et al., "H-INDEX: Hash-Indexing for Parallel Triangle Counting on GPUs", HPEC 2019,
doi:10.1109/HPEC.2019.8916492.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from statistics import geometric_mean, median
from typing import Any

from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import EVEN, Case, kronecker_case, rmat_case, theory_case
from dasktc.bench.papers.hindex import STARS
from dasktc.io.generators.synthetic import grid3d, random_graph

__all__ = [
    "MANY_GPUS", "SCALES_BADLY", "SCALES_WELL", "UNSORTED", "many_gpus", "scales_badly", "scales_well", "unsorted_rows",
]  # fmt: skip

GPUS = (16, 32, 64)
PRODUCTS = {(3, 4, 5), (16, 25), (81, 256), (4, 5, 9, 16, 25), (25, 81, 256), (5, 9, 16, 25, 81)}
"""Star products of table V, small and large ones."""
SMALL, LARGE = 10_000, 1_000_000
"""Edges up to which a product is small, and from which a graph is large."""


# tables IV and V on many GPUs


def many_gpus(bench: Bench) -> Figure:
    """Tables IV and V on 16, 32 and 64 GPUs: equal ranges of the edge list, the slowest of which says the rate."""
    return _on_many(bench, _cases(bench), "tables IV and V")


def _on_many(bench: Bench, cases: list[Case], graphs: str) -> Figure:
    """Measure graphs in 16, 32 and 64 equal ranges of the edge list."""
    figure = Figure(
        f"Edges a second on many GPUs, equal edge ranges, kernel hindex (H-INDEX, {graphs}; {bench.clock})",
        {"graph": "", "edges": ",d", "triangles": ",d", "M edges / s, 1 GPU": ",.2f"}
        | {f"times with {count}": ".2f" for count in GPUS},
        notes=["times with g: the rate of g ranges over that of all edges in one; partition edges, order degree"],
        proxy="ranges counted one after another on one device, which is alone with each; the slowest counts",
    )
    for case in cases:
        seconds = [bench.slowest_split(case, count, kernel="hindex", partition="edges") for count in (1, *GPUS)]
        edges, triangles = bench.block(case).edges, bench.count(case, "degree", "hindex").triangles
        rate = edges / seconds[0] / 1e6 if seconds[0] else None
        times = [seconds[0] / time if time else None for time in seconds[1:]]
        figure.rows.append([case.name, edges, triangles, rate, *times])
    figure.graphs = [case.name for case in cases]
    series: dict[str, Any] = {
        row["graph"]: [1.0, *(row[f"times with {count}"] for count in GPUS)] for row in figure.records()
    }
    figure.plot = Plot("lines", [str(count) for count in (1, *GPUS)], series, "GPUs", "times the rate of one", log=True)
    return figure


def _cases(bench: Bench) -> list[Case]:
    """Kronecker graphs of the largest scales that rates are measured at, and star products."""
    first, last = bench.sizes.rates
    scales = range(max(first, last - 2), last + 1)
    products = [stars for stars in STARS[: bench.sizes.stars] if stars in PRODUCTS]
    return [kronecker_case(scale) for scale in scales] + [theory_case(stars, "B1k") for stars in products]


def _large(figure: Figure) -> Finding:
    edges = figure.by("graph", "edges")
    grown = {
        name: gains for name, gains in _times(figure).items() if edges[name] >= LARGE or name.startswith("Kronecker")
    }
    rises = [all(b > a for a, b in pairwise([1.0, *gains])) for gains in grown.values()]
    numbers = [gains[-1] for name, gains in grown.items() if name.startswith("Kronecker")]
    return Finding(_told(grown), all(rises) if rises else None, numbers)


def _small(figure: Figure) -> Finding:
    large = [row["times with 64"] for row in figure.records() if row["edges"] > SMALL and row["times with 64"]]
    small = [row["times with 64"] for row in figure.records() if row["edges"] <= SMALL and row["times with 64"]]
    if not small or not large:
        return Finding("no graph is so small, or none so large")
    text = f"{spread(small)} times with 64, up to {SMALL:,} edges; {spread(large)} beyond"
    return Finding(text, max(small) < geometric_mean(large), small)


MANY_GPUS = (
    Claim(
        "large",
        "rates of graph 500 graphs grow with 16, 32 and 64 GPUs: 33 to 50 times with 64",
        _large,
        "with more GPUs the rate of a Kronecker graph, or of one of a million edges, does not grow",
        Published(33, 50, 1.25),
    ),
    Claim(
        "small",
        "products of at most 10,000 edges gain nothing: 0.43 to 0.7 times the rate with 64",
        _small,
        "such a product gains as much as larger graphs do",
        Published(0.43, 0.7),
        on="cuda",
    ),
)


# figures 4 and 5


def scales_well(bench: Bench) -> Figure:
    """Figure 4: graphs of even degrees and a million edges and more (the paper's are roads and Amazon's)."""
    return _on_many(bench, _even(bench), "figure 4")


def scales_badly(bench: Bench) -> Figure:
    """Figure 5: graphs of some ten thousand edges (the paper's are of mail, peers and authors)."""
    return _on_many(bench, _small_ones(bench), "figure 5")


def _even(bench: Bench) -> list[Case]:
    """Graphs as large as those of the paper's table VII, or the run's own where these are smaller."""
    if bench.sizes.side < SIDE:
        return [case for case in bench.cases if case.name.startswith(EVEN)]
    return [
        rmat_case(18),
        Case("RA 250,000", partial(random_graph, 250_000, 2_500_000)),
        Case(f"3D {SIDE}^3", partial(grid3d, SIDE)),
    ]


def _small_ones(bench: Bench) -> list[Case]:
    """Graphs as large as those of table VIII, two with hubs and one without."""
    scale = min(12, bench.sizes.rates[0] + 2)
    vertices = min(25_000, bench.sizes.vertices)
    sparse = Case(f"RA {vertices:,}, 3 edges each", partial(random_graph, vertices, 3 * vertices))
    return [kronecker_case(scale), kronecker_case(scale + 1), sparse]


def _times(figure: Figure) -> dict[str, list[float]]:
    """Times the rate of one GPU with 16, 32 and 64, by graph."""
    table = {row["graph"]: [row[f"times with {count}"] for count in GPUS] for row in figure.records()}
    return {name: gains for name, gains in table.items() if None not in gains}


def _told(table: dict[str, list[float]]) -> str:
    listed = "; ".join(f"{name} {', '.join(f'{gain:.1f}' for gain in gains)}" for name, gains in table.items())
    return f"times the rate of one with 16, 32, 64: {listed or 'none'}"


def _well(figure: Figure) -> Finding:
    table = _times(figure)
    rises = [1 < gains[0] < gains[-1] for gains in table.values()]
    return Finding(_told(table), all(rises) if rises else None, [gains[-1] for gains in table.values()])


def _badly(figure: Figure) -> Finding:
    table = _times(figure)
    last = [gains[-1] for gains in table.values()]
    return Finding(_told(table), max(last) < WELL.least if last else None, last)


WELL, BADLY = Published(7.46, 11.45), Published(0.91, 3.26)
"""Rates with 64 GPUs over those with one, of the graphs of tables VII and VIII, by table I."""
SIDE = 90
"""Of a 3D grid with about as many edges as the roads of table VII."""
SCALES_WELL = (
    Claim(
        "well", "roads and Amazon's graphs gain with 16 GPUs, and more with 64: 7.5 to 11.4 times (table I)", _well,
        "such a graph gains nothing with 16 GPUs, or no more with 64 than with 16", WELL,
    ),
)  # fmt: skip
SCALES_BADLY = (
    Claim(
        "badly", "graphs of 53,000 to 118,000 edges gain little: 0.91 to 3.3 times with 64 (table I)", _badly,
        f"such a graph gains {WELL.least:g} times with 64, as the least of figure 4 does", BADLY, on="cuda",
    ),
)  # fmt: skip


# section I


def unsorted_rows(bench: Bench) -> Figure:
    """Section I: H-INDEX sorts no neighbour lists; what preparing takes with sorted rows and without."""
    kernels = ("hindex", "trust")
    figure = Figure(
        "Preparing and counting with rows in no order, over the same with sorted rows (H-INDEX, section I)",
        {"graph": "", "edges": ",d", "prepare sorted, s": ".4f", "prepare": ".3f"}
        | {f"count, {kernel}": ".3f" for kernel in kernels},
        notes=[
            "prepare: wall time from raw edges to blocks, of which canonical keys are sorted in both",
            f"count: {bench.clock}; order degree, one block",
        ],
    )
    for case in bench.cases:
        seconds: dict[tuple[str, bool], list[tuple[float, float]]] = {}
        for _ in range(bench.runs + 1):
            for kernel in kernels:
                for sort in (True, False):
                    seconds.setdefault((kernel, sort), []).append(_prepared_and_counted(bench, case, kernel, sort))
        middle = {key: [median(column) for column in zip(*runs[1:], strict=True)] for key, runs in seconds.items()}
        times = [median(middle[kernel, sort][0] for kernel in kernels) for sort in (True, False)]
        counts = [_over(middle[kernel, False][1], middle[kernel, True][1]) for kernel in kernels]
        figure.rows.append([case.name, bench.block(case).edges, times[0], _over(times[1], times[0]), *counts])
    series: dict[str, Any] = {"prepare": [row[3] for row in figure.rows]}
    figure.plot = Plot("bars", bench.names, series, "", "unsorted over sorted", one=True)
    return figure


def _over(seconds: float, base: float) -> float | None:
    return seconds / base if base else None


def _prepared_and_counted(bench: Bench, case: Case, kernel: str, sort: bool) -> tuple[float, float]:
    graph = bench.prepared(case, kernel=kernel, partition="whole", reorder="degree", sort_rows=sort)
    result = graph.triangle_count()
    bench.check(case, f"{kernel} of {'sorted' if sort else 'unsorted'} rows", result.triangles)
    return graph._context.prepared.seconds["prepare"], sum(record.count.seconds for record in result._records)


def _saved(figure: Figure) -> Finding:
    ratios = figure.by("graph", "prepare")
    text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    counts = [ratios for name in ("count, hindex", "count, trust") for ratios in figure.column(name)]
    text = f"{text}; counting {spread(counts)} times as long"
    return Finding(text, geometric_mean(ratios.values()) < 1 if ratios else None)


UNSORTED = (
    Claim(
        "saved",
        "no sorting of neighbour lists, which is essential and takes time for merging and searching",
        _saved,
        "preparing takes as long, in the mean, where no row is sorted",
    ),
)
