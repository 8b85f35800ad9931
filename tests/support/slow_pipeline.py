"""Helpers for tests of the pipeline: sources cut into parts, and slow oracles of its stages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any, NamedTuple
from unittest import mock

import networkx as nx
import numpy as np
import pandas as pd
from hypothesis import strategies as st

import dasktc
from dasktc.api.graph import Graph
from dasktc.backends import get_backend, lazy_backend
from dasktc.backends.csr import OrientedCSR
from dasktc.executors.local import LocalExecutor
from dasktc.io.memory import from_object
from dasktc.io.source import ReadOptions, Source
from dasktc.options import Ids, Options
from dasktc.pipeline.planes import choice
from dasktc.pipeline.prepare import Prepared, prepare_edges
from dasktc.pipeline.stages.edge_keys import shift_of, unpack
from dasktc.pipeline.stages.orient import add_degrees, add_sources, oriented, ranks_of, zero_degrees
from dasktc.registry import KERNELS, ORDERS
from tests.support.keywords import keywords
from tests.support.oracle import Edge, clean

CPU = lazy_backend("cpu")
PLANS = [
    dict(partition="whole", splits=3),
    dict(partition="edges", splits=3),
    dict(partition="hash2d", parts=3),
    dict(partition="vertical", parts=2),
    dict(partition="proxy", parts=3),
]
"""Options of each scheme."""
REORDERS = ["degree", "collective", "indegree", "none"]
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


def orientation(edges: list[Edge], by_rows: bool = False) -> Oriented:
    """Direct every edge to its end of higher degree, or of equal degrees to the smaller id.

    By rows, a vertex weighs the rows that name it, at most V - 1; ids of a narrow range are numbered by it, so V is its
    width.
    """
    simple = clean(edges)
    degree = Counter(chain.from_iterable(simple))
    ids = sorted(degree)
    if by_rows:
        degree = Counter(end for edge in edges if edge[0] != edge[1] for end in edge)
        is_range = ids and isinstance(ids[0], int) and ids[-1] - ids[0] <= degree.total() // 2 + 65_535
        most = ids[-1] - ids[0] if is_range else len(ids) - 1
        degree = Counter({name: min(rows, most) for name, rows in degree.items()})
    order = sorted(range(len(ids)), key=lambda dense: (-degree[ids[dense]], dense))
    rank = {ids[dense]: place for place, dense in enumerate(order)}
    dense = {name: place for place, name in enumerate(ids)}
    out = {u: [] for u in range(len(ids))}
    for edge in simple:
        high, low = sorted(edge, key=rank.__getitem__)
        out[dense[low]].append(dense[high])
    return Oriented(ids, order, {u: sorted(row) for u, row in out.items()})


def sequential_ids(out: dict[int, list[int]], rank: dict[int, int], bands: Any) -> list[int]:
    """TRUST, sections 4.1 and 5.1: visit u by descending collective degree and number its neighbours.

    Bands follow one another, each given by its lowest and highest out-degree; vertices without in-neighbours are last.
    """
    collective = {u: sum(len(out[v]) for v in out[u]) for u in out}
    visits = sorted(out, key=lambda u: (-collective[u], rank[u]))
    numbered = []
    for low, high in bands:
        for v in [v for u in visits for v in out[u]] + sorted(out):
            if low <= len(out[v]) <= high and v not in numbered:
                numbered.append(v)
    return numbered


def expected_order(slow: Oriented, how: str, large: int = 100) -> list[int]:
    """The dense id of each new id."""
    if how == "degree":
        return slow.order
    if how == "none":
        return sorted(slow.out)
    rank = {dense: place for place, dense in enumerate(slow.order)}
    if how == "indegree":
        return sorted(slow.out, key=lambda v: (-slow.in_degree[v], rank[v]))
    banded = ((large + 1, len(slow.out)), (2, large), (0, 1))
    return sequential_ids(slow.out, rank, banded if how == "collective-banded" else ((0, len(slow.out)),))


def canonical_keys(edges: list[Edge], gap: int = 1) -> tuple[Any, int]:
    """Ascending keys of the distinct edges over dense ids, and an id's bits; with `gap` ids of no edge lie between."""
    slow = orientation(edges)
    shift = shift_of(gap * len(slow.ids))
    pairs = [(gap * min(edge), gap * max(edge)) for edge in slow.edges]
    return np.array(sorted(low << shift | high for low, high in pairs), dtype="int64"), shift


def oriented_keys(edges: list[Edge]) -> tuple[Any, Any, int]:
    """Keys of the edges over ranks, out-degrees of the ranks, and an id's bits, from the stages' functions."""
    keys, shift = canonical_keys(edges)
    none = zero_degrees(len(orientation(edges).ids), CPU)
    directed = oriented(keys, ranks_of([add_degrees(none.copy(), keys, shift, CPU)], CPU), shift, CPU)
    return directed, add_sources(none, directed, shift, CPU), shift


def key_arrays() -> st.SearchStrategy[Any]:
    """Short arrays of keys below 100, in any order."""
    return st.lists(st.integers(0, 99), max_size=40).map(lambda values: np.array(values, dtype="int64"))


def kept_by_part(out: dict[int, list[int]], local: set[int], how: str) -> tuple[Any, set[int], set[Any]]:
    """Vertices and edges of a part: those of G_p, and those that it keeps with `how`."""
    induced, vertices, edges = transformed(out, local)
    if how == "lstc":
        return induced, vertices, edges
    inward = {v: [u for u in out if v in out[u]] for v in out}
    around = local | {w for v in local for w in [*out[v], *inward[v]]}
    if how == "none":
        return induced, around, {(v, w) for v in around for w in out[v] if w in around}
    targets = {w for v in local for w in out[v]}
    return induced, local | targets, {(v, w) for v in local | targets for w in out[v] if w in targets}


def transformed(out: dict[int, list[int]], local: set[int]) -> tuple[Any, set[int], set[Any]]:
    """Algorithm 2, one proxy at a time: vertices and edges before and after."""
    inward = {v: [u for u in out if v in out[u]] for v in out}
    vertices = local | {w for v in local for w in [*out[v], *inward[v]]}
    induced = len(vertices), sum(w in vertices for v in vertices for w in out[v])
    while True:
        useless = [v for v in vertices - local if not any(u in vertices for u in inward[v])]
        if not useless:
            break
        vertices -= {useless[0]}
    edges = {(v, w) for v in vertices for w in out[v] if w in vertices}
    return induced, vertices, edges


def source_of(edges: list[Edge], ids: Ids = "int", parts: int = 1, triangles: int | None = None) -> Source:
    """The edges as a source of at most `parts` parts."""
    step = max(1, -(-len(edges) // parts))
    pieces = [edges[first : first + step] for first in range(0, len(edges), step)]
    opened = [from_object([*map(list, zip(*piece, strict=True))], ReadOptions(ids=ids)) for piece in pieces]
    return Source("a test", tuple(chain.from_iterable(found.parts for found in opened)), ids, triangles)


def frame_of(edges: list[Edge], ids: Ids = "int") -> pd.DataFrame:
    """The edges as a frame, as the readers make it."""
    src, dst = ([edge[end] for edge in edges] for end in (0, 1))
    return pd.DataFrame({"src": src, "dst": dst}, dtype="str" if ids == "text" else "int64")


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
        source, target = unpack(keys, found.partition.layout.shift)
        pairs |= set(zip(order[source].tolist(), order[target].tolist(), strict=True))
    return order.tolist(), pairs


def block_of(rows: list[list[int]], parts: int = 1, place: tuple[int, int] = (0, 0)) -> OrientedCSR:
    """A block from its rows."""
    offsets = np.cumsum([0, *map(len, rows)], dtype="int64")
    columns = np.array(list(chain.from_iterable(rows)), dtype="int32")
    return OrientedCSR(offsets, columns, parts, *place)


def pairwise_cover(*factors: list[Any]) -> list[tuple[Any, ...]]:
    """Rows that contain every pair of values of any two factors, chosen greedily."""
    bits: dict[Any, int] = {}  # a pair's, in the mask of each row that contains it
    masks = {
        row: sum(1 << bits.setdefault(pair, len(bits)) for pair in combinations(enumerate(row), 2))
        for row in product(*map(range, map(len, factors)))
    }
    left = (1 << len(bits)) - 1
    chosen = []
    while left:
        row = max(masks, key=lambda row: (left & masks[row]).bit_count())
        left &= ~masks[row]
        chosen.append(tuple(factor[k] for factor, k in zip(factors, row, strict=True)))
    return chosen


def is_by_rows(partition: str, reorder: str) -> bool:
    """Whether this process ranks vertices by rows, for a scheme and an order that were asked for."""
    return partition in ("whole", "edges") and reorder in ("degree", "auto")


def by_degree() -> Any:
    """A context in which vertices are ranked by their degrees, as graphs in shards are."""
    return tuned(ranked_rows=0)


def tuned(**fields: Any) -> Any:
    """Patch sizes on which planes depend, so that a handful of edges are treated as many."""
    return mock.patch.object(choice, "TUNING", replace(choice.TUNING, **fields))


def cpu() -> Any:
    return get_backend("cpu")


def changed(graph, **fields):
    """A copy of a prepared graph with other blocks or facts, as a defect would leave them."""
    return Graph(replace(graph._context, **fields))


def within(graph: Graph, memory: int) -> Graph:
    """A copy of a prepared graph whose plan has this memory."""
    prepared = graph._context.prepared
    return changed(graph, prepared=replace(prepared, plan=replace(prepared.plan, memory=memory)))


def without_an_edge(graph: Graph) -> Graph:
    """A copy of a prepared graph whose first block has lost its last edge."""
    block = graph._context.blocks[0, 0]
    offsets = np.minimum(block.offsets, block.edges - 1)
    cut_block = replace(block, offsets=offsets, columns=block.columns[:-1])
    return changed(graph, blocks={**graph._context.blocks, (0, 0): cut_block})


def prepare(edges: list[Edge], client: Any = None, **options: Any) -> Graph:
    """Prepare edges as a frame, with options by name."""
    return dasktc.prepare(pd.DataFrame(edges, columns=["src", "dst"]), client, **keywords(**options))


def simple(edges: list[Edge]) -> nx.Graph:
    """The simple graph of some edges."""
    return nx.Graph([tuple(edge) for edge in clean(edges)])
