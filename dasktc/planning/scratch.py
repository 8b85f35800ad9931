"""Plans a count with the scratch memory of its tasks; takes the lean kernel where the usual kernel's does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from dasktc.backends import lean_kernel, scratch_bytes
from dasktc.backends.cpu.sizes import visit_of_values_bytes
from dasktc.backends.protocol import GraphBounds, TaskSize
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
) -> tuple[Plan, Partition, Options]:
    """Plan a count with its kernel, or with the lean one if only that fits and the kernel was left to choose.

    The options have kernel and order chosen; `why` says how, and `automatic` whether the kernel was left to choose.
    Measure and partition are those of `make_plan`. `memory_per_call` is what one call may take, in bytes, out of core.
    The plan is for the options' backend, or that of the workers that count, `planned_for`. The options are returned
    with the lean kernel, where the plan takes it and is for the options' backend.
    """
    backend = planned_for or options.chosen_backend
    scratch = scratch_of(options, edges, memory_per_call, backend, limits.value_bytes)
    lean_name, lean_scratch = lean_kernel(backend), None
    if automatic and lean_name is not None:
        graph = GraphBounds(edges, ORDERS[options.chosen_reorder].ordered)
        lean_scratch = _with_visits(partial(scratch_bytes, backend, lean_name, graph=graph), edges, limits.value_bytes)
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
    memory_per_call: int | None = None,
    planned_for: str | None = None,
) -> bool:
    """Whether a graph of this size is counted in several blocks or splits (n or m above 1), before its order is known.

    All edges as one block are of the same size in every order, and so is the answer; where the graph does not fit as
    one block, n is above 1 whatever the sizes of the blocks. The options have the kernel chosen, and the order of the
    uncut graph; `memory_per_call` and `planned_for` are as for `plan_count`.
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
    )
    return plan.parts > 1 or plan.splits > 1


def scratch_of(
    options: Options, edges: int, memory_per_call: int | None, planned_for: str | None = None, value_bytes: int = 0
) -> Scratch:
    """Make the function that returns a task's scratch bytes, or what a visit of values of edges takes, if more.

    Out of core (`memory_per_call` is what one call may take) these include the block that is read ahead for the next
    task, unless all tasks have the same block, and are at least a slab of the block while it is built.
    """
    backend, kernel = planned_for or options.chosen_backend, options.chosen_kernel
    graph = GraphBounds(edges, ORDERS[options.chosen_reorder].ordered)
    # where an edge is in several blocks, a block may have all edges and still be one of several
    repeats = not all(scheme.once for scheme in considered(options.partition))

    alone = _with_visits(partial(scratch_bytes, backend, kernel, graph=graph), edges, value_bytes)

    def beside_blocks(task: TaskSize) -> int:
        block = (BYTES_PER_EDGE + value_bytes) * task.block_edges + (BYTES_PER_ROW + BYTES_PER_MEMBER * repeats) * (
            task.columns + 1
        )
        prefetch_bytes = block if repeats or task.block_edges < edges else 0
        return max(alone(task) + prefetch_bytes, min(block, (memory_per_call or 0) // 4))

    return alone if memory_per_call is None else beside_blocks


def _with_visits(scratch: Scratch, edges: int, value_bytes: int) -> Scratch:
    """Make the function that returns the larger one of a kernel's scratch and a visit's with its values."""
    if not value_bytes:
        return scratch

    def larger(task: TaskSize) -> int:
        roles = 1 if task.block_edges >= edges else 3
        values = roles * value_bytes * task.block_edges
        return max(scratch(task), values + visit_of_values_bytes(task.block_edges, task.columns, task.parts))

    return larger
