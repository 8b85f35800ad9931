"""The most similar vertices of a range of vertices, by their common neighbours, on every backend.

The CPU walks the wedges u - w - v of one vertex u after another. A device lists those of many vertices, and sorts them
by (u, v): each pair's sum is that of a run. Weights are added up as integers. Sums are rounded once at the end, so that
both backends have the same, whose ties do not depend on the order of additions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends.csr import OrientedCSR
from dasktc.backends.select import get_backend

__all__ = ["VERTEX_BYTES", "WEDGE_BYTES", "Measure", "most_similar"]

Array = Any
WEDGE_BYTES, VERTEX_BYTES = 160, 48
"""Bytes that a device takes for each wedge of a list, and for each vertex, beside the adjacency lists."""
WEIGHT_BITS = 62
"""Bits of a sum of weights, which has two such parts."""


class Measure(NamedTuple):
    """A measure of similarity."""

    number: int
    """In `options.SIMILARITIES`."""
    value: Callable[[Array, Array, Array], Array]
    """Callable (common, degrees, degrees) -> array. From the common neighbours of pairs, or the sums of their weights,
    and the degrees of both ends."""
    weight: Callable[[Array], Array] | None = None
    """Callable (degrees) -> array of float64. Weights of common neighbours, by their degrees; None: each counts 1."""


def most_similar(
    lists: OrientedCSR, measure: Measure, split: int, splits: int, top: int, backend: str, listed: int
) -> list[Array]:
    """Find the most similar vertices of a share of the vertices, which have about as many wedges as each other share.

    Parameters
    ----------
    lists : OrientedCSR
        Complete adjacency lists of all vertices by dense id.
    measure : Measure
    split, splits : int
        Which share.
    top : int
        Most vertices for each.
    backend : str
    listed : int
        Wedges that a device lists at once.

    Returns
    -------
    list of three arrays
        Vertices, ascending; those most similar to them, by descending value, and by ascending id where values are
        equal; and the values, float64.
    """
    xp = get_backend(backend).array
    degrees = xp.diff(lists.offsets)
    ends = xp.concatenate([xp.zeros(1, dtype="int64"), xp.cumsum(degrees.take(lists.columns))]).take(lists.offsets)
    total = int(ends[-1])
    begin, end = (
        int(xp.searchsorted(ends, total * k // splits)) if k < splits else lists.rows for k in (split, split + 1)
    )
    if begin >= end:
        return [xp.empty(0, dtype="int64"), xp.empty(0, dtype="int32"), xp.empty(0, dtype="float64")]
    if get_backend(backend).on_device:
        return _Listed(lists, degrees, measure, backend).most_similar(begin, end, top, ends, listed)
    from dasktc.backends.cpu import weighted_support as on_cpu  # loads Numba: only when needed

    weights = None if measure.weight is None else measure.weight(degrees)
    sizes, others, values = on_cpu.most_similar(
        lists.offsets, lists.columns, weights, (begin, end), measure.number, top
    )
    return [np.repeat(np.arange(begin, end), sizes), others, values]


class _Listed:
    """Finds the most similar vertices from lists of wedges in a device's memory."""

    def __init__(self, lists: OrientedCSR, degrees: Array, measure: Measure, backend: str) -> None:
        self.lists, self.degrees, self.measure = lists, degrees, measure
        self.backend = get_backend(backend)
        self.xp = self.backend.array
        self.weights: list[tuple[Array, float]] = []
        if measure.weight is not None:  # of every degree, with the host's logarithm
            weights = self.xp.asarray(measure.weight(np.arange(int(degrees.max()) + 1)))
            self.weights = self._integers(weights.take(degrees))

    def _integers(self, weights: Array) -> list[tuple[Array, float]]:
        """Split weights into integers of two scales, whose sums over a vertex's neighbours have at most WEIGHT_BITS."""
        xp, result = self.xp, []
        rest = xp.where(weights < np.inf, weights, 0.0)  # infinite: of a vertex that is no common neighbour of two
        bits = WEIGHT_BITS - (2 * int(self.degrees.max())).bit_length()
        for scale in (0.5**bits, 0.25**bits):
            integers = (rest / scale).astype("int64")
            rest = rest - integers * scale  # exact
            result.append((integers.view("uint64"), scale))
        return result

    def most_similar(self, begin: int, end: int, top: int, ends: Array, listed: int) -> list[Array]:
        """Find those of vertices `begin` to `end`; before vertex v begin `ends[v]` wedges."""
        parts = []
        while begin < end:
            first = int(ends[begin])
            last = min(end, max(begin + 1, int(self.xp.searchsorted(ends, first + listed, "right")) - 1))
            pairs = self._pairs(begin, last) if int(ends[last]) - first <= listed else self._of_one(begin, listed)
            parts.append(self._best(*pairs, top))
            begin = last
        return [self.xp.concatenate(arrays) for arrays in zip(*parts, strict=True)]

    def _wedges(self, first: int, last: int) -> tuple[Array, Array]:
        """List the wedges that go on from entries of the lists: their entries' numbers, and the vertices there."""
        xp, offsets = self.xp, self.lists.offsets
        neighbours = self.lists.columns[first:last]
        ends = xp.concatenate([xp.zeros(1, dtype="int64"), xp.cumsum(self.degrees.take(neighbours))])
        places = xp.arange(int(ends[-1]))
        entries = self.backend.peel.rows(OrientedCSR(ends, places))
        places += (offsets.take(neighbours) - ends[:-1]).take(entries)
        return entries, self.lists.columns.take(places)

    def _pairs(self, begin: int, end: int) -> tuple[Array, Array, Array]:
        """Add up the pairs of some vertices: sort their wedges, and sum up each run."""
        xp, size = self.xp, self.lists.rows
        first, last = int(self.lists.offsets[begin]), int(self.lists.offsets[end])
        neighbours = self.lists.columns[first:last]
        rows = self.backend.peel.rows(OrientedCSR(self.lists.offsets[begin : end + 1] - first, neighbours))
        entries, others = self._wedges(first, last)
        rows = rows.take(entries)
        mask = others != rows + begin
        keys = rows[mask].astype("int64") * size
        keys += others[mask]
        del rows, others
        neighbours = neighbours.take(entries[mask])
        if self.weights:
            order = xp.argsort(keys)
            keys, neighbours = keys.take(order), neighbours.take(order)
        else:
            keys = self.backend.sort(keys, (end - begin) * size)
        starts = xp.flatnonzero(xp.concatenate([xp.ones(min(1, len(keys)), dtype=bool), keys[1:] != keys[:-1]]))
        ends = xp.concatenate([starts[1:], xp.full(min(1, len(keys)), len(keys))])
        keys = keys.take(starts)
        if not self.weights:
            return keys // size + begin, keys % size, ends - starts
        totals = []
        for weights, _ in self.weights:
            sums = xp.concatenate([xp.zeros(1, dtype="uint64"), xp.cumsum(weights.take(neighbours))])
            totals.append(sums.take(ends) - sums.take(starts))
        return keys // size + begin, keys % size, self._reals(totals)

    def _reals(self, totals: list[Array]) -> Array:
        """Round sums of both scales' integers to float64, once."""
        (high, scale), (low, low_scale) = (
            (total.view("int64"), scale) for total, (_, scale) in zip(totals, self.weights, strict=True)
        )
        reals = high.astype("float64")
        return reals * scale + ((high - reals.astype("int64")) * scale + low * low_scale)

    def _of_one(self, vertex: int, listed: int) -> tuple[Array, Array, Array]:
        """Add up the pairs of one vertex with many wedges, which are listed piece by piece."""
        xp, size = self.xp, self.lists.rows
        first, last = int(self.lists.offsets[vertex]), int(self.lists.offsets[vertex + 1])
        ends = xp.cumsum(self.degrees.take(self.lists.columns[first:last]))
        sums = [xp.zeros(size, dtype="uint64") for _ in range(max(1, len(self.weights)))]
        begin = 0
        while begin < last - first:
            most = listed + (int(ends[begin - 1]) if begin else 0)
            end = max(begin + 1, int(xp.searchsorted(ends, most, "right")))
            entries, others = self._wedges(first + begin, first + end)
            entries += first + begin
            for total, (weights, _) in zip(sums, self.weights or [(None, 1)], strict=True):
                added = np.uint64(1) if weights is None else weights.take(self.lists.columns.take(entries))
                xp.add.at(total, others, added)
            begin = end
        for total in sums:
            total[vertex] = 0
        common = self._reals(sums) if self.weights else sums[0].view("int64")
        others = xp.flatnonzero(common)
        return xp.full(len(others), vertex), others, common.take(others)

    def _best(self, rows: Array, others: Array, common: Array, top: int) -> list[Array]:
        """Take the highest values of each row; pairs ascend by row, and by the other vertex."""
        xp = self.xp
        values = self.measure.value(common, self.degrees.take(rows), self.degrees.take(others)).astype("float64")
        order = xp.argsort(-values)  # a stable sort, as the next one
        order = order.take(xp.argsort(rows.take(order)))
        rows = rows.take(order)
        mask = xp.arange(len(rows)) - xp.searchsorted(rows, rows) < top
        order = order[mask]
        return [rows[mask], others.take(order).astype("int32"), values.take(order)]
