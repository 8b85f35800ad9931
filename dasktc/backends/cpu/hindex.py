"""H-INDEX: for every edge the shorter list is hashed, and the longer one is streamed against the table.

H-INDEX (Pandey et al., HPEC 2019, section III) works edge by edge; lists need not be sorted, and none is cut. The
shorter of table.row(u) and stream.row(v) of an edge (u, v) goes into interleaved buckets, as in `trust`, and the
longer is streamed. Hashing the shorter list keeps collisions rare (figure 3 of the paper).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.intersect import Triple, contains, insert, length, longest_row, triple, wedges_of
from dasktc.backends.cpu.jit import Counts, Kernel, compiles, inlined
from dasktc.backends.cpu.sizes import LARGE, SMALL, bucket_depth
from dasktc.backends.csr import Array, BlockTask
from dasktc.backends.kernel import SMALL_ROW

__all__ = ["count_hindex"]

U = np.uint64


@inlined
def _hashed(slots: Array, fill: Array, buckets: Any, depth: Any, columns: Array, first: Any, last: Any) -> Any:
    """Hash a list into empty buckets; return the length of the longest bucket."""
    collision = 0
    for p in range(U(first), U(last)):
        collision = max(collision, insert(slots, fill, buckets, depth, columns[p]))
    return collision


@inlined
def _streamed(slots: Array, fill: Array, buckets: Any, depth: Any, columns: Array, first: Any, last: Any) -> Any:
    """Count the entries of a list that are in the hash table."""
    common = 0
    for p in range(U(first), U(last)):
        common += contains(slots, fill, buckets, depth, columns[p])
    return common


@Kernel
def _hindex(t: Triple, depth: int) -> Counts:
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, _, _ = t
    triangles = wedges = probes = collision = 0
    slots = np.empty(depth * LARGE, np.int32)
    fill = np.zeros(LARGE, np.int32)
    for u in range(begin, end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        first, last, size = table[u], table[u + 1], length(table, u)
        for p in range(index[u], index[u + 1]):
            v = index_columns[p]
            row, row_end, entries = stream[v], stream[v + 1], length(stream, v)
            if size == 0 or entries == 0:
                continue
            # The shorter list is hashed, into few buckets where it is short; the longer one is looked up.
            buckets = U(SMALL) if min(size, entries) <= SMALL_ROW else U(LARGE)
            fill[:buckets] = 0
            if size <= entries:
                collision = max(collision, _hashed(slots, fill, buckets, depth, table_columns, first, last))
                triangles += _streamed(slots, fill, buckets, depth, stream_columns, row, row_end)
            else:
                collision = max(collision, _hashed(slots, fill, buckets, depth, stream_columns, row, row_end))
                triangles += _streamed(slots, fill, buckets, depth, table_columns, first, last)
            probes += max(size, entries)
    return triangles, wedges, probes, collision


@compiles(_hindex)
def count_hindex(task: BlockTask) -> Counts:
    """Count a task with `hindex`."""
    t = triple(task)
    return _hindex(t, bucket_depth(min(longest_row(t.table), longest_row(t.stream))))
