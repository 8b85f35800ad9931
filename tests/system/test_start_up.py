"""Whether `auto` loads a GPU's libraries for a small file, and what the plan says about it."""

import os
import subprocess
import sys
import threading
import warnings
from functools import partial
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
from distributed import Client

import dasktc
from dasktc.api import opener
from dasktc.errors import ClusterError
from dasktc.executors.dask.faults import NEVER, VERSION, FaultPolicy
from dasktc.executors.place import Place
from dasktc.planning import start_up
from tests.support.keywords import keywords
from tests.support.processes import patience

TEXT = "".join(f"{u} {v}\n" for u, v in [(0, 1), (1, 2), (2, 0)])


@pytest.fixture
def a_gpu(monkeypatch):
    """The GPU's libraries are installed and not loaded; loading them is recorded."""
    for name in ("cupy", "cudf"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(start_up, "find_spec", lambda name: ModuleSpec(name, None))
    asked = []
    chosen = opener.choose_backend

    def choose(executor, options):
        asked.append(options.backend)
        return chosen(executor, options)

    monkeypatch.setattr(opener, "choose_backend", choose)
    return asked


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text(TEXT)
    return path


def test_a_small_file_stays_on_the_cpu_and_the_plan_says_so(a_gpu, file):
    result = dasktc.triangle_count(file)
    said = "; backend cpu: 12 B take about 2.0 s there and 5.0 on a GPU, whose libraries take 5 to start"
    assert (int(result), result.backend, a_gpu) == (1, "cpu", ["cpu"])
    assert result.plan.choice.endswith(said)
    assert dasktc.prepare(file).plan.choice.endswith(said)
    assert dasktc.plan(file).plan.choice.endswith(said)


def test_what_is_asked_for_is_done(a_gpu, file):
    for options in ({"backend": "cpu"}, {"backend": "auto", "kernel": "hub"}):
        assert int(dasktc.triangle_count(file, **keywords(**options))) == 1
    assert a_gpu == ["cpu"] * 2
    for options in ({"backend": "cuda"}, {"kernel": "bitmap"}):
        a_gpu.clear()
        with pytest.raises(dasktc.InputError, match=r"CuPy|no kernel bitmap"):
            dasktc.triangle_count(file, **keywords(**options))
        assert a_gpu == [options.get("backend", "auto")]


def test_what_a_gpu_counts_sooner(a_gpu, file, monkeypatch, client):
    for nbytes, sooner in ((6 * 10**7, True), (7 * 10**7, False), (None, False)):
        assert bool(start_up.sooner_on_the_cpu(nbytes)) == sooner
    monkeypatch.setitem(sys.modules, "cudf", sys)
    assert start_up.sooner_on_the_cpu(1) is None, "they are loaded"
    monkeypatch.delitem(sys.modules, "cudf")
    monkeypatch.setattr(start_up, "find_spec", lambda name: None)
    assert start_up.sooner_on_the_cpu(1) is None, "there are none"
    monkeypatch.setattr(start_up, "find_spec", lambda name: ModuleSpec(name, None))
    dasktc.triangle_count(np.array([[0, 1]]))
    dasktc.triangle_count(file, client)
    assert a_gpu == ["auto"] * 2, "neither for arrays, nor for workers, which start once"


def test_a_worker_with_another_version_is_refused(cluster):
    """Both versions and hosts are named."""

    def set_version(version):
        import dasktc

        dasktc.__version__ = version

    with Client(cluster.scheduler_address, set_as_default=False) as client:
        worker = next(iter(client.ncores()))
        client.run(set_version, "0.0.9", workers=[worker])
        try:
            told = rf"^worker {worker} has dasktc 0\.0\.9, this client on \S+ has {dasktc.__version__}: .*install"
            with pytest.raises(ClusterError, match=told):
                dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), client)
        finally:
            client.run(set_version, dasktc.__version__, workers=[worker])
        assert int(dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), client)) == 1


class Joining:
    """A client whose workers have the versions of `versions`; it records which are asked."""

    def __init__(self, **versions):
        self.versions, self.asked = versions, []

    def ncores(self):
        return dict.fromkeys(self.versions, 1)

    def run(self, function, name, *, workers, on_error):
        assert (function(name), name) == (dasktc.__version__, VERSION)
        self.asked.append(workers)
        return {worker: self.versions[worker] for worker in workers}


def test_each_worker_is_asked_for_its_version_once():
    client = Joining(one=dasktc.__version__, two=OSError("it has just died"))
    policy = FaultPolicy(client, 1, 0, "token")
    for _ in range(2):
        policy.threads(NEVER)
        FaultPolicy(client, 1, 0, "another run").threads(NEVER)
    assert client.asked == [["one", "two"]]
    client.versions["three"] = "0.0.9"
    for question in (partial(policy.lately, seconds=-1), policy.threads):
        with pytest.raises(ClusterError, match=r"^worker three has dasktc 0\.0\.9"):
            question()


@pytest.mark.parametrize(
    "line", ["import no_such_module", pytest.param("raise KeyError('no such key')", marks=pytest.mark.slow)]
)
def test_a_script_whose_import_fails_in_a_worker(tmp_path, line):
    """The error of the import is told, not limits of the system."""
    script = tmp_path / "script.py"
    script.write_text(
        f"if __name__ != '__main__':\n    {line}\nimport dasktc\n"
        "if __name__ == '__main__':\n    dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), dasktc.cluster(workers=1))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=patience())
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"dasktc.errors.InputError: 1 worker could not be started: each imports {script}, which")
    assert "no_such_module" in last if "import" in line else "KeyError: 'no such key'" in last
    assert len(last) < 500


def test_a_script_that_workers_cannot_read(tmp_path):
    """Python reads it from standard input; limits of the system are not at fault."""
    script = "import dasktc\nif __name__ == '__main__':\n    dasktc.cluster(workers=1)\n"
    done = subprocess.run(
        [sys.executable, "-"], input=script, capture_output=True, text=True, timeout=patience(), cwd=tmp_path
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("dasktc.errors.InputError: 1 worker could not be started: each imports the script, and ")
    assert "<stdin> is no file" in last


def test_threads_that_start_workers_at_once_leave_the_process_as_it_was():
    import dask

    def state():
        return dict(os.environ), dask.config.get("distributed.nanny"), list(warnings.filters)

    def run():
        counts.append(int(dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), client=Place(workers=1))))

    counts = []
    run()
    before = state()
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1, 1, 1]
    assert state() == before


def test_import_brings_no_heavy_library():
    heavy = {"cupy", "cudf", "dask_cuda", "distributed", "pandas", "numba", "scipy", "pyarrow", "psutil", "dask"}
    code = "import sys, dasktc; print(*(name for name in sys.modules if '.' not in name))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.split())


def test_a_count_without_a_client_does_not_import_distributed():
    code = "import sys, dasktc; print(int(dasktc.triangle_count(([0, 1, 2], [1, 2, 0]))), 'distributed' in sys.modules)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]
