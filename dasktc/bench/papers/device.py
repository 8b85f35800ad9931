"""GPU timings of steps of a count, and occupancy."""

from __future__ import annotations

from typing import Any, NamedTuple

from dasktc.backends.csr import BlockTask
from dasktc.backends.cuda import launch
from dasktc.backends.cuda.device import Launch, describe

__all__ = ["Occupancy", "binning_seconds", "launch_of", "occupancy"]

WARP_REGISTERS = 256
"""Registers come to a warp in multiples of so many."""
RESERVED = 1 << 10
"""Bytes of shared memory that the system takes of a block."""
MOST_BLOCKS = 32
"""Of a multiprocessor."""


def binning_seconds(task: BlockTask, kernel: str) -> float:
    """List a task's edges in bins, as `kernel` does before it counts, and return the seconds between two events.

    Parameters
    ----------
    task : BlockTask
        On the device.
    kernel : {"search", "merge"}
    """
    from dasktc.backends.cuda import backend as cuda
    from dasktc.backends.cuda.launch_edges import binned, slices

    xp: Any = cuda.device().array
    begin, end = xp.cuda.Event(), xp.cuda.Event()
    begin.record()
    for part in slices(launch_of(task, kernel)):
        binned(part)
    end.record()
    end.synchronize()
    return float(xp.cuda.get_elapsed_time(begin, end)) / 1e3


def launch_of(task: BlockTask, kernel: str, macros: dict[str, int] | None = None) -> Launch:
    """Make the launch of a kernel for a task on the current GPU, its sums zero.

    Parameters
    ----------
    task : BlockTask
        On the device.
    kernel : str
    macros : dict, optional
    """
    from dasktc.backends.cuda import backend as cuda

    device, entry = cuda.device(), launch.KERNELS[kernel]
    totals = device.array.zeros(4, dtype="uint64")
    return Launch(device, task, describe(device, task), totals, launch.defines(kernel, macros), entry.file)


class Occupancy(NamedTuple):
    """Resources of a kernel's thread block, and how many threads of it a multiprocessor holds."""

    registers: int
    """A thread."""
    shared: int
    """Bytes a block."""
    threads: int
    most: int
    """That a multiprocessor holds at a time, and that it could hold."""

    def __str__(self) -> str:
        return f"{self.threads:,} of {self.most:,} threads a processor ({self.registers} registers, {self.shared:,} B)"


def occupancy(kernel: str, entry: str, macros: dict[str, int], block: int, shared: int = 0) -> Occupancy:
    """Compute the occupancy from the compiled function's registers and shared memory.

    Parameters
    ----------
    kernel, entry : str
    macros : dict of str to int
    block : int
        Threads of it.
    shared : int
        Bytes of its dynamic shared memory.
    """
    from dasktc.backends.cuda import backend as cuda

    device = cuda.device()
    registers, static = device.takes(launch.KERNELS[kernel].file, entry, launch.defines(kernel, macros))
    limits: dict[str, int] = device.array.cuda.Device().attributes
    warps, limit = block // 32, int(limits["MaxThreadsPerMultiProcessor"])
    of_a_warp = -(-32 * max(1, registers) // WARP_REGISTERS) * WARP_REGISTERS
    blocks = min(
        limit // block,
        int(limits["MaxRegistersPerMultiprocessor"]) // (of_a_warp * warps),
        int(limits["MaxSharedMemoryPerMultiprocessor"]) // (static + shared + RESERVED),
        MOST_BLOCKS,
    )
    return Occupancy(registers, static + shared, blocks * block, limit)
