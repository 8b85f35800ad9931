"""Orientation: ranks the vertices by degree and directs every edge from its end of lower to that of higher degree.

Rank 0 is the vertex of highest degree; ties are broken by dense id. After relabelling by rank an oriented edge points
from the larger to the smaller rank, so that hubs, which many edges point to, have short rows (Shun and Tangwongsan,
ICDE 2015; TRUST, section 2.2).

Σ in(v)·out(v) of the oriented graph is the number of wedges that a count must stream. It is computed here from the
degrees alone, and every count is checked against it.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from dasktc.backends import get_backend
from dasktc.backends.csr import aligned
from dasktc.executors.base import Executor, Fold
from dasktc.pipeline.canonicalize import Canonical
from dasktc.pipeline.sharded.vectors import Sharded

__all__ = [
    "Oriented",
    "add_degrees",
    "add_sources",
    "inverse",
    "order_by",
    "orient",
    "oriented",
    "total",
    "wedges_of",
]

Array = Any
CHUNK = 1 << 22
"""Vertices whose wedges are summed up at a time."""


class Oriented(NamedTuple):
    """An oriented graph over ranks.

    Attributes
    ----------
    partitions : list of handles of int64 arrays
        Keys source << shift | target with target < source, in no order.
    order : Sharded, of `Backend.numbers`
        The dense id of each rank.
    out_degree, in_degree : Sharded, of `Backend.numbers`
        By rank.
    wedges : int
        Σ in(v)·out(v).
    edges : int
    """

    partitions: list[Any]
    order: Sharded
    out_degree: Sharded
    in_degree: Sharded
    wedges: int
    edges: int


def orient(executor: Executor, edges: Canonical, size: int, shift: int, backend: str) -> Oriented:
    """Rank the vertices by degree and direct every edge at its end of higher degree.

    Parameters
    ----------
    executor : Executor
    edges : Canonical
        Its partitions are emptied.
    size : int
        Number of vertices.
    shift : int
        Bits an id takes in a key.
    backend : str
    """
    ends, sources = (
        Fold(partial(_zeros, size, backend), partial(add, shift=shift, backend=backend), total)
        for add in (add_degrees, add_sources)
    )
    degree = executor.fold("orient", ends, list(edges.partitions))
    order = executor.submit("orient", order_by, degree, backend)
    rank = executor.submit("orient", inverse, order, backend)
    partitions = executor.map("orient", oriented, edges.partitions, rank, shift, backend)
    del rank
    outward = executor.fold("orient", sources, list(partitions))
    inward = executor.submit("orient", _in_degree, degree, order, outward)
    wedges = executor.gather([executor.submit("orient", _wedges, inward, outward, backend)])[0]
    order, outward, inward = (Sharded((0, size), [vector]) for vector in (order, outward, inward))
    return Oriented(partitions, order, outward, inward, wedges, edges.edges)


def total(vectors: list[Array]) -> Array:
    """Add vectors into a new one; the inputs stay unchanged, since they may be other tasks' inputs too.

    The list, which is the task's own, is emptied vector by vector: one that is mapped from a file is in memory only
    while it is added.
    """
    result = vectors.pop().copy()
    while vectors:
        result += vectors.pop()
    return result


def order_by(weight: Array, backend: str) -> Array:
    """Sort the vertices by descending weight, ties by ascending id, as one integer sort.

    Parameters
    ----------
    weight : array of integers, shape (V,), not negative
    backend : str

    Returns
    -------
    array of `Backend.numbers`, shape (V,)
    """
    xp, own = get_backend(backend).array, get_backend(backend).vertices
    if own is not None and weight.dtype == "int32":
        return own.order(weight)
    if not len(weight):
        return _zeros(0, backend)
    bits, top = max(1, (len(weight) - 1).bit_length()), int(weight.max())
    if (top + 1) << bits > 2**63 - 1:
        return xp.argsort(top - weight, kind="stable")
    keys = weight.astype("int64")
    keys *= -1
    keys += top
    keys <<= bits
    keys |= xp.arange(len(weight), dtype=get_backend(backend).numbers)
    keys = get_backend(backend).sort(keys, (top + 1) << bits)
    keys &= (1 << bits) - 1
    return keys.astype(get_backend(backend).numbers, copy=False)


def _zeros(size: int, backend: str) -> Array:
    return get_backend(backend).array.zeros(size, dtype=get_backend(backend).numbers)


def add_degrees(degree: Array, keys: Array, shift: int, backend: str) -> Array:
    """Add the degrees of canonical edges."""
    get_backend(backend).edges.add_degrees(degree, keys, shift)
    return degree


def add_sources(out_degree: Array, keys: Array, shift: int, backend: str) -> Array:
    """Add the out-degrees of oriented edges."""
    get_backend(backend).edges.add_sources(out_degree, keys, shift)
    return out_degree


def _in_degree(degree: Array, order: Array, out_degree: Array) -> Array:
    in_degree = degree.take(order)
    in_degree -= out_degree
    return in_degree


def inverse(order: Array, backend: str) -> Array:
    """The inverse of a permutation, int32: the rank of each vertex in an order."""
    xp, own = get_backend(backend).array, get_backend(backend).vertices
    if own is not None and order.dtype == "int32":
        return own.inverse(order)
    rank = xp.empty(len(order), dtype="int32")
    rank[order] = xp.arange(len(order), dtype="int32")
    return rank


def oriented(keys: Array, rank: Array, shift: int, backend: str) -> Array:
    """Relabel canonical keys by rank, source the larger rank and target the smaller; the edges keep their order."""
    return get_backend(backend).edges.oriented(keys, aligned(rank), shift)


def _wedges(inward: Array, outward: Array, backend: str) -> int:
    own = get_backend(backend).vertices
    return wedges_of(inward, outward) if own is None else own.wedges(inward, outward)


def wedges_of(inward: Array, outward: Array) -> int:
    """Σ in·out as a Python int, exact: factors are split so that no partial sum can exceed 64 bits."""
    wedges = 0
    for start in range(0, len(inward), CHUNK):
        of, by = (vector[start : start + CHUNK].astype("int64", copy=False) for vector in (inward, outward))
        wedges += (int((of * (by >> 20)).sum()) << 20) + int((of * (by & ((1 << 20) - 1))).sum())
    return wedges
