"""Trusses in rounds over the blocks: those that one worker finds, wherever the graph lies."""

from __future__ import annotations

import networkx as nx
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.errors import CountError, InputError
from dasktc.questions import truss_rounds
from dasktc.questions.peeling import fits_one_worker
from tests.support import oracle
from tests.support.keywords import keywords
from tests.support.retuned import retuned
from tests.support.slow_pipeline import skewed_edges
from tests.support.tiers import some

GRIDS = [{"partition": "whole"}, {"partition": "edges", "splits": 3}, {"partition": "hash2d", "parts": 3}]
REORDERS = ["degree", "collective", "none"]
EDGES = skewed_edges(70, 900, 3)


def prepared(edges, peeled, client=None, **options):
    graph = dasktc.prepare(pd.DataFrame(edges, columns=["src", "dst"]), client, **keywords(**options))
    return retuned(graph, peeled_edges=peeled)


def truss(graph, k):
    frame = graph.truss(k, frame="pandas")
    return {frozenset(row[:2]): row[2] for row in frame.itertuples(index=False)}


def expected_truss(edges, k):
    found = nx.k_truss(nx.Graph([(u, v) for u, v in edges if u != v]), k)
    return {frozenset((u, v)): len(set(found[u]) & set(found[v])) for u, v in found.edges}


def same_trusses(graph, edges, ks=(2, 3, 4, 5, 7, 20)):
    for k in ks:
        assert truss(graph, k) == expected_truss(edges, k)
    assert truss(graph, None) == truss(prepared(edges, 10**9), None)


@given(
    edges=oracle.multigraphs(max_edges=90),
    peeled=st.sampled_from([0, 5, 40]),
    grid=st.sampled_from(GRIDS),
    reorder=st.sampled_from(REORDERS),
)
def test_any_multigraph_has_the_trusses_of_one_worker(edges, peeled, grid, reorder):
    same_trusses(prepared(edges, peeled, reorder=reorder, **grid), edges)


@pytest.mark.parametrize(
    ("edges", "peeled", "ks"),
    some(
        [(EDGES[:200], 100, [4]), (EDGES[:300], 0, [3]), (EDGES, 300, [7])],
        lambda _, peeled, __: peeled == 100,
    ),
)
def test_trusses_on_workers(client, edges, peeled, ks):
    options = {"distribute": "always", "partition": "hash2d", "parts": 2}
    same_trusses(prepared(edges, peeled, client, **options), edges, ks)


@pytest.mark.parametrize("peeled", [0, 300])
def test_trusses_within_a_budget(tmp_path, peeled):
    with prepared(EDGES, peeled, memory="20MB", work_dir=tmp_path, partition="hash2d", parts=2) as graph:
        same_trusses(graph, EDGES)


def test_a_graph_that_no_worker_can_peel_is_answered():
    """Peeling needs 19.9 MB, of which the worker has 19.8; edges that are in no 30-truss are dropped first."""
    source = dasktc.generate.kronecker(14, 16)
    with dasktc.prepare(source, threads=1) as graph:
        expected = truss(graph, 30)
    with dasktc.prepare(source, memory="24MB", threads=1) as graph:
        assert not fits_one_worker(graph._context)
        assert truss(graph, 30) == expected


def test_blocks_with_copies_of_edges_are_refused():
    graph = prepared(EDGES, 10, partition="vertical", parts=2)
    with pytest.raises(InputError, match="one worker peels at most 10"):
        graph.truss(4)


def test_a_count_that_misses_wedges_is_an_error(monkeypatch):
    monkeypatch.setattr(truss_rounds, "_wedges_and_vertices", lambda *degrees: (1, 1))
    with pytest.raises(CountError, match="wedge"):
        prepared(EDGES, 0).truss(20)
