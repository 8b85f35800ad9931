"""Backends by name: which ones there are, whether this process can use one, and facts for clients that cannot.

`dasktc.backends.protocol` defines a backend. Each worker calls `get_backend` for itself; what a client needs to know of
a backend (its kernels, `scratch_bytes`) comes from registries that need no GPU and import no compiler.
"""

from __future__ import annotations

import os
from typing import Any, cast

from dasktc.backends.kernel import Kernel
from dasktc.backends.protocol import (
    BACKENDS,
    ON_DEVICE,
    PARTITION_EDGES,
    Backend,
    GraphBounds,
    TaskSize,
    TextIds,
)
from dasktc.errors import InputError, neutral_text
from dasktc.once import once
from dasktc.registry import KERNELS, kernel_names

__all__ = [
    "BACKENDS",
    "ON_DEVICE",
    "PARTITION_EDGES",
    "Backend",
    "GraphBounds",
    "TaskSize",
    "TextIds",
    "core_bytes",
    "get_backend",
    "kernel_names",
    "kernel_times",
    "lazy_backend",
    "lean_kernel",
    "peel_bytes",
    "scratch_bytes",
    "support_bytes",
    "support_kernels",
    "support_scratch_bytes",
    "tasks_a_worker",
    "unusable",
]


@once
def get_backend(name: str) -> Backend:
    """Import the named backend, once per process.

    Parameters
    ----------
    name : {"cpu", "cuda"}

    Raises
    ------
    InputError
        No backend has that name, or this process cannot use it.
    """
    if name == "cpu":
        numba = _numba()
        if numba.config.DISABLE_JIT:
            raise InputError("NUMBA_DISABLE_JIT is set: kernels would run as Python, a thousand times slower; unset it")
        from dasktc.backends.cpu import backend as cpu

        return cpu.BACKEND
    if name == "cuda":
        from dasktc.backends import cuda

        made: Backend = cuda.module().backend()
        return made
    raise InputError(f"backend {name!r} is not one of {', '.join(BACKENDS)}; choose one of these")


def _numba() -> Any:
    try:
        import numba
    except Exception as failed:  # it refuses some settings while it is imported
        settings = [f"{name}={value[:40]}" for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_")]
        how = (
            f"it refuses a setting in the environment ({', '.join(settings)[:150]}); unset or correct it"
            if settings
            else "its installation is damaged, or does not match that of NumPy; install dasktc again"
        )
        why = " ".join(f"{type(failed).__name__}: {failed}".split())[:150]
        raise InputError(f"Numba, which compiles the kernels, cannot be imported ({why}): {how}") from failed
    return numba


class _LazyBackend:
    """Proxy of a backend that this process need not be able to use; it forwards attributes to that of `get_backend`."""

    def __init__(self, name: str) -> None:
        self.name, self.on_device = name, name in ON_DEVICE

    def __getattr__(self, part: str) -> Any:
        if part[0] == "_":  # looked up by copying and pickling
            raise AttributeError(part)
        return getattr(get_backend(self.name), part)

    def __reduce__(self) -> tuple[Any, ...]:
        return lazy_backend, (self.name,)


@once
def lazy_backend(name: str) -> Backend:
    """The named backend, imported by the process that first asks for more than its name and `on_device`.

    Only its name travels with tasks, so a client can pass on a backend that it cannot use itself.

    Parameters
    ----------
    name : {"cpu", "cuda"}
    """
    return cast(Backend, _LazyBackend(name))


def unusable(name: str) -> str | None:
    """Why this process cannot use a backend; None where it can.

    Parameters
    ----------
    name : {"cpu", "cuda"}
    """
    try:
        get_backend(name)
    except InputError as error:
        return neutral_text(error)
    return None


def lean_kernel(name: str) -> str | None:
    """The kernel that needs little memory beside the blocks, for graphs whose default tables do not fit; else None.

    Parameters
    ----------
    name : {"cpu", "cuda"}
    """
    return next((kernel for kernel, entry in KERNELS[name].items() if entry.lean), None)


def scratch_bytes(name: str, kernel: str, of: TaskSize, graph: GraphBounds | None = None) -> int:
    """Most bytes that a kernel allocates beside a task's blocks, fewer where the graph is known; needs no GPU."""
    entry: Kernel = KERNELS[name][kernel]
    return entry.scratch_bytes(of, graph)


def support_kernels(name: str, kernel: str) -> list[str]:
    """Kernels that compute triangles by edge and by vertex themselves, for a count by the given kernel.

    Parameters
    ----------
    name : {"cpu", "cuda"}
    kernel : str
        The kernel of the count.

    Returns
    -------
    list of str
        That kernel first, if it computes them; then the default, and kernels that need little memory. May be empty.
    """
    own = KERNELS[name]
    wanted = [kernel, next(iter(own)), *(each for each, entry in own.items() if entry.lean)]
    return [each for each in dict.fromkeys(wanted) if each in own and own[each].gives_supports]


def support_scratch_bytes(name: str, kernel: str, of: TaskSize, graph: GraphBounds | None = None) -> int:
    """Bytes that one of `support_kernels` takes for a task beside its blocks and the supports."""
    entry: Kernel = KERNELS[name][kernel]
    return entry.support_bytes(of, graph)


def support_bytes(name: str, edges: int, columns: int) -> int:
    """Upper bound of the bytes that `Backend.support` and `add_ends` allocate for a task; needs no GPU.

    Parameters
    ----------
    name : {"cpu", "cuda"}
    edges : int
        Edges of all the task's blocks, each block once.
    columns : int
        Columns of the table.
    """
    if name == "cuda":
        from dasktc.backends.cuda import visit as device_visit

        return device_visit.support_bytes(edges)
    from dasktc.backends.cpu import visit

    return visit.support_bytes(edges, columns)


def peel_bytes(name: str, vertices: int, edges: int) -> int:
    """Upper bound of the bytes that `Backend.peel` allocates beside the block and its supports; needs no GPU.

    Parameters
    ----------
    name : {"cpu", "cuda"}
    vertices, edges : int
    """
    an_edge, a_vertex = (64, 48) if name in ON_DEVICE else (52, 48)
    return an_edge * edges + a_vertex * vertices + (1 << 16)


def core_bytes(name: str, vertices: int, edges: int) -> int:
    """Upper bound of the bytes that `Backend.peel` allocates for core numbers beside the block; see `peel_bytes`."""
    an_edge = 32 if name in ON_DEVICE else 8
    return an_edge * edges + 64 * vertices + (1 << 16)


def kernel_times(name: str, options: Any) -> float:
    """Time of a count relative to the usual kernel, for a kernel that was asked for; 1 for one chosen by the rows.

    Parameters
    ----------
    name : {"cpu", "cuda"}
    options : Options
    """
    entries = KERNELS[name]
    return float(entries[options.kernel].times) if options.kernel in entries else 1.0


def tasks_a_worker(name: str) -> int:
    """Least number of tasks per worker into which a plan cuts the work.

    With several, a worker that is done early takes some from the others. On a device every task fills tables of its
    own, so that splits cost more than they even out: one per device, TRUST's m (section 6.5).

    Parameters
    ----------
    name : {"cpu", "cuda"}
    """
    return 1 if name == "cuda" else 4
