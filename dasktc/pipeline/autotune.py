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
#                             hub  bitmap   trust   merge    lstc   short   wedges
#   torus 50³               0.316   0.367   0.429   0.563   0.224   0.065      1 M   rows of 3
#   torus 300³              1.075   1.440  10.636   4.055  31.752   0.318    242 M   rows of 3, 81 M edges
#   torus 464³              3.24    -       -      11.89    -       0.97     900 M   300 M edges
#   random, degree 4        1.300   1.628   6.097   3.147  22.497   1.448     44 M   40 M edges
#   p2p-Gnutella31          0.426   0.505   0.458   0.756   0.193   0.113    0.4 M
#   dblp-2010               1.227   0.479   0.559   0.917   0.445   0.420    3.4 M   rows: 300,647
#   amazon0601              0.475   0.400   0.528   0.663   0.870   0.128     11 M   usual row 10
#   144                     0.415   0.374   0.487   0.647   0.414   0.123    5.1 M   usual row 13
#   email-Enron             1.145   0.316   0.437   0.570   0.160   0.488    3.8 M
#   ego-Twitter             1.383   0.742   0.874   0.934   0.558   1.244     41 M   longest row 129
#   Kronecker 14            0.492   0.381   0.615   0.718   0.362   2.313     13 M   longest row 139
#   Kronecker 19            1.995   1.584   9.495   6.998   7.172  45.071    1.7 G
#   Kronecker 20            2.735   2.920  22.161  16.728  17.231  76.362    4.4 G
#   Kronecker 22           10.641  16.222 142.762 105.534 111.659 300.646     29 G
#   RM 2^20                 0.656   1.154   1.072   0.983   2.849   0.577    107 M   even 0.36
#   RM 2^24                 7.921  26.231  16.443  19.064  59.443   9.482    2.1 G   even 0.31, 133 M edges
#   RA 10^7                 3.522   9.485   8.373  12.568  41.011   5.807    639 M   usual row 17
#   random, degree 40       1.913   7.549   2.144   2.662   7.133   1.880    261 M   usual row 34
#   random, degree 60       7.233  12.161   4.505   4.929  11.765   4.184    591 M   usual row 51, covered 0.04
#   random, degree 100     27.137  20.729  12.792  11.832  22.006  10.889    1.7 G   usual row 87
#   10^5 v., degree 400     5.734   9.321  15.862  15.895  16.044  50.239    2.7 G   covered 0.36
#   clique 1500             1.210   0.393   2.860   4.912  35.465   270.8    561 M   covered 1
#   clique 600              0.602   0.288   -       -       3.340   -         36 M
#   clique 400              0.493   0.273   -       -       1.584   -         11 M   rows too few for all thread blocks
#
# Between events right around a kernel's launches; `plain` takes 0.9 to 3.4 times as long as `short`. On the 38 graphs
# measured, auto takes 1.02 times the fastest kernel's time in the mean and 1.08 at most, but for 0.15 ms
# (1.11) on random rows of 4, 0.22 (1.16) on 10^5 vertices of degree 100, 0.06 (1.14) on dblp-2010 and 0.06 (1.12) on RM
# 2^20; hub takes 2.6 in the mean, 7.2 at most. bitmap, the best fixed choice, is nowhere faster than auto.
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

from dasktc.backends import get_backend
from dasktc.backends.csr import on_host
from dasktc.backends.cuda.launch_hub import hub_count
from dasktc.backends.cuda.launch_trust import SMALL_ROW, chunk_rows, teams_of
from dasktc.executors.dask.executor import Executor
from dasktc.options import Options
from dasktc.pipeline.orient import Oriented

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
WALKED = 96
"""Usual row up to which walking two rows costs less than hashing one."""
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
        Rule("short", {"usual": (0, 15), "longest": (0, LISTED), "wedges": (0, 6 * FEW)}, f"{ROWS}, and {SMALL}"),
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
        Rule(
            "short",
            {"usual": (40, WALKED), "longest": (0, SHARED), "skew": (0, 1), "covered": (0, 0.15)},
            f"{ROWS}, and there are no hubs",
        ),
        Rule("trust", {"usual": (40, inf), "skew": (0, 1), "covered": (0, 0.15)}, f"{ROWS}, and there are no hubs"),
        Rule("bitmap", {"longest": (LISTED + 1, inf), "wedges": (0, SOME)}, f"{ROWS}, and bitmaps are soon filled"),
        Rule(
            "short",
            {"longest": (0, LISTED), "even": (0, 0.45), "edges": (0, CACHED)},
            f"{ROWS}, and the graph stays in the cache",
        ),
        Rule("hub", {}, f"{ROWS}, and records or tables pay"),
    ),
}
"""By backend; the first that fits is taken. The figures behind them stand above."""
ORDER = "rows are cut at v, and counts took 1.2 to 1.9 times as long in the others"


def look(executor: Executor, graph: Oriented, backend: str) -> Facts:
    """Collect the facts.

    Parameters
    ----------
    executor : Executor
    graph : Oriented
    backend : str
    """
    longest = max(SMALL_ROW, isqrt(2 * graph.edges))  # a row's degree is no more than those of all its entries
    found = executor.gather(graph.out_degree.map(executor, "plan", _rows, longest + 1, backend))
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
