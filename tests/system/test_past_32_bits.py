"""Sums, places and ids past 2^31, 2^32, 2^53 and 2^63: small graphs, and graphs whose answer is arithmetic."""

from __future__ import annotations

import json
import mmap
import pickle
import re
import tempfile
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from math import comb
from operator import mul
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dasktc
from dasktc.answers import edge_frames, edge_support, vertex_counts
from dasktc.answers.vertex_counts import added_up
from dasktc.backends import get_backend, kernel_files, wedge_sample
from dasktc.backends.answers import degrees_of
from dasktc.backends.cpu import edge_columns, hub_tables, sizes, supports
from dasktc.backends.cpu import wedges as cpu_wedges
from dasktc.backends.cpu.vertices import CpuVertices
from dasktc.backends.csr import BlockTask, OrientedCSR, TaskCount
from dasktc.backends.cuda import launch
from dasktc.backends.cuda import visit as device_visit
from dasktc.backends.cuda import wedges as device_wedges
from dasktc.backends.cuda.answers import DeviceAnswers
from dasktc.backends.cuda.edges import DeviceEdges
from dasktc.backends.wedge_sample import Strata
from dasktc.counting import checkpoint, count, tasks
from dasktc.counting.statistics import CountStatistics
from dasktc.counting.tasks import Job, Record, add_up
from dasktc.counting.work import Meter
from dasktc.errors import CountError
from dasktc.executors.local import LocalExecutor
from dasktc.executors.process.usage import Usage
from dasktc.executors.progress.tracker import Tracker
from dasktc.io.formats import bvgraph, entries, metis
from dasktc.io.write import write_frames
from dasktc.options import Method
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.stages import orient
from dasktc.pipeline.stages.shards import integers, number_values
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.schemes import Triple
from dasktc.questions import distributions, estimate, measures, triad_census
from dasktc.registry import KERNELS
from dasktc.reports import html_report
from dasktc.reports.findings import RunFacts
from tests.io.formats.test_bvgraph import LISTS, bvgraph_file
from tests.support import oracle
from tests.support.emulation.host import HostDevice, count_on, needs_compiler
from tests.support.slow_pipeline import tuned

BIG = [2**31 - 2, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 - 1, 2**53, 2**62]
CPU = get_backend("cpu")


# ids


@pytest.mark.parametrize("low", [*BIG, 2**63 - 4, -(2**31) - 2, -(2**53) - 1, -(2**63)])
def test_ids_of_any_size_come_back(low):
    ids = [low + k for k in range(4)]
    frame = pd.DataFrame([(u, v) for u in ids for v in ids if u < v], columns=["src", "dst"])
    graph = dasktc.prepare(frame, backend="cpu", method=Method(partition="whole"))
    assert sorted(graph.triangles().index.tolist()) == ids
    assert {tuple(map(int, row)) for row in graph.triangle_list().to_numpy()} == {
        tuple(sorted(ids[:k] + ids[k + 1 :])) for k in range(4)
    }


@pytest.mark.parametrize("vertices", [2**31 - 1, 2**31, 2**31 + 5, 2**32 + 5, 2**53 + 5])
def test_metis_numbers_of_vertices(tmp_path, vertices):
    """The last lines of a file whose other vertices have no neighbours; only their part of the file exists."""
    file = tmp_path / "graph.metis"
    file.write_text("1\n")
    header = metis.Header(vertices, 1, 0, 1, 0, 1)
    position = metis.Position(0, 2, vertices, vertices, 0, False)
    (pair,) = metis._File(str(file), header, 1, position).arrays(100)
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
    found = dasktc.prepare(str(file), backend="cpu", method=Method(partition="whole")).triangles()
    assert sorted(found.index.tolist()) == [1, 2, vertex]


@pytest.mark.parametrize("nodes", [2**31 - 1, 2**31, 2**31 + 5, 2**32 + 5, 2**53 + 5])
def test_ids_of_the_last_nodes_of_a_bvgraph(tmp_path, nodes):
    """Successors are stored relative to their node: those of a small file's first nodes are read as the last ones."""
    url = str(bvgraph_file(tmp_path, LISTS))
    properties, first = bvgraph._properties(url), nodes - len(LISTS)
    decoder = bvgraph._Decoder(url, properties._replace(nodes=nodes), bvgraph._stream(url, 0, None), 0)
    degrees, targets = decoder.decode(first, nodes, sum(map(len, LISTS)))
    assert degrees.tolist() == [*map(len, LISTS)]
    assert targets.tolist() == [first + v for successors in LISTS for v in successors]
    assert targets.dtype == ("int32" if nodes < 2**31 else "int64")


def test_numbers_of_a_shard_pass_16_bits():
    among = np.arange(0, 300_000, 3)
    numbers = number_values(among[[0, 40_000, 99_999]], among, 2**31 - 100_000, integers(CPU))
    assert numbers.tolist() == [2**31 - 100_000 + k for k in (0, 40_000, 99_999)]


# places


class Last:
    """A very long array whose entries are 0, except for the last two; slices of it return these."""

    def __init__(self, values):
        self.values = np.array(values)

    def __getitem__(self, of):
        return self.values


@pytest.mark.parametrize("edges", [2**31 - 1, 2**31 + 1, 2**32 + 1, 2**53])
def test_places_of_edges_are_64_bits(edges):
    """Two edges, the last ones of `edges`: each is added to the row that holds it."""
    xp = SimpleNamespace(arange=lambda start, stop, dtype: np.arange(stop - 2, stop, dtype=dtype), add=np.add)
    offsets = np.array([0, 1, edges - 1, edges])
    block = SimpleNamespace(edges=edges, offsets=offsets, columns=Last([5, 6]))
    at_row, at_column = np.zeros((2, 8), "int64")
    device_visit.add_ends(xp, block, Last([3, 4]), at_row, at_column, step=edges)
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
    """An int32 array of `size` zeros that takes no memory where nothing reads it."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(4 * size)
        return np.frombuffer(mmap.mmap(file.fileno(), 4 * size), dtype="int32")


@pytest.fixture
def far_rows(tmp_path):
    """A task of two edges whose table rows are 2^32 places apart: one has 2 triangles, the other 3."""
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
    monkeypatch.setattr(
        np, "zeros", lambda size, *of, **named: sparse(tmp_path, size) if size == many else zeros(size, *of, **named)
    )
    (at_index, at_table, at_stream), *counts = supports.edges(far_rows)
    assert counts == [5, 80]
    assert (at_index.tolist(), at_stream[:6].tolist(), int(at_stream.sum())) == ([2, 3], [1] * 5 + [0], 5)
    assert (at_table[:8].tolist(), at_table[-6:].tolist()) == ([1, 1] + [0] * 6, [0, 0, 1, 1, 1, 0])


# sums


@pytest.mark.parametrize("each", [2**31 // 3, 2**32 // 3 + 1, 2**53 // 3 + 1, 2**61])
def test_sums_of_vertices(each):
    """Three vertices on two sides, as in a graph with `each` triangles at each of them."""
    sums = [np.array([each, each, 0]), np.array([0, 0, each])]
    assert added_up(sums, [(0, 1), (0, 1)], 3, each).tolist() == [each] * 3


@pytest.mark.parametrize("leaves", [1 << 17, 200_000])
def test_wedges_of_stars_pass_32_bits(leaves):
    """Two joined hubs with the same leaves: each leaf is a triangle, and pairs of leaves are wedges beyond 2^32."""
    ends = np.arange(2, leaves + 2)
    hubs = [np.full(leaves, hub) for hub in (0, 1)]
    frame = pd.DataFrame({"src": np.concatenate([[0], *hubs]), "dst": np.concatenate([[1], ends, ends])})
    graph = dasktc.prepare(frame, backend="cpu", method=Method(partition="whole"))
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
    graph = dasktc.prepare(frame, backend="cpu", method=Method(partition="whole", reorder=reorder))
    supports = graph.edge_support()
    assert supports.iloc[:, 2].max() == pages
    assert int(supports.iloc[:, 2].sum()) == 3 * pages
    assert graph.triangles()[[0, 1]].tolist() == [pages, pages]


def test_a_complete_graph_by_arithmetic():
    """With 2,400 vertices: 2.3 G triangles, and sums by vertex that add up to 6.9 G."""
    size = 2400
    dst, src = np.tril_indices(size, -1)
    frame = pd.DataFrame({"src": src.astype("int32"), "dst": dst.astype("int32")})
    graph = dasktc.prepare(frame, backend="cpu", method=Method(partition="whole"))
    sums = graph.triangles()
    assert (sums.min(), sums.max()) == (comb(size - 1, 2),) * 2
    assert int(sums.sum()) == 3 * comb(size, 3) > 2**32
    supports = graph.edge_support().iloc[:, 2]
    assert (supports.min(), supports.max()) == (size - 2,) * 2
    assert int(graph.triangle_count()) == comb(size, 3) > 2**31


JOB = Job(Triple((0, 0), (0, 0), (0, 0)), 0, 3, "merge", "cpu")
ODD = [2**31 + 1, 2**32 + 1, 2**53 + 1, 2**60 + 1]
"""float64 cannot represent the last two."""


@pytest.mark.parametrize("each", ODD)
@pytest.mark.parametrize("named", [False, True])
def test_sums_of_vertices_are_whole_numbers(each, named):
    """For a vertex on two sides, and for edges, which have twice the triangles of their ends."""
    numbering = np.arange(3) if named else (0, 1)
    sides = [np.array([each, 0, 1]), np.array([0, each, each - 1])]
    assert added_up(sides, [numbering] * 2, 3, each).tolist() == [each] * 3
    assert added_up([2 * side for side in sides], [numbering] * 2, 3, each, twice=True).tolist() == [each] * 3
    with pytest.raises(CountError, match="do not add up"):
        added_up(sides, [numbering] * 2, 3, each - 1)
    assert orient.total([*sides]).tolist() == [each] * 3
    assert [vertex_counts._sum(side) for side in sides] == [each + 1, 2 * each - 1]


def test_sums_of_vertices_past_63_bits_are_refused():
    each = 2**62 + 1
    with pytest.raises(CountError, match="do not add up"):
        added_up([np.full(3, each)], [(0, 1)], 3, each)


@pytest.mark.parametrize("device", [False, True])
@pytest.mark.parametrize("edges", [3, 2**22 + 3])
def test_supports_are_added_up_at_both_ends(edges, device):
    """A row of `edges` edges in 2^31 - 1 triangles each: 2^33, and more than float64 represents exactly."""
    each = 2**31 - 1
    block = OrientedCSR(np.array([0, edges]), np.zeros(edges, "int32"))
    at_row, at_column = np.zeros(1, "int64"), np.zeros(1, "int64")
    add = partial(device_visit.add_ends, np) if device else CPU.add_ends
    add(block, np.full(edges, each, "int32"), at_row, at_column)
    assert (at_row.tolist(), at_column.tolist()) == ([edges * each], [edges * each])
    if not device:
        assert vertex_counts._at_ends(block, np.full(edges, each, "int32"), 1, 1, True, "cpu")[0].tolist() == [
            2 * edges * each
        ]


@needs_compiler
def test_a_device_adds_supports_up():
    size, each = 2**22 + 3, 2**31 - 1
    answers = DeviceAnswers(HostDevice())
    assert answers.facts(np.full(size, each, "int32")) == (size * each, each)
    numbers = np.array([2**53 + 1, 2**31, 2**62 + 1])
    assert answers.place(numbers, np.array([2, 0, 1], "int32")).tolist() == [2**31, 2**62 + 1, 2**53 + 1]


@pytest.mark.parametrize("each", ODD)
def test_triangles_of_a_task_are_compared_with_their_vertices(each):
    record = Record(JOB, TaskCount(each, 0, 0), "")
    edge_support._checked(JOB, {0: np.array([each, each, 0]), 1: np.array([each])}, record)
    with pytest.raises(CountError, match="not three each"):
        edge_support._checked(JOB, {0: np.array([each, each, 0]), 1: np.array([each - 1])}, record)


def test_supports_of_a_task_are_compared_with_its_triangles():
    """Supports have 32 bits, but their sum has not."""
    triangles = 2**31 - 1
    edge_support._checked(JOB, {0: np.full(3, triangles, "int32")}, Record(JOB, TaskCount(triangles, 0, 0), ""))


@pytest.mark.parametrize("each", ODD)
def test_numbers_of_edges_in_several_blocks(each):
    """They are added where slices meet and where a caller asks for some edges, and are put into a frame."""
    keys = np.array([3 << 32 | 4, 1 << 32 | 2, 1 << 32 | 3])
    slices = [np.stack([keys, np.array([each, 5, each - 7])]), np.stack([keys[::-1], np.array([7, each, 0])])]
    known = [each + 5, each, each]
    assert edge_frames._summed([part.copy() for part in slices]).tolist() == [sorted(keys.tolist()), known]
    assert edge_frames._added(np.stack([keys, np.array(known)])) == (3, sum(known))
    matches = np.sum([edge_frames._matched(part, np.sort(keys)) for part in slices], axis=0)
    assert matches.tolist() == [[2, 2, 2], known]
    vertices = SimpleNamespace(external=np.asarray)
    frame = edge_frames._edge_frame([slices[0], 0, vertices], "support", "pandas", None)
    assert frame["support"].dtype == "int64"
    assert frame.to_numpy().tolist() == [[1, 2, 5], [1, 3, each - 7], [3, 4, each]]


def wide_graph(each, shards=1):
    """A graph of 5 vertices with made-up triangles: `each` at every vertex, and more."""
    edges = pd.DataFrame(oracle.complete(5), columns=["src", "dst"])
    with tuned(least_shards=shards):
        graph = dasktc.prepare(edges, backend="cpu", method=Method(partition="hash2d", parts=2))
    assert graph.plan.shards == shards
    order, starts = graph._context.prepared.graph.order, graph._context.prepared.graph.order.starts
    dense = [part.tolist() for part in graph._context.executor.gather(order.parts)]
    graph._context.counted.by_vertex = Sharded(starts, [np.array([each + v for v in part]) for part in dense])
    graph._context.counted.triangles = each
    return graph


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("each", ODD)
def test_triangles_of_vertices_in_every_answer(each, shards, tmp_path):
    graph, known = wide_graph(each, shards), [each + v for v in range(5)]
    for answer in (graph.triangles(), graph.triangles(frame="dask").compute(), graph.measures()["triangles"]):
        assert (answer.dtype, answer.tolist()) == ("int64", known)
    some_of = graph.triangles(vertices=[3, 0])
    assert (some_of.dtype, some_of.tolist()) == ("int64", [each + 3, each])
    frames, _ = measures.vertex_frames(graph._context)
    for name in ("out.csv", "out.parquet"):
        write_frames(frames, str(tmp_path / name), graph._context.executor, False)
    written = [pd.read_csv(tmp_path / "out.csv")["triangles"], pd.read_parquet(tmp_path / "out.parquet")["triangles"]]
    assert [of.tolist() for of in written] == [known] * 2
    summary = distributions.vertex_summary(graph._context)
    assert summary.most["triangles"].tolist() == known[::-1]


# probes and wedges of tasks


def records_of(each, number=3):
    """Records of `number` tasks with `each` probes and wedges, and one more than the task before."""
    counts = [TaskCount(each + k, each + 2 * k, each + 3 * k, 7, 0.5) for k in range(number)]
    return [Record(replace(JOB, split=k), of, f"host:{k % 2}", k, k + 1) for k, of in enumerate(counts)]


@pytest.fixture(params=ODD)
def counted(request):
    """A count of which each task reported so many probes and wedges."""
    edges = pd.DataFrame(oracle.complete(9), columns=["src", "dst"])
    graph = dasktc.prepare(edges, backend="cpu", method=Method(partition="edges", splits=3))
    records = records_of(request.param)
    total = add_up(graph._context.executor, records)
    stats = CountStatistics.of(records, total, graph.plan, 1, 1.0)
    return graph, request.param, count._result(graph._context, records, total.triangles, stats, {"count": 1.0}, 0.0)


@pytest.mark.parametrize("batch", [10_000, 2])
@pytest.mark.parametrize("each", [*ODD, 2**62 + 1])
def test_reports_of_tasks_are_added_up(each, batch):
    """Also past 2^63, which the last three exceed."""
    total = add_up(LocalExecutor(), records_of(each), batch)
    assert total[:4] == (3 * each + 3, 3 * each + 6, 3 * each + 9, 7)
    assert all(type(number) is int for number in total[:4])


def test_probes_in_a_result(counted):
    _, each, result = counted
    said = json.loads(json.dumps(result.to_dict()))
    assert (said["triangles"], said["wedges"], said["probes"]) == (3 * each + 3, 3 * each + 6, 3 * each + 9)
    for step, name in enumerate(("triangles", "wedges", "probes"), 1):
        assert result.tasks[name].tolist() == [each + step * k for k in range(3)]
        assert result.tasks[name].dtype == "int64"
    assert pickle.loads(pickle.dumps(result)).stats.probes == 3 * each + 9


def test_numbers_of_tasks_in_a_report(counted):
    """Also beside a worker that ran no task, or has ended."""
    _, each, result = counted
    usage = {name: Usage(name, 1, 2) for name in ("host:0", "host:7")}
    text = html_report.page(result, "a graph", run=RunFacts("count", {}, usage))
    assert f"<b>{3 * each + 3:,}</b><span>triangles</span>" in text
    table = text[text.index("<h2>Workers</h2>") : text.index("<h2>Memory")]
    for worker, triangles in (("host:0", 2 * each + 2), ("host:1", each + 1), ("host:7", 0)):
        assert re.search(rf"<td>{worker}</td><td[^>]*>\d+</td><td[^>]*>[\d.]+</td><td[^>]*>{triangles:,}</td>", table)
    for number in (each + 1, each + 2, each + 3, each + 4, each + 6):
        assert f">{number:,}</td>" in text


def test_progress_says_probes_of_all_tasks(counted):
    graph, each, result = counted
    tracker, events = Tracker(), []
    tracker.listen("test", events.append)
    meter = Meter(graph._context, [record.job for record in result._records], [], tracker)
    for record in result._records:
        meter.counted(record)
    said = json.loads(json.dumps(tracker.now()))
    assert (said["triangles"], said["wedges"], said["probes"]) == (3 * each + 3, 3 * each + 6, 3 * each + 9)
    assert said["workers"]["host:0"][1:3] == [2 * each + 6, 2 * each + 2]


@pytest.mark.parametrize("each", ODD)
def test_a_checkpoint_keeps_counts_as_they_are(tmp_path, each):
    records, what = records_of(each), {"graph": "0" * 32, "vertices": 1, "edges": 1, "version": version("dasktc")}
    what |= {"parts": 1, "splits": 3, "partition": "whole", "kernel": "merge", "backend": "cpu", "reorder": "degree"}
    work = [record.job for record in records]
    with checkpoint.opened(tmp_path, what, work) as kept:
        for record in records:
            kept.add(record)
    with checkpoint.opened(tmp_path, what, work) as kept:
        assert sorted(kept.records.values()) == records


@pytest.mark.parametrize("each", [*ODD, 2**63 + 1])
def test_wedges_of_tasks_are_compared_with_those_of_degrees(each):
    records, plan = records_of(each), SimpleNamespace(tasks=3)
    tasks.check(records, plan, 3 * each + 6)
    for wrong in (3 * each + 5, 3 * each + 7):
        with pytest.raises(CountError, match="edges were lost or repeated"):
            tasks.check(records, plan, wrong)


def test_wedges_of_degrees_past_63_bits():
    inward, outward = np.array([2**40 - 1, 2**31 - 1, 0, 3]), np.array([2**39 + 1, 2**31 - 1, 2**40, 0])
    assert orient.wedges_of(inward, outward) == (2**40 - 1) * (2**39 + 1) + (2**31 - 1) ** 2 > 2**64
    inward, outward = (np.array([*[2**30 - few] * 40, few, 0], "int32") for few in (1, 3))
    order = np.roll(np.arange(42, dtype="int32"), 5)
    wedges = 40 * (2**30 - 1) * (2**30 - 3) + 3
    assert orient.wedges_of(inward, outward) == wedges > 2**65
    degree = np.empty(42, "int32")
    degree[order] = inward + outward
    totals = CpuVertices().totals(degree, order, outward)
    assert totals == (41, outward.sum(dtype="int64"), wedges, 2**30 - 3)


@pytest.mark.parametrize("sort_rows", [False, True])
@pytest.mark.parametrize(("families", "loose"), [((1,), True), ((3,), True), ((3, 1), False), ((5, 2), False)])
def test_keys_of_all_blocks_fit_63_bits(families, loose, sort_rows):
    """Columns in any order take a power of two of keys a row: where that is too many, rows are sorted all the same.

    Vertices are dealt by remainder, or to two families in ranges.
    """
    vertices, ranges = 2**31 - 1, len(families) > 1
    axes = [
        Axis(vertices, parts, tuple(vertices * part // parts for part in range(parts + 1)) if ranges else None)
        for parts in families
    ]
    layout = Layout(axes[0], tuple(axes), Shape(vertices, 31, True, sort_rows=sort_rows))
    assert layout.first_keys[-1] < 2**63
    assert (layout.loose_bits > 0) == (loose and not sort_rows)
    columns = layout.sizes[1].ravel().tolist()
    assert all(width >= column for width, column in zip(layout.widths, columns, strict=True))


@pytest.mark.parametrize("vertices", range(1, 14))
def test_wedges_of_vertices_in_several_passes(vertices):
    """The last pass may have a single vertex."""
    inward, outward = np.arange(1, vertices + 1), np.arange(vertices) % 3 + 2
    assert orient.wedges_of(inward, outward, 4) == sum(map(mul, inward.tolist(), outward.tolist()))
    index, table = (
        OrientedCSR(np.cumsum([0, *lengths]), np.zeros(lengths.sum(), "int32")) for lengths in (inward, outward)
    )
    assert wedge_sample.wedges_of(index, table, False, np, 4) == orient.wedges_of(inward, outward)
    assert wedge_sample.wedges_of(table, table, True, np, 4) == sum(comb(length, 2) for length in outward.tolist())


def test_pairs_of_neighbours_past_63_bits():
    """Five vertices with nearly all others as neighbours, undirected and directed."""
    outward, inward = np.full(5, 2**31 - 2, "int32"), np.array([0, 1, 0, 1, 1], "int32")
    degrees = [2**31 - 2 + more for more in inward.tolist()]
    assert vertex_counts.pairs_of(degrees_of(outward, inward)) == sum(map(comb, degrees, [2] * 5)) > 2**63
    assert triad_census._pairs(*[np.array(degrees)] * 3)["021C"] == sum(of * of for of in degrees) > 2**63


def test_wedges_of_long_rows():
    """In an order in which vertices of high degree have no incoming edges: three rows with nearly all vertices."""
    degree = 2**31 - 1
    index = SimpleNamespace(rows=3, offsets=np.arange(4) * degree)
    assert wedge_sample.wedges_of(index, index, True, np) == 3 * comb(degree, 2) > 2**62
    assert wedge_sample.wedges_of(index, index, False, np) == 3 * degree**2 > 2**63


def test_more_wedges_than_64_bits_number_are_counted_not_sampled():
    graph = SimpleNamespace(edges=10**12)
    assert estimate._never_pays(graph, 2**62) == ""
    assert estimate._never_pays(graph, 2**62 + 1).endswith("64 bits do not number them")


@pytest.fixture
def long_row(tmp_path):
    """A row of 2^31 - 1 edges to vertex 0, except the last one, to vertex 1; these two vertices are joined."""
    columns = sparse(tmp_path, 2**31 - 1)
    columns[-1] = 1
    index = OrientedCSR(np.array([0, len(columns)]), columns, ordered=True)
    stream = OrientedCSR(np.array([0, 0, 1]), np.zeros(1, "int32"), ordered=True)
    return BlockTask(index, index, stream)


@pytest.mark.parametrize("backend", ["cpu", pytest.param("cuda", marks=needs_compiler)])
def test_wedges_of_a_long_row_are_found_by_their_numbers(long_row, backend):
    """Among C(2^31 - 1, 2) wedges, those with the last edge are the last 2^31 - 2, and are closed."""
    last, wedges = 2**31 - 2, comb(2**31 - 1, 2)
    closed = cpu_wedges.closed if backend == "cpu" else partial(device_wedges.closed, HostDevice())
    for first, known in ((wedges - last, 5), (wedges - last - 5, 0), (wedges - 5, 5), (2**60 // 8 * 7, 0)):
        assert closed(long_row, Strata(0, 5, -first, 1, 3, True)) == (5, known)


@pytest.fixture
def long_lists(tmp_path):
    """A task of 96 edges to a row of 2^31 - 1 entries; the single entry of their own row is below all of these."""
    edges, columns = 96, sparse(tmp_path, 2**31 - 1)
    columns[0] = 1
    index = OrientedCSR(np.array([0, edges]), np.zeros(edges, "int32"))
    table = OrientedCSR(np.array([0, 1]), np.zeros(1, "int32"))
    return BlockTask(index, table, OrientedCSR(np.array([0, len(columns)]), columns))


WALKED = 96 * 2**31  # 1 + 2^31 - 1 for each edge
STREAMED = 96 * (2**31 - 1)


def test_probes_and_wedges_of_a_task(long_lists):
    count = CPU.count(long_lists, "merge")
    assert count[:3] == (0, STREAMED, WALKED)
    assert WALKED > 2**37


@needs_compiler
def test_probes_and_wedges_of_a_task_on_a_device(long_lists):
    assert count_on(HostDevice(), long_lists, "plain", {"BLOCK": 64})[:3] == (0, STREAMED, WALKED)


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_expected_probes_of_a_task(long_lists, backend):
    found = {
        kernel: CPU.expected_probes(long_lists, kernel)
        if backend == "cpu"
        else launch.expected_probes(np, long_lists, kernel)
        for kernel in KERNELS[backend]
    }
    known = {
        "merge": WALKED,
        "plain": WALKED,
        "short": WALKED,
        "trust": STREAMED,
        "lstc": STREAMED,
        "lstc-unshared": STREAMED,
    }
    known |= dict.fromkeys(("hindex", "hindex-unbinned"), STREAMED)
    assert found == {kernel: known.get(kernel, 96) for kernel in found}


@pytest.mark.slow
def test_probes_of_a_complete_graph():
    """With 3,000 vertices: an edge's row and that of its end are equal up to the end, and the shorter is streamed."""
    size = 3000
    dst, src = np.tril_indices(size, -1)
    frame = pd.DataFrame({"src": src.astype("int32"), "dst": dst.astype("int32")})
    graph = dasktc.prepare(frame, backend="cpu", method=Method(partition="whole", kernel="hub", splits=1))
    result = graph.triangle_count()
    assert (int(result), result.stats.wedges, result.stats.probes) == (comb(size, 3),) * 3
    assert result.stats.probes > 2**32


# places past 2^32 in blocks


@pytest.mark.parametrize("kernel", ["hub", "merge", "search", "tcstream"])
def test_kernels_find_rows_that_stand_far_apart(far_rows, kernel):
    assert CPU.count(far_rows, kernel)[:2] == (5, 80)


@needs_compiler
@pytest.mark.parametrize("kernel", ["merge", "search", "tcstream", "lstc", "short", "plain"])
def test_kernels_of_a_device_find_rows_that_stand_far_apart(far_rows, kernel):
    macros = {
        name: 64 for name in kernel_files.macros(launch.KERNELS[kernel].file) if name in ("BLOCK", "THREADS", "STARTS")
    }
    assert count_on(HostDevice(), far_rows, kernel, macros)[:2] == (5, 80)


def test_edges_far_behind_in_a_block(tmp_path):
    size, first = 2**32 + 9, 2**32 + 4
    columns, values = sparse(tmp_path, size), sparse(tmp_path, size)
    columns[first:], values[first:] = [2, 3, 4, 5, 6], [11, 12, 13, 14, 15]
    ids, offsets = np.arange(10, 20, dtype="int32"), np.array([0, 7, 2**32 + 6, size])
    found = edge_columns.keys_of_block(offsets, columns, ids, ids, values, first, size)
    rows = [11, 11, 12, 12, 12]
    ends = [tuple(sorted((row, column))) for row, column in zip(rows, range(12, 17), strict=True)]
    assert found.tolist() == [[u << 32 | v for u, v in ends], [11, 12, 13, 14, 15]]
