"""`CountStatistics`: how a count went, as the papers of its methods measure it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from dasktc.backends.csr import TaskCount
from dasktc.counting.tasks import Record
from dasktc.planning.plan import Plan

__all__ = ["CountStatistics"]


@dataclass(frozen=True)
class CountStatistics:
    """Statistics of a count's method: its work, its balance, its speed and its checks.

    Attributes
    ----------
    wedges, probes : int
        Wedges handled, equal to Σ in(v)·out(v) of the oriented graph; streamed elements tested.
    max_collision : int
        Length of the longest hash bucket; 0 without a hash table (TRUST, table 3).
    time_imbalance : float or None
        Counting seconds of the busiest worker process over those of the least busy (TRUST, table 6). None if undefined:
        one process ran everything although several could have, or an earlier run did a part.
    space_imbalance : float or None
        Edges of the largest block over those of the smallest (TRUST, table 6); None if a block has none.
    kernel_seconds : float or None
        Counting seconds of the busiest worker process: kernel time of its GPU, or CPU time of all its threads. This is
        the counting time of TRUST (section 6). None if an earlier run did a part of the counting.
    kernel_edges_per_second : float or None
        Edges over `kernel_seconds`, the TEPS of TRUST and H-INDEX; None if undefined.
    edges_per_second : float or None
        Edges over the wall time of the count phase. None if an earlier run did a part of the counting.
    verified : int
        Number of tasks counted again by another kernel.
    resumed : int
        Number of tasks whose counts and seconds came from a checkpoint of an earlier run.

    Examples
    --------
    >>> import dasktc
    >>> dasktc.triangle_count(([0, 1, 2, 2], [1, 2, 0, 3])).stats.wedges
    1
    """

    wedges: int
    probes: int
    max_collision: int
    time_imbalance: float | None
    space_imbalance: float | None
    kernel_seconds: float | None
    kernel_edges_per_second: float | None
    edges_per_second: float | None
    verified: int
    resumed: int

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        total: TaskCount,
        plan: Plan,
        workers: int,
        seconds: float,
        verified: int = 0,
        resumed: int = 0,
    ) -> Self:
        """Derive the statistics of a count.

        Parameters
        ----------
        records : sequence of Record
            One of each counting task.
        total : TaskCount
            Their sum.
        plan : Plan
        workers : int
            Number of concurrent tasks.
        seconds : float
            Wall time of the count phase.
        verified, resumed : int
        """
        busy_seconds: dict[str, float] = {}
        for record in records:
            busy_seconds[record.worker] = busy_seconds.get(record.worker, 0.0) + record.count.seconds
        minimum, maximum = min(busy_seconds.values(), default=0.0), max(busy_seconds.values(), default=0.0)
        balance = 1.0 if workers == 1 else None
        imbalance = balance if len(busy_seconds) < 2 else maximum / minimum if minimum else None
        kernel_seconds = None if resumed else maximum
        return cls(
            wedges=total.wedges,
            probes=total.probes,
            max_collision=total.max_collision,
            time_imbalance=None if resumed else imbalance,
            space_imbalance=plan.space_imbalance,
            kernel_seconds=kernel_seconds,
            kernel_edges_per_second=plan.edges / kernel_seconds if kernel_seconds else None,
            edges_per_second=plan.edges / seconds if seconds and not resumed else None,
            verified=verified,
            resumed=resumed,
        )
