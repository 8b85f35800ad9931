"""Measurement of CPU seconds and peak resident memory, of functions that run in fresh processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from dasktc.io.source import Source

__all__ = [
    "StageClock", "StageMeter", "columns_of", "forget_peak", "in_fresh_process", "peak_bytes", "resident_bytes",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}


def in_fresh_process(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in a new interpreter whose libraries are limited to one thread, and return its result."""
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=_use_one_thread) as pool:
        return pool.submit(function, *args, **kwargs).result()


def _use_one_thread() -> None:
    os.environ.update(ONE_THREAD)


def columns_of(source: Source, backend: str) -> tuple[Any, Any]:
    """Read all parts of a source of integers into two arrays of the backend, the ends of its edges."""
    from dasktc.backends import get_backend
    from dasktc.pipeline.stages.id_maps import arrays_of

    reader = get_backend(backend)
    columns = [arrays_of(reader.read(part, None)) for part in source.parts]
    src, dst = (reader.array.concatenate(pieces) for pieces in zip(*columns, strict=True))
    return src, dst


def resident_bytes() -> int:
    """Resident memory of this process now, in bytes."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def peak_bytes() -> int:
    """Peak resident memory of this process: on Linux since `forget_peak`, elsewhere since its start."""
    if sys.platform == "linux":
        with open("/proc/self/status") as status:
            line = next(line for line in status if line.startswith("VmHWM"))
        return int(line.split()[1]) << 10
    import psutil

    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def forget_peak() -> None:
    """Reset the peak of resident memory to its present value, where the system supports it."""
    if sys.platform == "linux":
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")


class StageClock:
    """A `progress` callback that adds up the seconds of each stage, by a clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds: dict[str, float] = {}
        self._clock, self._stage, self._began = clock, "", 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Give the time since the last event to its stage."""
        now = self._clock()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._began
        self._stage, self._began = stage, now


@dataclass
class StageMeter:
    """A `progress` callback that records CPU seconds and peak memory of each stage."""

    seconds: dict[str, float] = field(default_factory=dict)
    """CPU seconds of all threads of this process, by stage."""
    peaks: dict[str, int] = field(default_factory=dict)
    """Peak resident bytes during each stage (where peaks cannot be reset: up to its end)."""
    _stage: str = ""
    _began: float = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Begin a stage if it is a new one."""
        if stage != self._stage:
            self.stop()
            self._stage, self._began = stage, time.process_time()

    def stop(self) -> None:
        """End the current stage."""
        if self._stage:
            self.seconds[self._stage] = time.process_time() - self._began
            self.peaks[self._stage] = peak_bytes()
        forget_peak()
        self._stage = ""
