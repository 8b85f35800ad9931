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
Corners = tuple[Array, Array, Array]
SHIFT = 32
DEVICE_BYTES = 40
"""Bytes an edge of a block beside it on a device: its key, its place's sum, and what makes them."""


def weighted_support(task: BlockTask, weights: Corners, backend: str, kernel: str) -> tuple[list[Array], int, int]:
    """Add up, for each edge, the weights of the vertices opposite to it in a task's triangles.

    Parameters
    ----------
    task : BlockTask
    weights : three arrays of float64
        Of the rows of the index, of its columns, and of the columns of the table.
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

    return weighted_support.support(task, weights)


def _of_list(task: BlockTask, weights: Corners, name: str, kernel: str) -> tuple[list[Array], int, int]:
    backend, blocks = get_backend(name), (task.index, task.table, task.stream)
    xp = backend.array
    _, triangles, wedges = backend.support(task, kernel)
    sums = {id(block): xp.zeros(block.edges, dtype="float64") for block in blocks}
    if triangles:
        corners = backend.listing(task, triangles).astype("int64")
        u, v, w = (xp.ascontiguousarray(corners[:, corner]) for corner in range(3))
        del corners
        of_u, of_v, of_w = (of_ends.take(ends) for of_ends, ends in zip(weights, (u, v, w), strict=True))
        edges = (task.index, u, v, of_w), (task.table, u, w, of_v), (task.stream, v, w, of_u)
        for block, rows, columns, opposite in edges:
            places = _places(block, rows << SHIFT | columns, name)
            sums[id(block)] += xp.bincount(places, weights=opposite, minlength=block.edges)
    return [sums[id(block)] for block in blocks], triangles, wedges


def _places(block: OrientedCSR, keys: Array, backend: str) -> Array:
    """Bisect for the places of a block's edges, given as row << 32 | column."""
    rows = get_backend(backend).peel.rows(block).astype("int64")
    rows <<= SHIFT
    rows |= block.columns
    return rows.searchsorted(keys)
