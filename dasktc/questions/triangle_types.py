"""Triangles by the labels of their vertices, beside what chance gives between vertices of the same degrees.

The chance is that of the configuration model, in which the ends of edges are joined at random: i and j are adjacent
with probability d(i)·d(j) / 2E (Newman, SIAM Review 45, 167-256, 2003, section IV.B). A vertex of a triangle uses two
of its ends, so that three vertices are one with a probability proportional to x(i)·x(j)·x(k), x = d·(d - 1). A triangle
of the model then has the labels a, b, c with the probability

    p(abc) = N(abc) / Σ N,    N(abc) = Σ x(i)·x(j)·x(k) over all sets {i, j, k} of vertices with these labels,

and of T triangles T·p(abc) are expected. With the power sums s = Σ x, q = Σ x² and r = Σ x³ of a label's vertices,
N(abc) = s(a)·s(b)·s(c), N(aab) = (s(a)² - q(a))/2·s(b) and N(aaa) = (s(a)³ - 3·s(a)·q(a) + 2·r(a))/6, in integers.

A GPU counts in subgraphs: all triangles of those edges whose ends have the labels a and a; with those of a and b, also
the triangles aab; and of all edges between the labels a, b and c, what is left of abc. So the fastest kernels count.
"""

# One H200, ms, Kronecker 22, three labels, beside 21 of the triangles by vertex; memory from cudaMalloc, as outside a
# call                                            predicted  measured  learnt
# batches of triangles                                1,500     1,720
# index, table and stream parted by label: 9 pairs       60       137  8 a pair, of a ninth of the wedges: all edges of
#                                                                      the index are looked at three times
# subgraphs, pairs of labels by vertex                   70       106  whole 10, pairs 10 each, single labels 3,
#                                                                      selecting edges 2 each: 67; the rest is not
#                                                                      explained
# subgraphs, counts alone                                65       115  a block was parted for each of its three roles
# each block parted once, by one table                   40        60  kernels 29, parting 12: 3.0 times the triangles
#                                                                      by vertex. Labels of a Series, not kept in the
#                                                                      graph, take 150 more: the host looks up 2.4 M ids

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, combinations, combinations_with_replacement, permutations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dasktc.answers.frames import array_module, backend_of
from dasktc.backends import Backend
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import refuse_unless
from dasktc.errors import InputError
from dasktc.executors.base import Fold, starmap
from dasktc.options import CountOptions
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.stages.columns import Column
from dasktc.questions.sums import SUM
from dasktc.questions.survey import Batch, TaskArrays, in_batches, memory_beside, on_device, over_tasks
from dasktc.questions.vertex_columns import vertex_column

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["triangle_types"]

Array = Any
STAGE = "triangle types"
EDGE_BYTES = 24
"""Bytes of an edge while those of a subgraph are selected: its bits, a mask, its place and its column."""


@dataclass(frozen=True)
class LabelCounts:
    """The visitor that counts triangles by the labels of u, v and w; on a GPU by those of any order, a <= b <= c."""

    labels: int
    kernel: str = ""
    """On a GPU, the kernel that counts."""
    fold: ClassVar[Fold[Any]] = SUM

    def visit(self, task: BlockTask, arrays: TaskArrays) -> tuple[Array, int, int]:
        """Count the triangles of a task."""
        if self.kernel:
            return self._in_subgraphs(task, arrays.vertices[0])
        from dasktc.backends.cpu.labels import label_counts  # loads Numba: only when needed

        row_labels, column_labels, third_labels = arrays.vertices[0]
        counts, wedges = label_counts(task, (row_labels, column_labels, third_labels), self.labels)
        return counts, int(counts.sum()), wedges

    def _in_subgraphs(self, task: BlockTask, end_labels: list[Array]) -> tuple[Array, int, int]:
        backend, triple = backend_of(end_labels[0]), (task.index, task.table, task.stream)
        pairs = combinations([(1 << labels.astype("uint8")).astype("uint8") for labels in end_labels], 2)
        blocks = {id(block): (block, pair) for block, pair in zip(triple, pairs, strict=True)}
        edge_bits = {place: _label_bits(block, *pair, backend) for place, (block, pair) in blocks.items()}
        counts, whole = np.zeros((self.labels,) * 3, np.int64), backend.count(task, self.kernel)

        def triangles(labels: Sequence[int], *ends: int) -> int:
            """Count in the edges between these labels that have an end with one of `ends`."""
            if len(ends) == self.labels:
                return whole.triangles
            among, touching = (sum(1 << label for label in some) for some in (labels, ends))
            bits = np.arange(256)
            table = backend.array.asarray((bits & ~among == 0) & (bits & touching != 0))
            parts = {place: _selected(block, table.take(edge_bits[place])) for place, (block, _) in blocks.items()}
            index, of_table, stream = (parts[id(block)] for block in triple)
            return backend.count(replace(task, index=index, table=of_table, stream=stream), self.kernel).triangles

        # Of the triangles in each subgraph those of fewer labels are subtracted.
        for a in range(self.labels):
            counts[a, a, a] = triangles([a], a)
        for a, b in permutations(range(self.labels), 2):
            counts[*sorted((a, a, b)),] = triangles([a, b], a) - counts[a, a, a]
        for labels in combinations(range(self.labels), 3):
            counts[labels] = triangles(labels, *labels) - counts[np.ix_(labels, labels, labels)].sum()
        total, fewest = int(counts.sum()), int(counts.min())
        fact = f"triangles by labels are {total:,}, of a type at least {fewest:,}, but {whole.triangles:,} were counted"
        refuse_unless(total == whole.triangles and fewest >= 0, fact)
        return counts, whole.triangles, whole.wedges


def _label_bits(block: OrientedCSR, row_bits: Array, column_bits: Array, backend: Backend) -> Array:
    """Return the labels of both ends of a block's edges, as bits of uint8, from those of its rows and its columns."""
    edge_bits = row_bits.take(backend.peel.rows(block))
    edge_bits |= column_bits.take(block.columns)
    return edge_bits


def _selected(block: OrientedCSR, mask: Array) -> OrientedCSR:
    """Select edges of a block; rows stay."""
    places = array_module(mask).flatnonzero(mask)
    return replace(block, offsets=places.searchsorted(block.offsets), columns=block.columns.take(places))


def _types_of_batch(batch: Batch, labels: int) -> Array:
    """Count triangles by the labels of u, v and w."""
    types = batch["label_u"].astype("int32")
    for role in "vw":
        types *= labels
        types += batch[f"label_{role}"]
    return array_module(types).bincount(types, minlength=labels**3).reshape((labels,) * 3)


def triangle_types(graph: CountingContext, labels: Any, options: CountOptions | None = None) -> pd.DataFrame:
    """Count triangles by the labels of their vertices; see `Graph.triangle_types`."""
    import pandas as pd

    names, vertex_labels = _labels(graph, labels)
    column = Column("uint8", None, vertex_labels)
    kernel, nbytes = _kernel_and_bytes(graph, column, len(names))
    if kernel is None:
        function = partial(_types_of_batch, labels=len(names))
        results = in_batches(graph, STAGE, function, SUM, {"label": column}, {}, options)
    else:
        results = over_tasks(graph, STAGE, LabelCounts(len(names), kernel), [column], [], nbytes, options)
    counts = reduce(SUM.add, results, np.zeros((len(names),) * 3, np.int64))
    types = list(combinations_with_replacement(range(len(names)), 3))
    totals = [sum(int(counts[roles]) for roles in set(permutations(type_))) for type_ in types]
    expected = _expected(types, _power_sums(graph, vertex_labels, len(names)), sum(totals))
    ends = {role: pd.Index([names[type_[place]] for type_ in types]) for place, role in enumerate("abc")}
    return pd.DataFrame({**ends, "triangles": np.array(totals, np.int64), "expected": np.array(expected, np.float64)})


def _kernel_and_bytes(graph: CountingContext, column: Column, labels: int) -> tuple[str | None, int]:
    """Return the kernel of a GPU that counts by labels, None for batches of triangles, and bytes beside the blocks."""
    if not on_device(graph):
        return "", 8 * 5 * labels**3
    if labels > graph.tuning.subset_labels:
        return None, 0
    sizes, blocks = graph.prepared.sizes, min(3, graph.prepared.sizes.edges.size)
    of_selection = blocks * (EDGE_BYTES * int(sizes.edges.max()) + 40 * (int(sizes.rows.max()) + 1))
    _, room = memory_beside(graph, STAGE, [column], [], 0)
    nbytes = graph.plan.bytes_per_task + of_selection
    return (graph.options.chosen_kernel, nbytes) if nbytes <= room else (None, 0)


def _labels(graph: CountingContext, labels: Any) -> tuple[list[Any], Sharded]:
    """Return the labels, ascending, and the place of each vertex's label among them, by the blocks' ids."""
    from dasktc.backends.cpu.labels import MOST

    columns, executor = graph.prepared.columns.vertices, graph.executor
    column = (
        columns[labels] if isinstance(labels, str) and labels in columns else vertex_column(graph, labels, "labels")
    )
    parts = executor.gather(executor.map(STAGE, _distinct_labels, list(column.values.parts), MOST))
    names = sorted(set(chain.from_iterable(part_names for _, part_names in parts)))
    if (number := max([len(names), *(count for count, _ in parts)])) > MOST:
        raise InputError(
            f"labels has at least {number:,} different ones, and triangles are counted by {MOST} at most: merge some, "
            "or count those that matter in a survey"
        )
    places = Sharded(
        column.values.starts, executor.map(STAGE, _places_of_labels, list(column.values.parts), names, column.dtype)
    )
    return [column.categories[code] for code in names] if column.categories is not None else names, places


def _distinct_labels(values: Array, most: int) -> tuple[int, list[Any]]:
    """Return the number of distinct values, and up to `most` of them."""
    distinct_values = array_module(values).unique(values)
    return len(distinct_values), distinct_values[:most].tolist()


def _places_of_labels(values: Array, names: list[Any], dtype: str) -> Array:
    """Return the place of each value among ascending ones, uint8."""
    return array_module(values).asarray(names, dtype=dtype).searchsorted(values).astype("uint8")


def _power_sums(graph: CountingContext, labels: Sharded, count: int) -> list[tuple[int, ...]]:
    """Return Σ x, Σ x² and Σ x³ of each label's vertices, x = d·(d - 1), as Python's integers."""
    degrees = graph.prepared.graph.out_degree.parts, graph.prepared.graph.in_degree.parts
    calls = [(*parts, count) for parts in zip(labels.parts, *degrees, strict=True)]
    shard_sums = graph.executor.gather(starmap(graph.executor, STAGE, _power_sums_of_shard, calls))
    return [tuple(map(sum, zip(*label_sums, strict=True))) for label_sums in zip(*shard_sums, strict=True)]


def _power_sums_of_shard(vertex_labels: Array, outward: Array, inward: Array, labels: int) -> list[tuple[int, ...]]:
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


def _expected(types: Sequence[tuple[int, ...]], sums: list[tuple[int, ...]], triangles: int) -> list[float]:
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
