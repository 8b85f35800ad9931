"""LSTC's tables 3, 4, 6 and figure 7: removal of proxies, assignment of vertices to parts, tile width.

Tamboli and Jatala, "LSTC", ICPE 2026, doi:10.1145/3777884.3797002.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import numpy as np

from dasktc.api.count import build
from dasktc.backends.csr import on_host
from dasktc.bench.papers.bench import NEEDS_GPU, Bench
from dasktc.bench.papers.figure import Figure, Plot, Statement, spread
from dasktc.bench.papers.graphs import Case
from dasktc.bench.papers.lanes import lists_of
from dasktc.executors.local import LocalExecutor
from dasktc.options import Options
from dasktc.registry import ASSIGNMENTS

__all__ = ["assignments", "edges_removed", "tile_width", "tiled_probes", "vertices_removed"]

UNDIVIDED = "tcstream, undivided"
"""What stands for TriCore in table 6."""
PARTS, DEALT = 4, 2
"""Parts of tables 3 and 4, and of table 6."""
WIDTHS = (64, 128, 256, 512, 1024)
METIS_EDGES = 1 << 23
"""Most edges of a graph that METIS deals out here."""
CAPACITY = 12, 4
"""Bytes of a vertex and of an edge in a part's block."""


# tables 3 and 4


def vertices_removed(bench: Bench) -> Figure:
    """Table 3: vertices of each part before and after the transformation."""
    return _removed(bench, 0, "vertices", "V", "27 to 42 %")


def edges_removed(bench: Bench) -> Figure:
    """Table 4: edges of each part before and after the transformation."""
    return _removed(bench, 2, "edges", "E", "5 to 36 %")


def _removed(bench: Bench, field: int, what: str, letter: str, published: str) -> Figure:
    table = 3 if what == "vertices" else 4
    figure = Figure(
        f"{what.capitalize()} of {PARTS} random parts with proxies, before and after removal (LSTC, table {table})",
        {"graph": "", "part": "", f"{letter}_ind": ",d", f"{letter}_res": ",d"}
        | {"MB before": ".2f", "MB after": ".2f", "left": ".4f"},
    )  # fmt: skip
    for case in bench.cases:
        parts = bench.proxies(case, PARTS)
        sizes = [(part[field], part[field + 1]) for part in parts]
        sizes.append((sum(before for before, _ in sizes), sum(after for _, after in sizes)))
        for name, (before, after) in zip([*map(str, range(len(parts))), "total"], sizes, strict=True):
            memory = [n * CAPACITY[table - 3] / 1e6 for n in (before, after)]
            figure.rows.append([case.name, name, before, after, *memory, after / before if before else None])
    totals: list[Any] = [row for row in figure.rows if row[1] == "total"]
    left = {str(row[0]): row[6] for row in totals if row[6] is not None}
    series: dict[str, Any] = {"before": [1.0] * len(left), "after": list(left.values())}
    figure.plot = Plot("bars", list(left), series, "", f"share of the {what}")
    shares = [100 * (1 - share) for share in left.values()]
    figure.statements = [
        Statement(
            f"fewer {what} in all parts together, on every graph, by {published}",
            f"{spread(shares, '.1f')} % fewer",
            min(shares, default=0.0) > 0,
        )
    ]
    return figure


# table 6


class _Clock:
    """A `progress` callback that notes the seconds of each stage: of this process, or on the wall with a GPU."""

    def __init__(self, cuda: bool) -> None:
        self._now = time.perf_counter if cuda else time.process_time
        self.seconds: dict[str, float] = {}
        self._stage, self._began = "", 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = self._now()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._began
        self._stage, self._began = stage, now


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
    )
    for case in bench.cases[: 2 if bench.quick else None]:
        for how in ASSIGNMENTS:
            if how == "metis" and (missing := _no_metis(bench, case)):
                figure.notes.append(f"{case.name}, metis: {missing}")
                continue
            partition, kernel = _dealt(bench, case, how)
            figure.rows.append([case.name, how, partition, kernel, partition + kernel])
        partition, kernel = _whole(bench, case)
        figure.rows.append([case.name, UNDIVIDED, partition, kernel, partition + kernel])
    rows: dict[tuple[Any, Any], list[Any]] = {(row[0], row[1]): row[2:] for row in figure.rows}
    names = list(dict.fromkeys(str(row[0]) for row in figure.rows))
    series: dict[str, Any] = {
        f"{how}, {what}": [rows[name, how][k] if (name, how) in rows else None for name in names]
        for how in (*ASSIGNMENTS, UNDIVIDED)
        for k, what in enumerate(("partition", "kernel"))
    }
    figure.plot = Plot("bars", names, series, "", clock, log=True)
    figure.statements = [*_dealt_said(names, rows), _against_tricore(names, rows, bench.cuda)]
    return figure


def _no_metis(bench: Bench, case: Case) -> str:
    """Return why METIS cannot be used; empty where it can."""
    if find_spec("pymetis") is None:
        return "not installed: pip install 'dasktc[metis]'"
    edges = bench.block(case).edges
    return f"left out, it takes minutes for {edges:,} edges" if edges > METIS_EDGES else ""


def _dealt(bench: Bench, case: Case, how: str) -> tuple[float, float]:
    """Measure the seconds of partitioning and of the kernel."""
    return _partitioned(bench, case, Options(bench.backend, "lstc", "proxy", DEALT, 1, assign=how), f"parts by {how}")


def _whole(bench: Bench, case: Case) -> tuple[float, float]:
    """Measure the same of TriCore's method, on the whole graph."""
    return _partitioned(bench, case, Options(bench.backend, "tcstream", "whole", splits=1), "undivided")


def _partitioned(bench: Bench, case: Case, options: Options, what: str) -> tuple[float, float]:
    clock = _Clock(bench.cuda)
    graph = build(LocalExecutor(), case.source(), options, clock)
    clock("count", 0, 1)
    result = graph.triangle_count()
    bench.check(case, f"{options.kernel}, {what}", result.triangles)
    partition = clock.seconds["plan"] + clock.seconds["blocks"]
    return partition, sum(record.count.seconds for record in result.records)


def _dealt_said(names: list[str], rows: dict[tuple[Any, Any], list[Any]]) -> list[Statement]:
    first = "METIS takes 18 to 54 times as long to partition as contiguous ranges"
    pairs = [(rows[n, "metis"], rows[n, "contiguous"]) for n in names if (n, "metis") in rows]
    if not pairs:
        return [Statement(first, "no graph was dealt out by METIS: the notes say why")]
    ratios = [metis[0] / near[0] for metis, near in pairs]
    kernels = [max(metis[1], near[1]) / min(metis[1], near[1]) for metis, near in pairs if metis[1] and near[1]]
    return [
        Statement(first, f"{spread(ratios, '.1f')} times as long", min(ratios) > 1),
        Statement(
            "the kernel takes about as long with either (within 1.12 times)",
            f"longest over shortest {spread(kernels)}",
            max(kernels, default=1.0) < 1.25,
        ),
    ]


def _against_tricore(names: list[str], rows: dict[tuple[Any, Any], list[Any]], cuda: bool) -> Statement:
    """Compare LSTC's kernel and TriCore's method, which the table's notes describe."""
    paper = "the kernel on contiguous parts is faster than TriCore's on most graphs (3 of 5; 0.4 to 2.1 times)"
    pairs = [(rows[name, UNDIVIDED][1], rows[name, "contiguous"][1]) for name in names]
    ratios = [theirs / ours for theirs, ours in pairs if ours]
    if not cuda or not ratios:
        return Statement(paper, f"{NEEDS_GPU}: on the CPU both are one method, without tiles or cached trees")
    faster = sum(ratio > 1 for ratio in ratios)
    here = f"than its method: {spread(ratios)} times as fast, faster on {faster} of {len(ratios)}"
    return Statement(paper, here, 2 * faster > len(ratios))


# figure 7


def tile_width(bench: Bench) -> Figure:
    """Figure 7: vertices of the neighbourhood in shared memory."""
    figure = Figure(
        "Time by vertices in shared memory over that with 128 (LSTC, figure 7)"
        if bench.cuda
        else "Searches by tile width over wedges, a count (LSTC, figure 7)",
        {"graph": "", "rows above 128": ".4f"} | {str(width): ".3f" for width in WIDTHS},
        notes=["order degree; " + ("a tile of as many entries as the block has threads, as in the paper" if bench.cuda
               else f"every wedge is searched once a tile; what shared memory costs, and time: {NEEDS_GPU}")],
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
    gain = {name: v[0] / v[1] for name, v in values.items() if v[1]}
    most = max(gain, key=lambda name: gain[name]) if gain else ""
    wider = "beyond 128 it is slower: less occupancy, and most rows are shorter"
    figure.statements = [
        Statement(
            "faster from 64 to 128, where a row then fits",
            f"64 takes {gain[most]:.2f} times what 128 takes on {most}" if gain else "no row is as long",
            gain[most] > 1 if gain else None,
            counted=not bench.cuda,
        ),
        Statement(wider, f"times 128: {_wider(values, searched)}; {_held()}", _all_slower(values))
        if bench.cuda
        else Statement(wider, f"{NEEDS_GPU}; beyond 128 searches fall by {_saved(values):.1f} % at most"),
    ]
    return figure


def _all_slower(values: dict[str, list[Any]]) -> bool:
    return all(min(v[2:]) > 1 for v in values.values())


def _wider(times: dict[str, list[Any]], searched: dict[str, list[float]]) -> str:
    """Say what tiles wider than 128 bring, and why: a wedge takes fewer searches where rows exceed a tile."""
    return ", ".join(
        f"{name} {spread(v[2:])} (searches a wedge {searched[name][1]:.2f} at 128, {searched[name][-1]:.2f} at 1024)"
        for name, v in times.items()
    )


def _held() -> str:
    """Say how many threads a multiprocessor holds, by tile width."""
    from dasktc.bench.papers.device import occupancy

    held = {w: occupancy("lstc", "lstc_rows", {"TILE": w, "THREADS": w}, w) for w in WIDTHS}
    return "; ".join(f"{width} wide: {of}" for width, of in held.items())


def _saved(values: dict[str, list[Any]]) -> float:
    shares: list[float] = [1 - min(v) / v[1] for v in values.values() if v[1]]
    return 100 * max(shares)


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
