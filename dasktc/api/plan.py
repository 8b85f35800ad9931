"""`plan` tells the partition, tasks, bytes and predicted time of a count, without counting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.api.opener import opened, read_options
from dasktc.backends import kernel_times, lazy_backend, lean_kernel, tasks_a_worker, unusable
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.backends.vertex_maps import MAX_VERTICES
from dasktc.errors import InputError, shown
from dasktc.executors.base import Executor
from dasktc.executors.connect import threads_here
from dasktc.executors.local import LocalExecutor
from dasktc.executors.offers import memory_of
from dasktc.executors.place import Place
from dasktc.executors.progress.tracker import Progress
from dasktc.executors.stores.file_store import stage_memory_within, usable
from dasktc.options import (
    Backend,
    IdsOption,
    Method,
    MethodName,
    Options,
    RunOptions,
    bytes_of,
    check_keywords,
    whole_number,
)
from dasktc.pipeline.autotune import choose
from dasktc.pipeline.planes.vertex_budget import VertexBudget
from dasktc.pipeline.prepare import prepare_edges
from dasktc.planning.cost_model import Prediction, predict
from dasktc.planning.distribution import SourceSize
from dasktc.planning.plan import MAX_PARTS, MAX_TASKS, Limits, Plan, even_blocks
from dasktc.planning.rates import CALL_SECONDS, RATES
from dasktc.planning.rates import Rates as MeasuredRates
from dasktc.planning.schemes import considered
from dasktc.planning.scratch import is_cut, plan_count
from dasktc.registry import SCHEMES, check_stages
from dasktc.saved.opening import SavedGraph, open_plan
from dasktc.wording import advice, option, plural

if TYPE_CHECKING:
    from dasktc.executors.place import ClientLike

__all__ = ["Rates", "plan", "plan_of_size"]

GPU_MEMORY = int(0.8 * 139 * 2**30)
"""Default bytes per GPU of `--gpus`: 80 % of an H200, the share that dask-cuda lets a worker fill."""
EVEN = "all blocks are assumed to be equally large"
REFUSED = f"counting refuses more than {MAX_VERTICES:,} vertices"
MAX_EDGES = 2**53
"""Up to this number the bytes of all blocks fit 64-bit integers."""


@dataclass(frozen=True)
class Rates:
    """Rates of a worker that a prediction assumes, where they are not those measured for its backend.

    Attributes
    ----------
    edges, probes : float or None
        Index edges that a worker visits, and probes that it makes, per second.
    network : int, str or None
        Bytes that a worker receives per second, e.g. "45GB".
    overhead : float or None
        Seconds of the scheduler per task.
    """

    edges: float | None = None
    probes: float | None = None
    network: int | str | None = None
    overhead: float | None = None

    def measured(self, backend: str, in_process: bool) -> MeasuredRates:
        """The measured rates of a backend with these in their place.

        Raises
        ------
        InputError
            A rate is not above 0, or the overhead is below 0.
        """
        overhead = CALL_SECONDS if in_process and self.overhead is None else self.overhead
        network = bytes_of(self.network, "rate_network")
        return RATES[backend].changed(edges=self.edges, probes=self.probes, network=network, overhead=overhead)


@said_in_one_line
def plan(
    source: Any = None,
    client: ClientLike | None = None,
    *,
    vertices: int | None = None,
    edges: int | None = None,
    wedges: int | None = None,
    workers: int | str | None = None,
    gpus: int | None = None,
    rates: Rates = Rates(),
    columns: Sequence[str] | None = None,
    ids: IdsOption = "auto",
    format: str | None = None,
    skip: int | None = None,
    backend: Backend = "auto",
    method: Method | MethodName = "auto",
    memory: int | str | None = None,
    threads: int | None = None,
    run: RunOptions = RunOptions(),  # noqa: B008  (frozen)
    progress: Progress | bool | None = None,
) -> Prediction:
    """Plan a count and predict its time and bytes, without counting.

    The graph is a source, which is read and prepared, or a size: numbers of vertices and of edges.

    Parameters
    ----------
    source, client
        As for `triangle_count`. Both ways of `run.distribute` are predicted, whatever its value.
    vertices, edges : int, optional
        Size of a graph, in place of a source. All its blocks are taken to be equally large; options of reading and
        of places have no effect.
    wedges : int, optional
        Σ in(v)·out(v) of that graph, from which probes are estimated. Those of a source are counted.
    workers : int, optional
        Number of concurrent tasks to plan for, each with `memory`, or with what one has here. Default: those of the
        cluster, or the threads of this process.
    gpus : int, optional
        The same, each task on a GPU; without `memory` a GPU like an H200. This machine needs none.
    rates : Rates
        Assumed rates of a worker.
    columns, ids, format, skip, backend, method, memory, threads, run, progress
        As for `triangle_count`.

    Returns
    -------
    Prediction
        It shows itself as six lines, or a table in Jupyter; `summary(verbose=True)` prints all figures, too. Its `plan`
        has partition, n, m, tasks and bytes; `to_dict()` everything.

    Raises
    ------
    InputError
        Neither a source nor a size is given, or both; or as `triangle_count`.

    Examples
    --------
    >>> import dasktc
    >>> prediction = dasktc.plan(vertices=10**6, edges=10**7, workers=4, backend="cpu")
    >>> prediction.plan.partition, prediction.plan.fits
    ('whole', True)
    """
    options = Options.by(method, backend, memory)
    check_keywords(run=run, progress=progress)
    if not isinstance(rates, Rates):
        raise InputError(f"rates={shown(rates)} is no dasktc.Rates: predictions take assumed rates from it; give one")
    worker_count = _workers(workers, gpus)
    if (vertices is None) != (edges is None) or (source is None) == (vertices is None):
        raise InputError("a plan is for a source, or for numbers of vertices and edges: give one of the two")
    if source is not None and wedges is not None:
        raise InputError(
            f"{option('wedges', wedges)} is for a graph of a given size: a source's are counted; leave it out"
        )
    # From sizes alone the plan takes all blocks to be of equal size.
    if vertices is not None and edges is not None:
        size_plan, notes = plan_of_size(vertices, edges, options, worker_count, gpus), [EVEN]
        if wedges is not None:  # three vertices have one at most, since edges go from lower to higher ranks
            most_wedges = min(comb(edges, 2), comb(vertices, 3))
            whole_number("wedges", wedges, 0, most_wedges, many="a wedge is two edges of three vertices")
        if vertices > MAX_VERTICES:
            notes.append(f"{REFUSED}: these blocks could hold them, but the edge keys of earlier stages cannot")
        return _predict(size_plan, options, rates, gpus, worker_count is None, notes=notes, wedges=wedges)
    # A source is prepared up to its plan, whose blocks then have their real sizes.
    place = Place.of(client, threads)
    reading = read_options(format, columns, ids, skip, memory, threads_here(place, backend))
    backend_name = None if gpus is None else "cuda"
    with opened("plan", source, place, options, reading, run, progress) as call, call.within_memory() as executor:
        limits = None if worker_count is None else _limits(executor, call.options, worker_count, gpus)
        if isinstance(call.source, SavedGraph):
            prepared = open_plan(executor, call.source, call.options, limits, backend_name)
        else:
            prepared = prepare_edges(executor, call.source, call.options, call.tracker, limits, backend_name)
        task_workers = np.unique(np.array(executor.worker_threads), return_inverse=True)[1]
    full_plan = prepared.plan if gpus is not None else call.explained(prepared.plan)
    sizes = np.ndenumerate(full_plan.scheme.block_bytes(prepared.sizes))
    return _predict(
        full_plan,
        call.options,
        rates,
        gpus,
        worker_count is None and call.in_process,
        prepared.options,
        block_bytes={(int(i), int(j)): int(size) for (i, j), size in sizes},
        wedges=prepared.wedges,
        worker_threads=task_workers if workers is None and len(task_workers) == full_plan.workers else None,
        size=SourceSize(prepared.rows, 0 if call.source.size is None else call.source.size.stored),
        ids=call.source.ids,
    )


def _predict(
    size_plan: Plan,
    options: Options,
    rates: Rates,
    gpus: int | None,
    in_process: bool,
    prepared: Options | None = None,
    notes: Sequence[str] = (),
    **facts: Any,
) -> Prediction:
    """Predict the bytes and seconds of a plan for the options' backend, or for GPUs.

    `prepared` are the options with kernel and order chosen, `facts` those of the graph, as for `cost_model.predict`.
    """
    backend = options.chosen_backend if gpus is None else "cuda"
    kernel = lean_kernel(backend) if size_plan.lean else replace(prepared or options, backend=backend).chosen_kernel
    if gpus is not None and options.memory is None:
        notes = ["memory of a GPU: 80 % of an H200's; for other GPUs give the memory", *notes]
    return predict(
        size_plan,
        rates.measured(backend, in_process),
        notes=list(notes),
        backend=backend,
        times=kernel_times(backend, options),
        in_process=in_process,
        kernel=str(kernel),
        **facts,
    )


def plan_of_size(
    vertices: int, edges: int, options: Options, workers: int | None = None, gpus: int | None = None
) -> Plan:
    """Plan the count of a graph of a given size whose blocks all have E/n² edges.

    By default one task runs at a time. `gpus` run one each; without `memory` a GPU is like an H200.
    """
    check_stages(options.kernel)
    if gpus is None and bytes_of(options.memory) is None and (reason := unusable(options.chosen_backend)):
        raise InputError(f"{reason}; or give {advice('memory')}, to plan for GPUs that are elsewhere")
    for name, value, limit in (("vertices", vertices, MAX_PARTS * MAX_VERTICES), ("edges", edges, MAX_EDGES)):
        whole_number(name, value, 0, limit, many="no plan has blocks for such a graph")
    if edges > (pairs := vertices * (vertices - 1) // 2):
        raise InputError(
            f"{option('edges', edges)} is more than the {pairs:,} that {plural(vertices, 'vertex', 'vertices')} can "
            "have: a plan is for distinct edges without loops; give their number, or give the source"
        )
    memory = bytes_of(options.memory)
    has_disk = memory is not None and gpus is None
    limits = _limits(LocalExecutor(backend=lazy_backend(options.chosen_backend)), options, workers, gpus)
    limits = replace(limits, least_parts=_least_parts(vertices, options))
    if memory is not None and has_disk:
        limits = replace(limits, memory=usable(memory))
    if obstacle := considered(options.partition)[0].dealing.unknown:
        raise InputError(
            f"{option('partition', options.partition)} cannot be planned from {option('vertices')} and "
            f"{option('edges')}: {obstacle} depends on the graph; give the source"
        )
    backend = options.chosen_backend if gpus is None else "cuda"
    call_memory, order = stage_memory_within(memory) if memory and has_disk else None, options.chosen_reorder

    def cut(options: Options) -> bool:
        return is_cut(options, vertices, edges, limits, call_memory, backend)

    # Blocks of equal size stand for those of the graph, and no row lengths are known by which a kernel is chosen.
    size_plan, _, _ = plan_count(
        options,
        vertices,
        edges,
        even_blocks(vertices, edges, options.column_parts),
        limits,
        choose(replace(options, backend=backend), None, cut=cut)[1],
        automatic=options.kernel == "auto",
        memory_per_call=call_memory,
        planned_for=backend,
    )
    budget = VertexBudget(call_memory, order=order)
    if vertices > MAX_VERTICES:
        size_plan = replace(size_plan, fits=False, why=f"{REFUSED}; {size_plan.why}")
    return replace(size_plan, shards=budget.shards(vertices), numbering=budget.why(vertices))


def _least_parts(vertices: int, options: Options) -> int:
    """Return the smallest n at which the columns of blocks fit 32 bits."""
    minimum = max(1, -(-vertices // MAX_VERTICES))
    scheme = SCHEMES.get(options.partition)
    parts = 1 if scheme and scheme.replicated else options.parts
    if parts is not None and parts < minimum:
        raise InputError(
            f"{vertices:,} vertices in {plural(parts, 'part')} are more than {MAX_VERTICES:,} per part: ids inside "
            f"blocks are 32-bit; let {advice(partition='auto')} choose n, or give "
            f"{advice(partition='hash2d', parts=minimum)}"
        )
    return minimum


def _limits(executor: Executor, options: Options, workers: int | None, gpus: int | None) -> Limits:
    budget, backend = bytes_of(options.memory), options.chosen_backend if gpus is None else "cuda"
    memory = memory_of(executor, budget) if gpus is None else budget or GPU_MEMORY
    task_count = tasks_a_worker(backend)
    return Limits(
        workers or len(executor.worker_threads),
        memory,
        options.partition,
        options.parts,
        options.splits,
        task_count,
        column_parts=options.column_parts,
        rates=RATES[backend],
        times=kernel_times(backend, options),
    )


def _workers(workers: int | str | None, gpus: int | None) -> int | None:
    if workers is not None and gpus is not None:
        options = f"{option('workers')} and {option('gpus')}"
        raise InputError(f"{options} were both given: each says how many tasks run at a time; keep one")
    name, value = ("workers", workers) if gpus is None else ("gpus", gpus)
    bounds = {"few": "no task could run", "many": "each runs one task at a time, and no plan has more"}
    return None if value is None else whole_number(name, value, 1, MAX_TASKS, **bounds)
