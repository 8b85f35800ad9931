"""TRUST's figures about its hash table: 3 (cached levels), 4 (construction), 12 (ablation).

Pandey et al., TPDS 2021, doi:10.1109/TPDS.2021.3064892. On the CPU the method runs without thread layouts: CO is
then its larger tables alone, and VC nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import geometric_mean, mean
from typing import Any

from dasktc.backends.kernel import SMALL_ROW
from dasktc.bench.papers.bench import NEEDS_GPU, ONE_THREAD, Bench
from dasktc.bench.papers.figure import NOISE, Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import EVEN, Case
from dasktc.bench.papers.lanes import at_most, hot_bytes, reads_a_lookup
from dasktc.bench.papers.loops import BUILD, LOOK_UP, ONE_SIZE, WALK, hashed, level_reads

__all__ = ["ABLATION", "CACHED_LEVELS", "CONSTRUCTION", "ablation", "cached_levels", "construction"]

LEVELS = (1, 2, 3, 4, 6, 8, 12)
CACHED = 6
"""Levels that the paper caches."""
BUCKETS = {"BLOCK_BUCKETS": 1024, "WARP_BUCKETS": 32}
"""Macros of the CUDA kernel: the paper's numbers of buckets, fewer than the kernel's own."""
STEPS = {WALK: {"STEPS": 0}, BUILD: {"STEPS": 1}, LOOK_UP: {"STEPS": 2}}
"""Macros of the CUDA kernel."""
BARE = {"CO": 0, "VC": 0, "lanes": 32}
DESIGNS = EDGE, VERTEX = "edge-centric", "vertex-centric"
MORE_GAIN, MORE_READS = 1.05, 0.01
"""Speed, and share of the reads, from which on more levels than the paper's would be worth it."""
CO_GAIN = 1.05
"""Speed from which on CO is worth it on skewed graphs, and up to which it does nothing on others."""
PARTS = ("construction", "intersection", "rest")


# figure 3


def cached_levels(bench: Bench) -> Figure:
    """Figure 3: how many levels of the buckets are worth shared memory."""
    return _levels_timed(bench) if bench.cuda else _levels_read(bench)


def _levels_read(bench: Bench) -> Figure:
    figure = Figure(
        "Bucket reads answered by the first levels: what caching them could serve (TRUST, figure 3)",
        {"graph": "", "reads": ",d"} | {f"{level}": ".4f" for level in LEVELS},
        notes=["order collective"],
        proxy="reads that a level answers, in place of time",
    )
    for case in bench.cases:
        reads = level_reads(bench.task(case, "collective"), LEVELS[-1] + 1)
        total = int(reads.sum())
        if not total:
            figure.notes.append(f"{case.name}: no bucket with an entry is ever read")
            continue
        figure.rows.append([case.name, total, *(float(reads[:level].sum()) / total for level in LEVELS)])
    plotted = {str(row[0]): row[2:] for row in figure.rows}
    figure.plot = Plot("lines", [str(level) for level in LEVELS], dict[str, Any](plotted), "levels cached", "of reads")
    return figure


def _levels_timed(bench: Bench) -> Figure:
    figure = Figure(
        "Speed over one level in shared memory (TRUST, figure 3)",
        {"graph": "", "ms at 1": ".3f"} | {f"{level}": ".3f" for level in LEVELS},
        notes=["order collective; buckets as many as the paper's, which hold several entries"],
    )
    for case in bench.cases:
        seconds = [bench.count(case, "collective", "trust", BUCKETS | {"LEVELS": level}).seconds for level in LEVELS]
        figure.rows.append([case.name, 1e3 * seconds[0], *(seconds[0] / s for s in seconds)])
    speeds: dict[str, list[Any]] = {str(row[0]): row[2:] for row in figure.rows}
    figure.plot = Plot("lines", [str(n) for n in LEVELS], dict(speeds), "levels cached", "speed over 1 level", one=True)
    return figure


def _more_levels(figure: Figure) -> list[str]:
    """Columns of the levels beyond those that the paper caches."""
    return [name for name in figure.columns if name.isdigit() and int(name) > CACHED]


def _sparse_gain(figure: Figure) -> Finding:
    sparse = {name: s for name, s in figure.by("graph", str(CACHED)).items() if name.startswith(("RA", "RM"))}
    told = ", ".join(f"{name} {s:.2f} times at {CACHED}" for name, s in sparse.items())
    return Finding(told or "no such graph", min(sparse.values()) > NOISE if sparse else None)


def _no_more_gain(figure: Figure) -> Finding:
    gains = [max(row[name] for name in _more_levels(figure)) / row[str(CACHED)] for row in figure.records()]
    return Finding(f"the best of more levels is {spread(gains)} times as fast as {CACHED}", max(gains) < MORE_GAIN)


def _no_more_reads(figure: Figure) -> Finding:
    beyond = [1 - row[str(CACHED)] for row in figure.records()]
    said = f"levels beyond the sixth answer {spread([100 * b for b in beyond], '.3f')} % of the reads"
    return Finding(said, max(beyond) < MORE_READS if beyond else None)


CACHED_LEVELS = (
    Claim(
        "sparse graphs", "speed climbs with cached levels on RA, RM, CP and GH", _sparse_gain,
        f"{CACHED} levels are at most {NOISE:g} times as fast as one on RA or on RM", on="cuda",
    ),
    Claim(
        "no more levels", "6 levels are cached; more would cost occupancy and gain nothing", _no_more_gain,
        f"more levels are {MORE_GAIN:g} times as fast as {CACHED}, on any graph", on="cuda",
    ),
    Claim(
        "no more levels", "6 levels are cached; more would cost occupancy and gain nothing", _no_more_reads,
        f"levels beyond the sixth answer {100 * MORE_READS:g} % of the reads, on any graph", on="cpu",
    ),
)  # fmt: skip


# figure 4


def construction(bench: Bench) -> Figure:
    """Figure 4: time to build hash tables, one per edge against one per vertex."""
    figure = Figure(
        f"Shares of the time: building tables, intersecting, the rest (TRUST, figure 4; {bench.clock})",
        {
            "graph": "", "design": "", "seconds": ".4f",
            "construction": ".4f", "intersection": ".4f", "rest": ".4f", "times as long": ".1f",
        },
        notes=[
            "each share is the time of the kernel up to a step less that up to the one before; order collective",
            "times as long: construction, over that of the vertex-centric design",
        ],
        proxy="" if bench.cuda else ONE_THREAD,
    )  # fmt: skip
    for case in bench.cases:
        steps = {per_edge: _stepwise(bench, case, per_edge) for per_edge in (True, False)}
        for per_edge, (rest, build, meet) in steps.items():
            whole = rest + build + meet
            ratio = build / steps[False][1] if steps[False][1] else None
            design = EDGE if per_edge else VERTEX
            shares = [part / whole if whole else 0.0 for part in (build, meet, rest)]
            figure.rows.append([case.name, design, whole, *shares, ratio])
    names = [f"{case.name}, {design}" for case in bench.cases for design in ("edge", "vertex")]
    parts: dict[str, Any] = {what: [row[what] for row in figure.records()] for what in PARTS}
    figure.plot = Plot("stacked", names, parts, "", "share of the time")
    return figure


def _shares(figure: Figure, part: str) -> tuple[list[float], list[float]]:
    """Percentages of the time that a part takes, edge-centric and vertex-centric."""
    shares = {design: [100 * row[part] for row in figure.records() if row["design"] == design] for design in DESIGNS}
    return shares[EDGE], shares[VERTEX]


def _edge_share(figure: Figure) -> Finding:
    edge = _shares(figure, "construction")[0]
    return Finding(f"{spread(edge, '.1f')} %", numbers=[max(edge)])


def _vertex_share(figure: Figure) -> Finding:
    built, met = _shares(figure, "construction")[1], _shares(figure, "intersection")[1]
    return Finding(f"{spread(built, '.1f')} %", all(b < m for b, m in zip(built, met, strict=True)), [max(built)])


def _build_ratio(figure: Figure) -> Finding:
    ratios = [row["times as long"] for row in figure.records() if row["design"] == EDGE and row["times as long"]]
    if not ratios:
        return Finding("too short to tell")
    return Finding(f"{spread(ratios, '.1f')} times less, {mean(ratios):.1f} on average", numbers=[mean(ratios)])


CONSTRUCTION = (
    Claim(
        "edge-centric share", "construction takes 1 to 57 % of an edge-centric count", _edge_share,
        published=Published(57, 57, 1.5, " % at most"), definition=True,
    ),
    Claim(
        "vertex-centric share",
        "construction takes 0.007 to 16 % of a vertex-centric count, where intersection is the bottleneck",
        _vertex_share,
        "it takes as long as intersection, on any graph", Published(16, 16, 1.5, " % at most"),
    ),
    Claim(
        "ratio", "a table a vertex is built in 12.9 to 199.6 times less time than a table an edge, 92 on average",
        _build_ratio, published=Published(92, 92, unit=" on average"), definition=True,
    ),
)  # fmt: skip
"""A table an edge is built as often as a table a vertex, and again: that it takes longer is so by definition. The
bands are on the largest shares and the average: the published ranges reach over factors of 57 and 2,300."""


def _stepwise(bench: Bench, case: Case, per_edge: bool) -> tuple[float, float, float]:
    """Measure the seconds of construction, of intersection and of the rest."""
    task = bench.task(case, "collective")

    def until(step: int) -> float:
        if bench.cuda:
            return bench.part(case, "collective", "trust", STEPS[step] | {"VH": int(not per_edge)})
        return bench.timed(lambda: hashed(task, step, per_edge).seconds)

    walk, built = until(WALK), until(BUILD)
    whole = until(LOOK_UP)
    return min(walk, built), max(0.0, built - walk), max(0.0, whole - built)


# figure 12


def ablation(bench: Bench) -> Figure:
    """Figure 12: VH, CO, VC and RO, one after another, over H-INDEX."""
    runs = {case.name: _stages(bench, case) for case in bench.cases}
    names = list(next(iter(runs.values())))
    figure = Figure(
        f"Speed over H-INDEX (BS), one optimization after another (TRUST, figure 12; {bench.clock})",
        {"graph": "", "BS, ms": ".2f"} | {name: ".3f" for name in names},
        notes=[
            "BS: hindex without bins; up to VC in the caller's order of ids; RO IN, OUT: orders indegree, collective",
            *([] if bench.cuda else [f"CO: its larger tables alone; its teams of threads, and VC: {NEEDS_GPU}"]),
        ],
        proxy="" if bench.cuda else ONE_THREAD,
    )
    for name, stages in runs.items():
        base = stages["BS"] or 0.0
        figure.rows.append([name, 1e3 * base, *(base / s if s else None for s in stages.values())])
    speeds = {name: [base[name] and _over(base, name) for base in runs.values()] for name in names}
    shown: dict[str, Any] = {name: values for name, values in speeds.items() if name != "BS"}
    figure.plot = Plot("bars", list(runs), shown, "", "speed over H-INDEX", log=True, one=True)
    figure.why["better order"] = _reads_by_order(bench)
    if bench.cuda:
        limits = [at_most(bench, case, "none", runs[case.name]["CO"] or 1.0) for case in bench.cases]
        figure.why["VC"] = f"fewer idle lanes could bring {', '.join(limits)}"
    return figure


def _over(stages: dict[str, float | None], name: str) -> float | None:
    base, seconds = stages["BS"], stages[name]
    return base / seconds if base and seconds else None


def _stages(bench: Bench, case: Case) -> dict[str, float | None]:
    """Seconds with each optimization added; None where this backend does not have it."""
    stages: dict[str, float | None] = {
        "BS": bench.count(case, "none", "hindex-unbinned" if bench.cuda else "hindex").seconds
    }
    if bench.cuda:
        for name, macros in {"VH": BARE, "CO": {"VC": 0, "lanes": 32}, "VC": {"VC": 1}}.items():
            stages[name] = bench.count(case, "none", "trust", macros).seconds
        for name, order in (("RO (IN)", "indegree"), ("RO (OUT)", "collective")):
            stages[name] = bench.count(case, order, "trust").seconds
        return stages
    stages["VH"] = _hashed_seconds(bench, case, "none", ONE_SIZE)
    stages["CO"] = _hashed_seconds(bench, case, "none")
    stages["VC"] = None
    return stages | {
        "RO (IN)": _hashed_seconds(bench, case, "indegree"),
        "RO (OUT)": _hashed_seconds(bench, case, "collective"),
    }


def _hashed_seconds(bench: Bench, case: Case, order: str, small_row: int = SMALL_ROW) -> float:
    task = bench.task(case, order)

    def once() -> float:
        counted = hashed(task, LOOK_UP, False, small_row)
        bench.check(case, f"hashing in {order} order", counted.triangles)
        return counted.seconds

    return bench.timed(once)


def _reads_by_order(bench: Bench) -> str:
    """Say what each order has to read."""
    orders = ("indegree", "collective")
    reads = [" and ".join(f"{reads_a_lookup(bench, case, order):.3f}" for order in orders) for case in bench.cases]
    hot = [" and ".join(f"{hot_bytes(bench, case, order) / 1e3:,.0f}" for order in orders) for case in bench.cases]
    told = "; ".join(f"{name} {r}, {h} kB" for name, r, h in zip(bench.names, reads, hot, strict=True))
    return f"IN and OUT, bucket reads a lookup, and offsets of nine tenths of the lists: {told}"


def _gains(figure: Figure, name: str, *before: str) -> dict[str, float]:
    """Speed of an optimization over that of the one before it, the first of `before` that a graph has."""
    rows = [(row, next((row[b] for b in before if row[b]), None)) for row in figure.records()]
    return {row["graph"]: row[name] / base for row, base in rows if row[name] and base}


def _gain(name: str, *before: str) -> Callable[[Figure], Finding]:
    """Whether an optimization pays on average."""

    def find(figure: Figure) -> Finding:
        gains = list(_gains(figure, name, *before).values())
        if not gains:
            return Finding(NEEDS_GPU)
        gain = geometric_mean(gains)
        return Finding(f"{gain:.2f} times on average, {spread(gains)}", gain > 1, [gain])

    return find


def _co(figure: Figure) -> Finding:
    gains = _gains(figure, "CO", "VH")
    best = max(gains, key=lambda name: gains[name])
    here = f"{spread(list(gains.values()))} times, most on {best}"
    return Finding(here, gains[best] > CO_GAIN and not best.startswith(EVEN), [gains[best]])


def _on(graphs: tuple[str, ...], most: float, name: str, *before: str) -> Callable[[Figure], Finding]:
    """Whether an optimization gains no more than so much on any graph of a kind."""

    def find(figure: Figure) -> Finding:
        gains = {graph: gain for graph, gain in _gains(figure, name, *before).items() if graph.startswith(graphs)}
        told = ", ".join(f"{graph} {gain:.2f}" for graph, gain in gains.items())
        return Finding(told or "no such graph", max(gains.values()) <= most if gains else None, list(gains.values()))

    return find


def _better_order(figure: Figure) -> Finding:
    gains = _gains(figure, "RO (OUT)", "RO (IN)")
    faster = sum(gain > 1 for gain in gains.values())
    return Finding(f"so on {faster} of {len(gains)}", 2 * faster > len(gains))


ON_AVERAGE = "it is no faster than what it is added to, on average"
ABLATION = (
    Claim(
        "VH", "VH: 2.0 times on average, 0.95 to 3.5", _gain("VH", "BS"), ON_AVERAGE, Published(2.0, 2.0, 1.25),
        proxy="H-INDEX by this program's kernel",
    ),
    Claim(
        "CO", "CO: 18 times on highly skewed graphs", _co,
        f"it gains most on RM, RA or 3D, or {100 * (CO_GAIN - 1):.0f} % at most", Published(18, 18), on="cuda",
    ),
    Claim(
        "CO on even graphs", "CO: 1 % on graphs of small impact", _on(EVEN, CO_GAIN, "CO", "VH"),
        f"it gains more than {100 * (CO_GAIN - 1):.0f} % on RM, RA or 3D", Published(1.01, 1.01, 1.1), on="cuda",
    ),
    Claim(
        "VC", "VC: 1.5 times on average", _gain("VC", "CO"), ON_AVERAGE, Published(1.5, 1.5, 1.25), on="cuda",
    ),
    Claim(
        "VC on even graphs", "VC: slightly slower on RM and RA", _on(EVEN[:2], 1.0, "VC", "CO"),
        "it makes RM or RA faster", on="cuda",
    ),
    Claim(
        "RO (IN)", "RO (IN): 1.11 times on average", _gain("RO (IN)", "VC", "CO"), ON_AVERAGE,
        Published(1.11, 1.11, 1.1),
    ),
    Claim(
        "RO (OUT)", "RO (OUT): 1.18 times on average", _gain("RO (OUT)", "VC", "CO"), ON_AVERAGE,
        Published(1.18, 1.18, 1.1),
    ),
    Claim(
        "better order", "RO (OUT) is faster than RO (IN) on most graphs", _better_order,
        "it is faster on half of the graphs or fewer",
    ),
)  # fmt: skip
