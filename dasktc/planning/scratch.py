"""Plans a count with the scratch memory of its tasks; takes the lean kernel where the usual kernel's does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from dasktc.backends import lean_kernel, scratch_bytes
from dasktc.backends.cpu import sizes as cpu_sizes
from dasktc.backends.cuda import sizes as cuda_sizes
from dasktc.backends.protocol import ON_DEVICE, GraphBounds, TaskSize
from dasktc.options import Options
from dasktc.planning.memory_model import Scratch
from dasktc.planning.plan import Limits, Partition, Plan, even_blocks, make_plan
from dasktc.planning.schemes import BYTES_PER_EDGE, BYTES_PER_MEMBER, BYTES_PER_ROW, considered
from dasktc.registry import ORDERS

__all__ = ["is_cut", "plan_count", "scratch_of"]


def plan_count(
    options: Options,
    vertices: int,
    edges: int,
    measure: Callable[[str, int], Partition],
    limits: Limits,
    why: str,
    *,
    automatic: bool,
    memory_per_call: int | None = None,
    planned_for: str | None = None,
    rows: int = 0,
) -> tuple[Plan, Partition, Options]:
    """Plan a count with its kernel, or with the lean one if only that fits and the kernel was left to choose.

    Parameters
    ----------
    options : Options
        With kernel and order chosen.
    vertices, edges : int
    measure : callable (scheme, n) -> partition
        As for `make_plan`.
    limits : Limits
    why : str
        How kernel and order were chosen.
    automatic : bool
        Whether the kernel was left to choose.
    memory_per_call : int, optional
        Bytes that one call may take, out of core.
    planned_for : str, optional
        Backend of the workers that count; default: the options' backend.
    rows : int
        Rows that the edges were read from, without loops: vertices may be ranked by these.

    Returns
    -------
    plan : Plan
    partition : object
        The plan's, as `measure` returned it.
    options : Options
        With the lean kernel, where the plan takes it and is for the options' backend.
    """
    backend = planned_for or options.chosen_backend
    scratch = scratch_of(options, edges, memory_per_call, backend, limits.value_bytes, rows)
    # A kernel that `auto` takes may give way to the lean one, if that fits where it does not.
    lean_name, lean_scratch = lean_kernel(backend), None
    if automatic and lean_name is not None:
        graph = GraphBounds(max(edges, rows), ORDERS[options.chosen_reorder].ordered)
        alone = partial(scratch_bytes, backend, lean_name, graph=graph)
        lean_scratch = _with_visits(alone, backend, edges, limits.value_bytes)
    plan, partition = make_plan(vertices, edges, measure, scratch, limits, lean_scratch)
    if plan.lean:
        reason = f"kernel {lean_name}: plain CSR and little else, for the faster kernel's tables do not fit"
        why = "; ".join([reason, *why.split("; ")[1:]])
        if backend == options.chosen_backend:
            options = replace(options, kernel=str(lean_name))
    return replace(plan, choice=why), partition, options


def is_cut(
    options: Options,
    vertices: int,
    edges: int,
    limits: Limits,
    memory_per_call: int | None,
    planned_for: str | None,
    rows: int = 0,
) -> bool:
    """Whether a graph of this size is counted in several blocks or splits (n or m above 1), before its order is known.

    All edges as one block are of the same size in every order, and so is the answer; where the graph does not fit as
    one block, n is above 1 whatever the sizes of the blocks. The options have the kernel chosen, and the order of the
    uncut graph; `memory_per_call`, `planned_for` and `rows` are as for `plan_count`.
    """
    plan, _, _ = plan_count(
        options,
        vertices,
        edges,
        even_blocks(vertices, edges, options.column_parts),
        limits,
        "",
        automatic=False,
        memory_per_call=memory_per_call,
        planned_for=planned_for,
        rows=rows,
    )
    return plan.parts > 1 or plan.splits > 1


def scratch_of(
    options: Options,
    edges: int,
    memory_per_call: int | None,
    planned_for: str | None = None,
    value_bytes: int = 0,
    rows: int = 0,
) -> Scratch:
    """Make the function that returns a task's scratch bytes, or what a visit of values of edges takes, if more.

    Out of core (`memory_per_call` is what one call may take) these include the block that is read ahead for the next
    task, unless all tasks have the same block, and are at least a slab of the block while it is built.
    """
    backend, kernel = planned_for or options.chosen_backend, options.chosen_kernel
    graph = GraphBounds(max(edges, rows), ORDERS[options.chosen_reorder].ordered)
    # where an edge is in several blocks, a block may have all edges and still be one of several
    repeats = not all(scheme.once for scheme in considered(options.partition))

    alone = _with_visits(partial(scratch_bytes, backend, kernel, graph=graph), backend, edges, value_bytes)

    def beside_blocks(task: TaskSize) -> int:
        block = (BYTES_PER_EDGE + value_bytes) * task.block_edges + (BYTES_PER_ROW + BYTES_PER_MEMBER * repeats) * (
            task.columns + 1
        )
        prefetch_bytes = block if repeats or task.block_edges < edges else 0
        return max(alone(task) + prefetch_bytes, min(block, (memory_per_call or 0) // 4))

    return alone if memory_per_call is None else beside_blocks


def _with_visits(scratch: Scratch, backend: str, edges: int, value_bytes: int) -> Scratch:
    """Make the function that returns the larger one of a kernel's scratch and a visit's with its values."""
    if not value_bytes:
        return scratch

    def larger(task: TaskSize) -> int:
        roles = 1 if task.block_edges >= edges else 3
        values, on_device = roles * value_bytes * task.block_edges, backend in ON_DEVICE
        visit = cpu_sizes.visit_of_values_bytes(0 if on_device else task.block_edges, task.columns, task.parts)
        visit += cuda_sizes.visit_of_values_bytes(task.index_edges, value_bytes) if on_device else 0
        return max(scratch(task), values + visit)

    return larger
