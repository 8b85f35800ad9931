"""Documentation pages: the files that they name exist, and their examples work as printed there."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import dasktc
from dasktc.api import graph as api_graph
from dasktc.backends.cuda import kernels as cuda_kernels
from dasktc.cli.main import main
from dasktc.errors import InputError
from dasktc.io import files
from dasktc.options import Method
from dasktc.questions import measures
from dasktc.registry import KERNELS, SCHEMES
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import needs_compiler
from tests.support.keywords import keywords
from tests.support.oracle import triangles
from tests.support.slow_pipeline import random_edges

ROOT = Path(__file__).parents[2]
README_LINES = 70
"""Most lines of the README."""
PAGES = (
    "README.md",
    "dasktc/README.md",
    "dasktc/api/README.md",
    "dasktc/bench/README.md",
    "dasktc/executors/README.md",
    "dasktc/io/README.md",
    "kernels/README.md",
    "notebooks/README.md",
    "tests/README.md",
    ".github/CONTRIBUTING.md",
    ".github/CHANGELOG.md",
)
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
MOST = {"orientation": 6, "scheme": 2, "kernel": 2, "worker dies": 4, "format": 2, "several GPUs": 8}
"""Most files that each walk-through may open."""
EDGES = random_edges(80, 700, 3)


def example(name: str) -> str:
    """The code block whose first line is a comment with this name, without that line."""
    (text,) = re.findall(rf"^```\w+\n(?:#|//) {re.escape(name)}\n(.*?)^```$", CONTRIBUTING, re.DOTALL | re.MULTILINE)
    return text


def run(name: str, **names: object) -> dict[str, object]:
    exec(compile(example(name), name, "exec"), names)
    return names


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_are_there(page):
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    named = set(re.findall(r"`((?:dasktc|kernels|tests|\.github|notebooks|\.ci)/[\w./-]*)`", text))
    assert not [path for path in named if not (ROOT / path).exists()]


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_to_files(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert not [link for link in links if link and not ((ROOT / page).parent / link).exists()]


def blocks(page: str, language: str = "") -> list[str]:
    """The code blocks of a page in a language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == language]


def test_the_walks_are_short():
    walks = CONTRIBUTING.split("## Six walks")[1].split("\n**")[1:]
    assert len(walks) == len(MOST)
    for walk, (what, most) in zip(walks, MOST.items(), strict=True):
        title, *steps = walk.splitlines()
        assert what in title
        assert 0 < len([step for step in steps if re.match(r"\d\. `", step)]) <= most


def test_the_format(tmp_path, monkeypatch):
    reader = ModuleType("dasktc.io.formats.tri")
    vars(reader).update(run("dasktc/io/formats/tri.py", __name__=reader.__name__))
    monkeypatch.setitem(sys.modules, reader.__name__, reader)
    for name, entry in eval(f"{{{example('dasktc/io/files.py, in FORMATS')}}}", vars(files)).items():
        monkeypatch.setitem(files.FORMATS, name, entry)
    for name in ("a.tri", "told by its content"):
        (tmp_path / name).write_text("%% tri 4 4\n0 1\n1 2\n2 0\n2 3\n")
        assert int(dasktc.triangle_count(tmp_path / name, backend="cpu")) == 1
    for text, says in {"%% tri 4 5\n0 1\n": "says 5", "%% tri 2 1\n0 2\n": "line 2 ", "%% tri x\n": "line 1 "}.items():
        (tmp_path / "bad.tri").write_text(text)
        with pytest.raises(InputError, match=says):
            dasktc.triangle_count(tmp_path / "bad.tri", backend="cpu")


def test_the_scheme(monkeypatch):
    monkeypatch.setitem(SCHEMES, "ranges", run("ranges_scheme.py")["RANGES"])
    for order in ("degree", "none"):
        how = {"partition": "ranges", "parts": 3, "reorder": order}
        result = dasktc.triangle_count(np.array(EDGES), backend="cpu", verify=1.0, **keywords(**how))
        assert (int(result), result.stats.verified) == (
            triangles(EDGES),
            (27 - result.plan.empty_triples) * result.plan.splits,
        )


def test_the_cpu_kernel(monkeypatch):
    monkeypatch.setitem(KERNELS["cpu"], "walk", run("walk_kernel.py")["WALK"])
    result = dasktc.triangle_count(np.array(EDGES), backend="cpu", method=Method(kernel="walk"), verify=1.0)
    assert (int(result), result.kernel) == (triangles(EDGES), "walk")


@needs_compiler
def test_the_cuda_kernel(tmp_path, monkeypatch):
    (tmp_path / "bisect.cu").write_text(example("kernels/bisect.cu"))
    entry = example("dasktc/backends/cuda/kernels.py, in OWN")
    kernel = replace(eval(entry, vars(cuda_kernels)), file=str(tmp_path / "bisect"))
    monkeypatch.setitem(KERNELS["cuda"], kernel.name, kernel)
    with emulated_cuda.backend():
        result = dasktc.triangle_count(
            np.array(EDGES), backend="cuda", method=Method(kernel="bisect", partition="hash2d", parts=2), verify=1.0
        )
    assert (int(result), result.kernel, result.stats.verified) == (triangles(EDGES), "bisect", len(result.tasks))


def test_the_measure(monkeypatch):
    made = run("dasktc/questions/measures.py", **vars(measures))
    monkeypatch.setattr(measures, "mean_support", made["mean_support"], raising=False)
    method = run("dasktc/api/graph.py, in Graph", **vars(api_graph))["mean_support"]
    with dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3]), backend="cpu") as graph:
        assert method(graph).round(3).to_dict() == {0: 1.0, 1: 1.0, 2: 0.667, 3: 0.0}
        assert "{0: 1.0, 1: 1.0, 2: 0.667, 3: 0.0}" in method.__doc__


def test_the_first_page_is_short():
    assert len(README.splitlines()) <= README_LINES


def stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def test_the_first_count_prints_what_the_first_page_shows(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (command, tests), (shown, _) = blocks("README.md", "sh"), blocks("README.md")
    assert "pytest" in tests
    program, *arguments = command.split("&&")[1].split()
    assert (program, main(arguments)) == ("dasktc", 0)
    printed = capsys.readouterr().out
    without_times = re.compile(r"^seconds .*", re.MULTILINE)
    assert stripped(without_times.sub("", printed)) == stripped(without_times.sub("", shown))


def test_the_first_table_is_the_one_that_the_first_page_shows(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = re.findall(r"`(\w+,\w+)`", README)
    (tmp_path / "friends.csv").write_text("\n".join(rows) + "\n")
    exec(compile(blocks("README.md", "python")[0], "README.md", "exec"), {})
    assert stripped(capsys.readouterr().out) == stripped(blocks("README.md")[1])


def scripts() -> list[object]:
    """The blocks of all pages with a main guard, which are scripts that start processes."""
    found = [(page, block) for page in PAGES for block in blocks(page, "python") if "__main__" in block]
    return [
        pytest.param(block, id=f"{page}-{number}", marks=pytest.mark.slow if number else ())
        for number, (page, block) in enumerate(found)
    ]


@pytest.mark.parametrize("script", scripts())
def test_examples_with_workers_run_as_scripts(script, tmp_path):
    (tmp_path / "example.py").write_text(script)
    ran = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "105461" in ran.stdout
