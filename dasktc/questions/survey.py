"""Surveys: every triangle once, in batches that a function of the caller summarises where the blocks are.

A survey runs the counting tasks of a graph's plan with another output, as a count does: a few in flight, on the workers
that hold their blocks, again where a worker died. A task visits its triangles in batches of bounded size
(`Backend.batches`), calls the function with the numbers and columns of each, and folds what it returns; only the
folded result of a task travels. On a GPU the questions of signs and of times, which have kernels of their own on the
CPU, are surveys (`counts_by_edges`). The wedges of all tasks are checked as in a count, and the triangles must be
as many as in every other count of the graph. With a checkpoint the results of finished tasks are kept, as a count keeps
their numbers (`counting/checkpoint.py`). After Steil et al., "TriPoll: Computing surveys of triangles in
massive-scale temporal graphs with metadata", SC'21, where a function is called with one triangle at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np

from dasktc.answers.edge_support import VISITED
from dasktc.answers.frames import backend_of
from dasktc.backends import ON_DEVICE, Backend, lazy_backend
from dasktc.backends.csr import BlockTask, OrientedCSR, TaskCount
from dasktc.backends.cuda.sizes import EDGE_BYTES, LEAST_BATCH, TRIANGLE_BYTES
from dasktc.counting.checkpoint import What, digest, fingerprint, opened
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import Job, Record, check, in_halves, jobs, task_of
from dasktc.errors import InputError, shown
from dasktc.executors.base import Fold
from dasktc.executors.dask.progress import tell_scheduler
from dasktc.executors.process.usage import this_process
from dasktc.executors.progress.tracker import tracker_of
from dasktc.options import CountOptions, format_size, refuse_beyond
from dasktc.pipeline.stages.columns import Column, Columns
from dasktc.pipeline.stages.shards import largest
from dasktc.planning.memory_model import task_bytes
from dasktc.planning.plan import Plan
from dasktc.questions.caller_function import CallerFunction
from dasktc.questions.function_identity import identity
from dasktc.questions.sums import SUM
from dasktc.questions.vertex_columns import by_side
from dasktc.wording import advice

__all__ = [
    "Batch",
    "TaskArrays",
    "Visitor",
    "batch_size",
    "counts_by_edges",
    "edge_column",
    "in_batches",
    "memory_beside",
    "on_device",
    "over_tasks",
    "sides_of_ends",
    "survey",
]

Array = Any
Batch = dict[str, Array]
"""Arrays of a batch's triangles by name."""
ROLES, PAIRS = "uvw", ("uv", "uw", "vw")
NUMBERS = ""
"""Name of the vertices' numbers, which batches have as "u", "v" and "w"."""


class TaskArrays(NamedTuple):
    """Columns of a task's vertices and edges."""

    vertices: list[list[Array]]
    """Aligned with the rows of the index, its columns, and the columns of the table; a block may have one more row,
    without edges."""
    edges: list[list[Array]]
    """Aligned with the columns of index, table and stream."""


class Visitor(Protocol):
    """What is made of the triangles of a task; it is sent with every task."""

    @property
    def fold(self) -> Fold[Any]:
        """Combines results of tasks."""

    def visit(self, task: BlockTask, arrays: TaskArrays) -> tuple[Any, int, int]:
        """Return the result of a task, and its triangles and wedges."""


@dataclass(frozen=True)
class Survey:
    """The visitor that calls a function with batches."""

    function: Callable[[Batch], Any]
    fold: Fold[Any]
    vertices: tuple[str, ...]
    edges: tuple[str, ...]
    """Names of the columns; the first one may be NUMBERS."""
    size: int
    """Most triangles of a batch."""

    def visit(self, task: BlockTask, arrays: TaskArrays) -> tuple[Any, int, int]:
        """Call the function with the triangles of a task."""
        vectors = list(arrays.vertices)
        if NUMBERS in self.vertices:  # of 32 bits where they fit
            vectors[0] = [of_role.astype("int64") for of_role in vectors[0]]
        columns, thirds = task.index.columns, task.stream.columns
        result, triangles, wedges = self.fold.start(), 0, 0
        for row, uv, uw, vw, begun in backend_of(columns).batches(task, self.size):
            wedges += begun
            if not len(row):
                continue
            batch: Batch = {}
            ends = (row, columns.take(uv), thirds.take(vw)) if vectors else ()
            for name, of_roles in zip(self.vertices, vectors, strict=True):
                batch |= {_key(name, r): of.take(at) for r, of, at in zip(ROLES, of_roles, ends, strict=True)}
            for name, values in zip(self.edges, arrays.edges, strict=True):
                batch |= {_key(name, p): of.take(at) for p, of, at in zip(PAIRS, values, (uv, uw, vw), strict=True)}
            result = self.fold.add(result, self.function(batch))
            triangles += len(row)
        return result, triangles, wedges


def _key(name: str, suffix: str) -> str:
    return f"{name}_{suffix}" if name else suffix


def survey(
    graph: CountingContext,
    function: Callable[[Batch], Any],
    columns: Sequence[str] = (),
    reduce: str | Fold[Any] = "sum",
    options: CountOptions | None = None,
) -> Any:
    """Summarise the triangles by a function of the caller; see `Graph.survey`."""
    fold = _fold(reduce)
    if not callable(function):
        raise InputError(f"function {shown(function)} cannot be called: give a function of a dict of arrays")
    graph.answers.check_functions(function, fold)
    function = CallerFunction(function)
    vertices, edges = _kept(graph, columns)
    vertices = {NUMBERS: Column("int64", None, graph.prepared.graph.order), **vertices}
    result = fold.start()
    with closing(in_batches(graph, "survey", function, fold, vertices, edges, options)) as results:
        for value in results:
            result = fold.combine([result, value])
    if result is None and fold is SUM:  # there is no triangle: the function makes a zero of its kind
        dtypes = {_key(name, role): of.dtype for name, of in vertices.items() for role in ROLES}
        dtypes |= {_key(name, pair): of.dtype for name, of in edges.items() for pair in PAIRS}
        call = _of_no_triangle, function, dtypes, lazy_backend(graph.options.chosen_backend)
        (result,) = graph.executor.gather([graph.executor.submit("survey", *call)])
    return result


def _of_no_triangle(function: Callable[[Batch], Any], dtypes: dict[str, str], backend: Backend) -> Any:
    """Return a zero of the kind that a function returns."""
    return SUM.alone(function({name: backend.array.empty(0, dtype) for name, dtype in dtypes.items()}))


def in_batches(
    graph: CountingContext,
    question: str,
    function: Callable[[Batch], Any],
    fold: Fold[Any],
    vertices: Mapping[str, Column],
    edges: Mapping[str, Column],
    options: CountOptions | None,
) -> Generator[Any]:
    """Call a function with batches of all triangles, where the blocks are, and yield each task's folded results.

    Parameters, beyond those of `over_tasks`
    ----------------------------------------
    function : callable (dict of str to array) -> object
    fold : Fold
        Of what the function returns.
    vertices, edges : mapping of str to Column
        By the names that they have in batches.
    """
    columns = [*vertices.values()], [*edges.values()]
    size, nbytes = batch_size(graph, question, *columns)
    visitor = Survey(function, fold, tuple(vertices), tuple(edges), size)
    yield from over_tasks(graph, question, visitor, *columns, nbytes, options)


def counts_by_edges(
    graph: CountingContext,
    question: str,
    visitor: Visitor,
    nbytes: int,
    function: Callable[[Batch], Any],
    columns: Mapping[str, Column],
    kinds: int,
    options: CountOptions | None,
) -> Array:
    """Count triangles of so many kinds by columns of edges: on the CPU by a visitor, on a GPU by a function of batches.

    The visitor takes `nbytes`. Returns an array of int64.
    """
    if on_device(graph):
        results = in_batches(graph, question, function, visitor.fold, {}, columns, options)
    else:
        results = over_tasks(graph, question, visitor, [], [*columns.values()], nbytes, options)
    return reduce(SUM.add, results, np.zeros(kinds, np.int64))


def batch_size(
    graph: CountingContext, question: str, vertices: list[Column], edges: list[Column], beside: int = 0
) -> tuple[int, int]:
    """Return the most triangles of a batch that fits a task's memory, and the bytes that a visit takes.

    Parameters
    ----------
    graph, question, vertices, edges
        As for `memory_beside`.
    beside : int
        Bytes of a visit beside its batch.
    """
    width = TRIANGLE_BYTES + 3 * sum(np.dtype(column.dtype).itemsize for column in [*vertices, *edges])
    if on_device(graph):
        most = graph.tuning.device_batch
        least = min(LEAST_BATCH, most)
        beside += EDGE_BYTES * -(-int(graph.prepared.sizes.edges.max()) // graph.plan.splits)
    else:
        executor, outward = graph.executor, graph.prepared.graph.out_degree
        least = max(executor.gather(outward.map(executor, question, largest)), default=0)
        most = graph.tuning.survey_batch
    _, memory = memory_beside(graph, question, vertices, edges, beside + width * (least + 1))
    size = max(least, min(most, (memory - beside) // width - 1))
    return size, beside + width * (size + 1)


def on_device(graph: CountingContext) -> bool:
    """Whether a GPU has the blocks of a graph."""
    return graph.options.chosen_backend in ON_DEVICE


def _fold(reduce: str | Fold[Any]) -> Fold[Any]:
    if isinstance(reduce, Fold) and all(map(callable, reduce)):
        return Fold(CallerFunction(reduce.start), CallerFunction(reduce.add), CallerFunction(reduce.combine))
    if not isinstance(reduce, str) or reduce != "sum":
        raise InputError(
            f"reduce={shown(reduce)} is neither 'sum' nor a dasktc.Fold of three functions: give one of these"
        )
    return SUM


def _kept(graph: CountingContext, names: Sequence[str]) -> tuple[dict[str, Column], dict[str, Column]]:
    """Return the named columns of vertices and those of edges."""
    columns = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [None]
    if not all(isinstance(name, str) for name in columns):
        raise InputError(f"columns={shown(names)} is no list of names: give one, such as columns=['time']")
    kept: Columns = graph.prepared.columns
    missing = [name for name in columns if name not in kept.vertices and name not in kept.edges]
    if missing:
        known = ", ".join([*kept.vertices, *kept.edges])
        raise InputError(
            f"the graph was prepared {f'with the columns {known}' if known else 'without columns'}: "
            f"{shown(missing[0])} is none of them; prepare it with {advice('edge_columns')} or {advice('vertices')}"
        )
    vertices, edges = ({name: of[name] for name in columns if name in of} for of in (kept.vertices, kept.edges))
    return vertices, edges


def edge_column(graph: CountingContext, name: str) -> Column:
    """Return the column of edges of a name; InputError unless the graph has it."""
    vertices, edges = _kept(graph, [name])
    if name in vertices:
        raise InputError(f"column {shown(name)} is of vertices: one of edges is asked for; prepare with edge_columns")
    return edges[name]


# tasks


def over_tasks(
    graph: CountingContext,
    question: str,
    visitor: Visitor,
    vertices: list[Column],
    edges: list[Column],
    nbytes: int,
    options: CountOptions | None = None,
) -> Generator[Any]:
    """Visit the triangles of all counting tasks, and yield each task's result as it ends.

    Parameters
    ----------
    graph : CountingContext
    question : str
        For progress and errors.
    visitor : Visitor
    vertices, edges : list of Column
    nbytes : int
        Bytes that a visit takes beside the blocks and columns.
    options : CountOptions, optional
        Progress and checkpoint.

    Raises
    ------
    InputError
        A task needs more memory than a worker has, or the checkpoint is not of this survey.
    CountError
        The tasks did not handle every wedge exactly once.
    """
    if not graph.edges:
        return
    options = CountOptions() if options is None else options
    executor, plan, blocks, report = graph.executor, graph.plan, graph.blocks, tracker_of(options.progress)
    tell_scheduler(report, executor)
    kept, _ = memory_beside(graph, question, vertices, edges, nbytes)
    executor.store.set_task_memory(kept + nbytes, plan.memory)
    work, records = jobs(plan, VISITED, graph.options.chosen_backend), list[Record]()
    sides = [by_side(graph, question, column.values) for column in vertices]
    folder, asked = options.checkpoint, (question, visitor, vertices, edges)
    folder_context = nullcontext() if folder is None else opened(folder, _asked(graph, *asked), work)
    # Results in the checkpoint come first, and their tasks are not run again.
    with folder_context as checkpoint:
        if checkpoint is not None:
            records.extend(checkpoint.records.values())
            yield from checkpoint.results()
        resumed_jobs = {record.job for record in records}
        calls = (
            (
                job,
                visitor,
                len(vertices),
                *(blocks[place] for place in job.triple.places),
                *(entries[side] for entries in sides for side in sides_of_ends(plan, job)),
                *(column.values[place] for column in edges for place in job.triple.places),
            )
            for job in work
            if job not in resumed_jobs
        )
        report(question, len(records), len(work))
        with report.watching(executor), closing(executor.map_unordered(question, _visited, calls)) as results:
            for record, result in results:
                records.append(record)
                if checkpoint is not None:
                    checkpoint.add(record, result)
                report(question, len(records), len(work))
                yield result
    check(records, plan, graph.prepared.wedges)
    graph.counted.agree(sum(record.count.triangles for record in records))


def _asked(
    graph: CountingContext, question: str, visitor: Visitor, vertices: list[Column], edges: list[Column]
) -> What:
    """Fingerprint a survey: the blocks and the plan, the function and the fold, and the values of all columns."""
    names, function, reduce = "", repr(visitor), "sum"
    if isinstance(visitor, Survey):
        names, function = ascii([*visitor.vertices, *visitor.edges]), identity(_own(visitor.function))
        reduce = reduce if visitor.fold is SUM else identity(*map(_own, visitor.fold))
    arrays = [part for column in vertices for part in column.values.parts]
    arrays += [column.values[place] for column in edges for place in sorted(column.values)]
    digests = graph.executor.gather([graph.executor.submit("fingerprint", digest, array) for array in arrays])
    dtypes = [column.dtype for column in [*vertices, *edges]]
    columns = hashlib.blake2b(repr((names, dtypes, digests)).encode(), digest_size=16).hexdigest()
    asked = {"question": question, "columns": columns, "function": function, "reduce": reduce}
    return fingerprint(graph) | {"kernel": VISITED} | asked


def _own(function: Any) -> Any:
    """Return the caller's function itself."""
    return function.function if isinstance(function, CallerFunction) else function


def sides_of_ends(plan: Plan, job: Job) -> tuple[int, int, int]:
    """Return the sides of the blocks that a job's vertices u, v and w are on."""
    index, table, _ = (plan.scheme.sides(plan.parts, place) for place in job.triple.places)
    return index[0], index[1], table[1]


def _visited(
    job: Job,
    visitor: Visitor,
    vertices: int,
    index: OrientedCSR,
    table: OrientedCSR,
    stream: OrientedCSR,
    *arrays: Array,
) -> tuple[Record, Any]:
    """Visit the triangles of a job, split by rows, so that positions are those of whole blocks."""
    threes = [list(arrays[first : first + 3]) for first in range(0, len(arrays), 3)]
    given = TaskArrays(threes[:vertices], threes[vertices:])
    task = task_of(replace(job, cut="rows"), index, table, stream)
    result, triangles, wedges = visitor.fold.start(), 0, 0
    for more, triangles_more, wedges_more in in_halves(lambda part: visitor.visit(part, given), task, job):
        result = visitor.fold.combine([result, more])
        triangles, wedges = triangles + triangles_more, wedges + wedges_more
    return Record(job, TaskCount(triangles, wedges, probes=0), this_process()), result


def memory_beside(
    graph: CountingContext, question: str, vertices: list[Column], edges: list[Column], least: int
) -> tuple[int, int]:
    """Bytes that a task needs for blocks and columns, and bytes that a visit may take beside them.

    Raises
    ------
    InputError
        A visit needs `least` bytes, and a worker does not have them.
    """
    plan, sizes = graph.plan, graph.prepared.sizes
    widths = [np.dtype(column.dtype).itemsize for column in vertices]
    sides = int(sizes.rows.max()) + 2 * int(sizes.columns.max())
    of_vertices = 2 * sum(widths) * sides  # as they come, and in the type that batches have
    edge_width, blocks = sum(np.dtype(column.dtype).itemsize for column in edges), sizes.edges.size
    of_edges = min(3, blocks) * edge_width * int(sizes.edges.max())
    ahead = 0
    if graph.answers.call_bytes is not None and blocks > 1:  # a block and its columns that are read ahead
        ahead = int(plan.scheme.block_bytes(sizes).max()) + edge_width * int(sizes.edges.max())
    block_bytes = int(task_bytes(plan.scheme, plan.parts, plan.splits, sizes, lambda task: 0).max())
    kept = block_bytes + ahead + of_vertices + of_edges
    fact = f"{question} needs {format_size(kept + least)} for a task at n = {plan.parts}"
    remedy = f"prepare with {advice(parts=2 * plan.parts)}, or raise {advice('memory')}"
    cause = f"{format_size(of_vertices)} of it are numbers of vertices"
    refuse_beyond(plan.memory, kept + least, fact, f"{cause}; {remedy}")
    return kept, plan.memory - kept
