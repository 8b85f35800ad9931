"""Vertex vectors on the CPU: orders and sums, each in one or two passes."""

# Kronecker 20, 1 M vertices, milliseconds on one core: ranking by degree takes 63 with array arithmetic, which sorts
# keys of degree and number, and 6 here.

from __future__ import annotations

import numpy as np

from dasktc.backends.cpu.jit import ConstIds, ConstInt32s, Int32s, Kernel, KernelOfIds
from dasktc.backends.cpu.radix import sort
from dasktc.backends.csr import Array
from dasktc.backends.protocol import Totals
from dasktc.backends.vertex_order import order_by_keys

__all__ = ["CpuVertices"]

LARGEST = 4
"""Most values of weights, per vertex, for which counting sort is used."""

U = np.uint64


@KernelOfIds
def _order(weights: ConstIds, places: Int32s, order: Int32s) -> None:
    """Place the vertices by weight, the largest first (counting sort); `places`, one per weight, is zero at first."""
    for i in range(U(len(weights))):
        places[U(weights[i])] += 1
    first = 0
    for weight in range(len(places) - 1, -1, -1):
        number = places[weight]
        places[weight] = first
        first += number
    for i in range(U(len(weights))):
        place = U(weights[i])
        order[U(places[place])] = i
        places[place] += 1


@Kernel
def _inverse(order: ConstInt32s, rank: Int32s) -> None:
    for i in range(U(len(order))):
        rank[U(order[i])] = i


@Kernel
def _totals(degree: ConstInt32s, order: ConstInt32s, outward: ConstInt32s) -> tuple[int, int, int, int, int]:
    vertices = edges = longest = high = low = 0
    for r in range(U(len(order))):
        both, out = degree[U(order[r])], int(outward[r])
        inward = both - out
        vertices += both > 0
        edges += out
        longest = max(longest, out)
        high += inward * (out >> 20)
        low += inward * (out & ((1 << 20) - 1))
    return vertices, edges, longest, high, low


class CpuVertices:
    """Functions of the CPU on vertex vectors, arrays of int32; implements `protocol.Vertices`."""

    def order(self, weights: Array) -> Array:
        """Vertices by descending weight, ties by ascending number: by counting sort, if no weight is too large."""
        top = int(weights.max(initial=0))
        if top > LARGEST * len(weights):
            return order_by_keys(weights, np, sort)
        numbers = np.empty(len(weights), np.int32)
        _order(np.ascontiguousarray(weights), np.zeros(top + 1, np.int32), numbers)
        return numbers

    def inverse(self, order: Array) -> Array:
        """The place of each vertex in an order, int32."""
        rank = np.empty(len(order), np.int32)
        if order.dtype != np.int32:
            rank[order] = np.arange(len(order), dtype=np.int32)
            return rank
        _inverse(np.ascontiguousarray(order), rank)
        return rank

    def totals(self, degree: Array, order: Array, outward: Array) -> Totals:
        """Vertices with an edge, edges, wedges, and the longest row."""
        vertices, edges, longest, high, low = _totals(*map(np.ascontiguousarray, (degree, order, outward)))
        return Totals(int(vertices), int(edges), (int(high) << 20) + int(low), int(longest))

    def lengths(self, values: Array, bins: int) -> Array:
        """Number of elements with each value, shape (bins,); all values are below `bins`."""
        return np.bincount(values, minlength=bins)
