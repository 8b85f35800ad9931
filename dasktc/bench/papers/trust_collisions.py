"""TRUST's table 3: the longest bucket of any row, by optimization.

Pandey et al., TPDS 2021, section 4.3, doi:10.1109/TPDS.2021.3064892.
"""

from __future__ import annotations

from typing import Any

from dasktc.backends.cpu.sizes import SMALL_ROW
from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.figure import Figure, Plot, Statement
from dasktc.bench.papers.graphs import Case
from dasktc.bench.papers.loops import BUILD, ONE_SIZE, hashed

__all__ = ["max_collision"]


def max_collision(bench: Bench) -> Figure:
    """Table 3: the longest bucket, by optimization."""
    names = ("BS", "CO", "CO + RO (IN)", "CO + RO (OUT)", "CO + RO (OUT) + PA")
    figure = Figure(
        "The longest bucket met, a count (TRUST, table 3)",
        {"graph": ""} | {name: ",d" for name in names},
        notes=[
            "BS: 32 buckets for every row, the caller's order of ids; CO: 1024 for rows above 100 entries",
            "RO IN, OUT: orders indegree, collective; PA: hashed 2D partition, n = 2, by kernel trust",
        ],
    )
    for case in bench.cases:
        figure.rows.append([case.name, *_longest(bench, case)])
    figure.plot = Plot("bars", bench.names, _by_column(figure), "", "longest bucket", log=True)
    bs, co, _, out = ([row[k] for row in figure.rows] for k in range(1, 5))
    figure.statements = _collisions_said(bs, co, out)
    return figure


def _by_column(figure: Figure) -> dict[str, Any]:
    return {name: [row[k] for row in figure.rows] for k, name in enumerate(figure.columns) if k}


def _collisions_said(bs: list[Any], co: list[Any], out: list[Any]) -> list[Statement]:
    worst = max(range(len(bs)), key=lambda k: bs[k])
    no_worse = sum(o <= c for o, c in zip(out, co, strict=True))
    return [
        Statement(
            "CO lowers it where it is high (GH: 335 to 18), and leaves it where it is low (RM, RA, 3D)",
            f"{bs[worst]} to {co[worst]} where it is highest",
            all(c <= b for b, c in zip(bs, co, strict=True)) and (co[worst] < bs[worst] or bs[worst] <= 10),
        ),
        Statement(
            "RO (OUT) lowers it further or leaves it, on all graphs but one (WK)",
            f"so on {no_worse} of {len(out)} graphs",
            no_worse >= len(out) - 1,
        ),
        Statement("at most 16 with CO and RO (OUT), on graphs that fit a GPU", f"at most {max(out)}", max(out) <= 16),
    ]


def _longest(bench: Bench, case: Case) -> list[int]:
    """The longest bucket of each column."""

    def longest(order: str, small_row: int) -> int:
        return hashed(bench.host_task(case, order), BUILD, False, small_row, unbounded=True).collision

    parted = bench.prepared(case, partition="hash2d", parts=2, kernel="trust").triangle_count().max_collision
    lengths = [longest(order, SMALL_ROW) for order in ("none", "indegree", "collective")]
    return [longest("none", ONE_SIZE), *lengths, parted]
