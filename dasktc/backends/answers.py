"""Numbers by edge and by vertex as result columns, by array arithmetic."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from dasktc.backends.csr import Array, OrientedCSR

__all__ = ["ArrayAnswers", "degrees_of"]


class ArrayAnswers:
    """Converts numbers, arrays of the module, into result columns; implements `protocol.Answers` with new arrays."""

    def __init__(self, array: ModuleType) -> None:
        self.array = array

    def facts(self, numbers: Array) -> tuple[int, int]:
        """The sum and the maximum of non-negative numbers; both 0 where there are none."""
        return int(numbers.sum(dtype="int64")), int(numbers.max()) if len(numbers) else 0

    def edges(
        self, block: OrientedCSR, numbers: Array, ids: tuple[Array, Array], vertices: int, most: int, external: Any
    ) -> tuple[Array, Array, Array] | None:
        """None: slices of the edges are sorted instead, on several threads."""

    def clustering(self, triangles: Array, outward: Array, inward: Array) -> Array:
        """Local clustering coefficients, float64, from triangles and degrees given as two summands."""
        degree = degrees_of(outward, inward)
        return 2 * triangles / self.array.maximum(degree * (degree - 1), 1)

    def place(self, numbers: Array, order: Array) -> Array:
        """Permute numbers to dense ids: `order` has the dense id of each."""
        permuted_numbers = self.array.empty_like(numbers)
        permuted_numbers[order] = numbers
        return permuted_numbers


def degrees_of(outward: Array, inward: Array) -> Array:
    """Degrees, int64, from two summands."""
    return (outward + inward).astype("int64", copy=False)
