"""Turns out-of-memory errors of a device or of the host into one line with figures.

Callers that can continue with less memory (`counting.tasks.in_halves`, `executors.stores.device.store`) catch
MemoryError themselves. Other such errors are reworded here, in the process that failed, because a cluster's client may
have no GPU.
"""

from __future__ import annotations

import functools
import logging
import platform
import re
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ParamSpec, TypeVar

from dasktc.backends.calls import one_call
from dasktc.errors import DasktcError, DeviceMemoryError
from dasktc.options import format_size
from dasktc.wording import advice

__all__ = ["run", "said_in_one_line"]

P = ParamSpec("P")
T = TypeVar("T")
_log = logging.getLogger("dasktc")
CUDA = ("cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY")
"""Errors of the runtime and the driver for which a context, a launch or a library found no memory."""
ASKED = re.compile(
    r"(?:failed to allocate|allocating|Unable to allocate|malloc of size) ([\d.,]+(?: ?[KMGT]?i?B| bytes)?)"
)
"""Where messages of RMM, CuPy, NumPy and Arrow contain the requested size."""


def said_in_one_line(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to report exhausted memory in one line: bytes asked for, bytes free, what to do.

    The function becomes one call (`calls.one_call`): device memory comes from the pool until it ends.

    It raises DasktcError instead of memory errors; DeviceMemoryError where the device is full.
    """

    @functools.wraps(function)
    def said(*args: P.args, **kwargs: P.kwargs) -> T:
        return _in_one_call(False, function, *args, **kwargs)

    return said


def run(function: Callable[..., T], *args: Any) -> T:
    """Call a function in a task on a worker, and report that worker's exhausted memory in one line."""
    return _in_one_call(True, function, *args)


def _in_one_call(on_worker: bool, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    with ExitStack() as call:
        try:
            call.enter_context(one_call(on_worker))
            return function(*args, **kwargs)
        except Exception as error:
            lacks_memory = isinstance(error, MemoryError) or any(name in str(error) for name in CUDA)
            if isinstance(error, DasktcError) or not lacks_memory:
                raise
            _log.debug("out of memory", exc_info=True)
            why = _said(error)
        raise why  # only here are the frames gone from which it was raised, and the memory that they held


def _said(error: Exception) -> DasktcError:
    text = " ".join(str(error).split()) or type(error).__name__
    request = ASKED.search(text)
    needed = request.group(1).rstrip(".,") if request else "what was asked for"
    # From CuPy, RMM or CUDA, and not from NumPy or Arrow.
    is_told = type(error).__module__.startswith("cupy") or re.search("(?i)bad_alloc|out.of.memory|cuda", text)
    if device := "dasktc.backends.cuda.memory" in sys.modules and bool(is_told):
        others = f"more workers, as with {advice('workers')}, or {advice(backend='cpu')}"
        where, free = "the GPU", _device_memory()
    else:
        import psutil

        memory, others = psutil.virtual_memory(), "or more hosts"
        where, free = "memory", f"{format_size(memory.available)} of {format_size(memory.total)} are free"
    return (DeviceMemoryError if device else DasktcError)(
        f"{where} of {platform.node()} has no room for {needed}, {free} ({text[:200]}): the graph, or a part of its "
        f"source, is too large for what others leave; take less of it: give {advice('memory')}, so that the rest "
        f"goes to files, {others}"
    )


def _device_memory() -> str:
    try:
        free, total = sys.modules["dasktc.backends.cuda.memory"].free_and_total()  # loaded, since it failed
    except Exception:  # no context could be made
        return "nor for a context"
    return f"{format_size(free)} of its {format_size(total)} are free"
