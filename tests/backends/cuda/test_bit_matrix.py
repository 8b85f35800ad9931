"""Small graphs in a bit matrix: every step against sets, and which graphs are counted so; emulated, and on a GPU."""

import gc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.api.opener import as_source
from dasktc.backends import bit_matrix as matrix
from dasktc.backends import lazy_backend
from dasktc.backends.cuda.bit_matrix import DeviceBitMatrix
from dasktc.backends.cuda.edges import DeviceEdges
from dasktc.counting import small_graph
from dasktc.errors import CountError, InputError
from dasktc.executors.local import LocalExecutor
from dasktc.io.generators.synthetic import kronecker
from dasktc.options import CountOptions, Method, Options
from tests.support import oracle
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation import cupy_strict
from tests.support.emulation.host import HostDevice, needs_compiler
from tests.support.keywords import keywords
from tests.support.slow_pipeline import by_degree, random_edges, skewed_edges

EDGES = skewed_edges(60, 700, 7)
LARGE = [*EDGES, *((v, v + 1) for v in range(60, 60 + matrix.MOST_VERTICES, 2))]
"""More vertices than a matrix has rows, most of them in a matching."""
BOTH = [DeviceBitMatrix(HostDevice(reverse), DeviceEdges(HostDevice(reverse)), np.unique) for reverse in (False, True)]
"""Threads in ascending and in descending order."""
FAR = [0, 1, -5, 10**6, -(2**63), 2**63 - 1, 2**40]
IDS = st.one_of(st.integers(0, 12), st.integers(0, 150), st.integers(-4000, 4000), st.sampled_from(FAR))


def facts(result):
    """The facts on which this way and the stages must agree; wedges are of directions, by rows and by degree."""
    return result.triangles, result.vertices, result.edges, result.loops_dropped, result.duplicates_dropped


@needs_compiler
@pytest.mark.parametrize("bits", BOTH, ids=["forward", "reverse"])
@given(edges=st.lists(st.tuples(IDS, IDS), max_size=200))
def test_any_multigraph(bits, edges):
    src, dst = (np.array([edge[k] for edge in edges], dtype="int64") for k in (0, 1))
    keys = bits.keys(src, dst)
    found = bits.count(keys)
    distinct = {frozenset(edge) for edge in edges if edge[0] != edge[1]}
    assert found.triangles == oracle.triangles(edges)
    assert found.edges == len(distinct)
    assert found.vertices == len({end for edge in distinct for end in edge})
    assert keys.loops == sum(u == v for u, v in edges)
    of = {v: sum(v in edge for edge in distinct) for edge in distinct for v in edge}
    assert found.probes == sum(degree**2 for degree in of.values())


@needs_compiler
@given(edges=oracle.multigraphs())
def test_it_finds_what_the_stages_find(edges):
    source = np.array(edges, dtype="int64").reshape(-1, 2)
    with emulated_cuda.backend():
        small, stages = (
            dasktc.triangle_count(source, backend="cuda", **keywords(**options))
            for options in ({}, {"partition": "whole"})
        )
    assert facts(small) == facts(stages)
    assert (small.kernel == "bitmatrix") == (len(source) > 0)
    assert stages.kernel != "bitmatrix"


@pytest.mark.parametrize("vertices", [63, 64, 65, 130, 2100])
def test_rows_of_every_width(emulated, vertices):
    """Rows of 1 to 33 words, from one lane per edge to one warp per edge."""
    edges = [*random_edges(vertices, 600, 3), (0, vertices - 1), (vertices - 1, 0), (1, vertices - 1), (0, 1)]
    found = dasktc.triangle_count(np.array(edges), backend="cuda")
    assert (found.kernel, found.triangles) == ("bitmatrix", oracle.triangles(edges))
    with by_degree():
        known = dasktc.triangle_count(np.array(edges), backend="cpu")
    assert (*facts(found), found.stats.wedges) == (*facts(known), known.stats.wedges)


def sources():
    edges = np.array(EDGES)
    yield "int64", edges
    yield "int32", edges.astype("int32")
    yield "uint8", edges.astype("uint8")
    yield "columns apart", np.asfortranarray(edges)
    yield "every other row", np.repeat(edges, 2, axis=0)[::2]
    yield "other byte order", edges.astype(">i8")
    yield "floats", edges.astype("float64")
    yield "a pair", (edges[:, 0], edges[:, 1].astype("int16"))
    yield "a frame", pd.DataFrame(EDGES)
    yield "far apart", edges * 10**12 - 7
    yield "a table of ids", edges * 700
    yield "a device array", cupy_strict.asarray(edges)
    yield "a device pair", (cupy_strict.asarray(edges[:, 0].copy()), cupy_strict.asarray(edges[:, 1].astype("int32")))


@pytest.mark.parametrize("name", [name for name, _ in sources()])
def test_sources_in_memory(emulated, monkeypatch, name):
    monkeypatch.setattr(cupy_strict.ndarray, "__module__", "cupy")
    source = dict(sources())[name]
    before = source.copy() if hasattr(source, "copy") else None
    found = dasktc.triangle_count(source, backend="cuda")
    assert found.triangles == oracle.triangles(EDGES)
    assert (found.kernel == "bitmatrix") == (name not in ("floats", "other byte order")), "these are read and checked"
    if isinstance(before, np.ndarray):
        assert (before == source).all()


def test_several_parts_and_no_edges(emulated):
    whole, rest = (as_source(np.array(rows)) for rows in (EDGES[:400], EDGES[400:]))
    found = dasktc.triangle_count(replace(whole, parts=whole.parts + rest.parts), backend="cuda")
    assert (found.kernel, found.triangles) == ("bitmatrix", oracle.triangles(EDGES))
    for edges in (np.array([[3, 3], [3, 3]]), np.array([[2**62, -(2**62)]])):
        found = dasktc.triangle_count(edges, backend="cuda")
        assert (found.kernel, found.triangles, found.edges) == ("bitmatrix", 0, len({*edges[0].tolist()}) - 1)


ASKED = [
    {"kernel": "hub"},
    {"partition": "whole"},
    {"parts": 2},
    {"splits": 2},
    {"reorder": "degree"},
    {"memory": "1GB"},
    {"verify": 1.0},
    {"ids": "text"},
    {"checkpoint": "here"},
    {"report": "here.html"},
    {"per_vertex": "here.csv"},
]


@pytest.mark.parametrize("options", ASKED, ids=lambda options: next(iter(options)))
def test_what_is_asked_for_is_done(emulated, tmp_path, options):
    options = {key: tmp_path / of if str(of).startswith("here") else of for key, of in options.items()}
    found = dasktc.triangle_count(np.array(EDGES), backend="cuda", **keywords(**options))
    assert (found.triangles, found.kernel == "bitmatrix") == (oracle.triangles(EDGES), False)


def test_what_is_too_large_stays_on_the_device(emulated, monkeypatch):
    """The host's reader does not read it again."""
    from dasktc.io.memory.parts import SlicePart

    monkeypatch.setattr(SlicePart, "read", lambda *_: [][0])
    array = np.array(LARGE)
    found = dasktc.triangle_count(array, backend="cuda")
    assert (found.triangles, found.kernel == "bitmatrix") == (oracle.triangles(EDGES), False)
    monkeypatch.undo()
    assert facts(found) == facts(dasktc.triangle_count(array, backend="cpu"))


@pytest.mark.parametrize("scale", [1, 20, 10**12], ids=["close", "a table of ids", "far apart"])
def test_what_is_too_large_goes_through_the_stages(emulated, scale):
    found = dasktc.triangle_count(np.array(LARGE) * scale, backend="cuda")
    assert (found.triangles, found.kernel == "bitmatrix") == (oracle.triangles(EDGES), False)


def test_what_is_small_enough():
    assert matrix.worthwhile(1 << 15, 1 << 18)
    assert not matrix.worthwhile((1 << 15) + 1, 1)
    assert not matrix.worthwhile(1 << 15, (1 << 18) + 1)


@pytest.mark.parametrize("more", [0, 1])
def test_a_graph_of_many_rows_is_not_read_for_a_matrix(emulated, monkeypatch, more):
    monkeypatch.setattr(small_graph, "_ends", lambda *_: None)
    stages = []
    source = as_source(np.broadcast_to(np.array(EDGES[0]), (matrix.MOST_EDGES + more, 2)))
    executor = LocalExecutor(backend=lazy_backend("cuda"))
    options = CountOptions(progress=lambda *now: stages.append(now))
    assert small_graph.count_small(executor, source, Options(backend="cuda"), options)[0] is None
    assert stages == [("read", 0, 1)] * (1 - more)


def test_what_it_reports(emulated):
    stages = []
    found = dasktc.triangle_count(np.array(EDGES), backend="cuda", progress=lambda *now: stages.append(now))
    assert [stage for stage, _, _ in stages] == ["read", "count", "count"]
    assert found.plan.choice.startswith(
        "kernel bitmatrix: 60 vertices are few, and a matrix of bits takes the place of"
    )
    assert "within the" in found.plan.why
    assert (found.plan.tasks, found.workers, found.reorder, found.plan.fits) == (1, 1, "none", True)
    assert found.seconds["total"] >= sum(found.seconds[name] for name in ("read", "prepare", "count"))
    assert "kernel" in found.to_dict()
    ((index, table, stream, split, triangles, *_),) = found.tasks.itertuples(index=False)
    assert (index, table, stream, split, triangles) == ((0, 0), (0, 0), (0, 0), 0, found.triangles)


def test_bits_that_are_lost_are_an_error(emulated, monkeypatch):
    from dasktc.backends.cuda.backend import CudaDevice

    launch = CudaDevice.launch

    def losing(self, kernel, entry, defines, grid, block, values, shared=0):
        launch(self, kernel, entry, defines, grid, block, values, shared)
        if entry == "bitmatrix_set":
            bits = values[4]
            bits[bits.nonzero()[0][:1]] = 0

    monkeypatch.setattr(CudaDevice, "launch", losing)
    with pytest.raises(
        CountError, match=r"^the bit matrix has [\d,]+ bits in the rows of [\d,]+ edges .*bits were lost"
    ):
        dasktc.triangle_count(np.array(EDGES), backend="cuda")


def test_it_leaves_nothing(emulated):
    gc.collect()
    before = cupy_strict.MEMORY_USED.now
    dasktc.triangle_count(np.array(EDGES), backend="cuda")
    gc.collect()
    assert cupy_strict.MEMORY_USED.now == before


@pytest.mark.gpu
@pytest.mark.parametrize(("scale", "known"), [(12, 486_234), (14, 2_843_668)])
def test_on_a_device(scale, known):
    cp = pytest.importorskip("cupy")
    from dasktc.backends import get_backend

    backend = get_backend("cuda")
    pairs = [part.read(backend) for part in kronecker(scale).parts]
    src, dst = (cp.concatenate([cp.asarray(pair[k]) for pair in pairs]) for k in (0, 1))
    edges = cp.stack([src, dst], axis=1)
    for source in ((src, dst), edges, edges.get(), edges.astype("int64").get() * 10**12):
        for _ in range(3):
            found = dasktc.triangle_count(source, backend="cuda")
            assert (found.kernel, found.triangles) == ("bitmatrix", known)
    stages = dasktc.triangle_count((src, dst), backend="cuda", method=Method(partition="whole"))
    assert facts(stages) == facts(found)


def test_it_can_be_asked_for(emulated):
    found = dasktc.triangle_count(np.array(EDGES), method=Method(kernel="bitmatrix"))
    assert (found.kernel, found.backend, found.triangles) == ("bitmatrix", "cuda", oracle.triangles(EDGES))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (dict(backend="cpu"), "backend cpu has no kernel bitmatrix: hub"),
        (dict(partition="whole", parts=1), "partition and parts are given"),
        (dict(memory="1GB"), "memory is given"),
        (dict(verify=1.0), "verify, a checkpoint"),
    ],
    ids=str,
)
def test_what_it_has_not_is_refused_where_it_is_asked_for(emulated, options, why):
    with pytest.raises(InputError, match=why):
        dasktc.triangle_count(np.array(EDGES), **keywords(kernel="bitmatrix", **options))


def test_graphs_that_are_too_large_are_refused_where_it_is_asked_for(emulated, tmp_path):
    path = np.arange(40_001)
    with pytest.raises(InputError, match=r"the 40,000 rows of .* have more than 32,768 ids"):
        dasktc.triangle_count((path[:-1], path[1:]), method=Method(kernel="bitmatrix"))
    with pytest.raises(InputError, match=r"kronecker scale 5.* is no table of integers in memory"):
        dasktc.triangle_count(kronecker(5), method=Method(kernel="bitmatrix"))
    for question in (dasktc.prepare, dasktc.plan):
        with pytest.raises(InputError, match="no stages to plan or to prepare for"):
            question(np.array(EDGES), method=Method(kernel="bitmatrix"))
    with pytest.raises(InputError, match="no stages to plan"):
        dasktc.plan(vertices=5, edges=5, method=Method(kernel="bitmatrix"))
