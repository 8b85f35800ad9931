"""`estimate_triangles` estimates the triangles of a source from a sample, with a confidence interval."""

from __future__ import annotations

from typing import Any

from dasktc.api.count import prepare
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.counting.estimate import TriangleEstimate, check_options
from dasktc.executors.progress import Progress

__all__ = ["estimate_triangles"]


@said_in_one_line
def estimate_triangles(
    source: Any,
    client: Any = None,
    *,
    error: float = 0.01,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Progress | bool | None = None,
    **options: Any,
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
    seed : int
        Seed of the sample and of `proxy`'s random parts. The same seed and the same plan give the same estimate, on the
        CPU and on a GPU.
    progress : callable (stage, done, total) or bool, optional
    **options
        As for `prepare`.

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
    Wedge sampling on the oriented graph; `dasktc.counting.estimate` cites the papers and the methods compared.

    Examples
    --------
    >>> import dasktc
    >>> estimate = dasktc.estimate_triangles(([0, 1, 2, 2], [1, 2, 0, 3]))
    >>> estimate.value, estimate.low, estimate.high, estimate.exact
    (1, 1, 1, True)
    """
    error, confidence, seed = check_options(error, confidence, seed)
    with prepare(source, client, seed=seed, progress=progress, **options) as graph:
        return graph.estimate(error=error, confidence=confidence, seed=seed, progress=progress)
