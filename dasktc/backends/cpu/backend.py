"""The CPU backend: pandas, NumPy, and kernels compiled by Numba.

A kernel is serial and runs without the GIL: parallelism comes from Dask, one task a thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from dasktc.backends import Backend, GraphBounds, TaskSize, TextIds
from dasktc.backends.cpu import hub, hub_tables, intersect, probes, radix, text, visit
from dasktc.backends.cpu.bisection import lstc, tcstream
from dasktc.backends.cpu.hindex import hindex
from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.cpu.probes import Rule
from dasktc.backends.cpu.radix import sort
from dasktc.backends.cpu.splits import sample_bytes, triple
from dasktc.backends.csr import Array, BlockTask, TaskCount
from dasktc.errors import InputError

__all__ = ["BACKEND", "KERNELS", "CpuKernel", "count", "expected_probes", "scratch_bytes", "sort", "warm"]

Counts = tuple[int, int, int, int]


def _longest_row(offsets: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """In pieces, for no array of a block's length is planned for."""
    firsts = range(0, len(offsets) - 1, BACKEND.chunk)
    return max((int(np.diff(offsets[first : first + BACKEND.chunk + 1]).max()) for first in firsts), default=0)


def _trust(task: BlockTask) -> Counts:
    t = triple(task)
    longest = _longest_row(t.table)
    return cast(Counts, intersect.trust(t, intersect.bucket_depth(longest)))


def _hindex(task: BlockTask) -> Counts:
    t = triple(task)
    longest = min(_longest_row(t.table), _longest_row(t.stream))
    return cast(Counts, hindex(t, intersect.bucket_depth(longest)))


def _merge(task: BlockTask) -> Counts:
    return cast(Counts, intersect.merge(triple(task)))


def _search(task: BlockTask) -> Counts:
    return cast(Counts, intersect.search(triple(task)))


def _lstc(task: BlockTask) -> Counts:
    return cast(Counts, lstc(triple(task)))


def _tcstream(task: BlockTask) -> Counts:
    return cast(Counts, tcstream(triple(task)))


def _hash_bytes(of: TaskSize, graph: GraphBounds | None) -> int:
    longest = of.columns if graph is None else min(of.columns, graph.longest)
    return 4 * intersect.LARGE * (1 + intersect.bucket_depth(longest)) + (1 << 17)


@dataclass(frozen=True)
class CpuKernel:
    """All that the backend knows of a kernel.

    Attributes
    ----------
    count : callable (task) -> Counts
        Triangles, wedges, probes and the longest bucket of a task.
    probes : Rule
        The probes of index edges, from lengths and positions alone.
    compiled : tuple of Kernel
        What it compiles.
    scratch : callable (TaskSize, Whole or None) -> int
        Bytes that it allocates next to a task's blocks, at most, as in `Backend`.
    """

    count: Callable[[BlockTask], Counts]
    probes: Rule
    compiled: tuple[Kernel, ...] = ()
    scratch: Callable[[TaskSize, GraphBounds | None], int] = lambda *_: 0


_HUB = (hub.hub_bitmaps, hub.by_rows, hub.group, hub.by_columns)
KERNELS: dict[str, CpuKernel] = {
    "hub": CpuKernel(hub_tables.count, probes.hub, _HUB, hub_tables.scratch_bytes),
    "trust": CpuKernel(_trust, probes.trust, (intersect.trust,), _hash_bytes),
    "hindex": CpuKernel(_hindex, probes.hindex, (hindex,), _hash_bytes),
    "merge": CpuKernel(_merge, probes.merge, (intersect.merge,)),
    "search": CpuKernel(_search, probes.search, (intersect.search,)),
    "lstc": CpuKernel(_lstc, probes.lstc, (lstc,)),
    "tcstream": CpuKernel(_tcstream, probes.tcstream, (tcstream,)),
}
"""The kernels, the default first."""


def count(task: BlockTask, kernel: str) -> TaskCount:
    """Evaluate one block triple.

    Parameters
    ----------
    task : BlockTask
        Three blocks that fit together as `BlockTask` says, in memory.
    kernel : str
        One of KERNELS.

    Returns
    -------
    TaskCount
        Exact; `seconds` is CPU time of this thread, compiling excluded.

    Raises
    ------
    InputError
        No kernel has that name.
    """
    if kernel not in KERNELS:
        raise InputError(f"kernel {kernel!r} is not one of {', '.join(KERNELS)}; choose one of these")
    for part in KERNELS[kernel].compiled:
        part.load()
    if kernel != "hub":
        hub_tables.forget()
    start = time.thread_time()
    triangles, wedges, probed, collision = KERNELS[kernel].count(task)
    return TaskCount(triangles, wedges, probed, collision, time.thread_time() - start)


def scratch_bytes(kernel: str, of: TaskSize, graph: GraphBounds | None = None) -> int:
    """Bytes that a kernel allocates next to a task's blocks, at most.

    Parameters
    ----------
    kernel : str
        One of KERNELS.
    of : TaskSize
    graph : GraphBounds, optional
    """
    sample = sample_bytes(of.splits * of.index_edges, of.splits) if of.splits > 1 else 0
    return max(sample, KERNELS[kernel].scratch(of, graph))


def expected_probes(task: BlockTask, kernel: str) -> int:
    """Add up the probes that `count` must report, from row lengths and positions alone.

    Parameters
    ----------
    task : BlockTask
    kernel : str
        One of KERNELS.
    """
    return probes.expected_probes(task, KERNELS[kernel].probes)


def warm() -> None:
    """Compile, or load from the cache, everything that this backend compiles."""
    for kernel in KERNELS.values():
        for part in kernel.compiled:
            part.load()
    radix.radix_sort.load()


def _read(part: Any, upstream: Any) -> pd.DataFrame:
    frame: pd.DataFrame = part.read(BACKEND, upstream)
    return frame


def _memory() -> int:
    import psutil

    return int(psutil.virtual_memory().available)


def _distinct(values: Array) -> Array:
    """Sorted distinct values: a hash table first, so that V rather than 2E values are sorted."""
    return np.sort(np.asarray(pd.Series(values).unique()))


def _lookup(ids: Array, values: Array) -> Array:
    """By a hash table of all ids if there are more values to look up; else by sorted binary search."""
    if len(values) > 16 * len(ids):
        return pd.Index(ids).get_indexer(values)
    order = np.argsort(values)
    found = np.empty(len(values), dtype="int64")
    found[order] = ids.searchsorted(values[order])
    return found


BACKEND = Backend(
    name="cpu",
    frame=pd,
    array=np,
    read=_read,
    text=TextIds(text.unite, text.ascending, text.dense, text.arrow),
    distinct=_distinct,
    lookup=_lookup,
    sort=sort,
    count=count,
    scratch_bytes=scratch_bytes,
    expected_probes=expected_probes,
    support=visit.support,
    listing=visit.listing,
    add_ends=visit.add_ends,
    memory=_memory,
)
