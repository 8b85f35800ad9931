"""Sorting keys on a device by radix, over the bits that differ: the launches of kernels/sort.cu.

CuPy's sort takes all 64 bits. Written against a `Device`, as all launches are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import THREADS, Device
from dasktc.backends.cuda.nvrtc import Defines

__all__ = ["ARRAYS", "RadixSort"]

ARRAYS = 32
"""Most arrays that the kernel reads as one."""
SMALL = 128, 8
"""Threads and keys of a thread of small tiles."""
COUNT_BLOCK = 256
"""Threads of a block that counts digits."""
LONG = 1 << 30
"""Keys from which on a tile's running sums take 64 bits."""
_INPUT = np.dtype(
    [("keys", np.uint64, ARRAYS), ("sizes", np.int64, ARRAYS), ("tiles", np.int64, ARRAYS), ("count", np.int64)]
)
"""`struct Arrays` of the kernel."""


@dataclass(frozen=True)
class RadixSort:
    """A stable sort of non-negative int64 keys, one pass over memory for each digit that is asked for.

    Attributes
    ----------
    device : Device
    block, items : int
        Threads of a block, and keys of a thread: a tile is their product.
    bits : int
        Most bits of a digit.
    few : int
        Up to so many keys a tile is SMALL, so that there are tiles for all multiprocessors.
    """

    device: Device
    block: int = 384
    items: int = 16
    bits: int = 8
    few: int = 1 << 18

    def of_size(self, size: int) -> RadixSort:
        """With the tiles that suit so many keys."""
        return self if size > self.few else replace(self, block=SMALL[0], items=SMALL[1], few=0)

    def sort(self, keys: Array, bound: int, low: int = 0) -> Array:
        """Sort keys in twice their memory.

        Parameters
        ----------
        keys : array of int64, contiguous
            0 <= key < bound. Overwritten.
        bound : int
        low : int
            Keys that differ in bits below this one alone keep their order.

        Returns
        -------
        array of int64
            `keys`, or another array of its size.
        """
        return self.of_size(len(keys))._sorted([keys], bound, low, keys)

    def merge(self, arrays: list[Array], bound: int) -> Array:
        """Sort the keys of several arrays into a new one; they stay as they are, and the list is emptied.

        It takes twice the memory of all keys, and the arrays none of it once the first digit is done.
        """
        return self.of_size(sum(map(len, arrays)))._sorted(arrays, bound, 0, None)

    def distinct(self, keys: Array, shift: int) -> Array:
        """The distinct ones of ascending keys, without loops: a view where few are dropped."""
        if not len(keys):
            return keys
        return self.of_size(len(keys))._distinct(keys, shift)

    def _distinct(self, keys: Array, shift: int) -> Array:
        kept, tiles = self._empty(len(keys)), -(-len(keys) // self._tile)
        state = self.device.array.zeros(2 + tiles, dtype="uint64")
        given = (keys, np.int64(len(keys)), np.uint32(shift), state[2:], state, kept, state[1:])
        self._launch("sort_distinct", tiles, self.block, len(keys), given)
        count = int(state[1])
        return kept[:count] if 4 * count > 3 * len(keys) else kept[:count].copy()

    def _sorted(self, arrays: list[Array], bound: int, low: int, spare: Array | None) -> Array:
        xp, size, bits = self.device.array, sum(map(len, arrays)), (bound - 1).bit_length() - low
        if not size or bits <= 0:
            return _joined(xp, arrays) if spare is None else spare
        digits = -(-bits // self.bits)
        width, given, tiles = -(-bits // digits), *self._input(arrays)
        bins, words = 1 << self.bits, 1 if size < LONG else 2
        counts = xp.zeros(digits * (bins + 1) + tiles * bins * words // 2 + 1, dtype="uint64")
        states = [counts[digits * (bins + 1) :], xp.empty(tiles * bins * words // 2 + 1, dtype="uint64")]
        grid = max(1, min(tiles, THREADS // COUNT_BLOCK * self.device.processors))
        self._launch("sort_counts", grid, COUNT_BLOCK, size, (given, *map(np.uint32, (low, width, digits)), counts))
        target = self._empty(size)
        for digit in range(digits):
            numbers = counts[digit * bins :], states[digit % 2], states[1 - digit % 2], counts[digits * bins + digit :]
            place = np.uint32(low + digit * width), np.uint32(width)
            self._launch("sort_pass", tiles, self.block, size, (given, *place, *numbers, target), 8 * self._tile)
            arrays.clear()
            if digit < digits - 1:
                source, target = target, self._empty(size) if spare is None else spare
                spare, (given, tiles) = source, self._input([source])
        return target

    @property
    def _tile(self) -> int:
        return self.block * self.items

    def _input(self, arrays: list[Array]) -> tuple[Any, int]:
        """`struct Arrays` of a list from which empty arrays go, and the number of tiles; a long list's end is joined."""
        given = np.zeros(1, _INPUT)
        arrays[:] = [array for array in arrays if len(array)]
        if len(arrays) > ARRAYS:
            arrays[ARRAYS - 1 :] = [self.device.array.concatenate(arrays[ARRAYS - 1 :])]
        sizes = np.array([len(array) for array in arrays], dtype="int64")
        count, tiles = len(arrays), np.cumsum(-(-sizes // self._tile))
        given["keys"][0, :count] = [self.device.pointer(array) for array in arrays]
        given["sizes"][0, :count], given["tiles"][0, :count], given["count"] = sizes, tiles, count
        return given, int(tiles[-1])

    def _empty(self, size: int) -> Array:
        return self.device.array.empty(size, dtype="int64")

    def _launch(self, entry: str, grid: int, block: int, size: int, values: tuple[Any, ...], shared: int = 0) -> None:
        self.device.launch("sort", entry, self.defines(size), grid, block, values, shared)

    def defines(self, size: int) -> Defines:
        """The kernel's macros for so many keys."""
        given = {"BLOCK": self.block, "ITEMS": self.items, "BITS": self.bits, "DIGITS": -(-63 // self.bits)}
        given["LONG"] = int(size >= LONG)
        return tuple(given.items())


def _joined(xp: Any, arrays: list[Array]) -> Array:
    joined = xp.concatenate(arrays)
    arrays.clear()
    return joined
