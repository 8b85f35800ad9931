"""The launches of `trust`: see kernels/trust.cu."""

from __future__ import annotations

import numpy as np

from dasktc.backend.device import Launch

__all__ = ["TRUST", "scratch_bytes", "trust"]

TRUST = {
    "VH": 1, "CO": 1, "VC": 1, "CHUNK": 1, "LEVELS": 6, "THREADS": 1024, "LANES": 32, "COPIES": 256, "STEPS": 2,
}  # fmt: skip
"""Macros of the `trust` kernel."""
PHYSICAL = 2
"""VC of lists that are copied."""
TRUST_BYTES = 512 << 20
"""Scratch of the `trust` kernel's tables (section 3.1), unless one table alone is larger."""
DEPTH = 128
"""Entries that a bucket of the `trust` kernel holds, at least (section 3.2)."""
BUCKETS = 1024
"""Buckets of a thread block's table; together as many in its warps' tables of SMALL_BUCKETS."""
SMALL_BUCKETS = 32


def trust(launch: Launch) -> None:
    """Sort the rows by team, then count them.

    Parameters
    ----------
    launch : Launch
    """
    shape, xp = launch.shape, launch.device.array
    rows = xp.empty(int(launch.given["rows"][0]), dtype="uint32")
    lists = xp.zeros(6, dtype="uint32")
    launch.spread("trust_rows", len(rows), rows, lists, launch.totals)
    by_warp, by_block, _, _, longest, _ = (int(number) for number in lists.tolist())
    buckets = BUCKETS if shape["CO"] else SMALL_BUCKETS
    deepest = max(DEPTH, -(-2 * longest // buckets))
    threads, shared = shape["THREADS"], _shared_bytes(shape)
    work = [("trust_block", by_block, deepest)]
    work += [("trust_warp", -(-32 * by_warp // threads), DEPTH if shape["CO"] else deepest)]
    for entry, blocks, depth in work:
        grid = min(2 * launch.device.processors, blocks, max(1, TRUST_BYTES // _table_bytes(depth)))
        if grid:
            scratch = xp.empty(grid * _table_bytes(depth) // 4, dtype="int32")
            copies = xp.empty(grid * threads * shape["COPIES"] if shape["VC"] == PHYSICAL else 1, dtype="int32")
            values = (rows, lists, scratch, copies, np.uint32(depth), launch.totals)
            launch.run(entry, grid, threads, *values, shared=shared)


def _table_bytes(depth: int) -> int:
    """Scratch of one thread block, the levels in shared memory counted in."""
    return 4 * BUCKETS * depth


def _shared_bytes(shape: dict[str, int]) -> int:
    """Bytes of `struct Shared`."""
    return 4 * BUCKETS * (1 + shape["LEVELS"]) + 16 * shape["THREADS"] + 8


def scratch_bytes(index_edges: int, block_edges: int, columns: int) -> int:
    """Bytes beside a task's blocks, at most.

    Parameters
    ----------
    index_edges, block_edges, columns : int
        As in `Backend`.
    """
    deepest = max(DEPTH, -(-2 * columns // BUCKETS))
    return 4 * columns + max(TRUST_BYTES, _table_bytes(deepest)) + (1 << 12)
