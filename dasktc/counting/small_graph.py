"""Counts a small graph in memory in one step on a device: a bit matrix replaces the whole pipeline.

The stages need as many launches, waits and records for a small graph as for a large one: on an H200 the 88,234 edges of
ego-Facebook take 2.4 ms, 0.2 of them in the kernel. As a bit matrix they take 0.6 ms, 0.1 of them in the kernel. If no
option prescribes how to count and the graph has few vertices, a bit matrix (`kernels/bitmatrix.cu`) replaces all
stages. The reports and checks of a count remain: the bits visited must be the sum of the squared degrees, and each
triangle is found three times.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

from dasktc.backends import get_backend
from dasktc.backends.bit_matrix import KEYS_BYTES, MOST_EDGES, MOST_VERTICES, MOST_WORDS, BitCount, SmallKeys
from dasktc.backends.csr import TaskCount
from dasktc.counting.result import TriangleCount
from dasktc.counting.statistics import CountStatistics
from dasktc.counting.tasks import Job, Record
from dasktc.errors import CountError, InputError
from dasktc.executors.base import Executor
from dasktc.executors.offers import memory_of
from dasktc.executors.process.usage import this_process
from dasktc.io.evidence import Reading
from dasktc.io.memory.device import DevicePart
from dasktc.io.source import Source
from dasktc.options import CountOptions, Options, format_size
from dasktc.pipeline.planes import answers_of
from dasktc.pipeline.prepare import silent
from dasktc.planning.plan import Plan
from dasktc.planning.schemes import Triple
from dasktc.wording import advice, option, plural

__all__ = ["KERNEL", "count_small", "forced", "refuse_other_ways", "too_large"]

KERNEL = "bitmatrix"
ONE = Job(Triple((0, 0), (0, 0), (0, 0)), 0, 1, KERNEL, "cuda")


def forced(options: Options) -> tuple[Options, bool]:
    """Return the options of a count and whether they request a bit matrix, for which `count_small` chooses the rest.

    A request with something that a bit matrix does not support is refused (InputError).
    """
    if options.kernel != KERNEL:
        return options, False
    if options.backend == "cpu":
        raise InputError(
            f"backend cpu has no kernel {KERNEL}: hub, its default, already intersects rows as bits; leave "
            f"{option('kernel')} out, or take {advice(backend='cuda')}"
        )
    if conflicts := _prescriptions(options):
        raise _refused(f"{' and '.join(conflicts)} {'is' if len(conflicts) == 1 else 'are'} given")
    return replace(options, kernel="auto", backend="cuda"), True


def refuse_other_ways(executor: Executor, source: Source, counting: CountOptions, files: bool) -> None:
    """Refuse, with figures, a request for a bit matrix where the stages would count."""
    if obstacle := _obstacle(executor, source, counting, files):
        raise _refused(obstacle)


def too_large(source: Source) -> InputError:
    """Make the error for a graph with too many vertices for the requested bit matrix."""
    return _refused(
        f"the {plural(_rows(source), 'row')} of {source.name} have more than {MOST_VERTICES:,} ids, or more than "
        f"{MOST_WORDS:,} words of 64 bits of a matrix are read for them"
    )


def _refused(fact: str) -> InputError:
    return InputError(
        f"kernel {KERNEL} is asked for, but {fact}: it counts a small table of ids in memory, on a GPU of this "
        "process, in one step; leave out the kernel, or what it does not support"
    )


def count_small(
    executor: Executor, source: Source, options: Options, counting: CountOptions
) -> tuple[TriangleCount | None, Source]:
    """Count a source's triangles as a bit matrix; return no result if the stages have to count.

    The stages count if an option prescribes how to (a kernel, a partition, an order, a budget, a checkpoint,
    verification), if tasks run on workers, or if the source is not in memory or has too many vertices or edges. They
    take the source that is returned: columns already copied to the device stay there. The options have the backend
    chosen. If a check fails, there is no result but a CountError.
    """
    if options.kernel != "auto" or _prescriptions(options) or _obstacle(executor, source, counting):
        return None, source
    bit_matrix, rows = get_backend(options.chosen_backend).bit_matrix, _rows(source)
    if rows > bit_matrix.most_edges:
        return None, source
    report, times = counting.progress or silent, [time.perf_counter()]
    report("read", 0, 1)
    ends = _ends(source, options.chosen_backend)
    times.append(time.perf_counter())
    if ends is None:
        return None, source
    # If their matrix does not fit, the ends that were read are the source of the usual stages.
    memory = memory_of(executor)
    keys = bit_matrix.keys(*ends) if KEYS_BYTES * rows <= memory else None
    if keys is None or keys.nbytes > memory:
        return None, replace(source, parts=(DevicePart(*ends, of=source.name, how=""),))
    times.append(time.perf_counter())
    report("count", 0, 1)
    bits = keys.count()
    times.append(time.perf_counter())
    report("count", 1, 1)
    if source.triangles not in (None, bits.triangles):
        raise CountError(
            f"{plural(bits.triangles, 'triangle')} counted, but {source.triangles:,} are known for {source.name}: the "
            "count or the source is wrong; report this with the output of `dasktc info`"
        )
    return _result(bits, keys, _plan(bits, keys, memory), times, replace(source.read, rows=rows)), source


def _prescriptions(options: Options) -> list[str]:
    """Names of the given options, beside the kernel, that say how the stages count."""
    names = [name for name in ("partition", "reorder") if getattr(options, name) != "auto"]
    return names + [name for name in ("parts", "splits", "memory") if getattr(options, name) is not None]


def _obstacle(executor: Executor, source: Source, counting: CountOptions, files: bool = False) -> str:
    """Say why the stages have to count a source, whatever options are given; empty where a bit matrix may."""
    if not answers_of(executor).in_one_memory:
        return "a client is to count"
    if counting.verify or counting.checkpoint is not None or files:
        return "verify, a checkpoint, a report or files of results are asked for"
    if source.ids != "int" or not source.parts or not all(hasattr(part, "ends") for part in source.parts):
        return f"{source.name} is no table of integers in memory"
    rows = _rows(source)
    return f"{source.name} has {plural(rows, 'row')}, above {MOST_EDGES:,}" if rows > MOST_EDGES else ""


def _rows(source: Source) -> int:
    return sum(part.rows for part in source.parts)  # type: ignore[attr-defined]


def _ends(source: Source, backend: str) -> tuple[object, object] | None:
    """Return both columns of all parts."""
    chosen_backend = get_backend(backend)
    column_pairs = [part.ends(chosen_backend) for part in source.parts]  # type: ignore[attr-defined]
    if any(ends is None for ends in column_pairs):
        return None
    if len(column_pairs) == 1:
        return column_pairs[0]  # type: ignore[no-any-return]
    src, dst = (chosen_backend.array.concatenate(columns) for columns in zip(*column_pairs, strict=True))
    return src, dst


def _plan(bits: BitCount, keys: SmallKeys, memory: int) -> Plan:
    return Plan(
        partition="whole",
        parts=1,
        splits=1,
        vertices=bits.vertices,
        edges=bits.edges,
        tasks=1,
        bytes_per_task=keys.nbytes,
        bytes_total=keys.nbytes,
        block_edges_min=bits.edges,
        block_edges_max=bits.edges,
        memory=memory,
        workers=1,
        fits=True,
        why=f"a matrix of {plural(keys.vertices, 'row')} of bits needs {format_size(keys.nbytes)} with the edges, "
        f"within the {format_size(memory)} of one worker",
        choice=f"kernel {KERNEL}: {plural(bits.vertices, 'vertex is', 'vertices are')} few, and a matrix of bits takes "
        "the place of all stages; order none: rows of bits need none",
    )


def _result(bits: BitCount, keys: SmallKeys, plan: Plan, times: list[float], reading: Reading) -> TriangleCount:
    read_seconds, prepare, count = (stop - start for start, stop in pairwise(times))
    end = time.time()
    total = TaskCount(bits.triangles, bits.wedges, bits.probes, 0, count)
    records = [Record(ONE, total, this_process(), end - count, end)]
    return TriangleCount(
        triangles=bits.triangles,
        vertices=bits.vertices,
        edges=bits.edges,
        loops_dropped=keys.loops,
        duplicates_dropped=len(keys.keys) - keys.loops - bits.edges,
        read=reading,
        backend=ONE.backend,
        workers=1,
        kernel=KERNEL,
        reorder="none",
        plan=plan,
        seconds={"read": read_seconds, "prepare": prepare, "count": count, "total": times[-1] - times[0]},
        stats=CountStatistics.of(records, total, plan, 1, count),
        _records=records,
    )
