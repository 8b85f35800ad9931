"""Sums, places and ids past 2^31, 2^32, 2^53 and 2^63: small graphs, and those whose answer is arithmetic."""

from __future__ import annotations

import mmap
import tempfile
from math import comb
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from emulation.host import HostDevice, compiler
from test_formats import LISTS, bvgraph_file

import dasktc
from dasktc.backends import get_backend
from dasktc.backends.cpu import hub_tables, sizes, supports
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.backends.cuda import visit as device_visit
from dasktc.backends.cuda.edges import DeviceEdges
from dasktc.counting.vertex_counts import added_up
from dasktc.io.formats import bvgraph, entries, metis
from dasktc.pipeline.orient import order_by
from dasktc.pipeline.sharded.unique import _number, integers

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no g++ on Linux, which runs the kernels on the host")
BIG = [2**31 - 2, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 - 1, 2**53, 2**62]
CPU = get_backend("cpu")


# ids


@pytest.mark.parametrize("low", [*BIG, 2**63 - 4, -(2**31) - 2, -(2**53) - 1, -(2**63)])
def test_ids_of_any_size_come_back(low):
    ids = [low + k for k in range(4)]
    frame = pd.DataFrame([(u, v) for u in ids for v in ids if u < v], columns=["src", "dst"])
    graph = dasktc.prepare(frame, backend="cpu", partition="whole")
    assert sorted(graph.triangles().index.tolist()) == ids
    assert {tuple(map(int, row)) for row in graph.triangle_list().to_numpy()} == {
        tuple(sorted(ids[:k] + ids[k + 1 :])) for k in range(4)
    }


@pytest.mark.parametrize("vertices", [2**31 - 1, 2**31, 2**31 + 5, 2**32 + 5, 2**53 + 5])
def test_metis_numbers_of_vertices(tmp_path, vertices):
    """The last lines of a file whose other vertices have none: what is read of them is what stands there."""
    file = tmp_path / "graph.metis"
    file.write_text("1\n")
    header = metis.Header(vertices, 1, 0, 1, 0, 1)
    position = metis.Position(0, 2, vertices, vertices, 0, False)
    (pair,) = metis._Lines(str(file), header, position).arrays(100)
    assert pair.tolist() == [[vertices], [1]]
    assert pair.dtype == ("int32" if vertices < 2**31 else "int64")


@pytest.mark.parametrize("stop", [2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**53 + 1])
def test_ids_of_counted_lines(stop):
    part = entries.EntryPart.__new__(entries.EntryPart)
    object.__setattr__(part, "ids", range(1, stop))
    assert np.iinfo(part.dtype).max >= stop - 1


@pytest.mark.parametrize("vertex", [2**31 - 1, 2**31, 2**32, 2**53 + 1])
def test_ids_of_matrix_market_lines(tmp_path, vertex):
    file = tmp_path / "graph.mtx"
    rows = [(1, 2), (2, vertex), (1, vertex)]
    text = "".join(f"{v} {u}\n" for u, v in rows)
    file.write_text(f"%%MatrixMarket matrix coordinate pattern symmetric\n{vertex} {vertex} 3\n{text}")
    found = dasktc.prepare(str(file), backend="cpu", partition="whole").triangles()
    assert sorted(found.index.tolist()) == [1, 2, vertex]


@pytest.mark.parametrize("nodes", [2**31 - 1, 2**31, 2**31 + 5, 2**32 + 5, 2**53 + 5])
def test_ids_of_the_last_nodes_of_a_bvgraph(tmp_path, nodes):
    """A node's successors are written relative to it: those of the first nodes of a small file, read as the last."""
    url = str(bvgraph_file(tmp_path, LISTS))
    properties, first = bvgraph._properties(url), nodes - len(LISTS)
    decoder = bvgraph._Decoder(url, properties._replace(nodes=nodes), bvgraph._stream(url, 0, None), 0)
    degrees, targets = decoder.decode(first, nodes, sum(map(len, LISTS)))
    assert degrees.tolist() == [*map(len, LISTS)]
    assert targets.tolist() == [first + v for successors in LISTS for v in successors]
    assert targets.dtype == ("int32" if nodes < 2**31 else "int64")


@pytest.mark.parametrize("top", [2**31, 2**53, 2**62, 2**63 - 1])
def test_weights_are_ordered_whatever_they_are(top):
    """Also where a weight and a vertex do not share 64 bits."""
    weights = np.array([top, 0, top - 1, top, 1], dtype="int64")
    assert order_by(weights, CPU).tolist() == [0, 3, 2, 4, 1]


def test_numbers_of_a_shard_pass_16_bits():
    among = np.arange(0, 300_000, 3)
    numbers = _number(among[[0, 40_000, 99_999]], among, 2**31 - 100_000, integers(CPU))
    assert numbers.tolist() == [2**31 - 100_000 + k for k in (0, 40_000, 99_999)]


# places


class Last:
    """An array of very many, all but the last two of them 0: what is sliced from it are those two."""

    def __init__(self, values):
        self.values = np.array(values)

    def __getitem__(self, of):
        return self.values


@pytest.mark.parametrize("edges", [2**31 - 1, 2**31 + 1, 2**32 + 1, 2**53])
def test_places_of_edges_are_64_bits(edges, monkeypatch):
    """Two edges, the last ones of so many: each is added to the row that holds it."""
    monkeypatch.setattr(device_visit, "ENDS", edges)
    xp = SimpleNamespace(arange=lambda start, stop, dtype: np.arange(stop - 2, stop, dtype=dtype), add=np.add)
    offsets = np.array([0, 1, edges - 1, edges])
    block = SimpleNamespace(edges=edges, offsets=offsets, columns=Last([5, 6]))
    at_row, at_column = np.zeros((2, 8), "int64")
    device_visit.add_ends(xp, block, Last([3, 4]), at_row, at_column)
    assert (at_row.tolist(), at_column.tolist()) == ([0, 3, 4, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 3, 4, 0])


@needs_compiler
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("columns", [3, 1 << 20, 3_000_001, 1 << 31, (1 << 31) - 1])
@pytest.mark.parametrize("start", [0, 2**31 + 7, 2**53 + 1])
def test_columns_of_keys_and_bounds_of_rows(reverse, columns, start):
    edges = DeviceEdges(HostDevice(reverse))
    rows = 5_000
    places = [0, 1, columns - 1, columns, 1711 * columns + 2, (rows - 1) * columns, rows * columns - 1]
    offsets, found = edges.rows(np.array(sorted(places)) + start, start, rows, columns)
    assert found.tolist() == [place % columns for place in sorted(places)]
    assert offsets.tolist() == [sum(place < row * columns for place in places) for row in range(rows + 1)]


def test_deferred_edges_are_numbered_in_32_bits():
    assert sizes.MOST <= np.iinfo(np.int32).max


def sparse(folder, size):
    """An array of so many 0, int32, that takes no memory where nobody looks."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(4 * size)
        return np.frombuffer(mmap.mmap(file.fileno(), 4 * size), dtype="int32")


@pytest.fixture
def far_rows(tmp_path):
    """A task of two edges whose table rows stand 2^32 places apart: 2 triangles of the one, and 3 of the other."""
    first, last, between = [1, 2, 50], [3, 4, 5, 60], 2**32 + 1
    columns = sparse(tmp_path, between + len(last))
    columns[: len(first)], columns[between:] = first, last
    table = OrientedCSR(np.array([0, len(first), between, len(columns)]), columns, ordered=True)
    index = OrientedCSR(np.array([0, 1, 1, 2]), np.array([80, 80], "int32"), ordered=True)
    stream = OrientedCSR(np.repeat([0, 40], [81, 20]), np.arange(1, 41, dtype="int32"), ordered=True)
    yield BlockTask(index, table, stream)
    hub_tables.forget()


def test_lists_that_are_put_off_may_stand_far_apart(far_rows):
    assert hub_tables.count(far_rows)[:2] == (5, 80)
    sums, *counts = supports.vertices(far_rows, (0, 1, 2), {0: 3, 1: 100, 2: 101})
    assert counts == [5, 80]
    assert (sums[0].tolist(), sums[1].nonzero()[0].tolist(), int(sums[1].sum())) == ([2, 0, 3], [80], 5)
    assert sums[2].nonzero()[0].tolist() == [1, 2, 3, 4, 5]


def test_supports_of_lists_that_stand_far_apart(far_rows, tmp_path, monkeypatch):
    zeros, many = np.zeros, far_rows.table.edges
    monkeypatch.setattr(np, "zeros", lambda size, *of: sparse(tmp_path, size) if size == many else zeros(size, *of))
    (at_index, at_table, at_stream), *counts = supports.edges(far_rows)
    assert counts == [5, 80]
    assert (at_index.tolist(), at_stream[:6].tolist(), int(at_stream.sum())) == ([2, 3], [1] * 5 + [0], 5)
    assert (at_table[:8].tolist(), at_table[-6:].tolist()) == ([1, 1] + [0] * 6, [0, 0, 1, 1, 1, 0])


# sums


@pytest.mark.parametrize("each", [2**31 // 3, 2**32 // 3 + 1, 2**53 // 3 + 1, 2**61])
def test_sums_of_vertices(each):
    """Of three vertices on two sides, as of a graph with so many triangles on each."""
    sums = [np.array([each, each, 0]), np.array([0, 0, each])]
    assert added_up(sums, [(0, 1), (0, 1)], 3, each).tolist() == [each] * 3


@pytest.mark.parametrize("leaves", [1 << 17, 200_000])
def test_wedges_of_stars_pass_32_bits(leaves):
    """Two hubs with the same leaves, joined: leaves are the triangles, and their pairs wedges beyond 2^32."""
    ends = np.arange(2, leaves + 2)
    hubs = [np.full(leaves, hub) for hub in (0, 1)]
    frame = pd.DataFrame({"src": np.concatenate([[0], *hubs]), "dst": np.concatenate([[1], ends, ends])})
    graph = dasktc.prepare(frame, backend="cpu", partition="whole")
    wedges = 2 * comb(leaves + 1, 2) + leaves
    assert wedges > 2**32
    assert int(graph.triangle_count()) == leaves
    assert graph.transitivity() == pytest.approx(3 * leaves / wedges, rel=1e-12)


@pytest.mark.parametrize("reorder", ["degree", "none"])
def test_supports_of_a_book_and_sums_of_its_spine(reorder):
    pages = 1 << 16
    ends = np.arange(2, pages + 2)
    frame = pd.DataFrame(
        {
            "src": np.concatenate([[0], np.zeros(pages, int), np.ones(pages, int)]),
            "dst": np.concatenate([[1], ends, ends]),
        }
    )
    graph = dasktc.prepare(frame, backend="cpu", partition="whole", reorder=reorder)
    supports = graph.edge_support()
    assert supports.iloc[:, 2].max() == pages
    assert int(supports.iloc[:, 2].sum()) == 3 * pages
    assert graph.triangles()[[0, 1]].tolist() == [pages, pages]


def test_a_complete_graph_by_arithmetic():
    """Of 2,400 vertices: 2.3 G triangles, and vertices' sums that add up to 6.9 G."""
    size = 2400
    dst, src = np.tril_indices(size, -1)
    frame = pd.DataFrame({"src": src.astype("int32"), "dst": dst.astype("int32")})
    graph = dasktc.prepare(frame, backend="cpu", partition="whole")
    sums = graph.triangles()
    assert (sums.min(), sums.max()) == (comb(size - 1, 2),) * 2
    assert int(sums.sum()) == 3 * comb(size, 3) > 2**32
    supports = graph.edge_support().iloc[:, 2]
    assert (supports.min(), supports.max()) == (size - 2,) * 2
    assert int(graph.triangle_count()) == comb(size, 3) > 2**31
