"""Tests sampled wedges for a closing edge on a device: the launch of kernels/wedges.cu."""

from __future__ import annotations

import numpy as np

from dasktc.backends.csr import BlockTask
from dasktc.backends.cuda import block_cache
from dasktc.backends.cuda.device import Device, describe, spread
from dasktc.backends.wedge_sample import Strata

__all__ = ["closed"]


def closed(device: Device, task: BlockTask, strata: Strata) -> tuple[int, int]:
    """Test the sampled wedges of a triple; as `backends.cpu.wedges.closed`."""
    block_cache.forget()
    xp, rows = device.array, task.index.rows
    if not (rows and task.index.edges and task.table.edges and strata.end > strata.first):
        return 0, 0
    ends = xp.diff(task.index.offsets)
    ends *= ends - 1 if strata.one else xp.diff(task.table.offsets)[:rows]
    if strata.one:
        ends >>= 1
    ends, totals = xp.cumsum(ends), xp.zeros(4, dtype="uint64")
    numbers = (np.int64(number) for number in (rows, strata.first, strata.end, strata.before, strata.width))
    values = (describe(device, task), ends, *numbers, np.uint64(strata.key), np.int64(strata.one), totals)
    spread(device, "wedges", "wedges_closed", (), strata.end - strata.first, *values)
    triangles, wedges, _, _ = totals.tolist()
    return int(wedges), int(triangles)
