"""H-INDEX's figure 3 (hashing the shorter or the longer list) and tables IV and V (rates on made graphs).

Pandey et al., "H-INDEX: Hash-Indexing for Parallel Triangle Counting on GPUs", HPEC 2019,
doi:10.1109/HPEC.2019.8916492.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from dasktc.bench.papers.bench import ONE_THREAD, Bench
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import Case, kronecker_case, theory_case
from dasktc.bench.papers.loops import collisions

__all__ = ["COLLISIONS", "GRAPH500", "STARS", "THEORY", "graph500_rates", "shorter_or_longer", "theory_rates"]

PUBLISHED = {
    (16, 25, 81): (2_304_450, 4_758_124),
    (4, 5, 9, 16, 25): (122_394_672, 289_068_158),
}
"""Collisions of the paper's figure 3, shorter and longer list; it has every edge in both directions."""
STARS = (
    (4, 5), (5, 9), (9, 16), (3, 4, 5), (16, 25), (4, 5, 9), (5, 9, 16), (25, 81), (3, 4, 5, 9), (9, 16, 25),
    (4, 5, 9, 16), (81, 256), (4, 5, 9, 16, 25), (9, 16, 25, 81), (25, 81, 256), (3, 4, 5, 9, 16, 25),
    (5, 9, 16, 25, 81),
)  # fmt: skip
"""Star products of the paper's table V, by edges, all of them."""
RATE = "M edges / s"
ENOUGH = 10_000
"""Edges from which on a rate is more than what a launch or a call costs."""


# figure 3


def shorter_or_longer(bench: Bench) -> Figure:
    """Figure 3: collisions where the shorter list of each edge is hashed, and where the longer is."""
    figure = Figure(
        "Collisions by which list is hashed (H-INDEX, figure 3)",
        {"graph": "", "shorter": ",d", "longer": ",d", "longer / shorter": ".2f", "entries hashed": ",d"}
        | {"paper, shorter": ",d", "paper, longer": ",d"},
        notes=[
            "entries that find others in their bucket, 32 buckets, the caller's order of ids, every edge once",
            "paper: half of what it prints, for it has every edge in both directions",
        ],
    )
    graphs = {case.name: (case, None) for case in bench.cases} | {
        case.name: (case, stars) for stars in PUBLISHED for case in [theory_case(stars, "B1k")]
    }
    for case, stars in graphs.values():
        task = bench.host_task(case, "none")
        (short, entries), (long, _) = collisions(task, longer=False), collisions(task, longer=True)
        published = [None, None] if stars is None else [n // 2 for n in PUBLISHED[stars]]
        figure.rows.append([case.name, short, long, long / short if short else None, entries, *published])
    rows: list[list[Any]] = figure.rows
    series: dict[str, Any] = {"shorter": [row[1] or None for row in rows], "longer": [row[2] or None for row in rows]}
    figure.plot = Plot("bars", [row[0] for row in rows], series, "", "collisions", log=True)
    if bench.cuda:
        _both_timed(bench, figure)
    return figure


def _both_timed(bench: Bench, figure: Figure) -> None:
    """Add the seconds of both, which the paper does not give."""
    for case in bench.cases:
        shorter, longer = (bench.count(case, "none", "hindex", {"LONGER": side}).seconds for side in (0, 1))
        figure.notes.append(f"{case.name}: {1e3 * shorter:.2f} ms with the shorter, {1e3 * longer:.2f} with the longer")


def _fewer(figure: Figure) -> Finding:
    ratios = figure.column("longer / shorter")
    less = all(row["shorter"] <= row["longer"] for row in figure.records())
    return Finding(f"{spread(ratios)} times as many with the longer", less, ratios)


def _as_published(figure: Figure) -> Finding:
    rows = [row for row in figure.records() if row["paper, shorter"]]
    text = "; ".join(f"{row['graph']}: {2 * row['shorter']:,} and {2 * row['longer']:,}" for row in rows)
    ratios = [row[list_name] / row[f"paper, {list_name}"] for row in rows for list_name in ("shorter", "longer")]
    return Finding(
        text or "not measured", all(row["shorter"] < row["longer"] for row in rows) if rows else None, ratios
    )


COLLISIONS = (
    Claim(
        "fewer", "hashing the shorter list always has fewer collisions (2.06 and 2.36 times on its star products)",
        _fewer, "the longer list has fewer, on any graph", Published(2.06, 2.36, 1.5),
    ),
    Claim(
        "published",
        "Theory-16-25-81-B1k: 2,304,450 and 4,758,124; Theory-4-5-9-16-25-B1k: 122,394,672 and 289,068,158",
        _as_published, "the longer list has fewer, on one of the two",
        Published(1, 1, 1.05, " of what the paper prints"),
    ),
)  # fmt: skip


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
    return figure


def _falls(figure: Figure) -> Finding:
    rates = figure.column(RATE)
    steps = len(rates) - 1
    falls = sum(b < a for a, b in pairwise(rates))
    factor = (rates[0] / rates[-1]) ** (1 / max(1, steps))
    text = f"{rates[0]:.2f} to {rates[-1]:.2f} {RATE}, {factor:.2f} times a scale; falls at {falls} of {steps} steps"
    return Finding(text, rates[-1] < rates[0] and falls >= steps - 1, [factor])


GRAPH500 = (
    Claim(
        "falls", "the rate falls with every scale: 0.075 G edges a second at 18, 0.006 at 25, 1.42 times a scale",
        _falls, "it rises at two steps, or from the first scale to the last", Published(1.42, 1.42, 1.25),
    ),
)  # fmt: skip


def theory_rates(bench: Bench) -> Figure:
    """Table V: traversed edges a second on star products, counts known by arithmetic."""
    cases = [theory_case(stars, kind) for stars in STARS[: bench.sizes.stars] for kind in ("B1k", "B2k")]
    figure = _rates(bench, cases, "star products (H-INDEX, table V")
    rates: dict[str, Any] = {str(row[0]): row[4] for row in figure.rows}
    names = [case.name[:-4] for case in cases[::2]]
    by_kind: dict[str, list[Any]] = {kind: [rates[f"{name}-{kind}"] for name in names] for kind in ("B1k", "B2k")}
    figure.plot = Plot("bars", names, dict(by_kind), "", "million edges a second", log=True)
    figure.why["arithmetic"] = "a count that differs ends the run"
    return figure


def _arithmetic(figure: Figure) -> Finding:
    return Finding(f"{len(figure.rows)} counts", True)


def _leaves(figure: Figure) -> Finding:
    rows = {row["graph"]: row for row in figure.records() if row["edges"] >= ENOUGH and row[RATE]}
    pairs = [(row, rows.get(f"{name[:-3]}B2k")) for name, row in rows.items() if name.endswith("B1k")]
    ratios = [base[RATE] / row[RATE] for row, base in pairs if base]
    if not ratios:
        return Finding(f"none has {ENOUGH:,} edges")
    return Finding(
        f"{spread(ratios)} times, from {ENOUGH:,} edges on", min(ratios) > 0.95 and max(ratios) > 1.1, ratios
    )


THEORY = (
    Claim("arithmetic", "every count is that of the arithmetic", _arithmetic, definition=True, exact=True),
    Claim(
        "leaves", "larger graphs have higher rates with loops on leaves (B2k) than on hubs (B1k): 1.1 to 4.2 times",
        _leaves, "loops on leaves are slower on any, or nowhere 1.1 times as fast", Published(1.085, 4.235),
    ),
)  # fmt: skip


def _rates(bench: Bench, cases: list[Case], graphs: str) -> Figure:
    figure = Figure(
        f"Edges a second, kernel hindex, {graphs}; {bench.clock})",
        {"graph": "", "vertices": ",d", "edges": ",d", "triangles": ",d", RATE: ",.2f"},
        notes=["vertices with an edge, edges and triangles after clean-up; order degree"],
        proxy="" if bench.cuda else ONE_THREAD,
        graphs=[case.name for case in cases],
    )
    for case in cases:
        count, block = bench.count(case, "degree", "hindex"), bench.block(case)
        rate = block.edges / count.seconds / 1e6 if count.seconds else None
        figure.rows.append([case.name, block.rows, block.edges, count.triangles, rate])
    return figure
