"""Writes the output files of a count: triangles by vertex and by edge, and the report."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from dasktc.counting.context import CountingContext
from dasktc.counting.edge_support import refuse_beyond_memory
from dasktc.counting.findings import RunFacts, findings_of
from dasktc.counting.html_report import page
from dasktc.counting.measures import edge_frames, vertex_frames
from dasktc.errors import CountError, DasktcError, InputError, without_secrets
from dasktc.executors.base import Executor
from dasktc.executors.usage import Usage, usage_of
from dasktc.io.write import FRAMES, PAGES, check_target, is_same_target, write_frames, write_page
from dasktc.options import path_text

if TYPE_CHECKING:
    from dasktc.counting.result import TriangleCount

__all__ = ["Outputs"]


@dataclass(frozen=True)
class Outputs:
    """The output files that a caller requests; None means not requested.

    Attributes
    ----------
    per_vertex, per_edge : path or None
        Triangles of every vertex and of every edge: .parquet, .csv or .txt.
    report : path or None
        The HTML report: .html.
    force : bool
        Replace existing files, and folders that contain only .parquet files.
    """

    per_vertex: str | os.PathLike[str] | None = None
    per_edge: str | os.PathLike[str] | None = None
    report: str | os.PathLike[str] | None = None
    force: bool = field(default=False, compare=False)

    def check(self) -> None:
        """Refuse paths that cannot be written, before anything is read.

        Raises
        ------
        InputError
        """
        given = {"--per-vertex": self.per_vertex, "--per-edge": self.per_edge, "--report": self.report}
        wanted = [Path(path_text(option, out)).absolute() for option, out in given.items() if out is not None]
        for out, suffixes in ((self.per_vertex, FRAMES), (self.per_edge, FRAMES), (self.report, PAGES)):
            if out is not None:
                check_target(out, suffixes, self.force)
        for one, other in combinations(wanted, 2):
            if one == other or is_same_target(one, other):
                where = other if one == other else f"{other} is the file of {one}, which"
                raise InputError(
                    f"{where} is named for two outputs: the second would replace the first; name another file"
                )

    def check_memory(self, graph: CountingContext) -> None:
        """Refuse outputs whose tasks do not fit a worker, before anything is counted.

        Raises
        ------
        InputError
        """
        if self.per_vertex is not None or self.per_edge is not None:
            refuse_beyond_memory(graph)

    def usage(self, executor: Executor) -> dict[str, Usage]:
        """Return the resource use of processes so far, for a report; nothing without a report."""
        return {} if self.report is None else usage_of(executor)

    def write(
        self, graph: CountingContext, result: TriangleCount, before: dict[str, Usage] | None = None, command: str = ""
    ) -> None:
        """Write the files; a report includes the `usage` before the stages and the command that repeats the count.

        Raises
        ------
        InputError, DasktcError
            A file cannot be written; the message begins with the number of triangles.
        CountError
            The triangles of vertices or edges disagree with the count.
        """
        try:
            self._write(graph, result, before or {}, command)
        except DasktcError as error:
            raise type(error)(f"{result.triangles:,} triangles were counted, but {error}") from error

    def _write(self, graph: CountingContext, result: TriangleCount, before: dict[str, Usage], command: str) -> None:
        after = self.usage(graph.executor)
        if self.per_vertex is not None:
            frames, count = vertex_frames(graph)
            _same(count, result, "vertices")
            write_frames(frames, self.per_vertex, graph.executor, self.force)
        if self.per_edge is not None:
            frames, count = edge_frames(graph)
            _same(count, result, "edges")
            write_frames(frames, self.per_edge, graph.executor, self.force)
        if self.report is not None:
            graph.counted.agree(result.triangles)
            facts, run = findings_of(graph, result), RunFacts(without_secrets(command), before, after)
            write_page(page(result, without_secrets(graph.prepared.source.name), facts, run), self.report, self.force)


def _same(count: int, result: TriangleCount, what: str) -> None:
    if count != result.triangles:
        raise CountError(
            f"the {what} have {count:,} triangles, but {result.triangles:,} were counted: one of the two is wrong; "
            "run again, and report this with the output of `dasktc info`"
        )
