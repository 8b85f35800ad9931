"""Registered vertex orders (`--reorder`), one object each.

Only `degree` keeps the ranks of the orientation, so that a block's rows can be cut at v (`OrientedCSR.ordered`). An
order declares that itself (`Order.ordered`); no other module compares the names of orders.
"""

from __future__ import annotations

from dataclasses import dataclass

from dasktc.pipeline import orient_sharded as sharded
from dasktc.pipeline import reorder

__all__ = ["OWN", "Order"]


@dataclass(frozen=True)
class Order:
    """A vertex order: its name, its help, and the functions that compute it.

    Attributes
    ----------
    name, help : str
        Its value of `--reorder`, and its line of help, which names the section of TRUST.
    chosen : callable (executor, graph, shift) -> handle of array, or None
        Returns the ranks in the new order; None: the ranks stay the ids.
    places : callable (executor, graph, shift) -> Sharded, or None
        The same for sharded vertex vectors: returns the new id of each rank.
    rank_bytes : int
        Bytes a vertex that ranking takes: five vectors of 64 bits, or more.
    """

    name: str
    help: str
    chosen: reorder.Chosen | None = None
    places: sharded.Places | None = None
    rank_bytes: int = 40

    @property
    def ordered(self) -> bool:
        """Whether every oriented edge points to a smaller id."""
        return self.chosen is None


OWN = (
    Order("degree", "id 0 has the highest degree; rows can be cut at v"),
    Order(
        "collective",
        "TRUST's collective degree order (section 4.1)",
        reorder.by_collective_degree,
        sharded.by_collective_degree,
        80,
    ),
    Order(
        "collective-banded",
        "the same in three bands of out-degree (TRUST, section 5.1)",
        reorder.by_banded_collective_degree,
        sharded.by_banded_collective_degree,
        80,
    ),
    Order("indegree", "id 0 has the highest in-degree (TRUST, section 4.1)", reorder.by_indegree, sharded.by_indegree),
    Order("none", "the caller's ids, ascending", reorder.by_dense_id, sharded.by_dense_id),
)
"""In the order of the help text."""
