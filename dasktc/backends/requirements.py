"""What a backend's kernels need, for plans: bytes, tasks and time, from tables and registries that need no GPU."""

from __future__ import annotations

from typing import Any

from dasktc.backends.cpu.sizes import visit_bytes
from dasktc.backends.cuda.sizes import visit_bytes as device_visit_bytes
from dasktc.backends.kernel import Kernel
from dasktc.backends.protocol import GraphBounds, TaskSize
from dasktc.registry import KERNELS

__all__ = [
    "core_bytes", "kernel_times", "lean_kernel", "peel_bytes", "scratch_bytes", "support_bytes", "support_kernels",
    "support_scratch_bytes", "tasks_a_worker",
]  # fmt: skip

VISIT_BYTES = {"cpu": visit_bytes, "cuda": device_visit_bytes}
"""Bytes that the visits of a task's triangles allocate, from edges and columns."""
TRUSS_BYTES, CORE_BYTES = {"cpu": 52, "cuda": 64}, {"cpu": 8, "cuda": 32}
"""Bytes an edge while trusses are peeled, and cores."""
TASKS_A_WORKER = {"cpu": 4, "cuda": 1}


def lean_kernel(name: str) -> str | None:
    """The kernel that needs little memory beside the blocks, for graphs whose default tables do not fit; else None."""
    return next((kernel for kernel, entry in KERNELS[name].items() if entry.lean), None)


def scratch_bytes(name: str, kernel: str, of: TaskSize, graph: GraphBounds | None = None) -> int:
    """Most bytes that a kernel allocates beside a task's blocks, fewer where the graph is known; needs no GPU."""
    entry: Kernel = KERNELS[name][kernel]
    return entry.scratch_bytes(of, graph)


def support_kernels(name: str, kernel: str) -> list[str]:
    """Kernels that compute triangles by edge and by vertex themselves, for a count by the given kernel; perhaps none.

    That kernel comes first, if it computes them; then the default, and kernels that need little memory.
    """
    entries = KERNELS[name]
    names = [kernel, next(iter(entries)), *(each for each, entry in entries.items() if entry.lean)]
    return [each for each in dict.fromkeys(names) if each in entries and entries[each].gives_supports]


def support_scratch_bytes(name: str, kernel: str, of: TaskSize, graph: GraphBounds | None = None) -> int:
    """Bytes that one of `support_kernels` takes for a task beside its blocks and the supports."""
    entry: Kernel = KERNELS[name][kernel]
    return entry.support_bytes(of, graph)


def support_bytes(name: str, edges: int, columns: int) -> int:
    """Upper bound of the bytes that `Backend.support` and `add_ends` allocate for a task; needs no GPU.

    It depends on the edges of all the task's blocks, each block once, and on the columns of the table.
    """
    return VISIT_BYTES[name](edges, columns)


def peel_bytes(name: str, vertices: int, edges: int) -> int:
    """Upper bound of the bytes that `Backend.peel` allocates beside the block and its supports; needs no GPU."""
    return TRUSS_BYTES[name] * edges + 48 * vertices + (1 << 16)


def core_bytes(name: str, vertices: int, edges: int) -> int:
    """Upper bound of the bytes that `Backend.peel` allocates for core numbers beside the block; see `peel_bytes`."""
    return CORE_BYTES[name] * edges + 64 * vertices + (1 << 16)


def kernel_times(name: str, options: Any) -> float:
    """Time of a count relative to the usual kernel, for a kernel that was asked for; 1 for one chosen by the rows."""
    entries = KERNELS[name]
    return float(entries[options.kernel].times) if options.kernel in entries else 1.0


def tasks_a_worker(name: str) -> int:
    """Least number of tasks per worker into which a plan cuts the work.

    With several, a worker that is done early takes some from the others. On a device every task fills tables of its
    own, so that splits cost more than they even out: one per device, TRUST's m (section 6.5).
    """
    return TASKS_A_WORKER[name]
