"""H-INDEX's figure 3 (hashing the shorter or the longer list) and tables IV and V (rates on made graphs).

Pandey et al., "H-INDEX: Hash-Indexing for Parallel Triangle Counting on GPUs", HPEC 2019,
doi:10.1109/HPEC.2019.8916492.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.figure import Figure, Plot, Statement, spread
from dasktc.bench.papers.graphs import Case, kronecker_case, theory_case
from dasktc.bench.papers.loops import collisions

__all__ = ["graph500_rates", "shorter_or_longer", "theory_rates"]

PUBLISHED = {
    (16, 25, 81): (2_304_450, 4_758_124),
    (4, 5, 9, 16, 25): (122_394_672, 289_068_158),
}
"""Collisions of the paper's figure 3, shorter and longer list; it has every edge in both directions."""
STARS = (
    (4, 5), (9, 16), (16, 25), (4, 5, 9), (3, 4, 5, 9), (25, 81), (9, 16, 25), (81, 256), (4, 5, 9, 16),
    (9, 16, 25, 81), (4, 5, 9, 16, 25), (25, 81, 256), (3, 4, 5, 9, 16, 25), (5, 9, 16, 25, 81),
)  # fmt: skip
"""Star products of the paper's table V, by edges, most of them."""
ENOUGH = 10_000
"""Edges from which on a rate is more than what a launch or a call costs."""


# figure 3


def shorter_or_longer(bench: Bench) -> Figure:
    """Figure 3: collisions where the shorter list of each edge is hashed, and where the longer is."""
    figure = Figure(
        "Collisions by which list is hashed, a count (H-INDEX, figure 3)",
        {"graph": "", "shorter": ",d", "longer": ",d", "longer / shorter": ".2f", "entries hashed": ",d"}
        | {"paper, shorter": ",d", "paper, longer": ",d"},
        notes=[
            "entries that find others in their bucket, 32 buckets, the caller's order of ids, every edge once",
            "paper: half of what it prints, for it has every edge in both directions",
        ],
    )
    of = {case.name: (case, None) for case in bench.cases} | {
        case.name: (case, stars) for stars in PUBLISHED for case in [theory_case(stars, "B1k")]
    }
    for case, stars in of.values():
        task = bench.host_task(case, "none")
        (short, entries), (long, _) = collisions(task, longer=False), collisions(task, longer=True)
        published = [None, None] if stars is None else [n // 2 for n in PUBLISHED[stars]]
        figure.rows.append([case.name, short, long, long / short if short else None, entries, *published])
    rows: list[list[Any]] = figure.rows
    series: dict[str, Any] = {"shorter": [row[1] or None for row in rows], "longer": [row[2] or None for row in rows]}
    figure.plot = Plot("bars", [row[0] for row in rows], series, "", "collisions", log=True)
    same, both = [row for row in rows if row[5] is not None], [row for row in rows if row[3] is not None]
    figure.statements = [
        Statement(
            "hashing the shorter list always has fewer collisions",
            f"{spread([row[3] for row in both])} times as many with the longer",
            all(row[1] <= row[2] for row in rows),
        ),
        Statement(
            "Theory-16-25-81-B1k: 2,304,450 and 4,758,124; Theory-4-5-9-16-25-B1k: 122,394,672 and 289,068,158",
            "; ".join(f"{row[0]}: {2 * row[1]:,} and {2 * row[2]:,}" for row in same),
            all(abs(row[k] / row[k + 4] - 1) < 0.05 for row in same for k in (1, 2)),
        ),
    ]
    if bench.cuda:
        _both_timed(bench, figure)
    return figure


def _both_timed(bench: Bench, figure: Figure) -> None:
    """Add the seconds of both, which the paper does not give."""
    for case in bench.cases:
        shorter, longer = (bench.count(case, "none", "hindex", {"LONGER": which}).seconds for which in (0, 1))
        figure.notes.append(f"{case.name}: {1e3 * shorter:.2f} ms with the shorter, {1e3 * longer:.2f} with the longer")


# tables IV and V


def graph500_rates(bench: Bench) -> Figure:
    """Table IV: traversed edges a second on Kronecker graphs of growing scale."""
    first, last = bench.sizes.rates
    cases = [kronecker_case(scale) for scale in range(first, last + 1)]
    figure = _rates(bench, cases, "graph 500 graphs (H-INDEX, table IV")
    rates: list[Any] = [row[4] for row in figure.rows]
    figure.plot = Plot(
        "lines", [case.name for case in cases], {"hindex": rates}, "", "million edges a second", log=True
    )
    falls = sum(b < a for a, b in pairwise(rates))
    figure.statements = [
        Statement(
            "the rate falls with every scale: 0.075 G edges a second at 18, 0.006 at 25, on a V100",
            f"{rates[0]:.2f} to {rates[-1]:.2f} M edges a second; falls at {falls} of {len(rates) - 1} steps",
            rates[-1] < rates[0] and falls >= len(rates) - 2,
        )
    ]
    return figure


def theory_rates(bench: Bench) -> Figure:
    """Table V: traversed edges a second on star products, counts known by arithmetic."""
    cases = [theory_case(stars, kind) for stars in STARS[: bench.sizes.stars] for kind in ("B1k", "B2k")]
    figure = _rates(bench, cases, "star products (H-INDEX, table V")
    rates: dict[str, Any] = {str(row[0]): row[4] for row in figure.rows}
    names = [case.name[:-4] for case in cases[::2]]
    by_kind: dict[str, list[Any]] = {kind: [rates[f"{name}-{kind}"] for name in names] for kind in ("B1k", "B2k")}
    figure.plot = Plot("bars", names, dict(by_kind), "", "million edges a second", log=True)
    rows: list[list[Any]] = figure.rows
    large = [row[0][:-4] for row in rows[::2] if row[2] >= ENOUGH]
    ratios = [rates[f"{name}-B2k"] / rates[f"{name}-B1k"] for name in large]
    known = sum(row[3] == case.triangles for row, case in zip(figure.rows, cases, strict=True))
    figure.statements = [
        Statement("every count is that of the arithmetic", f"so for {known} of {len(cases)}", known == len(cases)),
        Statement(
            "larger graphs have higher rates with loops on leaves (B2k) than on hubs (B1k): 1.1 to 4.2 times",
            f"{spread(ratios)} times, from {ENOUGH:,} edges on" if ratios else f"none has {ENOUGH:,} edges",
            min(ratios) > 0.9 and max(ratios) > 1.1 if ratios else None,
        ),
    ]
    return figure


def _rates(bench: Bench, cases: list[Case], what: str) -> Figure:
    figure = Figure(
        f"Edges a second, kernel hindex, {what}; {bench.clock})",
        {"graph": "", "vertices": ",d", "edges": ",d", "triangles": ",d", "M edges / s": ",.2f"},
        notes=["vertices with an edge, edges and triangles after clean-up; order degree"],
        graphs=[case.name for case in cases],
    )
    for case in cases:
        counted, block = bench.count(case, "degree", "hindex"), bench.block(case)
        rate = block.edges / counted.seconds / 1e6 if counted.seconds else None
        figure.rows.append([case.name, block.rows, block.edges, counted.triangles, rate])
    return figure
