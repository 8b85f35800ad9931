"""Planes: how partitions of a graph move in each execution mode; `choose` says which mode a run has."""

from dasktc.pipeline.planes.answers import Answers
from dasktc.pipeline.planes.base import Blocks, Plane
from dasktc.pipeline.planes.choice import answers_of, choose, sharded, with_vertices
from dasktc.pipeline.planes.graph import Canonical, Frames, Handles, Numbering, Oriented
from dasktc.pipeline.planes.tuning import Tuning
from dasktc.pipeline.planes.vectors import Sharded

__all__ = [
    "Answers", "Blocks", "Canonical", "Frames", "Handles", "Numbering", "Oriented", "Plane", "Sharded", "Tuning",
    "answers_of", "choose", "sharded", "with_vertices",
]  # fmt: skip
