"""Tables of `dasktc bench scaling`: the simulated and real points of each graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dasktc.bench.report import CPU, EXACT, Section
from dasktc.bench.scaled import Priced, Real
from dasktc.bench.simulate import Simulation, simulate
from dasktc.io.source import Source
from dasktc.options import Method, format_size

__all__ = ["Curve", "Point", "figure_15", "notes", "published_network", "table_6"]

SECONDS = dict.fromkeys(("kernel s", "real kernel s", "real count s"), CPU)
"""The columns of both tables that `--against` compares."""
CLUEWEB, CLUEWEB_SECONDS = (955_207_488, 37_372_179_311), 0.08181
"""Vertices and edges of TRUST's CW (table 2), and its seconds on 1,024 GPUs (table 6)."""


@dataclass(frozen=True)
class Point:
    """A point of a curve: one number of simulated workers."""

    priced: Priced
    """The plan's tasks and the time of each."""
    ideal: Simulation
    """All workers have all blocks, and there is no overhead: what TRUST measures."""
    whole: Simulation
    """With the scheduler's overhead, and with blocks that are fetched."""


@dataclass
class Curve:
    """The curve of a graph over numbers of workers."""

    source: Source
    points: list[Point] = field(default_factory=list)
    """Points by number of workers."""
    partitioned: list[Point] = field(default_factory=list)
    """Points of the plan with n parts, as in table 6."""
    real: list[Real] = field(default_factory=list)
    """Real measurements, at least one, fewest workers first."""
    partitioned_real: list[Real] = field(default_factory=list)
    """Real measurements of the plan with n parts, on the same workers."""

    def point(self, tasks: Priced, rate: float) -> Point:
        """Simulate workers with the scheduler's times of the largest real cluster, and blocks that arrive at `rate`."""
        dask = self.real[-1]
        whole = simulate(tasks.costs, tasks.workers, dask.overhead, tasks.fetches(rate), dask.latency)
        return Point(tasks, simulate(tasks.costs, tasks.workers), whole)


def figure_15(curve: Curve) -> Section:
    """The speed-up over one worker: TRUST, fig. 15."""
    table = Section(
        f"{curve.source.name}: {curve.points[0].priced.edges:,} edges, {curve.points[0].priced.triangles:,} triangles; "
        "simulated workers, and real ones",
        {
            "workers": "d",
            "n": "d",
            "m": "d",
            "tasks": ",d",
            "kernel s": ".5f",
            "10⁹ edges/s": ",.3g",
            "speed-up": ".2f",
            "time imbalance": ".3f",
            "count s": ".4f",
            "count speed-up": ".2f",
            "real kernel s": ".5f",
            "real speed-up": ".2f",
            "real imbalance": ".3f",
            "real count s": ".4f",
        },
        limits={"n": EXACT, "m": EXACT, "tasks": EXACT, **SECONDS, "count s": CPU},
    )
    first, real = curve.points[0], {run.workers: run for run in curve.real}
    for point in curve.points:
        table.rows.append([*_cells(point, first), *_real_cells(real.get(point.priced.workers), curve.real[0])])
    return table


def _cells(point: Point, first: Point) -> list[Any]:
    tasks, ideal, whole = point.priced, point.ideal, point.whole
    return [
        tasks.workers,
        tasks.parts,
        tasks.splits,
        len(tasks.costs),
        ideal.kernel,
        1e-9 * tasks.edges / ideal.kernel,
        first.ideal.kernel / ideal.kernel,
        ideal.time_imbalance,
        whole.seconds,
        first.whole.seconds / whole.seconds,
    ]


def _real_cells(real: Real | None, single: Real) -> list[Any]:
    if real is None:
        return [None] * 4
    return [real.kernel, single.kernel / real.kernel, real.time_imbalance, real.seconds]


def table_6(curve: Curve) -> Section:
    """Time and space imbalance of the graph in parts: TRUST, table 6."""
    smaller, larger = curve.partitioned[-2:]
    real = {run.workers: run for run in curve.partitioned_real}
    table = Section(
        f"{curve.source.name} in n² blocks, simulated workers and real ones (TRUST, table 6)",
        {
            "workers": "d", "n": "d", "m": "d", "kernel s": ".5f", "time imbalance": ".3f", "space imbalance": ".3f",
            "real kernel s": ".5f", "real imbalance": ".3f", "real count s": ".4f",
        },
        notes=[f"speed-up from {smaller.priced.workers} to {larger.priced.workers} workers: "
               f"{smaller.ideal.kernel / larger.ideal.kernel:.2f}"],
        limits={"n": EXACT, "m": EXACT, **SECONDS},
    )  # fmt: skip
    for point in curve.partitioned:
        tasks, ideal = point.priced, point.ideal
        sizes = [tasks.workers, tasks.parts, tasks.splits]
        cells = _apart(real.get(tasks.workers))
        table.rows.append([*sizes, ideal.kernel, ideal.time_imbalance, tasks.space_imbalance, *cells])
    simulated = {point.priced.workers for point in curve.partitioned}
    table.rows += [
        [number, run.parts, run.splits, None, None, run.space_imbalance, *_apart(run)]
        for number, run in real.items()
        if number not in simulated
    ]
    table.rows.sort(key=lambda row: int(row[0] or 0))
    return table


def _apart(real: Real | None) -> list[Any]:
    return [None] * 3 if real is None else [real.kernel, real.time_imbalance, real.seconds]


def published_network(rate: float) -> str:
    """Say what TRUST's table 6 leaves out: the transfer of blocks before the tasks that need them.

    Parameters
    ----------
    rate : float
        Bytes per second that a worker receives.
    """
    from dasktc.api.plan import plan

    parts, splits, gpus = 8, 2, 1024
    method = Method(partition="hash2d", parts=parts, splits=splits)
    network = plan(vertices=CLUEWEB[0], edges=CLUEWEB[1], gpus=gpus, method=method).network
    total, largest, second = (format_size(size) for size in (network.total, network.largest, rate))
    return (
        f"TRUST's table 6 times counting alone, with blocks in place. For CW ({CLUEWEB[0]:,} vertices, "
        f"{CLUEWEB[1]:,} edges) at n = {parts}, m = {splits} on {gpus:,} GPUs, a task each, {total} of blocks travel "
        f"before the tasks, {largest} to the GPU that receives most: {network.largest / rate:.3g} s at {second} a "
        f"second, beside {CLUEWEB_SECONDS:g} s of counting in the paper"
    )


def notes(curves: list[Curve], rate: float) -> list[str]:
    """Notes on how to read the tables."""
    overheads = ", ".join(f"{1000 * c.real[-1].overhead:.2f} ms" for c in curves)
    latencies = ", ".join(f"{1000 * c.real[-1].latency:.0f} ms" for c in curves)
    return [
        "kernel: counting seconds of the busiest worker, blocks in place, as in TRUST: CPU time, on a GPU between "
        "events, also in real runs; edges/s: all edges in that time, TRUST's traversed edges a second",
        "count: until the last task has ended, with the scheduler's time a task as measured beside each graph "
        f"({overheads}), its time for any count ({latencies}) and blocks fetched at {rate / 1e9:.3g} GB/s; real: wall "
        "time on this machine and under its load",
        published_network(rate),
    ]
