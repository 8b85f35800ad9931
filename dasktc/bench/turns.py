"""Counts of a prepared graph on one worker process and on two, in turns.

Both clusters are up all the time, so that other load of the machine affects both counts of a turn alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dasktc.api.graph import Graph
    from dasktc.counting.result import TriangleCount

__all__ = ["Turn", "in_turns", "take_turns"]


class Turn(NamedTuple):
    """Measurements of one turn: a count on one worker, then one on two."""

    triangles: tuple[int, int]
    """As counted by one worker, and by two."""
    one: float
    """CPU seconds of the counting tasks on one worker."""
    two: list[float]
    """CPU seconds on each of the two, in any order; a single entry if one of them had no task."""


def in_turns(scale: int, turns: int) -> list[Turn]:
    """Count a Kronecker graph on new clusters of one worker and of two, with one thread each.

    Parameters
    ----------
    scale : int
    turns : int
    """
    from dasktc.api.count import build
    from dasktc.executors.connect import connect
    from dasktc.executors.place import Place
    from dasktc.io.generators.synthetic import kronecker
    from dasktc.options import Options

    with connect(Place(workers=1)) as one, connect(Place(workers=2)) as two:
        first, second = (build(executor, kronecker(scale), Options(backend="cpu")) for executor in (one, two))
        return take_turns(first, second, turns)


def take_turns(one: Graph, two: Graph, turns: int) -> list[Turn]:
    """Count two prepared graphs in turns, after a warm-up count of each.

    Parameters
    ----------
    one, two : Graph
        The same graph, on a cluster of one worker and on one of two.
    turns : int
    """
    rounds = [_turn(_anew(one), _anew(two)) for _ in range(1 + turns)]
    return rounds[1:]  # the first turn imports, compiles, and copies blocks to where they are needed


def _turn(one: TriangleCount, two: TriangleCount) -> Turn:
    return Turn((one.triangles, two.triangles), sum(_seconds(one)), _seconds(two))


def _seconds(result: TriangleCount) -> list[float]:
    """CPU seconds of the counting tasks, by worker."""
    by_worker: list[float] = result.tasks.groupby("worker")["seconds"].sum().tolist()
    return by_worker


def _anew(graph: Graph) -> TriangleCount:
    """Count without the tables that workers' threads keep from the last count, as a first count does."""
    from dasktc.backends.cpu import hub_tables

    client = graph._context.executor.client  # type: ignore[attr-defined]
    client.gather(
        [
            client.submit(hub_tables.forget, workers=[seat], pure=False)
            for seat in graph._context.executor.worker_threads
        ]
    )
    return graph.triangle_count()
