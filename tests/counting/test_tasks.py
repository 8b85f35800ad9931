"""Tasks that exceed memory are cut in two, repeatedly, until they give the same numbers or an error."""

import logging
import re
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.answers import edge_support as supporting
from dasktc.answers import triangle_list as lists
from dasktc.backends.cpu import hub_tables
from dasktc.backends.cpu.splits import halves, rows_of
from dasktc.backends.cuda import launch
from dasktc.counting import tasks as counting
from dasktc.errors import CountError
from dasktc.io.generators.synthetic import kronecker
from dasktc.options import Method
from tests.backends.cpu.test_kernels import GRAPHS, tasks
from tests.executors.test_memory_budget import facts
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation import cupy_strict
from tests.support.keywords import keywords
from tests.support.slow_pipeline import EVERY_KERNEL, EVERY_PARTITION, cpu, pairwise_cover, skewed_edges, source_of
from tests.support.tiers import each_once, some

EDGES = skewed_edges(120, 900, 1)


def edges_of(task):
    begin, end = rows_of(task)
    return int(task.index.offsets[end] - task.index.offsets[begin])


@given(
    graph=st.sampled_from([name for name in GRAPHS if GRAPHS[name][0] < 200]),
    parts=st.integers(1, 3),
    splits=st.integers(1, 5),
    turns=st.lists(st.booleans(), max_size=12),
)
def test_halves_are_all_rows_of_a_task_and_no_other(graph, parts, splits, turns):
    vertices, edges = GRAPHS[graph]
    for task in tasks(edges, vertices, parts, splits):
        for second in turns:
            both = halves(task)
            begin, end = rows_of(task)
            assert len(both) == (0 if end - begin < 2 else 2)
            if not both:
                break
            (first, middle), (again, last) = map(rows_of, both)
            assert (first, again, last) == (begin, middle, end)
            assert begin < middle < end
            assert [half.split for half in both] == [2 * task.split, 2 * task.split + 1]
            assert {half.splits for half in both} == {2 * task.splits}
            task = both[second]


def test_halves_have_about_equally_many_edges():
    vertices, edges = GRAPHS["dense"]
    (task,) = tasks(edges, vertices)
    sizes = [edges_of(half) for half in halves(task)]
    longest = int(np.diff(task.index.offsets).max())
    assert sum(sizes) == task.index.edges
    assert abs(sizes[0] - sizes[1]) <= 2 * longest


@contextmanager
def faulty(most, refused):
    """The CPU backend, without memory for tasks above so many index edges."""

    def count(task, kernel):
        if edges_of(task) > most:
            refused.append(rows_of(task))
            raise MemoryError(f"{edges_of(task)} edges")
        return cpu().count(task, kernel)

    def support(task, kernel):
        count(task, "merge")
        return cpu().support(task, kernel)

    def listing(task, limit):
        count(task, "merge")
        return cpu().listing(task, limit)

    def vertex_support(task, kernel, sides, sizes):
        count(task, "merge")
        return cpu().vertex_support(task, kernel, sides, sizes)

    short = replace(cpu(), count=count, support=support, listing=listing, vertex_support=vertex_support)
    with ExitStack() as patched:
        for module in (counting, supporting, lists):
            patched.enter_context(mock.patch.object(module, "get_backend", return_value=short))
        yield


@pytest.mark.parametrize(
    ("kernel", "partition", "most"), each_once(pairwise_cover(EVERY_KERNEL, EVERY_PARTITION, [40, 100, 10**6]))
)
def test_every_kernel_and_partition_gives_the_same(kernel, partition, most):
    graph, refused = dasktc.prepare(source_of(EDGES), backend="cpu", **keywords(kernel=kernel, **partition)), []
    expected = graph.triangle_count()
    with faulty(most, refused):
        found = graph.triangle_count(verify=1.0)
    assert facts(found) == facts(expected)
    assert bool(refused) == any(
        edges > most
        for edges in (edges_of(counting.task_of(*arguments(graph, record.job))) for record in found._records)
    )


@pytest.mark.parametrize("partition", [{"splits": 2}, {"partition": "hash2d", "parts": 2}], ids=str)
def test_visits_and_lists_of_halves_are_the_same(partition):
    graph, refused = dasktc.prepare(source_of(EDGES), backend="cpu", **keywords(**partition)), []
    expected = graph.triangles(), graph.edge_support(), graph.triangle_list(), graph.triangle_list(100)
    with faulty(40, refused):
        graph._context.counted.forget()
        found = graph.triangles(), graph.edge_support(), graph.triangle_list(), graph.triangle_list(100)
    assert refused
    pd.testing.assert_series_equal(found[0], expected[0])
    for one, other in zip(found[1:], expected[1:], strict=True):
        pd.testing.assert_frame_equal(one, other)
    graph._context.counted.forget()
    with faulty(0, []), pytest.raises(CountError, match=r"split \d of \d: row \d+ alone, of \d+ edges"):
        graph.triangles()


def arguments(graph, job):
    return job, *(graph._context.blocks[place] for place in job.triple.places)


def test_a_row_that_does_not_fit_alone_is_refused_with_figures():
    graph = dasktc.prepare(source_of(EDGES), backend="cpu", method=Method(partition="hash2d", parts=2, splits=3))
    with faulty(0, []), pytest.raises(CountError) as error:
        graph.triangle_count()
    pattern = (
        r"Triple\(index=\(\d, \d\), table=\(\d, \d\), stream=\(\d, \d\)\), split \d of 3: row \d+ alone, of \d+ "
        r"edges, beside blocks of [\d.]+ kB, does not fit the free memory \(\d+ edges\): .*; free memory, "
    )
    assert re.match(pattern, str(error.value))
    assert "\n" not in str(error.value)


class Faulty:
    """NumPy, without memory for arrays of pairs above so many bytes."""

    def __init__(self, most):
        self._most, self.asked, self.refused = most, [], 0

    def empty(self, shape, dtype=float):
        made = np.empty(shape, dtype)
        if made.ndim == 2:
            self.asked.append(made.nbytes)
            if made.nbytes > self._most:
                self.refused += 1
                raise MemoryError(f"Unable to allocate {made.nbytes} bytes")
        return made

    def __getattr__(self, name):
        return getattr(np, name)


def test_numpy_without_memory(monkeypatch, caplog):
    """The lists of the CPU's hub kernel are shorter for half of the rows."""
    graph, roomy = dasktc.prepare(kronecker(17, 8), backend="cpu", method=Method(kernel="hub", splits=1)), Faulty(10**9)
    hub_tables.forget()
    monkeypatch.setattr(hub_tables, "np", roomy)
    expected = graph.triangle_count()
    hub_tables.forget()
    monkeypatch.setattr(hub_tables, "np", short := Faulty(max(roomy.asked) // 3))
    with caplog.at_level(logging.INFO, "dasktc"):
        found = graph.triangle_count()
    assert short.refused > 0
    assert facts(found) == facts(expected)
    assert "cut in two: rows 0 to " in caplog.text
    hub_tables.forget()


# the device's allocator


@contextmanager
def room_for(size, error):
    """An allocator with so many bytes left."""
    used = [0]

    def allocate(wanted):
        if used[0] + wanted > size:
            raise error(f"out_of_memory: {wanted} beside {used[0]} of {size}")
        used[0] += wanted
        return lambda freed: used.__setitem__(0, used[0] - freed)

    with emulated_cuda.allocator(allocate):
        yield


@pytest.mark.parametrize(
    ("kernel", "partition", "error"),
    some(
        [
            ("hub", {}, MemoryError),  # RMM's
            ("trust", {}, MemoryError),
            ("search", {}, cupy_strict.OutOfMemoryError),
            ("search", {"partition": "hash2d", "parts": 2}, MemoryError),
        ],
        lambda kernel, partition, error: kernel == "hub" or error is not MemoryError,
    ),
)
def test_less_and_less_device_memory(emulated, monkeypatch, caplog, kernel, partition, error):
    """Every count is the same, some of them by halves, until even a single row fails."""
    small = {"hub": {"SMALL": 2, "NEAR": 32, "BITMAP": 32, "SHORT": 0}, "trust": {"scratch": 1}}
    for name, macros in small.items():
        entry = launch.KERNELS[name]
        monkeypatch.setitem(launch.KERNELS, name, replace(entry, macros={**entry.macros, **macros}))
    graph, used = (
        dasktc.prepare(source_of(EDGES), backend="cuda", **keywords(kernel=kernel, **partition)),
        cupy_strict.MEMORY_USED,
    )
    used.peak = before = used.now
    expected, cut, failures = graph.triangle_count(), 0, []
    most = used.peak - before
    for share in (1.0, 0.95, 0.9, 0.8, 0.5, 0.0):
        caplog.clear()
        with room_for(int(share * most), error), caplog.at_level(logging.INFO, "dasktc"):
            found, failed = attempt(graph)
        failures += [failed] if failed else []
        if not failed:
            assert facts(found) == facts(expected)
            cut += "cut in two" in caplog.text
    assert all(re.search(r"split 0 of 1: rows? .*, of \d+ edges, .*out_of_memory", failed) for failed in failures)
    assert failures
    assert cut or kernel == "trust"


def attempt(graph):
    """A count, or the reason why there is none."""
    try:
        return graph.triangle_count(), ""
    except CountError as error:
        return None, str(error)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", ["hub", "merge"])
def test_a_small_pool_on_the_device(kernel, caplog):
    import rmm

    graph = dasktc.prepare(kronecker(18), backend="cuda", method=Method(kernel=kernel))
    expected, cut = graph.triangle_count(), 0
    before = rmm.mr.get_current_device_resource()
    for mebibytes in (64, 48, 40, 32, 28, 24, 20, 16, 14, 12, 10, 8, 6, 4, 2, 1):
        caplog.clear()
        size = mebibytes << 20
        pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=size, maximum_pool_size=size)
        rmm.mr.set_current_device_resource(pool)
        try:
            with caplog.at_level(logging.INFO, "dasktc"):
                found, failed = attempt(graph)
        finally:
            rmm.mr.set_current_device_resource(before)
        if failed:
            break
        assert facts(found) == facts(expected)
        cut += "cut in two" in caplog.text
    assert cut, "no pool was too small for the task, and large enough for its halves"
    assert not failed or "does not fit the free memory" in failed
    assert int(graph.triangle_count()) == int(expected) == 82_704_862
