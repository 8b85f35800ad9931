"""Sources of objects in memory: data frames, arrays, sparse matrices and graph objects."""

from __future__ import annotations

from dasktc.io.memory.openers import from_object

__all__ = ["from_object"]
