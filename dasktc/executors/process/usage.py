"""Resources used by each process of an executor: peak resident memory, bytes sent, bytes spilled."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from dasktc.executors.base import Executor

__all__ = ["Usage", "usage_of"]


class Usage(NamedTuple):
    """Memory, network and disk that one process has used.

    Attributes
    ----------
    worker : str
        Host and process, as records of counting tasks name it.
    resident, peak : int
        Bytes of resident memory now, and the most since the process began; both include Python and its libraries.
    sent : int or None
        Bytes that a Dask worker has sent to other workers and clients; None where the process is no worker.
    spilled : int
        Bytes that Dask now has on a worker's disk.
    limit : int or None
        Bytes that Dask lets a worker take; None: no limit.
    """

    worker: str
    resident: int
    peak: int
    sent: int | None = None
    spilled: int = 0
    limit: int | None = None


def usage_of(executor: Executor) -> dict[str, Usage]:
    """Ask every process that runs an executor's calls for its usage; return the answers by `Usage.worker`."""
    answers: list[Usage] = executor.run_on_workers(_of_this_process)
    return {usage.worker: usage for usage in answers}


def this_process() -> str:
    """Name the host and the process that this runs in."""
    return f"{platform.node()}:{os.getpid()}"


def _of_this_process(dask_worker: Any = None) -> Usage:
    name, resident = this_process(), psutil.Process().memory_info().rss
    usage = Usage(name, resident, max(resident, _peak()))
    if dask_worker is None:
        return usage
    memory = dask_worker.memory_manager
    return usage._replace(
        sent=int(dask_worker.transfer_outgoing_bytes_total),
        spilled=int(getattr(getattr(memory.data, "spilled_total", None), "disk", 0)),
        limit=memory.memory_limit,
    )


def _peak() -> int:
    """Peak resident memory of this process in bytes; 0 where the system does not report it."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux `getrusage` returns the parent's peak, if that was larger
        of_peak = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(of_peak[0].split()[1]) << 10 if of_peak else 0
    info = psutil.Process().memory_info()
    if hasattr(info, "peak_wset"):
        return int(info.peak_wset)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS
