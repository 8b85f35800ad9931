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
    wedges_per_edge : float
    edges : int
    narrow, wide : int
        Rows of 2 to 100 entries, and of more: TRUST's two kinds.
    processors : int
        Of the device that counts; 1 on the CPU.
    """

    usual: int
    longest: int
    wedges_per_edge: float
    edges: int = 0
    narrow: int = 0
    wide: int = 0
    processors: int = 1


class Rule(NamedTuple):
    """A kernel, for graphs none of whose facts is above some limits.

    Attributes
    ----------
    kernel : str
    most : dict of str to float
        Limits by fact; none: any graph.
    why : str
        What the plan says, with facts in braces.
    """

    kernel: str
    most: dict[str, float]
    why: str

    def fits(self, facts: Facts) -> bool:
        """Whether no fact is above its limit."""
        return all(getattr(facts, name) <= limit for name, limit in self.most.items())


ROWS = "99 % of the rows have at most {usual:,} entries, the longest {longest:,}"
RULES: dict[str, tuple[Rule, ...]] = {
    "cpu": (
        Rule("merge", {"usual": 4}, f"{ROWS}, and walking two costs less than any table"),
        Rule("hub", {}, f"{ROWS}, and tables pay"),
    ),
    "cuda": (Rule("hub", {}, "it takes edges, bitmaps or tables row by row"),),
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
    usual, longest, narrow, wide, processors = tasks.gather([tasks.submit("plan", _rows, graph.out_degree, backend)])[0]
    return Facts(usual, longest, graph.wedges / max(1, graph.edges), graph.edges, narrow, wide, processors)


def _rows(out_degree: Array, backend: str) -> tuple[int, int, int, int, int]:
    found, size = get_backend(backend), len(out_degree)
    if not size:
        return 0, 0, 0, 0, found.processors()
    reached = found.array.cumsum(found.array.bincount(out_degree, minlength=SMALL_ROW + 1))
    usual = int((reached < USUAL * size).sum())
    up_to_small, below_two = int(reached[SMALL_ROW]), int(reached[1])
    return usual, int(out_degree.max()), up_to_small - below_two, size - up_to_small, found.processors()


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
    mean = facts.edges * (1 + facts.wedges_per_edge) / max(1, facts.narrow + facts.wide)
    by_warp = chunk_rows(facts.narrow, mean, warps)
    by_block = chunk_rows(facts.wide, max(mean, SMALL_ROW * facts.wedges_per_edge), blocks)
    return (
        f"chunks of up to {by_warp:,} rows a warp, for {facts.narrow:,} rows of 2 to {SMALL_ROW} entries and "
        f"{warps:,} warps, {mean:,.0f} entries to look up a row; of {by_block:,} a thread block, for {facts.wide:,} "
        "longer rows"
    )
