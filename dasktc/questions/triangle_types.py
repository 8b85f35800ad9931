"""Triangles by the labels of their vertices, beside what chance gives between vertices of the same degrees.

The chance is that of the configuration model, in which the ends of edges are joined at random: i and j are adjacent
with probability d(i)·d(j) / 2E (Newman, SIAM Review 45, 167-256, 2003, section IV.B). A vertex of a triangle uses two
of its ends, so that three vertices are one with a probability proportional to x(i)·x(j)·x(k), x = d·(d - 1). A triangle
of the model then has the labels a, b, c with the probability

    p(abc) = N(abc) / Σ N,    N(abc) = Σ x(i)·x(j)·x(k) over all sets {i, j, k} of vertices with these labels,

and of T triangles T·p(abc) are expected. With the power sums s = Σ x, q = Σ x² and r = Σ x³ of a label's vertices,
N(abc) = s(a)·s(b)·s(c), N(aab) = (s(a)² - q(a))/2·s(b) and N(aaa) = (s(a)³ - 3·s(a)·q(a) + 2·r(a))/6, in integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement, permutations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dasktc.answers.frames import array_module
from dasktc.backends.csr import BlockTask, on_host
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError
from dasktc.executors.base import Fold
from dasktc.executors.progress.tracker import Progress
from dasktc.pipeline.stages.columns import Column
from dasktc.questions.sums import SUM
from dasktc.questions.survey import Batch, TaskArrays, by_kernel_or_batches
from dasktc.questions.vertex_columns import vertex_column

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["triangle_types"]

Array = Any


@dataclass(frozen=True)
class LabelCounts:
    """The visitor that counts triangles by the labels of u, v and w, on the CPU."""

    labels: int
    fold: ClassVar[Fold[Any]] = SUM

    def visit(self, task: BlockTask, arrays: TaskArrays) -> tuple[Array, int, int]:
        """Count the triangles of a task."""
        from dasktc.backends.cpu.labels import label_counts  # loads Numba: only when needed

        row_labels, column_labels, third_labels = arrays.of_ends(task, 0)
        counts, wedges = label_counts(task, (row_labels, column_labels, third_labels), self.labels)
        return counts, int(counts.sum()), wedges


def _types_of_batch(batch: Batch, labels: int) -> Array:
    """Count triangles by the labels of u, v and w."""
    types = batch["label_u"].astype("int32")
    for role in "vw":
        types *= labels
        types += batch[f"label_{role}"]
    return array_module(types).bincount(types, minlength=labels**3).reshape((labels,) * 3)


def triangle_types(graph: CountingContext, labels: Any, progress: Progress | None = None) -> pd.DataFrame:
    """Count triangles by the labels of their vertices; see `Graph.triangle_types`."""
    import pandas as pd

    names, vertex_labels = _labels(graph, labels)
    counts, nbytes = np.zeros((len(names),) * 3, np.int64), 8 * 5 * len(names) ** 3
    handle = graph.answers.submit_replicated("columns", graph.executor.backend.array.asarray, vertex_labels)
    visitor, function = LabelCounts(len(names)), partial(_types_of_batch, labels=len(names))
    column = {"label": Column("uint8", None, handle)}
    for task_counts in by_kernel_or_batches(graph, "triangle types", visitor, nbytes, function, column, {}, progress):
        counts = SUM.combine([counts, task_counts])
    types = list(combinations_with_replacement(range(len(names)), 3))
    totals = [sum(int(counts[roles]) for roles in set(permutations(type_))) for type_ in types]
    expected = _expected(types, _power_sums(graph, vertex_labels, len(names)), sum(totals))
    ends = {role: pd.Index([names[type_[place]] for type_ in types]) for place, role in enumerate("abc")}
    return pd.DataFrame({**ends, "triangles": np.array(totals, np.int64), "expected": np.array(expected, np.float64)})


def _labels(graph: CountingContext, labels: Any) -> tuple[list[Any], Array]:
    """Return the labels, ascending, and the position of each vertex's label among them, uint8, by the blocks' ids."""
    from dasktc.backends.cpu.labels import MOST

    columns = graph.prepared.columns.vertices
    column = (
        columns[labels] if isinstance(labels, str) and labels in columns else vertex_column(graph, labels, "labels")
    )
    values = on_host(graph.executor.gather([column.values])[0])
    distinct_labels, places = np.unique(values, return_inverse=True)
    if len(distinct_labels) > MOST:
        raise InputError(
            f"labels has {len(distinct_labels):,} different ones, and triangles are counted by {MOST} at most: merge "
            "some, or count those that matter in a survey"
        )
    names = distinct_labels.tolist()
    if column.categories is not None:
        names = [column.categories[code] for code in names]
    return names, places.astype(np.uint8)


def _power_sums(graph: CountingContext, vertex_labels: Array, labels: int) -> list[tuple[int, int, int]]:
    """Return Σ x, Σ x² and Σ x³ of each label's vertices, x = d·(d - 1), as Python's integers."""
    oriented_graph = graph.prepared.graph
    degrees = graph.executor.gather([oriented_graph.out_degree.whole, oriented_graph.in_degree.whole])
    outward, inward = map(on_host, degrees)
    degree = outward.astype(np.int64) + inward
    sums = [[0, 0, 0] for _ in range(labels)]
    for label in range(labels):
        for value, count in zip(*np.unique(degree[vertex_labels == label], return_counts=True), strict=True):
            x = int(value) * (int(value) - 1)
            for power in range(3):
                sums[label][power] += int(count) * x ** (power + 1)
    return [(s, q, r) for s, q, r in sums]


def _expected(types: Sequence[tuple[int, ...]], sums: list[tuple[int, int, int]], triangles: int) -> list[float]:
    """Return the triangles of each type that the configuration model expects among this number of triangles."""
    sets = []
    for type_ in types:
        product = 1
        for label, times in Counter(type_).items():
            s, q, r = sums[label]
            product *= (s, (s * s - q) // 2, (s**3 - 3 * s * q + 2 * r) // 6)[times - 1]
        sets.append(product)
    total = sum(sets)
    return [triangles * product / total if total else 0.0 for product in sets]
