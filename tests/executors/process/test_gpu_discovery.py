"""GPU discovery, and starting workers on GPUs, with stand-ins for the tools of such a machine."""

from __future__ import annotations

import gc
import logging
import pickle
import sys
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError
from types import ModuleType, SimpleNamespace

import cloudpickle
import pytest
from distributed import Status

import dasktc
from dasktc.errors import ClusterError, InputError
from dasktc.executors import connect as cluster
from dasktc.executors.connect import connect
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.place import Place
from dasktc.executors.process import gpu_discovery as gpus
from dasktc.executors.process import ucx
from tests.support.processes import until

SMI = "NVIDIA H200, 143771, 143155, 580.95.05, 9.0\nNVIDIA L4, 23034, 2048, 580.95.05, 8.9\n"


@pytest.fixture
def machine(monkeypatch):
    """A machine whose nvidia-smi and installed packages the test chooses."""

    def build(printed, installed=()):
        def found(name):
            if name in installed:
                return "26.10.0"
            raise PackageNotFoundError(name)

        monkeypatch.setattr(gpus.shutil, "which", lambda name: "/usr/bin/nvidia-smi")
        monkeypatch.setattr(gpus.subprocess, "run", lambda *args, **kwargs: SimpleNamespace(stdout=printed))
        monkeypatch.setattr(gpus, "version", found)
        return gpus.collect()

    return build


ALL = ("cupy-cuda13x", "cudf-cu13", "rmm-cu13", "dask-cuda", "dask-cudf-cu13", "distributed-ucxx-cu13")


def test_no_driver(monkeypatch):
    monkeypatch.setattr(gpus.shutil, "which", lambda name: None)
    found = gpus.collect()
    assert (found["devices"], found["missing"]) == ([], {})
    assert found["state"].startswith("no GPU")


def test_a_driver_that_does_not_answer(machine, monkeypatch):
    machine(SMI)

    def failing(command, **kwargs):
        raise gpus.subprocess.CalledProcessError(9, command)

    monkeypatch.setattr(gpus.subprocess, "run", failing)
    assert gpus.devices() == []


def test_devices_and_packages(machine):
    found = machine(SMI, ALL)
    assert found["devices"][0] == {
        "name": "NVIDIA H200",
        "memory_bytes": 143771 << 20,
        "free_bytes": 143155 << 20,
        "driver": "580.95.05",
        "capability": "9.0",
    }
    assert (len(found["devices"]), found["missing"]) == (2, {})
    assert found["state"] == "ready for 2 GPUs, which backend auto takes"
    assert "GPU 1               NVIDIA L4, 24.2 GB, driver 580.95.05" in gpus.describe(found)


@pytest.mark.parametrize(("driver", "extra"), [("580.95.05", "cuda13"), ("99.1", "cuda12"), ("570.1", "cuda12")])
def test_what_is_missing_and_how_to_get_it(machine, driver, extra):
    found = machine(SMI.replace("580.95.05", driver), ("cupy-cuda13x", "rmm"))
    command = f"pip install 'dasktc[{extra}]'"
    assert set(found["missing"]) == {"cuDF", "dask-cuda", "dask-cuDF", "UCXX"}
    assert found["missing"]["cuDF"] == ["counting on a GPU", command]
    assert found["state"] == f"not installed, cuDF missing: {command}"
    assert f"cuDF is missing, for counting on a GPU: {command}" in gpus.describe(found)


# workers


@pytest.fixture
def dask_cuda(monkeypatch):
    """A dask-cuda that starts nothing and records its arguments; it raises `fails`, and has `workers`."""
    made = ModuleType("dask_cuda")
    made.fails, made.workers = None, {}

    def start(**options):
        made.options = options
        if made.fails:
            raise made.fails
        there = nullcontext()
        there.workers = made.workers
        there.sync = lambda function: None  # the page of a dashboard
        return there

    made.LocalCUDACluster = start
    monkeypatch.setitem(sys.modules, "dask_cuda", made)
    found = type("Found", (), {"dashboard_link": "", "submit": None, "scheduler_info": None})()
    found.ncores, found.run = lambda: {"one": 1}, lambda *_, **options: dict.fromkeys(options["workers"])
    found.scheduler = SimpleNamespace(address="tcp://127.0.0.1:8786")
    monkeypatch.setattr("distributed.Client", lambda *args, **kwargs: nullcontext(found))
    return made


@pytest.mark.parametrize(("workers", "started"), [(2, 2), ("all", None)])
@pytest.mark.parametrize("protocol", ["ucx", "tcp"])
def test_a_worker_a_gpu(dask_cuda, monkeypatch, workers, started, protocol):
    monkeypatch.setattr(ucx, "_installed", lambda: protocol == "ucx")
    monkeypatch.setattr(cluster, "log_ucx", lambda client: None)
    monkeypatch.setattr(gpus.shutil, "which", lambda name: None)
    with connect(Place(workers=workers), "cuda") as tasks:
        assert len(tasks.worker_threads) == 1
    options = dask_cuda.options
    assert (options["n_workers"], options["threads_per_worker"], options["protocol"]) == (started, 1, protocol)
    assert options["rmm_allocator_external_lib_list"] == ["cupy"]
    assert options["rmm_pool_size"] == 0.01


SHOWN = {"0": "143155", "1": "2048", "GPU-5ab1": "[N/A]", "7": "0"}
"""Free MiB, by the argument of nvidia-smi."""


@pytest.mark.parametrize(
    ("visible", "workers", "pool"),
    [
        (None, "all", (2048 - 1536 << 20) // 100),
        (None, 1, (143155 - 1536 << 20) // 100),
        ("1,0", "all", (2048 - 1536 << 20) // 100),
        ("1,0", 1, (2048 - 1536 << 20) // 100),
        ("0,1", 1, (143155 - 1536 << 20) // 100),
        ("7", 1, None),
        ("GPU-5ab1", 1, 0.01),
        ("MIG-1", "all", 0.01),
    ],
)
def test_a_pool_begins_with_little_of_what_others_leave(dask_cuda, monkeypatch, visible, workers, pool):
    """Relative to the fullest of the GPUs that are used, less a worker's own memory; if unknown, to the device's."""

    def smi(command, **kwargs):
        asked = [word.removeprefix("--id=") for word in command if word.startswith("--id=")]
        names = asked[0].split(",") if asked else ["0", "1"]
        if not set(names) <= set(SHOWN):
            raise gpus.subprocess.CalledProcessError(6, command)
        return SimpleNamespace(stdout="".join(f"NVIDIA H200, 143771, {SHOWN[name]}, 580.95, 9.0\n" for name in names))

    monkeypatch.setattr(gpus.shutil, "which", lambda name: "/usr/bin/nvidia-smi")
    monkeypatch.setattr(gpus.subprocess, "run", smi)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if pool is None:
        with pytest.raises(ClusterError, match=r"a GPU has 0 B free, a worker takes 1.61 GB"):
            connect(Place(workers=workers), "cuda").__enter__()
        return
    with connect(Place(workers=workers), "cuda"):
        pass
    assert dask_cuda.options["rmm_pool_size"] == pool
    assert "rmm_maximum_pool_size" not in dask_cuda.options


class Client:
    """A client that can be closed, of workers at given addresses."""

    def __init__(self, name, *addresses):
        self.closed, self.dashboard_link, self._addresses = [], "", addresses
        self.scheduler = SimpleNamespace(address=name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.closed.append(True)

    def ncores(self):
        return dict.fromkeys(self._addresses, 1)

    def run(self, function, *args, workers, on_error):
        return dict.fromkeys(workers, function(*args))


@pytest.mark.parametrize("how", ["with", "close", "collected"])
def test_a_cluster_for_notebooks(dask_cuda, monkeypatch, how):
    """It starts the same workers as the command line, and a client that every count uses."""
    client, given = Client("tcp://one:1"), {}
    monkeypatch.setattr("distributed.Client", lambda cluster, **options: given.update(options) or client)
    monkeypatch.setattr(gpus.shutil, "which", lambda name: None)
    started = dasktc.cluster(2, "cuda")
    assert dask_cuda.options["n_workers"] == 2
    assert given == {"set_as_default": True}
    assert started.client is client
    if how == "with":
        with started as found:
            assert found is client
            assert client.closed == []
    elif how == "close":
        started.close()
        started.close()
    else:
        del started
        gc.collect()
        until(lambda: client.closed)
    assert client.closed == [True]


@pytest.mark.parametrize(("backend", "error"), [("gpu", "backend='gpu'"), (None, "backend=None")])
def test_a_cluster_of_no_backend(backend, error):
    with pytest.raises(InputError, match=error):
        dasktc.cluster(1, backend)


WORKERS = {
    "tcp://one:1": (["tcp://node:1", "tcp://node:2", "tcp://other:1"], "2 GPU workers of node send"),
    "tcp://two:1": (["tcp://node:1", "tcp://other:1"], ""),
    "tcp://three:1": (["ucx://node:1", "ucx://node:2"], ""),
    "tcp://four:1": (["tls://[::1]:1", "tls://[::1]:2"], "2 GPU workers of ::1 send"),
}


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("scheduler", WORKERS)
def test_tcp_between_gpus_of_a_host_is_named_once(caplog, monkeypatch, scheduler, installed):
    addresses, said = WORKERS[scheduler]
    monkeypatch.setattr(ucx, "_warned", set())
    monkeypatch.setattr(ucx, "_installed", lambda: installed)
    executor = DaskExecutor(Client(scheduler, *addresses))
    monkeypatch.setattr(executor.faults, "ask", lambda function, *args, **options: function(*args, **options))
    for _ in range(2):
        ucx.warn_of_tcp(executor)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * bool(said)
    assert said in caplog.text
    assert ("install distributed-ucxx" in caplog.text) == bool(said and not installed)
    assert all("\n" not in record.message for record in caplog.records)


def test_workers_that_do_not_start_are_told_at_once(dask_cuda):
    """dask-cuda returns a cluster whose workers failed as if nothing were wrong."""
    dask_cuda.workers = {0: SimpleNamespace(status=Status.running), 1: SimpleNamespace(status=Status.failed)}
    with pytest.raises(ClusterError, match=r"^1 of 2 workers could not be started on a GPU: other programs hold"):
        connect(Place(workers=2), "cuda").__enter__()


def test_a_script_that_starts_workers_whenever_it_is_imported(dask_cuda, monkeypatch):
    """Its workers end during their start, so that dask-cuda returns a cluster of failed workers."""

    def start(**options):
        open(cluster.os.environ[cluster.IMPORTED_AGAIN], "w").close()
        return started(**options)

    started, dask_cuda.workers = dask_cuda.LocalCUDACluster, {0: SimpleNamespace(status=Status.failed)}
    dask_cuda.LocalCUDACluster = start
    with pytest.raises(InputError, match='below `if __name__ == "__main__":`'):
        connect(Place(workers=1), "cuda").__enter__()


def test_ucx_is_refused_where_it_cannot_be(monkeypatch):
    monkeypatch.setattr(ucx, "_installed", lambda: False)
    with pytest.raises(InputError, match="joins workers that have GPUs"):
        dasktc.cluster(1, "cpu", protocol="ucx")
    with pytest.raises(InputError, match="pip install distributed-ucxx-cu13"):
        dasktc.cluster(1, "cuda", protocol="ucx")
    with pytest.raises(InputError, match="protocol='infiniband'"):
        dasktc.cluster(1, "cuda", protocol="infiniband")


def test_what_ucx_says_is_logged_and_not_shown(caplog, capsys, monkeypatch):
    """A stand-in for its logger, which prints errors with a handler of its own; workers are reached by a plugin."""
    shown, registered = logging.StreamHandler(sys.stderr), []
    logger = logging.getLogger("ucx")
    monkeypatch.setattr(logger, "handlers", [shown])
    monkeypatch.setattr(logger, "propagate", False)
    client = SimpleNamespace(register_plugin=registered.append)
    for wanted in (True, False):
        monkeypatch.setenv("UCXPY_LOG_LEVEL", "ERROR") if wanted else monkeypatch.delenv("UCXPY_LOG_LEVEL")
        ucx.log_ucx(client)
        assert (logger.handlers == [shown], bool(registered)) == (wanted, not wanted)
    for _ in range(2):
        pickle.loads(cloudpickle.dumps(registered[0])).setup(None)  # as on a worker that came back
    with caplog.at_level(logging.DEBUG, "dasktc"):
        logger.error("Unexpected error in\nlistener handler coroutine")
    assert capsys.readouterr().err == ""
    assert caplog.text.count("UCX: Unexpected error in listener handler coroutine") == 1


def test_too_many_gpus(dask_cuda):
    dask_cuda.fails = ValueError("Can not scale beyond\nvisible devices")
    expected = r"no cluster of 9 GPUs could be started \(Can not scale beyond visible devices\)"
    with pytest.raises(InputError, match=expected), connect(Place(workers=9), "cuda"):
        pass


def test_no_dask_cuda(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_cuda", None)
    with (
        pytest.raises(InputError, match=r"dask-cuda cannot be imported .* install dasktc\[cuda13\]"),
        connect(Place(workers=1), "cuda"),
    ):
        pass


@pytest.mark.parametrize("workers", [0, -1, True, "many", 1.5])
@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_numbers_of_workers(workers, backend):
    with pytest.raises(InputError, match=f"workers={workers!r}"), connect(Place(workers=workers), backend):
        pass


def test_all_workers_of_the_cpu(monkeypatch):
    monkeypatch.setattr(cluster.os, "cpu_count", lambda: 3)
    assert cluster._number("all", cluster.os.cpu_count()) == 3
    assert cluster._number(2, 3) == 2


def test_auto_looks_for_gpus_only_where_it_may(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: object())
    monkeypatch.setattr(cluster, "devices", lambda: [{}])
    assert cluster._wants_gpus("auto")
    assert not cluster._wants_gpus("cpu")
    monkeypatch.setattr(cluster, "devices", list)
    assert not cluster._wants_gpus("auto")
    assert cluster._wants_gpus("cuda")
