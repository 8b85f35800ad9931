"""`Graph`: a prepared graph, held in blocks by the workers, and the questions that it answers."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, overload

from dasktc.answers.edge_frames import frame_of_edges
from dasktc.answers.frames import FrameName
from dasktc.answers.triangle_list import triangle_list
from dasktc.api.progress import showing
from dasktc.backends import lazy_backend
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.counting.context import CountingContext
from dasktc.counting.count import count
from dasktc.counting.result import TriangleCount
from dasktc.errors import InputError, shown
from dasktc.executors.attached import AttachedExecutor, futures_in
from dasktc.executors.base import Fold, MemoryStore, Result
from dasktc.executors.local import LocalExecutor
from dasktc.executors.progress.tracker import Progress, Tracker
from dasktc.io.evidence import Reading
from dasktc.options import CountOptions, MeasureName, Options, bytes_of, check_keywords, format_size
from dasktc.pipeline.build_blocks import Blocks
from dasktc.pipeline.prepare import Prepared, plan_again
from dasktc.questions import measures, weighted_clustering
from dasktc.questions import similarity as similarities
from dasktc.questions import trussness as trusses
from dasktc.questions.cliques import BOUND, clique_count
from dasktc.questions.estimate import TriangleEstimate, estimate
from dasktc.questions.motifs import motifs
from dasktc.questions.signed_triangles import signed_triangles
from dasktc.questions.square_clustering import square_clustering
from dasktc.questions.survey import Batch, survey
from dasktc.questions.temporal_triangles import TemporalTriangles, temporal_triangles
from dasktc.questions.triad_census import triad_census
from dasktc.questions.triangle_types import triangle_types
from dasktc.questions.update import Change, update
from dasktc.registry import check_stages
from dasktc.reports import plots
from dasktc.saved.folder import check_new
from dasktc.saved.writing import write_graph
from dasktc.summary import Rows, Summarised
from dasktc.wording import plural

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    import polars as pl
    from distributed import Client
    from matplotlib.axes import Axes

    from dasktc.planning.plan import Plan

__all__ = ["Graph", "OwnedCluster", "await_results"]

log = logging.getLogger("dasktc")
Pandas = Literal["pandas"]
Polars = Literal["polars"]
DaskFrame = Literal["dask"]
Cudf = Literal["cudf"]


class OwnedCluster:
    """Workers or a connection that belong to one graph and are closed exactly once, with `stack`.

    They are closed by `close`, else when this object is garbage collected, or when the process ends.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._opened = stack
        self._abandoned = weakref.finalize(self, _close_apart, stack)
        self._abandoned.atexit = False
        atexit.register(self._abandoned)  # runs before the exit handlers of Dask, which was imported earlier

    def close(self) -> None:
        """Close the workers or the connection; a second call does nothing."""
        if self._abandoned.detach() is not None:
            atexit.unregister(self._abandoned)
            self._opened.close()


def _close_apart(stack: ExitStack) -> None:
    """Close in a new thread, because garbage collection may run in one that holds a lock or runs an event loop."""
    if threading.main_thread().is_alive():
        # not a daemon thread: the process waits for it at exit, at most as long as Dask's timeouts. A daemon would be
        # stopped in the middle of closing, and Dask's exit handlers would then fail with a traceback
        threading.Thread(target=stack.close, name="dasktc-close").start()
    else:  # the process is ending and starts no more threads
        stack.close()


class _Closed:
    """Placeholder for the blocks and vectors of a closed graph: any use is an error."""

    def __getattr__(self, name: str) -> NoReturn:
        raise InputError(
            "this graph was closed: its blocks, and the workers started for it, are gone; prepare it again"
        )


class Graph(Summarised):
    """A prepared graph that answers any number of questions; made by `dasktc.prepare`.

    Its blocks stay on the workers (without workers, in this process) for as long as it lives. It owns workers that
    `prepare` started: they end with `close`, at the end of a `with` block, when the graph is garbage collected, or when
    the process ends. NetworkX's functions that dasktc has, such as `nx.triangles`, take it for a graph.

    Examples
    --------
    >>> import dasktc
    >>> with dasktc.prepare(([0, 1, 2], [1, 2, 0])) as graph:
    ...     int(graph.triangle_count())
    1
    """

    __networkx_backend__ = "dasktc"
    """Where NetworkX's functions send this graph."""

    def __init__(
        self,
        context: CountingContext,
        owned: OwnedCluster | None = None,
        sharing: weakref.WeakSet[Graph] | None = None,
    ) -> None:
        self._context, self._owned = context, owned
        self._sharing = weakref.WeakSet[Graph]() if sharing is None else sharing

    @property
    def vertices(self) -> int:
        """Number of vertices with an edge after clean-up."""
        return self._context.vertices

    @property
    def edges(self) -> int:
        """Number of distinct undirected edges after clean-up."""
        return self._context.edges

    @property
    def plan(self) -> Plan:
        """The plan of its count: scheme, n and m, tasks, bytes."""
        return self._context.plan

    @property
    def columns(self) -> dict[str, str | tuple[str, ...]]:
        """The columns that `survey` reads, by name: their type, or what the codes from 0 on stand for.

        Booleans are integers, 0 and 1, also those of text files (True, TRUE or true, and False, FALSE or false).

        Examples
        --------
        >>> import dasktc
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 0], "kind": ["b", "a", "b"]})
        >>> dasktc.prepare(frame, edge_columns=["kind"]).columns
        {'kind': ('a', 'b')}
        """
        columns = self._context.prepared.columns
        return {
            name: values.dtype if values.categories is None else values.categories
            for name, values in (columns.vertices | columns.edges).items()
        }

    @property
    def client(self) -> Client | None:
        """The distributed.Client whose workers hold the blocks; None if this process holds them."""
        return getattr(self._context.executor, "client", None)

    @property
    def read(self) -> Reading:
        """What was read of the source: id columns and how they were found, rows, lines skipped as comments or headers.

        Examples
        --------
        >>> import dasktc
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 0]})
        >>> dasktc.prepare(frame).read.ids
        "columns 'source' and 'target', 1 and 2 of 2, by name"
        """
        return self._context.prepared.source.read

    def close(self) -> None:
        """Release the blocks and their files, and end the workers that were started for this graph.

        Copies of the graph, and graphs that `update` made from it, keep what they need until the last of them is
        closed. A client that was passed to `prepare` stays open. Later questions to the graph raise InputError; closing
        it again does nothing.
        """
        context, owned = self._context, self._owned
        executor = context.executor
        if isinstance(executor, _Closed):
            return
        self._sharing.discard(self)
        last = not self._sharing
        stub: Any = _Closed()
        context.counted.forget()
        attributes = context.prepared.attributes and stub
        prepared = replace(
            context.prepared, graph=stub, partition=stub, numbered=stub, attributes=attributes, columns=stub
        )
        self._context, self._owned = replace(context, executor=stub, blocks={}, prepared=prepared), None
        try:
            if last and hasattr(executor, "close"):
                executor.close()
        finally:
            if last and owned is not None:
                owned.close()

    def _rows(self) -> Rows:
        if isinstance(self._context.executor, _Closed):
            return [("closed", "its blocks, and the workers started for it, are gone")]
        plan, options = self.plan, self._context.options
        return [
            ("vertices", f"{plan.vertices:,}"),
            ("edges", f"{plan.edges:,}"),
            *self.read._rows(),
            ("prepared", f"for {options.chosen_kernel} on {options.chosen_backend}, {options.chosen_reorder} order"),
            ("plan", f"{plan.partition}, n = {plan.parts}, m = {plan.splits}, {plural(plan.tasks, 'task')}"),
            ("blocks", self._where()),
        ]

    def _where(self) -> str:
        """Say how many bytes its blocks have, and where they are."""
        plan, client = self.plan, self.client
        place = "in this process"
        if client is not None:
            # of a scheduler that is gone the client may know nothing any more
            address = str(client.scheduler.address) if client.status == "running" else "a cluster that is gone"
            place = f"on {plural(plan.workers, 'worker thread')} of {address}"
        budget = bytes_of(self._context.options.memory)
        budget_text = "" if budget is None else f", and in files beyond {format_size(budget)} a process"
        return f"{format_size(plan.bytes_total)} {place}{budget_text}"

    def __str__(self) -> str:
        if isinstance(self._context.executor, _Closed):
            return "Graph(closed)"
        return f"Graph(vertices={self.vertices}, edges={self.edges}, {self.plan.partition}, {self._where()})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by reference to the blocks on the cluster; in one process by value.

        Raises
        ------
        InputError
            The blocks are in files or on devices of the processes that made them.
        """
        context = self._context
        executor = context.executor
        if not _keeps_in_memory(executor):
            raise InputError(
                "this graph keeps blocks in files or on devices of its own processes: they end with it, so it "
                "cannot be pickled; prepare it without memory, or write results with per_vertex and per_edge"
            )
        if isinstance(executor, LocalExecutor):
            return _copied, (context.prepared, context.blocks, context.options, len(executor.worker_threads))
        faults = executor.faults  # type: ignore[attr-defined]
        return _attached, (context.prepared, context.blocks, context.options, faults.patience, faults.retries)

    @said_in_one_line
    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> int:
        """Write the prepared graph to a folder, which `dasktc.open_graph` opens without preparing it again.

        The workers write their blocks, vertices and ids as raw arrays with checksums; results of questions are not
        saved, nor, which the log says, columns. The folder can be opened with any number of workers, on the CPU and on
        GPUs.

        Parameters
        ----------
        path : path or fsspec URL
            A new folder, which all workers must see.
        force : bool
            Replace an existing saved graph; other folders are never replaced.

        Returns
        -------
        int
            Bytes of its arrays.

        Raises
        ------
        InputError
            The folder exists, its parent does not, or it is memory:// and other processes hold the graph.
        DasktcError
            The folder cannot be written; nothing is left of it then.

        Examples
        --------
        >>> import dasktc, tempfile
        >>> graph = dasktc.prepare(([0, 1, 2], [1, 2, 0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     nbytes = graph.save(f"{folder}/triangle")
        ...     int(dasktc.open_graph(f"{folder}/triangle").triangle_count())
        1
        """
        context = self._context
        executor = context.executor
        check_keywords(force=force)
        if (labels := context.prepared.source.labels) is not None:
            raise InputError(
                f"the vertices are of type {labels.kinds}: a saved graph holds integers or text; prepare the graph "
                "with ids='text', which takes str of each, or relabel its nodes"
            )
        client: Any = getattr(executor, "client", None)
        has_remote_workers = client is not None and not str(client.scheduler.address).startswith("inproc")
        reason = "each worker would write to its own, and nothing opens it" if has_remote_workers else None
        target = check_new(path, force, reason)
        if self.columns:
            log.warning("columns are not saved: the graph in %s is without %s", target, ", ".join(self.columns))
        return write_graph(executor, context.prepared, context.blocks, context.options, target)

    def __copy__(self, memo: dict[int, Any] | None = None) -> Graph:
        """Return a copy, shallow or deep, that shares the blocks, because a graph does not change."""
        return self._shared_with(replace(self._context))

    __deepcopy__ = __copy__

    def _shared_with(self, context: CountingContext) -> Graph:
        """Return a graph that shares the executor and workers of this one: they stay until both are closed."""
        copy = Graph(context, self._owned, self._sharing)
        if not isinstance(context.executor, _Closed):
            self._sharing.update((self, copy))
        return copy

    def __dask_graph__(self) -> dict[Any, Any] | None:
        """Return the futures of a graph on a cluster, for `publish_dataset`, `wait` and `futures_of`."""
        if isinstance(self._context.executor, _Closed | LocalExecutor):
            return None
        return dict(enumerate(futures_in(self._context.prepared, self._context.blocks)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _showing(self, progress: Progress | bool | None, question: str) -> AbstractContextManager[Tracker]:
        return showing(progress, asked=question, source=self._context.prepared.source.name)

    @said_in_one_line
    def triangle_count(
        self,
        *,
        kernel: str | None = None,
        verify: float = 0.0,
        seed: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | bool | None = None,
    ) -> TriangleCount:
        """Count the triangles.

        Parameters
        ----------
        kernel : str, optional
            Default: the kernel for which the graph was prepared.
        verify : float
            Share of the tasks, 0 to 1, that are counted again by another kernel.
        seed : int
            Seed of the choice of those tasks.
        checkpoint : path, optional
            Folder that keeps the results of finished tasks; it is made if it does not exist. The same count with the
            same folder resumes the earlier count, however that ended.
        progress : callable (stage, done, total) or bool, optional
            True: a bar in the terminal or the notebook.

        Returns
        -------
        TriangleCount

        Raises
        ------
        InputError
            The checkpoint belongs to another count, or another count is writing to it.
        DasktcError
            The checkpoint cannot be written.
        CountError
            A check failed: there is no result.
        """
        with self._showing(progress, "count") as watcher:
            counting = CountOptions(verify, seed, checkpoint, watcher)
            context = self._context
            if kernel is not None:
                options = replace(context.options, kernel=kernel, reorder=context.options.chosen_reorder)
                check_stages(kernel)
                plan = plan_again(context.executor, context.prepared, options)
                context = replace(context, prepared=replace(context.prepared, plan=plan), options=options)
            result = count(context, counting)
            self._context.counted.agree(result.triangles)
            if kernel is None:
                watcher.close(triangles=int(result))
            return result

    @overload
    def triangles(self, *, frame: Pandas | None = ..., vertices: Any = ...) -> pd.Series[int]: ...
    @overload
    def triangles(self, *, frame: Polars, vertices: Any = ...) -> pl.DataFrame: ...
    @overload
    def triangles(self, *, frame: DaskFrame, vertices: Any = ...) -> dd.Series: ...
    @overload
    def triangles(self, *, frame: Cudf, vertices: Any = ...) -> Any: ...
    @said_in_one_line
    def triangles(self, *, frame: FrameName | None = None, vertices: Any = None) -> Any:
        """Count the triangles of every vertex.

        A graph caches its counts until it is closed: the same question again, and questions that follow from the same
        numbers, count nothing.

        Parameters
        ----------
        frame : {"pandas", "polars", "cudf", "dask"}, optional
            Type of the answer. "polars" has no index: ids are a column "vertex", so it is a DataFrame. "cudf", for
            graphs that GPUs count, is made on the device. "dask" has partitions of 128 MB with known divisions, which
            stay on the workers (without a client, in this process) until the graph is closed; they are cuDF if the
            graph was in GPU memory or Dask's configuration sets "dataframe.backend" to cudf. If `prepare` started the
            workers, compute it with `graph.client.compute`, because Dask does not use their client by default. Within
            `memory` all frames are made on the host. Default: cuDF if the graph was in GPU memory, Dask if it was a
            Dask collection, Polars if it was a Polars frame, else pandas.
        vertices : sequence or column, optional
            Ids: restrict the answer to these, in their order. An id without an edge is refused.

        Returns
        -------
        Series of int64
            Named "triangles", by the caller's ids in ascending order, of the vertices with an edge
            after clean-up. The `attrs` of a pandas answer name the kernel that counted; the log does for every answer.

        Raises
        ------
        InputError
            A task, which keeps a number for every edge, needs more memory than a worker has. Or the vertices did not
            fit this process, which would receive a number for each. Or an id of `vertices` is not in the graph.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3]))
        >>> graph.triangles().to_dict()
        {0: 1, 1: 1, 2: 1, 3: 0}
        >>> graph.triangles(vertices=[3, 2]).to_dict()
        {3: 0, 2: 1}
        """
        return measures.of_vertices(self._context, measures.TRIANGLES, frame, vertices)

    @overload
    def edge_support(self, *, frame: Pandas | None = ..., edges: Any = ...) -> pd.DataFrame: ...
    @overload
    def edge_support(self, *, frame: Polars, edges: Any = ...) -> pl.DataFrame: ...
    @overload
    def edge_support(self, *, frame: DaskFrame, edges: Any = ...) -> dd.DataFrame: ...
    @overload
    def edge_support(self, *, frame: Cudf, edges: Any = ...) -> Any: ...
    @said_in_one_line
    def edge_support(self, *, frame: FrameName | None = None, edges: Any = None) -> Any:
        """Count the triangles of every edge.

        Parameters
        ----------
        frame : {"pandas", "polars", "cudf", "dask"}, optional
            As for `triangles`; default: Dask if the graph has a client, else as for `triangles`.
        edges : table, array of shape (m, 2), sequence of pairs, or pair of lists or arrays, optional
            Restrict the answer to these edges, in their order; either end may come first. A pair that is no edge is
            refused. Two lists or arrays are two columns, two tuples of two ids are two edges, as for `prepare`.

        Returns
        -------
        DataFrame
            One row per undirected edge: "src" < "dst", the caller's ids, and "support", int64. Rows ascend across all
            partitions of a Dask DataFrame and are numbered from 0. With `edges` the ends are as they were given.
            A Dask DataFrame lives as long as the workers; those that `prepare` started end with the graph.
            `graph.client.compute` brings it to the caller.

        Raises
        ------
        InputError, CountError
            As `triangles`.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3]))
        >>> graph.edge_support()
           src  dst  support
        0    0    1        1
        1    0    2        1
        2    1    2        1
        3    2    3        0
        >>> graph.edge_support(edges=[(3, 2)])
           src  dst  support
        0    3    2        0
        """
        return measures.edge_support(self._context, frame, edges)

    @overload
    def similarity(
        self,
        pairs: Any = ...,
        measure: MeasureName = ...,
        *,
        top: int | None = ...,
        bound: int = ...,
        frame: Pandas | None = ...,
    ) -> pd.DataFrame: ...
    @overload
    def similarity(
        self, pairs: Any = ..., measure: MeasureName = ..., *, top: int | None = ..., bound: int = ..., frame: Polars
    ) -> pl.DataFrame: ...
    @overload
    def similarity(
        self, pairs: Any = ..., measure: MeasureName = ..., *, top: int | None = ..., bound: int = ..., frame: DaskFrame
    ) -> dd.DataFrame: ...
    @overload
    def similarity(
        self, pairs: Any = ..., measure: MeasureName = ..., *, top: int | None = ..., bound: int = ..., frame: Cudf
    ) -> Any: ...
    @said_in_one_line
    def similarity(
        self,
        pairs: Any = None,
        measure: MeasureName = "jaccard",
        *,
        top: int | None = None,
        bound: int = similarities.BOUND,
        frame: FrameName | None = None,
    ) -> Any:
        """Compute how similar vertices are by their common neighbours: of every edge, of pairs, or the most similar.

        With d neighbours of a vertex and c common neighbours w of two: "jaccard" is c / (d + d' - c), "overlap"
        c / min(d, d'), "cosine" c / √(d·d'), "sorensen" (Dice) 2·c / (d + d'), "common_neighbors" c, "adamic_adar"
        Σ 1 / ln d(w), and "resource_allocation" Σ 1 / d(w). These are NetworkX's definitions where it has them.
        A common neighbour of two vertices has two neighbours, so no logarithm is 0; only a vertex with itself, in
        `pairs`, may have one of degree 1 and then an infinite "adamic_adar". Directions and weights are ignored.

        Parameters
        ----------
        pairs : table, array of shape (m, 2), sequence of pairs, or pair of lists or arrays, optional
            Pairs of vertices, as `edges` of `edge_support`, which need be no edges. A vertex that is not in the graph
            is refused. Default: every edge.
        measure : str
            One of the above. For every edge the first five follow from the triangles of the edges, which are cached.
        top : int, optional
            Up to 1,000: find so many of each vertex's most similar vertices, among all that have a common neighbour
            with it. One worker makes the neighbours of all vertices.
        bound : int
            Largest number of wedges, Σ d·(d - 1), that `top` walks; more is refused before it begins. A thread walks
            some 10^8 per second, or a tenth of that where most end at different vertices; a GPU some 10^9.
        frame : {"pandas", "polars", "cudf", "dask"}, optional
            As for `edge_support`.

        Returns
        -------
        DataFrame
            Columns "src", "dst" and the measure: int64 for "common_neighbors", else float64. Of every edge as in
            `edge_support`; of pairs in their order and as they were given, also repeated ones. With `top`: by ascending
            "src", for each by descending value, and by ascending "dst" where values are equal; a vertex without a
            common neighbour with another is in no row. Counts are exact. "cosine" has a relative error of at most
            2^-51, the other quotients one of 2^-53; sums over c common neighbours at most (c + 3)·2^-53, and may
            differ in the last digits between plans and between runs on a cluster.

        Raises
        ------
        InputError
            As `edge_support`. Or a vertex of `pairs` is not in the graph; their neighbours do not fit one worker; or
            the wedges of `top` exceed the bound. The errors have the figures.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3]))
        >>> graph.similarity()
           src  dst   jaccard
        0    0    1  0.333333
        1    0    2  0.250000
        2    1    2  0.250000
        3    2    3  0.000000
        >>> graph.similarity([(0, 3), (3, 2)], "common_neighbors")
           src  dst  common_neighbors
        0    0    3                 1
        1    3    2                 0
        >>> graph.similarity(measure="cosine", top=1).round(3)
           src  dst  cosine
        0    0    3   0.707
        1    1    3   0.707
        2    2    0   0.408
        3    3    0   0.707
        """
        return similarities.similarity(self._context, pairs, measure, top, bound, frame)

    @overload
    def edge_list(self, *, frame: DaskFrame = ...) -> dd.DataFrame: ...
    @overload
    def edge_list(self, *, frame: Pandas) -> pd.DataFrame: ...
    @overload
    def edge_list(self, *, frame: Polars) -> pl.DataFrame: ...
    @overload
    def edge_list(self, *, frame: Cudf) -> Any: ...
    @said_in_one_line
    def edge_list(self, *, frame: FrameName = "dask") -> Any:
        """Return what was read and cleaned: every undirected edge once, without loops and directions.

        As `oriented_edges`, which returns the same edges as they are counted.

        Parameters
        ----------
        frame : {"dask", "pandas", "polars", "cudf"}
            As for `oriented_edges`.

        Returns
        -------
        DataFrame
            Columns "src" and "dst", the caller's ids, src < dst. Rows ascend by both, and are numbered from 0.

        Raises
        ------
        InputError, CountError
            As `oriented_edges`.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2, 3, 3], [1, 2, 0, 3, 2, 3]))
        >>> graph.edge_list().compute()
           src  dst
        0    0    1
        1    0    2
        2    1    2
        3    2    3
        """
        return frame_of_edges(self._context, frame, oriented=False)

    @overload
    def oriented_edges(self, *, frame: DaskFrame = ...) -> dd.DataFrame: ...
    @overload
    def oriented_edges(self, *, frame: Pandas) -> pd.DataFrame: ...
    @overload
    def oriented_edges(self, *, frame: Polars) -> pl.DataFrame: ...
    @overload
    def oriented_edges(self, *, frame: Cudf) -> Any: ...
    @said_in_one_line
    def oriented_edges(self, *, frame: FrameName = "dask") -> Any:
        """Return the clean, oriented edges as a data frame whose partitions stay where they are made.

        Each undirected edge occurs once, with the source that the orientation gives it: in `degree` order the end of
        lower degree, or, if one process prepared the graph as one block without `memory`, the end that fewer rows name.
        The workers make the partitions from their blocks, and none goes through the client.

        Parameters
        ----------
        frame : {"dask", "pandas", "polars", "cudf"}
            As for `triangles`. The partitions of a Dask DataFrame are cuDF if GPUs count, which needs dask_cudf; within
            `memory` they are made on the host and kept in files.

        Returns
        -------
        DataFrame
            Columns "src" and "dst", the caller's ids. Rows ascend by both, across all partitions of a Dask DataFrame,
            and are numbered from 0. A Dask DataFrame is persisted and lives as long as the workers.

        Raises
        ------
        InputError
            The whole frame exceeds the memory budget of the caller's process, or dask_cudf is not installed for cuDF
            partitions.
        CountError
            Edges were lost: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2, 3], [1, 2, 0, 3, 2]))
        >>> graph.oriented_edges().compute()
           src  dst
        0    0    2
        1    1    0
        2    1    2
        3    3    2
        """
        return frame_of_edges(self._context, frame, oriented=True)

    @overload
    def clustering(
        self, weight: str | int | None = ..., *, frame: Pandas | None = ..., vertices: Any = ...
    ) -> pd.Series[float]: ...
    @overload
    def clustering(self, weight: str | int | None = ..., *, frame: Polars, vertices: Any = ...) -> pl.DataFrame: ...
    @overload
    def clustering(self, weight: str | int | None = ..., *, frame: DaskFrame, vertices: Any = ...) -> dd.Series: ...
    @overload
    def clustering(self, weight: str | int | None = ..., *, frame: Cudf, vertices: Any = ...) -> Any: ...
    @said_in_one_line
    def clustering(
        self, weight: str | int | None = None, *, frame: FrameName | None = None, vertices: Any = None
    ) -> Any:
        """Compute every vertex's local clustering coefficient: the share of its pairs of neighbours that are adjacent.

        If the graph was prepared with directions, it is Fagiolo's: the share of its possible directed triangles.

        Parameters
        ----------
        weight : str or int, optional
            Onnela's coefficient: each triangle counts with the geometric mean of its edges' weights, relative to the
            largest weight. The name with which the graph was prepared. A GPU adds in any order, so that the last digits
            may differ from one call to the next.
        frame, vertices
            As for `triangles`.

        Returns
        -------
        Series of float64
            Named "clustering", by the caller's ids in ascending order, of the vertices with an edge
            after clean-up; 0 for a vertex with one neighbour, as in NetworkX.

        Raises
        ------
        InputError, CountError
            As `triangles`. Or the graph has no weights of that name, the largest is 0, or a task with numbers of its
            edges does not fit a worker.

        Examples
        --------
        >>> import dasktc
        >>> dasktc.prepare(([0, 1, 2, 2, 2], [1, 2, 0, 3, 4])).clustering().round(3).to_dict()
        {0: 1.0, 1: 1.0, 2: 0.167, 3: 0.0, 4: 0.0}
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a": [0, 1, 2], "b": [1, 2, 0], "w": [8, 1, 1]})
        >>> dasktc.prepare(frame, weight="w").clustering(weight="w").round(3).to_dict()
        {0: 0.25, 1: 0.25, 2: 0.25}
        >>> dasktc.prepare(frame, directed=True).clustering().to_dict()
        {0: 0.5, 1: 0.5, 2: 0.5}
        """
        if weight is not None or self.is_directed():
            return weighted_clustering.clustering(self._context, weight, frame, vertices)
        return measures.of_vertices(self._context, measures.CLUSTERING, frame, vertices)

    @overload
    def measures(self, *, frame: Pandas | None = ..., vertices: Any = ...) -> pd.DataFrame: ...
    @overload
    def measures(self, *, frame: Polars, vertices: Any = ...) -> pl.DataFrame: ...
    @overload
    def measures(self, *, frame: DaskFrame, vertices: Any = ...) -> dd.DataFrame: ...
    @overload
    def measures(self, *, frame: Cudf, vertices: Any = ...) -> Any: ...
    @said_in_one_line
    def measures(self, *, frame: FrameName | None = None, vertices: Any = None) -> Any:
        """Compute every vertex's degree, triangles and local clustering coefficient.

        Parameters
        ----------
        frame, vertices
            As for `triangles`.

        Returns
        -------
        DataFrame
            Columns "degree" and "triangles", int64, and "clustering", float64, by the caller's ids.

        Raises
        ------
        InputError, CountError
            As `triangles`.

        Examples
        --------
        >>> import dasktc
        >>> dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3])).measures().round(3)  # doctest: +NORMALIZE_WHITESPACE
                degree  triangles  clustering
        vertex
        0            2          1       1.000
        1            2          1       1.000
        2            3          1       0.333
        3            1          0       0.000
        """
        return measures.of_vertices(self._context, measures.MEASURES, frame, vertices)

    def is_directed(self) -> bool:
        """Whether the graph was prepared with directions."""
        attributes = self._context.prepared.attributes
        return attributes is not None and attributes.directed

    def is_multigraph(self) -> bool:
        """Return False, as NetworkX asks: repeated edges were dropped when it was prepared."""
        return False

    @overload
    def square_clustering(self, *, frame: Pandas | None = ..., vertices: Any = ...) -> pd.Series[float]: ...
    @overload
    def square_clustering(self, *, frame: Polars, vertices: Any = ...) -> pl.DataFrame: ...
    @overload
    def square_clustering(self, *, frame: DaskFrame, vertices: Any = ...) -> dd.Series: ...
    @overload
    def square_clustering(self, *, frame: Cudf, vertices: Any = ...) -> Any: ...
    @said_in_one_line
    def square_clustering(self, *, frame: FrameName | None = None, vertices: Any = None) -> Any:
        """Compute every vertex's square clustering coefficient: the share of its possible 4-cycles that exist.

        Defined as in NetworkX; directions are ignored.

        Parameters
        ----------
        frame, vertices
            As for `triangles`.

        Returns
        -------
        Series of float64
            Named "square_clustering", by the caller's ids; 0 if no cycle is possible.

        Raises
        ------
        InputError
            One worker, which receives the whole graph, has not enough memory.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> dasktc.prepare(([0, 1, 2, 3, 0], [1, 2, 3, 0, 4])).square_clustering().round(3).to_dict()
        {0: 0.333, 1: 0.5, 2: 1.0, 3: 0.5, 4: 0.0}
        """
        return square_clustering(self._context, frame, vertices)

    @said_in_one_line
    def triad_census(
        self,
        isolated: int = 0,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | bool | None = None,
    ) -> dict[str, int]:
        """Count the vertex triples of a directed graph by type: which of the three pairs are adjacent, and how.

        Parameters
        ----------
        isolated : int
            Number of vertices without an edge, which a source does not list but which are in triples, too.
        checkpoint : path, optional
            Folder that keeps the results of finished tasks, as of `survey`.
        progress : callable (stage, done, total) or bool, optional

        Returns
        -------
        dict of str to int
            By the 16 types "003" to "300" of Holland and Leinhardt, in NetworkX's order. The digits of a type are its
            numbers of mutual, single and missing edges.

        Raises
        ------
        InputError
            The graph was prepared without directions, or a task with numbers of its edges does not fit a worker; the
            checkpoint is of another question.
        DasktcError
            The checkpoint cannot be written.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> census = dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3]), directed=True).triad_census()
        >>> {name: count for name, count in census.items() if count}
        {'012': 1, '021D': 1, '021C': 1, '030C': 1}
        """
        with self._showing(progress, "triad census") as watcher:
            return triad_census(self._context, isolated, CountOptions(checkpoint=checkpoint, progress=watcher))

    @said_in_one_line
    def transitivity(self) -> float:
        """Compute the share of all pairs of neighbours that are adjacent: 3·triangles / Σ d·(d - 1)/2.

        Returns
        -------
        float
            The quotient of two exact integers; 0 if no vertex has two neighbours.

        Raises
        ------
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3])).transitivity()
        0.6
        """
        return measures.transitivity(self._context)

    @said_in_one_line
    def average_clustering(self, weight: str | int | None = None) -> float:
        """Average the local clustering coefficients over the vertices with an edge after clean-up.

        NetworkX includes isolated vertices: to compare, multiply by `vertices` and divide by the number of all nodes.

        Parameters
        ----------
        weight : str or int, optional
            As for `clustering`.

        Returns
        -------
        float
            0 for a graph without edges.

        Raises
        ------
        InputError, CountError
            As `triangles`.

        Examples
        --------
        >>> import dasktc
        >>> dasktc.prepare(([0, 1, 2], [1, 2, 0])).average_clustering()
        1.0
        """
        if weight is not None or self.is_directed():
            return weighted_clustering.average_clustering(self._context, weight)
        return measures.average_clustering(self._context)

    @said_in_one_line
    def plot_degrees(self, ax: Axes | None = None) -> Axes:
        """Plot the number of vertices of each degree, on logarithmic axes.

        The workers count in logarithmic bins, exact below 8 and four per octave above; only the bins leave them.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: the axes of a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InputError
            matplotlib is not installed.
        """
        return plots.plot_degrees(self._context, ax)

    @said_in_one_line
    def plot_clustering(self, ax: Axes | None = None) -> Axes:
        """Plot the mean clustering coefficient of the vertices of each degree from 2 on; as `plot_degrees`.

        Triangles by vertex are counted unless they are already known.

        Raises
        ------
        InputError, CountError
            As `triangles`, or matplotlib is not installed.
        """
        return plots.plot_clustering(self._context, ax)

    @said_in_one_line
    def plot_support(self, ax: Axes | None = None) -> Axes:
        """Plot the number of edges of each support, on logarithmic axes; as `plot_degrees`.

        Triangles by edge are counted unless they are already known.

        Raises
        ------
        InputError, CountError
            As `edge_support`, or matplotlib is not installed.
        """
        return plots.plot_support(self._context, ax)

    @overload
    def core_number(self, *, frame: Pandas | None = ..., vertices: Any = ...) -> pd.Series[int]: ...
    @overload
    def core_number(self, *, frame: Polars, vertices: Any = ...) -> pl.DataFrame: ...
    @overload
    def core_number(self, *, frame: DaskFrame, vertices: Any = ...) -> dd.Series: ...
    @overload
    def core_number(self, *, frame: Cudf, vertices: Any = ...) -> Any: ...
    @said_in_one_line
    def core_number(self, *, frame: FrameName | None = None, vertices: Any = None) -> Any:
        """Compute the core number of every vertex: the largest k of a k-core that contains it.

        The k-core is the largest subgraph each of whose vertices has k neighbours in it (Seidman, Social Networks 5,
        1983). This equals NetworkX's `core_number`, and cuGraph's for an undirected graph, where each edge counts once
        at each end (cuGraph's `degree_type="bidirectional"`, if it takes effect, counts both directions and returns
        twice as much). One worker computes it and receives the whole graph.

        Parameters
        ----------
        frame, vertices
            As for `triangles`.

        Returns
        -------
        Series of int64
            Named "core_number", by the caller's ids in ascending order, of the vertices with an edge after clean-up.

        Raises
        ------
        InputError
            One worker has not enough memory for the whole graph and every vertex's neighbours, or the vertices did not
            fit this process; the error has the figures.

        Examples
        --------
        >>> import dasktc
        >>> dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3])).core_number().to_dict()
        {0: 2, 1: 2, 2: 2, 3: 1}
        """
        return trusses.core_number(self._context, frame, vertices)

    @overload
    def truss(self, k: int | None = ..., *, frame: Pandas | None = ..., edges: Any = ...) -> pd.DataFrame: ...
    @overload
    def truss(self, k: int | None = ..., *, frame: Polars, edges: Any = ...) -> pl.DataFrame: ...
    @overload
    def truss(self, k: int | None = ..., *, frame: DaskFrame, edges: Any = ...) -> dd.DataFrame: ...
    @overload
    def truss(self, k: int | None = ..., *, frame: Cudf, edges: Any = ...) -> Any: ...
    @said_in_one_line
    def truss(self, k: int | None = None, *, frame: FrameName | None = None, edges: Any = None) -> Any:
        """Compute the trussness of every edge, the largest k of a k-truss that contains it; with `k` find that k-truss.

        The k-truss is the largest subgraph each of whose edges is in k - 2 triangles of the subgraph (Cohen, Trusses,
        2008), as in the `k_truss` of NetworkX and cuGraph; other authors number the same subgraph k - 2 or k - 1.
        Every edge is in the 2-truss. One worker peels the edges and receives the whole graph; of a graph that it cannot
        peel, edges are first dropped in rounds, where the blocks are. One k-truss takes less time than all, because
        triangles are counted only in the (k - 1)-core.

        Parameters
        ----------
        k : int, optional
            k of the truss to find; 2 or less: all edges.
        frame, edges
            As for `edge_support`; `edges` only without `k`.

        Returns
        -------
        DataFrame
            One row per undirected edge, as in `edge_support`: "src", "dst" and "trussness", int64, at least 2. With `k`
            one row per edge of the k-truss, with "support", int64, its triangles within the k-truss.

        Raises
        ------
        InputError
            A worker has not enough memory to count the triangles of a block's edges, or of a graph whose blocks have
            copies of edges to peel all of them; the error has the figures. Or `edges` are given with `k`.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3]))
        >>> graph.truss()
           src  dst  trussness
        0    0    1          3
        1    0    2          3
        2    1    2          3
        3    2    3          2
        >>> graph.truss(3)
           src  dst  support
        0    0    1        1
        1    0    2        1
        2    1    2        1
        """
        if k is None:
            return trusses.trussness(self._context, frame, edges)
        if edges is not None:
            raise InputError(
                f"edges are given with k={shown(k)}: a k-truss has edges of its own, and those that are asked for may "
                "be in none; leave out k for their trussness, or edges for the k-truss"
            )
        return trusses.k_truss(self._context, k, frame)

    @overload
    def triangle_list(self, limit: int | None = ..., *, frame: Pandas | None = ...) -> pd.DataFrame: ...
    @overload
    def triangle_list(self, limit: int | None = ..., *, frame: Polars) -> pl.DataFrame: ...
    @overload
    def triangle_list(self, limit: int | None = ..., *, frame: DaskFrame) -> dd.DataFrame: ...
    @overload
    def triangle_list(self, limit: int | None = ..., *, frame: Cudf) -> Any: ...
    @said_in_one_line
    def triangle_list(self, limit: int | None = None, *, frame: FrameName | None = None) -> Any:
        """List the triangles.

        Parameters
        ----------
        limit : int, optional
            Largest number of triangles to list; nothing is counted if the first rows have enough. The choice depends
            only on the graph, its plan and the limit. Without a limit the list is complete, and beyond 1,000,000
            triangles refused unless it is a Dask DataFrame.
        frame : {"pandas", "polars", "cudf", "dask"}, optional
            As for `triangles`.

        Returns
        -------
        DataFrame
            Columns "u", "v", "w": the caller's ids, u < v < w. Rows ascend across all partitions and are numbered
            from 0.

        Raises
        ------
        InputError
            `limit` is negative, or missing for a longer list; the error states the number of triangles.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2, 3], [1, 2, 0, 3, 1]))
        >>> graph.triangle_list()
           u  v  w
        0  0  1  2
        1  1  2  3
        >>> len(graph.triangle_list(limit=1))
        1
        """
        return triangle_list(self._context, limit, frame)

    @overload
    def survey(
        self,
        function: Callable[[Batch], Result],
        columns: Sequence[str] = (),
        reduce: Literal["sum"] = "sum",
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | bool | None = None,
    ) -> Result: ...
    @overload
    def survey(
        self,
        function: Callable[[Batch], Any],
        columns: Sequence[str] = (),
        *,
        reduce: Fold[Result],
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | bool | None = None,
    ) -> Result: ...
    @said_in_one_line
    def survey(
        self,
        function: Callable[[Batch], Any],
        columns: Sequence[str] = (),
        reduce: Literal["sum"] | Fold[Any] = "sum",
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | bool | None = None,
    ) -> Any:
        """Summarise all triangles by a function, which is called with batches of them where the blocks are.

        Every triangle {u, v, w} is in one batch, once. The counting tasks make the batches, on the workers that hold
        the graph, and only what the function returned travels, added up. Functions run in several threads at a time,
        and are sent with every task: large arrays belong into columns. After TriPoll (Steil et al., SC'21).

        Parameters
        ----------
        function : callable (dict of str to array) -> object
            It is given NumPy arrays, on a GPU CuPy arrays there, one entry for each triangle of the batch: at most
            65,536, or as many as the longest row of a block has entries; on a GPU at most 2^25, or what memory holds.

            * "u", "v", "w", int64: numbers of the vertices, their positions among the ids in ascending order, as in the
              index of `triangles`. Which vertex of a triangle is u, is the graph's choice.
            * for each column of vertices, such as "group": "group_u", "group_v", "group_w";
            * for each column of edges, such as "time": "time_uv", "time_uw", "time_vw".

            Text and categories are int32 codes, whose meaning is in `Graph.columns`.
        columns : sequence of str
            Names of columns with which the graph was prepared.
        reduce : {"sum"} or Fold
            How results are combined. "sum": numbers; arrays of one shape, entry by entry; dicts by key; pandas Series
            and DataFrames by index; those of CuPy and cuDF are copied to the host. Integers are exact: arrays whose
            sums pass 62 bits are refused. If there is no triangle, the function is called once with empty arrays.
        checkpoint : path, optional
            Folder that keeps the results of finished tasks, as of `triangle_count`: the same survey of the same graph
            goes on where it ended. A function is the same if its compiled code is, and what it encloses and reads from
            its module: values, and functions there. Changes of classes and of other modules are not seen. Results are
            kept as pickles, so nobody else should write to the folder.
        progress : callable (stage, done, total) or bool, optional

        Returns
        -------
        object
            The sum, or the result of the fold.

        Raises
        ------
        InputError
            The graph has no such column; a result cannot be added; a task, whose memory the error states, does not
            fit a worker; a function raises what ends a process, such as `SystemExit`; the checkpoint is of another
            survey; or it cannot keep a result, or tell the function.
        DasktcError
            The checkpoint cannot be written.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2, 3], [1, 2, 0, 3, 1]))
        >>> graph.survey(lambda batch: len(batch["u"]))
        2
        """
        with self._showing(progress, "survey") as watcher:
            return survey(
                self._context, function, columns, reduce, CountOptions(checkpoint=checkpoint, progress=watcher)
            )

    @said_in_one_line
    def triangle_types(
        self,
        labels: Any,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | bool | None = None,
    ) -> pd.DataFrame:
        """Count the triangles by the labels of their vertices, beside what chance would give.

        Parameters
        ----------
        labels : str, Series or dict
            A column of vertices with which the graph was prepared, or labels by id: at most 64 different ones.
        checkpoint : path, optional
            Folder that keeps the results of finished tasks, as of `survey`.
        progress : callable (stage, done, total) or bool, optional

        Returns
        -------
        DataFrame
            A row for each multiset of three labels, "a" <= "b" <= "c", with "triangles", int64, and "expected",
            float64: how many of all triangles would have these labels if the ends of all edges were joined at random,
            in the configuration model (Newman, SIAM Review 45, 2003, section IV.B). There vertices i, j, k are a
            triangle with a probability proportional to x(i)·x(j)·x(k), x = d·(d - 1) of their degrees; "expected" is
            the sum of that over all sets of vertices with these labels, divided by that over all sets, times all
            triangles.

        Raises
        ------
        InputError
            A vertex has no label, or several; there are too many labels; or as `survey`.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2, 3], [1, 2, 0, 3, 1]))
        >>> graph.triangle_types({0: "x", 1: "x", 2: "x", 3: "y"}).round(2)
           a  b  c  triangles  expected
        0  x  x  x          1      0.75
        1  x  x  y          1      1.25
        2  x  y  y          0      0.00
        3  y  y  y          0      0.00
        """
        with self._showing(progress, "triangle types") as watcher:
            return triangle_types(self._context, labels, CountOptions(checkpoint=checkpoint, progress=watcher))

    @said_in_one_line
    def signed_triangles(
        self,
        sign: str,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | bool | None = None,
    ) -> dict[str, int]:
        """Count the triangles by the signs of their edges: balanced with an even number of negative ones.

        Parameters
        ----------
        sign : str
            A column of edges, 1 or -1, with which the graph was prepared.
        checkpoint : path, optional
            Folder that keeps the results of finished tasks, as of `survey`.
        progress : callable (stage, done, total) or bool, optional

        Returns
        -------
        dict of str to int
            "+++", "++-", "+--", "---", and "balanced", the first and the third, and "unbalanced" (Cartwright and
            Harary, Psychological Review 63, 1956).

        Raises
        ------
        InputError
            The graph has no such column; an edge has another value; or as `survey`.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"src": [0, 1, 2, 2, 3], "dst": [1, 2, 0, 3, 1], "sign": [1, -1, -1, 1, 1]})
        >>> dasktc.prepare(frame, edge_columns=["sign"]).signed_triangles("sign")
        {'+++': 0, '++-': 1, '+--': 1, '---': 0, 'balanced': 1, 'unbalanced': 1}
        """
        with self._showing(progress, "signed triangles") as watcher:
            return signed_triangles(self._context, sign, CountOptions(checkpoint=checkpoint, progress=watcher))

    @said_in_one_line
    def temporal_triangles(
        self,
        time: str,
        *,
        window: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | bool | None = None,
    ) -> TemporalTriangles:
        """Count the triangles by the times of their edges: how soon they open and close.

        Parameters
        ----------
        time : str
            A column of edges, integers, with which the graph was prepared.
        window : int, optional
            Also count the triangles whose edges lie at most this time apart.
        checkpoint : path, optional
            Folder that keeps the results of finished tasks, as of `survey`.
        progress : callable (stage, done, total) or bool, optional

        Returns
        -------
        TemporalTriangles
            With the times t1 <= t2 <= t3 of a triangle: the numbers of triangles by opening time t2 - t1 and closing
            time t3 - t1, in powers of two (TriPoll, SC'21), and those that close within the window.

        Raises
        ------
        InputError
            The graph has no such column, or it has no integers; the window is no time; or as `survey`.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"src": [0, 1, 2, 2, 3], "dst": [1, 2, 0, 3, 1], "time": [0, 1, 9, 2, 3]})
        >>> found = dasktc.prepare(frame, edge_columns=["time"]).temporal_triangles("time", window=5)
        >>> found.triangles, found.within
        (2, 1)
        >>> found.histogram
           opening  closing  triangles
        0        1        2          1
        1        1        8          1
        """
        with self._showing(progress, "temporal triangles") as watcher:
            return temporal_triangles(
                self._context, time, window, CountOptions(checkpoint=checkpoint, progress=watcher)
            )

    @said_in_one_line
    def estimate(
        self, *, error: float = 0.01, confidence: float = 0.95, seed: int = 0, progress: Progress | bool | None = None
    ) -> TriangleEstimate:
        """Estimate the number of triangles from a sample of the wedges; if that saves nothing, count them.

        Parameters
        ----------
        error : float
            Half the width of the interval, relative to the estimate, between 0 and 1.
        confidence : float
            Share of the seeds, between 0 and 1, for which the interval contains the number.
        seed : int
            Seed of the sample.
        progress : callable (stage, done, total) or bool, optional

        Returns
        -------
        TriangleEstimate

        Raises
        ------
        InputError
            `error` or `confidence` is not between 0 and 1.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> dasktc.prepare(([0, 1, 2], [1, 2, 0])).estimate().value
        1
        """
        with self._showing(progress, "estimate") as watcher:
            return estimate(self._context, error, confidence, seed, watcher)

    @said_in_one_line
    def update(self, *, add: Any = None, remove: Any = None) -> Change[Graph]:
        """Add and remove edges: return the change of the triangles and a new graph. This graph is not changed.

        Edges are removed first, so an edge in both `add` and `remove` is in the new graph. Loops, repeated rows,
        removed edges that do not exist and added edges that exist change nothing. The work is a pass over the blocks,
        and a search for each neighbour of the end of a changed edge that has fewer.

        Parameters
        ----------
        add, remove : source, optional
            Edges as for `prepare`: a DataFrame, an (m, 2) array, a pair of arrays, a list of pairs, a path. Their ids
            must have the type of the graph's ids.

        Returns
        -------
        Change
            `.triangles`, the exact difference; `.vertices`, the nonzero differences by vertex; `.graph`, the new graph.
            The same workers hold the new graph, and its counts are checked against its own degrees. Workers that
            `prepare` started end when both graphs are closed.

        Raises
        ------
        InputError
            The scheme puts an edge into several blocks; the order is not `degree`; the graph has weights, directions or
            columns; or there is not enough memory for a block and its copy.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3]))
        >>> change = graph.update(add=([3], [1]), remove=([0], [1]))
        >>> change.triangles, change.vertices.to_dict()
        (0, {0: -1, 3: 1})
        >>> int(change.graph.triangle_count())
        1
        """
        change = update(self._context, add, remove)
        graph = self._shared_with(await_results(change.graph))
        return Change(change.triangles, change.vertices, change.added, change.removed, graph)

    @said_in_one_line
    def cliques(self, k: int, *, bound: int = BOUND, progress: Progress | bool | None = None) -> int:
        """Count the cliques of `k` vertices: sets of pairwise adjacent vertices.

        Parameters
        ----------
        k : {3, 4, 5}
        bound : int
            Largest work, in 64-bit words that are ANDed; more is refused before it begins. A thread ANDs about 3 · 10^8
            words per second. The work for k = 3 is at most the wedges; for k = 4 it follows from the triangles, for
            k = 5 from the 4-cliques, which are counted first. The log states each before it begins.
        progress : callable (stage, done, total) or bool, optional

        Returns
        -------
        int
            The exact number.

        Raises
        ------
        InputError
            The scheme is not `whole` (the error states the memory that `whole` needs); the bits of the longest row do
            not fit a worker; or the work exceeds the bound.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> from itertools import combinations
        >>> ends = zip(*combinations(range(6), 2))
        >>> graph = dasktc.prepare(tuple(map(list, ends)), method=dasktc.Method(partition="whole"))
        >>> [graph.cliques(k) for k in (3, 4, 5)]
        [20, 15, 6]
        """
        with self._showing(progress, "cliques") as watcher:
            return clique_count(self._context, k, bound, watcher).cliques

    @said_in_one_line
    def motifs(
        self, *, induced: bool = True, bound: int = BOUND, progress: Progress | bool | None = None
    ) -> dict[str, int]:
        """Count the connected subgraphs of four vertices by their six kinds.

        A path has three edges in a row, a star three at one vertex, a cycle four; a paw is a triangle with one more
        edge at a corner, a diamond a clique without one edge. They are not listed: their numbers follow from degrees,
        triangles, cycles and cliques (Pinar, Seshadhri and Vishal, ESCAPE, WWW 2017). Cycles are counted on the CPU
        of the workers, from lists of all neighbours that each of them receives.

        Parameters
        ----------
        induced : bool
            Count sets of four vertices by the edges among them, each set once; else all subgraphs, also those that are
            parts of other kinds: a clique has four stars.
        bound : int
            As for `cliques`.
        progress : callable (stage, done, total) or bool, optional

        Returns
        -------
        dict of str to int
            The exact numbers of "path", "star", "cycle", "paw", "diamond" and "clique".

        Raises
        ------
        InputError
            As `cliques`; or the neighbours of all vertices do not fit a worker.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2, 3], [1, 2, 0, 3, 4]))
        >>> graph.motifs()
        {'path': 2, 'star': 0, 'cycle': 0, 'paw': 1, 'diamond': 0, 'clique': 0}
        >>> graph.motifs(induced=False)
        {'path': 4, 'star': 1, 'cycle': 0, 'paw': 1, 'diamond': 0, 'clique': 0}
        """
        check_keywords(induced=induced)
        with self._showing(progress, "motifs") as watcher:
            return motifs(self._context, induced, bound, watcher)


def await_results(context: CountingContext) -> CountingContext:
    """Wait for what workers keep of a graph, also for vectors that are made on first access.

    `publish_dataset` keeps the results of which the scheduler knows when it is called; what that call makes is lost.
    """
    executor = context.executor
    if _keeps_in_memory(executor) and not isinstance(executor, LocalExecutor):
        source = replace(context.prepared.source, labels=None)  # the client's own objects
        executor.wait(futures_in(replace(context.prepared, source=source), context.blocks))
    return context


def _keeps_in_memory(executor: Any) -> bool:
    """Whether blocks are neither in files nor on devices of the processes that made them."""
    return type(getattr(executor, "store", None)) is MemoryStore


def _copied(prepared: Prepared, blocks: Blocks, options: Options, threads: int) -> Graph:
    executor = LocalExecutor(threads=threads, backend=lazy_backend(options.chosen_backend))
    return Graph(CountingContext(executor, prepared, blocks, options))


def _attached(prepared: Prepared, blocks: Blocks, options: Options, patience: float, retries: int) -> Graph:
    executor = AttachedExecutor(futures_in(prepared, blocks), options.chosen_backend, patience, retries)
    return Graph(CountingContext(executor, prepared, blocks, options))
