"""Backends by name: which ones there are, whether this process can use one, and facts for clients that cannot.

`dasktc.backends.protocol` defines a backend. Each worker calls `get_backend` for itself; what a client needs to know of
a backend (its kernels, `scratch_bytes`) comes from registries that need no GPU and import no compiler. Modules of this
package import from each other, never from here.
"""

from __future__ import annotations

from dasktc.backends.cpu.kernels import CpuKernel
from dasktc.backends.cuda.kernels import CudaKernel
from dasktc.backends.protocol import BACKENDS, ON_DEVICE, PARTITION_EDGES, Backend, GraphBounds, TaskSize, TextIds
from dasktc.backends.requirements import (
    core_bytes,
    kernel_times,
    lean_kernel,
    peel_bytes,
    scratch_bytes,
    support_bytes,
    support_kernels,
    support_scratch_bytes,
    tasks_a_worker,
)
from dasktc.backends.select import get_backend, lazy_backend, unusable

__all__ = [
    "BACKENDS", "ON_DEVICE", "PARTITION_EDGES", "Backend", "CpuKernel", "CudaKernel", "GraphBounds", "TaskSize",
    "TextIds", "core_bytes", "get_backend", "kernel_times", "lazy_backend", "lean_kernel", "peel_bytes",
    "scratch_bytes", "support_bytes", "support_kernels", "support_scratch_bytes", "tasks_a_worker", "unusable",
]  # fmt: skip
