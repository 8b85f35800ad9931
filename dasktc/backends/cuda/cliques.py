"""Cliques of 3 to 5 vertices on a device: the launch of kernels/cliques.cu."""

from __future__ import annotations

import numpy as np

from dasktc.backends.csr import BlockTask
from dasktc.backends.cuda import block_cache
from dasktc.backends.cuda.device import Device, describe
from dasktc.backends.kernel_files import macros

__all__ = ["count", "scratch_bytes"]

BLOCKS = 4
"""Thread blocks per multiprocessor, each with the bit matrix of one row."""
SCRATCH = 1 << 30
"""Bytes of all thread blocks' bit matrices, unless a single row's takes more."""


def scratch_bytes(longest: int) -> int:
    """Upper bound of the bytes that `count` allocates, from the number of entries of the longest row."""
    return max(SCRATCH, _row_bytes(longest)) + (1 << 12)


def _row_bytes(longest: int) -> int:
    return 8 * longest * -(-longest // 64)


def count(device: Device, task: BlockTask, size: int) -> tuple[int, int, int]:
    """Count the cliques of `size` vertices, as `backends.cpu.cliques.count`; all rows are counted."""
    block_cache.forget()
    xp, block = device.array, task.index
    if not block.edges:
        return 0, 0, 0
    longest = int(xp.diff(block.offsets).max())
    grid = max(1, min(BLOCKS * device.processors, block.rows, SCRATCH // _row_bytes(longest)))
    bits = xp.empty(grid * _row_bytes(longest) // 8, dtype="uint64")
    next_row, totals = xp.zeros(1, dtype="uint64"), xp.zeros(4, dtype="uint64")
    numbers = (np.int64(number) for number in (block.rows, size, block.ordered, longest))
    values = (describe(device, task), *numbers, bits, next_row, totals)
    device.launch("cliques", "cliques_rows", (), grid, macros("cliques")["BLOCK"], values)
    cliques, wedges, work, _ = totals.tolist()
    return int(cliques), int(work), int(wedges)
