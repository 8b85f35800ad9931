"""Which kernel and which order of ids `auto` takes, from what the orientation knows of the graph.

No single method wins everywhere (TRUST, section 6.2; Fox et al., section V): where rows hold a handful of entries,
as in roads and meshes, walking two of them costs less than any table; everywhere else the tables of `hub` win, by
up to two orders of magnitude. The planner is chosen by memory (module `plan`): the whole graph where it fits, else
the smallest n of `hash2d`.
"""

# CPU seconds of a count, hub over merge, in degree order; rows that 99 % of the vertices do not exceed in brackets.
# grid 70³ [4] 1.26; triangular mesh 500² [3] 1.27; wing [4] 1.12; random, degree 4 [4] 0.85 to 1.06, degree 2 [2] 1.6;
# random, degree 8 [7] 0.34; dblp-2010 [13] 0.90; p2p-Gnutella31 [9] 0.91; amazon0601 0.40; ego-Twitter [74] 0.22.

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from dasktc.backend import get_backend
from dasktc.backend.launch_trust import SMALL_ROW, chunk_rows, teams_of
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


FEW, SOME = 5_000_000, 10**9
"""Wedges that are counted in about the time of some launches, and in that of building tables."""
SMALL = "{wedges:,} wedges are few"
ROWS = "99 % of the rows have at most {usual:,} entries, the longest {longest:,}"
RULES: dict[str, tuple[Rule, ...]] = {
    "cpu": (
        Rule("merge", {"usual": (0, 4)}, f"{ROWS}, and walking two costs less than any table"),
        Rule("hub", {}, f"{ROWS}, and tables pay"),
    ),
    "cuda": (
        Rule("plain", {"usual": (0, 4)}, f"{ROWS}, and a thread walks two of them in one launch"),
        Rule("plain", {"usual": (0, 10), "wedges": (0, FEW)}, f"{ROWS}, and {SMALL}"),
        Rule("lstc", {"wedges": (0, FEW)}, f"{SMALL}: one launch without tables in global memory"),
        Rule(
            "merge", {"longest": (65, inf), "skew": (0, 1)}, f"{ROWS}, all alike: there are no hubs to have bitmaps of"
        ),
        Rule("bitmap", {"longest": (65, inf), "wedges": (0, SOME)}, f"{ROWS}, and hubs' bitmaps are soon filled"),
        Rule("plain", {"edges": (0, 1 << 24), "even": (0, 0.4)}, f"{ROWS}, and the graph stays in the cache"),
        Rule("hub", {}, f"{ROWS}, and records or tables pay"),
    ),
}
"""By backend; the first that fits is taken. The figures behind them stand above."""
ORDER = "rows are cut at v, and no order made the count shorter"


def look(tasks: Tasks, graph: Oriented, backend: str) -> Facts:
    """Collect the facts.

    Parameters
    ----------
    tasks : Tasks
    graph : Oriented
    backend : str
    """
    of_rows = tasks.gather([tasks.submit("plan", _rows, graph.out_degree, backend)])[0]
    usual, longest, rows, narrow, wide, processors = of_rows
    return Facts(usual, longest, rows, graph.edges, graph.wedges, narrow, wide, processors)


def _rows(out_degree: Array, backend: str) -> tuple[int, int, int, int, int, int]:
    """Usual and longest row, rows in all, of 2 to 100 entries and of more, and the device's processors."""
    found, size = get_backend(backend), len(out_degree)
    if not size:
        return 0, 0, 0, 0, 0, found.processors()
    reached = found.array.cumsum(found.array.bincount(out_degree, minlength=SMALL_ROW + 1))
    usual = int((reached < USUAL * size).sum())
    up_to_small, below_two = int(reached[SMALL_ROW]), int(reached[1])
    return usual, int(out_degree.max()), size, up_to_small - below_two, size - up_to_small, found.processors()


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
    chosen = replace(options, kernel=kernel)
    order = f"order {chosen.chosen_reorder}"
    if options.reorder != "auto":
        order += " as asked"
    else:
        order += ": TRUST's own" if chosen.chosen_reorder == "collective" else f": {ORDER}"
    said = [why, *([_chunks(facts)] if (kernel, chosen.chosen_backend) == ("trust", "cuda") else []), order]
    return replace(chosen, reorder=chosen.chosen_reorder), "; ".join(said)


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
