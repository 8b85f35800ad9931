"""Triangles by the signs of their edges: balanced with an even number of negative edges, else unbalanced.

Cartwright and Harary, Psychological Review 63, 277-293, 1956. The codes of three edges are counted by the kernel of the
triad census (`backends.cpu.edge_values.codes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from dasktc.answers.frames import array_module
from dasktc.backends.cpu.sizes import edge_values_bytes
from dasktc.backends.csr import BlockTask
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError, shown
from dasktc.executors.base import Fold
from dasktc.options import CountOptions
from dasktc.questions.sums import SUM
from dasktc.questions.survey import Batch, TaskArrays, counts_by_edges, edge_column

__all__ = ["KINDS", "signed_triangles"]

Array = Any
KINDS = tuple("+" * (3 - minuses) + "-" * minuses for minuses in range(4))
"""Kinds by the number of negative edges."""
STAGE = "signed triangles"


@dataclass(frozen=True)
class SignCounts:
    """The visitor that counts triangles by the signs of their edges, on the CPU."""

    fold: ClassVar[Fold[Any]] = SUM

    def visit(self, task: BlockTask, arrays: TaskArrays) -> tuple[Array, int, int]:
        """Count the triangles of a task."""
        from dasktc.backends.cpu import edge_values  # loads Numba: only when needed

        of_index, of_table, of_stream = (np.where(values > 0, 1, 2).astype(np.uint8) for values in arrays.edges[0])
        counts, wedges = edge_values.codes(task, (of_index, of_table, of_stream))
        kind_counts = np.zeros(len(KINDS), np.int64)
        for edges in product((1, 2), repeat=3):
            kind_counts[sum(edges) - 3] += counts[edges[0] << 4 | edges[1] << 2 | edges[2]]
        return kind_counts, int(kind_counts.sum()), wedges


def _kinds_of_batch(batch: Batch) -> Array:
    """Count triangles by their negative edges."""
    of_uv, of_uw, of_vw = ((values < 0).astype("int32") for values in batch.values())
    minuses = of_uv + of_uw + of_vw
    return array_module(minuses).bincount(minuses, minlength=len(KINDS))


def _no_signs(values: Array) -> list[Any]:
    """Return the first value that is neither 1 nor -1, if there is one."""
    places = array_module(values).flatnonzero((values != 1) & (values != -1))
    first: list[Any] = values.take(places[:1]).tolist()
    return first


def signed_triangles(graph: CountingContext, sign: str, options: CountOptions | None = None) -> dict[str, int]:
    """Count triangles by the signs of their edges; see `Graph.signed_triangles`."""
    column = edge_column(graph, sign)
    if column.categories is not None:
        raise InputError(f"column {shown(sign)} is text: signs are the numbers 1 and -1; map it to these")
    for values in graph.executor.gather(graph.executor.map(STAGE, _no_signs, list(column.values.values()))):
        for value in values:
            raise InputError(f"column {shown(sign)} has the value {value}: signs are 1 and -1; map others")
    nbytes = edge_values_bytes(int(graph.prepared.sizes.edges.max()), int(graph.prepared.sizes.columns.max()))
    signs, kinds = {"sign": column}, len(KINDS)
    counts = counts_by_edges(graph, STAGE, SignCounts(), nbytes, _kinds_of_batch, signs, kinds, options)
    kind_counts = counts.tolist()
    balanced_count, unbalanced_count = sum(kind_counts[::2]), sum(kind_counts[1::2])
    return {**dict(zip(KINDS, kind_counts, strict=True)), "balanced": balanced_count, "unbalanced": unbalanced_count}
