"""Bytes that functions of a device allocate, for plans; imports neither CuPy nor NumPy."""

from __future__ import annotations

__all__ = ["ENDS", "visit_bytes"]

ENDS = 1 << 22
"""Edges whose values are added to their ends in one step."""
ENDS_BYTES = 40
"""Bytes that each of these edges takes meanwhile."""


def visit_bytes(edges: int, columns: int) -> int:
    """Bytes that visiting triangles, and adding edges' values to their ends, take; see `requirements.support_bytes`."""
    return 4 * edges + ENDS_BYTES * min(edges, ENDS) + (1 << 12)
