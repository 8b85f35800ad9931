"""Square clustering coefficients: the share of the possible 4-cycles through a vertex that exist.

With d(v) neighbours, T(v) triangles and q(v) 4-cycles, and sums over the neighbours u of v,

    c(v) = q(v) / (Σ d(u)·(d(v) - 1) - d(v)·(d(v) - 1) - 2·T(v) - q(v))

(Lind, González and Herrmann, Physical Review E 72, 056127, 2005, with the number of possible cycles of Zhang et al.,
Physica A 387, 6869, 2008), which is NetworkX's definition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.answers.frames import frame_kind
from dasktc.answers.vertex_counts import triangles_by_id
from dasktc.answers.vertex_frames import reals, vertex_answer
from dasktc.backends.csr import on_host
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import refuse_unless
from dasktc.errors import InputError
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.stages.edge_keys import pack, shift_of
from dasktc.wording import advice, option, plural

__all__ = ["square_clustering"]

Array = Any


def square_clustering(graph: CountingContext, frame: str | None = None, vertices: Any = None) -> Any:
    """Compute the square clustering coefficients; see `Graph.square_clustering`."""
    executor, oriented, kind = graph.executor, graph.prepared.graph, frame_kind(graph, frame)
    if not graph.answers.in_one_memory:
        raise InputError(
            "square clustering needs the whole graph in one process's memory, and this one was prepared on workers or "
            f"within {option('memory')}: prepare it with {advice(threads=1)} or more, and without {option('memory')}"
        )
    outward, inward = (on_host(d) for d in executor.gather([oriented.out_degree.whole, oriented.in_degree.whole]))
    degrees = outward.astype(np.int64) + inward
    if graph.edges and 2 * graph.edges * int(degrees.max()) >= 1 << 63:
        raise InputError(
            f"square clustering of a graph of {plural(graph.edges, 'edge')} with a vertex of "
            f"{plural(int(degrees.max()), 'neighbour')} could exceed 64 bits: leave that vertex out"
        )
    counts, _ = triangles_by_id(graph)
    (triangles,) = executor.gather([counts.whole])
    values = _coefficients(_keys(graph), degrees, on_host(triangles))
    shards = Sharded(oriented.order.starts, [executor.submit("squares", executor.backend.array.asarray, values)])
    return vertex_answer(graph, [shards], {"square_clustering": reals}, kind, vertices)


def _keys(graph: CountingContext) -> Array:
    """Return the distinct keys of all edges, ascending, over the blocks' ids."""
    shift, keys = shift_of(graph.vertices), []
    for block in graph.executor.gather(graph.blocks.values()):
        offsets, columns = on_host(block.offsets), on_host(block.columns)
        u = block.row_ids(np.repeat(np.arange(block.rows), np.diff(offsets)))
        v = block.column_ids(columns)
        keys.append(pack(np.maximum(u, v), np.minimum(u, v), shift))
    if len(keys) == 1 and graph.plan.scheme.once:
        edges = keys[0] if (keys[0][1:] > keys[0][:-1]).all() else np.sort(keys[0])
    else:
        edges = np.unique(np.concatenate(keys)) if keys else np.empty(0, np.int64)
    fact = f"the blocks hold {plural(len(edges), 'edge')}, but the plan {graph.edges:,}"
    refuse_unless(len(edges) == graph.edges, fact, graph.folder_of_copies)
    return edges


def _coefficients(keys: Array, degrees: Array, triangles: Array) -> Array:
    from dasktc.backends.cpu import squares  # loads Numba: only when needed

    offsets, columns = squares.adjacency(keys, shift_of(len(degrees)), degrees)
    by_vertex = squares.squares(offsets, columns)
    sums = np.zeros(len(columns) + 1, np.int64)
    np.cumsum(degrees.take(columns), out=sums[1:])
    around = sums[offsets[1:]] - sums[offsets[:-1]]
    possible = (around - degrees) * (degrees - 1) - 2 * triangles - by_vertex
    return np.where(possible > 0, by_vertex / np.maximum(possible, 1), 0.0)
