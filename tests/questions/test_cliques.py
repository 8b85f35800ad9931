"""Cliques of 3 to 5 vertices, against NetworkX, igraph, binomial coefficients and published numbers."""

import json
from collections import Counter
from math import comb
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given

import dasktc
from dasktc import generate
from dasktc.backends.cpu import cliques as kernel
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.backends.cuda import cliques as device_cliques
from dasktc.cli.main import cli
from dasktc.errors import CountError, InputError
from dasktc.options import Method
from dasktc.questions import cliques
from tests.support import oracle
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import HostDevice, needs_compiler
from tests.support.keywords import keywords

ORDERS = ["degree", "collective", "indegree", "none"]
DATA = Path(__file__).parents[1] / "data"


def prepared(edges, client=None, **options):
    frame = pd.DataFrame(edges, columns=["src", "dst"])
    return dasktc.prepare(
        frame, client, **keywords(**dict(backend="cpu", partition="whole", threads=None if client else 2) | options)
    )


def known(edges):
    """Numbers of cliques of 3 to 5 vertices, by size."""
    graph = nx.Graph([tuple(edge) for edge in oracle.clean(edges)])
    sizes = Counter(len(clique) for clique in nx.enumerate_all_cliques(graph))
    return [sizes[k] for k in (3, 4, 5)]


def counts(graph):
    return [graph.cliques(k) for k in (3, 4, 5)]


@pytest.mark.parametrize("reorder", ORDERS)
@given(edges=oracle.multigraphs(12, 90))
def test_any_graph(reorder, edges):
    assert counts(prepared(edges, reorder=reorder, splits=3)) == known(edges)


@pytest.mark.parametrize("reorder", ORDERS)
@pytest.mark.parametrize("vertices", [5, 64, 65, 66, 130])
def test_complete_graphs(vertices, reorder):
    """Lines of bits end before, at and after the end of a word."""
    graph = prepared(oracle.complete(vertices), reorder=reorder)
    assert counts(graph) == [comb(vertices, k) for k in (3, 4, 5)]


@pytest.mark.parametrize("name", ["netscience.csv.gz", pytest.param("email-Eu-core.csv.gz", marks=pytest.mark.slow)])
def test_real_graphs(name):
    with dasktc.prepare(str(DATA / name), backend="cpu", method=Method(partition="whole")) as graph:
        edges = graph.edge_support()[["src", "dst"]].to_numpy()
        _, dense = np.unique(edges, return_inverse=True)
        theirs = igraph.Graph(dense.reshape(edges.shape).tolist())
        sizes = Counter(map(len, theirs.cliques(3, 4)))
        assert [graph.cliques(k) for k in (3, 4)] == [sizes[3], sizes[4]]


@pytest.mark.parametrize("longer", [0, 1, 10**6])
def test_rows_are_read_or_searched(longer, monkeypatch):
    """The choice depends on lengths alone; here in plain Python, with other limits."""
    monkeypatch.setattr(kernel, "LONGER", longer)
    rng = np.random.default_rng(3)
    edges = [*oracle.star(60), *rng.integers(0, 60, (700, 2)).tolist()]
    graph = prepared(edges, threads=1)
    (block,) = graph._context.blocks.values()
    t = kernel.triple(BlockTask(block, block, block))
    bits, place = np.zeros(60 * 60, np.uint64), np.zeros(block.rows, np.int32)
    for first, last in zip(block.offsets[:-1].tolist(), block.offsets[1:].tolist(), strict=True):
        lines = []
        for fill in (kernel._fill, getattr(kernel._fill, "py_func", kernel._fill)):
            bits[:] = 0
            with np.errstate(over="ignore"):
                fill(t, first, last, True, 1, place, bits)
            lines.append(bits[: last - first].tolist())
        row = block.columns[first:last].tolist()
        wanted = [
            sum(1 << i for i, w in enumerate(row) if w in block.columns[block.offsets[v] : block.offsets[v + 1]])
            for v in row
        ]
        assert lines == [wanted, wanted]


def test_work_is_known_before():
    """In a complete graph every row of d targets has its d·(d-1)/2 pairs, and each reads the words before it."""
    graph = prepared(oracle.complete(70), threads=1)
    triangles, work = cliques._level(graph._context, 3, lambda *_: None)
    assert triangles == comb(70, 3)
    assert work == sum(i // 64 + 1 for u in range(70) for j in range(u) for i in range(j))
    four, work = cliques._level(graph._context, 4, lambda *_: None)
    assert four == comb(70, 4)
    assert work == sum((x // 64 + 1) * comb(69 - x, 3) for x in range(70))


def test_too_much_work_is_refused():
    graph = prepared(oracle.complete(20))
    result = cliques.clique_count(graph._context, 5)
    assert result.work == comb(20, 4)
    assert graph.cliques(5, bound=comb(20, 4)) == comb(20, 5)
    with pytest.raises(InputError, match="more than the bound of"):
        graph.cliques(5, bound=comb(20, 4) - 1)
    with pytest.raises(InputError, match="cliques of 4 vertices take"):
        prepared(oracle.complete(70)).cliques(5, bound=comb(70, 3))
    for k in (3, 5):
        with pytest.raises(InputError, match="cliques of 3 vertices take at most"):
            graph.cliques(k, bound=comb(20, 3) - 1)


def test_the_log_has_the_work_before_it_begins(caplog):
    with caplog.at_level("INFO", "dasktc"):
        prepared(oracle.complete(70)).cliques(4)
    first, second = (record.getMessage() for record in caplog.records if "cliques of" in record.getMessage())
    assert first.startswith(f"cliques of 3 vertices: at most {comb(70, 3):.3g} ANDs")
    assert second.startswith("cliques of 4 vertices: ")


@pytest.mark.parametrize("partition", ["hash2d", "vertical", "proxy", "edges"])
def test_other_schemes_are_refused(partition):
    with pytest.raises(InputError, match=r"B of each worker; prepare with method=Method\(partition='whole'\)"):
        prepared(oracle.complete(6), partition=partition).cliques(4)


@pytest.mark.parametrize("k", [2, 6, 4.0, "4", True])
def test_other_sizes_are_refused(k):
    with pytest.raises(InputError, match="k="):
        prepared(oracle.complete(6)).cliques(k)


def test_bits_beyond_memory_are_refused(monkeypatch):
    graph = prepared(oracle.complete(6))
    monkeypatch.setattr(kernel, "scratch_bytes", lambda *_: 1 << 60)
    with pytest.raises(InputError, match="the bits of a row of 5 entries"):
        graph.cliques(4)


def test_lost_rows_are_an_error(monkeypatch):
    graph, whole = prepared(oracle.complete(9), threads=1), cliques._counted
    monkeypatch.setattr(
        cliques, "_counted", lambda block, size, split, splits, of: whole(block, size, 0, splits + 1, of)
    )
    with pytest.raises(CountError, match="rows were lost or repeated"):
        graph.cliques(4)


def test_a_task_that_came_twice_in_place_of_another_is_an_error(monkeypatch):
    """Both have as many wedges, so that the sum of all wedges is right."""
    edges = [(u + 5 * k, v + 5 * k) for k in range(16) for u, v in oracle.complete(5)]
    graph, whole = prepared(edges, threads=1), cliques._counted
    assert graph.cliques(4) == 16 * 5
    monkeypatch.setattr(
        cliques, "_counted", lambda block, size, split, *given: whole(block, size, 3 if split == 5 else split, *given)
    )
    with pytest.raises(CountError, match="16 tasks of 16 handled 160 wedges, but the degrees give 160: rows were"):
        graph.cliques(4)


@pytest.mark.slow
def test_on_workers(client):
    edges = oracle.complete(40)[::2]
    assert counts(prepared(edges, client)) == known(edges)


@needs_compiler
@pytest.mark.parametrize("reorder", ["degree", "none"])
@pytest.mark.parametrize(
    "edges",
    [oracle.complete(70)[::2], oracle.wheel(40), np.random.default_rng(1).integers(0, 90, (900, 2)).tolist()],
    ids=["half of K70", "wheel", "random"],
)
def test_a_device_counts_the_same(edges, reorder):
    (block,) = prepared(edges, reorder=reorder)._context.blocks.values()
    task = BlockTask(block, block, block)
    for size in (3, 4, 5):
        for reverse in (False, True):
            assert device_cliques.count(HostDevice(reverse), task, size) == kernel.count(task, size)


@needs_compiler
@pytest.mark.slow
def test_lines_that_a_warp_shares():
    """Rows of 2,048 targets have lines of 32 words, one for each lane."""
    edges = [*oracle.complete(60), *oracle.star(2100)]
    edges += [(1, v) for v in range(60, 2100)] + [(2, v) for v in range(60, 2100)]
    (block,) = prepared([(v, u) for u, v in edges], reorder="none")._context.blocks.values()
    assert np.diff(block.offsets).max() < 2048
    rows = block.rows  # turned round hubs point to all others
    source, target = block.columns.astype("int64"), np.repeat(np.arange(rows), np.diff(block.offsets))
    place = np.lexsort((target, source))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=rows))])
    turned = OrientedCSR(offsets.astype("int64"), target[place].astype("int32"))
    assert np.diff(turned.offsets).max() >= 2048
    task, straight = BlockTask(turned, turned, turned), BlockTask(block, block, block)
    for size in (3, 4, 5):
        known = kernel.count(task, size)
        assert known.cliques == kernel.count(straight, size).cliques
        assert device_cliques.count(HostDevice(), task, size) == known


@needs_compiler
def test_on_a_device():
    with emulated_cuda.backend(), prepared(oracle.complete(30)[::2], backend="cuda", threads=None) as graph:
        assert counts(graph) == known(oracle.complete(30)[::2])


def test_command():
    path = str(DATA / "email-Eu-core.csv.gz")
    answer = json.loads(CliRunner().invoke(cli, ["cliques", path, "-k", "4", "--json", "--backend", "cpu"]).stdout)
    assert (answer["k"], answer["cliques"], answer["edges"]) == (4, 423750, 16064)
    assert CliRunner().invoke(cli, ["cliques", path, "--k", "3", "--quiet"]).stdout.split() == ["105461"]
    assert "423,750 of 4 vertices" in CliRunner().invoke(cli, ["cliques", path]).stdout


@pytest.mark.catalog
def test_published_numbers(graphs_dir):
    with dasktc.prepare(str(graphs_dir / "facebook_combined.txt.gz"), method=Method(partition="whole")) as graph:
        assert counts(graph) == [1_612_010, 30_004_668, 517_965_151]


@pytest.mark.slow
def test_a_larger_graph():
    source = generate.kronecker(10)
    with dasktc.prepare(source, backend="cpu", method=Method(partition="whole")) as graph:
        edges = graph.edge_support()[["src", "dst"]].to_numpy().tolist()
        assert graph.cliques(4) == len(igraph.Graph(edges).cliques(4, 4))
