"""Exhausted memory: one line with the bytes needed, the bytes free and what to do, wherever memory was missing."""

import gc
import re
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest

import dasktc
from dasktc import backends as backend
from dasktc.backends.out_of_memory import run
from dasktc.cli import main as cli
from dasktc.errors import DasktcError, InputError
from dasktc.executors import memory_budget as budgets
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.io.generators.synthetic import kronecker
from dasktc.options import Method
from dasktc.pipeline.planes import Plane
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation import cupy_strict
from tests.support.keywords import keywords
from tests.support.oracle import triangles
from tests.support.slow_pipeline import skewed_edges
from tests.support.tiers import some

EDGES = skewed_edges(60, 700, 7)
RMM = "std::bad_alloc: out_of_memory: CUDA error (failed to allocate 1234 bytes) at: pool.hpp:257"
ERRORS = {
    "RMM": (lambda: MemoryError(RMM), "1234 bytes"),
    "RMM's pool": (lambda: MemoryError("std::bad_alloc: out_of_memory: (failed to allocate 1.250 GiB)"), r"1\.250 GiB"),
    "RMM of once": (lambda: MemoryError("std::bad_alloc: CUDA error at: mr.hpp:62"), "what was asked for"),
    "CuPy": (lambda: cupy_strict.OutOfMemoryError("Out of memory allocating 8,192 bytes (allocated"), "8,192 bytes"),
    "CUDA": (lambda: cupy_strict.CUDARuntimeError("cudaErrorMemoryAllocation: out of memory"), "what was asked for"),
}
FREE = r"the GPU of \S+ has no room for {}, [\d.]+ GB of its [\d.]+ GB are free \(.*\): .* memory=.*backend='cpu'$"


@contextmanager
def allocations(fail_at, error):
    """Count allocations on the device; number `fail_at` and all later ones fail."""
    made = [0]

    def allocate(size):
        made[0] += 1
        if made[0] > fail_at:
            raise error()
        return cupy_strict._usual(size)

    with emulated_cuda.allocator(allocate):
        yield made


@pytest.mark.parametrize(
    ("kind", "options"),
    some(
        [*((kind, {"partition": "whole"}) for kind in ERRORS), ("RMM", {})],
        lambda kind, options: kind == "RMM" and options,
    ),
)
def test_wherever_the_device_has_no_room(emulated, kind, options):
    """At the first allocation, while the source is read, and at others, up to the last of the count.

    Only one kind of error is tried at a dozen of them, because the kinds differ only in their origin.
    """
    error, needed = ERRORS[kind]
    source = np.array(EDGES)
    with allocations(10**9, error) as made:
        assert int(dasktc.triangle_count(source, backend="cuda", **keywords(**options))) == triangles(EDGES)
    said = set()
    apart = max(1, made[0] // (12 if kind == next(iter(ERRORS)) else 2))
    for place in {0, *range(1, made[0], apart), made[0] - 1}:
        with allocations(place, error):
            found, failed = attempt(source, options)
        assert not isinstance(failed, InputError)
        if failed is None:
            assert int(found) == triangles(EDGES)  # a task in halves
        else:
            assert failed.__context__ is None  # it would hold what the calls had allocated
            said.add(str(failed))
    assert any(re.fullmatch(FREE.format(needed), text) for text in said), said
    assert all("\n" not in text and "; " in text for text in said)
    assert int(dasktc.triangle_count(source, backend="cuda")) == triangles(EDGES)


def attempt(source, options):
    try:
        return dasktc.triangle_count(source, backend="cuda", **keywords(**options)), None
    except DasktcError as failed:
        return None, failed


def test_measures_of_a_prepared_graph(emulated):
    graph = dasktc.prepare(np.array(EDGES), backend="cuda")
    with allocations(0, ERRORS["RMM"][0]):
        for measure in (graph.triangles, graph.edge_support, graph.clustering, graph.triangle_list):
            with pytest.raises(DasktcError, match=r"has no room|does not fit the free memory"):
                measure()
    assert int(graph.triangle_count()) == triangles(EDGES)


def test_a_device_without_room_for_a_pool(emulated, monkeypatch):
    from dasktc.backends.cuda import memory as cuda_memory

    def full(on_worker=False):
        raise MemoryError(RMM)

    monkeypatch.setattr(cuda_memory, "share", full)
    backend.get_backend.cache_clear()
    with pytest.raises(DasktcError, match=FREE.format("1234 bytes")):
        dasktc.triangle_count(np.array(EDGES), backend="cuda")
    monkeypatch.undo()
    assert int(dasktc.triangle_count(np.array(EDGES), backend="cuda")) == triangles(EDGES)


@contextmanager
def a_card_with(size, monkeypatch):
    """A device of which others hold the rest: the runtime reports `size` bytes free, less ours, and has no more."""
    used = [0]

    def allocate(wanted):
        if used[0] + wanted > size:
            raise MemoryError(RMM.replace("1234", str(wanted)))
        given = cupy_strict._usual(wanted)
        used[0] += wanted

        def free(freed):
            used[0] -= freed
            given(freed)

        return free

    monkeypatch.setattr(cupy_strict.runtime, "memGetInfo", lambda: (size - used[0], 10 * size))
    monkeypatch.setattr(budgets, "LEAST", 1)
    with emulated_cuda.allocator(allocate):
        yield


@pytest.mark.parametrize("how", ["count", "prepare"])
def test_a_card_with_little_room_counts_out_of_core(emulated, monkeypatch, caplog, how):
    """Free memory is the default of --memory; the plan and the log say so."""
    source = kronecker(10)
    known = int(dasktc.triangle_count(source, backend="cpu"))
    used = cupy_strict.MEMORY_USED
    gc.collect()
    used.peak = before = used.now
    dasktc.triangle_count(source, backend="cuda", method=Method(kernel="bitmap"))
    with a_card_with(int(0.8 * (used.peak - before)), monkeypatch), caplog.at_level("INFO", "dasktc"):
        if how == "count":
            found = dasktc.triangle_count(source, backend="cuda", method=Method(kernel="bitmap"))
        else:
            with dasktc.prepare(source, backend="cuda", method=Method(kernel="bitmap")) as graph:
                found = graph.triangle_count()
    assert int(found) == known
    assert re.search(
        r"; within [\d.]+ .B, the free memory of the device, because it could not hold everything at", found.plan.why
    )
    assert "out of core within" in caplog.text


def test_a_full_card_is_refused_in_one_line(emulated, monkeypatch, tmp_path):
    """Also with a budget or a checkpoint; the line says how much memory there is and what was planned."""
    for size, options in ((2000, {}), (10**5, {"memory": "17MB"}), (10**5, {"checkpoint": tmp_path})):
        with (
            a_card_with(size, monkeypatch),
            pytest.raises(DasktcError, match=r"has no room for|memory leaves") as error,
        ):
            dasktc.triangle_count(kronecker(10), backend="cuda", **keywords(kernel="bitmap", **options))
        assert "\n" not in str(error.value)


HOST = r"memory of \S+ has no room for 7\.28 TiB, [\d.]+ .B of [\d.]+ .B are free \(Unable to allocate .* give "


def large(*_):
    raise MemoryError("Unable to allocate 7.28 TiB for an array with shape (1000000000000,)")


def test_the_host(capsys, tmp_path):
    (tmp_path / "edges.txt").write_text("0 1\n")
    with mock.patch.object(Plane, "oriented", large):
        with pytest.raises(DasktcError, match=rf"{HOST}memory=\.\.\., "):
            dasktc.triangle_count(([0], [1]), backend="cpu")
        assert cli.main(["count", str(tmp_path / "edges.txt")]) == 1
    printed = capsys.readouterr().err
    assert re.fullmatch(f"dasktc: error: {HOST}--memory, .*\n", printed)


def other_error():
    raise ValueError("cuda is a word")


def test_workers_say_it_where_it_happened(client):
    tasks = DaskExecutor(client)
    with pytest.raises(DasktcError, match=HOST):
        tasks.gather([tasks.submit("read", large)])
    with pytest.raises(DasktcError, match=HOST):
        list(tasks.map_unordered("count", lambda number: large(), [(1,), (2,)]))
    with pytest.raises(DasktcError, match=HOST):
        tasks.run_on_workers(run, large)
    with pytest.raises(ValueError, match="cuda is a word"):
        tasks.gather([tasks.submit("read", other_error)])
