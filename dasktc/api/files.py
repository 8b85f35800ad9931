"""What commands write about a source: measures, trussness, similar vertices, the prepared graph.

Each function takes a source, the path of its output, and `options`, keywords of `prepare`. Outputs of all but
`save_source` are .parquet (a file, or a folder with one file per partition), .csv, or .txt with tabs and no header. The
workers write, so they must see the folder. `force` replaces an existing output.

Errors are those of `prepare` and of the question's method of `Graph`. InputError, too: the output has another ending,
exists already, or is in no existing folder. DasktcError: it cannot be written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from dasktc.answers.frames import write_answer
from dasktc.api.count import prepare
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.counting.context import CountingContext
from dasktc.errors import without_secrets
from dasktc.io.inputs import refuse_input
from dasktc.io.write import FRAMES, check_target
from dasktc.options import Options, format_size, whole_number
from dasktc.questions.measures import MEASURES, average_clustering, transitivity, vertex_frames
from dasktc.questions.similarity import BOUND, checked, similarity_frames
from dasktc.questions.trussness import order_of_truss, truss_frames
from dasktc.saved.folder import check_new
from dasktc.saved.opening import saved_graph
from dasktc.summary import Rows, Summarised
from dasktc.wording import plural

__all__ = ["WriteSummary", "save_source", "write_measures", "write_similarity", "write_truss"]

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class WriteSummary(Summarised):
    """Summary of what was written."""

    facts: dict[str, Any]
    """By name, ready for JSON except what was read, a `Reading`."""
    line: str
    """The summary in one line."""
    rows: Rows

    def to_dict(self) -> dict[str, Any]:
        """Return the facts, ready for JSON."""
        return {**self.facts, "read": self.facts["read"].to_dict()}

    def __str__(self) -> str:
        return self.line

    def _rows(self) -> Rows:
        return self.rows


def _refuse_inputs(source: Any, out: str | os.PathLike[str], options: dict[str, Any]) -> None:
    """Refuse (InputError) an output that `prepare` with these options reads."""
    refuse_input(out, source, Options.by(options.get("method", "auto")).assign_file)


def _write_answer(
    source: Any,
    out: str | os.PathLike[str],
    force: bool,
    options: dict[str, Any],
    question: str,
    answer: Callable[[CountingContext], tuple[list[Any], T]],
) -> tuple[T, dict[str, Any]]:
    """Prepare a source, and write the frames of an answer.

    Returns what `answer` tells of them, and facts: numbers of the graph after clean-up, what was read, the backend, and
    the wall seconds of read, prepare, the question, write and total.
    """
    _refuse_inputs(source, out, options)
    check_target(out, FRAMES, force)
    start = time.perf_counter()
    with prepare(source, **options) as graph:
        answer_start, context = time.perf_counter(), graph._context
        frames, result = answer(context)
        answer_end = time.perf_counter()
        write_answer(context, frames, out, force)
        end = time.perf_counter()
        seconds = {question: answer_end - answer_start, "write": end - answer_end, "total": end - start}
        return result, {
            "vertices": graph.vertices,
            "edges": graph.edges,
            "read": graph.read,
            "backend": context.options.chosen_backend,
            "seconds": {**context.prepared.seconds, **seconds},
        }


@said_in_one_line
def write_measures(source: Any, out: str | os.PathLike[str], force: bool = False, **options: Any) -> WriteSummary:
    """Write degree, triangles and local clustering coefficient of every vertex, from one pass of counting.

    Columns "vertex", "degree", "triangles", "clustering", by ascending ids. The summary has numbers of the graph after
    clean-up, its average clustering and transitivity, `out`, and total wall seconds.
    """

    def answer(context: CountingContext) -> tuple[list[Any], tuple[int, float, float]]:
        average, share = average_clustering(context), transitivity(context)
        frames, triangles = vertex_frames(context, MEASURES)
        return frames, (triangles, average, share)

    (triangles, average, share), graph = _write_answer(source, out, force, options, "measures", answer)
    path, vertices, seconds = os.fspath(out), plural(graph["vertices"], "vertex"), graph["seconds"]["total"]
    return WriteSummary(
        {
            "triangles": triangles,
            "vertices": graph["vertices"],
            "edges": graph["edges"],
            "read": graph["read"],
            "average_clustering": average,
            "transitivity": share,
            "out": path,
            "seconds": seconds,
        },
        f"{path}: {vertices}, {plural(triangles, 'triangle')}; {seconds:.2f} s",
        [
            ("triangles", f"{triangles:,}"),
            ("graph", f"{vertices}, {plural(graph['edges'], 'edge')}"),
            *graph["read"]._rows(),
            ("average clustering", f"{average:.6g}"),
            ("transitivity", f"{share:.6g}"),
            ("written", f"{path}, in {seconds:.2f} s"),
        ],
    )


@said_in_one_line
def write_truss(
    source: Any, out: str | os.PathLike[str], k: int | None = None, force: bool = False, **options: Any
) -> WriteSummary:
    """Write every edge with its trussness, or the edges of the k-truss with their triangles within it: `Graph.truss`.

    In the summary `largest` is the largest trussness, or, of one truss, the most triangles of an edge within it; 0
    without edges. `vertices` and `edges` are written; `graph_vertices` and `graph_edges` those of the graph after
    clean-up.
    """
    if k is not None:
        k = order_of_truss(k)
    truss, graph = _write_answer(source, out, force, options, "truss", lambda context: truss_frames(context, k))
    contents = f"{plural(truss.edges, 'edge')} of trussness up to {truss.largest:,}"
    if k is not None:
        contents = (
            f"{k}-truss: {truss.vertices:,} of {plural(graph['vertices'], 'vertex')}, {truss.edges:,} of "
            f"{plural(graph['edges'], 'edge')}, in up to {plural(truss.largest, 'triangle')} each"
        )
    path, seconds = os.fspath(out), graph["seconds"]
    duration = f"{seconds['total']:.2f} s, of which {seconds['truss']:.2f} to peel"
    return WriteSummary(
        {
            "output": path,
            "k": k,
            "largest": truss.largest,
            "vertices": truss.vertices,
            "edges": truss.edges,
            "graph_vertices": graph["vertices"],
            "graph_edges": graph["edges"],
            "read": graph["read"],
            "backend": graph["backend"],
            "seconds": seconds,
        },
        f"{path}: {contents}; {duration}",
        [("written", path), ("truss", contents), *graph["read"]._rows(), ("seconds", duration)],
    )


@said_in_one_line
def save_source(source: Any, out: str | os.PathLike[str], force: bool = False, **options: Any) -> WriteSummary:
    """Prepare a source, which may be a saved graph, and save it in the folder or fsspec URL `out`, as `Graph.save`.

    A URL in this process's memory is refused. The summary has numbers of the graph, its scheme and order, the bytes of
    its arrays, and wall seconds of read, prepare, save and total.
    """
    if saved_graph(source) is None:  # which is replaced when the new one is complete
        _refuse_inputs(source, out, options)
    check_new(out, force, "nothing of it is left when this command ends")
    start = time.perf_counter()
    with prepare(source, **options) as graph:
        save_start = time.perf_counter()
        nbytes = graph.save(out, force=force)
        end = time.perf_counter()
        plan, path, reorder = graph.plan, without_secrets(os.fspath(out)), graph._context.options.chosen_reorder
        read = graph.read
        seconds = {**graph._context.prepared.seconds, "save": end - save_start, "total": end - start}
    return WriteSummary(
        {
            "out": path,
            "vertices": plan.vertices,
            "edges": plan.edges,
            "read": read,
            "partition": plan.partition,
            "parts": plan.parts,
            "reorder": reorder,
            "bytes": nbytes,
            "seconds": seconds,
        },
        f"{path}: {plural(plan.vertices, 'vertex')}, {plural(plan.edges, 'edge')}, {format_size(nbytes)}",
        [
            ("saved", f"{path}, {format_size(nbytes)}"),
            ("vertices", f"{plan.vertices:,}"),
            ("edges", f"{plan.edges:,}"),
            *read._rows(),
            ("partition", f"{plan.partition}, n = {plan.parts}, order {reorder}"),
            ("seconds", f"{seconds['total']:.2f}, of which {seconds['save']:.2f} to save"),
        ],
    )


@said_in_one_line
def write_similarity(
    source: Any,
    out: str | os.PathLike[str],
    measure: str = "jaccard",
    top: int | None = None,
    bound: int = BOUND,
    force: bool = False,
    **options: Any,
) -> WriteSummary:
    """Write the similarity of the ends of every edge, or each vertex's most similar vertices: `Graph.similarity`.

    In the summary `rows` is the number of pairs written; `vertices` and `edges` are those of the graph.
    """
    checked(measure)
    if top is not None:
        whole_number("top", top, 1, few="nothing would be found")
    rows, graph = _write_answer(
        source, out, force, options, "similarity", lambda context: similarity_frames(context, measure, top, bound)
    )
    path, pairs, seconds = os.fspath(out), f"{measure} of {plural(rows, 'pair')}", graph["seconds"]["total"]
    selection = "every edge" if top is None else f"each vertex and up to {top:,} most similar ones"
    return WriteSummary(
        {"output": path, "measure": measure, "top": top, "rows": rows, **graph},
        f"{path}: {pairs}; {seconds:.2f} s",
        [
            ("similarity", f"{pairs}: {selection}"),
            ("graph", f"{plural(graph['vertices'], 'vertex')}, {plural(graph['edges'], 'edge')}"),
            *graph["read"]._rows(),
            ("written", f"{path}, in {seconds:.2f} s"),
        ],
    )
