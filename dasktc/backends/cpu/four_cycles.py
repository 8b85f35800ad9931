"""Counts the cycles of four vertices from full adjacency lists, in shares of the vertices.

As in `backends.cpu.squares`, a cycle is found at its smallest id u: for every neighbour v above u, and every neighbour
w of v above u, a counter of w counts these v, and c of them make c·(c - 1)/2 cycles.
"""

from __future__ import annotations

import numpy as np

from dasktc.backends.cpu.jit import ConstInt32s, ConstInt64s, Int32s, Kernel
from dasktc.backends.csr import Array

__all__ = ["four_cycles"]

U = np.uint64


@Kernel
def _four_cycles(
    offsets: ConstInt64s, columns: ConstInt32s, split: int, splits: int, counters: Int32s, vertices: Int32s
) -> int:
    cycles = 0
    for u in range(split, len(offsets) - 1, splits):
        reach = 0
        p = offsets[U(u) + U(1)] - 1
        while p >= offsets[U(u)] and columns[U(p)] > u:
            v = U(columns[U(p)])
            q = offsets[v + U(1)] - 1
            while q >= offsets[v] and columns[U(q)] > u:
                w = columns[U(q)]
                vertices[U(reach)] = w
                reach += counters[U(w)] == 0
                cycles += counters[U(w)]
                counters[U(w)] += 1
                q -= 1
            p -= 1
        for k in range(U(reach)):
            counters[U(vertices[k])] = 0
    return cycles


def four_cycles(offsets: Array, columns: Array, split: int, splits: int) -> int:
    """Count the cycles of four vertices whose smallest id is `split` modulo `splits`.

    Offsets and columns are full adjacency lists, as `squares.adjacency` returns them. Where id 0 has the highest
    degree, this takes at most Σ min(d(u), d(v)) over edges. The caller ensures that the number does not overflow.
    """
    vertices = len(offsets) - 1
    counters, reached_vertices = np.zeros(vertices, np.int32), np.empty(vertices + 1, np.int32)
    return int(_four_cycles(offsets, columns, split, splits, counters, reached_vertices))
