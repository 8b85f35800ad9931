"""The simplest CPU kernel: for every edge two lists are walked in step.

For an index edge (u, v) let A be the entries of table.row(u) before v (all of them if the blocks are unordered), and
B = stream.row(v). Each entry that both have closes a triangle.

    probes(u, v) = |A| + |B|; 0 if either is empty
"""

from __future__ import annotations

from dasktc.backends.cpu.intersect import Triple, before, counting, merged
from dasktc.backends.cpu.jit import Counts, Kernel

__all__ = ["count"]


@counting
@Kernel
def count(t: Triple) -> Counts:
    """Count a task: its triangles, wedges and probes; the last number, of hash buckets, is 0."""
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, _, shift = t
    triangles = wedges = probes = 0
    for u in range(begin, end):
        for p in range(index[u], index[u + 1]):
            v = index_columns[p]
            a, a_end = table[u], before(table_columns, table[u], table[u + 1], v + shift)
            b, b_end = stream[v], stream[v + 1]
            wedges += b_end - b
            if a < a_end and b < b_end:
                triangles += merged(table_columns, a, a_end, stream_columns, b, b_end)
                probes += a_end - a + b_end - b
    return triangles, wedges, probes, 0
