"""Data races of the CUDA kernels, detected on the host (`emulation/races.hpp`): none in ours, all that are planted."""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest

from dasktc import generate
from dasktc.backends.cpu import visit as cpu_visit
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.backends.cuda import bit_matrix, cliques, nvrtc, peel, supports, visit, wedges
from dasktc.backends.cuda.answers import DeviceAnswers
from dasktc.backends.cuda.edge_functions import generate_edges
from dasktc.backends.cuda.edges import DeviceEdges
from dasktc.backends.cuda.sort import RadixSort
from dasktc.backends.cuda.text import DeviceText
from dasktc.backends.cuda.vertices import DeviceVertices
from dasktc.backends.kernel_files import folder
from dasktc.backends.wedge_sample import Strata
from tests.backends.cpu.test_kernels import GRAPHS, clique, random_edges, tasks
from tests.backends.cuda.test_kernels import FEW, FILES, TINY, VARIANTS, moved
from tests.backends.cuda.test_sort import TINY as TILES
from tests.backends.cuda.test_supports import VARIANTS as WITH_OUTPUTS
from tests.support.emulation.host import ENTRY, HostDevice, RaceError, count_on, needs_compiler

pytestmark = needs_compiler

MORE = {
    "hub by rounds": ("hub", TINY | {"PIECE": 1, "COUNTERS": 5, "MET_WARPS": 1, "LANES": 2}),
    "trust without tables": ("trust", FEW | {"STEPS": 0}),
}
LONG = [(u, leaf) for u in (198, 199) for leaf in range(40, 160)]
SMALL_GRAPHS = [(200, sorted(clique(30) + LONG)), (300, random_edges(300, 1000, 3, below=30))]
"""Graphs with rows above 100 entries, and without."""


class Watched(HostDevice):
    """Detects races and records entry points; `change` is applied to the text of one file's kernels."""

    def __init__(self, file=None, change=None):
        super().__init__(races=True)
        self.ran, self.change = set(), change
        self.changed = ENTRY.findall(nvrtc.source(file)) if file else []

    def launch_text(self, text, entry, *how):
        self.ran.add(entry)
        super().launch_text(self.change(text) if entry in self.changed else text, entry, *how)


def some_tasks(device, parts=1, graphs=SMALL_GRAPHS):
    for vertices, edges in graphs:
        for task in tasks(edges, vertices, parts, 1):
            yield on(device, replace(task, dealt=True))


def on(device, of):
    """A task or an array, on the device's side."""
    if device.array is np:
        return of
    return moved(of) if isinstance(of, BlockTask) else device.array.asarray(of)


def counting(*variants, more=()):
    """Count with these variants, a single block as well as several."""

    def work(device):
        for variant in variants:
            kernel, macros = (VARIANTS | MORE)[variant]
            for task in (*some_tasks(device), *some_tasks(device, 2), *some_tasks(device, 1, more)):
                count_on(device, task, kernel, macros)

    return work


def with_outputs(*variants, graphs=SMALL_GRAPHS):
    """Compute triangles by edge and by vertex."""

    def work(device):
        for variant in variants:
            kernel, macros = (WITH_OUTPUTS | MORE)[variant]
            for task in (*some_tasks(device, 1, graphs), *some_tasks(device, 2, graphs)):
                supports.edges(device, task, kernel, macros)
                columns = 1 + int(task.table.columns.max()) if task.table.edges else 1
                sides = {0: task.index.rows, 1: task.stream.rows, 2: columns}
                supports.vertices(device, task, kernel, (0, 1, 2), sides, macros)

    return work


def edge_keys(device):
    rng, xp = np.random.default_rng(1), device.array
    for low, dtype in ((0, "int32"), (-(2**62), "int64")):
        src, dst = (on(device, rng.integers(low, low + 900, 2500).astype(dtype)) for _ in range(2))
        edges = DeviceEdges(device)
        facts = edges.facts(src, dst)
        table = edges.marks(facts.high - facts.low + 1)
        edges.mark(table, src, dst, facts.low)
        ids = edges.ranked(table, facts.low, facts.high - facts.low + 1)
        edges.dense(src, ids)
        keys = edges.keys(src, dst, ids, 10)
        edges.split(xp.tile(keys, 9), [1 << 12, 1 << 13, 1 << 18])  # so that blocks deal several tiles
        edges.residues(keys, 10, 3)
        rank = on(device, rng.permutation(1024).astype("int32"))
        list(edges.split_rows(iter([(src, dst)] * 2), ids, rank, [300, 700, 1024], 10))
        counts = xp.zeros(1024, "int32")
        for many in (1 << 20, 1):
            ends = map(partial(xp.tile, reps=5), (src, dst))  # several tiles
            replace(edges, many=many).count_ends(counts, *ends, ids)
        edges.distinct_rows(xp.sort(xp.tile(keys, 3)), 10, xp.zeros(1024, "int32"), rank, counts)
        keys = edges.distinct(xp.sort(keys), 10)
        for add in (edges.add_degrees, edges.add_sources):
            add(xp.zeros(1024, "int32"), keys, 10)
        edges.oriented(keys, rank, 10)
        edges.placed(keys, 10, 2, on(device, np.arange(4) << 20), on(device, np.full(2, 512)))
        edges.rows(keys, 0, 1024, 1024)


def vertex_vectors(device):
    vertices, rng = DeviceVertices(device), np.random.default_rng(1)
    weights = on(device, rng.integers(0, 2000, 700).astype("int32"))
    vertices.inverse(vertices.order(weights))
    DeviceVertices(device, many=0).order(weights)
    vertices.totals(weights, vertices.order(weights), weights // 2)
    vertices.lengths(weights % 7, 7)
    vertices.lengths(weights, 2000)


def sorting(device):
    rng = np.random.default_rng(1)
    for size in (100, 1000):
        RadixSort(device, **TILES).sort(on(device, rng.integers(0, 1 << 12, size)), 1 << 12)


def texts(device):
    text = "".join(f"{u} {u * 7919 % 1000003}\n" for u in range(900)).encode()
    assert DeviceText(device).rows(on(device, np.frombuffer(text, np.uint8)), None, (0, 1)) is not None


def visits(device):
    for task in some_tasks(device):
        visit.support(device, task)
        visit.listing(device, task, 50)
        for _ in visit.batches(device, task, 1000):
            pass


def small_cliques(device):
    for task in some_tasks(device):
        for size in (3, 4, 5):
            cliques.count(device, task, size)


def sampled_wedges(device):
    for task in some_tasks(device):
        wedges.closed(device, task, Strata(0, 500, 0, 1, 5, True))


def peeling(device):
    """Also paths, each of whose vertices joins the next round by another thread."""
    peeler = peel.DevicePeel(device)
    paths = [(u, u - 1) for u in range(60, 100) if u % 5]
    for task in tasks(clique(12) + [(u, u % 7) for u in range(12, 60)] + paths, 100):
        held = cpu_visit.support(task)[0][0].astype("int32")
        block = on(device, task).index
        peeler.rows(block)
        peeler.cores(block, 0, 100)
        peeler.trusses(block, on(device, held), 0, 100)


def bits(device):
    edges = np.array(SMALL_GRAPHS[0][1])
    matrix = bit_matrix.DeviceBitMatrix(device, DeviceEdges(device), device.array.unique)
    matrix.count(matrix.keys(*(on(device, np.ascontiguousarray(edges[:, k])) for k in (0, 1))))


def generated(device):
    for source in (generate.kronecker(6), generate.rmat(64, 500), generate.random_graph(50, 200), generate.grid3d(5)):
        generate_edges(device, source.parts[0].recipe, 0, 100)


def answers(device):
    """With so many edges that a thread block has several tiles."""
    size, found, xp = 200, DeviceAnswers(device), device.array
    block = OrientedCSR(xp.arange(size + 1) * size, xp.tile(xp.arange(size, dtype="int32"), size))
    ids, numbers = xp.arange(size, dtype="int32"), xp.ones(block.edges, dtype="int32")
    assert found.facts(numbers) == (block.edges, 1)
    for external in (5, xp.arange(size) * 3):
        assert found.edges(block, numbers, (ids, ids), size, 1, external) is not None
    found.place(xp.arange(size), ids)
    found.clustering(xp.ones(size, dtype="int64"), ids, ids)


WORK = {
    "hub": counting(
        "hub by rounds", "hub with short rows", "hub with narrow records", "hub with marks", "bitmap",
        more=[GRAPHS["hubs"], GRAPHS["clique"]],
    ),
    "trust": counting("trust", "trust without VC, CO, VH", "trust of copies", "trust without tables"),
    "hindex": counting("hindex tiny", more=[(200, [(16 * u, 16 * v) for u, v in clique(12)])]),  # several in a bucket
    "merge": counting("merge tiny"),
    "search": counting("search tiny"),
    "lstc": counting("lstc tiny"),
    "tcstream": counting("tcstream tiny"),
    "short": lambda device: (counting("short tiny")(device), with_outputs("short tiny")(device)),
    "plain": counting("plain"),
    "support": with_outputs(
        "hub by rounds", "hub with short rows", "hub with narrow records", "bitmap tiny",
        graphs=[SMALL_GRAPHS[0], GRAPHS["hubs"]],
    ),
    "edges": edge_keys,
    "vertices": vertex_vectors,
    "sort": sorting,
    "text": texts,
    "visit": visits,
    "cliques": small_cliques,
    "wedges": sampled_wedges,
    "peel": peeling,
    "bitmatrix": bits,
    "generate": generated,
    "answers": answers,
}  # fmt: skip
"""Work that runs every entry point of a file."""


def test_all_files_are_watched():
    assert {path.stem for path in folder().glob("*.cu")} == WORK.keys() >= {*FILES} - {"bitmap"}


@pytest.mark.parametrize("path", sorted(folder().glob("*.cu*")), ids=lambda path: path.name)
def test_no_template_has_shared_memory_of_its_own(path):
    """For templates g++ ignores the section that the emulation watches, so races on it would be missed."""
    functions = re.findall(r"(?ms)^template .*?^}", path.read_text(encoding="utf-8"))
    assert not [text for text in functions if "__shared__" in text]


@pytest.mark.slow
@pytest.mark.parametrize("file", WORK)
def test_kernels_have_no_races(file):
    device = Watched()
    WORK[file](device)
    assert not {*ENTRY.findall(nvrtc.source(file))} - device.ran


@pytest.mark.gpu
@pytest.mark.parametrize("file", WORK)
def test_the_same_work_on_a_device(file):
    """Run by `compute-sanitizer`."""
    pytest.importorskip("cupy")
    from dasktc.backends.cuda import backend as cuda

    WORK[file](cuda.device())


TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")


@pytest.mark.gpu
@pytest.mark.timeout(1200)
def test_under_compute_sanitizer():
    """Every kernel under every tool, some processes at a time."""
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if sanitizer is None:
        pytest.skip("no compute-sanitizer, which comes with the CUDA toolkit")
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    tests = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "gpu", "-p", "no:cacheprovider", "-o", "addopts="]

    def run(job):
        tool, file = job
        command = [sanitizer, "--tool", tool, "--error-exitcode", "9", *tests, f"{__file__}::{SAME}[{file}]"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=own)
        right = done.returncode == 0 and "1 passed" in done.stdout
        return "" if right else f"{tool} {file}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}"

    with ThreadPoolExecutor(max(1, min(12, (os.cpu_count() or 1) - 2))) as pool:
        found = [said for said in pool.map(run, product(TOOLS, WORK)) if said]
    assert not found, "\n".join(found)


SAME = test_the_same_work_on_a_device.__name__


def without(text, *lines):
    """A change of kernels' text: `text` is removed from each of `lines`, which contains it once."""

    def change(kernel):
        for line in lines:
            assert kernel.count(line) == 1, line
            assert text in line
            kernel = kernel.replace(line, line.replace(text, "", 1))
        return kernel

    return change


def instead(line, other):
    def change(kernel):
        assert kernel.count(line) == 1, line
        return kernel.replace(line, other)

    return change


BARRIER = "__syncthreads();"
PUT_IN = {
    "keys_scatter's barrier before a tile is counted": (
        "edges", without(BARRIER, "clear(borders + 1);\n    __syncthreads();\n#pragma"), "starts[r] = borders[r]",
    ),
    "keys_scatter's barrier before counts are added up": (
        "edges", without(BARRIER, "range[i], 1u); }\n    }\n    __syncthreads();\n"), "ranges.counts",
    ),
    "the barrier behind the read of a block's row": (
        "trust", without(BARRIER, "    uint32 next = shared.row;\n    __syncthreads();\n"), "shared.row",
    ),
    "the warp's barrier before a tree": (
        "tcstream", without("__syncwarp();", "  __syncwarp();\n  for (uint32 i = threadIdx.x % 32; i < NODES"), "nodes",
    ),
    "the warp's barrier before its lists are streamed": (
        "hub", without("__syncwarp();", "    __syncwarp();\n    visit("), "chunks[k",
    ),
    "a bit set without an atomic": ("edges", instead("atomicOr(word, bit);", "*word |= bit;"), "*word |= bit;"),
    "a key counted without an atomic": (
        "edges", instead("atomicAdd(own + high % modulus * modulus + low % modulus, 1u);",
        "own[high % modulus * modulus + low % modulus] += 1u;"), "own[high",
    ),
    "a degree counted without an atomic": (
        "edges", instead("atomicAdd(degrees + (key & ((int64(1) << shift) - 1)), 1u);",
        "degrees[key & ((int64(1) << shift) - 1)] += 1u;"), "degrees[key",
    ),
    "a length counted without an atomic": (
        "vertices", instead("atomicAdd(usual + value, 1u);", "usual[value] += 1u;"), "usual[value]",
    ),
    "a rare length counted without an atomic": (
        "vertices", instead("atomicAdd(counts + value, uint64(1));", "counts[value] += 1;"), "counts[value]",
    ),
}  # fmt: skip
"""The file, the change of its text, and what the report must quote."""


BREAKING = {"trust": counting("trust without tables")}
"""Work of files whose mutants need other work: where a table is built per row, its barriers also order other reads."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PUT_IN)
def test_a_race_that_is_put_in_is_reported(name):
    file, change, quoted = PUT_IN[name]
    with pytest.raises(RaceError, match=re.escape(quoted)) as told:
        BREAKING.get(file, WORK[file])(Watched(file, change))
    assert re.match(r"(?s)\w+: race on .*:\n  block \d+, thread \d+ .*\n  block \d+, thread \d+ ", str(told.value))


# the detector

BODIES = {
    "ordered": ("s[i] = i; __syncthreads(); out[i] = s[i ^ 63];", None),
    "ordered in a warp": ("s[i] = i; __syncwarp(); out[i] = s[i ^ 31];", None),
    "ordered by lanes' warps": ("if (i < 8) { s[i] = i; __syncwarp(255); out[i] = s[i ^ 7]; }", None),
    "ordered by way of others": (
        "if (i == 0) { *s = 1; } if (i < 2) { __syncwarp(3); } if (i == 1 || i == 2) { __syncwarp(6); } "
        "if (i == 2) { out[0] = *s; }", None,
    ),
    "atomics": ("atomicAdd(out, 1u);", None),
    "bytes of a word": ("reinterpret_cast<unsigned char*>(out)[i] = 1;", None),
    "its own": ("for (int k = 0; k < 3; k++) { out[i]++; s[i]++; __shfl_sync(~0u, i, 0); }", None),
    "volatile": ("*const_cast<volatile unsigned*>(out) = 1;", None),
    "read as declared": ("if (RACY_READ(*out, \"\") < 9) { atomicAdd(out, 1u); }", None),
    "written as declared": ("if (RACY_READ(*out, \"\") == 0) { RACY_WRITE(*out, 1, \"\"); }", None),
    "a scalar in shared memory": ("if (i == 0) { one = 5; } out[i] = one;", "shared memory"),
    "read, then written": ("unsigned x = s[i ^ 1]; s[i] = i; out[i] = x;", "shared memory"),
    "a vote orders nothing": ("s[i] = i; __ballot_sync(~0u, true); out[i] = s[i ^ 1];", "shared memory"),
    "another warp": ("s[i] = i; __syncwarp(); out[i] = s[i ^ 32];", "shared memory"),
    "a lane left out": (
        "if (i < 3) { s[i] = i; } if (i < 2) { __syncwarp(3); } if (i == 0) { out[0] = s[1] + s[2]; }", "shared memory",
    ),
    "blocks": ("if (i == 0) { out[0] += 1; }", "element 0 of the array that is parameter 0"),
    "an atomic, and a read": ("if (*out < 9) { atomicAdd(out, 1u); }", "element 0 of the array that is parameter 0"),
    "a declared read, and a plain write": ("if (RACY_READ(*out, \"\") == 0) { *out = 1; }", "element 0|element 15"),
    "one byte": ("reinterpret_cast<unsigned char*>(out)[i / 2 * 2] = 1;", "element 0|element 15"),
    "two words at once": (
        "if (i % 2 == 0) { *reinterpret_cast<uint2*>(out + i) = {1, 2}; } else { out[i] = 3; }", "element 1|element 63",
    ),
}  # fmt: skip
"""Accesses by 64 threads of two blocks, and the report's words about them."""


@pytest.fixture(scope="module")
def bodies():
    kernels = [
        f'extern "C" __global__ void body_{k}(unsigned* out) {{\n'
        "  __shared__ unsigned s[64];\n  __shared__ unsigned one;\n"
        f"  unsigned i = threadIdx.x;\n  if ({int(name != 'blocks')} && blockIdx.x) {{ return; }}\n  {body}\n}}\n"
        for k, (name, (body, _)) in enumerate(BODIES.items())
    ]
    return "\n".join(kernels)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("name", BODIES)
def test_what_is_a_race(bodies, name, reverse):
    number, word = list(BODIES).index(name), BODIES[name][1]
    run = partial(HostDevice(reverse, True).launch_text, bodies, f"body_{number}", 2, 64, (np.zeros(64, np.uint32),))
    if word is None:
        run()
    else:
        with pytest.raises(RaceError, match=word):
            run()
