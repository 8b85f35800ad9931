"""The published package: dependencies, the recipe for conda-forge, and an sdist whose tests run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml
from processes import patience

ROOT = Path(__file__).parent.parent
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
    build = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=tree, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # of Python 3.11.4 on
        packed.extractall(tmp_path)
    (folder,) = tmp_path.glob("dasktc-*/")
    assert folder.name == f"dasktc-{PROJECT['version']}"
    tests = ["tests/test_cli.py", "tests/test_names.py", "tests/test_pages.py", "tests/test_packaging.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=patience(300), env=without_paths()
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    tracked = subprocess.run(["git", "ls-files"], cwd=tree, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    assert {name for name in tracked if name} <= files


def without_paths():
    """The environment without this checkout, so that Python finds the installed package."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
