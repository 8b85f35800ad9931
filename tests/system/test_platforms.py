"""Features of POSIX systems are not needed: modules are imported, and the CPU counts, without them."""

import subprocess
import sys
from pathlib import Path

import pytest

import dasktc

WITHOUT = """
import ctypes, importlib, os, signal, sys
import dask.dataframe, distributed, locket, numba, pandas, psutil, pyarrow.parquet, scipy.sparse  # as they are here

for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
signals = ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGALRM", "SIGUSR1", "pthread_sigmask", "SIG_BLOCK")
for module, names in {signal: signals, os: ("fork", "getuid", "O_NONBLOCK", "posix_fadvise", "killpg")}.items():
    for name in names:
        delattr(module, name)
honest = ctypes.CDLL.__init__

def library(self, name, *more, **given):
    if name is None:
        raise TypeError("argument of type 'NoneType' is not iterable")  # as on Windows
    honest(self, name, *more, **given)

ctypes.CDLL.__init__ = library
folder, *modules = sys.argv[1:]
for name in modules:
    importlib.import_module(name)
import dasktc
from dasktc.cli.main import main

outputs = {name: f"{folder}/{name}.csv" for name in ("per_vertex", "per_edge")}
run = dasktc.RunOptions(work_dir=folder)
kept = {"checkpoint": f"{folder}/kept", "memory": "1GB", "run": run, "verify": 1}
result = dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), backend="cpu", **kept, **outputs)
print(int(result))
sys.exit(main(["count", outputs["per_edge"], "--quiet", "--backend", "cpu"]))
"""


def modules():
    """All modules except those that begin by importing CuPy, and templates, which are no modules of the package."""
    root = Path(dasktc.__file__).parent
    for path in sorted(root.rglob("*.py")):
        name = ".".join(("dasktc", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
        if not name.startswith(
            ("dasktc.backends.cuda", "dasktc.executors.stores.device", "dasktc.cli.cluster_templates.")
        ):
            yield name


@pytest.mark.slow
def test_every_module_and_a_count_without_posix(tmp_path):
    command = [sys.executable, "-W", "error", "-c", WITHOUT, str(tmp_path), *modules()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n1\n", "")
