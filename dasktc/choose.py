"""Which kernel and which order of ids `auto` takes, from what the orientation knows of the graph.

No single method wins everywhere (TRUST, section 6.2; Fox et al., section V): where rows hold a handful of entries,
as in roads and meshes, walking two of them costs less than any table; everywhere else the tables of `hub` win on the
CPU, by up to two orders of magnitude. On a GPU small graphs are counted in one launch, and long rows without hubs by
hashing. The planner is chosen by memory and workers (module `plan`): the whole graph where it fits, for parts cost
counting time, else the smallest n of `hash2d`.
"""

# CPU seconds of a count, hub over merge, in degree order; rows that 99 % of the vertices do not exceed in brackets.
# torus 30³ to 70³ [4] 1.26 to 1.28; triangular mesh 200² [3] 1.35, 500² [3] 1.30; wing [4] 1.17; random, degree 2 [2]
# 1.36 to 1.50; random, degree 4 [4] 1.27 (100 k edges) to 0.97 (2 M edges); random, degree 6 [6] 0.86 to 1.04;
# p2p-Gnutella31 [9] 0.97; dblp-2010 [13] 0.91; amazon0601 0.60; ego-Twitter [74] 0.24; Kronecker 16 0.03. Below 20,000
# wedges merge is faster too, by no more than 0.1 ms.
#
# Milliseconds on an H200, degree order (`dasktc bench choose --backend cuda`):
#                             hub  bitmap   trust   merge    lstc   plain   wedges
#   torus 50³               0.300   0.355   0.460   0.668   0.294   0.180      1 M   rows of 3
#   torus 300³              1.071   1.412  10.613   2.992  31.183   1.137    242 M   rows of 3, 81 M edges
#   p2p-Gnutella31          0.297   0.359   0.368   1.107   0.241   0.196    0.4 M
#   dblp-2010               0.730   0.366   0.484   0.722   0.463   0.466    3.4 M   rows: 300,647
#   amazon0601              0.437   0.360   0.483   0.632   0.913   0.200     11 M   usual row 10
#   144                     0.370   0.335   0.452   0.619   0.456   0.188    5.1 M   usual row 13
#   email-Enron             0.768   0.386   0.397   0.713   0.245   0.579    3.8 M
#   Kronecker 14            0.461   0.376   0.551   0.731   0.434   2.362     13 M
#   Kronecker 19            1.969   1.680   9.493   7.303   7.193  46.179    1.7 G
#   Kronecker 20            3.355   3.249  22.723  17.667  17.554  73.020    4.4 G
#   Kronecker 22           10.772  16.386 140.811 106.939 112.068 287.533     29 G
#   RM 2^20                 0.818   1.325   1.298   1.404   2.973   0.687    107 M   even 0.36
#   RM 2^24                 8.026  26.278  16.742  18.360  60.234  12.045    2.1 G   even 0.31, 133 M edges
#   random, degree 20       0.609   1.054   1.021   1.314   3.340   0.700     64 M   usual row 17
#   random, degree 40       1.975   7.542   2.246   2.940   7.260   2.391    261 M   usual row 34
#   random, degree 60       7.377  12.209   4.631   5.290  11.987   5.252    591 M   usual row 51, covered 0.04
#   10^5 v., degree 400     5.619   9.435  16.098  16.325  16.284  50.171    2.7 G   covered 0.36
#   clique 1500             1.152   0.382   2.708   5.438  35.787   267.4    561 M   covered 1
#
# The same between events right around a kernel's launches; above, the sums are made and read in the time, too:
#   ego-Twitter             1.313   0.741   0.922   1.006   0.560   1.284     41 M   longest row 129
#   Kronecker 14            0.546   0.415   0.513   0.785   0.370   2.306     13 M   longest row 139
#   clique 1500             1.259   0.443   3.105   5.019  36.217   273.4    561 M
#   clique 400              0.493   0.273   -       -       1.584   -         11 M   rows too few for all thread blocks
#   torus 300³              1.120   1.518  10.714   4.275  31.791   1.074    242 M   81 M edges
#   random, degree 4        1.433   1.746   6.295   3.225  22.469   1.478     44 M   40 M edges
#   torus 464³              3.23    -       -      11.89    -       3.94     900 M   300 M edges
#   the busier of two       2.64    -       -       -       -       2.23             150 M edges each, all rows recorded
#   clique 600              0.602   0.288   -       -       3.340   -         36 M
#
# On the 38 graphs that this was measured with, auto takes 1.01 times the fastest kernel's time in the mean and 1.08 at
# most, but for 0.08 ms (1.12) on RA with 10^6 vertices and 0.01 on celegans; hub takes 2.23 in the mean, 5.7 at most.
# bitmap, the best fixed choice, is nowhere faster by more than that.
#
# Over order `degree` and planner `whole`, kernel hub, geometric means of 17 graphs on the CPU and 33 (planners: 23) on
# the H200, of counting and from source to number:
#                 CPU count  whole   H200 count  whole
#   collective         1.45   1.24         1.79   1.18   on graphs without hubs counts are up to 1.1 times as fast in
#   indegree           1.18   1.07         1.39   1.06   these orders, which making them takes back
#   none               1.38   1.11         1.86   1.08
#   edges              0.98   1.00         1.11   1.02
#   hash2d, n = 2      1.96   1.42         5.85   1.53
#   vertical, n = 2    1.72   1.83         5.18   1.83
#   proxy, n = 2       1.32   2.27         2.05   2.14

from __future__ import annotations

from dataclasses import replace
from math import inf, isqrt
from typing import Any, NamedTuple

import numpy as np

from dasktc.backend import get_backend
from dasktc.backend.launch_hub import hub_count
from dasktc.backend.launch_trust import SMALL_ROW, chunk_rows, teams_of
from dasktc.csr import on_host
from dasktc.options import Options
from dasktc.orient import Oriented
from dasktc.tasks import Tasks

__all__ = ["RULES", "Facts", "Rule", "choose", "look"]

Array = Any
USUAL = 0.99


class Facts(NamedTuple):
    """What is known of an oriented graph before its ids are chosen.

    Attributes
    ----------
    usual : int
        Entries of a row that 99 % of the rows do not exceed.
    longest : int
        Entries of the longest row.
    rows, edges, wedges : int
    narrow, wide : int
        Rows of 2 to 100 entries, and of more: TRUST's two kinds.
    processors : int
        Of the device that counts; 1 on the CPU.
    """

    usual: int
    longest: int
    rows: int
    edges: int
    wedges: int
    narrow: int = 0
    wide: int = 0
    processors: int = 1

    @property
    def wedges_per_edge(self) -> float:
        """Entries of the list that an edge leads to, in the mean over the edges."""
        return self.wedges / max(1, self.edges)

    @property
    def skew(self) -> float:
        """The same over the mean row: 1 or less without hubs, for edges then lead to rows like any other."""
        return self.wedges * self.rows / max(1, self.edges) ** 2

    @property
    def covered(self) -> float:
        """The share of the rows that `hub` and `bitmap` have bitmaps of on a GPU, at most."""
        return hub_count(self.edges, self.rows) / max(1, self.rows)

    @property
    def even(self) -> float:
        """The mean row over the usual one."""
        return self.edges / max(1, self.rows * self.usual)


class Rule(NamedTuple):
    """A kernel, for graphs all of whose facts are within some ranges.

    Attributes
    ----------
    kernel : str
    within : dict of str to (float, float)
        Least and most by fact; none: any graph.
    why : str
        What the plan says, with facts in braces.
    """

    kernel: str
    within: dict[str, tuple[float, float]]
    why: str

    def fits(self, facts: Facts) -> bool:
        """Whether every fact is within its range."""
        return all(least <= getattr(facts, name) <= most for name, (least, most) in self.within.items())


FEW, SOME = 5_000_000, 2 * 10**9
"""Wedges that are counted in about the time of some launches, and in that of building tables."""
CACHED = 1 << 24
"""Edges of which most stay in a GPU's cache."""
LISTED = 64
"""Longest row of a graph that `hub` counts by records of its rows on a GPU."""
SHARED = 160
"""Longest row of a small graph that thread blocks share evenly, a few rows at a time."""
NO_CORE: dict[str, tuple[float, float]] = {"wedges_per_edge": (0, 8), "longest": (0, LISTED)}
"""Nor do most wedges lead to a few long rows: a torus has 3 an edge, a clique with many leaves hundreds, and one
in a large mesh hides in the mean."""
SMALL = "{wedges:,} wedges are few"
ROWS = "99 % of the rows have at most {usual:,} entries, the longest {longest:,}"
RULES: dict[str, tuple[Rule, ...]] = {
    "cpu": (
        Rule("merge", {"usual": (0, 4)} | NO_CORE, f"{ROWS}, and walking two costs less than any table"),
        Rule("hub", {}, f"{ROWS}, and tables pay"),
    ),
    "cuda": (
        Rule("short", {"usual": (0, 4)} | NO_CORE, f"{ROWS}, and a thread holds one in registers"),
        Rule("plain", {"usual": (0, 15), "longest": (0, LISTED), "wedges": (0, 6 * FEW)}, f"{ROWS}, and {SMALL}"),
        Rule(
            "lstc",
            {"longest": (0, SHARED), "wedges": (0, FEW), "rows": (0, 1 << 17)},
            f"{SMALL}: one launch, no tables in global memory",
        ),
        Rule(
            "lstc",
            {"longest": (LISTED + 1, SHARED), "wedges": (0, 10 * FEW), "rows": (0, 1 << 17)},
            f"{SMALL}, and no row keeps a thread block long",
        ),
        Rule("trust", {"usual": (40, inf), "skew": (0, 1), "covered": (0, 0.15)}, f"{ROWS}, and there are no hubs"),
        Rule("bitmap", {"longest": (LISTED + 1, inf), "wedges": (0, SOME)}, f"{ROWS}, and bitmaps are soon filled"),
        Rule(
            "plain",
            {"longest": (0, LISTED), "even": (0, 0.45), "edges": (0, CACHED)},
            f"{ROWS}, and the graph stays in the cache",
        ),
        Rule("hub", {}, f"{ROWS}, and records or tables pay"),
    ),
}
"""By backend; the first that fits is taken. The figures behind them stand above."""
ORDER = "rows are cut at v, and counts took 1.2 to 1.9 times as long in the others"


def look(tasks: Tasks, graph: Oriented, backend: str) -> Facts:
    """Collect the facts.

    Parameters
    ----------
    tasks : Tasks
    graph : Oriented
    backend : str
    """
    longest = max(SMALL_ROW, isqrt(2 * graph.edges))  # a row's degree is no more than those of all its entries
    found = tasks.gather(graph.out_degree.map(tasks, "plan", _rows, longest + 1, backend))
    counts = np.zeros(max(len(rows) for rows, _ in found), dtype="int64")
    for rows, _ in found:
        counts[: len(rows)] += rows
    size, reached = graph.out_degree.size, counts.cumsum()
    usual, longest = int((reached < USUAL * size).sum()), int(np.flatnonzero(counts)[-1]) if size else 0
    up_to_small, below_two = int(reached[SMALL_ROW]), int(reached[1])
    narrow, wide = up_to_small - below_two, size - up_to_small
    return Facts(usual, longest, size, graph.edges, graph.wedges, narrow, wide, found[0][1])


def _rows(out_degree: Array, first: int, bins: int, backend: str) -> tuple[Array, int]:
    """Rows of each number of entries below `bins`, on the host, and the device's processors."""
    found = get_backend(backend)
    own = found.vertices
    counts = found.array.bincount(out_degree, minlength=bins) if own is None else own.lengths(out_degree, bins)
    return on_host(counts).astype("int64", copy=False), found.processors()


def choose(options: Options, facts: Facts | None) -> tuple[Options, str]:
    """Settle on kernel and order.

    Parameters
    ----------
    options : Options
        Its backend is settled.
    facts : Facts or None
        None of a graph of which only the size is known.

    Returns
    -------
    options : Options
        Without "auto" but for the planner.
    why : str
    """
    kernel, why = options.kernel, f"kernel {options.kernel} as asked"
    if kernel == "auto":
        kernel, why = _kernel(options.chosen_backend, facts)
    order, because = _order(options)
    said = [why, *([_chunks(facts)] if (kernel, options.chosen_backend) == ("trust", "cuda") else [])]
    return replace(options, kernel=kernel, reorder=order), "; ".join([*said, f"order {order}{because}"])


def _order(options: Options) -> tuple[str, str]:
    """The order that was asked for; else TRUST's own for its kernel, if that was asked for."""
    if options.reorder != "auto":
        return options.reorder, " as asked"
    if options.kernel == "trust":
        return options.chosen_reorder, ": TRUST's own"
    return "degree", f": {ORDER}"


def _kernel(backend: str, facts: Facts | None) -> tuple[str, str]:
    if facts is None:
        return "hub", "kernel hub: a size tells nothing of the rows"
    rule = next(rule for rule in RULES[backend] if rule.fits(facts))
    return rule.kernel, f"kernel {rule.kernel}: {rule.why.format(**facts._asdict())}"


def _chunks(facts: Facts | None) -> str:
    """What `trust` takes at a time, if one task has all rows; a task of fewer rows takes no more."""
    if facts is None:
        return "chunks of rows by each task's own"
    warps, blocks = teams_of(facts.processors)
    mean = (facts.edges + facts.wedges) / max(1, facts.narrow + facts.wide)
    by_warp = chunk_rows(facts.narrow, mean, warps)
    by_block = chunk_rows(facts.wide, max(mean, SMALL_ROW * facts.wedges_per_edge), blocks)
    return (
        f"chunks of up to {by_warp:,} rows a warp, for {facts.narrow:,} rows of 2 to {SMALL_ROW} entries and "
        f"{warps:,} warps, {mean:,.0f} entries to look up a row; of {by_block:,} a thread block, for {facts.wide:,} "
        "longer rows"
    )
