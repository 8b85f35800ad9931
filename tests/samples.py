"""The samples of `dasktc cluster`, written where a test runs them, and an environment for them."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

from processes import DASK, DASKTC

from dasktc.cli.cluster_templates import SAMPLES, sample

GRAPH = str(Path(__file__).parent / "data" / "email-Eu-core.csv.gz")
TRIANGLES = "105,461"


def written(kind: str, folder: Path, *changes: tuple[str, str]) -> str:
    """Write a sample, with some of its text replaced: its path."""
    text = sample(kind)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / SAMPLES[kind]
    path.write_text(text)
    return str(path)


def executable(path: Path, script: str) -> None:
    path.write_text("#!/usr/bin/env bash\n" + textwrap.dedent(script))
    path.chmod(0o755)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """One where `python` is this one and nothing is read from or left in a home."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    python = programs / "python"
    if not python.exists():
        executable(python, f'exec {sys.executable} "$@"')
    return os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "DASK": " ".join(DASK),
        "DASKTC": " ".join(DASKTC),
        **more,
    }
