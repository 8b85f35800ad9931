"""Triangles by the labels of their vertices, beside what chance gives between vertices of the same degrees.

The chance is that of the configuration model, in which the ends of edges are joined at random: i and j are adjacent
with probability d(i)·d(j) / 2E (Newman, SIAM Review 45, 167-256, 2003, section IV.B). A vertex of a triangle uses two
of its ends, so that three vertices are one with a probability proportional to x(i)·x(j)·x(k), x = d·(d - 1). A triangle
of the model then has the labels a, b, c with the probability

    p(abc) = N(abc) / Σ N,    N(abc) = Σ x(i)·x(j)·x(k) over all sets {i, j, k} of vertices with these labels,

and of T triangles T·p(abc) are expected. With the power sums s = Σ x, q = Σ x² and r = Σ x³ of a label's vertices,
N(abc) = s(a)·s(b)·s(c), N(aab) = (s(a)² - q(a))/2·s(b) and N(aaa) = (s(a)³ - 3·s(a)·q(a) + 2·r(a))/6, in integers.

A GPU counts in subgraphs. With T(S) the triangles between vertices whose labels are in S, and Σ(a, S) those of all
vertices of label a there, aaa = T(a); aab + abb = T(ab) - aaa - bbb and 2·aab + abb = Σ(a, ab) - 3·aaa; and abc is what
the others leave of T(abc). So the fastest kernels count, whichever they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, combinations_with_replacement, permutations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dasktc.answers.edge_support import VISITED, kernel_and_bytes
from dasktc.answers.frames import array_module, backend_of
from dasktc.backends import Backend
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import refuse_unless
from dasktc.errors import InputError
from dasktc.executors.base import Fold, unchanged
from dasktc.executors.progress.tracker import Progress
from dasktc.pipeline.stages.columns import Column
from dasktc.questions.sums import SUM
from dasktc.questions.survey import Batch, TaskArrays, in_batches, memory_beside, on_device, over_tasks
from dasktc.questions.vertex_columns import vertex_column

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["triangle_types"]

Array = Any
STAGE = "triangle types"
MOST_SUBSETS = 8
"""Most labels by which a GPU counts in subgraphs: of one, two and three labels there are 92."""
EDGE_BYTES = 24
"""Bytes of an edge while those of a subgraph are selected: its bits, a mask, its place and its column."""


@dataclass(frozen=True)
class LabelCounts:
    """The visitor that counts triangles by the labels of u, v and w, with kernels; on a GPU in any order of these.

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
            return self._by_subsets(task, arrays.vectors[0], (row_labels, column_labels, third_labels))
        from dasktc.backends.cpu.labels import label_counts  # loads Numba: only when needed

        counts, wedges = label_counts(task, (row_labels, column_labels, third_labels), self.labels)
        return counts, int(counts.sum()), wedges

    def _by_subsets(self, task: BlockTask, vertex_labels: Array, ends: tuple[Array, ...]) -> tuple[Array, int, int]:
        """Count from the edges between vertices of one, two and three labels; only a <= b <= c has counts."""
        backend, blocks = backend_of(vertex_labels), (task.index, task.table, task.stream)
        edge_bits = {id(block): _label_bits(block, vertex_labels, backend) for block in blocks}
        sizes = {side: len(of_role) for side, of_role in enumerate(ends)}
        counts, whole = np.zeros((self.labels,) * 3, np.int64), backend.count(task, self.kernel)

        def between(*labels: int) -> BlockTask:
            if len(labels) == self.labels:
                return task
            subset = sum(1 << label for label in labels)
            parts = {id(block): _selected(block, edge_bits[id(block)], subset) for block in blocks}
            index, table, stream = (parts[id(block)] for block in blocks)
            return replace(task, index=index, table=table, stream=stream)

        for a in range(self.labels):
            counts[a, a, a] = backend.count(between(a), self.kernel).triangles
        for a, b in combinations(range(self.labels), 2):
            sums, triangles, _ = backend.vertex_support(between(a, b), self.kernel, (0, 1, 2), sizes)
            incidences = sum(int((sums[side] * (of_role == a)).sum()) for side, of_role in enumerate(ends))
            mixed = triangles - int(counts[a, a, a] + counts[b, b, b])
            counts[a, a, b] = incidences - 3 * int(counts[a, a, a]) - mixed
            counts[a, b, b] = mixed - int(counts[a, a, b])
        for labels in combinations(range(self.labels), 3):
            triangles = backend.count(between(*labels), self.kernel).triangles if self.labels > 3 else whole.triangles
            counts[labels] = triangles - int(counts[np.ix_(labels, labels, labels)].sum())
        total, fewest = int(counts.sum()), int(counts.min())
        fact = f"triangles by labels are {total:,}, of a type at least {fewest:,}, but {whole.triangles:,} were counted"
        refuse_unless(total == whole.triangles and fewest >= 0, fact)
        return counts, whole.triangles, whole.wedges


def _label_bits(block: OrientedCSR, vertex_labels: Array, backend: Backend) -> Array:
    """Return the labels of both ends of a block's edges, as bits of uint8."""
    xp, bits = backend.array, (1 << vertex_labels.astype("uint8")).astype("uint8")
    if not block.edges:
        return xp.empty(0, dtype="uint8")
    row_ids = xp.minimum(block.row_ids(xp.arange(block.rows)), len(bits) - 1)  # there may be one more, without edges
    column_ids = block.column_ids(xp.arange(1 + int(block.columns.max())))
    edge_bits = bits.take(row_ids).take(backend.peel.rows(block))
    edge_bits |= bits.take(column_ids).take(block.columns)
    return edge_bits


def _selected(block: OrientedCSR, edge_bits: Array, subset: int) -> OrientedCSR:
    """Select the edges of a block both of whose ends have labels of a subset; rows stay."""
    places = array_module(edge_bits).flatnonzero((edge_bits & (255 - subset)) == 0)
    return replace(block, offsets=places.searchsorted(block.offsets), columns=block.columns.take(places))


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
    handle = graph.answers.submit_replicated("columns", unchanged, vertex_labels)
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
    degrees = graph.prepared.graph.out_degree.whole, graph.prepared.graph.in_degree.whole
    power_sums = graph.executor.submit(STAGE, _power_sums, vertex_labels, *degrees, len(names))
    expected = _expected(types, graph.executor.gather([power_sums])[0], sum(totals))
    ends = {role: pd.Index([names[type_[place]] for type_ in types]) for place, role in enumerate("abc")}
    return pd.DataFrame({**ends, "triangles": np.array(totals, np.int64), "expected": np.array(expected, np.float64)})


def _kernel_and_bytes(graph: CountingContext, labels: int) -> tuple[str, int]:
    """Return the kernel that counts by labels, VISITED for batches of triangles, and what it takes beside blocks."""
    if not on_device(graph):
        return "", 8 * 5 * labels**3
    if labels > MOST_SUBSETS or not graph.edges:
        return VISITED, 0
    kernel, nbytes = kernel_and_bytes(graph)
    sizes, blocks = graph.prepared.sizes, min(3, graph.prepared.sizes.edges.size)
    nbytes += blocks * (EDGE_BYTES * int(sizes.edges.max()) + 40 * (int(sizes.rows.max()) + 1))
    _, room = memory_beside(graph, STAGE, [], [], 0)
    return (kernel, nbytes) if nbytes + graph.plan.vertices <= room else (VISITED, 0)


def _labels(graph: CountingContext, labels: Any) -> tuple[list[Any], Any]:
    """Return the labels, ascending, and a handle of the place of each vertex's label among them, by the blocks' ids."""
    from dasktc.backends.cpu.labels import MOST

    columns, executor = graph.prepared.columns.vertices, graph.executor
    column = (
        columns[labels] if isinstance(labels, str) and labels in columns else vertex_column(graph, labels, "labels")
    )
    result = executor.submit(STAGE, _distinct_and_places, column.values, MOST)
    (distinct_labels,), (places,) = executor.transpose(STAGE, [result], 2)
    ((number, names),) = executor.gather([distinct_labels])
    if number > MOST:
        raise InputError(
            f"labels has {number:,} different ones, and triangles are counted by {MOST} at most: merge some, or count "
            "those that matter in a survey"
        )
    if column.categories is not None:
        names = [column.categories[code] for code in names]
    return names, places


def _distinct_and_places(values: Array, most: int) -> list[Any]:
    """Return the number of distinct values and up to `most` of them, ascending; and each value's place, uint8."""
    distinct_values = array_module(values).unique(values)
    places = distinct_values.searchsorted(values).astype("uint8")
    return [(len(distinct_values), distinct_values[:most].tolist()), places]


def _power_sums(vertex_labels: Array, outward: Array, inward: Array, labels: int) -> list[tuple[int, int, int]]:
    """Return Σ x, Σ x² and Σ x³ of each label's vertices, x = d·(d - 1), as Python's integers."""
    degree, xp = outward.astype("int64") + inward, array_module(outward)
    sums = [[0, 0, 0] for _ in range(labels)]
    for label in range(labels):
        counts = xp.bincount(degree[vertex_labels == label])
        values = xp.flatnonzero(counts)
        for value, count in zip(values.tolist(), counts.take(values).tolist(), strict=True):
            x = value * (value - 1)
            for power in range(3):
                sums[label][power] += count * x ** (power + 1)
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
