"""Decides whether a cluster prepares and counts a source as tasks on all workers or as one call on one worker."""

from __future__ import annotations

from typing import NamedTuple

from dasktc.api.opener import Call
from dasktc.backends import ON_DEVICE
from dasktc.counting.one_call import threads_of_a_call
from dasktc.executors.base import Executor
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.options import Options
from dasktc.pipeline.prepare import limits_of
from dasktc.planning.distribution import Distribution, choose_distribution
from dasktc.planning.plan import Limits
from dasktc.planning.rates import RATES
from dasktc.planning.schemes import BY_RANGES, BY_REMAINDER, considered
from dasktc.saved.opening import SavedGraph

__all__ = ["ClusterRun", "distribution_of"]

NVLINK = 45e9
"""Bytes per second that a worker receives over UCX from another GPU of its host, as measured."""


class ClusterRun(NamedTuple):
    """How a count runs on a cluster, and what its workers offer."""

    executor: DaskExecutor
    """It has no memory budget."""
    how: Distribution
    limits: Limits

    def prepares_in_one_call(self, executor: Executor, options: Options) -> bool:
        """Whether the stages before counting are one call: no budget, and partitions computed without data."""
        if self.how.kind == "tasks" or executor is not self.executor:
            return False
        return all(scheme.dealing in (BY_REMAINDER, BY_RANGES) for scheme in considered(options.partition))


def distribution_of(call: Call) -> ClusterRun | None:
    """Choose between one call on a worker and tasks on all, by option or predicted time; None without a cluster.

    Also None for a saved graph, whose blocks the workers read and count as tasks.
    """
    executor, source = call.executor, call.source
    if not isinstance(executor, DaskExecutor) or isinstance(source, SavedGraph):
        return None
    limits, preference = limits_of(executor, call.options, call.offers), call.run.distribution
    if preference != "auto":
        return ClusterRun(executor, Distribution("tasks" if preference == "always" else "call", "asked for"), limits)
    threads, backend = threads_of_a_call(executor), executor.backend.name
    rates = RATES[backend]
    if backend in ON_DEVICE and executor.client.scheduler.address.startswith("ucx"):
        rates = rates.changed(network=NVLINK)
    choice = choose_distribution(source.size, limits.workers, limits.memory, rates, backend, source.ids, threads)
    return ClusterRun(executor, choice, limits)
