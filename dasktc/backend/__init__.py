"""The backend seam: an array module, a frame module, a sort, and "evaluate a triple".

Tasks carry a backend's name, never its modules: each worker calls `get_backend` for itself, so a
client needs no GPU library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from dasktc.csr import BlockTask, TaskCount
from dasktc.errors import InputError

__all__ = ["BACKENDS", "Backend", "get_backend"]

BACKENDS = ("cpu",)


@dataclass(frozen=True)
class Backend:
    """What the stages need of a device.

    Attributes
    ----------
    name : str
        The name that tasks carry.
    frame : module
        The data frame module of edge frames: pandas.
    array : module
        The array module of everything after reading: numpy.
    sort : callable (keys, bound) -> array
        `keys` (int64, 0 <= key < bound) in ascending order. May overwrite and return `keys`.
    count : callable (task, kernel) -> TaskCount
        Evaluates one block triple with the named kernel.
    scratch_bytes : callable (kernel, index_edges, block_edges, columns) -> int
        Bytes that the kernel allocates for a task beside its blocks: of the task's share of the index
        edges, the edges of the largest block, and the most columns or rows of a block.
    expected_probes : callable (task, kernel) -> int
        The probes of `count`, from row lengths and positions alone.
    chunk : int
        Elements at a time that elementwise arithmetic runs fastest on. On the CPU 64 KiB of keys: larger
        intermediates would be mapped and faulted in anew each time, for Dask's workers run with a fixed
        trim threshold, which stops malloc from learning.
    """

    name: str
    frame: ModuleType
    array: ModuleType
    sort: Callable[[Any, int], Any]
    count: Callable[[BlockTask, str], TaskCount]
    scratch_bytes: Callable[[str, int, int, int], int]
    expected_probes: Callable[[BlockTask, str], int]
    chunk: int = 1 << 13


@cache
def get_backend(name: str) -> Backend:
    """Import the named backend, once per process.

    Parameters
    ----------
    name : {"cpu"}

    Raises
    ------
    InputError
        No backend has that name.
    """
    if name == "cpu":
        from dasktc.backend import cpu

        return cpu.BACKEND
    raise InputError(f"backend {name!r} is not one of {', '.join(BACKENDS)}; choose one of these")
