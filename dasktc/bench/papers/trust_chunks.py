"""TRUST's figure 8: vertices that a warp or a thread block takes at a time, and the launch's own choice.

Pandey et al., TPDS 2021, section 4.3, doi:10.1109/TPDS.2021.3064892. Time on a GPU; without one the schedules are
counted on the graphs' real rows, and said to be counts.
"""

from __future__ import annotations

from heapq import heapreplace
from typing import Any

import numpy as np

from dasktc.backends.csr import OrientedCSR
from dasktc.backends.cuda.launch_trust import chunk_rows, chunks
from dasktc.bench.papers.bench import NEEDS_GPU, Bench, host_arrays
from dasktc.bench.papers.device import launch_of
from dasktc.bench.papers.figure import Figure, Plot, Statement, spread
from dasktc.bench.papers.graphs import Case

__all__ = ["chunk_size", "makespan", "row_costs"]

CHUNKS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32)
AUTO = 0
"""The `chunk` that stands for the launch's own choice."""
CLOSE = 1.1
"""Times the best fixed chunk that this choice may take."""
TEAMS, ROWS_A_TEAM = 5120, 32
"""Warps that a V100 runs at a time; fewer for small graphs, so that each has rows enough to take turns."""


def chunk_size(bench: Bench) -> Figure:
    """Figure 8: how many vertices a warp or block takes at a time."""
    return _chunks_timed(bench) if bench.cuda else _chunks_scheduled(bench)


def _chunks_timed(bench: Bench) -> Figure:
    figure = Figure(
        "Speed over a chunk of one vertex (TRUST, figure 8)",
        {"graph": "", "ms at 1": ".3f"} | {f"{chunk}": ".3f" for chunk in CHUNKS} | {"auto": ".3f", "chosen": "d"},
        notes=["order collective; auto, chosen: what the launch chooses by itself, for warps"],
    )
    for case in bench.cases:
        seconds = [bench.count(case, "collective", "trust", {"chunk": chunk}).seconds for chunk in (*CHUNKS, AUTO)]
        speed = [seconds[0] / s for s in seconds]
        figure.rows.append([case.name, 1e3 * seconds[0], *speed, chosen_chunk(bench, case)])
    rows: list[list[Any]] = figure.rows
    speeds: dict[str, list[Any]] = {row[0]: row[2:-2] for row in rows}
    times = {name: [1 / s for s in of] for name, of in speeds.items()}
    figure.plot = Plot("lines", [str(c) for c in CHUNKS], dict(speeds), "vertices a chunk", "speed over 1", one=True)
    best = {name: CHUNKS[s.index(max(s))] for name, s in speeds.items()}
    sparse, skewed = _sparsest(bench), bench.cases[0].name
    figure.statements = [
        Statement(
            "on the sparsest graphs larger chunks are 5 to 27 % faster (3D: 7 vertices)",
            f"{sparse}: {max(speeds[sparse]):.2f} times at {best[sparse]}",
            best[sparse] > 1,
        ),
        Statement(
            "on the others a chunk of 1 is best",
            f"{skewed}: larger chunks {spread(speeds[skewed][1:])} times as fast",
            max(speeds[skewed][1:]) < 1.02,
        ),
        _auto_said([[*row[:-2], 1 / row[-2], row[-1]] for row in rows], times),
    ]
    return figure


def _auto_said(rows: list[list[Any]], fixed: dict[str, list[Any]], counted: bool = False) -> Statement:
    """Compare the launch's own choice of chunk, the paper's future work, with the best fixed chunk.

    `fixed` are times, by graph; the rows' last two cells are that of the choice, and the choice.
    """
    auto = {name: (row[-2] / min(fixed[name]), row[-1]) for name, row in zip(fixed, rows, strict=True)}
    ratios = ", ".join(f"{name} {ratio:.2f} at {chunk}" for name, (ratio, chunk) in auto.items())
    return Statement(
        "automatic chunk size is future work: here within 10 % of the best fixed one on every graph",
        f"times the best fixed chunk: {ratios}",
        all(ratio <= CLOSE for ratio, _ in auto.values()),
        counted=counted,
    )


def chosen_chunk(bench: Bench, case: Case) -> int:
    """The chunk of warps that a GPU's launch of `trust` takes for a graph in collective order."""
    return chunks(launch_of(bench.task(case, "collective"), "trust"))[0]


def _sparsest(bench: Bench) -> str:
    """The graph with fewest edges a vertex."""
    blocks = {case.name: bench.block(case, "collective") for case in bench.cases}
    return min(blocks, key=lambda name: blocks[name].edges / max(1, blocks[name].rows))


def _chunks_scheduled(bench: Bench) -> Figure:
    figure = Figure(
        "Longest over mean team when rows are taken in chunks, a count (TRUST, figure 8)",
        {"graph": "", "rows": ",d", "teams": ",d"}
        | {f"{chunk}": ".3f" for chunk in CHUNKS}
        | {"auto": ".3f", "chosen": "d"},
        notes=[
            "the order in which free teams take rows, of what each row hashes and looks up; order collective",
            f"larger chunks also need fewer atomic additions, 1 / chunk of them: what that gains {NEEDS_GPU}",
            "auto, chosen: the chunk that a launch on so many teams would choose",
        ],
    )
    for case in bench.cases:
        costs = row_costs(bench.block(case, "collective"))
        teams = max(2, min(TEAMS, len(costs) // ROWS_A_TEAM))
        ideal = max(1.0, int(costs.sum()) / teams)
        chosen = chunk_rows(len(costs), float(costs.mean()) if len(costs) else None, teams)
        longest = [makespan(costs, teams, chunk) / ideal for chunk in (*CHUNKS, chosen)]
        figure.rows.append([case.name, len(costs), teams, *longest, chosen])
    rows: list[list[Any]] = figure.rows
    ratios: dict[str, list[Any]] = {row[0]: row[3:-2] for row in rows}
    figure.plot = Plot(
        "lines", [str(c) for c in CHUNKS], dict(ratios), "vertices a chunk", "longest / mean team", one=True
    )
    best = {name: CHUNKS[r.index(min(r))] for name, r in ratios.items()}
    sparse = _sparsest(bench)
    others = [chunk for name, chunk in best.items() if name != sparse]
    figure.statements = [
        Statement("larger chunks are 5 to 27 % faster on the sparsest graphs (3D, CP, MA)", f"gains: {NEEDS_GPU}"),
        Statement(
            "on the other graphs a chunk of 1 is best",
            f"best balanced at {', '.join(f'{chunk} ({name})' for name, chunk in best.items())}",
            set(others) == {1},
            counted=True,
        ),
        _auto_said(rows, ratios, counted=True),
    ]
    return figure


def row_costs(block: OrientedCSR) -> Any:
    """Entries that each row hashes and looks up, of rows that are not skipped, in order."""
    offsets, columns = host_arrays(block)
    degree = np.diff(offsets)
    streamed = np.concatenate([[0], np.cumsum(degree[columns])])
    costs = degree + streamed[offsets[1:]] - streamed[offsets[:-1]]
    return costs[degree > 1]


def makespan(costs: Any, teams: int, chunk: int) -> int:
    """Makespan of greedy scheduling: each team takes the next chunk of rows when it is free.

    Parameters
    ----------
    costs : array of int64
    teams, chunk : int
    """
    if len(costs) == 0:
        return 0
    free = [0] * teams
    for cost in np.add.reduceat(costs, np.arange(0, len(costs), chunk)).tolist():
        heapreplace(free, free[0] + cost)
    return max(free)
