"""Keys of a device that are yet to be sorted: one bucket has them all, since a sort keeps the whole device busy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dasktc.backends.csr import Array
from dasktc.backends.cuda.edges import DeviceEdges
from dasktc.backends.cuda.sort import RadixSort

__all__ = ["DeviceBuckets"]


@dataclass(frozen=True)
class DeviceBuckets:
    """A bucket of all keys, 0 <= key < bound; implements `protocol.Buckets`. What takes them empties the list."""

    arrays: list[Array]
    bound: int
    edges: DeviceEdges

    @property
    def size(self) -> int:
        """Number of keys."""
        return sum(map(len, self.arrays))

    def __len__(self) -> int:
        """Number of buckets."""
        return 1

    def ranges(self, most: int) -> list[tuple[int, int]]:
        """The only range of buckets."""
        return [(0, 1)]

    def distinct(self, first: int, end: int, shift: int) -> Array:
        """Sort the keys, and drop repeats and loops."""
        return self.edges.distinct(self._sort(), shift)

    def distinct_rows(
        self, first: int, end: int, shift: int, lengths: Array, vertices: Array, degrees: Array
    ) -> Callable[[], Array]:
        """Sort the keys; see `protocol.Buckets`."""
        return self.edges.distinct_rows(self._sort(), shift, lengths, vertices, degrees)

    def rows(self, start: int, rows: int, columns: int, low: int = 0) -> tuple[Array, Array]:
        """Sort the keys; offsets and columns of the rows, as `DeviceEdges.rows` returns them."""
        return self.edges.rows(self._sort(low), start, rows, columns)

    def write_rows(self, first: int, end: int, shift: int, low: int, offsets: Array, columns: Array) -> None:
        """Sort the keys, and write the offsets and columns of the rows into a block's arrays."""
        offsets[:], columns[:] = self.rows(0, len(offsets) - 1, 1 << shift, low)

    def _sort(self, low: int = 0) -> Any:
        return RadixSort(self.edges.device).merge(self.arrays, self.bound, low)
