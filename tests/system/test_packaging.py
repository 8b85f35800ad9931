"""The published package: dependencies, the recipe for conda-forge, and an sdist whose tests run."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.support.processes import patience

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements):
    return {re.match(r"[\w.-]+", requirement)[0]: requirement for requirement in requirements}


def test_the_recipe_has_the_requirements_of_the_project():
    recipe = yaml.safe_load((ROOT / ".github" / "conda-forge" / "recipe.yaml").read_text())
    run = {line.replace(" ", "").replace("dask-core", "dask") for line in recipe["requirements"]["run"]}
    assert run - {"python>=${{python_min}}"} == set(PROJECT["dependencies"])
    assert recipe["context"]["version"] == PROJECT["version"]
    assert PROJECT["requires-python"] == f">={recipe['context']['python_min']}"
    (point,) = recipe["build"]["python"]["entry_points"]
    assert point == f"dasktc = {PROJECT['scripts']['dasktc']}"
    bokeh = [line.replace(" ", "") for line in recipe["requirements"]["run_constraints"]]
    assert bokeh == PROJECT["optional-dependencies"]["dashboard"]


def test_the_environment_names_what_it_is_made_of():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    named = names(line for line in environment["dependencies"] if isinstance(line, str))
    assert {"dask", "dask-cuda", "distributed", "cupy", "cudf", "numpy", "pytest"} <= named.keys()
    assert "bokeh" not in names(PROJECT["dependencies"])
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= PROJECT["urls"].keys()


@pytest.mark.slow
def test_the_tests_of_the_sdist_run(tmp_path):
    pytest.importorskip("setuptools_scm", reason="setuptools-scm finds the files of an sdist")
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout, whose files git names")
    tree = tmp_path / "tree"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", str(tree)], check=True)
    archive = build("sdist", tree, tmp_path / "sdists")
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # of Python 3.11.4 on
        packed.extractall(tmp_path)
    (folder,) = tmp_path.glob("dasktc-*/")
    assert folder.name == f"dasktc-{PROJECT['version']}"
    tests = [
        f"tests/{name}.py"
        for name in ("cli/test_help", "system/test_names", "system/test_pages", "system/test_packaging")
    ]
    few = (
        "-k",
        "not with_workers and not type_checkers and not registry",
    )  # they start many processes
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *few, *tests]
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=patience(300), env=without_paths()
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    tracked = subprocess.run(["git", "ls-files"], cwd=tree, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    assert {name for name in tracked if name} <= files


SCRIPT = """\
import dasktc
from dasktc.generate import kronecker

result = dasktc.triangle_count(kronecker(8), method=dasktc.Method(partition="hash2d"))
reveal_type(result)
reveal_type(result.seconds)
with dasktc.prepare([(0, 1), (1, 2), (2, 0)]) as graph:
    reveal_type(graph)
    reveal_type(graph.triangle_count().plan)
dasktc.triangle_count(kronecker(8), verify="all")
"""
SEEN = ["TriangleCount", "dict[str, float]", "Graph", "Plan"]
"""The types in this script, in their order; its last line is wrong."""


def build(kind, tree, out):
    """Build a distribution of a tree as pip does, in another process."""
    code = f"import sys; from setuptools.build_meta import build_{kind}; build_{kind}(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(out)], cwd=tree, check=True, capture_output=True)
    (made,) = out.iterdir()
    return made


@pytest.fixture
def tree(tmp_path):
    """A copy of what setuptools reads of this checkout, so that nothing is built within it."""
    folder = tmp_path / "tree"
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("dasktc", "kernels"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.mark.slow
def test_editors_and_type_checkers_find_an_editable_install(tree, tmp_path):
    """Through a plain path: they run no import hooks. The kernels are those of the checkout."""
    pytest.importorskip("basedpyright", reason="basedpyright, of the extra test")
    wheel = build("editable", tree, tmp_path / "wheels")
    python = Path(sysconfig.get_path("scripts", vars={"base": str(tmp_path / "env")}), Path(sys.executable).name)
    venv.create(tmp_path / "env", with_pip=False)
    site = sysconfig.get_path("purelib", vars={"base": str(tmp_path / "env")})
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", str(python)]
    ran = subprocess.run(
        [*command, str(script)], cwd=tmp_path, capture_output=True, text=True, env=without_paths(), timeout=patience(99)
    )
    said = json.loads(ran.stdout)["generalDiagnostics"]
    shown = [match[1] for item in said if (match := re.match(r'Type of ".*" is "(.*)"', item["message"]))]
    assert shown == SEEN, ran.stdout
    errors = [item["message"] for item in said if item["severity"] == "error"]
    (wrong,) = errors
    assert '"verify" of type "float"' in wrong
    code = "from dasktc.backends.kernel_files import folder; print(folder())"
    environment = without_paths() | {
        "PYTHONPATH": sysconfig.get_path("purelib")
    }  # for NumPy; its .pth files are not read
    where = subprocess.run([str(python), "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert where.stdout.strip() == str(tree / "kernels"), where.stderr


def test_a_wheel_has_every_module_and_kernel(tree, tmp_path):
    wheel = build("wheel", tree, tmp_path / "wheels")
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    modules = {path.relative_to(tree).as_posix() for path in (tree / "dasktc").rglob("*.py")}
    kernels = {f"dasktc/kernels/{path.name}" for path in (tree / "kernels").glob("*.cu*")}
    assert len(kernels) > 20
    assert modules | kernels <= names
    assert {name.partition("/")[0] for name in names} == {"dasktc"}


def without_paths():
    """The environment without this checkout, so that Python finds the installed package."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
