"""Triangles by the times of their edges: how long the first two edges, and all three, are apart.

Of the times t1 <= t2 <= t3 of a triangle's edges, the opening time is t2 - t1, after which two edges form a wedge, and
the closing time t3 - t1, after which the triangle is closed. They are counted in powers of two, as in the survey of
Steil et al., "TriPoll: Computing surveys of triangles in massive-scale temporal graphs with metadata", SC'21.
The kernel is `backends.cpu.times`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dasktc.answers.frames import array_module
from dasktc.backends.cpu.sizes import times_bytes
from dasktc.backends.csr import BlockTask
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError, shown
from dasktc.executors.base import Fold
from dasktc.options import CountOptions, whole_number
from dasktc.questions.sums import SUM
from dasktc.questions.survey import Batch, TaskArrays, counts_by_edges, edge_column
from dasktc.summary import Rows, Summarised

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TemporalTriangles", "temporal_triangles"]

Array = Any


@dataclass(frozen=True, repr=False)
class TemporalTriangles(Summarised):
    """The triangles of a graph by the times of their edges.

    Attributes
    ----------
    triangles : int
        All triangles.
    within : int or None
        Those whose three edges lie within the window; None without one.
    window : int or None
    histogram : DataFrame
        A row for each pair of bins that has triangles: "opening" and "closing", the least times of the bins, 0 or a
        power of two, whose times are below twice that; and "triangles", int64.
    """

    triangles: int
    within: int | None
    window: int | None
    histogram: pd.DataFrame

    def _rows(self) -> Rows:
        rows = [("triangles", f"{self.triangles:,}")]
        if self.within is not None:
            rows.append((f"within {self.window:,}", f"{self.within:,}"))
        return rows


@dataclass(frozen=True)
class TimeCounts:
    """The visitor that counts triangles by the bit lengths of their times, and behind those the ones in the window.

    On the CPU.
    """

    window: int
    fold: ClassVar[Fold[Any]] = SUM

    def visit(self, task: BlockTask, arrays: TaskArrays) -> tuple[Array, int, int]:
        """Count the triangles of a task."""
        from dasktc.backends.cpu.times import time_counts  # loads Numba: only when needed

        ((of_index, of_table, of_stream),) = arrays.edges
        counts, within, wedges = time_counts(task, (of_index, of_table, of_stream), self.window)
        return np.append(counts, within), int(counts.sum()), wedges


def _times_of_batch(batch: Batch, window: int, bins: int) -> Array:
    """Count triangles as `TimeCounts` does."""
    a, b, c = batch.values()
    xp = array_module(a)
    low, high = xp.minimum(a, b), xp.maximum(a, b)
    first, second, third = xp.minimum(low, c), xp.minimum(xp.maximum(low, c), high), xp.maximum(high, c)
    # they may be 2^64 - 1 apart
    opening, closing = ((later.view("uint64") - first.view("uint64")) for later in (second, third))
    powers = xp.asarray(1 << np.arange(bins - 1, dtype=np.uint64))
    places = powers.searchsorted(opening, side="right") * bins + powers.searchsorted(closing, side="right")
    counts = xp.bincount(places, minlength=bins * bins)
    return xp.concatenate([counts, (closing <= np.uint64(window)).sum(keepdims=True)])


def temporal_triangles(
    graph: CountingContext, time: str, window: int | None = None, options: CountOptions | None = None
) -> TemporalTriangles:
    """Count triangles by the times of their edges; see `Graph.temporal_triangles`."""
    import pandas as pd

    from dasktc.backends.cpu.times import BINS

    column = edge_column(graph, time)
    if column.dtype != "int64":
        type_name = column.dtype if column.categories is None else "text"
        raise InputError(f"column {shown(time)} has type {type_name}: times are integers, such as seconds; convert it")
    if window is not None:
        window = whole_number(
            "window", window, 0, (1 << 64) - 1, "edges are 0 or more apart", "no times are so far apart"
        )
    visitor, function = TimeCounts(window or 0), partial(_times_of_batch, window=window or 0, bins=BINS)
    nbytes, kinds = times_bytes(int(graph.prepared.sizes.columns.max())), BINS * BINS + 1
    times = {"time": column}
    sums = counts_by_edges(graph, "temporal triangles", visitor, nbytes, function, times, kinds, options)
    *counts, within = sums.tolist()
    # Row and column of the histogram are the bit lengths of the opening and of the closing time.
    least = [0, *(1 << exponent for exponent in range(BINS - 1))]
    rows = [(least[place // BINS], least[place % BINS], count) for place, count in enumerate(counts) if count]
    opening, closing, triangles = zip(*rows, strict=True) if rows else ((), (), ())
    histogram = pd.DataFrame(
        {
            "opening": np.array(opening, np.uint64),
            "closing": np.array(closing, np.uint64),
            "triangles": np.array(triangles, np.int64),
        }
    )
    return TemporalTriangles(sum(counts), None if window is None else within, window, histogram)
