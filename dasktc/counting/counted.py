"""What a graph's questions have counted: kept until the graph is closed, so that each number is counted once.

Kept are handles: on a cluster futures, which Dask makes again if a worker that held them dies; within `--memory`
results of the executor's store, which moves them out as any other. Without a budget supports of one process are kept
where they take a small share of what is free.
"""

from __future__ import annotations

from threading import RLock
from typing import Any

from dasktc.errors import CountError
from dasktc.pipeline.sharded.vectors import Sharded
from dasktc.planning.schemes import Block

__all__ = ["Counted"]


class Counted:
    """Cache of a graph's triangle counts: of the whole graph, by vertex and by edge.

    Attributes
    ----------
    lock : threading.RLock
        Held while a question counts, so that others that need the same wait for it.
    triangles : int or None
        Of the graph.
    by_vertex : Sharded or None
        Each vertex's triangles, int64, by the ids that blocks are built with.
    by_edge : dict of (i, j) to handle of array of int32, or None
        Each edge's triangles, as `edge_supports` returns them.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.forget()

    def forget(self) -> None:
        """Give up everything."""
        self.triangles: int | None = None
        self.by_vertex: Sharded | None = None
        self.by_edge: dict[Block, Any] | None = None

    def agree(self, triangles: int) -> int:
        """Keep a new count of the graph's triangles; refuse one that differs from an earlier count.

        Raises
        ------
        CountError
            An earlier one found others.
        """
        known = self.triangles
        if known is not None and known != triangles:
            raise CountError(
                f"{triangles:,} triangles were counted, {known:,} before of the same graph: one of the two counts is "
                "wrong; prepare it again, and report this with the output of `dasktc info`"
            )
        self.triangles = triangles
        return triangles

    def __reduce__(self) -> Any:
        """Pickle none of it: a copy in another process counts for itself."""
        return Counted, ()
