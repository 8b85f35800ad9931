"""`dasktc bench choose`: what `auto` chooses, against every fixed choice of kernel and order on the same graphs.

A fixed choice is a kernel with an order of ids, its own or another. A graph is prepared for each order, then
counted with each kernel. Timed are the counting tasks alone, and everything from the source's first edge (of a file:
once it is read) to the number, medians of `runs`: on the CPU in CPU seconds of this process, on a GPU in seconds between two events, and
on the wall. What `auto` takes is one of the choices, and its figures are those of that choice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from dasktc.backend import get_backend, hub_tables, kernels, unusable
from dasktc.bench.report import Report, Section, load, machine, versions
from dasktc.choose import Facts, look
from dasktc.errors import CountError, InputError
from dasktc.generate import grid3d, kronecker, random_graph, rmat, theory
from dasktc.graph import Graph
from dasktc.options import Options
from dasktc.sources import Source
from dasktc.tasks import Direct
from dasktc.triangles import as_source, build

__all__ = ["FILES", "GENERATED", "Choice", "choices", "run"]

Make = Callable[[], Source]
GENERATED: dict[str, dict[str, Make]] = {
    "cpu": {
        "Kronecker 16": lambda: kronecker(16),
        "R-MAT 2^16": lambda: rmat(2**16, 600_000),
        "random, degree 4": lambda: random_graph(400_000, 800_000),
        "random, degree 16": lambda: random_graph(100_000, 800_000),
        "torus 50³": lambda: grid3d(50),
        "theory 25-81-256": lambda: theory((25, 81, 256), "B1k"),
    },
    "cuda": {
        "Kronecker 10": lambda: kronecker(10),
        "Kronecker 14": lambda: kronecker(14),
        "Kronecker 17": lambda: kronecker(17),
        "Kronecker 20": lambda: kronecker(20),
        "Kronecker 22": lambda: kronecker(22),
        "RM 2^20": lambda: rmat(2**20, 8 * 2**20),
        "RM 2^24": lambda: rmat(2**24, 8 * 2**24),
        "RA 10^6": lambda: random_graph(10**6, 10**7),
        "RA 10^7": lambda: random_graph(10**7, 10**8),
        "random, degree 4": lambda: random_graph(2 * 10**7, 4 * 10**7),
        "random, degree 100": lambda: random_graph(10**6, 5 * 10**7),
        "torus 50³": lambda: grid3d(50),
        "torus 300³": lambda: grid3d(300),
        "theory 25-81-256": lambda: theory((25, 81, 256), "B1k"),
        "theory 4-5-9-16-25": lambda: theory((4, 5, 9, 16, 25), "B1k"),
    },
}
"""By backend."""
QUICK: dict[str, Make] = {
    "Kronecker 10": lambda: kronecker(10),
    "torus 30³": lambda: grid3d(30),
}
FILES = (
    "144.metis.gz",
    "amazon0601-edges.csv.gz",
    "ca-GrQc.txt.gz",
    "celegans_metabolic.graph.gz",
    "dblp-2010.mtx.gz",
    "email-Enron.txt.gz",
    "email-Eu-core.csv.gz",
    "facebook_combined.txt.gz",
    "p2p-Gnutella31.txt.gz",
    "twitter_combined-edges.csv.gz",
    "wing.graph.gz",
)
OTHER_ORDERS = (("hub", "collective"), ("hub", "indegree"), ("hub", "none"), ("trust", "degree"))
"""Orders that are not a kernel's own."""
HOPELESS = 5.0
"""Times the fastest so far, beyond which a choice is not run again."""
CLOSE = 1.1
"""Times the best choice that `auto` may take."""


class Choice(NamedTuple):
    """A kernel with an order of ids."""

    kernel: str
    order: str

    def __str__(self) -> str:
        own = Options(kernel=self.kernel).chosen_reorder
        return self.kernel if self.order == own else f"{self.kernel}, {self.order}"


@dataclass
class Measured:
    """A graph: what `auto` takes, its facts, and median seconds by choice, of counting and of everything."""

    auto: Choice
    edges: int
    facts: Facts
    count: dict[Choice, float] = field(default_factory=dict)
    whole: dict[Choice, float] = field(default_factory=dict)

    def best(self, what: str) -> Choice:
        """The choice of least seconds."""
        seconds: dict[Choice, float] = getattr(self, what)
        return min(seconds, key=lambda choice: seconds[choice])

    def ratio(self, choice: Choice, what: str) -> float:
        """Seconds of a choice over those of the best."""
        seconds: dict[Choice, float] = getattr(self, what)
        return seconds[choice] / min(seconds.values())


def choices(backend: str) -> list[Choice]:
    """The fixed choices: every kernel with its own order, and some with others.

    Parameters
    ----------
    backend : {"cpu", "cuda"}
    """
    own = [Choice(kernel, Options(kernel=kernel, backend=backend).chosen_reorder) for kernel in kernels(backend)]
    return own + [Choice(*other) for other in OTHER_ORDERS]


def run(
    graphs: str | None = None,
    runs: int = 5,
    quick: bool = False,
    backend: str = "cpu",
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
    backend : {"auto", "cpu", "cuda"}
        `auto`: a GPU where there is a usable one.
    say : callable (str), optional
        Told what is being measured.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        An option makes no sense, or there is no usable GPU for `cuda`.
    CountError
        Two kernels disagree.
    """
    if runs < 1:
        raise InputError(f"--runs {runs} is below 1: there would be nothing to show; give 1 or more")
    if graphs is not None and not Path(graphs).is_dir():
        raise InputError(f"--graphs {graphs} is no folder: no file can be found there; give one, or leave it out")
    used = ("cpu" if unusable("cuda") else "cuda") if backend == "auto" else get_backend(backend).name
    cases = dict(QUICK if quick else GENERATED[used])
    for name in FILES if graphs is not None else ():
        path = Path(graphs or "", name)
        if path.is_file():
            cases[name] = cache(partial(_in_memory, str(path), used))
    _case("warm-up", lambda: kronecker(6), 1, used)  # imports, and compiles or loads what was compiled
    found = {}
    for name, source in cases.items():
        (say or (lambda text: None))(name)
        found[name] = _case(name, source, 1 if quick else runs, used)
    facts = {"machine": machine(), "device": _device(used), "load": load(), "versions": versions()}
    sections = [_choices(found, used), _fixed(found, used), _seconds(found, used), _facts(found)]
    return Report(_command(graphs, runs, quick, used), facts, sections)


def _in_memory(path: str, backend: str) -> Source:
    """The edges of a file, read once."""
    used, columns = get_backend(backend), []
    for part in as_source(path).parts:
        frame = used.read(part, None)
        columns.append((frame["src"].values, frame["dst"].values))
    return as_source(tuple(used.array.concatenate(pieces) for pieces in zip(*columns, strict=True)))


def _device(backend: str) -> str:
    if backend == "cpu":
        return "the CPU, one thread"
    xp = get_backend(backend).array
    return str(xp.cuda.runtime.getDeviceProperties(xp.cuda.Device().id)["name"].decode())


def _command(graphs: str | None, runs: int, quick: bool, backend: str) -> str:
    options = ["--quick" if quick else f"--runs {runs}", f"--backend {backend}"]
    return " ".join(["dasktc bench choose", *options, *([f"--graphs {graphs}"] if graphs else [])])


# measuring


def _case(name: str, source: Make, runs: int, backend: str) -> Measured:
    """Measure every choice on one graph."""
    auto = build(Direct(), source(), Options(backend=backend))
    facts = look(Direct(), auto.prepared.graph, backend)
    found = Measured(Choice(auto.options.kernel, auto.options.reorder), auto.edges, facts)
    del auto
    triangles: dict[str, int] = {}
    for order in dict.fromkeys(choice.order for choice in choices(backend)):
        graph, prepared = _prepared(source, order, runs, backend)
        for choice in (choice for choice in choices(backend) if choice.order == order):
            count, counted = _counted(graph, choice.kernel, runs, found, triangles, name)
            found.count[choice], found.whole[choice] = count, prepared + counted
    return found


def _now(backend: str) -> float:
    if backend == "cpu":
        return time.process_time()
    from dasktc.backend import cuda

    cuda.synchronize()
    return time.perf_counter()


def _prepared(source: Make, order: str, runs: int, backend: str) -> tuple[Graph, float]:
    """Blocks in an order of ids, and the seconds that they took."""
    samples: list[float] = []
    for _ in range(runs):
        began = _now(backend)
        graph = build(Direct(), source(), Options(backend=backend, kernel="merge", reorder=order))
        samples.append(_now(backend) - began)
    return graph, median(samples)


def _counted(
    graph: Graph, kernel: str, runs: int, found: Measured, triangles: dict[str, int], name: str
) -> tuple[float, float]:
    """Seconds of the counting tasks, and of everything after preparation; all counts have to be equal."""
    backend, samples = graph.options.chosen_backend, list[tuple[float, float]]()
    warm_up = backend == "cuda"
    while len(samples) < runs + warm_up and not _hopeless(samples, found):
        hub_tables.forget()  # a count that is made once has none
        began = _now(backend)
        result = graph.triangle_count(kernel=kernel)
        samples.append((sum(record.count.seconds for record in result.records), _now(backend) - began))
        first, known = next(iter(triangles.items()), (kernel, int(result)))
        triangles.setdefault(first, known)
        if int(result) != known:
            raise CountError(f"kernel {kernel} counts {int(result):,} triangles of {name}, {first} {known:,}")
    count, counted = (median(sample) for sample in zip(*samples[warm_up and len(samples) > 1 :], strict=True))
    return count, counted


def _hopeless(samples: list[tuple[float, float]], found: Measured) -> bool:
    return bool(samples and found.count) and samples[0][0] > HOPELESS * min(found.count.values())


# tables


def _choices(found: dict[str, Measured], backend: str) -> Section:
    columns = {"graph": "", "edges": ",d", "auto takes": "", "count": ".4f", "best": "", "its count": ".4f"}
    columns |= {"auto / best": ".2f", "from source to number": ".2f"}
    rows: list[Any] = []
    for name, of in found.items():
        best = of.best("count")
        ratios = of.ratio(of.auto, "count"), of.ratio(of.auto, "whole")
        rows.append([name, of.edges, str(of.auto), of.count[of.auto], str(best), of.count[best], *ratios])
    above = [row[0] for row in rows if row[6] > CLOSE]
    notes = [
        f"{'CPU' if backend == 'cpu' else 'GPU'} seconds; the last column is auto over the choice that is best from "
        f"source to number{'' if backend == 'cpu' else ', on the wall'}",
        f"more than {CLOSE:.2f} times the best: {', '.join(above) if above else 'none'}",
    ]
    return Section("What auto takes, and the best choice for each graph", columns, rows, notes)


def _fixed(found: dict[str, Measured], backend: str) -> Section:
    """Every choice over the best for each graph: a fixed one is good if even its worst ratio is small."""
    columns = {"choice": "", "count: worst": ".2f", "on": "", "mean": ".2f", "whole: worst": ".2f", "whole: mean": ".2f"}
    rows: list[Any] = []
    for choice in (None, *choices(backend)):
        count = {name: of.ratio(choice or of.auto, "count") for name, of in found.items()}
        whole = [of.ratio(choice or of.auto, "whole") for of in found.values()]
        worst = max(count, key=lambda name: count[name])
        label = "auto" if choice is None else str(choice)
        rows.append([label, count[worst], worst, mean(count.values()), max(whole), mean(whole)])
    return Section("Each choice over the best for each graph", columns, rows)


def _seconds(found: dict[str, Measured], backend: str) -> Section:
    columns = {"graph": "", **{str(choice): ".3f" for choice in choices(backend)}}
    rows: list[Any] = [[name, *(1e3 * of.count[choice] for choice in choices(backend))] for name, of in found.items()]
    note = f"a choice is run once if that takes more than {HOPELESS:.0f} times the fastest so far"
    return Section("Milliseconds of counting", columns, rows, [note])


def _facts(found: dict[str, Measured]) -> Section:
    rows: list[Any] = [[name, *of.facts] for name, of in found.items()]
    forms = {"wedges_per_edge": ".2f"}
    columns = {"graph": "", **{name: forms.get(name, ",d") for name in Facts._fields}}
    notes = ["usual: entries of a row that 99 % of the rows do not exceed; narrow, wide: rows of 2 to 100 entries, of more"]
    return Section("What the rules know of each graph", columns, rows, notes)
