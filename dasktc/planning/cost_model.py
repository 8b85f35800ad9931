"""Predicts what a plan costs: bytes over the network, and seconds at stated rates.

Placement is that of `planning.placement`: task t of N, in the order of `counting.tasks.jobs`, runs on worker t·W // N.
One of the workers that need a block builds it, and the others fetch it: a block that w workers need is sent w - 1
times, and again to a worker that lacked memory to keep it until it is needed again. Tasks that an idle worker takes
over from a slower one add to that. A graph of a single block (`whole`, `edges`) is built in slabs, one per thread: each
worker receives the slabs of the others, and stacks the block itself.

Time, if all workers are alike:

    counting   ceil(tasks / workers) · (edge visits / rate_edges + probes / rate_probes) / tasks
    network    bytes received by the worker that receives most / rate_network
    scheduler  tasks · overhead
    seconds    network + the larger of counting and scheduler

A triple's index edges are visited once: E for a whole graph, n·E for `hash2d` (TRUST, section 5.3). Preparing the
graph is not included; `planning.distribution` predicts everything from the source on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import inf
from operator import itemgetter
from typing import Any

import numpy as np

from dasktc.options import Ids, format_size
from dasktc.planning.distribution import SourceSize, pipeline_seconds, stage_seconds, too_large_for_a_call
from dasktc.planning.memory_model import triple_bytes
from dasktc.planning.placement import ONE_PARTITION, ReplicaCache, homes, needed, numbered
from dasktc.planning.plan import MAX_PARTS, MAX_TASKS, Plan
from dasktc.planning.rates import RATES, Rates, probes_of
from dasktc.planning.schemes import Block, Sizes
from dasktc.registry import kernel_of
from dasktc.summary import Rows, Summarised, as_text
from dasktc.wording import plural

__all__ = ["Network", "Prediction", "gathered", "in_words", "network", "predict", "work_of_triples"]

Array = np.ndarray[Any, np.dtype[np.int64]]
PROBES_PER_WEDGE = 0.28
"""For the hub kernel on Kronecker graphs, whose value at scale 14 is 0.42. On random graphs it is 0.9 and more, but
their rows are short, and visits dominate."""
NEAR = 0.8
"""Share of a limit from which a prediction notes that it is near."""


@dataclass(frozen=True)
class Network:
    """Bytes of blocks that travel between workers."""

    total: int
    """Bytes received by all workers together."""
    largest: int
    """Bytes received by the worker that receives most."""


@dataclass(frozen=True, repr=False)
class Prediction(Summarised):
    """A plan with its predicted bytes and seconds.

    Attributes
    ----------
    plan : Plan
    network : Network
    probes : int
        Estimated number of probes.
    estimate : str
        How it was estimated.
    seconds : dict of str to float
        Seconds of counting, network and scheduler, and the predicted total.
    rates : Rates
    call_seconds, task_seconds : float
        From the source to the number, preparation included: in one call on one worker, and as tasks on all
        (`planning.distribution`).
    notes : list of str
        Further remarks.
    no_call : str
        Why the pipeline cannot run in one call; empty where it can.
    before : dict of str to float
        Seconds of the stages before counting.
    in_process : bool
        Whether tasks are calls within one process, without a scheduler.
    kernel : str
        The kernel that counts.
    """

    plan: Plan
    network: Network
    probes: int
    estimate: str
    seconds: dict[str, float]
    rates: Rates
    call_seconds: float
    task_seconds: float
    notes: list[str] = field(default_factory=list)
    no_call: str = ""
    before: dict[str, float] = field(default_factory=dict)
    in_process: bool = False
    kernel: str = ""
    _width = 10

    @property
    def whole_seconds(self) -> float:
        """Predicted seconds from the source to the number of triangles, as planned."""
        return sum(self.before.values()) + self.seconds["predicted"]

    @property
    def bound(self) -> str:
        """What takes most of these seconds, in words."""
        name, seconds, figures = self._slowest()
        return f"{name}, {in_words(seconds)} of it{figures}"

    @property
    def _bottleneck(self) -> str:
        """The same without figures."""
        name, seconds, _ = self._slowest()
        return name if seconds < 1 else f"{name}, {in_words(seconds)} of it"

    def _slowest(self) -> tuple[str, float, str]:
        """What takes most of the predicted seconds: in words, its seconds, and figures."""
        parts, plan, rates, read_seconds = self.seconds, self.plan, self.rates, self.before.get("read", 0.0)
        scope = f" on each of {plan.workers:,} workers" if plan.workers > 1 else ""
        division = f", shared by {plan.workers:,} workers" if plan.workers > 1 else ""
        tasks = f"{plural(plan.tasks, 'task')} of {1000 * rates.overhead:.3g} ms, so fewer splits are faster"
        traffic = f"{format_size(self.network.largest)} at {format_size(rates.network)} a second"
        phases = [
            ("counting", parts["count"], f": {plural(self.probes, 'probe')} and the visits to edges{division}"),
            (self._submits, parts["scheduler"], f": {tasks}"),
            ("the network", parts["network"], f": a worker receives up to {traffic}"),
            ("reading the source", read_seconds, f", at {format_size(rates.read)} a second{scope}"),
            (
                "preparing the graph",
                sum(self.before.values()) - read_seconds,
                f", at {rates.rows:.3g} rows a second{scope}",
            ),
        ]
        return max(phases, key=itemgetter(1))

    @property
    def limits(self) -> list[str]:
        """What does not fit, or is near its limit; the most important first."""
        plan, share = self.plan, self.plan.bytes_per_task / max(1, self.plan.memory)
        excess = plan.workers - plan.tasks
        bounds = {
            re.split(r" *[;(]", plan.why)[0]: not plan.fits,
            f"the largest task takes {100 * share:.0f} % of the memory": plan.fits and share >= NEAR,
            f"vertices are too many to number at once: {plan.shards:,} shards": plan.shards > 1,
            "only the kernel with the smallest tables fits": plan.lean,
            f"{plan.tasks:,} tasks are near the {MAX_TASKS:,} of a scheduler": plan.tasks >= NEAR * MAX_TASKS,
            f"n is the largest, {MAX_PARTS}": plan.parts >= MAX_PARTS,
            f"{excess:,} of {plan.workers:,} workers have no task, for there are {plan.tasks:,}": excess > 0,
        }
        return [text for text, is_exceeded in bounds.items() if is_exceeded]

    @property
    def _submits(self) -> str:
        return "calling the tasks" if self.in_process else "the scheduler"

    def to_dict(self) -> dict[str, Any]:
        """The fields of the plan and of the prediction, ready for JSON."""
        seconds = {f"seconds_{name}": value for name, value in self.seconds.items()}
        return {
            **self.plan.to_dict(),
            "bytes_network": self.network.total,
            "bytes_network_worker": self.network.largest,
            "probes": self.probes,
            "probes_from": self.estimate,
            **seconds,
            "seconds_estimated": self.whole_seconds,
            "bound_by": self.bound,
            "seconds_in_one_call": self.call_seconds,
            "seconds_as_tasks": self.task_seconds,
            "rates": asdict(self.rates),
            "notes": self.notes,
        }

    def rows(self) -> Rows:
        """Return all figures as rows of (name, text) for display."""
        traffic, parts, rates = self.network, self.seconds, self.rates
        duration = f"{in_words(self.whole_seconds)}, from the source to the number"
        return [
            ("takes", duration if self.plan.fits else f"{duration}, if it fitted: it does NOT, see below"),
            ("bound by", self.bound),
            *self.plan.rows(),
            (
                "network",
                f"{plural(traffic.total, 'byte')} ({format_size(traffic.total)}), {format_size(traffic.largest)} a "
                "worker at most",
            ),
            ("probes", f"{self.probes:,}: {self.estimate}"),
            (
                "seconds",
                f"{parts['predicted']:.3g}: counting {parts['count']:.3g}, {self._submits} {parts['scheduler']:.3g} "
                f"({'both' if self.in_process else 'the larger of these'}), network {parts['network']:.3g}; without "
                "preparing the graph",
            ),
            ("from source", self._both_ways()),
            (
                "rates",
                f"a worker visits {rates.edges:.3g} edges, tests {rates.probes:.3g} elements, receives "
                f"{format_size(rates.network)}, reads {format_size(rates.read)} of files and prepares {rates.rows:.3g} "
                f"rows a second; {1000 * rates.overhead:.3g} ms a task, {1000 * rates.round_trip:.3g} ms a round trip",
            ),
            ("from", rates.source),
            *(("note", note) for note in [*self.limits, *self.notes]),
        ]

    def _both_ways(self) -> str:
        """Compare, in words, the predicted seconds of the pipeline as tasks and as one call."""
        call, tasks, workers = self.call_seconds, self.task_seconds, self.plan.workers
        if workers == 1:
            return f"{call:.3g} s, preparing the graph included"
        way = "one call" if call < tasks and not self.no_call else "tasks"
        reason = f", since {self.no_call}" if call < tasks and self.no_call else ""
        return f"{call:.3g} s in one call on one worker, {tasks:.3g} s as tasks on {workers:,}: {way}{reason}"

    def summary(self, verbose: bool = False) -> None:
        """Print six lines: time, what bounds it, graph, method, memory, and what is near its limit.

        Parameters
        ----------
        verbose : bool
            Also all figures, and the rates that they are computed from.
        """
        print(self.text(verbose))

    def text(self, verbose: bool = False) -> str:
        """Return what `summary` prints."""
        return f"{self!r}\n\n{as_text(self.rows())}" if verbose else repr(self)

    def _rows(self) -> Rows:
        plan, limits = self.plan, self.limits
        workers = f", on {plan.workers:,} workers" if plan.workers > 1 else ""
        scope = f" to each of {plan.workers:,} workers" if plan.workers > 1 else ""
        task_memory, memory = format_size(plan.bytes_per_task), format_size(plan.memory)
        verdict = ": NOT enough" if plan.bytes_per_task > plan.memory else ""
        remark = f" ({len(limits) - 1} more)" if len(limits) > 1 else ""
        return [
            ("takes", f"{in_words(self.whole_seconds)}{workers}{'' if plan.fits else ', if it could run'}"),
            ("bound by", self._bottleneck),
            ("graph", plan.graph),
            ("how", self._method),
            ("memory", f"{task_memory} needed of {memory} available{scope}{verdict}"),
            ("note", f"{limits[0]}{remark}" if limits else "nothing is near its limit"),
        ]

    @property
    def _method(self) -> str:
        """Partition and kernel in plain words."""
        plan = self.plan
        words = plan.scheme.words.format(n=plan.parts, columns=plan.scheme.columns(plan.parts))
        cut = f"{plan.partition}: {words}, " if words else f"{plan.partition}, "
        counts = kernel_of(self.kernel).words if self.kernel else ""
        kernel = f"; kernel {self.kernel}" if self.kernel else ""
        return f"{cut}{plural(plan.tasks, 'task')}{kernel}{f': {counts}' if counts else ''}"

    def __str__(self) -> str:
        return f"takes {in_words(self.whole_seconds)}, bound by {self._bottleneck}"


def predict(
    plan: Plan,
    rates: Rates,
    block_bytes: Mapping[Block, int] | None = None,
    wedges: int | None = None,
    notes: list[str] | None = None,
    worker_threads: Array | None = None,
    size: SourceSize | None = None,
    backend: str = "cpu",
    ids: Ids = "int",
    times: float = 1.0,
    in_process: bool = False,
    kernel: str = "",
) -> Prediction:
    """Predict the bytes and seconds of a plan.

    Parameters
    ----------
    plan : Plan
    rates : Rates
    block_bytes : mapping of (i, j) to int, optional
        Bytes of each block; default: all alike.
    wedges : int, optional
        Σ in(v)·out(v) of the oriented graph, where it is known.
    notes : list of str, optional
    worker_threads : array of int64, optional
        Number of the worker of each concurrent task; default: every task has a worker of its own.
    size : SourceSize, optional
        Default: one row per edge, in memory.
    backend, ids : str
        Backend of the count and type of the source's ids, for the bytes of one call.
    times : float
        The kernel's time relative to the backend's usual kernel.
    in_process : bool
        Tasks are calls within one process.
    kernel : str
        The kernel that counts, which the summary names.
    """
    size = SourceSize(plan.edges) if size is None else size
    call, tasks = (pipeline_seconds(size, number, rates) for number in (1, plan.workers))
    blocks, triples = numbered(plan)
    if block_bytes is None:
        sizes = np.full(len(blocks), plan.bytes_total / len(blocks))
    else:
        sizes = np.array([block_bytes[block] for block in blocks], dtype="float64")
    capacity = plan.memory - plan.bytes_per_task + float(triple_bytes(triples, sizes).max())
    threads = np.arange(plan.workers) if worker_threads is None else worker_threads
    if plan.scheme.replicated:
        traffic = gathered(float(sizes.sum()), threads, len(threads) if plan.edges >= ONE_PARTITION else 1)
    else:
        traffic = network(triples, sizes, plan.splits, threads, capacity)
    probes, estimate = _probes(plan.edges, wedges)
    rounds = plan.scheme.tasks(plan.parts) - plan.empty_triples
    visits = rounds * plan.edges // len(np.unique(triples[:, 0]))
    work = times * (visits / rates.edges + probes / rates.probes)
    count, scheduler = -(-plan.tasks // plan.workers) * work / plan.tasks, plan.tasks * rates.overhead
    transfer = traffic.largest / rates.network
    total = transfer + (sum if in_process else max)((count, scheduler))  # a scheduler works while the workers count
    seconds = {"count": count, "network": transfer, "scheduler": scheduler, "predicted": total}
    preparation = stage_seconds(size, plan.workers, rates)
    notes = list(notes or [])
    if times > 1:
        notes.append(f"the kernel takes about {times:g} times as long as the usual one on Kronecker graphs")
    obstacle = too_large_for_a_call(size, plan.memory, backend, ids)
    return Prediction(
        plan, traffic, probes, estimate, seconds, rates, call, tasks, notes, obstacle, preparation, in_process, kernel
    )


def in_words(seconds: float) -> str:
    """A duration as people say it: "about 3 minutes"."""
    if seconds < 1:
        return "less than a second"
    units = (("day", 86400), ("hour", 3600), ("minute", 60))
    unit, length = next((entry for entry in units if seconds >= 1.95 * entry[1]), ("second", 1))
    return f"about {plural(round(seconds / length), unit, f'{unit}s')}"


def _probes(edges: int, wedges: int | None) -> tuple[int, str]:
    """Estimate the probes of a count; return also how they were estimated."""
    if wedges is not None:
        estimate = f"{PROBES_PER_WEDGE} of {plural(wedges, 'wedge')}, as in Kronecker graphs"
        return int(PROBES_PER_WEDGE * wedges), estimate
    probes = probes_of(edges)
    mean = probes / max(1, edges)
    return probes, f"{mean:.3g} an edge, as in a Kronecker graph; give the wedges where they are known"


def work_of_triples(plan: Plan, sizes: Sizes) -> list[float]:
    """Planned work of each block triple, in probes: the expected ones, and visits to index edges at their price.

    An index edge is expected to have as many wedges as the stream block's mean row has entries. The sizes are those of
    the plan's blocks.
    """
    rates = RATES["cpu"]
    index, _, stream = plan.scheme.triples(plan.parts).T
    edges, rows = sizes.edges.ravel(), sizes.rows.ravel()
    wedges = edges[stream] / np.maximum(1, rows[stream])
    work: list[float] = (edges[index] * (rates.probes / rates.edges + PROBES_PER_WEDGE * wedges)).tolist()
    return work


def network(triples: Array, block_bytes: Any, splits: int, worker_threads: Array, capacity: float = inf) -> Network:
    """Predict the bytes of blocks that each worker receives from others.

    Parameters
    ----------
    triples : array of int64, shape (triples, 3)
        Numbers of each triple's three blocks.
    block_bytes : array, shape (blocks,)
    splits : int
        Tasks per triple.
    worker_threads : array of int64
        Number of the worker of each concurrent task.
    capacity : float
        Bytes that a worker has per thread for blocks, built and received.
    """
    worker, block = needed(triples, splits, worker_threads)
    home = homes(worker, block, block_bytes)
    is_remote, number = home[block] != worker, 1 + int(worker_threads.max())
    received_bytes = np.bincount(worker[is_remote], block_bytes[block[is_remote]], number)
    built_bytes = np.bincount(home[home >= 0], block_bytes[home >= 0], number)
    capacities = capacity * np.bincount(worker_threads, minlength=number) - built_bytes
    sizes, tasks = np.asarray(block_bytes).tolist(), len(triples) * splits
    for narrow_worker in np.flatnonzero((received_bytes > capacities) & (received_bytes > 0)).tolist():
        # This worker takes its tasks in order, and cannot keep all blocks that it needs again.
        copies = ReplicaCache(sizes, np.flatnonzero(home == narrow_worker).tolist(), float(capacities[narrow_worker]))
        received_bytes[narrow_worker] = 0.0
        for thread in np.flatnonzero(worker_threads == narrow_worker).tolist():
            begin, end = (-(-bound * tasks // len(worker_threads)) for bound in (thread, thread + 1))
            for blocks in triples[begin // splits : -(-end // splits)].tolist() if begin < end else ():
                fetches, _ = copies.take(blocks)
                copies.give_back(blocks)
                received_bytes[narrow_worker] += sum(sizes[block] for block in fetches)
    return Network(round(float(received_bytes.sum())), round(float(received_bytes.max(initial=0))))


def gathered(block_bytes: float, worker_threads: Array, slabs: int) -> Network:
    """Predict the bytes that workers receive where each stacks a single block from its slabs.

    `worker_threads` has the number of the worker of each concurrent task. The slabs are of about equal size, one per
    thread, or a single one.
    """
    workers, threads = np.unique(worker_threads, return_counts=True)
    share = threads.min() / len(worker_threads) if slabs > 1 or len(workers) == 1 else 0.0
    return Network(round((len(workers) - 1) * block_bytes), round((1 - share) * block_bytes))
