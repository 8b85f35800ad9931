"""Connected subgraphs of four vertices, against igraph, NetworkX and the definition."""

from __future__ import annotations

from itertools import chain, combinations
from math import comb
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc import generate
from dasktc.errors import CountError, InputError
from dasktc.options import Method
from dasktc.questions import motifs as question
from dasktc.questions.motifs import KINDS, PARTS
from tests.support import oracle
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import compiler
from tests.support.keywords import keywords
from tests.support.retuned import retuned
from tests.support.slow_pipeline import skewed_edges, tuned
from tests.support.tiers import each_once

DATA = Path(__file__).parents[1] / "data"
SMALL = {
    "path": nx.path_graph(4),
    "star": nx.star_graph(3),
    "cycle": nx.cycle_graph(4),
    "paw": nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)]),
    "diamond": nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3), (0, 3)]),
    "clique": nx.complete_graph(4),
}
ORDERS = ["degree", "collective", "indegree", "none"]


def prepare(edges, client=None, **options):
    frame = pd.DataFrame(edges, columns=["src", "dst"])
    return dasktc.prepare(frame, client, **keywords(**dict(backend="cpu") | options))


def known(edges):
    """Induced numbers by looking at every four vertices."""
    graph, counts = nx.Graph([tuple(edge) for edge in oracle.clean(edges)]), dict.fromkeys(KINDS, 0)
    kinds = {tuple(sorted(d for _, d in small.degree)): kind for kind, small in SMALL.items()}
    for chosen in combinations(graph, 4):
        within = graph.subgraph(chosen)
        kind = kinds.get(tuple(sorted(d for _, d in within.degree)))
        if kind is not None:
            counts[kind] += 1
    return counts


def of_igraph(edges):
    """Induced numbers of igraph, whose classes are numbered by isomorphism."""
    _, dense = np.unique(np.array(edges), return_inverse=True)
    numbers = igraph.Graph(dense.reshape(-1, 2).tolist()).simplify().motifs_randesu(size=4)
    return {kind: int(numbers[igraph.Graph(list(small.edges)).isoclass()]) for kind, small in SMALL.items()}


def parts_of(graph, kind):
    """Subgraphs of a graph of four vertices, by the edges chosen, that are of a kind."""
    like, size = SMALL[kind], SMALL[kind].number_of_edges()
    return sum(nx.is_isomorphic(nx.Graph(chosen), like) for chosen in combinations(graph.edges, size))


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_contain_others_so_often(kind):
    expected = {part: parts_of(SMALL[kind], part) for part in KINDS}
    assert expected.pop(kind) == 1
    assert {part: times for part, times in expected.items() if times} == PARTS.get(kind, {})
    edges = list(SMALL[kind].edges)
    assert prepare(edges).motifs() == {part: int(part == kind) for part in KINDS}
    assert prepare(edges).motifs(induced=False) == {kind: 1, **expected}


@pytest.mark.parametrize(
    "edges", [pytest.param(edges, id=name) for name, edges, _ in oracle.GRAPHS if len(edges) < 250]
)
def test_named_graphs(edges):
    counts = prepare(edges).motifs()
    assert counts == (known(edges) if len({*chain(*edges)}) <= 20 else of_igraph(edges))
    assert all(type(count) is int for count in counts.values())


@given(oracle.text_multigraphs(), st.sampled_from(ORDERS))
def test_any_multigraph(edges, reorder):
    assert prepare(edges, reorder=reorder, partition="whole", splits=2).motifs() == known(edges)


@pytest.mark.parametrize("file", ["netscience.csv.gz", "dolphins.mtx.gz", "polbooks.mtx.gz", "karate.csv.gz"])
def test_real_graphs(file):
    with dasktc.prepare(str(DATA / file), backend="cpu", method=Method(partition="whole")) as graph:
        assert graph.motifs() == of_igraph(graph.edge_support()[["src", "dst"]].to_numpy())


@pytest.mark.parametrize(("reorder", "threads"), each_once((order, threads) for order in ORDERS for threads in (1, 3)))
def test_random_graphs(reorder, threads):
    edges = skewed_edges(120, 900, 2)
    simple = [tuple(edge) for edge in oracle.clean(edges)]
    assert prepare(edges, reorder=reorder, threads=threads).motifs() == of_igraph(simple)
    source = generate.kronecker(7)
    graph = dasktc.prepare(source, threads=threads, **keywords(reorder=reorder))
    assert graph.motifs() == of_igraph(graph.edge_support()[["src", "dst"]].to_numpy())


def test_numbers_exceed_64_bits():
    leaves = 4_000_000
    graph = dasktc.prepare((np.zeros(leaves, np.int64), np.arange(1, leaves + 1)), threads=1)
    assert graph.motifs() == dict.fromkeys(KINDS, 0) | {"star": comb(leaves, 3)}
    assert comb(leaves, 3) > 2**63


def test_sums_are_exact():
    degrees, triangles = np.full(3, 2**31 - 1), np.full(3, 2**61 - 7)
    stars, paws = question._sums_of_vertices(degrees, triangles)
    assert stars == 3 * comb(2**31 - 1, 3)
    assert paws == 3 * (2**61 - 7) * (2**31 - 3)
    ends, supports = np.full(5, 2**31 - 1), np.full(5, 2**31 - 1)
    assert question._sums_of_edges(supports, ends, ends) == (5 * (2**31 - 2) ** 2, 5 * comb(2**31 - 1, 2))


def test_what_is_refused():
    edges = oracle.complete(30)
    with pytest.raises(InputError, match=r"cliques of 3 vertices take at most .* more than the bound of 4e\+03"):
        prepare(edges).motifs(bound=4_000)
    with pytest.raises(InputError, match="divides the neighbourhood of a vertex"):
        prepare(edges, partition="hash2d", parts=2).motifs()
    with pytest.raises(InputError, match="induced"):
        prepare(edges).motifs(induced=1)
    with pytest.raises(InputError, match=r"of 435 edges could exceed 64 bits, those of at most 400 cannot"):
        retuned(prepare(edges), motif_edges=400).motifs()


def test_contradictions_are_an_error(monkeypatch):
    graph = prepare(oracle.wheel(9))
    monkeypatch.setattr(question, "_cycles", lambda graph: 0)
    with pytest.raises(CountError, match=r"four-vertex subgraphs disagree, there would be -\d+ of kind cycle"):
        graph.motifs()


def test_on_a_cluster(client):
    edges = [(f"v{u}", f"v{v}") for u, v in nx.gnm_random_graph(50, 300, seed=7).edges()]
    graph = retuned(prepare(edges, client, partition="whole", splits=3), partition_bytes=2_400)
    assert graph.motifs() == of_igraph(edges)


def test_within_memory(tmp_path):
    edges = nx.gnm_random_graph(50, 300, seed=7).edges()
    with prepare(edges, memory="40MB", work_dir=tmp_path) as graph:
        assert graph.motifs() == of_igraph(list(edges))


@pytest.mark.parametrize("reorder", ["degree", "collective", "indegree", "none"])
def test_vertices_in_shards(tmp_path, reorder):
    edges = list(nx.gnm_random_graph(50, 300, seed=7).edges())
    with tuned(least_shards=3), prepare(edges, memory="40MB", work_dir=tmp_path, reorder=reorder) as graph:
        assert graph.plan.shards == 3
        assert graph.motifs() == of_igraph(edges)


@pytest.mark.skipif(compiler() is None, reason="no g++ on Linux, which runs the kernels on the host")
def test_on_a_device():
    edges = skewed_edges(60, 400, 1)
    with emulated_cuda.backend(), prepare(edges, backend="cuda", partition="whole") as graph:
        assert graph.motifs() == of_igraph([tuple(edge) for edge in oracle.clean(edges)])
