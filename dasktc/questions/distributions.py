"""Distributions of degrees, triangles and clustering coefficients, and the vertices and edges with most triangles.

Each worker counts its values in logarithmic bins, exact below 8 and four per octave above, and selects its vertices and
edges with most triangles. The caller receives some hundred numbers, however large the graph is.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dasktc.answers.edge_frames import edges_in_parts
from dasktc.answers.external_ids import SHIFT
from dasktc.answers.frames import array_module, external_ids
from dasktc.answers.vertex_counts import coefficients, degrees, known_edges, of_degrees, pairs_of, triangles_by_id
from dasktc.backends.csr import on_host
from dasktc.counting.context import CountingContext
from dasktc.executors.base import starmap
from dasktc.pipeline.stages.edge_keys import unpack

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Summary",
    "degree_bins",
    "degree_facts",
    "density",
    "edge_summary",
    "mean_clustering",
    "middle",
    "vertex_summary",
]

Array = Any
EXACT, OCTAVE = 8, 4
"""Values below EXACT have a bin each; above, OCTAVE bins lead from a power of 2 to the next."""
STARTS = np.array(
    [*range(EXACT), *((OCTAVE + part) << power for power in range(1, 60) for part in range(OCTAVE))], dtype=np.int64
)
"""The first value of each bin."""


class Summary(NamedTuple):
    """All vertices by degree, or all edges by support, in bins; and those with most triangles."""

    bins: pd.DataFrame
    """One row per non-empty bin. Of vertices: "degree" and "last", its first and last degree, "vertices", and the means
    "triangles" and "clustering". Of edges: "support" and "last", and "edges"."""
    most: pd.DataFrame
    """Those with most triangles, ties by ascending id, without those that have none. Of vertices: "vertex", "degree",
    "triangles", "clustering". Of edges: "src", "dst", "support"."""


def degree_bins(graph: CountingContext) -> pd.DataFrame:
    """Count the vertices in each bin of degrees; no triangle is counted. Columns "degree", "last" and "vertices"."""
    parts = graph.executor.gather(of_degrees(graph, "vertex-bins", _binned_degrees))
    return _frame("degree", {"vertices": np.sum(parts, axis=0, dtype=np.int64)})


def degree_facts(graph: CountingContext) -> tuple[int, int]:
    """Return the largest degree and Σ d·(d - 1)/2, the number of pairs of neighbours; no triangle is counted."""
    parts = graph.executor.gather(of_degrees(graph, "degree-facts", _degree_facts))
    return max((largest for largest, _ in parts), default=0), sum(pairs for _, pairs in parts)


def mean_clustering(bins: pd.DataFrame) -> float:
    """Average the clustering coefficients of all vertices, from the bins of a `vertex_summary`."""
    vertices = int(bins["vertices"].sum())
    return float((bins["clustering"] * bins["vertices"]).sum()) / vertices if vertices else 0.0


def vertex_summary(graph: CountingContext) -> Summary:
    """Summarize the vertices; their triangles are counted unless already known; errors of `Graph.triangles`."""
    import pandas as pd

    executor, oriented_graph, highest = graph.executor, graph.prepared.graph, graph.tuning.highest
    counts, _ = triangles_by_id(graph)
    vectors = (counts, oriented_graph.out_degree, oriented_graph.in_degree, oriented_graph.order)
    calls = list(zip(*(vector.parts for vector in vectors), strict=True))
    parts = executor.gather(starmap(executor, "vertex-bins", partial(_vertices, highest), calls))
    sums = np.sum([bins for bins, _ in parts], axis=0)
    number = sums[0].astype(np.int64)
    means = sums[1:] / np.maximum(number, 1)
    rows = np.concatenate([rows for _, rows in parts], axis=1)
    dense, degree, top_counts = _of_highest(rows, highest)
    columns = {
        "vertex": external_ids(graph, dense),
        "degree": degree,
        "triangles": top_counts,
        "clustering": coefficients(top_counts, degree, np.zeros_like(degree)),
    }
    bins = _frame("degree", {"vertices": number, "triangles": means[0], "clustering": means[1]})
    return Summary(bins, pd.DataFrame(columns))


def edge_summary(graph: CountingContext) -> Summary:
    """Summarize the edges; their triangles are counted unless already known; errors of `Graph.edge_support`."""
    import pandas as pd

    (supports, _), highest = known_edges(graph), graph.tuning.highest
    parts = graph.executor.gather(edges_in_parts(graph, supports, partial(_edges, highest)))
    bins = np.sum([np.zeros(len(STARTS), np.int64), *(bins for bins, _ in parts)], axis=0, dtype=np.int64)
    rows = np.concatenate([np.empty((2, 0), np.int64), *(rows for _, rows in parts)], axis=1)
    keys, support = _of_highest(rows, highest)
    high, low = unpack(keys, SHIFT)
    columns = {"src": external_ids(graph, high), "dst": external_ids(graph, low), "support": support}
    return Summary(_frame("support", {"edges": bins}), pd.DataFrame(columns))


def _frame(name: str, columns: dict[str, Array]) -> pd.DataFrame:
    """Make a frame of the bins whose first column is above 0, with each bin's first and last value."""
    import pandas as pd

    last = np.append(STARTS[1:], np.iinfo(np.int64).max) - 1
    frame = pd.DataFrame({name: STARTS, "last": last, **columns})
    bins: pd.DataFrame = frame[next(iter(columns.values())) > 0].reset_index(drop=True)
    return bins


def middle(bins: pd.DataFrame, name: str) -> Any:
    """The geometric mean of each bin's first and last value."""
    return np.sqrt(bins[name].astype(float) * bins["last"].astype(float))


def density(bins: pd.DataFrame, name: str, count: str) -> tuple[Any, Any]:
    """Middle of each bin, and its count divided by the number of values in it."""
    return middle(bins, name), bins[count] / (bins["last"] - bins[name] + 1)


# on the workers


def _binned(values: Array, *weights: Array) -> list[Array]:
    """Count the values in each bin and add up their weights there; results are on the host."""
    xp = array_module(values)
    place = xp.searchsorted(xp.asarray(STARTS), values, side="right") - 1
    return [on_host(xp.bincount(place, weight, minlength=len(STARTS))) for weight in (None, *weights)]


def _binned_degrees(degree: Array) -> Array:
    return _binned(degree)[0]


def _degree_facts(degree: Array) -> tuple[int, int]:
    """The largest degree of some vertices, and their pairs of neighbours."""
    return (int(degree.max()), pairs_of(degree)) if len(degree) else (0, 0)


def _vertices(highest: int, counts: Array, out_degree: Array, in_degree: Array, order: Array) -> tuple[Array, Array]:
    """Sums by bin of degrees, and dense ids, degrees and triangles of the candidates for most triangles.

    The sums are numbers of vertices, triangles and coefficients; those of triangles are float64, for means.
    """
    degree, shares = degrees(counts, out_degree, in_degree), coefficients(counts, out_degree, in_degree)
    bins = np.stack(_binned(degree, counts, shares)).astype(np.float64)
    places = _candidates(counts, _binned(counts)[0], highest)
    rows = np.stack([on_host(vector.take(places)).astype(np.int64) for vector in (order, degree, counts)])
    return bins, _of_highest(rows, highest)


def _edges(highest: int, part: Array) -> tuple[Array, Array]:
    """Number of edges by bin of supports, and keys and supports of the candidates; a part has keys above supports."""
    values = part[1]
    bins = _binned(values)[0]
    return bins, _of_highest(on_host(part.take(_candidates(values, bins, highest), axis=1)), highest)


def _candidates(values: Array, bins: Array, highest: int) -> Array:
    """Positions of all values above 0 that share a bin with one of the `highest` largest values."""
    bin_numbers = np.flatnonzero(bins[::-1].cumsum() >= highest)
    first = max(1, len(bins) - 1 - int(bin_numbers[0]) if len(bin_numbers) else 1)
    return array_module(values).flatnonzero(values >= int(STARTS[first]))


def _of_highest(rows: Array, highest: int) -> Array:
    """The `highest` columns with the largest last row, ties by smallest first row, in this order."""
    names, values = rows[0], rows[-1]
    places = np.arange(len(values))
    if len(values) > highest:
        threshold = np.partition(values, -highest)[-highest]
        top_places, ties = np.flatnonzero(values > threshold), np.flatnonzero(values == threshold)
        count = highest - len(top_places)
        if len(ties) > count:
            ties = ties[names[ties].argpartition(count - 1)[:count]]
        places = np.concatenate([top_places, ties])
    return rows[:, places[np.lexsort((names[places], -values[places]))]]
