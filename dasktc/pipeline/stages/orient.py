"""Orientation: ranks vertices by degree, and directs every edge from its end of lower degree to that of higher.

Rank 0 is the vertex of highest degree, or that most rows name; ties are broken by dense id. A vector `rank` has the
rank of each vertex, an `order` the vertex of each rank: each is the `inverse` of the other. After relabelling by rank
an oriented edge points from the larger to the smaller rank, so that hubs, which many edges point to, have short rows
(Shun and Tangwongsan, ICDE 2015; TRUST, section 2.2).

Any total order counts exactly. Where a graph may become one block, on CPUs and on a GPU of this process without a
budget, vertices rank by the raw rows that name them (`order_by_rows`), which are known before repeats are dropped: an
edge then points to the end that more rows name. A vertex of d neighbours has at least d rows, so a row of d entries has
d targets of at least d rows each: d² <= 2·R for R rows.

Σ in(v)·out(v) of the oriented graph is the number of wedges that a count must stream. It follows from the degrees alone
(`facts_of`, and `wedges_of` for vectors in shards), and every count is checked against it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import aligned, on_host
from dasktc.backends.kernel import SMALL_ROW
from dasktc.backends.protocol import Totals
from dasktc.pipeline.stages.edge_keys import cut, unpack
from dasktc.pipeline.stages.shuffle import equal_ranges, quantiles

__all__ = [
    "CHUNK", "CUTS", "RESIDUES", "DegreeFacts", "Ranks", "add_both_degrees", "add_degrees",
    "add_degrees_and_residues", "add_each", "add_sources", "add_sums", "degrees_by_id", "dense_ids", "facts_of",
    "first_rows", "half_weight", "in_degrees", "inverse", "no_sums", "order_by", "order_by_rows", "oriented",
    "oriented_in_place", "oriented_slices", "out_degrees", "ranks_and_starts", "ranks_by_rows", "ranks_of",
    "row_starts", "sum_of", "total", "wedges_of", "zero_both_degrees", "zero_degrees", "zero_degrees_and_residues",
]  # fmt: skip

Array = Any
CHUNK = 1 << 22
"""Vertices whose wedges are summed in one pass."""
CUTS = 1024
"""Ranges of rows with about equally many edges; the row ranges of blocks are made of these."""
RESIDUES = 12
"""Modulus of the ends' remainders by which edges are counted: measures grids of n parts where n divides it."""


class DegreeFacts(NamedTuple):
    """Statistics of an oriented graph's vertices that the plan needs."""

    vertices: int
    """Those with an edge."""
    edges: int
    wedges: int
    """Σ in(v)·out(v)."""
    lengths: Array
    """Array of int64. Number of rows of each length, on the host."""
    cuts: list[int]
    """List of int, length CUTS + 1. Entry k: the row in which the running sum of row lengths reaches k / CUTS of the
    edges; empty where no caller cuts rows."""
    processors: int
    """Multiprocessors of the device."""


Ranks = tuple[Array, list[int], int]
"""Ranks of the vertices, int32, shape (V,), by dense id; the first oriented key of each range of rows but the first;
and the number of vertices that rows name, whose ranks come first. Dask sends the entries of a tuple each in its own
way, an array of a GPU from GPU to GPU; an object of a class of ours would be pickled, by way of the host."""


def sum_of(vectors: list[Array]) -> Array:
    """Sum of vectors; a single one is returned as it is."""
    return total(vectors) if len(vectors) > 1 else vectors[0]


def ranks_of(degrees: list[Array], backend: Backend) -> Array:
    """Rank of each vertex by degree, from partial sums of degrees."""
    return inverse(order_by(sum_of(degrees), backend), backend)


def ranks_by_rows(counts: list[Array], backend: Backend) -> Array:
    """Rank of each vertex by the rows that name it, from partial sums of their numbers."""
    return inverse(order_by_rows(sum_of(counts), backend), backend)


def ranks_and_starts(
    counts: list[Array], samples: list[Array], weights: list[int], ranges: int, shift: int, backend: Backend
) -> Ranks:
    """Ranks by rows, and the starts of ranges by samples of canonical keys; all callers get the same."""
    rows = sum_of(counts)
    rank = inverse(order_by_rows(rows, backend), backend)
    return rank, row_starts(samples, weights, rank, ranges, shift, backend), int((rows != 0).sum())


def dense_ids(vectors: list[Array], vertices: int, backend: Backend) -> Array:
    """Dense id of each rank: the vertex's position among the vertices with an edge."""
    degree, order, _ = vectors
    order = order[:vertices]
    if vertices < len(degree):
        order = (backend.array.cumsum(degree > 0, dtype="int64") - 1).take(order)
    return order.astype("int32", copy=False)


def half_weight(out_degree: Array, first: int, backend: Backend) -> int:
    """Return the least half of a sum of weights by which vertices, from id `first` on, can be ranked with these rows.

    A vertex with d entries comes after vertices of weights of at least d, and has such a weight itself.
    """
    if not len(out_degree):
        return 0
    ids = backend.array.arange(first + 1, first + 1 + len(out_degree), dtype="int64")
    return -(-int((ids * out_degree).max()) // 2)


def out_degrees(vectors: list[Array], vertices: int, backend: Backend) -> Array:
    """Out-degree of each rank."""
    return vectors[2][:vertices]


def in_degrees(vectors: list[Array], vertices: int, backend: Backend) -> Array:
    """In-degree of each rank."""
    degree, order, outward = vectors
    inward = degree.take(order[:vertices])
    inward -= outward[:vertices]
    return inward


def facts_of(outward: Array, totals: Totals, cuts: int, backend: Backend) -> DegreeFacts:
    """Statistics for the plan, from out-degrees by rank and the graph's totals; `cuts` ranges of rows, or 0."""
    vertices, edges, wedges, longest = totals
    row_lengths = outward[:vertices]
    counts = backend.vertices.lengths(row_lengths, 1 + max(SMALL_ROW, longest))
    places = []
    if cuts:
        targets = backend.array.asarray([edges * k // cuts for k in range(cuts + 1)], dtype="int64")
        places = backend.array.cumsum(row_lengths, dtype="int64").searchsorted(targets).tolist()
    lengths = on_host(counts).astype("int64", copy=False)
    return DegreeFacts(vertices, edges, wedges, lengths, places, backend.processors())


def total(vectors: list[Array]) -> Array:
    """Sum vectors into a new one; the inputs, which may also be other tasks' inputs, stay unchanged.

    The list belongs to the task and is emptied vector by vector: one that is mapped from a file is in memory only while
    it is added.
    """
    result = vectors.pop().copy()
    while vectors:
        result += vectors.pop()
    return result


def order_by(weight: Array, backend: Backend) -> Array:
    """Sort the vertices by descending weight, ties by ascending id, with one integer sort.

    Parameters
    ----------
    weight : array of integers, shape (V,), not negative
    backend : Backend

    Returns
    -------
    array of int32, shape (V,)
        The vertices in this order; int64 where a weight and an id do not fit 63 bits together.
    """
    return backend.vertices.order(weight)


def order_by_rows(counts: Array, backend: Backend) -> Array:
    """Sort the vertices by the rows that name them, at most V - 1, as `order_by`; counts are of int32, modulo 2^32."""
    xp = backend.array
    most = xp.uint32(max(0, len(counts) - 1))
    return order_by(xp.minimum(counts.view("uint32"), most).view("int32"), backend)


def zero_degrees(size: int, backend: Backend) -> Array:
    """Degrees of vertices without edges."""
    return backend.array.zeros(size, dtype="int32")


def add_degrees(degree: Array, keys: Array, shift: int, backend: Backend) -> Array:
    """Add the degrees that canonical edges contribute to `degree`, in place."""
    backend.edges.add_degrees(degree, keys, shift)
    return degree


def add_each(result: Array, items: list[Any], add: Callable[[Array, Any], Array]) -> Array:
    """Add several inputs to a result, in place."""
    for item in items:
        result = add(result, item)
    return result


def add_sources(out_degree: Array, keys: Array, shift: int, backend: Backend) -> Array:
    """Add the out-degrees that oriented edges contribute to `out_degree`, in place."""
    backend.edges.add_sources(out_degree, keys, shift)
    return out_degree


def zero_both_degrees(size: int, backend: Backend) -> Array:
    """Degrees and out-degrees of vertices without edges, a row each."""
    return backend.array.zeros((2, size), dtype="int32")


def add_both_degrees(sums: Array, keys: Array, shift: int, backend: Backend) -> Array:
    """Add the degrees and the out-degrees that oriented edges contribute to the rows of `sums`, in place."""
    backend.edges.add_degrees(sums[0], keys, shift)
    backend.edges.add_sources(sums[1], keys, shift)
    return sums


def zero_degrees_and_residues(size: int, backend: Backend) -> list[Array]:
    """The sums of `zero_both_degrees`, and zeroed numbers of edges by the remainders of their two ends."""
    return [zero_both_degrees(size, backend), backend.array.zeros(RESIDUES**2, dtype="uint64")]


def add_degrees_and_residues(sums: list[Array], keys: Array, shift: int, backend: Backend) -> list[Array]:
    """Add what oriented edges contribute to the sums of `zero_degrees_and_residues`, in place."""
    residues = backend.edges.residues(keys, shift, RESIDUES)  # allocated before anything is added, as in `add_sums`
    add_both_degrees(sums[0], keys, shift, backend)
    sums[1] += residues
    return sums


def degrees_by_id(sums: Array, rank: Array) -> list[Array]:
    """Degrees by id, and out-degrees by rank, from the sums of `add_both_degrees`."""
    return [sums[0].take(rank), sums[1].copy()]


def inverse(order: Array, backend: Backend) -> Array:
    """The inverse of a permutation, int32: each vertex's rank in an order."""
    return backend.vertices.inverse(order)


def oriented(keys: Array, rank: Array, shift: int, backend: Backend) -> Array:
    """Relabel canonical keys by rank, the larger rank as the source; the edges keep their positions."""
    return backend.edges.oriented(keys, aligned(rank), shift)


def row_starts(
    samples: list[Array], weights: list[int], rank: Array, ranges: int, shift: int, backend: Backend
) -> list[int]:
    """First keys of all ranges of rows but the first, with about equally many edges each.

    Each sample, of canonical keys, stands for so many edges as its weight says.
    """
    keys = backend.array.concatenate([backend.array.asarray(sample) for sample in samples])
    rows = on_host(oriented(keys, rank, shift, backend)) >> shift
    row_samples = np.split(rows, np.cumsum([len(sample) for sample in samples])[:-1])
    return [row << shift for row in equal_ranges(row_samples, weights, ranges)]


def oriented_slices(keys: Array, rank: Array, starts: list[int], shift: int, backend: Backend) -> list[Array]:
    """Orient keys, and cut them before each of `starts`."""
    return cut(oriented(keys, rank, shift, backend), starts, 1 << 2 * shift, backend)


def no_sums(size: int, backend: Backend) -> list[Array]:
    """Zeroed sums: out-degrees, and numbers of edges by the remainders of their two ends."""
    return [zero_degrees(size, backend), backend.array.zeros(RESIDUES**2, dtype="uint64")]


def add_sums(sums: list[Array], slices: list[Array], shift: int, backend: Backend) -> list[Array]:
    """Add what slices of oriented keys contribute to the sums of `no_sums`, in place."""
    # All memory is allocated before anything is added, because a call that lacks memory is repeated.
    residues = [backend.edges.residues(keys, shift, RESIDUES) for keys in slices]
    for keys, counts in zip(slices, residues, strict=True):
        add_sources(sums[0], keys, shift, backend)
        sums[1] += counts
    return sums


def first_rows(sample: Array, rank: Array, ranges: int, shift: int, backend: Backend) -> list[int]:
    """Cut rows into ranges with about equally many edges, by a sample of canonical keys; return their first rows."""
    sources, targets = unpack(on_host(oriented(backend.array.asarray(sample), rank, shift, backend)), shift)
    rows = sources[sources != targets]
    return [0, *quantiles([rows], [len(rows)], ranges)]


def oriented_in_place(keys: Array, rank: Array, shift: int, backend: Backend) -> Array:
    """Orient keys in place, as `oriented` does; nobody else may use these keys."""
    return backend.edges.orient(keys, aligned(rank), shift)


def wedges_of(inward: Array, outward: Array, chunk: int = CHUNK) -> int:
    """Σ in·out as an exact Python int: factors are split so that no partial sum exceeds 64 bits."""
    wedges = 0
    for start in range(0, len(inward), chunk):
        ins, outs = (vector[start : start + chunk].astype("int64", copy=False) for vector in (inward, outward))
        wedges += (int((ins * (outs >> 20)).sum()) << 20) + int((ins * (outs & ((1 << 20) - 1))).sum())
    return wedges
