"""Schemes and kernels of other distributions: found by entry points, also on workers; broken ones are left out."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dasktc.api.count  # whose docstring lists what is installed: before any test's plug-ins are
from dasktc import registry
from dasktc.cli.main import main
from dasktc.errors import InputError
from dasktc.options import Method
from dasktc.planning.schemes import OWN
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import HERE, needs_compiler
from tests.support.keywords import keywords
from tests.support.oracle import complete, triangles
from tests.support.slow_pipeline import random_edges

SCHEME = """
import numpy as np
from dasktc.pipeline.build_blocks import GridPartition
from dasktc.planning.grid import Axis, Layout
from dasktc.planning.schemes import Dealing, Scheme, lower_of_ranges

def ranges(executor, graph, parts, options, shape):
    axis = Axis(shape.vertices, parts, tuple(shape.vertices * part // parts for part in range(parts + 1)))
    return GridPartition.measured(executor, graph, Layout(axis, (axis,), shape))

def triples(n):
    i, j, k = np.indices((n,) * 3).reshape(3, -1)
    return np.stack([i * n + k, i * n + j, k * n + j], axis=1)

TOY = Scheme("toy", "ranges of ids", triples, Dealing(ranges, lower=lower_of_ranges), auto=5)
"""
KERNELS = """
from pathlib import Path
import numpy as np
from dasktc.backends.cpu.kernels import CpuKernel
from dasktc.backends.cuda.kernels import CudaKernel
from dasktc.backends.kernel import Rule

def count(task):
    from dasktc.backends.cpu.intersect import merge, triple
    found, wedges, _, _ = merge(triple(task))
    return found, wedges, wedges, 0

AUTO = (Rule(0, {"longest": (39, 39)}, "the longest row has {longest:,} entries"),)
TOYS = (
    CpuKernel("toy", "a walk", count, lambda lengths: lengths.b, auto=AUTO),
    CudaKernel("toy", "a search", str(Path(__file__).with_name("toy")), lambda edges, _: edges.lengths.b, auto=AUTO),
)
"""


def install(folder: Path, name: str, entry_points: str, **files: str) -> None:
    """Write a distribution into a folder: its files, and the metadata that an installer would have written."""
    for module, text in files.items():
        (folder / (f"{module[:-3]}.cu" if module.endswith("_cu") else f"{module}.py")).write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def anew(monkeypatch):
    """Have the registries look for plug-ins anew, in this test and after it."""

    def forget() -> None:
        registry._plugins.cache_clear()
        for names in (registry.SCHEMES, *registry.KERNELS.values()):
            names._filled = None
            names.broken.clear()

    forget()
    yield
    monkeypatch.undo()
    forget()


@pytest.fixture
def toys(tmp_path, monkeypatch, anew):
    """A distribution with a scheme, and a kernel for each backend, on the path of this process."""
    points = "[dasktc.schemes]\ntoy = toy_scheme:TOY\n[dasktc.kernels]\ntoy = toy_kernels:TOYS\n"
    install(tmp_path, "toys", points, toy_scheme=SCHEME, toy_kernels=KERNELS, toy_cu=(HERE / "toy.cu").read_text())
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for module in ("toy_scheme", "toy_kernels"):
        sys.modules.pop(module, None)


EDGES = random_edges(80, 700, 3)


def test_a_scheme_and_a_kernel_are_found_by_every_door(toys, capsys):
    (toys / "edges.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    asked = ("--backend", "cpu", "--kernel", "toy", "--partition", "toy", "--parts", "3", "--verify")
    assert main(["count", str(toys / "edges.txt"), *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [found[name] for name in ("kernel", "partition", "tasks")] == ["toy", "toy", 10 * found["splits"]]
    assert found["triangles"] == triangles(EDGES)
    for order in ("degree", "none"):
        how = {"partition": "toy", "parts": 4, "reorder": order}
        assert int(dasktc.triangle_count(np.array(EDGES), backend="cpu", verify=1.0, **keywords(**how))) == triangles(
            EDGES
        )
    assert main(["info", "--methods"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "toy ranges of ids." in shown
    assert "toy a walk." in shown
    assert re.search(r"n is --parts, of [\w, ]+, toy;", shown)
    assert main(["plan", str(toys / "edges.txt"), *asked[:-1]]) == 0
    assert re.search(r"^how +toy, \d+ tasks; kernel toy$", capsys.readouterr().out, re.M), "as they are, without words"
    assert main(["plan", "--vertices", "1000", "--edges", "9000", "--partition", "toy", "--parts", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["partition"] == "toy"


def test_auto_takes_a_plugin_that_says_when(toys):
    """The kernel by the longest row, the scheme before `hash2d` where the whole graph does not fit."""
    edges = np.array(complete(40))
    assert dasktc.prepare(edges, backend="cpu").plan.choice.startswith("kernel toy: the longest row has 39 entries")
    whole = dasktc.prepare(np.array(EDGES), backend="cpu", method=Method(kernel="merge")).plan
    plan = dasktc.plan(
        np.array(EDGES), backend="cpu", method=Method(kernel="merge"), memory=whole.bytes_per_task - 1
    ).plan
    assert (whole.partition, plan.partition) == ("whole", "toy")


@needs_compiler
def test_a_cuda_kernel_is_one_file_and_one_entry(toys):
    with emulated_cuda.backend():
        result = dasktc.triangle_count(
            np.array(EDGES), backend="cuda", method=Method(kernel="toy", partition="toy", parts=2), verify=1.0
        )
    assert (int(result), result.kernel, result.stats.verified) == (triangles(EDGES), "toy", len(result.tasks))


COUNT = """
import sys, numpy as np, dasktc
from distributed import Client, LocalCluster
if __name__ == "__main__":
    METHOD = dasktc.Method(kernel="toy", partition="toy", parts=2, splits=1)
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        edges = np.load(sys.argv[1])
        result = dasktc.triangle_count(edges, client, backend="cpu", method=METHOD)
        print(int(result), result.kernel, result.plan.partition, len(result.tasks))
"""


@pytest.mark.slow
def test_workers_have_them_too(toys):
    """They are other processes, which find the distribution only by the path."""
    np.save(toys / "edges.npy", np.array(EDGES))
    (toys / "count.py").write_text(COUNT)
    path = os.pathsep.join([str(toys), *filter(None, sys.path)])
    command = [sys.executable, str(toys / "count.py"), str(toys / "edges.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path})
    assert done.stdout.split() == [str(triangles(EDGES)), "toy", "toy", "4"], done.stderr


BROKEN = {
    "it cannot be imported": (
        "[dasktc.schemes]\nodd = odd:TOY\n",
        "import nothing_of_that_name",
        "ModuleNotFoundError",
    ),
    "it has another type": ("[dasktc.schemes]\nodd = odd:TOY\n", "TOY = 5", "5 is no Scheme"),
    "its kernel has another type": ("[dasktc.kernels]\nodd = odd:TOY\n", "TOY = (5, 6)", "5 is no Kernel"),
    "it ends the process": ("[dasktc.kernels]\nodd = odd:TOY\n", "import sys\nsys.exit(3)", "SystemExit: 3"),
    "its name is another": (
        "[dasktc.schemes]\nodd = odd:TOY\n",
        "from dataclasses import replace\nfrom dasktc.planning.schemes import OWN\nTOY = replace(OWN[0], name='even')",
        "its name is 'even', which the entry point should have",
    ),
    "the name is taken": (
        "[dasktc.schemes]\nwhole = odd:TOY\n",
        "from dasktc.planning.schemes import OWN\nTOY = OWN[0]",
        "the name is taken",
    ),
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_plugin_is_one_line_that_names_its_distribution(why, tmp_path, monkeypatch, anew, caplog, capsys):
    points, text, said = BROKEN[why]
    name = points.split()[1]
    install(tmp_path, "oddity", points, odd=text)
    monkeypatch.syspath_prepend(tmp_path)
    with caplog.at_level(logging.WARNING, "dasktc"):
        assert main(["info", "--methods"]) == 0
    sys.modules.pop("odd", None)
    (line,) = caplog.messages
    assert line.startswith(f"dasktc: warning: plug-in '{name}' (odd:TOY) of oddity 1.0 is left out: ")
    assert said in line
    assert "\n" not in line
    assert list(registry.SCHEMES) == [scheme.name for scheme in OWN]
    assert int(dasktc.triangle_count(np.array(complete(4)), method=Method(partition="whole"))) == 4
    if name == "odd":
        option = "kernel" if "kernels" in points else "partition"
        with pytest.raises(InputError) as refused:
            dasktc.triangle_count(np.array(complete(4)), **keywords(**{option: "odd"}))
        asked = f"{option}='odd' cannot be used: plug-in 'odd' (odd:TOY) of oddity 1.0 is left out: "
        assert str(refused.value).startswith(asked)
        assert main(["count", "edges.txt", f"--{option}", "odd"]) == 2
        assert "plug-in 'odd' (odd:TOY) of oddity 1.0 is left out: " in capsys.readouterr().err


def test_help_imports_no_compiler():
    code = "import sys; from dasktc.cli.main import main; main(['count', '--help']); main(['info', '--methods'])"
    code += "; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "cupy", "cudf", "pandas", "distributed"} & set(done.stderr.split())


def lines(names: list[tuple[str, str]]) -> str:
    return "; ".join(f"`{name}`: {line}" for name, line in names)


def test_the_readme_lists_what_the_registries_have():
    text = (Path(__file__).parents[1] / "dasktc" / "README.md").read_text()
    for names in (registry.SCHEMES.lines(), registry.kernel_lines(), registry.ORDERS.lines()):
        assert lines(names) in text


def test_the_docstring_lists_what_the_registries_have():
    told = " ".join(dasktc.Method.__doc__.split())
    listed = [names.lines() for names in (registry.SCHEMES, registry.ORDERS, registry.ASSIGNMENTS)]
    for names in (*listed, registry.kernel_lines()):
        assert "; ".join(f"{name}: {line}" for name, line in names) in told


@pytest.mark.parametrize("module", ["dasktc.api.methods", "dasktc.cli.options", "dasktc.counting.count"])
def test_what_looks_names_up_has_them_declared(module):
    """In a process that has imported nothing else: no registry names the module of its objects."""
    code = (
        f"import {module}\nfrom dasktc.registry import *\nfrom dasktc.options import Options\n"
        "print(all(map(len, (SCHEMES, ORDERS, ASSIGNMENTS, METHODS, *KERNELS.values()))), Options('plain').kernel)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True plain\n", "")
