"""Triangles by edge and by vertex from the counting CUDA kernels, on the host and on a GPU, compared with `visit`."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc import generate
from dasktc.answers import edge_support
from dasktc.backends import TaskSize, get_backend, support_kernels, support_scratch_bytes
from dasktc.backends.cpu import visit
from dasktc.backends.csr import BlockTask, on_host
from dasktc.backends.cuda import block_cache, supports
from dasktc.options import Method
from dasktc.planning.schemes import SCHEMES
from tests.backends.cpu.test_kernels import GRAPHS, graphs, tasks, turned
from tests.backends.cuda.test_kernels import TINY
from tests.support.emulation import cupy_strict
from tests.support.emulation.host import HostDevice, needs_compiler
from tests.support.keywords import keywords
from tests.support.slow_pipeline import pairwise_cover
from tests.support.tiers import some

SMALL = {"BLOCK": 64, "COUNTERS": 64}
VARIANTS = {
    "hub": ("hub", SMALL | {"SHORT": 0}),
    "hub tiny": ("hub", TINY | {"COUNTERS": 5, "MET_WARPS": 1}),
    "hub with short rows": ("hub", SMALL | {"SHORT": 1 << 20, "CAPACITY": 1 << 20}),
    "hub with narrow records": ("hub", SMALL | {"SHORT": 1 << 20, "CAPACITY": 0}),
    "hub with marks": ("hub", SMALL | {"SHORT": 1 << 20, "CAPACITY": 1 << 20, "FEW_PRINTS": 0}),
    "bitmap": ("bitmap", SMALL),
    "bitmap tiny": ("bitmap", TINY | {"COUNTERS": 5}),
    "short": ("short", {"BLOCK": 64}),
    "short tiny": ("short", {"BLOCK": 64, "FEW": 2}),
}


def roles(task):
    """Each of the three supports in its role alone; roles of one block share an array."""
    apart = (replace(block, columns=block.columns.copy()) for block in (task.index, task.table, task.stream))
    index, table, stream = apart
    return visit.support(replace(task, index=index, table=table, stream=stream))[0]


def check(device, task, kernel, macros, moved=lambda task: task):
    """Check that the kernel's edges and vertices equal those of `visit`."""
    known, *counts = visit.support(task)
    mine, *found = supports.edges(device, moved(task), kernel, macros)
    assert found == counts
    assert [mine[0] is array for array in mine] == [known[0] is array for array in known]
    for array, expected in zip(mine, known, strict=True):
        np.testing.assert_array_equal(on_host(array), expected)
    in_index, in_table, _ = roles(task)
    rows = np.repeat(np.arange(task.index.rows), np.diff(task.index.offsets))
    widths = task.index.rows, task.stream.rows, 1 + max(task.table.columns.max(initial=0), 0)
    by_place = (rows, in_index), (task.index.columns, in_index), (task.table.columns, in_table)
    expected = [
        np.bincount(at, weights=values, minlength=width).astype("int64")
        for (at, values), width in zip(by_place, widths, strict=True)
    ]
    sizes = dict(enumerate(widths)) | {7: 3}
    sums, *found = supports.vertices(device, moved(task), kernel, (0, 1, 2), sizes, macros)
    assert found == counts
    alike = [[0], [1], [2]]  # sides that are one numbering
    if task.table is task.stream:
        alike = [[0, 1, 2]] if task.index is task.table else [[0, 1], [2]]
    for group in alike:
        np.testing.assert_array_equal(*(_added(of, group) for of in (sums, expected)))
    assert not on_host(sums[7]).any()


def _added(sums, sides):
    width = max(len(sums[side]) for side in sides)
    return sum(np.pad(on_host(sums[side]), (0, width - len(sums[side]))) for side in sides)


@needs_compiler
@pytest.mark.parametrize(
    ("variant", "ordered", "reverse", "parts", "splits"),
    some(
        pairwise_cover([*VARIANTS], [True, False], [False, True], [1, 2], [1, 3]),
        lambda variant, ordered, reverse, parts, splits: (
            (parts, splits) == ((2, 1) if reverse else (1, 3))
            and ordered != reverse
            and (not reverse or variant.endswith(("tiny", "rows")))
        ),
    ),
)
def test_supports_are_those_of_visit(variant, ordered, reverse, parts, splits):
    device, (kernel, macros) = HostDevice(reverse), VARIANTS[variant]
    for vertices, edges in GRAPHS.values():
        found = edges if ordered else [(turned(u, vertices), turned(v, vertices)) for u, v in edges]
        for task in tasks(found, vertices, parts, splits, ordered):
            check(device, task, kernel, macros)


@needs_compiler
@pytest.mark.slow
@given(graphs(), st.integers(1, 4), st.integers(1, 4), st.sampled_from(sorted(VARIANTS)))
def test_supports_of_any_graph(graph, parts, splits, variant):
    edges, vertices, ordered = graph
    kernel, macros = VARIANTS[variant]
    for task in tasks(edges, vertices, parts, splits, ordered):
        check(HostDevice(), task, kernel, macros)


# whole graphs

SCHEMES_HERE = [{"partition": name, **({} if name in ("whole", "edges") else {"parts": 2})} for name in SCHEMES]


def check_graph(source, **options):
    """Check that vertices and edges on the device equal those on the CPU, which have three for each triangle."""
    known, mine = dasktc.prepare(source, backend="cpu"), dasktc.prepare(source, backend="cuda", **keywords(**options))
    counted = edge_support.kernel_and_bytes(mine._context)[0]
    assert counted in support_kernels("cuda", mine._context.options.chosen_kernel)
    if mine._context.options.chosen_kernel in ("hub", "bitmap", "short"):
        assert counted == mine._context.options.chosen_kernel
    triangles, edges = mine.triangles(), mine.edge_support()
    assert triangles.attrs["kernel"] == edges.attrs["kernel"] == counted
    assert triangles.equals(known.triangles())
    assert edges.equals(known.edge_support())
    assert int(triangles.sum()) == int(edges["support"].sum()) == 3 * int(mine.triangle_count())


@needs_compiler
@pytest.mark.parametrize(
    ("scheme", "reorder", "kernel"),
    some(
        [*product(SCHEMES_HERE, ["degree", "collective", "indegree", "none"], ["hub", "bitmap", "short", "trust"])],
        lambda scheme, reorder, kernel: (
            (reorder == "degree" and (kernel == "hub" or scheme["partition"] == "whole"))
            or (reorder != "degree" and scheme["partition"] == "hash2d" and kernel == "hub")
        ),
    ),
    ids=str,
)
def test_every_scheme_order_and_kernel(emulated, scheme, reorder, kernel):
    check_graph(generate.kronecker(7), reorder=reorder, kernel=kernel, splits=2, **scheme)


@needs_compiler
@pytest.mark.parametrize("kernel", ["hub", "bitmap", "short"])
@pytest.mark.parametrize("source", [generate.kronecker(10), generate.random_graph(4_000, 8_000)], ids=["hubs", "short"])
def test_bytes_that_are_planned_for(emulated, kernel, source):
    (block,) = dasktc.prepare(source, backend="cuda", method=Method(partition="whole"))._context.blocks.values()
    task, used, gpu = BlockTask(block, block, block, dealt=True), cupy_strict.MEMORY_USED, get_backend("cuda")
    of = TaskSize(block.edges, block.edges, block.edges, block.rows)
    for count, nbytes in (
        (lambda: gpu.support(task, kernel), 4 * block.edges),
        (lambda: gpu.vertex_support(task, kernel, (0, 0, 0), {0: block.rows}), 8 * block.rows),
    ):
        block_cache.forget()
        before = used.peak = used.now
        count()
        assert nbytes < used.peak - before <= nbytes + support_scratch_bytes("cuda", kernel, of)
    block_cache.forget()


@needs_compiler
def test_out_of_core(emulated, tmp_path):
    """Blocks come from files, and sums of earlier tasks go to files."""
    check_graph(generate.kronecker(9), partition="hash2d", parts=3, memory=1 << 20, work_dir=str(tmp_path))


@pytest.mark.gpu
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("parts", "splits"), [(1, 1), (1, 3), (2, 2)])
def test_supports_on_the_device(variant, parts, splits):
    from dasktc.backends.cuda import backend

    def moved(task):
        xp, blocks = backend.device().array, {}
        for block in (task.index, task.table, task.stream):
            on_device = replace(block, offsets=xp.asarray(block.offsets), columns=xp.asarray(block.columns))
            blocks.setdefault(id(block), on_device)
        index, table, stream = (blocks[id(block)] for block in (task.index, task.table, task.stream))
        return replace(task, index=index, table=table, stream=stream)

    kernel, macros = VARIANTS[variant]
    for (vertices, edges), ordered in product(GRAPHS.values(), [True, False]):
        found = edges if ordered else [(turned(u, vertices), turned(v, vertices)) for u, v in edges]
        for task in tasks(found, vertices, parts, splits, ordered):
            check(backend.device(), task, kernel, macros, moved)


@pytest.mark.gpu
@pytest.mark.parametrize("scheme", SCHEMES_HERE, ids=str)
@pytest.mark.parametrize("kernel", ["hub", "bitmap", "short"])
def test_graphs_on_the_device(scheme, kernel):
    for source in (generate.kronecker(14), generate.random_graph(20_000, 400_000), generate.grid3d(20)):
        check_graph(source, kernel=kernel, **scheme)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", ["hub", "bitmap"])
def test_complete_graphs_on_the_device(kernel):
    """Rows with more entries than there are counters, and more lists against them than an item holds."""
    vertices = 5_000
    source = np.tril_indices(vertices, -1)
    graph = dasktc.prepare(source, backend="cuda", method=Method(kernel=kernel, partition="whole"))
    assert set(graph.edge_support()["support"].unique()) == {vertices - 2}
    assert set(graph.triangles().unique()) == {(vertices - 1) * (vertices - 2) // 2}
