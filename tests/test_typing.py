"""Type checkers on the public interface: pyright as editors run it, and mypy in its strict mode."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from processes import patience

pytestmark = pytest.mark.slow  # each checker reads all of dasktc

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "tests" / "typing").glob("*.py"))
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
