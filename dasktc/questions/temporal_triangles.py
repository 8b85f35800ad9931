"""Triangles by the times of their edges: how long the first two edges, and all three, are apart.

Of the times t1 <= t2 <= t3 of a triangle's edges, the opening time is t2 - t1, after which two edges form a wedge, and
the closing time t3 - t1, after which the triangle is closed. They are counted in powers of two, as in the survey of
Steil et al., "TriPoll: Computing surveys of triangles in massive-scale temporal graphs with metadata", SC'21.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.counting.context import CountingContext
from dasktc.errors import InputError, shown
from dasktc.executors.progress.tracker import Progress
from dasktc.questions.survey import PAIRS, Batch, edge_columns, survey
from dasktc.summary import Rows, Summarised

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TemporalTriangles", "temporal_triangles"]

BINS = 65
"""Times of 0, and those from each power of two below 2^64 to the next."""
MANTISSA, EXPONENT = 52, 1022
"""Bits of a float64 below its exponent, and the exponent of one half there."""


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
class _Times:
    """The function of the survey: counts by bins, and the triangles within the window behind them."""

    name: str
    window: int | None

    def __call__(self, batch: Batch) -> Any:
        a, b, c = (batch[f"{self.name}_{pair}"] for pair in PAIRS)
        first, third = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
        second = a ^ b ^ c ^ first ^ third
        first, second, third = (time.view(np.uint64) for time in (first, second, third))
        opening, closing = second - first, third - first  # of 64-bit integers: unsigned, for they may need all bits
        within = 0 if self.window is None else int((closing <= np.uint64(self.window)).sum())
        bins = _bin_of(opening) * BINS + _bin_of(closing)
        return np.append(np.bincount(bins, minlength=BINS * BINS), within)


def _bin_of(times: Any) -> Any:
    """Return 0 for a time of 0, else one more than the exponent of its power of two."""
    bins = (times.astype(np.float64).view(np.int64) >> MANTISSA) - EXPONENT
    np.maximum(bins, 0, out=bins)
    if len(times) and int(times.max()) >> MANTISSA:
        shift = (bins - 1).clip(0).astype(np.uint64)
        bins -= (bins > MANTISSA) & (times >> shift == 0)  # those that were rounded up to the next power of two
    return bins


def temporal_triangles(
    graph: CountingContext, time: str, window: int | None = None, progress: Progress | None = None
) -> TemporalTriangles:
    """Count triangles by the times of their edges; see `Graph.temporal_triangles`."""
    import pandas as pd

    column = edge_columns(graph, [time])[time]
    if column.dtype != "int64":
        raise InputError(
            f"column {shown(time)} has type {column.dtype}: times are integers, such as seconds; convert it"
        )
    if window is not None and (
        isinstance(window, bool) or not hasattr(window, "__index__") or not 0 <= window < 1 << 64
    ):
        raise InputError(f"window={shown(window)} is no time: give an integer from 0, in the unit of {shown(time)}")
    window = None if window is None else int(window)
    *counts, within = survey(graph, _Times(time, window), [time], progress=progress).tolist()
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
