"""Tests sampled wedges for a closing edge on a device: the launch of kernels/wedges.cu."""

from __future__ import annotations

import numpy as np

from dasktc.backends.csr import BlockTask
from dasktc.backends.cuda import block_cache as kept
from dasktc.backends.cuda.device import Device, describe, spread
from dasktc.backends.wedge_sample import Strata

__all__ = ["closed"]


def closed(device: Device, task: BlockTask, of: Strata) -> tuple[int, int]:
    """Test the sampled wedges of a triple; as `backends.cpu.wedges.closed`."""
    kept.forget()
    xp, rows = device.array, task.index.rows
    if not (rows and task.index.edges and task.table.edges and of.end > of.first):
        return 0, 0
    ends = xp.diff(task.index.offsets)
    ends *= ends - 1 if of.one else xp.diff(task.table.offsets)[:rows]
    if of.one:
        ends >>= 1
    ends, totals = xp.cumsum(ends), xp.zeros(4, dtype="uint64")
    numbers = (np.int64(number) for number in (rows, of.first, of.end, of.before, of.width))
    values = (describe(device, task), ends, *numbers, np.uint64(of.key), np.int64(of.one), totals)
    spread(device, "wedges", "wedges_closed", (), of.end - of.first, *values)
    triangles, wedges, _, _ = totals.tolist()
    return int(wedges), int(triangles)
