"""Keys dealt to buckets on the CPU: each bucket is sorted, and its edges are taken, while its keys are in cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from dasktc.backends.cpu import edges, radix
from dasktc.backends.csr import Array

__all__ = ["CpuBuckets", "dealt"]

SUBTRACTION = Lock()
"""Held while repeats, mostly few, are subtracted from degrees: threads may do so for the same vertex."""


@dataclass(frozen=True)
class CpuBuckets(radix.Buckets):
    """Buckets whose keys are edges; implements `protocol.Buckets`, and threads may take different buckets."""

    @property
    def size(self) -> int:
        """Number of keys."""
        return len(self.keys)

    def distinct(self, first: int, end: int, shift: int) -> Array:
        """Sort a range of buckets and keep each key once: in place, or in a copy where over a quarter go."""
        keys, size = self.keys[self.ends[first] : self.ends[end]], 0
        for _, _, batch in self.sorted(first, end):
            once = edges.distinct(batch)
            keys[size : size + once] = batch[:once]
            size += once
        return keys[:size] if 4 * size > 3 * len(keys) else keys[:size].copy()

    def distinct_rows(self, first: int, end: int, shift: int, lengths: Array, vertices: Array, degrees: Array) -> Array:
        """Sort a range of buckets; see `protocol.Buckets`."""
        columns, edge = np.empty(int(self.ends[end] - self.ends[first]), np.int32), 0
        for _, _, keys in self.sorted(first, end):
            repeats = edges.distinct_rows(keys, shift, columns[edge : edge + len(keys)], lengths)
            edge += len(keys) - repeats
            with SUBTRACTION:
                edges.subtract_ends(degrees, keys[:repeats], shift, vertices)
        return columns[:edge]

    def rows(self, start: int, rows: int, columns: int, low: int = 0) -> tuple[Array, Array]:
        """Sort all buckets; offsets and columns of the rows, as `CpuEdges.rows` returns them."""
        offsets, numbers, row, edge = np.zeros(rows + 1, np.int64), np.empty(len(self.keys), np.int32), 0, 0
        for _, _, keys in self.sorted(0, len(self.ends) - 1, low=low):
            row = edges.rows(keys, start, columns, edge, row, offsets, numbers[edge : edge + len(keys)])
            edge += len(keys)
        offsets[row + 1 :] = edge
        return offsets, numbers

    def write_rows(self, first: int, end: int, shift: int, low: int, offsets: Array, columns: Array) -> None:
        """Sort a range of buckets, each of whole rows, and write their rows into the arrays of the only block."""
        rows, last = self.shift - shift, len(offsets) - 1
        for bucket, bucket_end, keys in self.sorted(first, end, low=low):
            begin, edge = min(bucket << rows, last), int(self.ends[bucket])
            row_offsets = offsets[begin : min(bucket_end << rows, last) + 1]
            row_offsets[0] = edge
            row = edges.rows(keys, begin << shift, 1 << shift, edge, 0, row_offsets, columns[edge : edge + len(keys)])
            row_offsets[row + 1 :] = edge + len(keys)


def dealt(
    arrays: list[radix.Keys],
    bound: int,
    span: tuple[int, int] | None = None,
    calls: Callable[..., list[Any]] = radix.in_turn,
) -> CpuBuckets:
    """Deal the keys of several arrays to buckets, as `radix.dealt` does."""
    return CpuBuckets(**vars(radix.dealt(arrays, bound, span, calls)))
