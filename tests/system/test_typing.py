"""Type checkers on the public interface: pyright as editors run it, and mypy in its strict mode."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_overloads

import pytest

import dasktc
from dasktc.options import MethodName
from dasktc.registry import METHODS
from tests.support.processes import patience

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests" / "system" / "typing").glob("*.py"))
CHECKED = ["polars", "matplotlib", "dask.dataframe"]
"""Libraries whose types stand in the interface: without them, everything would be right."""


def pyright(folder):
    """Return the lines in which pyright finds an error, as (file, line)."""
    pytest.importorskip("basedpyright", reason="basedpyright, of the extra test")
    config = {"typeCheckingMode": "basic", "include": [str(file) for file in FILES], "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=patience(300))
    said = json.loads(ran.stdout)
    assert said["summary"]["filesAnalyzed"] == len(FILES), ran.stdout
    found = [item for item in said["generalDiagnostics"] if item["severity"] == "error"]
    return {(Path(item["file"]).name, item["range"]["start"]["line"] + 1): item["message"] for item in found}


def mypy(folder):
    """Return the lines in which mypy finds an error, as (file, line)."""
    pytest.importorskip("mypy", reason="mypy, of the extra test")
    config = "[mypy]\nstrict = true\nfollow_imports = silent\nignore_missing_imports = true\n"
    config += "".join(f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in ("numba", "scipy", "bokeh", "pyarrow"))
    (folder / "mypy.ini").write_text(config)
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-error-summary"]
    ran = subprocess.run(
        [*command, *map(str, FILES)],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=patience(300),
        env={**os.environ, "MYPYPATH": str(ROOT)},
    )
    assert not ran.stderr, ran.stderr
    found = [re.match(r"(.*?):(\d+): error: (.*)", line) for line in ran.stdout.splitlines()]
    return {(Path(match[1]).name, int(match[2])): match[3] for match in found if match}


@pytest.mark.slow  # each checker reads all of dasktc
@pytest.mark.parametrize("checker", [pyright, mypy], ids=["pyright", "mypy"])
def test_right_uses_pass_and_wrong_ones_are_found(checker, tmp_path):
    for name in CHECKED:
        pytest.importorskip(name, reason=f"{name}, of the extra test")
    marked = {
        (file.name, number)
        for file in FILES
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if "# wrong" in line
    }
    assert len(marked) >= 10
    assert all(name.startswith("wrong") for name, _ in marked)
    found = checker(tmp_path)
    assert set(found) == marked, {place: found.get(place, "nothing was found") for place in marked ^ set(found)}


def returns(function):
    """What a function says that it returns; of overloads, each of them but that for cuDF, which no checker can see."""
    overloads = get_overloads(inspect.unwrap(function)) or [function]
    signatures = [inspect.signature(one) for one in overloads]
    return [
        str(of.return_annotation)
        for of in signatures
        if "cudf" not in str(getattr(of.parameters.get("frame"), "annotation", "")).lower() or len(signatures) == 1
    ]


def public():
    """The public functions, and public methods and properties of public classes, by name."""
    for name in dasktc.__all__:
        value = getattr(dasktc, name)
        if not inspect.isclass(value):
            yield name, value
            continue
        ours = [base for base in value.__mro__ if base.__module__.startswith("dasktc")]
        for member, of in {member: of for base in reversed(ours) for member, of in vars(base).items()}.items():
            if isinstance(of, property):
                of = of.fget
            if not member.startswith("_") and inspect.isroutine(of):
                yield f"{name}.{member}", getattr(of, "__func__", of)


def test_no_public_answer_is_any():
    answers = {name: returns(function) for name, function in public()}
    assert len(answers) > 50
    assert len(answers["Graph.triangles"]) == 3
    unsaid = {"Any", str(inspect.Signature.empty)}
    assert {name: of for name, of in answers.items() if unsaid & set(of)} == {}


def test_names_of_methods_are_those_that_exist():
    assert set(get_args(MethodName)) == {"auto", *METHODS}
