"""What dasktc uses of Dask beyond its documented interface: each entry holds in this version, and has a way on."""

import ast
import inspect
import pickle
import re
from pathlib import Path
from types import SimpleNamespace

import dask
import distributed
import pytest
from distributed import Client, LocalCluster

import dasktc
from dasktc.executors.dask import internals
from dasktc.executors.process import usage
from dasktc.executors.process.usage import Resources
from tests.support.processes import patience, until

TOKEN = "0123abcd"


@pytest.fixture(scope="module")
def found():
    """A cluster of one worker in this process."""
    where = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**where) as cluster:
        yield cluster


@pytest.fixture
def inner(found):
    with Client(found, set_as_default=False) as client:
        yield client


class Lacking:
    """A client, worker or scheduler of a version of Dask that has none of it."""

    def run_on_scheduler(self, function, *args):
        return function(*args, dask_scheduler=Lacking())


CALLS = []


def third_time():
    CALLS.append(None)
    if len(CALLS) < 3:
        raise ValueError("not yet")
    return 5


def test_a_task_in_error_runs_again_and_no_other(found, inner):
    """`Client.retry` fails where the client no longer holds an input that failed."""
    CALLS.clear()
    failed = inner.submit(third_time, pure=False, key=(f"read-{TOKEN}", 0))
    after = inner.submit(sum, [failed, 4], pure=False, key=(f"read-{TOKEN}", 1))
    until(lambda: after.status == "error")
    del failed
    until(lambda: len(inner.futures) == 1)
    with pytest.raises(KeyError):
        inner.retry([after])
    until(lambda: len(CALLS) == 2 and found.scheduler.tasks[after.key].state == "erred")
    internals.retry_erred(inner, [after])
    internals.retry_erred(inner, [after])  # it runs
    until(lambda: after.status == "finished")
    assert (after.result(timeout=patience()), len(CALLS)) == (9, 3)


def test_without_it_the_client_retries():
    client, retried = Lacking(), []
    client.retry = retried.append
    internals.retry_erred(client, [SimpleNamespace(key="a")])
    assert len(retried) == 1


def test_stages_tell_how_far_they_are(found, inner):
    done = inner.submit(int, "7", key=(f"read-{TOKEN}", 7))
    done.result(timeout=patience())
    groups, within = internals.look(inner, TOKEN, "no-such-metric")
    assert (groups["read"], within) == ((1, 1), {})
    assert internals.look(Lacking(), TOKEN, "no-such-metric") == ({}, {})


def test_a_preference_for_a_worker_that_is_not_there_holds_a_task_up():
    """When Dask lets such tasks go on by itself, `look` need not."""
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as late,
        Client(late, set_as_default=False) as client,
    ):
        preferred = {"workers": ["inproc://gone"], "allow_other_workers": True}
        future = client.submit(int, "7", key=(f"count-{TOKEN}", 0), **preferred)
        until(lambda: len(late.scheduler.unrunnable) == 1)
        late.scale(1)
        client.wait_for_workers(1, timeout=patience())
        assert client.submit(int, "8", pure=False).result(timeout=patience()) == 8
        assert future.status == "pending"


def test_bytes_of_blocks(found, inner):
    block = inner.submit(bytes, 10_000, key=(f"blocks-{TOKEN}", 0))
    block.result(timeout=patience())
    ((address, nbytes),) = internals.block_bytes(found.scheduler).items()
    assert address in found.scheduler.workers
    assert 10_000 <= nbytes < 11_000
    assert internals.block_bytes(Lacking()) == {}


def test_heartbeats_carry_metrics(found, inner):
    def add():
        from distributed import get_worker

        internals.add_metrics(get_worker(), {"dasktc-test": lambda worker: worker.address})
        return internals.has_metric(get_worker(), "dasktc-test")

    assert inner.submit(add, pure=False).result(timeout=patience())
    ((address, worker),) = found.scheduler.workers.items()
    until(lambda: worker.metrics.get("dasktc-test") == address)
    internals.add_metrics(lacking := Lacking(), {"dasktc-test": len})
    assert not internals.has_metric(lacking, "dasktc-test")


def test_resources_of_a_worker(found, inner):
    (used,) = inner.run(lambda dask_worker: usage.resources_of(dask_worker)).values()
    (worker,) = found.workers.values()
    assert used.limit == worker.memory_manager.memory_limit
    before = used.sent
    assert inner.submit(bytes, 10_000, pure=False).result(timeout=patience()) == bytes(10_000)
    (used,) = inner.run(lambda dask_worker: usage.resources_of(dask_worker)).values()
    assert used.sent >= before + 10_000
    assert usage.resources_of(Lacking()) == Resources(None, 0, None)


def test_futures_of_a_pickle_are_kept(found, inner):
    with Client(found, set_as_default=False) as other:
        made = inner.submit(int, "7", pure=False)
        made.result(timeout=patience())
        again = pickle.loads(pickle.dumps(made))
        again.bind_client(other)
        key = made.key
        internals.keep_futures(other)
        until(lambda: len(found.scheduler.tasks[key].who_wants) == 2)
        del made
        until(lambda: len(found.scheduler.tasks[key].who_wants) == 1)
        assert again.result(timeout=patience()) == 7
    internals.keep_futures(Lacking())


def test_pages_are_served_before_those_of_dask(found):
    bokeh = pytest.importorskip("bokeh")
    assert bokeh

    async def add(pages):
        return internals.add_pages(found.scheduler, "test", pages)

    served = list(found.scheduler.http_application.applications)
    assert found.sync(add, {"/test": lambda scheduler, extra, document: None})
    assert found.scheduler.http_application.applications[1:] == served
    assert not internals.add_pages(Lacking(), "test", {})
    assert not internals.add_pages(SimpleNamespace(http_application=SimpleNamespace(applications=[])), "test", {})
    assert "navbar" in internals.template('{% extends "simple.html" %}').render(pages=[], plots=[], prefix="/")


def test_dask_s_own_page_of_groups_fails(found, inner):
    """When it no longer does, `group_pages` can go."""
    pytest.importorskip("bokeh")
    from distributed.dashboard.components.scheduler import TaskGroupGraph

    first = inner.submit(int, "7", key=(f"canonical-{TOKEN}", 21))
    then = inner.submit(float, first, key=(f"orient-{TOKEN}", 21))
    assert then.result(timeout=patience()) == 7.0
    with pytest.raises(KeyError):
        TaskGroupGraph(found.scheduler).update_layout()
    assert set(internals.group_pages()) == {"/groups", "/individual-groups"}


def test_groups_that_need_each_other_have_places():
    """Names in any order, and a circle."""
    needs = {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"c"}}
    places = internals.places_of_groups(needs)
    assert len(set(places.values())) == 4
    assert places["a"][0] > places["b"][0] > places["c"][0]


DOCUMENTED = {"_asdict", "_exit", "_fields", "_make", "_replace"}
"""Of named tuples, and `os._exit`."""


def test_no_private_attribute_of_a_dependency_is_used_elsewhere():
    """A name with an underscore that this package does not define is another's; Numba's cache is `jit`'s alone."""
    root, own, used = Path(dasktc.__file__).parent, set(), set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                    own.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(ast.Name("self"), name, ast.Store()):
                    own.add(name)
                case ast.Attribute(attr=name) if re.match("_[^_]", name):
                    used.add((path.relative_to(root).as_posix(), name))
    private = {(module, name) for module, name in used if name not in own | DOCUMENTED}
    assert private == {
        ("backends/cpu/jit.py", "_cache"),
        ("executors/dask/internals.py", "_inform_scheduler_of_futures"),
    }


def test_the_version_is_named():
    """Where it was seen is a version that exists, and no later one than this."""
    (seen,) = {word for word in inspect.getdoc(internals).split() if word.startswith("2026.") and word.count(".") == 2}
    for package in (dask, distributed):
        assert tuple(map(int, package.__version__.split(".")[:3])) >= tuple(map(int, seen.strip(",").split(".")))
