"""The CUDA kernels: compiled for every architecture, run on the host, and run on a GPU where there is one."""

import os
import re
import subprocess
import sys
import weakref
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.backends import TaskSize, get_backend, kernel_files
from dasktc.backends.cpu import backend as cpu
from dasktc.backends.cpu.splits import GROUP, rows_of, share_of
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.backends.cuda import block_cache as kept
from dasktc.backends.cuda import launch, launch_hub, launch_trust, nvrtc
from dasktc.backends.cuda import visit as device_visit
from dasktc.backends.edge_functions import Kronecker
from dasktc.backends.kernel import SMALL_ROW, hub_count
from dasktc.errors import InputError
from tests.backends.cpu.test_kernels import (
    GRAPHS,
    block,
    clique,
    graphs,
    neighbours,
    random_edges,
    triangles_of,
    turned,
    wedges_of,
)
from tests.backends.cpu.test_kernels import tasks as ranges
from tests.support.emulation import host
from tests.support.emulation.host import HostDevice, LaunchError, count_on, needs_compiler
from tests.support.tiers import some

TINY = {
    "SMALL": 2, "LONG": 2, "ITEM_EDGES": 8, "ITEM_LISTS": 8, "BITMAP": 64, "FILTER": 32, "NEAR": 32, "PIECE": 16,
    "NEAR_WARPS": 1, "PLAIN_WARPS": 2, "BLOCK": 64, "SHORT": 0, "FEW_ENTRIES": 3, "LANES": 1, "CHUNKS": 5,
}  # fmt: skip
FEW = {"THREADS": 64, "LEVELS": 2, "BLOCK": 64}
BINS = {"BLOCK": 64, "STARTS": 64}
VARIANTS = {
    "hub": ("hub", {}),
    "hub tiny": ("hub", TINY),
    "hub with few tails ahead": ("hub", TINY | {"TAILS_AHEAD": 1, "TAIL_IDS": 3, "TAIL_LANES": 2, "TABLE_WARPS": 1}),
    "hub with narrow lists": (
        "hub",
        TINY | {"LANES": 8, "LISTS_AHEAD": 3, "TAIL_LANES": 32, "TAIL_IDS": 1, "NEIGHBOURS": 1},
    ),
    "hub with long rows": ("hub", {"SHORT": 0}),
    "hub with short rows": ("hub", {"SHORT": 1 << 20, "CAPACITY": 1 << 20}),
    "hub with narrow records": ("hub", {"SHORT": 1 << 20, "CAPACITY": 1 << 20, "FEW_PRINTS": 1 << 20, "EDGES": 3}),
    "hub without room": ("hub", {"SHORT": 1 << 20, "CAPACITY": 0}),
    "hub with marks": ("hub", {"SHORT": 1 << 20, "CAPACITY": 1 << 20, "FEW_PRINTS": 0, "BLOCK": 64}),
    "bitmap": ("bitmap", {}),
    "bitmap tiny": ("bitmap", TINY | {"MERGED": 8}),
    "trust": ("trust", FEW),
    "trust without VC": ("trust", FEW | {"VC": 0, "chunk": 3}),
    "trust of subwarps": ("trust", FEW | {"VC": 0, "lanes": 8}),
    "trust of copies": ("trust", FEW | {"VC": 2, "COPIES": 1}),
    "trust without VC, CO": ("trust", FEW | {"VC": 0, "CO": 0}),
    "trust without VC, CO, VH": ("trust", FEW | {"VC": 0, "CO": 0, "VH": 0}),
    "hindex": ("hindex", BINS | {"THREADS": 64}),
    "hindex tiny": ("hindex", BINS | {"LEVELS": 1, "SHORT": 16, "THREADS": 64}),
    "hindex of the longer list": ("hindex", BINS | {"LEVELS": 2, "SHORT": 8, "THREADS": 32, "LONGER": 1}),
    "hindex-unbinned": ("hindex-unbinned", BINS | {"LEVELS": 1, "SHORT": 16, "THREADS": 64}),
    "merge": ("merge", BINS),
    "merge tiny": ("merge", BINS | {"SUB": 1, "MOST_TPI": 8}),
    "merge static": ("merge", BINS | {"TPI": 8}),
    "merge without LRB": ("merge", BINS | {"LRB": 0}),
    "search": ("search", BINS),
    "search tiny": ("search", BINS | {"SUB": 1}),
    "search static": ("search", BINS | {"TPI": 8}),
    "search without LRB": ("search", BINS | {"LRB": 0, "TPI": 4}),
    "search-log": ("search-log", BINS | {"SUB": 1}),
    "lstc": ("lstc", {"THREADS": 64}),
    "lstc tiny": ("lstc", {"TILE": 5, "THREADS": 32, "CHUNK": 3}),
    "lstc-unshared": ("lstc-unshared", {"THREADS": 64}),
    "tcstream": ("tcstream", BINS),
    "tcstream by vertices, few at a time": ("tcstream", BINS | {"TOP": 3, "FEW": 1, "SHORT": 4, "TAKE": 5}),
    "tcstream by edges": ("tcstream", BINS | {"vertices": 0, "SHORT": 0}),
    "tcstream tiny": ("tcstream", BINS | {"TOP": 2, "FEW": 2}),
    "tcstream of a wide tree": ("tcstream", BINS | {"TOP": 7, "FEW": 1}),
    "tcstream without a tree": ("tcstream", BINS | {"TOP": 0}),
    "tcstream-recursive": ("tcstream-recursive", BINS),
    "tcstream-recursive tiny": ("tcstream-recursive", BINS | {"TOP": 2, "FEW": 2, "SHORT": 4}),
    "tcstream-recursive by edges, without a tree": ("tcstream-recursive", BINS | {"TOP": 0, "vertices": 0}),
    "tcstream-backward": ("tcstream-backward", BINS | {"FEW": 2}),
    "tcstream-backward without a tree": ("tcstream-backward", BINS | {"TOP": 0, "vertices": 0}),
    "short": ("short", {"BLOCK": 64}),
    "short tiny": ("short", {"BLOCK": 64, "FEW": 2}),
    "plain": ("plain", {"BLOCK": 64}),
}
"""Kernels and macros. With tiny tables small graphs reach every path."""
FIRST = {kernel: name for name, (kernel, _) in reversed(VARIANTS.items())}.values()
"""One variant of each kernel."""


def tasks(*arguments):
    """Every task of TRUST's 2D partition, with rows dealt out as on a GPU."""
    return (replace(task, dealt=True) for task in ranges(*arguments))


@lru_cache(maxsize=100)
def known(edges):
    """Known triangles and wedges, cached because many variants count the same graph."""
    return triangles_of(edges), wedges_of(edges)


def check(count, found, kernel, macros, edges, xp=np):
    """Count all tasks of a graph, and compare the results with sets and arithmetic."""
    counts = [count(task, kernel, macros) for task in found]
    assert tuple(sum(c[k] for c in counts) for k in (0, 1)) == known(tuple(edges))
    for task, c in zip(found, counts, strict=True):
        assert c[2] == launch.expected_probes(xp, task, kernel, macros)
        assert (c[3] > 0) <= (not launch.KERNELS[kernel].sorted_rows)
    return counts


def on_host(reverse):
    device = HostDevice(reverse)
    return lambda task, kernel, macros: count_on(device, task, kernel, macros)


def any_numbering(edges, vertices):
    return [(turned(u, vertices), turned(v, vertices)) for u, v in edges]


# compiled, no GPU


BESIDE = ("visit", "support", "edges", "vertices", "answers", "generate", "bitmatrix", "cliques", "wedges")
VARIANTS_OF_OTHERS = (
    "bitmap",
    "hindex-unbinned",
    "search-log",
    "lstc-unshared",
    "tcstream-recursive",
    "tcstream-backward",
)
FILES = [*(kernel for kernel in launch.KERNELS if kernel not in VARIANTS_OF_OTHERS), *BESIDE]
ENDS = nvrtc.ARCHITECTURES[0], nvrtc.ARCHITECTURES[-1]
"""Code that compiles for the oldest and the newest compiles for those between: kernels test at most for 8.0."""
OTHER_MACROS = [
    "hub tiny", "trust without VC, CO, VH", "hindex of the longer list", "merge without LRB", "lstc tiny",
    "tcstream without a tree", "tcstream-recursive", "tcstream-backward", "edges of wide ids", "generate of wide ids",
    "support of vertices", "short of vertices",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "architecture"),
    some(
        [*product(FILES, ENDS), *((name, ENDS[1]) for name in OTHER_MACROS)],
        lambda name, architecture: (name, architecture) == ("hub", ENDS[1]),
    ),
)
def test_kernels_compile(name, architecture):
    wide = {f"{file} of wide ids": (file, {"WIDE": 1}) for file in ("edges", "generate")}
    by_vertex = {f"{file} of vertices": (file, {"VERTICES": 1}) for file in ("support", "short")}
    kernel, macros = (VARIANTS | wide | by_vertex).get(name, (name, {}))
    bindings = pytest.importorskip("cuda.bindings.nvrtc", reason="needs cuda-bindings and nvidia-cuda-nvrtc")
    known = launch.KERNELS.get(kernel)
    file, defines = (kernel, macros) if known is None else (known.file, launch.defines(kernel, macros))
    text = nvrtc.source(file, defines).encode()
    compiled = host.passed(bindings.nvrtcVersion(), nvrtc.OPTIONS, architecture, text)
    if compiled.exists():
        os.utime(compiled)
        return
    _, program = bindings.nvrtcCreateProgram(text, f"{kernel}.cu".encode(), 0, [], [])
    options = [option.encode() for option in nvrtc.OPTIONS] + [f"--gpu-architecture=sm_{architecture}".encode()]
    (error,) = bindings.nvrtcCompileProgram(program, len(options), options)
    _, size = bindings.nvrtcGetProgramLogSize(program)
    log = bytearray(size)
    bindings.nvrtcGetProgramLog(program, log)
    assert error == bindings.nvrtcResult.NVRTC_SUCCESS, log.decode()
    assert not log.decode().strip("\0 \n"), "warnings"
    _, size = bindings.nvrtcGetCUBINSize(program)
    assert size > 0
    bindings.nvrtcDestroyProgram(program)
    if compiled.parent.is_dir():
        compiled.touch()


def test_entry_points_are_extern_c():
    for kernel in FILES:
        text = nvrtc.source(kernel)
        assert text.count("__global__") == text.count('extern "C" __global__') > 0
        assert "#include" not in text


def test_missing_kernels_name_both_places(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_files, "__file__", str(tmp_path / "dasktc" / "backends" / "kernel_files.py"))
    (tmp_path / "kernels").mkdir()
    with pytest.raises(FileNotFoundError, match=r"dasktc/kernels.*kernels: the CUDA kernels are missing"):
        kernel_files.folder.__wrapped__()
    (tmp_path / "kernels" / "csr.cuh").touch()
    assert kernel_files.folder.__wrapped__() == tmp_path / "kernels"


def test_nothing_imports_a_gpu_library():
    code = "import sys, dasktc, dasktc.backends.cuda.launch; print({'cupy', 'cudf', 'dask_cuda'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_cupy_the_backend_says_how_to_get_it():
    with pytest.raises(InputError, match=r"CuPy cannot be imported .* install dasktc\[cuda13\]"):
        import_module("dasktc.backends.cuda.backend")


# the emulation itself


def run_text(body, threads=64, reverse=False, before=""):
    text = f'{before}\nextern "C" __global__ void kernel(unsigned* out) {{ {body} }}'
    out = np.zeros(threads, np.uint32)
    HostDevice(reverse).launch_text(text, "kernel", 1, threads, (out,), 16)
    return out


@needs_compiler
@pytest.mark.parametrize("reverse", [False, True])
def test_emulation_runs_warps_and_blocks(reverse):
    body = """
    __shared__ unsigned all[64];
    unsigned i = threadIdx.x, lane = i % 32;
    all[i] = __shfl_up_sync(~0u, i, 1) + __popc(__ballot_sync(~0u, lane < 5));
    __syncthreads();
    unsigned odd = __ballot_sync(~0u, lane & 1);
    unsigned part = lane & 1 ? __shfl_sync(odd, lane, 31) : __any_sync(~odd, false);
    out[i] = all[63 - i] * 100 + part + (__all_sync(~0u, true) ? 0 : 7);
    """
    i = np.arange(64)
    up = np.where(i % 32 == 0, i, i - 1) + 5
    assert run_text(body, reverse=reverse).tolist() == (up[::-1] * 100 + np.where(i % 2, 31, 0)).tolist()


@needs_compiler
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if (threadIdx.x < 7) { __syncthreads(); }", "divergent barrier: some threads of the block have exited"),
        ("if (threadIdx.x < 7) { __syncthreads(); } else {\n __syncthreads(); }", "wait at different barriers"),
        ("if (threadIdx.x < 7) { __syncwarp(); }", "exited|do not come"),
        ("if (threadIdx.x < 7) { __syncwarp(); } __syncthreads();", "do not come"),
        ("out[0] = __shfl_sync(1u, 1u, threadIdx.x);", "mask leaves it out|mask leaves out"),
        ("host::dynamic_shared[16] = 1;", "writes past its 16 bytes of dynamic shared memory"),
    ],
)
def test_emulation_reports_what_a_gpu_leaves_undefined(body, message, reverse):
    with pytest.raises(LaunchError, match=message):
        run_text(body, reverse=reverse)


# executed on the host


@needs_compiler
@pytest.mark.parametrize(
    ("variant", "reverse"),
    some(
        sorted({*((v, number % 2 == 1) for number, v in enumerate(VARIANTS)), *product(FIRST, (False, True))}),
        lambda variant, reverse: variant in FIRST and not reverse,
    ),
)
def test_counts_are_exact(variant, reverse):
    kernel, macros = VARIANTS[variant]
    for name, (vertices, edges) in GRAPHS.items():
        for ordered, (parts, splits) in product((True, False), ((1, 1), (1, 3), (2, 2))):
            if (parts, splits) != (1, 1) and name in ("dense", "two cliques", "sparse"):
                continue
            found = edges if ordered else any_numbering(edges, vertices)
            check(on_host(reverse), list(tasks(found, vertices, parts, splits, ordered)), kernel, macros, found)


@needs_compiler
@pytest.mark.parametrize(
    "variant",
    some(
        ["hub tiny", "bitmap tiny", "trust", "hindex tiny", "merge tiny", "search tiny", "lstc tiny", "tcstream tiny"],
        lambda variant: variant in ("hub tiny", "trust"),
    ),
)
def test_three_parts(variant):
    kernel, macros = VARIANTS[variant]
    vertices, edges = 130, random_edges(130, 2500, 7, below=100)
    for ordered in (True, False):
        check(on_host(False), list(tasks(edges, vertices, 3, 2, ordered)), kernel, macros, edges)


@needs_compiler
@pytest.mark.parametrize("kernel", ["hub", "bitmap"])
def test_hubs_end_within_a_word(kernel):
    """Edges that lead to the first rows behind the last hub, in the same word of a bitmap, are counted once."""
    vertices, edges = 400, [(u, v) for u in range(225, 270) for v in range(225, u)]
    hubs = hub_count(len(edges), vertices)
    assert 225 < hubs < 269
    assert hubs % 32
    check(on_host(False), list(tasks(edges, vertices)), kernel, {"SHORT": 0}, edges)


def rows_in(share):
    k = np.arange(share.rows)
    return share.begin + k // GROUP * share.step + k % GROUP


@pytest.mark.parametrize("splits", [1, 2, 3, 9, 200])
@pytest.mark.parametrize("name", GRAPHS)
def test_every_row_is_dealt_to_one_split(name, splits):
    vertices, edges = GRAPHS[name]
    for parts in (1, 2):
        found = list(tasks(edges, vertices, parts, splits))
        for first in range(0, len(found), splits):
            shares = [rows_in(share_of(task)) for task in found[first : first + splits]]
            assert sorted(np.concatenate(shares)) == list(range(found[first].index.rows))
            assert max(map(len, shares)) <= min(map(len, shares)) + GROUP


def test_a_range_is_what_the_cpu_counts():
    """For a task whose rows are not dealt out: both backends visit the same rows of a split."""
    vertices, edges = GRAPHS["hubs"]
    for task in ranges(edges, vertices, 2, 3):
        assert share_of(task) == (rows_of(task)[0], GROUP, np.diff(rows_of(task))[0])
        found = on_host(False)(task, "merge", {})
        assert (found[0], found[1]) == cpu_count(task)


def cpu_count(task):
    count = cpu.count(task, "merge")
    return count.triangles, count.wedges


def block_sizes(kernel, threads):
    if kernel in ("hub", "bitmap"):
        warps = dict.fromkeys(("NEAR_WARPS", "PLAIN_WARPS", "TABLE_WARPS"), threads // 32)
        return TINY | warps | {"BLOCK": threads}
    return dict.fromkeys(("BLOCK", "THREADS", "STARTS"), threads)


BLOCK_SIZES = [*product(["hub", "bitmap", "trust", "plain"], [32, 128, 256, 1024])]
BLOCK_SIZES += product(["short"], [32, 256])
BLOCK_SIZES += product(["hindex", "merge", "search", "lstc", "tcstream"], [32, 1024])


@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "threads"), some(BLOCK_SIZES, lambda kernel, threads: (kernel, threads) == ("hub", 32))
)
def test_every_block_size(kernel, threads):
    """For every other size, the blocks of a launch run in ascending order, else in descending order."""
    edges = sorted(set(random_edges(300, 3000, 3, below=40) + clique(110)))
    check(on_host(threads.bit_length() % 2 == 0), list(tasks(edges, 300)), kernel, block_sizes(kernel, threads), edges)


@needs_compiler
@given(graphs(), st.integers(1, 3), st.integers(1, 3), st.sampled_from(sorted(VARIANTS)), st.booleans())
def test_any_graph_in_any_partition(graph, parts, splits, variant, reverse):
    kernel, macros = VARIANTS[variant]
    edges, vertices, ordered = graph
    check(on_host(reverse), list(tasks(edges, vertices, parts, splits, ordered)), kernel, macros, edges)


@needs_compiler
@pytest.mark.parametrize("kernel", ["hindex", "merge", "search", "tcstream"])
@pytest.mark.parametrize("most", [1, 37, 1000])
def test_edges_listed_in_slices(kernel, most):
    """A row is never cut: some rows are longer than a slice, and some slices hold several rows."""
    for name in ("hubs", "star outward", "star inward"):
        vertices, edges = GRAPHS[name]
        macros = BINS | {"slice": most, "vertices": 0}
        check(on_host(False), list(tasks(edges, vertices, 1, 2)), kernel, macros, edges)


@needs_compiler
@pytest.mark.parametrize("kernel", ["tcstream", "tcstream-recursive", "tcstream-backward"])
@pytest.mark.parametrize("top", [0, 3])
def test_long_lists_are_searched_from_end_to_end(kernel, top):
    """A lane's share is some twenty entries: lists that are equal, interleaved, one behind the other, or one entry."""
    few, many = np.arange(0, 1400, 2), np.arange(0, 2000, 2)
    pairs = [
        (few, many), (few + 1, many), (few, many + 1400), (few + 2000, many), (many, many), (few[-1:], few),
        (few[:1], few), (np.random.default_rng(1).choice(2000, 700, replace=False), many), (few // 2 * 3, many),
    ]  # fmt: skip
    for a, b in pairs:
        row, list_ = np.unique(a), np.unique(b)
        index = OrientedCSR(np.array([0, 1, 1]), np.array([0], "int32"))
        table = OrientedCSR(np.array([0, len(row), len(row)]), row.astype("int32"))
        stream = OrientedCSR(np.array([0, len(list_)]), list_.astype("int32"))
        found = on_host(False)(BlockTask(index, table, stream), kernel, BINS | {"TOP": top, "vertices": 0})
        assert found[:3] == (len(np.intersect1d(row, list_)), len(list_), min(len(row), len(list_)))


@needs_compiler
@pytest.mark.parametrize("macros", [{"SUB": 1}, {"SUB": 2}, {"SUB": 3, "MOST_TPI": 64}, {"SUB": 16}, {"TPI": 256}])
def test_equal_entries_at_every_cut_of_a_path(macros):
    """Lists that are equal, shifted by one, or have one entry in common, at their ends and everywhere else."""
    rows = {100: range(64), 101: range(64), 102: range(1, 65), 103: [0], 104: [63], 105: range(63, 90)}
    edges = [(u, v) for u, row in rows.items() for v in row]
    edges += [(u, v) for u in rows for v in rows if v < u]
    for reverse, ordered in product((False, True), repeat=2):
        check(on_host(reverse), list(tasks(sorted(edges), 106, 1, 1, ordered)), "merge", BINS | macros, edges)


@needs_compiler
@pytest.mark.parametrize("sub", [1, 8])
def test_work_is_binned_by_its_logarithm(sub):
    """Every launch of bin k has the edges of work above 2^(k-1) and at most 2^k, and 2^k / SUB threads for each."""
    wide = [(90, v) for v in range(90)] + [(91, v) for v in range(91)]
    lengths = {v: v for v in (1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 64)}
    edges = sorted(wide + [(v, w) for v, size in lengths.items() for w in range(size)])
    (task,) = tasks(edges, 92)
    device, bins = HostDevice(), []

    def noted(kernel, entry, defines, grid, block, values, shared=0):
        if entry == "search_bin":
            bins.append([int(value) for value in values[2:5]])
        HostDevice.launch(device, kernel, entry, defines, grid, block, values, shared)

    device.launch = noted
    count_on(device, task, "search", BINS | {"SUB": sub})
    work = [min(sum(w < v for w in neighbours(edges)[u]), len(neighbours(edges).get(v, ()))) for u, v in edges]
    counts = Counter((size - 1).bit_length() for size in work if size)
    ends = np.cumsum([counts[k] for k in sorted(counts)])
    split = [max(0, k - sub.bit_length() + 1) for k in sorted(counts)]
    assert bins == [[end - counts[k], end, of] for k, end, of in zip(sorted(counts), ends, split, strict=True)]


def alike(vertices, stride):
    """A clique whose ids are multiples of `stride`."""
    return [(stride * u, stride * v) for u, v in clique(vertices)]


@needs_compiler
@pytest.mark.parametrize(
    ("variant", "vertices", "stride", "reverse"),
    some(
        [
            (variant, *size, reverse)
            for variant in ("trust", "trust without VC, CO")
            for size in ((45, 1024), (130, 8192))
            for reverse in (False, True)
        ],
        lambda variant, vertices, stride, reverse: vertices == 45 or (variant == "trust" and not reverse),
    ),
)
def test_full_buckets_pass_entries_on(variant, vertices, stride, reverse):
    """All entries are of one bucket, which has room for four."""
    kernel, macros = VARIANTS[variant]
    edges = alike(vertices, stride)
    (count,) = check(on_host(reverse), list(tasks(edges, stride * vertices)), kernel, macros, edges)
    assert count[3] == 4


@needs_compiler
@pytest.mark.parametrize("virtual", [0, 1])
def test_reads_are_entries_of_buckets(virtual):
    """Three layers without a triangle: every lookup compares all entries of its bucket."""
    rng = np.random.default_rng(2)
    rows = {u: sorted(rng.choice(60, 20, replace=False).tolist()) for u in range(60, 120)}
    rows |= {u: sorted((60 + rng.choice(60, 25, replace=False)).tolist()) for u in range(120, 180)}
    edges = [(u, v) for u, row in rows.items() for v in row]
    (task,) = tasks(edges, 180)
    buckets = {u: Counter(w % 32 for w in row) for u, row in rows.items()}
    reads = sum(buckets[u][w % 32] for u, v in edges for w in rows.get(v, ()))
    count = count_on(HostDevice(), task, "trust", FEW | {"VC": virtual, "READS": 1, "WARP_BUCKETS": 32})
    assert count[:3] == (0, wedges_of(edges), reads)


@needs_compiler
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
def test_a_block_of_trust_shares_its_longest_lists(reverse):
    """Three of 150 lists, of 16 entries a thread, in one of several tiles; the other lists are short."""
    longest, short = [(1200 + v, w) for v in range(3) for w in range(16 * FEW["THREADS"] + v)], range(1203, 1350)
    edges = longest + [(v, w) for v in short for w in (v % 7, 7 + v % 60)]
    edges += [(u, v) for u in range(1350, 1353) for v in (*range(0, 100, 2), *range(1200, 1350))]
    check(on_host(reverse), list(tasks(edges, 1353)), "trust", FEW, edges)


@needs_compiler
@pytest.mark.parametrize("chunk", [0, 1, 5])
def test_rows_are_taken_in_chunks(chunk):
    """One row per turn, several where rows are many and short, or as many as the macro says."""
    edges = random_edges(3000, 9000, 3)
    (task,) = tasks(edges, 3000)
    device, taken = HostDevice(), {}

    def noted(kernel, entry, defines, grid, block, values, shared=0):
        if entry == "trust_warp":
            taken[entry] = int(values[-3]), grid * block // 32
        HostDevice.launch(device, kernel, entry, defines, grid, block, values, shared)

    device.launch = noted
    found = count_on(device, task, "trust", FEW | {"chunk": chunk, "turns": 2})
    assert found[:2] == (triangles_of(edges), wedges_of(edges))
    size, teams = taken["trust_warp"]
    assert size == chunk or (chunk == 0 and 1 < size <= 3000 // (2 * teams))


def steps_by_hand(lists, threads, lanes):
    """Steps of a team whose subwarps take the equally long lists of a row in turn."""
    teams = threads // lanes
    busy = [sum(-(-entries // lanes) for entries in lists[team::teams]) for team in range(teams)]
    return max(busy)


@given(st.integers(1, 300), st.integers(0, 400), st.sampled_from([32, 1024]))
def test_subwarps_are_those_of_fewest_steps(edges, entries, threads):
    steps = [steps_by_hand([entries] * edges, threads, lanes) for lanes in launch_trust.LANES]
    chosen = launch_trust.subwarp_lanes(steps)
    assert steps[launch_trust.LANES.index(chosen)] == min(steps)
    assert all(lanes <= chosen for lanes, of in zip(launch_trust.LANES, steps, strict=True) if of == min(steps))


@needs_compiler
@pytest.mark.parametrize(("entries", "lists", "chosen"), [(3, 40, 8), (16, 40, 16), (90, 3, 32)])
def test_subwarps_are_as_long_as_lists(entries, lists, chosen):
    """Every row has the same number of lists, of the same length."""
    middle = range(100, 100 + lists)
    edges = [(v, w) for v in middle for w in range(entries)] + [(u, v) for u in range(300, 700) for v in middle]
    (task,) = tasks(edges, 700)
    device, taken = HostDevice(), []

    def noted(kernel, entry, defines, grid, block, values, shared=0):
        if entry == "trust_warp":
            taken.append(int(values[-2]))
        HostDevice.launch(device, kernel, entry, defines, grid, block, values, shared)

    device.launch = noted
    found = count_on(device, task, "trust", FEW | {"VC": 0})
    assert found[:2] == (0, wedges_of(edges))
    assert taken == [chosen]


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("variant", ["hindex", "hindex tiny", "hindex of the longer list", "hindex-unbinned"])
def test_full_buckets_of_short_lists_pass_entries_on(variant, reverse):
    """In one graph all ids share a warp's bucket, in the other also a block's."""
    kernel, macros = VARIANTS[variant]
    levels, half_empty = (macros.get("LEVELS", 6), 8) if kernel == "hindex" else (8, -(-2 * 139 // 32))
    for vertices, stride, deepest in ((30, 32, levels), (140, 1024, half_empty)):
        edges = alike(vertices, stride)
        (count,) = check(on_host(reverse), list(tasks(edges, stride * vertices)), kernel, macros | {"depth": 8}, edges)
        assert count[3] == deepest


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    ("variant", "vertices", "stride"),
    [("hub tiny", 40, 64), ("bitmap tiny", 40, 64), ("hub", 130, 1024), ("bitmap", 130, 1024)],
)
def test_hub_ids_that_share_words_and_filter_bits(variant, vertices, stride):
    kernel, macros = VARIANTS[variant]
    edges = alike(vertices, stride)
    check(on_host(True), list(tasks(edges, stride * vertices)), kernel, macros, edges)


@needs_compiler
@pytest.mark.parametrize("variant", some(VARIANTS, lambda variant: variant.endswith("tiny")))
def test_table_and_stream_of_unlike_width(variant):
    kernel, macros = VARIANTS[variant]
    narrow = block([(0, 1), (0, 2)], 1, ordered=False)
    index = block([(0, 0)], 1, ordered=False)
    wide = OrientedCSR(np.array([0, 40]), np.arange(2, 80_000_000, 2_000_000, dtype=np.int32))
    for table, stream in ((narrow, wide), (wide, narrow)):
        found = on_host(False)(BlockTask(index, table, stream), kernel, macros)
        assert found[:2] == (1, stream.edges)


class Allocating:
    """NumPy's functions with which launches allocate; `bytes` sums what they allocated."""

    def __init__(self):
        self.bytes = 0

    def __getattr__(self, name):
        def allocate(*args, **kwargs):
            made = getattr(np, name)(*args, **kwargs)
            self.bytes += made.nbytes
            return made

        return allocate


@needs_compiler
@pytest.mark.parametrize("most", [0, 1 << 20], ids=["marks", "fingerprints"])
def test_equal_fingerprints_of_different_ids(most):
    """Ids beyond 65,536 share fingerprints of 16 bits, so matches must be looked up."""

    def fingerprint(x):
        return (x * 2654435769 & 0xFFFFFFFF) >> 16

    vertices, by_print = 70_000, dict[int, list[int]]()
    for x in range(vertices - 2):
        by_print.setdefault(fingerprint(x), []).append(x)
    same = max(by_print.values(), key=len)
    assert len(same) >= 2
    u, v = vertices - 1, vertices - 2
    for mine, others in ((same[:1], same[1:]), (same, same[:1]), (same[1:], same[1:])):
        edges = sorted([(u, v), *((u, w) for w in mine), *((v, w) for w in others)])
        macros = {"SHORT": 1 << 20, "CAPACITY": 1 << 20, "FEW_PRINTS": most, "BLOCK": 64}
        check(on_host(False), list(tasks(edges, vertices)), "hub", macros, edges)


@needs_compiler
@pytest.mark.parametrize(
    "variant",
    ["hub", "hub tiny", "bitmap", "trust", "hindex", "hindex-unbinned", "merge", "lstc", "tcstream", "short", "plain"],
)
@pytest.mark.parametrize("name", some(["hubs", "clique", "star outward"], lambda name: name == "hubs"))
def test_scratch_is_within_its_bound(name, variant):
    (kernel, macros), (vertices, edges) = VARIANTS[variant], GRAPHS[name]
    for parts, splits in product((1, 2), (1, 3)):
        for task in tasks(edges, vertices, parts, splits):
            device, blocks = HostDevice(), (task.index, task.table, task.stream)
            device.array = Allocating()
            count_on(device, task, kernel, macros)
            index, table, stream = (block.edges for block in blocks)
            size = TaskSize(-(-index // splits), table, stream, max(block.rows for block in blocks), splits)
            assert device.array.bytes <= launch.KERNELS[kernel].scratch_bytes(size)


class Noting(HostDevice):
    """A device that records the entry points that are run."""

    def __init__(self):
        super().__init__()
        self.entries = Counter()

    def launch(self, kernel, entry, *how, **more):
        self.entries[entry] += 1
        super().launch(kernel, entry, *how, **more)


@needs_compiler
@pytest.mark.parametrize(
    ("variant", "entries"),
    [
        ("hub tiny", {"hub_longest": 1, "hub_bitmaps": 1, "hub_narrow": 1}),
        ("bitmap tiny", {"hub_bitmaps": 1}),
        ("hub with short rows", {"hub_longest": 1, "hub_marks": 1}),
    ],
)
def test_what_is_made_of_blocks_alone_is_made_once_for_all_splits(variant, entries):
    kernel, macros = VARIANTS[variant]
    vertices, edges = GRAPHS["hubs"]
    for rounds in (1, 2):
        device, found = Noting(), list(tasks(edges, vertices, 1, 5))
        for _ in range(rounds):
            counts = [count_on(device, task, kernel, macros) for task in found]
            assert sum(c[0] for c in counts) == triangles_of(edges)
        made = {entry: device.entries[entry] for entry in entries if device.entries[entry]}
        assert made
        assert made.items() <= entries.items()
        count_on(device, found[0], "plain")
        count_on(device, found[0], kernel, macros)
        assert all(device.entries[entry] == 2 for entry in made)


def test_what_is_kept_goes_with_its_blocks():
    vertices, edges = GRAPHS["hubs"]
    one, other = next(tasks(edges, vertices, 2, 1)), next(tasks(edges, vertices, 1, 1))
    made = [np.zeros(1) for _ in range(4)]
    alive = [weakref.ref(array) for array in made]
    assert kept.once(one, "name", 1, lambda: made[0]) is kept.once(one, "name", 1, lambda: made[1]) is made[0]
    assert kept.once(one, "name", 2, lambda: made[1]) is made[1]
    assert kept.once(other, "name", 2, lambda: made[2]) is made[2]
    assert kept.once(one, "name", 2, lambda: made[3]) is made[3]
    made.clear()
    assert [array() is None for array in alive] == [True, True, True, False]
    del one
    assert alive[3]() is None
    assert kept.once(other, "name", 2, lambda: np.zeros(2)).shape == (2,)
    kept.forget()


class Far(HostDevice):
    """Columns whose offsets begin at `PAST`, as the last ones of a huge graph do, without memory before them."""

    PAST = 5 * 10**9

    def pointer(self, array):
        return (super().pointer(array) - (array.dtype == "int32") * 4 * self.PAST) % 2**64  # a heap may begin below

    def launch(self, kernel, entry, defines, grid, block, values, shared=0):
        if entry == "hub_tables":  # halves of columns, two bytes each
            halves = [np.uint64((array.ctypes.data - 2 * self.PAST) % 2**64) for array in values[1:3]]
            values = (values[0], *halves, *values[3:])
        super().launch(kernel, entry, defines, grid, block, values, shared)


@needs_compiler
@pytest.mark.parametrize("name", ["clique", "hubs"])
@pytest.mark.parametrize(
    "variant",
    [
        "hub tiny", "hub with long rows", "hub with short rows", "hub with narrow records", "hub without room",
        "bitmap", "bitmap tiny", "short", "short tiny", "plain", "merge", "trust",
    ],
)  # fmt: skip
def test_places_of_edges_beyond_32_bits(variant, name):
    kernel, macros = VARIANTS[variant]
    vertices, edges = GRAPHS[name]
    for task in tasks(edges, vertices, 1):
        far = replace(task.index, offsets=task.index.offsets + Far.PAST)
        counts = count_on(Far(), BlockTask(far, far, far), kernel, macros)
        assert counts == count_on(HostDevice(), task, kernel, macros)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
def test_lists_of_some_rows_after_those_of_others(monkeypatch, reverse):
    """Where lists outnumber edges, which pieces of one entry cause here."""
    rounds = []
    slow = launch_hub._by_rounds
    monkeypatch.setattr(launch_hub, "_by_rounds", lambda *given: rounds.append(1) or slow(*given))
    for vertices, edges in GRAPHS.values():
        for parts, splits in ((1, 1), (1, 3), (2, 2)):
            found = list(tasks(edges, vertices, parts, splits))
            check(on_host(reverse), found, "hub", TINY | {"PIECE": 1}, edges)
    assert rounds


@needs_compiler
@pytest.mark.parametrize("splits", [1, 3, 40])
def test_lists_take_no_more_than_their_rows_edges(splits):
    vertices, edges = GRAPHS["hubs"]
    device, listed = HostDevice(), set()
    for task in tasks(edges, vertices, 1, splits):
        rows = rows_in(share_of(task))
        device.array, asked = zeros_noted()
        found = device_visit.listing(device, task, 10**6)
        offsets = task.index.offsets
        assert sum(asked) == sum(offsets[rows + 1] - offsets[rows], start=0)
        assert set(found[:, 0].tolist()) <= set(rows.tolist())
        listed.update(map(tuple, found.tolist()))
    assert len(listed) == triangles_of(edges)


def zeros_noted():
    """NumPy, with a record of the sizes of arrays of zeros."""
    asked = []

    class Noting:
        def __getattr__(self, name):
            return getattr(np, name)

        def zeros(self, size, dtype):
            if dtype == "uint32":
                asked.append(size)
            return np.zeros(size, dtype)

    return Noting(), asked


# on a GPU


def on_device(task, kernel, macros):
    from dasktc.backends.cuda import backend as cuda

    return cuda.count(moved(task), kernel, macros)


def moved(task):
    """Copy a task's arrays to the GPU."""
    cp = pytest.importorskip("cupy")

    blocks = {
        id(block): OrientedCSR(cp.asarray(block.offsets), cp.asarray(block.columns), *shape(block))
        for block in (task.index, task.table, task.stream)
    }
    index, table, stream = (blocks[id(b)] for b in (task.index, task.table, task.stream))
    return replace(task, index=index, table=table, stream=stream)


def shape(block):
    return block.stride, block.row_first, block.column_first, block.ordered


@pytest.mark.gpu
@pytest.mark.parametrize("variant", VARIANTS)
def test_counts_are_exact_on_the_device(variant):
    kernel, macros = VARIANTS[variant]
    for (vertices, edges), ordered, (parts, splits) in product(
        GRAPHS.values(), (True, False), ((1, 1), (1, 3), (2, 2))
    ):
        found = edges if ordered else any_numbering(edges, vertices)
        check(on_device, list(tasks(found, vertices, parts, splits, ordered)), kernel, macros, found)


@pytest.mark.gpu
@pytest.mark.parametrize(("kernel", "threads"), BLOCK_SIZES)
def test_every_block_size_on_the_device(kernel, threads):
    edges = sorted(set(random_edges(300, 3000, 3, below=40) + clique(110)))
    check(on_device, list(tasks(edges, 300)), kernel, block_sizes(kernel, threads), edges)


@pytest.mark.gpu
@pytest.mark.parametrize(("vertices", "stride"), [(45, 1024), (130, 8192)])
def test_full_buckets_pass_entries_on_on_the_device(vertices, stride):
    edges = alike(vertices, stride)
    (count,) = check(on_device, list(tasks(edges, stride * vertices)), "trust", {}, edges)
    assert count[3] == 4


def kronecker(scale, parts):
    """Blocks on the GPU of the oriented Kronecker graph in degree order."""
    cp = pytest.importorskip("cupy")

    source, target = (cp.asarray(end).astype("int64") for end in kronecker_ends(cp, scale))
    size, keep = 1 << scale, source != target
    keys = cp.unique(cp.maximum(source, target)[keep] * size + cp.minimum(source, target)[keep])
    degree = cp.bincount(keys // size, minlength=size) + cp.bincount(keys % size, minlength=size)
    rank = cp.empty(size, "int64")
    rank[cp.argsort(-degree)] = cp.arange(size)
    source, target = rank[keys // size], rank[keys % size]
    source, target = cp.maximum(source, target), cp.minimum(source, target)
    blocks = {}
    for i, j in product(range(parts), repeat=2):
        mine = (source % parts == i) & (target % parts == j)
        keys = cp.sort(source[mine] // parts * size + target[mine] // parts)
        offsets = cp.searchsorted(keys, cp.arange(-(-size // parts) + 1) * size)
        blocks[i, j] = OrientedCSR(offsets.astype("int64"), (keys % size).astype("int32"), parts, i, j, True)
    return [BlockTask(blocks[i, k], blocks[i, j], blocks[k, j]) for i, j, k in product(range(parts), repeat=3)]


def kronecker_ends(xp, scale):
    recipe = Kronecker(vertices=1 << scale, edges=16 << scale, seed=1)
    return recipe.ends(xp, 0, 16 << scale)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", launch.KERNELS)
@pytest.mark.parametrize(("scale", "parts", "triangles"), [(14, 1, 2843668), (14, 3, 2843668), (18, 1, 82704862)])
def test_kronecker_on_the_device(scale, parts, triangles, kernel):
    cp = pytest.importorskip("cupy")

    from dasktc.backends.cuda import backend as cuda

    counts = [(task, cuda.count(task, kernel)) for task in kronecker(scale, parts)]
    assert sum(count.triangles for _, count in counts) == triangles
    for task, count in counts:
        assert count.probes == launch.expected_probes(cp, task, kernel)
        assert count.seconds > 0


@pytest.mark.gpu
def test_counts_repeat():
    from dasktc.backends.cuda import backend as cuda

    (task,) = kronecker(16, 1)
    for kernel in launch.KERNELS:
        assert len({cuda.count(task, kernel)[:4] for _ in range(4)}) == 1


@pytest.mark.gpu
def test_sort_of_the_backend():
    cp = pytest.importorskip("cupy")

    keys = cp.random.default_rng(1).integers(0, 1 << 40, 1 << 16)
    wanted = np.sort(cp.asnumpy(keys))
    assert (cp.asnumpy(get_backend("cuda").sort(keys, 1 << 40)) == wanted).all()


def test_macros_are_read_from_the_files():
    """Every macro that has a default; of a prelude's and the kernel's the first one, as for the compiler."""
    for path in kernel_files.folder().glob("*.cu"):
        text, found = nvrtc.source(path.stem), kernel_files.macros(path.stem)
        assert set(re.findall(r"#ifndef (\w+)", text)) == {*found, "RACY_READ"}
        for name, value in found.items():
            assert re.findall(rf"#define {name} (\d+)\b", text)[0] == str(value), name
    assert kernel_files.macros("hub")["BITMAP"] == 1 << 16
    assert (kernel_files.macros("short")["BLOCK"], kernel_files.macros("hindex")["BLOCK"]) == (128, 256)


def test_a_macro_of_two_files_has_the_first_default(tmp_path):
    (tmp_path / "twice.cu").write_text("// Preludes: lrb.cuh\n#ifndef BLOCK\n#define BLOCK 17\n#endif\n")
    assert kernel_files.macros(str(tmp_path / "twice"))["BLOCK"] == kernel_files.macros("merge")["BLOCK"] != 17


def test_entries_name_macros_of_their_files():
    """A name in capitals in an entry is a macro of its files: a mistyped one would change nothing."""
    for entry in launch.KERNELS.values():
        text = nvrtc.source(entry.file)
        assert all(re.search(rf"\b{name}\b", text) for name in entry.macros if name.isupper()), entry.name


def test_constants_of_a_file_are_those_of_its_launch():
    text = nvrtc.source("trust")
    assert f"SMALL_ROW = {SMALL_ROW}, " in text
