"""Sums over the triangles of each edge of a weight of the opposite vertex, on every backend.

The CPU adds them up as it visits the triangles. On a device the triangles of a task are listed, and each finds the
places of its three edges by bisection.
"""

from __future__ import annotations

from typing import Any

from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.backends.select import get_backend

__all__ = ["DEVICE_BYTES", "weighted_support"]

Array = Any
SHIFT = 32
DEVICE_BYTES = 40
"""Bytes an edge of a block beside it on a device: its key, its place's sum, and what makes them."""


def weighted_support(task: BlockTask, weights: Array, backend: str, kernel: str) -> tuple[list[Array], int, int]:
    """Add up, for each edge, the weights of the vertices opposite to it in a task's triangles.

    Parameters
    ----------
    task : BlockTask
    weights : array of float64
        Of every vertex, by its id in the blocks.
    backend : str
    kernel : str
        Kernel that counts the triangles before a device lists them.

    Returns
    -------
    sums : list of three arrays of float64
        Aligned with the columns of index, table and stream: the sums over the task's triangles with the edge in that
        role. Roles of one and the same block object share one array.
    triangles, wedges : int
        As in `TaskCount`.
    """
    if get_backend(backend).on_device:
        return _of_list(task, weights, backend, kernel)
    from dasktc.backends.cpu import weighted_support  # loads Numba: only when needed
    from dasktc.backends.cpu.intersect import columns_end

    ends = (task.index.row_ids, task.index.rows), (task.stream.row_ids, task.stream.rows)
    thirds = task.table.column_ids, columns_end(task)
    corners = [_weights_of(ids_of, size, weights, backend) for ids_of, size in (*ends, thirds)]
    return weighted_support.support(task, (corners[0], corners[1], corners[2]))


def _weights_of(ids_of: Any, size: int, weights: Array, backend: str) -> Array:
    """Weights of the rows, or of the columns, of a block, which may have one more row, without edges."""
    xp = get_backend(backend).array
    ids = ids_of(xp.arange(size))
    return weights.take(xp.minimum(ids, len(weights) - 1)) if len(weights) else xp.zeros(size)


def _of_list(task: BlockTask, weights: Array, name: str, kernel: str) -> tuple[list[Array], int, int]:
    backend, blocks = get_backend(name), (task.index, task.table, task.stream)
    xp = backend.array
    _, triangles, wedges = backend.support(task, kernel)
    sums = {id(block): xp.zeros(block.edges, dtype="float64") for block in blocks}
    if triangles:
        corners = backend.listing(task, triangles).astype("int64")
        u, v, w = (xp.ascontiguousarray(corners[:, corner]) for corner in range(3))
        del corners
        ids = task.index.row_ids(u), task.index.column_ids(v), task.table.column_ids(w)
        edges = (task.index, u, v, ids[2]), (task.table, u, w, ids[1]), (task.stream, v, w, ids[0])
        for block, rows, columns, opposite in edges:
            places = _places(block, rows << SHIFT | columns, name)
            sums[id(block)] += xp.bincount(places, weights=weights.take(opposite), minlength=block.edges)
    return [sums[id(block)] for block in blocks], triangles, wedges


def _places(block: OrientedCSR, keys: Array, backend: str) -> Array:
    """Bisect for the places of a block's edges, given as row << 32 | column."""
    rows = get_backend(backend).peel.rows(block).astype("int64")
    rows <<= SHIFT
    rows |= block.columns
    return rows.searchsorted(keys)
