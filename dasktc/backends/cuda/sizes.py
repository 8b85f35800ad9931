"""Bytes that functions of a device allocate, for plans; imports neither CuPy nor NumPy."""

from __future__ import annotations

__all__ = ["EDGE_BYTES", "ENDS", "LEAST_BATCH", "TRIANGLE_BYTES", "visit_bytes", "visit_of_values_bytes"]

ENDS = 1 << 22
"""Edges whose values are added to their ends in one step."""
ENDS_BYTES = 40
"""Bytes that each of these edges takes meanwhile."""

LEAST_BATCH = 1 << 12
"""Least triangles of a batch."""
EDGE_BYTES = 24
"""Bytes of an index edge while the triangles of each are counted, and these numbers added up."""
TRIANGLE_BYTES = 150
"""Bytes of a triangle beside its columns: positions, numbers, and what a function of some array operations takes."""


def visit_bytes(edges: int, columns: int) -> int:
    """Bytes that visiting triangles, and adding edges' values to their ends, take; see `requirements.support_bytes`."""
    return 4 * edges + ENDS_BYTES * min(edges, ENDS) + (1 << 12)


def visit_of_values_bytes(index_edges: int, value_bytes: int) -> int:
    """Least bytes in which the triangles of a split are visited with values of their edges, of so many bytes each."""
    return EDGE_BYTES * index_edges + LEAST_BATCH * (TRIANGLE_BYTES + 3 * value_bytes)
