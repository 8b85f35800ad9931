"""Counting tasks, one per block triple and split; their counts are added up and checked.

Each task reports the wedges that it handled, Σ |stream.row(v)| over its index edges. Their sum must be Σ in(v)·out(v)
of the oriented graph, or of LSTC's parts with their proxies, computed from degrees alone, so lost index or stream edges
and wrong splits are detected. Lost table edges are detected earlier: edges are counted when blocks are built, and a
task refuses blocks of another triple.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import nan
from typing import TypeVar

from dasktc.backends import ON_DEVICE, get_backend
from dasktc.backends.cpu.splits import halves
from dasktc.backends.csr import BlockTask, OrientedCSR, TaskCount
from dasktc.counting.tuning import TUNING
from dasktc.errors import CountError, InputError
from dasktc.executors.base import Executor
from dasktc.executors.process.usage import this_process
from dasktc.options import format_size
from dasktc.pipeline.build_blocks import Blocks
from dasktc.planning.plan import Plan
from dasktc.planning.schemes import Triple
from dasktc.registry import KERNELS, unsorted_kernels
from dasktc.wording import advice, plural

__all__ = [
    "Job", "Record", "add_up", "check", "count_jobs", "in_halves", "jobs", "refuse_unless", "task_of", "verify_records",
]  # fmt: skip

T = TypeVar("T")
_log = logging.getLogger("dasktc")
GOLDEN_RATIO = (5**0.5 - 1) / 2


@dataclass(frozen=True, order=True)
class Job:
    """A counting task described by names: what a worker needs besides its three blocks."""

    triple: Triple
    split: int
    splits: int
    kernel: str
    backend: str
    cut: str = "rows"
    """{"rows", "edges"}. How the index block is split."""

    def __str__(self) -> str:
        return f"{self.triple}, split {self.split} of {self.splits}"

    @property
    def label(self) -> tuple[tuple[int, int, int], int]:
        """Label for its Dask key: the parts of the vertices (i, k, j), and the split."""
        return (*self.triple.index, self.triple.table[1]), self.split


@dataclass(frozen=True, order=True)
class Record:
    """The report of one counting task."""

    job: Job
    count: TaskCount
    worker: str
    """Host and process that ran it."""
    began: float = field(default=nan, compare=False)
    ended: float = field(default=nan, compare=False)
    """Seconds since the epoch by that host's clock; nan for a task of an earlier run."""


def jobs(plan: Plan, kernel: str, backend: str) -> list[Job]:
    """List the plan's counting tasks, with those for one worker next to each other."""
    orders: dict[int, list[int]] = {}
    work = []
    for triple, splits in plan.tasks_of_triples():
        if splits not in orders:
            orders[splits] = sorted(range(splits), key=partial(_place, plan.workers))
        work += [Job(triple, split, splits, kernel, backend, plan.cut) for split in orders[splits]]
    return work


def _place(workers: int, split: int) -> tuple[int, float]:
    """Sort key of a split: its worker, and when it is that split's turn there.

    Splits are assigned to workers forwards, backwards, backwards, forwards: errors in their estimated work that rise,
    fall or curve from the first split to the last then add up to the same for each worker. A worker's first turns are
    always spread evenly over all of them: the time of the first tasks then predicts the rest, although kernel lstc, for
    one, takes three times as long for the first rows of Kronecker 22 as for the last.
    """
    turn, worker = divmod(split, workers)
    return workers - 1 - worker if turn % 4 in (1, 2) else worker, turn * GOLDEN_RATIO % 1.0


def count_jobs(executor: Executor, blocks: Blocks, work: list[Job]) -> Generator[Record]:
    """Run counting tasks and yield their records as they complete."""
    return executor.map_unordered(
        "count", _count, ((job, *(blocks[place] for place in job.triple.places)) for job in work)
    )


def _count(job: Job, index: OrientedCSR, table: OrientedCSR, stream: OrientedCSR) -> Record:
    start = time.time()
    count = _counted(task_of(job, index, table, stream), job, job.kernel)
    return Record(job, count, this_process(), start, time.time())


def _counted(task: BlockTask, job: Job, kernel: str) -> TaskCount:
    if not task.sorted_rows and KERNELS[job.backend][kernel].sorted_rows:
        raise CountError(
            f"{job}: kernel {kernel} needs rows in ascending order, but its blocks have unsorted rows: count with "
            f"{' or '.join(advice(kernel=name) for name in unsorted_kernels(job.backend))}"
        )
    return _sum(list(in_halves(lambda part: get_backend(job.backend).count(part, kernel), task, job)))


def in_halves(function: Callable[[BlockTask], T], task: BlockTask, job: Job) -> Iterator[T]:
    """Call a function of a task, and yield its result; if memory runs out, halve the task, repeatedly.

    The results of the parts come one after another, and none is kept. If there is not enough memory for a single row,
    it raises CountError, with the job's name.
    """
    try:
        result = function(task)
    except MemoryError as error:
        reason = " ".join(str(error).split()) or type(error).__name__
    else:
        yield result
        return
    # Only here have the failed calls been unwound, so that their allocations are free.
    try:
        parts = halves(task, get_backend(job.backend).array)
    except MemoryError:  # not enough memory to find the middle
        parts = []
    if not parts:
        blocks = {id(block): block for block in (task.index, task.table, task.stream)}
        raise CountError(
            f"{job}: {_rows(task)}, of {plural(task.index.edges, 'edge')}, beside blocks of "
            f"{format_size(sum(block.nbytes for block in blocks.values()))}, does not fit the free memory ({reason}): "
            "something else uses it, or blocks are too large; free memory, give "
            f"{advice('memory')}, or more parts with {advice('parts')}"
        )
    _log.info("%s: out of memory (%s), cut in two: %s and %s", job, reason, *map(_rows, parts))
    for part in parts:
        yield from in_halves(function, part, job)


def _rows(task: BlockTask) -> str:
    """Name the index rows of a part of a task."""
    if task.rows is None:
        return f"rows of split {task.split} of {task.splits}"
    first, end = task.rows
    return f"row {first:,} alone" if end - first == 1 else f"rows {first:,} to {end - 1:,}"


def task_of(job: Job, index: OrientedCSR, table: OrientedCSR, stream: OrientedCSR) -> BlockTask:
    """Make the counting task of a job from its three blocks; refuse (CountError) those of another triple."""
    places = tuple(block.place for block in (index, table, stream))
    if places != job.triple.places:
        raise CountError(f"blocks {places} came for {job.triple}: they were mixed up; run again, and report this")
    if job.cut == "edges":
        begin, end = (index.edges * k // job.splits for k in (job.split, job.split + 1))
        return BlockTask(index.edge_range(begin, end), table, stream, cut_for=job.kernel)
    return BlockTask(index, table, stream, job.split, job.splits, job.kernel, dealt=job.backend in ON_DEVICE)


def check(records: list[Record], plan: Plan, wedges: int) -> None:
    """Refuse (CountError) a count whose tasks did not handle every wedge, Σ in(v)·out(v), exactly once.

    A task is missing or was counted twice, or the wedges differ.
    """
    job_count = len({record.job for record in records})
    if not len(records) == job_count == plan.tasks:
        raise CountError(
            f"{len(records):,} counting tasks reported, {job_count:,} of them different, but {plan.tasks:,} planned: "
            "results were lost or repeated; run again, and report this with the output of `dasktc info`"
        )
    total = sum(record.count.wedges for record in records)
    if total != wedges:
        raise CountError(
            f"the counting tasks handled {plural(total, 'wedge')}, but the degrees give {wedges:,}: edges were lost "
            "or repeated on the way to the blocks; run again, and report this with the output of `dasktc info`"
        )


def refuse_unless(true: bool, fact: str, folder: str = "") -> None:
    """Refuse results that contradict each other (CountError), or the folder whose copies of edges do (InputError)."""
    if not true:
        if folder:
            raise InputError(
                f"{folder} is damaged: {fact}, because its parts do not have the same edges; fetch it again, or save "
                "the graph again"
            )
        raise CountError(f"{fact}: some were lost or repeated; run again, and report this with `dasktc info`")


def add_up(executor: Executor, records: list[Record], batch: int = TUNING.batch) -> TaskCount:
    """Add up the counts of the tasks; more than `batch` counts are first added up in batches on the workers.

    There is at least one record. The collisions of the sum are those of the longest bucket.
    """
    counts = [record.count for record in records]
    if len(counts) <= batch:
        return _sum(counts)
    batches = [counts[first : first + batch] for first in range(0, len(counts), batch)]
    return _sum(executor.gather([executor.submit("sum", _sum, part) for part in batches]))


def _sum(counts: list[TaskCount]) -> TaskCount:
    triangles, wedges, probes, collisions, seconds = zip(*counts, strict=True)
    return TaskCount(sum(triangles), sum(wedges), sum(probes), max(collisions), sum(seconds))


def verify_records(executor: Executor, blocks: Blocks, records: list[Record], share: float, seed: int) -> int:
    """Count a random share of the tasks again with another kernel, and compute their probes from row lengths.

    The share is between 0 and 1, chosen with the seed; at least one task is verified. Return their number. If a task's
    triangles, wedges or probes differ, it raises CountError, with the block triple's name.
    """
    sample = sorted(random.Random(seed).sample(sorted(records), max(1, round(share * len(records)))))
    calls = ((record, *(blocks[place] for place in record.job.triple.places)) for record in sample)
    for record, recount, probes, reference in executor.map_unordered("verify", _verify, calls):
        count, job = record.count, record.job
        if (recount.triangles, recount.wedges, probes) != (count.triangles, count.wedges, count.probes):
            raise CountError(
                f"{job}, reported {plural(count.triangles, 'triangle')}, {plural(count.wedges, 'wedge')} and "
                f"{plural(count.probes, 'probe')}, verification found {recount.triangles:,}, {recount.wedges:,} and "
                f"{probes:,}: kernel {job.kernel} is wrong there; count with {advice(kernel=reference)}, and report "
                "this"
            )
    return len(sample)


def _verify(
    record: Record, index: OrientedCSR, table: OrientedCSR, stream: OrientedCSR
) -> tuple[Record, TaskCount, int, str]:
    job = record.job
    task, backend = task_of(job, index, table, stream), get_backend(job.backend)
    # The backend's plain kernel, or the first that counts unsorted rows; the second one if the first has counted.
    standard, alternative = backend.references if task.sorted_rows else unsorted_kernels(job.backend)[:2]
    reference = alternative if job.kernel == standard else standard
    return record, _counted(task, job, reference), backend.expected_probes(task, job.kernel), reference
