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
from dasktc.options import Options
from dasktc.orient import Oriented
from dasktc.tasks import Tasks

__all__ = ["Facts", "choose", "look"]

Array = Any
WALKED = 4
"""Longest usual row with which `merge` wins."""
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
    """

    usual: int
    longest: int
    wedges_per_edge: float


def look(tasks: Tasks, graph: Oriented, backend: str) -> Facts:
    """Collect the facts.

    Parameters
    ----------
    tasks : Tasks
    graph : Oriented
    backend : str
    """
    usual, longest = tasks.gather([tasks.submit("plan", _rows, graph.out_degree, backend)])[0]
    return Facts(usual, longest, graph.wedges / max(1, graph.edges))


def _rows(out_degree: Array, backend: str) -> tuple[int, int]:
    if not len(out_degree):
        return 0, 0
    reached = get_backend(backend).array.cumsum(get_backend(backend).array.bincount(out_degree))
    return int((reached < USUAL * len(out_degree)).sum()), len(reached) - 1


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
        order += ": TRUST's own" if chosen.chosen_reorder == "collective" else ": rows are cut at v"
    return replace(chosen, reorder=chosen.chosen_reorder), f"{why}; {order}"


def _kernel(backend: str, facts: Facts | None) -> tuple[str, str]:
    if backend == "cuda":
        return "hub", "kernel hub: it takes edges, bitmaps or tables row by row"
    if facts is None:
        return "hub", "kernel hub: a size tells nothing of the rows"
    rows = f"99 % of the rows have at most {facts.usual:,} entries, the longest {facts.longest:,}"
    if facts.usual <= WALKED:
        return "merge", f"kernel merge: {rows}, and walking two costs less than any table"
    return "hub", f"kernel hub: {rows}, and tables pay"
