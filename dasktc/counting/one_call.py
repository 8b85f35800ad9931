"""Runs a whole count, or the preparation of a graph, as one call on one worker of a cluster.

A small graph is counted sooner by one worker that calls the stages itself than by several workers that receive a task
for each (`planning.distribution` decides which graphs are small). The call runs the same stages with a LocalExecutor,
on all threads that the worker has for tasks. If the worker dies, the call starts again on another one. While it runs,
the worker sends events about its stages on the topic "dasktc", which the client turns into progress.
"""

from __future__ import annotations

import operator
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any
from zlib import crc32

from dasktc.backends import ON_DEVICE, get_backend, lazy_backend
from dasktc.backends.calls import dask_worker, nothing_sent
from dasktc.counting.context import CountingContext
from dasktc.counting.count import count
from dasktc.counting.result import TriangleCount
from dasktc.executors.base import Executor, unchanged
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.dask.progress import name_client, subscribed, tell_scheduler, unsubscribe
from dasktc.executors.dask.worker_events import TOPIC, outbox_of
from dasktc.executors.local import LocalExecutor
from dasktc.executors.memory_budget import within_memory
from dasktc.executors.progress.tracker import Event, Progress, Tracker, tracker_of
from dasktc.executors.upstream import upstream_of
from dasktc.io.source import Source
from dasktc.options import CountOptions, Options, RunOptions
from dasktc.pipeline.build_blocks import Blocks
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.prepare import Prepared, prepare_blocks, prepare_edges
from dasktc.planning.plan import Limits

__all__ = ["count_in_one_call", "prepare_in_one_call", "threads_of_a_call"]

PREPARE = "read-canonical-orient-reorder-blocks"
"""Name of the task, made of the stages that it runs."""


@dataclass(frozen=True)
class _Call:
    """Inputs of the stages on a worker: source, options, limits, threads; run, facts and listener of its events."""

    source: Source
    options: Options
    limits: Limits | None
    run: str
    facts: Event
    threads: int = 1
    client: str | None = None

    @contextmanager
    def telling(self) -> Iterator[Tracker]:
        """Yield a tracker of the run whose events go to the scheduler and from there to the client."""
        tracker = Tracker()
        tracker.name, tracker.facts = self.run, self.facts
        # the id of a client that listens is a topic, too, which Dask clears after the client has gone
        outbox, topics = outbox_of(dask_worker()), [TOPIC, *([self.client] if self.client else ())]
        tracker.listen("scheduler", partial(outbox.add, topics))
        try:
            yield tracker
        except BaseException as error:
            tracker.close(error=" ".join(f"{type(error).__name__}: {error}".split()))
            raise
        finally:
            outbox.flush()

    def here(self) -> LocalExecutor:
        """The executor of the call."""
        return LocalExecutor(threads=self.threads, backend=lazy_backend(self.options.chosen_backend))

    def prepared(
        self, executor: Executor, tracker: Tracker, parts: list[Any], values: list[Any]
    ) -> tuple[Prepared, Blocks]:
        """Run the stages from the parts to the blocks; parts of a Dask collection get their computed partitions."""
        import dask

        filled_parts = (
            part if value is None else replace(part, upstream=dask.delayed(value, traverse=False))
            for part, value in zip(parts, values, strict=True)
        )
        source = replace(self.source, parts=tuple(filled_parts))
        prepared = prepare_edges(executor, source, self.options, tracker, self.limits)
        return prepare_blocks(executor, prepared, prepared.options, tracker)


def count_in_one_call(
    executor: DaskExecutor, source: Source, options: Options, limits: Limits, run: RunOptions, counting: CountOptions
) -> TriangleCount:
    """Read, prepare and count a graph in one call on one worker.

    Parameters
    ----------
    executor : DaskExecutor
        Keeps results in memory, because the worker enforces the budget itself.
    source : Source
    options : Options
        With the backend chosen.
    limits : Limits
        Limits of the workers.
    run : RunOptions
        Its `work_dir` and `host_memory` apply on the worker.
    counting : CountOptions
        Without a checkpoint, which needs counting tasks.

    Returns
    -------
    TriangleCount
        Planned for one task at a time.
    """
    start = time.perf_counter()
    threads = threads_of_a_call(executor)
    shares = replace(limits, workers=threads) if options.memory is None else None  # else the budget sets the limits
    with _heard(executor, counting.progress) as (tracker, handler):
        source_alone, listener = replace(source, parts=(), labels=None), executor.client.id if handler else None
        call = _Call(source_alone, options, shares, tracker.name, tracker.facts, threads, listener)
        args, home = ((run.work_dir, run.host_memory), counting.verify, counting.seed), _home_worker(executor)
        handle = executor.submit(f"{PREPARE}-count", _count, call, *_sent(executor, source, home), *args, prefer=home)
        result: TriangleCount = executor.watch(handle, handler)
    return result._replace(seconds={**result.seconds, "total": time.perf_counter() - start})


def _count(
    call: _Call, parts: list[Any], values: list[Any], places: tuple[Any, Any], verify: float, seed: int
) -> TriangleCount:
    get_backend(call.options.chosen_backend)  # first, because it holds device memory
    budget = call.options.memory, *places
    with nothing_sent(), call.telling() as tracker, within_memory(call.here(), *budget) as executor:
        prepared, blocks = call.prepared(executor, tracker, parts, values)
        graph = CountingContext(executor, prepared, blocks, prepared.options)
        result = count(graph, CountOptions(verify, seed, progress=tracker))
        tracker.close(triangles=int(result))
        return result


def prepare_in_one_call(
    executor: DaskExecutor, source: Source, options: Options, limits: Limits, progress: Progress | None
) -> tuple[Prepared, Blocks]:
    """Prepare a graph in one call on one worker, for counting tasks on all.

    Parameters
    ----------
    executor : DaskExecutor
        Keeps results in memory.
    source : Source
    options : Options
        With the backend chosen, and a scheme whose partition is pure arithmetic.
    limits : Limits
        Limits of the workers that will count.
    progress : callable, optional
    """
    with _heard(executor, progress) as (tracker, handler):
        threads, listener = threads_of_a_call(executor), executor.client.id if handler else None
        source_alone, home = replace(source, parts=(), labels=None), _home_worker(executor)
        call = _Call(source_alone, options, limits, tracker.name, tracker.facts, threads, listener)
        results = executor.submit(PREPARE, _prepare, call, *_sent(executor, source, home), prefer=home)
        head, places = executor.watch(executor.submit(PREPARE, operator.itemgetter(-1), results, prefer=home), handler)
    tracker.resume()
    tell_scheduler(tracker, executor)

    def entry(number: int) -> Any:
        return executor.submit(PREPARE, operator.getitem, results, number, prefer=home)

    vertices, *vectors = map(entry, range(4))
    blocks = {place: entry(number) for number, place in enumerate(places, 4)}
    executor.store.set_task_memory(head.plan.bytes_per_task, head.plan.memory)
    order, outward, inward = (Sharded(head.graph.order.starts, [vector]) for vector in vectors)
    graph = replace(head.graph, order=order, out_degree=outward, in_degree=inward)
    return replace(head, graph=graph, numbered=vertices, source=replace(head.source, labels=source.labels)), blocks


def _prepare(call: _Call, parts: list[Any], values: list[Any]) -> list[Any]:
    """Prepare the graph in one call: return ids, the three vertex vectors, the blocks, and last the client's facts."""
    with call.telling() as tracker:
        prepared, blocks = call.prepared(call.here(), tracker, parts, values)
        tracker.end_stages()
    graph = prepared.graph
    vectors = [vector.whole for vector in (graph.order, graph.out_degree, graph.in_degree)]
    empty = Sharded(graph.order.starts, [None])
    graph = replace(graph, order=empty, out_degree=empty, in_degree=empty)
    head = replace(prepared, graph=graph, numbered=None)
    return [prepared.vertices, *vectors, *blocks.values(), (head, list(blocks))]


def _home_worker(executor: DaskExecutor) -> str | None:
    """Pin a client's one-call runs to one worker, whose kernels are loaded and whose pool has grown."""
    workers = sorted(set(executor.worker_threads))
    return workers[crc32(executor.client.id.encode()) % len(workers)] if workers else None


def threads_of_a_call(executor: DaskExecutor) -> int:
    """Number of threads that every worker has for tasks; one if a device counts."""
    threads = Counter(executor.worker_threads)
    return 1 if executor.backend.name in ON_DEVICE else min(threads.values(), default=1)


def _sent(executor: DaskExecutor, source: Source, home: str | None) -> tuple[list[Any], list[Any]]:
    """Parts of a source, and the values that they need; rows of this process become one task result per part."""
    values, parts = upstream_of(executor, source.parts), source.parts
    handles = [
        executor.submit("read-rows", unchanged, part, prefer=home) if source.in_memory else part for part in parts
    ]
    return handles, values


@contextmanager
def _heard(executor: DaskExecutor, progress: Progress | None) -> Iterator[tuple[Tracker, Any]]:
    """Yield the tracker of a run, and a function that hands received events on to it; None if nobody watches."""
    tracker = tracker_of(progress)
    name_client(tracker, executor.client)
    if not (tracker.has_listeners or tracker.has_callback):
        yield tracker, None
        return
    events: SimpleQueue[Event] = subscribed(executor.client, tracker.name)

    def hear() -> None:
        with suppress(Empty):
            while True:
                tracker.relay(events.get_nowait())

    try:
        yield tracker, hear
        hear()
    finally:
        unsubscribe(executor.client, tracker.name)
