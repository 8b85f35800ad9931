"""Square clustering coefficients: the share of the possible 4-cycles through a vertex that exist.

With d(v) neighbours, T(v) triangles and q(v) 4-cycles, and sums over the neighbours u of v,

    c(v) = q(v) / (Σ d(u)·(d(v) - 1) - d(v)·(d(v) - 1) - 2·T(v) - q(v))

(Lind, González and Herrmann, Physical Review E 72, 056127, 2005, with the number of possible cycles of Zhang et al.,
Physica A 387, 6869, 2008), which is NetworkX's definition. One worker receives the whole graph, because a 4-cycle may
have its edges in any four blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.answers.external_ids import in_shards
from dasktc.answers.vertex_counts import triangles_by_id
from dasktc.answers.vertex_frames import vertex_answer, vertex_frame_kind
from dasktc.backends import Backend, get_backend
from dasktc.backends.csr import OrientedCSR, on_host
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError
from dasktc.options import format_size, refuse_beyond
from dasktc.pipeline.stages.edge_keys import shift_of
from dasktc.questions.peeling import distinct_edges
from dasktc.wording import advice, plural

__all__ = ["square_clustering"]

Array = Any
EDGE_BYTES, VERTEX_BYTES = 56, 48
"""Bytes that the worker takes beside the blocks: for each edge its key, both entries of the adjacency lists and the
prefix sums of their degrees, or the keys of several blocks while they are joined; for each vertex its numbers."""


def square_clustering(graph: CountingContext, frame: str | None = None, vertices: Any = None) -> Any:
    """Compute the square clustering coefficients; see `Graph.square_clustering`."""
    executor, kind = graph.executor, vertex_frame_kind(graph, frame, vertices)
    nbytes = int(graph.plan.scheme.block_bytes(graph.prepared.sizes).sum())
    nbytes += EDGE_BYTES * graph.edges + VERTEX_BYTES * graph.vertices
    fact = f"square clustering of {plural(graph.edges, 'edge')} needs {format_size(nbytes)} on one worker"
    remedy = f"it receives the whole graph; raise {advice('memory')}, or take a larger worker"
    refuse_beyond(graph.plan.memory, nbytes, fact, remedy, "that it has")
    counts, _ = triangles_by_id(graph)
    executor.store.set_task_memory(nbytes, graph.plan.memory)
    facts = graph.vertices, graph.edges, graph.folder_of_copies, executor.backend
    result = executor.submit("squares", _squares, list(graph.blocks.values()), list(counts.parts), *facts)
    starts = graph.prepared.graph.order.starts
    vectors = [
        in_shards(executor, "squares", vector, starts) for (vector,) in executor.transpose("squares", [result], 2)
    ]
    return vertex_answer(graph, vectors, {"square_clustering": _shares}, kind, vertices)


def _shares(squares: Array, maxima: Array) -> Array:
    return squares / maxima.clip(1)


# on the worker


def _squares(
    blocks: list[OrientedCSR], triangles: list[Array], vertices: int, edges: int, copies: str, backend: Backend
) -> list[Array]:
    """Count the 4-cycles through each vertex, and those that are possible; none where no positive number is."""
    from dasktc.backends.cpu import squares  # loads Numba: only when needed

    shift = shift_of(vertices)
    keys = distinct_edges([block.on_host() for block in blocks], vertices, edges, copies, get_backend("cpu"))
    degrees = np.bincount(keys >> shift, minlength=vertices)
    degrees += np.bincount(keys & ((1 << shift) - 1), minlength=vertices)
    if edges and 2 * edges * int(degrees.max()) >= 1 << 63:
        raise InputError(
            f"square clustering of a graph of {plural(edges, 'edge')} with a vertex of "
            f"{plural(int(degrees.max()), 'neighbour')} could exceed 64 bits: leave that vertex out"
        )
    offsets, columns = squares.adjacency(keys, shift, degrees)
    del keys
    square_counts = squares.squares(offsets, columns)
    sums = np.zeros(len(columns) + 1, np.int64)
    np.cumsum(degrees.take(columns), out=sums[1:])
    degree_sums = sums[offsets[1:]] - sums[offsets[:-1]]
    triangle_pairs = 2 * np.concatenate([on_host(shard) for shard in triangles])
    maxima = (degree_sums - degrees) * (degrees - 1) - triangle_pairs - square_counts
    square_counts[maxima <= 0] = 0
    return [backend.array.asarray(vector) for vector in (square_counts, maxima)]
