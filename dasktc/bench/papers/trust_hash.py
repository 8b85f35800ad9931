"""TRUST's figures about its hash table: 3 (cached levels), 4 (construction), 12 (ablation).

Pandey et al., TPDS 2021, doi:10.1109/TPDS.2021.3064892. On the CPU the method runs without thread layouts: CO is
then its larger tables alone, and VC nothing.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import geometric_mean, mean
from typing import Any

from dasktc.backends.cpu.sizes import SMALL_ROW
from dasktc.bench.papers.bench import NEEDS_GPU, Bench
from dasktc.bench.papers.figure import Figure, Plot, Statement, spread
from dasktc.bench.papers.graphs import Case
from dasktc.bench.papers.lanes import at_most, hot_bytes, reads_a_lookup
from dasktc.bench.papers.loops import BUILD, LOOK_UP, ONE_SIZE, WALK, hashed, level_reads

__all__ = ["ablation", "cached_levels", "construction"]

LEVELS = (1, 2, 3, 4, 6, 8, 12)
CACHED = 6
"""Levels that the paper caches."""
STEPS = {WALK: {"STEPS": 0}, BUILD: {"STEPS": 1}, LOOK_UP: {"STEPS": 2}}
"""Macros of the CUDA kernel."""
BARE = {"CO": 0, "VC": 0}


# figure 3


def cached_levels(bench: Bench) -> Figure:
    """Figure 3: how many levels of the buckets are worth shared memory."""
    return _levels_timed(bench) if bench.cuda else _levels_read(bench)


def _levels_read(bench: Bench) -> Figure:
    figure = Figure(
        "Bucket reads answered by the first levels, a count: what caching them could serve (TRUST, figure 3)",
        {"graph": "", "reads": ",d"} | {f"{level}": ".4f" for level in LEVELS},
        notes=["order collective; the time that it saves " + NEEDS_GPU],
    )
    beyond: list[float] = []
    plotted: dict[str, list[float | None]] = {}
    for case in bench.cases:
        reads = level_reads(bench.task(case, "collective"), LEVELS[-1] + 1)
        total = int(reads.sum())
        if not total:
            figure.notes.append(f"{case.name}: no bucket with an entry is ever read")
            continue
        shares = [float(reads[:level].sum()) / total for level in LEVELS]
        figure.rows.append([case.name, total, *shares])
        beyond.append(1 - float(reads[:CACHED].sum()) / total)
        plotted[case.name] = [*shares]
    figure.plot = Plot("lines", [str(level) for level in LEVELS], plotted, "levels cached", "share of reads")
    figure.statements = [
        Statement("time falls with cached levels on RA, RM, CP and GH, hardly or not on others", NEEDS_GPU),
        Statement(
            "6 levels are cached; more would cost occupancy and gain nothing",
            f"levels beyond the sixth answer {spread([100 * b for b in beyond], '.3f')} % of the reads",
            max(beyond, default=0.0) < 0.01,
            counted=True,
        ),
    ]
    return figure


def _levels_timed(bench: Bench) -> Figure:
    figure = Figure(
        "Speed over one level in shared memory (TRUST, figure 3)",
        {"graph": "", "ms at 1": ".3f"} | {f"{level}": ".3f" for level in LEVELS},
        notes=["order collective"],
    )
    for case in bench.cases:
        seconds = [bench.count(case, "collective", "trust", {"LEVELS": level}).seconds for level in LEVELS]
        figure.rows.append([case.name, 1e3 * seconds[0], *(seconds[0] / s for s in seconds)])
    speeds: dict[str, list[Any]] = {str(row[0]): row[2:] for row in figure.rows}
    at, later = LEVELS.index(CACHED), LEVELS.index(CACHED) + 1
    sparse = {name: s[at] for name, s in speeds.items() if name.startswith(("RA", "RM"))}
    gains = {name: max(s[later:]) / s[at] for name, s in speeds.items()}
    figure.plot = Plot("lines", [str(n) for n in LEVELS], dict(speeds), "levels cached", "speed over 1 level", one=True)
    figure.statements = [
        Statement(
            "speed climbs with cached levels on RA and RM",
            ", ".join(f"{name} {s:.2f} times at 6" for name, s in sparse.items()),
            min(sparse.values()) > 1.0,
        ),
        Statement(
            "6 levels are cached; more gain nothing",
            f"the best of more levels is {spread(list(gains.values()))} times as fast as 6",
            max(gains.values()) < 1.05,
        ),
    ]
    return figure


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
    )  # fmt: skip
    for case in bench.cases:
        steps = {per_edge: _stepwise(bench, case, per_edge) for per_edge in (True, False)}
        for per_edge, (rest, build, meet) in steps.items():
            whole = rest + build + meet
            ratio = build / steps[False][1] if steps[False][1] else None
            design = "edge-centric" if per_edge else "vertex-centric"
            shares = [part / whole if whole else 0.0 for part in (build, meet, rest)]
            figure.rows.append([case.name, design, whole, *shares, ratio])
    edge: list[Any] = [row[3] for row in figure.rows[::2]]
    vertex: list[Any] = [row[3] for row in figure.rows[1::2]]
    ratios: list[Any] = [row[6] for row in figure.rows[::2] if row[6] is not None]
    names = [f"{case.name}, {design}" for case in bench.cases for design in ("edge", "vertex")]
    parts: dict[str, Any] = {
        what: [row[3 + k] for row in figure.rows] for k, what in enumerate(("construction", "intersection", "rest"))
    }
    figure.plot = Plot("stacked", names, parts, "", "share of the time")
    figure.statements = [
        Statement(
            "construction takes 1 to 57 % of an edge-centric count, 0.007 to 16 % of a vertex-centric one",
            f"{spread([100 * e for e in edge], '.1f')} % and {spread([100 * v for v in vertex], '.1f')} %",
            all(v < e for v, e in zip(vertex, edge, strict=True)),
        ),
        Statement(
            "a table a vertex is built in 12.9 to 199.6 times less time than a table an edge, 92 on average",
            f"{spread(ratios, '.1f')} times less, {mean(ratios):.1f} on average" if ratios else "too short to tell",
            min(ratios) > 1 if ratios else None,
        ),
    ]
    return figure


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
            "BS: kernel hindex; up to VC in the caller's order of ids; RO IN, OUT: orders indegree, collective",
            *([] if bench.cuda else [f"CO: its larger tables alone; its teams of threads, and VC: {NEEDS_GPU}"]),
        ],
    )
    for name, stages in runs.items():
        base = stages["BS"] or 0.0
        figure.rows.append([name, 1e3 * base, *(base / s if s else None for s in stages.values())])
    speeds = {name: [base[name] and _over(base, name) for base in runs.values()] for name in names}
    shown: dict[str, Any] = {name: values for name, values in speeds.items() if name != "BS"}
    figure.plot = Plot("bars", list(runs), shown, "", "speed over H-INDEX", log=True, one=True)
    before = "VC" if bench.cuda else "CO"
    figure.statements = [
        _gain("VH: 2.0 times on average, 0.95 to 3.5", runs, "VH", "BS"),
        _co(bench, runs),
        _vc(bench, runs),
        _gain("RO (IN): 1.11 times on average", runs, "RO (IN)", before),
        _gain("RO (OUT): 1.18 times on average", runs, "RO (OUT)", before),
        _better_order(bench, runs),
    ]
    return figure


def _vc(bench: Bench, runs: dict[str, dict[str, float | None]]) -> Statement:
    """State what virtual combination gains, and could gain at most."""
    said = _gain("VC: 1.5 times on average, slightly below 1 on RM and RA", runs, "VC", "CO")
    if not bench.cuda:
        return said
    limits = [at_most(bench, case, "none", runs[case.name]["CO"] or 1.0) for case in bench.cases]
    return replace(said, here=f"{said.here}; fewer idle lanes could bring {', '.join(limits)}")


def _over(stages: dict[str, float | None], name: str) -> float | None:
    base, seconds = stages["BS"], stages[name]
    return base / seconds if base and seconds else None


def _stages(bench: Bench, case: Case) -> dict[str, float | None]:
    """Seconds with each optimization added; None where this backend does not have it."""
    stages: dict[str, float | None] = {"BS": bench.count(case, "none", "hindex").seconds}
    if bench.cuda:
        for name, macros in {"VH": BARE, "CO": {"VC": 0}, "VC": {"VC": 1}}.items():
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


def _gain(paper: str, runs: dict[str, dict[str, float | None]], name: str, before: str) -> Statement:
    """A statement that an optimization pays on average."""
    pairs = [(stages[before], stages[name]) for stages in runs.values()]
    gains = [b / s for b, s in pairs if b and s]
    if not gains:
        return Statement(paper, NEEDS_GPU)
    gain = geometric_mean(gains)
    return Statement(paper, f"{gain:.2f} times on average, {spread(gains)}", gain > 1)


def _better_order(bench: Bench, runs: dict[str, dict[str, float | None]]) -> Statement:
    """Say which order is faster, and what each has to read."""
    faster = sum((of["RO (OUT)"] or 0.0) < (of["RO (IN)"] or 0.0) for of in runs.values())
    orders = ("indegree", "collective")
    reads = [" and ".join(f"{reads_a_lookup(bench, case, order):.3f}" for order in orders) for case in bench.cases]
    hot = [" and ".join(f"{hot_bytes(bench, case, order) / 1e3:,.0f}" for order in orders) for case in bench.cases]
    here = (
        f"so on {faster} of {len(runs)}; IN and OUT, bucket reads a lookup, and offsets of nine tenths of the lists: "
    )
    here += "; ".join(f"{name} {r}, {h} kB" for name, r, h in zip(runs, reads, hot, strict=True))
    return Statement("RO (OUT) is faster than RO (IN) on most graphs", here, 2 * faster > len(runs))


def _co(bench: Bench, runs: dict[str, dict[str, float | None]]) -> Statement:
    paper = "CO: 18 times on skewed graphs, 1.01 on others, below 1 on FS and OR"
    gains = {name: (s["VH"] or 0.0) / s["CO"] for name, s in runs.items() if s["CO"]}
    best = max(gains, key=lambda name: gains[name])
    here = f"{spread(list(gains.values()))} times, most on {best}"
    if not bench.cuda:
        return Statement(paper, f"{here}, by larger tables alone; its teams: {NEEDS_GPU}")
    return Statement(paper, here, gains[best] > 1.05 and not best.startswith(("RM", "RA", "3D")))
