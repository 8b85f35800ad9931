"""`write_measures` writes degree, triangles and clustering coefficient of every vertex of a source to a file."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from typing import Any

from dasktc.api.count import prepare
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.io.write import FRAMES, check_target, write_frames
from dasktc.questions.measures import MEASURES, average_clustering, transitivity, vertex_frames
from dasktc.summary import Rows, Summarised
from dasktc.wording import plural

__all__ = ["MeasuresFile", "write_measures"]


@dataclass(frozen=True, repr=False)
class MeasuresFile(Summarised):
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

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return asdict(self)

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

    Returns
    -------
    MeasuresFile

    Raises
    ------
    InputError
        `out` has another ending, exists already, or is in no existing folder; or as `prepare`.
    DasktcError, CountError
        As `prepare` and `Graph.triangles`.
    """
    check_target(out, FRAMES, force)
    began = time.perf_counter()
    with prepare(source, **options) as graph:
        context = graph._context
        frames, triangles = vertex_frames(context, MEASURES)
        write_frames(frames, out, context.executor, force)
        mean, ratio = average_clustering(context), transitivity(context)
        seconds = time.perf_counter() - began
        return MeasuresFile(triangles, graph.vertices, graph.edges, mean, ratio, os.fspath(out), seconds)
