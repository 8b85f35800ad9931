"""LSTC's tables 5, 9 and 10 and figures 8 and 9: what the transformation and shared memory bring, other systems, GPUs.

Tamboli and Jatala, "LSTC", ICPE 2026, doi:10.1145/3777884.3797002.
"""

from __future__ import annotations

import time
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from dasktc.api.count import build
from dasktc.api.graph import Graph
from dasktc.backends import get_backend
from dasktc.backends.csr import on_host
from dasktc.bench.measure import StageClock
from dasktc.bench.papers.bench import ONE_THREAD, Bench
from dasktc.bench.papers.figure import NOISE, Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import Case, kronecker_case, rmat_case
from dasktc.bench.papers.lstc import TRICORE
from dasktc.bench.papers.lstc_memory import UNSHARED
from dasktc.executors.base import Executor
from dasktc.executors.connect import connect
from dasktc.executors.local import LocalExecutor
from dasktc.executors.place import Place
from dasktc.options import PROXIES, Options

__all__ = [
    "GPUS",
    "LARGE_SYSTEMS",
    "SHARED",
    "SYSTEMS",
    "TRANSFORMATION",
    "gpus",
    "large_systems",
    "shared_memory",
    "systems",
    "transformation",
]

DIVIDED = (4, 8)
"""Parts of table 5."""
WORKERS = (1, 2, 4)
"""GPUs of figure 8."""
LEAST_SECONDS = 1e-9
TRUST = "TRUST by this program's kernel trust and its order collective"
"""What stands for TRUST, whose program is not here."""
SHORT_ROW = 4
"""Entries of the longest row of figure 9's road network."""


# table 5


def transformation(bench: Bench) -> Figure:
    """Table 5: memory, transfer and kernel of the largest part, with and without the transformation."""
    figure = Figure(
        f"Parts with the transformation, tight, and without it (LSTC, table 5; {bench.clock})",
        {"graph": "", "parts": "d", "proxies": "", "max MB": ".3f", "transfer": ".5f", "kernel": ".5f"},
        notes=[
            "max MB: blocks and scratch of the largest part; transfer: its blocks, from host to device, all parts one "
            "after another" + ("" if bench.cuda else ": there is none on the CPU"),
            "tight: this program's, which keeps what a count reads alone",
        ],
        proxy="" if bench.cuda else ONE_THREAD,
    )
    for case in bench.cases[: 2 if bench.quick else None]:
        for parts in DIVIDED:
            for proxies in PROXIES:
                graph = bench.prepared(case, kernel="lstc", partition="proxy", parts=parts, splits=1, proxies=proxies)
                result = [graph.triangle_count() for _ in range(1 + bench.cuda)][-1]  # the first one compiles
                bench.check(case, f"lstc, {parts} parts, {proxies}", result.triangles)
                seconds = sum(record.count.seconds for record in result._records)
                moved = _transferred(bench, graph._context.blocks.values()) if bench.cuda else None
                figure.rows.append([case.name, parts, proxies, graph.plan.bytes_per_task / 1e6, moved, seconds])
    names = [f"{row['graph']}, {row['parts']}" for row in figure.records() if row["proxies"] == "lstc"]
    memory: dict[str, Any] = {
        proxies: [row["max MB"] for row in figure.records() if row["proxies"] == proxies] for proxies in PROXIES
    }
    figure.plot = Plot("bars", names, memory, "", "MB of the largest part")
    return figure


def _transferred(bench: Bench, blocks: Any) -> float:
    """Seconds in which blocks come to the device."""
    xp: Any = get_backend(bench.backend).array
    arrays = [on_host(array) for block in blocks for array in (block.offsets, block.columns)]
    xp.cuda.Device().synchronize()
    start = time.perf_counter()
    for array in arrays:
        xp.asarray(array)
    xp.cuda.Device().synchronize()
    return time.perf_counter() - start


def _without_over_with(figure: Figure, column: str) -> list[float]:
    cells = {(row["graph"], row["parts"], row["proxies"]): row[column] for row in figure.records()}
    return [
        cells[graph, parts, "none"] / max(cells[graph, parts, "lstc"], LEAST_SECONDS)
        for graph, parts, proxies in cells
        if proxies == "lstc"
    ]


def _memory(figure: Figure) -> Finding:
    ratios = _without_over_with(figure, "max MB")
    return Finding(f"{spread(ratios)} times as much without", min(ratios) > 1, ratios)


def _kernel(figure: Figure) -> Finding:
    ratios = _without_over_with(figure, "kernel")
    typical = float(np.median(ratios))
    return Finding(f"{spread(ratios)} times as long without, {typical:.2f} in the median", typical > 0.95, [typical])


TRANSFORMATION = (
    Claim(
        "memory", "without the transformation the largest part takes 1.14 to 1.61 times the memory", _memory,
        published=Published(1.14, 1.61, 1.1), definition=True, exact=True,
    ),
    Claim(
        "kernel", "the kernel takes about as long without it (1.01 times)", _kernel,
        "in the median the transformation makes it more than 5 % slower", Published(1.01, 1.01, 1.25),
    ),
)  # fmt: skip
"""The transformation removes and adds nothing: that a part takes no more memory with it is so by definition."""


# tables 9 and 10


def systems(bench: Bench) -> Figure:
    """Table 9: LSTC, TriCore's method and TRUST on graphs that fit the device, TRUST's reordering apart."""
    return _systems(bench, bench.cases, 9)


def large_systems(bench: Bench) -> Figure:
    """Table 10: the same, undivided, on larger graphs."""
    scale, wide = bench.sizes.streamed
    return _systems(bench, [kronecker_case(scale), rmat_case(wide)], 10)


def _systems(bench: Bench, cases: list[Case], table: int) -> Figure:
    figure = Figure(
        f"LSTC, TriCore's method and TRUST, undivided (LSTC, table {table}; {bench.clock})",
        {
            "graph": "", "LSTC": ".5f", "TriCore": ".5f", "TRUST": ".5f", "TRUST reorders": ".5f",
            "TriCore/LSTC": ".2f", "TRUST/LSTC": ".2f", "with reordering": ".2f",
        },
        notes=["TriCore: its method by kernel tcstream, an edge at a time, the tree's top in shared memory; TRUST "
               "reorders: wall seconds of that stage, order collective, less that of order degree"],
        proxy="" if bench.cuda else "the methods on one thread, without tiles and shared memory",
    )  # fmt: skip
    edges = {"vertices": 0} if bench.cuda else None
    for case in cases:
        ours = bench.count(case, "degree", "lstc").seconds
        tricore = bench.count(case, "degree", "tcstream", edges).seconds
        trust, reorders = bench.count(case, "collective", "trust").seconds, _reordering(bench, case)
        base = max(ours, LEAST_SECONDS)
        ratios = [tricore / base, trust / base, (trust + reorders) / base]
        figure.rows.append([case.name, ours, tricore, trust, reorders, *ratios])
    series: dict[str, Any] = {name: figure.column(name) for name in ("LSTC", "TriCore", "TRUST")}
    figure.plot = Plot("bars", [case.name for case in cases], series, "", bench.clock, log=True)
    return figure


def _reordering(bench: Bench, case: Case) -> float:
    """Wall seconds that the collective order takes more than order degree."""
    times = []
    for order in ("collective", "degree"):
        clock = StageClock(time.perf_counter)
        build(LocalExecutor(), case.source(), Options("trust", "whole", reorder=order, backend=bench.backend), clock)
        times.append(clock.seconds["reorder"])
    return max(0.0, times[0] - times[1])


def _ratio(figure: Figure, column: str, times: str) -> Finding:
    ratios = figure.column(column)
    mean = prod(ratios) ** (1 / len(ratios))
    return Finding(f"{spread(ratios)} {times}, {mean:.2f} in the geometric mean", mean > 1, [mean])


def _tricore(figure: Figure) -> Finding:
    return _ratio(figure, "TriCore/LSTC", "times as long as LSTC")


def _trust(figure: Figure) -> Finding:
    return _ratio(figure, "with reordering", "times as long as LSTC")


def _trust_alone(figure: Figure) -> Finding:
    finding = _ratio(figure, "TRUST/LSTC", "times as long as LSTC")
    return Finding(finding.here, finding.numbers[0] < 1, finding.numbers)


SYSTEMS = (
    Claim(
        "TriCore", "TriCore takes 3.5 times as long as LSTC in the geometric mean (5.6 with the road network)",
        _tricore, "it takes no longer in the geometric mean", Published(3.5, 5.6, 1.5), on="cuda", proxy=TRICORE,
    ),
    Claim(
        "TRUST", "TRUST with its reordering takes 13 times as long in the geometric mean (3.5 to 103)", _trust,
        "it takes no longer in the geometric mean", Published(13.3, 13.3), proxy=TRUST,
    ),
    Claim(
        "TRUST alone", "without reordering, by the same table, TRUST takes 0.50 times LSTC's time (0.2 to 1.15)",
        _trust_alone, "it takes longer in the geometric mean", Published(0.5, 0.5), on="cuda", proxy=TRUST,
    ),
)  # fmt: skip
LARGE_SYSTEMS = (
    Claim(
        "TriCore", "TriCore takes 1.82 times as long as LSTC, 3.2 at most", _tricore,
        "it takes no longer in the geometric mean", Published(1.82, 1.82), on="cuda", proxy=TRICORE,
    ),
    Claim(
        "TRUST", "TRUST with its reordering takes 22 times as long in the geometric mean (6 to 67)", _trust,
        "it takes no longer in the geometric mean", Published(22, 22), proxy=TRUST,
    ),
    Claim(
        "TRUST alone", "without reordering, by the same table, TRUST takes 0.36 times LSTC's time (0.2 to 0.66)",
        _trust_alone, "it takes longer in the geometric mean", Published(0.36, 0.36), on="cuda", proxy=TRUST,
    ),
)  # fmt: skip


# figure 8


def gpus(bench: Bench) -> Figure:
    """Figure 8: a part a GPU, and the busiest one's time; on real GPUs too, where there are several."""
    figure = Figure(
        f"A part a GPU: the busiest one's kernel seconds (LSTC, figure 8; {bench.clock})",
        {"graph": "", "GPUs": "d", "simulated": ".5f", "speed-up": ".2f", "real": ".5f", "real speed-up": ".2f"},
        notes=["simulated: all parts counted on one device, each on a GPU of its own; real: on as many GPUs, where "
               "they are here; random parts, so that nothing travels but the sums"],
        proxy="parts counted one after another on one device, which is alone with each; the slowest counts",
    )  # fmt: skip
    xp: Any = get_backend(bench.backend).array
    devices = int(xp.cuda.runtime.getDeviceCount()) if bench.cuda and find_spec("dask_cuda") else 0
    cases = bench.cases[:2]
    real = {number: _on_workers(bench, cases, number) for number in WORKERS if number <= devices > 1}
    for case in cases:
        base: list[float] = []
        for number in WORKERS:
            busiest, busiest_gpu = _busiest(bench, case, number, LocalExecutor()), real.get(number, {}).get(case.name)
            base = base or [busiest, busiest_gpu or 0.0]
            speed_ups = base[0] / max(busiest, LEAST_SECONDS), busiest_gpu and base[1] / busiest_gpu
            figure.rows.append([case.name, number, busiest, speed_ups[0], busiest_gpu, speed_ups[1]])
    series: dict[str, Any] = {
        str(name): [row["speed-up"] for row in figure.records() if row["graph"] == name]
        for name in dict.fromkeys(row["graph"] for row in figure.records())
    }
    figure.plot = Plot("lines", [str(number) for number in WORKERS], series, "GPUs", "speed-up", one=True)
    return figure


def _on_workers(bench: Bench, cases: list[Case], number: int) -> dict[str, float]:
    """Kernel seconds of the busiest of so many workers, each with a part, by graph."""
    with connect(Place(workers=number), bench.backend) as workers:
        return {case.name: _busiest(bench, case, number, workers) for case in cases}


def _busiest(bench: Bench, case: Case, parts: int, executor: Executor) -> float:
    """Kernel seconds of the part, or of the worker, that has most of them."""
    graph = build(executor, case.source(), Options("lstc", "proxy", parts, 1, backend=bench.backend))
    if bench.cuda:
        graph.triangle_count()  # compiles
    return bench.timed(partial(_longest, bench, case, graph, isinstance(executor, LocalExecutor)))


def _longest(bench: Bench, case: Case, graph: Graph, is_local: bool) -> float:
    """Count once; kernel seconds of the part that has most of them, or of the worker."""
    result = graph.triangle_count()
    bench.check(case, f"lstc, {graph.plan.parts} parts", result.triangles)
    seconds: dict[Any, float] = {}
    for record in result._records:
        owner = record.job.triple if is_local else record.worker
        seconds[owner] = seconds.get(owner, 0.0) + record.count.seconds
    return max(seconds.values())


def _speed_ups(figure: Figure, column: str) -> dict[str, dict[int, float]]:
    """Speed-ups by GPUs, by graph, of the numbers of GPUs that a column has."""
    curves: dict[str, dict[int, float]] = {}
    for row in figure.records():
        if row[column] is not None:
            curves.setdefault(row["graph"], {})[row["GPUs"]] = row[column]
    return curves


def _rising(curves: dict[str, dict[int, float]]) -> bool:
    return all(a < b for speeds in curves.values() for a, b in pairwise(speeds[number] for number in sorted(speeds)))


def _speed_up(figure: Figure) -> Finding:
    real, simulated = (_speed_ups(figure, column) for column in ("real speed-up", "speed-up"))
    exact = bool(real) and all(WORKERS[-1] in speeds for speeds in real.values())
    curves = real if exact else simulated
    last = [speeds[WORKERS[-1]] for speeds in curves.values()]
    text = f"{spread(last)} on {WORKERS[-1]} {'real' if exact else 'simulated'} GPUs"
    return Finding(text, _rising(curves), last, exact)


def _real_speed_up(figure: Figure) -> Finding:
    real, simulated = (_speed_ups(figure, column) for column in ("real speed-up", "speed-up"))
    if not real:
        return Finding("there are fewer than two GPUs")
    largest = max(set.intersection(*map(set, real.values())))
    last, models = ([speeds[largest] for speeds in curves.values()] for curves in (real, simulated))
    return Finding(f"{spread(last)} on {largest} real GPUs, simulated {spread(models)}", _rising(real), exact=True)


GPUS = (
    Claim(
        "speed-up", "4 GPUs are 2.31 and 2.38 times as fast as one", _speed_up,
        "more GPUs are not faster, on some graph", Published(2.31, 2.38, 1.5),
    ),
    Claim(
        "real GPUs", "it scales well from one GPU to 4, for parts need no communication", _real_speed_up,
        "more real GPUs are not faster, on some graph",
    ),
)  # fmt: skip


# figure 9


def shared_memory(bench: Bench) -> Figure:
    """Figure 9: the kernel with and without shared memory."""
    figure = Figure(
        f"LSTC's kernel with and without shared memory (LSTC, figure 9; {bench.clock})",
        {"graph": "", "longest row": ",d", "with": ".5f", "without": ".5f", "times as long": ".2f"},
        notes=[f"without: kernel {UNSHARED}: each row is searched where it stands in global memory"]
        + ([] if bench.cuda else ["the CPU's kernel has no tiles: both are one"]),
    )
    for case in bench.cases:
        longest = int(np.diff(on_host(bench.block(case).offsets)).max(initial=0))
        cells: list[Any] = [None] * 3
        if bench.cuda:
            times = [bench.count(case, "degree", kernel).seconds for kernel in ("lstc", UNSHARED)]
            cells = [*times, times[1] / max(times[0], LEAST_SECONDS)]
        figure.rows.append([case.name, longest, *cells])
    names, columns = [str(row[0]) for row in figure.rows], ("with", "without") if bench.cuda else ("longest row",)
    series: dict[str, Any] = {name: figure.column(name) for name in columns}
    figure.plot = Plot("bars", names, series, "", bench.clock if bench.cuda else "entries", log=True)
    return figure


def _without(figure: Figure, short: bool) -> dict[str, float]:
    """Times as long without shared memory, of the graphs with no row above `SHORT_ROW`, or of the others."""
    rows = [row for row in figure.records() if (row["longest row"] <= SHORT_ROW) is short]
    return {row["graph"]: row["times as long"] for row in rows if row["times as long"] is not None}


def _listed(ratios: dict[str, float]) -> str:
    return f"without it {', '.join(f'{name} {ratio:.2f}' for name, ratio in ratios.items())} times as long"


def _long_rows(figure: Figure) -> Finding:
    ratios = _without(figure, short=False)
    faster = sum(ratio > NOISE for ratio in ratios.values())
    return Finding(_listed(ratios), 2 * faster > len(ratios)) if ratios else Finding("no graph has longer rows")


def _short_rows(figure: Figure) -> Finding:
    ratios = _without(figure, short=True)
    return Finding(_listed(ratios), max(ratios.values()) <= NOISE) if ratios else Finding("no graph has such rows")


SHARED = (
    Claim(
        "long rows", "shared memory makes most graphs faster", _long_rows,
        f"it makes no more than half of the graphs with rows above {SHORT_ROW} {NOISE:g} times as fast", on="cuda",
    ),
    Claim(
        "short rows", "it does not pay on a road network, whose rows have at most 4 entries", _short_rows,
        f"it makes a graph whose rows have at most {SHORT_ROW} more than {NOISE:g} times as fast", on="cuda",
    ),
)  # fmt: skip
