"""`triangle_count` counts the triangles of a source; `prepare` returns a `Graph` that answers several questions."""

from __future__ import annotations

import gc
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from dasktc.api.distribution import ClusterRun, distribution_of, in_one_call, prepares_in_one_call
from dasktc.api.graph import Graph, OwnedCluster
from dasktc.api.progress import showing
from dasktc.api.repeat import repeating
from dasktc.api.streams import as_files
from dasktc.backends import ON_DEVICE
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.counting.checkpoint import as_begun, check_folder
from dasktc.counting.context import CountingContext
from dasktc.counting.count import count
from dasktc.counting.one_call import count_in_one_call, prepare_in_one_call
from dasktc.counting.outputs import Outputs
from dasktc.counting.result import TriangleCount
from dasktc.counting.small_graph import count_small, forced, refuse_other_ways, too_large
from dasktc.errors import DeviceMemoryError, InputError, neutral_text
from dasktc.executors.base import Executor
from dasktc.executors.connect import connect, threads_here, with_all_threads
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.memory_budget import limited, within_memory
from dasktc.executors.place import Place
from dasktc.executors.progress import Progress, Tracker, tracker_of
from dasktc.executors.signals import held
from dasktc.executors.spill.file_store import blocksize_within
from dasktc.executors.spill.work_dir import check_place
from dasktc.executors.ucx import warn_of_tcp
from dasktc.io.formats.columns import check_two
from dasktc.io.source import ReadOptions, Source
from dasktc.options import (
    AttributeOptions,
    Backend,
    CountOptions,
    Duplicates,
    IdsOption,
    Method,
    MethodName,
    Options,
    RunOptions,
    check_keywords,
    format_size,
    read_ids,
    weight_name,
)
from dasktc.pipeline.attributes import attach, read_rows
from dasktc.pipeline.prepare import choose_backend, prepare_blocks, prepare_edges
from dasktc.planning.plan import Plan
from dasktc.planning.start_up import sooner_on_the_cpu
from dasktc.registry import KERNELS, check_choice
from dasktc.saved.opening import SavedGraph, fitted, open_blocks, saved_graph
from dasktc.wording import advice, option

if TYPE_CHECKING:
    from dasktc.executors.place import ClientLike

__all__ = ["as_source", "build", "choose_for", "prepare", "read_options", "triangle_count", "with_notes"]

T = TypeVar("T")
log = logging.getLogger("dasktc")

THREAD_BLOCK = 1 << 24
"""Bytes of a file per part if threads share the parts, so that small files, too, have parts for all threads."""


@said_in_one_line
def triangle_count(
    source: Any,
    client: ClientLike | None = None,
    *,
    columns: Sequence[str] | None = None,
    ids: IdsOption = "auto",
    format: str | None = None,
    skip: int | None = None,
    backend: Backend = "auto",
    method: Method | MethodName = "auto",
    memory: int | str | None = None,
    threads: int | None = None,
    run: RunOptions = RunOptions(),  # noqa: B008  (frozen)
    checkpoint: str | os.PathLike[str] | None = None,
    verify: float = 0.0,
    per_vertex: str | os.PathLike[str] | None = None,
    per_edge: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: Progress | bool | None = None,
) -> TriangleCount:
    """Count the triangles of a graph, exactly.

    Directions, loops and repeated edges are ignored; the summary reports dropped loops and duplicates.

    Parameters
    ----------
    source : path, URL, table, array, matrix or graph, or several paths
        A file, folder, glob or fsspec URL (text, CSV, Matrix Market, METIS, Parquet, NumPy, SciPy, BVGraph); a graph of
        `dasktc.datasets.catalogue`, such as "snap:ca-GrQc"; "-" for standard input, or a binary file object; a pandas,
        Polars or Dask DataFrame, an Arrow table; an array of pairs, two arrays, or a list of edges (two lists are two
        columns, two tuples of two ids two edges); a SciPy sparse matrix; a NetworkX or igraph graph; a saved graph.
    client : distributed.Client, Cluster, str or path, optional
        Where it runs: a client, what `dasktc.cluster` returned, the address of a scheduler ("tcp://10.0.0.1:8786"), or
        the path of a scheduler file. Default: the active client; without one everything runs in this process.
    columns : two str, optional
        The id columns, by name or position. Default: those with well-known names (source and target, ...), or the
        first two.
    ids : {"auto", "int", "text"}
    format : str, optional
        Name of the format, if the content does not show it.
    skip : int, optional
        Number of leading lines to skip; 0: the first line is data. Default: a first row of column names is skipped.
    backend : {"auto", "cpu", "cuda"}
    method : Method or str
        How it is counted: "auto", a `dasktc.Method`, or the name of a published system (see `Method.of`).
    memory : int or str, optional
        Bytes that the data may take in one process (on GPUs: of each device), e.g. "4GB", beside the interpreter and
        imported libraries. With less than 32 MiB per thread fewer threads are used; data beyond it goes to files.
        Default: the memory available.
    threads : int, optional
        Concurrent calls in this process. If given, everything runs here even if a client is active. Default: the
        available cores; one in a task of a Dask worker, and if a GPU counts.
    run : RunOptions
        Folder of those files, and what happens when workers fail.
    checkpoint : path, optional
        Folder that keeps the results of finished tasks; it is made if it does not exist. The same call with the same
        folder resumes the earlier count, however that ended.
    verify : float
        Share of the tasks, 0 to 1, that are counted again by another kernel.
    per_vertex, per_edge : path, optional
        Write the triangles of every vertex and of every edge there: .parquet (a file or a folder), .csv, or .txt with
        tabs and no header. The workers write, so they must see the folder.
    report : path, optional
        Write a report about the count there: .html.
    force : bool
        Replace existing output files.
    progress : callable (stage, done, total) or bool, optional
        True: a bar in the terminal, a widget in Jupyter.

    Returns
    -------
    TriangleCount
        `int(result)` is the number of triangles.

    Raises
    ------
    InputError
        The source cannot be read, an option is invalid, or the plan does not fit the memory.
    DasktcError, ClusterError, CountError
        A file cannot be written, or memory ran out; the cluster does not answer; the count failed its own check.

    Examples
    --------
    >>> import dasktc
    >>> int(dasktc.triangle_count([(0, 1), (1, 2), (2, 0), (2, 3)]))
    1
    """
    began = time.perf_counter()
    asked = Options.by(method, backend, memory)
    options, in_bits = forced(asked)
    check_keywords(run=run, progress=progress, force=force)
    place = Place.of(client, threads)
    keywords = {"format": format, "columns": columns, "ids": ids, "skip": skip, "checkpoint": checkpoint}
    counting = CountOptions(verify, options.seed, checkpoint)
    outputs = Outputs(per_vertex, per_edge, report, force)
    outputs.check()
    if not options.sort_rows:
        _check_unsorted(per_vertex=per_vertex, per_edge=per_edge, report=report, checkpoint=checkpoint)
    check_place(run.work_dir)
    if checkpoint is not None:
        check_folder(checkpoint)
        options = as_begun(options, checkpoint)
    reading = read_options(format, columns, ids, skip, memory, threads_here(place, backend))
    with as_files(source, place, run) as files:
        opened = as_source(files, reading)
        if isinstance(opened, SavedGraph):
            options = fitted(opened, options)
        telling = showing(progress, asked="count", source=opened.name)
        with telling as watcher, connect(place, options.backend, run) as anywhere:
            counting = replace(counting, progress=watcher)
            options, noted = choose_for(anywhere, opened, options)
            anywhere = with_all_threads(anywhere, place, options.chosen_backend)
            if in_bits:
                refuse_other_ways(anywhere, opened, counting, files=outputs != Outputs())
            cluster = distribution_of(anywhere, opened, options, run)
            budget = options.memory

            def counted(options: Options) -> TriangleCount:
                if isinstance(anywhere, DaskExecutor) and cluster and in_one_call(cluster, outputs, checkpoint):
                    result = count_in_one_call(anywhere, opened, options, cluster.limits, run, counting)
                    return result._replace(plan=replace(result.plan, distribution=str(cluster.how)))
                with within_memory(anywhere, options.memory, run.work_dir, run.host_memory) as executor:
                    small, given = None, opened
                    if outputs == Outputs():
                        small, given = count_small(executor, opened, options, counting)
                    if small is not None:
                        return small
                    if in_bits:
                        raise too_large(opened)
                    before = outputs.usage(executor)
                    graph = _prepared(executor, given, options, watcher, cluster)
                    outputs.check_memory(graph)
                    result = count(graph, counting)
                    # a second attempt may replace the files of the first; files of others were refused before that
                    again = repeating(source, asked, place, run, {**keywords, "verify": verify})
                    written = outputs if options.memory == budget else replace(outputs, force=True)
                    return written.write(graph, result, before, again, watcher)

            result, more = _within_what_is_free(counted, anywhere, options, again=checkpoint is None)
            watcher.close(triangles=int(result))
            result = result._replace(plan=with_notes(result.plan, noted, more))
            return result._timed(time.perf_counter() - began)


def _check_unsorted(**given: Any) -> None:
    """Refuse outputs that need sorted rows if rows are not to be sorted."""
    if asked := [name for name, value in given.items() if value is not None]:
        raise InputError(
            f"{option(asked[0])} needs sorted rows, but {option('sort_rows', False)} is given: leave one of the two out"
        )


@said_in_one_line
def prepare(
    source: Any,
    client: ClientLike | None = None,
    *,
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
    weight: str | int | None = None,
    directed: bool = False,
    duplicates: Duplicates | None = None,
) -> Graph:
    """Orient and partition a graph, and keep it on the workers for any number of questions.

    Parameters and errors are those of `triangle_count`, and in addition:

    Parameters
    ----------
    weight : str or int, optional
        Keep weights, for `Graph.clustering`: the name or position of a column of a DataFrame, an Arrow table, or a
        Parquet, text or CSV file; or the name of an edge attribute of a NetworkX or igraph graph (in NetworkX graphs 1
        for edges without it). For a sparse matrix or a Matrix Market file any name selects the values of the entries.
    directed : bool
        Keep directions, from a row's first id to its second, for `Graph.clustering` and `Graph.triad_census`; all other
        questions ignore them.
    duplicates : {"sum", "last"}, optional
        The weight of an edge if several rows give it different weights: the sum over all rows, or the last one. The
        rows of an edge include both directions, unless `directed`. Default: such a source is refused.

    Weights and directions are kept only in the memory of this process: they are refused with a client, with `memory`,
    and with backend="cuda".

    Returns
    -------
    Graph
        Its blocks stay on the workers (without workers, in this process), and beyond `memory` in files that are removed
        with the graph. If `client` is an address or a scheduler file, it owns the connection: `Graph.close` (or the end
        of a `with` block) closes it, otherwise garbage collection of the graph or the end of the process.

    Examples
    --------
    >>> import dasktc
    >>> graph = dasktc.prepare(([0, 1, 2], [1, 2, 0]))
    >>> int(graph.triangle_count())
    1
    """
    options = Options.by(method, backend, memory)
    attributes = AttributeOptions(weight_name(weight), directed, duplicates)
    check_keywords(run=run, progress=progress)
    if attributes:
        options = _in_one_process(attributes, options)
    place = Place.of(client, threads)
    reading = read_options(format, columns, ids, skip, memory, threads_here(place, backend))
    with as_files(source, place, run) as files:
        opened = as_source(files, replace(reading, weight=attributes.weight, directed=directed))
        if isinstance(opened, SavedGraph):
            if duplicates is not None:
                raise InputError(
                    f"{option('duplicates', duplicates)} is given, but {opened.folder} is a saved graph, whose edges "
                    "have one weight each: leave it out, or prepare the graph again"
                )
            options, attributes = fitted(opened, options), opened.attributes
            if attributes:
                options = _in_one_process(attributes, options)
        if attributes and not threads_here(place, options.backend):
            way_out = f"leave it out, or pass {advice(threads=1)} or more"
            raise _not_here(attributes, "a cluster is to prepare the graph", way_out)
        with ExitStack() as closing, ExitStack() as stack:
            watcher = closing.enter_context(showing(progress, asked="prepare", source=opened.name))
            connection = connect(place, options.backend, run)
            stack.push(connection)  # before it is entered, so that an interrupt closes it
            anywhere = connection.__enter__()
            options, noted = choose_for(anywhere, opened, options)
            anywhere = with_all_threads(anywhere, place, options.chosen_backend)
            watcher.counts = False
            cluster = distribution_of(anywhere, opened, options, run)

            def built(options: Options) -> CountingContext:
                executor = limited(anywhere, options.memory, run.work_dir, run.host_memory)
                if not attributes or isinstance(opened, SavedGraph):
                    return _prepared(executor, opened, options, watcher, cluster, bool(attributes))
                rows, frames = read_rows(executor, opened)
                graph = _prepared(executor, rows, options, watcher, cluster)
                kept = attach(executor, graph.prepared, graph.blocks, frames, attributes)
                return replace(graph, prepared=replace(graph.prepared, attributes=kept))

            graph, more = _within_what_is_free(built, anywhere, options)
            graph = replace(graph, prepared=replace(graph.prepared, plan=with_notes(graph.plan, noted, more)))
            with held():
                return Graph(graph, OwnedCluster(stack.pop_all()) if place.connects else None)


def _in_one_process(attributes: AttributeOptions, options: Options) -> Options:
    """Return the options with the CPU as backend; refuse options that keep a graph outside this process's memory."""
    if options.memory is not None:
        fact = f"{option('memory', options.memory)} may keep parts of the graph in files"
        raise _not_here(attributes, fact, "leave it out")
    if options.backend == "cuda":
        raise _not_here(attributes, f"{option('backend', 'cuda')} has its blocks on a GPU", "leave it out")
    return replace(options, backend="cpu")


def _not_here(attributes: AttributeOptions, fact: str, way_out: str) -> InputError:
    given = " and ".join(name for name in ("weight", "directed") if getattr(attributes, name))
    return InputError(
        f"{given} is given, but {fact}: weights and directions are kept in one process's memory; {way_out}"
    )


def choose_for(executor: Executor, source: Source, options: Options) -> tuple[Options, str]:
    """Choose the backend for a source, with the reason if the source is too small for a GPU.

    Parameters
    ----------
    executor : Executor
    source : Source
    options : Options

    Returns
    -------
    options : Options
        Its backend is no longer "auto".
    why : str
        For the plan; empty unless the source is small.
    """
    why = ""
    if options.backend == "auto" and not executor.distributed and options.chosen_kernel in KERNELS["cpu"]:
        why = sooner_on_the_cpu(source.size.stored or None if source.size else None) or ""
    options = choose_backend(executor, replace(options, backend="cpu") if why else options)
    if executor.distributed and options.chosen_backend in ON_DEVICE:
        warn_of_tcp(executor)
    return options, why


def with_notes(plan: Plan, of_backend: str, of_memory: str = "") -> Plan:
    """Append to a plan the reasons for the backend and for counting out of core; empty texts add nothing."""
    choice = "; ".join(filter(None, (plan.choice, of_backend)))
    return replace(plan, choice=choice, why="; ".join(filter(None, (plan.why, of_memory))))


def _within_what_is_free(
    function: Callable[[Options], T], executor: Executor, options: Options, again: bool = True
) -> tuple[T, str]:
    """Call a function with options; if device memory runs out, call it again with `memory` set to the free memory.

    Parameters
    ----------
    function : callable (Options) -> object
    executor : Executor
    options : Options
        With the backend chosen.
    again : bool
        Whether it may be called twice.

    Returns
    -------
    result : object
    why : str
        For the plan; empty if the device had enough memory, or a budget was given.

    Raises
    ------
    DeviceMemoryError
        The free memory does not suffice either.
    """
    attempt = said_in_one_line(function)
    try:
        return attempt(options), ""
    except DeviceMemoryError as error:
        first = neutral_text(error)
        if not again or options.memory is not None:
            raise
    gc.collect()
    memory = executor.memory()
    said = f"within {format_size(memory)}, the free memory of the device, because it could not hold everything at once"
    log.info("out of core %s", said)
    with suppress(DeviceMemoryError, InputError):
        return attempt(replace(options, memory=memory)), said
    raise DeviceMemoryError(first)


def build(executor: Executor, source: Source, options: Options, progress: Progress | None = None) -> Graph:
    """Choose the backend and run all stages before counting."""
    options = choose_backend(executor, options)
    return Graph(_prepared(executor.for_backend(options.chosen_backend), source, options, tracker_of(progress)))


def _prepared(
    executor: Executor,
    source: Source,
    options: Options,
    progress: Tracker,
    cluster: ClusterRun | None = None,
    attributes: bool = False,
) -> CountingContext:
    """Run all stages before counting, on a cluster as tasks or, if that was chosen and is possible, as one call.

    For a saved graph, read its blocks and, with `attributes`, its weights and directions.
    """
    if isinstance(source, SavedGraph):
        executor = executor.for_edges(source.manifest.edges)
        prepared, blocks = open_blocks(executor, source, options, progress, attributes)
        return CountingContext(executor, prepared, blocks, prepared.options)
    if cluster and isinstance(executor, DaskExecutor) and prepares_in_one_call(executor, options, cluster.how):
        prepared, blocks = prepare_in_one_call(executor, source, options, cluster.limits, progress)
        said = f"prepared {cluster.how}; counted as tasks"
    else:
        prepared = prepare_edges(executor, source, options, progress)
        executor = executor.for_edges(prepared.rows - prepared.loops)  # the same executor for which the plan was made
        prepared, blocks = prepare_blocks(executor, prepared, prepared.options, progress)
        how = cluster and (cluster.how.not_possible() if cluster.how.kind == "call" else cluster.how)
        said = str(how or "")
    prepared = replace(prepared, plan=replace(prepared.plan, distribution=said))
    return CountingContext(executor, prepared, blocks, prepared.options)


def read_options(
    format: str | None = None,
    columns: Sequence[str] | str | None = None,
    ids: IdsOption = "auto",
    skip: int | None = None,
    memory: int | str | None = None,
    threads: int = 0,
) -> ReadOptions:
    """Make the reading options from keywords of `triangle_count`.

    Parts of files are sized to fit `memory`, and kept small if threads of this process share them.
    """
    check_keywords(format=format, columns=columns, skip=skip)
    if isinstance(columns, str):
        columns = columns.split(",")
    pair = None if columns is None else (str(columns[0]), str(columns[1]))
    if pair:
        check_two(pair, pair)
    if format is not None:  # before a stream is read
        from dasktc.io.files import FORMATS

        check_choice("format", format, FORMATS)
    options = ReadOptions(format, pair, read_ids(ids), skip)
    most = options.blocksize if threads < 2 else THREAD_BLOCK
    return replace(options, blocksize=most if memory is None else blocksize_within(memory, most))


def as_source(source: Any, options: ReadOptions | None = None) -> Source:
    """Open a caller's path, URL or object as a `Source`; a `Source` is returned unchanged.

    A path is checked for a saved graph first, because the files of one are not edge files.
    """
    options = ReadOptions() if options is None else options
    opened: Source
    if isinstance(source, Source):
        opened = source
    elif _is_path(source):
        opened = saved_graph(source, options) or _files(source, options)
    else:
        from dasktc.io.memory import from_object

        opened = from_object(source, options)
    if isinstance(opened, SavedGraph):
        _check_attributes(opened, options)
    elif options.weight is not None and opened.weight is None:
        raise InputError(f"{opened.name} has no weights: {option('weight', options.weight)} is given; leave it out")
    return opened


def _check_attributes(saved: SavedGraph, options: ReadOptions) -> None:
    """Refuse (InputError) weights or directions with which the graph was not saved."""
    kept = saved.attributes
    if options.weight not in (None, kept.weight) or (options.directed and not kept.directed):
        directed = option("directed", True)
        asked = option("weight", options.weight) if options.weight not in (None, kept.weight) else directed
        named = {option("weight", kept.weight): kept.weight, directed: kept.directed}
        had = " and ".join(name for name, there in named.items() if there)
        raise InputError(
            f"{asked} is given, but {saved.folder} was saved with {had or 'neither weights nor directions'}: prepare "
            "the graph again with it"
        )


def _files(source: Any, options: ReadOptions) -> Source:
    from dasktc.io.catalogue import open_named

    return open_named(source, options)


def _is_path(source: Any) -> bool:
    items = source if isinstance(source, (list, tuple)) else [source]
    return bool(items) and all(isinstance(item, str | os.PathLike) for item in items)
