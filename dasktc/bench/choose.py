"""`dasktc bench choose`: what `auto` chooses, against every fixed choice of kernel on the same graphs.

A fixed choice is a kernel with its own order of ids. Timed are the counting tasks alone, and everything from the
source's first edge to the number; both in CPU seconds of one process, medians of `runs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

from dasktc.backend.cpu import KERNELS
from dasktc.bench.measure import StageMeter
from dasktc.bench.report import Report, Section, load, machine, versions
from dasktc.errors import CountError, InputError
from dasktc.generate import grid3d, kronecker, random_graph, rmat, theory
from dasktc.triangles import as_source, triangle_count

__all__ = ["FILES", "GENERATED", "run"]

GENERATED: dict[str, Callable[[], Any]] = {
    "Kronecker 16": lambda: kronecker(16),
    "R-MAT 2^16": lambda: rmat(2**16, 600_000),
    "random, degree 4": lambda: random_graph(400_000, 800_000),
    "random, degree 16": lambda: random_graph(100_000, 800_000),
    "torus 50³": lambda: grid3d(50),
    "theory 25-81-256": lambda: theory((25, 81, 256), "B1k"),
}
QUICK: dict[str, Callable[[], Any]] = {
    "Kronecker 10": lambda: kronecker(10),
    "torus 30³": lambda: grid3d(30),
}
FILES = (
    "144.metis.gz",
    "amazon0601-edges.csv.gz",
    "ca-GrQc.txt.gz",
    "dblp-2010.mtx.gz",
    "email-Enron.txt.gz",
    "facebook_combined.txt.gz",
    "p2p-Gnutella31.txt.gz",
    "twitter_combined-edges.csv.gz",
    "wing.graph.gz",
)
HOPELESS = 5.0
"""Times the fastest so far, beyond which a kernel is not run again."""


@dataclass(frozen=True)
class Measured:
    """Median CPU seconds of a choice on a graph: of the counting tasks, and of everything."""

    kernel: str
    edges: int
    count: float
    whole: float


def run(
    graphs: str | None = None,
    runs: int = 5,
    quick: bool = False,
    say: Callable[[str], None] | None = None,
) -> Report:
    """Measure all choices.

    Parameters
    ----------
    graphs : str, optional
        Folder with some of FILES.
    runs : int
        Medians of so many.
    quick : bool
        Two small graphs, one run.
    say : callable (str), optional
        Told what is being measured.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        An option makes no sense.
    CountError
        Two kernels disagree.
    """
    if runs < 1:
        raise InputError(f"--runs {runs} is below 1: there would be nothing to show; give 1 or more")
    if graphs is not None and not Path(graphs).is_dir():
        raise InputError(f"--graphs {graphs} is no folder: no file can be found there; give one, or leave it out")
    cases: dict[str, Callable[[], Any]] = dict(QUICK if quick else GENERATED)
    for name in FILES if graphs is not None else ():
        path = Path(graphs or "", name)
        if path.is_file():
            cases[name] = partial(as_source, str(path))
    for kernel in KERNELS:
        triangle_count(kronecker(6), kernel=kernel)  # imports, and compiles or loads what was compiled
    found = {}
    for name, source in cases.items():
        (say or (lambda text: None))(name)
        found[name] = _case(name, source, 1 if quick else runs)
    facts = {"machine": machine(), "load": load(), "versions": versions()}
    return Report(_command(graphs, runs, quick), facts, [_choices(found), _fixed(found)])


def _command(graphs: str | None, runs: int, quick: bool) -> str:
    return f"dasktc bench choose {'--quick' if quick else f'--runs {runs}'}" + (f" --graphs {graphs}" if graphs else "")


def _case(name: str, source: Callable[[], Any], runs: int) -> dict[str, Measured]:
    """Measure `auto` and every kernel on one graph."""
    found: dict[str, Measured] = {}
    triangles = None
    for choice in ("auto", *KERNELS):
        samples: list[tuple[float, float]] = []
        while len(samples) < runs and not _hopeless(samples, found):
            meter = StageMeter()
            result = triangle_count(source(), kernel=choice, progress=meter)
            meter.stop()
            samples.append((sum(record.count.seconds for record in result.records), sum(meter.seconds.values())))
            triangles = int(result) if triangles is None else triangles
            if int(result) != triangles:
                raise CountError(f"kernel {choice} counts {int(result):,} triangles of {name}, auto {triangles:,}")
        count, whole = (median(sample) for sample in zip(*samples, strict=True))
        found[choice] = Measured(result.kernel, result.edges, count, whole)
    return found


def _hopeless(samples: list[tuple[float, float]], found: dict[str, Measured]) -> bool:
    return bool(samples and found) and samples[0][0] > HOPELESS * min(other.count for other in found.values())


def _best(of: dict[str, Measured], what: str) -> str:
    return min((choice for choice in of if choice != "auto"), key=lambda choice: float(getattr(of[choice], what)))


def _choices(found: dict[str, dict[str, Measured]]) -> Section:
    columns = {"graph": "", "edges": ",d", "auto takes": "", "count": ".4f", "best": "", "its count": ".4f"}
    columns |= {"auto / best": ".2f", "from source to number": ".2f"}
    rows: list[Any] = []
    for name, of in found.items():
        auto, best, whole = of["auto"], _best(of, "count"), _best(of, "whole")
        ratios = auto.count / of[best].count, auto.whole / of[whole].whole
        rows.append([name, auto.edges, auto.kernel, auto.count, best, of[best].count, *ratios])
    notes = ["CPU seconds; the last column is auto over the choice that is best from source to number."]
    return Section("What auto takes, and the best choice for each graph", columns, rows, notes)


def _fixed(found: dict[str, dict[str, Measured]]) -> Section:
    """Every choice over the best for each graph: a fixed one is good if even its worst ratio is small."""
    columns = {
        "choice": "",
        "count: worst": ".2f",
        "on": "",
        "mean": ".2f",
        "whole: worst": ".2f",
        "whole: mean": ".2f",
    }
    rows: list[Any] = []
    for choice in ("auto", *KERNELS):
        count = {name: of[choice].count / of[_best(of, "count")].count for name, of in found.items()}
        whole = [of[choice].whole / of[_best(of, "whole")].whole for of in found.values()]
        worst = max(count, key=lambda name: count[name])
        rows.append([choice, count[worst], worst, mean(count.values()), max(whole), mean(whole)])
    return Section("Each choice over the best for each graph", columns, rows)
