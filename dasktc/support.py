"""Support: for every edge, and so for every vertex, the triangles that it is in.

These are the counting tasks with another output. A task visits its triangles and adds one to each
of their three edges; what different tasks find for a block is added up. Tasks are cut by rows, with
`edges` too: supports stand beside the columns of a whole block. The work is that of `trust`. A vertex's edges have
twice its triangles together. The wedges of all tasks are checked as those of a count are.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dasktc.backend import get_backend, support_bytes
from dasktc.count import Job, Record, check, jobs
from dasktc.csr import BlockTask, OrientedCSR, TaskCount
from dasktc.errors import InputError
from dasktc.orient import total
from dasktc.plan import size
from dasktc.planners import Block, Triple
from dasktc.tasks import Tasks, tree

if TYPE_CHECKING:
    from dasktc.graph import Graph

__all__ = ["edge_supports", "refuse_beyond_memory", "vertex_supports"]

Array = Any
Ends = dict[Block, tuple[tuple[int, int], tuple[int, int]]]
"""Side and number of vertices of each block's rows and columns."""
ARITY = 4
"""Contributions added at a time: together no larger than the task that makes one."""


def edge_supports(graph: Graph) -> tuple[dict[Block, Any], int]:
    """Count every edge's triangles.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    supports : dict of (i, j) to handle of array of int32
        By place of the block, aligned with its columns. Of planners that put an edge into several blocks, its
        supports there add up to its triangles.
    triangles : int
        Of the graph.

    Raises
    ------
    InputError
        A task needs more memory than a worker has.
    CountError
        The tasks did not handle every wedge once.
    """
    return _sums(graph, _by_edge, lambda triple: triple.places, {})


def vertex_supports(graph: Graph) -> tuple[dict[int, Any], int]:
    """Sum every vertex's edges' supports; parameters and errors are those of `edge_supports`.

    Returns
    -------
    sums : dict of int to handle of array of int64
        By side of the blocks (`Planner.sides`): the sums of its vertices, in the order of their numbers. A
        vertex that is on several sides has the sum of all of them.
    triangles : int
        Of the graph.
    """
    plan, (_, rows, columns) = graph.plan, graph.prepared.sizes
    ends: Ends = {}
    for place in graph.blocks:
        row, column = plan.planner.sides(plan.parts, place)
        ends[place] = (row, int(rows[place])), (column, int(columns[place]))
    return _sums(graph, _by_vertex, lambda triple: [side for place in triple.places for side, _ in ends[place]], ends)


def _sums(
    graph: Graph, visit: Callable[..., list[Any]], keys: Callable[[Triple], Any], ends: Ends
) -> tuple[dict[Any, Any], int]:
    """Run `visit` for every counting task, and add up the arrays that it returns.

    These are one array for each distinct key of the triple, in ascending order; a Record follows.
    """
    graph.tasks.reserve(refuse_beyond_memory(graph))
    tasks, blocks, records = graph.tasks, graph.blocks, []
    sums: dict[Any, _Sum] = defaultdict(lambda: _Sum(tasks))
    for job in jobs(graph.plan, "trust", graph.options.chosen_backend):
        sides = {place: ends[place] for place in job.triple.places if ends}
        found = tasks.submit("support", visit, job, sides, *(blocks[place] for place in job.triple.places))
        distinct = sorted(set(keys(job.triple)))
        for position, key in enumerate(distinct):
            sums[key].add(tasks.submit("support", operator.getitem, found, position))
        records.append(tasks.submit("support", operator.getitem, found, len(distinct)))
    reported: list[Record] = tasks.gather(records)
    check(reported, graph.plan, graph.prepared.wedges)
    return {key: found.result() for key, found in sums.items()}, sum(r.count.triangles for r in reported)


def refuse_beyond_memory(graph: Graph) -> int:
    """Keep the budget: next to the blocks, a visit holds their supports and the sums of three parts.

    Returns
    -------
    int
        Bytes that a task needs.

    Raises
    ------
    InputError
        A task needs more memory than a worker has.
    """
    from dasktc.backend.splits import sample_bytes

    plan, sizes, blocks = graph.plan, graph.prepared.sizes, min(3, graph.prepared.sizes.edges.size)
    rows, edges = int(max(sizes.rows.max(), sizes.columns.max())), blocks * int(sizes.edges.max())
    sample = sample_bytes(int(sizes.edges.max()), plan.splits)
    need = 4 * edges + 2 * 8 * blocks * rows + max(support_bytes(graph.options.chosen_backend, edges, rows), sample)
    if need > plan.memory:
        raise InputError(
            f"a task that visits triangles needs {size(need)} at n = {plan.parts}, more than the {size(plan.memory)} "
            f"of one worker: it keeps a number for every edge; prepare with parts={2 * plan.parts}, or raise memory"
        )
    return need


class _Sum:
    """`tree` over vectors that come one by one: few of them wait at a time, also where a task runs at once."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._levels: list[list[Any]] = []

    def add(self, handle: Any) -> None:
        """Take one vector more; a full level is added up, and the sum moves one level up."""
        for level in self._levels:
            level.append(handle)
            if len(level) < ARITY:
                return
            handle = tree(self._tasks, "sum", total, level, ARITY)
        self._levels.append([handle])

    def result(self) -> Any:
        """Handle of the sum of all."""
        return tree(self._tasks, "sum", total, [handle for level in self._levels for handle in level], ARITY)


Visited = dict[Block, tuple[OrientedCSR, Array]]
"""Each block of a task, by place, and its edges' supports."""


def _visited(job: Job, blocks: tuple[OrientedCSR, ...]) -> tuple[Visited, Record]:
    by_place = dict(zip(job.triple.places, blocks, strict=True))
    index, table, stream = (by_place[place] for place in job.triple.places)
    task = BlockTask(index, table, stream, job.split, job.splits, job.kernel)
    supports, triangles, wedges = get_backend(job.backend).support(task)
    found = {place: (by_place[place], array) for place, array in zip(job.triple.places, supports, strict=True)}
    return found, Record(job, TaskCount(triangles, wedges, probes=0), worker="")


def _by_edge(job: Job, _: Ends, *blocks: OrientedCSR) -> list[Any]:
    found, record = _visited(job, blocks)
    return [*(found[place][1] for place in sorted(found)), record]


def _by_vertex(job: Job, ends: Ends, *blocks: OrientedCSR) -> list[Any]:
    backend = get_backend(job.backend)
    found, record = _visited(job, blocks)
    sums: dict[int, Array] = {}
    for place, (block, supports) in found.items():
        for side, vertices in ends[place]:
            sums.setdefault(side, backend.array.zeros(vertices, dtype="int64"))
        (row, _), (column, _) = ends[place]
        backend.add_ends(block, supports, sums[row], sums[column])
    return [*(sums[side] for side in sorted(sums)), record]
