"""Rows of `dasktc bench gpu` for files: generated graphs written by the GPU, and read again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from dasktc.api.count import triangle_count
from dasktc.bench.report import DEVICE, EXACT, Section
from dasktc.errors import CountError
from dasktc.executors.local import LocalExecutor
from dasktc.io.generators.synthetic import kronecker
from dasktc.io.write import write_edges

__all__ = ["files"]


class _Case(NamedTuple):
    """A file of the table, with its target figures."""

    scale: int
    """Scale of the Kronecker graph."""
    suffix: str
    reach: tuple[float | None, float]
    """Target seconds of writing (including generation) and of reading, on one H200 with 16 cores."""


CASES = (_Case(24, ".parquet", (4, 0.35)), _Case(22, ".txt", (None, 0.35)))
QUICK = (_Case(6, ".parquet", (None, 1)), _Case(6, ".txt", (None, 1)))


def files(folder: str, runs: int, quick: bool, say: Callable[[str], None]) -> Section:
    """Write and read files of a few gigabytes, which the page cache then holds.

    Parameters
    ----------
    folder : str
        Folder for the files, which are removed afterwards.
    runs : int
        Number of times that each file is read after a warm-up.
    quick : bool
        Use tiny files.
    say : callable (str)
        Told what is being measured.

    Raises
    ------
    CountError
        The graph read has another number of triangles than the generated one.
    """
    columns = {"file": "", "bytes": ",", "write": ".2f", "reach, write": ".2f", "read": ".3f", "reach, read": ".2f"}
    columns |= {"to the answer": ".3f", "triangles": ","}
    limits = {**dict.fromkeys(("bytes", "write", "read", "to the answer"), DEVICE), "triangles": EXACT}
    section = Section(f"files of generated graphs, s, medians of {runs} after a warm-up", columns, limits=limits)
    with TemporaryDirectory(dir=folder) as place:
        for case in QUICK if quick else CASES:
            out, source = Path(place, f"edges{case.suffix}"), kronecker(case.scale)
            say(f"Kronecker {case.scale}, {case.suffix}")
            start = time.perf_counter()
            write_edges(source, out, LocalExecutor(), backend="auto")
            writing = time.perf_counter() - start
            nbytes = sum(file.stat().st_size for file in (out.iterdir() if out.is_dir() else [out]))
            triangles, reads, walls = int(triangle_count(source, backend="cuda")), [], []
            for _ in range(runs + 1):
                start = time.perf_counter()
                result = triangle_count(str(out), backend="cuda")
                walls.append(time.perf_counter() - start)
                reads.append(result.seconds["read"])
                if int(result) != triangles:
                    raise CountError(
                        f"{out.name} has {triangles:,} triangles, {int(result):,} were counted: reading is wrong"
                    )
            name = f"Kronecker {case.scale}, {case.suffix}"
            times = [writing, case.reach[0], median(reads[1:]), case.reach[1], median(walls[1:])]
            section.rows.append([name, nbytes, *times, triangles])
    section.notes.append(
        "write: made on the GPU, compressed and written by threads; read: from the files to edge arrays"
    )
    return section
