"""Counts the triangles of every edge (its support) and of every vertex.

These are counting tasks with another output, run in the same way: a few in flight, where their blocks are. Some kernels
compute both outputs with the intersections of their count: the kernel of the count is used if it can, else the
backend's default, or one that takes less memory (`backends.support_kernels`). If none fits the memory, triangles are
visited one by one, with work shares planned as for `trust`; the supports of a vertex's edges then add up to twice its
triangles. Workers add up the arrays of different tasks as they arrive. Tasks are split by rows, even for scheme
`edges`, because supports are stored beside the columns of a whole block. The wedges of all tasks are checked as in a
count; the supports of a task, or its sums by vertex, must add up to three for each of its triangles.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from dasktc.backends import get_backend, support_bytes, support_kernels, support_scratch_bytes
from dasktc.backends.csr import BlockTask, OrientedCSR, TaskCount
from dasktc.backends.protocol import GraphBounds
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import Job, Record, check, in_halves, jobs, task_of
from dasktc.errors import CountError, InputError
from dasktc.executors.base import Fold
from dasktc.options import format_size, refuse_beyond
from dasktc.pipeline.stages.orient import total
from dasktc.planning.memory_model import task_bytes
from dasktc.planning.plan import Plan
from dasktc.planning.schemes import Block, Triple
from dasktc.registry import ORDERS
from dasktc.wording import advice, plural

__all__ = [
    "edge_supports",
    "kernel_and_bytes",
    "of_all_blocks",
    "sums_by_place",
    "support_kernel",
    "supports_of_task",
    "vertex_supports",
    "zeros_of",
]

Array = Any
Key = TypeVar("Key", Block, int)
_log = logging.getLogger("dasktc")
SUM = Fold(lambda: 0, operator.iadd, total)
"""Fold that adds up arrays."""
VISITED = "trust"
"""Kernel whose work estimate splits visits evenly. Tasks that visit carry its name: it computes no supports itself."""
SPREAD = 64
"""Tasks per worker above which splits are merged, because more of them balance the work no better."""
Ends = dict[Block, tuple[tuple[int, int], tuple[int, int]]]
"""Side and number of vertices of the rows and of the columns of each block."""


def edge_supports(graph: CountingContext) -> tuple[dict[Block, Any], int]:
    """Count every edge's triangles.

    Returns handles of arrays of int32 by position of the block, aligned with its columns, and the triangles of the
    graph. If the scheme puts an edge into several blocks, its supports there add up to its triangles. InputError: a
    task needs more memory than a worker has. CountError: the tasks did not handle every wedge once.
    """
    nbytes = 4 * int(graph.prepared.sizes.edges.sum())
    supports, triangles = _sums(graph, _by_edge, lambda triple: triple.places, {}, nbytes)
    return of_all_blocks(graph, supports), triangles


def of_all_blocks(graph: CountingContext, sums: dict[Block, Any], dtype: str = "int32") -> dict[Block, Any]:
    """Add zeros for the edges of blocks in no task, because their triples have no wedge; return all, by place."""
    backend, places = graph.options.chosen_backend, graph.blocks.keys() - sums.keys()
    zeros = {p: graph.executor.submit("support", zeros_of, graph.blocks[p], backend, dtype) for p in places}
    return dict(sorted((sums | zeros).items()))


def zeros_of(block: OrientedCSR, backend: str, dtype: str = "int32") -> Array:
    """Allocate an array with a zero for each edge of a block."""
    zeros: Array = get_backend(backend).array.zeros(block.edges, dtype=dtype)
    return zeros


def vertex_supports(graph: CountingContext) -> tuple[dict[int, Any], int]:
    """Count every vertex's triangles; errors are those of `edge_supports`.

    Returns handles of arrays of int64 by side of the blocks (`Scheme.sides`), the sums of its vertices in the order of
    their numbers, and the triangles of the graph. If a vertex is on several sides, its sums add up to its triangles.
    """
    plan, (_, rows, columns) = graph.plan, graph.prepared.sizes
    ends: Ends = {}
    for place in graph.blocks:
        row, column = plan.scheme.sides(plan.parts, place)
        ends[place] = (row, int(rows[place])), (column, int(columns[place]))
    sides = dict(end for pair in ends.values() for end in pair)

    def keys(triple: Triple) -> list[int]:
        return [side for place in triple.places for side, _ in ends[place]]

    return _sums(graph, _by_vertex, keys, ends, 8 * sum(sides.values()))


def _sums(
    graph: CountingContext, visit: Callable[..., list[Any]], keys: Callable[[Triple], Any], ends: Ends, nbytes: int
) -> tuple[dict[Any, Any], int]:
    """Run `visit` for every counting task and add up the arrays that it returns.

    It returns one array for each distinct key of the triple, in ascending order, `nbytes` altogether, and a Record.
    """
    plan, (kernel, task_memory) = graph.plan, kernel_and_bytes(graph)
    splits = -(-SPREAD * plan.workers * plan.splits // max(1, plan.tasks))
    if splits < plan.splits:  # each makes arrays as long as the blocks
        coarse_plan = replace(plan, splits=splits, tasks=plan.tasks // plan.splits * splits)
        with suppress(InputError):  # larger splits may need more memory than is available
            substitute, nbytes_coarse = kernel_and_bytes(graph, coarse_plan)
            if substitute == kernel:
                plan, task_memory = coarse_plan, nbytes_coarse
    task_memory = min(plan.memory, task_memory + graph.answers.bytes_of_sums(nbytes, plan.workers))
    graph.executor.store.set_task_memory(task_memory, plan.memory)
    _log.info("triangles by %s: kernel %s", "vertex" if ends else "edge", "visit" if kernel == VISITED else kernel)
    blocks, work = graph.blocks, jobs(plan, kernel, graph.options.chosen_backend)
    calls = [
        (job, {place: ends[place] for place in job.triple.places if ends}, *(blocks[p] for p in job.triple.places))
        for job in work
    ]
    results = graph.answers.fold_unordered("support", visit, calls, lambda job: sorted(set(keys(job.triple))), SUM)
    records: list[Record] = results[0]
    check(records, plan, graph.prepared.wedges)
    return results[1], sum(record.count.triangles for record in records)


def kernel_and_bytes(graph: CountingContext, plan: Plan | None = None) -> tuple[str, int]:
    """Choose the first kernel that computes supports itself and whose tables fit, else the one that visits.

    `plan` has the splits; None: the graph's plan. Returns also the bytes that a task needs: the blocks, their supports,
    the sums of three parts, and the kernel's scratch. InputError: a task needs more memory than a worker has.
    """
    from dasktc.backends.cpu.splits import sample_bytes

    plan, sizes = plan or graph.plan, graph.prepared.sizes
    blocks = min(3, sizes.edges.size)
    backend = graph.options.chosen_backend
    rows, edges = int(max(sizes.rows.max(), sizes.columns.max())), blocks * int(sizes.edges.max())
    sample = sample_bytes(int(sizes.edges.max()), plan.splits)
    outputs = 4 * edges + 2 * 8 * blocks * rows
    bounds = GraphBounds(graph.prepared.weights, ORDERS[graph.options.chosen_reorder].ordered)
    for kernel in support_kernels(backend, graph.options.chosen_kernel):
        scratch = partial(support_scratch_bytes, backend, kernel, graph=bounds)
        nbytes = outputs + int(task_bytes(plan.scheme, plan.parts, plan.splits, sizes, scratch).max())
        if nbytes <= plan.memory:
            return kernel, nbytes
    nbytes = outputs + max(support_bytes(backend, edges, rows), sample)
    fact = f"a task that visits triangles needs {format_size(nbytes)} at n = {plan.parts}"
    remedy = f"prepare with {advice(parts=2 * plan.parts)}, or raise {advice('memory')}"
    refuse_beyond(plan.memory, nbytes, fact, f"it keeps a number for every edge; {remedy}")
    return VISITED, nbytes


def support_kernel(graph: CountingContext) -> str:
    """Name the kernel that counts triangles by vertex and by edge; "visit" if they are visited one by one."""
    kernel, _ = kernel_and_bytes(graph)
    return "visit" if kernel == VISITED else kernel


def _by_edge(job: Job, _: Ends, *blocks: OrientedCSR) -> list[Any]:
    return _checked(job, *supports_of_task(job, blocks))


def _by_vertex(job: Job, ends: Ends, *blocks: OrientedCSR) -> list[Any]:
    sizes = dict(end for pair in ends.values() for end in pair)
    is_visited = job.kernel == VISITED
    return _checked(job, *(_ends_of_edges if is_visited else _vertices)(job, ends, sizes, blocks))


def _checked(job: Job, sums: dict[Key, Array], record: Record) -> list[Any]:
    """Return the arrays of a task, ascending by key, and its record; refuse those without three of each triangle."""
    incidences, triangles = sum(int(array.sum(dtype="int64")) for array in sums.values()), record.count.triangles
    if incidences != 3 * triangles:
        raise CountError(
            f"{job}: {plural(triangles, 'triangle has', 'triangles have')} {plural(incidences, 'edge')} or vertices, "
            f"not three each: kernel {job.kernel} is wrong there; prepare with another kernel, and report this with "
            "`dasktc info`"
        )
    return [*(sums[key] for key in sorted(sums)), record]


def supports_of_task(job: Job, blocks: tuple[OrientedCSR, ...]) -> tuple[dict[Block, Array], Record]:
    """Supports of the edges of a task's blocks, by place."""
    return sums_by_place(lambda part: get_backend(job.backend).support(part, job.kernel), job, blocks)


def sums_by_place(
    function: Callable[[BlockTask], tuple[list[Array], int, int]], job: Job, blocks: tuple[OrientedCSR, ...]
) -> tuple[dict[Block, Array], Record]:
    """Add up arrays for the edges of a task's blocks, by place, over the parts for which memory suffices.

    The function returns one for each of index, table and stream, and triangles and wedges.
    """

    def by_place(part: BlockTask) -> tuple[dict[Block, Array], int, int]:
        arrays, triangles, wedges = function(part)
        return dict(zip(job.triple.places, arrays, strict=True)), triangles, wedges

    return _sum_parts(by_place, job, blocks)


def _vertices(
    job: Job, ends: Ends, sizes: dict[int, int], blocks: tuple[OrientedCSR, ...]
) -> tuple[dict[int, Array], Record]:
    """Sums by vertex that the kernel itself computes."""
    count, (index, table, _) = get_backend(job.backend).vertex_support, job.triple.places
    sides = ends[index][0][0], ends[index][1][0], ends[table][1][0]
    return _sum_parts(lambda part: count(part, job.kernel, sides, sizes), job, blocks)


def _sum_parts(
    function: Callable[[BlockTask], tuple[dict[Key, Array], int, int]], job: Job, blocks: tuple[OrientedCSR, ...]
) -> tuple[dict[Key, Array], Record]:
    """Add up the arrays, triangles and wedges of a task, split by rows, over the parts for which memory suffices."""
    task_blocks = dict(zip(job.triple.places, blocks, strict=True))
    task = task_of(replace(job, cut="rows"), *(task_blocks[place] for place in job.triple.places))
    parts = in_halves(function, task, job)
    sums, triangles, wedges = next(parts)
    for addends, part_triangles, part_wedges in parts:
        for key, addend in addends.items():
            sums[key] += addend
        triangles, wedges = triangles + part_triangles, wedges + part_wedges
    return sums, Record(job, TaskCount(triangles, wedges, probes=0), worker="")


def _ends_of_edges(
    job: Job, ends: Ends, sizes: dict[int, int], blocks: tuple[OrientedCSR, ...]
) -> tuple[dict[int, Array], Record]:
    """Halve the sum of supports at each vertex, which is even because two edges of a triangle meet at a vertex."""
    backend, (supports, record) = get_backend(job.backend), supports_of_task(job, blocks)
    sums = {side: backend.array.zeros(size, dtype="int64") for side, size in sizes.items()}
    for place, block in dict(zip(job.triple.places, blocks, strict=True)).items():
        (row, _), (column, _) = ends[place]
        backend.add_ends(block, supports[place], sums[row], sums[column])
    for doubles in sums.values():
        if bool((doubles & 1).any()):
            raise CountError(
                f"{job}: a vertex's edges have an odd number of triangles together: some were lost or repeated; run "
                "again, and report this with `dasktc info`"
            )
        doubles >>= 1
    return sums, record
