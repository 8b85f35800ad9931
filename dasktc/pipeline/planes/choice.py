"""Chooses the plane of a run by its mode, which nothing else asks."""

from __future__ import annotations

from collections.abc import Callable

from dasktc.executors.base import Executor
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.options import Options
from dasktc.pipeline.planes.answers import Answers, BudgetAnswers, BudgetWorkersAnswers, WorkersAnswers
from dasktc.pipeline.planes.base import Plane
from dasktc.pipeline.planes.budget import BudgetProcessPlane, BudgetWorkersPlane
from dasktc.pipeline.planes.graph import Numbering, SplitIds
from dasktc.pipeline.planes.process import ProcessPlane
from dasktc.pipeline.planes.sharded import ShardedPlane
from dasktc.pipeline.planes.tuning import TUNING, Tuning
from dasktc.pipeline.planes.workers import WorkersPlane

__all__ = ["answers_of", "choose", "sharded", "with_vertices"]


def choose(executor: Executor, options: Options, tuning: Tuning | None = None) -> Plane:
    """The plane for an executor: within its memory budget, on its workers, or in this process.

    Parameters
    ----------
    executor : Executor
        With the options' backend.
    options : Options
    tuning : Tuning, optional
        Default: `tuning.TUNING`.
    """
    kinds: tuple[type[Plane], type[Plane]] = ProcessPlane, BudgetProcessPlane
    if isinstance(executor, DaskExecutor):
        kinds = WorkersPlane, BudgetWorkersPlane
    return kinds[executor.store.memory_per_call is not None](executor, options, tuning or TUNING)


def with_vertices(plane: Plane, numbering: Numbering) -> Plane:
    """The plane for a graph with these vertices: with sharded vectors where whole ones do not fit one process.

    Raises
    ------
    InputError
        Shards do not fit either, or the scheme that the options name needs whole vectors.
    """
    budget, size = numbering.budget, numbering.size
    budget.check(size, plane.options.partition)
    return sharded(plane, budget.shards(size)) if isinstance(numbering.vertices, SplitIds) else plane


def sharded(plane: Plane, shards: int) -> Plane:
    """The plane with vertex vectors in so many shards; the same plane where there is one."""
    if shards == 1:
        return plane
    return _SHARDED[type(plane)](plane.executor, plane.options, plane.tuning, shards)


class _ShardedProcessPlane(ShardedPlane, ProcessPlane):
    executor: LocalExecutor


class _ShardedWorkersPlane(ShardedPlane, WorkersPlane):
    executor: DaskExecutor


class _ShardedBudgetProcessPlane(ShardedPlane, BudgetProcessPlane):
    executor: LocalExecutor


class _ShardedBudgetWorkersPlane(ShardedPlane, BudgetWorkersPlane):
    executor: DaskExecutor


_SHARDED: dict[type[Plane], Callable[..., Plane]] = {
    ProcessPlane: _ShardedProcessPlane,
    WorkersPlane: _ShardedWorkersPlane,
    BudgetProcessPlane: _ShardedBudgetProcessPlane,
    BudgetWorkersPlane: _ShardedBudgetWorkersPlane,
}
"""Each mode's plane with sharded vectors."""


def answers_of(executor: Executor) -> Answers:
    """How questions are answered to graphs that an executor holds."""
    has_budget = executor.store.memory_per_call is not None
    if isinstance(executor, DaskExecutor):
        return (BudgetWorkersAnswers if has_budget else WorkersAnswers)(executor)
    return (BudgetAnswers if has_budget else Answers)(executor)
