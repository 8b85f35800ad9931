"""`write_similarity` writes the similarity of edges, or each vertex's most similar ones (`dasktc similarity`)."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from typing import Any

from dasktc.api.count import prepare
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.io.write import FRAMES, check_target, write_frames
from dasktc.options import whole_number
from dasktc.questions.similarity import BOUND, checked, similarity_frames
from dasktc.summary import Rows, Summarised
from dasktc.wording import plural

__all__ = ["SimilarityFile", "write_similarity"]


@dataclass(frozen=True, repr=False)
class SimilarityFile(Summarised):
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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.output}: {self.measure} of {plural(self.rows, 'pair')}; {self.seconds['total']:.2f} s"

    def _rows(self) -> Rows:
        chosen = "every edge" if self.top is None else f"each vertex and up to {self.top:,} most similar ones"
        return [
            ("similarity", f"{self.measure} of {plural(self.rows, 'pair')}: {chosen}"),
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
    began = time.perf_counter()
    with prepare(source, **options) as graph:
        before, context = time.perf_counter(), graph._context
        frames, rows = similarity_frames(context, measure, top, bound)
        compared = time.perf_counter()
        write_frames(frames, output, context.executor, force)
        ended = time.perf_counter()
        seconds = {"similarity": compared - before, "write": ended - compared, "total": ended - began}
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
