"""Helpers for tests of the pipeline: sources cut into parts, and slow oracles of its stages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from dasktc.api.graph import Graph
from dasktc.backends import get_backend, lazy_backend
from dasktc.backends.csr import OrientedCSR
from dasktc.executors.local import LocalExecutor
from dasktc.io.memory import from_object
from dasktc.io.source import ReadOptions, Source
from dasktc.options import Ids, Options
from dasktc.pipeline.planes import choice
from dasktc.pipeline.planes.tuning import TUNING
from dasktc.pipeline.prepare import Prepared, prepare_edges
from dasktc.pipeline.stages.edge_keys import unpack
from dasktc.registry import KERNELS, ORDERS
from tests.support.oracle import Edge, clean

EVERY_KERNEL = list(KERNELS["cpu"])
EVERY_REORDER = list(ORDERS)
EVERY_PARTITION = [
    {"partition": partition, "parts": parts, "splits": splits}
    for (partition, parts), splits in product(
        [
            ("whole", 1),
            ("edges", 1),
            *(("hash2d", n) for n in (1, 2, 3, 5)),
            *(("vertical", n) for n in (1, 2, 3)),
            *(("proxy", n) for n in (1, 2, 5)),
        ],
        (1, 3),
    )
]


class Oriented(NamedTuple):
    """The oriented graph over dense ids, computed by the slow rule."""

    ids: list[Any]
    """The caller's ids, ascending; the position of an id is its dense id."""
    order: list[int]
    """The dense id of each rank."""
    out: dict[int, list[int]]
    """Out-neighbours of each dense id, ascending."""

    @property
    def edges(self) -> set[tuple[int, int]]:
        return {(u, v) for u, row in self.out.items() for v in row}

    @property
    def in_degree(self) -> Counter:
        return Counter(chain.from_iterable(self.out.values()))

    @property
    def wedges(self) -> int:
        return sum(len(self.out[v]) for _, v in self.edges)


def orientation(edges: list[Edge]) -> Oriented:
    """Direct every edge to its end of higher degree, or of equal degrees to the smaller id."""
    simple = clean(edges)
    degree = Counter(chain.from_iterable(simple))
    ids = sorted(degree)
    order = sorted(range(len(ids)), key=lambda dense: (-degree[ids[dense]], dense))
    rank = {ids[dense]: place for place, dense in enumerate(order)}
    dense = {name: place for place, name in enumerate(ids)}
    out = {u: [] for u in range(len(ids))}
    for edge in simple:
        high, low = sorted(edge, key=rank.__getitem__)
        out[dense[low]].append(dense[high])
    return Oriented(ids, order, {u: sorted(row) for u, row in out.items()})


def source_of(edges: list[Edge], ids: Ids = "int", parts: int = 1, triangles: int | None = None) -> Source:
    """The edges as a source of at most `parts` parts."""
    step = max(1, -(-len(edges) // parts))
    pieces = [edges[first : first + step] for first in range(0, len(edges), step)]
    opened = [from_object([*map(list, zip(*piece, strict=True))], ReadOptions(ids=ids)) for piece in pieces]
    return Source("a test", tuple(chain.from_iterable(found.parts for found in opened)), ids, triangles)


def random_edges(vertices: int, edges: int, seed: int) -> list[Edge]:
    """Edges with uniform random ends, including loops and duplicates."""
    return [tuple(map(int, row)) for row in np.random.default_rng(seed).integers(0, vertices, (edges, 2))]


def skewed_edges(vertices: int, edges: int, seed: int) -> list[Edge]:
    """Edges between a few hubs and many other vertices."""
    drawn = np.random.default_rng(seed).random((edges, 2)) ** 3 * vertices
    return [tuple(map(int, row)) for row in drawn]


def prepared(edges: list[Edge], parts: int = 1, **options: Any) -> Prepared:
    """Run the stages up to the plan in this process."""
    given = Options(**options)
    return prepare_edges(
        LocalExecutor(backend=lazy_backend(given.chosen_backend)), source_of(edges, parts=parts), given
    )


def by_dense_id(found: Prepared) -> tuple[list[int], set[tuple[int, int]]]:
    """The dense id of each new id, and the oriented edges over dense ids."""
    order = found.graph.order.whole
    pairs = set()
    for keys in found.graph.partitions:
        source, target = unpack(keys, found.partition.shift)
        pairs |= set(zip(order[source].tolist(), order[target].tolist(), strict=True))
    return order.tolist(), pairs


def block_of(rows: list[list[int]], parts: int = 1, place: tuple[int, int] = (0, 0)) -> OrientedCSR:
    """A block from its rows."""
    offsets = np.cumsum([0, *map(len, rows)], dtype="int64")
    columns = np.array(list(chain.from_iterable(rows)), dtype="int32")
    return OrientedCSR(offsets, columns, parts, *place)


def pairwise_cover(*factors: list[Any]) -> list[tuple[Any, ...]]:
    """Rows that contain every pair of values of any two factors, chosen greedily."""
    rows = [tuple(enumerate(row)) for row in product(*map(range, map(len, factors)))]
    left = set(chain.from_iterable(combinations(row, 2) for row in rows))
    chosen = []
    while left:
        row = max(rows, key=lambda row: len(left.intersection(combinations(row, 2))))
        left.difference_update(combinations(row, 2))
        chosen.append(tuple(factors[i][k] for i, k in row))
    return chosen


def tuned(**fields: Any) -> Any:
    """Patch sizes on which planes depend, so that a handful of edges are treated as many."""
    return mock.patch.object(choice, "TUNING", replace(TUNING, **fields))


def cpu() -> Any:
    return get_backend("cpu")


def changed(graph, **fields):
    """A copy of a prepared graph with other blocks or facts, as a defect would leave them."""
    return Graph(replace(graph._context, **fields))
