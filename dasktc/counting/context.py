"""`CountingContext`: a prepared graph's blocks, plan and options, and the executor that holds the blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

from dasktc.counting.counted import Counted
from dasktc.counting.tuning import TUNING, Tuning
from dasktc.executors.base import Executor
from dasktc.options import Options
from dasktc.pipeline.build_blocks import Blocks
from dasktc.pipeline.planes import Answers, answers_of
from dasktc.pipeline.prepare import Prepared
from dasktc.planning.plan import Plan

__all__ = ["CountingContext"]


@dataclass(frozen=True, eq=False)
class CountingContext:
    """A graph in oriented blocks, with its plan, options and executor."""

    executor: Executor = field(repr=False)
    """Runs the counting tasks and holds the blocks."""
    prepared: Prepared = field(repr=False)
    """Facts of the graph from the pipeline, besides its blocks."""
    blocks: Blocks = field(repr=False)
    """Dict of (i, j) to handle of OrientedCSR."""
    options: Options
    tuning: Tuning = TUNING
    counted: Counted = field(default_factory=Counted, init=False, repr=False)
    """Cached results of questions; a copy with other blocks starts with an empty cache."""

    @property
    def answers(self) -> Answers:
        """Where results are, and so how questions are answered."""
        return answers_of(self.executor)

    @property
    def plan(self) -> Plan:
        """The plan of the count."""
        return self.prepared.plan

    @property
    def vertices(self) -> int:
        """Number of vertices with an edge after clean-up."""
        return self.plan.vertices

    @property
    def folder_of_copies(self) -> str:
        """The folder of a saved graph whose parts have copies of edges, which are not compared when it is opened."""
        return self.prepared.source.folder if self.plan.scheme.dealing.members else ""

    @property
    def edges(self) -> int:
        """Distinct undirected edges after clean-up."""
        return self.plan.edges
