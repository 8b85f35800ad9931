"""Other GPU programs that count triangles, run on the same graphs in turns with dasktc: `dasktc bench gpu --rival`.

The programs are the user's builds. An adapter says how one takes a graph and what it prints, as its own pages and
sources say and builds on an H200 showed; both are pure functions, so that they are tested without a GPU. A program of
an unknown name gets the path of a text edge list and prints the number of triangles.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import which
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from dasktc.api.count import build
from dasktc.backends.csr import on_host
from dasktc.bench.gpu_cases import Case
from dasktc.bench.report import DEVICE, Section
from dasktc.errors import DasktcError, InputError, shown
from dasktc.executors.local import LocalExecutor
from dasktc.options import Options

__all__ = ["ADAPTERS", "Adapter", "Answer", "Rival", "Rows", "generic", "read_rivals", "rivals"]

SECONDS = 600
"""That one run of a program may take."""
LOADED = {"CUDA_MODULE_LOADING": "EAGER"}
"""Kernels are loaded when a program starts, since most time their first launch."""
WALL = "wall time of the process, its reading included"
Array = Any


class Rows(NamedTuple):
    """An oriented graph: every edge once, from its row."""

    offsets: Array
    """int64, shape (vertices + 1,)."""
    columns: Array
    """int32, shape (edges,); ascending within a row."""

    @property
    def sources(self) -> Array:
        """The row of each edge, int32."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype="int32"), np.diff(self.offsets))

    def regrouped(self, both: bool) -> Rows:
        """The edges by their smaller end, or by both ends; columns ascend."""
        u, v = self.sources, self.columns
        first, second = (
            (np.concatenate([u, v]), np.concatenate([v, u])) if both else (np.minimum(u, v), np.maximum(u, v))
        )
        lengths = np.bincount(first, minlength=len(self.offsets) - 1)
        keys = np.sort(first.astype("int64") << 32 | second)
        return Rows(np.concatenate([[0], np.cumsum(lengths)]).astype("int64"), keys.astype("int32"))


class Answer(NamedTuple):
    """What a program printed: triangles, and its seconds if it prints any."""

    triangles: int
    seconds: float | None = None


@dataclass(frozen=True)
class Adapter:
    """How a public program takes a graph, and what it prints."""

    work: str
    """Title and venue of the paper, and the code's repository."""
    order: str
    """Order of the ids in its files, one of `--reorder`."""
    write: Callable[[Rows, Path], list[str]]
    """Writes a graph's files into a folder, and returns the arguments behind the program."""
    parse: Callable[[str], Answer | None]
    """Reads what it printed; None if that is something else."""
    clock: str
    """What its seconds are."""


class Rival(NamedTuple):
    """A program of the user's: its name, its words on a command line, and its adapter."""

    name: str
    words: list[str]
    adapter: Adapter


# adapters


def _write_trust(rows: Rows, folder: Path) -> list[str]:
    rows.offsets.astype("int64").tofile(folder / "begin.bin")
    rows.columns.astype("int32").tofile(folder / "adjacent.bin")
    return [f"{folder}/", "1", "1024", "1024", "1"]  # GPUs, threads of a block, blocks, vertices of a chunk


def _write_hindex(rows: Rows, folder: Path) -> list[str]:
    _write_trust(rows, folder)
    rows.sources.tofile(folder / "head.bin")
    np.stack([rows.sources, rows.columns.astype("int32")], axis=1).tofile(folder / "edge")
    return [str(folder), "1", "1024", "1024", "32", "0", "0"]  # processes, threads, blocks, buckets; warps; by index


def _write_tricore(rows: Rows, folder: Path) -> list[str]:
    arcs = rows.regrouped(both=True)
    _write_trust(arcs, folder)
    arcs.sources.tofile(folder / "head.bin")
    return [str(folder)]


def _write_lstc(rows: Rows, folder: Path) -> list[str]:
    path = folder / "graph.csr"
    sizes = len(rows.offsets) - 1, len(rows.columns), len(rows.offsets), len(rows.columns)
    _write_lines(path, np.concatenate([np.array(sizes), *rows]))
    return [str(path)]


def _write_grouptc(algorithm: str, rows: Rows, folder: Path) -> list[str]:
    once, place = rows.regrouped(both=False), folder / "graph"
    place.mkdir()
    once.offsets.astype("uint64").tofile(place / "begin.bin")
    once.sources.astype("uint32").tofile(place / "source.bin")
    once.columns.astype("uint32").tofile(place / "adjacent.bin")
    switches = "\n".join(f"{name} = {str(name == algorithm).lower()}" for name in GROUPTC)
    path = folder / "config.ini"
    path.write_text(
        f"[comm]\ndataset_file_path = {folder}/\nlog_file_path = {folder}/log/\ndatasets_1 = graph\n"
        f"preprocessing_iterations = 1\ndevice = 0\nlog_level = info\n{switches}\n\n"
        f"[{algorithm}]\niteration_count = 10\ndevice = 0\n",
        encoding="utf-8",
    )
    return [f"-config={path}"]


def _write_text(rows: Rows, folder: Path) -> list[str]:
    path = folder / "edges.txt"
    _write_lines(path, rows.sources, rows.columns)
    return [str(path)]


def _write_lines(path: Path, *columns: Array) -> None:
    """Write a line of text for each place in arrays of integers."""
    table = pa.table(list(columns), names=list(map(str, range(len(columns)))))
    csv.write_csv(table, path, csv.WriteOptions(include_header=False, delimiter=" "))


def _fields(text: str) -> Answer | None:
    """The line `graph,vertices,edges,triangles,seconds,...` of H-INDEX and TRUST."""
    for line in reversed(text.splitlines()):
        fields = [field.strip() for field in line.split(",")]
        if len(fields) >= 6 and all(re.fullmatch(r"-?\d+", field) for field in fields[1:4]):
            return Answer(int(fields[3]), float(fields[4]))
    return None


def _labelled(count: str, seconds: str, text: str) -> Answer | None:
    """The last number of triangles and its seconds, by the words before them: what is counted first starts a device."""
    counts, times = (re.findall(pattern, text) for pattern in (count, seconds))
    return Answer(int(counts[-1]), float(times[-1])) if counts and times else None


def _last_number(text: str) -> Answer | None:
    """The last whole number of a text, with or without commas between its digits."""
    numbers = re.findall(r"(?<![\w.])\d[\d,]*(?![\w.])", text)
    return Answer(int(numbers[-1].replace(",", ""))) if numbers else None


STUDY = (
    '"A Comparative Study of Intersection-Based Triangle Counting Algorithms on GPUs", IPDPS 2024, and its second '
    "version, https://github.com/Jangbao/TC-Compare-V2"
)
GROUPTC = (
    "GroupTC-BS", "GroupTC-HS", "GroupTC", "Bisson", "Fox", "Green", "H-INDEX", "Hu", "Polak", "TRUST", "TriCore",
)  # fmt: skip
"""Algorithms that a configuration of TC-Compare-V2 switches on or off."""


def _grouptc(algorithm: str) -> Adapter:
    parse = partial(_labelled, r"Triangle count (\d+)", r"avg kernel use ([\d.]+) s")
    return Adapter(STUDY, "degree", partial(_write_grouptc, algorithm), parse, "mean of 10 counts, its own clock")


ADAPTERS = {
    "TRUST": Adapter(
        '"TRUST: Triangle Counting Reloaded on GPUs", IEEE TPDS 2021, https://github.com/wzbxpy/TRUST',
        "collective-banded", _write_trust, _fields, "its own clock around the kernels",
    ),
    "H-INDEX": Adapter(
        '"H-INDEX: Hash-Indexing for Parallel Triangle Counting on GPUs", HPEC 2019, '
        "https://github.com/concept-inversion/H-INDEX_Triangle_Counting",
        "degree", _write_hindex, _fields, "its own clock around the kernels; it counts in 32 bits",
    ),
    "TriCore": Adapter(
        '"TriCore: Parallel Triangle Counting on GPUs", SC 2018, https://github.com/huyang1988/TC',
        "degree", _write_tricore, partial(_labelled, r"total count (\d+)", r"total time\s+([\d.e+-]+) seconds"),
        "its own clock of the second of two counts, copies to the device included",
    ),
    "LSTC": Adapter(
        '"LSTC: Large-Scale Triangle Counting on Single GPU", ICPE 2026, doi:10.1145/3777884.3797002, https://github.com/KishantLab/TriangleCount',
        "degree", _write_lstc, partial(_labelled, r"Triangle : (\d+)", r"total_time : ([\d.]+)"),
        "its third count, between events; build src/WithoutPartition/ShareKernelTCV62_update_v1.cu, as "
        "Final_result/WithoutPartition/Triangle_count_final.cu leaves out rows of fewer than 3 entries",
    ),
    "GroupTC": _grouptc("GroupTC-BS"),
    "GroupTC-BS": _grouptc("GroupTC-BS"),
    "GroupTC-HS": _grouptc("GroupTC-HS"),
}  # fmt: skip
"""Adapters by the name on the command line."""
generic = Adapter("", "none", _write_text, _last_number, WALL)
"""For a program of another name: the path of a text edge list goes in, a number comes out."""


# running them


def read_rivals(texts: tuple[str, ...]) -> list[Rival]:
    """Read values of `--rival`.

    Raises
    ------
    InputError
        A value is no NAME=PROGRAM, a name stands twice, or a program cannot be run.
    """
    programs: dict[str, Rival] = {}
    names = {name.casefold(): name for name in ADAPTERS}
    for text in texts:
        name, equals, program = text.partition("=")
        words = shlex.split(program)
        if not (name and equals and words):
            raise InputError(f"--rival {shown(text)} is no NAME=PROGRAM: e.g. TRUST=./trianglecounting.bin")
        if which(words[0]) is None:
            raise InputError(
                f"--rival {shown(name)}: {shown(words[0])} cannot be run: no program is there, or its file is not "
                "executable; give the path of a build"
            )
        name = names.get(name.casefold(), name)
        if name in programs:
            raise InputError(f"--rival {shown(name)} stands twice: a column has one program; leave one out")
        programs[name] = Rival(name, words, ADAPTERS.get(name, generic))
    return list(programs.values())


def rivals(cases: list[Case], programs: list[Rival], kernel: str, runs: int, say: Callable[[str], None]) -> Section:
    """Count each graph with dasktc and with each program, in turns.

    Parameters
    ----------
    cases : list of Case
    programs : list of Rival
    kernel : str
        Of dasktc's counts.
    runs : int
        Turns; medians are shown.
    say : callable (str)
        Told what is being measured.

    Returns
    -------
    Section
        A program that fails, or whose count differs, has no time, and a line below the table.
    """
    times = ("rival, ms", "dasktc, ms")
    columns = {"graph": "", "edges": ",", "triangles": ",", "rival": "", **dict.fromkeys(times, ",.2f"), "ratio": ".2f"}
    title = f"rivals in turns with kernel {kernel}, ms, medians of {runs}"
    section = Section(title, columns, limits=dict.fromkeys(times, DEVICE), keys=4)
    for case in cases:
        for rival in programs:
            say(f"{case.name}, {rival.name}")
            section.rows.append(_in_turns(case, rival, kernel, runs, section.notes))
    section.notes.append("dasktc, ms: the counting kernels, blocks ready, between events")
    for rival in programs:
        work = f"{rival.adapter.work}; " if rival.adapter.work else ""
        section.notes.append(f"{rival.name}: {work}{rival.adapter.clock}; ids in order {rival.adapter.order}")
    return section


def _in_turns(case: Case, rival: Rival, kernel: str, runs: int, notes: list[str]) -> list[Any]:
    from dasktc.backends.cuda import memory as cuda_memory

    with TemporaryDirectory(prefix="dasktc-rival-") as folder:
        arguments = rival.adapter.write(_rows(case, rival.adapter.order), Path(folder))
        graph = build(LocalExecutor(), case.source(), Options(backend="cuda", kernel=kernel))
        triangles, own_times, times = int(graph.triangle_count()), list[float](), list[float]()
        for _ in range(runs):
            own_times.append(1e3 * sum(record.count.seconds for record in graph.triangle_count()._records))
            cuda_memory.give_back(0)  # to the program
            try:
                answer = _run(rival, arguments)
            except DasktcError as error:
                notes.append(f"{case.name}, {error}")
                break
            if answer.triangles != triangles:
                notes.append(
                    f"{case.name}, {rival.name} counts {answer.triangles:,} triangles, dasktc {triangles:,}: one of "
                    "them is wrong, and its time is left out"
                )
                break
            times.append(1e3 * (answer.seconds or 0.0))
    theirs, ours = median(times) if len(times) == runs else None, median(own_times)
    ratio = theirs / ours if theirs and ours else None
    return [case.name, graph.edges, triangles, rival.name, theirs, ours, ratio]


def _rows(case: Case, order: str) -> Rows:
    graph = build(
        LocalExecutor(), case.source(), Options(backend="cuda", kernel="merge", partition="whole", reorder=order)
    )
    block = graph._context.blocks[0, 0]
    return Rows(on_host(block.offsets).astype("int64"), on_host(block.columns).astype("int32"))


def _run(rival: Rival, arguments: list[str]) -> Answer:
    """Run a program once, and read what it printed; DasktcError where it fails, in one line."""
    start = time.perf_counter()
    try:
        process = subprocess.run(
            [*rival.words, *arguments], capture_output=True, text=True, check=False, timeout=SECONDS, errors="replace",
            env=os.environ | LOADED,
        )  # fmt: skip
    except (subprocess.TimeoutExpired, OSError) as error:
        reason = f"took more than {SECONDS} s" if isinstance(error, subprocess.TimeoutExpired) else str(error)
        raise DasktcError(f"{rival.name} has no answer: {reason}") from error
    wall = time.perf_counter() - start
    answer = rival.adapter.parse(process.stdout)
    if process.returncode or answer is None:
        lines = [line.strip() for line in (process.stdout + process.stderr).splitlines() if line.strip()] or ["nothing"]
        raise DasktcError(
            f"{rival.name} has no answer: it ended with {process.returncode} and printed {shown(lines[-1])} last: is "
            f"it a build for one GPU that reads these files?"
        )
    return answer if answer.seconds is not None else answer._replace(seconds=wall)
