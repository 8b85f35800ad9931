"""Commands that write what they find about a source: measures, trussness, similar vertices, the prepared graph."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from typing import Any

from dasktc.api.count import prepare
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.errors import without_secrets
from dasktc.io.write import FRAMES, check_target, write_frames
from dasktc.options import format_size, whole_number
from dasktc.questions.measures import MEASURES, average_clustering, transitivity, vertex_frames
from dasktc.questions.similarity import BOUND, checked, similarity_frames
from dasktc.questions.trussness import order_of_truss, truss_frames
from dasktc.saved.folder import check_new
from dasktc.summary import Rows, Summarised
from dasktc.wording import plural

__all__ = [
    "MeasuresFile",
    "SavedFolder",
    "SimilarityFile",
    "TrussFile",
    "save_source",
    "write_measures",
    "write_similarity",
    "write_truss",
]


@dataclass(frozen=True, repr=False)
class _Written(Summarised):
    """Summary of what was written."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, repr=False)
class MeasuresFile(_Written):
    """Summary of a written file of measures: its path, and what the graph has.

    Attributes
    ----------
    triangles, vertices, edges : int
        Of the graph, after clean-up.
    average_clustering, transitivity : float
    out : str
        The file.
    seconds : float
        Total wall time.
    """

    triangles: int
    vertices: int
    edges: int
    average_clustering: float
    transitivity: float
    out: str
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.out}: {plural(self.vertices, 'vertex')}, {plural(self.triangles, 'triangle')}; {self.seconds:.2f} s"
        )

    def _rows(self) -> Rows:
        return [
            ("triangles", f"{self.triangles:,}"),
            ("graph", f"{plural(self.vertices, 'vertex')}, {plural(self.edges, 'edge')}"),
            ("average clustering", f"{self.average_clustering:.6g}"),
            ("transitivity", f"{self.transitivity:.6g}"),
            ("written", f"{self.out}, in {self.seconds:.2f} s"),
        ]


@said_in_one_line
def write_measures(source: Any, out: str | os.PathLike[str], force: bool = False, **options: Any) -> MeasuresFile:
    """Write degree, triangles and local clustering coefficient of every vertex, from one pass of counting.

    Parameters
    ----------
    source : str, sequence of str, or object
        As for `prepare`.
    out : path
        .parquet (a file, or a folder with one file per shard of the vertices), .csv, or .txt with tabs and no header.
        Columns "vertex", "degree", "triangles", "clustering", by ascending ids. The workers write, so they must see
        the folder.
    force : bool
        Replace an existing output.
    **options
        Keywords of `prepare`.

    Raises
    ------
    InputError
        `out` has another ending, exists already, or is in no existing folder; or as `prepare`.
    DasktcError, CountError
        As `prepare` and `Graph.triangles`.
    """
    check_target(out, FRAMES, force)
    start = time.perf_counter()
    with prepare(source, **options) as graph:
        context = graph._context
        frames, triangles = vertex_frames(context, MEASURES)
        write_frames(frames, out, context.executor, force)
        mean, ratio = average_clustering(context), transitivity(context)
        seconds = time.perf_counter() - start
        return MeasuresFile(triangles, graph.vertices, graph.edges, mean, ratio, os.fspath(out), seconds)


@dataclass(frozen=True, repr=False)
class TrussFile(_Written):
    """Summary of a written file of trussness or of a k-truss: its path and contents.

    Attributes
    ----------
    output : str
    k : int or None
        k of the truss; None: the trussness of all edges.
    largest : int
        The largest trussness; for one truss, the most triangles of an edge within it. 0 without edges.
    vertices, edges : int
        Numbers written.
    graph_vertices, graph_edges : int
        Numbers of the graph, after clean-up.
    backend : str
    seconds : dict of str to float
        Wall time of read, prepare, truss, write and total.
    """

    output: str
    k: int | None
    largest: int
    vertices: int
    edges: int
    graph_vertices: int
    graph_edges: int
    backend: str
    seconds: dict[str, float]

    def __str__(self) -> str:
        (_, contents), (_, seconds) = self._rows()[1:]
        return f"{self.output}: {contents}; {seconds}"

    __repr__ = __str__

    def _rows(self) -> Rows:
        if self.k is None:
            contents = f"{plural(self.edges, 'edge')} of trussness up to {self.largest:,}"
        else:
            contents = (
                f"{self.k}-truss: {self.vertices:,} of {plural(self.graph_vertices, 'vertex')}, {self.edges:,} of "
                f"{plural(self.graph_edges, 'edge')}, in up to {plural(self.largest, 'triangle')} each"
            )
        seconds = f"{self.seconds['total']:.2f} s, of which {self.seconds['truss']:.2f} to peel"
        return [("written", self.output), ("truss", contents), ("seconds", seconds)]


@said_in_one_line
def write_truss(
    source: Any, output: str | os.PathLike[str], k: int | None = None, force: bool = False, **options: Any
) -> TrussFile:
    """Write every edge with its trussness, or the edges of one truss with their triangles within it.

    Parameters
    ----------
    source : object
        As for `dasktc.triangle_count`.
    output : path
        .parquet (a file or a folder), .csv, or .txt with tabs and no header: `Graph.truss`.
    k : int, optional
        k of the truss.
    force : bool
        Replace an existing output.
    **options
        Keywords of `dasktc.prepare`.

    Raises
    ------
    InputError, DasktcError, ClusterError, CountError
        As `prepare` and `Graph.truss`; or the output cannot be written.
    """
    if k is not None:
        k = order_of_truss(k)
    check_target(output, FRAMES, force)
    start = time.perf_counter()
    with prepare(source, **options) as graph:
        truss_start, context = time.perf_counter(), graph._context
        frames, facts = truss_frames(context, k)
        truss_end = time.perf_counter()
        write_frames(frames, output, context.executor, force)
        end = time.perf_counter()
        seconds = {"truss": truss_end - truss_start, "write": end - truss_end, "total": end - start}
        return TrussFile(
            output=os.fspath(output),
            k=k,
            largest=facts.largest,
            vertices=facts.vertices,
            edges=facts.edges,
            graph_vertices=graph.vertices,
            graph_edges=graph.edges,
            backend=context.options.chosen_backend,
            seconds={**context.prepared.seconds, **seconds},
        )


@dataclass(frozen=True, repr=False)
class SavedFolder(_Written):
    """Summary of a saved graph: its folder, sizes, scheme and seconds.

    Attributes
    ----------
    out : str
        The folder.
    vertices, edges : int
    partition : str
    parts : int
    reorder : str
    bytes : int
        Size of the arrays.
    seconds : dict of str to float
        Wall time of read, prepare, save and total.
    """

    out: str
    vertices: int
    edges: int
    partition: str
    parts: int
    reorder: str
    bytes: int
    seconds: dict[str, float]

    def __str__(self) -> str:
        return f"{self.out}: {plural(self.vertices, 'vertex')}, {plural(self.edges, 'edge')}, {format_size(self.bytes)}"

    def _rows(self) -> Rows:
        return [
            ("saved", f"{self.out}, {format_size(self.bytes)}"),
            ("vertices", f"{self.vertices:,}"),
            ("edges", f"{self.edges:,}"),
            ("partition", f"{self.partition}, n = {self.parts}, order {self.reorder}"),
            ("seconds", f"{self.seconds['total']:.2f}, of which {self.seconds['save']:.2f} to save"),
        ]


@said_in_one_line
def save_source(source: Any, out: str | os.PathLike[str], force: bool = False, **options: Any) -> SavedFolder:
    """Prepare a source and save the graph.

    Parameters
    ----------
    source : object
        As for `prepare`, or a saved graph.
    out : path or fsspec URL
        As for `Graph.save`; a URL in this process's memory is refused.
    force : bool
        Replace a saved graph.
    **options
        Keywords of `prepare`.

    Raises
    ------
    InputError, DasktcError, ClusterError, CountError
        As `prepare` and `Graph.save`.
    """
    check_new(out, force, "nothing of it is left when this command ends")
    start = time.perf_counter()
    with prepare(source, **options) as graph:
        save_start = time.perf_counter()
        nbytes = graph.save(out, force=force)
        end = time.perf_counter()
        plan = graph.plan
        return SavedFolder(
            out=without_secrets(os.fspath(out)),
            vertices=graph.vertices,
            edges=graph.edges,
            partition=plan.partition,
            parts=plan.parts,
            reorder=graph._context.options.chosen_reorder,
            bytes=nbytes,
            seconds={**graph._context.prepared.seconds, "save": end - save_start, "total": end - start},
        )


@dataclass(frozen=True, repr=False)
class SimilarityFile(_Written):
    """Summary of a written file of similarities: its path and contents.

    Attributes
    ----------
    output : str
    measure : str
    top : int or None
        Most rows of a vertex; None: a row for each edge.
    rows : int
        Pairs written.
    vertices, edges : int
        Numbers of the graph, after clean-up.
    backend : str
    seconds : dict of str to float
        Wall time of read, prepare, similarity, write and total.
    """

    output: str
    measure: str
    top: int | None
    rows: int
    vertices: int
    edges: int
    backend: str
    seconds: dict[str, float]

    def __str__(self) -> str:
        return f"{self.output}: {self.measure} of {plural(self.rows, 'pair')}; {self.seconds['total']:.2f} s"

    def _rows(self) -> Rows:
        selection = "every edge" if self.top is None else f"each vertex and up to {self.top:,} most similar ones"
        return [
            ("similarity", f"{self.measure} of {plural(self.rows, 'pair')}: {selection}"),
            ("graph", f"{plural(self.vertices, 'vertex')}, {plural(self.edges, 'edge')}"),
            ("written", f"{self.output}, in {self.seconds['total']:.2f} s"),
        ]


@said_in_one_line
def write_similarity(
    source: Any,
    output: str | os.PathLike[str],
    measure: str = "jaccard",
    top: int | None = None,
    bound: int = BOUND,
    force: bool = False,
    **options: Any,
) -> SimilarityFile:
    """Write the similarity of the ends of every edge, or each vertex's most similar vertices.

    Parameters
    ----------
    source : object
        As for `dasktc.triangle_count`.
    output : path
        .parquet (a file or a folder), .csv, or .txt with tabs and no header: `Graph.similarity`.
    measure, top, bound
        As for `Graph.similarity`.
    force : bool
        Replace an existing output.
    **options
        Keywords of `dasktc.prepare`.

    Raises
    ------
    InputError, DasktcError, ClusterError, CountError
        As `prepare` and `Graph.similarity`; or the output cannot be written.
    """
    checked(measure)
    if top is not None:
        whole_number("top", top, 1, few="nothing would be found")
    check_target(output, FRAMES, force)
    start = time.perf_counter()
    with prepare(source, **options) as graph:
        measure_start, context = time.perf_counter(), graph._context
        frames, rows = similarity_frames(context, measure, top, bound)
        measure_end = time.perf_counter()
        write_frames(frames, output, context.executor, force)
        end = time.perf_counter()
        seconds = {"similarity": measure_end - measure_start, "write": end - measure_end, "total": end - start}
        return SimilarityFile(
            output=os.fspath(output),
            measure=measure,
            top=top,
            rows=rows,
            vertices=graph.vertices,
            edges=graph.edges,
            backend=context.options.chosen_backend,
            seconds={**context.prepared.seconds, **seconds},
        )
