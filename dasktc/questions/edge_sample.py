"""Estimates the triangles of a graph, and of every vertex, from a sample of its edges that is taken as parts are read.

Every vertex has one of N colours by a hash of its id, and an edge is in the sample if its ends have one colour (Pagh
and Tsourakakis, Inf. Proc. Lett. 112(7), 2012, doi:10.1016/j.ipl.2011.12.007). That is a share p = 1/N of the edges.
Only these are prepared, and their triangles are counted exactly. A triangle is in the sample with probability p², so
N²·x estimates the triangles of a graph with x in the sample. With T triangles, and k pairs of them that share an edge,

    variance = T·(N² - 1) + 2k·(N - 1)

because pairs that share no more than a vertex are independent. If every edge were drawn by itself (Tsourakakis et al.,
DOULION, KDD 2009, doi:10.1145/1557019.1557111) T would have the factor N³ - 1: at p = 0.05 the standard deviation of
20,000 disjoint triangles is 63 % instead of 14 %, and of 2,024 in p2p-Gnutella31 199 % instead of 45 %. Where the
second term dominates, both have the same.

The interval has to hold where a few edges make up most of k: a sample without them shows neither their triangles nor
the variance. What it does show are degrees, with binomial errors, and an edge has fewer triangles than its end of lower
degree has neighbours. So no edge has more than M, the second largest degree, at the upper end of its score interval.
The sample's own pairs, N³ each, estimate k with a variance of at most k·N·(N + M)²; the upper end of the score interval
from this variance replaces k above. Even without any pair in the sample it allows for 2z²·N edges of M triangles, more
than could be missed by chance. The score interval of T follows: T is in it if the estimate is within z standard
deviations of T. For large graphs this is little wider than if k were known, for small ones it may hold no information,
which it then says by its width.

Measured with confidence 0.95 and 250 seeds (200 for cnr-2000 and ego-Twitter): the share of intervals that hold T, the
median half width relative to T, and what it would be if T and k were known; then the coverage with k as the sample
alone estimates it. A book is 500 triangles on one edge.

                        N = 5                 N = 20                N = 20, without M
    cnr-2000       0.990  0.067  0.055   0.995  0.180  0.121   0.910
    ego-Twitter    0.975  0.018  0.015   0.995  0.052  0.034   0.940
    ego-Facebook   0.964  0.060  0.053   0.992  0.161  0.117   0.936
    email-Enron    1.000  0.079  0.047   1.000  0.296  0.110   0.928
    wiki-Vote      0.988  0.081  0.059   1.000  0.272  0.136   0.964
    ca-GrQc        0.996  0.207  0.170   1.000  0.791  0.400   0.924
    web-spam       1.000  0.159  0.103   1.000  0.644  0.243   0.980
    as-caida       1.000  1.245  0.224   1.000  4.193  0.517   0.932
    Gnutella31     1.000  1.349  0.229   1.000  8.172  0.889   0.956
    40 books       1.000  1.074  0.623   1.000  3.262  1.378   0.852
    5 books        1.000  3.861  1.762   1.000  18.72  3.896   0.212

The triangles of one vertex have the same variance, with its own pairs of triangles. Those are bounded, not estimated:
each has one of the vertex's edges in common, and no edge has more triangles than the vertex has neighbours.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from functools import partial
from itertools import chain
from math import ceil, floor, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from dasktc.answers.edge_frames import edges_in_parts
from dasktc.answers.frames import array_module, write_answer
from dasktc.answers.vertex_counts import known_edges, known_triangles, of_degrees
from dasktc.answers.vertex_frames import Columns
from dasktc.backends.answers import degrees_of
from dasktc.backends.csr import on_host
from dasktc.backends.edge_sample import Colours
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError
from dasktc.options import real_number
from dasktc.pipeline.prepare import silent
from dasktc.questions.estimate import TriangleEstimate, exact, hash_key, with_facts
from dasktc.questions.measures import vertex_frames
from dasktc.questions.motifs import total_of_products
from dasktc.wording import advice, plural

__all__ = ["Seen", "colours_of_share", "estimate_of_sample", "score_upper", "write_vertices"]

Array = Any
LEAST = 1e-4
"""Smallest share: a triangle is in its sample with probability 10^-8."""


class Seen(NamedTuple):
    """What is known of a graph from a sample."""

    value: int
    pairs: int
    """Estimates of the triangles, and of the pairs of triangles that share an edge."""
    support: float
    """Upper bound of the triangles of an edge."""

    def interval(self, colours: int, z: float) -> tuple[float, float]:
        """Return the triangles that are within z standard deviations of the estimate, in a sample by `colours`."""
        pairs = score_upper(self.pairs, colours * (colours + self.support) ** 2, z)
        slope, constant = colours**2 - 1, 2 * (colours - 1) * pairs  # of the variance in T
        spread = z * sqrt(slope * self.value + z * z * slope * slope / 4 + constant)
        centre = self.value + z * z * slope / 2
        return max(0.0, centre - spread), centre + spread

    def colours_for(self, error: float, z: float, most: int) -> int:
        """Return the most colours, up to `most`, whose interval is expected to have this half width; 1: count all."""

        def is_wider(colours: int) -> bool:
            low, high = self.interval(colours, z)
            return high - low > 2 * error * self.value

        return bisect_left(range(1, most + 1), True, key=is_wider)


def score_upper(value: float, unit: float, z: float) -> float:
    """Return the largest x with (x - value)² <= z²·unit·x, the upper end of the score interval of a sum.

    Its estimate has at most the variance `unit` times the sum.
    """
    half = unit * z * z / 2
    return value + half + sqrt(half * half + 2 * half * value)


def colours_of_share(share: float, seed: int) -> Colours:
    """Return the colours whose sample is closest to a share of the edges, 1e-4 to 1 (else InputError)."""
    return Colours(round(1 / real_number("share", share, LEAST, 1, what="share")), hash_key(seed, 0))


def estimate_of_sample(graph: CountingContext, colours: int, target: dict[str, Any], start: float) -> TriangleEstimate:
    """Estimate the triangles of a graph of whose edges a sample was prepared.

    Parameters
    ----------
    graph : CountingContext
        The sample.
    colours : int
        1: the graph has all edges, and its triangles are the answer.
    target : dict
        error, confidence and seed.
    start : float
        `time.perf_counter` when the graph had been prepared.
    """
    if colours == 1:
        return exact(graph, graph.prepared.wedges, "a share of 1 has all edges", target, silent, start)
    error, z = target["error"], NormalDist().inv_cdf((1 + target["confidence"]) / 2)
    triangles, pairs, degree = _seen(graph)
    seen = Seen(colours**2 * triangles, colours**3 * pairs, colours * score_upper(degree, 1, z))
    low, high = seen.interval(colours, z)
    sample = {
        "value": seen.value,
        "low": max(triangles, floor(low)),
        "high": max(seen.value, ceil(high)),
        "sampled": graph.prepared.wedges,
        "closed": triangles,
    }
    needed = seen.colours_for(error, z, colours) if triangles else 0
    reason = (
        f"{plural(triangles, 'triangle')} in a sample by {colours:,} colours, and up to {seen.support:,.0f} on an edge "
        f"of the graph; {_advice(needed, colours, error)}"
    )
    return with_facts(graph, graph.prepared.wedges, reason, target, start, share=1 / colours, **sample)


def _advice(needed: int, colours: int, error: float) -> str:
    """Say what share has the error asked for."""
    if needed == colours:
        return f"the error is at most the {error:g} asked for"
    if needed == 0:
        return f"without a triangle it cannot be told what share has an error of {error:g}: take a larger one"
    if needed == 1:
        return f"no share below 1 has an error of {error:g}: estimate without a share, from wedges of all edges"
    return f"an error of {error:g} takes a share of about {1 / needed:.2g}"


def _seen(graph: CountingContext) -> tuple[int, int, int]:
    """Return triangles, pairs of triangles that share an edge, and the second largest degree."""
    if not graph.edges:
        return 0, 0, 0
    supports, triangles = known_edges(graph)
    pairs = sum(graph.executor.gather(edges_in_parts(graph, supports, _pairs)))
    largest = graph.executor.gather(of_degrees(graph, "sample", _largest))
    return triangles, pairs, sorted(chain(*largest))[-2]


def _pairs(part: Array) -> int:
    support = part[1]
    return total_of_products(support * (support - 1) >> 1)


def _largest(degree: Array) -> list[int]:
    """Return the two largest degrees of a shard."""
    degrees = on_host(degree)
    return np.partition(degrees, max(0, len(degrees) - 2))[-2:].tolist() if len(degrees) else []


def write_vertices(graph: CountingContext, colours: int, out: str | os.PathLike[str], force: bool) -> None:
    """Write estimates of every vertex's triangles, and bounds of their standard errors."""
    most = colours**2 * known_triangles(graph)
    if most >= 1 << 63:
        raise InputError(f"{plural(most, 'triangle')} of vertices could exceed 64 bits: raise {advice('share')}")
    columns: Columns = {"triangles": partial(_scaled, colours), "standard_error": partial(_standard_error, colours)}
    frames, _ = vertex_frames(graph, columns)
    write_answer(graph, frames, out, force)


def _scaled(colours: int, triangles: Array, *_: Array) -> Array:
    return triangles * colours**2


def _standard_error(colours: int, triangles: Array, out_degree: Array, in_degree: Array) -> Array:
    """Bound the standard error as if one triangle more were in the sample; a graph of all edges has none."""
    edges = degrees_of(out_degree, in_degree).astype("float64")
    variance = (colours**2 - 1) + 2 * colours * (colours - 1) * edges
    return colours * array_module(edges).sqrt((triangles + 1) * variance)
