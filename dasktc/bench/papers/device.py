"""What is timed on a GPU besides whole counts."""

from __future__ import annotations

from typing import Any

from dasktc.csr import BlockTask

__all__ = ["binning_seconds"]


def binning_seconds(task: BlockTask, kernel: str) -> float:
    """List a task's edges in bins, as `kernel` does before it counts, and return the seconds between two events.

    Parameters
    ----------
    task : BlockTask
        On the device.
    kernel : {"search", "merge"}
    """
    from dasktc.backend import cuda, launch
    from dasktc.backend.device import Launch, describe
    from dasktc.backend.launch_edges import binned, slices

    device = cuda.device()
    xp: Any = device.array
    totals, known = xp.zeros(4, dtype="uint64"), launch.KERNELS[kernel]
    begin, end = xp.cuda.Event(), xp.cuda.Event()
    begin.record()
    whole = Launch(device, task, describe(device, task), totals, launch.defines(kernel), known.file)
    for part in slices(whole):
        binned(part)
    end.record()
    end.synchronize()
    return float(xp.cuda.get_elapsed_time(begin, end)) / 1e3
