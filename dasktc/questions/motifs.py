"""Counts the connected subgraphs of four vertices, by kind, without listing them.

With d(v) neighbours and t(v) triangles of vertex v, t(e) triangles of edge e, T triangles, C cycles of four vertices
and K cliques of four, the kinds occur as parts of others, induced or not,

    clique  K                        diamond  Σ t(e)·(t(e) - 1)/2
    cycle   C                        paw      Σ t(v)·(d(v) - 2)
    star    Σ d·(d - 1)·(d - 2)/6    path     Σ (d(u) - 1)·(d(v) - 1) over edges, less 3·T

times, and each kind contains a known number of each other kind, from which the induced counts follow (Pinar, Seshadhri
and Vishal, ESCAPE: Efficiently Counting All 5-Vertex Subgraphs, WWW 2017, section 4, doi:10.1145/3038912.3052597).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dasktc.answers.edge_frames import edges_in_parts
from dasktc.answers.external_ids import at_ends
from dasktc.answers.vertex_counts import known_edges, of_degrees, triangles_by_id
from dasktc.backends.csr import OrientedCSR, on_host
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import refuse_unless
from dasktc.errors import InputError
from dasktc.executors.base import starmap, unchanged
from dasktc.pipeline.planes.sharded import ranks
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.prepare import Progress
from dasktc.questions.adjacency import adjacency, degrees_by_dense_id
from dasktc.questions.cliques import BOUND, clique_count
from dasktc.wording import plural

__all__ = ["KINDS", "PARTS", "motifs", "total_of_products"]

Array = Any
STAGE = "motifs"
KINDS = ("path", "star", "cycle", "paw", "diamond", "clique")
"""The kinds, each of which contains only those before it, and itself once."""
PARTS = {
    "paw": {"path": 2, "star": 1},
    "cycle": {"path": 4},
    "diamond": {"path": 6, "star": 2, "cycle": 1, "paw": 4},
    "clique": {"path": 12, "star": 4, "cycle": 3, "paw": 12, "diamond": 6},
}
"""How often a kind contains other kinds."""
HALF = 31
"""Bits of the lower half of a product, whose halves are added up apart, so that no sum of 2^32 of them overflows."""
SPLITS = 4
"""Tasks per worker for cycles."""


def motifs(
    graph: CountingContext, induced: bool = True, bound: int = BOUND, progress: Progress | None = None
) -> dict[str, int]:
    """Count the connected subgraphs of four vertices; see `Graph.motifs`."""
    if graph.edges > graph.tuning.motif_edges:
        raise InputError(
            f"the cycles of four vertices of {plural(graph.edges, 'edge')} could exceed 64 bits, those of at most "
            f"{graph.tuning.motif_edges:,} cannot: prepare a part of the graph"
        )
    if not graph.edges:
        return dict.fromkeys(KINDS, 0)
    cliques = clique_count(graph, 4, bound, progress).cliques  # first, because its work may be refused
    executor, (supports, triangles) = graph.executor, known_edges(graph)
    counts_of_vertices, _ = triangles_by_id(graph)
    # Σ d·(d - 1)·(d - 2)/6 and Σ t(v)·(d(v) - 2) over vertices; Σ (d(u) - 1)·(d(v) - 1) and Σ t·(t - 1)/2 over edges
    stars, paws = _added(executor.gather(of_degrees(graph, STAGE, _sums_of_vertices, counts_of_vertices)))
    parts = edges_in_parts(graph, supports, unchanged)
    products, diamonds = _added(executor.gather(at_ends(executor, parts, degrees_by_dense_id(graph), _sums_of_edges)))
    counts = {
        "path": products - 3 * triangles,
        "star": stars,
        "cycle": _cycles(graph),
        "paw": paws,
        "diamond": diamonds,
        "clique": cliques,
    }
    return _induced(counts) if induced else counts


def _induced(counts: dict[str, int]) -> dict[str, int]:
    """Take away the kinds that are parts of others, beginning with the cliques."""
    induced_counts = dict(counts)
    for kind in reversed(KINDS):
        for part, times in PARTS.get(kind, {}).items():
            induced_counts[part] -= times * induced_counts[kind]
    fact = ", ".join(f"{number:,} of kind {kind}" for kind, number in induced_counts.items() if number < 0)
    refuse_unless(not fact, f"four-vertex subgraphs disagree, there would be {fact}")
    return induced_counts


def _sums_of_vertices(degrees: Array, triangles: Array) -> tuple[int, int]:
    if isinstance(triangles, np.ndarray):  # as sums of vertices in shards are
        degrees = on_host(degrees)
    stars = sum(
        number * (degree * (degree - 1) * (degree - 2) // 6)
        for degree, number in zip(
            *(part.tolist() for part in np.unique(on_host(degrees), return_counts=True)), strict=True
        )
    )
    factors = degrees - 2  # negative only where there is no triangle
    low, high = triangles & ((1 << HALF) - 1), triangles >> HALF
    return stars, total_of_products(low * factors) + (total_of_products(high * factors) << HALF)


def _sums_of_edges(support: Array, degrees: Array, other_degrees: Array) -> tuple[int, int]:
    return total_of_products((degrees - 1) * (other_degrees - 1)), total_of_products(support * (support - 1) >> 1)


def total_of_products(products: Array) -> int:
    """Add up products below 2^62, exactly."""
    low = products & ((1 << HALF) - 1)
    return (int((products >> HALF).sum()) << HALF) + int(low.sum())


def _added(sums: Iterable[tuple[int, int]]) -> tuple[int, int]:
    first, second = zip(*sums, strict=True)
    return sum(first), sum(second)


def _cycles(graph: CountingContext) -> int:
    """Count the cycles of four vertices, on the CPU of every worker, over ids by descending degree."""
    executor, splits = graph.executor, SPLITS * len(graph.executor.worker_threads)
    degrees = Sharded(graph.prepared.graph.order.starts, of_degrees(graph, STAGE, unchanged))
    lists = adjacency(graph, None, 2 * graph.edges, ranks(executor, STAGE, degrees))
    calls = [(lists, split, splits) for split in range(splits)]
    return sum(executor.gather(starmap(executor, STAGE, _cycles_of_share, calls)))


def _cycles_of_share(lists: OrientedCSR, split: int, splits: int) -> int:
    from dasktc.backends.cpu.four_cycles import four_cycles  # loads Numba: only when needed

    return four_cycles(on_host(lists.offsets), on_host(lists.columns), split, splits)
