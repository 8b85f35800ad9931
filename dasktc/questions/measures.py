"""Triangles by vertex and by edge, clustering coefficients and transitivity of a prepared graph.

With T(v) triangles and d(v) neighbours of vertex v, its local clustering coefficient is
2·T(v) / (d(v)·(d(v) - 1)) (Watts and Strogatz, Nature 393, 1998, doi:10.1038/30918), and the graph's
transitivity ΣT(v) / Σd(v)·(d(v) - 1)/2. Results carry the caller's ids. The graph caches its counts
(`counting.counted`); `answers.frames` defines the frame types of results.
"""

from __future__ import annotations

from typing import Any

from dasktc.answers.edge_frames import edge_answer, partitions, refuse_frame
from dasktc.answers.edge_support import support_kernel
from dasktc.answers.frames import frame_kind
from dasktc.answers.vertex_counts import (
    coefficients,
    degrees,
    known_edges,
    known_triangles,
    same,
    triangles_by_id,
)
from dasktc.answers.vertex_frames import Columns, total_of, vertex_answer, vertex_frame_kind, vertex_partitions
from dasktc.counting.context import CountingContext
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.questions.distributions import degree_facts

__all__ = [
    "average_clustering",
    "edge_frames",
    "edge_support",
    "of_vertices",
    "transitivity",
    "vertex_frames",
]

Array = Any
TRIANGLES: Columns = {"triangles": same}
CLUSTERING: Columns = {"clustering": coefficients}
MEASURES: Columns = {"degree": degrees, **TRIANGLES, **CLUSTERING}


def of_vertices(graph: CountingContext, columns: Columns, frame: str | None, vertices: Any) -> Any:
    """Compute columns from each vertex's triangles, out-degree and in-degree, with one function per column."""
    kind = vertex_frame_kind(graph, frame, vertices)
    return _record_kernel(graph, vertex_answer(graph, _vectors(graph), columns, kind, vertices))


def _record_kernel(graph: CountingContext, answer: Any) -> Any:
    """Record the kernel that counted in the answer's `attrs`, if it has them, as pandas does."""
    if isinstance(getattr(answer, "attrs", None), dict):
        answer.attrs["kernel"] = support_kernel(graph)
    return answer


def _vectors(graph: CountingContext) -> list[Sharded]:
    """Return vectors of the vertices' triangles (counted if necessary), out-degrees and in-degrees."""
    counts, _ = triangles_by_id(graph)
    return [counts, graph.prepared.graph.out_degree, graph.prepared.graph.in_degree]


def average_clustering(graph: CountingContext) -> float:
    """Average the local clustering coefficients; see `Graph.average_clustering`."""
    return total_of(graph, _vectors(graph), CLUSTERING) / graph.vertices if graph.vertices else 0.0


def transitivity(graph: CountingContext) -> float:
    """Compute the share of pairs of neighbours that are adjacent; see `Graph.transitivity`."""
    _, pairs = degree_facts(graph)
    return 3 * known_triangles(graph) / pairs if pairs else 0.0


def edge_support(graph: CountingContext, frame: str | None = None, edges: Any = None) -> Any:
    """Count the triangles of every edge; see `Graph.edge_support`."""
    kind = frame_kind(graph, frame, "edges")
    if edges is None:
        refuse_frame(graph, kind)
    supports, count = known_edges(graph)
    return _record_kernel(graph, edge_answer(graph, supports, "support", kind, edges, 3 * count))


def vertex_frames(graph: CountingContext, columns: Columns = TRIANGLES) -> tuple[list[Any], int]:
    """Count the triangles of every vertex, for files: handles of pandas frames, and the triangles of the graph.

    There is one frame, or one per shard, with "vertex", ascending, and `columns`, functions of each vertex's triangles,
    out-degree and in-degree. Errors are those of `Graph.triangles`.
    """
    frames, _ = vertex_partitions(graph, _vectors(graph), columns)
    return frames, known_triangles(graph)


def edge_frames(graph: CountingContext) -> tuple[list[Any], int]:
    """Count the triangles of every edge, for files: handles of pandas frames, and the triangles of the graph.

    The frames, at least one, are the partitions of `Graph.edge_support`, in ascending order; its errors are raised.
    """
    supports, count = known_edges(graph)
    frames, _ = partitions(graph, supports, "support", total=3 * count)
    return frames, count
