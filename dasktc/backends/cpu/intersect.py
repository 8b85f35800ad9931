"""CPU kernels that intersect sorted rows pair by pair, by hashing, merging or searching.

Each evaluates a block triple: the sum over index edges (u, v) of |table.row(u) ∩ stream.row(v)|.

`trust`: TRUST's vertex-centric hashing (Pandey et al., TPDS 2021, sections 3.1 to 3.3). One table of table.row(u)
serves every v of row u, with 32 buckets for a row of at most 100 entries and 1024 for a longer one, by x % buckets. It
is stored level by level, so that the first entries of all buckets are adjacent. An element whose bucket is full goes to
the next one: nothing is dropped.

`merge`: both lists are walked in step, as in Fox et al. (HPEC 2018), Intersect-Path.

`search`: every element of the shorter list is looked up in the longer by bisection (Fox et al., Par-Search).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

from dasktc.backends.cpu.jit import ConstInt32s, ConstInt64s, Counts, Kernel, compiles, inlined, numba_types
from dasktc.backends.cpu.sizes import LARGE, SMALL, bucket_depth
from dasktc.backends.cpu.splits import rows_of
from dasktc.backends.csr import Array, BlockTask, OrientedCSR
from dasktc.backends.kernel import SMALL_ROW
from dasktc.errors import CountError

__all__ = [
    "TRIPLE", "Triple", "arrays_of", "before", "columns_end", "contains", "count_merge", "count_search", "count_trust",
    "counting", "frozen", "insert", "last_not_above", "length", "longest_row", "merge", "merged", "search", "triple",
    "trust", "wedges_of",
]  # fmt: skip

CHUNK = 1 << 13
"""Rows whose lengths are processed together."""

U = np.uint64  # with an unsigned index Numba need not test whether it is negative


class Triple(NamedTuple):
    """A counting task in the form that kernels take: offsets and columns of each block, and a range of rows.

    The index rows begin to end - 1 are counted. Table entries before v in row u are those below column v + shift.
    `same` says that index and table are one block.
    """

    index: Array
    index_columns: Array
    table: Array
    table_columns: Array
    stream: Array
    stream_columns: Array
    begin: int
    end: int
    same: bool
    shift: int


def triple(task: BlockTask) -> Triple:
    """Convert a task to the kernels' form: read-only views of its blocks' arrays.

    Arrays that are not contiguous, not aligned, or of another type are copied. A table block with fewer rows than the
    index block is refused (CountError).
    """
    index, table, stream = task.index, task.table, task.stream
    if table.rows < index.rows:
        raise CountError(
            f"a counting task's index block has {index.rows} rows and its table block {table.rows}: "
            "they are blocks of different row parts; report this with the command that you ran"
        )
    blocks = (*arrays_of(index), *arrays_of(table), *arrays_of(stream))
    return Triple(*blocks, *rows_of(task), index is table, task.shift)


def arrays_of(block: OrientedCSR) -> tuple[Array, Array]:
    """Read-only views of a block's offsets and columns, as `Triple` has them."""
    return frozen(block.offsets, np.int64), frozen(block.columns, np.int32)


def frozen(array: Array, dtype: Any) -> Array:
    """A read-only view of an array; of a copy if it is not contiguous, not aligned, or of another type."""
    view = np.require(array, dtype, ("C", "A")).view()
    view.flags.writeable = False
    return view


_blocks = tuple(array.__metadata__[0] for array in (ConstInt64s, ConstInt32s)) * 3
TRIPLE = types.NamedTuple((*_blocks, types.int64, types.int64, types.boolean, types.int64), Triple)
"""Numba's type of a Triple."""
numba_types[Triple] = TRIPLE


# Kernels read the arrays out of the Triple once, before any loop: read in a loop, Numba would count references each
# time.


@inlined
def length(offsets: Array, row: Any) -> Any:
    """Number of entries of a row."""
    return offsets[U(row) + U(1)] - offsets[U(row)]


@inlined
def wedges_of(columns: Array, first: Any, last: Any, offsets: Array) -> Any:
    """Sum of the lengths of the rows that a row's entries refer to."""
    wedges = 0
    for p in range(U(first), U(last)):
        wedges += length(offsets, columns[p])
    return wedges


@inlined
def before(columns: Array, position: Any, end: Any, bound: Any) -> Any:
    """The first position from `position` on whose column is at least `bound`, or `end`."""
    while position < end and columns[U(position)] < bound:
        position += 1
    return position


# trust


@inlined
def insert(slots: Array, fill: Array, buckets: Any, depth: Any, x: Any) -> Any:
    """Put x into its bucket, or into the next one with space; return the bucket's new length."""
    bucket = U(x) & (buckets - U(1))
    while fill[bucket] == depth:
        bucket = (bucket + U(1)) & (buckets - U(1))
    slots[U(fill[bucket]) * buckets + bucket] = x
    fill[bucket] += 1
    return fill[bucket]


@inlined
def contains(slots: Array, fill: Array, buckets: Any, depth: Any, x: Any) -> Any:
    """Search x in its bucket, and in the following ones as long as the last was full."""
    bucket = U(x) & (buckets - U(1))
    while True:
        for level in range(U(fill[bucket])):
            if slots[level * buckets + bucket] == x:
                return 1
        if fill[bucket] < depth:
            return 0
        bucket = (bucket + U(1)) & (buckets - U(1))


@Kernel
def trust(t: Triple, depth: int) -> Counts:
    """Count by hashing row u of the table for all edges of row u; a bucket has `depth` entries."""
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, one_block, _ = t
    triangles = wedges = probes = collision = 0
    slots = np.empty(depth * LARGE, np.int32)
    fill = np.zeros(LARGE, np.int32)
    for u in range(begin, end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        degree, size = length(index, u), length(table, u)
        if degree == 0 or size == 0 or (one_block and degree < 2):
            continue
        buckets = U(SMALL) if size <= SMALL_ROW else U(LARGE)
        for p in range(table[u], table[u + 1]):
            collision = max(collision, insert(slots, fill, buckets, depth, table_columns[p]))
        for p in range(index[u], index[u + 1]):
            v = index_columns[p]
            for q in range(U(stream[v]), U(stream[v + 1])):
                triangles += contains(slots, fill, buckets, depth, stream_columns[q])
            probes += length(stream, v)
        fill[:buckets] = 0
    return triangles, wedges, probes, collision


# merge


@inlined
def merged(left: Array, i: Any, i_end: Any, right: Array, j: Any, j_end: Any) -> Any:
    """Count common entries of two lists, without a branch on the data."""
    common = 0
    while i < i_end and j < j_end:
        x, y = left[U(i)], right[U(j)]
        common += x == y
        i += x <= y
        j += y <= x
    return common


@Kernel
def merge(t: Triple) -> Counts:
    """Count by walking both lists of an edge in step."""
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, _, shift = t
    triangles = wedges = probes = 0
    for u in range(begin, end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        first, last = table[u], table[u + 1]
        cut = first
        for p in range(index[u], index[u + 1]):
            v = index_columns[p]
            cut = before(table_columns, cut, last, v + shift)
            row, row_end = stream[v], stream[v + 1]
            if first < cut and row < row_end:
                triangles += merged(table_columns, first, cut, stream_columns, row, row_end)
                probes += cut - first + row_end - row
    return triangles, wedges, probes, 0


# search


@inlined
def last_not_above(columns: Array, base: Any, end: Any, x: Any) -> Any:
    """The last of the ascending columns from base to end that does not exceed x; the first column where all do."""
    span = end - base
    while span > 1:
        half = span >> 1
        base = base + half if columns[U(base + half)] <= x else base
        span -= half
    return base


@inlined
def _searched(short: Array, i: Any, i_end: Any, long: Array, base: Any, j_end: Any) -> Any:
    """Count entries of `short` that occur in `long`, by bisection, each starting where the last one ended."""
    common = 0
    for p in range(U(i), U(i_end)):
        base = last_not_above(long, base, j_end, short[p])
        common += long[U(base)] == short[p]
    return common


@Kernel
def search(t: Triple) -> Counts:
    """Count by bisecting the longer list of an edge for the entries of the shorter one."""
    index, index_columns, table, table_columns, stream, stream_columns, begin, end, _, shift = t
    triangles = wedges = probes = 0
    for u in range(begin, end):
        wedges += wedges_of(index_columns, index[u], index[u + 1], stream)
        first, last = table[u], table[u + 1]
        cut = first
        for p in range(index[u], index[u + 1]):
            v = index_columns[p]
            cut = before(table_columns, cut, last, v + shift)
            row, row_end = stream[v], stream[v + 1]
            if first == cut or row == row_end:
                continue
            if cut - first <= row_end - row:
                triangles += _searched(table_columns, first, cut, stream_columns, row, row_end)
            else:
                triangles += _searched(stream_columns, row, row_end, table_columns, first, cut)
            probes += min(cut - first, row_end - row)
    return triangles, wedges, probes, 0


@compiles(trust)
def count_trust(task: BlockTask) -> Counts:
    """Count a task with `trust`."""
    t = triple(task)
    return trust(t, bucket_depth(longest_row(t.table)))


def counting(kernel: Kernel[Counts]) -> Callable[[BlockTask], Counts]:
    """Make the function that counts a task with a kernel that takes the triple alone."""

    @compiles(kernel)
    def count(task: BlockTask) -> Counts:
        return kernel(triple(task))

    return count


count_merge, count_search = counting(merge), counting(search)


def columns_end(task: BlockTask) -> int:
    """One more than the largest column of the table and stream blocks; 0 where they have no edges."""
    return 1 + max(int(block.columns.max(initial=-1)) for block in (task.table, task.stream))


def longest_row(offsets: Array) -> int:
    """Number of entries of the longest row; chunked, as the memory plan allows no temporary as long as the block."""
    firsts = range(0, len(offsets) - 1, CHUNK)
    return max((int(np.diff(offsets[first : first + CHUNK + 1]).max()) for first in firsts), default=0)
