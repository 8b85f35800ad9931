"""Vertices by weight with array arithmetic and one sort, for weights that a backend's own way does not take."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from dasktc.backends.csr import Array

__all__ = ["order_by_keys"]


def order_by_keys(weights: Array, xp: ModuleType, sort: Callable[[Array, int], Array]) -> Array:
    """Sort the vertices by descending weight, ties by ascending number, with a sort as `Backend.sort`.

    The result is of int32; of int64 where a weight, an integer that is not negative, and a number exceed 63 bits.
    """
    if not len(weights):
        return xp.zeros(0, dtype="int32")
    bits, top = max(1, (len(weights) - 1).bit_length()), int(weights.max())
    if (top + 1) << bits > 2**63 - 1:
        return xp.argsort(top - weights, kind="stable")
    keys = weights.astype("int64")
    keys *= -1
    keys += top
    keys <<= bits
    keys |= xp.arange(len(weights), dtype="int32")
    keys = sort(keys, (top + 1) << bits)
    keys &= (1 << bits) - 1
    return keys.astype("int32", copy=False)
