"""Vectors of vertices on the CPU: orders and sums, in a pass or two each."""

# Kronecker 20, 1 M vertices, milliseconds on one core: rank by degree 63 by sorting keys of degree and number, and by
# array arithmetic; here 6.

from __future__ import annotations

import numpy as np
from numba import types

from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.csr import Array

__all__ = ["CpuVertices", "warm"]

LARGEST = 4
"""Most values of weights for each vertex that are counted."""

U = np.uint64


def _order(weights: Array, places: Array, order: Array) -> None:
    """Deal the vertices out by weight, the largest first; `places` is zero for each weight."""
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


def _inverse(order: Array, rank: Array) -> None:
    for i in range(U(len(order))):
        rank[U(order[i])] = i


def _wedges(degree: Array, rank: Array, outward: Array) -> tuple[int, int]:
    high = low = 0
    for v in range(U(len(degree))):
        out = outward[U(rank[v])]
        inward = degree[v] - out
        high += inward * (out >> 20)
        low += inward * (out & ((1 << 20) - 1))
    return high, low


_given, _made = types.Array(types.int64, 1, "C", readonly=True), types.Array(types.int64, 1, "C")
_ranks, _given_ranks = types.Array(types.int32, 1, "C"), types.Array(types.int32, 1, "C", readonly=True)

order = Kernel(_order, (_given, _made, _made))
inverse = Kernel(_inverse, (_given, _ranks))
wedges = Kernel(_wedges, (_given, _given_ranks, _given))


class CpuVertices:
    """What the CPU does with vectors of vertices, arrays of int64, as `Backend.vertices` says."""

    def order(self, weights: Array) -> Array | None:
        """Vertices by descending weight, ties by ascending number; None of weights too large to be counted."""
        top = int(weights.max(initial=0))
        if top > LARGEST * len(weights):
            return None
        numbers = np.empty(len(weights), np.int64)
        order(np.ascontiguousarray(weights), np.zeros(top + 1, np.int64), numbers)
        return numbers

    def inverse(self, order: Array) -> Array:
        """The place of each vertex in an order, int32."""
        rank = np.empty(len(order), np.int32)
        inverse(np.ascontiguousarray(order), rank)
        return rank

    def wedges(self, degree: Array, rank: Array, outward: Array) -> int:
        """Σ in·out over all vertices; `rank` is int32."""
        high, low = wedges(*map(np.ascontiguousarray, (degree, rank, outward)))
        return (int(high) << 20) + int(low)

    def lengths(self, values: Array, bins: int) -> Array:
        """How many elements have each value, shape (bins,); all are below `bins`."""
        return np.bincount(values, minlength=bins)


def warm() -> None:
    """Compile, or load from the cache, all of it."""
    for kernel in (order, inverse, wedges):
        kernel.load()
