"""Plans with the scratch memory of counting tasks, and the lean kernel where the usual one's does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dasktc.backends import lean_kernel, scratch_bytes
from dasktc.backends.protocol import GraphBounds, TaskSize
from dasktc.options import Options
from dasktc.planning.memory_model import Scratch
from dasktc.planning.plan import Limits, Plan, make_plan
from dasktc.planning.schemes import BYTES_PER_EDGE, BYTES_PER_MEMBER, BYTES_PER_ROW, Sizes, considered
from dasktc.registry import ORDERS

__all__ = ["plan_count", "scratch_of"]


def plan_count(
    options: Options,
    vertices: int,
    edges: int,
    sizes: Callable[[str, int], Sizes],
    limits: Limits,
    why: str,
    *,
    automatic: bool,
    memory_per_call: int | None = None,
    planned_for: str | None = None,
) -> tuple[Plan, Options]:
    """Plan a count by its kernel, or by the lean one where that alone fits and nobody asked for a kernel.

    Parameters
    ----------
    options : Options
        With kernel and order chosen.
    vertices, edges : int
    sizes : callable (scheme, parts) -> Sizes
        Of the blocks.
    limits : Limits
    why : str
        How kernel and order were chosen.
    automatic : bool
        Whether the kernel was left to choose.
    memory_per_call : int, optional
        Out of core, bytes that one call may take.
    planned_for : str, optional
        The backend of the workers that count; default: the options' backend.

    Returns
    -------
    plan : Plan
    options : Options
        With the lean kernel, where it is the options' backend that takes it.
    """
    backend = planned_for or options.chosen_backend
    scratch = scratch_of(options, edges, memory_per_call, backend)
    lean = _lean_scratch(options, edges, backend) if automatic else None
    plan = _with_choice(make_plan(vertices, edges, sizes, scratch, limits, lean), why, backend)
    if plan.lean and backend == options.chosen_backend:
        options = replace(options, kernel=str(lean_kernel(backend)))
    return plan, options


def scratch_of(options: Options, edges: int, memory_per_call: int | None, planned_for: str | None = None) -> Scratch:
    """Make the function that gives a task's scratch bytes.

    Out of core (`memory_per_call` is what one call may take) that is also the block that is read ahead of the next
    task, unless all tasks have the same one; and no less than a slab of the block while it is built.
    """
    backend, kernel = planned_for or options.chosen_backend, options.chosen_kernel
    graph = GraphBounds(edges, ORDERS[options.chosen_reorder].ordered)
    # a block may have all edges and be one of several
    many = not all(scheme.once for scheme in considered(options.partition))

    def alone(of: TaskSize) -> int:
        return scratch_bytes(backend, kernel, of, graph)

    def beside_blocks(of: TaskSize) -> int:
        block = BYTES_PER_EDGE * of.block_edges + (BYTES_PER_ROW + BYTES_PER_MEMBER * many) * (of.columns + 1)
        ahead = block if many or of.block_edges < edges else 0
        return max(alone(of) + ahead, min(block, (memory_per_call or 0) // 4))

    return alone if memory_per_call is None else beside_blocks


def _lean_scratch(options: Options, edges: int, backend: str) -> Scratch | None:
    """Make the function that gives the lean kernel's scratch bytes; None where the backend has no such kernel."""
    if (kernel := lean_kernel(backend)) is None:
        return None
    graph = GraphBounds(edges, ORDERS[options.chosen_reorder].ordered)
    return lambda of: scratch_bytes(backend, kernel, of, graph)


def _with_choice(plan: Plan, why: str, backend: str) -> Plan:
    """Append to a plan how kernel and order were chosen; the lean kernel where only that fits."""
    if not plan.lean:
        return replace(plan, choice=why)
    lean = f"kernel {lean_kernel(backend)}: plain CSR and little else, for the faster kernel's tables do not fit"
    return replace(plan, choice="; ".join([lean, *why.split("; ")[1:]]))
