"""Resources used by each process of an executor: peak resident memory, bytes sent, bytes spilled."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from dasktc.executors.base import Executor

__all__ = ["Resources", "Usage", "resources_of", "this_process", "usage_of"]


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
    return usage._replace(**resources_of(dask_worker)._asdict())


class Resources(NamedTuple):
    """What a Dask worker has sent to others, has on its disk and may take, in bytes, as in `Usage`."""

    sent: int | None = None
    spilled: int = 0
    limit: int | None = None


def resources_of(worker: Any) -> Resources:
    """Network, disk and memory of a Dask worker; unknown where a version of Dask has them elsewhere."""
    with suppress(AttributeError):
        memory = worker.memory_manager
        disk_bytes = int(getattr(getattr(memory.data, "spilled_total", None), "disk", 0))
        return Resources(int(worker.transfer_outgoing_bytes_total), disk_bytes, memory.memory_limit)
    return Resources()


def _peak() -> int:
    """Peak resident memory of this process in bytes; 0 where the system does not report it."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux `getrusage` returns the parent's peak, if that was larger
        lines = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(lines[0].split()[1]) << 10 if lines else 0
    info = psutil.Process().memory_info()
    if hasattr(info, "peak_wset"):
        return int(info.peak_wset)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS
