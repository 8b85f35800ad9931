"""H-INDEX's figure 2 and table VI: rates on graphs of many kinds, and beside the champions of 2018.

Pandey et al., HPEC 2019, section IV, doi:10.1109/HPEC.2019.8916492. Figure 2's columns for several GPUs are another
figure's.
"""

from __future__ import annotations

from typing import Any

from dasktc.bench.papers.bench import ONE_THREAD, Bench
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import EVEN, Case, kronecker_case

__all__ = ["CHAMPIONS", "KINDS", "champions", "kinds_of_graphs"]

RATE = "M edges / s"
SCALE = 18
"""Of figure 2's Kronecker graph, the only one whose rate is compared: a larger scale has a lower one."""
PUBLISHED = {"soc-Slashdot0902": (1086.79, 793.0, 150.0)}
"""Of table VI's graphs those that --graphs may have: H-INDEX on one V100, and both champions, in millions."""
RIVALS = ("8 P100, 2018", "24 CPU cores, 2018")


def kinds_of_graphs(bench: Bench) -> Figure:
    """Figure 2: edges a second on graphs of many kinds."""
    figure = Figure(
        f"Edges a second by kind of graph, kernel hindex (H-INDEX, figure 2; {bench.clock})",
        {"graph": "", "edges": ",d", "entries a row": ".1f", RATE: ",.1f"},
        notes=["order degree"],
        proxy="" if bench.cuda else ONE_THREAD,
    )
    for case in _kinds(bench):
        block = bench.block(case)
        figure.rows.append([case.name, block.edges, block.edges / max(1, block.rows), _rate(bench, case)])
    rates: list[Any] = [row[RATE] for row in figure.records()]
    figure.plot = Plot("bars", [str(row[0]) for row in figure.rows], {RATE: rates}, "", RATE, log=True)
    return figure


def _kinds(bench: Bench) -> list[Case]:
    """The run's graphs, and the paper's Kronecker graph, unless the run's are smaller than that."""
    alike = kronecker_case(SCALE)
    more = [alike] * (bench.sizes.scale >= SCALE - 1 and alike.name not in bench.names)
    return [*bench.cases, *more]


def _rate(bench: Bench, case: Any) -> float | None:
    """Millions of edges a second."""
    seconds = bench.count(case, "degree", "hindex").seconds
    return bench.block(case).edges / seconds / 1e6 if seconds else None


def _even_over_skewed(figure: Figure) -> Finding:
    rates = figure.by("graph", RATE)
    even = [rate for name, rate in rates.items() if name.startswith(EVEN)]
    skewed = [rate for name, rate in rates.items() if name.startswith("Kronecker")]
    if not even or not skewed:
        return Finding("one of both kinds is missing")
    text = f"{spread(even, ',.1f')} M edges a second on RM, RA and 3D, {spread(skewed, ',.1f')} on Kronecker"
    alike = rates.get(f"Kronecker {SCALE}")
    return Finding(text, min(even) > max(skewed), [max(even) / alike] if alike else [])


KINDS = (
    Claim(
        "even", "low, even degrees have the highest rates: roads 2.3 G edges a second, Kronecker 18 31 times less",
        _even_over_skewed, "a graph without hubs is no faster than one with hubs", Published(31, 31),
    ),
)  # fmt: skip


def champions(bench: Bench) -> Figure:
    """Table VI: the rate beside those of the champions of 2018, which are the paper's figures."""
    figure = Figure(
        f"Edges a second beside the champions of 2018, kernel hindex (H-INDEX, table VI; {bench.clock})",
        {"graph": "", RATE: ",.1f", "H-INDEX, V100": ",.1f"} | {rival: ",.1f" for rival in RIVALS},
        notes=["order degree; the last three columns are fixed figures of the paper, of soc-Slashdot0902 (--graphs)"],
        proxy="" if bench.cuda else ONE_THREAD,
    )
    for case in bench.cases:
        figure.rows.append([case.name, _rate(bench, case), *PUBLISHED.get(case.name, (None, None, None))])
    series: dict[str, Any] = {name: [row[name] for row in figure.records()] for name in list(figure.columns)[1:]}
    figure.plot = Plot("bars", bench.names, series, "", RATE, log=True)
    return figure


def _beside_champions(figure: Figure) -> Finding:
    rows = [row for row in figure.records() if row["H-INDEX, V100"] and row[RATE]]
    if not rows:
        return Finding("none of its graphs is there: --graphs DIR with soc-Slashdot0902.txt.gz")
    text = ", ".join(f"{row['graph']} {row[RATE]:,.0f} M edges a second" for row in rows)
    faster = all(row[RATE] > row[rival] for row in rows for rival in RIVALS)
    return Finding(text, faster, [row[RATE] / row["H-INDEX, V100"] for row in rows])


CHAMPIONS = (
    Claim(
        "champions", "soc-Slashdot0902: 1.09 G edges a second on one V100, against 0.79 on 8 P100 and 0.15 on 24 cores",
        _beside_champions, "a champion of 2018 was as fast", Published(1, 1, 2, " of H-INDEX on a V100"),
    ),
)  # fmt: skip
