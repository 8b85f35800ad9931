"""`open_graph` opens a saved graph; `save_source` prepares and saves a source, as `dasktc prepare` does."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dasktc.api.count import prepare
from dasktc.api.graph import Graph
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.errors import InputError, shown, without_secrets
from dasktc.options import Backend, Method, MethodName, RunOptions, format_size, path_text
from dasktc.pipeline.prepare import Progress
from dasktc.saved.folder import MANIFEST, check_new
from dasktc.saved.opening import saved_graph
from dasktc.summary import Rows, Summarised
from dasktc.wording import plural

if TYPE_CHECKING:
    from dasktc.executors.place import ClientLike

__all__ = ["SavedFolder", "open_graph", "save_source"]


@said_in_one_line
def open_graph(
    path: str | os.PathLike[str],
    client: ClientLike | None = None,
    *,
    backend: Backend = "auto",
    method: Method | MethodName = "auto",
    memory: int | str | None = None,
    threads: int | None = None,
    run: RunOptions = RunOptions(),  # noqa: B008  (frozen)
    progress: Progress | bool | None = None,
) -> Graph:
    """Open a graph that `Graph.save` wrote; it is ready to be counted without preparation.

    Each worker reads the blocks that it counts and verifies their checksums; afterwards the folder is no longer needed.
    The graph may have been saved by other workers, more or fewer, on the CPU or on GPUs.

    Parameters
    ----------
    path : path or fsspec URL
        The folder, which all workers must see.
    client, backend, memory, threads, run, progress
        As for `triangle_count`.
    method : Method or str
        Of a method only `kernel` and `splits` may differ from those of the saved graph. Default: the kernel for which
        it was prepared (on another backend the choice of "auto" there), and the splits that the workers need.

    Returns
    -------
    Graph
        As from `prepare`, with the scheme, n and order with which it was saved.

    Raises
    ------
    InputError
        There is no saved graph; it is damaged or of a newer format; a file of it cannot be read; there is too little
        memory; or it has weights or directions, which only this process can hold, and a cluster is to hold the graph.
    ClusterError
        The cluster does not answer or has no workers.

    Examples
    --------
    >>> import dasktc, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nbytes = dasktc.prepare(([0, 1, 2], [1, 2, 0])).save(f"{folder}/triangle")
    ...     graph = dasktc.open_graph(f"{folder}/triangle")
    >>> graph.triangles().to_dict()
    {0: 1, 1: 1, 2: 1}
    """
    saved = saved_graph(path_text("path", path))
    if saved is None:
        raise InputError(
            f"{shown(os.fspath(path))} holds no saved graph: it has no {MANIFEST}, which is written last; save one "
            "with Graph.save or `dasktc prepare`, or give edges to dasktc.prepare"
        )
    return prepare(
        saved, client, backend=backend, method=method, memory=memory, threads=threads, run=run, progress=progress
    )


@dataclass(frozen=True, repr=False)
class SavedFolder(Summarised):
    """Summary of a saved graph: its folder, sizes, scheme and seconds.

    Attributes
    ----------
    out : str
        The folder.
    vertices, edges : int
    partition : str
    parts : int
    reorder : str
    bytes : int
        Size of the arrays.
    seconds : dict of str to float
        Wall time of read, prepare, save and total.
    """

    out: str
    vertices: int
    edges: int
    partition: str
    parts: int
    reorder: str
    bytes: int
    seconds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.out}: {plural(self.vertices, 'vertex')}, {plural(self.edges, 'edge')}, {format_size(self.bytes)}"

    def _rows(self) -> Rows:
        return [
            ("saved", f"{self.out}, {format_size(self.bytes)}"),
            ("vertices", f"{self.vertices:,}"),
            ("edges", f"{self.edges:,}"),
            ("partition", f"{self.partition}, n = {self.parts}, order {self.reorder}"),
            ("seconds", f"{self.seconds['total']:.2f}, of which {self.seconds['save']:.2f} to save"),
        ]


@said_in_one_line
def save_source(source: Any, out: str | os.PathLike[str], force: bool = False, **options: Any) -> SavedFolder:
    """Prepare a source and save the graph.

    Parameters
    ----------
    source : object
        As for `prepare`, or a saved graph.
    out : path or fsspec URL
        As for `Graph.save`; a URL in this process's memory is refused.
    force : bool
        Replace a saved graph.
    **options
        Keywords of `prepare`.

    Raises
    ------
    InputError, DasktcError, ClusterError, CountError
        As `prepare` and `Graph.save`.
    """
    check_new(out, force, "nothing of it is left when this command ends")
    began = time.perf_counter()
    with prepare(source, **options) as graph:
        before = time.perf_counter()
        nbytes = graph.save(out, force=force)
        ended = time.perf_counter()
        plan = graph.plan
        return SavedFolder(
            out=without_secrets(os.fspath(out)),
            vertices=graph.vertices,
            edges=graph.edges,
            partition=plan.partition,
            parts=plan.parts,
            reorder=graph._context.options.chosen_reorder,
            bytes=nbytes,
            seconds={**graph._context.prepared.seconds, "save": ended - before, "total": ended - began},
        )
