"""A prepared graph, in blocks on the workers, and what can be asked of it."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dasktc.backends.csr import TaskCount
from dasktc.counting import measures
from dasktc.counting import triangle_list as lists
from dasktc.counting.checkpoint import fingerprint, opened
from dasktc.counting.result import TriangleCount
from dasktc.counting.tasks import Blocks, Job, Record, add_up, check, count_jobs, jobs, verify_records
from dasktc.errors import CountError, InputError
from dasktc.executors.dask.executor import Tasks
from dasktc.options import Options
from dasktc.pipeline.prepare import Prepared, Progress, plan_again, silent
from dasktc.planning.plan import Plan

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Graph"]


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph that is ready to be counted, again and again; made by `dasktc.prepare`.

    Its blocks stay on the workers (without a client, in this process) for as long as it lives.
    """

    tasks: Tasks = field(repr=False)
    prepared: Prepared = field(repr=False)
    blocks: Blocks = field(repr=False)
    options: Options

    @property
    def plan(self) -> Plan:
        """The plan of its count."""
        return self.prepared.plan

    @property
    def vertices(self) -> int:
        """Vertices with an edge after clean-up."""
        return self.plan.vertices

    @property
    def edges(self) -> int:
        """Distinct undirected edges after clean-up."""
        return self.plan.edges

    def triangle_count(
        self,
        *,
        kernel: str | None = None,
        verify: float = 0.0,
        seed: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> TriangleCount:
        """Count the triangles.

        Parameters
        ----------
        kernel : str, optional
            Default: the one that the graph was prepared for.
        verify : float
            Share of the tasks, 0 to 1, that are counted again by another kernel.
        seed : int
            Of the choice of those tasks.
        checkpoint : path, optional
            Folder that keeps the results of finished tasks, made if it is not there. The same count with the
            same folder goes on where an earlier one ended, however it ended.
        progress : callable (stage, done, total), optional

        Returns
        -------
        TriangleCount

        Raises
        ------
        InputError
            The checkpoint is of another count, or another count writes to it.
        DasktcError
            The checkpoint cannot be written.
        CountError
            A check failed: there is no result.
        """
        if not 0 <= verify <= 1:
            raise InputError(f"--verify {verify} is not a share: give a number from 0 to 1")
        if kernel is not None:
            options = replace(self.options, kernel=kernel, reorder=self.options.chosen_reorder)
            prepared = replace(self.prepared, plan=plan_again(self.tasks, self.prepared, options))
            other = replace(self, prepared=prepared, options=options)
            return other.triangle_count(verify=verify, seed=seed, checkpoint=checkpoint, progress=progress)
        began, report, plan = time.perf_counter(), progress or silent, self.plan
        self.tasks.reserve(plan.bytes_per_task)
        work = jobs(plan, self.options.chosen_kernel, self.options.chosen_backend)
        # 7. Count, a task a block triple and split.
        records, resumed = self._counted(work, checkpoint, report)
        ended = time.perf_counter()
        # 8. Check, and add up.
        check(records, plan, self.prepared.wedges)
        report("sum", 0, 1)
        total = add_up(self.tasks, records)
        verified = 0
        if verify:
            report("verify", 0, 1)
            verified = verify_records(self.tasks, self.blocks, records, verify, seed)
        result = self._result(sorted(records), total, ended - began, began)
        return replace(result, verified=verified, resumed=resumed)

    def _counted(
        self, work: list[Job], folder: str | os.PathLike[str] | None, report: Progress
    ) -> tuple[list[Record], int]:
        """Count what no checkpoint has; the number is that of the tasks which it had."""
        kept = nullcontext() if folder is None else opened(folder, fingerprint(self), work)
        with kept as checkpoint:
            records = [] if checkpoint is None else list(checkpoint.records.values())
            resumed = len(records)
            report("count", resumed, len(work))
            left = work if checkpoint is None else [job for job in work if job not in checkpoint.records]
            for record in count_jobs(self.tasks, self.blocks, left):
                records.append(record)
                if checkpoint is not None:
                    checkpoint.add(record)
                report("count", len(records), len(work))
        return records, resumed

    def triangles(self) -> pd.Series[int]:
        """Count the triangles of every vertex.

        Returns
        -------
        pandas.Series of int64
            Named "triangles", by the caller's ids in ascending order, of the vertices with an edge
            after clean-up.

        Raises
        ------
        InputError
            A task needs more memory than a worker has: it keeps a number for every edge. Or vertices did not fit this
            process, which would get a number of each.
        CountError
            A check failed: there is no result.

        Examples
        --------
        >>> import dasktc
        >>> graph = dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3]))
        >>> graph.triangles().to_dict()
        {0: 1, 1: 1, 2: 1, 3: 0}
        """
        return measures.triangles(self)

    def edge_support(self) -> Any:
        """Count the triangles of every edge.

        Returns
        -------
        pandas.DataFrame, or with a client dask.dataframe.DataFrame
            One row an undirected edge: "src" below "dst", the caller's ids, and "support", int64. Rows
            ascend; those of a Dask DataFrame do so in each of its partitions, which stay on the
            workers for as long as it lives.

        Raises
        ------
        InputError, CountError
            As `triangles`.

        Examples
        --------
        >>> import dasktc
        >>> dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3])).edge_support()
           src  dst  support
        0    0    1        1
        1    0    2        1
        2    1    2        1
        3    2    3        0
        """
        return measures.edge_support(self)

    def clustering(self) -> pd.Series[float]:
        """Compute every vertex's local clustering coefficient: the share of its pairs of neighbours that are joined.

        Returns
        -------
        pandas.Series of float64
            Named "clustering", by the caller's ids in ascending order, of the vertices with an edge
            after clean-up; 0 of a vertex with one neighbour, as in NetworkX.

        Raises
        ------
        InputError, CountError
            As `triangles`.

        Examples
        --------
        >>> import dasktc
        >>> dasktc.prepare(([0, 1, 2, 2, 2], [1, 2, 0, 3, 4])).clustering().round(3).to_dict()
        {0: 1.0, 1: 1.0, 2: 0.167, 3: 0.0, 4: 0.0}
        """
        return measures.clustering(self)

    def transitivity(self) -> float:
        """Compute the share of all pairs of neighbours that are joined: 3·triangles / Σ d·(d - 1)/2.

        Returns
        -------
        float
            The quotient of two exact integers; 0 where no vertex has two neighbours.

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
        return measures.transitivity(self)

    def average_clustering(self) -> float:
        """Average the local clustering coefficients over the vertices with an edge after clean-up.

        NetworkX counts isolated vertices too: multiply by `vertices` and divide by their number.

        Returns
        -------
        float
            0 of a graph without edges.

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
        return measures.average_clustering(self)

    def triangle_list(self, limit: int | None = None) -> pd.DataFrame:
        """List the triangles.

        Parameters
        ----------
        limit : int, optional
            List so many at most. Which ones depends on the graph and its plan alone. Without it
            the list is complete, and refused beyond 1,000,000 triangles.

        Returns
        -------
        pandas.DataFrame
            Columns "u", "v", "w": the caller's ids, u < v < w. Rows ascend.

        Raises
        ------
        InputError
            `limit` is negative, or missing for a longer list; the number of triangles is named.
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
        return lists.triangle_list(self, limit)

    def _result(self, records: list[Record], total: TaskCount, count: float, began: float) -> TriangleCount:
        known = self.prepared.source.triangles
        if known is not None and total.triangles != known:
            raise CountError(
                f"{total.triangles:,} triangles counted, {known:,} are known for {self.prepared.source.name}: "
                "the count or the generator is wrong; report this with the output of `dasktc info`"
            )
        before = self.prepared.seconds
        return TriangleCount(
            triangles=total.triangles,
            vertices=self.vertices,
            edges=self.edges,
            loops_dropped=self.prepared.loops,
            duplicates_dropped=self.prepared.rows - self.prepared.loops - self.edges,
            backend=self.options.chosen_backend,
            workers=self.tasks.workers,
            kernel=self.options.chosen_kernel,
            reorder=self.options.chosen_reorder,
            plan=self.plan,
            seconds={**before, "count": count, "total": sum(before.values()) + time.perf_counter() - began},
            wedges=total.wedges,
            probes=total.probes,
            max_collision=total.max_collision,
            verified=0,
            resumed=0,
            records=records,
        )
