"""Tables of `dasktc bench cpu`: ratios are taken within a run or a turn, and medians over these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from dasktc.bench.kernels import HAND, Counter
from dasktc.bench.pipeline import ClusterRun, ProcessRun
from dasktc.bench.report import CPU, EXACT, Section
from dasktc.bench.turns import Turn
from dasktc.bench.ways import HALVES, Way
from dasktc.errors import CountError

__all__ = ["Measured", "sections"]

REORDER = ("orient", "reorder", "plan", "blocks")
COUNT = ("count", "sum")
MB = 1_000_000


@dataclass
class Measured:
    """Measurements of `dasktc bench cpu`; each list except `turns` has one entry per run."""

    scale: int
    runs: int
    vertices: int = 0
    edges: int = 0
    """Size of the Kronecker graph after clean-up."""
    counts: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Triangles by graph, and who counted them first."""
    counted: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """CPU seconds of the count on the prepared graph, by counter."""
    processes: dict[str, list[ProcessRun]] = field(default_factory=lambda: defaultdict(list))
    """By source, "generated" or "Parquet"."""
    clusters: dict[tuple[str, int], list[ClusterRun]] = field(default_factory=lambda: defaultdict(list))
    """By source and number of workers."""
    turns: list[Turn] = field(default_factory=list)
    """Counts on one worker and on two, of all runs."""
    ways: dict[str, list[Way]] = field(default_factory=lambda: defaultdict(list))
    """Counts from files to the number, by way of running them, of all runs."""
    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Paths of the compressed and of the plain file, by graph."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Why a file was not measured."""
    read: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    """CPU seconds from file to count, by graph and by what was read (".gz", "plain") or "igraph"."""

    def check(self, graph: str, who: str, triangles: int) -> None:
        """Refuse a number of triangles that differs from the first one counted for that graph."""
        count, first = self.counts.setdefault(graph, (triangles, who))
        if triangles != count:
            raise CountError(
                f"{who} counts {triangles:,} triangles of {graph}, {first} {count:,}: one of them is wrong; "
                "there is nothing to compare"
            )


def sections(results: Measured, counters: Iterable[Counter]) -> list[Section]:
    """Make all tables of the report."""
    return [
        _stages(results),
        _kernels(results, list(counters)),
        _workers(results),
        _ways(results),
        _files(results),
        _memory(results),
        _stage_memory(results),
        _overhead(results),
    ]


def _ratio(seconds: list[float], bases: list[float]) -> float:
    """Median, over runs or turns, of the ratio of two figures of the same run or turn."""
    return median(_over(a, b) for a, b in zip(seconds, bases, strict=True))


def _over(seconds: float, base: float) -> float:
    return seconds / base if base else float("nan")


def _graph(results: Measured) -> str:
    return f"Kronecker scale {results.scale}, edge factor 16: {results.vertices:,} vertices, {results.edges:,} edges"


def _phases(run: ProcessRun) -> dict[str, float]:
    reorder, count = (sum(run.seconds.get(stage, 0.0) for stage in stages) for stages in (REORDER, COUNT))
    return {
        "read (generate)": run.seconds["read"],
        "vertices, canonical": run.seconds["canonical"],
        "reorder (orient to blocks)": reorder,
        "count": count,
        "reorder + count": reorder + count,
        "whole": sum(run.seconds.values()),
    }


def _stages(results: Measured) -> Section:
    table = Section(
        f"One thread, our stages, kernel hub ({_graph(results)})",
        {"stage": "", "CPU s": ".3f", "ns an edge": ".1f", "over marker": ".2f"},
        notes=["marker: the count alone of a kernel written by hand, on the graph that is already reordered"],
        limits={"CPU s": CPU},
    )
    phases = [_phases(run) for run in results.processes["generated"]]
    for name in phases[0]:
        seconds = [phase[name] for phase in phases]
        ratio = _ratio(seconds, results.counted[HAND.name])
        table.rows.append([name, median(seconds), median(seconds) / results.edges * 1e9, ratio])
    return table


def _kernels(results: Measured, counters: list[Counter]) -> Section:
    ours = [_phases(run)["reorder + count"] for run in results.processes["generated"]]
    table = Section(
        f"One thread, the count ({_graph(results)}; {results.counts['kronecker'][0]:,} triangles by every counter)",
        {
            "counter": "",
            "CPU s": ".3f",
            "over marker": ".2f",
            "over dasktc reorder + count": ".2f",
            "call": "",
        },
        limits={"CPU s": CPU},
    )
    rows = {"dasktc reorder + count": ours} | results.counted
    calls = {counter.name: counter.call for counter in counters}
    for name, seconds in rows.items():
        ratios = _ratio(seconds, results.counted[HAND.name]), _ratio(seconds, ours)
        table.rows.append([name, median(seconds), *ratios, calls.get(name, "orient to count, kernel hub")])
    table.notes += [f"{counter.name}: {counter.missing}" for counter in counters if counter.missing]
    return table


def _workers(results: Measured) -> Section:
    table = Section(
        f"Two workers against one ({_graph(results)})",
        {
            "phase": "",
            "one, CPU s": ".3f",
            "busier of two": ".3f",
            "other of two": ".3f",
            "ratio of medians": ".3f",
            "median of ratios": ".3f",
            "turns": "d",
        },
        notes=[
            "CPU s: medians; ratio: busier of two / one; target: at most 1 / 1.8 = 0.556 in the count phase",
            "count: both clusters are up and count the same prepared graph in turns, each time without tables at first",
            "whole run: on a cluster of its own each, one after the other, a turn a run",
        ],
        limits={"one, CPU s": CPU, "busier of two": CPU},
    )
    one, two = (results.clusters["generated", workers] for workers in (1, 2))
    for phase, single, pairs in (
        ("count", [turn.one for turn in results.turns], [turn.two for turn in results.turns]),
        ("whole run", [sum(run.whole) for run in one], [run.whole for run in two]),
    ):
        busier, rest = [max(pair) for pair in pairs], [sum(pair) - max(pair) for pair in pairs]
        ratios = _over(median(busier), median(single)), _ratio(busier, single)
        table.rows.append([phase, median(single), median(busier), median(rest), *ratios, len(pairs)])
    return table


def _ways(results: Measured) -> Section:
    table = Section(
        f"Threads and workers, from Parquet files to the number ({_graph(results)})",
        {
            "run by": "",
            "wall s": ".2f",
            "CPU s": ".2f",
            "wall over one thread": ".2f",
            "CPU over one thread": ".2f",
            "turns": "d",
        },
        notes=[
            "seconds: medians; ratios: medians over turns; all clusters are up; CPU s: of the process and its workers",
            "targets: two threads 0.6 and 1.1, one worker 1.1 and two 0.6 of the wall time",
            f"{HALVES}: half of the seconds in which two processes, of one thread each, count the whole graph at the "
            "same time: what the machine gives two processes that need nothing from each other",
        ],
        limits={"wall s": CPU, "CPU s": CPU},
    )
    single = results.ways["one thread"]
    for name, ways in results.ways.items():
        seconds = [[way.wall for way in ways], [way.cpu for way in ways]]
        ratios = [_ratio(seconds[0], [way.wall for way in single]), _ratio(seconds[1], [way.cpu for way in single])]
        table.rows.append([name, *map(median, seconds), *ratios, len(ways)])
    return table


def _files(results: Measured) -> Section:
    table = Section(
        "From file to count, CPU seconds (dasktc: start-up and compilation left out)",
        {
            "file": "",
            "triangles": ",d",
            "dasktc .gz": ".2f",
            "dasktc plain": ".2f",
            "igraph plain": ".2f",
            "igraph / dasktc .gz": ".1f",
            "igraph / dasktc plain": ".1f",
        },
        notes=[f"{name}: skipped, {reason}" for name, reason in results.skipped.items()],
        limits={"triangles": EXACT, "dasktc .gz": CPU, "dasktc plain": CPU, "igraph plain": CPU},
    )
    for name in results.files:
        packed, plain, rival = (results.read.get((name, form)) for form in (".gz", "plain", "igraph"))
        assert packed
        assert plain
        ratios = [_ratio(rival, packed), _ratio(rival, plain)] if rival else [None, None]
        seconds = [median(packed), median(plain), median(rival) if rival else None]
        table.rows.append([name, results.counts[name][0], *seconds, *ratios])
    return table


def _memory(results: Measured) -> Section:
    table = Section(
        f"Peak memory, all workers together ({_graph(results)})",
        {
            "source": "",
            "run by": "",
            "peak MB": ",.0f",
            "bytes an edge": ".1f",
            "without interpreters": ".1f",
        },
        notes=[
            "resident memory; interpreters: all imported, nothing read; the client's process is not counted",
            "target: below 64 bytes an edge, everything included",
        ],
        limits={"bytes an edge": CPU, "without interpreters": CPU},
        keys=2,
    )
    for source, runs in results.processes.items():
        peaks, bases = [max(r.peaks.values()) for r in runs], [r.baseline for r in runs]
        table.rows.append([source, "one process", *_per_edge(peaks, bases, results.edges)])
    for (source, workers), cluster_runs in results.clusters.items():
        peaks, bases = [sum(r.peaks) for r in cluster_runs], [sum(r.baselines) for r in cluster_runs]
        table.rows.append(
            [
                source,
                f"{workers} worker process{'es' if workers > 1 else ''}",
                *_per_edge(peaks, bases, results.edges),
            ]
        )
    return table


def _per_edge(peaks: list[int], baselines: list[int], edges: int) -> list[float]:
    data = median(peak - base for peak, base in zip(peaks, baselines, strict=True))
    return [median(peaks) / MB, median(peaks) / edges, data / edges]


def _stage_memory(results: Measured) -> Section:
    sources = list(results.processes)
    table = Section(
        "Peak memory by stage, one process, bytes an edge without the interpreter",
        {"stage": "", **{source: ".1f" for source in sources}},
        limits=dict.fromkeys(sources, CPU),
    )
    for stage in results.processes[sources[0]][0].peaks:
        data = [median(r.peaks[stage] - r.baseline for r in results.processes[source]) for source in sources]
        table.rows.append([stage, *(value / results.edges for value in data)])
    return table


def _overhead(results: Measured) -> Section:
    runs = {
        workers: cluster_runs for (source, workers), cluster_runs in results.clusters.items() if source == "generated"
    }
    tasks = next(iter(runs.values()))[0].tasks
    table = Section(
        f"Dask's share: {tasks:,} counting tasks of a graph of 16 vertices",
        {"worker processes": "d", "ms a task (wall)": ".2f"},
        limits={"ms a task (wall)": CPU},
    )
    table.rows = [
        [workers, 1000 * median(r.task_seconds for r in cluster_runs)] for workers, cluster_runs in runs.items()
    ]
    return table
