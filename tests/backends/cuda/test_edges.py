"""Edges on a device, from raw ids to oriented keys: each step against sets, and the memory of all of them."""

import gc
import pickle
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dasktc
from dasktc.api import count as triangles
from dasktc.api.opener import as_source
from dasktc.backends.cpu import edges as cpu_edges
from dasktc.backends.cuda.buckets import DeviceBuckets
from dasktc.backends.cuda.edges import DeviceEdges
from dasktc.backends.cuda.launch_hub import _bitmap_words
from dasktc.backends.edge_sample import Colours, colours_of
from dasktc.backends.kernel import hub_count
from dasktc.executors.local import LocalExecutor
from dasktc.io.generators.synthetic import grid3d, kronecker, random_graph
from dasktc.io.source import Source
from dasktc.options import Method, Options
from dasktc.pipeline import autotune as choose
from dasktc.pipeline.stages.canonical import DENSE
from dasktc.pipeline.stages.edge_keys import shift_of
from dasktc.pipeline.stages.ids import IdRange
from dasktc.planning.grid import Axis, Layout, Shape
from tests.support import oracle
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation import cupy_strict
from tests.support.emulation.host import HostDevice, compiler, needs_compiler
from tests.support.keywords import keywords
from tests.support.slow_pipeline import CPU, tuned
from tests.support.tiers import each_once, some

BOTH = [DeviceEdges(HostDevice(reverse)) for reverse in (False, True)]
"""Threads in ascending and in descending order."""
IDS = st.one_of(
    st.integers(0, 9).flatmap(lambda low: st.lists(st.tuples(*[st.integers(low, low + 90)] * 2), max_size=120)),
    st.lists(st.tuples(*[st.integers(-(2**62), -(2**62) + 70)] * 2), max_size=120),
)
KEYS = st.lists(st.integers(0, 2**12 - 1), max_size=700)


def columns(pairs):
    """Two columns, of the narrowest type that fits."""
    found = np.array(pairs, dtype="int64").reshape(-1, 2)
    narrow = len(pairs) == 0 or abs(found).max() < 2**31
    return [np.ascontiguousarray(found[:, k].astype("int32" if narrow else "int64")) for k in (0, 1)]


@given(pairs=IDS, colours=st.integers(1, 5), key=st.integers(0, 2**64 - 1), step=st.integers(1, 40))
def test_a_sample_of_edges_is_that_of_the_cpu(pairs, colours, key, step):
    """In steps that need not divide the edges."""
    ends, sample = columns(pairs), Colours(colours, key)
    with mock.patch.object(cpu_edges, "SAMPLED", step):
        on_device, on_host = (
            edges.sampled(*ends, sample) for edges in (replace(BOTH[0], step=step), cpu_edges.CpuEdges())
        )
    kinds = [{*map(int, colours_of(end, sample, np))} for end in ends]
    assert all(kind <= {*range(colours)} for kind in kinds)
    assert [end.tolist() for end in on_device] == [end.tolist() for end in on_host]
    assert {end.dtype for end in on_host} == {ends[0].dtype}
    assert on_host[0].tolist() == ends[0][colours_of(ends[0], sample, np) == colours_of(ends[1], sample, np)].tolist()


@needs_compiler
@pytest.mark.parametrize("edges", BOTH, ids=["forward", "reverse"])
@given(pairs=IDS)
def test_raw_edges_become_canonical_keys(edges, pairs):
    proper = [(a, b) for a, b in pairs if a != b]
    ids = sorted({end for pair in proper for end in pair})
    src, dst = columns(pairs)
    facts, ends = edges.facts(src, dst), (src, dst)
    if len(pairs) and abs(src).max() < 2**31:
        ends, *read = edges.proper(src, dst)
        assert ends[0] is src
        assert ends[1] is dst
        assert tuple(read) == facts
    assert list(zip(*(end.tolist() for end in edges.without_loops(*ends)), strict=True)) == proper
    assert facts.loops == len(pairs) - len(proper)
    assert (facts.low, facts.high) == (ids[0], ids[-1]) if ids else facts.low > facts.high
    if not ids:
        return
    width = ids[-1] - ids[0] + 1
    table = edges.marks(width)
    edges.mark(table, src, dst, ids[0])
    for marks in (table, edges.marked(np.isin(np.arange(width), np.array(ids) - ids[0]))):
        found = edges.ranked(marks, ids[0], width)
        assert (found.size, found.table is None) == (len(ids), len(ids) == width)
        assert found.external(np.arange(len(ids))).tolist() == ids
        assert found.dense(np.array(ids)).tolist() == list(range(len(ids)))
    dense, shift = {name: place for place, name in enumerate(ids)}, shift_of(len(ids))
    known = [min(dense[a], dense[b]) << shift | max(dense[a], dense[b]) if a != b else 0 for a, b in pairs]
    assert edges.keys(src, dst, found, shift).tolist() == known
    rank = np.random.default_rng(1).permutation(len(ids)).astype("int32")
    ranks = [sorted((int(rank[dense[a]]), int(rank[dense[b]]))) if a != b else (0, 0) for a, b in pairs]
    assert edges.keys(src, dst, found, shift, rank).tolist() == [high << shift | low for low, high in ranks]
    counts, ends = np.zeros(len(ids), "int32"), Counter(dense[end] for pair in proper for end in pair)
    edges.count_ends(counts, src, dst, found)
    assert counts.tolist() == [ends[place] for place in range(len(ids))]
    offsets = [np.array([end[k] - ids[0] for end in proper], "int32") for k in (0, 1)]
    wide = shift_of(width)
    lazy = edges.between(edges.lazy_keys(*offsets, IdRange(0, width), wide), 0, 1 << 2 * wide)
    assert sorted(lazy.tolist()) == sorted(min(pair) - ids[0] << wide | max(pair) - ids[0] for pair in proper)


@needs_compiler
@pytest.mark.parametrize("edges", BOTH, ids=["forward", "reverse"])
@pytest.mark.parametrize("low", [-(2**63) + 1, -(2**40), -400, 0, 2**62])
def test_smallest_and_largest_ids_of_several_blocks(edges, low):
    """More edges than one thread block reads; the last have the smallest ids, the first the largest."""
    src = np.arange(low, low + 3000)[::-1].copy()
    facts = edges.facts(src, np.roll(src, 1))
    assert facts == (0, low, low + 2999)


@needs_compiler
@pytest.mark.parametrize("edges", BOTH, ids=["forward", "reverse"])
@given(keys=KEYS, starts=st.lists(st.integers(0, 2**12), max_size=9).map(sorted))
def test_keys_are_dealt_to_ranges(edges, keys, starts):
    """Ranges of any size, adjacent ones as well as empty ones."""
    found, borders = edges.split(np.array(keys, dtype="int64"), starts), [0, *starts, 2**62]
    assert len(found) == len(starts) + 1
    for piece, low, high in zip(found, borders, borders[1:], strict=False):
        assert sorted(piece.tolist()) == sorted(key for key in keys if low <= key < high)


@needs_compiler
@pytest.mark.parametrize("edges", [*BOTH, CPU.edges], ids=["forward", "reverse", "cpu"])
@given(keys=KEYS, rows=st.sets(st.integers(1, 63), max_size=5), arrays=st.integers(1, 3))
def test_oriented_keys_are_dealt_to_rows(edges, keys, rows, arrays):
    """Every array has its part of each range, whose keys have as few bits as its last row needs."""
    rank, ends = np.random.default_rng(1).permutation(64).astype("int32"), [*sorted(rows), 64]
    parts = np.array_split(np.array([key for key in keys if key >> 6 != key & 63], dtype="int64"), arrays)
    raw = [((part >> 6).astype("int32"), (part & 63).astype("int32")) for part in parts]
    slices = list(edges.split_rows(iter(raw), DENSE, rank, ends, 6))
    assert [len(ranges) for ranges in slices] == [len(ends)] * arrays
    for (src, dst), ranges in zip(raw, slices, strict=True):
        pairs = [sorted((int(rank[a]), int(rank[b]))) for a, b in zip(src, dst, strict=True)]
        for first, end, found in zip([0, *ends], ends, ranges, strict=False):
            bits = (end - 1).bit_length()
            assert sorted(found.tolist()) == sorted(high << bits | low for low, high in pairs if first <= high < end)


@needs_compiler
@pytest.mark.parametrize("edges", BOTH, ids=["forward", "reverse"])
@given(keys=KEYS, more=st.integers(0, 3000))
def test_distinct_keys_without_loops(edges, keys, more):
    given_keys = np.sort(np.array(keys + keys[: more % 7] + [5] * more, dtype="int64"))
    known = sorted({key for key in given_keys.tolist() if key >> 6 != key & 63})
    assert edges.distinct(given_keys, 6).tolist() == known


@needs_compiler
@pytest.mark.parametrize("edges", BOTH, ids=["forward", "reverse"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("rows", "ids"), [(0, 4), (9, 2), (20_000, 100), (9_000, 70_000), (20_000, 9_000_000)])
def test_ends_of_many_edges_are_dealt_before_they_are_counted(edges, rows, ids, dtype):
    """In one bin and in all; in several tiles; more of one id than a block counts at a time, and in its last range."""
    low = -5 if dtype == "int32" else -(2**62)
    src, dst = (np.random.default_rng(rows).random((2, rows)) ** 3 * ids).astype(dtype)
    src[: rows // 2], dst[: rows // 3] = ids - 1, 0
    known = np.bincount(np.concatenate([src, dst])[np.tile(src != dst, 2)], minlength=ids)
    counts = np.full(ids, 7, "int32")
    dealing = replace(edges, many=0)
    dealing.count_ends(counts, *((end + low).astype(dtype) for end in (src, dst)), IdRange(low, ids))
    assert (counts == known + 7).all()


@needs_compiler
@pytest.mark.parametrize("edges", [*BOTH, None], ids=["forward", "reverse", "cpu"])
@given(keys=KEYS, more=st.integers(0, 3000))
@example(keys=[1 << 6] * 40 + [63 << 6] * 70, more=64)
def test_columns_of_distinct_keys(edges, keys, more):
    """Repeats within a warp, through several warps, and in shares of different warps."""
    proper = sorted(max(key >> 6, key & 63) << 6 | min(key >> 6, key & 63) for key in keys if key >> 6 != key & 63)
    proper = sorted([*proper, *[5 << 6 | 3] * more])
    loops = [0] * (more % 5) if edges else []
    vertices = np.random.default_rng(1).permutation(64).astype("int32")
    rows = Counter(int(vertices[end]) for key in proper for end in (key >> 6, key & 63))
    degrees, lengths = np.array([rows[v] for v in range(64)], "int32"), np.zeros(64, "int32")
    keys = np.random.default_rng(2).permutation(np.array(loops + proper, "int64"))
    buckets = DeviceBuckets([keys], 1 << 12, edges) if edges else CPU.dealt([keys], 1 << 12, (0, 1 << 12))
    ranges = [buckets.distinct_rows(*span, 6, lengths, vertices, degrees)() for span in buckets.ranges(3)]
    columns = np.concatenate([np.empty(0, "int32"), *ranges])
    once = sorted(set(proper))
    assert (columns.dtype, columns.tolist()) == ("int32", [key & 63 for key in once])
    assert lengths.tolist() == np.bincount([key >> 6 for key in once], minlength=64).tolist()
    ends = Counter(int(vertices[end]) for key in once for end in (key >> 6, key & 63))
    assert degrees.tolist() == [ends[v] for v in range(64)]


@needs_compiler
@pytest.mark.parametrize("edges", BOTH, ids=["forward", "reverse"])
def test_keys_that_are_a_part_of_others_are_distinct_among_themselves(edges):
    """For slices: the key before the first one is not read."""
    keys = np.array([7, 7, 7, 9, 11, 11], dtype="int64")
    for first in range(1, 6):
        assert edges.distinct(keys[first:], 6).tolist() == sorted({*keys[first:].tolist()})


@needs_compiler
@pytest.mark.parametrize("edges", BOTH, ids=["forward", "reverse"])
@given(keys=KEYS)
@example(keys=[key for key in range(2**12) if key % 7])  # whole warps, with runs that end with them and in them
@example(keys=[64 * 5 + low for low in range(64)] * 2)
def test_degrees_and_orientation(edges, keys):
    ascending, rank = np.sort(np.array(keys, dtype="int64")), np.random.default_rng(1).permutation(64).astype("int32")
    degrees, sources = np.zeros((2, 64), "int32")
    edges.add_degrees(degrees, ascending, 6)
    edges.add_sources(sources, ascending, 6)
    high, low = Counter(key >> 6 for key in keys), Counter(key & 63 for key in keys)
    assert degrees.tolist() == [high[v] + low[v] for v in range(64)]
    assert sources.tolist() == [high[v] for v in range(64)]
    ends = [(int(rank[key >> 6]), int(rank[key & 63])) for key in ascending.tolist()]
    known = [max(end) << 6 | min(end) for end in ends]
    assert edges.oriented(ascending, rank, 6).tolist() == known
    assert sorted(edges.between(edges.oriented(ascending, rank, 6), 0, 1 << 12).tolist()) == sorted(known)
    assert edges.orient(ascending, rank, 6).tolist() == known


@needs_compiler
@pytest.mark.parametrize("edges", BOTH, ids=["forward", "reverse"])
@given(keys=KEYS, start=st.integers(0, 5000), columns=st.one_of(st.sampled_from([1, 64]), st.integers(1, 90)))
def test_rows_of_ascending_keys(edges, keys, start, columns):
    rows = -(-(max(keys, default=0) + 1) // columns)
    offsets, found = edges.rows(np.sort(np.array(keys, dtype="int64")) + start, start, rows, columns)
    held = [found[a:b].tolist() for a, b in pairwise(offsets.tolist())]
    assert held == [sorted(key % columns for key in keys if key // columns == row) for row in range(rows)]
    assert (offsets.dtype, found.dtype) == ("int64", "int32")


@needs_compiler
@pytest.mark.parametrize("edges", BOTH, ids=["forward", "reverse"])
@given(keys=KEYS, modulus=st.integers(1, 16))
def test_keys_of_blocks_by_remainder(edges, keys, modulus):
    ends = [divmod(key, 64) for key in keys]
    counts = Counter((high % modulus, low % modulus) for high, low in ends)
    places = [(i, j) for i in range(modulus) for j in range(modulus)]
    given_keys = np.array(keys, dtype="int64")
    assert edges.residues(given_keys, 6, modulus).tolist() == [counts[place] for place in places]
    axis = Axis(64, modulus)
    layout = Layout(axis, (axis,), Shape(64, 6, True))
    assert layout.residues == modulus
    firsts, widths = (np.array(of, dtype="int64") for of in (layout.first_keys[:-1], axis.sizes))
    known = [
        int(firsts[high % modulus * modulus + low % modulus]) + high // modulus * int(widths[low % modulus])
        + low // modulus
        for high, low in ends
    ]  # fmt: skip
    assert edges.placed(given_keys, 6, modulus, firsts, widths).tolist() == known


# bytes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "bytes_an_element"),
    [
        (lambda x: x.sort(), 8),
        (lambda x: x.argsort(), 8 + 8 + 8 + 8),  # places; keys, and the second buffer of both
        (lambda x: x[x > 3], 1 + 4 + 8),  # the mask, its running sum, what is kept
        (lambda x: x.__setitem__(x > 3, 0), 1),
        (lambda x: x.__setitem__(x, 0), 4),
        (lambda x: cupy_strict.unique(x), 8 + 8 + 1 + 4),
        (lambda x: cupy_strict.flatnonzero(x), 8 + 8),
        (lambda x: x.astype("int32"), 4),
        (lambda x: x.take(x), 8),
        (lambda x: x + x * x, 8 + 8),
    ],
)
def test_the_stand_in_counts_what_cupy_allocates_for_a_moment(operation, bytes_an_element):
    used, size = cupy_strict.MEMORY_USED, 4096
    array = cupy_strict.arange(size, dtype="int64")
    gc.collect()
    before = used.peak = used.now
    operation(array)
    assert 0.9 * bytes_an_element <= (used.peak - before) / size <= 1.1 * bytes_an_element


@pytest.fixture
def emulated(monkeypatch):
    """The CUDA backend on stand-ins that count bytes; pieces and chunks are small beside a graph, as on a device."""
    if compiler() is None:
        pytest.skip("no g++ on Linux, which runs the kernels on the host")
    monkeypatch.setattr(cupy_strict.ndarray, "__module__", "cupy")
    with tuned(piece_edges=1 << 10), emulated_cuda.backend() as found:
        object.__setattr__(found, "chunk", 1 << 10)
        yield found


def raw_of(recipe):
    """The raw edges as a caller would have them on the device."""
    parts = [part.read(dasktc.backends.get_backend("cuda")) for part in recipe.parts]
    return tuple(cupy_strict.concatenate(ends) for ends in zip(*parts, strict=True))


SHAPES = {"Kronecker": kronecker(13), "uniform": random_graph(1 << 14, 5 << 14), "torus": grid3d(25)}


@pytest.mark.parametrize(("name", "owned"), each_once(product(SHAPES, [False, True])))
def test_at_most_24_bytes_an_edge(emulated, name, owned):
    """At the peak, including two 32-bit ids per edge; fixed amounts add some hundredths of that here."""
    used, recipe = cupy_strict.MEMORY_USED, SHAPES[name]
    rows, before = recipe.parts[-1].last, used.now
    source = recipe if owned else as_source(raw_of(recipe))
    used.peak, used.moved = used.now, 0
    graph = triangles.build(LocalExecutor(), source, Options(backend="cuda"))
    assert used.peak - before <= 24 * rows
    assert used.moved < rows // 2, "edges went to the host"
    source = None
    gc.collect()
    ids = recipe.parts[0].recipe.vertices  # of three vectors; offsets are those of the vertices with an edge
    assert used.now - before <= 4 * graph.edges + 12 * ids + 8 * graph.vertices + (1 << 12)
    assert int(graph.triangle_count(verify=1.0)) == int(dasktc.triangle_count(recipe, backend="cpu"))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64"])
def test_integers_of_any_width(emulated, dtype):
    edges = [(a % 100, b % 100) for a, b in np.random.default_rng(3).integers(0, 100, (400, 2)).tolist()]
    pair = tuple(cupy_strict.asarray(np.array(edges, dtype=dtype)[:, k].copy()) for k in (0, 1))
    before = [column.get() for column in pair]
    assert int(dasktc.triangle_count(pair, backend="cuda")) == oracle.triangles(edges)
    assert all((column.get() == known).all() for column, known in zip(pair, before, strict=True))


@pytest.mark.parametrize("edges", [[], [(5, 5)], [(5, 5), (9, 9)], [(5, 5), (1, 2), (2, 2)]], ids=str)
@pytest.mark.parametrize("scale", [1, 2**40], ids=["table", "sorted"])
def test_loops_are_no_vertices(emulated, edges, scale):
    pair = tuple(cupy_strict.asarray(np.array([scale * edge[k] for edge in edges], "int64")) for k in (0, 1))
    result = dasktc.triangle_count(pair, backend="cuda")
    proper = {end for edge in edges if edge[0] != edge[1] for end in edge}
    assert (result.vertices, result.loops_dropped) == (len(proper), sum(a == b for a, b in edges))
    assert int(result) == 0


def test_ids_are_pickled_without_their_device(emulated):
    graph = dasktc.prepare(kronecker(6), backend="cuda")
    vertices = graph._context.prepared.vertices
    again = pickle.loads(pickle.dumps(vertices))
    ids = np.arange(vertices.size)
    assert again.external(ids).tolist() == vertices.external(ids).tolist()


def test_no_parts(emulated):
    assert int(dasktc.triangle_count(Source("nothing", ()), backend="cuda")) == 0


# counting


def counted_bytes(graph):
    """The peak of the bytes that counting holds, blocks and scratch, and the count."""
    used = cupy_strict.MEMORY_USED
    used.peak = before = used.now
    count = int(graph.triangle_count())
    return used.peak - before + sum(block.nbytes for block in graph._context.blocks.values()), count


@pytest.mark.parametrize(("name", "kernel"), each_once(product(SHAPES, ["auto", "hub"])))
def test_at_most_16_bytes_an_edge_while_counting(emulated, name, kernel):
    graph = dasktc.prepare(SHAPES[name], backend="cuda", method=Method(kernel=kernel))
    fixed = 4 * _bitmap_words(hub_count(graph.edges, graph.vertices)) + (1 << 12)
    assert counted_bytes(graph)[0] <= 16 * graph.edges + fixed


@pytest.mark.slow
@pytest.mark.parametrize("name", some(SHAPES, lambda name: name == "Kronecker"))
def test_what_hub_has_no_room_for_is_counted_as_plain_csr(emulated, monkeypatch, name):
    """In a few splits; then within 6 bytes an edge, beside offsets (8 a vertex) and hubs' bitmaps; not in parts."""
    usual = choose.rules("cuda")[-1:]  # as of larger graphs: hub
    monkeypatch.setattr(choose, "rules", lambda backend: usual)
    recipe = SHAPES[name]
    roomy = dasktc.prepare(recipe, backend="cuda")
    assert (roomy.plan.lean, roomy._context.options.kernel) == (False, "hub")
    few = dasktc.prepare(recipe, backend="cuda", memory=roomy.plan.bytes_per_task - 1)
    assert (few.plan.partition, few.plan.splits, few.plan.lean, few._context.options.kernel) == (
        "whole",
        2,
        False,
        "hub",
    )
    memory = dasktc.prepare(recipe, backend="cuda", method=Method(splits=4)).plan.bytes_per_task - 1
    graph = dasktc.prepare(recipe, backend="cuda", memory=memory)
    assert (graph.plan.partition, graph.plan.lean, graph._context.options.kernel) == ("whole", True, "bitmap")
    assert graph.plan.choice.startswith("kernel bitmap: plain CSR")
    assert "more than the" in graph.plan.why
    hubs = hub_count(graph.edges, graph.vertices)
    held, count = counted_bytes(graph)
    assert held <= 6 * graph.edges + 8 * graph.vertices + 4 * _bitmap_words(hubs) + (1 << 12)
    assert held <= graph.plan.bytes_per_task <= memory
    assert count == int(dasktc.triangle_count(recipe, backend="cpu"))
    asked = dasktc.prepare(recipe, backend="cuda", memory=memory, method=Method(kernel="hub"))
    assert (asked.plan.partition, asked.plan.splits, asked.plan.lean) == ("whole", 8, False)
    assert asked.plan.why.endswith("in fewer splits")
    held, count = counted_bytes(asked)
    assert held <= asked.plan.bytes_per_task <= memory
    assert count == int(dasktc.triangle_count(recipe, backend="cpu"))


@pytest.mark.slow
def test_a_graph_saved_where_memory_is_short_has_the_usual_kernel_where_it_is_not(emulated, monkeypatch, tmp_path):
    usual = choose.rules("cuda")[-1:]  # as of larger graphs: hub
    monkeypatch.setattr(choose, "rules", lambda backend: usual)
    recipe = SHAPES["Kronecker"]
    memory = dasktc.prepare(recipe, backend="cuda", method=Method(splits=4)).plan.bytes_per_task - 1
    with dasktc.prepare(recipe, backend="cuda", memory=memory) as tight:
        assert (tight.plan.lean, tight._context.options.kernel) == (True, "bitmap")
        tight.save(tmp_path / "graph")
    again, roomy = (dasktc.open_graph(tmp_path / "graph", backend="cuda", memory=bound) for bound in (memory, None))
    assert (again.plan.lean, again._context.options.kernel) == (True, "bitmap")
    assert (roomy.plan.lean, roomy._context.options.kernel) == (False, "hub")
    assert int(roomy.triangle_count()) == int(dasktc.triangle_count(recipe, backend="cpu"))


def test_five_billion_edges_fit_an_h200():
    """24 bytes an edge during preparation are 120 GB; counting takes less, and leaves a fifth of the memory free."""
    size = {"vertices": 2 * 10**8, "edges": 5 * 10**9, "gpus": 1}
    roomy, tight, cut = (dasktc.plan(memory=memory, **keywords(**size)).plan for memory in ("125GB", "30GB", "20GB"))
    assert (roomy.partition, roomy.fits, roomy.lean) == ("whole", True, False)
    assert (tight.partition, tight.fits, tight.lean) == ("whole", True, True)
    assert tight.bytes_per_task <= 6 * size["edges"]
    assert "kernel bitmap" in tight.choice
    assert (cut.partition, cut.fits, cut.lean) == ("hash2d", True, False)
    assert not dasktc.plan(memory="30GB", **keywords(**size, kernel="hub")).plan.lean
    refused = dasktc.plan(memory="20GB", **keywords(**size, partition="whole")).plan
    assert (refused.fits, refused.lean) == (False, False)


# on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("size", [1, 1000, 300_001])
def test_every_step_on_the_device(dtype, size):
    cp = pytest.importorskip("cupy")
    from dasktc.backends.cuda import backend as cuda

    edges, rng = DeviceEdges(cuda.device()), np.random.default_rng(size)
    src, dst = (rng.random((2, size)) ** 3 * 5000).astype(dtype) * 3 - 7
    proper = src != dst
    on_device = [cp.asarray(column) for column in (src, dst)]
    ids = np.unique(np.concatenate([src[proper], dst[proper]]))
    facts = edges.facts(*on_device)
    assert facts.loops == size - proper.sum()
    if not len(ids):
        return
    assert (facts.low, facts.high) == (ids[0], ids[-1])
    width = facts.high - facts.low + 1
    table = edges.marks(width)
    edges.mark(table, *on_device, facts.low)
    found, shift = edges.ranked(table, facts.low, width), shift_of(len(ids))
    assert (found.external(np.arange(len(ids))) == ids).all()
    assert (found.dense(cp.asarray(ids)).get() == np.arange(len(ids))).all()
    a, b = (np.searchsorted(ids, column).astype("int64") for column in (src, dst))
    known = np.where(proper, np.minimum(a, b) << shift | np.maximum(a, b), 0)
    keys = edges.keys(*on_device, found, shift)
    assert (keys.get() == known).all()
    starts = sorted(int(key) for key in rng.choice(known, 7))
    pieces = [np.sort(piece.get()) for piece in edges.split(keys, starts)]
    assert (np.concatenate(pieces) == np.sort(known)).all()
    borders = np.searchsorted(np.sort(known), starts)
    assert np.cumsum([len(piece) for piece in pieces])[:-1].tolist() == borders.tolist()
    distinct = edges.distinct(cp.asarray(np.sort(known)), shift)
    wanted = np.unique(known[proper])
    assert (distinct.get() == wanted).all()
    degrees, sources = cp.zeros((2, len(ids)), dtype="int32")
    edges.add_degrees(degrees, distinct, shift)
    edges.add_sources(sources, distinct, shift)
    high, low = wanted >> shift, wanted & ((1 << shift) - 1)
    assert (sources.get() == np.bincount(high, minlength=len(ids))).all()
    assert (degrees.get() == np.bincount(high, minlength=len(ids)) + np.bincount(low, minlength=len(ids))).all()
    offsets, columns = edges.rows(distinct, 0, len(ids), 1 << shift)
    assert (offsets.get() == np.searchsorted(wanted, np.arange(len(ids) + 1) << shift)).all()
    assert (columns.get() == low).all()
    rank = rng.permutation(len(ids)).astype("int32")
    ends = np.stack([rank[high], rank[low]]).astype("int64")
    assert (edges.oriented(distinct, cp.asarray(rank), shift).get() == ends.max(0) << shift | ends.min(0)).all()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "recipe",
    [kronecker(22), random_graph(1 << 24, 5 << 24), grid3d(300)],
    ids=["Kronecker 22", "uniform", "torus 300^3"],
)
def test_at_most_24_bytes_an_edge_on_the_device(recipe):
    pytest.importorskip("cupy")
    from dasktc.backends.cuda import memory as cuda_memory
    from dasktc.bench.gpu import Raw
    from dasktc.bench.measure import columns_of

    raw = Raw(*columns_of(recipe, "cuda"))
    with cuda_memory.peak() as peak:
        graph = triangles.build(LocalExecutor(), as_source(tuple(raw)), Options(backend="cuda"))
    assert peak[0] + raw.nbytes <= 24 * len(raw.source) + (64 << 20)
    with cuda_memory.peak() as peak:
        graph.triangle_count()
    assert peak[0] + sum(block.nbytes for block in graph._context.blocks.values()) <= 16 * graph.edges + (512 << 20)
