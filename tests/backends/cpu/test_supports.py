"""Triangles by edge and by vertex from the hub kernel's tests, against `visit`, which finds them one by one."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import dasktc
from dasktc import generate
from dasktc.answers import edge_support
from dasktc.answers.edge_support import SPREAD
from dasktc.backends.cpu import hub_tables, merge_support, supports, visit
from dasktc.backends.cpu.sizes import BATCH, support_bytes
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.backends.protocol import TaskSize
from dasktc.errors import InputError
from dasktc.options import Method
from dasktc.planning.schemes import SCHEMES
from tests.support.keywords import keywords
from tests.support.slow_pipeline import source_of, within

GRAPHS = {
    "kronecker": lambda: generate.kronecker(11),  # most rows are hubs'
    "random": lambda: generate.random_graph(4_000, 160_000),  # rows behind the hubs' are long enough to be put off
    "torus": lambda: generate.grid3d(12),
    "sparse": lambda: generate.random_graph(3_000, 6_000),
}


def complete(vertices):
    """The complete graph, as one block."""
    offsets = np.cumsum(np.arange(vertices + 1), dtype="int64") - np.arange(vertices + 1)
    columns = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    return OrientedCSR(offsets, columns.astype("int32"), 1, 0, 0, True, (0, 0))


def check(task, sides=(0, 1, 2)):
    for kernel in (supports, merge_support):
        check_kernel(kernel, task, sides)


def check_kernel(supports, task, sides):
    index, table, stream = task.index, task.table, task.stream
    known, *counts = visit.support(task)
    given, *found = supports.edges(task)
    assert found == counts
    for mine, theirs in zip(given, known, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    sizes = dict(zip(sides, (index.rows, stream.rows, max(table.columns.max(initial=0) + 1, 1)), strict=True))
    sums, *found = supports.vertices(task, sides, sizes)
    assert found == counts
    by_rows = np.add.reduceat(np.append(_role(task), 0), index.offsets[:-1]) * (np.diff(index.offsets) > 0)
    np.testing.assert_array_equal(sums[sides[0]], by_rows)
    assert [int(sums[side].sum()) for side in sides] == [counts[0]] * 3


def _role(task):
    """Triangles of each index edge in that role alone; roles of one block share an array."""
    alone = BlockTask(_copy(task.index), _copy(task.table), _copy(task.stream), task.split, task.splits)
    return visit.support(alone)[0][0]


def _copy(block):
    return replace(block, columns=block.columns.copy())


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("reorder", ["degree", "none"])
@pytest.mark.parametrize("name", GRAPHS)
def test_supports_are_those_of_visit(name, reorder, parts):
    options = {"partition": "hash2d", "parts": parts} if parts > 1 else {"partition": "whole"}
    graph = dasktc.prepare(GRAPHS[name](), backend="cpu", **keywords(reorder=reorder, **options))
    for triple in list(graph.plan.triples())[:: 1 if parts == 1 else 5]:
        blocks = [graph._context.blocks[place] for place in triple.places]
        for split, splits in ((0, 1), (1, 3)):
            check(BlockTask(*blocks, split, splits))


def test_counters_hold_a_whole_batch_of_rows():
    """Rows that each contain all of 40 hubs, so many that all rows of a batch add to each edge of these."""
    hubs, rows = 40, 2 * BATCH + 100
    of_hubs, of_rows = complete(hubs), np.arange(1, rows + 1) * hubs
    offsets = np.concatenate([of_hubs.offsets, of_hubs.offsets[-1] + of_rows])
    columns = np.concatenate([of_hubs.columns, np.tile(np.arange(hubs, dtype="int32"), rows)])
    block = OrientedCSR(offsets, columns, 1, 0, 0, True, (0, 0))
    (support, *_), triangles, _ = supports.edges(BlockTask(block, block, block))
    assert triangles == hubs * (hubs - 1) * (hubs - 2) // 6 + rows * hubs * (hubs - 1) // 2
    assert set(support[: of_hubs.edges].tolist()) == {hubs - 2 + rows}
    assert set(support[of_hubs.edges :].tolist()) == {hubs - 1}


@pytest.mark.slow
def test_counters_do_not_overflow():
    """A row of more than 4,095 hubs, each joined to most others: every edge has V - 2 triangles."""
    block = complete(4_500)
    (support, *_), triangles, _ = supports.edges(BlockTask(block, block, block))
    assert set(np.unique(support)) == {4_498}
    assert triangles == 4_500 * 4_499 * 4_498 // 6
    sums, again, _ = supports.vertices(BlockTask(block, block, block), (0, 0, 0), {0: 4_500})
    assert again == triangles
    assert set(np.unique(sums[0])) == {4_499 * 4_498 // 2}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_has_them(scheme):
    source = generate.kronecker(9)
    graph = dasktc.prepare(
        source, backend="cpu", **keywords(partition=scheme, **{} if scheme in ("whole", "edges") else {"parts": 2})
    )
    whole = dasktc.prepare(source, backend="cpu", method=Method(kernel="merge"))
    assert (edge_support.kernel_and_bytes(graph._context)[0], edge_support.kernel_and_bytes(whole._context)[0]) == (
        "hub",
        "merge",
    )
    assert graph.triangles().equals(whole.triangles())
    assert graph.edge_support().equals(whole.edge_support())
    assert int(whole.triangles().sum()) == 3 * int(whole.triangle_count())


@pytest.mark.parametrize(
    ("how", "tasks"),
    [
        (dict(partition="whole", splits=400), SPREAD),
        (dict(partition="hash2d", parts=2, splits=40), SPREAD),
        (dict(partition="hash2d", parts=5, splits=2), 125),
        (dict(partition="whole", splits=SPREAD), SPREAD),
        (dict(partition="edges", splits=300), SPREAD),
    ],
    ids=str,
)
def test_splits_beyond_what_keeps_workers_busy_are_joined(monkeypatch, how, tasks):
    """Each allocates arrays as long as its blocks: a count in 100,000 splits took a second per thousand of them."""
    source, made = generate.kronecker(9), []
    jobs_of = edge_support.jobs
    monkeypatch.setattr(edge_support, "jobs", lambda *of: made.append(jobs_of(*of)) or made[-1])
    graph = dasktc.prepare(source, backend="cpu", threads=1, **keywords(kernel="hub", **how))
    known = dasktc.prepare(source, backend="cpu")
    assert graph.edge_support().equals(known.edge_support())
    assert graph.measures().equals(known.measures())
    assert len(made[0]) == tasks
    assert int(graph.triangle_count()) == int(known.triangle_count())


def test_splits_stay_where_larger_ones_do_not_fit(monkeypatch):
    wanted = dasktc.prepare(generate.kronecker(9), backend="cpu", method=Method(kernel="hub", splits=400))
    planned = edge_support.kernel_and_bytes

    def tight(graph, plan=None):
        if plan is not None:
            raise InputError("a task needs more")
        return planned(graph)

    monkeypatch.setattr(edge_support, "kernel_and_bytes", tight)
    made, jobs_of = [], edge_support.jobs
    monkeypatch.setattr(edge_support, "jobs", lambda *of: made.append(jobs_of(*of)) or made[-1])
    assert int(wanted.triangles().sum()) == 3 * int(wanted.triangle_count())
    assert len(made[0]) == wanted.plan.tasks


def test_without_room_for_tables_triangles_are_visited():
    wanted = dasktc.prepare(generate.kronecker(9), backend="cpu")
    graph = within(wanted, edge_support.kernel_and_bytes(wanted._context)[1] - 1)
    assert edge_support.kernel_and_bytes(graph._context)[0] == "trust"
    assert graph.triangles().equals(wanted.triangles())
    assert (graph.triangles().attrs, wanted.triangles().attrs) == ({"kernel": "visit"}, {"kernel": "hub"})


@pytest.mark.parametrize("name", ["kronecker", "random"])
def test_bytes_that_are_planned_for(name):
    (block,) = dasktc.prepare(GRAPHS[name](), backend="cpu")._context.blocks.values()
    task = BlockTask(block, block, block)
    supports.edges(task)
    taken = min(_taken(task) for _ in range(3))  # a client's threads in this process may take memory meanwhile
    of = TaskSize(block.edges, block.edges, block.edges, block.rows)
    assert taken <= 4 * block.edges + support_bytes(of, None)
    hub_tables.forget()


def _taken(task):
    hub_tables.forget()
    tracemalloc.start()
    try:
        supports.edges(task)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("partition", ["hash2d", "vertical", "proxy"])
@pytest.mark.parametrize("edges", [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (2, 3), (3, 4)]])
def test_edges_in_blocks_without_wedges_have_a_support(partition, edges):
    with dasktc.prepare(source_of(edges), method=Method(partition=partition, parts=3)) as graph:
        support = graph.edge_support()
    assert sorted(zip(support["src"], support["dst"], strict=True)) == edges
    assert not support.iloc[:, -1].any()
