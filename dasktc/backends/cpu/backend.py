"""The CPU backend: pandas, NumPy, and kernels compiled by Numba.

A kernel is serial and runs without the GIL: several run at once on threads of a process, or as tasks of Dask.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, cast

import numpy as np
import pandas as pd

from dasktc.backends import cpu
from dasktc.backends.answers import ArrayAnswers
from dasktc.backends.bit_matrix import NoBitMatrix
from dasktc.backends.cpu import batches, cliques, edges, hub_tables, lookup, probes, radix, rows, text, visit, wedges
from dasktc.backends.cpu.block_facts import CpuBlockFacts
from dasktc.backends.cpu.edges import CpuEdges
from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.cpu.kernels import CpuKernel
from dasktc.backends.cpu.part_edges import CpuPartEdges
from dasktc.backends.cpu.peel import PEEL
from dasktc.backends.cpu.radix import sort
from dasktc.backends.cpu.vertices import CpuVertices
from dasktc.backends.csr import Array, BlockTask, TaskCount
from dasktc.backends.edge_functions import Recipe, make_edges
from dasktc.backends.host_threads import read_bytes
from dasktc.backends.protocol import Backend, TextIds
from dasktc.errors import InputError
from dasktc.registry import KERNELS as REGISTRIES
from dasktc.registry import Registry

__all__ = ["BACKEND", "KERNELS", "CpuKernel", "count", "expected_probes", "sort"]

KERNELS = cast("Registry[CpuKernel]", REGISTRIES["cpu"])
"""The CPU kernels, the default first."""


def _warm() -> int:
    for module in iter_modules(cpu.__path__):
        import_module(f"{cpu.__name__}.{module.name}")
    kernels = list(Kernel.instances)
    for kernel in kernels:
        kernel.load()
    return len(kernels)


def count(task: BlockTask, kernel: str) -> TaskCount:
    """Evaluate one block triple with a kernel; `seconds` is CPU time of this thread, compiling excluded.

    A kernel that does not exist is refused (InputError).
    """
    if kernel not in KERNELS:
        raise InputError(f"kernel {kernel!r} is not one of {', '.join(KERNELS)}; choose one of these")
    entry = KERNELS[kernel]
    entry.load()
    if not entry.keeps_tables:
        hub_tables.forget()
    start = time.thread_time()
    triangles, wedges, probed, collision = entry.function(task)
    return TaskCount(triangles, wedges, probed, collision, time.thread_time() - start)


def expected_probes(task: BlockTask, kernel: str) -> int:
    """Add up the probes that `count` must report, from row lengths and positions alone."""
    return probes.expected_probes(task, KERNELS[kernel].probes)


def _read(part: Any, upstream: Any) -> pd.DataFrame:
    frame: pd.DataFrame = part.read(BACKEND, upstream)
    return frame


def _memory() -> int:
    import psutil

    return int(psutil.virtual_memory().available)


def _make(recipe: Recipe, first: int, last: int) -> pd.DataFrame:
    return _wrap(*make_edges(np, edges.CHUNK, recipe, first, last))


def _wrap(src: Array, dst: Array) -> pd.DataFrame:
    return pd.DataFrame({"src": src, "dst": dst}, copy=False)


def _support(task: BlockTask, kernel: str) -> tuple[list[Array], int, int]:
    module = KERNELS[kernel].support
    counts: tuple[list[Array], int, int] = import_module(module).edges(task) if module else visit.support(task)
    return counts


def _vertex_support(
    task: BlockTask, kernel: str, sides: tuple[int, int, int], sizes: Mapping[int, int]
) -> tuple[dict[int, Array], int, int]:
    module = KERNELS[kernel].support
    assert module is not None, kernel
    counts: tuple[dict[int, Array], int, int] = import_module(module).vertices(task, sides, sizes)
    return counts


BACKEND = Backend(
    name="cpu",
    frame=pd,
    array=np,
    read=_read,
    wrap=_wrap,
    edge_frame=lambda edges: edges,
    text=TextIds(text.unite, text.ascending, text.dense, text.arrow, text.arrow),
    distinct=lookup.distinct,
    lookup=lookup.lookup,
    sort=sort,
    merge=radix.merge,
    dealt=radix.dealt,
    count=count,
    expected_probes=expected_probes,
    support=_support,
    vertex_support=_vertex_support,
    listing=visit.listing,
    batches=batches.batches,
    add_ends=visit.add_ends,
    cliques=cliques.count,
    peel=PEEL,
    closed_wedges=wedges.closed,
    bit_matrix=NoBitMatrix(),
    answers=ArrayAnswers(np),
    make=_make,
    upload=read_bytes,
    rows=rows.parse,
    references=("merge", "search"),
    memory=_memory,
    processors=lambda: 1,
    wait=lambda: None,
    warm=_warm,
    chunk=edges.CHUNK,
    edges=CpuEdges(),
    vertices=CpuVertices(),
    part_edges=CpuPartEdges(),
    block_facts=CpuBlockFacts(),
)
