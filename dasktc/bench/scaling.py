"""`dasktc bench scaling`: how counting scales with workers, beyond those available (TRUST, fig. 15 and table 6).

For every number of workers the scheme's own task list is counted here, task after task, with each worker's share in a
thread of its own, so that every worker makes its own tables. The measured seconds are scheduled on simulated workers
(module `simulate`) with the scheduler's time per task as measured in the same run. Real workers, as many as there are
cores or GPUs, count too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from dasktc.bench import plot
from dasktc.bench.curves import Curve, figure_15, notes, table_6
from dasktc.bench.measure import in_fresh_process
from dasktc.bench.overhead import measure, section
from dasktc.bench.report import Report, Say, Section, check_runs, command, quiet, surroundings
from dasktc.bench.scaled import price, real_run
from dasktc.errors import CountError, InputError
from dasktc.io.generators.synthetic import grid3d, kronecker, random_graph, theory
from dasktc.io.source import Source
from dasktc.options import Options, bytes_of

__all__ = ["run"]

RATE_NETWORK = 1.1e9
"""Bytes per second between two workers, TCP."""
QUICK: dict[str, Any] = {
    "scale": 13,
    "vertices": 1 << 14,
    "edges": 1 << 17,
    "side": 24,
    "stars": "9,16,25",
    "most": 64,
    "runs": 1,
}
GRAPHS = ("kronecker", "random", "grid3d", "theory")


def run(
    graphs: str = ",".join(GRAPHS),
    scale: int = 18,
    vertices: int = 1 << 20,
    edges: int = 1 << 23,
    side: int = 128,
    stars: str = "25,81,64",
    most: int = 1024,
    workers: str | None = None,
    runs: int = 3,
    rate_network: int | str | None = None,
    quick: bool = False,
    overhead: bool = False,
    plots: tuple[str, ...] = (),
    say: Say = quiet,
    **options: Any,
) -> Report:
    """Run the benchmark.

    Parameters
    ----------
    graphs : str
        Graphs to count: some of kronecker, random, grid3d and theory, comma-separated.
    scale : int
        Scale of the Kronecker graph, with edge factor 16 and seed 1.
    vertices, edges : int
        Size of the random graph.
    side : int
        Side of the torus.
    stars : str
        Leaves of the theory graph's stars.
    most : int
        Largest number of simulated workers; a power of two.
    workers : str, optional
        Numbers of real workers, e.g. "1,2,4"; default: powers of two up to the available cores or GPUs.
    runs : int
        Number of times that every task is counted; the least time is taken.
    rate_network : int or str, optional
        Bytes per second that a simulated worker receives; default 1.1 GB.
    quick : bool
        Small graphs, 64 workers, one run.
    overhead : bool
        Only measure Dask's overhead in a count of more than ten seconds, on as many real workers as there are cores.
    plots : tuple of str
        Files to draw: .png, .svg, .pdf or .html.
    say : callable (str), optional
        Told what is being measured.
    **options
        Options of a count: backend, kernel, partition, parts, reorder, memory.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        An option is invalid.
    CountError
        Two plans count different numbers of triangles.
    """
    if overhead:
        return _overhead(workers, quick, say)
    settings: dict[str, Any] = dict(zip(QUICK, (scale, vertices, edges, side, stars, most, runs), strict=True))
    sizes, count = QUICK if quick else settings, Options(**options)
    plot.check(plots)
    sources = list(_sources(graphs, sizes))
    steps, real = _steps(sizes["most"]), _real_workers(workers, count)
    check_runs(sizes["runs"])
    rate = float(bytes_of(rate_network, "rate_network") or RATE_NETWORK)
    size = {"quick": True} if quick else settings
    changed = {name: value for name, value in options.items() if value != getattr(Options(), name)}
    places = {"graphs": graphs, "workers": workers, "rate_network": rate_network}
    report, curves = Report(command("scaling", **size, **places, **changed), surroundings()), list[Curve]()
    for source in sources:
        curves.append(Curve(source))
        for table in _tables(curves[-1], count, steps, real, sizes["runs"], rate, say):
            report.sections.append(table)
            if len(curves) == len(sources) and curves[-1].partitioned:  # the last table
                table.notes += notes(curves, rate)
            say(table)
    for out in plots:
        plot.draw(curves, report, Path(out))
    return report


def _overhead(workers: str | None, quick: bool, say: Say) -> Report:
    number = _real_workers(workers, Options())[-1]
    say(f"a count on {number} real workers")
    overheads = in_fresh_process(measure, number, quick)
    line = command("scaling", overhead=True, quick=quick, workers=workers)
    return Report(line, surroundings(), [section(overheads, quick)])


def _sources(graphs: str, sizes: dict[str, Any]) -> Iterator[Source]:
    try:
        stars = tuple(int(leaves) for leaves in sizes["stars"].split(","))
    except ValueError:
        raise InputError(f"--stars {sizes['stars']!r} is no list of whole numbers: give them as in 25,81") from None
    makers: dict[str, Callable[[], Source]] = {
        "kronecker": lambda: kronecker(sizes["scale"]),
        "random": lambda: random_graph(sizes["vertices"], sizes["edges"]),
        "grid3d": lambda: grid3d(sizes["side"]),
        "theory": lambda: theory(stars),
    }
    for name in graphs.split(","):
        if name not in makers:
            raise InputError(f"--graphs {name!r} is none: choose of {', '.join(makers)}, with commas between them")
        yield makers[name]()


def _steps(most: int) -> list[int]:
    """Numbers of simulated workers: 1, 2, 4, ..."""
    if most < 2 or most & (most - 1):
        raise InputError(f"--most {most} is no power of two above 1: workers are doubled; give one such as 1024")
    return [1 << power for power in range(most.bit_length())]


def _real_workers(text: str | None, options: Options) -> list[int]:
    if text is None:
        devices = _devices(options.chosen_backend)
        return [1 << power for power in range(devices.bit_length())]
    try:
        numbers = sorted({1, *(int(number) for number in text.split(","))})
    except ValueError:
        numbers = [0]
    if numbers[0] < 1:
        raise InputError(f"--workers {text!r} is no list of numbers from 1 on: give one such as 1,2,4")
    return numbers


def _devices(backend: str) -> int:
    """Number of cores, or GPUs, of this machine."""
    if backend == "cpu":
        import psutil

        return int(psutil.cpu_count() or 1)
    from dasktc.backends import get_backend

    return int(get_backend(backend).array.cuda.runtime.getDeviceCount())


def _tables(
    curve: Curve, options: Options, steps: list[int], real: list[int], runs: int, rate: float, say: Say
) -> Iterator[Section]:
    """Measure a curve, and yield each of its tables when it is measured."""
    source = curve.source
    parts = max(2, round((steps[-1] / 2) ** (1 / 3)))
    divided = replace(options, partition="hash2d", parts=parts)
    for number in real:
        say(f"{source.name}: {number} real workers")
        whole, in_parts = in_fresh_process(real_run, source, [options, divided], number, runs)
        curve.real.append(whole)
        curve.partitioned_real.append(in_parts)
    say(f"{source.name}: tasks for {steps[0]} to {steps[-1]} simulated workers")
    plans = in_fresh_process(price, source, options, steps, runs)
    curve.points = [curve.point(step, rate) for step in plans]
    _compare(curve)
    yield figure_15(curve)
    say(f"{source.name}: tasks of {parts} parts")
    numbers = sorted({*steps[-2:], *real} & {*steps})
    by_number = in_fresh_process(price, source, divided, numbers, runs)
    curve.partitioned = [curve.point(step, rate) for step in by_number]
    _compare(curve)
    yield table_6(curve)


def _compare(curve: Curve) -> None:
    """Raise CountError unless all plans of a curve count the same triangles."""
    counts = {point.priced.triangles for point in [*curve.points, *curve.partitioned]}
    counts |= {run.triangles for run in [*curve.real, *curve.partitioned_real]}
    if len(counts) != 1:
        raise CountError(
            f"plans for different numbers of workers count {sorted(counts)} triangles of {curve.source.name}: one of "
            "them is wrong; report this with the output of `dasktc info`"
        )
