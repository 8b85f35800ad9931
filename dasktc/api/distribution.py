"""Decides whether a cluster prepares and counts a source as tasks on all workers or as one call on one worker."""

from __future__ import annotations

from typing import NamedTuple

from dasktc.counting.one_call import threads_of_a_call
from dasktc.counting.outputs import Outputs
from dasktc.executors.base import Executor
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.io.source import Source
from dasktc.options import Options, RunOptions
from dasktc.pipeline.prepare import limits_of
from dasktc.planning.distribution import Distribution, choose_distribution
from dasktc.planning.plan import Limits
from dasktc.planning.rates import RATES, Rates
from dasktc.planning.schemes import BY_RANGES, BY_REMAINDER, considered
from dasktc.saved.opening import SavedGraph

__all__ = ["ClusterRun", "distribution_of", "in_one_call", "prepares_in_one_call", "rates_of"]

NVLINK = 45e9
"""Bytes per second that a worker receives over UCX from another GPU of its host, as measured."""


class ClusterRun(NamedTuple):
    """How a count runs on a cluster, and what its workers offer."""

    how: Distribution
    limits: Limits


def distribution_of(executor: Executor, source: Source, options: Options, run: RunOptions) -> ClusterRun | None:
    """Choose between one call on a worker and tasks on all, by option or predicted time; None without a cluster.

    Also None for a saved graph, whose blocks the workers read and count as tasks.

    Parameters
    ----------
    executor : Executor
    source : Source
    options : Options
        With the backend chosen.
    run : RunOptions
    """
    if not isinstance(executor, DaskExecutor) or isinstance(source, SavedGraph):
        return None
    limits = limits_of(executor, options)
    if run.distribution != "auto":
        return ClusterRun(Distribution("tasks" if run.distribution == "always" else "call", "asked for"), limits)
    threads, size = threads_of_a_call(executor), source.size
    rates, backend = rates_of(executor), executor.backend.name
    how = choose_distribution(size, limits.workers, limits.memory, rates, backend, source.ids, threads)
    return ClusterRun(how, limits)


def in_one_call(cluster: ClusterRun, outputs: Outputs, checkpoint: object) -> bool:
    """Whether the whole count runs as one call: not with a checkpoint or output files, which only tasks write."""
    return cluster.how.kind == "call" and checkpoint is None and outputs == Outputs()


def rates_of(executor: DaskExecutor) -> Rates:
    """The rates of the executor's backend, with the network of this cluster's protocol."""
    backend = executor.backend.name
    direct = executor.backend.on_device and executor.client.scheduler.address.startswith("ucx")
    return RATES[backend].changed(network=NVLINK) if direct else RATES[backend]


def prepares_in_one_call(executor: Executor, options: Options, how: Distribution) -> bool:
    """Whether the stages before counting can run as one call: results in memory, partitions computed without data."""
    if how.kind == "tasks" or executor.memory_per_call is not None:
        return False
    return all(scheme.dealing in (BY_REMAINDER, BY_RANGES) for scheme in considered(options.partition))
