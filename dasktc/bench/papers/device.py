"""What is timed on a GPU besides whole counts."""

from __future__ import annotations

from typing import Any

from dasktc.backend import launch
from dasktc.backend.device import Launch, describe
from dasktc.csr import BlockTask

__all__ = ["binning_seconds", "launch_of"]


def binning_seconds(task: BlockTask, kernel: str) -> float:
    """List a task's edges in bins, as `kernel` does before it counts, and return the seconds between two events.

    Parameters
    ----------
    task : BlockTask
        On the device.
    kernel : {"search", "merge"}
    """
    from dasktc.backend import cuda
    from dasktc.backend.launch_edges import binned, slices

    xp: Any = cuda.device().array
    begin, end = xp.cuda.Event(), xp.cuda.Event()
    begin.record()
    for part in slices(launch_of(task, kernel)):
        binned(part)
    end.record()
    end.synchronize()
    return float(xp.cuda.get_elapsed_time(begin, end)) / 1e3


def launch_of(task: BlockTask, kernel: str, macros: dict[str, int] | None = None) -> Launch:
    """What a kernel's launches on the current GPU share.

    Parameters
    ----------
    task : BlockTask
        On the device.
    kernel : str
    macros : dict, optional
    """
    from dasktc.backend import cuda

    device, known = cuda.device(), launch.KERNELS[kernel]
    totals = device.array.zeros(4, dtype="uint64")
    return Launch(device, task, describe(device, task), totals, launch.defines(kernel, macros), known.file)
