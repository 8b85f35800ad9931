"""Reordering: relabels the oriented graph by one of five vertex orders; the directions of edges stay as they are.

degree             id 0 has the highest degree: the ranks as they are. Every edge points to a smaller id.
collective         TRUST's collective degree order (section 4.1).
collective-banded  the same in the three bands of out-degree of section 5.1: above 100, 2 to 100, below 2.
indegree           id 0 has the highest in-degree (TRUST, section 4.1).
none               the caller's ids in ascending order.

The paper assigns collective ids one after another: visit the vertices u by descending collective degree, and number
those neighbours of u that have no number yet. A sort gives the same order: v is numbered by the first visited u that
points to it and, among the neighbours of this u, by its place. In bands the same is done for each band in turn (section
5.1: ids of similar out-degree, which id % n deals out evenly). A vertex without in-neighbours is in no list and is
never hashed; it comes last.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dasktc.executors.base import Executor, tree
from dasktc.pipeline.orient import Oriented
from dasktc.pipeline.sharded.vectors import Sharded
from dasktc.pipeline.stages.orient import inverse, order_by, total
from dasktc.pipeline.stages.reorder import by_band_and_visit, by_visit, collective_degree, first_visit, relabel, take
from dasktc.pipeline.stages.shards import joined

__all__ = [
    "by_banded_collective_degree",
    "by_collective_degree",
    "by_dense_id",
    "by_indegree",
    "reorder",
]

Array = Any
Chosen = Callable[[Executor, Oriented, int], Any]


def reorder(executor: Executor, graph: Oriented, chosen: Chosen | None, shift: int) -> Oriented:
    """Relabel the oriented graph by a vertex order.

    Parameters
    ----------
    executor : Executor
    graph : Oriented
        Over ranks. Its partitions are emptied, unless the ranks stay the ids.
    chosen : callable (executor, graph, shift) -> handle, or None
        Returns the ranks in the new order (`orders.Order.chosen`); None: the ranks stay the ids.
    shift : int

    Returns
    -------
    Oriented
        Over the new ids; every target is below its source only where the ranks stay.
    """
    if chosen is None:
        return graph
    ranks = chosen(executor, graph, shift)
    place = executor.submit("reorder", inverse, ranks, executor.backend)
    partitions = executor.map("reorder", relabel, graph.partitions, place, shift, executor.backend)
    order, outward, inward = (
        Sharded(vector.starts, [executor.submit("reorder", take, vector.whole, ranks)])
        for vector in (graph.order, graph.out_degree, graph.in_degree)
    )
    return Oriented(partitions, order, outward, inward, graph.wedges, graph.edges)


def by_dense_id(executor: Executor, graph: Oriented, shift: int) -> Any:
    """Handle of the ranks in ascending order of the caller's ids."""
    return executor.submit("reorder", inverse, graph.order.whole, executor.backend)


def by_indegree(executor: Executor, graph: Oriented, shift: int) -> Any:
    """Handle of the ranks in descending order of in-degree."""
    return executor.submit("reorder", order_by, graph.in_degree.whole, executor.backend)


def by_collective_degree(executor: Executor, graph: Oriented, shift: int) -> Any:
    """Handle of the ranks in TRUST's collective degree order (section 4.1)."""
    return _collective(executor, graph, shift, by_visit)


def by_banded_collective_degree(executor: Executor, graph: Oriented, shift: int) -> Any:
    """Handle of the ranks in TRUST's collective degree order, in bands of out-degree (section 5.1)."""
    return _collective(executor, graph, shift, by_band_and_visit)


def _collective(executor: Executor, graph: Oriented, shift: int, ranked: Callable[..., Array]) -> Any:
    out = graph.out_degree.whole
    sums = executor.map("reorder", collective_degree, list(graph.partitions), out, shift, executor.backend)
    visited = executor.submit("reorder", order_by, tree(executor, "reorder", total, sums), executor.backend)
    visit = executor.submit("reorder", inverse, visited, executor.backend)
    firsts = executor.map(
        "reorder", first_visit, list(graph.partitions), visit, graph.order.size, shift, executor.backend
    )
    first = tree(executor, "reorder", partial(joined, how="minimum", backend=executor.backend), firsts)
    return executor.submit("reorder", ranked, out, first, graph.order.whole, executor.backend)
