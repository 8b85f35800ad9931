"""Binary search as in LSTC and TC-Stream: lists are searched whole, and none is cut at v.

`lstc` (Tamboli and Jatala, ICPE 2026, section 4.4, algorithm 3): vertex by vertex. The list of u is taken in tiles of
TILE entries; for each tile every stream row of u is streamed, and each of its entries is searched in the tile.

`tcstream` (Huang et al., TPDS 2022, section 4.2): edge by edge; every entry of the shorter list is searched in the
longer one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.intersect import Triple, counting, last_not_above, length, wedges_of
from dasktc.backends.cpu.jit import Counts, Kernel, inlined
from dasktc.backends.cpu.sizes import TILE
from dasktc.backends.csr import Array

__all__ = ["count_lstc", "count_tcstream"]

U = np.uint64


@inlined
def _among(short: Array, i: Any, i_end: Any, long: Array, base: Any, end: Any) -> Any:
    """Count the entries of `short` that occur in `long`, by bisection."""
    common = 0
    for p in range(U(i), U(i_end)):
        common += long[U(last_not_above(long, base, end, short[p]))] == short[p]
    return common


@counting
@Kernel
def count_lstc(t: Triple) -> Counts:
    """Count a task with `lstc`."""
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, _, _ = t
    triangles = wedges = probes = 0
    for u in range(begin, end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        for tile in range(table[u], table[u + 1], TILE):
            tile_end = min(tile + TILE, table[u + 1])
            for p in range(index[u], index[u + 1]):
                v = index_columns[p]
                triangles += _among(stream_columns, stream[v], stream[v + 1], table_columns, tile, tile_end)
                probes += length(stream, v)
    return triangles, wedges, probes, 0


@counting
@Kernel
def count_tcstream(t: Triple) -> Counts:
    """Count a task with `tcstream`."""
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, _, _ = t
    triangles = wedges = probes = 0
    for u in range(begin, end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        first, last, size = table[u], table[u + 1], length(table, u)
        for p in range(index[u], index[u + 1]):
            v = index_columns[p]
            row, row_end, entries = stream[v], stream[v + 1], length(stream, v)
            if size == 0 or entries == 0:
                continue
            if size <= entries:
                triangles += _among(table_columns, first, last, stream_columns, row, row_end)
            else:
                triangles += _among(stream_columns, row, row_end, table_columns, first, last)
            probes += min(size, entries)
    return triangles, wedges, probes, 0
