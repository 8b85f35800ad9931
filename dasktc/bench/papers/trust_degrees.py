"""TRUST's figures 5 and 7 (degrees within and between rows) and 13 (what orders of ids do to reads and to caches).

Pandey et al., TPDS 2021, sections 4.2, 4.3 and 6.4, doi:10.1109/TPDS.2021.3064892. Figures 5 and 7 are counts in the
paper too. Figure 13 is of a profiler: loads from shared memory, and the hit rate of the L2 cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np

from dasktc.backends.csr import OrientedCSR
from dasktc.bench.papers.bench import Bench, host_arrays
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import EVEN
from dasktc.bench.papers.lanes import hot_bytes, lists_of, reads_a_lookup
from dasktc.bench.papers.nsight import Counters, counters

__all__ = ["BETWEEN_ROWS", "ORDERS", "WITHIN_ROWS", "between_rows", "orders", "ratios_of_lists", "within_rows"]

LARGE = 100
"""Entries above which TRUST gives a row a thread block."""


# figures 5 and 7


def ratios_of_lists(block: OrientedCSR) -> Any:
    """For each row with several lists, the longest over the shortest that is not empty, as float64.

    Parameters
    ----------
    block : OrientedCSR
        A whole graph; of a large one some windows of rows are looked at.
    """
    lists = lists_of(block)
    filled = lists.size > 0
    row, size = lists.row[filled], lists.size[filled]
    first = np.flatnonzero(np.diff(row, prepend=-1))
    if not len(first):
        return np.zeros(0)
    several = np.diff(first, append=len(row)) > 1
    return (np.maximum.reduceat(size, first) / np.minimum.reduceat(size, first))[several]


def within_rows(bench: Bench) -> Figure:
    """Figure 5: how unlike the lists are that a row streams."""
    return _spread_of(
        bench,
        "Longest over shortest list of a row (TRUST, figure 5)",
        ratios_of_lists,
        ".1f",
        "longest / shortest list",
    )


def between_rows(bench: Bench) -> Figure:
    """Figure 7: how unlike rows are in length after orientation."""

    def degrees(block: OrientedCSR) -> Any:
        return np.diff(host_arrays(block)[0])

    return _spread_of(
        bench, "Entries of a row after orientation (TRUST, figure 7)", degrees, ",.0f", "entries of a row"
    )


def _spread_of(bench: Bench, title: str, values_of: Any, form: str, up: str) -> Figure:
    quantiles = {"least": 0.0, "quarter": 0.25, "median": 0.5, "three quarters": 0.75, "most": 1.0}
    figure = Figure(title, {"graph": ""} | dict.fromkeys(quantiles, form), notes=["orientation by degree"])
    for case in bench.cases:
        values = values_of(bench.block(case, "collective"))
        cells = np.quantile(values, list(quantiles.values())).tolist() if len(values) else [None] * len(quantiles)
        figure.rows.append([case.name, *cells])
    series: dict[str, Any] = {name: [row[name] or None for row in figure.records()] for name in quantiles}
    figure.plot = Plot("bars", bench.names, series, "", up, log=True)
    return figure


def _medians(figure: Figure) -> Finding:
    medians = figure.column("median")
    if not medians:
        return Finding("no row has several lists")
    average = mean(medians)
    return Finding(f"{spread(medians, '.1f')}, {average:.1f} on average", average >= 2, [average])


def _maxima(figure: Figure) -> Finding:
    maxima = figure.column("most")
    if not maxima:
        return Finding("no row has several lists")
    return Finding(f"{spread(maxima, ',.0f')}, {mean(maxima):,.0f} on average", numbers=[mean(maxima)])


def _differences(figure: Figure) -> Finding:
    hubs = [row for row in figure.records() if not row["graph"].startswith(EVEN) and row["most"] is not None]
    if not hubs:
        return Finding("no graph with hubs")
    difference = max(row["most"] - row["least"] for row in hubs)
    unlike = all(row["most"] > LARGE > row["median"] for row in hubs)
    return Finding(f"largest less smallest: up to {difference:,.0f}", unlike, [difference])


WITHIN_ROWS = (
    Claim(
        "median", "lists of a row are unlike: the medians are 16 on average", _medians,
        "the longest list of a typical row is less than twice the shortest, on average", Published(16, 16),
    ),
    Claim(
        "maximum", "the maxima are 2,648 on average", _maxima, published=Published(2648, 2648), definition=True,
    ),
)  # fmt: skip
"""The most unlike row is no less unlike than the typical one: that is so by definition."""
BETWEEN_ROWS = (
    Claim(
        "apart", "rows differ after orientation too: the largest has up to 10,005 entries more than the smallest (GH)",
        _differences, f"on a graph with hubs no row has more than {LARGE} entries, or the typical one has",
        Published(10_005, 10_005),
    ),
)  # fmt: skip


# figure 13


COMPARED = ("degree", "indegree", "collective")


def orders(bench: Bench) -> Figure:
    """Figure 13: loads and L2 hits in the orders IN and OUT, over those in degree order.

    Of Nsight Compute where it is there and may read counters; else bucket reads and hot cache lines stand for them.
    """
    if not bench.cuda:
        return _orders_counted(bench, "")
    rows: list[list[Any]] = []
    for case in bench.cases:
        profiles = list[Counters]()
        for order in COMPARED:
            result = counters(case, order)
            if isinstance(result, str):
                return _orders_counted(bench, result)
            profiles.append(result)
        rows.append([case.name, *_profiled(profiles)])
    figure = Figure(
        "Loads from shared memory, and hits of the L2 cache, by order of ids (TRUST, figure 13)",
        {"graph": "", "loads": ",.0f", "IN, % fewer": ".2f", "OUT, % fewer": ".2f", "hit rate": ".4f"}
        | {"IN, hits % more": ".1f", "OUT, hits % more": ".1f"},
        rows,
        notes=["over order degree; IN, OUT: orders indegree, collective; counters of Nsight Compute, kernel trust"],
    )
    columns = ("IN, % fewer", "OUT, % fewer", "IN, hits % more", "OUT, hits % more")
    series: dict[str, Any] = {name: [row[name] for row in figure.records()] for name in columns}
    figure.plot = Plot("bars", bench.names, series, "", "% better than in degree order")
    return figure


def _profiled(counters: list[Counters]) -> list[float]:
    base = counters[0]
    fewer = [100 * (1 - profile.loads / max(1.0, base.loads)) for profile in counters[1:]]
    more = [100 * (profile.hit_rate / base.hit_rate - 1) if base.hit_rate else 0.0 for profile in counters[1:]]
    return [base.loads, *fewer, base.hit_rate, *more]


def _orders_counted(bench: Bench, reason: str) -> Figure:
    figure = Figure(
        "Bucket reads, and lines of offsets that most lists need, by order of ids (TRUST, figure 13)",
        {"graph": "", "reads a lookup": ".4f", "IN, % fewer": ".2f", "OUT, % fewer": ".2f", "hot kB": ",.1f"}
        | {"IN, hot % fewer": ".1f", "OUT, hot % fewer": ".1f"},
        notes=["over order degree; IN, OUT: orders indegree, collective; hot: of nine tenths of the lists"]
        + ([f"no counters: {reason}"] if reason else []),
        proxy="bucket entries read, in place of shared-memory loads; hot cache lines, in place of L2 hits",
    )
    for case in bench.cases:
        reads, hot = [[measure(bench, case, order) for order in COMPARED] for measure in (reads_a_lookup, hot_bytes)]
        fewer = [100 * (1 - r / reads[0]) if reads[0] else None for r in reads[1:]]
        cooler = [100 * (1 - h / hot[0]) if hot[0] else None for h in hot[1:]]
        figure.rows.append([case.name, reads[0], *fewer, hot[0] / 1e3, *cooler])
    columns = ("IN, % fewer", "OUT, % fewer", "IN, hot % fewer", "OUT, hot % fewer")
    series: dict[str, Any] = {name: [row[name] for row in figure.records()] for name in columns}
    figure.plot = Plot("bars", bench.names, series, "", "% fewer than in degree order")
    return figure


def _fewer(column: str) -> Callable[[Figure], Finding]:
    def find(figure: Figure) -> Finding:
        shares = figure.column(column)
        if not shares:
            return Finding("nothing is read")
        return Finding(f"{spread(shares, '.1f')} %, {mean(shares):.1f} on average", mean(shares) > 0, [mean(shares)])

    return find


def _more_hits(order: str) -> Callable[[Figure], Finding]:
    """Of a profiler's hit rates, or of hot lines, which have no magnitude: the paper counts none."""
    hits, lines = (_fewer(f"{order}, {column}") for column in ("hits % more", "hot % fewer"))

    def find(figure: Figure) -> Finding:
        if f"{order}, hits % more" in figure.columns:
            return hits(figure)
        return replace(lines(figure), numbers=[])

    return find


MORE = "there are as many as in degree order or more, on average"
UNHIT = f"hits, with a profiler, are no more; hot lines: {MORE}"
ORDERS = (
    Claim("IN loads", "IN: 6.8 % fewer loads on average", _fewer("IN, % fewer"), MORE, Published(6.8, 6.8, 2, " %")),
    Claim("OUT loads", "OUT: 8.1 % fewer loads on average", _fewer("OUT, % fewer"), MORE, Published(8.1, 8.1, 2, " %")),
    Claim(
        "IN cache", "IN: L2 hits rise by 5.2 % on average", _more_hits("IN"), UNHIT, Published(5.2, 5.2, 2, " %"),
    ),
    Claim(
        "OUT cache", "OUT: L2 hits rise by 6.3 % on average", _more_hits("OUT"), UNHIT, Published(6.3, 6.3, 2, " %"),
    ),
)  # fmt: skip
