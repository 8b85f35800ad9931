"""Writes the samples of `dasktc cluster` where a test runs them, and provides an environment for them."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

from dasktc.cli.cluster_samples import SAMPLES
from tests.support.processes import DASK, DASKTC

GRAPH = str(Path(__file__).parents[1] / "data" / "email-Eu-core.csv.gz")
TRIANGLES = "105,461"


def written(kind: str, folder: Path, *changes: tuple[str, str]) -> str:
    """Write a sample, with some of its text replaced; return its path."""
    text = SAMPLES[kind].text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / SAMPLES[kind].file
    path.write_text(text)
    return str(path)


def executable(path: Path, script: str) -> None:
    path.write_text("#!/usr/bin/env bash\n" + textwrap.dedent(script))
    path.chmod(0o755)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which `python` is this interpreter and no home directory is used, but its compiled kernels."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    python = programs / "python"
    if not python.exists():
        executable(python, f'exec {sys.executable} "$@"')
    return os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(folder),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
        "TMPDIR": str(folder),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "DASK": " ".join(DASK),
        "DASKTC": " ".join(DASKTC),
        **more,
    }
