"""The CPU kernels against sets, and their reported work against arithmetic."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
import weakref
from dataclasses import replace
from itertools import pairwise, product
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.backends import GraphBounds, TaskSize, get_backend, scratch_bytes
from dasktc.backends.cpu import backend as cpu
from dasktc.backends.cpu import hub, hub_tables, intersect, probes, radix, sizes, visit
from dasktc.backends.cpu import splits as splitting
from dasktc.backends.cpu.backend import expected_probes
from dasktc.backends.cpu.jit import Kernel
from dasktc.backends.cpu.radix import FEW, sort
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.errors import CountError, InputError
from tests.support.processes import patience
from tests.support.slow_pipeline import pairwise_cover
from tests.support.tiers import each_once, some


def block(edges, vertices, parts=1, i=0, j=0, ordered=True):
    """A block with the edges (u, v) with u % parts = i and v % parts = j, row by row."""
    rows = [[] for _ in range(i, vertices, parts)]
    for u, v in sorted(edges):
        if (u % parts, v % parts) == (i, j):
            rows[u // parts].append(v // parts)
    offsets = np.cumsum([0] + [len(row) for row in rows])
    columns = np.array([v for row in rows for v in row], np.int32)
    return OrientedCSR(offsets.astype(np.int64), columns, parts, i, j, ordered)


def tasks(edges, vertices, parts=1, splits=1, ordered=True):
    """Every task of TRUST's 2D partition; with one part, of the whole graph."""
    grid = {(i, j): block(edges, vertices, parts, i, j, ordered) for i, j in product(range(parts), repeat=2)}
    for i, j, k, split in product(range(parts), range(parts), range(parts), range(splits)):
        yield BlockTask(grid[i, k], grid[i, j], grid[k, j], split, splits)


def neighbours(edges):
    rows = {}
    for u, v in edges:
        rows.setdefault(u, set()).add(v)
    return rows


def triangles_of(edges):
    rows = neighbours(edges)
    return sum(len(rows[u] & rows.get(v, set())) for u, v in edges)


def wedges_of(edges):
    rows = neighbours(edges)
    return sum(len(rows.get(v, ())) for _, v in edges)


def streamed(task):
    """The lengths of the streamed rows, whether or not they are probed."""
    return probes.expected_probes(task, lambda lengths: lengths.b)


def check(edges, vertices, parts=1, splits=1, ordered=True, kernels=cpu.KERNELS):
    found = list(tasks(edges, vertices, parts, splits, ordered))
    found.sort(key=lambda task: id(task.stream))  # tasks that share a stream block meet each other's tables
    triangles, wedges, each = triangles_of(edges), wedges_of(edges), [streamed(task) for task in found]
    for kernel in kernels:
        counts = [cpu.count(task, kernel) for task in found]
        assert sum(count.triangles for count in counts) == triangles, kernel
        assert sum(count.wedges for count in counts) == wedges, kernel
        for task, count, wedges_here in zip(found, counts, each, strict=True):
            assert count.probes == expected_probes(task, kernel), kernel
            assert count.wedges == wedges_here, kernel
            assert all(type(number) is int for number in count[:4])
            assert (count.max_collision > 0) <= (kernel in ("trust", "hindex"))
            assert count.seconds >= 0


def clique(vertices):
    return [(u, v) for u in range(vertices) for v in range(u)]


def random_edges(vertices, edges, seed, below=None):
    """Random edges to smaller ids; `below` keeps the targets under a bound, as hubs do."""
    rng = np.random.default_rng(seed)
    u = rng.integers(1, vertices, edges)
    v = rng.integers(0, below or vertices, edges) % u
    return sorted(set(zip(u.tolist(), v.tolist(), strict=True)))


GRAPHS = {
    "nothing": (0, []),
    "one vertex": (1, []),
    "vertices alone": (7, []),
    "edge": (2, [(1, 0)]),
    "triangle": (3, clique(3)),
    "triangle among empty rows": (40, [(31, 11), (31, 2), (11, 2)]),
    "star inward": (60, [(leaf, 0) for leaf in range(1, 60)]),
    "star outward": (60, [(59, leaf) for leaf in range(59)]),
    "book": (60, [(1, 0)] + [(page, spine) for page in range(2, 60) for spine in (0, 1)]),
    "path": (50, [(u, u - 1) for u in range(1, 50)]),
    "clique": (45, clique(45)),
    "two cliques": (60, [(a + 30 * k, b + 30 * k) for k in range(2) for a, b in clique(30)] + [(30, 0)]),
    "sparse": (200, random_edges(200, 300, 1)),
    "dense": (90, random_edges(90, 6000, 2)),
    "hubs": (700, random_edges(700, 4000, 3, below=40)),
}


@pytest.mark.parametrize(
    ("name", "parts", "ordered"), each_once(pairwise_cover([*GRAPHS], [2, 1, 3, 5], [False, True]))
)
def test_counts_are_exact(name, parts, ordered):
    vertices, edges = GRAPHS[name]
    if not ordered:  # any numbering will do: turn it round, and then some
        edges = [(turned(u, vertices), turned(v, vertices)) for u, v in edges]
    for splits in (1, 3):
        check(edges, vertices, parts, splits, ordered)


def turned(vertex, vertices):
    return (vertices - 1 - vertex) ^ 1 if vertices % 2 == 0 else vertices - 1 - vertex


@st.composite
def graphs(draw):
    vertices = draw(st.integers(1, 90))
    ids = st.integers(0, vertices - 1)
    pairs = draw(st.lists(st.tuples(ids, ids), max_size=150))
    core = clique(draw(st.integers(0, min(vertices, 50))))
    ordered = draw(st.booleans())
    found = {(max(e), min(e)) for e in pairs + core if e[0] != e[1]}
    if not ordered:
        scramble = draw(st.permutations(range(vertices)))
        found = {(scramble[u], scramble[v]) for u, v in found}
    return sorted(found), vertices, ordered


@given(graphs(), st.integers(1, 5), st.integers(1, 4), st.sampled_from([0, 1, 20, sizes.HUBS]))
def test_any_graph_in_any_partition(graph, parts, splits, hubs):
    edges, vertices, ordered = graph
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "HUBS", hubs)
        check(edges, vertices, parts, splits, ordered)


@pytest.mark.parametrize(
    ("hubs", "parts", "splits"),
    some(
        [(0, 2, 2), (1, 1, 3), (511, 1, 1), (512, 1, 3), (513, 2, 2), (1100, 1, 1), (sizes.HUBS, 1, 3)],
        lambda hubs, parts, splits: splits == 2,
    ),
)
def test_every_table_of_the_hub_kernel(hubs, parts, splits, monkeypatch):
    """Rows of all lengths over three blocks of a bitmap: ANDed, streamed in either direction, and deferred."""
    edges = sorted(set(random_edges(1400, 30_000, 5) + random_edges(1400, 40_000, 6, below=1200) + clique(120)))
    monkeypatch.setattr(sizes, "HUBS", hubs)
    check(edges, 1400, parts, splits, kernels=("hub",))


@pytest.mark.parametrize(("name", "kernel", "ordered"), each_once(product(GRAPHS, cpu.KERNELS, [True, False])))
def test_splits_are_ranges_that_follow_each_other(name, kernel, ordered):
    vertices, edges = GRAPHS[name]
    for splits in (1, 2, 3, 9, 200):
        for parts in (1, 2):
            found = list(tasks(edges, vertices, parts, splits, ordered))
            for first in range(0, len(found), splits):
                ranges = [splitting.rows_of(replace(task, cut_for=kernel)) for task in found[first : first + splits]]
                assert ranges[0][0] == 0
                assert ranges[-1][1] == found[first].index.rows
                assert all(begin <= end for begin, end in ranges)
                assert all(end == begin for (_, end), (begin, _) in pairwise(ranges))


@pytest.mark.parametrize("kernel", ["trust", "merge", "search"])
@pytest.mark.parametrize("below", [300, 3000])
def test_splits_have_equal_work(kernel, below):
    """Where probes cost the same, they measure the work; splits with equal numbers of rows differ 3 times and more."""
    edges = random_edges(3000, 60_000, 9, below=below)
    probes = [cpu.count(replace(task, cut_for=kernel), kernel).probes for task in tasks(edges, 3000, 1, 8)]
    assert max(probes) < 1.1 * min(probes)


def test_splits_of_tiles_have_equal_work():
    """Each entry of v's list is bisected in the tiles of u's; the steps are the bits of the tiles' lengths."""
    dense = [(u + 2000, v + 2000) for u, v in random_edges(200, 30_000, 9)]
    edges = sorted({*random_edges(3000, 30_000, 9), *dense})
    work = []
    for task in tasks(edges, 3000, 1, 8):
        begin, end = splitting.rows_of(replace(task, cut_for="lstc"))
        index, sizes_of = task.index, np.diff(task.table.offsets)
        work.append(0)
        for u in range(begin, end):
            for v in index.columns[index.offsets[u] : index.offsets[u + 1]].tolist():
                work[-1] += int(sizes_of[v]) * int(sizes_of[u]).bit_length()
    assert max(work) < 1.25 * min(work)


def test_tables_of_a_stream_block_serve_its_next_task():
    vertices, edges = GRAPHS["hubs"]
    (first,), (second,) = tasks(edges, vertices), tasks(edges, vertices)
    expected = triangles_of(edges)
    assert cpu.count(first, "hub").triangles == expected
    tables = hub_tables.kept()
    assert cpu.count(first, "hub").triangles == expected
    assert hub_tables.kept() is tables is not None
    assert cpu.count(second, "hub").triangles == expected
    assert hub_tables.kept() is not tables
    del second
    assert hub_tables.kept() is None  # gone with the block


def rows_of_block(rows, height, ordered=False):
    """A block of one part from a few of its rows."""
    lengths = np.zeros(height, np.int64)
    lengths[list(rows)] = [len(row) for row in rows.values()]
    columns = np.array([w for u in sorted(rows) for w in rows[u]], np.int32)
    return OrientedCSR(np.concatenate(([0], np.cumsum(lengths))), columns, ordered=ordered)


def test_kept_tables_are_wide_enough_for_the_next_table():
    """One stream, unordered; the second table's columns lie beyond the marker that the first one needed."""
    stream, index = rows_of_block({0: range(40)}, 600), rows_of_block({5: [0]}, 600)
    narrow, wide = rows_of_block({5: [1, 2]}, 600), rows_of_block({5: range(100, 130)}, 600)
    for number in range(300):
        rubbish = [np.full(size, 1 + number % 255, np.uint8) for size in range(1, 200)]  # what may lie behind it
        del rubbish
        hub_tables.forget()
        found = [cpu.count(BlockTask(index, table, stream), "hub").triangles for table in (narrow, wide)]
        assert found == [2, 0]


def test_kept_tables_are_of_the_same_order():
    """Bitmaps of hubs, which end at their row, must not serve unordered blocks."""
    stream = rows_of_block({40: range(40), 41: range(41)}, 2000, ordered=True)
    index, table = rows_of_block({1500: [40]}, 2000), rows_of_block({1500: [40, 517]}, 2000)
    hub_tables.forget()
    cpu.count(BlockTask(stream, stream, stream), "hub")
    assert cpu.count(BlockTask(index, table, stream), "hub").triangles == 0


def test_tables_of_one_block_go_before_those_of_the_next_come():
    vertices = 200_000  # a byte and more a row, most of them empty
    edges = [(u + vertices - 60, v + vertices - 60) for u, v in clique(60)]
    blocks = [task for _ in range(3) for task in tasks(edges, vertices, ordered=False)]
    announced = scratch_bytes("cpu", "hub", TaskSize(len(edges), len(edges), len(edges), vertices))

    def all_of_them():
        for task in blocks:
            cpu.count(task, "hub")

    def peak():
        with ThreadPool(1) as fresh:
            tracemalloc.start()
            try:
                fresh.apply(all_of_them)
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    all_of_them()
    assert min(peak() for _ in range(3)) <= announced + 20_000, "the least, for other threads' bytes are counted too"


@pytest.mark.parametrize("other", [kernel for kernel in cpu.KERNELS if kernel != "hub"] + ["support"])
def test_tables_make_room_for_other_work(other):
    vertices, edges = GRAPHS["dense"]
    (task,) = tasks(edges, vertices)
    cpu.count(task, "hub")
    assert hub_tables.kept() is not None
    visit.support(task) if other == "support" else cpu.count(task, other)
    assert hub_tables.kept() is None


def test_tables_go_with_their_thread():
    vertices, edges = GRAPHS["dense"]
    (task,) = tasks(edges, vertices)

    def counted():
        cpu.count(task, "hub")
        return weakref.ref(hub_tables.kept())

    gc.disable()
    try:
        with ThreadPool(1) as fresh:
            tables = fresh.apply(counted)
        fresh.join()
        assert tables() is None
    finally:
        gc.enable()


def test_many_splits_have_about_equal_work():
    """More splits than a sample of fixed size could distinguish."""
    edges, splits = random_edges(20_000, 200_000, 9), 1024
    found = (replace(task, cut_for="merge") for task in tasks(edges, 20_000, 1, splits))
    probes = [cpu.count(task, "merge").probes for task in found]
    assert max(probes) < 1.35 * sum(probes) / splits


def test_tables_that_an_error_left_behind_are_not_used_again(monkeypatch):
    """Without an order of the vertices no vertex is a hub, and edges are deferred."""
    vertices, edges = GRAPHS["dense"]
    (task,) = tasks(edges, vertices, ordered=False)
    expected = cpu.count(task, "hub")
    with monkeypatch.context() as patch:
        patch.setattr(hub, "group", interrupted)
        with pytest.raises(RuntimeError):
            cpu.count(task, "hub")
    assert hub_tables.kept() is None
    assert cpu.count(task, "hub")[:4] == expected[:4]


def interrupted(*_):
    raise RuntimeError


@pytest.mark.parametrize("most", [1, 7, 300, 2000])
@pytest.mark.parametrize("splits", [1, 3])
def test_rows_taken_in_chunks(most, splits, monkeypatch):
    edges = clique(70)
    monkeypatch.setattr(sizes, "HUBS", 10)
    monkeypatch.setattr(sizes, "MOST", most)
    check(edges, 70, 1, splits, kernels=("hub",))
    check(edges, 70, 2, splits, kernels=("hub",))


@pytest.mark.parametrize("kernel", cpu.KERNELS)
def test_a_hub_whose_neighbours_all_hash_alike(kernel):
    """5000 leaves, multiples of 1024, fill one bucket and 39 more; half of them close a triangle."""
    leaves = np.arange(1, 5001, dtype=np.int64) * 1024
    top, middle = 5_200_000, 5_199_999
    lengths = np.zeros(top + 1, np.int64)
    lengths[middle], lengths[top] = 5000, 5001
    others = np.concatenate((leaves[::2], leaves[::2] + 1))
    columns = np.concatenate((np.sort(others), leaves, [middle])).astype(np.int32)
    graph = OrientedCSR(np.concatenate(([0], np.cumsum(lengths))), columns, ordered=True)
    count = cpu.count(BlockTask(graph, graph, graph), kernel)
    assert count.triangles == 2500
    assert count.wedges == 5000
    assert count.max_collision == {"trust": sizes.DEPTH, "hindex": sizes.DEPTH}.get(kernel, 0)


def test_buckets_deepen_for_rows_that_would_fill_the_table():
    size = 3 * sizes.LARGE * sizes.DEPTH // 2
    row = np.arange(size, dtype=np.int32)
    lengths = np.zeros(size + 2, np.int64)
    lengths[size], lengths[size + 1] = 2, size + 1
    columns = np.concatenate(([0, size - 1], row, [size])).astype(np.int32)
    graph = OrientedCSR(np.concatenate(([0], np.cumsum(lengths))), columns, ordered=True)
    count = cpu.count(BlockTask(graph, graph, graph), "trust")
    assert (count.triangles, count.max_collision) == (2, 193)


def test_probes_worked_out_by_hand():
    """A clique of four; edges (2, 1), (3, 1) and (3, 2) have something before v."""
    (task,) = tasks(clique(4), 4)
    assert {kernel: cpu.count(task, kernel).probes for kernel in cpu.KERNELS} == {
        "hub": 1 + 1 + 2,
        "trust": 1 + (1 + 2),
        "hindex": 2 + 3 + 3,
        "merge": 2 + 2 + 4,
        "plain": 2 + 2 + 4,
        "search": 1 + 1 + 2,
        "lstc": 1 + 1 + 2,
        "tcstream": 1 + 1 + 2,
    }
    assert cpu.count(task, "hub").wedges == 4


def test_the_shorter_list_is_streamed():
    """Each edge tests at most the shorter list, or a row that is too short for a table."""
    edges = random_edges(1400, 60_000, 7, below=700)
    (task,) = tasks(edges, 1400)
    assert cpu.count(task, "search").probes <= cpu.count(task, "hub").probes < cpu.count(task, "trust").probes
    assert cpu.count(task, "hub").probes <= cpu.count(task, "search").probes + sizes.SHORT * len(edges)


@pytest.mark.parametrize("kernel", cpu.KERNELS)
def test_arrays_as_they_come_from_other_processes(kernel):
    """Read-only, strided, unaligned or wider arrays are counted all the same, and not changed."""
    plain = block(clique(20), 20)
    unaligned = np.frombuffer(b"x" + plain.columns.tobytes(), np.uint8)[1:].view(np.int32)
    assert not unaligned.flags.aligned
    strided = np.repeat(plain.columns, 2)[::2]
    readonly = plain.columns.copy()
    readonly.flags.writeable = False
    for columns in (unaligned, strided, readonly, plain.columns.astype(np.int64)):
        other = OrientedCSR(plain.offsets, columns, ordered=True)
        assert cpu.count(BlockTask(other, other, plain), kernel).triangles == 1140
    assert plain.columns.flags.writeable


@pytest.mark.parametrize("kernel", cpu.KERNELS)
def test_table_and_stream_of_unlike_width(kernel):
    narrow = block([(0, 1), (0, 2)], 1, ordered=False)
    index = block([(0, 0)], 1, ordered=False)
    wide = OrientedCSR(np.array([0, 40]), np.arange(2, 80_000_000, 2_000_000, dtype=np.int32))
    for table, stream in ((narrow, wide), (wide, narrow)):
        task = BlockTask(index, table, stream)
        assert cpu.count(task, kernel).triangles == 1
        assert hub_tables._width(task, intersect.triple(task)) == 78_000_003


def test_an_unknown_kernel_is_refused():
    (task,) = tasks([], 1)
    with pytest.raises(InputError, match=r"'nosuch' is not one of hub, trust, .*, plain; choose"):
        get_backend("cpu").count(task, "nosuch")


@pytest.mark.parametrize("kernel", cpu.KERNELS)
def test_blocks_that_do_not_fit_together_are_refused(kernel):
    tall, short = block(clique(5), 5), block(clique(4), 4)
    with pytest.raises(CountError, match="index block has 5 rows and its table block 4"):
        cpu.count(BlockTask(tall, short, tall), kernel)


def traced(function, *args):
    """Peak of the bytes that a call allocates in a thread without tables."""
    with ThreadPool(1) as fresh:
        tracemalloc.start()
        try:
            fresh.apply(function, args)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("hubs", [0, sizes.HUBS])
def test_scratch_memory_is_within_what_was_announced(ordered, hubs, monkeypatch):
    monkeypatch.setattr(sizes, "HUBS", hubs)
    vertices, edges = 1400, random_edges(1400, 60_000, 8, below=700)
    (task,) = tasks(edges, vertices, ordered=ordered)
    announced = scratch_bytes("cpu", "hub", TaskSize(len(edges), len(edges), len(edges), vertices))
    traced(cpu.count, task, "hub")  # what is compiled at first
    for _ in range(30):  # once without what threads of other tests' clusters do meanwhile
        idle = traced(len, ())  # the thread's and the interpreter's own objects
        if traced(cpu.count, task, "hub") - idle <= announced + 20_000:
            break
    else:
        pytest.fail(f"more than {announced:,} bytes of scratch")
    assert announced <= 16 * len(edges) + 8 * vertices + 20_000


@pytest.mark.parametrize("kernel", cpu.KERNELS)
def test_scratch_memory_grows_with_its_arguments(kernel):
    small, wide = TaskSize(10**6, 10**6, 10**6, 10**5), TaskSize(10**6, 10**7, 10**7, 10**8, splits=3)
    assert 0 <= scratch_bytes("cpu", kernel, small) <= scratch_bytes("cpu", kernel, wide) <= 20 * 10**8
    for size in (small, wide):
        for ordered in (False, True):
            assert scratch_bytes("cpu", kernel, size, GraphBounds(10**8, ordered)) <= scratch_bytes("cpu", kernel, size)


# sort


@given(st.integers(1, 2**62), st.integers(0, 3), st.data())
def test_sort_any_keys(bound, repeats, data):
    keys = np.array(data.draw(st.lists(st.integers(0, bound - 1), max_size=60)), np.int64)
    keys = np.tile(keys, 1 + repeats * FEW // 30)
    expected = np.sort(keys)
    assert np.array_equal(sort(keys, bound), expected)


@pytest.mark.parametrize("bound", [1, 2, 700, 2**10, 2**11 + 1, 2**20, 2**33, 2**40, 2**62])
@pytest.mark.parametrize("shape", ["random", "sorted", "reversed", "all but last", "one digit"])
def test_sort_many_keys(bound, shape):
    keys = np.random.default_rng(3).integers(0, bound, 100_000)
    expected = np.sort(keys)
    if shape == "sorted":
        keys = expected.copy()
    elif shape == "reversed":
        keys = expected[::-1].copy()
    elif shape == "all but last":
        keys = np.append(expected[1:], expected[0])
    elif shape == "one digit":
        keys = (keys & 1023) << (bound.bit_length() // 2) if bound > 2**20 else keys
        keys = np.minimum(keys, bound - 1)
        expected = np.sort(keys)
    assert np.array_equal(sort(keys, bound), expected)


def test_sort_keeps_its_hands_off_read_only_keys():
    keys = np.arange(10_000)[::-1].copy()
    keys.flags.writeable = False
    assert np.array_equal(get_backend("cpu").sort(keys, 10_000), np.arange(10_000))
    assert keys[0] == 9_999


@given(st.integers(1, 2**40), st.lists(st.integers(0, 3), max_size=5), st.integers(1, 4), st.data())
def test_merge_any_arrays(bound, sizes, leading, data):
    """Keys are dealt to few or many buckets, and sorted by insertion or by digits, some or one at a time."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    arrays = [rng.integers(0, bound, (0, 7, 600, 3_000)[size]) for size in sizes]
    copies, given_up = [array.copy() for array in arrays], list(arrays)
    with mock.patch.multiple(radix, BUCKET=13 - 3 * leading, BATCH=16**leading):
        merged = radix.merge(given_up, bound)
    assert given_up == []
    assert merged.tolist() == sorted(np.concatenate([np.empty(0, np.int64), *arrays]).tolist())
    assert all((array == copy).all() for array, copy in zip(arrays, copies, strict=True))


# compiling


COUNT_ALONE = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from dasktc.backends import get_backend
from dasktc.backends.csr import BlockTask, OrientedCSR
n = 60
graph = OrientedCSR(
    np.cumsum([0, *range(n)]), np.concatenate([np.arange(u, dtype=np.int32) for u in range(n)]), ordered=True
)
backend = get_backend("cpu")
sys.stdin.readline()
with ThreadPoolExecutor(3) as pool:
    counts = list(pool.map(lambda _: backend.count(BlockTask(graph, graph, graph), "hub").triangles, range(6)))
keys = backend.sort(np.arange(5000)[::-1].copy(), 5000)
print(set(counts), (keys == np.arange(5000)).all())
"""


def start(cache, **environment):
    """Start a process that counts when it receives a line."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", COUNT_ALONE],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_processes_start_together_on_an_empty_cache(tmp_path):
    processes = [start(tmp_path) for _ in range(3)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=patience(120))
        assert (process.returncode, out.strip(), err) == (0, "{34220} True", "")
    indices = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")}
    assert len(indices) == 2 * 6  # four parts of hub, its groups and the sort, each compiled once
    out, err = start(tmp_path).communicate("\n", timeout=patience())
    assert (out.strip(), err) == ("{34220} True", "")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")} == indices


@pytest.fixture
def twice(tmp_path, monkeypatch, caplog):
    """A kernel's function in a file of its own, and an empty cache; a failure shows why it was not used."""
    import numba

    caplog.set_level("DEBUG", "dasktc")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))  # a compilation may read the environment again
    numba.config.reload_config()
    source = tmp_path / "source" / "twice.py"
    source.parent.mkdir()
    source.write_text("def twice(x): return 2 * x")
    yield defined(source, monkeypatch)
    monkeypatch.undo()
    numba.config.reload_config()


def defined(source, monkeypatch):
    """The function of a module as it stands now; Numba imports the module when it reads its cache."""
    module = ModuleType(source.stem)
    exec(compile(source.read_text(), source, "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, source.stem, module)
    return module.twice


def hits(function):
    """Number of times that a new process would find the function in the cache."""
    from numba import types

    gc.collect()  # Numba does not import the module while an earlier kernel of this function lives
    kernel = Kernel(function, (types.int64,))
    assert kernel(21) == 42
    return len(kernel.load().stats.cache_hits)


def test_compiled_kernels_stay_out_of_the_package(tmp_path, twice):
    from dasktc.backends.cpu import jit

    assert [hits(twice), hits(twice)] == [0, 1]
    assert [path.name for path in (tmp_path / "source").iterdir()] == ["twice.py"]
    assert {path.parent for path in (tmp_path / "cache").rglob("*.nb?")} == {jit._folder()}


def test_the_cache_stays_where_numba_is_told_when_it_reads_its_environment_again(twice, monkeypatch):
    """A compilation reads all of it again where a variable of Numba has come, changed or gone since the last one."""
    monkeypatch.setenv("NUMBA_DEVELOPER_MODE", "0")
    assert [hits(twice), hits(twice)] == [0, 1]


def test_a_cache_made_from_other_sources_is_not_used(tmp_path, twice, monkeypatch):
    from dasktc.backends.cpu import jit

    assert [hits(twice), hits(twice)] == [0, 1]
    source = tmp_path / "source" / "twice.py"
    source.write_text("def twice(x): return 2 * x if x < 40 else x")  # the same line of another file
    jit._digest.cache_clear()
    assert [hits(defined(source, monkeypatch)) for _ in range(2)] == [0, 1]
    sources = tmp_path / "package"
    sources.mkdir()
    (sources / "intersect.py").write_text("1")  # what kernels of other files call
    monkeypatch.setattr(jit, "__file__", str(sources / "jit.py"))
    assert [hits(twice), hits(twice)] == [0, 1]
    os.utime(sources / "intersect.py", (0, 0))  # contents count, not times
    jit._digest.cache_clear()
    assert hits(twice) == 1
    (sources / "intersect.py").write_text("2")
    jit._digest.cache_clear()
    assert hits(twice) == 0


def test_caches_of_other_versions_go_when_unused_for_a_month(tmp_path, twice):
    from dasktc.backends.cpu import jit

    old, recent, other = (tmp_path / "cache" / "dasktc" / name for name in ("numba-old", "numba-recent", "notes"))
    for folder, days in ((old, 32), (recent, 28), (other, 32)):
        folder.mkdir(parents=True)
        (folder / "kernel.nbi").touch()
        os.utime(folder, (0, time.time() - days * 24 * 3600))
    hits(twice)
    assert {path for path in old.parent.iterdir()} == {recent, other, jit._folder()}
    os.utime(jit._folder(), (0, 0))
    hits(twice)
    assert jit._folder().stat().st_mtime > time.time() - 3600  # it is used


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", None], ids=["empty", "something else", "cut short"])
@pytest.mark.parametrize("which", ["nbi", "nbc"])
def test_a_cache_that_is_damaged_is_made_again(tmp_path, twice, which, content):
    """Files as a system crash leaves them that were being written."""
    hits(twice)
    (file,) = tmp_path.rglob(f"*.{which}")
    file.write_bytes(file.read_bytes()[:20] if content is None else content)
    assert [hits(twice), hits(twice)] == [0, 1]


HOMES = {"linux": ".cache", "darwin": "Library/Caches", "win32": "AppData/Local"}


@pytest.mark.parametrize("platform", HOMES)
def test_the_cache_is_in_the_users_cache_folder_or_where_numba_is_told(tmp_path, monkeypatch, platform):
    import numba

    from dasktc.backends.cpu import jit

    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert jit._folder().parent == tmp_path / HOMES[platform] / "dasktc"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "named"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "named"))
    assert (jit._folder().parent == tmp_path / "named" / "dasktc") == (platform != "darwin")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "told"))
    assert jit._folder().parent == tmp_path / "told" / "dasktc"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows' temporary folders are the user's own")
def test_without_a_home_the_cache_is_in_a_temporary_folder_that_nobody_else_can_fill(tmp_path, monkeypatch, twice):
    import numba

    from dasktc.backends.cpu import jit

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    (tmp_path / "file").touch()
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for told, home in ((str(tmp_path / "file"), Path.home), ("", lambda: tmp_path / "file"), ("", homeless)):
        monkeypatch.setattr(numba.config, "CACHE_DIR", told)
        monkeypatch.setattr(Path, "home", home)
        own = jit._folder().parent.parent
        assert (own.parent, own.stat().st_mode & 0o777) == (tmp_path, 0o700)
    own.chmod(0o777)
    assert jit._folder() is None
    assert [hits(twice), hits(twice)] == [0, 0]


def test_without_a_place_for_a_cache_it_compiles_all_the_same():
    from numba import types

    names = {}
    exec("def twice(x): return 2 * x", names)  # a function without a file cannot be cached
    assert Kernel(names["twice"], (types.int64,))(21) == 42


def test_a_cache_that_cannot_be_locked_is_left_alone(tmp_path, monkeypatch):
    from numba import types

    from dasktc.backends.cpu import jit

    def refuse(*_):
        raise OSError("no locks available")

    monkeypatch.setattr(jit, "_locked", refuse)
    assert Kernel(triangles_without_cache, (types.int64,))(3) == 4


def triangles_without_cache(x):
    return x + 1


def test_a_kernel_takes_its_own_types_only():
    with pytest.raises(TypeError, match="No matching definition"):
        intersect.merge(1.5)
