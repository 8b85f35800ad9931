"""Cache of a graph's counts, kept until the graph is closed, so that each number is counted once.

The cache holds handles: on a cluster futures, which Dask computes again if their worker dies; within `--memory` results
in the executor's store, which spills them like any other. One process without a budget caches supports only if they
take a small share of the free memory.
"""

from __future__ import annotations

from threading import RLock
from typing import Any

from dasktc.errors import CountError
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.planning.schemes import Block
from dasktc.wording import plural

__all__ = ["Counted"]


class Counted:
    """Cache of a graph's triangle counts: of the whole graph, by vertex and by edge.

    Attributes
    ----------
    lock : threading.RLock
        Held while a question counts, so that questions that need the same numbers wait for them.
    triangles : int or None
        Number of triangles of the graph.
    by_vertex : Sharded or None
        Each vertex's triangles, int64, by the ids of the blocks.
    by_edge : dict of (i, j) to handle of array of int32, or None
        Each edge's triangles, in the form of `edge_supports`.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.forget()

    def forget(self) -> None:
        """Empty the cache."""
        self.triangles: int | None = None
        self.by_vertex: Sharded | None = None
        self.by_edge: dict[Block, Any] | None = None

    def agree(self, triangles: int) -> int:
        """Keep a new count of the graph's triangles; refuse (CountError) one that differs from an earlier count."""
        count = self.triangles
        if count is not None and count != triangles:
            raise CountError(
                f"{plural(triangles, 'triangle was', 'triangles were')} counted, but {count:,} earlier in the same "
                "graph: one of the counts is wrong; prepare it again, and report this with the output of `dasktc info`"
            )
        self.triangles = triangles
        return triangles

    def __reduce__(self) -> Any:
        """Pickle an empty cache: a copy in another process counts for itself."""
        return Counted, ()
