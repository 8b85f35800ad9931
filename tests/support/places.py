"""Which question is answered in which place: `questions/test_places.py` asks all, and the reference has the table."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

import dasktc

PLACES = {
    "one thread": {"threads": 1, "backend": "cpu"},
    "threads": {"threads": 2, "backend": "cpu"},
    "workers": {"distribute": "always"},
    "a GPU": {"backend": "cuda"},
    "`--memory`": {"memory": "20MB", "backend": "cpu"},
    "workers, `--memory`": {"memory": "20MB", "distribute": "always"},
    "a GPU, `--memory`": {"memory": "2GB", "backend": "cuda"},
    "vertices in shards": {"memory": "20MB", "backend": "cpu"},
}
"""Options of `prepare` that lead to a place."""


KEPT = {"weight": "w", "directed": True, "edge_columns": ["w", "sign"]}
"""Options of `prepare` by which weights, directions and columns are kept."""


class Question(NamedTuple):
    """A question about a prepared graph: its call as the reference writes it, the call, and what is kept for it."""

    call: str
    ask: Callable[[Any, Any], Any]
    keeps: tuple[str, ...] = ()
    of_source: bool = False
    """It is asked of a source with options, not of a prepared graph and for a frame type."""

    @property
    def options(self) -> dict[str, Any]:
        """The options of `prepare` that keep it."""
        return {name: KEPT[name] for name in self.keeps}


def table(frame: Any) -> Any:
    """The rows of a frame in an order of their own, rounded."""
    frame = (frame.compute(scheduler="sync") if hasattr(frame, "compute") else frame).reset_index()
    return sorted(tuple(round(float(value), 9) for value in row) for row in frame.itertuples(index=False))


def sampled(source: Any, options: dict[str, Any]) -> Any:
    """An estimate from a sample of the edges, and those of the vertices."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "vertices.parquet")
        estimate = dasktc.estimate(source, share=0.5, per_vertex=out, **options)
        return (estimate.value, estimate.low, estimate.high, table(pd.read_parquet(out).set_index("vertex")))


QUESTIONS = [
    Question("triangle_count()", lambda graph, frame: int(graph.triangle_count())),
    Question("triangles()", lambda graph, frame: table(graph.triangles(frame=frame))),
    Question("clustering()", lambda graph, frame: table(graph.clustering(frame=frame))),
    Question("measures()", lambda graph, frame: table(graph.measures(frame=frame))),
    Question("square_clustering()", lambda graph, frame: table(graph.square_clustering(frame=frame))),
    Question("core_number()", lambda graph, frame: table(graph.core_number(frame=frame))),
    Question("edge_support()", lambda graph, frame: table(graph.edge_support(frame=frame))),
    Question("truss()", lambda graph, frame: table(graph.truss(frame=frame))),
    Question("truss(4)", lambda graph, frame: table(graph.truss(4, frame=frame))),
    Question("edge_list()", lambda graph, frame: table(graph.edge_list(frame="pandas"))),
    Question("oriented_edges()", lambda graph, frame: len(graph.oriented_edges(frame="pandas"))),
    Question("triangle_list()", lambda graph, frame: len(graph.triangle_list())),
    Question("similarity()", lambda graph, frame: table(graph.similarity(frame=frame))),
    Question(
        'similarity(measure="adamic_adar")',
        lambda graph, frame: table(graph.similarity(measure="adamic_adar", frame=frame)),
    ),
    Question("similarity([(0, 5)])", lambda graph, frame: table(graph.similarity([(0, 5)], frame=frame))),
    Question("similarity(top=3)", lambda graph, frame: table(graph.similarity(top=3, frame=frame))),
    Question("motifs()", lambda graph, frame: graph.motifs()),
    Question("survey()", lambda graph, frame: graph.survey(lambda batch: int(sum(batch[end].sum() for end in "uvw")))),
    Question(
        'survey(columns=["w"])',
        lambda graph, frame: graph.survey(
            lambda batch: int(sum(batch[f"w_{pair}"].sum() for pair in ("uv", "uw", "vw"))), ["w"]
        ),
        ("edge_columns",),
    ),
    Question(
        "triangle_types()",
        lambda graph, frame: table(graph.triangle_types({vertex: vertex % 3 for vertex in range(99)})),
    ),
    Question('signed_triangles("sign")', lambda graph, frame: graph.signed_triangles("sign"), ("edge_columns",)),
    Question(
        'temporal_triangles("w")',
        lambda graph, frame: table(graph.temporal_triangles("w").histogram),
        ("edge_columns",),
    ),
    Question("cliques(4)", lambda graph, frame: graph.cliques(4)),
    Question("transitivity()", lambda graph, frame: round(graph.transitivity(), 12)),
    Question("average_clustering()", lambda graph, frame: round(graph.average_clustering(), 12)),
    Question("estimate()", lambda graph, frame: graph.estimate().value),
    Question("dasktc.estimate(share=0.5)", lambda source, options: sampled(source, options), of_source=True),
    Question("update()", lambda graph, frame: int(graph.update(remove=[(0, 1)], add=[(0, 9)]).graph.triangle_count())),
    Question('clustering("w")', lambda graph, frame: table(graph.clustering("w", frame=frame)), ("weight",)),
    Question("clustering(), directed", lambda graph, frame: table(graph.clustering(frame=frame)), ("directed",)),
    Question("triad_census()", lambda graph, frame: graph.triad_census(), ("directed",)),
]


def lines() -> list[str]:
    """The table in Markdown."""
    rows = [("", *PLACES), ("---",) * (len(PLACES) + 1)]
    rows += [(f"`{question.call}`", *["yes"] * len(PLACES)) for question in QUESTIONS]
    return [f"| {' | '.join(row)} |" for row in rows]
