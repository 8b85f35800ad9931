"""`open_graph` opens a saved graph."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dasktc.api.count import prepare
from dasktc.api.graph import Graph
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.errors import InputError, shown
from dasktc.options import Backend, Method, MethodName, RunOptions, path_text
from dasktc.pipeline.prepare import Progress
from dasktc.saved.folder import MANIFEST
from dasktc.saved.opening import saved_graph

if TYPE_CHECKING:
    from dasktc.executors.place import ClientLike

__all__ = ["open_graph"]


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
