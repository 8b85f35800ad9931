"""Facts of a block and of vertex vectors that were read from a file, in compiled passes without the GIL.

The definitions are those of `backends.block_facts.ArrayFacts`, which a device uses. A slab of columns is looked
at while it is in the cache of the thread that read it, at 20 GB/s; its CRC-32 takes 4 GB/s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dasktc.backends import host_threads
from dasktc.backends.block_facts import WORD, ColumnFacts, Hash, RowFacts, VertexFacts
from dasktc.backends.cpu.jit import ConstInt32s, ConstInt64s, Kernel, Word, inlined
from dasktc.backends.csr import Array

__all__ = ["CpuBlockFacts"]

U, W = np.uint64, np.uint32
HALF, LOWER = U(32), U((1 << 32) - 1)
LOW = (1 << 20) - 1


@inlined
def _mixed(x: Any) -> Any:
    high = x >> HALF
    return ((x ^ high) & LOWER) * high


@Kernel
def _columns(columns: ConstInt32s, scale: Word, start: Word) -> tuple[Any, Any]:
    descents, total = np.int64(0), U(0)
    for i in range(1, len(columns)):  # two loops, because the compiler vectorizes each of them
        descents += columns[i] <= columns[i - 1]
    for i in range(len(columns)):
        total += _mixed(U(W(columns[i])) * scale + start)
    return descents, total


@Kernel
def _rows(
    offsets: ConstInt64s,
    columns: ConstInt32s,
    first: int,
    end: int,
    scale: Word,
    start: Word,
    width: int,
    stride: int,
    column_lead: int,
) -> tuple[Any, Any, Any, Any, Any]:
    wrong, descents, outside, upper, total = 0, 0, 0, 0, U(0)
    for row in range(first, end):
        begin, stop = offsets[row], offsets[row + 1]
        if begin < 0 or begin > stop or stop > len(columns):
            wrong += 1
        elif begin < stop:
            if begin > 0:
                descents += columns[begin] <= columns[begin - 1]
            outside += columns[begin] < 0 or columns[stop - 1] >= width
            upper += (row - columns[stop - 1]) * stride <= column_lead
            total += U(stop - begin) * _mixed(U(row) * scale + start)
    return wrong, descents, outside, upper, total


@Kernel
def _pairs(offsets: ConstInt64s, columns: ConstInt32s, scale: Word, start: Word, of_columns: Word, behind: Word) -> Any:
    total = U(0)
    for row in range(len(offsets) - 1):
        of_row = _mixed(U(row) * scale + start) + behind
        for p in range(U(offsets[row]), U(offsets[row + 1])):
            total += _mixed(U(W(columns[p])) * of_columns + of_row)
    return total


@Kernel
def _vertices(
    order: ConstInt32s, outward: ConstInt32s, inward: ConstInt32s, first: int, scale: Word, start: Word
) -> tuple[Any, Any, Any, Any, Any, Any]:
    sources, targets, dense, ids = U(0), U(0), U(0), U(0)
    high, low = np.int64(0), np.int64(0)
    for i in range(len(order)):
        of_id = _mixed(U(first + i) * scale + start)
        out_degree, in_degree = np.int64(outward[i]), np.int64(inward[i])
        sources += U(out_degree) * of_id
        targets += U(in_degree) * of_id
        ids += of_id
        dense += _mixed(U(W(order[i])) * scale + start)
        high += in_degree * (out_degree >> 20)
        low += in_degree * (out_degree & LOW)
    return sources, targets, dense, ids, high, low


class CpuBlockFacts:
    """Computes facts in compiled passes; implements `protocol.BlockFacts`."""

    step = 1 << 20

    def facts_of_file(self, read: Callable[[Callable[[Array], None]], Array], by: Hash) -> tuple[Array, ColumnFacts]:
        """Read columns with `read`, and return them with their facts; the threads that read them look at each slab."""
        facts: list[ColumnFacts] = []

        def look(slab: Array) -> None:
            facts.append(self.column_facts(slab, by))

        columns = read(look)
        step = host_threads.SLAB // columns.itemsize
        seams = int((columns[step::step] <= columns[step - 1 : len(columns) - 1 : step]).sum())
        descents, totals = (sum(getattr(of, name) for of in facts) for name in ("descents", "total"))
        return columns, ColumnFacts(descents + seams, totals % WORD)

    def column_facts(self, columns: Array, by: Hash) -> ColumnFacts:
        """Facts of consecutive columns, or of any other ids."""
        return ColumnFacts(*map(int, _columns(columns, U(by.scale), U(by.start))))

    def row_facts(
        self,
        offsets: Array,
        columns: Array,
        first: int,
        end: int,
        by: Hash,
        width: int,
        stride: int,
        behind: int | None,
    ) -> RowFacts:
        """Facts of the rows `first` to `end`."""
        previous = -(1 << 62) if behind is None else behind
        hashing = U(by.scale), U(by.start)
        return RowFacts(*map(int, _rows(offsets, columns, first, end, *hashing, width, stride, previous)))

    def pair_total(self, offsets: Array, columns: Array, rows: Hash, column: Hash) -> int:
        """Sum of the hashes of a block's edges."""
        factors = (rows.scale, rows.start, column.scale, column.start)
        return int(_pairs(offsets, columns, *map(U, factors)))

    def vertex_facts(self, order: Array, outward: Array, inward: Array, first: int, by: Hash) -> VertexFacts:
        """Facts of entries of vertex vectors, from vertex `first` on."""
        facts = _vertices(order, outward, inward, first, U(by.scale), U(by.start))
        sources, targets, dense, ids, high, low = map(int, facts)
        return VertexFacts(sources, targets, dense, ids, (high << 20) + low)
