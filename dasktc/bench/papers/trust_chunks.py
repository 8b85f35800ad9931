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
from dasktc.bench.papers.figure import NOISE, Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import Case

__all__ = ["CHUNK_SIZE", "chunk_size", "makespan", "row_costs"]

CHUNKS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32)
AUTO = 0
"""The `chunk` that stands for the launch's own choice."""
TEAMS, ROWS_A_TEAM = 5120, 32
"""Warps that a V100 runs at a time; fewer for small graphs, so that each has rows enough to take turns."""


def chunk_size(bench: Bench) -> Figure:
    """Figure 8: how many vertices a warp or block takes at a time."""
    return _chunks_timed(bench) if bench.cuda else _chunks_scheduled(bench)


def _chunks_timed(bench: Bench) -> Figure:
    figure = Figure(
        "Speed over a chunk of one vertex (TRUST, figure 8)",
        {"graph": "", "edges a vertex": ".1f", "ms at 1": ".3f"}
        | {f"{chunk}": ".3f" for chunk in CHUNKS}
        | {"auto": ".3f", "chosen": "d"},
        notes=["order collective; auto, chosen: what the launch chooses by itself, for warps: the paper's future work"],
    )
    for case in bench.cases:
        seconds = [bench.count(case, "collective", "trust", {"chunk": chunk}).seconds for chunk in (*CHUNKS, AUTO)]
        speed = [seconds[0] / s for s in seconds]
        figure.rows.append([case.name, _density(bench, case), 1e3 * seconds[0], *speed, chosen_chunk(bench, case)])
    series: dict[str, Any] = {row["graph"]: _by_chunk(row) for row in figure.records()}
    figure.plot = Plot("lines", [str(c) for c in CHUNKS], series, "vertices a chunk", "speed over 1", one=True)
    best = [f"{row['graph']} {row['auto'] / max(_by_chunk(row)):.2f}" for row in figure.records()]
    figure.notes.append(f"the launch's own choice, times as fast as the best fixed chunk: {', '.join(best)}")
    return figure


def _density(bench: Bench, case: Case) -> float:
    """Edges a vertex."""
    block = bench.block(case, "collective")
    return block.edges / max(1, block.rows)


def _by_chunk(row: dict[str, Any]) -> list[Any]:
    return [row[str(chunk)] for chunk in CHUNKS if str(chunk) in row]


def _sparsest_first(figure: Figure) -> list[dict[str, Any]]:
    return sorted(figure.records(), key=lambda row: float(row["edges a vertex"]))


def _larger_chunks(figure: Figure) -> Finding:
    row = _sparsest_first(figure)[0]
    speeds = _by_chunk(row)
    return Finding(f"{row['graph']}: {max(speeds):.2f} times at best", max(speeds) > speeds[0], [max(speeds)])


def _single_rows(figure: Figure) -> Finding:
    rest = {row["graph"]: _by_chunk(row)[1:] for row in _sparsest_first(figure)[1:]}
    text = ", ".join(f"{name} {spread(speeds)}" for name, speeds in rest.items())
    return Finding(f"larger chunks, times as fast: {text}", all(max(speeds) < NOISE for speeds in rest.values()))


def _balanced_alone(figure: Figure) -> Finding:
    best = {row["graph"]: CHUNKS[_by_chunk(row).index(min(_by_chunk(row)))] for row in _sparsest_first(figure)}
    text = ", ".join(f"{chunk} ({name})" for name, chunk in best.items())
    return Finding(f"best balanced at {text}", set(list(best.values())[1:]) == {1})


OTHERS = "on the other graphs a chunk of 1 is best"
CHUNK_SIZE = (
    Claim(
        "sparsest", "on the sparsest graphs larger chunks are 5 to 27 % faster (3D: 7 vertices)", _larger_chunks,
        "a chunk of 1 is fastest on the sparsest graph", Published(1.05, 1.27, 1.1), on="cuda",
    ),
    Claim("others", OTHERS, _single_rows, f"a larger chunk is {NOISE:g} times as fast, on any of them", on="cuda"),
    Claim("others", OTHERS, _balanced_alone, "a larger chunk is better balanced, on any of them", on="cpu"),
)  # fmt: skip


def chosen_chunk(bench: Bench, case: Case) -> int:
    """The chunk of warps that a GPU's launch of `trust` takes for a graph in collective order."""
    return chunks(launch_of(bench.task(case, "collective"), "trust"))[0]


def _chunks_scheduled(bench: Bench) -> Figure:
    figure = Figure(
        "Longest over mean team when rows are taken in chunks (TRUST, figure 8)",
        {"graph": "", "edges a vertex": ".1f", "rows": ",d", "teams": ",d"}
        | {f"{chunk}": ".3f" for chunk in CHUNKS}
        | {"auto": ".3f", "chosen": "d"},
        notes=[
            "the order in which free teams take rows, of what each row hashes and looks up; order collective",
            f"larger chunks also need fewer atomic additions, 1 / chunk of them: what that gains {NEEDS_GPU}",
            "auto, chosen: the chunk that a launch on so many teams would choose: the paper's future work",
        ],
        proxy="a model: the longest team of a schedule, in place of time",
    )
    for case in bench.cases:
        costs = row_costs(bench.block(case, "collective"))
        teams = max(2, min(TEAMS, len(costs) // ROWS_A_TEAM))
        ideal = max(1.0, int(costs.sum()) / teams)
        automatic = chunk_rows(len(costs), float(costs.mean()) if len(costs) else None, teams)
        longest = [makespan(costs, teams, chunk) / ideal for chunk in (*CHUNKS, automatic)]
        figure.rows.append([case.name, _density(bench, case), len(costs), teams, *longest, automatic])
    series: dict[str, Any] = {row["graph"]: _by_chunk(row) for row in figure.records()}
    figure.plot = Plot("lines", [str(c) for c in CHUNKS], series, "vertices a chunk", "longest / mean team", one=True)
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
