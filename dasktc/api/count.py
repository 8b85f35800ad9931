"""`triangle_count` and `estimate` answer one question about a source, a `Graph` of `prepare` several."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dasktc.api.columns import repeats_of, with_columns
from dasktc.api.distribution import ClusterRun, distribution_of
from dasktc.api.graph import Graph, OwnedCluster, await_results
from dasktc.api.opener import Call, on_cpu, opened, read_options, within_free_memory
from dasktc.api.repeat import repeating
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.counting.checkpoint import FILE, as_begun, check_folder
from dasktc.counting.context import CountingContext
from dasktc.counting.count import count
from dasktc.counting.one_call import count_in_one_call, prepare_in_one_call
from dasktc.counting.result import TriangleCount
from dasktc.counting.small_graph import count_small, forced, refuse_other_ways, too_large
from dasktc.errors import InputError
from dasktc.executors.base import Executor, for_backend
from dasktc.executors.connect import threads_here
from dasktc.executors.place import Place
from dasktc.executors.process.signals import held
from dasktc.executors.progress.tracker import Progress, Tracker, tracker_of
from dasktc.executors.stores.work_dir import check_place
from dasktc.io.inputs import refuse_input
from dasktc.io.source import Source
from dasktc.io.write import FRAMES, check_target
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
    weight_name,
)
from dasktc.pipeline.attributes import edge_attributes, in_memory
from dasktc.pipeline.planes import choose
from dasktc.pipeline.prepare import choose_backend, prepare_blocks, prepare_edges
from dasktc.pipeline.stages.columns import Repeats
from dasktc.questions.edge_sample import colours_of_share, estimate_of_sample, write_vertices
from dasktc.questions.estimate import TriangleEstimate, check_options
from dasktc.reports.outputs import Outputs
from dasktc.saved.opening import SavedGraph, open_blocks
from dasktc.wording import advice, option

if TYPE_CHECKING:
    from dasktc.executors.place import ClientLike

__all__ = ["build", "estimate", "prepare", "triangle_count"]

VALUE_BYTES = 8
"""Most bytes of a weight, direction or value of a column that is kept for an edge."""


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
        The id columns, by name, or position from 0. Default: those with well-known names (source and target, ...), or
        the first two.
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
    start = time.perf_counter()
    caller_options = Options.by(method, backend, memory)
    options, uses_bits = forced(caller_options)
    check_keywords(run=run, progress=progress, force=force)
    place = Place.of(client, threads)
    counting = CountOptions(verify, options.seed, checkpoint)
    outputs = Outputs(per_vertex, per_edge, report, force)
    outputs.check(source, options.assign_file)
    paths = {"per_vertex": per_vertex, "per_edge": per_edge, "report": report, "checkpoint": checkpoint}
    if not options.sort_rows and (names := [name for name, path in paths.items() if path is not None]):
        raise InputError(
            f"{option(names[0])} needs sorted rows, but {option('sort_rows', False)} is given: leave one of the two out"
        )
    check_place(run.work_dir)
    if checkpoint is not None:
        check_folder(checkpoint)
        refuse_input(os.path.join(checkpoint, FILE), source, options.assign_file)
        options = as_begun(options, checkpoint)
    reading = read_options(format, columns, ids, skip, memory, threads_here(place, backend))
    keywords = {"format": format, "columns": columns, "ids": ids, "skip": skip, "checkpoint": checkpoint}
    command = "" if report is None else repeating(source, caller_options, place, run, {**keywords, "verify": verify})
    with opened("count", source, place, options, reading, run, progress) as call:
        counting = replace(counting, progress=call.tracker)
        if uses_bits:
            refuse_other_ways(call.executor, call.source, counting, files=outputs != Outputs())
        cluster = distribution_of(call)
        # Only tasks write a checkpoint and output files.
        if cluster and cluster.how.kind == "call" and checkpoint is None and outputs == Outputs():
            answer = partial(_count_in_one_call, cluster=cluster, counting=counting)
        else:
            answer = partial(
                _count, cluster=cluster, counting=counting, outputs=outputs, uses_bits=uses_bits, command=command
            )
        result, call = within_free_memory(answer, call, again=checkpoint is None)
        call.tracker.close(triangles=int(result))
        result = result._replace(plan=call.explained(result.plan))
        return result._timed(time.perf_counter() - start)


def _count_in_one_call(call: Call, cluster: ClusterRun, counting: CountOptions) -> TriangleCount:
    """Read, prepare and count in one call on one worker."""
    result = count_in_one_call(cluster.executor, call.source, call.options, cluster.limits, call.run, counting)
    return result._replace(plan=replace(result.plan, distribution=str(cluster.how)))


def _count(
    call: Call, cluster: ClusterRun | None, counting: CountOptions, outputs: Outputs, uses_bits: bool, command: str
) -> TriangleCount:
    """Prepare and count a graph, and write what is asked for; a small graph is counted in one step."""
    source = call.source
    with call.within_memory() as executor:
        if outputs == Outputs():
            small_result, source = count_small(executor, source, call.options, counting)
            if small_result is not None:
                return small_result
        if uses_bits:
            raise too_large(call.source)
        start_usage = outputs.usage(executor)
        graph = _prepared_graph(executor, source, call.options, call.tracker, cluster)
        outputs.check_memory(graph)
        result = count(graph, counting)
        # a second attempt may replace the files of the first; files of others were refused before that
        files = replace(outputs, force=True) if call.why_memory else outputs
        return files.write(graph, result, start_usage, command, call.tracker)


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
    edge_columns: Sequence[str] | Mapping[str, Repeats | None] = (),
    vertices: Any = None,
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

    edge_columns : sequence of str, or mapping of str to {"first", "min", "max", "sum"}
        Keep columns of edges, for `Graph.survey`: names of columns of a pandas, Polars or Dask DataFrame, an Arrow
        table, or a Parquet, text or CSV file, each of which is read in one more pass. Values are numbers, booleans,
        which become 0 and 1, or text and categories, which become codes; every row needs one. The value tells what an
        edge of several rows, in either direction, gets: that of the first row, the least, the greatest, or the sum.
        None, as for a sequence: such rows must have equal values.
    vertices : DataFrame, optional
        Keep columns of vertices: ids are the column "vertex", else the index. Every vertex of the graph needs a row and
        values; others are left out.

    Weights, directions and columns are read on the host, and kept beside the blocks, in this process, on workers, or
    within `memory`: on the CPU, or with backend="cuda" on a GPU. A saved graph has its weights and directions, and no
    columns.

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
    options = options if vertices is None else on_cpu(options)
    attributes = AttributeOptions(weight_name(weight), directed, duplicates)
    repeats = repeats_of(edge_columns)
    check_keywords(run=run, progress=progress)
    place = Place.of(client, threads)
    reading = read_options(format, columns, ids, skip, memory, threads_here(place, backend))
    with opened("prepare", source, place, options, reading, run, progress, attributes, repeats) as call:
        cluster = distribution_of(call)

        # Where the device runs out of memory this is called again, out of core.
        def prepared(call: Call) -> CountingContext:
            return await_results(with_columns(_prepare(call, cluster=cluster), call, repeats, vertices))

        graph, call = within_free_memory(prepared, call)
        graph = replace(graph, prepared=replace(graph.prepared, plan=call.explained(graph.plan)))
        with held():
            return Graph(graph, OwnedCluster(call.connection.pop_all()) if place.connects else None)


@said_in_one_line
def estimate(
    source: Any,
    client: ClientLike | None = None,
    *,
    error: float = 0.01,
    confidence: float = 0.95,
    share: float | None = None,
    per_vertex: str | os.PathLike[str] | None = None,
    force: bool = False,
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
) -> TriangleEstimate:
    """Estimate the number of triangles of a graph from a sample of its wedges, or of its edges.

    The graph is read and prepared as for `triangle_count`; a sample of its wedges replaces the count. If that would
    save nothing, all triangles are counted, and the estimate is marked as exact. With `share` only a sample of the
    edges is prepared, which takes about twice the time of reading it, and the interval is what the sample tells.

    Parameters
    ----------
    source, client
        As for `triangle_count`.
    error : float
        Half the width of the interval, relative to the estimate, between 0 and 1.
    confidence : float
        Share of the seeds, between 0 and 1, for which the interval contains the number.
    share : float, optional
        Prepare about this share of the edges, 1e-4 to 1, of which 1 divided by a whole number is used: those whose ends
        have one colour by a hash of their ids. The interval may be wider than `error`; `.why` says with what share it
        would not be. 1: count all.
    per_vertex : path, optional
        With `share`: write columns "vertex", "triangles" and "standard_error" there, estimates of the vertices that
        have an edge in the sample (of others 0) and bounds of their standard errors; formats as for `triangle_count`.
    force : bool
        Replace an existing file.
    columns, ids, format, skip, backend, method, memory, threads, run, progress
        As for `triangle_count`. The sample's seed is that of the method: the same seed and the same plan give the same
        estimate, on the CPU and, if no row repeats, on a GPU; with `share` whatever the plan and the rows, and for text
        the same version of pandas.

    Returns
    -------
    TriangleEstimate
        `.value`, `.low`, `.high`, `.exact`; it does not convert to an integer.

    Raises
    ------
    InputError, DasktcError, ClusterError, CountError
        As `triangle_count`.

    Notes
    -----
    Wedge sampling on the oriented graph; `dasktc.questions.estimate` cites the papers and the methods compared. With
    `share` sampling by colours, whose interval `dasktc.questions.edge_sample` derives.

    Examples
    --------
    >>> import dasktc
    >>> estimate = dasktc.estimate(([0, 1, 2, 2], [1, 2, 0, 3]))
    >>> estimate.value, estimate.low, estimate.high, estimate.exact
    (1, 1, 1, True)
    """
    options = Options.by(method, backend, memory)
    error, confidence, seed = check_options(error, confidence, options.seed)
    # With a share, edges are sampled as they are read; without one, wedges of the prepared graph.
    if share is not None:
        colours = colours_of_share(share, seed)
        check_keywords(run=run, progress=progress, force=force)
        if per_vertex is not None:
            refuse_input(per_vertex, source, options.assign_file)
            check_target(per_vertex, FRAMES, force)
        place = Place.of(client, threads)
        reading = read_options(format, columns, ids, skip, memory, threads_here(place, backend))
        reading = replace(reading, sample=colours if colours.number > 1 else None)
        with opened("estimate", source, place, options, reading, run, progress) as call:
            target = {"error": error, "confidence": confidence, "seed": seed}
            answer = partial(_estimate_sample, colours.number, target, per_vertex, force, distribution_of(call))
            return within_free_memory(answer, call)[0]
    if per_vertex is not None:
        raise InputError(
            f"{option('per_vertex', os.fspath(per_vertex))} is given without a share: wedges do not tell the triangles "
            f"of vertices; pass {advice(share=0.1)} as well, or count all triangles"
        )
    with prepare(
        source,
        client,
        columns=columns,
        ids=ids,
        format=format,
        skip=skip,
        backend=backend,
        method=method,
        memory=memory,
        threads=threads,
        run=run,
        progress=progress,
    ) as graph:
        return graph.estimate(error=error, confidence=confidence, seed=seed, progress=progress)


def _estimate_sample(
    colours: int,
    target: dict[str, Any],
    per_vertex: str | os.PathLike[str] | None,
    force: bool,
    cluster: ClusterRun | None,
    call: Call,
) -> TriangleEstimate:
    """Prepare the sample of a source's edges, and estimate the triangles of the source."""
    with call.within_memory() as executor:
        graph = _prepared_graph(executor, call.source, call.options, call.tracker, cluster)
        start = time.perf_counter()
        with call.tracker.watching(graph.executor):
            call.tracker("sample", 0, 1)
            result = estimate_of_sample(graph, colours, target, start)
            if per_vertex is not None:
                # a second attempt may replace the file of the first
                write_vertices(graph, colours, per_vertex, force or bool(call.why_memory))
            call.tracker("sample", 1, 1)
        return result


def _prepare(call: Call, cluster: ClusterRun | None) -> CountingContext:
    """Prepare a graph, with the weights and directions that the call keeps."""
    executor, source, attributes = call.limited(), call.source, call.attributes
    value_bytes = VALUE_BYTES * (len(call.columns) + bool(attributes))
    if not attributes or isinstance(source, SavedGraph):
        return _prepared_graph(executor, source, call.options, call.tracker, cluster, bool(attributes), value_bytes)
    source = in_memory(executor, source)
    graph = _prepared_graph(executor, source, call.options, call.tracker, cluster, value_bytes=value_bytes)
    call.tracker("attributes", 0, 1)
    edge_values = edge_attributes(graph.executor, graph.prepared, graph.blocks, source, attributes)
    return replace(graph, prepared=replace(graph.prepared, attributes=edge_values))


def build(executor: Executor, source: Source, options: Options, progress: Progress | None = None) -> Graph:
    """Choose the backend and run all stages before counting."""
    options, _ = choose_backend(executor, options)
    return Graph(_prepared_graph(for_backend(executor, options.chosen_backend), source, options, tracker_of(progress)))


def _prepared_graph(
    executor: Executor,
    source: Source,
    options: Options,
    progress: Tracker,
    cluster: ClusterRun | None = None,
    attributes: bool = False,
    value_bytes: int = 0,
) -> CountingContext:
    """Run all stages before counting, on a cluster as tasks or, if that was chosen and is possible, as one call.

    For a saved graph, read its blocks and, with `attributes`, its weights and directions. Tasks are planned with the
    `value_bytes` that are kept for each edge.
    """
    if isinstance(source, SavedGraph):
        executor = choose(executor, options).for_edges(source.manifest.edges).executor
        prepared, blocks = open_blocks(executor, source, options, progress, attributes)
        return CountingContext(executor, prepared, blocks, prepared.options)
    if cluster and cluster.prepares_in_one_call(executor, options):
        limits = replace(cluster.limits, value_bytes=value_bytes)
        prepared, blocks = prepare_in_one_call(cluster.executor, source, options, limits, progress)
        distribution = f"prepared {cluster.how}; counted as tasks"
    else:
        prepared = prepare_edges(executor, source, options, progress, value_bytes=value_bytes)
        plane = choose(executor, options).for_edges(prepared.rows - prepared.loops)  # that for which the plan was made
        executor = plane.executor
        prepared, blocks = prepare_blocks(executor, prepared, prepared.options, progress)
        choice = cluster and (cluster.how.not_possible() if cluster.how.kind == "call" else cluster.how)
        distribution = str(choice or "")
    prepared = replace(prepared, plan=replace(prepared.plan, distribution=distribution))
    return CountingContext(executor, prepared, blocks, prepared.options)
