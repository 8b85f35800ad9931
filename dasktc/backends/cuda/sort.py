"""Radix sort of keys on a device, over the bits in which they can differ: the launches of kernels/sort.cu.

CuPy's sort processes all 64 bits. Written against a `Device`, as all launches are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import THREADS, Device
from dasktc.backends.cuda.nvrtc import Defines
from dasktc.backends.kernel_files import macros
from dasktc.once import once

__all__ = ["LARGE", "SMALL", "RadixSort", "Tile"]

SORT = macros("sort")
"""Macros of the kernel, explained in its source."""
SHAPE = ("BLOCK", "ITEMS", "BITS", "RESIDENT")
"""Those that a `Tile` has, in its order; their defaults are those of a large one."""
LONG = 1 << 30
"""Keys from which running sums over tiles take 64 bits."""
_ARRAYS = np.dtype([(name, np.uint64, SORT["ARRAYS"]) for name in ("keys", "sizes", "tiles")] + [("count", np.int64)])
"""Layout of `struct Arrays` in the kernel."""


class Tile(NamedTuple):
    """Shape of the tile that a block sorts in one step.

    Attributes
    ----------
    block, items : int
        Threads per block, and keys per thread.
    bits : int
        Most bits of a digit, at least 5.
    resident : int
        Blocks per multiprocessor for which registers suffice.
    """

    block: int
    items: int
    bits: int = 8
    resident: int = 1

    @property
    def keys(self) -> int:
        """Number of keys in a tile."""
        return self.block * self.items


LARGE, NARROW, SMALL = Tile(*(SORT[name] for name in SHAPE)), Tile(384, 12), Tile(128, 8)
LARGE_BYTES = 76_808
"""Shared memory of a block with a LARGE tile; compute capability 7.5 has 64 KiB, and uses NARROW."""


@once
def _defines(tile: Tile, long: bool) -> Defines:
    """Macros of the kernel."""
    return (*zip(SHAPE, tile, strict=True), ("DIGITS", -(-63 // tile.bits)), ("LONG", int(long)))


@dataclass(frozen=True)
class RadixSort:
    """A stable sort of non-negative int64 keys, with one pass over memory per digit.

    Attributes
    ----------
    device : Device
    tile, small : Tile
        Tiles for many keys, and for few: small ones, so that all multiprocessors have some.
    few : int
        Keys up to which tiles are small.
    """

    device: Device
    tile: Tile = LARGE
    small: Tile = SMALL
    few: int = 1 << 17

    def sort(self, keys: Array, bound: int, low: int = 0) -> Array:
        """Sort keys in ascending order, within twice their memory.

        Parameters
        ----------
        keys : array of int64, contiguous
            0 <= key < bound. Overwritten.
        bound : int
        low : int
            Keys that differ only in bits below this one keep their order.

        Returns
        -------
        array of int64
            `keys`, or another array of the same size.
        """
        return self._sort([keys], bound, low, keys)

    def merge(self, arrays: list[Array], bound: int, low: int = 0) -> Array:
        """Sort the keys of several arrays into a new one, as `sort`; they are not changed, and the list is emptied.

        It takes twice the memory of all keys; the arrays can be freed once the first digit is done.
        """
        return self._sort(arrays, bound, low, None)

    def defines(self) -> list[Defines]:
        """Macros with which the kernel is compiled, for large tiles and for small ones."""
        return [_defines(self._large, False), _defines(self.small, False)]

    @property
    def _large(self) -> Tile:
        """The tile for many keys that fits the device's shared memory."""
        shared = getattr(self.device, "shared_bytes", LARGE_BYTES)
        return NARROW if self.tile is LARGE and shared < LARGE_BYTES else self.tile

    def _sort(self, arrays: list[Array], bound: int, low: int, spare: Array | None) -> Array:
        xp, size, bits = self.device.array, sum(map(len, arrays)), (bound - 1).bit_length() - low
        if not size or bits <= 0:
            keys = xp.concatenate(arrays) if spare is None else spare
            arrays.clear()
            return keys
        tile = self._large if size > self.few else self.small
        digits, defines, bins = -(-bits // tile.bits), _defines(tile, size >= LONG), 1 << tile.bits
        width, (sources, tiles) = -(-bits // digits), self._sources(arrays, tile)
        state_bytes = -(-tiles * bins * (8 if size >= LONG else 4) // 8) * 8
        scratch = xp.zeros(digits * bins + digits + state_bytes // 4, dtype="uint64")
        counts, target = self.device.pointer(scratch), self._empty(size)
        counters = counts + 8 * digits * bins
        states = [counters + 8 * digits, counters + 8 * digits + state_bytes]
        grid = min(tiles, THREADS // SORT["COUNT_BLOCK"] * self.device.processors)
        places = tuple(map(np.uint32, (low, width, digits)))
        self.device.launch(
            "sort", "sort_counts", defines, grid, SORT["COUNT_BLOCK"], (sources, *places, np.uint64(counts))
        )
        # Each pass deals tiles by a digit; the first reads all arrays, the others what the last one wrote.
        for digit in range(digits):
            numbers = counts + 8 * digit * bins, states[digit % 2], states[1 - digit % 2], counters + 8 * digit
            values = (sources, np.uint32(low + digit * width), np.uint32(width), *map(np.uint64, numbers), target)
            self.device.launch("sort", "sort_pass", defines, tiles, tile.block, values, 8 * tile.keys)
            arrays.clear()
            if digit < digits - 1:
                source, target = target, self._empty(size) if spare is None else spare
                spare = source
                if not digit:
                    tiles = _fill(sources, [size], tile)
                sources["keys"][0, 0] = self.device.pointer(source)
        return target

    def _sources(self, arrays: list[Array], tile: Tile) -> tuple[Any, int]:
        """Make `struct Arrays` of a list, and count the tiles; short arrays are joined, because each begins a tile."""
        arrays.sort(key=len, reverse=True)
        long_arrays = min(SORT["ARRAYS"] - 1, sum(len(array) >= 4 * tile.keys for array in arrays))
        if len(arrays) > long_arrays + 1:
            arrays[long_arrays:] = [self.device.array.concatenate(arrays[long_arrays:])]
        sources = np.zeros(1, _ARRAYS)
        sources["keys"][0, : len(arrays)] = [self.device.pointer(array) for array in arrays]
        return sources, _fill(sources, [len(array) for array in arrays], tile)

    def _empty(self, size: int) -> Array:
        return self.device.array.empty(size, dtype="int64")


def _fill(sources: Any, sizes: list[int], tile: Tile) -> int:
    """Fill in the sizes of arrays; return the number of their tiles."""
    tiles = 0
    for number, size in enumerate(sizes):
        tiles += -(-size // tile.keys)
        sources["sizes"][0, number], sources["tiles"][0, number] = size, tiles
    sources["count"] = len(sizes)
    return tiles
