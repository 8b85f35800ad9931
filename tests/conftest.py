"""Configures the two tiers of the tests (see README.md in this folder), and defines the fixtures that modules share."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.support.emulation import host
from tests.support.processes import fork_workers, local_cluster, patience

FEW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("default", FEW, max_examples=15)
settings.register_profile("slow", FEW, max_examples=25)

HERE = Path(__file__).parent
collect_ignore = ["system/typing"]  # read by type checkers, and not run
os.environ["DASK_DASKTC__DISTRIBUTE"] = "always"  # small graphs are to show what many tasks do, in other processes too
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # each of a thousand processes would compile the package's modules
    sys.dont_write_bytecode = False
SELDOM = {
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.profile.enabled": False,
}
"""How often Dask's servers look at themselves: two idle workers, a scheduler and a client would take an eighth of a
core. `dasktc.cluster` sets most of this, too."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--graphs",
        default=str(HERE.parent.parent / "shared" / "graphs"),
        help="directory of real graphs with a catalog.tsv, for -m catalog",
    )
    parser.addoption("--fuzz-seconds", type=float, default=120, help="how long -m fuzz draws, in all")


def pytest_configure(config: pytest.Config) -> None:
    """Set the tier's number of examples, and have all later processes share what one has compiled for the host."""
    settings.load_profile("slow" if slow(config) else "default")
    dask.config.set({"dasktc.distribute": os.environ["DASK_DASKTC__DISTRIBUTE"], **SELDOM})
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # run by nohup: what tests hang up on is to hear it
    if host.SHARED not in os.environ and (folder := host.cache_folder()):
        os.environ[host.SHARED] = str(folder)
        config.add_cleanup(lambda: os.environ.pop(host.SHARED))


def slow(config: pytest.Config) -> bool:
    """Whether the slow tier was requested."""
    return re.search(r"(?<!not )\bslow\b", config.option.markexpr) is not None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Any:
    """Collect no garbage meanwhile: nearly all that is made lives as long as the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Any:
    """Seek no examples in the docstrings of tests, where none are."""
    return [found for found in (yield) if type(found) is pytest.Module]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run Hypothesis tests in both tiers, with few examples in one and many in the other; mark notebooks as slow."""
    for item in items:
        drawn = is_hypothesis_test(getattr(item, "obj", None))
        elsewhere = any(map(item.get_closest_marker, ("catalog", "gpu")))
        if item.path.suffix == ".ipynb" or (drawn and slow(config) and not elsewhere):
            item.add_marker("slow")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep a module's tests, which share fixtures, in one process, and let idle processes help at the end."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.option.dist == "load" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Any:
    """Extend a test's timeout by as much as the machine is busy, and give it a GPU of its own if it needs one.

    After a module's last test, garbage collection skips what is still there: what was imported meanwhile, above all.
    """
    mark = item.get_closest_marker("timeout")
    seconds = mark.args[0] if mark else float(item.config.getini("timeout"))
    item.add_marker(pytest.mark.timeout(patience(seconds)), append=False)
    with gpu_shared(item):
        done = yield
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return done


@contextmanager
def gpu_shared(item: pytest.Item) -> Iterator[None]:
    """Have tests of several processes share the GPU, except those that need all its memory: these run alone."""
    if not item.get_closest_marker("gpu"):
        yield
        return
    import fcntl

    alone = item.get_closest_marker("whole_gpu") is not None
    with open(Path(tempfile.gettempdir()) / f"dasktc-tests-gpu-{os.getuid()}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def pytest_collection_finish(session: pytest.Session) -> None:
    """Prepare workers to be forked; have garbage collection skip the objects that live as long as the tests."""
    if not session.config.option.collectonly:
        if any("cluster" in vars(item).get("fixturenames", ()) for item in session.items):
            fork_workers()
        if len(session.items) > 1000:  # which need them all
            load_kernels()
    gc.collect()
    gc.freeze()


def load_kernels() -> None:
    """Load the kernels of the CPU, each process from another one on: those that compile the same one wait in turn."""
    from dasktc.backends.cpu.jit import Kernel

    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    kernels = [kernel for kernel in Kernel.instances if kernel.__module__.startswith("dasktc.")]
    kernels.sort(key=lambda kernel: (kernel.__module__, kernel.__name__, str(kernel._ids)))
    first = len(kernels) * number // processes
    for kernel in kernels[first:] + kernels[:first]:
        kernel.load()


@pytest.fixture(scope="session")
def graphs_dir(request: pytest.FixtureRequest) -> Path:
    folder = Path(request.config.getoption("--graphs"))
    if not (folder / "catalog.tsv").is_file():
        pytest.skip(f"no catalogue of real graphs at {folder}; name one with --graphs=DIR")
    return folder


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the small real graphs in the repository."""
    return HERE / "data"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Two worker processes with nannies; after a test that killed some, the next test with a client waits for them."""
    import dask
    from distributed import LocalCluster

    from dasktc.backends import get_backend

    get_backend("cpu")
    with (
        # Dask's own cluster gives up a worker that comes and goes in 15 s.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
        ) as found,
    ):
        yield found


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """A client that is not the default one, so that tests must pass it on."""
    from distributed import Client

    with Client(cluster, set_as_default=False) as found:
        found.wait_for_workers(2, timeout=patience())
        yield found


@pytest.fixture(scope="module")
def emulated() -> Iterator[Any]:
    """The CUDA backend on strict stand-ins of CuPy, cuDF and RMM, whose kernels run on the host."""
    if host.compiler() is None:
        pytest.skip("no g++ on Linux, which runs the kernels on the host")
    from tests.support.emulation import cuda

    with cuda.backend() as found:
        yield found


@pytest.fixture
def threads() -> Iterator[Any]:
    """Two workers in this process, which start quickly and are easy to inspect."""
    with local_cluster(n_workers=2, processes=False) as found:
        yield found


@pytest.fixture
def inner(threads: Any) -> Iterator[Any]:
    """A client of these workers that is not the default one."""
    from distributed import Client

    with Client(threads, set_as_default=False) as found:
        yield found


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line here: exit code, stdout, stderr."""
    from dasktc.cli.main import main

    def call(*arguments: Any) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of a triangle and one more edge, a loop and a repeated row."""
    path = tmp_path / "graph.txt"
    path.write_text("0 1\n1 2\n2 0\n2 3\n3 3\n0 1\n")
    return path
