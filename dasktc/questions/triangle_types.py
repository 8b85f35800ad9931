"""Triangles by the labels of their vertices, beside what chance gives between vertices of the same degrees.

The chance is that of the configuration model, in which the ends of edges are joined at random: i and j are adjacent
with probability d(i)·d(j) / 2E (Newman, SIAM Review 45, 167-256, 2003, section IV.B). A vertex of a triangle uses two
of its ends, so that three vertices are one with a probability proportional to x(i)·x(j)·x(k), x = d·(d - 1). A triangle
of the model then has the labels a, b, c with the probability

    p(abc) = N(abc) / Σ N,    N(abc) = Σ x(i)·x(j)·x(k) over all sets {i, j, k} of vertices with these labels,

and of T triangles T·p(abc) are expected. With the power sums s = Σ x, q = Σ x² and r = Σ x³ of a label's vertices,
N(abc) = s(a)·s(b)·s(c), N(aab) = (s(a)² - q(a))/2·s(b) and N(aaa) = (s(a)³ - 3·s(a)·q(a) + 2·r(a))/6, in integers.

A GPU parts the edges of every block by the label of their column. The triangles of the edges to label b in the index,
and to label c in table and stream, are those with these labels of v and w: a kernel counts them by vertex u, and the
wedges of all pairs of labels together are those of one count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement, permutations, product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dasktc.answers.edge_support import VISITED, kernel_and_bytes
from dasktc.answers.frames import array_module, backend_of
from dasktc.backends.csr import BlockTask, OrientedCSR, on_host
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import refuse_unless
from dasktc.errors import InputError
from dasktc.executors.base import Fold
from dasktc.executors.progress.tracker import Progress
from dasktc.pipeline.stages.columns import Column
from dasktc.questions.sums import SUM
from dasktc.questions.survey import Batch, TaskArrays, in_batches, memory_beside, on_device, over_tasks
from dasktc.questions.vertex_columns import vertex_column
from dasktc.wording import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["triangle_types"]

Array = Any
STAGE = "triangle types"
MOST_PARTS = 8
"""Most labels by which a GPU parts the edges: each pair of labels takes a launch of some kernels."""
PART_BYTES = 24
"""Bytes of an edge while edges are parted: columns of the parts, and a label, a mask and running sums."""


@dataclass(frozen=True)
class LabelCounts:
    """The visitor that counts triangles by the labels of u, v and w, with kernels.

    Attributes
    ----------
    labels : int
    kernel : str
        On a GPU, one that counts triangles by vertex.
    """

    labels: int
    kernel: str = ""
    fold: ClassVar[Fold[Any]] = SUM

    def visit(self, task: BlockTask, arrays: TaskArrays) -> tuple[Array, int, int]:
        """Count the triangles of a task."""
        row_labels, column_labels, third_labels = arrays.of_ends(task, 0)
        if self.kernel:
            return self._by_parts(task, arrays.vectors[0], row_labels)
        from dasktc.backends.cpu.labels import label_counts  # loads Numba: only when needed

        counts, wedges = label_counts(task, (row_labels, column_labels, third_labels), self.labels)
        return counts, int(counts.sum()), wedges

    def _by_parts(self, task: BlockTask, vertex_labels: Array, row_labels: Array) -> tuple[Array, int, int]:
        """Count by vertex u the triangles of each label of v and of w: those of one part of each block."""
        backend, blocks, labels = backend_of(row_labels), (task.index, task.table, task.stream), range(self.labels)
        parts = {id(block): _parts(block, vertex_labels, self.labels) for block in blocks}
        index, table, stream = (parts[id(block)] for block in blocks)
        columns = 1 + int(task.table.columns.max()) if task.table.edges else 0
        sizes, masks = {0: task.index.rows, 1: task.stream.rows, 2: columns}, [row_labels == u for u in labels]
        sums, triangles, wedges = list[Array](), 0, 0
        for w, v in product(labels, labels):  # in this order kernels find the tables of table and stream again
            part = replace(task, index=index[v], table=table[w], stream=stream[w])
            of_sides, more, begun = backend.vertex_support(part, self.kernel, (0, 1, 2), sizes)
            sums += [(of_sides[0] * mask).sum() for mask in masks]
            triangles, wedges = triangles + more, wedges + begun
        counts = on_host(backend.array.stack(sums)).reshape((self.labels,) * 3).transpose()
        fact = f"vertices by label have {plural(int(counts.sum()), 'triangle')}, but {triangles:,} were counted"
        refuse_unless(int(counts.sum()) == triangles, fact)
        return counts, triangles, wedges


def _parts(block: OrientedCSR, vertex_labels: Array, labels: int) -> list[OrientedCSR]:
    """Part a block's edges by the label of their column's vertex; each part has all rows."""
    if not block.edges:
        return [block] * labels
    xp, parts = array_module(block.columns), list[OrientedCSR]()
    ids = block.column_ids(xp.arange(1 + int(block.columns.max())))
    edge_labels = vertex_labels.take(ids).take(block.columns)
    is_behind, lasts = block.offsets > 0, xp.maximum(block.offsets - 1, 0)
    for label in range(labels):
        mask = edge_labels == label
        offsets = xp.cumsum(mask, dtype="int64").take(lasts) * is_behind
        parts.append(replace(block, offsets=offsets, columns=block.columns[mask]))
    return parts


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
    counts = np.zeros((len(names),) * 3, np.int64)
    handle = graph.answers.submit_replicated("columns", graph.executor.backend.array.asarray, vertex_labels)
    column, (kernel, nbytes) = Column("uint8", None, handle), _kernel_and_bytes(graph, len(names))
    if kernel == VISITED:
        function = partial(_types_of_batch, labels=len(names))
        results = in_batches(graph, STAGE, function, SUM, {"label": column}, {}, progress)
    else:
        results = over_tasks(graph, STAGE, LabelCounts(len(names), kernel), [column], [], nbytes, progress)
    for task_counts in results:
        counts = SUM.combine([counts, task_counts])
    types = list(combinations_with_replacement(range(len(names)), 3))
    totals = [sum(int(counts[roles]) for roles in set(permutations(type_))) for type_ in types]
    expected = _expected(types, _power_sums(graph, vertex_labels, len(names)), sum(totals))
    ends = {role: pd.Index([names[type_[place]] for type_ in types]) for place, role in enumerate("abc")}
    return pd.DataFrame({**ends, "triangles": np.array(totals, np.int64), "expected": np.array(expected, np.float64)})


def _kernel_and_bytes(graph: CountingContext, labels: int) -> tuple[str, int]:
    """Return the kernel that counts by labels, VISITED for batches of triangles, and what it takes beside blocks."""
    if not on_device(graph):
        return "", 8 * 5 * labels**3
    if labels > MOST_PARTS or not graph.edges:
        return VISITED, 0
    kernel, nbytes = kernel_and_bytes(graph)
    sizes, blocks = graph.prepared.sizes, min(3, graph.prepared.sizes.edges.size)
    nbytes += blocks * (PART_BYTES * int(sizes.edges.max()) + 8 * (labels + 3) * (int(sizes.rows.max()) + 1))
    _, room = memory_beside(graph, STAGE, [], [], 0)
    return (kernel, nbytes) if nbytes + graph.plan.vertices <= room else (VISITED, 0)


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
