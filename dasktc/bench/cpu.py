"""`dasktc bench cpu`: measures the cost of counting on CPUs, and that of other tools in the same run.

Figures are CPU seconds and ratios within one run. Every measurement has a process of its own, and measurements are
interleaved, so that a busy machine slows all of them alike. One worker and two alternate count by count, on clusters
that are both up; so do one thread, all threads and workers, from files to the number, also in wall seconds. All counts
are compared: a tool with another number of triangles ends the benchmark.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from dasktc.bench.kernels import HAND, OURS, Counter, Inputs, prepare_inputs
from dasktc.bench.measure import in_fresh_process
from dasktc.bench.others import igraph_file, other_tools
from dasktc.bench.pipeline import in_cluster, in_process, write_kronecker
from dasktc.bench.report import Report, Say, check_folder, check_runs, command, quiet, surroundings
from dasktc.bench.tables import Measured, sections
from dasktc.bench.turns import in_turns
from dasktc.bench.ways import in_ways

__all__ = ["run"]

QUICK_SCALE = 14
TURNS, QUICK_TURNS = 15, 3
"""Turns of one worker and two, in all runs together."""
WHOLE = 3
"""Turns of one worker and two for each turn of threads and workers from files to the number."""
FILES = {
    "amazon0601": ("amazon0601-edges.csv.gz", 3_986_507, False),
    "cnr-2000": ("cnr-2000.arcs.tsv.gz", 20_977_629, False),
    "ego-Twitter": ("twitter_combined-edges.csv.gz", 13_082_506, True),
}
"""File, triangles, and whether ids are so sparse that igraph must read them as names."""


def run(
    scale: int = 20,
    graphs: str | None = None,
    runs: int = 3,
    quick: bool = False,
    gapbs: str | None = None,
    say: Say = quiet,
) -> Report:
    """Run the benchmark.

    Parameters
    ----------
    scale : int
        Scale of the Kronecker graph, with edge factor 16 and seed 1.
    graphs : str, optional
        Folder of amazon0601-edges.csv.gz, cnr-2000.arcs.tsv.gz and twitter_combined-edges.csv.gz.
    runs : int
        Number of times that everything is measured; medians are shown. One worker and two count in 15 turns (or a few
        more, so that each run has equally many).
    quick : bool
        Scale 14, one run, 3 turns.
    gapbs : str, optional
        Path of GAPBS' `tc`.
    say : callable (str), optional
        Told what is being measured.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        An option is invalid.
    CountError
        Two tools count different numbers of triangles.
    """
    if quick:
        scale, runs = QUICK_SCALE, 1
    check_runs(runs)
    check_folder("graphs", graphs)
    facts = surroundings()
    counters, results = [*OURS, HAND, *other_tools(gapbs)], Measured(scale, runs)
    with TemporaryDirectory(prefix="dasktc-bench-") as folder:
        _prepare(results, folder, graphs)
        for number in range(runs):
            for name, measure in _measures(results, counters, folder, _turns_a_run(runs, quick)):
                say(f"run {number + 1} of {runs}: {name}")
                measure()
    size = {"quick": True} if quick else {"scale": scale, "runs": runs}
    return Report(command("cpu", **size, graphs=graphs, gapbs=gapbs), facts, sections(results, counters))


def _turns_a_run(runs: int, quick: bool) -> int:
    return -(-(QUICK_TURNS if quick else TURNS) // runs)


def _prepare(results: Measured, folder: str, graphs: str | None) -> None:
    """Write the inputs of all measurements before the first one."""
    results.vertices, results.edges = in_fresh_process(prepare_inputs, Inputs(folder), results.scale)
    in_fresh_process(write_kronecker, results.scale, str(Path(folder, "kronecker.parquet")))
    for name, (file, triangles, _) in FILES.items():
        results.check(name, "its publisher", triangles)
        packed = None if graphs is None else Path(graphs, file)
        if packed is None or not packed.is_file():
            results.skipped[name] = f"{file} is not in --graphs {graphs}" if graphs else "no --graphs DIR was given"
            continue
        with gzip.open(packed) as text, open(Path(folder, packed.stem), "wb") as plain:
            shutil.copyfileobj(text, plain, 1 << 20)
        results.files[name] = (str(packed), str(Path(folder, packed.stem)))


def _measures(
    results: Measured, counters: list[Counter], folder: str, turns: int
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the measurements of one run, each with its name."""
    parquet = str(Path(folder, "kronecker.parquet"))
    for counter in counters:
        if not counter.missing:
            yield counter.name, partial(_count, results, counter, Inputs(folder))
    for form, source in (("generated", results.scale), ("Parquet", parquet)):
        yield f"one process, {form}", partial(_process, results, form, source)
        for workers in (1, 2) if form == "generated" else (2,):
            yield f"{workers} worker processes, {form}", partial(_cluster, results, form, source, workers)
    yield f"one worker and two, {turns} turns", partial(_turns, results, turns)
    whole = -(-turns // WHOLE)
    yield f"threads and workers, Parquet, {whole} turns", partial(_ways, results, parquet, whole)
    for name, (packed, plain) in results.files.items():
        for path in (packed, plain):
            yield f"dasktc, {Path(path).name}", partial(_file, results, name, path)
        if find_spec("igraph"):
            yield f"igraph, {Path(plain).name}", partial(_igraph_file, results, name, plain)


def _count(results: Measured, counter: Counter, inputs: Inputs) -> None:
    result = in_fresh_process(counter.run, inputs)
    results.check("kronecker", counter.name, result.triangles)
    results.counted[counter.name].append(result.seconds)


def _process(results: Measured, form: str, source: int | str) -> None:
    whole = in_fresh_process(in_process, source)
    results.check("kronecker", f"dasktc, {form}", whole.triangles)
    results.processes[form].append(whole)


def _cluster(results: Measured, form: str, source: int | str, workers: int) -> None:
    whole = in_fresh_process(in_cluster, source, workers)
    results.check("kronecker", f"dasktc on {workers} workers, {form}", whole.triangles)
    results.clusters[form, workers].append(whole)


def _turns(results: Measured, turns: int) -> None:
    for turn in in_fresh_process(in_turns, results.scale, turns):
        for workers, triangles in zip(("one worker", "two workers"), turn.triangles, strict=True):
            results.check("kronecker", f"dasktc on {workers} in turns", triangles)
        results.turns.append(turn)


def _ways(results: Measured, path: str, turns: int) -> None:
    for name, counts in in_fresh_process(in_ways, path, turns).items():
        for way in counts:
            results.check("kronecker", f"dasktc, {name}", way.triangles)
            results.ways[name].append(way)


def _file(results: Measured, name: str, path: str) -> None:
    whole = in_fresh_process(in_process, path)
    results.check(name, f"dasktc, {Path(path).name}", whole.triangles)
    results.read[name, ".gz" if path.endswith(".gz") else "plain"].append(sum(whole.seconds.values()))


def _igraph_file(results: Measured, name: str, path: str) -> None:
    result = in_fresh_process(igraph_file, path, names=FILES[name][2])
    results.check(name, "igraph", result.triangles)
    results.read[name, "igraph"].append(result.seconds)
