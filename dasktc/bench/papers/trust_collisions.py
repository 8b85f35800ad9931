"""TRUST's table 3: the longest bucket of any row, by optimization.

Pandey et al., TPDS 2021, section 4.3, doi:10.1109/TPDS.2021.3064892.
"""

from __future__ import annotations

from typing import Any

from dasktc.backends.kernel import SMALL_ROW
from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published
from dasktc.bench.papers.graphs import EVEN, Case
from dasktc.bench.papers.loops import BUILD, ONE_SIZE, hashed

__all__ = ["MAX_COLLISION", "max_collision"]


def max_collision(bench: Bench) -> Figure:
    """Table 3: the longest bucket, by optimization."""
    names = ("BS", "CO", "CO + RO (IN)", "CO + RO (OUT)", "CO + RO (OUT) + PA")
    figure = Figure(
        "The longest bucket met, a count (TRUST, table 3)",
        {"graph": ""} | {name: ",d" for name in names},
        notes=[
            "BS: 32 buckets for every row, the caller's order of ids; CO: 1024 for rows above 100 entries",
            "RO IN, OUT: orders indegree, collective; PA: hashed 2D partition, n = 2, collective-banded",
        ],
    )
    for case in bench.cases:
        figure.rows.append([case.name, *_longest(bench, case)])
    series: dict[str, Any] = {name: [row[name] for row in figure.records()] for name in names}
    figure.plot = Plot("bars", bench.names, series, "", "longest bucket", log=True)
    return figure


def _lowered(figure: Figure) -> Finding:
    worst = max(figure.records(), key=lambda row: row["BS"])
    ratio = worst["BS"] / max(1, worst["CO"])
    return Finding(f"{worst['BS']} to {worst['CO']} where it is highest, {ratio:.1f} times", True, [ratio])


def _left(figure: Figure) -> Finding:
    even = [row for row in figure.records() if row["graph"].startswith(EVEN)]
    told = ", ".join(f"{row['graph']} {row['BS']} to {row['CO']}" for row in even)
    return Finding(told or "no such graph", all(row["BS"] == row["CO"] for row in even) if even else None)


def _reordered(figure: Figure) -> Finding:
    better = [row["CO + RO (OUT)"] <= row["CO"] for row in figure.records()]
    return Finding(f"so on {sum(better)} of {len(better)} graphs", sum(better) >= len(better) - 1)


def _short(figure: Figure) -> Finding:
    longest = max(figure.column("CO + RO (OUT)"))
    return Finding(f"at most {longest}", longest <= LIMIT)


LIMIT = 16
MAX_COLLISION = (
    Claim(
        "CO lowers", "CO lowers it where it is high (GH: 335 to 18, 18.6 times)", _lowered,
        published=Published(18.6, 18.6), definition=True,
    ),
    Claim("CO leaves", "CO leaves it where it is low (RM, RA, 3D)", _left, "CO changes it on RM, RA or 3D"),
    Claim(
        "RO (OUT)", "RO (OUT) lowers it further or leaves it, on all graphs but one (WK)", _reordered,
        "it is longer than with CO alone on two graphs",
    ),
    Claim(
        "at most 16", "at most 16 with CO and RO (OUT), on graphs that fit a GPU", _short,
        f"it is above {LIMIT} on any",
    ),
)  # fmt: skip
"""1024 buckets in place of 32 cannot make a bucket longer: that CO lowers it is so by definition."""


def _longest(bench: Bench, case: Case) -> list[int]:
    """The longest bucket of each column."""

    def longest(order: str, small_row: int) -> int:
        return hashed(bench.host_task(case, order), BUILD, False, small_row, unbounded=True).collision

    graph = bench.prepared(case, partition="hash2d", parts=2, kernel="trust", reorder="collective-banded")
    parted = graph.triangle_count().stats.max_collision
    lengths = [longest(order, SMALL_ROW) for order in ("none", "indegree", "collective")]
    return [longest("none", ONE_SIZE), *lengths, parted]
