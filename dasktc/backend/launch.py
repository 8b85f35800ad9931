"""The CUDA kernels by name: evaluate a block triple, and say what that takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dasktc.backend import launch_hub, launch_trust
from dasktc.backend.device import Counts, Device, describe, spread
from dasktc.backend.device_probes import expected_probes
from dasktc.backend.launch_hub import HUB
from dasktc.backend.launch_trust import TRUST
from dasktc.backend.nvrtc import Defines
from dasktc.csr import Array, BlockTask

__all__ = ["HUB", "TRUST", "count", "defines", "expected_probes", "scratch_bytes"]

_MACROS = {"hub": HUB, "bitmap": HUB | {"PLAIN": 1}, "trust": TRUST, "merge": {}, "search": {}}


def count(device: Device, task: BlockTask, kernel: str, macros: dict[str, int] | None = None) -> Counts:
    """Evaluate one block triple.

    Parameters
    ----------
    device : Device
    task : BlockTask
        On the device.
    kernel : {"hub", "bitmap", "trust", "merge", "search"}
    macros : dict, optional
        In place of the kernel's own.
    """
    totals = device.array.zeros(4, dtype="uint64")
    given = describe(device, task)
    if int(given["rows"][0]) > 0 and task.index.edges > 0:
        _LAUNCHES[kernel](device, task, given, totals, defines(kernel, macros))
    triangles, wedges, probes, collision = (int(total) for total in totals.tolist())
    return triangles, wedges, probes, collision


def defines(kernel: str, macros: dict[str, int] | None = None) -> Defines:
    """Complete a kernel's macros with their defaults.

    Parameters
    ----------
    kernel : {"hub", "bitmap", "trust", "merge", "search"}
    macros : dict of str to int, optional
    """
    return tuple((_MACROS[kernel] | (macros or {})).items())


def _by_edges(kernel: str, device: Device, task: BlockTask, given: Any, totals: Array, found: Defines) -> None:
    spread(device, kernel, f"{kernel}_rows", found, int(given["rows"][0]), given, totals)


_LAUNCHES: dict[str, Callable[[Device, BlockTask, Any, Array, Defines], None]] = {
    "hub": launch_hub.hub,
    "bitmap": launch_hub.hub,
    "trust": launch_trust.trust,
    "merge": partial(_by_edges, "merge"),
    "search": partial(_by_edges, "search"),
}


def scratch_bytes(kernel: str, index_edges: int, block_edges: int, columns: int) -> int:
    """Bytes that a kernel allocates next to a task's blocks, at most.

    Parameters
    ----------
    kernel : {"hub", "bitmap", "trust", "merge", "search"}
    index_edges, block_edges, columns : int
        As in `Backend`; the first matters less than the second.
    """
    if kernel in ("hub", "bitmap"):
        return launch_hub.scratch_bytes(max(index_edges, block_edges), columns, plain=kernel == "bitmap")
    if kernel == "trust":
        return launch_trust.scratch_bytes(columns)
    return 1 << 12
