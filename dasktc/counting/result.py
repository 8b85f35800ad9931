"""`TriangleCount`: the number of triangles with the plan, times and checks of its count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from dasktc.backends.csr import TaskCount
from dasktc.counting.statistics import CountStatistics
from dasktc.counting.tasks import Record
from dasktc.io.evidence import Reading
from dasktc.planning.plan import Plan
from dasktc.summary import Rows, Summarised
from dasktc.wording import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["TriangleCount"]


@dataclass(frozen=True, eq=False, repr=False)
class TriangleCount(Summarised, int):
    """The exact number of triangles of a graph, with facts about its count.

    It is an integer for Python, NumPy, pandas, Polars and JSON: it compares, adds, hashes and formats as one, and
    statistics of several results are those of integers. `str(result)`, which `print` and `csv.writer` use, is the
    number alone; a REPL, Jupyter and `result.summary()` show a summary of the count. `int(result)` is a plain integer.

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
    stats : CountStatistics
        Statistics of the method: wedges, probes, balance of the workers, speed, tasks verified and resumed.

    Examples
    --------
    >>> import dasktc
    >>> result = dasktc.triangle_count(([0, 1, 2, 2], [1, 2, 0, 3]))
    >>> print(result)
    1
    >>> result + 1, result.edges, result.stats.verified
    (2, 4, 0)
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
    stats: CountStatistics
    _records: list[Record]

    def __new__(cls, triangles: Any, *facts: Any, **named: Any) -> Any:
        """Make the integer, whose fields the dataclass sets; from a number alone, as in `statistics`, a plain int."""
        return super().__new__(cls, triangles) if facts or named else int(triangles)

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, None]]:  # arguments of copies; the fields are state
        return (self.triangles,), {"fields": None}

    def _replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})

    __replace__ = _replace

    def _timed(self, total: float, **stages: float) -> Self:
        """Return a copy with further stages in its seconds, and another total."""
        stage_seconds = {name: value for name, value in self.seconds.items() if name != "total"}
        return self._replace(seconds={**stage_seconds, **stages, "total": total})

    def __str__(self) -> str:
        return str(self.triangles)

    def __format__(self, spec: str) -> str:
        return format(self.triangles, spec)

    @property
    def tasks(self) -> pd.DataFrame:
        """One row per counting task: its blocks, split, counts, CPU seconds, worker, and when it ran.

        "began" and "ended" are seconds since the first task of this run began; nan for tasks of an earlier run.
        """
        import pandas as pd

        first = min((r.began for r in self._records if r.began == r.began), default=0.0)
        rows = [
            (*r.job.triple.places, r.job.split, *r.count, r.worker, r.began - first, r.ended - first)
            for r in self._records
        ]
        names = ["index", "table", "stream", "split", *TaskCount._fields, "worker", "began", "ended"]
        return pd.DataFrame(rows, columns=names)

    def plot(self, axes: Sequence[Axes] | None = None) -> Figure:
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

        return plot_count(self._records, self.seconds, self.stats.resumed, axes)

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the single tasks, ready for JSON."""
        field_names = ("triangles", "vertices", "edges", "loops_dropped", "duplicates_dropped")
        return {
            **{name: getattr(self, name) for name in field_names},
            "read": self.read.to_dict(),
            **{name: getattr(self, name) for name in ("backend", "workers", "kernel")},
            **{name: getattr(self.plan, name) for name in ("partition", "parts", "splits")},
            "reorder": self.reorder,
            "tasks": self.plan.tasks,
            "seconds": self.seconds,
            **asdict(self.stats),
        }

    def _rows(self) -> Rows:
        stats, plan = self.stats, self.plan
        verification = f", {plural(stats.verified, 'task')} again" if stats.verified else ""
        seconds = ", ".join(f"{name} {value:.2f}" for name, value in self.seconds.items())
        rows = [
            ("triangles", f"{self.triangles:,}"),
            ("vertices", f"{self.vertices:,}"),
            ("edges", f"{self.edges:,}"),
            *self.read._rows(),
            ("dropped", f"{plural(self.loops_dropped, 'loop')}, {plural(self.duplicates_dropped, 'duplicate')}"),
            ("counted by", f"{self.kernel} on {self.backend}, {self.workers} at a time, {self.reorder} order"),
            ("plan", f"{plan.partition}, n = {plan.parts}, m = {plan.splits}, {plural(plan.tasks, 'task')}"),
            *([("cluster", plan.distribution)] if plan.distribution else []),
            ("seconds", seconds),
            ("checked", plural(stats.wedges, "wedge") + verification),
        ]
        if stats.resumed:
            rows.append(("resumed", f"{plural(stats.resumed, 'task was', 'tasks were')} in the checkpoint"))
        return rows


del TriangleCount.__dataclass_fields__  # Polars would take a dataclass for a struct, not a number
