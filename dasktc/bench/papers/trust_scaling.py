"""TRUST's figure 15: the busiest GPU's time with 1 to 1,024 GPUs, each of which counts a split of the rows.

Pandey et al., TPDS 2021, section 6.5, doi:10.1109/TPDS.2021.3064892. `dasktc bench scaling` also has blocks that
travel, and the wall time of whole counts.
"""

from __future__ import annotations

from importlib.util import find_spec
from itertools import pairwise
from statistics import median
from typing import Any

from dasktc.api.count import build
from dasktc.backends import get_backend
from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.figure import Claim, Figure, Finding, Plot, Published, spread
from dasktc.bench.papers.graphs import EVEN
from dasktc.executors.connect import connect
from dasktc.executors.place import Place
from dasktc.options import Options

__all__ = ["SCALING", "scaling"]

SMALL, REAL = (1, 2, 4, 8), (2, 4, 8)
"""GPUs of figure 15(a), and those of them that are tried where they are."""
LARGE, LARGE_QUICK = (64, 256, 1024), (16, 64)
"""GPUs beyond these, of figure 15(b)."""
COUNTED: dict[str, Any] = {"kernel": "trust", "partition": "whole", "reorder": "collective"}
"""Options of every count."""


def scaling(bench: Bench) -> Figure:
    """Figure 15: speed-up by GPUs, whose splits are counted one after another; real GPUs beside them."""
    counts = SMALL + (LARGE_QUICK if bench.quick else LARGE)
    figure = Figure(
        f"Speed-up by GPUs, each with a split of the rows, kernel trust (TRUST, figure 15; {bench.clock})",
        {"graph": "", "edges": ",d", "ms on 1": ".3f"}
        | {f"{count}": ".2f" for count in counts[1:]}
        | {f"{count} real": ".2f" for count in REAL},
        notes=["order collective, partition whole, m splits of equal work; real: the busiest of so many GPUs, where "
               "they are here"],
        proxy="splits counted one after another on one device, which is alone with each; the slowest counts",
    )  # fmt: skip
    gpus = _gpus(bench)
    busiest = {count: _busiest(bench, count) for count in REAL if count <= gpus}
    for case in bench.cases:
        seconds = [bench.slowest_split(case, count, **COUNTED) for count in counts]
        real = [busiest.get(count, {}).get(case.name) for count in REAL]
        speeds = [seconds[0] / time if time else None for time in (*seconds[1:], *real)]
        figure.rows.append([case.name, bench.block(case, "collective").edges, 1e3 * seconds[0], *speeds])
    series: dict[str, Any] = {
        row["graph"]: [1.0, *(row[f"{count}"] for count in counts[1:])] for row in figure.records()
    }
    figure.plot = Plot("lines", [str(count) for count in counts], series, "GPUs", "speed-up", log=True)
    return figure


def _gpus(bench: Bench) -> int:
    """GPUs that workers can be started on."""
    if not bench.cuda or not find_spec("dask_cuda"):
        return 0
    xp: Any = get_backend(bench.backend).array
    return int(xp.cuda.runtime.getDeviceCount())


def _busiest(bench: Bench, count: int) -> dict[str, float]:
    """Kernel seconds of the busiest of so many workers, by graph; medians of the runs."""
    seconds: dict[str, float] = {}
    with connect(Place(workers=count), bench.backend) as workers:
        for case in bench.cases:
            graph = build(workers, case.source(), Options(backend=bench.backend, splits=count, **COUNTED))
            graph.triangle_count()
            results = [graph.triangle_count() for _ in range(bench.runs)]
            for result in results:
                bench.check(case, f"trust on {count} GPUs", result.triangles)
            seconds[case.name] = median(result.stats.kernel_seconds or 0.0 for result in results)
    return seconds


def _speeds(figure: Figure, real: bool = False) -> dict[str, dict[int, float]]:
    """Speed-ups by simulated GPUs, or by real ones, by graph."""
    names = [name.removesuffix(" real") for name in figure.columns if name.endswith(" real") is real]
    counts = {f"{name} real" if real else name: int(name) for name in names if name.isdigit()}
    return {
        row["graph"]: {count: row[name] for name, count in counts.items() if row[name] is not None}
        for row in figure.records()
    }


def _rising(curves: dict[str, dict[int, float]], counts: tuple[int, ...]) -> bool:
    """Whether each graph is faster with more GPUs, from one on, among these numbers of them."""
    speeds = [[1.0, *(curve[count] for count in counts if count in curve)] for curve in curves.values()]
    return all(a < b for gains in speeds for a, b in pairwise(gains))


def _to_eight(figure: Figure) -> Finding:
    real, largest = _speeds(figure, real=True), SMALL[-1]
    exact = all(largest in curve for curve in real.values())
    curves = real if exact else _speeds(figure)
    last = [curve[largest] for curve in curves.values() if largest in curve]
    text = f"{spread(last)} times on {largest} {'real' if exact else 'simulated'} GPUs"
    return Finding(text, _rising(curves, SMALL[1:]), last, exact)


def _to_real(figure: Figure) -> Finding:
    real, simulated = _speeds(figure, real=True), _speeds(figure)
    counts = [count for count in REAL if all(count in curve for curve in real.values())]
    if not counts:
        return Finding("there are fewer than two GPUs")
    text = "; ".join(
        f"{count}: {spread([curve[count] for curve in real.values()])}, simulated "
        f"{spread([curve[count] for curve in simulated.values()])}"
        for count in counts
    )
    return Finding(f"times as fast on real GPUs, {text}", _rising(real, REAL), exact=True)


def _to_most(figure: Figure) -> Finding:
    curves = {name: curve for name, curve in _speeds(figure).items() if name.startswith(EVEN[:2]) and curve}
    if not curves:
        return Finding("neither RM nor RA is there")
    largest = max(max(curve) for curve in curves.values())
    text = ", ".join(f"{name} {curve[largest]:.0f} times on {largest:,}" for name, curve in curves.items())
    rising = all(a < b for curve in curves.values() for a, b in pairwise(curve[count] for count in sorted(curve)))
    return Finding(text, rising, [curve[largest] / largest for curve in curves.values()])


SCALING = (
    Claim(
        "small", "8 GPUs are 3.3 to 6.8 times as fast as one on small graphs", _to_eight,
        "twice the GPUs are no faster, on any graph", Published(3.3, 6.8, 1.25),
    ),
    Claim(
        "real GPUs", "more GPUs are faster, almost linearly where there is work enough", _to_real,
        "more real GPUs are no faster, on any graph",
    ),
    Claim(
        "medium", "1,024 GPUs are 649 and 660 times as fast on RA and RM, 0.63 and 0.64 of the GPUs", _to_most,
        "more GPUs are no faster, on RM or on RA", Published(0.634, 0.645, unit=" of the GPUs"),
    ),
)  # fmt: skip
