"""Counts a prepared graph: runs its counting tasks, checks their reports, and adds up their counts.

These are the last stages of a count; `dasktc.pipeline.prepare` runs the earlier ones.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, nullcontext

from dasktc.counting.checkpoint import fingerprint, opened
from dasktc.counting.context import CountingContext
from dasktc.counting.result import TriangleCount
from dasktc.counting.statistics import CountStatistics
from dasktc.counting.tasks import Job, Record, add_up, check, count_jobs, jobs, verify_records
from dasktc.counting.work import Meter
from dasktc.errors import CountError
from dasktc.executors.dask.progress import tell_scheduler
from dasktc.executors.progress.tracker import Tracker, tracker_of
from dasktc.options import CountOptions
from dasktc.saved.folder import MANIFEST, damaged, joined
from dasktc.wording import plural

__all__ = ["count"]


def count(graph: CountingContext, options: CountOptions | None = None) -> TriangleCount:
    """Count the triangles of a prepared graph; errors are those of `Graph.triangle_count`."""
    options = CountOptions() if options is None else options
    start, report, plan = time.perf_counter(), tracker_of(options.progress), graph.plan
    tell_scheduler(report, graph.executor)
    graph.executor.store.set_task_memory(plan.bytes_per_task, plan.memory)
    work = jobs(plan, graph.options.chosen_kernel, graph.options.chosen_backend)
    # 7. Count: one task per block triple and split.
    records, resumed_count = _run(graph, work, options.checkpoint, report)
    end = time.perf_counter()
    # 8. Check and add up.
    check(records, plan, graph.prepared.wedges)
    report("sum", 0, 1)
    total = add_up(graph.executor, records, graph.tuning.batch)
    verified_count, seconds = 0, {"count": end - start}
    if options.verify:
        report("verify", 0, 1)
        verify_start = time.perf_counter()
        verified_count = verify_records(graph.executor, graph.blocks, records, options.verify, options.seed)
        seconds["verify"] = time.perf_counter() - verify_start
    stats = CountStatistics.of(
        records, total, plan, len(graph.executor.worker_threads), end - start, verified_count, resumed_count
    )
    return _result(graph, sorted(records), total.triangles, stats, seconds, start)


def _run(
    graph: CountingContext, work: list[Job], folder: str | os.PathLike[str] | None, report: Tracker
) -> tuple[list[Record], int]:
    """Run the tasks that are not in the checkpoint; return all records and the number that the checkpoint had."""
    folder_context = nullcontext() if folder is None else opened(folder, fingerprint(graph), work)
    with folder_context as checkpoint:
        records = [] if checkpoint is None else list(checkpoint.records.values())
        resumed_count = len(records)
        meter = Meter(graph, work, records, report)
        report("count", resumed_count, len(work))
        remainder = work if checkpoint is None else [job for job in work if job not in checkpoint.records]
        tasks = count_jobs(graph.executor, graph.blocks, remainder)
        with report.watching(graph.executor), closing(tasks) as task_records:  # stops all tasks, however the block ends
            for record in task_records:
                records.append(record)
                meter.counted(record)
                if checkpoint is not None:
                    checkpoint.add(record)
                report("count", len(records), len(work))
    return records, resumed_count


def _result(
    graph: CountingContext,
    records: list[Record],
    triangles: int,
    stats: CountStatistics,
    seconds: dict[str, float],
    start: float,
) -> TriangleCount:
    expected = graph.prepared.source.triangles
    if expected is not None and triangles != expected:
        if folder := graph.prepared.source.folder:
            contradiction = f"it says {plural(expected, 'triangle')}, but {triangles:,} were counted"
            raise damaged(joined(folder, MANIFEST), contradiction)
        raise CountError(
            f"{plural(triangles, 'triangle')} counted, but {expected:,} are known for {graph.prepared.source.name}: "
            "the source, the options that read it, or the count is wrong; check the first two; otherwise report it "
            "with the output of `dasktc info`"
        )
    stage_seconds = graph.prepared.seconds
    return TriangleCount(
        triangles=triangles,
        vertices=graph.vertices,
        edges=graph.edges,
        loops_dropped=graph.prepared.loops,
        duplicates_dropped=graph.prepared.rows - graph.prepared.loops - graph.edges,
        read=graph.prepared.source.read,
        backend=graph.options.chosen_backend,
        workers=len(graph.executor.worker_threads),
        kernel=graph.options.chosen_kernel,
        reorder=graph.options.chosen_reorder,
        plan=graph.plan,
        seconds={**stage_seconds, **seconds, "total": sum(stage_seconds.values()) + time.perf_counter() - start},
        stats=stats,
        _records=records,
    )
