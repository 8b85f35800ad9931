"""`TriangleCount`: the number of triangles with the plan, times and checks of its count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from dasktc.backends.csr import TaskCount
from dasktc.counting.summary import Rows, as_html, as_text
from dasktc.counting.tasks import Record
from dasktc.io.evidence import Reading
from dasktc.planning.plan import Plan
from dasktc.wording import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TriangleCount"]


@dataclass(frozen=True, eq=False, repr=False)
class TriangleCount(int):
    """The exact number of triangles of a graph, with facts about its count.

    It is an integer for Python, NumPy, pandas, Polars and JSON: it compares, adds, hashes and formats as one,
    statistics of several results are those of integers, and `f"{result:,}"` is the number alone. `str(result)`, which
    `print` and `csv.writer` use, is a summary of the count; `int(result)` is a plain integer.

    Attributes
    ----------
    triangles : int
    vertices : int
        Vertices with an edge after clean-up.
    edges : int
        Distinct undirected edges after clean-up.
    loops_dropped, duplicates_dropped : int
        Rows of the source that were loops, and rows that repeated an edge in either direction.
    read : Reading
        What was read: the two id columns and how they were found, rows, and lines skipped as comments or headers.
    backend, kernel, reorder : str
        Backend and kernel that counted, and the vertex order.
    workers : int
        Number of concurrent tasks.
    plan : Plan
    seconds : dict of str to float
        Wall time of each stage that ran: read, prepare, count, verify, write (files of vertices and edges) and report;
        and total, from the call to its answer. It includes what belongs to no stage, such as the start of workers; for
        a prepared graph it is the time of its preparation and of this count.
    wedges, probes : int
        Wedges handled, equal to Σ in(v)·out(v) of the oriented graph; streamed elements tested.
    max_collision : int
        Length of the longest hash bucket; 0 without a hash table (TRUST, table 3).
    verified : int
        Number of tasks counted again by another kernel.
    resumed : int
        Number of tasks whose counts and seconds came from a checkpoint of an earlier run.
    """

    triangles: int
    vertices: int
    edges: int
    loops_dropped: int
    duplicates_dropped: int
    read: Reading
    backend: str
    workers: int
    kernel: str
    reorder: str
    plan: Plan
    seconds: dict[str, float]
    wedges: int
    probes: int
    max_collision: int
    verified: int
    resumed: int
    records: list[Record] = field(repr=False)

    def __new__(cls, triangles: Any, *facts: Any, **more: Any) -> Any:
        """Make the integer, whose fields the dataclass sets; from a number alone, as in `statistics`, a plain int."""
        return super().__new__(cls, triangles) if facts or more else int(triangles)

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, None]]:  # arguments of copies; the fields are state
        return (self.triangles,), {"fields": None}

    def _replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})

    __replace__ = _replace

    def timed(self, total: float, **stages: float) -> Self:
        """Return a copy with further stages in its seconds, and another total."""
        before = {name: value for name, value in self.seconds.items() if name != "total"}
        return self._replace(seconds={**before, **stages, "total": total})

    def __repr__(self) -> str:
        return f"TriangleCount(triangles={self.triangles}, vertices={self.vertices}, edges={self.edges})"

    def __format__(self, spec: str) -> str:
        return format(self.triangles, spec)

    @property
    def tasks(self) -> pd.DataFrame:
        """One row per counting task: its blocks, split, counts, CPU seconds, worker, and when it ran.

        "began" and "ended" are seconds since the first task of this run began; nan for tasks of an earlier run.
        """
        import pandas as pd

        first = min((r.began for r in self.records if r.began == r.began), default=0.0)
        rows = [
            (*r.job.triple.places, r.job.split, *r.count, r.worker, r.began - first, r.ended - first)
            for r in self.records
        ]
        names = ["index", "table", "stream", "split", *TaskCount._fields, "worker", "began", "ended"]
        return pd.DataFrame(rows, columns=names)

    def plot(self, axes: Any = None) -> Any:
        """Plot the wall seconds of each stage, and the counting tasks of each worker over time.

        Parameters
        ----------
        axes : pair of matplotlib.axes.Axes, optional
            Axes of the stages and of the timeline. Default: axes of a new figure.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        InputError
            matplotlib is not installed.
        """
        from dasktc.counting.count_plot import plot_count

        return plot_count(self.records, self.seconds, self.resumed, axes)

    @property
    def time_imbalance(self) -> float | None:
        """Counting seconds of the busiest worker process over those of the least busy (TRUST, table 6).

        None if undefined: one process ran everything although several could have, or an earlier run did a part.
        """
        if self.resumed:
            return None
        busy = self._busy
        if len(busy) < 2:
            return 1.0 if self.workers == 1 else None
        return max(busy.values()) / min(busy.values()) if min(busy.values()) else None

    @property
    def _busy(self) -> dict[str, float]:
        """Counting seconds of each worker process."""
        busy: dict[str, float] = {}
        for record in self.records:
            busy[record.worker] = busy.get(record.worker, 0.0) + record.count.seconds
        return busy

    @property
    def kernel_seconds(self) -> float | None:
        """Counting seconds of the busiest worker process: kernel time of its GPU, or CPU time of all its threads.

        This is the counting time of TRUST (section 6). None if an earlier run did a part of the counting.
        """
        return max(self._busy.values(), default=0.0) if not self.resumed else None

    @property
    def kernel_edges_per_second(self) -> float | None:
        """Edges over `kernel_seconds`, the TEPS of TRUST and H-INDEX; None if undefined."""
        return self.edges / self.kernel_seconds if self.kernel_seconds else None

    @property
    def edges_per_second(self) -> float | None:
        """Edges over the wall time of the count phase.

        None if an earlier run did a part of the counting.
        """
        return self.edges / self.seconds["count"] if self.seconds["count"] and not self.resumed else None

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the single tasks, ready for JSON."""
        plan = self.plan
        return {
            "triangles": self.triangles,
            "vertices": self.vertices,
            "edges": self.edges,
            "loops_dropped": self.loops_dropped,
            "duplicates_dropped": self.duplicates_dropped,
            "read": self.read.to_dict(),
            "backend": self.backend,
            "workers": self.workers,
            "kernel": self.kernel,
            "partition": plan.partition,
            "parts": plan.parts,
            "splits": plan.splits,
            "reorder": self.reorder,
            "tasks": plan.tasks,
            "seconds": self.seconds,
            "wedges": self.wedges,
            "probes": self.probes,
            "max_collision": self.max_collision,
            "time_imbalance": self.time_imbalance,
            "space_imbalance": plan.space_imbalance,
            "edges_per_second": self.edges_per_second,
            "kernel_seconds": self.kernel_seconds,
            "kernel_edges_per_second": self.kernel_edges_per_second,
            "verified": self.verified,
            "resumed": self.resumed,
        }

    def summary(self) -> Rows:
        """Rows of (name, text) for people."""
        seconds = ", ".join(f"{name} {value:.2f}" for name, value in self.seconds.items())
        rows = [
            ("triangles", f"{self.triangles:,}"),
            ("vertices", f"{self.vertices:,}"),
            ("edges", f"{self.edges:,}"),
            *self.read.summary(),
            ("dropped", f"{plural(self.loops_dropped, 'loop')}, {plural(self.duplicates_dropped, 'duplicate')}"),
            (
                "counted by",
                f"{self.kernel} on {self.backend}, {self.workers} at a time, {self.reorder} order",
            ),
            (
                "plan",
                f"{self.plan.partition}, n = {self.plan.parts}, m = {self.plan.splits}, "
                f"{plural(self.plan.tasks, 'task')}",
            ),
            ("seconds", seconds),
            (
                "checked",
                plural(self.wedges, "wedge") + (f", {plural(self.verified, 'task')} again" if self.verified else ""),
            ),
        ]
        if self.plan.distribution:
            rows.insert(len(rows) - 2, ("cluster", self.plan.distribution))
        if self.resumed:
            rows.append(("resumed", f"{plural(self.resumed, 'task was', 'tasks were')} in the checkpoint"))
        return rows

    def __str__(self) -> str:
        return as_text(self.summary())

    def _repr_html_(self) -> str:
        return as_html(self.summary())


del TriangleCount.__dataclass_fields__  # Polars would take a dataclass for a struct, not a number
