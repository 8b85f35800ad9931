"""The CUDA kernels behind the whole pipeline, run on the host; and what it takes to add a kernel."""

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

import dasktc
from dasktc.backends.cpu import backend as cpu
from dasktc.backends.csr import BlockTask
from dasktc.backends.cuda import launch
from dasktc.backends.cuda import probes as device_probes
from dasktc.registry import ORDERS, SCHEMES
from tests.backends.cpu.test_kernels import GRAPHS, random_edges, tasks
from tests.support import oracle
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import needs_compiler
from tests.support.keywords import keywords

pytestmark = needs_compiler

BINS = {"BLOCK": 64, "STARTS": 64}
MACROS = {
    "trust": {"THREADS": 64, "BLOCK": 64},
    "hindex": BINS | {"LEVELS": 1, "SHORT": 4, "THREADS": 64},
    "hindex-unbinned": BINS | {"LEVELS": 1, "SHORT": 16, "THREADS": 64},
    "merge": BINS | {"SUB": 2},
    "search": BINS | {"SUB": 2},
    "search-log": BINS | {"SUB": 1},
    "lstc": {"TILE": 8, "THREADS": 64},
    "lstc-unshared": {"THREADS": 64},
    "tcstream": BINS | {"FEW": 2},
    "tcstream-recursive": BINS | {"FEW": 2},
    "tcstream-backward": BINS | {"TOP": 2, "FEW": 2},
}
"""Small blocks and tables, so that small graphs meet every path quickly."""


@pytest.fixture
def emulated(monkeypatch):
    """The CUDA backend on the host, with small tables."""
    for name, macros in MACROS.items():
        kernel = launch.KERNELS[name]
        monkeypatch.setitem(launch.KERNELS, name, replace(kernel, macros={**kernel.macros, **macros}))
    with emulated_cuda.backend() as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("partition", list(SCHEMES))
def test_every_scheme_and_order(partition, emulated):
    """With every kernel, verified: each task is counted again by `plain`, and its probes are computed from lengths.

    Orders take turns at kernels, parts and splits: `test_backend.py` counts with every pair of order and partition.
    """
    edges = [*random_edges(60, 350, 5, below=25), (3, 3), (7, 1), (1, 7)]
    first = [*SCHEMES].index(partition)
    for turn, (reorder, (parts, splits)) in enumerate(zip(ORDERS, cycle([(2, 2), (3, 1)])), first):
        how = {"partition": partition, "reorder": reorder, "parts": parts, "splits": splits, "memory": "8GB"}
        graph = dasktc.prepare(np.array(edges), backend="cuda", **keywords(**how))
        for kernel in [*launch.KERNELS][turn % len(ORDERS) :: len(ORDERS)]:
            result = graph.triangle_count(kernel=kernel, verify=1.0)
            assert int(result) == oracle.triangles(edges), (kernel, how)
            assert result.stats.verified == len(result.tasks)
            assert result.kernel == kernel


def test_each_kernel_of_a_name_both_backends_have_makes_the_same_probes():
    """Except `hub`, which has other tables on the GPU and streams other lists."""
    vertices, edges = GRAPHS["hubs"]
    for task in (*tasks(edges, vertices, 2, 2), *tasks(edges, vertices, 2, ordered=False)):
        for kernel in set(cpu.KERNELS) & set(launch.KERNELS) - {"hub"}:
            assert launch.expected_probes(np, task, kernel) == cpu.count(task, kernel).probes, kernel


def test_rules_see_the_lists_that_they_speak_of():
    (task,) = tasks([(4, 0), (4, 2), (4, 3), (3, 0), (2, 0), (2, 1)], 5)
    seen = []

    def rule(edges, macros):
        seen.append((*(of.tolist() for of in edges.lengths[1:]), edges.v.tolist(), macros))
        return edges.lengths.a

    assert device_probes.expected_probes(np, task, rule, {"X": 1}) == 0 + 1 + 0 + 0 + 1 + 2
    ((a, b, t, hashed, v, macros),) = seen
    assert (a, b, t) == ([0, 1, 0, 0, 1, 2], [0, 0, 0, 0, 2, 1], [2, 2, 1, 3, 3, 3])
    assert hashed == [True, True, False, True, True, True]
    assert (v, macros) == ([0, 1, 0, 0, 2, 3], {"X": 1})
    assert isinstance(task, BlockTask)
