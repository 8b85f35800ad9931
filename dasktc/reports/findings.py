"""Facts for a report besides the count: distributions of the graph, if quick to compute, and usage of workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dasktc.answers.edge_support import support_kernel
from dasktc.counting.context import CountingContext
from dasktc.counting.result import TriangleCount
from dasktc.errors import DeviceMemoryError, InputError
from dasktc.executors.process.usage import Usage
from dasktc.planning.rates import RATES
from dasktc.questions.distributions import (
    Summary,
    degree_bins,
    degree_facts,
    edge_summary,
    mean_clustering,
    vertex_summary,
)
from dasktc.wording import advice, rendered

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Allowance", "Findings", "RunFacts", "findings_of"]


@dataclass(frozen=True)
class Allowance:
    """What a report may take for the graph, and the times by which it is told beforehand whether that suffices."""

    seconds: float = 10.0
    """It may always take these; the time of the whole count if that is longer."""
    vertex_ratio: float = 2.0
    edge_ratio: float = 6.0
    """Time of triangles by vertex and by edge, relative to a count with a kernel that computes them: measured 1.7 and 5
    on Kronecker 16 and 18, one thread; 2 and 5.4 on Kronecker 22 on an H200."""
    visit_ratio: float = 60.0
    """The same if the memory only allows visiting triangles one by one."""
    prediction_ratio: float = 3.0
    """Largest ratio of a count's time to its predicted time (`planning.rates`)."""


@dataclass(frozen=True)
class RunFacts:
    """Facts of a run that its result does not hold."""

    command: str
    """The command that repeats the count."""
    before: dict[str, Usage]
    after: dict[str, Usage]
    """Resource use of each process when the stages began and when the count was done."""


@dataclass(frozen=True)
class Findings:
    """Facts of a graph for its report; None means left out."""

    degrees: pd.DataFrame
    """As from `degree_bins`."""
    vertices: Summary | None
    edges: Summary | None
    largest_degree: int
    transitivity: float
    """3·triangles / Σ d·(d - 1)/2, the quotient of two exact integers; 0 if no vertex has two neighbours."""
    average_clustering: float | None
    """Mean of the local clustering coefficients; None if triangles by vertex were left out."""
    why: str = ""
    """Which facts were left out, and the reason."""


def findings_of(graph: CountingContext, result: TriangleCount, allowance: Allowance = Allowance()) -> Findings:
    """Collect the facts of a counted graph: triangles by edge and by vertex if that takes no longer than the count.

    CountError: a check failed.
    """
    allowed = max(allowance.seconds, result.seconds["total"])
    edges, vertices, omitted = None, None, []
    try:
        counting, kernel = sum(record.count.seconds for record in result._records), support_kernel(graph)
        if kernel not in (result.kernel, "visit"):  # not that of the count, as `trust`, which may take far longer
            rates = RATES[result.backend]
            prediction = result.edges / rates.edges + result.stats.wedges / rates.probes
            counting = min(counting, allowance.prediction_ratio * prediction)
        counting /= max(1, result.workers)
        vertex_ratio, edge_ratio = allowance.vertex_ratio, allowance.edge_ratio
        if kernel == "visit":
            vertex_ratio = edge_ratio = allowance.visit_ratio
        if graph.counted.by_edge is not None or edge_ratio * counting <= allowed:
            edges = edge_summary(graph)
        else:
            omitted.append(_too_long("edges", edge_ratio * counting, allowed, "per_edge"))
        if any((edges, graph.counted.by_vertex)) or vertex_ratio * counting <= allowed:
            vertices = vertex_summary(graph)
        else:
            omitted.append(_too_long("vertices", vertex_ratio * counting, allowed, "per_vertex"))
    except (InputError, DeviceMemoryError) as error:
        omitted.append(f"Triangles by vertex or by edge were not counted: {error}.")
    degrees = degree_bins(graph) if vertices is None else vertices.bins
    largest, pairs = degree_facts(graph)
    transitivity = 3 * result.triangles / pairs if pairs else 0.0
    average = None if vertices is None else mean_clustering(vertices.bins)
    return Findings(degrees, vertices, edges, largest, transitivity, average, " ".join(omitted))


def _too_long(noun: str, seconds: float, allowed: float, output: str) -> str:
    return rendered(
        f"Triangles of {noun} were not counted: that takes about {seconds:,.0f} s more, and a report takes "
        f"at most {allowed:,.0f} s for it; {advice(output)} counts them."
    )
