"""Triangles by the signs of their edges: balanced with an even number of negative edges, else unbalanced.

Cartwright and Harary, Psychological Review 63, 277-293, 1956. The codes of three edges are counted by the kernel of the
triad census (`backends.cpu.edge_values.codes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from dasktc.backends.cpu.sizes import edge_values_bytes
from dasktc.backends.csr import BlockTask
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError, shown
from dasktc.executors.base import Fold
from dasktc.executors.progress.tracker import Progress
from dasktc.questions.sums import SUM
from dasktc.questions.survey import TaskArrays, edge_columns, over_tasks

__all__ = ["KINDS", "signed_triangles"]

Array = Any
KINDS = tuple("+" * (3 - minuses) + "-" * minuses for minuses in range(4))
"""Kinds by the number of negative edges."""


@dataclass(frozen=True)
class SignCounts:
    """The visitor that counts triangles by the signs of their edges, and notes edges that have none."""

    name: str
    fold: ClassVar[Fold[Any]] = SUM

    def visit(self, task: BlockTask, arrays: TaskArrays) -> tuple[Array, int, int]:
        """Count the triangles of a task."""
        from dasktc.backends.cpu import edge_values  # loads Numba: only when needed

        (signs,) = arrays.edges
        codes = []
        for values in signs:
            errors = np.flatnonzero((values != 1) & (values != -1))
            if len(errors):
                raise InputError(
                    f"column {shown(self.name)} has the value {values[errors[0]]}: signs are 1 and -1; map others"
                )
            codes.append(np.where(values > 0, 1, 2).astype(np.uint8))
        counts, wedges = edge_values.codes(task, (codes[0], codes[1], codes[2]))
        kind_counts = np.zeros(len(KINDS), np.int64)
        for edges in product((1, 2), repeat=3):
            kind_counts[sum(edges) - 3] += counts[edges[0] << 4 | edges[1] << 2 | edges[2]]
        return kind_counts, int(kind_counts.sum()), wedges


def signed_triangles(graph: CountingContext, sign: str, progress: Progress | None = None) -> dict[str, int]:
    """Count triangles by the signs of their edges; see `Graph.signed_triangles`."""
    column = edge_columns(graph, [sign])[sign]
    if column.categories is not None:
        raise InputError(f"column {shown(sign)} is text: signs are the numbers 1 and -1; map it to these")
    counts = np.zeros(len(KINDS), np.int64)
    nbytes = edge_values_bytes(int(graph.prepared.sizes.edges.max()), int(graph.prepared.sizes.columns.max()))
    for task_counts in over_tasks(graph, "signed triangles", SignCounts(sign), [], [column], nbytes, progress):
        counts = SUM.combine([counts, task_counts])
    kind_counts = counts.tolist()
    balanced_count, unbalanced_count = sum(kind_counts[::2]), sum(kind_counts[1::2])
    return {**dict(zip(KINDS, kind_counts, strict=True)), "balanced": balanced_count, "unbalanced": unbalanced_count}
