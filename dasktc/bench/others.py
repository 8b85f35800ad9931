"""Other tools that count triangles, run with one thread each where they are installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dasktc.bench.kernels import Counted, Counter, Inputs, cpu_seconds
from dasktc.errors import CountError, InputError

__all__ = ["GAPBS_MISSING", "igraph_file", "missing", "other_tools", "whole_triangles"]

Array = Any
GAPBS_MISSING = "not installed: build tc of https://github.com/sbeamer/gapbs and name it with --gapbs PATH"


def other_tools(gapbs: str | None) -> list[Counter]:
    """The other tools, including missing ones; `gapbs` is the path of GAPBS' `tc`, where it is known."""
    clustering = "centrality.LocalClusteringCoefficient(graph, turbo=True).run()"
    product = "C(L.S) << L.mxm(L, plus_pair); C.reduce_scalar(), L in degree order"
    binary = _find_gapbs(gapbs)
    trial = f"{binary or 'tc'} -f graph.sg -n 1, its relabelling included"
    return [
        Counter("igraph", _igraph, "Graph.transitivity_undirected()", missing("igraph", "'dasktc[bench]'")),
        Counter("networkit", _networkit, clustering, missing("networkit", "networkit")),
        Counter("graphblas", _graphblas, product, missing("graphblas", "python-graphblas")),
        Counter("gapbs", partial(_gapbs, binary or "tc"), trial, "" if binary else GAPBS_MISSING),
    ]


def missing(module: str, package: str) -> str:
    """How to install a module that is missing; empty where it is there."""
    return "" if find_spec(module) else f"not installed: pip install {package}"


def _igraph(inputs: Inputs) -> Counted:
    import igraph

    graph = igraph.Graph(edges=inputs.edges())
    ratio, seconds = cpu_seconds(graph.transitivity_undirected)
    return Counted(whole_triangles(ratio, graph), seconds)


def whole_triangles(ratio: float, simple: Any) -> int:
    """Triangles of a simple graph from igraph's ratio, 3 triangles / connected triples: it offers no plain count."""
    import numpy as np

    degree = np.array(simple.degree(), dtype="int64")
    triples = int((degree * (degree - 1) // 2).sum())
    triangles = ratio * triples / 3 if triples else 0.0
    if abs(triangles - round(triangles)) > 1e-3:
        raise CountError(f"igraph's transitivity {ratio!r} of {triples:,} triples makes {triangles} triangles")
    return round(triangles)


def igraph_file(path: str, names: bool) -> Counted:
    """Read a file of edges with igraph and count: by Read_Ncol where ids are sparse, else by Read_Edgelist."""
    import igraph

    def read_and_count() -> tuple[float, Any]:
        graph = igraph.Graph.Read_Ncol(path, directed=False) if names else igraph.Graph.Read_Edgelist(path, False)
        return graph.transitivity_undirected(), graph

    (ratio, graph), seconds = cpu_seconds(read_and_count)
    return Counted(whole_triangles(ratio, graph.simplify()), seconds)


def _networkit(inputs: Inputs) -> Counted:
    import numpy as np

    nk = import_module("networkit")
    nk.setNumberOfThreads(1)
    edges = inputs.edges()
    source, target = np.ascontiguousarray(edges.T, dtype="uint64")
    graph = nk.graph.GraphFromCoo((source, target), n=int(edges.max()) + 1)
    clustering = nk.centrality.LocalClusteringCoefficient(graph, True)
    _, seconds = cpu_seconds(clustering.run)
    degree = np.bincount(edges.ravel())
    return Counted(round(float((np.array(clustering.scores()) * degree * (degree - 1)).sum()) / 6), seconds)


def _graphblas(inputs: Inputs) -> Counted:
    gb = import_module("graphblas")
    gb.ss.config["nthreads"] = 1
    offsets, columns = inputs.oriented("degree")
    size = len(offsets) - 1
    lower = gb.Matrix.from_csr(offsets, columns, True, nrows=size, ncols=size, dtype=bool)

    def count() -> int:
        wedges = gb.Matrix(gb.dtypes.INT64, size, size)
        wedges(lower.S) << lower.mxm(lower, gb.semiring.plus_pair[gb.dtypes.INT64])
        return int(wedges.reduce_scalar().get(0))

    return Counted(*cpu_seconds(count))


def _gapbs(binary: str, inputs: Inputs) -> Counted:
    """CPU seconds of one trial, as the difference between two trials and one, which cancels loading."""
    graph = Path(inputs.folder, "graph.sg")
    if not graph.exists():
        graph.write_bytes(_serialized(inputs.edges()))
    once, twice = (_trials(binary, graph, trials) for trials in (1, 2))
    return Counted(twice.triangles, twice.seconds - once.seconds)


def _serialized(edges: Array) -> bytes:
    """Serialize edges as a GAPBS .sg file: directed (1 byte), edges both ways, vertices, offsets, neighbours."""
    import numpy as np

    arcs = np.concatenate([edges, edges[:, ::-1]])
    arcs = arcs[np.lexsort((arcs[:, 1], arcs[:, 0]))]
    offsets = np.cumsum(np.bincount(arcs[:, 0] + 1)).astype("int64")
    sizes = np.array([len(arcs), len(offsets) - 1], "int64")
    return b"\0" + sizes.tobytes() + offsets.tobytes() + arcs[:, 1].astype("int32").tobytes()


def _trials(binary: str, graph: Path, trials: int) -> Counted:
    import resource

    def used() -> float:
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime

    start = used()
    command = [binary, "-f", str(graph), "-n", str(trials), "-a"]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    match = re.search(r"(\d+) triangles", process.stdout)
    if match is None:
        raise CountError(f"{' '.join(command)} printed no number of triangles: is it GAPBS tc?; name it with --gapbs")
    return Counted(int(match[1]), used() - start)


def _find_gapbs(path: str | None) -> str | None:
    """Find GAPBS' `tc` at the given path, or on PATH, where `tc` is mostly Linux' traffic control."""
    binary = path or shutil.which("tc")
    if binary and os.access(binary, os.X_OK):
        usage = subprocess.run([binary, "-h"], capture_output=True, text=True, check=False).stdout
        if "load graph from file" in usage:
            return binary
    if path:
        raise InputError(f"{path} -h does not print the usage of GAPBS: it is not its tc; give another --gapbs PATH")
    return None
