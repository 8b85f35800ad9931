"""Assignment of each vertex to the part that it is local to, for scheme `proxy` (LSTC, section 4.1).

Any disjoint parts give exact counts; they differ in the number of proxies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dasktc.backends import Backend
from dasktc.errors import InputError
from dasktc.executors.base import Executor
from dasktc.options import format_size
from dasktc.pipeline.edge_keys import unpack
from dasktc.planning.grid import Shape
from dasktc.registry import ASSIGNMENTS

__all__ = ["OWN", "Assignment", "assigned"]

Array = Any
METIS_BYTES = 120
"""Bytes an edge that METIS and its input take, about."""
MOST_ENDS = (1 << 31) - 1
"""Ends of edges that METIS takes, as pymetis is built."""


def assigned(executor: Executor, partitions: list[Any], how: str, parts: int, seed: int, shape: Shape) -> Any:
    """Assign each vertex to a part, by the named method.

    Parameters
    ----------
    executor : Executor
    partitions : list of handles of int64 arrays
        The oriented edges' keys.
    how : str
        One of the registry `ASSIGNMENTS`.
    parts : int
    seed : int
        Of method `random`.
    shape : Shape

    Returns
    -------
    handle of array of int64, shape (V,)
        The part of each vertex.

    Raises
    ------
    InputError
        METIS is not installed.
    """
    return ASSIGNMENTS[how].assign(executor, partitions, parts, seed, shape)


def _by_id(executor: Executor, partitions: list[Any], parts: int, seed: int, shape: Shape) -> Any:
    return executor.submit("plan", _ranges, shape.vertices, parts, executor.backend)


def _by_hash(executor: Executor, partitions: list[Any], parts: int, seed: int, shape: Shape) -> Any:
    return executor.submit("plan", _hashed, seed, shape.vertices, parts, executor.backend)


def _by_metis(executor: Executor, partitions: list[Any], parts: int, seed: int, shape: Shape) -> Any:
    return executor.submit("plan", _metis, list(partitions), shape, parts, executor.memory_per_call, executor.backend)


@dataclass(frozen=True)
class Assignment:
    """A method of assigning vertices to parts: its name, a line of help, and a function as `assigned` without `how`."""

    name: str
    help: str
    assign: Callable[[Executor, list[Any], int, int, Shape], Any]


OWN = (
    Assignment("random", "by a hash of the id and --seed", _by_hash),
    Assignment("contiguous", "ranges of ids", _by_id),
    Assignment("metis", "METIS's parts, with few edges between them (needs pymetis)", _by_metis),
)
"""As help lists them."""


def _ranges(vertices: int, parts: int, backend: Backend) -> Array:
    return backend.array.arange(vertices, dtype="int64") * parts // max(1, vertices)


def _hashed(seed: int, vertices: int, parts: int, backend: Backend) -> Array:
    xp = backend.array
    ids = xp.arange(vertices, dtype="int64")
    mixed = (ids + seed % 2**31 * 0x2545F491).astype("uint64") * xp.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> xp.uint64(32)
    mixed *= xp.uint64(0xD6E8FEB86659FD93)
    return ((mixed >> xp.uint64(33)) % xp.uint64(parts)).astype("int64")


def _metis(partitions: list[Array], shape: Shape, parts: int, memory_per_call: int | None, backend: Backend) -> Array:
    """Parts by METIS, in one task: it takes the whole graph, both directions, in host memory."""
    try:
        import pymetis
    except ImportError:
        raise InputError(
            "--assign metis needs the pymetis package, which is not installed: METIS is an optional extra; "
            "run pip install 'dasktc[metis]', or take --assign random"
        ) from None
    need = METIS_BYTES * sum(len(part) for part in partitions)
    if memory_per_call is not None and need > memory_per_call:
        raise InputError(
            f"--assign metis takes {format_size(need)}, more than the {format_size(memory_per_call)} that one stage "
            "may take: it has the whole graph in memory, both directions; raise --memory, or take --assign random"
        )
    keys: Any = np.concatenate([np.asarray(part.get() if hasattr(part, "get") else part) for part in partitions])
    if 2 * len(keys) > MOST_ENDS:
        raise InputError(
            f"the graph has {len(keys):,} edges, METIS numbers {MOST_ENDS // 2:,} at most: its package counts in "
            "32 bits; take --assign random"
        )
    ends = np.stack(unpack(keys, shape.shift))
    sources, targets = ends.reshape(-1), ends[::-1].reshape(-1)
    place = np.argsort(sources, kind="stable")
    offsets = np.searchsorted(sources[place], np.arange(shape.vertices + 1))
    if parts == 1 or not len(keys):
        return backend.array.zeros(shape.vertices, dtype="int64")
    _, membership = pymetis.part_graph(
        parts, pymetis.CSRAdjacency(offsets.astype("int32"), targets[place].astype("int32"))
    )
    return backend.array.asarray(membership, dtype="int64")
