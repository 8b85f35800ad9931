"""Scratch memory of counting tasks, and the lean kernel where the usual one's does not fit."""

from __future__ import annotations

from dataclasses import replace

from dasktc.backends import lean_kernel, scratch_bytes
from dasktc.backends.protocol import GraphBounds, TaskSize
from dasktc.options import Options
from dasktc.planning.memory_model import Scratch
from dasktc.planning.plan import Plan
from dasktc.planning.schemes import BYTES_PER_EDGE, BYTES_PER_MEMBER, BYTES_PER_ROW, considered
from dasktc.registry import ORDERS

__all__ = ["lean_scratch", "scratch_of", "with_choice"]


def scratch_of(options: Options, edges: int, memory_per_call: int | None, planned_for: str | None = None) -> Scratch:
    """Make the function that gives a task's scratch bytes.

    Out of core (`memory_per_call` is what one call may take) that is also the block that is read ahead of the next
    task, unless all tasks have the same one; and no less than a slab of the block while it is built.
    """
    backend, kernel = planned_for or options.chosen_backend, options.chosen_kernel
    graph = GraphBounds(edges, ORDERS[options.chosen_reorder].ordered)
    many = not all(
        scheme.once for scheme in considered(options.partition)
    )  # a block may have all edges and be one of several

    def alone(of: TaskSize) -> int:
        return scratch_bytes(backend, kernel, of, graph)

    def beside_blocks(of: TaskSize) -> int:
        block = BYTES_PER_EDGE * of.block_edges + (BYTES_PER_ROW + BYTES_PER_MEMBER * many) * (of.columns + 1)
        ahead = block if many or of.block_edges < edges else 0
        return max(alone(of) + ahead, min(block, (memory_per_call or 0) // 4))

    return alone if memory_per_call is None else beside_blocks


def lean_scratch(options: Options, edges: int, planned_for: str | None = None) -> Scratch | None:
    """The same for the lean kernel; None where the backend has none."""
    backend = planned_for or options.chosen_backend
    if (kernel := lean_kernel(backend)) is None:
        return None
    graph = GraphBounds(edges, ORDERS[options.chosen_reorder].ordered)
    return lambda of: scratch_bytes(backend, kernel, of, graph)


def with_choice(plan: Plan, why: str, backend: str) -> Plan:
    """Append to a plan how kernel and order were chosen; the lean kernel where only that fits."""
    if not plan.lean:
        return replace(plan, choice=why)
    lean = f"kernel {lean_kernel(backend)}: plain CSR and little else, for the faster kernel's tables do not fit"
    return replace(plan, choice="; ".join([lean, *why.split("; ")[1:]]))
