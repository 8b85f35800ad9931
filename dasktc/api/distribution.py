"""Whether a cluster prepares and counts a source as tasks on all workers, or as one call on one."""

from __future__ import annotations

from dataclasses import replace

from dasktc.executors.base import Executor
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.io.source import Source
from dasktc.options import Options, RunOptions, bytes_of
from dasktc.planning.distribution import Distribution, choose_distribution
from dasktc.planning.rates import RATES, Rates
from dasktc.planning.schemes import BY_RANGES, BY_REMAINDER, considered

__all__ = ["as_tasks", "distribution_of", "prepares_in_one_call", "rates_of"]

NVLINK = 45e9
"""Bytes a second that a worker receives over UCX from another GPU of its host, as measured."""


def distribution_of(executor: Executor, source: Source, options: Options, run: RunOptions) -> Distribution | None:
    """Choose between one call and tasks on a cluster, as asked for or by predicted seconds; None without a cluster.

    Parameters
    ----------
    executor : Executor
    source : Source
    options : Options
        With the backend chosen.
    run : RunOptions
    """
    if not isinstance(executor, DaskExecutor):
        return None
    if run.distribution != "auto":
        kinds = {"always": Distribution("tasks", "asked for"), "never": Distribution("call", "asked for")}
        return kinds[run.distribution]
    backend = options.chosen_backend
    memory = executor.memory(bytes_of(options.memory), backend)
    return choose_distribution(source.size, executor.workers, memory, rates_of(executor, backend), backend, source.ids)


def rates_of(executor: DaskExecutor, backend: str) -> Rates:
    """The rates of a backend, with the network of this cluster's protocol."""
    direct = backend == "cuda" and executor.client.scheduler.address.startswith("ucx")
    return RATES[backend].changed(network=NVLINK) if direct else RATES[backend]


def prepares_in_one_call(executor: Executor, options: Options, how: Distribution | None) -> bool:
    """Whether the stages before counting are one call: results stand in memory, and partitions are arithmetic alone."""
    if how is None or how.kind == "tasks" or executor.memory_per_call is not None:
        return False
    return all(scheme.dealing in (BY_REMAINDER, BY_RANGES) for scheme in considered(options.partition))


def as_tasks(how: Distribution) -> Distribution:
    """The same where one call was chosen but cannot be made."""
    return replace(how, kind="tasks", why=f"{how.why}; but results that stand in files, or with proxies, are of tasks")
