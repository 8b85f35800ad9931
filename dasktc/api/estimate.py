"""`estimate` estimates the triangles of a source from a sample, with a confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dasktc.api.count import prepare
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.executors.progress.tracker import Progress
from dasktc.options import Backend, IdsOption, Method, MethodName, Options, RunOptions
from dasktc.questions.estimate import TriangleEstimate, check_options

if TYPE_CHECKING:
    from dasktc.executors.place import ClientLike

__all__ = ["estimate"]


@said_in_one_line
def estimate(
    source: Any,
    client: ClientLike | None = None,
    *,
    error: float = 0.01,
    confidence: float = 0.95,
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
    """Estimate the number of triangles of a graph from a sample of its wedges.

    The graph is read and prepared as for `triangle_count`; the sample replaces the count. If a sample would save
    nothing, all triangles are counted, and the estimate is marked as exact.

    Parameters
    ----------
    source, client
        As for `triangle_count`.
    error : float
        Half the width of the interval, relative to the estimate, between 0 and 1.
    confidence : float
        Share of the seeds, between 0 and 1, for which the interval contains the number.
    columns, ids, format, skip, backend, method, memory, threads, run, progress
        As for `triangle_count`. The sample's seed is that of the method: the same seed and the same plan give the same
        estimate, on the CPU and on a GPU.

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
    Wedge sampling on the oriented graph; `dasktc.questions.estimate` cites the papers and the methods compared.

    Examples
    --------
    >>> import dasktc
    >>> estimate = dasktc.estimate(([0, 1, 2, 2], [1, 2, 0, 3]))
    >>> estimate.value, estimate.low, estimate.high, estimate.exact
    (1, 1, 1, True)
    """
    error, confidence, seed = check_options(error, confidence, Options.by(method).seed)
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
