"""The data's way from a source to blocks, straight through: read, canonical, orient, reorder, plan, blocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dasktc.backend import get_backend
from dasktc.blocks import Layout, build_blocks, grid_edges
from dasktc.count import Blocks
from dasktc.edges import canonical, read
from dasktc.errors import CountError, InputError
from dasktc.keys import shift_of
from dasktc.options import Options, bytes_of
from dasktc.orient import Oriented, orient
from dasktc.plan import Limits, Plan, Scratch, make_plan
from dasktc.reorder import reorder
from dasktc.sources import Source
from dasktc.tasks import Tasks
from dasktc.vertices import vertex_map

__all__ = ["Prepared", "Progress", "plan_again", "prepare_blocks", "prepare_edges", "silent"]

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, how many of its steps are done, and how many there are."""


def silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Prepared:
    """An oriented, reordered graph and the plan of its count; the blocks are not built yet.

    Attributes
    ----------
    graph : Oriented
    layout : Layout
    plan : Plan
    grid : array of int64, shape (n, n)
        Edges in each block.
    vertices : handle of VertexMap
    rows, loops : int
        Rows read, and how many of them were loops.
    source : Source
    seconds : dict of str to float
        Wall time of read and prepare.
    """

    graph: Oriented
    layout: Layout
    plan: Plan
    grid: Any
    vertices: Any
    rows: int
    loops: int
    source: Source
    seconds: dict[str, float]


def prepare_edges(
    tasks: Tasks, source: Source, options: Options, progress: Progress = silent, workers: int | None = None
) -> Prepared:
    """Run the stages up to the plan: read, canonical, orient, reorder, plan.

    Parameters
    ----------
    tasks : Tasks
    source : Source
    options : Options
    progress : callable, optional
    workers : int, optional
        Tasks at a time that the plan is for; default: those of `tasks`.
    """
    backend, began = options.chosen_backend, time.perf_counter()
    # 1. Read the parts of the source.
    progress("read", 0, 1)
    frames, rows, loops = read(tasks, source, backend)
    ended = time.perf_counter()
    # 2. Unique undirected edges over dense ids.
    progress("canonical", 0, 1)
    vertices = vertex_map(tasks, frames, source.ids, backend)
    size = tasks.gather([tasks.submit("vertices", _size, vertices)])[0]
    edges = canonical(tasks, frames, rows - loops, vertices, size, backend)
    # 3. From low degree to high degree.
    progress("orient", 0, 1)
    shift = shift_of(size)
    graph = orient(tasks, edges, size, shift, backend)
    # 4. The ids that blocks are built with.
    progress("reorder", 0, 1)
    how = options.chosen_reorder
    graph = reorder(tasks, graph, how, shift, backend)
    # 5. Planner, n, m, projected bytes.
    progress("plan", 0, 1)
    layout = Layout(1, size, shift, how == "degree")
    grids: dict[int, Any] = {}
    limits = Limits(
        workers=workers or tasks.workers,
        memory=tasks.memory(bytes_of(options.memory)),
        partition=options.partition,
        parts=options.parts,
        splits=options.splits,
    )

    def grid(n: int) -> Any:
        grids[n] = grid_edges(tasks, graph, layout._replace(parts=n), backend)
        return grids[n]

    plan = make_plan(size, edges.edges, grid, _scratch(options), limits)
    seconds = {"read": ended - began, "prepare": time.perf_counter() - ended}
    layout = layout._replace(parts=plan.parts)
    return Prepared(graph, layout, plan, grids[plan.parts], vertices, rows, loops, source, seconds)


def _size(vertices: Any) -> int:
    return int(vertices.size)


def _scratch(options: Options) -> Scratch:
    backend = get_backend(options.chosen_backend)
    return partial(backend.scratch_bytes, options.chosen_kernel)


def plan_again(prepared: Prepared, options: Options) -> Plan:
    """The plan of the same blocks and splits for the options' kernel, whose scratch may be larger.

    Raises
    ------
    InputError
        It does not fit the memory that the blocks were planned for.
    """
    plan = prepared.plan
    limits = Limits(plan.workers, plan.memory, plan.partition, plan.parts, plan.splits)
    found = make_plan(plan.vertices, plan.edges, lambda n: prepared.grid, _scratch(options), limits)
    if not found.fits:
        raise InputError(f"{found.why}: kernel {options.chosen_kernel} needs more scratch; prepare with more --memory")
    return found


def prepare_blocks(
    tasks: Tasks, prepared: Prepared, options: Options, progress: Progress = silent
) -> tuple[Prepared, Blocks]:
    """Run the last stage before counting: the plan's blocks.

    Parameters
    ----------
    tasks : Tasks
    prepared : Prepared
        Its edges are used up.
    options : Options
    progress : callable, optional

    Returns
    -------
    prepared : Prepared
        With the seconds that this took added.
    blocks : dict of (i, j) to handle of OrientedCSR

    Raises
    ------
    InputError
        The largest task does not fit a worker's memory.
    """
    plan, began = prepared.plan, time.perf_counter()
    if not plan.fits:
        other = "" if (options.partition, options.parts) == ("auto", None) else ", or let --partition auto choose n"
        raise InputError(f"{plan.why}: the graph is too large for it; raise --memory{other}")
    # 6. CSR blocks on the workers.
    progress("blocks", 0, 1)
    blocks = build_blocks(tasks, prepared.graph, prepared.layout, options.chosen_backend)
    built = sum(tasks.gather([tasks.submit("blocks", _edges, block) for block in blocks.values()]))
    if built != plan.edges:
        raise CountError(f"the blocks hold {built:,} edges, the plan {plan.edges:,}: edges were lost; run again")
    seconds = dict(prepared.seconds, prepare=prepared.seconds["prepare"] + time.perf_counter() - began)
    return replace(prepared, seconds=seconds), blocks


def _edges(block: Any) -> int:
    return int(block.edges)
