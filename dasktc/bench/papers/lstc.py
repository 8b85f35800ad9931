"""LSTC's tables 3, 4, 6 and 8 and figure 7: removal of proxies, assignment of vertices to parts, tile width.

Tamboli and Jatala, "LSTC", ICPE 2026, doi:10.1145/3777884.3797002.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from dasktc.api.count import build
from dasktc.backends.csr import on_host
from dasktc.bench.measure import StageClock
from dasktc.bench.papers.bench import NEEDS_GPU, ONE_THREAD, Bench
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import EVEN, Case
from dasktc.bench.papers.lanes import lists_of
from dasktc.executors.local import LocalExecutor
from dasktc.options import Options
from dasktc.registry import ASSIGNMENTS

__all__ = [
    "ASSIGNED",
    "EDGES_REMOVED",
    "OCCUPANCY",
    "TILE_WIDTH",
    "TRICORE",
    "VERTICES_REMOVED",
    "assignments",
    "edges_removed",
    "resident_blocks",
    "tile_width",
    "tiled_probes",
    "vertices_removed",
]

TRICORE = "TriCore's method by this program's kernel tcstream"
"""What stands for TriCore, whose program is not here."""
UNDIVIDED = "tcstream, undivided"
"""What stands for TriCore in table 6."""
PARTS, DEALT = 4, 2
"""Parts of tables 3 and 4, and of table 6."""
WIDTHS = (64, 128, 256, 512, 1024)
RESIDENT = {64: (16, 25), 128: (12, 12), 256: (6, 6), 512: (3, 3), 1024: (1, 1)}
"""Thread blocks of table 8 by vertices in shared memory, and as many as registers alone allow; its GPU holds 16."""
ALIKE = 1.25
"""Times as long from which on two kernels do not take about as long."""
METIS_EDGES = 1 << 23
"""Most edges of a graph that METIS deals out here."""
CAPACITY = 12, 4
"""Bytes of a vertex and of an edge in a part's block."""


# tables 3 and 4


def vertices_removed(bench: Bench) -> Figure:
    """Table 3: vertices of each part before and after the transformation."""
    return _removed(bench, 0, "vertices", "V")


def edges_removed(bench: Bench) -> Figure:
    """Table 4: edges of each part before and after the transformation."""
    return _removed(bench, 2, "edges", "E")


def _removed(bench: Bench, field: int, items: str, letter: str) -> Figure:
    table = 3 if items == "vertices" else 4
    figure = Figure(
        f"{items.capitalize()} of {PARTS} random parts with proxies, before and after removal (LSTC, table {table})",
        {"graph": "", "part": "", f"{letter}_ind": ",d", f"{letter}_res": ",d"}
        | {"MB before": ".2f", "MB after": ".2f", "left": ".4f"},
    )  # fmt: skip
    for case in bench.cases:
        parts = bench.proxies(case, PARTS)
        sizes = [(part[field], part[field + 1]) for part in parts]
        sizes.append((sum(size for size, _ in sizes), sum(rest for _, rest in sizes)))
        for name, (size, rest) in zip([*map(str, range(len(parts))), "total"], sizes, strict=True):
            memory = [n * CAPACITY[table - 3] / 1e6 for n in (size, rest)]
            figure.rows.append([case.name, name, size, rest, *memory, rest / size if size else None])
    totals: list[Any] = [row for row in figure.rows if row[1] == "total"]
    shares = {str(row[0]): row[6] for row in totals if row[6] is not None}
    series: dict[str, Any] = {"before": [1.0] * len(shares), "after": list(shares.values())}
    figure.plot = Plot("bars", list(shares), series, "", f"share of the {items}")
    return figure


def _fewer(even: bool) -> Callable[[Figure], Finding]:
    """Percentages that are removed, of the graphs without hubs or of the others."""

    def find(figure: Figure) -> Finding:
        rows = [row for row in figure.records() if row["part"] == "total" and row["left"] is not None]
        fewer = {row["graph"]: 100 * (1 - row["left"]) for row in rows if row["graph"].startswith(EVEN) is even}
        text = ", ".join(f"{share:.1f} % fewer on {name}" for name, share in fewer.items())
        return Finding(text or "no such graph", min(fewer.values()) > 0 if fewer else None, list(fewer.values()))

    return find


def _removal(items: str, published: Published) -> tuple[Claim, ...]:
    text = f"fewer {items} in all parts together, by {published.least:g} to {published.most:g} %"
    hubs, none = f"{text}, on web and social graphs", f"{text}; the paper has no graph of even degrees"
    return (
        Claim("with hubs", hubs, _fewer(even=False), published=published, definition=True),
        Claim("without hubs", none, _fewer(even=True), published=published, definition=True),
    )


VERTICES_REMOVED = _removal("vertices", Published(27, 42, 1.25, " %"))
EDGES_REMOVED = _removal("edges", Published(5, 36, 1.25, " %"))
"""What is removed is no more than there was: the direction is so by definition."""


# table 6


def assignments(bench: Bench) -> Figure:
    """Table 6: LSTC with vertices dealt out at random, in contiguous ranges, and by METIS."""
    clock = "wall seconds" if bench.cuda else "CPU seconds"
    figure = Figure(
        f"{DEALT} parts, by how vertices are dealt out to them (LSTC, table 6; {clock})",
        {"graph": "", "assign": "", "partition": ".3f", "kernel": ".4f", "total": ".3f"},
        notes=[
            "partition: the stages plan and blocks; kernel lstc, parts one after another",
            f"{UNDIVIDED}: TriCore's method, a binary search an edge with the top of the search tree in shared memory, "
            "by kernel tcstream on the whole graph; TriCore's own partition of its edge list is not here",
        ],
        proxy="" if bench.cuda else ONE_THREAD,
    )
    for case in bench.cases[: 2 if bench.quick else None]:
        for assignment in ASSIGNMENTS:
            if assignment == "metis" and (missing := _no_metis(bench, case)):
                figure.notes.append(f"{case.name}, metis: {missing}")
                continue
            options = Options("lstc", "proxy", DEALT, 1, assign=assignment, backend=bench.backend)
            figure.rows.append([case.name, assignment, *_partitioned(bench, case, options, f"parts by {assignment}")])
        options = Options("tcstream", "whole", splits=1, backend=bench.backend)
        figure.rows.append([case.name, UNDIVIDED, *_partitioned(bench, case, options, "undivided")])
    rows: dict[tuple[Any, Any], list[Any]] = {(row[0], row[1]): row[2:] for row in figure.rows}
    names = list(dict.fromkeys(str(row[0]) for row in figure.rows))
    series: dict[str, Any] = {
        f"{assignment}, {phase}": [rows[name, assignment][k] if (name, assignment) in rows else None for name in names]
        for assignment in (*ASSIGNMENTS, UNDIVIDED)
        for k, phase in enumerate(("partition", "kernel"))
    }
    figure.plot = Plot("bars", names, series, "", clock, log=True)
    return figure


def _no_metis(bench: Bench, case: Case) -> str:
    """Return why METIS cannot be used; empty where it can."""
    if find_spec("pymetis") is None:
        return "not installed: pip install 'dasktc[metis]'"
    edges = bench.block(case).edges
    return f"left out, it takes minutes for {edges:,} edges" if edges > METIS_EDGES else ""


def _partitioned(bench: Bench, case: Case, options: Options, label: str) -> tuple[float, float, float]:
    """Measure the seconds of partitioning, of the kernel, and of both."""
    clock = StageClock(time.perf_counter if bench.cuda else time.process_time)
    graph = build(LocalExecutor(), case.source(), options, clock)
    clock("count", 0, 1)
    result = graph.triangle_count()
    bench.check(case, f"{options.kernel}, {label}", result.triangles)
    partition = clock.seconds["plan"] + clock.seconds["blocks"]
    kernel = sum(record.count.seconds for record in result._records)
    return partition, kernel, partition + kernel


def _ways(figure: Figure, first: str, second: str, column: str) -> list[tuple[float, float]]:
    """A column's cells for two ways, of the graphs that have both."""
    cells = {(row["graph"], row["assign"]): row[column] for row in figure.records()}
    names = dict.fromkeys(name for name, _ in cells)
    return [(cells[n, first], cells[n, second]) for n in names if cells.get((n, first)) and cells.get((n, second))]


def _metis_partition(figure: Figure) -> Finding:
    ratios = [metis / near for metis, near in _ways(figure, "metis", "contiguous", "partition")]
    if not ratios:
        return Finding("no graph was dealt out by METIS: the notes say why")
    return Finding(f"{spread(ratios, '.1f')} times as long", min(ratios) > 1, ratios)


def _metis_kernel(figure: Figure) -> Finding:
    ratios = [max(pair) / min(pair) for pair in _ways(figure, "metis", "contiguous", "kernel")]
    if not ratios:
        return Finding("no graph was dealt out by METIS: the notes say why")
    return Finding(f"longest over shortest {spread(ratios)}", max(ratios) < ALIKE, ratios)


def _tricore(figure: Figure) -> Finding:
    ratios = [theirs / ours for theirs, ours in _ways(figure, UNDIVIDED, "contiguous", "kernel")]
    faster = sum(ratio > 1 for ratio in ratios)
    text = f"than its method: {spread(ratios)} times as fast, faster on {faster} of {len(ratios)}"
    return Finding(text, 2 * faster > len(ratios) if ratios else None, ratios)


ASSIGNED = (
    Claim(
        "METIS partitions", "METIS takes 18 to 54 times as long to partition as contiguous ranges", _metis_partition,
        "it takes no longer, on any graph", Published(17.7, 54.1),
    ),
    Claim(
        "METIS counts", "the kernel takes about as long with either (within 1.12 times)", _metis_kernel,
        f"one takes {ALIKE:g} times as long as the other, on any graph", Published(1, 1.12, 1.1),
    ),
    Claim(
        "TriCore", "the kernel on contiguous parts is faster than TriCore's on most graphs (3 of 5; 0.4 to 2.1 times)",
        _tricore, "it is faster on half of the graphs or fewer", Published(0.44, 2.13, 1.25), on="cuda",
        proxy=TRICORE,
    ),
)  # fmt: skip


# figure 7


def tile_width(bench: Bench) -> Figure:
    """Figure 7: vertices of the neighbourhood in shared memory."""
    figure = Figure(
        "Time by vertices in shared memory over that with 128 (LSTC, figure 7)"
        if bench.cuda
        else "Searches by tile width over wedges (LSTC, figure 7)",
        {"graph": "", "rows above 128": ".4f"} | {str(width): ".3f" for width in WIDTHS},
        notes=["order degree; " + ("a tile of as many entries as the block has threads, as in the paper" if bench.cuda
               else f"every wedge is searched once a tile; what shared memory costs, and time: {NEEDS_GPU}")],
        proxy="" if bench.cuda else "searches, in place of time",
    )  # fmt: skip
    searched: dict[str, list[float]] = {}
    for case in bench.cases:
        block = bench.block(case)
        row, lists = np.diff(on_host(block.offsets)), lists_of(block)
        long = float((row > 128).mean()) if block.edges else 0.0
        searched[case.name] = tiled_probes(row[lists.row], lists.size)
        figure.rows.append([case.name, long, *(_timed(bench, case) if bench.cuda else searched[case.name])])
    values: dict[str, list[Any]] = {str(row[0]): row[2:] for row in figure.rows}
    up = "time over 128" if bench.cuda else "searches a wedge"
    figure.plot = Plot("lines", [str(w) for w in WIDTHS], dict(values), "vertices in shared memory", up, one=True)
    if bench.cuda:
        figure.why["beyond 128"] = f"{_wider(values, searched)}; {_held()}"
    else:
        most = max(1 - min(v) / v[1] for v in values.values() if v[1])
        figure.why["beyond 128"] = f"beyond 128 searches fall by {100 * most:.1f} % at most"
    return figure


def _to_128(figure: Figure) -> Finding:
    gains = {row["graph"]: row["64"] / row["128"] for row in figure.records() if row["rows above 128"]}
    text = ", ".join(f"64 takes {gain:.2f} times what 128 takes on {name}" for name, gain in gains.items())
    return Finding(text or "no row is as long", min(gains.values()) > 1 if gains else None)


def _beyond_128(figure: Figure) -> Finding:
    times = {row["graph"]: [row[str(w)] / row["128"] for w in WIDTHS if w > 128] for row in figure.records()}
    text = ", ".join(f"{name} {spread(ratios)}" for name, ratios in times.items())
    return Finding(f"times 128: {text}", all(min(ratios) > 1 for ratios in times.values()))


NARROW = "faster from 64 to 128, where a row then fits, on graphs with such rows"
TILE_WIDTH = (
    Claim("to 128", NARROW, _to_128, "64 is as fast as 128 on any graph with rows above 128", on="cuda"),
    Claim("to 128", NARROW, _to_128, on="cpu", definition=True),
    Claim(
        "beyond 128", "beyond 128 it is slower: less occupancy, and most rows are shorter", _beyond_128,
        "a wider tile is as fast, on any graph", on="cuda",
    ),
)  # fmt: skip
"""A wider tile never takes more searches: that they fall is so by definition."""


def _wider(times: dict[str, list[Any]], searched: dict[str, list[float]]) -> str:
    """Say what tiles wider than 128 bring, and why: a wedge takes fewer searches where rows exceed a tile."""
    return ", ".join(
        f"{name} {spread(v[2:])} (searches a wedge {searched[name][1]:.2f} at 128, {searched[name][-1]:.2f} at 1024)"
        for name, v in times.items()
    )


def _held() -> str:
    """Say how many threads a multiprocessor holds, by tile width."""
    from dasktc.bench.papers.device import occupancy

    residency = {w: occupancy("lstc", "lstc_rows", {"TILE": w, "THREADS": w}, w) for w in WIDTHS}
    return "; ".join(f"{width} wide: {blocks}" for width, blocks in residency.items())


def _timed(bench: Bench, case: Case) -> list[float]:
    seconds = [bench.count(case, "degree", "lstc", {"TILE": width, "THREADS": width}).seconds for width in WIDTHS]
    return [s / seconds[WIDTHS.index(128)] for s in seconds]


def tiled_probes(a: Any, b: Any) -> list[float]:
    """Searches in tiles over wedges, by width: Σ |row(v)| ⌈|row(u)| / width⌉ over Σ |row(v)|.

    Parameters
    ----------
    a, b : array of int64, shape (edges,)
        |row(u)| and |row(v)| of each edge (u, v).
    """
    wedges = int(b.sum())
    return [int((b * -(-a // width)).sum()) / wedges if wedges else 1.0 for width in WIDTHS]


# table 8


def resident_blocks(bench: Bench) -> Figure:
    """Table 8: thread blocks that a multiprocessor holds, by vertices in shared memory."""
    figure = Figure(
        "Thread blocks of LSTC's kernel that a multiprocessor holds, by vertices in shared memory (LSTC, table 8)",
        {"vertices": "", "bytes of the tile": ",d", "registers a thread": "d", "blocks": "d", "paper": "d"}
        | {"paper, by registers": "d", "over that": ".2f"},
        notes=["a tile of as many entries as the block has threads, as in the paper; registers, and so blocks, are the "
               + ("GPU's" if bench.cuda else f"GPU's: {NEEDS_GPU}")],
        graphs=["none: the kernel alone decides"],
    )  # fmt: skip
    for width, (published, limit) in RESIDENT.items():
        registers, blocks = _resident(width) if bench.cuda else (None, None)
        ratio = blocks / limit if blocks is not None else None
        figure.rows.append([str(width), 4 * width, registers, blocks, published, limit, ratio])
    series: dict[str, Any] = {name: [row[name] for row in figure.records()] for name in ("blocks", "paper")}
    figure.plot = Plot("bars", [str(width) for width in RESIDENT], series, "vertices in shared memory", "blocks")
    return figure


def _resident(width: int) -> tuple[int, int]:
    """Registers of a thread, and resident blocks of so many threads and as wide a tile."""
    from dasktc.bench.papers.device import occupancy

    residency = occupancy("lstc", "lstc_rows", {"TILE": width, "THREADS": width}, width)
    return residency.registers, residency.threads // width


def _fewer_blocks(figure: Figure) -> Finding:
    blocks = figure.column("blocks")
    if not blocks:
        return Finding(NEEDS_GPU)
    return Finding(", ".join(map(str, blocks)), numbers=figure.column("over that"))


OCCUPANCY = (
    Claim(
        "occupancy", "from 64 to 1,024 vertices 16, 12, 6, 3 and 1 thread blocks fit a multiprocessor, whose registers "
        "hold 25 at 64",
        _fewer_blocks, published=Published(1, 1, 1.25, " of what registers hold in the paper"), on="cuda",
        definition=True,
    ),
)  # fmt: skip
"""A block of twice the threads takes twice the registers: that fewer fit is so by definition."""
