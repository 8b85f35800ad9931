"""`dasktc bench choose`: compares the choices of `auto` with every fixed choice of kernel, order and scheme.

It times the counting tasks alone, and everything from the source's first edge (for a file: after it is read) to the
number, as medians of `runs`: on the CPU in CPU seconds of this process, on a GPU in seconds between two events, and in
wall seconds. The choice of `auto` is one of the fixed choices, and has the figures of that choice.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

import numpy as np

from dasktc.api.opener import as_source
from dasktc.backends import get_backend, unusable
from dasktc.bench.choices import CLOSE, HOPELESS, IN_EVERY_ORDER, MOMENT, Choice, Make, Measured, choices, measured
from dasktc.bench.measure import columns_of
from dasktc.bench.report import (
    EXACT,
    Report,
    Say,
    Section,
    check_folder,
    check_runs,
    command,
    device,
    limit,
    quiet,
    select,
    surroundings,
)
from dasktc.io.generators.synthetic import grid3d, kronecker, random_graph, rmat, theory
from dasktc.io.source import Source
from dasktc.once import once
from dasktc.pipeline.autotune import Facts, order_reason
from dasktc.registry import KERNELS, ORDERS
from dasktc.wording import plural

__all__ = ["FILES", "GENERATED", "run"]


def clique(vertices: int) -> Source:
    """The edges of a clique of `vertices` vertices."""
    return as_source(np.triu_indices(vertices, 1))


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
        **{f"Kronecker {scale}": partial(kronecker, scale) for scale in (10, 12, 14, 17, 18, 19, 20, 22)},
        **{f"RM 2^{wide}": partial(rmat, 2**wide, 8 * 2**wide) for wide in (16, 18, 20, 22, 24)},
        "RA 10^6": lambda: random_graph(10**6, 10**7),
        "RA 10^7": lambda: random_graph(10**7, 10**8),
        "random, degree 4": lambda: random_graph(2 * 10**7, 4 * 10**7),
        "random, degree 40": lambda: random_graph(10**6, 2 * 10**7),
        "random, degree 60": lambda: random_graph(10**6, 3 * 10**7),
        "random, degree 100": lambda: random_graph(10**6, 5 * 10**7),
        "random 10^5, degree 100": lambda: random_graph(10**5, 5 * 10**6),
        "random 10^5, degree 400": lambda: random_graph(10**5, 2 * 10**7),
        "random 10^4, degree 400": lambda: random_graph(10**4, 2 * 10**6),
        "clique 1500": lambda: clique(1500),
        "torus 50³": lambda: grid3d(50),
        "torus 300³": lambda: grid3d(300),
        "theory 25-81-256": lambda: theory((25, 81, 256), "B1k"),
        "theory 4-5-9-16-25": lambda: theory((4, 5, 9, 16, 25), "B1k"),
    },
}
"""Graphs by backend."""
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


def run(
    graphs: str | None = None,
    runs: int = 5,
    quick: bool = False,
    backend: str = "cpu",
    only: tuple[str, ...] = (),
    say: Say = quiet,
) -> Report:
    """Measure all choices on all graphs.

    Parameters
    ----------
    graphs : str, optional
        Folder that contains some of FILES.
    runs : int
        Number of measurements, of which medians are taken.
    quick : bool
        Only two small graphs, measured once.
    backend : {"auto", "cpu", "cuda"}
        `auto`: a GPU where there is a usable one.
    only : tuple of str
        Names of the graphs to measure, in upper or lower case.
    say : callable (str), optional
        Told what is being measured.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        An option is invalid, or there is no usable GPU for `cuda`.
    CountError
        Two kernels count different numbers of triangles.
    """
    check_runs(runs)
    check_folder("graphs", graphs)
    backend = ("cpu" if unusable("cuda") else "cuda") if backend == "auto" else get_backend(backend).name
    cases = dict(QUICK if quick else GENERATED[backend])
    for name in FILES if graphs is not None else ():
        path = Path(graphs or "", name)
        if path.is_file():
            cases[name] = once(partial(_in_memory, str(path), backend))
    if only:
        cases = select(cases, only)
    measured("warm-up", lambda: kronecker(6), 1, backend)  # imports, and compiles or loads what was compiled
    measurements = {}
    for name, source in cases.items():
        say(name)
        measurements[name] = measured(name, source, 1 if quick else runs, backend)
        say(_choice(measurements[name]))
    facts = surroundings(device=device(backend))
    times = [_seconds(measurements, backend, what) for what in ("count", "whole")]
    orders = [_orders(measurements, backend), _orders_over_degree(measurements, backend)]
    sections = [_choices(measurements, backend), _fixed(measurements, backend), *times, *orders, _facts(measurements)]
    size = {"quick": True} if quick else {"runs": runs}
    return Report(command("choose", **size, backend=backend, only=only, graphs=graphs), facts, sections)


def _in_memory(path: str, backend: str) -> Source:
    """Read the edges of a file into memory, once."""
    return as_source(columns_of(as_source(path), backend))


def _choice(graph: Measured) -> str:
    """Say what auto takes, and the best."""
    times = (f"{choice} {1e3 * graph.count[choice]:.3f} ms" for choice in (graph.auto, graph.best))
    return "  " + ", best: ".join(times)


# tables


def _choices(measurements: dict[str, Measured], backend: str) -> Section:
    columns = {"graph": "", "edges": ",d", "auto takes": "", "count": ".3f", "best": "", "its count": ".3f"}
    columns |= {"auto / best": ".2f", "from source to number": ".2f"}
    rows: list[Any] = []
    for name, graph in measurements.items():
        best = graph.best
        own, least = (1e3 * graph.count[choice] for choice in (graph.auto, best))
        rows.append([name, graph.edges, str(graph.auto), own, str(best), least, *graph.ratios(graph.auto)])
    far = [name for name, graph in measurements.items() if not graph.close]
    notes = [
        f"{'CPU' if backend == 'cpu' else 'GPU'} milliseconds; best: of the kernels, each in its own order; the last "
        f"column: over the best of all choices{'' if backend == 'cpu' else ', on the wall'}",
        f"more than {CLOSE} times the best and {1e3 * MOMENT:.1f} ms: {', '.join(far) if far else 'none'}",
        _against_one(measurements, backend),
    ]
    limits = {"edges": EXACT, "auto takes": EXACT, "count": limit(backend)}
    return Section("What auto takes, and the best choice for each graph", columns, rows, notes, limits)


def _against_one(measurements: dict[str, Measured], backend: str) -> str:
    """Table of the times of `auto` relative to the single fixed choice that is best over all graphs."""
    complete = [choice for choice in choices(backend) if all(choice in graph.count for graph in measurements.values())]
    best = min(complete, key=lambda choice: mean(graph.ratios(choice)[0] for graph in measurements.values()))
    ratios = {name: graph.count[graph.auto] / graph.count[best] for name, graph in measurements.items()}
    worst = max(ratios, key=lambda name: ratios[name])
    longest = f"auto takes at most {ratios[worst]:.2f} times as long ({worst})"
    return f"the best fixed choice for all graphs is {best}: {longest}"


def _fixed(measurements: dict[str, Measured], backend: str) -> Section:
    """Table of each choice's times relative to the best of each graph: a good one has a small worst ratio."""
    columns = {
        "choice": "",
        "count: worst": ".2f",
        "on": "",
        "mean": ".2f",
        "whole: worst": ".2f",
        "whole: mean": ".2f",
    }
    rows: list[Any] = []
    for choice in (None, *choices(backend)):
        ratios = {
            name: graph.ratios(choice or graph.auto)
            for name, graph in measurements.items()
            if (choice or graph.auto) in graph.count
        }
        if not ratios:
            continue
        count, whole = zip(*ratios.values(), strict=True)
        worst = max(ratios, key=lambda name: ratios[name])
        label = "auto" if choice is None else str(choice)
        rows.append([label, max(count), worst, mean(count), max(whole), mean(whole)])
    return Section("Each choice over the best for each graph", columns, rows)


def _seconds(measurements: dict[str, Measured], backend: str, kind: str) -> Section:
    selection = [choice for choice in choices(backend) if choice.own or choice.partition != "whole"]
    columns = {"graph": "", **{str(choice): ".3f" for choice in selection}}
    rows: list[Any] = [
        [name, *(_ms(getattr(graph, kind).get(choice)) for choice in selection)] for name, graph in measurements.items()
    ]
    note = f"a choice is run once if that takes more than {HOPELESS:.0f} times the fastest so far"
    span = {"count": "of counting", "whole": "from source to number"}[kind]
    return Section(f"Milliseconds {span}", columns, rows, [note], dict.fromkeys(list(columns)[1:], limit(backend)))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def _in_order(graph: Measured, backend: str) -> dict[str, list[float]]:
    """Milliseconds in each order: of the kernels that are tried in all, of `hub` in all, and of preparation."""
    kernels = [kernel for kernel in IN_EVERY_ORDER if kernel in KERNELS[backend]]
    times = {kernel: [graph.count[Choice(kernel, order)] for order in ORDERS] for kernel in kernels}
    times["hub, from source to number"] = [graph.whole[Choice("hub", order)] for order in ORDERS]
    times["preparation"] = [graph.prepare[order] for order in ORDERS]
    return {name: [1e3 * seconds for seconds in row] for name, row in times.items()}


def _orders(measurements: dict[str, Measured], backend: str) -> Section:
    columns = {"graph": "", "kernel, counting": "", **dict.fromkeys(ORDERS, ".3f")}
    rows: list[Any] = [
        [name, kind, *times]
        for name, graph in measurements.items()
        for kind, times in _in_order(graph, backend).items()
    ]
    return Section("Orders of ids, ms", columns, rows, limits=dict.fromkeys(ORDERS, limit(backend)), keys=2)


def _orders_over_degree(measurements: dict[str, Measured], backend: str) -> Section:
    """Table of the orders' times relative to the first order, with the reason that plans give for that one."""
    usual, *orders = ORDERS
    table = Section(
        f"Orders over {usual}, geometric means over {plural(len(measurements), 'graph')}",
        {"kernel, counting": "", **dict.fromkeys(orders, ".2f")},
    )
    rows = [_in_order(graph, backend) for graph in measurements.values()]
    for name in rows[0]:
        ratios = [[time / row[name][0] for time in row[name][1:]] for row in rows]
        table.rows.append([name, *map(geometric_mean, zip(*ratios, strict=True))])
    means = [cell for cell in table.rows[0][1:] if isinstance(cell, float)]
    table.notes = [f"order {usual}: {order_reason(min(means), max(means))}"]
    return table


def _facts(measurements: dict[str, Measured]) -> Section:
    derived = ("wedges_per_edge", "skew", "even", "covered")
    facts = {name: graph.facts for name, graph in measurements.items()}
    rows: list[Any] = [[name, *row, *(getattr(row, column) for column in derived)] for name, row in facts.items()]
    columns = {"graph": "", **dict.fromkeys(Facts._fields, ",d"), **dict.fromkeys(derived, ".3f")}
    notes = [
        "usual: entries of a row that 99 % of the rows do not exceed; narrow, wide: rows of 2 to 100 entries, of more"
    ]
    return Section("What the rules know of each graph", columns, rows, notes)
