"""`dasktc plan`: the partition, tasks, bytes and predicted time of a count, without counting."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dasktc.api.count import as_source, choose_for, read_options, with_notes
from dasktc.api.progress import showing
from dasktc.api.streams import reads_streams
from dasktc.backends import kernel_times, tasks_a_worker, unusable
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.errors import InputError, shown
from dasktc.executors.base import Executor
from dasktc.executors.connect import connect, threads_here, with_all_threads
from dasktc.executors.local import LocalExecutor
from dasktc.executors.memory_budget import within_memory
from dasktc.executors.progress import Progress
from dasktc.executors.spill.file_store import stage_memory_within, usable
from dasktc.options import RETRIES, WORKER_SECONDS, Options, RunOptions, bytes_of, check_keywords, whole_number
from dasktc.pipeline.autotune import choose
from dasktc.pipeline.id_maps import MAX_VERTICES
from dasktc.pipeline.prepare import prepare_edges
from dasktc.pipeline.saved_graph import SavedGraph, fitted, open_plan
from dasktc.pipeline.sharded.vertex_budget import VertexBudget
from dasktc.planning.cost_model import Prediction, predict
from dasktc.planning.distribution import SourceSize
from dasktc.planning.plan import MAX_PARTS, MAX_TASKS, Limits, Plan
from dasktc.planning.rates import CALL_SECONDS, RATES
from dasktc.planning.schemes import Block, considered, scheme_of
from dasktc.planning.scratch import plan_count
from dasktc.registry import SCHEMES, check_stages
from dasktc.wording import advice, option, plural

__all__ = ["CostModelOptions", "plan_size", "plan_source", "predict_size", "predict_source"]

GPU_MEMORY = int(0.8 * 139 * 2**30)
"""Default bytes per GPU of `--gpus`: 80 % of an H200, the share that dask-cuda lets a worker fill."""
REFUSED = f"counting refuses more than {MAX_VERTICES:,} vertices"
MAX_EDGES = 2**53
"""Up to this number the bytes of all blocks fit 64-bit integers."""


@dataclass(frozen=True)
class CostModelOptions:
    """Number of GPUs, wedges and rates that a prediction assumes.

    Attributes
    ----------
    gpus : int or None
        Number of GPUs to plan for, independent of this machine.
    wedges : int or None
        Σ in(v)·out(v), if only a size is given.
    rate_edges, rate_probes, overhead : float or None
        Replacements of the rates of `planning.rates.RATES`.
    rate_network : int, str or None
        Bytes per second, e.g. "45GB".
    """

    gpus: int | None = None
    wedges: int | None = None
    rate_edges: float | None = None
    rate_probes: float | None = None
    rate_network: int | str | None = None
    overhead: float | None = None


def plan_source(source: Any, client: Any = None, **options: Any) -> Plan:
    """Read a source once and plan its count; parameters as for `predict_source`."""
    return predict_source(source, client, **options).plan


@reads_streams
@said_in_one_line
def predict_source(
    source: Any,
    client: Any = None,
    *,
    means: CostModelOptions | None = None,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    ids: str = "auto",
    skip: int | None = None,
    workers: int | str | None = None,
    scheduler: str | None = None,
    scheduler_file: str | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    host_memory: int | str | None = None,
    retries: int = RETRIES,
    worker_timeout: float = WORKER_SECONDS,
    security: Any = None,
    distribute: str | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Prediction:
    """Read a source once, plan its count and predict its time and bytes; parameters as for `triangle_count`.

    `workers` is the number of concurrent tasks to plan for; the source is prepared in this process. Both ways of
    `distribute` are predicted, whatever its value.

    Parameters
    ----------
    means : CostModelOptions, optional
        Its `wedges` have no effect, because those of the source are known.
    """
    chosen, wanted = Options(**options), _checked(means)
    check_keywords(progress=progress)
    run = RunOptions.of({**locals(), "workers": None})
    reading = read_options(format, columns, ids, skip, chosen.memory, threads_here(run, chosen.backend))
    opened = as_source(source, reading)
    if isinstance(opened, SavedGraph):
        chosen = fitted(opened, chosen)
    with (
        showing(progress, asked="plan", source=opened.name) as report,
        connect(run, chosen.backend) as anywhere,
        ExitStack() as stack,
    ):
        chosen, noted = choose_for(anywhere, opened, chosen)
        anywhere = with_all_threads(anywhere, run, chosen.chosen_backend)
        budget = within_memory(anywhere, chosen.memory, work_dir, host_memory)
        executor = stack.enter_context(budget)
        planned = _workers(workers, wanted.gpus)
        limits = None if planned is None else _limits(executor, chosen, planned, wanted.gpus)
        planned_for = None if wanted.gpus is None else "cuda"
        if isinstance(opened, SavedGraph):
            prepared = open_plan(executor, opened, chosen, limits, planned_for)
        else:
            prepared = prepare_edges(executor, opened, chosen, report, limits=limits, planned_for=planned_for)
        worker_threads = np.unique(np.array(executor.worker_threads), return_inverse=True)[1]
    sizes = np.ndenumerate(prepared.plan.scheme.block_bytes(prepared.sizes))
    held: dict[Block, int] = {(int(i), int(j)): int(size) for (i, j), size in sizes}
    there = worker_threads if workers is None and len(worker_threads) == prepared.plan.workers else None
    plan = prepared.plan if wanted.gpus is not None else with_notes(prepared.plan, noted)
    size = SourceSize(prepared.rows, 0 if opened.size is None else opened.size.stored)
    backend = planned_for or chosen.chosen_backend
    times = kernel_times(backend, chosen)
    notes, here = _notes(chosen, wanted), planned is None and not anywhere.distributed
    rates = _rates(wanted, here)
    return predict(
        plan, rates, held, prepared.wedges, notes, there, size, backend, opened.ids, times=times, in_process=here
    )


def plan_size(
    vertices: int, edges: int, *, workers: int | str | None = None, gpus: int | None = None, **options: Any
) -> Plan:
    """Plan the count of a graph of a given size whose blocks all have E/n² edges.

    Parameters
    ----------
    vertices, edges : int
    workers : int, optional
        Number of concurrent tasks; default 1.
    gpus : int, optional
        Number of concurrent tasks, each on a GPU; without `memory` a GPU like an H200.
    **options
        As for `triangle_count`; options for reading and running are ignored.
    """
    chosen = _without_reading(options)
    check_stages(chosen.kernel)
    if gpus is None and bytes_of(chosen.memory) is None and (why := unusable(chosen.chosen_backend)):
        raise InputError(f"{why}; or give {advice('memory')}, to plan for GPUs that are elsewhere")
    for name, value, most in (("vertices", vertices, MAX_PARTS * MAX_VERTICES), ("edges", edges, MAX_EDGES)):
        whole_number(name, value, 0, most, many="no plan has blocks for such a graph")
    if edges > (possible := vertices * (vertices - 1) // 2):
        raise InputError(
            f"{option('edges', edges)} is more than the {possible:,} that {plural(vertices, 'vertex', 'vertices')} can "
            "have: a plan is for distinct edges without loops; give their number, or give the source"
        )
    given = bytes_of(chosen.memory)
    on_disk = given is not None and gpus is None
    limits = _limits(LocalExecutor().for_backend(chosen.chosen_backend), chosen, _workers(workers, gpus), gpus)
    limits = replace(limits, least_parts=_least_parts(vertices, chosen))
    if given is not None and on_disk:
        limits = replace(limits, memory=usable(given))
    if unknown := considered(chosen.partition)[0].dealing.unknown:
        raise InputError(
            f"{option('partition', chosen.partition)} cannot be planned from {option('vertices')} and "
            f"{option('edges')}: {unknown} depends on the graph; give the source"
        )
    backend = chosen.chosen_backend if gpus is None else "cuda"
    per_call, order = stage_memory_within(given) if given and on_disk else None, chosen.chosen_reorder
    plan, _ = plan_count(
        chosen,
        vertices,
        edges,
        lambda partition, n: scheme_of(partition, chosen.column_parts).even(n, vertices, edges),
        limits,
        choose(replace(chosen, backend=backend), None)[1],
        automatic=chosen.kernel == "auto",
        memory_per_call=per_call,
        planned_for=backend,
    )
    kept = VertexBudget(per_call, how=order)
    if vertices > MAX_VERTICES:
        plan = replace(plan, fits=False, why=f"{REFUSED}; {plan.why}")
    return replace(plan, shards=kept.shards(vertices), numbering=kept.why(vertices))


def predict_size(
    vertices: int,
    edges: int,
    *,
    means: CostModelOptions | None = None,
    workers: int | str | None = None,
    **options: Any,
) -> Prediction:
    """Plan the count of a graph of a given size and predict its time and bytes; parameters as for `plan_size`.

    Parameters
    ----------
    means : CostModelOptions, optional
    """
    wanted = _checked(means)
    plan = plan_size(vertices, edges, workers=workers, gpus=wanted.gpus, **options)
    notes = [*_notes(_without_reading(options), wanted), "all blocks are assumed to be equally large"]
    if vertices > MAX_VERTICES:
        notes.append(f"{REFUSED}: these blocks could hold them, but the edge keys of earlier stages cannot")
    chosen = _without_reading(options)
    backend = "cuda" if wanted.gpus is not None else chosen.chosen_backend
    times = kernel_times(backend, chosen)
    here = workers is None and wanted.gpus is None
    rates = _rates(wanted, here)
    return predict(plan, rates, None, wanted.wedges, notes, backend=backend, times=times, in_process=here)


def _without_reading(options: dict[str, Any]) -> Options:
    running = {*RunOptions.__dataclass_fields__, "progress"} - {"workers"}
    reading = {"format", "columns", "ids", "skip"} | running
    return Options(**{name: value for name, value in options.items() if name not in reading})


def _least_parts(vertices: int, options: Options) -> int:
    """Return the smallest n at which the columns of blocks fit 32 bits."""
    least = max(1, -(-vertices // MAX_VERTICES))
    scheme = SCHEMES.get(options.partition)
    asked = 1 if scheme and scheme.replicated else options.parts
    if asked is not None and asked < least:
        raise InputError(
            f"{vertices:,} vertices in {plural(asked, 'part')} are more than {MAX_VERTICES:,} per part: ids inside "
            f"blocks are 32-bit; let {advice(partition='auto')} choose n, or give "
            f"{advice(partition='hash2d', parts=least)}"
        )
    return least


def _limits(executor: Executor, options: Options, workers: int | None, gpus: int | None) -> Limits:
    given, backend = bytes_of(options.memory), options.chosen_backend if gpus is None else "cuda"
    memory = executor.memory(given) if gpus is None else given or GPU_MEMORY
    at_least = tasks_a_worker(backend)
    return Limits(
        workers or executor.workers,
        memory,
        options.partition,
        options.parts,
        options.splits,
        at_least,
        column_parts=options.column_parts,
        rates=RATES[backend],
        times=kernel_times(backend, options),
    )


def _rates(means: CostModelOptions, in_process: bool) -> Any:
    overhead = CALL_SECONDS if in_process and means.overhead is None else means.overhead
    return RATES["cpu" if means.gpus is None else "cuda"].changed(
        edges=means.rate_edges,
        probes=means.rate_probes,
        network=bytes_of(means.rate_network, "rate_network"),
        overhead=overhead,
    )


def _checked(means: CostModelOptions | None) -> CostModelOptions:
    """Check the given options; None stands for the defaults."""
    if means is None:
        return CostModelOptions()
    if not isinstance(means, CostModelOptions):
        raise InputError(
            f"means is {shown(means)}: predictions take assumptions from it; pass dasktc.api.plan.CostModelOptions"
        )
    if means.wedges is not None:
        whole_number("wedges", means.wedges, 0, MAX_EDGES**2, many="no graph that can be planned has as many")
    return means


def _notes(options: Options, means: CostModelOptions) -> list[str]:
    if means.gpus is None or options.memory is not None:
        return []
    return ["memory of a GPU: 80 % of an H200's; for other GPUs give the memory"]


def _workers(workers: int | str | None, gpus: int | None) -> int | None:
    if workers is not None and gpus is not None:
        both = f"{option('workers')} and {option('gpus')}"
        raise InputError(f"{both} were both given: each says how many tasks run at a time; keep one")
    name, value = ("workers", workers) if gpus is None else ("gpus", gpus)
    bounds = {"few": "no task could run", "many": "each runs one task at a time, and no plan has more"}
    return None if value is None else whole_number(name, value, 1, MAX_TASKS, **bounds)
