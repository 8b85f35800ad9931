"""Visits the triangles of a counting task on a device, as `cpu.visit` does on the CPU; see kernels/visit.cu."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from dasktc.backends.cpu.splits import groups, share_of
from dasktc.backends.csr import Array, BlockTask, OrientedCSR
from dasktc.backends.cuda import block_cache as kept
from dasktc.backends.cuda.device import Device, describe, spread
from dasktc.backends.cuda.sizes import ENDS

__all__ = ["add_ends", "listing", "support"]


def support(device: Device, task: BlockTask) -> tuple[list[Array], int, int]:
    """Count the triangles of each edge of a task on the device; as `backends.cpu.visit.support`."""
    kept.forget()
    supports = task.zero_supports(device.array)
    triangles, wedges = _visit(device, task, "visit_support", *supports)
    return supports, triangles, wedges


def listing(device: Device, task: BlockTask, limit: int) -> Array:
    """List the first triangles of a task on the device, row by row; the same ones as `backends.cpu.visit.listing`."""
    kept.forget()
    xp, share = device.array, share_of(task, device.array)
    if share.rows == 0:
        return xp.zeros((0, 3), dtype="int32")
    _, groups_ends = groups(share, task.index.offsets, xp)
    counts = xp.zeros(int(groups_ends[-1]), dtype="uint32")
    size = min(limit, _visit(device, task, "visit_edges", groups_ends, counts)[0])
    listed = xp.empty(3 * size, dtype="int32")
    if size:
        ends = xp.cumsum(counts, dtype="int64")
        _visit(device, task, "visit_list", groups_ends, ends, np.int64(size), listed)
    return listed.reshape(size, 3)


def _visit(device: Device, task: BlockTask, entry: str, *values: Any) -> tuple[int, int]:
    """Run an entry point, and return the triangles and wedges that it found."""
    fields, totals = describe(device, task), device.array.zeros(4, dtype="uint64")
    rows = int(fields["rows"][0])
    if rows and task.index.edges:
        spread(device, "visit", entry, (), rows, fields, *values, totals)
    triangles, wedges, _, _ = totals.tolist()
    return int(triangles), int(wedges)


def add_ends(xp: ModuleType, block: OrientedCSR, values: Array, at_row: Array, at_column: Array) -> None:
    """Add the value of each edge, not negative, to both of its ends; as `cpu.visit.add_ends`."""
    for start in range(0, block.edges, ENDS):
        stop = min(start + ENDS, block.edges)
        rows = block.offsets.searchsorted(xp.arange(start, stop, dtype="int64"), side="right") - 1
        more = values[start:stop].astype("uint64")  # CuPy's add.at needs unsigned numbers
        xp.add.at(at_row.view("uint64"), rows, more)
        xp.add.at(at_column.view("uint64"), block.columns[start:stop], more)
