"""`dasktc bench questions`: times a count and questions per vertex and per edge, beside other libraries.

Each library prepares a graph once, and everything is asked in turns: one library after another, one question after
another, and again. What dasktc counted for the last question is discarded before the next one, so that every answer is
counted anew. On the CPU figures are CPU seconds of this process, in which each library has one thread; on a GPU they
are wall milliseconds, and answers stay on the device.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from heapq import nlargest
from importlib import import_module
from itertools import islice
from operator import itemgetter
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dasktc.answers.frames import array_module
from dasktc.api.count import prepare
from dasktc.backends import get_backend
from dasktc.bench.others import missing, whole_triangles
from dasktc.bench.report import Report, Say, Section, check_runs, command, limit, quiet, surroundings
from dasktc.errors import CountError, InputError
from dasktc.io.generators.synthetic import grid3d, kronecker
from dasktc.io.source import Source
from dasktc.options import Backend

__all__ = ["GRAPHS", "QUESTIONS", "Question", "Tool", "run", "tools"]

Array = Any
QUESTIONS = (
    *("count", "triangles()", "clustering()", "edge_support()", "similarity()", "triangle_list(1000)", "motifs()"),
    *("similarity(pairs)", "similarity(top=10)", "triangle_types(3)", "signed_triangles()", "temporal_triangles()"),
    *("survey()", "estimate()"),
)
LISTED = PAIRS = 1000
LABELS = 3
"""Labels of vertices, a column of the prepared graph: their numbers modulo this. A survey adds each triangle's up."""
TIMES, WINDOW = 1024, 64
"""Times of edges, and the window in which all of a triangle's edges are to lie."""
SLOW_EDGES = 500_000
"""Edges from which a library with Python loops is left out, because it would take minutes."""
LISTED_MOTIFS = 10**8
"""Stars of four vertices from which a library that lists subgraphs is not asked for motifs."""
LISTED_WEDGES = 10**6
"""Wedges from which NetworkX is not asked for the most similar vertices: for twenty times as many it takes 107 s."""
GRAPHS: dict[str, dict[str, Callable[[], Source]]] = {
    "cpu": {
        "Kronecker 14": lambda: kronecker(14),
        "Kronecker 18": lambda: kronecker(18),
        "torus 60³": lambda: grid3d(60),
    },
    "cuda": {
        "Kronecker 20": lambda: kronecker(20),
        "Kronecker 22": lambda: kronecker(22),
        "torus 200³": lambda: grid3d(200),
    },
}
"""Graphs by backend."""
QUICK: dict[str, Callable[[], Source]] = {"Kronecker 8": lambda: kronecker(8), "torus 5³": lambda: grid3d(5)}


class Question(NamedTuple):
    """A question to a library."""

    ask: Callable[[], Any]
    """The timed call."""
    triangles: Callable[[Any], int | None]
    """The number of triangles that follows from the answer; None where none does."""


class Tool(NamedTuple):
    """A library that answers some of the questions."""

    name: str
    missing: str
    """Why it is left out; empty where it is installed."""
    slow: bool
    """Whether its loops are Python's."""
    prepare: Callable[[Array], dict[str, Question]]
    """Prepares `edges`, shape (m, 2), distinct and without loops."""


def run(
    backend: Backend = "cpu",
    scale: int | None = None,
    runs: int = 5,
    quick: bool = False,
    say: Say = quiet,
) -> Report:
    """Ask all questions of all libraries.

    Parameters
    ----------
    backend : {"cpu", "cuda"}
    scale : int, optional
        Scale of a Kronecker graph that replaces all other graphs.
    runs : int
        Number of turns after a warm-up, of which medians are taken.
    quick : bool
        Two tiny graphs, one turn.
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
        Two libraries count different numbers of triangles.
    """
    check_runs(runs)
    if scale is not None and not 1 <= scale <= 30:
        raise InputError(f"--scale {scale} is not between 1 and 30: no such Kronecker graph is made here; give another")
    chosen_backend: Backend = "cuda" if get_backend(backend).on_device else "cpu"
    graphs = QUICK if quick else GRAPHS[chosen_backend]
    if scale is not None:
        graphs = {f"Kronecker {scale}": lambda: kronecker(scale)}
    unit = "ms on the wall, answers on the device" if chosen_backend == "cuda" else "CPU seconds of one thread"
    line = command("questions", backend=chosen_backend, scale=scale, quick=quick and scale is None, runs=runs)
    report = Report(line, surroundings())
    for name, source in graphs.items():
        report.sections.append(_section(name, source(), chosen_backend, 1 if quick else runs, unit, say))
        say(report.sections[-1])
    return report


def _section(name: str, source: Source, backend: Backend, runs: int, unit: str, say: Say) -> Section:
    with prepare(source, backend=backend, threads=1) as graph:
        ids, table = graph.measures(frame="pandas").index, graph.edge_support(frame="pandas")[["src", "dst"]]
    ends = table.to_numpy()
    labels = pd.DataFrame({"label": np.arange(len(ids)) % LABELS}, ids)
    table = table.assign(sign=_sign(*ends.T), time=_time(*ends.T))
    with prepare(table, backend=backend, threads=1, vertices=labels, edge_columns=["sign", "time"]) as graph:
        say(f"{name}: {graph.edges:,} edges")
        libraries, left_out = {"dasktc": _ours(graph, backend, _pairs(ends))}, list[str]()
        for tool in tools(backend):
            reason = tool.missing or (tool.slow and len(ends) > SLOW_EDGES and "left out: it would take minutes")
            if reason:
                left_out.append(f"{tool.name}: {reason}")
            else:
                libraries[tool.name] = tool.prepare(ends)
        seconds, triangles = _in_turns(libraries, backend, runs, lambda text: say(f"{name}: {text}"))
        spec = ",.1f" if backend == "cuda" else ".3f"
        title = f"{name}: {graph.edges:,} edges, {triangles:,} triangles; {unit}, medians of {runs}"
        columns, limits = {"": "", **dict.fromkeys(QUESTIONS, spec)}, dict.fromkeys(QUESTIONS, limit(backend))
        section = Section(title, columns, limits=limits)
    scaled = 1e3 if backend == "cuda" else 1.0
    for tool_name in libraries:
        answers = [seconds.get((tool_name, question)) for question in QUESTIONS]
        section.rows.append([tool_name, *(scaled * median(samples) if samples else None for samples in answers)])
    section.notes += left_out
    return section


def _in_turns(
    libraries: dict[str, dict[str, Question]], backend: str, runs: int, say: Say
) -> tuple[dict[tuple[str, str], list[float]], int]:
    """Seconds of every question to every library, and the number of triangles on which all agree."""
    seconds, agreed = dict[tuple[str, str], list[float]](), None
    for turn in range(runs + 1):
        for name, questions in libraries.items():
            say(f"turn {turn} of {runs}: {name}")
            for question, (ask, count) in questions.items():
                answer, duration = _timed(ask, backend)
                triangles = None if turn else count(answer)
                del answer
                if turn:
                    seconds.setdefault((name, question), []).append(duration)
                elif triangles is not None and agreed not in (None, triangles):
                    raise CountError(
                        f"{name} says by {question} that the graph has {triangles:,} triangles, {agreed:,} were "
                        "counted before: one of them is wrong; there is nothing to compare"
                    )
                agreed = agreed if triangles is None else triangles
    return seconds, agreed or 0


def _timed(ask: Callable[[], Any], backend: str) -> tuple[Any, float]:
    clock = time.process_time if backend == "cpu" else time.perf_counter
    wait = _nothing
    if backend == "cuda":
        from dasktc.backends.cuda.backend import synchronize as wait
    wait()
    start = clock()
    answer = ask()
    wait()
    return answer, clock() - start


def _nothing() -> None:
    """Do nothing: there is no device to wait for."""


def _sign(u: Any, v: Any) -> Any:
    return 1 - 2 * ((u + v) % LABELS == 0)


def _time(u: Any, v: Any) -> Any:
    return u * v % TIMES


def _pairs(edges: Array) -> Array:
    """Draw pairs of vertices, which need be no edges."""
    vertices = np.unique(edges)
    return vertices[np.random.default_rng(1).integers(0, len(vertices), (PAIRS, 2))]


def _ours(graph: Any, backend: str, pairs: Array) -> dict[str, Question]:
    frame = {"frame": "cudf" if backend == "cuda" else "pandas"}
    degree = graph.measures(frame="pandas").degree.to_numpy()

    def anew(question: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        def ask() -> Any:
            graph._context.counted.forget()
            return question(*arguments, **frame)

        return ask

    def count() -> Any:
        return graph.triangle_count()

    def motifs() -> Any:
        graph._context.counted.forget()
        return graph.motifs()

    def most_similar() -> Any:
        return graph.similarity(top=10, **frame)

    # Of larger graphs, and on a device, cliques of four would take longer than all other questions.
    small = backend == "cpu" and graph.edges <= SLOW_EDGES
    return {
        "triangle_types(3)": Question(
            lambda: graph.triangle_types("label"), lambda types: int(types["triangles"].sum())
        ),
        "signed_triangles()": Question(
            lambda: graph.signed_triangles("sign"), lambda numbers: numbers["balanced"] + numbers["unbalanced"]
        ),
        "temporal_triangles()": Question(
            lambda: graph.temporal_triangles("time", window=WINDOW), lambda answer: answer.triangles
        ),
        "survey()": Question(lambda: graph.survey(_sums_of_labels), lambda counts: int(counts.sum())),
        "estimate()": Question(graph.estimate, _unknown),
        "similarity(pairs)": Question(lambda: graph.similarity(pairs, **frame), _unknown),
        "count": Question(count, int),
        "triangles()": Question(anew(graph.triangles), lambda answer: int(answer.sum()) // 3),
        "clustering()": Question(anew(graph.clustering), lambda answer: _of_clustering(_on_host(answer), degree)),
        "edge_support()": Question(anew(graph.edge_support), lambda answer: int(answer["support"].sum()) // 3),
        "similarity()": Question(anew(graph.similarity), _unknown),
        "triangle_list(1000)": Question(anew(graph.triangle_list, LISTED), _unknown),
        **(
            {"motifs()": Question(motifs, _unknown), "similarity(top=10)": Question(most_similar, _unknown)}
            if small
            else {}
        ),
    }


def _sums_of_labels(batch: dict[str, Array]) -> Array:
    """Count the triangles of a batch by the sum of their labels."""
    sums = sum(batch[role] % LABELS for role in "uvw")
    return array_module(sums).bincount(sums, minlength=3 * LABELS - 2)


def _on_host(column: Any) -> Array:
    return (column.to_pandas() if type(column).__module__.startswith("cudf") else column).to_numpy()


def _of_clustering(coefficients: Array, degree: Array) -> int:
    """Number of triangles from the vertices' clustering coefficients and degrees."""
    degree = degree.astype(np.float64)
    return round(float((coefficients * degree * (degree - 1)).sum()) / 6)


def _unknown(answer: Any) -> None:
    """Return None: the answer does not determine the number of triangles."""


# other libraries


def tools(backend: str) -> list[Tool]:
    """The other libraries, including missing ones."""
    if backend == "cuda":
        return [Tool("cuGraph", missing("cugraph", "cugraph-cu13"), False, _cugraph)]
    return [
        Tool("igraph", missing("igraph", "'dasktc[bench]'"), False, _igraph),
        Tool("NetworKit", missing("networkit", "networkit"), False, _networkit),
        Tool("NetworkX", missing("networkx", "networkx"), True, _networkx),
    ]


def _degrees(edges: Array) -> Array:
    return np.bincount(edges.ravel()) if len(edges) else np.zeros(0, np.int64)


def _igraph(edges: Array) -> dict[str, Question]:
    igraph, degree = import_module("igraph"), _degrees(edges)
    graph, pairs, drawn = igraph.Graph(edges=edges), edges.tolist(), _pairs(edges).tolist()
    local = graph.transitivity_local_undirected
    stars = int((degree.astype(np.float64) ** 3).sum()) // 6
    listed = {"motifs()": Question(lambda: graph.motifs_randesu(size=4), _unknown)} if stars < LISTED_MOTIFS else {}
    return {
        "count": Question(
            graph.transitivity_undirected, lambda ratio: whole_triangles(ratio, graph) if len(edges) else 0
        ),
        "survey()": Question(graph.list_triangles, len),
        "clustering()": Question(lambda: local(mode="zero"), lambda answer: _of_clustering(np.array(answer), degree)),
        "similarity()": Question(lambda: graph.similarity_jaccard(pairs=pairs, loops=False), _unknown),
        "similarity(pairs)": Question(lambda: graph.similarity_jaccard(pairs=drawn, loops=False), _unknown),
        **listed,
    }


def _networkit(edges: Array) -> dict[str, Question]:
    nk, degree = import_module("networkit"), _degrees(edges)
    nk.setNumberOfThreads(1)
    source, target = np.ascontiguousarray(edges.T, dtype="uint64")
    graph = nk.graph.GraphFromCoo((source, target), n=len(degree))
    graph.indexEdges()

    def clustering() -> Array:
        return np.array(nk.centrality.LocalClusteringCoefficient(graph, True).run().scores())

    def supports() -> Array:
        score = nk.sparsification.TriangleEdgeScore(graph)
        score.run()
        return np.array(score.scores())

    return {
        "clustering()": Question(clustering, lambda answer: _of_clustering(answer, degree)),
        "edge_support()": Question(supports, lambda answer: int(answer.sum()) // 3),
    }


def _networkx(edges: Array) -> dict[str, Question]:
    nx, degree = import_module("networkx"), _degrees(edges)
    graph, pairs = nx.Graph(edges.tolist()), _pairs(edges).tolist()
    few = int((degree**2).sum()) < LISTED_WEDGES

    def coefficients(answer: dict[int, float]) -> int:
        nodes = np.fromiter(answer, np.int64, len(answer))
        return _of_clustering(np.fromiter(answer.values(), np.float64, len(answer)), degree[nodes])

    def supports() -> Any:
        return nx.generalized_degree(graph)

    def labels(triangle: tuple[int, int, int]) -> tuple[int, ...]:
        return tuple(sorted(vertex % LABELS for vertex in triangle))

    def sign(triangle: tuple[int, int, int]) -> int:
        u, v, w = triangle
        return int(_sign(u, v) * _sign(u, w) * _sign(v, w))

    def closing(triangle: tuple[int, int, int]) -> int:
        u, v, w = triangle
        times = sorted((_time(u, v), _time(u, w), _time(v, w)))
        return int(times[1] - times[0]).bit_length() << 8 | int(times[2] - times[0]).bit_length()

    def most_similar(u: int) -> list[tuple[int, int, float]]:
        others = {v for w in graph[u] for v in graph[w]} - {u}
        return nlargest(10, nx.jaccard_coefficient(graph, [(u, v) for v in others]), itemgetter(2))

    return {
        "count": Question(lambda: sum(nx.triangles(graph).values()), lambda answer: int(answer) // 3),
        "triangles()": Question(lambda: nx.triangles(graph), lambda answer: sum(answer.values()) // 3),
        "clustering()": Question(lambda: nx.clustering(graph), coefficients),
        "edge_support()": Question(
            supports, lambda answer: sum(k * n for histogram in answer.values() for k, n in histogram.items()) // 6
        ),
        "similarity()": Question(lambda: list(nx.jaccard_coefficient(graph, list(graph.edges))), _unknown),
        "similarity(pairs)": Question(lambda: list(nx.jaccard_coefficient(graph, pairs)), _unknown),
        "signed_triangles()": Question(lambda: Counter(map(sign, nx.all_triangles(graph))), Counter.total),
        "temporal_triangles()": Question(lambda: Counter(map(closing, nx.all_triangles(graph))), Counter.total),
        "triangle_types(3)": Question(lambda: Counter(map(labels, nx.all_triangles(graph))), Counter.total),
        "survey()": Question(lambda: Counter(map(sum, map(labels, nx.all_triangles(graph)))), Counter.total),
        "triangle_list(1000)": Question(lambda: list(islice(nx.all_triangles(graph), LISTED)), _unknown),
        **({"similarity(top=10)": Question(lambda: list(map(most_similar, graph)), _unknown)} if few else {}),
    }


def _cugraph(edges: Array) -> dict[str, Question]:
    cugraph, cudf = import_module("cugraph"), get_backend("cuda").frame
    graph = cugraph.Graph()

    def frame(pairs: Array) -> Any:
        return cudf.DataFrame({name: cudf.Series(pairs[:, k].copy()) for k, name in enumerate(("src", "dst"))})

    ends, drawn = frame(edges), frame(_pairs(edges))
    graph.from_cudf_edgelist(ends, source="src", destination="dst", renumber=False)
    count = Question(lambda: cugraph.triangle_count(graph), lambda answer: int(answer["counts"].sum()) // 3)
    return {
        "count": count,
        "triangles()": count,
        "similarity()": Question(lambda: cugraph.jaccard(graph, ends), _unknown),
        "similarity(pairs)": Question(lambda: cugraph.jaccard(graph, drawn), _unknown),
    }
