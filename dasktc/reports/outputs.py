"""Writes the output files of a count: triangles by vertex and by edge, and the report."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dasktc.answers.edge_support import kernel_and_bytes
from dasktc.answers.frames import write_answer
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import refuse_unless
from dasktc.errors import DasktcError, InputError, neutral_text, without_secrets
from dasktc.executors.base import Executor
from dasktc.executors.process.usage import Usage, usage_of
from dasktc.executors.progress.tracker import Tracker, tracker_of
from dasktc.io.inputs import refuse_input
from dasktc.io.write import FRAMES, PAGES, check_target, is_same_target, write_page
from dasktc.options import path_text
from dasktc.questions.measures import edge_frames, vertex_frames
from dasktc.reports.findings import RunFacts, findings_of
from dasktc.reports.html_report import page
from dasktc.wording import plural

if TYPE_CHECKING:
    from dasktc.counting.result import TriangleCount

__all__ = ["Outputs"]


@dataclass(frozen=True)
class Outputs:
    """The output files that a caller requests; None means not requested."""

    per_vertex: str | os.PathLike[str] | None = None
    per_edge: str | os.PathLike[str] | None = None
    """Triangles of every vertex and of every edge: .parquet, .csv or .txt."""
    report: str | os.PathLike[str] | None = None
    """The HTML report: .html."""
    force: bool = field(default=False, compare=False)
    """Replace existing files, and folders that contain only .parquet files."""

    def check(self, *inputs: Any) -> None:
        """Refuse (InputError) paths that cannot be written, or are among the inputs, before anything is read."""
        paths = {"per_vertex": self.per_vertex, "per_edge": self.per_edge, "report": self.report}
        outputs = [Path(path_text(name, out)).absolute() for name, out in paths.items() if out is not None]
        for out, suffixes in ((self.per_vertex, FRAMES), (self.per_edge, FRAMES), (self.report, PAGES)):
            if out is not None:
                refuse_input(out, *inputs)
                check_target(out, suffixes, self.force)
        for path, second in combinations(outputs, 2):
            if path == second or is_same_target(path, second):
                place = second if path == second else f"{second} is the file of {path}, which"
                raise InputError(
                    f"{place} is named for two outputs: the second would replace the first; name another file"
                )

    def check_memory(self, graph: CountingContext) -> None:
        """Refuse (InputError) tasks that do not fit a worker, or labels without a text, before anything is counted."""
        if self.per_vertex is not None or self.per_edge is not None:
            kernel_and_bytes(graph)  # refuses tasks that do not fit a worker
            if graph.prepared.source.labels is not None:
                graph.prepared.source.labels.text()

    def usage(self, executor: Executor) -> dict[str, Usage]:
        """Return the resource use of processes so far, for a report; nothing without a report."""
        return {} if self.report is None else usage_of(executor)

    def write(
        self,
        graph: CountingContext,
        result: TriangleCount,
        before: dict[str, Usage] | None = None,
        command: str = "",
        progress: Tracker | None = None,
    ) -> TriangleCount:
        """Write the files; a report includes the `usage` before the stages and the command that repeats the count.

        Returns the result, whose seconds have the stages `write` and `report` where there are such files.

        InputError, DasktcError: a file cannot be written; the message begins with the number of triangles. CountError:
        the triangles of vertices or edges disagree with the count.
        """
        try:
            return self._write(graph, result, before or {}, command, tracker_of(progress))
        except DasktcError as error:
            raise type(error)(
                f"{plural(result.triangles, 'triangle was', 'triangles were')} counted, but {neutral_text(error)}"
            ) from error

    def _write(
        self, graph: CountingContext, result: TriangleCount, before: dict[str, Usage], command: str, progress: Tracker
    ) -> TriangleCount:
        after, began = self.usage(graph.executor), time.perf_counter()
        total = result.seconds["total"]
        answers = [
            (out, noun, frames)
            for out, noun, frames in (
                (self.per_vertex, "vertices", vertex_frames),
                (self.per_edge, "edges", edge_frames),
            )
            if out is not None
        ]
        with progress.watching(graph.executor):
            for number, (out, noun, frames_of) in enumerate(answers):
                progress("write", number, len(answers))
                frames, count = frames_of(graph)
                refuse_unless(
                    count == result.triangles,
                    f"the {noun} have {plural(count, 'triangle')}, but {result.triangles:,} were counted",
                )
                write_answer(graph, frames, out, self.force)
        written = time.perf_counter()
        if answers:
            progress("write", len(answers), len(answers))
            result = result._timed(total + written - began, write=written - began)
        # The report comes last, because it states the seconds of writing.
        if self.report is not None:
            progress("report", 0, 1)
            graph.counted.agree(result.triangles)
            facts, run = findings_of(graph, result), RunFacts(without_secrets(command), before, after)
            write_page(page(result, without_secrets(graph.prepared.source.name), facts, run), self.report, self.force)
            ended = time.perf_counter()
            result = result._timed(total + ended - began, report=ended - written)
        return result
