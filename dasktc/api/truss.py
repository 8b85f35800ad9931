"""`write_truss` prepares a graph, peels it, and writes the trussness of its edges or one truss (`dasktc truss`)."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from typing import Any

from dasktc.api.count import prepare
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.io.write import FRAMES, check_target, write_frames
from dasktc.questions.trussness import order_of_truss, truss_frames
from dasktc.summary import Rows, Summarised
from dasktc.wording import plural

__all__ = ["TrussFile", "write_truss"]


@dataclass(frozen=True, repr=False)
class TrussFile(Summarised):
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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return asdict(self)

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
    began = time.perf_counter()
    with prepare(source, **options) as graph:
        before, context = time.perf_counter(), graph._context
        frames, facts = truss_frames(context, k)
        peeled = time.perf_counter()
        write_frames(frames, output, context.executor, force)
        ended = time.perf_counter()
        seconds = {"truss": peeled - before, "write": ended - peeled, "total": ended - began}
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
