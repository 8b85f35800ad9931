"""Plans: triples that cover every wedge once, the smallest n that fits, and bytes that blocks really take."""

import json
import re
import tracemalloc
from collections import Counter
from itertools import pairwise, product
from multiprocessing.pool import ThreadPool
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dasktc
from dasktc.backends import GraphBounds, TaskSize, scratch_bytes
from dasktc.backends.cpu.splits import rows_of
from dasktc.backends.csr import BlockTask
from dasktc.backends.vertex_maps import MAX_VERTICES
from dasktc.counting.tasks import jobs, task_of
from dasktc.errors import InputError
from dasktc.executors.local import LocalExecutor
from dasktc.options import Method, Options, bytes_of, format_size
from dasktc.pipeline.planes import Plane
from dasktc.pipeline.planes import choose as choose_plane
from dasktc.pipeline.prepare import lay_out, prepare_edges
from dasktc.planning import plan as planning
from dasktc.planning.grid import Axis
from dasktc.planning.memory_model import bytes_of_triples
from dasktc.planning.plan import BlockSizes, Limits, even_blocks, make_plan
from dasktc.planning.rates import RATES, probes_of
from dasktc.planning.schemes import Sizes, _on_hilbert_curve, scheme_of
from dasktc.registry import SCHEMES
from tests.support.keywords import keywords
from tests.support.oracle import GRAPHS, complete, multigraphs, triangles
from tests.support.slow_pipeline import (
    EVERY_KERNEL,
    EVERY_PARTITION,
    EVERY_REORDER,
    cpu,
    is_by_rows,
    orientation,
    random_edges,
    skewed_edges,
    source_of,
)
from tests.support.tiers import each_once

AMPLE = 1 << 60


def limits(workers=1, memory=AMPLE, **chosen):
    return Limits(workers=workers, memory=memory, **chosen)


def grid_of(edges):
    """Edges in each block of the hashed partition, counted one by one."""

    def grid(parts):
        found = np.zeros((parts, parts), dtype="int64")
        for u, v in edges:
            found[u % parts, v % parts] += 1
        return found

    return grid


def sizes_of(vertices, edges):
    """Sizes of the blocks of the hashed partition."""

    def sizes(partition, parts):
        held = grid_of(edges)(parts)
        rows = np.full_like(held, max(1, -(-vertices // parts)))
        return BlockSizes(Sizes(held, rows, rows))

    return sizes


def plan_of(*given):
    return make_plan(*given)[0]


def no_scratch(of):
    return 0


def of_edges(of):
    return 8 * of.index_edges + 2 * of.block_edges


# The triples


@pytest.mark.parametrize("bits", range(4))
def test_the_hilbert_curve_goes_from_each_point_to_one_beside_it(bits):
    """It passes through every point of the cube; smaller sets of points lie on it in the same order."""
    points = np.indices((1 << bits,) * 3).reshape(3, -1)
    order = points[:, np.argsort(_on_hilbert_curve(points))]
    assert sorted(_on_hilbert_curve(points).tolist()) == list(range(8**bits))
    assert (np.abs(np.diff(order, axis=1)).sum(axis=0) == 1).all()
    assert (np.diff(_on_hilbert_curve(order[:, ::3])) > 0).all() or bits == 0


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_hashed_triples_cover_every_wedge_once(parts):
    """A wedge u → v → w with a possible edge u → w is in exactly one triple, which has all three blocks."""
    n = parts
    plan = plan_of(2 * n, 0, sizes_of(2 * n, []), no_scratch, limits(partition="hash2d", parts=parts))
    emitted = [triple.places for triple in plan.triples()]
    for u, v, w in product(range(2 * n), repeat=3):
        blocks = (u % n, v % n), (u % n, w % n), (v % n, w % n)
        assert emitted.count(blocks) == 1
    assert len(emitted) == n**3


@pytest.mark.parametrize(
    ("reorder", "partition"),
    each_once(product(EVERY_REORDER, EVERY_PARTITION)),
    ids=lambda p: "-".join(map(str, p.values())) if isinstance(p, dict) else p,
)
def test_each_task_handles_its_own_wedges(partition, reorder):
    """By triple and split, against a walk over all wedges of its blocks; together they meet each triangle once."""
    edges = skewed_edges(60, 300, 1)
    graph = dasktc.prepare(source_of(edges), **keywords(reorder=reorder, **partition))
    slow = orientation(edges, by_rows=is_by_rows(graph.plan.partition, reorder))
    order = graph._context.prepared.graph.order.whole
    expected, met = {}, Counter()
    for job in jobs(graph.plan, "hub", "cpu"):
        task = task_of(job, *(graph._context.blocks[p] for p in job.triple.places))
        wedges = list(wedges_of(task, range(*rows_of(task)), order))
        closed = [wedge for wedge, meets in wedges if meets]
        expected[(*job.triple.places, job.split)] = len(wedges), len(closed)
        assert {(v, w) for (_, v, w), _ in wedges} | {(u, v) for (u, v, _), _ in wedges} <= slow.edges
        met.update(closed)
    records = graph.triangle_count()._records
    found = {(*r.job.triple.places, r.job.split): (r.count.wedges, r.count.triangles) for r in records}
    assert found == expected
    assert set(met.values()) <= {1}
    assert set(met) == {(u, v, w) for u, v in slow.edges for w in slow.out[v] if (u, w) in slow.edges}
    assert graph._context.prepared.wedges == sum(wedges for wedges, _ in expected.values())
    if partition["partition"] in ("whole", "edges", "hash2d"):
        assert graph._context.prepared.wedges == slow.wedges


def wedges_of(task, rows, order):
    """The wedges of a task over dense ids, and whether the table row of u contains w."""
    index, table, stream = task.index, task.table, task.stream
    for u in rows:
        source, closing = index.row_ids(np.array([u])), set(table.column_ids(row_of(table, u)).tolist())
        for v in row_of(index, u).tolist():
            middle = index.column_ids(np.array([v]))
            for w in stream.column_ids(row_of(stream, v)).tolist():
                yield tuple(int(order[x]) for x in (source[0], middle[0], w)), w in closing


def row_of(block, row):
    return block.columns[block.offsets[row] : block.offsets[row + 1]]


# n and m


@pytest.mark.parametrize(
    ("workers", "partition", "parts", "splits"),
    [(1, "whole", 1, 4), (2, "whole", 1, 8), (3, "edges", 1, 12), (1, "hash2d", 2, 1), (2, "hash2d", 2, 1),
     (3, "hash2d", 2, 2), (7, "hash2d", 3, 2), (100, "hash2d", 5, 4), (64, "hash2d", 64, 1)],
)  # fmt: skip
def test_m_gives_every_worker_four_tasks(workers, partition, parts, splits):
    found = plan_of(100, 100, all_alike, no_scratch, limits(workers, partition=partition, parts=parts))
    assert found.splits == splits == -(-4 * workers // parts**3)
    assert found.tasks == parts**3 * splits


def all_alike(partition, parts):
    return BlockSizes(SCHEMES[partition].even(parts, 100, 10_000))


def test_m_as_asked():
    found = plan_of(100, 100, all_alike, no_scratch, limits(50, partition="hash2d", parts=2, splits=3))
    assert (found.splits, found.tasks) == (3, 24)


@pytest.mark.parametrize("asked", [7, 100, 10**20, 10**5000], ids=["7", "100", "1e20", "1e5000"])
@pytest.mark.parametrize(
    ("partition", "parts", "splits"),
    [("auto", 6, 1), ("whole", 1, 6), ("edges", 1, 15), ("hash2d", 6, 1), ("vertical", 6, None), ("proxy", 6, None)],
)
def test_no_more_parts_than_vertices_and_no_more_splits_than_rows_or_edges(partition, parts, splits, asked):
    """Further ones would be empty; the plan says what it took instead."""
    found = dasktc.triangle_count(
        source_of(complete(6)), method=Method(partition=partition, parts=asked, splits=max(asked, 16))
    )
    plan = found.plan
    assert int(found) == 20
    assert plan.parts == parts
    assert splits in (None, plan.splits)
    assert plan.splits <= 15
    for name, taken in ("parts", plan.parts), ("splits", plan.splits):
        said = f"{name} are taken as {taken:,}: "
        for text in str(plan), json.dumps(plan.to_dict()):
            assert bool(re.search(said, text)) == (name == "splits" or partition not in ("whole", "edges"))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"parts": 10**20}, "parts=1000000000000000.* makes 1,000,000,000,000,000,000,000,000 block triples"),
        ({"splits": 10**20}, "splits=1000000000000000.* makes 100,000,000 tasks of 1 block triple"),
        ({"parts": 100, "splits": 2}, "splits=2 makes 2,000,000 tasks"),
        ({"parts": 65, "partition": "proxy"}, "parts=65 is more than the 64"),
    ],
)
def test_more_tasks_than_can_be_scheduled(asked, message):
    with pytest.raises(InputError, match=message):
        plan_of(10**8, 10**9, even, no_scratch, limits(**asked))


def even(partition, parts):
    return BlockSizes(Sizes(*(np.full((parts, parts), 10**8 // parts, dtype="int64") for _ in range(3))))


@pytest.mark.parametrize("workers", [10**6, 10**12])
def test_automatic_splits_have_rows_and_can_be_scheduled(workers):
    assert plan_of(10**8, 10**9, even, no_scratch, limits(workers)).tasks == 10**6
    assert plan_of(30, 100, sizes_of(30, []), no_scratch, limits(workers)).tasks == 30


def bytes_needed(vertices, grid, parts, splits, scratch, cuts):
    """Bytes of the largest task: int32 columns, int64 offsets, each block counted once whatever its roles."""
    rows = max(1, -(-vertices // parts))
    needed = []
    for i, j, k in product(range(parts), repeat=3):
        blocks = {(i, k), (i, j), (k, j)}
        edges = -(-int(grid[i, k]) // splits), int(grid[i, j]), int(grid[k, j])
        beside = scratch(TaskSize(*edges, rows, cuts, parts))
        needed.append(sum(4 * int(grid[b]) + 8 * (rows + 1) for b in blocks) + beside)
    return max(needed)


def smallest_that_fits(vertices, edges, scratch, wanted, most=6):
    """The partition, n and bytes of the first plan that fits, found by trying every n; None if none fits."""
    most = min(most, max(1, vertices))  # parts beyond V would be empty
    choices = {"whole": [1], "edges": [1], "hash2d": range(1, most + 1), "auto": range(1, most + 1)}[wanted.partition]
    for n in choices:
        there = len(edges) if wanted.partition == "edges" else -(-vertices // n)
        grid = grid_of(edges)(n)
        counted = sum(bool(grid[i, k] and grid[k, j]) for i, j, k in product(range(n), repeat=3))
        splits = max(1, min(wanted.splits or -(-4 * wanted.workers // max(1, counted)), there))
        whole = n == 1 and wanted.partition != "hash2d"
        for times in (1, 2, 4, 8, 16) if whole and wanted.splits is None else (1,):
            tried = max(1, min(times * splits, there))
            cuts = 1 if wanted.partition == "edges" else tried
            needed = bytes_needed(vertices, grid, n, tried, scratch, cuts)
            needed += 8 * (max(1, vertices) + 1) if wanted.partition == "edges" else 0  # offsets of a range
            if needed <= wanted.memory:
                return "whole" if whole and wanted.partition == "auto" else wanted.partition, n, needed
    return None


ALIKE = [(u, v) for u in range(24) for v in range(u % 2, u, 2)]
"""Both ends of every edge are even, or both are odd: at n = 2 the two off-diagonal blocks are empty."""


@pytest.mark.parametrize("partition", ["auto", "whole", "edges", "hash2d"])
@given(
    edges=multigraphs(max_vertices=30, max_edges=200).map(lambda edges: list(orientation(edges).edges)),
    memory=st.integers(1, 1_500),
    splits=st.none() | st.integers(1, 3),
    workers=st.integers(1, 9),
    scratch=st.sampled_from([no_scratch, lambda of: of.columns, of_edges]),
)
@example(edges=ALIKE, memory=600, splits=None, workers=1, scratch=no_scratch)
@example(edges=[(1, 0)], memory=62, splits=None, workers=4, scratch=of_edges)
def test_the_smallest_n_that_fits(partition, edges, memory, splits, workers, scratch):
    vertices = 1 + max((end for edge in edges for end in edge), default=-1)
    wanted = limits(workers, memory, partition=partition, splits=splits, most_parts=6)
    expected = smallest_that_fits(vertices, edges, scratch, wanted)
    found = plan_of(vertices, len(edges), sizes_of(vertices, edges), scratch, wanted)
    assert found.fits == (expected is not None)
    if expected:
        assert (
            "whole" if found.partition == "whole" else partition,
            found.parts,
            found.bytes_per_task,
        ) == expected


def test_wanted_parts_are_kept_whether_they_fit_or_not():
    edges = random_edges(50, 400, 2)
    for memory, fits in ((AMPLE, True), (100, False)):
        found = plan_of(50, 400, sizes_of(50, edges), no_scratch, limits(memory=memory, parts=3))
        assert (found.partition, found.parts, found.fits) == ("hash2d", 3, fits)
    assert plan_of(50, 400, sizes_of(50, edges), no_scratch, limits(parts=1)).partition == "whole"
    for partition in ("whole", "edges"):
        assert plan_of(50, 400, sizes_of(50, edges), no_scratch, limits(parts=4, partition=partition)).parts == 1


# Bytes


@pytest.mark.parametrize(
    ("name", "partition"),
    each_once(
        [*product(["skewed", "empty", "karate"], EVERY_PARTITION), *product(["edge", "star"], EVERY_PARTITION[:1])]
    ),
    ids=lambda p: "-".join(map(str, p.values())) if isinstance(p, dict) else p,
)
def test_bytes_are_what_the_blocks_hold(name, partition):
    edges = dict((n, e) for n, e, _ in GRAPHS) | {"skewed": skewed_edges(500, 5_000, 3)}
    for kernel in EVERY_KERNEL:
        graph = dasktc.prepare(source_of(edges[name]), **keywords(kernel=kernel, **partition))
        plan, blocks = graph.plan, graph._context.blocks
        assert plan.bytes_total == sum(block.nbytes for block in blocks.values())
        assert {(b.offsets.dtype.str, b.columns.dtype.str) for b in blocks.values()} == {("<i8", "<i4")}
        largest, (_, rows, columns) = 0, graph._context.prepared.sizes
        weights = sum(u != v for u, v in edges[name])
        assert {place: block.rows for place, block in blocks.items()} == {p: rows[p] for p in blocks}
        for triple, splits in [*((t, plan.splits) for t in plan.triples()), *plan.tasks_of_triples()]:
            index_edges = -(-blocks[triple.index].edges // splits)
            edges_of = index_edges, blocks[triple.table].edges, blocks[triple.stream].edges
            widest = max(max(rows[place], columns[place]) for place in triple.places)
            cuts, dealt = (1 if plan.cut == "edges" else splits), (plan.parts if plan.partition == "hash2d" else 1)
            lower = plan.partition != "vertical" or all(
                blocks[place].row_first - blocks[place].column_first <= 1 for place in (triple.table, triple.stream)
            )
            of = TaskSize(*edges_of, widest, cuts, dealt, lower)
            beside = scratch_bytes(
                "cpu", kernel, of, GraphBounds(weights, graph._context.options.chosen_reorder == "degree")
            )
            beside += blocks[triple.index].offsets.nbytes if plan.cut == "edges" else 0
            largest = max(largest, beside + sum(blocks[place].nbytes for place in set(triple.places)))
        assert plan.bytes_per_task == largest
        held = [blocks[triple.table].edges for triple in plan.triples()]
        assert (plan.block_edges_min, plan.block_edges_max) == (min(held), max(held))
        families = {"vertical": 2, "proxy": 1}.get(plan.partition, 1)
        assert sum(block.edges for block in blocks.values() if plan.partition != "proxy") in (0, families * plan.edges)


@pytest.mark.parametrize(("kernel", "reorder"), each_once(product(EVERY_KERNEL, EVERY_REORDER)))
def test_a_task_allocates_no_more_than_planned(kernel, reorder):
    """Also where one split has nearly all edges: K_200 over multiples of m."""
    m = 7
    path = [(u, u + 1) for u in range(200 * m)]
    block = dasktc.prepare(
        source_of([(m * u, m * v) for u, v in complete(200)] + path), method=Method(reorder=reorder, partition="whole")
    )._context.blocks[0, 0]
    of = TaskSize(-(-block.edges // m), block.edges, block.edges, block.rows, m)
    planned = scratch_bytes("cpu", kernel, of, GraphBounds(block.edges, reorder == "degree"))
    for split in range(m):
        task = BlockTask(block, block, block, split, m)
        cpu().count(task, kernel)
        peak = min(allocated(task, kernel) for _ in range(5))
        assert peak < planned + 4_000  # a few small Python objects


def allocated(task, kernel):
    """Peak of the bytes allocated in a thread without tables, including those of a cluster's threads."""
    with ThreadPool(1) as fresh:
        tracemalloc.start()
        fresh.apply(cpu().count, (task, kernel))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


@given(multigraphs(max_vertices=20), st.integers(1, 7), st.integers(1, 5), st.sampled_from(EVERY_REORDER))
def test_blocks_hold_the_oriented_graph(edges, parts, slabs, reorder):
    """For any number of slabs per block: rows, columns, ascending order, and places."""

    found = prepare_edges(LocalExecutor(), source_of(edges, parts=2), Options(reorder=reorder))
    order, slow = found.graph.order.whole, orientation(edges, by_rows=reorder == "degree")
    shape = found.partition.layout.graph
    plane = choose_plane(LocalExecutor(), found.options)
    partition = lay_out(plane, found.graph, "hash2d", parts, found.options, shape)
    layout, grid = partition.layout, partition.sizes.edges
    with mock.patch.object(Plane, "partitions", return_value=slabs * parts**2):
        blocks = plane.blocks(found.graph, layout)
    pairs = []
    for (i, j), block in blocks.items():
        assert (block.stride, block.row_first, block.column_first, block.place) == (parts, i, j, (i, j))
        assert (block.rows, block.edges) == (max(1, -(-len(order) // parts)), grid[i, j])
        assert block.offsets[0] == 0
        for row, (a, b) in enumerate(zip(block.offsets[:-1], block.offsets[1:], strict=True)):
            columns = block.columns[a:b]
            assert (np.diff(columns) > 0).all()
            pairs += [(int(order[row * parts + i]), int(order[c * parts + j])) for c in columns]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == slow.edges


def test_a_whole_graph_says_what_its_vertices_take():
    plan = dasktc.plan(vertices=10**9, edges=10**9, method=Method(partition="whole"), memory="8GB").plan
    assert not plan.fits
    assert plan.why.startswith("whole at n = 1 needs 1")
    assert "P[0][0], 8 GB of it offsets), more than the 8 GB" in plan.why


def test_one_slab_a_worker_has_about_equally_many_edges():
    """In degree order the rows of hubs are short, so ranges of rows are cut by edges and not by numbers of rows."""
    found = prepare_edges(LocalExecutor(), source_of(skewed_edges(2_000, 20_000, 4)), Options())
    out = found.graph.out_degree.whole
    plane = choose_plane(LocalExecutor(), Options())
    starts = [*plane.cut_evenly("blocks", found.graph.out_degree, Axis(len(out), 1), 4)[0], len(out)]
    edges = [int(out[a:b].sum()) for a, b in pairwise(starts)]
    assert max(edges) - min(edges) <= 2 * int(out.max())


# What a caller meets


def test_a_budget_that_is_too_small_is_refused_with_figures():
    source = source_of(complete(60))
    need = dasktc.prepare(source, method=Method(partition="whole")).plan.bytes_per_task
    with pytest.raises(InputError) as error:
        dasktc.triangle_count(source, method=Method(partition="whole"), memory=need - 1)
    text = str(error.value)
    assert "\n" not in text
    assert format_size(need) in text
    assert format_size(need - 1) in text
    assert "n = 1" in text
    assert "P[0][0]" in text
    assert "raise memory=..., or let method=Method(partition='auto') choose n" in text
    assert int(dasktc.triangle_count(source, method=Method(partition="whole"), memory=need)) == triangles(complete(60))


def test_the_advice_fits_what_was_asked_for():
    """The advice is not to let --partition auto choose n where that was done already."""
    edges = source_of(complete(60))
    with pytest.raises(InputError, match="auto"):
        dasktc.triangle_count(edges, method=Method(partition="hash2d", parts=2), memory=10)
    with pytest.raises(InputError) as error:
        dasktc.triangle_count(edges, memory=10)
    assert "auto" not in str(error.value)


def test_a_small_budget_makes_more_parts_and_the_same_count():
    edges = skewed_edges(400, 8_000, 5)
    source, seen = source_of(edges), set()
    whole = dasktc.triangle_count(source)
    for share in (1, 4, 16, 64):
        result = dasktc.triangle_count(source, memory=whole.plan.bytes_per_task // share)
        assert result.plan.fits
        assert result.plan.bytes_per_task <= whole.plan.bytes_per_task // share
        assert (int(result), result.stats.wedges) == (int(whole), whole.stats.wedges)
        seen.add(result.plan.parts)
    assert len(seen) > 2


@pytest.mark.parametrize("value", [0, -1, -7])
@pytest.mark.parametrize("name", ["parts", "splits"])
def test_parts_and_splits_below_one_are_refused(name, value):
    wanted = rf"{name}={value} is below 1"
    with pytest.raises(InputError, match=wanted):
        dasktc.triangle_count(source_of([(0, 1)]), **keywords(**{name: value}))
    with pytest.raises(InputError, match=wanted):
        dasktc.plan(vertices=10, edges=10, **keywords(**{name: value}))


@pytest.mark.parametrize("value", ["3", 2.5])
@pytest.mark.parametrize("name", ["parts", "splits"])
def test_parts_and_splits_that_are_no_integers_are_refused(name, value):
    with pytest.raises(InputError, match=f"{name}="):
        Options(**{name: value})


def test_more_triples_than_a_scheduler_takes_are_refused():
    """n³ tasks are a list in the client: a billion of them would never start."""
    with pytest.raises(InputError, match="parts=1000000 makes"):
        dasktc.plan(vertices=10**9, edges=10**10, method=Method(partition="hash2d", parts=10**6))


@pytest.mark.parametrize("value", ["lots", "-4GB", 0, -1, "0.2B"])
def test_memory_that_is_no_size_is_refused(value):
    with pytest.raises(InputError, match="memory="):
        dasktc.triangle_count(source_of([(0, 1)]), memory=value)


def test_memory_in_words():
    assert [bytes_of(v) for v in (None, 7, "7", "4GB", "4 GiB", 1.5e9)] == [
        None,
        7,
        7,
        4 * 10**9,
        4 << 30,
        1_500_000_000,
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (1_540, "1.54 kB"), (999_700, "1 MB"), (123_456, "123 kB"),
     (10**9, "1 GB"), (4.2e12, "4.2 TB"), (1234e12, "1234 TB")],
)  # fmt: skip
def test_sizes_for_people(count, text):
    assert format_size(count) == text


def test_plan_size_assumes_equal_blocks():
    found = dasktc.plan(
        vertices=1_000, edges=90_000, method=Method(partition="hash2d", parts=3), workers=2, memory="1GB"
    ).plan
    assert (found.parts, found.tasks, found.block_edges_min, found.block_edges_max) == (3, 27, 10_000, 10_000)
    assert found.bytes_total == 9 * (4 * 10_000 + 8 * 335)
    assert found.fits


@pytest.mark.parametrize(("vertices", "edges", "name"), [(-1, 5, "vertices="), (5, -1, "edges=")])
def test_plan_size_refuses_negative_sizes(vertices, edges, name):
    with pytest.raises(InputError, match=name):
        dasktc.plan(vertices=vertices, edges=edges)


def test_no_block_has_more_columns_than_32_bits_name():
    found = dasktc.plan(vertices=MAX_VERTICES + 1, edges=10**10, memory="1TB").plan
    assert (found.partition, found.parts, found.fits) == ("hash2d", 2, False)
    assert found.why.startswith(f"counting refuses more than {MAX_VERTICES:,} vertices; ")
    assert dasktc.plan(vertices=MAX_VERTICES, edges=10**10, memory="1TB").plan.fits
    assert (
        dasktc.plan(vertices=5 * MAX_VERTICES, edges=10**10, method=Method(partition="hash2d"), memory="1TB").plan.parts
        == 5
    )
    for asked in ({"partition": "whole"}, {"partition": "edges"}, {"parts": 4}):
        with pytest.raises(InputError, match=f"{MAX_VERTICES:,}.*parts=5\\)"):
            dasktc.plan(vertices=5 * MAX_VERTICES, edges=10**10, memory="1TB", **keywords(**asked))


@pytest.mark.parametrize(("vertices", "edges"), [(65 * 2**31, 5), (5, 2**60)])
def test_sizes_that_no_plan_has_blocks_for_are_refused(vertices, edges):
    with pytest.raises(InputError, match="no plan has blocks"):
        dasktc.plan(vertices=vertices, edges=edges)


@pytest.mark.parametrize(("vertices", "edges"), [(5, 11), (1, 1), (0, 1), (70_000, 70_000 * 69_999 // 2 + 1)])
def test_more_edges_than_pairs_of_vertices_are_refused(vertices, edges):
    possible = max(0, vertices * (vertices - 1) // 2)
    with pytest.raises(InputError, match=f"edges={edges} is more than the {possible:,} that {vertices:,}"):
        dasktc.plan(vertices=vertices, edges=edges, memory="1GB")
    assert dasktc.plan(vertices=vertices, edges=possible, memory="1TB").plan.fits


def test_plan_source_is_the_plan_of_the_count():
    edges = skewed_edges(300, 3_000, 6)
    for options in ({}, {"partition": "hash2d", "parts": 3, "splits": 2}, {"kernel": "trust"}):
        chosen = {"memory": "1GB", **options}
        counted = dasktc.triangle_count(source_of(edges), **keywords(**chosen)).plan
        assert dasktc.plan(source_of(edges), **keywords(**chosen)).plan == counted
    assert dasktc.plan(source_of(edges), workers=5, memory="1GB").plan.splits == 20


def test_a_plan_that_does_not_fit_is_shown_not_refused():
    found = dasktc.plan(source_of(complete(50)), memory=10).plan
    assert not found.fits
    assert "NO" in str(found)


def test_plan_to_dict_is_json():
    shown = json.loads(json.dumps(dasktc.plan(source_of(complete(9))).plan.to_dict()))
    assert {"parts", "splits", "tasks", "bytes_per_task", "bytes_total", "fits"} <= set(shown)
    assert shown["fits"] is True


def test_space_imbalance():
    assert dasktc.plan(vertices=10, edges=45, method=Method(parts=3)).plan.space_imbalance == 1
    assert dasktc.plan(vertices=10, edges=0, method=Method(parts=3)).plan.space_imbalance is None
    edges = [(3, 0), (3, 1), (3, 2), (2, 0), (2, 1)]
    found = plan_of(4, 5, sizes_of(4, edges), no_scratch, limits(parts=2))
    assert (found.block_edges_max, found.block_edges_min, found.space_imbalance) == (2, 1, 2)


def test_splits_that_are_chosen_are_never_more_than_a_scheduler_takes():
    """A slow kernel's tasks are many, and more splits to make room for scratch would be too many."""
    method = Method(kernel="trust")
    planned = dasktc.plan(
        vertices=955_000_000, edges=37_400_000_000, workers=64, memory="100GB", backend="cpu", method=method
    ).plan
    assert planned.fits
    assert planned.tasks <= 10**6


@pytest.mark.slow
def test_as_many_parts_as_vertices_if_no_fewer_fit():
    """For a graph of 40 vertices, n = 40 is tried last, where only its tasks fit."""
    size = {"vertices": 40, "edges": 780, "partition": "hash2d", "splits": 1}
    most, fewer = (dasktc.plan(memory="1 GB", **keywords(**size, parts=n)).plan.bytes_per_task for n in (40, 39))
    assert most < fewer
    assert dasktc.plan(memory=fewer, **keywords(**size)).plan.parts < 40
    assert dasktc.plan(memory=most, **keywords(**size)).plan.parts == 40


def test_the_partition_that_is_built_is_that_of_the_plan():
    """Also where the plan falls back to an earlier one."""
    size, measured = (10**9, planning.LARGE), []

    def measure(scheme, parts):
        measured.append(BlockSizes(scheme_of(scheme).even(parts, *size)))
        return measured[-1]

    block = int(scheme_of("whole").block_bytes(scheme_of("whole").even(1, *size)).sum())
    plan, partition = make_plan(*size, measure, lambda task: 10**13, Limits(1, block), lean=lambda task: 0)
    assert (plan.partition, plan.parts, plan.lean, plan.fits) == ("whole", 1, True, True)
    assert len(measured) > 1
    assert partition is measured[0]


@pytest.mark.parametrize("edges", [10**7, 10**8, 3 * 10**9, 10**11])
@pytest.mark.parametrize(("scheme", "parts"), [("whole", 1), ("hash2d", 4)])
def test_no_task_is_planned_to_take_longer_than_the_longest_and_no_more_are_made(edges, scheme, parts):
    rates = RATES["cpu"]
    limits = Limits(1, 1 << 60, scheme, parts, tasks_a_worker=1, rates=rates, times=1.5)
    plan, _ = make_plan(10**7, edges, even_blocks(10**7, edges), lambda task: 0, limits)
    work = 1.5 * (edges / rates.edges + probes_of(edges) / rates.probes)
    assert work / plan.tasks <= planning.TASK_SECONDS
    if plan.splits > 1:
        assert work / (plan.tasks - parts**3) > planning.TASK_SECONDS


def test_a_plan_says_which_wishes_it_did_not_fulfil():
    asked = dasktc.plan(vertices=1000, edges=9000, method=Method(partition="hash2d", parts=3, splits=7)).plan
    beyond = dasktc.plan(vertices=1000, edges=9000, method=Method(partition="hash2d", parts=3, splits=7000)).plan
    assert "is taken as" not in asked.why
    assert f"7000 splits are taken as {beyond.splits}: the largest index block has no more rows" in beyond.why


def uneven_blocks(vertices, edges, seed):
    """A measure of grids whose blocks all differ."""

    def measure(scheme, parts):
        even = scheme_of(scheme).even(parts, vertices, edges)
        factors = np.random.default_rng([seed, parts]).uniform(0.5, 1.5, even.edges.shape)
        return BlockSizes(even._replace(edges=(even.edges * factors).astype("int64")))

    return measure


def test_a_plan_that_never_fits_asks_for_the_scratch_of_few_tasks():
    """In uneven blocks no two of the n³ tasks of a plan are alike: only the last n is asked about all of them."""
    asked, last = [], 12

    def scratch(task):
        asked.append(task)
        return 10**9

    wanted = limits(4, 10**6, partition="vertical", most_parts=last)
    plan, _ = make_plan(10**4, 10**5, uneven_blocks(10**4, 10**5, 1), scratch, wanted)
    assert (plan.fits, plan.parts) == (False, last)
    assert last**3 <= len(asked) <= last**3 + 6 * last


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scheme", ["vertical", "hash2d", "auto"])
@pytest.mark.parametrize(
    "scratch",
    [
        no_scratch,
        lambda task: 40 * task.columns,
        lambda task: 9 * task.stream_edges,
        lambda task: 9 * min(task.table_edges, task.index_edges),
    ],
)
def test_a_plan_is_that_of_the_scratch_of_all_tasks(seed, scheme, scratch):
    for chosen in ({}, {"splits": 3}):
        wanted = Limits(2, 60_000 * (seed + 2), scheme, most_parts=9, **chosen)
        given = 10**4, 10**5, uneven_blocks(10**4, 10**5, seed), scratch, wanted, lambda task: scratch(task) // 2
        plan, _ = make_plan(*given)
        with mock.patch.object(planning, "bytes_of_triples", lambda *given: bytes_of_triples(*given[:-1])):
            known, _ = make_plan(*given)
        assert plan == known
