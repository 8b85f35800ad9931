"""`dasktc bench gpu`: kernel and preparation on one GPU, graph by graph, and counting on several GPUs.

kernel   the counting kernels of all tasks, between two events, with everything on the device
prepare  wall time from a raw, unsorted edge array on the device to ready blocks, until the device has finished
small    from an array, on the device or in NumPy, to the answer, as users count: with default options
memory   bytes on the device that stay allocated after a count, for later counts

A graph is read once, warmed up once and measured `runs` times; medians are shown. Every count is compared with a known
one, or where none is known with another kernel's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from dasktc.api.count import build, triangle_count
from dasktc.api.graph import Graph
from dasktc.api.opener import as_source
from dasktc.backends import lazy_backend
from dasktc.backends.calls import one_call
from dasktc.bench.end_to_end import end_to_end
from dasktc.bench.gpu_cases import CASES, LARGE, PUBLISHED, QUICK, SMALL, Case, Small
from dasktc.bench.gpu_files import files as of_files
from dasktc.bench.gpu_scaling import numbers, several
from dasktc.bench.measure import columns_of
from dasktc.bench.report import (
    DEVICE,
    EXACT,
    SIZE,
    Report,
    Say,
    Section,
    check_folder,
    check_runs,
    command,
    quiet,
    select,
    surroundings,
)
from dasktc.bench.rivals import Rival, read_rivals, rivals
from dasktc.errors import CountError
from dasktc.executors.local import LocalExecutor
from dasktc.executors.offers import memory_of
from dasktc.executors.process import gpu_discovery as gpus
from dasktc.options import Method, Options
from dasktc.registry import KERNELS

__all__ = ["facts", "run"]

ARRAY_EDGES, ARRAY_REACH = 200_000, 2.5
"""Edges of a NumPy array that is counted, and the target time in milliseconds."""
LEFT = 3
"""Graphs after which memory is measured."""
PEAK_BYTES = 25
"""Most bytes per edge that preparation may take, including its two 32-bit ids."""


class Raw(NamedTuple):
    """Raw edges of a graph on the device."""

    source: Any
    target: Any

    @property
    def nbytes(self) -> int:
        """Bytes of both columns."""
        return int(self.source.nbytes + self.target.nbytes)


class Timed(NamedTuple):
    """Results of a graph: kernel, median milliseconds, counts, and peak bytes per edge of both steps."""

    by: str
    kernel: float
    prepare: float
    edges: int
    triangles: int
    peak: float
    counting: float


def run(
    graphs: str | None = None,
    runs: int = 5,
    quick: bool = False,
    kernel: str = "auto",
    only: tuple[str, ...] = (),
    workers: str | None = None,
    profile: str | None = None,
    files: str | None = None,
    rival: tuple[str, ...] = (),
    say: Say = quiet,
) -> Report:
    """Run the benchmark.

    Parameters
    ----------
    graphs : str, optional
        Folder of facebook_combined.txt.gz and amazon0601-edges.csv.gz.
    runs : int
        Number of measurements after a warm-up; medians are shown.
    quick : bool
        Tiny graphs, measured once, to see whether everything works.
    kernel : str
        A kernel of the CUDA backend, or "auto"; real graphs are counted with the kernel that `auto` takes.
    only : tuple of str
        Names of the graphs to measure, in upper or lower case.
    workers : str, optional
        Also count on clusters with these numbers of GPUs: comma-separated, or "all".
    profile : str, optional
        With `workers`, the file (.html) for Dask's performance report of the largest cluster.
    files : str, optional
        Folder in which graphs are also written to files, and read again.
    rival : tuple of str
        Other programs, each NAME=PROGRAM, that count the same graphs in turns with dasktc.
    say : callable (str), optional
        Told what is being measured.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        An option is invalid, or there is no usable GPU.
    CountError
        A count is wrong.
    """
    from dasktc.backends import get_backend

    check_runs(runs)
    check_folder("graphs", graphs)
    check_folder("files", files)
    programs = read_rivals(rival)
    cases = {case.name: case for case in (QUICK if quick else CASES + LARGE)}
    selection = list(select(cases, only).values()) if only else list(QUICK if quick else CASES)
    times, folder = 1 if quick else runs, None if graphs is None else Path(graphs)
    clusters = list[Section]()
    if workers is not None:  # first, because a process that uses a GPU itself leaves a worker little memory
        clusters = _on_clusters(selection, kernel, times, workers, folder, profile, say)
    get_backend("cuda")
    comparison = [rivals(selection, programs, kernel, times, say)] if programs else []
    tables = [
        partial(_table, selection, kernel, times, say, programs, comparison),
        partial(_small, folder, times, 2_000 if quick else ARRAY_EDGES, say),
        partial(_left, selection[:LEFT], say),
    ]
    if files is not None:
        tables.append(partial(of_files, files, times, quick, say))
    sections = list[Section]()
    for table in tables:
        sections.append(table())
        say(sections[-1])
    for section in comparison:
        say(section)
    sections += comparison + clusters
    size = {"quick": True} if quick else {"runs": runs}
    options = {"kernel": kernel, "only": only, "graphs": graphs, "workers": workers, "files": files, "rival": rival}
    return Report(command("gpu", **size, **options), facts(), sections)


def _on_clusters(
    cases: list[Case], kernel: str, runs: int, workers: str, folder: Path | None, profile: str | None, say: Say
) -> list[Section]:
    """Count on clusters with each number of GPUs: from the source to the number, and with blocks ready."""
    small = [] if folder is None else _small_cases(folder)
    kernels = [*((case, kernel) for case in cases), *((case, "auto") for case in small)]
    counting = several(kernels, runs, numbers(workers), say)
    say(counting)
    whole = end_to_end([*cases, *small], runs, numbers(workers), "cuda", say, profile)
    say(whole)
    return [whole, counting]


def facts() -> dict[str, str]:
    """The machine, its GPUs and the installed packages."""
    info = gpus.collect()
    devices = ", ".join(f"{device['name']} (driver {device['driver']})" for device in info["devices"])
    packages = ", ".join(f"{name} {number}" for name, number in info["packages"].items() if number)
    known = surroundings(GPUs=devices or "nvidia-smi shows none")
    return known | {"versions": f"{known['versions']}, {packages}"}


# one GPU


COLUMNS = {
    "graph": "", "edges": ",", "triangles": ",", "by": "", "kernel": ",.2f", "prepare": ",.1f", "bytes": ".1f",
    "bytes, count": ".1f", "reach, kernel": ",.1f", "reach, prepare": ",.0f", "checked": "", "published": ",.1f",
}  # fmt: skip
LIMITS = {
    **dict.fromkeys(("edges", "triangles", "by"), EXACT),
    **dict.fromkeys(("kernel", "prepare", "bytes", "bytes, count"), DEVICE),
}
NOTES = [
    "kernel: the counting kernels; prepare: from a raw edge array on the device to ready blocks",
    "bytes: peak of preparation on the device, a raw edge, the raw array included",
    "bytes, count: the most that blocks and scratch hold while counting, an edge",
    f"published: {PUBLISHED}",
]


def _table(
    cases: list[Case],
    kernel: str,
    runs: int,
    say: Say,
    programs: Sequence[Rival] = (),
    comparison: Sequence[Section] = (),
) -> Section:
    rows = [row for section in comparison for row in section.to_dict()["rows"]]
    times_of_rivals = {(row["graph"], f"{row['rival']}, ms"): row["rival, ms"] for row in rows}
    of_rivals = [f"{rival.name}, ms" for rival in programs]
    columns, limits = COLUMNS | dict.fromkeys(of_rivals, ",.2f"), LIMITS | dict.fromkeys(of_rivals, DEVICE)
    section = Section(f"one GPU, kernel {kernel}, ms, medians of {runs} after a warm-up", columns, limits=limits)
    bounds = dict[tuple[str, str], list[str]]()
    for case in cases:
        say(case.name)
        if not _fits(case):
            section.notes.append(f"{case.name} does not fit: {case.rows:,} raw edges take {PEAK_BYTES} bytes each")
            continue
        with one_call():  # the pool keeps its size, as it does within one count
            times, checked = _timed(case, kernel, runs)
        reach = case.reach or (None, None)
        cells: list[Any] = [case.name, times.edges, times.triangles, times.by, times.kernel, times.prepare, times.peak]
        cells += [times.counting, *reach, checked, case.published]
        section.rows.append([*cells, *(times_of_rivals.get((case.name, name)) for name in of_rivals)])
        if case.bound and case.reach and (times.kernel > case.reach[0] or times.prepare > case.reach[1]):
            bounds.setdefault((KERNELS["cuda"][times.by].file, case.bound), []).append(case.name)
    section.notes += NOTES
    for (file, bound), names in bounds.items():
        section.notes.append(
            f"above reach: {', '.join(names)}. What bounds them on one H200: {bound}. What was tried: the headers of "
            f"kernels/{file}.cu and, for preparation, kernels/edges.cu and sort.cu"
        )
    return section


def _fits(case: Case) -> bool:
    return PEAK_BYTES * case.rows < memory_of(LocalExecutor(backend=lazy_backend("cuda")))


def _timed(case: Case, kernel: str, runs: int) -> tuple[Timed, str]:
    from dasktc.backends.cuda import memory as cuda_memory

    raw, memory = Raw(*columns_of(case.source(), "cuda")), memory_of(LocalExecutor(backend=lazy_backend("cuda")))
    options = Options(backend="cuda", kernel=kernel, memory=memory)
    with cuda_memory.peak() as peak:
        graph = _prepared(raw, options)[0]
    with cuda_memory.peak() as scratch:
        triangles = int(graph.triangle_count())
    counting = (scratch[0] + sum(block.nbytes for block in graph._context.blocks.values())) / max(1, graph.edges)
    checked = _check(case, graph)
    edges, kernels, prepares = graph.edges, [], []
    for _ in range(runs):
        del graph
        graph, seconds = _prepared(raw, options)
        result = graph.triangle_count()
        if int(result) != triangles:
            raise CountError(f"{case.name} has {int(result):,} triangles, then {triangles:,}: the kernel is wrong")
        prepares.append(1e3 * seconds)
        kernels.append(1e3 * sum(record.count.seconds for record in result._records))
    bytes_an_edge = (peak[0] + raw.nbytes) / max(1, case.rows)
    kernel_name = result.kernel
    return Timed(kernel_name, median(kernels), median(prepares), edges, triangles, bytes_an_edge, counting), checked


def _prepared(raw: Raw, options: Options) -> tuple[Graph, float]:
    """Prepare blocks from raw edges; return the graph and the seconds."""
    from dasktc.backends.cuda import backend as cuda

    cuda.synchronize()
    start = time.perf_counter()
    graph = build(LocalExecutor(), as_source(tuple(raw)), options)
    cuda.synchronize()
    return graph, time.perf_counter() - start


def _check(case: Case, graph: Graph) -> str:
    """Compare a count with the known one, or with another kernel's; say with which."""
    if case.triangles is None:
        graph.triangle_count(verify=1.0)
        return "with another kernel"
    triangles = int(graph.triangle_count())
    if triangles != case.triangles:
        raise CountError(
            f"{case.name} has {case.triangles:,} triangles, {triangles:,} were counted: the kernel is wrong"
        )
    return "known"


# small graphs


def _small_cases(folder: Path, graphs: Mapping[str, Small] = SMALL) -> list[Case]:
    """The small graphs whose files exist."""
    files = {name: (folder / file, triangles) for name, (file, triangles, _) in graphs.items()}
    return [
        Case(name, partial(as_source, str(path)), 0, triangles)
        for name, (path, triangles) in files.items()
        if path.is_file()
    ]


def _small(folder: Path | None, runs: int, edges: int, say: Say, graphs: Mapping[str, Small] = SMALL) -> Section:
    """Time counts of small graphs as users make them, with default options."""
    columns = {
        "graph": "",
        "triangles": ",",
        "auto takes": "",
        "to the answer": ",.2f",
        "kernel": ",.2f",
        "reach": ",.0f",
    }
    limits = {**dict.fromkeys(("triangles", "auto takes"), EXACT), "to the answer": DEVICE, "kernel": DEVICE}
    section = Section(f"from an array to the answer, ms, medians of {runs} after a warm-up", columns, limits=limits)
    for name, (file, triangles, reach) in graphs.items():
        path = (folder or Path()) / file
        if folder is None or not path.is_file():
            section.notes.append(f"{name}: {file} is not in --graphs {folder or 'DIR'}")
            continue
        say(name)
        with one_call():
            raw = Raw(*columns_of(as_source(str(path)), "cuda"))
        section.rows.append([name, triangles, *_answered(name, tuple(raw), triangles, runs), reach])
    name = f"{edges:,} random edges in NumPy"
    say(name)
    array = np.random.default_rng(1).integers(0, edges // 10, (edges, 2))
    triangles = int(triangle_count(array, backend="cuda", method=Method(partition="whole")))
    section.rows.append([name, triangles, *_answered(name, array, triangles, runs), ARRAY_REACH])
    section.notes.append("in device memory where nothing else is said; kernel: bitmatrix's on the host's clock")
    return section


def _answered(name: str, source: Any, triangles: int, runs: int) -> tuple[str, float, float]:
    """Results of a small graph: kernel, median milliseconds to the answer, and those of the kernel."""
    walls, kernels = [], []
    for _ in range(runs + 1):
        start = time.perf_counter()
        result = triangle_count(source, backend="cuda")
        walls.append(1e3 * (time.perf_counter() - start))
        kernels.append(1e3 * sum(record.count.seconds for record in result._records))
        if int(result) != triangles:
            raise CountError(f"{name} has {triangles:,} triangles, {int(result):,} were counted")
    return result.kernel, median(walls[1:]), median(kernels[1:])


# memory that stays allocated


def _left(cases: list[Case], say: Say) -> Section:
    """Device bytes that stay allocated after a count, relative to those before the first one."""
    from dasktc.backends.cuda import backend as cuda
    from dasktc.backends.cuda import memory as cuda_memory

    sizes, times = ("peak", "taken afterwards", "of it by the pool"), ("ms, first", "ms, again")
    columns = {"graph": "", **dict.fromkeys(sizes, SIZE), **dict.fromkeys(times, ",.1f")}
    limits = dict.fromkeys((*sizes, *times), DEVICE)
    section = Section("memory of the device, from the generator to the number", columns, limits=limits)
    triangle_count(cases[0].source(), backend="cuda")  # contexts and modules
    for case in cases:
        say(case.name)
        cuda_memory.give_back(0)
        free, walls, peaks = cuda_memory.free_and_total()[0], list[float](), list[int]()
        for _ in range(2):
            start = time.perf_counter()
            with cuda_memory.peak() as peak:
                triangle_count(case.source(), backend="cuda")
            walls.append(1e3 * (time.perf_counter() - start))
            peaks.append(peak[0])
        cuda.synchronize()
        remainder = max(0, free - cuda_memory.free_and_total()[0]) + cuda_memory.unused_bytes()
        section.rows.append([case.name, max(peaks), remainder, cuda_memory.unused_bytes(), *walls])
    section.notes.append("first: the pool is empty and grows; again: with what it has kept since")
    return section
