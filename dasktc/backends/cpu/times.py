"""Counts the triangles of a task by the times of their edges: how long the first two, and all three, are apart.

The bits and the times of row u's table entries are set, and every stream row is streamed against the bits, as in
`visit`. Common entries are first noted, without a branch on the data; each is a triangle. Of its times t1 <= t2 <= t3
the opening time t2 - t1 and the closing time t3 - t1 are unsigned, for they may need all 64 bits. Their bit lengths
select a counter.
"""

# CPU seconds on one core, Kronecker graph of scale 18 with random times, 83 M triangles; least of several turns beside
# other work, in which the triangles by labels took 0.8
#                                                        predicted  measured  learnt
# every stream row against the places of row u's entries       1.4       2.2  659 M entries, 1.2 ns each
# against bits, row u's times in a dense vector                1.2       2.0  15 ns a triangle: without a branch, but
#                                                                             the times are in no near cache
# times of the stream row prefetched 12 triangles ahead       less       1.9  no gain beyond the noise
# the shorter list, edges grouped by v (`edge_values`)         1.0       1.8  0.34 beside 0.24 at scale 16; 12 bytes for
#                                                                             each deferred edge, and two more kernels
# both lists walked in step                                    3.0       5.1
# bits, bit lengths by the exponent of a float64                 -       3.9  the conversion of unsigned numbers is slow

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.edge_values import common_entries, set_entries
from dasktc.backends.cpu.hub import clear
from dasktc.backends.cpu.hub_tables import forget
from dasktc.backends.cpu.instructions import bit_length
from dasktc.backends.cpu.intersect import Triple, columns_end, frozen, length, longest_row, triple, wedges_of
from dasktc.backends.cpu.jit import ConstInt64s, Int64s, Kernel, Word, Words, inlined
from dasktc.backends.csr import Array, BlockTask

__all__ = ["BINS", "time_counts"]

BINS = 65
"""Bit lengths of times: 0, and those of each power of two below 2^64."""
COPIES = 4
"""Histograms used in turn, because increments of the same counter wait for each other."""

U = np.uint64
Times = tuple[Array, Array, Array]


@inlined
def _count(a: Any, b: Any, c: Any, window: Any, histogram: Any, counts: Array) -> Any:
    """Count one triangle by its times; return whether these lie within the window."""
    low, high = min(a, b), max(a, b)
    first, second, third = U(min(low, c)), U(min(max(low, c), high)), U(max(high, c))
    opening, closing = second - first, third - first
    counts[(histogram * U(BINS) + bit_length(opening)) * U(BINS) + bit_length(closing)] += 1
    return closing <= window


@Kernel
def by_times(
    t: Triple,
    of_index: ConstInt64s,
    of_table: ConstInt64s,
    of_stream: ConstInt64s,
    window: Word,
    bits: Words,
    row_times: Int64s,
    places: Int64s,
    counts: Int64s,
) -> tuple[int, int]:
    index, index_columns, table, table_columns = t.index, t.index_columns, t.table, t.table_columns
    stream, stream_columns = t.stream, t.stream_columns
    window_count = wedges = 0
    for u in range(t.begin, t.end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        if length(index, u) == 0 or length(table, u) == 0:
            continue
        # Row u's bits and times serve all of its edges; each entry that it shares with a stream row is a triangle.
        set_entries(bits, row_times, table_columns, of_table, table[u], table[u + 1])
        for p in range(U(index[u]), U(index[u + 1])):
            v, time = U(index_columns[p]), of_index[p]
            count = common_entries(bits, stream_columns, stream[v], stream[v + U(1)], places)
            for k in range(count):
                q = U(places[k])
                w = U(stream_columns[q])
                window_count += _count(time, row_times[w], of_stream[q], window, k & U(COPIES - 1), counts)
        clear(bits, table_columns, table[u], table[u + 1])
    return window_count, wedges


def time_counts(task: BlockTask, times: Times, window: int) -> tuple[Array, int, int]:
    """Count the triangles of a task by the times t1 <= t2 <= t3 of their edges.

    Parameters
    ----------
    task : BlockTask
    times : tuple of three arrays of int64
        The time of each edge, aligned with the columns of index, table and stream.
    window : int
        Largest t3 - t1 of the triangles within the window, below 2^64.

    Returns
    -------
    counts : array of int64, shape (BINS, BINS)
        Triangles by the bit lengths of t2 - t1 and of t3 - t1.
    window_count : int
        Triangles within the window.
    wedges : int
        As in `TaskCount`.
    """
    forget()
    t, width = triple(task), columns_end(task)
    of_index, of_table, of_stream = (frozen(of_block, np.int64) for of_block in times)
    # bits and times of a row's columns, and places of the entries that two rows have in common
    bits, row_times = np.zeros((width >> 6) + 1, np.uint64), np.zeros(width, np.int64)
    places = np.empty(longest_row(t.stream) + 1, np.int64)
    counts = np.zeros((COPIES, BINS, BINS), np.int64)
    window_count, wedges = by_times(
        t, of_index, of_table, of_stream, U(window), bits, row_times, places, counts.ravel()
    )
    return counts.sum(axis=0), int(window_count), int(wedges)
