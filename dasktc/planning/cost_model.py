"""Predicts what a plan costs before anything runs: bytes over the network, and seconds at stated rates.

Placement is that of `planning.placement`: task t of N, in the order of `counting.tasks.jobs`, on worker t·W // N. A
worker fetches every block that its tasks need, unless it built it, and one worker of those that need a block builds it:
a block that w workers need is sent w - 1 times, and again where a worker lacked memory to keep it until it needs it
again. Tasks that an idle worker takes over from a slower one come on top. A graph that is one block (`whole`, `edges`)
is built in slabs, one a thread: each worker receives those of the others, and stacks the block by itself.

Time, all workers alike:

    counting   ceil(tasks / workers) · (edge visits / rate_edges + probes / rate_probes) / tasks
    network    bytes that the worker receives which receives most / rate_network
    scheduler  tasks · overhead
    seconds    network + the larger of counting and scheduler

A triple's index edges are visited once: E for a whole graph, n·E for `hash2d` (TRUST, section 5.3). Preparing the
graph is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from dasktc.options import format_size, real_number
from dasktc.planning.memory_model import triple_bytes
from dasktc.planning.placement import ONE_PARTITION, ReplicaCache, homes, needed, numbered
from dasktc.planning.plan import Plan
from dasktc.planning.schemes import Block

__all__ = ["RATES", "Network", "Prediction", "Rates", "gathered", "network", "predict"]

Array = np.ndarray[Any, np.dtype[np.int64]]

PROBES_PER_EDGE, OF_EDGES, GROWTH = 78, 15_702_423, 0.256
"""Of the hub kernel on the Kronecker graph of scale 20, and the power of |E| with which they grow.

That is 26, 78 and 160 at scales 14, 20 and 24, as measured; a random graph has 10 and fewer.
"""
PROBES_PER_WEDGE = 0.28
"""Likewise: 0.42 at scale 14; 0.9 and more on random graphs, where rows are short and visits are what counts."""


@dataclass(frozen=True)
class Rates:
    """What one worker does in a second.

    Attributes
    ----------
    edges : float
        Index edges visited.
    probes : float
        Streamed elements tested.
    network : float
        Bytes received.
    overhead : float
        The scheduler's seconds a task.
    source : str
        Where the figures come from.
    """

    edges: float
    probes: float
    network: float
    overhead: float
    source: str

    def changed(self, **given: float | None) -> Rates:
        """Replace those that are given.

        Raises
        ------
        InputError
            A rate is not above 0, or the overhead is below 0.
        """
        chosen = {name: value for name, value in given.items() if value is not None}
        for name, value in chosen.items():
            option = name if name == "overhead" else f"rate-{name}"
            chosen[name] = real_number(option, value, 0, above=name != "overhead")
        named = ", ".join(chosen)
        return replace(self, **chosen, source=f"{self.source}; {named} as given") if chosen else self


RATES = {
    "cpu": Rates(
        edges=7e7,
        probes=5e9,
        network=1.1e9,
        overhead=0.002,
        source="kernel hub on one core of an AMD EPYC: Kronecker graphs of scale 14 to 20, random graphs, a torus; "
        "TCP; 1.8 to 4.2 ms a task on a busy machine",
    ),
    "cuda": Rates(
        edges=2e10,
        probes=8.3e11,
        network=1.1e9,
        overhead=0.002,
        source="kernel hub on one H200: Kronecker graphs of scale 20 to 24, a random graph; TCP (UCX between two GPUs "
        "of a host: 45e9); 1.8 to 4.2 ms a task on a busy machine",
    ),
}
"""As measured. The two terms of counting make 0.5 to 3 times what single graphs took on a core, 0.9 to 3 on an H200:
most for a torus and for what caches hold, least for large random graphs."""


@dataclass(frozen=True)
class Network:
    """Bytes of blocks that travel.

    Attributes
    ----------
    total : int
        By all workers together.
    largest : int
        By the one that receives most.
    """

    total: int
    largest: int


@dataclass(frozen=True)
class Prediction:
    """A plan, and what it will take.

    Attributes
    ----------
    plan : Plan
    network : Network
    probes : int
        Estimated.
    estimate : str
        How.
    seconds : dict of str to float
        Of counting, network and scheduler, and predicted.
    rates : Rates
    notes : list of str
        What else should be known.
    """

    plan: Plan
    network: Network
    probes: int
    estimate: str
    seconds: dict[str, float]
    rates: Rates
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The plan's fields and these, ready for JSON."""
        seconds = {f"seconds_{name}": value for name, value in self.seconds.items()}
        return {
            **self.plan.to_dict(),
            "bytes_network": self.network.total,
            "bytes_network_worker": self.network.largest,
            "probes": self.probes,
            "probes_from": self.estimate,
            **seconds,
            "rates": asdict(self.rates),
            "notes": self.notes,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Rows of (name, text) for people."""
        received, parts, rates = self.network, self.seconds, self.rates
        return [
            *self.plan.rows(),
            (
                "network",
                f"{received.total:,} bytes ({format_size(received.total)}), {format_size(received.largest)} a worker "
                "at most",
            ),
            ("probes", f"{self.probes:,}: {self.estimate}"),
            (
                "seconds",
                f"{parts['predicted']:.3g}: counting {parts['count']:.3g}, scheduler {parts['scheduler']:.3g} (the "
                f"larger of these), network {parts['network']:.3g}; without preparing the graph",
            ),
            (
                "rates",
                f"a worker visits {rates.edges:.3g} edges, tests {rates.probes:.3g} elements, receives "
                f"{format_size(rates.network)} a second; {1000 * rates.overhead:.3g} ms a task",
            ),
            ("from", rates.source),
            *(("note", note) for note in self.notes),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name:<14}{text}" for name, text in self.rows())


def predict(
    plan: Plan,
    rates: Rates,
    block_bytes: Mapping[Block, int] | None = None,
    wedges: int | None = None,
    notes: list[str] | None = None,
    worker_threads: Array | None = None,
) -> Prediction:
    """Say what a plan will take.

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
        Number of the worker that each task at a time runs on; default: every one has its own.

    Returns
    -------
    Prediction
    """
    blocks, triples = numbered(plan)
    if block_bytes is None:
        sizes = np.full(len(blocks), plan.bytes_total / len(blocks))
    else:
        sizes = np.array([block_bytes[block] for block in blocks], dtype="float64")
    capacity = plan.memory - plan.bytes_per_task + float(triple_bytes(triples, sizes).max())
    threads = np.arange(plan.workers) if worker_threads is None else worker_threads
    if plan.scheme.replicated:
        received = gathered(float(sizes.sum()), threads, len(threads) if plan.edges >= ONE_PARTITION else 1)
    else:
        received = network(triples, sizes, plan.splits, threads, capacity)
    probes, estimate = _probes(plan.edges, wedges)
    visits = len(triples) * plan.edges // len(np.unique(triples[:, 0]))
    seconds = _seconds(plan, rates, visits, probes, received)
    return Prediction(plan, received, probes, estimate, seconds, rates, notes or [])


def _probes(edges: int, wedges: int | None) -> tuple[int, str]:
    """The probes, and how they are estimated."""
    if wedges is not None:
        return int(PROBES_PER_WEDGE * wedges), f"{PROBES_PER_WEDGE} of {wedges:,} wedges, as in Kronecker graphs"
    each = PROBES_PER_EDGE * (edges / OF_EDGES) ** GROWTH
    return int(each * edges), f"{each:.3g} an edge, as in a Kronecker graph; name --wedges where they are known"


def network(triples: Array, block_bytes: Any, splits: int, worker_threads: Array, capacity: float = inf) -> Network:
    """Bytes that the workers receive.

    Parameters
    ----------
    triples : array of int64, shape (triples, 3)
        Numbers of the three blocks of each.
    block_bytes : array, shape (blocks,)
    splits : int
        Tasks of each triple.
    worker_threads : array of int64
        Number of the worker that each task at a time runs on.
    capacity : float
        Bytes that a worker has for blocks, built and received, for each of its threads.
    """
    worker, block = needed(triples, splits, worker_threads)
    home = homes(worker, block, block_bytes)
    comes, number = home[block] != worker, 1 + int(worker_threads.max())
    each = np.bincount(worker[comes], block_bytes[block[comes]], number)
    left = capacity * np.bincount(worker_threads, minlength=number) - np.bincount(
        home[home >= 0], block_bytes[home >= 0], number
    )
    sizes = np.asarray(block_bytes).tolist()
    for tight in np.flatnonzero((each > left) & (each > 0)).tolist():
        copies = ReplicaCache(sizes, np.flatnonzero(home == tight).tolist(), float(left[tight]))
        each[tight] = _received(
            copies, triples, splits, np.flatnonzero(worker_threads == tight), len(worker_threads), sizes
        )
    return Network(round(float(each.sum())), round(float(each.max(initial=0))))


def gathered(block_bytes: float, worker_threads: Array, slabs: int) -> Network:
    """Bytes that the workers receive of one block which each puts together from its slabs.

    Parameters
    ----------
    block_bytes : float
    worker_threads : array of int64
        Number of the worker that each task at a time runs on.
    slabs : int
        Of about equal size: one a thread, or one in all.
    """
    workers, threads = np.unique(worker_threads, return_counts=True)
    built = threads.min() / len(worker_threads) if slabs > 1 or len(workers) == 1 else 0.0
    return Network(round((len(workers) - 1) * block_bytes), round((1 - built) * block_bytes))


def _received(
    copies: ReplicaCache, triples: Array, splits: int, own: Array, worker_threads: int, sizes: list[float]
) -> float:
    """Bytes that a worker receives which cannot keep all that it needs again: it takes its tasks in order."""
    tasks, came = len(triples) * splits, 0.0
    for thread in own.tolist():
        begin, end = (-(-bound * tasks // worker_threads) for bound in (thread, thread + 1))
        for blocks in triples[begin // splits : -(-end // splits)].tolist() if begin < end else ():
            come, _ = copies.take(blocks)
            copies.give_back(blocks)
            came += sum(sizes[block] for block in come)
    return came


def _seconds(plan: Plan, rates: Rates, visits: int, probes: int, received: Network) -> dict[str, float]:
    work = visits / rates.edges + probes / rates.probes
    parts = {
        "count": -(-plan.tasks // plan.workers) * work / plan.tasks,
        "network": received.largest / rates.network,
        "scheduler": plan.tasks * rates.overhead,
    }
    return parts | {"predicted": parts["network"] + max(parts["count"], parts["scheduler"])}
