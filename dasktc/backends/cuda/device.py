"""What launching a CUDA kernel needs: a device, and a block task in the kernels' form.

Launches are written against the protocol `Device`, so that tests can run them on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from dasktc.backends.cpu.splits import share_of
from dasktc.backends.csr import Array, BlockTask
from dasktc.backends.cuda.nvrtc import Defines
from dasktc.backends.kernel_files import macros

__all__ = ["BLOCK", "Counts", "Device", "Launch", "describe", "grid_of", "spread"]

Counts = tuple[int, int, int, int]
"""Triangles, wedges, probes and the length of the longest bucket."""

BLOCK = 256
"""Threads per block of kernels that use a thread per edge or row, and have no macro BLOCK."""
THREADS = 2048
"""Threads that a multiprocessor holds."""

_POINTERS = tuple(f"{block}_{part}" for block in ("index", "table", "stream") for part in ("offsets", "columns"))
TASK = np.dtype(
    [*((name, np.uint64) for name in _POINTERS)]
    + [(name, np.int64) for name in ("begin", "step", "skip", "rows", "shift", "same", "hubs", "near", "tables")]
)
"""Layout of `struct Task` in the kernels' prelude."""


class Device(Protocol):
    """Requirements of a launch: an array module, the size of the machine, and a way to run a kernel."""

    array: ModuleType
    processors: int

    def pointer(self, array: Array) -> int:
        """Address of an array's first element."""

    def launch(
        self,
        kernel: str,
        entry: str,
        defines: Defines,
        grid: int,
        block: int,
        values: tuple[Any, ...],
        shared: int = 0,
    ) -> None:
        """Run entry point `entry` of a kernel file; `shared` is bytes of dynamic shared memory."""

    def later(self, numbers: Array) -> Callable[[], list[int]]:
        """Have a few numbers copied to the host; the function waits for what was launched before, and returns them."""


def describe(device: Device, task: BlockTask) -> Any:
    """Fill in `struct Task`, except its `hubs`."""
    fields = np.zeros(1, TASK)
    for name in _POINTERS:
        block, part = name.split("_")
        fields[name] = device.pointer(getattr(getattr(task, block), part))
    fields["begin"], fields["step"], fields["rows"] = share_of(task, device.array)
    fields["shift"] = task.shift
    fields["same"] = task.index is task.table
    return fields


def spread(
    device: Device, kernel: str, entry: str, defines: Defines, threads: int, *values: Any, waves: int = 1
) -> None:
    """Launch about `threads` threads, but no more than fill the GPU `waves` times over."""
    grid, block = grid_of(device, kernel, defines, threads, waves)
    device.launch(kernel, entry, defines, grid, block, values)


def grid_of(device: Device, kernel: str, defines: Defines, threads: int, waves: int = 1) -> tuple[int, int]:
    """Number of blocks, and threads per block, as for `spread`."""
    block = ({"BLOCK": BLOCK} | dict(macros(kernel)) | dict(defines))["BLOCK"]
    return max(1, min(-(-threads // block), waves * (THREADS // block) * device.processors)), block


class Launch(NamedTuple):
    """State that the launches of one task share.

    Attributes
    ----------
    device : Device
    task : BlockTask
    fields : numpy.ndarray of one `struct Task`
    totals : array of uint64, shape (4,)
        `struct Totals`.
    defines : Defines
        Macros in place of the file's defaults, and settings of the launch.
    file : str
        File of the kernel, as for `nvrtc.source`.
    outputs : tuple of three arrays, or none
        Arrays to which a kernel with outputs adds, in place, zero at first. By edge: sums of the index, table and
        stream block, int32; by vertex: those of index rows, index columns and table columns, uint64. Empty: it only
        counts.
    """

    device: Device
    task: BlockTask
    fields: Any
    totals: Array
    defines: Defines
    file: str
    outputs: tuple[Array, ...] = ()

    @property
    def shape(self) -> dict[str, int]:
        """All macros and settings, by name: those of the launch, and the defaults of the file."""
        return dict(macros(self.file)) | dict(self.defines)

    def run(self, entry: str, grid: int, block: int, *values: Any, shared: int = 0) -> None:
        """Launch `grid` blocks of `block` threads; the entry point's first parameter is the task."""
        self.device.launch(self.file, entry, self.defines, grid, block, (self.fields, *values), shared)

    def spread(self, entry: str, threads: int, *values: Any, waves: int = 1) -> None:
        """Launch about `threads` threads, but no more than fill the GPU `waves` times over."""
        spread(self.device, self.file, entry, self.defines, threads, self.fields, *values, waves=waves)
