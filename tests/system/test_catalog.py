"""Real files, read as they are and counted; the results must equal the figures of their catalogue.

The small files in tests/data (catalog.tsv there has each one's source, licence and traps) are counted in every run;
`-m catalog` takes a whole directory of others.
"""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import igraph
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import dasktc
from dasktc.answers import edge_support
from dasktc.backends.cpu import backend as cpu
from dasktc.io.formats import bvgraph, lightgraphs, matrixmarket, metis, streams
from dasktc.registry import ORDERS
from tests.support.formats import simple, table
from tests.support.keywords import keywords

LAYOUTS = [("whole", 1), ("edges", 1), *(("hash2d", n) for n in (1, 2, 3, 5)), ("vertical", 3), ("proxy", 4)]
SPLITS = (1, 3)

# Files that are refused as they stand, what the error has to name, and the option that it names.
AMBIGUOUS: dict[str, tuple[str, dict[str, Any]]] = {
    "ca-HepTh": ("--skip 1", {"skip": 1}),
    "as-caida20071105": ("--skip", {"skip": 8}),
}


class Row(NamedTuple):
    name: str
    path: Path
    vertices: int
    edges: int
    triangles: int


def rows(folder: Path) -> list[Row]:
    with open(folder / "catalog.tsv", newline="") as lines:
        found = list(csv.DictReader(lines, delimiter="\t"))
    return [
        Row(r["name"], folder / r["file"], int(r["V"]), int(r["E"]), int(r["triangles"]))
        for r in found
        if r["triangles"] != "-"
    ]


def check(row: Row, result: dasktc.TriangleCount) -> None:
    assert (result.vertices, result.edges, int(result)) == (row.vertices, row.edges, row.triangles)


def check_every_way(row: Row) -> None:
    """Check every scheme, n, m, order and kernel; the blocks of each plan are built once for all kernels."""
    options = AMBIGUOUS.get(row.name, ("", {}))[1]
    for (partition, n), m, order in product(LAYOUTS, SPLITS, ORDERS):
        graph = dasktc.prepare(
            str(row.path), **keywords(kernel="trust", partition=partition, parts=n, splits=m, reorder=order, **options)
        )
        for kernel in cpu.KERNELS:
            check(row, graph.triangle_count(kernel=kernel))


@pytest.mark.parametrize("row", rows(Path(__file__).parents[1] / "data"), ids=lambda row: row.name)
def test_small_file(row: Row) -> None:
    check(row, dasktc.triangle_count(str(row.path), verify=1.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [row for row in rows(Path(__file__).parents[1] / "data") if row.name in ("karate_mod", "dolphins_s_loop")],
    ids=lambda row: row.name,
)
def test_small_file_every_way(row: Row) -> None:
    check_every_way(row)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one catalogue test per graph, where there is a catalogue."""
    if "catalog_row" in metafunc.fixturenames:
        folder = Path(metafunc.config.getoption("--graphs"))
        found = rows(folder) if (folder / "catalog.tsv").is_file() else [None]
        metafunc.parametrize("catalog_row", found, ids=[r.name if r else "none" for r in found])


@pytest.mark.catalog
def test_catalog_file(catalog_row: Row, graphs_dir: Path, tmp_path: Path) -> None:
    path, options = catalog_row.path, {}
    if catalog_row.name in AMBIGUOUS:
        named, options = AMBIGUOUS[catalog_row.name]
        with pytest.raises(dasktc.InputError, match=named):
            dasktc.triangle_count(str(path))
    check(catalog_row, dasktc.triangle_count(str(path), **keywords(**options)))


@pytest.mark.gpu
def test_catalog_file_on_the_device(catalog_row: Row, graphs_dir: Path) -> None:
    options = AMBIGUOUS.get(catalog_row.name, ("", {}))[1]
    check(catalog_row, dasktc.triangle_count(str(catalog_row.path), backend="cuda", verify=1.0, **keywords(**options)))


@pytest.mark.catalog
@pytest.mark.timeout(3600)
def test_catalog_file_every_way(catalog_row: Row, graphs_dir: Path) -> None:
    check_every_way(catalog_row)


@pytest.mark.catalog
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kernel", ["hub", "merge"])
def test_answers_of_a_catalog_file(catalog_row: Row, kernel: str) -> None:
    """Answers by vertex and by edge equal those of NetworkX, of igraph, of A² where A is not 0, and of `visit`."""
    if catalog_row.edges >= 1_000_000:
        pytest.skip("a graph of a million edges or more")
    graph = dasktc.prepare(
        str(catalog_row.path), **keywords(kernel=kernel, **AMBIGUOUS.get(catalog_row.name, ("", {}))[1])
    )
    edges, measures = graph.edge_support(), graph.measures()
    assert edges.attrs["kernel"] == kernel
    ends = [measures.index.get_indexer(edges[name]) for name in ("src", "dst")]
    places = np.concatenate(ends), np.concatenate(ends[::-1])
    matrix = sp.csr_array((np.ones(2 * len(edges), np.int64), places), shape=(len(measures),) * 2)
    common = ((matrix @ matrix) * matrix).tocsr()
    assert np.array_equal(common[ends[0], ends[1]], edges.support)
    assert np.array_equal(common.sum(axis=1) // 2, measures.triangles)
    vertices = nx.from_pandas_edgelist(edges, "src", "dst")
    assert nx.triangles(vertices) == measures.triangles.to_dict()
    local = igraph.Graph(len(measures), np.stack(ends, axis=1)).transitivity_local_undirected(mode="zero")
    np.testing.assert_allclose(measures.clustering, local, rtol=0, atol=1e-12)
    with pytest.MonkeyPatch.context() as patch:
        chosen = edge_support.kernel_and_bytes
        patch.setattr(edge_support, "kernel_and_bytes", lambda graph: (edge_support.VISITED, chosen(graph)[1]))
        graph = dasktc.prepare(
            str(catalog_row.path), **keywords(kernel=kernel, **AMBIGUOUS.get(catalog_row.name, ("", {}))[1])
        )
        visited = graph.edge_support()
    assert visited.attrs["kernel"] == "visit"
    assert visited.support.equals(edges.support)


def nested_trusses(graph: nx.Graph) -> dict[frozenset[int], int]:
    """The trussness of every edge by NetworkX, computing each truss from the one before until none is left."""
    trussness, k = {}, 2
    while graph.number_of_edges():
        trussness |= {frozenset(edge): k for edge in graph.edges}
        k += 1
        graph = nx.k_truss(graph, k)
    return trussness


@pytest.mark.catalog
@pytest.mark.timeout(3600)
def test_trusses_and_cores_of_a_catalog_file(catalog_row: Row) -> None:
    """NetworkX takes minutes for larger graphs."""
    if catalog_row.edges >= 1_000_000:
        pytest.skip("a graph of a million edges or more")
    graph = dasktc.prepare(str(catalog_row.path), **keywords(**AMBIGUOUS.get(catalog_row.name, ("", {}))[1]))
    frame = graph.truss()
    expected = nx.from_pandas_edgelist(frame, "src", "dst")
    assert graph.core_number().to_dict() == nx.core_number(expected)
    known = nested_trusses(expected)
    assert {frozenset(ends): k for *ends, k in frame.itertuples(index=False)} == known
    largest = max(known.values(), default=2)
    for k in {3, (largest + 2) // 2, largest, largest + 1}:
        truss = graph.truss(k)
        assert {frozenset(row[:2]) for row in truss.itertuples(index=False)} == {
            e for e, of in known.items() if of >= k
        }
        assert (truss.support >= k - 2).all()


def module_of(format_):
    known = {"mtx": matrixmarket, "METIS": metis, "LightGraphs/Graphs.jl": lightgraphs, "LAW": bvgraph}
    if format_.startswith("Graph Challenge mmio"):
        return matrixmarket
    return known.get(format_.strip('"').split()[0])


@pytest.mark.catalog
@pytest.mark.parametrize("blocksize", [1 << 26, 1 << 20])
def test_catalog(graphs_dir, tmp_path, blocksize):
    rows = [row for row in table(graphs_dir / "catalog.tsv") if module_of(row["format"])]
    assert len(rows) >= 12
    for row in rows:
        path, module = graphs_dir / row["file"], module_of(row["format"])
        if module is not bvgraph and blocksize < 1 << 26:  # only plain files are cut
            path = tmp_path / row["file"]
            path.write_bytes(streams.open_decompressed(str(graphs_dir / row["file"])).read())
        assert simple(module, path, blocksize=blocksize) == (int(row["V"]), int(row["E"])), row["name"]
