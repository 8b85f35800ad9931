"""Decides whether a count runs as tasks on all workers, or faster as one call on one worker.

The stages' work is the same either way, but tasks share it. In return every task takes the scheduler's time, the client
waits for numbers that plans depend on, and edges travel. With W workers, R rows and S bytes of files:

    work       S / read + R / rows + index edges / edges + probes / probes
    one call   threads of a worker > 1: threading · work / threads, else work; + waits of one task
    tasks      sharing · work / W + bytes that a worker receives / network + tasks · overhead + waits · round trip

A worker receives its part of all keys in each exchange, at most two, and the other workers' parts of the graph. Small
graphs are counted faster in one call: of Kronecker graphs on four H200, those up to scale 24; on two cores, up to 16.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from dasktc.options import format_size
from dasktc.planning.rates import Rates, probes_of

__all__ = [
    "ROW_BYTES", "Distribution", "SourceSize", "choose_distribution", "pipeline_seconds", "stage_seconds",
    "too_large_for_a_call",
]  # fmt: skip

WAITS = 4
"""Number of times that the client waits for a number before it can submit the next stage."""
TASKS_A_WORKER = 12
"""Tasks per worker that prepare and count a graph that fits."""
EXCHANGED_BYTES = 2 * 8
"""Most bytes per row sent to the workers that sort them: one edge key when edges are made distinct, and one when blocks
are built, unless a range of distinct edges is a slab of the block already."""
COLUMN_BYTES = 4
ROW_BYTES = {"int": {"cpu": 48, "cuda": 40}, "text": {"cpu": 300, "cuda": 300}}
"""Peak bytes per row of the whole pipeline in one process, by type of ids and backend: 37 for Kronecker 20 from Parquet
on the CPU, plus what reading text takes."""
ROW_BYTES_ON_DEVICE = 24
"""The same for edges that a device holds or generates: 19 to 20 for Kronecker 20 to 24."""

PREPARING = {"canonical": 0.5, "orient": 0.2, "blocks": 0.3}
"""Approximate share of each stage in the time of preparing a graph: Kronecker 20 and 22 in one process."""

Kind = Literal["call", "tasks"]


class SourceSize(NamedTuple):
    """Size of a source as far as it is known before reading, on which predictions are based."""

    rows: int
    """Approximate number of rows."""
    stored: int = 0
    """Bytes of its files, decompressed; 0 where it is generated or in memory."""


@dataclass(frozen=True)
class Distribution:
    """The choice between one call and tasks, with the seconds predicted for each."""

    kind: Kind
    """One call on one worker, or tasks on all."""
    why: str
    call: float | None = None
    tasks: float | None = None
    """Predicted seconds from the source to the number; None where nothing is known of the source."""

    def __str__(self) -> str:
        way = "in one call on one worker" if self.kind == "call" else "as tasks on all workers"
        return f"{way}: {self.why}"

    def not_possible(self) -> Distribution:
        """Choose tasks instead, because one call, though predicted to be faster, is not possible."""
        reason = f"{self.why}; but results that stand in files, and blocks with proxies, are made by tasks"
        return replace(self, kind="tasks", why=reason)


def choose_distribution(
    size: SourceSize | None,
    workers: int,
    memory: int,
    rates: Rates,
    backend: str,
    ids: Literal["int", "text"] = "int",
    threads: int = 1,
) -> Distribution:
    """Choose the faster of one call and tasks, among those that fit.

    Parameters
    ----------
    size : SourceSize or None
        None where it is unknown.
    workers : int
        Concurrent calls on the cluster.
    memory : int
        Bytes that a call may take on a worker.
    rates : Rates
    backend : {"cpu", "cuda"}
    ids : {"int", "text"}
    threads : int
        Threads of a worker, all of which one call has there.
    """
    if size is None:
        return Distribution("tasks", "how many rows the source has is known when they are read")
    call, tasks = pipeline_seconds(size, 1, rates, threads), pipeline_seconds(size, workers, rates)
    if obstacle := too_large_for_a_call(size, memory, backend, ids):
        return Distribution("tasks", obstacle, call, tasks)
    if workers == threads:
        return Distribution("call", "there is one worker", call, None)
    comparison = f"{call:.2g} s predicted in one call on one worker, {tasks:.2g} s as tasks on {workers:,}"
    return Distribution("call" if call < tasks else "tasks", comparison, call, tasks)


def too_large_for_a_call(size: SourceSize, memory: int, backend: str, ids: Literal["int", "text"]) -> str:
    """Say why the whole pipeline does not fit one worker; empty where it fits."""
    is_read = size.stored > 0 or backend == "cpu" or ids == "text"
    nbytes = size.rows * (ROW_BYTES[ids][backend] if is_read else ROW_BYTES_ON_DEVICE)
    if nbytes <= memory:
        return ""
    return f"one worker would need about {format_size(nbytes)} for it, and has {format_size(memory)}"


def stage_seconds(size: SourceSize, workers: int, rates: Rates) -> dict[str, float]:
    """Predict the seconds of each stage before counting, whose work the workers share."""
    read_seconds, row_seconds = max(size.stored / rates.read, 0.2 * size.rows / rates.rows), size.rows / rates.rows
    sharing = rates.sharing if workers > 1 else 1.0
    return {"read": read_seconds / workers} | {
        name: sharing * share * row_seconds / workers for name, share in PREPARING.items()
    }


def pipeline_seconds(size: SourceSize, workers: int, rates: Rates, threads: int = 1) -> float:
    """Predict the seconds from a source to the number, on one worker (as one call) or on several (as tasks).

    `threads` are those of the worker, where there is one.
    """
    edges = size.rows
    work = size.stored / rates.read + edges / rates.rows + edges / rates.edges + probes_of(edges) / rates.probes
    if workers == 1:
        return (rates.threading * work / threads if threads > 1 else work) + rates.round_trip
    remote_share = (workers - 1) / workers
    traffic = edges * remote_share * (EXCHANGED_BYTES / workers + COLUMN_BYTES)
    scheduler = TASKS_A_WORKER * workers * rates.overhead + WAITS * rates.round_trip
    return rates.sharing * work / workers + traffic / rates.network + scheduler
