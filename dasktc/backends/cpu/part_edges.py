"""Edges of parts with proxies on the CPU; each function is one or more compiled passes over the keys, without the GIL.

An entry of a bit mask gets the bits of all parts at once, and is written only where it gets a new one: most edges bring
none, and would otherwise wait for the write of the edge before to the same hub. Functions that know one part read one
small entry for each end: a byte of flags or a number. With array arithmetic (`ArrayPartEdges`) most of the time went
into masks of edges, one for each part, and into gathers of 8-byte masks.
"""

# Kronecker 18 in 3 parts, all of `prepare` on one thread, CPU time relative to scheme `edges`:
#                                        lstc  tight  none
# array arithmetic, a mask for each part  3.0    2.6   2.7
# here                                    1.7    1.4   1.5
# The parts have 2.6 times the graph's edges together, all of which are selected, sorted and put into rows.

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.jit import ConstBytes, ConstInt32s, ConstInt64s, Int32s, Int64s, Kernel, ends_of
from dasktc.backends.csr import Array
from dasktc.backends.part_edges import HEAD, LOCAL, OUTSIDE, TAIL

__all__ = ["CpuPartEdges"]

U = np.uint64


@Kernel
def _neighbours(keys: ConstInt64s, shift: int, bits: ConstInt64s, into: Int64s, parts: int) -> None:
    """OR each end's bits into the other end's."""
    for i in range(len(keys)):
        u, v = ends_of(keys[i], shift)
        if bits[u] & ~into[v]:
            into[v] |= bits[u]
        if bits[v] & ~into[u]:
            into[u] |= bits[v]


@Kernel
def _targets(keys: ConstInt64s, shift: int, bits: ConstInt64s, into: Int64s, parts: int) -> None:
    """OR each source's bits into its targets'."""
    for i in range(len(keys)):
        u, v = ends_of(keys[i], shift)
        if bits[u] & ~into[v]:
            into[v] |= bits[u]


@Kernel
def _reached(keys: ConstInt64s, shift: int, within: ConstInt64s, into: Int64s) -> Any:
    """Move bits in one pass; return how many entries it changed."""
    changed = 0
    for i in range(len(keys)):
        u, v = ends_of(keys[i], shift)
        new = into[u] & within[v] & ~into[v]
        if new:
            into[v] |= new
            changed += 1
    return changed


@Kernel
def _inside(keys: ConstInt64s, shift: int, bits: ConstInt64s, counts: Int64s) -> None:
    for i in range(len(keys)):
        u, v = ends_of(keys[i], shift)
        common = bits[u] & bits[v]
        for part in range(len(counts)):
            counts[part] += common >> part & 1


@Kernel
def _degrees(keys: ConstInt64s, shift: int, roles: ConstBytes, inward: Int64s, outward: Int64s) -> None:
    """Add without branches, which no processor could predict: half the time of this function."""
    for i in range(len(keys)):
        u, v = ends_of(keys[i], shift)
        is_inside = ((roles[u] & TAIL) != 0) & ((roles[v] & HEAD) != 0)
        outward[u] += is_inside
        inward[v] += is_inside & ((roles[u] & LOCAL) != 0)


@Kernel
def _size(keys: ConstInt64s, shift: int, number: ConstInt32s) -> Any:
    size = 0
    for i in range(len(keys)):
        u, v = ends_of(keys[i], shift)
        size += (number[u] != OUTSIDE) & (number[v] >= 0)
    return size


@Kernel
def _numbered(keys: ConstInt64s, shift: int, number: ConstInt32s, renumbered_keys: Int64s) -> None:
    """Write the keys of a part's edges to an array that is one entry longer."""
    size = 0
    for i in range(len(keys)):
        u, v = ends_of(keys[i], shift)
        tail, head = np.int64(number[u]), np.int64(number[v])
        renumbered_keys[U(size)] = max(tail, -2 - tail) << shift | head
        size += (tail != OUTSIDE) & (head >= 0)


@Kernel
def _columns(keys: ConstInt64s, shift: int, first: int, wanted: ConstBytes, columns: Int32s) -> None:
    """Write the columns of keys in wanted rows to an array that is one entry longer."""
    mask, size = (1 << shift) - 1, 0
    for i in range(len(keys)):
        columns[U(size)] = keys[i] & mask
        size += wanted[U((keys[i] >> shift) - first)] != 0


class CpuPartEdges:
    """Functions of the CPU on the edges of parts; implements `protocol.PartEdges`."""

    neighbours, targets = _neighbours, _targets

    def reached(self, keys: Array, shift: int, within: Array, into: Array, parts: int) -> None:
        """OR each source's bits into its targets', those bits that the targets have in `within`, until none moves."""
        while _reached(keys, shift, within, into):
            pass

    def inside(self, keys: Array, shift: int, bits: Array, parts: int) -> list[int]:
        """For each part, the number of edges both of whose ends have its bit."""
        counts = np.zeros(parts, np.int64)
        _inside(keys, shift, bits, counts)
        return [*map(int, counts)]

    def degrees(self, keys: Array, shift: int, roles: Array) -> tuple[Array, Array]:
        """In-degrees from a part's local vertices, and out-degrees within the part."""
        inward, outward = (np.zeros(len(roles), np.int64) for _ in range(2))
        _degrees(keys, shift, roles, inward, outward)
        return inward, outward

    def numbered(self, keys: Array, shift: int, number: Array) -> Array:
        """Keys of a part's edges over the numbers of their ends."""
        renumbered = np.empty(int(_size(keys, shift, number)) + 1, np.int64)
        _numbered(keys, shift, number, renumbered)
        return renumbered[:-1]

    def columns(self, keys: Array, shift: int, first: int, wanted: Array, size: int) -> Array:
        """Columns of the keys whose row, counted from `first`, is wanted."""
        selection = np.empty(size + 1, np.int32)
        _columns(keys, shift, first, wanted.view(np.uint8), selection)
        return selection[:-1]
