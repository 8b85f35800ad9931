"""Visits the triangles of a counting task on a device, as `cpu.visit` does on the CPU; see kernels/visit.cu."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from dasktc.backends.cpu.splits import groups, share_of
from dasktc.backends.csr import Array, BlockTask, OrientedCSR, Places
from dasktc.backends.cuda import block_cache
from dasktc.backends.cuda.device import Device, describe, spread
from dasktc.backends.cuda.sizes import ENDS

__all__ = ["add_ends", "batches", "listing", "support"]


def support(device: Device, task: BlockTask) -> tuple[list[Array], int, int]:
    """Count the triangles of each edge of a task on the device; as `backends.cpu.visit.support`."""
    block_cache.forget()
    supports = task.zero_supports(device.array)
    triangles, wedges = _visit(device, task, "visit_support", *supports)
    return supports, triangles, wedges


def listing(device: Device, task: BlockTask, limit: int) -> Array:
    """List the first triangles of a task on the device, row by row; the same ones as `backends.cpu.visit.listing`."""
    xp, batch = device.array, next(batches(device, task, max(1, limit)))
    result = xp.empty((min(limit, len(batch.row)), 3), dtype="int32")
    corners = batch.row, task.index.columns.take(batch.uv), task.table.columns.take(batch.uw)
    for number, corner in enumerate(corners):
        result[:, number] = corner[: len(result)]
    return result


def batches(device: Device, task: BlockTask, size: int) -> Iterator[Places]:
    """Yield every triangle of a task once, in new arrays on the device, `size` at a time; as `cpu.batches.batches`.

    The triangles of every edge are counted first; the running sums of these numbers tell which edges a batch is of.
    """
    block_cache.forget()
    xp, share = device.array, share_of(task, device.array)
    triangles = wedges = 0
    if share.rows and task.index.edges:
        _, group_ends = groups(share, task.index.offsets, xp)
        group_starts = xp.zeros(len(group_ends) + 1, dtype="int64")
        group_starts[1:] = group_ends
        counts = xp.zeros(int(group_ends[-1]), dtype="uint32")
        triangles, wedges = _visit(device, task, "visit_edges", group_starts, counts)
        ends = xp.cumsum(counts, dtype="int64")
        del counts
    if not triangles:
        yield _places(xp, 0, wedges)
        return
    fields, number = describe(device, task), np.int64(len(group_ends))
    for first in range(0, triangles, size):
        places = _places(xp, min(size, triangles - first), wedges)
        borders = xp.asarray([first, first + len(places.row) - 1], dtype="int64")
        begin, last = ends.searchsorted(borders, side="right").tolist()
        span = np.int64(begin), np.int64(last + 1), np.int64(first), np.int64(len(places.row))
        values = (fields, group_starts, number, ends, *span, *places[:4])
        spread(device, "visit", "visit_places", (), last + 1 - begin, *values)
        yield places
        wedges = 0


def _places(xp: ModuleType, size: int, wedges: int) -> Places:
    """Allocate the arrays of a batch."""
    uv, uw, vw = (xp.empty(size, dtype="int64") for _ in range(3))
    return Places(xp.empty(size, dtype="int32"), uv, uw, vw, wedges)


def _visit(device: Device, task: BlockTask, entry: str, *values: Any) -> tuple[int, int]:
    """Run an entry point, and return the triangles and wedges that it found."""
    fields, totals = describe(device, task), device.array.zeros(4, dtype="uint64")
    rows = int(fields["rows"][0])
    if rows and task.index.edges:
        spread(device, "visit", entry, (), rows, fields, *values, totals)
    triangles, wedges, _, _ = totals.tolist()
    return int(triangles), int(wedges)


def add_ends(
    xp: ModuleType, block: OrientedCSR, values: Array, at_row: Array, at_column: Array, step: int = ENDS
) -> None:
    """Add the value of each edge, not negative, to both of its ends, `step` at a time; as `cpu.visit.add_ends`."""
    for start in range(0, block.edges, step):
        stop = min(start + step, block.edges)
        rows = block.offsets.searchsorted(xp.arange(start, stop, dtype="int64"), side="right") - 1
        amounts = values[start:stop].astype("uint64")  # CuPy's add.at needs unsigned numbers
        xp.add.at(at_row.view("uint64"), rows, amounts)
        xp.add.at(at_column.view("uint64"), block.columns[start:stop], amounts)
