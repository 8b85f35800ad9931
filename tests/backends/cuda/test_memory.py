"""Device memory comes from a pool during our calls, and the caller's resource is restored; emulated, and on a GPU."""

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dasktc
from dasktc.backends import get_backend
from dasktc.backends.calls import one_call
from dasktc.backends.out_of_memory import run
from dasktc.errors import InputError
from dasktc.options import Method, Options
from tests.support import oracle
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation import cupy_strict
from tests.support.emulation.host import compiler
from tests.support.processes import until
from tests.support.slow_pipeline import skewed_edges

EDGES = skewed_edges(60, 700, 7)
SOURCE = np.array(EDGES)


@pytest.fixture
def emulated(monkeypatch):
    """The backend, loaded anew, with a pool that keeps nothing between calls."""
    if compiler() is None:
        pytest.skip("no g++ on Linux, which runs the kernels on the host")
    with emulated_cuda.backend():
        from dasktc.backends.cuda import memory

        monkeypatch.setattr(memory, "_kept_bytes", lambda share=0: 0)
        yield memory


def resource():
    import rmm

    return rmm.mr.get_current_device_resource()


def allocator():
    return getattr(cupy_strict._own, "allocator", cupy_strict.ALLOCATOR[0])


def of_pool():
    """Whether this thread's arrays come from the pool that we count."""
    import rmm
    from rmm.allocators.cupy import rmm_cupy_allocator

    return isinstance(resource(), rmm.mr.StatisticsResourceAdaptor) and allocator() is rmm_cupy_allocator


def fail():
    assert of_pool()
    raise ValueError("anything")


@pytest.mark.parametrize("first", [True, False], ids=["the call that loads the backend", "a later one"])
def test_the_caller_s_resource_and_allocator_are_put_back(emulated, first):
    before = resource(), allocator()
    if not first:
        dasktc.triangle_count(SOURCE, backend="cuda")
    seen = []
    assert int(dasktc.triangle_count(SOURCE, backend="cuda", progress=lambda *_: seen.append(of_pool())))
    assert (resource(), allocator()) == before
    assert seen[-1]
    with pytest.raises(InputError, match="more than the 1 kB of one worker"):
        dasktc.triangle_count(SOURCE, backend="cuda", memory=1000, method=Method(partition="whole"))
    with pytest.raises(ValueError, match="anything"):
        run(fail)
    assert (resource(), allocator()) == before


def test_a_resource_of_the_caller_s_is_kept(emulated):
    import rmm

    own = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=256)
    rmm.mr.set_current_device_resource(own)
    seen = []
    dasktc.triangle_count(SOURCE, backend="cuda", progress=lambda *_: seen.append(resource().upstream_mr is own))
    assert seen[-1]
    assert resource() is own
    assert own.pool_size() > 256
    assert emulated.unused_bytes() == 0


def test_one_that_is_set_meanwhile_stays(emulated):
    import rmm

    other = rmm.mr.CudaMemoryResource()
    with one_call():
        run(lambda: None)
        rmm.mr.set_current_device_resource(other)
    assert resource() is other


def test_calls_of_several_threads(emulated):
    """The last call to end restores the resource; each thread has an allocator of its own."""
    before, inside, leave = resource(), threading.Event(), threading.Event()

    def call():
        with one_call():
            inside.set()
            assert leave.wait(60)
            return of_pool()

    dasktc.triangle_count(SOURCE, backend="cuda")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(call)
        assert inside.wait(60)
        assert int(dasktc.triangle_count(SOURCE, backend="cuda")) == oracle.triangles(EDGES)
        assert resource() is not before
        assert not of_pool(), "the allocator of this thread"
        leave.set()
        assert waiting.result()
    assert resource() is before


def test_what_is_not_needed_goes_back_and_what_is_held_stays(emulated):
    graph = dasktc.prepare(SOURCE, backend="cuda", method=Method(kernel="plain"))
    (pool,) = cupy_strict.POOLS.values() if len(cupy_strict.POOLS) == 1 else [list(cupy_strict.POOLS.values())[-1]]
    gc.collect()
    held = pool.used
    assert held >= sum(block.nbytes for block in graph._context.blocks.values())
    assert (emulated.unused_bytes(), pool.reserved, pool.threshold) == (0, held, 0)
    assert int(graph.triangle_count()) == oracle.triangles(EDGES)
    del graph
    gc.collect()
    with one_call():
        assert pool.threshold == emulated.EVERYTHING
    assert (pool.used, pool.reserved) == (0, 0)


def test_counts_grow_no_pool_anew(emulated, monkeypatch):
    """What exceeds a share returns at once, and the rest but for a smaller share when nothing is called any more."""
    most = {emulated.KEPT: 1 << 10, emulated.KEPT_FOR_NOW: 1 << 20}
    monkeypatch.setattr(emulated, "_kept_bytes", lambda fraction=emulated.KEPT: most[fraction])
    monkeypatch.setattr(emulated._idle, "_seconds", 0.5)
    with one_call():
        held = cupy_strict.zeros(1 << 21, dtype="uint8")
        del held
    assert 1 << 10 < emulated.unused_bytes() <= 1 << 20
    until(lambda: 0 < emulated.unused_bytes() <= 1 << 10)


def test_a_worker_gives_back_when_nothing_has_been_called_for_a_while(emulated, monkeypatch):
    monkeypatch.setattr(emulated._idle, "_seconds", 0.2)
    dasktc.triangle_count(SOURCE, backend="cuda")

    def task():
        cupy_strict.zeros(1 << 20, dtype="uint8")

    run(task)
    assert emulated.unused_bytes() >= 1 << 20, "between the calls of a count it stays"
    until(lambda: emulated.unused_bytes() == 0)
    run(task)
    assert emulated.unused_bytes() >= 1 << 20
    until(lambda: emulated.unused_bytes() == 0)


def test_ucx_gets_memory_that_can_be_mapped(emulated, monkeypatch):
    import rmm

    monkeypatch.setattr(emulated, "_sends_by_ucx", lambda: True)
    emulated._own_pool.cache_clear()
    dasktc.triangle_count(SOURCE, backend="cuda")
    gc.collect()
    assert emulated._shared.pool.resource is None, "nothing is left in it"
    held = run(cupy_strict.zeros, 1 << 20, "uint8")
    pool = emulated._shared.pool.resource.upstream_mr
    assert isinstance(pool, rmm.mr.PoolMemoryResource)
    assert isinstance(pool.upstream_mr, rmm.mr.CudaMemoryResource)
    emulated._shared.pool.keep(0)
    assert emulated._shared.pool.resource.upstream_mr is pool, "a result is in it"
    assert len(held) == 1 << 20


@pytest.fixture
def by_ucx(emulated, monkeypatch):
    monkeypatch.setattr(emulated, "_sends_by_ucx", lambda: True)
    emulated._own_pool.cache_clear()
    return emulated


def pool_of(size):
    import rmm

    return rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=size)


@pytest.mark.parametrize("of_the_caller", [False, True], ids=["plain cudaMalloc", "dask-cuda's pool"])
def test_what_is_not_sent_comes_from_the_asynchronous_pool(by_ucx, of_the_caller):
    import rmm

    if of_the_caller:
        rmm.mr.set_current_device_resource(pool_of(256))
    before, pool = resource(), by_ucx._async_pool()

    def task():
        with by_ucx.unsent():
            assert resource() is pool.resource
            held = cupy_strict.zeros(1 << 20, dtype="uint8")
            with by_ucx.Budget(1 << 20, get_backend("cuda")), pytest.raises(MemoryError):
                cupy_strict.zeros((1 << 20) + 1, dtype="uint8")
            assert resource() is pool.resource
            free = by_ucx.free_and_total()[0]
            del held
            gc.collect()
            assert by_ucx.free_and_total()[0] == free + (1 << 20), "what the pool does not use is free"
        assert pool.unused() == 0
        assert isinstance(resource().upstream_mr, rmm.mr.PoolMemoryResource)

    for _ in range(2):
        run(task)
        assert resource() is before


def test_a_pool_that_holds_much_or_is_bounded_or_in_use_is_not_left(by_ucx, monkeypatch):
    import rmm

    def taken():
        with by_ucx.unsent():
            return resource() is by_ucx._async_pool().resource

    assert run(taken)
    with one_call(), ThreadPoolExecutor(1) as pool:
        assert not pool.submit(run, taken).result()
    rmm.mr.set_current_device_resource(pool_of(cupy_strict.MEMORY))
    assert not run(taken)
    rmm.mr.set_current_device_resource(pool_of(256))
    assert run(taken)
    monkeypatch.setattr(by_ucx, "_has_maximum", lambda: True)
    assert not run(taken)


def test_calls_that_go_on_after_it_end_with_the_caller_s_resource(by_ucx):
    before, begun, leave = resource(), threading.Event(), threading.Event()

    def other():
        with one_call(), by_ucx.Budget(1 << 20, get_backend("cuda")):
            begun.set()
            assert leave.wait(60)

    def task():
        with by_ucx.unsent():
            waiting = pool.submit(other)
            assert begun.wait(60)
        return waiting

    with ThreadPoolExecutor(1) as pool:
        waiting = run(task)
        leave.set()
        waiting.result()
    assert resource() is before


def test_a_budget_holds_no_pool_that_was_given_back(emulated, monkeypatch):
    monkeypatch.setattr(emulated, "_sends_by_ucx", lambda: True)
    emulated._own_pool.cache_clear()
    with one_call():
        budget = emulated.Budget(1 << 20, get_backend("cuda"))
        with budget:
            held = cupy_strict.zeros(1 << 10, dtype="uint8")
        first = emulated._shared.pool.resource
    assert emulated._shared.pool.resource is first, "a result is in it"
    del held
    gc.collect()
    emulated._shared.give_back(0)
    assert emulated._shared.pool.resource is None
    assert budget._resource is None
    with budget, pytest.raises(MemoryError):
        cupy_strict.zeros((1 << 20) + 1, dtype="uint8")
    assert emulated._shared.pool.resource is not first
    assert budget.peak == 1 << 10


def test_a_resource_of_the_caller_s_is_not_held_after_the_call(emulated):
    import rmm

    rmm.mr.set_current_device_resource(rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=256))
    dasktc.triangle_count(SOURCE, backend="cuda")
    gc.collect()
    dasktc.triangle_count(SOURCE, backend="cuda")
    assert emulated._shared._counter == (None, None)


def test_who_talks_ucx(emulated, client):
    """Workers of the test's cluster use TCP, and are in other processes."""
    assert not emulated._sends_by_ucx()

    def address(dask_worker):
        return dask_worker.address.split(":")[0]

    assert set(client.run(address).values()) == {"tcp"}


@pytest.mark.gpu
@pytest.mark.whole_gpu
def test_the_pool_on_a_device():
    cp = pytest.importorskip("cupy")
    import rmm

    from dasktc.backends.cuda import memory
    from dasktc.io.generators.synthetic import kronecker

    dasktc.triangle_count(kronecker(12), backend="cuda")
    before, allocator_before = rmm.mr.get_current_device_resource(), cp.cuda.get_allocator()
    free, total = cp.cuda.runtime.memGetInfo()
    assert int(dasktc.triangle_count(kronecker(20), backend="cuda")) == 424_270_360
    cp.cuda.Device().synchronize()
    assert rmm.mr.get_current_device_resource() is before
    assert cp.cuda.get_allocator() == allocator_before
    until(lambda: free - cp.cuda.runtime.memGetInfo()[0] <= total / 128 + (64 << 20))
    graph = dasktc.prepare(kronecker(18), backend="cuda")
    with pytest.raises(InputError, match="more than"):
        dasktc.triangle_count(kronecker(18), backend="cuda", memory=1000, method=Method(partition="whole"))
    assert rmm.mr.get_current_device_resource() is before
    assert int(graph.triangle_count()) == 82_704_862, "what a graph holds stays valid"
    until(lambda: memory.unused_bytes() <= total / 128)


@pytest.mark.gpu
@pytest.mark.whole_gpu
def test_a_device_that_others_fill():
    """Free memory is the default of --memory: the count goes out of core by itself, and says so."""
    cp = pytest.importorskip("cupy")
    from dasktc.backends.cuda import memory
    from dasktc.io.generators.synthetic import kronecker

    dasktc.triangle_count(kronecker(12), backend="cuda")  # contexts and modules
    memory.give_back(0)  # with what earlier tests left in the pool, the graph would fit
    others = []
    while (free := cp.cuda.runtime.memGetInfo()[0]) > 910 << 20:  # until other processes have given theirs back
        others.append(cp.cuda.runtime.malloc(free - (900 << 20)))
        time.sleep(1)
    try:
        result = dasktc.triangle_count(kronecker(22), backend="cuda")
    finally:
        for other in others:
            cp.cuda.runtime.free(other)
    assert int(result) == 2_111_176_581
    assert "the free memory of the device" in result.plan.why
    assert Options(backend="cuda").memory is None
