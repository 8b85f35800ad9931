"""Estimates the number of triangles of a prepared graph from a random sample of its wedges, if that saves time.

Every triangle closes one oriented wedge: one of its three vertices has both others as targets. If h of n sampled wedges
are closed, W·h/n estimates the triangles of a graph with W oriented wedges. This is wedge sampling (Seshadhri, Pinar
and Kolda, Statistical Analysis and Data Mining 7(4), 2014, doi:10.1002/sam.11224) on the wedges of the oriented graph,
which are fewer and more often closed (Turk and Türkoğlu, Revisiting wedge sampling for triangle counting, The Web
Conference 2019). The sample is stratified: one of each W/n consecutive wedges is drawn, with equal probabilities. The
variance is then at most that of n independent draws, so Wilson's score interval of a share (JASA 22, 1927,
doi:10.1080/01621459.1927.10502953) holds for every graph.

For comparison, the sampling of edges (Tsourakakis, Kang, Miller and Faloutsos: DOULION, KDD 2009,
doi:10.1145/1557019.1557111) and of vertex colours (Pagh and Tsourakakis, Inf. Proc. Lett. 112(7), 2012,
doi:10.1016/j.ipl.2011.12.007) was computed from the published variances and exact supports. Both variances have a term
2k/(p·T²), where k is the number of pairs of triangles that share an edge, which a few edges dominate. An error of 1 %
at 95 % needs a share p of the edges of 0.14 on a Kronecker graph of scale 20, 0.34 at scale 18, 0.36 on ego-Twitter and
0.79 on cnr-2000, where 100 edges make up 55 % of k: a sample without them has a far too narrow interval. Wedge sampling
takes 73,000, 57,000, 23,000 and 15,000 samples on these graphs. A graph that is not to be prepared is sampled by
colours, with an interval that allows for such edges (`questions/edge_sample.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, sqrt
from statistics import NormalDist
from typing import Any

from dasktc.answers.vertex_counts import known_triangles
from dasktc.backends import get_backend
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.backends.wedge_sample import MULTIPLIERS, STEP, Strata, wedges_of
from dasktc.counting.context import CountingContext
from dasktc.errors import CountError
from dasktc.io.evidence import Reading
from dasktc.options import real_number, whole_number
from dasktc.pipeline.prepare import Progress, silent
from dasktc.planning.schemes import Triple
from dasktc.summary import Rows, Summarised
from dasktc.wording import plural

__all__ = ["SAMPLE_EDGES", "TriangleEstimate", "check_options", "estimate", "exact", "hash_key", "wilson", "with_facts"]

PILOT = 1 << 11
"""Wedges of the first sample, whose share of closed wedges determines the size of the second, the answer."""
SAMPLE_EDGES = 16
"""Edges that are counted in about the time of one sampled wedge. Both make a few random reads, but those of a count
proceed row by row. Measured on the CPU: 0.25 µs per wedge and 28 ns per edge of a Kronecker graph of scale 18, 0.7 µs
and 66 ns at scale 22."""
CHUNK = {"cpu": 1 << 15, "cuda": 1 << 22}
"""Sampled wedges per task. On a device the preceding sums over all rows' wedges take longer than the samples."""
MOST = 1 << 62
"""Largest number of wedges that 64 bits can number, including the end of the last stratum."""
SURE = 3.0
"""Standard deviations subtracted from the pilot's share of closed wedges, so that the second sample is large enough in
all but one of 700 runs."""


@dataclass(frozen=True, eq=False, repr=False)
class TriangleEstimate(Summarised):
    """An estimate of a graph's triangles, with its interval and sample. It is not a `TriangleCount` and not an integer.

    `str(estimate)` is the estimated number alone; a REPL, Jupyter and `estimate.summary()` show a summary.

    Attributes
    ----------
    value : int
        The estimated number of triangles.
    low, high : int
        Ends of the confidence interval, equal to `value` if `exact`.
    error : float
        Requested half width of the interval, relative to the value.
    confidence : float
        Share of the seeds for which the interval contains the true number.
    sampled : int
        Number of wedges tested; 0 if `exact`.
    closed : int
        Number of these that an edge closes.
    wedges : int
        Number of oriented wedges of the graph, from which the sample was drawn: pairs of edges that leave one vertex.
    exact : bool
        Everything was counted, because sampling would not have saved time.
    why : str
        Reason for the size of the sample, or for having none.
    vertices, edges : int
        Exact numbers of vertices with an edge after clean-up, and of distinct undirected edges.
    loops_dropped, duplicates_dropped : int
    read : Reading
        What was read, as of a count.
    backend, partition : str
    workers, seed : int
    seconds : dict of str to float
        Wall time of read, prepare and count (the sampling), and total.
    share : float
        Below 1: only about this share of the edges was prepared. `wedges`, `vertices`, `edges` and `duplicates_dropped`
        are those of the sample, all of whose wedges were tested; `closed` is its number of triangles.
    """

    value: int
    low: int
    high: int
    error: float
    confidence: float
    sampled: int
    closed: int
    wedges: int
    exact: bool
    why: str
    vertices: int
    edges: int
    loops_dropped: int
    duplicates_dropped: int
    read: Reading
    backend: str
    partition: str
    workers: int
    seed: int
    seconds: dict[str, float]
    share: float = 1.0

    @property
    def half_width(self) -> float:
        """Half the width of the interval, relative to the value; 0 if `exact`."""
        return (self.high - self.low) / (2 * self.value) if self.value else float(self.high)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON. Only the keys of graph and run are shared with a count's result."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "value"}
        fields["read"] = self.read.to_dict()
        return {"estimate": self.value, **fields, "half_width": self.half_width}

    def _rows(self) -> Rows:
        interval = f"{self.low:,} to {self.high:,}, with confidence {self.confidence:g}"
        seconds = ", ".join(f"{name} {value:.2f}" for name, value in self.seconds.items())
        return [
            ("estimate", f"{plural(self.value, 'triangle')}" + (", counted exactly" if self.exact else "")),
            *([] if self.exact else [("interval", interval)]),
            ("sampled", f"{self.sampled:,} of {plural(self.wedges, 'wedge')}, {self.closed:,} closed"),
            ("why", self.why),
            *(
                [("sample", f"{self.share:.3g} of the edges; vertices, edges and duplicates are its own")]
                if self.share < 1
                else []
            ),
            ("vertices", f"{self.vertices:,}"),
            ("edges", f"{self.edges:,}"),
            *self.read._rows(),
            ("dropped", f"{plural(self.loops_dropped, 'loop')}, {plural(self.duplicates_dropped, 'duplicate')}"),
            ("run", f"{self.backend}, {self.workers} at a time, {self.partition}, seed {self.seed}"),
            ("seconds", seconds),
        ]

    def __str__(self) -> str:
        return str(self.value)


def check_options(error: float, confidence: float, seed: int) -> tuple[float, float, int]:
    """Refuse (InputError) an error or a confidence that is not between 0 and 1, and a seed that is not an integer."""
    shares = {"error": error, "confidence": confidence}
    error, confidence = (real_number(name, value, 1e-6, 1 - 1e-6, what="share") for name, value in shares.items())
    return error, confidence, whole_number("seed", seed, None)


def estimate(
    graph: CountingContext, error: float, confidence: float, seed: int, progress: Progress | None = None
) -> TriangleEstimate:
    """Estimate the triangles of a prepared graph; see `Graph.estimate`."""
    error, confidence, seed = check_options(error, confidence, seed)
    start, report = time.perf_counter(), progress or silent
    target: dict[str, Any] = {"error": error, "confidence": confidence, "seed": seed}
    graph.executor.store.set_task_memory(graph.plan.bytes_per_task, graph.plan.memory)
    report("sample", 0, 3)
    wedge_counts = _wedges(graph)
    wedges, z = sum(wedge_counts.values()), NormalDist().inv_cdf((1 + confidence) / 2)
    if reason := _never_pays(graph, wedges):
        return exact(graph, wedges, reason, target, report, start)
    report("sample", 1, 3)
    sample_size, closed_count = _sample(graph, wedge_counts, PILOT, hash_key(seed, 0))
    # `1 - error`: the next share may be less.
    size = _needed(wilson(closed_count, sample_size, SURE)[0] * (1 - error), error, z)
    is_worthwhile = size * SAMPLE_EDGES <= graph.edges / 2 and size <= wedges / 2
    shares = f"{closed_count:,} of {plural(sample_size, 'wedge')} of a first sample are closed"
    if not is_worthwhile:
        demand = f"{plural(size, 'wedge')}" if size < wedges else "as many wedges as there are"
        reason = f"{shares}: an error of {error:g} asks for {demand}, whose test takes as long as the count"
        return exact(graph, wedges, reason, target, report, start)
    report("sample", 2, 3)
    sample_size, closed_count = _sample(graph, wedge_counts, size, hash_key(seed, 1))
    low, high = wilson(closed_count, sample_size, z)
    value = (2 * wedges * closed_count + sample_size) // (2 * sample_size)
    low, high = min(value, floor(wedges * low)), max(value, min(wedges, ceil(wedges * high)))
    sample = {"value": value, "low": low, "high": high, "sampled": sample_size, "closed": closed_count}
    return with_facts(graph, wedges, shares, target, start, **sample)


def wilson(closed: int, sampled: int, z: float) -> tuple[float, float]:
    """Return Wilson's score interval of a share if `closed` of `sampled` draws have the property.

    Parameters
    ----------
    closed, sampled : int
    z : float
        Standard deviations on each side.
    """
    share, spread = closed / sampled, z * z / sampled
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * sqrt(share * (1 - share) / sampled + spread / (4 * sampled))
    return max(0.0, centre - half), min(1.0, centre + half)


def _needed(share: float, error: float, z: float) -> int:
    """Least number of draws after which the half width of Wilson's interval is at most `error` times the share.

    It solves, for the number n in z² / n, the quadratic equation of a half width of exactly that much.
    """
    if share <= 0:
        return 1 << 62
    variance, square = share * (1 - share), (share * error) ** 2
    root = sqrt(variance * variance + square * (1 - 2 * share) ** 2)
    return max(1, ceil(z * z * (variance - 2 * square + root) / (2 * square)))


def _never_pays(graph: CountingContext, wedges: int) -> str:
    """Return why no sample can save time, whatever the share of closed wedges; "" if one may."""
    minimum = 2 * SAMPLE_EDGES * PILOT
    if graph.edges < minimum:
        return f"{plural(graph.edges, 'edge')}: below {minimum:,} a first sample alone takes as long as the count"
    if wedges < 2 * PILOT:
        return f"{plural(wedges, 'wedge')}: a sample would be as many"
    if wedges > MOST:
        return f"{plural(wedges, 'wedge')}: 64 bits do not number them"
    return ""


def hash_key(seed: int, number: int) -> int:
    """Return the hash key of a sample."""
    x = (2 * seed + number + 1) * STEP % 2**64
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        x = (x ^ x >> shift) * multiplier % 2**64
    return x ^ x >> 31


def _wedges(graph: CountingContext) -> dict[Triple, int]:
    """Count the wedges of every block triple, in the triples' order."""
    calls = (
        (triple, graph.options.chosen_backend, graph.blocks[triple.index], graph.blocks[triple.table])
        for triple in graph.plan.triples()
    )
    counts = dict(graph.executor.map_unordered("sample", _wedges_of, calls))
    return {triple: counts[triple] for triple in sorted(counts)}


def _wedges_of(triple: Triple, backend: str, index: OrientedCSR, table: OrientedCSR) -> tuple[Triple, int]:
    return triple, wedges_of(index, table, triple.index == triple.table, get_backend(backend).array)


def _sample(graph: CountingContext, wedge_counts: dict[Triple, int], size: int, key: int) -> tuple[int, int]:
    """Test a sample of at least `size` wedges; return the numbers of tested and of closed wedges."""
    wedges, backend = sum(wedge_counts.values()), graph.options.chosen_backend
    width = max(1, wedges // size)
    calls = (
        (triple, strata, backend, *(graph.blocks[place] for place in triple.places))
        for triple, strata in _strata(wedge_counts, width, key, CHUNK[backend])
    )
    results = list(graph.executor.map_unordered("sample", _tested, calls))
    sample_size, closed_count = (sum(numbers) for numbers in zip(*results, strict=True))
    full_strata, last = divmod(wedges, width)
    if not full_strata <= sample_size <= full_strata + (last > 0) or closed_count > sample_size:
        raise CountError(
            f"{plural(sample_size, 'wedge was', 'wedges were')} tested, of strata of {width:,} in {wedges:,}: some "
            "were lost or repeated; run again, and report this with the output of `dasktc info`"
        )
    return sample_size, closed_count


def _strata(wedge_counts: dict[Triple, int], width: int, key: int, chunk: int) -> Iterator[tuple[Triple, Strata]]:
    """Yield the strata that overlap each triple, at most `chunk` per task."""
    offset = 0
    for triple, wedges in wedge_counts.items():
        first, end = offset // width, -(-(offset + wedges) // width)
        if wedges:
            for start in range(first, end, chunk):
                strata = Strata(start, min(end, start + chunk), offset, width, key, triple.index == triple.table)
                yield triple, strata
        offset += wedges


def _tested(
    triple: Triple, strata: Strata, backend: str, index: OrientedCSR, table: OrientedCSR, stream: OrientedCSR
) -> tuple[int, int]:
    places = tuple(block.place for block in (index, table, stream))
    if places != triple.places:
        raise CountError(f"blocks {places} came for {triple}: they were mixed up; run again, and report this")
    return get_backend(backend).closed_wedges(BlockTask(index, table, stream), strata)


def exact(
    graph: CountingContext, wedges: int, reason: str, target: dict[str, Any], report: Progress, start: float
) -> TriangleEstimate:
    """Count all triangles, unless already known."""
    number = known_triangles(graph, report)
    sample = {"value": number, "low": number, "high": number, "sampled": 0, "closed": 0}
    return with_facts(graph, wedges, reason, target, start, **sample)


def with_facts(
    graph: CountingContext,
    wedges: int,
    reason: str,
    target: dict[str, Any],
    start: float,
    share: float = 1.0,
    **sample: int,
) -> TriangleEstimate:
    """Make the estimate of a sample, which is exact if nothing was sampled."""
    prepared, stage_seconds = graph.prepared, graph.prepared.seconds
    seconds = {**stage_seconds, "count": time.perf_counter() - start}
    return TriangleEstimate(
        **sample,
        **target,
        exact=share == 1 and not sample["sampled"],
        why=reason,
        wedges=wedges,
        vertices=graph.vertices,
        edges=graph.edges,
        loops_dropped=prepared.loops,
        duplicates_dropped=prepared.rows - prepared.loops - graph.edges,
        read=prepared.source.read,
        backend=graph.options.chosen_backend,
        partition=graph.plan.partition,
        workers=len(graph.executor.worker_threads),
        seconds={**seconds, "total": sum(stage_seconds.values()) + time.perf_counter() - start},
        share=share,
    )
