"""Triangles by edge and by vertex of a counting task on a device, computed by the counting kernels.

Supports fit 32 bits: the triangles of an edge differ in their third vertex, and there are fewer than 2^31 vertices.
"""

from __future__ import annotations

from collections.abc import Mapping

from dasktc.backends.csr import Array, BlockTask
from dasktc.backends.cuda import launch
from dasktc.backends.cuda.device import Device
from dasktc.backends.cuda.kernels import Support

__all__ = ["edges", "vertices"]


def edges(
    device: Device, task: BlockTask, kernel: str, macros: dict[str, int] | None = None
) -> tuple[list[Array], int, int]:
    """Count the triangles of each edge of a task, as `backends.cpu.visit.support`, by a kernel with outputs."""
    supports = task.zero_supports(device.array)
    return supports, *_run(device, task, kernel, dict(macros or {}), tuple(supports))


def vertices(
    device: Device,
    task: BlockTask,
    kernel: str,
    sides: tuple[int, int, int],
    sizes: Mapping[int, int],
    macros: dict[str, int] | None = None,
) -> tuple[dict[int, Array], int, int]:
    """Count the triangles of each vertex of a task, as `backends.cpu.supports.vertices`, by a kernel with outputs."""
    sums = {side: device.array.zeros(size, dtype="int64") for side, size in sizes.items()}
    triangles, wedges = _run(
        device, task, kernel, {"VERTICES": 1} | (macros or {}), tuple(sums[side].view("uint64") for side in sides)
    )
    return sums, triangles, wedges


def _run(
    device: Device, task: BlockTask, kernel: str, macros: dict[str, int], outputs: tuple[Array, ...]
) -> tuple[int, int]:
    """Launch a kernel with outputs; return triangles and wedges."""
    form = launch.KERNELS[kernel].support
    assert isinstance(form, Support), kernel
    ready = launch.ready(device, task, kernel, {**form.macros, **macros})
    launch.start(ready._replace(file=form.file, outputs=outputs), kernel)
    triangles, wedges, _, _ = launch.counts(ready)
    return triangles, wedges
