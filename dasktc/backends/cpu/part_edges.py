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
from numba import types

from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.csr import Array
from dasktc.backends.part_edges import HEAD, LOCAL, OUTSIDE, TAIL

__all__ = ["CpuPartEdges", "warm"]

U = np.uint64


def _neighbours(keys: Array, shift: int, bits: Array, into: Array) -> None:
    mask = (1 << shift) - 1
    for i in range(len(keys)):
        u, v = U(keys[i] >> shift), U(keys[i] & mask)
        if bits[u] & ~into[v]:
            into[v] |= bits[u]
        if bits[v] & ~into[u]:
            into[u] |= bits[v]


def _targets(keys: Array, shift: int, bits: Array, into: Array) -> None:
    mask = (1 << shift) - 1
    for i in range(len(keys)):
        u, v = U(keys[i] >> shift), U(keys[i] & mask)
        if bits[u] & ~into[v]:
            into[v] |= bits[u]


def _reached(keys: Array, shift: int, within: Array, into: Array) -> Any:
    """Move bits in one pass; return how many entries it changed."""
    mask, changed = (1 << shift) - 1, 0
    for i in range(len(keys)):
        u, v = U(keys[i] >> shift), U(keys[i] & mask)
        new = into[u] & within[v] & ~into[v]
        if new:
            into[v] |= new
            changed += 1
    return changed


def _inside(keys: Array, shift: int, bits: Array, counts: Array) -> None:
    mask = (1 << shift) - 1
    for i in range(len(keys)):
        common = bits[U(keys[i] >> shift)] & bits[U(keys[i] & mask)]
        for part in range(len(counts)):
            counts[part] += common >> part & 1


def _degrees(keys: Array, shift: int, roles: Array, inward: Array, outward: Array) -> None:
    """Add without branches, which no processor could predict: half the time of this function."""
    mask = (1 << shift) - 1
    for i in range(len(keys)):
        u, v = U(keys[i] >> shift), U(keys[i] & mask)
        inside = ((roles[u] & TAIL) != 0) & ((roles[v] & HEAD) != 0)
        outward[u] += inside
        inward[v] += inside & ((roles[u] & LOCAL) != 0)


def _size(keys: Array, shift: int, number: Array) -> Any:
    mask, size = (1 << shift) - 1, 0
    for i in range(len(keys)):
        size += (number[U(keys[i] >> shift)] != OUTSIDE) & (number[U(keys[i] & mask)] >= 0)
    return size


def _numbered(keys: Array, shift: int, number: Array, numbered: Array) -> None:
    """Write the keys of a part's edges to an array that is one entry longer."""
    mask, size = (1 << shift) - 1, 0
    for i in range(len(keys)):
        tail, head = np.int64(number[U(keys[i] >> shift)]), np.int64(number[U(keys[i] & mask)])
        numbered[U(size)] = max(tail, -2 - tail) << shift | head
        size += (tail != OUTSIDE) & (head >= 0)


def _columns(keys: Array, shift: int, first: int, wanted: Array, columns: Array) -> None:
    """Write the columns of keys in wanted rows to an array that is one entry longer."""
    mask, size = (1 << shift) - 1, 0
    for i in range(len(keys)):
        columns[U(size)] = keys[i] & mask
        size += wanted[U((keys[i] >> shift) - first)] != 0


def _given(dtype: Any) -> Any:
    return types.Array(dtype, 1, "C", readonly=True)


_number, _keys, _made = types.int64, _given(types.int64), types.Array(types.int64, 1, "C")
_bytes, _numbers = _given(types.uint8), _given(types.int32)

neighbours = Kernel(_neighbours, (_keys, _number, _keys, _made))
targets = Kernel(_targets, (_keys, _number, _keys, _made))
reached = Kernel(_reached, (_keys, _number, _keys, _made))
inside = Kernel(_inside, (_keys, _number, _keys, _made))
degrees = Kernel(_degrees, (_keys, _number, _bytes, _made, _made))
size = Kernel(_size, (_keys, _number, _numbers))
numbered = Kernel(_numbered, (_keys, _number, _numbers, _made))
columns = Kernel(_columns, (_keys, _number, _number, _bytes, types.Array(types.int32, 1, "C")))


class CpuPartEdges:
    """Functions of the CPU on the edges of parts; implements `protocol.PartEdges`."""

    def neighbours(self, keys: Array, shift: int, bits: Array, into: Array, parts: int) -> None:
        """OR each end's bits into the other end's."""
        neighbours(keys, shift, bits, into)

    def targets(self, keys: Array, shift: int, bits: Array, into: Array, parts: int) -> None:
        """OR each source's bits into its targets'."""
        targets(keys, shift, bits, into)

    def reached(self, keys: Array, shift: int, within: Array, into: Array, parts: int) -> None:
        """OR each source's bits into its targets', those bits that the targets have in `within`, until none moves."""
        while reached(keys, shift, within, into):
            pass

    def inside(self, keys: Array, shift: int, bits: Array, parts: int) -> list[int]:
        """For each part, the number of edges both of whose ends have its bit."""
        counts = np.zeros(parts, np.int64)
        inside(keys, shift, bits, counts)
        return [*map(int, counts)]

    def degrees(self, keys: Array, shift: int, roles: Array) -> tuple[Array, Array]:
        """In-degrees from a part's local vertices, and out-degrees within the part."""
        inward, outward = (np.zeros(len(roles), np.int64) for _ in range(2))
        degrees(keys, shift, roles, inward, outward)
        return inward, outward

    def numbered(self, keys: Array, shift: int, number: Array) -> Array:
        """Keys of a part's edges over the numbers of their ends."""
        renumbered = np.empty(int(size(keys, shift, number)) + 1, np.int64)
        numbered(keys, shift, number, renumbered)
        return renumbered[:-1]

    def columns(self, keys: Array, shift: int, first: int, wanted: Array, size: int) -> Array:
        """Columns of the keys whose row, counted from `first`, is wanted."""
        chosen = np.empty(size + 1, np.int32)
        columns(keys, shift, first, wanted.view(np.uint8), chosen)
        return chosen[:-1]


def warm() -> None:
    """Compile this module's kernels, or load them from the cache."""
    for kernel in (neighbours, targets, reached, inside, degrees, size, numbered, columns):
        kernel.load()
