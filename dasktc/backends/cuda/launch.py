"""The CUDA kernels by name: evaluate a block triple, and say what that takes.

A kernel is a file `*.cu` and an entry of KERNELS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from dasktc.backends import GraphBounds, TaskSize
from dasktc.backends.cpu import probes
from dasktc.backends.csr import BlockTask
from dasktc.backends.cuda import block_cache as kept
from dasktc.backends.cuda import launch_edges, launch_hub, launch_lstc, launch_trust
from dasktc.backends.cuda import probes as device_probes
from dasktc.backends.cuda.device import Counts, Device, Launch, describe
from dasktc.backends.cuda.nvrtc import Defines
from dasktc.backends.cuda.probes import Rule

__all__ = [
    "KERNELS",
    "CudaKernel",
    "by_edges",
    "count",
    "counts",
    "defines",
    "expected_probes",
    "ready",
    "scratch_bytes",
    "start",
]


def by_edges(launch: Launch) -> None:
    """Launch a kernel whose one entry point, `<file>_rows`, takes a thread an edge.

    Parameters
    ----------
    launch : Launch
    """
    launch.spread(f"{Path(launch.file).name}_rows", int(launch.given["rows"][0]), launch.totals)


SHORT = {"FEW": 3, "BLOCK": 128, "BLOCKS": 12}
"""Macros of the `short` kernel: what they mean stands in its source."""


def short(launch: Launch) -> None:
    """Launch `short` on as many thread blocks as fit at a time.

    Parameters
    ----------
    launch : Launch
    """
    given, shape = launch.given, launch.shape
    cut = given["same"][0] and given["shift"][0] == 0  # then what stands before v in a row is where v stands
    grid = min(-(-int(given["rows"][0]) // shape["BLOCK"]), shape["BLOCKS"] * launch.device.processors)
    launch.run("short_rows" if cut else "short_blocks", grid, shape["BLOCK"], launch.totals)


def no_scratch(index_edges: int, block_edges: int, columns: int) -> int:
    """Bytes of a kernel that allocates nothing: the sums."""
    return 1 << 12


@dataclass(frozen=True)
class CudaKernel:
    """All that the backend knows of a kernel.

    Attributes
    ----------
    file : str
        A file of the kernels' folder, or the path of one elsewhere, without its suffix.
    probes : Rule
        The probes of index edges, from lengths and positions alone.
    launch : callable (Launch)
        Counts a task.
    scratch : callable (index_edges, block_edges, columns) -> int
        Bytes that it allocates next to a task's blocks, at most, as in `Backend`.
    macros : mapping of str to int
        Its own, with the values in the source; a macro that the source does not define may be among them. A name in
        lower case is no macro but a setting of the launch, which needs no other compilation.
    """

    file: str
    probes: Rule
    launch: Callable[[Launch], None] = by_edges
    scratch: Callable[[int, int, int], int] = no_scratch
    macros: Mapping[str, int] = field(default_factory=dict)


KERNELS: dict[str, CudaKernel] = {
    "hub": CudaKernel("hub", device_probes.hub, launch_hub.hub, launch_hub.hub_bytes, launch_hub.HUB),
    "bitmap": CudaKernel(
        "hub", device_probes.bitmap, launch_hub.hub, launch_hub.bitmap_bytes, launch_hub.HUB | {"PLAIN": 1}
    ),
    "trust": CudaKernel(
        "trust", device_probes.same(probes.trust), launch_trust.trust, launch_trust.scratch_bytes, launch_trust.TRUST
    ),
    "hindex": CudaKernel(
        "hindex", device_probes.hindex, launch_edges.hindex, launch_edges.hindex_bytes, launch_edges.HINDEX
    ),
    "merge": CudaKernel(
        "merge", device_probes.same(probes.merge), launch_edges.merge, launch_edges.list_bytes, launch_edges.MERGE
    ),
    "search": CudaKernel(
        "search", device_probes.same(probes.search), launch_edges.search, launch_edges.list_bytes, launch_edges.SEARCH
    ),
    "lstc": CudaKernel("lstc", device_probes.lstc, launch_lstc.lstc, macros=launch_lstc.LSTC),
    "tcstream": CudaKernel(
        "tcstream",
        device_probes.same(probes.tcstream),
        launch_edges.tcstream,
        launch_edges.list_bytes,
        launch_edges.TCSTREAM,
    ),
    "short": CudaKernel("short", device_probes.same(probes.merge), short, macros=SHORT),
    "plain": CudaKernel("plain", device_probes.same(probes.merge)),
}
"""The kernels, the default first."""


def count(device: Device, task: BlockTask, kernel: str, macros: dict[str, int] | None = None) -> Counts:
    """Evaluate one block triple.

    Parameters
    ----------
    device : Device
    task : BlockTask
        On the device.
    kernel : str
        One of KERNELS.
    macros : dict, optional
        In place of the kernel's own.
    """
    launch = ready(device, task, kernel, macros)
    start(launch, kernel)
    return counts(launch)


def ready(device: Device, task: BlockTask, kernel: str, macros: dict[str, int] | None = None) -> Launch:
    """What comes before a task's launches; parameters are those of `count`."""
    totals = device.array.zeros(4, dtype="uint64")
    known = KERNELS[kernel]
    if known.launch is not launch_hub.hub:
        kept.forget()
    return Launch(device, task, describe(device, task), totals, defines(kernel, macros), known.file)


def start(launch: Launch, kernel: str) -> None:
    """Launch a kernel on a task, if that has any edges."""
    if int(launch.given["rows"][0]) > 0 and launch.task.index.edges > 0:
        KERNELS[kernel].launch(launch)


def counts(launch: Launch) -> Counts:
    """Wait for what was launched, and read its sums."""
    triangles, wedges, probes, collision = (int(total) for total in launch.totals.tolist())
    return triangles, wedges, probes, collision


def defines(kernel: str, macros: dict[str, int] | None = None) -> Defines:
    """Complete a kernel's macros with their defaults.

    Parameters
    ----------
    kernel : str
    macros : dict of str to int, optional
    """
    return tuple((dict(KERNELS[kernel].macros) | (macros or {})).items())


def expected_probes(xp: ModuleType, task: BlockTask, kernel: str, macros: dict[str, int] | None = None) -> int:
    """Add up the probes that `count` must report, from row lengths and positions alone.

    Parameters
    ----------
    xp : module
        numpy or cupy, whose arrays the task's blocks are.
    task : BlockTask
    kernel : str
    macros : dict, optional
        As `count` got them.
    """
    return device_probes.expected_probes(xp, task, KERNELS[kernel].probes, dict(defines(kernel, macros)))


def scratch_bytes(kernel: str, of: TaskSize, graph: GraphBounds | None = None) -> int:
    """Bytes that a kernel allocates next to a task's blocks, at most.

    Parameters
    ----------
    kernel : str
    of : TaskSize
    graph : GraphBounds, optional
        Makes no difference.
    """
    return KERNELS[kernel].scratch(of.index_edges, of.block_edges, of.columns)
