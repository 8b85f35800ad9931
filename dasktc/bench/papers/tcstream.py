"""TC-Stream's tables 2 to 4 and figures 5 to 9: preparing, counting in memory, and blocks streamed from disk.

Huang et al., "TC-Stream", TPDS 2022, doi:10.1109/TPDS.2021.3135329. Table 4 is run by this program's own out-of-core
executor, from files that are out of the page cache; figure 8, one count on several kinds of GPU, is left to whoever has
them: `dasktc bench papers tcstream-table3` on each.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from dasktc.api.count import build
from dasktc.api.graph import Graph
from dasktc.api.opener import as_source
from dasktc.backends import lazy_backend
from dasktc.backends.csr import on_host
from dasktc.backends.host_threads import allowed_threads
from dasktc.bench.measure import columns_of
from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import Case, kronecker_case, rmat_case
from dasktc.bench.papers.lanes import lists_of
from dasktc.errors import InputError
from dasktc.executors.local import LocalExecutor
from dasktc.executors.memory_budget import within_memory
from dasktc.executors.stores.file_store import LEAST, FileStore
from dasktc.executors.stores.prefetch import Prefetcher
from dasktc.executors.stores.value_files import load
from dasktc.options import Options

__all__ = [
    "BEYOND",
    "IN_MEMORY",
    "OVERLAP",
    "PREPARED",
    "THREADS",
    "TREES",
    "beyond_memory",
    "in_memory",
    "overlap",
    "prepared",
    "threads",
    "trees",
]

PARTS = 3
"""P1 and P2: 27 sub-tasks, less those without wedges, more for heavy ones."""
TOPS = (0, 2, 4, 5, 6, 8)
"""Levels of the tree in shared memory."""
LEAST_SECONDS = 1e-9
ON_HOST = "counts of the CPU, in place of a GPU's"
"""What stands for counts where no GPU is."""


def _cases(sizes: tuple[int, int]) -> tuple[Case, Case]:
    scale, wide = sizes
    return kronecker_case(scale), rmat_case(wide)


# table 4: from disk


class Pass(NamedTuple):
    """A count whose blocks come from files: wall seconds of each step, in all, and bytes that were read."""

    load: float
    copy: float
    kernels: float
    """Reading files, copying to the device (with CUDA reading is part of it), and the kernels."""
    elapsed: float
    nbytes: int


class _TimedPrefetcher(Prefetcher):
    """The executor's own, which notes the seconds and bytes of its reads; `ahead`: whether it reads ahead."""

    def __init__(self, capacity: int, ahead: bool, notes: list[tuple[float, int]]) -> None:
        super().__init__(capacity)
        self.ahead, self._noted = ahead, notes

    def prepare(self, places: list[Any]) -> None:
        """Read ahead, or leave it to the task."""
        if self.ahead:
            super().prepare(places)

    def _begin(self, place: Any) -> Any:
        return self._reader.submit(self._timed, place)

    def _timed(self, place: Any) -> Any:
        start = time.perf_counter()
        value = load(place, copy=True)
        self._noted.append((time.perf_counter() - start, place.nbytes))
        return value


def overlap(bench: Bench) -> Figure:
    """Table 4's first line: load, copy, compute and elapsed time, of a graph that is streamed from disk."""
    figure = Figure(
        f"Load, copy and count of sub-tasks from disk, P1 = P2 = {PARTS}, wall seconds (TC-Stream, table 4 and "
        "section 4.3)",
        {
            "graph": "", "sub-tasks": "d", "MB read": ".1f", "load": ".4f", "copy": ".4f", "count": ".4f",
            "in turn": ".4f", "overlapped": ".4f", "over the longest": ".3f", "hidden": ".2f",
        },
        notes=[
            "vertical partition, kernel tcstream, all blocks in files of the out-of-core executor, which are out of "
            "the page cache before each count"
            + ("" if hasattr(os, "posix_fadvise") else ", where the system can do that"),
            "overlapped: as it counts, the next sub-task's blocks read meanwhile; "
            + ("load and copy are one step there: a block comes from its file to the device"
               if bench.cuda else "in turn: the same, but nothing is read ahead; there is no copy on the CPU"),
            "hidden: of what could be (noise reaches beyond 0 and 1)",
        ],
        proxy="" if bench.cuda else ON_HOST,
    )  # fmt: skip
    for case in _cases(bench.sizes.streamed):
        tasks, turn, passed = _measured(bench, case)
        moved = passed.copy if bench.cuda else turn.load
        total, longest = moved + turn.kernels, max(moved, turn.kernels)
        hidden = (total - passed.elapsed) / (total - longest) if total > longest else None
        steps = [None if bench.cuda else moved, moved if bench.cuda else None, turn.kernels]
        ends = [None if bench.cuda else turn.elapsed, passed.elapsed, passed.elapsed / max(longest, LEAST_SECONDS)]
        figure.rows.append([case.name, tasks, passed.nbytes / 1e6, *steps, *ends, hidden])
    names = list(figure.columns)[3:8]
    series: dict[str, Any] = {name: [row[name] for row in figure.records()] for name in names}
    figure.graphs = [str(row[0]) for row in figure.rows]
    figure.plot = Plot("bars", figure.graphs, series, "", "wall seconds", log=True)
    return figure


def _measured(bench: Bench, case: Case) -> tuple[int, Pass, Pass]:
    """Tasks, and the median counts without and with reading ahead."""
    plan = bench.prepared(case, kernel="tcstream", partition="vertical", parts=PARTS, splits=1).plan
    budget = LEAST + 3 * plan.bytes_per_task
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="dasktc-papers-"))
        anywhere = LocalExecutor(backend=lazy_backend(bench.backend))
        executor = stack.enter_context(within_memory(anywhere, budget, folder, 1 if bench.cuda else None))
        graph = build(
            executor, case.source(), Options("tcstream", "vertical", PARTS, 1, backend=bench.backend, memory=budget)
        )
        if bench.cuda:
            executor.store.make_room(budget)  # all blocks are files from now on
        else:
            executor.store.set_task_memory(budget)
        passes: dict[bool, list[Pass]] = {False: [], True: []}
        for _ in range(max(3, bench.runs)):
            for ahead, results in passes.items():
                if ahead or not bench.cuda:
                    _forget(Path(folder), written=not any(passes.values()))
                    results.append(_pass(bench, case, graph, executor, ahead))
        tasks = graph.plan.tasks
    return tasks, _median(passes[False] or passes[True]), _median(passes[True])


def _median(passes: list[Pass]) -> Pass:
    return sorted(passes, key=lambda result: result.elapsed)[len(passes) // 2]


def _pass(bench: Bench, case: Case, graph: Any, executor: Any, ahead: bool) -> Pass:
    reads: list[tuple[float, int]] = []
    if isinstance(executor.store, FileStore):
        executor.store.prefetcher = partial(_TimedPrefetcher, ahead=ahead, notes=reads)
    start = time.perf_counter()
    result = graph.triangle_count()
    elapsed = time.perf_counter() - start
    bench.check(case, "tcstream from disk", result.triangles)
    moved = getattr(executor.store, "transfers", None)
    if bench.cuda and moved is not None:
        kernels = sum(record.count.seconds for record in result._records)
        return Pass(0.0, moved.copy, kernels, elapsed, moved.nbytes)
    count = sum(record.ended - record.began for record in result._records)  # on the wall, as the rest
    return Pass(sum(seconds for seconds, _ in reads), 0.0, count, elapsed, sum(nbytes for _, nbytes in reads))


def _forget(folder: Path, written: bool) -> None:
    """Drop files from the page cache, where the system can; `written`: since the last time."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                if written:
                    os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _hidden(figure: Figure) -> Finding:
    ratios, hidden = figure.column("over the longest"), figure.column("hidden")
    if not hidden:
        return Finding("no step took time")
    text = f"{spread(ratios)} times the longest; {spread(hidden)} of what could be hidden is"
    return Finding(text, min(hidden) > 0.5, ratios)


OVERLAP = (
    Claim(
        "overlap", "load 1113, copy 1706 and computation 1918 s overlap to 2075 s, 1.08 times the longest", _hidden,
        "half or less of what could be hidden behind the longest step is, on some graph", Published(1.08, 1.08, 1.25),
    ),
)  # fmt: skip


# table 2 and figure 6: preparing


def prepared(bench: Bench) -> Figure:
    """Table 2: preprocessing time, beside the count's."""
    figure = Figure(
        "From the generator to blocks, and counting, wall seconds (TC-Stream, table 2)",
        {
            "graph": "", "vertices": ",d", "edges": ",d", "triangles": ",d", "blocks": "", "prepare": ".4f",
            "count": ".4f", "prepare/count": ".3f",
        },
        notes=["blocks: of one graph in memory, and of the vertical partition for counts beyond it; the other systems "
               "of the table are programs of their own, which are not here"],
        proxy="" if bench.cuda else ON_HOST,
    )  # fmt: skip
    for case in _cases(bench.sizes.streamed):
        for partition, parts in (("whole", None), ("vertical", PARTS)):
            graph, result = None, None
            for _ in range(2):  # the first one loads what is compiled
                graph = bench.prepared(case, kernel="tcstream", partition=partition, parts=parts)
                result = graph.triangle_count()
            assert graph is not None
            assert result is not None
            bench.check(case, f"tcstream, {partition}", result.triangles)
            preparation, count = (
                graph._context.prepared.seconds["read"] + graph._context.prepared.seconds["prepare"],
                result.seconds["count"],
            )
            sizes = [result.vertices, result.edges, result.triangles]
            figure.rows.append(
                [case.name, *sizes, partition, preparation, count, preparation / max(count, LEAST_SECONDS)]
            )
    names = [f"{row['graph']}, {row['blocks']}" for row in figure.records()]
    figure.plot = Plot("bars", names, {name: figure.column(name) for name in ("prepare", "count")}, "", "s", log=True)
    return figure


def _of_the_count(figure: Figure) -> Finding:
    ratios = [row["prepare/count"] for row in figure.records() if str(row["graph"]).startswith("Kronecker")]
    return Finding(f"{spread(ratios)} of the count's time", max(ratios) < 1, ratios)


PREPARED = (
    Claim(
        "preparing", "on Kronecker graphs preparing takes 0.32 and 0.33 of the count's time (tables 2 and 3)",
        _of_the_count, "it takes as long as the count", Published(0.32, 0.33),
    ),
)  # fmt: skip


def threads(bench: Bench) -> Figure:
    """Figure 6: preprocessing on several cores, of edges in memory."""
    cores = allowed_threads()
    figure = Figure(
        "Preparing on the host by threads, wall seconds (TC-Stream, figure 6)",
        {"graph": "", "threads": "d", "prepare": ".4f", "speed-up": ".2f", "of the threads": ".2f"},
    )
    steps = sorted({1, cores, *(1 << power for power in range(cores.bit_length()))} & set(range(1, cores + 1)))
    case, times = _cases(bench.sizes.hosted)[0], list[float]()
    edges = columns_of(case.source(), "cpu")
    _prepared_on(edges, cores)  # compiles, or loads what was compiled
    for number in steps:
        times.append(bench.timed(partial(_prepared_on, edges, number)))
        speed_up = times[0] / max(times[-1], LEAST_SECONDS)
        figure.rows.append([case.name, number, times[-1], speed_up, speed_up / number])
    speeds: dict[str, Any] = {case.name: figure.column("speed-up")}
    figure.plot = Plot("lines", [str(number) for number in steps], speeds, "threads", "speed-up")
    return figure


def _prepared_on(edges: tuple[Any, Any], number: int) -> float:
    start = time.perf_counter()
    build(LocalExecutor(threads=number), as_source(edges), Options("tcstream", "whole", backend="cpu"))
    return time.perf_counter() - start


def _efficiency(figure: Figure) -> Finding:
    last = figure.records()[-1]
    if last["threads"] == 1:
        return Finding("this process may use one core")
    rising = all(a < b for a, b in pairwise(figure.column("speed-up")))
    text = f"{last['speed-up']:.2f} times as fast on {last['threads']}, {last['of the threads']:.2f} of the threads"
    return Finding(text, rising, [last["of the threads"]])


THREADS = (
    Claim(
        "multicore", "preparing is 18 times as fast on 24 cores, 0.75 of them", _efficiency,
        "more threads are not faster", Published(0.75, 0.75, 1.5),
    ),
)  # fmt: skip


# table 3 and figure 7: in memory


def in_memory(bench: Bench) -> Figure:
    """Table 3 and figure 7: TC-Stream, bitmaps (Bisson and Fatica) and merging (Han et al.) in memory."""
    bits = "bitmap" if bench.cuda else "hub"
    figure = Figure(
        f"TC-Stream, bitmaps and merging in memory (TC-Stream, table 3 and figure 7; {bench.clock})",
        {
            "graph": "", "TC-Stream": ".5f", "by edges": ".5f", "recursion": ".5f", "Algorithm 5": ".5f",
            "bitmaps": ".5f", "merging": ".5f", "bitmaps/TC-Stream": ".2f", "merging/TC-Stream": ".2f",
        },
        notes=[
            f"bitmaps: Bisson and Fatica's method, by kernel {bits}, which has bitmaps of hubs alone; merging: that of "
            "Han et al., on a GPU here too, without SIMD instructions; OPT and GraphReduce are not here",
            "by edges: kernel tcstream by a list of edges; recursion, Algorithm 5: kernels tcstream-recursive (section "
            "4.2) and tcstream-backward"
            if bench.cuda
            else "by edges, recursion, Algorithm 5: on a GPU alone",
        ],
        proxy="the other methods by this program's kernels, " + ("on the GPU too" if bench.cuda else "on one thread"),
    )  # fmt: skip
    for case in bench.cases:
        ours = bench.count(case, "degree", "tcstream").seconds
        ways: list[Any] = [None] * 3
        if bench.cuda:
            edges = bench.count(case, "degree", "tcstream", {"vertices": 0}).seconds
            ways = [
                edges,
                *(bench.count(case, "degree", f"tcstream-{variant}").seconds for variant in ("recursive", "backward")),
            ]
        rivals = [bench.count(case, "degree", kernel).seconds for kernel in (bits, "merge")]
        ratios = [seconds / max(ours, LEAST_SECONDS) for seconds in rivals]
        figure.rows.append([case.name, ours, *ways, *rivals, *ratios])
    series: dict[str, Any] = {name: figure.column(name) for name in ("TC-Stream", "bitmaps", "merging")}
    figure.plot = Plot("bars", [str(row[0]) for row in figure.rows], series, "", bench.clock, log=True)
    return figure


def _over(figure: Figure, column: str) -> Finding:
    ratios = [row[column] for row in figure.records() if str(row["graph"]).startswith("Kronecker")]
    return Finding(f"{spread(ratios)} times as long on Kronecker graphs", min(ratios) > 1, ratios)


IN_MEMORY = (
    Claim(
        "bitmaps", "bitmaps take 5.9 and 5.6 times as long on Kronecker graphs",
        lambda f: _over(f, "bitmaps/TC-Stream"), "they take no longer there", Published(5.6, 5.9),
    ),
    Claim(
        "merging", "merging, on 24 threads of a CPU, takes 2.5 and 2.4 times as long on Kronecker graphs",
        lambda f: _over(f, "merging/TC-Stream"), "it takes no longer there", Published(2.4, 2.5),
    ),
)  # fmt: skip


# figure 5: lists in shared memory


def trees(bench: Bench) -> Figure:
    """Figure 5: the top of the longer list's tree, and the shorter list, in shared memory."""
    figure = Figure(
        f"Levels of the tree in shared memory (TC-Stream, figure 5; {bench.clock})"
        if bench.cuda
        else "Reads of global memory a lookup, by levels of the tree in shared memory (TC-Stream, figure 5)",
        {"graph": "", **{str(top): ".4f" for top in TOPS}, "short lists too": ".4f", "best over none": ".3f"},
        notes=["5 levels without short lists are the kernel's own; short lists too: up to 32 entries, at 5 levels"],
        proxy="" if bench.cuda else "steps of searches beyond the cached levels, from row lengths",
    )
    for case in bench.cases:
        values = _timed_tops(bench, case) if bench.cuda else _reads(bench, case)
        figure.rows.append([case.name, *values, min(values[1:-1]) / max(values[0], LEAST_SECONDS)])
    up = "seconds" if bench.cuda else "reads a lookup"
    series: dict[str, Any] = {str(row[0]): list(row[1 : 1 + len(TOPS)]) for row in figure.rows}
    figure.plot = Plot("lines", [str(top) for top in TOPS], series, "levels in shared memory", up, log=bench.cuda)
    return figure


def _timed_tops(bench: Bench, case: Case) -> list[float]:
    macros = [*({"TOP": top, "SHORT": 0} for top in TOPS), {"TOP": 5, "SHORT": 32}]
    return [bench.count(case, "degree", "tcstream", setting).seconds for setting in macros]


def _reads(bench: Bench, case: Case) -> list[float]:
    """Mean steps of a lookup that levels in shared memory leave; loading them is counted, short lists save none."""
    block = bench.block(case)
    row, lists = np.diff(on_host(block.offsets)), lists_of(block)
    shorter, longer = np.minimum(row[lists.row], lists.size), np.maximum(row[lists.row], lists.size)
    lookups, shorter = max(1, int(shorter.sum())), shorter[shorter > 0]
    longer = longer[np.minimum(row[lists.row], lists.size) > 0]
    steps = np.ceil(np.log2(np.maximum(longer, 1))) + 1
    values = []
    for top in TOPS:
        cached = (shorter >= 8) & (top > 0)
        reads = shorter * np.where(cached, np.maximum(steps - top, 1), steps) + np.where(cached, 2**top, 0)
        values.append(float(reads.sum()) / lookups)
    return [*values, values[TOPS.index(5)]]


def _tops_help(figure: Figure) -> Finding:
    ratios = {str(row["graph"]): row["best over none"] for row in figure.records()}
    skewed = [ratio for name, ratio in ratios.items() if name.startswith("Kronecker")]
    listed = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    return Finding(f"the best number of levels takes {listed} of none's", max(skewed) < 1)


KEPT = "the top levels, which are read most, are kept in shared memory"
TREES = (
    Claim("tree's top", KEPT, _tops_help, "no number of levels is better than none on Kronecker graphs", on="cuda"),
    Claim("tree's top", KEPT, _tops_help, on="cpu", definition=True),
)
"""A level that is cached is not read again: that the model's reads fall is so by definition."""


# figure 9: beyond the device's memory


def beyond_memory(bench: Bench) -> Figure:
    """Figure 9: within a memory budget, TC-Stream and other partitions, and merging on the CPU."""
    figure = Figure(
        "Within the memory of three sub-tasks, wall seconds (TC-Stream, figure 9)",
        {
            "graph": "", "MB": ".1f", "TC-Stream": ".4f", "hash2d, trust": ".4f", "proxy, lstc": ".4f",
            "merging on the host": ".4f", "host/TC-Stream": ".2f",
        },
        notes=[
            f"counting alone, blocks ready; merging on the host: on {allowed_threads()} threads, with all of its "
            "memory, as Han et al. do, whose program is not here, nor are OPT and GraphReduce",
            "a dash: the largest task does not fit",
        ],
    )  # fmt: skip
    for case in _cases(bench.sizes.hosted):
        plan = bench.prepared(case, kernel="tcstream", partition="vertical", parts=PARTS, splits=1).plan
        budget = LEAST + 3 * plan.bytes_per_task
        runs = [("tcstream", "vertical"), ("trust", "hash2d"), ("lstc", "proxy")]
        times = [_within(bench, case, kernel, partition, budget) for kernel, partition in runs]
        host = _on_host(bench, case)
        ratio = host / times[0] if host and times[0] and bench.cuda else None
        figure.rows.append([case.name, budget / 1e6, *times, host, ratio])
    figure.graphs = [str(row[0]) for row in figure.rows]
    names = list(figure.columns)[2:6]
    series: dict[str, Any] = {name: [row[name] for row in figure.records()] for name in names}
    figure.plot = Plot("bars", figure.graphs, series, "", "wall seconds", log=True)
    return figure


def _within(bench: Bench, case: Case, kernel: str, partition: str, budget: int) -> float | None:
    """Seconds of the count phase within a budget; None where the largest task does not fit."""
    executor = LocalExecutor(backend=lazy_backend(bench.backend))
    with TemporaryDirectory(prefix="dasktc-papers-") as folder, within_memory(executor, budget, folder) as limited:
        options = Options(kernel, partition, PARTS, 1, backend=bench.backend, memory=budget)
        try:
            graph = build(limited, case.source(), options)
        except InputError:
            return None
        return _counted(bench, case, graph, f"{kernel}, {partition}, within memory")


def _on_host(bench: Bench, case: Case) -> float:
    """Seconds of the count phase by merging, on all cores of the host."""
    graph = build(LocalExecutor(threads=allowed_threads()), case.source(), Options("merge", "whole", backend="cpu"))
    return _counted(bench, case, graph, "merging on the host")


def _counted(bench: Bench, case: Case, graph: Graph, label: str) -> float:
    """Seconds of the count phase: the less of two counts, of which the first one loads what is compiled."""
    results = [graph.triangle_count() for _ in range(2)]
    bench.check(case, label, results[-1].triangles)
    return min(result.seconds["count"] for result in results)


def _host_slower(figure: Figure) -> Finding:
    ratios = figure.column("host/TC-Stream")
    if not ratios:
        return Finding("nothing to compare")
    return Finding(f"{spread(ratios)} times as long on the host", min(ratios) > 1, ratios)


BEYOND = (
    Claim(
        "beyond memory", "counts on the CPU beyond the GPU's memory take 1.9 to 2.8 times as long, on 24 threads",
        _host_slower, "they take no longer, of some graph", Published(1.9, 2.8), on="cuda",
        proxy="Han et al.'s CPU system by this program's kernel merge on the host",
    ),
)  # fmt: skip
