"""Vertex vectors on a device: the launches of kernels/vertices.cu.

Array arithmetic would take some twenty launches and three waits more, which is most of the time of counting a small
graph. Written against a `Device`, as all launches are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import Device, spread
from dasktc.backends.cuda.sort import RadixSort
from dasktc.backends.protocol import Totals
from dasktc.backends.vertex_order import order_by_keys

__all__ = ["DeviceVertices"]

LOW, MOST = 31, (1 << 31) - 1
"""Bits of a vertex in the keys by which vertices are ordered, and the largest weight above them."""


@dataclass(frozen=True)
class DeviceVertices:
    """Functions of a device on vertex vectors, arrays of int32; implements `protocol.Vertices` with new arrays.

    Attributes
    ----------
    device : Device
    many : int
        Vertices from which waiting for the largest weight takes less time than sorting bits that no weight has.
    """

    device: Device
    many: int = 1 << 20

    def order(self, weights: Array) -> Array:
        """Vertices by descending weight, ties by ascending number."""
        if weights.dtype != np.int32:
            return order_by_keys(weights, self.device.array, RadixSort(self.device).sort)
        keys = self._empty(len(weights), "int64")
        largest = self._largest(weights) if len(weights) > self.many else MOST
        self._run("vertices_keys", weights, np.int64(largest), keys)
        keys = RadixSort(self.device).sort(keys, (largest + 1) << LOW, LOW)
        order = self._empty(len(weights), "int32")
        self._run("vertices_order", keys, order)
        return order

    def inverse(self, order: Array) -> Array:
        """The place of each vertex in an order."""
        place = self._empty(len(order), "int32")
        if order.dtype != np.int32:
            place[order] = self.device.array.arange(len(order), dtype="int32")
            return place
        self._run("vertices_inverse", order, place)
        return place

    def totals(self, degree: Array, order: Array, outward: Array) -> Totals:
        """Vertices with an edge, edges, wedges, and the longest row."""
        totals = self.device.array.zeros(5, dtype="uint64")
        self._run("vertices_totals", degree, order, outward, totals)
        vertices, edges, longest, high, low = map(int, totals.tolist())
        return Totals(vertices, edges, (high << 20) + low, longest)

    def lengths(self, values: Array, bins: int) -> Array:
        """Number of elements with each value, uint64, shape (bins,); all values are below `bins`."""
        counts = self.device.array.zeros(bins, dtype="uint64")
        self._run("vertices_lengths", values, counts, np.uint32(bins))
        return counts

    def _largest(self, weights: Array) -> int:
        largest = self.device.array.zeros(1, dtype="uint64")
        self._run("vertices_most", weights, largest)
        return int(largest[0])

    def _empty(self, size: int, dtype: str) -> Array:
        return self.device.array.empty(size, dtype=dtype)

    def _run(self, entry: str, *values: Any) -> None:
        """Launch one thread per element of the first array, if it has any."""
        size = len(values[0])
        if size:
            spread(self.device, "vertices", entry, (), size, np.int64(size), *values)
