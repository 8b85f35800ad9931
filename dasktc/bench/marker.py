"""A plain Numba kernel for comparison: marks a row, and looks every streamed element up in the marks.

It is the yardstick of `dasktc bench cpu`: one page of straightforward Numba on the same oriented graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from dasktc.backends.cpu.jit import Kernel

__all__ = ["count_by_marks"]

Array = Any


def _count_by_marks(offsets: Array, columns: Array) -> int:
    """Count the triangles of an oriented graph, with one byte per vertex.

    Parameters
    ----------
    offsets : array of int64, shape (V + 1,)
    columns : array of int32, shape (edges,)
        Row u is `columns[offsets[u]:offsets[u + 1]]`.
    """
    marks = np.zeros(len(offsets) - 1, np.uint8)
    triangles = 0
    for u in range(len(offsets) - 1):
        row = columns[offsets[u] : offsets[u + 1]]
        for v in row:
            marks[v] = 1
        for v in row:
            for w in columns[offsets[v] : offsets[v + 1]]:
                triangles += marks[w]
        for v in row:
            marks[v] = 0
    return triangles


_offsets = types.Array(types.int64, 1, "C", readonly=True)
_columns = types.Array(types.int32, 1, "C", readonly=True)

count_by_marks = Kernel(_count_by_marks, (_offsets, _columns))
