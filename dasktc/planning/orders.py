"""Registered vertex orders (`--reorder`), declared as data: what ranks the vertices. No module compares their names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from dasktc.registry import ORDERS

__all__ = ["OWN", "Order", "Ranking"]


class Ranking(Enum):
    """What vertices are ranked by; ties by the caller's ids, ascending.

    DEGREE        descending degree: the ranks of the orientation. Every edge points to a smaller id. On CPUs, and on a
                  GPU of this process without a budget, vertices of a graph that may become one block are ranked by the
                  rows that name them, repeats included (`Plane.is_ranked_by_rows`).
    COLLECTIVE    TRUST's collective degree order (section 4.1).
    BANDED        the same in the three bands of out-degree of section 5.1: above 100, 2 to 100, below 2.
    IN_DEGREE     descending in-degree (TRUST, section 4.1).
    CALLERS_ID    the caller's ids, ascending.

    The paper assigns collective ids one after another: visit the vertices u by descending collective degree, and number
    those neighbours of u that have no number yet. A sort gives the same order: v is numbered by the first visited u
    that points to it and, among the neighbours of this u, by its place. In bands the same is done for each band in turn
    (section 5.1: ids of similar out-degree, which id % n deals out evenly). A vertex without in-neighbours is in no
    list and is never hashed; it comes last.
    """

    DEGREE = auto()
    COLLECTIVE = auto()
    BANDED = auto()
    IN_DEGREE = auto()
    CALLERS_ID = auto()


@dataclass(frozen=True)
class Order:
    """A vertex order: its name, its help, and how it ranks.

    Attributes
    ----------
    name, help : str
        Its value of `--reorder`, and its line of help, which names the section of TRUST.
    ranking : Ranking
        What it ranks by; the planes have the functions.
    rank_bytes : int
        Bytes a vertex that ranking takes: five vectors of 64 bits, or more.
    """

    name: str
    help: str
    ranking: Ranking
    rank_bytes: int = 40

    @property
    def ordered(self) -> bool:
        """Whether every oriented edge points to a smaller id, so that a block's rows can be cut at v."""
        return self.ranking is Ranking.DEGREE


OWN = (
    Order("degree", "descending degree, or number of rows that name a vertex; rows can be cut at v", Ranking.DEGREE),
    Order("collective", "TRUST's collective degree order (section 4.1)", Ranking.COLLECTIVE, 80),
    Order("collective-banded", "the same in three bands of out-degree (TRUST, section 5.1)", Ranking.BANDED, 80),
    Order("indegree", "id 0 has the highest in-degree (TRUST, section 4.1)", Ranking.IN_DEGREE),
    Order("none", "the caller's ids, ascending", Ranking.CALLERS_ID),
)
"""In the order of the help text."""
ORDERS.declare(OWN, Order)
