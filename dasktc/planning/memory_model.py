"""Bytes of blocks and of tasks: arithmetic on the blocks' edges and rows, known before any block is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import TaskSize
from dasktc.planning.schemes import PLANNERS, Numbers

__all__ = ["BYTES_PER_EDGE", "BYTES_PER_ROW", "Scratch", "Sizes", "block_bytes", "task_bytes", "triple_bytes"]

Scratch = Callable[[TaskSize], int]
"""Bytes of kernel scratch for a task, at most."""

BYTES_PER_EDGE, BYTES_PER_ROW, BYTES_PER_MEMBER = 4, 8, 4


class Sizes(NamedTuple):
    """Sizes of the blocks of a grid, each an int64 array of its shape.

    Attributes
    ----------
    edges, rows, columns : array of int64
    """

    edges: Numbers
    rows: Numbers
    columns: Numbers


def block_bytes(partition: str, sizes: Sizes) -> Numbers:
    """Bytes of the blocks of a planner's grid, in its shape.

    Parameters
    ----------
    partition : str
    sizes : Sizes
    """
    row_bytes = BYTES_PER_ROW + BYTES_PER_MEMBER * (partition == "proxy")
    return BYTES_PER_EDGE * sizes.edges + row_bytes * sizes.rows + BYTES_PER_ROW


def task_bytes(partition: str, parts: int, splits: int, sizes: Sizes, scratch: Scratch) -> Numbers:
    """Bytes that a task of each triple holds: its blocks, each once, and scratch.

    Parameters
    ----------
    partition : str
    parts, splits : int
    sizes : Sizes
    scratch : callable (TaskSize) -> int

    Returns
    -------
    array of int64, shape (triples,)
    """
    planner, triples = PLANNERS[partition], PLANNERS[partition].triples(parts)
    held, widest = sizes.edges.ravel(), np.maximum(sizes.rows, sizes.columns).ravel()
    needed: Numbers = triple_bytes(triples, block_bytes(partition, sizes).ravel())
    lower = _lower(partition, parts, sizes).ravel()[triples[:, 1:]].all(axis=1)
    needed += _beside(partition, parts, splits, held[triples], widest[triples], lower, scratch)
    if planner.cut == "edges":
        needed += BYTES_PER_ROW * (int(sizes.rows[0, 0]) + 1)  # offsets of the range
    return needed


def _lower(partition: str, parts: int, sizes: Sizes) -> Any:
    """Whether each block is a lower triangle where ids are in `degree` order: ranges of ids need not be."""
    if partition != "vertical":
        return np.ones(sizes.rows.shape, dtype=bool)
    rows, columns = sizes.rows[:, 0], sizes.columns[0].reshape(2, parts)  # of R, and of R and C
    row_first, column_first = (np.cumsum(widths, axis=-1) - widths for widths in (rows, columns))
    return row_first[:, None] - column_first.ravel() <= 1


def _beside(partition: str, parts: int, splits: int, edges: Any, widest: Any, lower: Any, scratch: Scratch) -> Any:
    """Bytes of each triple's scratch, from the edges and the widths of its three blocks."""
    cuts = 1 if PLANNERS[partition].cut == "edges" else splits
    dealt = parts if partition == "hash2d" else 1
    shares = np.stack([-(-edges[:, 0] // splits), edges[:, 1], edges[:, 2], widest.max(axis=1), lower], axis=1)
    if len(shares) == 1:
        kinds, kind = shares, np.zeros(1, dtype="int64")  # which `unique` takes a tenth of a millisecond to say
    else:
        kinds, kind = np.unique(shares, axis=0, return_inverse=True)
    found = [scratch(TaskSize(i, t, s, wide, cuts, dealt, bool(low))) for i, t, s, wide, low in kinds.tolist()]
    return np.array(found)[kind.ravel()]


def triple_bytes(triples: Numbers, held: Numbers) -> Any:
    """Bytes of each triple's blocks, each once.

    Parameters
    ----------
    triples : array of int64, shape (triples, 3)
        Numbers of blocks.
    held : array, shape (blocks,)
        Their bytes.
    """
    index, table, stream = triples.T
    once = held[index] + held[table] * (table != index)
    return once + held[stream] * ((stream != index) & (stream != table))
