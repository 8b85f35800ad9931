"""Timeline of a count: which task ran when on which worker, from the records of the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from dasktc.counting.tasks import Record

__all__ = ["Timeline", "timeline"]

Array = Any


@dataclass(frozen=True)
class Timeline:
    """Begin, end, worker and lane of each task."""

    workers: list[str]
    """Host and process, sorted."""
    lanes: Array
    """Array of int64, shape (workers,). Largest number of concurrent tasks of each worker."""
    worker: Array
    lane: Array
    """Array of int64, shape (tasks,). Where each task ran; tasks of one lane do not overlap."""
    began: Array
    ended: Array
    """Array of float64, shape (tasks,). Seconds since the first task began. The clocks of several hosts are assumed to
    agree."""

    @property
    def seconds(self) -> float:
        """Seconds from the begin of the first task to the end of the last one."""
        return float(self.ended.max()) if len(self.ended) else 0.0

    @property
    def busy(self) -> Array:
        """Total seconds of each worker's tasks."""
        return np.bincount(self.worker, self.ended - self.began, minlength=len(self.workers))

    def shares_of(self, worker: int, columns: int) -> Array:
        """Share of a worker's lanes that are busy in each of `columns` equal time intervals."""
        edges, mask = np.linspace(0, self.seconds, columns + 1), self.worker == worker
        starts, ends = np.sort(self.began[mask]), np.sort(self.ended[mask])
        busy_seconds = _seconds_after(starts, edges) - _seconds_after(ends, edges)
        return np.diff(busy_seconds) / (self.lanes[worker] * max(self.seconds / columns, 1e-12))


def timeline(records: list[Record]) -> Timeline:
    """Arrange the tasks of this run; tasks from a checkpoint have no times and are left out."""
    runs = sorted((r for r in records if not isnan(r.began)), key=lambda record: record.began)
    workers = sorted({record.worker for record in runs})
    numbers = {worker: number for number, worker in enumerate(workers)}
    first = runs[0].began if runs else 0.0
    free: list[list[float]] = [[] for _ in workers]
    lanes = []
    for record in runs:
        ends = free[numbers[record.worker]]
        lane = next((lane for lane, end in enumerate(ends) if end <= record.began), len(ends))
        ends[lane:] = [record.ended, *ends[lane + 1 :]]
        lanes.append(lane)
    return Timeline(
        workers,
        np.array([len(ends) for ends in free], np.int64),
        np.array([numbers[record.worker] for record in runs], np.int64),
        np.array(lanes, np.int64),
        np.array([record.began - first for record in runs]),
        np.array([record.ended - first for record in runs]),
    )


def _seconds_after(starts: Array, times: Array) -> Array:
    """Σ max(0, time - start) over ascending starts, for each of ascending times."""
    counts = starts.searchsorted(times)
    return counts * times - np.concatenate([[0.0], starts.cumsum()])[counts]
