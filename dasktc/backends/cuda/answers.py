"""Columns of result frames on a device: the launches of kernels/answers.cu.

Array arithmetic would take some ten times the launches, and move five times the bytes. Written against a `Device`, as
all launches are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.answers import ArrayAnswers
from dasktc.backends.csr import Array, OrientedCSR
from dasktc.backends.cuda.device import THREADS, Device, spread
from dasktc.backends.cuda.sort import RadixSort
from dasktc.backends.kernel_files import macros

__all__ = ["WORD", "DeviceAnswers"]

WORD = 63
"""Bits of the words as which edges are sorted."""


class DeviceAnswers(ArrayAnswers):
    """Converts numbers by edge and by vertex into result columns on a device; all results are new arrays."""

    def __init__(self, device: Device) -> None:
        super().__init__(device.array)
        self.device = device

    def facts(self, numbers: Array) -> tuple[int, int]:
        """The sum and the maximum of non-negative numbers, int32; both 0 where there are none."""
        facts = self.device.array.zeros(2, dtype="uint64")
        self._run("answers_facts", len(numbers), numbers, facts)
        total, largest = facts.tolist()
        return int(total), int(largest)

    def edges(
        self,
        block: OrientedCSR,
        numbers: Array,
        ids: tuple[Array, Array],
        vertices: int,
        most: int,
        external: Array | int,
    ) -> tuple[Array, Array, Array] | None:
        """Columns of a block's edges and their numbers, ascending by the ends' ids, the smaller end first.

        Parameters
        ----------
        block : OrientedCSR
        numbers : array of int32
            0 <= number <= most.
        ids : (array, array) of int32
            Dense ids of the block's rows and columns.
        vertices, most : int
            Bounds: dense ids are below `vertices`, numbers at most `most`.
        external : array of int64, or int
            The caller's ids; or only that of dense id 0, where they are consecutive.

        Returns
        -------
        src, dst, numbers : array of int64, or None
            None where the bits of an edge's ends and its number exceed a word.
        """
        size = block.edges
        id_bits, number_bits = max(1, (vertices - 1).bit_length()), most.bit_length()
        if 2 * id_bits + number_bits > WORD:
            return None
        xp, bits = self.device.array, (np.uint32(id_bits), np.uint32(number_bits))
        words = xp.empty(size, dtype="int64")
        if size:
            rows, columns = (xp.ascontiguousarray(end, dtype="int32") for end in ids)
            sizes = np.int64(size), np.int64(block.rows)
            values = (*sizes, block.offsets, block.columns, rows, columns, numbers, *bits, words)
            tile, threads = (macros("answers")[name] for name in ("TILE", "BLOCK"))
            grid = min(-(-size // tile), THREADS // threads * self.device.processors)
            self.device.launch("answers", "answers_words", (), grid, threads, values)
            words = RadixSort(self.device).sort(words, vertices << (id_bits + number_bits), number_bits)
        result = (xp.empty(size, dtype="int64"), xp.empty(size, dtype="int64"), xp.empty(size, dtype="int64"))
        first, table = (external, np.uint64(0)) if isinstance(external, int) else (0, external)
        self._run("answers_columns", size, words, *bits, np.int64(first), table, *result)
        return result

    def clustering(self, triangles: Array, outward: Array, inward: Array) -> Array:
        """Local clustering coefficients, float64, from triangles (int64) and degrees given as two summands."""
        if {outward.dtype, inward.dtype} != {np.dtype("int32")}:
            return super().clustering(triangles, outward, inward)
        coefficients = self.device.array.empty(len(triangles), dtype="float64")
        self._run("answers_clustering", len(triangles), triangles, outward, inward, coefficients)
        return coefficients

    def place(self, numbers: Array, order: Array) -> Array:
        """Permute numbers to dense ids: `order` has the dense id of each."""
        if numbers.dtype.itemsize != 8 or order.dtype != "int32":
            return super().place(numbers, order)
        result = self.device.array.empty_like(numbers)
        self._run("answers_place", len(numbers), order, numbers, result)
        return result

    def _run(self, entry: str, size: int, *values: Any) -> None:
        """Launch one thread per element, if there are any."""
        if size:
            spread(self.device, "answers", entry, (), size, np.int64(size), *values)
