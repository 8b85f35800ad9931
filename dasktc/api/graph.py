"""A prepared graph, in blocks on the workers, and what can be asked of it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.counting import measures
from dasktc.counting.context import CountingContext
from dasktc.counting.count import count
from dasktc.counting.result import TriangleCount
from dasktc.counting.triangle_list import triangle_list
from dasktc.options import check_keywords
from dasktc.pipeline.prepare import Progress, plan_again

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Graph"]


class Graph(CountingContext):
    """A graph that is ready to be counted, again and again; made by `dasktc.prepare`.

    Its blocks stay on the workers (without a client, in this process) for as long as it lives.
    """

    @said_in_one_line
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
        check_keywords(verify=verify, seed=seed, checkpoint=checkpoint, progress=progress)
        if kernel is not None:
            options = replace(self.options, kernel=kernel, reorder=self.options.chosen_reorder)
            prepared = replace(self.prepared, plan=plan_again(self.executor, self.prepared, options))
            other = replace(self, prepared=prepared, options=options)
            return other.triangle_count(verify=verify, seed=seed, checkpoint=checkpoint, progress=progress)
        return count(self, verify=verify, seed=seed, checkpoint=checkpoint, progress=progress)

    @said_in_one_line
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

    @said_in_one_line
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

    @said_in_one_line
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

    @said_in_one_line
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

    @said_in_one_line
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

    @said_in_one_line
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
        return triangle_list(self, limit)
