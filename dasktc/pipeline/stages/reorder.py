"""Reordering: ranks vertices in another order, and relabels edges by it; the directions of edges stay as they are."""

from __future__ import annotations

from typing import Any

from dasktc.backends import Backend
from dasktc.backends.csr import aligned
from dasktc.pipeline.stages.edge_keys import ends_of, pack, transform, unpack
from dasktc.pipeline.stages.orient import inverse, order_by

__all__ = [
    "LARGE_DEGREE", "band_of", "by_band_and_visit", "by_visit", "collective_degree", "first_visit", "relabel", "take",
    "visit_keys",
]  # fmt: skip

Array = Any
LARGE_DEGREE = 100
"""TRUST, section 4.3: rows with more entries get a CTA each, others a warp."""


def collective_degree(keys: Array, out_degree: Array, shift: int, backend: Backend) -> Array:
    """Collective degree of each u over these edges: the sum of its out-neighbours' out-degrees, int64."""
    xp = backend.array
    sums = xp.zeros(len(out_degree), dtype="uint64")  # CuPy's add.at has no int64
    for source, target in ends_of(keys, shift, backend):
        xp.add.at(sums, source, out_degree.take(target).astype("uint64"))
    return sums.view("int64")


def first_visit(keys: Array, visit: Array, size: int, shift: int, backend: Backend) -> Array:
    """For each v, the earliest visit of a vertex that points to v, int32; `size` (= V) where none does."""
    xp = backend.array
    first = xp.full(len(visit), size, dtype="int32")
    for source, target in ends_of(keys, shift, backend):
        xp.minimum.at(first, target, visit.take(source))
    return first


def by_visit(out_degree: Array, first: Array, order: Array, backend: Backend) -> Array:
    """Ranks sorted by (first visit, dense id), as two stable integer sorts."""
    rank = inverse(order, backend).astype("int64")
    return rank.take(order_by(len(first) - first.astype("int64").take(rank), backend))


def by_band_and_visit(
    out_degree: Array, first: Array, order: Array, backend: Backend, large: int = LARGE_DEGREE
) -> Array:
    """Ranks sorted by (out-degree band, first visit, dense id)."""
    size = len(out_degree)
    band = band_of(out_degree, large)
    rank = inverse(order, backend).astype("int64")
    weight = (3 * (size + 1) - 1) - (band * (size + 1) + first).take(rank)
    return rank.take(order_by(weight, backend))


def band_of(out_degree: Array, large: int) -> Array:
    """TRUST's band of each out-degree: 0 above `large`, 1 from 2 to `large`, 2 below 2."""
    return 2 - (out_degree >= 2).astype("int64") - (out_degree > large)


def relabel(keys: Array, new_ids: Array, shift: int, backend: Backend) -> Array:
    """Relabel both ends of keys by their new ids; the edges keep their positions."""
    new_ids = aligned(new_ids)

    def relabelled(chunk: Array) -> Array:
        source, target = unpack(chunk, shift)
        return pack(new_ids.take(source), new_ids.take(target), shift)

    return transform(keys, relabelled, backend)


def take(vector: Array, chosen: Array) -> Array:
    """Select entries of a vector."""
    return vector.take(chosen)


def visit_keys(given: list[Array], size: int, bits: int, banded: bool, large: int = LARGE_DEGREE) -> Array:
    """Sort keys of a shard's vertices by (band, first visit, dense id)."""
    out_degree, first, dense = given
    band = band_of(out_degree, large) if banded else 0
    return (band * (size + 1) + first.astype("int64")) << bits | dense
