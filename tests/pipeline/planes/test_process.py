"""The plane of one process: graphs whose vertices are ranked by rows, against the slow oracles."""

from __future__ import annotations

import pickle
from collections import Counter

import pandas as pd
import pytest

import dasktc
from dasktc.api.count import build
from dasktc.executors.local import LocalExecutor
from dasktc.options import Method, Options
from dasktc.pipeline.planes.graph import RowHandles
from tests.support import oracle
from tests.support.emulation.host import needs_compiler
from tests.support.slow_pipeline import (
    orientation,
    pairwise_cover,
    prepared,
    random_edges,
    skewed_edges,
    source_of,
    tuned,
)
from tests.support.tiers import each_once

pytestmark = needs_compiler
WHOLE = Method(partition="whole")
MANY = 100_000


@pytest.fixture(autouse=True)
def small_pieces(emulated):
    """Several arrays of edges, and several chunks of ids."""
    chunk = emulated.chunk
    object.__setattr__(emulated, "chunk", 1 << 6)
    with tuned(piece_edges=1 << 7, split_edges=1 << 6):
        yield
    object.__setattr__(emulated, "chunk", chunk)


GRAPHS = {
    "nothing": [],
    "loops": [(5, 5), (7, 7)],
    "one edge": [(7, 9)],
    "one edge in many copies": [(7, 9), (9, 7)] * 500 + [(7, 7)],
    "random": random_edges(60, 700, 1),
    "skewed": skewed_edges(90, 900, 2),
    "both directions": [row for u, v in random_edges(50, 300, 3) for row in ((u, v), (v, u))],
    "a repeated row": random_edges(60, 500, 4) + [(3, 8)] * MANY,
    "a repeated leaf": skewed_edges(60, 500, 5) + [(1000, 1)] * MANY + [(1001, 1000)],
    "temporal": [row for edge in skewed_edges(40, 200, 6) for row in [edge] * (1 + sum(edge) % 12)],
    "matching": [(v, v + 300) for v in range(300)],
    "star": oracle.star(400) + [(1, 2)] * 3,
    "clique": oracle.complete(40),
}


def ranks_by_rows(edges):
    """The vertices by the rows that name them, and the edges over ranks."""
    slow = orientation(edges, by_rows=True)
    rank = {dense: place for place, dense in enumerate(slow.order)}
    return [slow.ids[dense] for dense in slow.order], {(rank[u], rank[v]) for u, v in slow.edges}


both = pytest.mark.parametrize("backend", ["cpu", "cuda"])


@both
@pytest.mark.parametrize("name", GRAPHS)
def test_edges_are_directed_by_rows(name, backend):
    """Ids, directions, degrees and wedges; and every degree is of distinct edges."""
    edges = GRAPHS[name]
    order, pairs = ranks_by_rows(edges)
    found = prepared(edges, parts=3, backend=backend, partition="whole", kernel="hub")
    graph, shift = found.graph, found.partition.layout.shift
    assert isinstance(graph.partitions, RowHandles)
    assert [sorted(order)[dense] for dense in graph.order.whole.tolist()] == order
    keys = [key for partition in graph.partitions for key in partition.tolist()]
    assert keys == sorted(source << shift | target for source, target in pairs)
    sources, targets = (Counter(pair[end] for pair in pairs) for end in (0, 1))
    assert graph.out_degree.whole.tolist() == [sources[rank] for rank in range(len(order))]
    assert graph.in_degree.whole.tolist() == [targets[rank] for rank in range(len(order))]
    assert graph.wedges == sum(sources[rank] * targets[rank] for rank in sources)
    assert graph.edges == len(pairs)


def named(kind, edges):
    """The edges with ids of another kind, as a frame."""
    gap = -(-(len(edges) + 66_500) // max(map(max, edges)))  # a range that is too wide for rows, and has a table
    name = {
        "range": lambda v: v + 7,
        "gaps": lambda v: 9 * v - 400,
        "table": lambda v: gap * v,
        "sparse": lambda v: v * 10**15 - 2**62,
        "text": lambda v: f"{v:05}",
    }[kind]
    ends = [[name(edge[end]) for edge in edges] for end in (0, 1)]
    return pd.DataFrame({"src": ends[0], "dst": ends[1]}, dtype="str" if kind == "text" else "int64")


@pytest.mark.parametrize(
    ("kind", "name", "backend"),
    each_once(
        pairwise_cover(
            ["range", "gaps", "table", "sparse", "text"], ["skewed", "a repeated leaf", "temporal"], ["cpu", "cuda"]
        )
    ),
)
def test_every_question(name, kind, backend):
    edges = GRAPHS[name]
    frame = named(kind, edges)
    graph = dasktc.prepare(frame, backend=backend, method=WHOLE)
    assert isinstance(graph._context.prepared.graph.partitions, RowHandles)
    pairs = list(frame.itertuples(index=False, name=None))
    result = graph.triangle_count(verify=1.0)
    assert int(result) == oracle.triangles(pairs)
    assert result.loops_dropped == sum(u == v for u, v in pairs)
    assert result.duplicates_dropped == len(pairs) - result.loops_dropped - len(oracle.clean(pairs))
    assert graph.triangles().to_dict() == oracle.triangles_per_vertex(pairs)
    supports = graph.edge_support()
    found = {frozenset((u, v)): support for u, v, support in supports.itertuples(index=False, name=None)}
    assert found == oracle.support(pairs)
    order, _ = ranks_by_rows(pairs)
    rank = {v: place for place, v in enumerate(order)}
    rows = graph.oriented_edges(frame="pandas")
    known = [sorted(edge, key=rank.__getitem__, reverse=True) for edge in oracle.clean(pairs)]
    assert [list(row) for row in rows.itertuples(index=False, name=None)] == sorted(known)
    other = dasktc.prepare(frame, backend="cpu", method=Method(partition="hash2d"))
    assert graph.clustering().to_dict() == pytest.approx(other.clustering().to_dict())
    assert graph.transitivity() == other.transitivity()


@pytest.mark.parametrize("name", ["a repeated leaf", "temporal", "matching"])
def test_columns_of_rows_become_keys_again(name):
    edges = GRAPHS[name]
    _, pairs = ranks_by_rows(edges)
    with tuned(one_partition=1, ranges_a_thread=3):
        found = prepared(edges, backend="cpu", partition="whole")
    known = sorted(source << found.partition.layout.shift | target for source, target in pairs)
    partitions = list(found.graph.partitions)
    assert [key for partition in partitions for key in partition.tolist()] == known


@pytest.mark.parametrize("name", ["a repeated leaf", "temporal", "matching"])
def test_a_plan_of_several_blocks_is_of_the_same_edges(name):
    """Columns of rows become keys again, and the blocks are built as those of any graph."""
    edges = GRAPHS[name]
    whole = dasktc.prepare(pd.DataFrame(edges, columns=["src", "dst"]), backend="cuda", method=WHOLE)
    memory = whole.plan.bytes_per_task - 1
    while True:  # a task is split as long as that suffices
        options = Options(backend="cuda", memory=memory)
        graph = build(LocalExecutor(), source_of(edges, parts=2), options)
        if graph.plan.parts > 1:
            break
        memory = memory * 9 // 10
    assert isinstance(graph._context.prepared.graph.partitions, RowHandles)
    assert int(graph.triangle_count(verify=1.0)) == oracle.triangles(edges)
    assert graph.oriented_edges(frame="pandas").equals(whole.oriented_edges(frame="pandas"))


@both
def test_a_graph_whose_block_is_built_keeps_nothing_of_its_edges(backend):
    """One call on a worker sends the facts of a graph to a client, which need not have a GPU."""
    frame = pd.DataFrame(GRAPHS["temporal"], columns=["src", "dst"])
    rows = dasktc.prepare(frame, backend=backend, method=WHOLE)._context.prepared.graph.partitions
    assert (len(rows), rows.take_rows()) == (0, None)
    assert len(pickle.loads(pickle.dumps(rows))) == 0


@pytest.mark.parametrize("more", [0, 1])
def test_so_many_rows_that_a_vertex_may_have_too_many_are_not_ranked_by_them(more):
    edges = GRAPHS["temporal"]
    with tuned(ranked_rows=sum(u != v for u, v in edges) + more):
        partitions = prepared(edges, backend="cuda", partition="whole").graph.partitions
    assert isinstance(partitions, RowHandles) == (more > 0)
