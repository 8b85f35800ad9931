"""Launches CUDA kernels by name: counts a block triple, and computes its expected probes and scratch."""

from __future__ import annotations

from types import ModuleType
from typing import cast

from dasktc.backends import kernel_files
from dasktc.backends.csr import BlockTask
from dasktc.backends.cuda import block_cache
from dasktc.backends.cuda import probes as device_probes
from dasktc.backends.cuda.device import Counts, Device, Launch, describe
from dasktc.backends.cuda.kernels import CudaKernel
from dasktc.backends.cuda.nvrtc import Defines
from dasktc.registry import KERNELS as REGISTRIES
from dasktc.registry import Registry

__all__ = [
    "KERNELS",
    "CudaKernel",
    "counts",
    "defines",
    "expected_probes",
    "ready",
    "start",
]

KERNELS = cast("Registry[CudaKernel]", REGISTRIES["cuda"])
"""The CUDA kernels, the default first."""


def ready(device: Device, task: BlockTask, kernel: str, macros: dict[str, int] | None = None) -> Launch:
    """Prepare the launches of a task on the device; `macros` replace the kernel's own."""
    totals = device.array.zeros(4, dtype="uint64")
    entry = KERNELS[kernel]
    if not entry.keeps_tables:
        block_cache.forget()
    return Launch(device, task, describe(device, task), totals, defines(kernel, macros), entry.file)


def start(launch: Launch, kernel: str) -> None:
    """Launch a kernel on a task, if the task has any edges."""
    if int(launch.fields["rows"][0]) > 0 and launch.task.index.edges > 0:
        KERNELS[kernel].launch(launch)


def counts(launch: Launch) -> Counts:
    """Wait for the launches, and read their sums."""
    triangles, wedges, probes, collision = (int(total) for total in launch.totals.tolist())
    return triangles, wedges, probes, collision


def defines(kernel: str, macros: dict[str, int] | None = None) -> Defines:
    """Macros and settings of a launch in place of the defaults of its file: those of the entry, and others."""
    return tuple((dict(KERNELS[kernel].macros) | (macros or {})).items())


def expected_probes(xp: ModuleType, task: BlockTask, kernel: str, macros: dict[str, int] | None = None) -> int:
    """Sum of the probes that `count` must report, from row lengths and positions alone; `xp` is the blocks' module."""
    entry = KERNELS[kernel]
    shape = dict(kernel_files.macros(entry.file)) | dict(defines(kernel, macros))
    return device_probes.expected_probes(xp, task, entry.probes, shape)
