"""LSTC's table 7 and figure 10: what shared memory changes in a profiler's counters.

Tamboli and Jatala, "LSTC", ICPE 2026, doi:10.1145/3777884.3797002. On a GPU the counters are Nsight Compute's, where it
is there and may read them; else figure 10 counts reads from row lengths, and table 7 stays empty and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

import numpy as np

from dasktc.backends.csr import on_host
from dasktc.bench.papers.bench import NEEDS_GPU, Bench
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import Case
from dasktc.bench.papers.lanes import lists_of
from dasktc.bench.papers.nsight import profile

__all__ = ["ACCESSES", "EFFICIENCY", "UNSHARED", "accesses", "efficiency"]

UNSHARED = "lstc-unshared"
"""LSTC's kernel without shared memory."""
WITH, WITHOUT = "with", "without"
KERNELS = {WITHOUT: UNSHARED, WITH: "lstc"}
ENTRY = "regex:^lstc_rows"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
"""Sectors of 32 bytes that loads from global memory ask for."""
METRICS = {
    "cycles": "sm__cycles_elapsed.max",
    "IPC": "sm__inst_executed.avg.per_cycle_elapsed",
    "stall cycles an instruction": "smsp__average_warp_latency_per_inst_issued.ratio",
    "L1 hits, %": "l1tex__t_sector_hit_rate.pct",
    "occupancy, %": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "active warps": "sm__warps_active.avg.per_cycle_active",
}
"""Table 7's rows, and Nsight Compute's names of them."""


# table 7


def efficiency(bench: Bench) -> Figure:
    """Table 7: cycles, instructions a cycle, stalls, cache hits and occupancy, with and without shared memory."""
    figure = Figure(
        "LSTC's kernel with and without shared memory, by Nsight Compute (LSTC, table 7)",
        {"graph": "", "shared memory": "", "cycles": ",.0f"} | {name: ".2f" for name in list(METRICS)[1:]},
        notes=[f"without: kernel {UNSHARED}; order degree; stalls: cycles of a warp between two of its instructions"],
    )
    reason = "" if bench.cuda else NEEDS_GPU
    for case in bench.cases:
        for variant, kernel in KERNELS.items():
            result = reason or _profiled(case, kernel)
            cells = [None] * len(METRICS) if isinstance(result, str) else result
            reason = result if isinstance(result, str) else reason
            figure.rows.append([case.name, variant, *cells])
    figure.notes += [f"no counters: {reason}"] * bool(reason)
    series: dict[str, Any] = {
        variant: [row["cycles"] for row in figure.records() if row["shared memory"] == variant] for variant in KERNELS
    }
    figure.plot = Plot("bars", bench.names, series, "", "cycles", log=True)
    return figure


def _profiled(case: Case, kernel: str) -> list[float] | str:
    """The counters of a count: cycles of all launches, and the means of the others."""
    result = profile(case, "degree", kernel, ENTRY, tuple(METRICS.values()))
    if isinstance(result, str):
        return result
    return [(sum if name == "cycles" else mean)(result[metric]) for name, metric in METRICS.items()]


def _with_over_without(figure: Figure, column: str) -> dict[str, float]:
    cells = {(row["graph"], row["shared memory"]): row[column] for row in figure.records()}
    return {
        name: cells[name, WITH] / cells[name, WITHOUT]
        for name, variant in cells
        if variant == WITH and cells[name, WITH] and cells[name, WITHOUT]
    }


def _changes(column: str, rises: bool) -> Callable[[Figure], Finding]:
    """Whether a counter rises, or falls, by shared memory on most graphs; the factor is that of the one with most."""

    def find(figure: Figure) -> Finding:
        ratios = _with_over_without(figure, column)
        if not ratios:
            return Finding("there are no counters: the notes say why")
        factors = {name: ratio if rises else 1 / ratio for name, ratio in ratios.items()}
        text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
        better = sum(factor > 1 for factor in factors.values())
        return Finding(f"times that without: {text}", 2 * better > len(factors), [max(factors.values())])

    return find


HALF = "on half of the graphs or more it is not so"
EFFICIENCY = (
    Claim(
        "cycles", "with shared memory cycles fall 9.6 and 24.6 times", _changes("cycles", rises=False), HALF,
        Published(9.6, 24.6), on="cuda",
    ),
    Claim(
        "IPC", "instructions a cycle rise 7.5 and 17.8 times", _changes("IPC", rises=True), HALF,
        Published(7.5, 17.8), on="cuda",
    ),
    Claim(
        "stalls", "stall cycles an instruction fall 7.6 and 18.6 times",
        _changes("stall cycles an instruction", rises=False), HALF, Published(7.6, 18.6), on="cuda",
    ),
    Claim(
        "L1", "L1 hits rise 1.32 and 1.08 times", _changes("L1 hits, %", rises=True), HALF,
        Published(1.08, 1.32, 1.25), on="cuda",
    ),
    Claim(
        "occupancy", "occupancy rises 1.04 and 1.61 times", _changes("occupancy, %", rises=True), HALF,
        Published(1.04, 1.61, 1.25), on="cuda",
    ),
)  # fmt: skip


# figure 10


def accesses(bench: Bench) -> Figure:
    """Figure 10: reads of global memory with and without shared memory."""
    result = _counted(bench) if bench.cuda else ""
    figure = _by_lengths(bench, result) if isinstance(result, str) else result
    series: dict[str, Any] = {"with": figure.column("with, a wedge"), "without": figure.column("without, a wedge")}
    figure.plot = Plot("bars", [str(row[0]) for row in figure.rows], series, "", "reads a wedge")
    return figure


def _columns() -> dict[str, str]:
    return {"graph": "", "with, a wedge": ".3f", "without, a wedge": ".3f", "fewer": ".2f"}


def _counted(bench: Bench) -> Figure | str:
    """The figure by a profiler's counters; or why there are none."""
    figure = Figure(
        "Sectors of loads from global memory, with and without shared memory (LSTC, figure 10)", _columns(),
        notes=[f"counters of Nsight Compute ({SECTORS}); fewer: percent"],
    )  # fmt: skip
    for case in bench.cases:
        sums = dict[str, float]()
        for variant, kernel in KERNELS.items():
            result = profile(case, "degree", kernel, ENTRY, (SECTORS,))
            if isinstance(result, str):
                return result
            sums[variant] = sum(result[SECTORS])
        wedges = max(1, bench.count(case, "degree", "lstc").wedges)
        fewer = 100 * (1 - sums[WITH] / sums[WITHOUT]) if sums[WITHOUT] else 0.0
        figure.rows.append([case.name, sums[WITH] / wedges, sums[WITHOUT] / wedges, fewer])
    return figure


def _by_lengths(bench: Bench, reason: str) -> Figure:
    figure = Figure(
        "Reads of global memory with and without shared memory (LSTC, figure 10)", _columns(),
        notes=["with: a streamed entry once for each tile of 1,024, and each tile once; without: a streamed entry "
               "once, and the steps of its search; fewer: percent", *([f"no counters: {reason}"] if reason else [])],
        proxy="reads of 4 bytes counted from row lengths, for transactions that a profiler counts",
    )  # fmt: skip
    for case in bench.cases:
        block = bench.block(case)
        row, lists = np.diff(on_host(block.offsets)), lists_of(block)
        table, streamed = row[lists.row], lists.size
        wedges = max(1, int(streamed.sum()))
        loaded = int(row[np.unique(lists.row)].sum())
        tiled = (int((streamed * -(-table // 1024)).sum()) + loaded) / wedges
        steps = np.ceil(np.log2(np.maximum(table, 1))) + 1
        direct = float((streamed * (1 + steps)).sum()) / wedges
        figure.rows.append([case.name, tiled, direct, 100 * (1 - tiled / direct) if direct else 0.0])
    return figure


def _left(figure: Figure) -> Finding:
    shares = {row["graph"]: 100 - row["fewer"] for row in figure.records()}
    skewed = [share for name, share in shares.items() if str(name).startswith("Kronecker")]
    least, largest = min(shares, key=lambda name: shares[name]), max(shares, key=lambda name: shares[name])
    text = f"{spread(skewed, '.1f')} % are left on Kronecker graphs; most on {largest} ({shares[largest]:.1f} %)"
    return Finding(text, shares[least] in skewed and shares[largest] not in skewed, skewed)


ACCESSES = (
    Claim(
        "accesses left",
        "5.5, 5.2 and 6.1 % of the accesses are left on Graph500 graphs (94.5, 94.8 and 93.9 % fewer), almost all on a "
        "road network",
        _left, "another graph than a Kronecker graph saves most, or a Kronecker graph least",
        Published(5.24, 6.1, 1.5, " % left"),
    ),
)  # fmt: skip
"""The band is on what is left: in what is saved, a factor of three in accesses is 12 %."""
