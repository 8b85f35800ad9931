"""Triangles by vertex and by edge, clustering coefficients and transitivity of a prepared graph.

With T(v) triangles and d(v) neighbours of vertex v, its local clustering coefficient is
2·T(v) / (d(v)·(d(v) - 1)) (Watts and Strogatz, Nature 393, 1998, doi:10.1038/30918), and the graph's
transitivity ΣT(v) / Σd(v)·(d(v) - 1)/2. Results carry the caller's ids. Series of
vertices come to the caller; frames of edges stay on the cluster, where there is one.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.backends import get_backend
from dasktc.backends.csr import OrientedCSR, on_host
from dasktc.counting.context import CountingContext
from dasktc.counting.count import count as count_triangles
from dasktc.counting.edge_support import edge_supports
from dasktc.counting.external_ids import SHIFT, column, edges_by_dense_id, frames_of_edges
from dasktc.counting.vertex_counts import (
    coefficients,
    frames_by_id,
    pairs_of,
    refuse_series,
    refuse_unless,
    same,
    series_by_id,
    triangles_by_id,
)
from dasktc.errors import InputError
from dasktc.executors.base import Executor
from dasktc.options import format_size
from dasktc.pipeline.edge_keys import pack, unpack
from dasktc.pipeline.id_maps import VertexMap
from dasktc.pipeline.shuffle import splitters

if TYPE_CHECKING:
    import pandas as pd


__all__ = [
    "average_clustering",
    "clustering",
    "edge_frames",
    "edge_support",
    "transitivity",
    "triangles",
    "vertex_frames",
]

Array = Any
PARTITION_EDGES = 1 << 22
"""Edges in a partition of a distributed result."""
FRAME_BYTES = 100
"""Bytes that a row of an edge frame takes while it is made: keys, supports, their order, and ids."""
SPLIT_BYTES = 200
"""The same where vertices are in shards."""


def triangles(graph: CountingContext) -> pd.Series[int]:
    """Count the triangles of every vertex; see `Graph.triangles`."""
    refuse_series(graph)
    counts, _ = triangles_by_id(graph)
    return series_by_id(graph, "triangles", counts, [], same)


def clustering(graph: CountingContext) -> pd.Series[float]:
    """Compute the local clustering coefficients; see `Graph.clustering`."""
    refuse_series(graph)
    oriented, (counts, _) = graph.prepared.graph, triangles_by_id(graph)
    return series_by_id(graph, "clustering", counts, [oriented.out_degree, oriented.in_degree], coefficients)


def average_clustering(graph: CountingContext) -> float:
    """Average the local clustering coefficients; see `Graph.average_clustering`."""
    return float(clustering(graph).to_numpy().mean()) if graph.vertices else 0.0


def transitivity(graph: CountingContext) -> float:
    """Compute the share of pairs of neighbours that are joined; see `Graph.transitivity`."""
    oriented, executor = graph.prepared.graph, graph.executor
    degrees = zip(oriented.out_degree.parts, oriented.in_degree.parts, strict=True)
    pairs = sum(executor.gather([executor.submit("transitivity", pairs_of, *both) for both in degrees]))
    return 3 * int(count_triangles(graph)) / pairs if pairs else 0.0


def edge_support(graph: CountingContext) -> Any:
    """Count the triangles of every edge; see `Graph.edge_support`."""
    alone = not graph.executor.distributed
    if alone and graph.executor.memory_per_call is not None:
        _refuse_frame_beyond(graph.executor.memory_per_call, graph.edges)
    frames, _ = edge_frames(graph, together=alone)
    parts = graph.executor.values(frames)
    if alone:
        return parts[0]
    return _distributed(parts, "int64" if graph.prepared.source.ids == "int" else "str")


def vertex_frames(graph: CountingContext) -> tuple[list[Any], int]:
    """Count the triangles of every vertex and leave the numbers where they are.

    Parameters
    ----------
    graph : CountingContext

    Returns
    -------
    frames : list of handles of DataFrame
        Columns "vertex" and "triangles", as in `Graph.triangles`; one, or one a shard.
    triangles : int
        Of the graph.

    Raises
    ------
    InputError, CountError
        As `Graph.triangles`.
    """
    counts, count = triangles_by_id(graph)
    return frames_by_id(graph, "triangles", counts, [], same), count


def edge_frames(graph: CountingContext, together: bool = False) -> tuple[list[Any], int]:
    """Count the triangles of every edge and leave the numbers where they are.

    Parameters
    ----------
    graph : CountingContext
    together : bool
        Make one partition without a client, also out of core.

    Returns
    -------
    frames : list of handles of DataFrame
        The partitions of `Graph.edge_support`, at least one; without a client just one, but for out of core.
    triangles : int
        Of the graph.

    Raises
    ------
    InputError, CountError
        As `Graph.edge_support`.
    """
    executor, vertices = graph.executor, graph.prepared.vertices
    supports, count = edge_supports(graph)
    row_bytes = FRAME_BYTES if graph.plan.shards == 1 else SPLIT_BYTES
    share = executor.memory_in_parallel
    step = PARTITION_EDGES if share is None else min(PARTITION_EDGES, max(1, share // row_bytes))
    slices = _slices(graph, supports, step)
    if graph.plan.shards > 1:
        slices = edges_by_dense_id(executor, slices, graph.prepared.graph.order)
    groups = [[part] for part in slices] if graph.plan.scheme.once else _by_edge(executor, slices, graph.edges, step)
    parts = executor.map("edges", _summed, groups)
    added = executor.gather(executor.map("support", _added, list(parts)))
    refuse_unless(sum(edges for edges, _ in added) == graph.edges, "supports and edges differ in number")
    refuse_unless(sum(supports for _, supports in added) == 3 * count, "supports do not add up to 3 a triangle")
    apart = executor.distributed or (executor.memory_per_call is not None and not together)
    groups = [[part] for part in parts] if parts and apart else [parts]
    if graph.plan.shards > 1:
        return frames_of_edges(executor, executor.map("edges", _joined, groups), vertices), count
    return executor.submit_all("edges", _edge_frame, [(group, vertices) for group in groups]), count


def _slices(graph: CountingContext, supports: dict[Any, Any], step: int) -> list[Any]:
    """Keys above supports of so many edges of a block each: over dense ids, or where these are in shards new ids."""
    order = None if graph.plan.shards > 1 else graph.prepared.graph.order.whole
    backend = graph.options.chosen_backend
    calls = [
        (graph.blocks[place], of_block, order, start, start + step, backend)
        for place, of_block in supports.items()
        for start in range(0, int(graph.prepared.sizes.edges[place]), step)
    ]
    return graph.executor.submit_all("edges", _slice, calls)


def _refuse_frame_beyond(memory: int, edges: int) -> None:
    if FRAME_BYTES * edges > memory:
        raise InputError(
            f"a frame of {edges:,} edges takes {format_size(FRAME_BYTES * edges)} while it is made, more than the "
            f"{format_size(memory)} of memory for it: the caller gets it whole; write it with per_edge, or raise memory"
        )


# by edge


def _added(edges: Array) -> tuple[int, int]:
    return edges.shape[1], int(edges[1].sum())


def _slice(block: OrientedCSR, support: Array, order: Array | None, start: int, stop: int, backend: str) -> Any:
    """The keys of some of a block's edges, the smaller dense id first, above their supports; on the host."""
    xp, stop = get_backend(backend).array, min(stop, block.edges)
    if xp is np:  # a search for each edge takes three times as long
        rows = np.repeat(np.arange(block.rows), np.diff(block.offsets.clip(start, stop)))
    else:
        rows = block.offsets.searchsorted(xp.arange(start, stop, dtype="int64"), side="right") - 1
    u, v = block.row_ids(rows), block.column_ids(block.columns[start:stop])
    if order is not None:
        u, v = order.take(u), order.take(v)
    keys = pack(xp.minimum(u, v), xp.maximum(u, v), SHIFT)
    return on_host(xp.stack([keys, support[start:stop].astype("int64")]))


def _by_edge(executor: Executor, slices: list[Any], edges: int, step: int) -> list[list[Any]]:
    """Bring the supports of one edge, which stand in several slices, together."""
    keys = [executor.submit("edges", operator.getitem, part, 0) for part in slices]
    starts = splitters(executor, "edges", keys, edges, max(1, -(-edges // step)))
    return executor.transpose("edges", executor.map("edges", _cut, slices, starts), len(starts) + 1)


def _cut(slice: Array, starts: list[int]) -> list[Array]:
    """The slice's edges in ascending order, cut before each of `starts`."""
    ascending = slice[:, slice[0].argsort()]
    return np.split(ascending, ascending[0].searchsorted(starts), axis=1)


def _summed(slices: list[Array]) -> Array:
    """Each edge once, with the sum of its supports."""
    if len(slices) == 1:
        return slices[0]
    keys, support = _joined(slices)
    place = keys.argsort()
    keys, support = keys[place], support[place]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return np.stack([keys[first], np.add.reduceat(support, first)]) if len(first) else np.empty((2, 0), np.int64)


def _joined(slices: list[Array]) -> Array:
    return np.concatenate([np.empty((2, 0), np.int64), *slices], axis=1)


def _edge_frame(slices: list[Array], vertices: VertexMap) -> pd.DataFrame:
    import pandas as pd

    keys, support = _ascending(*_joined(slices))
    src, dst = (column(vertices.external(end)) for end in unpack(keys, SHIFT))
    return pd.DataFrame({"src": src, "dst": dst, "support": support})


def _ascending(keys: Array, support: Array) -> tuple[Array, Array]:
    """Keys in ascending order, and their supports: in one word each where both fit, which sorts ten times as fast."""
    high, low = unpack(keys, SHIFT)
    bits = int(low.max(initial=0)).bit_length()
    lowest = int(support.max(initial=0)).bit_length()
    if bits + int(high.max(initial=0)).bit_length() + lowest > 62:
        place = keys.argsort()
        return keys[place], support[place]
    words = ((high << bits | low) << lowest) | support
    words = get_backend("cpu").sort(words, 1 + int(words.max(initial=0)))
    high, low = unpack(words >> lowest, bits)
    return pack(high, low, SHIFT), words & ((1 << lowest) - 1)


def _distributed(frames: list[Any], ids: str) -> Any:
    """A Dask DataFrame of edge frames that stay where they are."""
    import dask.dataframe as dd
    import pandas as pd

    meta = pd.DataFrame({"src": [], "dst": [], "support": []}).astype({"src": ids, "dst": ids, "support": "int64"})
    return dd.from_delayed(frames, meta=meta, verify_meta=False) if frames else dd.from_pandas(meta, npartitions=1)
